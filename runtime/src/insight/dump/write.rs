//! A program that was compiled as StableHLO text with locations, as [`explain_dumps`](super::explain_dumps) reads it.
use crate::insight::mode::Derived;
use crate::insight::record::{LeafRecord, Record};
use crate::insight::report::Place;
use std::fmt::Write;
use xlazy_core::ir::{LeafType, Params, Writing, Written, located, program};
use xlazy_core::mesh::{Mesh, Sharding};

/// The text, with a location behind each operation and each input.
pub(super) fn written(r: &Record) -> String {
    // Numbers one by one: their places in packs say nothing of the program.
    let params = Params { data: (0..r.leaves.len() as u32).collect(), packs: vec![] };
    let mesh = Mesh::at(r.device);
    let leaf = |l: &LeafRecord| LeafType {
        ty: l.ty.clone(),
        scalar: l.scalar,
        donate: l.donate,
        sharding: mesh.map(|mesh| l.sharding.clone().unwrap_or_else(|| Sharding::replicated(mesh, l.ty.shape.len()))),
    };
    let types: Vec<LeafType> = r.leaves.iter().map(leaf).collect();
    let writing = Writing { options: r.options, checked: false, mesh };
    let Written { text, marks, .. } = program(&r.steps, &types, &params, &r.roots, writing);
    let of = |part: usize| {
        let kind = match r.derived(part as u32) {
            Some(Derived::Gradient) => "gradient/",
            Some(Derived::Update) => "update/",
            None => "",
        };
        format!("\"{kind}{}\"({})", marks[part].op.name, line_of(marks[part].at))
    };
    let mut out = String::with_capacity(2 * text.len());
    for line in located(&text, &marks, of).split_inclusive('\n') {
        match line.trim_end().split_once("@main(") {
            Some((head, rest)) => drop(writeln!(out, "{head}@main({}", arguments(rest, r, &params))),
            None => out.push_str(line),
        }
    }
    out
}

fn line_of(at: Place) -> String {
    format!("{:?}:{}:{}", at.file(), at.line(), at.column())
}

/// The arguments with their names and lines.
fn arguments(text: &str, r: &Record, params: &Params) -> String {
    let (inside, rest) = text.split_once(") ->").unwrap_or((text, ""));
    let mut leaves = params.data.iter().map(|&l| &r.leaves[l as usize]);
    let one = |argument: &str| {
        let from = leaves.next().map(|leaf| {
            let line = line_of(leaf.at);
            leaf.name.as_ref().map_or(line.clone(), |name| format!("{name:?}({line})"))
        });
        from.map_or_else(|| argument.to_owned(), |from| format!("{argument} loc({from})"))
    };
    let all: Vec<String> = inside.split(", %").map(one).collect();
    format!("{}) ->{rest}", all.join(", %"))
}
