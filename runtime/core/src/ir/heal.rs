//! Healing: attributes that keep changing become parameters, so that a value can cause two compilations and no more.
use super::attr::Attr;
use super::body::{Bodies, Body};
use super::input::Input;
use super::op::{Healed, OpDef};
use crate::text::Somewhere;
use crate::ty::{DType, TypeRef};
use std::collections::HashSet;
use std::panic::{Location, catch_unwind};

/// Which ops, by the line that traced them, have their changing attribute lifted.
#[derive(Default)]
pub struct Healing {
    sites: HashSet<u64>,
    off: bool,
}

impl Healing {
    /// Nothing to look for: the common case costs one comparison per node.
    pub fn is_idle(&self) -> bool {
        self.off || self.sites.is_empty()
    }

    /// The healed form of an op that gives this type, if it and its line have one, or ops in its bodies have.
    pub fn of(&self, op: &'static OpDef, attrs: &[Attr], ty: TypeRef, at: &Location) -> Option<Form> {
        if let Some(h) = self.one(op, attrs, at) {
            return Some(Form { op: h.op, attrs: h.attrs, values: vec![(h.value, ty.dtype)] });
        }
        let k = Bodies::place(attrs)?;
        let mut values = Vec::new();
        let bodies = self.bodies(Bodies::of(&attrs[k]), &mut values)?;
        let mut attrs: Box<[Attr]> = attrs.into();
        attrs[k] = bodies.attr();
        Some(Form { op, attrs, values })
    }

    fn one(&self, op: &OpDef, attrs: &[Attr], at: &impl Somewhere) -> Option<Healed> {
        if op.heal.is_none() || !self.sites.contains(&site(op, at)) {
            return None;
        }
        healed(op, attrs)
    }

    /// Bodies with ops in their healed forms: what these take is taken from outside, behind all else.
    fn bodies(&self, of: &Bodies, values: &mut Vec<(Attr, DType)>) -> Option<Bodies> {
        let before = values.len();
        let mut new: Option<Bodies> = None;
        for (b, body) in of.all.iter().enumerate() {
            let leaf = |k: usize| Input::Leaf((body.arguments.len() + of.captured + k - before) as u32);
            for (s, step) in body.steps.iter().enumerate() {
                let first = values.len();
                let form = match self.one(step.op, &step.attrs, step.at) {
                    Some(h) => {
                        values.push((h.value, step.ty.dtype));
                        Some((h.op, h.attrs))
                    }
                    None => Bodies::place(&step.attrs).and_then(|k| {
                        let inner = self.bodies(Bodies::of(&step.attrs[k]), values)?;
                        let mut attrs = step.attrs.clone();
                        attrs[k] = inner.attr();
                        Some((step.op, attrs))
                    }),
                };
                let Some((op, attrs)) = form else { continue };
                let step = &mut new.get_or_insert_with(|| of.clone()).all[b].steps[s];
                (step.op, step.attrs) = (op, attrs);
                step.inputs.extend((first..values.len()).map(leaf));
            }
        }
        let mut new = new?;
        let lifted = values.len() - before;
        new.captured += lifted;
        // They come from the host, which knows them.
        let known = |body: &mut Body| {
            body.numbers.resize(of.captured, false);
            body.numbers.extend(std::iter::repeat_n(true, lifted));
        };
        new.all.iter_mut().for_each(known);
        Some(new)
    }

    /// From now on the op of this line is healed; false where it was already, or healing is off.
    pub fn add(&mut self, op: &OpDef, at: &impl Somewhere) -> bool {
        !self.off && self.sites.insert(site(op, at))
    }

    /// Forgets what was healed.
    pub fn forget(&mut self) {
        self.sites.clear();
    }

    /// Turns healing on or off; off also for what was healed before.
    pub fn set(&mut self, on: bool) {
        self.off = !on;
    }

    pub fn is_on(&self) -> bool {
        !self.off
    }
}

/// An op whose attribute, or those of ops in its bodies, are operands: its last ones.
pub struct Form {
    pub op: &'static OpDef,
    pub attrs: Box<[Attr]>,
    /// Their values, and the dtype of what is computed of each.
    pub values: Vec<(Attr, DType)>,
}

/// The form of an op that takes an attribute as an operand. It is the op's code, and asked for while the graph is held: an op
/// where it panics is not healed.
fn healed(op: &OpDef, attrs: &[Attr]) -> Option<Healed> {
    let heal = op.heal?;
    catch_unwind(|| heal(attrs)).ok().flatten()
}

/// A line and an op as one number; lines of a cell that is run again are the same line.
fn site(op: &OpDef, at: &impl Somewhere) -> u64 {
    let (line, column) = at.point();
    let line = u64::from(line) << 32 | u64::from(column);
    xxhash_rust::xxh3::xxh3_64_with_seed(at.file().as_bytes(), line ^ (op.id as u64).rotate_left(17))
}
