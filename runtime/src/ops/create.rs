//! Tensors from nothing, from numbers and from Rust data.
use super::bounds::known_classes;
use crate::bucket::like;
use crate::tensor::{Arg, Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::ir::Role::{Dtype, Size};
use xlazy_core::ir::{AttrsExt, Kind, Rule, Sig, attr, rules};
use xlazy_core::ty::{Category, DType, Dims, Element, Scalar, Shape, Type};

fn shape_and_dtype(s: &Sig) -> Rule {
    Ok(Type::new(s.attrs.dtype(1), s.attrs_shape(0)))
}

static FULL: Entry = Entry::new("full", shape_and_dtype, |l| l.fit(0))
    .kind(Kind::Made)
    .attrs(&[attr("size", Size), attr("dtype", Dtype)])
    .samples(|| vec![Sample::of(&[&[]]).attrs(vec![vec![2i64].into(), DType::F32.into()])])
    .grad(|_| vec![None]);

static ZEROS: Entry = Entry::new("zeros", shape_and_dtype, |l| {
    let ty = l.out.clone();
    l.constant(0.0, &ty)
})
.kind(Kind::Made)
.attrs(&[attr("size", Size), attr("dtype", Dtype)])
.samples(|| vec![Sample::of(&[]).attrs(vec![vec![2i64].into(), DType::F32.into()])]);

static ONES: Entry = Entry::new("ones", shape_and_dtype, |l| {
    let ty = l.out.clone();
    l.constant(1.0, &ty)
})
.kind(Kind::Made)
.attrs(&[attr("size", Size), attr("dtype", Dtype)])
.samples(|| vec![Sample::of(&[]).attrs(vec![vec![2i64].into(), DType::F32.into()])]);

// start + step · 0, 1, 2…; start and step are operands, only the number of elements is fixed
static ARANGE: Entry = Entry::new(
    "arange",
    |s| Ok(Type::new(s.attrs.dtype(1), Shape::new(&[s.attrs.index(0)]))),
    |l| {
        let ty = l.out.clone();
        // Halves count exactly only to 2048: count in f32.
        let wide = if ty.dtype.is_half() { DType::F32 } else { ty.dtype };
        let counting = Type::new(wide, ty.shape.clone());
        let i = l.iota(&counting, 0);
        let (start, step) = (l.x(0), l.x(1));
        let [start, step] = [start, step].map(|v| {
            let v = l.convert(&v, wide);
            l.broadcast(&v, &ty.shape)
        });
        let scaled = l.mul(&i, &step);
        let v = l.add(&scaled, &start);
        l.convert(&v, ty.dtype)
    },
)
.kind(Kind::Made)
.attrs(&[attr("steps", Size), attr("dtype", Dtype)])
.samples(|| vec![Sample::of(&[&[], &[]]).attrs(vec![4usize.into(), DType::F32.into()])]);

// From both ends towards the middle, so that both ends are met exactly.
static LINSPACE: Entry = Entry::new(
    "linspace",
    |s| {
        if s.inputs.iter().any(|t| !t.shape.is_empty()) {
            return Err("start and end must be numbers or tensors without dimensions".into());
        }
        Ok(Type::new(rules::promote(s.inputs)?.to_float(), Shape::new(&[s.attrs.index(0)])))
    },
    |l| {
        let (ty, n) = (l.out.clone(), l.attrs.index(0));
        if n == 0 {
            return l.constant(0.0, &ty);
        }
        let i = l.iota(&ty, 0);
        let (start, end) = (l.fit(0), l.fit(1));
        if n == 1 {
            return start;
        }
        // XLA divides by a constant by multiplying with its reciprocal, which may miss a whole number: put back the rest
        let range = l.sub(&end, &start);
        let near = l.with_const("divide", &range, (n - 1) as f64);
        let back = l.with_const("multiply", &near, (n - 1) as f64);
        let rest = l.sub(&range, &back);
        let rest = l.with_const("divide", &rest, (n - 1) as f64);
        let step = l.add(&near, &rest);
        let up = l.mul(&i, &step);
        let up = l.add(&start, &up);
        let last = l.constant((n - 1) as f64, &ty);
        let left = l.sub(&last, &i);
        let down = l.mul(&left, &step);
        let down = l.sub(&end, &down);
        let middle = l.constant((n / 2) as f64, &ty);
        let first = l.compare("LT", &i, &middle);
        l.select(&first, &up, &down)
    },
)
.kind(Kind::Made)
.attrs(&[attr("steps", Size)])
.samples(|| {
    vec![Sample::of(&[&[], &[]]).attrs(vec![5usize.into()]), Sample::of(&[&[], &[]]).attrs(vec![1usize.into()])]
})
.grad(|g| {
    let n = g.attrs.index(0);
    if n == 0 {
        return vec![g.want(0, || g.x(0).zeros_like()), g.want(1, || g.x(1).zeros_like())];
    }
    let share = Tensor::linspace(0.0, 1.0, n).to(g.dy.dtype());
    vec![g.want(0, || (&g.dy * (1.0 - &share)).sum()), g.want(1, || (&g.dy * &share).sum())]
});

static EYE: Entry = Entry::new("eye", shape_and_dtype, |l| {
    let ty = l.out.clone();
    let index = Type::new(DType::I64, ty.shape.clone());
    let (row, column) = (l.iota(&index, 0), l.iota(&index, 1));
    let same = l.compare("EQ", &row, &column);
    l.convert(&same, ty.dtype)
})
.kind(Kind::Made)
.attrs(&[attr("size", Size), attr("dtype", Dtype)])
.samples(|| vec![Sample::of(&[]).attrs(vec![vec![3i64, 3].into(), DType::F32.into()])]);

// Which elements of a bucketed dimension are real: the operand says how many. `after`: dimensions behind it.
static BUCKET_MASK: Entry = Entry::new(
    "bucket_mask",
    |s| {
        let mut shape = vec![1; s.attrs.index(1) + 1];
        shape[0] = s.attrs.index(0);
        Ok(Type::new(DType::Bool, Shape::new(&shape)))
    },
    |l| {
        let shape = l.out.shape.clone();
        let position = l.iota(&Type::new(DType::I64, shape.clone()), 0);
        let size = l.x(0);
        let size = l.broadcast(&size, &shape);
        l.compare("LT", &position, &size)
    },
)
.kind(Kind::Mask)
.attrs(&[attr("bucket", Size), attr("after", Size)])
.samples(|| vec![Sample::of(&[]).index(&[], 4).attrs(vec![4usize.into(), 1usize.into()])]);

pub(super) static OPS: &[&Entry] = &[&FULL, &ZEROS, &ONES, &ARANGE, &LINSPACE, &EYE, &BUCKET_MASK];

impl Tensor {
    /// True for the first `size` of `bucket` elements, with `after` dimensions of size 1 behind.
    #[track_caller]
    pub(crate) fn bucket_mask(size: usize, bucket: usize, after: usize) -> Tensor {
        trace(&BUCKET_MASK, [(size as i64).into()], [bucket.into(), after.into()])
    }
}

/// Data as user code writes it down: numbers and nested arrays of them. As Python's lists in `torch.tensor`, floats become
/// float32 and integers int64; vectors and slices, like NumPy's arrays, keep the dtype of their elements.
pub trait Literal {
    #[doc(hidden)]
    fn shape(&self) -> Vec<usize>;
    #[doc(hidden)]
    fn dtype(&self) -> DType;
    #[doc(hidden)]
    fn write(&self, out: &mut Vec<u8>);
    /// Whether all rows are as long.
    #[doc(hidden)]
    fn is_even(&self) -> bool {
        true
    }
}

/// What vectors and slices hold: elements, or rows of them.
pub trait Row {
    #[doc(hidden)]
    const DTYPE: DType;
    #[doc(hidden)]
    fn shape(&self) -> Vec<usize>;
    #[doc(hidden)]
    fn write(&self, out: &mut Vec<u8>);
    #[doc(hidden)]
    fn is_even(&self) -> bool;
    /// All rows of a slice: numbers are written by code that is compiled here and not in a cell.
    #[doc(hidden)]
    fn write_all(rows: &[Self], out: &mut Vec<u8>)
    where
        Self: Sized,
    {
        rows.iter().for_each(|row| row.write(out));
    }
    #[doc(hidden)]
    fn are_even(rows: &[Self]) -> bool
    where
        Self: Sized,
    {
        rows.iter().all(|row| row.is_even() && row.shape() == rows[0].shape())
    }
}

macro_rules! elements {
    ($($t:ident as $as:ty),*) => {$(
        impl Row for $t {
            const DTYPE: DType = <$as as Element>::DTYPE;
            fn shape(&self) -> Vec<usize> {
                vec![]
            }
            fn write(&self, out: &mut Vec<u8>) {
                Element::write(*self as $as, out);
            }
            fn is_even(&self) -> bool {
                true
            }
            fn write_all(rows: &[$t], out: &mut Vec<u8>) {
                out.extend_from_slice(bytemuck::cast_slice(rows));
            }
            fn are_even(_: &[$t]) -> bool {
                true
            }
        }
    )*};
}
// Indices are int64, as one of them is.
elements!(
    f32 as f32,
    f64 as f64,
    i8 as i8,
    i16 as i16,
    i32 as i32,
    i64 as i64,
    u8 as u8,
    u16 as u16,
    u32 as u32,
    u64 as u64,
    bool as bool,
    usize as i64
);

impl<T: Row> Row for [T] {
    const DTYPE: DType = T::DTYPE;
    fn shape(&self) -> Vec<usize> {
        std::iter::once(self.len()).chain(self.first().into_iter().flat_map(T::shape)).collect()
    }
    fn write(&self, out: &mut Vec<u8>) {
        T::write_all(self, out);
    }
    fn is_even(&self) -> bool {
        T::are_even(self)
    }
}

macro_rules! rows {
    ($([$($parameters:tt)*] $t:ty;)*) => {$(
        impl<$($parameters)*> Row for $t {
            const DTYPE: DType = T::DTYPE;
            fn shape(&self) -> Vec<usize> {
                Row::shape(&self[..])
            }
            fn write(&self, out: &mut Vec<u8>) {
                Row::write(&self[..], out);
            }
            fn is_even(&self) -> bool {
                Row::is_even(&self[..])
            }
        }
    )*};
}
rows! {
    [T: Row] Vec<T>;
    [T: Row, const N: usize] [T; N];
}

macro_rules! literal {
    ($($t:ty => $d:ident as $as:ty),*) => {$(
        impl Literal for $t {
            fn shape(&self) -> Vec<usize> {
                vec![]
            }
            fn dtype(&self) -> DType {
                DType::$d
            }
            fn write(&self, out: &mut Vec<u8>) {
                Element::write(*self as $as, out);
            }
        }
    )*};
}
literal!(f32 => F32 as f32, f64 => F32 as f32, i64 => I64 as i64, i32 => I64 as i64, usize => I64 as i64,
    u8 => U8 as u8, i8 => I8 as i8, u16 => U16 as u16, i16 => I16 as i16, u32 => U32 as u32, u64 => U64 as u64, bool => Bool as bool);

impl<T: Literal, const N: usize> Literal for [T; N] {
    fn shape(&self) -> Vec<usize> {
        let mut s = vec![N];
        match self.first() {
            Some(first) => s.extend(first.shape()),
            None => s.truncate(1),
        }
        s
    }
    fn dtype(&self) -> DType {
        self.first().map_or(DType::F32, |x| x.dtype())
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|x| x.write(out));
    }
    fn is_even(&self) -> bool {
        self.iter().all(|x| x.is_even() && x.shape() == self[0].shape())
    }
}

