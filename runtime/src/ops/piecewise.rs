//! Activations made of other ops: pieces of lines, gates.
use super::base::rounded_once;
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::ir::rules;
use xlazy_core::ty::DType;

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
    ///
    /// `tensor([-2.0, 0.5, 2.0]).hardtanh(-1.0, 1.0)` is `[-1.0000, 0.5000, 1.0000]`.
    #[track_caller]
    pub fn hardtanh(&self, min_val: f64, max_val: f64) -> Tensor {
        let _call = called("hardtanh", [self]);
        if self.dtype() == DType::Bool {
            refuse("hardtanh", &[self], "needs numbers, not bool: convert with `.to(…)`");
        }
        if min_val > max_val {
            refuse("hardtanh", &[self], format!("min_val {min_val} is above max_val {max_val}"));
        }
        if self.dtype() == DType::U8 && (min_val < 0.0 || max_val < 0.0) {
            refuse("hardtanh", &[self], format!("unsigned integers have no bounds below 0, as {min_val}..={max_val}"));
        }
        // as torch, no gradient flows at the bounds
        let x = if self.dtype().is_float() { self.clone() } else { self.float() };
        let inside = x.gt(min_val).logical_and(x.lt(max_val));
        x.where_(&inside, x.detach().clamp(min_val, max_val)).to(self.dtype())
    }

    /// Bounded to 0..=6 (`torch.nn.functional.relu6`).
    ///
    /// `tensor([-1.0, 5.0, 9.0]).relu6()` is `[0., 5., 6.]`.
    #[track_caller]
    pub fn relu6(&self) -> Tensor {
        let _call = called("relu6", [self]);
        self.hardtanh(0.0, 6.0)
    }

    /// relu6(x + 3) / 6 (`torch.nn.functional.hardsigmoid`).
    ///
    /// `tensor([-4.0, 0.0, 4.0]).hardsigmoid()` is `[0.0000, 0.5000, 1.0000]`.
    #[track_caller]
    pub fn hardsigmoid(&self) -> Tensor {
        let _call = called("hardsigmoid", [self]);
        rounded_once([self], |[x]| (x + 3.0).relu6() / 6.0)
    }

    /// x · hardsigmoid(x) (`torch.nn.functional.hardswish`).
    ///
    /// `tensor([-4.0, 1.0, 4.0]).hardswish()` is `[-0.0000, 0.6667, 4.0000]`.
    #[track_caller]
    pub fn hardswish(&self) -> Tensor {
        let _call = called("hardswish", [self]);
        rounded_once([self], |[x]| x * x.hardsigmoid())
    }

    /// x · tanh(softplus(x)) (`torch.nn.functional.mish`).
    ///
    /// `tensor([0.0, 1.0]).mish()` is `[0.0000, 0.8651]`.
    #[track_caller]
    pub fn mish(&self) -> Tensor {
        let _call = called("mish", [self]);
        self * self.softplus().tanh()
    }

    /// x where positive, `alpha · (e^(x / alpha) - 1)` elsewhere (`torch.nn.functional.celu`).
    ///
    /// `tensor([-1.0, 2.0]).celu(1.0)` is `[-0.6321, 2.0000]`.
    #[track_caller]
    pub fn celu(&self, alpha: f64) -> Tensor {
        let _call = called("celu", [self]);
        if alpha == 0.0 {
            refuse("celu", &[self], "alpha cannot be 0");
        }
        let negative = (self.clamp_max(0.0) / alpha).expm1() * alpha;
        negative.where_(&self.le(0.0), self)
    }

    /// elu with the constants that keep mean 0 and variance 1 (`torch.nn.functional.selu`).
    ///
    /// `tensor([-1.0, 2.0]).selu()` is `[-1.1113, 2.1014]`.
    #[track_caller]
    pub fn selu(&self) -> Tensor {
        let _call = called("selu", [self]);
        self.elu(1.6732632423543772) * 1.0507009873554805
    }

    /// x where positive, `weight · x` elsewhere; one weight, or one per channel (`torch.nn.functional.prelu`).
    ///
    /// `tensor([-2.0, 2.0]).prelu(&tensor([0.25]))` is `[-0.5000, 2.0000]`.
    #[track_caller]
    pub fn prelu(&self, weight: &Tensor) -> Tensor {
        let _call = called("prelu", [self, weight]);
        let weight = match (weight.numel(), self.dim()) {
            _ if weight.dim() > 1 => refuse("prelu", &[self, weight], "the weights must be a vector, or one number"),
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
    ///
    /// `tensor([1.0, 2.0, 0.0, 0.0]).glu(0)` is `[0.5000, 1.0000]`.
    #[track_caller]
    pub fn glu(&self, dim: i64) -> Tensor {
        let _call = called("glu", [self]);
        if !self.dtype().is_float() {
            refuse("glu", &[self], format!("needs floats, not {}", self.dtype()));
        }
        let n = self.size(dim) as i64;
        if self.dim() == 0 || n % 2 != 0 {
            refuse("glu", &[self], format!("dimension {dim} does not divide into halves"));
        }
        self.narrow(dim, 0, n / 2) * self.narrow(dim, n / 2, n / 2).sigmoid()
    }

    /// log(sigmoid(x)), without overflow (`torch.nn.functional.logsigmoid`).
    ///
    /// `tensor([0.0, 2.0]).logsigmoid()` is `[-0.6931, -0.1269]`.
    #[track_caller]
    pub fn logsigmoid(&self) -> Tensor {
        let _call = called("logsigmoid", [self]);
        self.neg().softplus().neg()
    }

    /// x / (1 + |x|) (`torch.nn.functional.softsign`).
    ///
    /// `tensor([-1.0, 3.0]).softsign()` is `[-0.5000, 0.7500]`.
    #[track_caller]
    pub fn softsign(&self) -> Tensor {
        self / (self.abs() + 1)
    }

    /// x - tanh(x) (`torch.nn.functional.tanhshrink`).
    ///
    /// `tensor([0.0, 1.0]).tanhshrink()` is `[0.0000, 0.2384]`.
    #[track_caller]
    pub fn tanhshrink(&self) -> Tensor {
        let _call = called("tanhshrink", [self]);
        self - self.tanh()
    }

    /// x moved towards zero by `lambd`, zero in between (`torch.nn.functional.softshrink`).
    ///
    /// `tensor([-2.0, 0.2, 2.0]).softshrink(0.5)` is `[-1.5000, 0.0000, 1.5000]`.
    #[track_caller]
    pub fn softshrink(&self, lambd: f64) -> Tensor {
        let _call = called("softshrink", [self]);
        if lambd < 0.0 {
            refuse("softshrink", &[self], format!("lambd must be 0 or more, not {lambd}"));
        }
        // as torch, zero where it lies between, so that a NaN stays one
        let moved = (self - lambd).where_(&self.gt(lambd), &(self + lambd));
        moved.masked_fill(&self.abs().le(lambd), 0.0)
    }

    /// x, but zero between `-lambd` and `lambd` (`torch.nn.functional.hardshrink`).
    ///
    /// `tensor([-2.0, 0.2, 2.0]).hardshrink(0.5)` is `[-2., 0., 2.]`.
    #[track_caller]
    pub fn hardshrink(&self, lambd: f64) -> Tensor {
        let _call = called("hardshrink", [self]);
        self.masked_fill(&self.abs().le(lambd), 0.0)
    }

    /// x where above the threshold, `value` elsewhere (`torch.nn.functional.threshold`).
    ///
    /// `tensor([1.0, 3.0]).threshold(2.0, 0.0)` is `[0., 3.]`.
    #[track_caller]
    pub fn threshold(&self, threshold: f64, value: f64) -> Tensor {
        let _call = called("threshold", [self]);
        // Integers stay integers.
        let y = self.where_(&self.le(threshold).logical_not(), value);
        if self.dtype().is_float() { y } else { y.to(self.dtype()) }
    }

    /// softmax(-x) (`torch.nn.functional.softmin`).
    ///
    /// `tensor([0.0, 1.0]).softmin(0)` is `[0.7311, 0.2689]`.
    #[track_caller]
    pub fn softmin(&self, dim: i64) -> Tensor {
        let _call = called("softmin", [self]);
        self.neg().softmax(dim)
    }

    /// log(1 + e^(beta x)) / beta, and x itself where beta · x is above the threshold
    /// (`torch.nn.functional.softplus(x, beta, threshold)`).
    ///
    /// `tensor([0.0, 2.0]).softplus_with(2.0, 20.0)` is `[0.3466, 2.0091]`.
    #[track_caller]
    pub fn softplus_with(&self, beta: f64, threshold: f64) -> Tensor {
        let scaled = self * beta;
        self.where_(&scaled.gt(threshold), &(scaled.softplus() / beta))
    }

    /// log(x / (1 - x)), x bounded to `eps..=1 - eps` first (`torch.logit`).
    ///
    /// `tensor([0.5, 0.9]).logit(None)` is `[0.0000, 2.1972]`.
    #[track_caller]
    pub fn logit(&self, eps: Option<f64>) -> Tensor {
        let _call = called("logit", [self]);
        // the bounds are no halves
        let bounded = |e: f64| rounded_once([self], |[x]| trace(&LOGIT, [(&x.clamp(e, 1.0 - e)).into()], []));
        eps.map_or_else(|| trace(&LOGIT, [self.into()], []), bounded)
    }
}
