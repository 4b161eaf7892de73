//! From a cell's text to an object that the session can load: definitions first, then statements, with what rustc
//! answers taken into account.
use super::again;
use super::borrows::foresee;
use super::compiler::{Behind, Compiler, Scope, Timing};
use super::early::Early;
use super::edition::First;
use super::lending::{is_needed_for_good, keep_for_a_time, may_be_counted, one_cell_has_both};
use super::locals::with_variables;
use super::mentioned::{load_list, values_of};
use super::nameless::{closures_of_functions, functions_handed_over};
use super::otherwise::{about_types, declares, leave_open};
use super::receivers::stay_in_place;
use super::refused::{Refused, unbalanced};
use super::replan::{are_about_names, learns, replan, without_what_is_left_out};
use super::shadows::shadowing;
use super::untrained::left_out;
use crate::engine::sentence;
use crate::eval::deps::stages::Deps;
use crate::eval::generate::change::Change;
use crate::eval::generate::code::{self as generate, Loaded, Plan};
use crate::eval::generate::declared::Declared;
use crate::eval::generate::definitions::{Definitions, Group};
use crate::eval::generate::held::Held;
use crate::eval::parse::parsed::Parsed;
use crate::eval::parse::places::Variable;
use crate::eval::parse::split::{self, Unparsed};
use crate::eval::tell::ours::Ours;
use crate::eval::tell::point::point_out;
use crate::eval::text::depth::TooDeep;
use crate::eval::text::source::{CellText, Provenance, Source, Tag};
use crate::eval::text::types::{asks_for_types, surely_moves};
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use crate::eval::toolchain::rustc::{self, Compiled};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// A compiled cell. Nothing has changed yet; [`Compiler::commit`] puts its definitions in force.
pub struct Ready {
    /// None when the cell has nothing to run.
    pub object: Option<PathBuf>,
    /// How the cache is to keep it once it has run: key and head.
    pub(super) keep: Option<(String, Value)>,
    /// With the groups that its statements seemed to need, which are a part of its key.
    pub(super) links: Definitions,
    pub file: String,
    /// The same for definitions that were compiled with it.
    pub group_file: Option<String>,
    pub(super) defs: Definitions,
    /// What its statements do to variables.
    pub leaves: Leaves,
    /// Functions, constants and statics that it defines: earlier variables of these names give way.
    pub defines: BTreeSet<String>,
    pub names: Effects,
    pub timing: Timing,
}

/// What becomes of a cell's variables, by name.
#[derive(Default)]
pub struct Leaves {
    /// Variables that it moves away, by what is known beforehand.
    pub moves: BTreeSet<String>,
    /// Variables that it declares and that borrow: they end with it.
    pub borrows: BTreeSet<String>,
    /// Those of them that would live on if what they borrow was `Clone`.
    pub not_clone: BTreeSet<String>,
    /// What borrows variables that the cell has back, by what it borrowed.
    pub ended: BTreeMap<String, String>,
    /// Variables that are kept at its end alone.
    pub inside: BTreeSet<String>,
    /// Variables that it lends for good.
    pub lends: BTreeSet<String>,
    /// Variables that borrow and may have been given more of what is borrowed.
    pub grown: BTreeMap<String, BTreeMap<String, bool>>,
    /// Closures with the types of their arguments, `_` where none is to be said.
    pub closures: BTreeMap<String, Vec<String>>,
    /// How it declares variables, and those of earlier cells whose types it decides.
    pub declares: Declared,
    pub decides: BTreeSet<String>,
}

/// What a cell does with variables, by name.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Variables of earlier cells that it takes.
    pub takes: BTreeSet<String>,
    pub binds: BTreeSet<String>,
    /// Those of `binds` whose earlier value cannot matter.
    pub fresh: BTreeSet<String>,
    /// It shows variables and does nothing else.
    pub only_shows: bool,
}

const MOST_TRIES: u32 = 40;

