//! What a round of a loop may change, so that a condition which mentions nothing of it goes the same way in every round.
use super::super::syntax::{PatternNames, assigns, bytes};
use crate::eval::text::scan;
use std::collections::BTreeSet;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, Pat};

/// Names that a round declares, assigns to, borrows to change, or calls a method of, which may change it.
pub(super) struct Changes<'t> {
    text: &'t str,
    base: usize,
    pub names: BTreeSet<String>,
}

impl<'t> Changes<'t> {
    pub fn new(text: &'t str, base: usize) -> Changes<'t> {
        Changes { text, base, names: BTreeSet::new() }
    }

    pub fn of_block(mut self, body: &Block) -> Self {
        self.visit_block(body);
        self
    }

    pub fn of_pattern(mut self, pattern: &Pat) -> Self {
        self.visit_pat(pattern);
        self
    }

    pub fn of_closure(mut self, closure: &syn::ExprClosure) -> Self {
        self.visit_expr_closure(closure);
        self
    }

    /// What `while let` binds is another in each round.
    pub fn of_condition(mut self, condition: &Expr) -> Self {
        self.visit_expr(condition);
        self
    }

    /// All that is mentioned, the index of a place among it: rather a name too many.
    fn mentioned(&mut self, e: &impl Spanned) {
        let range = bytes(e.span(), self.base);
        self.names.extend(scan::mentions(self.text.get(range).unwrap_or_default()));
    }
}

/// What stands at the beginning of a place: `config` of `config.layers[i]`.
fn root(e: &Expr) -> Option<&syn::Ident> {
    match e {
        Expr::Path(p) => p.path.get_ident(),
        Expr::Field(f) => root(&f.base),
        Expr::Index(i) => root(&i.expr),
        Expr::Paren(p) => root(&p.expr),
        Expr::Reference(r) => root(&r.expr),
        Expr::Unary(u) => root(&u.expr),
        Expr::Try(t) => root(&t.expr),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Changes<'_> {
    fn visit_pat(&mut self, pattern: &'ast Pat) {
        let mut all = PatternNames::default();
        all.visit_pat(pattern);
        self.names.extend(all.names.iter().map(|n| n.to_string()));
    }
    fn visit_expr_assign(&mut self, e: &'ast syn::ExprAssign) {
        self.mentioned(&e.left);
        syn::visit::visit_expr_assign(self, e);
    }
    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        if assigns(&e.op) {
            self.mentioned(&e.left);
        }
        syn::visit::visit_expr_binary(self, e);
    }
    fn visit_expr_reference(&mut self, e: &'ast syn::ExprReference) {
        if e.mutability.is_some() {
            self.mentioned(&e.expr);
        }
        syn::visit::visit_expr_reference(self, e);
    }
    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        self.names.extend(root(&e.receiver).map(syn::Ident::to_string));
        syn::visit::visit_expr_method_call(self, e);
    }
    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        const TAKES_VALUES: [&str; 10] =
            ["print", "eprint", "write", "format", "assert", "debug_assert", "panic", "dbg", "vec", "matches"];
        let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        let known = TAKES_VALUES.iter().any(|known| name.trim_end_matches("ln").trim_end_matches("_eq") == *known);
        let parser = Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        match parser.parse2(m.tokens.clone()) {
            Ok(values) if known => values.iter().for_each(|e| self.visit_expr(e)),
            _ => self.names.extend(scan::mentions(&m.tokens.to_string())),
        }
    }
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
