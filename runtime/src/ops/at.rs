//! Indexing as Python's brackets do it: `x.i((1, .., 0..3))`, with numbers, ranges, whole dimensions and index tensors.
use super::index::{picked, put_at};
use crate::tensor::{Arg, Tensor, called, caller_line, refuse};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};
use xlazy_core::ir::Attr;
use xlazy_core::ty::{Category, DType};

/// What stands for one dimension in [`Tensor::i`].
#[derive(Clone)]
pub enum At<'a> {
    /// One element; the dimension is dropped. Negative numbers count from the end.
    Int(i64),
    /// `start:end:step`; what is left out reaches to the edge.
    Slice { start: Option<i64>, end: Option<i64>, step: i64 },
    /// As many whole dimensions as are left (`...`).
    Ellipsis,
    /// A new dimension of size 1 (`None`).
    NewAxis,
    /// The elements that a tensor of integers names, or those where a tensor of bools is true.
    Tensor(&'a Tensor),
    /// As [`At::Tensor`], for what was made in the brackets: `x.i(x.gt(0))`.
    Owned(Tensor),
}

impl<'a> From<&'a Tensor> for At<'a> {
    fn from(t: &'a Tensor) -> At<'a> {
        At::Tensor(t)
    }
}

impl From<Tensor> for At<'_> {
    fn from(t: Tensor) -> Self {
        At::Owned(t)
    }
}

impl At<'_> {
    fn tensor(&self) -> Option<&Tensor> {
        match self {
            At::Tensor(t) => Some(t),
            At::Owned(t) => Some(t),
            _ => None,
        }
    }
}

/// `None` is a new axis, as in torch.
impl From<Option<()>> for At<'_> {
    fn from(at: Option<()>) -> Self {
        match at {
            None => At::NewAxis,
            Some(()) => At::Slice { start: None, end: None, step: 1 },
        }
    }
}

impl From<RangeFull> for At<'_> {
    fn from(_: RangeFull) -> Self {
        At::Slice { start: None, end: None, step: 1 }
    }
}

macro_rules! at_from {
    ($($t:ty),*) => {$(
        impl From<$t> for At<'_> {
            fn from(i: $t) -> Self {
                At::Int(i as i64)
            }
        }
        impl From<&$t> for At<'_> {
            fn from(i: &$t) -> Self {
                (*i).into()
            }
        }
        impl From<Range<$t>> for At<'_> {
            fn from(r: Range<$t>) -> Self {
                At::Slice { start: Some(r.start as i64), end: Some(r.end as i64), step: 1 }
            }
        }
        impl From<RangeInclusive<$t>> for At<'_> {
            fn from(r: RangeInclusive<$t>) -> Self {
                // up to and with -1 is up to the edge
                let end = Some(*r.end() as i64 + 1).filter(|&e| e != 0);
                At::Slice { start: Some(*r.start() as i64), end, step: 1 }
            }
        }
        impl From<RangeFrom<$t>> for At<'_> {
            fn from(r: RangeFrom<$t>) -> Self {
                At::Slice { start: Some(r.start as i64), end: None, step: 1 }
            }
        }
        impl From<RangeTo<$t>> for At<'_> {
            fn from(r: RangeTo<$t>) -> Self {
                At::Slice { start: None, end: Some(r.end as i64), step: 1 }
            }
        }
    )*};
}
at_from!(i32, i64, usize);

/// What [`Tensor::i`] takes: one [`At`], or a tuple or vector of them.
pub trait IndexArg<'a> {
    #[doc(hidden)]
    fn list(self) -> Vec<At<'a>>;
}

impl<'a, T: Into<At<'a>>> IndexArg<'a> for T {
    fn list(self) -> Vec<At<'a>> {
        vec![self.into()]
    }
}

impl<'a> IndexArg<'a> for Vec<At<'a>> {
    fn list(self) -> Vec<At<'a>> {
        self
    }
}

macro_rules! tuples {
    ($($($t:ident)+;)*) => {$(
        impl<'a, $($t: Into<At<'a>>),+> IndexArg<'a> for ($($t,)+) {
            #[allow(non_snake_case)]
            fn list(self) -> Vec<At<'a>> {
                let ($($t,)+) = self;
                vec![$($t.into()),+]
            }
        }
    )*};
}
tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

/// An index worked out up to its tensors: the sliced tensor, the index tensors and the `dims` and `at` of the op.
struct Indexed {
    base: Tensor,
    tensors: Vec<Tensor>,
    attrs: Option<[Attr; 2]>,
}

