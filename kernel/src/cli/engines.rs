//! Starting the engine for the subcommands that run cells.
use crate::engine::{Engine, Failure};
use crate::eval::RustEngine;
use crate::eval::install::Installation;
use crate::evcxr::Evcxr;
use crate::footer::WithFooter;
use clap::{Arg, ArgMatches};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

const NAMES: [&str; 2] = ["xlazy", "evcxr"];

/// `--engine` of the subcommands that run cells.
pub fn argument() -> Arg {
    Arg::new("engine")
        .long("engine")
        .value_name("ENGINE")
        .value_parser(NAMES)
        .default_value(NAMES[0])
        .help("What runs the cells: xlazy, or, for plain Rust, evcxr, which has to be built first (engines/evcxr)")
}

/// evcxr, where that is asked for.
fn other(asked: &ArgMatches) -> Option<Result<Arc<dyn Engine>, Failure>> {
    let named = asked.get_one::<String>("engine").filter(|name| **name == NAMES[1]);
    named.map(|_| Ok(Arc::new(Evcxr::start()?) as Arc<dyn Engine>))
}

/// A new session, ready for its first cell.
pub fn start() -> Result<Arc<dyn Engine>, Failure> {
    Ok(Arc::new(RustEngine::start(Installation::find()?)?))
}

/// As [`start`], of the engine that is asked for.
pub fn start_asked(asked: &ArgMatches) -> Result<Arc<dyn Engine>, Failure> {
    other(asked).unwrap_or_else(start)
}

/// As [`start_asked`], for a person: every cell ends with the line that says what it did; `live`, where it stands there while
/// the cell runs.
pub fn start_told(asked: &ArgMatches, live: bool) -> Result<Arc<dyn Engine>, Failure> {
    if let Some(engine) = other(asked) {
        return engine;
    }
    // A kernel's front end watches, whatever its own standard error is.
    let shown = live || std::io::stderr().is_terminal();
    let install = Installation { shown, ..Installation::find()? };
    Ok(Arc::new(WithFooter { engine: RustEngine::start(install)?, live }))
}

/// As [`start_told`], for the cells of a notebook: its dependencies are locked beside it, and they have these arguments.
pub fn start_for(asked: &ArgMatches, notebook: &Path, arguments: Vec<String>) -> Result<Arc<dyn Engine>, Failure> {
    if let Some(engine) = other(asked) {
        return engine;
    }
    let install = Installation { notebook: Some(notebook.to_owned()), arguments, ..Installation::find()? };
    Ok(Arc::new(WithFooter { engine: RustEngine::start(install)?, live: false }))
}
