//! The compiler of a notebook's cells: rustc, what it is told, and the folder where its objects lie.
use super::cache::CellCache;
use super::early::Early;
use super::objects::Objects;
use super::paths::{Crates, Found, Paths, written};
use super::tried::Calls;
use super::warm::Warmer;
use crate::engine::{Failure, sentence};
use crate::eval::deps::stages::Deps;
use crate::eval::generate::code as generate;
use crate::eval::generate::declared::Declared;
use crate::eval::generate::definitions::Definitions;
use crate::eval::tell::errors::Explained;
use crate::eval::text::source::Source;
use crate::eval::text::sources::Sources;
use crate::eval::toolchain::at_work::AtWork;
use crate::eval::toolchain::diagnostic::Diagnostic;
use crate::eval::toolchain::install::Installation;
use crate::eval::toolchain::remedy::Came;
use crate::eval::toolchain::rustc::{self, Compiled, Needs};
use crate::folder::Folder;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use xlazy_mime::Var;

/// So many groups the linker reads in less time than it takes to start it anew.
const FEW: usize = 40;

/// Compiles cells, and keeps a compiler waiting for the next one.
pub struct Compiler {
    pub install: Installation,
    /// What the library was when the session began.
    pub(super) library: String,
    pub folder: Folder,
    /// Where that is at the moment.
    pub(super) dir: PathBuf,
    pub(super) warmer: Warmer,
    pub defs: Definitions,
    pub(super) sources: Sources,
    pub objects: Objects,
    /// What the last cell needed or made was gone at some time.
    lost: bool,
    pub(super) cache: CellCache,
    pub(super) paths: Paths,
    /// How much rustc optimises, for the cell at hand.
    pub opt_level: u8,
    /// Puts a compiled cell into the cache, beside everything else.
    pub(super) keeping: Option<JoinHandle<std::io::Result<()>>>,
    /// The cache could not be written to: what to say about it, once.
    pub(super) unkept: Unkept,
    /// What to say about the definitions of the cell at hand, line by line.
    pub(super) notes: Vec<String>,
    /// Items that did not fit it, and what to say to whoever misses them.
    pub left: Vec<(String, String)>,
    /// The variables and items that the cell at hand declares.
    pub declares: BTreeSet<String>,
    pub(super) at_work: AtWork,
    /// What rustc was told the last time, besides the source.
    pub(super) told: Needs,
    pub(super) early: Early,
    pub(super) calls: Calls,
    /// What is told of the cell at hand, where it does not compile.
    pub(super) explained: Option<Explained>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    pub group_ms: f64,
    pub cell_ms: f64,
    pub tries: u32,
    /// Libraries of earlier cells' generic code that rustc was linked to.
    pub libraries: usize,
    /// Statements or definitions came from the cache.
    pub cached: bool,
}

/// Whether there is something to say about the cache.
#[derive(Default)]
pub(super) enum Unkept {
    #[default]
    Nothing,
    Note(String),
    Said,
}

/// What is compiled behind a source, as far as that is known.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Behind<'a> {
    /// What is linked to this crate.
    Linked(&'a str),
    /// Most likely another try of the same cell.
    Again,
    Anything,
}

/// What the session's store holds, as far as a compile needs it.
pub struct Scope<'a> {
    pub vars: &'a [Var],
    /// What became of variables that are no longer there.
    pub gone: &'a HashMap<String, String>,
    pub declared: &'a Declared,
    /// Variables that borrow nothing so far and that the cell fills with what borrows.
    pub filled: &'a BTreeSet<String>,
    /// The runtime's public names: name, kind and signature on each line.
    pub ours: &'a dyn Fn() -> String,
}

impl Compiler {
    pub fn new(install: Installation, folder: Folder, at_work: AtWork) -> Compiler {
        let cache = CellCache::open(&install);
        let sources = Sources::of(&install.crate_name().unwrap_or_default());
        let compiler = Compiler {
            warmer: Warmer::new(install.clone(), folder.clone(), cache.clone()),
            cache,
            keeping: None,
            paths: Paths::default(),
            unkept: Unkept::default(),
            notes: Vec::new(),
            left: Vec::new(),
            declares: BTreeSet::new(),
            opt_level: 0,
            library: super::cache::stamp(&install.runtime_so),
            install,
            dir: folder.path(),
            folder,
            defs: Definitions::default(),
            sources,
            objects: Objects::default(),
            lost: false,
            at_work,
            told: Needs::default(),
            early: Early::default(),
            calls: Calls::default(),
            explained: None,
        };
        compiler.warm_up();
        compiler
    }

    /// The source that a location's file name stands for.
    pub fn source(&self, file: &str) -> Option<Arc<Source>> {
        self.sources.get(file)
    }

    pub fn sources(&self) -> Sources {
        self.sources.clone()
    }

