//! What a line of magic, or a command such as `:dep`, may go on with.
use super::crates;
use super::scope::InScope;
use crate::eval::parse::segments::asked;
use crate::eval::text::types::short;
use crate::magics::{self, Takes, tpu as tpus};
use std::path::Path;

/// A word, what it is, and more about it.
pub type Word = (String, &'static str, String);

/// Where Rust begins in a line of magic.
pub fn rust(line: &str) -> Option<usize> {
    if let Some(at) = asked(line) {
        return Some(at.start);
    }
    // One that is being typed.
    if line.starts_with("help") {
        return Some(0);
    }
    let (name, args) = line.trim_start_matches(['%', ':']).split_once(char::is_whitespace)?;
    if line.starts_with(':') {
        let form = magics::COMMANDS.iter().find(|(form, _)| form[1..].split(' ').next() == Some(name));
        let is_rust =
            name == "t" || form.is_some_and(|(form, _)| form.ends_with("EXPRESSION") || form.ends_with("NAME"));
        return is_rust.then_some(line.len() - args.len());
    }
    let is_rust = |m: &&magics::Magic| {
        matches!(m.takes, Takes::Rest) && ["EXPRESSION", "CODE"].iter().any(|w| m.usage.contains(w))
    };
    let magic = magics::find(name).filter(|m| is_rust(m) || matches!(m.takes, Takes::Magic))?;
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

/// Whether a line may go on with a name of Rust's as well as with one of the magics'.
pub fn asks(line: &str) -> bool {
    let name = line.trim_start_matches('%').split_once(char::is_whitespace).map(|(name, _)| name);
    name.and_then(magics::find).is_some_and(|m| matches!(m.takes, Takes::Magic))
}

/// Where the word at the end of the line begins, and what it may be; `None` where it is Rust, or anything.
pub fn candidates(scope: &InScope, line: &str) -> Option<(usize, Vec<Word>)> {
    if let Some(command) = line.strip_prefix(':') {
        return rust(line).is_none().then(|| commands(line, command));
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
        (Takes::Rest, _) if rust(line).is_some() => None,
        (Takes::Rest, _) if magic.usage.contains("FILE") => files(line, start, None),
        (Takes::Rest, _) => {
            // What its forms have behind the name.
            let first = |form: &str| form.split_whitespace().skip(1).find(|w| !w.starts_with('[')).map(str::to_owned);
            let words = magic.usage.lines().filter_map(first).filter(|w| w.starts_with(|c: char| c.is_alphanumeric()));
            Some((start, if before.is_empty() { plain(words.collect()) } else { Vec::new() }))
        }
        (Takes::Count(what), []) => Some((start, plain(vec![format!("{what}="), "off".to_owned()]))),
        (Takes::Some("platform"), []) => Some((start, plain(vec!["cpu".into(), "tpu".into(), "cuda".into()]))),
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
        "opt" if !args.contains(char::is_whitespace) => {
            let levels = ["0", "1", "2", "3"].map(|level| (level.to_owned(), "argument", String::new()));
            (line.len() - args.len(), levels.to_vec())
        }
        _ => (line.len(), Vec::new()),
    }
}

/// What a dependency's table may say.
const KEYS: &[&str] = &["branch", "default-features", "features", "git", "package", "path", "rev", "tag", "version"];

/// Whether what follows is a list of a crate's features.
fn lists_features(before: &str) -> bool {
    before.trim_end().strip_suffix('=').is_some_and(|key| key.trim_end().ends_with("features"))
}

/// Names of crates that are on this machine, folders, and of a table its keys, or behind a quote a version, a folder or a feature.
fn dependencies(line: &str, args: &str) -> (usize, Vec<Word>) {
    let cached = crates::cached();
    let folders = |start: usize| {
        let (start, mut found) = files(line, start, None).unwrap_or_default();
        found.retain(|(_, kind, _)| *kind == "folder");
        (start, found)
    };
    let start = line.len() - args.trim_start().len();
    if args.trim_start().starts_with(['.', '/']) {
        return folders(start);
    }
    let Some((name, written)) = args.split_once('=') else {
        // The shortest first, which others are named after.
        let mut names: Vec<_> = cached.into_iter().collect();
        names.sort_by_key(|(name, _)| name.len());
        let newest = |versions: Vec<String>| versions.last().cloned().unwrap_or_default();
        return (start, names.into_iter().map(|(name, versions)| (name, "crate", newest(versions))).collect());
    };
    let Some(quote) = written.rfind('"').filter(|_| written.matches('"').count() % 2 == 1) else {
        let word = line.rfind(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_')).map_or(0, |i| i + 1);
        let is_key = line[..word].trim_end().ends_with(['{', ',']) && written.trim_start().starts_with('{');
        let keys = KEYS.iter().filter(|_| is_key).map(|k| ((*k).to_owned(), "key", String::new()));
        return (word, keys.collect());
    };
    let at = line.len() - written.len() + quote + 1;
    let key = written[..quote].trim_end().trim_end_matches('=').trim_end();
    if key.ends_with("path") {
        return folders(at);
    }
    if key.ends_with(['[', ',']) && key.rfind('[').is_some_and(|open| lists_features(&key[..open])) {
        let renamed = written.split_once("package").and_then(|(_, rest)| rest.split('"').nth(1));
        let there: Vec<&str> = written[..quote].split('"').skip(1).step_by(2).collect();
        let mut names = crates::features(renamed.unwrap_or(name.trim()));
        names.retain(|(feature, _)| !there.contains(&&**feature));
        return (at, names.into_iter().map(|(feature, what)| (feature, "feature", what)).collect());
    }
    let versions = cached.get(name.trim()).filter(|_| key.is_empty() || key.ends_with("version"));
    (at, versions.into_iter().flatten().rev().map(|v| (v.clone(), "version", String::new())).collect())
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
