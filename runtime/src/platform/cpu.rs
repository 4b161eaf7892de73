//! XLA on the CPU, through xlazy's own plugin.
use super::{Platform, candidates};
use xlazy_pjrt::Value;

pub static CPU: Platform = Platform {
    name: "CPU",
    candidates: || candidates("XLAZY_CPU_PLUGIN", "cpu/libpjrt_cpu.so"),
    options: || match std::env::var("XLAZY_CPU_DEVICES").ok().and_then(|n| n.parse().ok()) {
        Some(n) => vec![("cpu_device_count", Value::Int(n))],
        None => vec![],
    },
    // Without these the libraries print log lines and turn oneDNN on, which changes results in the last bits.
    environment: &[("TF_ENABLE_ONEDNN_OPTS", "0"), ("TF_CPP_MIN_LOG_LEVEL", "3")],
    remedy: "Run install.sh again, or set XLAZY_CPU_PLUGIN to the path of libpjrt_cpu.so.",
};
