//! What may stand at the cursor: a type, a pattern's new name, an item; read from the tokens before it.
use super::before::{before_is, enclosing, path_at};
use super::bindings::begins_closure;
use crate::eval::text::scan::{Kind, Token};
use std::ops::Range;

/// Whether a type follows, or a trait that bounds one.
pub fn takes_type(code: &str, known: &[&Token]) -> bool {
    let Some((last, before)) = known.split_last() else { return false };
    match (last.kind, &code[last.range.clone()]) {
        (Kind::Ident, "as" | "dyn" | "impl" | "where") => true,
        (Kind::Ident, "for") => heads(code, before, before.len()) == Some("impl"),
        (Kind::Ident, "mut" | "const") => {
            before.last().is_some_and(|t| matches!(t.kind, Kind::Punct('&' | '*') | Kind::Lifetime))
                && takes_type(code, before)
        }
        (Kind::Ident, "pub") => before.last().is_some_and(|t| t.kind != Kind::Open('{')) && takes_type(code, before),
        (Kind::Lifetime, _) => before_is(code, before, "&") && takes_type(code, before),
        (Kind::Punct('&' | '*' | '?'), _) => takes_type(code, before),
        (Kind::Punct('>'), _) => before_is(code, before, "-"),
        (Kind::Punct(':'), _) => !before_is(code, before, ":") && annotated(code, before),
        (Kind::Punct('+'), _) => match before.last() {
            Some(t) if t.kind == Kind::Lifetime => takes_type(code, &before[..before.len() - 1]),
            // `x as u8 + 1` is a sum.
            _ => path_at(code, before).is_some_and(|(_, start)| {
                let ahead = &before[..start];
                !before_is(code, ahead, "as") && takes_type(code, ahead)
            }),
        },
        (Kind::Punct('='), _) => path_at(code, before).is_some_and(|(_, start)| {
            let ahead = &before[..start];
            before_is(code, ahead, "type")
                || ahead.last().is_some_and(|t| matches!(t.kind, Kind::Punct('<' | ','))) && takes_type(code, ahead)
        }),
        (Kind::Punct('<'), _) => takes_arguments(code, before),
        (Kind::Punct(','), _) => match open_angle(before) {
            Some(open) if takes_arguments(code, &before[..open]) => true,
            _ if bounds_follow(code, before) => true,
            _ => {
                enclosing(before).is_some_and(|i| before[i].kind == Kind::Open('(') && takes_type(code, &before[..=i]))
            }
        },
        (Kind::Open('('), _) => takes_type(code, before) || has_payload(code, before),
        (Kind::Open('['), _) => takes_type(code, before),
        _ => false,
    }
}

/// Whether the colon behind these says of what type something is, and not what a field's value is.
fn annotated(code: &str, before: &[&Token]) -> bool {
    match before.split_last() {
        Some((name, ahead)) if name.kind == Kind::Ident => literal(code, ahead).is_none(),
        Some((t, _)) => matches!(t.kind, Kind::Close(_) | Kind::Punct('>')),
        None => false,
    }
}

/// Whether `<` behind these begins arguments, and is no comparison.
fn takes_arguments(code: &str, before: &[&Token]) -> bool {
    let Some(last) = before.last() else { return true };
    let text = &code[last.range.clone()];
    let constant = text.len() > 1 && text.chars().all(|c| c.is_uppercase() || c.is_numeric() || c == '_');
    match last.kind {
        Kind::Ident => text.starts_with(char::is_uppercase) && !constant && !declares_parameters(code, before),
        Kind::Open(_) => true,
        // `Vec::<u8>`, and `<Vec<u8>>::new` where an operand may stand; not `a.0 > <`.
        Kind::Punct(c) => matches!(c, ':' | '=' | ';' | ',' | '&' | '|' | '+' | '-' | '*'),
        _ => false,
    }
}

/// Whether `<` behind these begins the parameters of an item.
fn declares_parameters(code: &str, before: &[&Token]) -> bool {
    let words = ["fn", "struct", "enum", "union", "trait", "type"];
    let ahead = before.len().checked_sub(2).and_then(|i| before.get(i));
    before_is(code, before, "impl") || ahead.is_some_and(|t| words.contains(&&code[t.range.clone()]))
}

