//! Item graphs drawn at random: whatever a type depends on, by the edges that they were drawn with, and nothing else, makes
//! it another type when it changes.
use super::super::definitions::{Definitions, Group};
use super::*;
use crate::eval::parse::split;
use crate::eval::text::source::CellText;
use std::sync::Arc;

fn definitions(text: &str) -> Definitions {
    let cell = Arc::new(CellText::new(1, text.to_owned()));
    let parsed = split::parse(&cell, 0..text.len(), &[]).unwrap_or_else(|e| panic!("{e} in {text}"));
    assert!(!parsed.has_statements, "{text}");
    let group = Group { crate_name: "g_1".into(), object: "g_1".into(), items: parsed.items.clone() };
    let mut out = Definitions::default();
    (out.groups, out.uses, out.macros) = (vec![group.into()], parsed.uses.into(), parsed.macros.into());
    out
}

/// Whether a value of this type, made with one text, is one of the other.
fn stays(of: &str, before: &str, now: &str) -> bool {
    let (before, now) = (definitions(before), definitions(now));
    let was = Index::new(&before).reach(of, None);
    was.is_some_and(|was| Index::new(&now).still(of, &was))
}

fn drops(of: &str, before: &str, now: &str) {
    assert!(!stays(of, before, now), "{before}\n---\n{now}");
}

fn keeps(of: &str, before: &str, now: &str) {
    assert!(stays(of, before, now), "{before}\n---\n{now}");
}

/// One part of a program: how it is written for a number that may change and the numbers that it uses, and how others use it.
type Part = (fn(usize, usize, &str) -> String, fn(usize) -> String);

