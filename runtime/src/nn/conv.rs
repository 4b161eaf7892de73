//! Convolution layers.
use super::init;
use super::module::{Module, Parts, at_caller};
use crate::tensor::Tensor;
use crate::{ConvOptions, ConvTransposeOptions, PadMode, Padding};
use xlazy_core::ty::Dims;

macro_rules! convolutions {
    ($($(#[$doc:meta])* $name:ident, $dims:literal, $method:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            /// `[out, in / groups, kernel…]`
            pub weight: Tensor,
            /// `[out]`
            pub bias: Option<Tensor>,
            pub options: ConvOptions,
            /// What the input is padded with in place of zeros.
            pub padding_mode: Option<PadMode>,
        }

        impl $name {
            /// One number as kernel size stands for all dimensions.
            #[track_caller]
            pub fn new(in_channels: usize, out_channels: usize, kernel_size: impl Into<Dims>) -> $name {
                $name::with(in_channels, out_channels, kernel_size, ConvOptions::default())
            }

            #[track_caller]
            pub fn with(
                in_channels: usize,
                out_channels: usize,
                kernel_size: impl Into<Dims>,
                options: ConvOptions,
            ) -> $name {
                let mut layer = $name::without_bias(in_channels, out_channels, kernel_size, options);
                let fan_in = layer.weight.shape()[1..].iter().product();
                layer.bias = Some(init::uniform([out_channels], init::default_bound(fan_in)));
                layer
            }

            /// As with `bias=False`, where a normalisation follows.
            #[track_caller]
            pub fn without_bias(
                in_channels: usize,
                out_channels: usize,
                kernel_size: impl Into<Dims>,
                options: ConvOptions,
            ) -> $name {
                let weight = weight([out_channels, in_channels / options.groups.max(1)], kernel_size.into(), $dims);
                $name { weight, bias: None, options, padding_mode: None }
            }
        }

        /// Options one by one; `with` takes all of them, and those that change the weight's shape.
        impl $name {
            /// As torch's `bias=`: without one, where a normalisation follows.
            #[track_caller]
            pub fn bias(mut self, bias: bool) -> $name {
                let shape = self.weight.shape();
                let drawn = || init::uniform([shape[0]], init::default_bound(shape[1..].iter().product()));
                self.bias = bias.then(|| self.bias.take().unwrap_or_else(drawn));
                self
            }

            pub fn stride(mut self, stride: impl Into<Dims>) -> $name {
                self.options.stride = stride.into();
                self
            }

            pub fn padding(mut self, padding: impl Into<Padding>) -> $name {
                self.options.padding = padding.into();
                self
            }

            pub fn dilation(mut self, dilation: impl Into<Dims>) -> $name {
                self.options.dilation = dilation.into();
                self
            }

            pub fn padding_mode(mut self, mode: PadMode) -> $name {
                self.padding_mode = Some(mode);
                self
            }
        }

        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                self.run(x)
            }

            fn parts(&self, p: &mut Parts) {
                let (o, usual) = (&self.options, ConvOptions::default());
                p.setting("stride", &o.stride);
                match &o.padding {
                    Padding::Zeros(zeros) => p.unusual("padding", zeros, &0.into()),
                    other => p.unusual("padding", other, &usual.padding),
                }
                p.unusual("dilation", &o.dilation, &usual.dilation);
                p.unusual("groups", &o.groups, &usual.groups);
                self.padding_mode.iter().for_each(|mode| p.setting("padding_mode", mode));
                p.add("weight", &self.weight);
                p.add("bias", &self.bias);
            }
        }

        impl $name {
            #[track_caller]
            fn run(&self, x: &Tensor) -> Tensor {
                at_caller(|| {
                    let (w, b, options) = (&self.weight, self.bias.as_ref(), self.options.clone());
                    match self.padding_mode {
                        None => x.$method(w, b, options),
                        Some(mode) => {
                            let (x, options) = padded(x, mode, w, options);
                            x.$method(w, b, options)
                        }
                    }
                })
            }
        }
    )*};
}

convolutions! {
    /// A convolution over sequences: [n, in, length] to [n, out, length'] (`torch.nn.Conv1d`).
    ///
    /// `nn::Conv1d::new(2, 4, 3).padding(1).forward(&Tensor::ones([1, 2, 8])).shape()` is `[1,4,8]`.
    Conv1d, 1, conv1d;
    /// A convolution over pictures: [n, in, height, width] to [n, out, height', width'] (`torch.nn.Conv2d`). Starts as
    /// torch's does: uniform within ±1/√(in · kernel).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let layer = nn::Conv2d::new(3, 8, 3).padding(1);
    /// assert_eq!(layer.forward(&Tensor::ones([2, 3, 16, 16])).shape(), [2, 8, 16, 16]);
    /// ```
    Conv2d, 2, conv2d;
    /// A convolution over volumes: [n, in, depth, height, width] (`torch.nn.Conv3d`).
    ///
    /// `nn::Conv3d::new(1, 2, 3).stride(2).forward(&Tensor::ones([1, 1, 5, 5, 5])).shape()` is `[1,2,2,2,2]`.
    Conv3d, 3, conv3d;
}

#[track_caller]
fn weight(channels: [usize; 2], kernel_size: Dims, space: usize) -> Tensor {
    let mut size: Vec<i64> = channels.map(|n| n as i64).to_vec();
    match kernel_size.0.as_slice() {
        [one] => size.extend(vec![*one; space]),
        all => size.extend_from_slice(all),
    }
    // torch counts dimension 1, also of a transposed one
    let fan_in: i64 = size[1..].iter().product();
    init::uniform(size, init::default_bound(fan_in as usize))
}

