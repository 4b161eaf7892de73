//! Python's `dict(a=1)`, and the groups of parameters that an optimizer is given as dictionaries.
use super::texts::Texts;
use super::words::{Words, unquoted};
use crate::eval::text::source::CellText;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;
use std::sync::Arc;

/// What a dictionary is whose names rustc looks for.
pub(super) fn told<'t>(error: &Diagnostic, texts: &'t Texts) -> Option<(&'t Arc<CellText>, Range<usize>, String)> {
    let (text, at) = error.spans.iter().find(|s| s.primary && error.code == "E0425").and_then(|s| texts.map(s))?;
    let around =
        text.text[..at.start].rfind("dict(").filter(|start| !text.text[*start..at.start].contains([')', ';', '\n']));
    let start = if text.text[at.start..].starts_with("dict(") { at.start } else { around? };
    let (at, code) = groups(&text.text, start).or_else(|| dictionary(&text.text, start))?;
    Some((text, at, code))
}

/// `dict(a=1, b=2)`, where its name stands, as a map.
pub(super) fn dictionary(text: &str, at: usize) -> Option<(Range<usize>, String)> {
    let words = Words::of(text);
    let name = words.at(at).filter(|&i| words.word(i) == "dict")?;
    let (pairs, end) = pairs(&words, name)?;
    let listed: Vec<String> = pairs.iter().map(|(key, value)| format!("(\"{key}\", {value})")).collect();
    (!listed.is_empty()).then(|| (at..end, format!("std::collections::HashMap::from([{}])", listed.join(", "))))
}

/// `optim.Adam([dict(params=p, lr=0.1), {"params": q}], lr=0.01)` around a place: where it stands, and how groups are made here.
pub(super) fn groups(text: &str, at: usize) -> Option<(Range<usize>, String)> {
    let words = Words::of(text);
    (0..words.len()).filter(|&i| words.word(i) == "optim").find_map(|first| {
        let open = (first..words.len().min(first + 9)).find(|&i| words.word(i) == "(")?;
        let end = words.behind_brackets(open)?;
        let whole = words.tokens[first].range.start..words.tokens[end - 1].range.end;
        let name = (first..open).map(|i| words.word(i)).find(|word| word.starts_with(char::is_uppercase))?;
        let arguments = words.between_commas(open + 1, end - 1);
        let list = arguments.first().filter(|a| whole.contains(&at) && words.word(a.start) == "[")?;
        let rate = arguments.get(1).and_then(|a| {
            let from = if words.word(a.start + 1) == "=" { a.start + 2 } else { a.start };
            Some(words.part(from, a.end)?.0)
        });
        let rate = rate.unwrap_or("1e-3".to_owned());
        let group = |one: Range<usize>| {
            let (pairs, _) = pairs(&words, one.start)?;
            let of = |key: &str| pairs.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone());
            Some((of("params")?, of("lr").unwrap_or_else(|| rate.clone())))
        };
        let all =
            words.between_commas(list.start + 1, list.end - 1).into_iter().map(group).collect::<Option<Vec<_>>>()?;
        let ((params, lr), rest) = all.split_first()?;
        let more: String = rest
            .iter()
            .map(|(params, lr)| format!("opt.add_param_group({params}, {lr}, Default::default()); "))
            .collect();
        let code = match rest.is_empty() {
            true => format!("optim::{name}::new({params}, {lr})"),
            false => format!("{{ let mut opt = optim::{name}::new({params}, {lr}); {more}opt }}"),
        };
        Some((whole, code))
    })
}

/// The keys and values of `dict(a=1)` or `{"a": 1}` that begins at a token, and where it ends.
fn pairs(words: &Words, at: usize) -> Option<(Vec<(String, String)>, usize)> {
    let open = at + usize::from(words.word(at) == "dict");
    let end = words.behind_brackets(open).filter(|_| matches!(words.word(open), "(" | "{"))?;
    let pair = |one: Range<usize>| {
        let key = words.word(one.start);
        let key = if words.word(one.start + 1) == "=" {
            key
        } else {
            unquoted(key).filter(|_| words.word(one.start + 1) == ":")?
        };
        Some((key.to_owned(), words.part(one.start + 2, one.end)?.0))
    };
    let all = words.between_commas(open + 1, end - 1).into_iter().map(pair).collect::<Option<Vec<_>>>()?;
    Some((all, words.tokens[end - 1].range.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_by_their_names_and_groups() {
        let code = |found: Option<(Range<usize>, String)>| found.map(|(_, code)| code);
        assert_eq!(
            code(dictionary("f(dict(a=1, b=g(2)))", 2)).as_deref(),
            Some("std::collections::HashMap::from([(\"a\", 1), (\"b\", g(2))])")
        );
        for (text, wanted) in [
            ("optim.Adam([dict(params=p, lr=0.1)])", "optim::Adam::new(p, 0.1)"),
            (
                "optim::SGD::new([{\"params\": p, \"lr\": 0.1}, {'params': q}], lr=0.5)",
                "{ let mut opt = optim::SGD::new(p, 0.1); opt.add_param_group(q, 0.5, Default::default()); opt }",
            ),
        ] {
            assert_eq!(code(groups(text, 18)).as_deref(), Some(wanted), "{text}");
        }
        assert_eq!(groups("optim::Adam::new(p, 0.1)", 3), None);
    }
}
