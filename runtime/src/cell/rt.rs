//! What generated code calls. Not for people: it changes with the generator in `kernel/src/eval`.
#![doc(hidden)]
use super::store;
use std::any::{Any, type_name};
use std::cell::Cell;
use std::marker::PhantomData;

pub use super::outcome::{Stop, StopDebug, catch};
pub use super::show::{NoEvcxr, Show, ShowDebug, ShowOpaque, ShowPlain, ShowRich, evcxr_is_absent, result};
pub use super::streams::print_text;
pub use crate::sys::check_interrupt as check;

/// `println!`: the text and its newline in one piece, so that lines of several threads do not mix.
pub fn print_line(stderr: bool, args: std::fmt::Arguments) {
    print_text(stderr, format_args!("{args}\n"));
}

/// Fetches a variable: handles and `Copy` values are copied, everything else is moved. By autoref, called as
/// `(&&&Load::<T>::new("x")).load()`.
pub struct Load<T> {
    name: &'static str,
    /// The type was compiled a second time from the same definition.
    adopt: bool,
    of: PhantomData<fn() -> T>,
}

impl<T> Load<T> {
    pub fn new(name: &'static str) -> Load<T> {
        Load { name, adopt: false, of: PhantomData }
    }

    pub fn adopt(name: &'static str) -> Load<T> {
        Load { name, adopt: true, of: PhantomData }
    }
}

pub trait LoadHandle<T> {
    fn load(&self) -> T;
}
impl<T: store::Handle> LoadHandle<T> for &&Load<T> {
    fn load(&self) -> T {
        load_copy(self.name, self.adopt)
    }
}
pub trait LoadCopy<T> {
    fn load(&self) -> T;
}
impl<T: Copy + 'static> LoadCopy<T> for &Load<T> {
    fn load(&self) -> T {
        load_copy(self.name, self.adopt)
    }
}
pub trait LoadMove<T> {
    fn load(&self) -> T;
}
impl<T: 'static> LoadMove<T> for Load<T> {
    fn load(&self) -> T {
        let value = store::take(self.name);
        let value = match value.downcast::<T>() {
            Ok(value) => return *value,
            Err(value) if self.adopt => match crate::sys::adopt::<T>(value) {
                Ok(value) => return value,
                Err(value) => value,
            },
            Err(value) => value,
        };
        store::untake(self.name, value);
        store::changed(self.name, type_name::<T>())
    }
}

fn load_copy<T: Clone + 'static>(name: &str, adopt: bool) -> T {
    store::copy(name, |value: &dyn Any| {
        let found = value.downcast_ref::<T>();
        let found = if adopt { found.or_else(|| crate::sys::adopt_ref(value)) } else { found };
        found.cloned()
    })
}

/// Stores a variable, as `(&&Keep::new("x", x)).keep()`.
pub struct Keep<T> {
    name: &'static str,
    value: Cell<Option<T>>,
}

impl<T> Keep<T> {
    pub fn new(name: &'static str, value: T) -> Keep<T> {
        Keep { name, value: Cell::new(Some(value)) }
    }
}

pub trait KeepHandle {
    fn keep(&self);
}
impl<T: store::Handle> KeepHandle for &Keep<T> {
    fn keep(&self) {
        if let Some(value) = self.value.take() {
            let summary = value.summary();
            store::put(self.name, Box::new(value), type_name::<T>(), true, summary);
        }
    }
}
pub trait KeepMove {
    fn keep(&self);
}
impl<T: 'static> KeepMove for Keep<T> {
    fn keep(&self) {
        if let Some(value) = self.value.take() {
            store::put(self.name, Box::new(value), type_name::<T>(), false, String::new());
        }
    }
}
