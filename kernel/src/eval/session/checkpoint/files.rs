//! Checkpoints as files: where they lie, what there is, and times and sizes as people write them.
use crate::eval::text::hash::short_hash;
use crate::eval::text::untrusted::identifier;
use crate::home::home;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xlazy_mime::{columns, regular, units, whole};

pub const ENDING: &str = "safetensors";

/// Beside the notebook, which is where the kernel runs; what looks like a path is one.
pub fn path_of(name: &str) -> Result<PathBuf, String> {
    if name.is_empty() {
        return Err("a name is missing: `%checkpoint save NAME`, `%checkpoint load NAME`".into());
    }
    let path = match name.ends_with(&format!(".{ENDING}")) {
        true => PathBuf::from(name),
        false => PathBuf::from(format!("{name}.{ENDING}")),
    };
    std::path::absolute(&path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Where a kernel saves by itself: one file for each notebook. Notebooks without a name in one folder, or two kernels of the
/// same notebook, number theirs; the lock says so to the others, for as long as it lives.
pub fn autosave_place(notebook: Option<&Path>) -> (PathBuf, Option<File>) {
    let stem = notebook.and_then(Path::file_stem);
    let first = stem.map_or_else(|| "autosave".to_owned(), |stem| format!("{}-autosave", stem.to_string_lossy()));
    let path = |name: &str| {
        let name = format!("{name}.{ENDING}");
        std::path::absolute(&name).unwrap_or_else(|_| PathBuf::from(name))
    };
    let locks = home().map(|home| home.join("state/autosave"));
    for number in 1..100 {
        let path = path(&if number == 1 { first.clone() } else { format!("{first}-{number}") });
        let claimed = locks.as_ref().map(|l| whole::claim(l, &short_hash(&path.to_string_lossy())));
        match claimed {
            Some(Ok(Some(lock))) => return (path, Some(lock)),
            Some(Ok(None)) => {}
            // Nobody can be asked: a name that nobody else has.
            None | Some(Err(_)) => break,
        }
    }
    (path(&format!("{first}-{}", std::process::id())), None)
}

/// What `%checkpoint load` is to be told to load that file from here.
pub fn name_of(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    match (path.parent(), path.file_stem()) {
        (folder, Some(stem)) if folder == here.as_deref() => stem.to_string_lossy().into_owned(),
        _ => path.display().to_string(),
    }
}

/// The checkpoints in a folder.
pub fn list(folder: &Path) -> String {
    whole::sweep(folder, ENDING);
    let mut rows: Vec<[String; 4]> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|e| e.path().extension().is_some_and(|x| x == ENDING))
        .filter_map(|e| {
            let variables = variables(&e.path())?;
            let meta = e.metadata().ok()?;
            let age = meta.modified().ok()?.elapsed().unwrap_or_default();
            let name = e.path().file_stem()?.to_string_lossy().replace(char::is_control, "\u{fffd}");
            Some([name, units::bytes(meta.len()), format!("{} ago", units::age(age)), variables.join(", ")])
        })
        .collect();
    if rows.is_empty() {
        return "No checkpoints here yet. `%checkpoint save NAME` keeps the variables in NAME.safetensors.".into();
    }
    rows.sort();
    rows.insert(0, ["Name", "Size", "Saved", "Variables"].map(str::to_owned));
    columns(&rows, &[])
}

/// The variables that a checkpoint says it holds; none for a file that is something else.
pub fn variables(path: &Path) -> Option<Vec<String>> {
    const LONGEST_HEADER: u64 = 100_000_000;
    let mut file = regular::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER.min(file.metadata().ok()?.len()) {
        return None;
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header).ok()?;
    let header: Value = serde_json::from_slice(&header).ok()?;
    let listed: Value = serde_json::from_str(header["__metadata__"]["xlazy.variables"].as_str()?).ok()?;
    let name = |v: &Value| v["name"].as_str().filter(|name| identifier(name).is_some()).map(str::to_owned);
    listed.as_array()?.iter().map(name).collect()
}

/// Deletes a checkpoint, and nothing that is none.
pub fn delete(path: &Path) -> Result<(), String> {
    if variables(path).is_none() {
        return Err(format!("{} is no checkpoint of xlazy, so it stays: delete it as any file", path.display()));
    }
    std::fs::remove_file(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// `30s`, `5min`, `2 h`, or a number of seconds.
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok().filter(|n| *n > 0)?;
    let seconds = match text[digits..].trim() {
        "" | "s" | "sec" | "seconds" => 1,
        "m" | "min" | "minutes" => 60,
        "h" | "hours" => 3600,
        _ => return None,
    };
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_names_are_understood() {
        assert_eq!(duration("5min"), Some(Duration::from_secs(300)));
        assert_eq!(duration(" 30 s"), Some(Duration::from_secs(30)));
        assert_eq!(duration("2h"), Some(Duration::from_secs(7200)));
        assert_eq!((duration("0"), duration("soon"), duration("5 days"), duration("")), (None, None, None, None));
        assert!(path_of("a").unwrap().ends_with("a.safetensors"));
        assert_eq!(path_of("/x/a.safetensors").unwrap(), Path::new("/x/a.safetensors"));
        assert!(path_of("").is_err());
    }
}
