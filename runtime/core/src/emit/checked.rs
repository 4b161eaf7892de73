//! What a program looks for while it runs.
use crate::options::Numbers;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Looking {
    /// What ops refuse of their operands' elements.
    pub refused: bool,
    /// Which numbers no result may have.
    pub numbers: Numbers,
}

impl Looking {
    pub const FOR_NOTHING: Looking = Looking { refused: false, numbers: Numbers::Any };
}

/// A check that a program makes while it runs.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The way to the step whose op asks for it: its number in the program, and as far as there are bodies in one another, which
    /// one of the op's and the step's number in that.
    pub way: Box<[(u32, u32)]>,
    pub op: &'static str,
    /// The types of the op's operands.
    pub operands: Vec<String>,
    pub looks: Looks,
}

/// What a check looks for.
#[derive(Clone, Debug)]
pub enum Looks {
    /// Elements that the op refuses, for this reason: it gives the greatest.
    For(String),
    /// Numbers that a result may not have: it gives 1, or [`GIVEN`] where an input of the program has such a number already.
    Numbers(Numbers),
}

/// What a check gives where nothing is wrong.
pub const FINE: i64 = i64::MIN;
/// See [`Looks::Numbers`].
pub const MADE: i64 = 1;
/// See [`Looks::Numbers`].
pub const GIVEN: i64 = 2;
