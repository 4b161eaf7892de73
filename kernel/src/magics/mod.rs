//! Magics (`%name`, `%%name`, `!command`): one value per magic, in a file of its own, and one table of them that running,
//! `%help` and completion read.
use crate::engine::{Event, Reply};
use magic::Call;
use xlazy_mime::Bundle;

mod answer;
mod autosave;
mod budget;
mod checkpoint;
mod collectives;
mod compare;
mod compiles;
mod device;
mod eager;
mod fix;
mod graph;
mod heal;
mod healed;
mod help;
mod hlo;
mod ir;
mod magic;
mod memory;
mod metrics;
mod named;
mod nan;
mod nearest;
mod opt;
mod peek;
mod pending;
mod pod;
mod profile;
mod program;
mod quiet;
mod recover;
mod shell;
mod stablehlo;
mod step;
mod time;
mod timeline;
pub mod tpu;
mod trace;
mod vars;
mod why;

pub use magic::{Host, Magic, Reads, Scope, Takes};
pub use nearest::nearest;
pub use shell::interrupt;

/// Every magic, in the order that `%help` lists them. A new magic is a file beside this one and an entry here.
pub static TABLE: &[Magic] = &[
    help::HELP,
    vars::VARS,
    time::TIME,
    metrics::METRICS,
    graph::GRAPH,
    ir::IR,
    stablehlo::STABLEHLO,
    hlo::HLO,
    trace::TRACE,
    memory::MEMORY,
    timeline::TIMELINE,
    profile::PROFILE,
    collectives::COLLECTIVES,
    tpu::TPU,
    device::DEVICE,
    pod::POD,
    pending::PENDING,
    compiles::COMPILES,
    why::WHY,
    fix::FIX,
    healed::HEALED,
    heal::HEAL,
    nan::NAN,
    peek::PEEK,
    compare::COMPARE,
    eager::EAGER,
    step::STEP,
    budget::BUDGET,
    opt::OPT,
    quiet::QUIET,
    recover::RECOVER,
    checkpoint::CHECKPOINT,
    autosave::AUTOSAVE,
    shell::SHELL,
];

/// Runs one line of magic. `line` is as the user wrote it; its `%` or `%%` may be left out, the `!` of a shell
/// command may not. `body` is the rest of the cell where the line began with `%%`.
pub fn run(line: &str, body: Option<&str>, host: &dyn Host, events: &mut dyn FnMut(Event)) -> Reply {
    let (name, written) = name_and_arguments(line.trim());
    // `%time?`, as IPython asks about one.
    let marked = name.ends_with('?') || written.contains('?');
    if marked && name != "!" && written.trim().trim_start_matches('?').is_empty() {
        return run(&format!("%help {}", name.trim_end_matches('?')), None, host, events);
    }
    let Some(magic) = find(name) else { return unknown(name) };
    match (magic.scope, body) {
        // Its name is no word.
        (Scope::Line, Some(_)) if name != "!" => {
            return magic.misused(&format!(
                "%{name} is a line magic: it takes no cell body. Write it as %{name} on a line of its own."
            ));
        }
        (Scope::Cell, None) => {
            return magic.misused(&format!(
                "%{name} is a cell magic: write %%{name} as the first line, and what it works on below."
            ));
        }
        _ => {}
    }
    let (json, args) = magic.arguments(written);
    match magic.refuses(args) {
        Some(refused) => refused,
        None => (magic.run)(&Call { magic, json, args, body, host, table: TABLE }, events),
    }
}

fn name_and_arguments(line: &str) -> (&str, &str) {
    if line.starts_with('!') {
        return line.split_at(1);
    }
    let line = line.trim_start_matches('%').trim_start();
    line.split_once(char::is_whitespace).unwrap_or((line, ""))
}

/// What `%help` says of the magic that a line begins with, or `:help` of evcxr's command.
pub fn page(line: &str) -> Option<Bundle> {
    let line = line.trim().trim_start_matches('?').trim_start();
    if let Some(command) = line.strip_prefix(':') {
        let name = command.split_whitespace().next()?;
        let called = |form: &str| form[1..].split(' ').next() == Some(name);
        let (form, what) = COMMANDS.iter().find(|(form, _)| called(form))?;
        return Some(Bundle::text(format!("{form}\n\n{what}")));
    }
    find(name_and_arguments(line).0).map(help::page)
}

