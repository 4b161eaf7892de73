//! Calls of other crates' macros: whether they make items or are statements, only rustc knows. Here is what they look like.
use super::expand::Macro;
use super::facts;
use super::publish;
use super::syntax::bytes;
use crate::eval::text::scan::{self, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use syn::spanned::Spanned;

/// What the call of a macro is taken to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Makes {
    /// Items, with `pub` where the words for it are.
    Public,
    /// Items of which some are written for what the call names, as an `impl` is: they stand beside that.
    Beside,
    Statement,
}

/// By the macro's name.
pub type Assumed = BTreeMap<String, Makes>;

/// A call where either may stand.
#[derive(Clone, Debug)]
pub struct Seen {
    pub name: String,
    /// As it is called, without blanks.
    pub path: String,
    /// That, and its words in front of a brace or a colon: a call of the same takes its place, where that says
    /// nothing of names.
    pub told: String,
    /// Where it is, or the call of the notebook's macro that makes it.
    pub at: Range<usize>,
    /// What it names.
    pub mentions: BTreeSet<String>,
    /// Its words are one item after the other.
    pub items: bool,
    /// It may well make items.
    pub like_items: bool,
}

impl Seen {
    /// What it is taken for where nobody has tried.
    pub fn by_its_words(&self) -> Makes {
        if self.items { Makes::Public } else { Makes::Statement }
    }
}

/// The call of a macro that is not the notebook's.
pub(super) fn seen<'m>(
    text: &str,
    base: usize,
    call: &syn::StmtMacro,
    at: Range<usize>,
    known: &dyn Fn(&str) -> Option<&'m Macro>,
) -> Option<Seen> {
    const KEYWORDS: [&str; 9] = ["const", "enum", "fn", "impl", "mod", "static", "struct", "trait", "type"];
    let name = call.mac.path.segments.last()?.ident.to_string();
    // What `quote!` and its like make of items is a value.
    if known(&name).is_some() || name.contains("quote") {
        return None;
    }
    let path: String = text[bytes(call.mac.path.span(), base)].split_whitespace().collect();
    let inside = &text[bytes(call.mac.tokens.span(), base)];
    let items = publish::begins_an_item(inside);
    let braces = matches!(call.mac.delimiter, syn::MacroDelimiter::Brace(_));
    let tokens: Vec<_> = scan::tokens(inside).into_iter().filter(|t| t.kind != Kind::Comment).collect();
    let keyword = |t: &scan::Token| t.kind == Kind::Ident && KEYWORDS.contains(&&inside[t.range.clone()]);
    // Names and what stands between them: no values, and nothing that is called.
    let plain = |t: &scan::Token| match t.kind {
        Kind::Punct(c) => ":,;=<>#".contains(c),
        Kind::Literal => false,
        _ => true,
    };
    let of_names = !tokens.is_empty() && tokens.iter().all(plain);
    let like_items = items || braces || of_names || tokens.iter().any(keyword);
    let mentions = scan::mentions(inside);
    let is = |i: usize, c: char| tokens.get(i).is_some_and(|t| t.kind == Kind::Punct(c));
    let ends = |i: &usize| match tokens[*i].kind {
        Kind::Open('{') | Kind::Punct(';') => true,
        Kind::Punct(':') => !(is(i + 1, ':') || *i > 0 && is(i - 1, ':')),
        _ => false,
    };
    let end = (0..tokens.len()).find(ends).map_or(inside.len(), |i| tokens[i].range.start);
    let told = format!("{path}! {}", facts::plain(&inside[..end]).trim_start_matches("pub "));
    Some(Seen { name, path, told, at, mentions, items, like_items })
}
