//! Options of the compiler that are part of every program (`torch_xla.backends`).
use crate::insight::Place;
use crate::{Error, Result};
use std::panic::Location;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

/// How exactly matrix products and convolutions of float32 are computed on devices that have faster units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Default,
    High,
    Highest,
}

const ALL: [(Precision, &str); 3] =
    [(Precision::Default, "default"), (Precision::High, "high"), (Precision::Highest, "highest")];

static MAT_MUL: AtomicU8 = AtomicU8::new(0);
static SET_AT: Mutex<Option<Place>> = Mutex::new(None);

pub(crate) fn precision() -> Precision {
    ALL[MAT_MUL.load(Ordering::Relaxed) as usize].0
}

impl Precision {
    pub fn name(self) -> &'static str {
        ALL[self as usize].1
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

/// The line that set it last.
pub(crate) fn set_at() -> Option<Place> {
    *SET_AT.lock().unwrap_or_else(|p| p.into_inner())
}

/// Sets how exactly float32 matrix products and convolutions are computed: `"default"` (bfloat16 passes on a TPU), `"high"`
/// or `"highest"` (full float32). It is part of every program: changing it compiles again
/// (`torch_xla.backends.set_mat_mul_precision`; StableHLO: precision_config).
///
/// ```
/// use xlazy::backends;
/// backends::set_mat_mul_precision("highest").unwrap();
/// assert_eq!(backends::get_mat_mul_precision(), "highest");
/// assert!(backends::set_mat_mul_precision("exact").is_err());
/// ```
#[track_caller]
pub fn set_mat_mul_precision(precision: &str) -> Result<()> {
    let Some(i) = ALL.iter().position(|(_, name)| *name == precision) else {
        let message = format!("set_mat_mul_precision takes \"default\", \"high\" or \"highest\", not \"{precision}\"");
        return Err(Error::Usage { message });
    };
    MAT_MUL.store(i as u8, Ordering::Relaxed);
    *SET_AT.lock().unwrap_or_else(|p| p.into_inner()) = Some(Location::caller());
    Ok(())
}

/// What [`set_mat_mul_precision`] set (`torch_xla.backends.get_mat_mul_precision`).
pub fn get_mat_mul_precision() -> &'static str {
    precision().name()
}
