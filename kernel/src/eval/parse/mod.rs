//! A cell taken apart.
pub mod checks;
pub mod code_facts;
pub mod expand;
mod extents;
pub mod facts;
pub mod finder;
pub mod format_strings;
pub mod hygiene;
pub mod items;
pub mod macros;
pub mod moves;
pub mod parsed;
pub mod places;
pub mod publish;
pub mod segments;
pub mod split;
pub mod statements;
pub mod syntax;
