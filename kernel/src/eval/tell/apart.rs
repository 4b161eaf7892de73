//! What is taken apart by a pattern in round brackets, or as if it were an array, and is none.
use super::change::Change;
use super::texts::Texts;
use super::words::Words;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;

/// What a pattern takes apart that is no tuple, as it is taken apart.
pub(super) fn told(error: &Diagnostic, texts: &Texts) -> Option<Change> {
    let said = error.text();
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let is = |ty: &str| {
        error.code == "E0529" && error.message.ends_with(&format!("found `{ty}`"))
            || said.contains(&format!("struct `{ty}`")) && said.contains("found tuple `(_")
    };
    let new = match () {
        () if is("xlazy::Shape") => shape(&text.text, &at),
        () if is("Vec<xlazy::Tensor>") => list(&text.text, &at),
        () => None,
    };
    new.map(|(at, code)| Change::new(text, at, code))
}

/// `let (b, c) = x.shape()` as `let [b, c] = x.dims()`, where its pattern stands there: all of the place, and what is written there.
fn shape(text: &str, pattern: &Range<usize>) -> Option<(Range<usize>, String)> {
    let (place, names, value) = read(text, pattern)?;
    let of = value.strip_suffix(".shape()").or_else(|| value.strip_suffix(".size()")).unwrap_or(&value);
    Some((place, format!("let [{}] = {of}.dims()", names.join(", "))))
}

/// `let (q, k) = x.chunk(2, 0)` as an array of tensors.
fn list(text: &str, pattern: &Range<usize>) -> Option<(Range<usize>, String)> {
    let (place, names, value) = read(text, pattern)?;
    let (all, many) = (names.join(", "), names.len());
    Some((place, format!("let [{all}]: [Tensor; {many}] = {value}.try_into().unwrap()")))
}

fn read(text: &str, pattern: &Range<usize>) -> Option<(Range<usize>, Vec<String>, String)> {
    let words = Words::of(text);
    let open = words.at(pattern.start).filter(|&i| i > 0 && words.word(i - 1) == "let")?;
    let behind = words.behind_brackets(open).filter(|&i| words.word(i) == "=")?;
    let names = words.listed(open + 1..behind - 1)?;
    let (value, at) = words.part(behind + 1, words.expression(behind + 1)?)?;
    // What else may stand among the names is another pattern.
    let plain = names.iter().all(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ' '));
    plain.then(|| (words.tokens[open - 1].range.start..at.end, names, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_shapes_and_lists() {
        let pattern = |text: &str| text.find(['(', '[']).map(|at| at..at + 1).unwrap();
        let code = |found: Option<(Range<usize>, String)>| found.map(|(_, code)| code);
        let of = "let (b, t) = F.relu(x).shape(); b";
        assert_eq!(code(shape(of, &pattern(of))).as_deref(), Some("let [b, t] = F.relu(x).dims()"));
        let of = "let [q, mut k] = x.chunk(2, 0);";
        assert_eq!(
            code(list(of, &pattern(of))).as_deref(),
            Some("let [q, mut k]: [Tensor; 2] = x.chunk(2, 0).try_into().unwrap()")
        );
        assert_eq!(shape("f((a, b))", &(2..3)), None);
        assert_eq!(shape("let (a, (b, c)) = x.shape();", &(4..5)), None);
    }
}
