//! Parts of a tensor along its dimensions, and room around it: slices and padding.
use crate::bucket;
use crate::tensor::{Arg, Entry, Sample, Step, Tensor, called, is_physical, refuse, trace};
use xlazy_core::ir::Role::{Axis, Position, Size, Stride};
use xlazy_core::ir::{AttrsExt, Healed, Kind, Origin, attr, graph};
use xlazy_core::ty::{DType, Dims, Shape, Type};

// start, end and step along one dimension
static SLICE: Entry = Entry::new(
    "slice",
    |s| {
        let (dim, start, end, step) = (s.attrs.index(0), s.attrs.int(1), s.attrs.int(2), s.attrs.int(3));
        let mut shape = s.shape(0).clone();
        shape[dim] = ((end - start + step - 1) / step).max(0) as usize;
        Ok(Type::new(s.dtype(0), shape))
    },
    |l| {
        let x = l.x(0);
        let mut start = vec![0; x.rank()];
        let mut limit: Vec<i64> = x.shape().iter().map(|&d| d as i64).collect();
        let mut step = vec![1; x.rank()];
        let dim = l.attrs.index(0);
        (start[dim], limit[dim], step[dim]) = (l.attrs.int(1), l.attrs.int(2).max(l.attrs.int(1)), l.attrs.int(3));
        l.slice(&x, &start, &limit, &step)
    },
)
.kind(Kind::Select)
.attrs(&[attr("dim", Axis), attr("start", Position), attr("end", Position), attr("step", Stride)])
.samples(|| {
    let of = |s: i64, e: i64, by: i64| Sample::of(&[&[2, 7]]).attrs(vec![1usize.into(), s.into(), e.into(), by.into()]);
    vec![of(1, 4, 1), of(0, 7, 3), of(2, 2, 1)]
})
.grad(|g| {
    let (dim, start, step) = (g.attrs.int(0), g.attrs.int(1), g.attrs.int(3));
    let n = g.x(0).size(dim) as i64;
    let kept = g.dy.size(dim) as i64;
    let after = n - start - ((kept - 1).max(0) * step + kept.min(1));
    vec![Some(pad_dim(&g.dy, dim as usize, start, after, step - 1))]
})
.heal(|attrs| {
    let (start, end, step) = (attrs.int(1), attrs.int(2), attrs.int(3));
    let n = ((end - start + step - 1) / step).max(0);
    Some(Healed { op: &SLICE_AT.op, attrs: [attrs[0].clone(), n.into(), step.into()].into(), value: attrs[1].clone() })
})
.bucket(bucket::slice);

// A slice whose start is an operand: what SLICE becomes once its start keeps changing.
static SLICE_AT: Entry = Entry::new(
    "slice.start",
    |s| {
        let mut shape = s.shape(0).clone();
        shape[s.attrs.index(0)] = s.attrs.index(1);
        Ok(Type::new(s.dtype(0), shape))
    },
    |l| {
        let (x, dim, n, step) = (l.x(0), l.attrs.index(0), l.attrs.index(1), l.attrs.int(2));
        let mut sizes: Vec<usize> = x.shape().to_vec();
        sizes[dim] = if n == 0 { 0 } else { (n - 1) * step as usize + 1 };
        let start = l.x(1);
        let starts = l.starts(&start, dim, sizes.len());
        let part = l.dynamic_slice(&x, &starts, &sizes);
        let (zero, limit) = (vec![0; sizes.len()], sizes.iter().map(|&d| d as i64).collect::<Vec<_>>());
        let steps: Vec<i64> = (0..sizes.len()).map(|d| if d == dim { step } else { 1 }).collect();
        l.slice(&part, &zero, &limit, &steps)
    },
)
.kind(Kind::Select)
.attrs(&[attr("dim", Axis), attr("length", Size), attr("step", Stride)])
.samples(|| vec![Sample::of(&[&[2, 7]]).and(DType::I64, &[]).attrs(vec![1usize.into(), 3usize.into(), 2usize.into()])])
.bucket(bucket::along);

