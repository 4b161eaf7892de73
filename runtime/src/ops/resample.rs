//! Resizing: interpolation, padding by mirrored or repeated elements, pixel shuffling. Which elements contribute, and how
//! much, follows from the shapes alone and is folded into the program.
use super::base::rounded_once;
use crate::tensor::{Entry, Sample, Tensor, called, caller_line, refuse, trace};
use xlazy_core::ir::Role::{Constant, Dtype};
use xlazy_core::ir::{Attr, AttrsExt, Healed, Kind, attr};
use xlazy_core::ty::{DType, Dims, Shape, Type};

// Numbers that mostly follow from shapes: integers or floats.
static FOLDED: Entry = Entry::new(
    "constant",
    |s| {
        let n = match &s.attrs[0] {
            Attr::Floats(v) => v.len(),
            _ => s.attrs.ints(0).len(),
        };
        Ok(Type::new(s.attrs.dtype(1), Shape::new(&[n])))
    },
    |l| match &l.attrs[0] {
        Attr::Floats(v) => l.e.floats(v, l.out.dtype),
        _ => l.e.ints(l.attrs.ints(0), l.out.dtype),
    },
)
.kind(Kind::Made)
.attrs(&[attr("values", Constant), attr("dtype", Dtype)])
.samples(|| {
    vec![
        Sample::of(&[]).attrs(vec![vec![1i64, -2].into(), DType::I64.into()]),
        Sample::of(&[]).attrs(vec![vec![1.5, 0.0].into(), DType::F32.into()]),
    ]
})
.heal(|attrs| Some(Healed { op: &LIFTED.op, attrs: [attrs[1].clone()].into(), value: attrs[0].clone() }));

// The same numbers as a parameter.
static LIFTED: Entry =
    Entry::new("constant.values", |s| Ok(Type::new(s.attrs.dtype(0), s.shape(0).clone())), |l| l.cast(0))
        .kind(Kind::Made)
        .attrs(&[attr("dtype", Dtype)])
        .samples(|| vec![Sample::of(&[]).index(&[3], 5).attrs(vec![DType::F32.into()])]);

pub(super) static OPS: &[&Entry] = &[&FOLDED, &LIFTED];

/// How [`Tensor::interpolate`] finds values between elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Interpolation {
    #[default]
    Nearest,
    NearestExact,
    /// Linear in each dimension: torch's linear, bilinear and trilinear.
    Linear,
    Bicubic,
    Area,
}

/// What [`Tensor::interpolate`] takes: a size, or a factor for each dimension.
#[derive(Clone, Debug, Default)]
pub struct InterpolateOptions {
    pub size: Option<Dims>,
    pub scale_factor: Option<Vec<f64>>,
    pub mode: Interpolation,
    pub align_corners: bool,
    /// Work out the positions from the sizes instead of the factor given.
    pub recompute_scale_factor: bool,
}

/// What [`Tensor::pad_mode`] fills with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadMode {
    /// Mirrored at the edge, which is not repeated.
    Reflect,
    /// The edge's element.
    Replicate,
    /// The other side's elements.
    Circular,
}

/// Elements that contribute to each position of a resized dimension: their indices, and how much each counts.
type Taps = Vec<(Vec<i64>, Vec<f64>)>;

// The distance in the input of two neighbours in the output, in f32 as torch computes it.
fn scale(n: usize, out: usize, factor: Option<f64>, align_corners: bool) -> f32 {
    match (align_corners, factor) {
        (true, _) if out > 1 => (n as f32 - 1.0) / (out as f32 - 1.0),
        (true, _) => 0.0,
        (false, Some(f)) => (1.0 / f) as f32,
        (false, None) => n as f32 / out as f32,
    }
}

