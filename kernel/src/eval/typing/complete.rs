//! Candidates for the word before the cursor.
use super::bindings::bindings;
use super::catalog::{Catalog, Entry, Kind};
use super::cursor::{self, Cursor, What};
use super::magic;
use super::probe::{METHOD, Prober};
use super::repair::repaired;
use super::runtime;
use super::scope::InScope;
use super::ty::{Ty, bounds, last};
use super::words::{COMMON, DERIVES, KEYWORDS};
use super::world::{Found, Having, PRELUDE, World};
use crate::engine::{Candidate, Completions};
use crate::eval::parse::segments::{Segment, blank_between, segments};
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
        Around { world: scope.world(cell, own), repaired }
    }

    /// The type of the receiver before the word.
    pub fn receiver(&self, scope: &InScope, around: &Around) -> Option<Ty> {
        let (text, block) = around.repaired.as_ref()?;
        let printed = self.prober.receiver(scope.context.as_ref()?, &scope.vars, text)?;
        let ty = Ty::printed(&printed)?;
        Some(parameter(block, &ty).unwrap_or(ty))
    }
}

pub struct Around {
    pub world: World,
    pub repaired: Option<(String, syn::Block)>,
}

/// Of a type parameter, the traits that it is bound by.
fn parameter(block: &syn::Block, ty: &Ty) -> Option<Ty> {
    struct Bounds<'a>(&'a str, Vec<(String, Vec<Ty>)>, bool);
    impl<'ast> syn::visit::Visit<'ast> for Bounds<'_> {
        fn visit_type_param(&mut self, p: &'ast syn::TypeParam) {
            if p.ident == self.0 {
                self.2 = true;
                self.1.extend(bounds(p.bounds.iter()));
            }
        }
        fn visit_predicate_type(&mut self, p: &'ast syn::PredicateType) {
            if Ty::of(&p.bounded_ty) == Ty::Path(self.0.to_owned(), Vec::new()) {
                self.1.extend(bounds(p.bounds.iter()));
            }
        }
    }
    let (name, wrap): (&str, fn(Ty) -> Ty) = match ty {
        Ty::Path(name, args) if args.is_empty() => (name, |t| t),
        Ty::Ref(_, t) => match &**t {
            Ty::Path(name, args) if args.is_empty() => (name, |t| Ty::Ref(false, Box::new(t))),
            _ => return None,
        },
        _ => return None,
    };
    let mut found = Bounds(name, Vec::new(), false);
    syn::visit::Visit::visit_block(&mut found, block);
    found.2.then(|| wrap(Ty::Traits("impl", found.1)))
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
        // `?x.le` asks about an expression.
        Segment::Command(line) => {
            let within = line.start <= cursor && cursor <= line.end;
            magic::rust(&code[line.clone()])
                .filter(|_| within && code[line.clone()].starts_with('?'))
                .map(|at| line.start + at..line.end)
        }
    };
    blank_between(code, segments(code, &known).into_iter().filter_map(range))
}

/// The line of a magic, or of a command, that the cursor is in.
fn special(scope: &InScope, code: &str, cursor: usize) -> Option<std::ops::Range<usize>> {
    let known = |name: &str| scope.knows(name);
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
    let code = &rust(scope, code, cursor);
    let at = cursor::read(code, cursor);
    let mut offers = Offers { word: code[at.word.clone()].to_owned(), found: Vec::new(), seen: HashSet::new() };
    let around = |instead| typist.around(scope, names, code, &at, instead);
    match &at.what {
        What::Nothing => return nothing,
        What::Member => {
            let around = around(&format!("{METHOD}()"));
            let Some(ty) = typist.receiver(scope, &around) else { return nothing };
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
        What::Derive => DERIVES.iter().for_each(|d| offers.add(1, d, "trait", "", "")),
        What::Formatted => variables(&mut offers, scope, code, &at),
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
        }
        Some(Found::Item(_) | Found::Member(..)) | None => {}
    }
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
    match world.find(path) {
        Some(Found::Type(path)) => {
            let def = world.def(&path);
            let target = def.and_then(|d| d.target.as_ref()).and_then(|t| world.type_of(t));
            for m in target.or(def).iter().flat_map(|d| &d.members).filter(|m| m.kind == Kind::Field) {
                if !there.contains(&m.name) {
                    offers.add(1, &m.name, "field", &m.signature, &m.doc);
                }
            }
        }
        Some(Found::Member(_, variant)) => {
            let named = format!("enum E {{ {} }}", variant.signature);
            let Ok(parsed) = syn::parse_str::<syn::ItemEnum>(&named) else { return };
            for f in parsed.variants.iter().flat_map(|v| &v.fields) {
                let (Some(name), ty) = (&f.ident, Ty::of(&f.ty)) else { continue };
                if !there.contains(&name.to_string()) {
                    offers.add(1, &name.to_string(), "field", &format!("{name}: {ty}"), "");
                }
            }
        }
        _ => {}
    }
}

fn variables(offers: &mut Offers, scope: &InScope, code: &str, at: &Cursor) {
    bindings(text_before(code, at)).iter().for_each(|b| offers.add(0, b, "variable", "", ""));
    scope.vars.iter().for_each(|v| offers.add(2, &v.name, "variable", &short(&v.type_name), ""));
}

/// Everything that a name may stand for.
fn plain(offers: &mut Offers, world: &World, scope: &InScope, code: &str, at: &Cursor) {
    variables(offers, scope, code, at);
    world.entries("").into_iter().for_each(|e| offers.entry(3, world, e));
    scope.items.iter().for_each(|i| offers.add(4, &i.name, i.kind, &i.signature, ""));
    for (name, path) in &world.imports {
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
    let primitives = world.entries("std").into_iter().filter(|e| e.kind == Kind::Primitive);
    let written = |e: &Entry| {
        !matches!(&*e.name, "array" | "fn" | "never" | "pointer" | "reference" | "slice" | "tuple" | "unit")
    };
    primitives.filter(written).for_each(|e| offers.add(9, &e.name, "type", "", ""));
    KEYWORDS.iter().for_each(|k| offers.add(10, k, "keyword", "", ""));
    world.crates.iter().for_each(|c| offers.add(11, c, "module", "", ""));
}
