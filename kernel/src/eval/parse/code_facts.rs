//! What the session is to know of the user's code, from its syntax tree: what is called where, what gets which name, loops,
//! what decides what runs, and where values go.
mod changes;

use super::checks::Condition;
use super::syntax::{PatternNames as Names, assigns, bytes, plain};
use crate::eval::text::scan::{self, Kind};
use crate::eval::text::source::Fact;
use changes::Changes;
use proc_macro2::Span;
use std::ops::Range;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, Pat, Stmt};

/// What a statement of a cell's own code says.
pub(super) fn of_statement(s: &Stmt, text: &str, base: usize) -> Vec<Fact> {
    let mut syntax = Syntax::new(text, base);
    // The cell's last value is shown, and goes nowhere.
    syntax.statement(s, Goes::nowhere());
    syntax.exits(s, text.len());
    syntax.facts
}

pub(super) fn of_item(item: &syn::Item, text: &str, base: usize) -> Vec<Fact> {
    let mut syntax = Syntax::new(text, base);
    syntax.visit_item(item);
    syntax.facts
}

/// What the code decides by.
pub(super) fn of_conditions(conditions: &[Condition], text: &str) -> impl Iterator<Item = Fact> {
    conditions.iter().map(|c| Fact {
        kind: 'D',
        ranges: vec![c.range.clone(), c.guards.clone()],
        words: made_of(&text[c.range.clone()]),
    })
}

/// What reads the value of a tensor.
const READS: [&str; 4] = ["item", "item_i64", "to_vec", "try_item"];

/// Methods that run a closure for each element of something.
pub(super) const FOR_EACH: [&str; 30] = [
    "map",
    "for_each",
    "fold",
    "filter",
    "filter_map",
    "flat_map",
    "scan",
    "try_for_each",
    "try_fold",
    "any",
    "all",
    "find",
    "find_map",
    "position",
    "take_while",
    "skip_while",
    "map_while",
    "inspect",
    "reduce",
    "retain",
    "max_by",
    "min_by",
    "max_by_key",
    "min_by_key",
    "sort_by",
    "sort_by_key",
    "partition",
    "rfold",
    "rposition",
    "from_fn",
];

/// Flags and names: whether something is called in a condition, whether a tensor's value is read, and what is mentioned.
fn made_of(condition: &str) -> Vec<String> {
    const WORDS: [&str; 12] =
        ["let", "mut", "ref", "if", "else", "match", "in", "as", "return", "move", "true", "false"];
    let tokens = scan::tokens(condition);
    let word = |i: usize| tokens.get(i).map_or("", |t| &condition[t.range.clone()]);
    // `Some(x)` and its like call nothing, and `a != b` is no macro.
    let called = |i: &usize| {
        let name = tokens[*i].kind == Kind::Ident && !word(*i).starts_with(char::is_uppercase);
        let call = word(i + 1) == "(" || word(i + 1) == "!" && matches!(word(i + 2), "(" | "[" | "{");
        name && call && !WORDS.contains(&word(*i))
    };
    let calls: Vec<usize> = (0..tokens.len()).filter(called).collect();
    let mut flags = String::new();
    if !calls.is_empty() {
        flags.push('c');
    }
    if calls.iter().any(|i| READS.contains(&word(*i))) {
        flags.push('r');
    }
    let names = scan::mentions(condition).into_iter().filter(|n| !WORDS.contains(&&**n));
    std::iter::once(flags).chain(names).collect()
}

/// Where the value of an expression goes.
#[derive(Clone, Debug)]
enum Goes {
    Into(Vec<String>),
    Out,
}

impl Goes {
    fn nowhere() -> Goes {
        Goes::Into(Vec::new())
    }
}

struct Syntax<'t> {
    text: &'t str,
    base: usize,
    facts: Vec<Fact>,
    goes: Goes,
    /// The type or trait whose methods these are.
    of: String,
}

