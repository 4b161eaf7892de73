//! Item graphs drawn at random, of which one part is changed in a later cell: each variable is dropped, and that is said,
//! where its type is made of that part, and else is what it was; and the types are what a rebuilt program has.
mod eval_support;

use eval_support::{engine, plain, run};
use fastrand::Rng;
use std::collections::BTreeSet;
use xlazy_kernel::engine::Reply;
use xlazy_kernel::eval::RustEngine;

/// A number that a program is made of: the items that say it, the one of them that is changed, and how others use it.
struct Part {
    fixed: fn(&str) -> String,
    changed: fn(&str, &str) -> String,
    used: fn(&str) -> String,
}

const PARTS: &[Part] = &[
    Part { fixed: |_| String::new(), changed: |i, e| format!("const C{i}: usize = {e};"), used: |i| format!("C{i}") },
    Part {
        fixed: |_| String::new(),
        changed: |i, e| format!("const fn f{i}() -> usize {{ {e} }}"),
        used: |i| format!("f{i}()"),
    },
    Part {
        fixed: |i| format!("struct H{i};"),
        changed: |i, e| format!("impl H{i} {{ const N{i}: usize = {e}; fn m{i}(&self) {{}} }}"),
        used: |i| format!("H{i}::N{i}"),
    },
    Part {
        fixed: |i| format!("struct H{i};"),
        changed: |i, e| format!("impl H{i} {{ const fn n{i}(&self) -> usize {{ {e} }} }}"),
        used: |i| format!("H{i}.n{i}()"),
    },
    Part {
        fixed: |i| format!("trait T{i} {{ const M{i}: usize; }}"),
        changed: |i, e| format!("impl T{i} for u8 {{ const M{i}: usize = {e}; }}"),
        used: |i| format!("u8::M{i}"),
    },
    Part {
        fixed: |i| format!("impl T{i} for u16 {{}}"),
        changed: |i, e| format!("trait T{i} {{ const M{i}: usize = {e}; }}"),
        used: |i| format!("u16::M{i}"),
    },
    Part {
        fixed: |_| String::new(),
        changed: |i, e| format!("macro_rules! m{i} {{ () => {{ {e} }} }}"),
        used: |i| format!("(m{i}!())"),
    },
    Part {
        fixed: |i| format!("struct H{i};"),
        changed: |i, e| {
            format!(
                "impl Iterator for H{i} {{ type Item = [u8; {e}]; fn next(&mut self) -> Option<[u8; {e}]> {{ None }} }}"
            )
        },
        // The tags of two options are one byte.
        used: |i| format!("(std::mem::size_of::<std::iter::Peekable<H{i}>>() - 1)"),
    },
    Part {
        fixed: |_| String::new(),
        changed: |i, e| format!("type A{i} = [u8; {e}];"),
        used: |i| format!("std::mem::size_of::<A{i}>()"),
    },
    Part {
        fixed: |_| String::new(),
        changed: |i, e| format!("#[derive(Clone, Copy)] enum D{i} {{ X = 1000, Y = {e} }}"),
        used: |i| format!("(D{i}::Y as usize)"),
    },
];

struct Graph {
    name: usize,
    /// The part, its number, and the parts before it that are added.
    nodes: Vec<(usize, usize, BTreeSet<usize>)>,
}

impl Graph {
    fn draw(name: usize, random: &mut Rng) -> Graph {
        let mut nodes = Vec::new();
        for i in 0..5 {
            let uses = (0..random.usize(..3).min(i)).map(|_| random.usize(..i)).collect();
            nodes.push((random.usize(..PARTS.len()), 1 + random.usize(..3), uses));
        }
        Graph { name, nodes }
    }

    fn id(&self, i: usize) -> String {
        format!("{}_{i}", self.name)
    }

    fn used(&self, i: usize) -> String {
        (PARTS[self.nodes[i].0].used)(&self.id(i))
    }

    fn changed(&self, i: usize) -> String {
        let (part, number, uses) = &self.nodes[i];
        let sum: String = uses.iter().map(|u| format!(" + {}", self.used(*u))).collect();
        (PARTS[*part].changed)(&self.id(i), &format!("{number}{sum}"))
    }

    /// What the parts come to in a program that is built at once.
    fn value(&self, i: usize) -> usize {
        let (_, number, uses) = &self.nodes[i];
        number + uses.iter().map(|u| self.value(*u)).sum::<usize>()
    }

    fn depends(&self, of: usize, on: usize) -> bool {
        of == on || self.nodes[of].2.iter().any(|u| self.depends(*u, on))
    }

    /// Everything, with two types for each part and a variable of each.
    fn text(&self) -> String {
        let mut out = String::from("#![allow(non_camel_case_types)]\n");
        for (i, (part, ..)) in self.nodes.iter().enumerate() {
            let (id, used) = (self.id(i), self.used(i));
            out += &format!("{} {}\n", (PARTS[*part].fixed)(&id), self.changed(i));
            out += &format!("#[derive(Debug, Clone, Copy)] struct S{id}([u8; {used}]);\n");
            out += &format!("#[derive(Debug, Clone, Copy)] enum E{id} {{ Y = 0, X = ({used}) as isize }}\n");
            out += &format!("let s{id} = S{id}([7; {used}]); let e{id} = E{id}::X;\n");
        }
        out
    }
}

fn ran(engine: &RustEngine, cell: &mut u64, code: &str) -> String {
    *cell += 1;
    match run(engine, *cell, code) {
        (out, Reply::Ok) => out,
        (out, Reply::Error(failure)) => panic!("{code}\n{out}{}", plain(&failure)),
        (out, reply) => panic!("{code}\n{out}{reply:?}"),
    }
}

#[test]
fn a_kept_value_is_one_of_the_rebuilt_program() {
    const GRAPHS: usize = 3;
    let mut random = Rng::with_seed(0x2545_F491_4F6C_DD1D);
    let engine = engine();
    let mut cell = 0;
    for name in 0..GRAPHS {
        let mut graph = Graph::draw(name, &mut random);
        ran(&engine, &mut cell, &graph.text());
        let mut there: BTreeSet<usize> = (0..graph.nodes.len()).collect();
        for _ in 0..2 {
            let changed = random.usize(..graph.nodes.len());
            graph.nodes[changed].1 += 1;
            let text = graph.changed(changed);
            let out = ran(&engine, &mut cell, &text);
            let said = |what: String| out.contains(&format!("the variable `{what}` was dropped because its type"));
            let mut asked = String::new();
            for i in there.clone() {
                let id = graph.id(i);
                let dropped = (said(format!("s{id}")), said(format!("e{id}")));
                let outdated = graph.depends(i, changed);
                assert_eq!(dropped, (outdated, outdated), "part {i} after `{text}` in\n{}\n{out}", graph.text());
                if outdated {
                    there.remove(&i);
                } else {
                    asked += &format!(
                        "println!(\"{{}} {{}} {{:?}} {{}}\", s{id}.0.len(), s{id}.0.iter().all(|b| *b == 7), e{id}, e{id} as isize);\n"
                    );
                }
            }
            let mut wanted: String =
                there.iter().map(|i| graph.value(*i)).map(|v| format!("{v} true X {v}\n")).collect();
            for i in 0..graph.nodes.len() {
                let id = graph.id(i);
                asked += &format!("println!(\"{{}} {{}}\", std::mem::size_of::<S{id}>(), E{id}::X as isize);\n");
                wanted += &format!("{0} {0}\n", graph.value(i));
            }
            assert_eq!(ran(&engine, &mut cell, &asked), wanted, "after `{text}` in\n{}", graph.text());
        }
    }
}
