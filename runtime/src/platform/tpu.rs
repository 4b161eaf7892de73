//! TPUs, through libtpu.
use super::{Platform, candidates};

pub static TPU: Platform = Platform {
    name: "TPU",
    candidates: || {
        let mut all = candidates("TPU_LIBRARY_PATH", "tpu/libtpu.so");
        all.extend(["/usr/lib/libtpu.so", "/lib/libtpu.so"].map(Into::into));
        all
    },
    options: Vec::new,
    environment: &[],
    remedy: "Set TPU_LIBRARY_PATH to the libtpu.so of the Python package libtpu.",
};
