//! What checks find, on its way out of a program: an i64 scalar each, which leaves loops and branches beside their results.
use super::builder::{Emit, Val};
use super::checked::{Checked, FINE, Looking, Looks};
use crate::ty::{DType, Shape, Type};

/// The type of what a check finds.
pub(super) fn flag() -> Type {
    Type::new(DType::I64, Shape::default())
}

impl Emit {
    /// The same, for a program that looks for this.
    pub fn looking_for(mut self, looking: Looking) -> Emit {
        self.looking = looking;
        self
    }

    /// What is looked for in what is written now.
    pub fn looking(&self) -> Looking {
        self.looking
    }

    /// A step of this number begins, of the program or of this one of its op's bodies, and ends with [`Emit::leave`].
    pub fn enter(&mut self, body: u32, step: u32) {
        self.way.push((body, step));
    }

    pub fn leave(&mut self) {
        self.way.pop();
    }

    /// What a check of the step that is written finds: an i64 scalar, the greater the worse.
    pub fn found(&mut self, flag: Val, op: &'static str, operands: Vec<String>, looks: Looks) {
        let checked = Checked { way: self.way.clone().into(), op, operands, looks };
        self.found.push((flag, checked));
    }

    /// All that was found where this is written, in the order of its steps.
    pub fn take_found(&mut self) -> Vec<(Val, Checked)> {
        std::mem::take(&mut self.found)
    }

    /// Of a check that found nothing.
    pub(super) fn fine(&mut self) -> Val {
        self.constant(FINE as f64, &flag())
    }

    /// Writes what nothing can be told of.
    pub(super) fn unseen<R>(&mut self, write: impl FnOnce(&mut Emit) -> R) -> R {
        let looking = std::mem::replace(&mut self.looking, Looking::FOR_NOTHING);
        let written = write(self);
        self.looking = looking;
        written
    }
}
