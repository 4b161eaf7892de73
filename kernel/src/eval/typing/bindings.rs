//! Names that a cell binds before the cursor: `let`, parameters of functions and closures, loops, arms of `match`.
use crate::eval::text::patterns::{end_of_pattern, names};
use crate::eval::text::scan::{Kind, Token, tokens};

/// What lies further back is not looked at.
const FURTHEST: usize = 1 << 16;

/// Those that are in scope at the end of the text, the latest first.
pub fn bindings(before: &str) -> Vec<String> {
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(FURTHEST))..];
    let all: Vec<Token> = tokens(before).into_iter().filter(|t| t.kind != Kind::Comment).collect();
    let text = |i: usize| all.get(i).map_or("", |t: &Token| &before[t.range.clone()]);
    let mut scopes: Vec<Vec<String>> = vec![Vec::new()];
    // What belongs to the next braces.
    let mut coming: Vec<String> = Vec::new();
    let mut i = 0;
    while i < all.len() {
        match (all[i].kind, text(i)) {
            (Kind::Open(c), _) => {
                let own = if c == '{' { std::mem::take(&mut coming) } else { Vec::new() };
                scopes.push(own);
            }
            (Kind::Close(_), _) if scopes.len() > 1 => {
                scopes.pop();
            }
            (Kind::Ident, "let") => {
                let end = end_of_pattern(&all, before, i + 1);
                // One that is not at its end yet binds nothing.
                if end < all.len() {
                    let names = names(&all, before, i + 1, end);
                    let condition = i > 0 && matches!(text(i - 1), "if" | "while" | "&");
                    match condition {
                        true => coming.extend(names),
                        false => add(&mut scopes, names),
                    }
                    i = end;
                    continue;
                }
            }
            (Kind::Ident, "for") if text(i + 1) != "<" => {
                let end = (i..all.len()).find(|j| text(*j) == "in").unwrap_or(all.len());
                let loops = end < all.len() && !(i..end).any(|j| all[j].kind == Kind::Open('{'));
                if loops {
                    coming.extend(names(&all, before, i + 1, end));
                    i = end;
                    continue;
                }
            }
            (Kind::Ident, "fn") => {
                // Not that of a bound, `fn f<F: Fn(u8)>(f: F)`.
                let mut angles = 0;
                let open = (i..all.len()).find(|j| {
                    angles += i32::from(all[*j].kind == Kind::Punct('<'));
                    angles -= i32::from(all[*j].kind == Kind::Punct('>') && all[*j - 1].kind != Kind::Punct('-'));
                    angles == 0 && all[*j].kind == Kind::Open('(')
                });
                if let Some(open) = open {
                    let end = crate::eval::text::scan::close(&all, open);
                    coming = parameters(&all, before, open + 1, end);
                    if end < all.len() {
                        i = end + 1;
                        continue;
                    }
                }
            }
            (Kind::Punct('|'), _) if begins_closure(&all, before, i) => {
                let end = (i + 1..all.len()).find(|j| all[*j].kind == Kind::Punct('|'));
                if let Some(end) = end {
                    add(&mut scopes, parameters(&all, before, i + 1, end));
                    i = end;
                }
            }
            (Kind::Punct('='), _) if text(i + 1) == ">" => {
                let mut deep = 0;
                let start = (0..i).rev().find(|j| match all[*j].kind {
                    Kind::Close('}') if deep == 0 && text(i - 1) != "}" => true,
                    Kind::Close(_) => {
                        deep += 1;
                        false
                    }
                    Kind::Open(_) => {
                        deep -= 1;
                        deep < 0
                    }
                    Kind::Punct(',') => deep == 0,
                    _ => false,
                });
                let names = names(&all, before, start.map_or(0, |s| s + 1), i);
                add(&mut scopes, names);
            }
            _ => {}
        }
        i += 1;
    }
    let mut out: Vec<String> = Vec::new();
    for name in scopes.into_iter().flatten().rev() {
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

fn add(scopes: &mut [Vec<String>], names: Vec<String>) {
    if let Some(scope) = scopes.last_mut() {
        scope.extend(names);
    }
}

/// Names of parameters with or without types.
fn parameters(all: &[Token], text: &str, from: usize, to: usize) -> Vec<String> {
    let mut out = Vec::new();
    let (mut start, mut depth, mut angles) = (from, 0, 0);
    for i in from..=to.min(all.len()) {
        let kind = all.get(i).map(|t| t.kind);
        match kind {
            Some(Kind::Open(_)) => depth += 1,
            Some(Kind::Close(_)) if i < to => depth -= 1,
            Some(Kind::Punct('<')) => angles += 1,
            Some(Kind::Punct('>')) if all[i - 1].kind != Kind::Punct('-') => angles -= 1,
            _ => {}
        }
        let ends = i == to || i == all.len() || depth == 0 && angles == 0 && kind == Some(Kind::Punct(','));
        if ends {
            let end = end_of_pattern(all, text, start).min(i);
            out.extend(names(all, text, start, end));
            start = i + 1;
        }
    }
    out
}

/// `|` begins a closure where an operand could begin.
pub fn begins_closure(all: &[Token], text: &str, i: usize) -> bool {
    let Some(before) = i.checked_sub(1).map(|b| &all[b]) else { return true };
    match before.kind {
        Kind::Open(_) | Kind::Punct('=' | ',' | ';' | '>' | '&') => true,
        Kind::Ident => matches!(&text[before.range.clone()], "move" | "return" | "async" | "else" | "in"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::bindings;

    #[test]
    fn what_is_in_scope_and_what_is_not() {
        assert_eq!(bindings("let a = 1; let (b, mut c): (i32, i32) = f(); a"), ["c", "b", "a"]);
        assert_eq!(bindings("{ let a = 1; } let b = 2;"), ["b"]);
        assert_eq!(bindings("fn f(x: Vec<i32>, (y, z): (u8, u8)) -> i32 { let w = x;"), ["w", "z", "y", "x"]);
        assert_eq!(bindings("fn f<F: Fn(u8) -> u8, T>(mut g: F, t: T) { g("), ["t", "g"]);
        assert_eq!(bindings("fn f(x: i32) { x } "), Vec::<String>::new());
        assert_eq!(bindings("v.iter().map(|a, &b| a."), ["b", "a"]);
        assert_eq!(bindings("v.iter().map(|a| a).filter("), Vec::<String>::new());
        assert_eq!(bindings("for (i, item) in v.iter() { "), ["item", "i"]);
        assert_eq!(bindings("if let Some(x) = y { x"), ["x"]);
        assert_eq!(bindings("match s { Shape::Circle { radius } => radius"), ["radius"]);
        assert_eq!(bindings("match s { Some(n) if n > 2 => n"), ["n"]);
        assert_eq!(bindings("let x: std::vec::Vec<i32> = y"), ["x"]);
        assert_eq!(bindings("let x = x."), ["x"]);
    }
}
