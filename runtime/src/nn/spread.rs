//! States that lie on the machines of a mesh: each reads from its own disk what its devices hold.
use super::rules::spec_of;
use super::safetensors::{Described, describe};
use crate::tensor::Tensor;
use crate::{Error, Result};
use std::panic::Location;
use xlazy_core::device::{OnDisk, load_sharded, machines, read_file};
use xlazy_core::ir::Placement;
use xlazy_core::mesh::{Mesh, Sharding};
use xlazy_core::thread::innermost;

/// The tensors of a safetensors file, in the order of its header, laid out over a mesh by rules over their names (as
/// [`shard_parameters`](super::parallel::shard_parameters) has them). Each machine of a pod reads from its own disk the bytes that
/// its devices hold, so they do not pass this one: `path` is a file on all of them, the same or equal ones. With `{i}` in it, which
/// is the worker's number, each has a file of its own, whose rows follow those of the machine before.
///
/// Errors: a file cannot be read on its machine, or is none; the machines' files have other tensors; a size that does not split
/// evenly; a device that is to hold rows that its machine's file has not.
///
/// ```
/// use xlazy::prelude::*;
/// let path = std::env::temp_dir().join(format!("xlazy-spread-{}.safetensors", std::process::id()));
/// nn::save(&path, &[("x".to_owned(), Tensor::arange(0, 6, 1).reshape([3, 2]))]).unwrap();
/// let mesh = Mesh::new(&[("data", 1)]);
/// let rows = nn::parallel::load(path.to_str().unwrap(), &mesh, &[("x", &[Some("data"), None])]).unwrap();
/// assert_eq!(rows[0].1.to_vec::<i64>(), [0, 1, 2, 3, 4, 5]);
/// # std::fs::remove_file(&path).unwrap();
/// ```
#[track_caller]
pub fn load(path: &str, mesh: &Mesh, rules: &[(&str, &[Option<&str>])]) -> Result<Vec<(String, Tensor)>> {
    let at = innermost(Location::caller());
    let usage = |message: String| Error::Usage { message };
    let all = machines(*mesh)?;
    let several = all.len() > 1;
    let own = path.contains("{i}");
    let mut files: Vec<(usize, String, Described)> = Vec::with_capacity(all.len());
    for (machine, device) in all {
        let path = path.replace("{i}", &machine.to_string());
        let of = if several { format!(" of worker {machine}") } else { String::new() };
        let bytes = |at: u64, n: usize| read_file(device, &path, at, n as u64).map_err(|e| plainly(&e));
        let (size, _) = bytes(0, 0).map_err(usage)?;
        let header = describe(size, |at, n| Ok(bytes(at, n)?.1));
        let header = header.map_err(|what| usage(format!("cannot read {path}{of}: {what}")))?;
        files.push((machine, path, header));
    }
    let (_, first_path, first) = &files[0];
    for (machine, path, other) in &files[1..] {
        let types = |d: &Described| d.entries.iter().map(|e| (e.name.clone(), e.ty.clone())).collect::<Vec<_>>();
        if types(other) != types(first) {
            return Err(usage(format!(
                "{path} of worker {machine} has other tensors than {first_path} of worker {}",
                files[0].0
            )));
        }
    }
    let mut out = Vec::with_capacity(first.entries.len());
    for (n, entry) in first.entries.iter().enumerate() {
        let (name, mut ty) = (&entry.name, entry.ty.clone());
        let elements = ty.shape.iter().product::<usize>();
        if own {
            let rows = ty.shape.first_mut();
            *rows.ok_or_else(|| {
                usage(format!("`{name}` is a number, and each machine's file is to have rows of it"))
            })? *= files.len();
        }
        let spec = spec_of(name, ty.shape.len(), rules).map_err(usage)?;
        let sharding = Sharding::new(*mesh, &spec).map_err(|why| usage(format!("`{name}`: {why}")))?;
        if let Some(why) = sharding.why_uneven(&ty.shape) {
            return Err(usage(format!("`{name}`: {why}")));
        }
        let parts: Vec<OnDisk> = files
            .iter()
            .enumerate()
            .map(|(i, (machine, path, header))| OnDisk {
                machine: *machine,
                path: path.clone(),
                at: header.begin + header.entries[n].place.start as u64,
                has: (if own { i * elements } else { 0 }, elements),
            })
            .collect();
        let data = load_sharded(&parts, ty, sharding).map_err(|e| usage(format!("`{name}`: {e}")))?;
        out.push((name.clone(), Tensor::of_data(data, Placement::Device(mesh.place()), at)));
    }
    Ok(out)
}

/// What a machine says, without the call that it answers.
fn plainly(e: &Error) -> String {
    match e {
        Error::Pjrt { message, .. } => message.clone(),
        e => e.to_string(),
    }
}
