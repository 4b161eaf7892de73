//! The ops behind data, scalars and second names: they have no lowering of their own, or hand a value through.
use super::To;
use crate::bucket;
use crate::tensor::{Arg, Entry, Sample, Tensor, on_behalf, refuse, takes, trace};
use xlazy_core::emit::{Reducer, Val};
use xlazy_core::ir::Role::{Dtype, Size};
use xlazy_core::ir::{DEVICE_DATA, Kind, Lower, NUMBER, SECOND_NAME, attr, rules};
use xlazy_core::ty::{Category, DType, Dims, Shape, Type};

static DATA: Entry = Entry::of(DEVICE_DATA);
static SCALAR: Entry = Entry::of(NUMBER);
static ALIAS: Entry = Entry::of(SECOND_NAME).samples(sample).bucket(bucket::each);

fn sample() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3]])]
}

static CLONE: Entry = Entry::new("clone", rules::same, |l| l.x(0))
    .kind(Kind::View)
    .samples(sample)
    .grad(|g| vec![Some(g.dy.clone())])
    .bucket(bucket::each);

static TO: Entry = Entry::new("to", |s| Ok(Type::new(s.attrs_dtype(0), s.shape(0).clone())), |l| l.cast(0))
    .kind(Kind::Convert)
    .attrs(&[attr("dtype", Dtype)])
    .samples(|| {
        DType::ALL
            .into_iter()
            .filter(|d| d.category() < Category::Complex)
            .map(|d| Sample::of(&[&[2, 3]]).attrs(vec![d.into()]))
            .collect()
    })
    .grad(|g| {
        // back to the operand's dtype, which the walk sees to
        vec![Some(g.dy.clone())]
    })
    .bucket(bucket::each);

static SUM_TO: Entry = Entry::new(
    "sum_to_size",
    |s| {
        let shape: Shape = Dims(s.attrs_ints(0).to_vec()).shape("sum_to_size").map_err(|e| e.to_string())?;
        match shape.broadcast(s.shape(0)) {
            Some(b) if b == *s.shape(0) => Ok(Type::new(s.dtype(0), shape)),
            _ => Err(format!("{shape} does not broadcast to {}", s.shape(0))),
        }
    },
    |l| {
        let x = l.x(0);
        let shape = l.out.shape.clone();
        let skip = x.rank() - shape.len();
        let dims: Vec<usize> =
            (0..x.rank()).filter(|&d| d < skip || (shape[d - skip] == 1 && x.shape()[d] != 1)).collect();
        // halves in f32, as every sum of them
        let dtype = x.dtype();
        let x = wide(l, &x);
        let v = l.reduce(&x, &dims, Reducer::Add);
        let v = l.convert(&v, dtype);
        l.reshape(&v, &shape)
    },
)
.kind(Kind::Reduce)
.attrs(&[attr("size", Size)])
.samples(|| vec![Sample::of(&[&[4, 2, 3]]).attrs(vec![vec![2i64, 1].into()])])
.grad(|g| vec![Some(g.dy.expand(g.x(0).shape()))]);

// The second operand with the history of the first: a value that was put in its place without being recorded.
static SET_DATA: Entry = Entry::new("set_data", rules::same, |l| l.x(1)).grad(|g| vec![Some(g.dy.clone()), None]);

/// A half in f32, as what is computed of one; anything else as it is.
pub(super) fn wide(l: &mut Lower, x: &Val) -> Val {
    if x.dtype().is_half() { l.convert(x, DType::F32) } else { x.clone() }
}

/// What one op makes of its operand: of a half computed in f32 and rounded once.
pub(super) fn widely(l: &mut Lower, f: impl FnOnce(&mut Lower, &Val) -> Val) -> Val {
    let x = l.cast(0);
    let dtype = x.dtype();
    let x = wide(l, &x);
    let y = f(l, &x);
    l.convert(&y, dtype)
}

/// The same of two operands, which broadcast.
pub(super) fn both_widely(l: &mut Lower, f: impl FnOnce(&mut Lower, &Val, &Val) -> Val) -> Val {
    let dtype = l.out.dtype;
    let [a, b] = [0, 1].map(|i| {
        let x = l.fit(i);
        wide(l, &x)
    });
    let y = f(l, &a, &b);
    l.convert(&y, dtype)
}

