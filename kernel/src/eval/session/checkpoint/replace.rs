//! What a save may take the place of. A copy that has what is not saved any more is kept beside it, and what is no
//! checkpoint, or would take the last copy of something, is replaced only where the user says so.
use super::files;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is where a checkpoint is to go.
#[derive(Debug, PartialEq)]
pub enum There {
    Nothing,
    /// A checkpoint, with these variables.
    Checkpoint(BTreeSet<String>),
    /// Something that no `%checkpoint save` wrote.
    Foreign,
}

impl There {
    pub fn at(path: &Path) -> There {
        // Whoever writes it says what a folder or a pipe is doing there.
        match path.is_file().then(|| files::variables(path)) {
            None => There::Nothing,
            Some(Some(names)) => There::Checkpoint(names.into_iter().collect()),
            Some(None) => There::Foreign,
        }
    }

    pub fn names(&self) -> BTreeSet<String> {
        match self {
            There::Checkpoint(names) => names.clone(),
            There::Nothing | There::Foreign => BTreeSet::new(),
        }
    }
}

/// Where the copy of before is kept.
pub fn previous(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-previous.{}", files::ENDING))
}

/// How a save goes on.
#[derive(Debug, PartialEq)]
pub struct Decided {
    /// Where what is there is kept.
    pub keep: Option<PathBuf>,
    /// What it has that the new one has not.
    pub only_there: BTreeSet<String>,
}

/// Whether these variables may take the place of what is at `path`, and what becomes of that; the error says why not, and
/// that `forced_by` does it all the same. `mine` are the files that this session wrote: what one of them lacks, the user has
/// let go of since. A copy that an earlier session left stays as long as this one lasts; where both have something that is
/// not there now, a user means the older one to go, and nobody else does.
pub fn decide(
    path: &Path,
    names: &BTreeSet<String>,
    mine: &BTreeSet<PathBuf>,
    forced_by: Result<(), &str>,
    by_itself: bool,
) -> Result<Decided, String> {
    let (force, forced_by) = (forced_by.is_ok(), forced_by.err().unwrap_or_default());
    let there = There::at(path);
    if !force && names.is_empty() {
        return Err(format!("there is no variable that could be kept; `{forced_by}` writes a checkpoint without any"));
    }
    if !force && there == There::Foreign {
        return Err(format!(
            "{} is no checkpoint of xlazy, so it stays: save under another name, or write over it with `{forced_by}`",
            path.display()
        ));
    }
    let before = previous(path);
    let earlier = There::at(&before);
    let (of_there, of_earlier) = (there.names(), earlier.names());
    let only_there: BTreeSet<String> = of_there.difference(names).cloned().collect();
    let yields = match &earlier {
        There::Nothing => true,
        There::Checkpoint(_) if mine.contains(&before) => true,
        There::Checkpoint(_) => !mine.contains(path) && of_earlier.is_subset(&of_there),
        There::Foreign => false,
    };
    let keep = match () {
        () if there == There::Nothing => None,
        () if yields => Some(before),
        () if mine.contains(path) || there != There::Foreign && only_there.is_empty() => None,
        () if force => (earlier != There::Foreign).then_some(before),
        () if !by_itself && earlier != There::Foreign => Some(before),
        () => {
            return Err(format!(
                "{} of earlier has {}, {} has something else, and neither is among the variables now, so both stay: \
                 save under another name, or let `{forced_by}` take the place of the older one",
                path.display(),
                list(&only_there),
                before.display(),
            ));
        }
    };
    Ok(Decided { keep, only_there })
}

