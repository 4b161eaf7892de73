//! Tables of vectors, looked up by index.
use super::init;
use super::module::{Module, Parts, at_caller, parameter};
use crate::tensor::Tensor;
use crate::{BagMode, EmbeddingBagOptions};

/// A vector for each index: [...] whole numbers to [..., dim] (`torch.nn.Embedding`). Starts normal, as torch's does.
///
/// ```
/// use xlazy::prelude::*;
/// let words = nn::Embedding::new(100, 8);
/// assert_eq!(words.forward(&tensor([[1, 5, 7]])).shape(), [1, 3, 8]);
/// let padded = nn::Embedding::new(100, 8).padding_idx(0);
/// assert_eq!(padded.weight.select(0, 0).to_vec::<f32>(), [0.0; 8]);
/// ```
pub struct Embedding {
    /// [count, dim]
    pub weight: Tensor,
    /// An index whose vector gets no gradient.
    pub padding_idx: Option<usize>,
}

impl Embedding {
    #[track_caller]
    pub fn new(num_embeddings: usize, embedding_dim: usize) -> Embedding {
        Embedding { weight: init::normal([num_embeddings, embedding_dim], 1.0), padding_idx: None }
    }

    /// With these vectors, which are trained unless `freeze` (`torch.nn.Embedding.from_pretrained`).
    ///
    /// `nn::Embedding::from_pretrained(&tensor([[1.0, 2.0], [3.0, 4.0]]), true).forward(&tensor([1]))` is `[[3., 4.]]`.
    #[track_caller]
    pub fn from_pretrained(embeddings: &Tensor, freeze: bool) -> Embedding {
        let weight = if freeze { embeddings.detach() } else { parameter(embeddings.clone()) };
        Embedding { weight, padding_idx: None }
    }

    /// The vector of this index becomes zero and stays as it is: it gets no gradient. Negative indices count from the end.
    #[track_caller]
    pub fn padding_idx(self, index: i64) -> Embedding {
        let (weight, place) = zeroed(self.weight, index);
        Embedding { weight, padding_idx: Some(place) }
    }
}

/// The weight with a row of zeros, and which.
#[track_caller]
fn zeroed(weight: Tensor, index: i64) -> (Tensor, usize) {
    let (rows, trained) = (weight.size(0), weight.requires_grad());
    let place = if index < 0 { index + rows as i64 } else { index };
    if place < 0 || place >= rows as i64 {
        crate::tensor::refuse("embedding", &[&weight], format!("padding_idx is {index}, and there are {rows} vectors"));
    }
    // As data, like the rest of what a model begins with.
    let mut values = weight.float().to_vec::<f32>();
    let dim = weight.size(1);
    values[place as usize * dim..(place as usize + 1) * dim].fill(0.0);
    let with_zeros = Tensor::from_vec(values, weight.shape()).to(weight.dtype());
    (with_zeros.requires_grad_(trained), place as usize)
}

impl Module for Embedding {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let y = x.embedding(&self.weight);
        match self.padding_idx {
            Some(index) => y.detach().where_(&x.eq(index as i64).unsqueeze(-1), &y),
            None => y,
        }
    }

    fn parts(&self, p: &mut Parts) {
        self.padding_idx.iter().for_each(|index| p.setting("padding_idx", index));
        p.add("weight", &self.weight);
    }
}

/// Sums of vectors: each bag of indices gives the sum of their vectors (`torch.nn.EmbeddingBag`, mode sum), or their mean or
/// maximum, which is said by [`EmbeddingBag::mode`].
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
    /// How bags are joined, which index counts for nothing, whether the last offset is an end.
    pub options: EmbeddingBagOptions,
}

impl EmbeddingBag {
    #[track_caller]
    pub fn new(num_embeddings: usize, embedding_dim: usize) -> EmbeddingBag {
        let options = EmbeddingBagOptions { mode: BagMode::Sum, ..Default::default() };
        EmbeddingBag { weight: init::normal([num_embeddings, embedding_dim], 1.0), options }
    }

    /// With these vectors, which are trained unless `freeze` (`torch.nn.EmbeddingBag.from_pretrained`); bags are summed.
    ///
    /// `nn::EmbeddingBag::from_pretrained(&tensor([[1.0, 2.0], [3.0, 4.0]]), true).forward(&tensor([[0, 1]]))` is `[[4., 6.]]`.
    #[track_caller]
    pub fn from_pretrained(embeddings: &Tensor, freeze: bool) -> EmbeddingBag {
        let options = EmbeddingBagOptions { mode: BagMode::Sum, ..Default::default() };
        EmbeddingBag { weight: Embedding::from_pretrained(embeddings, freeze).weight, options }
    }

    /// Sum, mean or maximum.
    pub fn mode(mut self, mode: BagMode) -> EmbeddingBag {
        self.options.mode = mode;
        self
    }

    /// The last offset is where the last bag ends.
    pub fn include_last_offset(mut self, on: bool) -> EmbeddingBag {
        self.options.include_last_offset = on;
        self
    }

    /// Indices equal to this count for nothing; its vector becomes zero.
    #[track_caller]
    pub fn padding_idx(self, index: i64) -> EmbeddingBag {
        let (weight, place) = zeroed(self.weight, index);
        EmbeddingBag { weight, options: EmbeddingBagOptions { padding_idx: Some(place as i64), ..self.options } }
    }

    /// All bags in one vector of indices; `offsets`, `[bags]`, says where each begins. Gives `[bags, dim]`; an empty bag is zeros.
    #[track_caller]
    pub fn bags(&self, indices: &Tensor, offsets: &Tensor) -> Tensor {
        self.run(indices, Some(offsets), None)
    }

    /// As [`EmbeddingBag::bags`], each index with a factor of its own (`per_sample_weights`); without offsets each row of a matrix
    /// of indices is a bag.
    #[track_caller]
    pub fn weighted(&self, indices: &Tensor, offsets: Option<&Tensor>, per_sample_weights: &Tensor) -> Tensor {
        self.run(indices, offsets, Some(per_sample_weights))
    }

    #[track_caller]
    fn run(&self, indices: &Tensor, offsets: Option<&Tensor>, factors: Option<&Tensor>) -> Tensor {
        at_caller(|| {
            let (offsets, per_sample_weights) = (offsets.cloned(), factors.cloned());
            let options = EmbeddingBagOptions { offsets, per_sample_weights, ..self.options.clone() };
            indices.embedding_bag(&self.weight, options)
        })
    }
}

impl Module for EmbeddingBag {
    /// A matrix of indices: each row is a bag.
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        match (self.options.mode, self.options.padding_idx) {
            (BagMode::Sum, None) => x.embedding(&self.weight).sum_dim(1, false),
            _ => self.run(x, None, None),
        }
    }

    fn parts(&self, p: &mut Parts) {
        p.setting("mode", &self.options.mode);
        p.unusual("include_last_offset", &self.options.include_last_offset, &false);
        self.options.padding_idx.iter().for_each(|index| p.setting("padding_idx", index));
        p.add("weight", &self.weight);
    }
}
