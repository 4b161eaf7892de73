//! The session process as the kernel sees it: started, asked, listened to, and found dead.
use super::channel::{BetweenCells, Channel, News, Queue};
use crate::eval::text::sources::Sources;
use crate::eval::toolchain::install::Installation;
use crate::guard::Guard;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use xlazy_mime::{Ask, Bundle, Frame, MOST_BYTES, Question, RunCell, Tell};

pub struct SessionProcess {
    line: Channel,
    news: Arc<Queue>,
    pid: i32,
    /// It was let go.
    gone: bool,
    /// Where the session notes the run and the line that it is at.
    at: File,
    /// Libraries that it has loaded before a cell needed them.
    loaded: HashSet<OsString>,
    /// It was told to tell of each sync and compilation.
    pub streams: bool,
}

impl SessionProcess {
    /// `groups` is the folder in which objects find the definition groups that they were linked to; what comes between
    /// cells goes to `late`.
    pub fn start(
        install: &Installation,
        groups: &Path,
        late: &BetweenCells,
        sources: Sources,
    ) -> Result<SessionProcess, String> {
        let (ours, theirs) = UnixStream::pair().map_err(|e| e.to_string())?;
        let (started, start) = channel();
        let (install, groups) = (install.clone(), groups.to_owned());
        let path = groups.join("at");
        // Held open, so that it can be read whatever becomes of the folder.
        let at = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let at = at.and_then(|file| file.write_all_at(&[0; 12], 0).map(|()| file));
        let at = at.map_err(|e| format!("{}: {e}", path.display()))?;
        let frames = ours.try_clone().map_err(|e| e.to_string())?;
        let (line, news) = (Channel::new(ours), Arc::new(Queue::new()));
        let to = Out { news: news.clone(), late: late.clone() };
        let answers = line.clone();
        // The thread that starts the process must live as long as it does: Linux ends a PR_SET_PDEATHSIG child when
        // the *thread* that forked it ends.
        std::thread::Builder::new()
            .name("xlazy-session".into())
            .spawn(move || match spawn(&install, &groups, theirs) {
                Ok((mut child, out, err)) => {
                    let process = match pidfd_open(rustix::process::Pid::from_child(&child), PidfdFlags::empty()) {
                        Ok(process) => process,
                        Err(e) => {
                            let _ = child.kill();
                            let _ = child.wait();
                            return drop(started.send(Err(format!("the session cannot be watched: {e}"))));
                        }
                    };
                    let _ = started.send(Ok(child.id() as i32));
                    let _guard = Guard::of(child.id());
                    let (out, err, framed) =
                        (Raw::new(false, Some(out)), Raw::new(true, Some(err)), Raw::new(false, None));
                    Pump {
                        child,
                        process,
                        _guard,
                        frames: Some(frames),
                        buffer: Vec::new(),
                        out,
                        err,
                        framed,
                        to,
                        line: answers,
                    }
                    .run();
                }
                Err(e) => drop(started.send(Err(format!("{}: {e}", install.session_exe.display())))),
            })
            .map_err(|e| e.to_string())?;
        let pid = start.recv().unwrap_or_else(|_| Err("the session's thread ended".into()))?;
        let (queue, late) = (news.clone(), late.clone());
        std::thread::Builder::new()
            .name("xlazy-late".into())
            .spawn(move || queue.hand_on(&late, &sources))
            .map_err(|e| e.to_string())?;
        Ok(SessionProcess { line, news, pid, gone: false, at, loaded: HashSet::new(), streams: false })
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    pub fn line(&self) -> &Channel {
        &self.line
    }

    /// The line of the cell that this run was at last, also when the process is gone; none before the first statement.
    pub fn at_line(&self, run: u64) -> Option<u32> {
        let mut noted = [0; 12];
        self.at.read_exact_at(&mut noted, 0).ok()?;
        let (of, line) = noted.split_first_chunk::<8>()?;
        let line = u32::from_le_bytes(line.try_into().ok()?);
        (u64::from_le_bytes(*of) == run && line > 0).then_some(line)
    }

    /// How the process ended, if it has.
    pub fn death(&self) -> Option<String> {
        self.news.death()
    }

    /// Has it load the libraries that cells are linked to, unless it has them: it opens them by a descriptor, and the loader,
    /// which goes by paths, need not look for them.
    pub fn load<'a>(&mut self, libraries: impl Iterator<Item = &'a Path>) {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let new: Vec<&Path> = libraries.filter(|path| self.loaded.insert(name(path))).collect();
        if !new.is_empty() {
            let paths: Vec<_> = new.iter().map(|path| path.to_string_lossy()).collect();
            let _ = self.line.call(Question::Load, &paths.join("\0"), PATIENCE);
        }
    }

