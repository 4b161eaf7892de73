//! GPT-2, as transformers' `GPT2LMHeadModel`, and what it writes with a cache of a fixed size.
use super::block::dropped;
use super::config::{Parsed, Read, Settings, readers};
use crate::nn::attention::later;
use crate::nn::module::at_caller;
use crate::nn::{Activation, Dropout, Embedding, LayerNorm, Module, Parts, Published, init};
use crate::tensor::{Tensor, no_grad, refuse};
use crate::{AttentionOptions, fori_loop, where_};

/// transformers' `GPT2Config`, by its names; the defaults are `gpt2`'s.
#[derive(Clone, Debug)]
pub struct Gpt2Config {
    pub vocab_size: usize,
    pub n_positions: usize,
    pub n_embd: usize,
    pub n_layer: usize,
    pub n_head: usize,
    /// How wide the linear layers between are; four times `n_embd` where it does not say.
    pub n_inner: Option<usize>,
    pub activation_function: Activation,
    pub resid_pdrop: f64,
    pub embd_pdrop: f64,
    pub attn_pdrop: f64,
    pub layer_norm_epsilon: f64,
    pub initializer_range: f64,
}

impl Default for Gpt2Config {
    fn default() -> Gpt2Config {
        Gpt2Config {
            vocab_size: 50257,
            n_positions: 1024,
            n_embd: 768,
            n_layer: 12,
            n_head: 12,
            n_inner: None,
            activation_function: Activation::GELUTanh,
            resid_pdrop: 0.1,
            embd_pdrop: 0.1,
            attn_pdrop: 0.1,
            layer_norm_epsilon: 1e-5,
            initializer_range: 0.02,
        }
    }
}

readers!(Gpt2Config);

impl Read for Gpt2Config {
    fn read(s: &mut Settings) -> Parsed<Gpt2Config> {
        s.model(&["gpt2"])?;
        // the scores are products with the words' vectors: a file of either has all
        s.architecture("GPT2", &[("LMHeadModel", ()), ("Model", ())])?;
        s.must("scale_attn_weights", true)?;
        s.must("scale_attn_by_inverse_layer_idx", false)?;
        s.must("tie_word_embeddings", true)?;
        // a precision that float32 has anyway
        s.skip(&["reorder_and_upcast_attn", "n_ctx"]);
        s.skip(&["summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type"]);
        s.skip(&["summary_use_proj"]);
        let default = Gpt2Config::default();
        Ok(Gpt2Config {
            vocab_size: s.size("vocab_size", default.vocab_size)?,
            n_positions: s.size("n_positions", default.n_positions)?,
            n_embd: s.size("n_embd", default.n_embd)?,
            n_layer: s.size("n_layer", default.n_layer)?,
            n_head: s.size("n_head", default.n_head)?,
            n_inner: s.optional("n_inner")?,
            activation_function: s.activation("activation_function", default.activation_function)?,
            resid_pdrop: s.float("resid_pdrop", default.resid_pdrop)?,
            embd_pdrop: s.float("embd_pdrop", default.embd_pdrop)?,
            attn_pdrop: s.float("attn_pdrop", default.attn_pdrop)?,
            layer_norm_epsilon: s.float("layer_norm_epsilon", default.layer_norm_epsilon)?,
            initializer_range: s.float("initializer_range", default.initializer_range)?,
        })
    }
}

/// Masks of positions were once buffers.
static OTHER_NAMES: &[(&str, &[&str])] = &[("h.*.attn.bias", &[]), ("h.*.attn.masked_bias", &[])];

static SIZES: &[(&str, &[&str])] = &[
    ("wte.weight", &["vocab_size", "n_embd"]),
    ("lm_head.weight", &["vocab_size", "n_embd"]),
    ("wpe.weight", &["n_positions", "n_embd"]),
    ("*mlp.c_fc.weight", &["n_embd", "n_inner"]),
    ("*mlp.c_fc.bias", &["n_inner"]),
    ("*mlp.c_proj.weight", &["n_inner", "n_embd"]),
    ("*", &["n_embd", "n_embd"]),
];

/// A linear layer whose weight is [in, out], as transformers' `Conv1D`.
struct Turned {
    weight: Tensor,
    bias: Tensor,
}

impl Turned {
    fn new(from: usize, to: usize, std: f64) -> Turned {
        Turned { weight: init::normal([from, to], std), bias: init::zeros([to]) }
    }
}

