//! What a cell hears when it does not compile: rustc's words at the cell's lines, or what the machine refuses.
use super::cache::stamp;
use super::compiler::{Behind, Compiler, Scope, Timing};
use super::replan::hidden_functions;
use crate::engine::{Failure, Reply, sentence};
use crate::eval::generate::code::{self as generate, Plan};
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::parsed::Parsed;
use crate::eval::tell::asked::Rustc;
use crate::eval::tell::errors::explain;
use crate::eval::tell::ours::Ours;
use crate::eval::tell::point::point_out;
use crate::eval::tell::python::{divided, of_quotes};
use crate::eval::tell::retold::Known;
use crate::eval::text::depth::{Depth, TooDeep};
use crate::eval::text::scan;
use crate::eval::text::source::{CellText, Source};
use crate::eval::toolchain::diagnostic::Diagnostic;
use crate::eval::toolchain::rustc::{Check, Compiled, Needs};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// An error waits no longer for what could be said about it.
const PATIENCE: Duration = Duration::from_secs(15);

pub enum Refused {
    Failure(Failure),
    Interrupted,
}

impl From<Refused> for Reply {
    fn from(refused: Refused) -> Reply {
        match refused {
            Refused::Failure(failure) => Reply::Error(failure),
            Refused::Interrupted => Reply::Interrupted,
        }
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        Refused::Failure(failure)
    }
}

impl Compiler {
    /// rustc's own words about text that does not parse.
    pub(super) fn explain_syntax(&mut self, cell: &Arc<CellText>, range: Range<usize>, scope: &Scope) -> Refused {
        let needs = self.needs(&self.defs);
        let (nothing, plan) = (Definitions::default(), Plan::default());
        let source = generate::cell(cell, range, &Parsed::default(), &nothing, &nothing, &[], &plan);
        match self.rustc(&needs, source, Behind::Anything, &mut Timing::default()) {
            Ok((_, _, Compiled::Object(..))) => {
                sentence("CompileError", "this is Rust that xlazy cannot take apart; put it into a function").into()
            }
            Ok((_, source, other)) => self.failed(other, &source, scope),
            Err(failure) => failure.into(),
        }
    }

    pub(super) fn failed(&mut self, compiled: Compiled, source: &Arc<Source>, scope: &Scope) -> Refused {
        match compiled {
            Compiled::Errors(errors) => {
                let hidden: Vec<String> =
                    errors.iter().flat_map(|e| &e.children).flat_map(|c| hidden_functions(&c.message)).collect();
                self.calls.hear(&errors, source);
                if self.calls.quiet {
                    return sentence("CompileError", "").into();
                }
                if let Some(name) = hidden.first() {
                    let what =
                        format!("`{name}` cannot be made a function pointer here: write a closure, `|x| x.{name}()`");
                    return sentence("CompileError", what).into();
                }
                let vars: Vec<&str> = scope.vars.iter().map(|v| v.name.as_str()).collect();
                let is_type = |name: &str| self.defs.type_named(name).is_some();
                let mut gone = scope.gone.clone();
                gone.extend(self.left.iter().cloned());
                let unset = scope.declared.iter().filter(|(_, d)| d.is_unset());
                gone.extend(unset.map(|(name, d)| {
                    (name.clone(), format!("has no value yet: cell {} declares it without one", d.cell))
                }));
                let is_imported = |name: &str| self.defs.uses.iter().any(|u| u.binds == name);
                let is_value = |name: &str| self.defs.value_named(name).is_some();
                let (is_type, is_value, is_imported, sources) = (&is_type, &is_value, &is_imported, &self.sources());
                let var = |name: &str| scope.vars.iter().find(|v| v.name == name);
                let type_of = |name: &str| var(name).map(|v| &*v.type_name);
                let summary_of = |name: &str| var(name).map(|v| &*v.summary);
                let rustc = Rustc {
                    ask: &|source| self.ask(source),
                    type_of: &type_of,
                    summary_of: &summary_of,
                    ours: Ours::new(scope.ours),
                };
                let declared = scope.declared;
                let known =
                    Known { gone: &gone, declared, vars: &vars, is_type, is_value, is_imported, sources, rustc };
                if let Some(failure) = self.not_the_cell(&errors) {
                    return Refused::Failure(failure);
                }
                let explained = explain(&errors, source, &known);
                let failure = explained.failure();
                self.explained = Some(explained);
                Refused::Failure(failure)
            }
            Compiled::TooDeep => Refused::Failure(too_deep(source)),
            Compiled::Broken(what) | Compiled::Died(what) => Refused::Failure(self.machine(what.trim_end())),
            Compiled::Stopped | Compiled::Object(..) | Compiled::Known(_) => Refused::Interrupted,
        }
    }

