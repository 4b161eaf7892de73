//! The two ends of the way to a session process: a line that any thread may ask on, and the queue of what comes back.
use crate::engine::{Event, Failure, sentence};
use crate::eval::tell::point::in_the_notebook;
use crate::eval::text::sources::Sources;
use std::collections::{HashMap, VecDeque};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use xlazy_mime::{Ask, Bundle, Content, Fault, Frame, Question, Tell};

type Answer = Result<Bundle, Fault>;

/// Asks one session. Clones are the same line; a cell that runs holds up no question.
#[derive(Clone)]
pub struct Channel(Arc<Inner>);

struct Inner {
    to: Mutex<UnixStream>,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    count: u64,
    /// Who waits for an answer. Without a session nobody does.
    waiting: Option<HashMap<u64, Sender<Answer>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Channel {
    pub fn new(to: UnixStream) -> Channel {
        let asked = Asked { count: 0, waiting: Some(HashMap::new()) };
        Channel(Arc::new(Inner { to: Mutex::new(to), asked: Mutex::new(asked) }))
    }

    /// Sends a frame. A dead session is noticed by what comes next, not here.
    pub fn tell(&self, ask: &Ask) {
        let _ = ask.send(&mut *lock(&self.0.to));
    }

    /// Puts a question to the runtime and waits for the answer.
    pub fn call(&self, question: Question, args: &str, patience: Duration) -> Result<Bundle, Failure> {
        let (answer, answered) = channel();
        let id = {
            let mut asked = lock(&self.0.asked);
            asked.count += 1;
            let id = asked.count;
            match &mut asked.waiting {
                Some(waiting) => drop(waiting.insert(id, answer)),
                // The sender goes, so that the wait below ends at once.
                None => drop(answer),
            }
            id
        };
        self.tell(&Ask::Call { id, question, args: args.into() });
        match answered.recv_timeout(patience) {
            Ok(answer) => answer.map_err(|fault| sentence(&fault.name, fault.message)),
            Err(RecvTimeoutError::Disconnected) => {
                Err(sentence("SessionDied", format!("the session did not answer {question}")))
            }
            Err(RecvTimeoutError::Timeout) => {
                lock(&self.0.asked).waiting.iter_mut().for_each(|w| drop(w.remove(&id)));
                let message = format!(
                    "the session did not answer {question} within {} s: it is busy; ask again when the cell has ended",
                    patience.as_secs()
                );
                Err(sentence("SessionBusy", message))
            }
        }
    }

    pub fn answer(&self, id: u64, answer: Answer) {
        let asker = lock(&self.0.asked).waiting.as_mut().and_then(|w| w.remove(&id));
        // Whoever asked may have stopped waiting.
        let _ = asker.map(|a| a.send(answer));
    }

    /// The session is gone: nobody gets an answer any more.
    pub fn hang_up(&self) {
        lock(&self.0.asked).waiting = None;
    }

    /// Has the session end itself; its end of the stream closes.
    pub fn close(&self) {
        self.tell(&Ask::Shutdown);
        let _ = lock(&self.0.to).shutdown(std::net::Shutdown::Both);
    }
}

/// What comes from the session, in order.
#[derive(Debug)]
pub enum News {
    Tell(Tell),
    /// Written past the runtime to descriptor 1 or 2: C code, child processes, `std::io::stdout()`.
    Raw {
        stderr: bool,
        text: String,
    },
    /// The process is gone; how it went, as the end of a sentence.
    Gone(String),
}

impl News {
    /// As a front end sees it, with the cells' names in it; nothing for what is between kernel and session.
    pub fn event(self, sources: &Sources) -> Option<Event> {
        Some(match self {
            News::Raw { stderr, text } | News::Tell(Tell::Stream { stderr, text }) => {
                Event::Stream { stderr, text: in_the_notebook(text, sources) }
            }
            News::Tell(Tell::Display { bundle, id, update }) => {
                Event::Display { bundle: shown(bundle, sources), id, update }
            }
            News::Tell(Tell::Result(bundle)) => Event::Result(shown(bundle, sources)),
            News::Tell(Tell::ClearOutput { wait }) => Event::ClearOutput { wait },
            News::Tell(Tell::Comm(json)) => Event::Comm(serde_json::from_str(&json).ok()?),
            News::Tell(Tell::Event { kind, json }) => Event::Insight { kind, json },
            News::Tell(_) | News::Gone(_) => return None,
        })
    }

    fn is_text(&self) -> bool {
        matches!(self, News::Raw { .. } | News::Tell(Tell::Stream { .. }))
    }

