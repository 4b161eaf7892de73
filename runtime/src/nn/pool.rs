//! Pooling layers: what becomes of each window, a line each.
use super::module::{Module, Parts};
use crate::tensor::{Tensor, refuse};
use crate::{AvgPoolOptions, MaxPoolOptions};
use xlazy_core::ty::Dims;

macro_rules! windows {
    ($($(#[$doc:meta])* $name:ident, $options:ident { $($more:ident),* }, $method:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            kernel_size: Dims,
            options: $options,
        }

        impl $name {
            pub fn new(kernel_size: impl Into<Dims>) -> $name {
                $name::with(kernel_size, $options::default())
            }

            pub fn with(kernel_size: impl Into<Dims>, options: $options) -> $name {
                $name { kernel_size: kernel_size.into(), options }
            }

            pub fn stride(mut self, stride: impl Into<Dims>) -> $name {
                self.options.stride = stride.into();
                self
            }

            pub fn padding(mut self, padding: impl Into<Dims>) -> $name {
                self.options.padding = padding.into();
                self
            }

            /// Keep a last window that reaches beyond the edge.
            pub fn ceil_mode(mut self, on: bool) -> $name {
                self.options.ceil_mode = on;
                self
            }
        }

        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                x.$method(self.kernel_size.clone(), self.options.clone())
            }

            fn parts(&self, p: &mut Parts) {
                let usual = $options::default();
                windows_of(p, &self.kernel_size, &self.options.stride);
                p.unusual("padding", &self.options.padding, &usual.padding);
                p.unusual("ceil_mode", &self.options.ceil_mode, &usual.ceil_mode);
                $(p.unusual(stringify!($more), &self.options.$more, &usual.$more);)*
            }
        }
    )*};
}

windows! {
    /// The largest element of each window: [n, c, length] (`torch.nn.MaxPool1d`).
    ///
    /// `nn::MaxPool1d::new(2).forward(&tensor([[[1.0, 3.0, 2.0, 5.0]]]))` is `[[[3., 5.]]]`.
    MaxPool1d, MaxPoolOptions { dilation }, max_pool1d;
    /// The largest element of each window (`torch.nn.MaxPool2d`): [n, c, height, width]. The stride is the kernel's size unless
    /// the options say otherwise.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(nn::MaxPool2d::new(2).forward(&Tensor::ones([1, 3, 8, 8])).shape(), [1, 3, 4, 4]);
    /// assert_eq!(nn::MaxPool2d::new(3).stride(1).padding(1).forward(&Tensor::ones([1, 3, 8, 8])).shape(), [1, 3, 8, 8]);
    /// ```
    MaxPool2d, MaxPoolOptions { dilation }, max_pool2d;
    /// The largest element of each window: [n, c, depth, height, width] (`torch.nn.MaxPool3d`).
    ///
    /// `nn::MaxPool3d::new(2).forward(&Tensor::ones([1, 1, 4, 4, 4])).shape()` is `[1,1,2,2,2]`.
    MaxPool3d, MaxPoolOptions { dilation }, max_pool3d;
    /// The mean of each window: [n, c, length] (`torch.nn.AvgPool1d`).
    ///
    /// `nn::AvgPool1d::new(2).forward(&tensor([[[1.0, 3.0, 2.0, 5.0]]]))` is `[[[2.0000, 3.5000]]]`.
    AvgPool1d, AvgPoolOptions { count_include_pad, divisor_override }, avg_pool1d;
    /// The mean of each window (`torch.nn.AvgPool2d`): [n, c, height, width].
    ///
    /// `nn::AvgPool2d::new(2).forward(&Tensor::ones([1, 1, 4, 4])).shape()` is `[1,1,2,2]`.
    AvgPool2d, AvgPoolOptions { count_include_pad, divisor_override }, avg_pool2d;
    /// The mean of each window: [n, c, depth, height, width] (`torch.nn.AvgPool3d`).
    ///
    /// `nn::AvgPool3d::new(2).forward(&Tensor::ones([1, 1, 4, 4, 4])).shape()` is `[1,1,2,2,2]`.
    AvgPool3d, AvgPoolOptions { count_include_pad, divisor_override }, avg_pool3d;
}

/// How large windows are, and how far apart: as large as they are, where nothing else is said.
fn windows_of(p: &mut Parts, kernel_size: &Dims, stride: &Dims) {
    p.setting("kernel_size", kernel_size);
    p.setting("stride", if stride.0.is_empty() { kernel_size } else { stride });
}

