//! Names that may stand at the cursor: values, types, what patterns match, items.
use super::bindings::bindings;
use super::catalog::{self, Entry};
use super::cursor::{Cursor, What};
use super::place::{Body, function_around};
use super::scope::InScope;
use super::ty::last;
use super::words::{ITEMS, KEYWORDS, MEMBERS, PRELUDE, PRIMITIVES};
use super::world::World;
use crate::engine::{Candidate, Completions};
use crate::eval::text::scan::{Kind, Token, tokens};
use crate::eval::text::types::short;
use std::collections::HashSet;

pub struct Offers {
    pub word: String,
    pub found: Vec<(u8, Candidate)>,
    seen: HashSet<String>,
}

impl Offers {
    pub fn of(word: &str) -> Offers {
        Offers { word: word.to_owned(), found: Vec::new(), seen: HashSet::new() }
    }

    pub fn add(&mut self, rank: u8, text: &str, kind: &str, detail: &str, doc: &str) {
        let fits = text.starts_with(&self.word)
            || self.word.len() > 1 && text.to_lowercase().starts_with(&self.word.to_lowercase());
        if fits && self.seen.insert(text.to_owned()) {
            let doc = doc.lines().next().unwrap_or_default().to_owned();
            self.found.push((rank, Candidate { text: text.into(), kind: kind.into(), detail: detail.into(), doc }));
        }
    }

    pub fn entry(&mut self, rank: u8, world: &World, entry: Entry) {
        if !entry.name.starts_with(&self.word) && !entry.name.to_lowercase().starts_with(&self.word.to_lowercase()) {
            return;
        }
        let e = world.shown(entry);
        let text = if e.kind == catalog::Kind::Macro { format!("{}!", e.name) } else { e.name };
        self.add(rank, &text, e.kind.word(), &e.signature, &e.doc);
    }

    pub fn end(mut self, start: usize, end: usize) -> Completions {
        // What is written as it is typed comes before what differs in case.
        let word = &self.word;
        self.found.sort_by(|(a, x), (b, y)| {
            let key = |rank: &u8, c: &Candidate| (!c.text.starts_with(word.as_str()), *rank);
            key(a, x)
                .cmp(&key(b, y))
                .then_with(|| if *a == 0 { std::cmp::Ordering::Equal } else { x.text.cmp(&y.text) })
        });
        Completions { start, end, matches: self.found.into_iter().map(|(_, c)| c).collect() }
    }
}

/// What the cell binds, and the notebook's variables, which no function sees.
pub fn variables(offers: &mut Offers, scope: &InScope, code: &str, at: &Cursor) {
    let before = &code[..at.word.start];
    let function = with_tokens(before, |known| function_around(before, known));
    bindings(&before[function.unwrap_or(0)..]).iter().for_each(|b| offers.add(0, b, "variable", "", ""));
    if function.is_none() {
        scope.vars.iter().for_each(|v| offers.add(2, &v.name, "variable", &short(&v.type_name), ""));
    }
}

/// What is made of the tokens of a text, without its comments.
pub fn with_tokens<T>(text: &str, of: impl FnOnce(&[&Token]) -> T) -> T {
    let all = tokens(text);
    of(&all.iter().filter(|t| t.kind != Kind::Comment).collect::<Vec<_>>())
}

/// The lifetimes that a cell names, or the labels of its loops.
pub fn lifetimes(offers: &mut Offers, code: &str, at: &Cursor) {
    let labels = at.what == What::Label;
    let all = tokens(code);
    for (i, t) in all.iter().enumerate().filter(|(_, t)| t.kind == Kind::Lifetime && t.range.start != at.word.start) {
        let next = |n: usize| all.get(i + n).map_or("", |t| &code[t.range.clone()]);
        let label = next(1) == ":" && matches!(next(2), "loop" | "while" | "for" | "{");
        let jump = i > 0 && matches!(&code[all[i - 1].range.clone()], "break" | "continue");
        if !jump && label == labels {
            offers.add(1, &code[t.range.clone()], if labels { "label" } else { "lifetime" }, "", "");
        }
    }
    if !labels {
        offers.add(2, "'static", "lifetime", "", "");
    }
}

