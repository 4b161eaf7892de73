//! The vision transformer, as transformers' `ViTForImageClassification`.
use super::block::{Layer, Names, Sizes, dropped, linear};
use super::config::{Parsed, Read, Settings, readers};
use crate::ConvOptions;
use crate::cat;
use crate::nn::module::at_caller;
use crate::nn::{Activation, Conv2d, Dropout, LayerNorm, Linear, Module, Parts, Published, init};
use crate::tensor::Tensor;

/// transformers' `ViTConfig`, by its names; the defaults are `vit-base-patch16-224`'s.
#[derive(Clone, Debug)]
pub struct ViTConfig {
    pub hidden_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub intermediate_size: usize,
    pub image_size: usize,
    pub patch_size: usize,
    pub num_channels: usize,
    pub hidden_act: Activation,
    pub layer_norm_eps: f64,
    pub hidden_dropout_prob: f64,
    pub attention_probs_dropout_prob: f64,
    pub num_labels: usize,
}

impl Default for ViTConfig {
    fn default() -> ViTConfig {
        ViTConfig {
            hidden_size: 768,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            intermediate_size: 3072,
            image_size: 224,
            patch_size: 16,
            num_channels: 3,
            hidden_act: Activation::GELU,
            layer_norm_eps: 1e-12,
            hidden_dropout_prob: 0.0,
            attention_probs_dropout_prob: 0.0,
            num_labels: 1000,
        }
    }
}

readers!(ViTConfig);

impl Read for ViTConfig {
    fn read(s: &mut Settings) -> Parsed<ViTConfig> {
        s.model(&["vit"])?;
        let classes = s.architecture("ViT", &[("ForImageClassification", true), ("Model", false)])?;
        if classes == Some(false) {
            s.tell("its architecture is `ViTModel`, without classes: those here begin anew");
        }
        s.must("qkv_bias", true)?;
        s.skip(&["encoder_stride", "pooler_act", "pooler_output_size"]);
        let default = ViTConfig::default();
        Ok(ViTConfig {
            hidden_size: s.size("hidden_size", default.hidden_size)?,
            num_hidden_layers: s.size("num_hidden_layers", default.num_hidden_layers)?,
            num_attention_heads: s.size("num_attention_heads", default.num_attention_heads)?,
            intermediate_size: s.size("intermediate_size", default.intermediate_size)?,
            image_size: s.size("image_size", default.image_size)?,
            patch_size: s.size("patch_size", default.patch_size)?,
            num_channels: s.size("num_channels", default.num_channels)?,
            hidden_act: s.activation("hidden_act", default.hidden_act)?,
            layer_norm_eps: s.float("layer_norm_eps", default.layer_norm_eps)?,
            hidden_dropout_prob: s.float("hidden_dropout_prob", default.hidden_dropout_prob)?,
            attention_probs_dropout_prob: s
                .float("attention_probs_dropout_prob", default.attention_probs_dropout_prob)?,
            num_labels: s.labels()?,
        })
    }
}

static NAMES: Names = Names {
    query: "attention.attention.query",
    key: "attention.attention.key",
    value: "attention.attention.value",
    attention: "attention.output.dense",
    attention_norm: "layernorm_before",
    up: "intermediate.dense",
    down: "output.dense",
    down_norm: "layernorm_after",
    norm_first: true,
};

/// torchvision's; its first files number the layers between otherwise.
static OTHER_NAMES: &[(&str, &[&str])] = &[
    ("class_token", &["embeddings.cls_token"]),
    ("conv_proj.*", &["embeddings.patch_embeddings.projection.*"]),
    ("encoder.pos_embedding", &["embeddings.position_embeddings"]),
    ("encoder.layers.encoder_layer_*.ln_1.*", &["encoder.layer.*.layernorm_before.*"]),
    (
        "encoder.layers.encoder_layer_*.self_attention.in_proj_*",
        &[
            "encoder.layer.*.attention.attention.query.*",
            "encoder.layer.*.attention.attention.key.*",
            "encoder.layer.*.attention.attention.value.*",
        ],
    ),
    ("encoder.layers.encoder_layer_*.self_attention.out_proj.*", &["encoder.layer.*.attention.output.dense.*"]),
    ("encoder.layers.encoder_layer_*.ln_2.*", &["encoder.layer.*.layernorm_after.*"]),
    ("encoder.layers.encoder_layer_*.mlp.0.*", &["encoder.layer.*.intermediate.dense.*"]),
    ("encoder.layers.encoder_layer_*.mlp.linear_1.*", &["encoder.layer.*.intermediate.dense.*"]),
    ("encoder.layers.encoder_layer_*.mlp.3.*", &["encoder.layer.*.output.dense.*"]),
    ("encoder.layers.encoder_layer_*.mlp.linear_2.*", &["encoder.layer.*.output.dense.*"]),
    ("encoder.ln.*", &["layernorm.*"]),
    ("heads.head.*", &["classifier.*"]),
];

static SIZES: &[(&str, &[&str])] = &[
    ("embeddings.cls_token", &["", "", "hidden_size"]),
    ("embeddings.position_embeddings", &["", "image_size", "hidden_size"]),
    ("embeddings.patch_embeddings.projection.*", &["hidden_size", "num_channels", "patch_size", "patch_size"]),
    ("*intermediate.dense.*", &["intermediate_size", "hidden_size"]),
    ("*attention.output.dense.*", &["hidden_size", "hidden_size"]),
    ("*.output.dense.*", &["hidden_size", "intermediate_size"]),
    ("classifier.*", &["num_labels", "hidden_size"]),
    ("*", &["hidden_size", "hidden_size"]),
];

