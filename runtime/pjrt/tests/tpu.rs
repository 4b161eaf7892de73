//! libtpu on a machine without a TPU, if `TPU_LIBRARY_PATH` names it: a clear error from the client, and compiles ahead of time.
mod common;

use common::*;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use xlazy_pjrt::{CompileOptions, Plugin, Program, Value};

/// libtpu, told not to look for a TPU.
fn libtpu() -> Option<Plugin> {
    let Some(file) = std::env::var_os("TPU_LIBRARY_PATH").map(PathBuf::from) else {
        println!("skipped: TPU_LIBRARY_PATH is not set");
        return None;
    };
    for (name, value) in [
        ("TPU_SKIP_MDS_QUERY", "1"),
        ("TPU_ACCELERATOR_TYPE", "v5litepod-4"),
        ("TPU_WORKER_HOSTNAMES", "localhost"),
        ("TPU_LOG_DIR", "disabled"),
        ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1"),
    ] {
        #[allow(unsafe_code)]
        // SAFETY: nextest gives each test a process; the plugin and its threads come later.
        unsafe {
            std::env::set_var(name, value);
        }
    }
    Some(Plugin::load(&file).unwrap())
}

#[test]
fn no_tpu_is_an_error_value() {
    let Some(plugin) = libtpu() else { return };
    let start = Instant::now();
    let e = plugin.create_client(&[]).unwrap_err();
    assert!(e.message.contains("No jellyfish device found"), "{e}");
    println!("{e} ({:?})", start.elapsed());
    // Without the environment that it is given it asks the network for minutes.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn programs_compile_for_a_tpu_that_is_not_there() {
    let Some(plugin) = libtpu() else { return };
    println!("{plugin:?} {:?}", plugin.attributes().unwrap());
    let topology = plugin.topology("v5e:2x2", &[]).unwrap();
    let devices = topology.devices().unwrap();
    assert_eq!((devices.len(), devices[3].kind()), (4, "TPU v5 lite"));
    assert!(devices[0].attributes().iter().any(|(name, value)| name == "coords" && matches!(value, Value::Ints(_))));
    let options = CompileOptions { optimization_level: Some(CompileOptions::O1), ..Default::default() };
    let program = plugin.compile(&topology, &Program::mlir(MATMUL), &options).unwrap();
    let (format, code) = program.optimized_program().unwrap();
    assert_eq!(format, "hlo_with_config");
    assert!(code.windows(16).any(|w| w == b"estimated_cycles"));
    let memory = program.memory_stats().unwrap();
    assert!(memory.peak_memory > 0 && memory.argument_size > 0, "{memory:?}");
    assert!(!program.cost_analysis().unwrap().is_empty());
    assert!(!program.serialize().unwrap().is_empty() && !program.fingerprint().unwrap().is_empty());

    // Four replicas, with the assignment left to the plugin and given.
    for assignment in [None, Some(vec![0, 1, 2, 3])] {
        let options = CompileOptions { replicas: 4, assignment, ..options.clone() };
        plugin.compile(&topology, &Program::mlir(ALL_REDUCE), &options).unwrap();
    }
    let e = plugin.compile(&topology, &Program::mlir("nonsense"), &options).unwrap_err();
    assert!(!e.message.is_empty());
    let e = plugin.topology("v9z:1x1", &[]).unwrap_err();
    assert!(e.message.contains("Invalid TPU external name"), "{e}");
    drop((program, topology));
    assert_eq!(xlazy_pjrt::live(), Default::default());
}
