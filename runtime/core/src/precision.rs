//! How exactly products are computed: an option of the compiler that is part of every program.
use crate::text::Place;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

/// How exactly matrix products and convolutions of float32 are computed on devices that have faster units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    Default,
    High,
    Highest,
}

static MAT_MUL: AtomicU8 = AtomicU8::new(0);
static SET_AT: Mutex<Option<Place>> = Mutex::new(None);

/// What programs are compiled with from now on.
pub fn precision() -> Precision {
    Precision::ALL[MAT_MUL.load(Ordering::Relaxed) as usize]
}

/// Sets it, on behalf of that line.
pub fn set(precision: Precision, at: Place) {
    MAT_MUL.store(precision as u8, Ordering::Relaxed);
    *SET_AT.lock().unwrap_or_else(|p| p.into_inner()) = Some(at);
}

/// The line that set it last.
pub fn set_at() -> Option<Place> {
    *SET_AT.lock().unwrap_or_else(|p| p.into_inner())
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
