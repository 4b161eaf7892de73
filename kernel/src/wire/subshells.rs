//! Subshells (JEP 91): further shells beside the main one, each with a thread, a count and a history of its own.
use super::message::Message;
use crate::engine::Failure;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A front end that makes more than this has forgotten to delete them.
const LIMIT: usize = 256;

/// A request and its place in the order of arrival.
pub struct Arrival {
    pub number: u64,
    pub message: Message,
}

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

    /// The number of a message that arrives now.
    pub fn arrive(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Hands a message to the shell that it names; back with the name of one that does not exist.
    pub fn route(&self, message: Message) -> Option<(Message, String)> {
        let number = self.arrive();
        let Some(id) = message.subshell() else {
            drop(self.main.send(Arrival { number, message }));
            return None;
        };
        let child = self.children().get(&id).cloned();
        let Some(child) = child else { return Some((message, id)) };
        drop(child.send(Arrival { number, message }));
        None
    }

    /// A further one, once `start` has a thread take what comes for it; its id.
    pub fn create(&self, start: impl FnOnce(&str, Receiver<Arrival>) -> io::Result<()>) -> Result<String, Failure> {
        let failure = |message: String| Failure { name: "SubshellError".into(), message, traceback: vec![] };
        let mut children = self.children();
        if children.len() >= LIMIT {
            return Err(failure(format!("there are {LIMIT} subshells already; delete one first")));
        }
        let id = uuid::Uuid::new_v4().to_string();
        let (sender, requests) = channel();
        start(&id, requests).map_err(|e| failure(format!("no thread for a subshell: {e}")))?;
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

pub fn unknown(id: &str) -> Failure {
    let message = format!("there is no subshell {id:?}; it may have been deleted");
    Failure { name: "SubshellNotFound".into(), message, traceback: vec![] }
}
