//! From a cell's text to an object that the session can load: definitions first, then statements, with what rustc
//! answers taken into account.
use super::errors::{Known, compile_failure, point_out, sentence};
use super::generate::{self, Loaded, Plan};
use super::groups::{Definitions, Group};
use super::install::Installation;
use super::rustc::{self, AtWork, Compiled, Diagnostic, Warm};
use super::scan;
use super::source::{CellText, Place, Source, Tag};
use super::split::{self, Parsed};
use super::types::{Named, nameable, surely_moves};
use crate::engine::Failure;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use xlazy_mime::Var;

/// Compiles cells, and keeps a compiler waiting for the next one.
pub struct Compiler {
    install: Installation,
    dir: PathBuf,
    serial: u64,
    warm: Option<(Warm, Vec<(String, PathBuf)>)>,
    pub defs: Definitions,
    sources: HashMap<String, Arc<Source>>,
    objects: HashMap<String, PathBuf>,
    pub at_work: AtWork,
}

/// A compiled cell. Nothing has changed yet; [`Compiler::commit`] puts its definitions in force.
pub struct Ready {
    /// None when the cell has nothing to run.
    pub object: Option<PathBuf>,
    pub file: String,
    /// The same for definitions that were compiled with it.
    pub group_file: Option<String>,
    defs: Definitions,
    /// Variables that it moves away, by what is known beforehand.
    pub moves: BTreeSet<String>,
    pub timing: Timing,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    pub group_ms: f64,
    pub cell_ms: f64,
    pub tries: u32,
}

pub enum Refused {
    Failure(Failure),
    Interrupted,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        Refused::Failure(failure)
    }
}

/// What the session's store holds, as far as a compile needs it.
pub struct Scope<'a> {
    pub vars: &'a [Var],
    /// What became of variables that are no longer there.
    pub gone: &'a HashMap<String, String>,
}

const MOST_TRIES: u32 = 8;

impl Compiler {
    pub fn new(install: Installation, dir: PathBuf) -> Compiler {
        let mut compiler = Compiler {
            install,
            dir,
            serial: 0,
            warm: None,
            defs: Definitions::default(),
            sources: HashMap::new(),
            objects: HashMap::new(),
            at_work: AtWork::default(),
        };
        compiler.warm_up();
        compiler
    }

    /// The source that a location's file name stands for.
    pub fn source(&self, file: &str) -> Option<Arc<Source>> {
        self.sources.get(file).cloned()
    }

    /// Starts the compiler for the next cell, if none fits that waits already.
    pub fn warm_up(&mut self) {
        let externs = self.defs.externs();
        if self.warm.as_ref().is_some_and(|(_, e)| *e == externs) {
            return;
        }
        self.cool_down();
        self.warm = self.start(&externs).ok().map(|w| (w, externs));
    }

    pub fn cool_down(&mut self) {
        if let Some((warm, _)) = self.warm.take() {
            warm.discard();
        }
    }

    fn start(&mut self, externs: &[(String, PathBuf)]) -> Result<Warm, Failure> {
        self.serial += 1;
        rustc::start(&self.install, &self.dir, self.serial, externs, &[])
            .map_err(|e| sentence("CompileError", format!("rustc does not start: {e}")))
    }

    /// A waiting compiler that knows these groups, or a new one.
    fn take(&mut self, externs: &[(String, PathBuf)]) -> Result<Warm, Failure> {
        match self.warm.take() {
            Some((warm, known)) if known == externs => Ok(warm),
            other => {
                self.warm = other;
                self.start(externs)
            }
        }
    }

    /// Compiles part of a cell.
    pub fn compile(&mut self, cell: &Arc<CellText>, range: Range<usize>, scope: &Scope) -> Result<Ready, Refused> {
        let Ok(parsed) = split::parse(cell, range.clone()) else {
            return Err(unbalanced(cell, range.clone()).unwrap_or_else(|| self.explain_syntax(cell, range, scope)));
        };
        let mut timing = Timing::default();
        let (defs, group_file) = self.definitions(cell, range.clone(), &parsed, scope, &mut timing)?;
        // A lone `use` is compiled only to see whether it is right; beside items, their group has shown it.
        if !parsed.has_statements && (!parsed.items.is_empty() || parsed.use_ranges.is_empty()) {
            let file = String::new();
            return Ok(Ready { object: None, file, group_file, defs, moves: BTreeSet::new(), timing });
        }
        let mut ready = self.statements(cell, range, parsed, defs, scope, timing)?;
        ready.group_file = group_file;
        Ok(ready)
    }