/// Pictures [n, channels, size, size] cut into patches, a transformer over them, and the class token's classes.
///
/// ```
/// use xlazy::prelude::*;
/// use xlazy::models::{ViT, ViTConfig};
/// let config = ViTConfig {
///     hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32, image_size: 16, patch_size: 8,
///     num_labels: 3, ..Default::default()
/// };
/// assert_eq!(ViT::new(&config).forward(&Tensor::ones([2, 3, 16, 16])).shape(), [2, 3]);
/// ```
pub struct ViT {
    cls_token: Tensor,
    position_embeddings: Tensor,
    projection: Conv2d,
    layers: Vec<Layer>,
    layernorm: LayerNorm,
    dropout: Dropout,
    classifier: Linear,
}

impl ViT {
    #[track_caller]
    pub fn new(c: &ViTConfig) -> ViT {
        let (hidden, std) = (c.hidden_size, 0.02);
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
        at_caller(|| {
            let patches = (c.image_size / c.patch_size).pow(2);
            let options = ConvOptions { stride: c.patch_size.into(), ..Default::default() };
            ViT {
                cls_token: init::normal([1, 1, hidden], std),
                position_embeddings: init::normal([1, patches + 1, hidden], std),
                projection: Conv2d::with(c.num_channels, hidden, c.patch_size, options),
                layers: (0..c.num_hidden_layers).map(|_| Layer::new(&NAMES, sizes)).collect(),
                layernorm: LayerNorm::with(hidden, c.layer_norm_eps),
                dropout: Dropout::new(c.hidden_dropout_prob),
                classifier: linear(hidden, c.num_labels, std),
            }
        })
    }

    /// What the transformer gives for the class token and each patch, [n, 1 + patches, hidden].
    #[track_caller]
    pub fn hidden(&self, x: &Tensor) -> Tensor {
        at_caller(|| {
            let patches = self.projection.forward(x).flatten_dims(2, 3).transpose(1, 2);
            let cls = self.cls_token.expand([x.size(0) as i64, -1, -1]);
            let x = dropped(&self.dropout, cat(&[&cls, &patches], 1) + &self.position_embeddings);
            self.layernorm.forward(&self.layers.iter().fold(x, |x, layer| layer.forward(&x, None)))
        })
    }

    #[track_caller]
    fn run(&self, x: &Tensor) -> Tensor {
        at_caller(|| self.classifier.forward(&self.hidden(x).select(1, 0)))
    }
}

macro_rules! kinds {
    ($($name:ident $title:literal: $sizes:expr, $patch:expr;)*) => {
        $(
            #[doc = concat!($title, ", of torchvision's sizes.")]
            /// Its published weights load by their names.
            #[track_caller]
            pub fn $name(num_classes: usize) -> ViT {
                ViT::new(&torchvisions($sizes, $patch, num_classes))
            }
        )*

        #[cfg(test)]
        const KINDS: &[(&str, [usize; 4], usize)] = &[$((stringify!($name), $sizes, $patch)),*];
    };
}

/// Of these sizes: hidden, layers, heads, inner.
fn torchvisions([hidden, layers, heads, inner]: [usize; 4], patch_size: usize, num_labels: usize) -> ViTConfig {
    ViTConfig {
        hidden_size: hidden,
        num_hidden_layers: layers,
        num_attention_heads: heads,
        intermediate_size: inner,
        patch_size,
        layer_norm_eps: 1e-6,
        num_labels,
        ..Default::default()
    }
}

kinds! {
    vit_b_16 "ViT-B of patches of 16×16": [768, 12, 12, 3072], 16;
    vit_b_32 "ViT-B of patches of 32×32": [768, 12, 12, 3072], 32;
    vit_l_16 "ViT-L of patches of 16×16": [1024, 24, 16, 4096], 16;
    vit_l_32 "ViT-L of patches of 32×32": [1024, 24, 16, 4096], 32;
    vit_h_14 "ViT-H of patches of 14×14": [1280, 32, 16, 5120], 14;
}

impl Module for ViT {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn published(&self) -> Published {
        Published { base: "vit", names: OTHER_NAMES, sizes: SIZES }
    }

    fn parts(&self, p: &mut Parts) {
        p.add("vit.embeddings.cls_token", &self.cls_token);
        p.add("vit.embeddings.position_embeddings", &self.position_embeddings);
        p.add("vit.embeddings.patch_embeddings.projection", &self.projection);
        p.add("vit.embeddings.dropout", &self.dropout);
        p.add("vit.encoder.layer", &self.layers);
        p.add("vit.layernorm", &self.layernorm);
        p.add("classifier", &self.classifier);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_have_as_many_numbers_as_torchvisions() {
        let expected = [86_567_656, 88_224_232, 304_326_632, 306_535_400, 632_045_800];
        for ((name, sizes, patch), expected) in KINDS.iter().zip(expected) {
            // gigabytes otherwise: each layer adds as many
            let of = |layers: usize| {
                let config = ViTConfig { num_hidden_layers: layers, ..torchvisions(*sizes, *patch, 1000) };
                ViT::new(&config).parameters().iter().map(Tensor::numel).sum::<usize>()
            };
            let (none, one) = (of(0), of(1));
            assert_eq!(none + sizes[1] * (one - none), expected, "{name}");
        }
    }
}
