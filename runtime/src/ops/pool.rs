//! Pooling over windows: maxima, sums and means. StableHLO: reduce_window; the gradient of a maximum is
//! select_and_scatter.
use super::conv::{batched, each};
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, called, caller_line, refuse, trace};
use xlazy_core::emit::{Reducer, array};
use xlazy_core::ir::Role::{Size, Stride};
use xlazy_core::ir::{Attr, AttrDef, AttrsExt, Kind, Lower, Rule, Sig, attr};
use xlazy_core::ty::{Category, DType, Dims, Shape, Type};

// One number for each dimension of the operand. `hole`: distance between the elements of a window (maxima) or of the
// operand (sums).
const ATTRS: &[AttrDef] =
    &[attr("window", Size), attr("stride", Stride), attr("low", Size), attr("high", Size), attr("hole", Stride)];

// The same, and how many of the last dimensions are windowed.
const SPACE_ATTRS: &[AttrDef] = &[
    attr("window", Size),
    attr("stride", Stride),
    attr("low", Size),
    attr("high", Size),
    attr("hole", Stride),
    attr("space", Size),
];

fn windows(s: &Sig, hole_in_window: bool) -> std::result::Result<Shape, String> {
    let mut shape = s.shape(0).clone();
    for d in 0..shape.len() {
        let at = |i: usize| s.attrs.ints(i)[d];
        let n = shape[d] as i64;
        let (n, window) = match hole_in_window {
            true => (n, (at(0) - 1) * at(4) + 1),
            false => (if n == 0 { 0 } else { (n - 1) * at(4) + 1 }, at(0)),
        };
        if (at(0), at(1)) == (1, 1) {
            // a dimension that is not pooled may be empty
            shape[d] = (n + at(2) + at(3)).max(0) as usize;
            continue;
        }
        let room = n + at(2) + at(3);
        if window > room {
            return Err(format!("a window over {window} elements of dimension {d}, which has {room} with its padding"));
        }
        shape[d] = ((room - window) / at(1) + 1) as usize;
    }
    Ok(shape)
}

fn attributes(attrs: &[Attr], hole: &str) -> String {
    let padding: Vec<String> =
        attrs.ints(2).iter().zip(attrs.ints(3)).map(|(low, high)| format!("[{low}, {high}]")).collect();
    let hole = if hole.is_empty() { String::new() } else { format!(", {hole} = array<i64{}>", array(attrs.ints(4))) };
    format!(
        "{{window_dimensions = array<i64{}>, window_strides = array<i64{}>, padding = dense<[{}]> : tensor<{}x2xi64>{hole}}}",
        array(attrs.ints(0)),
        array(attrs.ints(1)),
        padding.join(", "),
        padding.len(),
    )
}

static SUM_POOL: Entry = Entry::new(
    "sum_pool",
    |s| Ok(Type::new(s.dtype(0), windows(s, false)?)),
    |l| {
        let (x, out) = (l.x(0), l.out.clone());
        if x.shape().numel() == 0 {
            return l.constant(0.0, &out);
        }
        let zero = l.neutral(Reducer::Add, x.dtype());
        let region = l.combining(Reducer::Add, x.dtype());
        let attributes = attributes(l.attrs, "base_dilations");
        let [y] = l.with_regions("reduce_window", &[&x, &zero], &[region], &attributes, [out]);
        y
    },
)
.kind(Kind::Window)
.attrs(ATTRS)
.samples(|| {
    let of = |x: &[usize], a: [&[i64]; 5]| Sample::of(&[x]).attrs(a.iter().map(|v| v.to_vec().into()).collect());
    vec![of(&[2, 5], [&[1, 2], &[1, 2], &[0, 1], &[0, 0], &[1, 1]]), of(&[4], [&[3], &[1], &[2], &[1], &[2]])]
})
.grad(|g| {
    // the windows that an element was in, found by sliding the same window over the spread-out gradient
    let a = &g.attrs;
    let (x, dy) = (g.x(0).shape(), g.dy.shape());
    let low: Vec<i64> = a.ints(0).iter().zip(a.ints(2)).map(|(w, low)| w - 1 - low).collect();
    let high = (0..x.len()).map(|d| {
        let n = (x[d] as i64 - 1) * a.ints(4)[d] + 1;
        n + a.ints(0)[d] - 1 - ((dy[d] as i64 - 1) * a.ints(1)[d] + 1) - low[d]
    });
    let attrs: [Attr; 5] =
        [a[0].clone(), a[4].clone(), low.clone().into(), high.collect::<Vec<_>>().into(), a[1].clone()];
    vec![Some(trace(&SUM_POOL, [(&g.dy).into()], attrs))]
})
.bucket(bucket::windows);

