//! Functions without state (`torch.nn.functional`), those that are no methods of tensors.
use super::activation;
use super::dropout::{alpha, channels, feature_alpha};
use super::fractional::{FractionalMaxPool2d, FractionalMaxPool3d};
use super::module::{Module, at_caller};
use super::pool::{LPPool1d, LPPool2d, LPPool3d};
use super::recurrent::{Kind, step};
use crate::tensor::{Tensor, called, refuse};
use crate::{CrossEntropyOptions, Reduction, cat, scan, stack};
use xlazy_core::ty::Dims;

/// The mean cross entropy of logits [n, classes, ...] against class numbers [n, ...]
/// (`torch.nn.functional.cross_entropy`); with options it is [`Tensor::cross_entropy`].
///
/// ```
/// use xlazy::prelude::*;
/// let loss = nn::functional::cross_entropy(&Tensor::zeros([3, 4]), &tensor([0, 1, 3]));
/// assert!((loss.item() - 4f64.ln()).abs() < 1e-6);
/// ```
#[track_caller]
pub fn cross_entropy(logits: &Tensor, targets: &Tensor) -> Tensor {
    at_caller(|| logits.cross_entropy(targets, CrossEntropyOptions::default()))
}

/// The share of rows whose largest logit is the target's, as a tensor: `[n, classes]` against `[n]`.
#[track_caller]
pub fn accuracy(logits: &Tensor, targets: &Tensor) -> Tensor {
    logits.argmax_dim(-1, false).eq(targets).float().mean()
}

/// `max(0, d(anchor, positive) - d(anchor, negative) + margin)` by a distance of one's own; with `swap` the negative's smaller
/// distance from the anchor or the positive counts (`torch.nn.functional.triplet_margin_with_distance_loss`).
///
/// `nn::functional::triplet_margin_with_distance_loss(&tensor([[0.0]]), &tensor([[1.0]]), &tensor([[1.5]]), |a, b| (a - b).abs().sum(), 1.0, false, Reduction::Mean)` is `0.5000`.
#[track_caller]
pub fn triplet_margin_with_distance_loss(
    anchor: &Tensor,
    positive: &Tensor,
    negative: &Tensor,
    distance: fn(&Tensor, &Tensor) -> Tensor,
    margin: f64,
    swap: bool,
    reduction: Reduction,
) -> Tensor {
    at_caller(|| {
        let (near, far) = (distance(anchor, positive), distance(anchor, negative));
        let far = if swap { far.minimum(distance(positive, negative)) } else { far };
        reduced((near - far + margin).clamp_min(0.0), reduction)
    })
}

#[track_caller]
fn reduced(losses: Tensor, reduction: Reduction) -> Tensor {
    match reduction {
        Reduction::None => losses,
        Reduction::Sum => losses.sum(),
        Reduction::Mean | Reduction::BatchMean => losses.mean(),
    }
}

/// What [`ctc_loss`] takes besides its tensors; the defaults are torch's.
#[derive(Clone, Copy, Debug, Default)]
pub struct CtcOptions {
    pub blank: i64,
    /// Zero for what cannot be read in its length, in place of infinity.
    pub zero_infinity: bool,
    pub reduction: Reduction,
}

