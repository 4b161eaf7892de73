//! Rearranging that goes by positions: strided views, diagonals and slices written to, patches of images, reductions onto the
//! slices that an index names.
use super::ScatterReduce;
use crate::tensor::{Step, Tensor, called, refuse};
use xlazy_core::ty::{Dims, Shape};

// The places in the flattened tensor that a view of these sizes and strides has.
#[track_caller]
fn strided(op: &'static str, x: &Tensor, size: &Dims, stride: &Dims, offset: usize) -> (Tensor, Shape) {
    let shape = size.shape(op).unwrap_or_else(|e| e.raise());
    if shape.len() != stride.0.len() {
        refuse(op, &[x], format!("{shape} needs a stride for each dimension, not {:?}", stride.0));
    }
    let mut places = vec![offset as i64];
    for (&n, &step) in shape.iter().zip(&stride.0) {
        places = places.iter().flat_map(|p| (0..n as i64).map(move |i| p + i * step)).collect();
    }
    if let Some(p) = places.iter().find(|&&p| p < 0 || p >= x.numel() as i64) {
        refuse(op, &[x], format!("reaches the element {p} of {}", x.numel()));
    }
    (Tensor::folded_ints(places), shape)
}

/// How [`Tensor::unfold_patches`] and [`Tensor::fold`] go over an image: one number for both directions, or one for each.
#[derive(Clone, Debug)]
pub struct PatchOptions {
    pub dilation: Dims,
    pub padding: Dims,
    pub stride: Dims,
}

impl Default for PatchOptions {
    fn default() -> PatchOptions {
        PatchOptions { dilation: 1.into(), padding: 0.into(), stride: 1.into() }
    }
}

// For each patch along one direction, where its elements are in what is padded.
struct Patches {
    places: Vec<i64>,
    count: usize,
    kernel: usize,
    padding: i64,
}

impl Patches {
    #[track_caller]
    fn along(op: &'static str, x: &Tensor, n: usize, d: usize, kernel: &Dims, o: &PatchOptions) -> Patches {
        let at = |v: &Dims| v.0.get(if v.0.len() > 1 { d } else { 0 }).copied().unwrap_or(1);
        let (kernel, dilation, padding, stride) = (at(kernel), at(&o.dilation), at(&o.padding), at(&o.stride));
        let room = n as i64 + 2 * padding - dilation * (kernel - 1) - 1;
        if kernel < 1 || stride < 1 || room < 0 {
            refuse(op, &[x], format!("windows of {kernel} every {stride} do not fit {n} elements"));
        }
        let count = room / stride + 1;
        let places = (0..kernel).flat_map(|k| (0..count).map(move |o| o * stride + k * dilation)).collect();
        Patches { places, count: count as usize, kernel: kernel as usize, padding }
    }
}

impl Tensor {
    /// The elements of the flattened tensor that a view of these sizes and strides has, from `offset` on
    /// (`torch.as_strided`). Of a view it is a copy (`torch.as_strided_copy`): there is no memory behind it to go by.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([1, 2, 3, 4]).as_strided([2, 2], [1, 1], 1);
    /// assert_eq!(x.to_vec::<i64>(), [2, 3, 3, 4]);
    /// ```
    #[track_caller]
    pub fn as_strided(&self, size: impl Into<Dims>, stride: impl Into<Dims>, offset: usize) -> Tensor {
        let _call = called("as_strided", [self]);
        let stride = stride.into();
        let (places, shape) = strided("as_strided", self, &size.into(), &stride, offset);
        let y = self.flatten().take(&places).reshape(&shape).apart();
        if self.is_view() {
            return y;
        }
        y.viewing(self, Step::Strided { size: shape, stride: stride.0.into(), offset })
    }

