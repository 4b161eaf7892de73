//! Losses as modules: what torch's constructors take by name, and `forward(input, target)`, a line each.
use super::functional;
use crate::tensor::Tensor;
use crate::{CrossEntropyOptions, Reduction};

macro_rules! losses {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $t:ty = $default:expr),* $(,)? }
            => |$m:ident, $reduction:ident, $($x:ident),*| $f:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            $(pub $field: $t,)*
            pub reduction: Reduction,
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* reduction: Reduction::Mean }
            }
        }

        impl $name {
            /// With torch's defaults; the methods change them by name.
            pub fn new() -> $name {
                $name::default()
            }

            /// Mean, Sum or None.
            pub fn reduction(mut self, reduction: Reduction) -> $name {
                self.reduction = reduction;
                self
            }

            $(
                /// Another one than torch's default.
                pub fn $field(mut self, $field: $t) -> $name {
                    self.$field = $field;
                    self
                }
            )*

            #[track_caller]
            pub fn forward(&self, $($x: &Tensor),*) -> Tensor {
                let ($m, $reduction) = (self, self.reduction);
                let _ = $m;
                $f
            }
        }
    )*};
}

fn classes(
    weight: &Option<Tensor>,
    ignore_index: i64,
    label_smoothing: f64,
    reduction: Reduction,
) -> CrossEntropyOptions {
    CrossEntropyOptions { weight: weight.clone(), ignore_index, label_smoothing, reduction }
}

