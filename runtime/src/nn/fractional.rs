//! Pooling by windows at places that are drawn, so that the result has any size.
use super::module::{Module, Parts, at_caller};
use crate::tensor::{Tensor, refuse};
use xlazy_core::ty::Dims;

/// How large the result is.
#[derive(Clone)]
enum Output {
    Size(Vec<i64>),
    Ratio(Vec<f64>),
}

macro_rules! fractional {
    ($($(#[$doc:meta])* $name:ident, $d:literal, $order:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            kernel_size: Vec<i64>,
            output: Output,
        }

        impl $name {
            /// With a result of this size.
            #[track_caller]
            pub fn new(kernel_size: impl Into<Dims>, output_size: impl Into<Dims>) -> $name {
                let (kernel_size, size) = (each(stringify!($name), kernel_size, $d), each(stringify!($name), output_size, $d));
                $name { kernel_size, output: Output::Size(size) }
            }

            /// With a result of so much of the input's size, more than 0 and less than 1 (`output_ratio`).
            #[track_caller]
            pub fn with_ratio(kernel_size: impl Into<Dims>, output_ratio: [f64; $d]) -> $name {
                if output_ratio.iter().any(|r| !(0.0..1.0).contains(r) || *r == 0.0) {
                    refuse(stringify!($name), &[], format!("ratios are between 0 and 1, unlike {output_ratio:?}"));
                }
                $name {
                    kernel_size: each(stringify!($name), kernel_size, $d),
                    output: Output::Ratio(output_ratio.to_vec()),
                }
            }

            /// The result for these numbers from 0 up to and without 1, [n, channels, dimensions], which are drawn otherwise
            /// (`_random_samples`).
            #[track_caller]
            pub fn forward_with(&self, x: &Tensor, samples: &Tensor) -> Tensor {
                at_caller(|| pooled(stringify!($name), x, samples, &self.kernel_size, &self.output, &$order))
            }
        }

        impl Module for $name {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                at_caller(|| {
                    if x.dim() != $d + 2 {
                        refuse(stringify!($name), &[x], concat!("takes a batch, channels and ", $d, " dimensions"));
                    }
                    let samples = Tensor::rand([x.size(0), x.size(1), $d]);
                    self.forward_with(x, &samples)
                })
            }

            fn parts(&self, p: &mut Parts) {
                p.setting("kernel_size", &self.kernel_size);
                match &self.output {
                    Output::Size(size) => p.setting("output_size", size),
                    Output::Ratio(ratio) => p.setting("output_ratio", ratio),
                }
            }
        }
    )*};
}

fractional! {
    /// The largest element of each of some windows, whose places are drawn anew in each pass (`torch.nn.FractionalMaxPool2d`):
    /// [n, c, height, width].
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::rand([1, 3, 10, 8]);
    /// assert_eq!(nn::FractionalMaxPool2d::new(2, [6, 5]).forward(&x).shape(), [1, 3, 6, 5]);
    /// assert_eq!(nn::FractionalMaxPool2d::with_ratio(2, [0.5, 0.7]).forward(&x).shape(), [1, 3, 5, 5]);
    /// ```
    FractionalMaxPool2d, 2, [1, 0];
    /// The largest element of each of some windows, whose places are drawn anew in each pass (`torch.nn.FractionalMaxPool3d`):
    /// [n, c, depth, height, width].
    ///
    /// `nn::FractionalMaxPool3d::new(2, [3, 4, 5]).forward(&Tensor::ones([1, 2, 6, 8, 10])).shape()` is `[1,2,3,4,5]`.
    FractionalMaxPool3d, 3, [0, 1, 2];
}

#[track_caller]
fn each(op: &'static str, sizes: impl Into<Dims>, d: usize) -> Vec<i64> {
    let sizes = sizes.into().0;
    match sizes.len() {
        1 => vec![sizes[0]; d],
        n if n == d => sizes,
        n => refuse(op, &[], format!("one size for all dimensions or {d} of them, not {n}")),
    }
}

/// `order`: which of the numbers is each dimension's.
#[track_caller]
fn pooled(op: &'static str, x: &Tensor, samples: &Tensor, kernel: &[i64], output: &Output, order: &[i64]) -> Tensor {
    let (d, shape) = (kernel.len(), x.shape());
    if shape.len() != d + 2 {
        refuse(op, &[x], format!("takes a batch, channels and {d} dimensions"));
    }
    let (n, c) = (shape[0] as i64, shape[1] as i64);
    let mut y = x.clone();
    // One dimension after the other: the largest of the largest.
    for k in 0..d {
        let (size, window) = (shape[k + 2] as i64, kernel[k]);
        let out = match output {
            Output::Size(sizes) => sizes[k],
            Output::Ratio(ratios) => (size as f64 * ratios[k]) as i64,
        };
        if out < 1 || out + window - 1 > size {
            refuse(
                op,
                &[x],
                format!("{out} windows of {window} elements do not fit into dimension {} of {size}", k + 2),
            );
        }
        // The last window is at the end, those before it about evenly apart.
        let last = Tensor::full([n, c, 1], size - window);
        let starts = match out {
            1 => last,
            _ => {
                let alpha = (size - window) as f64 / (out - 1) as f64;
                let u = samples.select(2, order[k]).unsqueeze(2).to(crate::DType::F64);
                let places = (Tensor::arange(0, out - 1, 1).to(crate::DType::F64) + &u) * alpha;
                let places = (places.trunc() - (u * alpha).trunc()).to(crate::DType::I64);
                crate::ops::cat(&[&places, &last], 2)
            }
        };
        // [n, c, windows, elements], taken along this dimension
        let at = starts.unsqueeze(3) + Tensor::arange(0, window, 1);
        let mut index: Vec<i64> = vec![1; d + 2];
        (index[0], index[1], index[k + 2]) = (n, c, out * window);
        let mut whole: Vec<i64> = y.shape().iter().map(|&s| s as i64).collect();
        whole[k + 2] = out * window;
        let taken = y.gather(k as i64 + 2, &at.reshape(index).expand(whole.clone()));
        whole[k + 2] = out;
        whole.insert(k + 3, window);
        y = taken.reshape(whole).amax(k as i64 + 3, false);
    }
    y
}
