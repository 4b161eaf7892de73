//! CURVE against somebody who does not keep to it. The protocol suite has libzmq for those who do.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/curve_client.rs"]
mod curve_client;
#[path = "protocol/mock_engine.rs"]
mod mock_engine;
#[path = "protocol/raw.rs"]
#[allow(dead_code)]
mod raw;

use client::Folder;
use crypto_box::{PublicKey, SecretKey};
use curve_client::{Client, Handshake, greeted, random};
use mock_engine::{Call, MockEngine};
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Instant;
use xlazy_kernel::wire::message::{Envelope, Key, parse};
use xlazy_kernel::wire::{Options, connection, serve};

/// The example keys of ZeroMQ's manual.
const PUBLIC: &str = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
const SECRET: &str = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";
const SECRET_BYTES: [u8; 32] = [
    0x8e, 0x0b, 0xdd, 0x69, 0x76, 0x28, 0xb9, 0x1d, 0x8f, 0x24, 0x55, 0x87, 0xee, 0x95, 0xc5, 0xb0, 0x4d, 0x48, 0x96,
    0x3f, 0x79, 0x25, 0x98, 0x77, 0xb4, 0x9c, 0xd9, 0x06, 0x3a, 0xea, 0xd3, 0xb7,
];

struct Kernel {
    envelope: Envelope,
    calls: Receiver<Call>,
    thread: Option<JoinHandle<()>>,
    folder: Folder,
}

impl Kernel {
    fn start() -> Kernel {
        let folder = Folder::new();
        let file = folder.path().join("connection.json");
        let fields = json!({
            "ip": folder.path().join("k"), "transport": "ipc", "key": "a-key", "signature_scheme": "hmac-sha256",
            "shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5,
            "curve_publickey": PUBLIC, "curve_secretkey": SECRET,
        });
        std::fs::write(&file, fields.to_string()).unwrap();
        let (mock, calls) = MockEngine::new();
        let options = Options { history: None, version: "0".into(), rust_version: "0".into(), banner: "mock".into() };
        let connection = connection(&file).unwrap();
        let thread = std::thread::spawn(move || serve(&connection, options, || Ok(Arc::new(mock) as _)).unwrap());
        let kernel = Kernel { envelope: Envelope::new(key()), calls, thread: Some(thread), folder };
        // A socket's file is there a moment before somebody listens.
        for port in 1..=5 {
            while UnixStream::connect(kernel.url(port).trim_start_matches("ipc://")).is_err() {
                std::thread::yield_now();
            }
        }
        kernel
    }

    fn url(&self, port: u16) -> String {
        format!("ipc://{}-{port}", self.folder.path().join("k").display())
    }

    fn client(&self, port: u16, kind: &str) -> Client {
        Handshake::new(&server(), kind).run(&self.url(port)).unwrap()
    }

    fn message(&self, msg_type: &str, content: Value) -> Vec<bytes::Bytes> {
        self.envelope.seal(msg_type, &json!({}), &json!({}), &content)
    }

    /// A cell runs for somebody with the right keys.
    fn runs(&self, shell: &mut Client) {
        shell.send(&self.message("execute_request", json!({"code": "1+1"})));
        assert_eq!(reply(shell)["status"], "ok");
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let mut control = self.client(4, "DEALER");
            control.send(&self.message("shutdown_request", json!({"restart": false})));
            self.thread.take().unwrap().join().unwrap();
        }
    }
}

fn key() -> Key {
    Key::new("hmac-sha256", "a-key").unwrap()
}

fn server() -> PublicKey {
    SecretKey::from(SECRET_BYTES).public_key()
}

fn reply(client: &mut Client) -> Value {
    let frames: Vec<_> = client.receive().unwrap().1.into_iter().map(bytes::Bytes::from).collect();
    Value::Object(parse(&frames, &key()).unwrap().content)
}

