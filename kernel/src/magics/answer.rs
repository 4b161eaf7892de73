//! What magics have in common: reading flags, showing bundles, and errors a person can act on.
use super::Magic;
use crate::engine::{Event, Failure, Reply};
use xlazy_mime::Bundle;

/// A magic's arguments without its `--json`, and whether it was there. The flag counts at either end of the line
/// only, since what stands between may be Rust.
pub fn json_flag(args: &str) -> (bool, &str) {
    let args = args.trim();
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(char::is_whitespace);
    let starts = |rest: &str| rest.is_empty() || rest.ends_with(char::is_whitespace);
    match (args.strip_prefix("--json"), args.strip_suffix("--json")) {
        (Some(rest), _) if ends(rest) => (true, rest.trim()),
        (_, Some(rest)) if starts(rest) => (true, rest.trim()),
        _ => (false, args),
    }
}

/// Shows what the runtime answered.
pub fn show(answer: Result<Bundle, Failure>, events: &mut dyn FnMut(Event)) -> Reply {
    match answer {
        Ok(bundle) => {
            display(bundle, events);
            Reply::Ok
        }
        Err(failure) => Reply::Error(failure),
    }
}

/// Shows a bundle, unless there is nothing in it.
pub fn display(bundle: Bundle, events: &mut dyn FnMut(Event)) {
    if !bundle.entries.is_empty() {
        events(Event::Display { bundle, id: None, update: false });
    }
}

/// JSON as a display: a tree in Jupyter, the text elsewhere.
pub fn json(value: &serde_json::Value) -> Bundle {
    let text = value.to_string();
    Bundle::text(text.clone()).with("application/json", text)
}

/// An error of a magic's own.
pub fn error(name: &str, message: &str) -> Reply {
    let traceback = format!("\x1b[1;31m{name}\x1b[0m: {message}").lines().map(str::to_owned).collect();
    Reply::Error(Failure { name: name.to_owned(), message: message.to_owned(), traceback })
}

/// An error in how the magic was called, with the forms it has.
pub fn usage(magic: &dyn Magic, message: &str) -> Reply {
    let forms: Vec<String> = magic.usage().lines().map(|l| format!("    {l}")).collect();
    error("UsageError", &format!("{message}\n{}", forms.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::json_flag;

    #[test]
    fn json_counts_at_either_end_only() {
        assert_eq!(json_flag("--json"), (true, ""));
        assert_eq!(json_flag(" --json &y + 1"), (true, "&y + 1"));
        assert_eq!(json_flag("&y + 1 --json "), (true, "&y + 1"));
        assert_eq!(json_flag("f(\"--json\")"), (false, "f(\"--json\")"));
        assert_eq!(json_flag("x--json"), (false, "x--json"));
        assert_eq!(json_flag("--jsonx"), (false, "--jsonx"));
    }
}