/// The negative log-likelihood of labels in sequences of log-probabilities (length, batch, classes), over all their alignments
/// (`torch.nn.functional.ctc_loss`). Targets are (batch, labels), padded behind, or all in one vector; the lengths of both are
/// (batch). With mean, each is divided by its number of labels. One loop on the device, through which gradients flow: those of the
/// log-probabilities themselves, where torch's suppose a log_softmax before it; behind one they are the same.
///
/// ```
/// use xlazy::prelude::*;
/// use xlazy::nn::functional::{CtcOptions, ctc_loss};
/// let log_probs = Tensor::zeros([3, 1, 2]).log_softmax(-1);
/// let loss = ctc_loss(&log_probs, &tensor([[1]]), &tensor([3]), &tensor([1]), CtcOptions::default());
/// // of 8 equally likely paths, 6 read as one label
/// assert!((loss.item() - (8f64 / 6.0).ln()).abs() < 1e-6);
/// ```
#[track_caller]
pub fn ctc_loss(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &Tensor,
    target_lengths: &Tensor,
    options: CtcOptions,
) -> Tensor {
    // Far below any log-likelihood, and finite: the difference of two has no NaN.
    const NEVER: f64 = -1e30;
    let _call = called("ctc_loss", [log_probs]);
    at_caller(|| {
        if log_probs.dim() == 2 {
            let one = |t: &Tensor| t.reshape([1, -1]);
            let (inputs, labels) = (input_lengths.reshape([1]), target_lengths.reshape([1]));
            let loss = ctc_loss(&log_probs.unsqueeze(1), &one(targets), &inputs, &labels, options);
            return if options.reduction == Reduction::None { loss.squeeze_dim(0) } else { loss };
        }
        if log_probs.dim() != 3 {
            refuse("ctc_loss", &[log_probs], "needs log-probabilities (length, batch, classes)");
        }
        let (length, batch) = (log_probs.size(0) as i64, log_probs.size(1) as i64);
        let (inputs, lengths) = (input_lengths.long().reshape([-1, 1]), target_lengths.long().reshape([-1, 1]));
        let n = targets.size(-1) as i64;
        let places = Tensor::arange(0, n, 1).reshape([1, -1]);
        let labels = match targets.dim() {
            2 => targets.long(),
            _ => {
                let starts = lengths.cumsum(0) - &lengths;
                targets.long().take(&(starts + &places).clamp(0, n - 1))
            }
        };
        let labels = labels.where_(&places.lt(&lengths), options.blank);
        // a blank before each label, and one at the end: (batch, 2 n + 1)
        let blanks = Tensor::full([batch, n, 1], options.blank).long();
        let pairs = cat(&[&blanks, &labels.unsqueeze(-1)], 2).reshape([batch, 2 * n]);
        let path = cat(&[&pairs, &Tensor::full([batch, 1], options.blank).long()], 1);
        let states = 2 * n + 1;
        let said = log_probs.gather(2, &path.unsqueeze(0).expand([length, batch, states]));
        // another label may follow a label without a blank between them
        let before = path.pad([2, 0], 0.0).narrow(1, 0, states);
        let steps = Tensor::arange(0, states, 1);
        let skips = path.ne(options.blank).logical_and(path.ne(&before)).logical_and(steps.ge(2));
        let first = said.select(0, 0).where_(&steps.lt(2).unsqueeze(0), NEVER);
        let shifted = |a: &Tensor, by: i64| a.pad([by, 0], NEVER).narrow(1, 0, states);
        let times = Tensor::arange(1, length, 1).reshape([-1, 1, 1]);
        let reads = times.lt(inputs.unsqueeze(0));
        let (alpha, _) = scan(
            |alpha: Tensor, (said, reads): (Tensor, Tensor)| {
                let skipped = shifted(&alpha, 2).where_(&skips, NEVER);
                let all = stack(&[&alpha, &shifted(&alpha, 1), &skipped], 0).logsumexp(0, false);
                ((all + said).clamp_min(NEVER).where_(&reads, &alpha), ())
            },
            &first,
            &(said.narrow(0, 1, length - 1), reads),
        );
        let last = alpha.gather(1, &(&lengths * 2));
        let label = alpha.gather(1, &(&lengths * 2 - 1).clamp_min(0)).where_(&lengths.gt(0), NEVER);
        let loss = cat(&[&last, &label], 1).logsumexp(1, false).neg();
        let never = loss.gt(-NEVER / 1e3);
        let impossible = if options.zero_infinity { 0.0 } else { f64::INFINITY };
        let loss = Tensor::full((), impossible).to(loss.dtype()).where_(&never, &loss);
        match options.reduction {
            Reduction::Mean => (loss / lengths.squeeze_dim(1).clamp_min(1).to(log_probs.dtype())).mean(),
            r => reduced(loss, r),
        }
    })
}

