//! More output than anybody can take: memory stays bounded, text goes to a file, and no status message is lost.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/mock_engine.rs"]
mod mock_engine;

use client::{Folder, Kernel, Setup};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// What this process, kernel and client together, has held at most, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10
}

fn text(outputs: &[Value], name: &str) -> String {
    outputs.iter().filter(|m| m["content"]["name"] == name).map(|m| m["content"]["text"].as_str().unwrap()).collect()
}

fn kernel_with_state(folder: &Folder) -> Kernel {
    Kernel::start_with(Setup { history: Some(folder.path().join("history.jsonl")), ..Default::default() })
}

#[test]
fn ten_million_lines_cost_little_memory_and_none_is_lost() {
    let folder = Folder::new();
    let mut kernel = kernel_with_state(&folder);
    kernel.execute(json!({"code": "flood 100"}));
    let (before, began) = (peak_memory(), Instant::now());
    let (reply, outputs) = kernel.execute(json!({"code": "flood 10000000\ndisplay end"}));
    let (took, grown) = (began.elapsed(), peak_memory() - before);
    assert_eq!(reply["content"]["status"], "ok");
    assert_eq!(outputs.last().unwrap()["content"]["execution_state"], "idle");
    assert!(outputs.iter().any(|m| m["msg_type"] == "display_data"));

    let shown = text(&outputs, "stdout");
    println!(
        "10 million lines: {took:.1?}, {} messages, {} bytes shown, peak memory + {} MB",
        outputs.len(),
        shown.len(),
        grown >> 20
    );
    assert!(shown.len() < 12 << 20 && outputs.len() < 1000, "{} bytes in {} messages", shown.len(), outputs.len());
    assert!(grown < 100 << 20, "memory grew by {} MB", grown >> 20);
    assert!(shown.ends_with("line 9999998\nline 9999999\n"));

    // Live output may come up for air between, so the file may lack what was shown; together they are the whole.
    let notes = text(&outputs, "stderr");
    let file = notes.split_once("it goes on in ").unwrap().1.split_once(']').unwrap().0;
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(file.starts_with(folder.path().to_str().unwrap()), "{file}");
    let kept = std::fs::read_to_string(file).unwrap();
    let mut lines: Vec<u32> =
        kept.lines().chain(shown.lines()).filter_map(|l| l.strip_prefix("line ")?.parse().ok()).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!((lines.len(), lines.first(), lines.last()), (10_000_000, Some(&0), Some(&9_999_999)));

    let (_, after) = kernel.execute(json!({"code": "print calm"}));
    assert_eq!(text(&after, "stdout"), "calm\n", "the next cell starts afresh");
}

#[test]
fn many_small_prints_arrive_in_few_messages_and_in_order() {
    let mut kernel = Kernel::start();
    let (reply, outputs) = kernel.execute(json!({"code": "lines 50000\ndisplay end"}));
    assert_eq!(reply["content"]["status"], "ok");
    let shown = text(&outputs, "stdout");
    assert!(outputs.len() < 500, "{} messages", outputs.len());
    assert!(shown.lines().enumerate().all(|(n, line)| line == format!("line {n}")));
    assert_eq!(shown.lines().count(), 50_000);
    assert_eq!(outputs[outputs.len() - 2]["msg_type"], "display_data");
}

#[test]
fn a_front_end_that_stops_reading_holds_nobody_up() {
    let mut kernel = Kernel::start();
    let mut lazy = kernel.subscribe_raw();
    let before = peak_memory();
    // Far more than what the operating system and the queue hold for one subscriber.
    for _ in 0..60 {
        let (reply, outputs) = kernel.execute(json!({"code": "bytes 1000000\ndisplay x"}));
        assert_eq!(reply["content"]["status"], "ok");
        assert_eq!(outputs[2]["content"]["text"].as_str().unwrap().len(), 1_000_000);
    }
    let grown = peak_memory() - before;
    println!("a subscriber that does not read: peak memory + {} MB", grown >> 20);
    assert!(grown < 80 << 20, "memory grew by {} MB", grown >> 20);
    let (_, last) = kernel.execute(json!({"code": "print end"}));
    let end = &last.last().unwrap()["parent_header"]["msg_id"];
    let seen = lazy.until(|m| {
        m["msg_type"] == "status" && m["content"]["execution_state"] == "idle" && m["parent_header"]["msg_id"] == *end
    });
    // Of the cells: how the kernel started may still be on its way to who subscribes.
    let of_cells = || seen.iter().filter(|m| m["parent_header"]["msg_type"] == "execute_request");
    let count = |kind: &str| of_cells().filter(|m| m["msg_type"] == kind).count();
    assert_eq!((count("status"), count("display_data")), (122, 60), "only text may be left out");
    let note = seen.iter().filter_map(|m| m["content"]["text"].as_str()).find(|t| t.contains("left out"));
    assert!(note.is_some_and(|n| n.contains("the front end reads too slowly")), "{note:?}");
}

#[test]
fn a_front_end_that_never_reads_again_is_let_go() {
    let mut kernel = Kernel::start();
    let _lazy = kernel.subscribe_raw();
    let before = peak_memory();
    // Displays are never left out, so its queue grows until it is given up.
    for _ in 0..20 {
        let (reply, _) = kernel.execute(json!({"code": "pictures 8 500000"}));
        assert_eq!(reply["content"]["status"], "ok");
    }
    let grown = peak_memory() - before;
    println!("160 MB of displays for one that never reads: peak memory + {} MB", grown >> 20);
    assert!(grown < 200 << 20, "memory grew by {} MB", grown >> 20);
}

#[test]
fn a_slow_front_end_slows_displays_down_instead_of_losing_them() {
    let mut kernel = Kernel::start();
    kernel.execute(json!({"code": "1"}));
    let before = peak_memory();
    kernel.send_shell("execute_request", json!({"code": "pictures 600 100000"}));
    let mut displays = 0;
    loop {
        let message = kernel.iopub();
        match message["msg_type"].as_str() {
            Some("display_data") => displays += 1,
            Some("status") if message["content"]["execution_state"] == "idle" => break,
            _ => {}
        }
    }
    assert_eq!(displays, 600);
    let grown = peak_memory() - before;
    println!("120 MB of displays: peak memory + {} MB", grown >> 20);
    assert!(grown < 110 << 20, "memory grew by {} MB", grown >> 20);
}

#[test]
fn an_interrupt_gets_through_a_flood() {
    let folder = Folder::new();
    let mut kernel = kernel_with_state(&folder);
    kernel.send_shell("execute_request", json!({"code": "flood 3000000\nwait"}));
    kernel.iopub_until(|m| m["msg_type"] == "stream");
    let asked = Instant::now();
    kernel.ask_control_only("interrupt_request", json!({}));
    // A few milliseconds; behind the flood it would wait for ever.
    println!("an answer in a flood: {:?}", asked.elapsed());
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(kernel.shell()["content"]["ename"], "Interrupted");
}
