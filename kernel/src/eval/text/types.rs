//! From what `std::any::type_name` says to a type that a later cell can write down.
use super::lifetimes::{as_long_as_the_reference, of_functions};
use super::scan::{Kind, tokens};
use std::collections::BTreeMap;

/// How a stored variable's type is written in a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Named {
    Type(String),
    /// It has no name; the advice says what to store instead.
    Refused(String),
}

/// Rewrites each path of a type's name: private modules of the standard library are left out, others keep theirs.
/// `group` maps a path into a definition group to the one that is in force now.
pub fn nameable(type_name: &str, group: &mut dyn FnMut(&str, &str) -> Option<String>) -> Named {
    if type_name.contains("{{closure}}") {
        let advice = match type_name {
            t if t.contains("::iter::") => {
                "it is an iterator with closures in it, and its type has no name: store it as \
                `Box<dyn Iterator<Item = ..>>`, written in the `let`, or `.collect()` it"
            }
            t if t.ends_with("{{closure}}") => {
                "it is a closure or a future, and its type has no name: store it as \
                `Box<dyn Fn(..) -> ..>`, written in the `let`, or `.await` it"
            }
            _ => {
                "it holds a closure, and its type has no name: write a type in the `let` that has one, such as `fn(..) -> ..` \
                or `Box<dyn Fn(..) -> ..>` for the closure"
            }
        };
        return Named::Refused(advice.into());
    }
    if type_name.contains("{{") || type_name.contains("{async") || type_name.contains("{impl") {
        return Named::Refused("its type has no name: store what it holds, or a `Box<dyn Trait>` of it".into());
    }
    let type_name = &*of_functions(&as_long_as_the_reference(type_name));
    let mut out = String::new();
    let all = tokens(type_name);
    let mut i = 0;
    while i < all.len() {
        let token = &all[i];
        let text = &type_name[token.range.clone()];
        if token.kind != Kind::Ident {
            // The type of what never comes back, which stable Rust can write as a result only.
            out.push_str(if text == "!" { "::xlazy::cell::rt::Never" } else { text });
            // `dyn A + B`, `Foo<A, B>` and `-> T` read on with blanks where the name had them.
            let next = all.get(i + 1).map_or(type_name.len(), |t| t.range.start);
            out.push_str(&type_name[token.range.end..next]);
            i += 1;
            continue;
        }
        let mut path = vec![text];
        let mut last = i;
        while let [a, b, c, ..] = &all[last + 1..] {
            let is_path = a.kind == Kind::Punct(':') && b.kind == Kind::Punct(':') && c.kind == Kind::Ident;
            if !is_path || a.range.start != all[last].range.end || b.range.end != c.range.start {
                break;
            }
            path.push(&type_name[c.range.clone()]);
            last += 3;
        }
        if path.len() > 1 && path[0].starts_with("cell_") {
            return Named::Refused(format!(
                "its type {} is declared inside a block or function: declare it at the top of a cell",
                path[path.len() - 1]
            ));
        }
        let name = path[path.len() - 1];
        let is_value = path.len() > 1 && name.starts_with(|c: char| c.is_lowercase());
        let function = || Named::Refused(function(name));
        let own = path.len() > 1 && path[0].starts_with("g_");
        // Of another crate's rustc says what it is.
        if is_value && matches!(path[0], "std" | "xlazy") {
            return function();
        }
        if own {
            match group(path[0], &path[1..].join("::")) {
                // A type may be called so, too: then there is a way to write it. What is in a module nobody looks for.
                found if is_value && (path.len() > 2 || found.as_deref().unwrap_or_default().is_empty()) => {
                    return function();
                }
                Some(written) => out.push_str(&written),
                None => {
                    return Named::Refused(format!("its type {name} was defined anew since"));
                }
            }
        } else {
            out.push_str(&public_path(&path));
        }
        let next = all.get(last + 1).map_or(type_name.len(), |t| t.range.start);
        out.push_str(&type_name[all[last].range.end..next]);
        i = last + 1;
    }
    Named::Type(out)
}

/// Why a function's own type cannot be stored.
pub fn function(name: &str) -> String {
    format!("it is the function `{name}` itself: give it a type, `let f: fn(..) -> .. = {name};`")
}

/// A type's name for people: the last part of each path.
pub fn short(type_name: &str) -> String {
    let mut out = String::new();
    let all = tokens(type_name);
    for (i, token) in all.iter().enumerate() {
        let colon = |t: Option<&super::scan::Token>| t.is_some_and(|t| t.kind == Kind::Punct(':'));
        let in_path = token.kind == Kind::Ident && colon(all.get(i + 1)) && colon(all.get(i + 2));
        if !in_path && token.kind != Kind::Punct(':') {
            let next = all.get(i + 1).map_or(type_name.len(), |t| t.range.start);
            out.push_str(&type_name[token.range.start..next]);
        }
    }
    out
}