    /// Starts a cell; its news are [`SessionProcess::next`]'s until [`SessionProcess::ended`].
    pub fn run(&self, cell: RunCell) {
        self.news.set_running(true);
        self.line.tell(&Ask::Run(cell));
    }

    pub fn ended(&self) {
        self.news.set_running(false);
    }

    pub fn next(&self) -> News {
        self.news.pop(None).expect("without a limit it waits")
    }

    /// What has come by now, except for the cell's end; whether that has come.
    pub fn before_the_end(&self) -> (Option<News>, bool) {
        self.news.before_the_end()
    }
}

/// How long loading may take that runs the initialisers of libraries.
const PATIENCE: Duration = Duration::from_secs(60);
/// A session ends at once, unless it is writing a compiled program down.
const LAST_WRITES: Duration = Duration::from_millis(2500);

impl SessionProcess {
    /// Lets it go, and waits until it is gone; one that does not notice, because a cell hangs, is killed.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.gone, true) {
            return;
        }
        self.line.tell(&Ask::Shutdown);
        self.line.close();
        self.news.set_running(true);
        let end = std::time::Instant::now() + LAST_WRITES;
        let left = || end.saturating_duration_since(std::time::Instant::now());
        let gone = |n| matches!(n, News::Gone(_));
        let ended = || std::iter::from_fn(|| self.news.pop(Some(left()))).any(gone);
        if self.news.death().is_none() && !ended() {
            signal(self.pid, Signal::SIGKILL);
        }
        self.news.close();
    }
}

impl Drop for SessionProcess {
    fn drop(&mut self) {
        self.end();
    }
}

