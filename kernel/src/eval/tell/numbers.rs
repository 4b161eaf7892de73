//! Numbers of two types in one expression, and lists of numbers in a text.
use super::division::{of_floats, operands, terms};
use super::literals::is_whole;
use super::texts::Texts;
use super::words::Words;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;

/// What to write, where rustc says that numbers of two types, or a tensor and a number, do not go together.
pub(super) fn told(message: &str) -> Option<String> {
    if of_a_tensor(message) {
        return Some("`.item()` reads a tensor's number: `total += loss.item()`".to_owned());
    }
    of_two_numbers(message).then(|| mixed(message))
}

/// A whole number that a float is reckoned with, as a float: where it stands, and the code.
pub(super) fn as_float(message: &str, words: &Words, at: &Range<usize>) -> Option<(Range<usize>, String)> {
    let is_float = |ty: &str| ty.starts_with('f') || ty == "{float}";
    let sign = words.at(at.start).filter(|i| matches!(words.word(*i), "*" | "/" | "+" | "-"))?;
    let (left, right) = sides(message);
    if !of_two_numbers(message) || is_float(left) == is_float(right) {
        return None;
    }
    let assigned = message.contains("-assign ");
    let (before, behind) = match words.word(sign) {
        // What is added to stays what it is.
        _ if assigned && !is_float(left) => return None,
        _ if assigned => (sign..sign, sign + 2..words.expression(sign + 2)?),
        "*" | "/" => operands(words, sign)?,
        _ => terms(words, sign)?,
    };
    let (ty, side) = if is_float(left) { (left, behind) } else { (right, before) };
    let (whole, place) = words.part(side.start, side.end)?;
    // What was divided as whole numbers has lost what it is wanted with.
    if let Some(quotient) = divided(words, &whole, &place) {
        return Some(quotient);
    }
    let ty = if ty == "f32" { ty } else { "f64" };
    Some((
        place,
        match words.operand(side.start) == Some(side.end) {
            _ if is_whole(&whole) => format!("{whole}.0"),
            true => format!("{whole} as {ty}"),
            false => format!("({whole}) as {ty}"),
        },
    ))
}

/// A quotient of whole numbers that stands there, or that the name there is declared as, as one of floats.
fn divided(words: &Words, whole: &str, place: &Range<usize>) -> Option<(Range<usize>, String)> {
    let floats = |text: &str| Some(of_floats(text)).filter(|code| code != text);
    if let Some(code) = floats(whole) {
        return Some((place.clone(), code));
    }
    let before = words.at(place.start)?;
    let declared = |i: &usize| {
        let name = i + 1 + usize::from(words.word(i + 1) == "mut");
        words.word(*i) == "let" && words.word(name) == whole && words.word(name + 1) == "="
    };
    let sign = (0..before).rev().find(declared).and_then(|i| (i..before).find(|i| words.word(*i) == "="))?;
    let (value, at) = words.part(sign + 1, words.expression(sign + 1)?)?;
    Some((at, floats(&value)?))
}

/// A quotient of whole numbers where a float is wanted.
pub(super) fn quotient(error: &Diagnostic, words: &Words, at: &Range<usize>) -> Option<(Range<usize>, String)> {
    let label = error.spans.iter().find(|s| s.primary)?.label.as_deref()?.strip_prefix("expected `f")?;
    let (_, found) = label.split_once(", found ")?;
    let whole = found == "integer" || is_number(found.trim_matches('`')) && !found.starts_with("`f");
    divided(words, words.text.get(at.clone())?, at).filter(|_| whole)
}

/// How a list is shown in the format that its brackets in a text say, `{:.3}` being one number's.
pub(super) fn of_a_list(error: &Diagnostic, texts: &Texts) -> Option<String> {
    let list = ["`Vec<", "`[", "`&[", "`&Vec<"].iter().any(|list| error.message.starts_with(list));
    if !list || !error.message.contains("` doesn't implement `std::fmt::Display`") {
        return None;
    }
    let (text, at) =
        error.spans.iter().find_map(|s| texts.map(s).filter(|(t, at)| t.text[at.clone()].starts_with('{')))?;
    let (name, format) = text.text[at].trim_matches(['{', '}']).split_once(':').unwrap_or_default();
    Some(format!("`{{{name}:{format}?}}` shows each number of a list so"))
}

/// Whether rustc says that numbers of two types are added, multiplied or compared.
fn of_two_numbers(message: &str) -> bool {
    let mut types = types(message);
    let verbs = [
        "cannot add-assign ",
        "cannot subtract-assign ",
        "cannot multiply-assign ",
        "cannot divide-assign ",
        "cannot add ",
        "cannot subtract ",
        "cannot multiply ",
        "cannot divide ",
        "can't compare ",
        "cannot calculate ",
    ];
    verbs.iter().any(|verb| message.starts_with(verb)) && types.by_ref().take(2).filter(|ty| is_number(ty)).count() == 2
}

