//! A tensor came with another dtype.
use super::claim::{Claim, Fix};
use crate::insight::evidence::{Evidence, words};
use crate::insight::record::{LeafRecord, Record};
use crate::insight::report::{Class, Place};
use std::sync::Arc;
use xlazy_core::text::{append, called, location};
use xlazy_core::ty::DType;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let one =
        |&(_, new, old): &(usize, &LeafRecord, &LeafRecord)| !new.scalar && !old.scalar && new.ty.dtype != old.ty.dtype;
    let all: Vec<(usize, &LeafRecord, &LeafRecord)> = e.inputs().filter(one).collect();
    let &(_, new, old) = all.first()?;
    let mut fix = fix(e.new.session, new, old, e.known);
    if new.ty.shape != old.ty.shape {
        let seen = super::shape::Seen::of(e.new, new, e.known);
        let shape = super::shape::fix(e, &old.ty, &new.ty, &seen, Some(new));
        fix = Fix::from(format!("{}. The shape differs, too: {}", fix.say, shape.say));
    }
    let differences = all.iter().map(|(_, n, o)| words::input(n, o)).collect();
    Some(Claim::new(all.iter().map(|a| a.0).collect(), Class::Dtype, new.at, differences, fix))
}

fn fix(ours: bool, new: &LeafRecord, old: &LeafRecord, known: &[Arc<Record>]) -> Fix {
    // A copy of a result (`detach`) has its line.
    let computed = |l: &LeafRecord| l.computed || known.iter().any(|r| r.lines.has(l.line));
    let made = |l: &LeafRecord| Made { dtype: l.ty.dtype, at: l.at, computed: computed(l) };
    let odd = [old, new].into_iter().find(|l| l.ty.dtype != both(old.ty.dtype, new.ty.dtype)).filter(|l| l.computed);
    // The op is what the expression there gives.
    let own = |l: &&LeafRecord| called(l.at).is_none_or(|name| name == l.made_by.torch_name());
    let convert = |l: &LeafRecord| append(l.at, &format!(".to({:?})", both(old.ty.dtype, new.ty.dtype)));
    Fix::from(wider(ours, &made(old), &made(new))).code(odd.filter(own).and_then(convert))
}

/// The dtype that all steps are to take. Broken numbers are doubled by accident more often than on purpose.
fn both(was: DType, now: DType) -> DType {
    if (was, now) == (DType::F32, DType::F64) { was } else { was.promote(now) }
}

/// An input, and whether an op made it or it is data of the host's.
struct Made {
    dtype: DType,
    at: Place,
    computed: bool,
}

/// Data come as one dtype in every step: the one that holds the values of both. A conversion would be a program, too.
fn wider(ours: bool, was: &Made, now: &Made) -> String {
    let promoted = was.dtype.promote(now.dtype);
    let both = both(was.dtype, now.dtype);
    let narrower = if both == was.dtype { now.dtype } else { was.dtype };
    let holds = match promoted == both {
        true => format!(": {} holds what {} does, not the other way round", both.name(), narrower.name()),
        false => String::new(),
    };
    if was.computed || now.computed {
        let one = |made: &Made| match made.computed {
            true if ours => {
                format!("convert what is computed at {} (`.to({both:?})`, in that line)", location(made.at))
            }
            true => format!("convert what is computed at {}, in that line", location(made.at)),
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
    let with = if ours { format!("With `.to({both:?})` convert") } else { "Convert".to_owned() };
    format!("make {which}{holds}. {with} once, before the loop: within the step it is another program for each dtype")
}
