//! Variables that borrow: what they borrow is lent for good, so that both live on, or they end with the cell.
use super::lending::{is_mentioned_behind, lend_for_a_time, lend_to_be_changed};
use crate::eval::generate::held::Held;
use crate::eval::generate::plan::{Loaded, Loan, Plan};
use crate::eval::parse::parsed::Parsed;
use crate::eval::parse::places::Variable;
use std::collections::BTreeSet;
use std::ops::Range;

/// A variable borrows: what its `let` mentions, or else the statements that fill it, is lent for good, so that both live on. Where that
/// will not do, it ends with the cell.
pub(super) fn borrows(borrower: usize, parsed: &Parsed, loaded: &[Loaded], before: &Plan, plan: &mut Plan) -> bool {
    let places = &parsed.places;
    let v = &places.variables[borrower];
    let lends = |plan: &Plan| {
        plan.lends.values().filter(|l| l.to == borrower).count() + usize::from(plan.leaks.contains(&borrower))
    };
    let for_a_time = |plan: &Plan| plan.away.values().flatten().filter(|l| l.to == borrower).count();
    if lends(plan) > lends(before) || for_a_time(plan) > for_a_time(before) {
        // One answer may say so in several errors.
        return true;
    }
    if plan.borrows.contains(&borrower) {
        return ends_with_the_cell(borrower, plan);
    }
    let own = v.begins.zip(v.declared).map(|(from, to)| from..to);
    let in_own = |at: usize| own.as_ref().is_some_and(|own| own.contains(&at));
    let in_vain = places.named().any(|(n, at)| plan.single.contains(&n) && in_own(at));
    if let Some(own) = own.clone().filter(|_| lends(plan) == 0) {
        let leaks = !v.temporaries.is_empty() && plan.leaks.insert(borrower);
        if lend(borrower, own, parsed, loaded, before, plan) || leaks {
            return true;
        }
    }
    // What is filled by later statements borrows there; a closure has all that it borrows from the beginning.
    let elsewhere = |at: &usize| !in_own(*at);
    let assigned = places.assignments.iter().filter(|a| a.variable == borrower).map(|a| a.whole.start);
    let there = places.mentions_of(borrower).map(|m| m.range.start).chain(assigned).filter(elsewhere);
    let filled: BTreeSet<usize> = there.filter_map(|at| parsed.statement(at)).collect();
    let filled = filled.into_iter().filter(|_| !in_vain && v.closure.is_none());
    let end = |from: usize| parsed.statements.iter().copied().find(|at| *at > from).unwrap_or(usize::MAX);
    let lent = filled.filter(|&from| lend(borrower, from..end(from), parsed, loaded, before, plan)).count();
    if lent > 0 {
        return true;
    }
    if lend_for_a_time(borrower, parsed, loaded, before, plan) {
        return true;
    }
    // It was lent in vain: a copy of it cannot be had. What borrows a tensor ends with the cell in any case.
    let held = Held::new(parsed, loaded, before);
    let loaded = |n: &usize| held.loaded(&places.variables[*n]);
    let other = |n: &usize| loaded(n).is_some_and(|l| !l.written_type.starts_with("::xlazy::"));
    for n in before.lends.iter().filter(|(_, loan)| loan.to == borrower).map(|(n, _)| n) {
        plan.in_vain.insert(borrower);
        if other(n) {
            plan.not_clone.insert(borrower);
        }
    }
    ends_with_the_cell(borrower, plan)
}

