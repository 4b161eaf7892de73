//! What ops do with bucketed operands, as rules that many share. A rule masks what its op would mix in, maps attributes
//! that hold sizes, and says which dimensions of the result are bucketed; or it refuses.
use super::refilled;
use crate::tensor::{Arg, Bucketed, Plan, UNBUCKET, buckets_of, marked, run_bucketed};
use std::ops::Range;
use xlazy_core::ir::{AttrsExt, Bucket};
use xlazy_core::ty::{Category, DType, Scalar};

pub(super) type Answer = Result<Plan, String>;

/// Elementwise, with broadcasting: every operand's dimension is bucketed alike, or of size 1.
pub(crate) fn each(b: &mut Bucketed) -> Answer {
    let views: Vec<(usize, Range<usize>)> = (0..b.args.len()).map(|i| (i, 0..b.rank(i))).collect();
    b.widen(&views, b.out.shape.len(), None);
    Ok(Plan::Trace(b.aligned(&views, b.out.shape.len())?))
}

/// Along the dimension of attribute 0, which must not be bucketed.
pub(crate) fn along(b: &mut Bucketed) -> Answer {
    apart(b, &[b.attrs.index(0)])
}

/// As [`along`], the dimension being attribute 1.
pub(crate) fn along_second(b: &mut Bucketed) -> Answer {
    apart(b, &[b.attrs.index(1)])
}

/// Does something along `dims`; the others go through.
fn apart(b: &mut Bucketed, dims: &[usize]) -> Answer {
    match dims.iter().find_map(|&d| b.at(0, d)) {
        Some(bucket) => Err(runs_along(bucket)),
        None => Ok(Plan::Trace(b.operands[0].buckets.iter().map(|(k, _)| k.dim).collect())),
    }
}

pub(super) fn runs_along((b, bucket): (Bucket, usize)) -> String {
    format!("not defined along dimension {}, which is bucketed ({} of {bucket}){UNBUCKET}", b.dim, b.size)
}

/// What padding becomes before a reduction, so that it changes nothing.
#[derive(Clone, Copy)]
pub(crate) enum Neutral {
    Zero,
    One,
    /// Below every number of the dtype.
    Least,
    /// Above every number of the dtype.
    Most,
    MinusInfinity,
}

impl Neutral {
    pub(super) fn of(self, dtype: DType) -> Scalar {
        let whole = |v: i64| match dtype.category() {
            Category::Bool => Scalar::Bool(v > 0),
            Category::Int => Scalar::Int(v),
            _ => Scalar::Float(v as f64),
        };
        match self {
            Neutral::Zero => whole(0),
            Neutral::One => whole(1),
            Neutral::MinusInfinity => Scalar::Float(f64::NEG_INFINITY),
            Neutral::Least => dtype.format().limits().0,
            Neutral::Most => dtype.format().limits().1,
        }
    }
}

fn reduce(b: &mut Bucketed, dims: &[usize], keep: bool, neutral: Neutral) -> Answer {
    let neutral = neutral.of(b.operands[0].ty.dtype);
    dims.iter().for_each(|&d| b.mask(0, d, neutral));
    let left = b.operands[0].buckets.iter().map(|(k, _)| k.dim).filter(|d| !dims.contains(d));
    let place = |d: usize| if keep { d } else { d - dims.iter().filter(|&&r| r < d).count() };
    Ok(Plan::Trace(left.map(place).collect()))
}

fn reduce_all(b: &mut Bucketed, neutral: Neutral) -> Answer {
    reduce(b, &b.attrs.dims(0), b.attrs.flag(1), neutral)
}

pub(crate) fn sum(b: &mut Bucketed) -> Answer {
    reduce_all(b, Neutral::Zero)
}

pub(crate) fn prod(b: &mut Bucketed) -> Answer {
    reduce_all(b, Neutral::One)
}

pub(crate) fn max(b: &mut Bucketed) -> Answer {
    reduce_all(b, Neutral::Least)
}

pub(crate) fn min(b: &mut Bucketed) -> Answer {
    reduce_all(b, Neutral::Most)
}

pub(crate) fn logsumexp(b: &mut Bucketed) -> Answer {
    reduce_all(b, Neutral::MinusInfinity)
}

/// The sum divided by how many elements there really are, a parameter.
pub(crate) fn mean(b: &mut Bucketed) -> Answer {
    let (dims, keep) = (b.attrs.dims(0), b.attrs.flag(1));
    if dims.iter().all(|&d| b.at(0, d).is_none()) {
        return sum(b);
    }
    let n: usize = dims.iter().map(|&d| b.operands[0].ty.shape[d]).product();
    Ok(Plan::Instead(b.tensor(0).sum_dim(dims.as_slice(), keep) / n as f64))
}

pub(crate) fn argmax(b: &mut Bucketed) -> Answer {
    reduce(b, &[b.attrs.index(0)], b.attrs.flag(1), Neutral::Least)
}

