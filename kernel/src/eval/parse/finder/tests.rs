//! What a mention is found to be.
use super::*;
use syn::Block;

/// Places in brackets, what is taken last in angle brackets, what is taken for an assignment in braces.
fn found(code: &str) -> String {
    let block: Block = syn::parse_str(&format!("{{{code}}}")).unwrap();
    let base = 0;
    let whole = format!("{{{code}}}");
    let found = places(&block.stmts, &whole, base, &[], &|_| false);
    let mut out = whole.clone();
    let mut marks: Vec<(usize, &str)> = Vec::new();
    for m in &found.mentions {
        let (open, close) = match m.kind {
            Mentioned::Place => ("[", "]"),
            Mentioned::Last => ("<", ">"),
            Mentioned::For(_) => ("{", "}"),
        };
        marks.push((m.range.start, open));
        marks.push((m.range.end, close));
    }
    marks.sort_by_key(|m| m.0);
    marks.iter().rev().for_each(|(at, mark)| out.insert_str(*at, mark));
    out[1..out.len() - 1].to_owned()
}

#[test]
fn what_a_mention_is() {
    assert_eq!(found("let a = v; let b = a + 1; b"), "let a = <v>; let b = <a> + 1; [b]");
    assert_eq!(found("f(x); x = f(x);"), "[f]([x]); x = [f]({x});");
    assert_eq!(found("x = x + x;"), "x = [x] + [x];");
    assert_eq!(found("for i in v { x = g(x, i); h(y); }"), "for i in <v> { x = [g]({x}, i); [h]([y]); }");
    assert_eq!(found("let t = a; a = b; b = t;"), "let t = <a>; a = <b>; b = <t>;");
    assert_eq!(found("let f = |a: i32| a + b; { let b = 1; c(b) }"), "let f = |a: i32| a + [b]; { let b = 1; [c](b) }");
    assert_eq!(found("println!(\"{x}\", y, z = w); my!(x);"), "println!(\"{x}\", [y], z = [w]); my!([x]);");
}

#[test]
fn what_a_closure_takes_along_and_what_nobody_takes_apart() {
    let block: Block = syn::parse_str("{ let x = 1; let y = f(move || x + 1); my!(y); }").unwrap();
    let found = places(&block.stmts, "", 0, &[], &|name| name == "my");
    let captured: Vec<_> = found.mentions.iter().filter(|m| m.captured).map(|m| m.variable).collect();
    let odd: Vec<&str> = found.variables.iter().filter(|v| v.odd).map(|v| &*v.name).collect();
    assert_eq!((captured.len(), odd), (1, vec!["y"]));
}
