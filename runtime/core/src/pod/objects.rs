//! What PJRT calls clients, devices, buffers, events and executables, as the rest of the runtime sees them: this process's own,
//! or of a pod. The two have the same methods, so nobody else asks which it is.
use super::controller::{Pod, Way};
use super::convert::{self, travelling};
use super::link::lock;
use super::signal::Signal;
use super::wire::{About, Attribute, Bytes, Command, Made, Wire};
use crate::text::Place;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use xlazy_pjrt::{
    self as pjrt, BufferType, Code, CompileOptions, CompiledMemoryStats, Error, MemoryStats, Plugin, Program, Result,
    Value,
};
use xxhash_rust::xxh3::xxh3_128;

/// A plugin's hold on its devices, or a pod's.
#[derive(Clone)]
pub enum Client {
    Here(pjrt::Client),
    Pod(Arc<Pod>),
}

#[derive(Clone)]
pub enum Device {
    Here(pjrt::Device),
    /// By its place among all of the pod's.
    Pod(Arc<Pod>, usize),
}

#[derive(Debug)]
pub enum Buffer {
    Here(pjrt::Buffer),
    Pod(Far),
}

/// A buffer on a worker.
pub struct Far {
    pod: Arc<Pod>,
    device: usize,
    pub(super) id: u64,
    dtype: BufferType,
    dims: Arc<[i64]>,
    /// The run that makes it.
    ready: Signal,
    /// A program has taken it.
    taken: AtomicBool,
}

#[derive(Clone)]
pub enum Event {
    Here(pjrt::Event),
    Pod(Arc<Pod>, Signal),
}

#[derive(Clone)]
pub enum LoadedExecutable {
    Here(pjrt::LoadedExecutable),
    Pod(Arc<FarProgram>),
}

/// A program on the workers whose devices it is for.
pub struct FarProgram {
    pod: Arc<Pod>,
    id: u64,
    hash: u128,
    /// The line that runs it.
    at: Mutex<Option<Place>>,
    /// The devices by position.
    devices: Vec<usize>,
    /// Of each worker the positions of its devices, in its own order.
    parts: BTreeMap<usize, Vec<usize>>,
    results: Vec<(BufferType, Arc<[i64]>)>,
    code_bytes: u64,
    /// Arguments that a result takes the place of.
    taken: Vec<usize>,
}

impl Client {
    pub fn platform_name(&self) -> String {
        match self {
            Client::Here(c) => c.platform_name(),
            Client::Pod(pod) => pod.links[0].opened.get().map(|o| o.platform.clone()).unwrap_or_default(),
        }
    }

    pub fn platform_version(&self) -> String {
        match self {
            Client::Here(c) => c.platform_version(),
            Client::Pod(pod) => pod.links[0].opened.get().map(|o| o.version.clone()).unwrap_or_default(),
        }
    }

    /// The plugin that is loaded here; a pod's workers have their own.
    pub fn plugin(&self) -> Option<Plugin> {
        match self {
            Client::Here(c) => Some(c.plugin()),
            Client::Pod(_) => None,
        }
    }

    /// The devices that programs can run on.
    pub fn addressable_devices(&self) -> Vec<Device> {
        match self {
            Client::Here(c) => c.addressable_devices().into_iter().map(Device::Here).collect(),
            Client::Pod(pod) => (0..pod.devices().len()).map(|i| Device::Pod(pod.clone(), i)).collect(),
        }
    }

    pub fn compile(&self, program: &Program, options: &CompileOptions) -> Result<LoadedExecutable> {
        match self {
            Client::Here(c) => c.compile(program, options).map(LoadedExecutable::Here),
            Client::Pod(pod) => FarProgram::compile(pod, program, options),
        }
    }

    pub fn deserialize(&self, bytes: &[u8]) -> Result<LoadedExecutable> {
        match self {
            Client::Here(c) => c.deserialize(bytes).map(LoadedExecutable::Here),
            Client::Pod(_) => Err(stays()),
        }
    }