    /// Whether a cell ends with it.
    fn is_end(&self) -> bool {
        matches!(self, News::Gone(_) | News::Tell(Tell::Done { .. }))
    }
}

fn shown(mut bundle: Bundle, sources: &Sources) -> Bundle {
    for (mime, content) in &mut bundle.entries {
        if let Content::Text(text) = content
            && mime == "text/plain"
        {
            *text = in_the_notebook(std::mem::take(text), sources);
        }
    }
    bundle
}

type Take = Box<dyn FnMut(Event) + Send>;

/// Takes what threads write that outlive their cell. Clones are the same.
#[derive(Clone, Default)]
pub struct BetweenCells(Arc<Listener>);

#[derive(Default)]
struct Listener {
    /// Held while the front end takes something, which may take its time.
    take: Mutex<Option<Take>>,
    listening: AtomicBool,
}

impl BetweenCells {
    pub fn set(&self, take: Take) {
        *lock(&self.0.take) = Some(take);
        self.0.listening.store(true, Ordering::SeqCst);
    }

    fn is_listening(&self) -> bool {
        self.0.listening.load(Ordering::SeqCst)
    }
}

/// News on their way. While a cell runs, whoever runs it takes them; between cells they go to the front end as late
/// output of the last cell, or wait for the next cell where the front end does not listen.
pub struct Queue {
    state: Mutex<Queued>,
    came: Condvar,
    room: Condvar,
}

#[derive(Default)]
struct Queued {
    news: VecDeque<News>,
    running: bool,
    /// How the session ended, whether that was taken or not.
    death: Option<String>,
    /// Nobody takes them any more.
    closed: bool,
}

/// News waiting for the front end. When it is slow, the session's writers wait: ten million lines cost no memory.
const WAITING: usize = 256;
/// Of what comes between cells where nobody listens, so much is kept.
const BACKLOG: usize = 10_000;

impl Queue {
    pub fn new() -> Queue {
        Queue { state: Mutex::default(), came: Condvar::new(), room: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Queued> {
        lock(&self.state)
    }

    pub fn push(&self, news: News, late: &BetweenCells) {
        let listening = late.is_listening();
        let full = |q: &mut Queued| q.news.len() >= WAITING && (q.running || listening) && !q.closed;
        let mut q = self.room.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        if let News::Gone(how) = &news {
            q.death = Some(how.clone());
        }
        let taken = q.running || listening;
        if !q.closed && (taken || q.news.len() < BACKLOG || !news.is_text()) {
            q.news.push_back(news);
            self.came.notify_all();
        }
    }

    /// From now on a cell runs, or no longer.
    pub fn set_running(&self, running: bool) {
        self.lock().running = running;
        self.came.notify_all();
        self.room.notify_all();
    }

    /// The next news; `None` when nothing comes in that time.
    pub fn pop(&self, patience: Option<Duration>) -> Option<News> {
        let end = patience.map(|p| Instant::now() + p);
        let mut q = self.lock();
        loop {
            if let Some(news) = q.news.pop_front() {
                self.room.notify_all();
                return Some(news);
            }
            q = match end {
                None => self.came.wait(q).unwrap_or_else(PoisonError::into_inner),
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    self.came.wait_timeout(q, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// What has come that is not the cell's end; `None` when nothing has. The bool says that the end has come.
    pub fn before_the_end(&self) -> (Option<News>, bool) {
        let mut q = self.lock();
        match q.news.front().is_some_and(News::is_end) {
            true => (None, true),
            false => {
                self.room.notify_all();
                (q.news.pop_front(), false)
            }
        }
    }

    /// How the session ended, if it has.
    pub fn death(&self) -> Option<String> {
        self.lock().death.clone()
    }

    pub fn close(&self) {
        self.lock().closed = true;
        self.came.notify_all();
        self.room.notify_all();
    }

    /// Hands on what comes between cells, until the queue is closed. How the session ended stays for the next cell.
    pub fn hand_on(&self, late: &BetweenCells, sources: &Sources) {
        loop {
            let due = |q: &Queued| !q.running && q.news.front().is_some_and(|n| !n.is_end()) && late.is_listening();
            let waits = |q: &mut Queued| !q.closed && !due(q);
            let mut q = self.came.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
            if q.closed {
                return;
            }
            let event = q.news.pop_front().and_then(|n| n.event(sources));
            self.room.notify_all();
            drop(q);
            if let (Some(event), Some(take)) = (event, lock(&late.0.take).as_mut()) {
                take(event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_to_a_session_that_is_gone_is_refused_at_once() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let line = Channel::new(ours);
        line.hang_up();
        let refused = line.call(Question::Metrics, "", Duration::from_secs(5)).unwrap_err();
        assert_eq!(refused.name, "SessionDied");
    }

    #[test]
    fn a_death_is_known_after_it_was_told() {
        let queue = Queue::new();
        assert_eq!(queue.death(), None);
        queue.push(News::Gone("was killed".into()), &BetweenCells::default());
        assert!(matches!(queue.pop(None), Some(News::Gone(_))));
        assert_eq!(queue.death().as_deref(), Some("was killed"));
    }
}