fn max_rule(s: &Sig) -> Rule {
    if s.dtype(0) == DType::Bool {
        return Err("not defined for bool tensors; convert with `.float()`".into());
    }
    Ok(Type::new(s.dtype(0), windows(s, true)?))
}

fn max_samples() -> Vec<Sample> {
    let of = |x: &[usize], a: [&[i64]; 5]| {
        let mut attrs: Vec<Attr> = a.iter().map(|v| v.to_vec().into()).collect();
        attrs.push(1usize.into());
        Sample::of(&[x]).attrs(attrs)
    };
    vec![
        of(&[2, 5], [&[1, 2], &[1, 2], &[0, 1], &[0, 0], &[1, 1]]),
        of(&[2, 6], [&[1, 3], &[1, 1], &[0, 0], &[0, 0], &[1, 1]]),
        of(&[1, 6], [&[1, 2], &[1, 2], &[0, 1], &[0, 1], &[1, 2]]),
    ]
}

static MAX_POOL: Entry = Entry::new("max_pool", max_rule, |l| {
    let (x, out) = (l.x(0), l.out.clone());
    if out.shape.numel() == 0 {
        return l.constant(0.0, &out);
    }
    let least = l.neutral(Reducer::Max, x.dtype());
    let region = l.extreme(true, x.dtype());
    let attributes = attributes(l.attrs, "window_dilations");
    let [y] = l.with_regions("reduce_window", &[&x, &least], &[region], &attributes, [out]);
    y
})
.kind(Kind::Window)
.attrs(SPACE_ATTRS)
.samples(max_samples)
.grad(|g| {
    let x = g.x(0);
    if g.attrs.ints(4).iter().all(|&d| d == 1) {
        return vec![Some(trace(&MAX_POOL_BACKWARD, [x.into(), (&g.dy).into()], g.attrs.to_vec()))];
    }
    // select_and_scatter knows no dilation: add each gradient where its maximum is
    let space = g.attrs.index(5);
    let places = trace(&MAX_POOL_PLACES, [x.into()], g.attrs.to_vec());
    let dx = flat_space(&x.zeros_like(), space).scatter_add(-1, &flat_space(&places, space), flat_space(&g.dy, space));
    vec![Some(dx.reshape(x.shape()))]
})
.bucket(bucket::windows);

// All spatial dimensions, the last ones, as one.
#[track_caller]
fn flat_space(x: &Tensor, space: usize) -> Tensor {
    x.flatten_dims(-(space as i64), -1)
}

static MAX_POOL_BACKWARD: Entry = Entry::new(
    "max_pool_backward",
    |s| Ok(s.inputs[0].clone()),
    |l| {
        let (x, dy, out) = (l.x(0), l.cast(1), l.out.clone());
        if dy.shape().numel() == 0 {
            return l.constant(0.0, &out);
        }
        let zero = l.scalar(0.0, x.dtype());
        let select = l.comparing("GE", x.dtype());
        let add = l.combining(Reducer::Add, x.dtype());
        let attributes = attributes(l.attrs, "");
        let [dx] = l.with_regions("select_and_scatter", &[&x, &dy, &zero], &[select, add], &attributes, [out]);
        dx
    },
)
.kind(Kind::Window)
.attrs(SPACE_ATTRS)
.samples(|| {
    let mut attrs: Vec<Attr> = [vec![1i64, 2], vec![1, 2], vec![0, 0], vec![0, 0], vec![1, 1]].map(Attr::from).to_vec();
    attrs.push(1usize.into());
    vec![Sample::of(&[&[2, 4], &[2, 2]]).attrs(attrs)]
});

