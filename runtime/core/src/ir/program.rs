//! A whole program: parameters, the steps in order, the results.
use super::cut::{Input, Step};
use super::op::OpDef;
use crate::emit::{Emit, Val, mlir_type};
use crate::precision::Precision;
use crate::text::Source;
use crate::ty::{DType, Shape, Type};
use foldhash::{HashSet, HashSetExt};
use std::fmt::Write;

/// How a program's leaves are laid out as its parameters: device data one by one, then the scalars of user code, packed
/// by dtype so that any number of them costs one small transfer each step.
pub struct Params {
    /// Leaf numbers of the device data, in parameter order.
    pub data: Vec<u32>,
    /// Leaf numbers of the scalars that travel in one buffer of this dtype.
    pub packs: Vec<(DType, Vec<u32>)>,
}

impl Params {
    /// `leaves` are the types of all leaves and whether each is a scalar.
    pub fn lay_out<'a>(leaves: impl Iterator<Item = (&'a Type, bool)>) -> Params {
        let mut data = Vec::new();
        let mut packs: Vec<(DType, Vec<u32>)> = Vec::new();
        for (i, (ty, scalar)) in leaves.enumerate() {
            if !scalar {
                data.push(i as u32);
                continue;
            }
            let dtype = ty.dtype.carrier();
            match packs.iter_mut().find(|(d, _)| *d == dtype) {
                Some((_, members)) => members.push(i as u32),
                None => packs.push((dtype, vec![i as u32])),
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

/// The StableHLO text of a cut, and where its parts are from.
pub fn program(
    steps: &[Step],
    leaves: &[LeafType],
    params: &Params,
    roots: &[u32],
    precision: Precision,
) -> (String, Vec<Mark>) {
    let mut e = Emit::new(precision);
    let mut leaf_values: Vec<Option<Val>> = vec![None; leaves.len()];
    let mut arguments = String::new();
    let places = places(steps, leaves, roots);
    for (n, &leaf) in params.data.iter().enumerate() {
        let ty = &leaves[leaf as usize].ty;
        let v = e.fresh(ty.clone());
        let _ = write!(arguments, "{}{v}: {}", if n > 0 { ", " } else { "" }, mlir_type(ty));
        if let Some(r) = places[leaf as usize] {
            let _ = write!(arguments, " {{tf.aliasing_output = {r} : i32}}");
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
    for step in steps {
        let from = e.text().len() as u32;
        let inputs: Vec<Val> = step
            .inputs
            .iter()
            .map(|i| match *i {
                Input::Leaf(l) => leaf_values[l as usize].clone().expect("every leaf is a parameter"),
                Input::Step(s) => values[s as usize].clone(),
            })
            .collect();
        values.push(step.op.write(&mut e, &inputs, &step.attrs, &step.ty));
        marks.push(Mark { from, to: e.text().len() as u32, op: step.op, at: step.at });
    }
    let results: Vec<&Val> = roots.iter().map(|&r| &values[r as usize]).collect();
    let join = |f: &dyn Fn(&Val) -> String| results.iter().map(|v| f(v)).collect::<Vec<_>>().join(", ");
    let (names, types) = (join(&|v| v.to_string()), join(&|v| mlir_type(&v.ty)));
    let mut text = format!("module @xlazy {{\n  func.func public @main({arguments}) -> ({types}) {{\n");
    for mark in &mut marks {
        mark.from += text.len() as u32;
        mark.to += text.len() as u32;
    }
    text.push_str(e.text());
    let _ = write!(text, "    return {names} : {types}\n  }}\n");
    e.functions().for_each(|f| text.extend(["  ", f.trim(), "\n"]));
    text.push_str("}\n");
    (text, marks)
}
