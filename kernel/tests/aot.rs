//! `%tpu`, `%device` and `xlazy aot` through the whole system: whatever libtpu does, the kernel and its session go on.
// Setting environment variables is unsafe in general; nextest gives each test a process, and these come first in it.
#![allow(unsafe_code)]

#[path = "eval_support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{engine, plain, run};
use xlazy_kernel::engine::{Engine, Event, Reply, Request};
use xlazy_kernel::eval::RustEngine;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn set(name: &str, value: impl AsRef<std::ffi::OsStr>) {
    // SAFETY: no other thread of the test runs yet.
    unsafe { std::env::set_var(name, value) }
}

/// An empty folder of this test's own, for reports too.
fn scratch() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("aot-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    set("XLAZY_CACHE", &folder);
    folder
}

fn libtpu() -> bool {
    let named = std::env::var_os("TPU_LIBRARY_PATH").map(PathBuf::from);
    let found = named.into_iter().chain([root().join("target/home/plugins/tpu/libtpu.so")]).find(|p| p.is_file());
    match found {
        Some(library) => {
            set("TPU_LIBRARY_PATH", library);
            true
        }
        None => {
            assert!(std::env::var_os("XLAZY_NEED_LIBTPU").is_none(), "libtpu was fetched, and is not found");
            println!("skipped: no libtpu here; `xlazy plugins install tpu` fetches one");
            false
        }
    }
}

/// The plugin that misbehaves as FAKE_TPU says, in libtpu's place.
fn fake(mode: &str) {
    let library = scratch().join("libtpu.so");
    let note = std::fs::read_to_string(root().join("target/home/plugins/cpu/plugin.json")).unwrap_or_default();
    let include = std::env::var("XLAZY_PJRT_INCLUDE").ok();
    let include = include.or_else(|| Some(note.split_once("\"include_dir\"")?.1.split('"').nth(1)?.to_owned()));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_GNU_SOURCE", "-w", "-shared", "-fPIC", "-I", &include.expect("run tests/run.sh")]);
    let built = cc.arg(root().join("runtime/tests/aot_fake_plugin.c")).arg("-o").arg(&library).status().unwrap();
    assert!(built.success());
    set("TPU_LIBRARY_PATH", &library);
    set("FAKE_TPU", mode);
}

fn shown(engine: &RustEngine, cell: u64, code: &str) -> String {
    match run(engine, cell, code) {
        (out, Reply::Ok) => out,
        (out, reply) => panic!("{code}: {out} {reply:?}"),
    }
}

fn refused(engine: &RustEngine, cell: u64, code: &str) -> String {
    match run(engine, cell, code) {
        (_, Reply::Error(failure)) => plain(&failure),
        (out, reply) => panic!("{code}: {out} {reply:?}"),
    }
}

#[test]
fn a_plugin_that_crashes_takes_nothing_down() {
    fake("crash_compile");
    let engine = engine();
    shown(&engine, 1, "let x = Tensor::ones([2, 2]); let mut kept = vec![1];");
    let why = refused(&engine, 2, "%tpu v5e &x + 1.0");
    assert!(why.contains("crashed (signal 11)") && why.contains("the session goes on"), "{why}");
    let why = refused(&engine, 3, "%tpu v5e last");
    assert!(why.contains("no program has run yet"), "{why}");
    assert!(shown(&engine, 4, "kept.push(2); kept").contains("[1, 2]"));
    assert!(shown(&engine, 5, "(&x + 1.0).sum().item()").contains("8.0"));
    let table = shown(&engine, 6, "%tpu compare v5e v6e &x + 1.0");
    assert_eq!(table.matches("crashed (signal 11)").count(), 2, "{table}");
    assert!(refused(&engine, 7, "%tpu v5z x").contains("v5z"));
    engine.shutdown();
}

