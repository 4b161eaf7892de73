//! `xlazy plugins`: what is listed, and that nothing but the right wheel is installed. A small program stands in for Python.
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[path = "../../tests/support/home.rs"]
mod home;
#[path = "eval_support/mod.rs"]
mod support;

/// An installation in a folder of its own, made of links to what was built.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        drop(support::engine());
        let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("plugins-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&home);
        for folder in ["bin", "lib/deps", "plugins/cpu", "path"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        let built = Path::new(env!("CARGO_BIN_EXE_xlazy")).parent().unwrap();
        let link = |from: &str, to: &str| std::os::unix::fs::symlink(built.join(from), home.join(to)).unwrap();
        link("xlazy-session", "bin/xlazy-session");
        link("libxlazy.so", "lib/libxlazy.so");
        std::fs::write(home.join("plugins/cpu/libpjrt_cpu.so"), "").unwrap();
        std::fs::write(home.join("plugins/cpu/plugin.json"), r#"{"version": "1.2.3"}"#).unwrap();
        Home(home)
    }

    /// `python3` of this text, ahead of the real one.
    fn python(&self, script: &str) {
        let python = self.0.join("path/python3");
        std::fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A pip that makes of a download what `shell` leaves in `$dest`, and can do nothing else.
    fn pip(&self, shell: &str) {
        self.python(&format!(
            r#"case "$*" in
  *--version) exit 0 ;;
  *download*)
    for last in "$@"; do [ "$prev" = --dest ] && dest=$last; prev=$last; done
    {shell} ;;
  *) exit 1 ;;
esac"#
        ));
    }

    fn nothing_is_left_behind(&self) {
        let plugins = std::fs::read_dir(self.0.join("plugins")).unwrap();
        assert_eq!(plugins.flatten().map(|e| e.file_name()).collect::<Vec<_>>(), ["cpu"], "nothing is left behind");
    }

    fn plugins(&self, arguments: &[&str]) -> (bool, String) {
        said(self.xlazy("plugins").args(arguments))
    }

    fn xlazy(&self, subcommand: &str) -> Command {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_xlazy"));
        home::at_home(&mut command, &self.0)
            .arg(subcommand)
            .env("XLAZY_HOME", &self.0)
            .env("PATH", format!("{}:{path}", self.0.join("path").display()))
            .env_remove("TPU_LIBRARY_PATH")
            .env_remove("XLAZY_PLUGIN_DIR")
            .env_remove("VIRTUAL_ENV");
        command
    }
}

