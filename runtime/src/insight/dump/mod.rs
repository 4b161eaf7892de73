//! Programs that were written down by others, in StableHLO or HLO text, as evidence: what differs between two of them is
//! explained by the same causes as what xlazy compiles.
mod cli;
mod flatten;
mod folder;
mod hlo;
mod kinds;
mod lazy;
mod locations;
mod mlir;
mod module;
mod ops;
mod page;
mod tokens;
mod torch_trace;
mod write;

use super::causes::compare;
use super::evidence::Evidence;
use super::mode::Derived;
use super::record::{self, LeafRecord, Record, Text};
use super::report::{Explanation, Place};
pub use cli::{cli_main, why_json};
use flatten::{Flat, Flattened, flatten};
use module::{From, Line, Unread};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use xlazy_core::ir::{Attr, AttrDef, Input, Kind, OpDef, Origin, Step, attr};
use xlazy_core::run::Cause;
use xlazy_core::text::{Held, sources};

/// A program's text and what it is called in messages.
pub struct Dump<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

/// Why two programs differ; `None` where they do not.
///
/// Errors: a text that is neither StableHLO nor HLO, or that breaks off, with its line.
pub fn explain_dumps(old: &Dump, new: &Dump) -> Result<Option<Explanation>, String> {
    let (flat, before) = (read(new)?, read(old)?);
    let defs = Defs::of([&flat, &before]);
    let mut sources = sources();
    let site = sources.named(new.name, flat.line, 1);
    let ran = |place| Ran { site, place, cause: Cause::Sync, call: None, lazy: false, reads: &[] };
    let was = record(old, &before, &defs, ran(0), &mut sources);
    let now = record(new, &flat, &defs, ran(1), &mut sources);
    drop(sources);
    Ok(between(was, now))
}

/// Why one program is not the other.
fn between(mut was: Record, mut now: Record) -> Option<Explanation> {
    identify(&mut was.leaves, &mut now.leaves);
    let was = Arc::new(was);
    compare(Evidence::of(&now, &was, std::slice::from_ref(&was)))
}

/// Creation numbers of a program, before those of the next.
const LATER: u64 = 1 << 40;

/// What is one of its kind in both programs, by its name and line, or these and its type, is the same tensor in both.
fn identify(was: &mut [LeafRecord], now: &mut [LeafRecord]) {
    for typed in [false, true] {
        let mut marks: HashMap<u64, [Vec<usize>; 2]> = HashMap::new();
        for (side, leaves) in [&*was, &*now].into_iter().enumerate() {
            for (i, l) in leaves.iter().enumerate().filter(|(_, l)| l.lineage == l.seq) {
                marks.entry(number((l.line, typed.then_some(&l.ty)))).or_default()[side].push(i);
            }
        }
        for (mark, both) in marks {
            if let ([i], [j]) = (&both[0][..], &both[1][..]) {
                (was[*i].lineage, now[*j].lineage) = (mark | 1 << 63, mark | 1 << 63);
            }
        }
    }
}

/// What a compilation was of, as StableHLO text that names the lines of the user's code; `None` where it is kept no longer.
pub fn text_of_compilation(number: u64) -> Option<String> {
    super::history::record(number).map(|r| write::written(&r))
}

/// The languages in which programs are written down.
#[derive(Clone, Copy, PartialEq)]
enum Language {
    Hlo,
    StableHlo,
    Lazy,
}

/// Which of them this is.
fn language(text: &str) -> Option<Language> {
    let first = text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with("//"))?;
    match first {
        _ if first.starts_with("HloModule") => Some(Language::Hlo),
        "IR {" => Some(Language::Lazy),
        _ => text.contains("func.func").then_some(Language::StableHlo),
    }
}

fn no_program(name: &str) -> String {
    format!("{name} is neither StableHLO text (`func.func`) nor HLO text (`HloModule`)")
}

fn read(dump: &Dump) -> Result<Flat, String> {
    read_with(dump, &[])
}

