//! What a plan learns from rustc's answer to a try.
use super::borrows::{borrows, ends_with_the_cell};
use super::lending::{is_to_be_filled, lend_to_be_changed, made_of_a_whole, take_whole};
use crate::eval::generate::held::{Assigned, Held, SINGLE, TENSOR};
use crate::eval::generate::plan::{Form, Loaded, Plan, UNNAMED};
use crate::eval::parse::open::Kind;
use crate::eval::parse::parsed::Parsed;
use crate::eval::parse::places::{Mention, Places, Variable};
use crate::eval::tell::retell::leaves_open;
use crate::eval::text::source::{Provenance, Source, Tag};
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use std::ops::Range;

/// Changes the plan by what rustc says about generated code; false when there is nothing to learn.
pub(super) fn replan(
    errors: &[Diagnostic],
    source: &Source,
    parsed: &Parsed,
    loaded: &[Loaded],
    plan: &mut Plan,
) -> bool {
    let before = plan.clone();
    plan.named.extend(errors.iter().filter_map(|error| by_the_notebooks_glob(error, source, parsed)));
    plan.named.extend(errors.iter().flat_map(|error| traits_of_globs(error, source)));
    let seeks = |d: &Diagnostic| d.message.contains("Cargo.toml");
    plan.manifest |= errors.iter().any(|e| e.message.ends_with("panicked") && e.children.iter().any(seeks) || seeks(e));
    plan.functions.retain(|n| !errors.iter().any(|error| is_about_closures(error, *n, source, parsed)));
    // What an earlier cell has lent is changed or moved in a copy, of which rustc says something else.
    let copied = errors.iter().filter_map(|error| changed_though_lent(error, source, parsed, loaded, &before));
    plan.copied.extend(copied);
    if *plan != before {
        return true;
    }
    plan.single.extend(errors.iter().filter_map(|error| lent_in_vain(error, SINGLE)));
    for error in errors {
        if let Some(end) = tensor_taken_out(error, source) {
            plan.another_name.insert(end);
            continue;
        }
        if learn_of_open(error, source, parsed, plan) || learn_of_held(error, source, parsed, loaded, &before, plan) {
            continue;
        }
        plan.wrapped.extend(error.children.iter().flat_map(|c| hidden_functions(&c.message)));
        plan.shows |= about_showing(error);
        let unconverted = error.message.contains("`?` couldn't convert") || error.message.contains("Stop: From<");
        let no_error = |d: &Diagnostic| d.message.contains("to implement `Into<Box<dyn std::error::Error");
        plan.debug_errors |= error.code == "E0277" && (unconverted || error.children.iter().any(no_error));
        let stop = |s: &Span| {
            s.label.as_deref().is_some_and(|l| l.contains("expected `Stop`") || l.contains("expected `StopDebug`"))
        };
        plan.inferred |= error.code == "E0308" && error.spans.iter().any(stop);
        // In a macro, whose text nobody else takes apart.
        plan.asynchronous |= error.code == "E0728";
        if error.code == "E0507"
            && error.message.contains("captured variable in an `FnMut` closure")
            && let Some(name) = named(error)
        {
            plan.moved.insert(name.to_owned());
        }
        if matches!(&*error.code, "E0596" | "E0384" | "E0594") {
            // "consider changing this to be mutable" points at where it is loaded.
            let spans = spans_of(error).filter(|s| s.ours);
            let loads = spans.filter_map(|s| match source.provenance(s.start) {
                Provenance::Generated(Tag::Load(name)) if plan.moved.contains(name) => Some(name.clone()),
                _ => None,
            });
            plan.mutated.extend(loads.collect::<Vec<_>>());
        }
        let of_result = |s: &Span| s.label.as_deref().is_some_and(|l| l.contains("declared on the enum `Result`"));
        plan.ends |= plan.unshown && error.code == "E0282" && error.spans.iter().any(of_result);
        // What is shown has no type of its own; behind a semicolon it may get one.
        let nothing_to_show = error.message.contains("rt::Show<'_, !>");
        let statements = error.message.starts_with("macro expansion ignores")
            || error.children.iter().any(|c| c.message.contains("it can expand to a statement"));
        plan.unshown |= statements || nothing_to_show || matches!(&*error.code, "E0282" | "E0283" | "E0284");
        for span in error.spans.iter().filter(|s| s.ours) {
            let Provenance::Generated(tag) = source.provenance(span.start) else { continue };
            match tag {
                Tag::Restore(name) if error.code == "E0382" => drop(plan.moved.insert(name.clone())),
                // Moved away, set nowhere, or left out by a `#[cfg]`.
                Tag::Keep(name) if matches!(&*error.code, "E0382" | "E0381" | "E0425") => {
                    plan.spent.insert(name.clone());
                }
                Tag::Keep(name) if matches!(&*error.code, "E0525" | "E0594" | "E0596" | "E0507") => {
                    let level = plan.level_of_kept(name, &parsed.places);
                    plan.kept.insert(name.clone(), level + 1);
                }
                // It lives as long as what it borrows from.
                Tag::Keep(name) if must_last(span) => {
                    if let Some(number) = parsed.places.declared(name) {
                        borrows(number, parsed, loaded, &before, plan);
                    }
                }
                // An item's import is in the way only where the error is about imports.
                Tag::Use(binds)
                    if !binds.starts_with("::") || matches!(&*error.code, "E0603" | "E0432" | "E0252" | "E0255") =>
                {
                    plan.dropped_uses.insert(binds.clone());
                }
                _ => {}
            }
        }
    }
    *plan != before && plan.closures.values().chain(plan.kept.values()).all(|level| *level <= 2)
}

