//! The variables that live across cells. They belong to the cell thread, so that values need not be `Send`.
use super::held::{Holds, Lent, Loaned, Look};
use super::show::without_groups;
use crate::Tensor;
use std::any::{Any, TypeId, type_name};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::pin::Pin;
use xlazy_core::ir::{Payload, graph};
use xlazy_core::sys::Away;
use xlazy_mime::Var;

/// Types whose values are cheap to duplicate: a cell works on a copy and the store keeps its own, so that moving one in
/// a cell does not lose it.
pub trait Handle: Clone + 'static {
    /// A few words for listings of variables.
    fn summary(&self) -> String {
        String::new()
    }

    #[doc(hidden)]
    fn load(name: &str, adopt: bool) -> Self {
        copy(name, adopt)
    }

    #[doc(hidden)]
    fn keep(self, name: &str) {
        let summary = self.summary();
        put_handle(name, Box::new(self), type_name::<Self>(), summary);
    }

    #[doc(hidden)]
    fn hold<'f>(self, holds: Holds<'f>, number: usize, name: &'static str) -> &'f mut Self {
        holds.handle(number, name, self, keep_handle::<Self>)
    }
}

fn keep_handle<T: Handle>(name: &str, value: Box<dyn Any>) {
    xlazy_core::sys::unbox::<T>(value).keep(name);
}

/// In an `impl Handle`: its code is compiled here, once, rather than in every cell that mentions such a variable.
macro_rules! compiled_once {
    () => {
        #[inline(never)]
        fn load(name: &str, adopt: bool) -> Self {
            $crate::cell::store::copy(name, adopt)
        }
        #[inline(never)]
        fn keep(self, name: &str) {
            let summary = $crate::cell::Handle::summary(&self);
            let type_name = std::any::type_name::<Self>();
            $crate::cell::store::put_handle(name, Box::new(self), type_name, summary);
        }
        #[inline(never)]
        fn hold<'f>(self, holds: $crate::cell::rt::Holds<'f>, number: usize, name: &'static str) -> &'f mut Self {
            let keep = $crate::cell::store::keep_handle::<Self>;
            holds.handle(number, name, self, keep)
        }
    };
}
macro_rules! handles {
    ($($t:ty)*) => {$(
        impl Handle for $t {
            fn summary(&self) -> String {
                short(self)
            }
            compiled_once!();
        }
    )*};
}
handles!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 bool char String &'static str);

/// What a diverging value is "of", `let x = loop {}`: rustc decides so only when it has looked for a `Handle`. It has no other name yet.
type Never = <fn() -> ! as Gives>::Value;
trait Gives {
    type Value;
}
impl<T> Gives for fn() -> T {
    type Value = T;
}
impl Handle for Never {}

impl Handle for Tensor {
    /// Type and state; nothing is computed for a listing.
    fn summary(&self) -> String {
        let g = graph();
        let n = g.node(self.id());
        let state = match n.payload {
            Payload::Pending => "pending",
            _ => "on device",
        };
        format!("{}, {state}", n.described())
    }
    compiled_once!();
}

