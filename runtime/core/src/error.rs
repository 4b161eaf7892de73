//! One error type with named fields: the op, the shapes, what was expected and what to do.
use crate::thread::thread;
use std::panic::Location;

/// Everything the runtime can refuse.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// An op was given operands or attributes it does not take.
    Op { op: &'static str, operands: Vec<String>, message: String },
    /// XLA or the PJRT plugin answered with an error.
    Pjrt { call: &'static str, code: String, message: String },
    /// A worker of the pod has died, or is not heard.
    Pod { message: String },
    /// Something else was asked of the runtime that it cannot do.
    Usage { message: String },
    /// What an op was refused for when the device had run it: told at the op's line, wherever that comes out.
    Late { error: Box<Error>, at: &'static Location<'static>, statement: Option<&'static Location<'static>> },
}

pub type Result<T> = std::result::Result<T, Error>;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Error::Op { op, operands, message } if operands.is_empty() => write!(f, "{op}: {message}"),
            Error::Op { op, operands, message } => write!(f, "{op}({}): {message}", operands.join(", ")),
            Error::Pjrt { call, code, message } => write!(f, "{call} failed ({code}): {message}"),
            Error::Pod { message } | Error::Usage { message } => f.write_str(message),
            Error::Late { error, .. } => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// The panic payload of a failed op: the error, and the line of user code that made it.
#[derive(Clone, Debug)]
pub struct Raised {
    pub error: Error,
    pub at: &'static Location<'static>,
    /// The statement of the cell that ran then.
    pub statement: Option<&'static Location<'static>>,
}

impl Raised {
    /// An error that came out at a line, which is not that of what is told late.
    pub fn of(error: Error, at: &'static Location<'static>, statement: Option<&'static Location<'static>>) -> Raised {
        match error {
            Error::Late { error, at, statement } => Raised { error: *error, at, statement },
            error => Raised { error, at, statement },
        }
    }
}

impl Error {
    /// In the name of the user's call, of which the op that refuses is a part.
    fn of_call(self) -> Error {
        let Error::Op { op, operands, message } = self else { return self };
        let Some(call) = thread(|t| t.take_call()) else { return Error::Op { op, operands, message } };
        let given: Vec<String> = call.operands.iter().map(|t| t.to_string()).collect();
        let message = match given == operands || operands.is_empty() {
            true => message,
            false => format!("{message} (in {op}({}))", operands.join(", ")),
        };
        Error::Op { op: call.op, operands: given, message }
    }

    /// Ends the cell with this error at the caller's line. Unwinds without running the panic hook: nothing is printed.
    #[track_caller]
    pub fn raise(self) -> ! {
        let at = crate::thread::innermost(Location::caller());
        let raised = Raised::of(self.of_call(), at, crate::sys::statement());
        if std::thread::panicking() || !crate::host::running() {
            panic!("{}", raised.error)
        }
        std::panic::resume_unwind(Box::new(raised))
    }
}
