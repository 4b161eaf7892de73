//! Shapes that a sharding does not split evenly, which are refused.
use super::Sharding;
use crate::ty::Shape;

impl Sharding {
    /// The first dimension of this shape that is not split evenly.
    pub fn uneven(&self, shape: &Shape) -> Option<usize> {
        (0..self.rank()).find(|&d| !shape[d].is_multiple_of(self.parts(d)))
    }

    /// What to say of a shape that is not split evenly.
    pub fn why_uneven(&self, shape: &Shape) -> Option<String> {
        let d = self.uneven(shape)?;
        let (size, parts) = (shape[d], self.parts(d));
        Some(format!(
            "dimension {d} of size {size} does not split evenly in {parts} parts, as {self} of {} asks for: pad it to {}, or split \
             another dimension",
            self.mesh(),
            size.div_ceil(parts) * parts
        ))
    }
}
