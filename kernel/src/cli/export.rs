//! `xlazy export`: a notebook becomes a cargo project that builds and gives the same output.
use super::notebook::Notebook;
use super::report::{fail, fail_with, say};
use crate::eval::export::{Program, program};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use xlazy_mime::{regular, units, whole};

pub fn command() -> Command {
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).value_name(value).value_parser(value_parser!(PathBuf)).help(help)
    };
    Command::new("export")
        .about("Write a notebook as a cargo project with a main.rs")
        .arg(path("notebook", "NOTEBOOK", "An .ipynb file").required(true))
        .arg(path("output", "FOLDER", "The project's folder; without it, the notebook's name beside it").short('o').long("output"))
        .arg(
            path("runtime", "FOLDER", "The source of the crate `xlazy`; without it, where this xlazy was built from")
                .long("runtime"),
        )
        .arg(
            Arg::new("force")
                .long("force")
                .action(ArgAction::SetTrue)
                .help("Write over a project in the folder that `xlazy export` did not write"),
        )
        .after_help(
            "Code cells become one `main`, in their order; magics become comments, `:dep` lines dependencies. Cells tagged \
             `raises-exception` or `skip-execution` are left out.",
        )
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    let path = matches.get_one::<PathBuf>("notebook").expect("it is required");
    let text = match regular::read_to_string(path) {
        Ok(text) => text,
        Err(e) => return fail(&format!("{} could not be read: {e}", path.display())),
    };
    let cells = match Notebook::parse(&text) {
        Ok(notebook) => notebook.code_cells(),
        Err(why) => return fail(&format!("{}: {why}", path.display())),
    };
    let cells: Vec<(u64, String)> =
        (1..).zip(cells).filter(|(_, c)| !c.may_fail).map(|(number, c)| (number, c.code)).collect();
    let program = match program(&cells) {
        Ok(program) => program,
        Err(failure) => return fail_with(&failure),
    };
    let folder = matches.get_one::<PathBuf>("output").cloned().unwrap_or_else(|| path.with_extension(""));
    if !matches.get_flag("force")
        && let Some(there) = foreign(&folder)
    {
        let there = there.display();
        return fail(&format!(
            "{there} is not from `xlazy export`, so it stays: name another folder with -o, or write over it with --force"
        ));
    }
    let runtime = matches.get_one::<PathBuf>("runtime").cloned();
    let runtime = runtime.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("runtime"));
    let runtime = std::path::absolute(&runtime).unwrap_or(runtime);
    if !runtime.join("Cargo.toml").is_file() {
        eprintln!(
            "xlazy: there is no {}, so the project does not build here: xlazy came without its source; --runtime FOLDER, or the \
             project's Cargo.toml, says where that is",
            runtime.join("Cargo.toml").display()
        );
    }
    if let Err(e) = write(&folder, path, &runtime, &program) {
        return fail(&format!("{}: {e}", folder.display()));
    }
    for (cell, line) in &program.left_out {
        eprintln!("xlazy: cell {cell}: `{line}` means nothing in a program; it is a comment there");
    }
    for note in &program.notes {
        eprintln!("xlazy: {note}");
    }
    match take_along(&program.texts, path.parent().unwrap_or(Path::new("")), &folder) {
        Ok(notes) => notes.iter().for_each(|note| eprintln!("xlazy: {note}")),
        Err(e) => return fail(&e.to_string()),
    }
    say(&format!("{}: `cargo run` there gives the notebook's output", folder.display()));
    ExitCode::SUCCESS
}

/// Copies the files that the cells name into the project, where the program looks for them; what there is to say about each.
fn take_along(texts: &[(u64, String)], from: &Path, to: &Path) -> std::io::Result<Vec<String>> {
    let mut notes = Vec::new();
    for (cell, text) in texts {
        let path = Path::new(text);
        let (there, here) = (from.join(path), to.join(path));
        let below = path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        let named = there.display();
        match there.metadata() {
            Ok(found) if found.is_file() && below => {
                std::fs::create_dir_all(here.parent().unwrap_or(to))?;
                if !here.canonicalize().is_ok_and(|h| there.canonicalize().is_ok_and(|t| h == t)) {
                    std::fs::copy(&there, &here)?;
                }
                notes.push(format!("took {named} along ({})", units::bytes(found.len())));
            }
            Ok(found) if found.is_file() || found.is_dir() && text.contains('/') => {
                notes.push(format!("cell {cell} names {named}, which stays where it is: the program needs it there"));
            }
            Err(_) if is_data(path) => notes.push(format!(
                "cell {cell} names {named}, which is not there: the program needs it, if it does not make it itself"
            )),
            _ => {}
        }
    }
    Ok(notes)
}

/// Whether a text that names no file was most likely to name one.
fn is_data(path: &Path) -> bool {
    const KINDS: [&str; 19] = [
        "arrow",
        "bin",
        "bz2",
        "csv",
        "feather",
        "gz",
        "jpeg",
        "jpg",
        "json",
        "jsonl",
        "npy",
        "npz",
        "parquet",
        "png",
        "safetensors",
        "toml",
        "tsv",
        "txt",
        "zip",
    ];
    let kind = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    KINDS.contains(&kind) && path.file_stem().is_some_and(|s| !s.is_empty())
}

/// The first line of a project's manifest that another export may write over.
const OURS: &str = "# Written by `xlazy export`, which may write over it.\n";

/// What in the folder is somebody else's and would be written over.
fn foreign(folder: &Path) -> Option<PathBuf> {
    let manifest = folder.join("Cargo.toml");
    let ours = regular::read_to_string(&manifest).is_ok_and(|text| text.starts_with(OURS));
    [manifest, folder.join("src/main.rs")].into_iter().find(|file| !ours && file.exists())
}

fn write(folder: &Path, notebook: &Path, runtime: &Path, program: &Program) -> std::io::Result<()> {
    let stem = notebook.file_stem().unwrap_or_default().to_string_lossy();
    let mut name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "notebook-");
    }
    let list: String = program.dependencies.iter().map(|(name, what)| format!("{name} = {what}\n")).collect();
    let manifest = format!(
        "{OURS}[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         xlazy = {{ path = {:?} }}\n{list}",
        runtime.to_string_lossy()
    );
    std::fs::create_dir_all(folder.join("src"))?;
    whole::write(&folder.join("Cargo.toml"), manifest)?;
    whole::write(&folder.join("src/main.rs"), &program.main)?;
    // The versions that the notebook ran with.
    let lock = notebook.with_extension("lock");
    if lock.is_file() {
        std::fs::copy(lock, folder.join("Cargo.lock"))?;
    }
    Ok(())
}