impl Module for Turned {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.matmul(&self.weight) + &self.bias
    }

    fn parts(&self, p: &mut Parts) {
        p.add("weight", &self.weight);
        p.add("bias", &self.bias);
    }
}

struct Layer {
    ln_1: LayerNorm,
    c_attn: Turned,
    attn_proj: Turned,
    ln_2: LayerNorm,
    c_fc: Turned,
    mlp_proj: Turned,
    heads: usize,
    act: Activation,
    attn_dropout: Dropout,
    resid_dropout: Dropout,
}

impl Layer {
    fn new(c: &Gpt2Config) -> Layer {
        let (d, std) = (c.n_embd, c.initializer_range);
        let inner = c.n_inner.unwrap_or(4 * d);
        // what is added to the residual is smaller, by the number of such layers
        let added = std / (2.0 * c.n_layer as f64).sqrt();
        let norm = || LayerNorm::with(d, c.layer_norm_epsilon);
        Layer {
            ln_1: norm(),
            c_attn: Turned::new(d, 3 * d, std),
            attn_proj: Turned::new(d, d, added),
            ln_2: norm(),
            c_fc: Turned::new(d, inner, std),
            mlp_proj: Turned::new(inner, d, added),
            heads: c.n_head,
            act: c.activation_function,
            attn_dropout: Dropout::new(c.attn_pdrop),
            resid_dropout: Dropout::new(c.resid_pdrop),
        }
    }

    /// Query, keys and values, each [n, heads, length, size].
    #[track_caller]
    fn projected(&self, x: &Tensor) -> Vec<Tensor> {
        let (n, length, d) = (x.size(0), x.size(1), x.size(2));
        let heads = |t: &Tensor| t.reshape([n, length, self.heads, d / self.heads]).transpose(1, 2);
        self.c_attn.forward(&self.ln_1.forward(x)).chunk(3, -1).iter().map(heads).collect()
    }

    /// What comes behind the look at the keys.
    #[track_caller]
    fn behind(&self, x: &Tensor, seen: &Tensor) -> Tensor {
        let x = x + dropped(&self.resid_dropout, self.attn_proj.forward(&seen.transpose(1, 2).reshape(x.shape())));
        let y = self.mlp_proj.forward(&self.act.of(&self.c_fc.forward(&self.ln_2.forward(&x))));
        x + dropped(&self.resid_dropout, y)
    }

    /// `mask` is true where a key must not be looked at.
    #[track_caller]
    fn forward(&self, x: &Tensor, mask: &Tensor) -> Tensor {
        let qkv = self.projected(x);
        let seen = match self.attn_dropout.p > 0.0 {
            false => {
                let options = AttentionOptions { attn_mask: Some(mask.logical_not()), ..Default::default() };
                qkv[0].scaled_dot_product_attention(&qkv[1], &qkv[2], options)
            }
            true => {
                let scores = (&qkv[0] * (1.0 / (qkv[0].size(-1) as f64).sqrt())).matmul(&qkv[1].transpose(-1, -2));
                let weights = scores.masked_fill(mask, f64::NEG_INFINITY).softmax(-1);
                self.attn_dropout.forward(&weights).matmul(&qkv[2])
            }
        };
        self.behind(x, &seen)
    }
}

impl Module for Layer {
    fn parts(&self, p: &mut Parts) {
        p.add("ln_1", &self.ln_1);
        p.add("attn.c_attn", &self.c_attn);
        p.add("attn.c_proj", &self.attn_proj);
        p.add("attn.attn_dropout", &self.attn_dropout);
        p.add("ln_2", &self.ln_2);
        p.add("mlp.c_fc", &self.c_fc);
        p.add("mlp.c_proj", &self.mlp_proj);
        p.add("mlp.dropout", &self.resid_dropout);
    }
}

/// A decoder over words and places, whose scores are products with the words' own vectors.
///
/// ```
/// use xlazy::prelude::*;
/// use xlazy::models::{Gpt2, Gpt2Config};
/// let config = Gpt2Config { vocab_size: 40, n_positions: 16, n_embd: 8, n_layer: 2, n_head: 2, ..Default::default() };
/// let model = Gpt2::new(&config);
/// model.eval();
/// assert_eq!(model.forward(&tensor([[1, 2, 3]])).shape(), [1, 3, 40]);
/// assert_eq!(model.generate(&tensor([[1, 2, 3]]), 5).shape(), [1, 8]);
/// ```
pub struct Gpt2 {
    wte: Embedding,
    wpe: Embedding,
    layers: Vec<Layer>,
    ln_f: LayerNorm,
    dropout: Dropout,
    heads: usize,
}

