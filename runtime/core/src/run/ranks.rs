//! Ranks: threads that trace the same program, each for a device of its own, and what they do together.
//!
//! One of them goes on at a time, in the order of their numbers: from where it began, or from where all met last, to where a
//! program is wanted (a barrier, or a read of what has no value yet), to a rendezvous, or to its end. There it waits. The last
//! one to come looks at what all of them want: where it is the same, it is done once for all of them, a program as one launch
//! over all devices, and all go on; where it is not, it is refused, with ranks and lines. So nothing waits for ever, what is
//! printed comes in one order, and the same code gives the same every time.
use super::compile::STACK;
use super::event::{Cause, SyncEvent};
use super::witness::Witness;
use crate::device::LOOK_UP;
use crate::ir::{Cut, NodeId, Scope, Step, graph};
use crate::mesh::Mesh;
use crate::text::{Place, location};
use crate::thread::{Rank, become_rank, rank, thread};
use crate::{Error, Raised, Result};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// Something that a rank gives to all of them.
pub type Payload = Box<dyn Any + Send + Sync>;

/// What a rank waits for.
enum Ask {
    Barrier(Cause, Place),
    Read(Vec<NodeId>, Cause, Place),
    /// With a name, at a line.
    Rendezvous(String, Payload, Place),
    End,
}

impl Ask {
    /// Whether both can be done at once.
    fn goes_with(&self, other: &Ask) -> bool {
        match (self, other) {
            (Ask::Barrier(..), Ask::Barrier(..)) | (Ask::Read(..), Ask::Read(..)) | (Ask::End, Ask::End) => true,
            (Ask::Rendezvous(a, ..), Ask::Rendezvous(b, ..)) => a == b,
            _ => false,
        }
    }

    fn says(&self) -> String {
        match self {
            Ask::Barrier(cause, at) => format!("is at a barrier ({}) at {}", cause.name(), location(*at)),
            Ask::Read(_, cause, at) => {
                format!("wants a value that is still to be computed ({}) at {}", cause.name(), location(*at))
            }
            Ask::Rendezvous(tag, _, at) => format!("is at the rendezvous {tag:?} at {}", location(*at)),
            Ask::End => "has come to its end".into(),
        }
    }

    fn at(&self) -> Option<Place> {
        match self {
            Ask::Barrier(_, at) | Ask::Read(_, _, at) | Ask::Rendezvous(_, _, at) => Some(at),
            Ask::End => None,
        }
    }
}

/// What came of it.
#[derive(Clone)]
enum Answer {
    Ran(Option<SyncEvent>),
    Given(Arc<Vec<Payload>>),
    /// Of this rank.
    Refused(Error),
    /// Of another one.
    GivenUp,
}

enum At {
    Waits(Ask),
    GoesOn(Answer),
    Runs,
}

struct State {
    /// Whose turn it is.
    turn: usize,
    at: Vec<At>,
    /// One of them ended in another way than all.
    broken: bool,
}

type Ran = Result<Option<SyncEvent>>;
/// What each rank wants, by rank.
type Wanted = Vec<Vec<NodeId>>;

