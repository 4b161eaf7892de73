//! `xlazy bench cells`: how long cells take over the real protocol, from `execute_request` to `idle`; beside
//! `evcxr_jupyter`, cell by cell in turns, where that is installed.
mod client;
mod lessons;

use super::options::{json_flag, rounds};
use super::report::say;
use clap::{Arg, ArgMatches};
use client::{Kernel, PAUSE, Took};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// `{i}` is another number in every round, so that the text is always new.
const CELLS: &[(&str, &str)] = &[
    ("let", "let a{i} = {i};"),
    ("expression", "a + {i}"),
    ("loop", "let mut s = {i}u64; for i in 0..10u64 { s += i * 2; } s"),
    ("print", "println!(\"hello {} {}\", a, {i});"),
    ("collect", "words.iter().map(|w| w.len() + {i}).collect::<Vec<_>>()"),
];
const SETUP: &str = "let a = 1; let words = vec![String::from(\"one\"), String::from(\"three\")];";
/// Cells that make the compiler generate much code for other crates' types.
const WITH_CRATES: &[(&str, &str)] = &[
    (
        "serde_json",
        "let v{i} = json!({\"name\": \"x\", \"age\": {i}, \"tags\": [\"a\", \"b\"]}); \
         let p{i}: P = serde_json::from_value(v{i}).unwrap(); println!(\"{}\", serde_json::to_string_pretty(&p{i}).unwrap());",
    ),
    ("ndarray", "let m{i} = array![[1.0, 2.0], [3.0, {i}.5]]; println!(\"{}\", m{i}.dot(&m{i}) + &m{i}.t());"),
];
const CRATES: &str = ":dep serde = { version = \"1\", features = [\"derive\"] }\n:dep serde_json = \"1\"\n:dep ndarray = \"0.16\"\n\
    use serde::{Serialize, Deserialize}; use serde_json::json; use ndarray::array;\n\
    #[derive(Serialize, Deserialize)] struct P { name: String, age: u64, tags: Vec<String> }";

pub fn command() -> clap::Command {
    clap::Command::new("cells")
        .about("How long cells take over the Jupyter protocol; beside evcxr_jupyter where that is installed")
        .arg(json_flag())
        .arg(rounds("15", 99, "Runs of every cell"))
        .arg(
            Arg::new("notebooks")
                .long("notebooks")
                .value_name("FOLDER")
                .default_value("notebooks")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Where the lessons are, whose cells are one row"),
        )
}

/// Measures and prints; the error is for the user.
pub fn run(matches: &ArgMatches) -> Result<(), String> {
    let as_json = matches.get_flag("json");
    let rounds = *matches.get_one::<u64>("rounds").expect("it has a default") as usize;
    let notebooks = matches.get_one::<PathBuf>("notebooks").expect("it has a default");
    let text = |e: io::Error| e.to_string();
    let exe = std::env::current_exe().map_err(text)?;
    let mut kernels = vec![Kernel::ours(&exe)?];
    if let Some(evcxr) = on_path("evcxr_jupyter") {
        kernels.push(Kernel::start("evcxr", Command::new(&evcxr).arg("--control_file"))?);
    }
    for kernel in &mut kernels {
        kernel.execute(SETUP)?;
    }
    let ops = format!("let mut x = Tensor::ones([8, 8]); {}", "x = (&x * {i}.5).tanh(); ".repeat(30));
    let cells: Vec<(&str, &str)> = CELLS.iter().copied().chain([("60 ops", ops.as_str())]).collect();
    let mut measured = measure(&mut kernels, &cells, rounds)?;
    kernels[0].execute("x")?;
    std::thread::park_timeout(PAUSE);
    let memory: Vec<[Value; 2]> = kernels.iter().map(Kernel::memory).collect();
    let built: Result<Vec<f64>, String> = kernels.iter_mut().map(|k| k.execute(CRATES)).collect();
    match built {
        Ok(_) => {
            let more = measure(&mut kernels, WITH_CRATES, rounds)?;
            measured.iter_mut().zip(more).for_each(|(m, more)| m.extend(more));
        }
        Err(why) => eprintln!("left out, cells that use crates: {why}"),
    }
    measured[0].extend(after_types(&exe, rounds)?);
    match lessons::measure(&exe, notebooks) {
        Ok(times) => {
            let of = |name: &str, ms: fn(&Took) -> f64| {
                let [new, again] = times.each_ref().map(|all| summary(&mut all.iter().map(ms).collect::<Vec<_>>()));
                json!({ "cell": name, "cells": times[0].len(), "new": new, "again": again })
            };
            measured[0].extend([of("lessons", |t| t.ms), of("lessons, rustc", |t| t.compiling)]);
        }
        Err(why) => eprintln!("left out, the lessons: {why}"),
    }
    let mut report = serde_json::Map::new();
    for ((kernel, cells), [pss, anonymous]) in kernels.iter().zip(measured).zip(memory) {
        let value = json!({ "start_ms": kernel.start_ms, "pss_mb": pss, "anonymous_mb": anonymous, "cells": cells });
        report.insert(kernel.name.to_owned(), value);
    }
    drop(kernels);
    report["xlazy"]["first_tensor_ms"] = first_tensor(&exe)?.into();
    if as_json {
        say(&Value::Object(report).to_string());
    } else {
        print_table(&report);
    }
    Ok(())
}

