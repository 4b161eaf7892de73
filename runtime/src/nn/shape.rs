//! Layers that move elements or make more of them: flattening, padding, patches, sizes of pictures.
use super::module::{Module, Parts};
use crate::tensor::Tensor;
use crate::{InterpolateOptions, Interpolation, PadMode, PatchOptions};
use xlazy_core::ty::Dims;

/// All dimensions but the first joined into one (`torch.nn.Flatten`): [n, ...] to [n, elements]. `Flatten.start_dim(0)` and
/// `Flatten.end_dim(2)` say which.
///
/// `nn::Flatten.forward(&Tensor::ones([2, 3, 4])).shape()` is `[2,12]`.
#[derive(Clone, Copy, Debug)]
pub struct Flatten {
    pub start_dim: i64,
    pub end_dim: i64,
}

/// From dimension 1 to the last, as torch's default.
#[allow(non_upper_case_globals)]
pub const Flatten: Flatten = Flatten { start_dim: 1, end_dim: -1 };

impl Default for Flatten {
    fn default() -> Flatten {
        Flatten
    }
}

impl Flatten {
    /// The first dimension that is joined.
    pub fn start_dim(mut self, dim: i64) -> Flatten {
        self.start_dim = dim;
        self
    }

    /// The last dimension that is joined.
    pub fn end_dim(mut self, dim: i64) -> Flatten {
        self.end_dim = dim;
        self
    }
}

/// What a layer was made with: values, and options of which those are told that are unusual.
trait Settings {
    fn settings(&self, name: &str, p: &mut Parts);
}

macro_rules! values {
    ($($t:ty)*) => {$(
        impl Settings for $t {
            fn settings(&self, name: &str, p: &mut Parts) {
                p.setting(name, self);
            }
        }
    )*};
}
values!(i64 usize f64 Dims);

impl Settings for PatchOptions {
    fn settings(&self, _: &str, p: &mut Parts) {
        let usual = PatchOptions::default();
        p.unusual("dilation", &self.dilation, &usual.dilation);
        p.unusual("padding", &self.padding, &usual.padding);
        p.setting("stride", &self.stride);
    }
}

impl Settings for InterpolateOptions {
    fn settings(&self, _: &str, p: &mut Parts) {
        self.size.iter().for_each(|size| p.setting("size", size));
        self.scale_factor.iter().for_each(|factors| p.setting("scale_factor", factors));
        p.setting("mode", &self.mode);
        p.unusual("align_corners", &self.align_corners, &false);
    }
}

macro_rules! layers {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $t:ty as $arg:ty),* } => |$m:ident, $x:ident| $f:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            $(pub $field: $t,)*
        }

        impl $name {
            #[allow(clippy::useless_conversion)] // what is no size is taken as it is
            pub fn new($($field: $arg),*) -> $name {
                $name { $($field: $field.into()),* }
            }
        }

        layers!(@module $name { $($field),* } => |$m, $x| $f);
    )*};
    (@module $name:ident { $($field:ident),* } => |$m:ident, $x:ident| $f:expr) => {
        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Tensor {
                let $m = self;
                $f
            }

            fn parts(&self, p: &mut Parts) {
                $(self.$field.settings(stringify!($field), p);)*
            }
        }
    };
}

layers!(@module Flatten { start_dim, end_dim } => |m, x| x.flatten_dims(m.start_dim, m.end_dim));

