//! XLNet with transformers' heads: attention by distances, in both directions. The second stream and
//! memories of earlier segments, which only its pre-training has, are not here.
use super::bert::{Head, Heads};
use super::block::{dropped, linear};
use super::config::{Parsed, Read, Settings, readers};
use crate::nn::module::at_caller;
use crate::nn::{Activation, Dropout, Embedding, LayerNorm, Linear, Module, Parts, Published, init};
use crate::tensor::{Tensor, refuse};
use crate::{Error, cat, where_};

/// transformers' `XLNetConfig`, by its names; the defaults are `xlnet-base-cased`'s.
#[derive(Clone, Debug)]
pub struct XLNetConfig {
    pub vocab_size: usize,
    pub d_model: usize,
    pub n_layer: usize,
    pub n_head: usize,
    pub d_inner: usize,
    pub ff_activation: Activation,
    pub layer_norm_eps: f64,
    pub dropout: f64,
    /// Of the summary.
    pub summary_last_dropout: f64,
    /// What stands on the layers: any but BERT's own.
    pub head: Head,
    pub initializer_range: f64,
}

impl Default for XLNetConfig {
    fn default() -> XLNetConfig {
        XLNetConfig {
            vocab_size: 32000,
            d_model: 768,
            n_layer: 12,
            n_head: 12,
            d_inner: 3072,
            ff_activation: Activation::GELU,
            layer_norm_eps: 1e-12,
            dropout: 0.1,
            summary_last_dropout: 0.1,
            head: Head::Sequence(2),
            initializer_range: 0.02,
        }
    }
}

readers!(XLNetConfig);

static HEADS: Heads = &[
    ("Model", |_| Head::None),
    ("LMHeadModel", |_| Head::MaskedLM),
    ("ForSequenceClassification", Head::Sequence),
    ("ForTokenClassification", Head::Tokens),
    ("ForQuestionAnsweringSimple", |_| Head::Answer),
    ("ForMultipleChoice", |_| Head::MultipleChoice),
];

impl Read for XLNetConfig {
    fn read(s: &mut Settings) -> Parsed<XLNetConfig> {
        s.model(&["xlnet"])?;
        let labels = s.labels()?;
        let head = s.architecture("XLNet", HEADS)?.map_or(Head::None, |head| head(labels));
        s.must("attn_type", "bi")?;
        s.must("bi_data", false)?;
        s.must("clamp_len", -1)?;
        s.must("same_length", false)?;
        s.must("untie_r", true)?;
        s.must("summary_type", "last")?;
        s.must("summary_use_proj", true)?;
        s.must("summary_activation", "tanh")?;
        if head == Head::MaskedLM {
            s.must("tie_word_embeddings", true)?;
        }
        // memories, which are not here, and the answers of the head that has a beam
        s.skip(&["mem_len", "reuse_len", "use_mems", "use_mems_eval", "use_mems_train", "start_n_top", "end_n_top"]);
        s.skip(&["ff_activation_function", "n_token"]);
        let (d_model, n_head) = (s.size("d_model", 1024)?, s.size("n_head", 16)?);
        s.must("d_head", d_model / n_head)?;
        Ok(XLNetConfig {
            vocab_size: s.size("vocab_size", 32000)?,
            d_model,
            n_layer: s.size("n_layer", 24)?,
            n_head,
            d_inner: s.size("d_inner", 4096)?,
            ff_activation: s.activation("ff_activation", Activation::GELU)?,
            layer_norm_eps: s.float("layer_norm_eps", 1e-12)?,
            dropout: s.float("dropout", 0.1)?,
            summary_last_dropout: s.float("summary_last_dropout", 0.1)?,
            head,
            initializer_range: s.float("initializer_range", 0.02)?,
        })
    }
}

static SIZES: &[(&str, &[&str])] = &[
    ("word_embedding.weight", &["vocab_size", "d_model"]),
    ("lm_loss.*", &["vocab_size", "d_model"]),
    ("logits_proj.*", &["head", "d_model"]),
    ("classifier.*", &["head", "d_model"]),
    ("*ff.layer_1.*", &["d_inner", "d_model"]),
    ("*ff.layer_2.*", &["d_model", "d_inner"]),
    ("*rel_attn.seg_embed", &["", "n_head", "n_head"]),
    ("*rel_attn.r_*_bias", &["n_head", "n_head"]),
    ("*rel_attn.layer_norm.*", &["d_model"]),
    ("*rel_attn.*", &["d_model", "n_head", "n_head"]),
    ("mask_emb", &["", "", "d_model"]),
    ("*", &["d_model", "d_model"]),
];

/// The weights of attention, each [size, heads, of a head], by name, and what is added to queries.
const WEIGHTS: [&str; 5] = ["q", "k", "v", "o", "r"];
const BIASES: [&str; 3] = ["r_r_bias", "r_s_bias", "r_w_bias"];

struct Layer {
    weights: [Tensor; 5],
    biases: [Tensor; 3],
    seg_embed: Tensor,
    attention_norm: LayerNorm,
    layer_1: Linear,
    layer_2: Linear,
    norm: LayerNorm,
    act: Activation,
    dropout: Dropout,
}

