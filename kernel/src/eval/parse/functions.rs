//! Functions that a `let` hands over by their paths, `Tree::new(&v, std::cmp::min)`: the type of what it makes says which function it is,
//! and has no name.
use super::syntax::bytes;
use std::ops::Range;
use syn::{Expr, Local};

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub at: Range<usize>,
    /// Of one without a module its name, which may be a variable's.
    pub name: Option<String>,
}

pub(super) fn functions(local: &Local, base: usize) -> Vec<Function> {
    let mut found = Vec::new();
    if let Some(init) = &local.init {
        kept(&init.expr, base, &mut found);
    }
    found
}

/// What becomes a part of a value: what a constructor is called with, fields of a struct, elements of a tuple.
fn kept(e: &Expr, base: usize, found: &mut Vec<Function>) {
    match e {
        Expr::Path(p) if p.qself.is_none() => {
            let all = &p.path.segments;
            let last = all[all.len() - 1].ident.to_string();
            if last.starts_with(char::is_lowercase) && last != "self" {
                let name = (all.len() == 1).then_some(last);
                found.push(Function { at: bytes(syn::spanned::Spanned::span(e), base), name });
            }
        }
        Expr::Call(c) if makes(&c.func) => c.args.iter().for_each(|e| kept(e, base, found)),
        Expr::Struct(s) => s.fields.iter().filter(|f| f.colon_token.is_some()).for_each(|f| kept(&f.expr, base, found)),
        Expr::Tuple(t) => t.elems.iter().for_each(|e| kept(e, base, found)),
        Expr::Paren(p) => kept(&p.expr, base, found),
        _ => {}
    }
}

/// `Type(…)`, `Type::new(…)`.
fn makes(called: &Expr) -> bool {
    let Expr::Path(p) = called else { return false };
    p.path.segments.iter().rev().take(2).any(|s| s.ident.to_string().starts_with(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::Stmt;

    #[test]
    fn what_is_handed_over_by_its_path() {
        let of = |code: &str| -> Vec<String> {
            let Ok(Stmt::Local(local)) = syn::parse_str(code) else { panic!("{code}") };
            functions(&local, 0).into_iter().map(|f| code[f.at].to_owned()).collect()
        };
        assert_eq!(of("let f = std::cmp::min::<i32>;"), ["std::cmp::min::<i32>"]);
        assert_eq!(of("let t = Tree::new(&v, min);"), ["min"]);
        assert_eq!(of("let t = Some(a::Tree { f: i32::max, g, n: 1 });"), ["i32::max"]);
        for none in ["let t = v.iter().map(f64::sqrt);", "let t = make(min);", "let t = i32::MAX;", "let t = &a::b;"] {
            assert_eq!(of(none), Vec::<String>::new(), "{none}");
        }
    }
}
