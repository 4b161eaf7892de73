//! Reductions: sums, means, extremes, logic, cumulative sums.
use super::barrier::barrier;
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, called, caller_line, refuse, trace};
use xlazy_core::emit::{Reducer, Val};
use xlazy_core::ir::Role::{Axis, Mode};
use xlazy_core::ir::{AttrsExt, Kind, Lower, Rule, Sig, attr, rules};
use xlazy_core::ty::{Category, DType, Dims, Shape, Type};

/// The shape after reducing over the dims of attribute 0, kept as 1 where attribute 1 says so.
fn reduced(s: &Sig) -> Shape {
    let (dims, keep) = (s.attrs.dims(0), s.attrs.flag(1));
    let mut shape = Shape::default();
    for (i, &d) in s.shape(0).iter().enumerate() {
        match (dims.contains(&i), keep) {
            (false, _) => shape.push(d),
            (true, true) => shape.push(1),
            (true, false) => {}
        }
    }
    shape
}

fn keep_type(s: &Sig) -> Rule {
    Ok(Type::new(s.dtype(0), reduced(s)))
}

// Sums and products of integers and bools count in int64, as in torch.
fn sum_type(s: &Sig) -> Rule {
    let dtype = if s.dtype(0).category() <= Category::Int { DType::I64 } else { s.dtype(0) };
    Ok(Type::new(dtype, reduced(s)))
}

fn float_type(s: &Sig) -> Rule {
    if !s.dtype(0).is_differentiable() {
        return Err(format!("needs a float tensor, this one is {}: convert with `.float()`", s.dtype(0)));
    }
    Ok(Type::new(s.dtype(0), reduced(s)))
}

fn bool_type(s: &Sig) -> Rule {
    Ok(Type::new(DType::Bool, reduced(s)))
}

// What is `wide` of halves is summed in f32, as XLA and torch do on accelerators, and rounded after what is done with the sum.
fn reduce_in(l: &mut Lower, r: Reducer, wide: bool) -> Val {
    reduced_and(l, r, wide, |_, sum| sum)
}

fn reduced_and(l: &mut Lower, r: Reducer, wide: bool, then: impl FnOnce(&mut Lower, Val) -> Val) -> Val {
    let x = l.cast(0);
    let dims = l.attrs.dims(0);
    let shape = l.out.shape.clone();
    let dtype = l.out.dtype;
    let x = if wide { super::base::wide(l, &x) } else { x };
    let v = l.reduce(&x, &dims, r);
    let v = then(l, v);
    let v = l.convert(&v, dtype);
    l.reshape(&v, &shape)
}

fn samples() -> Vec<Sample> {
    let of = |dims: Vec<i64>, keep: bool| Sample::of(&[&[2, 3, 2]]).attrs(vec![dims.into(), keep.into()]);
    vec![of(vec![0, 1, 2], false), of(vec![1], true), of(vec![0, 2], false)]
}

/// The gradient of a reduction with its reduced dimensions put back, broadcast to the operand's shape.
fn spread(g: &crate::tensor::Grad, dy: &Tensor) -> Tensor {
    let x = g.x(0);
    let mut shape = x.shape();
    g.attrs.dims(0).iter().for_each(|&d| shape[d] = 1);
    dy.reshape(&shape).expand(x.shape())
}

static SUM: Entry = Entry::new("sum", sum_type, |l| reduce_in(l, Reducer::Add, true))
    .kind(Kind::Reduce)
    .attrs(&[attr("dim", Axis), attr("keepdim", Mode)])
    .samples(samples)
    .grad(|g| vec![Some(spread(g, &g.dy))])
    .bucket(bucket::sum);

pub(super) fn count(shape: &Shape, dims: &[usize]) -> f64 {
    dims.iter().map(|&d| shape[d]).product::<usize>() as f64
}

static MEAN: Entry = Entry::new("mean", float_type, |l| {
    let n = count(l.inputs[0].shape(), &l.attrs.dims(0));
    reduced_and(l, Reducer::Add, true, |l, sum| l.with_const("divide", &sum, n))
})
.kind(Kind::Reduce)
.attrs(&[attr("dim", Axis), attr("keepdim", Mode)])
.samples(samples)
.grad(|g| {
    let n = count(&g.x(0).shape(), &g.attrs.dims(0));
    vec![Some(spread(g, &(&g.dy * (1.0 / n))))]
})
.bucket(bucket::mean);

