//! What the user reads of errors.
mod elsewhere;
pub mod errors;
mod numbers;
mod options;
pub mod point;
pub mod retell;
pub mod texts;
pub mod torch;
mod words;
