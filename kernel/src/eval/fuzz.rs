//! What the fuzz targets call (`fuzz/`): the text of a cell, and of macros that it defines.
use super::parse::expand::{self, Copied};
use super::parse::segments::{Segment, segments};
use super::parse::split;
use super::text::scan;
use super::text::source::CellText;
use std::ops::Range;
use std::sync::Arc;

/// Takes a cell apart: never a panic, and every place that is found is one in the text.
pub fn split(text: &str) {
    let mut at = 0;
    for token in scan::tokens(text) {
        assert!(text[at..token.range.start].chars().all(char::is_whitespace), "{text:?} between two tokens");
        assert!(token.range.end > token.range.start, "an empty token in {text:?}");
        at = token.range.end;
    }
    assert!(text[at..].trim().is_empty(), "{text:?} behind the last token");
    let cell = Arc::new(CellText::new(1, text));
    let mut from = 0;
    for segment in segments(text, &|name| name == "known") {
        let range = match &segment {
            Segment::Code(range) | Segment::Command(range) => range.clone(),
            Segment::Magic { line, body } => line.start..body.as_ref().map_or(line.end, |b| b.end),
        };
        assert!(text[from..range.start].trim().is_empty(), "{text:?}: {segment:?} leaves something out");
        from = range.end;
        if let Segment::Code(range) = segment {
            code(&split::ended(&cell, range));
        }
    }
    assert!(text[from..].trim().is_empty(), "{text:?}: something is left out at the end");
}

/// Code is parsed with the macros that it defines itself.
fn code((cell, range): &(Arc<CellText>, Range<usize>)) {
    let Ok(first) = split::parse(cell, range.clone(), &[]) else { return };
    let Ok(parsed) = split::parse(cell, range.clone(), &first.macros) else { return };
    let inside = |r: &Range<usize>| {
        assert!(r.start >= range.start && r.end <= range.end, "{:?}: {r:?}", cell.text);
        let _ = &cell.text[r.clone()];
    };
    parsed
        .use_ranges
        .iter()
        .chain(&parsed.inner_attributes)
        .chain(&parsed.trailing)
        .chain(&parsed.returns)
        .for_each(inside);
    parsed.edits.iter().map(|e| &e.range).for_each(inside);
    parsed.taken.iter().map(|t| &t.1).chain(parsed.captures.iter().map(|c| &c.0)).for_each(inside);
    parsed.statements.iter().for_each(|at| inside(&(*at..*at)));
    for item in &parsed.items {
        let text = &item.source.text[item.range.clone()];
        for edit in &item.edits {
            let _ = &item.source.text[edit.range.clone()];
            assert!(edit.range.start >= item.range.start && edit.range.end <= item.range.end, "{text:?}: {edit:?}");
        }
    }
}

/// Expands a call: never a panic, and what is said to be copied is a copy.
pub fn expand(rules: &str, call: &str) {
    let text = |text: &str| CellText::new(1, text);
    let Some(made) = expand::expand(&text(rules), 0..rules.len(), &text(call), 0..call.len()) else { return };
    for (at, from) in &made.parts {
        let (of, start) = match from {
            Copied::Rules(start) => (rules, *start),
            Copied::Call(start) => (call, *start),
        };
        assert_eq!(made.text[at.clone()], of[start..start + at.len()], "{rules:?} {call:?}");
    }
    assert!(made.whole.iter().all(|r| made.text.get(r.clone()).is_some()), "{rules:?} {call:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;

    #[test]
    fn the_kept_cells_are_split() {
        corpus::joined("splitter", split);
    }

    #[test]
    fn the_kept_macros_are_expanded() {
        corpus::joined("expander", |text| {
            if let Some((rules, call)) = text.rsplit_once("===") {
                expand(rules, call);
            }
        });
    }
}
