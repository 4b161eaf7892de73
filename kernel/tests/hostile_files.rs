//! Files that somebody else made: checkpoints that lie, pipes where files should be. They are data or refused; the session
//! goes on, and nothing in them runs.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;
#[path = "protocol/process.rs"]
#[allow(dead_code)]
mod process;

use process::Process;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A tensor's entry: name, dtype, shape, and its bytes or a place that lies.
struct Entry(&'static str, &'static str, Value, Vec<u8>);

/// A checkpoint with a hash that is right, as everybody can make one.
fn checkpoint(variables: &Value, entries: &[Entry]) -> Vec<u8> {
    let mut variables = variables.to_string();
    // The first field says what it is.
    for (flag, entry) in [("true", "t"), ("false", "t"), ("false", "none")] {
        let sorted = format!("{{\"requires_grad\":{flag},\"tensor\":\"{entry}\"}}");
        variables = variables.replace(&sorted, &format!("{{\"tensor\":\"{entry}\",\"requires_grad\":{flag}}}"));
    }
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    hash.update(variables.as_bytes());
    let (mut body, mut header) = (Vec::new(), serde_json::Map::new());
    for Entry(name, dtype, shape, bytes) in entries {
        hash.update(name.as_bytes());
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
        let place = [body.len(), body.len() + bytes.len()];
        header.insert((*name).into(), json!({"dtype": dtype, "shape": shape, "data_offsets": place}));
        body.extend(bytes);
    }
    let hash = format!("{:032x}", hash.digest128());
    header.insert("__metadata__".into(), json!({"xlazy": "0.1.0", "xlazy.variables": variables, "xlazy.hash": hash}));
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &body].concat()
}

fn variable(name: &str, type_name: &str, value: Value) -> Value {
    json!({"name": name, "type": type_name, "cell": 1, "value": value})
}

fn one(name: &str, type_name: &str, value: Value) -> Vec<u8> {
    checkpoint(&json!([variable(name, type_name, value)]), &[])
}

fn tensor(name: &str, entry: Entry) -> Vec<u8> {
    let value = json!({"tensor": entry.0, "requires_grad": false});
    checkpoint(&json!([variable(name, "xlazy::tensor::Tensor", value)]), &[entry])
}

const EVIL: &str = "a\"); std::fs::write(\"pwned\",\"x\").unwrap(); let _z = (\"";

