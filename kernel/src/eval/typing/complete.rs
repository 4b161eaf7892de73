//! Candidates for the word before the cursor.
use super::bindings::bindings;
use super::catalog::{Catalog, Entry, Kind};
use super::cursor::{self, Cursor, What};
use super::generic::parameters;
use super::magic;
use super::probe::{METHOD, Prober};
use super::repair::repaired;
use super::runtime;
use super::scope::InScope;
use super::ty::{Ty, last};
use super::words::{ATTRIBUTES, COMMON, DERIVES, KEYWORDS, LINTS, PRELUDE, PRIMITIVES};
use super::world::{Found, Having, World};
use crate::engine::{Candidate, Completions};
use crate::eval::parse::segments::{Segment, asked, blank_between, segments};
use crate::eval::text::depth;
use crate::eval::text::scan::{Kind as Token, tokens};
use crate::eval::text::types::short;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Who answers while a cell is typed.
#[derive(Clone, Default)]
pub struct Typist {
    pub prober: Prober,
    /// The runtime's names, once it has told them.
    runtime: Arc<Mutex<Option<Arc<Catalog>>>>,
}

/// The runtime's list of names, asked for once.
pub type Names<'a> = &'a dyn Fn() -> Option<serde_json::Value>;

impl Typist {
    fn own(&self, names: Names) -> Option<Arc<Catalog>> {
        let mut known = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = names().map(|n| Arc::new(runtime::catalog(&n)));
        }
        known.clone()
    }

    /// All that can be named where the cursor is, in the cell with something else in place of the word.
    pub fn around(&self, scope: &InScope, names: Names, code: &str, at: &Cursor, instead: &str) -> Around {
        let repaired = repaired(code, &at.word, instead);
        let own = self.own(names);
        let cell = repaired.as_ref().map(|(text, block)| (text.as_str(), block));
        let mut world = scope.world(cell, own);
        // A block's places are one further than the text's.
        world.parameters = cell.map(|(_, block)| parameters(block, at.word.start + 1)).unwrap_or_default();
        Around { world, repaired }
    }

    /// The type of the receiver before the word.
    pub fn receiver(&self, scope: &InScope, around: &Around) -> Option<Ty> {
        self.type_in(scope, &around.repaired.as_ref()?.0)
    }

    /// The type that [`METHOD`] is called on in a cell's text.
    pub fn type_in(&self, scope: &InScope, text: &str) -> Option<Ty> {
        Ty::printed(&self.prober.receiver(scope.context.as_ref()?, &scope.vars, text)?)
    }
}

pub struct Around {
    pub world: World,
    pub repaired: Option<(String, syn::Block)>,
}

/// Nobody types into a longer cell.
const LONGEST: usize = 1 << 15;

/// Whether a cell can be looked at while it is typed: what is nested too deep is so whatever is put into it.
pub fn is_typed(code: &str) -> bool {
    code.len() <= LONGEST && depth::fits(code)
}

/// The cell with everything blank that is no Rust; and what of a magic's line is.
pub fn rust(scope: &InScope, code: &str, cursor: usize) -> String {
    let known = |name: &str| scope.knows(name);
    let range = |segment: Segment| match segment {
        Segment::Code(range) => Some(range),
        Segment::Magic { line, body } => {
            let within = line.start <= cursor && cursor <= line.end;
            let rust = magic::rust(&code[line.clone()]).filter(|_| within);
            rust.map(|at| line.start + at..line.end).or(body)
        }
        // It may go on as another name.
        Segment::Command(line) if code[line.clone()].trim() == "help" => Some(line),
        // `?x.le` asks about an expression.
        Segment::Command(line) => {
            let within = line.start <= cursor && cursor <= line.end;
            asked(&code[line.clone()]).filter(|_| within).map(|at| line.start + at.start..line.start + at.end)
        }
    };
    blank_between(code, segments(code, &known).into_iter().filter_map(range))
}

/// The line of a magic, or of a command, that the cursor is in.
pub fn special(scope: &InScope, code: &str, cursor: usize) -> Option<std::ops::Range<usize>> {
    let known = |name: &str| scope.knows(name);
    let start = code[..cursor].rfind('\n').map_or(0, |i| i + 1);
    // A colon alone is no command yet.
    if &code[start..cursor] == ":" {
        return Some(start..cursor);
    }
    segments(code, &known).into_iter().find_map(|s| match s {
        Segment::Magic { line, .. } | Segment::Command(line) => {
            (line.start < cursor && cursor <= line_end(code, line.end)).then_some(line.start..cursor)
        }
        Segment::Code(_) => None,
    })
}

