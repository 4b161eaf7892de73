//! What the operands of a recorded op are, in a program or in a body.

/// An operand inside a cut: a parameter, or an earlier step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    Leaf(u32),
    Step(u32),
}

impl Input {
    /// What it stands for, of what stands for each leaf and each step.
    pub fn of<T: Clone>(self, leaves: &[T], steps: &[T]) -> T {
        match self {
            Input::Leaf(l) => leaves[l as usize].clone(),
            Input::Step(s) => steps[s as usize].clone(),
        }
    }
}

/// Marks the number of a leaf.
pub(super) const LEAF_BIT: u32 = 1 << 31;
