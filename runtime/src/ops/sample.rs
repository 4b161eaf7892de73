//! Images looked at elsewhere than at their pixels: grids of positions, adaptive maxima; normalisation between channels.
use super::base::rounded_once;
use super::cat;
use crate::tensor::{Tensor, called, caller_line, refuse};
use xlazy_core::ty::{Category, Dims};

/// How [`Tensor::grid_sample`] goes between pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GridMode {
    #[default]
    Bilinear,
    Nearest,
    Bicubic,
}

/// What lies beyond the edge for [`Tensor::grid_sample`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GridPadding {
    #[default]
    Zeros,
    /// The nearest pixel of the edge.
    Border,
    /// The image in a mirror.
    Reflection,
}

/// What torch's grid sampling takes besides its tensors.
#[derive(Clone, Copy, Debug, Default)]
pub struct GridSampleOptions {
    pub mode: GridMode,
    pub padding_mode: GridPadding,
    /// -1 and 1 are the centres of the pixels at the edges, not their far sides.
    pub align_corners: bool,
}

// Positions mirrored until they are between twice / 2 and twice / 2.
#[track_caller]
fn mirrored(x: &Tensor, twice_low: f64, twice_high: f64) -> Tensor {
    if twice_low == twice_high {
        return x * 0.0;
    }
    let (low, span) = (twice_low / 2.0, (twice_high - twice_low) / 2.0);
    let from = (x - low).abs();
    let flips = (&from / span).floor().detach();
    let rest = from - &flips * span;
    let even = flips.remainder(2.0).eq(0.0);
    (&rest + low).where_(&even, span + low - &rest)
}

/// Neighbours along one dimension: where each is, and how much it counts.
struct Taps {
    all: Vec<(Tensor, Option<Tensor>)>,
    size: usize,
}

