//! Where an installation keeps its parts, and which rustc and linker compile cells.
use super::linker::{self, Lld, TARGET, output};
use super::remedy::Came;
use crate::engine::Failure;
use crate::home;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything that running a cell needs from the disk.
#[derive(Clone, Debug)]
pub struct Installation {
    pub session_exe: PathBuf,
    /// `libxlazy.so`: what cells link to.
    pub runtime_so: PathBuf,
    /// Metadata of the runtime's own dependencies, which rustc reads beside it.
    pub deps_dir: PathBuf,
    pub plugins_dir: PathBuf,
    /// Python's packages, where it was installed as one of them.
    pub packages: Option<PathBuf>,
    pub toolchain: Toolchain,
    /// Where compiled cells are kept; `None` for a kernel that compiles every one anew.
    pub cell_cache: Option<PathBuf>,
    /// Where the session keeps compiled programs; `None` for one that has XLA compile every one anew.
    pub program_cache: Option<PathBuf>,
    /// Where dependencies of notebooks are built.
    pub dependencies: Option<PathBuf>,
    /// The pod whose devices programs run on, in the words of `%pod start`; `None` for this machine's own.
    pub pod: Option<String>,
    /// The notebook whose cells they are, where the front end knows it.
    pub notebook: Option<PathBuf>,
    /// What its cells find in `std::env::args()`, behind the notebook's name.
    pub arguments: Vec<String>,
    /// What cells write to the standard error is shown as a terminal shows it, to somebody who watches: libraries draw their bars.
    pub shown: bool,
}

/// A compiler without rustup in between, and a linker without `cc` in between where that is possible.
#[derive(Clone, Debug, PartialEq)]
pub struct Toolchain {
    pub sysroot: PathBuf,
    pub rustc: PathBuf,
    /// rust-lld and the folders where it finds libc and libgcc_s; without it rustc links through `cc`.
    pub lld: Option<Lld>,
}

