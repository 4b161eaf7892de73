//! What a cell leaves behind when it ends early, against Rust's own rules: random cells that fail at each of their statements,
//! in every way, beside an interpreter of the little language that they are written in.
mod eval_support;
mod sizes;

use eval_support::{engine, run};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use xlazy_kernel::engine::{Engine, Event, Reply, Request};
use xlazy_kernel::eval::RustEngine;

/// Variables by name; none for one that was moved away.
type Values = BTreeMap<String, Option<Vec<i64>>>;

#[derive(Clone, Debug)]
enum Statement {
    /// `let mut a = vec![…];`
    Let(String, Vec<i64>),
    /// `let mut a = b;`
    Move(String, String),
    /// `let mut a = b.clone();`
    Clone(String, String),
    /// `a = more(a, n);`
    Next(String, i64),
    /// `a = vec![n];`
    Assign(String, i64),
    /// `a.push(n);`
    Push(String, i64),
    /// `drop(a);`
    Drop(String),
    /// `if a.len() > n { drop(b); } else { a.push(n); }`
    Perhaps(String, i64, String),
    /// `for i in 0..n { a = more(a, i); }`
    Loop(String, i64),
    /// `std::mem::swap(&mut a, &mut b);`
    Swap(String, String),
    /// `note!("{}", a.len()); assert!(a.len() < 1000);`
    Tell(String),
    /// `let f = move |n: i64| { a.push(n); a.len() };`, and a call of it.
    Closure(String, i64),
    /// A copy of another variable, longer by one, made by one of `MAKES`.
    Make(usize, String, String, i64),
    /// `let (mut a, mut b) = (c.clone(), vec![n]);`
    Pair(String, String, String, i64),
    /// `let mut a = std::mem::replace(&mut b, vec![n]);`
    Replace(String, String, i64),
    /// Pushes a number by one of `PUSHES`.
    Push2(usize, String, i64),
    /// `(a, b) = (b, a)`, by one of `TRADES`.
    Trade(usize, String, String),
    /// `(a, b) = (more(b, n), a);`
    Turn(String, String, i64),
    /// A `let` without a value, by one of `LATER`; whether it is fixed.
    Later(usize, String, String, i64),
    /// `let mut a; if b.len() > n { a = b.clone(); a.push(n); }`
    Unset(String, String, i64),
    /// A closure that gives a copy of a variable, longer by what it is called with, by one of `CLOSURES`.
    Named(usize, String, String),
}

/// What declares `A` as `B` with `N` behind it.
const MAKES: [&str; 15] = [
    "let (mut A, _) = (more(B.clone(), N), 1);",
    "let Pair { a: mut A, .. } = Pair { a: more(B.clone(), N), b: vec![] };",
    "let mut A = 'out: loop { for i in 0..9 { if i == 3 { break 'out more(B.clone(), N); } } };",
    "let mut A = { let add = |n: i64| more(B.clone(), n); add(N) };",
    "let mut A = match B.clone() { v if v.is_empty() => vec![N], v => more(v, N) };",
    "let mut A = { let A = B.clone(); let A = more(A, N); A };",
    "let mut A = (|v: Vec<i64>| more(v, N))(B.clone());",
    "let mut A = loop { break more(B.clone(), N); };",
    "let Some(mut A) = Some(more(B.clone(), N)) else { panic!(\"never\") };",
    "let mut A = { let mut A = B.clone(); A.push(N); A };",
    "let mut A = { fn longer(v: &[i64]) -> Vec<i64> { [v, &[N]].concat() } longer(&B) };",
    "let mut A = async { more(B.clone(), N) }.await;",
    "let mut A = if B.len() > 2 { more(B.clone(), N) } else { let mut v = B.clone(); v.push(N); v };",
    "let mut A: Vec<i64> = B.iter().copied().chain([N]).collect();",
    "let [mut A] = [more(B.clone(), N)];",
];

