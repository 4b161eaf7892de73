//! What a macro calls its own variables is nobody else's name: where the caller uses the same word for something else, the
//! macro's is changed before its items are taken over as text.
use super::expand::{Copied, Made};
use super::scan;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::ops::Range;
use syn::Stmt;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// The same with variables told apart; text that is not items alone is left to rustc, which tells them apart itself.
pub fn told_apart(made: Made, name: &str) -> Made {
    let Ok(statements) = syn::Block::parse_within.parse_str(&made.text) else { return made };
    if !statements.iter().all(|s| matches!(s, Stmt::Item(_) | Stmt::Macro(_))) {
        return made;
    }
    let mut words = Words { text: &made.text, found: Vec::new() };
    statements.iter().filter(|s| matches!(s, Stmt::Item(_))).for_each(|s| words.visit_stmt(s));
    let words = words.found;
    let of_rules = |w: &Word| {
        let part = made.parts.partition_point(|(at, _)| at.end <= w.at.start);
        made.parts.get(part).is_some_and(|(_, from)| matches!(from, Copied::Rules(_)))
    };
    let names = |of: &dyn Fn(&Word) -> bool| -> BTreeSet<&str> {
        words.iter().filter(|w| of(w)).flat_map(|w| w.names(&made.text)).collect()
    };
    let (own, others) = (names(&|w| w.binds && of_rules(w)), names(&|w| !of_rules(w)));
    let own: BTreeSet<String> = own.intersection(&others).map(|n| (*n).to_owned()).collect();
    // A variable of the caller's that the rules mean something else by.
    let (theirs, others) = (names(&|w| w.binds && !of_rules(w)), names(&|w| of_rules(w)));
    let theirs: BTreeSet<String> =
        theirs.intersection(&others).map(|n| (*n).to_owned()).filter(|n| !own.contains(n)).collect();
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for w in &words {
        let (changed, by) = if of_rules(w) { (&own, name) } else { (&theirs, "call") };
        let text = &made.text[w.at.clone()];
        let new = |n: &str| format!("{n}_of_{by}");
        let now = match w.kind {
            Kind::Name if changed.contains(text) => new(text),
            Kind::Field if changed.contains(text) => format!("{text}: {}", new(text)),
            Kind::Literal => changed.iter().fold(text.to_owned(), |text, n| {
                let captured =
                    |text: String, end: &str| text.replace(&format!("{{{n}{end}"), &format!("{{{}{end}", new(n)));
                captured(captured(text, "}"), ":")
            }),
            _ => continue,
        };
        if now != text {
            changes.push((w.at.clone(), now));
        }
    }
    changes.sort_by_key(|(at, _)| at.start);
    changes.dedup_by_key(|(at, _)| at.start);
    changed(made, &changes)
}

/// Text with some of its tokens replaced, which then are nobody's.
fn changed(made: Made, changes: &[(Range<usize>, String)]) -> Made {
    let mut out = Made::default();
    let mut parts = made.parts.into_iter().peekable();
    let mut from = 0;
    for (at, now) in
        changes.iter().map(|(at, now)| (at.clone(), &**now)).chain([(made.text.len()..made.text.len(), "")])
    {
        while let Some((part, of)) = parts.next_if(|(part, _)| part.end <= at.start) {
            let start = out.text.len() + part.start - from;
            out.parts.push((start..start + part.len(), of));
        }
        parts.next_if(|(part, _)| part.start < at.end);
        out.text.push_str(&made.text[from..at.start]);
        out.text.push_str(now);
        from = at.end;
    }
    let moved = |at: usize| {
        let before = changes.iter().take_while(|(of, _)| of.end <= at);
        before.fold(at, |at, (of, now)| at + now.len() - of.len())
    };
    out.whole = made.whole.iter().map(|w| moved(w.start)..moved(w.end)).collect();
    out
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Name,
    /// A field that is called as the variable that it is given.
    Field,
    /// In a macro's arguments: `"{name}"` may mean a variable.
    Literal,
}

/// Where a variable may be meant.
struct Word {
    at: Range<usize>,
    kind: Kind,
    binds: bool,
}

impl Word {
    fn names<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let text = &text[self.at.clone()];
        match self.kind {
            Kind::Literal => {
                let names = scan::mentions(text);
                let start = |n: &String| text.find(&**n).map(|at| &text[at..at + n.len()]);
                names.iter().filter_map(start).collect()
            }
            _ => vec![text],
        }
    }
}

struct Words<'t> {
    text: &'t str,
    found: Vec<Word>,
}

impl Words<'_> {
    fn add(&mut self, at: Range<usize>, kind: Kind, binds: bool) {
        let word = &self.text[at.clone()];
        // A constant or a type, or no variable at all.
        if kind == Kind::Literal || !word.starts_with(char::is_uppercase) && word != "self" && word != "_" {
            self.found.push(Word { at, kind, binds });
        }
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let mut of_something = false;
        for token in tokens {
            let at = token.span().byte_range();
            match token {
                TokenTree::Group(g) => self.tokens(g.stream()),
                TokenTree::Ident(_) if !of_something => self.add(at, Kind::Name, false),
                TokenTree::Literal(_) => self.add(at, Kind::Literal, false),
                TokenTree::Punct(p) => {
                    of_something = p.as_char() == '.';
                    continue;
                }
                TokenTree::Ident(_) => {}
            }
            of_something = false;
        }
    }
}

impl<'ast> Visit<'ast> for Words<'_> {
    fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
        self.add(p.ident.span().byte_range(), Kind::Name, true);
        syn::visit::visit_pat_ident(self, p);
    }
    fn visit_field_pat(&mut self, f: &'ast syn::FieldPat) {
        match &*f.pat {
            syn::Pat::Ident(p) if f.colon_token.is_none() => {
                let plain = p.by_ref.is_none() && p.mutability.is_none();
                let kind = if plain { Kind::Field } else { Kind::Name };
                self.add(p.ident.span().byte_range(), kind, true);
            }
            _ => syn::visit::visit_field_pat(self, f),
        }
    }
    fn visit_field_value(&mut self, f: &'ast syn::FieldValue) {
        match f.colon_token {
            None => self.add(f.expr.span().byte_range(), Kind::Field, false),
            Some(_) => self.visit_expr(&f.expr),
        }
    }
    fn visit_expr_path(&mut self, e: &'ast syn::ExprPath) {
        if let Some(ident) = e.path.get_ident() {
            self.add(ident.span().byte_range(), Kind::Name, false);
        }
    }
    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        self.tokens(m.tokens.clone());
    }
}