fn short(value: &dyn std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// The variables by name, the number of the cell that runs, and who waits for what.
pub(super) type Store = (BTreeMap<String, Slot>, u64, super::handlers::Handlers);

#[derive(Clone, Copy)]
enum Kind {
    Value,
    /// A cell has a copy.
    Handle,
    /// The value is a [`Lent`] of that type.
    Lent(Option<Look>),
    /// It is an [`Away`] of that type.
    Away(Option<Look>),
}

impl Kind {
    /// The value as the notebook knows it; none while something may be changing it.
    fn seen(self, stored: &dyn Any) -> Option<&dyn Any> {
        match self {
            Kind::Value | Kind::Handle => Some(stored),
            Kind::Lent(look) | Kind::Away(look) => look?(stored),
        }
    }
}

pub(super) struct Slot {
    /// None while a cell has it.
    value: Option<Box<dyn Any>>,
    type_name: &'static str,
    kind: Kind,
    summary: String,
    cell: u64,
}

thread_local! {
    static STORE: RefCell<BTreeMap<String, Slot>> = const { RefCell::new(BTreeMap::new()) };
    static CELL: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    /// What the cell has moved away besides what it took, with the names of the types.
    static LOST: RefCell<BTreeMap<String, &'static str>> = const { RefCell::new(BTreeMap::new()) };
}

/// A copy of a variable, if the store has one of that name and type. Answers only on the cell thread.
pub fn peek<T: Handle>(name: &str) -> Option<T> {
    STORE.with_borrow(|s| s.get(name)?.value.as_ref()?.downcast_ref::<T>().cloned())
}

pub(super) fn set_cell(cell: u64) {
    CELL.set(cell);
}

/// The cell that stored a variable last; 0 for none.
pub(super) fn cell_of(name: &str) -> u64 {
    STORE.with_borrow(|s| s.get(name).map_or(0, |s| s.cell))
}

/// Stores a value that a cell will take.
#[inline(never)]
pub(super) fn put(name: &str, value: Box<dyn Any>, type_name: &'static str) {
    insert(name, value, type_name, Kind::Value, String::new());
}

/// Stores an iterator: one whose type has no name, since there are closures or functions in it, as a box that has one.
pub(super) fn put_iterator<T: Iterator + 'static>(name: &str, value: T) {
    if !has_functions(type_name::<T>()) {
        return put(name, Box::new(value), type_name::<T>());
    }
    let boxed: Box<dyn Iterator<Item = T::Item>> = Box::new(value);
    // What was seen of it and not taken is the first that the box gives.
    if type_name::<T>().starts_with("core::iter::adapters::peekable::Peekable<") {
        return put(name, Box::new(boxed.peekable()), type_name::<Peekable<Box<dyn Iterator<Item = T::Item>>>>());
    }
    put(name, Box::new(boxed), type_name::<Box<dyn Iterator<Item = T::Item>>>());
}

/// As [`put_iterator`], of one that was held.
pub(super) fn keep_iterator<T: Iterator + 'static>(name: &str, value: Box<dyn Any>) {
    put_iterator(name, xlazy_core::sys::unbox::<T>(value));
}

/// The same of a future, whose type has no name where a function or a block is `async`.
pub(super) fn put_future<T: Future + 'static>(name: &str, value: T) {
    if !has_functions(type_name::<T>()) {
        return put(name, Box::new(value), type_name::<T>());
    }
    let boxed: Pin<Box<dyn Future<Output = T::Output>>> = Box::pin(value);
    put(name, Box::new(boxed), type_name::<Pin<Box<dyn Future<Output = T::Output>>>>());
}

/// As [`put_future`], of one that was held.
pub(super) fn keep_future<T: Future + 'static>(name: &str, value: Box<dyn Any>) {
    put_future(name, xlazy_core::sys::unbox::<T>(value));
}

/// Whether closures or functions are part of a type, as `type_name` has it: `Map<IntoIter<i32>, a::b::{{closure}}>`, or `a::b` alone.
#[inline(never)]
fn has_functions(type_name: &str) -> bool {
    let mut paths = type_name.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let function = |path: &str| path.rsplit_once("::").is_some_and(|(_, last)| last.starts_with(char::is_lowercase));
    type_name.contains("{{") || paths.any(function)
}

/// Stores a value that cells load a reference of.
#[inline(never)]
pub(super) fn put_lent(name: &str, Loaned { stored, type_name, look }: Loaned) {
    insert(name, stored, type_name, Kind::Lent(look), String::new());
}

/// Stores what is lent until a cell mentions it.
#[inline(never)]
pub(super) fn put_away(name: &str, Loaned { stored, type_name, look }: Loaned) {
    insert(name, stored, type_name, Kind::Away(look), "lent".to_owned());
}

/// Forgets what borrows a value until it is mentioned, and has the value back.
pub(super) fn reclaim<T: 'static>(name: &str, views: &str) {
    forget(views);
    let back = STORE.with_borrow_mut(|s| {
        let Some(slot) = s.get_mut(name).filter(|slot| matches!(slot.kind, Kind::Away(_))) else { return true };
        match slot.value.take().map(Box::<dyn Any>::downcast::<Away<T>>) {
            Some(Ok(away)) => {
                slot.value = Some(Box::new(away.back()));
                slot.kind = Kind::Value;
                slot.summary.clear();
                true
            }
            other => {
                slot.value = other.and_then(Result::err);
                false
            }
        }
    });
    if !back {
        changed(name, type_name::<T>());
    }
}

