//! What the user reads of errors.
pub mod asked;
mod call;
mod elsewhere;
pub mod errors;
mod example;
mod literals;
mod numbers;
mod options;
pub mod point;
pub mod retell;
pub mod signatures;
mod stands;
mod subscript;
mod table;
pub mod texts;
mod there;
pub mod torch;
mod words;
