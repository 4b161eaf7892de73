//! Compiled programs on the disk, so that a program that took long is compiled once and not once per kernel. One file per
//! program, named by a hash of all that XLA was given; everything is compared in full when it is read.
use crate::device::client;
use crate::host::note as tell;
use crate::ir::Key;
use crate::pod::LoadedExecutable;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use xlazy_mime::{private, regular};
use xlazy_pjrt::{Code, CompileOptions};
use xxhash_rust::xxh3::xxh3_128;

/// Changes when files of an earlier xlazy can no longer be read, or the same program would be compiled otherwise.
const MAGIC: &[u8; 16] = b"xlazy program 2\n";
/// What the folder may hold, unless `XLAZY_PROGRAM_CACHE_MB` says otherwise.
const MOST_MB: u64 = 1024;
/// A program that compiles faster is compiled as fast as it would be read, unless `XLAZY_PROGRAM_CACHE_MIN_MS` says otherwise.
const LEAST_MS: u64 = 20;
/// A file that was left unfinished for this long has lost its writer.
const UNFINISHED: Duration = Duration::from_secs(600);

struct Disk {
    dir: PathBuf,
    /// Platform, plugin, options, processor: what else XLA's answer depends on.
    context: String,
    least: Duration,
    most_bytes: u64,
}

/// A plugin that cannot write its programs down is not asked again.
static REFUSED: AtomicBool = AtomicBool::new(false);
/// Files that are being written.
static WRITING: Mutex<Vec<PathBuf>> = Mutex::new(vec![]);
static WRITTEN: Condvar = Condvar::new();

/// The folder that `XLAZY_PROGRAM_CACHE` names; none when it is not set, or `off`. The kernel sets it for its session.
fn disk() -> Option<&'static Disk> {
    static DISK: OnceLock<Option<Disk>> = OnceLock::new();
    let open = || {
        let dir = std::env::var_os("XLAZY_PROGRAM_CACHE").filter(|v| !v.is_empty() && v != "off" && v != "0")?;
        let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
        let disk = Disk {
            dir: dir.into(),
            context: context()?,
            least: Duration::from_millis(number("XLAZY_PROGRAM_CACHE_MIN_MS").unwrap_or(LEAST_MS)),
            most_bytes: number("XLAZY_PROGRAM_CACHE_MB").unwrap_or(MOST_MB) << 20,
        };
        Some(disk)
    };
    let disk = DISK.get_or_init(open).as_ref()?;
    (!REFUSED.load(Ordering::Relaxed)).then_some(disk)
}

/// Everything besides the program that decides what the compiler makes of it.
fn context() -> Option<String> {
    let c = client().ok()?;
    // Another machine's programs are none for this one.
    let plugin = c.pjrt.plugin()?;
    let mut out =
        format!("xlazy {}\n{} {}\n", env!("CARGO_PKG_VERSION"), c.pjrt.platform_name(), c.pjrt.platform_version());
    out += &format!("PJRT {:?} {} {:?}\n", plugin.api_version(), c.devices[0].kind(), CompileOptions::default());
    let plugin = plugin.path().canonicalize().ok()?;
    let mut parts: Vec<PathBuf> = std::fs::read_dir(plugin.parent()?).ok()?.flatten().map(|e| e.path()).collect();
    parts.retain(|p| *p == plugin || p.to_string_lossy().contains(".so."));
    parts.sort();
    for part in parts {
        let meta = part.metadata().ok()?;
        out += &format!("{} {} {:?}\n", part.file_name()?.to_string_lossy(), meta.len(), meta.modified().ok()?);
    }
    for name in ["XLA_FLAGS", "NPROC", "LIBTPU_INIT_ARGS", "TF_XLA_FLAGS"] {
        out += &format!("{name}={:?}\n", std::env::var_os(name));
    }
    if c.pjrt.platform_name() == "cpu" {
        // Code for the host's processor runs on none with less.
        out += &crate::host::processor();
    }
    Some(out)
}