#[test]
fn all_five_sockets_are_encrypted() {
    let kernel = Kernel::start();
    let mut iopub = kernel.client(2, "SUB");
    // A subscription as a message of the older kind, then as a command of the newer.
    iopub.send(&[b"\x01nothing of this"]);
    iopub.sent += 1;
    let subscription = iopub.boxed(iopub.sent, 2, b"\x09SUBSCRIBE");
    iopub.stream.write_all(&raw::frame(0, &subscription)).unwrap();
    let welcomes: Vec<Vec<u8>> = (0..2).map(|_| iopub.receive().unwrap().1.remove(0)).collect();
    assert_eq!(welcomes, [&b"nothing of this"[..], b""]);
    let (mut shell, mut stdin) = (kernel.client(1, "DEALER"), kernel.client(3, "DEALER"));
    kernel.runs(&mut shell);
    let topics: Vec<Vec<u8>> = (0..4).map(|_| iopub.receive().unwrap().1.remove(0)).collect();
    assert!(topics.iter().any(|t| t.ends_with(b".execute_result")), "{topics:?}");
    shell.send(&kernel.message("execute_request", json!({"code": "input name?", "allow_stdin": true})));
    assert_eq!(reply(&mut stdin)["prompt"], "name?");
    stdin.send(&kernel.message("input_reply", json!({"value": "Ada"})));
    assert_eq!(reply(&mut shell)["status"], "ok");
    let mut heart = kernel.client(5, "REQ");
    heart.send(&[&b""[..], b"beat"]);
    assert_eq!(heart.receive().unwrap().1, [&b""[..], b"beat"]);
    heart.sent += 1;
    let ping = heart.boxed(heart.sent, 2, b"\x04PING\0\0who");
    heart.stream.write_all(&raw::frame(0, &ping)).unwrap();
    assert_eq!(heart.receive().unwrap(), (2, vec![b"\x04PONGwho".to_vec()]));
}

/// Points that share one of a few secrets with every key; who sends one needs to know no server. By their last and
/// first bytes: around zero, around p, and two of order eight; the last bit of a point is ignored.
fn small_points() -> Vec<[u8; 32]> {
    let eights = [
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    ];
    let bytes = |hex: &str| std::array::from_fn(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap());
    let mut points: Vec<[u8; 32]> = eights.map(bytes).to_vec();
    for (first, middle, last) in [(0, 0, 0), (1, 0, 0), (0xec, 0xff, 0x7f), (0xed, 0xff, 0x7f), (0xee, 0xff, 0x7f)] {
        let mut point = [middle; 32];
        (point[0], point[31]) = (first, last);
        points.push(point);
    }
    for n in 0..points.len() {
        points.push(points[n]);
        points.last_mut().unwrap()[31] |= 0x80;
    }
    points
}

#[test]
fn who_does_not_know_the_servers_key_or_says_something_wrong_is_hung_up_on() {
    let kernel = Kernel::start();
    let mut shell = kernel.client(1, "DEALER");
    let url = kernel.url(1);
    let stranger = || SecretKey::from(random::<32>());
    type Change = Box<dyn Fn(&mut Handshake)>;
    let mut changes: Vec<(&str, Change)> = vec![
        ("HELLO", Box::new(move |h| h.server = stranger().public_key())),
        ("HELLO", Box::new(|h| h.version = [2, 0])),
        ("HELLO", Box::new(|h| h.version = [1, 1])),
        ("HELLO", Box::new(|h| h.padding[71] = 1)),
        ("HELLO", Box::new(|h| h.signature[63] = 1)),
        ("HELLO", Box::new(move |h| h.passing_public = stranger().public_key())),
        ("INITIATE", Box::new(|h| h.cookie = Some(random()))),
        ("INITIATE", Box::new(|h| h.numbers = [2, 2])),
        ("INITIATE", Box::new(|h| h.numbers = [u64::MAX, 0])),
        ("INITIATE", Box::new(move |h| h.lasting_public = stranger().public_key())),
        ("INITIATE", Box::new(move |h| h.vouched[0] = stranger().public_key())),
        ("INITIATE", Box::new(move |h| h.vouched[1] = stranger().public_key())),
        ("INITIATE", Box::new(|h| h.properties.truncate(10))),
        ("INITIATE", Box::new(|h| h.properties.clear())),
        ("INITIATE", Box::new(|h| h.properties = raw::property("Socket-Type", b"PUB"))),
        ("INITIATE", Box::new(|h| h.properties.extend(raw::property("Identity", &[b'i'; 256])))),
        ("INITIATE", Box::new(|h| h.properties.extend([1, b'x', 0xff, 0xff, 0xff, 0xff]))),
        ("INITIATE", Box::new(|h| h.properties.extend(raw::property("X", &[0; 9000])))),
    ];
    // The boxes are made with a secret that such a point shares with many, each with another; all else is right.
    for point in small_points().into_iter().flat_map(|p| [p; 6]) {
        changes.push((
            "HELLO",
            Box::new(move |h| {
                (h.server, h.passing_public) = (point.into(), point.into());
                h.vouched[0] = point.into();
            }),
        ));
        changes.push(("INITIATE", Box::new(move |h| h.lasting_public = point.into())));
    }
    for (n, (at, change)) in changes.iter().enumerate() {
        let mut handshake = Handshake::new(&server(), "DEALER");
        change(&mut handshake);
        assert_eq!(handshake.run(&url).err(), Some(*at), "change {n}");
    }
    // The largest numbers are numbers; after the last there is none.
    let mut handshake = Handshake::new(&server(), "DEALER");
    handshake.numbers = [u64::MAX - 1, u64::MAX];
    let mut last = handshake.run(&url).unwrap();
    last.sent = u64::MAX - 1;
    last.send(&kernel.message("kernel_info_request", json!({}))[..1]);
    assert!(raw::is_hung_up(&mut last.stream));
    kernel.runs(&mut shell);
}