impl Compiler {
    /// Puts other dependencies in force. Where they do not extend those of before, what was defined so far is compiled
    /// again if it is linked to them.
    pub fn depend_on(&mut self, deps: Arc<Deps>) -> Result<(), Refused> {
        self.restore()?;
        self.link(&deps).map_err(|e| sentence("DependencyError", e.to_string()))?;
        self.paths.forget();
        if self.defs.deps.as_ref().is_some_and(|before| deps.extends(before)) {
            self.defs.deps = Some(deps);
            return Ok(());
        }
        let change = self.defs.regroup(deps);
        let cell = Arc::new(CellText::new(0, ""));
        let (gone, declared, filled) = Default::default();
        let scope = Scope { vars: &[], gone: &gone, declared: &declared, filled: &filled, ours: &String::new };
        let parsed = Parsed::default();
        self.defs = self.group(change, &cell, 0..0, &parsed, &scope, &mut Timing::default())?.0;
        Ok(())
    }

    /// Compiles part of a cell.
    pub fn compile(&mut self, cell: &Arc<CellText>, range: Range<usize>, scope: &Scope) -> Result<Ready, Refused> {
        let done = self.compile_with_calls(cell, &range, scope);
        match (done, self.explained.take()) {
            (Err(Refused::Failure(failure)), Some(told)) => Err(self.advised(failure, told, cell, range, scope).into()),
            (done, _) => done,
        }
    }

    /// Statements while the definitions' object is still being made, or one after the other where that fails.
    pub(super) fn compile_early(
        &mut self,
        cell: &Arc<CellText>,
        range: &Range<usize>,
        scope: &Scope,
    ) -> Result<Ready, Refused> {
        self.early = Early { wanted: true, ..Early::default() };
        let mut done = self.compile_once(cell, range.clone(), scope);
        self.settle_group();
        if std::mem::take(&mut self.early).failed {
            let _ = done.map(|ready| ready.object.map(std::fs::remove_file));
            done = self.compile_once(cell, range.clone(), scope);
        }
        done
    }

    pub(super) fn compile_once(
        &mut self,
        cell: &Arc<CellText>,
        range: Range<usize>,
        scope: &Scope,
    ) -> Result<Ready, Refused> {
        // Of a cell that did not compile.
        self.notes.clear();
        self.left.clear();
        self.declares.clear();
        self.explained = None;
        self.restore()?;
        let (cell, range) = &split::ended(cell, range);
        let range = range.clone();
        let mut parsed = match self.taken_apart(cell, &range, scope) {
            Ok(parsed) => parsed,
            Err(Unparsed::Syntax(_)) => {
                self.declares = split::declared(&cell.text[range.clone()]);
                return Err(unbalanced(cell, range.clone(), &Ours::new(scope.ours))
                    .unwrap_or_else(|| self.explain_syntax(cell, range, scope)));
            }
            Err(Unparsed::TooDeep(e)) => {
                return Err(point_out(cell, e.at.clone(), &e.to_string(), TooDeep::ADVICE).into());
            }
            Err(Unparsed::NoRoom(e)) => return Err(self.machine(&e.to_string()).into()),
        };
        let items = parsed.items.iter().flat_map(|i| &i.names);
        self.declares = parsed.bindings.iter().map(|b| &b.name).chain(items).cloned().collect();
        if let Some((at, title, label)) = &parsed.refusal {
            return Err(Refused::Failure(point_out(cell, at.clone(), title, label)));
        }
        let mut timing = Timing::default();
        self.find_spaces(cell, &mut parsed)?;
        let change = self.defs.change(&parsed);
        // A lone `use` is compiled only to see whether it is right; beside items, their group has shown it.
        let is_defined = !parsed.has_statements && (!parsed.items.is_empty() || parsed.use_ranges.is_empty());
        if is_defined {
            self.early.wanted = false;
        }
        let (defs, group_file) = self.group(change, cell, range.clone(), &parsed, scope, &mut timing)?;
        let defines = values_of(&parsed);
        if is_defined {
            let file = String::new();
            let (object, keep, links, leaves, names) = Default::default();
            return Ok(Ready { object, keep, links, file, group_file, defs, leaves, defines, names, timing });
        }
        let ready = self.statements(cell, range, parsed, defs, scope, timing)?;
        Ok(Ready { group_file, defines, ..ready })
    }

