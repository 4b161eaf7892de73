//! Whether a cell is complete, goes on, or can become nothing whatever follows.
use crate::engine::Completeness;
use crate::eval::parse::segments::{Segment, blank_between, segments};
use crate::eval::text::depth;
use crate::eval::text::scan::{Kind, Token, closers, open_brackets, tokens};

/// Nobody sees more of a line.
const FURTHEST: usize = 20;

pub fn is_complete(code: &str) -> Completeness {
    let trimmed = code.trim_start();
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
    let Some(last) = all.last() else { return Completeness::Complete };
    match parsed(code, &open) {
        // Somewhere before its end: what follows cannot mend that.
        Some(Fault::At(at)) if at < last.range.end => Completeness::Invalid,
        _ if !open.is_empty() => Completeness::Incomplete(indent),
        Some(Fault::At(_)) => Completeness::Incomplete("    ".into()),
        None | Some(Fault::Unknown) if goes_on(code, &all) => Completeness::Incomplete("    ".into()),
        _ => Completeness::Complete,
    }
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
    let error = syn::parse::Parser::parse_str(syn::Block::parse_within, &text).err()?;
    Some(Fault::At(place(&error, &text)))
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
        ] {
            assert_eq!(is_complete(code), want, "{code}");
        }
    }
}
