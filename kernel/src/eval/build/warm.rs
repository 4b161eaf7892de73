//! The compilers that wait for the next cell, and the libraries that spare it work.
//!
//! rustc compiles an instance of a generic function again in every crate that uses it, unless a crate that it is linked to
//! exports the same instance (its "upstream monomorphizations"; it does so where it does not optimise). Of a cell that uses
//! serde or ndarray that is most of the work. Such a cell is compiled once more, as a library, while the user reads what
//! it did, and later cells are linked to it. The library is a static one: what a cell needs of it becomes part of its
//! object, which therefore means the same without it, and is cached as if there were none.
use super::cache::{CellCache, Entry};
use crate::eval::generate::code as generate;
use crate::eval::text::hash::crate_of;
use crate::eval::toolchain::at_work::AtWork;
use crate::eval::toolchain::install::Installation;
use crate::eval::toolchain::rustc::{self, Beginning, Compiled, Library, Needs, Warm};
use crate::folder::Folder;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Every library takes rustc a little time.
const MOST_LIBRARIES: usize = 12;
/// Instances in a cell's object from which on a library is worth it. Each takes rustc about 0.15 ms.
const MANY: usize = 40;
/// An object of so few bytes has not that many.
const SMALL: u64 = 16 << 10;

/// Starts compilers, some of them before they are needed.
pub struct Warmer {
    starter: Arc<Starter>,
    cache: CellCache,
    making: Option<JoinHandle<()>>,
}

struct Starter {
    install: Installation,
    folder: Folder,
    /// Of this kernel alone.
    run: String,
    serial: AtomicU64,
    stock: Mutex<Stock>,
    /// What makes a library.
    at_work: AtWork,
}

#[derive(Default)]
struct Stock {
    /// One at most for a cell's statements, and one for whole sources.
    waiting: Vec<(Warm, Needs)>,
    libraries: Vec<(Library, Needs)>,
    /// Groups that the last cell was linked to: the next one may be, and then rustc has read them already.
    ahead: BTreeSet<String>,
    /// Their objects, with what those are linked to.
    linked: Vec<PathBuf>,
    /// A cell could not be linked beside rustc: rustc does it from then on.
    by_rustc: bool,
    ended: bool,
}

