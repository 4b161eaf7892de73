//! The transformer: encoder and decoder layers, stacks of them, and both together.
use super::activation::Activation;
use super::attention::{AttentionMasks, MultiheadAttention, MultiheadAttentionOptions};
use super::dropout::Dropout;
use super::init;
use super::linear::Linear;
use super::module::{Module, Parts, at_caller, begin_as};
use super::norm::LayerNorm;
use crate::tensor::Tensor;

/// What torch's transformer layers take besides size and heads; the defaults are torch's.
#[derive(Clone, Debug)]
pub struct TransformerOptions {
    pub dim_feedforward: usize,
    pub dropout: f64,
    /// Between the two linear layers.
    pub activation: Activation,
    pub layer_norm_eps: f64,
    /// [batch, length, size] in place of [length, batch, size].
    pub batch_first: bool,
    /// Normalise before attention and linear layers, in place of after.
    pub norm_first: bool,
    pub bias: bool,
}

impl Default for TransformerOptions {
    fn default() -> TransformerOptions {
        TransformerOptions {
            dim_feedforward: 2048,
            dropout: 0.1,
            activation: Activation::ReLU,
            layer_norm_eps: 1e-5,
            batch_first: false,
            norm_first: false,
            bias: true,
        }
    }
}

impl TransformerOptions {
    #[track_caller]
    fn attention(&self, size: usize, heads: usize) -> MultiheadAttention {
        let (dropout, bias, batch_first) = (self.dropout, self.bias, self.batch_first);
        let options = MultiheadAttentionOptions { dropout, bias, batch_first, ..Default::default() };
        MultiheadAttention::with(size, heads, options)
    }

    #[track_caller]
    fn linear(&self, from: usize, to: usize) -> Linear {
        if self.bias { Linear::new(from, to) } else { Linear::without_bias(from, to) }
    }

    #[track_caller]
    fn norm(&self, size: usize) -> LayerNorm {
        let norm = LayerNorm::with(size, self.layer_norm_eps);
        if self.bias { norm } else { norm.without_bias() }
    }
}

/// The masks of torch's transformers, by torch's names: an encoder reads those of `src`, a decoder those of `tgt` and `memory`.
/// Masks are true where a key must not be looked at, or numbers added to the scores.
#[derive(Clone, Debug, Default)]
pub struct TransformerMasks {
    pub src_mask: Option<Tensor>,
    pub tgt_mask: Option<Tensor>,
    pub memory_mask: Option<Tensor>,
    pub src_key_padding_mask: Option<Tensor>,
    pub tgt_key_padding_mask: Option<Tensor>,
    pub memory_key_padding_mask: Option<Tensor>,
    /// Hide what comes after; where there is no mask for the same.
    pub src_is_causal: bool,
    pub tgt_is_causal: bool,
    pub memory_is_causal: bool,
}

fn masks(attn_mask: &Option<Tensor>, key_padding_mask: &Option<Tensor>, is_causal: bool) -> AttentionMasks {
    let (attn_mask, key_padding_mask) = (attn_mask.clone(), key_padding_mask.clone());
    AttentionMasks { attn_mask, key_padding_mask, is_causal, per_head: false }
}

impl TransformerOptions {
    fn told(&self, p: &mut Parts) {
        p.setting("activation", &self.activation);
        p.unusual("norm_first", &self.norm_first, &false);
    }
}

impl TransformerMasks {
    fn of_src(&self) -> AttentionMasks {
        masks(&self.src_mask, &self.src_key_padding_mask, self.src_is_causal)
    }

    fn of_tgt(&self) -> AttentionMasks {
        masks(&self.tgt_mask, &self.tgt_key_padding_mask, self.tgt_is_causal)
    }

    fn of_memory(&self) -> AttentionMasks {
        masks(&self.memory_mask, &self.memory_key_padding_mask, self.memory_is_causal)
    }
}

/// The two linear layers of a block, and what comes between.
struct FeedForward {
    linear1: Linear,
    linear2: Linear,
    dropout: Dropout,
    activation: Activation,
}

