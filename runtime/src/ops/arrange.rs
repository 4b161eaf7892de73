//! Rearranging, made of other ops: rolling, moving and tiling dimensions, diagonals, joining in other directions.
use super::base::{of_one_dtype, rounded_once};
use super::index::{picked, put_at};
use super::place::rolled;
use super::{cat, stack};
use crate::tensor::{Step, Tensor, called, caller_line, refuse};
use std::borrow::Borrow;
use xlazy_core::ty::{Category, Dims, Shape};

// Row and column of the elements of a diagonal in a matrix of these sizes.
#[track_caller]
fn diagonal_places(rows: usize, columns: usize, offset: i64) -> [Tensor; 2] {
    let _line = caller_line();
    let (row, column) = ((-offset).max(0), offset.max(0));
    let n = (rows as i64 - row).min(columns as i64 - column).max(0);
    [row, column].map(|start| Tensor::folded_ints((start..start + n).collect()))
}

/// Refuses what is no vectors of one dtype.
#[track_caller]
fn vectors(op: &'static str, tensors: &[&Tensor], fits: impl Fn(usize) -> bool) {
    if tensors.is_empty() || !tensors.iter().all(|t| fits(t.dim())) {
        refuse(op, tensors, "needs vectors, one at least");
    }
    of_one_dtype(op, tensors);
}

/// Coordinates of a grid, one tensor for each of the vectors (`torch.meshgrid` with indexing "ij").
///
/// `meshgrid(&[&tensor([1, 2]), &tensor([3, 4])]).remove(1)` is `[[3, 4], [3, 4]]`.
#[track_caller]
pub fn meshgrid(tensors: &[&Tensor]) -> Vec<Tensor> {
    let _line = caller_line();
    vectors("meshgrid", tensors, |dims| dims <= 1);
    let shape: Vec<usize> = tensors.iter().map(|t| t.numel()).collect();
    let grid = |(d, t): (usize, &&Tensor)| {
        let mut wide = vec![1; shape.len()];
        wide[d] = shape[d];
        t.reshape(wide).expand(shape.as_slice())
    };
    tensors.iter().enumerate().map(grid).collect()
}

/// Tensors that differ in their first size as one, those that are shorter filled up at their ends with `padding_value`: `[B, L, …]`, or
/// `[L, B, …]` without `batch_first` (`torch.nn.utils.rnn.pad_sequence`). `L` is the longest one's size, so batches of other lengths are
/// other programs: `data` pads to one length, or to buckets.
///
/// ```
/// use xlazy::prelude::*;
/// let x = pad_sequence(&[tensor([1, 2, 3]), tensor([4])], true, 0.0);
/// assert_eq!(x.to_vec::<i64>(), [1, 2, 3, 4, 0, 0]);
/// ```
#[track_caller]
pub fn pad_sequence<T: Borrow<Tensor>>(sequences: &[T], batch_first: bool, padding_value: f64) -> Tensor {
    let all: Vec<&Tensor> = sequences.iter().map(Borrow::borrow).collect();
    let _call = called("pad_sequence", all.iter().copied());
    let Some(longest) = all.iter().map(|t| t.shape().first().copied()).max().flatten() else {
        refuse("pad_sequence", &all, "needs sequences, one at least, of one dimension or more");
    };
    let _line = caller_line();
    let padded = |t: &&Tensor| {
        let Some(length) = t.shape().first().copied() else {
            refuse("pad_sequence", &all, "a sequence has one dimension or more");
        };
        let mut amounts = vec![0; 2 * t.dim()];
        amounts[2 * t.dim() - 1] = (longest - length) as i64;
        if length == longest { (*t).clone() } else { t.pad(amounts, padding_value) }
    };
    let padded: Vec<Tensor> = all.iter().map(padded).collect();
    stack(&padded, if batch_first { 0 } else { 1 })
}