const PARTS: &[Part] = &[
    (|i, k, e| format!("const C{i}: usize = {k}{e};"), |i| format!("C{i}")),
    (|i, k, e| format!("static V{i}: usize = {k}{e};"), |i| format!("V{i}")),
    (|i, k, e| format!("const fn f{i}() -> usize {{ {k}{e} }}"), |i| format!("f{i}()")),
    (|i, k, e| format!("struct H{i}; impl H{i} {{ const N{i}: usize = {k}{e}; }}"), |i| format!("H{i}::N{i}")),
    (
        |i, k, e| format!("struct H{i}; impl H{i} {{ const fn n{i}() -> usize {{ {k}{e} }} }}"),
        |i| format!("H{i}::n{i}()"),
    ),
    (
        |i, k, e| {
            format!("struct H{i}; const G{i}: H{i} = H{i}; impl H{i} {{ const fn n{i}(&self) -> usize {{ {k}{e} }} }}")
        },
        |i| format!("G{i}.n{i}()"),
    ),
    (
        |i, k, e| {
            format!(
                "trait T{i} {{ const M{i}: usize; }} struct H{i}; impl T{i} for H{i} {{ const M{i}: usize = {k}{e}; }}"
            )
        },
        |i| format!("<H{i} as T{i}>::M{i}"),
    ),
    (
        |i, k, e| format!("trait T{i} {{ const M{i}: usize; }} impl T{i} for u8 {{ const M{i}: usize = {k}{e}; }}"),
        |i| format!("u8::M{i}"),
    ),
    (
        |i, k, e| format!("trait T{i} {{ const M{i}: usize = {k}{e}; }} impl T{i} for u16 {{}}"),
        |i| format!("u16::M{i}"),
    ),
    (|i, k, e| format!("macro_rules! m{i} {{ () => {{ ({k}{e}) }} }}"), |i| format!("m{i}!()")),
    (|i, k, _| format!("mod o{i} {{ pub const K: usize = {k}; }}"), |i| format!("o{i}::K")),
    (|i, k, _| format!("mod o{i} {{ pub const K{i}: usize = {k}; }} use o{i}::K{i} as R{i};"), |i| format!("R{i}")),
    (|i, k, _| format!("mod o{i} {{ pub const K{i}: usize = {k}; }} use o{i}::*;"), |i| format!("K{i}")),
    (
        |i, k, e| format!("struct H{i}; type B{i} = H{i}; impl B{i} {{ const N{i}: usize = {k}{e}; }}"),
        |i| format!("H{i}::N{i}"),
    ),
    (
        |i, k, e| format!("struct H{i}; const _: () = {{ impl H{i} {{ const N{i}: usize = {k}{e}; }} }};"),
        |i| format!("H{i}::N{i}"),
    ),
    (
        |i, k, e| format!("struct H{i}; mod o{i} {{ use super::*; impl H{i} {{ pub const N{i}: usize = {k}{e}; }} }}"),
        |i| format!("H{i}::N{i}"),
    ),
    (|i, k, e| format!("type A{i} = [u8; {k}{e}];"), |i| format!("std::mem::size_of::<A{i}>()")),
    (|i, k, e| format!("struct S{i}([u8; {k}{e}]);"), |i| format!("std::mem::size_of::<S{i}>()")),
    (
        |i, k, e| format!("struct D{i}<const L: usize = {{ {k}{e} }}>([u8; L]);"),
        |i| format!("std::mem::size_of::<D{i}>()"),
    ),
    (
        |i, k, e| format!("#[repr(align({}))] struct Q{i}([u8; 1{e}]);", 1 << k),
        |i| format!("std::mem::size_of::<Q{i}>()"),
    ),
    (|i, k, e| format!("enum E{i} {{ X = 1 + {k}{e}, Y = 0 }}"), |i| format!("E{i}::X as usize")),
    (
        |i, k, e| {
            format!(
                "struct H{i}; impl Iterator for H{i} {{ type Item = [u8; {k}{e}]; \
                fn next(&mut self) -> Option<Self::Item> {{ None }} }}"
            )
        },
        |i| format!("std::mem::size_of::<std::iter::Peekable<H{i}>>()"),
    ),
    (
        |i, k, e| {
            format!(
                "trait T{i} {{ type O{i}; }} impl T{i} for i8 {{ type O{i} = [u8; {k}{e}]; }} \
                struct W{i}<X: T{i}>(X::O{i});"
            )
        },
        |i| format!("std::mem::size_of::<W{i}<i8>>()"),
    ),
    (
        |i, k, e| {
            format!(
                "macro_rules! d{i} {{ ($t:ident, $n:ident) => {{ struct $t; impl $t {{ const $n: usize = {k}{e}; }} }} }} \
                d{i}!(H{i}, N{i});"
            )
        },
        |i| format!("H{i}::N{i}"),
    ),
    (
        |i, k, e| {
            format!(
                "macro_rules! d{i} {{ ($t:ident) => {{ const N{i}: usize = {k}{e}; }} }} struct H{i}; \
                impl H{i} {{ d{i}!(H{i}); }}"
            )
        },
        |i| format!("H{i}::N{i}"),
    ),
];

/// What no type can depend on, with something in it that may change.
const INERT: &[fn(usize, usize) -> String] = &[
    |i, k| format!("fn g{i}() -> usize {{ {k} }}"),
    |i, k| format!("struct Z{i}(u8); impl Z{i} {{ fn get(&self) -> usize {{ {k} }} }}"),
    |i, k| {
        format!(
            "struct Z{i}(u8); impl std::fmt::Display for Z{i} {{ /* {k} */ fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {{ write!(f, \"{k}\") }} }}"
        )
    },
    |i, k| format!("/// What it is: {k}.\nstruct Z{i} {{ n{i}: u8 /* {k} */ }}"),
    |i, k| format!("struct Z{i}; impl Drop for Z{i} {{ fn drop(&mut self) {{ println!(\"{k}\"); }} }}"),
];

struct Graph {
    /// The part, and those before it that it uses.
    nodes: Vec<(usize, Vec<usize>)>,
}