/// Second-level modules of the standard library that are public themselves.
const PUBLIC: &[(&str, &str)] = &[
    ("sync", "mpsc"),
    ("sync", "atomic"),
    ("sync", "nonpoison"),
    ("collections", "hash_map"),
    ("collections", "hash_set"),
    ("collections", "btree_map"),
    ("collections", "btree_set"),
    ("collections", "vec_deque"),
    ("collections", "binary_heap"),
    ("collections", "linked_list"),
    ("os", "fd"),
];

/// Private modules of the runtime; what they make public is at its root.
const AT_ROOT: &[&str] = &["grad", "ops", "tensor"];
/// Public modules of the runtime with private ones inside.
const IN_MODULE: &[&str] = &["data", "display", "insight"];

fn public_path(path: &[&str]) -> String {
    let (first, last) = (path[0], path[path.len() - 1]);
    if path.len() == 1 || !matches!(first, "std" | "core" | "alloc") {
        let root = if path.len() == 1 { "" } else { "::" };
        return match path {
            ["xlazy_mime", ..] => format!("::xlazy::mime::{last}"),
            // What the runtime is built on has no name of its own in a cell.
            ["xlazy_core", "ty" | "error" | "mesh", ..] => format!("::xlazy::{last}"),
            ["xlazy_core", "metrics", ..] => format!("::xlazy::metrics::{last}"),
            ["xlazy_core", "run", ..] => format!("::xlazy::insight::{last}"),
            ["xlazy_core", "host", ..] => format!("::xlazy::cell::{last}"),
            ["xlazy", "ops", "collective", ..] => format!("::xlazy::spmd::{last}"),
            // Its modules are private where a type is public at its root, or at that of a public module.
            ["xlazy", module, ..] if AT_ROOT.contains(module) => format!("::xlazy::{last}"),
            ["xlazy", module, inner, .., _] if IN_MODULE.contains(module) && *inner != "metrics" => {
                format!("::xlazy::{module}::{last}")
            }
            _ => format!("{root}{}", path.join("::")),
        };
    }
    if let [_, "collections", kind @ ("hash" | "btree"), table @ ("map" | "set"), ..] = path {
        let own = matches!(last, "HashMap" | "HashSet" | "BTreeMap" | "BTreeSet");
        let module = if own { String::new() } else { format!("{kind}_{table}::") };
        return format!("::std::collections::{module}{last}");
    }
    if let [_, "os", rest @ ..] = path {
        return format!("::std::os::{}", rest.join("::"));
    }
    // `std` has all of `alloc`, which is a name that a cell may give to something else.
    let first = if first == "alloc" { "std" } else { first };
    match path {
        [_, module, inner, .., _] if PUBLIC.contains(&(module, inner)) => {
            format!("::{first}::{module}::{inner}::{last}")
        }
        [_, module, .., _] => format!("::{first}::{module}::{last}"),
        [_, rest @ ..] => format!("::{first}::{}", rest.join("::")),
        [] => String::new(),
    }
}

/// Types that certainly are not `Copy` and not handles: a bare use of such a variable moves it. As a method's receiver only
/// those that have such a method themselves: others may lend what they hold.
pub fn surely_moves(type_name: &str, receiver: bool) -> bool {
    const MOVED: &[&str] = &[
        "alloc::vec::Vec<",
        "alloc::boxed::Box<",
        "alloc::rc::Rc<",
        "alloc::sync::Arc<",
        "alloc::collections::",
        "std::collections::",
        "std::sync::",
        "core::cell::RefCell<",
        "std::thread::JoinHandle<",
        "std::fs::File",
        "std::net::Tcp",
        "std::net::Udp",
        "std::process::Child",
        "std::path::PathBuf",
        "std::ffi::os_str::OsString",
    ];
    const OWN: &[&str] =
        &["alloc::vec::Vec<", "alloc::collections::", "std::collections::", "std::thread::JoinHandle<"];
    if receiver { OWN } else { MOVED }.iter().any(|p| type_name.starts_with(p))
}

/// Whether a variable finds out the types of what it holds while it runs. A type that is compiled again is another one then.
pub fn asks_for_types(type_name: &str) -> bool {
    ["dyn core::any::Any", "dyn core::error::Error", "core::any::TypeId"].iter().any(|t| type_name.contains(t))
}

/// The absolute paths in a type.
pub fn paths_in(written: &str) -> Vec<String> {
    path_ranges(written).into_iter().map(|(start, end)| written[start..end].to_owned()).collect()
}

/// The type with paths replaced.
pub fn with_paths(written: &str, public: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut from = 0;
    for (start, end) in path_ranges(written) {
        if let Some(path) = public.get(&written[start..end]) {
            out.push_str(&written[from..start]);
            out.push_str(path);
            from = end;
        }
    }
    out + &written[from..]
}

