//! Type parameters that are in scope where the cursor is, with the traits that they are bound by.
use super::ty::{Ty, bounds};
use std::collections::HashMap;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Of each parameter the traits with their arguments; of `T::Item`, too, where a `where` says something of it. `Self` stands for
/// the type that implements the trait at hand.
pub type Parameters = HashMap<String, Vec<(String, Vec<Ty>)>>;

/// Those of the items around a place of a block.
pub fn parameters(block: &syn::Block, at: usize) -> Parameters {
    let mut found = Around { at, out: Parameters::new() };
    found.visit_block(block);
    found.out
}

struct Around {
    at: usize,
    out: Parameters,
}

impl Around {
    fn is_in(&self, node: &impl Spanned) -> bool {
        let range = node.span().byte_range();
        range.start <= self.at && self.at <= range.end
    }

    fn add(&mut self, name: String, all: Vec<(String, Vec<Ty>)>) {
        self.out.entry(name).or_default().extend(all);
    }

    fn generics(&mut self, generics: &syn::Generics) {
        for p in generics.type_params() {
            self.add(p.ident.to_string(), bounds(p.bounds.iter()));
        }
        for predicate in generics.where_clause.iter().flat_map(|w| &w.predicates) {
            if let syn::WherePredicate::Type(p) = predicate
                && let Ty::Path(name, _) = Ty::of(&p.bounded_ty)
            {
                self.add(name, bounds(p.bounds.iter()));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Around {
    fn visit_item_fn(&mut self, i: &'ast syn::ItemFn) {
        if self.is_in(i) {
            self.generics(&i.sig.generics);
            visit::visit_item_fn(self, i);
        }
    }

    fn visit_item_impl(&mut self, i: &'ast syn::ItemImpl) {
        if self.is_in(i) {
            self.generics(&i.generics);
            visit::visit_item_impl(self, i);
        }
    }

    fn visit_impl_item_fn(&mut self, i: &'ast syn::ImplItemFn) {
        if self.is_in(i) {
            self.generics(&i.sig.generics);
            visit::visit_impl_item_fn(self, i);
        }
    }

    fn visit_item_trait(&mut self, i: &'ast syn::ItemTrait) {
        if self.is_in(i) {
            self.generics(&i.generics);
            let arguments = i.generics.type_params().map(|p| Ty::Path(p.ident.to_string(), Vec::new())).collect();
            self.add("Self".to_owned(), vec![(i.ident.to_string(), arguments)]);
            visit::visit_item_trait(self, i);
        }
    }

    fn visit_trait_item_fn(&mut self, i: &'ast syn::TraitItemFn) {
        if self.is_in(i) {
            self.generics(&i.sig.generics);
            visit::visit_trait_item_fn(self, i);
        }
    }

    fn visit_item_struct(&mut self, i: &'ast syn::ItemStruct) {
        if self.is_in(i) {
            self.generics(&i.generics);
        }
    }

    fn visit_item_enum(&mut self, i: &'ast syn::ItemEnum) {
        if self.is_in(i) {
            self.generics(&i.generics);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_scope_where_the_cursor_is() {
        let of = |marked: &str| {
            let at = marked.find('¦').unwrap();
            let block = syn::parse_str(&format!("{{{}}}", marked.replacen('¦', "", 1))).unwrap();
            let mut all: Vec<String> = parameters(&block, at + 1)
                .into_iter()
                .map(|(name, of)| format!("{name}: {}", of.iter().map(|b| &*b.0).collect::<Vec<_>>().join(" + ")))
                .collect();
            all.sort();
            all.join(", ")
        };
        assert_eq!(of("fn f<T: Clone>(t: T) { ¦t; } fn g<T: Ord, U>(t: T) {}"), "T: Clone");
        assert_eq!(of("impl<T> S<T> { fn f<U: Ord>(&self) where T: Clone + Eq { ¦ } }"), "T: Clone + Eq, U: Ord");
        assert_eq!(of("trait A: B { fn f(&self) { ¦ } }"), "Self: A");
        assert_eq!(of("fn f<I: Iterator>(i: I) where I::Item: Clone { ¦ }"), "I: Iterator, I::Item: Clone");
        assert_eq!(of("fn f<T>() {} ¦"), "");
    }
}
