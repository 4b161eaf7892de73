//! From a parsed cell to the source of a crate: a group of definitions, or the cell's statements.
use super::declared::OpenLet;
use super::definitions::Definitions;
use super::held::{Held, SINGLE, TENSOR};
use super::kept::{Along, along, kept};
use super::numbers::{load_with_others, value_with_others};
pub use super::plan::{Loaded, Plan};
use super::waiting;
use crate::eval::parse::checks::may_bring_any;
use crate::eval::parse::items::Item;
use crate::eval::parse::parsed::{Binding, Expanded, Parsed};
use crate::eval::text::hash::Fnv;
use crate::eval::text::scan::mentions;
use crate::eval::text::source::{CellText, Source, Splice, Tag, blanked, line_column};
use crate::eval::toolchain::rustc::ENTRY;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// The edition that text is tried as which today's refuses.
pub const OLDER: &str = "2021";

const ENTERED: &str = "#[unsafe(no_mangle)] ";
pub const NAME_IN_TEXT: &str = "g_0000000000000000";
const CELL_IN_TEXT: &str = "cell_0000000000000000";
/// A text that rustc has not been started with is included, which to rustc is a macro that made it.
const ALLOWED: &str = "#![allow(warnings, macro_expanded_macro_exports_accessed_by_absolute_paths)]";
const RUNTIME: &str = "#[macro_use(print, println, eprint, eprintln, dbg, format)] extern crate xlazy;";

/// The crate of the cell's items, together with items of earlier cells, linked to `links`: see `linked_to_group`. Its name is a hash
/// of its text.
pub fn group(
    cell: &Arc<CellText>,
    range: Range<usize>,
    parsed: &Parsed,
    moved: &[Item],
    rest: &Definitions,
    links: &Definitions,
    plan: &Plan,
) -> (String, Source) {
    let mut out = Source::default();
    let links = &links.not_exporting(parsed.items.iter().chain(moved));
    prologue(&mut out, "dylib", NAME_IN_TEXT, cell, parsed, links, plan);
    out.plain(&blank_lines_before(cell, &range));
    let (own, made): (Vec<&Item>, Vec<&Item>) = parsed.items.iter().partition(|i| i.call.is_none());
    let mut kept: Vec<Range<usize>> = own.iter().map(|i| i.range.clone()).collect();
    kept.extend(parsed.use_ranges.iter().cloned());
    kept.extend(parsed.macros_in(cell).map(|m| m.range.clone()));
    kept.extend(parsed.calls.iter().map(|c| c.call.range.clone()));
    kept.sort_by_key(|r| r.start);
    let item_edits = |i: &Item| {
        let own = |e: &&Splice| {
            !rest.takes(e, parsed, plan.shows) && !moved.iter().any(|m| m.names.iter().any(|name| is_of(e, name)))
        };
        i.edits.iter().filter(own).cloned().chain(plan.wrap(&i.values)).collect::<Vec<Splice>>()
    };
    let mut edits: Vec<Splice> = own.iter().flat_map(|i| item_edits(i)).collect();
    edits.extend(parsed.calls.iter().map(Expanded::edit));
    let mut from = range.start;
    for r in kept.iter().chain([&(range.end..range.end)]) {
        let gap = from..r.start;
        if gap.is_empty() {
            from = r.end;
            continue;
        }
        edits.push(Splice::replace(gap.clone(), blanked(&cell.text[gap])));
        from = r.end;
    }
    edits.sort_by_key(|e| e.range.start);
    out.user(cell, range, &edits);
    for item in made.into_iter().chain(moved) {
        out.plain("\n");
        let mut edits = item_edits(item);
        edits.sort_by_key(|e| e.range.start);
        out.user(&item.source, item.range.clone(), &edits);
    }
    out.plain("\n");
    for item in parsed.items.iter().chain(moved) {
        out.tell(&item.source, &item.syntax);
    }
    let name = format!("g_{:016x}", hash(&out.text));
    out.text = out.text.replacen(NAME_IN_TEXT, &name, 1);
    (name, out)
}

