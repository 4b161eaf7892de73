//! What is advised as a change of the cell's text, so that it can be tried, and what is advised of what comes of it.
use super::division;
use super::instead::{ANSWER, IN_RUST};
use super::literals::is_rust;
use super::python;
use super::texts::Texts;
use super::words::Words;
use crate::eval::text::source::CellText;
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use std::ops::Range;
use std::sync::Arc;

/// A place of a cell, and what is to be written there.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub text: Arc<CellText>,
    pub at: Range<usize>,
    pub code: String,
    /// What it may be instead, where that does not do.
    pub others: Vec<String>,
}

impl Change {
    pub(super) fn new(text: &Arc<CellText>, at: Range<usize>, code: String) -> Change {
        // What a list holds is lent, or is the closure's own.
        let (lent, owned) = (".iter().", ".iter().cloned().");
        let other = if code.contains(owned) { code.replace(owned, lent) } else { code.replace(lent, owned) };
        let mut others = if other == code { vec![] } else { vec![other] };
        // What has no text of its own is shown as code.
        if (code.starts_with("println!(") || code.starts_with("format!(")) && code.contains("{}") {
            others.push(code.replace("{}", "{:?}"));
        }
        // A text is a list of characters.
        const LIST: &str = ".cloned().collect::<Vec<_>>()";
        if let Some(of) = code.strip_suffix(LIST) {
            others.push(of.replacen(".iter()", ".chars()", 1) + ".collect::<String>()");
        }
        others.extend(division::others(&code));
        // Floats have no order of all.
        for (most, first) in [("max", "f64::MIN"), ("min", "f64::MAX")] {
            let of = code.strip_suffix(&format!(".{most}().unwrap()")).filter(|of| of.contains("|"));
            others.extend(of.map(|of| format!("{of}.fold({first}, f64::{most})")));
        }
        // What a block ends in is its value.
        if code.contains(".set(") && !code.ends_with(';') {
            others.push(format!("{code};"));
        }
        Change { text: text.clone(), at, code, others }
    }
}

/// The change that help in words is about, where it has code for the call, the method or the value that rustc points at.
pub(super) fn of_help(help: &str, error: &Diagnostic, texts: &Texts) -> Option<Change> {
    let said = [ANSWER, IN_RUST].iter().find_map(|begin| help.strip_prefix(begin))?;
    let whole = |code: &&str| !code.contains(['…', '?']) && is_rust(code.strip_prefix('.').unwrap_or(code));
    let mut codes = said.split('`').skip(1).step_by(2).filter(whole).map(str::to_owned);
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let words = Words::of(&text.text);
    let code = codes.next()?;
    let call = || {
        let name = words.at(at.start)?;
        Some((name, words.tokens[words.arguments(name)?.end].range.end))
    };
    let formats = code.starts_with("format!(") && error.code == "E0599";
    let at = match (code.starts_with('.'), call()) {
        _ if error.code == "E0614" => python::power_at(&text.text, at.start)?,
        (_, Some((name, end))) if formats => {
            let dot = name.checked_sub(1)?;
            words.tokens[words.operand_before(dot)?].range.start..end
        }
        (true, Some((name, end))) => words.tokens.get(name.checked_sub(1)?)?.range.start..end,
        (false, Some((_, end))) if matches!(&*error.code, "E0423" | "E0425" | "E0618") => at.start..end,
        (false, _) if code.contains(text.text.get(at.clone())?) => at,
        _ => return None,
    };
    let change = Change::new(text, at, code);
    Some(Change { others: change.others.into_iter().chain(codes).collect(), ..change })
}

/// What rustc itself suggests for an error, where all of that is in the user's text: the first of its suggestions.
pub(super) fn suggested(error: &Diagnostic, texts: &Texts) -> Option<Vec<Change>> {
    let change = |s: &Span| {
        let (text, at) = texts.source.user_place_of_change(s.start..s.end).filter(|_| s.ours)?;
        // A reason is the user's to say.
        Some(Change::new(text, at, s.replacement.clone()?.replace(".expect(\"REASON\")", ".unwrap()")))
    };
    // What is only called alike is not meant.
    const GUESSES: [&str; 5] =
        ["similar", "available field", "field of the same name", "method of the same name", "import"];
    let guess = |c: &&Diagnostic| GUESSES.iter().any(|w| c.message.contains(w));
    let new = |c: &Diagnostic| {
        let all = c.spans.iter().map(change).collect::<Option<Vec<Change>>>();
        // A statement of Python's ends with its line; elsewhere something else is missing.
        let ends = |c: &Change| c.text.text[c.at.end..].trim_start_matches([' ', '\t']).starts_with(['\n', '#']);
        all.filter(|new| new.iter().any(|change| change.code != ";" || ends(change)))
    };
    error.children.iter().filter(|c| !guess(c)).find_map(new)
}
