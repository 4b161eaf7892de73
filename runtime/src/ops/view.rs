//! Shape and order: reshapes, transposes, joins.
use crate::bucket;
use crate::tensor::{Entry, Sample, Step, Tensor, called, caller_line, refuse, trace, trace_all};
use std::borrow::Borrow;
use xlazy_core::emit::Val;
use xlazy_core::ir::Role::{Axis, Size};
use xlazy_core::ir::{AttrsExt, Kind, Rule, Sig, attr, rules};
use xlazy_core::ty::{Dims, Shape, Type};
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
.kind(Kind::View)
.attrs(&[attr("shape", Size)])
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
        match s.shape(0).broadcasts_to(&shape) {
            true => to_shape(s),
            false => Err(format!("{} does not broadcast to {shape}: only dimensions of size 1 can grow", s.shape(0))),
        }
    },
    |l| l.fit(0),
)
.kind(Kind::View)
.attrs(&[attr("size", Size)])
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
.kind(Kind::View)
.attrs(&[attr("dims", Axis)])
.samples(|| vec![Sample::of(&[&[2, 3, 4]]).attrs(vec![vec![2i64, 0, 1].into()])])
.grad(|g| {
    let perm = g.attrs.dims(0);
    let mut back = vec![0i64; perm.len()];
    perm.iter().enumerate().for_each(|(i, &p)| back[p] = i as i64);
    vec![Some(g.dy.permute(back))]
})
.bucket(bucket::permute);

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
        Ok(Type::new(rules::promote(s.inputs)?, shape))
    },
    |l| {
        let parts: Vec<Val> = (0..l.inputs.len()).map(|i| l.cast(i)).collect();
        let dim = l.attrs.index(0);
        l.concatenate(&parts.iter().collect::<Vec<_>>(), dim)
    },
)
.kind(Kind::Concat)
.attrs(&[attr("dim", Axis)])
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
.kind(Kind::View)
.attrs(&[attr("dims", Axis)])
.samples(|| vec![Sample::of(&[&[2, 3]]).attrs(vec![vec![1i64].into()])])
.grad(|g| vec![Some(g.dy.flip(g.attrs.ints(0)))])
.bucket(bucket::flip);

pub(super) static OPS: &[&Entry] = &[&RESHAPE, &EXPAND, &PERMUTE, &CAT, &FLIP];

/// Joins tensors along a dimension they have (`torch.cat`): references or tensors, in an array or a vector.
///
/// ```
/// use xlazy::prelude::*;
/// let x = cat(&[&tensor([1.0]), &tensor([2.0, 3.0])], 0);
/// assert_eq!(x.to_vec::<f32>(), [1.0, 2.0, 3.0]);
/// assert_eq!(cat(&x.split(2, 0), 0).shape(), [3]);
/// ```
#[track_caller]
pub fn cat<T: Borrow<Tensor>>(tensors: &[T], dim: i64) -> Tensor {
    cat_all(&tensors.iter().map(Borrow::borrow).collect::<Vec<_>>(), dim)
}

/// All of [`cat`] that is compiled once.
#[track_caller]
fn cat_all(tensors: &[&Tensor], dim: i64) -> Tensor {
    // as in torch, what has the shape [0] joins anything
    let nothing = |t: &&&Tensor| t.dim() == 1 && t.size(0) == 0;
    if tensors.iter().any(|t| t.dim() > 1) && tensors.iter().any(|t| nothing(&t)) {
        let _line = caller_line();
        let dtype = tensors.iter().map(|t| t.dtype()).reduce(crate::DType::promote).expect("two at least");
        let some: Vec<Tensor> = tensors.iter().filter(|t| !nothing(t)).map(|t| t.to(dtype)).collect();
        return cat(&some, dim);
    }
    let Some(first) = tensors.first() else {
        refuse("cat", &[], "needs at least one tensor");
    };
    if first.dim() == 0 {
        refuse("cat", tensors, "tensors without dimensions cannot be joined; use `stack`");
    }
    trace_all(&CAT, tensors, [first.dim_index("cat", dim).into()])
}

/// Joins tensors of one shape along a new dimension (`torch.stack`): references or tensors, in an array or a vector.
///
/// ```
/// use xlazy::prelude::*;
/// let rows: Vec<Tensor> = (0..3).map(|i| Tensor::ones([2]) * i).collect();
/// assert_eq!(stack(&rows, 0).shape(), [3, 2]);
/// ```
#[track_caller]
pub fn stack<T: Borrow<Tensor>>(tensors: &[T], dim: i64) -> Tensor {
    stack_all(&tensors.iter().map(Borrow::borrow).collect::<Vec<_>>(), dim)
}

#[track_caller]
fn stack_all(tensors: &[&Tensor], dim: i64) -> Tensor {
    let _call = called("stack", tensors.iter().copied());
    if let Some(other) = tensors.iter().find(|t| t.shape() != tensors[0].shape()) {
        let why = format!("expected tensors of one shape: there are {} and {}", tensors[0].shape(), other.shape());
        refuse("stack", tensors, why);
    }
    let _line = caller_line();
    let grown: Vec<Tensor> = tensors.iter().map(|t| t.unsqueeze(dim)).collect();
    cat(&grown, dim)
}

impl Tensor {
    /// Dimensions as indices, in their order.
    #[track_caller]
    pub(crate) fn each_dim(&self, op: &'static str, dims: &Dims) -> Vec<usize> {
        let mut out = Vec::with_capacity(dims.0.len());
        // In a closure the caller would be this library.
        for &d in &dims.0 {
            out.push(self.dim_index(op, d));
        }
        out
    }

