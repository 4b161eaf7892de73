//! How variables were declared, as far as later cells need to know.
use crate::eval::parse::open::Kind;
use quote::ToTokens;
use std::collections::{BTreeMap, HashMap};
use syn::{Pat, Type};

/// By their names.
pub type Declared = HashMap<String, Declaration>;

#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    pub cell: u64,
    /// Without `mut`.
    pub fixed: bool,
    /// Where a later cell may decide its type.
    pub open: Option<OpenLet>,
    /// The source of the cell that has decided of what type it is.
    pub made_in: Option<String>,
    /// Variables that it borrows until they are mentioned again, and whether it does so to change them.
    pub views: BTreeMap<String, bool>,
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
    /// Nothing has mentioned it since: it is what its `let` makes.
    pub untouched: bool,
}

/// What the names begin with that stand for lengths.
const LENGTH: &str = "xlazy_length_";

/// What stands for a length in an open `let` whose cell is to compute it.
pub fn measure(at: usize) -> String {
    format!("{LENGTH}{at}_")
}

impl OpenLet {
    /// With the lengths that its cell has computed, by their places; false where one of them is missing.
    pub fn is_measured(&mut self, lengths: &BTreeMap<usize, usize>) -> bool {
        for (at, length) in lengths {
            self.text = self.text.replace(&measure(*at), &length.to_string());
        }
        !self.text.contains(LENGTH)
    }

    /// Whether its `let` can be written once more where it is to be of another type: it is a number, or made of such, or as it was.
    pub fn again(&self, fixed: bool) -> bool {
        (self.kind <= Kind::Data && fixed) || (self.kind <= Kind::Made && self.untouched && self.closure.is_none())
    }

    /// The `let` of one of its variables, which leaves all others as they are.
    pub fn alone(&self, name: &str) -> String {
        match self.names[..] {
            [_] => self.text.clone(),
            _ => format!("let {name} = {{ {} {name} }};", self.text),
        }
    }
}

/// The part of a type that a pattern gives to a name.
fn part<'t>(pattern: &Pat, ty: &'t Type, name: &str) -> Option<&'t Type> {
    match (pattern, ty) {
        (Pat::Ident(p), ty) => (p.ident == name).then_some(ty),
        (Pat::Tuple(patterns), Type::Tuple(types)) => {
            patterns.elems.iter().zip(&types.elems).find_map(|(pattern, ty)| part(pattern, ty, name))
        }
        _ => None,
    }
}

impl Declaration {
    pub fn is_pending(&self) -> bool {
        self.open.as_ref().is_some_and(|o| o.pending)
    }

    /// It has no value yet: `let x;` was all.
    pub fn is_unset(&self) -> bool {
        self.open.as_ref().is_some_and(|o| o.pending && o.kind == Kind::Unset)
    }

    /// The type that its `let` says of the variable of that name.
    pub fn said(&self, name: &str) -> Option<String> {
        let Ok(syn::Stmt::Local(local)) = syn::parse_str(&self.open.as_ref()?.text) else { return None };
        let Pat::Type(typed) = &local.pat else { return None };
        part(&typed.pat, &typed.ty, name).map(|ty| ty.to_token_stream().to_string())
    }
}
