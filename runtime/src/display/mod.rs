//! Values and graphs as MIME bundles.
pub(crate) mod hlo;
