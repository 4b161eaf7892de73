//! Running extremes and sums of exponentials along a dimension, by doubling: the result of so many elements up to each,
//! then of twice as many.
use super::base::wide;
use crate::bucket::cumsum;
use crate::tensor::{Entry, Sample, Tensor, caller_line, trace};
use xlazy_core::emit::Val;
use xlazy_core::ir::Role::{Axis, Mode};
use xlazy_core::ir::{AttrsExt, Kind, Lower, Rule, Sig, attr, rules};
use xlazy_core::ty::{DType, Type};

// Each element moved `by` places up along `dim`; what comes in at the start is `x`'s own beginning, which nobody looks at.
fn moved(l: &mut Lower, x: &Val, dim: usize, by: usize) -> Val {
    let (zeros, ones) = (vec![0i64; x.rank()], vec![1i64; x.rank()]);
    let mut limit: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
    limit[dim] = by as i64;
    let start = l.slice(x, &zeros, &limit, &ones);
    limit[dim] = (x.shape()[dim] - by) as i64;
    let rest = l.slice(x, &zeros, &limit, &ones);
    l.concatenate(&[&start, &rest], dim)
}

// Where there is an element so far before.
fn reaches(l: &mut Lower, x: &Val, dim: usize, by: usize) -> Val {
    let place = l.iota(&Type::new(DType::I64, x.shape().clone()), dim);
    let by = l.constant(by as f64, &place.ty);
    l.compare("GE", &place, &by)
}

fn doublings(n: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1usize), |k| Some(k * 2)).take_while(move |&k| k < n)
}

fn positions(s: &Sig) -> Rule {
    rules::ordered(s)?;
    Ok(Type::new(DType::I64, s.shape(0).clone()))
}

// Where the largest or smallest element up to each is: the last of equals, NaN wins.
fn extreme_places(l: &mut Lower) -> Val {
    let x = l.x(0);
    let out = l.out.clone();
    if x.rank() == 0 || x.shape().numel() == 0 {
        return l.constant(0.0, &out);
    }
    let (dim, max) = (l.attrs.index(0), l.attrs.flag(1));
    let mut value = if x.dtype() == DType::Bool { l.convert(&x, DType::I32) } else { x };
    let mut at = l.iota(&out, dim);
    for by in doublings(out.shape[dim]) {
        let (before, there) = (moved(l, &value, dim, by), moved(l, &at, dim, by));
        let reach = reaches(l, &value, dim, by);
        // its own stays unless the one before is better, or a NaN where its own is none
        let better = l.compare(if max { "GT" } else { "LT" }, &before, &value);
        let nan = l.compare("NE", &before, &before);
        let number = l.compare("EQ", &value, &value);
        let nan = l.binary("and", &nan, &number);
        let better = l.binary("or", &better, &nan);
        let take = l.binary("and", &reach, &better);
        value = l.select(&take, &before, &value);
        at = l.select(&take, &there, &at);
    }
    at
}

static CUM_EXTREME: Entry = Entry::new("cummax.indices", positions, extreme_places)
    .kind(Kind::Along)
    .attrs(&[attr("dim", Axis), attr("largest", Mode)])
    .samples(|| {
        let of = |dim: usize, max: bool| Sample::of(&[&[2, 5]]).attrs(vec![dim.into(), max.into()]);
        vec![of(1, true), of(0, false)]
    })
    .bucket(cumsum);

// log(e^a + e^b); equal infinities would make NaN of their difference
fn log_add(l: &mut Lower, a: &Val, b: &Val) -> Val {
    if a.dtype().is_complex() {
        // the larger real part in front
        let part = Type::new(a.dtype().part(), a.shape().clone());
        let [x, y] = [a, b].map(|v| l.op("real", &[v], "", part.clone()));
        let first = l.compare("GE", &x, &y);
        let (top, rest) = (l.select(&first, a, b), l.select(&first, b, a));
        let d = l.sub(&rest, &top);
        let e = l.unary("exponential", &d);
        let more = l.with_const("add", &e, 1.0);
        let more = l.unary("log", &more);
        return l.add(&top, &more);
    }
    let most = l.binary("maximum", a, b);
    let d = l.sub(a, b);
    let d = l.unary("abs", &d);
    let same = l.compare("EQ", a, b);
    let zero = l.constant(0.0, &d.ty);
    let d = l.select(&same, &zero, &d);
    let d = l.unary("negate", &d);
    let e = l.unary("exponential", &d);
    let more = l.unary("log_plus_one", &e);
    let sum = l.add(&most, &more);
    let least = l.constant(f64::NEG_INFINITY, &most.ty);
    let none = l.compare("EQ", &most, &least);
    l.select(&none, &most, &sum)
}