pub fn signal(pid: i32, signal: Signal) {
    if pid > 0 {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

fn spawn(
    install: &Installation,
    groups: &Path,
    frames: UnixStream,
) -> std::io::Result<(Child, PipeReader, PipeReader)> {
    let (out, out_end) = std::io::pipe()?;
    let (err, err_end) = std::io::pipe()?;
    for end in [&out, &err] {
        fcntl(end.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    }
    let mut libraries = vec![groups.to_owned()];
    libraries.extend(std::env::split_paths(&install.library_path()));
    let programs = install.program_cache.as_ref().map_or("off".into(), |d| d.clone().into_os_string());
    let mut session = Command::new(&install.session_exe);
    if let Some(notebook) = &install.notebook {
        session.arg0(notebook).args(&install.arguments);
    }
    let child = session
        .process_group(0)
        .stdin(OwnedFd::from(frames))
        .stdout(out_end)
        .stderr(err_end)
        .env("XLAZY_AT", groups.join("at"))
        .envs(install.plugins())
        .env("XLAZY_PROGRAM_CACHE", programs)
        .env("XLAZY_POD", install.pod.as_deref().unwrap_or_default())
        .env("LD_LIBRARY_PATH", std::env::join_paths(libraries).unwrap_or_default())
        .env("XLAZY_SHOWN", if install.shown { "1" } else { "0" })
        .env("TF_ENABLE_ONEDNN_OPTS", "0")
        .env("TF_CPP_MIN_LOG_LEVEL", "3")
        .spawn()?;
    Ok((child, out, err))
}

/// Where the pump puts what it has read.
struct Out {
    news: Arc<Queue>,
    late: BetweenCells,
}

impl Out {
    fn send(&self, news: News) {
        self.news.push(news, &self.late);
    }
}

/// Reads everything the session says. Text written to its descriptors comes before a frame that was sent after it.
struct Pump {
    child: Child,
    /// Says that it is gone: the other end of its line does not, when a process that it forked holds it open.
    process: OwnedFd,
    /// Ends what its cells have started when the kernel goes away without a word.
    _guard: Guard,
    frames: Option<UnixStream>,
    buffer: Vec<u8>,
    out: Raw,
    err: Raw,
    /// Printed by a cell rather than written raw, but in evcxr's form.
    framed: Raw,
    to: Out,
    line: Channel,
}

impl Pump {
    fn run(mut self) {
        let mut chunk = vec![0; CHUNK];
        // What is left to read of a process that is gone, however many of its children hold the other ends.
        let mut last = usize::MAX;
        let mut why = None;
        while let Some(frames) = self.frames.as_mut().filter(|_| last > 0) {
            let mut fds = vec![watched(frames), watched(&self.process)];
            for raw in [&self.out, &self.err] {
                fds.extend(raw.pipe.as_ref().map(watched));
            }
            if poll(&mut fds, PollTimeout::NONE).is_err() {
                continue;
            }
            let [readable, gone] = [0, 1].map(|i: usize| fds[i].revents().is_some_and(|r| !r.is_empty()));
            drop(fds);
            if gone && last == usize::MAX {
                last = SOCKET_BYTES;
                end_group(self.child.id());
            }
            if !readable {
                self.drain();
                match gone {
                    true => break,
                    false => continue,
                }
            }
            // The frames first, then what was written before them, then the frames' news.
            match frames.read(&mut chunk[..last.min(CHUNK)]) {
                Ok(0) => self.frames = None,
                Ok(n) => {
                    self.buffer.extend_from_slice(&chunk[..n]);
                    last -= if gone { n } else { 0 };
                }
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(_) => self.frames = None,
            }
            self.drain();
            if let Err(e) = self.deliver() {
                why = Some(format!(
                    "sent what is no frame ({e}): a process that it forked, or C code, wrote to its line to the kernel"
                ));
                break;
            }
        }
        self.line.hang_up();
        // One whose line is closed is ending; whatever it waits for, it is of no more use.
        let patience =
            if why.is_some() { PollTimeout::ZERO } else { PollTimeout::from(LAST_WRITES.as_millis() as u16) };
        if poll(&mut [watched(&self.process)], patience) == Ok(0) {
            why = why.or_else(|| Some("closed its line to the kernel, and was ended".to_owned()));
        }
        // Before it is waited for: from then on its number may be another's.
        end_group(self.child.id());
        let how = self.child.wait().map(|s| how_it_ended(&s, &self.err.tail)).unwrap_or_else(|e| e.to_string());
        let how = why.unwrap_or(how);
        self.drain();
        for raw in [&mut self.out, &mut self.err] {
            raw.finish(&self.to);
        }
        self.to.send(News::Gone(how));
    }

    fn drain(&mut self) {
        self.out.drain(&self.to);
        self.err.drain(&self.to);
    }

    fn deliver(&mut self) -> std::io::Result<()> {
        let mut at = 0;
        while let Some(head) = self.buffer.get(at..at + 4) {
            let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
            if len > MOST_BYTES {
                return Err(std::io::Error::other(format!("of {len} bytes")));
            }
            let Some(body) = self.buffer.get(at + 4..at + 4 + len) else { break };
            match Tell::decode(body)? {
                Tell::Stream { stderr: false, text } if self.framed.wants(&text) => {
                    self.framed.pending.extend_from_slice(text.as_bytes());
                    self.framed.split(&self.to);
                }
                Tell::Reply { id, answer } => self.line.answer(id, answer),
                Tell::Fence(number) => self.line.tell(&Ask::Drained(number)),
                tell => self.to.send(News::Tell(tell)),
            }
            at += 4 + len;
        }
        self.buffer.drain(..at);
        Ok(())
    }
}

/// How much is read at a time.
const CHUNK: usize = 64 << 10;
/// More than a socket holds.
const SOCKET_BYTES: usize = 16 << 20;

fn watched(fd: &impl AsFd) -> PollFd<'_> {
    PollFd::new(fd.as_fd(), PollFlags::POLLIN)
}

/// Ends a session with everything that its cells have started and that has no group of its own.
fn end_group(session: u32) {
    let _ = killpg(Pid::from_raw(session as i32), Signal::SIGKILL);
}

/// One raw stream: text as it comes, and the displays that crates written for evcxr put into it.
struct Raw {
    stderr: bool,
    pipe: Option<PipeReader>,
    pending: Vec<u8>,
    display: Option<(String, String)>,
    /// The last text, for what a dying process said.
    tail: String,
}

/// What a pipe holds on Linux.
const PIPE_BYTES: usize = 64 << 10;

const BEGIN: &str = "EVCXR_BEGIN_CONTENT";
const END: &str = "EVCXR_END_CONTENT";

impl Raw {
    fn new(stderr: bool, pipe: Option<PipeReader>) -> Raw {
        Raw { stderr, pipe, pending: Vec::new(), display: None, tail: String::new() }
    }

    /// Whether printed text holds a display in evcxr's form, or goes on with one.
    fn wants(&self, text: &str) -> bool {
        self.display.is_some() || !self.pending.is_empty() || text.contains(BEGIN)
    }

    /// Reads until nothing is there at the moment, or what has been there at the beginning: a flood must not hold up
    /// the frames.
    fn drain(&mut self, to: &Out) {
        let mut chunk = [0; 16 << 10];
        let mut read = 0;
        while let Some(pipe) = self.pipe.as_mut().filter(|_| read < PIPE_BYTES) {
            match pipe.read(&mut chunk) {
                Ok(0) => self.pipe = None,
                Ok(n) => {
                    read += n;
                    self.pending.extend_from_slice(&chunk[..n]);
                    self.split(to);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.pipe = None,
            }
        }
    }

    fn split(&mut self, to: &Out) {
        let mut text = String::new();
        loop {
            let end = self.pending.iter().position(|b| *b == b'\n');
            let Some(end) = end else { break };
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            match &mut self.display {
                Some((mime, content)) if line.trim_end() == END => {
                    let content = content.strip_suffix('\n').unwrap_or(content);
                    let mut bundle = Bundle::default().with(mime, content);
                    if mime != "text/plain" {
                        bundle = bundle.with("text/plain", format!("<{mime}>"));
                    }
                    self.display = None;
                    to.send(News::Tell(Tell::Display { bundle, id: None, update: false }));
                }
                Some((_, content)) => content.push_str(&line),
                None => match line.strip_prefix(BEGIN) {
                    Some(mime) if !self.stderr => {
                        self.flush(&mut text, to);
                        self.display = Some((mime.trim().to_owned(), String::new()));
                    }
                    _ => text.push_str(&line),
                },
            }
        }
        // An unfinished line is shown at once, unless it may become a display's or ends inside a character.
        let open = self.display.is_some()
            || BEGIN.as_bytes().starts_with(&self.pending[..self.pending.len().min(BEGIN.len())]);
        if !open {
            let whole = match std::str::from_utf8(&self.pending) {
                Err(e) if e.error_len().is_none() => e.valid_up_to(),
                _ => self.pending.len(),
            };
            let rest: Vec<u8> = self.pending.drain(..whole).collect();
            text.push_str(&String::from_utf8_lossy(&rest));
        }
        self.flush(&mut text, to);
    }

    fn flush(&mut self, text: &mut String, to: &Out) {
        if text.is_empty() {
            return;
        }
        self.tail.push_str(text);
        let cut = self.tail.floor_char_boundary(self.tail.len().saturating_sub(2000));
        self.tail.drain(..cut);
        to.send(News::Raw { stderr: self.stderr, text: std::mem::take(text) });
    }

    fn finish(&mut self, to: &Out) {
        let mut rest = String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned();
        self.flush(&mut rest, to);
    }
}

fn how_it_ended(status: &ExitStatus, stderr: &str) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(6)) if stderr.contains("has overflowed its stack") => {
            "died of a stack overflow (endless recursion?)".into()
        }
        (None, Some(number)) => {
            let name = Signal::try_from(number).map(|s| s.as_str()).unwrap_or("an unknown signal");
            let meaning = match number {
                11 => ", a segmentation fault",
                6 => ", an abort",
                9 => ", perhaps for lack of memory",
                _ => "",
            };
            format!("was ended by signal {number} ({name}{meaning})")
        }
        (None, None) => "ended".into(),
    }
}