static PROD: Entry = Entry::new("prod", sum_type, |l| reduce_in(l, Reducer::Mul, false))
    .kind(Kind::Reduce)
    .attrs(&[attr("dim", Axis), attr("keepdim", Mode)])
    .samples(|| samples().into_iter().map(|s| s.range(0.5, 2.0)).collect())
    .grad(|g| {
        // The product of all others, as that of those before times that of those after: right where there are zeros.
        let x = g.x(0);
        let shape = x.shape();
        let dims = g.attrs.dims(0);
        let mut order: Vec<usize> = (0..shape.len()).filter(|d| !dims.contains(d)).collect();
        let kept = order.len();
        order.extend(&dims);
        let mut flat: Vec<i64> = order[..kept].iter().map(|&d| shape[d] as i64).collect();
        flat.push(order[kept..].iter().map(|&d| shape[d]).product::<usize>() as i64);
        let rows = x.permute(order.as_slice()).reshape(flat);
        let before = others_before(&rows);
        let after = others_before(&rows.flip(-1)).flip(-1);
        let moved: Vec<usize> = order.iter().map(|&d| shape[d]).collect();
        let mut back = vec![0usize; order.len()];
        order.iter().enumerate().for_each(|(i, &d)| back[d] = i);
        vec![Some(spread(g, &g.dy) * (before * after).reshape(moved).permute(back))]
    })
    .bucket(bucket::prod);

// For each element the product of those before it in its row, 1 for the first.
fn others_before(rows: &Tensor) -> Tensor {
    let n = rows.size(-1) as i64;
    let ones = rows.narrow(-1, 0, n.min(1)).ones_like();
    super::cat(&[&ones, &rows.narrow(-1, 0, (n - 1).max(0))], -1).cumprod(-1)
}

// Equals share the gradient evenly, as in torch. What is equal to what is asked of one and the same values: XLA may compute what
// gives `x` twice, in kernels that add up in other orders, and then nothing would be equal to the extreme of the other one.
fn extreme_grad(g: &crate::tensor::Grad, extreme: fn(&Tensor, Dims, bool) -> Tensor) -> Vec<Option<Tensor>> {
    let x = barrier(std::slice::from_ref(g.x(0))).remove(0);
    let is = x.eq(extreme(&x, g.attrs.dims(0).as_slice().into(), true)).to(x.dtype());
    let n = is.sum_dims(&g.attrs.dims(0), true);
    vec![Some(spread(g, &g.dy) * (is / n))]
}

// There is no largest element of none.
fn extreme_type(s: &Sig) -> Rule {
    rules::ordered(s)?;
    match s.attrs.dims(0).into_iter().find(|&d| s.shape(0)[d] == 0) {
        Some(d) => Err(format!("dimension {d} is empty and has no extreme element")),
        None => keep_type(s),
    }
}

static AMAX: Entry = Entry::new("amax", extreme_type, |l| extreme(l, Reducer::Max))
    .kind(Kind::Reduce)
    .attrs(&[attr("dim", Axis), attr("keepdim", Mode)])
    .samples(samples)
    .grad(|g| extreme_grad(g, Tensor::amax))
    .bucket(bucket::max);

static AMIN: Entry = Entry::new("amin", extreme_type, |l| extreme(l, Reducer::Min))
    .kind(Kind::Reduce)
    .attrs(&[attr("dim", Axis), attr("keepdim", Mode)])
    .samples(samples)
    .grad(|g| extreme_grad(g, Tensor::amin))
    .bucket(bucket::min);

fn extreme(l: &mut Lower, r: Reducer) -> Val {
    let x = l.x(0);
    match x.dtype() {
        DType::Bool => reduce_in(l, if r == Reducer::Max { Reducer::Or } else { Reducer::And }, false),
        dtype if dtype.is_float() => {
            // XLA's own reduction drops NaN where it vectorises on CPUs, by size and position
            let (v, shape, dims) = (reduce_in(l, r, false), l.out.shape.clone(), l.attrs.dims(0));
            let nan = l.compare("NE", &x, &x);
            let nan = l.reduce(&nan, &dims, Reducer::Or);
            let nan = l.reshape(&nan, &shape);
            let quiet = l.constant(f64::NAN, &v.ty);
            l.select(&nan, &quiet, &v)
        }
        _ => reduce_in(l, r, false),
    }
}

