//! A condition of the host decides what is in the program: an `if`, an arm of a `match`, an early exit.
use super::claim::Claim;
use super::keep::{ours, stay};
use crate::insight::evidence::{Evidence, Ops, What, words};
use crate::insight::mode::Derived;
use crate::insight::record::Record;
use crate::insight::report::{Class, Difference, Place};
use foldhash::{HashMap, HashMapExt, HashSet};
use xlazy_core::ir::Input;
use xlazy_core::text::{
    Branch, GuardFact, LoopFact, Somewhere, Spot, callers, calls, function, guards, guards_deep, is_in_cell_of, known,
    same_line,
};

/// Lines of which it is asked whether a condition decides about them, too.
const ASKED: usize = 48;

/// Where a condition stands, and which way it went.
type Way = (Spot, Branch);

/// Whether a condition, or its copy in another cell, is that one, and went that way.
fn goes(guard: &GuardFact, (at, branch): &Way) -> bool {
    guard.branch == *branch && same_line(&guard.at, at)
}

/// What decides about each line, asked once.
#[derive(Default)]
struct Guards(HashMap<(&'static str, u32, u32), Vec<GuardFact>>);

impl Guards {
    fn of(&mut self, at: Place) -> &[GuardFact] {
        self.0.entry((at.file(), at.line(), at.column())).or_insert_with(|| guards_deep(at))
    }

    fn decides(&mut self, way: &Way, at: Place) -> bool {
        self.of(at).iter().any(|g| goes(g, way))
    }
}

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    if e.is_part() {
        return None;
    }
    let mut asked = Guards::default();
    let exchanged = exchanged(e);
    let all = e.ops().chain(exchanged.iter().map(|(r, ops)| (*r, ops)));
    let found: Vec<(usize, &Ops, GuardFact)> =
        all.filter_map(|(r, ops)| Some((r, ops, decided_by(e, ops, &mut asked)?))).collect();
    let guard = found.first()?.2.clone();
    let same: Vec<&(usize, &Ops, GuardFact)> = found.iter().filter(|f| f.2.at == guard.at).collect();
    let at = decided(e, &guard, same.iter().map(|f| f.1)).or_else(|| Some(e.begins(same[0].1)?.0))?;
    let covers = super::claim::with_results(e, same.iter().map(|f| f.0).collect());
    let differences: Vec<Difference> = same.iter().flat_map(|f| words::ops(e, f.1)).collect();
    let rounds = same.iter().filter_map(|f| words::rounds(e, f.1)).map(|(_, n, o)| n.max(o)).max();
    let fix = fix(e.new, &guard, rounds);
    Some(Claim::new(covers, Class::Structure, at, words::first_at(differences, at), fix))
}

/// A line that the condition decides about itself, not by what is called there: of these ops, else of either program.
fn decided<'a>(e: &Evidence, guard: &GuardFact, all: impl Iterator<Item = &'a Ops>) -> Option<Place> {
    let step = |r: &'_ Record, i: &u32| r.steps[*i as usize].at;
    let of = |ops: &Ops| -> Vec<Place> {
        let new = ops.new.iter().map(|i| step(e.new, i));
        new.chain(ops.old.iter().map(|j| step(e.old, j))).collect()
    };
    let rest = e.new.steps.iter().chain(e.old.steps.iter()).map(|s| s.at);
    let mut asked: HashMap<Place, bool> = HashMap::new();
    let mut places = all.flat_map(of).chain(rest);
    places.find(|at| *asked.entry(*at).or_insert_with(|| guards(*at).iter().any(|g| g.at == guard.at)))
}

/// Parameters in the place of others, all of which there were before: the same lines went through another part of the model.
fn exchanged(e: &Evidence) -> Vec<(usize, Ops)> {
    let takers = |r: &Record, leaf: u32| -> Vec<u32> {
        let takes = |&i: &u32| r.steps[i as usize].inputs.contains(&Input::Leaf(leaf));
        (0..r.steps.len() as u32).filter(takes).collect()
    };
    let one = |(r, what): (usize, &What)| {
        let What::Input(l, m) = *what else { return None };
        let (new, old) = (&e.new.leaves[l as usize], &e.old.leaves[m as usize]);
        let other = new.parameter && old.parameter && new.lineage != old.lineage && e.was_there(new);
        let (heads_new, heads_old) = (takers(e.new, l), takers(e.old, m));
        other.then(|| (r, Ops { heads_new, heads_old, gains: vec![l], loses: vec![m], ..Ops::default() }))
    };
    e.open().filter_map(one).collect()
}

/// Whether a place runs only where a condition went that way: every call that leads to it does.
fn surely(way: &Way, at: &impl Somewhere, depth: usize) -> bool {
    let here = guards(at).iter().any(|g| goes(g, way));
    here || depth < 6
        && function(at).is_some_and(|f| {
            let calls = calls(&f);
            !calls.is_empty() && calls.iter().all(|call| surely(way, call, depth + 1))
        })
}

