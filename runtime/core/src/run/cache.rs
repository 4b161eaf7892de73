//! The executable cache: by hash, compared in full, bounded by the size of the code, least recently used goes first.
use crate::clock::Took;
use crate::emit::Checked;
use crate::ir::{Key, Mark, Params, Step};
use crate::mesh::Sharding;
use crate::options::Options;
use crate::pod::{Buffer, LoadedExecutable};
use crate::ty::TypeRef;
use crate::{device, metrics};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use xlazy_mime::count;

/// The bytes of one dtype's scalars, and the buffer that holds them, on each device.
type Pack = (Vec<u8>, Arc<[Buffer]>);

/// A compiled program and how to feed it.
pub struct Program {
    pub key: Key,
    /// None in dry mode alone.
    pub executable: Option<LoadedExecutable>,
    pub params: Params,
    pub root_types: Vec<TypeRef>,
    pub text: String,
    /// The ops that it runs, with the lines of the run that it was compiled for.
    pub steps: Arc<[Step]>,
    /// Where the parts of the text are from.
    pub marks: Vec<Mark>,
    /// What it looks for while it runs; what it found is its last result.
    pub checks: Arc<[Checked]>,
    pub nodes: usize,
    pub donated: usize,
    pub options: Options,
    /// Which device it was compiled for, or the number of the mesh.
    pub device: u8,
    /// Of a program for a mesh: how its results lie on it.
    pub results: Vec<Sharding>,
    /// The scalars of the last run with their buffers: a learning rate that does not change is not sent again.
    pub packs: Mutex<Vec<Option<Pack>>>,
    pub took: Took,
    bytes: usize,
    /// Bytes that runs copied since what the program donates was held.
    copied: AtomicUsize,
}

impl Program {
    pub fn new(
        key: Key,
        executable: Option<LoadedExecutable>,
        params: Params,
        root_types: Vec<TypeRef>,
        text: String,
        nodes: usize,
        donated: usize,
    ) -> Program {
        metrics::CREATE_COMPILE_HANDLES.add(1);
        // A plugin that does not know its code's size still counts: the text stands in for it.
        let code = executable.as_ref().and_then(|e| e.code_size().ok()).unwrap_or(0);
        let bytes = code + text.len() + key.words.len() * 8;
        let packs = Mutex::new(vec![None; params.packs.len()]);
        let (steps, marks, checks) = (Arc::new([]), vec![], Arc::new([]));
        let (options, device, took, copied) = (Options::DEFAULT, 0, Took::default(), AtomicUsize::default());
        Program {
            key,
            executable,
            params,
            root_types,
            text,
            steps,
            marks,
            checks,
            nodes,
            donated,
            options,
            device,
            results: vec![],
            packs,
            took,
            bytes,
            copied,
        }
    }

    /// A run copied so many bytes that something holds.
    pub fn copied(&self, bytes: usize) {
        self.copied.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        metrics::DESTROY_COMPILE_HANDLES.add(1);
    }
}

#[derive(Default)]
struct Cache {
    /// Hashes of programs that were evicted: compiling one of them again has that cause and no other.
    evicted: HashSet<u128>,
    programs_at_most: Option<usize>,
    programs: HashMap<u128, (Arc<Program>, u64)>,
    clock: u64,
    bytes: usize,
    last: Option<Arc<Program>>,
}

static CACHE: Mutex<Option<Cache>> = Mutex::new(None);

fn with<R>(f: impl FnOnce(&mut Cache) -> R) -> R {
    let mut c = CACHE.lock().unwrap_or_else(|p| p.into_inner());
    f(c.get_or_insert_with(Cache::default))
}

/// Bytes of compiled code that the cache keeps; `XLAZY_CACHE_BYTES` sets it.
fn capacity() -> usize {
    static BYTES: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *BYTES.get_or_init(|| std::env::var("XLAZY_CACHE_BYTES").ok().and_then(|v| v.parse().ok()).unwrap_or(1 << 30))
}

/// Bytes that a program's runs may copy in all, before one of their own is compiled for those that keep their buffers: copying
/// this takes about as long as the smallest compilation.
const COPIED: usize = 64 << 20;

