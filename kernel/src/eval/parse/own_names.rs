//! Names in a function that are its parameters', so that an item of such a name is nothing to it.
use super::syntax::{expressions, names_of};
use crate::eval::text::scan::{self, Kind};
use std::collections::BTreeMap;
use syn::visit::Visit;

/// Those of the words of an item that stand for nothing but parameters of its functions, wherever they are.
pub(super) fn only_parameters(item: &syn::Item, text: &str) -> Vec<String> {
    let mut look = Look::default();
    look.visit_item(item);
    if look.counted.is_empty() {
        return Vec::new();
    }
    let tokens = scan::tokens(text);
    let words = |name: &str| tokens.iter().filter(|t| t.kind == Kind::Ident && text[t.range.clone()] == *name).count();
    look.counted.into_iter().filter(|(name, counted)| words(name) == *counted).map(|(name, _)| name).collect()
}

#[derive(Default)]
struct Look {
    /// The parameters of the function that is looked at.
    parameters: Vec<String>,
    /// How often each name stands for a parameter.
    counted: BTreeMap<String, usize>,
}

impl Look {
    fn function(&mut self, sig: &syn::Signature, body: impl FnOnce(&mut Self)) {
        let typed = sig.inputs.iter().filter_map(|i| if let syn::FnArg::Typed(t) = i { Some(&*t.pat) } else { None });
        let names: Vec<String> =
            typed.flat_map(names_of).filter(|name| !name.starts_with(char::is_uppercase)).collect();
        names.iter().for_each(|name| self.count(name));
        let around = std::mem::replace(&mut self.parameters, names);
        body(self);
        self.parameters = around;
    }

    fn count(&mut self, name: &str) {
        *self.counted.entry(name.to_owned()).or_insert(0) += 1;
    }
}

impl<'ast> Visit<'ast> for Look {
    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        self.function(&f.sig, |look| look.visit_block(&f.block));
    }
    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        self.function(&f.sig, |look| look.visit_block(&f.block));
    }
    fn visit_trait_item_fn(&mut self, f: &'ast syn::TraitItemFn) {
        self.function(&f.sig, |look| f.default.iter().for_each(|block| look.visit_block(block)));
    }
    fn visit_expr_path(&mut self, p: &'ast syn::ExprPath) {
        if let Some(name) = p.path.get_ident().map(syn::Ident::to_string).filter(|name| self.parameters.contains(name))
        {
            self.count(&name);
        }
    }
    // What any other macro makes of a name nobody knows.
    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        let arguments = expressions(&name, m).unwrap_or_default();
        arguments.iter().for_each(|(argument, _)| self.visit_expr(argument));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_parameters_only() {
        let of = |code: &str| only_parameters(&syn::parse_str(code).unwrap(), code).join(" ");
        assert_eq!(
            of("fn f(size: usize, n: &[u8]) -> usize { println!(\"{}\", size); n[size] as usize + size * 2 }"),
            "n size"
        );
        assert_eq!(
            of("impl P { fn f(&self, size: usize) -> usize { size } fn g(&self, (a, b): (u8, u8)) -> u8 { a - b } }"),
            "a b size"
        );
        assert_eq!(of("trait T { fn f(size: usize) -> usize { size } fn g(size: u8); }"), "size");
        for item in [
            "fn f(size: size) -> usize { size.0 }",
            "fn f(size: usize) -> P { P { size: 3 } }",
            "fn f(size: usize) -> usize { fn g() -> usize { size(3).0 } size }",
            "fn f(size: usize) -> usize { size::new() + size }",
            "fn f(size: usize) -> usize { check!(size(3)); size }",
            "fn f(size: usize) -> usize { vec![size { n: 1 }].len() + size }",
            "fn f(size: usize) -> usize { size!(); size }",
            "impl P { fn f(&self, size: usize) -> usize { size } fn g() -> usize { size(3).0 } }",
            "fn f(n: usize) -> usize { let size = size(3); size.0 }",
        ] {
            assert!(!of(item).contains("size"), "{item}");
        }
    }
}
