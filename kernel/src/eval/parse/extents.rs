//! How far statements and expressions go, so that a change of the code that is advised has its place, and how far down its
//! block a statement may be moved.
use super::syntax::{PatternNames, assigns, bytes, plain};
use crate::eval::text::scan;
use crate::eval::text::source::Fact;
use std::collections::BTreeSet;
use std::ops::Range;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, Stmt};

/// Of the statements of a cell, or of a block.
pub(super) fn of_statements(all: &[Stmt], text: &str, base: usize) -> Vec<Fact> {
    let mut extents = Extents { text, base, deep: 0, facts: Vec::new() };
    extents.block(all);
    extents.facts
}

pub(super) fn of_item(item: &syn::Item, text: &str, base: usize) -> Vec<Fact> {
    let mut extents = Extents { text, base, deep: 0, facts: Vec::new() };
    extents.visit_item(item);
    extents.facts
}

struct Extents<'t> {
    text: &'t str,
    base: usize,
    /// Blocks around.
    deep: usize,
    facts: Vec<Fact>,
}

/// Statements that have more blocks around them stay where they are: to look at all of each would take the square of the depth.
const DEEPEST: usize = 32;

impl Extents<'_> {
    fn add(&mut self, kind: char, ranges: Vec<Range<usize>>, word: &str) {
        self.facts.push(Fact { kind, ranges, words: vec![word.to_owned()] });
    }

    fn block(&mut self, all: &[Stmt]) {
        let may_move = all.len() > 1 && self.deep < DEEPEST;
        let looked_at = all.iter().filter(|_| may_move);
        let effects: Vec<Effects> = looked_at.map(|s| Effects::of(s, self.text, self.base)).collect();
        self.deep += 1;
        for (i, s) in all.iter().enumerate().filter(|(_, s)| !matches!(s, Stmt::Item(_))) {
            let tail = i + 1 == all.len() && gives_a_value(s);
            let range = |s: &Stmt| bytes(s.span(), self.base);
            let passes = (!tail && may_move).then(|| passes(&effects, i, all)).flatten().map(|last| range(&all[last]));
            let ranges = std::iter::once(range(s)).chain(passes).collect();
            self.add('S', ranges, if tail { "t" } else { "" });
            self.visit_stmt(s);
        }
        self.deep -= 1;
    }
}

fn gives_a_value(s: &Stmt) -> bool {
    match s {
        Stmt::Expr(Expr::ForLoop(_) | Expr::While(_), None) => false,
        Stmt::Expr(Expr::If(e), None) => e.else_branch.is_some(),
        Stmt::Expr(_, semicolon) => semicolon.is_none(),
        Stmt::Macro(m) => m.semi_token.is_none(),
        _ => false,
    }
}

/// Statements that are looked at, to see whether another one may pass them.
const LOOKED_AT: usize = 64;

/// The last statement that this one may stand behind instead.
fn passes(effects: &[Effects], i: usize, all: &[Stmt]) -> Option<usize> {
    let mine = &effects[i];
    let free = |k: &usize| {
        let theirs = &effects[*k];
        let value = *k + 1 == all.len() && gives_a_value(&all[*k]);
        !value && !theirs.leaves && mine.changes.is_disjoint(&theirs.names) && theirs.sets.is_disjoint(&mine.names)
    };
    if mine.leaves {
        return None;
    }
    (i + 1..all.len().min(i + 1 + LOOKED_AT)).take_while(free).filter(|k| !matches!(all[*k], Stmt::Item(_))).last()
}

/// What a statement has to do with others.
#[derive(Default)]
struct Effects {
    /// The names that it mentions.
    names: BTreeSet<String>,
    /// Names that it binds, assigns, borrows to change, or changes in place.
    sets: BTreeSet<String>,
    /// These, and what it calls a method of.
    changes: BTreeSet<String>,
    /// It may leave the block.
    leaves: bool,
}

impl Effects {
    fn of(s: &Stmt, text: &str, base: usize) -> Effects {
        let names = |span| scan::mentions(&text[bytes(span, base)]);
        let mut seen = Seen { names: &names, sets: BTreeSet::new(), leaves: false };
        seen.visit_stmt(s);
        let mut changes = seen.sets.clone();
        if let Stmt::Expr(Expr::MethodCall(call), _) = s {
            changes.append(&mut names(call.receiver.span()));
        }
        Effects { names: names(s.span()), sets: seen.sets, changes, leaves: seen.leaves }
    }
}

struct Seen<'n> {
    names: &'n dyn Fn(proc_macro2::Span) -> BTreeSet<String>,
    sets: BTreeSet<String>,
    leaves: bool,
}

impl Seen<'_> {
    fn sets(&mut self, e: &Expr) {
        self.sets.append(&mut (self.names)(e.span()));
    }
}

