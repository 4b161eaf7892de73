//! Serving one Jupyter connection: the connection file, the history's place, what the kernel says about itself.
use crate::engine::{Engine, Failure};
use crate::wire::{Options, connection, serve};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Serves the connection until Jupyter ends it. `engine` is called once, beside the first messages.
pub fn run<F>(connection_file: &Path, rust_version: &str, engine: F) -> io::Result<()>
where
    F: FnOnce() -> Result<Arc<dyn Engine>, Failure> + Send + 'static,
{
    let version = env!("CARGO_PKG_VERSION");
    let options = Options {
        history: history_file(),
        version: version.to_owned(),
        rust_version: rust_version.to_owned(),
        banner: format!("xlazy {version}: Rust with lazy tensors on XLA. %help lists the magics."),
    };
    serve(&connection(connection_file)?, options, engine)
}

/// One history for all kernels of a user, beside the installation.
fn history_file() -> Option<PathBuf> {
    Some(crate::home::home()?.join("state/history.jsonl"))
}