/// `own` are lines of the user's that are known otherwise.
fn read_with(dump: &Dump, own: &[Line]) -> Result<Flat, String> {
    let module = match language(dump.text) {
        Some(Language::Hlo) => hlo::read(dump.text),
        Some(Language::StableHlo) => mlir::read(dump.text),
        Some(Language::Lazy) => lazy::read(dump.text, own),
        None => return Err(no_program(dump.name)),
    };
    let unread = |Unread { line, why }| format!("{}:{line}: {why}", dump.name);
    let mut flat = module.and_then(|m| flatten(&m)).map_err(unread)?;
    flat.steps = with_lines(flat.steps);
    Ok(flat)
}

/// The operations of programs as definitions: of one name there is one, with all attributes that it has anywhere.
struct Defs(HashMap<String, &'static OpDef>);

/// What feeds a program.
static INPUT: OpDef = OpDef::new("input", |_| Err("an input is not computed".into()), |l| l.x(0)).kind(Kind::Data);

impl Defs {
    fn of<'a>(programs: impl IntoIterator<Item = &'a Flat>) -> Defs {
        let mut names: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        for step in programs.into_iter().flat_map(|p| &p.steps) {
            names.entry(&step.name).or_default().extend(step.attributes.iter().map(|(key, _)| &**key));
        }
        let def = |(name, keys): (&str, BTreeSet<&str>)| {
            // What the result's type alone says.
            let own = [("shape", ops::sizes_itself(name)), ("dtype", ops::kind(name) == Kind::Convert)];
            let own = own.into_iter().filter(|(_, has)| *has).map(|(key, _)| key);
            let keys = keys.into_iter().chain(own).chain(["element"]);
            (name.to_owned(), definition(name, keys.map(str::to_owned).collect()))
        };
        Defs(names.into_iter().map(def).collect())
    }
}

/// The definition of an operation with these attributes. They stay, one for each.
fn definition(name: &str, keys: Vec<String>) -> &'static OpDef {
    static ALL: Mutex<BTreeMap<(String, Vec<String>), &'static OpDef>> = Mutex::new(BTreeMap::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.entry((name.to_owned(), keys.clone())).or_insert_with(|| {
        let one = |key: String| {
            let role = ops::role(&key);
            attr(key.leak(), role)
        };
        let attrs: Vec<AttrDef> = keys.into_iter().map(one).collect();
        let def = OpDef::new(String::from(name).leak(), |_| Err("a text is not computed".into()), |l| l.x(0));
        Box::leak(Box::new(def.attrs(attrs.leak()).kind(ops::kind(name))))
    })
}

fn number(of: impl Hash) -> u64 {
    let mut h = DefaultHasher::new();
    of.hash(&mut h);
    h.finish()
}

/// What tells lines apart: the line of the user's where there is one, else the name that the framework gives the op.
fn identity(from: &From) -> u64 {
    match &from.at {
        Some(at) => number(at),
        None => from.name.as_ref().map_or(0, number),
    }
}

/// Where something is from; of what says nothing, where it stands in the text.
fn found(from: &From, dump: &Dump, line: u32, sources: &mut Held) -> Place {
    match &from.at {
        Some(at) => sources.named(&at.file, at.line, at.column),
        None => sources.named(dump.name, line, 1),
    }
}

/// Gradients are known by the names that frameworks give them.
fn derived(from: &From) -> Option<Derived> {
    let name = from.name.as_deref()?;
    let gradient = name.contains("transpose(jvp") || name.starts_with("gradient/");
    match name.starts_with("update/") {
        true => Some(Derived::Update),
        false => gradient.then_some(Derived::Gradient),
    }
}

/// The framework's own op, where it is made of this one and perhaps others: `integer_pow` of multiplications. Names of one op in two
/// languages are alike (`mul` and `multiply`, `generic_slice` and `slice`).
fn part_of(step: &Flattened) -> Option<Arc<str>> {
    let name = step.from.name.as_deref()?.rsplit('/').next()?;
    let own = name.rsplit("__").next()?;
    let stem = step.name.get(..3).unwrap_or(&step.name);
    (!own.is_empty() && !own.to_ascii_lowercase().contains(stem)).then(|| own.into())
}

