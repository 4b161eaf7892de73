//! Functions of matrices, made of products and decompositions: norms, powers, exponentials, least squares.
use super::base::rounded_once;
use super::triangular::{matrices, square};
use super::{cat, stack};
use crate::tensor::{Tensor, called, caller_line, refuse};
use xlazy_core::ty::{Category, Dims, Scalar};

/// Which norm of matrices, or of vectors where a number is meant so.
///
/// ```
/// use xlazy::{MatrixNorm, prelude::*};
/// let x = tensor([[3.0, 0.0], [0.0, 4.0]]);
/// assert_eq!(x.matrix_norm(MatrixNorm::Frobenius, [-2, -1], false).item(), 5.0);
/// assert_eq!(x.matrix_norm(1.0, [-2, -1], false).item(), 4.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixNorm {
    /// The root of the sum of squares: `"fro"`.
    Frobenius,
    /// The sum of singular values: `"nuc"`.
    Nuclear,
    /// 1 and -1: the largest or smallest sum of a column's absolute values. Infinite ones: of a row's. 2 and -2: the largest
    /// or smallest singular value.
    Order(f64),
}

impl From<f64> for MatrixNorm {
    fn from(order: f64) -> MatrixNorm {
        MatrixNorm::Order(order)
    }
}

/// What [`Tensor::lstsq`] finds.
#[derive(Clone, Debug)]
pub struct LeastSquares {
    /// `X` for which ‖A · X - B‖ is smallest, and of several the smallest.
    pub solution: Tensor,
    /// What is left of each column, squared; empty where A has no more rows than columns.
    pub residuals: Tensor,
    /// How many singular values of A count as not zero.
    pub rank: Tensor,
    pub singular_values: Tensor,
}

impl Tensor {
    /// A norm of the matrices in two dimensions, kept with size 1 where `keepdim` (`torch.linalg.matrix_norm`).
    ///
    /// ```
    /// use xlazy::{MatrixNorm, prelude::*};
    /// let x = tensor([[3.0, 0.0], [0.0, 4.0]]);
    /// assert!((x.matrix_norm(MatrixNorm::Nuclear, [-2, -1], false).item() - 7.0).abs() < 1e-5);
    /// ```
    #[track_caller]
    pub fn matrix_norm(&self, ord: impl Into<MatrixNorm>, dim: [i64; 2], keepdim: bool) -> Tensor {
        let _call = called("matrix_norm", [self]);
        let [rows, columns] = dim.map(|d| self.dim_index("matrix_norm", d) as i64);
        if rows == columns || self.dim() < 2 {
            refuse("matrix_norm", &[self], "needs two different dimensions");
        }
        let ord = ord.into();
        // the sum along one dimension, then the extreme along the other
        let sums = |sum: i64, other: i64, largest: bool| {
            let s = self.abs().sum_dim(sum, true);
            let y = if largest { s.amax(other, true) } else { s.amin(other, true) };
            if keepdim { y } else { y.squeeze_dims([rows, columns]) }
        };
        let singular = |f: &dyn Fn(Tensor) -> Tensor| {
            let y = f(self.movedim([rows, columns], [-2, -1]).svdvals());
            match keepdim {
                true => y.unsqueeze(rows.min(columns)).unsqueeze(rows.max(columns)),
                false => y,
            }
        };
        match ord {
            MatrixNorm::Frobenius => self.norm_p(2.0, [rows, columns], keepdim),
            MatrixNorm::Nuclear => singular(&|s| s.sum_dim(-1, false)),
            MatrixNorm::Order(o) if o.abs() == 2.0 => {
                singular(&|s| if o > 0.0 { s.amax(-1, false) } else { s.amin(-1, false) })
            }
            MatrixNorm::Order(o) if o.abs() == 1.0 => sums(rows, columns, o > 0.0),
            MatrixNorm::Order(o) if o.is_infinite() => sums(columns, rows, o > 0.0),
            MatrixNorm::Order(o) => {
                refuse("matrix_norm", &[self], format!("there is no norm of order {o} of matrices"))
            }
        }
    }

    /// A norm of vectors or matrices (`torch.linalg.norm`): of vectors along one dimension, of matrices in two. Without
    /// dimensions it is that of all elements where `ord` is not given, and otherwise the tensor is a vector or a matrix.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([3.0, 4.0]).linalg_norm(None, (), false).item(), 5.0);
    /// ```
    #[track_caller]
    pub fn linalg_norm(&self, ord: Option<MatrixNorm>, dim: impl Into<Dims>, keepdim: bool) -> Tensor {
        let _call = called("linalg_norm", [self]);
        let dim = dim.into();
        match (ord, dim.0.as_slice()) {
            (None, _) => self.norm_p(2.0, dim, keepdim),
            (Some(ord), &[rows, columns]) => self.matrix_norm(ord, [rows, columns], keepdim),
            (Some(ord), []) if self.dim() == 2 => self.matrix_norm(ord, [0, 1], keepdim),
            (Some(MatrixNorm::Order(p)), [] | [_]) if dim.0.len() == 1 || self.dim() == 1 => {
                self.norm_p(p, dim, keepdim)
            }
            _ => refuse("linalg_norm", &[self], format!("there is no such norm along {:?}", dim.0)),
        }
    }