fn taps(mode: Interpolation, n: usize, out: usize, factor: Option<f64>, align: bool) -> Taps {
    let last = n as i64 - 1;
    let step = scale(n, out, factor, align);
    let centre = |o: usize| if align { step * o as f32 } else { step * (o as f32 + 0.5) - 0.5 };
    let every = |f: &dyn Fn(usize) -> (i64, f64)| (0..out).map(f).unzip::<i64, f64, Vec<_>, Vec<_>>();
    match mode {
        Interpolation::Nearest => vec![every(&|o| (((o as f32 * step).floor() as i64).min(last), 1.0))],
        Interpolation::NearestExact => vec![every(&|o| ((((o as f32 + 0.5) * step).floor() as i64).min(last), 1.0))],
        Interpolation::Linear => {
            let at = |o: usize| {
                let source = centre(o).max(0.0);
                let low = (source.floor() as i64).min(last);
                (low, (low + 1).min(last), (source - low as f32) as f64)
            };
            vec![every(&|o| (at(o).0, 1.0 - at(o).2)), every(&|o| (at(o).1, at(o).2))]
        }
        _ => (0..4i64)
            .map(|k| {
                every(&|o| {
                    let source = centre(o);
                    let low = source.floor();
                    let t = (source - low) as f64;
                    ((low as i64 - 1 + k).clamp(0, last), cubic((t - (k - 1) as f64).abs()))
                })
            })
            .collect(),
    }
}

// Weights as torch holds them for bytes: of 16 bits, with as many behind the point as the largest leaves.
fn in_16_bits(taps: Taps) -> Taps {
    let largest = taps.iter().flat_map(|(_, weights)| weights).fold(0.0, |a: f64, &w| a.max(w));
    let one = |bits: i32| 2f64.powi(bits);
    let bits = (0..22).find(|&b| (0.5 + largest * one(b + 1)).floor() >= one(15)).unwrap_or(22);
    let rounded = |w: f64| (w * one(bits)).round() / one(bits);
    taps.into_iter().map(|(at, weights)| (at, weights.into_iter().map(rounded).collect())).collect()
}

// The cubic convolution kernel with torch's a = -0.75.
fn cubic(x: f64) -> f64 {
    let a = -0.75;
    if x <= 1.0 { ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0 } else { ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a }
}

impl Tensor {
    #[track_caller]
    pub(super) fn folded_ints(values: Vec<i64>) -> Tensor {
        trace(&FOLDED, [], [values.into(), DType::I64.into()])
    }

    #[track_caller]
    pub(super) fn folded_floats(values: &[f64], dtype: DType) -> Tensor {
        trace(&FOLDED, [], [values.to_vec().into(), dtype.into()])
    }

    #[track_caller]
    fn tapped(&self, dim: i64, taps: Taps) -> Tensor {
        let _line = caller_line();
        let d = self.dim_index("interpolate", dim);
        let mut wide = vec![1i64; self.dim()];
        wide[d] = -1;
        let part = |(indices, weights): (Vec<i64>, Vec<f64>)| {
            let x = self.index_select(dim, &Tensor::folded_ints(indices));
            match weights.iter().all(|&w| w == 1.0) {
                true => x,
                false => x * Tensor::folded_floats(&weights, self.dtype()).reshape(wide.clone()),
            }
        };
        taps.into_iter().map(part).reduce(|a, b| a + b).expect("every mode has a tap")
    }

    // Means over `out` windows that cover the dimension, which may overlap.
    #[track_caller]
    pub(super) fn average_bins(&self, dim: i64, out: usize) -> Tensor {
        let _line = caller_line();
        let n = self.size(dim);
        if n == out || out == 0 {
            return self.narrow(dim, 0, out as i64);
        }
        let bin = |o: usize| (o * n / out, ((o + 1) * n).div_ceil(out));
        let widest = (0..out).map(|o| bin(o).1 - bin(o).0).max().unwrap_or(0);
        let taps = (0..widest).map(|k| {
            let (start, end) = (|o| bin(o).0, |o| bin(o).1);
            let inside = |o: usize| start(o) + k < end(o);
            let index = (0..out).map(|o| if inside(o) { (start(o) + k) as i64 } else { start(o) as i64 }).collect();
            let weight = (0..out).map(|o| if inside(o) { 1.0 / (end(o) - start(o)) as f64 } else { 0.0 }).collect();
            (index, weight)
        });
        self.tapped(dim, taps.collect())
    }

