//! Running a compiled program: its arguments, its results, the wait where there is one.
use super::cache::Program;
use super::checks;
use super::disk;
use super::event::{Cause, Costs, Origin, SyncEvent, Work};
use super::kept;
use super::packs::pack;
use super::sharded;
use super::witness::{Witness, Working};
use crate::device::{DeviceData, is_unsettled, make_room, name_of, settle, wait_for_all, watch};
use crate::ir::{Cut, Leaf};
use crate::mesh::Mesh;
use crate::metrics;
use crate::pod::Buffer;
use crate::text::Place;
use crate::ty::TypeRef;
use crate::{Error, Result};
use std::sync::Arc;
use std::time::Duration;
use xlazy_mime::count;

/// The results, and what is told of the sync.
pub(super) type Outcome = Result<(Vec<Arc<DeviceData>>, SyncEvent)>;

/// Runs a program on what the cut feeds it.
pub(super) fn run(
    by: &'static dyn Witness,
    cut: &Cut,
    program: &Arc<Program>,
    costs: Costs,
    cause: Cause,
    at: Place,
) -> Outcome {
    crate::sys::check_interrupt();
    let settles = costs.origin != Origin::Memory || is_unsettled();
    let start = program.took.clock(settles);
    let working = Working::on(by, Work { nodes: program.nodes, cause, at });
    let held = held(cut, program);
    if let Some(executable) = &program.executable {
        executable.called_at(at);
    }
    let (outputs, waited) = execute(cut, program, &held)?;
    if settles && settle(outputs.first().and_then(|o| o.buffer.as_ref()))? {
        crate::sys::at_exit(wait_at_exit);
    }
    drop(working);
    let execute = match start.map(|s| s.elapsed()) {
        None => program.took.execute(None) + waited,
        took => program.took.execute(took),
    };
    metrics::EXECUTE_TIME.add_time_at(execute, start.map(|s| s + execute));
    let event = by.ran(SyncEvent {
        number: 0,
        cause,
        at,
        nodes: program.nodes,
        parameters: program.params.count(),
        outputs: program.root_types.len(),
        donated: program.donated - held.arguments.len(),
        copied: held.bytes,
        origin: costs.origin,
        trace: costs.trace,
        lower: costs.lower,
        compile: costs.compile,
        execute,
        hash: program.key.hash,
        device: name_of(program.device),
    });
    kept::ran(cut, program, event.number, cause.is_barrier());
    Ok((outputs, event))
}

/// Arguments that the program donates and this cut keeps, since something holds or wants to look at them: PJRT copies them first.
#[derive(Default)]
pub(super) struct Held {
    arguments: Vec<i64>,
    bytes: usize,
}

fn held(cut: &Cut, program: &Program) -> Held {
    let mut held = Held::default();
    let keeping = kept::keeping();
    if program.key.hash == cut.key.hash && !keeping {
        return held;
    }
    let mut kept = 0;
    for (argument, &leaf) in program.params.data.iter().enumerate() {
        if let Leaf::Data { data, donate } = &cut.leaves[leaf as usize].1
            && (keeping || !donate)
            && program.key.donates(leaf as usize)
        {
            held.arguments.push(argument as i64);
            held.bytes += data.ty.bytes();
            kept += if *donate { data.ty.bytes() } else { 0 };
        }
    }
    // What is only kept to be looked at makes no program of its own.
    program.copied(held.bytes - kept);
    metrics::HELD_DATA.add_bytes(held.bytes);
    held
}

/// Starts a program: its results, and how long the device would take nothing.
pub(super) fn execute(cut: &Cut, program: &Program, held: &Held) -> Result<(Vec<Arc<DeviceData>>, Duration)> {
    if let Some(mesh) = Mesh::at(program.device) {
        return sharded::execute(cut, program, mesh, &held.arguments);
    }
    let result = |buffer: Option<Buffer>, ty: TypeRef| Arc::new(DeviceData::computed(buffer, ty, program.device));
    let Some(executable) = &program.executable else {
        return Ok((program.root_types.iter().map(|&ty| result(None, ty)).collect(), Duration::ZERO));
    };
    let packs = program
        .params
        .packs
        .iter()
        .enumerate()
        .map(|(i, (dtype, members))| pack(cut, program, i, *dtype, members))
        .collect::<Result<Vec<Arc<[Buffer]>>>>()?;
    let mut copies = Vec::new();
    for &leaf in &program.params.data {
        if let Leaf::Data { data, donate } = &cut.leaves[leaf as usize].1
            && data.device != program.device
        {
            let copy = if *donate { data.copied_to(program.device) } else { data.shared_on(program.device) };
            copies.push(copy?);
        }
    }
    let mut copies = copies.iter();
    let mut arguments: Vec<&Buffer> = Vec::with_capacity(program.params.count());
    for &leaf in &program.params.data {
        match &cut.leaves[leaf as usize].1 {
            Leaf::Data { data, .. } if data.device == program.device => arguments.extend(&data.buffer),
            Leaf::Data { .. } => arguments.extend(copies.next().and_then(|c| c.buffer.as_ref())),
            Leaf::Scalar(_) | Leaf::Lifted(_) => unreachable!("scalars are packed"),
        }
    }
    arguments.extend(packs.iter().map(|p| &p[0]));
    let waited = make_room()?;
    let mut outputs = executable.execute(&arguments, &held.arguments)?;
    let wanted = program.root_types.len() + usize::from(!program.checks.is_empty());
    if outputs.len() != wanted {
        let message = format!("the program gave {} of {}", outputs.len(), count(wanted, "result"));
        return Err(Error::Usage { message });
    }
    if !program.checks.is_empty()
        && let Some(found) = outputs.pop()
    {
        checks::found(cut, program, found);
    }
    if let Some(output) = outputs.first() {
        watch(output)?;
    }
    let outputs = outputs.into_iter().zip(&program.root_types);
    Ok((outputs.map(|(buffer, &ty)| result(Some(buffer), ty)).collect(), waited))
}

/// Waits for what is still running, when the process exits.
extern "C" fn wait_at_exit() {
    disk::settle(Duration::from_secs(5));
    wait_for_all();
}
