//! Which notebook the cells are of, and where the versions of its dependencies are kept.
use crate::eval::text::hash::short_hash;
use crate::eval::toolchain::install::Installation;
use std::path::PathBuf;

/// Whose dependencies they are: the notebook that `xlazy run` or Jupyter names, or the folder, where nobody says.
pub struct Notebook {
    pub(super) id: String,
    /// The lock that stays beside the notebook, so that it builds the same tomorrow and on another machine. Notebooks
    /// without a name (VS Code, `jupyter console`, nbclient) share `xlazy.lock`, where somebody has put one into the
    /// folder; else the lock stays in the cache.
    pub lock: Option<PathBuf>,
}

impl Notebook {
    pub fn find(install: &Installation) -> Notebook {
        let dir = std::env::current_dir().unwrap_or_default();
        let path = install.named_notebook().as_ref().map(|n| dir.join(n.file_name().unwrap_or_default()));
        let id = short_hash(&path.as_ref().unwrap_or(&dir).to_string_lossy());
        let lock = match path {
            Some(path) => Some(path).filter(|p| p.is_file()).map(|p| p.with_extension("lock")),
            None => Some(dir.join("xlazy.lock")).filter(|p| p.is_file()),
        };
        Notebook { id, lock }
    }
}
