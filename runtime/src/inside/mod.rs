//! Looking inside: values of a program's ops after it has run (`%peek`), the same compared with another run (`%compare`), and a
//! cell's stages one by one (`%%step`).
mod last;
#[doc(hidden)]
pub mod peek;
mod reference;
mod stages;
mod summary;
mod ulps;

pub(crate) use last::parameter_name;
pub use peek::{Peek, peek};
pub(crate) use peek::{ask, keep};
pub(crate) use reference::compare;
pub(crate) use stages::stages;
