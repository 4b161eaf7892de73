//! Whole models, short enough to read, equal to PyTorch's: each is a config, a module under the names of the published weights, and
//! what it computes. `load_state_dict(&nn::load("model.safetensors")?)` takes weights as they are published, whichever of its names a
//! file has.
//!
//! The `from_file` of a config reads transformers' `config.json`.
//!
//! ResNets are torchvision's; ViT, BERT, DistilBERT, RoBERTa, XLNet and GPT-2 are transformers'; DLRM is
//! facebookresearch/dlrm's; the translation model is `torch.nn.Transformer` between embeddings and an output layer.
// Public, for a cell names a variable's type by the path that the compiler gives.
#[doc(hidden)]
pub mod bert;
#[doc(hidden)]
pub mod block;
mod config;
#[doc(hidden)]
pub mod dlrm;
#[doc(hidden)]
pub mod gpt2;
#[doc(hidden)]
pub mod resnet;
#[doc(hidden)]
pub mod translation;
#[doc(hidden)]
pub mod vit;
#[doc(hidden)]
pub mod xlnet;

pub use bert::{Bert, BertConfig, Family, Head};
pub use dlrm::{Dlrm, DlrmConfig};
pub use gpt2::{Gpt2, Gpt2Config};
pub use resnet::{
    ResNet, ResNetConfig, resnet18, resnet34, resnet50, resnet101, resnet152, resnext50_32x4d, resnext101_32x8d,
    wide_resnet50_2, wide_resnet101_2,
};
pub use translation::{Translation, TranslationConfig};
pub use vit::{ViT, ViTConfig, vit_b_16, vit_b_32, vit_h_14, vit_l_16, vit_l_32};
pub use xlnet::{XLNet, XLNetConfig};
