//! What stands in the notebook under a name, in words: a variable, or an item with its documentation and how its definition begins.
use super::page::shown;
use super::scope::{InScope, Named};
use super::source::{arms, doc_of, slice};
use crate::eval::text::types::short;
use syn::spanned::Spanned;
use xlazy_mime::Bundle;

/// What a name alone stands for. With its `!` it is a macro's, and without only where nothing else has it.
pub fn describe(scope: &InScope, name: &str, detail: u8) -> Option<Bundle> {
    if let Some(v) = scope.vars.iter().find(|v| v.name == name) {
        let summary = if v.summary.is_empty() { String::new() } else { format!(" = {}", v.summary) };
        let kind = if v.handle { "a cell works on a copy" } else { "a cell takes it and puts it back" };
        let text = format!("{}: {}{summary}\nfrom cell {}; {kind}", v.name, short(&v.type_name), v.cell);
        return Some(Bundle::text(text));
    }
    let items = || scope.items().iter().filter(|i| i.kind != "import");
    let item = items().find(|i| i.name == name).or_else(|| items().find(|i| i.name.strip_suffix('!') == Some(name)))?;
    let origin = if item.origin.is_empty() { String::new() } else { format!("from {}", item.origin) };
    if detail > 0 {
        return Some(Bundle::text(format!("{}\n{origin}", item.source).trim_end().to_owned()));
    }
    let (head, doc) = taken_apart(item).unwrap_or_else(|| (item.signature.clone(), String::new()));
    Some(shown("", &head, format!("{doc}\n{origin}").trim()))
}

/// How the definition begins, behind attributes, and what is said of it; a type with what it has, where that is not long.
fn taken_apart(item: &Named) -> Option<(String, String)> {
    const LONGEST: usize = 24;
    let text = &item.source;
    let file = syn::parse_file(text).ok()?;
    let name = item.name.trim_end_matches('!');
    let found = file.items.iter().find_map(|i| parts(i).filter(|(ident, ..)| *ident == name).map(|parts| (i, parts)));
    let (syntax, (_, attributes)) = found?;
    let whole = syntax.span().byte_range();
    let start = attributes.iter().map(|a| a.span().byte_range().end).max().unwrap_or(whole.start);
    let behind = text.get(start..whole.end)?.trim();
    let head = match syntax {
        syn::Item::Fn(f) => slice(text, start..f.block.span().byte_range().start),
        syn::Item::Macro(m) => arms(name, text, &m.mac.tokens),
        syn::Item::Struct(_) | syn::Item::Enum(_) | syn::Item::Union(_) if behind.lines().count() <= LONGEST => {
            behind.to_owned()
        }
        _ => behind.lines().next()?.split('{').next()?.trim().to_owned(),
    };
    Some((head, doc_of(attributes)))
}

/// An item's name and attributes.
fn parts(item: &syn::Item) -> Option<(&syn::Ident, &[syn::Attribute])> {
    use syn::Item;
    Some(match item {
        Item::Const(i) => (&i.ident, &i.attrs),
        Item::Enum(i) => (&i.ident, &i.attrs),
        Item::Fn(i) => (&i.sig.ident, &i.attrs),
        Item::Macro(i) => (i.ident.as_ref()?, &i.attrs),
        Item::Mod(i) => (&i.ident, &i.attrs),
        Item::Static(i) => (&i.ident, &i.attrs),
        Item::Struct(i) => (&i.ident, &i.attrs),
        Item::Trait(i) => (&i.ident, &i.attrs),
        Item::Type(i) => (&i.ident, &i.attrs),
        Item::Union(i) => (&i.ident, &i.attrs),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_items_head_and_what_is_said_of_it() {
        let of = |name: &str, source: &str| {
            let (name, source) = (name.to_owned(), source.to_owned());
            let (kind, signature, origin) = Default::default();
            taken_apart(&Named { name, kind, signature, source, origin }).unwrap()
        };
        for (name, source, head, doc) in [
            (
                "OneLine",
                "/// Of waves.\n#[derive(Debug)] pub enum OneLine { /// Round.\n Sine, Cos }",
                "pub enum OneLine { /// Round.\n Sine, Cos }",
                "Of waves.",
            ),
            (
                "Wave",
                "#[derive(Debug)]\nenum Wave {\n    /// Round.\n    Sine,\n}",
                "enum Wave {\n    /// Round.\n    Sine,\n}",
                "",
            ),
            ("blocky", "/** Blocky. */\npub fn blocky(a: u8) -> u8 { a }", "pub fn blocky(a: u8) -> u8", "Blocky."),
            ("long", "/**\n * Of two\n * lines.\n */\nfn long(\n    a: u8,\n) {}", "fn long(a: u8)", "Of two\nlines."),
            (
                "tw!",
                "/// Tw.\nmacro_rules! tw { ($x:expr) => { $x }; () => {} }",
                "macro_rules! tw { ($x:expr) => …; () => … }",
                "Tw.",
            ),
            ("Plays", "#[doc = \"Plays.\"] trait Plays: Clone { fn play(&self); }", "trait Plays: Clone", "Plays."),
            ("N", "/// How many.\n#[allow(unused)] const N: usize = 3;", "const N: usize = 3;", "How many."),
        ] {
            assert_eq!(of(name, source), (head.to_owned(), doc.to_owned()), "{source}");
        }
    }
}
