//! Activations and what bounds values: clamp, softmax and its logarithm.
use super::base::widely;
use crate::bucket;
use crate::tensor::{Arg, Entry, Sample, Tensor, trace};
use xlazy_core::emit::{Reducer, Val};
use xlazy_core::ir::Role::{Axis, Mode};
use xlazy_core::ir::{AttrsExt, Kind, Lower, Rule, Sig, attr, rules};
use xlazy_core::ty::{DType, Type};

fn sample() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3]])]
}

const BOTH: &str = "always give both (`clamp(0.0, f64::INFINITY)`)";

static CLAMP: Entry = Entry::new(
    "clamp",
    |s| {
        rules::ordered(s)?;
        Ok(Type::new(rules::promote(s.inputs)?, rules::broadcast_shapes(s)?))
    },
    |l| {
        // Which bounds there are is an attribute; their values are operands.
        let (low, high) = (l.attrs.flag(0), l.attrs.flag(1));
        let mut v = l.fit(0);
        let mut next = 1;
        for (there, op) in [(low, "maximum"), (high, "minimum")] {
            if there {
                let bound = l.fit(next);
                v = l.binary(op, &v, &bound);
                next += 1;
            }
        }
        v
    },
)
.attrs(&[attr("has_min", Mode).advice(BOTH), attr("has_max", Mode).advice(BOTH)])
.samples(|| {
    let of = |low: bool, high: bool| vec![low.into(), high.into()];
    vec![
        Sample::of(&[&[2, 3], &[], &[3]]).attrs(of(true, true)),
        Sample::of(&[&[3], &[2, 1]]).attrs(of(true, false)),
        Sample::of(&[&[3], &[2, 1]]).attrs(of(false, true)),
    ]
})
.grad(|g| {
    // A value at its bound lets the gradient through, one beyond it hands it to the bound.
    let x = g.x(0);
    let (low, high) = (g.attrs.flag(0), g.attrs.flag(1));
    let min = low.then(|| g.x(1));
    let max = high.then(|| g.x(if low { 2 } else { 1 }));
    let above = min.map(|m| x.ge(m));
    let below = max.map(|m| x.le(m));
    let pass = |t: Tensor| g.dy.where_(&t, 0.0);
    let mut out = vec![g.want(0, || match (&above, &below) {
        (Some(a), Some(b)) => pass(a.logical_and(b)),
        (Some(a), None) => pass(a.clone()),
        (None, Some(b)) => pass(b.clone()),
        (None, None) => g.dy.clone(),
    })];
    if let Some(min) = min {
        out.push(g.want(1, || {
            let hit = x.lt(min);
            pass(max.map_or(hit.clone(), |max| hit.logical_and(min.lt(max))))
        }));
    }
    if let Some(max) = max {
        out.push(g.want(out.len(), || {
            let hit = x.gt(max);
            pass(min.map_or(hit.clone(), |min| hit.logical_or(max.lt(min))))
        }));
    }
    out
})
.bucket(bucket::each);

fn ordered(s: &Sig) -> Rule {
    rules::ordered(s)?;
    match s.dtype(0) {
        DType::Bool => Err("needs numbers, not bool: convert with `.to(…)`".into()),
        _ => rules::same(s),
    }
}

static RELU: Entry = Entry::new("relu", ordered, |l| {
    let x = l.x(0);
    l.with_const("maximum", &x, 0.0)
})
.samples(sample)
.grad(|g| vec![Some(g.dy.masked_fill(&g.y().le(0.0), 0.0))])
.bucket(bucket::each);

static SIGMOID: Entry = Entry::new("sigmoid", rules::float, |l| {
    let x = l.cast(0);
    l.unary("logistic", &x)
})
.samples(sample)
.grad(|g| vec![Some(&g.dy * (g.y() * (1.0 - g.y())))])
.bucket(bucket::each);

static SILU: Entry = Entry::new("silu", rules::float, |l| {
    let x = l.cast(0);
    let s = l.unary("logistic", &x);
    l.mul(&x, &s)
})
.samples(sample)
.grad(|g| {
    let s = g.x(0).sigmoid();
    vec![Some(&g.dy * (&s * (g.x(0) * (1.0 - &s) + 1.0)))]
})
.bucket(bucket::each);

