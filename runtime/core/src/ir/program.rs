//! A whole program: parameters, the steps in order, the results.
use super::cut::Step;
use super::input::Input;
use super::looks::{Asked, Looked};
use super::op::OpDef;
use crate::emit::{Checked, Emit, Looking, Val, mlir_type};
use crate::mesh::{Mesh, Sharding};
use crate::options::Options;
use crate::text::Source;
use crate::ty::{DType, Shape, Type};
use foldhash::{HashSet, HashSetExt};
use std::fmt::Write;

/// How a program's leaves are laid out as its parameters: device data one by one, then the scalars of user code. Each is a parameter
/// of its own, which XLA takes in stride, where slices of a vector took a quarter of its time on CPUs and two thirds on GPUs; where
/// there are many more of them than of data they are packed by dtype, so that they cost one small transfer each step.
pub struct Params {
    /// Leaf numbers of the device data, in parameter order.
    pub data: Vec<u32>,
    /// Leaf numbers of the scalars that travel in one buffer of this dtype.
    pub packs: Vec<(DType, Vec<u32>)>,
}

/// So many more scalars than device data are parameters of their own.
const ALONE: usize = 32;

impl Params {
    /// `leaves` are the types of all leaves and whether each is a scalar.
    pub fn lay_out<'a>(leaves: impl Iterator<Item = (&'a Type, bool)>) -> Params {
        let (mut data, mut scalars) = (Vec::new(), Vec::new());
        for (i, (ty, scalar)) in (0..).zip(leaves) {
            if scalar { scalars.push((ty.dtype.carrier(), i)) } else { data.push(i) }
        }
        let together = scalars.len() > data.len() + ALONE;
        let mut packs: Vec<(DType, Vec<u32>)> = Vec::new();
        for (dtype, i) in scalars {
            match packs.iter_mut().find(|(d, _)| together && *d == dtype) {
                Some((_, members)) => members.push(i),
                None => packs.push((dtype, vec![i])),
            }
        }
        Params { data, packs }
    }

    pub fn count(&self) -> usize {
        self.data.len() + self.packs.len()
    }
}

/// A leaf as the program sees it.
pub struct LeafType {
    pub ty: Type,
    pub scalar: bool,
    pub donate: bool,
    /// Of data in a program for a mesh: how they lie on it.
    pub sharding: Option<Sharding>,
}

/// Which part of a program's text is from which op of the user's. Kept beside the text, which locations would double.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Bytes of the text.
    pub from: u32,
    pub to: u32,
    pub op: &'static OpDef,
    pub at: &'static Source,
}

/// Which result takes the buffer of each leaf that is donated: the one that is computed from it in the fewest ops of its type, as
/// a parameter's update is, since XLA writes that in place. A buffer that another result took would be copied first, because
/// it is still to be read. What is left takes any result of its type.
fn places(steps: &[Step], leaves: &[LeafType], roots: &[u32]) -> Vec<Option<usize>> {
    /// An update is so many ops long at most.
    const FAR: u32 = 16;
    let fits = |l: u32, r: usize| leaves[l as usize].donate && leaves[l as usize].ty == *steps[roots[r] as usize].ty;
    let mut near: Vec<(u32, usize, u32)> = Vec::new();
    for (r, &root) in roots.iter().enumerate() {
        let (mut front, mut seen) = (vec![root], HashSet::new());
        for hops in 0..FAR {
            let inputs = front.iter().flat_map(|&s| &steps[s as usize].inputs);
            let mut next = Vec::new();
            for input in inputs {
                match *input {
                    Input::Leaf(l) if fits(l, r) => near.push((hops, r, l)),
                    Input::Step(s) if steps[s as usize].ty == steps[root as usize].ty && seen.insert(s) => next.push(s),
                    _ => {}
                }
            }
            front = next;
        }
    }
    near.sort_unstable();
    let mut places = vec![None; leaves.len()];
    let mut taken = vec![false; roots.len()];
    for (_, r, l) in near {
        if places[l as usize].is_none() && !taken[r] {
            (places[l as usize], taken[r]) = (Some(r), true);
        }
    }
    for l in (0..leaves.len()).filter(|&l| leaves[l].donate) {
        if places[l].is_none() {
            places[l] = (0..roots.len()).find(|&r| !taken[r] && fits(l as u32, r));
            places[l].into_iter().for_each(|r| taken[r] = true);
        }
    }
    places
}

