//! Neural networks: modules under torch's names, as plain users of tensors.
mod activation;
mod container;
mod dropout;
pub mod init;
mod linear;
mod module;

pub use activation::{ELU, GELU, Identity, LeakyReLU, LogSoftmax, ReLU, SiLU, Sigmoid, Softmax, Softplus, Tanh};
pub use container::{Flatten, Layers, Sequential};
pub use dropout::Dropout;
pub use linear::Linear;
pub use module::{AsPart, Module, Part, Parts, Training, parameter};
