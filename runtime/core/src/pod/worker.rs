//! A worker: a loop over PJRT calls that does what a controller tells it, in that order. It knows no tensor, traces nothing and
//! decides nothing, so it cannot differ from the controller in what there is.
use super::convert::{self, failure, info, options, value};
use super::files;
use super::store::Asked;
use super::wire::{self, About, Attribute, Bytes, Command, Failure, Made, Open, Opened, Said};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use xlazy_pjrt::{Buffer, BufferType, Client, Code, Device, Error, KeyValueStore, LoadedExecutable, Program, Result};

/// Which run was started last, and which has ended.
#[derive(Default)]
struct Progress {
    started: AtomicU64,
    ended: AtomicU64,
}

/// The way to the controller. What is said goes out in this order, from a thread of its own: plugins' threads say things, too.
#[derive(Clone)]
struct Line(Sender<Said>);

impl Line {
    fn send(&self, said: Said) {
        let _ = self.0.send(said);
    }
}

/// How often a worker says that it lives.
pub const BEAT: Duration = Duration::from_millis(500);

/// What makes the client; true where its plugin makes none that others can join.
pub type Opener = fn(&Open, Arc<dyn KeyValueStore>) -> std::result::Result<(Client, bool), Failure>;

/// Serves a controller until it goes away; `input` and `output` are the way to it.
pub fn serve(input: File, mut output: File, open: Opener) -> std::io::Result<()> {
    output.write_all(wire::greeting().as_bytes())?;
    let (say, said) = channel::<Said>();
    let line = Line(say);
    let speak = move || {
        for (said, number) in said.into_iter().zip(1..) {
            // The controller is gone: so is the reason to be here.
            if output.write_all(&wire::frame(number, &said)).is_err() {
                crate::sys::exit_now(0);
            }
        }
    };
    std::thread::Builder::new().name("speak".into()).spawn(speak)?;
    let asked = Arc::new(Asked::new(line.0.clone()));
    let (tell, commands) = channel();
    let hear = {
        let asked = asked.clone();
        move || hear(BufReader::with_capacity(1 << 20, input), &asked, &tell)
    };
    std::thread::Builder::new().name("hear".into()).spawn(hear)?;
    let progress = Arc::new(Progress::default());
    let beat = {
        let (line, progress) = (line.clone(), progress.clone());
        move || loop {
            let now = |n: &AtomicU64| n.load(Ordering::Relaxed);
            line.send(Said::Beat { started: now(&progress.started), ended: now(&progress.ended) });
            std::thread::sleep(BEAT);
        }
    };
    std::thread::Builder::new().name("beat".into()).spawn(beat)?;
    work(&commands, &line, asked, progress, open);
    crate::sys::exit_now(0)
}

/// Reads what the controller says. The end of it ends the worker, whatever it is at.
fn hear(mut input: BufReader<File>, asked: &Asked, tell: &Sender<Command>) {
    for number in 1.. {
        match wire::receive(&mut input, number) {
            Ok(Some(Command::Value { request, value })) => asked.answered(request, value.map(|v| v.0)),
            Ok(None) => crate::sys::exit_now(0),
            Ok(Some(command)) => drop(tell.send(command)),
            Err(e) => {
                std::eprintln!("xlazy worker: the controller sent what is no command ({e})");
                crate::sys::exit_now(3);
            }
        }
    }
}

/// What a worker holds.
struct Worker {
    client: Client,
    devices: Vec<Device>,
    programs: HashMap<u64, (u128, LoadedExecutable)>,
    /// A failure where making it failed: it is told to who wants the value.
    buffers: HashMap<u64, std::result::Result<Buffer, Failure>>,
    line: Line,
    progress: Arc<Progress>,
    runs: u64,
}

fn work(commands: &Receiver<Command>, line: &Line, asked: Arc<Asked>, progress: Arc<Progress>, open: Opener) {
    let Ok(Command::Open { open: how }) = commands.recv() else { return };
    let (client, alone) = match open(&how, asked) {
        Ok(made) => made,
        Err(e) => return refuse_to_open(line, e),
    };
    let devices = client.addressable_devices();
    // On CPUs that was tried: others may make what is good for one host alone, or wait for one another's compilers.
    let compiles_for = if client.platform_name() == "cpu" { crate::host::processor() } else { String::new() };
    let told = Opened {
        compiles_for,
        platform: client.platform_name(),
        version: client.platform_version(),
        process: std::process::id(),
        alone,
        devices: devices.iter().map(info).collect(),
    };
    line.send(Said::Opened { made: Ok(told) });
    let (programs, buffers) = Default::default();
    let mut worker = Worker { client, devices, programs, buffers, line: line.clone(), progress, runs: 0 };
    for command in commands {
        worker.obey(command);
    }
}