/// What a group of these items is linked to.
pub fn linked_to_group(
    cell: &CellText,
    range: &Range<usize>,
    parsed: &Parsed,
    moved: &[Item],
    rest: &Definitions,
    plan: &Plan,
) -> Definitions {
    let mut words = mentions(&cell.text[range.clone()]);
    words.extend(parsed.items.iter().chain(moved).flat_map(|i| i.mentions.iter().cloned()));
    if plan.all_groups { rest.clone() } else { rest.only(words) }
}

/// What a cell's statements are linked to.
pub fn linked_to(
    cell: &CellText,
    range: &Range<usize>,
    parsed: &Parsed,
    defs: &Definitions,
    loaded: &[Loaded],
    plan: &Plan,
) -> Definitions {
    let mut words = mentions(&cell.text[range.clone()]);
    let opens = loaded.iter().filter_map(|v| v.open.as_ref());
    let texts = opens.flat_map(|o| [Some(&o.text), o.like.as_ref()]).flatten();
    let types = loaded.iter().map(|v| plan.written_type(v));
    words.extend(types.chain(texts.chain(&parsed.later).cloned()).flat_map(|text| mentions(&text)));
    if plan.all_groups { defs.clone() } else { defs.only(words) }
}

fn hash(text: &str) -> u64 {
    let mut hash = Fnv::default();
    hash.add(text.as_bytes());
    hash.0
}

