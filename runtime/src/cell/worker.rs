//! The session process: runs cells on one thread of their own, and answers questions, also while a cell runs.
use super::{RUNNING, at, checkpoint, link, object, outcome, store, streams};
use crate::sys;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use xlazy_mime::{Ask, Bundle, Fault, Frame, Outcome, RunCell, Tell};

/// Deep recursion is common in teaching code; the pages are only taken when they are used.
const CELL_STACK: usize = 64 << 20;

/// Cells that were handed to their thread and have not ended.
static CELLS: AtomicUsize = AtomicUsize::new(0);

/// Runs the session until the kernel ends it. The kernel passes the frame stream as descriptor 0.
pub fn main() {
    sys::die_with_parent();
    // The session holds the data; when memory runs out it must go before the kernel, which can explain it.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    let stream = sys::take_stdin().and_then(|fd| Ok((fd.try_clone()?, fd)));
    let Ok((input, output)) = stream else {
        std::eprintln!("xlazy-session is started by the xlazy kernel; it is of no use alone");
        std::process::exit(2);
    };
    sys::catch_signals();
    object::keep_spare();
    outcome::install_hook();
    link::connect(output);
    at::open();
    let (jobs, work) = mpsc::channel();
    let (answers, answered) = mpsc::channel();
    *streams::ANSWERS.lock().expect("nothing has run yet") = Some(answered);
    let cells = std::thread::Builder::new().name("cell".into()).stack_size(CELL_STACK).spawn(move || work_off(work));
    let (questions, asked) = mpsc::channel();
    let beside = std::thread::Builder::new().name("questions".into()).spawn(move || answer_all(asked));
    let disturb = std::thread::Builder::new().name("interrupts".into()).spawn(sys::disturb_waits);
    if cells.is_err() || beside.is_err() || disturb.is_err() {
        std::eprintln!("xlazy-session: no memory for its threads");
        std::process::exit(2);
    }
    link::send(&Tell::Ready { version: env!("CARGO_PKG_VERSION").to_owned() });
    // Jobs of the cell thread. An interrupt is for those before it.
    let mut handed = 0;
    let mut input = std::io::BufReader::new(std::fs::File::from(input));
    loop {
        match Ask::receive(&mut input) {
            Ok(Some(Ask::Input(answer))) => drop(answers.send(answer)),
            Ok(Some(Ask::Interrupt)) => sys::interrupt_up_to(handed),
            Ok(Some(Ask::Drained(fence))) => link::drained(fence),
            Ok(Some(Ask::Shutdown)) | Ok(None) | Err(_) => break,
            Ok(Some(ask)) => match &ask {
                Ask::Call { name, .. } if CELLS.load(Ordering::SeqCst) > 0 && !needs_the_store(name) => {
                    drop(questions.send(ask));
                }
                other => {
                    CELLS.fetch_add(usize::from(matches!(other, Ask::Run(_))), Ordering::SeqCst);
                    handed += 1;
                    drop(jobs.send(ask));
                }
            },
        }
    }
    // Neither `return` nor `exit`: threads of user code and of the plugin are still at work, and destructors of statics
    // must not run under them.
    let _ = std::io::Write::flush(&mut std::io::stdout());
    crate::session::settle_disk(std::time::Duration::from_secs(2));
    sys::exit_now(0)
}

fn work_off(work: mpsc::Receiver<Ask>) {
    sys::this_is_the_cell_thread();
    for (number, ask) in (1..).zip(work) {
        sys::begin_job(number);
        match ask {
            Ask::Run(cell) => run(&cell),
            Ask::Call { id, name, args } => {
                answer(id, &name, &args);
                sys::end_job();
            }
            Ask::Input(_) | Ask::Interrupt | Ask::Drained(_) | Ask::Shutdown => {}
        }
    }
}

/// Answers beside the cell thread, so that metrics, names and docs are there while a cell runs.
fn answer_all(asked: mpsc::Receiver<Ask>) {
    for ask in asked {
        if let Ask::Call { id, name, args } = ask {
            answer(id, &name, &args);
        }
    }
}

/// Whether only the cell thread, to which the variables belong, can do it. Questions that merely name variables answer
/// without the names elsewhere.
fn needs_the_store(question: &str) -> bool {
    matches!(question, "forget" | "generator" | "load") || question.starts_with("checkpoint-")
}

fn answer(id: u64, name: &str, args: &str) {
    let answer = catch_unwind(AssertUnwindSafe(|| call(name, args))).unwrap_or_else(|_| {
        Err(Fault { name: "Panic".into(), message: format!("{name} panicked"), ..Fault::default() })
    });
    link::send(&Tell::Reply { id, answer });
}

fn run(cell: &RunCell) {
    store::set_cell(cell.cell);
    at::begin(cell.run);
    // Without it lines are told as those of the file.
    let _ = crate::calls::register_cell(&cell.places);
    crate::insight::cell::begin();
    sys::children::cell_begins();
    RUNNING.store(true, Ordering::SeqCst);
    let outcome = match object::load(&cell.object, &cell.symbol) {
        Ok(entry) => outcome::take(catch_unwind(AssertUnwindSafe(|| entry()))),
        Err(message) => Outcome::Failed(Fault { name: "LoadError".into(), message, ..Fault::default() }),
    };
    RUNNING.store(false, Ordering::SeqCst);
    if link::is_forked() {
        // The cell goes on in the process that forked this one.
        let _ = std::io::Write::flush(&mut std::io::stdout());
        sys::exit_now(0);
    }
    if sys::interrupted() {
        sys::children::cell_was_interrupted();
    }
    sys::end_job();
    let lost = store::lost();
    if let Some(json) = crate::insight::cell::end() {
        link::send(&Tell::Event { kind: "cell".into(), json });
    }
    // Before it is told: a question that comes after the end belongs to the cell thread again.
    CELLS.fetch_sub(1, Ordering::SeqCst);
    link::send(&Tell::Done { run: cell.run, outcome, vars: store::list(), lost, generator: crate::ops::generator() });
}

fn call(name: &str, args: &str) -> Result<Bundle, Fault> {
    match name {
        "forget" => {
            store::forget(args);
            Ok(Bundle::default())
        }
        "generator" => {
            let mut words = args.split_whitespace().map(|w| w.parse().unwrap_or(0));
            crate::ops::set_generator((words.next().unwrap_or(0), words.next().unwrap_or(0)));
            Ok(Bundle::default())
        }
        "load" => {
            object::preload(args);
            Ok(Bundle::default())
        }
        "checkpoint-write" => told(checkpoint::write(args)),
        "checkpoint-open" => told(checkpoint::open(args)),
        "checkpoint-close" => told(checkpoint::close()),
        _ => crate::calls::call(name, args),
    }
}

fn told(answer: crate::Result<Bundle>) -> Result<Bundle, Fault> {
    answer.map_err(|e| Fault { name: "CheckpointError".into(), message: e.to_string(), ..Fault::default() })
}
