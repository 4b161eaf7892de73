//! Text that is nested deeper than anything takes apart, through every entry: the kernel lives, and says where and what to do.
mod eval_support;

use eval_support::{engine, plain, run};
use xlazy_kernel::engine::{Completeness, Engine, Failure, Reply};
use xlazy_kernel::eval::{RustEngine, export};

/// What stands before the nested part, around its inside, inside, and behind.
type Shape = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    ("parentheses", "let x = ", "(", "1", ")", ";"),
    ("tuples", "let x = ", "(", "1", ",)", ";"),
    ("brackets", "let x = ", "[", "1", "]", ";"),
    ("braces", "let x = ", "{", "1", "}", ";"),
    ("generics", "type T = ", "Vec<", "u8", ">", ";"),
    ("generics with commas", "type T = ", "Both<u8, ", "u8", ">", ";"),
    ("references in a type", "fn f(x: ", "&", " u8", "", ") {}"),
    ("pointers in a type", "fn f(x: ", "*const ", "u8", "", ") {}"),
    ("functions in a type", "type T = ", "fn() -> ", "u8", "", ";"),
    ("trait objects", "type T = ", "Box<dyn Fn() -> ", "u8", ">", ";"),
    ("references", "let x = ", "& ", "1", "", ";"),
    ("signs", "let x = ", "-", "1", "", ";"),
    ("negations", "let x = ", "!", "true", "", ";"),
    ("a sum", "let x = 1", " + 1", "", "", ";"),
    ("conditions", "let x = true", " && true", "", "", ";"),
    ("methods", "let x = 1i32", ".abs()", "", "", ";"),
    ("fields", "let x = a", ".b", "", "", ";"),
    ("indices", "let x = a", "[0]", "", "", ";"),
    ("an index in an index", "let x = ", "a[", "0", "]", ";"),
    ("calls", "f", "()", "", "", ";"),
    ("a call in a call", "let x = ", "f(", "1", ")", ";"),
    ("question marks", "let x = f()", "?", "", "", ";"),
    ("casts", "let x = 1", " as i32", "", "", ";"),
    ("else if", "if true {}", " else if true {}", "", "", " else {}"),
    ("if", "", "if true { ", "", "}", ""),
    ("if in conditions", "let x = ", "if ", "true", " { true } else { true }", ";"),
    ("closures", "let x = ", "|| ", "1", "", ";"),
    ("closures with parameters", "let x = ", "|a, b| ", "1", "", ";"),
    ("closures for any lifetime", "let x = ", "for<'a, 'b> |a: &'a u8, b: &'b u8| -> u8 { ", "1", "}", ";"),
    ("match", "let x = ", "match 1 { _ => ", "1", "}", ";"),
    ("patterns", "let ", "(", "x", ",)", " = f();"),
    ("references in a pattern", "let ", "&", "x", "", " = f();"),
    ("bindings in a pattern", "let ", "x @ ", "y", "", " = f();"),
    ("macros", "let x = ", "vec![", "1", "]", ";"),
    ("rules of a macro", "macro_rules! m { ($x:expr) => { ", "(", "$x", ")", " } }"),
    ("attributes", "#[cfg(", "not(", "test", ")", ")] fn f() {}"),
    ("comments", "", "/*", " ", "*/", "let x = 1;"),
    ("raw strings", "let x = r", "#", "\"a\"", "#", ";"),
    ("text", "let x = \"", "{(", "a", ")}", "\";"),
    ("a path", "let x = ", "a::", "b", "", ";"),
    ("imports", "use ", "a::", "b", "", ";"),
    ("groups of imports", "use ", "a::{", "b", "}", ";"),
    ("ranges", "let x = ", "(0..", "1", ")", ";"),
    ("async", "let x = ", "async { ", "1", "}", ";"),
    ("unsafe", "let x = ", "unsafe { ", "1", "}", ";"),
    ("functions", "", "fn f() { ", "", "}", ""),
    ("modules", "", "mod m { ", "", "}", ""),
    ("let … else", "", "let Some(x) = f() else { ", "panic!()", "};", ""),
    ("assignments", "let mut a; ", "a = ", "()", "", ";"),
    ("return", "", "return ", "()", "", ";"),
    ("structs", "let x = ", "S { a: ", "1", "}", ";"),
    ("loops", "", "'a: loop { ", "break", "}", ""),
    ("bounds", "fn f<T>() where ", "T: Fn() -> ", "u8", "", " {}"),
];

