//! Why a program is compiled again. Each cause is a file of its own that claims the differences which it explains, from the
//! evidence alone; who explains most of what differs is told first, then who explains most of the rest, and what nobody
//! explains is said as it is. Runs on a miss only.
//!
//! A cause names no op and reads no source text: roles of attributes, properties of ops and what the kernel says of the
//! source are evidence. Of claims that explain as much the earlier one in the tables is told, the more special one.
mod another;
mod attribute;
mod branch;
mod bucketed;
mod claim;
mod control_flow;
mod conversion;
mod device;
mod donation;
mod dtype;
mod early_read;
mod environment;
mod eviction;
mod expanded;
mod frozen;
mod growth;
mod keep;
mod mode;
mod model;
mod number;
mod other;
mod pending;
mod read_before;
mod recorded;
mod results;
mod rounds;
mod shape;
mod sharding;
mod special;
mod split;
mod state;
mod updates;
mod valued;
mod weak;
mod whole;
mod wiring;

use super::evidence::nearest::nearest;
use super::evidence::{Evidence, words};
use super::record::{Lines, Record, same_place};
use super::report::{Class, Explanation};
use claim::Claim;
use std::sync::Arc;
use xlazy_core::mesh::Mesh;
use xlazy_core::run::Cause as SyncCause;

/// Of these, those that need nothing of a session's, and those that go by what frameworks write down.
const OF_TEXTS: &[Cause] = &[
    early_read::claim,
    read_before::claim,
    whole::claim,
    control_flow::claim,
    weak::claim,
    special::claim,
    expanded::claim,
    growth::claim,
    branch::claim,
];

type Cause = fn(&Evidence) -> Option<Claim>;

/// Causes that go by what a session knows of its programs: what was read, was pending, ran before. The more special ones
/// first.
const OF_SESSIONS: &[Cause] = &[
    early_read::claim,
    whole::claim,
    bucketed::claim,
    pending::claim,
    control_flow::claim,
    split::claim,
    mode::claim,
    frozen::claim,
    recorded::claim,
    growth::claim,
    valued::claim,
    branch::claim,
    updates::claim,
    model::claim,
    state::claim,
    another::claim,
];

/// Causes that go by the programs alone, in the same order.
const OF_PROGRAMS: &[Cause] = &[
    conversion::claim,
    dtype::claim,
    shape::claim,
    sharding::claim,
    number::claim,
    attribute::claim,
    rounds::claim,
    wiring::claim,
    results::claim,
    donation::claim,
    environment::claim,
];

/// Differences that are shown at most.
const SHOWN: usize = 8;

/// The cause, if the same work was done before by another program.
pub(super) fn explain(new: &Record, known: &[Arc<Record>]) -> Option<Explanation> {
    if let Some(same) = known.iter().rev().find(|r| r.hash == new.hash && new.room.evicted) {
        return Some(told(eviction::claim(new, same, known), new, same, vec![]));
    }
    if let Some(same) = known.iter().rev().find(|r| r.anywhere == new.anywhere && r.hash != new.hash) {
        let meshes = Mesh::at(new.device).is_some() || Mesh::at(same.device).is_some();
        let claim = if meshes { sharding::all_but_placed(new, same) } else { device::claim(new, same) };
        return Some(told(claim, new, same, vec![]));
    }
    let comparable = comparable(new, known);
    let near = split::step_of(new, &comparable).map_or_else(|| nearest(new, &comparable), |step| vec![step]);
    compare(Evidence::least(new, &near, known)?).filter(|why| why.also.len() < MANY || was_here(new, known))
}

/// So many causes besides the first are no change of a program, but another program, where the line has run none before.
const MANY: usize = 2;

/// Whether this line, or one of its text, has run a program before.
fn was_here(new: &Record, known: &[Arc<Record>]) -> bool {
    let mut lines = Lines::default();
    let here = lines.of(new.site);
    known.iter().any(|r| lines.of(r.site) == here)
}