/// How what all want is done, on a floor above.
#[derive(Clone, Copy)]
pub(super) struct Together {
    pub by: &'static dyn Witness,
    pub barrier: fn(&'static dyn Witness, Mesh, Cause, Place) -> Ran,
    pub read: fn(&'static dyn Witness, Mesh, Wanted, Cause, Place) -> Ran,
}

struct Ranks {
    together: Together,
    mesh: Mesh,
    state: Mutex<State>,
    changed: Condvar,
}

thread_local! {
    static HERE: RefCell<Option<(Arc<Ranks>, usize)>> = const { RefCell::new(None) };
}

fn here() -> Option<(Arc<Ranks>, usize)> {
    rank().and_then(|_| HERE.with_borrow(Clone::clone))
}

/// How many ranks there are, where this thread is one.
pub fn world_size() -> Option<usize> {
    here().map(|(ranks, _)| ranks.mesh.size())
}

/// Unwinds a rank because of what another one did.
struct Quiet;

impl Ranks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all that wait.
    fn break_up(&self) {
        self.state().broken = true;
        self.changed.notify_all();
    }

    fn meet(&self, me: usize, ask: Ask) -> Answer {
        let mut state = self.state();
        state.at[me] = At::Waits(ask);
        if me + 1 < state.at.len() {
            state.turn = me + 1;
        } else {
            let wanted = |at: &mut At| match std::mem::replace(at, At::Runs) {
                At::Waits(ask) => ask,
                _ => unreachable!("all others wait"),
            };
            let asks: Vec<Ask> = state.at.iter_mut().map(wanted).collect();
            drop(state);
            let answers = self.done(asks);
            state = self.state();
            state.at = answers.into_iter().map(At::GoesOn).collect();
            state.turn = 0;
        }
        self.changed.notify_all();
        self.turn(me, state)
    }

    /// Waits until it is this rank's turn.
    fn turn<'a>(&'a self, me: usize, mut state: MutexGuard<'a, State>) -> Answer {
        loop {
            let refused = matches!(state.at[me], At::GoesOn(Answer::Refused(_)));
            if refused || state.turn == me && !state.broken && matches!(state.at[me], At::GoesOn(_)) {
                let At::GoesOn(answer) = std::mem::replace(&mut state.at[me], At::Runs) else { unreachable!() };
                return answer;
            }
            if state.broken {
                return Answer::GivenUp;
            }
            state = self.changed.wait_timeout(state, LOOK_UP).unwrap_or_else(PoisonError::into_inner).0;
            if crate::sys::interrupt_is_due() {
                drop(state);
                crate::sys::check_interrupt();
                state = self.state();
            }
        }
    }

    /// What all of them want, done once for all, or refused.
    fn done(&self, mut asks: Vec<Ask>) -> Vec<Answer> {
        let n = asks.len();
        if let Some(other) = asks.iter().position(|a| !a.goes_with(&asks[0])) {
            let like_first = asks.iter().filter(|a| a.goes_with(&asks[0])).count();
            let alone = if like_first < n - like_first { 0 } else { other };
            let message = format!(
                "rank 0 {}, and rank {other} {}. All ranks run the same programs, in the same order: what one of them does \
                 alone must need none. A value is there, and read without one, behind a `sync()` or an optimizer's step of all",
                asks[0].says(),
                asks[other].says(),
            );
            let error = Error::Op { op: "spawn", operands: vec![], message };
            let at = asks[alone].at().or_else(|| asks[other].at()).or_else(|| asks[0].at());
            return refused(n, alone, late(error, at));
        }
        let ran = match &mut asks[0] {
            Ask::Rendezvous(..) => {
                let given = |ask: Ask| match ask {
                    Ask::Rendezvous(_, payload, _) => payload,
                    _ => unreachable!("they go together"),
                };
                return vec![Answer::Given(Arc::new(asks.into_iter().map(given).collect())); n];
            }
            Ask::Barrier(cause, at) => (self.together.barrier)(self.together.by, self.mesh, *cause, at),
            Ask::End => (self.together.barrier)(
                self.together.by,
                self.mesh,
                Cause::Sync,
                crate::thread::innermost(std::panic::Location::caller()),
            ),
            Ask::Read(_, cause, at) => {
                let (cause, at) = (*cause, *at);
                let ids = asks.iter().map(|a| if let Ask::Read(ids, ..) = a { ids.clone() } else { vec![] }).collect();
                (self.together.read)(self.together.by, self.mesh, ids, cause, at)
            }
        };
        match ran {
            Ok(event) => vec![Answer::Ran(event); n],
            Err(error) => refused(n, 0, error),
        }
    }
}

fn late(error: Error, at: Option<Place>) -> Error {
    match at {
        Some(at) => Error::Late { error: Box::new(error), at, statement: None },
        None => error,
    }
}

fn refused(n: usize, rank: usize, error: Error) -> Vec<Answer> {
    let mut all = vec![Answer::GivenUp; n];
    all[rank] = Answer::Refused(error);
    all
}

/// As [`Ranks::meet`], of this thread; `None` where it is no rank.
fn meet(ask: impl FnOnce() -> Ask) -> Option<Result<Answer>> {
    let (ranks, me) = here()?;
    match ranks.meet(me, ask()) {
        Answer::Refused(error) => Some(Err(error)),
        Answer::GivenUp => resume_unwind(Box::new(Quiet)),
        answer => Some(Ok(answer)),
    }
}

