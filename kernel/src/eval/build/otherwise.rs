//! Variables whose type nothing has said: how a cell declares them, and which of them a later cell may have as another type.
use super::makers::{of_another_crate, only_makes};
use crate::eval::generate::declared::{Declaration, Declared, OpenLet, measure};
use crate::eval::generate::definitions::Definitions;
use crate::eval::generate::held::Held;
use crate::eval::generate::plan::{Loaded, Plan};
use crate::eval::parse::open::{Kind, Open};
use crate::eval::parse::parsed::{Binding, Parsed, Use};
use crate::eval::parse::places::{Mention, Places, Variable};
use crate::eval::parse::syntax::one_line;
use crate::eval::text::scan;
use crate::eval::text::source::CellText;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A `let` as a later cell can write it, with the numbers that it is made of. What its cell is to measure has a name until that has run.
fn written_again(cell: &CellText, open: &Open) -> String {
    let text = |range: Range<usize>| {
        let (mut out, mut from) = (String::new(), range.start);
        let inside = |at: &&Range<usize>| open.measured && range.start <= at.start && at.end <= range.end;
        for at in open.lengths.at.iter().filter(inside) {
            out += &format!("{}{}", &cell.text[from..at.start], measure(at.start));
            from = at.end;
        }
        one_line(&(out + &cell.text[from..range.end]))
    };
    if open.of.is_empty() && open.lets.is_empty() {
        return text(open.whole.clone());
    }
    let (before, value) = (text(open.whole.start..open.value.start), text(open.value.clone()));
    let lets: Vec<String> = open.lets.iter().cloned().chain(open.of.iter().map(|of| text(of.clone()))).collect();
    format!("{before} {{ {} {value} }};", lets.join(" "))
}

/// Leaves open what waits for a later cell in truth: what the cell calls so is what everybody calls so, what the notebook's own
/// functions make is all that they do, and what earlier cells' variables say is known.
pub(super) fn leave_open(variables: &mut [Variable], defs: &Definitions, declared: &Declared) {
    let imported = |u: &Use, name: &str| u.binds == name && !u.is_of_std() && !of_another_crate(u, defs);
    let elsewhere = |name: &String| {
        defs.items().any(|(_, i)| i.names.contains(name)) || defs.uses.iter().any(|u| imported(u, name))
    };
    for v in variables {
        let waits = |o: &Open| !o.heads.iter().any(elsewhere) && o.makers.iter().all(|path| only_makes(path, defs));
        v.open = v.open.take().filter(waits).and_then(|open| of_earlier(open, declared));
    }
}

/// What is made of numbers of earlier cells: with their `let`s where those can be written once more, and else as the value that it
/// has. A clone of what an earlier cell has left open joins all that is declared together with that.
fn of_earlier(open: Open, declared: &Declared) -> Option<Open> {
    let waits = |name: &String| declared.get(name)?.open.as_ref().filter(|o| o.pending);
    let groups = open.joins.iter().map(waits).collect::<Option<Vec<&OpenLet>>>()?;
    let open = Open { joins: groups.into_iter().flat_map(|o| o.names.clone()).collect(), ..open };
    let number = |name: &String| {
        let d = declared.get(name)?;
        Some((d.fixed, d.open.as_ref().filter(|o| !o.pending)?))
    };
    let again = |name: &String| number(name).filter(|(fixed, o)| o.again(*fixed)).map(|(_, o)| o.alone(name));
    let like = |name: &String| Some(format!("let {name} = {};", number(name)?.1.like.as_ref()?));
    let lets = |of: &dyn Fn(&String) -> Option<String>| open.earlier.iter().map(of).collect::<Option<Vec<String>>>();
    let like = open.like.clone().and_then(|text| {
        let lets = lets(&like)?;
        Some(if lets.is_empty() { text } else { format!("{{ {} {text} }}", lets.join(" ")) })
    });
    match (lets(&again), open.kind) {
        (Some(lets), kind) if kind != Kind::Computed => Some(Open { lets, like, ..open }),
        _ if like.is_none() => open.measured(),
        _ => like.map(|like| Open { kind: Kind::Computed, like: Some(like), ..open }),
    }
}

/// What a variable borrows until it is mentioned again, with what that borrows itself, which may be there longer.
fn borrowed_by(
    view: usize,
    places: &Places,
    plan: &Plan,
    earlier: &Declared,
    loaded: &[Loaded],
) -> BTreeMap<String, bool> {
    let changing = |name: &String| loaded.iter().any(|l| l.name == *name && l.whole);
    let mut out = BTreeMap::new();
    let at = plan.views.get(&view);
    let loans = plan.away.iter().flat_map(|(n, loans)| loans.iter().map(move |loan| (n, loan)));
    for (n, loan) in loans.filter(|(n, loan)| Some(&loan.at) == at && **n != view) {
        let of = &places.variables[*n];
        out.extend(match of.declared {
            Some(_) => borrowed_by(*n, places, plan, earlier, loaded),
            // What is taken out of it was borrowed before.
            None if changing(&of.name) => {
                out.extend(earlier.get(&of.name).map(|d| d.views.clone()).unwrap_or_default());
                continue;
            }
            None => earlier.get(&of.name).map(|d| d.views.clone()).unwrap_or_default(),
        });
        out.insert(of.name.clone(), loan.changes);
    }
    out
}