/// Whether the lines of these ops ran for both programs, as far as the code tells: it was there then, and no condition decides
/// about them that does not decide about the rest.
pub(super) fn ran_both_times(e: &Evidence, ops: &Ops) -> bool {
    let heads = |r: &'_ Record, all: &[u32]| -> Vec<Place> { all.iter().map(|&i| r.steps[i as usize].at).collect() };
    let all: Vec<Place> = heads(e.new, &ops.heads_new).into_iter().chain(heads(e.old, &ops.heads_old)).collect();
    let beside = |old: Place, at: Place| old.file() == at.file() || is_in_cell_of(at, old);
    let mut cells: Vec<Place> = e.aligned.pairs.iter().map(|&(_, j)| e.old.steps[j as usize].at).collect();
    cells.sort_unstable_by_key(|at| at.file());
    cells.dedup_by_key(|at| at.file());
    let there = |at: &Place| known(*at) && cells.iter().any(|old| beside(old, at));
    all.iter().all(there) && decided_by(e, ops, &mut Guards::default()).is_none()
}

/// The loops of which a program may have several rounds, each of which went its way by this condition: the sync is not in the loop
/// itself.
fn without_the_sync(rounds: Vec<LoopFact>, site: Place) -> Vec<LoopFact> {
    let syncs: Vec<Spot> = std::iter::once(Spot::from(site)).chain(callers(site)).collect();
    let inside = |l: &LoopFact| syncs.iter().any(|s| l.body.file == s.file && l.body <= *s && *s < l.end);
    rounds.into_iter().filter(|l| !inside(l)).collect()
}

/// The nearest condition that decides about all these ops, those that came one way and those that went another, and not about
/// all the rest of the program.
fn decided_by(e: &Evidence, ops: &Ops, guards: &mut Guards) -> Option<GuardFact> {
    // The lines of ops, each once, gradients left out, and updates unless nothing else came or went.
    let follows = |i: u32, r: &Record| match r.derived(i) {
        None => false,
        Some(kind) => !ops.derived || kind == Derived::Gradient,
    };
    let own = |r: &'_ Record, all: &mut dyn Iterator<Item = u32>, most: usize| -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        for i in all {
            if places.len() == most {
                break;
            }
            let at = r.steps[i as usize].at;
            let known = |at: &Place| places.iter().any(|p| std::ptr::eq(*p, *at)) || places.contains(at);
            if !follows(i, r) && !known(&at) {
                places.push(at);
            }
        }
        places
    };
    let came = own(e.new, &mut ops.heads_new.iter().copied(), usize::MAX);
    let went = own(e.old, &mut ops.heads_old.iter().copied(), usize::MAX);
    let first = *came.first().or(went.first())?;
    // The same line, run as often, does something else: no round of a loop was left out.
    let kinds =
        |r: &'_ Record, all: &[u32]| -> HashSet<u32> { all.iter().map(|&i| r.steps[i as usize].op.id).collect() };
    let instead = came.len() == went.len()
        && came.iter().all(|at| went.contains(at))
        && kinds(e.new, &ops.heads_new).is_disjoint(&kinds(e.old, &ops.heads_old));
    let all = guards.of(first).to_vec();
    if all.is_empty() {
        return None;
    }
    let asked = own(e.new, &mut e.aligned.pairs.iter().map(|p| p.0), ASKED);
    for mut guard in all {
        guard.rounds = without_the_sync(guard.rounds, e.new.site);
        let in_loop = !guard.rounds.is_empty();
        let of = |all: &[Place], guards: &mut Guards| -> Option<Vec<Branch>> {
            let mut ways: Vec<Branch> = Vec::new();
            for at in all {
                let way = guards.of(at).iter().find(|g| same_line(&g.at, &guard.at))?.branch;
                if !ways.contains(&way) {
                    ways.push(way);
                }
            }
            Some(ways)
        };
        let (Some(a), Some(b)) = (of(&came, guards), of(&went, guards)) else { continue };
        // One way each; both the same, or each both ways, only where rounds of a loop go different ways.
        let one = match in_loop {
            true => !instead && (a.len() <= 1 && b.len() <= 1 || !a.is_empty() && !b.is_empty()),
            false => a.len() <= 1 && b.len() <= 1 && (a.is_empty() || b.is_empty() || a != b),
        };
        let way = (guard.at.clone(), guard.branch);
        let other = asked.iter().any(|at| !guards.decides(&way, at));
        // What is in both and goes by it as well tells that it went the same way.
        let same_way = !in_loop && asked.iter().any(|at| guards.decides(&way, at) && surely(&way, *at, 0));
        if one && other && !same_way {
            return Some(guard);
        }
    }
    None
}

fn fix(new: &Record, guard: &GuardFact, rounds: Option<usize>) -> String {
    let condition = match guard.text.lines().next().filter(|text| !text.is_empty() && guard.text.lines().count() == 1) {
        Some(text) => format!("`{text}` at {}", guard.at),
        None => format!("the condition at {}", guard.at),
    };
    if guard.rounds.is_empty() {
        return format!(
            "{condition} decides it: expected once for each way that it goes, programs that take turns, and {}",
            stay(new, "both")
        );
    }
    let all = rounds.filter(|k| *k > 1).and_then(|k| Some((k, 1u64.checked_shl(k as u32)?)));
    let forms = match all {
        Some((k, forms)) => format!("up to 2^{k} = {forms} forms"),
        None => "2^k forms for k rounds".into(),
    };
    format!(
        "{condition} is asked in each round of a loop: {forms}, each a program, expected once for each, and {}. One program \
         serves all where every round runs and what it gives is multiplied by a factor of 0.0 or 1.0 (a number is a parameter), \
         or chosen with `{}`",
        stay(new, "forms that come again"),
        ours(new, "where_", "where")
    )
}
