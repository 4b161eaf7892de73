//! A tensor that an operator moves although it is used afterwards: `a + a.t()`, which needs no other name of it, but to lend it.
use crate::eval::text::source::Source;
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};

const CLONE: &str = ".clone()";

/// What rustc would clone of a tensor, where lending does: an error with that in its place. Others stay as they are.
pub(super) fn lent(error: Diagnostic, source: &Source) -> Diagnostic {
    let is_tensor = |s: &Span| s.label.as_deref().is_some_and(|l| l.contains("has type `xlazy::Tensor`"));
    if !error.spans.iter().any(is_tensor) {
        return error;
    }
    let lend = |child: &Diagnostic| {
        let is_clone = |s: &&Span| s.ours && s.start == s.end && s.replacement.as_deref() == Some(CLONE);
        let clone = child.spans.first().filter(|s| child.spans.len() == 1 && is_clone(s))?;
        let start = operand(&error, source, clone.start)?;
        let span = Span { start, end: start, replacement: Some("&".to_owned()), ..clone.clone() };
        let message = "lent to the operator, it is there afterwards".to_owned();
        Some(Diagnostic { message, spans: vec![span], ..child.clone() })
    };
    let children = error.children.iter().map(|child| lend(child).unwrap_or_else(|| child.clone())).collect();
    Diagnostic { children, ..error }
}

/// Where the operand of an operator begins that ends there.
fn operand(error: &Diagnostic, source: &Source, end: usize) -> Option<usize> {
    const SIGNS: [char; 9] = ['+', '-', '*', '/', '%', '&', '|', '^', '!'];
    let (before, behind) = source.text.split_at_checked(end)?;
    let name = error.message.split('`').nth(1).filter(|name| before.ends_with(name));
    let whole = || error.spans.iter().find(|s| s.ours && s.end == end).map(|s| s.start);
    let start = name.map(|name| end - name.len()).or_else(whole)?;
    (before[..start].trim_end().ends_with(SIGNS) || behind.trim_start().starts_with(SIGNS)).then_some(start)
}