/// Shares that add up to 1 along `dim`, drawn as by `softmax((logits + g) / tau)` with Gumbel noise g; with `hard` one of them is 1,
/// and gradients are those of the shares (`torch.nn.functional.gumbel_softmax`).
///
/// ```
/// use xlazy::prelude::*;
/// let drawn = nn::functional::gumbel_softmax(&tensor([[0.0, 9.0, 0.0]]), 1.0, true, -1);
/// assert_eq!((drawn.sum().item(), drawn.max().item()), (1.0, 1.0));
/// ```
#[track_caller]
pub fn gumbel_softmax(logits: &Tensor, tau: f64, hard: bool, dim: i64) -> Tensor {
    at_caller(|| {
        // -ln of a number that is never 0
        let noise = (logits.rand_like() + f32::MIN_POSITIVE as f64).log().neg().clamp_min(1e-10).log().neg();
        let soft = ((logits + noise) / tau).softmax(dim);
        if !hard {
            return soft;
        }
        let at = soft.detach().argmax_dim(dim, true);
        let one = soft.zeros_like().scatter(dim, &at, at.ones_like().to(soft.dtype()));
        // forwards the whole number, backwards the share
        (one - soft.detach()) + soft
    })
}

/// Where each place of a picture comes from under affine maps, for [`Tensor::grid_sample`]: `theta` [n, 2, 3] and a size [n, c, h, w]
/// give [n, h, w, 2], of coordinates x, y from -1 to 1 (`torch.nn.functional.affine_grid`).
///
/// ```
/// use xlazy::prelude::*;
/// let same = tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]);
/// let grid = nn::functional::affine_grid(&same, [1, 1, 2, 2], true);
/// assert_eq!(grid.to_vec::<f32>(), [-1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0, 1.0]);
/// ```
#[track_caller]
pub fn affine_grid(theta: &Tensor, size: [usize; 4], align_corners: bool) -> Tensor {
    at_caller(|| {
        let [n, _, h, w] = size;
        if theta.shape() != [n, 2, 3] {
            refuse("affine_grid", &[theta], format!("needs a map [{n}, 2, 3] for each picture of {size:?}"));
        }
        let along = |count: usize| {
            let edge = match (align_corners, count) {
                (_, 0 | 1) => 0.0,
                (true, _) => 1.0,
                (false, _) => 1.0 - 1.0 / count as f64,
            };
            Tensor::linspace(-edge, edge, count).to(theta.dtype())
        };
        let x = along(w).reshape([1, -1]).expand([h, w]);
        let y = along(h).reshape([-1, 1]).expand([h, w]);
        let base = stack(&[&x, &y, &x.ones_like()], 2).reshape([1, -1, 3]).expand([n, h * w, 3]);
        base.matmul(&theta.transpose(1, 2)).reshape([n, h, w, 2])
    })
}

macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident => $f:path;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(x: &Tensor, p: f64, training: bool) -> Tensor {
            at_caller(|| $f(x, p, training))
        }
    )*};
}

dropouts! {
    /// Whole channels of [n, c, length] zeroed with probability `p` (`torch.nn.functional.dropout1d`).
    ///
    /// `nn::functional::dropout1d(&tensor([[[1.0, 2.0]]]), 0.5, false)` is `[[[1., 2.]]]`.
    dropout1d => channels;
    /// Whole channels of [n, c, height, width] zeroed with probability `p` (`torch.nn.functional.dropout2d`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = Tensor::ones([1, 3, 2, 2]);
    /// assert_eq!(nn::functional::dropout2d(&x, 0.5, false).sum().item(), 12.0);
    /// ```
    dropout2d => channels;
    /// Whole channels of [n, c, depth, height, width] zeroed with probability `p` (`torch.nn.functional.dropout3d`).
    ///
    /// `nn::functional::dropout3d(&tensor([[[[[1.0, 2.0]]]]]), 0.5, false)` is `[[[[[1., 2.]]]]]`.
    dropout3d => channels;
    /// Elements become the value that SELU tends to, and mean and variance stay (`torch.nn.functional.alpha_dropout`).
    ///
    /// `nn::functional::alpha_dropout(&tensor([1.0, 2.0]), 0.5, false)` is `[1., 2.]`.
    alpha_dropout => alpha;
    /// The same of whole channels (`torch.nn.functional.feature_alpha_dropout`).
    ///
    /// `nn::functional::feature_alpha_dropout(&tensor([[[1.0, 2.0]]]), 0.5, false)` is `[[[1., 2.]]]`.
    feature_alpha_dropout => feature_alpha;
}

