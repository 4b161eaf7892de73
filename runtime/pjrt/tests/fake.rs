//! What a bad plugin answers becomes an error value, never a crash: tests with `fake_plugin.c`.
mod common;

use common::*;
use std::path::PathBuf;
use std::process::Command;
use xlazy_pjrt::{BufferType, Client, Code, CompileOptions, Error, Plugin, Program, Value, live};

/// Compiles the fake plugin with these macros set.
fn build(name: &str, macros: &[&str]) -> PathBuf {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("libfake_{name}.so"));
    // Built beside and moved into place: tests in other processes may be loading it.
    let made = file.with_extension(format!("{}.{:?}", std::process::id(), std::thread::current().id()));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-w", "-O1", "-shared", "-fPIC", "-I", &include_dir()]);
    cc.args(macros).arg(root().join("runtime/pjrt/tests/fake_plugin.c")).arg("-o").arg(&made);
    let output = cc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&made, &file).unwrap();
    file
}

fn load(name: &str, macros: &[&str]) -> Result<Plugin, Error> {
    Plugin::load(&build(name, macros))
}

/// A client of a plugin that tells one lie.
fn client_that(plugin: Plugin, lie: &str) -> Result<Client, Error> {
    plugin.create_client(&[("lie", Value::Str(lie.into()))])
}

/// Everything that can be asked of a client; the errors that came.
fn exercise(plugin: Plugin, lie: &str) -> Vec<Error> {
    let mut errors = vec![];
    let client = match client_that(plugin, lie) {
        Ok(client) => client,
        Err(e) => return vec![e],
    };
    macro_rules! attempt {
        ($e:expr) => {
            match $e {
                Ok(value) => Some(value),
                Err(e) => {
                    errors.push(e);
                    None
                }
            }
        };
    }
    let device = client.devices().remove(0);
    assert_eq!(device.local_hardware_id(), -1);
    assert_eq!(device.memory_stats(), Ok(None));
    let put = || client.buffer_from_host(&[1; 6], BufferType::U8, &[2, 3], &device);
    if let Some(a) = attempt!(put()) {
        attempt!(a.to_vec());
        attempt!(a.to_host(&mut [0; 6]));
        attempt!(a.to_host_async().and_then(|copy| copy.on_ready(|data| drop(data.map(|d| assert_eq!(d, [1; 6]))))));
        attempt!(a.ready_event().and_then(|event| event.await_ready()));
        attempt!(a.ready_event().and_then(|event| event.on_ready(|_| ())));
        attempt!(a.is_deleted());
        attempt!(a.device());
        attempt!(a.copy_to_device(&device));
        attempt!(a.on_device_size());
        attempt!(a.delete());
    }
    attempt!(client.buffer_from_host_owned(vec![1; 6], BufferType::U8, &[6], &device));
    if let Some(program) = attempt!(client.compile(&Program::mlir("anything"), &CompileOptions::default())) {
        attempt!(program.name());
        attempt!(program.output_dims());
        attempt!(program.output_types());
        attempt!(program.cost_analysis());
        attempt!(program.memory_stats());
        attempt!(program.optimized_program());
        attempt!(program.serialize());
        attempt!(program.fingerprint());
        attempt!(program.code_size());
        if let Some(outputs) = attempt!(program.execute(&[], &[])) {
            attempt!(outputs[1].to_vec());
        }
        attempt!(program.execute_sharded(&[vec![]], &[]));
    }
    attempt!(client.topology());
    attempt!(client.deserialize(b"x"));
    attempt!(plugin.topology("x", &[]));
    errors
}

fn fake_live(plugin: Plugin) -> i64 {
    #[allow(unsafe_code)]
    // SAFETY: the fake plugin has this function with this type.
    unsafe {
        let library = libloading::Library::new(plugin.path()).unwrap();
        library.get::<unsafe extern "C" fn() -> i64>(b"fake_live").unwrap()()
    }
}