/// The crate that runs the cell's statements, named by a hash of its text. `defs` are in force already, the cell's own items included;
/// it is linked to `links`: see `linked_to`.
pub fn cell(
    cell: &Arc<CellText>,
    range: Range<usize>,
    parsed: &Parsed,
    defs: &Definitions,
    links: &Definitions,
    loaded: &[Loaded],
    plan: &Plan,
) -> Source {
    let mut out = Source::default();
    prologue(&mut out, "cdylib", CELL_IN_TEXT, cell, parsed, links, plan);
    out.plain(&format!(
        " {ENTERED}pub extern \"C-unwind\" fn {ENTRY}() {{ use ::xlazy::cell::rt as xlazy_rt; \
         use xlazy_rt::{{LoadHandle as _, LoadCopy as _, LoadMove as _, KeepHandle as _, KeepFuture as _, KeepIterator as _, KeepMove as _}};"
    ));
    let held = Held::new(parsed, loaded, plan);
    let frame = held.any();
    if frame {
        out.plain(
            " use xlazy_rt::{HoldHandle as _, HoldFuture as _, HoldIterator as _, HoldValue as _, GiveHandle as _, GiveCopy as _, GiveLoan as _, GiveMove as _, LendTensor as _, LendValue as _, LendSingle as _}; \
             let mut xlazy_frame = xlazy_rt::Frame::new(); let xlazy_f = xlazy_frame.holds();",
        );
        for n in plan.lends.keys() {
            out.plain(&format!(
                " let ({SINGLE}{n}, {TENSOR}{n}) = (xlazy_rt::Single, xlazy_rt::Single); \
                 let xlazy_of_{n} = (&{SINGLE}{n}, &{TENSOR}{n});"
            ));
        }
    }
    if let Some(with_tokio) = defs.deps.as_ref().and_then(|d| d.tokio.as_ref()) {
        out.plain(&format!(" let _xlazy_tokio = ::{with_tokio}::xlazy_enter();"));
    }
    let lends = |v: &&Loaded| v.is_view() || v.whole || v.views.is_some();
    let mut tied: Vec<&Loaded> = if held.is_tied() { loaded.iter().filter(lends).collect() } else { Vec::new() };
    tied.sort_by_key(|v| std::cmp::Reverse(v.lent_to().len()));
    let is_tied = |v: &Loaded| tied.iter().any(|t| t.name == v.name);
    let framed: Vec<(usize, &Loaded)> = held
        .variables()
        .filter_map(|(n, v)| Some((n, held.loaded(v).filter(|l| !is_tied(l) && held.is_framed(n))?)))
        .collect();
    // What is held is moved out of its box.
    let moves = |name: &String| plan.moved.contains(name) && !framed.iter().any(|(_, v)| v.name == *name);
    let load = |v: &Loaded| match held.looks(v) {
        true => {
            let (name, ty) = (&v.name, plan.written_type(v));
            match held.looks_for_longer(v) {
                true => format!(" let {name} = xlazy_rt::looked_at::<{ty}>(\"{name}\");"),
                false => format!(" let {name} = xlazy_rt::look::<{ty}>(xlazy_f, \"{name}\");"),
            }
        }
        false => load(v, held.is_reference(v), moves(&v.name), plan),
    };
    let outside = |v: &&Loaded| !framed.iter().any(|(_, f)| f.name == v.name) && !held.joined(&v.name) && !is_tied(v);
    for v in loaded.iter().filter(outside) {
        out.generated(Tag::Load(v.name.clone()), &load(v));
    }
    let (stop, catch) = match plan {
        Plan { inferred: true, .. } => ("_", "catch_as"),
        Plan { debug_errors: true, .. } => ("xlazy_rt::StopDebug", "catch_debug"),
        _ => ("xlazy_rt::Stop", "catch"),
    };
    // A body that moves a variable can be called once only, and that needs a detour which others need not pay for.
    let once = plan.moved.iter().any(moves);
    let start = if once {
        "let mut xlazy_body = ::core::option::Option::Some(".to_owned()
    } else {
        format!("let xlazy_done = xlazy_rt::{catch}(&mut ")
    };
    out.plain(&format!(" {start}|| -> ::core::result::Result<(), {stop}> {{"));
    if plan.asynchronous {
        out.plain("xlazy_rt::block_on(async {");
    }
    // What the cell does not mention is borrowed all the same.
    let there = |of: &String| tied.iter().any(|owner| owner.name == *of);
    let elsewhere: BTreeSet<&String> = tied.iter().flat_map(|v| v.of.keys()).filter(|of| !there(of)).collect();
    let mut begun: BTreeSet<&String> = BTreeSet::new();
    for of in elsewhere {
        for (k, view) in tied.iter().filter(|view| view.of.contains_key(of)).enumerate() {
            let loan = format!(" let mut {of} = (); let xlazy_loan = xlazy_rt::loan(&mut {of});");
            out.generated(Tag::Load(view.name.clone()), if k == 0 { &loan } else { "" });
            let first = begun.insert(&view.name).then(|| load(view));
            out.generated(Tag::Load(view.name.clone()), &held.tied(view, first));
        }
    }
    for view in tied.iter().filter(|view| view.whole && view.of.is_empty()) {
        let loan = " let mut xlazy_filled = (); let xlazy_loan = xlazy_rt::loan(&mut xlazy_filled);";
        begun.insert(&view.name);
        out.generated(Tag::Load(view.name.clone()), &format!("{loan}{}", held.tied(view, Some(load(view)))));
    }
    // What borrows another one is lent itself behind that.
    for owner in tied.iter().filter(|v| v.views.is_some()) {
        if begun.insert(&owner.name) {
            out.generated(Tag::Load(owner.name.clone()), &load(owner));
        }
        let changes = owner.views.as_ref().is_some_and(|v| v.change);
        let by = match changes {
            true if !owner.fixed => "&mut ",
            true if owner.written_type.starts_with("&mut ") => "&mut *",
            _ => "&",
        };
        let loan = format!(" let xlazy_loan = xlazy_rt::loan({by}{});", owner.name);
        out.generated(Tag::Load(owner.name.clone()), &loan);
        for view in tied.iter().filter(|view| owner.is_lent_to(&view.name)) {
            let first = begun.insert(&view.name).then(|| load(view));
            out.generated(Tag::Load(view.name.clone()), &held.tied(view, first));
        }
    }
    for (n, v) in framed.iter().filter(|(n, _)| held.back_at(*n).is_none()) {
        out.generated(Tag::Load(v.name.clone()), &load(v));
        let tag = if held.is_view(*n) { Tag::Load(v.name.clone()) } else { Tag::Hold(*n) };
        out.generated(tag, &held.hold(*n));
    }
    for later in &parsed.later {
        out.plain(&format!(" {later}"));
    }
    out.plain(&blank_lines_before(cell, &range));
    out.user(cell, range.clone(), &statement_edits(cell, parsed, defs, loaded, plan, &held));
    out.tell(cell, &parsed.syntax);
    out.plain("\n;");
    let ends = |name: &str| held.keeps(name) || held.borrows(name) || held.waits(name);
    let left = |b: &&Binding| !plan.spent.contains(&b.name) && !ends(&b.name);
    let places = &parsed.places;
    let takes = |name: &str| places.declared(name).map_or(Along::Variables, |n| along(&places.variables[n]));
    for b in parsed.bindings.iter().filter(left) {
        let level = plan.level_of_kept(&b.name, places);
        out.generated(Tag::Keep(b.name.clone()), &kept(&b.name, b.closure.as_deref(), level, takes(&b.name)));
    }
    // What was moved and assigned again is there.
    let bound = |name: &String| parsed.bindings.iter().any(|b| b.name == *name);
    for name in plan.moved.iter().filter(|n| moves(n) && !plan.spent.contains(*n) && !bound(n)) {
        out.generated(Tag::Keep(name.clone()), &kept(name, None, 0, Along::Variables));
    }
    for name in plan.spent.iter().filter(|n| parsed.rebound.contains(*n)) {
        // The variable that it shadows must not come back.
        out.plain(&format!(" xlazy_rt::forget(\"{name}\");"));
    }
    if frame {
        out.plain(" xlazy_f.done();");
    }
    out.plain(&format!(" ::core::result::Result::<(), {stop}>::Ok(())"));
    out.plain(if plan.asynchronous { " }) });" } else { " });" });
    if once {
        out.plain(&format!(
            " let xlazy_done = xlazy_rt::{catch}(&mut || match xlazy_body.take() {{ ::core::option::Option::Some(body) => body(), \
             ::core::option::Option::None => ::core::result::Result::Ok(()) }}); ::core::mem::drop(xlazy_body);"
        ));
    }
    // What is left in the store of a copy that was taken is not what it was.
    let copies = loaded.iter().filter(|v| v.lent && moves(&v.name)).map(|v| &v.name);
    for name in plan.mutated.iter().chain(copies).collect::<BTreeSet<_>>() {
        let only = if plan.spent.contains(name) { "" } else { "if !xlazy_done " };
        out.plain(&format!(" {only}{{ xlazy_rt::forget(\"{name}\"); }}"));
    }
    let taken = |v: &&Loaded| !held.is_reference(v);
    for v in loaded.iter().filter(outside).filter(taken).filter(|v| !moves(&v.name)) {
        let name = &v.name;
        let shadowed = parsed.bindings.iter().any(|b| b.name == *name);
        let only = if shadowed { "if !xlazy_done " } else { "" };
        let made = plan.made(v);
        if let Some(arguments) = made.and_then(|made| made.closure.as_deref()) {
            let closure = kept(name, Some(arguments), plan.level_of_kept(name, places), Along::Nothing);
            out.generated(Tag::Keep(name.clone()), &format!(" {only}{{ {closure} }}"));
            continue;
        }
        let back = match v.handle && made.is_none() {
            true => format!("xlazy_rt::Handle::keep({name}, \"{name}\")"),
            false => format!("(&&&xlazy_rt::Of::value(&{name})).keep(\"{name}\", {name})"),
        };
        out.generated(Tag::Restore(name.clone()), &format!(" {only}{{ {back}; }}"));
    }
    out.plain(" }\n");
    // Types that the cell declares inside are told apart by the crate's name.
    out.text = out.text.replacen(CELL_IN_TEXT, &format!("cell_{:016x}", hash(&out.text)), 1);
    out
}

