//! The platforms xlazy runs on: where each one's PJRT plugin is, its options and its quirks. One file per platform.
mod cpu;
mod cuda;
mod plugin;
mod tpu;
mod unfold;

use crate::{Error, Result};

pub use cpu::{CPU, CPU_OF_SEVERAL};
pub use cuda::{CUDA, places as cuda_places};
pub use plugin::Platform;
pub use tpu::{NO_HARDWARE, TPU, places as tpu_places};

/// All platforms.
pub static PLATFORMS: &[&Platform] = &[&CPU, &TPU, &CUDA];

impl Platform {
    /// The platform that `PJRT_DEVICE` names; the CPU where it is not set.
    pub fn chosen() -> Result<&'static Platform> {
        let name = std::env::var("PJRT_DEVICE").unwrap_or_else(|_| "CPU".into());
        PLATFORMS.iter().copied().find(|p| p.name.eq_ignore_ascii_case(&name)).ok_or_else(|| Error::Usage {
            message: format!(
                "PJRT_DEVICE is {name:?}, which is no platform of xlazy: expected one of {}",
                PLATFORMS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
            ),
        })
    }
}
