//! Looking values up: binary search among sorted values, membership, histograms, covariances.
use super::bounds::{counts, distributions, known_within};
use super::cat;
use super::dynamic::concrete;
use crate::tensor::{Tensor, called, caller_line, refuse};
use std::panic::Location;
use xlazy_core::ty::Category;

impl Tensor {
    /// Where each of `values` would go among the sorted elements of this tensor's last dimension, int64
    /// (`torch.searchsorted(self, values)`): before equal elements, behind them where `right`. The other dimensions are
    /// equal, unless this tensor is a vector. NaN counts as the largest number.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let sorted = tensor([1.0, 3.0, 3.0, 7.0]);
    /// assert_eq!(sorted.searchsorted(&tensor([3.0, 9.0]), false).to_vec::<i64>(), [1, 4]);
    /// assert_eq!(sorted.searchsorted(&tensor([3.0, 9.0]), true).to_vec::<i64>(), [3, 4]);
    /// ```
    #[track_caller]
    pub fn searchsorted(&self, values: &Tensor, right: bool) -> Tensor {
        let _call = called("searchsorted", [self, values]);
        let (s, v) = (self.shape(), values.shape());
        let alike = s.len() == v.len() && !s.is_empty() && s[..s.len() - 1] == v[..v.len() - 1];
        if s.len() != 1 && !alike {
            refuse("searchsorted", &[self, values], "the dimensions other than the last must be equal, or one vector");
        }
        let n = s[s.len() - 1];
        let mut low = values.zeros_like().long();
        if n == 0 {
            return low;
        }
        let mut high = low.full_like(n as i64);
        // one step for each bit of the number of places
        for _ in 0..usize::BITS - n.leading_zeros() {
            let middle = (&low + &high).floor_divide(2);
            let at = middle.clamp_max(n as i64 - 1);
            let found = if s.len() == 1 { self.take(&at) } else { self.gather(-1, &at) };
            // so written, NaN goes behind everything
            let before = if right { found.gt(values) } else { found.ge(values) };
            let open = low.lt(&high);
            let further = open.logical_and(before.logical_not());
            high = middle.where_(&open.logical_and(&before), &high);
            low = (middle + 1).where_(&further, &low);
        }
        low
    }

    /// The number of the bucket between sorted `boundaries` that each element is in, int64 (`torch.bucketize`); an element on
    /// a boundary is in the bucket below it, in the one above where `right`.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([0.5, 1.0, 5.0]);
    /// assert_eq!(x.bucketize(&tensor([1.0, 2.0]), false).to_vec::<i64>(), [0, 0, 2]);
    /// ```
    #[track_caller]
    pub fn bucketize(&self, boundaries: &Tensor, right: bool) -> Tensor {
        if boundaries.dim() != 1 {
            refuse("bucketize", &[self, boundaries], "the boundaries must be a vector");
        }
        boundaries.searchsorted(self, right)
    }

    /// Whether each element is one of `test_elements` (`torch.isin`), as bools. NaN is none of any.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1, 2, 3]).isin(&tensor([3, 1])).to_vec::<bool>(), [true, false, true]);
    /// ```
    #[track_caller]
    pub fn isin(&self, test_elements: &Tensor) -> Tensor {
        let _call = called("isin", [self, test_elements]);
        self.unsqueeze(-1).eq(test_elements.flatten()).any_dim(-1, false)
    }

    /// How often each of 0, 1, 2… occurs in a vector of integers; with `weights` the sum of theirs, float64 unless they are
    /// float32 (`torch.bincount(x, weights, minlength)`). The result has at least `minlength` elements. Reads the largest one.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1, 1]).bincount_with(None, 3).to_vec::<i64>(), [0, 2, 0]);
    /// ```
    #[track_caller]
    pub fn bincount_with(&self, weights: Option<&Tensor>, minlength: usize) -> Tensor {
        let _call = called("bincount", [self]);
        if self.dim() != 1 {
            refuse("bincount", &[self], "needs a vector");
        }
        let at = Location::caller();
        let weights = match weights {
            Some(w) if w.shape() != self.shape() => {
                refuse("bincount", &[self, w], "needs a weight for each element");
            }
            Some(w) if w.dtype() == crate::DType::F32 => w.clone(),
            Some(w) => w.double(),
            None => self.ones_like().long(),
        };
        let most = if self.numel() == 0 { -1 } else { concrete(&self.max(), at).as_i64() };
        let n = minlength.max((most + 1).max(0) as usize);
        Tensor::zeros([n]).to(weights.dtype()).index_add(0, &self.long(), &weights)
    }

    /// How often each of 0, 1, 2… occurs in a vector of integers, int64 (`torch.bincount`). Reads the largest one.
    ///
    /// `tensor([0, 1, 1, 3]).bincount()` is `[1, 2, 0, 1]`.
    #[track_caller]
    pub fn bincount(&self) -> Tensor {
        self.bincount_with(None, 0)
    }

