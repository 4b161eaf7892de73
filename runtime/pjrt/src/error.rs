//! The one error type: which call failed, with which code, and what the plugin said.
use std::fmt;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a plugin, of loading it, or of an argument refused before the plugin saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The C call, such as `PJRT_Client_Compile`.
    pub call: &'static str,
    /// What kind of error.
    pub code: Code,
    /// The plugin's words, or ours.
    pub message: String,
}

impl Error {
    pub(crate) fn new(call: &'static str, code: Code, message: impl Into<String>) -> Error {
        Error { call, code, message: message.into() }
    }

    /// The caller passed something wrong.
    pub(crate) fn argument(call: &'static str, message: impl Into<String>) -> Error {
        Error::new(call, Code::InvalidArgument, message)
    }

    /// The plugin answered something that the C API does not allow.
    pub(crate) fn answer(call: &'static str, message: impl fmt::Display) -> Error {
        Error::new(call, Code::Internal, format!("the plugin's answer breaks the PJRT C API: {message}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} failed ({}): {}", self.call, self.code, self.message)
    }
}

impl std::error::Error for Error {}

macro_rules! codes {
    ($($name:ident = $number:literal $text:literal,)*) => {
        /// The codes of `PJRT_Error_Code`, which are absl's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = concat!("`", $text, "`, ", stringify!($number), ".")] $name,)*
            /// A number that the C API does not name.
            Other(i32),
        }

        impl Code {
            /// Every named code.
            pub const NAMED: &[Code] = &[$(Code::$name),*];

            /// The code of a number of the C API.
            pub fn from_number(number: i32) -> Code {
                match number {
                    $($number => Code::$name,)*
                    other => Code::Other(other),
                }
            }

            /// The number in the C API.
            pub fn number(self) -> i32 {
                match self {
                    $(Code::$name => $number,)*
                    Code::Other(number) => number,
                }
            }
        }

        impl fmt::Display for Code {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                match self {
                    $(Code::$name => f.write_str($text),)*
                    Code::Other(number) => write!(f, "code {number}"),
                }
            }
        }
    };
}

codes! {
    Cancelled = 1 "CANCELLED",
    Unknown = 2 "UNKNOWN",
    InvalidArgument = 3 "INVALID_ARGUMENT",
    DeadlineExceeded = 4 "DEADLINE_EXCEEDED",
    NotFound = 5 "NOT_FOUND",
    AlreadyExists = 6 "ALREADY_EXISTS",
    PermissionDenied = 7 "PERMISSION_DENIED",
    ResourceExhausted = 8 "RESOURCE_EXHAUSTED",
    FailedPrecondition = 9 "FAILED_PRECONDITION",
    Aborted = 10 "ABORTED",
    OutOfRange = 11 "OUT_OF_RANGE",
    Unimplemented = 12 "UNIMPLEMENTED",
    Internal = 13 "INTERNAL",
    Unavailable = 14 "UNAVAILABLE",
    DataLoss = 15 "DATA_LOSS",
    Unauthenticated = 16 "UNAUTHENTICATED",
}
