//! The guide in `docs/`: every page is in its summary, its Rust runs as cells, and what is generated is what it was generated from.
mod eval_support;

use eval_support::{engine, plain, run};
use std::path::{Path, PathBuf};
use xlazy_kernel::engine::{Engine, Event, Reply, Request};
use xlazy_kernel::magics::TABLE;
use xlazy_mime::{Bundle, Content};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn pages() -> Vec<String> {
    let summary = std::fs::read_to_string(docs().join("SUMMARY.md")).expect("a summary");
    let page = |line: &str| Some(line.strip_prefix("- [")?.split_once("](")?.1.strip_suffix(')')?.to_owned());
    summary.lines().filter_map(page).collect()
}

#[test]
fn every_page_is_in_the_summary() {
    let entries = std::fs::read_dir(docs()).expect("the folder");
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let mut there: Vec<String> = names.filter(|n| n.ends_with(".md") && n != "SUMMARY.md").collect();
    let mut listed = pages();
    there.sort();
    listed.sort();
    assert_eq!(there, listed);
}

#[test]
fn its_rust_runs() {
    let engine = engine();
    let mut cells = 0;
    for page in pages() {
        let text = std::fs::read_to_string(docs().join(&page)).expect("a page");
        for code in text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            cells += 1;
            if let Reply::Error(failure) = run(&engine, cells, code).1 {
                panic!("{page}\n{code}\n{}", plain(&failure));
            }
        }
    }
    assert!(cells > 10, "{cells}");
}

/// What stands behind a cell of the page about displays, as text or as a picture, is what the cell shows. With XLAZY_BLESS=1 it is
/// written.
#[test]
fn its_pictures_are_what_the_cells_show() {
    let engine = engine();
    let page = docs().join("display.md");
    let text = std::fs::read_to_string(&page).expect("a page");
    let mut parts = text.split("```rust\n");
    let (mut written, mut pictures) = (parts.next().expect("a beginning").to_owned(), 0);
    for (cell, part) in (1..).zip(parts) {
        let (code, rest) = part.split_once("```\n").expect("a cell has an end");
        let mut result = None;
        let request = Request { code: code.into(), cell, ..Request::default() };
        engine.execute(&request, &mut |event| {
            if let Event::Result(bundle) = event {
                result = Some(bundle);
            }
        });
        written += &format!("```rust\n{code}```\n");
        match rest.strip_prefix("```text\n").and_then(|r| r.split_once("```\n")) {
            Some((_, rest)) => {
                written += &format!("```text\n{}\n```\n{rest}", result.expect("it shows something").plain())
            }
            None => {
                written += rest;
                let Some(picture) = rest.strip_prefix("\n![").and_then(|r| r.split_once("](")?.1.split_once(')'))
                else {
                    continue;
                };
                pictures += 1;
                check_picture(&docs().join(picture.0), &result.expect("it shows something"));
            }
        }
    }
    if std::env::var_os("XLAZY_BLESS").is_some() {
        std::fs::write(&page, &written).expect("the page is written");
    }
    assert_eq!(std::fs::read_to_string(page).expect("the page"), written);
    assert!(pictures > 2, "{pictures}");
}

fn check_picture(path: &Path, shown: &Bundle) {
    let of = |mime: &str| shown.entries.iter().find(|(m, _)| m == mime).map(|(_, content)| content);
    let bytes = match (of("image/svg+xml"), of("image/png")) {
        (Some(Content::Text(svg)), _) => svg.clone().into_bytes(),
        (_, Some(Content::Bytes(png))) => png.clone(),
        _ => panic!("{} is no picture: {}", path.display(), shown.plain()),
    };
    if std::env::var_os("XLAZY_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, &bytes).expect("the picture is written");
    }
    assert!(std::fs::read(path).expect("the picture") == bytes, "{} is another one now: XLAZY_BLESS=1", path.display());
}

