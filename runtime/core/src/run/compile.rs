//! Compilations, each on a thread of its own: PJRT cannot stop one, so an interrupted cell leaves it to itself, and whoever
//! needs the same program meanwhile joins it.
use super::cache::{self, Program};
use super::disk;
use super::event::{Costs, Memory, Origin};
use super::sharded;
use super::witness::Case;
use crate::clock::watching;
use crate::device::{LOOK_UP, client, is_dry};
use crate::emit::Checked;
use crate::ir::{Cut, Key, Mark, Params, Step, located};
use crate::mesh::Mesh;
use crate::options::Options;
use crate::pod::LoadedExecutable;
use crate::text::told;
use crate::ty::TypeRef;
use crate::{Error, Result, metrics};
use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};
use xlazy_pjrt::CompileOptions;

/// The program, and what making it took.
pub(super) type Compiled = Result<(Arc<Program>, Costs)>;

/// A program that is not in the cache: what the compiler needs of it.
pub(super) struct Wanted {
    pub key: Key,
    pub text: String,
    pub steps: Arc<[Step]>,
    pub marks: Vec<Mark>,
    pub checks: Vec<Checked>,
    pub flops: f64,
    pub params: Params,
    pub donated: usize,
    pub lower: Duration,
}

struct Job {
    key: Key,
    outcome: Mutex<Option<Compiled>>,
    ended: Condvar,
}

static JOBS: Mutex<Vec<Arc<Job>>> = Mutex::new(Vec::new());
/// How many there are, so that a launch need not take the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// XLA recurses deeply over long programs.
pub(super) const STACK: usize = 64 << 20;

fn jobs() -> MutexGuard<'static, Vec<Arc<Job>>> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for this program if it is being compiled. To be asked before the cache is: a program is there before its
/// compilation has ended.
pub(super) fn join(key: &Key) -> Option<Compiled> {
    if COUNT.load(Ordering::SeqCst) == 0 {
        return None;
    }
    let job = jobs().iter().find(|j| j.key == *key).cloned()?;
    Some(job.wait())
}

/// What a miss costs: XLA's compilation, unless an earlier session has left the program on the disk. Puts the program into
/// the cache.
pub(super) fn compile(cut: &Cut, wanted: Wanted, case: Box<dyn Case>, trace: Duration) -> Compiled {
    // Here, where it can be waited for, and not on the other thread.
    if !is_dry() {
        client()?;
    }
    let job = Arc::new(Job { key: cut.key.clone(), outcome: Mutex::new(None), ended: Condvar::new() });
    let (root_types, device, nodes) = (cut.root_types.clone(), cut.placement.home(), cut.nodes.len());
    let make = Make { root_types, options: cut.options, device, nodes, trace };
    let work = {
        let job = job.clone();
        move || {
            let _end = End(&job);
            let outcome = make.run(wanted, case);
            // Whoever comes now finds it in the cache; only those who wait already were held up by it.
            leave(&job);
            job.set(outcome);
        }
    };
    jobs().push(job.clone());
    COUNT.fetch_add(1, Ordering::SeqCst);
    match Builder::new().name("compile".into()).stack_size(STACK).spawn(work) {
        Ok(_) => job.wait(),
        Err(e) => {
            drop(End(&job));
            Err(Error::Usage { message: format!("no thread for a compilation: {e}") })
        }
    }
}

/// What the other thread needs to know of the cut.
struct Make {
    root_types: Vec<TypeRef>,
    options: Options,
    device: u8,
    nodes: usize,
    trace: Duration,
}

