//! What is answered while a cell is typed: completion, signatures, documentation, and whether it is complete. Types come
//! from rustc itself (`probe`); what a type has comes from a catalog of std's, the runtime's, the dependencies' and the
//! cells' items.
mod arms;
mod asked;
mod before;
mod bindings;
mod call;
mod catalog;
pub mod complete;
mod crates;
mod cursor;
mod generic;
mod hollow;
pub mod inspect;
mod items;
mod lets;
mod macros;
mod magic;
mod names;
mod page;
mod place;
pub mod probe;
mod repair;
mod runtime;
pub mod scope;
mod sites;
mod source;
mod standard;
mod ty;
pub mod unfinished;
mod words;
mod world;
