//! How variables were declared, as far as later cells need to know.
use crate::eval::parse::open::Kind;
use std::collections::HashMap;

/// By their names.
pub type Declared = HashMap<String, Declaration>;

#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    pub cell: u64,
    /// Without `mut`.
    pub fixed: bool,
    /// Where a later cell may decide its type.
    pub open: Option<OpenLet>,
    /// The type of the value that was moved away or lost, as `type_name` has it.
    pub lost: Option<String>,
}

/// A `let` of no effect that leaves a type open.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenLet {
    /// On one line.
    pub text: String,
    /// What it declares.
    pub names: Vec<String>,
    pub kind: Kind,
    /// A value whose type is left open alike: what the cell has made is taken for that.
    pub like: Option<String>,
    /// The arguments of a closure, as `Binding` has them.
    pub closure: Option<Vec<String>>,
    /// It has not run yet: the first cell that mentions one of them runs it.
    pub pending: bool,
}

impl OpenLet {
    /// A number, or what is made of such, that is written once more where it is to be of another type.
    pub fn again(&self, fixed: bool) -> bool {
        self.kind <= Kind::Data && fixed
    }

    /// The `let` of one of its variables, which leaves all others as they are.
    pub fn alone(&self, name: &str) -> String {
        match self.names[..] {
            [_] => self.text.clone(),
            _ => format!("let {name} = {{ {} {name} }};", self.text),
        }
    }
}

impl Declaration {
    pub fn is_pending(&self) -> bool {
        self.open.as_ref().is_some_and(|o| o.pending)
    }
}
