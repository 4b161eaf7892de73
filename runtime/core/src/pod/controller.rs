//! The controller's side: workers that are started together, told what to do, listened to, and found dead. Whatever happens to
//! one is told by its name and ends the pod: what the others hold is of no use without it.
use super::arrival::Arrival;
use super::convert;
use super::link::{self, Ends, Link, lock};
use super::signal::Signal;
use super::spec::Spec;
use super::store::Values;
use super::wire::{self, About, Bytes, Command, DeviceInfo, Failure, Made, Open, Said};
use crate::text::Place as CellPlace;
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};
use xlazy_mime::units::bytes;
use xlazy_pjrt::{Code, Error, Result};

/// Workers that are one client together.
pub struct Pod {
    pub links: Vec<Link>,
    /// Of all workers, one behind the other.
    devices: OnceLock<Vec<Place>>,
    /// Why it is over.
    broken: OnceLock<String>,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
    values: Mutex<Values>,
}

/// A device: the worker that has it, which of the worker's it is, and what it is.
#[derive(Clone, Debug)]
pub struct Place {
    pub worker: usize,
    pub local: u32,
    pub info: DeviceInfo,
}

/// What is still to come.
#[derive(Default)]
struct Waiting {
    answers: HashMap<u64, Answer>,
    runs: HashMap<(usize, u64), Run>,
}

/// A run on one worker.
struct Run {
    signal: Signal,
    /// Others wait for this worker's part.
    together: bool,
    /// It failed while others had part in it: why, and how many looks ago.
    failed: Option<(Error, u32)>,
}

/// What a question waits for.
#[derive(Clone, Default)]
pub struct Answer {
    pub signal: Signal,
    said: Arc<Mutex<Option<Said>>>,
}

/// How often the workers are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// A worker that was not heard in so many looks is told of: five of its beats.
const UNHEARD: u32 = 10;
/// How long the way to a worker may take to reach it.
const REACHED: Duration = Duration::from_secs(90);
/// What may wait to be written to one worker.
const MOST_QUEUED: usize = 256 << 20;
/// In so many looks a worker is found dead: what fails on the others because of that is told as its death.
const FOUND: u32 = 2;
/// What to do when it is over.
const ANEW: &str = "`%recover` starts all workers anew, and runs the cells again that made what they held";
/// How long what a worker wrote last may take to come.
const LAST_WORDS: Duration = Duration::from_millis(200);