losses! {
    /// Absolute differences (`torch.nn.L1Loss`).
    ///
    /// `nn::L1Loss::new().forward(&tensor([1.0, 5.0]), &tensor([2.0, 2.0]))` is `2.`.
    L1Loss {} => |m, reduction, input, target| input.l1_loss(target, reduction);
    /// Squared differences (`torch.nn.MSELoss`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let loss = nn::MSELoss::new().reduction(Reduction::Sum);
    /// assert_eq!(loss.forward(&tensor([1.0, 2.0]), &tensor([1.0, 4.0])).item(), 4.0);
    /// ```
    MSELoss {} => |m, reduction, input, target| input.mse_loss(target, reduction);
    /// The cross entropy of unnormalised scores against class indices or probabilities (`torch.nn.CrossEntropyLoss`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let loss = nn::CrossEntropyLoss::new().label_smoothing(0.1).ignore_index(-1);
    /// assert!(loss.forward(&tensor([[2.0, 0.0], [0.0, 2.0]]), &tensor([0, -1])).item() < 0.3);
    /// ```
    CrossEntropyLoss { weight: Option<Tensor> = None, ignore_index: i64 = -100, label_smoothing: f64 = 0.0 }
        => |m, reduction, input, target|
            input.cross_entropy(target, classes(&m.weight, m.ignore_index, m.label_smoothing, reduction));
    /// The negative log-probability of each target class (`torch.nn.NLLLoss`).
    ///
    /// `nn::NLLLoss::new().forward(&tensor([[0.2, 0.8]]).log(), &tensor([1]))` is `0.2231`.
    NLLLoss { weight: Option<Tensor> = None, ignore_index: i64 = -100 } => |m, reduction, input, target|
        input.nll_loss(target, classes(&m.weight, m.ignore_index, 0.0, reduction));
    /// The likelihood of counts (`torch.nn.PoissonNLLLoss`).
    ///
    /// `nn::PoissonNLLLoss::new().forward(&tensor([0.0]), &tensor([2.0]))` is `1.`.
    PoissonNLLLoss { log_input: bool = true, full: bool = false, eps: f64 = 1e-8 } => |m, reduction, input, target|
        input.poisson_nll_loss_with(target, m.log_input, m.full, m.eps, reduction);
    /// The likelihood of targets under normal distributions (`torch.nn.GaussianNLLLoss`).
    ///
    /// `nn::GaussianNLLLoss::new().forward(&tensor([0.0]), &tensor([2.0]), &tensor([1.0]))` is `2.`.
    GaussianNLLLoss { full: bool = false, eps: f64 = 1e-6 } => |m, reduction, input, target, var|
        input.gaussian_nll_loss(target, var, m.full, m.eps, reduction);
    /// The divergence of log-probabilities from the target (`torch.nn.KLDivLoss`); its mathematical reduction is BatchMean.
    ///
    /// `nn::KLDivLoss::new().reduction(Reduction::Sum).forward(&tensor([0.5, 0.5]).log(), &tensor([0.9, 0.1]))` is `0.3681`.
    KLDivLoss { log_target: bool = false } => |m, reduction, input, target|
        input.kl_div(target, m.log_target, reduction);
    /// The cross entropy of probabilities and targets between 0 and 1 (`torch.nn.BCELoss`).
    ///
    /// `nn::BCELoss::new().forward(&tensor([0.5, 0.9]), &tensor([1.0, 1.0]))` is `0.3993`.
    BCELoss { weight: Option<Tensor> = None } => |m, reduction, input, target|
        input.binary_cross_entropy(target, m.weight.as_ref(), reduction);
    /// The same of sigmoids, without overflow (`torch.nn.BCEWithLogitsLoss`).
    ///
    /// `nn::BCEWithLogitsLoss::new().forward(&tensor([0.0, 3.0]), &tensor([1.0, 1.0]))` is `0.3709`.
    BCEWithLogitsLoss { weight: Option<Tensor> = None, pos_weight: Option<Tensor> = None } => |m, reduction, input, target|
        input.binary_cross_entropy_with_logits(target, m.weight.as_ref(), m.pos_weight.as_ref(), reduction);
    /// `max(0, margin - y (x1 - x2))` (`torch.nn.MarginRankingLoss`).
    ///
    /// `nn::MarginRankingLoss::new().margin(0.5).forward(&tensor([1.0]), &tensor([3.0]), &tensor([1.0]))` is `2.5000`.
    MarginRankingLoss { margin: f64 = 0.0 } => |m, reduction, input1, input2, target|
        input1.margin_ranking_loss(input2, target, m.margin, reduction);
    /// Near where the target is 1, far where it is -1 (`torch.nn.HingeEmbeddingLoss`).
    ///
    /// `nn::HingeEmbeddingLoss::new().forward(&tensor([0.4, 0.4]), &tensor([1.0, -1.0]))` is `0.5000`.
    HingeEmbeddingLoss { margin: f64 = 1.0 } => |m, reduction, input, target|
        input.hinge_embedding_loss(target, m.margin, reduction);
    /// Margins between classes of several labels (`torch.nn.MultiLabelMarginLoss`).
    ///
    /// `nn::MultiLabelMarginLoss::new().forward(&tensor([[0.1, 0.2, 0.4]]), &tensor([[2, -1, 0]]))` is `0.5000`.
    MultiLabelMarginLoss {} => |m, reduction, input, target| input.multilabel_margin_loss(target, reduction);
    /// Squared below `delta`, linear above (`torch.nn.HuberLoss`).
    ///
    /// `nn::HuberLoss::new().delta(2.0).forward(&tensor([1.0, 5.0]), &tensor([2.0, 2.0]))` is `2.2500`.
    HuberLoss { delta: f64 = 1.0 } => |m, reduction, input, target| input.huber_loss(target, m.delta, reduction);
    /// Squared below `beta`, absolute above (`torch.nn.SmoothL1Loss`).
    ///
    /// `nn::SmoothL1Loss::new().forward(&tensor([1.0, 5.0]), &tensor([2.0, 2.0]))` is `1.5000`.
    SmoothL1Loss { beta: f64 = 1.0 } => |m, reduction, input, target| input.smooth_l1_loss(target, m.beta, reduction);
    /// log(1 + e^(-y x)) (`torch.nn.SoftMarginLoss`).
    ///
    /// `nn::SoftMarginLoss::new().forward(&tensor([0.0]), &tensor([1.0]))` is `0.6931`.
    SoftMarginLoss {} => |m, reduction, input, target| input.soft_margin_loss(target, reduction);
    /// The mean over classes of the cross entropy of each by itself (`torch.nn.MultiLabelSoftMarginLoss`).
    ///
    /// `nn::MultiLabelSoftMarginLoss::new().forward(&tensor([[0.0, 2.0]]), &tensor([[0.0, 1.0]]))` is `0.4100`.
    MultiLabelSoftMarginLoss { weight: Option<Tensor> = None } => |m, reduction, input, target|
        input.multilabel_soft_margin_loss(target, m.weight.as_ref(), reduction);
    /// By the angle between two vectors (`torch.nn.CosineEmbeddingLoss`).
    ///
    /// `nn::CosineEmbeddingLoss::new().forward(&tensor([[1.0, 0.0]]), &tensor([[0.0, 1.0]]), &tensor([1.0]))` is `1.`.
    CosineEmbeddingLoss { margin: f64 = 0.0 } => |m, reduction, input1, input2, target|
        input1.cosine_embedding_loss(input2, target, m.margin, reduction);
    /// How much other classes come near the target (`torch.nn.MultiMarginLoss`).
    ///
    /// `nn::MultiMarginLoss::new().forward(&tensor([[0.1, 0.8]]), &tensor([1]))` is `0.1500`.
    MultiMarginLoss { p: i64 = 1, margin: f64 = 1.0, weight: Option<Tensor> = None } => |m, reduction, input, target|
        input.multi_margin_loss(target, m.p, m.margin, m.weight.as_ref(), reduction);
    /// The positive nearer to the anchor than the negative (`torch.nn.TripletMarginLoss`).
    ///
    /// `nn::TripletMarginLoss::new().forward(&tensor([[0.0]]), &tensor([[1.0]]), &tensor([[3.0]]))` is `0.`.
    TripletMarginLoss { margin: f64 = 1.0, p: f64 = 2.0, eps: f64 = 1e-6, swap: bool = false }
        => |m, reduction, anchor, positive, negative|
            anchor.triplet_margin_loss_with(positive, negative, m.margin, m.p, m.eps, m.swap, reduction);
    /// The same by a distance of one's own (`torch.nn.TripletMarginWithDistanceLoss`); without one, the 2-norm of differences.
    ///
    /// `nn::TripletMarginWithDistanceLoss::new().forward(&tensor([[0.0]]), &tensor([[1.0]]), &tensor([[1.5]]))` is `0.5000`.
    TripletMarginWithDistanceLoss {
        distance_function: fn(&Tensor, &Tensor) -> Tensor = |a, b| a.pairwise_distance(b, 2.0, 1e-6, false),
        margin: f64 = 1.0,
        swap: bool = false,
    } => |m, reduction, anchor, positive, negative|
        functional::triplet_margin_with_distance_loss(
            anchor, positive, negative, m.distance_function, m.margin, m.swap, reduction);
    /// The likelihood of labels in sequences without an alignment (`torch.nn.CTCLoss`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let log_probs = Tensor::zeros([3, 1, 2]).log_softmax(-1);
    /// let loss = nn::CTCLoss::new().forward(&log_probs, &tensor([[1]]), &tensor([3]), &tensor([1]));
    /// // of 8 equally likely paths, 6 read as one label
    /// assert!((loss.item() - (8f64 / 6.0).ln()).abs() < 1e-6);
    /// ```
    CTCLoss { blank: i64 = 0, zero_infinity: bool = false }
        => |m, reduction, log_probs, targets, input_lengths, target_lengths| {
            let options = functional::CtcOptions { blank: m.blank, zero_infinity: m.zero_infinity, reduction };
            functional::ctc_loss(log_probs, targets, input_lengths, target_lengths, options)
        };
}
