//! Convolution and pooling layers.
use super::init;
use super::module::{Module, Parts, at_caller};
use crate::tensor::Tensor;
use crate::{AvgPoolOptions, ConvOptions, MaxPoolOptions, Padding};
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
                let mut kernel = kernel_size.into().0;
                if kernel.len() == 1 {
                    kernel = vec![kernel[0]; $dims];
                }
                let mut size = vec![out_channels as i64, (in_channels / options.groups.max(1)) as i64];
                size.extend(kernel);
                let fan_in: i64 = size[1..].iter().product();
                let weight = init::uniform(size, init::default_bound(fan_in as usize));
                $name { weight, bias: None, options }
            }
        }

        /// Options one by one; `with` takes all of them, and those that change the weight's shape.
        impl $name {
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
        }

        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                self.run(x)
            }

            fn parts(&self, p: &mut Parts) {
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

convolutions! {
    /// A convolution over sequences: [n, in, length] to [n, out, length'] (`torch.nn.Conv1d`).
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
}

/// The largest element of each window (`torch.nn.MaxPool2d`): [n, c, height, width]. The stride is the kernel's size unless
/// the options say otherwise.
///
/// ```
/// use xlazy::prelude::*;
/// assert_eq!(nn::MaxPool2d::new(2).forward(&Tensor::ones([1, 3, 8, 8])).shape(), [1, 3, 4, 4]);
/// ```
pub struct MaxPool2d {
    kernel_size: Dims,
    options: MaxPoolOptions,
}

impl MaxPool2d {
    pub fn new(kernel_size: impl Into<Dims>) -> MaxPool2d {
        MaxPool2d::with(kernel_size, MaxPoolOptions::default())
    }

    pub fn with(kernel_size: impl Into<Dims>, options: MaxPoolOptions) -> MaxPool2d {
        MaxPool2d { kernel_size: kernel_size.into(), options }
    }
}

impl Module for MaxPool2d {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.max_pool2d(self.kernel_size.clone(), self.options.clone())
    }
}

/// The mean of each window (`torch.nn.AvgPool2d`): [n, c, height, width].
pub struct AvgPool2d {
    kernel_size: Dims,
    options: AvgPoolOptions,
}

impl AvgPool2d {
    pub fn new(kernel_size: impl Into<Dims>) -> AvgPool2d {
        AvgPool2d::with(kernel_size, AvgPoolOptions::default())
    }

    pub fn with(kernel_size: impl Into<Dims>, options: AvgPoolOptions) -> AvgPool2d {
        AvgPool2d { kernel_size: kernel_size.into(), options }
    }
}

impl Module for AvgPool2d {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.avg_pool2d(self.kernel_size.clone(), self.options.clone())
    }
}

/// Means over as many windows as give the size asked for (`torch.nn.AdaptiveAvgPool2d`).
pub struct AdaptiveAvgPool2d {
    output_size: Dims,
}

impl AdaptiveAvgPool2d {
    pub fn new(output_size: impl Into<Dims>) -> AdaptiveAvgPool2d {
        AdaptiveAvgPool2d { output_size: output_size.into() }
    }
}

impl Module for AdaptiveAvgPool2d {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.adaptive_avg_pool2d(self.output_size.clone())
    }
}
