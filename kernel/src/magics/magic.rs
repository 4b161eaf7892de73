//! What a magic is: a value that says what it is called, what it takes, and what it does.
use crate::engine::{Event, Failure, Reply};
use xlazy_mime::{Bundle, Question, Var};

/// One magic. Running it, `%help` and completion read nothing but this.
pub struct Magic {
    /// Without `%`; the shell's name is `!`.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// The forms it is written in, one per line, each with its `%`.
    pub usage: &'static str,
    /// One line for listings.
    pub summary: &'static str,
    /// The whole story, with at least one example in a code fence.
    pub help: &'static str,
    pub scope: Scope,
    pub takes: Takes,
    /// It takes `--json`, too.
    pub json: bool,
    pub reads: Reads,
    pub run: fn(call: &Call, events: &mut dyn FnMut(Event)) -> Reply,
}

/// Where a magic may stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scope {
    /// `%name args`, on a line of its own.
    Line,
    /// `%%name args` as a cell's first line, with the rest of the cell as its body.
    Cell,
    Both,
}

/// What stands behind the name. All of it may be left out where the magic does not say otherwise.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// Nothing, and why not.
    Nothing(&'static str),
    /// One of these.
    Words(&'static [&'static str]),
    /// One of these, and what it is about.
    Verbs(&'static [&'static str]),
    /// The name of one such thing, and how many of it there are to be.
    Some(&'static str),
    /// The number of one such thing.
    Number(&'static str),
    /// `NAME=N`, or `off`.
    Count(&'static str),
    /// A level of optimisation; it must be there.
    Level,
    /// A magic's name.
    Magic,
    /// The rest of the line, which the magic reads itself: Rust, or a shell's command.
    Rest,
}

/// When it only reads and runs no code: then it answers while a cell runs.
#[derive(Clone, Copy, Debug)]
pub enum Reads {
    Always,
    Never,
    /// Where nothing but `--json` stands behind the name.
    Bare,
    /// Unless this stands behind the name.
    Unless(&'static str),
}

/// A line of magic, as its magic gets it.
pub struct Call<'a> {
    pub magic: &'static Magic,
    /// `--json` was there.
    pub json: bool,
    /// What else stands behind the name; it is what the magic takes.
    pub args: &'a str,
    /// The rest of the cell for `%%name`.
    pub body: Option<&'a str>,
    pub host: &'a dyn Host,
    /// All magics.
    pub table: &'static [Magic],
}

/// What a magic may ask of whoever runs cells.
pub trait Host {
    /// Puts a question to the runtime.
    fn call(&self, question: Question, args: &str) -> Result<Bundle, Failure>;
    /// Runs code in the same session and store, as a cell that gets no number.
    fn run_code(&self, code: &str, events: &mut dyn FnMut(Event)) -> Reply;
    fn vars(&self) -> Vec<Var>;
    /// What is known about a name of Rust's or the notebook's.
    fn describe(&self, _name: &str) -> Option<Bundle> {
        None
    }
    /// Whether the cell was interrupted: asked by what has just begun to listen for it.
    fn interrupted(&self) -> bool {
        false
    }
    /// How much what follows in this cell is optimised.
    fn optimise(&self, level: u8);
    /// Saves or loads the variables.
    fn checkpoint(&self, args: &str, events: &mut dyn FnMut(Event)) -> Reply;
    /// Says how often they are to be saved.
    fn autosave(&self, args: &str, events: &mut dyn FnMut(Event)) -> Reply;
    /// The pod that programs run on, as it was asked for.
    fn pod(&self) -> Option<String>;
    /// Ends the session, and goes on in a new one whose programs run on this pod, or on this machine: a sentence about what
    /// is lost.
    fn move_to(&self, pod: Option<String>) -> String;
    /// Runs again the cells that made what a crash took.
    fn recover(&self, events: &mut dyn FnMut(Event)) -> Reply;
}

impl Magic {
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// What was written behind the name without `--json`, and whether that was there.
    pub fn arguments<'a>(&self, written: &'a str) -> (bool, &'a str) {
        match self.json {
            true => json_flag(written),
            false => (false, written.trim()),
        }
    }

    /// Whether it is answered while a cell runs.
    pub fn only_reads(&self, written: &str) -> bool {
        let (_, args) = self.arguments(written);
        match self.reads {
            Reads::Always => true,
            Reads::Never => false,
            Reads::Bare => args.is_empty(),
            Reads::Unless(word) => args != word,
        }
    }

    /// The words that may stand behind the name; `None` where that may be anything.
    pub fn words(&self) -> Option<&'static [&'static str]> {
        match self.takes {
            Takes::Words(words) | Takes::Verbs(words) => Some(words),
            Takes::Count(_) => Some(&["off"]),
            Takes::Level => Some(&["0", "1", "2", "3"]),
            Takes::Nothing(_) | Takes::Some(_) | Takes::Number(_) => Some(&[]),
            Takes::Magic | Takes::Rest => None,
        }
    }

    /// Why it does not take these arguments.
    pub fn refuses(&self, args: &str) -> Option<Reply> {
        let name = self.name;
        let mut words = args.split_whitespace();
        let (first, more) = (words.next().unwrap_or_default(), words.next());
        let what = match self.takes {
            Takes::Level if matches!(first, "0" | "1" | "2" | "3") => return None,
            Takes::Level => return Some(error("UsageError", &format!("`%{name}` takes a level from 0 to 3"))),
            Takes::Rest | Takes::Magic => return None,
            _ if args.is_empty() => return None,
            Takes::Nothing(why) => format!("%{name} takes no `{args}`: {why}."),
            Takes::Words(words) if words.contains(&args) => return None,
            Takes::Words(_) => format!("%{name} does not know `{args}`."),
            Takes::Verbs(verbs) if verbs.contains(&first) => return None,
            Takes::Verbs(verbs) => format!("%{name} takes {}, not `{first}`.", one_of(verbs)),
            Takes::Some(_) if words.next().is_none() && more.is_none_or(|n| n.parse::<u64>().is_ok()) => return None,
            Takes::Some(what) => format!("%{name} takes one {what}, and behind it a number, not `{args}`."),
            Takes::Number(_) if args.parse::<u64>().is_ok() => return None,
            Takes::Number(what) => format!("%{name} takes the number of a {what}, not `{args}`."),
            Takes::Count(what) => {
                let number = args.strip_prefix(what).and_then(|n| n.trim_start().strip_prefix('=')).unwrap_or(args);
                if args == "off" || number.trim().parse::<u64>().is_ok() {
                    return None;
                }
                format!("%{name} takes {what}=N or off, not `{args}`.")
            }
        };
        Some(self.misused(&what))
    }

    /// An error in how it was called, with the forms that it has.
    pub fn misused(&self, message: &str) -> Reply {
        let forms: Vec<String> = self.usage.lines().map(|l| format!("    {l}")).collect();
        error("UsageError", &format!("{message}\n{}", forms.join("\n")))
    }
}

/// `a, b or c`.
fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [before @ .., last] => format!("{} or {last}", before.join(", ")),
    }
}

/// Arguments without their `--json`, and whether it was there. The flag counts at either end of the line only, since
/// what stands between may be Rust.
fn json_flag(args: &str) -> (bool, &str) {
    let args = args.trim();
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(char::is_whitespace);
    let starts = |rest: &str| rest.is_empty() || rest.ends_with(char::is_whitespace);
    match (args.strip_prefix("--json"), args.strip_suffix("--json")) {
        (Some(rest), _) if ends(rest) => (true, rest.trim()),
        (_, Some(rest)) if starts(rest) => (true, rest.trim()),
        _ => (false, args),
    }
}

/// An error of a magic's own.
pub fn error(name: &str, message: &str) -> Reply {
    let traceback = format!("\x1b[1;31m{name}\x1b[0m: {message}").lines().map(str::to_owned).collect();
    Reply::Error(Failure { name: name.to_owned(), message: message.to_owned(), traceback })
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