#[test]
fn an_interrupt_stops_a_compile_that_hangs() {
    fake("hang_compile");
    let engine = Arc::new(engine());
    shown(&engine, 1, "let x = Tensor::ones([2, 2]);");
    // Once the compiler has the program, its process is there to be seen.
    let interrupter = engine.clone();
    let children = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let named = |p: &Path| std::fs::read_to_string(p.join("cmdline")).unwrap_or_default().contains("--aot-child");
        let ours = |p: &Path| {
            let environ = std::fs::read(p.join("environ")).unwrap_or_default();
            let cache = std::env::var("XLAZY_CACHE").unwrap();
            String::from_utf8_lossy(&environ).contains(&format!("XLAZY_CACHE={cache}"))
        };
        all.map(|e| e.path()).filter(|p| named(p) && ours(p)).count()
    };
    let waiting = std::thread::spawn(move || {
        while children() == 0 {
            std::thread::yield_now();
        }
        interrupter.interrupt();
    });
    let start = Instant::now();
    let (_, reply) = run(&engine, 2, "%tpu v5e &x + 1.0");
    waiting.join().unwrap();
    assert_eq!(reply, Reply::Interrupted);
    assert!(start.elapsed() < Duration::from_secs(60), "it waited for the compiler: {:?}", start.elapsed());
    while children() > 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "the compiler is still there");
        std::thread::yield_now();
    }
    assert!(shown(&engine, 3, "x.sum().item()").contains("4.0"));
    let why = refused(&engine, 4, "%tpu --timeout 1 v5e &x + 1.0");
    assert!(why.contains("no answer after 1 s"), "{why}");
    engine.shutdown();
}

#[test]
fn a_tpu_that_is_not_there_leaves_the_cpu() {
    scratch();
    let engine = engine();
    let said = shown(&engine, 1, "%device");
    assert!(said.contains("programs will run on CPU"), "{said}");
    if said.contains("TPU chip") {
        return println!("skipped: this machine has a TPU");
    }
    let said = shown(&engine, 2, "%device TPU");
    assert!(said.contains("no TPU in this machine") && said.contains("%tpu v5e"), "{said}");
    assert!(shown(&engine, 3, "Tensor::ones([3]).sum().item()").contains("3.0"));
    assert!(shown(&engine, 4, "%device").contains("programs run on cpu:0"));
    assert!(shown(&engine, 5, "%device cpu").contains("already"));
    assert!(refused(&engine, 6, "%device GPUX").contains("CPU, TPU"));
    engine.shutdown();
}

#[test]
fn the_cpu_counts_as_many_devices_as_a_cell_says() {
    scratch();
    let engine = engine();
    assert!(refused(&engine, 1, "%device CPU 0").contains("the CPU counts as 1 to 224 devices"));
    assert!(refused(&engine, 2, "%device TPU 8").contains("TPU has the devices that there are"));
    let said = shown(&engine, 3, "%device CPU 4\nxlazy::devices().len()");
    assert!(said.contains("programs will run on CPU, which counts as 4 devices") && said.contains('4'), "{said}");
    let why = refused(&engine, 4, "Mesh::new(&[(\"x\", 8)])");
    assert!(why.contains("`%device CPU 8`, the first thing after a restart of the kernel"), "{why}");
    let why = refused(&engine, 5, "%device CPU 8");
    assert!(why.contains("one of 4 devices") && why.contains("restart the kernel"), "{why}");
    assert!(shown(&engine, 6, "%device cpu 4").contains("already, one of 4 devices"));
    // A session that takes the place of one that died is told as well.
    assert!(refused(&engine, 7, "std::process::abort()").contains("signal"));
    let counted = shown(&engine, 8, "Mesh::new(&[(\"x\", 4)]).size()");
    assert!(counted.contains('4'), "{counted}");
    engine.shutdown();
}

#[test]
fn pjrt_device_tpu_without_one_says_so_and_runs_on_the_cpu() {
    scratch();
    set("PJRT_DEVICE", "TPU");
    let engine = engine();
    if shown(&engine, 1, "%device").contains("TPU chip") {
        return println!("skipped: this machine has a TPU");
    }
    let out = shown(&engine, 2, "Tensor::ones([3]).sum().item()");
    assert!(out.contains("3.0") && out.matches("There is no TPU in this machine").count() == 1, "{out}");
    assert!(!shown(&engine, 3, "Tensor::ones([4]).sum().item()").contains("no TPU"), "once is enough");
    engine.shutdown();
}

