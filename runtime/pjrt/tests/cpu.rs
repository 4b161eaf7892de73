//! Programs, buffers and executables on the CPU plugin.
mod common;

use common::*;
use xlazy_pjrt::{BufferType, Code, CompileOptions, Program, Value};

#[test]
fn a_plugin_says_who_it_is() {
    let plugin = plugin();
    let (major, minor) = plugin.api_version();
    assert!(major == 0 && minor >= 57, "{major}.{minor}");
    let attributes = plugin.attributes().unwrap();
    let version = attributes.iter().find(|(name, _)| name == "stablehlo_current_version").unwrap();
    assert!(matches!(&version.1, Value::Ints(v) if v.len() == 3), "{version:?}");
    assert_eq!(plugin.path(), Plugin::load(plugin.path()).unwrap().path());
    use xlazy_pjrt::Plugin;
}

#[test]
fn a_client_has_devices() {
    let client = client(3);
    assert_eq!(client.platform_name(), "cpu");
    assert_eq!((client.devices().len(), client.addressable_devices().len(), client.process_index()), (3, 3, 0));
    let device = client.devices().remove(2);
    assert_eq!((device.id(), device.process_index(), device.is_addressable()), (2, 0, true));
    assert_eq!(device.local_hardware_id(), 2);
    assert!(!device.kind().is_empty() && !device.to_string().is_empty());
    assert!(!device.debug_string().unwrap().is_empty());
    device.attributes().unwrap();
    // XLA's CPU client does not count; a plugin that does must give a plausible number.
    if let Some(stats) = device.memory_stats().unwrap() {
        assert!(stats.bytes_in_use >= 0);
    }
    assert_eq!(device, client.addressable_devices()[2]);
    assert_ne!(device, client.devices()[0]);
}

#[test]
fn a_program_runs() {
    let client = client(1);
    let program = compile(&client, MATMUL);
    assert_eq!(program.num_outputs(), 2);
    let a = put(&client, &[1., 2., 3., 4., 5., 6.], &[2, 3]);
    let b = put(&client, &[1., 0., 0., 1., 1., 1.], &[3, 2]);
    let outputs = program.execute(&[&a, &b], &[]).unwrap();
    assert_eq!(outputs[0].dims(), [2, 2]);
    assert_eq!(outputs[0].element_type(), BufferType::F32);
    assert_eq!(get(&outputs[0]), [5., 6., 11., 12.]);
    assert_eq!(get(&outputs[1]), [-1., 0., 0., -1., -1., -1.]);
    assert_eq!(outputs[0].device().unwrap(), device(&client));
    assert!(outputs[0].on_device_size().unwrap() >= 16);
    let mut dst = [0u8; 16];
    outputs[0].to_host(&mut dst).unwrap();
    assert_eq!(floats(&dst), [5., 6., 11., 12.]);
}

#[test]
fn a_profile_holds_what_ran_and_is_taken_one_at_a_time() {
    let client = client(1);
    let plugin = plugin();
    assert!(plugin.has_profiler());
    let profiler = plugin.profile().unwrap();
    let refused = plugin.profile().map(drop).unwrap_err();
    assert!(!refused.message.is_empty(), "{refused:?}");
    let program = compile(&client, MATMUL);
    let a = put(&client, &[1., 2., 3., 4., 5., 6.], &[2, 3]);
    let b = put(&client, &[1., 0., 0., 1., 1., 1.], &[3, 2]);
    get(&program.execute(&[&a, &b], &[]).unwrap()[0]);
    let profile = profiler.stop().unwrap();
    let has = |word: &str| profile.windows(word.len()).any(|w| w == word.as_bytes());
    assert!(has("/host:CPU") && has("hlo_op"), "{} bytes", profile.len());
    plugin.profile().unwrap().stop().unwrap();
}

#[test]
fn an_executable_tells_what_it_is() {
    let client = client(1);
    let program = compile(&client, MATMUL);
    assert!(program.name().unwrap().contains("matmul"));
    assert_eq!(program.output_dims().unwrap(), [vec![2, 2], vec![3, 2]]);
    assert_eq!(program.output_types().unwrap(), [BufferType::F32; 2]);
    let cost = program.cost_analysis().unwrap();
    assert!(cost.iter().any(|(name, value)| name == "flops" && *value != Value::Float(0.)), "{cost:?}");
    let memory = program.memory_stats().unwrap();
    assert_eq!((memory.argument_size, memory.output_size >= 40), (48, true), "{memory:?}");
    let (format, code) = program.optimized_program().unwrap();
    assert!(format.starts_with("hlo") && code.windows(6).any(|w| w == b"matmul"), "{format} {}", code.len());
    program.code_size().unwrap();
    // Not every version of the plugin has fingerprints; an error must say so.
    if let Err(e) = program.fingerprint() {
        assert_eq!(e.call, "PJRT_Executable_Fingerprint");
    }
    assert_eq!(program.addressable_devices(), [device(&client)]);
    assert_eq!(program.executable().num_outputs().unwrap(), 2);
}