/// What fetches a variable of an earlier cell.
fn load(v: &Loaded, is_reference: bool, moves: bool, plan: &Plan) -> String {
    let (name, ty) = (&v.name, &plan.written_type(v));
    if let Some(made) = plan.made(v) {
        return makes(v, made, ty, plan);
    }
    if plan.converted.contains(name)
        && let Some(others) = load_with_others(v, ty)
    {
        return others;
    }
    if v.lent {
        let lent = format!("xlazy_rt::lent::<{ty}>(\"{name}\")");
        return match is_reference {
            true => format!(" let {name}: &'static {ty} = {lent};"),
            false => format!(" let mut {name}: {ty} = ::core::clone::Clone::clone({lent});"),
        };
    }
    let back = match &v.views {
        Some(views) => format!(" xlazy_rt::reclaim::<{ty}>(\"{name}\", \"{}\");", views.names.join(" ")),
        None => String::new(),
    };
    let load = match v.handle {
        true => format!("<{ty} as xlazy_rt::Handle>::load"),
        false => format!("(&&&xlazy_rt::Of::<{ty}>::TYPE).load"),
    };
    // Of a handle that is moved away a copy stays, which must be what it was: rustc says where it is not.
    let fixed = v.fixed || moves && !plan.mutated.contains(name);
    let mutable = if fixed { "" } else { "mut " };
    format!("{back} let {mutable}{name}: {ty} = {load}(\"{name}\", {});", v.adopt)
}

