//! Plain operands beside bucketed ones that can be had padded: positions, constants, parts of a larger tensor, and what was
//! computed of these. What made them is traced again at the bucket's size.
use super::{each, refilled};
use crate::tensor::{Arg, Bucketed, Entry, Tensor, buckets_of, marked, physically, try_trace};
use std::ops::Range;
use xlazy_core::ir::{Attr, AttrsExt, Bucket, Payload, graph};
use xlazy_core::ty::Shape;

/// A dimension of a plain tensor that should have so many elements, in a bucket of so many.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Want {
    pub dim: usize,
    pub size: usize,
    pub bucket: usize,
}

/// How many ops back what made a tensor is looked at.
const DEPTH: usize = 8;

impl Bucketed<'_> {
    /// Makes operands alike, where that can be: plain ones with the size of a bucketed dimension that they stand beside become
    /// bucketed ones, if what made them allows it, and of two buckets for one size the smaller one is taken. `views` and
    /// `rank` as those of [`Bucketed::aligned`], `but` a dimension that is not looked at.
    pub(super) fn widen(&mut self, views: &[(usize, Range<usize>)], rank: usize, but: Option<usize>) {
        let mut wants: Vec<(usize, Want)> = Vec::new();
        for d in (0..rank).filter(|d| Some(*d) != but) {
            let place = |(i, part): &(usize, Range<usize>)| {
                let skip = rank - part.len();
                (d >= skip).then(|| (*i, part.start + d - skip))
            };
            let here: Vec<(usize, usize)> = views.iter().filter_map(place).collect();
            let Some((k, _)) = here.iter().find_map(|&(i, e)| self.at(i, e)) else { continue };
            let alike: Vec<usize> = here.iter().filter_map(|&(i, e)| self.at(i, e)).map(|(_, bucket)| bucket).collect();
            let bucket = alike.iter().copied().min().unwrap_or(0);
            for &(i, dim) in &here {
                if let Some((other, larger)) = self.at(i, dim)
                    && larger > bucket
                    && other.size == k.size
                {
                    self.narrow(i, dim, bucket);
                }
            }
            let plain =
                here.iter().filter(|&&(i, e)| self.at(i, e).is_none() && self.operands[i].ty.shape[e] == k.size);
            // One element broadcasts as it is.
            wants.extend(plain.filter(|_| k.size != 1).map(|&(i, dim)| (i, Want { dim, size: k.size, bucket })));
        }
        for i in 0..self.args.len() {
            let mine: Vec<Want> = wants.iter().filter(|(k, _)| *k == i).map(|(_, w)| *w).collect();
            if !mine.is_empty()
                && self.operands[i].buckets.is_empty()
                && let Some(wide) = widened(&self.tensor(i), &mine, DEPTH)
            {
                self.replace(i, wide);
            }
        }
    }
}

impl Bucketed<'_> {
    /// An operand with a smaller bucket for a dimension, which holds all that is real.
    fn narrow(&mut self, i: usize, dim: usize, bucket: usize) {
        let x = self.tensor(i);
        let narrow = physically(|| x.slice(dim as i64, 0, bucket as i64, 1));
        self.replace(i, marked(narrow, buckets_of(&x)));
    }
}

/// Whether `x` has just these buckets.
fn has(x: &Tensor, wants: &[Want]) -> bool {
    let (buckets, physical) = (buckets_of(x), physically(|| x.shape()));
    let found = |w: &Want| buckets.contains(&Bucket { dim: w.dim, size: w.size }) && physical[w.dim] == w.bucket;
    buckets.len() == wants.len() && wants.iter().all(found)
}

fn mark(x: Tensor, wants: &[Want]) -> Tensor {
    marked(x, wants.iter().map(|w| Bucket { dim: w.dim, size: w.size }).collect())
}