pub(crate) fn argmin(b: &mut Bucketed) -> Answer {
    reduce(b, &[b.attrs.index(0)], b.attrs.flag(1), Neutral::Most)
}

/// Shares along the dimension of attribute 0, of which the padding has none.
pub(crate) fn softmax(b: &mut Bucketed) -> Answer {
    let dims: Vec<usize> = b.operands[0].buckets.iter().map(|(k, _)| k.dim).collect();
    match b.at(0, b.attrs.index(0)) {
        None => Ok(Plan::Trace(dims)),
        Some((bucket, _)) => {
            b.mask(0, bucket.dim, f64::NEG_INFINITY);
            again(b, bucket)
        }
    }
}

/// Rows, columns and batches go through; where the summed dimension is bucketed it is so in both, and masked.
pub(crate) fn matmul(b: &mut Bucketed) -> Answer {
    let (ra, rb) = (b.rank(0), b.rank(1));
    let (ka, kb) = (ra - 1, rb.saturating_sub(2));
    b.widen(&[(0, ka..ka + 1), (1, kb..kb + 1)], 1, None);
    same(b, (0, ka), (1, kb))?;
    b.mask(0, ka, 0.0);
    b.mask(1, kb, 0.0);
    let batch = ra.max(rb).saturating_sub(2);
    let views = [(0, 0..ra.saturating_sub(2)), (1, 0..rb.saturating_sub(2))];
    b.widen(&views, batch, None);
    let mut out = b.aligned(&views, batch)?;
    if ra > 1 && b.at(0, ra - 2).is_some() {
        out.push(batch);
    }
    if rb > 1 && b.at(1, rb - 1).is_some() {
        out.push(batch + usize::from(ra > 1));
    }
    Ok(Plan::Trace(out))
}

/// Batches go through.
pub(crate) fn convolution(b: &mut Bucketed) -> Answer {
    let space = (1..b.rank(0)).find_map(|d| b.at(0, d));
    match space.or_else(|| b.operands[1].buckets.first().copied()) {
        Some(bucket) => Err(runs_along(bucket)),
        None => Ok(Plan::Trace(vec![0])),
    }
}

/// Windows: attributes 0 to 3 are their sizes, strides and paddings in each dimension.
pub(crate) fn windows(b: &mut Bucketed) -> Answer {
    let moving = |d: &usize| [1, 1, 0, 0] != [0, 1, 2, 3].map(|i| b.attrs.ints(i)[*d]);
    let dims: Vec<usize> = (0..b.rank(0)).filter(moving).collect();
    apart(b, &dims)
}

/// Padding, by attributes 0 to 2 in each dimension.
pub(crate) fn padding(b: &mut Bucketed) -> Answer {
    let grows = |d: &usize| (0..3).any(|i| b.attrs.ints(i)[*d] != 0);
    let dims: Vec<usize> = (0..b.rank(0)).filter(grows).collect();
    apart(b, &dims)
}

pub(crate) fn permute(b: &mut Bucketed) -> Answer {
    let order = b.attrs.dims(0);
    Ok(Plan::Trace((0..order.len()).filter(|&d| b.at(0, order[d]).is_some()).collect()))
}

/// Picks along the dimensions of attribute 0 by the operands from 1 on, whose shape comes to stand at attribute 1.
pub(crate) fn index(b: &mut Bucketed) -> Answer {
    let (dims, at) = (b.attrs.dims(0), b.attrs.index(1));
    dims.iter().enumerate().for_each(|(i, &d)| wrapped(b, i + 1, d));
    let views: Vec<(usize, Range<usize>)> = (1..b.args.len()).map(|i| (i, 0..b.rank(i))).collect();
    let wide = views.iter().map(|(_, r)| r.end).max().unwrap_or(0);
    let mut out: Vec<usize> = b.aligned(&views, wide)?.into_iter().map(|d| d + at).collect();
    let left = (0..b.rank(0)).filter(|d| !dims.contains(d)).enumerate();
    out.extend(left.filter(|(_, d)| b.at(0, *d).is_some()).map(|(k, _)| if k < at { k } else { k + wide }));
    Ok(Plan::Trace(out))
}

/// Grows dimensions of size 1 to the sizes of attribute 0.
pub(crate) fn expand(b: &mut Bucketed) -> Answer {
    let mut sizes = b.attrs.ints(0).to_vec();
    let skip = sizes.len() - b.rank(0);
    for (k, bucket) in &b.operands[0].buckets {
        if sizes[skip + k.dim] != k.size as i64 {
            return Err(format!("dimension {} is bucketed and does not grow{UNBUCKET}", k.dim));
        }
        sizes[skip + k.dim] = *bucket as i64;
    }
    b.attrs[0] = sizes.into();
    Ok(Plan::Trace(b.operands[0].buckets.iter().map(|(k, _)| skip + k.dim).collect()))
}