impl FeedForward {
    #[track_caller]
    fn new(size: usize, o: &TransformerOptions) -> FeedForward {
        FeedForward {
            linear1: o.linear(size, o.dim_feedforward),
            linear2: o.linear(o.dim_feedforward, size),
            dropout: Dropout::new(o.dropout),
            activation: o.activation,
        }
    }

    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.linear2.forward(&dropped(&self.dropout, self.activation.of(&self.linear1.forward(x))))
    }

    fn parts(&self, p: &mut Parts) {
        p.add("linear1", &self.linear1);
        p.add("dropout", &self.dropout);
        p.add("linear2", &self.linear2);
    }
}

/// With a rate of zero there is nothing to draw.
#[track_caller]
fn dropped(dropout: &Dropout, x: Tensor) -> Tensor {
    if dropout.p == 0.0 { x } else { dropout.forward(&x) }
}

/// A block added to what it is given: normalised before or after.
#[track_caller]
fn added(x: &Tensor, norm: &LayerNorm, norm_first: bool, block: &mut dyn FnMut(&Tensor) -> Tensor) -> Tensor {
    match norm_first {
        true => x + block(&norm.forward(x)),
        false => norm.forward(&(x + block(x))),
    }
}

/// Self-attention and a small network of two linear layers, each added to what it is given and normalised
/// (`torch.nn.TransformerEncoderLayer`).
///
/// ```
/// use xlazy::prelude::*;
/// let options = nn::TransformerOptions { dim_feedforward: 32, batch_first: true, ..Default::default() };
/// let layer = nn::TransformerEncoderLayer::with(16, 4, options);
/// assert_eq!(layer.forward(&Tensor::ones([2, 5, 16])).shape(), [2, 5, 16]);
/// ```
pub struct TransformerEncoderLayer {
    pub self_attn: MultiheadAttention,
    feed_forward: FeedForward,
    norms: [LayerNorm; 2],
    dropouts: [Dropout; 2],
    sizes: (usize, usize),
    options: TransformerOptions,
}

impl TransformerEncoderLayer {
    #[track_caller]
    pub fn new(d_model: usize, nhead: usize) -> TransformerEncoderLayer {
        TransformerEncoderLayer::with(d_model, nhead, TransformerOptions::default())
    }

    #[track_caller]
    pub fn with(d_model: usize, nhead: usize, options: TransformerOptions) -> TransformerEncoderLayer {
        TransformerEncoderLayer {
            self_attn: options.attention(d_model, nhead),
            feed_forward: FeedForward::new(d_model, &options),
            norms: [options.norm(d_model), options.norm(d_model)],
            dropouts: [Dropout::new(options.dropout), Dropout::new(options.dropout)],
            sizes: (d_model, nhead),
            options,
        }
    }

    /// With masks: those of `src`.
    #[track_caller]
    pub fn forward_with(&self, src: &Tensor, masks: &TransformerMasks) -> Tensor {
        at_caller(|| {
            let first = self.options.norm_first;
            let x = added(src, &self.norms[0], first, &mut |x| {
                dropped(&self.dropouts[0], self.self_attn.forward_with(x, x, x, masks.of_src()).0)
            });
            added(&x, &self.norms[1], first, &mut |x| dropped(&self.dropouts[1], self.feed_forward.forward(x)))
        })
    }
}

impl Module for TransformerEncoderLayer {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.forward_with(x, &TransformerMasks::default())
    }

    fn parts(&self, p: &mut Parts) {
        self.options.told(p);
        p.add("self_attn", &self.self_attn);
        self.feed_forward.parts(p);
        numbered(p, "norm", &self.norms);
        numbered(p, "dropout", &self.dropouts);
    }
}

fn numbered<M: Module>(p: &mut Parts, name: &str, modules: &[M]) {
    modules.iter().enumerate().for_each(|(i, m)| p.add(&format!("{name}{}", i + 1), m));
}

/// Self-attention, attention to an encoder's memory, and a small network, each added to what it is given and normalised
/// (`torch.nn.TransformerDecoderLayer`).
///
/// ```
/// use xlazy::prelude::*;
/// let options = nn::TransformerOptions { dim_feedforward: 32, batch_first: true, ..Default::default() };
/// let layer = nn::TransformerDecoderLayer::with(16, 4, options);
/// let masks = nn::TransformerMasks { tgt_is_causal: true, ..Default::default() };
/// let y = layer.forward(&Tensor::ones([2, 5, 16]), &Tensor::ones([2, 7, 16]), &masks);
/// assert_eq!(y.shape(), [2, 5, 16]);
/// ```
pub struct TransformerDecoderLayer {
    pub self_attn: MultiheadAttention,
    pub multihead_attn: MultiheadAttention,
    feed_forward: FeedForward,
    norms: [LayerNorm; 3],
    dropouts: [Dropout; 3],
    sizes: (usize, usize),
    options: TransformerOptions,
}

