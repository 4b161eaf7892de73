//! Numbers drawn from distributions whose parameters are tensors.
use super::bounds::{chances, rates};
use super::control::while_loop;
use crate::tensor::{Arg, Tensor, called, no_grad, refuse};
use xlazy_core::ty::{DType, Dims};

impl Tensor {
    /// Normal with these means and deviations, numbers or tensors that are broadcast to `size`, in their dtype, else float32
    /// (`torch.normal`). A gradient flows into both.
    ///
    /// `Tensor::normal(&tensor([1.0, 5.0]), 0.0, [2])` is `[1., 5.]`.
    #[track_caller]
    pub fn normal<'a, 'b>(mean: impl Into<Arg<'a>>, std: impl Into<Arg<'b>>, size: impl Into<Dims>) -> Tensor {
        let (mean, std) = (mean.into(), std.into());
        let given: Vec<&Tensor> = mean.tensor().into_iter().chain(std.tensor()).collect();
        let _call = called("normal", given.iter().copied());
        if let Some(t) = given.iter().find(|t| !t.dtype().is_float()) {
            refuse("normal", &given, format!("means and deviations are floats, not {}", t.dtype()));
        }
        let dtype = given.iter().map(|t| t.dtype()).reduce(DType::promote).unwrap_or(DType::F32);
        let drawn = Tensor::randn(size).to(dtype);
        let shape = drawn.shape();
        let y = drawn.mul(std).add(mean);
        if y.shape() != shape {
            refuse("normal", &[&y], format!("the parameters are not broadcast to the size {shape}"));
        }
        y
    }

    /// How often something happens that happens so often on the average, as whole numbers in this tensor's dtype, a float
    /// (`torch.poisson`). Below 10 by Knuth's products, above by rejection (Hörmann 1993, "The transformed rejection method for
    /// generating Poisson random variables", PTRS). A rate below 0 is refused.
    ///
    /// `tensor([0.0, 0.0]).poisson()` is `[0., 0.]`.
    #[track_caller]
    pub fn poisson(&self) -> Tensor {
        let _call = called("poisson", [self]);
        if !self.dtype().is_float() {
            refuse("poisson", &[self], "rates are floats: convert with `.float()`");
        }
        let rate = rates(&self.detach());
        let rate = if rate.dtype().is_half() { rate.float() } else { rate };
        no_grad(|| {
            // A loop of what is refused, when it has run, must come to its end.
            let (few, many) = (rate.lt(10.0), rate.ge(10.0).logical_and(rate.lt(f64::INFINITY)));
            let drawn = rejected(&rate.where_(&many, 10.0)).where_(&many, f64::NAN);
            products(&rate.where_(&few, 1.0)).where_(&few, drawn).to(self.dtype())
        })
    }

    /// How often something happens in this many trials, each of which has the probability `prob`, as whole numbers in this tensor's
    /// dtype, a float (`torch.binomial`). By waiting times where fewer than 10 are expected, above by rejection (Hörmann 1993,
    /// "The generation of binomial random variates", BTRS). A probability outside of 0 and 1 and a count below 0 are refused.
    ///
    /// `tensor([7.0, 7.0]).binomial(&tensor([0.0, 1.0]))` is `[0., 7.]`.
    #[track_caller]
    pub fn binomial(&self, prob: &Tensor) -> Tensor {
        let _call = called("binomial", [self, prob]);
        if self.dtype() != prob.dtype() || !prob.dtype().is_float() {
            refuse("binomial", &[self, prob], "count and probability are floats of one dtype");
        }
        let [count, prob] = [rates(&self.detach()), chances(&prob.detach())];
        let dtype = if prob.dtype().is_half() { DType::F32 } else { prob.dtype() };
        no_grad(|| {
            let (count, prob) = (count.to(dtype).floor(), prob.to(dtype));
            // What is rarer is counted.
            let often = prob.gt(0.5);
            let rare = (1.0 - &prob).where_(&often, &prob);
            let expected = &count * &rare;
            let few = expected.ge(0.0).logical_and(expected.lt(10.0));
            let many = expected.ge(10.0).logical_and(expected.lt(f64::INFINITY));
            let drawn = tried(&count.where_(&many, 40.0), &rare.where_(&many, 0.5)).where_(&many, f64::NAN);
            let drawn = waits(&count.where_(&few, 0.0), &rare).where_(&few, drawn);
            (&count - &drawn).where_(&often, drawn).to(self.dtype())
        })
    }
}

