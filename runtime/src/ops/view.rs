//! Shape and order: reshapes, transposes, slices, joins. Values are never shared between a view and its base: an
//! in-place op on a view does not reach the base.
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, caller_line, refuse, trace, trace_all};
use xlazy_core::emit::Val;
use xlazy_core::ir::{AttrsExt, Healed, Rule, Sig, rules};
use xlazy_core::ty::{DType, Dims, Shape, Type};
use xlazy_mime::count;

fn to_shape(s: &Sig) -> Rule {
    Ok(Type::new(s.dtype(0), s.attrs_shape(0)))
}

static RESHAPE: Entry = Entry::new(
    "reshape",
    |s| {
        let shape = s.attrs_shape(0);
        if shape.numel() != s.shape(0).numel() {
            return Err(format!(
                "{} cannot fill {shape}, which has {}",
                count(s.shape(0).numel(), "element"),
                shape.numel()
            ));
        }
        to_shape(s)
    },
    |l| {
        let (x, shape) = (l.x(0), l.out.shape.clone());
        l.reshape(&x, &shape)
    },
)
.attrs(&["shape"])
.samples(|| {
    let of = |from: &[usize], to: &[i64]| Sample::of(&[from]).attrs(vec![to.to_vec().into()]);
    vec![of(&[2, 3], &[3, 2]), of(&[2, 6], &[2, 3, 2]), of(&[2, 3, 2], &[6, 2])]
})
.grad(|g| vec![Some(g.dy.reshape(g.x(0).shape()))])
.bucket(bucket::reshape);

static EXPAND: Entry = Entry::new(
    "expand",
    |s| {
        let shape = s.attrs_shape(0);
        match s.shape(0).broadcast(&shape) {
            Some(b) if b == shape => to_shape(s),
            _ => Err(format!("{} does not broadcast to {shape}: only dimensions of size 1 can grow", s.shape(0))),
        }
    },
    |l| l.fit(0),
)
.attrs(&["size"])
.samples(|| vec![Sample::of(&[&[2, 1]]).attrs(vec![vec![4i64, 2, 3].into()])])
.grad(|g| vec![Some(g.dy.clone())])
.bucket(bucket::expand); // the walk sums it back to the operand's shape

static PERMUTE: Entry = Entry::new(
    "permute",
    |s| {
        let mut shape = s.shape(0).clone();
        for (i, p) in s.attrs.dims(0).into_iter().enumerate() {
            shape[i] = s.shape(0)[p];
        }
        Ok(Type::new(s.dtype(0), shape))
    },
    |l| {
        let (x, perm) = (l.x(0), l.attrs.dims(0));
        l.transpose(&x, &perm)
    },
)
.attrs(&["dims"])
.samples(|| vec![Sample::of(&[&[2, 3, 4]]).attrs(vec![vec![2i64, 0, 1].into()])])
.grad(|g| {
    let perm = g.attrs.dims(0);
    let mut back = vec![0i64; perm.len()];
    perm.iter().enumerate().for_each(|(i, &p)| back[p] = i as i64);
    vec![Some(g.dy.permute(back))]
})
.bucket(bucket::permute);

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
.attrs(&["dim", "start", "end", "step"])
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
.bucket(bucket::along);

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
.attrs(&["dim", "length", "step"])
.samples(|| vec![Sample::of(&[&[2, 7]]).and(DType::I64, &[]).attrs(vec![1usize.into(), 3usize.into(), 2usize.into()])]);

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
.attrs(&["amount", "interior"])
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
.attrs(&["low", "high", "interior"])
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

