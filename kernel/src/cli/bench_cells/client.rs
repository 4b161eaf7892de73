//! A kernel and its client: the real protocol, from `execute_request` to `idle`.
use crate::folder::Folder;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

static KEY: LazyLock<String> = LazyLock::new(|| uuid::Uuid::new_v4().to_string());
/// The next cell's compiler has its time to start while a person types.
pub const PAUSE: Duration = Duration::from_millis(150);
const PATIENCE: Duration = Duration::from_secs(300);

/// A kernel process and the client's two connections to it.
pub struct Kernel {
    pub name: &'static str,
    child: Child,
    shell: TcpStream,
    iopub: TcpStream,
    /// Holds the connection file, and with it the key.
    _folder: Folder,
    sent: u64,
    pub start_ms: u64,
}

/// How long a cell took.
pub struct Took {
    /// From the request to `idle`.
    pub ms: f64,
    /// What of it rustc took; all of it where the cell does nothing with tensors.
    pub compiling: f64,
    pub failure: Option<String>,
}

impl Kernel {
    pub fn ours(exe: &Path) -> Result<Kernel, String> {
        Kernel::start("xlazy", Command::new(exe).arg("kernel"))
    }

    /// Starts a kernel; the command lacks the connection file only.
    pub fn start(name: &'static str, command: &mut Command) -> Result<Kernel, String> {
        let text = |e: io::Error| format!("{name}: {e}");
        let free: Vec<TcpListener> =
            (0..5).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>().map_err(text)?;
        let ports: Vec<u16> =
            free.iter().map(|l| l.local_addr().map(|a| a.port())).collect::<Result<_, _>>().map_err(text)?;
        drop(free);
        let folder = Folder::new()?;
        let file = folder.path().join(format!("{name}.json"));
        let connection = json!({
            "transport": "tcp", "ip": "127.0.0.1", "signature_scheme": "hmac-sha256", "key": *KEY,
            "shell_port": ports[0], "iopub_port": ports[1], "stdin_port": ports[2], "control_port": ports[3],
            "hb_port": ports[4],
        });
        // Whoever reads the key can run code in the kernel.
        let private = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&file);
        private.and_then(|mut f| f.write_all(connection.to_string().as_bytes())).map_err(text)?;
        let begin = Instant::now();
        let mut child = command
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(text)?;
        let mut connect = |port, kind| connect(port, kind, &mut child, begin).map_err(text);
        let (shell, mut iopub) = (connect(ports[0], "DEALER")?, connect(ports[1], "SUB")?);
        iopub.write_all(&[0, 1, 1]).map_err(text)?;
        let mut kernel = Kernel { name, child, shell, iopub, _folder: folder, sent: 0, start_ms: 0 };
        kernel.send("kernel_info_request", &json!({})).map_err(text)?;
        loop {
            if receive(&mut kernel.shell).map_err(text)?.0 == "kernel_info_reply" {
                break;
            }
        }
        kernel.start_ms = begin.elapsed().as_millis() as u64;
        Ok(kernel)
    }

    fn send(&mut self, kind: &str, content: &Value) -> io::Result<String> {
        self.sent += 1;
        let id = format!("{}-{}", std::process::id(), self.sent);
        let header = json!({
            "msg_id": id, "session": "bench", "username": "bench", "version": "5.3", "msg_type": kind,
            "date": "2026-01-01T00:00:00Z",
        });
        let parts = [header.to_string(), "{}".into(), "{}".into(), content.to_string()];
        let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).expect("any key will do");
        parts.iter().for_each(|p| mac.update(p.as_bytes()));
        let signature: String = mac.finalize().into_bytes().iter().map(|b| format!("{b:02x}")).collect();
        let mut frames = vec!["<IDS|MSG>".to_owned(), signature];
        frames.extend(parts);
        let mut out = Vec::new();
        for (i, frame) in frames.iter().enumerate() {
            let more = u8::from(i + 1 < frames.len());
            out.push(more | 2);
            out.extend((frame.len() as u64).to_be_bytes());
            out.extend(frame.as_bytes());
        }
        self.shell.write_all(&out)?;
        Ok(id)
    }

    /// Milliseconds from the request to `idle`. A cell that fails is an error: its time would mean nothing.
    pub fn execute(&mut self, code: &str) -> Result<f64, String> {
        match self.attempt(code) {
            Ok(Took { ms, failure: None, .. }) => Ok(ms),
            Ok(Took { failure: Some(failure), .. }) | Err(failure) => {
                Err(format!("{}: `{code}`: {failure}", self.name))
            }
        }
    }

    /// As [`Kernel::execute`], of a cell that may fail.
    pub fn attempt(&mut self, code: &str) -> Result<Took, String> {
        let text = |e: io::Error| e.to_string();
        let content = json!({
            "code": code, "silent": false, "store_history": true, "user_expressions": {}, "allow_stdin": false,
            "stop_on_error": true,
        });
        let begin = Instant::now();
        let id = self.send("execute_request", &content).map_err(text)?;
        let (mut failure, mut footer) = (None, None);
        loop {
            let (kind, parent, content) = receive(&mut self.iopub).map_err(text)?;
            match (&*kind, content["execution_state"].as_str()) {
                _ if parent != id => {}
                ("error", _) => failure = Some(content["evalue"].to_string()),
                ("status", Some("idle")) => break,
                _ => footer = content["data"]["text/plain"].as_str().and_then(rustc_ms).or(footer),
            }
        }
        let ms = begin.elapsed().as_secs_f64() * 1e3;
        while receive(&mut self.shell).map_err(text)?.0 != "execute_reply" {}
        Ok(Took { ms, compiling: footer.unwrap_or(ms), failure })
    }

    /// MB by process (the kernel, what it started, the waiting compiler): PSS, and what of it is no copy of a file, so that
    /// nobody else can have it.
    pub fn memory(&self) -> [Value; 2] {
        let mut out: [serde_json::Map<String, Value>; 2] = Default::default();
        let mut add = |pid: u32| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            for (key, out) in ["Pss:", "Anonymous:"].into_iter().zip(&mut out) {
                let kb = rollup
                    .lines()
                    .find_map(|l| l.strip_prefix(key)?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
                out.insert(name.trim().to_owned(), (kb.unwrap_or(0) / 1024).into());
            }
        };
        add(self.child.id());
        children(self.child.id()).into_iter().for_each(&mut add);
        out.map(Value::Object)
    }
}

