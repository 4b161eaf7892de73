//! `xlazy eval`: runs cells given on the command line or on standard input.
use super::options::json_flag;
use super::report::{INTERRUPTED, fail, fail_with};
use super::{engines, events};
use crate::ctrl_c;
use crate::engine::{Engine, Event, Reply, Request};
use crate::terminal::{Screen, colours};
use clap::{Arg, ArgMatches, Command};
use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::time::Instant;

pub fn command() -> Command {
    Command::new("eval")
        .about("Run cells from the command line, in one session")
        .arg(Arg::new("code").value_name("CODE").num_args(0..).allow_hyphen_values(false).help(
            "One cell per argument, run in order; the first error ends it. `-`, or no argument, reads a cell from \
             standard input",
        ))
        .arg(json_flag().help("Print one JSON object per event, and one per cell that says how it ended"))
        .arg(engines::argument())
        .after_help(
            "Examples:\n  xlazy eval 'let x = 41;' 'x + 1'\n  xlazy eval --json 'Tensor::ones([2, 2]) * 3.0'\n  \
             xlazy eval < cell.rs\n\nExit code: 0, 1 when a cell failed, 130 when it was interrupted.",
        )
}

pub fn run(matches: &ArgMatches) -> ExitCode {
    let cells = match cells(matches.get_many::<String>("code").unwrap_or_default()) {
        Ok(cells) => cells,
        Err(e) => return fail(&format!("standard input could not be read: {e}")),
    };
    let engine = match engines::start_asked(matches) {
        Ok(engine) => engine,
        Err(failure) => return fail_with(&failure),
    };
    let interrupts = ctrl_c::interrupts(engine.clone());
    let reply = run_cells(&*engine, &cells, matches.get_flag("json"), &mut io::stdout(), &mut io::stderr());
    drop(interrupts);
    engine.shutdown();
    match reply {
        Reply::Ok => ExitCode::SUCCESS,
        Reply::Error(_) => ExitCode::FAILURE,
        Reply::Interrupted => ExitCode::from(INTERRUPTED),
    }
}

fn cells<'a>(arguments: impl Iterator<Item = &'a String>) -> io::Result<Vec<String>> {
    let mut cells = Vec::new();
    let mut arguments = arguments.peekable();
    if arguments.peek().is_none() {
        cells.push(read_stdin()?);
    }
    for argument in arguments {
        cells.push(if argument == "-" { read_stdin()? } else { argument.clone() });
    }
    Ok(cells)
}

fn read_stdin() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text).map(|_| text)
}

/// Runs the cells until one does not end well; how the last one ended is the answer.
pub fn run_cells(
    engine: &dyn Engine,
    cells: &[String],
    json: bool,
    out: &mut (impl Write + IsTerminal),
    err: &mut (impl Write + IsTerminal),
) -> Reply {
    let stdin = io::stdin().is_terminal();
    let terminal = out.is_terminal();
    let colours = (colours(out), colours(err));
    for (index, code) in cells.iter().enumerate() {
        let cell = index as u64 + 1;
        let request = Request { code: code.clone(), store_history: true, allow_stdin: stdin, cell, silent: false };
        let start = Instant::now();
        let reply = if json {
            let reply = engine.execute(&request, &mut |event| {
                print_line(out, &events::event_json(cell, &event));
                if let Event::Input { answer, .. } = event {
                    let _ = answer.send(Err("xlazy eval --json has nobody to ask".to_owned()));
                }
            });
            print_line(out, &events::reply_json(cell, &reply, start.elapsed()));
            reply
        } else {
            let mut screen = Screen::new(out, err);
            screen.colours = colours;
            screen.stdin = stdin;
            let reply = engine.execute(&request, &mut |event| screen.show(event));
            screen.finish();
            if terminal {
                screen.finish_line();
            }
            match &reply {
                Reply::Ok => {}
                Reply::Error(failure) => screen.failure(failure),
                Reply::Interrupted => {
                    screen.finish_line();
                    let _ = writeln!(screen.err, "interrupted");
                }
            }
            reply
        };
        if reply != Reply::Ok {
            return reply;
        }
    }
    Reply::Ok
}

fn print_line(out: &mut impl Write, object: &serde_json::Value) {
    let _ = writeln!(out, "{object}");
    let _ = out.flush();
}