impl<'t> Syntax<'t> {
    fn new(text: &'t str, base: usize) -> Syntax<'t> {
        Syntax { text, base, facts: Vec::new(), goes: Goes::Out, of: String::new() }
    }

    fn range(&self, span: Span) -> Range<usize> {
        bytes(span, self.base)
    }

    fn add(&mut self, kind: char, ranges: Vec<Range<usize>>, words: Vec<String>) {
        self.facts.push(Fact { kind, ranges, words });
    }

    fn going(&mut self, goes: Goes, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.goes, goes);
        visit(self);
        self.goes = before;
    }

    fn function(&mut self, name: &syn::Ident, whole: Span, closure: bool) {
        let words = vec![name.to_string(), if closure { String::new() } else { self.of.clone() }];
        let kind = if closure { "c" } else { "f" };
        self.add('F', vec![self.range(whole)], words.into_iter().chain([kind.to_owned()]).collect());
    }

    fn changes(&self) -> Changes<'t> {
        Changes::new(self.text, self.base)
    }

    fn looped(&mut self, head: Span, body: Range<usize>, kind: &str, changes: Changes) {
        let words = std::iter::once(kind.to_owned()).chain(changes.names).collect();
        self.add('L', vec![self.range(head), body], words);
    }

    fn guard(&mut self, condition: Span, guarded: Range<usize>, branch: &str) {
        let condition = self.range(condition);
        let mut words = vec![branch.to_owned()];
        words.extend(made_of(&self.text[condition.clone()]));
        self.add('G', vec![condition, guarded], words);
    }

    fn call(&mut self, at: Span, name: String) {
        let mut words = vec![name];
        match &self.goes {
            Goes::Into(names) => {
                words.push("in".into());
                words.extend(names.iter().cloned());
            }
            Goes::Out => words.push("out".into()),
        }
        self.add('C', vec![self.range(at)], words);
    }

    /// What makes the value of an expression gets its name.
    fn bind(&mut self, name: &str, e: &Expr) {
        let at = match e {
            Expr::MethodCall(c) => c.method.span(),
            Expr::Call(c) if matches!(&*c.func, Expr::Path(_)) => c.span(),
            Expr::Macro(m) => m.span(),
            Expr::Unary(u) if !matches!(u.op, syn::UnOp::Deref(_)) => u.span(),
            // An operator is where its left operand begins, and so is what that begins with.
            Expr::Binary(b) if plain(&b.left) => b.span(),
            Expr::Paren(e) => return self.bind(name, &e.expr),
            Expr::Group(e) => return self.bind(name, &e.expr),
            Expr::Reference(e) => return self.bind(name, &e.expr),
            Expr::Try(e) => return self.bind(name, &e.expr),
            Expr::Await(e) => return self.bind(name, &e.base),
            Expr::Block(e) => return self.bind_tail(name, &e.block),
            Expr::Unsafe(e) => return self.bind_tail(name, &e.block),
            Expr::If(e) => {
                self.bind_tail(name, &e.then_branch);
                return e.else_branch.iter().for_each(|(_, e)| self.bind(name, e));
            }
            Expr::Match(e) => return e.arms.iter().for_each(|arm| self.bind(name, &arm.body)),
            _ => return,
        };
        self.add('B', vec![self.range(at)], vec![name.to_owned()]);
    }

    fn bind_tail(&mut self, name: &str, block: &Block) {
        if let Some(Stmt::Expr(e, None)) = block.stmts.last() {
            self.bind(name, e);
        }
    }

    fn bind_pattern(&mut self, pattern: &Pat, e: &Expr) {
        match (pattern, e) {
            (Pat::Ident(p), e) => self.bind(&p.ident.to_string(), e),
            (Pat::Type(t), e) => self.bind_pattern(&t.pat, e),
            (Pat::Tuple(p), Expr::Tuple(e)) if p.elems.len() == e.elems.len() => {
                p.elems.iter().zip(&e.elems).for_each(|(p, e)| self.bind_pattern(p, e));
            }
            _ => {}
        }
    }

    fn statement(&mut self, s: &Stmt, tail: Goes) {
        match s {
            Stmt::Local(local) => {
                let Some(init) = &local.init else { return };
                let mut names = Names::default();
                names.visit_pat(&local.pat);
                let names: Vec<String> = names.names.iter().map(syn::Ident::to_string).collect();
                self.bind_pattern(&local.pat, &init.expr);
                let named = match (&local.pat, ends_in(&init.expr)) {
                    (Pat::Ident(p), Some(closure)) => Some((&p.ident, closure)),
                    (Pat::Type(t), Some(closure)) => match &*t.pat {
                        Pat::Ident(p) => Some((&p.ident, closure)),
                        _ => None,
                    },
                    _ => None,
                };
                if let Some((name, closure)) = named {
                    self.function(name, closure.span(), true);
                }
                let goes = if named.is_some() { Goes::Out } else { Goes::Into(names) };
                self.going(goes, |s| s.visit_expr(&init.expr));
                if let Some((_, otherwise)) = &init.diverge {
                    let range = self.range(otherwise.span());
                    self.guard(init.expr.span(), range, "else");
                    self.going(Goes::nowhere(), |s| s.visit_expr(otherwise));
                }
            }
            Stmt::Expr(e, None) => self.going(tail, |s| s.visit_expr(e)),
            Stmt::Expr(e, Some(_)) => self.going(Goes::nowhere(), |s| s.visit_expr(e)),
            Stmt::Macro(m) if m.semi_token.is_none() => self.going(tail, |s| s.visit_macro(&m.mac)),
            Stmt::Macro(m) => self.going(Goes::nowhere(), |s| s.visit_macro(&m.mac)),
            Stmt::Item(item) => self.visit_item(item),
        }
    }

    /// What follows a statement runs only where it did not leave the block.
    fn exits(&mut self, s: &Stmt, end: usize) {
        let rest = self.range(s.span()).end..end;
        // Nothing is guarded, so that a block in a block in a block is not walked through for each of them.
        if self.text.get(rest.clone()).is_none_or(|rest| rest.trim().is_empty()) {
            return;
        }
        let mut exits = Exits::default();
        if let Stmt::Local(syn::Local { init: Some(init), .. }) = s
            && init.diverge.is_some()
        {
            exits.conditions.push(init.expr.span());
        }
        exits.visit_stmt(s);
        exits.conditions.into_iter().for_each(|c| self.guard(c, rest.clone(), "rest"));
    }

    fn inside(&mut self, m: &syn::Macro) {
        let parser = Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = parser.parse2(m.tokens.clone()) {
            arguments.iter().for_each(|a| self.visit_expr(a));
        }
    }
}

