//! Losses: how far a prediction is from its target.
use super::base::{as_float, broadcasts, of_one_dtype, of_one_rank, promoted, rounded_once};
use super::bounds::fractions;
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, called, caller_line, refuse, trace};
use xlazy_core::emit::Val;
use xlazy_core::ir::{Lower, Rule, Sig, rules};
use xlazy_core::ty::{Category, DType};

fn probabilities(s: &Sig) -> Rule {
    match s.dtype(0).is_float() {
        true => rules::binary_float(s),
        false => Err(format!("needs probabilities, which are floats, not {}", s.dtype(0))),
    }
}

/// Operands: probabilities and targets. As in torch, logarithms stop at -100, and the gradient at 10¹², so that a certain miss stays
/// finite.
static BINARY_CROSS_ENTROPY: Entry = Entry::new("binary_cross_entropy", probabilities, |l| {
    let (x, target) = (l.fit(0), l.fit(1));
    let ty = x.ty.clone();
    let (one, least) = (l.constant(1.0, &ty), l.constant(-100.0, &ty));
    let bounded = |l: &mut Lower, log: Val| {
        let below = l.compare("LT", &log, &least);
        l.select(&below, &least, &log)
    };
    let (yes, other) = (l.unary("log", &x), l.unary("negate", &x));
    let no = l.unary("log_plus_one", &other);
    let (yes, no) = (bounded(l, yes), bounded(l, no));
    let others = l.sub(&target, &one);
    let (no, yes) = (l.mul(&others, &no), l.mul(&target, &yes));
    l.sub(&no, &yes)
})
.checks(|_| vec![fractions(0, "the input"), fractions(1, "the target")])
.samples(|| vec![Sample::of(&[&[2, 3], &[2, 3]]).range(0.1, 0.9)])
.grad(|g| {
    let (x, target) = (g.x(0), g.x(1));
    let log = |x: Tensor| x.log().clamp_min(-100.0);
    vec![
        g.want(0, || &g.dy * (x - target) / (x * (1.0 - x)).clamp_min(1e-12)),
        g.want(1, || &g.dy * (log(1.0 - x) - log(x.clone()))),
    ]
})
.bucket(bucket::each);

pub(super) static OPS: &[&Entry] = &[&BINARY_CROSS_ENTROPY];

/// What becomes of the losses of single elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reduction {
    /// Kept as they are.
    None,
    #[default]
    Mean,
    Sum,
    /// The sum divided by the size of the first dimension (only [`Tensor::kl_div`]).
    BatchMean,
}

/// What torch's classification losses take besides input and target.
#[derive(Clone)]
pub struct CrossEntropyOptions {
    /// A factor for each class.
    pub weight: Option<Tensor>,
    /// A class index that counts for nothing.
    pub ignore_index: i64,
    pub reduction: Reduction,
    /// How much of each target is spread evenly over all classes.
    pub label_smoothing: f64,
}

impl Default for CrossEntropyOptions {
    fn default() -> CrossEntropyOptions {
        CrossEntropyOptions { weight: None, ignore_index: -100, reduction: Reduction::Mean, label_smoothing: 0.0 }
    }
}

#[track_caller]
pub(super) fn reduced(losses: Tensor, reduction: Reduction) -> Tensor {
    match reduction {
        Reduction::None => losses,
        Reduction::Mean => losses.mean(),
        Reduction::Sum => losses.sum(),
        Reduction::BatchMean => {
            let n = if losses.dim() == 0 { 1 } else { losses.size(0) };
            losses.sum() / n as f64
        }
    }
}

/// Targets that are true or false as 1 and 0.
#[track_caller]
fn numbers(target: &Tensor) -> Tensor {
    if target.dtype() == DType::Bool { target.to(DType::I8) } else { target.clone() }
}

/// Refuses a target of another shape, which torch does not broadcast.
#[track_caller]
fn shaped_alike(op: &'static str, x: &Tensor, target: &Tensor) {
    if target.shape() != x.shape() {
        refuse(op, &[x, target], "the target must have the input's shape: bring it there with `.expand` or `.reshape`");
    }
}

#[track_caller]
fn weighted(op: &'static str, losses: Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Tensor {
    let _line = caller_line();
    weight.inspect(|w| broadcasts(op, "the weight", w, &losses));
    reduced(weight.map_or(losses.clone(), |w| &losses * w), reduction)
}

