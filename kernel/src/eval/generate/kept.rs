//! What stores a variable.
use crate::eval::parse::places::Variable;

/// What a closure takes along.
#[derive(Clone, Copy)]
pub(super) enum Along {
    Variables,
    /// Then it is a function.
    Nothing,
    /// Variables as it borrows them: if it changes none, it is `Copy`, as its reference is.
    Borrowed,
    /// It is lent for good, so that this is a reference to it.
    Lent,
}

/// What a closure in that variable takes along: one whose type is left open mentions no variable.
pub(super) fn along(v: &Variable) -> Along {
    match &v.open {
        Some(open) if open.makers.is_empty() => Along::Nothing,
        _ if v.borrows => Along::Borrowed,
        _ => Along::Variables,
    }
}

/// Stores a variable; a closure has these arguments, and is so far from `Fn`.
pub(super) fn kept(name: &str, closure: Option<&[String]>, level: usize, along: Along) -> String {
    let Some(arguments) = closure else {
        return format!(" (&&&xlazy_rt::Of::value(&{name})).keep(\"{name}\", {name});");
    };
    let of = ["Fn", "FnMut", "FnOnce"][level.min(2)];
    let args = arguments.join(", ");
    let kept = match along {
        Along::Nothing if of == "Fn" => format!("{name} as fn({args}) -> _"),
        Along::Lent if of == "Fn" => format!("{name} as &'static dyn ::core::ops::Fn({args}) -> _"),
        Along::Borrowed if of == "Fn" => {
            format!("xlazy_rt::leaked({name}) as &'static dyn ::core::ops::Fn({args}) -> _")
        }
        _ => format!("::std::boxed::Box::new({name}) as ::std::boxed::Box<dyn ::core::ops::{of}({args}) -> _>"),
    };
    format!(" {{ let xlazy_value = {kept}; (&&&xlazy_rt::Of::value(&xlazy_value)).keep(\"{name}\", xlazy_value); }}")
}
