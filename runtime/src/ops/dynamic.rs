//! Ops whose result has a shape that depends on values (`nonzero`, `masked_select`, `unique`…): they read what they need
//! first, which runs it, and go on with the shape they found. Those that are told a size read nothing.
use super::{cat, stack};
use crate::insight::Cause;
use crate::tensor::{Entry, Tensor, called, refuse};
use std::panic::Location;
use xlazy_core::ir::{Kind, graph};
use xlazy_core::ty::{Category, DType, Scalar, Shape, Type};

/// The one element of a tensor, read because an op needs its value.
pub(super) fn concrete(x: &Tensor, at: &'static Location<'static>) -> Scalar {
    match x.bytes(Cause::Concrete, at) {
        Ok(bytes) => x.dtype().read(&bytes),
        Err(e) => e.raise(),
    }
}

// Where the elements of a tensor are not zero, in row-major order.
#[track_caller]
fn places(x: &Tensor) -> Vec<i64> {
    // The tensor itself is read, not a mask of it: where it has its value, nothing needs to be compiled or run.
    let dtype = x.dtype();
    let part = dtype.part();
    let zero = |b: &[u8]| b.chunks_exact(part.size()).all(|number| part.read(number).as_f64() == 0.0);
    match x.bytes(Cause::Concrete, Location::caller()) {
        Ok(bytes) => (0..).zip(bytes.chunks_exact(dtype.size())).filter(|(_, b)| !zero(b)).map(|(i, _)| i).collect(),
        Err(e) => e.raise(),
    }
}

const fn found(name: &'static str, kind: Kind, advice: &'static str) -> Entry {
    Entry::new(name, |_| Err("what is found is data".into()), |_| unreachable!()).kind(kind).advice(advice)
}

// What the positions that an op found are data of, so that a program of another size can be put down to it.
static NONZERO: Entry = found(
    "nonzero",
    Kind::Found,
    "pad the positions, as in `n.dynamic(0).buckets([{buckets}])`: one program for each bucket",
);
static MASKED_SELECT: Entry =
    found("masked_select", Kind::Chosen, "keep the shape with `where_(&mask, &x, 0.0)` or multiply by the mask");
static UNIQUE: Entry = found(
    "unique",
    Kind::Chosen,
    "how many values differ is known only then. Keep them all, sorted (`x.sort(0, false)`), and take each value's first with \
     a mask: `s.diff(1, 0).ne(0.0)` says where the next one begins",
);

// Positions in `x`, where it is.
#[track_caller]
fn positions(op: &'static Entry, all: &[i64], shape: &[usize], x: &Tensor) -> Tensor {
    let found = Tensor::of_bytes_on(x.placement(), bytemuck::cast_slice(all), Type::new(DType::I64, Shape::new(shape)));
    graph().node_mut(found.id()).op = &op.op;
    found
}

#[track_caller]
fn chosen(op: &'static Entry, x: &Tensor, mask: &Tensor) -> Tensor {
    let Some(shape) = x.shape().broadcast(&mask.shape()) else {
        refuse(op.name, &[x, mask], "the mask and the tensor do not broadcast");
    };
    let places = places(&mask.expand(&shape));
    let n = places.len();
    x.expand(&shape).take(&positions(op, &places, &[n], x))
}

/// What [`Tensor::unique_with`] finds.
#[derive(Clone, Debug)]
pub struct Unique {
    /// The different values, or slices.
    pub values: Tensor,
    /// For each element, or slice, where its value is among those.
    ///
    /// `tensor([[2.0, 0.0], [0.0, 4.0]]).inverse()` is `[[0.5000, 0.0000], [0.0000, 0.2500]]`.
    pub inverse: Tensor,
    /// How often each occurs.
    pub counts: Tensor,
}

impl Tensor {
    /// The positions of the elements that are not zero, one row each, int64 (`torch.nonzero`). Reads the tensor, which
    /// runs what it needs.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[0, 5], [7, 0]]).nonzero().to_vec::<i64>(), [0, 1, 1, 0]);
    /// ```
    #[track_caller]
    pub fn nonzero(&self) -> Tensor {
        let _call = called("nonzero", [self]);
        let (flat, shape) = (places(self), self.shape());
        let strides = shape.strides();
        let mut rows: Vec<i64> = Vec::with_capacity(flat.len() * shape.len());
        for p in &flat {
            rows.extend((0..shape.len()).map(|d| *p / strides[d] as i64 % shape[d] as i64));
        }
        positions(&NONZERO, &rows, &[flat.len(), shape.len()], self)
    }

    /// The positions of the elements that are not zero, one vector for each dimension
    /// (`torch.nonzero(x, as_tuple=True)`): ready to index with.
    ///
    /// `tensor([0, 5, 6]).nonzero_tuple()` is `[tensor([1, 2])]`.
    #[track_caller]
    pub fn nonzero_tuple(&self) -> Vec<Tensor> {
        let rows = if self.dim() == 0 { self.reshape([1]).nonzero() } else { self.nonzero() };
        rows.unbind(1)
    }

