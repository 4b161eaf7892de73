//! Displays: how a value becomes a MIME bundle, and how it gets to the front end.
use super::link;
use crate::display;
use crate::nn::Module;
use crate::tensor::{Tensor, showing};
use std::fmt::{Arguments, Debug, Display, Write};
use std::panic::Location;
use xlazy_mime::gather::gathering;
use xlazy_mime::{Bundle, Rich, Tell};

/// Shows a value below the cell. In cells this and the two below take what has no more than `Debug`, too, and what has not even
/// that: the calls stand for [`display!`](crate::display!) and its like.
///
/// ```
/// use xlazy::prelude::*;
/// display(&line_plot("losses", "step", "loss", &[("train", &[2.0, 1.0])]));
/// xlazy::display!(vec![Some(1), None]);
/// ```
#[track_caller]
pub fn display<T: Rich + ?Sized>(value: &T) {
    To::Display.send(showing(Location::caller(), || value.rich()));
}

/// Shows a value in a place that [`update_display`] can change later.
#[track_caller]
pub fn display_with_id<T: Rich + ?Sized>(value: &T, id: &str) {
    To::Place(id).send(showing(Location::caller(), || value.rich()));
}

/// Replaces what [`display_with_id`] showed under that id.
#[track_caller]
pub fn update_display<T: Rich + ?Sized>(value: &T, id: &str) {
    To::Update(id).send(showing(Location::caller(), || value.rich()));
}

/// Shows any value below the cell: as `Rich` has it, a module as a tree, everything else by `Debug`, with the tensors in it computed
/// by one program, or by the name of its type.
#[macro_export]
macro_rules! display {
    ($value:expr $(,)?) => {
        $crate::show_to!($value, $crate::cell::rt::To::Display)
    };
}

/// [`display!`] in a place that [`update_display!`](crate::update_display!) can change later.
#[macro_export]
macro_rules! display_with_id {
    ($value:expr, $id:expr $(,)?) => {
        $crate::show_to!($value, $crate::cell::rt::To::Place($id))
    };
}

/// Replaces what [`display_with_id!`](crate::display_with_id!) showed under that id.
#[macro_export]
macro_rules! update_display {
    ($value:expr, $id:expr $(,)?) => {
        $crate::show_to!($value, $crate::cell::rt::To::Update($id))
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! show_to {
    ($value:expr, $to:expr) => {
        // A `match` rather than a `let`: what the expression borrows from lives as long as it is shown.
        match &$value {
            value => {
                use $crate::cell::rt::{
                    ShowDebug as _, ShowDisplay as _, ShowFuture as _, ShowKnown as _, ShowLong as _, ShowModule as _,
                    ShowOpaque as _, ShowRich as _,
                };
                (&&&&&&&$crate::cell::rt::Show(value)).show($to)
            }
        }
    };
}

/// Removes what the cell has shown so far; with `wait`, when the next output comes.
pub fn clear_output(wait: bool) {
    link::send_in_order(&Tell::ClearOutput { wait });
}

fn send_display(bundle: Bundle, id: Option<&str>, update: bool) {
    if link::connected() {
        link::send_in_order(&Tell::Display { bundle, id: id.map(str::to_owned), update });
    } else if !update {
        std::println!("{}", bundle.plain());
    }
}

/// Where a value is shown.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum To<'a> {
    /// It is the value of the cell's last expression.
    Result,
    Display,
    Place(&'a str),
    Update(&'a str),
}

impl To<'_> {
    #[inline(never)]
    pub(super) fn send(self, bundle: Bundle) {
        match self {
            // A notebook that was exported as a program has no link.
            To::Result if link::connected() => link::send(&Tell::Result(bundle)),
            To::Result => std::println!("{}", bundle.plain()),
            To::Display => send_display(bundle, None, false),
            To::Place(id) => send_display(bundle, Some(id), false),
            To::Update(id) => send_display(bundle, Some(id), true),
        }
    }
}

/// A value to be shown; the traits below choose how, by autoref: what is compiled here already, else `Rich`, else as a module, else
/// `Debug`, else `Display`, else its type's name. One compile, no second try. Where a type may have an `evcxr_display`, it is asked between
/// `Rich` and `Debug`. What is shown is put down to the line of the cell that shows it.
#[doc(hidden)]
pub struct Show<'a, T: ?Sized>(pub &'a T);

#[doc(hidden)]
pub trait ShowKnown {
    #[track_caller]
    fn show(&self, to: To);
}
macro_rules! known {
    ($($t:ty)*) => {$(
        impl ShowKnown for &&&&&&Show<'_, $t> {
            #[inline(never)]
            fn show(&self, to: To) {
                show_debug(&self.0, std::any::type_name::<$t>(), to);
            }
        }
    )*};
}

/// A `state_dict()` and its like.
impl ShowKnown for &&&&&&Show<'_, Vec<(String, Tensor)>> {
    #[inline(never)]
    #[track_caller]
    fn show(&self, to: To) {
        to.send(showing(Location::caller(), || display::named::bundle(self.0)));
    }
}
known!(() i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 bool char String &str str);