impl Graph {
    fn draw(random: &mut fastrand::Rng) -> Graph {
        let mut nodes: Vec<(usize, Vec<usize>)> = Vec::new();
        for i in 0..6 + random.usize(..6) {
            let part = random.usize(..PARTS.len());
            let uses = (0..random.usize(..3).min(i)).map(|_| random.usize(..i)).collect();
            nodes.push((part, uses));
        }
        Graph { nodes }
    }

    fn text(&self, numbers: &[usize], inert: usize) -> String {
        let mut out = String::new();
        for (i, (part, uses)) in self.nodes.iter().enumerate() {
            let sum: String = uses.iter().map(|u| format!(" + {}", self.used(*u))).collect();
            out += &(PARTS[*part].0)(i, numbers[i], &sum);
            out += "\n";
            out += &format!("struct L{i}([u8; {}]);\n", self.used(i));
        }
        INERT.iter().enumerate().for_each(|(i, part)| out += &format!("{}\n", part(i, inert)));
        out
    }

    fn used(&self, i: usize) -> String {
        (PARTS[self.nodes[i].0].1)(i)
    }

    /// Whether something that is made of `of` is made of `on`. Some write no sum: they are made of nothing.
    fn depends(&self, of: usize, on: usize) -> bool {
        let (part, uses) = &self.nodes[of];
        let marked = (PARTS[*part].0)(0, 1, "MARK").contains("MARK");
        of == on || marked && uses.iter().any(|u| self.depends(*u, on))
    }
}

#[test]
fn a_type_is_another_one_where_and_only_where_something_that_it_depends_on_is() {
    let mut random = fastrand::Rng::with_seed(0x9E37_79B9_7F4A_7C15);
    let mut drawn = BTreeSet::new();
    for _ in 0..12 {
        let graph = Graph::draw(&mut random);
        drawn.extend(graph.nodes.iter().map(|(part, _)| *part));
        let numbers = vec![1; graph.nodes.len()];
        let text = graph.text(&numbers, 1);
        let before = definitions(&text);
        let index = Index::new(&before);
        let was: Vec<Reach> =
            (0..numbers.len()).map(|i| index.reach(&format!("L{i}"), None).expect("decided")).collect();
        for changed in 0..numbers.len() {
            let mut numbers = numbers.clone();
            numbers[changed] = 2;
            let text = graph.text(&numbers, 1);
            let now = definitions(&text);
            let index = Index::new(&now);
            for (i, was) in was.iter().enumerate() {
                let same = index.still(&format!("L{i}"), was);
                assert_eq!(!same, graph.depends(i, changed), "`L{i}` with {changed} changed in\n{text}");
            }
        }
        let text = graph.text(&numbers, 2);
        let now = definitions(&text);
        let index = Index::new(&now);
        let earlier = Index::new(&before);
        let names = (0..was.len()).map(|i| format!("L{i}")).chain((1..INERT.len()).map(|i| format!("Z{i}")));
        for name in names {
            let was = earlier.reach(&name, None).expect("decided");
            assert!(index.still(&name, &was), "`{name}` with only what functions do changed in\n{text}");
        }
    }
    assert_eq!(drawn.len(), PARTS.len(), "every part is drawn");
}