static ALL: Entry = Entry::new("all", bool_type, |l| reduce_in(l, Reducer::And, false))
    .kind(Kind::Reduce)
    .attrs(&[attr("dim", Axis), attr("keepdim", Mode)])
    .samples(samples)
    .bucket(bucket::prod);
static ANY: Entry = Entry::new("any", bool_type, |l| reduce_in(l, Reducer::Or, false))
    .kind(Kind::Reduce)
    .attrs(&[attr("dim", Axis), attr("keepdim", Mode)])
    .samples(samples)
    .bucket(bucket::sum);

fn index_type(s: &Sig) -> Rule {
    rules::ordered(s)?;
    if s.shape(0).get(s.attrs.index(0)) == Some(&0) {
        return Err("there is no extreme element in an empty dimension".into());
    }
    let mut shape = s.shape(0).clone();
    if !shape.is_empty() {
        match s.attrs.flag(1) {
            true => shape[s.attrs.index(0)] = 1,
            false => drop(shape.remove(s.attrs.index(0))),
        }
    }
    Ok(Type::new(DType::I64, shape))
}

fn arg(l: &mut Lower, max: bool) -> Val {
    let x = l.x(0);
    let shape = l.out.shape.clone();
    if x.rank() == 0 {
        let ty = l.out.clone();
        return l.constant(0.0, &ty);
    }
    let x = if x.dtype() == DType::Bool { l.convert(&x, DType::I32) } else { x };
    let dim = l.attrs.index(0);
    let (_, index) = l.arg_extreme(&x, dim, max);
    l.reshape(&index, &shape)
}

fn arg_samples() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3]]).attrs(vec![1usize.into(), false.into()])]
}

static ARGMAX: Entry = Entry::new("argmax", index_type, |l| arg(l, true))
    .kind(Kind::Reduce)
    .attrs(&[attr("dim", Axis), attr("keepdim", Mode)])
    .samples(arg_samples)
    .bucket(bucket::argmax);
static ARGMIN: Entry = Entry::new("argmin", index_type, |l| arg(l, false))
    .kind(Kind::Reduce)
    .attrs(&[attr("dim", Axis), attr("keepdim", Mode)])
    .samples(arg_samples)
    .bucket(bucket::argmin);

// A window that reaches from the start to each element.
fn running(l: &mut Lower, r: Reducer) -> Val {
    let x = l.cast(0);
    if x.rank() == 0 || x.shape().numel() == 0 {
        return x;
    }
    let dim = l.attrs.index(0);
    let n = x.shape()[dim];
    let init = l.neutral(r, x.dtype());
    let region = l.combining(r, x.dtype());
    let ones = vec![1usize; x.rank()];
    let mut window = ones.clone();
    window[dim] = n;
    let mut padding = vec![[0usize, 0]; x.rank()];
    padding[dim] = [n - 1, 0];
    let rows: Vec<String> = padding.iter().map(|p| format!("[{}, {}]", p[0], p[1])).collect();
    let attributes = format!(
        "{{window_dimensions = array<i64{}>, window_strides = array<i64{}>, padding = dense<[{}]> : tensor<{}x2xi64>}}",
        xlazy_core::emit::array(&window),
        xlazy_core::emit::array(&ones),
        rows.join(", "),
        x.rank()
    );
    let ty = x.ty.clone();
    let [y] = l.with_regions("reduce_window", &[&x, &init], &[region], &attributes, [ty]);
    y
}

static CUMSUM: Entry = Entry::new(
    "cumsum",
    |s| {
        let dtype = if s.dtype(0).category() <= Category::Int { DType::I64 } else { s.dtype(0) };
        Ok(Type::new(dtype, s.shape(0).clone()))
    },
    |l| running(l, Reducer::Add),
)
.kind(Kind::Along)
.attrs(&[attr("dim", Axis)])
.samples(|| vec![Sample::of(&[&[2, 3]]).attrs(vec![1usize.into()])])
.grad(|g| {
    let dim = g.attrs.int(0);
    vec![Some(g.dy.flip(dim).cumsum(dim).flip(dim))]
})
.bucket(bucket::cumsum);

