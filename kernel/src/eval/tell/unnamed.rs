//! Variables whose types have no name, so that no other cell can say what it takes.

/// What is wrong with using a variable, by what rustc says of its type, and what to do about it.
pub(super) fn told(variable: &str, message: &str) -> (String, String) {
    let function = message.strip_prefix("expected type, found function `").and_then(|rest| rest.split('`').next());
    match function.and_then(|path| path.rsplit("::").next()) {
        Some(function) => (
            format!(
                "the variable `{variable}` cannot be used here: its type says which function it has, `{function}`, and has no name"
            ),
            format!(
                "make it with a function pointer, whose type has one: `{function} as fn(i32, i32) -> i32`, with the function's own types"
            ),
        ),
        None => (
            format!("the variable `{variable}` cannot be used here: {message}"),
            "its type cannot be named from a cell; store what it holds instead".to_owned(),
        ),
    }
}
