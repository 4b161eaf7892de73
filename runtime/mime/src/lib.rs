//! What a display is made of ([`Bundle`]), how the kernel and its session process talk ([`Frame`]), how both open and write
//! files ([`regular`], [`whole`]), and what they believe of the disk ([`private`]). No dependencies.
mod bundle;
mod codec;
mod count;
mod frame;
pub mod private;
pub mod regular;
pub mod whole;

pub use bundle::{Bundle, Content, Rich, escape_html, prose_html};
pub use count::{count, plural};
pub use frame::{Ask, Fault, Frame, MOST_BYTES, Outcome, RunCell, Tell, Var};