layers! {
    /// One dimension taken apart into several (`torch.nn.Unflatten`).
    ///
    /// `nn::Unflatten::new(1, [2, 3]).forward(&Tensor::ones([4, 6])).shape()` is `[4,2,3]`.
    Unflatten { dim: i64 as i64, unflattened_size: Dims as impl Into<Dims> } => |m, x|
        x.unflatten(m.dim, m.unflattened_size.clone());
    /// Channels become pixels: [n, c·r², h, w] to [n, c, h·r, w·r] (`torch.nn.PixelShuffle`).
    ///
    /// `nn::PixelShuffle::new(2).forward(&Tensor::ones([1, 4, 2, 2])).shape()` is `[1,1,4,4]`.
    PixelShuffle { upscale_factor: usize as usize } => |m, x| x.pixel_shuffle(m.upscale_factor);
    /// Pixels become channels (`torch.nn.PixelUnshuffle`).
    ///
    /// `nn::PixelUnshuffle::new(2).forward(&Tensor::ones([1, 1, 4, 4])).shape()` is `[1,4,2,2]`.
    PixelUnshuffle { downscale_factor: usize as usize } => |m, x| x.pixel_unshuffle(m.downscale_factor);
    /// The channels of each group side by side with those of the others (`torch.nn.ChannelShuffle`).
    ///
    /// `nn::ChannelShuffle::new(2).forward(&tensor([1, 2, 3, 4]).reshape([1, 4, 1, 1])).flatten()` is `[1, 3, 2, 4]`.
    ChannelShuffle { groups: usize as usize } => |m, x| x.channel_shuffle(m.groups);
    /// Patches of pictures as columns (`torch.nn.Unfold`).
    ///
    /// `nn::Unfold::new(2, PatchOptions::default()).forward(&Tensor::ones([1, 3, 4, 4])).shape()` is `[1,12,9]`.
    Unfold { kernel_size: Dims as impl Into<Dims>, options: PatchOptions as PatchOptions } => |m, x|
        x.unfold_patches(m.kernel_size.clone(), m.options.clone());
    /// Columns as pictures of a size, patches that overlap added up (`torch.nn.Fold`).
    ///
    /// `nn::Fold::new([4, 4], 2, PatchOptions::default()).forward(&Tensor::ones([1, 12, 9])).shape()` is `[1,3,4,4]`.
    Fold {
        output_size: Dims as impl Into<Dims>,
        kernel_size: Dims as impl Into<Dims>,
        options: PatchOptions as PatchOptions
    } => |m, x| x.fold(m.output_size.clone(), m.kernel_size.clone(), m.options.clone());
    /// Pictures, sequences or volumes of another size (`torch.nn.Upsample`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let layer = nn::Upsample::new(InterpolateOptions { scale_factor: Some(vec![2.0, 2.0]), ..Default::default() });
    /// assert_eq!(layer.forward(&Tensor::ones([1, 1, 2, 2])).shape(), [1, 1, 4, 4]);
    /// ```
    Upsample { options: InterpolateOptions as InterpolateOptions } => |m, x| x.interpolate(m.options.clone());
    /// Pictures made larger by repeating pixels (`torch.nn.UpsamplingNearest2d`).
    ///
    /// `nn::UpsamplingNearest2d::new(2.0).forward(&tensor([[[[1.0, 2.0]]]]))` is `[[[[1., 1., 2., 2.], [1., 1., 2., 2.]]]]`.
    UpsamplingNearest2d { scale_factor: f64 as f64 } => |m, x|
        x.interpolate(enlarged(m.scale_factor, Interpolation::Nearest));
    /// Pictures made larger by mixing pixels, corner to corner (`torch.nn.UpsamplingBilinear2d`).
    ///
    /// `nn::UpsamplingBilinear2d::new(2.0).forward(&Tensor::ones([1, 1, 2, 2])).shape()` is `[1,1,4,4]`.
    UpsamplingBilinear2d { scale_factor: f64 as f64 } => |m, x|
        x.interpolate(enlarged(m.scale_factor, Interpolation::Linear));
}

fn enlarged(factor: f64, mode: Interpolation) -> InterpolateOptions {
    let align_corners = mode == Interpolation::Linear;
    InterpolateOptions { scale_factor: Some(vec![factor; 2]), mode, align_corners, ..Default::default() }
}

/// One amount for each side of the last dimensions.
fn sides(padding: Dims, space: usize) -> Dims {
    match padding.0.as_slice() {
        [one] => vec![*one; 2 * space].into(),
        _ => padding,
    }
}

macro_rules! constant_pads {
    ($($(#[$doc:meta])* $name:ident, $dims:literal;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            padding: Dims,
            value: f64,
        }

        impl $name {
            /// One amount for all sides, or (left, right, top, bottom, …).
            pub fn new(padding: impl Into<Dims>, value: f64) -> $name {
                $name { padding: sides(padding.into(), $dims), value }
            }
        }

        layers!(@module $name { padding, value } => |m, x| x.pad(m.padding.clone(), m.value));
    )*};
}

macro_rules! pads {
    ($($(#[$doc:meta])* $name:ident, $dims:literal, |$x:ident, $padding:ident| $f:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            padding: Dims,
        }

        impl $name {
            /// One amount for all sides, or (left, right, top, bottom, …).
            pub fn new(padding: impl Into<Dims>) -> $name {
                $name { padding: sides(padding.into(), $dims) }
            }
        }

        impl Module for $name {
            #[inline]
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Tensor {
                let $padding = self.padding.clone();
                $f
            }

            fn parts(&self, p: &mut Parts) {
                p.setting("padding", &self.padding);
            }
        }
    )*};
}

constant_pads! {
    /// Sequences with a value before and after (`torch.nn.ConstantPad1d`).
    ///
    /// `nn::ConstantPad1d::new(1, 9.0).forward(&tensor([[[1.0, 2.0]]]))` is `[[[9., 1., 2., 9.]]]`.
    ConstantPad1d, 1;
    /// Pictures with a value around them (`torch.nn.ConstantPad2d`).
    ///
    /// `nn::ConstantPad2d::new(1, 9.0).forward(&tensor([[[1.0]]]))` is `[[[9., 9., 9.], [9., 1., 9.], [9., 9., 9.]]]`.
    ConstantPad2d, 2;
    /// Volumes with a value around them (`torch.nn.ConstantPad3d`).
    ///
    /// `nn::ConstantPad3d::new(1, 9.0).forward(&Tensor::ones([1, 2, 2, 2])).shape()` is `[1,4,4,4]`.
    ConstantPad3d, 3;
}

