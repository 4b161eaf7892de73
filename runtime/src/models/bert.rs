//! BERT and its relatives, as transformers has them: the encoder is one, and names, positions and heads differ.
use super::block::{Layer, Names, Sizes, dropped, linear};
use super::config::{Parsed, Read, Settings, readers};
use crate::Error;
use crate::nn::module::at_caller;
use crate::nn::{Activation, Dropout, Embedding, LayerNorm, Linear, Module, Parts, Published, init};
use crate::tensor::{Tensor, refuse};

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Bert,
    Roberta,
    DistilBert,
}

/// What stands on the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Nothing: what the encoder gives for each token.
    None,
    /// Classes of the whole text (`…ForSequenceClassification`).
    Sequence(usize),
    /// Classes of each token (`…ForTokenClassification`).
    Tokens(usize),
    /// Where an answer begins and ends, [n, length, 2] (`…ForQuestionAnswering`).
    Answer,
    /// The scores of each word at each place, by the embedding's vectors (`…ForMaskedLM`, `XLNetLMHeadModel`).
    MaskedLM,
    /// Which of several texts, [n, texts]: tokens are [n, texts, length] (`…ForMultipleChoice`).
    MultipleChoice,
    /// Whether a text's second part follows the first or not, [n, 2]: BERT's alone (`BertForNextSentencePrediction`).
    NextSentence,
    /// The scores of words, and beside them [`Bert::next_sentence`]: BERT's alone (`BertForPreTraining`).
    PreTraining,
}

/// Heads by the ends of transformers' names, and how many classes they take.
pub(super) type Heads = &'static [(&'static str, fn(usize) -> Head)];

static HEADS: Heads = &[
    ("Model", |_| Head::None),
    ("ForMaskedLM", |_| Head::MaskedLM),
    ("ForSequenceClassification", Head::Sequence),
    ("ForTokenClassification", Head::Tokens),
    ("ForQuestionAnswering", |_| Head::Answer),
    ("ForMultipleChoice", |_| Head::MultipleChoice),
];

static OF_BERT: Heads =
    &[("ForPreTraining", |_| Head::PreTraining), ("ForNextSentencePrediction", |_| Head::NextSentence)];

/// transformers' `BertConfig`, `RobertaConfig` and `DistilBertConfig`, by BERT's names; the defaults are `bert-base`'s.
#[derive(Clone, Debug)]
pub struct BertConfig {
    pub family: Family,
    pub head: Head,
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub intermediate_size: usize,
    pub max_position_embeddings: usize,
    /// Kinds of tokens; DistilBERT has none.
    pub type_vocab_size: usize,
    pub hidden_act: Activation,
    pub layer_norm_eps: f64,
    pub hidden_dropout_prob: f64,
    pub attention_probs_dropout_prob: f64,
    /// Of the head of classes of the whole text.
    pub classifier_dropout: f64,
    pub pad_token_id: i64,
    /// The deviation of weights to begin with.
    pub initializer_range: f64,
}

impl Default for BertConfig {
    fn default() -> BertConfig {
        BertConfig {
            family: Family::Bert,
            head: Head::None,
            vocab_size: 30522,
            hidden_size: 768,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            intermediate_size: 3072,
            max_position_embeddings: 512,
            type_vocab_size: 2,
            hidden_act: Activation::GELU,
            layer_norm_eps: 1e-12,
            hidden_dropout_prob: 0.1,
            attention_probs_dropout_prob: 0.1,
            classifier_dropout: 0.1,
            pad_token_id: 0,
            initializer_range: 0.02,
        }
    }
}

readers!(BertConfig);

