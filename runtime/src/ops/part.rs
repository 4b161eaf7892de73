//! Slices written to: a copy of a tensor with another one in the place of a part of it.
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::emit::Val;
use xlazy_core::ir::Role::{Axis, Position, Stride};
use xlazy_core::ir::{AttrsExt, Healed, Lower, Rule, Sig, attr};
use xlazy_core::ty::{DType, Shape, Type};

fn fits(s: &Sig) -> Rule {
    let (dim, mut part) = (s.attrs.index(0), s.shape(0).clone());
    part[dim] = s.shape(1).get(dim).copied().unwrap_or(0);
    match part == *s.shape(1) {
        true => Ok(s.inputs[0].clone()),
        false => Err(format!("{} does not fit a part of {} along dimension {dim}", s.shape(1), s.shape(0))),
    }
}

// Where the part starts, and how far apart its elements are.
static SLICE_SCATTER: Entry = Entry::new(
    "slice_scatter",
    |s| {
        let (dim, start, step) = (s.attrs.index(0), s.attrs.int(1), s.attrs.int(2));
        let out = fits(s)?;
        let (n, k) = (s.shape(0)[dim] as i64, s.shape(1)[dim] as i64);
        match start + (k - 1) * step < n {
            true => Ok(out),
            false => Err(format!("{k} elements every {step} from {start} on reach beyond the {n} of dimension {dim}")),
        }
    },
    |l| {
        let start = l.attrs.int(1) as f64;
        let start = l.scalar(start, DType::I64);
        updated(l, &start, 2)
    },
)
.attrs(&[attr("dim", Axis), attr("start", Position), attr("step", Stride)])
.samples(|| {
    let of = |k: usize, start: usize, step: usize| {
        Sample::of(&[&[2, 7], &[2, k]]).attrs(vec![1usize.into(), start.into(), step.into()])
    };
    vec![of(3, 1, 1), of(3, 1, 2), of(0, 2, 1), of(7, 0, 1)]
})
.grad(|g| {
    let (dim, start, step) = (g.attrs.int(0), g.attrs.int(1), g.attrs.int(2));
    let k = g.x(1).size(dim) as i64;
    let base = g.want(0, || placed(&g.dy, &g.x(1).zeros_like(), dim as usize, start, step));
    let end = if k == 0 { start } else { start + (k - 1) * step + 1 };
    vec![base, g.want(1, || g.dy.slice(dim, start, end, step))]
})
.heal(|attrs| {
    let fixed = [attrs[0].clone(), attrs[2].clone()].into();
    Some(Healed { op: &SLICE_SCATTER_AT.op, attrs: fixed, value: attrs[1].clone() })
})
.bucket(bucket::slice_scatter);

static SLICE_SCATTER_AT: Entry = Entry::new("slice_scatter.start", fits, |l| {
    let start = l.x(2);
    updated(l, &start, 1)
})
.attrs(&[attr("dim", Axis), attr("step", Stride)])
.samples(|| vec![Sample::of(&[&[2, 7], &[2, 3]]).index(&[], 3).attrs(vec![1usize.into(), 2usize.into()])])
.bucket(bucket::slice_scatter);

// The step is attribute `step`.
fn updated(l: &mut Lower, start: &Val, step: usize) -> Val {
    let (x, mut new) = (l.x(0), l.cast(1));
    let (dim, step) = (l.attrs.index(0), l.attrs.int(step));
    let k = new.shape()[dim];
    if k == 0 {
        return x;
    }
    let starts = l.starts(start, dim, x.rank());
    if step > 1 {
        // What lies between the elements stays.
        let mut sizes = x.shape().to_vec();
        sizes[dim] = (k - 1) * step as usize + 1;
        let between = l.dynamic_slice(&x, &starts, &sizes);
        let (none, mut inner) = (vec![0; x.rank()], vec![0; x.rank()]);
        inner[dim] = step - 1;
        let here = l.constant(1.0, &Type::new(DType::Bool, new.shape().clone()));
        let (nothing, nowhere) = (l.scalar(0.0, x.dtype()), l.scalar(0.0, DType::Bool));
        let spread = l.pad(&new, &nothing, &none, &none, &inner);
        let here = l.pad(&here, &nowhere, &none, &none, &inner);
        new = l.select(&here, &spread, &between);
    }
    let inputs: Vec<&Val> = [&x, &new].into_iter().chain(&starts).collect();
    l.op("dynamic_update_slice", &inputs, "", x.ty.clone())
}

pub(super) static OPS: &[&Entry] = &[&SLICE_SCATTER, &SLICE_SCATTER_AT];

#[track_caller]
fn placed(x: &Tensor, new: &Tensor, dim: usize, start: i64, step: i64) -> Tensor {
    trace(&SLICE_SCATTER, [x.into(), new.into()], [dim.into(), start.into(), step.into()])
}

impl Tensor {
    /// A copy with `src` in a slice along `dim` (`torch.slice_scatter`). StableHLO: dynamic_update_slice.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([4]).slice_scatter(&tensor([1.0, 2.0]), 0, 0, 4, 2);
    /// assert_eq!(x.to_vec::<f32>(), [1.0, 0.0, 2.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn slice_scatter(&self, src: &Tensor, dim: i64, start: i64, end: i64, step: i64) -> Tensor {
        let d = self.dim_index("slice_scatter", dim);
        if self.dim() == 0 || step < 1 {
            refuse("slice_scatter", &[self, src], "needs a dimension, and a step of 1 or more");
        }
        let mut part: Shape = self.shape();
        let (start, end) = Shape::span(part[d] as i64, start, end);
        part[d] = ((end - start + step - 1) / step) as usize;
        if src.shape() != part {
            refuse("slice_scatter", &[self, src], format!("the slice has the shape {part}"));
        }
        placed(self, src, d, start, step)
    }

    /// A copy with one slice along `dim` replaced (`torch.select_scatter`). StableHLO: dynamic_update_slice.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([2, 2]).select_scatter(&tensor([1.0, 2.0]), 0, -1);
    /// assert_eq!(x.to_vec::<f32>(), [0.0, 0.0, 1.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn select_scatter(&self, src: &Tensor, dim: i64, index: i64) -> Tensor {
        let _call = called("select_scatter", [self, src]);
        let d = self.dim_index("select_scatter", dim);
        let n = self.shape().get(d).copied().unwrap_or(0) as i64;
        if !(-n..n).contains(&index) {
            let why = format!("index {index} is out of range for dimension {dim} with {n} elements");
            refuse("select_scatter", &[self, src], why);
        }
        placed(self, &src.unsqueeze(d as i64), d, if index < 0 { index + n } else { index }, 1)
    }
}
