//! All that a type's layout and meaning depend on: the definitions that it names, the members of `impl`s that these name, and
//! so on. A value is taken for one of another build of its type only where all of that is the same.
use super::definitions::{Definitions, Reach};
use crate::eval::parse::expand::Macro;
use crate::eval::parse::facts::{Facts, Member, Owner, Words, calls};
use crate::eval::parse::items::Item;
use crate::eval::parse::parsed::Use;
use crate::eval::text::scan;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Macros that make something else of the same text elsewhere, or at another time.
const PLACE_OR_TIME: &[&str] =
    &["line", "column", "file", "module_path", "include", "include_str", "include_bytes", "env", "option_env"];
/// Values that are others in another build.
const OF_THE_BUILD: &[&str] = &["type_name", "type_name_of_val", "TypeId", "caller"];
/// Conditions that go by how a cell is compiled.
const FLAGS: &[&str] = &["debug_assertions", "overflow_checks", "ub_checks"];
/// Macros that make of their arguments nothing that these do not name.
const PLAIN: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "addr_of",
    "cfg",
    "check",
    "compile_error",
    "concat",
    "dbg",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "display",
    "display_with_id",
    "eprint",
    "eprintln",
    "format",
    "format_args",
    "macro_rules",
    "matches",
    "offset_of",
    "panic",
    "parts",
    "predict",
    "print",
    "println",
    "stringify",
    "thread_local",
    "todo",
    "unimplemented",
    "unreachable",
    "update_display",
    "vec",
    "write",
    "writeln",
];
/// Names that no import changes.
const FIXED: &[&str] = &[
    "as", "bool", "char", "const", "crate", "dyn", "enum", "extern", "f32", "f64", "fn", "for", "i128", "i16", "i32",
    "i64", "i8", "impl", "in", "isize", "let", "mod", "mut", "pub", "ref", "repr", "Self", "self", "static", "str",
    "struct", "super", "trait", "true", "false", "type", "u128", "u16", "u32", "u64", "u8", "union", "unsafe", "usize",
    "where", "_",
];

/// What is in force, by name.
pub struct Index<'d> {
    named: HashMap<&'d str, Vec<&'d Item>>,
    macros: HashMap<&'d str, Vec<&'d Macro>>,
    uses: Vec<(&'d Use, BTreeSet<String>)>,
    crates: HashMap<&'d str, &'d str>,
    members: OnceCell<Vec<Known<'d>>>,
    items: Vec<&'d Item>,
}

/// A member, and the names by which a type may come to it whatever they are called on the way.
struct Known<'d> {
    member: &'d Member,
    by: BTreeSet<String>,
    any: bool,
}

