//! `scan`: a loop over rows that carries a state from round to round.
use super::again::gradients;
use super::tree::{Tensors, check_alike, filled, flat};
use crate::tensor::{Arg, Argument, Entry, Grad, Recorder, Tensor, on_behalf, refuse, result, try_trace};
use std::panic::Location;
use xlazy_core::emit::{Emit, Val};
use xlazy_core::ir::Role::{Body as Bodied, Mode, Size};
use xlazy_core::ir::{Attr, AttrsExt, Bodies, Body, Kind, Lower, Placement, Rule, Sig, attr, graph};
use xlazy_core::ty::{DType, Type, TypeRef};

/// Operands: what is carried, rows, what the body took from outside. The body's arguments: the number of the round, what is
/// carried, a row of each; it gives what is carried on, and a row of each result.
pub(super) static SCAN: Entry = Entry::new("scan", rule, lower)
    .kind(Kind::Control)
    .several()
    .attrs(&[
        attr("combine_fn", Bodied).advice(BODY_ADVICE),
        attr("length", Size),
        attr("carries", Mode),
        attr("reverse", Mode),
        attr("keep", Mode),
    ])
    .grad(gradient);

/// What to do about a body that is another one.
pub(super) const BODY_ADVICE: &str =
    "each body is a program: hand it what changes as a tensor or a number, which are its parameters";

/// Whether what each round began with is a result, too: gradients ask for it.
const KEEP: usize = 4;

/// A scan's attributes.
struct Parts<'a> {
    body: &'a Body,
    length: usize,
    carries: usize,
    reverse: bool,
    keep: bool,
}