/// A value that is lent to what looks at it, for a cell that does so, too, and lasts for `'f`.
pub(super) fn lent_for_now<'f, T: 'static>(name: &str) -> &'f T {
    let there = || STORE.with_borrow(|s| Some(s.get(name)?.value.as_ref()?.downcast_ref::<Away<T>>()?.look()));
    there().unwrap_or_else(|| changed(name, type_name::<T>()))
}

/// A value that was lent for good.
pub(super) fn lent<T: 'static>(name: &str) -> &'static T {
    let there = || STORE.with_borrow(|s| Some(s.get(name)?.value.as_ref()?.downcast_ref::<Lent<T>>()?.0));
    there().unwrap_or_else(|| changed(name, type_name::<T>()))
}

/// Stores a value that a cell will copy.
#[inline(never)]
pub fn put_handle(name: &str, value: Box<dyn Any>, type_name: &'static str, summary: String) {
    insert(name, value, type_name, Kind::Handle, summary);
}

fn insert(name: &str, value: Box<dyn Any>, type_name: &'static str, kind: Kind, summary: String) {
    // A hidden cell, which has no number, makes nothing anew.
    let cell = match CELL.get() {
        0 => cell_of(name),
        cell => cell,
    };
    let slot = Slot { value: Some(value), type_name, kind, summary, cell };
    let old = STORE.with_borrow_mut(|s| s.insert(name.to_owned(), slot));
    // Its drop is user code, which may ask the store.
    drop(old);
}

/// What tells whether a value could be of a type that was compiled a second time.
type Fits = fn(&dyn Any) -> bool;

/// Takes a value of that type; with `adopt`, also one of another type that was compiled from the same definition.
#[inline(never)]
pub(super) fn take_as(name: &str, id: TypeId, now: &'static str, adopt: Option<Fits>) -> Box<dyn Any> {
    let value = take(name);
    let same_name = || without_groups(type_name_of(name)) == without_groups(now);
    let fits = (*value).type_id() == id || adopt.is_some_and(|fits| fits(&*value) && same_name());
    if fits {
        return value;
    }
    put_back(name, value);
    changed(name, now)
}

#[inline(never)]
fn take(name: &str) -> Box<dyn Any> {
    STORE.with_borrow_mut(|s| s.get_mut(name).and_then(|s| s.value.take())).unwrap_or_else(|| gone(name))
}

/// Puts a value back that `take` gave out.
#[inline(never)]
fn put_back(name: &str, value: Box<dyn Any>) {
    STORE.with_borrow_mut(|s| {
        if let Some(slot) = s.get_mut(name) {
            slot.value = Some(value);
        }
    });
}

pub(crate) fn copy<T: Clone + 'static>(name: &str, adopt: bool) -> T {
    // The value is out of the store while user code (`clone`) looks at it, which may itself ask the store.
    let value = take_as(name, TypeId::of::<T>(), type_name::<T>(), adopt.then_some(xlazy_core::sys::fits::<T>));
    let copy = xlazy_core::sys::unboxed_ref::<T>(&*value).clone();
    put_back(name, value);
    copy
}

fn gone(name: &str) -> ! {
    panic!("the variable `{name}` is no longer in the session")
}

fn type_name_of(name: &str) -> &'static str {
    STORE.with_borrow(|s| s.get(name).map(|s| s.type_name)).unwrap_or("?")
}

fn changed(name: &str, now: &str) -> ! {
    let was = type_name_of(name);
    let what = match was == now {
        true => format!("is a {was} of another version of its crate than the one that cells name: store what it holds"),
        false if was.replace("&'_ ", "&") == now.replace("&'_ ", "&") => {
            let ty = now.replace("&'_ ", "&");
            format!(
                "was kept as a {was} of one lifetime alone, which no cell can write: say in its `let` that it takes any, `let {name}: {ty} = …`"
            )
        }
        false => format!("has type {was}, not {now}"),
    };
    // The place of a panic would be here, which says nothing to the user.
    std::panic::resume_unwind(Box::new(format!("the variable `{name}` {what}")))
}

