//! TPUs, through libtpu: xlazy's own copy, or one that something else has brought.
use super::plugin::{Platform, in_pythons, plugin_dirs, there, var};
use std::path::PathBuf;

pub static TPU: Platform = Platform {
    name: "TPU",
    candidates: || places().into_iter().map(|(path, _)| path).collect(),
    options: || Ok(Vec::new()),
    flags: |_| Vec::new(),
    form: |program| program.into(),
    lacks: |_| None,
    environment: &[],
    flags_of_several: &[],
    no_client: "",
    remedy: "Run `xlazy plugins install tpu`, or set TPU_LIBRARY_PATH to a libtpu.so that is there already.",
};

/// Environment in which libtpu neither looks for hardware nor asks the network about it, which takes minutes, nor minds other
/// processes that use it.
pub const NO_HARDWARE: &[(&str, &str)] = &[
    ("TPU_SKIP_MDS_QUERY", "1"),
    ("TPU_ACCELERATOR_TYPE", "v5litepod-4"),
    ("TPU_WORKER_HOSTNAMES", "localhost"),
    ("TPU_LOG_DIR", "disabled"),
    ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1"),
];

/// Every libtpu that is there, with what names it; the first one is used.
pub fn places() -> Vec<(PathBuf, &'static str)> {
    let mut out: Vec<(PathBuf, &str)> = Vec::new();
    out.extend(var("TPU_LIBRARY_PATH").map(|p| (p, "TPU_LIBRARY_PATH")));
    // The variable may name the plugin of any platform.
    let tpu = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().contains("tpu"));
    out.extend(var("PJRT_PLUGIN_LIBRARY_PATH").filter(tpu).map(|p| (p, "PJRT_PLUGIN_LIBRARY_PATH")));
    out.extend(plugin_dirs().into_iter().map(|d| (d.join("tpu/libtpu.so"), "xlazy plugins install tpu")));
    // Where TPU VMs have theirs, after what is in Pythons, as on Colab.
    out.extend(in_pythons(&["libtpu/libtpu.so"]));
    out.extend(["/usr/lib/libtpu.so", "/lib/libtpu.so"].map(|p| (PathBuf::from(p), "the system")));
    there(out)
}
