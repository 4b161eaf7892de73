//! Subshells (JEP 91): further shells beside the main one, each with a thread, a count and a history of its own.
use super::content;
use super::history::History;
use super::hub::Hub;
use super::message::Message;
use super::shell::{Arrival, Shell};
use crate::engine::Failure;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A front end that makes more than this has forgotten to delete them.
const LIMIT: usize = 256;

/// Where the shell channel's messages go.
pub struct Subshells {
    main: Sender<Arrival>,
    children: Mutex<BTreeMap<String, Sender<Arrival>>>,
    /// Counts arrivals; the reader counts up, a shell asks how far it has come.
    arrivals: AtomicU64,
}

impl Subshells {
    /// Also returns what the main shell is to work off.
    pub fn new() -> (Subshells, Receiver<Arrival>) {
        let (main, requests) = channel();
        (Subshells { main, children: Mutex::default(), arrivals: AtomicU64::new(0) }, requests)
    }

    fn children(&self) -> MutexGuard<'_, BTreeMap<String, Sender<Arrival>>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many messages have arrived, for all shells together.
    pub fn arrived(&self) -> u64 {
        self.arrivals.load(Ordering::Acquire)
    }

    /// Hands a message to the shell that it names; an error of one that does not exist.
    pub fn route(&self, hub: &Hub, message: Message) {
        let number = self.arrivals.fetch_add(1, Ordering::AcqRel) + 1;
        let Some(id) = message.subshell() else {
            return drop(self.main.send(Arrival { number, message }));
        };
        let child = self.children().get(&id).cloned();
        match child {
            Some(child) => drop(child.send(Arrival { number, message })),
            None => refuse(hub, &message, &id),
        }
    }

    /// Starts one; its id.
    pub fn create(hub: &Arc<Hub>) -> Result<String, Failure> {
        let failure = |message: String| Failure { name: "SubshellError".into(), message, traceback: vec![] };
        let mut children = hub.subshells.children();
        if children.len() >= LIMIT {
            return Err(failure(format!("there are {LIMIT} subshells already; delete one first")));
        }
        let id = uuid::Uuid::new_v4().to_string();
        let (sender, requests) = channel();
        let shell = Shell::new(hub.clone(), History::open(None), Some(id.clone()));
        let started = thread::Builder::new().name("subshell".into()).spawn(move || shell.run(requests));
        started.map_err(|e| failure(format!("no thread for a subshell: {e}")))?;
        children.insert(id.clone(), sender);
        Ok(id)
    }

    /// Ends one, after what it has been asked up to now.
    pub fn delete(&self, id: &str) -> Result<(), Failure> {
        self.children().remove(id).map(drop).ok_or_else(|| unknown(id))
    }

    pub fn list(&self) -> Vec<String> {
        self.children().keys().cloned().collect()
    }
}

fn unknown(id: &str) -> Failure {
    let message = format!("there is no subshell {id:?}; it may have been deleted");
    Failure { name: "SubshellNotFound".into(), message, traceback: vec![] }
}

fn refuse(hub: &Hub, message: &Message, id: &str) {
    hub.iopub.status(&message.header, "busy");
    if let Some(kind) = message.msg_type.strip_suffix("_request") {
        let content = content::error(&unknown(id), json!({"status": "error"}));
        hub.reply(&hub.shell, message, &format!("{kind}_reply"), &content);
    }
    hub.iopub.status(&message.header, "idle");
}
