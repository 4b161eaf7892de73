//! An op of a framework's, or one expression, is made of other ops than before: of which, a number says that is part of the program.
use super::claim::Claim;
use crate::insight::evidence::{Evidence, What};
use crate::insight::record::Record;
use crate::insight::report::{Class, Difference, Place};
use std::collections::BTreeMap;
use xlazy_core::ir::Input;
use xlazy_mime::count;

/// What is made of several ops: its place, and what the framework calls it, where it calls it anything.
struct Whole<'a> {
    line: u64,
    at: Place,
    name: Option<&'a str>,
}

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let whole = e.open().find_map(|(_, what)| of(e, what))?;
    let covers = e.numbered(|what| of(e, what).is_some_and(|other| other.line == whole.line));
    let ops = |r: &Record| count(r.lines.iter().filter(|line| **line == whole.line).count(), "op");
    let (was, now) = (ops(e.old), ops(e.new));
    let now = if was == now { format!("{now}, other ones") } else { now };
    let name = whole.name.map_or("the expression".to_owned(), |name| format!("`{name}`"));
    let (what, at) = (format!("what {name} is made of"), whole.at);
    let difference = Difference { what, was, now, was_at: Some(at), now_at: Some(at) };
    let fix = format!(
        "a number that is part of the program (an exponent, a size, an argument that is static) says what {name} is made of: keep \
         it the same, or give it as data to an op that takes it so; values that come by turns are a program each, and all stay in the \
         cache"
    );
    Some(Claim::new(covers, Class::Constant, at, vec![difference], fix))
}

fn of<'a>(e: &'a Evidence, what: &What) -> Option<Whole<'a>> {
    match *what {
        What::Ops(ref ops) => of_ops(e, &ops.new, &ops.old),
        What::Wiring(i, j, k) => of_wiring(e, i, j, k),
        _ => None,
    }
}

/// All that came or went is a part of one op of the framework's, which both programs have.
fn of_ops<'a>(e: &'a Evidence, new: &[u32], old: &[u32]) -> Option<Whole<'a>> {
    let own = |r: &'a Record, all: &[u32]| -> Vec<(&'a Record, u32)> {
        all.iter().filter(|i| r.derived(**i).is_none()).map(|&i| (r, i)).collect()
    };
    let all: Vec<(&Record, u32)> = own(e.new, new).into_iter().chain(own(e.old, old)).collect();
    let part = |&(r, i): &(&'a Record, u32)| Some((r.part_of(i)?, r.lines[i as usize]));
    let whole = part(all.first()?)?;
    let has = |r: &'a Record| (0..r.steps.len() as u32).any(|i| part(&(r, i)) == Some(whole));
    let one = all.iter().all(|op| part(op) == Some(whole)) && has(e.new) && has(e.old);
    let (r, i) = all[0];
    (one && !more_rounds(e, whole.1)).then(|| Whole { line: whole.1, at: r.steps[i as usize].at, name: Some(whole.0) })
}

/// Whether the line has as many more of each of its ops: it ran more often. Where it has one kind of them alone, which takes what
/// another one gives besides something else, these are no rounds but what one op is made of.
fn more_rounds(e: &Evidence, line: u64) -> bool {
    let at = |r: &Record| (0..r.steps.len()).filter(|&i| r.lines[i] == line).collect::<Vec<usize>>();
    let kinds = |r: &Record| {
        let mut kinds: BTreeMap<u32, usize> = BTreeMap::new();
        at(r).into_iter().for_each(|i| *kinds.entry(r.steps[i].op.base).or_default() += 1);
        kinds
    };
    let (new, old) = (kinds(e.new), kinds(e.old));
    let as_many =
        |(a, b): (&usize, &usize)| a * old.values().next().unwrap_or(&1) == b * new.values().next().unwrap_or(&1);
    let alike = new.keys().eq(old.keys()) && new.values().zip(old.values()).all(as_many);
    let inside = |r: &Record, input: &Input| matches!(input, Input::Step(s) if r.lines[*s as usize] == line);
    let joins = |r: &Record, i: usize| r.steps[i].inputs.len() > 1 && r.steps[i].inputs.iter().any(|x| inside(r, x));
    let one_op = new.len() == 1 && [e.new, e.old].iter().any(|r| at(r).into_iter().any(|i| joins(r, i)));
    alike && !one_op
}

/// An op takes another result of the same expression than before.
fn of_wiring<'a>(e: &'a Evidence, i: u32, j: u32, k: usize) -> Option<Whole<'a>> {
    let (new, old) = (&e.new.steps[i as usize], &e.old.steps[j as usize]);
    let (line, at) = (e.new.lines[i as usize], new.at);
    let inside = |r: &Record, input: Option<&Input>| match input {
        Some(Input::Step(s)) => r.lines[*s as usize] == line,
        _ => false,
    };
    // Where columns are told, a place is one expression.
    let one = at.column() > 0 && e.old.lines[j as usize] == line;
    let within = inside(e.new, new.inputs.get(k)) || inside(e.old, old.inputs.get(k));
    (one && within).then(|| Whole { line, at, name: e.old.part_of(j).or(e.new.part_of(i)) })
}
