//! Programs that somebody wrote as files, run as cells, beside rustc: as items and the body of `main`, as a whole file with a
//! call of `main`, statement by statement, and split at random. `XLAZY_PROGRAMS` names a folder of more of them (`name.rs`); `XLAZY_FORMS`
//! picks some of the forms, `XLAZY_ONLY` some of the programs.
mod eval_support;
mod sizes;

use eval_support::{engine, plain};
use proc_macro2::LineColumn;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use syn::spanned::Spanned;
use xlazy_kernel::engine::{Engine, Event, Reply, Request};

/// Each is of a class that cells once refused, or ran otherwise.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "errors",
        r#"use std::error::Error;
fn parsed(text: &str) -> Result<i32, std::num::ParseIntError> { text.parse() }
fn checked(n: i32) -> Result<(), Box<dyn Error>> {
    if n > 9 { return Err("too large".into()); }
    if n < 0 { return Err(Box::new(std::fmt::Error)); }
    Ok(())
}
fn main() -> Result<(), Box<dyn Error>> {
    let n = parsed("7")?;
    if let Err(e) = checked(n + 3) { println!("{e}"); }
    match parsed("x") {
        Ok(n) => println!("{n}"),
        Err(e) if n > 7 => return Err(e.into()),
        Err(e) => println!("{e}"),
    }
    if n > 8 { return checked(n); }
    println!("{n}");
    Ok(())
}
"#,
    ),
    (
        "names",
        r#"fn area(r: i32) -> i32 { r * r }
fn max(a: i32) -> i32 { a + 1 }
fn larger(a: i32) -> i32 { max(a) }
fn main() {
    let area = area(3);
    println!("{area} {}", larger(1));
    use std::cmp::min;
    println!("{}", min(area, 4));
    let flag = area > 4;
    println!("{}", !flag);
    #[cfg(target_os = "linux")]
    { println!("linux"); }
}
"#,
    ),
];

const FORMS: [&str; 4] = ["body", "whole", "split", "random"];

/// A program in cells.
fn cells(program: &str, form: &str) -> Option<Vec<String>> {
    let file = syn::parse_file(program).ok()?;
    let at = |place: LineColumn| -> usize {
        let line: usize = program.split_inclusive('\n').take(place.line - 1).map(str::len).sum();
        line + program[line..].char_indices().nth(place.column).map_or(program.len() - line, |(i, _)| i)
    };
    let text = |node: &dyn Spanned| &program[at(node.span().start())..at(node.span().end())];
    let is_main = |i: &&syn::Item| matches!(i, syn::Item::Fn(f) if f.sig.ident == "main");
    let syn::Item::Fn(main) = file.items.iter().find(is_main)? else { return None };
    if main.sig.asyncness.is_some() || form == "whole" {
        return Some(vec![program.to_owned(), "let _ = main();".to_owned()]);
    }
    let (start, end) = (at(main.span().start()), at(main.span().end()));
    let items = format!("{}{}", &program[..start], &program[end..]);
    let braces = at(main.block.span().start()) + 1..at(main.block.span().end()) - 1;
    // In a block, items may be named above them.
    let calls_ahead = main.block.stmts.iter().skip_while(|s| matches!(s, syn::Stmt::Item(_)));
    if form != "body"
        && calls_ahead.into_iter().any(|s| matches!(s, syn::Stmt::Item(i) if !matches!(i, syn::Item::Use(_))))
    {
        return cells(&with_items_first(program, main, &at), form);
    }
    Some(match form {
        "body" => vec![items, program[braces].to_owned()],
        "random" => {
            let starts: Vec<usize> = main.block.stmts.iter().skip(1).map(|s| at(s.span().start())).collect();
            let cuts = starts.into_iter().filter(|_| fastrand::u8(0..3) == 0);
            let ends: Vec<usize> = cuts.chain([braces.end]).collect();
            let begins = [braces.start].into_iter().chain(ends.clone());
            let pieces = begins.zip(&ends).map(|(begin, end)| program[begin..*end].to_owned());
            [items].into_iter().chain(pieces).collect()
        }
        _ => {
            let mut all: Vec<String> = vec![items];
            all.extend(main.block.stmts.iter().map(|s| text(s).to_owned()));
            all
        }
    })
}

