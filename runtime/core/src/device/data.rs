//! Values on a device.
use super::client::{OpenClient, client, client_if_open};
use super::flight::watch;
use crate::Result;
use crate::ty::TypeRef;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use xlazy_pjrt::Buffer;

/// A value on the device.
#[derive(Debug)]
pub struct DeviceData {
    /// None in dry mode alone, where it is a placeholder.
    pub buffer: Option<Buffer>,
    pub ty: TypeRef,
    /// Which of the client's devices holds it.
    pub device: u8,
    /// The least and the greatest of integers that the host sent, as far as positions are made of such.
    pub range: Option<(i64, i64)>,
    /// A program made it; it is no data of the host's.
    pub computed: bool,
    /// Copies on other devices, where it was used there without having been moved.
    elsewhere: OnceLock<Box<Mutex<Vec<Arc<DeviceData>>>>>,
}

impl DeviceData {
    pub fn new(buffer: impl Into<Option<Buffer>>, ty: impl Into<TypeRef>, device: u8) -> DeviceData {
        let ty = ty.into();
        crate::metrics::CREATE_DATA_HANDLES.add(1);
        LIVE_BYTES.fetch_add(ty.bytes() as u64, Ordering::Relaxed);
        DeviceData { buffer: buffer.into(), ty, device, range: None, computed: false, elsewhere: OnceLock::new() }
    }

    /// The result of a program.
    pub fn computed(buffer: impl Into<Option<Buffer>>, ty: impl Into<TypeRef>, device: u8) -> DeviceData {
        let mut data = DeviceData::new(buffer, ty, device);
        data.computed = true;
        data
    }

    /// A copy of its own on another device, which no program has to make.
    pub fn copied_to(&self, device: u8) -> Result<Arc<DeviceData>> {
        let copy = |buffer: &Buffer| -> Result<Buffer> {
            let copy = buffer.copy_to_device(&client()?.devices[device as usize])?;
            watch(&copy)?;
            Ok(copy)
        };
        let buffer = self.buffer.as_ref().map(copy).transpose()?;
        Ok(Arc::new(DeviceData::new(buffer, self.ty, device)))
    }

    /// The copy on another device that all who use it there share; it goes with the value.
    pub fn shared_on(&self, device: u8) -> Result<Arc<DeviceData>> {
        let mut copies = self.elsewhere.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(copy) = copies.iter().find(|c| c.device == device) {
            return Ok(copy.clone());
        }
        let copy = self.copied_to(device)?;
        copies.push(copy.clone());
        Ok(copy)
    }
}

impl Drop for DeviceData {
    fn drop(&mut self) {
        crate::metrics::DESTROY_DATA_HANDLES.add(1);
        LIVE_BYTES.fetch_sub(self.ty.bytes() as u64, Ordering::Relaxed);
    }
}

/// Bytes of the values that are held.
static LIVE_BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes in use on all devices: the plugin's count, or, where it has none, our own of the values that are held. 0 before
/// anything has run.
pub fn bytes_in_use() -> u64 {
    let one = |d: &xlazy_pjrt::Device| d.memory_stats().ok().flatten().map(|m| m.bytes_in_use.max(0) as u64);
    let count = |c: &'static OpenClient| c.devices.iter().map(one).sum();
    client_if_open().and_then(count).unwrap_or_else(|| LIVE_BYTES.load(Ordering::Relaxed))
}