/// How the cell declares its variables, and from now on those of earlier cells that its own are to be made with.
pub(super) fn declares(
    cell: &CellText,
    parsed: &Parsed,
    plan: &Plan,
    earlier: &Declared,
    loaded: &[Loaded],
) -> Declared {
    let (places, held) = (&parsed.places, Held::new(parsed, loaded, plan));
    // Where something that borrows may be changed, anything that is borrowed may be in it, and in what is made of it.
    let grows = |(n, at): (&usize, &usize)| {
        let by_a_loan = plan.away.values().flatten().any(|loan| loan.at == *at);
        let v = &places.variables[*n];
        let within = |m: &Mention| m.variable != *n && (*at..v.declared.unwrap_or(*at)).contains(&m.range.start);
        let of_another = || places.mentions.iter().any(|m| within(m) && plan.views.contains_key(&m.variable));
        !by_a_loan || !v.fixed && v.closure.is_none() || of_another()
    };
    let mixed = loaded.iter().any(|l| l.whole) || plan.views.iter().any(grows);
    let declaration = |b: &Binding| {
        let number = places.declared(&b.name)?;
        let v = &places.variables[number];
        let pending = plan.pending.contains(&number);
        let open = v.open.as_ref().filter(|open| pending || !open.measured).map(|open| {
            let together = if pending { places.together(open) } else { None };
            let all = together.unwrap_or_else(|| places.beside(open).map(|(n, _)| n).collect());
            let all = || all.iter().map(|n| &places.variables[*n]);
            let mut lets: Vec<&Open> = all().filter_map(|v| v.open.as_ref()).collect();
            lets.dedup_by_key(|open| &open.whole);
            let joined: BTreeSet<&String> = lets.iter().flat_map(|open| &open.joins).filter(|_| pending).collect();
            // A group is declared once, at the first of its names.
            let group = |name: &&&String| earlier.get(**name)?.open.as_ref().filter(|o| o.names[0] == ***name);
            let texts = joined.iter().filter_map(|name| Some(group(&name)?.text.clone()));
            OpenLet {
                text: texts.chain(lets.iter().map(|open| written_again(cell, open))).collect::<Vec<_>>().join(" "),
                names: joined.into_iter().cloned().chain(all().map(|v| v.name.clone())).collect(),
                kind: open.kind,
                like: open.like.clone(),
                closure: b.closure.clone(),
                pending,
                untouched: !v.mentioned && !v.odd && !places.has_clones(open),
            }
        });
        let mut views = borrowed_by(number, places, plan, earlier, loaded);
        if mixed && plan.views.contains_key(&number) {
            views.extend(held.in_play(number));
            views.remove(&b.name);
        }
        Some((b.name.clone(), Declaration { cell: cell.cell, fixed: v.fixed, open, made_in: None, views, lost: None }))
    };
    let mut out: Declared = parsed.bindings.iter().filter_map(declaration).collect();
    let opens: Vec<OpenLet> = out.values().filter_map(|d| d.open.clone()).filter(|o| o.pending).collect();
    for OpenLet { text, names, .. } in opens {
        for name in &names {
            let Some((before, open)) = earlier.get(name).and_then(|d| Some((d, d.open.clone()?))) else { continue };
            let open = Some(OpenLet { text: text.clone(), names: names.clone(), ..open });
            out.entry(name.clone()).or_insert_with(|| Declaration { open, ..before.clone() });
        }
    }
    out
}

/// Those of the errors that say of which type something is.
pub(super) fn about_types(errors: &[Diagnostic]) -> impl Iterator<Item = &Diagnostic> {
    let of_bounds = |e: &Diagnostic| e.code == "E0599" && e.message.ends_with("its trait bounds were not satisfied");
    let codes = |e: &Diagnostic| matches!(&*e.code, "E0308" | "E0277" | "E0271" | "E0631" | "overflowing_literals");
    errors.iter().filter(move |e| codes(e) || of_bounds(e))
}

/// Variables whose type nothing decided, so that it was taken to be `i32` or `f64`, and that can be had as another.
pub(super) fn otherwise(loaded: &[Loaded]) -> impl Iterator<Item = &Loaded> {
    let untold = |v: &&Loaded| scan::mentions(&v.written_type).iter().any(|word| word == "i32" || word == "f64");
    let again = |v: &&Loaded| v.open.as_ref().is_some_and(|o| o.again(v.fixed) || o.like.is_some());
    // What is lent until it is mentioned is elsewhere.
    loaded.iter().filter(|v| v.views.is_none()).filter(untold).filter(again)
}