    /// What rustc says of that source, told what it was told of the one before.
    fn ask(&self, source: &str) -> Vec<Diagnostic> {
        let id = format!("asked-{}", self.warmer.new_id());
        let told = Needs { externs: self.placed(self.told.externs.clone()), ..self.told.clone() };
        let check = Check::start(&self.install, &self.dir, &id, &told);
        check.map(|check| check.errors(source, PATIENCE)).unwrap_or_default()
    }

    /// Errors that no change of the cell would mend.
    fn not_the_cell(&self, errors: &[Diagnostic]) -> Option<Failure> {
        let of_ours = |e: &&Diagnostic| !e.spans.iter().any(|s| s.ours);
        let is_toolchain = |e: &&Diagnostic| {
            e.code == "E0514" || e.code == "E0463" && ["`std`", "`core`"].iter().any(|c| e.message.contains(c))
        };
        if let Some(error) = errors.iter().find(is_toolchain) {
            let rustc = self.install.toolchain.rustc.display();
            return Some(
                self.toolchain(&format!("{rustc} is not the rustc that xlazy was built with: {}", error.message)),
            );
        }
        // Crates that do not fit the library: another one lies there by now.
        let misfit = |e: &&Diagnostic| matches!(&*e.code, "E0460" | "E0461" | "E0462" | "E0463" | "E0786");
        if errors.iter().any(|e| misfit(&e)) && stamp(&self.install.runtime_so) != self.library {
            const UPDATED: &str = "xlazy was updated since this session began: restart the kernel. Variables, magics and cells that \
                were compiled before go on working until then";
            return Some(sentence("ToolchainError", UPDATED));
        }
        let text: String = errors.iter().filter(of_ours).map(Diagnostic::text).collect();
        let refusal = text.lines().find(|l| self.folder.advice(l).is_some())?;
        Some(self.machine(refusal.trim()))
    }
}

/// rustc's stack was not enough, as large as it is: what of the user's text is deepest, if any of it is deep.
fn too_deep(source: &Source) -> Failure {
    const TITLE: &str = "rustc ran out of stack while it compiled this";
    let depths = source.texts().into_iter().map(|text| (text, Depth::of(&text.text)));
    match depths.max_by_key(|(_, depth)| depth.stack()).filter(|(_, depth)| depth.is_deep()) {
        Some((text, depth)) => {
            let (what, at) = depth.deepest();
            point_out(text, at, TITLE, &format!("{what}: {}", TooDeep::ADVICE))
        }
        None => sentence("CompileError", format!("{TITLE}: a type or a value that is made without end, most likely")),
    }
}

/// A delimiter without its partner, or a literal without its end: rustc would point at the braces that we generate.
pub(super) fn unbalanced(cell: &Arc<CellText>, range: Range<usize>, ours: &Ours) -> Option<Refused> {
    let text = &cell.text[range.clone()];
    let (at, title, label) = scan::unbalanced(text)?;
    if let Some((at, said)) = of_quotes(text, at.start, ours) {
        let at = at.start + range.start..at.end + range.start;
        return Some(Refused::Failure(point_out(cell, at, "this is no text in Rust", &said)));
    }
    let line = text[at.start..].lines().next().unwrap_or_default();
    let line = &text[text[..at.start].rfind('\n').map_or(0, |end| end + 1)..at.start + line.len()];
    let label = divided(line).unwrap_or(label);
    Some(Refused::Failure(point_out(cell, at.start + range.start..at.end + range.start, &title, label)))
}
