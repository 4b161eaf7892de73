//! Candidates for the word before the cursor.
use super::arms;
use super::before::{enclosing, path_at, path_before};
use super::catalog::{Catalog, Entry, Kind, Member};
use super::cursor::{self, Cursor, What};
use super::generic::parameters;
use super::hollow::hollowed;
use super::magic;
use super::names::{Offers, items, lifetimes, patterns, plain, types, variables, with_tokens};
use super::place::{Body, modules_around, takes_type};
use super::probe::{METHOD, Prober};
use super::repair::repaired;
use super::runtime;
use super::scope::InScope;
use super::ty::{Ty, last};
use super::words::{COMMON, DERIVES};
use super::world::{Found, Having, World};
use crate::engine::Completions;
use crate::eval::parse::segments::{Segment, asked, blank_between, segments};
use crate::eval::text::depth;
use crate::eval::text::scan::{Kind as Token, tokens};
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
        self.type_in(scope, around.repaired.as_ref()?)
    }

    /// The type that [`METHOD`] is called on in a cell's text, which parses to the block.
    pub fn type_in(&self, scope: &InScope, (text, block): &(String, syn::Block)) -> Option<Ty> {
        let cell = hollowed(text, block, METHOD);
        Ty::printed(&self.prober.receiver(scope.context.as_ref()?, &scope.vars, &scope.open, &cell)?)
    }
}

pub struct Around {
    pub world: World,
    pub repaired: Option<(String, syn::Block)>,
}

/// Nobody types into a longer cell.
const LONGEST: usize = 1 << 18;

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
            let text = &code[line.clone()];
            let named = asked(text).or_else(|| Some(magic::rust(text)?..text.len()));
            named.filter(|_| within).map(|at| line.start + at.start..line.start + at.end)
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

pub fn complete(typist: &Typist, scope: &InScope, names: Names, code: &str, cursor: usize) -> Completions {
    let nothing = Completions { start: cursor, end: cursor, matches: Vec::new() };
    if !is_typed(code) {
        return nothing;
    }
    let mut asked = Vec::new();
    if let Some(line) = special(scope, code, cursor) {
        let text = &code[line.clone()];
        match magic::candidates(scope, text) {
            Some((_, words)) if magic::asks(text) => asked = words,
            Some((start, words)) => {
                let start = line.start + start;
                let mut offers = Offers::of(&code[start..cursor]);
                words.iter().for_each(|(text, kind, detail)| offers.add(0, text, kind, detail, ""));
                return offers.end(start, cursor);
            }
            None if magic::rust(text).is_none() => return nothing,
            None => {}
        }
    }
    let all = code;
    let code = &rust(scope, all, cursor);
    // In a magic that takes no Rust, or that there is not.
    if all[..cursor].ends_with(|c: char| !c.is_whitespace()) && code[..cursor].ends_with(' ') {
        return nothing;
    }
    let at = cursor::read(code, cursor);
    let mut offers = Offers::of(&code[at.word.clone()]);
    if at.what == What::Name {
        asked.iter().for_each(|(text, kind, detail)| offers.add(0, text, kind, detail, ""));
    }
    let around = |instead| typist.around(scope, names, code, &at, instead);
    if let Some(there) = listed(code, &at)
        && let Some(path) = implemented(text_before(code, &at))
    {
        fields(&mut offers, &around("xlazy_name").world, &path, &there);
        return offers.end(at.word.start, at.word.end);
    }
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
            let no_call = at.import || in_type(text_before(code, &at));
            let world = around(if no_call { "xlazy_name" } else { "xlazy_name()" }).world;
            paths(&mut offers, &world, code, &at, path);
        }
        What::Field(path, there) => {
            let world = around("xlazy_name: 0").world;
            let path = without_self(path, text_before(code, &at)).unwrap_or_default();
            if !fields(&mut offers, &world, &path, there) {
                plain(&mut offers, &world, scope, code, &at);
            }
        }
        What::Pattern => patterns(&mut offers, &around("xlazy_name").world, scope, code, &at),
        What::Arm(arm) => {
            // Asked as `(what it is about).method()`.
            let (before, about) = (&code[..arm.start], &code[arm.about.clone()]);
            let end = Cursor { word: before.len()..before.len(), what: What::Member, import: false };
            let asked = typist.around(scope, names, before, &end, &format!("({}).{METHOD}()", about.trim()));
            if let Some(ty) = typist.receiver(scope, &asked) {
                arms::variants(&mut offers, &asked.world, ty, arm);
            }
            patterns(&mut offers, &around("xlazy_name").world, scope, code, &at);
        }
        What::Item(body) => items(&mut offers, &around("fn xlazy_name() {}").world, *body),
        What::Defined(path, word, there) => {
            let world = around(if word.is_empty() { "fn xlazy_name() {}" } else { "xlazy_name() {}" }).world;
            let def = world.find(path).and_then(|f| if let Found::Type(path) = f { Some(path) } else { None });
            let kinds: &[Kind] = match &**word {
                "" => &[Kind::Function, Kind::Method, Kind::Constant, Kind::Type],
                "fn" => &[Kind::Function, Kind::Method],
                "const" => &[Kind::Constant],
                _ => &[Kind::Type],
            };
            let def = def.and_then(|path| world.def(&path)).filter(|d| d.kind == Kind::Trait);
            let members = def.into_iter().flat_map(|d| &d.members);
            for m in members.filter(|m| kinds.contains(&m.kind) && !there.contains(&m.name)) {
                match word.is_empty() {
                    true => offers.add(0, &whole(m), m.kind.word(), &m.signature, &m.doc),
                    false => offers.add(1, &m.name, m.kind.word(), &m.signature, &m.doc),
                }
            }
            if word.is_empty() {
                // A model's layers are named in it.
                if path.last().is_some_and(|name| name.ends_with("Module")) {
                    offers.add(0, "parts!", "macro", "parts!(layer, …)", "");
                }
                items(&mut offers, &world, Body::Trait);
            }
        }
        What::Derive => DERIVES.iter().for_each(|d| offers.add(1, d, "trait", "", "")),
        What::OneOf(words, kind) => words.iter().for_each(|w| offers.add(1, w, kind, "", "")),
        What::Type => {
            // Without a body, what a function returns is no function's.
            let returned = text_before(code, &at).trim_end().ends_with("->");
            types(&mut offers, &around(if returned { "xlazy_name {}" } else { "xlazy_name" }).world);
        }
        What::Lifetime | What::Label => lifetimes(&mut offers, code, &at),
        What::File(start) => {
            let Some((start, words)) = magic::files(&code[..cursor], *start, None) else { return nothing };
            let mut offers = Offers::of(&code[start..cursor]);
            words.iter().for_each(|(text, kind, _)| offers.add(0, text, kind, "", ""));
            return offers.end(start, cursor);
        }
        What::Formatted => {
            variables(&mut offers, scope, code, &at);
            let constants = scope.items().iter().filter(|i| matches!(i.kind, "constant" | "static"));
            constants.for_each(|i| offers.add(3, &i.name, i.kind, &i.signature, ""));
        }
        What::Name => plain(&mut offers, &around("xlazy_name").world, scope, code, &at),
    }
    offers.end(at.word.start, at.word.end)
}

