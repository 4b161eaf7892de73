//! What the process around says and gives: whether a cell is running, where notes go, where standard input comes from.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A node of the graph, by its number there.
type NodeId = u32;

static RUNNING: AtomicBool = AtomicBool::new(false);

/// Whether a cell is running in this process (and not, say, a test or a plain program that uses the crate).
pub fn running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

/// A cell begins or has ended.
pub fn set_running(running: bool) {
    RUNNING.store(running, Ordering::Relaxed);
}

/// What has the CPU count as so many devices; it is too late for it in this process.
pub fn cpu_devices(wanted: usize) -> String {
    match running() {
        true => format!("`%device CPU {wanted}`, the first thing after a restart of the kernel"),
        false => format!("XLAZY_CPU_DEVICES={wanted} in the environment of the kernel"),
    }
}

/// The payload that unwinds an interrupted cell. Only [`crate::sys::check_interrupt`] makes one.
pub struct Interrupted(pub(crate) ());

/// A line of standard input of at most so many bytes, or the number of an error; `None` where nobody can be asked.
pub type LineOfInput = fn(usize) -> Option<std::result::Result<Vec<u8>, i32>>;

/// What the session process gives; a plain program gives nothing.
pub struct Host {
    pub note: fn(&str),
    /// Something that front ends are told, as JSON.
    pub event: fn(&str, &str),
    pub line_of_input: LineOfInput,
    /// Takes what is written to standard output, in order with what is printed; false where that is a file, or nobody's.
    pub printed: fn(&[u8]) -> bool,
    /// Variables that are tensors, with the nodes they refer to. Only the cell thread knows them.
    pub variables: fn() -> Vec<(String, NodeId)>,
    /// As `variables`, with what models and optimizers hold.
    pub named: fn() -> Vec<Named>,
}

/// A tensor's name, and what it is known by.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// `x`, `net.fc1.weight`, `opt.exp_avg(net.fc1.weight)`.
    pub name: String,
    pub node: NodeId,
    pub holder: Holder,
}

/// What holds a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    Variable,
    Module,
    /// State of an optimizer, and the parameter that it is for.
    Optimizer(Option<NodeId>),
    /// The gradient that has accumulated in one that has this name.
    Gradient,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// Says who is around, once.
pub fn set(host: Host) {
    let _ = HOST.set(host);
}

/// Tells the user a line.
pub fn note(line: &str) {
    match HOST.get() {
        Some(host) => (host.note)(line),
        None => eprintln!("{line}"),
    }
}

/// Tells the front end of something, if there is one.
pub fn event(kind: &str, json: &str) {
    if let Some(host) = HOST.get() {
        (host.event)(kind, json);
    }
}

/// Variables that are tensors, by the nodes they refer to; none outside of cells.
pub fn variables() -> Vec<(String, NodeId)> {
    HOST.get().map(|host| (host.variables)()).unwrap_or_default()
}

/// All that variables hold, by name; none outside of cells.
pub fn named() -> Vec<Named> {
    HOST.get().map(|host| (host.named)()).unwrap_or_default()
}

pub(crate) fn line_of_input(size: usize) -> Option<std::result::Result<Vec<u8>, i32>> {
    (HOST.get()?.line_of_input)(size)
}

pub(crate) fn printed(bytes: &[u8]) -> bool {
    HOST.get().is_some_and(|host| (host.printed)(bytes))
}

/// The processor as a compiler sees it: what it is, what it can do, and how many threads.
pub fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let known = ["vendor_id", "model name", "flags", "Features", "CPU implementer", "CPU part"];
    let mut out = String::new();
    for name in known {
        out += info.lines().find(|l| l.split(':').next().is_some_and(|k| k.trim() == name)).unwrap_or_default();
        out.push('\n');
    }
    out + &format!("{:?} threads\n", std::thread::available_parallelism().ok())
}
