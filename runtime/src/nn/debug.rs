//! What `Debug` of a module writes: a line, or the tree where it is shown with what it is a part of.
use super::module::{Module, entries};
use super::tree;
use std::fmt::{Debug, Formatter, Result};
use xlazy_mime::gather::found;

fn debug<M: Module + ?Sized>(module: &M, f: &mut Formatter) -> Result {
    found(f, || Box::new(module.summary()))
        .unwrap_or_else(|| f.write_str(&tree::line(module.module_kind(), &entries(module))))
}

macro_rules! by_its_parts {
    ($($module:ty)*) => {$(
        impl Debug for $module {
            fn fmt(&self, f: &mut Formatter) -> Result {
                debug(self, f)
            }
        }
    )*};
}
by_its_parts! {
    super::Linear super::Conv1d super::Conv2d super::Conv3d super::ConvTranspose1d super::ConvTranspose2d super::ConvTranspose3d
    super::Dropout super::Embedding super::EmbeddingBag super::LayerNorm super::RMSNorm super::GroupNorm super::InstanceNorm
    super::BatchNorm super::MultiheadAttention super::PReLU super::Bilinear super::Sequential super::ModuleList super::ModuleDict
    super::RNN super::GRU super::LSTM super::GRUCell super::LSTMCell super::RNNCell super::TransformerEncoderLayer
    super::TransformerDecoderLayer super::TransformerEncoder super::TransformerDecoder super::Transformer
    dyn Module + '_
}
