//! What a cell is when it has been taken apart.
use super::checks::FnValue;
use super::elsewhere::{Assumed, Seen};
use super::expand::Macro;
use super::items::{Call, Item, Space};
use super::places::Places;
use super::statements::Mark;
use crate::eval::text::source::{CellText, Fact, Splice, blanked};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// A `use` declaration, or one leaf of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// The name it binds; the path itself for a glob or an `as _`.
    pub binds: String,
    /// As it is repeated in later cells, with attributes left out.
    pub text: String,
    /// Where it meets an item of that name, what it imports: a type, a value, or both. Only rustc knows.
    pub space: Space,
}

impl Use {
    /// Whether what it imports is the standard library's.
    pub fn is_of_std(&self) -> bool {
        ["use std::", "use ::std::", "use core::"].iter().any(|p| self.text.starts_with(p))
    }

    /// Whether it takes the place of this item, or the item its.
    pub fn meets(&self, item: &Item) -> bool {
        self.space.meets(item.space) && item.names.contains(&self.binds)
    }
}

/// A variable that the cell declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    pub name: String,
    /// The arguments' types as they are written (`_` where none is), when it is bound to a closure written in place.
    pub closure: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default)]
pub struct Parsed {
    pub items: Vec<Item>,
    pub uses: Vec<Use>,
    pub use_ranges: Vec<Range<usize>>,
    pub macros: Vec<Macro>,
    /// Calls of macros that make items.
    pub calls: Vec<Expanded>,
    /// Calls of other crates' macros, and what those are taken to make.
    pub elsewhere: Vec<Seen>,
    pub(super) assumed: Arc<Assumed>,
    /// Why it is not compiled at all: where, what to say, and what to write below it.
    pub refusal: Option<(Range<usize>, String, String)>,
    pub inner_attributes: Vec<Range<usize>>,
    pub bindings: Vec<Binding>,
    /// Names that the cell declares before it mentions them otherwise: what they were before does not matter.
    pub rebound: BTreeSet<String>,
    /// Variables that have the names of what Rust lets no variable be called: constants, statics, structs without braces and variants, of
    /// earlier cells, whose place they take.
    pub shadows: BTreeSet<String>,
    pub trailing: Option<Range<usize>>,
    /// Where each statement begins.
    pub statements: Vec<usize>,
    /// All that the statements do is to name variables: they show, and change nothing.
    pub only_shows: bool,
    pub has_statements: bool,
    /// Interrupt checks in the statements.
    pub edits: Vec<Splice>,
    /// Functions that the statements name without calling them, as in `.map(Tensor::relu)`.
    pub values: Vec<FnValue>,
    /// Where the statements may say which of them runs.
    pub marks: Vec<Mark>,
    /// What the session is to know of the statements.
    pub syntax: Vec<Fact>,
    /// Names that the statements mention.
    pub mentions: BTreeSet<String>,
    /// Names used bare where a value is moved, and never bound in the cell; and whether only as a method's receiver.
    pub moved: BTreeMap<String, bool>,
    /// Where the cell ends early: each `return`.
    pub returns: Vec<Range<usize>>,
    /// Every place where a name stands alone and its value is taken.
    pub taken: Vec<(String, Range<usize>)>,
    /// Closures that take what they mention with them, and what that is.
    pub captures: Vec<(Range<usize>, BTreeSet<String>)>,
    /// Where its statements name variables.
    pub places: Places,
    /// Variables that are declared before all statements, and have values later.
    pub later: Vec<String>,
    /// Names that the macro of the statement at hand declares.
    pub(super) bound_by_macro: Vec<String>,
    /// Macros whose calls were expanded.
    pub(super) called: BTreeSet<String>,
    /// How much they made: a macro may call itself without end.
    pub(super) expanded: usize,
    /// For what a macro made: the call, and how many macros deep.
    pub(super) within: Option<(Arc<CellText>, Range<usize>, usize)>,
}

/// The call of a macro of the notebook, in the place of which stands what it makes.
#[derive(Clone, Debug)]
pub struct Expanded {
    pub call: Arc<Call>,
    /// Imports and macros that it makes.
    pub(super) text: String,
}