// Where each maximum is, as a position in the flattened space.
static MAX_POOL_PLACES: Entry = Entry::new(
    "max_pool_indices",
    |s| Ok(Type::new(DType::I64, max_rule(s)?.shape)),
    |l: &mut Lower| {
        let (x, out) = (l.x(0), l.out.clone());
        if out.shape.numel() == 0 {
            return l.constant(0.0, &out);
        }
        let dims: Vec<usize> = (x.rank() - l.attrs.index(5)..x.rank()).collect();
        let space = Shape::new(&x.shape()[dims[0]..]);
        let counting = l.iota(&Type::new(DType::I64, Shape::new(&[space.numel()])), 0);
        let grid = l.reshape(&counting, &space);
        let places = l.broadcast_in_dim(&grid, x.shape(), &dims);
        let attributes = attributes(l.attrs, "window_dilations");
        l.window_arg_max(&x, &places, &attributes, &out.shape)
    },
)
.kind(Kind::Window)
.attrs(SPACE_ATTRS)
.samples(max_samples)
.bucket(bucket::windows);

pub(super) static OPS: &[&Entry] = &[&SUM_POOL, &MAX_POOL, &MAX_POOL_BACKWARD, &MAX_POOL_PLACES];

/// What torch's max pooling takes besides the kernel's size; an empty stride is the kernel's size.
#[derive(Clone, Debug)]
pub struct MaxPoolOptions {
    pub stride: Dims,
    pub padding: Dims,
    pub dilation: Dims,
    /// Keep a last window that reaches beyond the edge.
    pub ceil_mode: bool,
}

impl Default for MaxPoolOptions {
    fn default() -> MaxPoolOptions {
        MaxPoolOptions { stride: ().into(), padding: 0.into(), dilation: 1.into(), ceil_mode: false }
    }
}

/// What torch's average pooling takes besides the kernel's size; an empty stride is the kernel's size.
#[derive(Clone, Debug)]
pub struct AvgPoolOptions {
    pub stride: Dims,
    pub padding: Dims,
    /// Keep a last window that reaches beyond the edge.
    pub ceil_mode: bool,
    /// Count the zeros of the padding when dividing.
    pub count_include_pad: bool,
    /// Divide by this instead of by the number of elements.
    pub divisor_override: Option<i64>,
}

impl Default for AvgPoolOptions {
    fn default() -> AvgPoolOptions {
        AvgPoolOptions {
            stride: ().into(),
            padding: 0.into(),
            ceil_mode: false,
            count_include_pad: true,
            divisor_override: None,
        }
    }
}

/// The windows along the spatial dimensions.
struct Windows {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    /// Padding at the far end, as `ceil_mode` needs it.
    high: Vec<i64>,
    sizes: Vec<i64>,
    out: Vec<i64>,
}

impl Windows {
    #[track_caller]
    fn new(
        op: &'static str,
        x: &Tensor,
        n: usize,
        [kernel, stride, padding, dilation]: [&Dims; 4],
        ceil: bool,
    ) -> Windows {
        let _line = caller_line();
        if !(n + 1..=n + 2).contains(&x.dim()) {
            refuse(op, &[x], format!("needs an input (batch, channels, {n} × space)"));
        }
        let kernel = each(op, "the kernel's size", kernel, n, 1);
        let stride = if stride.0.is_empty() { kernel.clone() } else { each(op, "the stride", stride, n, 1) };
        let padding = each(op, "the padding", padding, n, 0);
        let dilation = each(op, "the dilation", dilation, n, 1);
        let shape = x.shape();
        let sizes: Vec<i64> = shape[shape.len() - n..].iter().map(|&d| d as i64).collect();
        let (mut high, mut out) = (padding.clone(), vec![0; n]);
        for d in 0..n {
            let reach = (kernel[d] - 1) * dilation[d] + 1;
            let room = sizes[d] + 2 * padding[d] - reach;
            if padding[d] * 2 > reach || room < 0 {
                refuse(
                    op,
                    &[x],
                    format!("padding {} and a kernel reaching over {reach} do not fit {}", padding[d], sizes[d]),
                );
            }
            out[d] = room / stride[d] + 1;
            // the last window must begin inside the input or its padding on the near side
            if ceil && room % stride[d] != 0 && out[d] * stride[d] < sizes[d] + padding[d] {
                out[d] += 1;
            }
            high[d] = (out[d] - 1) * stride[d] + reach - sizes[d] - padding[d];
        }
        Windows { kernel, stride, padding, dilation, high, sizes, out }
    }

