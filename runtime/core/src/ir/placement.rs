//! Where a value is: part of a node, of a cut and of its key.

/// Where a node's value is computed and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// On one of the client's devices, by its place among them.
    Device(u8),
    /// On none: it follows what it meets, and is computed on the first device otherwise.
    Anywhere,
}

impl Placement {
    /// The placement of what is made of operands placed so; operands on two devices are refused before that.
    pub fn meet(self, other: Placement) -> Placement {
        self.min(other)
    }

    /// The device that computes it.
    pub fn home(self) -> u8 {
        match self {
            Placement::Device(d) => d,
            Placement::Anywhere => 0,
        }
    }

    /// Computed on the first device, as everything is where there is only one.
    pub fn is_default(self) -> bool {
        self.home() == 0
    }

    /// As it stands in a key: it fits above a byte.
    pub fn word(self) -> u64 {
        u64::from(self.home())
    }
}