// Padding whose amounts before each dimension are a vector, those before and after together fixed: what PAD becomes once
// they keep changing, the gradient of SLICE_AT among it.
static PAD_AT: Entry = Entry::new(
    "pad.low",
    |s| {
        let mut shape = s.shape(0).clone();
        for d in 0..shape.len() {
            let inner = shape[d] as i64 + (shape[d] as i64 - 1).max(0) * s.attrs.ints(1)[d];
            shape[d] = (inner + s.attrs.ints(0)[d]).max(0) as usize;
        }
        Ok(Type::new(s.dtype(0), shape))
    },
    |l| {
        // As much room on both sides as the result is large, of which XLA computes only the part that is taken.
        let (x, value, low, inner) = (l.x(0), l.cast(1), l.x(2), l.attrs.ints(1).to_vec());
        let sizes = l.out.shape.clone();
        let room: Vec<i64> = sizes.iter().map(|&d| d as i64).collect();
        let wide = l.pad(&x, &value, &room, &room, &inner);
        let starts = (0..sizes.len())
            .map(|d| {
                let low = l.slice(&low, &[d as i64], &[d as i64 + 1], &[1]);
                let low = l.reshape(&low, &Shape::default());
                let room = l.scalar(room[d] as f64, low.dtype());
                l.sub(&room, &low)
            })
            .collect::<Vec<_>>();
        l.dynamic_slice(&wide, &starts, &sizes)
    },
)
.kind(Kind::Pad)
.attrs(&[attr("amount", Size), attr("interior", Stride)])
.samples(|| {
    let of = |amount: [i64; 2], interior: [i64; 2]| vec![amount.to_vec().into(), interior.to_vec().into()];
    vec![Sample::of(&[&[2, 3], &[]]).index(&[2], 3).attrs(of([3, 0], [0, 1]))]
});

static PAD: Entry = Entry::new(
    "pad",
    |s| {
        let mut shape = s.shape(0).clone();
        for i in 0..shape.len() {
            let inner = shape[i] as i64 + (shape[i] as i64 - 1).max(0) * s.attrs.ints(2)[i];
            let size = inner + s.attrs.ints(0)[i] + s.attrs.ints(1)[i];
            if size < 0 {
                return Err(format!(
                    "padding by {} and {} leaves dimension {i} with size {size}",
                    s.attrs.ints(0)[i],
                    s.attrs.ints(1)[i]
                ));
            }
            shape[i] = size as usize;
        }
        Ok(Type::new(s.dtype(0), shape))
    },
    |l| {
        let x = l.x(0);
        let value = l.cast(1);
        let [low, high, inner] = [0, 1, 2].map(|i| l.attrs.ints(i).to_vec());
        l.pad(&x, &value, &low, &high, &inner)
    },
)
.kind(Kind::Pad)
.attrs(&[attr("low", Position), attr("high", Position), attr("interior", Stride)])
.samples(|| {
    let of = |amounts: [[i64; 2]; 3]| Sample::of(&[&[2, 3], &[]]).attrs(amounts.map(|a| a.to_vec().into()).to_vec());
    vec![of([[1, 0], [0, 2], [0, 1]]), of([[0, 1], [0, -1], [0, 0]])]
})
.grad(|g| {
    let x = g.want(0, || {
        let mut dx = g.dy.clone();
        for d in 0..g.x(0).dim() {
            let (low, inner) = (g.attrs.ints(0)[d], g.attrs.ints(2)[d]);
            let n = g.x(0).size(d as i64) as i64;
            let kept = n + (n - 1).max(0) * inner;
            // what was cropped gets no gradient
            let after = dx.size(d as i64) as i64 - low - kept;
            dx = pad_dim(&dx, d, -low, -after, 0).slice(d as i64, 0, i64::MAX, inner + 1);
        }
        dx
    });
    let value = g.want(1, || {
        let inside = Tensor::ones_like(g.x(0));
        let mask = pad(&inside, 0.0, g.attrs.ints(0), g.attrs.ints(1), g.attrs.ints(2));
        (&g.dy * (1.0 - mask)).sum()
    });
    vec![x, value]
})
.heal(|attrs| {
    let (low, high) = (attrs.ints(0), attrs.ints(1));
    let amount: Vec<i64> = low.iter().zip(high).map(|(low, high)| low + high).collect();
    Some(Healed { op: &PAD_AT.op, attrs: [amount.into(), attrs[2].clone()].into(), value: attrs[0].clone() })
})
.bucket(bucket::padding);

