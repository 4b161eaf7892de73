//! Host ↔ device.
use super::flight::watch;
use super::{DeviceData, client, dry, wait};
use crate::Result;
use crate::mesh::{Mesh, Sharding, runs};
use crate::metrics;
use crate::pod::Buffer;
use crate::ty::{DType, Type};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// Copies row-major bytes to a device, or to all devices of a mesh.
pub fn upload(bytes: &[u8], ty: Type, device: u8) -> Result<Arc<DeviceData>> {
    if let Some(mesh) = Mesh::at(device) {
        let sharding = Sharding::replicated(mesh, ty.shape.len());
        return upload_sharded(bytes, ty, sharding);
    }
    let buffer = if dry::is_dry() { None } else { Some(send(bytes, &ty, device)?) };
    Ok(sent(bytes, DeviceData::new(buffer, ty, device)))
}

/// Copies to each device of a mesh its part of row-major bytes. Every dimension is split evenly.
pub fn upload_sharded(bytes: &[u8], ty: Type, sharding: Sharding) -> Result<Arc<DeviceData>> {
    let mut buffers = Vec::new();
    if !dry::is_dry() {
        let part = Type::new(ty.dtype, sharding.shard_shape(&ty.shape));
        let size = ty.dtype.size();
        let mut block = vec![0; part.bytes()];
        for (position, &device) in sharding.mesh().devices().iter().enumerate() {
            for (from, to, n) in runs(&ty.shape, &sharding.offsets(position, &ty.shape), &part.shape) {
                block[to * size..][..n * size].copy_from_slice(&bytes[from * size..][..n * size]);
            }
            buffers.push(send(&block, &part, device)?);
        }
    }
    Ok(sent(bytes, DeviceData::on_mesh(buffers, ty, sharding)))
}

/// The value on a mesh, split so.
pub fn resharded(data: &DeviceData, sharding: Sharding) -> Result<Arc<DeviceData>> {
    upload_sharded(&download(data)?, data.ty.get().clone(), sharding)
}

fn send(bytes: &[u8], ty: &Type, device: u8) -> Result<Buffer> {
    let c = client()?;
    let start = Instant::now();
    let mut dims = [0i64; 8];
    let mut long = Vec::new();
    let dims: &[i64] = match ty.shape.len() {
        n if n <= dims.len() => {
            dims.iter_mut().zip(ty.shape.iter()).for_each(|(d, &s)| *d = s as i64);
            &dims[..n]
        }
        _ => {
            long.extend(ty.shape.iter().map(|&d| d as i64));
            &long
        }
    };
    let buffer = c.pjrt.buffer_from_host(bytes, ty.dtype.pjrt(), dims, &c.devices[device as usize])?;
    metrics::TRANSFER_TO_DEVICE_TIME.add_time(start.elapsed());
    metrics::OUTBOUND_DATA.add_bytes(bytes.len());
    Ok(buffer)
}

/// A value with what is known of its bytes.
fn sent(bytes: &[u8], mut data: DeviceData) -> Arc<DeviceData> {
    fn range<const N: usize>(bytes: &[u8], read: fn([u8; N]) -> i64) -> Option<(i64, i64)> {
        let (all, _) = bytes.as_chunks::<N>();
        let first = read(*all.first()?);
        Some(all.iter().map(|b| read(*b)).fold((first, first), |(low, high), v| (low.min(v), high.max(v))))
    }
    data.range = match data.ty.dtype {
        DType::I64 => range(bytes, i64::from_le_bytes),
        DType::I32 => range(bytes, |b| i32::from_le_bytes(b) as i64),
        _ => None,
    };
    Arc::new(data)
}

/// Copies a value to the host as row-major bytes; waits for it, and gives the error of the execution that made it.
pub fn download(data: &DeviceData) -> Result<Vec<u8>> {
    let Some(buffer) = &data.buffer else { return Ok(dry::bytes(&data.ty)) };
    if crate::host::running() {
        let start = Instant::now();
        data.buffers().try_for_each(|buffer| wait(&buffer.ready_event()?))?;
        metrics::WAIT_TIME.add_time(start.elapsed());
    }
    let start = Instant::now();
    let mut bytes = vec![0; data.ty.bytes()];
    match &data.shards {
        Some(shards) if !shards.sharding.is_replicated() => gather(data, &shards.sharding, &mut bytes)?,
        _ => buffer.to_host(&mut bytes)?,
    }
    metrics::TRANSFER_FROM_DEVICE_TIME.add_time(start.elapsed());
    metrics::INBOUND_DATA.add_bytes(bytes.len());
    Ok(bytes)
}

/// Puts a value together of what the devices of a mesh hold.
fn gather(data: &DeviceData, sharding: &Sharding, bytes: &mut [u8]) -> Result<()> {
    let (shape, size) = (&data.ty.shape, data.ty.dtype.size());
    let part = sharding.shard_shape(shape);
    let mut block = vec![0; part.numel() * size];
    for (position, buffer) in data.buffers().enumerate() {
        if sharding.first_like(position) != position {
            continue;
        }
        buffer.to_host(&mut block)?;
        for (to, from, n) in runs(shape, &sharding.offsets(position, shape), &part) {
            bytes[to * size..][..n * size].copy_from_slice(&block[from * size..][..n * size]);
        }
    }
    Ok(())
}

impl DeviceData {
    /// A copy of its own on another device, or on all devices of a mesh, which no program has to make.
    pub fn copied_to(&self, device: u8) -> Result<Arc<DeviceData>> {
        if self.shards.is_some() {
            // Put together on the host.
            return upload(&download(self)?, self.ty.get().clone(), device);
        }
        if let Some(mesh) = Mesh::at(device) {
            let mut buffers = Vec::new();
            if let Some(buffer) = &self.buffer {
                for &device in mesh.devices() {
                    buffers.push(buffer.copy_to_device(&client()?.devices[device as usize])?);
                }
                buffers.iter().try_for_each(watch)?;
            }
            let sharding = Sharding::replicated(mesh, self.ty.shape.len());
            return Ok(Arc::new(DeviceData::on_mesh(buffers, self.ty, sharding)));
        }
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
