//! Variables with names that Rust lets no variable have beside an item: constants, statics, structs without braces, variants. Within
//! one program rustc refuses them, or compares with the item; in a notebook the item was another cell's, whose place the variable takes.
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::parsed::Parsed;
use crate::eval::text::depth;
use crate::eval::text::source::{CellText, Provenance, Source, Tag};
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use std::collections::BTreeSet;
use std::ops::Range;
use syn::parse::Parser;
use syn::visit::Visit;

/// The cell with those as variables that rustc refuses; none where it refuses none.
pub(super) fn shadowing(errors: &[Diagnostic], source: &Source, parsed: &Parsed, defs: &Definitions) -> Option<Parsed> {
    let names = in_the_way(errors, source, parsed, defs);
    (!names.is_empty()).then(|| {
        let mut parsed = parsed.clone();
        parsed.shadows.extend(names);
        parsed
    })
}

/// Those that rustc refuses, of names that are not the cell's own. A name with a capital is a variable's in a `let` of the cell alone.
fn in_the_way(errors: &[Diagnostic], source: &Source, parsed: &Parsed, defs: &Definitions) -> BTreeSet<String> {
    let own = parsed.items.iter().flat_map(|i| &i.names).chain(parsed.uses.iter().map(|u| &u.binds));
    let own: BTreeSet<&String> = own.chain(&parsed.shadows).collect();
    let item = |name: &str| defs.value_named(name).is_some_and(|(_, i)| i.in_patterns);
    let brought = |name: &str| item(name) || defs.uses.iter().any(|u| u.binds == name);
    let meant = |name: &String| match name.starts_with(char::is_uppercase) {
        true => brought(name) && parsed.bindings.iter().any(|b| b.name == *name),
        false => brought(name) || defs.uses.iter().any(|u| u.binds.ends_with('*')),
    };
    // A name in a pattern that is refused, or is of another type; that a pattern leaves something out is said of all of it.
    let named = |e: &Diagnostic, s: &Span| match source.provenance(s.start) {
        Provenance::Generated(Tag::Load(name)) => vec![name.clone()],
        Provenance::Generated(_) => Vec::new(),
        Provenance::User { text, at } => {
            let place = at..at + (s.end - s.start);
            let within = |n: &Range<usize>| {
                let in_whole = || e.code == "E0005" && place.start <= n.start && n.end <= place.end;
                *n == place || in_whole() && item(&text.text[n.clone()])
            };
            let names = names_in_patterns(text).into_iter().filter(within);
            names.map(|n| text.text[n].to_owned()).collect()
        }
    };
    let refused = errors.iter().filter(|e| matches!(&*e.code, "E0530" | "E0005" | "E0308"));
    let places = refused.flat_map(|e| e.spans.iter().filter(|s| s.ours && s.primary).map(move |s| (e, s)));
    places.flat_map(|(e, s)| named(e, s)).filter(|name| !own.contains(name) && meant(name)).collect()
}

/// Where single names stand in patterns.
fn names_in_patterns(cell: &CellText) -> Vec<Range<usize>> {
    #[derive(Default)]
    struct Names(Vec<Range<usize>>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
            self.0.push(p.ident.span().byte_range());
            syn::visit::visit_pat_ident(self, p);
        }
    }
    let text = &*cell.text;
    depth::as_people_write(text, || {
        let mut names = Names::default();
        let parsed = depth::fits(text).then(|| syn::Block::parse_within.parse_str(text).ok()).flatten();
        parsed.iter().flatten().for_each(|s| names.visit_stmt(s));
        names.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_patterns_are_no_others() {
        let text = "let (a, [b, ..]) = f(x); for c in x { match x { d @ (1 | 2) => y, P { e, g: h } if x => |i: x| x, x::Y => y } } fn f(j: x) {}";
        let found = names_in_patterns(&CellText::new(1, text));
        let names: Vec<&str> = found.into_iter().map(|name| &text[name]).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e", "h", "i", "j"]);
    }
}