    pub fn commit(&mut self, ready: &Ready) {
        self.defs = ready.defs.clone();
    }

    /// Compiles the cell's items, with those of earlier cells that depend on them.
    fn definitions(
        &mut self,
        cell: &Arc<CellText>,
        range: Range<usize>,
        parsed: &Parsed,
        scope: &Scope,
        timing: &mut Timing,
    ) -> Result<(Definitions, Option<String>), Refused> {
        let change = self.defs.change(parsed);
        if !change.needed {
            return Ok((change.rest.commit(None, parsed), None));
        }
        let begin = Instant::now();
        let mut plan = Plan::default();
        let externs = change.rest.externs();
        for _ in 0..MOST_TRIES {
            timing.tries += 1;
            let (name, source) = generate::group(cell, range.clone(), parsed, &change.moved, &change.rest, &plan);
            let known = self.objects.get(&name).cloned();
            let mut file = None;
            let object = match known {
                Some(object) => object,
                None => {
                    let warm = self.take(&externs)?;
                    file = Some(rustc::file_name(warm.serial));
                    let source = self.remember(warm.serial, source);
                    match warm.compile(&source.text, &self.at_work) {
                        // Its file keeps the name it was linked under: cells find it by that (DT_NEEDED).
                        Compiled::Object(object) => {
                            // A crate that depends on it is found by crate name (rustc's search for dependencies).
                            let by_name = self.dir.join(format!("lib{name}.so"));
                            std::fs::hard_link(&object, by_name)
                                .map_err(|e| sentence("CompileError", e.to_string()))?;
                            self.objects.insert(name.clone(), object.clone());
                            object
                        }
                        Compiled::Errors(errors) if learn(&errors, &source, &mut plan) => continue,
                        other => return Err(failed(other, &source, scope)),
                    }
                }
            };
            let mut items = parsed.items.clone();
            items.extend(change.moved.iter().cloned());
            timing.group_ms = begin.elapsed().as_secs_f64() * 1e3;
            return Ok((change.rest.commit(Some(Group { crate_name: name, object, items }), parsed), file));
        }
        Err(sentence("CompileError", "the definitions do not settle after several compiles").into())
    }

    fn statements(
        &mut self,
        cell: &Arc<CellText>,
        range: Range<usize>,
        parsed: Parsed,
        defs: Definitions,
        scope: &Scope,
        mut timing: Timing,
    ) -> Result<Ready, Refused> {
        let begin = Instant::now();
        let loaded = load_list(&parsed, scope, &defs)?;
        let moves = |v: &&Loaded| {
            let var = scope.vars.iter().find(|s| s.name == v.name);
            parsed.moved.contains(&v.name) && var.is_some_and(|s| !s.handle && surely_moves(&s.type_name))
        };
        let mut plan = Plan { moved: loaded.iter().filter(moves).map(|v| v.name.clone()).collect(), ..Plan::default() };
        let externs = defs.externs();
        for _ in 0..MOST_TRIES {
            timing.tries += 1;
            let warm = self.take(&externs)?;
            let serial = warm.serial;
            let source = generate::cell(cell, range.clone(), &parsed, &defs, &loaded, &plan, serial);
            let source = self.remember(serial, source);
            match warm.compile(&source.text, &self.at_work) {
                Compiled::Object(object) => {
                    timing.cell_ms = begin.elapsed().as_secs_f64() * 1e3;
                    let moves = plan.moved.into_iter().chain(plan.spent).collect();
                    let file = rustc::file_name(serial);
                    return Ok(Ready { object: Some(object), file, group_file: None, defs, moves, timing });
                }
                Compiled::Errors(errors) if learn(&errors, &source, &mut plan) => {}
                other => return Err(failed(other, &source, scope)),
            }
        }
        Err(sentence("CompileError", "the cell does not settle after several compiles").into())
    }