macro_rules! vectors {
    ($($t:ty),*) => {$(
        impl<T: Row> Literal for $t {
            fn shape(&self) -> Vec<usize> {
                Row::shape(&self[..])
            }
            fn dtype(&self) -> DType {
                T::DTYPE
            }
            fn write(&self, out: &mut Vec<u8>) {
                Row::write(&self[..], out);
            }
            fn is_even(&self) -> bool {
                Row::is_even(&self[..])
            }
        }
    )*};
}
vectors!(Vec<T>, &Vec<T>, &[T]);

/// A tensor of data on the device (`torch.tensor`): nested arrays, a vector of numbers or of rows, a slice or one number. Rows
/// that are not as long as one another are refused.
///
/// ```
/// use xlazy::prelude::*;
/// assert_eq!(tensor([[1, 2, 3], [4, 5, 6]]).shape(), [2, 3]);
/// assert_eq!(tensor(vec![1.0f64]).dtype(), F64);
/// assert_eq!(tensor(vec![vec![1.0f32, 2.0], vec![3.0, 4.0]]).shape(), [2, 2]);
/// ```
#[track_caller]
pub fn tensor(data: impl Literal) -> Tensor {
    if !data.is_even() {
        refuse("tensor", &[], "rows are not all as long as the first: pad them, or make a tensor of each");
    }
    let ty = Type::new(data.dtype(), Shape::new(&data.shape()));
    let mut bytes = Vec::with_capacity(ty.bytes());
    data.write(&mut bytes);
    Tensor::of_bytes(&bytes, ty)
}

