//! The key-value store through which the clients of several workers meet: the controller has the values, workers ask for them
//! by their line to it.
use super::link::lock;
use super::wire::{Bytes, Command, Said};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use xlazy_pjrt::{Code, Error, KeyValueStore, Result};

/// What the controller keeps: values, and who waits for which.
#[derive(Default)]
pub struct Values {
    values: HashMap<String, Vec<u8>>,
    waiting: Vec<(usize, u64, String)>,
}

impl Values {
    /// Somebody asks: what is to be told to whom.
    pub fn get(&mut self, worker: usize, request: u64, key: String, waits: bool) -> Option<(usize, Command)> {
        let value = self.values.get(&key).cloned().map(Bytes);
        if value.is_none() && waits {
            self.waiting.push((worker, request, key));
            return None;
        }
        Some((worker, Command::Value { request, value }))
    }

    /// Somebody sets a value: what is to be told to whom.
    pub fn put(&mut self, key: String, value: Vec<u8>) -> Vec<(usize, Command)> {
        let (come, wait) = std::mem::take(&mut self.waiting).into_iter().partition(|(_, _, k)| *k == key);
        self.waiting = wait;
        let come: Vec<(usize, u64, String)> = come;
        let told = |(worker, request, _)| (worker, Command::Value { request, value: Some(Bytes(value.clone())) });
        let all = come.into_iter().map(told).collect();
        self.values.insert(key, value);
        all
    }
}

/// The last question's number, and who waits for which answer.
type Waiting = (u64, HashMap<u64, Sender<Option<Vec<u8>>>>);

/// What a worker's plugin asks.
pub struct Asked {
    line: Sender<Said>,
    waiting: Mutex<Waiting>,
}

/// How long one may wait who waits for nothing.
const AT_ONCE: Duration = Duration::from_secs(30);

impl Asked {
    pub fn new(line: Sender<Said>) -> Asked {
        Asked { line, waiting: Mutex::default() }
    }

    /// The controller has answered.
    pub fn answered(&self, request: u64, value: Option<Vec<u8>>) {
        if let Some(tell) = lock(&self.waiting).1.remove(&request) {
            let _ = tell.send(value);
        }
    }

    fn ask(&self, key: &str, waits: bool, timeout: Duration) -> Result<Vec<u8>> {
        let (tell, told) = channel();
        let request = {
            let mut waiting = lock(&self.waiting);
            waiting.0 += 1;
            let request = waiting.0;
            waiting.1.insert(request, tell);
            request
        };
        let _ = self.line.send(Said::Get { request, key: key.to_owned(), waits });
        let answer = told.recv_timeout(timeout);
        lock(&self.waiting).1.remove(&request);
        let refused = |code, message: String| Error { call: "KeyValueStore", code, message };
        match answer {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(refused(Code::NotFound, format!("nobody has set {key}"))),
            Err(_) => Err(refused(Code::DeadlineExceeded, format!("nobody has set {key} within {timeout:?}"))),
        }
    }
}

impl KeyValueStore for Asked {
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        self.ask(key, true, timeout)
    }

    fn try_get(&self, key: &str) -> Result<Vec<u8>> {
        self.ask(key, false, AT_ONCE)
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        let _ = self.line.send(Said::Put { key: key.to_owned(), value: Bytes(value.to_vec()) });
        Ok(())
    }
}
