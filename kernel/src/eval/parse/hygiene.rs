//! What a macro calls its own variables is nobody else's name: where the caller uses the same word for something else, the
//! macro's is changed before its items are taken over as text.
use super::expand::{Copied, Expansion};
use super::format_strings::{self, Rules};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::ops::Range;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Expr, Pat, Stmt, Token};

/// The same with variables told apart; text that is not items alone is left to rustc, which tells them apart itself.
pub fn told_apart(made: Expansion, name: &str, rules: Rules) -> Expansion {
    let Ok(statements) = syn::Block::parse_within.parse_str(&made.text) else { return made };
    if !statements.iter().all(|s| matches!(s, Stmt::Item(_) | Stmt::Macro(_))) {
        return made;
    }
    let mut words = Words { text: &made.text, found: Vec::new(), named: Vec::new(), rules };
    statements.iter().filter(|s| matches!(s, Stmt::Item(_))).for_each(|s| words.visit_stmt(s));
    let words = words.found;
    let of_rules = |w: &Word| {
        let part = made.parts.partition_point(|(at, _)| at.end <= w.at.start);
        made.parts.get(part).is_some_and(|(_, from)| matches!(from, Copied::Rules(_)))
    };
    let names = |of: &dyn Fn(&Word) -> bool| -> BTreeSet<&str> {
        words.iter().filter(|w| of(w)).map(|w| &made.text[w.at.clone()]).collect()
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
fn changed(made: Expansion, changes: &[(Range<usize>, String)]) -> Expansion {
    let mut out = Expansion::default();
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
    /// Also in a format string.
    Name,
    /// A field that is called as the variable that it is given.
    Field,
}

/// Where a variable may be meant.
struct Word {
    at: Range<usize>,
    kind: Kind,
    binds: bool,
}

struct Words<'t, 'm> {
    text: &'t str,
    found: Vec<Word>,
    /// Names of arguments, as in `"{width}", width = 3`.
    named: Vec<Range<usize>>,
    rules: Rules<'m>,
}

impl Words<'_, '_> {
    fn add(&mut self, at: Range<usize>, kind: Kind, binds: bool) {
        let word = &self.text[at.clone()];
        // A constant or a type, or no variable at all.
        if !word.starts_with(char::is_uppercase) && word != "self" && word != "_" && !self.named.contains(&at) {
            self.found.push(Word { at, kind, binds });
        }
    }

    /// Variables in the arguments of a macro that may be anything.
    fn tokens(&mut self, tokens: TokenStream) {
        let all: Vec<TokenTree> = tokens.into_iter().collect();
        let mut of_something = false;
        let mut at = 0;
        while at < all.len() {
            match &all[at..] {
                [TokenTree::Ident(name), TokenTree::Punct(not), TokenTree::Group(_), ..]
                    if not.as_char() == '!' && takes_words(&name.to_string()) =>
                {
                    at += 2;
                }
                [TokenTree::Group(g), ..] => self.tokens(g.stream()),
                [TokenTree::Ident(i), ..] if !of_something => self.add(i.span().byte_range(), Kind::Name, false),
                _ => {}
            }
            of_something = matches!(&all[at], TokenTree::Punct(p) if p.as_char() == '.');
            at += 1;
        }
    }

    fn arguments(&mut self, all: &Arguments) {
        all.expressions.iter().for_each(|e| self.visit_expr(e));
        all.pattern.iter().for_each(|p| self.visit_pat(p));
    }
}

/// What the standard library's macros take: expressions, of which the second may be a pattern.
#[derive(Default)]
struct Arguments {
    expressions: Vec<Expr>,
    pattern: Option<Pat>,
}

impl Arguments {
    fn of(name: &str, tokens: TokenStream) -> syn::Result<Arguments> {
        let parser = |input: ParseStream| {
            let mut all = Arguments::default();
            while !input.is_empty() {
                if all.expressions.len() == 1 && all.pattern.is_none() && name.ends_with("matches") {
                    all.pattern = Some(Pat::parse_multi_with_leading_vert(input)?);
                    if input.parse::<Option<Token![if]>>()?.is_none() {
                        input.parse::<Option<Token![,]>>()?;
                        continue;
                    }
                }
                all.expressions.push(input.parse()?);
                // `vec![x; n]`
                if input.parse::<Option<Token![;]>>()?.is_none() && !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            Ok(all)
        };
        parser.parse2(tokens)
    }
}

/// Whether what stands in the arguments of the standard library's macro is words, of fields say, and no variables.
fn takes_words(name: &str) -> bool {
    const WORDS: [&str; 8] =
        ["stringify", "offset_of", "cfg", "env", "option_env", "include_str", "include_bytes", "compile_error"];
    WORDS.contains(&name)
}

impl<'ast> Visit<'ast> for Words<'_, '_> {
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
        let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        let own = (self.rules)(&name).is_some();
        if !own && takes_words(&name) {
            return;
        }
        let strings = format_strings::of_call(self.text, &name, m.tokens.clone(), self.rules);
        strings.captures.into_iter().for_each(|at| self.add(at, Kind::Name, false));
        self.named.extend(strings.named);
        // In expressions, fields are no variables.
        match Arguments::of(&name, m.tokens.clone()) {
            Ok(all) if !own => self.arguments(&all),
            _ => self.tokens(m.tokens.clone()),
        }
    }
}
