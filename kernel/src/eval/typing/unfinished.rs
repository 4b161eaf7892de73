//! Whether a cell is complete, goes on, or can become nothing whatever follows.
use crate::engine::Completeness;
use crate::eval::parse::segments::{Segment, blank_between, segments};
use crate::eval::text::depth;
use crate::eval::text::scan::{Kind, Token, close, closers, open_brackets, tokens};
use crate::magics;
use std::str::FromStr;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::visit::Visit;

/// Nobody sees more of a line.
const FURTHEST: usize = 20;

pub fn is_complete(code: &str) -> Completeness {
    let trimmed = code.trim_start();
    if let Some(indent) = table_goes_on(code) {
        return Completeness::Incomplete(indent);
    }
    if asks_for_a_body(code) {
        return Completeness::Incomplete(String::new());
    }
    let is_command = trimmed.starts_with(':') && !trimmed.contains('\n');
    if is_command || trimmed.starts_with(['%', '!']) && !trimmed.starts_with("%%") && !trimmed.contains('\n') {
        return Completeness::Complete;
    }
    let code = &rust(code);
    let all: Vec<Token> = tokens(code).into_iter().filter(|t| t.kind != Kind::Comment || t.open_ended).collect();
    let Some(open) = open_brackets(&all) else { return Completeness::Invalid };
    let indent = "    ".repeat(open.len().min(FURTHEST));
    if all.last().is_some_and(|t| t.open_ended) {
        return Completeness::Incomplete(String::new());
    }
    let Some(last) = all.last() else {
        // What is said of an item is no cell without it.
        let documents = matches!(parsed(code, &open), Some(Fault::At(_)));
        return if documents { Completeness::Incomplete(String::new()) } else { Completeness::Complete };
    };
    // Words that something must follow, where nothing does yet.
    let begins =
        matches!(&code[last.range.clone()], "async" | "unsafe" | "extern" | "const" | "static" | "move" | "impl");
    match parsed(code, &open) {
        Some(Fault::At(at)) if begins && at == last.range.start => Completeness::Incomplete("    ".into()),
        // Somewhere before its end: what follows cannot mend that.
        Some(Fault::At(at)) if at < last.range.end => Completeness::Invalid,
        _ if !open.is_empty() => Completeness::Incomplete(indent),
        Some(Fault::At(_)) => Completeness::Incomplete("    ".into()),
        None | Some(Fault::Unknown) if goes_on(code, &all) => Completeness::Incomplete("    ".into()),
        _ => Completeness::Complete,
    }
}

/// How far the next line is indented where the last `:dep` leaves its table open.
fn table_goes_on(code: &str) -> Option<String> {
    let mut starts = std::iter::once(0).chain(code.match_indices('\n').map(|(i, _)| i + 1));
    let begins = |at: &usize| code[*at..].trim_start_matches(' ').starts_with(":dep ");
    let table = &code[starts.rfind(begins)?..];
    let all = tokens(table);
    let first = all.iter().position(|t| matches!(t.kind, Kind::Open(_)))?;
    let open = open_brackets(&all)?;
    let goes_on = close(&all, first) == all.len() && !table[..all[first].range.start].contains('\n');
    goes_on.then(|| "    ".repeat(open.len().min(FURTHEST)))
}

/// A cell magic that has no body yet.
fn asks_for_a_body(code: &str) -> bool {
    let Some(Segment::Magic { line, body: Some(body) }) = segments(code, &|_| false).into_iter().next() else {
        return false;
    };
    let name = code[line].trim_start_matches('%').split_whitespace().next().unwrap_or_default();
    code[body].trim().is_empty() && magics::find(name).is_some_and(|m| m.scope != magics::Scope::Line)
}

enum Fault {
    /// The first place that fits nothing.
    At(usize),
    /// The text is too deep to be looked at.
    Unknown,
}

/// What is wrong with the text once its brackets are closed.
fn parsed(code: &str, open: &[char]) -> Option<Fault> {
    let text = format!("{code}\n{}", closers(open));
    if !depth::fits(&text) {
        return Some(Fault::Unknown);
    }
    // What is no token becomes none.
    if proc_macro2::TokenStream::from_str(&text).is_err() {
        return Some(Fault::At(0));
    }
    let cell = |input: ParseStream| {
        input.call(syn::Attribute::parse_inner)?;
        input.call(syn::Block::parse_within)
    };
    match cell.parse_str(&text) {
        Ok(statements) => {
            let mut wrong = Wrong(open.is_empty(), false);
            statements.iter().for_each(|s| wrong.visit_stmt(s));
            wrong.1.then_some(Fault::At(0))
        }
        Err(error) => Some(Fault::At(place(&error, &text))),
    }
}

/// What syn takes and Rust does not: numbers with endings that there are not; and, where no bracket is open, std's macros whose
/// arguments are no expressions.
struct Wrong(bool, bool);

impl<'ast> Visit<'ast> for Wrong {
    fn visit_lit(&mut self, lit: &'ast syn::Lit) {
        const INTEGERS: [&str; 13] =
            ["", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize"];
        const FLOATS: [&str; 2] = ["f32", "f64"];
        self.1 |= match lit {
            syn::Lit::Int(n) => !INTEGERS.contains(&n.suffix()) && !FLOATS.contains(&n.suffix()),
            syn::Lit::Float(n) => !n.suffix().is_empty() && !FLOATS.contains(&n.suffix()),
            _ => false,
        };
    }

    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        const OF_EXPRESSIONS: [&str; 14] = [
            "vec",
            "print",
            "println",
            "eprint",
            "eprintln",
            "format",
            "panic",
            "assert",
            "assert_eq",
            "assert_ne",
            "dbg",
            "todo",
            "write",
            "writeln",
        ];
        let list = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        let known = m.path.get_ident().is_some_and(|name| OF_EXPRESSIONS.iter().any(|k| name == k));
        let repeats = || syn::parse2::<syn::ExprRepeat>(bracketed(&m.tokens)).is_ok();
        self.1 |= self.0 && known && list.parse2(m.tokens.clone()).is_err() && !repeats();
    }
}

