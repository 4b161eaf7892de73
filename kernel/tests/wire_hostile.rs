//! Ten thousand seeded malformed messages over real sockets, with the key and without it; then a good cell.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;

use bytes::Bytes;
use client::Kernel;
use fastrand::Rng;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn noise(dice: &mut Rng, most: usize) -> Vec<u8> {
    (0..dice.usize(..most)).map(|_| dice.u8(..)).collect()
}

fn one_of<'a, T: ?Sized>(dice: &mut Rng, all: &[&'a T]) -> &'a T {
    all[dice.usize(..all.len())]
}

const ASKS: &[&str] = &[
    "kernel_info_request",
    "complete_request",
    "inspect_request",
    "is_complete_request",
    "history_request",
    "comm_info_request",
    "comm_open",
    "comm_msg",
    "comm_close",
    "execute_request",
    "delete_subshell_request",
    "list_subshell_request",
    "input_reply",
    "execute_reply",
    "status",
    "",
    "no such thing",
];

const FIELDS: &[&str] = &[
    "code",
    "silent",
    "store_history",
    "user_expressions",
    "allow_stdin",
    "cursor_pos",
    "detail_level",
    "n",
    "session",
    "start",
    "stop",
    "pattern",
    "hist_access_type",
    "unique",
    "output",
    "comm_id",
    "target_name",
    "subshell_id",
    "value",
];

fn value(dice: &mut Rng) -> Value {
    match dice.usize(..12) {
        0 => json!(null),
        1 => json!(dice.bool()),
        2 => json!(-dice.i64(0..1 << 40)),
        3 => json!(u64::MAX),
        4 => json!(1e300),
        5 => json!("print hi"),
        6 => json!("[*a*a*a"),
        7 => json!("\u{0}\u{1b}ü𝛑"),
        8 => json!(["x", {"y": []}]),
        9 => json!({"a": "1+1", "b": 3}),
        10 => json!("range"),
        _ => json!("search"),
    }
}

/// A message with a right signature that says nonsense.
fn nonsense(kernel: &Kernel, dice: &mut Rng) -> Vec<Bytes> {
    let mut header = json!({"msg_id": dice.u64(..).to_string(), "msg_type": one_of(dice, ASKS), "session": "s"});
    if dice.usize(..4) == 0 {
        header[one_of(dice, &["subshell_id", "msg_id", "session", "version"])] = value(dice);
    }
    let content: serde_json::Map<_, _> =
        (0..dice.usize(..5)).map(|_| (one_of(dice, FIELDS).to_owned(), value(dice))).collect();
    kernel.frames_of(&header.to_string(), &Value::from(content).to_string())
}

/// A message that was good until its frames were damaged.
fn damaged(good: &[Bytes], dice: &mut Rng) -> Vec<Bytes> {
    let mut frames = good.to_vec();
    for _ in 0..=dice.usize(..3) {
        let at = dice.usize(..frames.len().max(1));
        match dice.usize(..7) {
            0 if frames.len() > 1 => drop(frames.remove(at)),
            1 => frames.insert(at, noise(dice, 40).into()),
            2 if at > 0 => frames.truncate(at),
            3 => frames.insert(0, Bytes::from_static(b"<IDS|MSG>")),
            4 => frames.push("[".repeat(dice.usize(..4000)).into()),
            _ => {
                let mut bytes = frames[at].to_vec();
                let byte = dice.usize(..bytes.len().max(1));
                match bytes.get_mut(byte) {
                    Some(b) => *b = dice.u8(..),
                    None => bytes.push(0xff),
                }
                frames[at] = bytes.into();
            }
        }
    }
    frames
}

const READY_DEALER: &[u8] = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER";

