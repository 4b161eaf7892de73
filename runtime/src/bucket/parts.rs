//! What ops do along a bucketed dimension itself: parts of it, its order, what is picked from it, joins. Where the real
//! elements end is a number, and so are the positions that follow from it: parameters, which compile nothing.
use super::masked;
use super::rules::{Answer, Neutral, again, along, along_second, runs_along, same, wrapped};
use crate::tensor::{Arg, Bucketed, Plan, Tensor, UNBUCKET, buckets_of, caller_line, marked, physically, run_bucketed};
use xlazy_core::ir::{AttrsExt, Bucket};
use xlazy_core::ty::Scalar;

/// The elements of `x` at `positions` along a dimension, whatever there is in it physically.
#[track_caller]
fn at(x: &Tensor, dim: usize, positions: &Tensor) -> Tensor {
    physically(|| x.index_select(dim as i64, positions))
}

/// 0, 1, 2… as far as a bucket goes.
#[track_caller]
fn counted(n: usize) -> Tensor {
    physically(|| Tensor::arange(0, n, 1))
}

/// The buckets of `x` but for one dimension.
fn others(x: &Tensor, dim: usize) -> Vec<Bucket> {
    buckets_of(x).into_iter().filter(|b| b.dim != dim).collect()
}

/// `x[start..end..step]` along a dimension where the part ends with the real elements, or so many before them: how long it
/// is follows from how many there are, and so it has the bucket. `None` where the dimension has none.
#[track_caller]
pub(crate) fn ends_with(x: &Tensor, dim: usize, [start, end, step]: [i64; 3]) -> Option<Tensor> {
    let k = buckets_of(x).into_iter().find(|b| b.dim == dim)?;
    let _line = caller_line();
    let bucket = physically(|| x.shape())[dim];
    let positions = physically(|| (counted(bucket) * step + start).clamp_max(k.size as i64 - 1).clamp_min(0));
    let mut buckets = others(x, dim);
    buckets.push(Bucket { dim, size: ((end - start + step - 1) / step).max(0) as usize });
    Some(marked(at(x, dim, &positions), buckets))
}

/// A part of fixed length, which is plain. Where it begins may follow from the size.
pub(crate) fn slice(b: &mut Bucketed) -> Answer {
    let (dim, start, step) = (b.attrs.index(0), b.attrs.int(1), b.attrs.int(3));
    if b.at(0, dim).is_none() {
        return along(b);
    }
    let x = b.tensor(0);
    let positions = physically(|| counted(b.out.shape[dim]) * step + start);
    Ok(Plan::Instead(marked(at(&x, dim, &positions), others(&x, dim))))
}

/// Both operands have the same buckets, in dimensions that stay whole.
pub(crate) fn slice_scatter(b: &mut Bucketed) -> Answer {
    let dim = b.attrs.index(0);
    if let Some(bucket) = b.at(0, dim).or_else(|| b.at(1, dim)) {
        return Err(runs_along(bucket));
    }
    if b.operands[0].buckets != b.operands[1].buckets {
        return Err("the part must have the buckets of what it is put into".to_owned() + UNBUCKET);
    }
    Ok(Plan::Trace(b.operands[0].buckets.iter().map(|(k, _)| k.dim).collect()))
}

pub(crate) fn flip(b: &mut Bucketed) -> Answer {
    let x = b.tensor(0);
    let (along, plain): (Vec<usize>, Vec<usize>) = b.attrs.dims(0).into_iter().partition(|&d| b.at(0, d).is_some());
    let plain: Vec<i64> = plain.into_iter().map(|d| d as i64).collect();
    let start = if plain.is_empty() { x.clone() } else { physically(|| x.flip(plain)) };
    let flipped = along.iter().filter_map(|&d| b.at(0, d)).fold(start, |y, (k, bucket)| {
        let positions = physically(|| ((k.size as i64 - 1) - counted(bucket)).clamp_min(0));
        at(&y, k.dim, &positions)
    });
    Ok(Plan::Instead(marked(flipped, buckets_of(&x))))
}

