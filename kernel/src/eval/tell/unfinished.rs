//! What is half of a tensor, where one is wanted: `ids.dynamic(1)`, of which `.buckets([…])` makes one.
use super::ours::Ours;
use super::texts::Texts;
use super::words::{Words, own_name, receiver};
use crate::eval::toolchain::diagnostic::Diagnostic;

/// What is told of a value of ours that has methods which make a tensor of it, where rustc finds it instead of one.
pub(super) fn told(error: &Diagnostic, texts: &Texts, ours: &Ours) -> Option<String> {
    let label = error.spans.iter().find(|s| s.primary)?.label.as_deref().unwrap_or_default();
    let quoted: Vec<&str> = error.message.split('`').skip(1).step_by(2).collect();
    let found = match (&*error.code, &*quoted) {
        ("E0308", _) => label.split_once("Tensor`, found `")?.1.trim_end_matches('`'),
        ("E0599" | "E0369", all) => all.iter().find(|of| is_half(of, ours))?,
        _ => return None,
    };
    let ty = own_name(found.trim_start_matches('&')).filter(|_| is_half(found, ours))?;
    let (method, takes) = ours.made_by(ty, "Tensor").into_iter().next()?;
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let words = Words::of(&text.text);
    // Of a method or an operator that it has not, it stands in front.
    let of = match &*error.code {
        "E0599" | "E0369" => {
            let sign = words.at(at.start)?.checked_sub(usize::from(error.code == "E0599"))?;
            words.part(words.operand_before(sign)?, sign)?.0
        }
        _ => text.text.get(at)?.trim_start_matches('&').to_owned(),
    };
    let given = if takes.is_empty() { "" } else { "…" };
    let with = if takes.is_empty() { String::new() } else { format!(", given {takes}") };
    let of = receiver(&of);
    Some(format!("`{of}` is a `{ty}`: `{of}.{method}({given})` makes a tensor of it{with} (`?{ty}` tells of it)"))
}

/// Whether it is a type of ours that is no tensor, and has a method which makes one.
fn is_half(ty: &str, ours: &Ours) -> bool {
    let ty = own_name(ty.trim_start_matches('&')).unwrap_or_default();
    ty != "Tensor" && ours.is_type(ty) && !ours.made_by(ty, "Tensor").is_empty()
}
