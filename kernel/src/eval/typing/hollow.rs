//! A cell without the bodies of functions that the cursor is not in: rustc need not look at them to tell a type.
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The text that parses to a block, whose places are one further, with `loop {}` in bodies that do not mention a name.
pub fn hollowed(text: &str, block: &syn::Block, name: &str) -> String {
    let mut found = Bodies { text, name, out: Vec::new() };
    found.visit_block(block);
    let (mut out, mut from) = (String::new(), 0);
    for body in found.out {
        out.push_str(&text[from..body.start]);
        out.push_str("loop {}");
        from = body.end;
    }
    out + &text[from..]
}

struct Bodies<'a> {
    text: &'a str,
    name: &'a str,
    /// What stands between their braces.
    out: Vec<Range<usize>>,
}

impl Bodies<'_> {
    /// Whether it was left out.
    fn leaves_out(&mut self, signature: &syn::Signature, body: &syn::Block) -> bool {
        // What a body returns as `impl Trait` it alone says, and constants run what they call.
        let says = self.text.get(inside(signature.output.span().byte_range())).is_some_and(|t| t.contains("impl"));
        let braces = body.brace_token.span;
        let inside = braces.open().byte_range().end - 1..braces.close().byte_range().start - 1;
        let out = signature.constness.is_none()
            && !says
            && self.text.get(inside.clone()).is_some_and(|t| !t.trim().is_empty() && !t.contains(self.name));
        self.out.extend(out.then_some(inside));
        out
    }
}

fn inside(range: Range<usize>) -> Range<usize> {
    range.start.saturating_sub(1)..range.end.saturating_sub(1)
}

impl<'ast> Visit<'ast> for Bodies<'_> {
    fn visit_item_fn(&mut self, i: &'ast syn::ItemFn) {
        if !self.leaves_out(&i.sig, &i.block) {
            visit::visit_item_fn(self, i);
        }
    }

    fn visit_impl_item_fn(&mut self, i: &'ast syn::ImplItemFn) {
        if !self.leaves_out(&i.sig, &i.block) {
            visit::visit_impl_item_fn(self, i);
        }
    }

    fn visit_trait_item_fn(&mut self, i: &'ast syn::TraitItemFn) {
        if !i.default.as_ref().is_some_and(|body| self.leaves_out(&i.sig, body)) {
            visit::visit_trait_item_fn(self, i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hollowed;

    #[test]
    fn bodies_are_left_out_but_for_those_that_count() {
        let of = |text: &str| hollowed(text, &syn::parse_str(&format!("{{{text}\n}}")).unwrap(), "here");
        assert_eq!(of("fn f(ü: u8) -> u8 { g(1) } f(2).here()"), "fn f(ü: u8) -> u8 {loop {}} f(2).here()");
        assert_eq!(
            of("impl A { fn f(&self) { a } fn g() { b.here() } }"),
            "impl A { fn f(&self) {loop {}} fn g() { b.here() } }"
        );
        assert_eq!(of("fn f() { fn g() { a } g().here() }"), "fn f() { fn g() {loop {}} g().here() }");
        assert_eq!(
            of("trait A { fn f(); fn g() { a } } mod m { fn h() { a } }"),
            "trait A { fn f(); fn g() {loop {}} } mod m { fn h() {loop {}} }"
        );
        let stay = "const fn f() -> u8 { 1 } fn g() -> impl A { 1 } fn h() {} let c = || { 1 };";
        assert_eq!(of(stay), stay);
    }
}