static CAT: Entry = Entry::new(
    "cat",
    |s| {
        let dim = s.attrs.index(0);
        let mut shape = s.shape(0).clone();
        for (i, t) in s.inputs.iter().enumerate().skip(1) {
            let fits = t.shape.len() == shape.len() && (0..shape.len()).all(|d| d == dim || t.shape[d] == shape[d]);
            if !fits {
                return Err(format!(
                    "tensor {i} is {} and does not fit {} outside dimension {dim}",
                    t.shape,
                    s.shape(0)
                ));
            }
            shape[dim] += t.shape[dim];
        }
        Ok(Type::new(rules::promote(s.inputs), shape))
    },
    |l| {
        let parts: Vec<Val> = (0..l.inputs.len()).map(|i| l.cast(i)).collect();
        let dim = l.attrs.index(0);
        l.concatenate(&parts.iter().collect::<Vec<_>>(), dim)
    },
)
.attrs(&["dim"])
.samples(|| vec![Sample::of(&[&[2, 3], &[2, 1]]).attrs(vec![1usize.into()])])
.grad(|g| {
    let dim = g.attrs.int(0);
    let mut start = 0;
    g.inputs
        .iter()
        .enumerate()
        .map(|(i, x)| {
            let n = x.size(dim) as i64;
            let part = g.want(i, || g.dy.narrow(dim, start, n));
            start += n;
            part
        })
        .collect()
})
.bucket(bucket::cat);

static FLIP: Entry = Entry::new("flip", rules::same, |l| {
    let (x, dims) = (l.x(0), l.attrs.dims(0));
    l.reverse(&x, &dims)
})
.attrs(&["dims"])
.samples(|| vec![Sample::of(&[&[2, 3]]).attrs(vec![vec![1i64].into()])])
.grad(|g| vec![Some(g.dy.flip(g.attrs.ints(0)))])
.bucket(bucket::along_all);

pub(super) static OPS: &[&Entry] = &[&RESHAPE, &EXPAND, &PERMUTE, &SLICE, &SLICE_AT, &PAD, &PAD_AT, &CAT, &FLIP];

/// Joins tensors along a dimension they have (`torch.cat`).
///
/// ```
/// use xlazy::prelude::*;
/// let x = cat(&[&tensor([1.0]), &tensor([2.0, 3.0])], 0);
/// assert_eq!(x.to_vec::<f32>(), [1.0, 2.0, 3.0]);
/// ```
#[track_caller]
pub fn cat(tensors: &[&Tensor], dim: i64) -> Tensor {
    let Some(first) = tensors.first() else {
        refuse("cat", &[], "needs at least one tensor");
    };
    if first.dim() == 0 {
        refuse("cat", tensors, "tensors without dimensions cannot be joined; use `stack`");
    }
    trace_all(&CAT, tensors, [first.dim_index("cat", dim).into()])
}

/// Joins tensors of one shape along a new dimension (`torch.stack`).
#[track_caller]
pub fn stack(tensors: &[&Tensor], dim: i64) -> Tensor {
    let _line = caller_line();
    let grown: Vec<Tensor> = tensors.iter().map(|t| t.unsqueeze(dim)).collect();
    cat(&grown.iter().collect::<Vec<_>>(), dim)
}

impl Tensor {
    /// The slice of one element along `dim` that a number of the program names.
    #[track_caller]
    pub(crate) fn slice_at(&self, dim: usize, start: i64) -> Tensor {
        let start = Tensor::full((), start);
        trace(&SLICE_AT, [self.into(), start.into()], [dim.into(), 1usize.into(), 1usize.into()])
    }

    /// The same elements in another shape; one size may be -1 and is worked out (`torch.reshape`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::zeros([2, 6]).reshape([-1, 4]).shape(), [3, 4]);
    /// ```
    #[track_caller]
    pub fn reshape(&self, shape: impl Into<Dims>) -> Tensor {
        let mut dims = shape.into();
        let n = self.numel() as i64;
        let known: i64 = dims.0.iter().filter(|&&d| d != -1).product();
        match dims.0.iter().filter(|&&d| d == -1).count() {
            0 => {}
            1 if known > 0 && n % known == 0 => {
                dims.0.iter_mut().filter(|d| **d == -1).for_each(|d| *d = n / known);
            }
            1 => refuse(
                "reshape",
                &[self],
                format!("{} cannot fill {:?}: -1 would not be whole", count(n as usize, "element"), dims.0),
            ),
            _ => refuse("reshape", &[self], format!("only one size can be -1, not {:?}", dims.0)),
        }
        let shape = dims.shape("reshape").unwrap_or_else(|e| e.raise());
        if shape == self.shape() { self.clone() } else { trace(&RESHAPE, [self.into()], [(&shape).into()]) }
    }

