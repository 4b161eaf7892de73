//! Magics (`%name`, `%%name`, `!command`): one file per magic, and one table that running, `%help` and completion read.
use crate::engine::{Event, Failure, Reply};
use xlazy_mime::{Bundle, Var};

mod answer;
mod autosave;
mod budget;
mod checkpoint;
mod compiles;
mod device;
mod graph;
mod heal;
mod healed;
mod help;
mod hlo;
mod ir;
mod metrics;
mod nearest;
mod opt;
mod pending;
mod program;
mod quiet;
mod recover;
mod shell;
mod stablehlo;
mod time;
mod tpu;
mod vars;
mod why;

pub use nearest::nearest;
pub use shell::interrupt;

/// Every magic, in the order that `%help` lists them. A new magic is a file beside this one and an entry here.
pub const TABLE: &[&dyn Magic] = &[
    &help::Help,
    &vars::Vars,
    &time::Time,
    &metrics::Metrics,
    &graph::Graph,
    &ir::Ir,
    &stablehlo::StableHlo,
    &hlo::Hlo,
    &tpu::Tpu,
    &device::Device,
    &pending::Pending,
    &compiles::Compiles,
    &why::Why,
    &healed::Healed,
    &heal::Heal,
    &budget::Budget,
    &opt::Opt,
    &quiet::Quiet,
    &recover::Recover,
    &checkpoint::Checkpoint,
    &autosave::Autosave,
    &shell::Shell,
];

/// One magic: what it is called, what `%help` says about it, and what it does.
pub trait Magic: Sync {
    /// The name without `%`; the shell's name is `!`.
    fn name(&self) -> &'static str;

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// The forms it is written in, one per line, each with its `%`.
    fn usage(&self) -> &'static str;

    /// One line for listings and completion.
    fn summary(&self) -> &'static str;

    /// The whole story, with at least one example in a code fence.
    fn help(&self) -> &'static str;

    fn scope(&self) -> Scope;

    /// Whether, with these arguments, it only reads and runs no code: then it answers while a cell runs.
    fn only_reads(&self, _args: &str) -> bool {
        false
    }

    /// Runs it; `body` is the rest of the cell for `%%name`.
    fn run(&self, args: &str, body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply;
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

/// What a magic may ask of the session it runs in.
pub trait Session {
    /// Puts a question to the runtime (`metrics`, `graph`…).
    fn call(&self, name: &str, args: &str) -> Result<Bundle, Failure>;
    /// Runs code in the same session and store, as a cell that gets no number.
    fn run_code(&self, code: &str, events: &mut dyn FnMut(Event)) -> Reply;
    fn vars(&self) -> Vec<Var>;
    /// Whether the cell was interrupted: asked by what has just begun to listen for it.
    fn interrupted(&self) -> bool {
        false
    }
    /// Saves or loads the variables.
    fn checkpoint(&self, args: &str, events: &mut dyn FnMut(Event)) -> Reply;
    /// Says how often they are to be saved.
    fn autosave(&self, args: &str, events: &mut dyn FnMut(Event)) -> Reply;
    /// Runs again the cells that made what a crash took.
    fn recover(&self, events: &mut dyn FnMut(Event)) -> Reply;
}

/// Runs one line of magic. `line` is as the user wrote it; its `%` or `%%` may be left out, the `!` of a shell
/// command may not. `body` is the rest of the cell where the line began with `%%`.
pub fn run(line: &str, body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
    let line = line.trim();
    if let Some(command) = line.strip_prefix('!') {
        return shell::Shell.run(command.trim(), body, session, events);
    }
    let (name, args) = name_and_arguments(line);
    let Some(magic) = find(name) else { return unknown(name) };
    match (magic.scope(), body) {
        (Scope::Line, Some(_)) => answer::usage(
            *magic,
            &format!("%{name} is a line magic: it takes no cell body. Write it as %{name} on a line of its own."),
        ),
        (Scope::Cell, None) => answer::usage(
            *magic,
            &format!("%{name} is a cell magic: write %%{name} as the first line, and what it works on below."),
        ),
        _ => magic.run(args.trim(), body, session, events),
    }
}

fn name_and_arguments(line: &str) -> (&str, &str) {
    let line = line.trim_start_matches('%').trim_start();
    line.split_once(char::is_whitespace).unwrap_or((line, ""))
}

/// Whether this line of magic can be answered while a cell runs.
pub fn only_reads(line: &str) -> bool {
    let (name, args) = name_and_arguments(line.trim());
    find(name).is_some_and(|magic| magic.only_reads(args.trim()))
}

/// The magic of that name or alias.
pub fn find(name: &str) -> Option<&'static &'static dyn Magic> {
    TABLE.iter().find(|m| m.name() == name || m.aliases().contains(&name))
}

/// Every name that can follow `%`, aliases included, for completion.
pub fn names() -> impl Iterator<Item = &'static str> {
    let listed = TABLE.iter().filter(|m| m.name() != "!");
    listed.flat_map(|m| std::iter::once(m.name()).chain(m.aliases().iter().copied()))
}

fn unknown(name: &str) -> Reply {
    if name.is_empty() {
        return answer::error("UsageError", "there is no magic name after %. %help lists the magics.");
    }
    let list: Vec<String> = names().map(|n| format!("%{n}")).collect();
    let hint = nearest(name, names()).map(|n| format!(" Did you mean %{n}?")).unwrap_or_default();
    answer::error(
        "UnknownMagic",
        &format!("there is no magic %{name}.{hint}\nMagics: {}, !command. %help tells more.", list.join(" ")),
    )
}