#[track_caller]
fn index(x: &Tensor, list: Vec<At>) -> Indexed {
    let _line = caller_line();
    let takes = |a: &At| match a {
        At::Ellipsis | At::NewAxis => 0,
        _ => a.tensor().filter(|t| t.dtype() == DType::Bool).map_or(1, Tensor::dim),
    };
    let named: usize = list.iter().map(takes).sum();
    if named > x.dim() {
        refuse("i", &[x], format!("{named} positions for {} dimensions", x.dim()));
    }
    if list.iter().filter(|a| matches!(a, At::Ellipsis)).count() > 1 {
        refuse("i", &[x], "only one Ellipsis can stand in an index");
    }
    let mut base = x.clone();
    let mut dim = 0i64;
    let mut tensors: Vec<(i64, Tensor)> = Vec::new();
    for a in &list {
        match *a {
            At::Int(i) => base = base.select(dim, i),
            At::Slice { start, end, step } => {
                base = base.slice(dim, start.unwrap_or(0), end.unwrap_or(i64::MAX), step);
                dim += 1;
            }
            At::Ellipsis => dim += (x.dim() - named) as i64,
            At::NewAxis => {
                base = base.unsqueeze(dim);
                dim += 1;
            }
            At::Tensor(t) => dim = by_tensor(&mut base, t, dim, &mut tensors),
            At::Owned(ref t) => dim = by_tensor(&mut base, t, dim, &mut tensors),
        }
    }
    let attrs = tensors.first().map(|(first, _)| {
        // Index tensors side by side leave their result in place; otherwise it goes to the front.
        let together = tensors.windows(2).all(|w| w[1].0 == w[0].0 + 1);
        let dims: Vec<i64> = tensors.iter().map(|(d, _)| *d).collect();
        [dims.into(), (if together { *first } else { 0 }).into()]
    });
    Indexed { base, tensors: tensors.into_iter().map(|(_, t)| t).collect(), attrs }
}

/// One index tensor at dimension `dim` of what is left; gives the dimension behind it.
#[track_caller]
fn by_tensor(base: &mut Tensor, t: &Tensor, mut dim: i64, tensors: &mut Vec<(i64, Tensor)>) -> i64 {
    if t.dtype() == DType::Bool {
        let fits = t.shape().iter().enumerate().all(|(i, &n)| base.size(dim + i as i64) == n);
        if !fits {
            refuse("i", &[base, t], format!("the mask does not have the sizes of dimensions {dim} on"));
        }
        if t.dim() == 0 {
            // It is about an axis of its own, of one element.
            *base = base.unsqueeze(dim);
        }
        for places in t.nonzero_tuple() {
            tensors.push((dim, places));
            dim += 1;
        }
        return dim;
    }
    if t.dtype().category() != Category::Int {
        refuse("i", &[base, t], "an index tensor must hold integers or bools");
    }
    tensors.push((dim, t.clone()));
    dim + 1
}