#[test]
fn what_is_added_drops_only_what_it_may_change() {
    let p = "struct P { x: i32 }";
    for added in [
        "impl P { fn f(&self) -> i32 { 1 } const fn new() -> P { P { x: 1 } } const K: u8 = 1; }",
        "impl std::ops::Add for P { type Output = P; fn add(self, o: P) -> P { o } }",
        "impl Iterator for P { type Item = u8; fn next(&mut self) -> Option<u8> { None } }",
        "trait T { type O; const N: u8; } impl T for P { type O = u8; const N: u8 = 1; } impl T for i32 { type O = u8; const N: u8 = 1; }",
        "fn x() {} const y: u8 = 1; mod m { pub fn x() {} }",
        "use std::collections::*;",
        "impl Drop for P { fn drop(&mut self) {} }",
    ] {
        keeps("P", p, &format!("{p} {added}"));
    }
    let e = "struct A; impl A { const N: isize = 4; const M: isize = 1; } enum E { X = A::N, Y = 1 }";
    keeps(
        "E",
        e,
        &format!(
            "{e} impl std::fmt::Display for E {{ fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {{ Ok(()) }} }}"
        ),
    );
    keeps("E", e, &e.replace("M: isize = 1", "M: isize = 2"));
    drops("E", e, &e.replace("N: isize = 4", "N: isize = 8"));
    // A constant of the type's own stands before a trait's.
    let e = "struct A; trait T { const N: isize = 1; } impl T for A {} enum E { X = A::N, Y = 9 }";
    drops("E", e, &format!("{e} impl A {{ const N: isize = 2; }}"));
    // `A` gains a trait, and another `impl` is meant.
    let e = "trait Is { const N: isize = 0; } struct W<T>(T); struct A; impl<T> Is for W<T> {} \
        impl<T: Marked> W<T> { const N: isize = 1; } trait Marked {} enum E { X = W::<A>::N, Y = 9 }";
    drops("E", e, &format!("{e} impl Marked for A {{}}"));
    keeps("E", e, &format!("{e} struct B; impl Marked for B {{}}"));
    // A name that was the prelude's.
    drops("S", "struct S(Vec<u8>);", "struct S(Vec<u8>); struct Vec<T>(T);");
    drops("S", "struct S(Result<u8, ()>);", "struct S(Result<u8, ()>); use std::fmt::*;");
}

#[test]
fn what_cannot_be_decided_is_another_type() {
    for text in [
        "struct S([u8; line!() as usize]);",
        "const N: usize = include_bytes!(\"x\").len(); struct S([u8; N]);",
        "const fn n() -> usize { env!(\"HOME\").len() } struct S([u8; n()]);",
        "macro_rules! n { () => { file!().len() } } struct S([u8; n!()]);",
        "use std::line as l; struct S([u8; l!() as usize]);",
        "struct S { #[cfg(debug_assertions)] x: u8 }",
        "const N: usize = if cfg!(overflow_checks) { 1 } else { 2 }; struct S([u8; N]);",
        "const N: usize = std::panic::Location::caller().line() as usize; struct S([u8; N]);",
    ] {
        drops("S", text, text);
        // Where no type depends on it, it does not matter.
        keeps(
            "T",
            &format!("{text} struct T {{ line: u8, file: u8, env: u8 }}"),
            &format!("{text} struct T {{ line: u8, file: u8, env: u8 }}"),
        );
    }
    // A macro of another crate may make any name of others.
    let text = "const LEN_A: usize = 1; struct S([u8; joined!(LEN_ A)]);";
    keeps("S", text, text);
    drops("S", text, &text.replace("= 1", "= 2"));
}

#[test]
fn values_by_which_functions_are_told_apart() {
    // How large it is what a function gives back, can be asked of the function.
    let text = "fn f() -> impl Sized { 1_u8 } const fn size<F: Fn() -> R, R>(_: &F) -> usize { std::mem::size_of::<R>() } \
        struct S([u8; size(&f)]);";
    drops("S", text, &text.replace("1_u8", "1_u16"));
    // A field is no function.
    keeps("S", "fn f() -> u8 { 1 } struct S { f: u8 }", "fn f() -> u8 { 2 } struct S { f: u8 }");
    // An object's table has what the trait has.
    let text = "struct Q(u8); trait T { fn f(&self) -> Q; }";
    drops("T", text, &text.replace("u8", "u16"));
    keeps("T", text, &format!("{text} impl T for u8 {{ fn f(&self) -> Q {{ Q(1) }} }}"));
}