pub fn list(names: &BTreeSet<String>) -> String {
    const MOST: usize = 8;
    let mut text = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MOST {
        text += &format!(" and {} more", names.len() - MOST);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let dir = std::env::temp_dir().join(format!("xlazy-keep-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            Folder(dir)
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.join(format!("{name}.safetensors"))
        }

        /// A file that says that it has these variables.
        fn save(&self, name: &str, variables: &str) -> PathBuf {
            let listed: Vec<_> = variables.split_whitespace().map(|n| serde_json::json!({ "name": n })).collect();
            let listed = serde_json::Value::from(listed).to_string();
            let header = serde_json::json!({"__metadata__": {"xlazy.variables": listed}}).to_string();
            let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
            bytes.extend(header.bytes());
            std::fs::write(self.at(name), bytes).unwrap();
            self.at(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const ASK: Result<(), &str> = Err("save --force");

    fn set(names: &str) -> BTreeSet<String> {
        names.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_no_checkpoint_and_what_is_empty_wait_for_the_flag() {
        let f = Folder::new("foreign");
        let (path, mine) = (f.at("model"), BTreeSet::new());
        assert_eq!(decide(&path, &set("x"), &mine, ASK, true), Ok(Decided { keep: None, only_there: set("") }));
        assert!(decide(&path, &set(""), &mine, ASK, true).unwrap_err().contains("no variable"));
        assert!(decide(&path, &set(""), &mine, Ok(()), true).is_ok());
        for foreign in [&b"\x02\0\0\0\0\0\0\0{}"[..], b"text", b""] {
            std::fs::write(&path, foreign).unwrap();
            let why = decide(&path, &set("x"), &mine, ASK, true).unwrap_err();
            assert!(why.contains("no checkpoint") && why.contains("--force"), "{why}");
            assert_eq!(decide(&path, &set("x"), &mine, Ok(()), true).unwrap().keep, Some(f.at("model-previous")));
        }
        // A variable that is none is not ours either.
        f.save("evil", "a\");evil();(\"");
        assert_eq!(There::at(&f.at("evil")), There::Foreign);
    }

    #[test]
    fn no_save_takes_the_last_copy_of_something() {
        let f = Folder::new("copies");
        let (path, before) = (f.save("a", "x y"), f.at("a-previous"));
        let mut mine = BTreeSet::new();
        // A new kernel with other variables: the copy of before stays under another name.
        let first = decide(&path, &set("n"), &mine, ASK, true).unwrap();
        assert_eq!(first, Decided { keep: Some(before.clone()), only_there: set("x y") });
        f.save("a-previous", "x y");
        f.save("a", "n");
        mine.insert(path.clone());
        // It goes on saving, whatever it lets go of, and x and y stay where they are.
        assert_eq!(decide(&path, &set("n m"), &mine, ASK, true).unwrap().keep, None);
        assert_eq!(decide(&path, &set("m"), &mine, ASK, true).unwrap().keep, None);
        // The next kernel: what has all of it may take its place, and anything else must be told to.
        mine.clear();
        assert_eq!(decide(&path, &set("n m"), &mine, ASK, true).unwrap().keep, None);
        let why = decide(&path, &set("z"), &mine, ASK, true).unwrap_err();
        assert!(why.contains("has n") && why.contains("both stay"), "{why}");
        assert_eq!(decide(&path, &set("z"), &mine, ASK, false).unwrap().keep, Some(before.clone()));
        assert_eq!(decide(&path, &set("z"), &mine, Ok(()), true).unwrap().keep, Some(before.clone()));
        // The copy of an earlier session stays while this one saves the same names again and again.
        f.save("a", "x y");
        mine.insert(path.clone());
        assert_eq!(decide(&path, &set("x y"), &mine, ASK, true).unwrap().keep, None);
        mine.insert(before.clone());
        assert_eq!(decide(&path, &set("x y"), &mine, ASK, true).unwrap().keep, Some(before.clone()));
        mine.clear();
        // An older copy of the same is no loss.
        f.save("a", "x y n");
        assert_eq!(decide(&path, &set("z"), &mine, ASK, true).unwrap().keep, Some(before.clone()));
        // Somebody else's file is no copy of ours.
        std::fs::write(&before, "text").unwrap();
        assert!(
            decide(&path, &set("z"), &mine, ASK, true).is_err() && decide(&path, &set("z"), &mine, ASK, false).is_err()
        );
        assert_eq!(decide(&path, &set("x y n"), &mine, ASK, true).unwrap().keep, None);
        assert_eq!(decide(&path, &set("z"), &mine, Ok(()), true).unwrap().keep, None);
    }
}
