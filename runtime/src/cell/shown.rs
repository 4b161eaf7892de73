//! What a function may give that is to be shown, such as that of an `interact`: what a cell shows as its last expression. Cells choose by
//! autoref, which a function with type parameters cannot.
use super::show::debug_bundle;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::hash::BuildHasher;
use xlazy_mime::{Bundle, Rich};

/// A value that can be shown: what is [`Rich`], a text, a number, and lists, maps and tuples of what has a `Debug`. `How` says which of
/// these it is, so that there is one answer for each type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be shown here",
    note = "give a number, a text as of `format!(\"{{value:?}}\")`, a tensor, a plot, or implement `Rich` for it"
)]
pub trait Shown<How> {
    #[doc(hidden)]
    fn shown(&self) -> Bundle;
}

/// How something is [`Shown`].
#[doc(hidden)]
pub struct ByItself;
#[doc(hidden)]
pub struct ByDebug;
#[doc(hidden)]
pub struct AsText;

impl<T: Rich> Shown<ByItself> for T {
    fn shown(&self) -> Bundle {
        self.rich()
    }
}

macro_rules! by_debug {
    ($([$($of:tt)*] $t:ty,)*) => {$(
        impl<$($of)*> Shown<ByDebug> for $t {
            fn shown(&self) -> Bundle {
                debug_bundle(self, std::any::type_name::<Self>())
            }
        }
    )*};
}
by_debug! {
    [] i8, [] i16, [] i32, [] i64, [] i128, [] isize, [] u8, [] u16, [] u32, [] u64, [] u128, [] usize,
    [] f32, [] f64, [] bool, [] char, [] std::time::Duration,
    [T: Debug] Option<T>, [T: Debug, E: Debug] Result<T, E>,
    [T: Debug] Vec<T>, [T: Debug] &[T], [T: Debug, const N: usize] [T; N],
    [T: Debug, S: BuildHasher] HashSet<T, S>, [T: Debug] BTreeSet<T>,
    [K: Debug, T: Debug, S: BuildHasher] HashMap<K, T, S>, [K: Debug, T: Debug] BTreeMap<K, T>,
    [A: Debug] (A,), [A: Debug, B: Debug] (A, B), [A: Debug, B: Debug, C: Debug] (A, B, C),
    [A: Debug, B: Debug, C: Debug, D: Debug] (A, B, C, D),
}

macro_rules! as_text {
    ($($t:ty)*) => {$(
        impl Shown<AsText> for $t {
            fn shown(&self) -> Bundle {
                Bundle::text(self.to_string())
            }
        }
    )*};
}
as_text!(String & str);

/// What only does something shows nothing.
impl Shown<AsText> for () {
    fn shown(&self) -> Bundle {
        Bundle::text("")
    }
}
