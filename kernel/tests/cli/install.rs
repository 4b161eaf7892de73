//! The kernelspec, and the command line itself.
use expect_test::expect;
use std::path::Path;
use std::process::Command;
use xlazy_kernel::cli;
use xlazy_kernel::cli::install::{spec_folder, write_kernelspec};

fn xlazy() -> Command {
    Command::new(env!("CARGO_BIN_EXE_xlazy"))
}

fn scratch(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("xlazy-install-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn the_kernelspec_says_what_jupyter_needs() {
    let data = scratch("spec");
    let folder = write_kernelspec(&data, Path::new("/opt/xlazy/bin/xlazy"), Some(Path::new("/opt/xlazy"))).unwrap();
    assert_eq!(folder, spec_folder(&data));
    expect![[r#"
        {
          "argv": [
            "/opt/xlazy/bin/xlazy",
            "kernel",
            "{connection_file}"
          ],
          "display_name": "xlazy (Rust, lazy tensors on XLA)",
          "env": {
            "XLAZY_HOME": "/opt/xlazy"
          },
          "interrupt_mode": "message",
          "language": "rust",
          "metadata": {
            "debugger": false,
            "supported_encryption": [
              "curve"
            ]
          }
        }
    "#]]
    .assert_eq(&std::fs::read_to_string(folder.join("kernel.json")).unwrap());
    for (name, size) in [("logo-32x32.png", 32), ("logo-64x64.png", 64)] {
        let png = std::fs::read(folder.join(name)).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(u32::from_be_bytes(png[16..20].try_into().unwrap()), size, "width of {name}");
    }
    assert!(std::fs::read_to_string(folder.join("logo-svg.svg")).unwrap().starts_with("<svg"));
    std::fs::remove_dir_all(data).unwrap();
}

#[test]
fn install_and_uninstall_find_jupyters_folder() {
    let data = scratch("data");
    for _ in 0..2 {
        let done = xlazy().arg("install").env("JUPYTER_DATA_DIR", &data).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        assert!(data.join("kernels/xlazy/kernel.json").exists());
    }
    let text = std::fs::read_to_string(data.join("kernels/xlazy/kernel.json")).unwrap();
    assert!(text.contains(env!("CARGO_BIN_EXE_xlazy")), "{text}");
    for says in ["removed: ", "nothing to remove: "] {
        let done = xlazy().arg("uninstall").env("JUPYTER_DATA_DIR", &data).output().unwrap();
        assert!(done.status.success() && String::from_utf8(done.stdout).unwrap().starts_with(says));
    }
    let prefix = scratch("prefix");
    xlazy().args(["install", "--prefix"]).arg(&prefix).output().unwrap();
    assert!(prefix.join("share/jupyter/kernels/xlazy/kernel.json").exists());
    std::fs::remove_dir_all(data).unwrap();
    std::fs::remove_dir_all(prefix).unwrap();
}

#[test]
fn jupyter_is_told_to_use_unix_sockets_where_that_is_asked_for() {
    let (prefix, config) = (scratch("ipc"), scratch("config"));
    let run = |arguments: &[&str]| {
        let mut command = xlazy();
        command.args(arguments).env("JUPYTER_CONFIG_DIR", &config).env("JUPYTER_DATA_DIR", config.join("data"));
        let done = command.output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    run(&["install"]);
    assert!(!config.join("jupyter_server_config.json").exists(), "it is the user's choice");
    let prefixed = prefix.to_str().unwrap();
    for (arguments, file) in [
        (&["--ipc"][..], config.join("jupyter_server_config.json")),
        (&["--ipc", "--prefix", prefixed], prefix.join("etc/jupyter/jupyter_server_config.json")),
    ] {
        let says = run(&[&["install"], arguments].concat());
        assert!(says.contains(file.to_str().unwrap()), "{says}");
        let set: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(set["KernelManager"]["transport"], "ipc");
        run(&[&["uninstall"], arguments].concat());
        assert!(!file.exists());
    }
    std::fs::remove_dir_all(prefix).unwrap();
    std::fs::remove_dir_all(config).unwrap();
}

#[test]
fn the_command_line_is_consistent() {
    cli::command().debug_assert();
    for subcommand in cli::command().get_subcommands() {
        assert!(subcommand.get_about().is_some(), "{} says nothing about itself", subcommand.get_name());
    }
    let done = xlazy().arg("--version").output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), concat!("xlazy ", env!("CARGO_PKG_VERSION"), "\n"));
    let done = xlazy().arg("evla").output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8(done.stderr).unwrap().contains("'eval'"));
}

#[test]
fn a_notebook_that_is_none_is_refused_in_a_sentence() {
    let path = scratch("broken.ipynb");
    for (content, why) in [("{", "not JSON"), ("{}", "no notebook"), (r#"{"nbformat": 3}"#, "nbformat 3")] {
        std::fs::write(&path, content).unwrap();
        let done = xlazy().arg("run").arg(&path).output().unwrap();
        assert_eq!(done.status.code(), Some(1));
        let text = String::from_utf8(done.stderr).unwrap();
        assert!(text.starts_with("xlazy: ") && text.contains(why), "{text}");
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(xlazy().arg("run").arg(&path).output().unwrap().status.code(), Some(1));
}
