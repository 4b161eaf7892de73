//! Neural networks: modules under torch's names, as plain users of tensors.
mod debug;
pub mod functional;
pub mod init;
pub mod parallel;
pub(crate) mod safetensors;
// Public, for a cell names a variable's type by the path that the compiler gives.
#[doc(hidden)]
pub mod activation;
#[doc(hidden)]
pub mod adaptive;
#[doc(hidden)]
pub mod attention;
#[doc(hidden)]
pub mod container;
#[doc(hidden)]
pub mod conv;
#[doc(hidden)]
pub mod distance;
#[doc(hidden)]
pub mod dropout;
#[doc(hidden)]
pub mod embedding;
#[doc(hidden)]
pub mod fractional;
#[doc(hidden)]
pub mod hooks;
#[doc(hidden)]
pub mod linear;
#[doc(hidden)]
pub mod loss;
#[doc(hidden)]
pub mod module;
#[doc(hidden)]
pub mod norm;
#[doc(hidden)]
pub mod pool;
#[doc(hidden)]
pub mod recurrent;
mod rules;
#[doc(hidden)]
pub mod shape;
mod spread;
#[doc(hidden)]
pub mod state;
#[doc(hidden)]
pub mod transformer;
mod tree;

pub use activation::{
    Activation, CELU, ELU, GELU, GLU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, Identity, LeakyReLU, LogSigmoid,
    LogSoftmax, Mish, PReLU, RReLU, ReLU, ReLU6, SELU, SiLU, Sigmoid, Softmax, Softmax2d, Softmin, Softplus,
    Softshrink, Softsign, Tanh, Tanhshrink, Threshold,
};
pub use adaptive::AdaptiveLogSoftmaxWithLoss;
pub use attention::{AttentionMasks, MultiheadAttention, MultiheadAttentionOptions};
pub use container::{Layers, ModuleDict, ModuleList, Sequential};
pub use conv::{Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
pub use distance::{Bilinear, CosineSimilarity, PairwiseDistance};
pub use dropout::{AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout};
pub use embedding::{Embedding, EmbeddingBag};
pub use fractional::{FractionalMaxPool2d, FractionalMaxPool3d};
pub use hooks::Hooked;
pub use linear::Linear;
pub use loss::{
    BCELoss, BCEWithLogitsLoss, CTCLoss, CosineEmbeddingLoss, CrossEntropyLoss, GaussianNLLLoss, HingeEmbeddingLoss,
    HuberLoss, KLDivLoss, L1Loss, MSELoss, MarginRankingLoss, MultiLabelMarginLoss, MultiLabelSoftMarginLoss,
    MultiMarginLoss, NLLLoss, PoissonNLLLoss, SmoothL1Loss, SoftMarginLoss, TripletMarginLoss,
    TripletMarginWithDistanceLoss,
};
pub use module::{AsPart, Module, Part, Parts, Training, parameter};
pub use norm::{BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm};
pub use norm::{InstanceNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d};
pub use pool::{AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AvgPool1d, AvgPool2d, AvgPool3d};
pub use pool::{AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d, MaxPool1d, MaxPool2d, MaxPool3d};
pub use pool::{LPPool1d, LPPool2d, LPPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d};
pub use recurrent::{GRU, GRUCell, LSTM, LSTMCell, RNN, RNNCell, RNNOptions};
pub use safetensors::{load, save};
pub use shape::{ChannelShuffle, Flatten, Fold, PixelShuffle, PixelUnshuffle, Unflatten, Unfold};
pub use shape::{CircularPad1d, CircularPad2d, CircularPad3d, ConstantPad1d, ConstantPad2d, ConstantPad3d};
pub use shape::{ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d};
pub use shape::{
    ReplicationPad3d, Upsample, UpsamplingBilinear2d, UpsamplingNearest2d, ZeroPad1d, ZeroPad2d, ZeroPad3d,
};
pub use state::Published;
pub use transformer::{Transformer, TransformerMasks, TransformerOptions};
pub use transformer::{TransformerDecoder, TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer};
