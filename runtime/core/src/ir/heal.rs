//! Healing: attributes that keep changing become parameters, so that a value can cause two compilations and no more.
use super::op::{Attr, Healed, OpDef};
use std::collections::HashSet;
use std::panic::Location;

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
        let heal = op.heal?;
        if !self.sites.contains(&site(op, at)) {
            return None;
        }
        heal(attrs)
    }

    /// From now on the op of this line is healed; false where it was already, or healing is off.
    pub fn add(&mut self, op: &OpDef, at: &Location) -> bool {
        !self.off && self.sites.insert(site(op, at))
    }

    /// Turns healing on or off; off also for what was healed before.
    pub fn set(&mut self, on: bool) {
        self.off = !on;
    }

    pub fn is_on(&self) -> bool {
        !self.off
    }
}

/// A line and an op as one number; lines of a cell that is run again are the same line.
fn site(op: &OpDef, at: &Location) -> u64 {
    let line = (at.line() as u64) << 32 | at.column() as u64;
    xxhash_rust::xxh3::xxh3_64_with_seed(at.file().as_bytes(), line ^ (op.id as u64).rotate_left(17))
}
