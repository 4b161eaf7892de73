//! What could be served by tokio, which nobody asks for, and knows how it was compiled.

/// Of optimisation.
pub const LEVEL: &str = env!("LEVEL");