    pub fn buffer_from_host(&self, data: &[u8], dtype: BufferType, dims: &[i64], device: &Device) -> Result<Buffer> {
        match (self, device) {
            (Client::Here(c), Device::Here(d)) => c.buffer_from_host(data, dtype, dims, d).map(Buffer::Here),
            (Client::Pod(pod), Device::Pod(_, index)) => {
                let size = dims.iter().product::<i64>() as usize * dtype.size();
                if size != data.len() {
                    return Err(refused(format!("{} bytes were given for {dtype} of {dims:?}", data.len())));
                }
                pod.room(pod.devices()[*index].worker)?;
                let far = Far::new(pod, *index, dtype, dims.into(), Signal::come());
                let (device, bytes) = (pod.devices()[*index].local, Bytes(data.to_vec()));
                let (buffer, dims) = (far.id, dims.to_vec());
                let upload = Command::Upload { buffer, device, dtype: dtype as u32, dims, bytes };
                pod.tell(far.worker(), &upload)?;
                Ok(Buffer::Pod(far))
            }
            _ => Err(mixed()),
        }
    }
}

impl Device {
    /// The plugin's number of it; of a pod's its place among all.
    pub fn id(&self) -> i32 {
        match self {
            Device::Here(d) => d.id(),
            Device::Pod(_, i) => *i as i32,
        }
    }

    pub fn kind(&self) -> String {
        match self {
            Device::Here(d) => d.kind(),
            Device::Pod(pod, i) => pod.devices()[*i].info.kind.clone(),
        }
    }

    pub fn attributes(&self) -> Result<Vec<(String, Value)>> {
        match self {
            Device::Here(d) => d.attributes(),
            Device::Pod(pod, i) => {
                let all = pod.devices()[*i].info.attributes.iter();
                Ok(all.map(|(name, v)| (name.clone(), convert::plain(v.clone()))).collect())
            }
        }
    }

    pub fn memory_stats(&self) -> Result<Option<MemoryStats>> {
        match self {
            Device::Here(d) => d.memory_stats(),
            Device::Pod(pod, i) => {
                let place = &pod.devices()[*i];
                let bytes = pod.about(place.worker, About::Memory { device: place.local })?;
                let counted: Option<convert::Held> = parse(&bytes)?;
                Ok(counted.map(convert::counted))
            }
        }
    }
}

impl Far {
    pub(super) fn new(pod: &Arc<Pod>, device: usize, dtype: BufferType, dims: Arc<[i64]>, ready: Signal) -> Far {
        Far { pod: pod.clone(), device, id: pod.number(), dtype, dims, ready, taken: AtomicBool::new(false) }
    }

    fn worker(&self) -> usize {
        self.pod.devices()[self.device].worker
    }

    fn fetch(&self) -> Result<Vec<u8>> {
        let buffer = self.id;
        self.pod.bytes(self.worker(), |request| Command::Fetch { request, buffer })
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.pod.links[self.worker()].tell(&Command::Free { buffer: self.id });
    }
}

impl std::fmt::Debug for Far {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Buffer({} {:?} on {})", self.dtype, self.dims, self.pod.links[self.worker()].name)
    }
}

impl Buffer {
    pub fn dims(&self) -> &[i64] {
        match self {
            Buffer::Here(b) => b.dims(),
            Buffer::Pod(far) => &far.dims,
        }
    }

    pub fn on_device_size(&self) -> Result<usize> {
        match self {
            Buffer::Here(b) => b.on_device_size(),
            Buffer::Pod(far) => Ok(far.dims.iter().product::<i64>() as usize * far.dtype.size()),
        }
    }

    pub fn is_deleted(&self) -> Result<bool> {
        match self {
            Buffer::Here(b) => b.is_deleted(),
            Buffer::Pod(far) => Ok(far.taken.load(Ordering::Relaxed)),
        }
    }