#[track_caller]
fn filled(op: &'static Entry, size: Dims, dtype: DType) -> Tensor {
    let shape = size.shape(op.name).unwrap_or_else(|e| e.raise());
    trace(op, [], [(&shape).into(), dtype.into()])
}

impl Tensor {
    /// A tensor of a shape from its elements in row-major order; keeps their dtype.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// assert_eq!(x.select(0, 1).to_vec::<f32>(), [3.0, 4.0]);
    /// ```
    #[track_caller]
    pub fn from_slice<T: Element>(data: &[T], size: impl Into<Dims>) -> Tensor {
        let shape = size.into().shape("from_slice").unwrap_or_else(|e| e.raise());
        if shape.numel() != data.len() {
            refuse(
                "from_slice",
                &[],
                format!(
                    "{} cannot fill {shape}, which has {}",
                    xlazy_mime::count(data.len(), "element"),
                    shape.numel()
                ),
            );
        }
        Tensor::of_bytes(bytemuck::cast_slice(data), Type::new(T::DTYPE, shape))
    }

    /// As [`Tensor::from_slice`], from a vector.
    ///
    /// `Tensor::from_vec(vec![1, 2, 3, 4], [2, 2])` is `tensor([[1, 2], [3, 4]], i32)`.
    #[track_caller]
    pub fn from_vec<T: Element>(data: Vec<T>, size: impl Into<Dims>) -> Tensor {
        Tensor::from_slice(&data, size)
    }