// At least 1, 2 or 3 dimensions, where numpy's rules put the new ones.
#[track_caller]
pub(super) fn grown(t: &Tensor, n: usize) -> Tensor {
    let s = t.shape();
    match (t.dim(), n) {
        (0, n) => t.reshape(vec![1; n]),
        (1, 2) => t.unsqueeze(0),
        (1, 3) => t.reshape([1, s[0], 1]),
        (2, 3) => t.unsqueeze(2),
        _ => t.clone(),
    }
}

#[track_caller]
fn stacked(tensors: &[&Tensor], n: usize, dim: impl Fn(&Tensor) -> i64) -> Tensor {
    let _line = caller_line();
    let all: Vec<Tensor> = tensors.iter().map(|t| grown(t, n)).collect();
    let Some(first) = all.first() else {
        refuse("stack", &[], "needs at least one tensor");
    };
    cat(&all.iter().collect::<Vec<_>>(), dim(first))
}

/// Joins tensors one above the other (`torch.vstack`).
///
/// `xlazy::vstack(&[&tensor([1, 2]), &tensor([3, 4])])` is `[[1, 2], [3, 4]]`.
#[track_caller]
pub fn vstack(tensors: &[&Tensor]) -> Tensor {
    let _line = caller_line();
    stacked(tensors, 2, |_| 0)
}

/// Joins tensors side by side (`torch.hstack`).
///
/// `xlazy::hstack(&[&tensor([1, 2]), &tensor([3, 4])])` is `[1, 2, 3, 4]`.
#[track_caller]
pub fn hstack(tensors: &[&Tensor]) -> Tensor {
    let _line = caller_line();
    stacked(tensors, 1, |t| i64::from(t.dim() > 1))
}

/// Joins tensors along the third dimension (`torch.dstack`).
///
/// `xlazy::dstack(&[&tensor([1, 2]), &tensor([3, 4])])` is `[[[1, 3], [2, 4]]]`.
#[track_caller]
pub fn dstack(tensors: &[&Tensor]) -> Tensor {
    let _line = caller_line();
    stacked(tensors, 3, |_| 2)
}

/// Joins vectors as columns (`torch.column_stack`).
///
/// `xlazy::column_stack(&[&tensor([1, 2]), &tensor([3, 4])])` is `[[1, 3], [2, 4]]`.
#[track_caller]
pub fn column_stack(tensors: &[&Tensor]) -> Tensor {
    let _line = caller_line();
    let columns: Vec<Tensor> =
        tensors.iter().map(|t| if t.dim() < 2 { t.reshape([-1, 1]) } else { (*t).clone() }).collect();
    cat(&columns.iter().collect::<Vec<_>>(), 1)
}

impl Tensor {
    /// Broadcast to another tensor's shape (`torch.Tensor.expand_as`).
    ///
    /// `tensor([[1], [2]]).expand_as(&Tensor::zeros([2, 3]))` is `[[1, 1, 1], [2, 2, 2]]`.
    #[track_caller]
    pub fn expand_as(&self, other: &Tensor) -> Tensor {
        let _call = called("expand_as", [self, other]);
        self.expand(other.shape())
    }

    /// Elements moved along `dims` by `shifts`, those pushed off the end coming in at the start (`torch.roll`). Without
    /// dims the flattened tensor is rolled.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1, 2, 3]).roll(1, 0).to_vec::<i64>(), [3, 1, 2]);
    /// ```
    #[track_caller]
    pub fn roll(&self, shifts: impl Into<Dims>, dims: impl Into<Dims>) -> Tensor {
        let _call = called("roll", [self]);
        let (shifts, dims) = (shifts.into().0, dims.into().0);
        if dims.is_empty() && shifts.len() == 1 {
            return self.flatten().roll(shifts, 0).reshape(self.shape());
        }
        if shifts.len() != dims.len() {
            refuse("roll", &[self], format!("{} shifts for {} dimensions", shifts.len(), dims.len()));
        }
        shifts.iter().zip(dims).fold(self.clone(), |x, (&shift, dim)| {
            if x.dim() == 0 || x.numel() == 0 {
                return x;
            }
            let d = x.dim_index("roll", dim);
            rolled(&x, shift.rem_euclid(x.shape()[d] as i64), d)
        })
    }