    pub fn ready_event(&self) -> Result<Event> {
        match self {
            Buffer::Here(b) => b.ready_event().map(Event::Here),
            Buffer::Pod(far) => Ok(Event::Pod(far.pod.clone(), far.ready.clone())),
        }
    }

    /// Copies the value to the host, row-major; waits for it.
    pub fn to_host(&self, dst: &mut [u8]) -> Result<()> {
        match self {
            Buffer::Here(b) => b.to_host(dst),
            Buffer::Pod(far) => {
                let bytes = far.fetch()?;
                if bytes.len() != dst.len() {
                    return Err(refused(format!("{} bytes came where {} were expected", bytes.len(), dst.len())));
                }
                dst.copy_from_slice(&bytes);
                Ok(())
            }
        }
    }

    pub fn copy_to_device(&self, device: &Device) -> Result<Buffer> {
        match (self, device) {
            (Buffer::Here(b), Device::Here(d)) => b.copy_to_device(d).map(Buffer::Here),
            (Buffer::Pod(far), Device::Pod(pod, index)) => {
                let place = &pod.devices()[*index];
                if place.worker != far.worker() {
                    // From one worker to another by way of the controller.
                    return Client::Pod(pod.clone()).buffer_from_host(&far.fetch()?, far.dtype, &far.dims, device);
                }
                let copy = Far::new(pod, *index, far.dtype, far.dims.clone(), far.ready.clone());
                pod.tell(place.worker, &Command::Copy { from: far.id, to: copy.id, device: place.local })?;
                Ok(Buffer::Pod(copy))
            }
            _ => Err(mixed()),
        }
    }
}

impl Event {
    pub fn is_ready(&self) -> Result<bool> {
        match self {
            Event::Here(e) => e.is_ready(),
            Event::Pod(_, signal) => Ok(signal.now().is_some()),
        }
    }

    pub fn await_ready(&self) -> Result<()> {
        match self {
            Event::Here(e) => e.await_ready(),
            Event::Pod(pod, signal) => signal.wait(|| pod.trouble()),
        }
    }

    pub fn on_ready(&self, then: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        match self {
            Event::Here(e) => e.on_ready(then),
            Event::Pod(_, signal) => {
                signal.then(then);
                Ok(())
            }
        }
    }

    /// Why a wait for it may be in vain.
    pub fn trouble(&self) -> Result<()> {
        match self {
            Event::Here(_) => Ok(()),
            Event::Pod(pod, _) => pod.trouble(),
        }
    }
}