/// The closure that an expression gives.
fn ends_in(e: &Expr) -> Option<&syn::ExprClosure> {
    match e {
        Expr::Closure(c) => Some(c),
        Expr::Paren(p) => ends_in(&p.expr),
        Expr::Block(b) => match b.block.stmts.last() {
            Some(Stmt::Expr(e, None)) => ends_in(e),
            _ => None,
        },
        _ => None,
    }
}

/// The name that an assignment's left side ends in.
fn assigned(e: &Expr) -> Option<String> {
    match e {
        Expr::Path(p) => p.path.get_ident().map(syn::Ident::to_string),
        Expr::Unary(u) if matches!(u.op, syn::UnOp::Deref(_)) => assigned(&u.expr),
        Expr::Paren(p) => assigned(&p.expr),
        Expr::Field(f) => match &f.member {
            syn::Member::Named(name) => Some(name.to_string()),
            syn::Member::Unnamed(_) => None,
        },
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Syntax<'_> {
    fn visit_block(&mut self, b: &'ast Block) {
        let end = self.range(b.brace_token.span.close()).start;
        for (i, s) in b.stmts.iter().enumerate() {
            let tail = if i + 1 == b.stmts.len() { self.goes.clone() } else { Goes::nowhere() };
            self.statement(s, tail);
            self.exits(s, end);
        }
    }
    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        let of = std::mem::take(&mut self.of);
        self.function(&f.sig.ident, f.span(), false);
        self.going(Goes::Out, |s| s.visit_block(&f.block));
        self.of = of;
    }
    fn visit_item_impl(&mut self, i: &'ast syn::ItemImpl) {
        let name = match &*i.self_ty {
            syn::Type::Path(p) => p.path.segments.last().map(|s| s.ident.to_string()),
            _ => None,
        };
        let before = std::mem::replace(&mut self.of, name.unwrap_or_default());
        i.items.iter().for_each(|i| self.visit_impl_item(i));
        self.of = before;
    }
    fn visit_item_trait(&mut self, t: &'ast syn::ItemTrait) {
        let before = std::mem::replace(&mut self.of, t.ident.to_string());
        t.items.iter().for_each(|i| self.visit_trait_item(i));
        self.of = before;
    }
    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        self.function(&f.sig.ident, f.span(), false);
        self.going(Goes::Out, |s| s.visit_block(&f.block));
    }
    fn visit_trait_item_fn(&mut self, f: &'ast syn::TraitItemFn) {
        if let Some(block) = &f.default {
            self.function(&f.sig.ident, f.span(), false);
            self.going(Goes::Out, |s| s.visit_block(block));
        }
    }
    fn visit_expr_if(&mut self, e: &'ast syn::ExprIf) {
        let then = self.range(e.then_branch.span());
        self.guard(e.cond.span(), then, "then");
        self.going(Goes::nowhere(), |s| s.visit_expr(&e.cond));
        self.visit_block(&e.then_branch);
        if let Some((_, otherwise)) = &e.else_branch {
            let range = self.range(otherwise.span());
            self.guard(e.cond.span(), range, "else");
            self.visit_expr(otherwise);
        }
    }
    fn visit_expr_match(&mut self, e: &'ast syn::ExprMatch) {
        self.going(Goes::nowhere(), |s| s.visit_expr(&e.expr));
        for arm in &e.arms {
            let body = self.range(arm.body.span());
            let from = arm.guard.as_ref().map_or(body.start, |(_, g)| self.range(g.span()).start);
            self.guard(e.expr.span(), from..body.end, "arm");
            if let Some((_, guard)) = &arm.guard {
                self.guard(guard.span(), body, "then");
                self.going(Goes::nowhere(), |s| s.visit_expr(guard));
            }
            self.visit_expr(&arm.body);
        }
    }
    fn visit_expr_while(&mut self, e: &'ast syn::ExprWhile) {
        let body = self.range(e.body.span());
        // What it goes on for is asked in each round.
        let round = self.range(e.cond.span()).start..body.end;
        self.looped(e.cond.span(), round, "while", self.changes().of_block(&e.body).of_condition(&e.cond));
        self.guard(e.cond.span(), body, "then");
        self.going(Goes::nowhere(), |s| {
            s.visit_expr(&e.cond);
            s.visit_block(&e.body);
        });
    }
    fn visit_expr_for_loop(&mut self, e: &'ast syn::ExprForLoop) {
        let body = self.range(e.body.span());
        self.looped(e.expr.span(), body, "for", self.changes().of_pattern(&e.pat).of_block(&e.body));
        self.going(Goes::nowhere(), |s| {
            s.visit_expr(&e.expr);
            s.visit_block(&e.body);
        });
    }
    fn visit_expr_loop(&mut self, e: &'ast syn::ExprLoop) {
        let body = self.range(e.body.span());
        self.looped(e.loop_token.span, body, "loop", self.changes().of_block(&e.body));
        self.going(Goes::nowhere(), |s| s.visit_block(&e.body));
    }
    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        let right = self.range(e.right.span());
        match &e.op {
            syn::BinOp::And(_) => self.guard(e.left.span(), right, "then"),
            syn::BinOp::Or(_) => self.guard(e.left.span(), right, "else"),
            op if assigns(op) => {
                if let Some(name) = assigned(&e.left) {
                    self.add('B', vec![self.range(e.span())], vec![name]);
                }
                let names = scan::mentions(&self.text[self.range(e.left.span())]);
                self.visit_expr(&e.left);
                return self.going(Goes::Into(names.into_iter().collect()), |s| s.visit_expr(&e.right));
            }
            _ => {}
        }
        syn::visit::visit_expr_binary(self, e);
    }
    fn visit_expr_assign(&mut self, e: &'ast syn::ExprAssign) {
        if let Some(name) = assigned(&e.left) {
            self.bind(&name, &e.right);
        }
        let names = scan::mentions(&self.text[self.range(e.left.span())]);
        self.visit_expr(&e.left);
        self.going(Goes::Into(names.into_iter().collect()), |s| s.visit_expr(&e.right));
    }
    fn visit_field_value(&mut self, f: &'ast syn::FieldValue) {
        if let syn::Member::Named(name) = &f.member {
            self.bind(&name.to_string(), &f.expr);
        }
        self.visit_expr(&f.expr);
    }
    fn visit_expr_return(&mut self, e: &'ast syn::ExprReturn) {
        self.going(Goes::Out, |s| e.expr.iter().for_each(|e| s.visit_expr(e)));
    }
    fn visit_expr_break(&mut self, e: &'ast syn::ExprBreak) {
        self.going(Goes::Out, |s| e.expr.iter().for_each(|e| s.visit_expr(e)));
    }
    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        let name = e.method.to_string();
        if FOR_EACH.contains(&&*name) {
            for closure in e.args.iter().filter_map(ends_in) {
                let body = self.range(closure.body.span());
                self.looped(e.method.span(), body, "closure", self.changes().of_closure(closure));
            }
        }
        self.call(e.method.span(), name);
        syn::visit::visit_expr_method_call(self, e);
    }
    fn visit_expr_call(&mut self, e: &'ast syn::ExprCall) {
        if let Expr::Path(p) = &*e.func
            && let Some(last) = p.path.segments.last()
        {
            self.call(e.span(), last.ident.to_string());
        }
        syn::visit::visit_expr_call(self, e);
    }
    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        let told = ["print", "eprint", "assert", "debug_assert", "panic", "dbg"].iter().any(|t| name.starts_with(t));
        self.call(m.path.span(), name);
        let goes = if told { Goes::nowhere() } else { self.goes.clone() };
        self.going(goes, |s| s.inside(m));
    }
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

