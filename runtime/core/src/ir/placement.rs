//! Where a value is: part of a node, of a cut and of its key.
use crate::mesh::{self, Mesh};
use crate::thread::rank;

/// Where a node's value is computed and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// On one of the client's devices, by its place among them; or on the mesh that the number stands for.
    Device(u8),
    /// On none: it follows what it meets, and is computed on the first device otherwise.
    Anywhere,
}

impl Placement {
    /// The placement of what is made of operands placed so, which are [`Placement::together`]. What is on the first device
    /// goes to all devices of the mesh that it meets.
    pub fn meet(self, other: Placement) -> Placement {
        match (self, other) {
            (Placement::Device(a), Placement::Device(b)) => Placement::Device(a.max(b)),
            (Placement::Anywhere, one) | (one, Placement::Anywhere) => one,
        }
    }

    /// Whether an op takes operands that are placed so. Data of the host's come to the first device, and go from there to
    /// any mesh.
    pub fn together(self, other: Placement) -> bool {
        match (self, other) {
            (Placement::Device(a), Placement::Device(b)) => a == b || a.min(b) == 0 && a.max(b) >= mesh::FIRST,
            _ => true,
        }
    }

    /// Where data of the host's come to: the first device, or that of the rank which this thread is.
    pub fn here() -> Placement {
        Placement::Device(rank().map_or(0, |rank| rank.device))
    }

    /// The device that computes it, or the number of the mesh.
    pub fn home(self) -> u8 {
        match self {
            Placement::Device(d) => d,
            Placement::Anywhere => 0,
        }
    }

    /// The mesh that computes it.
    pub fn mesh(self) -> Option<Mesh> {
        Mesh::at(self.home())
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
