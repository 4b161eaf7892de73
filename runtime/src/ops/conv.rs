//! Convolutions, in any number of spatial dimensions. StableHLO: convolution; its gradients are convolutions again.
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, called, caller_line, refuse, trace};
use xlazy_core::emit::{Val, array};
use xlazy_core::ir::Role::{Size, Stride};
use xlazy_core::ir::{AttrDef, AttrsExt, Kind, Lower, Rule, Sig, attr, rules};
use xlazy_core::ty::{Dims, Shape, Type};

// Attributes, one number per spatial dimension in the first five: see `ATTRS`.
const ATTRS: &[AttrDef] = &[
    attr("stride", Stride),
    attr("low", Size),
    attr("high", Size),
    attr("input_dilation", Stride),
    attr("dilation", Stride),
    attr("groups", Size),
    attr("batch_groups", Size),
];

/// The extent of `n` elements with `dilation - 1` holes between them.
fn dilated(n: i64, dilation: i64) -> i64 {
    if n == 0 { 0 } else { (n - 1) * dilation + 1 }
}

fn rule(s: &Sig) -> Rule {
    let (x, w) = (s.shape(0), s.shape(1));
    if x.len() != w.len() || x.len() < 3 {
        return Err(format!("the input {x} and the weight {w} must both be (batch, channels, space…)"));
    }
    rules::refuse_bool(s, "convert with `.float()`")?;
    let (groups, batch_groups) = (s.attrs.index(5), s.attrs.index(6));
    if w[1] * groups != x[1] {
        return Err(format!("the input has {} channels, the weight takes {} × {groups} groups", x[1], w[1]));
    }
    if !w[0].is_multiple_of(groups.max(batch_groups)) {
        return Err(format!("the weight's {} output channels do not divide into {groups} groups", w[0]));
    }
    let mut shape = Shape::new(&[x[0] / batch_groups, w[0]]);
    for d in 0..x.len() - 2 {
        let at = |i: usize| s.attrs.ints(i)[d];
        let room = dilated(x[d + 2] as i64, at(3)) + at(1) + at(2);
        let kernel = dilated(w[d + 2] as i64, at(4));
        if kernel > room {
            return Err(format!(
                "the kernel reaches over {kernel} elements of spatial dimension {d}, the padded input has {room}"
            ));
        }
        shape.push(((room - kernel) / at(0) + 1) as usize);
    }
    Ok(Type::new(rules::promote(s.inputs)?, shape))
}

