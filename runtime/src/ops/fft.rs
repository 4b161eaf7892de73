//! Fourier transforms. One op, of complex numbers along the last dimension; all others are made of it.
use super::{PatchOptions, cat};
use crate::tensor::{Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::ir::Role::Mode;
use xlazy_core::ir::{AttrsExt, Kind, attr};
use xlazy_core::ty::{DType, Dims};

/// How transforms are scaled: by how many elements there are, in which direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FftNorm {
    /// 1 / n on the way back.
    #[default]
    Backward,
    /// 1 / √n both ways.
    Ortho,
    /// 1 / n on the way there.
    Forward,
}

static FFT: Entry = Entry::new(
    "fft",
    |s| match s.dtype(0).is_complex() && !s.shape(0).is_empty() {
        true => Ok(s.inputs[0].clone()),
        false => Err("needs complex numbers and at least 1 dimension".into()),
    },
    |l| {
        let (x, out) = (l.x(0), l.out.clone());
        if out.shape.numel() == 0 {
            return x;
        }
        let which = if l.attrs.flag(0) { "IFFT" } else { "FFT" };
        let n = out.shape[out.shape.len() - 1];
        let attributes = format!("{{fft_type = #stablehlo<fft_type {which}>, fft_length = array<i64: {n}>}}");
        l.op("fft", &[&x], &attributes, out)
    },
)
.kind(Kind::Along)
.attrs(&[attr("inverse", Mode)])
.samples(|| {
    let of = |inverse: bool| Sample::of(&[]).and(DType::C64, &[2, 4]).attrs(vec![inverse.into()]);
    vec![of(false), of(true)]
})
.grad(|g| {
    // the conjugate transpose, which is the other direction but for the scale
    let (n, inverse) = (g.x(0).size(-1) as f64, g.attrs.flag(0));
    let back = trace(&FFT, [(&g.dy).into()], [(!inverse).into()]);
    vec![Some(if inverse { back * (1.0 / n) } else { back * n })]
});

pub(super) static OPS: &[&Entry] = &[&FFT];

// The first `n` elements along a dimension, zeros behind them where there are fewer.
#[track_caller]
fn resized(x: &Tensor, n: usize, dim: i64) -> Tensor {
    let has = x.size(dim);
    if n <= has {
        return x.narrow(dim, 0, n as i64);
    }
    let mut shape = x.shape();
    shape[x.dim_index("fft", dim)] = n - has;
    cat(&[x, &Tensor::zeros(shape).to(x.dtype())], dim)
}

#[track_caller]
fn complex(x: &Tensor) -> Tensor {
    if x.dtype().is_complex() { x.clone() } else { x.to(x.dtype().to_float().complex().unwrap_or(DType::C64)) }
}

/// One transform along one dimension, of complex numbers, with its scale.
#[track_caller]
fn transformed(op: &'static str, x: &Tensor, n: Option<usize>, dim: i64, norm: FftNorm, inverse: bool) -> Tensor {
    if x.dim() == 0 {
        refuse(op, &[x], "needs at least 1 dimension");
    }
    let d = x.dim_index(op, dim) as i64;
    let n = n.unwrap_or_else(|| x.size(d));
    if n == 0 {
        refuse(op, &[x], format!("a transform of {n} elements is none"));
    }
    let x = resized(&complex(x), n, d);
    let y = trace(&FFT, [(&x.transpose(d, -1)).into()], [inverse.into()]).transpose(d, -1);
    let n = n as f64;
    let scale = match (norm, inverse) {
        (FftNorm::Backward, _) => 1.0,
        (FftNorm::Ortho, false) => 1.0 / n.sqrt(),
        (FftNorm::Ortho, true) => n.sqrt(),
        (FftNorm::Forward, false) => 1.0 / n,
        (FftNorm::Forward, true) => n,
    };
    if scale == 1.0 { y } else { y * scale }
}

/// The other half of a spectrum of real numbers, and those.
#[track_caller]
fn real_of(op: &'static str, x: &Tensor, n: Option<usize>, dim: i64, norm: FftNorm, inverse: bool) -> Tensor {
    if x.dim() == 0 {
        refuse(op, &[x], "needs at least 1 dimension");
    }
    let n = n.unwrap_or_else(|| 2 * x.size(dim).saturating_sub(1));
    if n == 0 {
        refuse(op, &[x], "a transform of no elements is none");
    }
    let half = n / 2 + 1;
    let x = resized(&complex(x), half, dim);
    let rest = x.narrow(dim, 1, (n - half) as i64).flip(dim).conj();
    transformed(op, &cat(&[&x, &rest], dim), Some(n), dim, norm, inverse).real()
}