/// With XLAZY_BLESS=1 the page is written.
#[test]
fn its_page_of_magics_is_their_table() {
    let mut text = String::from("# Every magic\n\nWritten from the table that `%help` reads.\n");
    for magic in TABLE {
        let usage: Vec<String> = magic.usage.lines().map(|form| format!("    {form}")).collect();
        text += &format!("\n## {}\n\n{}\n\n{}\n", magic.summary, usage.join("\n"), magic.help.trim());
    }
    let page = docs().join("magics.md");
    if std::env::var_os("XLAZY_BLESS").is_some() {
        std::fs::write(&page, &text).expect("the page is written");
    }
    assert_eq!(std::fs::read_to_string(page).expect("the page"), text);
}

/// Files of the runtime's source.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path());
    let mut all: Vec<PathBuf> = entries.flat_map(|p| if p.is_dir() { sources(&p) } else { vec![p] }).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "rs"));
    all.sort();
    all
}

/// What a doc comment says an expression is: "`tensor([4.0]).sqrt()` is `[2.]`.".
fn example(line: &str) -> Option<(&str, &str, &str)> {
    let indent = &line[..line.find("/// `")?];
    let (code, value) = line.trim_start().strip_prefix("/// `")?.strip_suffix("`.")?.split_once("` is `")?;
    (!code.contains('`') && !value.contains('`')).then_some((indent, code, value))
}

/// What is shown of a tuple with one value, on one line; of a tensor with torch's usual dtypes, its numbers.
fn value_of(shown: &str) -> String {
    let line = shown.split_whitespace().collect::<Vec<_>>().join(" ").replace("[ ", "[");
    let value = line.strip_prefix('(').and_then(|l| l.strip_suffix(",)")).unwrap_or(&line);
    let inside = value.strip_prefix("tensor(").and_then(|v| v.strip_suffix(')')).unwrap_or(value);
    let mut depth = 0;
    let several = inside.chars().any(|c| {
        depth += i32::from("([".contains(c)) - i32::from(")]".contains(c));
        depth < 0 || depth == 0 && c == ','
    });
    if several { value } else { inside }.to_owned()
}

/// Each is shown where the name is asked for, so it is run here: all of them record first, and one program computes them. With
/// XLAZY_BLESS=1 what they are is written.
#[test]
fn what_docs_say_that_an_expression_is_it_is() {
    let files = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/src"));
    let texts: Vec<(PathBuf, String)> =
        files.into_iter().map(|f| (f.clone(), std::fs::read_to_string(f).expect("a source"))).collect();
    let found: Vec<(&str, &str)> =
        texts.iter().flat_map(|(_, t)| t.lines()).filter_map(example).map(|e| (e.1, e.2)).collect();
    let made: String = found.iter().enumerate().map(|(i, (code, _))| format!("let e{i} = {code};\n")).collect();
    let shown: String = (0..found.len()).map(|i| format!("display(&(e{i},));\n")).collect();
    let mut values = Vec::new();
    let request = Request { code: format!("{{ {made} sync();\n{shown} }}"), cell: 1, ..Request::default() };
    let reply = engine().execute(&request, &mut |event| {
        if let Event::Display { bundle, .. } = event {
            values.push(value_of(bundle.plain()));
        }
    });
    if let Reply::Error(failure) = reply {
        panic!("{}", plain(&failure));
    }
    let mut values = values.into_iter();
    let mut other = Vec::new();
    for (file, text) in &texts {
        let mut written = String::new();
        for line in text.lines() {
            let Some((indent, code, said)) = example(line) else {
                written += &format!("{line}\n");
                continue;
            };
            let value = values.next().expect("each is shown");
            if value != said {
                other.push(format!("{}: `{code}` is `{value}`, not `{said}`", file.display()));
            }
            written += &format!("{indent}/// `{code}` is `{value}`.\n");
        }
        if std::env::var_os("XLAZY_BLESS").is_some() && written != *text {
            std::fs::write(file, &written).expect("the source is written");
        }
    }
    assert!(other.is_empty(), "{}", other.join("\n"));
    assert!(found.len() > 300, "{}", found.len());
}