    fn attrs(&self, rank: usize, hole: &[i64]) -> [Attr; 5] {
        let front = rank - self.kernel.len();
        let full = |v: &[i64], fill: i64| -> Attr {
            let mut all = vec![fill; front];
            all.extend(v);
            all.into()
        };
        [full(&self.kernel, 1), full(&self.stride, 1), full(&self.padding, 0), full(&self.high, 0), full(hole, 1)]
    }

    /// How many elements each window along dimension `d` counts.
    fn counts(&self, d: usize, include_pad: bool) -> Vec<f64> {
        let (n, pad) = (self.sizes[d], self.padding[d]);
        (0..self.out[d])
            .map(|o| {
                let start = o * self.stride[d] - pad;
                let end = (start + self.kernel[d]).min(n + pad);
                let inside = end.min(n) - start.max(0);
                if include_pad { (end - start) as f64 } else { inside as f64 }
            })
            .collect()
    }
}

impl Tensor {
    #[track_caller]
    fn max_pool(&self, op: &'static str, n: usize, kernel: Dims, o: &MaxPoolOptions, which: &'static Entry) -> Tensor {
        let _call = called(op, [self]);
        let w = Windows::new(op, self, n, [&kernel, &o.stride, &o.padding, &o.dilation], o.ceil_mode);
        let mut attrs = w.attrs(self.dim(), &w.dilation).to_vec();
        attrs.push(n.into());
        trace(which, [self.into()], attrs)
    }

    /// The largest element of each window over the last dimension (`torch.nn.functional.max_pool1d`).
    ///
    /// `tensor([[[1.0, 3.0, 2.0, 5.0]]]).max_pool1d(2, MaxPoolOptions::default())` is `[[[3., 5.]]]`.
    #[track_caller]
    pub fn max_pool1d(&self, kernel_size: impl Into<Dims>, options: MaxPoolOptions) -> Tensor {
        self.max_pool("max_pool1d", 1, kernel_size.into(), &options, &MAX_POOL)
    }

    /// The largest element of each window over the last two dimensions (`torch.nn.functional.max_pool2d`). StableHLO:
    /// reduce_window.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::arange(0.0, 16.0, 1.0).reshape([1, 1, 4, 4]);
    /// assert_eq!(x.max_pool2d(2, MaxPoolOptions::default()).to_vec::<f32>(), [5.0, 7.0, 13.0, 15.0]);
    /// ```
    #[track_caller]
    pub fn max_pool2d(&self, kernel_size: impl Into<Dims>, options: MaxPoolOptions) -> Tensor {
        self.max_pool("max_pool2d", 2, kernel_size.into(), &options, &MAX_POOL)
    }

    /// The largest element of each window over the last three dimensions (`torch.nn.functional.max_pool3d`).
    ///
    /// `Tensor::ones([1, 1, 4, 4, 4]).max_pool3d(2, MaxPoolOptions::default()).shape()` is `[1,1,2,2,2]`.
    #[track_caller]
    pub fn max_pool3d(&self, kernel_size: impl Into<Dims>, options: MaxPoolOptions) -> Tensor {
        self.max_pool("max_pool3d", 3, kernel_size.into(), &options, &MAX_POOL)
    }