impl FarProgram {
    /// Has all workers compile it whose devices it is for.
    fn compile(pod: &Arc<Pod>, program: &Program, options: &CompileOptions) -> Result<LoadedExecutable> {
        let of_ids = |ids: &Vec<i64>| ids.iter().map(|&i| i as usize).collect();
        let devices: Vec<usize> = options.assignment.as_ref().map_or_else(|| vec![0], of_ids);
        if let Some(none) = devices.iter().find(|d| **d >= pod.devices().len()) {
            return Err(refused(format!("the pod has no device {none}: it has {}", pod.devices().len())));
        }
        let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        devices.iter().enumerate().for_each(|(p, d)| parts.entry(pod.devices()[*d].worker).or_default().push(p));
        let alone = |w: &&usize| pod.links[**w].opened.get().is_some_and(|o| o.alone);
        if let Some(&one) = parts.keys().find(alone).filter(|_| parts.len() > 1) {
            return Err(refused(format!(
                "a program for devices of several workers: the CPU plugin of {} has no collectives between processes, so a mesh \
                 must be of one worker's devices there. `xlazy plugins install cpu-multi`, on each worker's machine, builds one that \
                 has them; then `%pod restart`",
                pod.links[one].name
            )));
        }
        let ids: Vec<i64> = devices.iter().map(|d| pod.devices()[*d].info.id).collect();
        let how = travelling(options, ids.clone());
        let mut hashed = program.code.to_vec();
        how.put(&mut hashed);
        let (id, hash, compares) = (pod.number(), xxh3_128(&hashed), parts.len() > 1);
        let ask = |&worker: &usize| {
            let (format, code) = (program.format.to_owned(), Bytes(program.code.to_vec()));
            let options = how.clone();
            pod.ask(worker, |request| Command::Compile { request, program: id, hash, format, code, options, compares })
        };
        // One of each kind compiles it, and the others load what that one made. All at once: a compiler may wait for the others'.
        let first = parts.keys().next().copied().unwrap_or(0);
        let (load, compile): (Vec<usize>, Vec<usize>) =
            parts.keys().partition(|w| **w != first && pod.alike(first, **w));
        let asked: Vec<_> = compile.iter().map(|w| ask(w).map(|a| (*w, a))).collect::<Result<_>>()?;
        let mut made = Vec::with_capacity(parts.len());
        for (worker, answer) in asked {
            made.push((worker, pod.made(worker, &answer, Way::Compiled)?));
        }
        let of_first = made[0].1.fingerprint.clone();
        let code = match load.is_empty() {
            true => Vec::new(),
            false => pod.about(first, About::Serialized { program: id }).unwrap_or_default(),
        };
        let give = |&worker: &usize| {
            let code = Bytes(code.clone());
            pod.ask(worker, |request| Command::Load { request, program: id, hash, code })
        };
        let given: Vec<_> = load.iter().map(|w| give(w).map(|a| (*w, a))).collect::<Result<_>>()?;
        for (worker, answer) in given {
            let loaded = pod.made(worker, &answer, Way::Loaded).map(|m| Made { fingerprint: of_first.clone(), ..m });
            // What cannot be carried over is compiled there, too.
            let made_there = || pod.made(worker, &ask(&worker)?, Way::Compiled);
            made.push((worker, loaded.or_else(|e| pod.trouble().map_err(|_| e).and_then(|()| made_there()))?));
        }
        let first: Made = made[0].1.clone();
        for (worker, other) in &made {
            let name = &pod.links[*worker].name;
            if (&other.fingerprint, &other.results) != (&first.fingerprint, &first.results) {
                let one = &pod.links[made[0].0].name;
                return Err(refused(format!(
                    "the compilers of {one} and {name} made different programs of the same text, whose results would be wrong \
                     together: are their plugins, processors and XLA_FLAGS the same?"
                )));
            }
            if !parts[worker].iter().map(|&p| ids[p]).eq(other.devices.iter().copied()) {
                return Err(refused(format!("{name} runs its part on the devices {:?}, in this order", other.devices)));
            }
        }
        let known = |(dtype, dims): (u32, Vec<i64>)| {
            let ty = BufferType::ALL.iter().find(|t| **t as u32 == dtype);
            ty.map(|t| (*t, dims.into())).ok_or_else(|| refused(format!("unknown element type {dtype}")))
        };
        let results = first.results.into_iter().map(known).collect::<Result<_>>()?;
        let (at, taken) = (Mutex::default(), taken(&String::from_utf8_lossy(program.code)));
        let (pod, code_bytes) = (pod.clone(), first.code_bytes);
        Ok(LoadedExecutable::Pod(Arc::new(FarProgram {
            pod,
            id,
            hash,
            at,
            devices,
            parts,
            results,
            code_bytes,
            taken,
        })))
    }

