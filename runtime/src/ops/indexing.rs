//! torch's methods that read and write elements by position.
use super::bounds::within;
use super::index::{
    ADD, EMBEDDING, GATHER, INDEX_ADD, INDEX_COPY, INDEX_FILL, INDEX_SELECT, MAX, MIN, MUL, PUT, REPLACE, SCATTER,
    TAKE, one, pick, put,
};
use crate::tensor::{Arg, Entry, Tensor, called, caller_line, refuse, trace};
use xlazy_core::ty::{Category, Scalar};

/// How [`Tensor::scatter_reduce`] combines what falls on one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterReduce {
    Sum,
    Prod,
    Mean,
    Amax,
    Amin,
}

impl Tensor {
    // Scalars as vectors of one element, as torch treats them when indexing.
    #[track_caller]
    fn at_least_1d(&self) -> Tensor {
        if self.dim() == 0 { self.reshape([1]) } else { self.clone() }
    }

    /// Elements along `dim` by an index of the same number of dimensions: `out[i][j] = self[index[i][j]][j]` for
    /// `dim = 0` (`torch.gather`). StableHLO: gather.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.gather(1, &tensor([[1], [0]])).to_vec::<f32>(), [2.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn gather(&self, dim: i64, index: &Tensor) -> Tensor {
        let d = self.dim_index("gather", dim);
        within("gather", self, d, index, false);
        let (x, i) = (self.at_least_1d(), index.at_least_1d());
        trace(&GATHER, [(&x).into(), (&i).into()], [d.into()]).reshape(index.shape())
    }

    #[track_caller]
    fn scattered<'a>(&self, op: &'static str, dim: i64, index: &Tensor, src: impl Into<Arg<'a>>, how: i64) -> Tensor {
        let d = self.dim_index(op, dim);
        within(op, self, d, index, false);
        let (x, i) = (self.at_least_1d(), index.at_least_1d());
        let src = match src.into() {
            Arg::Scalar(s) => self.element(op, s.into()),
            src => src,
        };
        if let Some(t) = src.tensor() {
            self.holds(op, t);
        }
        trace(&SCATTER, [(&x).into(), (&i).into(), src], [d.into(), how.into()]).reshape(self.shape())
    }

    /// Refuses elements to write that this tensor's dtype would cut or round; torch wants them to be of one dtype.
    #[track_caller]
    pub(super) fn holds(&self, op: &'static str, source: &Tensor) {
        let (mine, theirs) = (self.dtype(), source.dtype());
        if mine != theirs && mine.promote(theirs) != mine {
            let why = format!("{theirs} cannot be written to a tensor of {mine}: convert it with `.to({mine:?})`");
            refuse(op, &[self, source], why);
        }
    }

    /// This tensor with the elements that `index` names along `dim` replaced by `src`, a tensor or a number
    /// (`torch.scatter`). Which one stays where positions repeat is not defined. StableHLO: scatter.
    ///
    /// `tensor([0, 0, 0]).scatter(0, &tensor([2, 0]), &tensor([8, 9]))` is `[9, 0, 8]`.
    #[track_caller]
    pub fn scatter<'a>(&self, dim: i64, index: &Tensor, src: impl Into<Arg<'a>>) -> Tensor {
        self.scattered("scatter", dim, index, src, REPLACE)
    }

    /// `src` added to the elements that `index` names along `dim` (`torch.scatter_add`). StableHLO: scatter.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([3]).scatter_add(0, &tensor([0, 2, 2]), &tensor([1.0, 2.0, 3.0]));
    /// assert_eq!(x.to_vec::<f32>(), [1.0, 0.0, 5.0]);
    /// ```
    #[track_caller]
    pub fn scatter_add<'a>(&self, dim: i64, index: &Tensor, src: impl Into<Arg<'a>>) -> Tensor {
        self.scattered("scatter_add", dim, index, src, ADD)
    }

    /// `src` combined with the elements that `index` names along `dim` (`torch.scatter_reduce`); without `include_self`
    /// the elements that are hit start from nothing.
    ///
    /// `tensor([1, 1]).scatter_reduce(0, &tensor([0, 0]), &tensor([2, 3]), ScatterReduce::Sum, true)` is `[6, 1]`.
    #[track_caller]
    pub fn scatter_reduce(
        &self,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        reduce: ScatterReduce,
        include_self: bool,
    ) -> Tensor {
        let _call = called("scatter_reduce", [self, index, src]);
        let extreme = matches!(reduce, ScatterReduce::Amax | ScatterReduce::Amin);
        if extreme && !include_self && (self.requires_grad() || src.requires_grad()) {
            let found = self.detach().scatter_reduce(dim, index, &src.detach(), reduce, false);
            return self.shared_by_extremes(found, dim, index, src);
        }
        let start = match include_self {
            true => self.clone(),
            false => {
                let (largest, whole) = (reduce == ScatterReduce::Amin, self.dtype().category() <= Category::Int);
                let nothing = match reduce {
                    ScatterReduce::Prod => 1.0.into(),
                    ScatterReduce::Amax | ScatterReduce::Amin if whole => Scalar::Int(self.dtype().end(largest)),
                    ScatterReduce::Amax => f64::NEG_INFINITY.into(),
                    ScatterReduce::Amin => f64::INFINITY.into(),
                    _ => 0.0.into(),
                };
                self.scatter(dim, index, nothing)
            }
        };
        match reduce {
            ScatterReduce::Sum => start.scattered("scatter_reduce", dim, index, src, ADD),
            ScatterReduce::Prod => start.scattered("scatter_reduce", dim, index, src, MUL),
            ScatterReduce::Amax => start.scattered("scatter_reduce", dim, index, src, MAX),
            ScatterReduce::Amin => start.scattered("scatter_reduce", dim, index, src, MIN),
            ScatterReduce::Mean => {
                let sum = start.scattered("scatter_reduce", dim, index, src, ADD);
                let base = if include_self { self.ones_like() } else { self.zeros_like() };
                let count = base.scattered("scatter_reduce", dim, index, 1, ADD).clamp_min(1);
                if self.dtype().is_float() { sum / count } else { sum.floor_divide(&count) }
            }
        }
    }

    /// The largest or smallest of `src` at each place, with torch's gradient: equals share it, and one of this tensor's that is
    /// equal counts among them, though it is not one of those looked at and is given nothing.
    #[track_caller]
    fn shared_by_extremes(&self, found: Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Tensor {
        let _line = caller_line();
        let dtype = self.dtype();
        let part = match src.shape() == index.shape() {
            true => src.clone(),
            false => (0..index.dim() as i64).fold(src.clone(), |s, d| s.narrow(d, 0, index.size(d) as i64)),
        };
        let equal = part.detach().eq(found.gather(dim, index)).to(dtype);
        let count = self.detach().eq(&found).to(dtype).scatter_add(dim, index, &equal);
        let share = equal / count.gather(dim, index);
        let hit = self.zeros_like().bool().scatter(dim, index, true);
        let slopes = self.masked_fill(&hit, 0.0).scatter_add(dim, index, part * share);
        found.apart().with_history_of(&slopes)
    }

    /// The slices along `dim` that `index` names (`torch.index_select`). StableHLO: gather.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[1, 2], [3, 4], [5, 6]]);
    /// assert_eq!(x.index_select(0, &tensor([2, 0])).to_vec::<i64>(), [5, 6, 1, 2]);
    /// ```
    #[track_caller]
    pub fn index_select(&self, dim: i64, index: &Tensor) -> Tensor {
        let d = self.dim_index("index_select", dim);
        if index.dim() > 1 {
            refuse("index_select", &[self, index], "the index must be a vector; use `embedding` or `i` for more");
        }
        within("index_select", self, d, index, false);
        if self.dim() == 0 {
            return self.copy();
        }
        pick(&INDEX_SELECT, self, &[&index.at_least_1d()], one(d))
    }

    /// The elements of the flattened tensor at `index`, in the index's shape (`torch.take`).
    ///
    /// `tensor([[5, 6], [7, 8]]).take(&tensor([3, 0]))` is `[8, 5]`.
    #[track_caller]
    pub fn take(&self, index: &Tensor) -> Tensor {
        pick(&TAKE, &self.flatten(), &[index], one(0))
    }

    /// `values` written, or added where `accumulate`, at positions of the flattened tensor (`torch.Tensor.put`).
    ///
    /// `tensor([5, 6]).put(&tensor([0]), &tensor([9]), false)` is `[9, 6]`.
    #[track_caller]
    pub fn put(&self, index: &Tensor, values: &Tensor, accumulate: bool) -> Tensor {
        let _call = called("put", [self, index, values]);
        self.holds("put", values);
        let values = values.reshape(index.shape());
        let how = if accumulate { ADD } else { REPLACE };
        put(&PUT, &self.flatten(), &values, &[index], one(0), how).reshape(self.shape())
    }

    /// `source` added to the slices along `dim` that `index` names (`torch.index_add`).
    ///
    /// `tensor([1, 1]).index_add(0, &tensor([0, 0]), &tensor([2, 3]))` is `[6, 1]`.
    #[track_caller]
    pub fn index_add(&self, dim: i64, index: &Tensor, source: &Tensor) -> Tensor {
        self.indexed_put(&INDEX_ADD, dim, index, source, ADD)
    }

    /// `source` in place of the slices along `dim` that `index` names (`torch.index_copy`).
    ///
    /// `tensor([1, 1]).index_copy(0, &tensor([1]), &tensor([9]))` is `[1, 9]`.
    #[track_caller]
    pub fn index_copy(&self, dim: i64, index: &Tensor, source: &Tensor) -> Tensor {
        let _call = called("index_copy", [self, source]);
        self.indexed_put(&INDEX_COPY, dim, index, source, REPLACE)
    }

    /// `value`, a number or a tensor of one element, in the slices along `dim` that `index` names (`torch.index_fill`).
    ///
    /// `tensor([1, 1]).index_fill(0, &tensor([1]), 9)` is `[1, 9]`.
    #[track_caller]
    pub fn index_fill<'a>(&self, dim: i64, index: &Tensor, value: impl Into<Arg<'a>>) -> Tensor {
        let _call = called("index_fill", [self, index]);
        let value = match value.into() {
            Arg::Tensor(t) => t.reshape(()),
            Arg::Owned(t) => t.reshape(()),
            s @ Arg::Scalar(_) => match self.element("index_fill", s) {
                Arg::Scalar(s) => Tensor::full((), s),
                _ => unreachable!("a number stays one"),
            },
        };
        let d = self.dim_index("index_fill", dim);
        // by a mask, so that the value's gradient counts a slice once, however often it is named
        let n = self.shape().get(d).copied().unwrap_or(1);
        let named = Tensor::zeros([n]).bool();
        let named = put(&INDEX_FILL, &named, &Tensor::ones(()).bool(), &[&index.at_least_1d()], one(0), REPLACE);
        let mut shape = vec![1i64; self.dim()];
        if let Some(along) = shape.get_mut(d) {
            *along = n as i64;
        }
        value.to(self.dtype()).where_(&named.reshape(shape), self)
    }

    #[track_caller]
    fn indexed_put(&self, op: &'static Entry, dim: i64, index: &Tensor, source: &Tensor, how: i64) -> Tensor {
        let d = self.dim_index(op.name, dim);
        within(op.name, self, d, index, false);
        let (x, i) = (self.at_least_1d(), index.at_least_1d());
        let mut shape = x.shape();
        shape[d] = i.numel();
        if index.dim() > 1 {
            refuse(op.name, &[self, index, source], "the index must be a vector");
        }
        if source.shape() != shape && (source.dim() > 0 || shape.numel() != 1) {
            refuse(op.name, &[self, index, source], format!("the source must have the shape {shape}"));
        }
        self.holds(op.name, source);
        put(op, &x, &source.reshape(&shape), &[&i], one(d), how).reshape(self.shape())
    }

    /// The rows of `weight` that this tensor of indices names (`torch.nn.functional.embedding`). StableHLO: gather; the
    /// gradient is a scatter.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let words = tensor([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(tensor([1, 0, 1]).embedding(&words).shape(), [3, 2]);
    /// ```
    #[track_caller]
    pub fn embedding(&self, weight: &Tensor) -> Tensor {
        if weight.dim() != 2 {
            refuse("embedding", &[self, weight], "the weight must be a matrix with one row per index");
        }
        within("embedding", weight, 0, self, false);
        pick(&EMBEDDING, weight, &[self], one(0))
    }
}