/// The program of this key, or one that computes the same and donates some of what this one keeps: PJRT copies what may not
/// be donated, which costs less than another program. A step that goes on to keep its buffers gets its own, so that it does not
/// copy for ever.
pub fn look_up(key: &Key) -> Option<Arc<Program>> {
    with(|c| {
        c.clock += 1;
        let (clock, hash) = (c.clock, c.find(key)?);
        let (program, used) = c.programs.get_mut(&hash)?;
        *used = clock;
        c.last = Some(program.clone());
        Some(program.clone())
    })
}

/// How often a program ran, while it is cached.
pub fn runs(hash: u128) -> Option<u32> {
    with(|c| c.programs.get(&hash).map(|(p, _)| p.took.runs()))
}

/// Whether a program of this key is cached, without counting as a use.
pub fn contains(key: &Key) -> bool {
    with(|c| c.find(key).is_some())
}

pub fn insert(program: Program) -> Arc<Program> {
    let program = Arc::new(program);
    with(|c| {
        c.clock += 1;
        c.bytes += program.bytes;
        if let Some((old, _)) = c.programs.insert(program.key.hash, (program.clone(), c.clock)) {
            c.bytes -= old.bytes;
        }
        c.last = Some(program.clone());
        c.evicted.remove(&program.key.hash);
        c.shrink();
    });
    device::release_what_loading_took();
    program
}

impl Cache {
    // Two keys with one hash are told apart by comparing them in full.
    fn find(&self, key: &Key) -> Option<u128> {
        if self.programs.get(&key.hash).is_some_and(|(p, _)| p.key.words == key.words) {
            return Some(key.hash);
        }
        let serves = |p: &Program| p.key.gives_more_than(key) && p.copied.load(Ordering::Relaxed) < COPIED;
        self.programs.iter().find(|(_, (p, _))| serves(p)).map(|(hash, _)| *hash)
    }

    fn most(&self) -> usize {
        self.programs_at_most.unwrap_or_else(default_programs)
    }

    // The least recently used go first; the newest always stays.
    fn shrink(&mut self) {
        while self.programs.len() > 1 && (self.bytes > capacity() || self.programs.len() > self.most()) {
            let Some(oldest) = self.programs.iter().min_by_key(|(_, (_, used))| *used).map(|(h, _)| *h) else { return };
            if let Some((old, _)) = self.programs.remove(&oldest) {
                self.bytes -= old.bytes;
                self.evicted.insert(oldest);
            }
        }
    }
}

/// Keeps at most `programs` compiled programs (at least 1), besides the bound on their size; the default is 2048, or what
/// `XLAZY_COMPILATION_CACHE_SIZE` says (torch_xla: `XLA_COMPILATION_CACHE_SIZE`).
pub fn set_cache_capacity(programs: usize) {
    with(|c| {
        c.programs_at_most = Some(programs.max(1));
        c.shrink();
    });
}

fn default_programs() -> usize {
    static N: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let set = || std::env::var("XLAZY_COMPILATION_CACHE_SIZE").ok().and_then(|v| v.parse().ok());
    *N.get_or_init(|| set().unwrap_or(2048))
}

/// Forgets all programs and which were evicted; for tests that begin anew.
pub fn forget_programs() {
    let programs = with(std::mem::take);
    drop(programs);
}

/// What the explainer is told of the cache.
pub struct Room {
    /// Whether the program in question was compiled before and evicted.
    pub evicted: bool,
    /// How much the cache holds, in words.
    pub capacity: String,
    /// How many programs at most.
    pub programs: usize,
    /// Whether another program takes the place of one that is there.
    pub full: bool,
}

pub fn room(hash: u128) -> Room {
    with(|c| {
        let capacity = format!(
            "{} of at most {} and {} MB of code",
            c.programs.len(),
            count(c.most(), "program"),
            self::capacity() >> 20
        );
        let one = c.bytes / c.programs.len().max(1);
        let full = c.programs.len() >= c.most() || c.bytes + one > self::capacity();
        Room { evicted: c.evicted.contains(&hash), capacity, programs: c.most(), full }
    })
}

/// The program that ran last.
pub fn last_program() -> Option<Arc<Program>> {
    with(|c| c.last.clone())
}

/// Looking a program up makes it the last one; who does not run it says so here.
pub fn set_last(program: Option<Arc<Program>>) {
    with(|c| c.last = program);
}
