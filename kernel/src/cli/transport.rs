//! How Jupyter reaches its kernels: what its configuration says of that, and setting it to Unix sockets.
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What JupyterLab, Notebook and Jupyter Server read. Not `jupyter_config.json`, which every application reads: under
/// `jupyter nbconvert --execute` jupyter_client names the sockets "kernel-ipc-1", which for the kernel lies in the
/// notebook's folder and for the client in the one it was started in.
const FILE: &str = "jupyter_server_config.json";

const MANAGER: &str = "KernelManager";

/// The user's Jupyter configuration, as Jupyter itself finds it.
pub fn user_config_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v: &OsString| !v.is_empty()).map(PathBuf::from);
    set("JUPYTER_CONFIG_DIR").or_else(|| set("HOME").map(|d| d.join(".jupyter")))
}

/// Has the Jupyter Server of this configuration folder start its kernels on Unix sockets, in its runtime folder, which is
/// its user's alone. Whatever else is set there stays; the answer is the file.
pub fn use_ipc(folder: &Path) -> Result<PathBuf, String> {
    change(folder, |settings| {
        let of = settings.entry(MANAGER).or_insert_with(|| json!({}));
        let of = of.as_object_mut().ok_or_else(|| format!("{MANAGER} in it is not an object"))?;
        of.insert("transport".to_owned(), json!("ipc"));
        Ok(())
    })
}

/// Takes away what [`use_ipc`] set, and the file where nothing else is in it.
pub fn no_longer_use_ipc(folder: &Path) -> Result<PathBuf, String> {
    let file = change(folder, |settings| {
        if let Some(Value::Object(of)) = settings.get_mut(MANAGER)
            && of.get("transport") == Some(&json!("ipc"))
        {
            of.remove("transport");
            if of.is_empty() {
                settings.remove(MANAGER);
            }
        }
        Ok(())
    })?;
    if read(&file).is_ok_and(|settings| settings.is_empty()) {
        let _ = std::fs::remove_file(&file);
    }
    Ok(file)
}

fn change(
    folder: &Path,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let file = folder.join(FILE);
    let bad = |e: &dyn std::fmt::Display| format!("{} could not be changed: {e}", file.display());
    let mut settings = read(&file).map_err(|e| bad(&e))?;
    let before = settings.clone();
    change(&mut settings).map_err(|e| bad(&e))?;
    if settings != before {
        // A link stays one. What is there is replaced at once, so that no half of it is ever read.
        let there = file.canonicalize().unwrap_or_else(|_| file.clone());
        write(&there, &format!("{:#}\n", Value::Object(settings))).map_err(|e| bad(&e))?;
    }
    Ok(file)
}