/// A name that says more than which of the arguments it is.
fn given_name(from: &From) -> Option<String> {
    from.name.clone().filter(|name| !name.is_empty() && !name.contains('/') && name != "unknown")
}

/// What says nothing of where it is from, as constants that were moved, is from where it is needed.
fn with_lines(mut steps: Vec<Flattened>) -> Vec<Flattened> {
    for i in (0..steps.len()).rev() {
        let (before, rest) = steps.split_at_mut(i);
        let taker = &rest[0].from;
        for input in &rest[0].inputs {
            if let Input::Step(s) = input
                && let Some(step) = before.get_mut(*s as usize)
                && step.from.at.is_none()
            {
                (step.from.at, step.from.caller) = (taker.at.clone(), taker.caller.clone());
            }
        }
    }
    steps
}

/// When and why a program ran.
struct Ran<'a> {
    site: Place,
    /// Its place among those that are looked at together, from 0.
    place: u64,
    cause: Cause,
    /// The call that led to it, with which come the inputs that are from nowhere else.
    call: Option<Place>,
    /// Where its inputs are from is told by whoever took them last, so it does not tell which they are.
    lazy: bool,
    /// Where values were read since the last barrier.
    reads: &'a [Place],
}

fn record(dump: &Dump, flat: &Flat, defs: &Defs, ran: Ran, sources: &mut Held) -> Record {
    let since = ran.place * LATER;
    // What several have is no name of one.
    let mut names: HashMap<String, usize> = HashMap::new();
    flat.arguments.iter().filter_map(|a| given_name(&a.from)).for_each(|name| *names.entry(name).or_default() += 1);
    let leaf = |(i, a): (usize, &module::Argument)| {
        let name = given_name(&a.from).filter(|name| names[name] == 1);
        // Of what has neither a name nor a line the order tells.
        let line = if name.is_none() && (a.from.at.is_none() || ran.lazy) { 0 } else { number((&name, &a.from.at)) };
        let at = ran.call.filter(|_| a.from.at.is_none()).unwrap_or_else(|| found(&a.from, dump, a.line, sources));
        LeafRecord::read(ops::ty(&a.ty).0, flat.donated.contains(&i), at, line, since + i as u64 + 1, &INPUT, name)
    };
    let leaves: Vec<LeafRecord> = flat.arguments.iter().enumerate().map(leaf).collect();
    let first = since + leaves.len() as u64 + 1;
    let (mut lines, mut follows, mut parts, mut steps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (i, s) in flat.steps.iter().enumerate() {
        let op = defs.0[&s.name];
        let (ty, element) = ops::ty(&s.ty);
        let value = |def: &AttrDef| match def.name {
            "shape" => Attr::from(&ty.shape),
            "dtype" => Attr::DType(ty.dtype),
            "element" => Attr::Name(element.unwrap_or_default().into()),
            key => {
                let found = s.attributes.iter().find(|(k, _)| k == key);
                found.map_or_else(|| Attr::Name(Box::default()), |(_, value)| value.clone())
            }
        };
        let attrs: Box<[Attr]> = op.attrs.iter().map(value).collect();
        lines.push(identity(&s.from));
        follows.push(derived(&s.from));
        parts.push(part_of(s));
        let at = found(&s.from, dump, s.line, sources);
        let statement = s.from.caller.as_ref().map(|l| sources.named(&l.file, l.line, l.column));
        let (inputs, seq) = (s.inputs.clone().into(), first + i as u64);
        steps.push(Step { op, attrs, ty: ty.into(), inputs, at, statement, seq, origin: Origin::Op, recorded: false });
    }
    let hash = u128::from(number(dump.text));
    let reads = ran.reads.iter().map(|&at| record::Read { at, statement: None, seq: since }).collect();
    let (number, site, cause, roots) = (ran.place + 1, ran.site, ran.cause, flat.roots.clone());
    Record::read(Text { number, cause, reads, hash, site, steps, lines, derived: follows, parts, leaves, roots })
}
