//! What the channels share: the engine once it is there, the way out on each socket, and the question to the user.
use super::comms::Comms;
use super::content::{About, kernel_info};
use super::hands::Hands;
use super::iopub::Iopub;
use super::message::{Envelope, Message};
use super::router::Outbound;
use super::sockets::Fence;
use super::subshells::Subshells;
use super::turns::Turns;
use crate::engine::{Engine, Failure};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

/// An interrupt is answered after this time at the latest, whatever the engine does.
const INTERRUPT_LIMIT: Duration = Duration::from_millis(80);

/// By subshell.
type InputRequests = HashMap<Option<String>, InputRequest>;

pub struct InputRequest {
    /// The identity of the front end that was asked.
    asked: Option<Bytes>,
    answer: Sender<Result<String, String>>,
}

/// The cell that ran last.
#[derive(Clone, Default)]
pub struct Last {
    pub parent: Arc<Value>,
    pub number: u64,
}

pub struct Hub {
    pub envelope: Arc<Envelope>,
    pub iopub: Iopub,
    pub shell: Outbound,
    pub control: Outbound,
    pub stdin: Outbound,
    /// Asks the shell reader to take in what has already arrived.
    pub fences: UnboundedSender<Fence>,
    /// Set by the thread that starts the engine; kernel_info need not wait for it.
    pub engine: OnceLock<Result<Arc<dyn Engine>, Failure>>,
    pub about: About,
    /// Who waits for a line from the user, by subshell.
    pub asking: Mutex<InputRequests>,
    pub subshells: Subshells,
    pub turns: Arc<Turns>,
    pub hands: Hands,
    pub comms: Comms,
    /// The cell that ran last, to which output belongs that comes between cells.
    pub last: Mutex<Last>,
    /// Where output goes that is more than a front end can show.
    pub spill: PathBuf,
    /// Told when the kernel is to end.
    pub stop: Notify,
}

impl Hub {
    /// The engine, waited for while it starts.
    pub fn engine(&self) -> &Result<Arc<dyn Engine>, Failure> {
        self.engine.wait()
    }

    /// Sends a reply to whom the request came from.
    pub fn reply(&self, out: &Outbound, request: &Message, msg_type: &str, content: &Value) {
        self.reply_with(out, request, msg_type, &json!({}), content);
    }

    pub fn reply_with(&self, out: &Outbound, request: &Message, msg_type: &str, metadata: &Value, content: &Value) {
        out.send(&request.identities, &self.envelope.seal(msg_type, &request.header, metadata, content));
    }

    /// Asks the front end that sent the request for a line.
    pub fn ask(&self, request: &Message, prompt: &str, password: bool, answer: Sender<Result<String, String>>) {
        self.stdin.wait_for(&request.identities);
        // Held, so that the answer does not come before it is known what was asked.
        let mut asking = self.asking();
        let content = json!({"prompt": prompt, "password": password});
        let question = self.envelope.seal("input_request", &request.header, &json!({}), &content);
        let asked = self.stdin.ask(&request.identities, &self.shell, &question);
        if asked.is_none() {
            super::log(format_args!("stdin: the front end that runs the cell is not there to be asked"));
        }
        asking.insert(request.subshell(), InputRequest { asked, answer });
    }

    fn asking(&self) -> MutexGuard<'_, InputRequests> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a question that its cell no longer waits for.
    pub fn stop_asking(&self, subshell: &Option<String>) {
        self.asking().remove(subshell);
    }

    /// Gives the answer to whoever asked. Nobody may be asking any more: an answer can come too late. Nobody answers
    /// for another front end either.
    pub fn answer(&self, reply: &Message) {
        let mut asking = self.asking();
        // Front ends that know nothing of subshells leave the field out.
        let asked = match reply.subshell() {
            id if asking.contains_key(&id) => Some(id),
            None if asking.len() == 1 => asking.keys().next().cloned(),
            _ => None,
        };
        let Some(id) = asked else { return };
        if asking.get(&id).is_some_and(|question| question.asked.as_ref() != reply.identities.get(1)) {
            return super::log(format_args!("stdin: an answer was dropped: another front end was asked"));
        }
        if let Some(question) = asking.remove(&id) {
            let _ = question.answer.send(Ok(super::content::text(&reply.content, "value")));
        }
    }

    /// Interrupts the running cell; returns when the engine has taken it in, or after [`INTERRUPT_LIMIT`].
    pub async fn interrupt(&self) {
        let interrupt = self.turns.interrupt();
        if let Some(Ok(engine)) = self.engine.get() {
            let (engine, turns) = (engine.clone(), self.turns.clone());
            let taken = tokio::task::spawn_blocking(move || turns.deliver(interrupt, &*engine));
            let _ = tokio::time::timeout(INTERRUPT_LIMIT, taken).await;
        }
        // After the engine knows: the cell is to be interrupted, and not to go on with an error.
        for (_, question) in self.asking().drain() {
            let _ = question.answer.send(Err("the cell was interrupted".into()));
        }
    }

    pub fn kernel_info(&self, out: &Outbound, request: &Message) {
        self.reply(out, request, "kernel_info_reply", &kernel_info(&self.about));
    }
}