#[track_caller]
fn pad(x: &Tensor, value: f64, low: &[i64], high: &[i64], interior: &[i64]) -> Tensor {
    trace(&PAD, [x.into(), value.into()], [low.to_vec().into(), high.to_vec().into(), interior.to_vec().into()])
}

/// Zeros before, after and between the elements along one dimension; negative amounts crop.
#[track_caller]
fn pad_dim(x: &Tensor, dim: usize, before: i64, after: i64, between: i64) -> Tensor {
    let at = |v: i64| (0..x.dim()).map(|d| if d == dim { v } else { 0 }).collect::<Vec<_>>();
    pad(x, 0.0, &at(before), &at(after), &at(between))
}

pub(super) static OPS: &[&Entry] = &[&SLICE, &SLICE_AT, &PAD, &PAD_AT];

impl Tensor {
    /// The slice of one element along `dim` that a number of the program names.
    #[track_caller]
    pub(crate) fn slice_at(&self, dim: usize, start: i64) -> Tensor {
        let start = Tensor::full((), start);
        trace(&SLICE_AT, [self.into(), start.into()], [dim.into(), 1usize.into(), 1usize.into()])
    }

    /// Elements `start..end` along `dim`, every `step`-th; negative positions count from the end, positions beyond it are
    /// cut off (`x[start:end:step]`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([0, 1, 2, 3, 4]).slice(0, 1, -1, 2).to_vec::<i64>(), [1, 3]);
    /// ```
    #[track_caller]
    pub fn slice(&self, dim: i64, start: i64, end: i64, step: i64) -> Tensor {
        let d = self.dim_index("slice", dim);
        if self.dim() == 0 {
            refuse("slice", &[self], "a tensor without dimensions has no elements to choose from");
        }
        if step < 1 {
            refuse("slice", &[self], format!("the step must be 1 or more, not {step}; use `flip` to go backwards"));
        }
        let n = self.size(dim) as i64;
        // Counted from the end, or up to it: how long the part is follows from the size.
        let relative = start >= 0 && (end < 0 || end > n);
        let view = Step::Slice { dim: d, start, end, step };
        let (start, end) = Shape::span(n, start, end);
        if (start, end, step) == (0, n, 1) {
            return self.clone();
        }
        if relative && let Some(rest) = bucket::ends_with(self, d, [start, end, step]) {
            return rest.viewing(self, view);
        }
        let part = trace(&SLICE, [self.into()], [d.into(), start.into(), end.into(), step.into()]);
        if relative && !is_physical() {
            graph().node_mut(part.id()).origin = Origin::Relative;
        }
        part.viewing(self, view)
    }

    /// `length` elements from `start` along `dim` (`torch.narrow`, with `.copy()` `torch.narrow_copy`).
    ///
    /// `tensor([1, 2, 3, 4]).narrow(0, 1, 2)` is `[2, 3]`.
    #[track_caller]
    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Tensor {
        let _call = called("narrow", [self]);
        let n = self.size(dim) as i64;
        let from = if start < 0 { start + n } else { start };
        if from < 0 || length < 0 || from + length > n {
            refuse("narrow", &[self], format!("{start} + {length} elements reach beyond the {n} of dimension {dim}"));
        }
        self.slice(dim, from, from + length, 1)
    }

    /// One element along `dim`, which is dropped (`torch.select`, `x[index]`).
    ///
    /// `tensor([[1, 2], [3, 4]]).select(0, 1)` is `[3, 4]`.
    #[track_caller]
    pub fn select(&self, dim: i64, index: i64) -> Tensor {
        let d = self.dim_index("select", dim);
        let n = self.shape().get(d).copied().unwrap_or(0) as i64;
        if !(-n..n).contains(&index) {
            refuse("select", &[self], format!("index {index} is out of range for dimension {dim} with {n} elements"));
        }
        let from = if index < 0 { index + n } else { index };
        let mut shape = self.shape();
        shape.remove(d);
        self.slice(dim, from, from + 1, 1).reshape_moving(shape, |i| (i != d).then(|| i - usize::from(i > d)))
    }