/// The identity of a program: what XLA is given, and the key under which the session keeps it.
fn identity(context: &str, key: &Key, text: &str) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for part in [context.as_bytes(), bytemuck::cast_slice(&key.words), &xxh3_128(text.as_bytes()).to_le_bytes()] {
        out.extend((part.len() as u64).to_le_bytes());
        out.extend(part);
    }
    out
}

impl Disk {
    fn file(&self, identity: &[u8]) -> PathBuf {
        self.dir.join(format!("{:032x}", xxh3_128(identity)))
    }
}

/// Whether a program is there, or soon will be; it is not read.
pub(super) fn contains(key: &Key, text: &str) -> bool {
    let there = |file: PathBuf| writing().contains(&file) || file.is_file();
    disk().is_some_and(|d| there(d.file(&identity(&d.context, key, text))))
}

/// Whether there is a folder of programs.
pub(super) fn is_on() -> bool {
    disk().is_some()
}

/// The program, if it was compiled before under the same circumstances, after it is written where that goes on. What cannot be
/// used is removed.
pub(super) fn load(key: &Key, text: &str) -> Option<LoadedExecutable> {
    let disk = disk()?;
    let identity = identity(&disk.context, key, text);
    let path = disk.file(&identity);
    wait_while(|writing| writing.contains(&path), None);
    let bytes = private::safe_folder(&disk.dir).and_then(|()| private::read(&path)).ok()?;
    let program = decode(&bytes, &identity).and_then(|code| client().ok()?.pjrt.deserialize(code).ok());
    match program {
        None => drop(std::fs::remove_file(&path)),
        Some(_) => {
            // Its age counts from the last use.
            let touched = regular::open_with(std::fs::File::options().append(true), &path);
            let _ = touched.and_then(|f| f.set_modified(SystemTime::now()));
        }
    }
    program
}

/// Keeps a program that took `compile`, beside everything else. Readers see all of a file or nothing.
pub(super) fn keep(key: &Key, text: &str, program: &LoadedExecutable, compile: Duration) {
    let Some(disk) = disk().filter(|d| compile >= d.least) else { return };
    let (identity, program) = (identity(&disk.context, key, text), program.clone());
    let writing = Writing::begin(disk.file(&identity));
    let work = move || {
        match program.serialize() {
            Err(e) if e.code == Code::Unimplemented => REFUSED.store(true, Ordering::Relaxed),
            Err(_) => {}
            Ok(code) => {
                if let Err(e) = write(&writing.0, &encode(&identity, &code)) {
                    note(&disk.dir, &e);
                }
                prune(&disk.dir, disk.most_bytes);
            }
        }
        drop(program);
        drop(writing);
    };
    // Where no thread can be had, `work` is dropped, and with it what says that it goes on.
    let _ = std::thread::Builder::new().name("xlazy-programs".into()).spawn(work);
}

/// A file that is being written, for as long as this lives.
struct Writing(PathBuf);

impl Writing {
    fn begin(file: PathBuf) -> Writing {
        writing().push(file.clone());
        Writing(file)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut writing = writing();
        if let Some(i) = writing.iter().position(|file| *file == self.0) {
            writing.swap_remove(i);
        }
        WRITTEN.notify_all();
    }
}

/// Waits until what is being written is on the disk, for a while.
pub fn settle(limit: Duration) {
    wait_while(|writing| !writing.is_empty(), Some(limit));
}

/// Waits while this is so of what is being written, for no longer than `limit`.
fn wait_while(so: impl Fn(&[PathBuf]) -> bool, limit: Option<Duration>) {
    let end = limit.map(|limit| Instant::now() + limit);
    let mut writing = writing();
    while so(&writing) {
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return;
        }
        writing = WRITTEN.wait_timeout(writing, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn writing() -> MutexGuard<'static, Vec<PathBuf>> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A disk that cannot be written to costs compilations and nothing else; it is said once.
fn note(dir: &Path, e: &std::io::Error) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        tell(&format!("note: compiled programs are not kept in {}: {e}", dir.display()));
    }
}

/// The hash of the rest, the identity, the executable.
fn encode(identity: &[u8], code: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 16];
    out.extend((identity.len() as u64).to_le_bytes());
    out.extend(identity);
    out.extend(code);
    let hash = xxh3_128(&out[16..]).to_le_bytes();
    out[..16].copy_from_slice(&hash);
    out
}

