//! XLA on the CPU, through a ready plugin or the one in `runtime/plugins/cpu`.
use super::plugin::{Platform, candidates};
use crate::Error;
use xlazy_pjrt::Value;

pub static CPU: Platform = Platform {
    name: "CPU",
    candidates: || candidates("XLAZY_CPU_PLUGIN", "cpu/libpjrt_cpu.so"),
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
    // Without these the libraries print log lines and turn oneDNN on, which changes results in the last bits.
    environment: &[("TF_ENABLE_ONEDNN_OPTS", "0"), ("TF_CPP_MIN_LOG_LEVEL", "3")],
    remedy: "Run `xlazy plugins install cpu`, or set XLAZY_CPU_PLUGIN to the path of a libpjrt_cpu.so.",
};
