//! Cells that spare rustc work: libraries of generic code that earlier cells had compiled, and moves that it need not find
//! out again.
mod eval_support;

use eval_support::engine;
use xlazy_kernel::engine::{Engine, Event, Reply, Request};
use xlazy_kernel::eval::RustEngine;

/// Runs a cell: what it showed, and what is known of its compile.
fn run(engine: &RustEngine, cell: u64, code: &str) -> (String, serde_json::Value) {
    let (mut out, mut insight) = (String::new(), serde_json::Value::Null);
    let request = Request { code: code.into(), cell, ..Request::default() };
    let reply = engine.execute(&request, &mut |event| match event {
        Event::Insight { kind, json } if kind == "rustc" => insight = serde_json::from_str(&json).unwrap(),
        other => eval_support::transcript(other, &mut out),
    });
    if let Reply::Error(failure) = reply {
        out += &failure.traceback.join("\n");
    }
    (out, insight)
}

fn count(n: u64) -> String {
    format!(
        "let mut all = std::collections::BTreeMap::<String, Vec<u64>>::new();\n\
         for i in 0..{n}u64 {{ all.entry((i % 3).to_string()).or_default().push(i * i); }}\n\
         all.values_mut().for_each(|v| v.sort_by_key(|x| std::cmp::Reverse(*x)));\n\
         all.iter().map(|(k, v)| format!(\"{{k}}: {{v:?}}\")).collect::<Vec<_>>().join(\"; \")"
    )
}

/// Cells with much generic code, until one of them was linked to a library of another. rustc makes it beside them.
fn until_lent(engine: &RustEngine, first: u64) -> u64 {
    let lent = |n: u64| {
        let (out, insight) = run(engine, n, &count(n));
        assert!(out.starts_with("=> \"0: [") && insight["compiles"] == 1, "{out} {insight}");
        insight["libraries"].as_u64() > Some(0)
    };
    (first..first + 100).find(|n| lent(*n)).expect("a library is there after a hundred cells")
}

#[test]
fn generic_code_of_earlier_cells_is_linked_to_and_means_the_same() {
    let engine = engine();
    let (_, insight) = run(&engine, 1, "let small = 1;");
    assert_eq!(insight["libraries"], 0);
    let n = until_lent(&engine, 4);
    let (out, _) = run(&engine, n + 1, &count(8));
    assert_eq!(out, "=> \"0: [36, 9, 0]; 1: [49, 16, 1]; 2: [25, 4]\"\n");
    // A type of the user's own comes in between: what was lent does not know it and still fits.
    let (out, insight) = run(&engine, n + 2, &format!("struct P(u64); let p = P(7);\n{}", count(2)));
    assert_eq!(out, "=> \"0: [0]; 1: [1]\"\n", "{insight}");
    // Compiled with optimisations, a cell takes nothing from one that was not.
    let (out, insight) = run(&engine, n + 3, &format!("// @opt 2\n{}", count(1)));
    assert_eq!((out.as_str(), &insight["libraries"]), ("=> \"0: [0]\"\n", &0.into()));
}

/// Definitions are linked to by other crates, in other kernels too, where no library is.
#[test]
fn definitions_that_are_kept_need_no_library() {
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("libraries-cache");
    let _ = std::fs::remove_dir_all(&cache);
    let vary = format!("static VARY: u32 = {};", std::process::id());
    let define =
        format!("{vary} fn joined(words: &[String]) -> String {{ words.join(\"-\") + &VARY.to_string()[..0] }}");
    let first = eval_support::start(Some(cache.clone()));
    let n = until_lent(&first, 4);
    let (_, insight) = run(&first, n + 1, &define);
    assert_eq!((&insight["compiles"], &insight["cached"]), (&1.into(), &false.into()));
    assert_eq!(run(&first, n + 2, "joined(&[\"a\".into(), \"b\".into()])").0, "=> \"a-b\"\n");
    drop(first);
    let second = eval_support::start(Some(cache.clone()));
    assert_eq!(run(&second, 1, &define).1["cached"], true);
    assert_eq!(run(&second, 2, "joined(&[\"c\".into(), \"d\".into()])").0, "=> \"c-d\"\n");
    drop(second);
    let _ = std::fs::remove_dir_all(cache);
}

