//! What a platform is: its plugin, with options and environment.
use crate::{Error, Result};
use std::path::PathBuf;
use xlazy_mime::private;
use xlazy_pjrt::Value;

/// What tells one platform from another.
pub struct Platform {
    /// As in `PJRT_DEVICE`.
    pub name: &'static str,
    /// Where the plugin may be, in the order to look.
    pub candidates: fn() -> Vec<PathBuf>,
    pub options: fn() -> Result<Vec<(&'static str, Value)>>,
    /// Flags of XLA's that a program needs, by its text.
    pub flags: fn(&str) -> Vec<(&'static str, Value)>,
    /// Environment that the plugin wants before it is loaded, where the user has not set it.
    pub environment: &'static [(&'static str, &'static str)],
    /// What to do when there is no plugin.
    pub remedy: &'static str,
}

impl Platform {
    /// The plugin's library. One that a variable names is taken as it is; one that lies in a folder of plugins must be of
    /// this user, or of whoever has installed xlazy.
    pub fn library(&self) -> Result<PathBuf> {
        let candidates = (self.candidates)();
        let found = candidates.iter().find(|p| p.exists()).cloned().ok_or_else(|| {
            let looked: Vec<String> = candidates.iter().map(|p| p.display().to_string()).collect();
            let looked = if looked.is_empty() { String::new() } else { format!("; looked for {}", looked.join(", ")) };
            Error::Usage { message: format!("no PJRT plugin for {} was found{looked}. {}", self.name, self.remedy) }
        })?;
        if plugin_dirs().iter().any(|d| found.starts_with(d)) {
            let refused = |e| Error::Usage { message: format!("the PJRT plugin for {} is not loaded: {e}", self.name) };
            private::installed(&found).map_err(refused)?;
        }
        Ok(found)
    }
}

/// Folders that hold one subfolder per plugin: the installation's, or the build tree's when xlazy runs from one.
pub(super) fn plugin_dirs() -> Vec<PathBuf> {
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let mut out: Vec<PathBuf> = var("XLAZY_PLUGIN_DIR").into_iter().collect();
    out.extend(var("XLAZY_HOME").map(|h| h.join("plugins")));
    if let Ok(exe) = std::env::current_exe() {
        for dir in exe.ancestors().skip(1) {
            out.push(dir.join("plugins"));
            if dir.file_name().is_some_and(|n| n == "target") {
                out.push(dir.join("home/plugins"));
            }
        }
    }
    out.extend(var("HOME").map(|h| h.join(".local/share/xlazy/plugins")));
    out.retain(|d| d.is_dir());
    out
}

/// `relative` below each plugin folder, after the path that `variable` names.
pub(super) fn candidates(variable: &str, relative: &str) -> Vec<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    named.into_iter().chain(plugin_dirs().into_iter().map(|d| d.join(relative))).collect()
}