#[doc(hidden)]
pub trait ShowRich {
    #[track_caller]
    fn show(&self, to: To);
    fn is_rich(&self) -> bool {
        true
    }
}
impl<T: Rich + ?Sized> ShowRich for &&&&&Show<'_, T> {
    #[track_caller]
    fn show(&self, to: To) {
        to.send(showing(Location::caller(), || self.0.rich()));
    }
}

#[doc(hidden)]
pub trait ShowModule {
    fn show(&self, to: To);
}
impl<T: Module + ?Sized> ShowModule for &&&&Show<'_, T> {
    fn show(&self, to: To) {
        to.send(self.0.summary());
    }
}

#[doc(hidden)]
pub trait ShowPlain {
    fn is_rich(&self) -> bool {
        false
    }
}
impl<T: ?Sized> ShowPlain for Show<'_, T> {}

#[doc(hidden)]
pub trait ShowDebug {
    #[track_caller]
    fn show(&self, to: To);
}
impl<T: Debug + ?Sized> ShowDebug for &&&Show<'_, T> {
    #[track_caller]
    fn show(&self, to: To) {
        show_debug(&self.0, std::any::type_name::<T>(), to);
    }
}

#[doc(hidden)]
pub trait ShowDisplay {
    fn show(&self, to: To);
}
impl<T: Display + ?Sized> ShowDisplay for &&Show<'_, T> {
    fn show(&self, to: To) {
        show_text(format_args!("{}", self.0), to);
    }
}

/// Tuples that are longer than those that have `Debug`.
#[doc(hidden)]
pub trait ShowLong {
    #[track_caller]
    fn show(&self, to: To);
}
macro_rules! long {
    ([$($of:ident)*]) => {};
    ([$($of:ident)*] $next:ident $($more:ident)*) => {
        impl<$($of: Debug,)* $next: Debug> ShowLong for &&Show<'_, ($($of,)* $next)> {
            #[track_caller]
            #[allow(non_snake_case)]
            fn show(&self, to: To) {
                let ($($of,)* $next) = self.0;
                show_debug(&Long(&[$($of,)* $next]), std::any::type_name::<($($of,)* $next)>(), to);
            }
        }
        long!([$($of)* $next] $($more)*);
    };
}
long!([A B C D E F G H I J K L] M N O P Q R S U V W X Y);

struct Long<'a>(&'a [&'a dyn Debug]);

impl Debug for Long<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let mut tuple = f.debug_tuple("");
        for field in self.0 {
            tuple.field(field);
        }
        tuple.finish()
    }
}

#[doc(hidden)]
pub trait ShowFuture {
    fn show(&self, to: To);
}
impl<T: Future + ?Sized> ShowFuture for &Show<'_, T> {
    fn show(&self, to: To) {
        show_future(std::any::type_name::<T>(), std::any::type_name::<T::Output>(), to);
    }
}

#[doc(hidden)]
pub trait ShowOpaque {
    fn show(&self, to: To);
}
impl<T: ?Sized> ShowOpaque for Show<'_, T> {
    fn show(&self, to: To) {
        show_name(std::any::type_name::<T>(), to);
    }
}

#[inline(never)]
#[track_caller]
fn show_debug(value: &dyn Debug, type_name: &str, to: To) {
    // A cell that ends with `()` has nothing to show.
    if type_name == "()" && matches!(to, To::Result) {
        return;
    }
    to.send(debug_bundle(value, type_name));
}

#[track_caller]
pub(super) fn debug_bundle(value: &dyn Debug, type_name: &str) -> Bundle {
    let bundle = showing(Location::caller(), || {
        let ((text, cut), found) = gathering(|| debug_text(value));
        display::value::bundle(text, cut, found)
    });
    if is_of_the_moment(type_name) { bundle.lasting(type_name) } else { bundle }
}

/// Whether values of this type are others whenever a cell is run: addresses, times, numbers of threads.
fn is_of_the_moment(type_name: &str) -> bool {
    const PARTS: &[&str] = &[
        "*const ",
        "*mut ",
        "fn(",
        "core::ptr::non_null::NonNull<",
        "core::time::Duration",
        "std::time::Instant",
        "std::time::SystemTime",
        "std::thread::id::ThreadId",
        "std::process::Child",
        "std::fs::File",
    ];
    PARTS.iter().any(|part| type_name.contains(part))
}

#[inline(never)]
fn show_text(text: Arguments, to: To) {
    to.send(Bundle::text(limited(text).0));
}

#[inline(never)]
fn show_name(type_name: &str, to: To) {
    let name = named(type_name);
    // Who writes it meant a variable.
    let function = name.starts_with(char::is_lowercase) && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    to.send(Bundle::text(match function && type_name.starts_with("xlazy") {
        true => format!("no variable `{name}` is declared; without one, it is a function of xlazy's prelude"),
        false => format!("<{name}>"),
    }));
}