impl Starter {
    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_id(&self) -> String {
        format!("{}-{}", self.run, self.serial.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn start(&self, needs: &Needs, stock: &Stock) -> io::Result<Warm> {
        let fitting = stock.libraries.iter().filter(|(_, n)| needs.begun && fits(n, needs));
        let libraries: Vec<Library> = fitting.clone().map(|(l, _)| l.clone()).collect();
        let behind = fitting.flat_map(|(_, n)| n.externs.iter().map(|(name, _)| name.clone()));
        // One that is being compiled while this one starts is not there yet.
        let ahead = needs.externs.iter().filter(|(name, file)| stock.ahead.contains(name) && file.exists());
        let ahead: Vec<String> = ahead.map(|(name, _)| name.clone()).collect();
        let named = ahead.iter().map(|name| &**name).chain(libraries.iter().map(|l| &*l.name));
        let beginning = needs.begun.then(|| Beginning {
            text: generate::beginning(named),
            crates: ahead.iter().cloned().chain(behind).collect(),
            objects: stock.linked.clone(),
        });
        let id = self.new_id();
        let dir = self.folder.path();
        let object = rustc::object_in(&dir, &id);
        rustc::start(&self.install, &dir, id, object, needs, &libraries, (beginning, stock.by_rustc))
    }
}

/// Whether a library that needs these crates brings no others into a cell that needs those, and is compiled like it.
fn fits(library: &Needs, cell: &Needs) -> bool {
    library.options.iter().all(|o| cell.options.contains(o)) && library.externs.iter().all(|e| cell.externs.contains(e))
}

impl Warmer {
    pub fn new(install: Installation, folder: Folder, cache: CellCache) -> Warmer {
        let run = uuid::Uuid::new_v4().simple().to_string()[..16].to_owned();
        let (serial, stock, at_work) = Default::default();
        let starter = Starter { install, folder, run, serial, stock, at_work };
        Warmer { starter: Arc::new(starter), cache, making: None }
    }

    /// No other compile of any kernel has it.
    pub fn new_id(&self) -> String {
        self.starter.new_id()
    }

    /// Starts the compiler for the next source of that kind, if none fits that waits already.
    pub fn warm_up(&self, needs: &Needs) {
        let mut stock = self.starter.stock();
        if stock.ended || stock.waiting.iter().any(|(_, n)| n == needs) {
            return;
        }
        discard(stock.waiting.extract_if(.., |(_, n)| n.begun == needs.begun));
        let started = self.starter.start(needs, &stock);
        stock.waiting.extend(started.map(|w| (w, needs.clone())));
    }

    /// A waiting compiler that knows what is needed, or a new one.
    pub fn take(&self, needs: &Needs) -> io::Result<Warm> {
        let mut stock = self.starter.stock();
        match stock.waiting.iter().position(|(_, known)| known == needs) {
            Some(index) => Ok(stock.waiting.swap_remove(index).0),
            None => self.starter.start(needs, &stock),
        }
    }

    /// What the compilers that start from now on read before there is a text: groups, and their objects with what those are
    /// linked to.
    pub fn read_ahead<'a>(&self, crates: impl Iterator<Item = &'a str>, linked: Vec<PathBuf>) {
        let mut stock = self.starter.stock();
        (stock.ahead, stock.linked) = (crates.map(str::to_owned).collect(), linked);
    }

    /// Leaves linking to rustc from now on; false when that is so already.
    pub fn leave_linking(&self) -> bool {
        let mut stock = self.starter.stock();
        discard(stock.waiting.drain(..));
        !std::mem::replace(&mut stock.by_rustc, true)
    }

    /// Does without the libraries made so far; false when there are none.
    pub fn forget_libraries(&self) -> bool {
        let mut stock = self.starter.stock();
        discard(stock.waiting.drain(..));
        !std::mem::take(&mut stock.libraries).is_empty()
    }

    /// Makes a library of a cell's source in `file`, beside everything else, if its object has much that others could use. One
    /// at a time: what comes meanwhile will come again.
    pub fn lend(&mut self, file: &str, text: &str, object: &Path, needs: Needs, groups: Vec<PathBuf>) {
        if self.making.as_ref().is_some_and(|m| !m.is_finished()) {
            return;
        }
        if !object.metadata().is_ok_and(|m| m.len() > SMALL) {
            return;
        }
        let library = generate::library(text).filter(|_| generate::after_beginning(text).is_some());
        let Some(library) = library else { return };
        // The file is about to go.
        let Ok(object) = std::fs::read(object) else { return };
        let (starter, cache, of) = (self.starter.clone(), self.cache.clone(), crate_of(file));
        let work = move || {
            if instances(&object, &of) >= MANY && !has_initialisers(&object) {
                make(&starter, &cache, library, needs, groups);
            }
        };
        self.making = Builder::new().name("xlazy-library".into()).spawn(work).ok();
    }

    /// Ends every compiler; none is started any more.
    pub fn end(&mut self) {
        let waiting = {
            let mut stock = self.starter.stock();
            stock.ended = true;
            std::mem::take(&mut stock.waiting)
        };
        self.starter.at_work.stop();
        discard(waiting.into_iter());
        let _ = self.making.take().map(JoinHandle::join);
    }
}

impl Drop for Warmer {
    fn drop(&mut self) {
        self.end();
    }
}

fn discard(waiting: impl Iterator<Item = (Warm, Needs)>) {
    waiting.for_each(|(warm, _)| warm.discard());
}

/// Compiles a library, or finds it in the cache, and has the next compiler know it.
fn make(starter: &Starter, cache: &CellCache, library: generate::Library, needs: Needs, groups: Vec<PathBuf>) {
    let generate::Library { name, text, .. } = library;
    if starter.stock().libraries.iter().any(|(l, _)| l.name == name) {
        return;
    }
    let file = starter.folder.path().join(format!("lib{name}.rlib"));
    let key = cache.key(&needs.options, &needs.externs, &text);
    let kept = cache.get(&key);
    let made = match &kept {
        Some(entry) => std::fs::write(&file, &entry.object).is_ok(),
        None => compile(starter, &file, &text, &needs),
    };
    if !made {
        return;
    }
    if kept.is_none()
        && let Ok(object) = std::fs::read(&file)
    {
        let _ = cache.put(&key, &Entry { head: Value::Null, object });
    }
    let mut stock = starter.stock();
    if stock.libraries.len() == MOST_LIBRARIES {
        stock.libraries.remove(0);
    }
    stock.libraries.push((Library { name, file, groups }, needs.clone()));
    // The one that waits does not know it. A cell that comes meanwhile has taken that one, and starts another after it.
    let unaware: Vec<(Warm, Needs)> = stock.waiting.extract_if(.., |(_, n)| n.begun && fits(&needs, n)).collect();
    for (_, known) in &unaware {
        let started = starter.start(known, &stock);
        stock.waiting.extend(started.map(|w| (w, known.clone())));
    }
    drop(stock);
    discard(unaware.into_iter());
}

/// Links to no other library: those of another kernel are not there.
fn compile(starter: &Starter, file: &Path, text: &str, needs: &Needs) -> bool {
    let dir = starter.folder.path();
    let started = rustc::start(&starter.install, &dir, starter.new_id(), file.to_owned(), needs, &[], (None, true));
    started.is_ok_and(|warm| matches!(warm.compile(text, &starter.at_work), Compiled::Object(..)))
}

/// Instances of other crates' generic functions in an object, that mention nothing of the cell's own: their v0 symbols end
/// with the crate in which they were compiled, and name it nowhere else.
fn instances(object: &[u8], crate_name: &str) -> usize {
    object.split(|b| *b == 0).filter(|s| s.starts_with(b"_R") && s.ends_with(crate_name.as_bytes())).count()
}

/// Whether code of it runs as soon as it is loaded: a library must not do that once more.
fn has_initialisers(object: &[u8]) -> bool {
    object.split(|b| *b == 0).any(|s| s.starts_with(b".init_array") || s.starts_with(b".ctors"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_of_others_functions_alone_are_lent() {
        let object =
            b"\x7fELF\0_RNvMs_NtCsPU_5alloc3vecINtB4_3VecmE3newCs1_9cell_12ab\0_RNCNvCs1_9cell_12ab10xlazy_cell0B3_\0\
            _ZN4core3fmt5write17h0123456789abcdefE\0_RNvNtCsPU_5serde2de4fromCs1_9cell_12ab\0.shstrtab\0";
        assert_eq!(instances(object, "cell_12ab"), 2);
        assert_eq!(instances(object, "cell_99"), 0);
        assert!(!has_initialisers(object));
        assert!(has_initialisers(b".text\0.init_array\0.data"));
    }

    #[test]
    fn a_library_brings_no_crate_that_the_cell_has_not() {
        let needs = |crates: &[&str], level: &str| Needs {
            externs: crates.iter().map(|c| (c.to_string(), PathBuf::from(c))).collect(),
            options: vec![level.to_owned()],
            ..Needs::default()
        };
        assert!(fits(&needs(&["a"], "0"), &needs(&["a", "b"], "0")));
        assert!(!fits(&needs(&["a", "c"], "0"), &needs(&["a", "b"], "0")), "`c` was defined again");
        assert!(!fits(&needs(&["a"], "0"), &needs(&["a"], "3")));
    }
}