    /// How rows vary together: observations are columns, or the elements of a vector (`torch.cov`). Divides by the sum of
    /// weights less `correction`; `fweights` says how often an observation counts, `aweights` how much.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[0.0, 2.0], [4.0, 0.0]]);
    /// assert_eq!(x.cov(1.0, None, None).to_vec::<f32>(), [2.0, -4.0, -4.0, 8.0]);
    /// ```
    #[track_caller]
    pub fn cov(&self, correction: f64, fweights: Option<&Tensor>, aweights: Option<&Tensor>) -> Tensor {
        let _call = called("cov", [self]);
        if self.dim() > 2 {
            refuse("cov", &[self], "needs a vector or a matrix");
        }
        let observations = self.shape().last().copied().unwrap_or(1);
        if let Some(w) = fweights.into_iter().chain(aweights).find(|w| w.dim() > 1 || w.numel() != observations) {
            refuse(
                "cov",
                &[self, w],
                format!("needs a weight for each of the {observations} observations, not {}", w.shape()),
            );
        }
        if let Some(f) = fweights {
            if f.dtype().category() != Category::Int {
                refuse("cov", &[self, f], format!("`fweights` say how often: integers, not {}", f.dtype()));
            }
            known_within("cov", f, 0, i64::MAX, |n| format!("`fweights` say how often: {n} is negative"));
        }
        if let Some(a) = aweights.filter(|a| !a.dtype().is_float()) {
            refuse("cov", &[self, a], format!("`aweights` must be floats, not {}: convert with `.float()`", a.dtype()));
        }
        let x = self.to(self.dtype().to_float());
        let x = if x.dim() < 2 { x.reshape([1, -1]) } else { x };
        let weights = match (fweights, aweights) {
            (Some(f), Some(a)) => Some(f * a),
            (Some(one), None) | (None, Some(one)) => Some(one.to(one.dtype().promote(x.dtype()))),
            _ => None,
        };
        let total = weights.as_ref().map_or(Tensor::full((), x.size(1) as f64), |w| w.sum());
        let mean = match &weights {
            Some(w) => ((&x * w).sum_dim(1, true)) / &total,
            None => x.mean_dim(1, true),
        };
        // as much less as the weights of one observation are
        let less = match (&weights, aweights) {
            (Some(w), Some(a)) => (w * a).sum() / &total * correction,
            _ => Tensor::full((), correction),
        };
        let rest = (total - less).real().clamp_min(0.0);
        let centred = x - mean;
        let scaled = weights.map_or(centred.clone(), |w| &centred * w);
        let cov = centred.matmul(&scaled.t().conj().to(centred.dtype())) / rest.to(centred.dtype());
        if cov.numel() == 1 { cov.reshape(()) } else { cov }
    }

    /// The correlation of every two rows (`torch.corrcoef`): their covariance over both deviations.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[1.0, 2.0], [2.0, 1.0]]).corrcoef().shape(), [2, 2]);
    /// ```
    #[track_caller]
    pub fn corrcoef(&self) -> Tensor {
        let _call = called("corrcoef", [self]);
        let c = self.cov(1.0, None, None);
        if c.dim() == 0 {
            return c.div(&c);
        }
        let deviation = c.diagonal(0, 0, 1).sqrt();
        let all = &c / deviation.unsqueeze(1) / deviation.unsqueeze(0);
        match all.dtype().is_complex() {
            true => all.real().clamp(-1.0, 1.0).complex(&all.imag().clamp(-1.0, 1.0)),
            false => all.clamp(-1.0, 1.0),
        }
    }

    /// Each slice along `dim` as often as `repeats`, one integer for each of them, says (`torch.repeat_interleave` with a
    /// tensor). `output_size` is the sum of `repeats`; without it they are read, which runs what they need.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([1, 2]).repeat_interleave_each(&tensor([1, 3]), 0, Some(4));
    /// assert_eq!(x.to_vec::<i64>(), [1, 2, 2, 2]);
    /// ```
    #[track_caller]
    pub fn repeat_interleave_each(&self, repeats: &Tensor, dim: i64, output_size: Option<usize>) -> Tensor {
        let at = Location::caller();
        let _call = called("repeat_interleave_each", [self, repeats]);
        let d = self.dim_index("repeat_interleave", dim);
        let n = self.shape().get(d).copied().unwrap_or(1);
        let repeats = if repeats.numel() == 1 { repeats.reshape(1).expand([n]) } else { repeats.clone() };
        if repeats.shape() != [n] {
            refuse("repeat_interleave", &[self, &repeats], format!("needs {n} repeats, one for each slice"));
        }
        let repeats = counts(&repeats);
        let ends = repeats.cumsum(0);
        let total = output_size.unwrap_or_else(|| concrete(&repeats.sum(), at).as_i64().max(0) as usize);
        let places = ends.searchsorted(&Tensor::arange(0, total as i64, 1), true);
        let x = if self.dim() == 0 { self.reshape(1) } else { self.clone() };
        x.index_select(dim, &places)
    }