impl Installation {
    /// The installed tree that `XLAZY_HOME` names or that the running binary lies in, else a cargo target folder.
    pub fn find() -> Result<Installation, Failure> {
        let exe = std::env::current_exe().and_then(|e| e.canonicalize()).map_err(|e| missing(&e.to_string()))?;
        let home = std::env::var_os("XLAZY_HOME").map(PathBuf::from);
        let default = std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".local/share/xlazy"));
        // A binary in a target folder is somebody's work in progress: it must not run another build's runtime.
        let built = built_beside(&exe);
        let beside = exe.parent().and_then(Path::parent).map(Path::to_owned);
        let mut tried = Vec::new();
        let trees = home.iter().chain(beside.iter()).map(|p| Tree::Installed(p.clone()));
        let trees = trees.chain(built.map(Tree::Built)).chain(default.map(Tree::Installed));
        for tree in trees {
            match tree.open() {
                Ok(mut found) => {
                    // Somebody else's plugins: a developer's, or those of a test.
                    if let Some(dir) = std::env::var_os("XLAZY_PLUGIN_DIR") {
                        found.plugins_dir = dir.into();
                    }
                    return Ok(found);
                }
                Err(what) => tried.push(what),
            }
        }
        tried.dedup();
        Err(missing(&tried.join(", ")))
    }

    /// The notebook that this kernel is for, where somebody says so.
    pub fn named_notebook(&self) -> Option<PathBuf> {
        let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let named = self.notebook.clone().or_else(|| var("XLAZY_NOTEBOOK")).or_else(|| var("JPY_SESSION_NAME"));
        named.filter(|p| p.extension().is_some_and(|e| e == "ipynb"))
    }

    /// What cargo would call the notebook's crate.
    pub fn crate_name(&self) -> Option<String> {
        let notebook = self.named_notebook()?;
        let stem = notebook.file_stem()?.to_string_lossy();
        Some(stem.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect())
    }

    /// `libstd` and `libxlazy.so`, for the session's loader.
    pub fn library_path(&self) -> std::ffi::OsString {
        let mut dirs = vec![self.toolchain.sysroot.join("lib/rustlib").join(TARGET).join("lib")];
        dirs.extend(self.runtime_so.parent().map(Path::to_owned));
        dirs.extend(std::env::var_os("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths));
        std::env::join_paths(dirs).unwrap_or_default()
    }

    /// The session's program, with what it finds its libraries and plugins by, for what it does besides cells.
    pub fn session(&self) -> Command {
        let mut command = Command::new(&self.session_exe);
        command.env("LD_LIBRARY_PATH", self.library_path()).envs(self.plugins());
        command
    }

    /// What tells a session where plugins are.
    pub fn plugins(&self) -> Vec<(&'static str, PathBuf)> {
        let beside = self.plugin_beside().map(|plugin| ("XLAZY_CPU_PLUGIN_BESIDE", plugin));
        [("XLAZY_PLUGIN_DIR", self.plugins_dir.clone())].into_iter().chain(beside).collect()
    }

    /// The plugin for CPUs that is named, or that pip has put beside xlazy where none was fetched.
    pub fn cpu_plugin(&self) -> Option<PathBuf> {
        let named = std::env::var_os("XLAZY_CPU_PLUGIN").filter(|named| !named.is_empty()).map(PathBuf::from);
        named.or_else(|| self.plugin_beside())
    }

    fn plugin_beside(&self) -> Option<PathBuf> {
        let packages = self.packages.as_ref().filter(|_| !self.plugins_dir.join("cpu/libpjrt_cpu.so").is_file())?;
        Some(packages.join("fastatomstruct_xla_cpu/libpjrt_cpu.so")).filter(|plugin| plugin.is_file())
    }
}

/// The folder of Python's packages of which a tree is a part.
fn packages(tree: &Path) -> Option<PathBuf> {
    let package = tree.canonicalize().ok()?.parent()?.to_owned();
    package.join("__main__.py").is_file().then(|| package.parent().map(Path::to_owned))?
}

enum Tree {
    Installed(PathBuf),
    /// A folder such as `target/release`.
    Built(PathBuf),
}

/// The target folder's profile folder that holds the running binary, one of its tests or one of its examples.
fn built_beside(exe: &Path) -> Option<PathBuf> {
    let dir = exe.parent()?;
    let inner = dir.file_name().is_some_and(|n| n == "deps" || n == "examples");
    let dir = if inner { dir.parent()? } else { dir };
    dir.join("deps").is_dir().then(|| dir.to_owned())
}

impl Tree {
    fn open(&self) -> Result<Installation, String> {
        let packages = if let Tree::Installed(home) = self { packages(home) } else { None };
        let (session_exe, runtime_so, deps_dir, plugins_dir, known) = match self {
            Tree::Installed(home) => (
                home.join("bin/xlazy-session"),
                home.join("lib/libxlazy.so"),
                home.join("lib/deps"),
                // What is fetched outlives a package's next version, and does not belong into its folder.
                packages.as_ref().and_then(|_| home::home()).as_ref().unwrap_or(home).join("plugins"),
                read_toolchain(home),
            ),
            Tree::Built(dir) => (
                dir.join("xlazy-session"),
                dir.join("libxlazy.so"),
                dir.join("deps"),
                dir.parent().unwrap_or(dir).join("home/plugins"),
                None,
            ),
        };
        for file in [&session_exe, &runtime_so] {
            if !file.is_file() {
                return Err(format!("no {}", file.display()));
            }
        }
        let toolchain = match known {
            Some(toolchain) => toolchain,
            None => Toolchain::find().map_err(|e| e.message)?,
        };
        Ok(Installation {
            session_exe,
            runtime_so,
            deps_dir,
            plugins_dir,
            packages,
            toolchain,
            cell_cache: home::cell_cache(),
            program_cache: home::program_cache(),
            dependencies: home::dependencies(),
            pod: std::env::var("XLAZY_POD").ok().filter(|pod| !pod.trim().is_empty()),
            notebook: None,
            arguments: Vec::new(),
            shown: false,
        })
    }
}

impl Toolchain {
    /// Asks `rustc` and `cc` where their parts are. 20–50 ms: an installation keeps the answer in `runtime.json`.
    pub fn find() -> Result<Toolchain, Failure> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let sysroot = output(Command::new(&rustc).args(["--print", "sysroot"]))
            .ok_or_else(|| failure(&format!("{} does not run", rustc.display())))?;
        let sysroot = PathBuf::from(sysroot);
        let rustc = sysroot.join("bin/rustc");
        if !rustc.is_file() {
            return Err(failure(&format!("there is no rustc at {}", rustc.display())));
        }
        Ok(Toolchain { lld: linker::find(&sysroot), rustc, sysroot })
    }

    /// What `runtime.json` keeps of it.
    pub fn to_json(&self) -> Value {
        // What stands for a C compiler lies in a cache, which comes and goes.
        let lld = self.lld.as_ref().filter(|l| l.by_name.is_none());
        let lld = lld.map(|l| serde_json::json!({ "exe": l.exe, "search": l.search }));
        serde_json::json!({ "sysroot": self.sysroot, "rustc": self.rustc, "lld": lld })
    }
}

/// The toolchain that an installation's `runtime.json` names, if it is still there. One that was installed along is named as seen
/// from the installation.
fn read_toolchain(home: &Path) -> Option<Toolchain> {
    let path = home.join("runtime.json");
    let json: Value = serde_json::from_str(&xlazy_mime::regular::read_to_string(path).ok()?).ok()?;
    let known = json.get("toolchain")?;
    let there = |v: &Value| match PathBuf::from(v.as_str()?) {
        path if path.is_absolute() => Some(path),
        along => home.join(along).canonicalize().ok(),
    };
    let file = |v: &Value| there(v).filter(|p| p.is_file());
    let sysroot = there(known.get("sysroot")?)?;
    let lld = known.get("lld").filter(|l| !l.is_null()).and_then(|l| {
        let search = l.get("search")?.as_array()?.iter().filter_map(|d| d.as_str().map(PathBuf::from)).collect();
        Some(Lld { exe: file(l.get("exe")?)?, search, by_name: None })
    });
    Some(Toolchain { lld: lld.or_else(|| linker::find(&sysroot)), rustc: file(known.get("rustc")?)?, sysroot })
}

fn missing(what: &str) -> Failure {
    let again = Came::this().again();
    failure(&format!("xlazy is not completely installed ({what}); {again}, then `xlazy doctor`"))
}

fn failure(message: &str) -> Failure {
    let traceback = vec![format!("NotInstalled: {message}")];
    Failure { name: "NotInstalled".into(), message: message.into(), traceback }
}
