//! A tensor came with other sizes.
use super::claim::{Claim, Fix};
use super::keep::mask;
use crate::insight::bucketing::{Beside, Feed, InputDim, Proposal};
use crate::insight::evidence::{Evidence, NONE, words};
use crate::insight::record::{LeafRecord, Record, same_place};
use crate::insight::report::{Class, Place};
use std::sync::Arc;
use xlazy_core::ir::{Input, Origin, Step};
use xlazy_core::text::{Edit, append, called, is_followed_by, location};
use xlazy_core::ty::Type;
use xlazy_mime::count;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let one = |&(_, new, old): &(usize, &LeafRecord, &LeafRecord)| {
        let data = |l: &LeafRecord| !l.scalar && !l.parameter;
        data(new) && data(old) && new.ty.dtype == old.ty.dtype && new.ty.shape != old.ty.shape
    };
    let all: Vec<(usize, &LeafRecord, &LeafRecord)> = e.inputs().filter(one).collect();
    let &(_, new, old) = all.first()?;
    let covers: Vec<usize> = all.iter().map(|a| a.0).collect();
    let differences = all.iter().map(|(_, n, o)| words::input(n, o)).collect();
    if kinds(e.new) == kinds(e.old) {
        let fix = "the same inputs in another order: hand them over in the same order in every step";
        return Some(Claim::new(covers, Class::Aliasing, new.at, differences, fix));
    }
    let mut seen = Seen::of(e.new, new, e.known);
    seen.depends_on_data |= new.finder.is_some();
    let fix = fix(e, &old.ty, &new.ty, &seen, Some(new));
    Some(Claim::new(covers, Class::Shape, new.at, differences, fix))
}

/// The data that a program starts from: the line of each, and its type.
pub(super) fn kinds(r: &Record) -> Vec<(u64, String)> {
    let mut all: Vec<_> = r.leaves.iter().filter(|l| !l.scalar).map(|l| (l.line, l.ty.to_string())).collect();
    all.sort_unstable();
    all
}

/// What the history says of something whose shape changes.
pub(super) struct Seen {
    pub depends_on_data: bool,
    types: Vec<Type>,
}

impl Seen {
    /// The types that an input has had in the programs of this sync.
    pub fn of(new: &Record, leaf: &LeafRecord, known: &[Arc<Record>]) -> Seen {
        // What is made where a value was read got its size from it.
        let depends_on_data = new.steps.iter().any(|s| s.op.kind.is_found())
            || new.leaves.iter().any(|l| l.finder.is_some() && same_place(l.at, leaf.at))
            || new.reads.iter().any(|r| same_place(r.at, leaf.at));
        let here = known.iter().filter(|r| same_place(r.site, new.site) && r.is_read() == new.is_read());
        let leaves = here.flat_map(|r| r.leaves.iter());
        let leaves = leaves.filter(|l| !l.scalar && (same_place(l.at, leaf.at) || same_name(l, leaf)));
        Seen { depends_on_data, types: leaves.map(|l| l.ty.clone()).collect() }
    }

    /// The same of what an op makes; `past` is what it was before.
    pub fn of_step(new: &Record, step: &Step, past: &[&Step]) -> Seen {
        let depends_on_data = new.reads.iter().any(|r| same_place(r.at, step.at));
        Seen { depends_on_data, types: past.iter().map(|s| Type::clone(&s.ty)).collect() }
    }

    fn sizes(&self, d: usize) -> Vec<usize> {
        self.types.iter().filter_map(|t| t.shape.get(d).copied()).collect()
    }

    /// What holds all that there was, and both of these.
    fn largest(&self, was: &Type, now: &Type) -> Vec<usize> {
        let mut most = now.shape.to_vec();
        for ty in self.types.iter().chain([was]) {
            most.iter_mut().zip(ty.shape.iter()).for_each(|(most, size)| *most = (*most).max(*size));
        }
        most
    }
}

/// What this op was in the earlier programs of this sync, oldest first: of the same line, and as often run there before it.
pub(super) fn past<'a>(new: &Record, i: u32, known: &'a [Arc<Record>]) -> Vec<&'a Step> {
    let step = &new.steps[i as usize];
    let alike = |s: &&Step| s.op.id == step.op.id && same_place(s.at, step.at);
    let nth = new.steps[..i as usize].iter().filter(alike).count();
    let here = known.iter().filter(|r| same_place(r.site, new.site));
    here.filter_map(|r| r.steps.iter().filter(alike).nth(nth)).collect()
}