    /// Starts it on all workers that have a part of it. All that one could refuse is looked at before the first is told.
    fn run(&self, lists: &[Vec<&Buffer>], kept: &[i64]) -> Result<Vec<Vec<Buffer>>> {
        if lists.len() != self.devices.len() {
            return Err(refused(format!(
                "compiled for {} devices, given arguments for {}",
                self.devices.len(),
                lists.len()
            )));
        }
        let mut all: Vec<Vec<&Far>> = Vec::with_capacity(lists.len());
        for (list, &device) in lists.iter().zip(&self.devices) {
            let far = |b: &&'_ Buffer| match b {
                Buffer::Pod(far) if far.device == device && !far.taken.load(Ordering::Relaxed) => None,
                Buffer::Pod(far) if far.device == device => Some("was taken by another program"),
                Buffer::Pod(_) => Some("is on another device"),
                Buffer::Here(_) => Some("is not on the pod"),
            };
            if let Some((n, why)) = list.iter().enumerate().find_map(|(n, b)| far(b).map(|why| (n, why))) {
                return Err(refused(format!("argument {n} of a program {why}")));
            }
            all.push(list.iter().filter_map(|b| if let Buffer::Pod(far) = b { Some(far) } else { None }).collect());
        }
        self.pod.trouble()?;
        let together = self.devices.len() > 1;
        let mut outputs: Vec<Vec<Buffer>> = self.devices.iter().map(|_| Vec::new()).collect();
        for (&worker, positions) in &self.parts {
            let arguments = positions.iter().map(|&p| all[p].iter().map(|far| far.id).collect()).collect();
            // The signal is known with the run's number, and the results with theirs before it.
            let numbers: Vec<Vec<u64>> =
                positions.iter().map(|_| self.results.iter().map(|_| self.pod.number()).collect()).collect();
            let results = numbers.clone();
            let (program, hash, kept) = (self.id, self.hash, kept.to_vec());
            let command = |run| Command::Run { run, program, hash, arguments, results, kept };
            let ready = self.pod.run(worker, together, *lock(&self.at), command)?;
            for (&position, ids) in positions.iter().zip(numbers) {
                for (id, (dtype, dims)) in ids.into_iter().zip(&self.results) {
                    let (pod, device, dims) = (self.pod.clone(), self.devices[position], dims.clone());
                    let (ready, taken) = (ready.clone(), AtomicBool::new(false));
                    outputs[position].push(Buffer::Pod(Far { pod, device, id, dtype: *dtype, dims, ready, taken }));
                }
            }
        }
        for list in &all {
            let gone = self.taken.iter().filter(|n| !kept.contains(&(**n as i64)));
            gone.filter_map(|&n| list.get(n)).for_each(|far| far.taken.store(true, Ordering::Relaxed));
        }
        Ok(outputs)
    }

    fn first(&self) -> usize {
        self.parts.keys().next().copied().unwrap_or(0)
    }

    fn about(&self, about: fn(u64) -> About) -> Result<Vec<u8>> {
        self.pod.about(self.first(), about(self.id))
    }
}

impl Drop for FarProgram {
    fn drop(&mut self) {
        self.parts.keys().for_each(|&w| self.pod.links[w].tell(&Command::Forget { program: self.id }));
    }
}

impl LoadedExecutable {
    pub fn addressable_devices(&self) -> Vec<Device> {
        match self {
            LoadedExecutable::Here(e) => e.addressable_devices().into_iter().map(Device::Here).collect(),
            LoadedExecutable::Pod(far) => far.devices.iter().map(|&d| Device::Pod(far.pod.clone(), d)).collect(),
        }
    }

    /// Whoever looks at the workers wants to know which line runs it.
    pub fn called_at(&self, at: Place) {
        if let LoadedExecutable::Pod(far) = self {
            *lock(&far.at) = Some(at);
        }
    }

    /// As PJRT's: on one device.
    pub fn execute(&self, args: &[&Buffer], non_donatable: &[i64]) -> Result<Vec<Buffer>> {
        match self {
            LoadedExecutable::Here(e) => {
                let args: Vec<&pjrt::Buffer> = args.iter().map(here).collect::<Result<_>>()?;
                Ok(e.execute(&args, non_donatable)?.into_iter().map(Buffer::Here).collect())
            }
            LoadedExecutable::Pod(far) => Ok(far.run(&[args.to_vec()], non_donatable)?.swap_remove(0)),
        }
    }