fn bracketed(tokens: &proc_macro2::TokenStream) -> proc_macro2::TokenStream {
    proc_macro2::TokenTree::Group(proc_macro2::Group::new(proc_macro2::Delimiter::Bracket, tokens.clone())).into()
}

/// Where an error is; one at the end of the text is behind it.
fn place(error: &syn::Error, text: &str) -> usize {
    let range = error.span().byte_range();
    let lines = text.lines().count();
    let nowhere = range.is_empty() && error.span().start().line <= 1 && error.span().start().column == 0 && lines > 0;
    if nowhere { text.len() } else { range.start }
}

/// The cell without magics and commands, at the same places.
fn rust(code: &str) -> String {
    let range = |segment: Segment| match segment {
        Segment::Code(range) | Segment::Magic { body: Some(range), .. } => Some(range),
        Segment::Magic { .. } | Segment::Command(_) => None,
    };
    blank_between(code, segments(code, &|_| false).into_iter().filter_map(range))
}

/// A sign or a word behind which something must come.
fn goes_on(code: &str, all: &[Token]) -> bool {
    let Some(last) = all.last() else { return false };
    let text = &code[last.range.clone()];
    match last.kind {
        Kind::Punct(c) => "=+-*/%^&|<>.,:".contains(c) && !code[..last.range.end].ends_with(".."),
        Kind::Ident => matches!(
            text,
            "let"
                | "fn"
                | "struct"
                | "enum"
                | "impl"
                | "use"
                | "mod"
                | "trait"
                | "else"
                | "for"
                | "while"
                | "if"
                | "match"
                | "mut"
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completeness() {
        let incomplete = |s: &str| Completeness::Incomplete(s.into());
        for (code, want) in [
            ("let x = 1;", Completeness::Complete),
            ("x", Completeness::Complete),
            ("", Completeness::Complete),
            ("// nothing", Completeness::Complete),
            ("1..", Completeness::Complete),
            ("%metrics", Completeness::Complete),
            ("%metrics\nlet x = 1;", Completeness::Complete),
            (":dep regex = \"1\"", Completeness::Complete),
            ("'a'; let c = '{';", Completeness::Complete),
            ("fn f() {", incomplete("    ")),
            ("fn f() -> i32", incomplete("    ")),
            ("let s = \"abc", incomplete("")),
            ("/* abc", incomplete("")),
            ("let x =", incomplete("    ")),
            ("let v: Vec<i32", incomplete("    ")),
            ("x.", incomplete("    ")),
            ("#[derive(Clone)]", incomplete("    ")),
            ("if a { 1 } else", incomplete("    ")),
            ("match x {\n    A => 1,", incomplete("    ")),
            ("f(1,", incomplete("    ")),
            ("%%time\nlet x = [", incomplete("    ")),
            ("f(]", Completeness::Invalid),
            ("let = 3;", Completeness::Invalid),
            ("x y", Completeness::Invalid),
            ("f(1 2", Completeness::Invalid),
            ("let x = 1;\nfn 3() {}\n", Completeness::Invalid),
            ("let y = = 2", Completeness::Invalid),
            ("let n = 5px;", Completeness::Invalid),
            ("let n = 1e;", Completeness::Invalid),
            ("0x", Completeness::Invalid),
            ("let c = 'ab';", Completeness::Invalid),
            ("`ls`", Completeness::Invalid),
            ("let price = €5;", Completeness::Invalid),
            ("vec![1 2]", Completeness::Invalid),
            ("println!(\"{}\" x)", Completeness::Invalid),
            ("vec![0; 3]; println!(\"{n}\", n = 1); css!(5px solid)", Completeness::Complete),
            ("let v = vec![1,", incomplete("    ")),
            ("async", incomplete("    ")),
            ("#![allow(unused)]\nlet x = 1;", Completeness::Complete),
            ("'a", incomplete("    ")),
            (":dep serde = { version = \"1\",", incomplete("    ")),
            (":dep {", incomplete("    ")),
            (":dep a = \"1\"\n:dep b = { features = [\n    \"x\",", incomplete("        ")),
            (":dep a = {\n    version = \"1\",\n}", Completeness::Complete),
            (":dep a = { version = \"1\" }\nlet x = [", incomplete("    ")),
            (":dep a = { version = \"1\" }\nlet = [", Completeness::Invalid),
            ("/// Doc.", incomplete("")),
            ("/** Doc. */", incomplete("")),
            ("//// Rule\n/* Note. */", Completeness::Complete),
            ("#![allow(dead_code)]", Completeness::Complete),
            ("#![allow(dead_code)]\n#![allow(unused)]\n", Completeness::Complete),
            ("%%time", incomplete("")),
            ("%%time\n\n", incomplete("")),
            ("%%nosuch", Completeness::Complete),
            ("%time", Completeness::Complete),
        ] {
            assert_eq!(is_complete(code), want, "{code}");
        }
    }
}