impl Read for BertConfig {
    fn read(s: &mut Settings) -> Parsed<BertConfig> {
        let model = s.model(&["bert", "roberta", "distilbert"])?;
        let (family, name) = match model {
            "bert" => (Family::Bert, "Bert"),
            "roberta" => (Family::Roberta, "Roberta"),
            _ => (Family::DistilBert, "DistilBert"),
        };
        let (distil, roberta) = (family == Family::DistilBert, family == Family::Roberta);
        let or = |bert: &'static str, distilbert: &'static str| if distil { distilbert } else { bert };
        let known = if family == Family::Bert { [HEADS, OF_BERT].concat() } else { HEADS.to_vec() };
        let labels = s.labels()?;
        let head = s.architecture(name, &known)?.map_or(Head::None, |head| head(labels));
        s.must("position_embedding_type", "absolute")?;
        if matches!(head, Head::MaskedLM | Head::PreTraining) {
            s.must("tie_word_embeddings", true)?;
        }
        let dropout = s.float(or("hidden_dropout_prob", "dropout"), 0.1)?;
        let classifier_dropout = match (distil, head) {
            (false, _) => s.float("classifier_dropout", dropout)?,
            (true, Head::Sequence(_) | Head::MultipleChoice) => s.float("seq_classif_dropout", 0.2)?,
            (true, Head::Answer) => s.float("qa_dropout", 0.1)?,
            (true, _) => dropout,
        };
        if distil {
            // sines are where positions begin, and weights have them
            s.skip(&["seq_classif_dropout", "qa_dropout", "sinusoidal_pos_embds", "tie_weights_"]);
        }
        Ok(BertConfig {
            family,
            head,
            vocab_size: s.size("vocab_size", if roberta { 50265 } else { 30522 })?,
            hidden_size: s.size(or("hidden_size", "dim"), 768)?,
            num_hidden_layers: s.size(or("num_hidden_layers", "n_layers"), if distil { 6 } else { 12 })?,
            num_attention_heads: s.size(or("num_attention_heads", "n_heads"), 12)?,
            intermediate_size: s.size(or("intermediate_size", "hidden_dim"), 3072)?,
            max_position_embeddings: s.size("max_position_embeddings", 512)?,
            type_vocab_size: if distil { 2 } else { s.size("type_vocab_size", 2)? },
            hidden_act: s.activation(or("hidden_act", "activation"), Activation::GELU)?,
            layer_norm_eps: if distil { 1e-12 } else { s.float("layer_norm_eps", 1e-12)? },
            hidden_dropout_prob: dropout,
            attention_probs_dropout_prob: s.float(or("attention_probs_dropout_prob", "attention_dropout"), 0.1)?,
            classifier_dropout,
            pad_token_id: s.integer("pad_token_id", i64::from(roberta))?,
            initializer_range: s.float("initializer_range", 0.02)?,
        })
    }
}

static BERT: Names = Names {
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    attention: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    down_norm: "output.LayerNorm",
    norm_first: false,
};

static DISTIL: Names = Names {
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    attention: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    up: "ffn.lin1",
    down: "ffn.lin2",
    down_norm: "output_layer_norm",
    norm_first: false,
};

/// The layer that tells whether a sentence is the next one.
const NEXT: &str = "cls.seq_relationship";

/// Norms of the first published weights have TensorFlow's names, and positions were once a buffer.
static OTHER_NAMES: &[(&str, &[&str])] =
    &[("*.gamma", &["*.weight"]), ("*.beta", &["*.bias"]), ("embeddings.position_ids", &[])];

static SIZES: &[(&str, &[&str])] = &[
    ("*word_embeddings.weight", &["vocab_size", "hidden_size"]),
    ("*position_embeddings.weight", &["max_position_embeddings", "hidden_size"]),
    ("*token_type_embeddings.weight", &["type_vocab_size", "hidden_size"]),
    ("*attention.output.dense.*", &["hidden_size", "hidden_size"]),
    ("*intermediate.dense.*", &["intermediate_size", "hidden_size"]),
    ("*.output.dense.*", &["hidden_size", "intermediate_size"]),
    ("*ffn.lin1.*", &["intermediate_size", "hidden_size"]),
    ("*ffn.lin2.*", &["hidden_size", "intermediate_size"]),
    ("classifier.dense.*", &["hidden_size", "hidden_size"]),
    ("cls.seq_relationship.*", &["", "hidden_size"]),
    ("classifier.*", &["head", "hidden_size"]),
    ("cls.predictions.bias", &["vocab_size"]),
    ("cls.predictions.decoder.*", &["vocab_size", "hidden_size"]),
    ("lm_head.bias", &["vocab_size"]),
    ("lm_head.decoder.*", &["vocab_size", "hidden_size"]),
    ("vocab_projector.*", &["vocab_size", "hidden_size"]),
    ("*", &["hidden_size", "hidden_size"]),
];