    /// Dimensions moved to other positions, the others keeping their order (`torch.movedim`).
    ///
    /// `Tensor::zeros([2, 3, 4]).movedim(0, -1).shape()` is `[3,4,2]`.
    #[track_caller]
    pub fn movedim(&self, source: impl Into<Dims>, destination: impl Into<Dims>) -> Tensor {
        let _call = called("movedim", [self]);
        let (from, to) = (self.each_dim("movedim", &source.into()), self.each_dim("movedim", &destination.into()));
        if from.len() != to.len() {
            refuse("movedim", &[self], "needs as many destinations as sources");
        }
        if let Some(d) =
            [&from, &to].into_iter().find_map(|l| (1..l.len()).find(|&i| l[..i].contains(&l[i])).map(|i| l[i]))
        {
            refuse("movedim", &[self], format!("dimension {d} is named twice"));
        }
        let mut rest = (0..self.dim()).filter(|d| !from.contains(d));
        let order: Vec<usize> = (0..self.dim())
            .map(|d| match to.iter().position(|&t| t == d) {
                Some(i) => from[i],
                None => rest.next().unwrap_or(d),
            })
            .collect();
        self.permute(order)
    }

    /// Repeated along each dimension, as often as `dims` says from the last one on (`torch.tile`).
    ///
    /// `tensor([1, 2]).tile([2, 2])` is `[[1, 2, 1, 2], [1, 2, 1, 2]]`.
    #[track_caller]
    pub fn tile(&self, dims: impl Into<Dims>) -> Tensor {
        let mut times = dims.into().0;
        while times.len() < self.dim() {
            times.insert(0, 1);
        }
        self.repeat(times)
    }

    /// Each slice along `dim` repeated `repeats` times (`torch.repeat_interleave`).
    ///
    /// `tensor([1, 2]).repeat_interleave(2, 0)` is `[1, 1, 2, 2]`.
    #[track_caller]
    pub fn repeat_interleave(&self, repeats: usize, dim: i64) -> Tensor {
        let d = self.dim_index("repeat_interleave", dim);
        let mut shape = self.shape();
        let mut wide = shape.clone();
        wide.insert(d + 1, repeats);
        shape[d] *= repeats;
        self.unsqueeze(d as i64 + 1).expand(&wide).reshape(&shape)
    }

    /// Parts of the sizes given along `dim` (`torch.split_with_sizes`, `torch.split` of a list).
    ///
    /// `tensor([1, 2, 3]).split_with_sizes(&[1, 2], 0)` is `[tensor([1]), tensor([2, 3])]`.
    #[track_caller]
    pub fn split_with_sizes(&self, sizes: &[usize], dim: i64) -> Vec<Tensor> {
        let _call = called("split_with_sizes", [self]);
        if sizes.iter().sum::<usize>() != self.size(dim) {
            refuse("split", &[self], format!("{sizes:?} do not add up to the {} of dimension {dim}", self.size(dim)));
        }
        let mut start = 0;
        let part = |&n: &usize| {
            start += n;
            self.narrow(dim, (start - n) as i64, n as i64)
        };
        sizes.iter().map(part).collect()
    }

    /// Parts of `dim` between the positions given (`torch.tensor_split`).
    ///
    /// `tensor([1, 2, 3]).tensor_split(&[1], 0)` is `[tensor([1]), tensor([2, 3])]`.
    #[track_caller]
    pub fn tensor_split(&self, indices: &[i64], dim: i64) -> Vec<Tensor> {
        let _call = called("tensor_split", [self]);
        let n = self.size(dim) as i64;
        let mut edges = vec![0];
        edges.extend(indices);
        edges.push(n);
        edges.windows(2).map(|w| self.slice(dim, w[0], w[1], 1)).collect()
    }