    /// Row and column of the elements on and below a diagonal of a matrix, as the rows of an int64 matrix
    /// (`torch.tril_indices`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::tril_indices(2, 2, 0).to_vec::<i64>(), [0, 1, 1, 0, 0, 1]);
    /// ```
    #[track_caller]
    pub fn tril_indices(rows: usize, columns: usize, offset: i64) -> Tensor {
        triangle(rows, columns, |r, c| c <= r + offset)
    }

    /// Row and column of the elements on and above a diagonal of a matrix, as the rows of an int64 matrix
    /// (`torch.triu_indices`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::triu_indices(2, 2, 0).to_vec::<i64>(), [0, 0, 1, 0, 1, 1]);
    /// ```
    #[track_caller]
    pub fn triu_indices(rows: usize, columns: usize, offset: i64) -> Tensor {
        triangle(rows, columns, |r, c| c >= r + offset)
    }

    /// Numbers drawn in proportion to the weights in the last dimension of a vector or matrix, int64
    /// (`torch.multinomial`); `replacement`: the same may be drawn again.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([0.0, 1.0]).multinomial(3, true).to_vec::<i64>(), [1, 1, 1]);
    /// ```
    #[track_caller]
    pub fn multinomial(&self, num_samples: usize, replacement: bool) -> Tensor {
        let _call = called("multinomial", [self]);
        if !self.dtype().is_float() || !(1..3).contains(&self.dim()) {
            refuse(
                "multinomial",
                &[self],
                "needs float weights, as a vector or a matrix with a distribution in each row",
            );
        }
        let weights = distributions(&self.detach());
        if !replacement {
            if num_samples > self.size(-1) {
                refuse("multinomial", &[self], format!("{num_samples} different ones of {}", self.size(-1)));
            }
            // the largest of log w + Gumbel noise is distributed as w; those after it as the rest
            let noise = weights.rand_like().clamp_min(1e-30).log().neg();
            return (weights / noise).topk(num_samples, -1, true).1;
        }
        let ends = weights.cumsum(-1);
        let mut shape = self.shape();
        let last = shape.len() - 1;
        shape[last] = num_samples;
        let total = ends.narrow(-1, ends.size(-1) as i64 - 1, 1);
        let drawn = Tensor::rand(&shape).to(weights.dtype()) * total;
        ends.searchsorted(&drawn, true).clamp_max(self.size(-1) as i64 - 1)
    }

    /// The numbers from 0 up to and without `n` in random order, int64 (`torch.randperm`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::randperm(4).sort(0, false).0.to_vec::<i64>(), [0, 1, 2, 3]);
    /// ```
    #[track_caller]
    pub fn randperm(n: usize) -> Tensor {
        let _line = caller_line();
        Tensor::rand([n]).argsort(0, false)
    }
}

#[track_caller]
fn triangle(rows: usize, columns: usize, inside: impl Fn(i64, i64) -> bool) -> Tensor {
    let all = || (0..rows as i64).flat_map(|r| (0..columns as i64).map(move |c| (r, c))).filter(|&(r, c)| inside(r, c));
    let places: Vec<i64> = all().map(|p| p.0).chain(all().map(|p| p.1)).collect();
    let n = places.len() / 2;
    Tensor::from_vec(places, [2, n])
}

/// Matrices as the blocks on the diagonal of one, zeros elsewhere (`torch.block_diag`); vectors are rows.
///
/// ```
/// use xlazy::{block_diag, prelude::*};
/// let x = block_diag(&[&tensor([[1]]), &tensor([[2, 3]])]);
/// assert_eq!(x.to_vec::<i64>(), [1, 0, 0, 0, 2, 3]);
/// ```
#[track_caller]
pub fn block_diag(tensors: &[&Tensor]) -> Tensor {
    let _line = caller_line();
    if let Some(t) = tensors.iter().find(|t| t.dim() > 2) {
        refuse("block_diag", &[t], "needs matrices, vectors or numbers");
    }
    let blocks: Vec<Tensor> =
        tensors.iter().map(|t| if t.dim() < 2 { t.reshape([1, -1]) } else { (*t).clone() }).collect();
    let columns: usize = blocks.iter().map(|b| b.size(1)).sum();
    let mut left = 0;
    let wide = |b: &Tensor| {
        let right = columns - left - b.size(1);
        let row = b.pad([left as i64, right as i64], 0.0);
        left += b.size(1);
        row
    };
    let rows: Vec<Tensor> = blocks.iter().map(wide).collect();
    cat(&rows.iter().collect::<Vec<_>>(), 0)
}