/// A program as text.
pub struct Written {
    pub text: String,
    pub marks: Vec<Mark>,
    /// Where there are some, a vector of what they found is the last result.
    pub checks: Vec<Checked>,
    /// Floating-point operations of one run, as written.
    pub flops: f64,
}

/// How a program is to be written.
pub struct Writing {
    pub options: Options,
    /// Also what its ops refuse while they run.
    pub checked: bool,
    /// The mesh that it is for, whose devices each run a part of it, or all of it where they are ranks.
    pub mesh: Option<Mesh>,
}

/// A sharding as an attribute of a parameter or a result. Every parameter has one: XLA would choose one otherwise, and expect
/// parts.
fn annotated(sharding: &Sharding) -> String {
    format!("sdy.sharding = #sdy.sharding{}", sharding.mlir())
}

/// The StableHLO text of a cut, and where its parts are from.
pub fn program(
    steps: &[Step],
    leaves: &[LeafType],
    params: &Params,
    roots: &[u32],
    Writing { options, checked, mesh }: Writing,
) -> Written {
    let looking = Looking { refused: checked, numbers: options.numbers };
    let mut e = Emit::new(options.precision).on(mesh).looking_for(looking);
    let mut leaf_values: Vec<Option<Val>> = vec![None; leaves.len()];
    let mut arguments = String::new();
    let places = places(steps, leaves, roots);
    for (n, &leaf) in params.data.iter().enumerate() {
        let ty = &leaves[leaf as usize].ty;
        let v = e.fresh(ty.clone());
        let _ = write!(arguments, "{}{v}: {}", if n > 0 { ", " } else { "" }, mlir_type(ty));
        let alias = places[leaf as usize].map(|r| format!("tf.aliasing_output = {r} : i32"));
        let attributes: Vec<String> =
            leaves[leaf as usize].sharding.as_ref().map(annotated).into_iter().chain(alias).collect();
        if !attributes.is_empty() {
            let _ = write!(arguments, " {{{}}}", attributes.join(", "));
        }
        leaf_values[leaf as usize] = Some(v);
    }
    for (n, (dtype, members)) in params.packs.iter().enumerate() {
        let size = |leaf: &u32| leaves[*leaf as usize].ty.shape.numel();
        let total: usize = members.iter().map(size).sum();
        let shape = if total == 1 { Shape::default() } else { Shape::new(&[total]) };
        let pack = e.fresh(Type::new(*dtype, shape));
        let comma = if n + params.data.len() > 0 { ", " } else { "" };
        let _ = write!(arguments, "{comma}{pack}: {}", mlir_type(&pack.ty));
        if let Some(mesh) = mesh.filter(|m| !m.is_ranks()) {
            let _ = write!(arguments, " {{{}}}", annotated(&Sharding::replicated(mesh, pack.rank())));
        }
        let mut next = 0;
        for &leaf in members {
            let ty = &leaves[leaf as usize].ty;
            let (from, to) = (next, next + size(&leaf) as i64);
            next = to;
            let part = if total == 1 { pack.clone() } else { e.slice(&pack, &[from], &[to], &[1]) };
            let part = e.reshape(&part, &ty.shape);
            leaf_values[leaf as usize] = Some(e.convert(&part, ty.dtype));
        }
    }
    let mut values: Vec<Val> = Vec::with_capacity(steps.len());
    let mut marks: Vec<Mark> = Vec::with_capacity(steps.len());
    let mut looked = Looked::default();
    for (step, n) in steps.iter().zip(0..) {
        let from = e.text().len() as u32;
        let inputs: Vec<Val> = step
            .inputs
            .iter()
            .map(|i| match *i {
                Input::Leaf(l) => leaf_values[l as usize].clone().expect("every leaf is a parameter"),
                Input::Step(s) => values[s as usize].clone(),
            })
            .collect();
        e.enter(0, n);
        let value = step.op.write(&mut e, &inputs, &step.attrs, &step.ty);
        let number = |l: u32| leaves[l as usize].scalar;
        let Step { op, attrs, inputs: operands, .. } = step;
        looked.at(&mut e, Asked { op, attrs, from: operands, inputs: &inputs, value: &value }, number);
        e.leave();
        values.push(value);
        marks.push(Mark { from, to: e.text().len() as u32, op: step.op, at: step.at });
    }
    let (found, checks): (Vec<Val>, Vec<Checked>) = e.take_found().into_iter().unzip();
    if !found.is_empty() {
        let one = Shape::new(&[1]);
        let found: Vec<Val> = found.iter().map(|v| e.reshape(v, &one)).collect();
        let all = match &found[..] {
            [one] => one.clone(),
            all => e.concatenate(&all.iter().collect::<Vec<_>>(), 0),
        };
        values.push(all);
    }
    let found = (!checks.is_empty()).then(|| values.len() - 1);
    let results: Vec<&Val> = roots.iter().map(|&r| r as usize).chain(found).map(|r| &values[r]).collect();
    let join = |f: &dyn Fn(&Val) -> String| results.iter().map(|v| f(v)).collect::<Vec<_>>().join(", ");
    let (names, types) = (join(&|v| v.to_string()), join(&|v| mlir_type(&v.ty)));
    let (head, given) = match mesh {
        None => ("module @xlazy {\n".to_owned(), types.clone()),
        Some(mesh) if mesh.is_ranks() => {
            let attributes = format!("{{mhlo.num_replicas = {} : i32, mhlo.num_partitions = 1 : i32}}", mesh.size());
            (format!("module @xlazy attributes {attributes} {{\n"), types.clone())
        }
        Some(mesh) => {
            (for_mesh(mesh), join_with(&results, &fixed(mesh, leaves, &places, roots.len(), found.is_some())))
        }
    };
    let mut text = format!("{head}  func.func public @main({arguments}) -> ({given}) {{\n");
    for mark in &mut marks {
        mark.from += text.len() as u32;
        mark.to += text.len() as u32;
    }
    text.push_str(e.text());
    let _ = write!(text, "    return {names} : {types}\n  }}\n");
    e.functions().for_each(|f| text.extend(["  ", f.trim(), "\n"]));
    text.push_str("}\n");
    Written { text, marks, checks, flops: e.flops() }
}