/// What cells cost after 50 others have defined a type each, in a kernel of its own.
fn after_types(exe: &Path, rounds: usize) -> Result<Vec<Value>, String> {
    let mut kernel = [Kernel::ours(exe)?];
    for i in 0..50 {
        kernel[0].execute(&format!("struct S{i}(u64); impl S{i} {{ fn get(&self) -> u64 {{ self.0 + {i} }} }}"))?;
    }
    let all: String = (0..50).map(|i| format!("S{i}({i}).get(), ")).collect();
    let cells = [("let, 50 types", "let b{i} = {i};"), ("use of 50 types", &format!("[{all}].len() + {{i}}"))];
    Ok(measure(&mut kernel, &cells, rounds)?.remove(0))
}

/// For each kernel, how long each cell takes the first and the second time.
fn measure(kernels: &mut [Kernel], cells: &[(&str, &str)], rounds: usize) -> Result<Vec<Vec<Value>>, String> {
    let mut measured: Vec<Vec<Value>> = kernels.iter().map(|_| Vec::new()).collect();
    for (name, code) in cells {
        let mut times: Vec<[Vec<f64>; 2]> = kernels.iter().map(|_| Default::default()).collect();
        for round in 0..rounds {
            // Never the same number again, not even in the next measurement: the cell cache outlives it.
            let code = code.replace("{i}", &(std::process::id() as usize % 100_000 * 100 + round).to_string());
            for (kernel, times) in kernels.iter_mut().zip(&mut times) {
                if *name == "60 ops" && kernel.name != "xlazy" {
                    continue;
                }
                for times in times {
                    std::thread::park_timeout(PAUSE);
                    times.push(kernel.execute(&code)?);
                }
            }
        }
        for ([new, again], out) in times.iter_mut().zip(&mut measured) {
            if !new.is_empty() {
                out.push(json!({ "cell": name, "new": summary(new), "again": summary(again) }));
            }
        }
    }
    Ok(measured)
}

/// Milliseconds from starting a kernel until it has shown a tensor.
fn first_tensor(exe: &Path) -> Result<u64, String> {
    let begin = Instant::now();
    let mut kernel = Kernel::ours(exe)?;
    kernel.execute(&format!("Tensor::ones([2, 2]) * {}.5", std::process::id()))?;
    Ok(begin.elapsed().as_millis() as u64)
}

fn summary(times: &mut [f64]) -> Value {
    times.sort_by(f64::total_cmp);
    let at = |part: f64| (times[((times.len() - 1) as f64 * part).round() as usize] * 10.0).round() / 10.0;
    json!({ "median_ms": at(0.5), "p90_ms": at(0.9), "p95_ms": at(0.95), "best_ms": at(0.0) })
}

fn print_table(report: &serde_json::Map<String, Value>) {
    for (name, kernel) in report {
        let (start, pss, anonymous) = (&kernel["start_ms"], &kernel["pss_mb"], &kernel["anonymous_mb"]);
        say(&format!("{name}: kernel_info after {start} ms; PSS {pss} MB, of it anonymous {anonymous} MB"));
        if let Some(ms) = kernel["first_tensor_ms"].as_u64() {
            say(&format!("  first tensor shown {ms} ms after the start"));
        }
        for cell in kernel["cells"].as_array().into_iter().flatten() {
            let (new, again) = (&cell["new"], &cell["again"]);
            say(&format!(
                "  {:<16} new: median {:>6} ms, p90 {:>6} ms, p95 {:>6} ms   again: median {:>6} ms",
                cell["cell"].as_str().unwrap_or_default(),
                new["median_ms"],
                new["p90_ms"],
                new["p95_ms"],
                again["median_ms"]
            ));
        }
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|d| d.join(name)).find(|p| p.is_file())
}
