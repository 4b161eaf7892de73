//! What generated code calls. Not for people: it changes with the generator in `kernel/src/eval`.
//!
//! Every function that is generic or inlined here is compiled again in every cell, while somebody waits. So what can be
//! done without the type is done in functions that are neither.
#![doc(hidden)]
use super::store;
use crate::tensor::Tensor;
use std::any::{TypeId, type_name};
use std::marker::PhantomData;

pub use super::at::at;
pub use super::frame::Frame;
pub use super::held::{Holds, Hole, Until, View};
pub use super::outcome::{Stop, StopDebug, catch, catch_as, catch_debug};
pub use super::show::{
    NoEvcxr, Show, ShowDebug, ShowDisplay, ShowFuture, ShowKnown, ShowLong, ShowModule, ShowOpaque, ShowPlain,
    ShowRich, To, evcxr_is_absent,
};
pub use super::store::{Handle, forget};
pub use super::streams::{format, print_line, print_text};
pub use super::wait::block_on;
pub use xlazy_core::sys::{LookedAt, pointer};
pub use xlazy_core::sys::{check_interrupt as check, come_to_statement as on, interrupt_at_look, looks_left};
pub use xlazy_core::thread::caller_line as line;

/// How long something is to be that a later cell makes, when it knows of what: by its place in the cell.
pub fn length(at: usize, length: usize) {
    super::event("length", &format!("[{at},{length}]"));
}

/// A type, to choose by autoref how its values are fetched and stored: `(&&&Of::<T>::TYPE).load("x", false)` and
/// `(&&&Of::value(&x)).keep("x", x)`. Handles and `Copy` values are copied into a cell, everything else is moved.
pub struct Of<T>(PhantomData<fn() -> T>);

impl<T> Of<T> {
    pub const TYPE: Of<T> = Of(PhantomData);

    pub fn value(_: &T) -> Of<T> {
        Of(PhantomData)
    }
}

pub trait LoadHandle<T> {
    fn load(&self, name: &str, adopt: bool) -> T;
}
impl<T: store::Handle> LoadHandle<T> for &&Of<T> {
    fn load(&self, name: &str, adopt: bool) -> T {
        T::load(name, adopt)
    }
}
pub trait LoadCopy<T> {
    fn load(&self, name: &str, adopt: bool) -> T;
}
impl<T: Copy + 'static> LoadCopy<T> for &Of<T> {
    fn load(&self, name: &str, adopt: bool) -> T {
        store::copy::<T>(name, adopt)
    }
}
pub trait LoadMove<T> {
    /// With `adopt`, the type was compiled a second time from the same definition since the value was stored.
    fn load(&self, name: &str, adopt: bool) -> T;
}
impl<T: 'static> LoadMove<T> for Of<T> {
    fn load(&self, name: &str, adopt: bool) -> T {
        xlazy_core::sys::unbox(store::take_as(
            name,
            TypeId::of::<T>(),
            type_name::<T>(),
            adopt.then_some(xlazy_core::sys::fits::<T>),
        ))
    }
}

pub trait KeepHandle<T> {
    fn keep(&self, name: &str, value: T);
}
impl<T: store::Handle> KeepHandle<T> for &&Of<T> {
    fn keep(&self, name: &str, value: T) {
        value.keep(name);
    }
}
pub trait KeepIterator<T> {
    fn keep(&self, name: &str, value: T);
}
impl<T: Iterator + 'static> KeepIterator<T> for &Of<T> {
    fn keep(&self, name: &str, value: T) {
        store::put_iterator(name, value);
    }
}
pub trait KeepFuture<T> {
    fn keep(&self, name: &str, value: T);
}
impl<T: Future + 'static> KeepFuture<T> for &Of<T> {
    fn keep(&self, name: &str, value: T) {
        store::put_future(name, value);
    }
}
pub trait KeepMove<T> {
    fn keep(&self, name: &str, value: T);
}
impl<T: 'static> KeepMove<T> for Of<T> {
    fn keep(&self, name: &str, value: T) {
        store::put(name, Box::new(value), type_name::<T>());
    }
}

/// A value without a name that a variable borrows which lives on.
pub fn leaked<T: 'static>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}

