//! `xlazy doctor`: what is installed, whether it works, and what to do about what does not.
use super::describe_toolchain::RustcVersion;
use super::install::{spec_folder, user_data_folder};
use super::options::json_flag;
use super::report::say;
use super::transport::{Reached, reached, user_config_folder};
use super::{chips, engines, plugins};
use crate::eval::install::Installation;
use crate::eval::remedy::Came;
use crate::terminal;
use clap::{ArgMatches, Command};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use xlazy_mime::gpu::{self, Gpu};

pub fn command() -> Command {
    Command::new("doctor")
        .about("Check the installation: what is there, what works, and what to do about the rest")
        .arg(json_flag().help("Print the checks as one JSON object"))
        .after_help("Exit code: 0, or 1 when a check failed. Warnings do not count.")
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    let as_json = matches.get_flag("json");
    let colours = terminal::colours(&io::stdout());
    let installation = Installation::find().map_err(|f| f.message);
    let mut checks = Vec::new();
    for check in CHECKS {
        for found in check(installation.as_ref()) {
            if !as_json {
                say(&terminal::plain_unless(colours, &found.to_line()));
            }
            checks.push(found);
        }
    }
    let failed = checks.iter().filter(|c| c.status == Status::Fail).count();
    let warned = checks.iter().filter(|c| c.status == Status::Warn).count();
    if as_json {
        let list: Vec<Value> = checks.iter().map(Check::to_json).collect();
        say(&format!("{:#}", json!({"ok": failed == 0, "checks": list})));
    } else {
        match (failed, warned) {
            (0, 0) => say("everything works"),
            (0, n) => say(&format!("it works; {n} to look at")),
            (n, _) => say(&format!("{n} failed")),
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Status {
    Ok,
    Warn,
    Fail,
}

struct Check {
    name: &'static str,
    status: Status,
    found: String,
    /// What to do about it, empty where there is nothing to do.
    advice: String,
}

impl Check {
    fn new(name: &'static str, status: Status, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { name, status, found: found.into(), advice: advice.into() }
    }

    fn to_line(&self) -> String {
        let status = match self.status {
            Status::Ok => "\x1b[32mok  \x1b[0m",
            Status::Warn => "\x1b[33mwarn\x1b[0m",
            Status::Fail => "\x1b[31mFAIL\x1b[0m",
        };
        let mut line = format!("{status}  {:<12} {}", self.name, self.found);
        if !self.advice.is_empty() {
            line.push_str(&format!("\n{:19}→ {}", "", self.advice));
        }
        line
    }

    fn to_json(&self) -> Value {
        let status = match self.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "fail",
        };
        json!({"name": self.name, "status": status, "found": self.found, "advice": self.advice})
    }
}

type Found<'a> = Result<&'a Installation, &'a String>;

/// Every check, in the order they are shown: each needs what comes before it.
const CHECKS: &[fn(Found) -> Vec<Check>] =
    &[xlazy, installation, rustc, linker, cell, plugins_load, tpus, gpus, jupyter, kernelspec, transport, disk];

fn xlazy(_: Found) -> Vec<Check> {
    let exe = std::env::current_exe().map(|p| p.display().to_string()).unwrap_or_default();
    vec![Check::new("xlazy", Status::Ok, format!("{} at {exe}", env!("CARGO_PKG_VERSION")), "")]
}

fn installation(found: Found) -> Vec<Check> {
    vec![match found {
        Ok(i) => Check::new("runtime", Status::Ok, i.runtime_so.display().to_string(), ""),
        Err(why) => Check::new("runtime", Status::Fail, why, ""),
    }]
}

/// Cells link to the runtime, which works with the very rustc that built it and no other.
fn rustc(found: Found) -> Vec<Check> {
    let Ok(installation) = found else {
        return Vec::new();
    };
    let rustc = &installation.toolchain.rustc;
    let Some(RustcVersion { release, commit }) = RustcVersion::of(rustc) else {
        let why = format!("{} does not run", rustc.display());
        return vec![Check::new("rustc", Status::Fail, why, Came::this().compiler())];
    };
    let built = home(installation).and_then(|h| xlazy_mime::regular::read_to_string(h.join("runtime.json")).ok());
    let built: Value = built.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let check = match built.get("rustc_commit").and_then(Value::as_str) {
        None => {
            Check::new("rustc", Status::Ok, format!("{release} (a build tree keeps no record of its compiler)"), "")
        }
        Some(c) if c == commit => {
            Check::new("rustc", Status::Ok, format!("{release}, the one that built the runtime"), "")
        }
        Some(_) => {
            let with = built.get("rustc").and_then(Value::as_str).unwrap_or("another one");
            let found = format!("{} is {release}, the runtime was built with {with}", rustc.display());
            Check::new("rustc", Status::Fail, found, format!("{}: the two have to fit", Came::this().again()))
        }
    };
    vec![check]
}

fn linker(found: Found) -> Vec<Check> {
    let Ok(installation) = found else {
        return Vec::new();
    };
    vec![match (&installation.toolchain.lld, answer(Path::new("cc"), &["--version"])) {
        (Some(lld), Some(_)) => Check::new("linker", Status::Ok, format!("rust-lld at {}", lld.exe.display()), ""),
        (Some(lld), None) => {
            let found = format!("rust-lld at {}; crates that bring C along want a C compiler", lld.exe.display());
            Check::new("linker", Status::Ok, found, "")
        }
        (None, Some(cc)) => {
            let found = format!("no rust-lld, so cells link through cc ({}), which is slower", first_line(&cc));
            Check::new("linker", Status::Warn, found, Came::this().linker())
        }
        (None, None) => Check::new(
            "linker",
            Status::Fail,
            "neither rust-lld nor cc",
            format!("{}; or install a C compiler: apt install gcc libc6-dev", Came::this().linker()),
        ),
    }]
}

/// The whole path of a cell that needs no plugin: generate, compile, load, run, display.
fn cell(found: Found) -> Vec<Check> {
    if found.is_err() {
        return Vec::new();
    }
    let again = Came::this().again();
    let advice = format!("try `xlazy eval '40 + 2'` and read its error; where something is missing, {again}");
    let tried = within(Duration::from_secs(60), || {
        let engine = engines::start().map_err(|f| f.message)?;
        let start = Instant::now();
        let answer = engine.evaluate("40 + 2").map_err(|f| format!("{}: {}", f.name, f.message));
        let took = start.elapsed();
        engine.shutdown();
        match answer?.plain() {
            "42" => Ok(took),
            other => Err(format!("40 + 2 showed {other:?}")),
        }
    });
    vec![match tried {
        Some(Ok(took)) => Check::new("first cell", Status::Ok, format!("ran in {} ms", took.as_millis()), ""),
        Some(Err(why)) => Check::new("first cell", Status::Fail, first_line(&why), advice),
        None => Check::new("first cell", Status::Fail, "gave no answer for 60 s", advice),
    }]
}

/// Each plugin is loaded by a session process of its own: one that aborts takes nothing else along.
fn plugins_load(found: Found) -> Vec<Check> {
    let Ok(installation) = found else { return Vec::new() };
    let plugins = plugins::installed(installation);
    if plugins.is_empty() {
        let found = format!("no plugin in {}", installation.plugins_dir.display());
        return vec![Check::new("plugin", Status::Fail, found, "xlazy plugins install cpu")];
    }
    plugins.iter().map(|p| load_plugin(installation, p)).collect()
}

fn load_plugin(installation: &Installation, plugin: &plugins::Plugin) -> Check {
    let name = &plugin.name;
    let bad = |why: String| {
        let advice =
            "`xlazy plugins install cpu --fetch` fetches the CPU plugin again; another one's folder can be removed";
        Check::new("plugin", Status::Fail, format!("{name}: {why}"), advice)
    };
    let child = installation
        .session()
        .arg("--probe")
        .arg(&plugin.library)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = match child {
        Ok(child) => child,
        Err(e) => return bad(format!("{} could not be started: {e}", installation.session_exe.display())),
    };
    let id = child.id();
    match within(Duration::from_secs(120), move || child.wait_with_output()) {
        None => {
            let _ = kill(Pid::from_raw(id as i32), Signal::SIGKILL);
            bad("did not load within 120 s".to_owned())
        }
        Some(Err(e)) => bad(e.to_string()),
        Some(Ok(done)) => {
            let (says, complains) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            match (done.status.success(), says.trim(), complains.trim()) {
                (true, "", _) => {
                    let found = format!("{name}: this session program cannot try plugins");
                    Check::new("plugin", Status::Warn, found, "")
                }
                (true, says, _) => Check::new("plugin", Status::Ok, format!("{name}: {}", first_line(says)), ""),
                (false, _, "") => bad(format!("loading it ended with {}", done.status)),
                (false, _, complains) => bad(first_line(complains)),
            }
        }
    }
}

/// The plugin that others may have brought, too: its library, and what names that.
fn brought(found: Found, name: &str) -> Option<(PathBuf, String)> {
    plugins::brought(found.ok()?).into_iter().find(|(of, _)| *of == name).map(|(_, place)| place)
}

fn tpus(found: Found) -> Vec<Check> {
    let chips = chips::there(Path::new("/dev"));
    tpu_of(&chips, &chips::holders(&chips), brought(found, "tpu")).into_iter().collect()
}

/// A chip that no library is there for, or that something else holds, is why a TPU that is there cannot be used.
fn tpu_of(chips: &[PathBuf], held: &[chips::Holder], library: Option<(PathBuf, String)>) -> Option<Check> {
    let named = library.map(|(library, from)| format!("libtpu {} (from {from})", library.display()));
    let list = |parts: Vec<String>| parts.join(", ");
    let who = |h: &chips::Holder| format!("{} is held by process {} ({})", h.chip.display(), h.pid, h.name);
    let found = match (chips, held) {
        ([], _) => {
            let found = format!("{}; no chip here", named?);
            return Some(Check::new("TPU", Status::Ok, found, "%tpu compiles for TPUs with it"));
        }
        (_, []) => {
            let there = list(chips.iter().map(|c| c.display().to_string()).collect());
            format!("{there}; no process of yours has one open")
        }
        _ => list(held.iter().map(who).collect()),
    };
    let held_by = "libtpu gives a chip to one process: end that one, or shut its notebook's kernel down";
    Some(match (named, held) {
        (None, _) => {
            let found = format!("{found}; libtpu, which runs programs there, is not here");
            Check::new("TPU", Status::Warn, found, "xlazy plugins install tpu")
        }
        (Some(named), []) => {
            let advice = "PJRT_DEVICE=TPU or %device TPU runs programs there";
            Check::new("TPU", Status::Ok, format!("{found}; {named}"), advice)
        }
        (Some(named), _) => Check::new("TPU", Status::Warn, format!("{found}; {named}"), held_by),
    })
}

/// A GPU that no plugin is there for; or CUDA's tools, whose user may mean to have one.
fn gpus(found: Found) -> Vec<Check> {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    let named = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(var).map(PathBuf::from);
    let tools = named.chain(["/usr/local/cuda".into(), "/opt/cuda".into()]).find(|d| d.is_dir());
    let smi = || std::env::split_paths(&var("PATH")?).map(|d| d.join("nvidia-smi")).find(|p| p.is_file());
    let driver = || {
        let folders = var("LD_LIBRARY_PATH").map(|v| std::env::split_paths(&v).collect::<Vec<_>>()).unwrap_or_default();
        let usual = ["/usr/lib64-nvidia", "/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"];
        folders.into_iter().chain(usual.map(PathBuf::from)).map(|d| d.join("libcuda.so.1")).find(|p| p.exists())
    };
    let toolkit = tools.or_else(smi).or_else(driver);
    gpus_of(&gpu::nvidia(Path::new("/")), toolkit.as_deref(), brought(found, "cuda12")).into_iter().collect()
}

fn gpus_of(gpu: &Gpu, toolkit: Option<&Path>, plugin: Option<(PathBuf, String)>) -> Option<Check> {
    const INSTALL: &str = "xlazy plugins install cuda12";
    let found = match (gpu, toolkit) {
        (Gpu::Driven { devices, driver }, _) => match driver {
            Some(driver) => format!("{}, driver {driver}", devices.join(", ")),
            None => devices.join(", "),
        },
        (Gpu::Undriven, _) => {
            let advice = "install NVIDIA's driver; `nvidia-smi` lists the GPU where it works";
            return Some(Check::new("GPU", Status::Warn, "an NVIDIA GPU without a driver", advice));
        }
        (Gpu::None, Some(cuda)) => format!("CUDA at {}, and no GPU to be seen", cuda.display()),
        (Gpu::None, None) => return None,
    };
    Some(match (plugin, gpu) {
        (Some((library, from)), _) => {
            let found = format!("{found}; XLA's plugin {} (from {from})", library.display());
            Check::new("GPU", Status::Ok, found, "PJRT_DEVICE=CUDA or %device CUDA runs programs there")
        }
        (None, Gpu::None) => Check::new("GPU", Status::Ok, found, format!("for a machine with one: {INSTALL}")),
        (None, _) => Check::new("GPU", Status::Warn, format!("{found}; XLA's plugin for it is not here"), INSTALL),
    })
}

fn jupyter(found: Found) -> Vec<Check> {
    let own = found.ok().and_then(home).map(|h| h.join("jupyter/bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(own);
    let lab = places.map(|d| d.join("jupyter-lab")).find(|p| p.is_file());
    vec![match lab {
        Some(path) => Check::new("JupyterLab", Status::Ok, path.display().to_string(), ""),
        None => Check::new(
            "JupyterLab",
            Status::Warn,
            "not found; the REPL and `xlazy run` work without it",
            Came::this().jupyter(),
        ),
    }]
}

/// The Python environments in which there may be a Jupyter.
fn environments() -> impl Iterator<Item = PathBuf> {
    // One that xlazy is a part of need not be active.
    let own = std::env::current_exe().and_then(|exe| exe.canonicalize()).unwrap_or_default();
    let above: Vec<PathBuf> = own.ancestors().skip(1).map(PathBuf::from).collect();
    ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(std::env::var_os).map(PathBuf::from).chain(above)
}

fn kernelspec(_: Found) -> Vec<Check> {
    let mut places: Vec<PathBuf> = user_data_folder().into_iter().collect();
    let prefixes = environments().chain(["/usr/local".into(), "/usr".into()]);
    places.extend(prefixes.map(|p| p.join("share/jupyter")));
    let Some(path) = places.iter().map(|p| spec_folder(p).join("kernel.json")).find(|p| p.is_file()) else {
        return vec![Check::new("kernelspec", Status::Warn, "Jupyter does not know xlazy yet", "xlazy install")];
    };
    let spec: Value =
        xlazy_mime::regular::read_to_string(&path).ok().and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default();
    let starts = PathBuf::from(spec.pointer("/argv/0").and_then(Value::as_str).unwrap_or_default());
    let same = |a: &Path| a.canonicalize().ok() == std::env::current_exe().ok().and_then(|e| e.canonicalize().ok());
    // What came by pip runs in the Python that Jupyter itself runs in.
    let by_pip = starts == Path::new("python") && spec.pointer("/argv/2").is_some_and(|module| module == "xlazy");
    vec![if by_pip {
        Check::new("kernelspec", Status::Ok, format!("{}, by pip", path.display()), "")
    } else if !starts.is_file() {
        let found = format!("{} starts {}, which is not there", path.display(), starts.display());
        Check::new("kernelspec", Status::Fail, found, "xlazy install")
    } else if same(&starts) {
        Check::new("kernelspec", Status::Ok, path.display().to_string(), "")
    } else {
        let found = format!("{} starts another xlazy, {}", path.display(), starts.display());
        Check::new("kernelspec", Status::Warn, found, "xlazy install, if Jupyter should start this one")
    }]
}

/// Whether others on this machine can read what goes between Jupyter and its kernels.
fn transport(found: Found) -> Vec<Check> {
    let own = found.ok().and_then(home).map(|h| h.join("jupyter")).filter(|j| j.is_dir());
    let prefixes = environments().map(|p| p.join("etc/jupyter"));
    let system = ["/usr/local/etc/jupyter".into(), "/etc/jupyter".into()];
    let folders: Vec<PathBuf> = user_config_folder().into_iter().chain(prefixes).chain(system).collect();
    let mut checks = vec![reached_by("Jupyter", &folders)];
    if let Some(own) = own {
        // It reads the user's configuration too, and first.
        let folders: Vec<PathBuf> = user_config_folder().into_iter().chain([own.join("etc/jupyter")]).collect();
        checks.push(reached_by("the JupyterLab that install.sh made", &folders));
    }
    checks
}

fn reached_by(who: &str, folders: &[PathBuf]) -> Check {
    let says = |what: &str, file: &Path| format!("{who}: {what}, says {}", file.display());
    match reached(folders) {
        Reached::Ipc(file) => {
            Check::new("transport", Status::Ok, says("Unix sockets, for their user alone", &file), "")
        }
        Reached::Encrypted(file) => Check::new("transport", Status::Ok, says("TCP, encrypted", &file), ""),
        Reached::Unknown(file) => {
            let found = format!("{who}: {} sets it", file.display());
            Check::new("transport", Status::Ok, found, "")
        }
        Reached::Plain => Check::new(
            "transport",
            Status::Warn,
            format!("{who}: TCP as it is, so other users of this machine can read code and output"),
            "xlazy install --ipc; or set c.KernelManager.transport = \"ipc\" in jupyter_server_config.py, or, with \
             jupyter_client 8.9 or later, c.KernelManager.transport_encryption = \"required\"",
        ),
    }
}

fn disk(found: Found) -> Vec<Check> {
    let place = found.ok().and_then(|i| i.runtime_so.parent().map(Path::to_owned)).unwrap_or_else(std::env::temp_dir);
    let Ok(figures) = nix::sys::statvfs::statvfs(&place) else {
        return Vec::new();
    };
    let free = figures.blocks_available() * figures.fragment_size();
    let text = format!("{} free at {}", xlazy_mime::units::memory(free), place.display());
    let (status, advice) = match free >> 20 {
        0..200 => (Status::Fail, "make room: cells and compiled programs are kept on disk"),
        200..2048 => (Status::Warn, "plugins, and a build of the runtime, take about 2 GiB"),
        _ => (Status::Ok, ""),
    };
    vec![Check::new("disk", status, text, advice)]
}

/// The folder of an installation; a build tree has none.
fn home(installation: &Installation) -> Option<PathBuf> {
    let bin = installation.session_exe.parent()?;
    (bin.file_name()? == "bin").then(|| bin.parent().map(Path::to_owned))?
}

fn answer(program: &Path, args: &[&str]) -> Option<String> {
    let done =
        std::process::Command::new(program).args(args).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// What the work answers, or nothing if it takes longer than that; it is then left behind.
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, news) = channel();
    std::thread::spawn(move || done.send(work()));
    news.recv_timeout(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tpu_is_told_with_its_library_and_who_holds_it() {
        let chips = [PathBuf::from("/dev/accel0")];
        let held = [chips::Holder { pid: 7, name: "python3".into(), chip: chips[0].clone() }];
        let colab = || Some((PathBuf::from("/p/libtpu.so"), "the system's Python".to_owned()));
        let told = |chips: &[PathBuf], held: &[chips::Holder], library| {
            tpu_of(chips, held, library).map(|c| (c.status, c.found, c.advice))
        };
        let (status, found, advice) = told(&chips, &[], None).unwrap();
        assert_eq!((status, advice.as_str()), (Status::Warn, "xlazy plugins install tpu"), "{found}");
        let (status, found, _) = told(&chips, &[], colab()).unwrap();
        assert_eq!(status, Status::Ok);
        assert_eq!(
            found,
            "/dev/accel0; no process of yours has one open; libtpu /p/libtpu.so (from the system's Python)"
        );
        let (status, found, advice) = told(&chips, &held, colab()).unwrap();
        assert!(status == Status::Warn && found.contains("held by process 7 (python3); libtpu /p/"), "{found}");
        assert!(advice.contains("end that one"), "{advice}");
        assert_eq!(told(&chips, &held, None).unwrap().2, "xlazy plugins install tpu");
        let (status, found, _) = told(&[], &[], colab()).unwrap();
        assert!(status == Status::Ok && found.ends_with("(from the system's Python); no chip here"), "{found}");
        assert!(told(&[], &[], None).is_none(), "nothing to do with TPUs");
    }

    #[test]
    fn a_gpu_without_the_plugin_is_told_the_one_command() {
        let gpu = Gpu::Driven { devices: vec!["/dev/nvidia0".into()], driver: Some("550.54".into()) };
        let plugin = || Some((PathBuf::from("/p/xla_cuda_plugin.so"), "VIRTUAL_ENV".to_owned()));
        let told = |gpu: &Gpu, toolkit: Option<&str>, plugin| {
            gpus_of(gpu, toolkit.map(Path::new), plugin).map(|c| (c.status, c.found, c.advice))
        };
        let (status, found, advice) = told(&gpu, None, None).unwrap();
        assert_eq!((status, advice.as_str()), (Status::Warn, "xlazy plugins install cuda12"));
        assert_eq!(found, "/dev/nvidia0, driver 550.54; XLA's plugin for it is not here");
        let (status, found, _) = told(&gpu, Some("/usr/local/cuda"), plugin()).unwrap();
        assert!(status == Status::Ok && found.ends_with("/p/xla_cuda_plugin.so (from VIRTUAL_ENV)"), "{found}");
        let (status, found, advice) = told(&Gpu::None, Some("/usr/local/cuda"), None).unwrap();
        assert!(status == Status::Ok && found.starts_with("CUDA at /usr/local/cuda"), "{found}");
        assert!(advice.ends_with("xlazy plugins install cuda12"), "{advice}");
        assert_eq!(told(&Gpu::Undriven, None, plugin()).unwrap().0, Status::Warn);
        assert!(told(&Gpu::None, None, plugin()).is_none(), "nothing to do with GPUs");
    }
}
