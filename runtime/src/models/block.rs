//! The layer that BERT, its relatives and ViT have in common, under the names of each.
use crate::AttentionOptions;
use crate::nn::{Activation, Dropout, LayerNorm, Linear, Module, Parts, init};
use crate::tensor::Tensor;

/// What the parts of a layer are called.
pub(super) struct Names {
    pub query: &'static str,
    pub key: &'static str,
    pub value: &'static str,
    pub attention: &'static str,
    pub attention_norm: &'static str,
    pub up: &'static str,
    pub down: &'static str,
    pub down_norm: &'static str,
    /// Whether norms come before attention and linear layers.
    pub norm_first: bool,
}

/// The sizes of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub hidden: usize,
    pub heads: usize,
    pub inner: usize,
    pub act: Activation,
    pub eps: f64,
    pub dropout: f64,
    pub attention_dropout: f64,
    /// The deviation of weights to begin with.
    pub std: f64,
}

/// A linear layer as transformers begins it: normal weights, no bias.
pub(super) fn linear(from: usize, to: usize, std: f64) -> Linear {
    Linear { weight: init::normal([to, from], std), bias: Some(init::zeros([to])) }
}

/// With a rate of zero there is nothing to draw.
#[track_caller]
pub(super) fn dropped(dropout: &Dropout, x: Tensor) -> Tensor {
    if dropout.p == 0.0 { x } else { dropout.forward(&x) }
}

pub(super) struct Layer {
    names: &'static Names,
    heads: usize,
    act: Activation,
    query: Linear,
    key: Linear,
    value: Linear,
    attention: Linear,
    up: Linear,
    down: Linear,
    norms: [LayerNorm; 2],
    dropout: Dropout,
    /// Of the weights of keys.
    attention_dropout: Dropout,
}

impl Layer {
    pub(super) fn new(names: &'static Names, s: Sizes) -> Layer {
        let square = || linear(s.hidden, s.hidden, s.std);
        Layer {
            names,
            heads: s.heads,
            act: s.act,
            query: square(),
            key: square(),
            value: square(),
            attention: square(),
            up: linear(s.hidden, s.inner, s.std),
            down: linear(s.inner, s.hidden, s.std),
            norms: [LayerNorm::with(s.hidden, s.eps), LayerNorm::with(s.hidden, s.eps)],
            dropout: Dropout::new(s.dropout),
            attention_dropout: Dropout::new(s.attention_dropout),
        }
    }

    /// `mask` is added to the scores.
    #[track_caller]
    pub(super) fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let added = |x: &Tensor, norm: &LayerNorm, block: &dyn Fn(&Tensor) -> Tensor| match self.names.norm_first {
            true => x + dropped(&self.dropout, block(&norm.forward(x))),
            false => norm.forward(&(x + dropped(&self.dropout, block(x)))),
        };
        let x = added(x, &self.norms[0], &|x| self.attend(x, mask));
        added(&x, &self.norms[1], &|x| self.down.forward(&self.act.of(&self.up.forward(x))))
    }

    #[track_caller]
    fn attend(&self, x: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let s = x.shape();
        let heads = |l: &Linear| l.forward(x).reshape([s[0], s[1], self.heads, s[2] / self.heads]).transpose(1, 2);
        let (q, k, v) = (heads(&self.query), heads(&self.key), heads(&self.value));
        let y = match self.attention_dropout.p > 0.0 {
            false => q.scaled_dot_product_attention(
                &k,
                &v,
                AttentionOptions { attn_mask: mask.cloned(), ..Default::default() },
            ),
            true => {
                let scores = (q * (1.0 / ((s[2] / self.heads) as f64).sqrt())).matmul(&k.transpose(-1, -2));
                let scores = mask.map_or(scores.clone(), |m| scores + m);
                self.attention_dropout.forward(&scores.softmax(-1)).matmul(&v)
            }
        };
        self.attention.forward(&y.transpose(1, 2).reshape(&s))
    }
}

impl Module for Layer {
    fn parts(&self, p: &mut Parts) {
        let n = self.names;
        for (name, layer) in [
            (n.query, &self.query),
            (n.key, &self.key),
            (n.value, &self.value),
            (n.attention, &self.attention),
            (n.up, &self.up),
            (n.down, &self.down),
        ] {
            p.add(name, layer);
        }
        p.add(n.attention_norm, &self.norms[0]);
        p.add(n.down_norm, &self.norms[1]);
        p.add("dropout", &self.dropout);
        p.add("attention_dropout", &self.attention_dropout);
    }
}