/// Uniform in (0, 1), anew in each round of a loop.
fn uniform(like: &Tensor) -> Tensor {
    1.0 - like.rand_like()
}

/// Poisson: the numbers of factors before a product of uniform ones is below exp(-rate).
fn products(rate: &Tensor) -> Tensor {
    let least = (-rate).exp();
    let open = |product: &Tensor| product.gt(&least);
    let start = (rate.zeros_like(), uniform(rate));
    let all = while_loop(
        |(_, product): (Tensor, Tensor)| open(&product).any(),
        |(n, product)| {
            let more = open(&product).to(rate.dtype());
            (n + more, &product * uniform(&product))
        },
        &start,
    );
    all.0
}

/// Draws again where what was drawn is refused. `draw` gives numbers, and which of them are taken.
fn until_taken(like: &Tensor, draw: impl FnOnce(&Tensor, &Tensor) -> (Tensor, Tensor)) -> Tensor {
    let start = (like.zeros_like(), like.zeros_like().bool());
    let all = while_loop(
        |(_, taken): (Tensor, Tensor)| taken.logical_not().any(),
        |(kept, taken)| {
            let (drawn, fits) = draw(&(like.rand_like() - 0.5), &uniform(like));
            (kept.where_(&taken, drawn), taken.logical_or(&fits))
        },
        &start,
    );
    all.0
}

/// Poisson, for rates of at least 10.
fn rejected(rate: &Tensor) -> Tensor {
    let (log_rate, b) = (rate.log(), rate.sqrt() * 2.53 + 0.931);
    let a = &b * 0.02483 - 0.059;
    let (inverse_alpha, most) = (1.1328 / (&b - 3.4) + 1.1239, 0.9277 - 3.6224 / (&b - 2.0));
    until_taken(rate, |u, v| {
        let (k, us) = hat(u, &a, &b, &(rate + 0.43));
        let left = (v * &inverse_alpha / (&a / us.square() + &b)).log();
        let right = &k * &log_rate - rate - (&k + 1.0).lgamma();
        let outside = k.lt(0.0).logical_or(us.lt(0.013).logical_and(v.gt(&us)));
        let fits = left.le(&right).logical_and(outside.logical_not());
        (k, us.ge(0.07).logical_and(v.le(&most)).logical_or(&fits))
    })
}

/// What a uniform number in [-½, ½) is under the hat of both rejections, and how far that is from the hat's ends.
fn hat(u: &Tensor, a: &Tensor, b: &Tensor, middle: &Tensor) -> (Tensor, Tensor) {
    let us = 0.5 - u.abs();
    (((a * 2.0 / &us + b) * u + middle).floor(), us)
}

/// Binomial: trials are waited for, as many as there are.
fn waits(count: &Tensor, prob: &Tensor) -> Tensor {
    let log_fails = (-prob).log1p();
    let open = |seen: &Tensor| seen.le(count);
    let wait = || (uniform(count).log() / &log_fails).ceil().clamp_min(1.0);
    let start = (count.zeros_like(), wait());
    let all = while_loop(
        |(_, seen): (Tensor, Tensor)| open(&seen).any(),
        |(n, seen)| (n + open(&seen).to(count.dtype()), seen + wait()),
        &start,
    );
    all.0
}

/// Binomial, where at least 10 are expected, of a probability up to a half.
fn tried(count: &Tensor, prob: &Tensor) -> Tensor {
    let fails = 1.0 - prob;
    let deviation = (count * prob * &fails).sqrt();
    let b = &deviation * 2.53 + 1.15;
    let a = &b * 0.0248 + prob * 0.01 - 0.0873;
    let (middle, most) = (count * prob + 0.5, 0.92 - 4.2 / &b);
    let (ratio, alpha) = (prob / &fails, (5.1 / &b + 2.83) * &deviation);
    let mode = ((count + 1.0) * prob).floor();
    // The logarithm of how likely `k` is, but for what is the same for all.
    let likely = |k: &Tensor| k * ratio.log() - (k + 1.0).lgamma() - (count - k + 1.0).lgamma();
    let best = likely(&mode);
    until_taken(count, |u, v| {
        let (k, us) = hat(u, &a, &b, &middle);
        let outside = k.lt(0.0).logical_or(k.gt(count));
        let left = (v * &alpha / (&a / us.square() + &b)).log();
        let fits = left.le(likely(&k.minimum(count).clamp_min(0.0)) - &best).logical_and(outside.logical_not());
        (k, us.ge(0.07).logical_and(v.le(&most)).logical_or(&fits))
    })
}
