//! What the tests of ahead-of-time compiles share: finding libtpu, and a cache of their own.
// Setting environment variables is unsafe in general; nextest gives each test a process, and these come first in it.
#![allow(unsafe_code, dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

pub fn set(name: &str, value: impl AsRef<std::ffi::OsStr>) {
    // SAFETY: no other thread of the test runs yet.
    unsafe { std::env::set_var(name, value) }
}

/// The libtpu to test with; says so where there is none.
pub fn libtpu() -> Option<PathBuf> {
    let named = std::env::var_os("TPU_LIBRARY_PATH").map(PathBuf::from);
    let plugins = std::env::var_os("XLAZY_PLUGIN_DIR").map(PathBuf::from);
    let plugins = plugins.unwrap_or_else(|| root().join("target/home/plugins"));
    let found = named.into_iter().chain([plugins.join("tpu/libtpu.so")]).find(|p| p.is_file());
    match &found {
        Some(library) => set("TPU_LIBRARY_PATH", library),
        None => println!("skipped: no libtpu here; `xlazy plugins install tpu` fetches one"),
    }
    found
}

/// Builds the process that compiles: test runners build only what tests depend on. With XLAZY_PREBUILT it is taken as it is.
fn build_session() {
    if std::env::var_os("XLAZY_PREBUILT").is_some() {
        return;
    }
    let exe = std::env::current_exe().expect("a test has a path");
    let profile_dir = exe.parent().and_then(Path::parent).expect("target/<profile>/deps/test");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--quiet", "-p", "xlazy", "-p", "xlazy-session", "--target-dir"])
        .arg(profile_dir.parent().expect("target"));
    cargo.args(profile_dir.ends_with("release").then_some("--release")).current_dir(root());
    assert!(cargo.status().is_ok_and(|s| s.success()), "`cargo build -p xlazy-session` fails");
}

/// An empty folder for reports, this process's own; and the process that compiles, built.
pub fn fresh_cache() -> PathBuf {
    build_session();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("aot-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    set("XLAZY_CACHE", &folder);
    folder
}
