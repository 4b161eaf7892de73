//! What the programs that ran last were given, remembered as far as anything still holds it, so that any of their ops can be computed
//! again.
use super::cache::Program;
use crate::clock::watching;
use crate::device::DeviceData;
use crate::ir::{Cut, Graph, Input, Leaf, NodeId, graph};
use crate::text::Place;
use crate::ty::TypeRef;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// One run of a program, as far as it is kept.
pub struct Run {
    pub program: Arc<Program>,
    /// The number of its sync.
    pub number: u64,
    pub barrier: bool,
    /// The line of each op in this run, since a program may be that of an earlier cell, and the statement that called it.
    pub lines: Vec<(Place, Option<Place>)>,
    pub(super) given: Vec<Given>,
}

/// What a parameter was, as far as it is still there.
pub(super) struct Given {
    pub ty: TypeRef,
    /// The line that made it.
    pub at: Place,
    pub value: Value,
}

pub(super) enum Value {
    Number(Leaf),
    Kept { data: Arc<DeviceData>, donated: bool },
    Seen { data: Weak<DeviceData>, donated: bool },
}

/// Why a parameter of a run cannot be fed again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gone {
    /// A result took its buffer.
    Donated,
    /// Nothing held it any longer.
    Dropped,
}

/// The last run of a barrier, and the last one of a read.
static LAST: Mutex<[Option<Arc<Run>>; 2]> = Mutex::new([None, None]);
static KEEPING: AtomicBool = AtomicBool::new(false);

fn last() -> MutexGuard<'static, [Option<Arc<Run>>; 2]> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether what programs are given is kept until the next one runs, what they donate as well: PJRT copies it first. The
/// programs stay the same.
pub fn set_keeping(on: bool) {
    KEEPING.store(on, Ordering::Relaxed);
    if !on {
        let kept = std::mem::take(&mut *last());
        let seen = kept.each_ref().map(|run| run.as_ref().map(|run| Arc::new(run.let_go())));
        *last() = seen;
        drop(kept);
    }
}

pub fn keeping() -> bool {
    KEEPING.load(Ordering::Relaxed)
}

/// Before a graph is cut: a buffer that only this holds can be donated.
pub(super) fn let_go() {
    if keeping() {
        let gone = std::mem::take(&mut *last());
        drop(gone);
    }
}

/// A program has been started.
pub(super) fn ran(cut: &Cut, program: &Arc<Program>, number: u64, barrier: bool) {
    if !watching() {
        return;
    }
    let keeping = keeping();
    let given = |(id, leaf): &(NodeId, Leaf), g: &Graph| {
        let value = match leaf {
            Leaf::Data { data, donate } if keeping => Value::Kept { data: data.clone(), donated: *donate },
            Leaf::Data { data, donate } => Value::Seen { data: Arc::downgrade(data), donated: *donate },
            number => Value::Number(number.clone()),
        };
        Given { ty: leaf.ty(g.node(*id)), at: g.node(*id).at, value }
    };
    let slot = usize::from(barrier);
    let before = last()[slot].take();
    // A loop's launches write into the same memory.
    let (mut lines, mut of_parameters) =
        before.and_then(Arc::into_inner).map(|r| (r.lines, r.given)).unwrap_or_default();
    lines.clear();
    of_parameters.clear();
    {
        let g = graph();
        lines.extend(cut.nodes.iter().map(|&id| (g.node(id).at, g.node(id).statement)));
        of_parameters.extend(cut.leaves.iter().map(|leaf| given(leaf, &g)));
    }
    let run = Run { program: program.clone(), number, barrier, lines, given: of_parameters };
    last()[slot] = Some(Arc::new(run));
}

/// The last run of a barrier and the last one of a read, the later one first.
pub fn last_runs() -> Vec<Arc<Run>> {
    let mut runs: Vec<Arc<Run>> = last().iter().flatten().cloned().collect();
    runs.sort_by_key(|r| std::cmp::Reverse(r.number));
    runs
}

impl Run {
    /// The same, holding nothing.
    fn let_go(&self) -> Run {
        let given = |g: &Given| {
            let value = match &g.value {
                Value::Number(leaf) => Value::Number(leaf.clone()),
                Value::Kept { data, donated } => Value::Seen { data: Arc::downgrade(data), donated: *donated },
                Value::Seen { data, donated } => Value::Seen { data: data.clone(), donated: *donated },
            };
            Given { ty: g.ty, at: g.at, value }
        };
        let (program, lines) = (self.program.clone(), self.lines.clone());
        Run {
            program,
            number: self.number,
            barrier: self.barrier,
            lines,
            given: self.given.iter().map(given).collect(),
        }
    }

    /// The parameters that some of its ops need and that are gone, by number.
    pub fn gone(&self, wanted: &[u32]) -> Vec<(usize, Gone)> {
        let (_, leaves) = self.needed(wanted);
        let gone = |&l: &usize| match &self.given[l].value {
            Value::Seen { data, donated } if data.strong_count() == 0 => {
                Some((l, if *donated { Gone::Donated } else { Gone::Dropped }))
            }
            _ => None,
        };
        leaves.iter().filter_map(gone).collect()
    }

    /// The line that made a parameter.
    pub fn made_at(&self, parameter: usize) -> Option<Place> {
        self.given.get(parameter).map(|g| g.at)
    }

    /// What it was given: the type, the line that made it, and of a number what it was.
    pub fn inputs(&self) -> impl Iterator<Item = (TypeRef, Place, Option<u64>)> {
        let number = |value: &Value| match value {
            Value::Number(Leaf::Scalar(bits)) => Some(*bits),
            _ => None,
        };
        self.given.iter().map(move |g| (g.ty, g.at, number(&g.value)))
    }

    /// The parameters, each with its value where that is still there; numbers have none.
    pub fn parameters(&self) -> Vec<Option<Arc<DeviceData>>> {
        let value = |g: &Given| match &g.value {
            Value::Kept { data, .. } => Some(data.clone()),
            Value::Seen { data, .. } => data.upgrade(),
            Value::Number(_) => None,
        };
        self.given.iter().map(value).collect()
    }

    /// Which steps and which parameters these need, in order.
    pub(super) fn needed(&self, wanted: &[u32]) -> (Vec<usize>, Vec<usize>) {
        let steps = &self.program.steps;
        let (mut need, mut feed) = (vec![false; steps.len()], vec![false; self.given.len()]);
        wanted.iter().for_each(|&w| need[w as usize] = true);
        for s in (0..steps.len()).rev() {
            if need[s] {
                for input in &steps[s].inputs {
                    match *input {
                        Input::Step(i) => need[i as usize] = true,
                        Input::Leaf(l) => feed[l as usize] = true,
                    }
                }
            }
        }
        let places = |marks: &[bool]| marks.iter().enumerate().filter(|(_, m)| **m).map(|(i, _)| i).collect();
        (places(&need), places(&feed))
    }
}
