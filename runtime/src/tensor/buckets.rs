//! Which dimensions of a tensor are bucketed, and what of its bytes is real.
use super::{Tensor, is_physical};
use xlazy_core::ir::{Bucket, graph};
use xlazy_core::ty::Type;

/// The bucketed dimensions that a tensor shows.
pub(crate) fn buckets_of(x: &Tensor) -> Vec<Bucket> {
    match is_physical() {
        true => Vec::new(),
        false => graph().node(x.id()).buckets().to_vec(),
    }
}

/// Writes down which dimensions of a tensor just traced are bucketed.
pub(crate) fn marked(x: Tensor, buckets: Vec<Bucket>) -> Tensor {
    graph().node_mut(x.id()).set_buckets(buckets);
    x
}

/// What of row-major bytes of the physical type is real.
pub(crate) fn real_bytes(mut bytes: Vec<u8>, ty: &Type, buckets: &[Bucket]) -> Vec<u8> {
    let mut shape = ty.shape.clone();
    for b in buckets {
        let slice = shape[b.dim + 1..].iter().product::<usize>() * ty.dtype.size();
        let block = shape[b.dim] * slice;
        if block > 0 {
            bytes = bytes.chunks_exact(block).flat_map(|c| &c[..b.size * slice]).copied().collect();
        }
        shape[b.dim] = b.size;
    }
    bytes
}
