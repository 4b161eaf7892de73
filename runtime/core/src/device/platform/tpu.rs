//! TPUs, through libtpu: xlazy's own copy, or one that something else has brought.
use super::plugin::{Platform, plugin_dirs};
use std::path::{Path, PathBuf};

pub static TPU: Platform = Platform {
    name: "TPU",
    candidates: || places().into_iter().map(|(path, _)| path).collect(),
    options: || Ok(Vec::new()),
    flags: |_| Vec::new(),
    environment: &[],
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
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let mut out: Vec<(PathBuf, &str)> = Vec::new();
    out.extend(var("TPU_LIBRARY_PATH").map(|p| (p, "TPU_LIBRARY_PATH")));
    // The variable may name the plugin of any platform.
    let tpu = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().contains("tpu"));
    out.extend(var("PJRT_PLUGIN_LIBRARY_PATH").filter(tpu).map(|p| (p, "PJRT_PLUGIN_LIBRARY_PATH")));
    out.extend(plugin_dirs().into_iter().map(|d| (d.join("tpu/libtpu.so"), "xlazy plugins install tpu")));
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(|v| Some((var(v)?, v)));
    out.extend(environments.flat_map(|(d, v)| in_python(&d).map(move |p| (p, v))));
    out.extend(python_prefix().into_iter().flat_map(|d| in_python(&d)).map(|p| (p, "python3")));
    out.extend(
        var("HOME").into_iter().flat_map(|d| in_python(&d.join(".local"))).map(|p| (p, "the user's Python packages")),
    );
    // Where Colab, and where TPU VMs have theirs.
    out.extend(
        ["/usr/local", "/usr"].into_iter().flat_map(|d| in_python(Path::new(d))).map(|p| (p, "the system's Python")),
    );
    out.extend(["/usr/lib/libtpu.so", "/lib/libtpu.so"].map(|p| (PathBuf::from(p), "the system")));
    let mut seen = std::collections::HashSet::new();
    out.retain(|(p, _)| p.canonicalize().is_ok_and(|p| seen.insert(p)));
    out
}

/// libtpu among the packages of the Pythons below a prefix.
fn in_python(prefix: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let pythons = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten().map(|d| d.path());
    let pythons = pythons.filter(|d| d.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python3")));
    let packages = |d: PathBuf| ["site-packages", "dist-packages"].map(|p| d.join(p).join("libtpu/libtpu.so"));
    pythons.flat_map(packages).filter(|p| p.is_file())
}

/// The prefix of the `python3` that a shell would run.
fn python_prefix() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let python = std::env::split_paths(&path).map(|d| d.join("python3")).find(|p| p.is_file())?;
    Some(python.parent()?.parent()?.to_owned())
}
