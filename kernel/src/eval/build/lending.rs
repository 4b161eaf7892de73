//! Variables that are lent until a cell mentions them again: which can be, and when it is known that nothing has them for longer.
use super::compiler::Scope;
use crate::engine::{Failure, sentence};
use crate::eval::generate::definitions::Definitions;
use crate::eval::generate::held::{Held, looks_only};
use crate::eval::generate::plan::{Form, Loaded, Loan, Plan, Views};
use crate::eval::parse::parsed::Parsed;
use crate::eval::parse::places::{Mention, Places, Variable};
use crate::eval::text::scan;
use std::collections::BTreeSet;
use xlazy_mime::Var;

/// Whether copies of what the cell has may be counted: by what it mentions, and what it is linked to.
pub(super) fn may_be_counted(parsed: &Parsed, loaded: &[Loaded], to: &Definitions) -> bool {
    let counts = |words: &BTreeSet<String>| ["Rc", "Arc"].iter().any(|name| words.contains(*name));
    counts(&parsed.mentions)
        || loaded.iter().any(|v| counts(&scan::mentions(&v.written_type)))
        || to.items().any(|(_, item)| counts(&item.mentions))
}

/// Whether something ends with the cell that would live on if what it borrows was lent for good, though copies of that are counted.
pub(super) fn is_needed_for_good(plan: &Plan) -> bool {
    plan.counted && plan.in_vain.iter().any(|n| plan.borrows.contains(n))
}

/// Whether a variable can be lent to those that a `let` declares, until it is mentioned again.
fn may_lend(n: usize, loan: Loan, parsed: &Parsed, loaded: &[Loaded], plan: &Plan) -> bool {
    let places = &parsed.places;
    let mut with = Plan { tied: false, ..plan.clone() };
    with.framed.insert(n);
    let held = Held::new(parsed, loaded, &with);
    let looks = || held.loaded(&places.variables[n]).is_some_and(|l| held.looks(l));
    let can = places.variables[n].closure.is_none() && (held.is_view(n) || held.can_hold(n) || looks());
    can && !plan.proven && places.variables[loan.to].begins == Some(loan.at)
}

/// A variable of an earlier cell is to live on with what it borrows here; false where it cannot, or was to already.
pub(super) fn is_to_be_filled(n: usize, parsed: &Parsed, loaded: &[Loaded], plan: &mut Plan) -> bool {
    let l = Held::new(parsed, loaded, plan).loaded(&parsed.places.variables[n]);
    l.is_some_and(Loaded::may_be_filled) && plan.filled.insert(n)
}

/// A variable of an earlier cell, which the cell has whole, is filled with what borrows what was lent in vain, or what others look at,
/// too. That it may be is proven. False where nothing more is lent so.
fn lend_to_what_is_filled(filled: usize, parsed: &Parsed, held: &Held, before: &Plan, plan: &mut Plan) -> bool {
    let places = &parsed.places;
    let whole = |n: usize| held.loaded(&places.variables[n]).is_some_and(|l| l.whole);
    if !whole(filled) || !before.proven {
        return false;
    }
    let looks = |n: usize| held.loaded(&places.variables[n]).is_some_and(|l| held.looks(l));
    let single = plan.single.clone();
    let is_lent = |n: usize| before.lends.contains_key(&n) || before.away.contains_key(&n) || single.contains(&n);
    let in_vain = |n: usize| held.can_hold(n) && is_lent(n);
    let statement = |at: usize| parsed.statement(at);
    let named = || places.named().filter_map(|(n, at)| Some((n, statement(at)?)));
    // Another one may be filled before this one is.
    let assigned = places.assignments.iter().filter(|a| whole(a.variable)).filter_map(|a| statement(a.whole.start));
    let filling: BTreeSet<usize> = named().filter(|(n, _)| whole(*n)).map(|(_, at)| at).chain(assigned).collect();
    let mut learned = false;
    for (n, at) in named().filter(|(n, at)| !whole(*n) && filling.contains(at) && (looks(*n) || in_vain(*n))) {
        let loans = plan.away.entry(n).or_default();
        if loans.first().is_none_or(|first| first.at > at) {
            loans.insert(0, Loan { to: filled, at, changes: false });
            plan.lends.remove(&n);
            if places.variables[n].declared.is_none() && !looks(n) {
                plan.framed.insert(n);
            }
            learned = true;
        }
    }
    learned
}

