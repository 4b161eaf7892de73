//! Looking at programs without running them: what a barrier would do, and the text or the executable of what is pending.
use super::cache::{self, Program};
use super::compile::{compile, join, options};
use super::disk;
use super::event::{Cause, Origin};
use super::lower::{Lowered, lower};
use super::start::before_read;
use super::sync::{ToRun, look_at, pending_parts, start, turn, turn_at_once};
use super::witness::Witness;
use crate::Result;
use crate::device::{client, is_dry};
use crate::ir::{Cut, Leaf, NodeId, Scope, graph};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

/// What a barrier would do now.
pub struct Forecast {
    /// Ops that it would run.
    pub nodes: usize,
    /// Bytes of buffers that results would take the place of.
    pub donated: usize,
    /// One for each device; none where reads have computed all that is pending.
    pub programs: usize,
    /// Of the worst of them.
    pub origin: Origin,
    pub scope: Scope,
    /// What it takes as reads have computed it.
    pub read: Vec<NodeId>,
}

/// What a barrier would do now, without doing it; `None` when nothing is pending, or a sync is at work.
pub fn would() -> Option<Forecast> {
    let _turn = turn_at_once()?;
    let ToRun { parts, scope, read } = pending_parts();
    let worse = |a: Origin, b: Origin| match (a, b) {
        (Origin::Compiled, _) | (_, Origin::Compiled) => Origin::Compiled,
        (Origin::Disk, _) | (_, Origin::Disk) => Origin::Disk,
        _ => Origin::Memory,
    };
    if parts.is_empty() && read.is_empty() {
        return None;
    }
    let nothing = Forecast { nodes: 0, donated: 0, programs: 0, origin: Origin::Memory, scope, read };
    let add = |sum: Forecast, roots: Vec<NodeId>| {
        let cut = graph().cut(roots, scope);
        let donated = cut.leaves.iter().map(|(_, leaf)| match leaf {
            Leaf::Data { data, donate: true } => data.ty.bytes(),
            _ => 0,
        });
        let origin = match cache::contains(&cut.key) {
            true => Origin::Memory,
            false if disk::is_on() && disk::contains(&cut.key, &lower(&cut).text) => Origin::Disk,
            false => Origin::Compiled,
        };
        Forecast {
            nodes: sum.nodes + cut.nodes.len(),
            donated: sum.donated + donated.sum::<usize>(),
            programs: sum.programs + 1,
            origin: worse(sum.origin, origin),
            ..sum
        }
    };
    Some(parts.into_iter().fold(nothing, add))
}

/// Looks at the program that would compute some pending nodes, without running it. `None` where there is nothing to run.
fn inspect<R>(roots: Vec<NodeId>, look: impl FnOnce(&Cut) -> R) -> Option<R> {
    let _turn = turn();
    let roots = pending(roots)?;
    let cut = graph().cut(roots, Scope::Read);
    Some(look(&cut))
}

/// Those that have no value yet, in creation order. Where a loop starts before them, the start has run: it would otherwise be
/// shown as a part of their program. What it says against that is said when they are run.
fn pending(mut roots: Vec<NodeId>) -> Option<Vec<NodeId>> {
    let g = graph();
    roots.retain(|&r| g.node(r).data().is_none());
    roots.sort_unstable_by_key(|&r| g.node(r).seq);
    roots.dedup();
    drop(g);
    if roots.is_empty() {
        return None;
    }
    let _ = start(before_read(&roots));
    Some(roots)
}

/// The StableHLO text of the program that would compute these nodes.
pub fn lowered(roots: Vec<NodeId>) -> Option<String> {
    inspect(roots, |cut| lower(cut).text)
}

/// What a barrier on these nodes alone would run, as StableHLO with where its parts are from; values that reads have cached
/// do not cut it short. `None` where all of them have their values.
pub fn lowered_step(roots: Vec<NodeId>) -> Option<Lowered> {
    let _turn = turn();
    let roots = pending(roots)?;
    let cut = graph().cut(roots, Scope::Barrier);
    Some(lower(&cut))
}

/// Has XLA read and compile a text that is not run: what it says against it.
pub fn try_compile(text: &str) -> Result<()> {
    if is_dry() {
        return Ok(());
    }
    let program = xlazy_pjrt::Program { format: "mlir", code: text.as_bytes() };
    client()?.pjrt.compile(&program, &options(0, text)?)?;
    Ok(())
}

/// The compiled program that would compute these nodes: from the cache, or compiled now; it is not run.
#[track_caller]
pub fn compiled(by: &'static dyn Witness, roots: Vec<NodeId>) -> Option<Result<Arc<Program>>> {
    let (last, at) = (cache::last_program(), Location::caller());
    let program = inspect(roots, |cut| {
        let there = join(&cut.key).map(|joined| joined.map(|(program, _)| program));
        there.or_else(|| cache::look_up(&cut.key).map(Ok)).unwrap_or_else(|| {
            let (wanted, miss) = look_at(cut, Cause::Display, at);
            compile(cut, wanted, by.missed(miss), Duration::ZERO).map(|(program, _)| program)
        })
    });
    cache::set_last(last);
    program
}
