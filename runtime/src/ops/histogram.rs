//! How many elements lie in each part of a range.
use crate::tensor::{Tensor, called, refuse};
use xlazy_core::ty::Category;

/// What torch's histogram takes besides the number of bins or their edges.
#[derive(Clone, Debug, Default)]
pub struct HistogramOptions {
    /// From where to where bins are made; from the least element to the greatest without it.
    pub range: Option<(f64, f64)>,
    /// What each element counts, in the tensor's shape and dtype; 1 without it.
    pub weight: Option<Tensor>,
    /// Shares of the whole over the widths of bins, so that the area is 1.
    pub density: bool,
}

/// The ends of a range; of one value only, so far around it.
#[track_caller]
fn apart(low: Tensor, high: Tensor, by: f64) -> (Tensor, Tensor) {
    let one = low.eq(&high);
    ((&low - by).where_(&one, &low), (&high + by).where_(&one, &high))
}

impl Tensor {
    /// How many elements are in each of `bins` equal parts of the range from `min` to `max` (`torch.histc`), in this tensor's
    /// dtype, which is a float. Elements outside are not counted, `max` itself is in the last part. Where both are equal, the
    /// range is that of the elements.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([0.0, 1.0, 1.5, 4.0]);
    /// assert_eq!(x.histc(4, 0.0, 4.0).to_vec::<f32>(), [1.0, 2.0, 0.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn histc(&self, bins: usize, min: f64, max: f64) -> Tensor {
        let _call = called("histc", [self]);
        if !self.dtype().is_float() {
            refuse("histc", &[self], "needs a float tensor: convert with `.float()`");
        }
        if bins == 0 || min > max {
            refuse("histc", &[self], format!("{bins} bins from {min} to {max} count nothing"));
        }
        if self.dtype().is_half() {
            // where a bin ends is no half
            return self.float().histc(bins, min, max).to(self.dtype());
        }
        let x = self.detach().flatten();
        let zeros = Tensor::zeros([bins]).to(self.dtype());
        if x.numel() == 0 {
            return zeros;
        }
        let edge = |v: f64| Tensor::full((), v).to(self.dtype());
        let (low, high) = if min < max { (edge(min), edge(max)) } else { (x.min(), x.max()) };
        let (low, high) = apart(low, high, 1.0);
        let inside = x.ge(&low).logical_and(x.le(&high));
        let place = ((&x - &low) * bins as f64 / (&high - &low)).masked_fill(&inside.logical_not(), 0.0);
        let place = place.long().clamp(0, bins as i64 - 1);
        zeros.index_add(0, &place, &inside.to(self.dtype()))
    }

    /// How many elements are in each of `bins` equal parts of a range, and the `bins + 1` edges of these, in this tensor's dtype, a
    /// float (`torch.histogram`). Elements outside are not counted, the last edge itself is in the last part.
    ///
    /// ```
    /// use xlazy::{HistogramOptions, prelude::*};
    /// let (counts, edges) = tensor([0.0, 1.0, 1.5, 4.0]).histogram(2, HistogramOptions::default());
    /// assert_eq!((counts.to_vec::<f32>(), edges.to_vec::<f32>()), (vec![3.0, 1.0], vec![0.0, 2.0, 4.0]));
    /// ```
    #[track_caller]
    pub fn histogram(&self, bins: usize, options: HistogramOptions) -> (Tensor, Tensor) {
        let _call = called("histogram", [self]);
        if bins == 0 || options.range.is_some_and(|(low, high)| low.partial_cmp(&high).is_none_or(|o| o.is_gt())) {
            refuse("histogram", &[self], format!("{bins} bins in {:?} count nothing", options.range));
        }
        let edge = |v: f64| Tensor::full((), v).to(self.dtype());
        let (low, high) = match options.range {
            Some((low, high)) => (edge(low), edge(high)),
            None if self.numel() == 0 => (edge(0.0), edge(1.0)),
            None => (self.detach().min(), self.detach().max()),
        };
        let (low, high) = apart(low, high, 0.5);
        let part = Tensor::arange(0, bins as i64 + 1, 1).to(self.dtype()) / bins as f64;
        let edges = &low * (1.0 - &part) + &high * part;
        self.histogram_edges(&edges, options)
    }

    /// As [`Tensor::histogram`], with bins between edges that are given, a vector of numbers that grow (`torch.histogram(x, bins)`
    /// of a tensor).
    ///
    /// ```
    /// use xlazy::{HistogramOptions, prelude::*};
    /// let (counts, _) = tensor([0.0, 1.0, 1.5, 4.0]).histogram_edges(&tensor([0.0, 0.5, 4.0]), HistogramOptions::default());
    /// assert_eq!(counts.to_vec::<f32>(), [1.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn histogram_edges(&self, edges: &Tensor, options: HistogramOptions) -> (Tensor, Tensor) {
        let _call = called("histogram", [self, edges]);
        if self.dtype().category() != Category::Float || edges.dtype() != self.dtype() {
            refuse("histogram", &[self, edges], "needs floats, and edges of their dtype: convert with `.to(dtype)`");
        }
        if edges.dim() != 1 || edges.numel() < 2 {
            refuse("histogram", &[self, edges], "edges are a vector of at least two");
        }
        let (x, bins) = (self.detach().flatten(), edges.numel() as i64 - 1);
        let weight = match options.weight {
            Some(w) if w.shape() != self.shape() || w.dtype() != self.dtype() => {
                refuse("histogram", &[self, &w], "weights have the shape and the dtype of what they weigh")
            }
            Some(w) => w.detach().flatten(),
            None => x.ones_like(),
        };
        let (first, last) = (edges.narrow(0, 0, 1), edges.narrow(0, bins, 1));
        let inside = x.ge(&first).logical_and(x.le(&last));
        let place = (edges.searchsorted(&x, true) - 1).clamp(0, bins - 1);
        let zeros = Tensor::zeros([bins]).to(self.dtype());
        let counts = zeros.index_add(0, &place, &weight.masked_fill(&inside.logical_not(), 0.0));
        let counts = match options.density {
            true => &counts / counts.sum() / edges.diff(1, -1),
            false => counts,
        };
        (counts, edges.clone())
    }
}
