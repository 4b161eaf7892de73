//! Host ↔ device.
use super::{DeviceData, client, dry, wait};
use crate::Result;
use crate::metrics;
use crate::ty::{DType, Type};
use std::sync::Arc;
use std::time::Instant;

/// Copies row-major bytes to a device.
pub fn upload(bytes: &[u8], ty: Type, device: u8) -> Result<Arc<DeviceData>> {
    if dry::is_dry() {
        return Ok(sent(bytes, DeviceData::new(None, ty, device)));
    }
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
    Ok(sent(bytes, DeviceData::new(buffer, ty, device)))
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
    let start = Instant::now();
    let Some(buffer) = &data.buffer else { return Ok(dry::bytes(&data.ty)) };
    if crate::host::running() {
        wait(&buffer.ready_event()?)?;
    }
    let mut bytes = vec![0; data.ty.bytes()];
    buffer.to_host(&mut bytes)?;
    metrics::TRANSFER_FROM_DEVICE_TIME.add_time(start.elapsed());
    metrics::INBOUND_DATA.add_bytes(bytes.len());
    Ok(bytes)
}