#[test]
fn a_handshake_out_of_its_order_or_without_a_box_is_hung_up_on() {
    let kernel = Kernel::start();
    let mut shell = kernel.client(1, "DEALER");
    let url = kernel.url(1);
    let hello = Handshake::new(&server(), "DEALER").hello();
    let ready = [&b"\x05READY"[..], &raw::property("Socket-Type", b"DEALER")].concat();
    let good = &kernel.message("execute_request", json!({"code": "1"}));
    let starts = [
        raw::frame(4, &hello[..199]),
        raw::frame(4, &[&hello[..], b"x"].concat()),
        raw::frame(0, &hello),
        raw::frame(5, &hello),
        raw::frame(4, &hello[6..]),
        raw::frame(4, b""),
        raw::frame(4, &ready),
        [raw::frame(4, &ready), raw::message(good)].concat(),
        raw::message(good),
        [&[6u8][..], &(1u64 << 60).to_be_bytes()].concat(),
        [&[6u8][..], &(9u64 << 10).to_be_bytes()].concat(),
        raw::frame(4, &[b"\x08INITIATE", &[0; 300][..]].concat()),
    ];
    for (n, start) in starts.iter().enumerate() {
        let mut stream = greeted(&url);
        let _ = stream.write_all(start);
        assert!(raw::is_hung_up(&mut stream), "start {n}");
    }
    // Twice the same, and what another connection said.
    let recorded = Handshake::new(&server(), "DEALER");
    let mut first = greeted(&url);
    first.write_all(&raw::frame(4, &recorded.hello())).unwrap();
    let (initiate, _) = recorded.initiate(&raw::read_frame(&mut first).unwrap().1);
    let mut copy = greeted(&url);
    copy.write_all(&raw::frame(4, &recorded.hello())).unwrap();
    assert!(raw::read_frame(&mut copy).unwrap().1.starts_with(b"\x07WELCOME"), "a HELLO alone shows nothing yet");
    copy.write_all(&raw::frame(4, &initiate)).unwrap();
    assert!(raw::is_hung_up(&mut copy));
    first.write_all(&raw::frame(4, &recorded.hello())).unwrap();
    assert!(raw::is_hung_up(&mut first));
    // Greetings: no encryption, another mechanism, a second server, and nothing at all.
    for greeting in [raw::greeting("NULL"), raw::greeting("PLAIN"), raw::greeting("CURVED"), vec![0; 64]] {
        let mut stream = raw::connect(&url);
        stream.write_all(&greeting).unwrap();
        let _ = stream.write_all(&[raw::frame(4, &ready), raw::message(good)].concat());
        assert!(raw::is_hung_up(&mut stream));
    }
    kernel.runs(&mut shell);
    let cells = kernel.calls.try_iter().filter(|c| matches!(c, Call::Execute(_))).count();
    assert_eq!(cells, 1, "nothing else has run");
}

