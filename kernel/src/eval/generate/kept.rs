//! What stores a variable.

/// Stores a variable; a closure, with these arguments and so far from `Fn`, may take nothing along (`alone`).
pub(super) fn kept(name: &str, closure: Option<&[String]>, level: usize, alone: bool) -> String {
    let Some(arguments) = closure else {
        return format!(" (&&&xlazy_rt::Of::value(&{name})).keep(\"{name}\", {name});");
    };
    let of = ["Fn", "FnMut", "FnOnce"][level.min(2)];
    let args = arguments.join(", ");
    let boxed = format!("::std::boxed::Box::new({name}) as ::std::boxed::Box<dyn ::core::ops::{of}({args}) -> _>");
    // It is `Copy`, and stays so behind a reference.
    if alone && of == "Fn" {
        return format!(" xlazy_rt::keep_shared(\"{name}\", {boxed});");
    }
    format!(" {{ let xlazy_value = {boxed}; (&&&xlazy_rt::Of::value(&xlazy_value)).keep(\"{name}\", xlazy_value); }}")
}