fn line_end(code: &str, at: usize) -> usize {
    code[at..].find('\n').map_or(code.len(), |i| at + i)
}

struct Offers {
    word: String,
    found: Vec<(u8, Candidate)>,
    seen: HashSet<String>,
}

impl Offers {
    fn add(&mut self, rank: u8, text: &str, kind: &str, detail: &str, doc: &str) {
        let fits = text.starts_with(&self.word)
            || self.word.len() > 1 && text.to_lowercase().starts_with(&self.word.to_lowercase());
        if fits && self.seen.insert(text.to_owned()) {
            let doc = doc.lines().next().unwrap_or_default().to_owned();
            self.found.push((rank, Candidate { text: text.into(), kind: kind.into(), detail: detail.into(), doc }));
        }
    }

    fn entry(&mut self, rank: u8, world: &World, entry: Entry) {
        if !entry.name.starts_with(&self.word) && !entry.name.to_lowercase().starts_with(&self.word.to_lowercase()) {
            return;
        }
        let e = world.shown(entry);
        let text = if e.kind == Kind::Macro { format!("{}!", e.name) } else { e.name };
        self.add(rank, &text, e.kind.word(), &e.signature, &e.doc);
    }

    fn end(mut self, start: usize, end: usize) -> Completions {
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

pub fn complete(typist: &Typist, scope: &InScope, names: Names, code: &str, cursor: usize) -> Completions {
    let nothing = Completions { start: cursor, end: cursor, matches: Vec::new() };
    if !is_typed(code) {
        return nothing;
    }
    if let Some(line) = special(scope, code, cursor)
        && let Some((start, words)) = magic::candidates(scope, &code[line.clone()])
    {
        let start = line.start + start;
        let mut offers = Offers { word: code[start..cursor].to_owned(), found: Vec::new(), seen: HashSet::new() };
        words.iter().for_each(|(text, kind, detail)| offers.add(0, text, kind, detail, ""));
        return offers.end(start, cursor);
    }
    let all = code;
    let code = &rust(scope, all, cursor);
    // In a magic that takes no Rust, or that there is not.
    if all[..cursor].ends_with(|c: char| !c.is_whitespace()) && code[..cursor].ends_with(' ') {
        return nothing;
    }
    let at = cursor::read(code, cursor);
    let mut offers = Offers { word: code[at.word.clone()].to_owned(), found: Vec::new(), seen: HashSet::new() };
    let around = |instead| typist.around(scope, names, code, &at, instead);
    match &at.what {
        What::Nothing => return nothing,
        What::Member => {
            let around = around(&format!("{METHOD}()"));
            // A macro that wants more arguments than there are yet says nothing: what there are is a tuple.
            let bare = || {
                let mut code = code.clone();
                let call = cursor::macro_around(&code, at.word.start)?;
                code.replace_range(call.clone(), &" ".repeat(call.len()));
                typist.receiver(scope, &typist.around(scope, names, &code, &at, &format!("{METHOD}()")))
            };
            let Some(ty) = typist.receiver(scope, &around).or_else(bare) else { return nothing };
            for h in around.world.having(&ty) {
                offers.add(rank(&h), &h.member.name, h.member.kind.word(), &h.member.signature, &h.member.doc);
            }
            if text_before(code, &at).contains("async") || is_future(&around.world, &ty) {
                offers.add(200, "await", "keyword", "", "");
            }
        }
        What::Path(path) => {
            let world = around(if at.import { "xlazy_name" } else { "xlazy_name()" }).world;
            paths(&mut offers, &world, code, &at, path);
        }
        What::Field(path, there) => {
            let world = around("xlazy_name: 0").world;
            fields(&mut offers, &world, path, there);
            if offers.found.is_empty() {
                plain(&mut offers, &world, scope, code, &at);
            }
        }
        What::Pattern => {
            let world = around("xlazy_name").world;
            patterns(&mut offers, &world, scope, code, &at);
        }
        What::Defined(path, word, there) => {
            let world = around("xlazy_name() {}").world;
            let def = world.find(path).and_then(|f| if let Found::Type(path) = f { Some(path) } else { None });
            let kinds: &[Kind] = match &**word {
                "fn" => &[Kind::Function, Kind::Method],
                "const" => &[Kind::Constant],
                _ => &[Kind::Type],
            };
            let def = def.and_then(|path| world.def(&path)).filter(|d| d.kind == Kind::Trait);
            let members = def.into_iter().flat_map(|d| &d.members);
            for m in members.filter(|m| kinds.contains(&m.kind) && !there.contains(&m.name)) {
                offers.add(1, &m.name, m.kind.word(), &m.signature, &m.doc);
            }
        }
        What::Derive => DERIVES.iter().for_each(|d| offers.add(1, d, "trait", "", "")),
        What::Attribute => ATTRIBUTES.iter().for_each(|a| offers.add(1, a, "attribute", "", "")),
        What::Lint => LINTS.iter().for_each(|l| offers.add(1, l, "lint", "", "")),
        What::Type => types(&mut offers, &around("xlazy_name").world),
        What::Formatted => {
            variables(&mut offers, scope, code, &at);
            let constants = scope.items.iter().filter(|i| matches!(i.kind, "constant" | "static"));
            constants.for_each(|i| offers.add(3, &i.name, i.kind, &i.signature, ""));
        }
        What::Name => plain(&mut offers, &around("xlazy_name").world, scope, code, &at),
    }
    offers.end(at.word.start, at.word.end)
}

fn text_before<'a>(code: &'a str, at: &Cursor) -> &'a str {
    &code[..at.word.start]
}

