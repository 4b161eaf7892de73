//! What a value is, without the value: element type and sizes.
mod dtype;
mod format;
mod interned;
mod number;
mod shape;

pub use dtype::DType::*;
pub use dtype::{DType, Element};
pub use format::Format;
pub use interned::TypeRef;
pub use number::{Category, Scalar};
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
