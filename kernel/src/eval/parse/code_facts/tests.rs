//! What the code says of itself, in small pieces of code.
use super::*;

fn facts(code: &str) -> Vec<Fact> {
    let block: Block = syn::parse_str(&format!("{{{code}\n}}")).unwrap();
    let text = format!("{{{code}\n}}");
    block.stmts.iter().flat_map(|s| of_statement(s, &text[..text.len() - 2], 0)).collect()
}

/// The facts of a kind: what stands at each of their places, and their words.
fn told(code: &str, kind: char) -> Vec<String> {
    let text = format!("{{{code}\n}}");
    let one = |f: Fact| {
        let parts = f.ranges.iter().map(|r| text[r.clone()].to_owned());
        parts.chain(f.words).collect::<Vec<String>>().join(" | ")
    };
    facts(code).into_iter().filter(|f| f.kind == kind).map(one).collect()
}

#[test]
fn what_an_expression_makes_has_a_name() {
    let bound = |code: &str| told(code, 'B');
    assert_eq!(bound("let x = Tensor::ones([2, 3]);"), ["Tensor::ones([2, 3]) | x"]);
    assert_eq!(bound("let mut ä: Tensor = a.b(1).narrow(0, (i), 10);"), ["narrow | ä"]);
    assert_eq!(bound("y = x.to(F32)"), ["to | y"]);
    assert_eq!(bound("*kept = cat(&[&*kept, &x], 0);"), ["cat(&[&*kept, &x], 0) | kept"]);
    assert_eq!(bound("let y = x.narrow(0, i, 10).sum();"), ["sum | y"], "the last call makes y");
    assert_eq!(bound("let y = 1.0 + Tensor::ones([2]);"), ["1.0 + Tensor::ones([2]) | y"], "the sum is y");
    assert_eq!(bound("let y = Tensor::ones([2]) + 1.0;"), [""; 0], "the sum and the ones are at one place");
    assert_eq!(bound("let y = f(Tensor::ones([2]));"), ["f(Tensor::ones([2])) | y"], "an argument is not");
    assert_eq!(bound("let (x, y) = pair(2);"), [""; 0]);
    assert_eq!(bound("step(Tensor::ones([2]));"), [""; 0]);
    assert_eq!(bound("self.x = a\n  .b()\n  .c(|x| x)?;"), ["c | x"]);
    assert_eq!(bound("let m = Net { w: init(2), b };"), ["init(2) | w"]);
    assert_eq!(bound("let y = if a { f(1) } else { x.g() };"), ["f(1) | y", "g | y"]);
}

#[test]
fn a_value_goes_somewhere() {
    let goes = |code: &str| {
        let calls = told(code, 'C').into_iter().find(|c| c.starts_with("item |"));
        calls.unwrap().strip_prefix("item | item | ").unwrap().to_owned()
    };
    assert_eq!(goes("let mut loss = x.item();"), "in | loss");
    assert_eq!(goes("a = 1; best = best.min(x.item());"), "in | best");
    assert_eq!(goes("total += x.item() / 2.0;"), "in | total");
    assert_eq!(goes("let _ = x.item();"), "in");
    assert_eq!(goes("history.push(x.item());"), "in");
    assert_eq!(goes("println!(\"{}\", x.item() > 1.0);"), "in");
    assert_eq!(goes("fn f(x: &Tensor) -> f64 { x.item() }"), "out");
    assert_eq!(goes("fn f(x: &Tensor) -> f64 {\n let y = 1;\n return x.item(); }"), "out");
    assert_eq!(goes("let f = |x: &Tensor| x.item();"), "out");
    assert_eq!(goes("let all: Vec<f64> = xs.iter().map(|x| x.item()).collect();"), "in | all");
    assert_eq!(goes("x.item()"), "in", "the cell's last value is shown");
    assert_eq!(goes("let y = { let z = 1; x.item() };"), "in | y");
}

#[test]
fn conditions_guard_what_runs_by_them() {
    let guards = |code: &str| told(code, 'G');
    assert_eq!(
        guards("if a > f(b) { c } else { d }"),
        ["a > f(b) | { c } | then | c | a | b | f", "a > f(b) | { d } | else | c | a | b | f"]
    );
    assert_eq!(guards("if x.item() > 1.0 { c }"), ["x.item() > 1.0 | { c } | then | cr | item | x"]);
    assert_eq!(
        guards("match a { 1 if b => c, _ => d }"),
        ["a | b => c | arm |  | a", "b | c | then |  | b", "a | d | arm |  | a"]
    );
    assert_eq!(guards("if a != (b) { c }"), ["a != (b) | { c } | then |  | a | b"]);
    assert_eq!(guards("a && f(b);"), ["a | f(b) | then |  | a"]);
    assert_eq!(
        guards("for i in v { if i { continue; } g(i); }"),
        ["i | { continue; } | then |  | i", "i |  g(i);  | rest |  | i"]
    );
    assert_eq!(guards("for i in v { for j in v { if j { break; } } g(i); }"), ["j | { break; } | then |  | j"]);
    assert_eq!(
        guards("fn f() { let Some(a) = b else { return }; g(a) }"),
        ["b | { return } | else |  | b", "b |  g(a)  | rest |  | b"]
    );
    assert_eq!(guards("fn f() { h()?; g(a) }"), [""; 0]);
    assert_eq!(guards("while let Some(a) = b { g(a) }"), ["let Some(a) = b | { g(a) } | then |  | Some | a | b"]);
}

#[test]
fn loops_and_functions_are_known() {
    assert_eq!(told("for i in 0..3 { f(i) }", 'L'), ["0..3 | { f(i) } | for | i"]);
    assert_eq!(told("while a { f(i) }", 'L'), ["a | a { f(i) } | while"]);
    assert_eq!(told("v.iter().map(|x| f(x)).sum()", 'L'), ["map | f(x) | closure | x"]);
    // What a round may change.
    let changes = |body: &str| told(&format!("loop {{ {body} }}"), 'L')[0].rsplit_once("loop").unwrap().1.to_owned();
    assert_eq!(
        changes("let (a, b) = c; d.e[f] += g; h(&i, &mut j.k); if l { m.n(o) }"),
        " | a | b | d | e | f | j | k | m"
    );
    assert_eq!(
        changes("println!(\"{a}\", b.c()); assert_eq!(d, e); f!(g); match h { Some(i) => {} _ => {} }"),
        " | b | g | i"
    );
    assert_eq!(
        told("impl A for B<C> { fn d(&self) { } } let e = |x| x; fn g() {}", 'F'),
        ["fn d(&self) { } | d | B | f", "|x| x | e |  | c", "fn g() {} | g |  | f"]
    );
}
