//! Compiled programs on the disk, as a user meets them: kernels that start where others have been.
mod folder;

use folder::Folder;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

impl Folder {
    fn files(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> =
            std::fs::read_dir(&self.0).into_iter().flatten().flatten().map(|e| e.path()).collect();
        all.sort();
        all
    }
}

/// A step that donates, reads, and has numbers among its parameters.
const CELLS: [&str; 3] = [
    "let w = (Tensor::arange(0, 6, 1).to(F32) * 0.5).reshape([2, 3]); sync();",
    "w.mul_(1.5); w.add_(0.25); sync(); println!(\"{:?}\", w.to_vec::<f32>()); println!(\"{}\", w.sum().item());",
    "%hlo",
];

fn command(programs: &Path) -> Command {
    running(&CELLS, programs)
}

fn running(cells: &[&str], programs: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xlazy"));
    command.args(["eval", "--json"]).args(cells);
    command.env_remove("XLAZY_HOME").env("XLAZY_PROGRAM_CACHE", programs).env("XLAZY_PROGRAM_CACHE_MIN_MS", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What was printed, and how many programs were compiled, and came from the disk.
fn told(done: Output) -> (String, u64, u64) {
    let out = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{out}\n{}", String::from_utf8_lossy(&done.stderr));
    let (mut text, mut compiled, mut disk) = (String::new(), 0, 0);
    for line in out.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        match event["event"].as_str().unwrap() {
            "stream" => text += event["text"].as_str().unwrap(),
            "insight" if event["kind"] == "cell" => {
                compiled += event["data"]["compiled"].as_u64().unwrap();
                disk += event["data"]["disk_hits"].as_u64().unwrap();
            }
            "display" => assert!(event["data"]["text/plain"].as_str().unwrap().contains("ENTRY"), "{event}"),
            _ => {}
        }
    }
    (text, compiled, disk)
}

#[test]
fn a_second_kernel_finds_what_the_first_compiled() {
    let folder = Folder::new("found");
    let run = || told(command(&folder.0).output().unwrap());
    let (text, compiled, disk) = run();
    assert_eq!((compiled, disk), (3, 0), "{text}");
    assert!(text.starts_with("[0.25, 1.0, 1.75, 2.5, 3.25, 4.0]\n12.75"), "{text}");
    let kept = folder.files();
    assert_eq!(kept.len(), 3, "all were written before the kernel ended");
    assert_eq!(run(), (text.clone(), 0, 3));
    // What is cut short or changed is compiled again, and replaced.
    let whole: Vec<Vec<u8>> = kept.iter().map(|f| std::fs::read(f).unwrap()).collect();
    std::fs::write(&kept[0], &whole[0][..whole[0].len() / 2]).unwrap();
    let mut changed = whole[1].clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    std::fs::write(&kept[1], &changed).unwrap();
    assert_eq!(run(), (text.clone(), 2, 1));
    assert_eq!(folder.files(), kept);
    assert_eq!(run(), (text.clone(), 0, 3));
    // Two kernels at once do not mind each other.
    kept.iter().for_each(|f| std::fs::remove_file(f).unwrap());
    let both = [command(&folder.0).spawn().unwrap(), command(&folder.0).spawn().unwrap()];
    for kernel in both {
        let (said, compiled, disk) = told(kernel.wait_with_output().unwrap());
        assert_eq!((said, compiled + disk), (text.clone(), 3));
    }
    assert_eq!(folder.files(), kept);
}

#[test]
fn a_disk_that_cannot_be_written_costs_one_note() {
    let folder = Folder::new("refused");
    std::fs::write(&folder.0, "a file where a folder should be").unwrap();
    let (text, compiled, disk) = told(command(&folder.0).output().unwrap());
    assert_eq!((compiled, disk), (3, 0));
    assert_eq!(text.matches("note: compiled programs are not kept in").count(), 1, "{text}");
    std::fs::remove_file(&folder.0).unwrap();
}

#[test]
fn off_and_programs_that_compile_quickly_leave_nothing() {
    let folder = Folder::new("off");
    let mut quick = command(&folder.0);
    let (_, compiled, disk) = told(quick.env("XLAZY_PROGRAM_CACHE_MIN_MS", "600000").output().unwrap());
    assert_eq!((compiled, disk, folder.files().len()), (3, 0, 0));
    let mut off = command(Path::new("off"));
    let (_, compiled, disk) = told(off.env("XLAZY_CACHE", &folder.0).output().unwrap());
    assert_eq!((compiled, disk), (3, 0));
    assert!(!folder.0.join("programs").exists());
}

/// The cache in memory holds one program, so each is wanted again while its file may still be written.
#[test]
fn a_program_that_is_being_written_is_waited_for() {
    let folder = Folder::new("written");
    let cell = "insight::set_cache_capacity(1);
        for rows in 2..22 {
            for rows in [rows, 1, rows, 1] {
                let x = Tensor::ones([rows, 3]);
                println!(\"{}\", x.exp().matmul(&x.t()).sum().item());
            }
        }";
    let (text, compiled, disk) = told(running(&[cell], &folder.0).output().unwrap());
    assert_eq!(text.lines().filter(|line| line.parse::<f64>().is_ok()).count(), 80, "{text}");
    assert_eq!((compiled, disk), (21, 59), "{text}");
}