    /// Zeros, float32 (`torch.zeros`).
    ///
    /// `Tensor::zeros([2, 2])` is `[[0., 0.], [0., 0.]]`.
    #[track_caller]
    pub fn zeros(size: impl Into<Dims>) -> Tensor {
        filled(&ZEROS, size.into(), DType::F32)
    }

    /// Ones, float32 (`torch.ones`).
    ///
    /// `Tensor::ones([2, 2])` is `[[1., 1.], [1., 1.]]`.
    #[track_caller]
    pub fn ones(size: impl Into<Dims>) -> Tensor {
        filled(&ONES, size.into(), DType::F32)
    }

    /// One number everywhere; its dtype is the number's (`torch.full`). The number is a parameter of the program.
    ///
    /// `Tensor::full([2], 7.0)` is `[7., 7.]`.
    #[track_caller]
    pub fn full(size: impl Into<Dims>, value: impl Into<Scalar>) -> Tensor {
        let value = value.into();
        let shape = size.into().shape("full").unwrap_or_else(|e| e.raise());
        trace(&FULL, [value.into()], [(&shape).into(), value.default_dtype().into()])
    }

    /// Zeros of this tensor's shape and dtype (`torch.zeros_like`).
    ///
    /// `tensor([1, 2]).zeros_like()` is `[0, 0]`.
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        like(self, |ty| filled(&ZEROS, ty.shape.into(), ty.dtype))
    }

    /// Ones of this tensor's shape and dtype (`torch.ones_like`).
    ///
    /// `tensor([1, 2]).ones_like()` is `[1, 1]`.
    #[track_caller]
    pub fn ones_like(&self) -> Tensor {
        like(self, |ty| filled(&ONES, ty.shape.into(), ty.dtype))
    }

    /// One number everywhere, in this tensor's shape and dtype (`torch.full_like`).
    ///
    /// `tensor([1, 2]).full_like(7)` is `[7, 7]`.
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Scalar>) -> Tensor {
        like(self, |ty| trace(&FULL, [value.into().into()], [(&ty.shape).into(), ty.dtype.into()]))
    }

    /// Numbers from `start` up to and without `end` in steps of `step`; int64 where all three are integers, float32
    /// otherwise (`torch.arange`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::arange(0, 6, 2).to_vec::<i64>(), [0, 2, 4]);
    /// ```
    #[track_caller]
    pub fn arange(start: impl Into<Scalar>, end: impl Into<Scalar>, step: impl Into<Scalar>) -> Tensor {
        let (start, end, step) = (start.into(), end.into(), step.into());
        let dtype = [start, end, step].into_iter().map(Scalar::default_dtype).fold(DType::I64, DType::promote);
        let n = (end.as_f64() - start.as_f64()) / step.as_f64();
        if !n.is_finite() || n < 0.0 {
            let message = format!("steps of {} do not lead from {} to {}", step.as_f64(), start.as_f64(), end.as_f64());
            refuse("arange", &[], message);
        }
        trace(&ARANGE, [start.into(), step.into()], [(n.ceil() as usize).into(), dtype.into()])
    }

    /// `steps` numbers from `start` to `end`, both included; float32 unless tensors say otherwise (`torch.linspace`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::linspace(0.0, 1.0, 3).to_vec::<f32>(), [0.0, 0.5, 1.0]);
    /// ```
    #[track_caller]
    pub fn linspace<'a>(start: impl Into<Arg<'a>>, end: impl Into<Arg<'a>>, steps: usize) -> Tensor {
        trace(&LINSPACE, [start.into(), end.into()], [steps.into()])
    }

    /// Numbers whose logarithms go from `start` to `end` in equal steps, `base` to the power of those; float32, computed in
    /// float64 (`torch.logspace`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::logspace(0.0, 2.0, 3, 10.0).to_vec::<f32>(), [1.0, 10.0, 100.0]);
    /// ```
    #[track_caller]
    pub fn logspace(start: f64, end: f64, steps: usize, base: f64) -> Tensor {
        let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
        // from both ends, as linspace
        let exponent = |i: usize| match i < steps / 2 || steps == 1 {
            true => start + step * i as f64,
            false => end - step * (steps - 1 - i) as f64,
        };
        let values: Vec<f64> = (0..steps).map(|i| base.powf(exponent(i))).collect();
        Tensor::from_slice(&values, [steps]).float()
    }

    /// The identity matrix of n rows, float32 (`torch.eye`).
    ///
    /// `Tensor::eye(2)` is `[[1., 0.], [0., 1.]]`.
    #[track_caller]
    pub fn eye(n: usize) -> Tensor {
        Tensor::eye_of(n, n)
    }

    /// Ones on the diagonal of a matrix of n rows and m columns, float32 (`torch.eye(n, m)`).
    ///
    /// `Tensor::eye_of(2, 3)` is `[[1., 0., 0.], [0., 1., 0.]]`.
    #[track_caller]
    pub fn eye_of(n: usize, m: usize) -> Tensor {
        filled(&EYE, [n, m].into(), DType::F32)
    }
}

impl Tensor {
    /// For each class index a vector of zeros with a one at the class, int64 (`torch.nn.functional.one_hot`). With
    /// `num_classes` -1 the largest index is read, which runs what the tensor needs.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1, 0]).one_hot(3).to_vec::<i64>(), [0, 1, 0, 1, 0, 0]);
    /// ```
    #[track_caller]
    pub fn one_hot(&self, num_classes: i64) -> Tensor {
        if self.dtype().category() != Category::Int {
            refuse("one_hot", &[self], "class indices must be integers");
        }
        let n = match num_classes {
            -1 if self.numel() == 0 => {
                refuse("one_hot", &[self], "without indices the number of classes must be given")
            }
            -1 => super::dynamic::concrete(&self.max(), std::panic::Location::caller()).as_i64() + 1,
            n if n > 0 => n,
            n => refuse("one_hot", &[self], format!("{n} is no number of classes")),
        };
        let _call = called("one_hot", [self]);
        known_classes(self, n).unsqueeze(-1).eq(Tensor::arange(0, n, 1)).long()
    }
}
