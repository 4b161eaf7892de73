//! The same program for another device.
use super::claim::Claim;
use crate::insight::record::Record;
use crate::insight::report::{Class, Difference};
use xlazy_core::device::name_of;

pub(super) fn claim(new: &Record, same: &Record) -> Claim {
    let difference = Difference {
        what: "device".into(),
        was: name_of(same.device).into(),
        now: name_of(new.device).into(),
        was_at: Some(same.site),
        now_at: Some(new.site),
    };
    let fix = "expected once for each device that runs it";
    Claim::new(vec![], Class::Device, new.site, vec![difference], fix)
}
