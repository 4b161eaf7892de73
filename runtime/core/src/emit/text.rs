//! Types, lists and numbers as MLIR writes them.
use crate::ty::{Category, DType, Scalar, Type};
use std::fmt::Write;

/// `tensor<2x3xf32>`
pub(super) fn mlir(ty: &Type) -> impl std::fmt::Display + '_ {
    struct Mlir<'a>(&'a Type);
    impl std::fmt::Display for Mlir<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
            f.write_str("tensor<")?;
            for d in self.0.shape.iter() {
                write!(f, "{d}x")?;
            }
            write!(f, "{}>", self.0.dtype.mlir())
        }
    }
    Mlir(ty)
}

pub(super) fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::new();
    for (i, x) in items.into_iter().enumerate() {
        let _ = write!(out, "{}{x}", if i > 0 { ", " } else { "" });
    }
    out
}

/// A number as an MLIR literal of a dtype, exact for floats.
pub(super) fn literal(v: f64, dtype: DType) -> String {
    match dtype.category() {
        Category::Bool => (v != 0.0).to_string(),
        Category::Int => format!("{}", v as i64),
        Category::Complex => format!("({}, {})", literal(v, dtype.part()), literal(0.0, dtype.part())),
        Category::Float if v.is_finite() => {
            let text = format!("{v:e}");
            // MLIR wants a point in every float: `1e0` is an integer to it, `3.2e1` is none
            if text.contains('.') { text } else { text.replace('e', ".0e") }
        }
        Category::Float => {
            let bits = dtype.format().bits(Scalar::Float(v));
            format!("0x{bits:0width$X}", width = dtype.size() * 2)
        }
    }
}