/// One step of an LSTM with weights of your own, as [`LSTMCell`](super::LSTMCell) has them: the state `(h, c)` becomes the next
/// one (`torch.lstm_cell`). Sizes are x [n, input], h and c [n, hidden], w_ih [4 * hidden, input], w_hh [4 * hidden, hidden] and
/// biases [4 * hidden].
///
/// ```
/// use xlazy::prelude::*;
/// let (x, zeros) = (Tensor::ones([2, 3]), Tensor::zeros([2, 5]));
/// let (w_ih, w_hh) = (Tensor::full([20, 3], 0.1), Tensor::full([20, 5], 0.1));
/// let (h, c) = nn::functional::lstm_cell(&x, (&zeros, &zeros), &w_ih, &w_hh, None, None);
/// assert_eq!((h.shape(), c.shape()), (Shape::new(&[2, 5]), Shape::new(&[2, 5])));
/// ```
#[track_caller]
pub fn lstm_cell(
    x: &Tensor,
    state: (&Tensor, &Tensor),
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
) -> (Tensor, Tensor) {
    let mut next = at_caller(|| step(Kind::Lstm, x, &[state.0, state.1], [w_ih, w_hh], [b_ih, b_hh]));
    (next.remove(0), next.remove(0))
}

/// One step of a GRU with weights of your own: the next state (`torch.gru_cell`). Sizes are x [n, input], h [n, hidden],
/// w_ih [3 * hidden, input], w_hh [3 * hidden, hidden] and biases [3 * hidden].
///
/// `nn::functional::gru_cell(&tensor([[1.0]]), &tensor([[0.5]]), &Tensor::ones([3, 1]), &Tensor::ones([3, 1]), None, None)` is `[[0.5706]]`.
#[track_caller]
pub fn gru_cell(
    x: &Tensor,
    h: &Tensor,
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
) -> Tensor {
    at_caller(|| step(Kind::Gru, x, &[h], [w_ih, w_hh], [b_ih, b_hh])).remove(0)
}

/// One step of a plain recurrent network with weights of your own: the next state (`torch.rnn_tanh_cell`). Sizes are x [n, input], h [n, hidden],
/// w_ih [hidden, input], w_hh [hidden, hidden] and biases of as many as hidden.
///
/// `nn::functional::rnn_tanh_cell(&tensor([[1.0]]), &tensor([[0.5]]), &Tensor::ones([1, 1]), &Tensor::ones([1, 1]), None, None)` is `[[0.9051]]`.
#[track_caller]
pub fn rnn_tanh_cell(
    x: &Tensor,
    h: &Tensor,
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
) -> Tensor {
    at_caller(|| step(Kind::Tanh, x, &[h], [w_ih, w_hh], [b_ih, b_hh])).remove(0)
}

/// One step of a plain recurrent network with ReLU with weights of your own: the next state (`torch.rnn_relu_cell`). Sizes are x [n, input], h [n, hidden],
/// w_ih [hidden, input], w_hh [hidden, hidden] and biases of as many as hidden.
///
/// `nn::functional::rnn_relu_cell(&tensor([[1.0]]), &tensor([[0.5]]), &Tensor::ones([1, 1]), &Tensor::ones([1, 1]), None, None)` is `[[1.5000]]`.
#[track_caller]
pub fn rnn_relu_cell(
    x: &Tensor,
    h: &Tensor,
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
) -> Tensor {
    at_caller(|| step(Kind::ReLU, x, &[h], [w_ih, w_hh], [b_ih, b_hh])).remove(0)
}

