//! The live PJRT session: one client, its executable cache, syncs and transfers. Only this module talks to `pjrt`.
mod cache;
mod client;
mod compile;
mod run;
mod transfer;
mod wait;

pub use cache::set_cache_capacity;
pub(crate) use cache::{Program, last_program, optimized_text};
pub use client::{device_name, preload, probe};
pub(crate) use client::{opened, session};
pub(crate) use run::{barrier, begin_cell, compiled, lowered, lowered_step, read, would};
pub(crate) use transfer::{download, upload};
pub(crate) use wait::wait;

use crate::op::Type;
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
        DeviceData { buffer, ty }
    }
}

impl Drop for DeviceData {
    fn drop(&mut self) {
        crate::insight::metrics::DESTROY_DATA_HANDLES.add(1);
    }
}