// The dimension that classes lie along.
fn class_dim(x: &Tensor) -> i64 {
    if x.dim() == 1 { 0 } else { 1 }
}

/// Refuses targets that are no class index for each place of the input.
#[track_caller]
fn check_classes(op: &'static str, x: &Tensor, target: &Tensor) {
    let mut places = x.shape();
    if x.dim() > 0 {
        places.remove(class_dim(x) as usize);
    }
    if target.dtype().category() != Category::Int || x.dim() == 0 || target.shape() != places {
        let why =
            format!("targets must be class indices: integers of the shape {places}, the input's without its classes");
        refuse(op, &[x, target], why);
    }
}

impl Tensor {
    /// The mean of squared differences, or their sum, or each (`torch.nn.functional.mse_loss`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let loss = tensor([1.0, 2.0]).mse_loss(&tensor([1.0, 4.0]), Reduction::Mean);
    /// assert_eq!(loss.item(), 2.0);
    /// ```
    #[track_caller]
    pub fn mse_loss(&self, target: &Tensor, reduction: Reduction) -> Tensor {
        let _call = called("mse_loss", [self, target]);
        reduced((self - numbers(target)).square(), reduction)
    }

    /// The mean of absolute differences (`torch.nn.functional.l1_loss`).
    ///
    /// `tensor([1.0, 5.0]).l1_loss(&tensor([2.0, 2.0]), Reduction::Mean)` is `2.`.
    #[track_caller]
    pub fn l1_loss(&self, target: &Tensor, reduction: Reduction) -> Tensor {
        let _call = called("l1_loss", [self, target]);
        reduced((self - target).abs(), reduction)
    }

    /// Squared below `beta`, absolute above (`torch.nn.functional.smooth_l1_loss`).
    ///
    /// `tensor([1.0, 5.0]).smooth_l1_loss(&tensor([2.0, 2.0]), 1.0, Reduction::None)` is `[0.5000, 2.5000]`.
    #[track_caller]
    pub fn smooth_l1_loss(&self, target: &Tensor, beta: f64, reduction: Reduction) -> Tensor {
        let _call = called("smooth_l1_loss", [self, target]);
        if beta == 0.0 {
            return self.l1_loss(target, reduction);
        }
        let d = (self - target).abs();
        let square = d.clamp_max(beta).square() * (0.5 / beta);
        reduced(square.where_(&d.lt(beta), &(&d - 0.5 * beta)), reduction)
    }

    /// Squared below `delta`, linear above (`torch.nn.functional.huber_loss`).
    ///
    /// `tensor([1.0, 5.0]).huber_loss(&tensor([2.0, 2.0]), 1.0, Reduction::None)` is `[0.5000, 2.5000]`.
    #[track_caller]
    pub fn huber_loss(&self, target: &Tensor, delta: f64, reduction: Reduction) -> Tensor {
        let _call = called("huber_loss", [self, target]);
        if delta <= 0.0 {
            refuse("huber_loss", &[self, target], format!("delta must be above 0, not {delta}"));
        }
        let d = (self - target).abs();
        let line = (&d - 0.5 * delta) * delta;
        // bounded, so that what is infinite has the line's slope
        reduced((d.clamp_max(delta).square() * 0.5).where_(&d.le(delta), &line), reduction)
    }

