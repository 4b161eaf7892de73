//! Clients of two processes that meet through a key-value store, here a folder.
mod common;

use common::*;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use xlazy_pjrt::{Code, CompileOptions, Error, KeyValueStore, Program, Result, Value};

/// Every key is a file.
struct Folder(PathBuf);

impl Folder {
    fn file(&self, key: &str) -> PathBuf {
        self.0.join(key.bytes().map(|b| format!("{b:02x}")).collect::<String>())
    }
}

impl KeyValueStore for Folder {
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        let until = Instant::now() + timeout;
        loop {
            match self.try_get(key) {
                Err(_) if Instant::now() < until => std::thread::park_timeout(Duration::from_millis(1)),
                Err(e) => return Err(Error { code: Code::DeadlineExceeded, ..e }),
                value => return value,
            }
        }
    }

    fn try_get(&self, key: &str) -> Result<Vec<u8>> {
        let missing = |_| Error { call: "try_get", code: Code::NotFound, message: format!("no {key:?}") };
        std::fs::read(self.file(key)).map_err(missing)
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        assert!(!key.is_empty());
        let (file, made) = (self.file(key), self.file(key).with_extension(std::process::id().to_string()));
        std::fs::write(&made, value).and_then(|()| std::fs::rename(made, file)).unwrap();
        Ok(())
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("store")
}

#[test]
fn two_processes_reduce_together() {
    if let Ok(node) = std::env::var("XLAZY_TEST_NODE") {
        return reduce(node.parse().unwrap());
    }
    let _ = std::fs::remove_dir_all(folder());
    std::fs::create_dir_all(folder()).unwrap();
    let other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "two_processes_reduce_together"])
        .env("XLAZY_TEST_NODE", "1")
        .spawn()
        .unwrap();
    reduce(0);
    assert!(other.wait_with_output().unwrap().status.success());
}

fn reduce(node: i64) {
    let store = Arc::new(Folder(folder()));
    let options = [("cpu_device_count", Value::Int(2)), ("num_nodes", Value::Int(2)), ("node_id", Value::Int(node))];
    let client = plugin().create_client_with_store(&options, store.clone()).unwrap();
    assert_eq!((client.devices().len(), client.addressable_devices().len()), (4, 2));
    assert_eq!(client.process_index() as i64, node);
    let ids = client.devices().iter().map(|d| d.id() as i64).collect();
    let options = CompileOptions { replicas: 4, assignment: Some(ids), ..CompileOptions::default() };
    let program = client.compile(&Program::mlir(ALL_REDUCE), &options).unwrap();
    let inputs: Vec<_> = program.addressable_devices().iter().map(|d| put_on(d, &[node as f32, 1.], &[2])).collect();
    let outputs = program.execute_sharded(&[vec![&inputs[0]], vec![&inputs[1]]], &[]).unwrap();
    outputs.iter().for_each(|list| assert_eq!(get(&list[0]), [2., 4.]));
    // Nobody leaves while the other still listens.
    store.put(&format!("done {node}"), b"").unwrap();
    store.get(&format!("done {}", 1 - node), Duration::from_secs(60)).unwrap();
}

/// A store that is as bad as it can be: the error is a value of the client's caller.
struct Panics;

impl KeyValueStore for Panics {
    fn get(&self, _: &str, _: Duration) -> Result<Vec<u8>> {
        panic!("get")
    }
    fn try_get(&self, _: &str) -> Result<Vec<u8>> {
        panic!("try_get")
    }
    fn put(&self, _: &str, _: &[u8]) -> Result<()> {
        panic!("put")
    }
}

#[test]
fn a_store_that_panics_is_an_error() {
    let options = [("cpu_device_count", Value::Int(1)), ("num_nodes", Value::Int(2)), ("node_id", Value::Int(0))];
    let e = plugin().create_client_with_store(&options, Arc::new(Panics)).and_then(|client| {
        let ids = client.devices().iter().map(|d| d.id() as i64).collect();
        let options = CompileOptions { replicas: 2, assignment: Some(ids), ..CompileOptions::default() };
        let program = client.compile(
            &Program::mlir(
                &ALL_REDUCE.replace("0,1,2,3", "0,1").replace("1x4x", "1x2x").replace("replicas = 4", "replicas = 2"),
            ),
            &options,
        )?;
        let a = put(&client, &[1., 1.], &[2]);
        program.execute(&[&a], &[])?[0].to_vec()
    });
    assert!(e.unwrap_err().message.contains("the store panicked"));
}