    /// Each matrix to the power of an integer; of its inverse where that is negative (`torch.linalg.matrix_power`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[1.0, 1.0], [0.0, 1.0]]).matrix_power(3).to_vec::<f32>(), [1.0, 3.0, 0.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn matrix_power(&self, n: i64) -> Tensor {
        let _call = called("matrix_power", [self]);
        if self.dim() < 2 || self.size(-1) != self.size(-2) {
            refuse("matrix_power", &[self], "needs square matrices");
        }
        let mut square = if n < 0 { self.inv() } else { self.clone() };
        let mut power: Option<Tensor> = None;
        let mut left = n.unsigned_abs();
        while left > 0 {
            if left & 1 == 1 {
                power = Some(power.map_or(square.clone(), |p| p.matmul(&square)));
            }
            left >>= 1;
            if left > 0 {
                square = square.matmul(&square);
            }
        }
        power.unwrap_or_else(|| Tensor::eye(self.size(-1)).to(self.dtype()).expand(self.shape()))
    }

    /// e to the power of each matrix (`torch.matrix_exp`), for norms up to 2¹⁶: a Taylor series of the matrix halved until it
    /// is small, squared as often again.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let y = tensor([[0.0, 1.0], [0.0, 0.0]]).matrix_exp();
    /// assert!(y.allclose(&tensor([[1.0, 1.0], [0.0, 1.0]])));
    /// ```
    #[track_caller]
    pub fn matrix_exp(&self) -> Tensor {
        let _call = called("matrix_exp", [self]);
        if self.dtype().is_half() {
            return self.float().matrix_exp().to(self.dtype());
        }
        let n = square("matrix_exp", self);
        if self.numel() == 0 {
            return self.clone();
        }
        let norm = self.detach().abs().sum_dim(-1, true).amax([-2, -1], true);
        let halvings = (norm * 0.5).clamp_min(1.0).log2().ceil();
        let x = self / halvings.exp2();
        let unit = Tensor::eye(n).to(self.dtype());
        // Horner's rule: 1 + x (1 + x/2 (1 + x/3 …))
        let series = (1..=22).rev().fold(unit.expand(self.shape()), |y, k| &unit + x.matmul(&y) / k as f64);
        (0..17).fold(series, |y, k| y.matmul(&y).where_(&halvings.gt(k as f64), &y))
    }

    /// Powers of each element as a row: from 0 up to and without `n`, by default as many as there are elements
    /// (`torch.linalg.vander`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([2, 3]).vander(Some(3)).to_vec::<i64>(), [1, 2, 4, 1, 3, 9]);
    /// ```
    #[track_caller]
    pub fn vander(&self, n: Option<usize>) -> Tensor {
        let _call = called("vander", [self]);
        let x = if self.dim() == 0 { self.reshape(1) } else { self.clone() };
        // Powers are products, and those of integers int64.
        let x = if x.dtype().category() <= Category::Int { x.long() } else { x };
        let n = n.unwrap_or_else(|| x.size(-1));
        let one = x.ones_like();
        let mut powers = vec![one];
        while powers.len() < n {
            powers.push(&powers[powers.len() - 1] * &x);
        }
        powers.truncate(n.max(1));
        stack(&powers.iter().collect::<Vec<_>>(), -1)
    }

    /// `X` for which each ‖self · X - b‖ is smallest (`torch.linalg.lstsq`); singular values up to `rcond` times the largest
    /// count as zero, by default the larger size times the dtype's precision.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let a = tensor([[1.0], [1.0]]);
    /// assert!(a.lstsq(&tensor([[1.0], [3.0]]), None).solution.allclose(&tensor([[2.0]])));
    /// ```
    #[track_caller]
    pub fn lstsq(&self, b: &Tensor, rcond: Option<f64>) -> LeastSquares {
        let _call = called("lstsq", [self, b]);
        matrices("lstsq", self);
        let vector = b.dim() + 1 == self.dim();
        let wide = if vector { b.unsqueeze(-1) } else { b.clone() };
        if wide.dim() < 2 || wide.size(-2) != self.size(-2) || b.dtype() != self.dtype() {
            refuse("lstsq", &[self, b], "the right hand side must have as many rows, and the same dtype");
        }
        let x = self.pinv(None, rcond).matmul(&wide);
        let residuals = match self.size(-2) > self.size(-1) {
            true => (self.matmul(&x) - &wide).abs().square().sum_dim(-2, false),
            false => Tensor::zeros([0]).to(self.dtype().part()),
        };
        let singular_values = self.detach().svdvals();
        let solution = if vector { x.squeeze_dim(-1) } else { x };
        LeastSquares { solution, residuals, rank: self.matrix_rank(rcond), singular_values }
    }

    /// Slices along `dim` whose `p`-norm is more than `maxnorm` scaled down to it (`torch.renorm`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let y = tensor([[3.0, 4.0], [0.3, 0.4]]).renorm(2.0, 0, 1.0);
    /// assert!(y.allclose(&tensor([[0.6, 0.8], [0.3, 0.4]])));
    /// ```
    #[track_caller]
    pub fn renorm(&self, p: f64, dim: i64, maxnorm: f64) -> Tensor {
        let _call = called("renorm", [self]);
        let d = self.dim_index("renorm", dim);
        let others: Vec<usize> = (0..self.dim()).filter(|&i| i != d).collect();
        if others.is_empty() {
            refuse("renorm", &[self], "needs at least 2 dimensions");
        }
        if p <= 0.0 || maxnorm < 0.0 {
            let why = format!("p must be above 0 and maxnorm not below it, not {p} and {maxnorm}");
            refuse("renorm", &[self], why);
        }
        let norm = self.norm_p(p, others, true);
        let factor = (&norm + 1e-7).reciprocal() * maxnorm;
        let one = factor.ones_like();
        self * factor.where_(&norm.gt(maxnorm), &one)
    }

    /// The area under the values along `dim`, by the trapezoid between each two: `x` says where they are, `dx` how far from one
    /// another without it (`torch.trapezoid`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1.0, 2.0, 3.0]).trapezoid(None, 1.0, -1).item(), 4.0);
    /// ```
    #[track_caller]
    pub fn trapezoid(&self, x: Option<&Tensor>, dx: impl Into<Scalar>, dim: i64) -> Tensor {
        self.integrated("trapezoid", x, dx.into(), dim, |areas, d| areas.sum_dim(d, false))
    }

    /// The area under the values along `dim` up to each but the first, as [`Tensor::trapezoid`] has the last of them
    /// (`torch.cumulative_trapezoid`).
    ///
    /// `tensor([1.0, 2.0, 3.0]).cumulative_trapezoid(None, 1.0, -1)` is `[1.5000, 4.0000]`.
    #[track_caller]
    pub fn cumulative_trapezoid(&self, x: Option<&Tensor>, dx: impl Into<Scalar>, dim: i64) -> Tensor {
        self.integrated("cumulative_trapezoid", x, dx.into(), dim, |areas, d| areas.cumsum(d))
    }

    /// What `total` makes of the areas between each two values along `dim`.
    #[track_caller]
    fn integrated(
        &self,
        op: &'static str,
        x: Option<&Tensor>,
        dx: Scalar,
        dim: i64,
        total: impl FnOnce(Tensor, i64) -> Tensor,
    ) -> Tensor {
        let _call = called(op, [self].into_iter().chain(x));
        let d = self.dim_index(op, dim) as i64;
        match x {
            Some(x) => rounded_once([self, x], |[y, x]| total(y.areas(Some(x), d), d) / 2.0),
            None => rounded_once([self], |[y]| total(y.areas(None, d), d) * dx.as_f64() / 2.0),
        }
    }

    /// Twice the areas between each two values along dimension `d`, which are 1 apart without `x`.
    #[track_caller]
    fn areas(&self, x: Option<&Tensor>, d: i64) -> Tensor {
        let n = self.size(d) as i64;
        let both = self.narrow(d, 1, (n - 1).max(0)) + self.narrow(d, 0, (n - 1).max(0));
        let Some(x) = x else {
            return both;
        };
        let steps = if x.dim() == 1 && self.dim() > 1 {
            let mut shape = vec![1i64; self.dim() - d as usize];
            shape[0] = -1;
            let x = x.reshape(shape);
            x.diff(1, 0)
        } else {
            x.diff(1, d - self.dim() as i64)
        };
        both * steps
    }

    /// The slope of the values along `dim`, at every place: from the neighbours, weighted by how far they are away; at the
    /// edges from one neighbour, or two where `edge_order` is 2 (`torch.gradient`). `spacing`: one number, or a vector of where
    /// the values are.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let y = tensor([0.0, 1.0, 4.0, 9.0]).gradient(&tensor(1.0), 0, 1);
    /// assert_eq!(y.to_vec::<f32>(), [1.0, 2.0, 4.0, 5.0]);
    /// ```
    #[track_caller]
    pub fn gradient(&self, spacing: &Tensor, dim: i64, edge_order: usize) -> Tensor {
        let _call = called("gradient", [self, spacing]);
        if self.dtype().is_half() {
            return rounded_once([self], |[x]| x.gradient(&spacing.float(), dim, edge_order));
        }
        let d = self.dim_index("gradient", dim) as i64;
        let n = self.size(d) as i64;
        if !(1..3).contains(&edge_order) || n <= edge_order as i64 {
            refuse("gradient", &[self], format!("needs more than {edge_order} elements along dimension {dim}"));
        }
        let x = self.to(self.dtype().to_float());
        // the distance of each two neighbours, against which slices along the dimension broadcast
        let mut shape = vec![1i64; self.dim()];
        shape[d as usize] = -1;
        let steps = match spacing.dim() {
            0 => spacing.to(x.dtype()).expand([n - 1]),
            _ => spacing.to(x.dtype()).diff(1, 0),
        };
        let steps = steps.reshape(shape);
        let at = |t: &Tensor, from: i64, count: i64| t.narrow(d, from, count);
        let slope = |from: i64| (at(&x, from + 1, 1) - at(&x, from, 1)) / at(&steps, from, 1);
        let (a, b) = (at(&steps, 0, n - 2), at(&steps, 1, n - 2));
        let (before, here, after) = (at(&x, 0, n - 2), at(&x, 1, n - 2), at(&x, 2, n - 2));
        let both = &a + &b;
        let inner = before * (&b / (&a * &both)).neg() + here * ((&b - &a) / (&a * &b)) + after * (&a / (&b * &both));
        let (first, last) = match edge_order {
            1 => (slope(0), slope(n - 2)),
            _ => {
                let ends = |from: i64, end: bool| {
                    let (h1, h2) = (at(&steps, from, 1), at(&steps, from + 1, 1));
                    let sum = &h1 + &h2;
                    let [p, q, r] = [0, 1, 2].map(|i| at(&x, from + i, 1));
                    match end {
                        false => {
                            p * ((&h1 * 2.0 + &h2) / (&h1 * &sum)).neg() + q * (&sum / (&h1 * &h2))
                                - r * (&h1 / (&h2 * &sum))
                        }
                        true => {
                            p * (&h2 / (&h1 * &sum)) - q * (&sum / (&h1 * &h2)) + r * ((&h2 * 2.0 + &h1) / (&h2 * &sum))
                        }
                    }
                };
                (ends(0, false), ends(n - 3, true))
            }
        };
        cat(&[&first, &inner, &last], d)
    }
}