fn nested((_, before, open, inside, close, behind): &Shape, deep: usize) -> String {
    format!("{before}{}{inside}{}{behind}", open.repeat(deep), close.repeat(deep))
}

/// Those that lie in a text as it is, or in what nothing recurses over.
const FLAT: &[&str] = &["comments", "raw strings", "text"];

fn message(reply: Reply) -> Failure {
    match reply {
        Reply::Error(failure) => failure,
        other => panic!("{other:?}"),
    }
}

/// Where and what to do, whoever found it.
fn tells(name: &str, failure: &Failure, cell: &str) {
    let text = plain(failure);
    assert!(text.lines().all(|l| l.chars().count() < 400), "{name}: it shows the whole text");
    let says = ["nested", "a chain of"].iter().any(|w| failure.message.contains(w));
    assert!(says && text.contains(cell) && text.contains("give a part of it a name"), "{name}: {text}");
}

#[test]
fn a_hundred_thousand_deep_in_a_cell() {
    let engine = engine();
    for (n, shape) in SHAPES.iter().enumerate() {
        let name = shape.0;
        let (_, reply) = run(&engine, n as u64 + 1, &format!("let before = 1;\n{}", nested(shape, 100_000)));
        if FLAT.contains(&name) {
            continue;
        }
        let failure = message(reply);
        tells(name, &failure, &format!("cell {}", n + 1));
        assert!(plain(&failure).contains(&format!("cell {}:2:", n + 1)), "{name}: {}", plain(&failure));
    }
    assert_eq!(run(&engine, 999, "1 + 1").0, "=> 2\n");
}

/// Everything that is asked of a text besides running it.
fn asked(engine: &RustEngine, text: &str) {
    drop(engine.complete(text, text.len()));
    drop(engine.inspect(text, text.len() / 2, 0));
    if let Completeness::Incomplete(indent) = engine.is_complete(text) {
        assert!(indent.len() < 200);
    }
    let coloured = xlazy_kernel::repl::coloured(text);
    assert!(coloured.len() >= text.len());
}

#[test]
fn a_hundred_thousand_deep_in_everything_else() {
    let engine = engine();
    for shape in SHAPES {
        let text = nested(shape, 100_000);
        // While it is typed.
        asked(&engine, &text[..text.floor_char_boundary(text.len() * 2 / 3)]);
        let exported = export::program(&[(7, text)]);
        if !FLAT.contains(&shape.0) {
            let message = exported.map(|p| p.main).expect_err(shape.0).message;
            assert!(message.contains("cell 7") && message.contains("give a part"), "{}: {message}", shape.0);
        }
    }
    let sum = format!("1{}", " + 1".repeat(100_000));
    for code in [format!("%time {sum}"), format!("%%time\n{sum}"), format!("%opt 2\n{sum}"), format!(":type {sum}")] {
        tells(&code[..6], &message(run(&engine, 3, &code).1), "cell 3");
    }
    for code in [format!(":dep a = {}1{}", "[".repeat(100_000), "]".repeat(100_000)), "%time ".repeat(100_000) + "1"] {
        assert_eq!(message(run(&engine, 4, &code).1).traceback.len(), 1);
    }
    let failure = engine.evaluate(&sum).expect_err("too deep");
    tells("evaluate", &failure, "cell");
    let file = std::env::temp_dir().join(format!("xlazy-depth-{}.rs", std::process::id()));
    std::fs::write(&file, format!(":load {}", file.display())).expect("a file");
    let failure = message(run(&engine, 5, &format!(":load {}", file.display())).1);
    assert!(failure.message.contains("inside of one another"), "{}", failure.message);
    let _ = std::fs::remove_file(file);
    assert_eq!(run(&engine, 6, "1 + 1").0, "=> 2\n");
}

