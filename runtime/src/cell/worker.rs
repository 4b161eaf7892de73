//! The session process: runs cells on one thread of their own, and answers questions, also while a cell runs.
use super::{at, checkpoint, link, object, outcome, rt, store, streams};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::Duration;
use xlazy_core::host::{self, Host};
use xlazy_core::sys;
use xlazy_mime::{Ask, Bundle, Fault, Frame, Outcome, Question, RunCell, Tell};

/// Deep recursion is common in teaching code; the pages are only taken when they are used.
const CELL_STACK: usize = 64 << 20;

/// Cells that were handed to their thread and have not ended.
static CELLS: AtomicUsize = AtomicUsize::new(0);

/// What answers a question that is not about the cell thread's own things.
pub type Answers = fn(question: Question, args: &str) -> Result<Bundle, Fault>;

static QUESTIONS: OnceLock<Answers> = OnceLock::new();

/// Runs the session until the kernel ends it, with `questions` for what needs no cell thread. The kernel passes the frame stream as descriptor 0.
pub fn main(questions: Answers) {
    let _ = QUESTIONS.set(questions);
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
    host::set(Host {
        note: |line| rt::print_text(true, format_args!("{line}\n")),
        event: super::event,
        line_of_input: streams::line_of_input,
        printed: streams::printed,
        variables: store::tensors,
        named: super::named::all,
    });
    at::open();
    let (jobs, work) = mpsc::channel();
    *work_to_do() = Some(work);
    sys::on_leave(leave);
    sys::on_stuck(say_stuck);
    let (answers, answered) = mpsc::channel();
    *streams::ANSWERS.lock().expect("nothing has run yet") = Some(answered);
    let cells = std::thread::Builder::new().name("cell".into()).stack_size(CELL_STACK).spawn(work_off);
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
                Ask::Call { question, .. } if CELLS.load(Ordering::SeqCst) > 0 && store_answer(*question).is_none() => {
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
    xlazy_core::run::settle_disk(std::time::Duration::from_secs(2));
    sys::exit_now(0)
}

/// What the cell thread has to do. It holds the lock while it waits for work, never while it works.
static WORK: Mutex<Option<mpsc::Receiver<Ask>>> = Mutex::new(None);
/// Jobs that the cell thread has begun.
static JOBS: AtomicU64 = AtomicU64::new(0);

fn work_to_do() -> MutexGuard<'static, Option<mpsc::Receiver<Ask>>> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work_off() {
    sys::this_is_the_cell_thread();
    let next = || work_to_do().as_ref().and_then(|work| work.recv().ok());
    while let Some(ask) = next() {
        sys::begin_job(JOBS.fetch_add(1, Ordering::SeqCst) + 1);
        match ask {
            Ask::Run(cell) => run(&cell),
            Ask::Call { id, question, args } => {
                answer(id, question, &args);
                sys::end_job();
            }
            Ask::Input(_) | Ask::Interrupt | Ask::Drained(_) | Ask::Shutdown => {}
        }
    }
}

/// The run that a cell is of.
static RUN: AtomicU64 = AtomicU64::new(0);

/// What a cell thread that is left behind hands over.
static LEFT: Mutex<Option<sys::Inherited<store::Store>>> = Mutex::new(None);

/// An interrupt cannot end what the cell waits in: this thread stays there for good, and another one takes over. False
/// where it cannot: there is no memory for it, or this thread holds what the other one needs.
fn leave() -> bool {
    if !stdout_is_free() {
        return false;
    }
    let left = || LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(variables) = store::hand_over() else { return false };
    *left() = Some(sys::Inherited::leave(variables));
    let take_over = move || {
        let variables = left().take().map(sys::Inherited::take);
        store::take_over(variables.unwrap_or_default());
        let behind = match store::out() {
            none if none.is_empty() => String::new(),
            names => format!(", with what the cell had taken: {}", names.join(", ")),
        };
        let line = at::line();
        streams::print_line(
            true,
            format_args!("note: no interrupt ends what line {line} waits in: its thread was left there{behind}"),
        );
        ended(Outcome::Interrupted);
        work_off();
    };
    let started = std::thread::Builder::new().name("cell".into()).stack_size(CELL_STACK).spawn(take_over).is_ok();
    if !started && let Some(variables) = left().take() {
        store::take_over(variables.take());
    }
    started
}