#[test]
fn a_library_that_is_broken_costs_a_compile_and_no_cell() {
    let engine = engine();
    let n = until_lent(&engine, 4);
    let mine = format!("xlazy-{}-", std::process::id());
    let of_kernel = |e: &std::fs::DirEntry| e.file_name().to_string_lossy().starts_with(&mine);
    let folders = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten().filter(of_kernel);
    let files = folders.flat_map(|f| std::fs::read_dir(f.path()).unwrap().flatten()).map(|e| e.path());
    let libraries: Vec<_> = files.filter(|f| f.extension().is_some_and(|e| e == "rlib")).collect();
    assert!(!libraries.is_empty());
    libraries.iter().for_each(|l| std::fs::write(l, "broken").unwrap());
    let (out, insight) = run(&engine, n + 1, &count(2));
    // One that was being made meanwhile may be there already.
    assert!(out == "=> \"0: [0]; 1: [1]\"\n" && insight["compiles"].as_u64() > Some(1), "{out} {insight}");
    let (out, _) = run(&engine, n + 2, "let x: u8 = \"text\";");
    assert!(out.contains("mismatched types"), "{out}");
}

#[test]
fn what_a_function_takes_away_is_known_without_a_compile_that_fails() {
    let engine = engine();
    let compiles = |cell, code: &str| {
        let (out, insight) = run(&engine, cell, code);
        assert_eq!(out, "");
        insight["compiles"].as_u64().unwrap()
    };
    assert_eq!(compiles(1, "let a = vec![1]; std::mem::drop(a);"), 1);
    assert_eq!(compiles(2, "let b = vec![2]; std::mem::drop(b);"), 1);
    let out = run(&engine, 3, "b").0;
    assert!(out.contains("moved") && out.contains("cell 2"), "{out}");
    // A number stays, whatever it is given to.
    assert_eq!(compiles(4, "let c = 3; std::mem::drop(c);"), 1);
    assert_eq!(compiles(5, "let d = 4; std::mem::drop(d);"), 1);
    assert_eq!(run(&engine, 6, "c + d").0, "=> 7\n");
    // Nor does a mutable borrow go: it is borrowed again.
    let two = "struct A; impl A { fn take(&self, _: Vec<u8>) {} }\nstruct B; impl B { fn take(&self, v: &mut Vec<u8>) { v.push(1); } }";
    assert_eq!(compiles(20, two), 1);
    assert_eq!(compiles(21, "let k = vec![5u8]; A.take(k);"), 1);
    assert_eq!(compiles(22, "let l: &'static mut Vec<u8> = Box::leak(Box::new(vec![])); B.take(l);"), 1);
    assert_eq!(run(&engine, 23, "l.len()").0, "=> 1\n");
    // Not in a block of its own, and not when it is mentioned again.
    assert_eq!(compiles(7, "let e = vec![5]; std::mem::drop(e);"), 1);
    assert_eq!(compiles(8, "let f = vec![6]; if f.len() == 1 { let f = 7; std::mem::drop(f); }"), 1);
    assert_eq!(run(&engine, 9, "f.len()").0, "=> 1\n");
    assert_eq!(compiles(10, "let g = vec![8]; std::mem::drop(g);"), 1);
    assert_eq!(compiles(11, "let h = 1u8; std::mem::drop(h); let i = h + 1;"), 1);
    assert_eq!(run(&engine, 12, "i").0, "=> 2\n");
}

#[test]
fn what_is_collected_and_moved_is_known_without_a_compile_that_fails() {
    let engine = engine();
    let (out, insight) = run(&engine, 1, "struct Names { all: Vec<String> }\nlet kept = vec![1];");
    assert_eq!((&*out, &insight["compiles"]), ("", &2.into()));
    let cell = "let all = (0..2).map(|i| i.to_string()).collect();\nlet names = Names { all };\nnames.all.len()";
    let (out, insight) = run(&engine, 2, cell);
    assert_eq!((&*out, &insight["compiles"]), ("=> 2\n", &1.into()));
    let out = run(&engine, 3, "all").0;
    assert!(out.contains("moved by cell 2"), "{out}");
    // It is assigned again, and changed; what is not mentioned any more is kept, and so is all in a cell that fails.
    let again = "let mut text = \"abc\".chars().rev().collect();\nlet n = String::len(&text);\ntext = text + \"d\";\n\
        let set = [1, 1].into_iter().collect();\nlet s: &std::collections::HashSet<i32> = &set;\nassert_eq!(n + s.len(), 9);";
    assert!(run(&engine, 4, again).0.contains("left: 4"));
    assert_eq!(run(&engine, 5, "(text.as_str(), n, set.len())").0, "=> (\"cbad\", 3, 1)\n");
    // One whose type only a function's parameter says, and which may be `Copy`, costs a compile and stays.
    let (out, _) = run(&engine, 6, "let n = \"7\".parse().unwrap();\nlet m = u8::saturating_add(n, 1);\n(n, m)");
    assert_eq!(out, "=> (7, 8)\n");
    assert_eq!(run(&engine, 7, "(n, m)").0, "=> (7, 8)\n");
}