/// What explains the difference between two programs; `None` where there is none.
pub(super) fn compare(mut evidence: Evidence) -> Option<Explanation> {
    let (new, old, known) = (evidence.new, evidence.old, evidence.known);
    if !new.session && evidence.is_explained() {
        return None;
    }
    let graph = words::graph(&evidence, SHOWN);
    let mut claims: Vec<Claim> = Vec::new();
    while !evidence.is_explained() {
        let Some(mut best) = best(&evidence) else { break };
        let moved: Vec<_> = evidence.moved(&best.covers).filter_map(|p| words::attribute(&evidence, p)).collect();
        best.differences.extend(moved);
        evidence.explained(&best.covers);
        claims.push(best);
    }
    if !evidence.is_explained() || claims.is_empty() {
        claims.push(other::claim(&evidence));
    }
    claims.sort_by_key(|claim| claim.passing);
    if new.device != old.device && claims.iter().all(|c| c.class != Class::Sharding) {
        claims.push(sharding::placed(new, old));
    }
    // The second step was compared with the first, another with one of those.
    let before = |r: &&Arc<Record>| same_place(r.site, new.site) && !r.is_read() && r.device == new.device;
    let later = known.iter().filter(before).count() > 1;
    if claims.len() > 1 && attribute::changed_elsewhere(&evidence) {
        // Where more differs, only what the same line did before tells that an attribute keeps changing.
        claims.iter_mut().for_each(|claim| claim.healable.clear());
    }
    let mut claims = claims.into_iter();
    let first = claims.next().expect("one claim at least");
    let also = claims.map(|claim| told(claim, new, old, vec![])).collect();
    Some(Explanation { graph, later, ..told(first, new, old, also) })
}

/// Who explains most of what is not explained yet.
fn best(evidence: &Evidence) -> Option<Claim> {
    let mut best: Option<(usize, Claim)> = None;
    let of_sessions = if evidence.new.session { OF_SESSIONS } else { OF_TEXTS };
    for cause in of_sessions.iter().chain(OF_PROGRAMS) {
        let Some(claim) = cause(evidence) else { continue };
        let weight = evidence.weight(&claim.covers);
        if weight > best.as_ref().map_or(0, |b| b.0) {
            best = Some((weight, claim));
        }
    }
    best.map(|b| b.1)
}

/// Programs of the same device: a sync of several runs one for each, which have nothing to do with one another. What moves to
/// another device is compared with what the same line moved, and with steps: any other read is other work.
fn comparable(new: &Record, known: &[Arc<Record>]) -> Vec<Arc<Record>> {
    let moves = |r: &Record| r.cause == SyncCause::DeviceChange;
    let other = |r: &Record| r.is_read() && new.is_read() && (moves(r) || moves(new)) && !same_place(r.site, new.site);
    // A round of a loop that runs by itself, what comes before such rounds, and all else.
    let kind = |r: &Record| (r.rounds.is_some(), r.cause == SyncCause::WrittenOut);
    let alike = |r: &&Arc<Record>| r.device == new.device && kind(r) == kind(new) && !other(r);
    let here: Vec<Arc<Record>> = known.iter().filter(alike).cloned().collect();
    let this_line = |r: &&Arc<Record>| same_place(r.site, new.site) && r.is_read() == new.is_read();
    if Mesh::at(new.device).is_none() || here.iter().any(|r| this_line(&r)) {
        return here;
    }
    // The first of a mesh: what this line ran on one device, or on another mesh, is split now.
    let split: Vec<Arc<Record>> = known.iter().filter(|r| this_line(r) && !other(r)).cloned().collect();
    if split.is_empty() { here } else { split }
}

fn told(claim: Claim, new: &Record, old: &Record, also: Vec<Explanation>) -> Explanation {
    let Claim { class, at, mut differences, fix, warm_up, healable, .. } = claim;
    let hidden = differences.len().saturating_sub(SHOWN);
    differences.truncate(SHOWN);
    Explanation {
        class,
        at,
        called_from: new.called_from(at).or_else(|| old.called_from(at)),
        differences,
        hidden,
        graph: vec![],
        fix: fix.say,
        edits: fix.edits,
        compared_with: old.number,
        healable,
        healed: false,
        warm_up,
        later: false,
        also,
    }
}