/// Whether an error is about a closure that a variable's `let` hands over: it may not be what it was boxed as.
fn is_about_closures(error: &Diagnostic, variable: usize, source: &Source, parsed: &Parsed) -> bool {
    let functions = parsed.places.variables[variable].functions.iter();
    let closures: Vec<_> = functions.filter(|f| f.closure.is_some()).map(|f| &f.at).collect();
    let boxes = |s: &Span| matches!(source.provenance(s.start), Provenance::Generated(Tag::Boxed(n)) if *n == variable);
    let within = |part: Range<usize>| closures.iter().any(|at| part.start < at.end && at.start < part.end);
    let about = |s: &Span| boxes(s) || source.user_part(s.start..s.end).is_some_and(|(_, part)| within(part));
    error.spans.iter().filter(|s| s.ours).any(about)
}

/// As rustc names the types of what is another name of the same tensor.
const TENSORS: [&str; 3] =
    ["has type `xlazy::Tensor`", "has type `Option<xlazy::Tensor>`", "has type `std::option::Option<xlazy::Tensor>`"];

/// Where a place ends that a tensor is moved out of, and with it what it is a part of: `model.fc.weight`. Another name of it does as well.
fn tensor_taken_out(error: &Diagnostic, source: &Source) -> Option<usize> {
    let partly = error.code == "E0382" && error.message.contains("partially moved value");
    let held = |s: &Span| matches!(source.provenance(s.start), Provenance::Generated(Tag::Mention(_)));
    let taken = |s: &&Span| match partly {
        true => s.label.as_deref() == Some("value partially moved here"),
        false => error.code == "E0507" && s.primary && held(s),
    };
    let span = error.spans.iter().filter(|s| s.ours).find(taken)?;
    let labels = error.spans.iter().filter_map(|s| s.label.as_deref());
    let is_tensor = labels.chain([&*error.text()]).any(|said| TENSORS.iter().any(|ty| said.contains(ty)));
    let is_field = source.text[..span.end].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    match source.provenance(span.end.checked_sub(1)?) {
        Provenance::User { at, .. } if is_field && is_tensor => Some(at + 1),
        _ => None,
    }
}

/// What rustc says of the cell as it is written is learned for the cell with its variables held, which is tried once more then.
pub(super) fn learns(plan: &mut Plan, learn: impl FnOnce(&mut Plan) -> bool) -> bool {
    let plain = std::mem::take(&mut plan.plain);
    let learned = learn(plan);
    plan.plain = plain && !learned;
    learned
}

