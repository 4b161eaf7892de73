//! The objects of definition groups. Later cells are linked to them for as long as the notebook lives, so there is a second
//! copy of each, in a file without a name that nobody can delete: the folder may go while the kernel lives.
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

#[derive(Default)]
pub struct Objects {
    groups: Vec<Group>,
    /// Where each crate is in there.
    at: HashMap<String, usize>,
    spare: Option<File>,
}

struct Group {
    crate_name: String,
    object: PathBuf,
    /// Crates of other groups that it is linked to.
    links: Vec<String>,
    /// Where its copy is in the spare file; none where the disk had no room for it.
    copy: Option<(u64, usize)>,
}

impl Objects {
    pub fn get(&self, crate_name: &str) -> Option<&PathBuf> {
        self.group(crate_name).map(|g| &g.object)
    }

    fn group(&self, crate_name: &str) -> Option<&Group> {
        self.at.get(crate_name).map(|at| &self.groups[*at])
    }

    /// All of them; what one is linked to comes before it.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.groups.iter().map(|g| &*g.object)
    }

    /// These groups, and all that they are linked to, whether that is still in force or not.
    pub fn behind<'a>(&self, crates: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let mut next: Vec<String> = crates.map(str::to_owned).collect();
        while let Some(name) = next.pop() {
            if !all.contains(&name) {
                next.extend(self.group(&name).into_iter().flat_map(|g| g.links.iter().cloned()));
                all.insert(name);
            }
        }
        all
    }

    /// Gives an object that was just made its second name: cells find it by the one that it was linked under (DT_NEEDED), and
    /// a crate that depends on it by crate name (rustc's search for dependencies).
    pub fn add(&mut self, crate_name: &str, object: &Path, links: Vec<String>) -> io::Result<()> {
        // What is opened can be copied, whoever deletes it meanwhile.
        let mut opened = File::open(object)?;
        std::fs::hard_link(object, by_name(object, crate_name))?;
        let copy = self.copied(&mut opened, object).ok();
        self.groups.retain(|g| g.crate_name != crate_name);
        self.groups.push(Group { crate_name: crate_name.to_owned(), object: object.to_owned(), links, copy });
        self.at = self.groups.iter().enumerate().map(|(at, g)| (g.crate_name.clone(), at)).collect();
        Ok(())
    }

    fn copied(&mut self, object: &mut File, beside: &Path) -> io::Result<(u64, usize)> {
        let spare = match &mut self.spare {
            Some(spare) => spare,
            none => none.insert(nameless(beside)?),
        };
        let at = spare.seek(SeekFrom::End(0))?;
        let bytes = io::copy(object, spare)?;
        Ok((at, bytes as usize))
    }

    /// Puts what is missing where it belongs, which is `folder`; whether anything was.
    pub fn restore(&mut self, folder: &Path) -> io::Result<bool> {
        let mut missing = false;
        for group in &mut self.groups {
            let object = folder.join(group.object.file_name().unwrap_or_default());
            let named = by_name(&object, &group.crate_name);
            if let (Some(spare), Some((at, bytes))) = (&self.spare, group.copy)
                && !(object.is_file() && named.is_file())
            {
                missing = true;
                let mut kept = vec![0; bytes];
                spare.read_exact_at(&mut kept, at)?;
                for path in [&object, &named] {
                    let _ = std::fs::remove_file(path);
                }
                std::fs::write(&object, kept)?;
                std::fs::hard_link(&object, &named)?;
            }
            group.object = object;
        }
        Ok(missing)
    }
}

fn by_name(object: &Path, crate_name: &str) -> PathBuf {
    object.with_file_name(format!("lib{crate_name}.so"))
}

/// A file beside this one that has lost its name at once.
fn nameless(beside: &Path) -> io::Result<File> {
    let path = beside.with_file_name("spare");
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    let _ = std::fs::remove_file(path);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use xlazy_mime::private;

    #[test]
    fn what_is_deleted_comes_back_byte_by_byte_here_or_elsewhere() {
        let folder = || private::temporary(&std::env::temp_dir(), "xlazy-objects-").unwrap();
        let (here, there) = (folder(), folder());
        let mut objects = Objects::default();
        let bytes = |n: u8| vec![n; 1000 * n as usize];
        for n in 1..=5 {
            let object = here.join(format!("libcell_{n}.so"));
            std::fs::write(&object, bytes(n)).unwrap();
            objects.add(&format!("g_{n}"), &object, Vec::new()).unwrap();
        }
        let complete = |folder: &Path| {
            (1..=5).all(|n| {
                let files = [format!("libcell_{n}.so"), format!("libg_{n}.so")];
                files.iter().all(|f| std::fs::read(folder.join(f)).is_ok_and(|b| b == bytes(n)))
            })
        };
        assert!(complete(&here));
        for lost in ["libcell_1.so", "libg_2.so"] {
            std::fs::remove_file(here.join(lost)).unwrap();
        }
        objects.restore(&here).unwrap();
        assert!(complete(&here));
        std::fs::remove_dir_all(&here).unwrap();
        objects.restore(&there).unwrap();
        assert!(complete(&there));
        assert_eq!(objects.get("g_3"), Some(&there.join("libcell_3.so")));
        let order: Vec<_> = (1..=5).map(|n| there.join(format!("libcell_{n}.so"))).collect();
        assert_eq!(objects.all().collect::<Vec<_>>(), order);
        std::fs::remove_dir_all(there).unwrap();
    }

    #[test]
    fn what_is_deleted_while_it_is_added_comes_back_or_was_not_added() {
        let folder = private::temporary(&std::env::temp_dir(), "xlazy-objects-").unwrap();
        let mut objects = Objects::default();
        let first = folder.join("libcell_0.so");
        std::fs::write(&first, "0").unwrap();
        objects.add("g_0", &first, Vec::new()).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::fs::read_dir(&folder).unwrap().flatten().for_each(|f| drop(std::fs::remove_file(f.path())));
                }
            });
            for n in 1..=400 {
                let object = folder.join(format!("libcell_{n}.so"));
                let _ = std::fs::write(&object, n.to_string())
                    .and_then(|()| objects.add(&format!("g_{n}"), &object, Vec::new()));
            }
            done.store(true, Ordering::Relaxed);
        });
        objects.restore(&folder).unwrap();
        assert!(objects.all().all(Path::exists));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
