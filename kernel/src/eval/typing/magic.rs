//! What a line of magic, or a command such as `:dep`, may go on with.
use super::scope::InScope;
use crate::eval::parse::segments::asked;
use crate::eval::text::types::short;
use crate::magics::{self, Takes, tpu as tpus};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A word, what it is, and more about it.
pub type Word = (String, &'static str, String);

/// Where Rust begins in a line of magic.
pub fn rust(line: &str) -> Option<usize> {
    if let Some(at) = asked(line) {
        return Some(at.start);
    }
    let named = line.trim_start_matches('%');
    let (name, args) = named.split_once(char::is_whitespace)?;
    let magic = magics::find(name).filter(|m| matches!(m.takes, Takes::Rest) && m.name != "!")?;
    let mut at = line.len() - args.len();
    // `%tpu` takes options and a chip first.
    if magic.usage.contains("EXPRESSION") && magic.name == "tpu" {
        loop {
            at += line[at..].len() - line[at..].trim_start().len();
            let word = line[at..].split(char::is_whitespace).next().unwrap_or_default();
            let ends = at + word.len() == line.len();
            let first = word.starts_with('-') || tpus::is_one(word);
            match first && !ends {
                true => at += word.len(),
                false => return Some(at),
            }
        }
    }
    Some(at)
}

/// Where the word at the end of the line begins, and what it may be; `None` where it is Rust, or anything.
pub fn candidates(scope: &InScope, line: &str) -> Option<(usize, Vec<Word>)> {
    if let Some(command) = line.strip_prefix(':') {
        return Some(commands(line, command)).filter(|(_, words)| !words.is_empty() || command.starts_with("dep"));
    }
    if let Some(shell) = line.strip_prefix('!') {
        return files(line, shell.rfind(char::is_whitespace).map_or(1, |i| i + 2), None);
    }
    // What is asked about is named in Rust.
    if asked(line).is_some() || line.starts_with("help") {
        return None;
    }
    let name = line.trim_start_matches('%');
    let Some((name, args)) = name.split_once(char::is_whitespace) else {
        let words = magics::names().filter_map(|n| Some((n.to_owned(), "magic", magics::find(n)?.summary.to_owned())));
        return Some((line.len() - name.len(), words.collect()));
    };
    let magic = magics::find(name)?;
    let start = line.rfind(char::is_whitespace).map_or(0, |i| i + 1);
    let word = &line[start..];
    let before: Vec<&str> = args[..args.len() - word.len()].split_whitespace().collect();
    let plain = |words: Vec<String>| words.into_iter().map(|w| (w, "argument", String::new())).collect::<Vec<Word>>();
    if word.starts_with('-') {
        // As its forms show them.
        let forms = magic.usage.split(|c: char| c.is_whitespace() || "[]|".contains(c)).filter(|w| w.starts_with('-'));
        return Some((start, plain(forms.map(str::to_owned).collect())));
    }
    match (magic.takes, &before[..]) {
        (Takes::Verbs(_), [verb, ..]) => match *verb {
            "save" => {
                Some((start, scope.vars.iter().map(|v| (v.name.clone(), "variable", short(&v.type_name))).collect()))
            }
            _ => files(line, start, Some("safetensors")),
        },
        (Takes::Rest, _) if magic.name == "tpu" && rust(line) == Some(start) => {
            let chosen = before.iter().any(|w| tpus::is_one(w) && *w != "compare");
            let first = !chosen || before.first() == Some(&"compare");
            let words = plain(tpus::words().map(str::to_owned).collect());
            Some((start, words)).filter(|(_, words)| first && words.iter().any(|(w, ..)| w.starts_with(word)))
        }
        (Takes::Rest, _) => None,
        (Takes::One("platform"), []) => Some((start, plain(vec!["cpu".into(), "tpu".into(), "cuda".into()]))),
        _ => {
            let words = magics::candidates(line)?;
            Some((start, plain(words.into_iter().map(str::to_owned).collect())))
        }
    }
}

fn commands(line: &str, command: &str) -> (usize, Vec<Word>) {
    let Some((name, args)) = command.split_once(char::is_whitespace) else {
        let word = |(form, what): &(&str, &str)| {
            let name = form.trim_start_matches(':').split(' ').next().unwrap_or_default();
            (name.to_owned(), "magic", (*what).to_owned())
        };
        return (1, magics::COMMANDS.iter().map(word).collect());
    };
    match name {
        "load" => files(line, line.len() - args.trim_start().len(), None).unwrap_or_default(),
        "dep" => dependencies(line, args),
        _ => (line.len(), Vec::new()),
    }
}

/// Names of crates that are on this machine, or versions of one behind its quote.
fn dependencies(line: &str, args: &str) -> (usize, Vec<Word>) {
    let cached = cached();
    if let Some((name, written)) = args.split_once('=') {
        let quote = written.rfind('"').filter(|_| written.matches('"').count() % 2 == 1);
        let is_version = quote.is_some_and(|q| {
            let before = written[..q].trim_end().trim_end_matches('=').trim_end();
            before.is_empty() || before.ends_with("version")
        });
        let versions = cached.get(name.trim()).filter(|_| is_version);
        let words = versions.into_iter().flatten().rev().map(|v| (v.clone(), "version", String::new())).collect();
        return (line.len() - written.len() + quote.map_or(written.len(), |q| q + 1), words);
    }
    let start = line.len() - args.trim_start().len();
    let newest = |versions: &Vec<String>| versions.last().cloned().unwrap_or_default();
    (start, cached.iter().map(|(name, versions)| (name.clone(), "crate", newest(versions))).collect())
}

/// Crates that cargo has fetched, with their versions, the oldest first.
fn cached() -> BTreeMap<String, Vec<String>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cargo"))).unwrap_or_default();
    let list =
        |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect::<Vec<_>>();
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for registry in ["registry/cache", "registry/src"].iter().flat_map(|d| list(&home.join(d))) {
        for path in list(&registry) {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let file = file.trim_end_matches(".crate");
            let version =
                file.match_indices('-').find(|(i, _)| file[i + 1..].starts_with(|c: char| c.is_ascii_digit()));
            if let Some((at, _)) = version {
                let versions = out.entry(file[..at].to_owned()).or_default();
                if !versions.iter().any(|v| *v == file[at + 1..]) {
                    versions.push(file[at + 1..].to_owned());
                }
            }
        }
    }
    let parts = |v: &String| v.split(['.', '-', '+']).map(|p| p.parse::<u64>().unwrap_or(0)).collect::<Vec<_>>();
    out.values_mut().for_each(|versions| versions.sort_by_key(parts));
    out
}

/// Files that the path at the end of the line may be, of one kind alone where that is given, without its ending.
pub fn files(line: &str, start: usize, ending: Option<&str>) -> Option<(usize, Vec<Word>)> {
    let written = line.get(start..)?;
    let at = written.rfind('/').map_or(0, |i| i + 1);
    let folder = if at == 0 { Path::new(".") } else { Path::new(&written[..at]) };
    let one = |e: std::fs::DirEntry| {
        let name = e.file_name().into_string().ok()?;
        let is_folder = e.path().is_dir();
        match ending {
            _ if name.starts_with('.') => None,
            _ if is_folder => Some((format!("{name}/"), "folder", String::new())),
            Some(ending) => Some((name.strip_suffix(&format!(".{ending}"))?.to_owned(), "file", String::new())),
            None => Some((name, "file", String::new())),
        }
    };
    let mut words: Vec<Word> = std::fs::read_dir(folder).ok()?.flatten().filter_map(one).collect();
    words.sort();
    Some((start + at, words))
}
