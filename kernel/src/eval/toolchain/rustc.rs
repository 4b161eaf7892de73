//! Running rustc: processes wait, already started, for the next cell's source; the answer comes as JSON lines.
//!
//! Of what every cell's statements begin with rustc has made something before there is a cell: it is a file of its own,
//! whose last line includes the standard input. So the crates that it names are loaded when the cell comes, which is
//! some 6 to 12 ms of the 40 to 50 that rustc takes for a small cell. A crate that others link to has attributes, and comes whole.
use super::at_work::AtWork;
use super::diagnostic::Diagnostic;
use super::install::Installation;
use super::link::Link;
use crate::eval::text::depth;
use crate::eval::text::hash::crate_of;
use crate::folder::run_somewhere;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::thread::Builder;
use std::time::Duration;

/// A rustc that has started and waits for source text on its standard input.
pub struct Warm {
    child: Child,
    /// No other compile of any kernel has it: what is kept on the disk can name its source and its object by it.
    pub id: String,
    pub object: PathBuf,
    dep_info: PathBuf,
    begun: Option<PathBuf>,
    /// What links the object, where that is not left to rustc.
    link: Option<Link>,
    /// What others may be compiled against before the object is there.
    pub metadata: Option<Metadata>,
    pub libraries: usize,
    /// Groups that its beginning names.
    read: Vec<String>,
}

/// A file that rustc makes, and that goes with this.
#[derive(Debug)]
pub struct Metadata(pub PathBuf);

impl Drop for Metadata {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A rustc that has its source.
pub struct Compiling {
    warm: Warm,
    at_work: AtWork,
    said: Option<Lines<BufReader<ChildStderr>>>,
    errors: Vec<Diagnostic>,
    /// Lines that are no messages.
    rest: String,
}

/// A static library that a cell may link to, and means the same without.
#[derive(Clone, Debug)]
pub struct Library {
    /// Its crate.
    pub name: String,
    pub file: PathBuf,
    /// The groups that it is linked to, with what those are.
    pub groups: Vec<PathBuf>,
}

/// What rustc reads before there is a text.
pub struct Beginning {
    pub text: String,
    /// Groups that it names.
    pub crates: Vec<String>,
    /// Their objects, with what those are linked to.
    pub objects: Vec<PathBuf>,
}

/// What a compiler must be told when it starts, before there is any text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Definition groups: crate name and object. The source names those that it is linked to.
    pub externs: Vec<(String, PathBuf)>,
    pub options: Vec<String>,
    /// The folder of a `Cargo.toml` for the macros that look for one, where it is not the notebook's.
    pub manifest: Option<PathBuf>,
    /// It waits for the rest of a cell's statements, and not for a whole source.
    pub begun: bool,
}

pub enum Compiled {
    /// The object, whether it may be kept: the source alone made it what it is, no file was included, no environment read and
    /// nothing warned of; and what rustc warns of.
    Object(PathBuf, bool, Vec<Diagnostic>),
    /// What others can be compiled against is there, and the object is being made.
    Known(Box<Compiling>),
    Errors(Vec<Diagnostic>),
    /// The cell was interrupted.
    Stopped,
    /// rustc's own stack was not enough for it.
    TooDeep,
    /// rustc itself failed.
    Broken(String),
    /// A signal ended it: somebody's, or that of a crash.
    Died(String),
}

/// How locations in the objects name the source of a compilation; the kernel knows which cell that is.
pub fn file_name(id: &str) -> String {
    format!("{FILE_PREFIX}{id}")
}

pub const FILE_PREFIX: &str = "xlazy-cell-";

/// A path rather than `-`: rustc then sets itself up before it waits for the text.
const SOURCE: &str = "/dev/stdin";

