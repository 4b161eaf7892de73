//! The objects of definition groups, made or still in the making.
use super::compiler::Compiler;
use super::early::Unmade;
use crate::engine::Failure;
use crate::eval::text::source::Source;
use crate::eval::toolchain::rustc::{self, Compiled, Compiling};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Compiler {
    /// rustc has said what there is to know of a group, and goes on to make its object: where that will be.
    pub(super) fn group_is_known(
        &mut self,
        name: &str,
        mut compiling: Box<Compiling>,
        links: Vec<String>,
        keep: Option<(String, Value)>,
        source: Arc<Source>,
    ) -> PathBuf {
        let (object, metadata) = compiling.makes();
        self.early.read = metadata;
        self.early.group = Some(Unmade { name: name.to_owned(), compiling, links, keep, source });
        object
    }

    /// The object of a group of the same text, with the file's name: what is told of its places is of the cell at hand.
    pub(super) fn made_before(&self, name: &str, source: &Source) -> Option<(PathBuf, Option<String>)> {
        let object = self.objects.get(name)?;
        let id = rustc::id_of(object)?;
        self.remember(id, &Arc::new(source.clone()));
        Some((object.clone(), Some(rustc::file_name(id))))
    }

    /// The object of the cell's definitions is there, or will never be.
    pub(super) fn settle_group(&mut self) {
        let Some(Unmade { name, compiling, links, keep, source }) = self.early.group.take() else { return };
        self.early.failed |= match compiling.object() {
            Compiled::Object(object, alone, warned) => {
                self.say_unused(&warned, &source);
                self.group_is_made(&name, &object, links, keep.filter(|_| alone)).is_err()
            }
            _ => true,
        };
    }

    /// Puts a group's object where cells find it, and into the cache if it may be kept.
    pub(super) fn group_is_made(
        &mut self,
        name: &str,
        object: &Path,
        links: Vec<String>,
        keep: Option<(String, Value)>,
    ) -> Result<(), Failure> {
        self.place_group(name, object, links, |_| Ok(()))?;
        if let Some((key, head)) = keep {
            self.keep(key, head, object.to_owned(), None);
        }
        Ok(())
    }

    pub(super) fn place_group(
        &mut self,
        name: &str,
        object: &Path,
        links: Vec<String>,
        write: impl Fn(&Path) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let placed = write(object).and_then(|()| self.objects.add(name, object, links));
        placed.map_err(|e| self.unwritten(object, &e))
    }
}
