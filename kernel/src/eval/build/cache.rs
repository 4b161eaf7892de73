//! Compiled cells on the disk: a cell that was compiled before in the same context, by this kernel or another, needs no
//! rustc. One file per cell, named by a hash of everything that rustc was given; verified when it is read.
use crate::eval::toolchain::install::Installation;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use xlazy_mime::{private, regular};

/// Changes when entries of an earlier xlazy can no longer be used.
const FORMAT: u32 = 1;
/// What the folder may hold, unless `XLAZY_CELL_CACHE_MB` says otherwise.
const MOST_BYTES: u64 = 512 << 20;
/// The folder is looked through after this many new entries.
const PRUNE_EVERY: u64 = 200;

/// Where compiled cells are kept; without a folder nothing is kept.
#[derive(Clone, Debug)]
pub struct CellCache {
    dir: Option<PathBuf>,
    /// The compiler, the linker and the runtime, as files: another build of any of them is another context.
    context: String,
}

/// What was kept of one compile.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub head: Value,
    pub object: Vec<u8>,
}

impl CellCache {
    pub fn open(install: &Installation) -> CellCache {
        let toolchain = &install.toolchain;
        let mut context = format!("xlazy {} cells {FORMAT}\n", env!("CARGO_PKG_VERSION"));
        let driver = std::fs::read_dir(toolchain.sysroot.join("lib")).into_iter().flatten().flatten().map(|e| e.path());
        let mut parts: Vec<PathBuf> =
            driver.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().contains("rustc_driver"))).collect();
        parts.sort();
        parts.extend([install.runtime_so.clone(), toolchain.rustc.clone()]);
        parts.extend(toolchain.lld.iter().map(|l| l.exe.clone()));
        parts.iter().for_each(|p| context += &stamp(p));
        context += &format!("{:?} {:?}", crate::eval::toolchain::rustc::FLAGS, toolchain);
        let cache = CellCache { dir: install.cell_cache.clone(), context };
        let pruned = cache.clone();
        let _ = std::thread::Builder::new().name("xlazy-cache".into()).spawn(move || pruned.prune(most_bytes()));
        cache
    }

    /// The name of what rustc makes of a source, given these options and these other crates.
    pub fn key(&self, options: &[String], externs: &[(String, PathBuf)], text: &str) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        add(&self.context);
        options.iter().for_each(|o| add(o));
        for (name, object) in externs {
            add(name);
            // Objects of definition groups have names that no other compile ever gets.
            add(&object.file_stem().unwrap_or_default().to_string_lossy());
        }
        add(text);
        hex(&hash.finalize())
    }

    pub fn get(&self, key: &str) -> Option<Entry> {
        let dir = self.dir.as_ref()?;
        // What lies there becomes code of this user's.
        private::safe_folder(dir).ok()?;
        let path = dir.join(key);
        let bytes = private::read(&path).ok()?;
        let Some(entry) = decode(&bytes) else {
            // Cut short or changed: worse than nothing.
            let _ = std::fs::remove_file(&path);
            return None;
        };
        // Its age counts from the last use.
        let touched = regular::open_with(std::fs::File::options().append(true), &path);
        let _ = touched.and_then(|f| f.set_modified(SystemTime::now()));
        Some(entry)
    }

    /// Keeps an entry. Readers see all of it or nothing, also when two kernels write the same.
    pub fn put(&self, key: &str, entry: &Entry) -> std::io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(dir) = &self.dir else { return Ok(()) };
        let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        let unfinished = dir.join(format!("{key}.{}-{count}", std::process::id()));
        private::folder(dir)?;
        let written = private::write(&unfinished, &encode(entry))
            .and_then(|()| std::fs::rename(&unfinished, dir.join(key)))
            .inspect_err(|_| drop(std::fs::remove_file(&unfinished)));
        if count.is_multiple_of(PRUNE_EVERY) {
            self.prune(most_bytes());
        }
        written
    }

    /// Where entries lie.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// Removes what was not used for longest, until the rest fits.
    pub fn prune(&self, most_bytes: u64) {
        let Some(dir) = &self.dir else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = std::fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|e| is_ours(&e.file_name().to_string_lossy()))
            .filter_map(|e| {
                let meta = e.metadata().ok().filter(|m| m.is_file())?;
                Some((meta.modified().ok()?, meta.len(), e.path()))
            })
            .collect();
        files.sort();
        let mut total: u64 = files.iter().map(|f| f.1).sum();
        for (_, bytes, path) in files {
            if total <= most_bytes {
                break;
            }
            total -= bytes;
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether an entry has such a name, finished or not: the folder may be one that has other things in it.
fn is_ours(name: &str) -> bool {
    let key = name.split('.').next().unwrap_or_default();
    key.len() == 64 && key.bytes().all(|b| b.is_ascii_hexdigit())
}

fn most_bytes() -> u64 {
    let set = std::env::var("XLAZY_CELL_CACHE_MB").ok().and_then(|v| v.parse::<u64>().ok());
    set.map_or(MOST_BYTES, |mb| mb << 20)
}

/// A file's identity: path, size and time of its last change.
pub(super) fn stamp(path: &Path) -> String {
    let meta = std::fs::metadata(path).ok();
    let changed = meta.as_ref().and_then(|m| m.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    format!("{} {} {}\n", path.display(), meta.map_or(0, |m| m.len()), changed.unwrap_or_default().as_nanos())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A line with the hash of the rest, a line of JSON, the object.
fn encode(entry: &Entry) -> Vec<u8> {
    let mut rest = entry.head.to_string().into_bytes();
    rest.push(b'\n');
    rest.extend_from_slice(&entry.object);
    let mut out = hex(&Sha256::digest(&rest)).into_bytes();
    out.push(b'\n');
    out.extend_from_slice(&rest);
    out
}

fn decode(bytes: &[u8]) -> Option<Entry> {
    let (hash, rest) = bytes.split_at_checked(65)?;
    if hash[..64] != *hex(&Sha256::digest(rest)).as_bytes() {
        return None;
    }
    let end = rest.iter().position(|b| *b == b'\n')?;
    let head = serde_json::from_slice(&rest[..end]).ok()?;
    Some(Entry { head, object: rest[end + 1..].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(name: &str) -> (CellCache, PathBuf) {
        let dir = private::temporary(&std::env::temp_dir(), &format!("xlazy-test-{name}-")).unwrap();
        (CellCache { dir: Some(dir.clone()), context: "a".into() }, dir)
    }

    fn entry(size: usize) -> Entry {
        Entry { head: serde_json::json!({"file": "f"}), object: vec![b'\n'; size] }
    }

    #[test]
    fn what_was_kept_comes_back_and_what_was_changed_does_not() {
        let (cache, dir) = cache("kept");
        assert_eq!(cache.get("k"), None);
        cache.put("k", &entry(100)).unwrap();
        assert_eq!(cache.get("k"), Some(entry(100)));
        let mut bytes = std::fs::read(dir.join("k")).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(dir.join("k"), &bytes).unwrap();
        assert_eq!(cache.get("k"), None);
        assert!(!dir.join("k").exists());
        std::fs::write(dir.join("k"), &bytes[..30]).unwrap();
        assert_eq!(cache.get("k"), None);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_oldest_go_when_there_is_too_much_and_nothing_of_others() {
        let (cache, dir) = cache("prune");
        let at = |name: &str, seconds| {
            let time = UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            std::fs::File::options().append(true).open(dir.join(name)).unwrap().set_modified(time).unwrap();
        };
        let [a, b, c] = ["a", "b", "c"].map(|letter| letter.repeat(64));
        for (i, key) in [&a, &b, &c].iter().enumerate() {
            cache.put(key, &entry(1000)).unwrap();
            at(key, i as u64);
        }
        // Somebody has chosen a folder that has other things in it.
        std::fs::write(dir.join("thesis.txt"), [0; 9000]).unwrap();
        at("thesis.txt", 0);
        assert!(cache.get(&a).is_some(), "a use makes it young");
        cache.prune(2500);
        assert!(cache.get(&b).is_none() && cache.get(&a).is_some() && cache.get(&c).is_some());
        assert!(dir.join("thesis.txt").exists());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_others_may_have_written_is_not_taken() {
        let (cache, dir) = cache("others");
        let allow = |path: &Path, mode| {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        };
        cache.put("k", &entry(10)).unwrap();
        for (folder, file, good) in
            [(0o755, 0o644, true), (0o777, 0o644, false), (0o1777, 0o644, false), (0o700, 0o666, false)]
        {
            allow(&dir, folder);
            allow(&dir.join("k"), file);
            assert_eq!(cache.get("k").is_some(), good, "{folder:o} {file:o}");
            assert_eq!(cache.put("l", &entry(10)).is_ok(), folder & 0o022 == 0, "{folder:o}");
        }
        // In its place comes a new one.
        cache.put("k", &entry(20)).unwrap();
        assert_eq!(cache.get("k"), Some(entry(20)));
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_key_is_of_everything_that_rustc_is_given() {
        let (mut cache, _) = cache("key");
        let externs = |file: &str| vec![("g".to_owned(), PathBuf::from(file))];
        let options = |o: &str| vec![o.to_owned()];
        let mut keys = vec![
            cache.key(&options("-O"), &externs("x.so"), "fn"),
            cache.key(&options("-O"), &externs("x.so"), "fn "),
            cache.key(&options("-O"), &externs("y.so"), "fn"),
            cache.key(&options("-C"), &externs("x.so"), "fn"),
        ];
        cache.context = "b".into();
        keys.push(cache.key(&options("-O"), &externs("x.so"), "fn"));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 5);
    }
}
