//! Names that a pattern binds, by its words, in text that need not parse.
use super::scan::{Kind, Token};

/// Where the pattern of a `let` ends: at its type, its value, or its semicolon.
pub fn end_of_pattern(all: &[Token], text: &str, from: usize) -> usize {
    let mut depth = 0;
    for i in from..all.len() {
        match all[i].kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth -= 1,
            Kind::Punct(':') if depth == 0 => {
                let path = text[all[i].range.end..].starts_with(':') || text[..all[i].range.start].ends_with(':');
                if !path {
                    return i;
                }
            }
            Kind::Punct('=' | ';') if depth == 0 => return i,
            _ => {}
        }
    }
    all.len()
}

/// Lower-case names in a pattern that are no paths, functions or fields.
pub fn names(all: &[Token], text: &str, from: usize, to: usize) -> Vec<String> {
    let word = |i: usize| all.get(i).map_or("", |t| &text[t.range.clone()]);
    let to = (from..to).find(|i| word(*i) == "if").unwrap_or(to);
    let is = |i: usize| {
        let name = word(i);
        let part = word(i + 1) == ":" && i + 1 < to
            || word(i + 1) == "("
            || i > from && word(i - 1) == ":" && word(i.saturating_sub(2)) == ":";
        let keyword =
            matches!(name, "mut" | "ref" | "_" | "box" | "true" | "false" | "self" | "if" | "crate" | "super");
        all[i].kind == Kind::Ident && !keyword && !part && !name.starts_with(char::is_uppercase)
    };
    (from..to).filter(|i| is(*i)).map(|i| word(i).to_owned()).collect()
}