    /// One dimension as several; one size may be -1 (`torch.unflatten`).
    ///
    /// `Tensor::zeros([6, 5]).unflatten(0, [2, 3]).shape()` is `[2,3,5]`.
    #[track_caller]
    pub fn unflatten(&self, dim: i64, sizes: impl Into<Dims>) -> Tensor {
        let _call = called("unflatten", [self]);
        let d = self.dim_index("unflatten", dim);
        let mut sizes = sizes.into().0;
        let known: i64 = sizes.iter().filter(|&&s| s != -1).product();
        let n = self.size(dim) as i64;
        if let Some(free) = sizes.iter_mut().find(|s| **s == -1) {
            *free = if known > 0 { n / known } else { 0 };
        }
        if sizes.iter().product::<i64>() != n {
            refuse("unflatten", &[self], format!("{sizes:?} do not multiply to the {n} of dimension {dim}"));
        }
        let mut shape: Vec<i64> = self.shape().iter().map(|&s| s as i64).collect();
        shape.splice(d..d + 1, sizes);
        self.reshape(shape)
    }

    /// Several dimensions dropped where their size is 1 (`torch.squeeze(x, dims)`).
    ///
    /// `Tensor::zeros([1, 3, 1]).squeeze_dims([0, 2]).shape()` is `[3]`.
    #[track_caller]
    pub fn squeeze_dims(&self, dims: impl Into<Dims>) -> Tensor {
        let _call = called("squeeze_dims", [self]);
        let dims = dims.into();
        let dims = if dims.0.is_empty() { vec![] } else { self.dim_indices("squeeze_dims", &dims) };
        let shape = self.shape();
        let kept: Vec<usize> =
            (0..shape.len()).filter(|d| shape[*d] != 1 || !dims.contains(d)).map(|d| shape[d]).collect();
        self.reshape(kept)
    }

    /// The diagonal of each matrix in `dim1`, `dim2`, as a new last dimension (`torch.diagonal`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[1, 2], [3, 4]]).diagonal(0, 0, 1).to_vec::<i64>(), [1, 4]);
    /// ```
    #[track_caller]
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Tensor {
        let _call = called("diagonal", [self]);
        let (a, b) = (self.dim_index("diagonal", dim1), self.dim_index("diagonal", dim2));
        if a == b {
            refuse("diagonal", &[self], "needs two different dimensions");
        }
        let [row, column] = diagonal_places(self.size(dim1), self.size(dim2), offset);
        let (dims, places) = if a < b { ([a, b], [&row, &column]) } else { ([b, a], [&column, &row]) };
        let dims = dims.map(|d| d as i64).to_vec();
        picked(self, &places, [dims.into(), (self.dim() - 2).into()])
            .viewing(self, Step::Diagonal { offset, dims: [a, b] })
    }

    /// Matrices with the last dimension as a diagonal, zeros elsewhere, in the dimensions `dim1`, `dim2` of the result
    /// (`torch.diag_embed`).
    ///
    /// `tensor([1, 2]).diag_embed(0, -2, -1)` is `[[1, 0], [0, 2]]`.
    #[track_caller]
    pub fn diag_embed(&self, offset: i64, dim1: i64, dim2: i64) -> Tensor {
        let _call = called("diag_embed", [self]);
        if self.dim() == 0 {
            refuse("diag_embed", &[self], "needs at least 1 dimension");
        }
        let n = self.size(-1) + offset.unsigned_abs() as usize;
        let mut shape = self.shape();
        let last = shape.len() - 1;
        shape[last] = n;
        shape.push(n);
        let [row, column] = diagonal_places(n, n, offset);
        let dims = vec![last as i64, last as i64 + 1];
        let zeros = Tensor::zeros(&shape).to(self.dtype());
        let matrices = put_at(&zeros, self, &[&row, &column], [dims.into(), last.into()], false);
        matrices.movedim([-2, -1], [dim1, dim2])
    }

    /// A matrix's diagonal, or a matrix with a vector as its diagonal (`torch.diag`).
    ///
    /// `tensor([[1, 2], [3, 4]]).diag(0)` is `[1, 4]`.
    #[track_caller]
    pub fn diag(&self, diagonal: i64) -> Tensor {
        match self.dim() {
            1 => self.diag_embed(diagonal, 0, 1),
            2 => self.diagonal(diagonal, 0, 1).apart(),
            _ => refuse("diag", &[self], "needs a vector or a matrix"),
        }
    }

