//! The same cells run by xlazy and by evcxr: our own of plain Rust, and those of evcxr's tests. `docs/evcxr.md` says where the two
//! differ. Run by `tests/long.sh evcxr`, which builds evcxr first; with XLAZY_BLESS=1 the page is written.
mod eval_support;

use eval_support::{cells_dir, engine, plain};
use proc_macro2::{TokenStream, TokenTree};
use std::path::{Path, PathBuf};
use xlazy_kernel::engine::{Engine, Event, Reply, Request};
use xlazy_kernel::evcxr::Evcxr;

/// Files of `tests/cells` that are about Rust.
const FILES: &[&str] = &["values", "items", "impls", "closures", "moves", "redefinitions"];

/// Cells that mention one of these are not plain Rust.
const OURS: &[&str] = &["Tensor", "tensor", "nn::", "xlazy", "display", "sync(", "sleep_ms", "\n%", "$TMP"];

struct Case {
    name: String,
    cells: Vec<String>,
}

fn our_cases() -> Vec<Case> {
    let case = |name: &&str| {
        let text = std::fs::read_to_string(cells_dir().join(format!("{name}.md"))).expect("a literate file");
        let blocks = text.split("```rust\n").skip(1).filter_map(|rest| Some(rest.split_once("```\n")?.0.to_owned()));
        let is_plain =
            |code: &String| !OURS.iter().any(|word| code.contains(word)) && !code.starts_with(['%', ':', '!', '?']);
        Case { name: format!("cells/{name}"), cells: blocks.filter(is_plain).collect() }
    };
    FILES.iter().map(case).collect()
}

/// The cells in evcxr's tests: what `eval!`, `eval_and_unwrap` and `execute` are given.
fn their_cases(source: &Path) -> Vec<Case> {
    let file = syn::parse_file(&std::fs::read_to_string(source).expect("evcxr's tests")).expect("Rust");
    let test = |item: syn::Item| match item {
        syn::Item::Fn(f) if f.attrs.iter().any(|a| a.path().is_ident("test")) => {
            let mut cells = Vec::new();
            let block = &f.block;
            collect(quote_of(block), &mut cells);
            Some(Case { name: format!("evcxr/{}", f.sig.ident), cells })
        }
        _ => None,
    };
    file.items.into_iter().filter_map(test).filter(|case| !case.cells.is_empty()).collect()
}

fn quote_of(block: &syn::Block) -> TokenStream {
    use quote::ToTokens;
    block.to_token_stream()
}

fn collect(tokens: TokenStream, cells: &mut Vec<String>) {
    let all: Vec<TokenTree> = tokens.into_iter().collect();
    let word = |i: usize| all.get(i).map(|t| t.to_string()).unwrap_or_default();
    for (i, token) in all.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        let back = |n: usize| i.checked_sub(n).map(word).unwrap_or_default();
        let arguments = group.stream();
        let text = |stream: TokenStream| syn::parse2::<syn::LitStr>(stream).ok().map(|s| s.value());
        let behind_comma = || -> TokenStream {
            let mut rest = arguments.clone().into_iter().skip_while(|t| t.to_string() != ",");
            rest.next();
            rest.collect()
        };
        match (&*back(2), &*back(1)) {
            ("eval", "!") => cells.push(behind_comma().to_string()),
            (_, "eval_and_unwrap") => cells.extend(text(behind_comma())),
            (".", "execute") => cells.extend(text(arguments)),
            _ => collect(arguments, cells),
        }
    }
}

/// What a cell did, as far as both engines should agree.
#[derive(Debug, PartialEq)]
struct Did {
    failed: bool,
    shown: String,
    said: String,
}

fn run(engine: &dyn Engine, cell: u64, code: &str) -> (Did, String) {
    let request = Request { code: code.into(), cell, store_history: true, ..Request::default() };
    let mut did = Did { failed: false, shown: String::new(), said: String::new() };
    let reply = engine.execute(&request, &mut |event| match event {
        Event::Result(bundle) => did.shown = bundle.plain().trim().to_owned(),
        Event::Stream { stderr: false, text } => did.said += &text,
        _ => {}
    });
    let error = match &reply {
        Reply::Ok => String::new(),
        Reply::Error(failure) => plain(failure),
        Reply::Interrupted => "interrupted".to_owned(),
    };
    did.failed = reply != Reply::Ok;
    (did, error)
}

/// Why the two differ, by what stands in the cell and what each says; the first that fits.
type Reason = (fn(&Seen) -> bool, &'static str);

struct Seen<'a> {
    code: &'a str,
    ours: &'a Did,
    theirs: &'a Did,
    their_error: &'a str,
    /// An earlier cell of the case ended otherwise with the other engine.
    after: bool,
}

/// Codes of errors about items that do not fit one another any more.
const MISFITS: &[&str] = &["E0004", "E0046", "E0061", "E0107", "E0364", "E0407", "E0592", "E0599"];