/// What gives `A` the value of `B`, and `B` that of `A`.
const TRADES: [&str; 6] = [
    "(A, B) = (B, A);",
    "[A, B] = [B, A];",
    "((A, _), B) = ((B, 1), A);",
    "for _ in 0..3 { (B, A) = (A, B); }",
    "Pair { a: A, b: B } = Pair { a: B, b: A };",
    "{ let mut rest = [0; 2]; (A, rest[1], B) = (B, 1, A); }",
];

/// What declares `A` as `B` with `N` behind it, and gives it that value later.
const LATER: [&str; 7] = [
    "let mut A; A = more(B.clone(), N);",
    "let mut A: Vec<i64>; if B.len() > 3 { A = B.clone(); A.push(N); } else { A = more(B.clone(), N); }",
    "let mut A; loop { A = more(B.clone(), N); break; }",
    "let (mut A, other); (A, other) = (more(B.clone(), N), 1); drop(other);",
    "let mut A; { A = B.clone(); } A.push(N);",
    "let mut A; A = B.clone(); A = more(A, N);",
    "let mut A: Vec<i64>; match B.len() { 0 => A = vec![N], _ => { A = B.clone(); A.push(N) } }",
];

/// What pushes `N` to `A`.
const PUSHES: [&str; 6] = [
    "{ let mut add = |n: i64| A.push(n); add(N); }",
    "match A.len() { 0 => A.push(N), _ => { A = more(A, N); } }",
    "push!(A, N);",
    "{ let v = &mut A; v.push(N); }",
    "A = loop { let v = std::mem::take(&mut A); break more(v, N); };",
    "'done: { A = more(A, N); if A.len() < 1000 { break 'done; } A.clear(); }",
];

/// What declares a closure `A` that gives `B` with its argument behind it.
const CLOSURES: [&str; 7] = [
    "let A = { let kept = B.clone(); move |n: i64| more(kept.clone(), n) };",
    "let kept_A = B.clone(); let A = |n: i64| more(kept_A.clone(), n); A(1);",
    "let kept_A = B.clone(); let A = move |n| { let mut v = kept_A.clone(); v.push(n); v };",
    "let mut A = { let mut kept = B.clone(); move |n: i64| { kept.push(n); kept.clone() } };",
    "let kept_A = B.clone(); let A = move |n: i64| more(kept_A, n);",
    "let kept_A = B.clone(); let add = |v: &[i64], n: i64| [v, &[n]].concat(); let A = |n: i64| add(&kept_A, n);",
    "let kept_A = B.clone(); let A = |n| more(kept_A.clone(), n); println!(\"{:?}\", [1, 2].map(&A));",
];

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Of closures.
const CALLED: [&str; 2] = ["f", "g"];

