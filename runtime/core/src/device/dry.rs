//! Dry mode, for tests of what is traced, cut, looked up and explained: no plugin is loaded, nothing is compiled and nothing
//! runs. Values are placeholders of their type; everything else (keys, cache, donations, healing, what a witness is told) is
//! as it always is. A process is dry from before its first program or never: a placeholder is no value for a real device.
use crate::ty::{Scalar, Type};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

static DEVICES: OnceLock<Vec<String>> = OnceLock::new();
static READ: AtomicU64 = AtomicU64::new(0);

/// From now on nothing is compiled or run, and there are as many devices as this.
pub fn go_dry(devices: u8) {
    DEVICES.get_or_init(|| (0..devices.max(1)).map(|i| format!("cpu:{i}")).collect());
}

/// What every number is that is read from now on: 0 at first.
pub fn read_as(number: f64) {
    READ.store(number.to_bits(), Ordering::Relaxed);
}

/// Whether nothing is compiled or run.
pub fn is_dry() -> bool {
    DEVICES.get().is_some()
}

/// The devices that there would be.
pub(super) fn dry_devices() -> Option<&'static [String]> {
    DEVICES.get().map(Vec::as_slice)
}

/// What a read gives.
pub(super) fn bytes(ty: &Type) -> Vec<u8> {
    let number = f64::from_bits(READ.load(Ordering::Relaxed));
    let mut one = Vec::new();
    ty.dtype.write(Scalar::Float(number), &mut one);
    one.repeat(ty.shape.numel())
}
