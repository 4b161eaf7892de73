//! Values without a name that a `let` borrows, as `&[vec![]]` does: they live as long as its variable ("temporary lifetime extension" of
//! Rust's reference).
use super::syntax::bytes;
use std::ops::Range;
use syn::visit::Visit;
use syn::{Expr, Local, Stmt, UnOp};

/// Where they are, an outer one before those in it. What a lock or a `RefCell` gives is none: it would stay locked.
pub(super) fn temporaries(local: &Local, base: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if let Some(init) = local.init.as_ref().filter(|i| i.diverge.is_none()) {
        extending(&init.expr, &mut |e| found.push(bytes(syn::spanned::Spanned::span(e), base)));
    }
    found
}

/// Whether its value is a reference to a variable, or to a part of one, that changes nothing.
pub(super) fn refers(local: &Local) -> bool {
    let is_place = |r: &syn::ExprReference| {
        let mut temporary = false;
        borrowed(&r.expr, &mut |_| temporary = true);
        r.mutability.is_none() && !temporary && !guards(&r.expr) && !matches!(&*r.expr, Expr::Lit(_))
    };
    local.init.as_ref().is_some_and(|init| matches!(&*init.expr, Expr::Reference(r) if is_place(r)))
}

/// What is borrowed in an expression whose value lives on.
fn extending(e: &Expr, found: &mut dyn FnMut(&Expr)) {
    match e {
        Expr::Reference(r) => borrowed(&r.expr, found),
        Expr::Array(a) => a.elems.iter().for_each(|e| extending(e, found)),
        Expr::Tuple(t) => t.elems.iter().for_each(|e| extending(e, found)),
        Expr::Struct(s) => s.fields.iter().for_each(|f| extending(&f.expr, found)),
        Expr::Cast(c) => extending(&c.expr, found),
        Expr::Paren(p) => extending(&p.expr, found),
        Expr::Block(b) if b.label.is_none() => {
            if let Some(Stmt::Expr(last, None)) = b.block.stmts.last() {
                extending(last, found);
            }
        }
        _ => {}
    }
}

fn borrowed(e: &Expr, found: &mut dyn FnMut(&Expr)) {
    match e {
        Expr::Path(_) | Expr::Lit(_) => {}
        Expr::Paren(p) => borrowed(&p.expr, found),
        Expr::Field(f) => borrowed(&f.base, found),
        Expr::Index(i) => borrowed(&i.expr, found),
        Expr::Unary(u) if matches!(u.op, UnOp::Deref(_)) => borrowed(&u.expr, found),
        _ if guards(e) => {}
        _ => {
            found(e);
            extending(e, found);
        }
    }
}

fn guards(e: &Expr) -> bool {
    struct Calls(bool);
    impl<'ast> Visit<'ast> for Calls {
        fn visit_expr_method_call(&mut self, m: &'ast syn::ExprMethodCall) {
            const LOCKS: [&str; 5] = ["borrow", "borrow_mut", "lock", "read", "write"];
            self.0 |= LOCKS.contains(&m.method.to_string().trim_start_matches("try_"));
            syn::visit::visit_expr_method_call(self, m);
        }
    }
    let mut calls = Calls(false);
    calls.visit_expr(e);
    calls.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_let_borrows_without_a_name() {
        let of = |code: &str| -> Vec<String> {
            let Ok(Stmt::Local(local)) = syn::parse_str(code) else { panic!("{code}") };
            temporaries(&local, 0).into_iter().map(|range| code[range].to_owned()).collect()
        };
        assert_eq!(of("let x = &vec![1];"), ["vec![1]"]);
        assert_eq!(of("let x = &mut f(1).y[2];"), ["f(1)"]);
        assert_eq!(of("let x: &str = &*String::from(\"a\");"), ["String::from(\"a\")"]);
        assert_eq!(of("let x = &[(&a(), b)];"), ["[(&a(), b)]", "a()"]);
        assert_eq!(of("let x = P { a: &b(), c: { 1; &d() } };"), ["b()", "d()"]);
        for none in
            ["let x = &y;", "let x = f(&g());", "let x = &*m.lock().unwrap();", "let x = &y.z[1];", "let x = 1;"]
        {
            assert_eq!(of(none), Vec::<String>::new(), "{none}");
        }
    }
}