/// By attribute 0 along the dimension of attribute 1, round the end of what is real.
pub(crate) fn roll(b: &mut Bucketed) -> Answer {
    let (shift, dim) = (b.attrs.int(0), b.attrs.index(1));
    let Some((k, bucket)) = b.at(0, dim) else { return along_second(b) };
    let x = b.tensor(0);
    let positions = physically(|| (counted(bucket) - shift).remainder(k.size.max(1) as i64));
    Ok(Plan::Instead(marked(at(&x, dim, &positions), buckets_of(&x))))
}

/// In order along the dimension of attribute 0, the padding behind all that is real; attribute 1: the largest first.
pub(crate) fn sorted(b: &mut Bucketed) -> Answer {
    let Some((k, _)) = b.at(0, b.attrs.index(0)) else { return along(b) };
    let (dtype, descending) = (b.operands[0].ty.dtype, b.attrs.flag(1));
    // Equals keep their order, and NaN is the largest number.
    let last = match descending {
        true => Neutral::Least.of(dtype),
        false if dtype.is_differentiable() => Scalar::Float(f64::NAN),
        false => Neutral::Most.of(dtype),
    };
    b.mask(0, k.dim, last);
    again(b, k)
}

/// What accumulates along the dimension of attribute 0 stays as it is over the padding.
fn running(b: &mut Bucketed, neutral: Neutral) -> Answer {
    let neutral = neutral.of(b.operands[0].ty.dtype);
    b.mask(0, b.attrs.index(0), neutral);
    Ok(Plan::Trace(b.operands[0].buckets.iter().map(|(k, _)| k.dim).collect()))
}

pub(crate) fn cumsum(b: &mut Bucketed) -> Answer {
    running(b, Neutral::Zero)
}

pub(crate) fn cumprod(b: &mut Bucketed) -> Answer {
    running(b, Neutral::One)
}

/// Joins along the dimension of attribute 0; all others are bucketed alike.
pub(crate) fn cat(b: &mut Bucketed) -> Answer {
    let (dim, rank, all) = (b.attrs.index(0), b.rank(0), b.args.len());
    let views: Vec<_> = (0..all).map(|i| (i, 0..rank)).collect();
    b.widen(&views, rank, Some(dim));
    let bucketed = |d: &usize| *d != dim && (0..all).any(|i| b.at(i, *d).is_some());
    let mut dims: Vec<usize> = (0..rank).filter(bucketed).collect();
    for &d in &dims {
        (1..all).try_for_each(|i| same(b, (0, d), (i, d)))?;
    }
    let along: Vec<Option<(Bucket, usize)>> = (0..all).map(|i| b.at(i, dim)).collect();
    if along.iter().any(Option::is_some) {
        dims.push(dim);
    }
    // Behind the last operand its padding is where it belongs.
    if along[..all - 1].iter().all(Option::is_none) {
        return Ok(Plan::Trace(dims));
    }
    let joined = run_bucketed(b, &dims).map_err(|e| e.to_string())?;
    let buckets = buckets_of(&joined);
    let positions = physically(|| {
        let i = counted(joined.shape()[dim]).clamp_max(b.out.shape[dim] as i64 - 1);
        let (mut real, mut padded) = (0, 0);
        let mut positions = i.clone();
        for (operand, k) in along.iter().enumerate() {
            let size = b.operands[operand].ty.shape[dim];
            if padded > real {
                positions = (&i + (padded - real)).where_(&i.ge(real), &positions);
            }
            real += size as i64;
            padded += k.map_or(size, |(_, bucket)| bucket) as i64;
        }
        positions
    });
    Ok(Plan::Instead(marked(at(&joined, dim, &positions), buckets)))
}