/// The program with the items of `main` as its first statements.
fn with_items_first(program: &str, main: &syn::ItemFn, at: &dyn Fn(LineColumn) -> usize) -> String {
    let text = |s: &syn::Stmt| program[at(s.span().start())..at(s.span().end())].to_owned();
    let (items, rest): (Vec<&syn::Stmt>, Vec<&syn::Stmt>) =
        main.block.stmts.iter().partition(|s| matches!(s, syn::Stmt::Item(_)));
    let all: Vec<String> = items.into_iter().chain(rest).map(text).collect();
    let braces = at(main.block.span().start()) + 1..at(main.block.span().end()) - 1;
    format!("{}\n{}\n{}", &program[..braces.start], all.join("\n"), &program[braces.end..])
}

/// What the program prints as rustc compiles it; `None` where it does not.
fn by_rustc(program: &str, name: &str) -> Option<String> {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, exe) = (dir.join(format!("beside_{name}.rs")), dir.join(format!("beside_{name}")));
    std::fs::write(&source, program).expect("a source file");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = ["--edition=2024", "--edition=2021"].iter().any(|edition| {
        let mut rustc = Command::new(&rustc);
        rustc.args([edition, "-Awarnings", "-o"]).arg(&exe).arg(&source).stderr(Stdio::null());
        rustc.status().is_ok_and(|s| s.success())
    });
    let out = built.then(|| Command::new(&exe).stdin(Stdio::null()).output().expect("it runs").stdout)?;
    let _ = (std::fs::remove_file(source), std::fs::remove_file(exe));
    String::from_utf8(out).ok()
}

/// What the cells print to their standard output; how the first of them fails that does.
fn by_cells(cells: &[String]) -> Result<String, String> {
    let engine = engine();
    let mut out = String::new();
    for (i, code) in cells.iter().enumerate() {
        let request = Request { code: code.clone(), cell: i as u64 + 1, store_history: true, ..Request::default() };
        let reply = engine.execute(&request, &mut |event| match event {
            Event::Stream { text, stderr: false, .. } => out += &text,
            Event::Input { answer, .. } => drop(answer.send(Ok(String::new()))),
            _ => {}
        });
        match reply {
            Reply::Ok => {}
            Reply::Error(failure) => return Err(format!("{}\n{}", failure.message, plain(&failure))),
            Reply::Interrupted => return Err("interrupted".into()),
        }
    }
    Ok(out)
}

/// Why the program, in cells, is not what rustc makes of it.
fn wrong(program: &str, wanted: &str, form: &str) -> Option<String> {
    let Some(cells) = cells(program, form) else { return Some("no program".into()) };
    match by_cells(&cells) {
        Ok(out) if out == wanted => None,
        Ok(out) => Some(format!("other output\n--- wanted\n{wanted}\n--- got\n{out}")),
        Err(failure) => Some(failure),
    }
}

#[test]
fn programs_do_in_cells_what_they_do_by_rustc() {
    let var = |name: &str| std::env::var(name).ok();
    let forms = var("XLAZY_FORMS").unwrap_or_else(|| FORMS.join(" "));
    let only = var("XLAZY_ONLY").unwrap_or_default();
    let mut programs: Vec<(String, String, Option<String>)> =
        PROGRAMS.iter().map(|(name, text)| (name.to_string(), text.to_string(), None)).collect();
    if let Some(folder) = var("XLAZY_PROGRAMS") {
        let files = std::fs::read_dir(folder).expect("a folder").flatten().map(|e| e.path());
        let mut files: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|e| e == "rs")).collect();
        files.sort();
        programs.clear();
        programs.extend(files.iter().map(|p| {
            let known = std::fs::read_to_string(p.with_extension("out")).ok();
            (stem(p), std::fs::read_to_string(p).expect("text"), known)
        }));
    }
    let seed = sizes::number("XLAZY_SEED").unwrap_or_else(|| fastrand::u64(..1 << 32));
    println!("XLAZY_SEED={seed}");
    fastrand::seed(seed);
    let (mut run, mut failed) = (0, 0);
    for (name, text, known) in programs.iter().filter(|(name, ..)| name.contains(&only)) {
        let Some(wanted) = known.clone().or_else(|| by_rustc(text, name)) else { panic!("{name} is no program") };
        let times = |form: &'static str| (0..if form == "random" { sizes::rounds(1) } else { 1 }).map(move |_| form);
        for form in FORMS.into_iter().filter(|f| forms.contains(f)).flat_map(times) {
            run += 1;
            if let Some(why) = wrong(text, &wanted, form) {
                failed += 1;
                println!("### {name} ({form}): {why}\n");
            }
        }
    }
    println!("{} of {run} as rustc has them", run - failed);
    assert_eq!(failed, 0, "see above");
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
