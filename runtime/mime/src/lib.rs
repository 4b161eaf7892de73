//! What a display is made of ([`Bundle`]), how the kernel and its session process talk ([`Frame`]), how both open and write
//! files ([`regular`], [`whole`]), what they believe of the disk ([`private`]) and the machine ([`gpu`]), and how both write HTML ([`Table`]), plain
//! text ([`columns()`]) and numbers ([`units`]) for people. Depends on nothing of ours.
mod bundle;
mod codec;
mod columns;
mod frame;
#[doc(hidden)]
pub mod gather;
pub mod gpu;
mod html;
pub mod private;
mod question;
pub mod regular;
pub mod units;
pub mod whole;

pub use bundle::{Bundle, Content, PAGES, Rich};
pub use columns::columns;
pub use frame::{Ask, Fault, Frame, MOST_BYTES, Outcome, RunCell, Tell, Var};
pub use html::{Cell, Table, escape_html, prose_html};
pub use question::Question;
pub use units::{count, plural};