/// Empty where there is no file.
fn read(file: &Path) -> Result<Map<String, Value>, String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(e) => return Err(e.to_string()),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(settings)) => Ok(settings),
        Ok(_) => Err("it is not a JSON object".to_owned()),
        Err(e) => Err(format!("it is not JSON: {e}")),
    }
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let beside = file.with_extension(format!("json.{}", std::process::id()));
    let written = std::fs::File::create_new(&beside).and_then(|mut new| {
        if let Ok(old) = std::fs::metadata(file) {
            new.set_permissions(old.permissions())?;
        }
        new.write_all(text.as_bytes())?;
        new.sync_all()?;
        std::fs::rename(&beside, file)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// How kernels are reached by what the configuration in these folders says, the first one first.
#[derive(Clone, Debug, PartialEq)]
pub enum Reached {
    Ipc(PathBuf),
    /// Over TCP, encrypted where the kernel can.
    Encrypted(PathBuf),
    /// Over TCP as it is without a setting.
    Plain,
    /// A file that is a program, which only Jupyter can run, speaks of it.
    Unknown(PathBuf),
}

pub fn reached(folders: &[PathBuf]) -> Reached {
    const NAMES: [&str; 4] =
        ["jupyter_server_config", "jupyter_lab_config", "jupyter_notebook_config", "jupyter_config"];
    let setting = |settings: &Map<String, Value>, name: &str| {
        let managers = ["KernelManager", "AsyncKernelManager", "ServerKernelManager", "AsyncIOLoopKernelManager"];
        managers.iter().find_map(|m| settings.get(*m)?.get(name)?.as_str().map(str::to_ascii_lowercase))
    };
    let (mut transport, mut encryption, mut unknown) = (None, None, None);
    for (folder, name) in folders.iter().flat_map(|folder| NAMES.map(|name| (folder, name))) {
        let file = folder.join(name).with_extension("json");
        let settings = read(&file).unwrap_or_default();
        let found = |what| setting(&settings, what).map(|value| (value, file.clone()));
        transport = transport.or_else(|| found("transport"));
        encryption = encryption.or_else(|| found("transport_encryption"));
        let program = folder.join(name).with_extension("py");
        let speaks = std::fs::read_to_string(&program).is_ok_and(|text| {
            let lines = text.lines().map(str::trim_start).filter(|l| !l.starts_with('#'));
            lines.filter(|l| l.contains("KernelManager")).any(|l| l.contains(".transport"))
        });
        unknown = unknown.or(speaks.then_some(program));
    }
    match (transport, encryption, unknown) {
        (Some((what, file)), ..) if what == "ipc" => Reached::Ipc(file),
        (_, Some((what, file)), _) if what == "auto" || what == "required" => Reached::Encrypted(file),
        (_, _, Some(program)) => Reached::Unknown(program),
        _ => Reached::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xlazy-transport-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn what_else_is_set_stays() {
        let folder = scratch("set");
        let file = use_ipc(&folder).unwrap();
        assert_eq!(reached(std::slice::from_ref(&folder)), Reached::Ipc(file.clone()));
        assert_eq!(no_longer_use_ipc(&folder), Ok(file.clone()));
        assert!(!file.exists(), "nothing else was in it");
        let old = "{\"KernelManager\": {\"autorestart\": true}, \"A\": [1, {\"b\": null}]}";
        std::fs::write(&file, old).unwrap();
        for _ in 0..2 {
            use_ipc(&folder).unwrap();
        }
        let settings = read(&file).unwrap();
        assert_eq!(settings["KernelManager"], json!({"autorestart": true, "transport": "ipc"}));
        assert_eq!(settings["A"], json!([1, {"b": null}]));
        no_longer_use_ipc(&folder).unwrap();
        assert_eq!(Value::Object(read(&file).unwrap()), serde_json::from_str::<Value>(old).unwrap());
        // What it cannot read it does not replace.
        for bad in ["{", "[]", "{\"KernelManager\": 3}"] {
            std::fs::write(&file, bad).unwrap();
            assert!(use_ipc(&folder).unwrap_err().contains("could not be changed"));
            assert_eq!(std::fs::read_to_string(&file).unwrap(), bad);
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_jupyter_is_told_is_found() {
        let folder = scratch("find");
        std::fs::create_dir_all(&folder).unwrap();
        let folders = [scratch("none"), folder.clone()];
        assert_eq!(reached(&folders), Reached::Plain);
        let program = folder.join("jupyter_server_config.py");
        std::fs::write(&program, "# c.KernelManager.transport = 'ipc'\n").unwrap();
        assert_eq!(reached(&folders), Reached::Plain, "as Jupyter writes it, in comments");
        std::fs::write(&program, "c.KernelManager.transport = 'ipc'\n").unwrap();
        assert_eq!(reached(&folders), Reached::Unknown(program));
        let file = folder.join("jupyter_lab_config.json");
        std::fs::write(&file, "{\"KernelManager\": {\"transport_encryption\": \"Required\"}}").unwrap();
        assert_eq!(reached(&folders), Reached::Encrypted(file.clone()));
        let server = folder.join("jupyter_server_config.json");
        std::fs::write(&server, "{\"KernelManager\": {\"transport\": \"tcp\"}}").unwrap();
        std::fs::write(&file, "{\"KernelManager\": {\"transport\": \"ipc\"}}").unwrap();
        std::fs::remove_file(folder.join("jupyter_server_config.py")).unwrap();
        assert_eq!(reached(&folders), Reached::Plain, "the first that says anything");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
