//! Healing: attributes that keep changing become parameters, so that a value can cause two compilations and no more.
use super::attr::Attr;
use super::op::{Healed, OpDef};
use crate::text::Somewhere;
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

    /// The healed form of an op, if it and its line have one.
    pub fn of(&self, op: &OpDef, attrs: &[Attr], at: &Location) -> Option<Healed> {
        if op.heal.is_none() || !self.sites.contains(&site(op, at)) {
            return None;
        }
        healed(op, attrs)
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

/// The form of an op that takes an attribute as an operand. It is the op's code, and asked for while the graph is held: an op
/// where it panics is not healed.
pub(super) fn healed(op: &OpDef, attrs: &[Attr]) -> Option<Healed> {
    let heal = op.heal?;
    catch_unwind(|| heal(attrs)).ok().flatten()
}

/// A line and an op as one number; lines of a cell that is run again are the same line.
fn site(op: &OpDef, at: &impl Somewhere) -> u64 {
    let (line, column) = at.point();
    let line = u64::from(line) << 32 | u64::from(column);
    xxhash_rust::xxh3::xxh3_64_with_seed(at.file().as_bytes(), line ^ (op.id as u64).rotate_left(17))
}