    /// Puts into force what the cell defines; whether that is another than before.
    pub fn commit(&mut self, ready: &Ready) -> bool {
        let changed = !self.defs.same(&ready.defs);
        self.defs = ready.defs.clone();
        changed
    }

    /// Compiles the cell's items, with those of earlier cells that depend on them.
    fn group(
        &mut self,
        change: Change,
        cell: &Arc<CellText>,
        range: Range<usize>,
        parsed: &Parsed,
        scope: &Scope,
        timing: &mut Timing,
    ) -> Result<(Definitions, Option<String>), Refused> {
        self.notes.clone_from(&change.without);
        if !change.needed {
            return Ok((change.rest.commit(None, parsed), None));
        }
        let begin = Instant::now();
        let statics: Vec<String> =
            change.moved.iter().filter(|i| i.has_static()).flat_map(|i| &i.names).map(|n| format!("`{n}`")).collect();
        if !statics.is_empty() {
            let names = statics.join(", ");
            self.notes.push(format!("statics of {names} begin again: what they mention was defined anew"));
        }
        let types: Vec<String> =
            change.moved.iter().filter(|i| i.has_values()).flat_map(|i| &i.names).map(|n| format!("`{n}`")).collect();
        if !types.is_empty()
            && let Some(var) = scope.vars.iter().find(|v| asks_for_types(&v.type_name))
        {
            let (was, types, name) = (if types.len() > 1 { "were" } else { "was" }, types.join(", "), &var.name);
            self.notes.push(format!(
                "{types} {was} compiled anew: what `{name}` holds of that type is of the type of before; run its cell again"
            ));
        }
        let needs = self.needs(&change.rest);
        let generate = |plan: &Plan| {
            let to = generate::linked_to_group(cell, &range, parsed, &change.moved, &change.rest, plan);
            (generate::group(cell, range.clone(), parsed, &change.moved, &change.rest, &to, plan), to)
        };
        let links = |to: &Definitions| to.crates().map(str::to_owned).collect::<Vec<_>>();
        let mut plan = Plan { opt_level: self.opt_level, ..Plan::default() };
        let ((mut name, mut source), mut to) = generate(&plan);
        let key = self.cache.key(&needs.options, &self.placed(to.externs()), &source.text);
        self.read_ahead(&to);
        let mut found = self.made_before(&name, &source);
        if found.is_none()
            && let Some((entry, known, id)) = self.cached(&key)
        {
            ((name, source), to) = generate(&known);
            let object = rustc::object_in(&self.dir, &id);
            self.place_group(&name, &object, links(&to), |path| std::fs::write(path, &entry.object))?;
            self.remember(&id, &Arc::new(source.clone()));
            timing.cached = true;
            found = Some((object, Some(rustc::file_name(&id))));
        }
        let mut first = First::default();
        let mut imports = Parsed::default();
        imports.uses.clone_from(&parsed.uses);
        while found.is_none() {
            if timing.tries >= MOST_TRIES {
                let failure = sentence("CompileError", "the definitions do not settle after several compiles");
                return Err(failure.into());
            }
            let (id, sent, compiled) =
                self.rustc(&self.needs_of(&plan, &needs), source.clone(), Behind::Linked(&name), timing)?;
            match compiled {
                Compiled::Object(object, alone, warned) => {
                    self.say_edition(&first);
                    self.say_unused(&warned, &sent);
                    let keep = (alone && !plan.all_groups).then(|| (key.clone(), head(&plan, &id)));
                    self.group_is_made(&name, &object, links(&to), keep)?;
                    found = Some((object, Some(rustc::file_name(&id))));
                    break;
                }
                Compiled::Known(compiling) => {
                    self.say_edition(&first);
                    let keep = (!plan.all_groups).then(|| (key.clone(), head(&plan, &id)));
                    let object = self.group_is_known(&name, compiling, links(&to), keep, sent);
                    found = Some((object, Some(rustc::file_name(&id))));
                    break;
                }
                Compiled::Errors(errors)
                    if replan(&errors, &sent, &imports, &[], &mut plan)
                        || first.tries_older(&errors, &sent, &mut plan) => {}
                Compiled::Errors(_) if !plan.all_groups && to.is_less_than(&change.rest) => {
                    plan.all_groups = true;
                }
                Compiled::Errors(errors) if let Some(shadowing) = shadowing(&errors, &sent, parsed, &change.rest) => {
                    return match self.group(change, cell, range, &shadowing, scope, timing) {
                        Err(Refused::Failure(_)) => Err(self.failed(Compiled::Errors(errors), &sent, scope)),
                        done => done,
                    };
                }
                Compiled::Errors(errors) => {
                    let (errors, sent) = first.or(errors, sent);
                    let Some((left, behind)) = change.leaving_behind(&errors, &sent, cell) else {
                        let mut errors = change.of_the_cell(errors, &sent, cell);
                        change.name_calls(&mut errors, &sent, parsed);
                        return Err(self.failed(Compiled::Errors(errors), &sent, scope));
                    };
                    // An import is no reason to take away what was there.
                    let as_before = self.defs.change_but_for_imports(parsed);
                    if as_before.moved.len() < change.moved.len() {
                        return self.group(as_before, cell, range, parsed, scope, timing);
                    }
                    let done = self.group(left, cell, range, parsed, scope, timing)?;
                    self.notes.extend(behind.iter().map(|l| l.note.clone()));
                    self.left
                        .extend(behind.into_iter().flat_map(|l| l.names.into_iter().map(move |n| (n, l.how.clone()))));
                    return Ok(done);
                }
                other => return Err(self.failed(other, &sent, scope)),
            }
            ((name, source), to) = generate(&plan);
            found = self.made_before(&name, &source);
        }
        let (object, file) = found.expect("the loop ends with one");
        self.notes.extend(left_out(&parsed.items, &change.moved, &change.rest));
        let mut items = parsed.items.clone();
        items.extend(change.moved.iter().cloned());
        timing.group_ms = begin.elapsed().as_secs_f64() * 1e3;
        Ok((change.rest.commit(Some(Group { crate_name: name, object, items }), parsed), file))
    }