    /// The sum of a matrix's diagonal (`torch.trace`).
    ///
    /// `tensor([[1, 2], [3, 4]]).trace()` is `5`.
    #[track_caller]
    pub fn trace(&self) -> Tensor {
        let _call = called("trace", [self]);
        if self.dim() != 2 {
            refuse("trace", &[self], "needs a matrix");
        }
        self.diagonal(0, 0, 1).sum()
    }

    /// A quarter turn in the plane of two dimensions, `k` times (`torch.rot90`).
    ///
    /// `tensor([[1, 2], [3, 4]]).rot90(1, [0, 1])` is `[[2, 4], [1, 3]]`.
    #[track_caller]
    pub fn rot90(&self, k: i64, dims: [i64; 2]) -> Tensor {
        let _call = called("rot90", [self]);
        let [a, b] = dims.map(|d| self.dim_index("rot90", d) as i64);
        if a == b {
            refuse("rot90", &[self], format!("needs two different dimensions, not {} and {}", dims[0], dims[1]));
        }
        match k.rem_euclid(4) {
            1 => self.flip(b).transpose(a, b),
            2 => self.flip([a, b]),
            3 => self.flip(a).transpose(a, b),
            _ => self.copy(),
        }
    }

    /// Windows of `size` elements every `step` along `dim`, as a new last dimension (`torch.Tensor.unfold`, with
    /// `.copy()` `torch.unfold_copy`).
    ///
    /// `tensor([1, 2, 3, 4]).unfold(0, 2, 1)` is `[[1, 2], [2, 3], [3, 4]]`.
    #[track_caller]
    pub fn unfold(&self, dim: i64, size: usize, step: usize) -> Tensor {
        let _call = called("unfold", [self]);
        let d = self.dim_index("unfold", dim);
        let x = if self.dim() == 0 { self.reshape([1]) } else { self.clone() };
        let n = x.size(d as i64);
        if size > n || step == 0 {
            refuse("unfold", &[self], format!("windows of {size} every {step} do not fit {n} elements"));
        }
        let count = (n - size) / step + 1;
        let places = (0..count * size).map(|p| (p / size * step + p % size) as i64).collect();
        let windows = x.index_select(d as i64, &Tensor::folded_ints(places));
        let windows = windows.unflatten(d as i64, [count, size]).movedim(d as i64 + 1, -1);
        if self.dim() == 0 {
            return windows.squeeze_dim(0).apart();
        }
        windows.apart().viewing(self, Step::Unfold { dim: d, size, step })
    }

    /// The Kronecker product (`torch.kron`).
    ///
    /// `tensor([1, 2]).kron(&tensor([1, 10]))` is `[1, 10, 2, 20]`.
    #[track_caller]
    pub fn kron(&self, other: &Tensor) -> Tensor {
        let _call = called("kron", [self, other]);
        let rank = self.dim().max(other.dim());
        let full = |t: &Tensor| {
            let mut s = vec![1; rank - t.dim()];
            s.extend(t.shape().iter());
            s
        };
        let (a, b) = (full(self), full(other));
        let apart =
            |s: &[usize], first: bool| s.iter().flat_map(|&n| if first { [n, 1] } else { [1, n] }).collect::<Vec<_>>();
        let product = self.reshape(apart(&a, true)) * other.reshape(apart(&b, false));
        product.reshape(a.iter().zip(&b).map(|(x, y)| x * y).collect::<Vec<_>>())
    }