impl TransformerDecoderLayer {
    #[track_caller]
    pub fn new(d_model: usize, nhead: usize) -> TransformerDecoderLayer {
        TransformerDecoderLayer::with(d_model, nhead, TransformerOptions::default())
    }

    #[track_caller]
    pub fn with(d_model: usize, nhead: usize, options: TransformerOptions) -> TransformerDecoderLayer {
        let norm = || options.norm(d_model);
        TransformerDecoderLayer {
            self_attn: options.attention(d_model, nhead),
            multihead_attn: options.attention(d_model, nhead),
            feed_forward: FeedForward::new(d_model, &options),
            norms: [norm(), norm(), norm()],
            dropouts: [0; 3].map(|_| Dropout::new(options.dropout)),
            sizes: (d_model, nhead),
            options,
        }
    }

    /// What is made of `tgt` with the encoder's `memory`; the masks are those of `tgt` and `memory`.
    #[track_caller]
    pub fn forward(&self, tgt: &Tensor, memory: &Tensor, masks: &TransformerMasks) -> Tensor {
        at_caller(|| {
            let first = self.options.norm_first;
            let x = added(tgt, &self.norms[0], first, &mut |x| {
                dropped(&self.dropouts[0], self.self_attn.forward_with(x, x, x, masks.of_tgt()).0)
            });
            let x = added(&x, &self.norms[1], first, &mut |x| {
                let found = self.multihead_attn.forward_with(x, memory, memory, masks.of_memory()).0;
                dropped(&self.dropouts[1], found)
            });
            added(&x, &self.norms[2], first, &mut |x| dropped(&self.dropouts[2], self.feed_forward.forward(x)))
        })
    }
}

impl Module for TransformerDecoderLayer {
    fn parts(&self, p: &mut Parts) {
        self.options.told(p);
        p.add("self_attn", &self.self_attn);
        p.add("multihead_attn", &self.multihead_attn);
        self.feed_forward.parts(p);
        numbered(p, "norm", &self.norms);
        numbered(p, "dropout", &self.dropouts);
    }
}

/// Encoder layers one after the other (`torch.nn.TransformerEncoder`): copies of one, and a norm at the end.
///
/// ```
/// use xlazy::prelude::*;
/// let encoder = nn::TransformerEncoder::new(nn::TransformerEncoderLayer::new(8, 2), 2, None);
/// assert_eq!(encoder.forward(&Tensor::ones([5, 3, 8])).shape(), [5, 3, 8]);
/// ```
pub struct TransformerEncoder {
    pub layers: Vec<TransformerEncoderLayer>,
    pub norm: Option<LayerNorm>,
}

/// Decoder layers one after the other (`torch.nn.TransformerDecoder`): copies of one, and a norm at the end.
///
/// ```
/// use xlazy::prelude::*;
/// let decoder = nn::TransformerDecoder::new(nn::TransformerDecoderLayer::new(8, 2), 2, None);
/// let (target, memory) = (Tensor::ones([4, 3, 8]), Tensor::ones([5, 3, 8]));
/// assert_eq!(decoder.forward(&target, &memory, &Default::default()).shape(), [4, 3, 8]);
/// ```
pub struct TransformerDecoder {
    pub layers: Vec<TransformerDecoderLayer>,
    pub norm: Option<LayerNorm>,
}

macro_rules! stacks {
    ($($name:ident, $layer:ident;)*) => {$(
        impl $name {
            /// As many layers as said, all of them beginning with the weights of `layer`, as torch's copies do.
            #[track_caller]
            pub fn new(layer: $layer, num_layers: usize, norm: Option<LayerNorm>) -> $name {
                let (d_model, nhead) = layer.sizes;
                let same = |_| $layer::with(d_model, nhead, layer.options.clone());
                let layers: Vec<$layer> = (0..num_layers).map(same).collect();
                layers.iter().for_each(|copy| begin_as(copy, &layer));
                $name { layers, norm }
            }
        }
    )*};
}
stacks! { TransformerEncoder, TransformerEncoderLayer; TransformerDecoder, TransformerDecoderLayer; }