impl Gpt2 {
    #[track_caller]
    pub fn new(c: &Gpt2Config) -> Gpt2 {
        at_caller(|| {
            let table = |rows: usize| Embedding {
                weight: init::normal([rows, c.n_embd], c.initializer_range),
                padding_idx: None,
            };
            Gpt2 {
                wte: table(c.vocab_size),
                wpe: table(c.n_positions),
                layers: (0..c.n_layer).map(|_| Layer::new(c)).collect(),
                ln_f: LayerNorm::with(c.n_embd, c.layer_norm_epsilon),
                dropout: Dropout::new(c.embd_pdrop),
                heads: c.n_head,
            }
        })
    }

    #[track_caller]
    fn run(&self, ids: &Tensor) -> Tensor {
        at_caller(|| {
            let length = self.fits(ids, 0);
            let x = self.wte.forward(ids) + self.wpe.weight.narrow(0, 0, length as i64);
            let mask = later(length, length);
            let x = self.layers.iter().fold(dropped(&self.dropout, x), |x, layer| layer.forward(&x, &mask));
            self.scores(&x)
        })
    }

    #[track_caller]
    fn scores(&self, x: &Tensor) -> Tensor {
        self.ln_f.forward(x).linear(&self.wte.weight, None)
    }

    /// The number of tokens, which must have places, with so many more.
    #[track_caller]
    fn fits(&self, ids: &Tensor, more: usize) -> usize {
        let (length, most) = (ids.size(1), self.wpe.weight.size(0));
        if length + more > most || length == 0 {
            refuse("Gpt2", &[ids], format!("{} tokens do not fit into {most} places", length + more));
        }
        length
    }

    /// The tokens [n, length] and `new` more, each time the likeliest: [n, length + new]. Keys and values of what was read are kept
    /// in buffers of a fixed size, and all steps are one loop of one program. Without dropout, whatever the mode.
    #[track_caller]
    pub fn generate(&self, ids: &Tensor, new: usize) -> Tensor {
        at_caller(|| no_grad(|| self.written(ids, new)))
    }

    #[track_caller]
    fn written(&self, ids: &Tensor, new: usize) -> Tensor {
        let (n, length) = (ids.size(0), self.fits(ids, new));
        let (total, d) = (length + new, self.wte.weight.size(1));
        let places = Tensor::arange(0, total as i64, 1);
        let begun = ids.long().pad([0, new as i64], 0.0);
        let empty = || Tensor::zeros([n, self.heads, total, d / self.heads]).to(self.wte.weight.dtype());
        let caches: Vec<Tensor> = self.layers.iter().flat_map(|_| [empty(), empty()]).collect();
        // Reading and writing are the same step: at places of the given text the word is known.
        let (ids, _) = fori_loop(
            0,
            total as i64 - 1,
            |t, (ids, mut caches): (Tensor, Vec<Tensor>)| {
                let at = t.reshape(1);
                let word = ids.index_select(1, &at);
                let mut x = self.wte.forward(&word) + self.wpe.weight.index_select(0, &at);
                let (here, read) = (places.eq(&t).reshape([-1, 1]), places.le(&t));
                for (layer, cache) in self.layers.iter().zip(caches.chunks_mut(2)) {
                    let qkv = layer.projected(&x);
                    cache[0] = qkv[1].where_(&here, &cache[0]);
                    cache[1] = qkv[2].where_(&here, &cache[1]);
                    let options = AttentionOptions { attn_mask: Some(read.clone()), ..Default::default() };
                    x = layer.behind(&x, &qkv[0].scaled_dot_product_attention(&cache[0], &cache[1], options));
                }
                let next = self.scores(&x).argmax_dim(-1, false);
                let writes = places.eq(&t + 1).logical_and(places.ge(length as i64));
                (where_(&writes, next, ids), caches)
            },
            &(begun, caches),
        );
        ids
    }
}

impl Module for Gpt2 {
    /// The scores of each next word, [n, length, words].
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn published(&self) -> Published {
        Published { base: "transformer", names: OTHER_NAMES, sizes: SIZES }
    }

    fn parts(&self, p: &mut Parts) {
        p.add("transformer.wte", &self.wte);
        p.add("transformer.wpe", &self.wpe);
        p.add("transformer.drop", &self.dropout);
        p.add("transformer.h", &self.layers);
        p.add("transformer.ln_f", &self.ln_f);
        p.add("lm_head.weight", &self.wte.weight);
    }
}
