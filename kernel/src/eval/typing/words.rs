//! Words of the language, and of std, that no catalog has.

pub const KEYWORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false", "fn",
    "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "Self",
    "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while",
];

pub const DERIVES: &[&str] = &["Clone", "Copy", "Debug", "Default", "Eq", "Hash", "Ord", "PartialEq", "PartialOrd"];

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

/// What std's macros take, which its documentation says in words only; `…` is any number.
pub fn macro_signature(name: &str) -> Option<&'static str> {
    Some(match name {
        "assert" => "assert!(condition, message…)",
        "debug_assert" => "debug_assert!(condition, message…)",
        "assert_eq" => "assert_eq!(left, right, message…)",
        "assert_ne" => "assert_ne!(left, right, message…)",
        "debug_assert_eq" => "debug_assert_eq!(left, right, message…)",
        "debug_assert_ne" => "debug_assert_ne!(left, right, message…)",
        "matches" => "matches!(expression, pattern)",
        "format" => "format!(\"text {} {name:.2}\", values…)",
        "print" => "print!(\"text {} {name:.2}\", values…)",
        "println" => "println!(\"text {} {name:.2}\", values…)",
        "eprintln" => "eprintln!(\"text {} {name:.2}\", values…)",
        "panic" => "panic!(\"text {} {name:.2}\", values…)",
        "write" => "write!(to, \"text {} {name:.2}\", values…)",
        "writeln" => "writeln!(to, \"text {} {name:.2}\", values…)",
        "dbg" => "dbg!(values…)",
        "vec" => "vec![elements…]",
        _ => return None,
    })
}