#[test]
fn what_rustc_takes_is_let_in_and_what_it_does_not_is_told() {
    let engine = engine();
    let deep = |open: &str, close: &str, n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
    assert_eq!(run(&engine, 1, &deep("(", ")", 1000)), ("=> 1\n".into(), Reply::Ok));
    assert_eq!(run(&engine, 2, &deep("{", "}", 1000)), ("=> 1\n".into(), Reply::Ok));
    assert_eq!(run(&engine, 3, &format!("1{}", " + 1".repeat(2000))), ("=> 2001\n".into(), Reply::Ok));
    // A macro makes what nobody has written; rustc has an answer of its own.
    let rules = format!("macro_rules! deep {{ ($x:expr) => {{ {} }} }}", deep("(", ")", 1500).replace('1', "$x"));
    assert_eq!(run(&engine, 4, &rules).1, Reply::Ok);
    let twice = "macro_rules! items { ($($x:tt)*) => { fn made() -> i32 { deep!(deep!(1)) } $($x)* } }\nitems!();";
    drop(run(&engine, 5, twice));
    assert_eq!(run(&engine, 6, "deep!(2)").1, Reply::Ok);
    assert_eq!(run(&engine, 7, "1 + 1").0, "=> 2\n");
}

/// Shapes in one another, at random, with commas and what else ends things between them: whatever is let in is taken apart
/// on the stack that was set apart for it.
#[test]
fn random_mixes_are_taken_apart_or_refused() {
    let mut dice = fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    let inside_out: Vec<&Shape> = SHAPES.iter().filter(|s| !FLAT.contains(&s.0)).collect();
    let (mut refused, mut taken) = (0, 0);
    for round in 0..60 {
        let kinds: Vec<&Shape> = (0..1 + dice.usize(..3)).map(|_| inside_out[dice.usize(..inside_out.len())]).collect();
        let deep = 40 << dice.usize(..9);
        let (mut open, mut close) = (String::new(), Vec::new());
        for _ in 0..deep {
            let kind = kinds[dice.usize(..kinds.len())];
            open.push_str(kind.2);
            if dice.usize(..8) == 0 {
                open.push_str(
                    ["a, ", "a < b, ", "{} x, ", "|a, b| ", "#[a] ", "a; ", "> ", "} fn f() {"][dice.usize(..8)],
                );
            }
            close.push(kind.4);
        }
        close.reverse();
        let text = format!("{}{open}{}{}{}", kinds[0].1, kinds[0].3, close.concat(), kinds[0].5);
        // Only the stack counts here: a thread of its own would end the whole test.
        match export::program(&[(round, text)]) {
            Err(f) if f.message.contains("are the most") => refused += 1,
            _ => taken += 1,
        }
    }
    assert!(refused > 5 && taken > 5, "{refused} {taken}");
}

/// The shapes at about as deep as is let in, where most of the stack is used.
#[test]
fn the_deepest_of_each_shape_is_taken_apart() {
    for shape in SHAPES.iter().filter(|s| !FLAT.contains(&s.0)) {
        let too_deep = |deep: &usize| match export::program(&[(1, nested(shape, *deep))]) {
            Err(f) => f.message.contains("are the most"),
            Ok(_) => false,
        };
        let deepest = [2040, 1020, 680, 510, 170].into_iter().find(|deep| !too_deep(deep));
        assert!(deepest.is_some(), "{}", shape.0);
    }
}
