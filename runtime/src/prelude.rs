//! What a cell has in scope without asking.
pub use crate::cell::{
    clear_output, display, display_with_id, input, input_password, progress::progress, sleep, update_display,
};
pub use crate::display::{ImageOptions, Plot, grid, image, image_with, images, images_with, line_plot, scatter_plot};
pub use crate::nn::Module;
pub use crate::optim::{Optimizer, optimizer_step, optimizer_step_retain_grad};
pub use crate::widget::{Button, Checkbox, Dropdown, Slider, Widget};
pub use crate::{
    At, Shape, Tensor, autocast, cat, einsum, grad, grad_with, insight, manual_seed, meshgrid, metrics, no_grad,
    pad_sequence, peek, stack, sync,
};
pub use crate::{
    AttentionOptions, AvgPoolOptions, BatchNormOptions, ConvOptions, ConvTransposeOptions, CrossEntropyOptions,
    InterpolateOptions, Interpolation, MaxPoolOptions, PadMode, Padding, Reduction, ScatterReduce,
};
pub use crate::{
    BagMode, EmbeddingBagOptions, FftNorm, GridMode, GridPadding, GridSampleOptions, HistogramOptions, LeastSquares,
    MatrixNorm, MultiHeadOptions, PatchOptions, QuantileInterpolation, QuantileOptions, StftOptions, Unique,
};
pub use crate::{
    Context, CustomOp, Function, GradOptions, Hook, checkpoint, custom_call, custom_op, hessian, jacobian, jvp, vjp,
};
pub use crate::{Mesh, Shard, Sharding, mark_sharding, spmd};
pub use crate::{ScanOptions, Tensors, associative_scan, cond, fori_loop, map, scan, scan_with, switch, while_loop};
pub use crate::{check, data, models, nn, optim, parts, predict, widget};
pub use crate::{spawn, xm};
pub use crate::{tensor, where_};
pub use xlazy_core::ty::DType::{self, *};
pub use xlazy_mime::{Bundle, Rich};