/// Declares a variable of an earlier cell whose type is decided here. What may have changed since, or was computed, has its value.
fn makes(v: &Loaded, made: &OpenLet, ty: &str, plan: &Plan) -> String {
    let (name, text) = (&v.name, &made.text);
    let like = made.like.as_ref().filter(|_| !made.pending && !made.again(v.fixed));
    match like {
        // It may declare several.
        None if made.pending && made.names[0] != *name => String::new(),
        None if made.pending => format!(" {text}"),
        None => format!(" {}", made.alone(name)),
        Some(like) => {
            let Some(value) = value_with_others(v, ty) else {
                return load(&Loaded { open: None, ..v.clone() }, false, false, plan);
            };
            let fixed = if v.fixed { format!(" let {name} = {name};") } else { String::new() };
            format!(" let mut {name} = {like}; {name} = {value};{fixed}")
        }
    }
}

/// A cell's source as a library that other cells can link to.
#[derive(Debug, PartialEq)]
pub struct Library {
    pub name: String,
    pub text: String,
}

/// `None` where linking to it could do more than lend instances of generic functions: it exports symbols by name.
pub fn library(cell: &str) -> Option<Library> {
    const BY_NAME: [&str; 5] = ["no_mangle", "export_name", "link_section", "global_asm", "#[used"];
    let hash = cell.split_once(CELL_IN_TEXT.trim_end_matches('0'))?.1.split('"').next()?;
    let (of, name) = (format!("cell_{hash}"), format!("lent_{hash}"));
    let attributes = |name: &str, kind| crate_attributes(kind, name);
    let text = cell.strip_prefix(&attributes(&of, "cdylib"))?.replacen(ENTERED, "", 1);
    let plain = !BY_NAME.iter().any(|word| text.contains(word)) && !text.starts_with(&format!("{ALLOWED}/* edition"));
    plain.then(|| Library { text: attributes(&name, "rlib") + &text, name })
}

/// The groups that are named in an object.
pub fn groups_in(object: &[u8]) -> BTreeSet<String> {
    let (begin, whole) = (b"g_", NAME_IN_TEXT.len());
    let names = object.windows(whole).filter(|name| name.starts_with(begin));
    let names = names.filter(|name| name[begin.len()..].iter().all(u8::is_ascii_hexdigit));
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Whether a source is that of a cell's statements, which nothing links to.
pub fn is_cell(source: &str) -> bool {
    source.starts_with("#![crate_type=\"cdylib\"]")
}

/// What every cell's statements begin with, and these crates.
pub fn beginning<'a>(crates: impl Iterator<Item = &'a str>) -> String {
    let crates: String = crates.map(|name| format!(" extern crate {name} as _;")).collect();
    format!("{ALLOWED} {RUNTIME}{crates}")
}

