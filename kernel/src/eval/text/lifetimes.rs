//! The lifetimes that `type_name` leaves out of a function's type, or has otherwise than a cell would write them.
use super::scan::{Kind, Token, close, tokens};
use std::ops::Range;

/// `fn(&dyn Debug)`, which `type_name` has as `fn(&'_ (dyn Debug + '_))`: one lifetime for both, where what it says would be two.
pub(super) fn as_long_as_the_reference(type_name: &str) -> String {
    const OWN: &str = " + '_";
    let mut out = type_name.to_owned();
    let mut from = 0;
    while let Some(at) = out[from..].find("(dyn ").map(|at| from + at) {
        from = at + 1;
        let mut depth = 0;
        let close = out[at..].find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        let of_a_reference = ["&'_ ", "&'_ mut "].iter().any(|r| out[..at].ends_with(r));
        if let Some(close) = close.map(|close| at + close)
            && of_a_reference
            && out[..close].ends_with(OWN)
        {
            out.replace_range(close - OWN.len()..close, "");
        }
    }
    out
}

/// `fn(usize) -> &str`: what is stored lives as long as the session, and a function's result has a lifetime of its own only by its
/// arguments.
pub(super) fn of_functions(type_name: &str) -> String {
    let all = tokens(type_name);
    let text = |t: &Token| &type_name[t.range.clone()];
    let is = |i: usize, c: char| all.get(i).is_some_and(|t| t.kind == Kind::Punct(c));
    let mut lasting: Vec<Range<usize>> = Vec::new();
    for open in 1..all.len() {
        let named = matches!(text(&all[open - 1]), "fn" | "Fn" | "FnMut" | "FnOnce");
        if !named || all[open].kind != Kind::Open('(') {
            continue;
        }
        let end = close(&all, open);
        let result = end + 1..if is(end + 1, '-') { end_of_result(&all, end + 3) } else { end + 1 };
        let borrowed = |i: &usize| is(*i, '&') && all.get(i + 1).is_some_and(|t| t.kind != Kind::Lifetime);
        let references = (open + 1..end).chain(result.clone()).filter(borrowed);
        lasting.extend(references.map(|i| all[i].range.end..all[i].range.end));
        let elided = |i: &usize| all.get(*i).is_some_and(|t| text(t) == "'_");
        if !(open + 1..end).any(|i| elided(&i)) {
            lasting.extend(result.filter(elided).map(|i| all[i].range.clone()));
        }
    }
    lasting.sort_by_key(|at| at.start);
    // A function in a function's type was met twice.
    lasting.dedup();
    let mut out = type_name.to_owned();
    for at in lasting.into_iter().rev() {
        out.replace_range(at.clone(), if at.is_empty() { "'static " } else { "'static" });
    }
    out
}

/// A stored value's type with that lifetime in place of the session's, outside of functions' types; what is known by a trait alone lasts
/// as long.
pub fn with_lifetime(ty: &str, lifetime: &str) -> String {
    let all = tokens(ty);
    let text = |t: &Token| &ty[t.range.clone()];
    let (mut out, mut from, mut i) = (String::new(), 0, 0);
    while let Some(token) = all.get(i) {
        let function = matches!(text(token), "fn" | "Fn" | "FnMut" | "FnOnce")
            && all.get(i + 1).is_some_and(|t| t.kind == Kind::Open('('));
        if function {
            let end = close(&all, i + 1) + 1;
            let result = matches!(all.get(end..end + 2), Some([a, b]) if a.kind == Kind::Punct('-') && b.kind == Kind::Punct('>'));
            i = if result { end_of_result(&all, end + 2) } else { end };
            continue;
        }
        match text(token) {
            "&" if all.get(i + 1).is_none_or(|t| t.kind != Kind::Lifetime) => {
                out += &format!("{}{lifetime} ", &ty[from..token.range.end]);
                from = token.range.end;
            }
            "'_" | "'static" => {
                out += &format!("{}{lifetime}", &ty[from..token.range.start]);
                from = token.range.end;
            }
            _ => {}
        }
        i += 1;
    }
    out += &ty[from..];
    let all = objects(&out);
    let outer =
        |at: &Range<usize>| !all.iter().any(|other| other != at && other.start < at.start && at.end <= other.end);
    let bound: Vec<Range<usize>> =
        all.iter().filter(|at| outer(at) && !out[(*at).clone()].contains("+ '")).cloned().collect();
    for at in bound.into_iter().rev() {
        let object = format!("({} + {lifetime})", &out[at.clone()]);
        out.replace_range(at, &object);
    }
    out
}

/// The parts of a type that are known by a trait alone, `dyn Fn(i32) -> i32`: how long what is in them lasts, it does not say.
pub fn objects(ty: &str) -> Vec<Range<usize>> {
    let all = tokens(ty);
    let end = |from: usize| all[end_of_bounds(&all, from) - 1].range.end;
    let object = |(i, t): (usize, &Token)| (&ty[t.range.clone()] == "dyn").then(|| t.range.start..end(i + 1));
    all.iter().enumerate().filter_map(object).collect()
}