static CUMPROD: Entry = Entry::new(
    "cumprod",
    |s| {
        let dtype = if s.dtype(0).category() <= Category::Int { DType::I64 } else { s.dtype(0) };
        Ok(Type::new(dtype, s.shape(0).clone()))
    },
    |l| running(l, Reducer::Mul),
)
.kind(Kind::Along)
.attrs(&[attr("dim", Axis)])
.samples(|| vec![Sample::of(&[&[2, 3]]).attrs(vec![1usize.into()])])
.grad(|g| {
    // dx_i = Σ_{j >= i} dy_j · (product of x_0 … x_j without x_i): no division, right where there are zeros
    let dim = g.attrs.int(0);
    if g.x(0).dim() == 0 {
        return vec![Some(g.dy.clone())];
    }
    let (x, dy) = (g.x(0).transpose(dim, -1), g.dy.transpose(dim, -1));
    let n = x.size(-1);
    let after = Tensor::ones([n, n]).bool().triu(1);
    let between = x.unsqueeze(-2).where_(&after, 1.0).cumprod(-1);
    let reached = between.where_(&after.logical_or(Tensor::eye(n).bool()), 0.0);
    let sum = (reached * dy.unsqueeze(-2)).sum_dim(-1, false);
    vec![Some((others_before(&x) * sum).transpose(dim, -1))]
})
.bucket(bucket::cumprod);

static LOGSUMEXP: Entry = Entry::new(
    "logsumexp",
    |s| Ok(Type::new(s.dtype(0).to_float(), reduced(s))),
    |l| {
        let x = l.cast(0);
        let dims = l.attrs.dims(0);
        let shape = l.out.shape.clone();
        let max = l.reduce_keep(&x, &dims, Reducer::Max);
        // the maximum may be infinite; subtracting it would make NaN
        let finite = l.op("is_finite", &[&max], "", Type::new(DType::Bool, max.shape().clone()));
        let zero = l.constant(0.0, &max.ty);
        let max = l.select(&finite, &max, &zero);
        let wide = l.broadcast(&max, x.shape());
        let d = l.sub(&x, &wide);
        let e = l.unary("exponential", &d);
        let sum = l.reduce_keep(&e, &dims, Reducer::Add);
        let log = l.unary("log", &sum);
        let v = l.add(&log, &max);
        l.reshape(&v, &shape)
    },
)
.kind(Kind::Reduce)
.attrs(&[attr("dim", Axis), attr("keepdim", Mode)])
.samples(samples)
.grad(|g| vec![Some(spread(g, &g.dy) * (g.x(0) - spread(g, g.y())).exp())])
.bucket(bucket::logsumexp);

pub(super) static OPS: &[&Entry] =
    &[&SUM, &MEAN, &PROD, &AMAX, &AMIN, &ALL, &ANY, &ARGMAX, &ARGMIN, &CUMSUM, &CUMPROD, &LOGSUMEXP];

impl Tensor {
    #[track_caller]
    fn reduce(&self, op: &'static Entry, dims: Dims, keepdim: bool) -> Tensor {
        let dims = self.dim_indices(op.name, &dims);
        let dims: Vec<i64> = dims.into_iter().map(|d| d as i64).collect();
        trace(op, [self.into()], [dims.into(), keepdim.into()])
    }

    #[track_caller]
    pub(crate) fn sum_dims(&self, dims: &[usize], keepdim: bool) -> Tensor {
        if dims.is_empty() { self.clone() } else { self.reduce(&SUM, dims.into(), keepdim) }
    }

    /// The sum of all elements (`torch.sum`). Integers and bools sum to int64.
    ///
    /// `tensor([1.0, 2.0]).sum()` is `3.`.
    #[track_caller]
    pub fn sum(&self) -> Tensor {
        self.reduce(&SUM, Dims::default(), false)
    }

    /// The sum along `dim` (one or several), kept with size 1 where `keepdim` (`torch.sum(x, dim, keepdim)`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.sum_dim(0, false).to_vec::<f32>(), [4.0, 6.0]);
    /// ```
    #[track_caller]
    pub fn sum_dim(&self, dim: impl Into<Dims>, keepdim: bool) -> Tensor {
        self.reduce(&SUM, dim.into(), keepdim)
    }

    /// The mean of all elements (`torch.mean`); float tensors only.
    ///
    /// `tensor([1.0, 2.0]).mean()` is `1.5000`.
    #[track_caller]
    pub fn mean(&self) -> Tensor {
        self.reduce(&MEAN, Dims::default(), false)
    }

    /// The mean along `dim` (`torch.mean(x, dim, keepdim)`).
    ///
    /// `tensor([[1.0, 3.0], [5.0, 9.0]]).mean_dim(1, false)` is `[2., 7.]`.
    #[track_caller]
    pub fn mean_dim(&self, dim: impl Into<Dims>, keepdim: bool) -> Tensor {
        self.reduce(&MEAN, dim.into(), keepdim)
    }

