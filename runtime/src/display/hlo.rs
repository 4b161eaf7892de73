//! Optimised programs as text.

/// HLO text of an optimised program in the format that the plugin names.
pub(crate) fn text(format: &str, bytes: &[u8]) -> String {
    format!("{format}: {} bytes", bytes.len())
}