/// What every compile is told. Nothing about codegen units: rustc then makes one of a small cell, and of a large one as
/// many as keep all cores busy.
pub const FLAGS: &[&str] = &[
    "--edition=2024",
    "-Cprefer-dynamic",
    "-Cdebuginfo=0",
    "-Csymbol-mangling-version=v0",
    "--error-format=json",
    // Says when the object is there; taking itself apart costs rustc another 6 ms.
    "--json=artifacts",
    "-Awarnings",
    // What is given back and not looked at may be an error.
    "--force-warn=unused_must_use",
];

/// The one thing that is warned of.
const UNUSED: &str = "unused_must_use";

/// An option in place of today's edition.
pub const EDITION_OLDER: &str = "--edition=2021";

/// How much stack rustc's threads have. They take as much of it as they need, so that much costs nothing.
const STACK: &str = "RUST_MIN_STACK";

/// Starts rustc for a source yet to come, or for what follows a beginning, which it reads at once. `by_rustc` has it link, too.
/// What is compiled against a group's metadata, whose object is still being made, is a crate that rustc links to nothing.
pub fn start(
    install: &Installation,
    dir: &Path,
    id: String,
    object: PathBuf,
    needs: &Needs,
    libraries: &[Library],
    (beginning, by_rustc): (Option<Beginning>, bool),
) -> std::io::Result<Warm> {
    let dep_info = object.with_extension("d");
    let begun = beginning.as_ref().map(|_| object.with_extension("rs"));
    let mut command = command(install, dir, &id, needs, libraries, begun.as_deref());
    let lld = install
        .toolchain
        .lld
        .as_ref()
        .filter(|_| !by_rustc && !needs.options.iter().any(|o| o.starts_with("--extern=")));
    let early = needs.externs.iter().any(|(_, object)| is_metadata(object));
    let exports = early.then(|| exported(dir)).transpose()?;
    let link = beginning.as_ref().zip(lld).and_then(|(beginning, lld)| {
        let read = libraries.iter().flat_map(|library| &library.groups).chain(&beginning.objects);
        let read: BTreeSet<&PathBuf> = read.filter(|group| group.exists()).collect();
        let own = libraries.iter().map(|library| library.file.as_path());
        let own: Vec<&Path> = own.chain([install.runtime_so.as_path()]).collect();
        Link::new(lld, &object, dir, &own, read.into_iter().cloned().collect(), exports.as_deref())
    });
    let metadata = lld.filter(|_| begun.is_none()).map(|_| Metadata(object.with_extension(METADATA)));
    command.args(metadata.iter().map(|file| with("--emit=metadata=", &file.0)));
    match &link {
        Some(link) => command.arg(with("--emit=obj=", &link.object)),
        None => command.arg(with("--emit=link=", &object)),
    };
    command.arg(with("--emit=dep-info=", &dep_info));
    if let (Some(file), Some(beginning)) = (&begun, &beginning) {
        std::fs::write(file, format!("{}\ninclude!({SOURCE:?});\n", beginning.text))?;
        // Two cells may declare types of one name, which the names of their crates tell apart.
        let kind = if early { "--crate-type=rlib" } else { "--crate-type=cdylib" };
        command.args([kind, &format!("--crate-name={}", crate_of(&file_name(&id)))]);
    }
    let (child, libraries) = (command.spawn()?, libraries.len());
    let read = beginning.map(|b| b.crates).unwrap_or_default();
    Ok(Warm { child, id, object, dep_info, begun, link, metadata, libraries, read })
}

/// The function that a cell's statements are.
pub const ENTRY: &str = "xlazy_cell";

const METADATA: &str = "rmeta";

fn is_metadata(object: &Path) -> bool {
    object.extension().is_some_and(|e| e == METADATA)
}

/// Where the object is, or will be, that such a file tells of.
pub fn object_of(file: &Path) -> PathBuf {
    if is_metadata(file) { file.with_extension("so") } else { file.to_owned() }
}

/// The list of what a cell's object exports.
fn exported(dir: &Path) -> std::io::Result<PathBuf> {
    let list = dir.join("exported");
    std::fs::write(&list, format!("{{ global: {ENTRY}; local: *; }};\n"))?;
    Ok(list)
}