/// The executable in a file of this identity; `None` when the file was cut short, changed, or is of another program.
fn decode<'a>(bytes: &'a [u8], identity: &[u8]) -> Option<&'a [u8]> {
    let (hash, rest) = bytes.split_at_checked(16)?;
    if hash != xxh3_128(rest).to_le_bytes() {
        return None;
    }
    let (len, rest) = rest.split_at_checked(8)?;
    if u64::from_le_bytes(len.try_into().ok()?) != identity.len() as u64 {
        return None;
    }
    rest.strip_prefix(identity)
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let unfinished = path.with_extension(format!("{}-{count}.part", std::process::id()));
    let dir = path.parent().unwrap_or(Path::new("."));
    private::folder(dir)
        .and_then(|()| private::write(&unfinished, bytes))
        .and_then(|()| std::fs::rename(&unfinished, path))
        .inspect_err(|_| drop(std::fs::remove_file(&unfinished)))
}

/// Whether a file has such a name, finished or not: the folder may be one that has other things in it.
fn is_ours(name: &str) -> bool {
    let hash = name.split('.').next().unwrap_or_default();
    hash.len() == 32 && hash.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Removes what was not used for longest until the rest fits, and what a killed process left unfinished.
fn prune(dir: &Path, most_bytes: u64) {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if !is_ours(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let Ok(meta) = entry.metadata() else { continue };
        let Ok(used) = meta.modified() else { continue };
        let part = entry.path().extension().is_some_and(|e| e == "part");
        if part && used.elapsed().is_ok_and(|age| age > UNFINISHED) {
            let _ = std::fs::remove_file(entry.path());
        } else if !part {
            files.push((used, meta.len(), entry.path()));
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    for (_, bytes, path) in files {
        if total <= most_bytes {
            return;
        }
        total -= bytes;
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(words: &[u64]) -> Key {
        Key::new(words.to_vec(), vec![])
    }

    #[test]
    fn a_file_is_taken_whole_and_for_its_own_program_only() {
        let ours = identity("a", &key(&[1, 2]), "text");
        let bytes = encode(&ours, b"code");
        assert_eq!(decode(&bytes, &ours), Some(&b"code"[..]));
        for other in [
            identity("b", &key(&[1, 2]), "text"),
            identity("a", &key(&[1, 3]), "text"),
            identity("a", &key(&[1, 2]), "tex"),
        ] {
            assert_eq!(decode(&bytes, &other), None);
        }
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut], &ours), None, "cut at {cut}");
        }
        for i in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[i] ^= 1;
            assert_eq!(decode(&changed, &ours), None, "byte {i} changed");
        }
    }

    #[test]
    fn the_oldest_go_and_so_does_what_was_left_unfinished() {
        let dir = private::temporary(&std::env::temp_dir(), "xlazy-programs-").unwrap();
        let at = |path: &Path, seconds: u64| {
            let file = std::fs::File::options().append(true).open(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        let named = |name: &str| name.replacen(|c: char| c.is_ascii_hexdigit(), &name[..1].repeat(32), 1);
        for (i, name) in ["a", "b", "c", "d.1.part"].iter().enumerate() {
            write(&dir.join(named(name)), &[0; 1000]).unwrap();
            at(&dir.join(named(name)), i as u64);
        }
        write(&dir.join(named("e.2.part")), &[0; 1000]).unwrap();
        // Somebody has chosen a folder that has other things in it.
        for foreign in ["thesis.txt", "a"] {
            write(&dir.join(foreign), &[0; 9000]).unwrap();
            at(&dir.join(foreign), 0);
        }
        prune(&dir, 2500);
        let mut left: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        let mut expected = ["b", "c", "e.2.part"].map(named).to_vec();
        expected.extend(["a".to_owned(), "thesis.txt".to_owned()]);
        expected.sort();
        assert_eq!(left, expected.into_iter().map(Into::into).collect::<Vec<std::ffi::OsString>>());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
