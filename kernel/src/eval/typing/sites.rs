//! Where a name that a pattern binds is in scope, so that rustc can be asked what type it has.
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A cell's text with an expression where the name at that place is in scope first; `None` where no pattern binds it there. The
/// block is what the text, in braces, parses to.
pub fn asked_at(text: &str, block: &syn::Block, name: &Range<usize>, question: &str) -> Option<String> {
    // A block's places are one further than the text's.
    let mut finder = Finder { name: name.start + 1..name.end + 1, site: None };
    finder.visit_block(block);
    let (site, closes) = match finder.site? {
        Site::Behind(at) => (at - 1..at - 1, false),
        Site::Around(place) => (place.start - 1..place.end - 1, true),
    };
    let (before, inside, after) = (text.get(..site.start)?, text.get(site.clone())?, text.get(site.end..)?);
    Some(match closes {
        true => format!("{before}{{ {question}; {inside} }}{after}"),
        false => format!("{before} {question}; {after}"),
    })
}

enum Site {
    /// Statements can follow.
    Behind(usize),
    /// An expression that sees it.
    Around(Range<usize>),
}

struct Finder {
    name: Range<usize>,
    site: Option<Site>,
}

impl Finder {
    /// What lies deeper has been looked at before.
    fn bound_in(&mut self, patterns: &[&syn::Pat], site: Site) {
        if self.site.is_none() && patterns.iter().any(|p| binds(p, &self.name)) {
            self.site = Some(site);
        }
    }

    fn function(&mut self, sig: &syn::Signature, block: &syn::Block) {
        let typed = sig.inputs.iter().filter_map(|i| if let syn::FnArg::Typed(t) = i { Some(&*t.pat) } else { None });
        self.bound_in(&typed.collect::<Vec<_>>(), first(block));
    }

    /// The patterns of `let`s in a condition.
    fn condition(&mut self, condition: &syn::Expr, block: &syn::Block) {
        match condition {
            syn::Expr::Let(l) => self.bound_in(&[&*l.pat], first(block)),
            syn::Expr::Binary(b) => [&b.left, &b.right].into_iter().for_each(|side| self.condition(side, block)),
            _ => {}
        }
    }
}

/// In front of a block's statements.
fn first(block: &syn::Block) -> Site {
    Site::Behind(block.brace_token.span.open().byte_range().end)
}

fn binds(pattern: &syn::Pat, name: &Range<usize>) -> bool {
    struct Idents<'a>(&'a Range<usize>, bool);
    impl<'ast> Visit<'ast> for Idents<'_> {
        fn visit_pat_ident(&mut self, i: &'ast syn::PatIdent) {
            self.1 |= i.ident.span().byte_range() == *self.0;
            visit::visit_pat_ident(self, i);
        }
    }
    let mut idents = Idents(name, false);
    idents.visit_pat(pattern);
    idents.1
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_local(&mut self, l: &'ast syn::Local) {
        visit::visit_local(self, l);
        self.bound_in(&[&l.pat], Site::Behind(l.span().byte_range().end));
    }

    fn visit_expr_if(&mut self, e: &'ast syn::ExprIf) {
        visit::visit_expr_if(self, e);
        self.condition(&e.cond, &e.then_branch);
    }

    fn visit_expr_while(&mut self, e: &'ast syn::ExprWhile) {
        visit::visit_expr_while(self, e);
        self.condition(&e.cond, &e.body);
    }

    fn visit_expr_for_loop(&mut self, e: &'ast syn::ExprForLoop) {
        visit::visit_expr_for_loop(self, e);
        self.bound_in(&[&*e.pat], first(&e.body));
    }

    fn visit_arm(&mut self, a: &'ast syn::Arm) {
        visit::visit_arm(self, a);
        self.bound_in(&[&a.pat], Site::Around(a.body.span().byte_range()));
    }

    fn visit_expr_closure(&mut self, e: &'ast syn::ExprClosure) {
        visit::visit_expr_closure(self, e);
        self.bound_in(&e.inputs.iter().collect::<Vec<_>>(), Site::Around(e.body.span().byte_range()));
    }

    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        visit::visit_item_fn(self, f);
        self.function(&f.sig, &f.block);
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        visit::visit_impl_item_fn(self, f);
        self.function(&f.sig, &f.block);
    }

    fn visit_trait_item_fn(&mut self, f: &'ast syn::TraitItemFn) {
        visit::visit_trait_item_fn(self, f);
        f.default.iter().for_each(|block| self.function(&f.sig, block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_stands_where_the_name_is_in_scope() {
        let of = |marked: &str| {
            let start = marked.find('¦').unwrap();
            let text = marked.replacen('¦', "", 1);
            let end = text[start..].find(|c: char| !c.is_alphanumeric()).map_or(text.len(), |i| start + i);
            let block = syn::parse_str(&format!("{{{text}\n}}")).unwrap();
            asked_at(&text, &block, &(start..end), "ask").unwrap_or_else(|| "nowhere".to_owned())
        };
        for (marked, want) in [
            ("let (¦lo, hi) = f(); lo", "let (lo, hi) = f(); ask;  lo"),
            ("let Some(¦a) = f() else { return };", "let Some(a) = f() else { return }; ask; "),
            ("if x && let Some(¦a) = f() { g() }", "if x && let Some(a) = f() { ask;  g() }"),
            ("while let Some(¦a) = f() {}", "while let Some(a) = f() { ask; }"),
            ("for (¦i, n) in v { i }", "for (i, n) in v { ask;  i }"),
            ("match x { Some(Ok(¦a)) => a, _ => 0 }", "match x { Some(Ok(a)) => { ask; a }, _ => 0 }"),
            ("let f = |r, ¦n| r + n;", "let f = |r, n| { ask; r + n };"),
            ("if v.iter().any(|¦n| n > 1) {}", "if v.iter().any(|n| { ask; n > 1 }) {}"),
            ("impl A { fn f(&self, ¦b: u8) {} }", "impl A { fn f(&self, b: u8) { ask; } }"),
            ("f(P { ¦x: 1 })", "nowhere"),
            ("let P { ¦x: a } = p;", "nowhere"),
            ("let P { ¦x } = p;", "let P { x } = p; ask; "),
        ] {
            assert_eq!(of(marked), want, "{marked}");
        }
    }
}
