//! Factors that a signal is windowed with, computed on the host in float64; float32.
use crate::tensor::{Tensor, refuse};
use std::f64::consts::TAU;

/// `f` of where each of `n` elements is, from 0 at the first to 1 at the last; periodic windows leave out the last of n + 1.
#[track_caller]
fn window(n: usize, periodic: bool, f: impl Fn(f64) -> f64) -> Tensor {
    let last = if periodic { n } else { n.saturating_sub(1) } as f64;
    let values: Vec<f64> = (0..n).map(|i| if n == 1 { 1.0 } else { f(i as f64 / last) }).collect();
    Tensor::from_slice(&values, [n]).float()
}

/// The modified Bessel function of the first kind of order 0, by its power series.
fn i0(x: f64) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1.. {
        term *= (x / 2.0 / f64::from(k)).powi(2);
        sum += term;
        if term < sum * f64::EPSILON {
            break;
        }
    }
    sum
}

impl Tensor {
    /// A raised cosine that is 0 at its ends, float32 (`torch.hann_window`). A periodic window is the beginning of one that is an
    /// element longer, as a spectrum needs it ([`Tensor::stft`]).
    ///
    /// `Tensor::hann_window(4, true)` is `[0.0000, 0.5000, 1.0000, 0.5000]`.
    #[track_caller]
    pub fn hann_window(window_length: usize, periodic: bool) -> Tensor {
        Tensor::hamming_window_with(window_length, periodic, 0.5, 0.5)
    }

    /// A raised cosine that is 0.08 at its ends, float32 (`torch.hamming_window`).
    ///
    /// `Tensor::hamming_window(4, true)` is `[0.0800, 0.5400, 1.0000, 0.5400]`.
    #[track_caller]
    pub fn hamming_window(window_length: usize, periodic: bool) -> Tensor {
        Tensor::hamming_window_with(window_length, periodic, 0.54, 0.46)
    }

    /// `alpha` minus `beta` times a cosine, float32 (`torch.hamming_window` with `alpha` and `beta`).
    ///
    /// `Tensor::hamming_window_with(4, true, 0.75, 0.25)` is `[0.5000, 0.7500, 1.0000, 0.7500]`.
    #[track_caller]
    pub fn hamming_window_with(window_length: usize, periodic: bool, alpha: f64, beta: f64) -> Tensor {
        window(window_length, periodic, |x| alpha - beta * (TAU * x).cos())
    }

    /// A sum of two cosines that is 0 at its ends, float32 (`torch.blackman_window`).
    ///
    /// `Tensor::blackman_window(5, false).narrow(0, 1, 2)` is `[0.3400, 1.0000]`.
    #[track_caller]
    pub fn blackman_window(window_length: usize, periodic: bool) -> Tensor {
        window(window_length, periodic, |x| 0.42 - 0.5 * (TAU * x).cos() + 0.08 * (2.0 * TAU * x).cos())
    }

    /// A triangle that is 0 at its ends, float32 (`torch.bartlett_window`).
    ///
    /// `Tensor::bartlett_window(4, true)` is `[0.0000, 0.5000, 1.0000, 0.5000]`.
    #[track_caller]
    pub fn bartlett_window(window_length: usize, periodic: bool) -> Tensor {
        window(window_length, periodic, |x| 1.0 - (2.0 * x - 1.0).abs())
    }

    /// A Bessel function of half an ellipse, narrower with a larger `beta`; torch's default is 12; float32
    /// (`torch.kaiser_window`).
    ///
    /// `Tensor::kaiser_window(3, false, 0.0)` is `[1., 1., 1.]`.
    #[track_caller]
    pub fn kaiser_window(window_length: usize, periodic: bool, beta: f64) -> Tensor {
        if !beta.is_finite() {
            refuse("kaiser_window", &[], format!("beta must be a number, not {beta}"));
        }
        window(window_length, periodic, |x| i0(beta * (1.0 - (2.0 * x - 1.0).powi(2)).max(0.0).sqrt()) / i0(beta))
    }
}