#[test]
fn what_surely_borrows_is_lent_without_a_compile_that_fails() {
    let engine = engine();
    run(
        &engine,
        1,
        "struct Bag { items: Vec<String> }\nlet words = vec![\"a\".to_owned()]; let bag = Bag { items: words.clone() };",
    );
    run(&engine, 2, "let t = Tensor::ones([2]);");
    let compiles = |cell: u64, code: &str, wanted: u64| {
        let (out, insight) = run(&engine, cell, code);
        assert_eq!((&*out, insight["compiles"].as_u64()), ("", Some(wanted)), "{code}");
    };
    compiles(3, "let longer = |n: usize| words.iter().filter(|w| w.len() >= n).count(); let first = &words[0];", 1);
    compiles(4, "let f = |x: &Tensor| x + &t; assert_eq!(f(&t).shape(), [2]);", 1);
    // There is no copy of it: that is found once, and what borrows it until somebody mentions it is proven first.
    compiles(5, "let count = || bag.items.len();", 3);
    compiles(6, "let (left, right) = bag.items.split_at(1);", 4);
    let (out, _) = run(&engine, 7, "(longer(1), first, count(), left.len(), right.len())");
    assert_eq!(out, "=> (1, \"a\", 1, 1, 0)\n");
    // What a closure changes is lent to be changed, or it ends where that is mentioned behind it.
    compiles(8, "let mut n = 0; let mut up = |by: i32| { n += by; n };", 2);
    compiles(9, "let mut seen = Vec::<i32>::new(); let mut note = |x: i32| seen.push(x); note(1);", 2);
    compiles(10, "let mut m = 0; let mut more = || m += 1; more(); assert_eq!(m, 1);", 1);
    compiles(
        11,
        "let mut text = String::new(); let mut add = |s: &str| text.push_str(s); add(\"a\"); assert_eq!(text, \"a\");",
        1,
    );
    assert_eq!(run(&engine, 12, "note(up(4)); seen").0, "=> [1, 4]\n");
}

/// A cell is linked to the definitions that it needs: neither those that it does not mention nor earlier ones of a name make
/// another cell of it, and what rustc takes from a crate that it has read ahead is no part of what is kept.
#[test]
fn a_cell_is_linked_to_what_it_mentions() {
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("linked-cache");
    let _ = std::fs::remove_dir_all(&cache);
    let vary = std::process::id();
    let push = format!("let mut v: Vec<[u8; 3]> = Vec::new(); v.push([2; 3]); v.len() + {vary} - {vary}");
    let shout = "trait Shout { fn shout(&self) -> String; } impl Shout for str { fn shout(&self) -> String { self.to_uppercase() } }";
    let first = eval_support::start(Some(cache.clone()));
    run(&first, 1, &format!("fn a(v: &mut Vec<[u8; 3]>) -> usize {{ v.push([1; 3]); v.len() + {vary} - {vary} }}"));
    run(&first, 2, "fn b() -> i32 { 4 }");
    run(&first, 3, shout);
    run(
        &first,
        4,
        "struct Pair { left: i32 } mod parts { pub const MOST: i32 = 3; pub fn pair() -> super::Pair { super::Pair { left: 2 } } }",
    );
    run(&first, 5, "macro_rules! twice { ($e:expr) => { 2 * $e * b() / b() } }");
    assert_eq!(run(&first, 6, "a(&mut Vec::new())").0, "=> 1\n");
    // rustc has read `a` ahead, which has an instance of `push`.
    let (out, insight) = run(&first, 7, &push);
    assert_eq!((&*out, &insight["compiles"]), ("=> 1\n", &1.into()));
    // `b` was compiled beside what `a` was.
    run(&first, 8, "fn a() -> i32 { 5 }");
    let other = push.replace("[2; 3]", "[3; 3]");
    for (cell, code, wanted) in [
        (9, other.as_str(), "=> 1\n"),
        (10, "\"x\".shout() + &format!(\"{}\", a() + b())", "=> \"X9\"\n"),
        (11, "let pair = parts::pair(); pair.left + twice!(parts::MOST)", "=> 8\n"),
        (12, "pair.left", "=> 2\n"),
    ] {
        let (out, insight) = run(&first, cell, code);
        assert_eq!((&*out, &insight["compiles"]), (wanted, &1.into()), "{code}");
    }
    drop(first);
    let second = eval_support::start(Some(cache.clone()));
    run(&second, 1, "fn other() {}");
    assert_eq!(run(&second, 2, &push).0, "=> 1\n");
    let (out, insight) = run(&second, 3, &other);
    assert_eq!((&*out, &insight["cached"]), ("=> 1\n", &true.into()), "`other` has nothing to do with it");
    drop(second);
    std::fs::remove_dir_all(&cache).unwrap();
}