    /// Parts of `size` elements along `dim`, the last one smaller where it does not come out even (`torch.split`).
    ///
    /// `tensor([1, 2, 3]).split(2, 0)` is `[tensor([1, 2]), tensor([3])]`.
    #[track_caller]
    pub fn split(&self, size: usize, dim: i64) -> Vec<Tensor> {
        let _call = called("split", [self]);
        let n = self.size(dim);
        if size == 0 {
            refuse("split", &[self], "the size of a part must be 1 or more");
        }
        (0..n.div_ceil(size).max(1))
            .map(|i| self.slice(dim, (i * size) as i64, ((i + 1) * size).min(n) as i64, 1))
            .collect()
    }

    /// As even as can be, at most `chunks` parts along `dim` (`torch.chunk`).
    ///
    /// `tensor([1, 2, 3, 4]).chunk(2, 0)` is `[tensor([1, 2]), tensor([3, 4])]`.
    #[track_caller]
    pub fn chunk(&self, chunks: usize, dim: i64) -> Vec<Tensor> {
        let _call = called("chunk", [self]);
        if chunks == 0 {
            refuse("chunk", &[self], "the number of chunks must be 1 or more");
        }
        if self.size(dim) == 0 {
            return vec![self.clone(); chunks];
        }
        self.split(self.size(dim).div_ceil(chunks), dim)
    }

    /// The slices along `dim`, which is dropped (`torch.unbind`).
    ///
    /// `tensor([[1, 2], [3, 4]]).unbind(0)` is `[tensor([1, 2]), tensor([3, 4])]`.
    #[track_caller]
    pub fn unbind(&self, dim: i64) -> Vec<Tensor> {
        let _call = called("unbind", [self]);
        (0..self.size(dim) as i64).map(|i| self.select(dim, i)).collect()
    }

    /// Padded with `value`: pairs of amounts from the last dimension on, as in torch; negative amounts crop
    /// (`torch.nn.functional.pad`, mode constant).
    ///
    /// `tensor([1, 2]).pad([1, 2], 0.0)` is `[0, 1, 2, 0, 0]`.
    #[track_caller]
    pub fn pad(&self, pad_: impl Into<Dims>, value: f64) -> Tensor {
        let amounts = pad_.into().0;
        if amounts.len() % 2 != 0 || amounts.len() / 2 > self.dim() {
            refuse("pad", &[self], format!("{amounts:?} is not a pair of amounts for each of the last dimensions"));
        }
        let value = match self.element("pad", value.into()) {
            Arg::Scalar(s) => s.as_f64(),
            _ => value,
        };
        let rank = self.dim();
        let (mut low, mut high) = (vec![0; rank], vec![0; rank]);
        for (i, pair) in amounts.chunks_exact(2).enumerate() {
            (low[rank - 1 - i], high[rank - 1 - i]) = (pair[0], pair[1]);
        }
        pad(self, value, &low, &high, &vec![0; rank])
    }
}

impl Tensor {
    /// The rows of a tensor one by one, which are its views: `for row in &x` (`for row in x`). Those of one dimension are tensors
    /// of one number.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let sums: Vec<f64> = tensor([[1.0, 2.0], [3.0, 4.0]]).iter().map(|row| row.sum().item()).collect();
    /// assert_eq!(sums, [3.0, 7.0]);
    /// ```
    #[track_caller]
    pub fn iter(&self) -> std::vec::IntoIter<Tensor> {
        self.unbind(0).into_iter()
    }
}

/// As [`Tensor::iter`].
impl IntoIterator for &Tensor {
    type Item = Tensor;
    type IntoIter = std::vec::IntoIter<Tensor>;

    #[track_caller]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
