//! `xlazy lessons`: the notebooks that come along, written into a folder.
use super::report::{fail, say};
use clap::{Arg, ArgMatches, Command, value_parser};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Every file of notebooks/, with what it is read from.
const LESSONS: &[(&str, &[u8])] = &[
    ("01-first-steps.ipynb", include_bytes!("../../../notebooks/01-first-steps.ipynb")),
    ("02-digits.ipynb", include_bytes!("../../../notebooks/02-digits.ipynb")),
    ("03-why-did-it-compile-again.ipynb", include_bytes!("../../../notebooks/03-why-did-it-compile-again.ipynb")),
    ("04-compile-once.ipynb", include_bytes!("../../../notebooks/04-compile-once.ipynb")),
    ("05-a-tpu-without-a-tpu.ipynb", include_bytes!("../../../notebooks/05-a-tpu-without-a-tpu.ipynb")),
    ("06-one-program-many-devices.ipynb", include_bytes!("../../../notebooks/06-one-program-many-devices.ipynb")),
    ("07-where-the-time-goes.ipynb", include_bytes!("../../../notebooks/07-where-the-time-goes.ipynb")),
    ("08-images.ipynb", include_bytes!("../../../notebooks/08-images.ipynb")),
    ("09-text.ipynb", include_bytes!("../../../notebooks/09-text.ipynb")),
    ("10-recommend.ipynb", include_bytes!("../../../notebooks/10-recommend.ipynb")),
    ("11-translate.ipynb", include_bytes!("../../../notebooks/11-translate.ipynb")),
    ("data/README.md", include_bytes!("../../../notebooks/data/README.md")),
    ("data/digits.csv.gz", include_bytes!("../../../notebooks/data/digits.csv.gz")),
];

pub fn command() -> Command {
    let folder = Arg::new("folder").value_name("DIR").required(true).value_parser(value_parser!(PathBuf));
    Command::new("lessons")
        .about("Write the lessons, which are notebooks, into a folder")
        .arg(folder.help("Where to; files that are there already stay as they are"))
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    let folder = matches.get_one::<PathBuf>("folder").expect("it is required");
    for (name, bytes) in LESSONS {
        let file = folder.join(name);
        match write(&file, bytes) {
            Ok(()) => say(&file.display().to_string()),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                say(&format!("{} (yours, left as it is)", file.display()))
            }
            Err(e) => return fail(&format!("{} could not be written: {e}", file.display())),
        }
    }
    say(&format!("jupyter lab {}   (choose the kernel \"xlazy\")", folder.join(LESSONS[0].0).display()));
    ExitCode::SUCCESS
}

fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::File::create_new(file)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lesson_comes_along() {
        let notebooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../notebooks");
        let mut there = Vec::new();
        for (folder, prefix) in [(notebooks.clone(), ""), (notebooks.join("data"), "data/")] {
            let files = fs::read_dir(folder).unwrap().map(|e| e.unwrap()).filter(|e| e.path().is_file());
            there.extend(files.map(|e| format!("{prefix}{}", e.file_name().to_str().unwrap())));
        }
        there.sort();
        let mut known: Vec<&str> = LESSONS.iter().map(|(name, _)| *name).collect();
        known.sort();
        assert_eq!(known, there);
    }
}
