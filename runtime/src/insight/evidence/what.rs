//! A difference that nothing else explains: an input, ops that came or went, attributes, operands, results, buffers.

/// A difference that nothing else explains.
pub(crate) enum What {
    /// An input has another type, or is a number where it was a tensor: `(new, old)`.
    Input(u32, u32),
    /// A tensor is trained and was not, or the other way round: `(new, old)`.
    Trained(u32, u32),
    /// Ops that record gradients and did not, or the other way round: pairs of ops.
    Recorded(Vec<(u32, u32)>),
    /// Ops that came or went, with all that they bring.
    Ops(Ops),
    /// Attributes of a call, though its operands are the same: pairs of ops.
    Attrs(Vec<(u32, u32)>),
    /// An op takes another operand, the one of this number.
    Wiring(u32, u32, usize),
    /// Results that were not asked for, or no longer are, though their ops are in both programs.
    Results,
    /// Buffers that are reused now, or no longer: pairs of leaves.
    Donation(Vec<(u32, u32)>),
    Options,
}

/// Ops that are connected, and that only one of both programs has.
#[derive(Default)]
pub(crate) struct Ops {
    pub new: Vec<u32>,
    pub old: Vec<u32>,
    /// Those that take nothing of the others: where they begin. New ones first.
    pub heads_new: Vec<u32>,
    pub heads_old: Vec<u32>,
    /// Inputs that only these ops take.
    pub gains: Vec<u32>,
    pub loses: Vec<u32>,
    /// Inputs that stand where the other program computed the same thing: `(new input, old op)`.
    pub given: Vec<(u32, u32)>,
    /// All of them are gradients or updates, which follow from other ops where there are any.
    pub derived: bool,
}

pub(super) struct Root {
    pub what: What,
    /// How many differences there are with those that follow from it.
    pub weight: usize,
    /// Of these, positions that moved with a size: pairs of ops.
    pub moved: Vec<(u32, u32)>,
}

impl Root {
    pub fn of(what: What, weight: usize) -> Root {
        Root { what, weight, moved: vec![] }
    }
}