/// The source of a cell's statements for who has read the beginning; every place stays. `None` where it begins otherwise, with
/// attributes of the user's, or names a library to link to, which rustc has to know from the start.
pub fn after_beginning(source: &str) -> Option<String> {
    let end = source.find(RUNTIME)? + RUNTIME.len();
    let plain = is_cell(source) && source[..end].matches("#!").count() == 3 && !source.contains("#[link");
    plain.then(|| " ".repeat(end) + &source[end..])
}

fn crate_attributes(crate_type: &str, name: &str) -> String {
    format!("#![crate_type=\"{crate_type}\"]#![crate_name=\"{name}\"]")
}

/// The generated text before the cell is one line, so that the cell's lines keep their numbers (`line!()` says them).
fn blank_lines_before(cell: &CellText, range: &Range<usize>) -> String {
    blanked(&cell.text[..range.start])
}

/// Everything on line 1: attributes, crates, what earlier cells defined, imported and called macros.
pub fn prologue(
    out: &mut Source,
    crate_type: &str,
    name: &str,
    cell: &Arc<CellText>,
    parsed: &Parsed,
    defs: &Definitions,
    plan: &Plan,
) {
    out.plain(&format!("{}{ALLOWED}", crate_attributes(crate_type, name)));
    if defs.uses.iter().chain(&parsed.uses).any(|u| may_bring_any(&u.binds)) {
        out.plain("#![deny(ambiguous_glob_imports)]");
    }
    if plan.opt_level > 0 {
        // Compiled otherwise, it is another crate.
        out.plain(&format!("/* opt {} */", plan.opt_level));
    }
    if plan.older {
        out.plain(&format!("/* edition {OLDER} */"));
    }
    // Documentation of the cell is for its readers; as a comment it would take the rest of the line with it.
    for r in parsed.inner_attributes.iter().filter(|r| cell.text[r.start..].starts_with('#')) {
        out.user(cell, r.clone(), &[]);
    }
    out.plain(&format!(" {RUNTIME} use ::xlazy::prelude::*;"));
    if let Some(deps) = &defs.deps {
        // Left out, rustc would link its crates a second time (their statics would exist twice).
        out.plain(&format!(" extern crate {};", deps.crate_name()));
    }
    let mut shadowed: Vec<(String, String)> = Vec::new();
    for g in &defs.groups {
        let always = g.items.iter().filter(|i| i.cfg.is_empty());
        let names: BTreeSet<&str> = always.flat_map(|i| &i.names).map(String::as_str).collect();
        // Even a group of nothing but `impl`s must be linked.
        out.plain(&format!(" extern crate {};", g.crate_name));
        out.plain(&format!(" use ::{}::{{", g.crate_name));
        // `const _` has no name.
        for name in names.into_iter().filter(|n| *n != "_") {
            // One that cannot be imported is no reason for every later cell to fail.
            let path = format!("::{}::{name}", g.crate_name);
            if plan.dropped_uses.contains(&path) {
                continue;
            }
            match parsed.shadows.contains(name) {
                true => shadowed.push((path.clone(), format!(" pub use {path};"))),
                false => out.generated(Tag::Use(path), &format!("{name}, ")),
            }
        }
        let more = g.items.iter().any(|i| i.facts.makes_more);
        out.plain(&if more { format!("}}; use ::{}::*;", g.crate_name) } else { "};".to_owned() });
        let named = |i: &&Item| !i.names.is_empty() && i.names != ["_"];
        for item in g.items.iter().filter(|i| !i.cfg.is_empty()).filter(named) {
            out.plain(&format!(" {} use ::{}::{{{}}};", item.cfg, g.crate_name, item.names.join(", ")));
        }
    }
    // An import may name one of the macros.
    let own: BTreeSet<&str> = parsed.macros_at_hand(cell).map(|m| m.name.as_str()).collect();
    for m in defs.macros.iter().filter(|m| !own.contains(m.name.as_str())) {
        out.generated(Tag::Macro(m.name.clone()), &format!(" {}", m.text));
    }
    let own: BTreeSet<&str> = parsed.uses.iter().map(|u| u.binds.as_str()).collect();
    for u in defs.uses.iter().filter(|u| !own.contains(u.binds.as_str()) && !plan.dropped_uses.contains(&u.binds)) {
        match parsed.shadows.contains(&u.binds) {
            true => shadowed.push((u.binds.clone(), format!(" pub {}", u.text))),
            false => out.generated(Tag::Use(u.binds.clone()), &format!(" {}", u.text)),
        }
    }
    if !parsed.shadows.is_empty() {
        // A glob brings the types of these names; their values give way to functions, and those to variables.
        out.plain(" mod xlazy_shadowed { use super::*;");
        for (binds, text) in shadowed {
            out.generated(Tag::Use(binds), &text);
        }
        let functions: String = parsed.shadows.iter().map(|name| format!(" fn {name}() {{}}")).collect();
        out.plain(&format!(" }} use xlazy_shadowed::*;{functions}"));
    }
    for path in &plan.named {
        out.generated(Tag::Use(path.clone()), &format!(" use {path};"));
    }
}