/// Where a new type parameter is named.
pub fn names_a_parameter(code: &str, known: &[&Token]) -> bool {
    let open = match known.last().map(|t| t.kind) {
        Some(Kind::Punct('<')) => Some(known.len() - 1),
        Some(Kind::Punct(',')) => open_angle(&known[..known.len() - 1]),
        _ => None,
    };
    open.is_some_and(|i| declares_parameters(code, &known[..i]))
}

/// The `<` that is open at the end, inside of the innermost bracket.
fn open_angle(known: &[&Token]) -> Option<usize> {
    let (mut brackets, mut angles) = (0, 0);
    for (i, t) in known.iter().enumerate().rev() {
        match t.kind {
            Kind::Close(_) => brackets += 1,
            Kind::Open(_) if brackets == 0 => return None,
            Kind::Open(_) => brackets -= 1,
            _ if brackets > 0 => {}
            Kind::Punct(';') => return None,
            Kind::Punct('>') if i == 0 || known[i - 1].kind != Kind::Punct('-') => angles += 1,
            Kind::Punct('<') if angles == 0 => return Some(i),
            Kind::Punct('<') => angles -= 1,
            _ => {}
        }
    }
    None
}

/// Between a `where` and the body.
fn bounds_follow(code: &str, known: &[&Token]) -> bool {
    let start = head_of(known, known.len());
    known[start..].iter().any(|t| &code[t.range.clone()] == "where")
}

/// Whether `(` behind these begins the fields of a struct or a variant, or what a closure's trait takes.
fn has_payload(code: &str, before: &[&Token]) -> bool {
    let Some((path, start)) = path_at(code, before) else { return false };
    let ahead = &before[..start];
    let variant = || enclosing(ahead).is_some_and(|open| heads(code, ahead, open) == Some("enum"));
    before_is(code, ahead, "struct")
        || path.len() == 1 && variant()
        || path.last().is_some_and(|p| matches!(&**p, "Fn" | "FnMut" | "FnOnce" | "fn")) && takes_type(code, ahead)
}

/// Where the statement or the item begins that goes on at a place: behind what ended before, outside of all brackets.
pub fn head_of(known: &[&Token], at: usize) -> usize {
    let mut depth = 0;
    for i in (0..at).rev() {
        match known[i].kind {
            // Braces in a head are rare; they end what stood before.
            Kind::Close('}') | Kind::Punct(';') if depth == 0 => return i + 1,
            Kind::Open(_) if depth == 0 => return i + 1,
            Kind::Close(_) => depth += 1,
            Kind::Open(_) => depth -= 1,
            _ => {}
        }
    }
    0
}

/// The path of the struct or variant of whose literal or pattern a field is named, and where its braces open: behind `{` or a
/// comma, in braces behind a type's name.
pub fn literal(code: &str, known: &[&Token]) -> Option<(Vec<String>, usize)> {
    let last = known.last()?;
    if !matches!(last.kind, Kind::Open('{') | Kind::Punct(',')) {
        return None;
    }
    let open = enclosing(known).filter(|i| known[*i].kind == Kind::Open('{'))?;
    let (path, start) = path_at(code, &known[..open])?;
    let begins = |t: &Token| {
        matches!(&code[t.range.clone()], "struct" | "enum" | "union" | "trait" | "impl" | "mod" | "for" | "fn")
    };
    // A literal's type is written without its arguments, and behind no word that begins an item.
    let generic = open > 0 && known[open - 1].kind == Kind::Punct('>');
    let item = known[..start].last().is_some_and(|t| begins(t) || t.kind == Kind::Punct('>'));
    if generic || item || defines_a_variant(code, known, open) {
        return None;
    }
    if !path.last()?.starts_with(char::is_uppercase) {
        return None;
    }
    Some((path, open))
}

/// Whether the fields of a variant are defined in the braces that open at a place.
pub fn defines_a_variant(code: &str, known: &[&Token], open: usize) -> bool {
    enclosing(&known[..open]).is_some_and(|outer| heads(code, known, outer) == Some("enum"))
}

