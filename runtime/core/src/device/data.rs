//! Values on a device, or in parts on those of a mesh.
use super::client::{OpenClient, client, client_if_open};
use super::flight::watch;
use crate::Result;
use crate::mesh::{Mesh, Sharding};
use crate::pod::{Buffer, Device};
use crate::ty::{Shape, Type, TypeRef};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// A value on the device.
#[derive(Debug)]
pub struct DeviceData {
    /// On a mesh the part on its first device. None in dry mode alone, where it is a placeholder.
    pub buffer: Option<Buffer>,
    pub ty: TypeRef,
    /// Which of the client's devices holds it, or the number that stands for a mesh.
    pub device: u8,
    /// Of a value on a mesh.
    pub shards: Option<Box<Shards>>,
    /// The least and the greatest of integers that the host sent, as far as positions are made of such.
    pub range: Option<(i64, i64)>,
    /// A program made it; it is no data of the host's.
    pub computed: bool,
    /// Copies on other devices, where it was used there without having been moved.
    pub(super) elsewhere: OnceLock<Box<Mutex<Vec<Arc<DeviceData>>>>>,
}

/// How a value lies on a mesh, and what its devices hold of it.
#[derive(Debug)]
pub struct Shards {
    pub sharding: Sharding,
    /// The parts on all devices but the first.
    others: Vec<Buffer>,
}

impl DeviceData {
    pub fn new(buffer: impl Into<Option<Buffer>>, ty: impl Into<TypeRef>, device: u8) -> DeviceData {
        let (buffer, ty) = (buffer.into(), ty.into());
        crate::metrics::CREATE_DATA_HANDLES.add(1);
        LIVE_BYTES.fetch_add(ty.bytes() as u64, Ordering::Relaxed);
        DeviceData { buffer, ty, device, shards: None, range: None, computed: false, elsewhere: OnceLock::new() }
    }

    /// A value on a mesh: a buffer for each of its devices; none in dry mode.
    pub fn on_mesh(buffers: Vec<Buffer>, ty: impl Into<TypeRef>, sharding: Sharding) -> DeviceData {
        let mut others = buffers.into_iter();
        let mut data = DeviceData::new(others.next(), ty, sharding.mesh().place());
        let more = data.held_bytes(&sharding) as i64 - data.ty.bytes() as i64;
        LIVE_BYTES.fetch_add(more as u64, Ordering::Relaxed);
        data.shards = Some(Box::new(Shards { sharding, others: others.collect() }));
        data
    }

    /// What all devices of a mesh hold of it together.
    fn held_bytes(&self, sharding: &Sharding) -> usize {
        sharding.shard_shape(&self.ty.shape).numel() * self.ty.dtype.size() * sharding.mesh().size()
    }

    /// How it lies on this mesh; on all of its devices where it is somewhere else and is to be copied there.
    pub fn sharding_on(&self, mesh: Mesh) -> Sharding {
        match &self.shards {
            Some(s) if s.sharding.mesh() == mesh => s.sharding.clone(),
            _ => Sharding::replicated(mesh, self.ty.shape.len()),
        }
    }

    /// A copy of what one device of a mesh holds of a value of this type, as a value of that device.
    pub fn part(buffer: &Buffer, of: TypeRef, block: &Shape, device: u8) -> Result<DeviceData> {
        let copy = buffer.copy_to_device(&client()?.devices[device as usize])?;
        watch(&copy)?;
        Ok(DeviceData::new(copy, Type::new(of.dtype, block.clone()), device))
    }

    /// The buffers that hold it: one, or one for each device of a mesh by position.
    pub fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        self.buffer.iter().chain(self.shards.iter().flat_map(|s| &s.others))
    }

    /// The result of a program.
    pub fn computed(buffer: impl Into<Option<Buffer>>, ty: impl Into<TypeRef>, device: u8) -> DeviceData {
        let mut data = DeviceData::new(buffer, ty, device);
        data.computed = true;
        data
    }
}

impl Drop for DeviceData {
    fn drop(&mut self) {
        crate::metrics::DESTROY_DATA_HANDLES.add(1);
        let bytes = self.shards.as_ref().map_or(self.ty.bytes(), |s| self.held_bytes(&s.sharding));
        LIVE_BYTES.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

/// Bytes of the values that are held.
static LIVE_BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes in use on all devices: the plugin's count, or, where it has none, our own of the values that are held. 0 before
/// anything has run.
pub fn bytes_in_use() -> u64 {
    let one = |d: &Device| d.memory_stats().ok().flatten().map(|m| m.bytes_in_use.max(0) as u64);
    let count = |c: &'static OpenClient| c.devices.iter().map(one).sum();
    client_if_open().and_then(count).unwrap_or_else(|| LIVE_BYTES.load(Ordering::Relaxed))
}

/// What the client counts on one device, in bytes.
pub struct Counted {
    pub device: String,
    pub in_use: u64,
    pub peak: Option<u64>,
    pub limit: Option<u64>,
}

/// What the client counts, of each device that tells; nothing before anything has run.
pub fn counted() -> Vec<Counted> {
    let Some(client) = client_if_open() else { return vec![] };
    let one = |(d, name): (&Device, &String)| {
        let stats = d.memory_stats().ok().flatten()?;
        let size = |n: i64| n.max(0) as u64;
        let (peak, limit) = (stats.peak_bytes_in_use.map(size), stats.bytes_limit.map(size));
        Some(Counted { device: name.clone(), in_use: size(stats.bytes_in_use), peak, limit })
    };
    client.devices.iter().zip(&client.names).filter_map(one).collect()
}