/// A variable borrows what its `let` says that it changes, or else what it was lent in vain, since there is no copy of that. True where
/// that is so from now on, and not to be proven first.
pub(super) fn lend_for_a_time(
    borrower: usize,
    parsed: &Parsed,
    loaded: &[Loaded],
    before: &Plan,
    plan: &mut Plan,
) -> bool {
    // Of what is tied it is asked what it is otherwise.
    let before = &Plan { tied: false, ..before.clone() };
    let (places, held) = (&parsed.places, Held::new(parsed, loaded, before));
    let v = &places.variables[borrower];
    let Some((from, to)) = v.begins.zip(v.declared) else {
        is_to_be_filled(borrower, parsed, loaded, plan);
        return lend_to_what_is_filled(borrower, parsed, &held, before, plan);
    };
    let within = |at: usize| (from..to).contains(&at);
    let mentions = |n: usize| places.named().any(|(m, at)| m == n && within(at));
    let mentioned = |n: usize| held.loaded(&places.variables[n]).filter(|_| mentions(n));
    let looks = |n: usize| mentioned(n).is_some_and(|l| held.looks(l) || looks_only(l));
    let changes = |n: usize, v: &Variable| {
        v.changed.is_some_and(within) || mentioned(n).is_some_and(|l| l.is_view() && !looks_only(l))
    };
    let single = |n: usize| plan.single.contains(&n) && mentions(n);
    let lent = |n: usize| before.lends.get(&n).is_some_and(|loan| loan.to == borrower) || looks(n) || single(n);
    let mut owners: Vec<usize> = held.variables().filter(|(n, v)| changes(*n, v)).map(|(n, _)| n).collect();
    let loan = Loan { to: borrower, at: from, changes: !owners.is_empty() };
    if owners.is_empty() {
        owners = held.variables().map(|(n, _)| n).filter(|n| lent(*n)).collect();
    }
    if owners.iter().all(|n| may_lend(*n, loan, parsed, loaded, plan)) {
        lend_when_proven(&owners, loan, before, plan);
    }
    false
}

/// What a variable is lent to changes it; false where that is no way to lend it.
pub(super) fn lend_to_be_changed(
    n: usize,
    loan: Loan,
    parsed: &Parsed,
    loaded: &[Loaded],
    before: &Plan,
    plan: &mut Plan,
) -> bool {
    let changed = Loan { changes: true, ..loan };
    if parsed.places.variables[loan.to].closure.is_some() {
        let level = plan.closures.entry(loan.to).or_default();
        *level = (*level).max(1);
        if is_mentioned_behind(n, loan.to, &parsed.places) {
            return true;
        }
    }
    if before.away.contains_key(&n) {
        plan.away.insert(n, vec![changed]);
        return true;
    }
    let may = may_lend(n, loan, parsed, loaded, plan);
    if may {
        lend_when_proven(&[n], changed, before, plan);
    }
    may
}

/// Whether the cell mentions a variable behind the `let` of what borrows it. Where that changes it, it ends with this.
pub(super) fn is_mentioned_behind(n: usize, borrower: usize, places: &Places) -> bool {
    let end = places.variables[borrower].declared;
    places.named().any(|(m, at)| m == n && end.is_some_and(|end| at >= end))
}

fn lend_when_proven(owners: &[usize], loan: Loan, before: &Plan, plan: &mut Plan) {
    for n in owners {
        let loans = plan.unproven.entry(*n).or_default();
        // Whoever changes it last has it alone; those that look have it together.
        let alone = |a: &Loan, b: &Loan| a.at < b.at && (a.changes || b.changes) || a.to == b.to;
        if !loans.iter().any(|other| alone(&loan, other) && loan.to != other.to) {
            loans.retain(|other| !alone(other, &loan));
            loans.push(loan);
            loans.sort_by_key(|loan| loan.at);
            // One `let` is lent to as a whole.
            let changes = loans.iter().any(|l| l.at == loan.at && l.changes);
            loans.iter_mut().filter(|l| l.at == loan.at).for_each(|l| l.changes = changes);
        }
    }
    plan.beside.extend(before.lends.iter().filter(|(n, l)| l.to == loan.to && !owners.contains(n)));
}

/// What the `let` declares that begins there.
fn declared_at(at: usize, places: &Places) -> Vec<usize> {
    let by_it = |(n, v): (usize, &Variable)| (v.begins == Some(at) && v.declared.is_some()).then_some(n);
    places.variables.iter().enumerate().filter_map(by_it).collect()
}

