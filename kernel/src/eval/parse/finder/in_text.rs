//! Variables that format strings name.
use super::{Finder, What};
use crate::eval::parse::format_strings;
use crate::eval::parse::syntax::bytes;
use crate::eval::text::scan;
use proc_macro2::TokenTree;
use std::ops::Range;
use syn::Expr;

impl Finder<'_> {
    /// Names in a format string, but for those that it is handed.
    pub(super) fn named(&mut self, literal: &Expr, handed: &[usize]) {
        let Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = literal else { return };
        self.named_in(&text.token(), handed);
    }

    pub(super) fn named_in(&mut self, text: &proc_macro2::Literal, handed: &[usize]) {
        let at = bytes(text.span(), self.base).start;
        for name in scan::mentions(&text.to_string()) {
            let Some(variable) = self.variable(&name).filter(|variable| !handed.contains(variable)) else { continue };
            self.out.variables[variable].in_text.push(at);
            match &mut self.capture {
                Some(captured) => drop(captured.insert(variable)),
                None => self.happens(variable, at, What::Named),
            }
        }
    }

    /// What a closure names in a format string it borrows as the variable that it is there, and that does not live as long as what the
    /// variable stands for. So that is handed to the macro, as an argument of that name. Gives the variables.
    pub(super) fn handed(&mut self, name: &str, m: &syn::Macro) -> Vec<usize> {
        if self.closures == 0 || self.capture.is_some() {
            return Vec::new();
        }
        let literals: Vec<Range<usize>> = m
            .tokens
            .clone()
            .into_iter()
            .filter_map(|t| if let TokenTree::Literal(l) = t { Some(l.span().byte_range()) } else { None })
            .collect();
        let close = match &m.delimiter {
            syn::MacroDelimiter::Paren(p) => p.span,
            syn::MacroDelimiter::Brace(b) => b.span,
            syn::MacroDelimiter::Bracket(b) => b.span,
        };
        let text = self.text[..close.close().byte_range().start].trim_end();
        let at = text.strip_suffix(',').unwrap_or(text).len() + self.base;
        let found = format_strings::of_call(self.text, name, m.tokens.clone(), &|_| None).captures;
        let own = |at: &&Range<usize>| literals.iter().any(|l| l.start < at.start && at.end < l.end);
        let mut handed = Vec::new();
        for place in found.iter().filter(own) {
            let Some(variable) = self.variable(&self.text[place.clone()]).filter(|v| !handed.contains(v)) else {
                continue;
            };
            let (taken, making, field, captured, in_macro, argument) = (false, None, false, false, false, Some(at));
            let (start, end) = (place.start + self.base, place.end + self.base);
            self.happens(variable, start, What::Mention { taken, making, field, captured, in_macro, argument, end });
            handed.push(variable);
        }
        handed
    }
}
