//! The very same program had been compiled and was evicted from the cache.
use super::claim::{Claim, Fix};
use crate::insight::log::ran_since;
use crate::insight::record::{Record, same_place};
use crate::insight::report::{Class, Difference, Place};
use std::sync::Arc;
use xlazy_core::text::insert_before;
use xlazy_core::ty::Type;
use xlazy_mime::count;

pub(super) fn claim(new: &Record, same: &Record, known: &[Arc<Record>]) -> Claim {
    let difference = Difference {
        what: "program".into(),
        was: format!("compilation {}", same.number),
        now: "the same, compiled again".into(),
        was_at: Some(same.site),
        now_at: Some(new.site),
    };
    // The same work on data of another size.
    let parameters =
        |r: &'_ Record| -> Vec<Type> { r.leaves.iter().filter(|l| l.parameter).map(|l| l.ty.clone()).collect() };
    let padded = known.iter().any(|r| {
        let sized = r.hash != new.hash && same_place(r.site, new.site) && r.same_ops(new);
        sized && parameters(r) == parameters(new) && !r.same_inputs(new)
    });
    // Before it was compiled for the first time.
    let first = known.iter().find(|r| r.hash == new.hash).and_then(|r| r.statement);
    let fix = fix(new, ran_since(new.hash) + 1, padded, first);
    Claim::new(vec![], Class::Eviction, new.site, vec![difference], fix)
}

/// `needed` programs ran in turn, this one among them, since the cell came to `first`; `padded` may be one.
fn fix(new: &Record, needed: usize, padded: bool, first: Option<Place>) -> Fix {
    let pad = if padded { ", or pad the inputs to one shape so that one program serves" } else { "" };
    match needed > new.room.programs {
        true => Fix::from(format!(
            "the cache holds {}, and {needed} ran in turn: `insight::set_cache_capacity({needed})` (or \
             XLAZY_COMPILATION_CACHE_SIZE) keeps them all{pad}",
            new.room.capacity
        ))
        .code(first.and_then(|s| insert_before(s, &format!("insight::set_cache_capacity({needed});")))),
        false => format!(
            "the cache holds {}, enough for the {} that ran in turn unless their code is larger (XLAZY_CACHE_BYTES){pad}",
            new.room.capacity,
            count(needed, "program")
        )
        .into(),
    }
}