/// Whether this line of magic can be answered while a cell runs.
pub fn only_reads(line: &str) -> bool {
    let (name, written) = name_and_arguments(line.trim());
    find(name).is_some_and(|magic| magic.only_reads(written))
}

/// The magic of that name or alias.
pub fn find(name: &str) -> Option<&'static Magic> {
    TABLE.iter().find(|m| m.is_called(name))
}

/// Every name that can follow `%`, aliases included.
pub fn names() -> impl Iterator<Item = &'static str> {
    let listed = TABLE.iter().filter(|m| m.name != "!");
    listed.flat_map(|m| std::iter::once(m.name).chain(m.aliases.iter().copied()))
}

/// What the last word of a line of magic may be: a name, or one of its magic's words. `None` where it may be anything.
pub fn candidates(line: &str) -> Option<Vec<&'static str>> {
    let line = line.trim_start().trim_start_matches('%');
    let Some((name, written)) = line.split_once(char::is_whitespace) else { return Some(names().collect()) };
    let magic = find(name)?;
    let words = match magic.takes {
        Takes::Magic => names().collect(),
        _ => magic.words()?.to_vec(),
    };
    // One word is all that there may be of them.
    let first = !written.trim_start().contains(char::is_whitespace);
    Some(if first { words } else { Vec::new() })
}

fn unknown(name: &str) -> Reply {
    if name.is_empty() {
        return magic::error("UsageError", "there is no magic name after %. %help lists the magics.");
    }
    let list: Vec<String> = names().map(|n| format!("%{n}")).collect();
    let hint = match ELSEWHERE.iter().find(|(theirs, _)| *theirs == name) {
        Some((_, here)) => format!(" Here it is {here}."),
        None => nearest(name, names()).map(|n| format!(" Did you mean %{n}?")).unwrap_or_default(),
    };
    magic::error(
        "UnknownMagic",
        &format!("there is no magic %{name}.{hint}\nMagics: {}, !command. %help tells more.", list.join(" ")),
    )
}

/// IPython's magics that people type, and what does here what they are for.
const ELSEWHERE: &[(&str, &str)] = &[
    ("timeit", "%time CODE, once: a loop in it that ends in `xlazy::sync();` is timed as a whole"),
    ("matplotlib", "nothing: `line_plot` and `Plot` draw below the cell (docs/display.md)"),
    ("pip", ":dep NAME = \"VERSION\", of crates.io"),
    ("conda", ":dep NAME = \"VERSION\", of crates.io"),
    ("run", ":load FILE"),
    ("load", ":load FILE"),
    ("reset", ":clear"),
    ("lsmagic", "%help"),
    ("pinfo", "%help NAME, or ?NAME"),
    ("env", "`!env`, and `std::env::var` in a cell"),
    ("bash", "!COMMAND"),
    ("sh", "!COMMAND"),
    ("system", "!COMMAND"),
    ("prun", "%profile"),
    ("debug", "nothing: an error names the line, and `%peek` and `%nan` show what was computed inside"),
];

/// evcxr's commands that mean something here: how each is written, and what it does. `:help` lists them.
pub const COMMANDS: &[(&str, &str)] = &[
    (":dep name = \"1\"", "add a dependency: also { version, features, path, git }, and `:dep ./folder`"),
    (":show_deps", "list the dependencies, and where their versions are locked"),
    (":vars", "list the variables, as %vars does"),
    (":type EXPRESSION", "show an expression's type (also :t)"),
    (":clear", "forget variables, items and dependencies (also :restart)"),
    (":opt [LEVEL]", "optimise the cells from here on; `// @opt 3` and `%opt 3` do so for one cell"),
    (":load FILE", "run a file as a cell"),
    (":doc NAME", "show what NAME is, as `?NAME`, `%help NAME` and Shift-Tab do"),
    (":explain [CODE]", "let rustc explain the last compile error at length, or the one of that number"),
    (":last_compile_dir", "show where this kernel compiles"),
    (":version", "show which xlazy this is"),
    (":help", "show this list; %help lists the magics"),
];
