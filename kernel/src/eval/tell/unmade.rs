//! Names that are not there because the cell that declares them did not compile: told once for each such cell, whatever the
//! next cell mentions of it.
use super::retold::{About, Retold};
use crate::eval::toolchain::diagnostic::Diagnostic;

const BEFORE: &str = " is not there: ";
const BEHIND: &str = ", which declares it, did not compile";

/// What became of a name that this cell would have declared.
pub fn unmade(cell: &str) -> String {
    format!("{}{cell}{BEHIND}", BEFORE.trim_start())
}

/// The name and the cell, where an error is told as that and nothing more.
fn parts(retold: Option<&Retold>) -> Option<(&str, &str)> {
    let Retold { title, help: None, about: About::Words, .. } = retold? else { return None };
    title.strip_suffix(BEHIND)?.split_once(BEFORE)
}

/// The errors with all names of a cell told where the first of them is mentioned.
pub(super) fn together(all: &[(Diagnostic, Option<Retold>)]) -> Vec<(Diagnostic, Option<Retold>)> {
    let mut out: Vec<(Diagnostic, Option<Retold>)> = Vec::new();
    // Of each cell where it is told, and its names.
    let mut told: Vec<(&str, usize, Vec<&str>)> = Vec::new();
    for (error, retold) in all {
        if let Some((name, cell)) = parts(retold.as_ref()) {
            match told.iter_mut().find(|t| t.0 == cell) {
                Some((_, _, names)) if names.contains(&name) => continue,
                Some((_, _, names)) => {
                    names.push(name);
                    continue;
                }
                None => told.push((cell, out.len(), vec![name])),
            }
        }
        out.push((error.clone(), retold.clone()));
    }
    for (cell, at, names) in told {
        if let ([rest @ .., last], (_, Some(retold))) = (&names[..], &mut out[at])
            && !rest.is_empty()
        {
            retold.title =
                format!("{} and {last} are not there: {cell}, which declares them, did not compile", rest.join(", "));
        }
    }
    out
}