#[test]
fn every_lie_becomes_an_error() {
    let plugin = load("lies", &[]).unwrap();
    // What the fake plugin never has, whatever the lie.
    let always: Vec<String> = exercise(plugin, "").iter().map(|e| format!("{e}")).collect();
    let missing = always.iter().filter(|e| e.contains("does not have this call")).count();
    assert!(missing >= 5, "{always:#?}");

    // The lie and some words of the error that it must give.
    for (lie, call, words) in [
        ("null_client", "PJRT_Client_Create", "the client is a null pointer"),
        ("error_null_message", "PJRT_Client_Create", "error message has length 1000 but no valid address"),
        ("error_huge_message", "PJRT_Client_Create", "error message has length 18446744073709551615"),
        ("error_not_utf8", "PJRT_Client_Create", "caf\u{fffd}"),
        ("error_odd_code", "PJRT_Client_Create", "code -7"),
        ("error_without_code", "PJRT_Client_Create", "UNKNOWN): mute"),
        ("null_name", "PJRT_Client_PlatformName", "no valid address"),
        ("name_not_utf8", "PJRT_Client_PlatformName", "not UTF-8"),
        ("huge_name", "PJRT_Client_PlatformName", "length 18446744073709551615"),
        ("terabyte_name", "PJRT_Client_PlatformName", "length 1099511627776"),
        ("null_device", "PJRT_Client_Devices", "a device is a null pointer"),
        ("null_devices", "PJRT_Client_Devices", "no valid address"),
        ("odd_devices", "PJRT_Client_Devices", "no valid address"),
        ("many_devices", "PJRT_Client_Devices", "length 1152921504606846976"),
        ("strange_device", "PJRT_Client_AddressableDevices", "not one of the client's"),
        ("null_executable", "PJRT_Client_Compile", "null pointer"),
        ("null_inside", "PJRT_LoadedExecutable_GetExecutable", "null pointer"),
        ("many_executable_devices", "PJRT_LoadedExecutable_AddressableDevices", "length"),
        ("many_outputs", "PJRT_Executable_NumOutputs", "18446744073709551615 outputs"),
        ("executable", "PJRT_Executable_Name", "not UTF-8"),
        ("executable", "PJRT_Executable_OutputElementTypes", "unknown element type 4711"),
        ("executable", "PJRT_Executable_OutputDimensions", "[2, -3]"),
        ("executable", "PJRT_Executable_OptimizedProgram", "no valid address"),
        ("executable", "PJRT_Executable_Serialize", "no valid address"),
        ("executable", "PJRT_Executable_SizeOfGeneratedCodeInBytes", "-1"),
        ("executable", "PJRT_Executable_GetCostAnalysis", "no valid address"),
        ("huge_rank", "PJRT_Executable_OutputDimensions", "length 18446744073709551615"),
        ("huge_program", "PJRT_Executable_OptimizedProgram", "18446744073709551615 bytes"),
        ("null_output", "PJRT_LoadedExecutable_Execute", "the buffer is a null pointer"),
        ("buffer_type", "PJRT_Buffer_ElementType", "unknown element type 4711"),
        ("buffer_dims", "PJRT_Buffer_Dimensions", "a dimension of -1"),
        ("buffer_rank", "PJRT_Buffer_Dimensions", "length 18446744073709551615"),
        ("null_buffer", "PJRT_Client_BufferFromHostBuffer", "the buffer is a null pointer"),
        ("null_done", "PJRT_Client_BufferFromHostBuffer", "no event for the host's data"),
        ("null_copy_event", "PJRT_Buffer_ToHostBuffer", "the event is a null pointer"),
        ("null_ready_event", "PJRT_Buffer_ReadyEvent", "the event is a null pointer"),
        ("strange_buffer_device", "PJRT_Buffer_Device", "not one of the client's"),
        ("event_error", "PJRT_Event_Await", "the \u{fffd} end"),
        ("refuse_callback", "PJRT_Event_OnReady", "no callbacks here"),
    ] {
        let errors = exercise(plugin, lie);
        let fits = |e: &Error| e.call == call && e.to_string().contains(words);
        assert!(errors.iter().any(fits), "{lie}: no error of {call} with {words:?} in\n{errors:#?}");
    }
    // Lies that do no harm.
    for lie in ["odd_bool", "odd_layout", "null_layout", "long_layout", "buffer_destroy", "no_shapes"] {
        let errors: Vec<String> = exercise(plugin, lie).iter().map(|e| format!("{e}")).collect();
        let more: Vec<_> = errors.iter().filter(|e| !always.contains(e) && !e.contains("no types")).collect();
        assert!(more.is_empty(), "{lie}: {more:#?}");
    }
    let left = live();
    assert_eq!((left.clients, left.buffers, left.executables, left.loaded_executables, left.events), (0, 0, 0, 0, 0));
    assert_eq!(fake_live(plugin), 0, "objects of the plugin, or errors, were not destroyed");
}