// The dimensions of a transform along several, and the sizes it is of.
#[track_caller]
fn several(op: &'static str, x: &Tensor, s: Dims, dim: Dims) -> Vec<(i64, Option<usize>)> {
    let rank = x.dim();
    let dims: Vec<i64> = match (s.0.len(), dim.0.len()) {
        (0, 0) => (0..rank as i64).collect(),
        (n, 0) if n <= rank => ((rank - n) as i64..rank as i64).collect(),
        _ => x.each_dim(op, &dim).into_iter().map(|d| d as i64).collect(),
    };
    if !s.0.is_empty() && s.0.len() != dims.len() || (1..dims.len()).any(|i| dims[..i].contains(&dims[i])) {
        refuse(op, &[x], format!("needs a size for each of different dimensions, not {:?} for {dims:?}", s.0));
    }
    let size = |i: usize| s.0.get(i).filter(|&&n| n >= 0).map(|&n| n as usize);
    dims.iter().enumerate().map(|(i, &d)| (d, size(i))).collect()
}

impl Tensor {
    /// The discrete Fourier transform along `dim`, of the first `n` elements or with zeros behind (`torch.fft.fft`); complex64.
    /// StableHLO fft.
    ///
    /// ```
    /// use xlazy::{FftNorm, prelude::*};
    /// let y = tensor([1.0, 1.0]).fft(None, -1, FftNorm::Backward);
    /// assert_eq!(y.real().to_vec::<f32>(), [2.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn fft(&self, n: Option<usize>, dim: i64, norm: FftNorm) -> Tensor {
        let _call = called("fft", [self]);
        transformed("fft", self, n, dim, norm, false)
    }

    /// The inverse of [`Tensor::fft`] (`torch.fft.ifft`).
    ///
    /// ```
    /// use xlazy::{FftNorm, prelude::*};
    /// let y = tensor([2.0, 0.0]).ifft(None, -1, FftNorm::Backward);
    /// assert_eq!(y.real().to_vec::<f32>(), [1.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn ifft(&self, n: Option<usize>, dim: i64, norm: FftNorm) -> Tensor {
        let _call = called("ifft", [self]);
        transformed("ifft", self, n, dim, norm, true)
    }

    /// The first half of the spectrum of real numbers, of n / 2 + 1 elements: the rest is its mirror (`torch.fft.rfft`).
    ///
    /// ```
    /// use xlazy::{FftNorm, prelude::*};
    /// assert_eq!(Tensor::ones([4]).rfft(None, -1, FftNorm::Backward).shape(), [3]);
    /// ```
    #[track_caller]
    pub fn rfft(&self, n: Option<usize>, dim: i64, norm: FftNorm) -> Tensor {
        let _call = called("rfft", [self]);
        if self.dtype().is_complex() {
            refuse("rfft", &[self], "needs real numbers: use `fft`");
        }
        let y = transformed("rfft", self, n, dim, norm, false);
        let half = y.size(dim) / 2 + 1;
        y.narrow(dim, 0, half as i64)
    }

    /// The `n` real numbers whose half spectrum this is, by default 2 (size - 1) (`torch.fft.irfft`).
    ///
    /// ```
    /// use xlazy::{FftNorm, prelude::*};
    /// let y = tensor([4.0, 0.0, 0.0]).irfft(None, -1, FftNorm::Backward);
    /// assert_eq!(y.to_vec::<f32>(), [1.0; 4]);
    /// ```
    #[track_caller]
    pub fn irfft(&self, n: Option<usize>, dim: i64, norm: FftNorm) -> Tensor {
        let _call = called("irfft", [self]);
        real_of("irfft", self, n, dim, norm, true)
    }

    /// The real spectrum, of `n` elements, of what is its own mirror, whose first half this is (`torch.fft.hfft`).
    ///
    /// ```
    /// use xlazy::{FftNorm, prelude::*};
    /// let y = tensor([1.0, 0.0, 0.0]).hfft(None, -1, FftNorm::Backward);
    /// assert_eq!(y.to_vec::<f32>(), [1.0; 4]);
    /// ```
    #[track_caller]
    pub fn hfft(&self, n: Option<usize>, dim: i64, norm: FftNorm) -> Tensor {
        let _call = called("hfft", [self]);
        real_of("hfft", self, n, dim, norm, false)
    }

    /// The inverse of [`Tensor::hfft`] (`torch.fft.ihfft`).
    ///
    /// ```
    /// use xlazy::{FftNorm, prelude::*};
    /// assert_eq!(Tensor::ones([4]).ihfft(None, -1, FftNorm::Backward).real().to_vec::<f32>(), [1.0, 0.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn ihfft(&self, n: Option<usize>, dim: i64, norm: FftNorm) -> Tensor {
        let _call = called("ihfft", [self]);
        let y = transformed("ihfft", self, n, dim, norm, true);
        let half = y.size(dim) / 2 + 1;
        y.narrow(dim, 0, half as i64)
    }

    /// [`Tensor::fft`] along several dimensions, all of them where none is named; `s` are sizes
    /// (`torch.fft.fftn`).
    ///
    /// ```
    /// use xlazy::{FftNorm, prelude::*};
    /// let y = Tensor::ones([2, 2]).fftn((), (), FftNorm::Backward);
    /// assert_eq!(y.real().to_vec::<f32>(), [4.0, 0.0, 0.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn fftn(&self, s: impl Into<Dims>, dim: impl Into<Dims>, norm: FftNorm) -> Tensor {
        let _call = called("fftn", [self]);
        let all = several("fftn", self, s.into(), dim.into());
        all.into_iter().fold(complex(self), |x, (d, n)| transformed("fftn", &x, n, d, norm, false))
    }

    /// The inverse of [`Tensor::fftn`] (`torch.fft.ifftn`).
    ///
    /// ```
    /// use xlazy::{FftNorm, prelude::*};
    /// let x = Tensor::ones([2, 3]);
    /// let y = x.fftn((), (), FftNorm::Ortho).ifftn((), (), FftNorm::Ortho);
    /// assert!(y.real().allclose(&x));
    /// ```
    #[track_caller]
    pub fn ifftn(&self, s: impl Into<Dims>, dim: impl Into<Dims>, norm: FftNorm) -> Tensor {
        let _call = called("ifftn", [self]);
        let all = several("ifftn", self, s.into(), dim.into());
        all.into_iter().fold(complex(self), |x, (d, n)| transformed("ifftn", &x, n, d, norm, true))
    }

    /// [`Tensor::rfft`] along the last of several dimensions and [`Tensor::fft`] along the others (`torch.fft.rfftn`).
    ///
    /// ```
    /// use xlazy::{FftNorm, prelude::*};
    /// assert_eq!(Tensor::ones([2, 4]).rfftn((), (), FftNorm::Backward).shape(), [2, 3]);
    /// ```
    #[track_caller]
    pub fn rfftn(&self, s: impl Into<Dims>, dim: impl Into<Dims>, norm: FftNorm) -> Tensor {
        let _call = called("rfftn", [self]);
        let mut all = several("rfftn", self, s.into(), dim.into());
        let Some((d, n)) = all.pop() else {
            refuse("rfftn", &[self], "needs at least 1 dimension");
        };
        all.into_iter().fold(self.rfft(n, d, norm), |x, (d, n)| transformed("rfftn", &x, n, d, norm, false))
    }

    /// The inverse of [`Tensor::rfftn`] (`torch.fft.irfftn`).
    ///
    /// ```
    /// use xlazy::{FftNorm, prelude::*};
    /// let x = Tensor::ones([2, 4]);
    /// assert!(x.rfftn((), (), FftNorm::Backward).irfftn((), (), FftNorm::Backward).allclose(&x));
    /// ```
    #[track_caller]
    pub fn irfftn(&self, s: impl Into<Dims>, dim: impl Into<Dims>, norm: FftNorm) -> Tensor {
        let _call = called("irfftn", [self]);
        let mut all = several("irfftn", self, s.into(), dim.into());
        let Some((d, n)) = all.pop() else {
            refuse("irfftn", &[self], "needs at least 1 dimension");
        };
        let x = all.into_iter().fold(complex(self), |x, (d, n)| transformed("irfftn", &x, n, d, norm, true));
        x.irfft(n, d, norm)
    }

    /// The frequencies of the elements of a spectrum of `n` elements that are `d` apart, in its order; float32
    /// (`torch.fft.fftfreq`).
    ///
    /// `Tensor::fftfreq(4, 1.0)` is `[0.0000, 0.2500, -0.5000, -0.2500]`.
    #[track_caller]
    pub fn fftfreq(n: usize, d: f64) -> Tensor {
        frequencies((0..n.div_ceil(2) as i64).chain(-((n / 2) as i64)..0), n, d)
    }

    /// Those of half a spectrum, as [`Tensor::rfft`] gives it (`torch.fft.rfftfreq`).
    ///
    /// `Tensor::rfftfreq(4, 1.0)` is `[0.0000, 0.2500, 0.5000]`.
    #[track_caller]
    pub fn rfftfreq(n: usize, d: f64) -> Tensor {
        frequencies(0..(n / 2) as i64 + 1, n, d)
    }

    /// The spectrum's frequency 0 in the middle of `dim`, of all dimensions without any (`torch.fft.fftshift`).
    ///
    /// `Tensor::fftfreq(4, 0.25).fftshift(())` is `[-2., -1., 0., 1.]`.
    #[track_caller]
    pub fn fftshift(&self, dim: impl Into<Dims>) -> Tensor {
        self.rolled_by_half("fftshift", dim.into(), 1)
    }

    /// The inverse of [`Tensor::fftshift`] (`torch.fft.ifftshift`).
    ///
    /// `tensor([-1, 0, 1]).ifftshift(())` is `[0, 1, -1]`.
    #[track_caller]
    pub fn ifftshift(&self, dim: impl Into<Dims>) -> Tensor {
        self.rolled_by_half("ifftshift", dim.into(), -1)
    }

    #[track_caller]
    fn rolled_by_half(&self, op: &'static str, dim: Dims, sign: i64) -> Tensor {
        let _call = called(op, [self]);
        let (dims, by): (Vec<i64>, Vec<i64>) =
            several(op, self, ().into(), dim).into_iter().map(|(d, _)| (d, sign * (self.size(d) as i64 / 2))).unzip();
        self.roll(by, dims)
    }

    /// The spectrum of windows of a signal, or of a batch of them: (frequencies, windows) of complex numbers (`torch.stft` with
    /// `return_complex=True`).
    ///
    /// ```
    /// use xlazy::{StftOptions, prelude::*};
    /// let y = Tensor::ones([16]).stft(8, StftOptions::default());
    /// assert_eq!(y.shape(), [5, 9]);
    /// ```
    #[track_caller]
    pub fn stft(&self, n_fft: usize, options: StftOptions) -> Tensor {
        let _call = called("stft", [self]);
        if !(1..3).contains(&self.dim()) || n_fft == 0 {
            refuse("stft", &[self], "needs a signal, or a batch of them, and windows of at least one element");
        }
        let x = if self.dim() == 1 { self.unsqueeze(0) } else { self.clone() };
        let x = match options.center {
            true => x.pad_mode([(n_fft / 2) as i64, (n_fft / 2) as i64], options.pad_mode),
            false => x,
        };
        let window = options.window_of("stft", self, n_fft);
        let frames = x.unfold(-1, n_fft, options.hop_length.unwrap_or(n_fft / 4).max(1)) * window;
        let norm = if options.normalized { FftNorm::Ortho } else { FftNorm::Backward };
        let y = match options.onesided.unwrap_or(!frames.dtype().is_complex()) {
            true => frames.rfft(None, -1, norm),
            false => frames.fft(None, -1, norm),
        };
        let y = y.transpose(-1, -2);
        if self.dim() == 1 { y.squeeze_dim(0) } else { y }
    }

    /// The signal, or the batch of them, whose [`Tensor::stft`] with the same options this is (`torch.istft`): windows are added
    /// up, over the sum of the squares of what `options.window` has where they overlap, which must not be zero anywhere. `length`
    /// cuts or pads the signal at its end.
    ///
    /// ```
    /// use xlazy::{StftOptions, prelude::*};
    /// let x = Tensor::rand([32]);
    /// let y = x.stft(8, StftOptions::default()).istft(8, StftOptions::default(), Some(32));
    /// assert!((y - x).abs().max().item() < 1e-5);
    /// ```
    #[track_caller]
    pub fn istft(&self, n_fft: usize, options: StftOptions, length: Option<usize>) -> Tensor {
        let _call = called("istft", [self]);
        let onesided = options.onesided.unwrap_or(true);
        let frequencies = if onesided { n_fft / 2 + 1 } else { n_fft };
        if !(2..4).contains(&self.dim()) || !self.dtype().is_complex() || self.size(-2) != frequencies {
            let what = format!("needs complex numbers, {frequencies} frequencies and windows, or a batch of them");
            refuse("istft", &[self], what);
        }
        let x = if self.dim() == 2 { self.unsqueeze(0) } else { self.clone() };
        let norm = if options.normalized { FftNorm::Ortho } else { FftNorm::Backward };
        let frames = x.transpose(-1, -2);
        let frames = match onesided {
            true => frames.irfft(Some(n_fft), -1, norm),
            false => frames.ifft(None, -1, norm),
        };
        let frames = if onesided { frames } else { frames.real() };
        let window = options.window_of("istft", &frames, n_fft);
        let (hop, count) = (options.hop_length.unwrap_or(n_fft / 4).max(1), frames.size(1));
        let whole = n_fft + hop * (count - 1);
        // Windows are patches of pictures of one row.
        let patches = || PatchOptions { stride: [1, hop].into(), ..Default::default() };
        let added = |w: Tensor| w.transpose(-1, -2).fold([1, whole], [1, n_fft], patches()).reshape([-1, whole as i64]);
        let weights = window.square().expand([1, count, n_fft]);
        let start = if options.center { n_fft / 2 } else { 0 };
        let end = length.map_or(whole - start, |length| (start + length).min(whole));
        let cut = |t: &Tensor| t.narrow(-1, start as i64, end.saturating_sub(start) as i64);
        let y = cut(&added(frames * &window)) / cut(&added(weights));
        let y = y.pad([0, length.map_or(0, |length| (length + start).saturating_sub(end) as i64)], 0.0);
        if self.dim() == 2 { y.squeeze_dim(0) } else { y }
    }
}

