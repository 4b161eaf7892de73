//! Values as they stand in a call of Python's.
use super::literals::is_whole;
use super::words::{Words, unquoted};
use crate::eval::text::scan::Kind;

/// Whole numbers of a sum or product with a point, as floats have them: `1.0 / 3`.
pub(super) fn floats(value: &str) -> String {
    let words = Words::of(value);
    let arithmetic = (0..words.len()).all(|i| words.kind(i) == Some(Kind::Number) || "+-*/()".contains(words.word(i)));
    let mut out = value.to_owned();
    for i in (0..words.len()).rev().filter(|_| arithmetic) {
        if words.kind(i) == Some(Kind::Number) && is_whole(words.word(i)) {
            out.insert_str(words.tokens[i].range.end, ".0");
        }
    }
    out
}

/// `F32`, which is no number.
pub(super) fn is_dtype(value: &str) -> bool {
    let bits = value.trim_start_matches(char::is_uppercase);
    value.starts_with("DType::") || bits.len() < value.len() && matches!(bits, "8" | "16" | "32" | "64" | "128")
}

pub(super) fn is_number(value: &str) -> bool {
    let value_of = value.trim_start_matches(['-', '+']);
    let constant = ["f64::", "f32::", "std::f64::consts::", "std::f32::consts::"];
    let constant = constant.iter().find_map(|c| value_of.strip_prefix(c)).is_some_and(|c| !c.contains(['(', '.']));
    (constant || value_of.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
        && !matches!(syn::parse_str::<syn::Expr>(value), Ok(syn::Expr::MethodCall(_) | syn::Expr::Binary(_)))
}

/// Whether two values of Python's read alike.
pub(super) fn alike(one: &str, other: &str) -> bool {
    match (unquoted(one.trim()), unquoted(other.trim())) {
        (None, None) => plain(one) == plain(other),
        (one, other) => one == other,
    }
}

/// A value without Python's words.
pub(super) fn plain(value: &str) -> &str {
    match value.trim() {
        "True" => "true",
        "False" => "false",
        other => other,
    }
}

/// A call with these arguments; what changes what the call itself is lent is made before it.
pub(super) fn call_of(called: &str, arguments: &mut [String]) -> String {
    let lent = arguments.iter().filter_map(|a| a.strip_prefix("&mut ")).map(str::to_owned).collect::<Vec<_>>();
    let own = |a: &String| lent.iter().any(|name| a.strip_prefix("&mut ") == Some(name));
    let changes = |a: &String| {
        lent.iter().any(|name| [format!("&mut {name},"), format!("&{name},")].iter().any(|of| a.contains(of)))
    };
    let mut before = String::new();
    for (i, argument) in arguments.iter_mut().enumerate().filter(|(_, a)| !own(a) && changes(a)) {
        let name = if i == 1 { "schedules" } else { "others" };
        before += &format!("let {name} = {argument}; ");
        name.clone_into(argument);
    }
    let call = format!("{called}({})", arguments.join(", "));
    if before.is_empty() { call } else { format!("{{ {before}{call} }}") }
}
