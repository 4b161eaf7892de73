//! Bucketed dimensions: a tensor whose size changes from step to step is kept padded to one of a few sizes, so that each
//! of them is one program, however many sizes there are.
//!
//! A bucketed tensor's node has the padded type; beside it stands how much of each bucketed dimension is real
//! (`Bucket`), a number that enters programs as a parameter only. What a tensor shows of itself (`shape()`, its values)
//! is the real part. An op on it is traced as the plain op on what is there physically, with the padding masked where the
//! op would mix it in; each op's entry in the table says how (`Entry::bucket`), and refuses where it does not.
//!
//! Gradients need nothing of their own: what is traced is an ordinary program of fixed shapes whose masks keep the padding
//! out, and its gradient is taken as it stands (`physically`). The padding repeats the last real elements rather than
//! being zero, so that it makes no NaN (of a logarithm, of a division) that a mask's zero could not take out of a gradient.
mod advice;
mod parts;
mod rules;
#[cfg(test)]
mod tests;
mod widen;

pub(crate) use parts::*;
pub(crate) use rules::*;

use crate::Result;
use crate::tensor::{
    Arg, Bucketed, BucketedOperand, Tensor, buckets_of, caller_line, is_grad_enabled, is_physical, marked, no_grad,
    on_behalf, physically, refuse,
};
use std::panic::Location;
use xlazy_core::device::upload;
use xlazy_core::ir::{Bucket, Origin, graph};
use xlazy_core::run::{Cause, download};
use xlazy_core::ty::{Dims, Scalar, Shape, Type};

/// A dimension that is to be bucketed: what [`Tensor::dynamic`] gives.
#[must_use = "`.buckets([…])` says which sizes there are"]
pub struct Dynamic<'a> {
    x: &'a Tensor,
    dim: i64,
}

impl Dynamic<'_> {
    /// The tensor padded to the smallest of `sizes` that holds it, so that every size up to the largest runs in the program
    /// of its bucket. It shows and computes only what is real; results are those of the plain tensor. A size above the
    /// largest bucket is refused, as is every op that is not defined on padded dimensions, by name.
    ///
    /// The values are padded on the host: they are read and sent again, and run first if they are pending. Random numbers of
    /// a bucketed shape (`rand_like`, dropout) are others than those of the plain one.
    #[track_caller]
    pub fn buckets(self, sizes: impl Into<Dims>) -> Tensor {
        let (x, at) = (self.x, Location::caller());
        let dim = x.dim_index("dynamic", self.dim);
        let mut sizes = sizes.into().0;
        sizes.sort_unstable();
        if x.dim() == 0 || sizes.first().is_none_or(|&s| s < 1) {
            refuse("dynamic", &[x], "needs a dimension and at least one bucket, each of 1 or more");
        }
        if x.requires_grad() {
            let how = "gradients do not flow through the padding: bucket the data first, then `requires_grad_(true)`";
            refuse("dynamic", &[x], how);
        }
        let known = buckets_of(x);
        if known.iter().any(|b| b.dim == dim) {
            refuse("dynamic", &[x], format!("dimension {dim} has a bucket already"));
        }
        let size = x.shape()[dim];
        let Some(&bucket) = sizes.iter().find(|&&s| s as usize >= size) else {
            let most = sizes[sizes.len() - 1];
            let message = format!(
                "dimension {dim} has {size} elements and the largest bucket holds {most}: name a bucket of {size} or more, \
                 or split the tensor"
            );
            refuse("dynamic", &[x], message);
        };
        let mut buckets = known;
        buckets.push(Bucket { dim, size });
        let padded = on_behalf(at, false, || pad(x, dim, size, bucket as usize, at)).unwrap_or_else(|e| e.raise());
        marked(padded, buckets)
    }
}

impl Tensor {
    /// Names a dimension whose size changes from step to step, for [`Dynamic::buckets`]: with it, the sizes of a bucket share
    /// one program (torch: `torch._dynamo.mark_dynamic`; JAX: shape polymorphism). Rows of a batch, or of a sequence:
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let w = Tensor::ones([3, 2]);
    /// for rows in [32, 32, 17] {
    ///     let x = Tensor::ones([rows, 3]).dynamic(0).buckets([32, 64]);
    ///     let y = x.matmul(&w);
    ///     assert_eq!(y.shape(), [rows, 2]);
    ///     assert_eq!(y.mean().item(), 3.0);
    /// }
    /// ```
    pub fn dynamic(&self, dim: i64) -> Dynamic<'_> {
        Dynamic { x: self, dim }
    }

    /// The plain tensor of what is real: for ops that are not defined on bucketed dimensions. What uses it is compiled for
    /// each size.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([3, 1, 2]).dynamic(0).buckets([8]);
    /// assert_eq!(x.unbucket().flip(0).to_vec::<i64>(), [2, 1, 3]);
    /// ```
    #[track_caller]
    pub fn unbucket(&self) -> Tensor {
        let buckets = buckets_of(self);
        on_behalf(Location::caller(), is_grad_enabled(), || {
            physically(|| buckets.iter().fold(self.clone(), |x, b| x.slice(b.dim as i64, 0, b.size as i64, 1)))
        })
    }
}