impl<'a> Parts<'a> {
    fn of(attrs: &'a [Attr]) -> Parts<'a> {
        let body = &Bodies::of(&attrs[0]).all[0];
        Parts { body, length: attrs.index(1), carries: attrs.index(2), reverse: attrs.flag(3), keep: attrs.flag(KEEP) }
    }

    /// How many operands have rows.
    fn rows(&self) -> usize {
        self.body.arguments.len() - 1 - self.carries
    }

    /// What is carried at the end, the rows of each result, and, where it is kept, what each round began with.
    fn results(&self) -> Vec<TypeRef> {
        let (carried, rows) = self.body.gives.split_at(self.carries);
        let kept = if self.keep { carried } else { &[] };
        let stacked = rows.iter().chain(kept).map(|ty| stacked(ty, self.length));
        carried.iter().copied().chain(stacked).collect()
    }
}

fn stacked(row: &Type, length: usize) -> TypeRef {
    let mut shape = row.shape.clone();
    shape.insert(0, length);
    Type::new(row.dtype, shape).into()
}

fn rule(s: &Sig) -> Rule {
    Ok(Parts::of(s.attrs).results()[0].get().clone())
}

// The loop's state: the results first, then the number of rounds, what was taken from outside, the rows.
fn lower(l: &mut Lower) -> Val {
    let of = Parts::of(l.attrs);
    let (carries, rows, results) = (of.carries, of.rows(), of.results());
    let mut state = l.inputs[..carries].to_vec();
    for ty in &results[carries..] {
        let empty = l.constant(0.0, ty);
        state.push(empty);
    }
    let counter = state.len();
    state.push(l.scalar(0.0, DType::I64));
    state.extend_from_slice(&l.inputs[carries + rows..]);
    let outside = counter + 1..state.len();
    state.extend_from_slice(&l.inputs[carries..carries + rows]);
    let open = |e: &mut Emit, seen: &[Val]| {
        let end = e.scalar(of.length as f64, DType::I64);
        e.compare("LT", &seen[counter], &end)
    };
    let done = l.e.while_loop(&state, open, |e, seen| {
        let at = match of.reverse {
            true => {
                let last = e.scalar(of.length as f64 - 1.0, DType::I64);
                e.sub(&last, &seen[counter])
            }
            false => seen[counter].clone(),
        };
        let mut leaves = vec![at.clone()];
        leaves.extend_from_slice(&seen[..carries]);
        for x in &seen[outside.end..] {
            let (starts, mut sizes) = (e.starts(&at, 0, x.rank()), x.shape().to_vec());
            sizes[0] = 1;
            let row = e.dynamic_slice(x, &starts, &sizes);
            let mut shape = x.shape().clone();
            shape.remove(0);
            leaves.push(e.reshape(&row, &shape));
        }
        leaves.extend_from_slice(&seen[outside.clone()]);
        let given = of.body.write(e, &leaves);
        let began = if of.keep { &seen[..carries] } else { &[] };
        let mut next = given[..carries].to_vec();
        for (all, row) in seen[carries..counter].iter().zip(given[carries..].iter().chain(began)) {
            let mut shape = row.shape().clone();
            shape.insert(0, 1);
            let row = e.reshape(row, &shape);
            let starts = e.starts(&at, 0, all.rank());
            let inputs: Vec<&Val> = [all, &row].into_iter().chain(&starts).collect();
            next.push(e.op("dynamic_update_slice", &inputs, "", all.ty.clone()));
        }
        next.push(e.with_const("add", &seen[counter], 1.0));
        next.extend_from_slice(&seen[counter + 1..]);
        next
    });
    done[0].clone()
}

/// The rounds go backwards: each takes up the gradient of what it carried on, records its body again and differentiates it.
/// What each round began with is kept by the loop itself.
fn gradient(g: &Grad) -> Vec<Option<Tensor>> {
    let at = Location::caller();
    let of = Parts::of(&g.attrs);
    let (n, rows, ys) = (of.carries, of.rows(), of.body.gives.len() - of.carries);
    let began: Vec<Tensor> = {
        graph().node_mut(g.output.id()).attrs[KEEP] = true.into();
        let kept = of.body.gives[..n].iter().enumerate();
        kept.map(|(i, ty)| result(&g.output, n + ys + i, stacked(ty, of.length))).collect()
    };
    let flowing = |k: usize| g.dys.iter().find(|(i, _)| *i == k).map(|(_, dy)| dy);
    // The numbers of carried tensors that gradients flow through, and of rows and tensors from outside that want one.
    let carried: Vec<usize> = (0..n).filter(|&i| of.body.gives[i].dtype.is_differentiable()).collect();
    let wanted: Vec<usize> = (n..g.inputs.len()).filter(|&i| g.wanted[i]).collect();
    let (wanted_rows, outside): (Vec<usize>, Vec<usize>) = wanted.iter().partition(|&&i| i < n + rows);
    let mut init: Vec<Tensor> =
        carried.iter().map(|&i| flowing(i).cloned().unwrap_or_else(|| g.x(i).zeros_like())).collect();
    init.extend(outside.iter().map(|&i| g.x(i).zeros_like()));
    let dys: Vec<(usize, Tensor)> = g.dys.iter().filter(|(k, _)| *k >= n && *k < n + ys).cloned().collect();
    // What flows to the states that rounds began with, where an earlier gradient took them up.
    let began_with: Vec<(usize, Tensor)> =
        (carried.iter().enumerate()).filter_map(|(p, i)| Some((p, flowing(n + ys + i)?.clone()))).collect();
    let mut xs = began;
    xs.extend_from_slice(&g.inputs[n..n + rows]);
    xs.extend(dys.iter().chain(&began_with).map(|(_, dy)| dy.clone()));
    let how = How { op: "scan", at, length: of.length, reverse: !of.reverse };
    let (mut done, mut stacks) = run(&how, &init, &xs, |round, carry, row| {
        let mut leaves = vec![round.clone()];
        leaves.extend_from_slice(&row[..n + rows]);
        leaves.extend_from_slice(&g.inputs[n + rows..]);
        let mut flows: Vec<(usize, Tensor)> = carried.iter().copied().zip(carry.iter().cloned()).collect();
        flows.extend(dys.iter().map(|(k, _)| *k).zip(row[n + rows..].iter().cloned()));
        let of_leaves: Vec<usize> = carried.iter().chain(&wanted_rows).chain(&outside).map(|i| i + 1).collect();
        let mut dx = gradients(g, of.body, &leaves, &of_leaves, &flows);
        began_with.iter().zip(&row[n + rows + dys.len()..]).for_each(|((p, _), more)| dx[*p] = &dx[*p] + more);
        let sums = dx.split_off(carried.len() + wanted_rows.len());
        let per_row = dx.split_off(carried.len());
        dx.extend(sums.iter().zip(&carry[carried.len()..]).map(|(dx, sum)| sum + dx));
        (dx, per_row)
    });
    let mut found: Vec<Option<Tensor>> = vec![None; g.inputs.len()];
    let sums = done.split_off(carried.len());
    carried.iter().zip(done).for_each(|(&i, dx)| found[i] = Some(dx));
    wanted_rows.iter().zip(stacks.drain(..)).for_each(|(&i, dx)| found[i] = Some(dx));
    outside.iter().zip(sums).for_each(|(&i, dx)| found[i] = Some(dx));
    found
}

/// How a scan goes.
pub(super) struct How {
    pub op: &'static str,
    pub at: &'static Location<'static>,
    pub length: usize,
    pub reverse: bool,
}

/// What is carried on, and a row of each result.
type Given = (Vec<Tensor>, Vec<Tensor>);

/// Records a scan: what is carried at the end, and the rows that the rounds gave.
#[track_caller]
pub(super) fn run(
    how: &How,
    init: &[Tensor],
    xs: &[Tensor],
    body: impl FnOnce(&Tensor, &[Tensor], &[Tensor]) -> Given,
) -> Given {
    let n = init.len();
    let mut arguments = vec![round()];
    arguments.extend(init.iter().map(Argument::of));
    arguments.extend(xs.iter().map(Argument::row_of));
    let mut recorder = Recorder::new(how.op, how.at);
    let mut carries = 0;
    let recorded = recorder.record(&arguments, true, |a| {
        let (mut results, mut rows) = body(&a[0], &a[1..=n], &a[n + 1..]);
        carries = results.len();
        results.append(&mut rows);
        results
    });
    check_carried(how.op, init, &recorded.gives[..carries]);
    let rows: Vec<TypeRef> = recorded.gives[n..].to_vec();
    if how.length == 0 {
        let empty = |ty: &TypeRef| Tensor::zeros(&stacked(ty, 0).shape).to(ty.dtype);
        let init = init.iter().map(Tensor::copy).collect();
        return (init, on_behalf(how.at, false, || rows.iter().map(empty).collect()));
    }
    if recorded.gives.is_empty() {
        return (vec![], vec![]);
    }
    let (bodies, captured) = recorder.finish();
    trace_scan(how, bodies, init, xs, &captured)
}

/// Records the op itself.
#[track_caller]
pub(super) fn trace_scan(how: &How, bodies: Attr, init: &[Tensor], xs: &[Tensor], captured: &[Tensor]) -> Given {
    let attrs: Box<[Attr]> = [bodies, how.length.into(), init.len().into(), how.reverse.into(), false.into()].into();
    let results = Parts::of(&attrs).results();
    let args: Vec<Arg> = init.iter().chain(xs).chain(captured).map(Arg::from).collect();
    let of = try_trace(&SCAN, &args, attrs, how.at).unwrap_or_else(|e| e.raise());
    let mut carried: Vec<Tensor> = results.iter().enumerate().map(|(k, ty)| result(&of, k, *ty)).collect();
    let rows = carried.split_off(init.len());
    (carried, rows)
}

/// The number of a loop's round.
pub(super) fn round() -> Argument {
    Argument { ty: TypeRef::scalar(DType::I64), placement: Placement::Anywhere }
}

/// Refuses a body that gives another type back than it was given.
#[track_caller]
pub(super) fn check_carried(op: &'static str, init: &[Tensor], given: &[TypeRef]) {
    if init.len() != given.len() {
        let why = format!("the body gives {} tensors back to carry on, and {} began", given.len(), init.len());
        refuse(op, &[], why);
    }
    for (k, (was, now)) in init.iter().zip(given).enumerate() {
        let (a, b) = (was.ty(), now.get());
        if a != *b {
            let what = if init.len() == 1 { "what is carried".to_owned() } else { format!("carried tensor {k}") };
            let why = format!(
                "{what} begins as {a}, and the body gives it back as {b}: both must be of one type; begin with that one, or \
                 convert in the body (`.to({:?})`)",
                a.dtype
            );
            refuse(op, &[was], why);
        }
    }
}

/// How [`scan_with`] goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanOptions {
    /// From the last row to the first.
    pub reverse: bool,
    /// How many rounds; needed where there are no rows.
    pub length: Option<usize>,
}