// x Φ(x); Φ from the error function, or torch's tanh approximation
fn gelu(l: &mut Lower, x: &Val) -> Val {
    let inner = match l.attrs.flag(0) {
        true => {
            let x2 = l.mul(x, x);
            let x3 = l.mul(&x2, x);
            let cubic = l.with_const("multiply", &x3, 0.044715);
            let sum = l.add(x, &cubic);
            let scaled = l.with_const("multiply", &sum, (2.0 / std::f64::consts::PI).sqrt());
            l.unary("tanh", &scaled)
        }
        false => {
            let scaled = l.with_const("multiply", x, std::f64::consts::FRAC_1_SQRT_2);
            l.unary("chlo.erf", &scaled)
        }
    };
    let one = l.with_const("add", &inner, 1.0);
    let half = l.with_const("multiply", x, 0.5);
    l.mul(&half, &one)
}

static GELU: Entry = Entry::new("gelu", rules::float, |l| widely(l, gelu))
    .attrs(&[attr("tanh", Mode)])
    .samples(|| vec![Sample::of(&[&[2, 3]]).attrs(vec![true.into()]), Sample::of(&[&[2, 3]]).attrs(vec![false.into()])])
    .grad(|g| {
        let x = g.x(0);
        let slope = match g.attrs.flag(0) {
            true => {
                let k = (2.0 / std::f64::consts::PI).sqrt();
                let t = ((x + x.pow(3.0) * 0.044715) * k).tanh();
                let dt = (1.0 - t.square()) * (x.square() * (3.0 * 0.044715 * k) + k);
                (&t + 1.0) * 0.5 + x * 0.5 * dt
            }
            false => {
                let cdf = ((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5;
                let pdf = (x.square() * -0.5).exp() * (1.0 / (2.0 * std::f64::consts::PI).sqrt());
                cdf + x * pdf
            }
        };
        vec![Some(&g.dy * slope)]
    })
    .bucket(bucket::each);

// log(1 + e^x), written so that it does not overflow
static SOFTPLUS: Entry = Entry::new("softplus", rules::float, |l| {
    let x = l.cast(0);
    let top = l.with_const("maximum", &x, 0.0);
    let a = l.unary("abs", &x);
    let n = l.unary("negate", &a);
    let e = l.unary("exponential", &n);
    let log = l.unary("log_plus_one", &e);
    l.add(&top, &log)
})
.samples(sample)
.grad(|g| vec![Some(&g.dy * g.x(0).sigmoid())])
.bucket(bucket::each);

// Slopes are rarely whole: integers would lose them.
fn floats(s: &Sig) -> Rule {
    if s.dtype(0).is_float() { rules::same(s) } else { Err("needs a float tensor: convert with `.float()`".into()) }
}

static LEAKY_RELU: Entry = Entry::new("leaky_relu", floats, |l| {
    let x = l.x(0);
    let slope = l.fit(1);
    let scaled = l.mul(&x, &slope);
    let zero = l.constant(0.0, &x.ty);
    let positive = l.compare("GT", &x, &zero);
    l.select(&positive, &x, &scaled)
})
.samples(|| vec![Sample::of(&[&[2, 3], &[]])])
.grad(|g| {
    let positive = g.x(0).gt(0.0);
    let slope = g.want(1, || (&g.dy * g.x(0)).where_(&positive.logical_not(), 0.0));
    vec![Some(g.dy.where_(&positive, &(&g.dy * g.x(1)))), slope]
})
.bucket(bucket::each);

static ELU: Entry = Entry::new("elu", floats, |l| {
    let x = l.x(0);
    let alpha = l.fit(1);
    let e = l.unary("exponential_minus_one", &x);
    let scaled = l.mul(&alpha, &e);
    let zero = l.constant(0.0, &x.ty);
    let positive = l.compare("GT", &x, &zero);
    l.select(&positive, &x, &scaled)
})
.samples(|| vec![Sample::of(&[&[2, 3], &[]]).range(0.1, 1.0), Sample::of(&[&[2, 3], &[]]).range(-1.0, -0.1)])
.grad(|g| {
    let below = g.x(0).le(0.0);
    let e = g.x(0).exp();
    let alpha = g.want(1, || (&g.dy * (&e - 1.0)).where_(&below, 0.0));
    vec![Some((&g.dy * g.x(1) * &e).where_(&below, &g.dy)), alpha]
})
.bucket(bucket::each);

// x minus its maximum along the dimension, and the dimension
fn shifted(l: &mut Lower, x: &Val) -> (Val, usize) {
    let dim = l.attrs.index(0);
    if x.rank() == 0 {
        let zero = l.constant(0.0, &x.ty);
        return (zero, 0);
    }
    let max = l.reduce_keep(x, &along(x, dim), Reducer::Max);
    let max = l.broadcast(&max, x.shape());
    (l.sub(x, &max), dim)
}

fn along(x: &Val, dim: usize) -> Vec<usize> {
    if x.rank() == 0 { vec![] } else { vec![dim] }
}

fn softmax_samples() -> Vec<Sample> {
    vec![Sample::of(&[&[2, 3]]).attrs(vec![1usize.into()]), Sample::of(&[&[2, 3]]).attrs(vec![0usize.into()])]
}

static SOFTMAX: Entry = Entry::new("softmax", rules::float, |l| {
    widely(l, |l, x| {
        let (x, dim) = shifted(l, x);
        let e = l.unary("exponential", &x);
        let sum = l.reduce_keep(&e, &along(&x, dim), Reducer::Add);
        let sum = l.broadcast(&sum, x.shape());
        l.div(&e, &sum)
    })
})
.kind(Kind::Along)
.attrs(&[attr("dim", Axis)])
.samples(softmax_samples)
.grad(|g| {
    let dim = g.attrs.int(0);
    let weighted = &g.dy * g.y();
    let sum = weighted.sum_dim(dim, true);
    vec![Some(weighted - g.y() * sum)]
})
.bucket(bucket::softmax);

static LOG_SOFTMAX: Entry = Entry::new("log_softmax", rules::float, |l| {
    widely(l, |l, x| {
        let (x, dim) = shifted(l, x);
        let e = l.unary("exponential", &x);
        let sum = l.reduce_keep(&e, &along(&x, dim), Reducer::Add);
        let log = l.unary("log", &sum);
        let log = l.broadcast(&log, x.shape());
        l.sub(&x, &log)
    })
})
.kind(Kind::Along)
.attrs(&[attr("dim", Axis)])
.samples(softmax_samples)
.grad(|g| {
    let dim = g.attrs.int(0);
    let sum = g.dy.sum_dim(dim, true);
    vec![Some(&g.dy - g.y().exp() * sum)]
})
.bucket(bucket::softmax);

pub(super) static OPS: &[&Entry] =
    &[&CLAMP, &RELU, &SIGMOID, &SILU, &GELU, &SOFTPLUS, &LEAKY_RELU, &ELU, &SOFTMAX, &LOG_SOFTMAX];

impl Tensor {
    /// Each element bounded to `min..=max` (`torch.clamp`); bounds are numbers or tensors that broadcast.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([-2.0, 0.5, 3.0]).clamp(-1.0, 1.0).to_vec::<f32>(), [-1.0, 0.5, 1.0]);
    /// ```
    #[track_caller]
    pub fn clamp<'a>(&self, min: impl Into<Arg<'a>>, max: impl Into<Arg<'a>>) -> Tensor {
        trace(&CLAMP, [self.into(), min.into(), max.into()], [true.into(), true.into()])
    }

    /// Each element at least `min` (`torch.clamp_min`).
    ///
    /// `tensor([-1.0, 2.0]).clamp_min(0.0)` is `[0., 2.]`.
    #[track_caller]
    pub fn clamp_min<'a>(&self, min: impl Into<Arg<'a>>) -> Tensor {
        trace(&CLAMP, [self.into(), min.into()], [true.into(), false.into()])
    }

    /// Each element at most `max` (`torch.clamp_max`).
    ///
    /// `tensor([-1.0, 2.0]).clamp_max(0.0)` is `[-1., 0.]`.
    #[track_caller]
    pub fn clamp_max<'a>(&self, max: impl Into<Arg<'a>>) -> Tensor {
        trace(&CLAMP, [self.into(), max.into()], [false.into(), true.into()])
    }

    /// max(x, 0) (`torch.relu`).
    ///
    /// `tensor([-1.0, 2.0]).relu()` is `[0., 2.]`.
    #[track_caller]
    pub fn relu(&self) -> Tensor {
        trace(&RELU, [self.into()], [])
    }

    /// 1 / (1 + e^-x) (`torch.sigmoid`); StableHLO logistic.
    ///
    /// `tensor([0.0, 2.0]).sigmoid()` is `[0.5000, 0.8808]`.
    #[track_caller]
    pub fn sigmoid(&self) -> Tensor {
        trace(&SIGMOID, [self.into()], [])
    }

    /// x · sigmoid(x) (`torch.nn.functional.silu`).
    ///
    /// `tensor([0.0, 2.0]).silu()` is `[0.0000, 1.7616]`.
    #[track_caller]
    pub fn silu(&self) -> Tensor {
        trace(&SILU, [self.into()], [])
    }

    /// x · Φ(x), Φ the normal distribution's (`torch.nn.functional.gelu`).
    ///
    /// `tensor([-1.0, 2.0]).gelu()` is `[-0.1587, 1.9545]`.
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        trace(&GELU, [self.into()], [false.into()])
    }

    /// gelu by its tanh approximation (`gelu(x, approximate="tanh")`).
    ///
    /// `tensor([-1.0, 2.0]).gelu_tanh()` is `[-0.1588, 1.9546]`.
    #[track_caller]
    pub fn gelu_tanh(&self) -> Tensor {
        trace(&GELU, [self.into()], [true.into()])
    }

    /// log(1 + e^x) (`torch.nn.functional.softplus`).
    ///
    /// `tensor([0.0, 2.0]).softplus()` is `[0.6931, 2.1269]`.
    #[track_caller]
    pub fn softplus(&self) -> Tensor {
        trace(&SOFTPLUS, [self.into()], [])
    }

    /// x where positive, `slope · x` elsewhere (`torch.nn.functional.leaky_relu`).
    ///
    /// `tensor([-1.0, 2.0]).leaky_relu(0.1)` is `[-0.1000, 2.0000]`.
    #[track_caller]
    pub fn leaky_relu<'a>(&self, slope: impl Into<Arg<'a>>) -> Tensor {
        trace(&LEAKY_RELU, [self.into(), slope.into()], [])
    }

    /// x where positive, `alpha · (e^x - 1)` elsewhere (`torch.nn.functional.elu`).
    ///
    /// `tensor([-1.0, 2.0]).elu(1.0)` is `[-0.6321, 2.0000]`.
    #[track_caller]
    pub fn elu<'a>(&self, alpha: impl Into<Arg<'a>>) -> Tensor {
        trace(&ELU, [self.into(), alpha.into()], [])
    }

    /// Exponentials normalised to sum to 1 along `dim` (`torch.softmax`).
    ///
    /// `tensor([0.0, 1.0]).softmax(0)` is `[0.2689, 0.7311]`.
    #[track_caller]
    pub fn softmax(&self, dim: i64) -> Tensor {
        trace(&SOFTMAX, [self.into()], [self.dim_index("softmax", dim).into()])
    }

    /// The logarithm of [`Tensor::softmax`], computed without overflow (`torch.log_softmax`).
    ///
    /// `tensor([0.0, 1.0]).log_softmax(0)` is `[-1.3133, -0.3133]`.
    #[track_caller]
    pub fn log_softmax(&self, dim: i64) -> Tensor {
        trace(&LOG_SOFTMAX, [self.into()], [self.dim_index("log_softmax", dim).into()])
    }
}