fn greeting() -> Vec<u8> {
    let mut greeting = vec![0u8; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

/// What somebody who has no key, or no idea of ZMTP, writes into a socket.
fn gibberish(dice: &mut Rng) -> Vec<u8> {
    let mut bytes = match dice.usize(..5) {
        0 => return noise(dice, 300),
        1 => return b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        _ => greeting(),
    };
    if dice.usize(..4) == 0 {
        let at = dice.usize(..64);
        bytes[at] = dice.u8(..);
    }
    bytes.extend_from_slice(one_of(dice, &[READY_DEALER, b"\x04\x05\x05READY", b"\x00\x00", b"\x06\xff\xff"]));
    match dice.usize(..4) {
        // A frame that claims to be enormous.
        0 => {
            bytes.push(one_of(dice, &[&2u8, &3, &6]).to_owned());
            bytes.extend_from_slice(&(u64::MAX >> dice.usize(..40)).to_be_bytes());
        }
        1 => bytes.extend_from_slice(&noise(dice, 100)),
        // Frames without end.
        2 => (0..dice.usize(..2000)).for_each(|_| bytes.extend_from_slice(&[1, 0])),
        _ => {}
    }
    bytes
}

#[test]
fn ten_thousand_malformed_messages_and_then_a_good_cell() {
    let began = Instant::now();
    let mut kernel = Kernel::start();
    let good = kernel.frames("execute_request", json!({"code": "1+1"}));
    let mut dice = Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    for round in 0..9_000 {
        let frames = if round % 3 == 0 { nonsense(&kernel, &mut dice) } else { damaged(&good, &mut dice) };
        match dice.usize(..5) {
            0 => kernel.send_control_frames(frames),
            1 => kernel.send_stdin_frames(frames),
            _ => kernel.send_frames(frames),
        }
    }
    let info = kernel.info().clone();
    let sockets = [info.shell_url(), info.control_url(), info.stdin_url(), info.hb_url(), info.iopub_url()];
    for round in 0..1_000 {
        let path = sockets[round % sockets.len()].trim_start_matches("ipc://");
        let mut stream = UnixStream::connect(path).unwrap();
        // The kernel may hang up before it has read all of it, and it must do so once this end is done.
        let _ = stream.write_all(&gibberish(&mut dice));
        let _ = stream.shutdown(Shutdown::Write);
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut rest = Vec::new();
        let read = stream.read_to_end(&mut rest);
        assert!(!read.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock), "round {round} was left open");
    }
    // A front end that comes afterwards finds everything in order.
    let mut fresh = kernel.second_client();
    let (reply, outputs) = own(&mut fresh, "1+1");
    assert_eq!(reply["content"]["status"], "ok");
    assert!(outputs.iter().any(|m| m["content"]["data"]["text/plain"] == "2"), "{outputs:?}");
    assert_eq!(fresh.ask_control_only("kernel_info_request", json!({}))["content"]["status"], "ok");
    println!("10,000 malformed messages: {:.1?}", began.elapsed());
    // Some two seconds; if each connection was kept until a time limit, it would be hours.
    assert!(began.elapsed() < Duration::from_secs(120));
}

/// Runs a cell among the traffic of others.
fn own(client: &mut client::Client, code: &str) -> (Value, Vec<Value>) {
    client.send_shell("execute_request", json!({"code": code}));
    let reply = client.shell();
    let session = json!(client.session());
    let mut outputs =
        client.iopub_until(|m| m["parent_header"]["session"] == session && m["content"]["execution_state"] == "idle");
    outputs.retain(|m| m["parent_header"]["session"] == session);
    (reply, outputs)
}

#[test]
fn a_length_is_no_reason_to_take_memory() {
    let mut kernel = Kernel::start();
    let path = kernel.info().shell_url().trim_start_matches("ipc://").to_owned();
    let mut held = Vec::new();
    for length in [1u64 << 62, 1 << 45, 500 << 20] {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(&greeting()).unwrap();
        stream.write_all(READY_DEALER).unwrap();
        stream.write_all(&[2]).unwrap();
        stream.write_all(&length.to_be_bytes()).unwrap();
        // The kernel may have hung up at the length already.
        let _ = stream.write_all(b"and no more");
        held.push(stream);
    }
    assert_eq!(kernel.execute(json!({"code": "1"})).0["content"]["status"], "ok");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    assert!(peak.unwrap() < 100 << 10, "{peak:?} kB");
}

#[test]
fn two_front_ends_at_once_each_see_their_own_answers_and_everybodys_output() {
    let mut kernel = Kernel::start();
    let mut other = kernel.second_client();
    for n in 0..50 {
        kernel.send_shell("execute_request", json!({"code": format!("print one {n}")}));
        other.send_shell("execute_request", json!({"code": format!("print two {n}")}));
    }
    let sessions = [json!(kernel.session()), json!(other.session())];
    for (client, session) in [(&mut *kernel, &sessions[0]), (&mut other, &sessions[1])] {
        for _ in 0..50 {
            let reply = client.shell();
            assert_eq!((&reply["parent_header"]["session"], &reply["content"]["status"]), (session, &json!("ok")));
        }
        let mut texts = [String::new(), String::new()];
        let mut idle = 0;
        while idle < 100 {
            let message = client.iopub();
            let who = usize::from(message["parent_header"]["session"] == sessions[1]);
            texts[who] += message["content"]["text"].as_str().unwrap_or("");
            idle += usize::from(message["content"]["execution_state"] == "idle");
        }
        for (who, text) in ["one", "two"].iter().zip(&texts) {
            let want: String = (0..50).map(|n| format!("{who} {n}\n")).collect();
            assert_eq!(*text, want);
        }
    }
}
