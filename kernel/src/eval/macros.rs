//! Macros of the notebook, and what their calls make of a cell: items, or variables.
use super::depth;
use super::expand::{Copied, expand};
use super::hygiene::told_apart;
use super::items::{Call, arguments};
use super::scan::{self, Kind, Token};
use super::source::{CellText, Edit, blanked};
use super::split::{self, Item, Parsed, Use, bytes, one_line};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use syn::Stmt;
use syn::parse::Parser;
use syn::spanned::Spanned;

#[derive(Clone, Debug)]
pub struct Macro {
    pub name: String,
    /// On one line and without comments.
    pub text: String,
    pub mentions: BTreeSet<String>,
    pub source: Arc<CellText>,
    pub range: Range<usize>,
}

impl PartialEq for Macro {
    fn eq(&self, other: &Macro) -> bool {
        self.name == other.name && self.text == other.text
    }
}

/// The call of a macro of the notebook, in the place of which stands what it makes.
#[derive(Clone, Debug)]
pub struct Expanded {
    pub call: Arc<Call>,
    /// Imports and macros that it makes.
    text: String,
}

impl Expanded {
    /// The items of the call stand elsewhere; imports and macros stay in its place.
    pub fn edit(&self) -> Edit {
        let Call { cell, range, .. } = &*self.call;
        Edit::replace(range.clone(), format!("{}{}", self.text, blanked(&cell.text[range.clone()])))
    }

    pub fn makes(&self, u: &Use) -> bool {
        self.text.contains(&u.text)
    }
}

/// What a call makes with these macros; `None` where that is not items alone.
pub fn made_by(call: &Call, macros: &[Macro]) -> Option<Parsed> {
    let made = split::parse(&call.cell, call.range.clone(), macros).ok()?;
    (!made.has_statements && !made.items.is_empty()).then_some(made)
}

/// What a macro of the notebook makes.
pub(super) enum Made {
    Items,
    Statements,
    /// Statements, the last of which is an expression.
    Value,
}

/// The macro that a name means: the latest.
pub(super) fn known<'m>(own: &'m [Macro], earlier: &'m [Macro], name: &str) -> Option<&'m Macro> {
    own.iter().rev().chain(earlier.iter().rev()).find(|m| m.name == name)
}

/// Documentation as the attributes that it is to a macro.
fn with_docs(cell: &Arc<CellText>, arguments: Range<usize>) -> (Arc<CellText>, Range<usize>) {
    let documents = |t: Token| {
        let comment = cell.text[arguments.start + t.range.start..arguments.start + t.range.end].to_owned();
        let line = comment.strip_prefix("///").filter(|c| !c.starts_with('/'));
        let block = || comment.strip_prefix("/**")?.strip_suffix("*/").filter(|c| !c.starts_with('*'));
        let doc = line.or_else(block).filter(|_| t.kind == Kind::Comment)?;
        Some((t.range.clone(), format!("#[doc = {doc:?}]")))
    };
    let docs: Vec<(Range<usize>, String)> =
        scan::tokens(&cell.text[arguments.clone()]).into_iter().filter_map(documents).collect();
    if docs.is_empty() {
        return (cell.clone(), arguments);
    }
    let (mut text, mut parts, mut from) = (String::new(), Vec::new(), arguments.start);
    let mut copy = |text: &mut String, range: Range<usize>| {
        let at = text.len()..text.len() + range.len();
        text.push_str(&cell.text[range.clone()]);
        parts.push((at, cell, range.start));
    };
    for (at, doc) in docs {
        copy(&mut text, from..arguments.start + at.start);
        text.push_str(&doc);
        from = arguments.start + at.end;
    }
    copy(&mut text, from..arguments.end);
    let len = text.len();
    (Arc::new(CellText::copied(cell.cell, text, parts.into_iter())), 0..len)
}