impl Tensor {
    /// Indexing, Python's brackets: a number drops its dimension, a range keeps part of it, `..` keeps all of it, a tensor
    /// of integers picks positions, a tensor of bools the places where it is true (its values are read). Dimensions not
    /// named stay whole; negative positions count from the end, and `None` is a new dimension. [`At`] has steps and
    /// `Ellipsis` (`torch.Tensor.__getitem__`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::arange(0, 12, 1).reshape([3, 4]);
    /// assert_eq!(x.i((1, ..)).to_vec::<i64>(), [4, 5, 6, 7]);
    /// assert_eq!(x.i((.., 1..3)).shape(), [3, 2]);
    /// assert_eq!(x.i((None, 1)).shape(), [1, 4]);
    /// assert_eq!(x.i((-1, -1)).item_i64(), 11);
    /// assert_eq!(x.i(&tensor([2, 0])).shape(), [2, 4]);
    /// assert_eq!(x.i(x.gt(9)).to_vec::<i64>(), [10, 11]);
    /// ```
    #[track_caller]
    pub fn i<'a>(&self, at: impl IndexArg<'a>) -> Tensor {
        let Indexed { base, tensors, attrs } = index(self, at.list());
        match attrs {
            None => base,
            Some(attrs) => picked(&base, &tensors.iter().collect::<Vec<_>>(), attrs),
        }
    }

    /// Writes `value`, a number or a tensor that broadcasts, to the part of this tensor that `at` names (`x[at] = value`).
    /// All clones see it, and so do views of this tensor. Where a mask is true, one value costs no read: it is
    /// [`Tensor::masked_fill_`].
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([2, 2]);
    /// x.set((0, ..), 1.0);
    /// x.set(x.eq(0.0), -1.0);
    /// assert_eq!(x.to_vec::<f32>(), [1.0, 1.0, -1.0, -1.0]);
    /// ```
    #[track_caller]
    pub fn set<'a>(&self, at: impl IndexArg<'a>, value: impl Into<Arg<'a>>) -> Tensor {
        let at = at.list();
        if !at.iter().any(|a| a.tensor().is_some()) {
            // The part is a view.
            self.i(at).copy_(value);
            return self.clone();
        }
        let value = value.into();
        // A mask says itself where one value goes: how many elements that are need not be known.
        if let Some(mask) = self.mask_of(&at)
            && let Some(value) = one(&value)
        {
            self.assign("set", self.masked_fill(&mask, value));
            return self.clone();
        }
        // Where each element of the part lies in the flattened tensor; whatever the index, one scatter writes it.
        let places = Tensor::arange(0, self.numel(), 1).reshape(self.shape()).i(at);
        let value = match value {
            Arg::Tensor(t) => t.clone(),
            Arg::Owned(t) => t,
            Arg::Scalar(s) => Tensor::full((), s),
        };
        let new = put_at(&self.flatten(), &value, &[&places], [vec![0i64].into(), 0usize.into()], false);
        self.assign("set", new.reshape(self.shape()));
        self.clone()
    }

    /// The mask that is all of an index, as it broadcasts to this tensor: it may be one of its first dimensions.
    fn mask_of(&self, at: &[At]) -> Option<Tensor> {
        let [of] = at else { return None };
        let mask = of.tensor().filter(|t| t.dtype() == DType::Bool)?;
        let (shape, whole) = (mask.shape(), self.shape());
        let rest = whole.strip_prefix(&shape[..])?;
        Some(if rest.is_empty() { mask.clone() } else { mask.reshape([&shape[..], &vec![1; rest.len()]].concat()) })
    }

    /// [`Tensor::set`], with the underscore that other methods have which write.
    #[track_caller]
    pub fn set_<'a>(&self, at: impl IndexArg<'a>, value: impl Into<Arg<'a>>) -> Tensor {
        self.set(at, value)
    }

    /// This tensor with `values` written, or added where `accumulate`, at the positions that the index tensors name, one
    /// for each of the first dimensions; `None` keeps a dimension whole (`torch.index_put`).
    ///
    /// `tensor([1, 2, 3]).index_put(&[Some(&tensor([0, 2]))], 9, false)` is `[9, 2, 9]`.
    #[track_caller]
    pub fn index_put<'a>(&self, indices: &[Option<&Tensor>], values: impl Into<Arg<'a>>, accumulate: bool) -> Tensor {
        let _call = called("index_put", [self]);
        let list = indices.iter().map(|t| t.map_or(At::from(..), At::Tensor)).collect();
        let Indexed { base, tensors, attrs } = index(self, list);
        let Some(attrs) = attrs else {
            refuse("index_put", &[self], "needs at least one index tensor");
        };
        let values = match values.into() {
            Arg::Tensor(t) => t.clone(),
            Arg::Owned(t) => t,
            Arg::Scalar(s) => Tensor::full((), s).to(self.dtype()),
        };
        self.holds("index_put", &values);
        put_at(&base, &values, &tensors.iter().collect::<Vec<_>>(), attrs, accumulate)
    }

    /// As [`Tensor::index_put`], on this tensor's value (`torch.Tensor.index_put_`).
    ///
    /// `tensor([1, 2, 3]).index_put_(&[Some(&tensor([0, 2]))], 9, false)` is `[9, 2, 9]`.
    #[track_caller]
    pub fn index_put_<'a>(&self, indices: &[Option<&Tensor>], values: impl Into<Arg<'a>>, accumulate: bool) -> Tensor {
        let value = self.index_put(indices, values, accumulate);
        self.assign("index_put_", value);
        self.clone()
    }

    /// The elements that the index tensors name, one for each of the first dimensions; `None` keeps a dimension whole
    /// (`x[a, :, b]`). [`Tensor::i`] is the same, easier to write.
    ///
    /// `tensor([5, 6, 7]).index(&[Some(&tensor([2, 0]))])` is `[7, 5]`.
    #[track_caller]
    pub fn index(&self, indices: &[Option<&Tensor>]) -> Tensor {
        let _call = called("index", [self]);
        let list: Vec<At> = indices.iter().map(|t| t.map_or(At::from(..), At::Tensor)).collect();
        self.i(list)
    }
}

/// A value that is a single one.
fn one<'a>(value: &'a Arg) -> Option<Arg<'a>> {
    match value.tensor() {
        Some(t) => (t.numel() == 1).then(|| Arg::Owned(t.reshape(()))),
        None => Some(value.again()),
    }
}