/// The word that says what stands in the braces which open at a place: `fn`, `impl`, `match`, ….
pub fn heads<'c>(code: &'c str, known: &[&Token], open: usize) -> Option<&'c str> {
    const WORDS: &[&str] =
        &["fn", "impl", "trait", "mod", "struct", "enum", "union", "match", "macro_rules", "let", "if", "while"];
    let head = &known[head_of(known, open)..open];
    let mut depth = 0;
    head.iter().enumerate().find_map(|(i, t)| {
        match t.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth -= 1,
            _ => {}
        }
        let word = &code[t.range.clone()];
        // `fn(i32)` is a type.
        let named = word != "fn" || head.get(i + 1).is_some_and(|next| next.kind == Kind::Ident);
        (depth == 0 && t.kind == Kind::Ident && named && WORDS.contains(&word)).then_some(word)
    })
}

/// Where the innermost function begins that the end is in the body of: nothing around it has a value there.
pub fn function_around(code: &str, known: &[&Token]) -> Option<usize> {
    let mut known = known;
    while let Some(open) = enclosing(known) {
        let head = head_of(known, open);
        if known[open].kind == Kind::Open('{') && heads(code, known, open) == Some("fn") {
            return Some(known[head].range.start);
        }
        known = &known[..open];
    }
    None
}

/// The modules that the end is in, from the outermost on.
pub fn modules_around(code: &str, known: &[&Token]) -> Vec<String> {
    let (mut known, mut out) = (known, Vec::new());
    while let Some(open) = enclosing(known) {
        if heads(code, known, open) == Some("mod") {
            out.push(code[known[open - 1].range.clone()].to_owned());
        }
        known = &known[..open];
    }
    out.reverse();
    out
}

/// What has items in its braces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    Impl,
    Trait,
    Module,
}

/// The items' braces that the end is directly in, where one may begin.
pub fn takes_item(code: &str, known: &[&Token]) -> Option<Body> {
    let last = known.last()?;
    let modifier = matches!(&code[last.range.clone()], "pub" | "unsafe" | "async" | "extern");
    let begins = matches!(last.kind, Kind::Open('{') | Kind::Close('}' | ')' | ']') | Kind::Punct(';'));
    let open = enclosing(known).filter(|i| known[*i].kind == Kind::Open('{') && (begins || modifier))?;
    // Brackets end an attribute, or say for whom something is `pub`.
    let opens = || enclosing(&known[..known.len() - 1]);
    let ahead = |word: &str| opens().is_some_and(|i| before_is(code, &known[..i], word));
    let whole = match last.kind {
        Kind::Close(')') => ahead("pub"),
        Kind::Close(']') => ahead("#"),
        _ => true,
    };
    match heads(code, known, open).filter(|_| whole)? {
        "impl" => Some(Body::Impl),
        "trait" => Some(Body::Trait),
        "mod" => Some(Body::Module),
        _ => None,
    }
}

/// Where a parameter of a function begins.
pub fn begins_parameter(code: &str, known: &[&Token]) -> bool {
    let begins = known.last().is_some_and(|t| matches!(t.kind, Kind::Open('(') | Kind::Punct(',')));
    let open = enclosing(known).filter(|i| begins && known[*i].kind == Kind::Open('('));
    open.is_some_and(|i| {
        let named = path_at(code, &known[..i]).is_some_and(|(_, start)| before_is(code, &known[..start], "fn"));
        named && open_angle(known).is_none()
    })
}

/// Whether a `|` begins the parameters of a closure.
pub fn begins_closures_parameters(code: &str, known: &[&Token], at: usize) -> bool {
    let owned: Vec<Token> = known[..=at].iter().map(|t| (*t).clone()).collect();
    begins_closure(&owned, code, at)
}

/// A pattern that is being typed: of an arm of a `match`, or of an `if let` and its like.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// Where the `match` or the `let` begins.
    pub start: usize,
    /// What it is about.
    pub about: Range<usize>,
    /// Around the cursor, from the outermost on: the path of a variant or struct and which of its fields the rest is in.
    pub inside: Vec<(Vec<String>, String)>,
}