/// Those of `async` have no name of their own, and look like closures.
#[inline(never)]
fn show_future(type_name: &str, output: &str, to: To) {
    match named(type_name).as_str() {
        "closure" => to.send(Bundle::text(format!("<impl Future<Output = {}>>", named(output)))),
        name => to.send(Bundle::text(format!("<{name}>"))),
    }
}

fn named(type_name: &str) -> String {
    as_written(&without_groups(type_name.trim_start_matches('&')))
}

/// A type's name as a cell would write it: no module of ours or of the standard library's, no cell's name, and a closure is one.
fn as_written(name: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '{' | '}');
    let mut out = String::new();
    let mut rest = name;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (path, behind) = rest.split_at(end);
        let first = path.split("::").next().unwrap_or_default();
        let ours = matches!(first, "xlazy" | "xlazy_core" | "xlazy_mime" | "std" | "alloc" | "core")
            || first.starts_with("cell_");
        out.push_str(match path.rsplit("::").next() {
            Some("{{closure}}") => "closure",
            Some(last) if ours => last,
            _ => path,
        });
        let more = behind.chars().next().map_or(0, char::len_utf8);
        out.push_str(&behind[..more]);
        rest = &behind[more..];
    }
    out
}

/// A type's name without the crates that the kernel compiles definitions into (`g_` and 16 digits).
pub(super) fn without_groups(name: &str) -> String {
    let mut parts = name.split("g_");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        match part[digits.min(16)..].strip_prefix("::") {
            Some(rest) if digits >= 16 => out.push_str(rest),
            _ => out.extend(["g_", part]),
        }
    }
    out
}

/// What `value.evcxr_display()` gives for types that have no such method of their own.
#[doc(hidden)]
pub struct AbsentEvcxrDisplay;

/// Found behind every method of the value itself, be it of a trait: it takes one reference more, and that to be written to.
#[doc(hidden)]
pub trait NoEvcxr {
    fn evcxr_display(&mut self) -> AbsentEvcxrDisplay {
        AbsentEvcxrDisplay
    }
}
impl<T: ?Sized> NoEvcxr for &T {}

#[doc(hidden)]
pub fn evcxr_is_absent<R>(_: &R) -> bool {
    is_absent(std::any::type_name::<R>())
}

#[inline(never)]
fn is_absent(type_name: &str) -> bool {
    type_name == std::any::type_name::<AbsentEvcxrDisplay>()
}

/// A front end chokes on more text than this, and nobody reads it.
const LONGEST: usize = 512 << 10;

/// `{:?}`, cut off where it gets too long, and whether it was: formatting stops there, so that a huge collection costs no memory.
fn debug_text(value: &dyn Debug) -> (String, bool) {
    let (mut out, failed, cut) = limited(format_args!("{value:?}"));
    if failed && !cut {
        out.push_str(" … (its `Debug` fails here)");
    }
    (out, cut)
}

/// The text, whether writing it failed, and whether that is because it got too long.
fn limited(text: Arguments) -> (String, bool, bool) {
    struct Limited(String);
    impl Write for Limited {
        fn write_str(&mut self, s: &str) -> std::fmt::Result {
            // One piece may be the whole of it, as of a string without anything to escape.
            let room = LONGEST - self.0.len();
            self.0.push_str(&s[..s.floor_char_boundary(room)]);
            if s.len() > room { Err(std::fmt::Error) } else { Ok(()) }
        }
    }
    let mut out = Limited(String::new());
    let failed = out.write_fmt(text).is_err();
    let cut = failed && out.0.len() + 4 > LONGEST;
    (out.0, failed, cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Own;
    impl Own {
        fn evcxr_display(&self) {}
    }

    #[test]
    #[allow(clippy::needless_borrow)] // generated code borrows
    fn a_method_of_its_own_hides_the_one_for_all() {
        trait ByTrait {
            fn evcxr_display(&self) {}
        }
        impl ByTrait for u8 {}
        impl<T> ByTrait for Vec<T> {}
        let (own, by_trait, none) = (&Own, &5u8, &5u16);
        assert!(!evcxr_is_absent(&{ own }.evcxr_display()));
        assert!(!evcxr_is_absent(&{ by_trait }.evcxr_display()));
        let vector = &vec![1];
        assert!(!evcxr_is_absent(&{ vector }.evcxr_display()));
        assert!(evcxr_is_absent(&{ none }.evcxr_display()));
    }

    #[test]
    fn groups_are_no_part_of_a_name() {
        assert_eq!(without_groups("(g_0123456789abcdef::P, my_log_abc::Q)"), "(P, my_log_abc::Q)");
    }

    #[test]
    fn a_huge_value_is_cut_off() {
        for (huge, start) in [(&vec![7u8; 10_000_000] as &dyn Debug, "[7, 7, "), (&"ä".repeat(3 << 20), "\"ää")] {
            let (text, cut) = debug_text(huge);
            assert!(text.starts_with(start) && cut);
            assert!((LONGEST - 4..=LONGEST).contains(&text.len()));
        }
    }
}