    /// In a shape in which dimension `d` comes to be `to(d)`.
    #[track_caller]
    fn reshape_moving(&self, shape: Shape, to: impl Fn(usize) -> Option<usize>) -> Tensor {
        match bucket::moved(self, &shape, to) {
            Some(moved) => moved,
            None => self.reshape(shape),
        }
    }

    /// As [`Tensor::reshape`] (`torch.Tensor.view`).
    #[track_caller]
    pub fn view(&self, shape: impl Into<Dims>) -> Tensor {
        self.reshape(shape)
    }

    /// All elements in one dimension (`torch.flatten`).
    #[track_caller]
    pub fn flatten(&self) -> Tensor {
        self.reshape([self.numel()])
    }

    /// Dimensions `start..=end` joined into one (`torch.flatten(x, start_dim, end_dim)`).
    #[track_caller]
    pub fn flatten_dims(&self, start: i64, end: i64) -> Tensor {
        let (a, b) = (self.dim_index("flatten", start), self.dim_index("flatten", end));
        if a > b {
            refuse("flatten", &[self], format!("the first dimension ({start}) comes after the last ({end})"));
        }
        let shape = self.shape();
        let mut out = shape[..a].to_vec();
        out.push(shape.iter().take(b + 1).skip(a).product());
        out.extend_from_slice(&shape[(b + 1).min(shape.len())..]);
        self.reshape(out)
    }

    /// Broadcast to a larger shape; -1 keeps a size (`torch.Tensor.expand`).
    #[track_caller]
    pub fn expand(&self, size: impl Into<Dims>) -> Tensor {
        let mut dims = size.into();
        let mine = self.shape();
        let skip = dims.0.len().saturating_sub(mine.len());
        for (i, d) in dims.0.iter_mut().enumerate() {
            if *d == -1 && i >= skip {
                *d = mine[i - skip] as i64;
            }
        }
        let shape = dims.shape("expand").unwrap_or_else(|e| e.raise());
        if shape == mine { self.clone() } else { trace(&EXPAND, [self.into()], [(&shape).into()]) }
    }

    /// As [`Tensor::expand`] (`torch.broadcast_to`).
    #[track_caller]
    pub fn broadcast_to(&self, size: impl Into<Dims>) -> Tensor {
        self.expand(size)
    }

    /// The dimensions in another order (`torch.permute`).
    #[track_caller]
    pub fn permute(&self, dims: impl Into<Dims>) -> Tensor {
        let dims = dims.into();
        let order: Vec<i64> = dims.0.iter().map(|&d| self.dim_index("permute", d) as i64).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted.len() != self.dim() || sorted.iter().enumerate().any(|(i, &d)| d != i as i64) {
            refuse("permute", &[self], format!("{:?} does not name each dimension once", dims.0));
        }
        if sorted == order { self.clone() } else { trace(&PERMUTE, [self.into()], [order.into()]) }
    }

    /// Two dimensions swapped (`torch.transpose`).
    #[track_caller]
    pub fn transpose(&self, dim0: i64, dim1: i64) -> Tensor {
        let (a, b) = (self.dim_index("transpose", dim0), self.dim_index("transpose", dim1));
        let mut order: Vec<usize> = (0..self.dim()).collect();
        if !order.is_empty() {
            order.swap(a, b);
        }
        self.permute(order)
    }

    /// A matrix turned over; vectors and scalars stay as they are (`torch.t`).
    #[track_caller]
    pub fn t(&self) -> Tensor {
        match self.dim() {
            0 | 1 => self.clone(),
            2 => self.transpose(0, 1),
            n => refuse("t", &[self], format!("needs at most 2 dimensions, this tensor has {n}; use `transpose`")),
        }
    }

    /// Dimensions of size 1 dropped (`torch.squeeze`).
    #[track_caller]
    pub fn squeeze(&self) -> Tensor {
        let kept: Vec<usize> = self.shape().iter().copied().filter(|&d| d != 1).collect();
        self.reshape(kept)
    }

