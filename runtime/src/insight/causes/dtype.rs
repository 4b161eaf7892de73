//! A tensor came with another dtype.
use super::claim::Claim;
use crate::insight::evidence::{Evidence, words};
use crate::insight::record::{LeafRecord, Record};
use crate::insight::report::{Class, Place};
use std::sync::Arc;
use xlazy_core::text::location;
use xlazy_core::ty::DType;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let one =
        |&(_, new, old): &(usize, &LeafRecord, &LeafRecord)| !new.scalar && !old.scalar && new.ty.dtype != old.ty.dtype;
    let all: Vec<(usize, &LeafRecord, &LeafRecord)> = e.inputs().filter(one).collect();
    let &(_, new, old) = all.first()?;
    let mut fix = fix(new, old, e.known);
    if new.ty.shape != old.ty.shape {
        let seen = super::shape::Seen::of(e.new, new, e.known);
        fix += &format!(". The shape differs, too: {}", super::shape::fix(e, &old.ty, &new.ty, &seen, Some(new)));
    }
    let differences = all.iter().map(|(_, n, o)| words::input(n, o)).collect();
    Some(Claim::new(all.iter().map(|a| a.0).collect(), Class::Dtype, new.at, differences, fix))
}

fn fix(new: &LeafRecord, old: &LeafRecord, known: &[Arc<Record>]) -> String {
    // A copy of a result (`detach`) has its line.
    let computed = |l: &LeafRecord| l.computed || known.iter().any(|r| r.lines.contains(&l.line));
    let made = |l: &LeafRecord| Made { dtype: l.ty.dtype, at: l.at, computed: computed(l) };
    wider(&made(old), &made(new))
}

/// An input, and whether an op made it or it is data of the host's.
struct Made {
    dtype: DType,
    at: Place,
    computed: bool,
}

/// Data come as one dtype in every step: the one that holds the values of both. A conversion would be a program, too.
fn wider(was: &Made, now: &Made) -> String {
    let promoted = was.dtype.promote(now.dtype);
    // Broken numbers are doubled by accident more often than on purpose.
    let both = if (was.dtype, now.dtype) == (DType::F32, DType::F64) { was.dtype } else { promoted };
    let narrower = if both == was.dtype { now.dtype } else { was.dtype };
    let holds = match promoted == both {
        true => format!(": {} holds what {} does, not the other way round", both.name(), narrower.name()),
        false => String::new(),
    };
    if was.computed || now.computed {
        let one = |made: &Made| match made.computed {
            true => format!("convert what is computed at {} (`.to({both:?})`, in that line)", location(made.at)),
            false => format!("make the data {} before they become a tensor at {}", both.name(), location(made.at)),
        };
        let which = match (both == was.dtype, both == now.dtype) {
            (true, _) => one(now),
            (_, true) => one(was),
            _ => format!("{}, and {}", one(was), one(now)),
        };
        return format!("{which}, so that every step takes {}{holds}", both.name());
    }
    let at = |at: Place| format!("become a tensor at {}", location(at));
    let which = match (both == was.dtype, both == now.dtype) {
        (true, _) => format!("the data {} before they {}", both.name(), at(now.at)),
        (_, true) => format!("the data {} before they {}, too", both.name(), at(was.at)),
        _ if was.at == now.at => format!("both {} before they {}", both.name(), at(now.at)),
        _ => format!(
            "both {}, which holds the values of {} and {}, where the data come in",
            both.name(),
            was.dtype.name(),
            now.dtype.name()
        ),
    };
    format!(
        "make {which}{holds}. With `.to({both:?})` convert once, before the loop: within the step it is another program for each \
         dtype"
    )
}
