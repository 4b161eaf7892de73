//! Something that will have happened: an execution on a worker, an answer.
use super::link::lock;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use xlazy_pjrt::Result;

type Then = Box<dyn FnOnce(Result<()>) + Send>;

/// Clones are the same one.
#[derive(Clone, Default)]
pub struct Signal(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    came: Condvar,
}

enum State {
    Waiting(Vec<Then>),
    Come(Result<()>),
}

impl Default for State {
    fn default() -> State {
        State::Waiting(Vec::new())
    }
}

impl Signal {
    /// One that has come.
    pub fn come() -> Signal {
        let signal = Signal::default();
        signal.give(Ok(()));
        signal
    }

    /// It has come; what is told later is ignored.
    pub fn give(&self, result: Result<()>) {
        let waiting = {
            let mut state = lock(&self.0.state);
            match &mut *state {
                State::Come(_) => return,
                State::Waiting(all) => {
                    let all = std::mem::take(all);
                    *state = State::Come(result.clone());
                    all
                }
            }
        };
        self.0.came.notify_all();
        waiting.into_iter().for_each(|then| then(result.clone()));
    }

    pub fn now(&self) -> Option<Result<()>> {
        match &*lock(&self.0.state) {
            State::Come(result) => Some(result.clone()),
            State::Waiting(_) => None,
        }
    }

    pub fn then(&self, then: impl FnOnce(Result<()>) + Send + 'static) {
        let result = match &mut *lock(&self.0.state) {
            State::Waiting(all) => return all.push(Box::new(then)),
            State::Come(result) => result.clone(),
        };
        then(result);
    }

    /// Waits for it, as long as nothing speaks against that.
    pub fn wait(&self, against: impl Fn() -> Result<()>) -> Result<()> {
        let mut state = lock(&self.0.state);
        loop {
            if let State::Come(result) = &*state {
                return result.clone();
            }
            drop(state);
            against()?;
            state = lock(&self.0.state);
            if let State::Waiting(_) = &*state {
                state = self.0.came.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

/// How long a wait goes without asking whether there is a reason to end it.
const LOOK: Duration = Duration::from_millis(50);

impl std::fmt::Debug for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Signal({:?})", self.now())
    }
}