/// Says so, and stays until the controller has read it.
fn refuse_to_open(line: &Line, why: Failure) {
    line.send(Said::Opened { made: Err(why) });
    loop {
        std::thread::park();
    }
}

impl Worker {
    fn obey(&mut self, command: Command) {
        match command {
            Command::Compile { request, program, hash, format, code, options: how, compares } => {
                let code = Program { format: &format, code: &code.0 };
                let compiled = self.client.compile(&code, &options(&how));
                let made = compiled.and_then(|p| self.keep(program, hash, p, compares)).map_err(|e| failure(&e));
                self.line.send(Said::Compiled { request, made });
            }
            Command::Load { request, program, hash, code } => {
                let loaded = self.client.deserialize(&code.0);
                let made = loaded.and_then(|p| self.keep(program, hash, p, false)).map_err(|e| failure(&e));
                self.line.send(Said::Compiled { request, made });
            }
            Command::Upload { buffer, device, dtype, dims, bytes } => {
                let sent = self.upload(device, dtype, &dims, |_| Ok(bytes.0)).map_err(|e| failure(&e));
                self.buffers.insert(buffer, sent);
            }
            Command::Read { buffer, device, dtype, dims, path, runs } => {
                let read = |dtype| files::elements(&path, &runs, dtype, &dims);
                let sent = self.upload(device, dtype, &dims, read).map_err(|e| failure(&e));
                self.buffers.insert(buffer, sent);
            }
            Command::Run { run, program, hash, arguments, results, kept } => {
                if let Err(why) = self.run(run, program, hash, &arguments, &results, &kept) {
                    for id in results.into_iter().flatten() {
                        self.buffers.insert(id, Err(why.clone()));
                    }
                    self.progress.ended.fetch_max(run, Ordering::Relaxed);
                    self.line.send(Said::Ended { run, failed: Some(why), started: false });
                }
            }
            Command::Fetch { request, buffer } => {
                let line = self.line.clone();
                let tell = move |got: Result<Vec<u8>>| {
                    line.send(Said::Answer { request, answer: got.map(Bytes).map_err(|e| failure(&e)) });
                };
                match self.buffer(buffer).and_then(|b| b.to_host_async().map_err(|e| failure(&e))) {
                    Ok(copy) => drop(copy.on_ready(tell)),
                    Err(why) => self.line.send(Said::Answer { request, answer: Err(why) }),
                }
            }
            Command::Copy { from, to, device } => {
                let copied = self.buffer(from).and_then(|b| {
                    let device = self.device(device).map_err(|e| failure(&e))?;
                    b.copy_to_device(device).map_err(|e| failure(&e))
                });
                self.buffers.insert(to, copied);
            }
            Command::Free { buffer } => drop(self.buffers.remove(&buffer)),
            Command::Forget { program } => drop(self.programs.remove(&program)),
            Command::Ask { request, about } => {
                let answer = self.answer(about).map(Bytes).map_err(|e| failure(&e));
                self.line.send(Said::Answer { request, answer });
            }
            Command::Open { .. } | Command::Value { .. } => {}
        }
    }

    fn keep(&mut self, number: u64, hash: u128, program: LoadedExecutable, compares: bool) -> Result<Made> {
        let types = program.output_types()?.into_iter().map(|t| t as u32);
        let results = types.zip(program.output_dims()?).collect();
        let devices = program.addressable_devices().iter().map(|d| i64::from(d.id())).collect();
        // Of programs that run together alone: what it is made of is all of the code where a plugin makes none.
        let print = |p: &LoadedExecutable| p.fingerprint().or_else(|_| Ok(p.optimized_program()?.1));
        let fingerprint = Bytes(if compares { print(&program)? } else { Vec::new() });
        let code_bytes = program.code_size().unwrap_or(0) as u64;
        self.programs.insert(number, (hash, program));
        Ok(Made { results, devices, fingerprint, code_bytes })
    }

    fn device(&self, device: u32) -> Result<&Device> {
        self.devices.get(device as usize).ok_or_else(|| unknown("device", device.into()))
    }

    fn buffer(&self, id: u64) -> std::result::Result<&Buffer, Failure> {
        match self.buffers.get(&id) {
            Some(Ok(buffer)) => Ok(buffer),
            Some(Err(why)) => Err(why.clone()),
            None => Err(failure(&unknown("buffer", id))),
        }
    }

    fn program(&self, program: u64) -> Result<&(u128, LoadedExecutable)> {
        self.programs.get(&program).ok_or_else(|| unknown("program", program))
    }

    fn upload(
        &self,
        device: u32,
        dtype: u32,
        dims: &[i64],
        bytes: impl FnOnce(BufferType) -> Result<Vec<u8>>,
    ) -> Result<Buffer> {
        let known = BufferType::ALL.iter().find(|t| **t as u32 == dtype);
        let dtype = known.ok_or_else(|| unknown("element type", dtype.into()))?;
        self.client.buffer_from_host(&bytes(*dtype)?, *dtype, dims, self.device(device)?)
    }