    /// Differences of neighbours along `dim`, `n` times over (`torch.diff`).
    ///
    /// `tensor([1, 4, 9]).diff(1, -1)` is `[3, 5]`.
    #[track_caller]
    pub fn diff(&self, n: usize, dim: i64) -> Tensor {
        let _call = called("diff", [self]);
        if self.dim() == 0 {
            refuse("diff", &[self], "needs at least 1 dimension");
        }
        if n > 1 && self.dtype().is_half() {
            return rounded_once([self], |[x]| x.diff(n, dim));
        }
        // Beyond its size nothing is left.
        (0..n.min(self.size(dim))).fold(self.clone(), |x, _| {
            let size = x.size(dim) as i64;
            if size == 0 {
                return x;
            }
            let (a, b) = (x.slice(dim, 1, size, 1), x.slice(dim, 0, size - 1, 1));
            if x.dtype() == crate::DType::Bool { a.logical_xor(&b) } else { a - b }
        })
    }
}

/// Every combination of the elements of some vectors, one row each (`torch.cartesian_prod`).
///
/// `xlazy::cartesian_prod(&[&tensor([1, 2]), &tensor([3, 4])])` is `[[1, 3], [1, 4], [2, 3], [2, 4]]`.
#[track_caller]
pub fn cartesian_prod(tensors: &[&Tensor]) -> Tensor {
    let _line = caller_line();
    vectors("cartesian_prod", tensors, |dims| dims == 1);
    match tensors {
        [one] => (*one).clone(),
        _ => {
            let grid: Vec<Tensor> = meshgrid(tensors).iter().map(Tensor::flatten).collect();
            stack(&grid.iter().collect::<Vec<_>>(), 1)
        }
    }
}

/// Tensors in the shape that they broadcast to together (`torch.broadcast_tensors`).
///
/// `xlazy::broadcast_tensors(&[&tensor([1, 2]), &tensor([[3], [4]])]).remove(0)` is `[[1, 2], [1, 2]]`.
#[track_caller]
pub fn broadcast_tensors(tensors: &[&Tensor]) -> Vec<Tensor> {
    let _call = called("broadcast_tensors", tensors.iter().copied());
    let all = tensors.iter().try_fold(Shape::new(&[]), |shape, t| shape.broadcast(&t.shape()));
    let Some(shape) = all else {
        refuse("broadcast_tensors", tensors, "the shapes do not broadcast");
    };
    tensors.iter().map(|t| t.expand(&shape)).collect()
}

impl Tensor {
    /// Every choice of `r` elements of a vector, in their order, one row each; with replacement an element may be chosen again
    /// (`torch.combinations`).
    ///
    /// `tensor([1, 2, 3]).combinations(2, false)` is `[[1, 2], [1, 3], [2, 3]]`.
    #[track_caller]
    pub fn combinations(&self, r: usize, with_replacement: bool) -> Tensor {
        let _call = called("combinations", [self]);
        if self.dim() != 1 {
            refuse("combinations", &[self], "needs a vector");
        }
        if r == 0 {
            return self.narrow(0, 0, 0);
        }
        let n = self.numel();
        let mut rows: Vec<Vec<i64>> = vec![vec![]];
        for _ in 0..r {
            let from = |row: &Vec<i64>| row.last().map_or(0, |&i| if with_replacement { i } else { i + 1 });
            rows = rows.iter().flat_map(|row| (from(row)..n as i64).map(|i| [row.as_slice(), &[i]].concat())).collect();
        }
        let places = rows.concat();
        self.index_select(0, &Tensor::from_slice(&places, [places.len()])).reshape([rows.len(), r])
    }

    /// Flat positions as one tensor of positions for each dimension of `shape` (`torch.unravel_index`).
    ///
    /// `tensor([1, 5]).unravel_index([2, 3])` is `[tensor([0, 1]), tensor([1, 2])]`.
    #[track_caller]
    pub fn unravel_index(&self, shape: impl Into<Dims>) -> Vec<Tensor> {
        let _call = called("unravel_index", [self]);
        if self.dtype().category() != Category::Int {
            refuse("unravel_index", &[self], format!("positions must be integers, not {}", self.dtype()));
        }
        let shape = shape.into().shape("unravel_index").unwrap_or_else(|e| e.raise());
        let strides = shape.strides();
        (0..shape.len()).map(|d| self.floor_divide(strides[d] as i64).remainder(shape[d] as i64)).collect()
    }
}
