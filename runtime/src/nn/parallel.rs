//! Models over the devices of a mesh: which parameter is split how. XLA finds the collectives that this asks for, so a layer is
//! the plain one with its parameters marked.
use super::embedding::Embedding;
use super::linear::Linear;
use super::module::{Module, Parts};
use super::rules::spec_of;
pub use super::spread::load;
use crate::tensor::{Tensor, refuse};
use xlazy_core::mesh::Mesh;

/// A [`Linear`] whose outputs are split over an axis of a mesh: each device has some rows of the weight and some of the bias, and
/// computes these outputs of its own (Megatron's `ColumnParallelLinear`, whose weight is the transpose). A [`RowParallelLinear`]
/// takes them as they lie.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let mesh = Mesh::new(&[("data", 4), ("model", 2)]);
/// let up = nn::parallel::ColumnParallelLinear::new(8, 32, &mesh, "model");
/// let down = nn::parallel::RowParallelLinear::new(32, 8, &mesh, "model");
/// let y = down.forward(&up.forward(&Tensor::ones([16, 8])).relu());
/// ```
pub struct ColumnParallelLinear(pub Linear);

impl ColumnParallelLinear {
    /// Starts as [`Linear::new`] does. `out_features` is a multiple of the axis' size.
    #[track_caller]
    pub fn new(in_features: usize, out_features: usize, mesh: &Mesh, axis: &str) -> ColumnParallelLinear {
        let linear = Linear::new(in_features, out_features);
        linear.weight.mark_sharding(mesh, &[Some(axis), None]);
        linear.bias.iter().for_each(|b| drop(b.mark_sharding(mesh, &[Some(axis)])));
        ColumnParallelLinear(linear)
    }
}

/// A [`Linear`] whose inputs are split over an axis of a mesh: each device has some columns of the weight, and what they compute
/// is added up over the axis (Megatron's `RowParallelLinear`).
pub struct RowParallelLinear(pub Linear);

impl RowParallelLinear {
    /// Starts as [`Linear::new`] does. `in_features` is a multiple of the axis' size.
    #[track_caller]
    pub fn new(in_features: usize, out_features: usize, mesh: &Mesh, axis: &str) -> RowParallelLinear {
        let linear = Linear::new(in_features, out_features);
        linear.weight.mark_sharding(mesh, &[None, Some(axis)]);
        linear.bias.iter().for_each(|b| drop(b.mark_sharding(mesh, &[None])));
        RowParallelLinear(linear)
    }
}

/// An [`Embedding`] whose table is split by rows over an axis of a mesh: each device looks up the indices whose vectors it has, and
/// the vectors are added up over the axis, zeros from all others. The table is never gathered, nor is its gradient.
pub struct ParallelEmbedding(pub Embedding);

impl ParallelEmbedding {
    /// Starts as [`Embedding::new`] does. `num_embeddings` is a multiple of the axis' size.
    #[track_caller]
    pub fn new(num_embeddings: usize, embedding_dim: usize, mesh: &Mesh, axis: &str) -> ParallelEmbedding {
        let table = Embedding::new(num_embeddings, embedding_dim);
        table.weight.mark_sharding(mesh, &[Some(axis), None]);
        ParallelEmbedding(table)
    }
}

macro_rules! wraps {
    ($($layer:ident)*) => {$(
        impl Module for $layer {
            #[inline]
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                self.0.forward(x)
            }

            fn parts(&self, p: &mut Parts) {
                self.0.parts(p);
            }
        }
    )*};
}
wraps!(ColumnParallelLinear RowParallelLinear ParallelEmbedding);