/// Lends what is surely borrowed, before rustc says so. What borrows a tensor ends with the cell; what changes what it borrows does so
/// in a first try, by which it is seen that it can be kept.
pub(super) fn foresee(parsed: &Parsed, loaded: &[Loaded], plan: &mut Plan) {
    let (before, places) = (plan.clone(), &parsed.places);
    let held = Held::new(parsed, loaded, &before);
    let is_tensor = |n: usize| held.loaded(&places.variables[n]).is_some_and(|l| l.written_type == "::xlazy::Tensor");
    for (n, v) in held.variables().filter(|(n, v)| v.borrows && held.holds(*n)) {
        let Some((from, to)) = v.begins.zip(v.declared) else { continue };
        if places.named().any(|(of, at)| (from..to).contains(&at) && is_tensor(of)) {
            plan.borrows.insert(n);
            continue;
        }
        let changed = if v.closure.is_some() { changed_by(n, from..to, parsed, &held) } else { Vec::new() };
        if changed.iter().any(|of| is_mentioned_behind(*of, n, places)) {
            plan.borrows.insert(n);
            continue;
        }
        lend(n, from..to, parsed, loaded, &before, plan);
        for of in &changed {
            lend_to_be_changed(*of, Loan { to: n, at: from, changes: true }, parsed, loaded, &plan.clone(), plan);
        }
        if !changed.is_empty() {
            ends_with_the_cell(n, plan);
        }
    }
}

/// What a closure changes of what it borrows, as far as can be seen. One that is `mut` itself changes something, which is nobody's
/// guess where it mentions one variable alone that may be changed.
fn changed_by(closure: usize, own: Range<usize>, parsed: &Parsed, held: &Held) -> Vec<usize> {
    let changed = |v: &Variable| v.changed.is_some_and(|at| own.contains(&at));
    let seen: Vec<usize> = held.variables().filter(|(n, v)| *n != closure && changed(v)).map(|(n, _)| n).collect();
    if !seen.is_empty() || parsed.places.variables[closure].fixed {
        return seen;
    }
    let named = parsed.places.named().filter(|(n, at)| *n != closure && own.contains(at)).map(|(n, _)| n);
    let may: BTreeSet<usize> = named.filter(|n| !parsed.places.variables[*n].fixed).collect();
    if may.len() == 1 { may.into_iter().collect() } else { Vec::new() }
}

/// Lends what a statement mentions to a variable; false where that is nothing new.
fn lend(
    borrower: usize,
    statement: Range<usize>,
    parsed: &Parsed,
    loaded: &[Loaded],
    before: &Plan,
    plan: &mut Plan,
) -> bool {
    let places = &parsed.places;
    let at = statement.start;
    let within = |(n, at): &(usize, usize)| statement.contains(at) && *n != borrower;
    let named: BTreeSet<usize> = places.named().filter(within).map(|(n, _)| n).collect();
    // What was lent just now, for what is before, may be all that was missing.
    let lent = |n: &usize| plan.lends.get(n).is_some_and(|loan| loan.at < at && !before.lends.contains_key(n));
    if named.iter().any(lent) {
        return true;
    }
    let held = Held::new(parsed, loaded, plan);
    let earlier = |n: &usize| plan.lends.get(n).is_none_or(|other| other.at > at);
    let earlier = |n: &usize| earlier(n) && !plan.unlent.contains(n) && !plan.single.contains(n);
    let lenders: Vec<usize> = named.into_iter().filter(|n| earlier(n) && held.can_lend(*n, at)).collect();
    for &n in &lenders {
        plan.lends.insert(n, Loan { to: borrower, at, changes: false });
        if places.variables[n].declared.is_none() {
            plan.framed.insert(n);
        }
    }
    !lenders.is_empty()
}

pub(super) fn ends_with_the_cell(borrower: usize, plan: &mut Plan) -> bool {
    if let Some(at) = plan.views.get(&borrower).copied() {
        let ended: Vec<usize> = plan.views.iter().filter(|(_, begins)| **begins == at).map(|(n, _)| *n).collect();
        plan.views.retain(|_, begins| *begins != at);
        plan.away.values_mut().for_each(|loans| loans.retain(|loan| loan.at != at));
        plan.away.retain(|_, loans| !loans.is_empty());
        plan.borrows.extend(ended);
        return true;
    }
    plan.lends.retain(|_, loan| loan.to != borrower);
    plan.leaks.remove(&borrower);
    plan.borrows.insert(borrower)
}