/// The cell is built, and would be without anything that lives on: so nothing in it has what is borrowed for longer. What borrows may be
/// kept then, until what it borrows is mentioned again. False where there is none.
pub(super) fn keep_for_a_time(parsed: &Parsed, loaded: &[Loaded], plan: &mut Plan) -> bool {
    let places = &parsed.places;
    (plan.proven, plan.tied) = (true, false);
    let unproven = std::mem::take(&mut plan.unproven);
    for (n, loans) in unproven {
        let borrow = |loan: &Loan| {
            declared_at(loan.at, places).into_iter().filter(|n| plan.borrows.contains(n)).collect::<Vec<usize>>()
        };
        // What the cell has back cannot go on being borrowed by what it had of it before.
        let had_back = |l: &Loaded, view: &str| l.is_lent_to(view) && !Held::new(parsed, loaded, plan).is_reference(l);
        let view =
            |l: &&Loaded| l.is_view() && places.variables[n].declared.is_none() && l.name == places.variables[n].name;
        let ends = loaded.iter().find(view).is_some_and(|v| loaded.iter().any(|l| had_back(l, &v.name)));
        if loans.is_empty() || ends {
            continue;
        }
        let views = loans.iter().flat_map(|loan| borrow(loan).into_iter().map(|view| (view, loan.at)));
        plan.views.extend(views.collect::<Vec<_>>());
        let held = Held::new(parsed, loaded, plan);
        if places.variables[n].declared.is_none() && !held.is_view(n) && !held.refers(&places.variables[n]) {
            plan.framed.insert(n);
        }
        plan.away.insert(n, loans);
    }
    // What it declares behind may have been made of what borrows.
    if let Some(from) = plan.away.values().flatten().map(|loan| loan.at).min() {
        let behind = |n: &usize| Some((*n, places.variables[*n].begins?));
        let may = |(n, at): &(usize, usize)| *at > from && places.variables[*n].closure.is_none();
        plan.views.extend(plan.borrows.iter().filter_map(behind).filter(may).collect::<Vec<_>>());
    }
    plan.borrows.retain(|n| !plan.views.contains_key(n));
    let beside = std::mem::take(&mut plan.beside);
    plan.lends.extend(beside.into_iter().filter(|(n, _)| !plan.away.contains_key(n)));
    !plan.away.is_empty()
}

/// What borrows is moved where it is mentioned, if it is one that the cell has whole and does not mention again.
pub(super) fn take_whole(mention: usize, parsed: &Parsed, loaded: &[Loaded], plan: &mut Plan) -> bool {
    let m = &parsed.places.mentions[mention];
    let held = Held::new(parsed, loaded, plan);
    let whole = held.loaded(&parsed.places.variables[m.variable]).is_some_and(|l| l.whole);
    whole && !m.again && !m.in_closure && !m.in_macro && plan.forms.insert(mention, Form::Take) != Some(Form::Take)
}

/// A variable was to live on and has less than that of what its `let` mentions: another one that borrows, which is moved there, or is
/// lent to it where it is the cell's own.
pub(super) fn made_of_a_whole(n: usize, parsed: &Parsed, loaded: &[Loaded], before: &Plan, plan: &mut Plan) -> bool {
    let places = &parsed.places;
    let v = &places.variables[n];
    let Some((from, to)) = v.begins.zip(v.declared) else { return false };
    let within = |m: &Mention| (from..to).contains(&m.range.start) && m.variable != n;
    let mentioned: Vec<usize> = (0..places.mentions.len()).filter(|i| within(&places.mentions[*i])).collect();
    // It was moved in vain: what it is made of stays with what was moved.
    let held = Held::new(parsed, loaded, before);
    let whole = |n: usize| held.loaded(&places.variables[n]).is_some_and(|l| l.whole);
    let in_vain = |i: &&usize| whole(places.mentions[**i].variable) && before.forms.get(*i) == Some(&Form::Take);
    let in_vain: Vec<usize> = mentioned.iter().filter(in_vain).copied().collect();
    if !in_vain.is_empty() {
        plan.forms.retain(|i, _| !in_vain.contains(i));
        return false;
    }
    if mentioned.iter().any(|i| take_whole(*i, parsed, loaded, plan)) {
        return true;
    }
    let loan = Loan { to: n, at: from, changes: true };
    let own = |of: &usize| before.views.contains_key(of) && !before.away.contains_key(of);
    let lent: Vec<usize> = mentioned.into_iter().map(|i| places.mentions[i].variable).filter(own).collect();
    plan.away.extend(lent.iter().map(|of| (*of, vec![loan])));
    !lent.is_empty()
}

/// What borrows a variable that cells have back.
pub(super) fn views(owner: &str, scope: &Scope) -> Views {
    let changes = |v: &Var| scope.declared.get(&v.name).and_then(|d| d.views.get(owner)).copied();
    let all = scope.vars.iter().filter_map(|v| Some((v.name.clone(), changes(v)?)));
    let (names, changes): (Vec<String>, Vec<bool>) = all.unzip();
    Views { names, change: changes.contains(&true) }
}

/// A cell mentions what was lent to be changed, and what borrows it, where nothing can be put between them.
pub(super) fn one_cell_has_both(loaded: &[Loaded]) -> Failure {
    let owner = loaded.iter().find(|l| !l.lent_to().is_empty()).expect("a cell is tied by one");
    let of = &owner.name;
    let views = owner.lent_to().iter().map(|view| format!("`{view}`")).collect::<Vec<_>>().join(", ");
    let what = format!("`{of}` is borrowed by {views}: mention `{of}` in a cell of its own, which ends that");
    sentence("CompileError", what)
}
