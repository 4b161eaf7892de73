//! Activations made of other ops: pieces of lines, gates.
use super::base::rounded_once;
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::ir::rules;

// Its slope is 1 / (x (1 - x)) at 0 and 1, too, where it is infinite.
static LOGIT: Entry = Entry::new("logit", rules::float, |l| {
    let x = l.cast(0);
    let one = l.constant(1.0, &x.ty);
    let rest = l.sub(&one, &x);
    let odds = l.div(&x, &rest);
    l.unary("log", &odds)
})
.samples(|| vec![Sample::of(&[&[2, 3]]).range(0.2, 0.8)])
.grad(|g| {
    let x = g.x(0);
    let slope = &g.dy / (x * (1.0 - x));
    vec![Some(slope.masked_fill(&x.lt(0.0).logical_or(x.gt(1.0)), f64::NAN))]
})
.bucket(bucket::each);

pub(super) static OPS: &[&Entry] = &[&LOGIT];

impl Tensor {
    /// Bounded to `min_val..=max_val` (`torch.nn.functional.hardtanh`).
    #[track_caller]
    pub fn hardtanh(&self, min_val: f64, max_val: f64) -> Tensor {
        // as torch, no gradient flows at the bounds
        let x = if self.dtype().is_float() { self.clone() } else { self.float() };
        let inside = x.gt(min_val).logical_and(x.lt(max_val));
        x.where_(&inside, x.detach().clamp(min_val, max_val)).to(self.dtype())
    }

    /// Bounded to 0..=6 (`torch.nn.functional.relu6`).
    #[track_caller]
    pub fn relu6(&self) -> Tensor {
        self.hardtanh(0.0, 6.0)
    }

    /// relu6(x + 3) / 6 (`torch.nn.functional.hardsigmoid`).
    #[track_caller]
    pub fn hardsigmoid(&self) -> Tensor {
        let _call = called("hardsigmoid", [self]);
        rounded_once([self], |[x]| (x + 3.0).relu6() / 6.0)
    }

    /// x · hardsigmoid(x) (`torch.nn.functional.hardswish`).
    #[track_caller]
    pub fn hardswish(&self) -> Tensor {
        let _call = called("hardswish", [self]);
        rounded_once([self], |[x]| x * x.hardsigmoid())
    }

    /// x · tanh(softplus(x)) (`torch.nn.functional.mish`).
    #[track_caller]
    pub fn mish(&self) -> Tensor {
        self * self.softplus().tanh()
    }

    /// x where positive, `alpha · (e^(x / alpha) - 1)` elsewhere (`torch.nn.functional.celu`).
    #[track_caller]
    pub fn celu(&self, alpha: f64) -> Tensor {
        let negative = (self.clamp_max(0.0) / alpha).expm1() * alpha;
        negative.where_(&self.le(0.0), self)
    }

    /// elu with the constants that keep mean 0 and variance 1 (`torch.nn.functional.selu`).
    #[track_caller]
    pub fn selu(&self) -> Tensor {
        let _call = called("selu", [self]);
        self.elu(1.6732632423543772) * 1.0507009873554805
    }

    /// x where positive, `weight · x` elsewhere; one weight, or one per channel (`torch.nn.functional.prelu`).
    #[track_caller]
    pub fn prelu(&self, weight: &Tensor) -> Tensor {
        let _call = called("prelu", [self, weight]);
        let weight = match (weight.numel(), self.dim()) {
            (1, _) => weight.reshape(()),
            (n, rank) if rank > 0 && self.shape()[usize::from(rank > 1)] == n => {
                let mut shape = vec![1i64; rank];
                shape[usize::from(rank > 1)] = -1;
                weight.reshape(shape)
            }
            _ => refuse("prelu", &[self, weight], "needs one weight, or one for each channel"),
        };
        self.where_(&self.gt(0.0), &(weight * self))
    }

    /// The first half along `dim` times the sigmoid of the second (`torch.nn.functional.glu`).
    #[track_caller]
    pub fn glu(&self, dim: i64) -> Tensor {
        let _call = called("glu", [self]);
        let n = self.size(dim) as i64;
        if self.dim() == 0 || n % 2 != 0 {
            refuse("glu", &[self], format!("dimension {dim} does not divide into halves"));
        }
        self.narrow(dim, 0, n / 2) * self.narrow(dim, n / 2, n / 2).sigmoid()
    }

    /// log(sigmoid(x)), without overflow (`torch.nn.functional.logsigmoid`).
    #[track_caller]
    pub fn logsigmoid(&self) -> Tensor {
        let _call = called("logsigmoid", [self]);
        self.neg().softplus().neg()
    }

    /// x / (1 + |x|) (`torch.nn.functional.softsign`).
    #[track_caller]
    pub fn softsign(&self) -> Tensor {
        self / (self.abs() + 1)
    }

    /// x - tanh(x) (`torch.nn.functional.tanhshrink`).
    #[track_caller]
    pub fn tanhshrink(&self) -> Tensor {
        let _call = called("tanhshrink", [self]);
        self - self.tanh()
    }

    /// x moved towards zero by `lambd`, zero in between (`torch.nn.functional.softshrink`).
    #[track_caller]
    pub fn softshrink(&self, lambd: f64) -> Tensor {
        let _call = called("softshrink", [self]);
        // as torch, zero where it lies between, so that a NaN stays one
        let moved = (self - lambd).where_(&self.gt(lambd), &(self + lambd));
        moved.masked_fill(&self.abs().le(lambd), 0.0)
    }

    /// x, but zero between `-lambd` and `lambd` (`torch.nn.functional.hardshrink`).
    #[track_caller]
    pub fn hardshrink(&self, lambd: f64) -> Tensor {
        self.masked_fill(&self.abs().le(lambd), 0.0)
    }

    /// x where above the threshold, `value` elsewhere (`torch.nn.functional.threshold`).
    #[track_caller]
    pub fn threshold(&self, threshold: f64, value: f64) -> Tensor {
        // Integers stay integers.
        let y = self.where_(&self.le(threshold).logical_not(), value);
        if self.dtype().is_float() { y } else { y.to(self.dtype()) }
    }

    /// softmax(-x) (`torch.nn.functional.softmin`).
    #[track_caller]
    pub fn softmin(&self, dim: i64) -> Tensor {
        let _call = called("softmin", [self]);
        self.neg().softmax(dim)
    }

    /// log(1 + e^(beta x)) / beta, and x itself where beta · x is above the threshold
    /// (`torch.nn.functional.softplus(x, beta, threshold)`).
    #[track_caller]
    pub fn softplus_with(&self, beta: f64, threshold: f64) -> Tensor {
        let scaled = self * beta;
        self.where_(&scaled.gt(threshold), &(scaled.softplus() / beta))
    }

    /// log(x / (1 - x)), x bounded to `eps..=1 - eps` first (`torch.logit`).
    #[track_caller]
    pub fn logit(&self, eps: Option<f64>) -> Tensor {
        let _call = called("logit", [self]);
        // the bounds are no halves
        let bounded = |e: f64| rounded_once([self], |[x]| trace(&LOGIT, [(&x.clamp(e, 1.0 - e)).into()], []));
        eps.map_or_else(|| trace(&LOGIT, [self.into()], []), bounded)
    }
}
