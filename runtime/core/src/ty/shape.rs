//! Shapes: sizes of a tensor's dimensions, broadcasting, negative dimensions.
use crate::{Error, Result};
use smallvec::SmallVec;

/// The sizes of a tensor's dimensions; reads like a slice of `usize`.
#[derive(Eq, Default)]
pub struct Shape(SmallVec<[usize; 4]>);

impl Clone for Shape {
    // The derived one goes element by element, and every op copies a few shapes.
    #[inline]
    fn clone(&self) -> Shape {
        Shape(SmallVec::from_slice(&self.0))
    }
}

impl PartialEq for Shape {
    // The derived one calls `memcmp`, for mostly two or three numbers of every op.
    #[inline]
    fn eq(&self, other: &Shape) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a == b)
    }
}

impl std::hash::Hash for Shape {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state)
    }
}

impl std::ops::Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl std::ops::DerefMut for Shape {
    fn deref_mut(&mut self) -> &mut [usize] {
        &mut self.0
    }
}

impl Shape {
    pub fn new(dims: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(dims))
    }

    /// How many elements a tensor of this shape has.
    pub fn numel(&self) -> usize {
        self.0.iter().product()
    }

    pub fn push(&mut self, size: usize) {
        self.0.push(size);
    }

    pub fn insert(&mut self, at: usize, size: usize) {
        self.0.insert(at, size);
    }

    pub fn remove(&mut self, at: usize) -> usize {
        self.0.remove(at)
    }

    /// Where `start..end` of a dimension of `n` elements begins and ends: negative positions count from the end, those beyond it
    /// are cut off, and what would end before it begins is empty.
    pub fn span(n: i64, start: i64, end: i64) -> (i64, i64) {
        let at = |p: i64| (if p < 0 { p + n } else { p }).clamp(0, n);
        (at(start), at(end).max(at(start)))
    }

    /// A dimension counted from the front (0…) or from the back (-1…) as an index; `extra` allows that many positions
    /// more than there are dimensions (1 for `unsqueeze`).
    pub fn dim_of(rank: usize, dim: i64, extra: usize) -> std::result::Result<usize, String> {
        let n = (rank + extra) as i64;
        // torch lets a scalar have dimension 0 and -1
        let n = if n == 0 { 1 } else { n };
        if (-n..n).contains(&dim) {
            Ok(if dim < 0 { dim + n } else { dim } as usize)
        } else {
            Err(format!("dimension {dim} is out of range: expected {} to {}", -n, n - 1))
        }
    }

    /// Whether only dimensions of size 1 have to grow for it to be the other.
    pub fn broadcasts_to(&self, to: &Shape) -> bool {
        self.broadcast(to).is_some_and(|both| both == *to)
    }

    /// The shape that both broadcast to, if there is one.
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        if self == other {
            return Some(self.clone());
        }
        let (long, short) = if self.len() >= other.len() { (self, other) } else { (other, self) };
        let mut out = long.clone();
        let skip = long.len() - short.len();
        for (i, &s) in short.iter().enumerate() {
            let l = &mut out[skip + i];
            match (*l, s) {
                (a, b) if a == b => {}
                (1, b) => *l = b,
                (_, 1) => {}
                _ => return None,
            }
        }
        Some(out)
    }

    /// Elements to step over for one step in each dimension, row-major.
    pub fn strides(&self) -> Vec<usize> {
        let mut out = vec![1; self.len()];
        for i in (1..self.len()).rev() {
            out[i - 1] = out[i] * self[i];
        }
        out
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { "," } else { "" })?;
        }
        f.write_str("]")
    }
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        **self == other[..]
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        **self == *other
    }
}

/// Sizes or dimensions as user code writes them: `[2, 3]`, `vec![n, 3]`, `3`, `&shape`; -1 where a method allows it.
#[derive(Clone, Default, PartialEq)]
pub struct Dims(pub Vec<i64>);

/// As it is written: `3` or `[2, 3]`.
impl std::fmt::Debug for Dims {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.0.as_slice() {
            [one] => write!(f, "{one}"),
            all => write!(f, "{all:?}"),
        }
    }
}

impl Dims {
    /// As a shape: no size may be negative.
    pub fn shape(&self, op: &'static str) -> Result<Shape> {
        let mut out = Shape::default();
        for &d in &self.0 {
            if d < 0 {
                let message = format!("a size of {d} in {:?}: sizes must be 0 or more", self.0);
                return Err(Error::Op { op, operands: vec![], message });
            }
            out.push(d as usize);
        }
        Ok(out)
    }
}

macro_rules! dims_from {
    ($($t:ty),*) => {$(
        impl From<$t> for Dims {
            fn from(v: $t) -> Dims {
                Dims(vec![v as i64])
            }
        }
        impl<const N: usize> From<[$t; N]> for Dims {
            fn from(v: [$t; N]) -> Dims {
                Dims(v.iter().map(|&d| d as i64).collect())
            }
        }
        impl<const N: usize> From<&[$t; N]> for Dims {
            fn from(v: &[$t; N]) -> Dims {
                Dims(v.iter().map(|&d| d as i64).collect())
            }
        }
        impl From<&[$t]> for Dims {
            fn from(v: &[$t]) -> Dims {
                Dims(v.iter().map(|&d| d as i64).collect())
            }
        }
        impl From<Vec<$t>> for Dims {
            fn from(v: Vec<$t>) -> Dims {
                Dims(v.iter().map(|&d| d as i64).collect())
            }
        }
    )*};
}
dims_from!(i32, i64, usize);

/// A number that may be a size, or -1 for what is left.
pub trait Size: Copy {
    fn size(self) -> i64;
}

macro_rules! sizes {
    ($($t:ty),*) => {$(
        impl Size for $t {
            fn size(self) -> i64 {
                self as i64
            }
        }
    )*};
}
sizes!(i32, i64, usize);

/// Tuples, as torch has them: `(2, 3)`, and of several types: `(-1, x.size(1))`.
macro_rules! dims_from_tuples {
    ($(($($name:ident)*))*) => {$(
        impl<$($name: Size),*> From<($($name,)*)> for Dims {
            #[allow(non_snake_case)]
            fn from(($($name,)*): ($($name,)*)) -> Dims {
                Dims(vec![$($name.size()),*])
            }
        }
    )*};
}
dims_from_tuples!((A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F));

impl From<()> for Dims {
    fn from(_: ()) -> Dims {
        Dims(vec![])
    }
}

impl From<&Shape> for Dims {
    fn from(v: &Shape) -> Dims {
        Dims(v.iter().map(|&d| d as i64).collect())
    }
}

impl From<Shape> for Dims {
    fn from(v: Shape) -> Dims {
        Dims::from(&v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_is_torchs() {
        let s = |d: &[usize]| Shape::new(d);
        assert_eq!(s(&[3, 1]).broadcast(&s(&[4])), Some(s(&[3, 4])));
        assert_eq!(s(&[]).broadcast(&s(&[2])), Some(s(&[2])));
        assert_eq!(s(&[2]).broadcast(&s(&[3])), None);
        assert_eq!(s(&[0]).broadcast(&s(&[1])), Some(s(&[0])));
        assert_eq!(Shape::dim_of(2, -1, 0), Ok(1));
        assert!(Shape::dim_of(2, 2, 0).is_err());
    }
}
