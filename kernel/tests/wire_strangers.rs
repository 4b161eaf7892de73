//! Those without the key: they keep no front end out, take little memory, repeat nothing, and are asked nothing.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/mock_engine.rs"]
mod mock_engine;
#[path = "protocol/raw.rs"]
#[allow(dead_code)]
mod raw;

use bytes::Bytes;
use client::Kernel;
use mock_engine::Call;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// What this process, kernel and clients together, holds at most, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10
}

fn urls(kernel: &Kernel) -> [(String, &'static str); 5] {
    let info = kernel.info();
    [
        (info.shell_url(), "DEALER"),
        (info.control_url(), "DEALER"),
        (info.stdin_url(), "DEALER"),
        (info.hb_url(), "REQ"),
        (info.iopub_url(), "SUB"),
    ]
}

fn ran(kernel: &mut Kernel) {
    kernel.send_shell("execute_request", json!({"code": "print still here"}));
    kernel.iopub_until(|m| m["content"]["text"] == "still here\n");
    kernel.until_idle();
    assert_eq!(kernel.shell()["content"]["status"], "ok");
}

#[test]
fn idle_connections_keep_nobody_out_and_push_nobody_out() {
    // Both ends of all of them are in this process.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let mut kernel = Kernel::start();
    ran(&mut kernel);
    let urls = urls(&kernel);
    // More than there are places, in every state that somebody without the key can reach.
    let mut idle = Vec::new();
    for (url, kind) in &urls {
        idle.extend((0..150).map(|_| raw::plain(url, kind, b"")));
        if *kind == "SUB" {
            idle.iter_mut().rev().take(150).for_each(|s| drop(s.write_all(&raw::frame(0, b"\x01"))));
        }
        idle.extend((0..150).map(|_| raw::connect(url)));
    }
    let mut second = kernel.second_client();
    assert_eq!(second.ask_control_only("kernel_info_request", json!({}))["content"]["status"], "ok");
    second.send_shell("execute_request", json!({"code": "input name?", "allow_stdin": true}));
    second.answer_input("name?", "Ada");
    assert_eq!(second.shell()["content"]["status"], "ok");
    assert_eq!(second.heartbeat(b"alive"), b"alive");
    ran(&mut kernel);
    kernel.send_shell("execute_request", json!({"code": "input name?", "allow_stdin": true}));
    kernel.answer_input("name?", "Ada");
    assert_eq!(kernel.shell()["content"]["status"], "ok");
}

/// Writes until the kernel no longer takes it.
fn pour(mut stream: UnixStream, start: &[u8], mut bytes: usize) -> UnixStream {
    let piece = vec![b'x'; 1 << 20];
    let mut go_on = stream.write_all(start).is_ok();
    while go_on && bytes > 0 {
        let now = bytes.min(piece.len());
        go_on = stream.write_all(&piece[..now]).is_ok();
        bytes -= now;
    }
    stream
}

fn long(flags: u8, length: u64) -> Vec<u8> {
    [&[flags | 2], &length.to_be_bytes()[..]].concat()
}

#[test]
fn unfinished_messages_share_little_memory() {
    let mut kernel = Kernel::start();
    ran(&mut kernel);
    let before = peak_memory();
    let urls = urls(&kernel);
    let mut held = Vec::new();
    for (url, kind) in urls.iter().take(4) {
        for _ in 0..4 {
            // One frame that does not end, and many that do.
            held.push(pour(raw::plain(url, kind, b""), &long(0, 500 << 20), 24 << 20));
            let many = raw::frame(1, &[b'x'; 1000]).repeat(1000);
            let mut stream = raw::plain(url, kind, b"");
            let _ = (0..24).try_for_each(|_| stream.write_all(&many));
            held.push(stream);
        }
    }
    // Right after all of that, and while what fits in the account is held.
    let mut second = kernel.second_client();
    assert_eq!(second.ask("execute_request", json!({"code": "1+1"}))["content"]["status"], "ok");
    ran(&mut kernel);
    let grown = peak_memory() - before;
    println!("700 MB of unfinished messages: peak memory + {} MB", grown >> 20);
    assert!(grown < 150 << 20, "memory grew by {} MB", grown >> 20);
    drop(held);
}

#[test]
fn a_message_of_somebody_with_the_key_may_be_long() {
    let mut kernel = Kernel::start();
    ran(&mut kernel);
    let frames = kernel.frames("execute_request", json!({"code": "1+1"}));
    let buffers = [frames, vec![Bytes::from(vec![0u8; 80 << 20])]].concat();
    kernel.send_frames(buffers);
    assert_eq!(kernel.shell()["content"]["status"], "ok");
}

#[test]
fn answers_that_nobody_reads_take_little_memory() {
    let mut kernel = Kernel::start();
    ran(&mut kernel);
    let before = peak_memory();
    let urls = urls(&kernel);
    let beat = [raw::frame(1, b""), raw::frame(0, &[b'x'; 60_000])].concat();
    let ping = raw::frame(4, b"\x04PING\0\0context").repeat(1000);
    let subscription = [raw::frame(0, b"\x01topic"), raw::frame(0, b"\0topic")].concat().repeat(1000);
    let mut held = Vec::new();
    // Control and stdin are what shell is.
    for (url, kind) in [&urls[0], &urls[3], &urls[4]] {
        let floods = match *kind {
            "REQ" => vec![&beat, &ping],
            "SUB" => vec![&ping, &subscription],
            _ => vec![&ping],
        };
        for flood in floods {
            let mut stream = raw::plain(url, kind, b"");
            // Until it is hung up on, or has sent far more than the kernel may keep answers to.
            let _ = (0..(2 << 20) / flood.len()).try_for_each(|_| stream.write_all(flood));
            held.push(stream);
        }
    }
    ran(&mut kernel);
    let grown = peak_memory() - before;
    println!("answers that nobody reads: peak memory + {} MB", grown >> 20);
    assert!(grown < 25 << 20, "memory grew by {} MB", grown >> 20);
}

#[test]
fn a_copy_of_a_message_does_nothing() {
    let mut kernel = Kernel::start();
    let run = kernel.frames("execute_request", json!({"code": "print once"}));
    kernel.send_frames(run.clone());
    kernel.until_idle();
    assert_eq!(kernel.shell()["content"]["status"], "ok");
    let interrupt = kernel.frames("interrupt_request", json!({}));
    kernel.send_control_frames(interrupt.clone());
    kernel.until_idle();
    // By somebody else, on every channel; the signature may be written in two ways, and what it does not cover changed.
    let mut copies = vec![run.clone(), interrupt];
    copies[0][1] = run[1].to_ascii_uppercase().into();
    copies.push([run.clone(), vec![Bytes::from_static(b"a buffer")]].concat());
    copies.push([vec![Bytes::from_static(b"an identity")], run].concat());
    let urls = urls(&kernel);
    let mut others: Vec<UnixStream> = urls[..3].iter().map(|(url, kind)| raw::plain(url, kind, b"")).collect();
    for other in &mut others {
        copies.iter().for_each(|copy| other.write_all(&raw::message(copy)).unwrap());
        // The pong comes when what was sent before has been read.
        other.write_all(&raw::frame(4, b"\x04PING\0\0")).unwrap();
        assert!(raw::read_frame(other).unwrap().1.starts_with(b"\x04PONG"));
    }
    // Two of one text are two messages.
    for _ in 0..2 {
        let (reply, _) = kernel.execute(json!({"code": "print twice"}));
        assert_eq!(reply["content"]["status"], "ok");
    }
    let calls: Vec<Call> = kernel.calls_until(|call| *call == Call::Execute("print twice".into()));
    let runs = calls.iter().filter(|c| **c == Call::Execute("print once".into())).count();
    let interrupts = calls.iter().filter(|c| **c == Call::Interrupt).count();
    assert_eq!((runs, interrupts), (1, 1), "{calls:?}");
    assert_eq!(kernel.execute(json!({"code": "cell"})).1[2]["content"]["data"]["text/plain"], "4");
}

#[test]
fn a_kernels_own_messages_are_no_requests() {
    let mut kernel = Kernel::start();
    let (_, outputs) = kernel.execute(json!({"code": "print hi"}));
    let session = outputs[0]["header"]["session"].clone();
    let header = json!({"msg_id": "x", "msg_type": "execute_request", "session": session});
    let mine = kernel.frames_of(&header.to_string(), "{\"code\": \"print mine\"}");
    kernel.send_frames(mine);
    kernel.send_shell("execute_request", json!({"code": "cell"}));
    assert_eq!(kernel.shell()["content"]["execution_count"], 2);
}

#[test]
fn a_question_goes_to_who_runs_the_cell_whoever_takes_on_its_name() {
    let mut kernel = Kernel::start();
    // This is how its name is heard.
    ran(&mut kernel);
    let name = kernel.session().to_owned();
    let stdin = kernel.info().stdin_url();
    let mut thieves: Vec<UnixStream> = (0..5).map(|_| raw::plain(&stdin, "DEALER", name.as_bytes())).collect();
    let ask = json!({"code": "password secret?", "allow_stdin": true});
    kernel.send_shell("execute_request", ask.clone());
    let question = kernel.stdin();
    assert_eq!(question["content"]["prompt"], "secret?");
    // Somebody else with the key does not answer for it, nor does somebody without the key in its name.
    let mut second = kernel.second_client();
    let wrong = second.frames("input_reply", json!({"value": "wrong"}));
    second.send_stdin_frames(wrong);
    for thief in &mut thieves {
        let forged =
            [&[Bytes::from_static(b"<IDS|MSG>"), Bytes::from_static(b"00")][..], &vec!["{}".into(); 4]].concat();
        thief.write_all(&raw::message(&forged)).unwrap();
        thief.write_all(&raw::frame(4, b"\x04PING\0\0")).unwrap();
        // The first thing that comes: no question was sent to this one.
        assert!(raw::read_frame(thief).unwrap().1.starts_with(b"\x04PONG"));
    }
    let answer = kernel.frames("input_reply", json!({"value": "right"}));
    kernel.send_stdin_frames(answer);
    let outputs = kernel.until_idle();
    assert!(outputs.iter().any(|m| m["content"]["text"] == "right"), "{outputs:?}");
    assert_eq!(kernel.shell()["content"]["status"], "ok");
    second.send_shell("execute_request", ask);
    second.answer_input("secret?", "the other's");
    assert_eq!(second.shell()["content"]["status"], "ok");
}

#[test]
fn each_of_two_front_ends_of_one_session_is_asked_itself() {
    let mut kernel = Kernel::start();
    ran(&mut kernel);
    let mut second = kernel.client_of_the_same_session();
    let ask = json!({"code": "input name?", "allow_stdin": true});
    second.send_shell("execute_request", ask.clone());
    second.answer_input("name?", "second");
    assert_eq!(second.shell()["content"]["status"], "ok");
    kernel.send_shell("execute_request", ask);
    kernel.answer_input("name?", "first");
    assert_eq!(kernel.shell()["content"]["status"], "ok");
}