/// Methods that are others, done in one way: `self.how("name", |x| x.method(…))`.
macro_rules! methods {
    ($how:ident: $($(#[$doc:meta])* pub fn $name:ident$(<$life:lifetime>)?($($arg:ident: $ty:ty),*) => $method:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name$(<$life>)?(&self, $($arg: $ty),*) -> Tensor {
                let _call = called(stringify!($name), [self]);
                self.$how(stringify!($name), |x| x.$method($($arg),*))
            })*
        }
    };
}
pub(super) use methods;

/// Refuses an operand that does not broadcast to the shape of another: where torch computes in place, that one's shape is the
/// result's.
#[track_caller]
pub(super) fn broadcasts(op: &'static str, what: &str, x: &Tensor, to: &Tensor) {
    if !x.shape().broadcasts_to(&to.shape()) {
        refuse(op, &[to, x], format!("{what} must broadcast to {}, and {} does not", to.shape(), x.shape()));
    }
}

/// Refuses operands whose numbers of dimensions differ; `all` says what they are.
#[track_caller]
pub(super) fn of_one_rank(op: &'static str, all: &str, tensors: &[&Tensor]) {
    if tensors.iter().any(|t| t.dim() != tensors[0].dim()) {
        refuse(op, tensors, format!("{all} must have the same number of dimensions"));
    }
}

/// Refuses operands of two dtypes, for ops that torch does not promote for.
#[track_caller]
pub(super) fn of_one_dtype(op: &'static str, tensors: &[&Tensor]) {
    if let Some(why) = takes::of_several(tensors.iter().map(|t| t.dtype())) {
        refuse(op, tensors, why);
    }
}

/// What several ops make of some tensors: of halves computed in f32 and rounded once, as torch's kernels do.
pub(super) fn rounded_once<const N: usize>(xs: [&Tensor; N], f: impl FnOnce([&Tensor; N]) -> Tensor) -> Tensor {
    let dtype = xs[0].dtype();
    if !dtype.is_half() || xs.iter().any(|x| x.dtype() != dtype) {
        return f(xs);
    }
    let wide = xs.map(Tensor::float);
    f(wide.each_ref()).to(dtype)
}

/// Operands in the float dtype that they are promoted to, where several ops compute with one before it meets the others.
#[track_caller]
pub(super) fn promoted<const N: usize>(op: &'static str, xs: [&Tensor; N]) -> [Tensor; N] {
    let types = xs.map(Tensor::ty);
    match rules::promote(&types.each_ref()) {
        Ok(dtype) => xs.map(|x| x.to(dtype.to_float())),
        Err(why) => refuse(op, &xs, why),
    }
}

/// A tensor, or a number as one in the float dtype that it has beside `x`.
pub(super) fn as_float<'a>(other: impl Into<Arg<'a>>, x: &Tensor) -> Tensor {
    match other.into() {
        Arg::Tensor(t) => t.clone(),
        Arg::Owned(t) => t,
        Arg::Scalar(s) => Tensor::full((), s.as_f64()).to(x.dtype().to_float()),
    }
}

pub(super) static OPS: &[&Entry] = &[&DATA, &SCALAR, &ALIAS, &CLONE, &TO, &SUM_TO, &SET_DATA];

impl Tensor {
    /// What a method gives, in place of this tensor's value: see [`methods`].
    #[track_caller]
    pub(super) fn overwritten(&self, op: &'static str, method: impl FnOnce(&Tensor) -> Tensor) -> Tensor {
        self.assign(op, method(self));
        self.clone()
    }

    /// What a method gives, under another name.
    #[track_caller]
    pub(super) fn named(&self, _: &'static str, method: impl FnOnce(&Tensor) -> Tensor) -> Tensor {
        method(self)
    }

    /// The same value as a tensor of its own, through which gradients flow (`torch.Tensor.clone`). Rust's `clone()` on a
    /// tensor makes another name for the same tensor, as Python's assignment does.
    ///
    /// `tensor([1.0]).copy()` is `[1.]`.
    #[track_caller]
    pub fn copy(&self) -> Tensor {
        trace(&CLONE, [self.into()], [])
    }

    /// Converted to a dtype, or moved to a device (`torch.Tensor.to`). Floats become integers by cutting towards zero
    /// (StableHLO: convert). To be moved a tensor needs its value: what it needs is run first, where that is pending, and
    /// the value is copied. Gradients flow through both.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([1.5, 2.5]);
    /// assert_eq!(x.to(I64).to_vec::<i64>(), [1, 2]);
    /// assert!(x.to(x.device()).is_same(&x));
    /// ```
    #[track_caller]
    pub fn to(&self, to: impl Into<To>) -> Tensor {
        match to.into() {
            To::DType(dtype) => self.converted(dtype),
            To::Device(name) => self.moved(&name),
        }
    }