/// What is the same for all layers.
struct Around {
    /// The sines of distances, [2 · length, size].
    distances: Tensor,
    /// Added to the scores: (n, 1, length, length).
    mask: Option<Tensor>,
    /// True where two tokens are of different segments, of the same shape.
    apart: Option<Tensor>,
}

impl Layer {
    fn new(c: &XLNetConfig) -> Layer {
        let (d, h, std) = (c.d_model, c.n_head, c.initializer_range);
        let norm = || LayerNorm::with(d, c.layer_norm_eps);
        Layer {
            weights: WEIGHTS.map(|_| init::normal([d, h, d / h], std)),
            biases: BIASES.map(|_| init::normal([h, d / h], std)),
            seg_embed: init::normal([2, h, d / h], std),
            attention_norm: norm(),
            layer_1: linear(d, c.d_inner, std),
            layer_2: linear(c.d_inner, d, std),
            norm: norm(),
            act: c.ff_activation,
            dropout: Dropout::new(c.dropout),
        }
    }

    #[track_caller]
    fn forward(&self, x: &Tensor, around: &Around) -> Tensor {
        let x = self.attention_norm.forward(&(self.attend(x, around) + x));
        let inner = dropped(&self.dropout, self.act.of(&self.layer_1.forward(&x)));
        self.norm.forward(&(dropped(&self.dropout, self.layer_2.forward(&inner)) + &x))
    }

    #[track_caller]
    fn attend(&self, x: &Tensor, around: &Around) -> Tensor {
        let (n, length, d) = (x.size(0), x.size(1), x.size(2));
        let (heads, size) = (self.biases[0].size(0), self.biases[0].size(1));
        let [q, k, v, o, r] = [0, 1, 2, 3, 4].map(|i: usize| self.weights[i].reshape([d, heads * size]));
        // (n, heads, length, of a head)
        let split = |t: Tensor, n: usize, length: usize| t.reshape([n, length, heads, size]).transpose(1, 2);
        let [q, k, v] = [q, k, v].map(|w| split(x.matmul(&w), n, length));
        let r = split(around.distances.matmul(&r), 1, 2 * length);
        let with = |i: usize| &q + self.biases[i].reshape([heads, 1, size]);
        let by_content = with(2).matmul(&k.transpose(-1, -2));
        // Each row of scores by distance begins one further on: read as rows of another length, they are shifted.
        let by_distance = with(0).matmul(&r.transpose(-1, -2)).reshape([n, heads, 2 * length, length]);
        let by_distance = by_distance.narrow(2, 1, 2 * length as i64 - 1).reshape([n, heads, length, 2 * length - 1]);
        let mut scores = by_content + by_distance.narrow(3, 0, length as i64);
        if let Some(apart) = &around.apart {
            // (heads, of a head, 2)
            let segments = self.seg_embed.permute([1, 2, 0]);
            let both = with(1).matmul(&segments);
            let pick = |i: i64| both.narrow(3, i, 1).expand(scores.shape());
            scores += where_(apart, pick(1), pick(0));
        }
        let scores = scores * (1.0 / (size as f64).sqrt());
        let scores = around.mask.as_ref().map_or(scores.clone(), |m| &scores + m);
        let weights = dropped(&self.dropout, scores.softmax(-1));
        let seen = weights.matmul(&v).transpose(1, 2).reshape([n, length, heads * size]);
        dropped(&self.dropout, seen.matmul(&o.t()))
    }
}

impl Module for Layer {
    fn parts(&self, p: &mut Parts) {
        let attention = WEIGHTS.iter().zip(&self.weights).chain(BIASES.iter().zip(&self.biases));
        attention.for_each(|(name, t)| p.add(&format!("rel_attn.{name}"), t));
        p.add("rel_attn.seg_embed", &self.seg_embed);
        p.add("rel_attn.layer_norm", &self.attention_norm);
        p.add("ff.layer_norm", &self.norm);
        p.add("ff.layer_1", &self.layer_1);
        p.add("ff.layer_2", &self.layer_2);
        p.add("ff.dropout", &self.dropout);
    }
}

