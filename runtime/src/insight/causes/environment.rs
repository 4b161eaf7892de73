//! Options of the compiler changed.
use super::claim::Claim;
use crate::insight::evidence::{Evidence, What};
use crate::insight::report::{Class, Difference};
use xlazy_core::options::{numbers_set_at, precision_set_at};
use xlazy_core::text::Source;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let covers = e.numbered(|what| matches!(what, What::Options));
    if covers.is_empty() {
        return None;
    }
    let (new, old) = (e.new.options, e.old.options);
    let (what, was, now, at, fix) = match new.precision != old.precision {
        true => (
            "the precision of matrix products",
            old.precision.name(),
            new.precision.name(),
            precision_set_at(),
            "set it once, before the first step: every program is compiled anew for it",
        ),
        false => (
            "what results are looked through for",
            old.numbers.name(),
            new.numbers.name(),
            numbers_set_at(),
            "expected once for each program: those that look for numbers stand beside those that do not, and both stay in the cache",
        ),
    };
    let at = at.map_or(e.new.site, Source::of);
    let difference = Difference { what: what.into(), was: was.into(), now: now.into(), was_at: None, now_at: Some(at) };
    Some(Claim::new(covers, Class::Environment, at, vec![difference], fix.to_owned()))
}