#[test]
fn an_executable_survives_serialising() {
    let client = client(1);
    let bytes = compile(&client, DOUBLE).serialize().unwrap();
    let again = client.deserialize(&bytes).unwrap();
    let a = put(&client, &[1., 2., 3., 4.], &[4]);
    assert_eq!(get(&again.execute(&[&a], &[]).unwrap()[0]), [2., 4., 6., 8.]);
    assert!(client.deserialize(b"not an executable").is_err());
    assert!(client.deserialize(b"").is_err());
}

#[test]
fn compiling_ahead_of_time_needs_no_client() {
    let plugin = plugin();
    let topology = plugin.topology("", &[("cpu_device_count", Value::Int(2))]).unwrap();
    assert_eq!(topology.devices().unwrap().len(), 2);
    assert!(topology.platform_name().unwrap().contains("cpu") || !topology.platform_name().unwrap().is_empty());
    topology.platform_version().unwrap();
    topology.attributes().unwrap();
    let program = plugin.compile(&topology, &Program::mlir(DOUBLE), &CompileOptions::default()).unwrap();
    assert_eq!(program.output_dims().unwrap(), [vec![4]]);
    let client = client(1);
    let loaded = client.deserialize(&program.serialize().unwrap()).unwrap();
    let a = put(&client, &[1., 2., 3., 4.], &[4]);
    assert_eq!(get(&loaded.execute(&[&a], &[]).unwrap()[0]), [2., 4., 6., 8.]);
    assert_eq!(client.topology().unwrap().devices().unwrap().len(), 1);
}

#[test]
fn four_devices_reduce_together() {
    let client = client(4);
    for assignment in [None, Some(vec![3, 2, 1, 0])] {
        let options = CompileOptions { replicas: 4, assignment, ..CompileOptions::default() };
        let program = client.compile(&Program::mlir(ALL_REDUCE), &options).unwrap();
        let devices = program.addressable_devices();
        assert_eq!(devices.len(), 4);
        let inputs: Vec<_> = devices.iter().map(|d| put_on(d, &[d.id() as f32, 1.], &[2])).collect();
        let lists: Vec<Vec<_>> = inputs.iter().map(|b| vec![b]).collect();
        let outputs = program.execute_sharded(&lists, &[]).unwrap();
        assert_eq!(outputs.len(), 4);
        for (list, device) in outputs.iter().zip(&devices) {
            assert_eq!(get(&list[0]), [6., 4.]);
            assert_eq!(list[0].device().unwrap(), *device);
        }
        let e = program.execute(&[&inputs[0]], &[]).unwrap_err();
        assert!(e.message.contains("4 devices"), "{e}");
        let e = program.execute_sharded(&lists[..3], &[]).unwrap_err();
        assert!(e.message.contains("[1, 1, 1]"), "{e}");
    }
}

#[test]
fn shardy_and_gspmd_split_a_program() {
    let body = |attributes: &str, mesh: &str, a: &str, r: &str| {
        format!(
            "module @split attributes {{mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 2 : i32}} {{ {mesh}
               func.func public @main(%a: tensor<4x2xf32> {{{a}}}) -> (tensor<4x2xf32> {{{r}}}) {{
                 %0 = stablehlo.add %a, %a : tensor<4x2xf32>
                 return %0 : tensor<4x2xf32> }} }} {attributes}"
        )
    };
    let gspmd = body("", "", "mhlo.sharding = \"{devices=[2,1]<=[2]}\"", "mhlo.sharding = \"{devices=[2,1]<=[2]}\"");
    let sharding = "sdy.sharding = #sdy.sharding<@m, [{\"x\"}, {}]>";
    let shardy = body("", "sdy.mesh @m = <[\"x\"=2]>", sharding, sharding);
    let client = client(2);
    for (text, shardy) in [(gspmd, false), (shardy, true)] {
        let options = CompileOptions { partitions: 2, spmd: true, shardy, ..CompileOptions::default() };
        let program = client.compile(&Program::mlir(&text), &options).unwrap();
        let halves: Vec<_> =
            program.addressable_devices().iter().map(|d| put_on(d, &[d.id() as f32 + 1.; 4], &[2, 2])).collect();
        let outputs = program.execute_sharded(&[vec![&halves[0]], vec![&halves[1]]], &[]).unwrap();
        assert_eq!(outputs[1][0].dims(), [2, 2]);
        assert_eq!((get(&outputs[0][0]), get(&outputs[1][0])), (vec![2.; 4], vec![4.; 4]));
    }
}

