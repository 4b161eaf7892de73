//! Clients of several processes that meet through a key-value store; here both are in one process.
mod common;

use common::*;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use xlazy_pjrt::{Code, CompileOptions, Error, KeyValueStore, Program, Result, Value};

#[derive(Default)]
struct Memory {
    values: Mutex<HashMap<String, Vec<u8>>>,
    changed: Condvar,
}

impl KeyValueStore for Memory {
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        let values = self.values.lock().unwrap();
        let missing = |values: &mut HashMap<String, Vec<u8>>| !values.contains_key(key);
        let (values, _) = self.changed.wait_timeout_while(values, timeout, missing).unwrap();
        let late = || Error { call: "get", code: Code::DeadlineExceeded, message: format!("no {key:?} in time") };
        values.get(key).cloned().ok_or_else(late)
    }

    fn try_get(&self, key: &str) -> Result<Vec<u8>> {
        let none = || Error { call: "try_get", code: Code::NotFound, message: format!("no {key:?}") };
        self.values.lock().unwrap().get(key).cloned().ok_or_else(none)
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        self.values.lock().unwrap().insert(key.into(), value.into());
        self.changed.notify_all();
        Ok(())
    }
}

#[test]
fn two_clients_reduce_together() {
    let plugin = plugin();
    let store = Arc::new(Memory::default());
    let node = |node: i64| {
        let options =
            [("cpu_device_count", Value::Int(2)), ("num_nodes", Value::Int(2)), ("node_id", Value::Int(node))];
        let client = plugin.create_client_with_store(&options, store.clone()).unwrap();
        assert_eq!((client.devices().len(), client.addressable_devices().len()), (4, 2));
        assert_eq!(client.process_index() as i64, node);
        let ids = client.devices().iter().map(|d| d.id() as i64).collect();
        let options = CompileOptions { replicas: 4, assignment: Some(ids), ..CompileOptions::default() };
        let program = client.compile(&Program::mlir(ALL_REDUCE), &options).unwrap();
        let inputs: Vec<_> =
            program.addressable_devices().iter().map(|d| put_on(d, &[node as f32, 1.], &[2])).collect();
        let outputs = program.execute_sharded(&[vec![&inputs[0]], vec![&inputs[1]]], &[]).unwrap();
        outputs.iter().for_each(|list| assert_eq!(get(&list[0]), [2., 4.]));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| node(0));
        scope.spawn(|| node(1));
    });
    assert!(!store.values.lock().unwrap().is_empty());
}