static LOGCUMSUMEXP: Entry = Entry::new(
    "logcumsumexp",
    |s| Ok(Type::new(s.dtype(0).to_float(), s.shape(0).clone())),
    |l| {
        let mut x = l.cast(0);
        if x.rank() == 0 || x.shape().numel() == 0 {
            return x;
        }
        let dtype = x.dtype();
        x = wide(l, &x);
        let dim = l.attrs.index(0);
        for by in doublings(x.shape()[dim]) {
            let before = moved(l, &x, dim, by);
            let reach = reaches(l, &x, dim, by);
            let sum = log_add(l, &before, &x);
            x = l.select(&reach, &sum, &x);
        }
        l.convert(&x, dtype)
    },
)
.kind(Kind::Along)
.attrs(&[attr("dim", Axis)])
.samples(|| vec![Sample::of(&[&[2, 5]]).attrs(vec![1usize.into()]), Sample::of(&[&[3, 2]]).attrs(vec![0usize.into()])])
.grad(|g| {
    // dx_j = Σ_{i >= j} dy_i e^(x_j - y_i), whose exponents are never above 0
    let dim = g.attrs.int(0);
    if g.x(0).dim() == 0 {
        return vec![Some(g.dy.clone())];
    }
    // That of halves was rounded, which differences of large numbers would show.
    let y = if g.output.dtype().is_half() { g.x(0).logcumsumexp(dim) } else { g.y().clone() };
    let [x, y, dy] = [g.x(0), &y, &g.dy].map(|t| t.transpose(dim, -1));
    let n = x.size(-1);
    let later = Tensor::ones([n, n]).bool().tril(0);
    let exponent = x.unsqueeze(-2) - y.unsqueeze(-1);
    let empty = y.unsqueeze(-1).eq(f64::NEG_INFINITY);
    let shares = exponent.where_(&later.logical_and(empty.logical_not()), f64::NEG_INFINITY).exp();
    vec![Some((shares * dy.unsqueeze(-1)).sum_dim(-2, false).transpose(dim, -1))]
})
.bucket(cumsum);

pub(super) static OPS: &[&Entry] = &[&CUM_EXTREME, &LOGCUMSUMEXP];

impl Tensor {
    #[track_caller]
    fn running_extreme(&self, op: &'static str, dim: i64, largest: bool) -> (Tensor, Tensor) {
        let _line = caller_line();
        let d = self.dim_index(op, dim);
        let at = trace(&CUM_EXTREME, [self.into()], [d.into(), largest.into()]);
        (self.gather(dim, &at), at)
    }

    /// The largest element up to each along `dim`, and where it is, int64; NaN from the first one on (`torch.cummax`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (values, indices) = tensor([1.0, 3.0, 2.0]).cummax(0);
    /// assert_eq!(values.to_vec::<f32>(), [1.0, 3.0, 3.0]);
    /// assert_eq!(indices.to_vec::<i64>(), [0, 1, 1]);
    /// ```
    #[track_caller]
    pub fn cummax(&self, dim: i64) -> (Tensor, Tensor) {
        self.running_extreme("cummax", dim, true)
    }

    /// The smallest element up to each along `dim`, and where it is, int64; NaN from the first one on (`torch.cummin`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([2.0, 3.0, 1.0]).cummin(0).0.to_vec::<f32>(), [2.0, 2.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn cummin(&self, dim: i64) -> (Tensor, Tensor) {
        self.running_extreme("cummin", dim, false)
    }

    /// The logarithm of the running sum of e^x along `dim`, without overflow (`torch.logcumsumexp`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let y = tensor([0.0, 0.0]).logcumsumexp(0);
    /// assert_eq!(y.to_vec::<f32>(), [0.0, 2f32.ln()]);
    /// ```
    #[track_caller]
    pub fn logcumsumexp(&self, dim: i64) -> Tensor {
        trace(&LOGCUMSUMEXP, [self.into()], [self.dim_index("logcumsumexp", dim).into()])
    }
}
