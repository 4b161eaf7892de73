//! Code of cells that waits for something to happen between them. It belongs to the cell thread, as variables do, so that what it holds
//! need not be `Send`.
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who waits for something of a thing: which, and of what it tells.
pub type Awaited = (Arc<str>, Option<String>);
type Handler = Box<dyn FnMut(&dyn Any)>;
pub(super) type Handlers = BTreeMap<Awaited, Vec<Handler>>;

thread_local! {
    static HANDLERS: RefCell<Handlers> = const { RefCell::new(BTreeMap::new()) };
}

/// Has `handler` called whenever that happens.
pub fn add(awaited: Awaited, handler: impl FnMut(&dyn Any) + 'static) {
    HANDLERS.with_borrow_mut(|all| all.entry(awaited).or_default().push(Box::new(handler)));
}

/// Nobody waits for anything of this thing any more.
pub fn forget(id: &str) {
    HANDLERS.with_borrow_mut(|all| all.retain(|(of, _), _| **of != *id));
}

/// Calls who waits for it. What a handler adds is called the next time; one that fails goes on waiting, unless the thing is
/// `forgotten` by then.
pub fn call(awaited: Awaited, value: &dyn Any, forgotten: fn(&str) -> bool) {
    struct Out(Option<(Awaited, Vec<Handler>)>, fn(&str) -> bool);
    impl Drop for Out {
        fn drop(&mut self) {
            if let Some((awaited, mut handlers)) = self.0.take().filter(|(awaited, _)| !self.1(&awaited.0)) {
                HANDLERS.with_borrow_mut(|all| {
                    handlers.extend(all.remove(&awaited).unwrap_or_default());
                    all.insert(awaited, handlers);
                });
            }
        }
    }
    let found = HANDLERS.with_borrow_mut(|all| all.remove(&awaited));
    let mut out = Out(found.map(|handlers| (awaited, handlers)), forgotten);
    for handler in out.0.iter_mut().flat_map(|(_, handlers)| handlers) {
        handler(value);
    }
}

/// All of them, from a cell thread that is left behind.
pub(super) fn hand_over() -> Handlers {
    HANDLERS.with(|all| all.try_borrow_mut().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default())
}

/// Those of another cell thread are this one's now.
pub(super) fn take_over(handlers: Handlers) {
    HANDLERS.with_borrow_mut(|all| *all = handlers);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    #[test]
    fn one_that_fails_goes_on_waiting_and_one_that_is_forgotten_does_not() {
        let awaited = || (Arc::from("w"), None);
        let calls = Rc::new(RefCell::new(Vec::new()));
        let seen = calls.clone();
        add(awaited(), move |value| {
            let value = *value.downcast_ref::<i32>().expect("a number");
            seen.borrow_mut().push(value);
            // One that is added while it is called waits for the next time.
            add((Arc::from("w"), None), |_| {});
            assert_ne!(value, 2);
        });
        let called = |value: i32, forgotten: fn(&str) -> bool| {
            catch_unwind(AssertUnwindSafe(|| call(awaited(), &value, forgotten))).is_ok()
        };
        assert_eq!([1, 2, 3].map(|n| called(n, |_| false)), [true, false, true]);
        assert!(called(4, |id| id == "w") && called(5, |_| false));
        assert_eq!(*calls.borrow(), [1, 2, 3, 4]);
    }
}