macro_rules! adaptive {
    ($($(#[$doc:meta])* $name:ident => |$x:ident, $size:ident| $f:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            output_size: Dims,
        }

        impl $name {
            pub fn new(output_size: impl Into<Dims>) -> $name {
                $name { output_size: output_size.into() }
            }
        }

        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Tensor {
                let $size = self.output_size.clone();
                $f
            }

            fn parts(&self, p: &mut Parts) {
                p.setting("output_size", &self.output_size);
            }
        }
    )*};
}

adaptive! {
    /// Means over as many windows as give the size asked for: [n, c, length] (`torch.nn.AdaptiveAvgPool1d`).
    ///
    /// `nn::AdaptiveAvgPool1d::new(1).forward(&tensor([[[1.0, 3.0]]]))` is `[[[2.]]]`.
    AdaptiveAvgPool1d => |x, size| x.adaptive_avg_pool1d(size);
    /// Means over as many windows as give the size asked for (`torch.nn.AdaptiveAvgPool2d`).
    ///
    /// `nn::AdaptiveAvgPool2d::new(1).forward(&Tensor::ones([1, 3, 4, 4])).shape()` is `[1,3,1,1]`.
    AdaptiveAvgPool2d => |x, size| x.adaptive_avg_pool2d(size);
    /// Means over as many windows as give the size asked for: volumes (`torch.nn.AdaptiveAvgPool3d`).
    ///
    /// `nn::AdaptiveAvgPool3d::new(1).forward(&Tensor::ones([1, 2, 3, 4, 4])).shape()` is `[1,2,1,1,1]`.
    AdaptiveAvgPool3d => |x, size| x.adaptive_avg_pool3d(size);
    /// Maxima over as many windows as give the size asked for: [n, c, length] (`torch.nn.AdaptiveMaxPool1d`).
    ///
    /// `nn::AdaptiveMaxPool1d::new(1).forward(&tensor([[[1.0, 3.0]]]))` is `[[[3.]]]`.
    AdaptiveMaxPool1d => |x, size| x.adaptive_max_pool1d(size).0;
    /// Maxima over as many windows as give the size asked for: pictures (`torch.nn.AdaptiveMaxPool2d`).
    ///
    /// `nn::AdaptiveMaxPool2d::new(2).forward(&Tensor::ones([1, 3, 4, 4])).shape()` is `[1,3,2,2]`.
    AdaptiveMaxPool2d => |x, size| x.adaptive_max_pool2d(size).0;
    /// Maxima over as many windows as give the size asked for: volumes (`torch.nn.AdaptiveMaxPool3d`).
    ///
    /// `nn::AdaptiveMaxPool3d::new(2).forward(&Tensor::ones([1, 2, 4, 4, 4])).shape()` is `[1,2,2,2,2]`.
    AdaptiveMaxPool3d => |x, size| x.adaptive_max_pool3d(size).0;
}

macro_rules! powers {
    ($($(#[$doc:meta])* $name:ident, $dims:literal, $method:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            norm_type: f64,
            kernel_size: Dims,
            options: AvgPoolOptions,
        }

        impl $name {
            pub fn new(norm_type: f64, kernel_size: impl Into<Dims>) -> $name {
                $name { norm_type, kernel_size: kernel_size.into(), options: AvgPoolOptions::default() }
            }

            pub fn stride(mut self, stride: impl Into<Dims>) -> $name {
                self.options.stride = stride.into();
                self
            }

            /// Keep a last window that reaches beyond the edge.
            pub fn ceil_mode(mut self, on: bool) -> $name {
                self.options.ceil_mode = on;
                self
            }
        }

        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                let means = x.pow(self.norm_type).$method(self.kernel_size.clone(), self.options.clone());
                root(means, &self.kernel_size, $dims, self.norm_type)
            }

            fn parts(&self, p: &mut Parts) {
                p.setting("norm_type", &self.norm_type);
                windows_of(p, &self.kernel_size, &self.options.stride);
                p.unusual("ceil_mode", &self.options.ceil_mode, &false);
            }
        }
    )*};
}