fn is_future(world: &World, ty: &Ty) -> bool {
    matches!(ty, Ty::Traits(_, all) if all.iter().any(|(name, _)| last(name) == "Future"))
        || world.having(ty).iter().any(|h| h.owner == "Future")
}

/// Fields first, then what is the type's own, then traits, and those at the end that everything has.
fn rank(h: &Having) -> u8 {
    let step = h.step.min(20) as u8;
    match h.member.kind {
        Kind::Field => 1 + step,
        _ if !h.of_trait => 30 + step,
        _ if COMMON.contains(&h.owner.as_str()) => 150,
        _ => 60 + step,
    }
}

fn paths(offers: &mut Offers, world: &World, code: &str, at: &Cursor, path: &[String]) {
    let own = |e: &Entry| e.elsewhere.as_ref().is_none_or(|p| !p.starts_with("primitive::"));
    let module = |offers: &mut Offers, path: &str| {
        world.entries(path).into_iter().filter(own).for_each(|e| offers.entry(1, world, e));
    };
    match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            world.crates.iter().for_each(|c| offers.add(1, c, "module", "", ""));
            ["crate", "self", "super"].iter().for_each(|k| offers.add(3, k, "keyword", "", ""));
            return module(offers, "");
        }
        ["crate" | "self" | "super"] => return module(offers, ""),
        _ => {}
    }
    let mut path = path.to_vec();
    if let ([name], true) = (&path[..], world.parameters.contains_key(&path[0])) {
        return world.of_parameter(name).iter().for_each(|h| associated(offers, h));
    }
    if path[0] == "Self" {
        let Some(ty) = implemented(&code[..at.word.start]) else { return };
        path.splice(0..1, ty);
    }
    if matches!(&*path[0], "crate" | "self" | "super") {
        path.remove(0);
    }
    match world.find(&path) {
        Some(Found::Module(path)) => module(offers, &path),
        // A `use` names variants only.
        Some(Found::Type(path)) => {
            for h in world.associated(&path).into_iter().filter(|h| !at.import || h.member.kind == Kind::Variant) {
                associated(offers, &h);
            }
        }
        Some(Found::Item(_) | Found::Member(..)) | None => {}
    }
}

fn associated(offers: &mut Offers, h: &Having) {
    let rank = match h.member.kind {
        Kind::Variant => 1,
        Kind::Function if !h.of_trait => 2,
        Kind::Constant => 3,
        _ if !h.of_trait => 4,
        Kind::Function => 5,
        _ => 6,
    };
    offers.add(rank, &h.member.name, h.member.kind.word(), &h.member.signature, &h.member.doc);
}

/// The path of the type whose `impl` the end of the text is in.
fn implemented(before: &str) -> Option<Vec<String>> {
    let all = tokens(before);
    let mut known: Vec<_> = all.iter().filter(|t| t.kind != Token::Comment).collect();
    while let Some(open) = cursor::enclosing(&known) {
        let head = &known[..open];
        let start = head.iter().rposition(|t| matches!(&before[t.range.clone()], "impl" | "trait" | ";" | "}" | "{"));
        if start.is_some_and(|s| &before[head[s].range.clone()] == "impl") {
            let bounded = head.iter().rposition(|t| &before[t.range.clone()] == "where").filter(|w| Some(*w) > start);
            let path = cursor::path_before(before, &head[..bounded.unwrap_or(head.len())]);
            return Some(path).filter(|p| !p.is_empty());
        }
        known.truncate(open);
    }
    None
}

