//! Attention of many heads.
use super::init;
use super::linear::Linear;
use super::module::{Module, Parts, Training, at_caller};
use crate::tensor::{Tensor, refuse};
use crate::{AttentionOptions, DType, MultiHeadOptions};

/// What torch's attention of many heads takes besides its sizes; the defaults are torch's.
#[derive(Clone, Debug)]
pub struct MultiheadAttentionOptions {
    /// Of the weights of keys, while training.
    pub dropout: f64,
    pub bias: bool,
    /// One more key and value for all, which are learnt.
    pub add_bias_kv: bool,
    /// One more key and value, zero.
    pub add_zero_attn: bool,
    /// The size of keys, where it is not the queries'.
    pub kdim: Option<usize>,
    /// The size of values, where it is not the queries'.
    pub vdim: Option<usize>,
    /// [batch, length, size] in place of [length, batch, size].
    pub batch_first: bool,
}

impl Default for MultiheadAttentionOptions {
    fn default() -> MultiheadAttentionOptions {
        MultiheadAttentionOptions {
            dropout: 0.0,
            bias: true,
            add_bias_kv: false,
            add_zero_attn: false,
            kdim: None,
            vdim: None,
            batch_first: false,
        }
    }
}

/// What must not be looked at, as torch's `MultiheadAttention.forward` takes it.
#[derive(Clone, Debug, Default)]
pub struct AttentionMasks {
    /// (batch, keys): true where a key counts for nothing, or numbers added to the scores.
    pub key_padding_mask: Option<Tensor>,
    /// (queries, keys), or (batch · heads, queries, keys): true where a key must not be looked at, or numbers added.
    pub attn_mask: Option<Tensor>,
    /// Hide the keys that come after a query.
    pub is_causal: bool,
    /// The weights of each head, in place of their mean (`average_attn_weights=False`).
    pub per_head: bool,
}

/// Attention in several heads side by side (`torch.nn.MultiheadAttention`). [`MultiheadAttention::new`] takes the batch first, as
/// with `batch_first=True`; [`MultiheadAttention::with`] has torch's defaults.
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::MultiheadAttention::new(16, 4);
/// assert_eq!(layer.forward(&Tensor::ones([2, 5, 16])).shape(), [2, 5, 16]);
/// let (q, kv) = (Tensor::ones([2, 5, 16]), Tensor::ones([2, 7, 16]));
/// let (y, weights) = layer.forward_with(&q, &kv, &kv, nn::AttentionMasks::default());
/// assert_eq!((y.shape(), weights.shape()), (Shape::new(&[2, 5, 16]), Shape::new(&[2, 5, 7])));
/// ```
pub struct MultiheadAttention {
    /// Query, key and value rows, [3 · embed, embed]; none where keys or values are of another size.
    pub in_proj_weight: Option<Tensor>,
    /// The weights of query, key and value where they are of several sizes (`q_proj_weight` and so on).
    pub separate_weights: Option<[Tensor; 3]>,
    /// [3 · embed]
    pub in_proj_bias: Option<Tensor>,
    /// One more key and value (`bias_k`, `bias_v`).
    pub bias_kv: Option<[Tensor; 2]>,
    pub out_proj: Linear,
    pub num_heads: usize,
    options: MultiheadAttentionOptions,
    training: Training,
}

impl MultiheadAttention {
    #[track_caller]
    pub fn new(embed_dim: usize, num_heads: usize) -> MultiheadAttention {
        let options = MultiheadAttentionOptions { batch_first: true, ..Default::default() };
        MultiheadAttention::with(embed_dim, num_heads, options)
    }

    #[track_caller]
    pub fn with(embed_dim: usize, num_heads: usize, options: MultiheadAttentionOptions) -> MultiheadAttention {
        if num_heads == 0 || !embed_dim.is_multiple_of(num_heads) {
            let why = format!("embed_dim {embed_dim} does not divide into {num_heads} heads");
            refuse("MultiheadAttention", &[], why);
        }
        let mut out_proj = Linear::without_bias(embed_dim, embed_dim);
        out_proj.bias = options.bias.then(|| init::zeros([embed_dim]));
        let (kdim, vdim) = (options.kdim.unwrap_or(embed_dim), options.vdim.unwrap_or(embed_dim));
        let same = kdim == embed_dim && vdim == embed_dim;
        let one = |from: usize| init::xavier_uniform([embed_dim, from]);
        MultiheadAttention {
            in_proj_weight: same.then(|| init::xavier_uniform([3 * embed_dim, embed_dim])),
            separate_weights: (!same).then(|| [one(embed_dim), one(kdim), one(vdim)]),
            in_proj_bias: options.bias.then(|| init::zeros([3 * embed_dim])),
            bias_kv: options.add_bias_kv.then(|| {
                // xavier_normal_ of [1, 1, embed]
                let one = || init::normal([1, 1, embed_dim], (2.0 / (2 * embed_dim) as f64).sqrt());
                [one(), one()]
            }),
            out_proj,
            num_heads,
            options,
            training: Training::default(),
        }
    }