    /// The cross entropy of probabilities and targets between 0 and 1 (`torch.nn.functional.binary_cross_entropy`).
    ///
    /// `tensor([0.5, 0.9]).binary_cross_entropy(&tensor([1.0, 1.0]), None, Reduction::None)` is `[0.6931, 0.1054]`.
    #[track_caller]
    pub fn binary_cross_entropy(&self, target: &Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Tensor {
        let _call = called("binary_cross_entropy", [self, target]);
        shaped_alike("binary_cross_entropy", self, target);
        let losses = trace(&BINARY_CROSS_ENTROPY, [self.into(), target.into()], []);
        weighted("binary_cross_entropy", losses, weight, reduction)
    }

    /// [`Tensor::binary_cross_entropy`] of sigmoids, without overflow; `pos_weight` counts the positive targets more
    /// (`torch.nn.functional.binary_cross_entropy_with_logits`).
    ///
    /// `tensor([0.0, 3.0]).binary_cross_entropy_with_logits(&tensor([1.0, 1.0]), None, None, Reduction::None)` is `[0.6931, 0.0486]`.
    #[track_caller]
    pub fn binary_cross_entropy_with_logits(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        pos_weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Tensor {
        let _call = called("binary_cross_entropy_with_logits", [self, target]);
        const OP: &str = "binary_cross_entropy_with_logits";
        shaped_alike(OP, self, target);
        pos_weight.inspect(|p| broadcasts(OP, "`pos_weight`", p, self));
        // (1 - t) x + w log(1 + e^-x), with w = 1 + (p - 1) t
        let log = self.neg().softplus();
        let log = match pos_weight {
            Some(p) => log * ((p - 1.0) * target + 1.0),
            None => log,
        };
        weighted(OP, (1.0 - target) * self + log, weight, reduction)
    }

    /// The divergence of log-probabilities from the target, itself logarithms where `log_target`
    /// (`torch.nn.functional.kl_div`). torch's default reduction is Mean; BatchMean is the mathematical one.
    ///
    /// `tensor([0.5, 0.5]).log().kl_div(&tensor([0.9, 0.1]), false, Reduction::Sum)` is `0.3681`.
    #[track_caller]
    pub fn kl_div(&self, target: &Tensor, log_target: bool, reduction: Reduction) -> Tensor {
        let _call = called("kl_div", [self, target]);
        let losses = match log_target {
            true => target.exp() * (target - self),
            false => target.xlogy(target) - target * self,
        };
        reduced(losses, reduction)
    }

    /// The negative log-probability of each target class; classes lie along dimension 1, targets are class indices
    /// (`torch.nn.functional.nll_loss`). Indices equal to `ignore_index` count for nothing.
    ///
    /// `tensor([[0.2, 0.8]]).log().nll_loss(&tensor([1]), CrossEntropyOptions::default())` is `0.2231`.
    #[track_caller]
    pub fn nll_loss(&self, target: &Tensor, options: CrossEntropyOptions) -> Tensor {
        let _call = called("nll_loss", [self, target]);
        let classes = class_dim(self);
        check_classes("nll_loss", self, target);
        if let Some(w) = options.weight.as_ref().filter(|w| w.shape() != [self.size(classes)]) {
            refuse("nll_loss", &[self, w], format!("needs a weight for each of the {} classes", self.size(classes)));
        }
        if let Some(w) = &options.weight {
            of_one_dtype("nll_loss", &[self, w]);
        }
        super::bounds::classes("nll_loss", self, target, self.size(classes), options.ignore_index);
        let kept = target.ne(options.ignore_index);
        let target = target.where_(&kept, 0).long();
        let picked = self.gather(classes, &target.unsqueeze(classes)).squeeze_dim(classes);
        let weight = match &options.weight {
            Some(w) => w.take(&target).where_(&kept, 0.0),
            None => kept.to(self.dtype()),
        };
        // a class that is ignored may have log-probability -inf: 0 · inf would be NaN
        let losses = (picked.neg() * &weight).where_(&kept, 0.0);
        match options.reduction {
            Reduction::Mean => losses.sum() / weight.sum(),
            r => reduced(losses, r),
        }
    }

    /// The cross entropy of unnormalised scores: classes lie along dimension 1, targets are class indices, or
    /// probabilities of the input's shape (`torch.nn.functional.cross_entropy`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let scores = tensor([[2.0, 0.0], [0.0, 2.0]]);
    /// let loss = scores.cross_entropy(&tensor([0, 1]), Default::default());
    /// assert!((loss.item() - 0.126928).abs() < 1e-5);
    /// ```
    #[track_caller]
    pub fn cross_entropy(&self, target: &Tensor, options: CrossEntropyOptions) -> Tensor {
        let _call = called("cross_entropy", [self, target]);
        let classes = class_dim(self);
        let log = self.log_softmax(classes);
        let n = log.size(classes) as f64;
        let smoothing = options.label_smoothing;
        let along_classes = |w: &Tensor| {
            let mut shape = vec![1i64; log.dim()];
            shape[classes as usize] = -1;
            w.reshape(shape)
        };
        if target.dtype().is_float() {
            if target.shape() != self.shape() {
                refuse("cross_entropy", &[self, target], "probabilities must have the input's shape");
            }
            let target = if smoothing > 0.0 { target * (1.0 - smoothing) + smoothing / n } else { target.clone() };
            let log = options.weight.as_ref().map_or(log.clone(), |w| &log * along_classes(w));
            let losses = (log * target).sum_dim(classes, false).neg();
            return match options.reduction {
                Reduction::Mean => {
                    let count = losses.numel().max(1) as f64;
                    losses.sum() / count
                }
                r => reduced(losses, r),
            };
        }
        check_classes("cross_entropy", self, target);
        if smoothing == 0.0 {
            return log.nll_loss(target, options);
        }
        let kept = target.ne(options.ignore_index);
        let sharp = log.nll_loss(target, CrossEntropyOptions { label_smoothing: 0.0, ..options.clone() });
        let even = options.weight.as_ref().map_or(log.clone(), |w| &log * along_classes(w));
        let even = even.sum_dim(classes, false).neg().where_(&kept, 0.0);
        let even = match options.reduction {
            Reduction::Mean => {
                let count = match &options.weight {
                    Some(w) => w.take(&target.where_(&kept, 0).long()).where_(&kept, 0.0).sum(),
                    None => kept.to(self.dtype()).sum(),
                };
                even.sum() / count
            }
            r => reduced(even, r),
        };
        sharp * (1.0 - smoothing) + even * (smoothing / n)
    }

    /// `max(0, margin - y · (x1 - x2))` (`torch.nn.functional.margin_ranking_loss`).
    ///
    /// `tensor([1.0]).margin_ranking_loss(&tensor([3.0]), &tensor([1.0]), 0.0, Reduction::Mean)` is `2.`.
    #[track_caller]
    pub fn margin_ranking_loss(&self, other: &Tensor, target: &Tensor, margin: f64, reduction: Reduction) -> Tensor {
        let _call = called("margin_ranking_loss", [self, other, target]);
        of_one_rank("margin_ranking_loss", "inputs and target", &[self, other, target]);
        reduced((target.neg() * (self - other) + margin).clamp_min(0.0), reduction)
    }

    /// log(1 + e^(-y x)) for targets of 1 and -1 (`torch.nn.functional.soft_margin_loss`).
    ///
    /// `tensor([0.0]).soft_margin_loss(&tensor([1.0]), Reduction::Mean)` is `0.6931`.
    #[track_caller]
    pub fn soft_margin_loss(&self, target: &Tensor, reduction: Reduction) -> Tensor {
        let _call = called("soft_margin_loss", [self, target]);
        broadcasts("soft_margin_loss", "the target", target, self);
        reduced((numbers(target).to(self.dtype()).neg() * self).softplus(), reduction)
    }

    /// x where the target is 1, max(0, margin - x) where it is -1 (`torch.nn.functional.hinge_embedding_loss`).
    ///
    /// `tensor([0.4, 0.4]).hinge_embedding_loss(&tensor([1.0, -1.0]), 1.0, Reduction::None)` is `[0.4000, 0.6000]`.
    #[track_caller]
    pub fn hinge_embedding_loss(&self, target: &Tensor, margin: f64, reduction: Reduction) -> Tensor {
        let _call = called("hinge_embedding_loss", [self, target]);
        rounded_once([self, target], |[x, target]| {
            let far = (margin - x).clamp_min(0.0).where_(&target.ne(1.0), 0.0);
            let near = x.where_(&target.ne(-1.0), 0.0);
            reduced(far + near, reduction)
        })
    }

    /// The negative log-likelihood of counts under a Poisson distribution (`torch.nn.functional.poisson_nll_loss` with
    /// `full=False`).
    ///
    /// `tensor([0.0]).poisson_nll_loss(&tensor([2.0]), true, 1e-8, Reduction::Mean)` is `1.`.
    #[track_caller]
    pub fn poisson_nll_loss(&self, target: &Tensor, log_input: bool, eps: f64, reduction: Reduction) -> Tensor {
        let _call = called("poisson_nll_loss", [self, target]);
        let losses = match log_input {
            true => self.exp() - target * self,
            false => self - target * (self + eps).log(),
        };
        reduced(losses, reduction)
    }

    /// x log(y), 0 where x is 0 (`torch.xlogy`).
    ///
    /// `tensor([0.0, 2.0]).xlogy(1.0)` is `[0., 0.]`.
    #[track_caller]
    pub fn xlogy<'a>(&self, other: impl Into<crate::tensor::Arg<'a>>) -> Tensor {
        let other = as_float(other, self);
        let _call = called("xlogy", [self, &other]);
        let [x, other] = promoted("xlogy", [self, &other]);
        // 0 times what has no number; elsewhere the slope at 0 is the logarithm
        let endless = other.le(0.0).logical_or(other.eq(f64::INFINITY));
        &x * other.masked_fill(&x.eq(0).logical_and(&endless), 1.0).log()
    }
}