/// Carries a state through the rows of `xs`, in one program however many they are: `f` gets what is carried and a row of each
/// of `xs` (along dimension 0), and gives what is carried on and a row of results; what comes out is the last state and the
/// rows, stacked (`torch.scan` of `torch._higher_order_ops`, `jax.lax.scan`). Gradients flow through it. StableHLO: while.
///
/// `f` is recorded once. Tensors and numbers from outside that it uses are parameters of the program; random ops draw anew in
/// each round. It can neither read the values of what it is given or makes nor write to tensors from outside.
///
/// ```
/// use xlazy::prelude::*;
/// let x = tensor([1.0, 2.0, 3.0]);
/// let (sum, sums) = scan(|sum, x| { let sum = sum + x; (sum.clone(), sum) }, &tensor(0.0), &x);
/// assert_eq!((sum.item(), sums.to_vec::<f32>()), (6.0, vec![1.0, 3.0, 6.0]));
/// ```
#[track_caller]
pub fn scan<C: Tensors, X: Tensors, Y: Tensors>(f: impl FnOnce(C, X) -> (C, Y), init: &C, xs: &X) -> (C, Y) {
    scan_with(f, init, xs, ScanOptions::default())
}

/// As [`scan`], from the last row to the first, or as often as `length` says.
///
/// ```
/// use xlazy::prelude::*;
/// let options = ScanOptions { length: Some(4), ..Default::default() };
/// let (last, all) = scan_with(|x: Tensor, ()| (&x * 2.0, x), &tensor(1.0), &(), options);
/// assert_eq!((last.item(), all.to_vec::<f32>()), (16.0, vec![1.0, 2.0, 4.0, 8.0]));
/// ```
#[track_caller]
pub fn scan_with<C: Tensors, X: Tensors, Y: Tensors>(
    f: impl FnOnce(C, X) -> (C, Y),
    init: &C,
    xs: &X,
    options: ScanOptions,
) -> (C, Y) {
    let (start, rows) = (flat(init), flat(xs));
    let how = how("scan", &rows, options);
    let mut like = None;
    let (carried, results) = run(&how, &start, &rows, |_, carry, row| {
        let (carry, y) = f(filled(init, carry), filled(xs, row));
        let given = (flat(&carry), flat(&y));
        like = Some((carry, y));
        given
    });
    let (carry, y) = like.expect("the body ran");
    check_alike("scan", init, &carry);
    (filled(init, &carried), filled(&y, &results))
}