fn path_ranges(written: &str) -> Vec<(usize, usize)> {
    let all = tokens(written);
    let colon = |i: usize| all.get(i).is_some_and(|t| t.kind == Kind::Punct(':'));
    let mut out = Vec::new();
    let mut i = 0;
    while i < all.len() {
        let start = i;
        while colon(i) && colon(i + 1) && all.get(i + 2).is_some_and(|t| t.kind == Kind::Ident) {
            i += 3;
        }
        if i > start {
            out.push((all[start].range.start, all[i - 1].range.end));
        } else {
            i += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(type_name: &str) -> String {
        let type_in = |g: &str, p: &str| Some(format!("::{g}::{p}")).filter(|_| p != "area");
        match nameable(type_name, &mut { type_in }) {
            Named::Type(t) => t,
            Named::Refused(why) => format!("refused: {why}"),
        }
    }

    #[test]
    fn private_paths_of_std_become_public() {
        assert_eq!(
            name("std::collections::hash::map::HashMap<&str, alloc::vec::Vec<i32>>"),
            "::std::collections::HashMap<&str, ::std::vec::Vec<i32>>"
        );
        assert_eq!(
            name("alloc::collections::btree::map::BTreeMap<i32, [u8; 4]>"),
            "::std::collections::BTreeMap<i32, [u8; 4]>"
        );
        assert_eq!(name("std::sync::poison::mutex::Mutex<u8>"), "::std::sync::Mutex<u8>");
        assert_eq!(name("core::ops::range::Range<usize>"), "::core::ops::Range<usize>");
        assert_eq!(
            name("alloc::boxed::Box<dyn core::ops::function::Fn(i32) -> i32 + core::marker::Send>"),
            "::std::boxed::Box<dyn ::core::ops::Fn(i32) -> i32 + ::core::marker::Send>"
        );
        assert_eq!(
            name("std::sync::mpsc::Sender<(i32, g_1::Point)>"),
            "::std::sync::mpsc::Sender<(i32, ::g_1::Point)>"
        );
        assert_eq!(name("(i32, &[u8], fn(i32) -> bool)"), "(i32, &[u8], fn(i32) -> bool)");
    }

    #[test]
    fn types_of_the_runtime_are_written_as_it_publishes_them() {
        for (private, public) in [
            ("xlazy::tensor::Tensor", "::xlazy::Tensor"),
            ("xlazy_core::ty::shape::Shape", "::xlazy::Shape"),
            ("alloc::vec::Vec<xlazy_core::ty::dtype::DType>", "::std::vec::Vec<::xlazy::DType>"),
            ("xlazy_core::error::Error", "::xlazy::Error"),
            ("xlazy_core::mesh::Mesh", "::xlazy::Mesh"),
            ("xlazy::ops::conv::ConvOptions", "::xlazy::ConvOptions"),
            ("xlazy::ops::collective::Groups", "::xlazy::spmd::Groups"),
            ("xlazy::nn::linear::Linear", "::xlazy::nn::linear::Linear"),
            ("xlazy::display::image::ImageOptions", "::xlazy::display::ImageOptions"),
            ("xlazy_mime::bundle::Bundle", "::xlazy::mime::Bundle"),
            ("xlazy_core::run::event::SyncEvent", "::xlazy::insight::SyncEvent"),
        ] {
            assert_eq!(name(private), public);
        }
    }

    #[test]
    fn people_read_short_names() {
        assert_eq!(
            short("std::collections::hash::map::HashMap<&str, alloc::vec::Vec<g_1::P>>"),
            "HashMap<&str, Vec<P>>"
        );
        assert_eq!(short("(i32, &[u8], xlazy::tensor::Tensor)"), "(i32, &[u8], Tensor)");
    }

    #[test]
    fn what_never_comes_back_has_a_name() {
        assert_eq!(
            name("std::thread::join_handle::JoinHandle<!>"),
            "::std::thread::JoinHandle<::xlazy::cell::rt::Never>"
        );
    }

    #[test]
    fn what_has_no_name_is_refused() {
        assert!(name("g_1::adder::{{closure}}").starts_with("refused: it is a closure"));
        assert!(name("g_1::area").starts_with("refused: it is the function `area`"));
        assert!(name("g_1::shapes::size").starts_with("refused: it is the function `size`"));
        assert_eq!(name("g_1::size"), "::g_1::size");
        assert!(name("cell_4::xlazy_cell::{{closure}}::P").starts_with("refused"));
    }

    #[test]
    fn paths_in_a_type_are_found_and_replaced() {
        let written = "::std::vec::Vec<(::nd::base::Own<f64>, [::nd::Dim; 2], dyn Fn(i32) -> ::nd::base::Own)>";
        assert_eq!(paths_in(written), ["::std::vec::Vec", "::nd::base::Own", "::nd::Dim", "::nd::base::Own"]);
        let public = BTreeMap::from([("::nd::base::Own".to_owned(), "::nd::Own".to_owned())]);
        assert_eq!(
            with_paths(written, &public),
            "::std::vec::Vec<(::nd::Own<f64>, [::nd::Dim; 2], dyn Fn(i32) -> ::nd::Own)>"
        );
    }
}
