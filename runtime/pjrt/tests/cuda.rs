//! XLA's CUDA plugin on a machine without a GPU, if `XLAZY_CUDA_PLUGIN` names it: a clear error from the client, and a compile
//! for a GPU that is described in words, which finds NVIDIA's assembler beside the plugin.
mod common;

use std::path::PathBuf;
use xlazy_pjrt::{CompileOptions, Plugin, Program, Value};

fn cuda() -> Option<Plugin> {
    let Some(file) = std::env::var_os("XLAZY_CUDA_PLUGIN").map(PathBuf::from) else {
        println!("skipped: XLAZY_CUDA_PLUGIN is not set");
        return None;
    };
    Some(Plugin::load(&file).unwrap())
}

/// What the compiler asks of a GPU, of compute capability 8.0 here (`stream_executor.GpuTargetConfigProto`).
const AMPERE: &str = "gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 \
    shared_memory_per_core: 167936 shared_memory_per_block_optin: 166912 threads_per_core_limit: 2048 core_count: 108 \
    fpus_per_core: 64 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 \
    thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64 memory_bandwidth: 2000000000000 \
    l2_cache_size: 41943040 clock_rate_ghz: 1.41 device_memory_size: 85100068864 cuda_compute_capability { major: 8 } \
    registers_per_core_limit: 65536 registers_per_block_limit: 65536 } platform_name: \"CUDA\" \
    dnn_version_info { major: 9 minor: 10 } device_description_str: \"compute capability 8.0\"";

/// A kernel that needs a routine of libdevice.
const ERF: &str = "module { func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %s = stablehlo.sine %x : tensor<64x64xf32>
    %p = stablehlo.power %s, %x : tensor<64x64xf32>
    return %p : tensor<64x64xf32> } }";

#[test]
fn no_gpu_is_an_error_value() {
    let Some(plugin) = cuda() else { return };
    println!("{plugin:?}");
    match plugin.create_client(&[]) {
        Ok(client) => println!("there is a GPU: {} {}", client.platform_name(), client.platform_version()),
        Err(e) => assert!(e.message.contains("No visible GPU devices"), "{e}"),
    }
}

#[test]
fn programs_compile_for_a_gpu_that_is_not_there() {
    let Some(plugin) = cuda() else { return };
    let options = [("target_config", Value::Str(AMPERE.into())), ("topology", Value::Str("1x1x1".into()))];
    let topology = plugin.topology("", &options).unwrap();
    let program = plugin.compile(&topology, &Program::mlir(ERF), &CompileOptions::default()).unwrap();
    let code = program.serialize().unwrap();
    assert!(code.windows(4).any(|w| w == b"\x7fELF"), "no kernel was assembled: {} bytes", code.len());
}