    /// What the queries [n, length, embed] find at the keys, of the values [n, source, embed], with the masks of
    /// [`Tensor::scaled_dot_product_attention`]: true where a key may be looked at.
    #[track_caller]
    pub fn attend(&self, query: &Tensor, key: &Tensor, value: &Tensor, options: AttentionOptions) -> Tensor {
        at_caller(|| {
            let weights = match (&self.in_proj_weight, &self.separate_weights) {
                (Some(all), _) => all.chunk(3, 0),
                (None, Some(each)) => each.to_vec(),
                (None, None) => refuse("MultiheadAttention", &[query], "has no weights of its input"),
            };
            let biases = self.in_proj_bias.as_ref().map(|b| b.chunk(3, 0));
            let heads = self.num_heads as i64;
            let projected = |x: &Tensor, i: usize| {
                let y = x.linear(&weights[i], biases.as_ref().map(|b| &b[i]));
                let shape = y.shape();
                y.reshape([shape[0] as i64, shape[1] as i64, heads, -1]).transpose(1, 2)
            };
            let (q, k, v) = (projected(query, 0), projected(key, 1), projected(value, 2));
            let y = q.scaled_dot_product_attention(&k, &v, options).transpose(1, 2);
            self.out_proj.forward(&y.reshape(query.shape()))
        })
    }

    /// What the queries find, and the weights of the keys, as torch's `forward`: masks are true where a key must not be looked at.
    /// Weights that nobody looks at cost nothing.
    #[track_caller]
    pub fn forward_with(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        masks: AttentionMasks,
    ) -> (Tensor, Tensor) {
        at_caller(|| {
            let turned = self.options.batch_first && query.dim() == 3;
            let along = |t: &Tensor| if turned { t.transpose(0, 1) } else { t.clone() };
            let (q, k, v) = (along(query), along(key), along(value));
            let attn_mask = match (masks.attn_mask, masks.is_causal) {
                (Some(mask), _) => Some(mask),
                (None, true) => Some(later(q.size(0), k.size(0))),
                (None, false) => None,
            };
            let options = MultiHeadOptions {
                in_proj_weight: self.in_proj_weight.clone(),
                separate_weights: self.separate_weights.clone(),
                in_proj_bias: self.in_proj_bias.clone(),
                bias_kv: self.bias_kv.clone(),
                add_zero_attn: self.options.add_zero_attn,
                dropout_p: self.options.dropout,
                out_proj_weight: Some(self.out_proj.weight.clone()),
                out_proj_bias: self.out_proj.bias.clone(),
                training: self.options.dropout > 0.0 && self.training.on(),
                key_padding_mask: masks.key_padding_mask,
                attn_mask,
                average_attn_weights: !masks.per_head,
            };
            let (y, weights) = q.multi_head_attention(&k, &v, self.num_heads, options);
            (along(&y), weights)
        })
    }
}

/// True where a key comes after the query.
#[track_caller]
pub(crate) fn later(queries: usize, keys: usize) -> Tensor {
    Tensor::ones([queries, keys]).to(DType::Bool).triu(1)
}

impl Module for MultiheadAttention {
    /// Self-attention.
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.to_itself(x)
    }

    fn parts(&self, p: &mut Parts) {
        let (o, usual) = (&self.options, MultiheadAttentionOptions::default());
        p.setting("num_heads", &self.num_heads);
        p.unusual("dropout", &o.dropout, &usual.dropout);
        p.unusual("add_zero_attn", &o.add_zero_attn, &usual.add_zero_attn);
        p.unusual("batch_first", &o.batch_first, &usual.batch_first);
        p.add("in_proj_weight", &self.in_proj_weight);
        if let Some([q, k, v]) = &self.separate_weights {
            p.add("q_proj_weight", q);
            p.add("k_proj_weight", k);
            p.add("v_proj_weight", v);
        }
        p.add("in_proj_bias", &self.in_proj_bias);
        if let Some([k, v]) = &self.bias_kv {
            p.add("bias_k", k);
            p.add("bias_v", v);
        }
        p.add("out_proj", &self.out_proj);
        p.training(&self.training);
    }
}

impl MultiheadAttention {
    #[track_caller]
    fn to_itself(&self, x: &Tensor) -> Tensor {
        let o = &self.options;
        let plain = self.in_proj_weight.is_some() && self.bias_kv.is_none() && !o.add_zero_attn;
        match plain && o.batch_first && o.dropout == 0.0 && x.dim() == 3 {
            true => self.attend(x, x, x, AttentionOptions::default()),
            false => self.forward_with(x, x, x, AttentionMasks::default()).0,
        }
    }
}