    /// The elements where the mask is true, as a vector (`torch.masked_select`). Reads the mask, which runs what it
    /// needs; gradients flow to the elements chosen.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([1.0, -2.0, 3.0]);
    /// assert_eq!(x.masked_select(&x.gt(0.0)).to_vec::<f32>(), [1.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Tensor {
        if mask.dtype() != DType::Bool {
            refuse("masked_select", &[self, mask], "the mask must be bool: make one with a comparison");
        }
        chosen(&MASKED_SELECT, self, mask)
    }

    // The first places of elements that are not zero; -1 behind the last of them.
    fn first_places(&self, size: usize) -> Tensor {
        let some = self.ne(0).flatten();
        let nth = some.long().cumsum(0) - 1;
        // What is zero, or too much, goes to a place that is cut off.
        let to = nth.masked_fill(&some.logical_not().logical_or(nth.ge(size as i64)), size as i64);
        let all = Tensor::arange(0, some.numel() as i64, 1);
        Tensor::full([size + 1], -1).scatter(0, &to, &all).narrow(0, 0, size as i64)
    }

    /// As [`Tensor::nonzero`], of as many rows as `size` says: what is more is left out, and missing ones are `fill_value`
    /// (`torch.nonzero_static`). It reads nothing, so it is one program however many there are.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([0, 5, 0, 7]).nonzero_static(3, -1).to_vec::<i64>(), [1, 3, -1]);
    /// ```
    #[track_caller]
    pub fn nonzero_static(&self, size: usize, fill_value: i64) -> Tensor {
        let _call = called("nonzero_static", [self]);
        let shape = self.shape().clone();
        if shape.numel() == 0 || shape.is_empty() {
            return Tensor::full([size, shape.len()], fill_value);
        }
        let (places, strides) = (self.first_places(size), shape.strides());
        let missing = places.lt(0);
        let along = |d: usize| {
            let at = places.floor_divide(strides[d] as i64).remainder(shape[d] as i64);
            at.masked_fill(&missing, fill_value)
        };
        let all: Vec<Tensor> = (0..shape.len()).map(along).collect();
        stack(&all.iter().collect::<Vec<_>>(), 1)
    }

    /// As [`Tensor::masked_select`], `size` elements: what is more is left out, and missing ones are `fill_value`. It reads
    /// nothing; gradients flow to the elements chosen.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([1.0, -2.0, 3.0]);
    /// assert_eq!(x.masked_select_static(&x.gt(0.0), 3, 0.0).to_vec::<f32>(), [1.0, 3.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn masked_select_static(&self, mask: &Tensor, size: usize, fill_value: impl Into<Scalar>) -> Tensor {
        let _call = called("masked_select_static", [self, mask]);
        if mask.dtype() != DType::Bool {
            refuse("masked_select_static", &[self, mask], "the mask must be bool: make one with a comparison");
        }
        let Some(shape) = self.shape().broadcast(&mask.shape()) else {
            refuse("masked_select_static", &[self, mask], "the mask and the tensor do not broadcast");
        };
        if shape.numel() == 0 {
            return Tensor::full([size], fill_value).to(self.dtype());
        }
        let places = mask.expand(&shape).first_places(size);
        let taken = self.expand(&shape).flatten().take(&places.clamp_min(0));
        taken.masked_fill(&places.lt(0), fill_value.into())
    }

    /// As [`Tensor::unique`], `size` values: what is more is left out, and missing ones are `fill_value` (`jax.numpy.unique` with
    /// `size`). It reads nothing; no gradient flows.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([3, 1, 3]).unique_static(3, 0).to_vec::<i64>(), [1, 3, 0]);
    /// ```
    #[track_caller]
    pub fn unique_static(&self, size: usize, fill_value: impl Into<Scalar>) -> Tensor {
        let _call = called("unique_static", [self]);
        let _call = called("unique", [self]);
        let sorted = self.detach().flatten().sort(0, false).0;
        let n = sorted.numel() as i64;
        let before = sorted.narrow(0, 0, (n - 1).max(0));
        let other = sorted.narrow(0, n.min(1), (n - 1).max(0)).ne(&before);
        let first = cat(&[&Tensor::ones([n.min(1) as usize]).bool(), &other], 0);
        sorted.masked_select_static(&first, size, fill_value)
    }

    /// The different values in rising order, or the different slices along `dim`, with where each element's is among them and
    /// how often it occurs (`torch.unique` with `return_inverse` and `return_counts`). Reads the tensor, which runs what it
    /// needs; no gradient flows.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let found = tensor([5, 2, 5]).unique_with(None);
    /// assert_eq!(found.values.to_vec::<i64>(), [2, 5]);
    /// assert_eq!(found.inverse.to_vec::<i64>(), [1, 0, 1]);
    /// assert_eq!(found.counts.to_vec::<i64>(), [1, 2]);
    /// ```
    #[track_caller]
    pub fn unique_with(&self, dim: Option<i64>) -> Unique {
        let at = Location::caller();
        let _call = called("unique_with", [self]);
        let dim = dim.map(|d| self.dim_index("unique_with", d) as i64);
        let rows = self.slices(dim);
        let count = rows.size(0);
        let width = rows.numel().checked_div(count).unwrap_or(0);
        let (dtype, bytes) = match rows.bytes(Cause::Concrete, at) {
            Ok(bytes) => (rows.dtype(), bytes),
            Err(e) => e.raise(),
        };
        let whole = dtype.category() <= Category::Int;
        let numbers: Vec<&[u8]> = bytes.chunks_exact(dtype.size()).collect();
        let row = |i: usize| &numbers[i * width..(i + 1) * width];
        let order = |a: usize, b: usize| {
            let each = row(a).iter().zip(row(b)).map(|(a, b)| match [a, b].map(|v| dtype.read(v).as_f64()) {
                _ if whole => dtype.integer(a).cmp(&dtype.integer(b)),
                [a, b] => a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
            });
            each.into_iter().find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        };
        let mut sorted: Vec<usize> = (0..count).collect();
        sorted.sort_by(|&a, &b| order(a, b));
        // a NaN is like no other
        let same = |a: usize, b: usize| order(a, b).is_eq() && !row(a).iter().any(|v| dtype.read(v).as_f64().is_nan());
        let (mut first, mut inverse, mut counts) = (Vec::new(), vec![0i64; count], Vec::new());
        for (n, &i) in sorted.iter().enumerate() {
            if n == 0 || !same(sorted[n - 1], i) {
                first.push(i as i64);
                counts.push(0i64);
            }
            inverse[i] = first.len() as i64 - 1;
            *counts.last_mut().expect("one was put in") += 1;
        }
        let n = first.len();
        let values = rows.index_select(0, &positions(&UNIQUE, &first, &[n], &rows));
        let inverse = positions(&UNIQUE, &inverse, &[count], &rows);
        self.found(dim, values, inverse, positions(&UNIQUE, &counts, &[n], &rows))
    }

    /// The elements one after another, or the slices along `dim`, without a gradient.
    #[track_caller]
    fn slices(&self, dim: Option<i64>) -> Tensor {
        match dim {
            Some(d) if self.dim() > 0 => self.detach().movedim(d, 0),
            _ => self.detach().flatten(),
        }
    }

    /// What was found among [`Tensor::slices`], in this tensor's shape.
    #[track_caller]
    fn found(&self, dim: Option<i64>, values: Tensor, inverse: Tensor, counts: Tensor) -> Unique {
        match dim {
            Some(d) if self.dim() > 0 => Unique { values: values.movedim(0, d), inverse, counts },
            Some(_) => Unique { values, inverse, counts },
            None => Unique { values, inverse: inverse.reshape(self.shape()), counts },
        }
    }

    /// The elements, or slices along `dim`, without those that are equal to the one before, with where each went and how many
    /// went there (`torch.unique_consecutive`). Reads the tensor, which runs what it needs; no gradient flows.
    ///
    /// `tensor([1, 1, 2, 1]).unique_consecutive(None).values` is `[1, 2, 1]`.
    #[track_caller]
    pub fn unique_consecutive(&self, dim: Option<i64>) -> Unique {
        let _call = called("unique_consecutive", [self]);
        let dim = dim.map(|d| self.dim_index("unique_consecutive", d) as i64);
        let rows = self.slices(dim);
        let n = rows.size(0) as i64;
        let some = n.min(1);
        let flat = rows.reshape([n, (rows.numel() as i64).checked_div(n).unwrap_or(0)]);
        let other = flat.narrow(0, some, n - some).ne(flat.narrow(0, 0, n - some)).any_dim(1, false);
        let first = cat(&[&Tensor::ones([some]).bool(), &other], 0);
        let starts = first.nonzero().flatten();
        let ends = cat(&[&starts.narrow(0, some, starts.numel() as i64 - some), &Tensor::full([some], n)], 0);
        let values = rows.index_select(0, &starts);
        self.found(dim, values, first.long().cumsum(0) - 1, ends - starts)
    }

    /// The different values in rising order (`torch.unique`, sorted). Reads the tensor, which runs what it needs; no
    /// gradient flows.
    ///
    /// `tensor([3, 1, 3]).unique()` is `[1, 3]`.
    #[track_caller]
    pub fn unique(&self) -> Tensor {
        let sorted = self.detach().flatten().sort(0, false).0;
        let n = sorted.numel();
        if n == 0 {
            return sorted;
        }
        let changes = sorted.slice(0, 1, n as i64, 1).ne(sorted.slice(0, 0, n as i64 - 1, 1));
        let first = Tensor::ones([1]).bool();
        chosen(&UNIQUE, &sorted, &super::cat(&[&first, &changes], 0))
    }
}