impl Taps {
    #[track_caller]
    fn along(at: &Tensor, size: usize, o: &GridSampleOptions) -> Taps {
        let n = size as f64;
        let x = match o.align_corners {
            true => (at + 1.0) * ((n - 1.0) / 2.0),
            false => ((at + 1.0) * n - 1.0) / 2.0,
        };
        let within = |x: &Tensor| match o.padding_mode {
            GridPadding::Zeros => x.clone(),
            GridPadding::Border => x.clamp(0.0, n - 1.0),
            GridPadding::Reflection => match o.align_corners {
                true => mirrored(x, 0.0, 2.0 * (n - 1.0)),
                false => mirrored(x, -1.0, 2.0 * n - 1.0),
            }
            .clamp(0.0, n - 1.0),
        };
        let all = match o.mode {
            GridMode::Nearest => vec![(within(&x).detach().round(), None)],
            GridMode::Bilinear => {
                let x = within(&x);
                let low = x.detach().floor();
                let share = &x - &low;
                vec![(low.clone(), Some(1.0 - &share)), (low + 1.0, Some(share))]
            }
            GridMode::Bicubic => {
                let low = x.detach().floor();
                let t = &x - &low;
                let a = -0.75;
                let near = |t: &Tensor| (t * (a + 2.0) - (a + 3.0)) * t * t + 1.0;
                let far = |t: &Tensor| ((t * a - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a;
                let weights = [far(&(&t + 1.0)), near(&t), near(&(1.0 - &t)), far(&(2.0 - &t))];
                (0..4).zip(weights).map(|(k, w)| (within(&(&low + (k - 1) as f64)), Some(w))).collect()
            }
        };
        Taps { all, size }
    }
}

impl Tensor {
    /// The image (batch, channels, height, width) at positions (batch, out height, out width, 2), x before y, from -1 to 1
    /// from one edge to the other (`torch.nn.functional.grid_sample`, `torch.grid_sampler_2d`); volumes have 3 coordinates.
    ///
    /// ```
    /// use xlazy::{GridSampleOptions, prelude::*};
    /// let x = Tensor::arange(0.0, 4.0, 1.0).reshape([1, 1, 2, 2]);
    /// let centre = Tensor::zeros([1, 1, 1, 2]);
    /// assert_eq!(x.grid_sample(&centre, GridSampleOptions::default()).item(), 1.5);
    /// ```
    #[track_caller]
    pub fn grid_sample(&self, grid: &Tensor, options: GridSampleOptions) -> Tensor {
        let _call = called("grid_sample", [self, grid]);
        let (s, g) = (self.shape(), grid.shape());
        let space = s.len().saturating_sub(2);
        if !(2..4).contains(&space) || g.len() != s.len() || g[g.len() - 1] != space || g[0] != s[0] {
            refuse(
                "grid_sample",
                &[self, grid],
                "needs an image (batch, channels, …) and a grid (batch, …, coordinates)",
            );
        }
        if space == 3 && options.mode == GridMode::Bicubic {
            refuse("grid_sample", &[self, grid], "bicubic sampling is defined for images only");
        }
        if s[2..].contains(&0) {
            refuse("grid_sample", &[self, grid], "an image without pixels has nothing to sample");
        }
        if self.dtype().is_half() && grid.dtype() == self.dtype() {
            return rounded_once([self, grid], |[x, grid]| x.grid_sample(grid, options));
        }
        let out = &g[1..g.len() - 1];
        let (batch, channels, count) = (s[0], s[1], out.iter().product::<usize>());
        let flat = self.reshape([batch, channels, s[2..].iter().product()]);
        // the last coordinate is that of the first dimension
        let taps: Vec<Taps> = (0..space)
            .map(|d| {
                let at = grid.select(-1, (space - 1 - d) as i64).reshape([batch, count]);
                Taps::along(&at, s[2 + d], &options)
            })
            .collect();
        let each = |picked: Vec<&(Tensor, Option<Tensor>)>| {
            let mut place: Option<Tensor> = None;
            let mut weight: Option<Tensor> = None;
            let and = |so_far: Option<Tensor>, more: &Tensor| Some(so_far.map_or(more.clone(), |w| w * more));
            for ((at, share), t) in picked.into_iter().zip(&taps) {
                let at = at.detach();
                let inside = at.ge(0.0).logical_and(at.le((t.size - 1) as f64));
                if let Some(w) = share {
                    weight = and(weight, w);
                }
                weight = and(weight, &inside.to(self.dtype()));
                let index = at.masked_fill(&inside.logical_not(), 0.0).long();
                place = Some(place.map_or(index.clone(), |p| p * t.size as i64 + &index));
            }
            let place = place.expect("two dimensions at least").unsqueeze(1).expand([batch, channels, count]);
            flat.gather(-1, &place) * weight.expect("two dimensions at least").unsqueeze(1)
        };
        // every combination of one neighbour along each dimension
        let combinations = taps.iter().fold(vec![vec![]], |all: Vec<Vec<&(Tensor, Option<Tensor>)>>, t| {
            all.iter().flat_map(|c| t.all.iter().map(|tap| [c.clone(), vec![tap]].concat())).collect()
        });
        let sum = combinations.into_iter().map(each).reduce(|a, b| a + b).expect("one at least");
        let mut shape = vec![batch, channels];
        shape.extend(out);
        sum.reshape(shape)
    }

    #[track_caller]
    fn adaptive_max_pool(&self, op: &'static str, n: usize, output: &Dims) -> (Tensor, Tensor) {
        let _call = called(op, [self]);
        if !(n + 1..=n + 2).contains(&self.dim()) {
            refuse(op, &[self], format!("needs an input (batch, channels, {n} × space), or no batch"));
        }
        let sizes = self.adaptive_sizes(op, n, output);
        let (shape, first) = (self.shape(), self.dim() - n);
        if shape[first..].contains(&0) {
            refuse(op, &[self], "an input without elements has no largest one");
        }
        // the windows along each dimension, those that are shorter with their last element again
        let places = Tensor::arange(0, shape[first..].iter().product::<usize>() as i64, 1).reshape(&shape[first..]);
        let (mut x, mut at) = (self.clone(), places.expand(&shape));
        let mut windows = Vec::new();
        for (d, &out) in sizes.iter().enumerate() {
            let size = shape[first + d];
            let bin = |o: usize| (o * size / out, ((o + 1) * size).div_ceil(out));
            let widest = (0..out).map(|o| bin(o).1 - bin(o).0).max().unwrap_or(0);
            let index: Vec<i64> = (0..out)
                .flat_map(|o| (0..widest).map(move |k| (o, k)))
                .map(|(o, k)| (bin(o).0 + k).min(bin(o).1 - 1) as i64)
                .collect();
            let index = Tensor::folded_ints(index);
            (x, at) = (x.index_select((first + d) as i64, &index), at.index_select((first + d) as i64, &index));
            windows.push(widest);
        }
        let mut apart = shape[..first].to_vec();
        sizes.iter().zip(&windows).for_each(|(&o, &k)| apart.extend([o, k]));
        let mut order: Vec<usize> = (0..first).collect();
        order.extend((0..n).map(|d| first + 2 * d));
        order.extend((0..n).map(|d| first + 2 * d + 1));
        let mut flat = shape[..first].to_vec();
        flat.extend(&sizes);
        flat.push(windows.iter().product());
        let [x, at] = [x, at].map(|t| t.reshape(&*apart).permute(&*order).reshape(&*flat));
        let best = x.argmax_dim(-1, true);
        (x.gather(-1, &best).squeeze_dim(-1), at.gather(-1, &best).squeeze_dim(-1))
    }

    /// The largest elements of as many windows as `output_size` says, over the last dimension, and where they are
    /// (`torch.nn.functional.adaptive_max_pool1d`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (y, at) = tensor([[1.0, 3.0, 2.0, 0.0]]).adaptive_max_pool1d(2);
    /// assert_eq!((y.to_vec::<f32>(), at.to_vec::<i64>()), (vec![3.0, 2.0], vec![1, 2]));
    /// ```
    #[track_caller]
    pub fn adaptive_max_pool1d(&self, output_size: impl Into<Dims>) -> (Tensor, Tensor) {
        self.adaptive_max_pool("adaptive_max_pool1d", 1, &output_size.into())
    }

    /// The same over the last two dimensions; places count in the flattened image; -1 keeps a size
    /// (`torch.nn.functional.adaptive_max_pool2d`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::ones([2, 3, 7, 5]).adaptive_max_pool2d(1).0.shape(), [2, 3, 1, 1]);
    /// ```
    #[track_caller]
    pub fn adaptive_max_pool2d(&self, output_size: impl Into<Dims>) -> (Tensor, Tensor) {
        self.adaptive_max_pool("adaptive_max_pool2d", 2, &output_size.into())
    }

    /// The same over the last three dimensions (`torch.nn.functional.adaptive_max_pool3d`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::ones([3, 2, 4, 4]).adaptive_max_pool3d(2).0.shape(), [3, 2, 2, 2]);
    /// ```
    #[track_caller]
    pub fn adaptive_max_pool3d(&self, output_size: impl Into<Dims>) -> (Tensor, Tensor) {
        self.adaptive_max_pool("adaptive_max_pool3d", 3, &output_size.into())
    }

    /// Each element divided by (k + alpha · the mean of squares of `size` neighbouring channels) to the power of `beta`
    /// (`torch.nn.functional.local_response_norm`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let y = Tensor::ones([1, 1, 2]).local_response_norm(1, 3.0, 1.0, 1.0);
    /// assert_eq!(y.to_vec::<f32>(), [0.25, 0.25]);
    /// ```
    #[track_caller]
    pub fn local_response_norm(&self, size: usize, alpha: f64, beta: f64, k: f64) -> Tensor {
        let _call = called("local_response_norm", [self]);
        if self.dim() < 3 || size == 0 {
            refuse(
                "local_response_norm",
                &[self],
                "needs an input (batch, channels, space…), and a size of at least 1",
            );
        }
        if self.numel() == 0 {
            return self.clone();
        }
        let mut amounts = vec![0i64; 2 * (self.dim() - 1)];
        let last = amounts.len() - 2;
        (amounts[last], amounts[last + 1]) = ((size / 2) as i64, ((size - 1) / 2) as i64);
        let near = self.square().pad(amounts, 0.0).unfold(1, size, 1).sum_dim(-1, false);
        // A mean of integers is one, as that of torch's pools.
        let near = match self.dtype().category() {
            Category::Int => near.div_trunc(size as i64),
            _ => near / size as f64,
        };
        self / (near * alpha + k).pow(beta)
    }

    /// `xᵀ W y + bias` of two vectors for each of W's matrices: weight is (out, in1, in2) (`torch.nn.functional.bilinear`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let y = tensor([2.0]).bilinear(&tensor([3.0]), &tensor([[[4.0]]]), None);
    /// assert_eq!(y.to_vec::<f32>(), [24.0]);
    /// ```
    #[track_caller]
    pub fn bilinear(&self, other: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let _call = called("bilinear", [self, other, weight].into_iter().chain(bias));
        let w = weight.shape();
        let fits = w.len() == 3 && self.dim() == other.dim() && self.dim() > 0;
        if !fits || self.size(-1) != w[1] || other.size(-1) != w[2] {
            refuse("bilinear", &[self, other, weight], "needs (…, in1), (…, in2) and a weight (out, in1, in2)");
        }
        let mut shape = self.shape();
        let end = shape.len() - 1;
        shape[end] = w[0];
        let rows = shape[..end].iter().product::<usize>();
        let left = self.reshape([rows, w[1]]).matmul(&weight.permute([1, 0, 2]).reshape([w[1], w[0] * w[2]]));
        let y = (left.reshape([rows, w[0], w[2]]) * other.reshape([rows, 1, w[2]])).sum_dim(-1, false).reshape(shape);
        // as products of matrices, and not sums, integers stay as wide as they are
        let y = y.to(self.dtype());
        bias.map_or(y.clone(), |b| &y + b)
    }

    /// The `p`-norm of the difference of every two rows, those of the first row first (`torch.nn.functional.pdist`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[0.0, 0.0], [3.0, 4.0]]).pdist(2.0).to_vec::<f32>(), [5.0]);
    /// ```
    #[track_caller]
    pub fn pdist(&self, p: f64) -> Tensor {
        let _call = called("pdist", [self]);
        if self.dim() != 2 {
            refuse("pdist", &[self], "needs a matrix");
        }
        if p < 0.0 {
            refuse("pdist", &[self], format!("p must be 0 or more, not {p}"));
        }
        if !self.dtype().is_float() {
            refuse("pdist", &[self], format!("needs floats, not {}", self.dtype()));
        }
        let n = self.size(0);
        let pairs = Tensor::triu_indices(n, n, 1);
        let rows = |i: i64| self.index_select(0, &pairs.select(0, i));
        (rows(0) - rows(1)).norm_p(p, -1, false)
    }
}

/// How [`Tensor::embedding_bag`] makes one vector of a bag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BagMode {
    Sum,
    #[default]
    Mean,
    Max,
}

/// What torch's embedding bags take besides indices and weight.
#[derive(Clone, Debug, Default)]
pub struct EmbeddingBagOptions {
    /// Where each bag begins in a vector of indices; rows of a matrix are bags themselves.
    pub offsets: Option<Tensor>,
    pub mode: BagMode,
    /// A factor for each index, with mode Sum.
    pub per_sample_weights: Option<Tensor>,
    /// The last offset is where the last bag ends.
    pub include_last_offset: bool,
    /// Indices equal to this count for nothing.
    pub padding_idx: Option<i64>,
}

impl Tensor {
    /// The rows of `weight` that this tensor of indices names, those of each bag summed, averaged, or their maximum
    /// (`torch.nn.functional.embedding_bag`). An empty bag is zero.
    ///
    /// ```
    /// use xlazy::{EmbeddingBagOptions, prelude::*};
    /// let words = tensor([[1.0, 2.0], [3.0, 4.0]]);
    /// let y = tensor([[0, 1]]).embedding_bag(&words, EmbeddingBagOptions::default());
    /// assert_eq!(y.to_vec::<f32>(), [2.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn embedding_bag(&self, weight: &Tensor, options: EmbeddingBagOptions) -> Tensor {
        let _call = called("embedding_bag", [self, weight]);
        let op = "embedding_bag";
        if weight.dtype().is_half() {
            // sums of halves are rounded once, at the end
            let per_sample_weights = options.per_sample_weights.as_ref().map(Tensor::float);
            let options = EmbeddingBagOptions { per_sample_weights, ..options };
            return self.embedding_bag(&weight.float(), options).to(weight.dtype());
        }
        let (index, bags, count) = match (self.dim(), &options.offsets) {
            (2, None) => {
                let (bags, size) = (self.size(0), self.size(1));
                (self.flatten(), Tensor::arange(0, (bags * size) as i64, 1).floor_divide(size.max(1) as i64), bags)
            }
            (1, Some(offsets)) => {
                // how many bags begin up to each place, but for those that begin behind the last
                let (begins, places) = (offsets.long(), self.numel() as i64);
                let none = self.long().zeros_like();
                let bags = match places {
                    0 => none,
                    _ => none.index_add(0, &begins.clamp_max(places - 1), &begins.lt(places).long()).cumsum(0) - 1,
                };
                (self.clone(), bags, offsets.numel() - usize::from(options.include_last_offset))
            }
            _ => refuse(op, &[self, weight], "needs a matrix with a bag in each row, or a vector and offsets"),
        };
        if options.per_sample_weights.is_some() && options.mode != BagMode::Sum {
            refuse(op, &[self, weight], "weights of samples need mode Sum");
        }
        let padding = options.padding_idx.map(|p| if p < 0 { p + weight.size(0) as i64 } else { p });
        let kept = padding.map(|p| index.ne(p));
        // what is behind the last bag's end goes to one more, which is cut
        let bags = bags.clamp(0, count as i64);
        let rows = index.embedding(weight);
        let rows = match &options.per_sample_weights {
            Some(w) => rows * w.flatten().unsqueeze(-1),
            None => rows,
        };
        let zeros = Tensor::zeros([count + 1, weight.size(1)]).to(rows.dtype());
        let cut = |t: Tensor| t.narrow(0, 0, count as i64);
        if options.mode == BagMode::Max {
            let bags = kept.map_or(bags.clone(), |k| bags.where_(&k, count as i64));
            return cut(zeros.index_reduce(0, &bags, &rows, super::ScatterReduce::Amax, false));
        }
        let one = kept.as_ref().map_or(bags.ones_like(), |k| k.long());
        let rows = kept.map_or(rows.clone(), |k| rows.where_(&k.unsqueeze(-1), 0.0));
        let sum = cut(zeros.index_add(0, &bags, &rows));
        match options.mode {
            BagMode::Sum => sum,
            _ => {
                let each = cut(Tensor::zeros([count + 1]).long().index_add(0, &bags, &one));
                sum / each.clamp_min(1).unsqueeze(-1).to(rows.dtype())
            }
        }
    }
}