impl Statement {
    /// One that Rust takes where these are surely there.
    fn random(rng: &mut Rng, there: &mut BTreeMap<String, bool>) -> Statement {
        loop {
            let sure: Vec<String> = there.iter().filter(|(_, sure)| **sure).map(|(n, _)| n.clone()).collect();
            let one = sure.get(rng.usize(..sure.len().max(1))).cloned();
            let n = rng.i64(0..4);
            let kind = rng.u8(0..30);
            if kind == 0 || sure.is_empty() {
                let new = NAMES[rng.usize(..NAMES.len())].to_owned();
                there.insert(new.clone(), true);
                return Statement::Let(new, vec![n; n as usize]);
            }
            let (Some(old), new) = (one, NAMES[rng.usize(..NAMES.len())].to_owned()) else { continue };
            let other = sure[rng.usize(..sure.len())].clone();
            match kind {
                1 => {
                    there.insert(old.clone(), false);
                    there.insert(new.clone(), true);
                    return Statement::Move(new, old);
                }
                2 => {
                    there.insert(new.clone(), true);
                    return Statement::Clone(new, old);
                }
                3 => return Statement::Next(old, n),
                4 => {
                    // What was moved may be assigned again.
                    let any: Vec<String> = there.keys().cloned().collect();
                    let any = any[rng.usize(..any.len())].clone();
                    there.insert(any.clone(), true);
                    return Statement::Assign(any, n);
                }
                5 => return Statement::Push(old, n),
                6 => {
                    there.insert(old.clone(), false);
                    return Statement::Drop(old);
                }
                7 if old != other => {
                    there.insert(other.clone(), false);
                    return Statement::Perhaps(old, n, other);
                }
                8 => return Statement::Loop(old, n),
                9 if old != other => return Statement::Swap(old, other),
                11 => return Statement::Tell(old),
                12..=14 => {
                    there.insert(new.clone(), true);
                    return Statement::Make(rng.usize(..MAKES.len()), new, old, n);
                }
                15 => {
                    let second = NAMES.iter().find(|name| **name != new).expect("another").to_string();
                    there.insert(new.clone(), true);
                    there.insert(second.clone(), true);
                    return Statement::Pair(new, second, old, n);
                }
                16 if old != new => {
                    there.insert(new.clone(), true);
                    return Statement::Replace(new, old, n);
                }
                20 | 21 if old != other => return Statement::Trade(rng.usize(..TRADES.len()), old, other),
                22 if old != other => return Statement::Turn(old, other, n),
                23..=25 if old != new => {
                    there.insert(new.clone(), true);
                    return Statement::Later(rng.usize(..LATER.len()), new, old, n);
                }
                26 if old != new => {
                    there.insert(new.clone(), false);
                    return Statement::Unset(new, old, n);
                }
                27..=29 => {
                    let named = CALLED[rng.usize(..CALLED.len())].to_owned();
                    return Statement::Named(rng.usize(..CLOSURES.len()), named, old);
                }
                17..=19 => return Statement::Push2(rng.usize(..PUSHES.len()), old, n),
                10 => {
                    there.insert(old.clone(), false);
                    return Statement::Closure(old, n);
                }
                _ => {}
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Statement::Let(a, v) => format!("let mut {a}: Vec<i64> = vec!{v:?};"),
            Statement::Move(a, b) => format!("let mut {a} = {b};"),
            Statement::Clone(a, b) => format!("let mut {a} = {b}.clone();"),
            Statement::Next(a, n) => format!("{a} = more({a}, {n});"),
            Statement::Assign(a, n) => format!("{a} = vec![{n}];"),
            Statement::Push(a, n) => format!("{a}.push({n});"),
            Statement::Drop(a) => format!("drop({a});"),
            Statement::Perhaps(a, n, b) => format!("if {a}.len() > {n} {{ drop({b}); }} else {{ {a}.push({n}); }}"),
            Statement::Loop(a, n) => format!("for i in 0..{n} {{ {a} = more({a}, i); }}"),
            Statement::Swap(a, b) => format!("std::mem::swap(&mut {a}, &mut {b});"),
            Statement::Tell(a) => format!("note!(\"{{}} {{{a}:?}}\", {a}.len()); assert!({a}.len() < 1000);"),
            Statement::Make(how, a, b, n) => filled(MAKES[*how], a, b, *n),
            Statement::Push2(how, a, n) => filled(PUSHES[*how], a, a, *n),
            Statement::Trade(how, a, b) => filled(TRADES[*how], a, b, 0),
            Statement::Named(how, f, b) => filled(CLOSURES[*how], f, b, 0),
            Statement::Turn(a, b, n) => format!("({a}, {b}) = (more({b}, {n}), {a});"),
            Statement::Later(how, a, b, n) => filled(LATER[*how], a, b, *n),
            Statement::Unset(a, b, n) => {
                format!("let mut {a}; if {b}.len() > {n} {{ {a} = {b}.clone(); {a}.push({n}); }}")
            }
            Statement::Pair(a, b, c, n) => format!("let (mut {a}, mut {b}) = ({c}.clone(), vec![{n}]);"),
            Statement::Replace(a, b, n) => format!("let mut {a} = std::mem::replace(&mut {b}, vec![{n}]);"),
            Statement::Closure(a, n) => {
                format!("{{ let mut f = move |n: i64| {{ {a}.push(n); {a}.len() }}; f({n}); }}")
            }
        }
    }

    /// What Rust does.
    fn run(&self, values: &mut Values) {
        let take = |values: &mut Values, name: &str| values.get_mut(name).and_then(Option::take).expect("it is there");
        let change = |values: &mut Values, name: &str, n: i64| {
            values.get_mut(name).and_then(Option::as_mut).expect("it is there").push(n);
        };
        match self {
            Statement::Let(a, v) => drop(values.insert(a.clone(), Some(v.clone()))),
            Statement::Move(a, b) => {
                let value = take(values, b);
                values.insert(a.clone(), Some(value));
            }
            Statement::Clone(a, b) | Statement::Named(_, a, b) => {
                let value = values[b].clone();
                values.insert(a.clone(), value);
            }
            Statement::Next(a, n) | Statement::Push(a, n) | Statement::Push2(_, a, n) => change(values, a, *n),
            Statement::Unset(a, b, n) => {
                let mut value = values[b].clone().expect("it is there");
                let set = value.len() as i64 > *n;
                value.push(*n);
                values.insert(a.clone(), set.then_some(value));
            }
            Statement::Make(_, a, b, n) | Statement::Later(_, a, b, n) => {
                let mut value = values[b].clone().expect("it is there");
                value.push(*n);
                values.insert(a.clone(), Some(value));
            }
            Statement::Pair(a, b, c, n) => {
                let value = values[c].clone();
                values.insert(a.clone(), value);
                values.insert(b.clone(), Some(vec![*n]));
            }
            Statement::Replace(a, b, n) => {
                let value = values.insert(b.clone(), Some(vec![*n])).expect("it is there");
                values.insert(a.clone(), value);
            }
            Statement::Assign(a, n) => drop(values.insert(a.clone(), Some(vec![*n]))),
            Statement::Drop(a) | Statement::Closure(a, _) => drop(take(values, a)),
            Statement::Perhaps(a, n, b) => {
                let moves = values[a].as_ref().is_some_and(|v| v.len() as i64 > *n);
                if moves { drop(take(values, b)) } else { change(values, a, *n) }
            }
            Statement::Loop(a, n) => (0..*n).for_each(|i| change(values, a, i)),
            Statement::Tell(_) => {}
            Statement::Turn(a, b, n) => {
                let (one, mut other) = (take(values, a), take(values, b));
                other.push(*n);
                values.insert(a.clone(), Some(other));
                values.insert(b.clone(), Some(one));
            }
            Statement::Swap(a, b) | Statement::Trade(_, a, b) => {
                let (one, other) = (values[a].clone(), values[b].clone());
                values.insert(a.clone(), other);
                values.insert(b.clone(), one);
            }
        }
    }
}

fn filled(statement: &str, a: &str, b: &str, n: i64) -> String {
    let word = |w: &str| match w {
        "A" => a.to_owned(),
        "B" => b.to_owned(),
        "N" => n.to_string(),
        w => w.to_owned(),
    };
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_word(c) != is_word(first)).unwrap_or(rest.len());
        out += &word(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

/// How a cell may end early, as a statement; `spoil(a)` fails with `a` moved into it.
const ENDS: [&str; 5] = [
    "panic!(\"here\");",
    "Err(\"here\")?;",
    "Tensor::ones([2]).matmul(&Tensor::ones([3]));",
    "println!(\"go\"); loop {}",
    "return;",
];

/// Runs a cell, and interrupts it when it prints `go`.
fn ends(engine: &Arc<RustEngine>, cell: u64, code: &str) -> Reply {
    let request = Request { code: code.into(), cell, ..Request::default() };
    let interrupts = engine.clone();
    engine.execute(&request, &mut |event| {
        if let Event::Stream { text, .. } = event
            && text.contains("go")
        {
            interrupts.interrupt();
        }
    })
}

/// What the session has of each name: its value, or the reason why there is none.
fn shown(engine: &RustEngine, cell: u64, name: &str) -> Result<String, String> {
    match run(engine, cell, name) {
        (out, Reply::Ok) => Ok(out.trim().trim_start_matches("=> ").to_owned()),
        (_, Reply::Error(failure)) => Err(failure.message),
        (_, Reply::Interrupted) => panic!("nobody interrupts"),
    }
}

#[test]
fn what_a_cell_leaves_behind_is_what_rust_leaves() {
    let seed = sizes::number("XLAZY_SEED").unwrap_or_else(|| fastrand::u64(..1 << 32));
    println!("XLAZY_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let engine = Arc::new(engine());
    let more = "fn more(mut v: Vec<i64>, n: i64) -> Vec<i64> { v.push(n); v }\nfn spoil(_: Vec<i64>) -> Vec<i64> { panic!(\"spoilt\") }\nmacro_rules! note { ($($t:tt)*) => { println!($($t)*) } }\nstruct Pair { a: Vec<i64>, b: Vec<i64> }\nmacro_rules! push { ($v:expr, $n:expr) => { $v.push($n) } }";
    assert_eq!(run(&engine, 1, more).1, Reply::Ok);
    let mut cell = 1;
    for _ in 0..sizes::rounds(6) {
        cell += 1;
        let mut values = Values::new();
        // All are of an earlier cell, and any may be declared anew.
        let first: Vec<Statement> =
            NAMES.iter().map(|n| Statement::Let((*n).to_owned(), vec![rng.i64(5..9)])).collect();
        let mut text: String = first.iter().map(Statement::text).collect();
        // What borrows stays as it is, whatever becomes of what it borrows.
        let lender = NAMES[rng.usize(..NAMES.len())];
        text += &format!("let borrower = &{lender}[..];");
        assert_eq!(run(&engine, cell, &text).1, Reply::Ok);
        first.iter().for_each(|s| s.run(&mut values));
        values.insert("borrower".into(), values[lender].clone());
        let mut there: BTreeMap<String, bool> = NAMES.iter().map(|n| ((*n).to_owned(), true)).collect();
        let count = rng.usize(1..8);
        let mut code = String::new();
        for _ in 0..count {
            let statement = Statement::random(&mut rng, &mut there);
            code += &statement.text();
            code += "\n";
            statement.run(&mut values);
        }
        let sure: Vec<&String> = there.iter().filter(|(_, sure)| **sure).map(|(n, _)| n).collect();
        match sure.get(rng.usize(..sure.len().max(1))) {
            Some(name) if rng.u8(0..5) == 0 => {
                code += &format!("{name} = spoil({name});\n");
                values.insert((*name).clone(), None);
            }
            _ => code += ENDS[rng.usize(..ENDS.len())],
        }
        // A `let` that never comes.
        code += "\nlet never = 1;\n";
        cell += 1;
        let reply = ends(&engine, cell, &code);
        println!("--- {reply:?}\n{code}");
        assert!(!matches!(&reply, Reply::Error(f) if f.name == "CompileError"), "{code}\n{reply:?}");
        for (name, value) in &values {
            cell += 1;
            let called = CALLED.contains(&&**name);
            let (asked, behind) = if called { (format!("{name}(9)"), Some(9)) } else { (name.clone(), None) };
            let value = value.clone().map(|v| v.into_iter().chain(behind).collect::<Vec<i64>>());
            match (value, shown(&engine, cell, &asked)) {
                (Some(value), shown) => assert_eq!(shown, Ok(format!("{value:?}")), "`{name}` after\n{code}"),
                (None, Err(why)) => assert!(why.contains(name.as_str()) && why.contains("cell"), "{why}"),
                (None, Ok(shown)) => panic!("`{name}` was moved, and is {shown} after\n{code}"),
            }
        }
        // What was moved is there again when it is assigned to.
        if let Some(name) = values.iter().find(|(_, v)| v.is_none()).map(|(n, _)| n.clone()) {
            cell += 2;
            assert_eq!(run(&engine, cell - 1, &format!("{name} = vec![];\n{name}.push(7);")).1, Reply::Ok, "{code}");
            assert_eq!(shown(&engine, cell, &name), Ok("[7]".into()), "`{name}` after\n{code}");
        }
        assert!(shown(&engine, cell + 1, "never").is_err());
        cell += 2;
    }
}
