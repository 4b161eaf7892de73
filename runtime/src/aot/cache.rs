//! Reports on the disk: by program, topology, options, compiler flags and the very libtpu that was asked.
use super::child::Request;
use super::report::Report;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use xlazy_mime::private;

/// Changes when reports of an earlier xlazy can no longer be used.
const FORMAT: u32 = 2;
/// Reports that are kept; the oldest go first.
const MOST: usize = 500;

/// Environment that changes what libtpu does.
const FLAGS: &[&str] = &["LIBTPU_INIT_ARGS", "XLA_FLAGS"];

/// The folder that reports are kept in: `aot` in `XLAZY_CACHE`, or in the user's cache folder.
fn folder() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = var("XLAZY_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|d| d.join("xlazy")))
        .or_else(|| var("HOME").map(|d| d.join(".cache/xlazy")))?;
    Some(cache.join("aot"))
}

/// What a report belongs to. Compared in full, except for the program itself, which its 128-bit hash stands for.
fn identity(request: &Request) -> String {
    let stamp = std::fs::metadata(&request.plugin).ok().map(|m| {
        let changed = m.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        format!("{} {}", m.len(), changed.unwrap_or_default().as_nanos())
    });
    let flags: Vec<String> = FLAGS.iter().map(|f| format!("{f}={:?}", std::env::var_os(f))).collect();
    format!(
        "xlazy {} report {FORMAT}\n{}\nplugin {} {}\n{}program {} {:032x}\n",
        env!("CARGO_PKG_VERSION"),
        flags.join(" "),
        request.plugin.display(),
        stamp.unwrap_or_default(),
        request.head(),
        request.program.len(),
        xxhash_rust::xxh3::xxh3_128(&request.program)
    )
}

fn file(folder: &Path, identity: &str) -> PathBuf {
    folder.join(format!("{:032x}.report", xxhash_rust::xxh3::xxh3_128(identity.as_bytes())))
}

/// The report of an earlier compile, if it is still there.
pub(super) fn look_up(request: &Request) -> Option<Report> {
    let identity = identity(request);
    let folder = folder()?;
    private::safe_folder(&folder).ok()?;
    let text = String::from_utf8(private::read(&file(&folder, &identity)).ok()?).ok()?;
    let mut report = Report::read(&crate::json::parse(text.strip_prefix(&identity)?).ok()?)?;
    report.cached = true;
    Some(report)
}

/// Keeps a report. A disk that is full or read-only costs the next question its speed and nothing else.
pub(super) fn keep(request: &Request, report: &Report) {
    let Some(folder) = folder() else { return };
    let identity = identity(request);
    let path = file(&folder, &identity);
    let made = path.with_extension(format!("{}.new", std::process::id()));
    let wrote = private::folder(&folder)
        .and_then(|()| private::write(&made, format!("{identity}{}", report.json()).as_bytes()))
        .and_then(|()| std::fs::rename(&made, &path));
    if wrote.is_err() {
        let _ = std::fs::remove_file(&made);
        return;
    }
    tidy(&folder);
}

fn tidy(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut files: Vec<_> =
        entries.flatten().filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path()))).collect();
    if files.len() > MOST {
        files.sort();
        files[..files.len() - MOST].iter().for_each(|(_, path)| drop(std::fs::remove_file(path)));
    }
}
