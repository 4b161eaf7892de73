//! A plugin that hangs, crashes, lies or will not start costs one error message: tests with `aot_fake_plugin.c`.
mod aot_support;

use aot_support::{fresh_cache, root, set};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use xlazy::aot::{self, Options, Report};
use xlazy::prelude::*;

/// The folder of the C header: `XLAZY_PJRT_INCLUDE`, or `include_dir` of the CPU plugin's note.
fn include_dir() -> String {
    if let Ok(folder) = std::env::var("XLAZY_PJRT_INCLUDE") {
        return folder;
    }
    let note = root().join("target/home/plugins/cpu/plugin.json");
    let text = std::fs::read_to_string(&note).unwrap_or_else(|e| panic!("{}: {e}: run tests/run.sh", note.display()));
    let (_, value) = text.split_once("\"include_dir\"").expect("include_dir in plugin.json");
    value.split('"').nth(1).expect("a text").to_owned()
}

/// Puts the fake plugin in libtpu's place.
fn fake() {
    let folder = fresh_cache();
    let library: PathBuf = folder.join("libtpu.so");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_GNU_SOURCE", "-w", "-O1", "-shared", "-fPIC", "-I", &include_dir()]);
    cc.arg(root().join("runtime/tests/aot_fake_plugin.c")).arg("-o").arg(&library);
    let built = cc.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    set("TPU_LIBRARY_PATH", &library);
}

fn ask(mode: &str, timeout: Duration) -> Result<Report, String> {
    set("FAKE_TPU", mode);
    let options = Options { timeout, ..Options::default() };
    // A program of its own for each mode, so that none is answered from the disk.
    let program = format!("module @{mode} {{}}");
    aot::compile_program(program.as_bytes(), "v5e", &options).map_err(|e| e.to_string())
}

const LONG: Duration = Duration::from_secs(120);

#[test]
fn every_way_to_fail_is_one_message() {
    fake();
    for (mode, words) in [
        ("null", "no libtpu that xlazy can use"),
        ("tiny", "8 bytes"),
        ("old", "0.30"),
        ("major", "7."),
        ("short", "the table lacks"),
        ("lock", "another process holds libtpu's lock"),
        ("no_topology", "does not take this topology: there are no such chips"),
        ("null_topology", "null pointer"),
        ("no_devices", "has no devices"),
        ("null_devices", "no valid address"),
        ("many_devices", "length"),
        ("many_attributes", "length"),
        ("refuses", "refused the program (INVALID_ARGUMENT): not this program"),
        ("null_executable", "null pointer"),
        ("no_memory", "no statistics"),
        ("huge_program", "bytes"),
        ("crash_load", "crashed (signal 11)"),
        ("crash_start", "crashed (signal 11)"),
        ("crash_topology", "crashed (signal 11)"),
        ("crash_compile", "crashed (signal 11)"),
        ("abort_compile", "crashed (signal 6)"),
        ("abort_compile", "Its last words: Check failed: the end of compile"),
        ("exit_compile", "without an answer (exit code 3)"),
    ] {
        match ask(mode, LONG) {
            Err(message) => assert!(message.contains(words), "{mode}: {message}"),
            Ok(report) => panic!("{mode}: {report}"),
        }
    }
    // The process that asked is as it was.
    assert_eq!((Tensor::ones([2, 2]) + 1.0).sum().item(), 8.0);
}

#[test]
fn a_hang_is_stopped() {
    fake();
    for place in ["load", "start", "topology", "compile"] {
        let start = Instant::now();
        let message = ask(&format!("hang_{place}"), Duration::from_millis(300)).unwrap_err();
        assert!(message.contains("no answer after 0.3 s and was stopped"), "{message}");
        assert!(start.elapsed() < Duration::from_secs(60), "it was not stopped, but waited for: {:?}", start.elapsed());
    }
}

#[test]
fn odd_answers_make_odd_reports_and_no_harm() {
    fake();
    let report = ask("fine", LONG).unwrap();
    assert_eq!((report.fit.peak, report.fit.limit, report.fits()), (100, 1 << 30, true));
    assert_eq!((report.cycles(), report.time.rows.len()), (0, 0));
    let html = report.rich();
    let html = html.get("text/html").unwrap();
    assert!(html.contains("&lt;b&gt;fake&lt;/b&gt;") && !html.contains("<b>fake"), "{html}");
    for mode in ["garbage", "negative", "huge_version"] {
        let report = ask(mode, LONG).unwrap_or_else(|e| panic!("{mode}: {e}"));
        assert!(!report.to_string().is_empty() && report.json().starts_with('{'));
    }
    let noisy = ask("noisy", LONG).unwrap();
    assert_eq!(noisy.fit.peak, 100);
    let large = ask("too_large", LONG).unwrap();
    assert!(!large.fits() && large.fit.peak > 228 << 30 && large.to_string().contains("exceeds 15.75G"), "{large}");
    // A crash at the very end comes after the answer.
    let crashed = ask("crash_end", LONG);
    assert!(crashed.is_ok() || crashed.unwrap_err().contains("crashed"));
}

#[test]
fn answers_are_kept_and_failures_are_not() {
    fake();
    assert!(!ask("fine", LONG).unwrap().cached);
    assert!(ask("fine", LONG).unwrap().cached);
    set("LIBTPU_INIT_ARGS", "--another");
    assert!(!ask("fine", LONG).unwrap().cached, "flags are part of what is asked");
    assert!(ask("crash_compile", LONG).is_err());
    // The module's name is the mode's: the same program, from a plugin that has come to its senses.
    set("FAKE_TPU", "");
    let report = aot::compile_program(b"module @crash_compile {}", "v5e", &Options::default()).unwrap();
    assert!(!report.cached && report.fits());
    // Another libtpu is asked anew.
    let library = PathBuf::from(std::env::var_os("TPU_LIBRARY_PATH").unwrap());
    let bytes = std::fs::read(&library).unwrap();
    std::fs::write(&library, [&bytes[..], b"more"].concat()).unwrap();
    assert!(!ask("fine", LONG).unwrap().cached);
    // A cache that cannot be written costs nothing but time.
    set("XLAZY_CACHE", "/dev/null");
    assert!(!ask("other", LONG).unwrap().cached && !ask("other", LONG).unwrap().cached);
}

#[test]
fn without_any_libtpu_the_remedy_is_named() {
    // Nothing named, no plugins, no Python environment, no home.
    for variable in ["TPU_LIBRARY_PATH", "PJRT_PLUGIN_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME", "PATH"] {
        set(variable, "");
    }
    set("XLAZY_CACHE", "/dev/null");
    let places = ["/usr/lib/libtpu.so", "/lib/libtpu.so"].map(PathBuf::from);
    if places.into_iter().chain([root().join("target/home/plugins/tpu/libtpu.so")]).any(|p| p.exists()) {
        return println!("skipped: there is a libtpu where xlazy always looks");
    }
    let message = ask("fine", LONG).unwrap_err();
    assert!(message.contains("xlazy plugins install tpu"), "{message}");
}