impl Tensor {
    /// With at least 1 dimension (`torch.atleast_1d`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor(1.0).atleast_1d().shape(), [1]);
    /// ```
    #[track_caller]
    pub fn atleast_1d(&self) -> Tensor {
        super::arrange::grown(self, 1)
    }

    /// With at least 2 dimensions: a vector becomes a row (`torch.atleast_2d`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1.0, 2.0]).atleast_2d().shape(), [1, 2]);
    /// ```
    #[track_caller]
    pub fn atleast_2d(&self) -> Tensor {
        super::arrange::grown(self, 2)
    }

    /// With at least 3 dimensions: a vector in the middle one, a matrix in the first two (`torch.atleast_3d`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1.0, 2.0]).atleast_3d().shape(), [1, 2, 1]);
    /// ```
    #[track_caller]
    pub fn atleast_3d(&self) -> Tensor {
        super::arrange::grown(self, 3)
    }

    #[track_caller]
    fn split_evenly(
        &self,
        op: &'static str,
        least: usize,
        dim: i64,
        sections: impl Into<Dims>,
        even: bool,
    ) -> Vec<Tensor> {
        let _line = caller_line();
        if self.dim() < least {
            refuse(op, &[self], format!("needs at least {least} dimensions"));
        }
        let sections = sections.into().0;
        match (even, sections.as_slice()) {
            (true, &[n]) if n > 0 && self.size(dim).is_multiple_of(n as usize) => {
                self.split(self.size(dim) / n as usize, dim)
            }
            (true, _) => refuse(op, &[self], format!("{} elements do not divide into {sections:?}", self.size(dim))),
            (false, at) => self.tensor_split(at, dim),
        }
    }

