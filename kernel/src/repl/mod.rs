//! The terminal front end: reads cells, runs them, shows what they do as text.
use crate::engine::{Completeness, Engine, Event, Reply, Request};
use crate::terminal::{self, Screen};
use rustyline::error::ReadlineError;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

mod editor;
mod highlight;

pub use highlight::coloured;

/// Runs until the input ends: with prompts on a terminal, without in a pipe.
pub fn run(engine: Arc<dyn Engine>) -> ExitCode {
    let code = if io::stdin().is_terminal() {
        converse(&engine)
    } else {
        let reply = run_piped(&*engine, &mut io::stdin().lock(), &mut Front::of_this_process());
        if reply == Reply::Ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    };
    engine.shutdown();
    code
}

/// Where the REPL shows things, and how.
pub struct Front<'a> {
    pub out: Box<dyn Write + 'a>,
    pub err: Box<dyn Write + 'a>,
    pub colours: (bool, bool),
    /// Whether somebody sits there: results are numbered, and cells may ask.
    pub interactive: bool,
    /// As [`Screen::pictures`].
    pub pictures: Option<fn() -> io::Result<PathBuf>>,
}

impl Front<'_> {
    fn of_this_process() -> Front<'static> {
        let interactive = io::stdin().is_terminal();
        Front {
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            colours: (terminal::colours(&io::stdout()), terminal::colours(&io::stderr())),
            interactive,
            pictures: interactive.then_some(crate::folder::to_stay),
        }
    }

    /// Runs one cell and shows everything that comes of it.
    fn run_cell(&mut self, engine: &dyn Engine, code: &str, cell: u64) -> Reply {
        let mut screen = Screen::new(&mut self.out, &mut self.err);
        screen.colours = self.colours;
        screen.stdin = self.interactive;
        screen.live = self.interactive && self.colours.0;
        screen.pictures = self.pictures;
        if self.interactive {
            screen.result_prefix = format!("\x1b[31mOut[{cell}]:\x1b[0m ");
        }
        let allow_stdin = self.interactive;
        let request = Request { code: code.to_owned(), silent: false, store_history: true, allow_stdin, cell };
        let reply = engine.execute(&request, &mut |event| screen.show(event));
        screen.finish();
        let ended_a_line = screen.finish_line();
        match &reply {
            Reply::Ok => {}
            Reply::Error(failure) => screen.failure(failure),
            Reply::Interrupted => {
                // A terminal has echoed ^C where the cursor was.
                let line_break = if self.interactive && !ended_a_line { "\n" } else { "" };
                let note = "\x1b[33minterrupted\x1b[0m; every variable is kept";
                let _ = writeln!(screen.err, "{line_break}{}", terminal::plain_unless(screen.colours.1, note));
            }
        }
        reply
    }
}

/// Runs cells from a pipe as they come: a cell ends where its text is complete. The first that fails ends it.
pub fn run_piped(engine: &dyn Engine, input: &mut dyn BufRead, front: &mut Front) -> Reply {
    let mut cell = 1;
    let mut code = String::new();
    loop {
        let ended = match input.read_line(&mut code) {
            Ok(n) => n == 0,
            Err(e) => {
                let _ = writeln!(front.err, "standard input could not be read: {e}");
                true
            }
        };
        let ready = ended || !matches!(engine.is_complete(&code), Completeness::Incomplete(_));
        if ready && !code.trim().is_empty() {
            let reply = front.run_cell(engine, code.trim_end(), cell);
            if reply != Reply::Ok {
                return reply;
            }
            cell += 1;
            code.clear();
        }
        if ended {
            return Reply::Ok;
        }
    }
}

fn converse(engine: &Arc<dyn Engine>) -> ExitCode {
    let mut editor = match editor::new(engine.clone(), history_file()) {
        Ok(editor) => editor,
        Err(e) => {
            eprintln!("xlazy: the line editor could not be started: {e}");
            return ExitCode::FAILURE;
        }
    };
    if let Ok(mut print) = editor.printer() {
        engine.listen(Box::new(move |event| match event {
            Event::Stream { text, .. } => print(text),
            Event::Display { bundle, .. } => print(format!("{}\n", bundle.plain().trim_end())),
            // What belongs to a cell that runs.
            _ => {}
        }));
    }
    // While a line is edited, Ctrl-C is a key; while a cell runs, it is this signal.
    let _interrupts = crate::ctrl_c::interrupts(engine.clone());
    let mut front = Front::of_this_process();
    println!(
        "xlazy {}: Rust with lazy tensors on XLA. %help lists the magics, Ctrl-D ends.",
        env!("CARGO_PKG_VERSION")
    );
    let mut cell = 1;
    loop {
        match editor.read(cell) {
            Ok(code) if code.trim().is_empty() => {}
            Ok(code) if is_farewell(&code) => return ExitCode::SUCCESS,
            Ok(code) => {
                front.run_cell(&**engine, &code, cell);
                println!();
                cell += 1;
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("xlazy: the terminal could not be read: {e}");
                return ExitCode::FAILURE;
            }
        }
    }
}

/// What people type to leave; none of it means anything in Rust.
fn is_farewell(code: &str) -> bool {
    matches!(code.trim().trim_end_matches(';'), "exit" | "quit" | "exit()" | "quit()" | ":q" | ":quit")
}

/// Where the history of all sessions is kept.
fn history_file() -> Option<PathBuf> {
    Some(crate::home::home()?.join("state/repl-history"))
}
