//! Options of the compiler changed.
use super::claim::Claim;
use crate::insight::evidence::{Evidence, What};
use crate::insight::report::{Class, Difference};
use xlazy_core::text::Source;

pub(super) fn claim(e: &Evidence) -> Option<Claim> {
    let covers = e.numbered(|what| matches!(what, What::Precision));
    if covers.is_empty() {
        return None;
    }
    let at = xlazy_core::precision::set_at().map_or(e.new.site, Source::of);
    let difference = Difference {
        what: "the precision of matrix products".into(),
        was: e.old.precision.name().into(),
        now: e.new.precision.name().into(),
        was_at: None,
        now_at: Some(at),
    };
    let fix = "set it once, before the first step: every program is compiled anew for it";
    Some(Claim::new(covers, Class::Environment, at, vec![difference], fix))
}