impl<'d> Index<'d> {
    pub fn new(defs: &'d Definitions) -> Index<'d> {
        let mut named: HashMap<&str, Vec<&Item>> = HashMap::new();
        let items: Vec<&Item> = defs.items().map(|(_, i)| i).collect();
        for item in &items {
            item.names.iter().for_each(|n| named.entry(n).or_default().push(item));
        }
        let mut macros: HashMap<&str, Vec<&Macro>> = HashMap::new();
        defs.macros.iter().for_each(|m| macros.entry(&m.name).or_default().push(m));
        let uses = defs.uses.iter().map(|u| (u, scan::mentions(&u.text))).collect();
        let crates = defs.deps.iter().flat_map(|d| d.crates()).collect();
        Index { named, macros, uses, crates, members: OnceCell::new(), items }
    }

    fn members(&self) -> &[Known<'d>] {
        self.members.get_or_init(|| {
            let all = self.items.iter().flat_map(|i| &i.facts.members);
            all.map(|member| {
                let mut by = member.by.clone();
                if let Owner::Macro(_) = member.owner {
                    by.extend(member.name.iter().cloned());
                }
                let any = self.follow_names(&mut by);
                Known { member, by, any: any || member.any }
            })
            .collect()
        })
    }

    /// Adds what these names are short for; whether that may be anything.
    fn follow_names(&self, names: &mut BTreeSet<String>) -> bool {
        let (mut todo, mut any): (Vec<String>, bool) = (names.iter().cloned().collect(), false);
        while let Some(name) = todo.pop() {
            let aliases = self.named.get(&*name).into_iter().flatten().filter(|i| i.facts.alias);
            let mut more: Vec<&String> = Vec::new();
            for alias in aliases {
                any |= alias.facts.words.all.contains("as") || !alias.facts.words.calls.is_empty();
                more.extend(&alias.facts.words.all);
            }
            more.extend(self.uses.iter().filter(|(u, _)| u.binds == name).flat_map(|(_, words)| words));
            more.extend(self.macros.get(&*name).into_iter().flatten().flat_map(|m| &m.mentions));
            let more: Vec<String> = more.into_iter().filter(|n| names.insert((*n).clone())).cloned().collect();
            todo.extend(more);
        }
        any
    }

    /// Everything that the definition of this name depends on; `None` where that cannot be decided. `impl`s of traits that
    /// were not there `before` are left out where another one cannot have been meant.
    pub fn reach(&self, name: &str, before: Option<&Reach>) -> Option<Reach> {
        let mut walk = Walk { index: self, before, ..Walk::new(self) };
        let root = self.named.get_key_value(name)?.0;
        walk.all.insert(root);
        walk.todo.push(root);
        loop {
            while let Some(name) = walk.todo.pop() {
                walk.named(name);
            }
            walk.globs();
            walk.members();
            if walk.todo.is_empty() {
                break;
            }
        }
        let hash = |texts: BTreeSet<String>| {
            let mut hasher = DefaultHasher::new();
            texts.hash(&mut hasher);
            hasher.finish()
        };
        (!walk.undecided).then(|| walk.found.into_iter().map(|(key, texts)| (key, hash(texts))).collect())
    }

    /// Whether a value of the definition that depended on `before` is one of the definition in force.
    pub fn still(&self, name: &str, before: &Reach) -> bool {
        self.reach(name, Some(before)).as_ref() == Some(before)
    }
}

struct Walk<'i, 'd> {
    index: &'i Index<'d>,
    before: Option<&'i Reach>,
    found: BTreeMap<String, BTreeSet<String>>,
    /// Names that matter, and those of them that may be values.
    all: BTreeSet<&'i str>,
    values: BTreeSet<&'i str>,
    todo: Vec<&'i str>,
    taken: BTreeSet<usize>,
    /// Whether an `impl` is good for some types only, so that other `impl`s decide whether it is meant.
    by_bounds: bool,
    /// Something may name anything.
    everything: bool,
    undecided: bool,
}

impl<'i, 'd> Walk<'i, 'd> {
    fn new(index: &'i Index<'d>) -> Walk<'i, 'd> {
        let (found, all, values, todo, taken) = Default::default();
        let (by_bounds, everything, undecided) = Default::default();
        Walk { index, before: None, found, all, values, todo, taken, by_bounds, everything, undecided }
    }

    fn note(&mut self, key: String, text: String) {
        self.found.entry(key).or_default().insert(text);
    }

    fn mentions(&mut self, all: &'i BTreeSet<String>, values: &'i BTreeSet<String>) {
        for name in values {
            if self.values.insert(name) {
                self.todo.push(name);
            }
            self.undecided |= OF_THE_BUILD.contains(&&**name);
        }
        for name in all {
            if self.all.insert(name) {
                self.todo.push(name);
            }
            self.undecided |= FLAGS.contains(&&**name);
        }
    }

    fn calls(&mut self, calls: &BTreeSet<String>) {
        for name in calls.iter().map(String::as_str).filter(|n| !self.index.macros.contains_key(n)) {
            let plain = PLAIN.contains(&name);
            let place = PLACE_OR_TIME.contains(&name);
            self.undecided |= place;
            if !plain && !place && !self.everything {
                self.everything = true;
                let index = self.index;
                for name in index.named.keys().chain(index.macros.keys()) {
                    self.all.insert(name);
                    self.values.insert(name);
                    self.todo.push(name);
                }
            }
        }
    }

    fn words(&mut self, facts: &'i Words) {
        self.mentions(&facts.all, &facts.values);
        self.calls(&facts.calls);
    }

    fn named(&mut self, name: &'i str) {
        let index = self.index;
        for item in index.named.get(name).into_iter().flatten() {
            let Facts { text, words, function, .. } = &item.facts;
            // What a function does changes no type that mentions its name, unless it is a value there.
            if !function || self.values.contains(name) {
                let what = if *function { "fn" } else { "item" };
                self.note(format!("{what} {name}"), format!("{}{text}", item.cfg));
                self.words(words);
            }
        }
        for m in index.macros.get(name).into_iter().flatten() {
            self.note(format!("macro {name}"), m.text.clone());
            self.mentions(&m.mentions, &m.mentions);
            self.calls(&calls(&m.text));
        }
        for (u, words) in index.uses.iter().filter(|(u, _)| u.binds == name) {
            self.import(u, words);
        }
        if let Some(file) = index.crates.get(name) {
            self.note(format!("crate {name}"), (*file).to_owned());
        }
    }