/// Conditions on which code leaves the block that it is in.
#[derive(Default)]
struct Exits {
    conditions: Vec<Span>,
    /// Those around.
    around: Vec<Span>,
    loops: usize,
}

impl Exits {
    fn left(&mut self) {
        let new = self.around.iter().filter(|a| !self.conditions.iter().any(|c| c.byte_range() == a.byte_range()));
        let new: Vec<Span> = new.copied().collect();
        self.conditions.extend(new);
    }

    fn under(&mut self, condition: Span, visit: impl FnOnce(&mut Self)) {
        self.around.push(condition);
        visit(self);
        self.around.pop();
    }

    fn within(&mut self, body: &Block) {
        self.loops += 1;
        self.visit_block(body);
        self.loops -= 1;
    }
}

impl<'ast> Visit<'ast> for Exits {
    fn visit_expr_return(&mut self, _: &'ast syn::ExprReturn) {
        self.left();
    }
    fn visit_expr_break(&mut self, e: &'ast syn::ExprBreak) {
        if self.loops == 0 || e.label.is_some() {
            self.left();
        }
    }
    fn visit_expr_continue(&mut self, e: &'ast syn::ExprContinue) {
        if self.loops == 0 || e.label.is_some() {
            self.left();
        }
    }
    fn visit_expr_if(&mut self, e: &'ast syn::ExprIf) {
        self.visit_expr(&e.cond);
        self.under(e.cond.span(), |s| {
            s.visit_block(&e.then_branch);
            e.else_branch.iter().for_each(|(_, e)| s.visit_expr(e));
        });
    }
    fn visit_expr_match(&mut self, e: &'ast syn::ExprMatch) {
        self.visit_expr(&e.expr);
        self.under(e.expr.span(), |s| e.arms.iter().for_each(|a| s.visit_arm(a)));
    }
    fn visit_expr_while(&mut self, e: &'ast syn::ExprWhile) {
        self.under(e.cond.span(), |s| s.within(&e.body));
    }
    fn visit_expr_for_loop(&mut self, e: &'ast syn::ExprForLoop) {
        self.within(&e.body);
    }
    fn visit_expr_loop(&mut self, e: &'ast syn::ExprLoop) {
        self.within(&e.body);
    }
    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

#[cfg(test)]
mod tests;