/// Whether the cell thread does not hold the lock of standard output, which everything passes that is told.
fn stdout_is_free() -> bool {
    const AT_ONCE: Duration = Duration::from_millis(100);
    let (tell, told) = mpsc::channel();
    let look = move || {
        drop(std::io::stdout().lock());
        let _ = tell.send(());
    };
    std::thread::Builder::new().spawn(look).is_ok() && told.recv_timeout(AT_ONCE).is_ok()
}

/// An interrupt has not ended the cell for a while.
fn say_stuck(doing: &str) {
    let lost = match &*NAMES.lock().unwrap_or_else(PoisonError::into_inner) {
        names if names.is_empty() => "no variable is there that would be lost".to_owned(),
        names => format!("these variables are lost then: {}", names.join(", ")),
    };
    let line = at::line();
    streams::print_line(
        true,
        format_args!(
            "note: the interrupt has not ended line {line}, which {doing}. Interrupt once more, within 5 s, to end the \
             session; {lost}"
        ),
    );
}

/// The variables that were there when the last cell ended.
static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Answers beside the cell thread, so that metrics, names and docs are there while a cell runs.
fn answer_all(asked: mpsc::Receiver<Ask>) {
    for ask in asked {
        if let Ask::Call { id, question, args } = ask {
            answer(id, question, &args);
        }
    }
}

/// What only the cell thread, to which the variables belong, can answer. Questions that merely name variables answer without
/// the names elsewhere.
fn store_answer(question: Question) -> Option<fn(&str) -> crate::Result<Bundle>> {
    Some(match question {
        Question::Forget => |names| {
            store::forget(names);
            Ok(Bundle::default())
        },
        Question::Generator => |state| {
            let mut words = state.split_whitespace().map(|w| w.parse().unwrap_or(0));
            crate::ops::set_generator((words.next().unwrap_or(0), words.next().unwrap_or(0)));
            Ok(Bundle::default())
        },
        Question::Unnamed => |_| Ok(Bundle::text(super::named::unknown())),
        Question::Load => |objects| {
            object::preload(objects);
            Ok(Bundle::default())
        },
        Question::CheckpointKept => |_| checkpoint::kept(),
        Question::CheckpointWrite => checkpoint::write,
        Question::CheckpointOpen => checkpoint::open,
        Question::CheckpointClose => |_| checkpoint::close(),
        _ => return None,
    })
}

fn answer(id: u64, question: Question, args: &str) {
    let answer = catch_unwind(AssertUnwindSafe(|| call(question, args))).unwrap_or_else(|_| {
        Err(Fault { name: "Panic".into(), message: format!("{question} panicked"), ..Fault::default() })
    });
    link::send(&Tell::Reply { id, answer });
}

fn run(cell: &RunCell) {
    store::set_cell(cell.cell);
    at::begin(cell.run);
    RUN.store(cell.run, Ordering::SeqCst);
    // Without it lines are told as those of the file.
    let _ = super::register_cell(&cell.places);
    xlazy_core::thread::thread(|t| t.begin_cell());
    crate::insight::cell::begin(cell.cell);
    host::set_running(true);
    sys::children::cell_begins();
    let outcome = match object::load(&cell.object, &cell.symbol) {
        Ok(entry) => outcome::take(catch_unwind(AssertUnwindSafe(|| entry()))),
        Err(message) => Outcome::Failed(Fault { name: "LoadError".into(), message, ..Fault::default() }),
    };
    ended(outcome);
}

/// The cell that ran has come to its end.
fn ended(outcome: Outcome) {
    host::set_running(false);
    sys::no_statement();
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
    if let Some(bundle) = crate::insight::answers() {
        super::show::display(&bundle);
    }
    if let Some(json) = crate::insight::cell::end() {
        link::send(&Tell::Event { kind: "cell".into(), json });
    }
    let vars = store::list();
    *NAMES.lock().unwrap_or_else(PoisonError::into_inner) = vars.iter().map(|v| v.name.clone()).collect();
    // Before it is told: a question that comes after the end belongs to the cell thread again.
    CELLS.fetch_sub(1, Ordering::SeqCst);
    let run = RUN.load(Ordering::SeqCst);
    link::send(&Tell::Done { run, outcome, vars, lost, generator: crate::ops::generator() });
}

fn call(question: Question, args: &str) -> Result<Bundle, Fault> {
    match (store_answer(question), QUESTIONS.get()) {
        (Some(answer), _) => told(answer(args)),
        (None, Some(answer)) => answer(question, args),
        (None, None) => Err(Fault::default()),
    }
}

fn told(answer: crate::Result<Bundle>) -> Result<Bundle, Fault> {
    answer.map_err(|e| Fault { name: "CheckpointError".into(), message: e.to_string(), ..Fault::default() })
}
