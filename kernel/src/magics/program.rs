//! What `%graph`, `%ir`, `%stablehlo`, `%hlo` and `%collectives` share: one form of the program of an expression, or of the session.
use super::answer;
use super::magic::{Call, error};
use crate::engine::{Event, Reply};
use xlazy_mime::Question;

/// Shows the form that is asked for. With an expression, a hidden cell evaluates it and asks
/// `xlazy::show`; without one, the runtime is asked about what is there.
pub fn show(question: Question, call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    let (form, json) = (question.name(), call.json);
    if call.args.starts_with("--") {
        let flag = call.args.split_whitespace().next().unwrap_or_default();
        return call.magic.misused(&format!("%{form} has no option {flag}."));
    }
    if call.args.is_empty() {
        return answer::ask(question, call, events);
    }
    let code = |expression: &str| format!("xlazy::show::{form}(&({expression}\n), {json})");
    run(&takes_tensor(form), call.args, &code, call, events)
}

/// What a magic takes that shows a form of a tensor's program.
pub fn takes_tensor(form: &str) -> String {
    format!("%{form} takes an expression that gives a tensor")
}

/// Runs what `code` makes of the expression, as a hidden cell; `takes` says what it must be. The line break behind it keeps a
/// trailing `//` comment from swallowing the closing parenthesis.
pub fn run(
    takes: &str,
    expression: &str,
    code: &dyn Fn(&str) -> String,
    call: &Call,
    events: &mut dyn FnMut(Event),
) -> Reply {
    let expression = expression.trim_end_matches(';');
    match call.host.run_code(&code(expression), events) {
        // rustc points into the code around the expression.
        Reply::Error(failure) if failure.name == "CompileError" => {
            let what = failure.message.trim_end_matches('.');
            error("CompileError", &format!("{takes}. In `{expression}`: {what}."))
        }
        reply => reply,
    }
}