    /// Equal parts side by side: along the second dimension, of a vector along its only one (`torch.hsplit` with a number).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1, 2, 3, 4]).hsplit(2)[1].to_vec::<i64>(), [3, 4]);
    /// ```
    #[track_caller]
    pub fn hsplit(&self, sections: usize) -> Vec<Tensor> {
        let _call = called("hsplit", [self]);
        self.split_evenly("hsplit", 1, i64::from(self.dim() > 1), sections, true)
    }

    /// Equal parts one above the other (`torch.vsplit` with a number).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[1], [2]]).vsplit(2)[1].to_vec::<i64>(), [2]);
    /// ```
    #[track_caller]
    pub fn vsplit(&self, sections: usize) -> Vec<Tensor> {
        let _call = called("vsplit", [self]);
        self.split_evenly("vsplit", 2, 0, sections, true)
    }

    /// Equal parts along the third dimension (`torch.dsplit` with a number).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::ones([1, 1, 4]).dsplit(2).len(), 2);
    /// ```
    #[track_caller]
    pub fn dsplit(&self, sections: usize) -> Vec<Tensor> {
        let _call = called("dsplit", [self]);
        self.split_evenly("dsplit", 3, 2, sections, true)
    }

    /// As many parts along `dim` as `sections` says, the first ones longer by one where they cannot be equal
    /// (`torch.tensor_split` with a number).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1, 2, 3]).tensor_split_sections(2, 0)[0].to_vec::<i64>(), [1, 2]);
    /// ```
    #[track_caller]
    pub fn tensor_split_sections(&self, sections: usize, dim: i64) -> Vec<Tensor> {
        let _call = called("tensor_split_sections", [self]);
        if sections == 0 {
            refuse("tensor_split", &[self], "needs at least one part");
        }
        let n = self.size(dim);
        let size = |i: usize| n / sections + usize::from(i < n % sections);
        let sizes: Vec<usize> = (0..sections).map(size).collect();
        self.split_with_sizes(&sizes, dim)
    }

    /// [`Tensor::diff`] with something joined before and behind first (`torch.diff` with `prepend` and `append`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([1, 4]).diff_with(1, 0, Some(&tensor([0])), None);
    /// assert_eq!(x.to_vec::<i64>(), [1, 3]);
    /// ```
    #[track_caller]
    pub fn diff_with(&self, n: usize, dim: i64, prepend: Option<&Tensor>, append: Option<&Tensor>) -> Tensor {
        let _call = called("diff_with", [self]);
        let d = self.dim_index("diff", dim);
        if n == 0 {
            return self.clone();
        }
        let grown = |t: &Tensor| {
            let mut shape = self.shape();
            if t.dim() == 0 {
                shape[d] = 1;
                return t.expand(shape);
            }
            t.clone()
        };
        let (before, behind) = (prepend.map(grown), append.map(grown));
        let parts: Vec<&Tensor> = before.iter().chain([self]).chain(behind.iter()).collect();
        cat(&parts, dim).diff(n, dim)
    }
}
