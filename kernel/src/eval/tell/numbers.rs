//! Numbers of two types in one expression.

/// Whether rustc says that numbers of two types are added, multiplied or compared.
pub(super) fn of_two_numbers(message: &str) -> bool {
    let mut types = message.split('`').skip(1).step_by(2).map(|ty| ty.trim_start_matches('&'));
    let number = |ty: &str| {
        matches!(ty, "{float}" | "{integer}" | "usize" | "isize")
            || ty.strip_prefix(['i', 'u', 'f']).is_some_and(|bits| bits.parse::<u8>().is_ok())
    };
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
    verbs.iter().any(|verb| message.starts_with(verb)) && types.by_ref().take(2).filter(|ty| number(ty)).count() == 2
}

/// What makes one type of two.
pub(super) fn mixed(quoted: &[&str]) -> String {
    let is_float = |ty: &&&str| ty.trim_start_matches('&').starts_with('f') || **ty == "{float}";
    let (a, b) = (quoted.first().copied().unwrap_or_default(), quoted.get(1).copied().unwrap_or_default());
    match (is_float(&&a), is_float(&&b)) {
        (false, false) => {
            "numbers of two types do not mix: write `… as i64` or `… as usize`, whichever both are to be".into()
        }
        (true, false) if b == "{integer}" => {
            "numbers of two types do not mix: begin with `0.0` in place of `0`, or write `… as i64`".into()
        }
        _ => "numbers of two types do not mix: write `… as f64`, or the type that both are to be".into(),
    }
}