/// The tensor with padded dimensions; `None` where what made it cannot give more.
fn widened(x: &Tensor, wants: &[Want], depth: usize) -> Option<Tensor> {
    let (op, attrs, inputs, at) = {
        let mut g = graph();
        let n = g.node(x.id());
        if depth == 0 || matches!(n.payload, Payload::Data(_) | Payload::Scalar(_)) {
            return None;
        }
        let (op, attrs, ids, at) = (n.op, n.attrs.clone(), n.inputs.clone(), n.at);
        let inputs: Vec<Tensor> = ids.iter().map(|&i| Tensor::of_node(&mut g, i)).collect();
        (op, attrs, inputs, at)
    };
    let entry = Entry::of_op(op)?;
    let retraced = |inputs: &[Tensor], attrs: &[Attr]| {
        let args: Vec<Arg> = inputs.iter().map(Arg::from).collect();
        try_trace(entry, &args, attrs.into(), at).ok()
    };
    let filled = |y: Tensor| wants.iter().fold(y, |y, w| refilled(&y, Bucket { dim: w.dim, size: w.size }));
    let sizes = |i: usize| -> Attr {
        let mut sizes = attrs.ints(i).to_vec();
        wants.iter().for_each(|w| sizes[w.dim] = w.bucket as i64);
        sizes.into()
    };
    match op.name {
        "zeros" | "ones" | "full" => {
            let new = [sizes(0), attrs[1].clone()];
            Some(mark(physically(|| retraced(&inputs, &new))?, wants))
        }
        "arange" => {
            let new = [(wants[0].bucket).into(), attrs[1].clone()];
            Some(mark(filled(physically(|| retraced(&inputs, &new))?), wants))
        }
        "slice" if wants.len() == 1 && wants[0].dim == attrs.index(0) => {
            Some(mark(filled(more_of(&inputs[0], wants[0], attrs.int(1), attrs.int(3))), wants))
        }
        "expand" => {
            let skip = x.dim() - inputs[0].dim();
            let from = inputs[0].shape();
            let grown: Vec<Want> =
                wants.iter().filter(|w| w.dim >= skip && from[w.dim - skip] == w.size).copied().collect();
            let inner: Vec<Want> = grown.iter().map(|w| Want { dim: w.dim - skip, ..*w }).collect();
            let input = if inner.is_empty() { inputs[0].clone() } else { widened(&inputs[0], &inner, depth - 1)? };
            let new = [sizes(0)];
            Some(mark(physically(|| retraced(&[input], &new))?, wants))
        }
        "reshape" => {
            let (from, to) = (inputs[0].shape(), x.shape());
            let inner = (wants.iter().map(|w| Some(Want { dim: stays(&from, &to, w.dim)?, ..*w })))
                .collect::<Option<Vec<Want>>>()?;
            let input = widened(&inputs[0], &inner, depth - 1)?;
            let new = [sizes(0)];
            Some(mark(physically(|| retraced(&[input], &new))?, wants))
        }
        "permute" => {
            let order = attrs.dims(0);
            let inner: Vec<Want> = wants.iter().map(|w| Want { dim: order[w.dim], ..*w }).collect();
            retraced(&[widened(&inputs[0], &inner, depth - 1)?], &attrs).filter(|y| has(y, wants))
        }
        "index" | "take" | "index_select" | "embedding" if inputs.len() == 2 => {
            let stands = attrs.index(1);
            let rank = inputs[1].dim();
            if wants.iter().any(|w| w.dim < stands || w.dim >= stands + rank) {
                return None;
            }
            let inner: Vec<Want> = wants.iter().map(|w| Want { dim: w.dim - stands, ..*w }).collect();
            let index = widened(&inputs[1], &inner, depth - 1)?;
            retraced(&[inputs[0].clone(), index], &attrs).filter(|y| has(y, wants))
        }
        _ if entry.bucket.is_some_and(|rule| std::ptr::fn_addr_eq(rule, each as crate::tensor::BucketRule)) => {
            let wide = inputs.iter().map(|input| {
                let skip = x.dim() - input.dim();
                let shape = input.shape();
                let inner = wants.iter().filter(|w| w.dim >= skip && shape[w.dim - skip] == w.size);
                let inner: Vec<Want> = inner.map(|w| Want { dim: w.dim - skip, ..*w }).collect();
                if inner.is_empty() { Some(input.clone()) } else { widened(input, &inner, depth - 1) }
            });
            let wide = wide.collect::<Option<Vec<Tensor>>>()?;
            retraced(&wide, &attrs).filter(|y| has(y, wants))
        }
        _ => None,
    }
}

/// As many elements of `base` from `start` on, every `step`-th, as the bucket holds and there are.
fn more_of(base: &Tensor, w: Want, start: i64, step: i64) -> Tensor {
    physically(|| {
        let left = base.shape()[w.dim] as i64 - start;
        let there = ((left + step - 1) / step).min(w.bucket as i64);
        let part = base.slice(w.dim as i64, start, start + (there - 1) * step + 1, step);
        let mut amounts = vec![0; 2 * (base.dim() - w.dim)];
        let last = amounts.len() - 1;
        amounts[last] = w.bucket as i64 - there;
        if amounts[last] == 0 { part } else { part.pad(amounts, 0.0) }
    })
}

/// Where dimension `dim` of a reshaped tensor was, if only dimensions of size 1 came or went.
fn stays(from: &Shape, to: &Shape, dim: usize) -> Option<usize> {
    let real = |s: &Shape| -> Vec<usize> { (0..s.len()).filter(|&d| s[d] != 1).collect() };
    let (a, b) = (real(from), real(to));
    let same = a.len() == b.len() && a.iter().zip(&b).all(|(&d, &e)| from[d] == to[e]);
    same.then(|| b.iter().position(|&e| e == dim).map(|i| a[i])).flatten()
}
