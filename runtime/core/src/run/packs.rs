//! The numbers of user code on their way to a program: one small buffer for those of a dtype.
use super::cache::Program;
use crate::Result;
use crate::device::client;
use crate::ir::Cut;
use crate::mesh::Mesh;
use crate::metrics;
use crate::pod::Buffer;
use crate::ty::{DType, Scalar};
use std::sync::Arc;
use std::time::Instant;

/// The buffer of the scalars of one dtype, for each device of a mesh; the last run's where they are the same.
pub(super) fn pack(cut: &Cut, program: &Program, i: usize, dtype: DType, members: &[u32]) -> Result<Arc<[Buffer]>> {
    let mut bytes = Vec::with_capacity(members.len() * dtype.size());
    for cut in std::iter::once(cut).chain(&cut.ranks) {
        for &bits in members.iter().filter_map(|&leaf| cut.leaves[leaf as usize].1.bits()).flatten() {
            let number = if dtype.is_float() { Scalar::Float(f64::from_bits(bits)) } else { Scalar::Int(bits as i64) };
            dtype.write(number, &mut bytes);
        }
    }
    let mut packs = program.packs.lock().unwrap_or_else(|p| p.into_inner());
    if let Some((last, buffer)) = &packs[i]
        && *last == bytes
    {
        return Ok(buffer.clone());
    }
    let c = client()?;
    // Ranks have numbers of their own.
    let part = bytes.len() / (1 + cut.ranks.len());
    let n = [(part / dtype.size()) as i64];
    let dims: &[i64] = if n == [1] { &[] } else { &n };
    let start = Instant::now();
    let send = |device: u8| {
        let own = if cut.ranks.is_empty() { &bytes[..] } else { &bytes[device as usize * part..][..part] };
        c.pjrt.buffer_from_host(own, dtype.pjrt(), dims, &c.devices[device as usize])
    };
    let buffer: Arc<[Buffer]> = match Mesh::at(program.device) {
        None => Arc::new([send(program.device)?]),
        Some(mesh) => mesh.devices().iter().map(|&d| send(d)).collect::<xlazy_pjrt::Result<Vec<Buffer>>>()?.into(),
    };
    metrics::TRANSFER_TO_DEVICE_TIME.add_time(start.elapsed());
    metrics::OUTBOUND_DATA.add_bytes(bytes.len());
    packs[i] = Some((bytes, buffer.clone()));
    Ok(buffer)
}
