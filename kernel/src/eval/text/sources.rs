//! The sources that were compiled, by their files.
use super::hash::crate_of;
use super::source::Source;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Sources by the file names that locations carry, and which cell a crate is of. Clones are the same.
#[derive(Clone, Default)]
pub struct Sources(Arc<RwLock<Remembered>>);

#[derive(Default)]
struct Remembered {
    files: HashMap<String, Arc<Source>>,
    crates: HashMap<String, u64>,
    notebook: String,
}

impl Sources {
    /// Of the cells of that notebook.
    pub fn of(notebook: &str) -> Sources {
        Sources(Arc::new(RwLock::new(Remembered { notebook: notebook.to_owned(), ..Remembered::default() })))
    }

    pub fn get(&self, file: &str) -> Option<Arc<Source>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).files.get(file).cloned()
    }

    pub fn insert(&self, file: String, source: Arc<Source>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let name = source.text.split_once("#![crate_name=\"").and_then(|(_, rest)| rest.split('"').next());
        let names = name.map(str::to_owned).into_iter().chain([crate_of(&file)]);
        all.crates.extend(source.last_cell().into_iter().flat_map(|cell| names.clone().map(move |name| (name, cell))));
        all.files.insert(file, source);
    }

    /// The cell of that file has run: what only its compile was about goes.
    pub fn settle(&self, file: &str) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = all.files.get_mut(file) {
            *source = Arc::new(source.settled());
        }
    }

    pub fn all(&self) -> Vec<Arc<Source>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).files.values().cloned().collect()
    }

    /// A crate as paths name one: the notebook, where it has a name, and the cell.
    pub fn crate_in_words(&self, name: &str) -> Option<String> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let cell = format!("cell_{}", all.crates.get(name)?);
        Some(if all.notebook.is_empty() { cell } else { format!("{}::{cell}", all.notebook) })
    }
}
