//! What the user reads of errors.
pub mod errors;
pub mod point;
pub mod retell;
pub mod texts;
pub mod torch;
mod words;
