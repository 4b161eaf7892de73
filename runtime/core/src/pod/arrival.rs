//! How a worker comes to be on a machine: what is said to the shell there before there is a worker. Where the same xlazy is
//! installed, or was copied before, it is started; else this one's session and libraries are sent, once for each of their
//! versions. All of it goes through the one connection that the worker then uses.
use std::io::{Result, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// What the shell over there says when it has no xlazy of this version, before its machine's name.
pub const WANTED: &str = "xlazy worker wanted: ";

/// What of this xlazy a worker needs.
pub struct Arrival {
    /// The folder's name over there: other bytes have another.
    hash: u128,
    /// The program first.
    files: Vec<(String, Vec<u8>)>,
}

impl Arrival {
    /// Of the running session: its program, and the libraries beside the system's that it has loaded.
    ///
    /// Errors: a file cannot be read.
    pub fn own() -> Result<Arrival> {
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let mut paths: Vec<PathBuf> = vec![std::env::current_exe()?];
        for path in maps.lines().filter_map(|l| l.find('/').map(|at| Path::new(&l[at..]))) {
            let named = |n: &str| n == "libxlazy.so" || n.starts_with("libstd-") && n.ends_with(".so");
            let ours = path.file_name().is_some_and(|n| named(&n.to_string_lossy()));
            if ours && !paths.iter().any(|p| p == path) {
                paths.push(path.to_owned());
            }
        }
        // Where they are loaded is another order in each process.
        paths[1..].sort();
        let one = |path: &PathBuf| {
            let name = path.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
            Ok((name, std::fs::read(path)?))
        };
        let mut files = paths.iter().map(one).collect::<Result<Vec<_>>>()?;
        files[0].0 = "xlazy-session".into();
        Ok(Arrival::of(files))
    }

    fn of(files: Vec<(String, Vec<u8>)>) -> Arrival {
        let mut hash = Xxh3::new();
        files.iter().for_each(|(_, bytes)| hash.update(bytes));
        Arrival { hash: hash.digest128(), files }
    }

    /// What all of it takes.
    pub fn size(&self) -> usize {
        self.files.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// What the shell is told first. It is read whole before any of it is done, so that what comes behind it is left to `head`,
    /// and to the worker that takes the shell's place.
    pub fn script(&self) -> String {
        let (version, hash) = (env!("CARGO_PKG_VERSION"), self.hash);
        let take = |(name, bytes): &(String, Vec<u8>)| {
            let n = bytes.len();
            format!("head -c {n} > \"$new/{name}\" && test $(wc -c < \"$new/{name}\") -eq {n} || exit 1\n")
        };
        let takes: String = self.files.iter().map(take).collect();
        format!(
            "{{\n\
             dir=\"${{XDG_CACHE_HOME:-$HOME/.cache}}/xlazy/workers/{hash:032x}\"\n\
             start() {{ LD_LIBRARY_PATH=\"$dir${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\" exec \"$dir/xlazy-session\" --worker; }}\n\
             test -x \"$dir/xlazy-session\" && start\n\
             for here in xlazy \"$HOME/.local/bin/xlazy\" \"$HOME/.cargo/bin/xlazy\"; do\n\
             test \"$(\"$here\" --version 2> /dev/null < /dev/null)\" = 'xlazy {version}' && exec \"$here\" worker\n\
             done\n\
             echo \"{WANTED}$(uname -s -m)\"\n\
             umask 077\n\
             new=\"$dir.$$\"\n\
             mkdir -p \"$new\" || exit 1\n\
             trap 'rm -rf \"$new\"' EXIT\n\
             {takes}\
             chmod +x \"$new/xlazy-session\"\n\
             test -e \"$dir\" || mv \"$new\" \"$dir\" || exit 1\n\
             rm -rf \"$new\"\n\
             trap - EXIT\n\
             start\n\
             }}\n"
        )
    }

    /// Sends what was asked for.
    pub fn send(&self, to: &mut impl Write) -> Result<()> {
        self.files.iter().try_for_each(|(_, bytes)| to.write_all(bytes))
    }
}

/// Whether this process's files run on a machine that is called so.
///
/// Errors: why not.
pub fn fits(machine: &str) -> std::result::Result<(), String> {
    let own = format!("Linux {}", std::env::consts::ARCH);
    match machine == own {
        true => Ok(()),
        false => Err(format!(
            "has no xlazy {}, and it cannot be copied there from here: that machine is {machine}, this one {own}. Install it there",
            env!("CARGO_PKG_VERSION")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, Command, Stdio};

    fn shell(home: &Path) -> Child {
        let mut sh = Command::new("/bin/sh");
        sh.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
        sh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// The first line that comes, and all that comes behind it when this is said.
    fn told(arrival: &Arrival, home: &Path, more: bool) -> (String, String) {
        let mut sh = shell(home);
        let (mut to, mut from) = (sh.stdin.take().unwrap(), BufReader::new(sh.stdout.take().unwrap()));
        to.write_all(arrival.script().as_bytes()).unwrap();
        let (mut first, mut rest) = Default::default();
        from.read_line(&mut first).unwrap();
        if more {
            arrival.send(&mut to).unwrap();
        }
        to.write_all(b"what a controller says").unwrap();
        drop(to);
        from.read_to_string(&mut rest).unwrap();
        sh.wait().unwrap();
        (first, rest)
    }

    #[test]
    fn it_is_copied_once_and_loses_no_byte_of_what_follows() {
        let home = std::env::temp_dir().join(format!("xlazy-arrival-{}", std::process::id()));
        let noise: Vec<u8> = (0..300_000u32).map(|i| ((i * 7919) >> 5) as u8).collect();
        let program = b"#!/bin/sh\necho \"$1 at $LD_LIBRARY_PATH\"; exec cat\n".to_vec();
        let of = |program: &[u8]| {
            Arrival::of(vec![("xlazy-session".into(), program.to_vec()), ("libx.so".into(), noise.clone())])
        };
        let arrival = of(&program);
        let dir = home.join(format!(".cache/xlazy/workers/{:032x}", arrival.hash));
        let said = format!("--worker at {}\n", dir.display());
        let (first, rest) = told(&arrival, &home, true);
        assert_eq!(first, format!("{WANTED}Linux {}\n", std::env::consts::ARCH));
        assert_eq!(rest, format!("{said}what a controller says"));
        assert_eq!(std::fs::read(dir.join("libx.so")).unwrap(), noise);
        // It is there now.
        assert_eq!(told(&arrival, &home, false), (said, "what a controller says".into()));
        // Cut short, nothing is left that would be taken for it.
        let other = of(b"#!/bin/sh\nexit 9\n");
        assert!(told(&other, &home, false).1.is_empty());
        assert_eq!(std::fs::read_dir(home.join(".cache/xlazy/workers")).unwrap().count(), 1);
        // One that is installed in the same version goes first.
        let bin = home.join(".local/bin");
        std::fs::create_dir_all(&bin).unwrap();
        let installed = "#!/bin/sh\nif test \"$1\" = worker; then echo started; cat; else echo 'xlazy VERSION'; fi\n";
        for (version, first) in [("0.0.0", WANTED), (env!("CARGO_PKG_VERSION"), "started")] {
            std::fs::write(bin.join("new"), installed.replace("VERSION", version)).unwrap();
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(bin.join("new"), executable).unwrap();
            std::fs::rename(bin.join("new"), bin.join("xlazy")).unwrap();
            assert!(told(&other, &home, false).0.starts_with(first), "{version}");
        }
        std::fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn another_kind_of_machine_is_told() {
        assert!(fits(&format!("Linux {}", std::env::consts::ARCH)).is_ok());
        assert!(fits("Darwin arm64").unwrap_err().contains("that machine is Darwin arm64"));
    }
}