    #[track_caller]
    fn converted(&self, dtype: DType) -> Tensor {
        if self.stored() == dtype { self.clone() } else { trace(&TO, [self.into()], [dtype.into()]) }
    }

    /// As float32 (`torch.Tensor.float`).
    ///
    /// `tensor([1, 2]).float()` is `[1., 2.]`.
    #[track_caller]
    pub fn float(&self) -> Tensor {
        self.to(DType::F32)
    }

    /// As float64 (`torch.Tensor.double`).
    ///
    /// `tensor([1.5]).double().dtype()` is `F64`.
    #[track_caller]
    pub fn double(&self) -> Tensor {
        self.to(DType::F64)
    }

    /// As bfloat16 (`torch.Tensor.bfloat16`).
    ///
    /// `tensor([1.5]).bfloat16().dtype()` is `BF16`.
    #[track_caller]
    pub fn bfloat16(&self) -> Tensor {
        self.to(DType::BF16)
    }

    /// As float16 (`torch.Tensor.half`).
    ///
    /// `tensor([1.5]).half().dtype()` is `F16`.
    #[track_caller]
    pub fn half(&self) -> Tensor {
        self.to(DType::F16)
    }

    /// As int64 (`torch.Tensor.long`).
    ///
    /// `tensor([1.9, -1.9]).long()` is `[1, -1]`.
    #[track_caller]
    pub fn long(&self) -> Tensor {
        self.to(DType::I64)
    }

    /// As int32 (`torch.Tensor.int`).
    ///
    /// `tensor([1.9]).int().dtype()` is `I32`.
    #[track_caller]
    pub fn int(&self) -> Tensor {
        self.to(DType::I32)
    }

    /// As int16 (`torch.Tensor.short`).
    ///
    /// `tensor([1.9]).short().dtype()` is `I16`.
    #[track_caller]
    pub fn short(&self) -> Tensor {
        self.to(DType::I16)
    }

    /// As bool: true where not zero (`torch.Tensor.bool`).
    ///
    /// `tensor([0, 2]).bool()` is `[false, true]`.
    #[track_caller]
    pub fn bool(&self) -> Tensor {
        self.to(DType::Bool)
    }

    /// Sums what broadcasting repeated, down to `shape` (`torch.Tensor.sum_to_size`).
    ///
    /// `Tensor::ones([2, 3]).sum_to_size([1, 3])` is `[[2., 2., 2.]]`.
    #[track_caller]
    pub fn sum_to_size(&self, shape: impl Into<Dims>) -> Tensor {
        let dims: Dims = shape.into();
        // As every sum, that of narrow integers is int64; where nothing is summed they stay what they are.
        let narrow = self.dtype().category() <= Category::Int
            && self.shape().iter().map(|&n| n as i64).ne(dims.0.iter().copied());
        let x = if narrow { self.to(DType::I64) } else { self.clone() };
        trace(&SUM_TO, [x.into()], [dims.0.into()])
    }

    #[track_caller]
    pub(crate) fn sum_to_shape(&self, shape: &Shape) -> Tensor {
        if self.shape() == *shape { self.clone() } else { self.sum_to_size(shape) }
    }

    /// This tensor's value, with gradients flowing to what made `old`.
    #[track_caller]
    pub(crate) fn with_history_of(&self, old: &Tensor) -> Tensor {
        on_behalf(std::panic::Location::caller(), true, || trace(&SET_DATA, [old.into(), self.into()], []))
    }

    /// Replaces this tensor's value (`torch.Tensor.copy_`); `value` is broadcast and converted.
    ///
    /// `Tensor::zeros([2]).copy_(&tensor([1, 2]))` is `[1., 2.]`.
    #[track_caller]
    pub fn copy_<'a>(&self, value: impl Into<Arg<'a>>) -> Tensor {
        let value = value.into();
        if value.tensor().is_some_and(|t| t.is_same(self)) {
            return self.clone();
        }
        let value = match (value.tensor(), &value) {
            (Some(t), _) if !t.shape().broadcasts_to(&self.shape()) => {
                refuse("copy_", &[self, t], format!("{} does not broadcast to {}", t.shape(), self.shape()))
            }
            (Some(t), _) => t.to(self.dtype()).expand(self.shape()),
            (None, Arg::Scalar(s)) => self.full_like(*s),
            (None, _) => unreachable!("a number is a scalar"),
        };
        self.assign("copy_", value);
        self.clone()
    }
}