impl Pod {
    /// Starts all workers at the same time, and waits until each has its client: they wait for one another.
    ///
    /// Errors: who did not start, and why.
    pub fn start(spec: &Spec) -> std::result::Result<Arc<Pod>, String> {
        let several = spec.workers.len() > 1;
        let (mut links, mut ends) = (Vec::new(), Vec::new());
        let own = || Arrival::own().map_err(|e| format!("xlazy's own files cannot be read to be copied: {e}"));
        let arrival = spec.arrives.then(own).transpose()?.map(Arc::new);
        for (i, (host, command)) in spec.workers.iter().enumerate() {
            let named = !host.is_empty() && (several || host != "local");
            let name = if named { format!("worker {i} ({host})") } else { format!("worker {i}") };
            let (link, end) = Link::start(name.clone(), command, arrival.clone())
                .map_err(|e| format!("{name} could not be started: {e}"))?;
            links.push(link);
            ends.push(end);
        }
        let (broken, next, waiting, values, devices) = Default::default();
        let pod = Arc::new(Pod { links, devices, broken, next, waiting, values });
        for (i, (host, _)) in spec.workers.iter().enumerate() {
            let (worker, workers) = (i as u32, spec.workers.len() as u32);
            let (host, platform, variables) = (host.clone(), spec.platform.clone(), spec.variables(i));
            pod.links[i].tell(&Command::Open { open: Open { worker, workers, host, platform, variables } });
        }
        let failed = |e: std::io::Error| format!("no thread for a pod: {e}");
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        for (i, ends) in ends.into_iter().enumerate() {
            let Ends { output, errors, asks } = ends;
            let written = Arc::new(AtomicBool::new(false));
            let (of, done) = (Arc::downgrade(&pod), written.clone());
            let listen = move || {
                listen(&of, i, std::io::BufReader::new(errors));
                done.store(true, Ordering::Relaxed);
            };
            thread("worker's words").spawn(listen).map_err(failed)?;
            let of = Arc::downgrade(&pod);
            let size = arrival.as_ref().map_or(0, |a| a.size());
            let ask = move |of: &Weak<Pod>| {
                let (Some(pod), Some(asks)) = (of.upgrade(), &asks) else { return };
                pod.links[i].arriving.store(true, Ordering::Relaxed);
                crate::host::note(&format!("{}: xlazy is copied there ({})", pod.links[i].name, bytes(size as u64)));
                let _ = asks.send(());
            };
            let ask = (size > 0).then_some(ask);
            thread("from a worker").spawn(move || hear(&of, i, output, ask, &written)).map_err(failed)?;
        }
        let of = Arc::downgrade(&pod);
        thread("pulse").spawn(move || look_after(&of)).map_err(failed)?;
        let start = Instant::now();
        loop {
            if let Some(why) = pod.broken.get() {
                return Err(why.clone());
            }
            match pod.links.iter().find(|l| l.opened.get().is_none()) {
                None => break,
                Some(link) if start.elapsed() > REACHED && !link.was_reached() => {
                    pod.end(format!("{} was not reached in {REACHED:?}: {}", link.name, link.last_words()));
                }
                Some(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        let devices = pod.links.iter().enumerate().flat_map(|(worker, link)| {
            let of = link.opened.get().map(|o| o.devices.clone()).unwrap_or_default();
            of.into_iter().zip(0..).map(move |(info, local)| Place { worker, local, info })
        });
        let _ = pod.devices.set(devices.collect());
        Ok(pod)
    }

    pub fn devices(&self) -> &[Place] {
        self.devices.get().map_or(&[], Vec::as_slice)
    }

    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Why nothing more can be had of it: it is over, or a worker is not heard.
    pub fn trouble(&self) -> Result<()> {
        match self.broken.get().cloned().or_else(|| self.unheard()) {
            Some(why) => Err(unavailable(why)),
            None => Ok(()),
        }
    }

    /// Why it is over.
    pub fn over(&self) -> Option<&str> {
        self.broken.get().map(String::as_str)
    }

    fn unheard(&self) -> Option<String> {
        let silent = |l: &&Link| l.unheard.load(Ordering::Relaxed) >= UNHEARD;
        let link = self.links.iter().find(silent)?;
        let seconds = LOOK.as_secs_f64() * f64::from(link.unheard.load(Ordering::Relaxed));
        Some(format!(
            "{} was not heard for {seconds:.1} s and {}: it is stopped, or the network to it is cut. Where it comes back, run \
             the cell again; `%pod restart` starts all workers anew, and then `%recover` runs the cells again that made what \
             they held",
            link.name,
            link.behind()
        ))
    }

    /// It is over: nothing that is waited for comes any more.
    fn end(&self, why: String) {
        let _ = self.broken.set(why.clone());
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        let answers = waiting.answers.into_values().map(|a| a.signal);
        for signal in answers.chain(waiting.runs.into_values().map(|r| r.signal)) {
            signal.give(Err(unavailable(why.clone())));
        }
        self.links.iter().for_each(Link::kill);
    }

    /// Waits until what a worker was told before is not too much. An interrupt may unwind here, and nowhere where something is
    /// told: what one worker was told of a program the others must be told, too.
    pub fn room(&self, worker: usize) -> Result<()> {
        while self.links[worker].queued() > MOST_QUEUED {
            self.trouble()?;
            if crate::host::running() {
                crate::sys::check_interrupt();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Tells a worker something.
    pub fn tell(&self, worker: usize, command: &Command) -> Result<()> {
        if let Some(why) = self.broken.get() {
            return Err(unavailable(why.clone()));
        }
        self.links[worker].tell(command);
        Ok(())
    }

    /// Asks a worker.
    pub fn ask(&self, worker: usize, question: impl FnOnce(u64) -> Command) -> Result<Answer> {
        let (request, answer) = (self.number(), Answer::default());
        lock(&self.waiting).answers.insert(request, answer.clone());
        let told = self.tell(worker, &question(request));
        if told.is_err() {
            lock(&self.waiting).answers.remove(&request);
        }
        // It may have ended between the two.
        self.give_up();
        told.map(|()| answer)
    }

    fn give_up(&self) {
        if let Some(why) = self.broken.get() {
            self.end(why.clone());
        }
    }

    /// Waits for an answer.
    pub fn wait(&self, worker: usize, answer: &Answer) -> Result<Said> {
        answer.signal.wait(|| self.trouble())?;
        let said = lock(&answer.said).take();
        said.ok_or_else(|| unavailable(format!("{} has not answered", self.links[worker].name)))
    }

    /// Who says something, where there are several.
    pub fn who(&self, worker: usize) -> Option<&str> {
        (self.links.len() > 1).then(|| self.links[worker].name.as_str())
    }

    pub fn failure(&self, worker: usize, of: &Failure) -> Error {
        convert::error(of, self.who(worker))
    }

    /// What a worker answers in bytes.
    pub fn bytes(&self, worker: usize, question: impl FnOnce(u64) -> Command) -> Result<Vec<u8>> {
        let answer = self.ask(worker, question)?;
        match self.wait(worker, &answer)? {
            Said::Answer { answer: Ok(Bytes(bytes)), .. } => Ok(bytes),
            Said::Answer { answer: Err(e), .. } => Err(self.failure(worker, &e)),
            _ => Err(unavailable(format!("{} has answered something else", self.links[worker].name))),
        }
    }

    pub fn about(&self, worker: usize, about: About) -> Result<Vec<u8>> {
        self.bytes(worker, |request| Command::Ask { request, about })
    }

    /// Whether a worker can load what another one has compiled.
    pub fn alike(&self, one: usize, other: usize) -> bool {
        let kind = |w: usize| self.links[w].opened.get().map(|o| (&o.platform, &o.version, &o.compiles_for));
        kind(one) == kind(other) && kind(one).is_some_and(|(_, _, compiles_for)| !compiles_for.is_empty())
    }

    /// What a worker's compiler made, or was given.
    pub fn made(&self, worker: usize, answer: &Answer, way: Way) -> Result<Made> {
        match self.wait(worker, answer)? {
            Said::Compiled { made: Ok(made), .. } => {
                self.links[worker].made[way as usize].fetch_add(1, Ordering::Relaxed);
                Ok(made)
            }
            Said::Compiled { made: Err(e), .. } => Err(self.failure(worker, &e)),
            _ => Err(unavailable(format!("{} has answered something else", self.links[worker].name))),
        }
    }

    /// Starts a program on a worker, of this line: it comes when all of its devices have ended.
    pub fn run(
        &self,
        worker: usize,
        together: bool,
        at: Option<CellPlace>,
        command: impl FnOnce(u64) -> Command,
    ) -> Result<Signal> {
        let (link, signal) = (&self.links[worker], Signal::default());
        let mut issued = lock(&link.issued);
        let run = *issued + 1;
        lock(&self.waiting).runs.insert((worker, run), Run { signal: signal.clone(), together, failed: None });
        self.tell(worker, &command(run)).inspect_err(|_| drop(lock(&self.waiting).runs.remove(&(worker, run))))?;
        *issued = run;
        drop(issued);
        *lock(&link.last) = at;
        self.give_up();
        Ok(signal)
    }

    fn heard(&self, worker: usize, said: Said) {
        let link = &self.links[worker];
        match said {
            Said::Opened { made: Ok(opened) } => drop(link.opened.set(opened)),
            Said::Opened { made: Err(e) } => {
                self.end(format!("{} has no client: {}", link.name, e.message));
            }
            Said::Beat { started, ended } => {
                link.started.fetch_max(started, Ordering::Relaxed);
                link.ended.fetch_max(ended, Ordering::Relaxed);
            }
            Said::Started { run } => drop(link.started.fetch_max(run, Ordering::Relaxed)),
            Said::Ended { run, failed, started } => {
                link.started.fetch_max(run, Ordering::Relaxed);
                link.ended.fetch_max(run, Ordering::Relaxed);
                let mut waiting = lock(&self.waiting);
                let Some(mut of) = waiting.runs.remove(&(worker, run)) else { return };
                match failed.map(|e| self.failure(worker, &e)) {
                    // What it says may be that another one is gone.
                    Some(e) if of.together && started => {
                        of.failed = Some((e, 0));
                        waiting.runs.insert((worker, run), of);
                    }
                    // The others wait in it for this one.
                    Some(e) if of.together => {
                        drop(waiting);
                        let what = format!("{} could not start program {run}, and the others wait for it", link.name);
                        self.end(over(what, &e));
                        of.signal.give(Err(e));
                    }
                    failed => of.signal.give(failed.map_or(Ok(()), Err)),
                }
            }
            Said::Compiled { request, .. } | Said::Answer { request, .. } => {
                let Some(answer) = lock(&self.waiting).answers.remove(&request) else { return };
                *lock(&answer.said) = Some(said);
                answer.signal.give(Ok(()));
            }
            Said::Get { request, key, waits } => {
                let told = lock(&self.values).get(worker, request, key, waits);
                told.into_iter().for_each(|(to, command)| self.links[to].tell(&command));
            }
            Said::Put { key, value } => {
                let told = lock(&self.values).put(key, value.0);
                told.into_iter().for_each(|(to, command)| self.links[to].tell(&command));
            }
        }
    }

    /// What failed so many looks ago, while no worker was found dead, is the end: the other devices wait in it for that one.
    fn tell_failures(&self) {
        let mut waiting = lock(&self.waiting);
        let mut told = waiting.runs.iter_mut().filter_map(|(&(worker, run), of)| {
            let (e, looks) = of.failed.as_mut()?;
            *looks += 1;
            let name = &self.links[worker].name;
            (*looks > FOUND).then(|| over(format!("{name} failed in program {run}, and the others wait for it"), e))
        });
        let why = told.next();
        drop(told);
        drop(waiting);
        if let Some(why) = why {
            self.end(why);
        }
    }

    /// A worker's output has ended, or is none of a worker.
    fn is_gone(&self, worker: usize, why: &str) {
        let link = &self.links[worker];
        let end = link::how(link.end());
        let words = link.last_words();
        let words = if words.is_empty() { words } else { format!(". It wrote:\n{words}") };
        self.end(match (why, link.opened.get()) {
            ("", Some(_)) => format!("{} died ({end}): it {}. {ANEW}{words}", link.name, link.behind()),
            ("", None) => format!("{} did not start ({end}){words}", link.name),
            (why, _) => format!("{} {why}{words}", link.name),
        });
    }

    pub fn status(&self) -> Vec<Status> {
        let one = |link: &Link| Status {
            name: link.name.clone(),
            process: link.opened.get().map_or(0, |o| o.process),
            programs: [*lock(&link.issued), link.started.load(Ordering::Relaxed), link.ended.load(Ordering::Relaxed)],
            made: [0, 1].map(|k| link.made[k].load(Ordering::Relaxed)),
            last_program: *lock(&link.last),
        };
        self.links.iter().map(one).collect()
    }
}

/// How a worker comes to a program.
#[derive(Clone, Copy)]
pub enum Way {
    Compiled,
    Loaded,
}

/// How far a worker is.
pub struct Status {
    pub name: String,
    pub process: u32,
    /// Programs that it was told to run, has started, has ended.
    pub programs: [u64; 3],
    /// Those that it has compiled, and loaded as another has compiled them.
    pub made: [u64; 2],
    pub last_program: Option<CellPlace>,
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.links.iter().for_each(Link::kill);
    }
}

fn unavailable(message: String) -> Error {
    Error { call: super::CALL, code: Code::Unavailable, message }
}

/// Why it is over, and what to do.
fn over(what: String, why: &Error) -> String {
    format!("{what}: {}. {ANEW}", why.message.trim_end_matches('.'))
}

/// Reads all that a worker says.
fn hear(
    of: &Weak<Pod>,
    i: usize,
    mut output: std::io::BufReader<std::process::ChildStdout>,
    ask: Option<impl Fn(&Weak<Pod>)>,
    written: &AtomicBool,
) {
    let mut why = String::new();
    let greeted = link::greeted(&mut output, ask.as_ref().map(|ask| move || ask(of)));
    // What it is told waits for this.
    drop(ask);
    match greeted {
        Err(said) => why = said,
        Ok(()) => {
            if let Some(pod) = of.upgrade() {
                pod.links[i].reached.store(true, Ordering::Relaxed);
            }
            for number in 1.. {
                let said = wire::receive(&mut output, number);
                let Some(pod) = of.upgrade() else { return };
                pod.links[i].unheard.store(0, Ordering::Relaxed);
                match said {
                    Ok(Some(said)) => pod.heard(i, said),
                    Ok(None) => break,
                    Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
                        why = format!("wrote what is no answer ({e}): something prints to its standard output");
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
    }
    let limit = Instant::now() + LAST_WORDS;
    while !written.load(Ordering::Relaxed) && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(2));
    }
    if let Some(pod) = of.upgrade() {
        pod.is_gone(i, &why);
    }
}

/// What a worker writes arrives with its name.
fn listen(of: &Weak<Pod>, i: usize, errors: impl BufRead) {
    for line in errors.split(b'\n') {
        let (Ok(line), Some(pod)) = (line, of.upgrade()) else { return };
        let line = String::from_utf8_lossy(&line);
        let link = &pod.links[i];
        link.wrote(&line);
        if link.opened.get().is_some() {
            crate::host::note(&format!("{}: {line}", link.name));
        }
    }
}

/// Counts how long each was not heard: in looks, so that a time in which this process stood still counts for nobody.
fn look_after(of: &Weak<Pod>) {
    loop {
        std::thread::sleep(LOOK);
        let Some(pod) = of.upgrade().filter(|p| p.over().is_none()) else { return };
        pod.links.iter().filter(|l| l.reached.load(Ordering::Relaxed)).for_each(|l| {
            l.unheard.fetch_add(1, Ordering::Relaxed);
        });
        pod.tell_failures();
    }
}