/// A bucketed dimension may stay, take in what comes after it, or have its inner part split off: then its real elements
/// remain the first ones.
pub(crate) fn reshape(b: &mut Bucketed) -> Answer {
    let (from, mut to) = (b.operands[0].ty.shape.clone(), b.attrs.ints(0).to_vec());
    let shown = b.out.shape.clone();
    let mut out = Vec::new();
    for &(k, bucket) in &b.operands[0].buckets {
        let before: usize = from[..k.dim].iter().product();
        let outer = |d: usize| shown[..d].iter().product::<usize>();
        let physical = |d: usize| match (k.size, shown[d]) {
            (n, m) if n == m => Some(bucket),
            (0, _) | (_, 0) => None,
            (n, m) if m % n == 0 => Some(bucket * (m / n)),
            (n, m) if n % m == 0 && bucket % (n / m) == 0 => Some(bucket / (n / m)),
            _ => None,
        };
        let places = || (0..shown.len()).filter(|&d| outer(d) == before && !out.contains(&d));
        let exact = places().find(|&d| shown[d] == k.size);
        let found = exact.or_else(|| places().find(|&d| physical(d).is_some()));
        let Some((d, size)) = found.and_then(|d| Some((d, physical(d)?))) else {
            return Err(format!(
                "not defined where {from} becomes {shown}: the real elements of dimension {}, which is bucketed ({} of {bucket}), \
                 would not stay together{UNBUCKET}",
                k.dim, k.size
            ));
        };
        to[d] = size as i64;
        out.push(d);
    }
    b.attrs[0] = to.into();
    Ok(Plan::Trace(out))
}

/// The op as it is, with the padding of one dimension as it should be.
pub(super) fn again(b: &mut Bucketed, k: Bucket) -> Answer {
    let dims: Vec<usize> = b.operands[0].buckets.iter().map(|(k, _)| k.dim).collect();
    let y = run_bucketed(b, &dims).map_err(|e| e.to_string())?;
    let buckets = buckets_of(&y);
    Ok(Plan::Instead(marked(refilled(&y, k), buckets)))
}

/// Positions in a bucketed dimension that count from the end do so from the last real element.
pub(super) fn wrapped(b: &mut Bucketed, operand: usize, dim: usize) {
    let Some((k, _)) = b.at(0, dim) else { return };
    let index = b.tensor(operand);
    if index.dtype().category() == Category::Int {
        let index = index.to(DType::I64);
        b.args[operand] = Arg::Owned(index.where_(&index.ge(0), &index + k.size as i64));
    }
}

/// Two dimensions of two operands are bucketed alike, or both plain.
pub(super) fn same(b: &Bucketed, x: (usize, usize), y: (usize, usize)) -> Result<(), String> {
    let at = |(i, d): (usize, usize)| b.at(i, d);
    match (at(x), at(y)) {
        (None, None) => Ok(()),
        (Some((p, m)), Some((q, n))) if p.size == q.size && m == n => Ok(()),
        _ => Err(unlike(b, x, y)),
    }
}

fn unlike(b: &Bucketed, x: (usize, usize), y: (usize, usize)) -> String {
    let (bucket, of) = match b.at(x.0, x.1).or_else(|| b.at(y.0, y.1)) {
        Some((_, n)) => (n, if b.at(x.0, x.1).is_some() { y } else { x }),
        None => (0, y),
    };
    let say = |(i, d): (usize, usize)| match b.at(i, d) {
        Some((k, n)) => format!("operand {} has {} in a bucket of {n}", i + 1, k.size),
        None => format!("operand {} has {} and no bucket", i + 1, b.operands[i].ty.shape[d]),
    };
    format!(
        "{}, {}: give both the same buckets, `.dynamic({}).buckets([{bucket}])` (`zeros_like` and its like have those of \
         their tensor)",
        say(x),
        say(y),
        of.1
    )
}

impl Bucketed<'_> {
    /// Parts of operands aligned at their last dimension, as broadcasting does: which of `rank` common dimensions are
    /// bucketed. Beside a bucketed dimension another operand has none, one of size 1, or one bucketed alike.
    pub(super) fn aligned(&self, views: &[(usize, Range<usize>)], rank: usize) -> Result<Vec<usize>, String> {
        let mut out = Vec::new();
        for d in 0..rank {
            let place = |(i, part): &(usize, Range<usize>)| {
                let skip = rank - part.len();
                (d >= skip).then(|| (*i, part.start + d - skip))
            };
            let here: Vec<(usize, usize)> = views.iter().filter_map(place).collect();
            let Some(&first) = here.iter().find(|(i, d)| self.at(*i, *d).is_some()) else { continue };
            for &(i, d) in &here {
                let one = self.at(i, d).is_none() && self.operands[i].ty.shape[d] == 1;
                if !one {
                    same(self, first, (i, d))?;
                }
            }
            out.push(d);
        }
        Ok(out)
    }
}
