//! Layers of two inputs: how far apart or alike they are, and what is bilinear in them.
use super::init;
use super::module::{Module, Parts, at_caller};
use crate::tensor::Tensor;

/// The cosine of the angle between the vectors along a dimension (`torch.nn.CosineSimilarity`); by default dimension 1.
///
/// ```
/// use xlazy::prelude::*;
/// let x = tensor([[1.0, 0.0]]);
/// assert_eq!(nn::CosineSimilarity::default().forward(&x, &(&x * 3.0)).to_vec::<f32>(), [1.0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CosineSimilarity {
    pub dim: i64,
    pub eps: f64,
}

impl Default for CosineSimilarity {
    fn default() -> CosineSimilarity {
        CosineSimilarity { dim: 1, eps: 1e-8 }
    }
}

impl CosineSimilarity {
    #[track_caller]
    pub fn forward(&self, x1: &Tensor, x2: &Tensor) -> Tensor {
        x1.cosine_similarity(x2, self.dim, self.eps)
    }
}

/// The p-norm of the differences of vectors, along the last dimension (`torch.nn.PairwiseDistance`); by default p is 2.
///
/// `nn::PairwiseDistance::default().forward(&tensor([[0.0, 0.0]]), &tensor([[3.0, 4.0]]))` is `[5.0000]`.
#[derive(Clone, Copy, Debug)]
pub struct PairwiseDistance {
    pub p: f64,
    pub eps: f64,
    pub keepdim: bool,
}

impl Default for PairwiseDistance {
    fn default() -> PairwiseDistance {
        PairwiseDistance { p: 2.0, eps: 1e-6, keepdim: false }
    }
}

impl PairwiseDistance {
    #[track_caller]
    pub fn forward(&self, x1: &Tensor, x2: &Tensor) -> Tensor {
        x1.pairwise_distance(x2, self.p, self.eps, self.keepdim)
    }
}

/// `x1ᵀ A x2 + b` for each output (`torch.nn.Bilinear`).
///
/// ```
/// use xlazy::prelude::*;
/// let layer = nn::Bilinear::new(3, 4, 2);
/// assert_eq!(layer.forward(&Tensor::ones([5, 3]), &Tensor::ones([5, 4])).shape(), [5, 2]);
/// ```
pub struct Bilinear {
    /// [out, in1, in2]
    pub weight: Tensor,
    /// `[out]`
    pub bias: Option<Tensor>,
}

impl Bilinear {
    #[track_caller]
    pub fn new(in1_features: usize, in2_features: usize, out_features: usize) -> Bilinear {
        let bound = init::default_bound(in1_features);
        let weight = init::uniform([out_features, in1_features, in2_features], bound);
        Bilinear { weight, bias: Some(init::uniform([out_features], bound)) }
    }

    /// As with `bias=False`.
    pub fn without_bias(self) -> Bilinear {
        Bilinear { bias: None, ..self }
    }

    #[track_caller]
    pub fn forward(&self, x1: &Tensor, x2: &Tensor) -> Tensor {
        at_caller(|| x1.bilinear(x2, &self.weight, self.bias.as_ref()))
    }
}

impl Module for Bilinear {
    fn parts(&self, p: &mut Parts) {
        p.add("weight", &self.weight);
        p.add("bias", &self.bias);
    }
}