/// The arm in the pattern of which the end is.
pub fn arm(code: &str, known: &[&Token]) -> Option<Arm> {
    let mut open = enclosing(known)?;
    loop {
        if known[open].kind == Kind::Open('{')
            && let Some(word) = scrutinee(code, known, open)
        {
            let start = pattern_start(code, known, open)?;
            let about = known[word].range.end..known[open].range.start;
            return Some(Arm { start: known[word].range.start, about, inside: inside(code, &known[start..]) });
        }
        open = enclosing(&known[..open])?;
    }
}

/// The `match` to which braces belong.
fn scrutinee(code: &str, known: &[&Token], open: usize) -> Option<usize> {
    let start = head_of(known, open);
    let mut depth = 0;
    (start..open).rev().find(|i| {
        match known[*i].kind {
            Kind::Close(_) => depth += 1,
            Kind::Open(_) => depth -= 1,
            _ => {}
        }
        depth == 0 && &code[known[*i].range.clone()] == "match"
    })
}

/// Where the pattern of the last arm begins; none behind its `=>` or in its guard.
fn pattern_start(code: &str, known: &[&Token], open: usize) -> Option<usize> {
    let (mut depth, mut start, mut block) = (0, Some(open + 1), false);
    for i in open + 1..known.len() {
        match known[i].kind {
            Kind::Open(_) => {
                block = depth == 0 && before_is(code, &known[..i], ">") || depth > 0 && block;
                depth += 1;
            }
            Kind::Close(c) => {
                depth -= 1;
                if depth == 0 && start.is_none() && block && c == '}' {
                    start = Some(i + 1);
                }
            }
            _ if depth > 0 => {}
            Kind::Punct('>') if before_is(code, &known[..i], "=") => start = None,
            Kind::Ident if &code[known[i].range.clone()] == "if" => start = None,
            Kind::Punct(',') => start = Some(i + 1),
            _ => {}
        }
    }
    start
}