/// Whether two inputs are of one name, and not a part of a model that is called so, too.
fn same_name(a: &LeafRecord, b: &LeafRecord) -> bool {
    a.name.is_some() && a.name == b.name && a.parameter == b.parameter && a.ty.shape.len() == b.ty.shape.len()
}

pub(super) fn list(all: &[usize]) -> String {
    all.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

pub(super) fn sorted(mut sizes: Vec<usize>) -> Vec<usize> {
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Sizes to pad to, fewer than there are: the powers of two around them, or the largest alone.
pub(super) fn buckets(sizes: &[usize]) -> Vec<usize> {
    let all = sorted(sizes.iter().map(|s| s.next_power_of_two()).collect());
    match sizes.len() > 2 && all.len() < sizes.len() {
        true => all,
        false => vec![sizes.iter().copied().max().unwrap_or(1)],
    }
}

/// A tensor that the program itself makes, by this step, has another size.
pub(super) fn made_here(e: &Evidence, step: u32, seen: &Seen, was: &Type, now: &Type) -> String {
    let of = e.new;
    let all =
        |d: usize| seen.sizes(d).into_iter().chain([was.shape.get(d), now.shape.get(d)].into_iter().flatten().copied());
    let largest = seen.largest(was, now);
    let mut shapes: Vec<String> = Vec::new();
    for ty in seen.types.iter().chain([was, now]) {
        if !shapes.contains(&ty.shape.to_string()) {
            shapes.push(ty.shape.to_string());
        }
    }
    let shapes = shapes.join(", ");
    let d = (0..now.shape.len()).find(|&d| was.shape.get(d) != now.shape.get(d)).unwrap_or(0);
    let pad = buckets(&sorted(all(d).collect()));
    let made = format!(
        "the program makes it, so each size ({shapes}) is a program: make the largest, {largest:?}, in every step and {}",
        mask(of)
    );
    match of.session && is_bucketable_on_the_host(e, step, d, was, &pad) {
        true => format!(
            "{made}, or make it on the host (`Tensor::from_vec`), where `.dynamic({d}).buckets([{}])` applies",
            list(&pad)
        ),
        false => made,
    }
}

/// Whether what a step makes could be bucketed if it were an input: the rules of all ops behind it are asked.
fn is_bucketable_on_the_host(e: &Evidence, step: u32, d: usize, was: &Type, buckets: &[usize]) -> bool {
    let (now, leaf) = (&e.new.steps[step as usize].ty, e.new.leaves.len());
    let alone =
        now.shape.len() == was.shape.len() && (0..was.shape.len()).all(|k| k == d || was.shape[k] == now.shape[k]);
    let (before, spot) = (e.aligned.of_new[step as usize], [(leaf, d)]);
    if !alone || before == NONE {
        return false;
    }
    let with = |r: &Record, step: u32| -> (Vec<Step>, Type) {
        let leaf = Input::Leaf(r.leaves.len() as u32);
        let input = |i: &Input| if *i == Input::Step(step) { leaf } else { *i };
        let steps = r.steps.iter().map(|s| Step { inputs: s.inputs.iter().map(input).collect(), ..s.clone() });
        (steps.collect(), Type::clone(&r.steps[step as usize].ty))
    };
    let ((steps, ty), (steps_before, ty_before)) = (with(e.new, step), with(e.old, before));
    let given = |ty| std::iter::once(Feed { ty, fixed: false });
    let now =
        Proposal { steps: &steps, feeds: feeds(e.new).chain(given(&ty)).collect(), inputs: spot.to_vec(), buckets };
    let was = Proposal {
        steps: &steps_before,
        feeds: feeds(e.old).chain(given(&ty_before)).collect(),
        inputs: vec![(e.old.leaves.len(), d)],
        buckets,
    };
    let made: Vec<u32> = made_of_that_size(e, ty.shape[d]).filter(|other| *other != step).collect();
    now.applicable().is_ok_and(|inputs| inputs == spot) && left_as_made(e, &made, &now, &was).is_none()
}

fn feeds(r: &Record) -> impl Iterator<Item = Feed<'_>> {
    r.leaves.iter().map(|l| Feed { ty: &l.ty, fixed: l.scalar || l.parameter || l.computed })
}

/// What to do about a shape that changed; `input` is the input that has it, where it is one.
pub(super) fn fix(e: &Evidence, was: &Type, now: &Type, seen: &Seen, input: Option<&LeafRecord>) -> Fix {
    let (new, old) = (e.new, e.old);
    let other = || (0..now.shape.len()).find(|&d| was.shape.get(d).is_some_and(|size| *size != now.shape[d]));
    if let Some(d) = other().filter(|_| input.is_some_and(|l| l.bucketed)) {
        let bucket = now.shape[d];
        return format!("the bucket {bucket} is used for the first time: expected once for each bucket").into();
    }
    if seen.depends_on_data {
        return of_data(e.new.session, was, now, seen, input).into();
    }
    if was.shape.len() != now.shape.len() {
        let before = if new.is_read() { "it is read" } else { "the step" };
        return format!("the number of dimensions changed ({} to {}): reshape before {before}", was.shape, now.shape)
            .into();
    }
    let Some(d) = (0..was.shape.len()).find(|&d| was.shape[d] != now.shape[d]) else {
        return "pad to one shape".into();
    };
    let (a, b) = (was.shape[d], now.shape[d]);
    let sizes = sorted(seen.sizes(d).into_iter().chain([a, b]).collect());
    let pad = buckets(&sizes);
    let others = (0..was.shape.len()).any(|e| e != d && was.shape[e] != now.shape[e]);
    let inputs = match bucketable(e, d, others, input, &pad) {
        Ok(inputs) => inputs,
        Err(why) => {
            let drop = if d == 0 && !others { Smaller::of(e, input).drop(false, Smaller::is_passed(new)) } else { "" };
            let most = seen.largest(was, now);
            let (was, now) = (&was.shape, &now.shape);
            let so_far = if seen.types.len() > 1 && sizes.len() > 2 { ", the largest so far," } else { "" };
            return format!(
                "{was} became {now}: {drop}pad the data on the host to {most:?}{so_far} in every step and mask what is too much{why}"
            )
            .into();
        }
    };
    let smaller = Smaller::of(e, input);
    if d == 0 && sizes.len() == 2 && smaller != Smaller::Others && (b < a || smaller == Smaller::Last) {
        let [least, most] = [a.min(b), a.max(b)];
        let pad = format!(
            "pad {} to {most} and mask them out: `.dynamic(0).buckets([{most}])` on the batch",
            count(least, "row")
        );
        let drop = smaller.drop(true, Smaller::is_passed(new));
        let last = match smaller {
            Smaller::Last if b < a => "a short last batch: ",
            Smaller::Last => "the batch before was a short last one: ",
            _ => "",
        };
        return Fix::from(format!("{last}{drop}{pad}")).code(in_buckets(e, &inputs, &[most]));
    }
    let (least, most) = (sizes[0].max(1), sizes[sizes.len() - 1]);
    if pad.len() == 1 && most / least > 16 {
        return format!(
            "dimension {d} has been {}: padding {least} to {most} would be {} times the work. A program for each, compiled once, \
             is better while the sizes are few",
            list(&sizes),
            most / least
        )
        .into();
    }
    let programs = count(pad.len(), "program");
    let loader = |l: &LeafRecord| l.batch.map(|b| b.loader);
    let two =
        input.is_some_and(|i| loader(i).is_some_and(|n| counterpart(e, i).and_then(loader).is_some_and(|o| n != o)));
    let sites = match same_place(new.site, old.site) {
        _ if two => " (batches of two loaders)",
        true => "",
        false => " (compared with another sync)",
    };
    Fix::from(format!(
        "dimension {d} has been {}{sites}: pad and mask with `.dynamic({d}).buckets([{}])`, {programs} instead of one for each size",
        list(&sizes),
        list(&pad)
    ))
    .code(in_buckets(e, &inputs, &pad))
}

/// What an input was in the program that is compared with.
fn counterpart<'a>(e: &'a Evidence, input: &LeafRecord) -> Option<&'a LeafRecord> {
    e.partner(e.new.leaves.iter().position(|l| std::ptr::eq(l, input))? as u32)
}