static CONVOLUTION: Entry = Entry::new("convolution", rule, |l| {
    let (x, w, out) = (l.cast(0), l.cast(1), l.out.clone());
    if x.shape().numel() == 0 || w.shape().numel() == 0 {
        return l.constant(0.0, &out);
    }
    let a = l.attrs;
    let space: Vec<String> = (2..x.rank()).map(|d| d.to_string()).collect();
    let space = space.join(", ");
    let padding: Vec<String> =
        a.ints(1).iter().zip(a.ints(2)).map(|(low, high)| format!("[{low}, {high}]")).collect();
    let attributes = format!(
        "{{dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 1, \
         input_spatial_dimensions = [{space}], kernel_output_feature_dimension = 0, kernel_input_feature_dimension = 1, \
         kernel_spatial_dimensions = [{space}], output_batch_dimension = 0, output_feature_dimension = 1, \
         output_spatial_dimensions = [{space}]>, feature_group_count = {} : i64, batch_group_count = {} : i64, \
         window_strides = array<i64{}>, padding = dense<[{}]> : tensor<{}x2xi64>, lhs_dilation = array<i64{}>, \
         rhs_dilation = array<i64{}>{}}}",
        a.int(5),
        a.int(6),
        array(a.ints(0)),
        padding.join(", "),
        padding.len(),
        array(a.ints(3)),
        array(a.ints(4)),
        l.precision_config(),
    );
    let of = |l: &mut Lower, x: &Val, w: &Val, out| l.op("convolution", &[x, w], &attributes, out);
    if !out.dtype.is_complex() {
        return of(l, &x, &w, out);
    }
    // XLA has them of real numbers on every platform.
    let real = Type::new(out.dtype.part(), out.shape.clone());
    let [(a, b), (c, d)] = [&x, &w].map(|v| {
        let ty = Type::new(real.dtype, v.shape().clone());
        (l.op("real", &[v], "", ty.clone()), l.op("imag", &[v], "", ty))
    });
    let [ac, bd, ad, bc] = [(&a, &c), (&b, &d), (&a, &d), (&b, &c)].map(|(x, w)| of(l, x, w, real.clone()));
    let (re, im) = (l.sub(&ac, &bd), l.add(&ad, &bc));
    l.op("complex", &[&re, &im], "", out)
})
.kind(Kind::Contract)
.attrs(ATTRS)
.samples(|| {
    let of = |x: &[usize], w: &[usize], attrs: [&[i64]; 5], groups: usize| {
        let mut all: Vec<_> = attrs.iter().map(|a| a.to_vec().into()).collect();
        all.extend([groups.into(), 1usize.into()]);
        Sample::of(&[x, w]).attrs(all)
    };
    vec![
        of(&[2, 2, 5], &[3, 2, 3], [&[1], &[0], &[0], &[1], &[1]], 1),
        of(&[1, 4, 6], &[2, 2, 2], [&[2], &[1], &[2], &[1], &[2]], 2),
        of(&[1, 2, 4, 3], &[2, 2, 2, 2], [&[2, 1], &[1, 0], &[0, 1], &[1, 1], &[1, 2]], 1),
        of(&[1, 2, 3, 3], &[2, 1, 2, 2], [&[1, 1], &[1, 1], &[2, 1], &[2, 1], &[1, 1]], 2),
    ]
})
.grad(|g| {
    let (x, w) = (g.x(0), g.x(1));
    let groups = g.attrs.index(5);
    let (a, n) = (&g.attrs, x.dim() - 2);
    let space = |t: &Tensor, d: usize, by: usize| dilated(t.shape()[d + 2] as i64, a.ints(by)[d]);
    // how far beyond the edges the transposed windows reach (as in JAX's _conv_general_vjp_lhs_padding and _rhs_)
    let dx = g.want(0, || {
        let low: Vec<i64> = (0..n).map(|d| space(w, d, 4) - a.ints(1)[d] - 1).collect();
        let high: Vec<i64> =
            (0..n).map(|d| space(x, d, 3) + space(w, d, 4) - 1 - space(&g.dy, d, 0) - low[d]).collect();
        convolution(&g.dy, &turned(w, groups), [a.ints(3), &low, &high, a.ints(0), a.ints(4)], groups, 1)
    });
    let dw = g.want(1, || {
        let high: Vec<i64> = (0..n)
            .map(|d| space(&g.dy, d, 0) - space(x, d, 3) + space(w, d, 4) - a.ints(1)[d] - 1)
            .collect();
        let (xt, dyt) = (x.transpose(0, 1), g.dy.transpose(0, 1));
        convolution(&xt, &dyt, [a.ints(4), a.ints(1), &high, a.ints(3), a.ints(0)], 1, groups).transpose(0, 1)
    });
    vec![dx, dw]
}).bucket(bucket::convolution);

pub(super) static OPS: &[&Entry] = &[&CONVOLUTION];

#[track_caller]
fn convolution(x: &Tensor, w: &Tensor, spatial: [&[i64]; 5], groups: usize, batch_groups: usize) -> Tensor {
    let _line = caller_line();
    let [stride, low, high, input_dilation, dilation] = spatial.map(|a| a.to_vec().into());
    trace(
        &CONVOLUTION,
        [x.into(), w.into()],
        [stride, low, high, input_dilation, dilation, groups.into(), batch_groups.into()],
    )
}

/// A kernel for the way back: input and output channels swapped within each group, space reversed.
#[track_caller]
fn turned(w: &Tensor, groups: usize) -> Tensor {
    let shape = w.shape();
    let (out, within, space) = (shape[0] / groups.max(1), shape[1], &shape[2..]);
    let swapped = match groups {
        1 => w.transpose(0, 1),
        _ => {
            let mut grouped = vec![groups, out, within];
            grouped.extend(space);
            let mut back = vec![groups * within, out];
            back.extend(space);
            w.reshape(grouped).transpose(1, 2).reshape(back)
        }
    };
    swapped.flip((2..shape.len()).collect::<Vec<_>>())
}

/// How a convolution's input is padded with zeros.
#[derive(Clone, Debug, PartialEq)]
pub enum Padding {
    /// So much on both sides, one number for all spatial dimensions or one each.
    Zeros(Dims),
    /// So much that with stride 1 the size stays (`padding="same"`).
    Same,
    /// None (`padding="valid"`).
    Valid,
}

impl<T: Into<Dims>> From<T> for Padding {
    fn from(amount: T) -> Padding {
        Padding::Zeros(amount.into())
    }
}

/// What torch's convolutions take besides input, weight and bias. One number in a field stands for all dimensions.
///
/// ```
/// use xlazy::prelude::*;
/// let options = ConvOptions { stride: 2.into(), padding: 1.into(), ..Default::default() };
/// let y = Tensor::ones([1, 3, 8, 8]).conv2d(&Tensor::ones([4, 3, 3, 3]), None, options);
/// assert_eq!(y.shape(), [1, 4, 4, 4]);
/// ```
#[derive(Clone, Debug)]
pub struct ConvOptions {
    pub stride: Dims,
    pub padding: Padding,
    pub dilation: Dims,
    pub groups: usize,
}