pub trait HoldHandle<T> {
    fn hold<'f>(&self, holds: Holds<'f>, number: usize, name: &'static str, value: T) -> &'f mut T;
}
impl<T: store::Handle> HoldHandle<T> for &&Of<T> {
    fn hold<'f>(&self, holds: Holds<'f>, number: usize, name: &'static str, value: T) -> &'f mut T {
        value.hold(holds, number, name)
    }
}
pub trait HoldIterator<T> {
    fn hold<'f>(&self, holds: Holds<'f>, number: usize, name: &'static str, value: T) -> &'f mut T;
}
impl<T: Iterator + 'static> HoldIterator<T> for &Of<T> {
    fn hold<'f>(&self, holds: Holds<'f>, number: usize, name: &'static str, value: T) -> &'f mut T {
        holds.handle(number, name, value, store::keep_iterator::<T>)
    }
}
pub trait HoldFuture<T> {
    fn hold<'f>(&self, holds: Holds<'f>, number: usize, name: &'static str, value: T) -> &'f mut T;
}
impl<T: Future + 'static> HoldFuture<T> for &Of<T> {
    fn hold<'f>(&self, holds: Holds<'f>, number: usize, name: &'static str, value: T) -> &'f mut T {
        holds.handle(number, name, value, store::keep_future::<T>)
    }
}
pub trait HoldValue<T> {
    fn hold<'f>(&self, holds: Holds<'f>, number: usize, name: &'static str, value: T) -> &'f mut T;
}
impl<T: 'static> HoldValue<T> for Of<T> {
    fn hold<'f>(&self, holds: Holds<'f>, number: usize, name: &'static str, value: T) -> &'f mut T {
        holds.value(number, name, value)
    }
}

/// Lives as long as the cell, and so does what is borrowed of a variable that cannot be lent for longer: what rustc says then names it.
pub struct Single;
/// The first for what has no `Clone`, the other one for a tensor.
pub type Singles<'s, 't> = (&'s Single, &'t Single);

/// Lends a variable for good to what borrows it, chosen by autoref. A cell that changes it later takes a copy, so there must
/// be one to be had; and a tensor keeps its buffers no longer than it is used.
pub trait LendTensor {
    fn lend<'f: 's, 's>(&self, _: Holds<'f>, of: Singles<'_, 's>, number: usize, held: &'f mut Tensor) -> &'s Tensor;
    fn lend_for_a_time<'f>(&self, _: Holds<'f>, _: usize, held: &'f mut Tensor, _: bool) -> &'f mut Tensor {
        held
    }
}
impl LendTensor for &&Of<crate::Tensor> {
    fn lend<'f: 's, 's>(&self, _: Holds<'f>, _: Singles<'_, 's>, _: usize, held: &'f mut Tensor) -> &'s Tensor {
        held
    }
}
pub trait LendValue<T: 'static> {
    fn lend<'f>(&self, holds: Holds<'f>, _: Singles<'_, '_>, number: usize, held: &'f mut T) -> &'static T;
}
impl<T: Clone + 'static> LendValue<T> for &Of<T> {
    fn lend<'f>(&self, holds: Holds<'f>, _: Singles<'_, '_>, number: usize, held: &'f mut T) -> &'static T {
        holds.lend(number, held)
    }
}
pub trait LendSingle<T: 'static> {
    fn lend<'f: 's, 's>(&self, _: Holds<'f>, of: Singles<'s, '_>, number: usize, held: &'f mut T) -> &'s T;
    /// Until it is mentioned again; to what changes it, or to what only looks.
    fn lend_for_a_time<'f>(&self, holds: Holds<'f>, number: usize, held: &'f mut T, changes: bool) -> &'static mut T {
        holds.lend_mut(number, held, changes)
    }
}
impl<T: 'static> LendSingle<T> for Of<T> {
    fn lend<'f: 's, 's>(&self, _: Holds<'f>, _: Singles<'s, '_>, _: usize, held: &'f mut T) -> &'s T {
        held
    }
}

/// A variable that an earlier cell has lent.
pub fn lent<T: 'static>(name: &str) -> &'static T {
    store::lent(name)
}

/// A variable that is lent to what looks at it, for a cell that does so, too.
pub fn look<'f, T: 'static>(_: Holds<'f>, name: &str) -> &'f T {
    store::lent_for_now(name)
}

/// As [`look`], for one more variable that looks at it.
pub fn looked_at<T: 'static>(name: &str) -> &'static T {
    store::lent_for_now(name)
}

/// Has a variable back that was lent for a time: what borrows it is forgotten.
pub fn reclaim<T: 'static>(name: &str, views: &str) {
    store::reclaim::<T>(name, views);
}

/// How long a variable is lent.
#[derive(Clone, Copy)]
pub struct Loan<'a>(std::marker::PhantomData<&'a mut ()>);

pub fn loan<'a, T: 'a>(_: T) -> Loan<'a> {
    Loan(std::marker::PhantomData)
}