/// A tensor of `x`'s type made anew, where `x` is and bucketed as it is.
#[track_caller]
pub(crate) fn like(x: &Tensor, make: impl FnOnce(Type) -> Tensor) -> Tensor {
    // A closure would lose the caller's line.
    let _line = caller_line();
    let buckets = buckets_of(x);
    let made = match buckets.is_empty() {
        true => make(x.ty()),
        false => marked(physically(|| make(x.ty())), buckets),
    };
    if !is_physical() {
        graph().node_mut(made.id()).origin = Origin::Like;
    }
    made.placed(x.placement())
}

/// `x` in another shape, dimension `d` of it becoming dimension `to(d)`: what the sizes alone do not tell. `None` where it
/// has no buckets, or one of them does not stay.
#[track_caller]
pub(crate) fn moved(x: &Tensor, shape: &Shape, to: impl Fn(usize) -> Option<usize>) -> Option<Tensor> {
    let mut buckets = buckets_of(x);
    if buckets.is_empty() {
        return None;
    }
    let mut physical = shape.clone();
    let sizes = physically(|| x.shape());
    for b in &mut buckets {
        let d = to(b.dim)?;
        physical[d] = sizes[b.dim];
        b.dim = d;
    }
    let make = || physically(|| x.reshape(&physical));
    Some(marked(on_behalf(Location::caller(), is_grad_enabled(), make), buckets))
}

/// `x` with `fill` in the padding of one dimension.
#[track_caller]
fn masked<'a>(x: &Tensor, b: Bucket, fill: impl Into<Arg<'a>>) -> Tensor {
    let fill = fill.into();
    physically(|| {
        let shape = x.shape();
        let mask = Tensor::bucket_mask(b.size, shape[b.dim], shape.len() - 1 - b.dim);
        x.where_(&mask, fill.again())
    })
}

/// The gradient that a walk starts with, zero in the padding.
pub(crate) fn masked_seed(output: &Tensor, dy: &Tensor) -> Tensor {
    buckets_of(output).into_iter().fold(dy.clone(), |dy, b| masked(&dy, b, 0.0))
}

/// The padding of one dimension as it should be, the last real elements again, where an op left something else there; no
/// gradient flows to it.
#[track_caller]
fn refilled(x: &Tensor, b: Bucket) -> Tensor {
    if b.size == 0 {
        return x.clone();
    }
    let last = physically(|| no_grad(|| x.slice_at(b.dim, b.size as i64 - 1)));
    masked(x, b, &last)
}

/// Row-major bytes of `ty`, padded along `dim` to `bucket` by the last elements.
fn padded_bytes(bytes: &[u8], ty: &Type, dim: usize, bucket: usize) -> Vec<u8> {
    let size = ty.shape[dim];
    let slice = ty.shape[dim + 1..].iter().product::<usize>() * ty.dtype.size();
    let outer: usize = ty.shape[..dim].iter().product();
    let mut out = Vec::with_capacity(outer * bucket * slice);
    for block in 0..outer {
        let rows = &bytes[block * size * slice..(block + 1) * size * slice];
        out.extend_from_slice(rows);
        match size {
            0 => out.resize(out.len() + bucket * slice, 0),
            _ => (size..bucket).for_each(|_| out.extend_from_slice(&rows[(size - 1) * slice..])),
        }
    }
    out
}

// The value of `x`, padded along one more dimension. What is of the right size already is used as it is.
fn pad(x: &Tensor, dim: usize, size: usize, bucket: usize, at: &'static Location<'static>) -> Result<Tensor> {
    let (data, _) = x.value(Cause::Concrete, at)?;
    if size == bucket {
        return Ok(Tensor::of_data(data, x.placement(), at));
    }
    let mut ty = Type::clone(&data.ty);
    let bytes = padded_bytes(&download(&data)?, &ty, dim, bucket);
    ty.shape[dim] = bucket;
    Ok(Tensor::of_data(upload(&bytes, ty, x.placement().home())?, x.placement(), at))
}

impl Bucketed<'_> {
    fn rank(&self, i: usize) -> usize {
        self.operands[i].ty.shape.len()
    }

    /// The bucket of a dimension, with its size.
    fn at(&self, i: usize, dim: usize) -> Option<(Bucket, usize)> {
        self.operands[i].buckets.iter().find(|(b, _)| b.dim == dim).copied()
    }

    /// The operand itself.
    fn tensor(&self, i: usize) -> Tensor {
        match &self.args[i] {
            Arg::Tensor(t) => (*t).clone(),
            Arg::Owned(t) => t.clone(),
            Arg::Scalar(_) => unreachable!("a number has no dimensions"),
        }
    }

    /// Another tensor as an operand.
    fn replace(&mut self, i: usize, with: Tensor) {
        self.operands[i] = BucketedOperand::of(&with);
        self.args[i] = Arg::Owned(with);
    }

    /// Puts `fill` in the padding of a dimension of an operand, if it is bucketed.
    fn mask(&mut self, i: usize, dim: usize, fill: impl Into<Scalar>) {
        if let Some((b, _)) = self.at(i, dim) {
            self.args[i] = Arg::Owned(masked(&self.tensor(i), b, fill.into()));
        }
    }
}