impl Default for ConvOptions {
    fn default() -> ConvOptions {
        ConvOptions { stride: 1.into(), padding: Padding::Valid, dilation: 1.into(), groups: 1 }
    }
}

/// What torch's transposed convolutions take besides input, weight and bias.
#[derive(Clone, Debug)]
pub struct ConvTransposeOptions {
    pub stride: Dims,
    pub padding: Dims,
    pub output_padding: Dims,
    pub groups: usize,
    pub dilation: Dims,
}

impl Default for ConvTransposeOptions {
    fn default() -> ConvTransposeOptions {
        let [one, zero] = [1, 0].map(Dims::from);
        ConvTransposeOptions {
            stride: one.clone(),
            padding: zero.clone(),
            output_padding: zero,
            groups: 1,
            dilation: one,
        }
    }
}

/// One number for each of `n` spatial dimensions.
#[track_caller]
pub(super) fn each(op: &'static str, what: &str, v: &Dims, n: usize, least: i64) -> Vec<i64> {
    let _line = caller_line();
    let all = if v.0.len() == 1 { vec![v.0[0]; n] } else { v.0.clone() };
    if all.len() != n || all.iter().any(|&d| d < least) {
        refuse(op, &[], format!("{what} is {:?}: needs one number or {n}, each at least {least}", v.0));
    }
    all
}

#[track_caller]
fn with_bias(y: Tensor, bias: Option<&Tensor>) -> Tensor {
    let Some(b) = bias else { return y };
    if b.shape() != [y.size(1)] {
        refuse(
            "convolution",
            &[&y, b],
            format!("the bias is {}, expected one number for each of {} channels", b.shape(), y.size(1)),
        );
    }
    let mut shape = vec![1i64; y.dim()];
    shape[1] = -1;
    // a product may be in a smaller dtype (`autocast`), and a bias makes it no larger
    &y + b.reshape(shape).to(y.dtype())
}

/// Applies `f` to an input with a batch dimension, adding and dropping one where it has none.
#[track_caller]
pub(super) fn batched(x: &Tensor, n: usize, f: impl FnOnce(&Tensor) -> Tensor) -> Tensor {
    if x.dim() == n + 1 { f(&x.unsqueeze(0)).squeeze_dim(0) } else { f(x) }
}

impl Tensor {
    #[track_caller]
    fn conv(&self, op: &'static str, n: usize, w: &Tensor, bias: Option<&Tensor>, o: ConvOptions) -> Tensor {
        let _line = caller_line();
        if w.dim() != n + 2 || !(n + 1..=n + 2).contains(&self.dim()) {
            let message =
                format!("needs an input (batch, channels, {n} × space) and a weight (out, in / groups, {n} × space)");
            refuse(op, &[self, w], message);
        }
        if o.groups == 0 {
            refuse(op, &[self, w], "the number of groups must be 1 or more");
        }
        let stride = each(op, "the stride", &o.stride, n, 1);
        let dilation = each(op, "the dilation", &o.dilation, n, 1);
        let (low, high) = match &o.padding {
            Padding::Valid => (vec![0; n], vec![0; n]),
            Padding::Zeros(p) => {
                let p = each(op, "the padding", p, n, 0);
                (p.clone(), p)
            }
            Padding::Same if stride.iter().any(|&s| s != 1) => refuse(op, &[], "padding Same needs stride 1"),
            Padding::Same => {
                let shape = w.shape();
                let total: Vec<i64> = (0..n).map(|d| dilation[d] * (shape[d + 2] as i64 - 1)).collect();
                (total.iter().map(|t| t / 2).collect(), total.iter().map(|t| t - t / 2).collect())
            }
        };
        let spatial: [&[i64]; 5] = [&stride, &low, &high, &vec![1; n], &dilation];
        batched(self, n, |x| with_bias(convolution(x, w, spatial, o.groups, 1), bias))
    }

    /// A convolution over one dimension: input (batch, channels, length), weight (out, channels / groups, kernel)
    /// (`torch.nn.functional.conv1d`). StableHLO: convolution.
    ///
    /// `tensor([[[1.0, 2.0, 4.0]]]).conv1d(&tensor([[[-1.0, 1.0]]]), None, ConvOptions::default())` is `[[[1., 2.]]]`.
    #[track_caller]
    pub fn conv1d(&self, weight: &Tensor, bias: Option<&Tensor>, options: ConvOptions) -> Tensor {
        let _call = called("conv1d", [self, weight].into_iter().chain(bias));
        self.conv("conv1d", 1, weight, bias, options)
    }

