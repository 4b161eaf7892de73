//! What ops refuse and only the device can tell: positions out of range, integers divided by zero. A program that has such ops
//! gives what it found as one result more, so looking costs no program and no wait of its own: it is looked at where the host waits
//! for a value anyway, and told at the line of the op. `XLAZY_CHECK_INDICES=off` looks for nothing.
use super::cache::Program;
use crate::device::{self, DeviceData};
use crate::emit::{Checked, FINE, GIVEN, Looks};
use crate::ir::{Bodies, Cut, graph};
use crate::options::Numbers;
use crate::pod::Buffer;
use crate::{Error, Result};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::panic::Location;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// Whether anything is looked for.
pub fn are_on() -> bool {
    static ON: LazyLock<bool> = LazyLock::new(|| std::env::var("XLAZY_CHECK_INDICES").as_deref() != Ok("off"));
    *ON
}

/// What one run found, still on the device.
struct Found {
    buffer: Buffer,
    checks: Arc<[Checked]>,
    /// The line of each op in this run, since a program may be that of an earlier cell, and the statement that called it.
    lines: SmallVec<[(&'static Location<'static>, Option<&'static Location<'static>>); 4]>,
}

static OPEN: Mutex<VecDeque<Found>> = Mutex::new(VecDeque::new());

fn open() -> MutexGuard<'static, VecDeque<Found>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program that was started gives this.
pub(super) fn found(cut: &Cut, program: &Program, buffer: Buffer) {
    let g = graph();
    let line = |c: &Checked| {
        let n = g.node(cut.nodes[c.way[0].1 as usize]);
        match Bodies::among(&n.attrs).and_then(|bodies| bodies.step(&c.way[1..])) {
            Some(step) => (step.line, step.statement),
            None => (n.at, n.statement),
        }
    };
    let lines = program.checks.iter().map(line).collect();
    drop(g);
    open().push_back(Found { buffer, checks: program.checks.clone(), lines });
}

/// Barriers that nobody reads behind are looked at this many at a time: a look costs a transfer.
const TOGETHER: usize = 16;

/// As [`refuse_found`], where so much has come together that it is worth its while.
pub(super) fn refuse_many() -> Result<()> {
    let worth = {
        let open = open();
        open.len() >= TOGETHER || open.iter().any(Found::is_waited_for)
    };
    if worth { refuse_found() } else { Ok(()) }
}

/// Refuses what runs that have ended found wrong, the first of them; without waiting for any.
pub fn refuse_found() -> Result<()> {
    loop {
        let Some(next) = ({
            let mut open = open();
            let ended =
                |f: &Found| f.is_waited_for() || f.buffer.ready_event().and_then(|e| e.is_ready()).unwrap_or(true);
            let at = open.iter().position(ended);
            at.and_then(|at| open.remove(at))
        }) else {
            return Ok(());
        };
        next.refuse()?;
    }
}

impl Found {
    /// Whoever looks for numbers wants to be told at once.
    fn is_waited_for(&self) -> bool {
        self.checks.iter().any(|c| matches!(c.looks, Looks::Numbers(_)))
    }

    fn refuse(&self) -> Result<()> {
        let mut bytes = vec![0; 8 * self.checks.len()];
        self.buffer.to_host(&mut bytes)?;
        let (values, _) = bytes.as_chunks::<8>();
        let all = values.iter().map(|v| i64::from_le_bytes(*v)).zip(self.checks.iter().zip(&self.lines));
        for (value, (check, &(at, statement))) in all {
            if value != FINE {
                let message = match &check.looks {
                    Looks::For(why) => why.replace("{}", &value.to_string()),
                    Looks::Numbers(numbers) => number(*numbers, value),
                };
                let error = Box::new(Error::Op { op: check.op, operands: check.operands.clone(), message });
                return Err(Error::Late { error, at, statement });
            }
        }
        Ok(())
    }
}

/// What is said of numbers that no result may have.
fn number(numbers: Numbers, value: i64) -> String {
    let which = match numbers {
        Numbers::Finite => "NaN or infinity",
        Numbers::Any | Numbers::NoNan => "NaN",
    };
    match value {
        GIVEN => format!("it was given {which}: an operand that is data has some (`%nan off` looks for none)"),
        _ => format!("it gave {which}, of operands that have none (`%nan off` looks for none)"),
    }
}

/// Waits for a value.
///
/// Errors: what went wrong in making it, and what ops that ran before it have refused.
pub fn wait(data: &DeviceData) -> Result<()> {
    if let Some(buffer) = &data.buffer {
        device::wait(&buffer.ready_event()?)?;
    }
    refuse_found()
}

/// [`device::download`], and as [`wait`].
pub fn download(data: &DeviceData) -> Result<Vec<u8>> {
    let bytes = device::download(data)?;
    refuse_found()?;
    Ok(bytes)
}
