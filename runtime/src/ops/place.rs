//! Ops that go by where an element is: triangles of matrices, rolls, repeats.
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, refuse, trace};
use xlazy_core::emit::Val;
use xlazy_core::ir::Role::{Axis, Position};
use xlazy_core::ir::{AttrsExt, Healed, Kind, Lower, Rule, Sig, attr, rules};
use xlazy_core::ty::{DType, Dims, Type};

// The diagonal is an attribute, or the last operand where it keeps changing.
fn triangle(l: &mut Lower, upper: bool) -> Val {
    let x = l.x(0);
    let (r, c) = (x.rank() - 2, x.rank() - 1);
    let index = Type::new(DType::I64, x.shape().clone());
    let row = l.iota(&index, r);
    let column = l.iota(&index, c);
    let diagonal = match l.inputs.get(1) {
        Some(d) => l.e.broadcast(d, x.shape()),
        None => {
            let diagonal = l.attrs.int(0) as f64;
            l.constant(diagonal, &index)
        }
    };
    let edge = l.add(&row, &diagonal);
    let keep = l.compare(if upper { "GE" } else { "LE" }, &column, &edge);
    let zero = l.constant(0.0, &x.ty);
    l.select(&keep, &x, &zero)
}

fn matrix(s: &Sig) -> Rule {
    if s.rank(0) < 2 { Err("needs a tensor of at least 2 dimensions".into()) } else { rules::same(s) }
}

fn triangle_samples() -> Vec<Sample> {
    vec![Sample::of(&[&[3, 4]]).attrs(vec![0usize.into()]), Sample::of(&[&[2, 3, 3]]).attrs(vec![(-1i64).into()])]
}

static TRIL: Entry = Entry::new("tril", matrix, |l| triangle(l, false))
    .attrs(&[attr("diagonal", Position)])
    .samples(triangle_samples)
    .grad(|g| vec![Some(g.dy.tril(g.attrs.int(0)))])
    .heal(|attrs| Some(Healed { op: &TRIL_AT.op, attrs: [].into(), value: attrs[0].clone() }))
    .bucket(bucket::each);

static TRIU: Entry = Entry::new("triu", matrix, |l| triangle(l, true))
    .attrs(&[attr("diagonal", Position)])
    .samples(triangle_samples)
    .grad(|g| vec![Some(g.dy.triu(g.attrs.int(0)))])
    .heal(|attrs| Some(Healed { op: &TRIU_AT.op, attrs: [].into(), value: attrs[0].clone() }))
    .bucket(bucket::each);

fn triangle_at_samples() -> Vec<Sample> {
    vec![Sample::of(&[&[3, 4]]).index(&[], 3)]
}

static TRIL_AT: Entry =
    Entry::new("tril.diagonal", matrix, |l| triangle(l, false)).samples(triangle_at_samples).bucket(bucket::each);
static TRIU_AT: Entry =
    Entry::new("triu.diagonal", matrix, |l| triangle(l, true)).samples(triangle_at_samples).bucket(bucket::each);

// Elements moved along one dimension, round the end.
static ROLL: Entry = Entry::new("roll", rules::same, |l| {
    let (x, dim) = (l.x(0), l.attrs.index(1));
    let n = x.shape()[dim] as i64;
    let (mut from, mut to) = (vec![0; x.rank()], x.shape().iter().map(|&d| d as i64).collect::<Vec<_>>());
    let ones = vec![1; x.rank()];
    from[dim] = n - l.attrs.int(0);
    let end = l.slice(&x, &from, &to, &ones);
    (from[dim], to[dim]) = (0, n - l.attrs.int(0));
    let start = l.slice(&x, &from, &to, &ones);
    l.concatenate(&[&end, &start], dim)
})
.kind(Kind::View)
.attrs(&[attr("shift", Position), attr("dim", Axis)])
.samples(|| vec![Sample::of(&[&[2, 5]]).attrs(vec![2usize.into(), 1usize.into()])])
.grad(|g| vec![Some(g.dy.roll(-g.attrs.int(0), g.attrs.int(1)))])
.heal(|attrs| Some(Healed { op: &ROLL_AT.op, attrs: [attrs[1].clone()].into(), value: attrs[0].clone() }))
.bucket(bucket::roll);

static ROLL_AT: Entry = Entry::new("roll.shift", rules::same, |l| {
    let (x, shift, dim) = (l.x(0), l.x(1), l.attrs.index(0));
    let n = l.scalar(x.shape()[dim] as f64, shift.dtype());
    let start = l.sub(&n, &shift);
    let twice = l.concatenate(&[&x, &x], dim);
    let starts = l.starts(&start, dim, x.rank());
    l.dynamic_slice(&twice, &starts, x.shape())
})
.kind(Kind::View)
.attrs(&[attr("dim", Axis)])
.samples(|| vec![Sample::of(&[&[2, 5]]).index(&[], 5).attrs(vec![1usize.into()])])
.bucket(bucket::along);

pub(super) static OPS: &[&Entry] = &[&TRIL, &TRIU, &TRIL_AT, &TRIU_AT, &ROLL, &ROLL_AT];

/// `x` moved by `shift`, less than its size, along one dimension.
#[track_caller]
pub(super) fn rolled(x: &Tensor, shift: i64, dim: usize) -> Tensor {
    trace(&ROLL, [x.into()], [shift.into(), dim.into()])
}

impl Tensor {
    /// The lower triangle of each matrix, zeros elsewhere (`torch.tril`).
    ///
    /// `Tensor::ones([2, 2]).tril(0)` is `[[1., 0.], [1., 1.]]`.
    #[track_caller]
    pub fn tril(&self, diagonal: i64) -> Tensor {
        trace(&TRIL, [self.into()], [diagonal.into()])
    }

    /// The upper triangle of each matrix, zeros elsewhere (`torch.triu`).
    ///
    /// `Tensor::ones([2, 2]).triu(1)` is `[[0., 1.], [0., 0.]]`.
    #[track_caller]
    pub fn triu(&self, diagonal: i64) -> Tensor {
        trace(&TRIU, [self.into()], [diagonal.into()])
    }

    /// Repeated along each dimension (`torch.Tensor.repeat`).
    ///
    /// `tensor([1, 2]).repeat([2])` is `[1, 2, 1, 2]`.
    #[track_caller]
    pub fn repeat(&self, times: impl Into<Dims>) -> Tensor {
        let times = times.into().shape("repeat").unwrap_or_else(|e| e.raise());
        if times.len() < self.dim() {
            refuse("repeat", &[self], format!("{times} names fewer dimensions than the tensor has"));
        }
        let skip = times.len() - self.dim();
        let (mut from, mut wide, mut out) = (vec![], vec![], vec![]);
        for (i, &t) in times.iter().enumerate() {
            let n = if i < skip { 1 } else { self.shape()[i - skip] };
            from.extend([1, n]);
            wide.extend([t, n]);
            out.push(t * n);
        }
        self.reshape(from).expand(wide).reshape(out).apart()
    }
}
