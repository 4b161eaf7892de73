//! `config.json`, as transformers writes it beside weights: read into the config of a family.
use crate::json::{self, Map, Value, json};
use crate::nn::Activation;
use crate::{Error, Result};
use std::fmt::Display;
use std::path::Path;
use xlazy_mime::regular;

/// What a file says: what is read is taken out of it, so that in the end it is known what nobody has read.
pub(super) struct Settings {
    fields: Map,
    /// What there is to say of it, in words.
    told: Vec<String>,
}

/// A config that is read from one.
pub(super) trait Read: Sized {
    fn read(settings: &mut Settings) -> Parsed<Self>;
}

/// What is wrong, in words.
pub(super) type Parsed<T> = std::result::Result<T, String>;

/// Settings that change nothing of what a model computes: of saving, training, tokenizers and of how words are drawn.
const ASIDE: &[&str] = &[
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "_num_labels",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "label2id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_scores",
    "pad_token_id",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tie_word_embeddings",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
];

impl Settings {
    fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name).filter(|v| !v.is_null())
    }

    fn as_kind<T>(&mut self, name: &str, kind: &str, read: impl Fn(&Value) -> Option<T>, default: T) -> Parsed<T> {
        match self.take(name) {
            None => Ok(default),
            Some(value) => read(&value).ok_or_else(|| format!("`{name}` is {value}, expected {kind}")),
        }
    }

    /// A size; the default where it says nothing.
    pub(super) fn size(&mut self, name: &str, default: usize) -> Parsed<usize> {
        Ok(self.optional(name)?.unwrap_or(default))
    }

    pub(super) fn optional(&mut self, name: &str) -> Parsed<Option<usize>> {
        self.as_kind(name, "a size", |v| v.as_u64().filter(|n| *n > 0).map(|n| Some(n as usize)), None)
    }

    pub(super) fn integer(&mut self, name: &str, default: i64) -> Parsed<i64> {
        self.as_kind(name, "a whole number", Value::as_i64, default)
    }

    pub(super) fn float(&mut self, name: &str, default: f64) -> Parsed<f64> {
        self.as_kind(name, "a number", Value::as_f64, default)
    }

    /// An activation by transformers' name.
    pub(super) fn activation(&mut self, name: &str, default: Activation) -> Parsed<Activation> {
        let known = |v: &Value| match v.as_str()? {
            "relu" => Some(Activation::ReLU),
            "gelu" | "gelu_python" => Some(Activation::GELU),
            "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" => Some(Activation::GELUTanh),
            "silu" | "swish" => Some(Activation::SiLU),
            "tanh" => Some(Activation::Tanh),
            _ => None,
        };
        self.as_kind(name, "\"relu\", \"gelu\", \"gelu_new\", \"silu\" or \"tanh\"", known, default)
    }

    /// How many classes there are: transformers' are two where it says nothing.
    pub(super) fn labels(&mut self) -> Parsed<usize> {
        let named = self.take("id2label").and_then(|names| names.as_object().map(Map::len));
        named.map_or_else(|| self.size("num_labels", 2), Ok)
    }

    /// Which of these models it is of.
    pub(super) fn model(&mut self, known: &[&'static str]) -> Parsed<&'static str> {
        let expected = one_of(known);
        match self.take("model_type") {
            None => Err(format!("it has no `model_type`, expected {expected}")),
            Some(v) => {
                let found = known.iter().copied().find(|name| v == *name);
                found.ok_or_else(|| format!("its `model_type` is {v}, expected {expected}"))
            }
        }
    }

    /// What `architectures` names behind the family's name, of those that there are here; nothing where it names none.
    pub(super) fn architecture<H: Copy>(&mut self, family: &str, known: &[(&str, H)]) -> Parsed<Option<H>> {
        let Some(named) = self.take("architectures") else { return Ok(None) };
        let names: Vec<String> = known.iter().map(|(head, _)| format!("{family}{head}")).collect();
        let found = names.iter().position(|name| named[0] == name.as_str()).map(|i| known[i].1);
        found.map(Some).ok_or_else(|| format!("its architecture is {}, expected {}", named[0], one_of(&names)))
    }

    /// A setting that may be left out or has to be this: what it says otherwise, the models here do not compute.
    pub(super) fn must(&mut self, name: &str, value: impl json::Json) -> Parsed<()> {
        let (given, value) = (self.take(name), json!(value));
        match given {
            Some(given) if given != value => Err(format!("`{name}` is {given}, which is not here: expected {value}")),
            _ => Ok(()),
        }
    }

    /// Settings of parts that only training before had, or that weights bring along.
    pub(super) fn skip(&mut self, names: &[&str]) {
        names.iter().for_each(|name| drop(self.fields.remove(*name)));
    }

    pub(super) fn tell(&mut self, what: impl Display) {
        self.told.push(what.to_string());
    }
}

/// `a`, `b` or `c`.
fn one_of(names: &[impl Display]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match &quoted[..] {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        all => all.concat(),
    }
}

pub(super) fn from_file<C: Read>(path: &Path) -> Result<(C, Vec<String>)> {
    let failed = |what: String| Error::Usage { message: format!("cannot read {}: {what}", path.display()) };
    let text = regular::read_to_string(path).map_err(|e| failed(e.to_string()))?;
    parse(&text).map_err(failed)
}

pub(super) fn from_json<C: Read>(text: &str) -> Result<(C, Vec<String>)> {
    parse(text).map_err(|what| Error::Usage { message: format!("cannot read the config: {what}") })
}

fn parse<C: Read>(text: &str) -> Parsed<(C, Vec<String>)> {
    let Value::Object(fields) = json::parse(text).map_err(|e| e.to_string())? else {
        return Err("an object is expected".to_owned());
    };
    let mut settings = Settings { fields, told: Vec::new() };
    let config = C::read(&mut settings)?;
    settings.must("pruned_heads", json!({}))?;
    for name in ["is_encoder_decoder", "is_decoder", "add_cross_attention"] {
        settings.must(name, false)?;
    }
    settings.skip(ASIDE);
    let Settings { fields, mut told } = settings;
    told.extend(fields.keys().map(|name| format!("`{name}` is not known here")));
    Ok((config, told))
}

/// The readers of a config: those that a user calls.
macro_rules! readers {
    ($($config:ident)*) => {$(
        impl $config {
            /// Reads a `config.json` as transformers writes it: the config, and what of the file was left out, in words. Settings that
            /// it does not have are transformers' defaults. An error names a model, a head or a setting that is not here.
            pub fn from_file(path: impl AsRef<std::path::Path>) -> crate::Result<($config, Vec<String>)> {
                crate::models::config::from_file(path.as_ref())
            }

            /// As [`Self::from_file`], of the text of such a file.
            pub fn from_json(text: &str) -> crate::Result<($config, Vec<String>)> {
                crate::models::config::from_json(text)
            }
        }
    )*};
}
pub(super) use readers;
