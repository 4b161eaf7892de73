//! What stands before a place, in tokens: words, paths, brackets that are open.
use crate::eval::text::scan::{Kind, Token};

/// Whether the last token is that word or sign.
pub fn before_is(code: &str, known: &[&Token], text: &str) -> bool {
    known.last().is_some_and(|t| &code[t.range.clone()] == text)
}

/// The words of a path that ends there, without generic arguments: `Vec::<i32>` is `[Vec]`. What `<Type as Trait>` names is the trait,
/// or else the type.
pub fn path_before(code: &str, known: &[&Token]) -> Vec<String> {
    path_at(code, known).map(|(path, _)| path).unwrap_or_default()
}

/// The same, and where it begins.
pub fn path_at(code: &str, known: &[&Token]) -> Option<(Vec<String>, usize)> {
    let mut out = Vec::new();
    let mut at = known.len();
    loop {
        if at > 0 && known[at - 1].kind == Kind::Punct('>') {
            let open = angle_before(known, at - 1)?;
            let colons = open > 1 && before_is(code, &known[..open], ":") && before_is(code, &known[..open - 1], ":");
            if open == 0 || known[open - 1].kind != Kind::Ident && !colons {
                out.extend(path_before(code, &known[open + 1..at - 1]).into_iter().rev());
                at = open;
                break;
            }
            at = open;
            // `Vec::<i32>::`, but also `Vec<i32>::` in a type.
            if at > 1 && before_is(code, &known[..at], ":") {
                at -= 2;
            }
        }
        match at.checked_sub(1).map(|i| known[i]) {
            Some(t) if t.kind == Kind::Ident => out.push(code[t.range.clone()].to_owned()),
            _ => break,
        }
        at -= 1;
        if at < 2 || !before_is(code, &known[..at], ":") || !before_is(code, &known[..at - 1], ":") {
            break;
        }
        at -= 2;
    }
    out.reverse();
    (!out.is_empty()).then_some((out, at))
}

/// Where the `<` stands that belongs to a `>`.
pub fn angle_before(known: &[&Token], close: usize) -> Option<usize> {
    let mut depth = 0;
    for i in (0..=close).rev() {
        match known[i].kind {
            Kind::Punct('>') if i == 0 || known[i - 1].kind != Kind::Punct('-') => depth += 1,
            Kind::Punct('<') => depth -= 1,
            Kind::Open('{') | Kind::Close('}') | Kind::Punct(';') => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(i);
        }
    }
    None
}

/// The innermost bracket that is open at the end, and what stands behind it.
pub fn enclosing(known: &[&Token]) -> Option<usize> {
    let mut depth = 0;
    for (i, t) in known.iter().enumerate().rev() {
        match t.kind {
            Kind::Close(_) => depth += 1,
            Kind::Open(_) if depth == 0 => return Some(i),
            Kind::Open(_) => depth -= 1,
            _ => {}
        }
    }
    None
}