#[test]
fn boxes_that_are_copied_changed_or_missing_end_the_connection_and_run_nothing() {
    let kernel = Kernel::start();
    let mut shell = kernel.client(1, "DEALER");
    let url = kernel.url(1);
    let run = kernel.message("execute_request", json!({"code": "print hostile"}));
    let boxed = |client: &mut Client| {
        let start = client.sent;
        let boxes: Vec<Vec<u8>> = run
            .iter()
            .enumerate()
            .map(|(n, body)| client.boxed(start + 1 + n as u64, u8::from(n + 1 < run.len()), body))
            .collect();
        boxes
    };
    type Change = fn(&mut Vec<Vec<u8>>, &mut Client);
    let changes: [Change; 9] = [
        // The same number again, with the same box and with one of its own.
        |boxes, _| boxes.insert(1, boxes[0].clone()),
        |boxes, client| boxes[1] = client.boxed(client.sent + 1, 1, b"x"),
        |boxes, _| boxes.swap(0, 1),
        |boxes, client| boxes[0] = client.boxed(0, 1, b"x"),
        // Cut short, changed, with flags that do not exist, without a box.
        |boxes, _| boxes[0].truncate(32),
        |boxes, _| *boxes[0].last_mut().unwrap() ^= 1,
        |boxes, client| boxes[0] = client.boxed(client.sent + 1, 4, b"x"),
        |boxes, _| boxes[0] = b"plain".to_vec(),
        |boxes, _| boxes[0][3] ^= 1,
    ];
    for (n, change) in changes.iter().enumerate() {
        let mut client = Handshake::new(&server(), "DEALER").run(&url).unwrap();
        let mut boxes = boxed(&mut client);
        change(&mut boxes, &mut client);
        let sent: Vec<u8> = boxes.iter().flat_map(|b| raw::frame(0, b)).collect();
        let _ = client.stream.write_all(&sent);
        assert!(raw::is_hung_up(&mut client.stream), "change {n}");
    }
    // The outer frame says that more follows; a box of another connection.
    let mut client = Handshake::new(&server(), "DEALER").run(&url).unwrap();
    let boxes = boxed(&mut client);
    let _ = client.stream.write_all(&raw::message(&boxes));
    assert!(raw::is_hung_up(&mut client.stream));
    let mut other = Handshake::new(&server(), "DEALER").run(&url).unwrap();
    let _ = other.stream.write_all(&raw::frame(0, &boxes[0]));
    assert!(raw::is_hung_up(&mut other.stream));
    kernel.runs(&mut shell);
    let cells: Vec<Call> = kernel.calls.try_iter().filter(|c| matches!(c, Call::Execute(_))).collect();
    assert_eq!(cells, [Call::Execute("1+1".into())]);
}

/// Any byte of a handshake wrong, and any length: refused, cheaply, and the next one comes in.
#[test]
fn no_damage_to_a_handshake_goes_through() {
    let kernel = Kernel::start();
    let url = kernel.url(1);
    let mut dice = fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    let began = Instant::now();
    for round in 0..300 {
        let mut damage = |bytes: &[u8]| {
            let (mut bytes, at) = (bytes.to_vec(), dice.usize(..bytes.len()));
            match dice.usize(..4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, dice.u8(..)),
                _ => bytes[at] ^= 1 << dice.usize(..8),
            }
            bytes
        };
        let handshake = Handshake::new(&server(), "DEALER");
        let mut stream = greeted(&url);
        let good = handshake.hello();
        if round % 2 == 0 {
            let bad = damage(&good);
            let _ = stream.write_all(&raw::frame(4, &bad));
            assert!(raw::is_hung_up(&mut stream), "round {round}");
            continue;
        }
        stream.write_all(&raw::frame(4, &good)).unwrap();
        let (initiate, _) = handshake.initiate(&raw::read_frame(&mut stream).unwrap().1);
        let _ = stream.write_all(&raw::frame(4, &damage(&initiate)));
        assert!(raw::is_hung_up(&mut stream), "round {round}");
    }
    println!("300 damaged handshakes: {:.1?}", began.elapsed());
    kernel.runs(&mut kernel.client(1, "DEALER"));
}

/// Those who do not come to the end of a handshake keep out nobody who does.
#[test]
fn unfinished_handshakes_keep_nobody_out() {
    let kernel = Kernel::start();
    let mut shell = kernel.client(1, "DEALER");
    let url = kernel.url(1);
    let mut held = Vec::new();
    for n in 0..300 {
        let mut stream = greeted(&url);
        if n % 2 == 0 {
            stream.write_all(&raw::frame(4, &Handshake::new(&server(), "DEALER").hello())).unwrap();
        }
        held.push(stream);
    }
    kernel.runs(&mut kernel.client(1, "DEALER"));
    kernel.runs(&mut shell);
}
