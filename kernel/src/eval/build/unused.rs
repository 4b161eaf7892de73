//! What a cell is given and does not look at, such as a `Result` that may be an error, or what is behind `//`.
use super::compiler::Compiler;
use crate::eval::tell::texts::Texts;
use crate::eval::text::scan::{self, Kind};
use crate::eval::text::source::{CellText, Source, line_column};
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
            self.say_once(note);
        }
    }

    /// Says where `//` hides what Python divides by: `x // 4`.
    pub(super) fn say_undivided(&mut self, cell: &CellText) {
        for pair in scan::tokens(&cell.text).windows(2) {
            let [value, comment] = pair else { continue };
            let is_value = matches!(value.kind, Kind::Ident | Kind::Number | Kind::Close(')' | ']'));
            let beside = cell.text[value.range.end..comment.range.start].chars().all(|c| c == ' ');
            let text = &cell.text[comment.range.clone()];
            let by = text.strip_prefix("//").map_or("", |by| by.trim().trim_end_matches([';', ')']).trim());
            if comment.kind != Kind::Comment || !is_value || !beside || by.parse::<f64>().is_err() {
                continue;
            }
            let (line, column) = line_column(&cell.text, comment.range.start);
            let note = format!(
                "{}:{line}:{column}: `//` begins a comment, and `{by}` is a part of it: floor division is `x.floor_divide({by})` of a tensor and \
                 `x / {by}` of a whole number",
                cell.label()
            );
            self.say_once(note);
        }
    }

    /// A cell that is compiled twice says it once.
    fn say_once(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
