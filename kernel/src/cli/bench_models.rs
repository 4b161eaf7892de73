//! `xlazy bench models`: what training steps and inference of whole models cost; beside JAX, torch_xla and eager PyTorch, in the same
//! run, where a Python is named that has them.
use super::options::{json_flag, rounds};
use super::report::last_line;
use crate::eval::install::Installation;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The models of `runtime/src/bench/models.rs` and of `bench_models/peers.py`.
const MODELS: &[&str] = &["mlp", "resnet18_32", "resnet50_inference", "bert_4", "vit_tiny", "dlrm"];
/// Those for an accelerator, which run where they are named.
const LARGE: &[&str] = &["bert_base_bf16", "vit_base_bf16"];
const PEERS: &str = include_str!("bench_models/peers.py");
const FIGURES: &[&str] = &["first_s", "first_cpu_s", "step_ms", "step_cpu_ms"];

pub fn command() -> Command {
    Command::new("models")
        .about(
            "What steps of models cost, and the first, which compiles; beside JAX and PyTorch where a Python has them",
        )
        .arg(json_flag())
        .arg(rounds("15", 999, "Steps of each model that are measured"))
        .arg(
            Arg::new("platform")
                .long("platform")
                .value_name("PLATFORM")
                .value_parser(["cpu", "cuda", "tpu"])
                .ignore_case(true)
                .env("PJRT_DEVICE")
                .default_value("cpu")
                .help("Where they run, the peers' too"),
        )
        .arg(
            Arg::new("peers")
                .long("peers")
                .value_name("PYTHON")
                .value_parser(clap::value_parser!(PathBuf))
                .action(ArgAction::Append)
                .help("A Python whose jax, torch_xla or torch run the same models, one after the other with these"),
        )
        .arg(
            Arg::new("models")
                .value_name("MODEL")
                .num_args(0..)
                .value_parser(clap::builder::PossibleValuesParser::new([MODELS, LARGE].concat()))
                .help("Which; where none is named, all but the two large ones in bfloat16"),
        )
}

/// Each in a process of its own: nothing of one is warm for another.
pub fn run(matches: &ArgMatches) -> Result<(), String> {
    let installation = Installation::find().map_err(|f| f.message.clone())?;
    let rounds = matches.get_one::<u64>("rounds").expect("it has a default").to_string();
    let named = matches.get_many::<String>("models").map(|all| all.map(String::as_str).collect());
    let models: Vec<&str> = named.unwrap_or_else(|| MODELS.to_vec());
    let pythons: Vec<&PathBuf> = matches.get_many::<PathBuf>("peers").into_iter().flatten().collect();
    let platform = matches.get_one::<String>("platform").expect("it has a default").to_lowercase();
    let as_json = matches.get_flag("json");
    let mut all = Map::new();
    for model in models {
        let mut command = installation.session();
        command
            .args(["--bench", "models", model, &rounds])
            .env("XLAZY_PROGRAM_CACHE", "off")
            .env("PJRT_DEVICE", platform.to_uppercase());
        let mut rows = vec![("xlazy".to_owned(), last_line(command, &installation.session_exe)?)];
        for python in &pythons {
            for peer in ["jax", "torch_xla", "eager", "compiled"] {
                let mut command = std::process::Command::new(python);
                command.args(["-c", PEERS, peer, model, &rounds, &platform]);
                let row = last_line(command, python)?;
                if !row.is_null() {
                    rows.push((peer.to_owned(), row));
                }
            }
        }
        if !as_json {
            print(model, &rows);
        }
        all.insert(model.to_owned(), with_ratios(rows));
    }
    if as_json {
        println!("{}", Value::Object(all));
    }
    Ok(())
}

/// Ours over each peer's.
fn ratio(rows: &[(String, Value)], peer: &Value, figure: &str) -> Option<f64> {
    let (ours, theirs) = (rows[0].1[figure].as_f64()?, peer[figure].as_f64()?);
    (theirs > 0.0).then(|| (ours / theirs * 100.0).round() / 100.0)
}

fn with_ratios(rows: Vec<(String, Value)>) -> Value {
    let mut out = Map::new();
    for (name, row) in &rows[1..] {
        let ratios: Map<String, Value> =
            FIGURES.iter().filter_map(|f| Some(((*f).to_owned(), json!(ratio(&rows, row, f)?)))).collect();
        out.insert(format!("over {name}"), Value::Object(ratios));
    }
    out.extend(rows);
    Value::Object(out)
}

fn print(model: &str, rows: &[(String, Value)]) {
    println!("{model:<20} {:>12} {:>12} {:>12} {:>12}", "first s", "first cpu s", "step ms", "step cpu ms");
    for (i, (name, row)) in rows.iter().enumerate() {
        let cell = |f: &&str| {
            let figure = row[*f].as_f64().unwrap_or_default();
            let times = ratio(rows, row, f).filter(|_| i > 0).map(|r| format!(" ×{r:.2}")).unwrap_or_default();
            format!(" {:>12}", format!("{figure:.2}{times}"))
        };
        let cells: String = FIGURES.iter().map(cell).collect();
        println!("  {name:<18}{cells}");
    }
}
