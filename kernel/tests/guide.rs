//! The guide in `docs/`: every page is in its summary, its Rust runs as cells, and what is generated is what it was generated from.
mod eval_support;

use eval_support::{engine, plain, run};
use std::path::{Path, PathBuf};
use xlazy_kernel::engine::Reply;
use xlazy_kernel::magics::TABLE;

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
