//! `xlazy run`: executes a notebook without Jupyter, shows progress and what cells print, and writes the outputs into a copy.
use super::notebook::{CodeCell, Notebook};
use super::options::json_flag;
use super::report::{INTERRUPTED, fail, fail_with};
use super::{engines, events, html, printed::Printed};
use crate::ctrl_c;
use crate::engine::spill::{Limits, Spill};
use crate::engine::{Engine, Event, Failure, Reply, Request};
use crate::home::home;
use crate::terminal::{colours, failure_lines, plain_unless};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use xlazy_mime::whole;

pub fn command() -> Command {
    Command::new("run")
        .about("Execute a notebook headless, cell by cell")
        .arg(
            Arg::new("notebook")
                .value_name("NOTEBOOK")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("An .ipynb file"),
        )
        .arg(engines::argument())
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write the executed notebook here; without it, --in-place or --to, nothing is written"),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("FORMAT")
                .value_parser(["notebook", "html"])
                .conflicts_with("in-place")
                .help("What is written: `html` is one page that needs no Jupyter [default: by the ending of --output]"),
        )
        .arg(
            Arg::new("in-place")
                .long("in-place")
                .action(ArgAction::SetTrue)
                .conflicts_with("output")
                .help("Write the outputs into the notebook itself"),
        )
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("SECONDS")
                .value_parser(value_parser!(u64).range(1..))
                .help("Interrupt a cell that takes longer, as an error"),
        )
        .arg(
            json_flag().help("Print one JSON object per event on standard output, and one per cell that says how it ended"),
        )
        .arg(
            Arg::new("arguments")
                .value_name("ARGUMENT")
                .num_args(0..)
                .allow_hyphen_values(true)
                .trailing_var_arg(true)
                .help("What the notebook's cells find in `std::env::args()`: from the first that is no option of these on"),
        )
        .after_help(
            "What cells print goes to standard output and standard error as it comes; so do results, their first lines, where \
             no file is written. Progress goes to standard error.\n\nThe notebook's own folder is the working directory. The first error ends the run, unless its cell is \
             tagged `raises-exception`; cells tagged `skip-execution` are left alone. The output file is written \
             even when a cell fails.\n\nExit code: 0, 1 when a cell failed, 130 when it was interrupted.",
        )
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    let path = matches.get_one::<PathBuf>("notebook").expect("it is required");
    let to = matches.get_one::<String>("to").map(String::as_str);
    let output = match (matches.get_flag("in-place"), matches.get_one::<PathBuf>("output"), to) {
        (true, ..) => Some(path.clone()),
        (_, Some(output), _) => Some(output.clone()),
        (.., Some("html")) => Some(path.with_extension("html")),
        (.., Some(_)) => return fail("--to notebook needs --output FILE, or is --in-place"),
        _ => None,
    };
    // The working directory is about to change.
    let output = output.map(|p| std::path::absolute(&p).unwrap_or(p));
    // Before the cells run, which may take hours.
    if let Some(output) = &output
        && let Err(e) = whole::Unfinished::create(output)
    {
        return fail(&format!("{} cannot be written: {e}", output.display()));
    }
    let text = match xlazy_mime::regular::read_to_string(path) {
        Ok(text) => text,
        Err(e) => return fail(&format!("{} could not be read: {e}", path.display())),
    };
    let mut notebook = match Notebook::parse(&text) {
        Ok(notebook) => notebook,
        Err(why) => return fail(&format!("{}: {why}", path.display())),
    };
    let arguments: Vec<String> = matches.get_many("arguments").unwrap_or_default().cloned().collect();
    if let Some(first) = arguments.first().filter(|_| !asks_for_arguments(&notebook)) {
        let name = path.display();
        return fail(&format!(
            "{first} is no option of `xlazy run`, and no cell of {name} asks for `std::env::args()`"
        ));
    }
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty())
        && let Err(e) = std::env::set_current_dir(folder)
    {
        return fail(&format!("{} cannot be the working directory: {e}", folder.display()));
    }
    let engine = match engines::start_for(matches, path, arguments) {
        Ok(engine) => engine,
        Err(failure) => return fail_with(&failure),
    };
    let interrupts = ctrl_c::interrupts(engine.clone());
    let settings = Settings {
        json: matches.get_flag("json"),
        timeout: matches.get_one("timeout").copied().map(Duration::from_secs),
        colours: (colours(&io::stdout()), colours(&io::stderr())),
        results: output.is_none(),
        spill: home().map_or_else(|| crate::folder::to_stay().unwrap_or_default(), |h| h.join("state/output")),
    };
    let reply = execute(&engine, &mut notebook, &settings, &mut io::stdout(), &mut io::stderr());
    drop(interrupts);
    engine.shutdown();
    if let Some(output) = output {
        let folder = output.parent().unwrap_or(Path::new("."));
        output.extension().and_then(|e| e.to_str()).iter().for_each(|e| whole::sweep(folder, e));
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_page = to.map_or(output.extension().is_some_and(|e| e == "html"), |to| to == "html");
        let text = if is_page { html::page(&notebook, &name) } else { notebook.to_text() };
        if let Err(e) = whole::write(&output, text) {
            return fail(&format!("{} could not be written: {e}", output.display()));
        }
        eprintln!("written: {}", output.display());
    }
    match reply {
        Reply::Ok => ExitCode::SUCCESS,
        Reply::Error(_) => ExitCode::FAILURE,
        Reply::Interrupted => ExitCode::from(INTERRUPTED),
    }
}