#[test]
fn odd_attributes_are_errors() {
    let plugin = load("attributes", &[]).unwrap();
    assert_eq!(plugin.attributes().unwrap(), [("a".to_owned(), Value::Int(7))]);
    let device = client_that(plugin, "").unwrap().devices().remove(0);
    let words: Vec<String> = (0..7).map(|_| device.attributes().unwrap_err().message).collect();
    for (message, expected) in words.iter().zip([
        "unknown type 99",
        "4096 bytes",
        "not UTF-8",
        "attribute list has length 9",
        "attribute name has length 1 but no valid address",
        "attributes has length 1 but no valid address",
        "length 18446744073709551615",
    ]) {
        assert!(message.contains(expected), "{message:?} for {expected:?}");
    }
}

#[test]
fn bad_tables_are_refused() {
    let refused = |name: &str, macros: &[&str]| load(name, macros).unwrap_err();
    let e = refused("null", &["-DNO_TABLE"]);
    assert!(e.call == "GetPjrtApi" && e.message.contains("null pointer"), "{e}");
    let e = refused("tiny", &["-DTABLE_SIZE=8"]);
    assert!(e.message.contains("8 bytes"), "{e}");
    let e = refused("head", &["-DTABLE_SIZE=40"]);
    assert!(e.message.contains("lacks PJRT_Error_Destroy"), "{e}");
    let e = refused("await", &["-DNO_AWAIT"]);
    assert!(e.message.contains("lacks PJRT_Event_Await"), "{e}");
    let e = refused("old", &["-DMINOR=40"]);
    assert_eq!(e.code, Code::FailedPrecondition);
    assert!(e.message.contains("PJRT API 0.40") && e.message.contains("from 0.57 on"), "{e}");
    let e = refused("major", &["-DMAJOR=1", "-DMINOR=0"]);
    assert!(e.message.contains("1.0"), "{e}");
    let e = Plugin::load(&std::env::current_exe().unwrap()).unwrap_err();
    assert!(e.call == "dlopen" || e.call == "dlsym", "{e}");
}

#[test]
fn a_short_table_gives_errors_for_what_it_lacks() {
    // An older plugin, whose table ends before the two calls that tell of outputs; what lies behind must not be read.
    let end = "-DTABLE_SIZE=offsetof(PJRT_Api,PJRT_Executable_OutputElementTypes)";
    let plugin = load("short", &["-DMINOR=57", end]).unwrap();
    assert_eq!(plugin.api_version(), (0, 57));
    let client = client_that(plugin, "").unwrap();
    let program = client.compile(&Program::mlir("anything"), &CompileOptions::default()).unwrap();
    let e = program.output_types().unwrap_err();
    assert_eq!((e.call, e.code), ("PJRT_Executable_OutputElementTypes", Code::Unimplemented));
    assert!(e.message.contains("0.57"), "{e}");
    // The outputs' shapes then come from the outputs themselves.
    assert_eq!(program.execute(&[], &[]).unwrap()[1].dims(), [3]);
}

#[test]
fn a_newer_plugin_with_a_longer_table_is_fine() {
    let plugin = load("newer", &["-DMINOR=140", "-DTABLE_SIZE=sizeof(PJRT_Api)+4096"]).unwrap();
    assert_eq!(client_that(plugin, "").unwrap().platform_name(), "fake");
}

/// Not a limit, a line for people: what this crate adds to a call. `cargo nextest run --release -p xlazy-pjrt how_much
/// --no-capture`.
#[test]
fn how_much_is_our_own_time() {
    let plugin = load("time", &[]).unwrap();
    let client = client_that(plugin, "").unwrap();
    let program = client.compile(&Program::mlir("anything"), &CompileOptions::default()).unwrap();
    let inputs: Vec<_> =
        (0..8).map(|_| client.buffer_from_host(&[0; 4], BufferType::F32, &[], &client.devices()[0]).unwrap()).collect();
    for count in [0, 8] {
        let args: Vec<_> = inputs[..count].iter().collect();
        let steps = 100_000;
        let start = std::time::Instant::now();
        (0..steps).for_each(|_| drop(program.execute(&args, &[]).unwrap()));
        println!(
            "execute with {count} inputs and 2 outputs, their making and freeing included: {:?}",
            start.elapsed() / steps
        );
    }
}