    /// The product of all elements (`torch.prod`).
    ///
    /// `tensor([2, 3, 4]).prod()` is `24`.
    #[track_caller]
    pub fn prod(&self) -> Tensor {
        self.reduce(&PROD, Dims::default(), false)
    }

    /// The product along `dim` (`torch.prod(x, dim, keepdim)`).
    ///
    /// `tensor([[1, 2], [3, 4]]).prod_dim(1, false)` is `[2, 12]`.
    #[track_caller]
    pub fn prod_dim(&self, dim: i64, keepdim: bool) -> Tensor {
        self.reduce(&PROD, dim.into(), keepdim)
    }

    /// The largest element (`torch.max(x)`).
    ///
    /// `tensor([3, 1, 2]).max()` is `3`.
    #[track_caller]
    pub fn max(&self) -> Tensor {
        self.not_empty("max");
        self.reduce(&AMAX, Dims::default(), false)
    }

    /// The smallest element (`torch.min(x)`).
    ///
    /// `tensor([3, 1, 2]).min()` is `1`.
    #[track_caller]
    pub fn min(&self) -> Tensor {
        self.not_empty("min");
        self.reduce(&AMIN, Dims::default(), false)
    }

    #[track_caller]
    fn not_empty(&self, op: &'static str) {
        if self.numel() == 0 {
            refuse(op, &[self], "an empty tensor has no extreme element");
        }
    }

    /// The largest elements along `dim` and where they are, int64 (`torch.max(x, dim, keepdim)`).
    ///
    /// `tensor([[3, 1], [2, 5]]).max_dim(1, false)` is `(tensor([3, 5]), tensor([0, 1]))`.
    #[track_caller]
    pub fn max_dim(&self, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        let _call = called("max_dim", [self]);
        self.extreme_dim(&AMAX, dim, keepdim, Tensor::argmax_dim)
    }

    /// The smallest elements along `dim` and where they are, int64 (`torch.min(x, dim, keepdim)`).
    ///
    /// `tensor([[3, 1], [2, 5]]).min_dim(1, false)` is `(tensor([1, 2]), tensor([1, 0]))`.
    #[track_caller]
    pub fn min_dim(&self, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        let _call = called("min_dim", [self]);
        self.extreme_dim(&AMIN, dim, keepdim, Tensor::argmin_dim)
    }

    #[track_caller]
    fn extreme_dim(
        &self,
        op: &'static Entry,
        dim: i64,
        keepdim: bool,
        places: fn(&Tensor, i64, bool) -> Tensor,
    ) -> (Tensor, Tensor) {
        let _line = caller_line();
        if !self.requires_grad() || self.dim() == 0 {
            return (self.reduce(op, dim.into(), keepdim), places(self, dim, keepdim));
        }
        // the gradient goes to the element that the index names, not to all equals
        let at = places(self, dim, true);
        let value = self.gather(dim, &at);
        if keepdim { (value, at) } else { (value.squeeze_dim(dim), at.squeeze_dim(dim)) }
    }

    /// The largest elements along `dim` (`torch.amax`).
    ///
    /// `tensor([[3, 1], [2, 5]]).amax(1, false)` is `[3, 5]`.
    #[track_caller]
    pub fn amax(&self, dim: impl Into<Dims>, keepdim: bool) -> Tensor {
        self.reduce(&AMAX, dim.into(), keepdim)
    }

    /// The smallest elements along `dim` (`torch.amin`).
    ///
    /// `tensor([[3, 1], [2, 5]]).amin(1, false)` is `[1, 2]`.
    #[track_caller]
    pub fn amin(&self, dim: impl Into<Dims>, keepdim: bool) -> Tensor {
        self.reduce(&AMIN, dim.into(), keepdim)
    }

    /// The index of the largest element of the flattened tensor, int64 (`torch.argmax(x)`).
    ///
    /// `tensor([3, 1, 7]).argmax()` is `2`.
    #[track_caller]
    pub fn argmax(&self) -> Tensor {
        let _call = called("argmax", [self]);
        self.not_empty("argmax");
        self.flatten().argmax_dim(0, false)
    }