fn said(command: &mut Command) -> (bool, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.success(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_list_has_what_is_there_and_what_could_be() {
    let home = Home::new("list");
    let (ok, text) = home.plugins(&["list"]);
    assert!(ok && text.contains("cpu       1.2.3") && text.contains("libpjrt_cpu.so"), "{text}");
    let found_elsewhere = text.contains("(from ");
    assert!(found_elsewhere || text.contains("xlazy plugins install tpu"), "{text}");
    std::fs::create_dir_all(home.0.join("plugins/tpu")).unwrap();
    std::fs::write(home.0.join("plugins/tpu/libtpu.so"), "").unwrap();
    std::fs::write(home.0.join("plugins/tpu/plugin.json"), r#"{"version": "0.0.51"}"#).unwrap();
    let (ok, json) = home.plugins(&["list", "--json"]);
    assert!(ok && json.contains("\"version\": \"0.0.51\"") && json.contains("\"from\": \"xlazy\""), "{json}");
    assert!(home.plugins(&["install", "tpu"]).1.contains("is installed already"));
    let (ok, text) = home.plugins(&["remove", "tpu"]);
    assert!(ok && text.starts_with("removed "), "{text}");
    assert!(!home.0.join("plugins/tpu").exists());
    assert!(home.plugins(&["remove", "tpu"]).1.starts_with("nothing to remove"));
    assert!(!home.plugins(&["install", "gpu"]).0 && !home.plugins(&["remove", "gpu"]).0);
}

/// As where a Colab or a Cloud TPU VM has brought it.
#[test]
fn the_doctor_names_the_libtpu_that_is_there() {
    let home = Home::new("doctor");
    let library = home.0.join("libtpu.so");
    std::fs::write(&library, "").unwrap();
    let (_, text) = said(home.xlazy("doctor").env("TPU_LIBRARY_PATH", &library));
    let named = format!("libtpu {} (from TPU_LIBRARY_PATH)", library.display());
    assert!(text.lines().any(|l| l.contains("TPU  ") && l.contains(&named)), "{text}");
}

/// A plugin that was built here stays unless somebody wants the other one; the right library may come from anywhere, a wrong one
/// from nowhere.
#[test]
fn what_was_built_stays_and_a_library_from_elsewhere_has_to_be_the_right_one() {
    let home = Home::new("library");
    home.python("echo \"python $*\"; exit 1");
    let (library, note) = (home.0.join("plugins/cpu/libpjrt_cpu.so"), home.0.join("plugins/cpu/plugin.json"));
    std::fs::write(&note, r#"{"plugin_version": "0.1.0", "source_sha256": "ab"}"#).unwrap();
    let (ok, text) = home.plugins(&["install", "cpu"]);
    assert!(ok && text.contains("scripts/cpu-plugin.sh") && text.contains("--fetch"), "{text}");
    let (ok, text) = home.plugins(&["install", "cpu", "--fetch"]);
    assert!(!ok && text.contains("Apache-2.0") && text.contains("python3 is needed"), "{text}");
    std::fs::write(home.0.join("other.so"), "junk").unwrap();
    let other = home.0.join("other.so").display().to_string();
    let (ok, text) = home.plugins(&["install", "cpu", "--library", &other]);
    assert!(!ok && text.contains("libpjrt_cpu.so has the wrong SHA-256") && text.contains("0a0fe56c"), "{text}");
    assert_eq!(std::fs::read_to_string(&library).unwrap(), "", "what was there is untouched");
    assert!(home.plugins(&["remove", "cpu"]).0 && !library.exists());
}

/// No package brings xlazy's own: a script builds it, out of sources that came along, and says what it does.
#[test]
fn the_one_for_pods_is_built_where_it_is_wanted() {
    let home = Home::new("multi");
    let script = home.0.join("lib/cpu-plugin/scripts/cpu-plugin.sh");
    std::fs::create_dir_all(script.parent().unwrap()).unwrap();
    std::fs::write(&script, "echo cpu-plugin: g++ is missing: sudo apt-get install -y g++ >&2; exit 1").unwrap();
    let (ok, text) = home.plugins(&["install", "cpu-multi"]);
    assert!(!ok && text.contains("274 MB") && text.contains("g++ is missing: sudo"), "{text}");
    assert!(text.contains("then `xlazy plugins install cpu-multi` goes on"), "{text}");
    assert!(home.plugins(&["list"]).1.contains("`xlazy plugins install cpu-multi` builds"));
    let note = r#"{"plugin_version": "0.1.0", "source_sha256": "ab"}"#;
    let builds = format!("mkdir -p $1 && touch $1/libpjrt_cpu.so && echo '{note}' >$1/plugin.json && echo linking");
    std::fs::write(&script, builds).unwrap();
    let (ok, text) = home.plugins(&["install", "cpu-multi"]);
    let library = home.0.join("plugins/cpu-multi/libpjrt_cpu.so");
    assert!(
        ok && text.contains("linking") && text.contains(&format!("XLAZY_CPU_PLUGIN={}", library.display())),
        "{text}"
    );
    let (ok, text) = home.plugins(&["list"]);
    assert!(
        ok && text.contains("cpu-multi 0.1.0") && text.contains("cpu       1.2.3") && !text.contains("builds"),
        "{text}"
    );
    assert!(home.plugins(&["remove", "cpu-multi"]).0 && !library.exists());
    home.nothing_is_left_behind();
}

#[test]
fn the_licence_is_named_before_anything_is_fetched() {
    let home = Home::new("licence");
    home.python("echo \"python $*\"; exit 1");
    let (ok, text) = home.plugins(&["install", "tpu", "--fetch"]);
    assert!(!ok && text.contains("Google Cloud Platform Terms of Service"), "{text}");
    assert!(text.contains("python3 is needed") && !home.0.join("plugins/tpu").exists(), "{text}");
    home.nothing_is_left_behind();
}

#[test]
fn only_the_right_wheel_is_installed() {
    let home = Home::new("wheel");
    // A pip that fetches what it likes: the name is right, the content is not.
    home.pip(r#"mkdir -p "$dest" && echo junk > "$dest/libtpu-0.0.51-cp311-cp311-manylinux_2_31_x86_64.whl""#);
    let (ok, text) = home.plugins(&["install", "tpu", "--fetch"]);
    assert!(!ok && text.contains("wrong SHA-256") && text.contains("ba67ddbf"), "{text}");
    assert_eq!(text.matches("beginning again").count(), 1, "what came wrong is fetched once more: {text}");
    home.nothing_is_left_behind();
    home.python(r#"case "$*" in *--version) exit 0 ;; *) exit 1 ;; esac"#);
    let (ok, text) = home.plugins(&["install", "tpu", "--fetch"]);
    assert!(!ok && text.contains("pip could not fetch libtpu==0.0.51"), "{text}");
}

/// The CUDA plugin comes in many wheels, NVIDIA's among them: the first wrong one ends it, and one that JAX has brought is used.
#[test]
fn the_cuda_plugin_is_fetched_whole_or_not_at_all() {
    let home = Home::new("cuda");
    // The connection breaks at first; then something else comes.
    home.pip(
        r#"if [ ! -e "$HOME/broke" ]; then touch "$HOME/broke"; exit 1; fi
    mkdir -p "$dest" && echo junk > "$dest/jax_cuda12_pjrt-0.12.0.1-py3-none-manylinux_2_27_x86_64.whl""#,
    );
    let (ok, text) = home.plugins(&["install", "cuda12", "--fetch"]);
    assert!(!ok && text.contains("NVIDIA's, under its licences") && text.contains("1 of 12: fetching"), "{text}");
    assert!(
        text.contains("pip could not fetch jax-cuda12-pjrt==0.12.0.1") && text.contains("beginning again"),
        "{text}"
    );
    assert!(text.contains("wrong SHA-256") && text.contains("5ec28e06"), "{text}");
    home.nothing_is_left_behind();
    let (ok, text) = home.plugins(&["install", "cuda12", "--library", "x.so"]);
    assert!(!ok && text.contains("PIP_FIND_LINKS"), "{text}");

    let jax = home.0.join(".local/lib/python3.12/site-packages");
    let library = jax.join("jax_plugins/xla_cuda12/xla_cuda_plugin.so");
    std::fs::create_dir_all(library.parent().unwrap()).unwrap();
    std::fs::create_dir_all(jax.join("jax_cuda12_pjrt-0.11.2.dist-info")).unwrap();
    std::fs::write(&library, "").unwrap();
    let (ok, text) = home.plugins(&["list"]);
    assert!(ok && text.contains("cuda12    0.11.2") && text.contains("(from the user's Python packages)"), "{text}");
    let (ok, text) = home.plugins(&["install", "cuda12"]);
    assert!(ok && text.contains("there is XLA's CUDA plugin already"), "{text}");

    // JAX's plugin for CUDA 13 serves as well; where both are, the one that takes any driver is used.
    let thirteen = jax.join("jax_plugins/xla_cuda13/xla_cuda_plugin.so");
    std::fs::create_dir_all(thirteen.parent().unwrap()).unwrap();
    std::fs::create_dir_all(jax.join("jax_cuda13_pjrt-0.12.0.dist-info")).unwrap();
    std::fs::write(&thirteen, "").unwrap();
    assert!(home.plugins(&["list"]).1.contains("cuda12    0.11.2"));
    std::fs::remove_dir_all(library.parent().unwrap()).unwrap();
    std::fs::remove_dir_all(jax.join("jax_cuda12_pjrt-0.11.2.dist-info")).unwrap();
    let (ok, text) = home.plugins(&["list"]);
    assert!(ok && text.contains("cuda13    0.12.0 ") && text.contains(&thirteen.display().to_string()), "{text}");
    let (ok, text) = home.plugins(&["install", "cuda12"]);
    assert!(ok && text.contains("there is XLA's CUDA plugin already"), "{text}");

    let own = home.0.join("plugins/cuda12");
    std::fs::create_dir_all(own.join("jax_plugins/xla_cuda12")).unwrap();
    std::fs::write(own.join("jax_plugins/xla_cuda12/xla_cuda_plugin.so"), "").unwrap();
    std::fs::write(own.join("plugin.json"), r#"{"version": "0.12.0.1"}"#).unwrap();
    let (ok, text) = home.plugins(&["install", "cuda12"]);
    assert!(ok && text.contains("0.12.0.1 is installed already"), "{text}");
    let (ok, text) = home.plugins(&["remove", "cuda12"]);
    assert!(ok && text.starts_with("removed ") && !own.exists(), "{text}");
}
