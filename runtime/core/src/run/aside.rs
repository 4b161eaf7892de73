//! Computing the inside of a program again, aside: by a program that no cache, no metric and no witness hears of.
use super::cache::Program;
use super::compile::{STACK, form, options};
use super::execute::{Held, execute};
use super::kept::{Run, Value as Kept};
use super::lower::{Lowered, lower_for};
use super::sharded;
use super::sync::turn;
use crate::device::{DeviceData, LOOK_UP, client, is_dry};
use crate::ir::{Cut, Input, Leaf, LeafType, NodeId, Params, Scope, Step, Writing, graph, program};
use crate::mesh::Mesh;
use crate::options::{Numbers, Options};
use crate::pod::LoadedExecutable;
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use xlazy_pjrt::{CompileOptions, Value};

impl Run {
    /// The values of some of its ops, computed again of what it was given. Nothing that is pending changes, and no sync is
    /// counted. XLA fuses this program as it likes, so last bits may differ from those that the run had.
    ///
    /// Errors: what is gone ([`Run::gone`]), and what the plugin refuses.
    pub fn again(&self, wanted: &[u32]) -> Result<Vec<Arc<DeviceData>>> {
        let _turn = turn();
        let (needed, fed) = self.needed(wanted);
        let place = |all: &[usize], i: u32| all.binary_search(&(i as usize)).expect("what is needed") as u32;
        let step = |&s: &usize| {
            let mut step = self.program.steps[s].clone();
            step.inputs.iter_mut().for_each(|input| {
                *input = match *input {
                    Input::Step(i) => Input::Step(place(&needed, i)),
                    Input::Leaf(l) => Input::Leaf(place(&fed, l)),
                }
            });
            step
        };
        let steps: Vec<Step> = needed.iter().map(step).collect();
        let mut leaves: Vec<(NodeId, Leaf)> = Vec::with_capacity(fed.len());
        for &l in &fed {
            let data = match &self.given[l].value {
                Kept::Number(leaf) => Err(leaf.clone()),
                Kept::Kept { data, .. } => Ok(data.clone()),
                Kept::Seen { data, .. } => Ok(data.upgrade().ok_or_else(|| Error::Usage {
                    message: "what the program was given is not there any more".into(),
                })?),
            };
            leaves.push((0, data.map_or_else(|number| number, |data| Leaf::Data { data, donate: false })));
        }
        let mesh = Mesh::at(self.program.device);
        if mesh.is_some_and(Mesh::is_ranks) {
            let message = "it ran in `spawn`, where each rank has a value of its own: print it there";
            return Err(Error::Usage { message: message.into() });
        }
        let ty = |(&l, (_, leaf)): (&usize, &(NodeId, Leaf))| LeafType {
            ty: self.given[l].ty.get().clone(),
            scalar: leaf.bits().is_some(),
            donate: false,
            sharding: mesh.and_then(|mesh| leaf.sharding(mesh)),
        };
        let types: Vec<LeafType> = fed.iter().zip(&leaves).map(ty).collect();
        let params = Params::lay_out(types.iter().map(|l| (&l.ty, l.scalar)));
        let roots: Vec<u32> = wanted.iter().map(|&w| place(&needed, w)).collect();
        let options = plain(self.program.options);
        let text = program(&steps, &types, &params, &roots, Writing { options, checked: false, mesh }).text;
        let root_types = roots.iter().map(|&r| steps[r as usize].ty).collect();
        let cut = Cut::feeding(leaves, root_types, options);
        start(&cut, text, params, self.program.device)
    }
}

/// The same, looking for nothing.
fn plain(options: Options) -> Options {
    Options { numbers: Numbers::Any, ..options }
}

/// The value of a node, computed aside where it has none: the node stays as it is.
pub fn aside(id: NodeId) -> Result<Arc<DeviceData>> {
    let _turn = turn();
    let cut = {
        let mut g = graph();
        if let Some(value) = g.node(id).value() {
            return Ok(value.clone());
        }
        g.cut(vec![id], Scope::Read)
    };
    let Lowered { text, params, .. } = lower_for(&cut, plain(cut.options), false);
    let mut values = start(&cut, text, params, cut.placement.home())?;
    Ok(values.swap_remove(0))
}

/// Compiles a program that is kept nowhere, and starts it.
fn start(cut: &Cut, text: String, params: Params, device: u8) -> Result<Vec<Arc<DeviceData>>> {
    let executable = if is_dry() { None } else { Some(compile_aside(&text, device)?) };
    let results = sharded::lie(executable.as_ref(), device, &cut.root_types)?;
    let mut program = Program::new(cut.key.clone(), executable, params, cut.root_types.clone(), text, 0, 0);
    (program.device, program.results) = (device, results);
    Ok(execute(cut, &program, &Held::default())?.0)
}

/// Compiles a text for a device, or for the mesh of that number, on a thread with a deep stack, which an interrupt leaves to
/// itself. The program is the caller's alone.
pub fn compile_aside(text: &str, device: u8) -> Result<LoadedExecutable> {
    compile_aside_with(text, device, Vec::new())
}

/// The same with flags of XLA, such as `xla_dump_to`.
pub fn compile_aside_with(text: &str, device: u8, flags: Vec<(String, Value)>) -> Result<LoadedExecutable> {
    let (client, mut options): (_, CompileOptions) = (client()?, options(device, text)?);
    if let Some(why) = text.lines().find_map(client.platform.lacks) {
        return Err(Error::Usage { message: why.into() });
    }
    options.overrides.extend(flags);
    let (tell, told) = channel();
    let code = form(text, device)?.into_owned();
    let work = move || {
        let program = xlazy_pjrt::Program { format: "mlir", code: code.as_bytes() };
        let _ = tell.send(client.pjrt.compile(&program, &options));
    };
    let thread = Builder::new().name("compile aside".into()).stack_size(STACK).spawn(work);
    thread.map_err(|e| Error::Usage { message: format!("no thread for a compilation: {e}") })?;
    loop {
        match told.recv_timeout(LOOK_UP) {
            Ok(compiled) => return Ok(compiled?),
            Err(RecvTimeoutError::Timeout) => crate::sys::check_interrupt(),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::Usage { message: "the compilation ended without a program".into() });
            }
        }
    }
}
