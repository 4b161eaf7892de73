//! Programs for a mesh: one program, of which each device runs its part. How results lie on the mesh is XLA's choice, and read
//! from what it made of the program.
//!
//! Where PJRT refuses an argument of one device, the others wait for it in the program's first collective, for ever, and so
//! does whatever runs next. So all that it could refuse is looked at first, and a launch that failed all the same is the last.
use super::cache::Program;
use super::checks;
use super::packs::pack;
use crate::device::{DeviceData, client, make_room, watch};
use crate::ir::{Cut, Leaf};
use crate::mesh::{Mesh, Sharding};
use crate::proto::Message;
use crate::ty::{Shape, TypeRef};
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use xlazy_mime::count;
use xlazy_pjrt::{Buffer, CompileOptions, LoadedExecutable};

/// How a program for a mesh is compiled.
pub(super) fn options(mesh: Mesh) -> Result<CompileOptions> {
    let devices = &client()?.devices;
    let ids = mesh.devices().iter().map(|&d| i64::from(devices[d as usize].id())).collect();
    let partitions = mesh.size() as i64;
    Ok(CompileOptions { partitions, assignment: Some(ids), spmd: true, shardy: true, ..CompileOptions::default() })
}

/// How the results of a compiled program lie, where it is for a mesh.
pub(super) fn lie(executable: Option<&LoadedExecutable>, device: u8, types: &[TypeRef]) -> Result<Vec<Sharding>> {
    match (executable, Mesh::at(device)) {
        (Some(executable), Some(mesh)) => results(executable, mesh, types),
        _ => Ok(vec![]),
    }
}

/// How the results of a compiled program lie on the mesh.
///
/// Errors: what the plugin gave says nothing of it, or in a way that no axes express.
fn results(executable: &LoadedExecutable, mesh: Mesh, types: &[TypeRef]) -> Result<Vec<Sharding>> {
    let usage = |message: String| Error::Usage { message };
    let here: Vec<i32> = executable.addressable_devices().iter().map(|d| d.id()).collect();
    let devices = &client()?.devices;
    if !mesh.devices().iter().map(|&d| devices[d as usize].id()).eq(here.iter().copied()) {
        return Err(usage(format!("the plugin runs a program for {mesh} on the devices {here:?}, in this order")));
    }
    let (format, bytes) = executable.executable().optimized_program()?;
    let outer = Message::read(&bytes).ok_or_else(|| usage(format!("the plugin's {format} is no protocol buffer")))?;
    let module = if format == "hlo_with_config" { outer.message(1) } else { outer };
    let all = module.message(12);
    const TUPLE: i64 = 2;
    let parts = if all.int(1) == TUPLE { all.messages(5) } else { vec![all] };
    if parts.len() < types.len() {
        return Err(usage(format!("the plugin says of {} how they lie on {mesh}", count(parts.len(), "result"))));
    }
    let one = |(i, (part, ty)): (usize, (&Message, &TypeRef))| {
        let sharding = Sharding::of_xla(mesh, ty.shape.len(), part).filter(|s| s.uneven(&ty.shape).is_none());
        sharding.ok_or_else(|| {
            usage(format!(
                "XLA lays result {} of the program, {ty}, on {mesh} in a way that its axes do not express: say how with \
                 `mark_sharding`",
                i + 1
            ))
        })
    };
    parts.iter().zip(types).enumerate().map(one).collect()
}

/// A launch failed: the devices that were started wait for the others.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Starts a program on all devices of its mesh: its results, and how long the devices would take nothing.
pub(super) fn execute(
    cut: &Cut,
    program: &Program,
    mesh: Mesh,
    held: &[i64],
) -> Result<(Vec<Arc<DeviceData>>, Duration)> {
    let Some(executable) = &program.executable else {
        let one = |&ty: &TypeRef| {
            let mut data = DeviceData::on_mesh(vec![], ty, Sharding::replicated(mesh, ty.shape.len()));
            data.computed = true;
            Arc::new(data)
        };
        return Ok((program.root_types.iter().map(one).collect(), Duration::ZERO));
    };
    if FAILED.load(Ordering::Relaxed) {
        let message = "a program for several devices could not be started, and the devices still wait for one another: \
                       restart the session (`%restart`), then `%recover`";
        return Err(Error::Usage { message: message.into() });
    }
    let packs = &program.params.packs;
    let packs = packs
        .iter()
        .enumerate()
        .map(|(i, (dtype, members))| pack(cut, program, i, *dtype, members))
        .collect::<Result<Vec<Arc<[Buffer]>>>>()?;
    let mut data: Vec<Arc<DeviceData>> = Vec::with_capacity(program.params.data.len());
    for &leaf in &program.params.data {
        let Leaf::Data { data: of, donate } = &cut.leaves[leaf as usize].1 else { unreachable!("scalars are packed") };
        data.push(match of.device == mesh.place() {
            true => of.clone(),
            false if *donate => of.copied_to(mesh.place())?,
            false => of.shared_on(mesh.place())?,
        });
    }
    let mut lists: Vec<Vec<&Buffer>> = vec![Vec::with_capacity(program.params.count()); mesh.size()];
    for of in &data {
        let part = of.sharding_on(mesh).shard_shape(&of.ty.shape);
        let mut buffers = of.buffers();
        for list in &mut lists {
            let buffer = buffers.next().ok_or_else(|| refused(of.ty, "it is not on all devices"))?;
            check(buffer, of.ty, &part)?;
            list.push(buffer);
        }
    }
    for pack in &packs {
        lists.iter_mut().zip(pack.iter()).for_each(|(list, buffer)| list.push(buffer));
    }
    let waited = make_room()?;
    let by_device = executable.execute_sharded(&lists, held).inspect_err(|_| FAILED.store(true, Ordering::Relaxed))?;
    let wanted = program.root_types.len() + usize::from(!program.checks.is_empty());
    let mut by_device: Vec<_> = by_device.into_iter().map(Vec::into_iter).collect();
    let mut outputs = Vec::with_capacity(wanted);
    for _ in 0..wanted {
        let all: Vec<Buffer> = by_device.iter_mut().filter_map(Iterator::next).collect();
        if all.len() != mesh.size() {
            let message = format!("the program gave {} of {}", outputs.len(), count(wanted, "result"));
            return Err(Error::Usage { message });
        }
        outputs.push(all);
    }
    if !program.checks.is_empty()
        && let Some(found) = outputs.pop().and_then(|all| all.into_iter().next())
    {
        checks::found(cut, program, found);
    }
    if let Some(all) = outputs.first() {
        all.iter().try_for_each(watch)?;
    }
    let types = program.root_types.iter().zip(&program.results);
    let one = |(buffers, (&ty, sharding)): (Vec<Buffer>, (&TypeRef, &Sharding))| {
        let mut data = DeviceData::on_mesh(buffers, ty, sharding.clone());
        data.computed = true;
        Arc::new(data)
    };
    Ok((outputs.into_iter().zip(types).map(one).collect(), waited))
}

/// Refuses what PJRT would refuse of one device's argument.
fn check(buffer: &Buffer, ty: TypeRef, part: &Shape) -> Result<()> {
    if buffer.is_deleted()? {
        return Err(refused(ty, "its buffer was given away to another program"));
    }
    if !buffer.dims().iter().map(|&d| d as usize).eq(part.iter().copied()) {
        return Err(refused(ty, &format!("a device holds {:?} of it, and {part} are expected", buffer.dims())));
    }
    Ok(())
}

fn refused(ty: TypeRef, why: &str) -> Error {
    Error::Usage { message: format!("the program for several devices was not started: of the input {ty} {why}") }
}