    fn import(&mut self, u: &Use, words: &'i BTreeSet<String>) {
        self.note(format!("use {}", u.binds), u.text.clone());
        self.undecided |= words.iter().any(|w| PLACE_OR_TIME.contains(&&**w) && u.binds != *w && words.contains("as"));
        self.mentions(words, words);
    }

    /// Imports of all that a module has: they say what names mean that nothing else is called by.
    fn globs(&mut self) {
        let index = self.index;
        let known = |name: &str| {
            FIXED.contains(&name)
                || index.named.contains_key(name)
                || index.macros.contains_key(name)
                || index.uses.iter().any(|(u, _)| u.binds == name)
        };
        let open: BTreeSet<&str> = self.all.iter().copied().filter(|n| !known(n)).collect();
        for (u, words) in index.uses.iter().filter(|(u, _)| u.text.trim_end_matches([';', ' ']).ends_with('*')) {
            let mut own = words.iter().filter_map(|w| index.named.get(&**w)).flatten().peekable();
            let may_have = |i: &&Item| {
                let more = i.facts.text.contains("*;") || !i.facts.words.calls.is_empty();
                more || i.mentions.iter().any(|m| open.contains(&**m))
            };
            let may_mean = if own.peek().is_some() { own.any(may_have) } else { !open.is_empty() };
            if may_mean && !self.found.contains_key(&format!("use {}", u.binds)) {
                self.import(u, words);
            }
        }
    }

    fn members(&mut self) {
        let index = self.index;
        for (at, known) in index.members().iter().enumerate() {
            if self.taken.contains(&at) || !(self.everything || self.consults(known)) {
                continue;
            }
            let m = known.member;
            let what = m.name.as_deref().unwrap_or_default();
            let key = format!("{} {{ {what} }}", m.of);
            // Before it was there, something else was meant by the name, or nothing.
            let may_be_new = matches!(m.owner, Owner::TraitOf(..) | Owner::Trait) && m.name.is_some();
            if may_be_new && self.before.is_some_and(|b| !b.contains_key(&key)) {
                continue;
            }
            self.taken.insert(at);
            self.note(key, m.text.clone());
            self.by_bounds |= m.bounded;
            self.words(&m.words);
        }
    }

    /// Whether what was found so far may mean this member.
    fn consults(&self, known: &Known) -> bool {
        let Known { member, by, any } = known;
        let meets = || *any || by.iter().any(|n| self.all.contains(&**n));
        let own_type = || by.iter().any(|n| self.all.contains(&**n) && self.index.named.contains_key(&**n));
        let is_named = |name: &String| {
            if member.function { self.values.contains(&**name) } else { self.all.contains(&**name) }
        };
        match (&member.owner, &member.name) {
            (Owner::Macro(in_body), name) => {
                let rules = name.as_ref().and_then(|n| self.index.macros.get(&**n));
                let makes = |m: &&&Macro| m.mentions.contains("impl") || m.mentions.contains("trait");
                let may_define = match rules {
                    Some(rules) => !in_body || rules.iter().any(|m| makes(&m)) || by.contains("impl"),
                    None => !in_body && name.as_ref().is_none_or(|n| !PLAIN.contains(&&**n)),
                };
                may_define && (*any || own_type())
            }
            (Owner::MadeInside, _) => *any || own_type(),
            (Owner::Trait, name) => name.as_ref().is_some_and(is_named),
            (Owner::Type, name) => name.as_ref().is_some_and(is_named) && meets(),
            (Owner::TraitOf(of, alone), name) => {
                let own_trait =
                    *alone && self.index.named.get(&**of).is_some_and(|i| i.iter().any(|i| i.facts.is_trait));
                match name {
                    // Another crate's generic type may hold what its trait's `impl` says, and name neither.
                    Some(name) => is_named(name) && meets() || !member.function && !own_trait && own_type(),
                    None => self.by_bounds && meets() && (!own_trait || self.all.contains(&**of)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