fn kernel(folder: &Path) -> Process {
    let folder = folder.to_owned();
    Process::start(move |command, _| {
        command.current_dir(folder).env_remove("JPY_SESSION_NAME");
    })
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn a_checkpoint_is_data_whatever_it_holds() {
    let folder = folder("checkpoints");
    let f32s = |n: usize| vec![0u8; 4 * n];
    let int = json!(1);
    let whole: Vec<(&str, Vec<u8>)> = vec![
        ("a name that goes on", tensor(EVIL, Entry("t", "F32", json!([2]), f32s(2)))),
        ("a name with a comment", one("a/**/", "i32", int.clone())),
        ("a keyword", one("fn", "i32", int.clone())),
        ("no name", one("", "i32", int.clone())),
        ("a line break", one("a\nb", "i32", int.clone())),
        ("an escape for the terminal", one("a\x1b[2J", "i32", int.clone())),
        ("a long name", one(&"a".repeat(100_000), "i32", int.clone())),
        ("a module's name", one(EVIL, "xlazy::nn::linear::Linear", json!({"module": []}))),
        (
            "two of a name",
            checkpoint(&json!([variable("a", "i32", int.clone()), variable("a", "i32", int.clone())]), &[]),
        ),
        ("no list", checkpoint(&json!({"a": 1}), &[])),
        ("deep", one("a", "i32", (0..1000).fold(int.clone(), |inner, _| json!([inner])))),
        ("a bool of 2", tensor("a", Entry("t", "BOOL", json!([2]), vec![1, 2]))),
        ("a bool of 255 in a list", {
            let list = variable("a", "alloc::vec::Vec<bool>", json!({"array": "t"}));
            checkpoint(&json!([list]), &[Entry("t", "BOOL", json!([1]), vec![255])])
        }),
        ("a size that wraps around", tensor("a", Entry("t", "F32", json!([1u64 << 62, 8]), vec![]))),
        ("zero times too many", tensor("a", Entry("t", "F32", json!([0, u64::MAX]), vec![]))),
        ("too many dimensions", tensor("a", Entry("t", "F32", json!(vec![1; 4096]), f32s(1)))),
        ("one entry many times", {
            let value = json!({"tensor": "t", "requires_grad": false});
            let list = variable("a", "alloc::vec::Vec<xlazy::tensor::Tensor>", json!([value, value]));
            checkpoint(&json!([list]), &[Entry("t", "F32", json!([1]), f32s(1))])
        }),
        ("cut short", {
            let mut bytes = one("a", "i32", int.clone());
            bytes.truncate(40);
            bytes
        }),
        ("a header of any length", u64::MAX.to_le_bytes().to_vec()),
        ("nothing", vec![]),
    ];
    let by_variable: Vec<(&str, Vec<u8>)> = vec![
        (
            "a type that goes on",
            one(
                "a",
                "i32>::TYPE).load(\"a\") {} std::fs::write(\"pwned\", \"x\"); if let Some(_) = (&&&Wanted::<i32",
                int.clone(),
            ),
        ),
        ("a type with a block", one("a", "[u8; { std::fs::write(\"pwned\", \"x\"); 1 }]", json!([1]))),
        ("a macro for a type", one("a", "evil!(std::fs::write(\"pwned\", \"x\"))", int.clone())),
        ("a file for a type", one("a", "[u8; include_bytes!(\"/etc/passwd\").len()]", json!([1]))),
        ("a deep type", one("a", &("(".repeat(100_000) + &")".repeat(100_000)), int.clone())),
        ("references", one("a", &("&".repeat(100_000) + "str"), int.clone())),
        ("boxes", one("a", &("alloc::boxed::Box<".repeat(3000) + "i32" + &">".repeat(3000)), int.clone())),
        ("a type with a comment", one("a", "i32 //", int.clone())),
        ("a type that is not there", one("a", "g_1::Nothing<\"x\">", int.clone())),
        ("a module of an evil type", one("a", "L\"); evil!(); (\"", json!({"module": []}))),
        ("a module that is not there", one("a", "xlazy::nn::linear::Linear", json!({"module": []}))),
        ("a module for a number", one("mine", "i32", json!({"module": [["w", "t"]]}))),
        ("nanoseconds", one("a", "core::time::Duration", json!([{"int": "18446744073709551615"}, 4_000_000_000u64]))),
        ("a gradient of whole numbers", {
            let value = json!({"tensor": "t", "requires_grad": true});
            let t = variable("a", "xlazy::tensor::Tensor", value);
            checkpoint(&json!([t]), &[Entry("t", "I64", json!([1]), vec![0; 8])])
        }),
        (
            "an entry that is not there",
            one("a", "xlazy::tensor::Tensor", json!({"tensor": "none", "requires_grad": false})),
        ),
        ("lists in a number's place", one("a", "i32", (0..90).fold(json!([]), |inner, _| json!([inner])))),
        ("a number for a text", one("a", "alloc::string::String", int)),
    ];
    let mut kernel = kernel(&folder);
    kernel.cell("let mine = 7i32;").ok();
    let session = kernel.session();
    let wholly = whole.len();
    for (i, (what, bytes)) in whole.into_iter().chain(by_variable).enumerate() {
        std::fs::write(folder.join("h.safetensors"), bytes).expect("a file");
        let done = kernel.cell("%checkpoint load h");
        if i < wholly {
            let error = done.err().lines().next().expect("a message").to_owned();
            assert!(error.starts_with("CheckpointError: ") && error.contains("cannot be loaded"), "{what}: {error}");
            assert!(!error.contains('\x1b') && error.len() < 1500, "{what}: {error}");
        } else {
            let said = done.ok();
            assert!(said.contains("Loaded nothing") && said.contains("Not loaded:"), "{what}: {said}");
            assert!(said.len() < 1500, "{what}: {said}");
        }
        assert!(!folder.join("pwned").exists(), "{what}: it ran");
        assert_eq!(kernel.session(), session, "{what}: the session ended");
    }
    assert_eq!(kernel.cell("mine").ok(), "7");
    // None of them is a checkpoint that a listing shows, or that may be deleted or saved over as one.
    std::fs::write(folder.join("h.safetensors"), one(EVIL, "i32", json!(1))).expect("a file");
    assert!(kernel.cell("%checkpoint").ok().contains("No checkpoints here"));
    assert!(kernel.cell("%checkpoint delete h").err().contains("is no checkpoint of xlazy"));
    assert!(kernel.cell("%checkpoint save h").err().contains("is no checkpoint of xlazy"));
    drop(kernel);
    std::fs::remove_dir_all(folder).expect("cleaned");
}

#[test]
fn a_pipe_where_a_file_should_be_is_not_waited_for() {
    let folder = folder("pipes");
    let pipe = |path: &Path| {
        let _ = std::fs::remove_file(path);
        assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
    };
    ["p.safetensors", "p", "p.csv", "autosave.safetensors"].iter().for_each(|name| pipe(&folder.join(name)));
    let mut kernel = kernel(&folder);
    kernel.cell("let mine = 7;").ok();
    assert!(kernel.cell("%checkpoint").ok().contains("No checkpoints here"));
    assert!(kernel.cell("%checkpoint load p").err().contains("there is no checkpoint"));
    assert!(kernel.cell("%checkpoint delete p").err().contains("there is no checkpoint"));
    assert!(kernel.cell("%checkpoint save p").err().contains("a named pipe"));
    assert!(kernel.cell("%checkpoint save --force p").err().contains("a named pipe"));
    assert!(kernel.cell(":load p").err().contains("a named pipe"));
    assert!(kernel.cell("nn::load(\"p.safetensors\")?;").err().contains("a named pipe"));
    assert!(kernel.cell("nn::save(\"p.safetensors\", &[])?;").err().contains("a named pipe"));
    assert!(kernel.cell("data::read_csv(\"p.csv\")?;").err().contains("a named pipe"));
    let saved = kernel.cell("%autosave 1s\nlet more = 8;");
    assert!(saved.stderr.contains("autosave failed") && saved.stderr.contains("a named pipe"), "{saved:?}");
    // The same in the cache: the next kernel compiles what it cannot read.
    let cells = kernel.folder.path().join("cache/cells");
    let compiled = || std::fs::read_dir(&cells).into_iter().flatten().flatten().map(|e| e.path()).collect::<Vec<_>>();
    assert!(!compiled().is_empty(), "cells are kept");
    compiled().iter().for_each(|path| pipe(path));
    let cache = kernel.folder.path().join("cache");
    let mut next = Process::start(|command, _| {
        command.current_dir(&folder).env("XLAZY_CACHE", cache);
    });
    next.cell("let mine = 7;").ok();
    assert_eq!(next.cell("mine + 1").ok(), "8");
    drop((kernel, next));
    std::fs::remove_dir_all(folder).expect("cleaned");
}
