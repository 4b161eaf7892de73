//! `xlazy bench pods`: what a pod of two processes on this machine costs: its start, a program of one device and sums over its four,
//! bytes to a worker and back; beside JAX, in the same run, where a Python is named that has it.
use super::engines;
use super::options::{json_flag, rounds};
use super::report::{last_line, say};
use crate::engine::{Event, Reply, Request};
use clap::{Arg, ArgMatches, Command};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Instant;

const PEERS: &str = include_str!("bench_pods/peers.py");

/// As in `peers.py`; what it prints is JSON.
const CELL: &str = r#"
let mesh = Mesh::new(&[("data", 4)]);
let mut figures: Vec<String> = vec![];
let timed = |name: &str, run: &dyn Fn() -> Tensor| {
    let mut times: Vec<f64> = vec![];
    for _ in 0..ROUNDS + 1 {
        let begin = std::time::Instant::now();
        let made = run();
        sync();
        made.wait();
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    format!("\"{name}_least_us\": {:.1}, \"{name}_us\": {:.1}", times[0], times[times.len() / 2])
};
let one = Tensor::ones([4]);
sync();
figures.push(timed("one_device", &|| &one + 1.0));
for (name, size) in [("16_bytes", 4), ("256_kb", 1 << 16), ("16_mb", 1 << 22)] {
    let ones = mark_sharding(&Tensor::ones([4, size]), &mesh, &[Some("data"), None]);
    sync();
    figures.push(timed(name, &|| ones.sum_dim(0, false)));
}
let host = vec![1.0f32; 1 << 24];
let (mut there, mut back) = (0.0f64, 0.0f64);
for _ in 0..3 {
    let begin = std::time::Instant::now();
    let far = tensor(&host[..]);
    far.i(0).item();
    there = there.max((host.len() * 4) as f64 / begin.elapsed().as_secs_f64() / 1e9);
    let begin = std::time::Instant::now();
    let got = far.to_vec::<f32>();
    back = back.max((got.len() * 4) as f64 / begin.elapsed().as_secs_f64() / 1e9);
}
figures.push(format!("\"to_worker_gb_s\": {there:.2}, \"from_worker_gb_s\": {back:.2}"));
println!("{{{}}}", figures.join(", "));
"#;

pub fn command() -> Command {
    Command::new("pods")
        .about("What a pod of two processes costs: its start, a program, sums over its devices, bytes to it and back; beside JAX")
        .arg(json_flag())
        .arg(rounds("50", 9999, "Sums of each size that are measured"))
        .arg(
            Arg::new("peers")
                .long("peers")
                .value_name("PYTHON")
                .value_parser(clap::value_parser!(PathBuf))
                .help("A Python whose jax does the same"),
        )
}

/// Measures and prints.
///
/// Errors: why there is no pod, or no sum over one, as where the CPU plugin has no collectives between processes.
pub fn run(matches: &ArgMatches) -> Result<(), String> {
    let rounds = matches.get_one::<u64>("rounds").expect("it has a default").to_string();
    let mut rows = vec![("xlazy", ours(&rounds)?)];
    if let Some(python) = matches.get_one::<PathBuf>("peers") {
        let mut command = std::process::Command::new(python);
        command.args(["-c", PEERS, &rounds]);
        let row = last_line(command, python)?;
        if !row.is_null() {
            rows.push(("jax", row));
        }
    }
    if matches.get_flag("json") {
        let all: Map<String, Value> = rows.into_iter().map(|(name, row)| (name.to_owned(), row)).collect();
        say(&Value::Object(all).to_string());
        return Ok(());
    }
    let names: Vec<&String> = rows[0].1.as_object().map(|o| o.keys().collect()).unwrap_or_default();
    for name in names {
        let cells: Vec<String> =
            rows.iter().map(|(_, row)| format!("{:>14}", row[name].to_string().replace("null", "–"))).collect();
        say(&format!("{name:<20}{}", cells.concat()));
    }
    Ok(())
}

fn ours(rounds: &str) -> Result<Value, String> {
    let engine = engines::start().map_err(|f| f.message)?;
    let cell = |code: &str| {
        let request = Request { code: code.to_owned(), cell: 1, ..Request::default() };
        let mut printed = String::new();
        let reply = engine.execute(&request, &mut |event| {
            if let Event::Stream { text, stderr: false } = event {
                printed += &text;
            }
        });
        match reply {
            Reply::Error(failure) => Err(failure.message),
            _ => Ok(printed),
        }
    };
    // The session is there already, as in a notebook.
    cell("1")?;
    let begin = Instant::now();
    cell("%pod start --workers 2 --devices 2")?;
    let start = begin.elapsed().as_secs_f64();
    let printed = cell(&CELL.replace("ROUNDS", rounds));
    engine.shutdown();
    let mut row: Map<String, Value> = serde_json::from_str(&printed?).map_err(|e| e.to_string())?;
    row.insert("start_s".into(), json!((start * 1e3).round() / 1e3));
    Ok(row.into())
}
