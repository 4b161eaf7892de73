//! A program that was compiled as StableHLO text with locations, as [`explain_dumps`](super::explain_dumps) reads it.
use crate::insight::mode::Derived;
use crate::insight::record::Record;
use crate::insight::report::Place;
use std::fmt::Write;
use xlazy_core::ir::{LeafType, Params, Written, program};

/// The text, with a location behind each operation and each input.
pub(super) fn written(r: &Record) -> String {
    // Numbers one by one: their places in packs say nothing of the program.
    let params = Params { data: (0..r.leaves.len() as u32).collect(), packs: vec![] };
    let types: Vec<LeafType> =
        r.leaves.iter().map(|l| LeafType { ty: l.ty.clone(), scalar: l.scalar, donate: l.donate }).collect();
    let Written { text, marks, .. } = program(&r.steps, &types, &params, &r.roots, r.options, false);
    let mut out = String::with_capacity(2 * text.len());
    let (mut at, mut step) = (0, 0);
    for line in text.split_inclusive('\n') {
        let begins = at;
        at += line.len();
        let body = line.trim_end();
        if let Some((head, rest)) = body.split_once("@main(") {
            let _ = writeln!(out, "{head}@main({}", arguments(rest, r, &params));
            continue;
        }
        while marks.get(step).is_some_and(|m| m.to as usize <= begins) {
            step += 1;
        }
        let inside = marks.get(step).is_some_and(|m| m.from as usize <= begins);
        if !inside || body.is_empty() || body.ends_with(['{', ':', '(']) {
            out.push_str(line);
            continue;
        }
        let kind = match r.derived(step as u32) {
            Some(Derived::Gradient) => "gradient/",
            Some(Derived::Update) => "update/",
            None => "",
        };
        let _ = writeln!(out, "{body} loc(\"{kind}{}\"({}))", marks[step].op.name, line_of(marks[step].at));
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