#[test]
fn a_donated_buffer_is_gone() {
    let donor = |attribute: &str| DOUBLE.replace("%a: tensor<4xf32>)", &format!("%a: tensor<4xf32> {{{attribute}}})"));
    let client = client(1);
    for attribute in ["tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"] {
        let program = compile(&client, &donor(attribute));
        let a = put(&client, &[1., 2., 3., 4.], &[4]);
        let kept = program.execute(&[&a], &[0]).unwrap();
        assert!(!a.is_deleted().unwrap(), "{attribute}: a buffer that was not to be donated is gone");
        assert_eq!(get(&kept[0]), [2., 4., 6., 8.]);
        let outputs = program.execute(&[&a], &[]).unwrap();
        assert!(a.is_deleted().unwrap(), "{attribute}: a donated buffer is still there");
        assert_eq!(get(&outputs[0]), [2., 4., 6., 8.]);
        let mut dst = [0u8; 16];
        assert!(a.to_host(&mut dst).is_err());
        assert!(program.execute(&[&a], &[]).is_err());
        assert_eq!(a.dims(), [4]);
    }
}

#[test]
fn data_of_any_shape_and_type_comes_back() {
    let client = client(2);
    let device = device(&client);
    for (dtype, dims) in [
        (BufferType::Pred, &[2][..]),
        (BufferType::S8, &[3, 5]),
        (BufferType::U16, &[2, 3, 4]),
        (BufferType::BF16, &[7]),
        (BufferType::F64, &[]),
        (BufferType::C128, &[2, 2]),
        (BufferType::S64, &[1, 1, 2, 1, 2, 1, 1, 1]),
        (BufferType::F32, &[3, 0, 2]),
        (BufferType::U8, &[1; 20]),
    ] {
        let count = dims.iter().product::<i64>() as usize;
        let data: Vec<u8> = (0..count * dtype.size()).map(|i| (i % 2) as u8).collect();
        let buffer = client.buffer_from_host(&data, dtype, dims, &device).unwrap();
        assert_eq!((buffer.dims(), buffer.element_type(), buffer.host_size().unwrap()), (dims, dtype, data.len()));
        assert_eq!(buffer.to_vec().unwrap(), data, "{dtype}{dims:?}");
        let other = buffer.copy_to_device(&client.devices()[1]).unwrap();
        assert_eq!(other.device().unwrap().id(), client.devices()[1].id());
        assert_eq!(other.to_vec().unwrap(), data, "{dtype}{dims:?} on another device");
    }
}

#[test]
fn a_transposed_result_comes_back_row_major() {
    let client = client(1);
    let program = compile(
        &client,
        "func.func public @main(%a: tensor<2x3xf32>) -> (tensor<3x2xf32> {mhlo.layout_mode = \"{0,1}\"}) {
           %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
           return %0 : tensor<3x2xf32> }",
    );
    let a = put(&client, &[1., 2., 3., 4., 5., 6.], &[2, 3]);
    assert_eq!(get(&program.execute(&[&a], &[]).unwrap()[0]), [1., 4., 2., 5., 3., 6.]);
}