fn text_before<'a>(code: &'a str, at: &Cursor) -> &'a str {
    &code[..at.word.start]
}

/// The fields that a `parts!` around the cursor names already.
fn listed(code: &str, at: &Cursor) -> Option<Vec<String>> {
    let call = cursor::macro_around(code, at.word.start).filter(|call| code[call.clone()].starts_with("parts"))?;
    let inside = tokens(&code[call.end..at.word.start]);
    Some(inside.into_iter().map(|t| code[call.end..][t.range].to_owned()).collect())
}

/// Whether the path that ends there stands where a type does.
fn in_type(before: &str) -> bool {
    with_tokens(before, |known| {
        let path = known.len().checked_sub(2).and_then(|colons| path_at(before, &known[..colons]));
        path.is_some_and(|(_, start)| takes_type(before, &known[..start]))
    })
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
    if path.is_empty() {
        world.crates.iter().for_each(|c| offers.add(1, c, "module", "", ""));
        ["crate", "self", "super"].iter().for_each(|k| offers.add(3, k, "keyword", "", ""));
        return module(offers, "");
    }
    if let ([name], true) = (path, world.parameters.contains_key(&path[0])) {
        return world.of_parameter(name).iter().for_each(|h| associated(offers, h));
    }
    let Some(mut path) = without_self(path, text_before(code, at)) else { return };
    if matches!(&*path[0], "crate" | "self" | "super") {
        let before = text_before(code, at);
        let mut modules = with_tokens(before, |known| modules_around(before, known));
        while let Some(word) = path.first().filter(|p| matches!(&***p, "crate" | "self" | "super")) {
            match &**word {
                "crate" => modules.clear(),
                "super" => drop(modules.pop()),
                _ => {}
            }
            path.remove(0);
        }
        path.splice(0..0, modules);
        if path.is_empty() {
            return module(offers, "");
        }
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

/// A path with the name of the type in place of its `Self`.
pub(super) fn without_self(path: &[String], before: &str) -> Option<Vec<String>> {
    match path.split_first() {
        Some((first, rest)) if first == "Self" => Some([implemented(before)?, rest.to_vec()].concat()),
        _ => Some(path.to_vec()),
    }
}

/// An item of a trait's as it begins in an `impl`.
fn whole(m: &Member) -> String {
    match m.kind {
        Kind::Constant => format!("{} = ", m.signature.split(" = ").next().unwrap_or_default()),
        Kind::Type => format!("type {} = ", m.name),
        _ => format!("{} {{ todo!() }}", m.signature.split(" where Self: Sized").next().unwrap_or_default()),
    }
}

/// The path of the type whose `impl` the end of the text is in.
fn implemented(before: &str) -> Option<Vec<String>> {
    let all = tokens(before);
    let mut known: Vec<_> = all.iter().filter(|t| t.kind != Token::Comment).collect();
    while let Some(open) = enclosing(&known) {
        let head = &known[..open];
        let start = head.iter().rposition(|t| matches!(&before[t.range.clone()], "impl" | "trait" | ";" | "}" | "{"));
        if start.is_some_and(|s| &before[head[s].range.clone()] == "impl") {
            let bounded = head.iter().rposition(|t| &before[t.range.clone()] == "where").filter(|w| Some(*w) > start);
            let path = path_before(before, &head[..bounded.unwrap_or(head.len())]);
            return Some(path).filter(|p| !p.is_empty());
        }
        known.truncate(open);
    }
    None
}

/// The fields of a struct or a variant that are not there yet; whether it has any.
fn fields(offers: &mut Offers, world: &World, path: &[String], there: &[String]) -> bool {
    let all = world.fields_of(path);
    let left = all.iter().filter(|m| !there.contains(&m.name) && !m.name.starts_with(|c: char| c.is_ascii_digit()));
    left.for_each(|m| offers.add(1, &m.name, "field", &m.signature, &m.doc));
    !all.is_empty()
}