/// The cell without the variables whose `let`s a `#[cfg]` leaves out: nothing is there of that name but an earlier cell's.
pub(super) fn without_what_is_left_out(errors: &[Diagnostic], source: &Source, parsed: &Parsed) -> Option<Parsed> {
    let missing = errors.iter().filter(|e| e.code == "E0425").flat_map(|e| &e.spans).filter(|s| s.ours && s.primary);
    let kept = missing.filter_map(|s| match source.provenance(s.start) {
        Provenance::Generated(Tag::Keep(name)) => Some(name),
        _ => None,
    });
    let left_out: Vec<&String> = kept.filter(|name| parsed.bindings.iter().any(|b| b.name == **name)).collect();
    if left_out.is_empty() {
        return None;
    }
    let mut there = parsed.clone();
    for name in &left_out {
        there.bindings.retain(|b| b.name != **name);
        there.rebound.remove(*name);
        for v in there.places.variables.iter_mut().filter(|v| v.name == **name) {
            *v = Variable { mentioned: v.mentioned, ..Variable::named(name) };
        }
        // What is mentioned is the same, before that `let` and behind it.
        let Some(earlier) = there.places.earlier(name) else { continue };
        let variables = &there.places.variables;
        there
            .places
            .mentions
            .iter_mut()
            .filter(|m| variables[m.variable].name == **name)
            .for_each(|m| m.variable = earlier);
    }
    Some(there)
}

/// A variable of which nothing in the cell says of what type it is, and which the cell does not mention again: a later cell
/// declares it.
fn learn_of_open(error: &Diagnostic, source: &Source, parsed: &Parsed, plan: &mut Plan) -> bool {
    if !leaves_open(error) {
        return false;
    }
    let places = &parsed.places;
    let meant = |s: &Span| match source.provenance(s.start) {
        Provenance::Generated(Tag::Hold(n)) => Some(*n),
        Provenance::Generated(Tag::Keep(name)) => places.declared(name),
        Provenance::User { at, .. } => {
            places.variables.iter().position(|v| v.open.as_ref().is_some_and(|o| o.whole.contains(&at)))
        }
        Provenance::Generated(Tag::Load(name)) => {
            places.variables.iter().position(|v| v.open.as_ref().is_some_and(|o| o.joins.contains(name)))
        }
        _ => None,
    };
    let found = error.spans.iter().filter(|s| s.ours).filter_map(meant).find_map(|n| places.variables[n].open.as_ref());
    let Some(open) = found.filter(|open| open.kind != Kind::Computed) else { return false };
    let last = |(n, v): (usize, &Variable)| places.declared(&v.name) == Some(n) && !v.mentioned && !v.odd;
    let Some(all) = places.together(open) else { return false };
    let besides =
        |name: &String| places.earlier(name).is_some_and(|n| places.variables[n].mentioned || places.variables[n].odd);
    let joins = all.iter().filter_map(|n| places.variables[*n].open.as_ref()).flat_map(|o| &o.joins);
    if !all.iter().all(|n| last((*n, &places.variables[*n]))) || joins.into_iter().any(besides) {
        return false;
    }
    let before = plan.pending.len();
    plan.pending.extend(all);
    plan.pending.len() > before
}

/// What the prelude and a glob of the notebook's both have is the notebook's, as it is with std's prelude: the path by which it
/// is meant.
fn by_the_notebooks_glob(error: &Diagnostic, source: &Source, parsed: &Parsed) -> Option<String> {
    let ambiguous = matches!(&*error.code, "E0659" | "ambiguous_glob_imports");
    let name = error.message.split('`').nth(1).filter(|_| ambiguous)?;
    let imported = error.children.iter().filter(|c| c.message.contains("refer to the")).flat_map(|c| &c.spans);
    let glob = |s: &Span| match source.provenance(s.start) {
        Provenance::Generated(Tag::Use(binds)) => Some(binds.clone()),
        // The prelude's.
        Provenance::Generated(_) => None,
        Provenance::User { .. } => {
            let written = source.text.get(s.start..s.end)?;
            parsed.uses.iter().find(|u| u.binds.ends_with(written)).map(|u| u.binds.clone())
        }
    };
    let globs: Vec<String> = imported.filter(|s| s.ours).filter_map(glob).filter(|g| g.ends_with('*')).collect();
    // Of two of the notebook's own nobody knows which is meant.
    let [one] = &globs[..] else { return None };
    Some(format!("{}{name}", one.strip_suffix('*')?))
}

