//! From a cell that is being typed to one that parses, with something else in place of the word at the cursor.
use crate::eval::text::scan::{Kind, closers, open_brackets, tokens};
use std::ops::Range;

/// Code, which is not nested too deep, that parses as a block's inside: all of it where that can be, else what stands before the cursor, closed.
pub fn repaired(code: &str, word: &Range<usize>, instead: &str) -> Option<(String, syn::Block)> {
    // The rest of the word at the cursor goes with it.
    let rest = code[word.end..].find(|c: char| !c.is_alphanumeric() && c != '_').map_or(code.len(), |i| word.end + i);
    let (before, after) = (&code[..word.start], &code[rest..]);
    // A call's own parentheses are there already.
    let called = match after.trim_start().starts_with('(') {
        true => instead.trim_end_matches("()"),
        false => instead,
    };
    let closers = open_brackets(&tokens(before)).map(|open| closers(&open))?;
    let whole = ["", ";", " {}", ","].into_iter().map(|end| format!("{before}{called}{end}{after}"));
    let cut = |before: &str| {
        let closed = ["", " {}", ";", " => {}"].map(|end| format!("{before}{instead}{end}{closers}"));
        closed.into_iter().flat_map(|closed| [closed.clone(), format!("{closed};"), format!("{closed} {{}}")])
    };
    let parsed = |text: String| parse(&text).map(|block| (text, block));
    whole.chain(cut(before)).find_map(parsed).or_else(|| cut(&sound(before)?).find_map(parsed))
}

/// The same with blanks for statements that are wrong in themselves, of which there are some.
fn sound(before: &str) -> Option<String> {
    let (mut out, mut start, mut depth) = (before.to_owned(), 0, 0);
    for t in tokens(before) {
        match t.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(t.kind, Kind::Close('}') | Kind::Punct(';')) {
            let end = t.range.end;
            if parse(&before[start..end]).is_none() {
                out.replace_range(start..end, &" ".repeat(end - start));
            }
            start = end;
        }
    }
    (out != before).then_some(out)
}

/// The items and statements of a cell as a block. Its places are one further than those of the text.
pub fn parse(text: &str) -> Option<syn::Block> {
    // An attribute of the cell is one of its first statement here.
    syn::parse_str(&format!("{{{}\n}}", text.replace("#![", "# ["))).ok()
}

#[cfg(test)]
mod tests {
    use super::repaired;

    #[test]
    fn what_is_being_typed_parses() {
        let of = |marked: &str| {
            let cursor = marked.find('¦').unwrap();
            let code = marked.replacen('¦', "", 1);
            repaired(&code, &(cursor..cursor), "p()").map(|(text, _)| text)
        };
        for (code, want) in [
            ("x.¦", "x.p()"),
            ("fn f<T: Clone>(s: &S<T>) -> O<T> { s.¦", "fn f<T: Clone>(s: &S<T>) -> O<T> { s.p()}"),
            ("let y = x.¦", "let y = x.p();"),
            ("let y = x.¦\nlet z = 1;", "let y = x.p();\nlet z = 1;"),
            ("if x.¦", "if x.p() {}"),
            ("f(a, x.¦", "f(a, x.p())"),
            ("let n = v.map(|x| x.¦", "let n = v.map(|x| x.p());"),
            ("for i in v.¦ { f() }", "for i in v.p() { f() }"),
            ("fn f(x: i32) { let y = x.¦", "fn f(x: i32) { let y = x.p();}"),
            ("match x.¦", "match x.p() {}"),
            ("let a = P { x: v.¦", "let a = P { x: v.p()};"),
            ("x.¦.len()", "x.p().len()"),
            ("x.¦(1)", "x.p(1)"),
            ("let y = x.¦(1, ", "let y = x.p();"),
            ("while let Some(x) = q.¦", "while let Some(x) = q.p() {}"),
        ] {
            assert_eq!(of(code).as_deref(), Some(want), "{code}");
        }
        assert_eq!(of("let = 3; x.¦").as_deref(), Some("         x.p()"));
        assert_eq!(
            of("let x = ;\nfn f() -> { }\nlet y = x.¦").as_deref(),
            Some("                       \nlet y = x.p();".replacen("\n", " ", 0).as_str())
        );
        assert_eq!(of("let = 3 x.¦"), None);
    }
}