impl Parsed {
    /// Puts what the call of a notebook's macro makes in its place, where that is items. Of statements, it takes down which
    /// variables they declare. `None` for any other macro.
    pub(super) fn expand(
        &mut self,
        cell: &Arc<CellText>,
        base: usize,
        call: &syn::Macro,
        whole: Range<usize>,
        macros: &[Macro],
    ) -> Option<Made> {
        /// As deep as rustc goes.
        const DEEPEST: usize = 128;
        const MOST: usize = 1 << 21;
        const LONGEST: usize = 1 << 16;
        let name = call.path.segments.last()?.ident.to_string();
        let rules = known(&self.macros, macros, &name)?;
        let (given, arguments) = with_docs(cell, arguments(call, base));
        let made = expand(&rules.source, rules.range.clone(), &given, arguments)?;
        self.expanded += made.text.len() + 100;
        if made.text.len() > LONGEST || !depth::fits(&made.text) {
            return None;
        }
        let mut made = told_apart(made, &name, &|name| known(&self.macros, macros, name));
        let single = std::mem::take(&mut made.whole);
        let parts = made.parts.into_iter().map(|(at, from)| match from {
            Copied::Rules(start) => (at, &rules.source, start),
            Copied::Call(start) => (at, &given, start),
        });
        let mut text = CellText::copied(cell.cell, made.text, parts);
        text.whole = single;
        let text = Arc::new(text);
        let (of, at, deep) = self.within.clone().unwrap_or_else(|| (cell.clone(), whole, 0));
        let statements =
            syn::Block::parse_within.parse_str(&text.text).ok().filter(|_| deep < DEEPEST && self.expanded < MOST)?;
        let known: Vec<Macro> = macros.iter().chain(&self.macros).cloned().collect();
        let (within, expanded) = (Some((of.clone(), at.clone(), deep + 1)), self.expanded);
        let mut inside = Parsed { only_shows: true, within, expanded, ..Parsed::default() };
        statements.iter().for_each(|s| inside.add(&text, 0, s, &known, false));
        self.expanded = inside.expanded;
        self.called.append(&mut inside.called);
        self.called.insert(name.clone());
        self.refusal = self.refusal.take().or(inside.refusal);
        if inside.has_statements {
            for b in inside.bindings {
                self.bindings.retain(|x| x.name != b.name);
                self.bindings.push(b);
            }
            let handed = |i: &&Item| i.names.iter().any(|n| scan::mentions(&of.text[at.clone()]).contains(n));
            if let Some(item) = inside.items.iter().find(handed) {
                let what = format!(
                    "`{name}!` makes {} beside statements, and it would be gone after this cell",
                    item.in_words()
                );
                let advice = "make it two macros: one for the items, one for the statements";
                self.refusal.get_or_insert((at, what, advice.to_owned()));
            }
            if deep == 0 {
                self.called.clear();
            }
            let value = matches!(statements.last(), Some(Stmt::Expr(_, None)));
            return Some(if value { Made::Value } else { Made::Statements });
        }
        if deep == 0 {
            let macros = std::mem::take(&mut self.called);
            let call = Arc::new(Call { macros, cell: of, range: at });
            inside.items.iter_mut().for_each(|i| i.call = Some(call.clone()));
            let uses = inside.uses.iter().map(|u| &u.text);
            let text = uses.chain(inside.macros.iter().map(|m| &m.text)).map(|t| format!("{t} ")).collect();
            self.calls.push(Expanded { call, text });
        }
        // Their places are in what the macro made.
        inside.items.iter_mut().for_each(|i| i.conditions.clear());
        self.items.append(&mut inside.items);
        self.uses.append(&mut inside.uses);
        self.macros.append(&mut inside.macros);
        Some(Made::Items)
    }

    /// Whether a name is the cell's own: one that a macro brings is known to the macro alone.
    pub(super) fn is_written(&self, cell: &Arc<CellText>, at: usize) -> bool {
        let Some((of, range, _)) = &self.within else { return true };
        cell.written(at..at + 1).iter().any(|(_, text, at)| Arc::ptr_eq(text, of) && range.contains(at))
    }

    /// Macros that a module gives away: all of one with `#[macro_use]`, and those with `#[macro_export]`.
    pub(super) fn add_macros_of(&mut self, cell: &Arc<CellText>, base: usize, item: &syn::Item) {
        let syn::Item::Mod(module) = item else { return };
        let says = |attributes: &[syn::Attribute], what: &str| attributes.iter().any(|a| a.path().is_ident(what));
        let used = says(&module.attrs, "macro_use");
        for inner in module.content.iter().flat_map(|(_, items)| items) {
            match inner {
                syn::Item::Macro(m) if used || says(&m.attrs, "macro_export") => {
                    let Some(name) = m.ident.as_ref().map(syn::Ident::to_string) else { continue };
                    let at = bytes(m.mac.path.span(), base).start..bytes(m.span(), base).end;
                    let text = &cell.text[at.clone()];
                    let (line, mentions) = (one_line(text), scan::mentions(text));
                    let parts = [(0..text.len(), cell, at.start)].into_iter();
                    let source = Arc::new(CellText::copied(cell.cell, text.to_owned(), parts));
                    let range = 0..text.len();
                    self.macros.retain(|m| m.name != name);
                    self.macros.push(Macro { name, text: line, mentions, source, range });
                }
                syn::Item::Mod(_) if used => self.add_macros_of(cell, base, inner),
                _ => {}
            }
        }
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