/// The same of loans: what is borrowed to be changed stays of the type that it is.
pub fn with_loans(ty: &str, lifetime: &str) -> String {
    const LOAN: &str = "&mut ";
    let Some(at) = ty.find(LOAN) else { return with_lifetime(ty, lifetime) };
    let (before, lent) = (with_lifetime(&ty[..at], lifetime), &ty[at + LOAN.len()..]);
    let all = tokens(lent);
    let end = all.get(end_of_result(&all, 0)).map_or(lent.len(), |t| t.range.start);
    let (lent, behind) = lent.split_at(end);
    format!("{before}&{lifetime} mut {}{}", with_lifetime(lent, "'static"), with_loans(behind, lifetime))
}

/// Where a result that begins there has its end: before what the type around it goes on with.
fn end_of_result(all: &[Token], from: usize) -> usize {
    end_of_type(all, from, true)
}

/// The same of an object's traits, of which there may be several.
fn end_of_bounds(all: &[Token], from: usize) -> usize {
    end_of_type(all, from, false)
}

fn end_of_type(all: &[Token], from: usize, before_bounds: bool) -> usize {
    let (mut depth, mut i) = (0_i32, from);
    while let Some(token) = all.get(i) {
        match token.kind {
            Kind::Punct('-') => i += 1,
            Kind::Punct('<') | Kind::Open(_) => depth += 1,
            Kind::Punct('+') if depth == 0 && before_bounds => break,
            Kind::Punct('>' | ',' | ';' | '=') | Kind::Close(_) if depth == 0 => break,
            Kind::Punct('>') | Kind::Close(_) => depth -= 1,
            _ => {}
        }
        i += 1;
    }
    i.min(all.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_written_where_a_value_has_one() {
        for (ty, want) in [
            ("::alloc::vec::Vec<&str>", "::alloc::vec::Vec<&'f str>"),
            ("Map<&'static str, Chars<'_>>", "Map<&'f str, Chars<'f>>"),
            ("&mut [&u8]", "&'f mut [&'f u8]"),
            ("(Box<dyn Fn(&str) -> &'static u8>, &str)", "(Box<(dyn Fn(&str) -> &'static u8 + 'f)>, &'f str)"),
            ("[fn(&u8); 2]", "[fn(&u8); 2]"),
        ] {
            assert_eq!(with_lifetime(ty, "'f"), want);
        }
    }

    #[test]
    fn a_trait_object_lives_as_long_as_its_reference() {
        let both = as_long_as_the_reference("fn(&'_ (dyn Debug + '_), &'_ mut (dyn Fn(&'_ (dyn A + '_)) + '_))");
        assert_eq!(both, "fn(&'_ (dyn Debug), &'_ mut (dyn Fn(&'_ (dyn A))))");
        let own = "fn(Box<(dyn A + '_)>, &'_ (dyn A + Send))";
        assert_eq!(as_long_as_the_reference(own), own);
    }

    #[test]
    fn what_functions_give_that_is_of_none_of_their_arguments_lasts() {
        for (name, written) in [
            ("fn(usize) -> &str", "fn(usize) -> &'static str"),
            ("fn(&'_ str) -> &'_ str", "fn(&'_ str) -> &'_ str"),
            ("fn(&'_ str) -> Option<&mut str>", "fn(&'_ str) -> Option<&'static mut str>"),
            ("fn(&str, &'_ u8)", "fn(&'static str, &'_ u8)"),
            ("Box<dyn Fn() -> Chars<'_> + Send>", "Box<dyn Fn() -> Chars<'static> + Send>"),
            ("Box<dyn Fn(&'_ u8) -> Chars<'_>>", "Box<dyn Fn(&'_ u8) -> Chars<'_>>"),
            (
                "(Box<dyn FnMut(u8) -> fn(&str) -> &u8>, &str, Chars<'_>)",
                "(Box<dyn FnMut(u8) -> fn(&'static str) -> &'static u8>, &str, Chars<'_>)",
            ),
            ("(i32, &[u8], fn(i32) -> bool)", "(i32, &[u8], fn(i32) -> bool)"),
            ("[fn() -> [&u8; 2]; 3]", "[fn() -> [&'static u8; 2]; 3]"),
        ] {
            assert_eq!(of_functions(name), written);
        }
    }

    #[test]
    fn what_is_borrowed_to_be_changed_stays_of_its_type() {
        for (ty, tied) in [
            ("Option<&mut &str>", "Option<&'f mut &'static str>"),
            ("Vec<(&mut Vec<&str>, &str)>", "Vec<(&'f mut Vec<&'static str>, &'f str)>"),
            ("::core::slice::Iter<'_, &str>", "::core::slice::Iter<'f, &'f str>"),
            ("&mut [i64]", "&'f mut [i64]"),
            ("Vec<Box<dyn Fn(&'_ str) -> usize>>", "Vec<Box<(dyn Fn(&'_ str) -> usize + 'f)>>"),
            (
                "(&dyn Debug, Pin<Box<dyn Future<Output = u8> + Send>>)",
                "(&'f (dyn Debug + 'f), Pin<Box<(dyn Future<Output = u8> + Send + 'f)>>)",
            ),
        ] {
            assert_eq!(with_loans(ty, "'f"), tied);
        }
    }
}