/// A BERT, RoBERTa or DistilBERT with a head.
///
/// ```
/// use xlazy::prelude::*;
/// use xlazy::models::{Bert, BertConfig, Head};
/// let config = BertConfig {
///     vocab_size: 50, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32,
///     head: Head::Sequence(3), ..Default::default()
/// };
/// let model = Bert::new(&config);
/// let (ids, mask) = (tensor([[2, 7, 9, 0]]), tensor([[1, 1, 1, 0]]));
/// assert_eq!(model.forward(&ids, Some(&mask), None).shape(), [1, 3]);
/// assert_eq!(model.named_parameters()[0].0, "bert.embeddings.word_embeddings.weight");
/// ```
pub struct Bert {
    config: BertConfig,
    words: Embedding,
    positions: Embedding,
    types: Option<Embedding>,
    norm: LayerNorm,
    layers: Vec<Layer>,
    pooler: Option<Linear>,
    /// The head's layers, each under its name.
    head: Vec<(&'static str, Linear)>,
    head_norm: Option<LayerNorm>,
    /// The bias of the words' scores.
    word_bias: Option<Tensor>,
    dropout: Dropout,
    head_dropout: Dropout,
}

impl Bert {
    #[track_caller]
    pub fn new(config: &BertConfig) -> Bert {
        let c = config.clone();
        let (hidden, std) = (c.hidden_size, c.initializer_range);
        let sizes = Sizes {
            hidden,
            heads: c.num_attention_heads,
            inner: c.intermediate_size,
            act: c.hidden_act,
            eps: c.layer_norm_eps,
            dropout: c.hidden_dropout_prob,
            attention_dropout: c.attention_probs_dropout_prob,
            std,
        };
        let table = |rows: usize| Embedding { weight: init::normal([rows, hidden], std), padding_idx: Option::None };
        let one = |name, to| (name, linear(hidden, to, std));
        use {Family::*, Head::*};
        at_caller(|| {
            let head = match (c.family, c.head) {
                (_, Head::None) => vec![],
                (Bert, Sequence(n)) => vec![one("classifier", n)],
                (Roberta, Sequence(n)) => vec![one("classifier.dense", hidden), one("classifier.out_proj", n)],
                (DistilBert, Sequence(n)) => vec![one("pre_classifier", hidden), one("classifier", n)],
                (_, Tokens(n)) => vec![one("classifier", n)],
                (_, Answer) => vec![one("qa_outputs", 2)],
                (Bert, MaskedLM) => vec![one("cls.predictions.transform.dense", hidden)],
                (Roberta, MaskedLM) => vec![one("lm_head.dense", hidden)],
                (DistilBert, MaskedLM) => vec![one("vocab_transform", hidden)],
                (Bert | Roberta, MultipleChoice) => vec![one("classifier", 1)],
                (DistilBert, MultipleChoice) => vec![one("pre_classifier", hidden), one("classifier", 1)],
                (Bert, NextSentence) => vec![one(NEXT, 2)],
                (Bert, PreTraining) => vec![one("cls.predictions.transform.dense", hidden), one(NEXT, 2)],
                (family, head) => {
                    let message = format!("{family:?} has no head {head:?}, which is BERT's alone");
                    Error::Usage { message }.raise()
                }
            };
            let positions = table(c.max_position_embeddings);
            let masked = matches!(c.head, MaskedLM | PreTraining);
            let pooled = match c.head {
                Head::None | MultipleChoice => c.family != DistilBert,
                Sequence(_) | NextSentence | PreTraining => c.family == Bert,
                Tokens(_) | Answer | MaskedLM => false,
            };
            crate::models::bert::Bert {
                words: table(c.vocab_size).padding_idx(c.pad_token_id),
                positions: if c.family == Roberta { positions.padding_idx(c.pad_token_id) } else { positions },
                types: (c.family != DistilBert).then(|| table(c.type_vocab_size)),
                norm: LayerNorm::with(hidden, c.layer_norm_eps),
                layers: (0..c.num_hidden_layers)
                    .map(|_| Layer::new(if c.family == DistilBert { &DISTIL } else { &BERT }, sizes))
                    .collect(),
                pooler: pooled.then(|| linear(hidden, hidden, std)),
                head,
                head_norm: masked.then(|| LayerNorm::with(hidden, c.layer_norm_eps)),
                word_bias: masked.then(|| init::zeros([c.vocab_size])),
                dropout: Dropout::new(c.hidden_dropout_prob),
                head_dropout: Dropout::new(c.classifier_dropout),
                config: c,
            }
        })
    }