/// Around the end of a pattern, from the outermost on.
pub fn inside(code: &str, pattern: &[&Token]) -> Vec<(Vec<String>, String)> {
    let mut out = Vec::new();
    let mut rest = pattern;
    while let Some(open) = enclosing(rest) {
        let path = path_at(code, &rest[..open]).map(|(path, _)| path).unwrap_or_default();
        // Of the whole of what is in the brackets, but not in those within.
        let (mut depth, mut commas, mut named) = (0, 0, String::new());
        for (i, t) in pattern[..].iter().enumerate().skip(open + 1) {
            match t.kind {
                Kind::Open(_) => depth += 1,
                Kind::Close(_) => depth -= 1,
                Kind::Punct(',') if depth == 0 => commas += 1,
                Kind::Punct(':') if depth == 0 => named = code[pattern[i - 1].range.clone()].to_owned(),
                _ => {}
            }
            if i >= rest.len() {
                break;
            }
        }
        let field = if rest[open].kind == Kind::Open('{') { named } else { commas.to_string() };
        out.push((path, field));
        rest = &rest[..open];
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::text::scan::tokens;

    fn before<T>(code: &str, of: impl Fn(&str, &[&Token]) -> T) -> T {
        let all = tokens(code);
        of(code, &all.iter().collect::<Vec<_>>())
    }

    #[test]
    fn types_stand_behind_what_wants_one() {
        let wanted = [
            "let q: ",
            "let (a, b): (u8, ",
            "fn f(x: ",
            "fn f(x: &mut ",
            "fn f<T>(x: &'a ",
            "let v: Vec<",
            "Vec::<",
            "let m: HashMap<String, ",
            "impl ",
            "impl A for ",
            "impl<T> A<T> for &",
            "fn f<T: ",
            "fn f<T: A + ",
            "fn f<T>() where T: A, U: ",
            "let b: Box<dyn ",
            "let b: Box<dyn A + 'a + ",
            "type A = ",
            "type A<T> = ",
            "struct S(",
            "struct S<T>(u8, ",
            "struct S(pub ",
            "struct S { x: ",
            "struct S { pub x: Vec<u8>, y: ",
            "enum E { A(",
            "enum E { A, B(u8, ",
            "enum E { A { x: ",
            "fn f() -> ",
            "fn f() -> Option<&",
            "x as ",
            "x as *const ",
            "|a: ",
            "const N: ",
            "static S: &[",
            "let i: impl Iterator<Item = ",
            "trait A: ",
            "impl S { fn g(&self, x: ",
            "let f: Box<dyn Fn(",
            "fn f(g: fn(u8, ",
            "collect::<Result<Vec<_>, ",
            "<",
            "impl<T: A> S { fn f<U>() where T: B, ",
            "let x = <",
        ];
        let wrong: Vec<_> = wanted.iter().filter(|code| !before(code, takes_type)).collect();
        assert_eq!(wrong, Vec::<&&str>::new());
        let not = [
            "let q = ",
            "let v: Vec<u8> = ",
            "f(x, ",
            "f(",
            "a < ",
            "MAX < ",
            "x.0 < ",
            "P { x: ",
            "P { x: 1, y: ",
            "let t: (u8, u8) = (1, ",
            "Some(",
            "E::A(",
            "'a: ",
            "if a == ",
            "&",
            "a * ",
            "[1, ",
            "match x { A => ",
            "let f = |a: u8| ",
            "x as u8 + ",
            "fn f<",
            "impl<",
            "fn f(",
            "struct S<A, ",
            "a + ",
            "v[0] < ",
            "{ a, ",
        ];
        let wrong: Vec<_> = not.iter().filter(|code| before(code, takes_type)).collect();
        assert_eq!(wrong, Vec::<&&str>::new());
    }

    #[test]
    fn items_stand_in_items_bodies() {
        for (code, want) in [
            ("impl A for B { ", Some(Body::Impl)),
            ("impl B { fn f(&self) {} pub ", Some(Body::Impl)),
            ("#[derive(Clone)] struct A; trait Q: B { fn f(); ", Some(Body::Trait)),
            ("mod q { use super::*; ", Some(Body::Module)),
            ("mod q { pub(crate) ", Some(Body::Module)),
            ("impl B { #[inline] ", Some(Body::Impl)),
            ("impl B { fn f(x: [u8; 3]) { ", None),
            ("fn f(x: impl A) -> u8 { ", None),
            ("let b = match x { ", None),
            ("impl B { fn f() -> ", None),
            ("struct A { ", None),
        ] {
            assert_eq!(before(code, takes_item), want, "{code}");
        }
    }

    #[test]
    fn arms_of_a_match() {
        let of = |code: &str| {
            let arm = before(code, arm)?;
            let steps = arm.inside.iter().map(|(path, field)| format!("{}.{field}", path.join("::")));
            Some(
                format!("{} {}", &code[arm.start..arm.about.end], steps.collect::<Vec<_>>().join(" "))
                    .trim()
                    .to_owned(),
            )
        };
        for (code, want) in [
            ("match take { ", Some("match take")),
            ("let a = match &x.kind() { A => 1, ", Some("match &x.kind()")),
            ("match x { A => { f(); } ", Some("match x")),
            ("match x { A => f(|y| { y }), B | ", Some("match x")),
            ("match x { Some(", Some("match x  Some.0")),
            ("match x { Ok((a, E::B { c, d: ", Some("match x  Ok.0 .1 E::B.d")),
            ("match x { A => ", None),
            ("match x { A if ", None),
            ("match x { A => { ", None),
            ("fn f() { ", None),
        ] {
            assert_eq!(of(code), want.map(str::to_owned), "{code}");
        }
    }

    #[test]
    fn modules_stand_in_modules() {
        let of = |code: &str| before(code, modules_around).join("::");
        assert_eq!(of("mod a { pub mod b { fn f() { if x { "), "a::b");
        assert_eq!(of("mod a { } fn f() { "), "");
    }

    #[test]
    fn a_function_hides_what_is_around_it() {
        let of = |code: &str| before(code, function_around).map(|at| code[at..].to_owned());
        assert_eq!(of("let a = 1; fn f(b: u8) { if b { ").as_deref(), Some("fn f(b: u8) { if b { "));
        assert_eq!(of("impl A { fn f(x: [u8; 2]) { ").as_deref(), Some("fn f(x: [u8; 2]) { "));
        assert_eq!(of("let f = |b| { "), None);
        assert_eq!(of("fn f() {} let f: fn(u8) = { "), None);
    }
}
