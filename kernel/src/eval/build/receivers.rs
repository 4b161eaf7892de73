//! What is called by a name that most of the time takes what it is called on, `handle.join()`: where it may be a method that only looks,
//! rustc says whether it takes it.
use crate::eval::generate::code::Loaded;
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::items::Item;
use crate::eval::parse::parsed::Parsed;
use crate::eval::parse::places::Mentioned;
use crate::eval::text::scan::{self, Kind};
use crate::eval::text::source::CellText;

/// Leaves what is called on in its place, unless such a method of its type surely takes it.
pub(super) fn stay_in_place(parsed: &mut Parsed, cell: &CellText, loaded: &[Loaded], defs: &Definitions) {
    let own = ["std::", "alloc::", "core::", "xlazy::"];
    for n in 0..parsed.places.mentions.len() {
        let (m, places) = (&parsed.places.mentions[n], &parsed.places);
        let Some(method) = method_behind(&cell.text[m.range.end..]).filter(|_| m.kind != Mentioned::Place) else {
            continue;
        };
        let v = &places.variables[m.variable];
        let earlier = loaded.iter().find(|l| v.declared.is_none() && l.name == v.name);
        let written = earlier.map(|l| l.written_type.trim_start_matches("::"));
        if written.is_some_and(|ty| own.iter().any(|root| ty.starts_with(root))) {
            continue;
        }
        let items = parsed.items.iter().chain(defs.items().map(|(_, item)| item));
        let mut found = items.filter(|i| i.mentions.contains(method)).flat_map(|i| takes_itself(i, method)).peekable();
        let elsewhere = defs.deps.is_some();
        let surely = if found.peek().is_some() { found.all(|takes| takes) } else { !elsewhere };
        if !surely {
            parsed.places.mentions[n].kind = Mentioned::Place;
        }
    }
}

/// The method that is called on what ends here.
fn method_behind(text: &str) -> Option<&str> {
    let text = text.trim_start().strip_prefix('.')?.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (end > 0 && text[end..].trim_start().starts_with(['(', ':'])).then(|| &text[..end])
}

/// For each method of that name: whether it takes `self` by value.
fn takes_itself(item: &Item, name: &str) -> Vec<bool> {
    let text = item.text();
    let tokens = scan::tokens(text);
    let word = |i: usize| tokens.get(i).map_or("", |t| &text[t.range.clone()]);
    let mut out = Vec::new();
    for i in (0..tokens.len()).filter(|i| word(*i) == "fn" && word(i + 1) == name) {
        let Some(open) = (i + 2..tokens.len()).find(|i| tokens[*i].kind == Kind::Open('(')) else { continue };
        let first = open + 1 + usize::from(word(open + 1) == "mut");
        match word(first) {
            "self" => out.push(true),
            "&" => out.push(false),
            _ => {}
        }
    }
    out
}