    /// One dimension dropped if its size is 1 (`torch.squeeze(x, dim)`).
    #[track_caller]
    pub fn squeeze_dim(&self, dim: i64) -> Tensor {
        let d = self.dim_index("squeeze", dim);
        let mut shape = self.shape();
        if shape.get(d) != Some(&1) {
            return self.clone();
        }
        shape.remove(d);
        self.reshape_moving(shape, |i| (i != d).then(|| i - usize::from(i > d)))
    }

    /// A new dimension of size 1 (`torch.unsqueeze`).
    #[track_caller]
    pub fn unsqueeze(&self, dim: i64) -> Tensor {
        match Shape::dim_of(self.dim(), dim, 1) {
            Ok(d) => {
                let mut shape = self.shape();
                shape.insert(d, 1);
                self.reshape_moving(shape, |i| Some(i + usize::from(i >= d)))
            }
            Err(message) => refuse("unsqueeze", &[self], message),
        }
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
        let at = |p: i64| (if p < 0 { p + n } else { p }).clamp(0, n);
        let (start, end) = (at(start), at(end).max(at(start)));
        if (start, end, step) == (0, n, 1) {
            return self.clone();
        }
        trace(&SLICE, [self.into()], [d.into(), start.into(), end.into(), step.into()])
    }

    /// `length` elements from `start` along `dim` (`torch.narrow`).
    #[track_caller]
    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Tensor {
        let n = self.size(dim) as i64;
        let from = if start < 0 { start + n } else { start };
        if from < 0 || length < 0 || from + length > n {
            refuse("narrow", &[self], format!("{start} + {length} elements reach beyond the {n} of dimension {dim}"));
        }
        self.slice(dim, from, from + length, 1)
    }

    /// One element along `dim`, which is dropped (`torch.select`, `x[index]`).
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
    #[track_caller]
    pub fn split(&self, size: usize, dim: i64) -> Vec<Tensor> {
        let _line = caller_line();
        let n = self.size(dim);
        if size == 0 {
            refuse("split", &[self], "the size of a part must be 1 or more");
        }
        (0..n.div_ceil(size).max(1))
            .map(|i| self.slice(dim, (i * size) as i64, ((i + 1) * size).min(n) as i64, 1))
            .collect()
    }

    /// As even as can be, at most `chunks` parts along `dim` (`torch.chunk`).
    #[track_caller]
    pub fn chunk(&self, chunks: usize, dim: i64) -> Vec<Tensor> {
        if chunks == 0 {
            refuse("chunk", &[self], "the number of chunks must be 1 or more");
        }
        self.split(self.size(dim).div_ceil(chunks).max(1), dim)
    }

    /// The slices along `dim`, which is dropped (`torch.unbind`).
    #[track_caller]
    pub fn unbind(&self, dim: i64) -> Vec<Tensor> {
        let _line = caller_line();
        (0..self.size(dim) as i64).map(|i| self.select(dim, i)).collect()
    }

    /// Padded with `value`: pairs of amounts from the last dimension on, as in torch; negative amounts crop
    /// (`torch.nn.functional.pad`, mode constant).
    #[track_caller]
    pub fn pad(&self, pad_: impl Into<Dims>, value: f64) -> Tensor {
        let amounts = pad_.into().0;
        if amounts.len() % 2 != 0 || amounts.len() / 2 > self.dim() {
            refuse("pad", &[self], format!("{amounts:?} is not a pair of amounts for each of the last dimensions"));
        }
        let rank = self.dim();
        let (mut low, mut high) = (vec![0; rank], vec![0; rank]);
        for (i, pair) in amounts.chunks_exact(2).enumerate() {
            (low[rank - 1 - i], high[rank - 1 - i]) = (pair[0], pair[1]);
        }
        pad(self, value, &low, &high, &vec![0; rank])
    }

    /// In reverse order along the dimensions given (`torch.flip`); StableHLO reverse.
    #[track_caller]
    pub fn flip(&self, dims: impl Into<Dims>) -> Tensor {
        let dims: Vec<i64> = dims.into().0.iter().map(|&d| self.dim_index("flip", d) as i64).collect();
        if dims.is_empty() || self.dim() == 0 { self.clone() } else { trace(&FLIP, [self.into()], [dims.into()]) }
    }

    /// Repeated along each dimension (`torch.Tensor.repeat`).
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
        self.reshape(from).expand(wide).reshape(out)
    }
}