/// A text's classes by its last token, of layers that attend by distances and segments.
///
/// ```
/// use xlazy::prelude::*;
/// use xlazy::models::{XLNet, XLNetConfig};
/// let config = XLNetConfig { vocab_size: 40, d_model: 8, n_layer: 1, n_head: 2, d_inner: 16, ..Default::default() };
/// let (ids, mask) = (tensor([[5, 6, 7]]), tensor([[1, 1, 1]]));
/// assert_eq!(XLNet::new(&config).forward(&ids, Some(&mask), None).shape(), [1, 2]);
/// ```
pub struct XLNet {
    word_embedding: Embedding,
    mask_emb: Tensor,
    layers: Vec<Layer>,
    head: Head,
    /// The head's layers, each under its name; the weight of the scores of words is the embedding's.
    head_layers: Vec<(&'static str, Linear)>,
    dropout: Dropout,
    last_dropout: Dropout,
}

impl XLNet {
    #[track_caller]
    pub fn new(c: &XLNetConfig) -> XLNet {
        let (d, std) = (c.d_model, c.initializer_range);
        at_caller(|| {
            let word_embedding = Embedding { weight: init::normal([c.vocab_size, d], std), padding_idx: None };
            let mask_emb = init::normal([1, 1, d], std);
            let layers = (0..c.n_layer).map(|_| Layer::new(c)).collect();
            let summed = |n| vec![("sequence_summary.summary", linear(d, d, std)), ("logits_proj", linear(d, n, std))];
            let head_layers = match c.head {
                Head::None => vec![],
                Head::MaskedLM => {
                    let bias = Some(init::zeros([c.vocab_size]));
                    vec![("lm_loss", Linear { weight: word_embedding.weight.clone(), bias })]
                }
                Head::Sequence(n) => summed(n),
                Head::MultipleChoice => summed(1),
                Head::Tokens(n) => vec![("classifier", linear(d, n, std))],
                Head::Answer => vec![("qa_outputs", linear(d, 2, std))],
                Head::NextSentence | Head::PreTraining => {
                    let message = format!("XLNet has no head {:?}, which is BERT's alone", c.head);
                    Error::Usage { message }.raise()
                }
            };
            let (dropout, last_dropout) = (Dropout::new(c.dropout), Dropout::new(c.summary_last_dropout));
            XLNet { word_embedding, mask_emb, layers, head: c.head, head_layers, dropout, last_dropout }
        })
    }

    /// What the layers give for each token, [n, length, size]. `attention_mask` is 1 for tokens and 0 for padding.
    #[track_caller]
    pub fn hidden(&self, ids: &Tensor, attention_mask: Option<&Tensor>, token_type_ids: Option<&Tensor>) -> Tensor {
        at_caller(|| {
            let (length, d) = (ids.size(1) as i64, self.word_embedding.weight.size(1) as i64);
            let x = dropped(&self.dropout, self.word_embedding.forward(ids));
            let places = Tensor::arange(0, length, 1);
            // A token that nobody looks at looks at itself.
            let mask = attention_mask.map(|m| {
                let others = places.reshape([-1, 1]).ne(&places);
                let hidden = m.eq(0).reshape([m.size(0) as i64, 1, 1, -1]).logical_and(others);
                Tensor::zeros(hidden.shape()).to(x.dtype()).masked_fill(&hidden, -1e30)
            });
            let apart = token_type_ids.map(|t| t.unsqueeze(2).ne(t.unsqueeze(1)).unsqueeze(1));
            let apart = apart.map(|a| a.expand([-1, self.layers[0].biases[0].size(0) as i64, -1, -1]));
            let frequencies = (Tensor::arange(0, d, 2).float() * (-(10000f64.ln()) / d as f64)).exp();
            let waves = Tensor::arange(length, -length, -1).float().unsqueeze(1) * frequencies;
            let distances = cat(&[&waves.sin(), &waves.cos()], -1).to(x.dtype());
            let around = Around { distances: dropped(&self.dropout, distances), mask, apart };
            dropped(&self.dropout, self.layers.iter().fold(x, |x, layer| layer.forward(&x, &around)))
        })
    }

    /// What the head makes of tokens [n, length]: see [`Head`].
    #[track_caller]
    pub fn forward(&self, ids: &Tensor, attention_mask: Option<&Tensor>, token_type_ids: Option<&Tensor>) -> Tensor {
        at_caller(|| {
            let choice = self.head == Head::MultipleChoice;
            if choice && ids.dim() != 3 {
                refuse("XLNet", &[ids], "a choice takes tokens [n, texts, length]");
            }
            let flat = |t: &Tensor| if choice { t.flatten_dims(0, 1) } else { t.clone() };
            let x = self.hidden(&flat(ids), attention_mask.map(flat).as_ref(), token_type_ids.map(flat).as_ref());
            match &self.head_layers[..] {
                [] => x,
                [(_, each)] => each.forward(&x),
                [(_, summary), (_, logits), ..] => {
                    let summed = summary.forward(&x.select(1, -1)).tanh();
                    let y = logits.forward(&dropped(&self.last_dropout, summed));
                    if choice { y.reshape([ids.size(0), ids.size(1)]) } else { y }
                }
            }
        })
    }
}

impl Module for XLNet {
    fn published(&self) -> Published {
        Published { base: "transformer", sizes: SIZES, ..Default::default() }
    }

    fn parts(&self, p: &mut Parts) {
        // without a head the names begin at the layers, as they are published
        let at = |name: &str| if self.head == Head::None { name.to_owned() } else { format!("transformer.{name}") };
        p.add(&at("mask_emb"), &self.mask_emb);
        p.add(&at("word_embedding"), &self.word_embedding);
        p.add(&at("layer"), &self.layers);
        p.add(&at("dropout"), &self.dropout);
        self.head_layers.iter().for_each(|(name, layer)| p.add(name, layer));
        p.add("sequence_summary.last_dropout", &self.last_dropout);
    }
}