pads! {
    /// Sequences with zeros before and after (`torch.nn.ZeroPad1d`).
    ///
    /// `nn::ZeroPad1d::new(1).forward(&tensor([[[1.0, 2.0]]]))` is `[[[0., 1., 2., 0.]]]`.
    ZeroPad1d, 1, |x, padding| x.pad(padding, 0.0);
    /// Pictures with zeros around them (`torch.nn.ZeroPad2d`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(nn::ZeroPad2d::new([1, 0, 2, 0]).forward(&Tensor::ones([1, 3, 3])).shape(), [1, 5, 4]);
    /// ```
    ZeroPad2d, 2, |x, padding| x.pad(padding, 0.0);
    /// Volumes with zeros around them (`torch.nn.ZeroPad3d`).
    ///
    /// `nn::ZeroPad3d::new(1).forward(&Tensor::ones([1, 2, 2, 2])).shape()` is `[1,4,4,4]`.
    ZeroPad3d, 3, |x, padding| x.pad(padding, 0.0);
    /// Sequences mirrored at their ends (`torch.nn.ReflectionPad1d`).
    ///
    /// `nn::ReflectionPad1d::new(1).forward(&tensor([[[1.0, 2.0, 3.0]]]))` is `[[[2., 1., 2., 3., 2.]]]`.
    ReflectionPad1d, 1, |x, padding| x.pad_mode(padding, PadMode::Reflect);
    /// Pictures mirrored at their edges (`torch.nn.ReflectionPad2d`).
    ///
    /// `nn::ReflectionPad2d::new([1, 0, 0, 0]).forward(&tensor([[[1.0, 2.0], [3.0, 4.0]]]))` is `[[[2., 1., 2.], [4., 3., 4.]]]`.
    ReflectionPad2d, 2, |x, padding| x.pad_mode(padding, PadMode::Reflect);
    /// Volumes mirrored at their faces (`torch.nn.ReflectionPad3d`).
    ///
    /// `nn::ReflectionPad3d::new(1).forward(&Tensor::ones([1, 2, 2, 2])).shape()` is `[1,4,4,4]`.
    ReflectionPad3d, 3, |x, padding| x.pad_mode(padding, PadMode::Reflect);
    /// Sequences with their ends repeated (`torch.nn.ReplicationPad1d`).
    ///
    /// `nn::ReplicationPad1d::new(1).forward(&tensor([[[1.0, 2.0]]]))` is `[[[1., 1., 2., 2.]]]`.
    ReplicationPad1d, 1, |x, padding| x.pad_mode(padding, PadMode::Replicate);
    /// Pictures with their edges repeated (`torch.nn.ReplicationPad2d`).
    ///
    /// `nn::ReplicationPad2d::new([1, 0, 0, 0]).forward(&tensor([[[1.0, 2.0], [3.0, 4.0]]]))` is `[[[1., 1., 2.], [3., 3., 4.]]]`.
    ReplicationPad2d, 2, |x, padding| x.pad_mode(padding, PadMode::Replicate);
    /// Volumes with their faces repeated (`torch.nn.ReplicationPad3d`).
    ///
    /// `nn::ReplicationPad3d::new(1).forward(&Tensor::ones([1, 2, 2, 2])).shape()` is `[1,4,4,4]`.
    ReplicationPad3d, 3, |x, padding| x.pad_mode(padding, PadMode::Replicate);
    /// Sequences that go on with their other end (`torch.nn.CircularPad1d`).
    ///
    /// `nn::CircularPad1d::new(1).forward(&tensor([[[1.0, 2.0, 3.0]]]))` is `[[[3., 1., 2., 3., 1.]]]`.
    CircularPad1d, 1, |x, padding| x.pad_mode(padding, PadMode::Circular);
    /// Pictures that go on with their other side (`torch.nn.CircularPad2d`).
    ///
    /// `nn::CircularPad2d::new([1, 0, 0, 0]).forward(&tensor([[[1.0, 2.0], [3.0, 4.0]]]))` is `[[[2., 1., 2.], [4., 3., 4.]]]`.
    CircularPad2d, 2, |x, padding| x.pad_mode(padding, PadMode::Circular);
    /// Volumes that go on with their other side (`torch.nn.CircularPad3d`).
    ///
    /// `nn::CircularPad3d::new(1).forward(&Tensor::ones([1, 2, 2, 2])).shape()` is `[1,4,4,4]`.
    CircularPad3d, 3, |x, padding| x.pad_mode(padding, PadMode::Circular);
}
