//! Neural networks: modules under torch's names, as plain users of tensors.
mod debug;
pub mod functional;
pub mod init;
pub(crate) mod safetensors;
// Public, for a cell names a variable's type by the path that the compiler gives.
#[doc(hidden)]
pub mod activation;
#[doc(hidden)]
pub mod attention;
#[doc(hidden)]
pub mod container;
#[doc(hidden)]
pub mod conv;
#[doc(hidden)]
pub mod dropout;
#[doc(hidden)]
pub mod embedding;
#[doc(hidden)]
pub mod linear;
#[doc(hidden)]
pub mod module;
#[doc(hidden)]
pub mod norm;
#[doc(hidden)]
pub mod recurrent;
mod tree;

pub use activation::{ELU, GELU, Identity, LeakyReLU, LogSoftmax, ReLU, SiLU, Sigmoid, Softmax, Softplus, Tanh};
pub use attention::MultiheadAttention;
pub use container::{Flatten, Layers, Sequential};
pub use conv::{AdaptiveAvgPool2d, AvgPool2d, Conv1d, Conv2d, MaxPool2d};
pub use dropout::Dropout;
pub use embedding::{Embedding, EmbeddingBag};
pub use linear::Linear;
pub use module::{AsPart, Module, Part, Parts, Training, parameter};
pub use norm::{BatchNorm, BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm, RMSNorm};
pub use recurrent::{GRUCell, LSTMCell, RNNCell};
pub use safetensors::{load, save};
