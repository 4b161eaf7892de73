//! The pattern of an `if let`, a `while let` or a `let … else`, which may not match: what it is about stands behind the cursor.
use super::place::{Arm, inside};
use super::words::KEYWORDS;
use crate::eval::text::scan::{Kind, Token, tokens};
use std::ops::Range;

/// The pattern that the cursor is in, where what it is of is there already. `known` stands before the word at the cursor.
pub fn refutable(code: &str, known: &[&Token], cursor: usize) -> Option<Arm> {
    let text = |t: &Token| &code[t.range.clone()];
    let at = let_before(code, known)?;
    let pattern = &known[at + 1..];
    let depth = pattern.iter().fold(0i32, |depth, t| match t.kind {
        Kind::Open(_) => depth + 1,
        Kind::Close(_) => depth - 1,
        _ => depth,
    });
    let (about, otherwise) = about(code, cursor, depth)?;
    let asked = at.checked_sub(1).is_some_and(|i| matches!(text(known[i]), "if" | "while" | "&"));
    (asked || otherwise).then(|| Arm { start: known[at].range.start, about, inside: inside(code, pattern) })
}

/// The `let` whose pattern the end is in.
fn let_before(code: &str, known: &[&Token]) -> Option<usize> {
    for (i, t) in known.iter().enumerate().rev() {
        match (t.kind, &code[t.range.clone()]) {
            (Kind::Ident, "let") => return Some(i),
            (Kind::Ident, "mut" | "ref") => {}
            (Kind::Ident, word) if KEYWORDS.contains(&word) => return None,
            (Kind::Punct('=' | ';' | '.'), _) => return None,
            _ => {}
        }
    }
    None
}

/// What stands behind the `=` of a pattern in so many brackets, up to the block, and whether an `else` follows.
fn about(code: &str, cursor: usize, brackets: i32) -> Option<(Range<usize>, bool)> {
    let rest: Vec<Token> = tokens(&code[cursor..]).into_iter().filter(|t| t.kind != Kind::Comment).collect();
    let text = |i: usize| rest.get(i).map(|t| &code[cursor..][t.range.clone()]);
    let joined = |i: usize| rest.get(i + 1).is_some_and(|next| next.range.start == rest[i].range.end);
    let (mut depth, mut from) = (brackets, None);
    for (i, t) in rest.iter().enumerate() {
        let here = cursor + t.range.start;
        match t.kind {
            Kind::Open('{') if depth == 0 && from.is_some() => return Some((from?..here, false)),
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth -= 1,
            Kind::Punct(';') => return None,
            Kind::Punct('=') if depth == 0 && from.is_none() => {
                if joined(i) && matches!(text(i + 1), Some("=" | ">")) {
                    return None;
                }
                from = Some(cursor + t.range.end);
            }
            Kind::Punct('&') if depth == 0 && from.is_some() && joined(i) && text(i + 1) == Some("&") => {
                return Some((from?..here, false));
            }
            Kind::Ident if depth == 0 && from.is_some() && text(i) == Some("else") => return Some((from?..here, true)),
            _ => {}
        }
    }
    // The block is not typed yet.
    from.map(|from| (from..code.len(), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pattern_is_of() {
        for (marked, want) in [
            ("if let ¦ = take { 1 }", Some("take")),
            ("if let ¦ = take", Some("take")),
            ("while let Some(¦) = v.pop() { }", Some("v.pop()")),
            ("if let A::B { x: ¦, .. } = f(|x| { x }) { }", Some("f(|x| { x })")),
            ("if a && let ¦ = b && c { }", Some("b")),
            ("let Some(¦) = nested else { return };", Some("nested")),
            ("let (¦, b) = pair;", None),
            ("let ¦ = take;", None),
            ("if let Some(x) = y { ¦ }", None),
            ("if let Some(x) = ¦ { }", None),
            ("if let ¦", None),
            ("if let ¦ == take { }", None),
        ] {
            let cursor = marked.find('¦').unwrap();
            let code = marked.replacen('¦', "", 1);
            let all = tokens(&code[..cursor]);
            let found = refutable(&code, &all.iter().collect::<Vec<_>>(), cursor);
            assert_eq!(found.map(|arm| code[arm.about].trim().to_owned()).as_deref(), want, "{marked}");
        }
    }
}
