//! Functions that a `let` hands over by their paths, `Tree::new(&v, std::cmp::min)`, and closures, `Cache::new(|x| x + 1)`: the type of
//! what it makes says which one it is, and has no name.
use super::syntax::bytes;
use std::ops::Range;
use syn::{Expr, Local};

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub at: Range<usize>,
    /// Of one without a module its name, which may be a variable's.
    pub name: Option<String>,
    /// Its type, where it takes references of any lifetime: `fn(&str) -> usize`.
    pub signature: Option<String>,
    pub closure: Option<Closure>,
}

/// What is known of a closure that is handed over.
#[derive(Clone, Debug, PartialEq)]
pub struct Closure {
    /// The type that is made of it.
    pub of: String,
    /// How many arguments it has.
    pub arity: usize,
    /// The trait that the type wants of it, as it is written: `FnMut(u32) -> u32`. It says so itself where it is defined.
    pub wanted: String,
}

pub(super) fn functions(local: &Local, base: usize) -> Vec<Function> {
    let mut found = Vec::new();
    if let Some(init) = &local.init {
        kept(&init.expr, None, base, &mut found);
    }
    found
}

/// What becomes a part of a value, `of` a type: what a constructor is called with, fields of a struct, elements of a tuple.
fn kept(e: &Expr, of: Option<&str>, base: usize, found: &mut Vec<Function>) {
    let at = || bytes(syn::spanned::Spanned::span(e), base);
    match e {
        Expr::Path(p) if p.qself.is_none() => {
            let all = &p.path.segments;
            let last = all[all.len() - 1].ident.to_string();
            if last.starts_with(char::is_lowercase) && last != "self" {
                let name = (all.len() == 1).then_some(last);
                found.push(Function { at: at(), name, signature: None, closure: None });
            }
        }
        Expr::Closure(c) if c.asyncness.is_none() => {
            let of = of.map(|of| Closure { of: of.to_owned(), arity: c.inputs.len(), wanted: String::new() });
            found.extend(of.map(|closure| Function { at: at(), name: None, signature: None, closure: Some(closure) }));
        }
        Expr::Call(c) if let Some(of) = makes(&c.func) => c.args.iter().for_each(|e| kept(e, Some(&of), base, found)),
        Expr::Struct(s) => {
            let of = s.path.segments.last().map(|s| s.ident.to_string());
            let given = s.fields.iter().filter(|f| f.colon_token.is_some());
            given.for_each(|f| kept(&f.expr, of.as_deref(), base, found));
        }
        Expr::Tuple(t) => t.elems.iter().for_each(|e| kept(e, None, base, found)),
        Expr::Paren(p) => kept(&p.expr, of, base, found),
        _ => {}
    }
}

/// The type of `Type(…)`, `Type::new(…)`.
fn makes(called: &Expr) -> Option<String> {
    let Expr::Path(p) = called else { return None };
    let names = p.path.segments.iter().rev().take(2).map(|s| s.ident.to_string());
    names.into_iter().find(|name| name.starts_with(char::is_uppercase))
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
        assert_eq!(of("let t = a::Cache::new(1, |x| x + 1);"), ["|x| x + 1"]);
        assert_eq!(of("let t = (Cache { f: move |x: u32| x, n: 1 }, 2);"), ["move |x: u32| x"]);
        for none in [
            "let t = |x| x;",
            "let t = (|x| x, 1);",
            "let t = v.iter().map(f64::sqrt);",
            "let t = make(min);",
            "let t = i32::MAX;",
            "let t = &a::b;",
        ] {
            assert_eq!(of(none), Vec::<String>::new(), "{none}");
        }
    }
}