fn ran(answer: Option<Result<Answer>>) -> Result<Option<SyncEvent>> {
    Ok(match answer.transpose()? {
        Some(Answer::Ran(event)) => event,
        _ => None,
    })
}

/// A barrier of all ranks; this thread is one.
pub(super) fn barrier_here(cause: Cause, at: Place) -> Result<Option<SyncEvent>> {
    ran(meet(|| Ask::Barrier(cause, at)))
}

/// Has values computed that each rank wants; this thread is one.
pub(super) fn read_here(ids: &[NodeId], cause: Cause, at: Place) -> Result<Option<SyncEvent>> {
    ran(meet(|| Ask::Read(ids.to_vec(), cause, at)))
}

/// Waits for all ranks, and gives what each of them brought, by rank; `None` where this thread is no rank.
pub fn rendezvous(tag: &str, payload: Payload, at: Place) -> Option<Result<Arc<Vec<Payload>>>> {
    let answer = meet(|| Ask::Rendezvous(tag.to_owned(), payload, at))?;
    Some(answer.map(|answer| match answer {
        Answer::Given(all) => all,
        _ => unreachable!("a rendezvous gives what came to it"),
    }))
}

/// Runs a closure as each rank of a mesh of ranks, and gives what each gave. `begin` is called first on each thread. What is
/// still pending at the end is run.
///
/// Unwinds with what ended a rank first.
#[track_caller]
pub(super) fn ranks<R: Send>(
    together: Together,
    mesh: Mesh,
    begin: &(dyn Fn() + Sync),
    f: &(dyn Fn(usize) -> R + Sync),
) -> Vec<R> {
    let n = mesh.size();
    let at = (0..n).map(|_| At::GoesOn(Answer::Ran(None))).collect();
    let state = Mutex::new(State { turn: 0, at, broken: false });
    let ranks = Arc::new(Ranks { together, mesh, state, changed: Condvar::new() });
    let since = graph().last_seq();
    let line = crate::thread::innermost(std::panic::Location::caller());
    let grad = thread(|t| t.grad.get());
    let one = |me: usize| -> std::thread::Result<R> {
        become_rank(Rank { device: me as u8, since });
        HERE.set(Some((ranks.clone(), me)));
        thread(|t| t.grad.set(grad));
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let _line = crate::thread::behalf(line);
            begin();
            if let Answer::GivenUp = ranks.turn(me, ranks.state()) {
                resume_unwind(Box::new(Quiet));
            }
            let given = f(me);
            if let Some(Err(error)) = meet(|| Ask::End) {
                error.raise()
            }
            ranks.state().turn = me + 1;
            ranks.changed.notify_all();
            given
        }));
        if ended.is_err() {
            ranks.break_up();
        }
        HERE.set(None);
        ended
    };
    let ended: Vec<std::thread::Result<R>> = std::thread::scope(|scope| {
        let one = &one;
        let start = |me: usize| {
            let thread = Builder::new().name(format!("rank {me}")).stack_size(STACK);
            let started = thread.spawn_scoped(scope, move || one(me));
            started.inspect_err(|_| ranks.break_up())
        };
        let all: Vec<_> = (0..n).map(start).collect();
        let end = |thread: std::io::Result<std::thread::ScopedJoinHandle<_>>| match thread {
            Ok(thread) => thread.join().unwrap_or_else(Err),
            Err(e) => Err(Box::new(format!("no thread for a rank: {e}")) as Box<dyn Any + Send>),
        };
        all.into_iter().map(end).collect()
    });
    crate::sys::check_interrupt();
    let mut given = Vec::with_capacity(n);
    let mut why: Option<(usize, Box<dyn Any + Send>)> = None;
    for (me, ended) in ended.into_iter().enumerate() {
        match ended {
            Ok(r) => given.push(r),
            Err(payload) if payload.is::<Quiet>() => {}
            Err(payload) => drop(why.get_or_insert((me, payload))),
        }
    }
    match why {
        None => given,
        Some((me, payload)) => resume_unwind(of_rank(me, payload)),
    }
}