    /// What the encoder gives for each token, [n, length, hidden]. `attention_mask` is 1 for tokens and 0 for padding.
    #[track_caller]
    pub fn hidden(&self, ids: &Tensor, attention_mask: Option<&Tensor>, token_type_ids: Option<&Tensor>) -> Tensor {
        at_caller(|| {
            let (c, length) = (&self.config, ids.size(1) as i64);
            if length as usize > c.max_position_embeddings {
                let why =
                    format!("{length} tokens are more than the {} positions that there are", c.max_position_embeddings);
                refuse("Bert", &[ids], why);
            }
            let places = match c.family {
                // counted from behind the padding's index, padding itself is at it
                Family::Roberta => {
                    let real = ids.ne(c.pad_token_id).long();
                    real.cumsum(1) * real + c.pad_token_id
                }
                _ => Tensor::arange(0, length, 1).unsqueeze(0),
            };
            let x = self.words.forward(ids);
            let x = match &self.types {
                // Of one kind all are where nobody says: its row, whose gradient is a sum and adds up in no table.
                Some(types) => x + token_type_ids.map_or_else(|| types.weight.i(0), |ids| types.forward(ids)),
                None => x,
            };
            let x = dropped(&self.dropout, self.norm.forward(&(x + self.positions.forward(&places))));
            let mask = attention_mask.map(|m| {
                let hidden = m.eq(0).reshape([m.size(0) as i64, 1, 1, -1]);
                Tensor::zeros(hidden.shape()).to(x.dtype()).masked_fill(&hidden, f32::MIN as f64)
            });
            self.layers.iter().fold(x, |x, layer| layer.forward(&x, mask.as_ref()))
        })
    }

    /// What the head makes of tokens [n, length]: see [`Head`].
    #[track_caller]
    pub fn forward(&self, ids: &Tensor, attention_mask: Option<&Tensor>, token_type_ids: Option<&Tensor>) -> Tensor {
        at_caller(|| {
            let choice = self.config.head == Head::MultipleChoice;
            if choice && ids.dim() != 3 {
                refuse("Bert", &[ids], "a choice takes tokens [n, texts, length]");
            }
            let flat = |t: &Tensor| if choice { t.flatten_dims(0, 1) } else { t.clone() };
            let x = self.hidden(&flat(ids), attention_mask.map(flat).as_ref(), token_type_ids.map(flat).as_ref());
            let (family, drop) = (self.config.family, |x| dropped(&self.head_dropout, x));
            let head = |i: usize, x: &Tensor| self.head[i].1.forward(x);
            match self.config.head {
                Head::None => x,
                Head::Answer if family == Family::DistilBert => head(0, &drop(x)),
                Head::Answer => head(0, &x),
                Head::NextSentence => self.next_sentence(&x),
                Head::Tokens(_) => head(0, &drop(x)),
                Head::Sequence(_) => {
                    let first = x.select(1, 0);
                    match family {
                        Family::Bert => head(0, &drop(self.pooled(&x))),
                        Family::Roberta => head(1, &drop(head(0, &drop(first)).tanh())),
                        Family::DistilBert => head(1, &drop(head(0, &first).relu())),
                    }
                }
                Head::MultipleChoice => {
                    let scores = match family {
                        Family::DistilBert => head(1, &drop(head(0, &x.select(1, 0)).relu())),
                        _ => head(0, &drop(self.pooled(&x))),
                    };
                    scores.reshape([ids.size(0), ids.size(1)])
                }
                Head::MaskedLM | Head::PreTraining => {
                    let x = self.config.hidden_act.of(&head(0, &x));
                    let norm = self.head_norm.as_ref().expect("a head of words has one");
                    norm.forward(&x).linear(&self.words.weight, self.word_bias.as_ref())
                }
            }
        })
    }