    fn remember(&mut self, serial: u64, source: Source) -> Arc<Source> {
        let source = Arc::new(source);
        if let Some(dir) = std::env::var_os("XLAZY_KEEP_SOURCES") {
            let _ =
                std::fs::write(PathBuf::from(dir).join(rustc::file_name(serial)).with_extension("rs"), &source.text);
        }
        self.sources.insert(rustc::file_name(serial), source.clone());
        source
    }

    /// rustc's own words about text that does not parse.
    fn explain_syntax(&mut self, cell: &Arc<CellText>, range: Range<usize>, scope: &Scope) -> Refused {
        let externs = self.defs.externs();
        let warm = match self.take(&externs) {
            Ok(warm) => warm,
            Err(failure) => return failure.into(),
        };
        let source = generate::cell(
            cell,
            range,
            &Parsed::default(),
            &Definitions::default(),
            &[],
            &Plan::default(),
            warm.serial,
        );
        let source = self.remember(warm.serial, source);
        match warm.compile(&source.text, &self.at_work) {
            Compiled::Object(_) => {
                sentence("CompileError", "this is Rust that xlazy cannot take apart; put it into a function").into()
            }
            other => failed(other, &source, scope),
        }
    }
}

fn failed(compiled: Compiled, source: &Source, scope: &Scope) -> Refused {
    match compiled {
        Compiled::Errors(errors) => {
            let vars: Vec<&str> = scope.vars.iter().map(|v| v.name.as_str()).collect();
            Refused::Failure(compile_failure(&errors, source, &Known { gone: scope.gone, vars: &vars }))
        }
        Compiled::Broken(what) => Refused::Failure(sentence("CompileError", what)),
        Compiled::Stopped | Compiled::Object(_) => Refused::Interrupted,
    }
}

/// A delimiter without its partner, or a literal without its end: rustc would point at the braces that we generate.
fn unbalanced(cell: &Arc<CellText>, range: Range<usize>) -> Option<Refused> {
    let text = &cell.text[range.clone()];
    let (at, title, label) = scan::unbalanced(text)?;
    Some(Refused::Failure(point_out(cell, at.start + range.start..at.end + range.start, &title, label)))
}

/// The variables that the cell mentions, with their types as this cell can write them.
fn load_list(parsed: &Parsed, scope: &Scope, defs: &Definitions) -> Result<Vec<Loaded>, Failure> {
    let mut out = Vec::new();
    for var in scope.vars.iter().filter(|v| parsed.mentions.contains(&v.name)) {
        let mut adopt = false;
        let named = nameable(&var.type_name, &mut |crate_name, path| {
            let (written, again) = defs.current_path(crate_name, path)?;
            adopt |= again;
            Some(written)
        });
        match named {
            Named::Type(written_type) => out.push(Loaded { name: var.name.clone(), written_type, adopt }),
            // Declared again here, or meant as something else: rustc will tell if it is missed.
            Named::Refused(_) if defs.item(&var.name).is_some() => {}
            Named::Refused(_) => {}
        }
    }
    Ok(out)
}

/// Changes the plan by what rustc says about generated code; false when there is nothing to learn.
fn learn(errors: &[Diagnostic], source: &Source, plan: &mut Plan) -> bool {
    let before = plan.clone();
    for error in errors {
        if error.code == "E0277" && error.message.contains("`?` couldn't convert") {
            plan.debug_errors = true;
        }
        if error.code == "E0507"
            && error.message.contains("captured variable in an `FnMut` closure")
            && let Some(name) = error.message.split('`').nth(1)
        {
            let name = name.split(['.', '[']).next().unwrap_or(name).trim_start_matches('*');
            plan.moved.insert(name.to_owned());
        }
        for span in error.spans.iter().filter(|s| s.ours) {
            let Place::Generated(tag) = source.place(span.start) else { continue };
            match tag {
                Tag::Restore(name) if error.code == "E0382" => drop(plan.moved.insert(name.clone())),
                Tag::Keep(name) if matches!(&*error.code, "E0382" | "E0381") => drop(plan.spent.insert(name.clone())),
                Tag::Keep(name) if matches!(&*error.code, "E0525" | "E0594" | "E0596" | "E0507") => {
                    *plan.closures.entry(name.clone()).or_insert(0) += 1;
                }
                Tag::Use(binds) => drop(plan.dropped_uses.insert(binds.clone())),
                _ => {}
            }
        }
    }
    *plan != before && plan.closures.values().all(|level| *level <= 2)
}