    /// As PJRT's: on all devices of the program.
    pub fn execute_sharded(&self, args: &[Vec<&Buffer>], non_donatable: &[i64]) -> Result<Vec<Vec<Buffer>>> {
        match self {
            LoadedExecutable::Here(e) => {
                let mut lists = Vec::with_capacity(args.len());
                for list in args {
                    lists.push(list.iter().map(here).collect::<Result<Vec<_>>>()?);
                }
                let given = e.execute_sharded(&lists, non_donatable)?;
                Ok(given.into_iter().map(|all| all.into_iter().map(Buffer::Here).collect()).collect())
            }
            LoadedExecutable::Pod(far) => far.run(args, non_donatable),
        }
    }

    pub fn code_size(&self) -> Result<usize> {
        match self {
            LoadedExecutable::Here(e) => e.code_size(),
            LoadedExecutable::Pod(far) => Ok(far.code_bytes as usize),
        }
    }

    pub fn serialize(&self) -> Result<Vec<u8>> {
        match self {
            LoadedExecutable::Here(e) => e.serialize(),
            LoadedExecutable::Pod(_) => Err(stays()),
        }
    }

    pub fn optimized_program(&self) -> Result<(String, Vec<u8>)> {
        match self {
            LoadedExecutable::Here(e) => e.optimized_program(),
            LoadedExecutable::Pod(far) => {
                let (format, Bytes(code)) = parse(&far.about(|program| About::Optimized { program })?)?;
                Ok((format, code))
            }
        }
    }

    pub fn memory_stats(&self) -> Result<CompiledMemoryStats> {
        match self {
            LoadedExecutable::Here(e) => e.memory_stats(),
            LoadedExecutable::Pod(far) => {
                let needs: Vec<i64> = parse(&far.about(|program| About::Needs { program })?)?;
                convert::needed(&needs).ok_or_else(|| refused("a worker has answered something else".into()))
            }
        }
    }

    pub fn cost_analysis(&self) -> Result<Vec<(String, Value)>> {
        match self {
            LoadedExecutable::Here(e) => e.cost_analysis(),
            LoadedExecutable::Pod(far) => {
                let all: Vec<(String, Attribute)> = parse(&far.about(|program| About::Costs { program })?)?;
                Ok(all.into_iter().map(|(name, v)| (name, convert::plain(v))).collect())
            }
        }
    }
}

fn here<'a>(b: &&'a Buffer) -> Result<&'a pjrt::Buffer> {
    match b {
        Buffer::Here(b) => Ok(b),
        Buffer::Pod(_) => Err(mixed()),
    }
}

pub(super) fn parse<T: Wire>(bytes: &[u8]) -> Result<T> {
    let mut left = bytes;
    T::take(&mut left).filter(|_| left.is_empty()).ok_or_else(|| refused("a worker has answered something else".into()))
}

fn stays() -> Error {
    refused("programs of a pod are compiled on its workers, and stay there".into())
}

pub(super) fn mixed() -> Error {
    refused("a value of this process and one of a pod have met".into())
}

pub(super) fn refused(message: String) -> Error {
    Error { call: super::CALL, code: Code::InvalidArgument, message }
}

/// Which arguments a result takes the place of, as a program's text says.
fn taken(text: &str) -> Vec<usize> {
    let main = text.split_once("@main(").map_or("", |(_, rest)| rest.split("->").next().unwrap_or_default());
    let taken = main.split('%').skip(1).enumerate().filter(|(_, a)| a.contains("tf.aliasing_output"));
    taken.map(|(n, _)| n).collect()
}

#[cfg(test)]
mod tests {
    use super::taken;

    #[test]
    fn what_a_program_takes_is_read_from_its_text() {
        let text = "module @step attributes {a = 1} {\n  func.func public @main(%0: tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, \
                    [{\"x\"}]>, tf.aliasing_output = 0 : i32}, %1: tensor<f32>, %2: tensor<4xi32> {tf.aliasing_output = 1 : i32}) \
                    -> (tensor<2xf32>, tensor<4xi32>) {\n";
        assert_eq!(taken(text), [0, 2]);
        assert_eq!(taken(""), []);
    }
}