/// Whether a tensor is added to a number, in its place.
fn of_a_tensor(message: &str) -> bool {
    let (mut tensors, mut numbers) = (types(message).take(2), types(message).take(2));
    let is_tensor = |ty: &str| ty == "Tensor" || ty.ends_with("::Tensor");
    message.contains("-assign ") && tensors.any(is_tensor) && numbers.any(is_number)
}

fn types(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2).map(|ty| ty.trim_start_matches('&'))
}

pub(super) fn is_number(ty: &str) -> bool {
    matches!(ty, "{float}" | "{integer}" | "usize" | "isize")
        || ty.strip_prefix(['i', 'u', 'f']).is_some_and(|bits| bits.parse::<u8>().is_ok())
}

/// The types on both sides of the sign: `cannot add-assign RIGHT to LEFT`, but `cannot divide LEFT by RIGHT`.
fn sides(message: &str) -> (&str, &str) {
    let one = |n: usize| types(message).nth(n).unwrap_or_default();
    let turned = ["cannot add", "cannot subtract"].iter().any(|verb| message.starts_with(verb));
    if turned { (one(1), one(0)) } else { (one(0), one(1)) }
}

/// What makes one type of two.
fn mixed(message: &str) -> String {
    let is_float = |ty: &str| ty.trim_start_matches('&').starts_with('f') || ty == "{float}";
    let (left, right) = sides(message);
    let assigned = message.contains("-assign ");
    let what = match (is_float(left), is_float(right)) {
        (false, false) => "write `… as i64` or `… as usize`, whichever both are to be",
        (true, false) if right == "{integer}" => "write it with a point, as `1.0` for `1`, or `… as f64`",
        (false, true) if left == "{integer}" && assigned => "begin with `0.0` in place of `0`",
        (false, true) if left == "{integer}" => "write it with a point, as `1.0` for `1`, or `… as f64`",
        _ => "write `… as f64`, or the type that both are to be",
    };
    format!("numbers of two types do not mix: {what}")
}

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn the_whole_number_is_made_a_float() {
        for (text, sign, message, code) in [
            ("total /= loader.samples();", "/=", "cannot divide-assign `f64` by `usize`", "loader.samples() as f64"),
            ("total += a + b.len();", "+=", "cannot add-assign `usize` to `f64`", "(a + b.len()) as f64"),
            ("total -= 1;", "-=", "cannot subtract-assign `{integer}` from `f64`", "1.0"),
            ("let y = x + n * 2;", "+", "cannot add `usize` to `f64`", "(n * 2) as f64"),
            ("let y = 1 + n * 2 - x;", "-", "cannot subtract `f64` from `usize`", "(1 + n * 2) as f64"),
            ("let y = 0.5 * n;", "*", "cannot multiply `{float}` by `usize`", "n as f64"),
        ] {
            let at = text.find(sign).unwrap();
            let found = super::as_float(message, &Words::of(text), &(at..at + sign.len()));
            let (place, written) = found.unwrap_or_else(|| panic!("{text}"));
            assert_eq!(written, code, "{text}");
            assert_eq!(
                text[place].replace(['(', ')'], ""),
                code.replace(" as f64", "").replace(['(', ')'], "").replace(".0", "")
            );
        }
        let sum = "count += loss.item();";
        let kept = super::as_float("cannot add-assign `f64` to `usize`", &Words::of(sum), &(6..8));
        assert_eq!(kept, None, "what is added to would have to change");
    }

    #[test]
    fn what_is_advised_is_about_the_side_that_is_wrong() {
        let told = |message: &str| super::told(message).expect(message).split_once(": ").unwrap().1.to_owned();
        assert!(told("cannot divide-assign `{float}` by `{integer}`").contains("a point"));
        assert!(told("cannot add-assign `{integer}` to `f64`").contains("a point"));
        assert!(told("cannot add-assign `f64` to `{integer}`").contains("begin with `0.0`"));
        assert!(told("cannot multiply `{integer}` by `f32`").contains("a point"));
        assert!(told("cannot multiply `usize` by `f32`").contains("as f64"));
        assert!(told("cannot add `usize` to `i32`").contains("as i64"));
        assert!(told("cannot add-assign `xlazy::Tensor` to `{float}`").contains("loss.item()"));
        assert_eq!(super::told("cannot add-assign `&str` to `{float}`"), None);
    }
}