/// A trait whose method is not found, though a glob of the notebook's brings it: a trait of the prelude's has its name.
fn traits_of_globs(error: &Diagnostic, source: &Source) -> Vec<String> {
    let missing = error.code == "E0599";
    let advised = error.children.iter().filter(|c| missing && c.message.contains("is implemented but not in scope"));
    let written = advised.flat_map(|c| &c.spans).filter_map(|s| s.replacement.as_deref());
    let paths = written.filter_map(|text| text.trim().strip_prefix("use ")?.strip_suffix(';'));
    let by_glob =
        |path: &&str| path.rsplit_once("::").is_some_and(|(of, _)| source.text.contains(&format!("use {of}::*")));
    paths.filter(by_glob).map(|path| format!("{path}{UNNAMED}")).collect()
}

/// Whether what is called is the runtime's `display` or one of its like, which as a function takes less than its macro.
fn about_showing(error: &Diagnostic) -> bool {
    let bound = |d: &Diagnostic| d.message.starts_with("required by a bound in `") && d.message.contains("display");
    matches!(&*error.code, "E0277") && error.message.contains("Rich`") && error.children.iter().any(bound)
}

/// Whether something was to last, at this place, that does not.
fn must_last(span: &Span) -> bool {
    span.label.as_deref().is_some_and(|label| label.contains("`'static`"))
}