fn fields(offers: &mut Offers, world: &World, path: &[String], there: &[String]) {
    for m in world.fields_of(path).iter().filter(|m| !there.contains(&m.name)) {
        offers.add(1, &m.name, "field", &m.signature, &m.doc);
    }
}

fn variables(offers: &mut Offers, scope: &InScope, code: &str, at: &Cursor) {
    bindings(text_before(code, at)).iter().for_each(|b| offers.add(0, b, "variable", "", ""));
    scope.vars.iter().for_each(|v| offers.add(2, &v.name, "variable", &short(&v.type_name), ""));
}

/// What may stand where a type does.
fn types(offers: &mut Offers, world: &World) {
    let is_type = |e: &Entry| {
        matches!(
            world.shown(e.clone()).kind,
            Kind::Struct | Kind::Enum | Kind::Union | Kind::Trait | Kind::Type | Kind::Module
        )
    };
    let imported = world.imports.iter().filter(|(name, _)| name != "_").map(|(name, path)| {
        let (signature, doc) = Default::default();
        Entry { name: name.clone(), kind: Kind::Type, signature, doc, elsewhere: Some(path.clone()) }
    });
    let near = world.entries("").into_iter().chain(imported).map(|e| (3, e));
    let far = world.globs.iter().flat_map(|g| world.entries(g)).map(|e| (6, e));
    let all: Vec<(u8, Entry)> = near.chain(far).filter(|(_, e)| is_type(e)).collect();
    PRIMITIVES.iter().for_each(|p| offers.add(1, p, "type", "", ""));
    world.parameters.keys().filter(|p| !p.contains(':')).for_each(|p| offers.add(0, p, "type", "", ""));
    if !offers.word.is_empty() {
        all.into_iter().for_each(|(rank, e)| offers.entry(rank, world, e));
        for path in PRELUDE {
            let (signature, doc) = Default::default();
            let (name, elsewhere) = (last(path).to_owned(), Some((*path).to_owned()));
            let entry = Entry { name, kind: Kind::Type, signature, doc, elsewhere };
            if is_type(&entry) {
                offers.entry(7, world, entry);
            }
        }
        ["dyn", "impl", "fn", "Self"].iter().for_each(|k| offers.add(10, k, "keyword", "", ""));
        world.crates.iter().for_each(|c| offers.add(11, c, "module", "", ""));
    }
}

/// What can be matched by its name.
fn patterns(offers: &mut Offers, world: &World, scope: &InScope, code: &str, at: &Cursor) {
    if !offers.word.is_empty() {
        plain(offers, world, scope, code, at);
        let words = ["struct", "enum", "variant", "constant", "type", "module"];
        offers.found.retain(|(_, c)| words.contains(&&*c.kind) || matches!(&*c.text, "mut" | "ref"));
    }
}

/// Everything that a name may stand for.
fn plain(offers: &mut Offers, world: &World, scope: &InScope, code: &str, at: &Cursor) {
    variables(offers, scope, code, at);
    world.entries("").into_iter().for_each(|e| offers.entry(3, world, e));
    scope.items.iter().for_each(|i| offers.add(4, &i.name, i.kind, &i.signature, ""));
    for (name, path) in world.imports.iter().filter(|(name, _)| name != "_") {
        let (signature, doc) = Default::default();
        let elsewhere = Some(path.clone());
        offers.entry(5, world, Entry { name: name.clone(), kind: Kind::Type, signature, doc, elsewhere });
    }
    // Where nothing is typed yet, all that everybody always has is no help.
    if offers.word.is_empty() {
        return;
    }
    world.globs.iter().flat_map(|g| world.entries(g)).for_each(|e| offers.entry(6, world, e));
    for path in PRELUDE {
        let (signature, doc) = Default::default();
        let (name, elsewhere) = (last(path).to_owned(), Some((*path).to_owned()));
        offers.entry(7, world, Entry { name, kind: Kind::Type, signature, doc, elsewhere });
    }
    world.entries("std").into_iter().filter(|e| e.kind == Kind::Macro).for_each(|e| offers.entry(8, world, e));
    PRIMITIVES.iter().for_each(|p| offers.add(9, p, "type", "", ""));
    KEYWORDS.iter().for_each(|k| offers.add(10, k, "keyword", "", ""));
    world.crates.iter().for_each(|c| offers.add(11, c, "module", "", ""));
}