/// A name that leads elsewhere.
fn leading(name: &str, path: &str) -> Entry {
    let (signature, doc) = Default::default();
    Entry { name: name.to_owned(), kind: catalog::Kind::Type, signature, doc, elsewhere: Some(path.to_owned()) }
}

fn imported(world: &World) -> impl Iterator<Item = Entry> {
    world.imports.iter().filter(|(name, _)| name != "_").map(|(name, path)| leading(name, path))
}

fn prelude() -> impl Iterator<Item = Entry> {
    PRELUDE.iter().map(|path| leading(last(path), path))
}

/// What may stand where a type does, the notebook's own first.
pub fn types(offers: &mut Offers, world: &World) {
    let is_type = |e: &Entry| {
        matches!(
            world.shown(e.clone()).kind,
            catalog::Kind::Struct
                | catalog::Kind::Enum
                | catalog::Kind::Union
                | catalog::Kind::Trait
                | catalog::Kind::Type
                | catalog::Kind::Module
        )
    };
    let near = world.entries("").into_iter().chain(imported(world)).map(|e| (3, e));
    let far = world.globs.iter().flat_map(|g| world.entries(g)).map(|e| (6, e)).filter(|_| !offers.word.is_empty());
    let all: Vec<(u8, Entry)> = near.chain(far).chain(prelude().map(|e| (7, e))).filter(|(_, e)| is_type(e)).collect();
    all.into_iter().for_each(|(rank, e)| offers.entry(rank, world, e));
    PRIMITIVES.iter().for_each(|p| offers.add(4, p, "type", "", ""));
    world.parameters.keys().filter(|p| !p.contains(':')).for_each(|p| offers.add(0, p, "type", "", ""));
    if !offers.word.is_empty() {
        ["dyn", "impl", "fn", "Self"].iter().for_each(|k| offers.add(10, k, "keyword", "", ""));
        world.crates.iter().for_each(|c| offers.add(11, c, "module", "", ""));
    }
}

/// What can be matched by its name.
pub fn patterns(offers: &mut Offers, world: &World, scope: &InScope, code: &str, at: &Cursor) {
    if !offers.word.is_empty() {
        plain(offers, world, scope, code, at);
        let words = ["struct", "enum", "variant", "constant", "type", "module"];
        offers.found.retain(|(_, c)| words.contains(&&*c.kind) || matches!(&*c.text, "mut" | "ref"));
    }
}

/// What an item in such braces may begin with.
pub fn items(offers: &mut Offers, world: &World, body: Body) {
    let words = if body == Body::Module { ITEMS } else { MEMBERS };
    let visible = body != Body::Trait;
    words.iter().filter(|w| visible || **w != "pub").for_each(|w| offers.add(10, w, "keyword", "", ""));
    if !offers.word.is_empty() {
        let near = [""].into_iter().chain(world.globs.iter().map(String::as_str));
        let macros =
            near.flat_map(|m| world.entries(m)).filter(|e| world.shown(e.clone()).kind == catalog::Kind::Macro);
        macros.for_each(|e| offers.entry(11, world, e));
    }
}

/// Everything that a name may stand for.
pub fn plain(offers: &mut Offers, world: &World, scope: &InScope, code: &str, at: &Cursor) {
    variables(offers, scope, code, at);
    world.entries("").into_iter().for_each(|e| offers.entry(3, world, e));
    scope.items().iter().for_each(|i| offers.add(4, &i.name, i.kind, &i.signature, ""));
    imported(world).for_each(|e| offers.entry(5, world, e));
    // Where nothing is typed yet, all that everybody always has is no help.
    if offers.word.is_empty() {
        return;
    }
    world.globs.iter().flat_map(|g| world.entries(g)).for_each(|e| offers.entry(6, world, e));
    prelude().for_each(|e| offers.entry(7, world, e));
    world.entries("std").into_iter().filter(|e| e.kind == catalog::Kind::Macro).for_each(|e| offers.entry(8, world, e));
    PRIMITIVES.iter().for_each(|p| offers.add(9, p, "type", "", ""));
    KEYWORDS.iter().for_each(|k| offers.add(10, k, "keyword", "", ""));
    world.crates.iter().for_each(|c| offers.add(11, c, "module", "", ""));
}
