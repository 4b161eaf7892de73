//! What a value is, without the value: element type and sizes.
mod dtype;
mod shape;

pub use dtype::DType::*;
pub use dtype::{Category, DType, Element, Scalar, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
pub use shape::{Dims, Shape};

/// Dtype and shape of one tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    pub dtype: DType,
    pub shape: Shape,
}

impl Type {
    pub fn new(dtype: DType, shape: Shape) -> Type {
        Type { dtype, shape }
    }

    pub fn bytes(&self) -> usize {
        self.dtype.size() * self.shape.numel()
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}
