//! What `%graph`, `%ir`, `%stablehlo` and `%hlo` share: one form of the program of an expression, or of the session.
use super::{Magic, Session, answer};
use crate::engine::{Event, Reply};

/// Whether no expression has to be evaluated for it.
pub fn is_of_the_session(args: &str) -> bool {
    answer::json_flag(args).1.is_empty()
}

/// Shows the form that the magic's name stands for. With an expression, a hidden cell evaluates it and asks
/// `xlazy::show`; without one, the runtime is asked about what is there.
pub fn show(magic: &dyn Magic, args: &str, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
    let (json, expression) = answer::json_flag(args);
    if expression.starts_with("--") {
        let flag = expression.split_whitespace().next().unwrap_or_default();
        return answer::usage(magic, &format!("%{} has no option {flag}.", magic.name()));
    }
    if expression.is_empty() {
        let args = if json { "--json" } else { "" };
        return answer::show(session.call(magic.name(), args), events);
    }
    // The line break keeps a trailing `//` comment from swallowing the closing parenthesis.
    let expression = expression.trim_end_matches(';');
    session.run_code(&format!("xlazy::show::{}(&({expression}\n), {json})", magic.name()), events)
}