impl TransformerEncoder {
    /// With masks: those of `src`.
    #[track_caller]
    pub fn forward_with(&self, src: &Tensor, masks: &TransformerMasks) -> Tensor {
        at_caller(|| {
            let x = self.layers.iter().fold(src.clone(), |x, layer| layer.forward_with(&x, masks));
            self.norm.as_ref().map_or(x.clone(), |norm| norm.forward(&x))
        })
    }
}

impl Module for TransformerEncoder {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.forward_with(x, &TransformerMasks::default())
    }

    fn parts(&self, p: &mut Parts) {
        p.add("layers", &self.layers);
        p.add("norm", &self.norm);
    }
}

impl TransformerDecoder {
    /// What is made of `tgt` with the encoder's `memory`.
    #[track_caller]
    pub fn forward(&self, tgt: &Tensor, memory: &Tensor, masks: &TransformerMasks) -> Tensor {
        at_caller(|| {
            let x = self.layers.iter().fold(tgt.clone(), |x, layer| layer.forward(&x, memory, masks));
            self.norm.as_ref().map_or(x.clone(), |norm| norm.forward(&x))
        })
    }
}

impl Module for TransformerDecoder {
    fn parts(&self, p: &mut Parts) {
        p.add("layers", &self.layers);
        p.add("norm", &self.norm);
    }
}

/// An encoder, and a decoder that attends to what it gives (`torch.nn.Transformer`), each with a norm at its end.
///
/// ```
/// use xlazy::prelude::*;
/// let options = nn::TransformerOptions { dim_feedforward: 32, batch_first: true, ..Default::default() };
/// let model = nn::Transformer::with(16, 4, 2, 2, options);
/// let masks = nn::TransformerMasks { tgt_mask: Some(nn::Transformer::generate_square_subsequent_mask(3)), ..Default::default() };
/// assert_eq!(model.forward(&Tensor::ones([2, 5, 16]), &Tensor::ones([2, 3, 16]), &masks).shape(), [2, 3, 16]);
/// ```
pub struct Transformer {
    pub encoder: TransformerEncoder,
    pub decoder: TransformerDecoder,
}

impl Transformer {
    /// 6 layers each, as torch's default.
    #[track_caller]
    pub fn new(d_model: usize, nhead: usize) -> Transformer {
        Transformer::with(d_model, nhead, 6, 6, TransformerOptions::default())
    }

    #[track_caller]
    pub fn with(
        d_model: usize,
        nhead: usize,
        num_encoder_layers: usize,
        num_decoder_layers: usize,
        options: TransformerOptions,
    ) -> Transformer {
        let (norm, o) = (|| Some(options.norm(d_model)), &options);
        let encoder = (0..num_encoder_layers).map(|_| TransformerEncoderLayer::with(d_model, nhead, o.clone()));
        let decoder = (0..num_decoder_layers).map(|_| TransformerDecoderLayer::with(d_model, nhead, o.clone()));
        let model = Transformer {
            encoder: TransformerEncoder { layers: encoder.collect(), norm: norm() },
            decoder: TransformerDecoder { layers: decoder.collect(), norm: norm() },
        };
        // as torch, every matrix is drawn after Glorot
        for p in model.parameters().iter().filter(|p| p.dim() > 1) {
            p.set_data(init::xavier_uniform(p.shape()).detach());
        }
        model
    }

    /// What is made of `tgt` when `src` has been read.
    #[track_caller]
    pub fn forward(&self, src: &Tensor, tgt: &Tensor, masks: &TransformerMasks) -> Tensor {
        at_caller(|| self.decoder.forward(tgt, &self.encoder.forward_with(src, masks), masks))
    }

    /// -infinity where a key comes after the query, 0 elsewhere.
    #[track_caller]
    pub fn generate_square_subsequent_mask(size: usize) -> Tensor {
        Tensor::full([size, size], f64::NEG_INFINITY).triu(1)
    }
}

impl Module for Transformer {
    fn parts(&self, p: &mut Parts) {
        p.add("encoder", &self.encoder);
        p.add("decoder", &self.decoder);
    }
}
