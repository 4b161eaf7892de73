//! What a cell is given and does not look at, such as a `Result` that may be an error.
use super::compiler::Compiler;
use crate::eval::tell::texts::Texts;
use crate::eval::text::source::{Source, line_column};
use crate::eval::toolchain::diagnostic::Diagnostic;

impl Compiler {
    /// Says what of the user's text rustc warns of.
    pub(super) fn say_unused(&mut self, warned: &[Diagnostic], source: &Source) {
        let texts = Texts::new(source);
        // A semicolon behind a value hides it: only what a type wants looked at is told.
        for warning in warned.iter().filter(|w| w.message.starts_with("unused `")) {
            let Some((text, at)) = warning.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s)) else {
                continue;
            };
            let (line, column) = line_column(&text.text, at.start);
            let code = text.text[at.clone()].lines().next().unwrap_or_default();
            let said = warning.message.replace("`std::result::Result`", "`Result`").replace("`std::iter::", "`");
            let help = match said.starts_with("unused `Result`") {
                true => ": `?` or `.unwrap()` behind it tells of an error, `let _ =` in front of it leaves it alone",
                false => "",
            };
            let note = format!("{}:{line}:{column}, `{code}`: {said}{help}", text.label());
            // A cell that is compiled twice says it once.
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}