    fn statements(
        &mut self,
        cell: &Arc<CellText>,
        range: Range<usize>,
        mut parsed: Parsed,
        defs: Definitions,
        scope: &Scope,
        mut timing: Timing,
    ) -> Result<Ready, Refused> {
        let begin = Instant::now();
        let as_written = parsed.clone();
        with_variables(&mut parsed, cell, &defs, &|name| scope.vars.iter().any(|v| v.name == name));
        let names = scope.vars.iter().map(|v| &v.name).filter(|name| parsed.mentions.contains(*name));
        parsed.shadows.extend(defs.shadowed(names));
        let shadows = &parsed.shadows;
        let variable = |name: &String| !name.starts_with(char::is_uppercase) || shadows.contains(name);
        let brought = |name: &str| defs.uses.iter().chain(&as_written.uses).any(|u| u.binds == name);
        let value = |name: &str| defs.value_named(name).is_some() || brought(name);
        parsed.bindings.retain(|b| variable(&b.name) || !value(&b.name));
        self.say_undivided(cell);
        let closures = closures_of_functions(&mut parsed, cell, &defs);
        let again = again::assigned(&mut parsed, cell, scope, &defs);
        let loaded = load_list(&parsed, scope, &defs)?;
        leave_open(&mut parsed.places.variables, &defs, scope.declared);
        stay_in_place(&mut parsed, cell, &loaded, &defs);
        let functions = functions_handed_over(&mut parsed, &loaded, &defs);
        for v in &loaded {
            let number = parsed.places.earlier(&v.name).unwrap_or_else(|| {
                parsed.places.variables.push(Variable::named(&v.name));
                parsed.places.variables.len() - 1
            });
            parsed.places.variables[number].fixed = v.fixed;
        }
        let moves = |v: &&Loaded| {
            let var = scope.vars.iter().find(|s| s.name == v.name);
            let receiver = parsed.moved.get(&v.name);
            receiver.zip(var).is_some_and(|(receiver, s)| !s.handle && surely_moves(&s.type_name, *receiver))
        };
        let can_hold = |v: &Loaded| {
            let plan = Plan::default();
            let held = Held::new(&parsed, &loaded, &plan);
            held.variables().any(|(n, earlier)| held.loaded(earlier) == Some(v) && held.can_hold(n))
        };
        let moved = loaded.iter().filter(moves).filter(|v| !can_hold(v)).map(|v| v.name.clone()).collect();
        let binds: BTreeSet<String> = parsed.bindings.iter().map(|b| b.name.clone()).collect();
        let names = Effects {
            takes: loaded.iter().map(|v| v.name.clone()).collect(),
            fresh: binds.intersection(&parsed.rebound).cloned().collect(),
            binds,
            only_shows: parsed.only_shows && parsed.items.is_empty(),
        };
        let paths = loaded.iter().flat_map(|v| self.paths.known(&v.written_type)).collect();
        let pending = again::without_value(&parsed.places);
        // What borrows and is had whole is held, and first of all it is proven that this may be.
        let whole = loaded.iter().filter(|l| l.whole).filter_map(|l| parsed.places.earlier(&l.name));
        let framed: BTreeSet<usize> = whole.collect();
        let tied = !framed.is_empty();
        let untried = Plan { moved, paths, closures, pending, functions, framed, tied, ..Plan::default() };
        let mut plan = untried.clone();
        if !tied {
            foresee(&parsed, &loaded, &mut plan);
        }
        let needs = self.needs(&defs);
        let generate = |plan: &Plan| {
            let to = generate::linked_to(cell, &range, &parsed, &defs, &loaded, plan);
            (generate::cell(cell, range.clone(), &parsed, &defs, &to, &loaded, plan), to)
        };
        let held = |plan: &Plan| {
            let held = Held::new(&parsed, &loaded, plan);
            held.variables().any(|(n, v)| held.holds(n) || held.copies(v))
        };
        let in_macros = |plan: &Plan| {
            let held = Held::new(&parsed, &loaded, plan);
            parsed.places.mentions.iter().enumerate().any(|(n, m)| m.in_macro && held.form(n).is_some())
        };
        let (mut source, to) = generate(&plan);
        plan.counted = may_be_counted(&parsed, &loaded, &to);
        // What may become part of it.
        let lets = loaded.iter().filter_map(|v| v.open.as_ref()).map(|o| &*o.text);
        let text = [&*source.text].into_iter().chain(lets).collect::<Vec<_>>().join("\n");
        let key = self.cache.key(&needs.options, &self.placed(to.externs()), &text);
        self.read_ahead(&to);
        let ready = |timing: &mut Timing, plan: Plan, object, keep, id: &str| {
            timing.cell_ms = begin.elapsed().as_secs_f64() * 1e3;
            let held = Held::new(&parsed, &loaded, &plan);
            let of = |is: &dyn Fn(&str) -> bool| {
                parsed.bindings.iter().map(|b| b.name.clone()).filter(|name| is(name)).collect()
            };
            let (borrows, inside) = (of(&|name| held.borrows(name)), of(&|name| !held.keeps(name)));
            let back = loaded.iter().filter(|v| !held.looks(v));
            let ended = back.flat_map(|v| v.lent_to().iter().map(|view| (view.clone(), v.name.clone()))).collect();
            let not_clone = plan.not_clone.iter().map(|n| parsed.places.variables[*n].name.clone()).collect();
            let lends = plan.lends.keys().map(|n| parsed.places.variables[*n].name.clone()).collect();
            let declares = declares(cell, &parsed, &plan, scope.declared, &loaded);
            let whole = loaded.iter().filter(|l| l.whole);
            let grown = whole.filter_map(|l| Some((l.name.clone(), held.in_play(parsed.places.earlier(&l.name)?))));
            let grown = grown.collect();
            let decided = |v: &&Loaded| plan.is_made_anew(v) && !held.joined(&v.name);
            let decides = loaded.iter().filter(decided).map(|v| v.name.clone()).collect();
            let links = to.clone();
            let moves = plan.moved.into_iter().chain(plan.spent).collect();
            let (file, timing, names) = (rustc::file_name(id), *timing, names.clone());
            let (defs, defines, group_file) = (defs.clone(), BTreeSet::new(), None);
            let object = Some(object);
            let closures = parsed.bindings.iter().filter_map(|b| Some((b.name.clone(), b.closure.clone()?))).collect();
            let leaves = Leaves { moves, borrows, not_clone, ended, inside, lends, grown, closures, declares, decides };
            Ready { object, keep, links, file, group_file, defs, leaves, defines, names, timing }
        };
        if let Some((entry, plan, id)) = self.cached(&key) {
            self.remember(&id, &Arc::new(generate(&plan).0));
            // A file of its own for every run: an object that is opened twice keeps its statics.
            let fresh = self.warmer.new_id();
            let object = rustc::object_in(&self.dir, &fresh);
            std::fs::write(&object, &entry.object).map_err(|e| self.unwritten(&object, &e))?;
            timing.cached = true;
            return Ok(ready(&mut timing, plan, object, None, &id));
        }
        let (mut first, mut as_taken, mut as_filled) = (First::default(), 0, scope.filled.clone());
        for n in 0..MOST_TRIES {
            let behind = if n > 0 || !plan.unproven.is_empty() { Behind::Again } else { Behind::Anything };
            let (id, sent, compiled) = self.rustc(&self.needs_of(&plan, &needs), source, behind, &mut timing)?;
            match compiled {
                Compiled::Object(..) if plan.tied => {
                    learns(&mut plan, |plan| keep_for_a_time(&parsed, &loaded, plan));
                    source = generate(&plan).0;
                }
                Compiled::Object(..) if Held::new(&parsed, &loaded, &plan).is_tied() => {
                    return Err(one_cell_has_both(&loaded).into());
                }
                Compiled::Object(..)
                    if !plan.unproven.is_empty()
                        && learns(&mut plan, |plan| keep_for_a_time(&parsed, &loaded, plan)) =>
                {
                    source = generate(&plan).0;
                }
                Compiled::Object(..) if is_needed_for_good(&plan) => {
                    plan = Plan { older: plan.older, ..untried.clone() };
                    source = generate(&plan).0;
                }
                Compiled::Object(object, alone, warned) => {
                    self.say_edition(&first);
                    self.say_unused(&warned, &sent);
                    let keep = alone.then(|| (key, head(&plan, &id)));
                    return Ok(ready(&mut timing, plan, object, keep, &id));
                }
                Compiled::Errors(errors) if let Some(there) = without_what_is_left_out(&errors, &sent, &as_written) => {
                    return self.statements(cell, range, there, defs, scope, timing);
                }
                Compiled::Errors(errors)
                    if learns(&mut plan, |plan| {
                        replan(&errors, &sent, &parsed, &loaded, plan) | self.find_paths(&errors, &sent, &loaded, plan)
                    }) =>
                {
                    let name = |n: &usize| parsed.places.variables[*n].name.clone();
                    let filled: BTreeSet<String> = plan.filled.iter().map(name).chain(as_filled.clone()).collect();
                    if filled != as_filled {
                        as_filled = filled;
                        let scope = Scope { filled: &as_filled, ..*scope };
                        match self.statements(cell, range.clone(), as_written.clone(), defs.clone(), &scope, timing) {
                            // It is told as what it was to be at first.
                            Err(Refused::Failure(_)) => {}
                            done => return done,
                        }
                    }
                    source = generate(&plan).0;
                }
                Compiled::Errors(errors) if let Some(shadowing) = shadowing(&errors, &sent, &as_written, &defs) => {
                    return match self.statements(cell, range, shadowing, defs, scope, timing) {
                        Err(Refused::Failure(_)) => Err(self.failed(Compiled::Errors(errors), &sent, scope)),
                        done => done,
                    };
                }
                // A number may be of another type than it was taken to be of.
                Compiled::Errors(errors)
                    if self.takes_otherwise((&errors, &sent), &parsed, &loaded, &needs, &mut plan, &mut timing)? =>
                {
                    as_taken = about_types(&errors).count();
                    source = generate(&plan).0;
                }
                // A macro may take its arguments for something else than values.
                Compiled::Errors(errors)
                    if !plan.plain && !plan.as_written && in_macros(&plan) && !are_about_names(&errors) =>
                {
                    plan.as_written = true;
                    source = generate(&plan).0;
                }
                // A function's own type may be what is wanted.
                Compiled::Errors(_) if !std::mem::take(&mut plan.functions).is_empty() => source = generate(&plan).0,
                // What it seems not to need may be needed all the same.
                Compiled::Errors(_) if !plan.all_groups && to.is_less_than(&defs) => {
                    plan.all_groups = true;
                    source = generate(&plan).0;
                }
                // What is wrong is told of the cell as it is written.
                Compiled::Errors(errors)
                    if !plan.plain && (held(&plan) || plan.has_otherwise()) && !are_about_names(&errors) =>
                {
                    plan.plain = true;
                    // Where fewer is wrong with other types, the cell is told of with those.
                    if about_types(&errors).count() >= as_taken {
                        plan.open.clear();
                        plan.converted.clear();
                    }
                    source = generate(&plan).0;
                }
                Compiled::Errors(errors) if first.tries_older(&errors, &sent, &mut plan) => {
                    plan.plain = false;
                    source = generate(&plan).0;
                }
                Compiled::Errors(errors) => {
                    if again::have_no_value(&again, &errors) {
                        let declared = scope.declared.iter().filter(|(name, _)| !again.contains(*name));
                        let declared = &declared.map(|(name, d)| (name.clone(), d.clone())).collect();
                        let scope = Scope { declared, ..*scope };
                        return self.statements(cell, range, as_written, defs, &scope, timing);
                    }
                    let (errors, sent) = first.or(errors, sent);
                    return Err(self.failed(Compiled::Errors(errors), &sent, scope));
                }
                other => return Err(self.failed(other, &sent, scope)),
            }
        }
        Err(sentence("CompileError", "the cell does not settle after several compiles").into())
    }

    /// Where the types of variables are public that rustc could not find; false when there is nothing new.
    fn find_paths(&mut self, errors: &[Diagnostic], source: &Source, loaded: &[Loaded], plan: &mut Plan) -> bool {
        let unresolved = |e: &&Diagnostic| matches!(&*e.code, "E0603" | "E0433" | "E0412" | "E0425");
        let tag = |s: &Span| match source.provenance(s.start) {
            Provenance::Generated(Tag::Load(name)) if s.ours => Some(name.clone()),
            _ => None,
        };
        let names: BTreeSet<String> = errors.iter().filter(unresolved).flat_map(|e| &e.spans).filter_map(tag).collect();
        let before = plan.paths.len();
        for v in loaded.iter().filter(|v| names.contains(&v.name)) {
            let crates = self.crates();
            plan.paths.extend(self.paths.find(&v.written_type, || crates));
        }
        plan.paths.len() > before
    }
}

/// What the cache keeps beside an object: what had to be learned, and the name that its locations carry.
fn head(plan: &Plan, id: &str) -> Value {
    let mut head = plan.to_json();
    head["id"] = id.into();
    head
}
