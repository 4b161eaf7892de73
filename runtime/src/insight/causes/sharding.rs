//! Data lie on the devices in another way: split over other axes, over another mesh, or whole on each.
use super::claim::Claim;
use crate::insight::evidence::{Evidence, words};
use crate::insight::record::{LeafRecord, Record};
use crate::insight::report::{Class, Difference};
use xlazy_core::device::name_of;
use xlazy_core::ir::Role;
use xlazy_core::text::location;

const ONCE: &str = "expected once for each mesh, and for a single device";

/// Two programs that are the same but for where their data are.
pub(super) fn all_but_placed(new: &Record, same: &Record) -> Claim {
    let mut differences: Vec<Difference> = differing(new.leaves.iter().zip(&same.leaves));
    if new.device != same.device {
        differences.insert(0, devices(new, same));
    }
    let at = differences.iter().find_map(|d| d.now_at).unwrap_or(new.site);
    let moved = new.device != same.device;
    let split = new.leaves.iter().zip(&same.leaves).find(|(n, o)| n.sharding != o.sharding && !moved);
    let fix = split.map_or_else(|| ONCE.to_owned(), |(n, o)| fix(n, o));
    let warm_up = warms_up(new.leaves.iter().zip(&same.leaves));
    Claim { warm_up, ..Claim::new(vec![], Class::Sharding, at, differences, fix) }
}

/// A program on a mesh, compared with one that ran elsewhere, of which everything else is explained.
pub(super) fn placed(new: &Record, old: &Record) -> Claim {
    Claim::new(vec![], Class::Sharding, new.site, vec![devices(new, old)], ONCE)
}

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let of_inputs: Vec<(usize, &LeafRecord, &LeafRecord)> =
        e.inputs().filter(|(_, n, o)| n.ty == o.ty && n.scalar == o.scalar && n.sharding != o.sharding).collect();
    let marked = |&&p: &&(u32, u32)| {
        let (a, b) = e.pair(p);
        let pairs = a.op.attrs.iter().zip(a.attrs.iter().zip(b.attrs.iter()));
        a.op.id == b.op.id && pairs.into_iter().any(|(def, (x, y))| def.role == Role::Sharding && x != y)
    };
    let of_ops: Vec<(usize, (u32, u32))> =
        e.attrs().filter_map(|(r, pairs)| Some((r, *pairs.iter().find(marked)?))).collect();
    let covers: Vec<usize> = of_inputs.iter().map(|i| i.0).chain(of_ops.iter().map(|o| o.0)).collect();
    let mut differences = differing(of_inputs.iter().map(|&(_, n, o)| (n, o)));
    differences.extend(of_ops.iter().filter_map(|&(_, p)| words::attribute(e, p)));
    let at = differences.first()?.now_at.unwrap_or(e.new.site);
    let moved = e.new.device != e.old.device;
    if moved {
        differences.insert(0, devices(e.new, e.old));
    }
    let fix = match of_inputs.first() {
        _ if moved => ONCE.to_owned(),
        Some((_, new, old)) => fix(new, old),
        None => "one way in every step: a spec that changes is a program for each of its values".to_owned(),
    };
    let warm_up = warms_up(of_inputs.iter().map(|&(_, n, o)| (n, o)));
    Some(Claim { warm_up, ..Claim::new(covers, Class::Sharding, at, differences, fix) })
}

fn devices(new: &Record, old: &Record) -> Difference {
    Difference {
        what: "mesh".into(),
        was: name_of(old.device).into(),
        now: name_of(new.device).into(),
        was_at: Some(old.site),
        now_at: Some(new.site),
    }
}

fn differing<'a>(leaves: impl Iterator<Item = (&'a LeafRecord, &'a LeafRecord)>) -> Vec<Difference> {
    let one = |(n, o): (&LeafRecord, &LeafRecord)| Difference {
        what: format!("sharding of {}", n.name.as_ref().map_or("an input".to_owned(), |name| format!("`{name}`"))),
        was: says(o),
        now: says(n),
        was_at: Some(o.at),
        now_at: Some(n.at),
    };
    leaves.filter(|(n, o)| n.sharding != o.sharding).map(one).collect()
}

fn says(leaf: &LeafRecord) -> String {
    leaf.sharding.as_ref().map_or("whole on every device".to_owned(), |s| format!("{s} of {}", s.mesh()))
}

/// The second step takes up what the first one made, as XLA laid it.
fn warms_up<'a>(mut leaves: impl Iterator<Item = (&'a LeafRecord, &'a LeafRecord)>) -> bool {
    leaves.any(|(n, o)| n.sharding != o.sharding && steps_on(n, o))
}

/// A step made the new one of the old one.
fn steps_on(new: &LeafRecord, old: &LeafRecord) -> bool {
    new.computed && new.lineage == old.lineage && new.seq != old.seq
}

fn fix(new: &LeafRecord, old: &LeafRecord) -> String {
    if steps_on(new, old) {
        return format!(
            "what a step gives lies as XLA chose: say how with `mark_sharding` before the first step, at {}",
            location(old.at)
        );
    }
    let to = if old.sharding.is_some() { old } else { new };
    format!("give it one sharding in every step: {} at {}", says(to), location(to.at))
}
