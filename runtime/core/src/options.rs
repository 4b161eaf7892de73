//! What programs are compiled with besides their graphs: how exactly products are computed, and which numbers are looked for.
use crate::text::Place;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};

/// How exactly matrix products and convolutions of float32 are computed on devices that have faster units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    Default,
    High,
    Highest,
}

/// Numbers that no result may have, where they are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    Any,
    NoNan,
    Finite,
}

/// A part of every program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub precision: Precision,
    pub numbers: Numbers,
}

static MAT_MUL: AtomicU8 = AtomicU8::new(0);
static NUMBERS: AtomicU8 = AtomicU8::new(0);
static SET_AT: Mutex<[Option<Place>; 2]> = Mutex::new([None; 2]);

/// What programs are compiled with from now on.
pub fn options() -> Options {
    Options {
        precision: Precision::ALL[MAT_MUL.load(Ordering::Relaxed) as usize],
        numbers: Numbers::ALL[NUMBERS.load(Ordering::Relaxed) as usize],
    }
}

fn places() -> MutexGuard<'static, [Option<Place>; 2]> {
    SET_AT.lock().unwrap_or_else(|p| p.into_inner())
}

/// Sets it, on behalf of that line.
pub fn set_precision(precision: Precision, at: Place) {
    MAT_MUL.store(precision as u8, Ordering::Relaxed);
    places()[0] = Some(at);
}

/// Sets it, on behalf of that line, where a line asks for it.
pub fn set_numbers(numbers: Numbers, at: Option<Place>) {
    NUMBERS.store(numbers as u8, Ordering::Relaxed);
    places()[1] = at;
}

/// The line that set the precision last.
pub fn precision_set_at() -> Option<Place> {
    places()[0]
}

/// The line that set last which numbers are looked for.
pub fn numbers_set_at() -> Option<Place> {
    places()[1]
}

impl Options {
    pub const DEFAULT: Options = Options { precision: Precision::Default, numbers: Numbers::Any };

    /// Both in 8 bits.
    pub fn word(self) -> u64 {
        self.precision as u64 | (self.numbers as u64) << 4
    }
}

impl Numbers {
    pub const ALL: [Numbers; 3] = [Numbers::Any, Numbers::NoNan, Numbers::Finite];

    /// What is looked for.
    pub fn name(self) -> &'static str {
        match self {
            Numbers::Any => "nothing",
            Numbers::NoNan => "NaN",
            Numbers::Finite => "NaN and infinity",
        }
    }
}

impl Precision {
    pub const ALL: [Precision; 3] = [Precision::Default, Precision::High, Precision::Highest];

    /// The name in torch_xla.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Default => "default",
            Precision::High => "high",
            Precision::Highest => "highest",
        }
    }

    /// What StableHLO calls it; nothing for the default.
    pub fn stablehlo(self) -> Option<&'static str> {
        match self {
            Precision::Default => None,
            Precision::High => Some("HIGH"),
            Precision::Highest => Some("HIGHEST"),
        }
    }
}
