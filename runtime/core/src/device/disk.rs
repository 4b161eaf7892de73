//! Values of a mesh that each machine reads from its own disk.
use super::{DeviceData, client, dry, name_of};
use crate::mesh::{Mesh, Sharding, runs};
use crate::ty::Type;
use crate::{Error, Result};
use std::sync::Arc;

/// The machines that have a mesh's devices, in their order, each with one of its devices.
pub fn machines(mesh: Mesh) -> Result<Vec<(usize, u8)>> {
    let c = client()?;
    let mut all: Vec<(usize, u8)> = mesh.devices().iter().map(|&d| (c.devices[d as usize].machine(), d)).collect();
    all.sort_unstable();
    all.dedup_by_key(|(machine, _)| *machine);
    Ok(all)
}

/// How long a file is on the machine that has this device, and so many bytes of it from there on.
pub fn read_file(device: u8, path: &str, at: u64, length: u64) -> Result<(u64, Vec<u8>)> {
    Ok(client()?.devices[device as usize].read_file(path, (at, length))?)
}

/// A tensor in a file of one of the machines that have a mesh's devices.
pub struct OnDisk {
    pub machine: usize,
    pub path: String,
    /// Where its bytes begin.
    pub at: u64,
    /// Its own elements among those of the value: from, and how many.
    pub has: (usize, usize),
}

/// Has each machine of a mesh read from its own disk what its devices hold.
///
/// Errors: a device is to hold what its machine's file has not.
pub fn load_sharded(files: &[OnDisk], ty: Type, sharding: Sharding) -> Result<Arc<DeviceData>> {
    let mut buffers = Vec::new();
    if !dry::is_dry() {
        let (c, size) = (client()?, ty.dtype.size() as u64);
        let part = Type::new(ty.dtype, sharding.shard_shape(&ty.shape));
        let dims: Vec<i64> = part.shape.iter().map(|&d| d as i64).collect();
        for (position, &device) in sharding.mesh().devices().iter().enumerate() {
            let there = &c.devices[device as usize];
            let wrong = |why: &str| {
                let name = name_of(device);
                Error::Usage { message: format!("{name} of machine {} {why}", there.machine()) }
            };
            let file = files.iter().find(|f| f.machine == there.machine());
            let file = file.ok_or_else(|| wrong("has no file"))?;
            let (first, count) = file.has;
            let within = |from: usize, n: usize| from.checked_sub(first).filter(|at| at + n <= count);
            let runs = runs(&ty.shape, &sharding.offsets(position, &ty.shape), &part.shape).into_iter();
            let runs = runs.map(|(from, _, n)| Some((file.at + within(from, n)? as u64 * size, n as u64 * size)));
            let runs: Option<Vec<_>> = runs.collect();
            let runs = runs.ok_or_else(|| {
                wrong("is to hold rows that are in another machine's file: split the first dimension over an axis that the machines have in order")
            })?;
            buffers.push(c.pjrt.buffer_from_file(&file.path, runs, ty.dtype.pjrt(), &dims, there)?);
        }
    }
    Ok(Arc::new(DeviceData::on_mesh(buffers, ty, sharding)))
}