/// What an error says of variables that are held: which of them borrow, where they move, and which must stay in the code.
/// False where it is about something else.
fn learn_of_held(
    error: &Diagnostic,
    source: &Source,
    parsed: &Parsed,
    loaded: &[Loaded],
    before: &Plan,
    plan: &mut Plan,
) -> bool {
    let places = &parsed.places;
    let tags = |s: &Span| match source.provenance(s.start) {
        Provenance::Generated(tag) if s.ours => Some(tag.clone()),
        _ => None,
    };
    let main = error.spans.iter().find(|s| s.primary);
    if error.code == "E0507" && error.message.contains("captured variable in an `FnMut` closure") {
        let Some(Provenance::User { at, .. }) = main.map(|s| source.provenance(s.start)) else { return false };
        let Some(i) = places.mentions.iter().position(|m| m.range.start == at) else { return false };
        let number = places.mentions[i].variable;
        let held = Held::new(parsed, loaded, plan);
        let copies = held.copies(&places.variables[number]) && held.can_hold(number);
        if copies && !plan.forms.contains_key(&i) {
            plan.forms.insert(i, Form::Copied);
        } else if held.can_hold(number) && !held.holds(number) {
            plan.framed.insert(number);
        } else {
            return false;
        }
        return true;
    }
    if error.code == "E0507"
        && let Some(Tag::Mention(i)) = main.and_then(tags)
    {
        let m = &places.mentions[i];
        if m.in_macro {
            return plan.inside.insert(m.variable);
        }
        let taken = Held::new(parsed, loaded, plan).form(i) == Some(Form::Take);
        // What is mentioned again may be moved only in part.
        match taken || m.again || m.in_closure {
            true => drop(plan.inside.insert(m.variable)),
            false => drop(plan.forms.insert(i, Form::Take)),
        }
        return true;
    }
    if let Some((lender, at)) = borrowed_by_what_is_kept(error, source, places) {
        let kept = |m: &&Mention| m.variable != lender && places.variables[m.variable].declared.is_none();
        let statement = parsed.statement(at);
        let there = |m: &&Mention| parsed.statement(m.range.start) == statement;
        let borrower = places.mentions.iter().filter(kept).find(there).map(|m| m.variable);
        // A closure that mentions what the cell has for itself alone ends with it.
        if let Some(n) = borrower.or_else(|| given_by_a_closure(error, at, parsed, plan)) {
            return borrows(n, parsed, loaded, before, plan);
        }
    }
    let mut learned = false;
    // Where a variable has no value yet, the other places are the conditions that it hangs on, which name what they like.
    let about = |s: &&Span| s.primary || error.code != "E0381";
    let own: Vec<Tag> = error.spans.iter().filter(about).filter_map(tags).collect();
    let lasting = error.spans.iter().find(|s| must_last(s));
    if let Some(Provenance::User { at, .. }) = lasting.filter(|s| s.ours).map(|s| source.provenance(s.start)) {
        return given_by_a_closure(error, at, parsed, plan).is_some_and(|n| borrows(n, parsed, loaded, before, plan));
    }
    let lent_to = |n: usize| before.lends.get(&n).map(|loan| loan.to);
    if let Some(n) = lent_in_vain(error, TENSOR).and_then(lent_to) {
        return plan.borrows.contains(&n) || ends_with_the_cell(n, plan);
    }
    if let Some(n) = lent_in_vain(error, SINGLE).and_then(lent_to).filter(|_| lasting.is_none()) {
        return borrows(n, parsed, loaded, before, plan);
    }
    if let Some(Tag::Restore(name)) = lasting.and_then(tags)
        && let Some(n) = places.earlier(&name)
    {
        return borrows(n, parsed, loaded, before, plan);
    }
    // What is tied lives no longer than that, and so may what is filled with it.
    const FILLED: [&str; 2] = ["` appears in the type of `", "` declared here, outside of the closure body"];
    let is_filled = |s: &&Span| s.label.as_deref().is_some_and(|label| FILLED.iter().any(|said| label.contains(said)));
    if let Some(Tag::Load(name)) = error.spans.iter().find(is_filled).and_then(tags)
        && let Some(n) = places.earlier(&name).filter(|_| before.tied)
        && is_to_be_filled(n, parsed, loaded, plan)
    {
        return true;
    }
    for span in &error.spans {
        let Some(Tag::Hold(n)) = tags(span) else { continue };
        let v = &places.variables[n];
        if before.views.contains_key(&n) {
            return made_of_a_whole(n, parsed, loaded, before, plan) || ends_with_the_cell(n, plan);
        }
        if v.closure.is_some() && error.code == "E0525" {
            let level = plan.closures.entry(n).or_default();
            *level = (*level + 1).max(if error.message.ends_with("only implements `FnOnce`") { 2 } else { 1 });
            // What it moves it has for itself, and does not borrow.
            let moves = |s: &&Span| s.label.as_deref().is_some_and(|l| l.contains("because it moves the variable"));
            let mentioned = |s: &Span| match source.provenance(s.start) {
                Provenance::User { at, .. } if s.ours => {
                    places.mentions.iter().find(|m| m.range.start == at).map(|m| m.variable)
                }
                Provenance::Generated(tag) if s.ours => variable_of(tag, places),
                _ => None,
            };
            let moved = spans_of(error).filter(moves).filter_map(mentioned);
            for of in moved.filter(|of| before.lends.get(of).is_some_and(|loan| loan.to == n)) {
                plan.lends.remove(&of);
                plan.framed.remove(&of);
                plan.unlent.insert(of);
                if places.variables[of].declared.is_some() {
                    plan.inside.insert(of);
                }
            }
            return true;
        }
        learned |= match lasting {
            Some(_) => must_last(span) && borrows(n, parsed, loaded, before, plan),
            None => !places.variables[n].collected && plan.values.insert(n) || plan.inside.insert(n),
        };
    }
    if learned || lasting.is_some() {
        return learned;
    }
    let variable = |tag: &Tag| variable_of(tag, places);
    let meant = |s: &Span| tags(s).and_then(|tag| variable(&tag));
    let all = || spans_of(error);
    let loan = |n: usize| before.lends.get(&n).or_else(|| before.away.get(&n)?.last());
    // What borrows is taken apart, and not seen through.
    if matches!(&*error.code, "E0521" | "E0594" | "E0596")
        && let Some(i) = all().filter_map(tags).find_map(|t| if let Tag::Mention(i) = t { Some(i) } else { None })
        && take_whole(i, parsed, loaded, plan)
    {
        return true;
    }
    // What is lent is changed: then it is lent for that, and what borrows it lives on until it is mentioned again.
    if matches!(&*error.code, "E0594" | "E0596")
        && let Some((n, loan)) = all().filter_map(meant).find_map(|n| Some((n, *loan(n)?)))
        && !places.variables[n].fixed
        && !loan.changes
        && lend_to_be_changed(n, loan, parsed, loaded, before, plan)
    {
        return before.away.contains_key(&n) || ends_with_the_cell(loan.to, plan);
    }
    // It may be that what is borrowed is another one.
    if matches!(&*error.code, "E0594" | "E0596")
        && let Some((n, loan)) = all().filter_map(meant).find_map(|n| Some((n, *before.lends.get(&n)?)))
        && before.lends.iter().any(|(other, l)| *other != n && l.to == loan.to)
        && plan.unlent.insert(n)
    {
        plan.lends.remove(&n);
        return true;
    }
    // What is lent is changed or moved behind: then what borrows it ends with the cell.
    if let Some(borrower) = all().filter_map(meant).find_map(|n| Some(loan(n)?.to)) {
        return ends_with_the_cell(borrower, plan);
    }
    if error.code == "E0034"
        && let Some(Tag::Mention(i)) = main.and_then(tags)
    {
        // Its type is said by what it is moved to, and is `Copy` or not.
        return plan.inside.insert(places.mentions[i].variable);
    }
    if !ABOUT_LOANS.contains(&&*error.code) {
        return false;
    }
    for tag in own {
        // Which assignments give a variable its first value, only rustc knows.
        if error.code == "E0381"
            && let Some(n) = variable(&tag).filter(|n| places.variables[*n].deferred.is_some())
            && first_values(n, &tag, parsed, before, plan)
        {
            learned = true;
            continue;
        }
        let held = Held::new(parsed, loaded, plan);
        match tag {
            Tag::Mention(i) => match held.form(i) {
                Some(Form::Give(_)) => drop(plan.forms.insert(i, Form::Place)),
                _ => drop(plan.inside.insert(places.mentions[i].variable)),
            },
            Tag::Assignment(n) => {
                let a = &places.assignments[n];
                match held.assigned(n) {
                    Assigned::Place if a.follows => drop(plan.again.insert(n)),
                    _ => drop(plan.inside.insert(a.variable)),
                }
            }
            _ => continue,
        }
        learned = true;
    }
    learned
}

