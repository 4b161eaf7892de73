//! Options of the compiler that are part of every program (`torch_xla.backends`).
use crate::{Error, Result};
use std::panic::Location;
use xlazy_core::options::{Numbers, Precision, options, set_numbers, set_precision};

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
    set_precision(chosen, Location::caller());
    Ok(())
}

/// What [`set_mat_mul_precision`] set (`torch_xla.backends.get_mat_mul_precision`).
pub fn get_mat_mul_precision() -> &'static str {
    options().precision.name()
}

/// Has every program look for NaN in what its ops give: the first op that gives some is refused at its line where the host waits
/// (`torch.autograd.set_detect_anomaly`, but for all ops; `%nan on`). Each program is compiled once more for it.
///
/// ```
/// use xlazy::{Tensor, backends};
/// backends::set_detect_anomaly(true);
/// let x = Tensor::from_vec(vec![4.0f32], [1]);
/// assert_eq!(x.sqrt().item(), 2.0);
/// backends::set_detect_anomaly(false);
/// ```
#[track_caller]
pub fn set_detect_anomaly(on: bool) {
    set_numbers(if on { Numbers::NoNan } else { Numbers::Any }, Some(Location::caller()));
}

/// Has each op run as it is recorded, as a program of its own, or no longer (`torch_xla.experimental.eager_mode`; `%eager on`): what
/// is pending is run with the first of them. To see what lazy tensors save; loops and branches on the device stay one op.
///
/// ```
/// use xlazy::{backends, insight, Tensor};
/// backends::set_eager(true);
/// let before = insight::events().len();
/// let y = (Tensor::ones([2]) * 2.0).sum();
/// assert!(insight::events().len() >= before + 3);
/// backends::set_eager(false);
/// # assert_eq!(y.item(), 4.0);
/// ```
pub fn set_eager(on: bool) {
    xlazy_core::run::set_eager(on);
}

/// Whether each op runs as it is recorded.
pub fn is_eager() -> bool {
    xlazy_core::run::is_eager()
}
