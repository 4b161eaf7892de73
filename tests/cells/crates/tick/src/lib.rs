//! What the crate `counter` uses and its users need not know.
mod private {
    #[derive(Debug, PartialEq)]
    pub struct Tick(pub u8);
}
pub use private::Tick;
