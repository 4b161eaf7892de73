//! What becomes of the definitions of the cell at hand, whose statements are compiled while their object is still being made: rustc says
//! what others have to know of a crate, its metadata, before it generates code. Where the rest fails after all, the cell is compiled
//! again, one after the other, and told of as it is then.
use crate::eval::text::source::Source;
use crate::eval::toolchain::rustc::{Compiling, Metadata};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

#[derive(Default)]
pub struct Early {
    /// Statements follow, which can begin before the object is there.
    pub wanted: bool,
    pub group: Option<Unmade>,
    /// What statements are compiled against, until they are compiled: the group may be made before rustc opens it.
    pub read: Option<Metadata>,
    pub failed: bool,
}

/// A definition group whose object is being made.
pub struct Unmade {
    pub name: String,
    pub compiling: Box<Compiling>,
    pub links: Vec<String>,
    pub keep: Option<(String, Value)>,
    pub source: Arc<Source>,
}

impl Early {
    pub fn metadata(&self, crate_name: &str) -> Option<&Path> {
        self.read.as_ref().filter(|_| self.group.as_ref().is_some_and(|g| g.name == crate_name)).map(|m| &*m.0)
    }
}