/// The product of matrices, in the order that takes the fewest steps (`torch.linalg.multi_dot`); the first and the last may be
/// vectors.
///
/// ```
/// use xlazy::{multi_dot, prelude::*};
/// let y = multi_dot(&[&tensor([[1.0, 2.0]]), &tensor([[1.0], [1.0]]), &tensor([[2.0]])]);
/// assert_eq!(y.to_vec::<f32>(), [6.0]);
/// ```
#[track_caller]
pub fn multi_dot(tensors: &[&Tensor]) -> Tensor {
    let _line = caller_line();
    let n = tensors.len();
    if n < 2 {
        refuse("multi_dot", tensors, "needs at least two tensors");
    }
    let (row, column) = (tensors[0].dim() == 1, tensors[n - 1].dim() == 1);
    let mut all: Vec<Tensor> = tensors.iter().map(|t| (*t).clone()).collect();
    if row {
        all[0] = all[0].unsqueeze(0);
    }
    if column {
        all[n - 1] = all[n - 1].unsqueeze(1);
    }
    if let Some(t) = all.iter().find(|t| t.dim() != 2) {
        refuse("multi_dot", &[t], "needs matrices; the first and the last may be vectors");
    }
    // the fewest multiplications of each part, and where it is divided
    let sizes: Vec<usize> = std::iter::once(all[0].size(0)).chain(all.iter().map(|t| t.size(1))).collect();
    let mut best = vec![vec![(0usize, 0usize); n]; n];
    for length in 1..n {
        for i in 0..n - length {
            let j = i + length;
            let cost = |k: usize| best[i][k].0 + best[k + 1][j].0 + sizes[i] * sizes[k + 1] * sizes[j + 1];
            best[i][j] = (i..j).map(|k| (cost(k), k)).min().expect("one place at least");
        }
    }
    fn product(all: &[Tensor], best: &[Vec<(usize, usize)>], i: usize, j: usize) -> Tensor {
        if i == j {
            return all[i].clone();
        }
        let k = best[i][j].1;
        product(all, best, i, k).matmul(&product(all, best, k + 1, j))
    }
    let y = product(&all, &best, 0, n - 1);
    let y = if row { y.squeeze_dim(0) } else { y };
    if column { y.squeeze_dim(-1) } else { y }
}