    /// The same elements in another shape; one size may be -1 and is worked out (`torch.reshape`). A view, unless the
    /// tensor is a view itself whose elements do not lie so in memory: a transposed one that is flattened is copied.
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
        if shape == self.shape() {
            return self.clone();
        }
        let y = trace(&RESHAPE, [self.into()], [(&shape).into()]);
        if self.can_be_viewed_as(&shape) { y.viewing(self, Step::Reshape(shape)) } else { y }
    }

    /// In a shape in which dimension `d` comes to be `to(d)`.
    #[track_caller]
    pub(crate) fn reshape_moving(&self, shape: Shape, to: impl Fn(usize) -> Option<usize>) -> Tensor {
        match bucket::moved(self, &shape, &to) {
            Some(moved) => moved.viewing(self, Step::Moved(shape, (0..self.dim()).map(to).collect())),
            None => self.reshape(shape),
        }
    }

    /// As [`Tensor::reshape`], and refused where that would copy (`torch.Tensor.view`).
    ///
    /// `tensor([1, 2, 3, 4]).view((2, 2))` is `[[1, 2], [3, 4]]`.
    #[track_caller]
    pub fn view(&self, shape: impl Into<Dims>) -> Tensor {
        let _call = called("view", [self]);
        let y = self.reshape(shape);
        if !self.can_be_viewed_as(&y.shape()) {
            let why = "view size is not compatible with input tensor's size and stride (at least one dimension spans across \
                       two contiguous subspaces). Use .reshape(...) instead.";
            refuse("view", &[self], why);
        }
        y
    }

    /// All elements in one dimension (`torch.flatten`).
    ///
    /// `tensor([[1, 2], [3, 4]]).flatten()` is `[1, 2, 3, 4]`.
    #[track_caller]
    pub fn flatten(&self) -> Tensor {
        self.reshape([self.numel()])
    }

    /// Dimensions `start..=end` joined into one (`torch.flatten(x, start_dim, end_dim)`).
    ///
    /// `Tensor::zeros([2, 3, 4]).flatten_dims(1, -1).shape()` is `[2,12]`.
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
    ///
    /// `tensor([[1], [2]]).expand([2, 3])` is `[[1, 1, 1], [2, 2, 2]]`.
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
        if shape == mine {
            return self.clone();
        }
        trace(&EXPAND, [self.into()], [(&shape).into()]).viewing(self, Step::Expand(shape))
    }

    /// As [`Tensor::expand`] (`torch.broadcast_to`).
    ///
    /// `tensor([1, 2]).broadcast_to([2, 2])` is `[[1, 2], [1, 2]]`.
    #[track_caller]
    pub fn broadcast_to(&self, size: impl Into<Dims>) -> Tensor {
        let _call = called("broadcast_to", [self]);
        self.expand(size)
    }

    /// The dimensions in another order (`torch.permute`).
    ///
    /// `Tensor::zeros([2, 3, 4]).permute([2, 0, 1]).shape()` is `[4,2,3]`.
    #[track_caller]
    pub fn permute(&self, dims: impl Into<Dims>) -> Tensor {
        let dims = dims.into();
        let order: Vec<i64> = self.each_dim("permute", &dims).into_iter().map(|d| d as i64).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted.len() != self.dim() || sorted.iter().enumerate().any(|(i, &d)| d != i as i64) {
            refuse("permute", &[self], format!("{:?} does not name each dimension once", dims.0));
        }
        if sorted == order {
            return self.clone();
        }
        let step = Step::Permute(order.iter().map(|&d| d as usize).collect());
        trace(&PERMUTE, [self.into()], [order.into()]).viewing(self, step)
    }

    /// Two dimensions swapped (`torch.transpose`).
    ///
    /// `tensor([[1, 2], [3, 4]]).transpose(0, 1)` is `[[1, 3], [2, 4]]`.
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
    ///
    /// `tensor([[1, 2]]).t()` is `[[1], [2]]`.
    #[track_caller]
    pub fn t(&self) -> Tensor {
        match self.dim() {
            0 | 1 => self.clone(),
            2 => self.transpose(0, 1),
            n => refuse("t", &[self], format!("needs at most 2 dimensions, this tensor has {n}; use `transpose`")),
        }
    }

    /// Dimensions of size 1 dropped (`torch.squeeze`).
    ///
    /// `Tensor::zeros([1, 3, 1]).squeeze().shape()` is `[3]`.
    #[track_caller]
    pub fn squeeze(&self) -> Tensor {
        let kept: Vec<usize> = self.shape().iter().copied().filter(|&d| d != 1).collect();
        self.reshape(kept)
    }

    /// One dimension dropped if its size is 1 (`torch.squeeze(x, dim)`).
    ///
    /// `Tensor::zeros([1, 3, 1]).squeeze_dim(0).shape()` is `[3,1]`.
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
    ///
    /// `tensor([1, 2]).unsqueeze(0)` is `[[1, 2]]`.
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

    /// In reverse order along the dimensions given (`torch.flip`); StableHLO reverse.
    ///
    /// `tensor([1, 2, 3]).flip(0)` is `[3, 2, 1]`.
    #[track_caller]
    pub fn flip(&self, dims: impl Into<Dims>) -> Tensor {
        let dims: Vec<i64> = self.each_dim("flip", &dims.into()).into_iter().map(|d| d as i64).collect();
        if (1..dims.len()).any(|i| dims[..i].contains(&dims[i])) {
            refuse("flip", &[self], format!("a dimension appears twice in {dims:?}"));
        }
        if dims.is_empty() || self.dim() == 0 { self.copy() } else { trace(&FLIP, [self.into()], [dims.into()]) }
    }
}