/// What `f` gives of each row of `xs`, stacked: one program however many rows there are (`torch._higher_order_ops.map`,
/// `jax.lax.map`). The rows come one after the other; an op on the whole tensor is faster where there is one. Gradients flow.
///
/// ```
/// use xlazy::prelude::*;
/// let y = map(|row: Tensor| row.sort(0, true).0, &tensor([[1.0, 2.0], [4.0, 3.0]]));
/// assert_eq!(y.to_vec::<f32>(), [2.0, 1.0, 4.0, 3.0]);
/// ```
#[track_caller]
pub fn map<X: Tensors, Y: Tensors>(f: impl FnOnce(X) -> Y, xs: &X) -> Y {
    let rows = flat(xs);
    let how = how("map", &rows, ScanOptions::default());
    let mut like = None;
    let (_, results) = run(&how, &[], &rows, |_, _, row| {
        let y = f(filled(xs, row));
        let given = (vec![], flat(&y));
        like = Some(y);
        given
    });
    filled(&like.expect("the body ran"), &results)
}

/// How many rounds there are.
#[track_caller]
fn how(op: &'static str, rows: &[Tensor], options: ScanOptions) -> How {
    let all: Vec<&Tensor> = rows.iter().collect();
    let lengths = rows.iter().map(|x| match x.shape().first() {
        Some(&n) => n,
        None => refuse(op, &all, "goes over rows, and a tensor without dimensions has none"),
    });
    let lengths: Vec<usize> = options.length.into_iter().chain(lengths).collect();
    let Some(&length) = lengths.first() else {
        refuse(
            op,
            &[],
            "without rows to go over it needs a length: `scan_with` and `ScanOptions { length: Some(n), .. }`",
        )
    };
    if let Some(other) = lengths.iter().find(|n| **n != length) {
        refuse(op, &all, format!("the rows are of different numbers: {length} and {other}"));
    }
    How { op, at: Location::caller(), length, reverse: options.reverse }
}