/// A program's text with a location behind each operation; `of` writes that of a part, by its number.
pub fn located(text: &str, marks: &[Mark], of: impl Fn(usize) -> String) -> String {
    let mut out = String::with_capacity(2 * text.len());
    let (mut at, mut part) = (0, 0);
    for line in text.split_inclusive('\n') {
        let begins = at;
        at += line.len();
        while marks.get(part).is_some_and(|m| m.to as usize <= begins) {
            part += 1;
        }
        let inside = marks.get(part).is_some_and(|m| m.from as usize <= begins);
        let body = line.trim_end();
        if !inside || body.is_empty() || body.ends_with(['{', ':', '(']) {
            out.push_str(line);
            continue;
        }
        let _ = writeln!(out, "{body} loc({})", of(part));
    }
    out
}

/// The head of a module whose program is split over a mesh.
fn for_mesh(mesh: Mesh) -> String {
    let attributes = format!("{{mhlo.num_replicas = 1 : i32, mhlo.num_partitions = {} : i32}}", mesh.size());
    format!("module @xlazy attributes {attributes} {{\n  {}\n", mesh.mlir())
}

/// The shardings of results that are not left to XLA: what takes a donated buffer lies as that did, so that the next round of
/// a step finds its state as this one did, and what checks found is everywhere.
fn fixed(
    mesh: Mesh,
    leaves: &[LeafType],
    places: &[Option<usize>],
    roots: usize,
    found: bool,
) -> Vec<Option<Sharding>> {
    let mut fixed = vec![None; roots];
    for (leaf, place) in leaves.iter().zip(places) {
        if let Some(r) = place {
            fixed[*r] = leaf.sharding.clone();
        }
    }
    fixed.extend(found.then(|| Some(Sharding::replicated(mesh, 1))));
    fixed
}

fn join_with(results: &[&Val], shardings: &[Option<Sharding>]) -> String {
    let one = |(v, s): (&&Val, &Option<Sharding>)| match s {
        Some(s) => format!("{} {{{}}}", mlir_type(&v.ty), annotated(s)),
        None => mlir_type(&v.ty),
    };
    results.iter().zip(shardings).map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_travel_alone_until_there_are_far_more_of_them_than_of_data() {
        let of = |data: usize, scalars: usize| {
            let ty = Type::new(DType::F32, Shape::default());
            let leaves = std::iter::repeat_n((&ty, false), data).chain(std::iter::repeat_n((&ty, true), scalars));
            Params::lay_out(leaves).packs.iter().map(|(_, members)| members.len()).collect::<Vec<_>>()
        };
        assert_eq!(of(1, 3), [1, 1, 1]);
        assert_eq!(of(2, 2 + ALONE), vec![1; 2 + ALONE]);
        assert_eq!(of(2, 3 + ALONE), [3 + ALONE]);
    }
}