/// Whether a cell reads the command line, itself or through a crate for that.
fn asks_for_arguments(notebook: &Notebook) -> bool {
    let reads = |cell: &CodeCell| ["args", "parse()", "from_env()"].iter().any(|word| cell.code.contains(word));
    notebook.code_cells().iter().any(reads)
}

/// How a notebook is run, apart from what is in it.
#[derive(Default)]
pub struct Settings {
    pub json: bool,
    pub timeout: Option<Duration>,
    /// Whether colours may pass to standard output and standard error.
    pub colours: (bool, bool),
    /// Whether results are shown, and not only what cells print.
    pub results: bool,
    /// The folder for output that is more than a document can hold.
    pub spill: PathBuf,
}

/// Runs the cells in order and writes their outputs into the notebook; progress goes to `err`, and to `out` what cells print, or JSON.
pub fn execute(
    engine: &Arc<dyn Engine>,
    notebook: &mut Notebook,
    settings: &Settings,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Reply {
    notebook.set_kernel();
    notebook.clear_outputs();
    let cells = notebook.code_cells();
    let total = cells.len();
    let all = Instant::now();
    for (done, cell) in cells.iter().enumerate() {
        let count = done as u64 + 1;
        let place = format!("[{count:>width$}/{total}]", width = total.to_string().len());
        let _ = write!(err, "{place} {}", first_line(&cell.code));
        let _ = err.flush();
        let start = Instant::now();
        notebook.set_execution_count(cell.index, count);
        let mut advised = Vec::new();
        let mut printed = Printed::new(out, err, settings.colours, settings.results);
        let reply = execute_cell(engine, notebook, cell, count, settings, &mut printed, &mut advised);
        let has_printed = printed.end();
        let took = start.elapsed();
        if settings.json {
            let mut line = events::reply_json(count, &reply, took);
            line["id"] = cell.id.clone().into();
            let _ = writeln!(out, "{line}");
        }
        let failure = match &reply {
            Reply::Ok => None,
            Reply::Error(failure) => Some(failure.clone()),
            Reply::Interrupted => Some(interrupted("the cell was interrupted")),
        };
        let expected = cell.may_fail && matches!(&reply, Reply::Error(failure) if failure.name != TIMEOUT);
        let ended = match &failure {
            None => String::new(),
            Some(failure) if expected => format!(" ({}, as its tag allows)", failure.name),
            Some(failure) => format!(" {}", failure.name),
        };
        // What the cell has printed stands behind the line that said which it is.
        let place = if has_printed { place.as_str() } else { "" };
        let _ = writeln!(err, "{place}  {:.2} s{ended}", took.as_secs_f64());
        // Nobody sees a next cell here, and whoever asked for one wants to read it.
        for text in advised {
            let _ = writeln!(err, "{text}");
        }
        let Some(failure) = failure else { continue };
        notebook.add_error(cell.index, &failure);
        if !expected {
            for line in failure_lines(&failure) {
                let _ = writeln!(err, "{}", plain_unless(settings.colours.1, &line));
            }
            let left = total - done - 1;
            let rest = if left == 0 { String::new() } else { format!("; {left} more not run") };
            let _ = writeln!(err, "stopped at cell {count} of {total}{rest}");
            return reply;
        }
    }
    let _ = writeln!(err, "{total} cells in {:.1} s", all.elapsed().as_secs_f64());
    Reply::Ok
}

fn execute_cell(
    engine: &Arc<dyn Engine>,
    notebook: &mut Notebook,
    cell: &CodeCell,
    count: u64,
    settings: &Settings,
    printed: &mut Printed,
    advised: &mut Vec<String>,
) -> Reply {
    let request =
        Request { code: cell.code.clone(), silent: false, store_history: true, allow_stdin: false, cell: count };
    let timed_out = Arc::new(AtomicBool::new(false));
    let (finished, watch) = channel::<()>();
    let watchdog = settings.timeout.map(|limit| {
        let (engine, timed_out) = (engine.clone(), timed_out.clone());
        std::thread::spawn(move || {
            let mut wait = limit;
            // A second interrupt ends even what the first cannot unwind, so two are all there is to do.
            for _ in 0..2 {
                if watch.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                timed_out.store(true, Ordering::SeqCst);
                engine.interrupt();
                wait = Duration::from_secs(2);
            }
        })
    });
    // What a document cannot hold goes to a file beside the state, as it does for a front end.
    let mut spill = Spill::new(Limits::DOCUMENT, &settings.spill, count);
    let mut take = |printed: &mut Printed, event: Event| {
        if settings.json {
            printed.json(&events::event_json(count, &event));
        }
        notebook.add_event(cell.index, count, &event);
        if let Event::NextInput(text) = &event {
            advised.push(text.clone());
        }
        if let Event::Input { answer, .. } = event {
            let _ = answer.send(Err("a notebook that runs headless has nobody to ask".to_owned()));
        }
    };
    let reply = engine.execute(&request, &mut |event| {
        if !settings.json {
            printed.show(&event);
        }
        spill.pass(event, &mut |event| take(printed, event));
    });
    spill.end(&mut |event| take(printed, event));
    drop(finished);
    if let Some(watchdog) = watchdog {
        let _ = watchdog.join();
    }
    match (&settings.timeout, reply) {
        (Some(limit), Reply::Interrupted | Reply::Error(_)) if timed_out.load(Ordering::SeqCst) => {
            let message = format!("the cell took longer than {} s and was interrupted", limit.as_secs());
            Reply::Error(Failure { name: TIMEOUT.to_owned(), ..interrupted(&message) })
        }
        (_, reply) => reply,
    }
}

/// The error of a cell that took too long; a cell that may fail may not do that.
const TIMEOUT: &str = "Timeout";

fn interrupted(message: &str) -> Failure {
    Failure { name: "Interrupted".to_owned(), message: message.to_owned(), traceback: Vec::new() }
}

/// What a cell is recognised by in a line of progress.
fn first_line(code: &str) -> String {
    let line = code.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
    let mut short: String = line.chars().take(60).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}
