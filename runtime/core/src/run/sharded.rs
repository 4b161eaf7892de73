//! Programs for a mesh: one program, of which each device runs its part. How results lie on the mesh is XLA's choice, and read
//! from what it made of the program.
//!
//! Where PJRT refuses an argument of one device, the others wait for it in the program's first collective, for ever, and so
//! does whatever runs next. So all that it could refuse is looked at first, and a launch that failed all the same is the last.
use super::cache::Program;
use super::checks;
use super::packs::pack;
use crate::device::{DeviceData, OpenClient, client, client_if_open, make_room, watch};
use crate::ir::{Cut, Leaf};
use crate::mesh::{Mesh, Sharding};
use crate::pod::{Buffer, Client, LoadedExecutable};
use crate::proto::Message;
use crate::ty::{Shape, TypeRef};
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use xlazy_mime::count;
use xlazy_pjrt::CompileOptions;

/// How a program for a mesh is compiled.
pub(super) fn options(mesh: Mesh) -> Result<CompileOptions> {
    let devices = &client()?.devices;
    let ids = mesh.devices().iter().map(|&d| i64::from(devices[d as usize].id())).collect();
    let size = mesh.size() as i64;
    if mesh.is_ranks() {
        return Ok(CompileOptions { replicas: size, assignment: Some(ids), ..CompileOptions::default() });
    }
    let partitions = size;
    Ok(CompileOptions { partitions, assignment: Some(ids), spmd: true, shardy: true, ..CompileOptions::default() })
}

/// How the results of a compiled program lie, where it is for a mesh.
pub(super) fn lie(executable: Option<&LoadedExecutable>, device: u8, types: &[TypeRef]) -> Result<Vec<Sharding>> {
    match (executable, Mesh::at(device)) {
        (Some(executable), Some(mesh)) if !mesh.is_ranks() => results(executable, mesh, types),
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
    // XLA splits nothing for one device, and says nothing of it.
    if mesh.size() == 1 {
        return Ok(types.iter().map(|ty| Sharding::replicated(mesh, ty.shape.len())).collect());
    }
    let (format, bytes) = executable.optimized_program()?;
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
        let of_rank =
            |&device: &u8| program.root_types.iter().map(move |&ty| Arc::new(DeviceData::computed(None, ty, device)));
        let all = match mesh.is_ranks() {
            true => mesh.devices().iter().flat_map(of_rank).collect(),
            false => program.root_types.iter().map(one).collect(),
        };
        return Ok((all, Duration::ZERO));
    };
    refuse_after_failure()?;
    if mesh.is_ranks() {
        return of_ranks(cut, program, executable, held);
    }
    let packs = packs(cut, program)?;
    let mut data: Vec<Arc<DeviceData>> = Vec::with_capacity(program.params.data.len());
    for &leaf in &program.params.data {
        data.push(argument(cut, leaf, mesh.place())?);
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
    let (by_device, waited) = launch(program, executable, &lists, held)?;
    let mut by_device: Vec<_> = by_device.into_iter().map(Vec::into_iter).collect();
    let wanted = program.root_types.len() + usize::from(!program.checks.is_empty());
    let mut outputs: Vec<Vec<Buffer>> =
        (0..wanted).map(|_| by_device.iter_mut().filter_map(Iterator::next).collect()).collect();
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

fn refuse_after_failure() -> Result<()> {
    if !FAILED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let message = "a program for several devices could not be started, and the devices still wait for one another: `%recover` \
                   begins a new session, and runs the cells again that made what they held";
    Err(Error::Usage { message: message.into() })
}

/// Whether nothing can run any more in this process: the pod is over, or devices wait for one another.
pub fn is_over() -> bool {
    let pod_is_over = |c: &OpenClient| matches!(&c.pjrt, Client::Pod(pod) if pod.over().is_some());
    FAILED.load(Ordering::Relaxed) || client_if_open().is_some_and(pod_is_over)
}

fn packs(cut: &Cut, program: &Program) -> Result<Vec<Arc<[Buffer]>>> {
    let all = program.params.packs.iter().enumerate();
    all.map(|(i, (dtype, members))| pack(cut, program, i, *dtype, members)).collect()
}

/// What feeds a leaf, on a device or a mesh.
fn argument(cut: &Cut, leaf: u32, place: u8) -> Result<Arc<DeviceData>> {
    let Leaf::Data { data, donate } = &cut.leaves[leaf as usize].1 else { unreachable!("scalars are packed") };
    match data.device == place {
        true => Ok(data.clone()),
        false if *donate => data.copied_to(place),
        false => data.shared_on(place),
    }
}

/// What each device gives, and how long the devices would take nothing.
fn launch(
    program: &Program,
    executable: &LoadedExecutable,
    lists: &[Vec<&Buffer>],
    held: &[i64],
) -> Result<(Vec<Vec<Buffer>>, Duration)> {
    let waited = make_room()?;
    let by_device = executable.execute_sharded(lists, held).inspect_err(|_| {
        // A pod says itself that it is over, and where it is not it has told no worker of the program.
        if matches!(executable, LoadedExecutable::Here(_)) {
            FAILED.store(true, Ordering::Relaxed);
        }
    })?;
    let wanted = program.root_types.len() + usize::from(!program.checks.is_empty());
    if let Some(short) = by_device.iter().find(|all| all.len() != wanted) {
        let message = format!("the program gave {} of {}", short.len(), count(wanted, "result"));
        return Err(Error::Usage { message });
    }
    Ok((by_device, waited))
}

/// Starts the program of ranks, each on its device with data of its own: the results of each, one rank behind the other.
fn of_ranks(
    cut: &Cut,
    program: &Program,
    executable: &LoadedExecutable,
    held: &[i64],
) -> Result<(Vec<Arc<DeviceData>>, Duration)> {
    let packs = packs(cut, program)?;
    let cuts = || std::iter::once(cut).chain(&cut.ranks).zip(0u8..);
    let mut data: Vec<Vec<Arc<DeviceData>>> = Vec::with_capacity(1 + cut.ranks.len());
    for (cut, device) in cuts() {
        data.push(program.params.data.iter().map(|&leaf| argument(cut, leaf, device)).collect::<Result<_>>()?);
    }
    let mut lists: Vec<Vec<&Buffer>> = Vec::with_capacity(data.len());
    for (device, all) in data.iter().enumerate() {
        let mut list: Vec<&Buffer> = Vec::with_capacity(program.params.count());
        for of in all {
            let buffer = of.buffer.as_ref().ok_or_else(|| refused(of.ty, "it is not on the rank's device"))?;
            check(buffer, of.ty, &of.ty.shape)?;
            list.push(buffer);
        }
        list.extend(packs.iter().map(|pack| &pack[device]));
        lists.push(list);
    }
    let (by_device, waited) = launch(program, executable, &lists, held)?;
    let mut given = Vec::with_capacity(program.root_types.len() * by_device.len());
    for ((mut outputs, device), (cut, _)) in by_device.into_iter().zip(0u8..).zip(cuts()) {
        if !program.checks.is_empty()
            && let Some(found) = outputs.pop()
        {
            checks::found(cut, program, found);
        }
        outputs.first().map(watch).transpose()?;
        let types = program.root_types.iter();
        given.extend(outputs.into_iter().zip(types).map(|(b, &ty)| Arc::new(DeviceData::computed(b, ty, device))));
    }
    Ok((given, waited))
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
