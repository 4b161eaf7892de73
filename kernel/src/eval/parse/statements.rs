//! Where a running cell says which of its statements it has come to: what helpers are called from.
use super::code_facts::FOR_EACH;
use super::syntax::bytes;
use crate::eval::text::scan;
use crate::eval::text::source::Splice;
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, Stmt};

/// What says so.
pub const MARK: &str = "xlazy_rt::on();";

/// Marks for the statements inside a statement of the cell's own code, in the blocks that it runs itself: not in closures and
/// functions, which have callers, and not where nothing is called. The statement itself has its mark already.
pub(super) fn marks(statement: &Stmt, base: usize) -> Vec<Mark> {
    let mut out = Marks { base, marks: Vec::new() };
    match statement {
        Stmt::Local(l) => l.init.iter().for_each(|i| {
            out.expression(&i.expr);
            i.diverge.iter().for_each(|(_, e)| out.expression(e));
        }),
        Stmt::Expr(e, _) => out.expression(e),
        Stmt::Item(_) | Stmt::Macro(_) => {}
    }
    out.marks
}

/// A place for a mark, which costs a loop of plain Rust what a call of a small function does.
#[derive(Clone, Debug)]
pub struct Mark {
    edits: Vec<Splice>,
    /// What is called there that may be the notebook's own; none where that is sure.
    names: Option<BTreeSet<String>>,
}

impl Mark {
    /// What is to be inserted, where the notebook defines functions of these names.
    pub fn edits(&self, defined: &BTreeSet<&str>) -> &[Splice] {
        let own = self.names.as_ref().is_none_or(|names| names.iter().any(|n| defined.contains(n.as_str())));
        if own { &self.edits } else { &[] }
    }
}

struct Marks {
    base: usize,
    marks: Vec<Mark>,
}

impl Marks {
    /// The blocks that an expression is made of, each of which ends it: behind an operand more of the statement would follow.
    fn expression(&mut self, e: &Expr) {
        match e {
            Expr::If(e) => {
                self.block(&e.then_branch);
                e.else_branch.iter().for_each(|(_, e)| self.expression(e));
            }
            Expr::ForLoop(e) => self.block(&e.body),
            Expr::Loop(e) => self.block(&e.body),
            Expr::While(e) => match &*e.cond {
                // What a `let` borrows from lives as long as the round, and would not in a block of its own.
                cond if has_let(cond) => self.block(&e.body),
                cond => {
                    let range = bytes(cond.span(), self.base);
                    let around = [Splice::insert(range.start, format!("{{ {MARK} ")), Splice::insert(range.end, " }")];
                    self.add(Calls::of(|c| c.visit_expr(cond)), around.to_vec());
                    self.block(&e.body);
                }
            },
            Expr::Match(e) => e.arms.iter().for_each(|arm| self.expression(&arm.body)),
            Expr::Block(e) => self.block(&e.block),
            Expr::Unsafe(e) => self.block(&e.block),
            Expr::Assign(e) => self.expression(&e.right),
            Expr::Paren(e) => self.expression(&e.expr),
            _ => {}
        }
    }

    fn add(&mut self, calls: Calls, edits: Vec<Splice>) {
        if calls.surely || !calls.names.is_empty() {
            self.marks.push(Mark { edits, names: (!calls.surely).then_some(calls.names) });
        }
    }

    fn block(&mut self, block: &Block) {
        for statement in &block.stmts {
            if matches!(statement, Stmt::Item(_)) {
                continue;
            }
            let at = bytes(statement.span(), self.base).start;
            self.add(Calls::of(|c| c.visit_stmt(statement)), vec![Splice::insert(at, MARK)]);
            self.marks.extend(marks(statement, self.base));
        }
    }
}

fn has_let(e: &Expr) -> bool {
    struct Lets(bool);
    impl<'ast> Visit<'ast> for Lets {
        fn visit_expr_let(&mut self, _: &'ast syn::ExprLet) {
            self.0 = true;
        }
    }
    let mut found = Lets(false);
    found.visit_expr(e);
    found.0
}

/// What is called somewhere: functions and variables by their bare names, and what a method, a path or a macro's text names.
#[derive(Default)]
struct Calls {
    surely: bool,
    names: BTreeSet<String>,
}