impl StftOptions {
    /// The window, in the middle of `n_fft` elements; of the dtype of `x` where there is none.
    #[track_caller]
    fn window_of(&self, op: &'static str, x: &Tensor, n_fft: usize) -> Tensor {
        let length = self.win_length.unwrap_or(n_fft);
        let window = self.window.clone().unwrap_or_else(|| Tensor::ones([length]).to(x.dtype().part()));
        if window.shape() != [length] || length > n_fft {
            refuse(op, &[x, &window], format!("the window must have {length} elements, and no more than {n_fft}"));
        }
        let low = (n_fft - length) / 2;
        window.pad([low as i64, (n_fft - length - low) as i64], 0.0)
    }
}

/// Those of [`Tensor::fftn`] and its like along the last two dimensions, where no others are named.
macro_rules! planes {
    ($($(#[$doc:meta])* $name:ident => $all:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self, s: impl Into<Dims>, dim: impl Into<Dims>, norm: FftNorm) -> Tensor {
                let _call = called(stringify!($name), [self]);
                let dim = dim.into();
                self.$all(s, if dim.0.is_empty() { [-2, -1].into() } else { dim }, norm)
            })*
        }
    };
}

planes! {
    /// [`Tensor::fft`] along two dimensions, the last two where none is named; `s` are sizes (`torch.fft.fft2`).
    ///
    /// `Tensor::ones([2, 2]).fft2((), (), xlazy::FftNorm::Backward).real()` is `[[4., 0.], [0., 0.]]`.
    fft2 => fftn;
    /// The inverse of [`Tensor::fft2`] (`torch.fft.ifft2`).
    ///
    /// `Tensor::ones([2, 2]).ifft2((), (), xlazy::FftNorm::Forward).real()` is `[[4., 0.], [0., 0.]]`.
    ifft2 => ifftn;
    /// Half of the spectrum of real numbers along two dimensions, the last two where none is named (`torch.fft.rfft2`).
    ///
    /// `Tensor::ones([2, 2]).rfft2((), (), xlazy::FftNorm::Backward).real()` is `[[4., 0.], [0., 0.]]`.
    rfft2 => rfftn;
    /// The inverse of [`Tensor::rfft2`] (`torch.fft.irfft2`).
    ///
    /// `tensor([[4.0, 0.0], [0.0, 0.0]]).irfft2((), (), xlazy::FftNorm::Backward)` is `[[1., 1.], [1., 1.]]`.
    irfft2 => irfftn;
}

#[track_caller]
fn frequencies(counts: impl Iterator<Item = i64>, n: usize, d: f64) -> Tensor {
    let values: Vec<f64> = counts.map(|i| i as f64 / (n as f64 * d)).collect();
    Tensor::from_slice(&values, [values.len()]).float()
}

/// What torch's short-time Fourier transform takes besides the signal and the windows' size.
#[derive(Clone, Debug)]
pub struct StftOptions {
    /// How far windows are from one another; a quarter of their size without it.
    pub hop_length: Option<usize>,
    /// The size of `window`, which is centred in the windows.
    pub win_length: Option<usize>,
    /// Factors; ones without it.
    pub window: Option<Tensor>,
    /// Pad the signal, so that windows are centred at its elements.
    pub center: bool,
    pub pad_mode: super::PadMode,
    pub normalized: bool,
    /// Half of the spectrum; by default for real signals and windows.
    pub onesided: Option<bool>,
}

impl Default for StftOptions {
    fn default() -> StftOptions {
        StftOptions {
            hop_length: None,
            win_length: None,
            window: None,
            center: true,
            pad_mode: super::PadMode::Reflect,
            normalized: false,
            onesided: None,
        }
    }
}