/// Whether this stands for a call of the runtime's function of that name.
fn is_of(edit: &Splice, name: &str) -> bool {
    matches!(edit.tag, Tag::Show(of, _) if of == name)
}

fn statement_edits(
    cell: &Arc<CellText>,
    parsed: &Parsed,
    defs: &Definitions,
    loaded: &[Loaded],
    plan: &Plan,
    held: &Held,
) -> Vec<Splice> {
    // In front of everything else that is inserted at the same places.
    let functions =
        |i: &'_ Item| i.syntax.iter().filter(|f| f.kind == 'F').map(|f| f.words[0].clone()).collect::<Vec<_>>();
    let defined: BTreeSet<String> =
        defs.items().flat_map(|(_, i)| i.names.iter().cloned().chain(functions(i))).collect();
    let defined = defined.iter().map(String::as_str).collect();
    let mut edits: Vec<Splice> = parsed.marks.iter().flat_map(|m| m.edits(&defined)).cloned().collect();
    let variable = |e: &Splice| loaded.iter().any(|v| is_of(e, &v.name));
    edits.extend(parsed.edits.iter().filter(|e| !defs.takes(e, parsed, plan.shows) && !variable(e)).cloned());
    edits.retain(|e| !(plan.asynchronous && e.tag == Tag::Await));
    edits.extend(plan.wrap(&parsed.values));
    edits.extend(parsed.calls.iter().map(Expanded::edit));
    edits.extend(plan.another_name.iter().map(|at| Splice::insert(*at, ".clone()")));
    let mut blank = parsed.inner_attributes.clone();
    blank.extend(parsed.items.iter().filter(|i| i.call.is_none()).map(|i| i.range.clone()));
    edits.extend(blank.into_iter().map(|range| Splice::replace(range.clone(), blanked(&cell.text[range]))));
    let mut edits = waiting::left_out(cell, parsed, held, held.edits(edits));
    if let Some(t) = parsed.trailing.as_ref().filter(|_| plan.ends || !plan.unshown) {
        let (before, after) = if plan.ends { END } else { show(cell, defs) };
        // Around everything else that is inserted at the same places.
        let first = edits.partition_point(|e| e.range.start < t.start);
        edits.insert(first, Splice::insert(t.start, before));
        let last = edits.partition_point(|e| e.range.start <= t.end);
        edits.insert(last, Splice::insert(t.end, after));
    }
    // What was lent is had back where it is mentioned.
    let back = held.variables().filter_map(|(n, v)| {
        let (l, at) = (held.loaded(v)?, held.back_at(n).filter(|_| held.is_framed(n))?);
        let text = format!("{}{}{} ", held.ended(l), load(l, false, false, plan), held.hold(n));
        Some(Splice::insert(at, text).tagged(Tag::Load(l.name.clone())))
    });
    // Where one `let` ends and the next begins, what the first declares is held before it is lent.
    for edit in back.chain(held.loans()).chain(held.lets().into_iter().rev()) {
        let first = edits.partition_point(|e| e.range.start < edit.range.start);
        edits.insert(first, edit);
    }
    // For the report of a crash. It stands before everything else that is inserted at the same place.
    for start in &parsed.statements {
        let line = line_column(&cell.text, *start).0;
        let first = edits.partition_point(|e| e.range.start < *start);
        edits.insert(first, Splice::insert(*start, format!("xlazy_rt::at({line});")));
    }
    edits
}

