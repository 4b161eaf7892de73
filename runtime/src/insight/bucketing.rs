//! What is asked before it is advised to bucket an input: would the ops behind it take it? The answer is given where the
//! bucketing rules are, above this floor (`Proposal::applicable`).
use super::report::Place;
use xlazy_core::ir::Step;
use xlazy_core::ty::Type;

/// A parameter of the program and one of its dimensions, each by its number.
pub(crate) type InputDim = (usize, usize);

/// A parameter of the program, as far as it matters here.
#[derive(Clone, Copy)]
pub(crate) struct Feed<'a> {
    pub ty: &'a Type,
    /// It has this size in every round: a weight, a table, a state.
    pub fixed: bool,
}

/// Whether `inputs`, which change together, can be bucketed in a program that was recorded with plain ones.
pub(crate) struct Proposal<'a> {
    pub steps: &'a [Step],
    pub feeds: Vec<Feed<'a>>,
    pub inputs: Vec<InputDim>,
    pub buckets: &'a [usize],
}

/// Why an input cannot be bucketed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub op: &'static str,
    pub at: Place,
    /// The number of the step that refuses.
    pub step: usize,
    pub message: String,
    /// What stands beside the bucketed operand with a size of its own.
    pub beside: Option<Beside>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Beside {
    /// A parameter of the program.
    Input(InputDim),
    /// What this step makes.
    Step(usize),
}