/// What could not be lent for good, if that is what rustc says.
fn lent_in_vain(error: &Diagnostic, of: &str) -> Option<usize> {
    named(error)?.strip_prefix(of)?.parse().ok()
}

fn spans_of(error: &Diagnostic) -> impl Iterator<Item = &Span> {
    error.spans.iter().chain(error.children.iter().flat_map(|c| &c.spans))
}

/// The variable that generated code is about.
fn variable_of(tag: &Tag, places: &Places) -> Option<usize> {
    match tag {
        Tag::Mention(i) => Some(places.mentions[*i].variable),
        Tag::Assignment(n) => Some(places.assignments[*n].variable),
        Tag::Lend(n) => Some(*n),
        Tag::Load(name) => places.earlier(name),
        _ => None,
    }
}

/// A variable that the cell has as a reference, which it changes or moves.
fn changed_though_lent(
    error: &Diagnostic,
    source: &Source,
    parsed: &Parsed,
    loaded: &[Loaded],
    plan: &Plan,
) -> Option<String> {
    if !matches!(&*error.code, "E0507" | "E0594" | "E0596") {
        return None;
    }
    let (places, held) = (&parsed.places, Held::new(parsed, loaded, plan));
    let meant = |s: &Span| match source.provenance(s.start) {
        Provenance::Generated(tag) if s.ours => variable_of(tag, places),
        _ => None,
    };
    let changed = spans_of(error).filter_map(meant).find(|n| held.refers(&places.variables[*n]))?;
    Some(places.variables[changed].name.clone())
}

/// The variable that a message is about, of which it may name a part: `shop.items`, `*list`.
fn named(error: &Diagnostic) -> Option<&str> {
    error.message.split('`').nth(1)?.trim_start_matches(['*', '(']).split(['.', '[', ')']).next()
}