/// What the line under a cell says of its compilation.
fn rustc_ms(line: &str) -> Option<f64> {
    let mut words = line.strip_prefix("rustc ")?.split_whitespace();
    let number: f64 = words.next()?.replace(',', "").parse().ok()?;
    let unit = words.next()?;
    let ms = [("µs", 1e-3), ("ms", 1.0), ("s", 1e3)].iter().find(|known| known.0 == unit)?.1;
    Some(number * ms)
}

fn children(parent: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|l| l.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<u32>>()).collect()
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = self.send("shutdown_request", &json!({ "restart": false }));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects as soon as the kernel listens, and shakes hands: ZMTP 3.0, no encryption.
fn connect(port: u16, kind: &str, child: &mut Child, begin: Instant) -> io::Result<TcpStream> {
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(e) if begin.elapsed() > PATIENCE || child.try_wait()?.is_some() => return Err(e),
            Err(_) => std::thread::park_timeout(Duration::from_millis(2)),
        }
    };
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut greeting = [0u8; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting)?;
    stream.read_exact(&mut [0; 64])?;
    let mut ready = b"\x05READY\x0bSocket-Type".to_vec();
    ready.extend((kind.len() as u32).to_be_bytes());
    ready.extend(kind.as_bytes());
    stream.write_all(&[4, ready.len() as u8])?;
    stream.write_all(&ready)?;
    read_frame(&mut stream)?;
    Ok(stream)
}

fn read_frame(stream: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut flags = [0];
    stream.read_exact(&mut flags)?;
    let length = if flags[0] & 2 != 0 {
        let mut long = [0; 8];
        stream.read_exact(&mut long)?;
        u64::from_be_bytes(long)
    } else {
        let mut short = [0];
        stream.read_exact(&mut short)?;
        short[0].into()
    };
    let mut body = Vec::new();
    stream.take(length).read_to_end(&mut body)?;
    Ok((flags[0], body))
}

/// One message: its type, its parent's id, its content.
fn receive(stream: &mut TcpStream) -> io::Result<(String, String, Value)> {
    let mut frames = Vec::new();
    loop {
        let (flags, body) = read_frame(stream)?;
        if flags & 4 == 0 {
            frames.push(body);
        }
        if flags & 5 == 0 {
            break;
        }
    }
    let start = frames.iter().position(|f| f == b"<IDS|MSG>").unwrap_or(0);
    let part =
        |i: usize| -> Value { frames.get(start + i).and_then(|f| serde_json::from_slice(f).ok()).unwrap_or_default() };
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    Ok((text(&part(2)["msg_type"]), text(&part(3)["msg_id"]), part(5)))
}

#[cfg(test)]
mod tests {
    use super::rustc_ms;

    #[test]
    fn the_line_under_a_cell_says_what_rustc_took() {
        let ms =
            ["rustc 52 ms · traced in 20 µs", "rustc 1.2 s · nothing ran", "rustc 500 µs · ran 1 in 2 ms", "52 ms"]
                .map(rustc_ms);
        assert_eq!(ms, [Some(52.0), Some(1200.0), Some(0.5), None]);
    }
}
