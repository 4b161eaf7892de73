//! A kernel without Rust or tensors in it: the wire alone, for the protocol suite and for measuring its own share.
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use xlazy_kernel::wire;

#[path = "../tests/protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: mock_kernel CONNECTION_FILE");
        return ExitCode::FAILURE;
    };
    let options = wire::Options {
        history: std::env::var_os("MOCK_HISTORY").map(PathBuf::from),
        version: "0".into(),
        rust_version: "0".into(),
        banner: "mock".into(),
    };
    let served = wire::connection(&file).and_then(|connection| {
        wire::serve(&connection, options, || Ok(Arc::new(mock_engine::MockEngine::new().0) as _))
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("mock_kernel: {e}");
            ExitCode::FAILURE
        }
    }
}
