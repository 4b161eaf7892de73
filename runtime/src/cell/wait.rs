//! `.await` at the top of a cell: the cell's thread waits for a future, and an interrupt ends the wait.
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// How long an interrupt waits to be noticed at most.
const LOOK_UP: Duration = Duration::from_millis(20);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future's value on this thread. An interrupt unwinds, as everywhere in a cell.
#[doc(hidden)]
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    let mut value = None;
    wait(&mut |context| match Pin::as_mut(&mut future).poll(context) {
        Poll::Ready(ready) => {
            value = Some(ready);
            true
        }
        Poll::Pending => false,
    });
    value.expect("the wait ends with a value")
}

/// What needs no type is compiled here, once.
#[inline(never)]
fn wait(poll: &mut dyn FnMut(&mut Context) -> bool) {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        xlazy_core::sys::check_interrupt();
        if poll(&mut context) {
            return;
        }
        std::thread::park_timeout(LOOK_UP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_that_another_thread_wakes_is_waited_for() {
        let (tx, rx) = std::sync::mpsc::channel::<Waker>();
        let go = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let seen = go.clone();
        std::thread::spawn(move || {
            let waker = rx.recv().unwrap();
            seen.store(true, std::sync::atomic::Ordering::SeqCst);
            waker.wake();
        });
        let value = block_on(std::future::poll_fn(|context| {
            if go.load(std::sync::atomic::Ordering::SeqCst) {
                return Poll::Ready(7);
            }
            let _ = tx.send(context.waker().clone());
            Poll::Pending
        }));
        assert_eq!(value, 7);
    }
}
