//! Displays: how a value becomes a MIME bundle, and how it gets to the front end.
use super::link;
use std::fmt::{Debug, Write};
use xlazy_mime::{Bundle, Rich, Tell};

/// Shows a value below the cell.
pub fn display<T: Rich + ?Sized>(value: &T) {
    send_display(value.rich(), None, false);
}

/// Shows a value in a place that [`update_display`] can change later.
pub fn display_with_id<T: Rich + ?Sized>(value: &T, id: &str) {
    send_display(value.rich(), Some(id), false);
}

/// Replaces what [`display_with_id`] showed under that id.
pub fn update_display<T: Rich + ?Sized>(value: &T, id: &str) {
    send_display(value.rich(), Some(id), true);
}

/// Removes what the cell has shown so far; with `wait`, when the next output comes.
pub fn clear_output(wait: bool) {
    link::send(&Tell::ClearOutput { wait });
}

fn send_display(bundle: Bundle, id: Option<&str>, update: bool) {
    if link::connected() {
        link::send(&Tell::Display { bundle, id: id.map(str::to_owned), update });
    } else if !update {
        std::println!("{}", bundle.plain());
    }
}

/// The value of a cell's last expression.
#[doc(hidden)]
pub fn result(bundle: Option<Bundle>) {
    if let Some(bundle) = bundle {
        link::send(&Tell::Result(bundle));
    }
}

/// A value to be shown; the traits below choose how, by autoref: `Rich`, else `evcxr_display`, else `Debug`, else its
/// type's name. One compile, no second try.
#[doc(hidden)]
pub struct Show<'a, T: ?Sized>(pub &'a T);

#[doc(hidden)]
pub trait ShowRich {
    fn rich_bundle(&self) -> Option<Bundle>;
}
impl<T: Rich + ?Sized> ShowRich for &Show<'_, T> {
    fn rich_bundle(&self) -> Option<Bundle> {
        Some(self.0.rich())
    }
}
#[doc(hidden)]
pub trait ShowPlain {
    fn rich_bundle(&self) -> Option<Bundle>;
}
impl<T: ?Sized> ShowPlain for Show<'_, T> {
    fn rich_bundle(&self) -> Option<Bundle> {
        None
    }
}

#[doc(hidden)]
pub trait ShowDebug {
    fn text_bundle(&self) -> Option<Bundle>;
}
impl<T: Debug + ?Sized> ShowDebug for &Show<'_, T> {
    fn text_bundle(&self) -> Option<Bundle> {
        // Inside a cell `()` means that there is nothing to show.
        if std::any::type_name::<T>() == "()" { None } else { Some(Bundle::text(debug_text(&self.0))) }
    }
}
#[doc(hidden)]
pub trait ShowOpaque {
    fn text_bundle(&self) -> Option<Bundle>;
}
impl<T: ?Sized> ShowOpaque for Show<'_, T> {
    fn text_bundle(&self) -> Option<Bundle> {
        Some(Bundle::text(format!("<{}>", without_groups(std::any::type_name::<T>()))))
    }
}

/// A type's name without the crates that the kernel compiles definitions into (`g_` and 16 digits).
fn without_groups(name: &str) -> String {
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

#[doc(hidden)]
pub trait NoEvcxr {
    fn evcxr_display(&self) -> AbsentEvcxrDisplay {
        AbsentEvcxrDisplay
    }
}
impl<T: ?Sized> NoEvcxr for T {}

#[doc(hidden)]
pub fn evcxr_is_absent<R>(_: &R) -> bool {
    std::any::type_name::<R>() == std::any::type_name::<AbsentEvcxrDisplay>()
}

/// A front end chokes on more text than this, and nobody reads it.
const LONGEST: usize = 512 << 10;

/// `{:?}`, cut off where it gets too long: formatting stops there, so that a huge collection costs no memory.
fn debug_text(value: &dyn Debug) -> String {
    struct Limited(String);
    impl Write for Limited {
        fn write_str(&mut self, s: &str) -> std::fmt::Result {
            if self.0.len() + s.len() > LONGEST {
                return Err(std::fmt::Error);
            }
            self.0.push_str(s);
            Ok(())
        }
    }
    let mut out = Limited(String::new());
    if write!(out, "{value:?}").is_err() {
        out.0.push_str(" … (cut off)");
    }
    out.0
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Own;
    impl Own {
        #[allow(dead_code)]
        fn evcxr_display(&self) {}
    }
    struct Opaque;
    #[derive(Debug)]
    struct Both;
    impl Rich for Both {
        fn rich(&self) -> Bundle {
            Bundle::text("rich")
        }
    }

    macro_rules! shown {
        ($e:expr) => {{
            let value = &$e;
            match (&&Show(value)).rich_bundle() {
                None if evcxr_is_absent(&value.evcxr_display()) => (&&Show(value)).text_bundle(),
                None => Some(Bundle::text("by itself")),
                rich => rich,
            }
            .map(|b| b.plain().to_owned())
        }};
    }

    #[test]
    fn the_most_telling_form_wins() {
        assert_eq!(shown!(Both).as_deref(), Some("rich"));
        assert_eq!(shown!(Own).as_deref(), Some("by itself"));
        assert_eq!(shown!(41 + 1).as_deref(), Some("42"));
        assert_eq!(shown!("a").as_deref(), Some("\"a\""));
        assert_eq!(shown!(()).as_deref(), None);
        assert!(shown!(Opaque).unwrap().ends_with("Opaque>"));
    }

    #[test]
    fn a_huge_value_is_cut_off() {
        assert!(debug_text(&vec![7u8; 10_000_000]).ends_with("(cut off)"));
    }
}
