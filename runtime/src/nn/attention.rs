//! Attention of many heads.
use super::init;
use super::linear::Linear;
use super::module::{Module, Parts, at_caller};
use crate::AttentionOptions;
use crate::tensor::Tensor;

/// Attention in several heads side by side (`torch.nn.MultiheadAttention` with `batch_first=True`).
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::MultiheadAttention::new(16, 4);
/// assert_eq!(layer.forward(&Tensor::ones([2, 5, 16])).shape(), [2, 5, 16]);
/// ```
pub struct MultiheadAttention {
    /// Query, key and value rows, [3 · embed, embed]
    pub in_proj_weight: Tensor,
    /// [3 · embed]
    pub in_proj_bias: Tensor,
    pub out_proj: Linear,
    pub num_heads: usize,
}

impl MultiheadAttention {
    #[track_caller]
    pub fn new(embed_dim: usize, num_heads: usize) -> MultiheadAttention {
        let mut out_proj = Linear::without_bias(embed_dim, embed_dim);
        out_proj.bias = Some(init::zeros([embed_dim]));
        MultiheadAttention {
            in_proj_weight: init::xavier_uniform([3 * embed_dim, embed_dim]),
            in_proj_bias: init::zeros([3 * embed_dim]),
            out_proj,
            num_heads,
        }
    }

    /// What the queries [n, length, embed] find at the keys, of the values [n, source, embed].
    #[track_caller]
    pub fn attend(&self, query: &Tensor, key: &Tensor, value: &Tensor, options: AttentionOptions) -> Tensor {
        at_caller(|| {
            let (weights, biases) = (self.in_proj_weight.chunk(3, 0), self.in_proj_bias.chunk(3, 0));
            let heads = self.num_heads as i64;
            let projected = |x: &Tensor, i: usize| {
                let y = x.matmul(&weights[i].t()) + &biases[i];
                let shape = y.shape();
                y.reshape([shape[0] as i64, shape[1] as i64, heads, -1]).transpose(1, 2)
            };
            let (q, k, v) = (projected(query, 0), projected(key, 1), projected(value, 2));
            let y = q.scaled_dot_product_attention(&k, &v, options).transpose(1, 2);
            self.out_proj.forward(&y.reshape(query.shape()))
        })
    }
}

impl Module for MultiheadAttention {
    /// Self-attention.
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.attend(x, x, x, AttentionOptions::default())
    }

    fn parts(&self, p: &mut Parts) {
        p.add("in_proj_weight", &self.in_proj_weight);
        p.add("in_proj_bias", &self.in_proj_bias);
        p.add("out_proj", &self.out_proj);
    }
}
