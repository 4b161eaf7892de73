//! Tables of vectors, looked up by index.
use super::init;
use super::module::{Module, Parts};
use crate::tensor::Tensor;
use xlazy_core::ty::DType;

/// A vector for each index: [...] whole numbers to [..., dim] (`torch.nn.Embedding`). Starts normal, as torch's does.
///
/// ```
/// use xlazy::prelude::*;
/// let words = nn::Embedding::new(100, 8);
/// assert_eq!(words.forward(&tensor([[1, 5, 7]])).shape(), [1, 3, 8]);
/// ```
pub struct Embedding {
    /// [count, dim]
    pub weight: Tensor,
}

impl Embedding {
    #[track_caller]
    pub fn new(num_embeddings: usize, embedding_dim: usize) -> Embedding {
        Embedding { weight: init::normal([num_embeddings, embedding_dim], 1.0) }
    }
}

impl Module for Embedding {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.embedding(&self.weight)
    }

    fn parts(&self, p: &mut Parts) {
        p.add("weight", &self.weight);
    }
}

/// Sums of vectors: each bag of indices gives the sum of their vectors (`torch.nn.EmbeddingBag`, mode sum).
///
/// ```
/// use xlazy::prelude::*;
/// let table = nn::EmbeddingBag::new(10, 4);
/// let sums = table.bags(&tensor([1, 2, 7, 7]), &tensor([0, 3, 3]));
/// assert_eq!(sums.shape(), [3, 4]);
/// ```
pub struct EmbeddingBag {
    /// [count, dim]
    pub weight: Tensor,
}

impl EmbeddingBag {
    #[track_caller]
    pub fn new(num_embeddings: usize, embedding_dim: usize) -> EmbeddingBag {
        EmbeddingBag { weight: init::normal([num_embeddings, embedding_dim], 1.0) }
    }

    /// All bags in one vector of indices; `offsets`, `[bags]`, says where each begins. Gives `[bags, dim]`; an empty bag is zeros.
    #[track_caller]
    pub fn bags(&self, indices: &Tensor, offsets: &Tensor) -> Tensor {
        let rows = indices.embedding(&self.weight);
        // The bag of a place is the last one that has begun: that passes over empty bags.
        let places = Tensor::arange(0, indices.numel(), 1);
        let begun = places.unsqueeze(0).ge(offsets.unsqueeze(1)).to(DType::I64);
        let bag = begun.sum_dim(0, false) - 1;
        let zeros = Tensor::zeros([offsets.numel(), self.weight.size(1)]).to(self.weight.dtype());
        zeros.index_add(0, &bag, &rows)
    }
}

impl Module for EmbeddingBag {
    /// A matrix of indices: each row is a bag.
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.embedding(&self.weight).sum_dim(1, false)
    }

    fn parts(&self, p: &mut Parts) {
        p.add("weight", &self.weight);
    }
}