    /// Where the maxima of [`Tensor::max_pool1d`], [`Tensor::max_pool2d`] or [`Tensor::max_pool3d`] (`space` dimensions)
    /// are, as positions in the flattened space, int64 (`return_indices=True`).
    #[track_caller]
    pub fn max_pool_indices(&self, space: usize, kernel_size: impl Into<Dims>, options: MaxPoolOptions) -> Tensor {
        self.max_pool("max_pool_indices", space, kernel_size.into(), &options, &MAX_POOL_PLACES)
    }

    /// Values put back to where max pooling found them, zeros elsewhere; `output_size` names the spatial sizes
    /// (`torch.nn.functional.max_unpool1d`,
    /// `torch.nn.functional.max_unpool2d`, `torch.nn.functional.max_unpool3d`).
    ///
    /// `tensor([[5.0]]).max_unpool(&tensor([[2]]), 4)` is `[[0., 0., 5., 0.]]`.
    #[track_caller]
    pub fn max_unpool(&self, indices: &Tensor, output_size: impl Into<Dims>) -> Tensor {
        let _call = called("max_unpool", [self, indices]);
        let space = output_size.into().shape("max_unpool").unwrap_or_else(|e| e.raise());
        if self.shape() != indices.shape() || space.len() > self.dim() {
            refuse("max_unpool", &[self, indices], "the indices must have the input's shape");
        }
        let mut shape = Shape::new(&self.shape()[..self.dim() - space.len()]);
        let mut flat = shape.clone();
        flat.push(space.numel());
        space.iter().for_each(|&d| shape.push(d));
        let (values, indices) = (flat_space(self, space.len()), flat_space(indices, space.len()));
        Tensor::zeros(&flat).to(self.dtype()).scatter(-1, &indices, &values).reshape(&shape)
    }

    #[track_caller]
    fn avg_pool(&self, op: &'static str, n: usize, kernel: Dims, o: &AvgPoolOptions) -> Tensor {
        let _call = called(op, [self]);
        if self.dtype().is_half() {
            // summed in f32, and rounded once
            return self.float().avg_pool(op, n, kernel, o).to(self.dtype());
        }
        let w = Windows::new(op, self, n, [&kernel, &o.stride, &o.padding, &1.into()], o.ceil_mode);
        let ones = vec![1; n];
        let sum = trace(&SUM_POOL, [self.into()], w.attrs(self.dim(), &ones));
        let divided = |count: Tensor| match self.dtype().category() {
            Category::Int => sum.div_trunc(count.to(self.dtype())),
            _ => &sum / &count,
        };
        if let Some(d) = o.divisor_override {
            if d == 0 {
                refuse(op, &[self], "the divisor must not be 0");
            }
            return divided(Tensor::full((), d).to(self.dtype()));
        }
        let dtype = self.dtype().to_float();
        let mut count: Option<Tensor> = None;
        for d in 0..n {
            let mut shape = vec![1; n];
            shape[d] = w.out[d];
            let along = Tensor::folded_floats(&w.counts(d, o.count_include_pad), dtype).reshape(shape);
            count = Some(count.map_or(along.clone(), |c| c * along));
        }
        count.map_or(sum.clone(), divided)
    }

    /// The mean of each window over the last dimension (`torch.nn.functional.avg_pool1d`).
    ///
    /// `tensor([[[1.0, 3.0, 2.0, 5.0]]]).avg_pool1d(2, AvgPoolOptions::default())` is `[[[2.0000, 3.5000]]]`.
    #[track_caller]
    pub fn avg_pool1d(&self, kernel_size: impl Into<Dims>, options: AvgPoolOptions) -> Tensor {
        self.avg_pool("avg_pool1d", 1, kernel_size.into(), &options)
    }

    /// The mean of each window over the last two dimensions (`torch.nn.functional.avg_pool2d`). StableHLO: reduce_window.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::arange(0.0, 4.0, 1.0).reshape([1, 1, 2, 2]);
    /// assert_eq!(x.avg_pool2d(2, AvgPoolOptions::default()).item(), 1.5);
    /// ```
    #[track_caller]
    pub fn avg_pool2d(&self, kernel_size: impl Into<Dims>, options: AvgPoolOptions) -> Tensor {
        self.avg_pool("avg_pool2d", 2, kernel_size.into(), &options)
    }

