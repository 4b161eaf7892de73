//! Where xlazy keeps what outlives a run: histories, output that was too much to show.
use std::path::PathBuf;

/// `XLAZY_HOME`, or the folder that install.sh fills.
pub fn home() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("XLAZY_HOME").or_else(|| Some(set("HOME")?.join(".local/share/xlazy")))
}