/// Lays a model's parameters and buffers out by rules over their names: the first whose pattern fits decides, with `*` for any
/// text, and what none fits is whole on every device. Gives each name with its spec.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let mesh = Mesh::new(&[("data", 4), ("model", 2)]);
/// let net = nn::Sequential::new((nn::Linear::new(8, 16), nn::ReLU, nn::Linear::new(16, 4)));
/// let laid = nn::parallel::shard_parameters(&net, &mesh, &[
///     ("0.weight", &[Some("model"), None]),
///     ("*.weight", &[None, Some("model")]),
/// ]);
/// assert_eq!(laid[0], ("0.weight".to_owned(), "(model, None)".to_owned()));
/// ```
#[track_caller]
pub fn shard_parameters(
    module: &(impl Module + ?Sized),
    mesh: &Mesh,
    rules: &[(&str, &[Option<&str>])],
) -> Vec<(String, String)> {
    let all: Vec<(String, Tensor)> = module.named_parameters().into_iter().chain(module.named_buffers()).collect();
    // All are looked at before the first is laid out.
    let specs: Vec<Vec<Option<&str>>> = all
        .iter()
        .map(|(name, t)| spec_of(name, t.dim(), rules).unwrap_or_else(|why| refuse("shard_parameters", &[t], why)))
        .collect();
    let mut laid = Vec::with_capacity(all.len());
    for ((name, t), spec) in all.into_iter().zip(specs) {
        t.mark_sharding(mesh, &spec);
        let says: Vec<&str> = spec.iter().map(|s| s.unwrap_or("None")).collect();
        laid.push((name, format!("({})", says.join(", "))));
    }
    laid
}

/// Every parameter whole on every device of the mesh: with batches that are split over an axis, each device computes the gradient
/// of its part, and XLA adds them up (`torch.nn.parallel.DistributedDataParallel`).
///
/// ```no_run
/// use xlazy::prelude::*;
/// let mesh = Mesh::new(&[("data", 8)]);
/// let net = nn::Linear::new(8, 16);
/// nn::parallel::data_parallel(&net, &mesh);
/// let x = mark_sharding(&Tensor::randn([64, 8]), &mesh, &[Some("data"), None]);
/// net.forward(&x).sum().backward();
/// ```
#[track_caller]
pub fn data_parallel(module: &(impl Module + ?Sized), mesh: &Mesh) -> Vec<(String, String)> {
    shard_parameters(module, mesh, &[])
}

/// Every parameter split over an axis, along the largest of its dimensions that splits evenly; one with none is whole. With
/// batches that are split over the same axis each device keeps its part of parameters, gradients and the optimizer's state,
/// and XLA gathers a parameter where it is needed (`torch.distributed.fsdp`, torch_xla's `SpmdFullyShardedDataParallel`).
///
/// ```no_run
/// use xlazy::prelude::*;
/// let mesh = Mesh::new(&[("data", 8)]);
/// let net = nn::Linear::new(8, 16);
/// nn::parallel::fsdp(&net, &mesh, "data");
/// let x = mark_sharding(&Tensor::randn([64, 8]), &mesh, &[Some("data"), None]);
/// net.forward(&x).sum().backward();
/// ```
#[track_caller]
pub fn fsdp(module: &(impl Module + ?Sized), mesh: &Mesh, axis: &str) -> Vec<(String, String)> {
    let Some(n) = mesh.axis(axis).map(|a| mesh.axes()[a].1) else {
        refuse("fsdp", &[], format!("{mesh} has no axis `{axis}`"))
    };
    let all: Vec<(String, Tensor)> = module.named_parameters().into_iter().chain(module.named_buffers()).collect();
    let mut rules: Vec<(String, Vec<Option<&str>>)> = Vec::new();
    for (name, t) in all {
        let shape = t.shape();
        let evenly = |d: &usize| shape[*d] > 0 && shape[*d].is_multiple_of(n);
        // The first of those that are as large.
        let along = (0..shape.len()).rev().filter(evenly).max_by_key(|&d| shape[d]);
        rules.push((name, (0..shape.len()).map(|d| (Some(d) == along).then_some(axis)).collect()));
    }
    let rules: Vec<(&str, &[Option<&str>])> = rules.iter().map(|(name, spec)| (&**name, &**spec)).collect();
    shard_parameters(module, mesh, &rules)
}
