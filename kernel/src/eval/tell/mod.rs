//! What the user reads of errors.
mod elsewhere;
pub mod errors;
mod example;
mod numbers;
mod options;
pub mod point;
pub mod retell;
mod stands;
mod subscript;
pub mod texts;
pub mod torch;
mod words;
