//! An xlazy that is installed, with nothing of the source tree to help it.
mod eval_support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Installed(PathBuf);

impl Installed {
    /// Made of what was built, as install.sh does.
    fn new(name: &str) -> Installed {
        eval_support::build_runtime();
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("installed-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&home);
        for folder in ["bin", "lib", "elsewhere"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        let xlazy = Path::new(env!("CARGO_BIN_EXE_xlazy"));
        let built = xlazy.parent().unwrap();
        // Not links to them: where a program lies is what its own libraries are found by.
        let put = |from: &Path, to: &str| std::fs::hard_link(from, home.join(to)).unwrap();
        put(xlazy, "bin/xlazy");
        put(&built.join("xlazy-session"), "bin/xlazy-session");
        put(&built.join("libxlazy.so"), "lib/libxlazy.so");
        std::os::unix::fs::symlink(built.join("deps"), home.join("lib/deps")).unwrap();
        std::fs::copy(libstd(), home.join("lib").join(libstd().file_name().unwrap())).unwrap();
        let plugins = std::env::var_os("XLAZY_PLUGIN_DIR");
        let plugins = plugins.map_or_else(|| built.parent().unwrap().join("home/plugins"), PathBuf::from);
        std::os::unix::fs::symlink(plugins, home.join("plugins")).unwrap();
        let described = Command::new(xlazy).arg("describe-toolchain").output().unwrap();
        std::fs::write(home.join("runtime.json"), described.stdout).unwrap();
        Installed(home)
    }

    fn eval(&self, code: &str, libraries: &Path) -> Output {
        let mut xlazy = Command::new(self.0.join("bin/xlazy"));
        xlazy.args(["eval", code]).env("LD_LIBRARY_PATH", libraries).env("XLAZY_CACHE", self.0.join("cache"));
        xlazy.env_remove("XLAZY_HOME").env_remove("XLAZY_PLUGIN_DIR").output().unwrap()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn libstd() -> PathBuf {
    let folder = Command::new("rustc").args(["--print", "target-libdir"]).output().unwrap().stdout;
    let folder = PathBuf::from(String::from_utf8(folder).unwrap().trim());
    let name = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libstd-"));
    let so = |p: &PathBuf| p.extension().is_some_and(|e| e == "so");
    std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).find(|p| name(p) && so(p)).unwrap()
}

#[test]
fn its_own_libraries_come_before_those_that_the_environment_names() {
    let installed = Installed::new("libraries");
    let elsewhere = installed.0.join("elsewhere");
    // Of another build, or made to be found: nothing that can be loaded.
    for name in [libstd().file_name().unwrap(), "libxlazy.so".as_ref()] {
        std::fs::write(elsewhere.join(name), "no library").unwrap();
    }
    for code in ["1 + 1", "fn two() -> u8 { 2 }\ntwo()", "tensor([0.5, 1.5]).sum().item() as i32"] {
        let out = installed.eval(code, &elsewhere);
        assert_eq!(String::from_utf8_lossy(&out.stdout), "2\n", "{}", String::from_utf8_lossy(&out.stderr));
    }
}