/// The largest element of each of some windows whose places are drawn, for a result of that size, as
/// [`FractionalMaxPool2d`] (`torch.nn.functional.fractional_max_pool2d`), which also takes a ratio.
///
/// `nn::functional::fractional_max_pool2d(&Tensor::ones([1, 1, 6, 6]), 2, [3, 4]).shape()` is `[1,1,3,4]`.
#[track_caller]
pub fn fractional_max_pool2d(x: &Tensor, kernel_size: impl Into<Dims>, output_size: impl Into<Dims>) -> Tensor {
    FractionalMaxPool2d::new(kernel_size, output_size).forward(x)
}

/// The largest element of each of some windows whose places are drawn, for a result of that size, as
/// [`FractionalMaxPool3d`] (`torch.nn.functional.fractional_max_pool3d`), which also takes a ratio.
///
/// `nn::functional::fractional_max_pool3d(&Tensor::ones([1, 1, 6, 6, 6]), 2, [3, 4, 2]).shape()` is `[1,1,3,4,2]`.
#[track_caller]
pub fn fractional_max_pool3d(x: &Tensor, kernel_size: impl Into<Dims>, output_size: impl Into<Dims>) -> Tensor {
    FractionalMaxPool3d::new(kernel_size, output_size).forward(x)
}

/// The norm of each window: the root of order `norm_type` of the sum of powers, as [`LPPool1d`]
/// (`torch.nn.functional.lp_pool1d`). Without a stride, `()`, windows lie side by side.
///
/// `nn::functional::lp_pool1d(&tensor([[[3.0, 4.0]]]), 2.0, 2, (), false)` is `[[[5.]]]`.
#[track_caller]
pub fn lp_pool1d(
    x: &Tensor,
    norm_type: f64,
    kernel_size: impl Into<Dims>,
    stride: impl Into<Dims>,
    ceil_mode: bool,
) -> Tensor {
    at_caller(|| LPPool1d::new(norm_type, kernel_size).stride(stride).ceil_mode(ceil_mode).forward(x))
}

/// The norm of each window: the root of order `norm_type` of the sum of powers, as [`LPPool2d`]
/// (`torch.nn.functional.lp_pool2d`). Without a stride, `()`, windows lie side by side.
///
/// `nn::functional::lp_pool2d(&tensor([[[[3.0, 0.0], [4.0, 0.0]]]]), 2.0, 2, (), false)` is `[[[[5.]]]]`.
#[track_caller]
pub fn lp_pool2d(
    x: &Tensor,
    norm_type: f64,
    kernel_size: impl Into<Dims>,
    stride: impl Into<Dims>,
    ceil_mode: bool,
) -> Tensor {
    at_caller(|| LPPool2d::new(norm_type, kernel_size).stride(stride).ceil_mode(ceil_mode).forward(x))
}

/// The norm of each window: the root of order `norm_type` of the sum of powers, as [`LPPool3d`]
/// (`torch.nn.functional.lp_pool3d`). Without a stride, `()`, windows lie side by side.
///
/// `nn::functional::lp_pool3d(&tensor([[[[[3.0, 0.0], [4.0, 0.0]]]]]), 2.0, [1, 2, 2], (), false)` is `[[[[[5.]]]]]`.
#[track_caller]
pub fn lp_pool3d(
    x: &Tensor,
    norm_type: f64,
    kernel_size: impl Into<Dims>,
    stride: impl Into<Dims>,
    ceil_mode: bool,
) -> Tensor {
    at_caller(|| LPPool3d::new(norm_type, kernel_size).stride(stride).ceil_mode(ceil_mode).forward(x))
}

/// What is negative times a number drawn between `lower` and `upper`, in training; else times their mean
/// (`torch.nn.functional.rrelu`).
///
/// `nn::functional::rrelu(&tensor([-2.0, 3.0]), 0.25, 0.75, false)` is `[-1., 3.]`.
#[track_caller]
pub fn rrelu(x: &Tensor, lower: f64, upper: f64, training: bool) -> Tensor {
    at_caller(|| activation::rrelu(x, lower, upper, training))
}