/// rustc with all that it is told whatever it makes of the source.
fn command(
    install: &Installation,
    dir: &Path,
    id: &str,
    needs: &Needs,
    libraries: &[Library],
    begun: Option<&Path>,
) -> Command {
    let mut command = Command::new(&install.toolchain.rustc);
    command.arg(begun.unwrap_or(Path::new(SOURCE))).arg(format!("--remap-path-prefix={SOURCE}={}", file_name(id)));
    // rustc takes one edition only.
    let older = needs.options.iter().any(|o| o == EDITION_OLDER);
    command.args(FLAGS.iter().filter(|f| !(older && f.starts_with("--edition="))));
    command.arg(with("--extern=xlazy=", &install.runtime_so));
    command.arg(with("-Ldependency=", &install.deps_dir));
    command.arg(with("-Ldependency=", dir));
    for (name, path) in &needs.externs {
        command.arg(with(&format!("--extern={name}="), path));
    }
    for library in libraries {
        command.arg(with(&format!("--extern={}=", library.name), &library.file));
    }
    if let Some(lld) = &install.toolchain.lld {
        command.arg(with("-Clinker=", &lld.exe)).arg("-Clinker-flavor=ld.lld");
        command.args(lld.search.iter().map(|d| with("-Lnative=", d)));
        command.arg(with("-Clink-arg=-rpath=", dir));
        // So little is linked that starting threads takes longer than what they do.
        command.arg("-Clink-arg=--threads=1");
    } else {
        command.arg(with("-Clink-arg=-Wl,-rpath,", dir));
    }
    command.args(&needs.options);
    // For what it makes on the way: one that is killed leaves it behind, and not in the notebook's folder.
    // The notebook's folder may be read-only, too.
    command.arg(with("--out-dir=", dir));
    run_somewhere(&mut command, dir);
    let folder = needs.manifest.clone().unwrap_or_else(|| std::env::current_dir().unwrap_or_default());
    command.envs(as_cargo_says(install, &folder));
    if std::env::var_os(STACK).is_none() {
        command.env(STACK, depth::MOST.to_string());
    }
    // A group of its own: Ctrl-C in a terminal is for the cell that runs, not for the compiler that waits for the next.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// A rustc that waits for a source which it is to find fault with, and to make nothing of.
pub struct Check {
    child: Child,
    /// How rustc's places name the source.
    file: String,
}

impl Check {
    pub fn start(install: &Installation, dir: &Path, id: &str, needs: &Needs) -> std::io::Result<Check> {
        let mut command = command(install, dir, id, needs, &[], None);
        // Types are told whole, however long they are.
        command.arg("--verbose").arg(with("--emit=metadata=", &dir.join(format!("{id}.rmeta"))));
        Ok(Check { child: command.spawn()?, file: file_name(id) })
    }

    /// The first of its errors of which `answer` makes something; `None` where it has none, or takes longer than that.
    pub fn ask<T: Send + 'static>(
        self,
        source: &str,
        patience: Duration,
        answer: impl Fn(&Diagnostic) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        self.listen(source, patience, move |said| Iterator::find_map(&mut { said }, |d| answer(&d))).flatten()
    }

    /// All that it says; nothing where it takes longer than that.
    pub fn errors(self, source: &str, patience: Duration) -> Vec<Diagnostic> {
        self.listen(source, patience, |said| said.collect()).unwrap_or_default()
    }

    fn listen<T: Send + 'static>(
        mut self,
        source: &str,
        patience: Duration,
        hear: impl FnOnce(&mut dyn Iterator<Item = Diagnostic>) -> T + Send + 'static,
    ) -> Option<T> {
        let (stdin, stderr) = (self.child.stdin.take(), self.child.stderr.take()?);
        let _ = stdin.map(|mut s| s.write_all(source.as_bytes()));
        let (tell, told) = mpsc::channel();
        let file = std::mem::take(&mut self.file);
        let read = move || {
            let lines = BufReader::new(stderr).lines().map_while(Result::ok);
            let said = lines.filter_map(|l| serde_json::from_str::<Value>(&l).ok());
            let _ = tell.send(hear(&mut said.map(|v| Diagnostic::read(&v, &file))));
        };
        Builder::new().name("xlazy-check".into()).spawn(read).ok()?;
        told.recv_timeout(patience).ok()
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What cargo tells the compiler of a package, as `env!` and macros like clap's ask for it: the notebook is one, as new ones are.
fn as_cargo_says(install: &Installation, folder: &Path) -> Vec<(String, OsString)> {
    let notebook = install.named_notebook();
    let stem =
        notebook.as_ref().and_then(|n| n.file_stem()).map_or("notebook".into(), |s| s.to_string_lossy().into_owned());
    let crate_name = install.crate_name().unwrap_or_else(|| stem.clone());
    let manifest = folder.join("Cargo.toml").into_os_string();
    let package = [
        ("NAME", &*stem),
        ("VERSION", "0.1.0"),
        ("VERSION_MAJOR", "0"),
        ("VERSION_MINOR", "1"),
        ("VERSION_PATCH", "0"),
        ("VERSION_PRE", ""),
        ("AUTHORS", ""),
        ("DESCRIPTION", ""),
        ("HOMEPAGE", ""),
        ("REPOSITORY", ""),
        ("LICENSE", ""),
        ("LICENSE_FILE", ""),
        ("RUST_VERSION", ""),
        ("README", ""),
    ];
    let mut out: Vec<(String, OsString)> =
        package.into_iter().map(|(name, value)| (format!("CARGO_PKG_{name}"), value.into())).collect();
    out.push(("CARGO_CRATE_NAME".to_owned(), crate_name.into()));
    out.push(("CARGO_MANIFEST_DIR".to_owned(), folder.into()));
    out.push(("CARGO_MANIFEST_PATH".to_owned(), manifest));
    out
}

/// Where the object of that compile lies in a kernel's folder.
pub fn object_in(dir: &Path, id: &str) -> PathBuf {
    dir.join(format!("libcell_{id}.so"))
}

/// The same the other way round.
pub fn id_of(object: &Path) -> Option<&str> {
    object.file_stem()?.to_str()?.strip_prefix("libcell_")
}

/// Removes what a compiler that was killed, or that crashed, has left where it was to put this object.
fn clean_up_after(object: &Path) {
    let (Some(dir), Some(stem)) = (object.parent(), object.file_stem().map(|s| s.to_string_lossy().into_owned()))
    else {
        return;
    };
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // No other compiler is at work: one that waits for its text has no such folder yet.
        if name.starts_with("rustc") || name.starts_with("rmeta") {
            let _ = std::fs::remove_dir_all(entry.path());
        } else if name.starts_with(&stem) || name.ends_with(".rcgu.o") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether rustc read nothing besides the source: its list of files is that of its parts, and no variable is named.
fn reads_only_the_source(dep_info: &Path, parts: usize) -> bool {
    let text = std::fs::read_to_string(dep_info).unwrap_or_default();
    let _ = std::fs::remove_file(dep_info);
    // Every file has a rule of its own, without sources.
    let files = text.lines().filter(|l| l.ends_with(':')).count();
    files == parts && !text.contains("# env-dep:")
}

fn with(option: &str, path: &Path) -> OsString {
    let mut arg = OsString::from(option);
    arg.push(path);
    arg
}

impl Warm {
    /// Throws a waiting compiler away.
    pub fn discard(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.has_read();
    }

    fn has_read(&self) {
        let _ = self.begun.as_ref().map(std::fs::remove_file);
    }

    /// Feeds it the source, or what it has not read of it, and waits for the object or the errors.
    pub fn compile(self, source: &str, at_work: &AtWork) -> Compiled {
        self.feed(source, at_work).map_or(Compiled::Stopped, Compiling::object)
    }

    /// Feeds it the source, or what it has not read of it, unless the cell was interrupted.
    pub fn feed(mut self, source: &str, at_work: &AtWork) -> Option<Compiling> {
        let (stdin, stderr) = (self.child.stdin.take(), self.child.stderr.take());
        if !at_work.begin(self.child.id()) {
            self.discard();
            return None;
        }
        // A compiler that died early closes its end; its status says more than the write's error.
        let _ = stdin.map(|mut s| s.write_all(source.as_bytes()));
        let said = stderr.map(|e| BufReader::new(e).lines());
        Some(Compiling { warm: self, at_work: at_work.clone(), said, errors: Vec::new(), rest: String::new() })
    }
}

impl Compiling {
    /// Waits until it has made one of these; false when it ends without.
    fn until(&mut self, made: &[&str]) -> bool {
        for line in self.said.iter_mut().flatten().map_while(Result::ok) {
            match serde_json::from_str::<Value>(&line) {
                Ok(said) if said["emit"].as_str().is_some_and(|emit| made.contains(&emit)) => return true,
                Ok(said) if said.get("message").is_some() => {
                    self.errors.push(Diagnostic::read(&said, &file_name(&self.warm.id)));
                }
                Ok(_) => {}
                Err(_) => self.rest += &format!("{line}\n"),
            }
        }
        false
    }

    /// Waits for what others can be compiled against, which it makes before the object; false when it ends without.
    pub fn says_metadata(&mut self) -> bool {
        self.until(&["metadata"])
    }

    /// The object that it makes, and what others are compiled against before that is there: the caller's, who knows when they are.
    pub fn makes(&mut self) -> (PathBuf, Option<Metadata>) {
        (self.warm.object.clone(), self.warm.metadata.take())
    }

    /// Groups that rustc has read whatever the source names.
    pub fn read(&self) -> impl Iterator<Item = &str> {
        self.warm.read.iter().map(String::as_str)
    }

    /// Starts what links it to these groups, now that they are there.
    pub fn begin_to_link(&mut self, groups: Vec<PathBuf>) {
        if let Some(link) = &mut self.warm.link {
            link.begin(groups);
        }
    }

    /// Waits for the object or the errors.
    pub fn object(mut self) -> Compiled {
        let made = self.until(&["link", "obj"]);
        let Compiling { mut warm, at_work, said, mut errors, rest } = self;
        at_work.end(warm.child.id());
        warm.has_read();
        if made {
            let (mut child, said) = (warm.child, said);
            let _ = Builder::new().name("xlazy-rustc".into()).spawn(move || {
                said.into_iter().flatten().for_each(drop);
                child.wait()
            });
            errors.retain(|d| d.level == "warning" && d.code == UNUSED);
            let alone =
                reads_only_the_source(&warm.dep_info, 1 + usize::from(warm.begun.is_some())) && errors.is_empty();
            return match warm.link.map_or(Ok(()), Link::link) {
                Ok(()) => Compiled::Object(warm.object, alone, errors),
                Err(what) => Compiled::Errors(vec![Diagnostic::of_linking(&what)]),
            };
        }
        drop(said);
        let status = match warm.child.wait() {
            Ok(status) => status,
            Err(e) => return Compiled::Broken(e.to_string()),
        };
        if status.code().is_none() {
            clean_up_after(&warm.object);
        }
        // Written before the cell was found wrong, or before the interrupt.
        let _ = std::fs::remove_file(&warm.dep_info);
        errors.retain(|d| d.level.starts_with("error"));
        if at_work.is_stopped() {
            return Compiled::Stopped;
        }
        let what = format!("rustc: {status}\n{rest}");
        match (errors.is_empty(), status.code()) {
            (false, _) => Compiled::Errors(errors),
            (true, None) if rest.contains("overflowed its stack") => Compiled::TooDeep,
            (true, None) => Compiled::Died(what),
            (true, Some(_)) => Compiled::Broken(what),
        }
    }
}