#[test]
fn reports_show_in_cells() {
    if !libtpu() {
        return;
    }
    scratch();
    let engine = engine();
    shown(&engine, 1, "let x = Tensor::randn([256, 256]);\nlet w = Tensor::randn([256, 128]);\nsync();");
    let out = shown(&engine, 2, "let y = x.matmul(&w)\n    .relu();\n%tpu v5e:2x2 y");
    assert!(out.contains("TPU v5 lite (v5e:2x2, 4 devices)"), "{out}");
    assert!(out.contains("fits: peak memory") && out.contains("compiler estimate, not a measurement"), "{out}");
    assert!(out.contains("cell 2, line 1") && out.contains("assumed 1.50 GHz"), "{out}");

    // Asked again, a variable's report comes from the disk without a cell being compiled.
    let mut html = String::new();
    let request = Request { code: "%tpu v5e:2x2 y".into(), cell: 3, ..Request::default() };
    let start = Instant::now();
    let reply = engine.execute(&request, &mut |event| {
        if let Event::Result(bundle) = event {
            html = bundle.get("text/html").unwrap_or_default().to_owned();
        }
    });
    println!("again: {:?}", start.elapsed());
    assert_eq!(reply, Reply::Ok);
    assert!(html.contains("from the cache") && html.contains("<table"), "{html}");

    let out = shown(&engine, 4, "y.sum().item();\n%tpu v5e last");
    assert!(out.contains("cell 4, line 1") || out.contains("cell 2, line 1"), "{out}");
    let json = shown(&engine, 5, "%tpu --json v6e (&y, &y * 2.0)");
    assert!(json.contains("\"topology\":\"v6e:1x1\"") && json.contains("\"what\":\"compiler estimate\""), "{json}");
    let table = shown(&engine, 6, "%tpu compare v5e v6e y");
    assert!(table.contains("estimated time") && table.contains("v6e 1.75 GHz"), "{table}");
    let out = shown(&engine, 7, "let r = xlazy::aot::compile(&y, \"v5e\");\nassert!(r.fits() && r.cycles() > 0);\nr");
    assert!(out.contains("=> TPU v5 lite (v5e:1x1, 1 device)"), "{out}");
    assert!(refused(&engine, 8, "%tpu v5e w.matmul(&x.reshape([-1]))").contains("matmul"));
    engine.shutdown();
}

fn aot(arguments: &[&str]) -> Output {
    let libraries = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut xlazy = Command::new(env!("CARGO_BIN_EXE_xlazy"));
    xlazy.arg("aot").args(arguments).env("LD_LIBRARY_PATH", libraries).output().unwrap()
}

#[test]
fn files_are_compiled_from_the_command_line() {
    let folder = scratch();
    drop(engine());
    let file = folder.join("double.mlir");
    let path = file.to_str().unwrap();
    let program = |ty: &str| {
        format!(
            "module @d {{ func.func public @main(%a: {ty}) -> {ty} {{ %0 = stablehlo.add %a, %a : {ty} return %0 : {ty} }} }}"
        )
    };
    std::fs::write(&file, program("tensor<?xf32>")).unwrap();
    let done = aot(&[path, "--topology", "v5e"]);
    let text = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(1) && text.starts_with("xlazy: line 1 of the program"), "{text}");
    assert_eq!(aot(&["nothing.mlir", "-t", "v5e"]).status.code(), Some(1));
    assert_eq!(aot(&[path]).status.code(), Some(2), "a topology is asked for");
    assert_eq!(aot(&[path, "-t", "v5e", "--partitions", "0"]).status.code(), Some(2));
    if !libtpu() {
        return;
    }
    std::fs::write(&file, program("tensor<1024x1024xf32>")).unwrap();
    let done = aot(&[path, "--topology", "v5e:2x2", "-O2", "--json"]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success() && text.contains("\"level\":2") && text.contains("\"fits\":true"), "{text}");
    let done = aot(&[path, "-t", "v5e", "-t", "v6e"]);
    assert!(String::from_utf8(done.stdout).unwrap().contains("estimated time"));
}