#[test]
fn errors_are_values_with_the_plugins_words() {
    let client = client(1);
    let options = CompileOptions::default();
    let bad = client.compile(&Program::mlir("module { func.func @main( nonsense"), &options).unwrap_err();
    assert_eq!(bad.call, "PJRT_Client_Compile");
    assert!(!bad.message.is_empty(), "{bad}");
    let format = client.compile(&Program { format: "fortran", code: b"x" }, &options).unwrap_err();
    assert!(format.message.contains("fortran"), "{format}");
    let two = CompileOptions { assignment: Some(vec![0, 1]), ..CompileOptions::default() };
    assert_eq!(client.compile(&Program::mlir(DOUBLE), &two).unwrap_err().code, Code::InvalidArgument);
    let none = CompileOptions { replicas: 0, ..CompileOptions::default() };
    assert_eq!(client.compile(&Program::mlir(DOUBLE), &none).unwrap_err().code, Code::InvalidArgument);
    let missing = CompileOptions::on_device(77);
    assert!(client.compile(&Program::mlir(DOUBLE), &missing).is_err());

    let program = compile(&client, DOUBLE);
    let a = put(&client, &[1., 2., 3., 4.], &[4]);
    let counts = program.execute(&[&a, &a], &[]).unwrap_err();
    assert_eq!(counts.call, "PJRT_LoadedExecutable_Execute");
    assert!(program.execute(&[], &[]).is_err());
    assert!(program.execute(&[&a], &[1]).unwrap_err().message.contains("argument 1"));
    assert!(program.execute(&[&a], &[-1]).is_err());
    let three = put(&client, &[1., 2., 3.], &[3]);
    assert!(program.execute(&[&three], &[]).is_err(), "a wrong shape was taken");

    let device = device(&client);
    let size = client.buffer_from_host(&[0; 15], BufferType::F32, &[4], &device).unwrap_err();
    assert!(size.message.contains("15 bytes for F32[4], which takes 16"), "{size}");
    for dims in [&[-1][..], &[i64::MAX, 2], &[i64::MIN]] {
        assert!(client.buffer_from_host(&[], BufferType::F32, dims, &device).is_err(), "{dims:?}");
    }
    assert!(a.to_host(&mut [0; 15]).is_err());
    a.delete().unwrap();
    assert!(a.is_deleted().unwrap() && a.to_vec().is_err());

    let option = plugin().create_client(&[("no_such_option", Value::Bool(true))]).unwrap_err();
    assert!(option.message.contains("no_such_option"), "{option}");
}

#[test]
fn options_reach_the_compiler() {
    let client = client(1);
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dump");
    let _ = std::fs::remove_dir_all(&folder);
    let options = CompileOptions {
        optimization_level: Some(CompileOptions::O1),
        overrides: vec![
            ("xla_dump_to".into(), Value::Str(folder.display().to_string())),
            ("xla_dump_hlo_as_text".into(), Value::Bool(true)),
            ("xla_dump_max_hlo_modules".into(), Value::Int(3)),
        ],
        ..CompileOptions::on_device(0)
    };
    client.compile(&Program::mlir(DOUBLE), &options).unwrap();
    assert!(std::fs::read_dir(&folder).unwrap().count() > 0, "nothing in {}", folder.display());
    let unknown =
        CompileOptions { overrides: vec![("xla_no_such_flag".into(), Value::Bool(true))], ..CompileOptions::default() };
    let e = client.compile(&Program::mlir(DOUBLE), &unknown).unwrap_err();
    assert!(e.message.contains("xla_no_such_flag"), "{e}");
}

#[test]
fn options_become_a_protobuf() {
    // build options (field 3): device_ordinal -1, one replica, one partition.
    let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let expected = [&[0x1a, 15, 0x08][..], &minus_one, &[0x20, 1, 0x28, 1]].concat();
    assert_eq!(CompileOptions::default().to_bytes(), expected);
    // Device 300 (field 9): one replica, one partition, its list of replicas' devices.
    let on_device = CompileOptions::on_device(300).to_bytes();
    assert!(on_device.ends_with(&[0x4a, 10, 0x08, 1, 0x10, 1, 0x1a, 4, 0x0a, 2, 0xac, 0x02]), "{on_device:?}");
    let flag = CompileOptions { overrides: vec![("f".into(), Value::Ints(vec![1, 2]))], ..Default::default() };
    assert!(flag.to_bytes().ends_with(b"\x3a\x0a\x0a\x01f\x12\x05\x0a\x031,2"), "{:?}", flag.to_bytes());
}

#[test]
fn every_type_may_be_used_from_any_thread() {
    fn check<T: Send + Sync + 'static>() {}
    use xlazy_pjrt::*;
    check::<(Plugin, Client, Device, Topology, DeviceDescription, Executable, LoadedExecutable)>();
    check::<(Buffer, HostCopy, Event, Error, Value, CompileOptions)>();
}

#[test]
fn clients_do_not_mix() {
    let (ours, theirs) = (client(1), client(1));
    let program = compile(&ours, DOUBLE);
    let a = put(&theirs, &[1., 2., 3., 4.], &[4]);
    assert!(program.execute(&[&a], &[]).unwrap_err().message.contains("another client"));
    assert!(a.copy_to_device(&device(&ours)).is_err());
    assert!(ours.buffer_from_host(&[0; 4], BufferType::F32, &[], &device(&theirs)).is_err());
}

#[test]
fn loading_what_is_no_plugin_is_an_error() {
    use xlazy_pjrt::Plugin;
    assert_eq!(Plugin::load("/nonexistent/plugin.so".as_ref()).unwrap_err().code, Code::NotFound);
    let text = root().join("Cargo.toml");
    let e = Plugin::load(&text).unwrap_err();
    assert_eq!(e.call, "dlopen");
    assert!(e.message.contains("Cargo.toml"), "{e}");
}
