//! Macros: what a name with `!` behind it leads to, and what is said of what it takes.
use super::catalog::{Entry, Kind};
use super::world::{Found, World};

/// Whether the text goes on as it does behind a macro's name.
pub fn is_called(behind: &str) -> bool {
    behind.starts_with('!') && !behind.starts_with("!=")
}

impl World {
    /// The macro that a path leads to: a module, a function or a method may have the same name.
    pub fn find_macro(&self, path: &[String]) -> Option<Entry> {
        let (first, rest) = path.split_first()?;
        let rest = rest.iter().map(|s| format!("::{s}")).collect::<String>();
        self.roots(first).into_iter().find_map(|root| self.macro_at(&format!("{root}{rest}"), 0))
    }

    fn macro_at(&self, path: &str, depth: usize) -> Option<Entry> {
        let (parent, name) = path.rsplit_once("::").unwrap_or(("", path));
        let Found::Module(module) = self.follow_parent(parent, depth)? else { return None };
        let named = self.entries(&module).into_iter().filter(|e| e.name == name);
        let (here, elsewhere): (Vec<Entry>, Vec<Entry>) = named.partition(|e| e.kind == Kind::Macro);
        let leads = |e: Entry| self.macro_at(e.elsewhere.as_deref().filter(|to| *to != path)?, depth + 1);
        here.into_iter().next().or_else(|| elsewhere.into_iter().find_map(leads))
    }
}

/// What std's macros take, which its documentation says in words only; `…` is any number.
pub fn signature(name: &str) -> Option<&'static str> {
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
        "vec" => "vec![elements…], vec![element; count]",
        _ => return None,
    })
}