/// What the smaller one of two batches is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Smaller {
    /// A loader says that it is the last of its epoch.
    Last,
    /// Another loader's, or the same one's whose batches are of several sizes, or made elsewhere.
    Others,
    /// Nobody says.
    Unknown,
}

impl Smaller {
    fn of(e: &Evidence, input: Option<&LeafRecord>) -> Smaller {
        let Some(now) = input else { return Smaller::Unknown };
        let was = counterpart(e, now);
        let rows = |l: &LeafRecord| l.ty.shape.first().copied();
        let last = |l: &LeafRecord, other: &LeafRecord| {
            l.batch.is_some_and(|b| b.short_of.is_some() && b.short_of == rows(other))
        };
        match (now.batch, was) {
            (Some(_), Some(was)) if last(now, was) || last(was, now) => Smaller::Last,
            (Some(_), _) => Smaller::Others,
            (None, Some(was)) if was.batch.is_some() || was.line != now.line || was.statement != now.statement => {
                Smaller::Others
            }
            (None, _) => Smaller::Unknown,
        }
    }

    /// Whether the program may do without some rows: what is only looked at is to be looked at in full.
    fn is_passed(new: &Record) -> bool {
        !new.is_read() || new.stepped()
    }

    /// To do without it, where it may be passed; or with it in the loader's buckets, where these are of use.
    fn drop(self, buckets: bool, passed: bool) -> &'static str {
        match self {
            Smaller::Last if buckets && passed => "`.drop_last(true)` or `.bucket_last(true)` on the loader, or ",
            Smaller::Last if buckets => "`.bucket_last(true)` on the loader, or ",
            Smaller::Last if passed => "`.drop_last(true)` on the loader, or ",
            Smaller::Unknown if passed => {
                "if it is a short last batch, leave it out (`.drop_last(true)` on a loader), or "
            }
            _ => "",
        }
    }
}