    /// The index of the smallest element of the flattened tensor, int64 (`torch.argmin(x)`).
    ///
    /// `tensor([3, 1, 7]).argmin()` is `1`.
    #[track_caller]
    pub fn argmin(&self) -> Tensor {
        let _call = called("argmin", [self]);
        self.not_empty("argmin");
        self.flatten().argmin_dim(0, false)
    }

    /// Where the largest elements along `dim` are, int64; the first of equals (`torch.argmax(x, dim, keepdim)`).
    ///
    /// `tensor([[3, 1], [2, 5]]).argmax_dim(1, false)` is `[0, 1]`.
    #[track_caller]
    pub fn argmax_dim(&self, dim: i64, keepdim: bool) -> Tensor {
        trace(&ARGMAX, [self.into()], [self.dim_index("argmax", dim).into(), keepdim.into()])
    }

    /// Where the smallest elements along `dim` are, int64; the first of equals (`torch.argmin(x, dim, keepdim)`).
    ///
    /// `tensor([[3, 1], [2, 5]]).argmin_dim(1, false)` is `[1, 0]`.
    #[track_caller]
    pub fn argmin_dim(&self, dim: i64, keepdim: bool) -> Tensor {
        trace(&ARGMIN, [self.into()], [self.dim_index("argmin", dim).into(), keepdim.into()])
    }

    // torch gives uint8 for uint8, from before it had bools.
    #[track_caller]
    fn tested(&self, found: Tensor) -> Tensor {
        if self.dtype() == DType::U8 { found.to(DType::U8) } else { found }
    }

    /// Whether all elements are true, as a bool tensor; of uint8 as uint8 (`torch.all`).
    ///
    /// `tensor([true, false]).all()` is `false`.
    #[track_caller]
    pub fn all(&self) -> Tensor {
        self.tested(self.reduce(&ALL, Dims::default(), false))
    }

    /// Whether any element is true, as a bool tensor; of uint8 as uint8 (`torch.any`).
    ///
    /// `tensor([true, false]).any()` is `true`.
    #[track_caller]
    pub fn any(&self) -> Tensor {
        self.tested(self.reduce(&ANY, Dims::default(), false))
    }

    /// Whether all elements along `dim` are true (`torch.all(x, dim, keepdim)`).
    ///
    /// `tensor([[true, false], [true, true]]).all_dim(1, false)` is `[false, true]`.
    #[track_caller]
    pub fn all_dim(&self, dim: impl Into<Dims>, keepdim: bool) -> Tensor {
        self.tested(self.reduce(&ALL, dim.into(), keepdim))
    }

    /// Whether any element along `dim` is true (`torch.any(x, dim, keepdim)`).
    ///
    /// `tensor([[true, false], [false, false]]).any_dim(1, false)` is `[true, false]`.
    #[track_caller]
    pub fn any_dim(&self, dim: impl Into<Dims>, keepdim: bool) -> Tensor {
        self.tested(self.reduce(&ANY, dim.into(), keepdim))
    }

    /// The running sum along `dim` (`torch.cumsum`).
    ///
    /// `tensor([1, 2, 3]).cumsum(0)` is `[1, 3, 6]`.
    #[track_caller]
    pub fn cumsum(&self, dim: i64) -> Tensor {
        trace(&CUMSUM, [self.into()], [self.dim_index("cumsum", dim).into()])
    }

    /// log Σ e^x along `dim`, without overflow (`torch.logsumexp`).
    ///
    /// `tensor([0.0, 0.0]).logsumexp(0, false)` is `0.6931`.
    #[track_caller]
    pub fn logsumexp(&self, dim: impl Into<Dims>, keepdim: bool) -> Tensor {
        let dims = dim.into();
        if !self.dtype().is_complex() {
            return self.reduce(&LOGSUMEXP, dims, keepdim);
        }
        let _call = called("logsumexp", [self]);
        let top = self.real().detach().amax(dims.clone(), true);
        let top = top.masked_fill(&top.isfinite().logical_not(), 0.0);
        let sum = (self - &top).exp().sum_dim(dims.clone(), true).log() + top;
        if keepdim { sum } else { sum.reshape(self.real().detach().amax(dims, false).shape()) }
    }

    /// The running product along `dim` (`torch.cumprod`).
    ///
    /// `tensor([1, 2, 3]).cumprod(0)` is `[1, 2, 6]`.
    #[track_caller]
    pub fn cumprod(&self, dim: i64) -> Tensor {
        trace(&CUMPROD, [self.into()], [self.dim_index("cumprod", dim).into()])
    }
}
