//! The PJRT C API.
