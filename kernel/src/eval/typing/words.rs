//! Words of the language, and of std, that no catalog has.

pub const KEYWORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false", "fn",
    "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "Self",
    "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while",
];

/// What an item of a module begins with.
pub const ITEMS: &[&str] = &[
    "async", "const", "enum", "extern", "fn", "impl", "mod", "pub", "static", "struct", "trait", "type", "unsafe",
    "use",
];

/// The same of an `impl` or a trait.
pub const MEMBERS: &[&str] = &["async", "const", "fn", "pub", "type", "unsafe"];

pub const DERIVES: &[&str] = &["Clone", "Copy", "Debug", "Default", "Eq", "Hash", "Ord", "PartialEq", "PartialOrd"];

/// Names that std's prelude brings, with their paths.
pub const PRELUDE: &[&str] = &[
    "std::vec::Vec",
    "std::string::String",
    "std::boxed::Box",
    "std::option::Option",
    "std::result::Result",
    "std::option::Option::Some",
    "std::option::Option::None",
    "std::result::Result::Ok",
    "std::result::Result::Err",
    "std::iter::Iterator",
    "std::iter::IntoIterator",
    "std::iter::DoubleEndedIterator",
    "std::iter::ExactSizeIterator",
    "std::iter::Extend",
    "std::iter::FromIterator",
    "std::clone::Clone",
    "std::default::Default",
    "std::cmp::PartialEq",
    "std::cmp::Eq",
    "std::cmp::PartialOrd",
    "std::cmp::Ord",
    "std::convert::From",
    "std::convert::Into",
    "std::convert::TryFrom",
    "std::convert::TryInto",
    "std::convert::AsRef",
    "std::convert::AsMut",
    "std::marker::Copy",
    "std::marker::Send",
    "std::marker::Sync",
    "std::marker::Sized",
    "std::ops::Drop",
    "std::ops::Fn",
    "std::ops::FnMut",
    "std::ops::FnOnce",
    "std::string::ToString",
    "std::borrow::ToOwned",
    "std::mem::drop",
];

/// Types that the language has.
pub const PRIMITIVES: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16", "u32", "u64", "u128",
    "usize",
];

pub const ATTRIBUTES: &[&str] = &[
    "allow",
    "cfg",
    "cold",
    "default",
    "deny",
    "deprecated",
    "derive",
    "doc",
    "expect",
    "ignore",
    "inline",
    "must_use",
    "non_exhaustive",
    "repr",
    "should_panic",
    "test",
    "track_caller",
    "warn",
];

/// The lints that a cell may meet.
pub const LINTS: &[&str] = &[
    "ambiguous_glob_reexports",
    "dead_code",
    "deprecated",
    "non_camel_case_types",
    "non_snake_case",
    "non_upper_case_globals",
    "static_mut_refs",
    "unreachable_code",
    "unreachable_patterns",
    "unused",
    "unused_assignments",
    "unused_imports",
    "unused_labels",
    "unused_macros",
    "unused_must_use",
    "unused_mut",
    "unused_parens",
    "unused_variables",
];

/// What `#[cfg(…)]` asks about.
pub const CONDITIONS: &[&str] = &[
    "all",
    "any",
    "debug_assertions",
    "feature",
    "not",
    "panic",
    "target_arch",
    "target_endian",
    "target_os",
    "target_pointer_width",
    "test",
    "unix",
    "windows",
];

/// How `#[repr(…)]` lays a type out.
pub const LAYOUTS: &[&str] =
    &["C", "align", "i8", "i16", "i32", "i64", "isize", "packed", "transparent", "u8", "u16", "u32", "u64", "usize"];

/// What a macro's pattern takes.
pub const FRAGMENTS: &[&str] = &[
    "block",
    "expr",
    "ident",
    "item",
    "lifetime",
    "literal",
    "meta",
    "pat",
    "pat_param",
    "path",
    "stmt",
    "tt",
    "ty",
    "vis",
];

/// Traits that so many types have that nobody looks for their methods first.
pub const COMMON: &[&str] = &[
    "Any",
    "AsMut",
    "AsRef",
    "Borrow",
    "BorrowMut",
    "Clone",
    "Default",
    "Extend",
    "From",
    "Hash",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "ToOwned",
    "ToString",
    "TryFrom",
    "TryInto",
];
