//! What no cause claims is said as it is.
use super::claim::{Claim, Fix};
use super::keep::{ours, stay};
use crate::insight::evidence::{Evidence, Ops, words};
use crate::insight::report::{Class, Place};
use std::collections::HashSet;
use xlazy_core::ir::Input;
use xlazy_mime::count;

pub(super) fn claim(e: &Evidence) -> Claim {
    let covers = e.numbered(|_| true);
    let ops: Vec<&Ops> = e.ops().map(|(_, ops)| ops).collect();
    let Some(at) = ops.iter().find_map(|ops| place(e, ops)) else {
        let fix = "the nodes are the same; please report this with `%compiles --json`";
        return Claim::new(covers, Class::Unclassified, e.new.site, words::open(e), fix);
    };
    // With those that follow from them, where nothing else explains ops.
    let (came, went) = match e.all_ops_are_open() {
        true => (e.aligned.only_new.len(), e.aligned.only_old.len()),
        false => (ops.iter().map(|o| o.new.len()).sum(), ops.iter().map(|o| o.old.len()).sum()),
    };
    Claim::new(covers, Class::Structure, at, words::first_at(words::open(e), at), fix(e, came, went))
}

/// The line behind ops that came or went: where a new input was made, else where they begin.
fn place(e: &Evidence, ops: &Ops) -> Option<Place> {
    // Made since: the other program could not have had it.
    let last = e.old.steps.last().map_or(0, |s| s.seq);
    let known = |line: u64| e.old.lines.has(line) || e.old.leaves.iter().any(|l| l.line == line);
    let fresh = ops.gains.iter().map(|&l| &e.new.leaves[l as usize]).find(|l| l.lineage > last && !known(l.line));
    fresh.map(|l| l.at).or_else(|| e.begins(ops).map(|b| b.0))
}

/// Whether only results differ: what is new is used by nothing else.
fn only_results(e: &Evidence) -> bool {
    let extra: HashSet<u32> = e.aligned.only_new.iter().copied().collect();
    let used = |i: &Input| matches!(i, Input::Step(s) if extra.contains(s));
    !extra.is_empty() && !e.aligned.pairs.iter().any(|p| e.new.steps[p.0 as usize].inputs.iter().any(used))
}

pub(super) fn fix(e: &Evidence, came: usize, went: usize) -> Fix {
    let (new, old) = (e.new, e.old);
    if new.is_read() && !new.session {
        return format!(
            "{} new and {went} gone: a read runs all that is pending since the last barrier: have a barrier at the end of each round, and \
             read behind it",
            count(came, "op")
        )
        .into();
    }
    if new.is_read()
        && let Some(read) = super::control_flow::rounds(new)
    {
        let fix = super::control_flow::fix(read);
        return Fix { say: format!("the rounds of the loop before it are in it: {}", fix.say), ..fix };
    }
    if new.is_read() {
        return format!(
            "{} new and {went} gone: each expression that is read is a program, compiled once. What is looked at often can be \
             made in the step, in a variable, and read after `sync()`, which compiles nothing",
            count(came, "op")
        )
        .into();
    }
    if went == 0 && new.roots.len() > old.roots.len() && only_results(e) {
        return format!(
            "{} more for {} that the last {} did not have: compute them in every step, and look at them when wanted{}",
            count(came, "op"),
            count(new.roots.len() - old.roots.len(), "result"),
            ours(new, "sync", "program"),
            ours(new, ", or after `sync()`", "")
        )
        .into();
    }
    format!(
        "{} new and {went} gone: expected once for each form of the step (a changed model, a branch of the host's); {}",
        count(came, "op"),
        stay(new, "forms that come by turns")
    )
    .into()
}
