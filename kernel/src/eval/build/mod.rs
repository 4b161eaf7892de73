//! From a cell to an object that the session can load.
pub mod again;
pub mod blame;
pub mod cache;
pub mod compile;
pub mod compiler;
pub mod edition;
pub mod imports;
mod makers;
mod nameless;
pub mod objects;
mod otherwise;
pub mod paths;
pub mod refused;
pub mod replan;
mod shadows;
pub mod warm;