    /// A copy with `src` in the places that a view of these sizes and strides would have (`torch.as_strided_scatter`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([4]).as_strided_scatter(&tensor([5.0, 6.0]), 2, 2, 0);
    /// assert_eq!(x.to_vec::<f32>(), [5.0, 0.0, 6.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn as_strided_scatter(
        &self,
        src: &Tensor,
        size: impl Into<Dims>,
        stride: impl Into<Dims>,
        offset: usize,
    ) -> Tensor {
        let _call = called("as_strided_scatter", [self, src]);
        let (places, shape) = strided("as_strided_scatter", self, &size.into(), &stride.into(), offset);
        self.put(&places, &src.expand(shape).flatten(), false)
    }

    /// A copy with `src` as the diagonal of the matrices in two dimensions (`torch.diagonal_scatter`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::zeros([2, 2]).diagonal_scatter(&tensor([1.0, 2.0]), 0, 0, 1);
    /// assert_eq!(x.to_vec::<f32>(), [1.0, 0.0, 0.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn diagonal_scatter(&self, src: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Tensor {
        let _call = called("diagonal_scatter", [self, src]);
        let numbers = Tensor::arange(0, self.numel() as i64, 1).reshape(self.shape());
        let places = numbers.diagonal(offset, dim1, dim2);
        if places.shape() != src.shape() {
            refuse("diagonal_scatter", &[self, src], format!("the diagonal has the shape {}", places.shape()));
        }
        self.put(&places.flatten(), &src.flatten(), false)
    }

    /// `source` combined with the slices along `dim` that `index` names (`torch.index_reduce`); without `include_self` those
    /// slices start from nothing. Sums are [`Tensor::index_add`].
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([1.0, 2.0]);
    /// let y = x.index_reduce(0, &tensor([0, 0]), &tensor([3.0, 4.0]), ScatterReduce::Prod, true);
    /// assert_eq!(y.to_vec::<f32>(), [12.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn index_reduce(
        &self,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        reduce: ScatterReduce,
        include_self: bool,
    ) -> Tensor {
        let _call = called("index_reduce", [self, index, source]);
        let d = self.dim_index("index_reduce", dim);
        if self.dim() == 0 {
            let one = |t: &Tensor| t.reshape(1);
            return one(self).index_reduce(0, &one(index), &one(source), reduce, include_self).reshape(());
        }
        let mut along = vec![1i64; source.dim()];
        if source.dim() != self.dim() || index.dim() > 1 || index.numel() != source.size(dim) {
            refuse("index_reduce", &[self, index, source], "needs one index for each slice of the source");
        }
        along[d] = -1;
        let index = index.reshape(along).expand(source.shape());
        self.scatter_reduce(dim, &index, source, reduce, include_self)
    }

    /// Patches of images (batch, channels, height, width) as columns: (batch, channels · patch, patches)
    /// (`torch.nn.functional.unfold`).
    ///
    /// ```
    /// use xlazy::{PatchOptions, prelude::*};
    /// let x = Tensor::arange(0.0, 9.0, 1.0).reshape([1, 1, 3, 3]);
    /// let y = x.unfold_patches([2, 2], PatchOptions::default());
    /// assert_eq!(y.shape(), [1, 4, 4]);
    /// ```
    #[track_caller]
    pub fn unfold_patches(&self, kernel_size: impl Into<Dims>, options: PatchOptions) -> Tensor {
        let _call = called("unfold_patches", [self]);
        if !(3..5).contains(&self.dim()) {
            refuse("unfold_patches", &[self], "needs (batch, channels, height, width), or no batch");
        }
        if self.dim() == 3 {
            return self.unsqueeze(0).unfold_patches(kernel_size, options).squeeze_dim(0);
        }
        let (kernel, s) = (kernel_size.into(), self.shape());
        let [rows, columns] = [0, 1].map(|d| Patches::along("unfold_patches", self, s[2 + d], d, &kernel, &options));
        let padded = self.pad([columns.padding, columns.padding, rows.padding, rows.padding], 0.0);
        let picked = padded.index_select(2, &Tensor::folded_ints(rows.places));
        let picked = picked.index_select(3, &Tensor::folded_ints(columns.places));
        picked
            .reshape([s[0], s[1], rows.kernel, rows.count, columns.kernel, columns.count])
            .permute([0, 1, 2, 4, 3, 5])
            .reshape([s[0], s[1] * rows.kernel * columns.kernel, rows.count * columns.count])
    }

    /// The inverse of [`Tensor::unfold_patches`], patches that overlap added up, as images of `output_size`
    /// (`torch.nn.functional.fold`).
    ///
    /// ```
    /// use xlazy::{PatchOptions, prelude::*};
    /// let y = Tensor::ones([1, 4, 4]).fold([3, 3], [2, 2], PatchOptions::default());
    /// assert_eq!(y.to_vec::<f32>(), [1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn fold(&self, output_size: impl Into<Dims>, kernel_size: impl Into<Dims>, options: PatchOptions) -> Tensor {
        let _call = called("fold", [self]);
        if !(2..4).contains(&self.dim()) {
            refuse("fold", &[self], "needs (batch, channels · patch, patches), or no batch");
        }
        let (out, kernel) = (output_size.into(), kernel_size.into());
        if self.dim() == 2 {
            return self.unsqueeze(0).fold(out, kernel, options).squeeze_dim(0);
        }
        let size = |d: usize| out.0[if out.0.len() > 1 { d } else { 0 }] as usize;
        let [rows, columns] = [0, 1].map(|d| Patches::along("fold", self, size(d), d, &kernel, &options));
        let (s, patch) = (self.shape(), rows.kernel * columns.kernel);
        if !s[1].is_multiple_of(patch) || s[2] != rows.count * columns.count {
            let message = format!(
                "images of {} by {} have {} patches of {patch} elements",
                size(0),
                size(1),
                rows.count * columns.count
            );
            refuse("fold", &[self], message);
        }
        let channels = s[1] / patch;
        let (height, width) = (size(0) + 2 * rows.padding as usize, size(1) + 2 * columns.padding as usize);
        let parts = self
            .reshape([s[0], channels, rows.kernel, columns.kernel, rows.count, columns.count])
            .permute([0, 1, 2, 4, 3, 5])
            .reshape([s[0], channels, rows.places.len(), columns.places.len()]);
        let onto = |x: &Tensor, dim: i64, n: usize, places: Vec<i64>| {
            let mut shape = x.shape();
            shape[dim as usize] = n;
            Tensor::zeros(shape).to(x.dtype()).index_add(dim, &Tensor::folded_ints(places), x)
        };
        let image = onto(&onto(&parts, 2, height, rows.places), 3, width, columns.places);
        image.narrow(2, rows.padding, size(0) as i64).narrow(3, columns.padding, size(1) as i64)
    }
}
