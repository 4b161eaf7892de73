//! The CPU plugin that is xlazy's own: no package brings it, so it is built on this machine, out of sources that lie beside xlazy.
use crate::eval::install::Installation;
use std::path::PathBuf;
use std::process::Command;

pub const NAME: &str = "cpu-multi";

/// What it is for and what it takes, for whoever has to decide.
pub const ABOUT: &str = "xlazy's own plugin for the CPU: meshes over several workers of a pod, and `%%profile`. It is built here: that \
                         takes g++, python3 with pip, a download of 274 MB (TensorFlow's wheel, Apache-2.0, whose XLA it uses) and \
                         2 GB while it is built; 635 MB stay, and 290 MB in the cache";

/// What builds it: with the sources that were installed along, or those that this xlazy was built from.
fn script(installation: &Installation) -> Option<PathBuf> {
    let along = installation.runtime_so.with_file_name("cpu-plugin");
    let sources = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    [along, sources].into_iter().map(|d| d.join("scripts/cpu-plugin.sh")).find(|s| s.is_file())
}

/// Has it built, and shows what is said meanwhile. Where it is there already, that takes a moment.
pub fn install(installation: &Installation) -> Result<(), String> {
    let script =
        script(installation).ok_or("the plugin's sources did not come along with this xlazy: install it anew")?;
    let folder = installation.plugins_dir.join(NAME);
    super::say(&format!("{ABOUT}."));
    let built = Command::new("bash").arg(&script).arg(&folder).status().map_err(|e| format!("bash: {e}"))?;
    if !built.success() {
        return Err(format!("it was not built: see above; then `xlazy plugins install {NAME}` goes on"));
    }
    super::say(&format!(
        "pods of CPUs use it from their next start (`%pod restart`); XLAZY_CPU_PLUGIN={} has every session use it",
        folder.join("libpjrt_cpu.so").display()
    ));
    Ok(())
}