    /// The mean of each window over the last three dimensions (`torch.nn.functional.avg_pool3d`).
    ///
    /// `Tensor::ones([1, 1, 4, 4, 4]).avg_pool3d(2, AvgPoolOptions::default()).shape()` is `[1,1,2,2,2]`.
    #[track_caller]
    pub fn avg_pool3d(&self, kernel_size: impl Into<Dims>, options: AvgPoolOptions) -> Tensor {
        self.avg_pool("avg_pool3d", 3, kernel_size.into(), &options)
    }

    /// How many windows there are along each of the last `n` dimensions; -1 keeps a size.
    #[track_caller]
    pub(super) fn adaptive_sizes(&self, op: &'static str, n: usize, output: &Dims) -> Vec<usize> {
        let _line = caller_line();
        let all = if output.0.len() == 1 { vec![output.0[0]; n] } else { output.0.clone() };
        if all.len() != n {
            refuse(op, &[self], format!("{:?} names {} sizes, {n} are needed", output.0, all.len()));
        }
        if let Some(size) = all.iter().find(|size| **size < -1) {
            refuse(op, &[self], format!("a size of {size}: it must be 0 or more, or -1 to keep the input's"));
        }
        let shape = self.shape();
        all.iter().zip(&shape[shape.len() - n..]).map(|(&d, &kept)| if d < 0 { kept } else { d as usize }).collect()
    }

    #[track_caller]
    pub(super) fn adaptive_avg_pool(&self, op: &'static str, n: usize, output: &Dims) -> Tensor {
        let _call = called(op, [self]);
        if !(n + 1..=n + 2).contains(&self.dim()) {
            refuse(op, &[self], format!("needs an input (batch, channels, {n} × space)"));
        }
        let sizes = self.adaptive_sizes(op, n, output);
        batched(self, n, |x| {
            let (shape, first) = (x.shape(), x.dim() - n);
            if (0..n).all(|d| sizes[d] > 0 && shape[first + d] % sizes[d] == 0) {
                let kernel: Vec<usize> = (0..n).map(|d| shape[first + d] / sizes[d]).collect();
                return x.avg_pool(op, n, kernel.into(), &AvgPoolOptions::default());
            }
            (0..n).fold(x.clone(), |x, d| x.average_bins((first + d) as i64, sizes[d]))
        })
    }

    /// Means of as many windows as `output_size` says, over the last dimension
    /// (`torch.nn.functional.adaptive_avg_pool1d`).
    ///
    /// `tensor([[[1.0, 3.0, 2.0, 6.0]]]).adaptive_avg_pool1d(2)` is `[[[2., 4.]]]`.
    #[track_caller]
    pub fn adaptive_avg_pool1d(&self, output_size: impl Into<Dims>) -> Tensor {
        self.adaptive_avg_pool("adaptive_avg_pool1d", 1, &output_size.into())
    }

    /// Means of as many windows as `output_size` says, over the last two dimensions; -1 keeps a size
    /// (`torch.nn.functional.adaptive_avg_pool2d`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(Tensor::ones([2, 3, 7, 5]).adaptive_avg_pool2d(1).shape(), [2, 3, 1, 1]);
    /// ```
    #[track_caller]
    pub fn adaptive_avg_pool2d(&self, output_size: impl Into<Dims>) -> Tensor {
        self.adaptive_avg_pool("adaptive_avg_pool2d", 2, &output_size.into())
    }

    /// Means of as many windows as `output_size` says, over the last three dimensions
    /// (`torch.nn.functional.adaptive_avg_pool3d`).
    ///
    /// `Tensor::ones([1, 1, 4, 4, 4]).adaptive_avg_pool3d(1).shape()` is `[1,1,1,1,1]`.
    #[track_caller]
    pub fn adaptive_avg_pool3d(&self, output_size: impl Into<Dims>) -> Tensor {
        self.adaptive_avg_pool("adaptive_avg_pool3d", 3, &output_size.into())
    }
}
