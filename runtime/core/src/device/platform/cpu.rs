//! XLA on the CPU, through a ready plugin or the one in `runtime/plugins/cpu`.
use super::plugin::{Platform, bits, candidates, plugin_dirs, var};
use super::unfold::unfolded;
use crate::Error;
use std::path::PathBuf;
use xlazy_pjrt::Value;

pub static CPU: Platform = Platform {
    name: "CPU",
    candidates: of_one,
    options: || match std::env::var("XLAZY_CPU_DEVICES") {
        Ok(n) if !n.is_empty() => match n.parse() {
            Ok(count @ 1..) => Ok(vec![("cpu_device_count", Value::Int(count))]),
            _ => Err(Error::Usage {
                message: format!(
                    "XLAZY_CPU_DEVICES={n}: it says as how many devices the CPU counts, which is 1 or more"
                ),
            }),
        },
        // Plugins differ in what they take where nobody says.
        _ => Ok(vec![("cpu_device_count", Value::Int(1))]),
    },
    flags: |program| match joins_cut_integers(program) {
        true => vec![("xla_cpu_use_fusion_emitters", Value::Bool(false))],
        false => vec![],
    },
    form: unfolded,
    lacks: |_| None,
    // Without these the libraries print log lines and turn oneDNN on, which changes results in the last bits.
    environment: &[("TF_ENABLE_ONEDNN_OPTS", "0"), ("TF_CPP_MIN_LOG_LEVEL", "3")],
    // Devices of one processor come to a collective as they get their turn, and an abort after 40 seconds ends all that there is.
    flags_of_several: &[
        "--xla_cpu_collective_call_terminate_timeout_seconds=604800",
        "--xla_cpu_collective_call_warn_stuck_timeout_seconds=604800",
    ],
    no_client: "",
    remedy: "Run `xlazy plugins install cpu`, or set XLAZY_CPU_PLUGIN to the path of a libpjrt_cpu.so.",
};

/// For a process that is one of several: a ready plugin knows nothing of the others.
pub static CPU_OF_SEVERAL: Platform = Platform { candidates: of_several, ..CPU };

fn of_one() -> Vec<PathBuf> {
    let mut all = candidates("XLAZY_CPU_PLUGIN", "cpu/libpjrt_cpu.so");
    // What pip has put beside xlazy.
    all.extend(var("XLAZY_CPU_PLUGIN_BESIDE"));
    all
}

fn of_several() -> Vec<PathBuf> {
    let own = plugin_dirs().into_iter().map(|d| d.join("cpu-multi/libpjrt_cpu.so"));
    var("XLAZY_CPU_PLUGIN").into_iter().chain(own).chain(of_one()).collect()
}

/// Whether a program has `and` or `or` of integers, and integers cut to fewer bits: where one is computed of the other in one
/// kernel, XLA's emitter of fusions follows a null pointer, and the process is gone.
fn joins_cut_integers(program: &str) -> bool {
    let cut = |line: &str| {
        let (_, types) = line.split_once("stablehlo.convert")?;
        let (from, to) = types.split_once("->")?;
        Some(bits(to)? < bits(from)?)
    };
    let joins = |line: &str| ["stablehlo.and\"", "stablehlo.or\""].iter().any(|op| line.contains(op));
    let joined = |line: &str| joins(line) && line.rsplit("->").next().and_then(bits).is_some();
    program.lines().any(joined) && program.lines().any(|line| cut(line) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::joins_cut_integers;

    #[test]
    fn a_program_that_cuts_integers_and_joins_integers_is_told() {
        let cut = "    %3 = \"stablehlo.convert\"(%1) : (tensor<4xi64>) -> tensor<4xi8>\n";
        let wider = "    %3 = \"stablehlo.convert\"(%1) : (tensor<ui8>) -> tensor<i64>\n";
        let or = "    %5 = \"stablehlo.or\"(%3, %4) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>\n";
        let bools = "    %6 = \"stablehlo.and\"(%3, %4) : (tensor<i1>, tensor<i1>) -> tensor<i1>\n";
        assert!(joins_cut_integers(&format!("{cut}{or}")));
        assert!(!joins_cut_integers(&format!("{wider}{or}")) && !joins_cut_integers(&format!("{cut}{bools}")));
    }
}