    /// Resized in all dimensions after the first two (`torch.nn.functional.interpolate`,
    /// `torch.nn.functional.upsample_nearest`, `torch.nn.functional.upsample_bilinear`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::arange(0.0, 2.0, 1.0).reshape([1, 1, 2]);
    /// let y = x.interpolate(InterpolateOptions { size: Some(4.into()), ..Default::default() });
    /// assert_eq!(y.to_vec::<f32>(), [0.0, 0.0, 1.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn interpolate(&self, options: InterpolateOptions) -> Tensor {
        let _call = called("interpolate", [self]);
        if self.dtype().is_half() && self.dim() > 3 {
            // a dimension after the other, rounded once
            return rounded_once([self], |[x]| x.interpolate(options));
        }
        let op = "interpolate";
        if self.dim() < 3 {
            refuse(op, &[self], "needs an input (batch, channels, space…)");
        }
        let space = self.shape()[2..].to_vec();
        let n = space.len();
        let mut factors: Vec<Option<f64>> = vec![None; n];
        let sizes: Vec<usize> = match (&options.size, &options.scale_factor) {
            (Some(size), None) => {
                let all = if size.0.len() == 1 { vec![size.0[0]; n] } else { size.0.clone() };
                if all.len() != n || all.iter().any(|&d| d < 1) {
                    refuse(op, &[self], format!("{:?} is no size for {n} dimensions", size.0));
                }
                all.iter().map(|&d| d as usize).collect()
            }
            (None, Some(f)) => {
                let all = if f.len() == 1 { vec![f[0]; n] } else { f.clone() };
                if all.len() != n || all.iter().any(|&f| f <= 0.0) {
                    refuse(op, &[self], format!("{f:?} are no factors for {n} dimensions"));
                }
                if !options.recompute_scale_factor {
                    factors = all.iter().copied().map(Some).collect();
                }
                space.iter().zip(&all).map(|(&d, f)| (d as f64 * f).floor() as usize).collect()
            }
            _ => refuse(op, &[self], "needs either a size or a scale factor"),
        };
        if options.mode == Interpolation::Area {
            let sizes = Dims::from(sizes);
            return self.adaptive_avg_pool(op, n, &sizes);
        }
        let between = !matches!(options.mode, Interpolation::Nearest | Interpolation::NearestExact);
        let bytes = between && self.dtype() == DType::U8;
        if between && !bytes && !self.dtype().is_differentiable() {
            refuse(op, &[self], "integers other than uint8 have no numbers between them: convert with `.float()`");
        }
        let along = |x: Tensor, d: usize| match space[d] == sizes[d] && factors[d].is_none_or(|f| f == 1.0) {
            true => x,
            false => {
                let taps = taps(options.mode, space[d], sizes[d], factors[d], options.align_corners);
                x.tapped(d as i64 + 2, if bytes { in_16_bits(taps) } else { taps })
            }
        };
        match bytes {
            // as torch does it: rows first, weights of 16 bits, rounded after each dimension
            true => (0..n)
                .rev()
                .fold(self.clone(), |x, d| (along(x.float(), d) + 0.5).floor().clamp(0.0, 255.0).to(DType::U8)),
            false => (0..n).fold(self.clone(), along),
        }
    }

    /// Padded by elements of the tensor itself: pairs of amounts from the last dimension on; negative amounts crop where
    /// the mode allows it (`torch.nn.functional.pad` with mode reflect, replicate or circular).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[1, 2, 3]]);
    /// assert_eq!(x.pad_mode([2, 1], PadMode::Reflect).to_vec::<i64>(), [3, 2, 1, 2, 3, 2]);
    /// ```
    #[track_caller]
    pub fn pad_mode(&self, pad: impl Into<Dims>, mode: PadMode) -> Tensor {
        let _call = called(if mode == PadMode::Circular { "pad_circular" } else { "pad_mode" }, [self]);
        if self.dtype().is_half() && self.requires_grad() {
            // gradients add up in a dimension after the other, rounded once
            return rounded_once([self], |[x]| x.pad_mode(pad, mode));
        }
        let amounts = pad.into().0;
        if amounts.len() % 2 != 0 || amounts.len() / 2 > self.dim() {
            refuse("pad", &[self], format!("{amounts:?} is not a pair of amounts for each of the last dimensions"));
        }
        let mut x = self.clone();
        for (i, pair) in amounts.chunks_exact(2).enumerate() {
            let dim = -1 - i as i64;
            let mut n = self.size(dim) as i64;
            let (mut low, mut high) = (pair[0], pair[1]);
            if mode == PadMode::Circular && low.min(high) < 0 && n + low.min(0) + high.min(0) > 0 {
                // what is cropped comes in nowhere
                let kept = n + low.min(0) + high.min(0);
                x = x.narrow(dim, (-low).max(0), kept);
                (n, low, high) = (kept, low.max(0), high.max(0));
            }
            let most = match mode {
                PadMode::Reflect => n - 1,
                PadMode::Replicate => i64::MAX,
                PadMode::Circular => n,
            };
            if low > most || high > most || n + low + high < 0 || (n == 0 && low + high > 0) {
                refuse("pad", &[self], format!("padding by {low} and {high} is more than {n} elements allow"));
            }
            if (low, high) == (0, 0) {
                continue;
            }
            let at = |o: i64| match mode {
                PadMode::Replicate => (o - low).clamp(0, n - 1),
                PadMode::Circular => (o - low).rem_euclid(n),
                PadMode::Reflect => {
                    let p = (o - low).abs();
                    if p >= n { 2 * (n - 1) - p } else { p }
                }
            };
            x = x.index_select(dim, &Tensor::folded_ints((0..n + low + high).map(at).collect()));
        }
        x
    }

    /// Channels rearranged into space: (…, C·r², H, W) becomes (…, C, H·r, W·r) (`torch.nn.functional.pixel_shuffle`).
    ///
    /// `tensor([1, 2, 3, 4]).reshape([1, 4, 1, 1]).pixel_shuffle(2).shape()` is `[1,1,2,2]`.
    #[track_caller]
    pub fn pixel_shuffle(&self, upscale_factor: usize) -> Tensor {
        let _call = called("pixel_shuffle", [self]);
        let (r, shape) = (upscale_factor, self.shape());
        if shape.len() < 3 || r == 0 || !shape[shape.len() - 3].is_multiple_of(r * r) {
            refuse("pixel_shuffle", &[self], format!("the channels do not divide by {r} × {r}"));
        }
        let k = shape.len() - 3;
        let (c, h, w) = (shape[k] / (r * r), shape[k + 1], shape[k + 2]);
        let mut apart = shape[..k].to_vec();
        apart.extend([c, r, r, h, w]);
        let mut order: Vec<usize> = (0..k).collect();
        order.extend([k, k + 3, k + 1, k + 4, k + 2]);
        let mut out = shape[..k].to_vec();
        out.extend([c, h * r, w * r]);
        self.reshape(apart).permute(order).reshape(out)
    }

    /// The inverse of [`Tensor::pixel_shuffle`] (`torch.nn.functional.pixel_unshuffle`).
    ///
    /// `Tensor::zeros([1, 1, 2, 2]).pixel_unshuffle(2).shape()` is `[1,4,1,1]`.
    #[track_caller]
    pub fn pixel_unshuffle(&self, downscale_factor: usize) -> Tensor {
        let (r, shape) = (downscale_factor, self.shape());
        let k = shape.len().saturating_sub(3);
        let divides = shape.len() >= 3 && r > 0 && shape[k + 1].is_multiple_of(r) && shape[k + 2].is_multiple_of(r);
        if !divides {
            refuse("pixel_unshuffle", &[self], format!("height and width do not divide by {r}"));
        }
        let (c, h, w) = (shape[k], shape[k + 1] / r, shape[k + 2] / r);
        let mut apart = shape[..k].to_vec();
        apart.extend([c, h, r, w, r]);
        let mut order: Vec<usize> = (0..k).collect();
        order.extend([k, k + 2, k + 4, k + 1, k + 3]);
        let mut out = shape[..k].to_vec();
        out.extend([c * r * r, h, w]);
        self.reshape(apart).permute(order).reshape(out)
    }
}