    /// Starts a program. All that PJRT would refuse is looked at first: one that is refused on one device lets the others wait.
    fn run(
        &mut self,
        run: u64,
        program: u64,
        hash: u128,
        arguments: &[Vec<u64>],
        results: &[Vec<u64>],
        kept: &[i64],
    ) -> std::result::Result<(), Failure> {
        if run != self.runs + 1 {
            return Err(failure(&wrong(format!("run {run} came where run {} was expected", self.runs + 1))));
        }
        self.runs = run;
        let (own, executable) = self.program(program).map_err(|e| failure(&e))?;
        if *own != hash {
            return Err(failure(&wrong(format!("run {run} is of another program than program {program} is here"))));
        }
        let of = |list: &Vec<u64>| list.iter().map(|id| self.buffer(*id)).collect();
        let lists: Vec<Vec<&Buffer>> = arguments.iter().map(of).collect::<std::result::Result<_, _>>()?;
        if lists.iter().flatten().any(|b| b.is_deleted().unwrap_or(false)) {
            return Err(failure(&wrong(format!("run {run} was given a buffer that another program has taken"))));
        }
        let (devices, wanted) = (executable.addressable_devices().len(), executable.num_outputs());
        if lists.len() != devices || results.len() != devices || results.iter().any(|r| r.len() != wanted) {
            return Err(failure(&wrong(format!("run {run} is not for {devices} devices with {wanted} results each"))));
        }
        let by_device = match devices {
            1 => executable.execute(&lists[0], kept).map(|all| vec![all]),
            _ => executable.execute_sharded(&lists, kept),
        };
        let by_device = by_device.map_err(|e| failure(&e))?;
        self.progress.started.store(run, Ordering::Relaxed);
        self.line.send(Said::Started { run });
        let ended = Ended::new(run, &self.line, &self.progress);
        for (outputs, ids) in by_device.into_iter().zip(results) {
            if let Some(first) = outputs.first() {
                let ended = ended.clone();
                let told = first.ready_event().and_then(|e| e.on_ready(move |r| ended.of_one(r)));
                // One that cannot be asked is told where its value is read.
                drop(told);
            }
            self.buffers.extend(ids.iter().copied().zip(outputs.into_iter().map(Ok)));
        }
        Ok(())
    }

    fn answer(&self, about: About) -> Result<Vec<u8>> {
        use super::wire::Wire;
        let mut out = Vec::new();
        match about {
            About::Optimized { program } => {
                let (format, bytes) = self.program(program)?.1.optimized_program()?;
                (format, Bytes(bytes)).put(&mut out);
            }
            About::Serialized { program } => out = self.program(program)?.1.serialize()?,
            About::Costs { program } => {
                let costs = self.program(program)?.1.cost_analysis()?;
                let costs: Vec<(String, Attribute)> = costs.into_iter().map(|(name, v)| (name, value(v))).collect();
                costs.put(&mut out);
            }
            About::Needs { program } => convert::needs(&self.program(program)?.1.memory_stats()?).put(&mut out),
            About::File { path, at, length } => {
                let (size, bytes) = files::read(&path, &[(at, length)])?;
                (size, Bytes(bytes)).put(&mut out);
            }
            About::Memory { device } => {
                self.device(device)?.memory_stats()?.map(|m| convert::memory(&m)).put(&mut out);
            }
        }
        Ok(out)
    }
}

/// The devices of a run, each of which ends by itself; the last one tells, and the first that fails: the others may wait for it.
#[derive(Clone)]
struct Ended(Arc<OfAll>);

struct OfAll {
    run: u64,
    line: Line,
    progress: Arc<Progress>,
    failed: AtomicBool,
}

impl Ended {
    fn new(run: u64, line: &Line, progress: &Arc<Progress>) -> Ended {
        let (line, progress) = (line.clone(), progress.clone());
        Ended(Arc::new(OfAll { run, line, progress, failed: AtomicBool::default() }))
    }

    fn of_one(&self, result: Result<()>) {
        let Err(e) = result else { return };
        if !self.0.failed.swap(true, Ordering::Relaxed) {
            self.0.line.send(Said::Ended { run: self.0.run, failed: Some(failure(&e)), started: true });
        }
    }
}

impl Drop for OfAll {
    fn drop(&mut self) {
        self.progress.ended.fetch_max(self.run, Ordering::Relaxed);
        if !self.failed.load(Ordering::Relaxed) {
            self.line.send(Said::Ended { run: self.run, failed: None, started: true });
        }
    }
}

fn unknown(what: &str, number: u64) -> Error {
    wrong(format!("there is no {what} {number} here"))
}

fn wrong(message: String) -> Error {
    Error { call: "worker", code: Code::InvalidArgument, message }
}
