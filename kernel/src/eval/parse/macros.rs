//! What calls of the notebook's macros make, as text.
use super::expand::{Copied, Expansion, Macro, expand};
use super::format_strings::Rules;
use super::hygiene::told_apart;
use crate::eval::text::depth;
use crate::eval::text::scan::{self, Kind, Token};
use crate::eval::text::source::CellText;
use std::ops::Range;
use std::sync::Arc;

/// What a rule makes of a call's arguments.
pub(super) struct MadeText<'m> {
    rules: &'m Macro,
    /// Where the arguments are, with documentation as attributes.
    given: Arc<CellText>,
    made: Expansion,
}

/// What the macro makes of these arguments; `None` where no rule fits.
pub(super) fn made_by_rules<'m>(
    rules: &'m Macro,
    cell: &Arc<CellText>,
    arguments: Range<usize>,
) -> Option<MadeText<'m>> {
    let (given, arguments) = with_docs(cell, arguments);
    let made = expand(&rules.source, rules.range.clone(), &given, arguments)?;
    Some(MadeText { rules, given, made })
}

impl MadeText<'_> {
    pub fn len(&self) -> usize {
        self.made.text.len()
    }

    /// Whether it can be parsed, as deep as it is.
    pub fn fits(&self) -> bool {
        depth::fits(&self.made.text)
    }

    /// As a text of that cell, with the macro's variables told apart from the caller's.
    pub fn told_apart(self, name: &str, rules: Rules, cell: u64) -> Arc<CellText> {
        let mut made = told_apart(self.made, name, rules);
        let single = std::mem::take(&mut made.whole);
        let parts = made.parts.into_iter().map(|(at, from)| match from {
            Copied::Rules(start) => (at, &self.rules.source, start),
            Copied::Call(start) => (at, &self.given, start),
        });
        let mut text = CellText::copied(cell, made.text, parts);
        text.whole = single;
        Arc::new(text)
    }
}

/// Whether a macro of the notebook may take a name for something else than a value: one of its rules has such a fragment, or it
/// hands what it is given to a macro that does.
pub(super) fn takes_names(name: &str, rules: Rules) -> bool {
    const VALUES: [&str; 5] = ["block", "expr", "expr_2021", "literal", "tt"];
    let (mut seen, mut left) = (Vec::new(), vec![name.to_owned()]);
    while let Some(name) = left.pop() {
        let Some(found) = rules(&name).filter(|_| !seen.contains(&name)) else { continue };
        let words: Vec<&str> = scan::tokens(&found.text).into_iter().map(|t| &found.text[t.range]).collect();
        let fragment = |w: &[&str]| w[0] == "$" && w[2] == ":" && !VALUES.contains(&w[3]);
        if words.windows(4).any(fragment) {
            return true;
        }
        left.extend(found.mentions.iter().cloned());
        seen.push(name);
    }
    false
}

/// Documentation as the attributes that it is to a macro.
fn with_docs(cell: &Arc<CellText>, arguments: Range<usize>) -> (Arc<CellText>, Range<usize>) {
    let documents = |t: Token| {
        let comment = cell.text[arguments.start + t.range.start..arguments.start + t.range.end].to_owned();
        let line = comment.strip_prefix("///").filter(|c| !c.starts_with('/'));
        let block = || comment.strip_prefix("/**")?.strip_suffix("*/").filter(|c| !c.starts_with('*'));
        let doc = line.or_else(block).filter(|_| t.kind == Kind::Comment)?;
        Some((t.range.clone(), format!("#[doc = {doc:?}]")))
    };
    let docs: Vec<(Range<usize>, String)> =
        scan::tokens(&cell.text[arguments.clone()]).into_iter().filter_map(documents).collect();
    if docs.is_empty() {
        return (cell.clone(), arguments);
    }
    let (mut text, mut parts, mut from) = (String::new(), Vec::new(), arguments.start);
    let mut copy = |text: &mut String, range: Range<usize>| {
        let at = text.len()..text.len() + range.len();
        text.push_str(&cell.text[range.clone()]);
        parts.push((at, cell, range.start));
    };
    for (at, doc) in docs {
        copy(&mut text, from..arguments.start + at.start);
        text.push_str(&doc);
        from = arguments.start + at.end;
    }
    copy(&mut text, from..arguments.end);
    let len = text.len();
    (Arc::new(CellText::copied(cell.cell, text, parts.into_iter())), 0..len)
}

#[cfg(test)]
mod published;