/// The input padded by other things than zeros, and options without the padding.
#[track_caller]
fn padded(x: &Tensor, mode: PadMode, weight: &Tensor, options: ConvOptions) -> (Tensor, ConvOptions) {
    let space = weight.dim() - 2;
    let each = |d: &Dims, i: usize| if d.0.len() == 1 { d.0[0] } else { d.0[i] };
    let mut amounts = Vec::new();
    for i in (0..space).rev() {
        let (before, after) = match &options.padding {
            Padding::Valid => (0, 0),
            Padding::Zeros(p) => (each(p, i), each(p, i)),
            Padding::Same => {
                let total = each(&options.dilation, i) * (weight.size(2 + i as i64) as i64 - 1);
                (total / 2, total - total / 2)
            }
        };
        amounts.extend([before, after]);
    }
    (x.pad_mode(amounts, mode), ConvOptions { padding: Padding::Valid, ..options })
}

macro_rules! transposed {
    ($($(#[$doc:meta])* $name:ident, $dims:literal, $method:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            /// `[in, out / groups, kernel…]`
            pub weight: Tensor,
            /// `[out]`
            pub bias: Option<Tensor>,
            pub options: ConvTransposeOptions,
        }

        impl $name {
            /// One number as kernel size stands for all dimensions.
            #[track_caller]
            pub fn new(in_channels: usize, out_channels: usize, kernel_size: impl Into<Dims>) -> $name {
                $name::with(in_channels, out_channels, kernel_size, ConvTransposeOptions::default())
            }

            #[track_caller]
            pub fn with(
                in_channels: usize,
                out_channels: usize,
                kernel_size: impl Into<Dims>,
                options: ConvTransposeOptions,
            ) -> $name {
                let mut layer = $name::without_bias(in_channels, out_channels, kernel_size, options);
                let fan_in = layer.weight.shape()[1..].iter().product();
                layer.bias = Some(init::uniform([out_channels], init::default_bound(fan_in)));
                layer
            }

            /// As with `bias=False`.
            #[track_caller]
            pub fn without_bias(
                in_channels: usize,
                out_channels: usize,
                kernel_size: impl Into<Dims>,
                options: ConvTransposeOptions,
            ) -> $name {
                let weight = weight([in_channels, out_channels / options.groups.max(1)], kernel_size.into(), $dims);
                $name { weight, bias: None, options }
            }
        }

        /// Options one by one; `with` takes all of them, and those that change the weight's shape.
        impl $name {
            /// As torch's `bias=`: without one, where a normalisation follows.
            #[track_caller]
            pub fn bias(mut self, bias: bool) -> $name {
                let shape = self.weight.shape();
                let fan_in = shape[1..].iter().product();
                let drawn = || init::uniform([shape[1] * self.options.groups], init::default_bound(fan_in));
                self.bias = bias.then(|| self.bias.take().unwrap_or_else(drawn));
                self
            }

            pub fn stride(mut self, stride: impl Into<Dims>) -> $name {
                self.options.stride = stride.into();
                self
            }

            pub fn padding(mut self, padding: impl Into<Dims>) -> $name {
                self.options.padding = padding.into();
                self
            }

            /// What the result has more of at its end, where a stride leaves several sizes open.
            pub fn output_padding(mut self, padding: impl Into<Dims>) -> $name {
                self.options.output_padding = padding.into();
                self
            }

            pub fn dilation(mut self, dilation: impl Into<Dims>) -> $name {
                self.options.dilation = dilation.into();
                self
            }
        }

        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                self.run(x)
            }

            fn parts(&self, p: &mut Parts) {
                let (o, usual) = (&self.options, ConvTransposeOptions::default());
                p.setting("stride", &o.stride);
                p.unusual("padding", &o.padding, &usual.padding);
                p.unusual("output_padding", &o.output_padding, &usual.output_padding);
                p.unusual("dilation", &o.dilation, &usual.dilation);
                p.unusual("groups", &o.groups, &usual.groups);
                p.add("weight", &self.weight);
                p.add("bias", &self.bias);
            }
        }

        impl $name {
            #[track_caller]
            fn run(&self, x: &Tensor) -> Tensor {
                at_caller(|| x.$method(&self.weight, self.bias.as_ref(), self.options.clone()))
            }
        }
    )*};
}

transposed! {
    /// The gradient of a convolution over sequences, as a layer: [n, in, length] (`torch.nn.ConvTranspose1d`).
    ///
    /// `nn::ConvTranspose1d::new(2, 4, 2).stride(2).forward(&Tensor::ones([1, 2, 3])).shape()` is `[1,4,6]`.
    ConvTranspose1d, 1, conv_transpose1d;
    /// The gradient of a convolution over pictures, as a layer (`torch.nn.ConvTranspose2d`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let layer = nn::ConvTranspose2d::new(8, 3, 4).stride(2).padding(1).bias(false);
    /// assert_eq!(layer.forward(&Tensor::ones([2, 8, 4, 4])).shape(), [2, 3, 8, 8]);
    /// ```
    ConvTranspose2d, 2, conv_transpose2d;
    /// The gradient of a convolution over volumes, as a layer (`torch.nn.ConvTranspose3d`).
    ///
    /// `nn::ConvTranspose3d::new(1, 2, 2).stride(2).forward(&Tensor::ones([1, 1, 2, 2, 2])).shape()` is `[1,2,4,4,4]`.
    ConvTranspose3d, 3, conv_transpose3d;
}