/// What ended a rank, with its number.
fn of_rank(me: usize, payload: Box<dyn Any + Send>) -> Box<dyn Any + Send> {
    let text = payload.downcast_ref::<String>().cloned();
    let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
    if let Some(text) = text.filter(|text| !text.starts_with("spawn: ")) {
        return Box::new(format!("{text} (rank {me})"));
    }
    match payload.downcast::<Raised>() {
        Ok(mut raised) => {
            raised.statement = crate::sys::statement();
            if let Error::Op { op, message, .. } = &mut raised.error
                && *op != "spawn"
            {
                *message = format!("{message} (rank {me})");
            }
            raised
        }
        Err(payload) => payload,
    }
}

/// Cuts what each rank wants as one program. An attribute that is another one on each rank, such as the place where its part of
/// something begins, becomes a parameter where its op has a form for that.
///
/// Errors: the first rank that has recorded something else than rank 0, at the line of it.
pub(super) fn cut_of(mesh: Mesh, roots: &[Vec<NodeId>], scope: Scope) -> Result<Cut> {
    loop {
        let cuts: Vec<Cut> = {
            let mut g = graph();
            roots.iter().map(|roots| g.cut(roots.clone(), scope)).collect()
        };
        let (cuts, other) = match Cut::of_ranks(cuts, mesh) {
            Ok(cut) => return Ok(cut),
            Err(unlike) => unlike,
        };
        let lifted = cuts[0].nodes.iter().zip(&cuts[other].nodes).find_map(|(&a, &b)| {
            let mut g = graph();
            let (op, at, alike, same) = {
                let (a, b) = (g.node(a), g.node(b));
                (a.op, a.at, a.op.id == b.op.id && a.ty == b.ty, a.attrs == b.attrs)
            };
            (!alike || !same).then(|| alike && op.heal.is_some() && g.healing.add(op, at))
        });
        if lifted != Some(true) {
            return Err(differs(&cuts[0], &cuts[other], other));
        }
    }
}

/// Of two cuts that should be one program: what of the other is not what rank 0 has.
fn differs(first: &Cut, other: &Cut, rank: usize) -> Error {
    let (mine, theirs) = {
        let g = graph();
        (g.steps(first), g.steps(other))
    };
    let says = |s: &Step| format!("`{}` to {} at {}", s.op.torch_name(), s.ty, location(s.at));
    let pairs = mine.iter().zip(&theirs);
    let alike =
        |(a, b): &(&Step, &Step)| a.op.id == b.op.id && a.ty == b.ty && a.attrs == b.attrs && a.inputs == b.inputs;
    let equal = pairs.take_while(alike).count();
    let what = match (mine.get(equal), theirs.get(equal)) {
        (Some(a), Some(b)) if a.op.id == b.op.id && a.ty == b.ty => {
            let attr = (0..a.attrs.len()).find(|&i| a.attrs.get(i) != b.attrs.get(i));
            match attr.and_then(|i| Some((a.op.attrs.get(i)?.name, &a.attrs[i], b.attrs.get(i)?))) {
                Some((name, x, y)) => format!("{} with {name} {y}, and rank 0 with {x}", says(b)),
                None => format!("{} of other operands than rank 0", says(b)),
            }
        }
        (Some(a), Some(b)) => format!("{}, and rank 0 {}", says(b), says(a)),
        (None, Some(b)) => format!("{}, and rank 0 nothing more", says(b)),
        (Some(a), None) => format!("nothing more, and rank 0 {}", says(a)),
        (None, None) => {
            "the same, and keeps other results of it than rank 0, or begins with data of other shapes".into()
        }
    };
    let message = format!(
        "the ranks have recorded different programs: rank {rank} has {what}. All ranks run one program, each on data of its own: \
         what depends on the rank may be data or a number, but no op and no shape"
    );
    let error = Error::Op { op: "spawn", operands: vec![], message };
    let nodes = if equal < other.nodes.len() { &other.nodes } else { &first.nodes };
    let at = nodes.get(equal).map(|&id| graph().node(id).at);
    late(error, at)
}