/// A variable of an earlier cell that a statement borrows for what another one keeps, and where.
fn borrowed_by_what_is_kept(error: &Diagnostic, source: &Source, places: &Places) -> Option<(usize, usize)> {
    error.message.strip_prefix("closure may outlive the current function, but it borrows `")?;
    let name = named(error)?;
    let at = error.spans.iter().filter(|s| s.ours).find_map(|s| match source.provenance(s.start) {
        Provenance::User { at, .. } if source.text[s.start..s.end].contains(name) => Some(at),
        Provenance::Generated(Tag::Mention(i)) => Some(places.mentions[*i].range.start),
        _ => None,
    })?;
    Some((places.earlier(name)?, at))
}

/// The variable that keeps what a closure borrows: rustc points at the closure, and not at the variable. It is the one whose `let` or
/// assignment the closure is in, or the one that is handed it, mentioned last before: `all.push(|| words.len())`.
fn given_by_a_closure(error: &Diagnostic, at: usize, parsed: &Parsed, plan: &Plan) -> Option<usize> {
    let places = &parsed.places;
    let begun = |v: &Variable| v.begins.zip(v.declared).is_some_and(|(from, to)| (from..to).contains(&at));
    let assigned = || places.assignments.iter().find(|a| a.whole.contains(&at)).map(|a| a.variable);
    let lender = named(error);
    let keeps = |n: &usize| {
        let v = &places.variables[*n];
        v.declared.is_some() && Some(&*v.name) != lender && !plan.borrows.contains(n)
    };
    let before = || places.mentions.iter().filter(|m| m.range.start < at);
    let handed = || before().filter(|m| keeps(&m.variable)).max_by_key(|m| m.range.start).map(|m| m.variable);
    places.variables.iter().rposition(begun).or_else(assigned).or_else(handed)
}

/// A variable has no value where it is mentioned or assigned to: this assignment may be the first then, or all those before the
/// mention. False where nothing was to be learned.
fn first_values(n: usize, tag: &Tag, parsed: &Parsed, before: &Plan, plan: &mut Plan) -> bool {
    let places = &parsed.places;
    let own = places.assignments.iter().enumerate().filter(|(_, a)| a.variable == n);
    let found: Vec<usize> = match tag {
        Tag::Assignment(i) => vec![*i],
        // That follows from what was learned just now.
        _ if own.clone().any(|(i, _)| plan.again.contains(&i) && !before.again.contains(&i)) => return true,
        Tag::Mention(m) => {
            own.filter(|(_, a)| a.whole.end <= places.mentions[*m].range.start).map(|(i, _)| i).collect()
        }
        _ => return false,
    };
    let known = plan.again.len();
    plan.again.extend(found);
    plan.again.len() > known
}

/// What rustc's borrow checker says.
const ABOUT_LOANS: &[&str] = &[
    "E0373", "E0381", "E0382", "E0499", "E0502", "E0503", "E0505", "E0506", "E0521", "E0594", "E0596", "E0597",
    "E0713", "E0716",
];

/// Whether errors would be the same if no variable were held: they are about names, not about types.
pub(super) fn are_about_names(errors: &[Diagnostic]) -> bool {
    let name =
        |code: &str| matches!(code, "E0425" | "E0433" | "E0412" | "E0432" | "E0405" | "E0423" | "E0531" | "E0574");
    errors.iter().all(|e| !e.level.starts_with("error") || name(&e.code) || e.message.starts_with("aborting due to"))
}

/// The functions that a linker's message says are hidden: see `FnValue::wrapped`.
pub(super) fn hidden_functions(message: &str) -> Vec<String> {
    let symbols = message.split("undefined hidden symbol: xlazy::").skip(1).filter_map(|s| s.lines().next());
    // The last part is a hash: `xlazy::ops::activation::…::relu::h7c736c301eb7040c`.
    let names = symbols.filter_map(|s| s.trim().rsplit("::").find(|p| !(p.len() == 17 && p.starts_with('h'))));
    names.map(str::to_owned).collect()
}
