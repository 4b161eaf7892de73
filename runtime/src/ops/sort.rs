//! Order: sort, argsort, topk, median. NaN counts as the largest number, as in torch.
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::ir::Role::{Axis, Mode};
use xlazy_core::ir::{AttrsExt, Kind, Lower, Rule, Sig, attr};
use xlazy_core::ty::{DType, Type};

fn rule(s: &Sig) -> Rule {
    Ok(s.inputs[0].clone())
}

// Sorts values and positions together; XLA merges the two ops where a program has both.
fn sorted(l: &mut Lower) -> (xlazy_core::emit::Val, xlazy_core::emit::Val) {
    let (dim, descending) = (l.attrs.index(0), l.attrs.flag(1));
    let x = l.x(0);
    let position = l.iota(&Type::new(DType::I64, x.shape().clone()), dim);
    // XLA compares bools as numbers, but StableHLO has no order for them in a sort of two operands on all backends
    let wide = if x.dtype() == DType::Bool { l.convert(&x, DType::U8) } else { x.clone() };
    let (value, position) = l.sort_pair(&wide, &position, dim, descending);
    (l.convert(&value, x.dtype()), position)
}

fn samples() -> Vec<Sample> {
    vec![
        Sample::of(&[&[2, 5]]).attrs(vec![1usize.into(), false.into()]),
        Sample::of(&[&[4, 2]]).attrs(vec![0usize.into(), true.into()]),
    ]
}

static SORT: Entry = Entry::new("sort", rule, |l| sorted(l).0)
    .kind(Kind::Along)
    .attrs(&[attr("dim", Axis), attr("descending", Mode)])
    .samples(samples)
    .grad(|g| {
        let order = g.x(0).detach().argsort(g.attrs.int(0), g.attrs.flag(1));
        vec![Some(g.dy.zeros_like().scatter_add(g.attrs.int(0), &order, &g.dy))]
    })
    .bucket(bucket::sorted);

static ARGSORT: Entry = Entry::new("argsort", |s| Ok(Type::new(DType::I64, s.shape(0).clone())), |l| sorted(l).1)
    .kind(Kind::Along)
    .attrs(&[attr("dim", Axis), attr("descending", Mode)])
    .samples(samples)
    .bucket(bucket::sorted);

pub(super) static OPS: &[&Entry] = &[&SORT, &ARGSORT];

impl Tensor {
    /// Values in order along `dim`, and the positions they come from, int64; equals keep their order
    /// (`torch.sort(x, dim, descending, stable=True)`). StableHLO: sort.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (values, indices) = tensor([3.0, 1.0, 2.0]).sort(0, true);
    /// assert_eq!(values.to_vec::<f32>(), [3.0, 2.0, 1.0]);
    /// assert_eq!(indices.to_vec::<i64>(), [0, 2, 1]);
    /// ```
    #[track_caller]
    pub fn sort(&self, dim: i64, descending: bool) -> (Tensor, Tensor) {
        let _call = called("sort", [self]);
        let d = self.dim_index("sort", dim);
        if self.dim() == 0 {
            return (self.clone(), self.zeros_like().long());
        }
        let attrs = || [d.into(), descending.into()];
        (trace(&SORT, [self.into()], attrs()), trace(&ARGSORT, [self.into()], attrs()))
    }

    /// The positions that put the elements along `dim` in order (`torch.argsort`).
    ///
    /// `tensor([3, 1, 2]).argsort(-1, false)` is `[1, 2, 0]`.
    #[track_caller]
    pub fn argsort(&self, dim: i64, descending: bool) -> Tensor {
        let _call = called("argsort", [self]);
        self.sort(dim, descending).1
    }

    /// The `k` largest elements along `dim`, or the smallest, in order, and their positions (`torch.topk`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1.0, 5.0, 3.0]).topk(2, 0, true).1.to_vec::<i64>(), [1, 2]);
    /// ```
    #[track_caller]
    pub fn topk(&self, k: usize, dim: i64, largest: bool) -> (Tensor, Tensor) {
        let _call = called("topk", [self]);
        let n = if self.dim() == 0 { 1 } else { self.size(dim) };
        if k > n {
            refuse("topk", &[self], format!("{k} elements of {n} in dimension {dim}"));
        }
        let (values, indices) = self.sort(dim, largest);
        match self.dim() {
            0 => (values, indices),
            _ => (values.narrow(dim, 0, k as i64), indices.narrow(dim, 0, k as i64)),
        }
    }

    /// The `k`-th smallest elements along `dim`, counting from 1, and where they are (`torch.kthvalue`).
    ///
    /// `tensor([3, 1, 2]).kthvalue(2, 0, false)` is `(tensor(2), tensor(2))`.
    #[track_caller]
    pub fn kthvalue(&self, k: usize, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        let _call = called("kthvalue", [self]);
        let of = if self.dim() == 0 { 1 } else { self.size(dim) };
        if k == 0 || k > of {
            refuse("kthvalue", &[self], format!("there is no element number {k} of {of}"));
        }
        if self.dim() == 0 {
            return self.sort(0, false);
        }
        let (values, indices) = self.sort(dim, false);
        let at = |t: Tensor| {
            let one = t.narrow(dim, k as i64 - 1, 1);
            if keepdim { one } else { one.squeeze_dim(dim) }
        };
        (at(values), at(indices))
    }
}
