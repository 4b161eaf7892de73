//! Attention of several heads with its projections, made of other ops.
use super::cat;
use crate::tensor::{Tensor, called, refuse};

/// The weights of [`Tensor::multi_head_attention`], and what torch's takes besides.
#[derive(Clone, Debug, Default)]
pub struct MultiHeadOptions {
    /// The projections of query, key and value, one above the other: (3 · size, size).
    pub in_proj_weight: Option<Tensor>,
    /// The same one by one, where keys and values are of other sizes.
    pub separate_weights: Option<[Tensor; 3]>,
    pub in_proj_bias: Option<Tensor>,
    /// One more key and value for all.
    pub bias_kv: Option<[Tensor; 2]>,
    /// One more key and value, zero.
    pub add_zero_attn: bool,
    pub dropout_p: f64,
    pub out_proj_weight: Option<Tensor>,
    pub out_proj_bias: Option<Tensor>,
    pub training: bool,
    /// (batch, keys): true where a key counts for nothing.
    pub key_padding_mask: Option<Tensor>,
    /// (queries, keys), or one for each head of each example: true where a key must not be looked at, or numbers added.
    pub attn_mask: Option<Tensor>,
    /// One matrix of weights for all heads, their mean, or one for each.
    pub average_attn_weights: bool,
}

// What is added to the scores: -infinity where a mask of bools is true.
#[track_caller]
fn added(mask: &Tensor, like: &Tensor) -> Tensor {
    match mask.dtype() {
        crate::DType::Bool => Tensor::zeros(mask.shape()).to(like.dtype()).masked_fill(mask, f64::NEG_INFINITY),
        _ => mask.clone(),
    }
}

impl Tensor {
    /// Attention of `num_heads` heads: query, key and value (length, batch, size), or without the batch, are projected, looked
    /// up head by head, and joined by another projection. Gives the result and the weights of the keys
    /// (`torch.nn.functional.multi_head_attention_forward`).
    ///
    /// ```
    /// use xlazy::{MultiHeadOptions, prelude::*};
    /// let x = Tensor::ones([3, 2, 4]);
    /// let options = MultiHeadOptions {
    ///     in_proj_weight: Some(Tensor::ones([12, 4])),
    ///     out_proj_weight: Some(Tensor::ones([4, 4])),
    ///     ..Default::default()
    /// };
    /// let (y, weights) = x.multi_head_attention(&x, &x, 2, options);
    /// assert_eq!(y.shape(), [3, 2, 4]);
    /// assert_eq!(weights.shape(), [2, 2, 3, 3]);
    /// ```
    #[track_caller]
    pub fn multi_head_attention(
        &self,
        key: &Tensor,
        value: &Tensor,
        num_heads: usize,
        options: MultiHeadOptions,
    ) -> (Tensor, Tensor) {
        let _call = called("multi_head_attention", [self, key, value]);
        let op = "multi_head_attention";
        if !(2..4).contains(&self.dim()) || key.dim() != self.dim() || value.dim() != self.dim() {
            refuse(op, &[self, key, value], "needs (length, batch, size), or no batch");
        }
        if self.dim() == 2 {
            let batch = |t: &Tensor| t.unsqueeze(1);
            let masked = options.key_padding_mask.as_ref().map(|m| m.unsqueeze(0));
            let options = MultiHeadOptions { key_padding_mask: masked, ..options };
            let (y, w) = batch(self).multi_head_attention(&batch(key), &batch(value), num_heads, options);
            return (y.squeeze_dim(1), w.squeeze_dim(0));
        }
        let [length, batch, size] = [0, 1, 2].map(|d| self.size(d));
        if num_heads == 0 || !size.is_multiple_of(num_heads) {
            refuse(op, &[self], format!("a size of {size} does not divide into {num_heads} heads"));
        }
        let head = size / num_heads;
        let weights: Vec<Tensor> = match (&options.in_proj_weight, &options.separate_weights) {
            (_, Some(each)) => each.to_vec(),
            (Some(all), None) => all.chunk(3, 0),
            (None, None) => refuse(op, &[self], "needs the projections' weights"),
        };
        let biases: Vec<Option<Tensor>> = match &options.in_proj_bias {
            Some(all) => all.chunk(3, 0).into_iter().map(Some).collect(),
            None => vec![None; 3],
        };
        let project = |x: &Tensor, i: usize| x.linear(&weights[i], biases[i].as_ref());
        let (q, mut k, mut v) = (project(self, 0), project(key, 1), project(value, 2));
        if let Some([bk, bv]) = &options.bias_kv {
            let all = |b: &Tensor| b.reshape([1, 1, size]).expand([1, batch, size]);
            (k, v) = (cat(&[&k, &all(bk)], 0), cat(&[&v, &all(bv)], 0));
        }
        if options.add_zero_attn {
            let none = Tensor::zeros([1, batch, size]).to(k.dtype());
            (k, v) = (cat(&[&k, &none], 0), cat(&[&v, &none], 0));
        }
        let keys = k.size(0);
        // (batch, heads, length, head)
        let heads = |t: &Tensor, n: usize| t.reshape([n, batch, num_heads, head]).permute([1, 2, 0, 3]);
        let (q, k, v) = (heads(&q, length), heads(&k, keys), heads(&v, keys));
        let mut scores = (q * (1.0 / (head as f64).sqrt())).matmul(&k.transpose(-1, -2));
        // keys that were put in are looked at by all
        let widened = |m: Tensor| {
            let more = keys - m.size(-1);
            m.pad([0, more as i64], 0.0)
        };
        if let Some(mask) = &options.attn_mask {
            let mask = widened(added(mask, &scores));
            scores = match mask.dim() {
                3 => scores + mask.reshape([batch, num_heads, length, keys]),
                _ => scores + mask,
            };
        }
        if let Some(mask) = &options.key_padding_mask {
            scores += widened(added(mask, &scores)).reshape([batch, 1, 1, keys]);
        }
        let weights = scores.softmax(-1).dropout(options.dropout_p, options.training);
        let joined = weights.matmul(&v).permute([2, 0, 1, 3]).reshape([length, batch, size]);
        let y = match &options.out_proj_weight {
            Some(w) => joined.linear(w, options.out_proj_bias.as_ref()),
            None => joined,
        };
        (y, if options.average_attn_weights { weights.mean_dim(1, false) } else { weights })
    }
}
