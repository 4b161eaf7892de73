//! Text that was written for an earlier edition of Rust: what today's refuses, that one may take.
use super::compiler::Compiler;
use crate::eval::deps::cargo::manifest_text;
use crate::eval::generate::code::{OLDER, Plan};
use crate::eval::text::source::Source;
use crate::eval::toolchain::diagnostic::Diagnostic;
use crate::eval::toolchain::rustc::{EDITION_OLDER, Needs};
use std::path::PathBuf;
use std::sync::Arc;

/// rustc's first answer, for when the other edition has no better one.
#[derive(Default)]
pub(super) struct First(Option<(Vec<Diagnostic>, Arc<Source>)>);

impl First {
    /// Whether the text is tried as that of the earlier edition.
    pub fn tries_older(&mut self, errors: &[Diagnostic], source: &Arc<Source>, plan: &mut Plan) -> bool {
        if plan.older || !may_be_older(errors) {
            return false;
        }
        plan.older = true;
        self.0 = Some((errors.to_vec(), source.clone()));
        true
    }

    /// What to tell in the end: what today's edition says, unless the earlier one has come further.
    pub fn or(self, errors: Vec<Diagnostic>, source: Arc<Source>) -> (Vec<Diagnostic>, Arc<Source>) {
        self.0.filter(|_| may_be_older(&errors)).unwrap_or((errors, source))
    }
}

/// Names, types and what is assigned to are what they are in any edition.
fn may_be_older(errors: &[Diagnostic]) -> bool {
    const IN_ANY: [&str; 12] =
        ["E0282", "E0308", "E0369", "E0384", "E0412", "E0423", "E0425", "E0432", "E0433", "E0463", "E0596", "E0599"];
    let all = || errors.iter().filter(|e| e.level.starts_with("error"));
    // Words that were none of Rust's are told of beside everything else that is wrong.
    let of_words =
        |e: &Diagnostic| e.code.is_empty() && ["keyword `", "prefix `"].iter().any(|w| e.message.contains(w));
    all().any(|e| e.spans.iter().any(|s| s.ours)) && (all().any(of_words) || !all().any(|e| IN_ANY.contains(&&*e.code)))
}

impl Compiler {
    /// What rustc is told for that plan.
    pub(super) fn needs_of(&self, plan: &Plan, needs: &Needs) -> Needs {
        let mut needs = needs.clone();
        needs.options.extend(plan.older.then(|| EDITION_OLDER.to_owned()));
        needs.manifest = if plan.manifest { self.manifest() } else { None };
        needs
    }

    /// The folder of a package that depends on what the notebook does.
    fn manifest(&self) -> Option<PathBuf> {
        let folder = self.dir.join("package");
        std::fs::create_dir_all(&folder).ok()?;
        let wanted = self.defs.deps.as_ref().map(|deps| deps.wanted()).unwrap_or_default();
        std::fs::write(folder.join("Cargo.toml"), manifest_text("notebook", "notebook", "", &wanted)).ok()?;
        Some(folder)
    }

    /// Says which edition it was, once for a cell.
    pub(super) fn say_edition(&mut self, first: &First) {
        let said =
            first.0.as_ref().and_then(|(errors, _)| errors.first()).map(|e| e.message.lines().next().unwrap_or(""));
        if let Some(said) = said {
            self.notes.push(format!("compiled as Rust of edition {OLDER}: today's says {said}"));
        }
    }
}