const REASONS: &[Reason] = &[
    (|s| s.code.contains("evcxr_"), "a function of evcxr's own"),
    (
        |s| s.code.contains('?') && s.ours.failed && !s.theirs.failed,
        "an error behind `?` is the cell's error; evcxr prints it, and the cell has not failed",
    ),
    (
        |s| {
            ["a reference", "outlive the current function", "persisted", "automatically determine type"]
                .iter()
                .any(|words| s.their_error.contains(words))
        },
        "evcxr keeps no variable that borrows, and none whose type it cannot write, such as a closure",
    ),
    (|s| s.their_error.contains("expected `;`"), "a `let` at the end needs no semicolon"),
    (
        |s| {
            s.their_error.contains("isn't copy")
                || s.their_error.contains("lost")
                || s.their_error.contains("terminated")
        },
        "a panic costs evcxr its process and the variables in it; xlazy keeps them",
    ),
    (
        |s| !s.ours.failed && MISFITS.iter().any(|code| s.their_error.contains(code)),
        "evcxr takes no item that others do not fit any more; xlazy leaves those behind until their cells run again",
    ),
    (
        |s| s.theirs.shown == "()" && !s.ours.said.ends_with('\n') && s.theirs.said != s.ours.said,
        "evcxr shows `()`, and what is printed when its line is whole",
    ),
    (|s| s.theirs.shown == "()" && s.ours.shown.is_empty(), "evcxr shows `()`"),
    (|s| s.their_error.contains("E0282"), "`Ok` and `Err` at the end of a cell need no type"),
    (|s| s.after, "follows from a difference above"),
    (
        |s| s.their_error.contains("E0425"),
        "in evcxr a variable is gone once a cell has moved it; xlazy copies what is cheap to copy",
    ),
    (|s| !s.ours.failed && s.theirs.failed, "xlazy takes more"),
    (|s| s.ours.failed && !s.theirs.failed, "xlazy refuses what evcxr takes"),
    (|s| s.ours.shown != s.theirs.shown, "shown otherwise"),
    (|s| s.ours.said != s.theirs.said, "printed otherwise"),
];

fn cut(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let short: String = line.chars().take(70).collect();
    let dots = if short.len() < line.len() { "…" } else { "" };
    format!("`{}{dots}`", short.replace('`', "'"))
}

fn outcome(did: &Did, error: &str) -> String {
    match (did.failed, &*did.shown, &*did.said) {
        // Which of a cell's variables it names, and so for which reason, is the order of a hash map.
        (true, ..) if error.trim_start().starts_with("The variable ") => "refused: a variable cannot be kept".into(),
        (true, ..) => format!("refused: {}", cut(error.lines().find(|l| !l.trim().is_empty()).unwrap_or("…"))),
        (_, "", "") => "nothing shown".into(),
        (_, "", said) => format!("prints {}", cut(said)),
        (_, shown, _) => cut(shown),
    }
}

fn evcxrs_tests() -> PathBuf {
    std::env::var_os("XLAZY_EVCXR_TESTS").expect("XLAZY_EVCXR_TESTS names evcxr's integration_tests.rs").into()
}

#[test]
#[ignore = "evcxr has to be built: tests/long.sh evcxr"]
fn the_two_differ_where_the_page_says() {
    let (mut rows, mut same, mut cells, mut commands) = (Vec::new(), 0, 0, 0);
    // Their tests, and those of which each cell does here what it does there.
    let (mut tests, mut passed) = (0, 0);
    // It takes half a minute to start.
    let theirs = Evcxr::start().unwrap_or_else(|f| panic!("{}", f.message));
    let (did, error) = run(&theirs, 0, "let text = String::from(\"a\");");
    assert!(
        !did.failed,
        "evcxr knows types only where the standard library's source is: rustup component add rust-src\n{error}"
    );
    for case in our_cases().into_iter().chain(their_cases(&evcxrs_tests())) {
        let ours = engine();
        run(&theirs, 0, ":clear");
        let (mut after, mut as_there) = (false, true);
        // How evcxr shows things, and what it links, is set by commands of its own.
        let (settings, plain): (Vec<&String>, Vec<&String>) =
            case.cells.iter().partition(|code| code.starts_with(':') && !code.starts_with(":dep"));
        commands += settings.len();
        for (number, code) in (1..).zip(plain) {
            let ((a, our_error), (b, their_error)) = (run(&ours, number, code), run(&theirs, number, code));
            cells += 1;
            if a == b || a.failed && b.failed {
                same += 1;
                continue;
            }
            // Evcxr's `()` is the empty answer.
            as_there &= a.failed == b.failed && (a.shown == b.shown || b.shown == "()" && a.shown.is_empty());
            let seen = Seen { code, ours: &a, theirs: &b, their_error: &their_error, after };
            let why = REASONS.iter().find(|(fits, _)| fits(&seen)).map(|(_, why)| *why).expect("a reason");
            let place = format!("{}, {number}", case.name);
            eprintln!("{place}: {code}\n  {a:?} {our_error}\n  {b:?} {their_error}\n  {why}");
            rows.push(format!(
                "| {place} | {} | {} | {} | {why} |\n",
                cut(code),
                outcome(&a, &our_error),
                outcome(&b, &their_error)
            ));
            after |= a.failed != b.failed;
        }
        ours.shutdown();
        if case.name.starts_with("evcxr/") {
            tests += 1;
            passed += usize::from(as_there);
        }
    }
    theirs.shutdown();
    let text = format!(
        "# Beside evcxr\n\nThe same cells run by xlazy and by [evcxr](https://github.com/evcxr/evcxr), the Rust kernel that came \
         before: our own of plain Rust (`tests/cells`), and those of evcxr's tests. Written by `tests/long.sh evcxr`. Of {cells} \
         cells {same} do the same; where both refuse a cell, their words are their own. {commands} more are commands by which evcxr \
         is set, and are left out. Of evcxr's {tests} tests xlazy does in {passed} what they say.\n\n`--engine evcxr` has evcxr run the cells \
         of `kernel`, `repl`, `run` and `eval`: `cargo build --release --manifest-path engines/evcxr/Cargo.toml` builds it, and \
         `XLAZY_EVCXR` names it.\n\n| where | cell | xlazy | evcxr | why |\n|---|---|---|---|---|\n{}",
        rows.concat()
    );
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/evcxr.md");
    if std::env::var_os("XLAZY_BLESS").is_some() {
        std::fs::write(&page, &text).expect("the page is written");
    }
    assert_eq!(std::fs::read_to_string(page).expect("XLAZY_BLESS=1 writes it"), text);
}