impl Make {
    fn run(self, wanted: Wanted, case: Box<dyn Case>) -> Compiled {
        let Make { root_types, options: of, device, nodes, trace } = self;
        let Wanted { key, text, steps, marks, checks, flops, params, donated, lower } = wanted;
        metrics::LOWER_TIME.add_time(lower);
        let start = Instant::now();
        let (executable, origin) = match if is_dry() { None } else { disk::load(&key, &text) } {
            Some(executable) => (Some(executable), Origin::Disk),
            None => {
                if let Err(e) = case.permits() {
                    let (origin, compile) = (Origin::Compiled, Duration::ZERO);
                    case.refused(Costs { origin, trace, lower, compile, memory: None, flops: Some(flops) });
                    return Err(e);
                }
                let _live = case.compiling();
                // What is split over a mesh says of each op which one of ours it is, for who asks which are behind its collectives.
                let named = |part: usize| format!("\"{}#{part}\"", marks[part].op.torch_name());
                let with_names = Mesh::at(device).map(|_| located(&text, &marks, named));
                let text = with_names.as_ref().unwrap_or(&text);
                let compile = || {
                    lacking(text, &steps, &marks)?;
                    let code = form(text, device)?;
                    let code = xlazy_pjrt::Program { format: "mlir", code: code.as_bytes() };
                    Ok::<_, Error>(client()?.pjrt.compile(&code, &options(device, text)?)?)
                };
                ((!is_dry()).then(compile).transpose()?, Origin::Compiled)
            }
        };
        let compile = start.elapsed();
        match origin {
            Origin::Disk => metrics::PERSISTENT_CACHE_HIT.add(1),
            _ => {
                metrics::COMPILE_TIME.add_time(compile);
                metrics::UNCACHED_COMPILE.add(1);
                if let Some(executable) = &executable {
                    disk::keep(&key, &text, executable, compile);
                }
            }
        }
        let memory = executable.as_ref().filter(|_| watching()).and_then(memory);
        let costs = Costs { origin, trace, lower, compile, memory, flops: Some(flops) };
        case.compiled(costs);
        let results = sharded::lie(executable.as_ref(), device, &root_types)?;
        let mut built = Program::new(key, executable, params, root_types, text, nodes, donated);
        (built.steps, built.marks, built.checks) = (steps, marks, checks.into());
        (built.options, built.device, built.results) = (of, device, results);
        Ok((cache::insert(built), costs))
    }
}

/// The plugin takes its first device where none is named.
pub(super) fn options(device: u8, program: &str) -> Result<CompileOptions> {
    let mut options = match Mesh::at(device) {
        Some(mesh) => sharded::options(mesh)?,
        None if device == 0 => CompileOptions::default(),
        None => CompileOptions::on_device(client()?.devices[device as usize].id()),
    };
    let flags = (client()?.platform.flags)(program);
    options.overrides = flags.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(options)
}

/// A program as the platform's compiler is given it. What is split over a mesh is left to XLA as it is.
pub(super) fn form(program: &str, device: u8) -> Result<Cow<'_, str>> {
    Ok(match Mesh::at(device) {
        Some(_) => program.into(),
        None => (client()?.platform.form)(program),
    })
}

/// Refuses what the platform's XLA does not have, at its line.
fn lacking(text: &str, steps: &[Step], marks: &[Mark]) -> Result<()> {
    let lacks = client()?.platform.lacks;
    for (step, mark) in steps.iter().zip(marks) {
        let written = text.get(mark.from as usize..mark.to as usize).unwrap_or_default();
        if let Some(why) = written.lines().find_map(lacks) {
            let (op, at) = (step.op.torch_name(), told(step.at, step.statement));
            return Err(Error::Usage { message: format!("{op} at {at}: {why}") });
        }
    }
    Ok(())
}

/// What XLA says of the memory of one run.
fn memory(program: &LoadedExecutable) -> Option<Memory> {
    let bytes = |n: i64| n.max(0) as u64;
    program.memory_stats().ok().map(|m| Memory {
        arguments: bytes(m.argument_size),
        outputs: bytes(m.output_size - m.alias_size),
        temporaries: bytes(m.temp_size),
        code: bytes(m.generated_code_size),
    })
}

impl Job {
    fn set(&self, outcome: Compiled) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        self.ended.notify_all();
    }

    /// Unwinds at an interrupt; the compilation goes on.
    fn wait(&self) -> Compiled {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            outcome = self.ended.wait_timeout(outcome, LOOK_UP).unwrap_or_else(PoisonError::into_inner).0;
            if outcome.is_none() {
                crate::sys::check_interrupt();
            }
        }
    }
}

/// Ends a job, also one whose thread panicked.
struct End<'a>(&'a Arc<Job>);

/// Takes a job off the list, if it is there.
fn leave(job: &Arc<Job>) {
    let mut all = jobs();
    if let Some(i) = all.iter().position(|j| Arc::ptr_eq(j, job)) {
        all.swap_remove(i);
        COUNT.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        leave(self.0);
        let mut outcome = self.0.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.get_or_insert_with(|| Err(Error::Usage { message: "the compilation ended without a program".into() }));
        self.0.ended.notify_all();
    }
}
