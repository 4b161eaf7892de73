//! The live PJRT session: one client, its executable cache, syncs and transfers. Only this module talks to `pjrt`.
mod cache;
mod client;
mod compile;
mod disk;
mod run;
mod transfer;
mod wait;

pub use cache::set_cache_capacity;
pub(crate) use cache::{Program, last_program, optimized_text, runs};
pub use client::{device_name, preload, probe};
pub(crate) use client::{opened, session};
pub(crate) use disk::settle as settle_disk;
pub(crate) use run::{Forecast, barrier, begin_cell, compiled, lowered, lowered_step, read, would};
pub(crate) use transfer::{download, upload};
pub(crate) use wait::wait;

use crate::op::Type;
use std::sync::atomic::{AtomicU64, Ordering};
use xlazy_pjrt::Buffer;

/// A value on the device.
#[derive(Debug)]
pub(crate) struct DeviceData {
    pub buffer: Buffer,
    pub ty: Type,
}

impl DeviceData {
    pub fn new(buffer: Buffer, ty: Type) -> DeviceData {
        crate::insight::metrics::CREATE_DATA_HANDLES.add(1);
        LIVE_BYTES.fetch_add(ty.bytes() as u64, Ordering::Relaxed);
        DeviceData { buffer, ty }
    }
}

impl Drop for DeviceData {
    fn drop(&mut self) {
        crate::insight::metrics::DESTROY_DATA_HANDLES.add(1);
        LIVE_BYTES.fetch_sub(self.ty.bytes() as u64, Ordering::Relaxed);
    }
}

/// Bytes of the values that are held.
static LIVE_BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes in use on the device: the plugin's count, or, where it has none, our own of the values that are held. 0 before
/// anything has run.
pub(crate) fn bytes_in_use() -> u64 {
    let count =
        |s: &'static client::Session| s.device.memory_stats().ok().flatten().map(|m| m.bytes_in_use.max(0) as u64);
    client::open_session().and_then(count).unwrap_or_else(|| LIVE_BYTES.load(Ordering::Relaxed))
}