    /// A convolution over two dimensions: input (batch, channels, height, width), weight (out, channels / groups, height,
    /// width) (`torch.nn.functional.conv2d`). StableHLO: convolution.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::ones([1, 1, 3, 3]);
    /// let y = x.conv2d(&Tensor::ones([1, 1, 2, 2]), None, ConvOptions::default());
    /// assert_eq!(y.to_vec::<f32>(), [4.0; 4]);
    /// ```
    #[track_caller]
    pub fn conv2d(&self, weight: &Tensor, bias: Option<&Tensor>, options: ConvOptions) -> Tensor {
        let _call = called("conv2d", [self, weight].into_iter().chain(bias));
        self.conv("conv2d", 2, weight, bias, options)
    }

    /// A convolution over three dimensions (`torch.nn.functional.conv3d`). StableHLO: convolution.
    ///
    /// `Tensor::ones([1, 2, 4, 4, 4]).conv3d(&Tensor::ones([3, 2, 3, 3, 3]), None, ConvOptions::default()).shape()` is `[1,3,2,2,2]`.
    #[track_caller]
    pub fn conv3d(&self, weight: &Tensor, bias: Option<&Tensor>, options: ConvOptions) -> Tensor {
        let _call = called("conv3d", [self, weight].into_iter().chain(bias));
        self.conv("conv3d", 3, weight, bias, options)
    }

    #[track_caller]
    fn conv_transpose(
        &self,
        op: &'static str,
        n: usize,
        w: &Tensor,
        bias: Option<&Tensor>,
        o: ConvTransposeOptions,
    ) -> Tensor {
        let _line = caller_line();
        if w.dim() != n + 2 || !(n + 1..=n + 2).contains(&self.dim()) || o.groups == 0 {
            let message =
                format!("needs an input (batch, channels, {n} × space) and a weight (in, out / groups, {n} × space)");
            refuse(op, &[self, w], message);
        }
        if !w.size(0).is_multiple_of(o.groups) {
            refuse(op, &[self, w], format!("{} input channels do not divide into {} groups", w.size(0), o.groups));
        }
        let stride = each(op, "the stride", &o.stride, n, 1);
        let padding = each(op, "the padding", &o.padding, n, 0);
        let output_padding = each(op, "the output padding", &o.output_padding, n, 0);
        let dilation = each(op, "the dilation", &o.dilation, n, 1);
        let shape = w.shape();
        let low: Vec<i64> = (0..n).map(|d| dilation[d] * (shape[d + 2] as i64 - 1) - padding[d]).collect();
        let high: Vec<i64> = (0..n).map(|d| low[d] + output_padding[d]).collect();
        let spatial: [&[i64]; 5] = [&vec![1; n], &low, &high, &stride, &dilation];
        let kernel = turned(w, o.groups);
        batched(self, n, |x| with_bias(convolution(x, &kernel, spatial, o.groups, 1), bias))
    }

    /// The transpose of [`Tensor::conv1d`]: weight (in, out / groups, kernel) (`torch.nn.functional.conv_transpose1d`).
    ///
    /// `tensor([[[1.0, 2.0]]]).conv_transpose1d(&tensor([[[1.0, 1.0]]]), None, ConvTransposeOptions::default())` is `[[[1., 3., 2.]]]`.
    #[track_caller]
    pub fn conv_transpose1d(&self, weight: &Tensor, bias: Option<&Tensor>, options: ConvTransposeOptions) -> Tensor {
        let _call = called("conv_transpose1d", [self, weight].into_iter().chain(bias));
        self.conv_transpose("conv_transpose1d", 1, weight, bias, options)
    }

    /// The transpose of [`Tensor::conv2d`]: weight (in, out / groups, height, width)
    /// (`torch.nn.functional.conv_transpose2d`).
    ///
    /// `Tensor::ones([1, 2, 4, 4]).conv_transpose2d(&Tensor::ones([2, 3, 3, 3]), None, ConvTransposeOptions::default()).shape()` is `[1,3,6,6]`.
    #[track_caller]
    pub fn conv_transpose2d(&self, weight: &Tensor, bias: Option<&Tensor>, options: ConvTransposeOptions) -> Tensor {
        let _call = called("conv_transpose2d", [self, weight].into_iter().chain(bias));
        self.conv_transpose("conv_transpose2d", 2, weight, bias, options)
    }

    /// The transpose of [`Tensor::conv3d`] (`torch.nn.functional.conv_transpose3d`).
    ///
    /// `Tensor::ones([1, 1, 1, 1, 2]).conv_transpose3d(&Tensor::ones([1, 1, 1, 1, 2]), None, Default::default()).flatten()` is `[1., 2., 1.]`.
    #[track_caller]
    pub fn conv_transpose3d(&self, weight: &Tensor, bias: Option<&Tensor>, options: ConvTransposeOptions) -> Tensor {
        let _call = called("conv_transpose3d", [self, weight].into_iter().chain(bias));
        self.conv_transpose("conv_transpose3d", 3, weight, bias, options)
    }
}
