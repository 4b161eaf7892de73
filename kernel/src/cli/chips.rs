//! Which TPU chips a machine has, and which process has one open: libtpu gives a chip to one process at a time.
use std::fs;
use std::path::{Path, PathBuf};

/// A process that has a chip open.
#[derive(Debug, PartialEq)]
pub struct Holder {
    pub pid: u32,
    pub name: String,
    pub chip: PathBuf,
}

/// The chips below a folder of devices: `accel0`, or numbered groups in `vfio`.
pub fn there(dev: &Path) -> Vec<PathBuf> {
    let in_folder = |folder: PathBuf, prefix: &'static str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(move |e| {
            let name = e.file_name().to_string_lossy().into_owned();
            name.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let found = in_folder(dev.to_owned(), "accel").chain(in_folder(dev.join("vfio"), ""));
    let mut found: Vec<PathBuf> = found.map(|e| e.path()).collect();
    found.sort();
    found
}

/// Who has one of them open, of the processes whose files this user may see.
pub fn holders(chips: &[PathBuf]) -> Vec<Holder> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = process.file_name().to_string_lossy().parse() else { continue };
        let files = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        let open: Vec<PathBuf> = files.filter_map(|f| fs::read_link(f.path()).ok()).collect();
        if let Some(chip) = chips.iter().find(|c| open.contains(c)) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push(Holder { pid, name: name.trim().to_owned(), chip: chip.clone() });
        }
    }
    found.sort_by_key(|h| h.pid);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_process_that_holds_a_chip_is_named() {
        let dev = xlazy_mime::private::temporary(&std::env::temp_dir(), "xlazy-dev-").unwrap().canonicalize().unwrap();
        fs::create_dir(dev.join("vfio")).unwrap();
        for name in ["accel0", "accel12", "accelerometer", "vfio/7", "vfio/vfio", "null"] {
            fs::write(dev.join(name), "").unwrap();
        }
        let chips = there(&dev);
        assert_eq!(chips, ["accel0", "accel12", "vfio/7"].map(|n| dev.join(n)));
        assert_eq!(holders(&chips), []);
        let chip = fs::File::open(dev.join("vfio/7")).unwrap();
        let mut other = Command::new("sleep").arg("1000").stdin(Stdio::from(chip)).spawn().unwrap();
        // Another one that has something else open.
        let mut none =
            Command::new("sleep").arg("1000").stdin(fs::File::open(dev.join("null")).unwrap()).spawn().unwrap();
        let found = holders(&chips);
        for child in [&mut other, &mut none] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        fs::remove_dir_all(&dev).unwrap();
        let expected = Holder { pid: other.id(), name: "sleep".into(), chip: dev.join("vfio/7") };
        assert_eq!(found, [expected]);
    }
}