    /// Starts the compilers for the next cell, if none fit that wait already: for its statements, and for its items.
    pub fn warm_up(&self) {
        for begun in [true, false] {
            self.warmer.warm_up(&Needs { begun, ..self.needs(&self.defs) });
        }
    }

    /// Ends every compiler; nothing is compiled any more.
    pub fn end(&mut self) {
        self.warmer.end();
        self.paths.end();
    }

    pub(super) fn needs(&self, defs: &Definitions) -> Needs {
        let mut options = vec![format!("-Copt-level={}", self.opt_level)];
        options.extend(defs.deps.iter().flat_map(|d| d.options.clone()));
        Needs { externs: self.placed(defs.externs()), options, ..Needs::default() }
    }

    /// The objects of these groups, and of all that they are linked to: an instance of a generic function may be any crate's that
    /// rustc comes to know.
    pub(super) fn linked<'a>(&self, crates: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
        self.objects.behind(crates).iter().filter_map(|name| self.objects.get(name).cloned()).collect()
    }

    /// The compilers that start from now on read these groups before there is a text. What links reads all that there are, while
    /// these are few.
    pub(super) fn read_ahead(&self, to: &Definitions) {
        let few = self.defs.groups.len() <= FEW;
        let rest = self.defs.crates().filter(|_| few);
        self.warmer.read_ahead(to.crates(), self.linked(to.crates().chain(rest)));
    }

    /// Compiles a source: the name of the compile, the source as it is remembered, rustc's answer.
    pub(super) fn rustc(
        &mut self,
        needs: &Needs,
        source: Source,
        behind: Behind,
        timing: &mut Timing,
    ) -> Result<(String, Arc<Source>, Compiled), Failure> {
        let source = Arc::new(source);
        self.told = Needs { begun: false, ..needs.clone() };
        let rest = generate::after_beginning(&source.text);
        let text = rest.as_ref().unwrap_or(&source.text);
        let mut again = false;
        if rest.is_none() {
            self.settle_group();
        }
        loop {
            timing.tries += 1;
            let externs = self.placed(needs.externs.clone());
            let needs = &Needs { externs, begun: rest.is_some(), ..needs.clone() };
            let warm = self.warmer.take(needs).map_err(|e| match e.kind() {
                ErrorKind::NotFound | ErrorKind::PermissionDenied => {
                    let rustc = self.install.toolchain.rustc.display();
                    self.toolchain(&format!("{rustc}, which compiles cells, does not start: {e}"))
                }
                _ => self.machine(&format!("rustc does not start: {e}")),
            })?;
            let id = warm.id.clone();
            // The next one starts up meanwhile where it is surely needed.
            let links_to = if let Behind::Linked(name) = behind { Some(name) } else { None };
            let mut next = Needs { begun: true, manifest: None, ..needs.clone() };
            let metadata = links_to.and(warm.metadata.as_ref()).map(|m| m.0.clone()).filter(|_| self.early.wanted);
            let (early, made) = (metadata.is_some(), metadata.unwrap_or(warm.object.clone()));
            next.externs.iter_mut().for_each(|(_, object)| *object = rustc::object_of(object));
            next.externs.extend(links_to.map(|name| (name.to_owned(), made)));
            let at_once = rest.is_none() || behind == Behind::Again;
            if at_once {
                self.warmer.warm_up(&next);
            }
            self.remember(&id, &source);
            timing.libraries = warm.libraries;
            let compiled = match warm.feed(text, &self.at_work) {
                None => Compiled::Stopped,
                Some(mut compiling) => {
                    self.settle_group();
                    let named = needs.externs.iter().map(|(name, _)| &**name).filter(|name| source.text.contains(name));
                    let groups = self.linked(named.chain(compiling.read()));
                    compiling.begin_to_link(groups);
                    if early && compiling.says_metadata() {
                        Compiled::Known(Box::new(compiling))
                    } else {
                        compiling.object()
                    }
                }
            };
            // Beside this one it would slow it down. While the cell runs it is no loss, which is when `warm_up` does it.
            if !at_once && !matches!(compiled, Compiled::Object(..)) {
                self.warmer.warm_up(&next);
            }
            // Errors that are not about the source may come from the libraries, and without those it means the same.
            let about = |e: &Diagnostic| e.spans.iter().any(|s| s.ours && s.start < source.text.len());
            match &compiled {
                Compiled::Errors(errors)
                    if errors.iter().any(Diagnostic::is_of_linking) && self.warmer.leave_linking() => {}
                Compiled::Errors(errors) if !errors.iter().any(about) && self.warmer.forget_libraries() => {}
                // Somebody has killed it, most likely while it waited, or has deleted what it works with.
                Compiled::Died(_) if !again => again = true,
                Compiled::Errors(_) | Compiled::Broken(_) if !again && self.restore()? => again = true,
                _ => return Ok((id, source, compiled)),
            }
        }
    }

    /// What another compiler has to know to be asked about cells.
    pub fn context(&self) -> (Installation, PathBuf, Needs, Definitions) {
        (self.install.clone(), self.dir.clone(), self.needs(&self.defs), self.defs.clone())
    }

    pub(super) fn crates(&self) -> Crates {
        let deps = self.defs.deps.as_ref();
        Crates {
            install: self.install.clone(),
            dir: self.dir.clone(),
            options: deps.map(|d| d.options.clone()).unwrap_or_default(),
            deps: deps.map(|d| d.crate_name().to_owned()),
            sources: self.sources.clone(),
        }
    }

    /// Finds out where the types of variables are public, while the user reads what the cell did.
    pub fn prepare(&mut self, vars: &[Var]) {
        let crates = self.crates();
        self.paths.prepare(vars.iter().map(|v| &*v.type_name), || crates);
    }

    /// What of a variable's type no cell can name.
    pub fn unwritable(&mut self, var: &Var) -> Option<(String, Found)> {
        let (path, found) = self.paths.unwritable(&written(&var.type_name)?)?;
        Some((path.trim_start_matches("::").to_owned(), found))
    }

    pub(super) fn remember(&self, id: &str, source: &Arc<Source>) {
        let file = rustc::file_name(id);
        if let Some(dir) = std::env::var_os("XLAZY_KEEP_SOURCES") {
            let _ = std::fs::write(PathBuf::from(dir).join(&file).with_extension("rs"), &source.text);
        }
        self.sources.insert(file, source.clone());
    }

    /// Whether somebody has deleted what the last cell needed, or made; the former is there again.
    pub fn was_deleted(&mut self) -> bool {
        let restored = self.restore().unwrap_or(false);
        std::mem::take(&mut self.lost) || restored
    }

    /// The session could not load an object.
    pub fn unloaded(&mut self, object: &Path) {
        self.lost |= !object.exists();
    }

    /// The folder, and what cells are linked to in it, are there again where somebody has deleted them; whether anybody had.
    pub fn restore(&mut self) -> Result<bool, Failure> {
        let renewed = self.folder.renew();
        let renewed = renewed.map_err(|what| sentence("ResourceError", format!("{what}. Every variable is kept")))?;
        if renewed {
            self.dir = self.folder.path();
            // The compiler that waits writes to where it was, and the libraries are gone with it.
            self.warmer.forget_libraries();
        }
        let restored = self.objects.restore(&self.dir).and_then(|restored| {
            self.defs.deps.iter().try_for_each(|deps| self.link(deps))?;
            Ok(restored)
        });
        // A retry within the cell may have met more of it.
        self.lost |= renewed || !matches!(restored, Ok(false));
        restored.map(|restored| renewed || restored).map_err(|e| self.machine(&e.to_string()))
    }

    /// Has rustc and the loader find the dependencies in the folder, too.
    pub(super) fn link(&self, deps: &Deps) -> io::Result<()> {
        for stage in &deps.stages {
            let link = self.dir.join(stage.library.file_name().unwrap_or_default());
            if std::fs::read_link(&link).is_ok_and(|to| to == stage.library) {
                continue;
            }
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(&stage.library, &link)?;
        }
        Ok(())
    }

    /// What cells are linked to, in the order in which it can be loaded.
    pub fn libraries(&self) -> impl Iterator<Item = &Path> {
        let stages = self.defs.deps.iter().flat_map(|d| d.stages.iter().map(|s| &*s.library));
        stages.chain(self.objects.all())
    }

    /// Definition groups, where their objects are now.
    pub(super) fn placed(&self, mut externs: Vec<(String, PathBuf)>) -> Vec<(String, PathBuf)> {
        for (crate_name, object) in &mut externs {
            if let Some(placed) = self.objects.get(crate_name).map(PathBuf::as_path).or(self.early.metadata(crate_name))
            {
                *object = placed.to_owned();
            }
        }
        externs
    }

    /// The machine refuses something; what, and what to do.
    pub(super) fn machine(&self, what: &str) -> Failure {
        match self.folder.advice(what) {
            Some(advice) => sentence("ResourceError", format!("{what}\n{advice}. Every variable is kept")),
            None => sentence("CompileError", what),
        }
    }

    /// An object could not be put where the session finds it; what is there of it goes.
    pub(super) fn unwritten(&mut self, object: &Path, e: &std::io::Error) -> Failure {
        self.lost |= e.kind() == ErrorKind::NotFound;
        let _ = std::fs::remove_file(object);
        self.machine(&e.to_string())
    }

    pub(super) fn toolchain(&self, what: &str) -> Failure {
        let remedy = Came::this().compiler();
        let meanwhile = "Variables, magics and cells that were compiled before go on working; `xlazy doctor` says more";
        sentence("ToolchainError", format!("{what}\n{remedy}. {meanwhile}"))
    }
}