/// Inputs in buckets, wherever each is made: not where the same line makes what has one size, such as a weight.
pub(super) fn in_buckets(e: &Evidence, inputs: &[InputDim], buckets: &[usize]) -> Option<Vec<Edit>> {
    let here = |r: &Record| same_place(r.site, e.new.site) && r.is_read() == e.new.is_read();
    let (same, others): (Vec<&Arc<Record>>, Vec<&Arc<Record>>) = e.known.iter().partition(|r| here(r));
    let mut edits = Vec::new();
    let mut places: Vec<Place> = Vec::new();
    for &(l, d) in inputs {
        let leaf = &e.new.leaves[l];
        // The same input of earlier rounds may be another line's.
        let earlier = same.iter().flat_map(|r| &r.leaves).filter(|o| same_name(o, leaf)).chain(e.partner(l as u32));
        for made in std::iter::once(leaf).chain(earlier) {
            // A loader's place is what is gone through, and no tensor.
            let is_no_input = made.computed || made.parameter || made.batch.is_some();
            if is_no_input || is_followed_by(made.at, &format!(".dynamic({d})")) {
                return None;
            }
            if !places.iter().any(|at| same_place(at, made.at)) {
                places.push(made.at);
                edits.extend(append(made.at, &format!(".dynamic({d}).buckets([{}])", list(buckets)))?);
            }
        }
    }
    let is_input = |k: usize| inputs.iter().any(|(l, _)| *l == k);
    let fixed = e.new.leaves.iter().enumerate().filter(|(k, _)| !is_input(*k)).map(|(_, leaf)| leaf);
    let mut fixed = fixed.chain(others.iter().flat_map(|r| &r.leaves)).filter(|l| !l.computed);
    let shared = fixed.any(|l| places.iter().any(|at| same_place(at, l.at)));
    (!shared && places.len() >= inputs.len()).then_some(edits)
}