impl Calls {
    fn of(visit: impl FnOnce(&mut Calls)) -> Calls {
        let mut calls = Calls::default();
        visit(&mut calls);
        calls
    }
}

impl<'ast> Visit<'ast> for Calls {
    fn visit_expr_call(&mut self, e: &'ast syn::ExprCall) {
        match &*e.func {
            Expr::Path(p) => {
                let last = p.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
                // `Some(x)` and its like call nothing.
                self.surely |= p.path.segments.len() == 1 && !last.starts_with(char::is_uppercase) && last != "drop";
                self.names.insert(last);
            }
            _ => self.surely = true,
        }
        syn::visit::visit_expr_call(self, e);
    }
    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        let name = e.method.to_string();
        let path = |e: &Expr| match e {
            Expr::Reference(r) => matches!(&*r.expr, Expr::Path(_)),
            e => matches!(e, Expr::Path(_)),
        };
        self.surely |= FOR_EACH.contains(&&*name) && e.args.iter().any(path);
        self.names.insert(name);
        syn::visit::visit_expr_method_call(self, e);
    }
    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        self.names.extend(scan::mentions(&m.tokens.to_string()));
        self.names.extend(m.path.get_ident().map(syn::Ident::to_string));
    }
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(code: &str) -> String {
        let defined = BTreeSet::from(["forward"]);
        let block: Block = syn::parse_str(&format!("{{{code}}}")).unwrap();
        let mut edits: Vec<Splice> =
            block.stmts.iter().flat_map(|s| marks(s, 0)).flat_map(|m| m.edits(&defined).to_vec()).collect();
        edits.sort_by_key(|e| e.range.start);
        let mut out = format!("{{{code}}}");
        edits.iter().rev().for_each(|e| out.insert_str(e.range.start, &e.text.replace(MARK, "·")));
        out[1..out.len() - 1].to_owned()
    }

    #[test]
    fn statements_in_blocks_of_the_cells_own_code_are_marked() {
        assert_eq!(marked("f(x); let y = g(x);"), "f(x); let y = g(x);", "these have their marks already");
        assert_eq!(
            marked("for i in 0..3 { let y = f(i); s += i; if s > g() { h(y) } }"),
            "for i in 0..3 { ·let y = f(i); s += i; ·if s > g() { ·h(y) } }"
        );
        assert_eq!(marked("let y = if a { f(x) } else { 1 };"), "let y = if a { ·f(x) } else { 1 };");
        assert_eq!(marked("match a { 1 => { f(x) } _ => g(x) }"), "match a { 1 => { ·f(x) } _ => g(x) }");
        assert_eq!(marked("while f(x) > 1 { g(x); }"), "while { · f(x) > 1 } { ·g(x); }");
        assert_eq!(marked("while let Some(y) = f(x) { g(y); }"), "while let Some(y) = f(x) { ·g(y); }");
        assert_eq!(
            marked("loop { println!(\"a\"); v[0] = Some(2); break }"),
            "loop { println!(\"a\"); v[0] = Some(2); break }"
        );
    }

    #[test]
    fn plain_rust_is_not_marked() {
        let code = "for i in 0..3 { v.push(i); s = s.wrapping_add(i); println!(\"{}\", v.len()); Vec::new(); }";
        assert_eq!(marked(code), code);
        assert_eq!(
            marked(
                "for i in 0..3 { net.forward(x); Net::forward(&net, x); print!(\"{}\", net.forward(x)); v.map(f); v.map(|x| f(x)); }"
            ),
            "for i in 0..3 { ·net.forward(x); ·Net::forward(&net, x); ·print!(\"{}\", net.forward(x)); ·v.map(f); ·v.map(|x| f(x)); }"
        );
    }

    #[test]
    fn what_has_a_caller_is_not_marked() {
        for code in
            ["let f = |x| { g(x); h(x) };", "v.iter().map(|x| { f(x); x });", "f({ g(x); h(x) });", "async { f(x); };"]
        {
            assert_eq!(marked(code), code);
        }
        assert_eq!(marked("{ fn f() { g(); } f() }"), "{ fn f() { g(); } ·f() }");
    }
}
