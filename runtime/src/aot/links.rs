//! What the devices of a slice tell one another.
use super::hlo::Module;
use super::report::{Moved, Source};
use crate::display::rates;
use crate::display::transfers::{Transfer, transfers};

/// The collectives of a compiled program, with an estimate where a rate is published.
pub(super) fn moved(format: &str, proto: &[u8], module: Option<&Module>, topology: &str, devices: u64) -> Vec<Moved> {
    let of_name = |name: &str| {
        let all = module.iter().flat_map(|m| m.computations.values()).flat_map(|c| &c.instructions);
        let i = { all }.find(|i| i.name == name)?;
        Some(Source { op: i.op.clone(), at: i.at.clone() }).filter(|s| !s.op.is_empty() || !s.at.is_empty())
    };
    let generation = topology.split(':').next().unwrap_or_default();
    let one = |t: Transfer| Moved {
        seconds: rates::seconds(&t, generation, devices),
        sources: of_name(&t.name).into_iter().collect(),
        kind: t.kind,
        shape: t.shape,
        bytes: t.bytes,
        groups: t.groups,
        algorithm: t.algorithm,
        is_async: t.is_async,
        between_slices: t.between_slices,
    };
    transfers(format, proto).into_iter().map(one).collect()
}
