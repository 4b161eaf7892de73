//! What the tests share: the CPU plugin and small helpers.
#![allow(dead_code)]
// Setting environment variables is unsafe in general; nextest gives each test a process, and `plugin` runs first in it.
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};
use std::sync::Once;
use xlazy_pjrt::{Buffer, BufferType, Client, CompileOptions, Device, LoadedExecutable, Plugin, Program, Value};

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").leak()
}

/// The file of the CPU plugin; fails where there is none.
pub fn cpu_plugin_file() -> PathBuf {
    let file = match std::env::var_os("XLAZY_CPU_PLUGIN") {
        Some(file) => PathBuf::from(file),
        None => root().join("target/home/plugins/cpu/libpjrt_cpu.so"),
    };
    assert!(file.exists(), "no CPU plugin at {}: run tests/run.sh, which builds it", file.display());
    file
}

/// The folder in which the C header is: `XLAZY_PJRT_INCLUDE`, or `include_dir` in the plugin's `plugin.json`.
pub fn include_dir() -> String {
    if let Ok(folder) = std::env::var("XLAZY_PJRT_INCLUDE") {
        return folder;
    }
    let json = cpu_plugin_file().with_file_name("plugin.json");
    let text = std::fs::read_to_string(&json)
        .unwrap_or_else(|e| panic!("{}: {e}: run tests/run.sh, which builds the CPU plugin", json.display()));
    let (_, value) = text.split_once("\"include_dir\"").expect("include_dir in plugin.json");
    value.split('"').nth(1).expect("a text after include_dir").to_owned()
}

/// The CPU plugin.
pub fn plugin() -> Plugin {
    static QUIET: Once = Once::new();
    let file = cpu_plugin_file();
    // SAFETY: before the plugin, and so before any thread of its, reads the environment.
    QUIET.call_once(|| unsafe {
        std::env::set_var("TF_ENABLE_ONEDNN_OPTS", "0");
        std::env::set_var("TF_CPP_MIN_LOG_LEVEL", "3");
    });
    Plugin::load(&file).unwrap()
}

/// A client with this many CPU devices.
pub fn client(devices: i64) -> Client {
    plugin().create_client(&[("cpu_device_count", Value::Int(devices))]).unwrap()
}

pub fn device(client: &Client) -> Device {
    client.addressable_devices().remove(0)
}

pub fn compile(client: &Client, mlir: &str) -> LoadedExecutable {
    client.compile(&Program::mlir(mlir), &CompileOptions::on_device(device(client).id())).unwrap()
}

pub fn bytes(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_le_bytes()).collect()
}

pub fn floats(x: &[u8]) -> Vec<f32> {
    x.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
}

pub fn put_on(device: &Device, x: &[f32], dims: &[i64]) -> Buffer {
    device.client().buffer_from_host(&bytes(x), BufferType::F32, dims, device).unwrap()
}

pub fn put(client: &Client, x: &[f32], dims: &[i64]) -> Buffer {
    put_on(&device(client), x, dims)
}

pub fn get(buffer: &Buffer) -> Vec<f32> {
    floats(&buffer.to_vec().unwrap())
}

/// `a · b + 1`, 2×3 by 3×2.
pub const MATMUL: &str = r#"
module @matmul {
  func.func public @main(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> (tensor<2x2xf32>, tensor<3x2xf32>) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %1 = stablehlo.constant dense<1.0> : tensor<2x2xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x2xf32>
    %3 = stablehlo.negate %b : tensor<3x2xf32>
    return %2, %3 : tensor<2x2xf32>, tensor<3x2xf32>
  }
}"#;

/// `a + a`, four elements.
pub const DOUBLE: &str = r#"
module @double {
  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}"#;

/// The sum over four replicas.
pub const ALL_REDUCE: &str = r#"
module @sum attributes {mhlo.num_replicas = 4 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0,1,2,3]]> : tensor<1x4xi64>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}"#;
