//! What is published of each TPU generation.

/// One generation, with the figures of what libtpu calls a device: a whole chip, or one of its two cores.
#[derive(Debug, PartialEq)]
pub(super) struct Chip {
    /// As in a topology's name.
    pub name: &'static str,
    /// Clock of the core in hertz, to turn cycles into time. Google publishes peak rates and not clocks; these follow from
    /// the peak rates and the sizes of the matrix units.
    pub clock: f64,
    /// Peak bf16 operations per second.
    pub flops: f64,
    /// Bytes per second to and from HBM.
    pub bandwidth: f64,
}

pub(super) const CHIPS: &[Chip] = &[
    Chip { name: "v2", clock: 0.70e9, flops: 22.5e12, bandwidth: 350e9 },
    Chip { name: "v3", clock: 0.94e9, flops: 61.5e12, bandwidth: 450e9 },
    Chip { name: "v4", clock: 1.05e9, flops: 137.5e12, bandwidth: 614e9 },
    Chip { name: "v5e", clock: 1.50e9, flops: 197e12, bandwidth: 819e9 },
    Chip { name: "v5p", clock: 1.75e9, flops: 459e12, bandwidth: 2765e9 },
    Chip { name: "v6e", clock: 1.75e9, flops: 918e12, bandwidth: 1638e9 },
    Chip { name: "tpu7x", clock: 1.90e9, flops: 1153e12, bandwidth: 3690e9 },
];

/// The generation that a topology is of.
pub(super) fn chip(topology: &str) -> Option<&'static Chip> {
    let name = topology.split(':').next().unwrap_or_default();
    CHIPS.iter().find(|c| c.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_are_known_by_their_topologies() {
        assert_eq!(chip("v6e:2x2").unwrap().name, "v6e");
        assert_eq!(chip("v9z:1x1"), None);
    }
}