impl<'ast> Visit<'ast> for Seen<'_> {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        let mut names = PatternNames::default();
        names.visit_pat(&local.pat);
        self.sets.extend(names.names.iter().map(syn::Ident::to_string));
        syn::visit::visit_local(self, local);
    }
    fn visit_expr_assign(&mut self, e: &'ast syn::ExprAssign) {
        self.sets(&e.left);
        syn::visit::visit_expr_assign(self, e);
    }
    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        if assigns(&e.op) {
            self.sets(&e.left);
        }
        syn::visit::visit_expr_binary(self, e);
    }
    fn visit_expr_reference(&mut self, e: &'ast syn::ExprReference) {
        if e.mutability.is_some() {
            self.sets(&e.expr);
        }
        syn::visit::visit_expr_reference(self, e);
    }
    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        // As torch has it: what ends so changes its tensor.
        if e.method.to_string().ends_with('_') {
            self.sets(&e.receiver);
        }
        syn::visit::visit_expr_method_call(self, e);
    }
    fn visit_expr_return(&mut self, _: &'ast syn::ExprReturn) {
        self.leaves = true;
    }
    fn visit_expr_break(&mut self, _: &'ast syn::ExprBreak) {
        self.leaves = true;
    }
    fn visit_expr_continue(&mut self, _: &'ast syn::ExprContinue) {
        self.leaves = true;
    }
    fn visit_expr_try(&mut self, _: &'ast syn::ExprTry) {
        self.leaves = true;
    }
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

impl<'ast> Visit<'ast> for Extents<'_> {
    fn visit_block(&mut self, b: &'ast Block) {
        self.block(&b.stmts);
    }
    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        self.add('E', vec![bytes(e.method.span(), self.base), bytes(e.span(), self.base)], "");
        syn::visit::visit_expr_method_call(self, e);
    }
    fn visit_expr_call(&mut self, e: &'ast syn::ExprCall) {
        if matches!(&*e.func, Expr::Path(_)) {
            self.add('E', vec![bytes(e.span(), self.base)], "");
        }
        syn::visit::visit_expr_call(self, e);
    }
    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        if !assigns(&e.op) && plain(&e.left) {
            self.add('E', vec![bytes(e.span(), self.base)], "o");
        }
        syn::visit::visit_expr_binary(self, e);
    }
    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        let parser = Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = parser.parse2(m.tokens.clone()) {
            arguments.iter().for_each(|a| self.visit_expr(a));
        }
    }
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands at the places of the facts of a kind that say how far something goes.
    fn extents(code: &str, kind: char) -> Vec<String> {
        let text = format!("{{{code}\n}}");
        let block: Block = syn::parse_str(&text).unwrap();
        let one = |f: Fact| {
            f.ranges
                .iter()
                .map(|r| &text[r.clone()])
                .chain(f.words.iter().map(|w| &**w))
                .collect::<Vec<_>>()
                .join(" | ")
        };
        let all = of_statements(&block.stmts, &text, 0);
        all.into_iter().filter(|f| f.kind == kind).map(one).collect()
    }

    #[test]
    fn expressions_and_statements_have_an_end() {
        assert_eq!(
            extents("let x = f(1).g(a + 2) - b; print!(\"{}\", h(x));", 'E'),
            ["g | f(1).g(a + 2) | ", "f(1) | ", "a + 2 | o", "h(x) | "]
        );
        let code = "let x = a; for i in v { f(i); g(i) } fn k() { l() } x";
        assert_eq!(
            extents(code, 'S'),
            [
                "let x = a; | for i in v { f(i); g(i) } | ",
                "for i in v { f(i); g(i) } | ",
                "f(i); | ",
                "g(i) | t",
                "x | t"
            ]
        );
    }

    #[test]
    fn a_statement_moves_down_to_where_something_has_to_do_with_it() {
        let moved = |code: &str| {
            let all = extents(code, 'S');
            let (_, last) = all[0].split_once(" | ").unwrap();
            last.strip_suffix(" | ").unwrap_or_default().to_owned()
        };
        assert_eq!(moved("p(loss.item()); loss.backward(); opt.step(); sync(); 1"), "sync();");
        assert_eq!(moved("p(loss.item()); loss = a; sync();"), "", "another loss");
        assert_eq!(moved("p(w.item()); w.sub_(g); sync();"), "", "changed in place");
        assert_eq!(moved("let l = loss.item(); sync(); p(l); a();"), "sync();", "what needs it");
        assert_eq!(moved("log.push(loss.item()); sync(); p(log); a();"), "sync();", "what it changes");
        assert_eq!(moved("p(loss.item()); sync(); if a { return; } b();"), "sync();", "not past an exit");
        assert_eq!(moved("if a { break; } sync();"), "");
        assert_eq!(moved("p(x); f(&mut x); sync();"), "");
        assert_eq!(moved("p(x); q(\"{x}\"); let x = 1; a();"), "q(\"{x}\");");
    }
}
