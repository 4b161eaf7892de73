//! Losses by margins and likelihoods, made of other ops.
use super::Reduction;
use super::base::of_one_rank;
use super::loss::reduced;
use crate::tensor::{Tensor, called, refuse};
use xlazy_core::ty::Category;

impl Tensor {
    // (rows, classes), of a vector one row, and whether there were rows.
    #[track_caller]
    fn rows(&self, op: &'static str) -> (Tensor, bool) {
        match self.dim() {
            0 | 1 => (self.reshape([1, -1]), false),
            2 => (self.clone(), true),
            _ => refuse(op, &[self], "needs (batch, classes), or a vector of classes"),
        }
    }

    /// How much the scores of other classes come near that of the target: the mean over classes of max(0, margin - x_target +
    /// x_other)^p, times the target's weight (`torch.nn.functional.multi_margin_loss`); p is 1 or 2.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let loss = tensor([[0.0, 0.5]]).multi_margin_loss(&tensor([0]), 1, 1.0, None, Reduction::Mean);
    /// assert_eq!(loss.item(), 0.75);
    /// ```
    #[track_caller]
    pub fn multi_margin_loss(
        &self,
        target: &Tensor,
        p: i64,
        margin: f64,
        weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Tensor {
        let _call = called("multi_margin_loss", [self, target]);
        let alone = target.dim() == 0;
        let (x, _) = self.rows("multi_margin_loss");
        let target = target.reshape([-1, 1]);
        if target.size(0) != x.size(0) || !(1..3).contains(&p) {
            refuse("multi_margin_loss", &[self, &target], "needs one target for each row, and p of 1 or 2");
        }
        let n = x.size(1) as i64;
        let near = (margin - x.gather(1, &target) + &x).clamp_min(0.0);
        let near = if p == 2 { near.square() } else { near };
        let near = weight.map_or(near.clone(), |w| &near * w.take(&target));
        let own = Tensor::arange(0, n, 1).eq(&target);
        let losses = near.masked_fill(&own, 0.0).sum_dim(1, false) / n as f64;
        // as many losses as targets: one target may be a vector of one
        reduced(if alone { losses.reshape(()) } else { losses }, reduction)
    }

    /// How much the scores of other classes come near those of the targets: classes before the first -1 of each row
    /// (`torch.nn.functional.multilabel_margin_loss`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let loss = tensor([[0.0, 0.5]]).multilabel_margin_loss(&tensor([[0, -1]]), Reduction::Mean);
    /// assert_eq!(loss.item(), 0.75);
    /// ```
    #[track_caller]
    pub fn multilabel_margin_loss(&self, target: &Tensor, reduction: Reduction) -> Tensor {
        let _call = called("multilabel_margin_loss", [self, target]);
        let (x, batch) = self.rows("multilabel_margin_loss");
        let (t, _) = target.rows("multilabel_margin_loss");
        if x.shape() != t.shape() {
            refuse("multilabel_margin_loss", &[self, target], "the targets must have the input's shape");
        }
        if target.dtype().category() != Category::Int {
            let why = format!("the targets are classes, integers, not {}: convert with `.long()`", target.dtype());
            refuse("multilabel_margin_loss", &[self, target], why);
        }
        let n = x.size(1) as i64;
        let valid = t.ge(0).long().cumprod(1).bool();
        let index = t.where_(&valid, 0).long();
        let classes = Tensor::arange(0, n, 1);
        let named = index.unsqueeze(-1).eq(&classes).logical_and(valid.unsqueeze(-1));
        let is_target = named.any_dim(1, false);
        // (row, target, class)
        let near = (1.0 - x.gather(1, &index).unsqueeze(-1) + x.unsqueeze(1)).clamp_min(0.0);
        let counts = valid.unsqueeze(-1).logical_and(is_target.logical_not().unsqueeze(1));
        let losses = near.where_(&counts, 0.0).sum_dim([1, 2], false) / n as f64;
        reduced(if batch { losses } else { losses.reshape(()) }, reduction)
    }

    /// The mean over classes of the cross entropy of each by itself, targets 0 or 1
    /// (`torch.nn.functional.multilabel_soft_margin_loss`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let loss = tensor([[0.0]]).multilabel_soft_margin_loss(&tensor([[1.0]]), None, Reduction::Mean);
    /// assert!((loss.item() - 2f64.ln()).abs() < 1e-6);
    /// ```
    #[track_caller]
    pub fn multilabel_soft_margin_loss(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Tensor {
        let _call = called("multilabel_soft_margin_loss", [self, target]);
        let losses = (target * self.logsigmoid() + (1.0 - target) * self.neg().logsigmoid()).neg();
        let losses = weight.map_or(losses.clone(), |w| &losses * w);
        reduced(losses.mean_dim(-1, false), reduction)
    }

    /// 1 - cos of the angle between two vectors where the target is 1, max(0, cos - margin) where it is -1
    /// (`torch.nn.functional.cosine_embedding_loss`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[1.0, 0.0]]);
    /// assert_eq!(x.cosine_embedding_loss(&x, &tensor([-1.0]), 0.5, Reduction::Mean).item(), 0.5);
    /// ```
    #[track_caller]
    pub fn cosine_embedding_loss(&self, other: &Tensor, target: &Tensor, margin: f64, reduction: Reduction) -> Tensor {
        let _call = called("cosine_embedding_loss", [self, other, target]);
        if target.dim() > 1 || self.dim() != target.dim() + 1 || other.dim() != self.dim() {
            refuse("cosine_embedding_loss", &[self, other, target], "needs rows and a target for each, or two vectors");
        }
        let size = |t: &Tensor| t.square().sum_dim(-1, false) + 1e-12;
        let cos = (self * other).sum_dim(-1, false) / (size(self) * size(other)).sqrt();
        let near = (1.0 - &cos).where_(&target.eq(1), 0.0);
        let far = (cos - margin).clamp_min(0.0).where_(&target.eq(-1), 0.0);
        reduced(near + far, reduction)
    }

    /// The negative log-likelihood of the targets under normal distributions with this mean and variance `var`, at least
    /// `eps`; with the constant where `full` (`torch.nn.functional.gaussian_nll_loss`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let loss = tensor([1.0]).gaussian_nll_loss(&tensor([3.0]), &tensor([1.0]), false, 1e-6, Reduction::Mean);
    /// assert_eq!(loss.item(), 2.0);
    /// ```
    #[track_caller]
    pub fn gaussian_nll_loss(
        &self,
        target: &Tensor,
        var: &Tensor,
        full: bool,
        eps: f64,
        reduction: Reduction,
    ) -> Tensor {
        let _call = called("gaussian_nll_loss", [self, target, var]);
        let s = self.shape();
        // one variance for each row
        let rows = var.dim() + 1 == s.len() && var.shape() == s[..s.len() - 1];
        let var = if rows && var.shape() != s { var.unsqueeze(-1) } else { var.clone() };
        // the bound lets the gradient through
        let var = &var + (var.clamp_min(eps) - &var).detach();
        let losses = (var.log() + (self - target).square() / var) * 0.5;
        reduced(if full { losses + 0.5 * std::f64::consts::TAU.ln() } else { losses }, reduction)
    }

    /// As [`Tensor::poisson_nll_loss`]; `full` adds Stirling's approximation of the constant for targets above 1
    /// (`torch.nn.functional.poisson_nll_loss`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let loss = tensor([0.0]).poisson_nll_loss_with(&tensor([1.0]), true, true, 1e-8, Reduction::Mean);
    /// assert_eq!(loss.item(), 1.0);
    /// ```
    #[track_caller]
    pub fn poisson_nll_loss_with(
        &self,
        target: &Tensor,
        log_input: bool,
        full: bool,
        eps: f64,
        reduction: Reduction,
    ) -> Tensor {
        let _call = called("poisson_nll_loss_with", [self, target]);
        let losses = self.poisson_nll_loss(target, log_input, eps, Reduction::None);
        if !full {
            return reduced(losses, reduction);
        }
        let many = target.gt(1.0);
        let safe = target.where_(&many, 1.0);
        let rest = &safe * safe.log() - &safe + (&safe * std::f64::consts::TAU).log() * 0.5;
        reduced(losses + rest.where_(&many, 0.0), reduction)
    }

    /// max(0, d(anchor, positive) - d(anchor, negative) + margin) by `p`-norms, `eps` added to each difference; with `swap`
    /// the negative's smaller distance from the anchor or the positive counts (`torch.nn.functional.triplet_margin_loss`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (a, p, n) = (tensor([[0.0]]), tensor([[1.0]]), tensor([[3.0]]));
    /// assert!(a.triplet_margin_loss_with(&p, &n, 1.0, 1.0, 0.0, true, Reduction::Mean).item().abs() < 1e-6);
    /// ```
    #[allow(clippy::too_many_arguments)] // torch's
    #[track_caller]
    pub fn triplet_margin_loss_with(
        &self,
        positive: &Tensor,
        negative: &Tensor,
        margin: f64,
        p: f64,
        eps: f64,
        swap: bool,
        reduction: Reduction,
    ) -> Tensor {
        let _call = called("triplet_margin_loss_with", [self, positive, negative]);
        let of = [self, positive, negative];
        if margin <= 0.0 {
            refuse("triplet_margin_loss_with", &of, format!("margin must be above 0, not {margin}"));
        }
        of_one_rank("triplet_margin_loss_with", "anchor, positive and negative", &of);
        let near = self.pairwise_distance(positive, p, eps, false);
        let far = self.pairwise_distance(negative, p, eps, false);
        let far = if swap { far.minimum(positive.pairwise_distance(negative, p, eps, false)) } else { far };
        reduced((near - far + margin).clamp_min(0.0), reduction)
    }
}