/// The inputs that are bucketed together with dimension `d` of this one, or why it cannot be bucketed in this program: the rules
/// of all ops behind it are asked, together with the other inputs that changed in the same way.
fn bucketable(
    e: &Evidence,
    d: usize,
    several: bool,
    input: Option<&LeafRecord>,
    buckets: &[usize],
) -> Result<Vec<InputDim>, String> {
    // Nothing is known of the ops of a text.
    if several || !e.new.session {
        return Err(String::new());
    }
    let found = input.and_then(|input| Some((input, e.new.leaves.iter().position(|l| std::ptr::eq(l, input))?)));
    let Some((input, leaf)) = found else { return Ok(vec![]) };
    let mut inputs: Vec<InputDim> = vec![(leaf, d)];
    for (_, new, old) in e.inputs().filter(|(_, n, o)| n.ty.shape.len() == o.ty.shape.len()) {
        let other = e.new.leaves.iter().position(|l| std::ptr::eq(l, new));
        let same = |k: &usize| new.ty.shape[*k] != old.ty.shape[*k] && new.ty.shape[*k] == input.ty.shape[d];
        if let (Some(l), Some(k)) = (other.filter(|l| *l != leaf), (0..new.ty.shape.len()).find(same)) {
            inputs.push((l, k));
        }
    }
    let proposal = Proposal { steps: &e.new.steps, feeds: feeds(e.new).collect(), inputs, buckets };
    let made: Vec<u32> = made_of_that_size(e, input.ty.shape[d]).collect();
    let left = |step: u32| {
        let left = &e.new.steps[step as usize];
        format!(" (`.dynamic` leaves what `{}` at {} makes as it is)", left.op.torch_name(), location(left.at))
    };
    let inputs = proposal.applicable().map_err(|refused| match (refused.beside, made.first()) {
        (Some(Beside::Step(_)), Some(&made)) => left(made),
        _ => format!(" (`.dynamic` is refused by {} at {})", refused.op, location(refused.at)),
    })?;
    if made.is_empty() {
        return Ok(inputs);
    }
    let has = |&(leaf, d): &InputDim| d < e.old.leaves[leaf].ty.shape.len();
    let before = inputs.iter().filter_map(|&(leaf, d)| Some((e.partner_of(leaf)?, d))).filter(has).collect();
    let was = Proposal { steps: &e.old.steps, feeds: feeds(e.old).collect(), inputs: before, buckets };
    match left_as_made(e, &made, &Proposal { inputs: inputs.clone(), ..proposal }, &was) {
        None => Ok(inputs),
        Some(step) => Err(left(step)),
    }
}

/// Which of these steps keeps its size, whatever is bucketed.
fn left_as_made(e: &Evidence, made: &[u32], now: &Proposal, was: &Proposal) -> Option<u32> {
    let before = |i: usize| Some(e.aligned.of_new[i]).filter(|j| *j != NONE).map(|j| j as usize);
    now.left_as_made(was, made, &e.new.roots, before)
}

/// One bucket for two values that differ in one dimension, where neither is mostly padding then: the dimension, its size, and what is
/// bucketed with it.
pub(super) fn one_bucket(e: &Evidence, new: &LeafRecord, old: &LeafRecord) -> Option<(usize, usize, Vec<InputDim>)> {
    let (now, was) = (&new.ty.shape, &old.ty.shape);
    let mut differ = (0..now.len()).filter(|&d| was.get(d) != Some(&now[d]));
    let d = differ.next().filter(|_| now.len() == was.len() && differ.next().is_none())?;
    let (least, most) = (now[d].min(was[d]), now[d].max(was[d]));
    let inputs = bucketable(e, d, false, Some(new), &[most]).ok().filter(|_| 2 * least >= most)?;
    Some((d, most, inputs))
}

/// What a line of the user's makes by itself in the size that an input has now, and made in another before: what modules make
/// follows the sizes that they are given.
fn made_of_that_size<'a>(e: &'a Evidence, size: usize) -> impl Iterator<Item = u32> + 'a {
    let own = |s: &Step| called(s.at).is_some_and(|name| name == s.op.torch_name() || name == s.op.name);
    let made = move |now: &Step| now.op.kind.is_source() && now.origin == Origin::Op && own(now);
    let resized = move |now: &Step, was: &Step| {
        let (now, was) = (&now.ty.shape, &was.ty.shape);
        now.len() == was.len() && (0..now.len()).any(|d| now[d] == size && was[d] != size)
    };
    let pairs = e.aligned.pairs.iter().map(|&pair| (pair.0, e.pair(pair)));
    pairs.filter(move |(_, (now, was))| made(now) && resized(now, was)).map(|(step, _)| step)
}

/// How many elements there are depends on values.
fn of_data(session: bool, was: &Type, now: &Type, seen: &Seen, input: Option<&LeafRecord>) -> String {
    let sizes: Vec<usize> = seen
        .sizes(0)
        .into_iter()
        .chain([was.shape.first(), now.shape.first()].into_iter().flatten().copied())
        .collect();
    // Positions that another method found for itself are nobody's to pad.
    let own = |l: &&LeafRecord| l.finder.is_some() && called(l.at).is_none_or(|name| name == l.made_by.name);
    let advice = input.filter(own).and_then(|l| l.made_by.advice);
    let advice = advice.unwrap_or(match session {
        true => "keep the shape with `where_(&mask, &x, 0.0)` or multiply by the mask",
        false => "keep the shape (`where`) or multiply by the mask",
    });
    let instead = advice.replace("{buckets}", &list(&buckets(&sorted(sizes))));
    format!("the size depends on the data ({} became {}): {instead}", was.shape, now.shape)
}