/// Shows the last expression: see `ShowKnown` and its siblings in the runtime.
const SHOW: (&str, &str) = (
    // A `match` rather than a `let`: what the expression borrows from lives as long as it is shown.
    "{ match &(",
    ") { xlazy_value => { use xlazy_rt::{ShowKnown as _, ShowRich as _, ShowModule as _, ShowDebug as _, ShowDisplay as _, \
     ShowLong as _, ShowFuture as _, ShowOpaque as _}; (&&&&&&&xlazy_rt::Show(xlazy_value)).show(xlazy_rt::To::Result); } } }",
);

/// The same where the value's type may have an `evcxr_display`.
pub const SHOW_EVCXR: (&str, &str) = (
    SHOW.0,
    ") { xlazy_value => { use xlazy_rt::{ShowKnown as _, ShowRich as _, ShowModule as _, ShowPlain as _, ShowDebug as _, ShowDisplay as _, \
     ShowLong as _, ShowFuture as _, ShowOpaque as _, NoEvcxr as _}; if (&&&&&&xlazy_rt::Show(xlazy_value)).is_rich() || xlazy_rt::evcxr_is_absent(&{ xlazy_value }.evcxr_display()) { \
     (&&&&&&&xlazy_rt::Show(xlazy_value)).show(xlazy_rt::To::Result); } } } }",
);

/// The last expression is how the cell ends.
const END: (&str, &str) =
    ("{ let xlazy_end: ::core::result::Result<_, ::std::boxed::Box<dyn ::core::error::Error>> = ", "; xlazy_end?; }");

/// Asking for an `evcxr_display` takes the compiler a few milliseconds, and most sessions have none.
fn show(cell: &CellText, defs: &Definitions) -> (&'static str, &'static str) {
    const METHOD: &str = "evcxr_display";
    let named = defs.items().any(|(_, i)| i.mentions.contains(METHOD))
        || defs.macros.iter().any(|m| m.mentions.contains(METHOD))
        || cell.text.contains(METHOD);
    if named || defs.deps.is_some() { SHOW_EVCXR } else { SHOW }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_exports_nothing_by_name() {
        let of = |code: &str| {
            let cell = Arc::new(CellText::new(1, code));
            let parsed = crate::eval::parse::split::parse(&cell, 0..code.len(), &[]).unwrap();
            let none = Definitions::default();
            let source = super::cell(&cell, 0..code.len(), &parsed, &none, &none, &[], &Plan::default());
            (source.text.clone(), library(&source.text))
        };
        let (text, library) = of("let a = 1;");
        let library = library.unwrap();
        assert!(text.contains("no_mangle"));
        assert!(library.text.starts_with(&format!("#![crate_type=\"rlib\"]#![crate_name=\"{}\"]", library.name)));
        assert!(
            library.text.contains("pub extern \"C-unwind\" fn xlazy_cell()") && !library.text.contains("no_mangle")
        );
        assert_eq!(of("{ #[unsafe(no_mangle)] extern \"C\" fn f() {} }").1, None);
        assert_eq!(of("{ #[used] static X: u8 = 1; }").1, None);
    }
}
