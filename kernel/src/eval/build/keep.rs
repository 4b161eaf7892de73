//! What the cache of cells has of a cell, and what it is given.
use super::cache::Entry;
use super::compile::Ready;
use super::compiler::{Compiler, Unkept};
use crate::eval::generate::code::{self as generate, Plan};
use crate::trouble;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread::JoinHandle;

impl Compiler {
    /// What the cache has, once what is being put there has arrived.
    pub(super) fn cached(&mut self, key: &str) -> Option<(Entry, Plan, String)> {
        self.settle();
        let entry = self.cache.get(key)?;
        let plan = Plan::from_json(&entry.head)?;
        let id = entry.head.get("id")?.as_str()?.to_owned();
        // It becomes part of a file's name.
        let plain = id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        plain.then_some((entry, plan, id))
    }

    /// What is being kept is kept.
    pub fn settle(&mut self) {
        let Some(Ok(Err(e))) = self.keeping.take().map(JoinHandle::join) else { return };
        if let (Unkept::Nothing, Some(dir)) = (&self.unkept, self.cache.dir()) {
            let why = trouble::with_advice(&e.to_string(), dir, "XLAZY_CACHE");
            let text = format!("note: compiled cells are not kept: {why}; XLAZY_CELL_CACHE=off is without them\n");
            self.unkept = Unkept::Note(text);
        }
    }

    /// What there is to say about definitions, or else about the cache.
    pub fn note(&mut self) -> Option<String> {
        let notes: String = self.notes.drain(..).map(|note| format!("note: {note}\n")).collect();
        if !notes.is_empty() {
            return Some(notes);
        }
        match &mut self.unkept {
            Unkept::Note(text) => {
                let text = std::mem::take(text);
                self.unkept = Unkept::Said;
                Some(text)
            }
            Unkept::Nothing | Unkept::Said => None,
        }
    }

    /// The cell has run: its object goes, into the cache if it may be kept.
    pub fn finished(&mut self, ready: &Ready) {
        self.sources.settle(&ready.file);
        ready.group_file.iter().for_each(|file| self.sources.settle(file));
        let Some(object) = ready.object.clone() else { return };
        if self.opt_level == 0
            && let Some(source) = self.sources.get(&ready.file)
        {
            let (needs, groups) = (self.needs(&ready.links), self.linked(ready.links.crates()));
            self.warmer.lend(&ready.file, &source.text, &object, needs, groups);
        }
        match ready.keep.clone() {
            None => drop(std::fs::remove_file(object)),
            Some((key, head)) => {
                let links = self.objects.behind(ready.links.crates());
                self.keep(key, head, object, Some(links));
            }
        }
    }

    /// The cell's statements are kept if they are linked to nothing but `links`; then the object goes.
    pub(super) fn keep(&mut self, key: String, head: Value, object: PathBuf, links: Option<BTreeSet<String>>) {
        self.settle();
        let cache = self.cache.clone();
        let work = move || {
            // It is gone only with the folder, and that says nothing about the cache.
            let bytes = std::fs::read(&object).ok();
            // rustc may have taken an instance of a generic function from a group that it had read ahead.
            let alone =
                |bytes: &Vec<u8>| links.as_ref().is_none_or(|links| generate::groups_in(bytes).is_subset(links));
            let bytes = bytes.filter(alone);
            let kept = bytes.map_or(Ok(()), |bytes| cache.put(&key, &Entry { head, object: bytes }));
            if links.is_some() {
                let _ = std::fs::remove_file(&object);
            }
            kept
        };
        self.keeping = std::thread::Builder::new().name("xlazy-cache".into()).spawn(work).ok();
    }
}
