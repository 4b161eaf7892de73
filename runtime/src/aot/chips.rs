//! What is published of each TPU generation, and how topologies are written.
use crate::{Error, Result};

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

/// A topology as libtpu wants it: `v5e` becomes `v5e:1x1`. Refuses what no libtpu would take, with the names there are.
pub(super) fn topology(text: &str) -> Result<String> {
    let text = text.trim().to_lowercase();
    let (name, layout) = text.split_once(':').unwrap_or((&text, "1x1"));
    let dims: Vec<&str> = layout.split('x').collect();
    let numbers = dims.iter().all(|d| d.parse::<u32>().is_ok_and(|n| (1..=1024).contains(&n)));
    if !CHIPS.iter().any(|c| c.name == name) || !numbers || !(2..=3).contains(&dims.len()) {
        let names = CHIPS.iter().map(|c| c.name).collect::<Vec<_>>().join(", ");
        let message = format!(
            "{text:?} is no TPU topology: write a chip and how many there are along each axis, such as v5e:2x2 or \
             v5p:2x2x1; the chips are {names}"
        );
        return Err(Error::Usage { message });
    }
    Ok(format!("{name}:{layout}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topologies_are_checked() {
        assert_eq!(topology("v5e").unwrap(), "v5e:1x1");
        assert_eq!(topology(" V5P:2x2x1").unwrap(), "v5p:2x2x1");
        assert_eq!(chip("v6e:2x2").unwrap().name, "v6e");
        for wrong in ["v9z:1x1", "v5e:", "v5e:2", "v5e:0x1", "v5e:2x2x2x2", "v5e:axb", ""] {
            assert!(topology(wrong).unwrap_err().to_string().contains("tpu7x"), "{wrong}");
        }
    }
}
