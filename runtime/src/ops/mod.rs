//! The table of ops. One file per theme; an op is one entry (type rule, lowering, gradient, samples) beside its `Tensor`
//! method. Composite methods are plain functions over other methods, in the same files.
mod activation;
mod base;
mod binary;
mod compare;
mod create;
mod linalg;
mod operators;
mod random;
mod reduce;
mod unary;
mod view;

use crate::op::OpDef;

pub(crate) use base::{ALIAS, DATA, SCALAR};
pub use compare::where_;
pub use create::{Literal, tensor};
pub use random::manual_seed;
pub use view::{cat, stack};

/// Every op there is, by theme.
pub fn table() -> impl Iterator<Item = &'static OpDef> {
    let themes: [&[&'static OpDef]; _] = [
        base::OPS,
        unary::OPS,
        activation::OPS,
        binary::OPS,
        compare::OPS,
        reduce::OPS,
        view::OPS,
        linalg::OPS,
        create::OPS,
        random::OPS,
    ];
    themes.into_iter().flat_map(|t| t.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::table;
    use std::collections::HashMap;

    #[test]
    fn names_and_ids_are_unique() {
        let mut seen = HashMap::new();
        for op in table() {
            assert_eq!(seen.insert(op.id, op.name), None, "{} has the id of another op", op.name);
        }
    }
}
