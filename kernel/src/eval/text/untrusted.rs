//! Names and types that come from a file (a checkpoint, the cell cache, what is known of dependencies): parsed or refused
//! before they become part of generated code. From files come data, never code.
use super::scan::{self, Kind};
use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{Expr, GenericArgument, Lit, Type, TypeParamBound, UnOp};

/// No name or type that a compiler writes is longer, or nested more deeply.
const LONGEST_NAME: usize = 256;
const LONGEST_TYPE: usize = 4096;
const DEEPEST: usize = 32;

/// A name as Rust has them, keywords excepted (`r#type` is one).
pub fn identifier(text: &str) -> Option<Ident> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '#');
    if text.len() > LONGEST_NAME || !text.chars().all(plain) {
        return None;
    }
    syn::parse_str::<Ident>(text).ok().filter(|name| name == text)
}

/// A type, in which nothing is that could run: no macro, no block, no expression but a number.
pub fn data_type(text: &str) -> Option<Type> {
    if text.len() > LONGEST_TYPE || !is_shallow(text) {
        return None;
    }
    let found = syn::parse_str::<Type>(text).ok()?;
    let mut look = Look { refused: false };
    look.visit_type(&found);
    (!look.refused).then_some(found)
}

/// Whether it is made of a type's tokens alone, and nested so little that any parser can follow.
fn is_shallow(text: &str) -> bool {
    let (mut depth, mut prefixes) = (0usize, 0);
    let mut after_minus = false;
    for token in scan::tokens(text) {
        match token.kind {
            Kind::Open('(' | '[') | Kind::Punct('<') => depth += 1,
            Kind::Punct('&' | '*') => prefixes += 1,
            Kind::Punct('>') if after_minus => prefixes += 1,
            Kind::Close(')' | ']') | Kind::Punct('>') => depth = depth.saturating_sub(1),
            Kind::Ident | Kind::Number | Kind::Lifetime => {}
            Kind::Punct(':' | ',' | '+' | '-' | '=' | '!' | ';') => {}
            _ => return false,
        }
        if depth > DEEPEST || prefixes > DEEPEST {
            return false;
        }
        after_minus = token.kind == Kind::Punct('-');
    }
    true
}

/// Looks for what has no place in a type that is data.
struct Look {
    refused: bool,
}

impl<'a> Visit<'a> for Look {
    fn visit_type(&mut self, t: &'a Type) {
        match t {
            Type::Array(_) | Type::BareFn(_) | Type::Never(_) | Type::Paren(_) | Type::Path(_) | Type::Ptr(_) => {}
            Type::Reference(_) | Type::Slice(_) | Type::TraitObject(_) | Type::Tuple(_) => {}
            _ => self.refused = true,
        }
        visit::visit_type(self, t);
    }

    fn visit_expr(&mut self, e: &'a Expr) {
        let number = |e: &Expr| matches!(e, Expr::Lit(l) if matches!(l.lit, Lit::Int(_) | Lit::Bool(_)));
        let negative = matches!(e, Expr::Unary(u) if matches!(u.op, UnOp::Neg(_)) && number(&u.expr));
        self.refused |= !number(e) && !negative;
        visit::visit_expr(self, e);
    }

    fn visit_generic_argument(&mut self, a: &'a GenericArgument) {
        use GenericArgument::{AssocType, Const, Lifetime, Type};
        self.refused |= !matches!(a, Lifetime(_) | Type(_) | Const(_) | AssocType(_));
        visit::visit_generic_argument(self, a);
    }

    fn visit_type_param_bound(&mut self, b: &'a TypeParamBound) {
        self.refused |= !matches!(b, TypeParamBound::Trait(_) | TypeParamBound::Lifetime(_));
        visit::visit_type_param_bound(self, b);
    }

    fn visit_macro(&mut self, _: &'a syn::Macro) {
        self.refused = true;
    }

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {
        self.refused = true;
    }

    fn visit_qself(&mut self, _: &'a syn::QSelf) {
        self.refused = true;
    }
}

/// What a file says, in a message about it: short, and nothing in it that a terminal would obey.
pub fn quoted(text: &str) -> String {
    const MOST: usize = 40;
    let short: String = text.chars().take(MOST).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("`{}{more}`", short.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names() {
        for name in ["x", "_a1", "r#type", "élan", "Élan", "x_"] {
            assert!(identifier(name).is_some(), "{name}");
        }
        let long = "a".repeat(1000);
        for text in [
            "",
            "_",
            "fn",
            "self",
            "Self",
            "crate",
            "a b",
            " a",
            "a ",
            "a/**/",
            "a//",
            "a\n",
            "1a",
            "a.b",
            "a::b",
            "a!",
            "\"",
            "r#",
            "r#fn#",
            "a#",
            "#a",
            "r#\"a\"#",
            "'a",
            "a\0",
            "a\u{202e}",
            "a\");evil();(\"",
            &long,
        ] {
            assert!(identifier(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn types_are_types_and_nothing_that_runs() {
        for text in [
            "i32",
            "&str",
            "(f64, f64, f64)",
            "()",
            "::std::collections::HashMap<::std::string::String, ::std::vec::Vec<i64>>",
            "[[i16; 2]; 2]",
            "::g_12ab::Matrix<f32, 3, -1, true>",
            "::std::boxed::Box<dyn ::core::ops::Fn(i32) -> i32 + ::core::marker::Send>",
            "dyn ::core::iter::Iterator<Item = u8>",
            "for<'a> fn(&'a str) -> &'a mut [u8]",
            "*const !",
        ] {
            assert!(data_type(text).is_some(), "{text}");
        }
        let (deep, refs) = ("(".repeat(100_000), "&".repeat(100_000) + "u8");
        let (round, angle) = ("[".repeat(40) + "u8" + &"]".repeat(40), "Vec<".repeat(40) + "u8" + &">".repeat(40));
        let arrows = "fn() -> ".repeat(200) + "u8";
        for text in [
            "",
            "evil!()",
            "Vec<evil!()>",
            "[u8; { std::process::abort() }]",
            "[u8; include_bytes!(\"x\").len()]",
            "[u8; f()]",
            "[u8; N]",
            "[u8; 1 + 1]",
            "A<{ 1 }>",
            "A<B = { 1 }>",
            "A<B: C>",
            "<A as B>::C",
            "impl A",
            "_",
            "i32 // swallowed",
            "i32 /* c */",
            "i32>::TYPE).load(\"x\"); evil(); (&&Wanted::<i32",
            "i32; evil()",
            "i32, i32",
            "fn(#[evil] i32)",
            "A<'\\''>",
            "A<\"x\">",
            "typeof(evil())",
            "?Sized",
            "$crate::A",
            &deep,
            &refs,
            &round,
            &angle,
            &arrows,
        ] {
            assert!(data_type(text).is_none(), "{text}");
        }
    }

    #[test]
    fn messages_hold_nothing_that_a_terminal_obeys() {
        assert_eq!(quoted("a\x1b[2J\u{202e}"), "`a\\u{1b}[2J\\u{202e}`");
        assert_eq!(quoted(&"é".repeat(50)), format!("`{}…`", "é".repeat(40)));
    }
}