impl Expanded {
    /// The items of the call stand elsewhere; imports and macros stay in its place.
    pub fn edit(&self) -> Splice {
        let Call { cell, range, .. } = &*self.call;
        Splice::replace(range.clone(), format!("{}{}", self.text, blanked(&cell.text[range.clone()])))
    }

    pub fn makes(&self, u: &Use) -> bool {
        self.text.contains(&u.text)
    }
}

impl Parsed {
    /// Whether a name is the cell's own: one that a macro brings is known to the macro alone.
    pub(super) fn is_written(&self, cell: &Arc<CellText>, at: usize) -> bool {
        let Some((of, range, _)) = &self.within else { return true };
        cell.written(at..at + 1).iter().any(|(_, text, at)| Arc::ptr_eq(text, of) && range.contains(at))
    }

    /// Where the statement begins that a place is in.
    pub fn statement(&self, at: usize) -> Option<usize> {
        self.statements.iter().rev().find(|from| **from <= at).copied()
    }

    /// The variables that stand in one statement with this one, or with one that does so; it is among them.
    pub fn beside(&self, number: usize) -> BTreeSet<usize> {
        let places = &self.places;
        // A macro that nobody has taken apart may put anything anywhere.
        if places.variables.iter().any(|v| v.odd) {
            return (0..places.variables.len()).collect();
        }
        let assigned = places.assignments.iter().map(|a| (a.variable, a.whole.start));
        let declared = places.variables.iter().enumerate().filter_map(|(n, v)| Some((n, v.begins?)));
        let there: Vec<(usize, Option<usize>)> =
            places.named().chain(assigned).chain(declared).map(|(n, at)| (n, self.statement(at))).collect();
        let (mut found, mut open) = (BTreeSet::from([number]), vec![number]);
        while let Some(next) = open.pop() {
            let statements: BTreeSet<_> = there.iter().filter(|(n, _)| *n == next).map(|(_, at)| *at).collect();
            let beside = there.iter().filter(|(_, at)| statements.contains(at)).map(|(n, _)| *n);
            open.extend(beside.filter(|n| found.insert(*n)).collect::<Vec<_>>());
        }
        found
    }

    /// Macros that the cell's statements have before them: those that are written out, or made by a call.
    pub fn macros_at_hand(&self, cell: &Arc<CellText>) -> impl Iterator<Item = &Macro> {
        let made = |m: &Macro| self.calls.iter().any(|c| c.text.contains(&m.text));
        self.macros.iter().filter(move |m| Arc::ptr_eq(&m.source, cell) || made(m))
    }

    /// Macros that are written out in the cell.
    pub fn macros_in(&self, cell: &Arc<CellText>) -> impl Iterator<Item = &Macro> {
        self.macros.iter().filter(|m| Arc::ptr_eq(&m.source, cell))
    }
}

/// The leaves of a `use`, each as a declaration of its own.
pub(super) fn flatten_use(tree: &syn::UseTree, prefix: &str, out: &mut Vec<Use>) {
    let mut leaf =
        |binds: String, path: String| out.push(Use { binds, text: format!("use {path};"), space: Space::default() });
    match tree {
        syn::UseTree::Path(p) => {
            let prefix = format!("{prefix}{}::", p.ident);
            flatten_use(&p.tree, &prefix, out)
        }
        syn::UseTree::Name(n) if n.ident == "self" => {
            let path = prefix.trim_end_matches("::");
            let name = path.rsplit("::").next().unwrap_or(path).to_owned();
            leaf(name, format!("{prefix}{{self}}"))
        }
        syn::UseTree::Name(n) => leaf(n.ident.to_string(), format!("{prefix}{}", n.ident)),
        syn::UseTree::Rename(r) => {
            let source = if r.ident == "self" {
                format!("{prefix}{{self as {}}}", r.rename)
            } else {
                format!("{prefix}{} as {}", r.ident, r.rename)
            };
            let binds = if r.rename == "_" { format!("{prefix}{} as _", r.ident) } else { r.rename.to_string() };
            leaf(binds, source)
        }
        syn::UseTree::Glob(_) => leaf(format!("{prefix}*"), format!("{prefix}*")),
        syn::UseTree::Group(g) => g.items.iter().for_each(|t| flatten_use(t, prefix, out)),
    }
}