/// Picks along the dimension of attribute 0; the others of tensor and index are bucketed alike.
pub(crate) fn gather(b: &mut Bucketed) -> Answer {
    let dim = b.attrs.index(0);
    (0..b.rank(0)).filter(|&d| d != dim).try_for_each(|d| same(b, (0, d), (1, d)))?;
    wrapped(b, 1, dim);
    Ok(Plan::Trace(b.operands[1].buckets.iter().map(|(k, _)| k.dim).collect()))
}

/// Writes along the dimension of attribute 0, which is plain, what is elsewhere bucketed alike in tensor, index and source.
/// `how` names what combines what falls on one place.
pub(crate) fn scatter(b: &mut Bucketed, neutral: Option<Neutral>) -> Answer {
    let dim = b.attrs.index(0);
    if let Some(bucket) = b.at(0, dim) {
        return Err(runs_along(bucket));
    }
    (0..b.rank(0)).filter(|&d| d != dim).try_for_each(|d| same(b, (0, d), (1, d)))?;
    let from_tensor = b.rank(2) > 0;
    if from_tensor {
        (0..b.rank(0)).try_for_each(|d| same(b, (1, d), (2, d)))?;
    }
    if let Some(bucket) = b.at(1, dim) {
        match neutral {
            Some(neutral) if from_tensor => {
                let fill = neutral.of(b.operands[2].ty.dtype);
                b.mask(2, dim, fill);
            }
            _ => return Err(runs_along(bucket)),
        }
    }
    Ok(Plan::Trace(b.operands[0].buckets.iter().map(|(k, _)| k.dim).collect()))
}

/// Writes at the index operands, from 2 on, along the dimensions of attribute 0, of which one may be bucketed, what operand 1
/// holds: their shape comes to stand at attribute 1, and where it is bucketed so is operand 1, whose padding adds nothing.
pub(crate) fn index_put(b: &mut Bucketed, neutral: Option<Neutral>) -> Answer {
    let (dims, stands) = (b.attrs.dims(0), b.attrs.index(1));
    let written: Vec<_> = dims.iter().enumerate().filter_map(|(i, &d)| Some((i, d, b.at(0, d)?))).collect();
    if let Some(&(_, _, more)) = written.get(1) {
        return Err(runs_along(more));
    }
    if let Some(&(i, d, _)) = written.first() {
        wrapped(b, 2 + i, d);
    }
    let views: Vec<_> = (2..b.args.len()).map(|i| (i, 0..b.rank(i))).collect();
    let wide = views.iter().map(|(_, r)| r.end).max().unwrap_or(0);
    let picked = b.aligned(&views, wide)?;
    let left: Vec<usize> = (0..b.rank(0)).filter(|d| !dims.contains(d)).collect();
    let place = |k: usize| if k < stands { k } else { k + wide };
    let rank = left.len() + wide;
    // Where operand 1 broadcasts it has fewer dimensions than the place that it is written to.
    let own = b.rank(1);
    let mine = |d: usize| (d + own).checked_sub(rank);
    for (k, &d) in left.iter().enumerate() {
        if let Some(e) = mine(place(k)).filter(|&e| b.operands[1].ty.shape[e] != 1 || b.at(1, e).is_some()) {
            same(b, (0, d), (1, e))?;
        }
    }
    for d in picked {
        let bucketed = mine(d + stands).and_then(|e| b.at(1, e));
        let Some((neutral, (k, _))) = neutral.zip(bucketed) else {
            let index = b.operands[2].buckets.first().copied();
            return Err(index.map_or(String::new(), runs_along));
        };
        let fill = neutral.of(b.operands[1].ty.dtype);
        b.args[1] = Arg::Owned(masked(&b.tensor(1), k, fill));
    }
    match written.first() {
        Some(&(_, _, (bucket, _))) => again(b, bucket),
        None => Ok(Plan::Trace(b.operands[0].buckets.iter().map(|(k, _)| k.dim).collect())),
    }
}