    /// Whether a text's second part follows the first (0) or not (1), [n, 2], of what [`Bert::hidden`] gives.
    #[track_caller]
    pub fn next_sentence(&self, hidden: &Tensor) -> Tensor {
        at_caller(|| match self.head.iter().find(|(name, _)| *name == NEXT) {
            Some((_, layer)) => layer.forward(&self.pooled(hidden)),
            None => refuse("next_sentence", &[hidden], "this model's head is not `NextSentence` or `PreTraining`"),
        })
    }

    /// The first token's vector behind the pooler, [n, hidden]: `pooler_output`.
    #[track_caller]
    pub fn pooled(&self, hidden: &Tensor) -> Tensor {
        at_caller(|| match &self.pooler {
            Some(pooler) => pooler.forward(&hidden.select(1, 0)).tanh(),
            None => refuse("pooled", &[hidden], "this model has no pooler"),
        })
    }
}

impl Bert {
    /// What the encoder's names begin with.
    fn base(&self) -> &'static str {
        match self.config.family {
            Family::Bert => "bert",
            Family::Roberta => "roberta",
            Family::DistilBert => "distilbert",
        }
    }
}

impl Module for Bert {
    fn published(&self) -> Published {
        Published { base: self.base(), names: OTHER_NAMES, sizes: SIZES }
    }

    fn parts(&self, p: &mut Parts) {
        let (layers, head_norm, words, bias) = match self.config.family {
            Family::Bert => {
                ("encoder.layer", "cls.predictions.transform.LayerNorm", "cls.predictions.decoder", "cls.predictions")
            }
            Family::Roberta => ("encoder.layer", "lm_head.layer_norm", "lm_head.decoder", "lm_head"),
            Family::DistilBert => ("transformer.layer", "vocab_layer_norm", "vocab_projector", ""),
        };
        // without a head the names begin at the encoder, as they are published
        let base = self.base();
        let at = |name: &str| if self.config.head == Head::None { name.to_owned() } else { format!("{base}.{name}") };
        p.add(&at("embeddings.word_embeddings"), &self.words);
        p.add(&at("embeddings.position_embeddings"), &self.positions);
        p.add(&at("embeddings.token_type_embeddings"), &self.types);
        p.add(&at("embeddings.LayerNorm"), &self.norm);
        p.add(&at("embeddings.dropout"), &self.dropout);
        p.add(&at(layers), &self.layers);
        p.add(&at("pooler.dense"), &self.pooler);
        self.head.iter().for_each(|(name, layer)| p.add(name, layer));
        p.add(head_norm, &self.head_norm);
        if let Some(b) = &self.word_bias {
            // one tensor each under the names that transformers gives it
            if !bias.is_empty() {
                p.add(&format!("{bias}.bias"), b);
            }
            p.add(&format!("{words}.weight"), &self.words.weight);
            p.add(&format!("{words}.bias"), b);
        }
        p.add("dropout", &self.head_dropout);
    }
}
