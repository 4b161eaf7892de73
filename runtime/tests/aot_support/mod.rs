//! What the tests of ahead-of-time compiles share: finding libtpu, and a cache of their own.
// Setting environment variables is unsafe in general; nextest gives each test a process, and these come first in it.
#![allow(unsafe_code, dead_code)]

use std::path::{Path, PathBuf};

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
        None => {
            assert!(std::env::var_os("XLAZY_NEED_LIBTPU").is_none(), "libtpu was fetched, and is not found");
            println!("skipped: no libtpu here; `xlazy plugins install tpu` fetches one");
        }
    }
    found
}

/// The process that compiles, when a test asks for one: the test's own executable, which so is of the same build.
#[test]
fn child() {
    if xlazy::aot::is_child() {
        xlazy::aot::child_main();
    }
}

/// An empty folder for reports, this process's own; and the test as its own child.
pub fn fresh_cache() -> PathBuf {
    let own = std::env::current_exe().expect("a test has a path");
    set("XLAZY_AOT_CHILD", format!("{}\n--exact\naot_support::child\n--nocapture", own.display()));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("aot-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    set("XLAZY_CACHE", &folder);
    folder
}