powers! {
    /// The p-th root of the sum of p-th powers in each window: [n, c, length] (`torch.nn.LPPool1d`).
    ///
    /// `nn::LPPool1d::new(2.0, 2).forward(&tensor([[[3.0, 4.0, 6.0, 8.0]]]))` is `[[[5., 10.]]]`.
    LPPool1d, 1, avg_pool1d;
    /// The p-th root of the sum of p-th powers in each window: pictures (`torch.nn.LPPool2d`).
    ///
    /// `nn::LPPool2d::new(1.0, 2).forward(&tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))` is `[[[[10.]]]]`.
    LPPool2d, 2, avg_pool2d;
    /// The p-th root of the sum of p-th powers in each window: volumes (`torch.nn.LPPool3d`).
    ///
    /// `nn::LPPool3d::new(1.0, 2).forward(&Tensor::ones([1, 1, 2, 2, 2]))` is `[[[[[8.]]]]]`.
    LPPool3d, 3, avg_pool3d;
}

/// As torch: a negative sum has no root and counts as zero, and the mean becomes a sum by the kernel's size.
#[track_caller]
fn root(means: Tensor, kernel_size: &Dims, dims: u32, p: f64) -> Tensor {
    let size = match kernel_size.0.as_slice() {
        [one] => one.pow(dims),
        all => all.iter().product(),
    };
    (means.sign() * means.abs().relu() * size as f64).pow(1.0 / p)
}

macro_rules! unpools {
    ($($(#[$doc:meta])* $name:ident, $dims:literal;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            kernel_size: Dims,
            stride: Dims,
            padding: Dims,
        }

        impl $name {
            pub fn new(kernel_size: impl Into<Dims>) -> $name {
                $name { kernel_size: kernel_size.into(), stride: ().into(), padding: 0.into() }
            }

            pub fn stride(mut self, stride: impl Into<Dims>) -> $name {
                self.stride = stride.into();
                self
            }

            pub fn padding(mut self, padding: impl Into<Dims>) -> $name {
                self.padding = padding.into();
                self
            }

            /// The values of `x` where `indices` found them; of `output_size`, or of the size that the pooling's would have had.
            #[track_caller]
            pub fn forward(&self, x: &Tensor, indices: &Tensor, output_size: Option<Dims>) -> Tensor {
                let size = output_size.unwrap_or_else(|| {
                    unpooled(x, $dims, &self.kernel_size, &self.stride, &self.padding)
                });
                x.max_unpool(indices, size)
            }
        }
    )*};
}

unpools! {
    /// Puts values back to where max pooling of sequences found them, zeros elsewhere (`torch.nn.MaxUnpool1d`).
    ///
    /// `nn::MaxUnpool1d::new(2).forward(&tensor([[[3.0, 4.0]]]), &tensor([[[1, 2]]]), None)` is `[[[0., 3., 4., 0.]]]`.
    MaxUnpool1d, 1;
    /// Puts values back to where max pooling of pictures found them, zeros elsewhere (`torch.nn.MaxUnpool2d`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[[[1.0, 2.0], [3.0, 4.0]]]]);
    /// let (y, at) = (x.max_pool2d(2, Default::default()), x.max_pool_indices(2, 2, Default::default()));
    /// assert_eq!(nn::MaxUnpool2d::new(2).forward(&y, &at, None).to_vec::<f32>(), [0.0, 0.0, 0.0, 4.0]);
    /// ```
    MaxUnpool2d, 2;
    /// Puts values back to where max pooling of volumes found them, zeros elsewhere (`torch.nn.MaxUnpool3d`).
    ///
    /// `nn::MaxUnpool3d::new(2).forward(&tensor([[[[[3.0]]]]]), &tensor([[[[[5]]]]]), None).flatten()` is `[0., 0., 0., 0., 0., 3., 0., 0.]`.
    MaxUnpool3d, 3;
}

#[track_caller]
fn unpooled(x: &Tensor, space: usize, kernel: &Dims, stride: &Dims, padding: &Dims) -> Dims {
    if x.dim() < space {
        refuse("max_unpool", &[x], format!("needs {space} spatial dimensions"));
    }
    let shape = x.shape();
    let each = |d: &Dims, i: usize| if d.0.len() == 1 { d.0[0] } else { d.0[i] };
    let size = |i: usize| {
        let n = shape[x.dim() - space + i] as i64;
        let step = if stride.0.is_empty() { each(kernel, i) } else { each(stride, i) };
        (n - 1) * step - 2 * each(padding, i) + each(kernel, i)
    };
    (0..space).map(size).collect::<Vec<i64>>().into()
}
