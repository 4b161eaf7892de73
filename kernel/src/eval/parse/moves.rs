//! Where a cell's statements move variables, as far as their text tells.
use super::syntax::bytes;
use proc_macro2::Span;
use std::collections::BTreeSet;
use std::ops::Range;
use syn::visit::Visit;
use syn::{Expr, Pat, Stmt};

/// Names that stand alone where their value is taken: `f(x)`, `let y = x`, `[x]`, `for _ in x`, `x.into_iter()`.
#[derive(Default)]
pub(super) struct Moves {
    pub used: Vec<Use>,
    pub bound: BTreeSet<String>,
    /// How deep in code that need not run, or not once.
    inside: usize,
}

pub(super) struct Use {
    pub name: String,
    span: Span,
    /// A method is called on it, which may also borrow.
    pub receiver: bool,
    /// Whether it happens whenever the statement runs.
    pub surely: bool,
}

impl Use {
    pub fn at(&self, base: usize) -> Range<usize> {
        bytes(self.span, base)
    }
}

impl Moves {
    pub fn of(statement: &Stmt) -> Moves {
        let mut moves = Moves::default();
        moves.visit_stmt(statement);
        moves
    }

    fn bare(&mut self, e: &Expr) {
        self.taken(e, false);
    }

    fn taken(&mut self, e: &Expr, receiver: bool) {
        if let Expr::Path(p) = e
            && let Some(name) = p.path.get_ident()
        {
            self.used.push(Use { name: name.to_string(), span: name.span(), receiver, surely: self.inside == 0 });
        }
    }
}

impl<'ast> Visit<'ast> for Moves {
    fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
        self.bound.insert(p.ident.to_string());
    }
    fn visit_local(&mut self, l: &'ast syn::Local) {
        if let (Pat::Ident(p), Some(init)) = (&l.pat, &l.init)
            && p.by_ref.is_none()
        {
            self.bare(&init.expr);
        }
        syn::visit::visit_local(self, l);
    }
    fn visit_expr_call(&mut self, e: &'ast syn::ExprCall) {
        e.args.iter().for_each(|a| self.bare(a));
        syn::visit::visit_expr_call(self, e);
    }
    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        e.args.iter().for_each(|a| self.bare(a));
        // `handle.join()`; what has an argument joins texts.
        let joins = e.args.is_empty() && (e.method == "join" || e.method == "wait_with_output");
        if joins || e.method.to_string().starts_with("into_") {
            self.taken(&e.receiver, true);
        }
        syn::visit::visit_expr_method_call(self, e);
    }
    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        use syn::BinOp::{Add, Div, Mul, Rem, Sub};
        if matches!(e.op, Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_)) {
            self.bare(&e.left);
            self.bare(&e.right);
        }
        syn::visit::visit_expr_binary(self, e);
    }
    fn visit_expr_assign(&mut self, e: &'ast syn::ExprAssign) {
        self.bare(&e.right);
        syn::visit::visit_expr_assign(self, e);
    }
    fn visit_expr_tuple(&mut self, e: &'ast syn::ExprTuple) {
        e.elems.iter().for_each(|a| self.bare(a));
        syn::visit::visit_expr_tuple(self, e);
    }
    fn visit_expr_array(&mut self, e: &'ast syn::ExprArray) {
        e.elems.iter().for_each(|a| self.bare(a));
        syn::visit::visit_expr_array(self, e);
    }
    fn visit_expr_for_loop(&mut self, e: &'ast syn::ExprForLoop) {
        self.bare(&e.expr);
        self.visit_expr(&e.expr);
        self.inside += 1;
        self.visit_block(&e.body);
        self.inside -= 1;
    }
    fn visit_field_value(&mut self, f: &'ast syn::FieldValue) {
        self.bare(&f.expr);
        syn::visit::visit_field_value(self, f);
    }
    fn visit_expr(&mut self, e: &'ast Expr) {
        let apart = match e {
            Expr::If(_) | Expr::Match(_) | Expr::While(_) | Expr::Loop(_) | Expr::Closure(_) | Expr::Async(_) => true,
            Expr::Binary(b) => matches!(b.op, syn::BinOp::And(_) | syn::BinOp::Or(_)),
            _ => false,
        };
        self.inside += usize::from(apart);
        syn::visit::visit_expr(self, e);
        self.inside -= usize::from(apart);
    }
    fn visit_local_init(&mut self, init: &'ast syn::LocalInit) {
        self.visit_expr(&init.expr);
        if let Some((_, diverge)) = &init.diverge {
            self.inside += 1;
            self.visit_expr(diverge);
            self.inside -= 1;
        }
    }
    // A closure that is not `move` may only borrow.
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
