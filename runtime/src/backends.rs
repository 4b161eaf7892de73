//! Options of the compiler that are part of every program (`torch_xla.backends`).
use crate::{Error, Result};
use std::panic::Location;
use xlazy_core::precision::{self, Precision};

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
    let Some(chosen) = Precision::ALL.into_iter().find(|p| p.name() == precision) else {
        let message = format!("set_mat_mul_precision takes \"default\", \"high\" or \"highest\", not \"{precision}\"");
        return Err(Error::Usage { message });
    };
    precision::set(chosen, Location::caller());
    Ok(())
}

/// What [`set_mat_mul_precision`] set (`torch_xla.backends.get_mat_mul_precision`).
pub fn get_mat_mul_precision() -> &'static str {
    precision::precision().name()
}