/// What borrows it has it for as long. What rustc says of that is all that is wanted.
pub fn tied<'a, V: View>(_: Loan<'a>, _: V) -> V::For<'a> {
    unreachable!("a cell that is compiled and not run")
}

/// What borrows another variable ends here, where that is mentioned again.
pub fn ended(_: Until) {}

/// A variable's value in what a cell shows, chosen by autoref before [`GiveCopy`] and its like: another name of the same tensor.
pub trait GiveHandle {
    fn give<'f>(&self, holds: Holds<'f>, number: usize, held: &'f mut Tensor) -> Tensor;
}
impl GiveHandle for &&&Of<Tensor> {
    fn give<'f>(&self, _: Holds<'f>, _: usize, held: &'f mut Tensor) -> Tensor {
        held.clone()
    }
}

/// A variable's value where it may move, chosen by autoref: what is `Copy` stays.
pub trait GiveCopy<T: 'static> {
    fn give<'f>(&self, holds: Holds<'f>, number: usize, held: &'f mut T) -> T;
    fn give_for<'f>(&self, holds: Holds<'f>, number: usize, held: &'f mut T, hole: &mut Hole<'f, T>) -> T;
}
impl<T: Copy + 'static> GiveCopy<T> for &Of<T> {
    fn give<'f>(&self, _: Holds<'f>, _: usize, held: &'f mut T) -> T {
        *held
    }
    fn give_for<'f>(&self, _: Holds<'f>, _: usize, held: &'f mut T, hole: &mut Hole<'f, T>) -> T {
        let value = *held;
        hole.leave(held);
        value
    }
}
/// What borrows to change is borrowed again, as by any function's argument.
pub trait GiveLoan<T: ?Sized + 'static> {
    fn give<'f>(&self, _: Holds<'f>, _: usize, held: &'f mut &'static mut T) -> &'f mut T {
        held
    }
    fn give_for<'f>(
        &self,
        holds: Holds<'f>,
        number: usize,
        held: &'f mut &'static mut T,
        _: &mut Hole<'f, &'static mut T>,
    ) -> &'static mut T {
        holds.take(number, held)
    }
}
impl<T: ?Sized + 'static> GiveLoan<T> for &Of<&'static mut T> {}
pub trait GiveMove<T: 'static> {
    fn give<'f>(&self, holds: Holds<'f>, number: usize, held: &'f mut T) -> T;
    fn give_for<'f>(&self, holds: Holds<'f>, number: usize, held: &'f mut T, hole: &mut Hole<'f, T>) -> T;
}
impl<T: 'static> GiveMove<T> for Of<T> {
    fn give<'f>(&self, holds: Holds<'f>, number: usize, held: &'f mut T) -> T {
        holds.take(number, held)
    }
    fn give_for<'f>(&self, holds: Holds<'f>, number: usize, held: &'f mut T, _: &mut Hole<'f, T>) -> T {
        holds.take(number, held)
    }
}

/// The type `!`, by another name: stable Rust knows it as the result of a function only.
pub type Never = <fn() -> ! as Gives>::Result;
pub trait Gives {
    type Result;
}
impl<R> Gives for fn() -> R {
    type Result = R;
}

/// What is lent for good, with numbers of other types, which a later cell has found them to be of.
#[track_caller]
pub fn other_numbers<A, B>(value: &A, others: impl FnOnce(&A) -> Result<B, String>) -> B {
    others(value).unwrap_or_else(|why| panic!("{why}"))
}

/// The same of what was loaded: where a number does not fit, it stays what it was.
#[track_caller]
pub fn loaded_numbers<A: 'static, B>(name: &str, value: A, others: impl FnOnce(&A) -> Result<B, String>) -> B {
    match others(&value) {
        Ok(number) => number,
        Err(why) => {
            store::put(name, Box::new(value), type_name::<A>());
            panic!("{why}")
        }
    }
}

/// Of a type that is known but for its numbers.
pub fn as_like<T>(_: PhantomData<T>, value: T) -> T {
    value
}

/// A number as another type of number.
pub trait Number<B> {
    fn number(&self) -> Result<B, String>;
}
macro_rules! numbers {
    ($($to:ty)*) => { $(
        impl Number<$to> for i32 {
            fn number(&self) -> Result<$to, String> {
                let no = |_| format!("{self} does not fit into `{}`, which this cell takes it for", stringify!($to));
                <$to>::try_from(*self).map_err(no)
            }
        }
    )* };
}
numbers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);
impl Number<f32> for f64 {
    fn number(&self) -> Result<f32, String> {
        Ok(*self as f32)
    }
}
impl Number<f64> for f64 {
    fn number(&self) -> Result<f64, String> {
        Ok(*self)
    }
}