/// The names of what the cell took and has not given back.
pub(super) fn out() -> Vec<String> {
    STORE.with_borrow(|s| s.iter().filter(|(_, s)| s.value.is_none()).map(|(n, _)| n.clone()).collect())
}

/// Forgets what the cell took and did not give back; the names of all that it moved away and that is not there, and of their types.
pub(super) fn lost() -> Vec<(String, String)> {
    let taken = |name: String| {
        let slot = STORE.with_borrow_mut(|s| s.remove(&name));
        (name, slot.map_or("", |slot| slot.type_name))
    };
    let names: Vec<(String, &str)> = out().into_iter().map(taken).collect();
    let there = |(name, _): &(String, &str)| STORE.with_borrow(|s| s.contains_key(name));
    let lost = LOST.take().into_iter().chain(names).filter(|lost| !there(lost));
    lost.map(|(name, type_name)| (name, type_name.to_owned())).collect()
}

/// Forgets a variable that the cell has moved away.
pub(super) fn lose(name: &str, type_name: &'static str) {
    forget(name);
    LOST.with_borrow_mut(|lost| lost.insert(name.to_owned(), type_name));
}

/// All variables, from a cell thread that is left behind; `None` while they are in use.
pub(super) fn hand_over() -> Option<Store> {
    STORE.with(|s| Some((std::mem::take(&mut *s.try_borrow_mut().ok()?), CELL.get(), super::handlers::hand_over())))
}

/// The variables of another cell thread are this one's now.
pub(super) fn take_over((variables, cell, handlers): Store) {
    CELL.set(cell);
    super::handlers::take_over(handlers);
    STORE.with_borrow_mut(|s| *s = variables);
}

/// Variables that are tensors, by the nodes they refer to. Answers only on the cell thread.
pub(crate) fn tensors() -> Vec<(String, u32)> {
    STORE.with_borrow(|s| {
        let tensor = |(name, slot): (&String, &Slot)| {
            let t = slot.value.as_ref()?.downcast_ref::<crate::Tensor>()?;
            Some((name.clone(), t.id()))
        };
        s.iter().filter_map(tensor).collect()
    })
}

/// The variables that are no handles and can be looked at, with their types.
pub(super) fn each_type(mut f: impl FnMut(&str, TypeId, &'static str)) {
    STORE.with_borrow(|s| {
        for (name, slot) in s.iter().filter(|(_, slot)| !matches!(slot.kind, Kind::Handle)) {
            if let Some(value) = slot.value.as_deref().and_then(|stored| slot.kind.seen(stored)) {
                f(name, value.type_id(), slot.type_name);
            }
        }
    })
}

/// The variables whose types `of` knows, with what it knows.
pub(super) fn names_of_types<R>(of: impl Fn(TypeId) -> Option<R>) -> Vec<(String, R)> {
    let mut out = Vec::new();
    each_type(|name, id, _| out.extend(of(id).map(|r| (name.to_owned(), r))));
    out
}

/// Looks at a variable's value, which is out of the store meanwhile.
pub(super) fn with_value<R>(name: &str, f: impl FnOnce(&dyn Any) -> R) -> Option<R> {
    let (value, kind) = STORE.with_borrow_mut(|s| {
        let slot = s.get_mut(name)?;
        Some((slot.value.take()?, slot.kind))
    })?;
    let found = kind.seen(&*value).map(f);
    put_back(name, value);
    found
}

pub(super) fn list() -> Vec<Var> {
    STORE.with_borrow(|s| {
        let var = |(name, s): (&String, &Slot)| Var {
            name: name.clone(),
            type_name: s.type_name.to_owned(),
            summary: s.summary.clone(),
            cell: s.cell,
            handle: matches!(s.kind, Kind::Handle),
            lent: matches!(s.kind, Kind::Lent(_)),
            away: matches!(s.kind, Kind::Away(_)),
        };
        s.iter().map(var).collect()
    })
}

/// Drops variables whose type no longer exists.
#[doc(hidden)]
pub fn forget(names: &str) {
    for name in names.split_whitespace() {
        drop(STORE.with_borrow_mut(|s| s.remove(name)));
    }
}
