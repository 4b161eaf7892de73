//! What is in force: the items of earlier cells, in the groups that they were compiled in, with imports, macros and crates.
use crate::eval::deps::stages::Deps;
use crate::eval::parse::checks::may_bring_any;
use crate::eval::parse::elsewhere::Assumed;
use crate::eval::parse::expand::{EXPORTED, Macro};
use crate::eval::parse::facts::{Member, Owner};
use crate::eval::parse::items::{Item, Space};
use crate::eval::parse::parsed::{Parsed, Use};
use crate::eval::text::scan;
use crate::eval::text::source::{Splice, Tag};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// All that a type depends on, each with a hash of what it says.
pub type Reach = BTreeMap<String, u64>;

/// Items that were compiled together, as one crate.
#[derive(Clone, Debug)]
pub struct Group {
    pub crate_name: String,
    pub object: PathBuf,
    pub items: Vec<Item>,
}

/// Everything that earlier cells defined and that is still in force.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// Shared with all that was in force at other times, which the journal knows of every run.
    pub groups: Vec<Arc<Group>>,
    pub uses: Arc<Vec<Use>>,
    pub macros: Arc<Vec<Macro>>,
    /// What macros of other crates were seen to make.
    pub assumed: Arc<Assumed>,
    /// Crates that `:dep` brought.
    pub deps: Option<Arc<Deps>>,
    /// For every group there ever was: its types, with all that each depends on; without those where that is not decided.
    pub(super) past: Arc<HashMap<String, Arc<BTreeMap<String, Reach>>>>,
    /// What was found of types of earlier groups since the last change.
    pub(super) found: Arc<Mutex<HashMap<String, bool>>>,
}

/// Takes some away; what loses none stays shared.
pub(super) fn retain<T: Clone>(all: &mut Arc<Vec<T>>, keep: impl Fn(&T) -> bool) {
    if !all.iter().all(&keep) {
        Arc::make_mut(all).retain(keep);
    }
}

/// Adds some; where there are none, it stays shared.
pub(super) fn extend<T: Clone>(all: &mut Arc<Vec<T>>, more: Vec<T>) {
    if !more.is_empty() {
        Arc::make_mut(all).extend(more);
    }
}

impl Definitions {
    /// Takes items away. Groups that lose none stay shared.
    pub fn retain_items(&mut self, keep: impl Fn(&Item) -> bool) {
        for g in self.groups.iter_mut().filter(|g| !g.items.iter().all(&keep)) {
            Arc::make_mut(g).items.retain(&keep);
        }
    }

    pub fn items(&self) -> impl Iterator<Item = (&Group, &Item)> {
        self.groups.iter().flat_map(|g| g.items.iter().map(move |i| (&**g, i)))
    }

    fn named(&self, name: &str, space: Space) -> Option<(&Group, &Item)> {
        self.items().find(|(_, i)| i.space.meets(space) && i.names.iter().any(|n| n == name))
    }

    /// A type or module that is in force.
    pub fn type_named(&self, name: &str) -> Option<(&Group, &Item)> {
        self.named(name, Space::TYPES)
    }

    /// A function, constant, static, or struct that is written without braces.
    pub fn value_named(&self, name: &str) -> Option<(&Group, &Item)> {
        self.named(name, Space::VALUES)
    }

    /// Those of the variables that have the name of an item beside which Rust lets none stand. An item that came later would have taken
    /// the variable's place.
    pub fn shadowed<'v>(&self, names: impl Iterator<Item = &'v String>) -> impl Iterator<Item = String> {
        let item = |n: &&String| self.value_named(n).is_some_and(|(_, i)| i.in_patterns && i.cfg.is_empty());
        names.filter(item).cloned()
    }

    /// The same with those groups and macros alone that a text needs which mentions these words: what they are linked to comes with them.
    /// An `impl` stands beside its type or its trait, and a trait is needed where one of its methods is named.
    pub fn only(&self, mut words: BTreeSet<String>) -> Definitions {
        // Imports are written anew in every crate.
        words.extend(self.uses.iter().flat_map(|u| scan::mentions(&u.text)));
        let mut macros: Vec<&Macro> = self.macros.iter().collect();
        while let Some(at) = macros.iter().position(|m| words.contains(&m.name)) {
            words.extend(macros.swap_remove(at).mentions.iter().cloned());
        }
        let in_trait = |m: &Member| m.owner == Owner::Trait && m.name.as_ref().is_some_and(|name| words.contains(name));
        let needed = |i: &Item| {
            let nameless = i.header.is_none() && i.names.iter().all(|name| name == "_");
            nameless
                || i.facts.makes_more
                || i.names.iter().any(|name| words.contains(name))
                || i.facts.members.iter().any(|m| m.owner == Owner::MadeInside || in_trait(m))
        };
        let unused: BTreeSet<String> = macros.iter().map(|m| m.name.clone()).collect();
        let mut only = self.clone();
        retain(&mut only.macros, |m| !unused.contains(&m.name));
        only.groups.retain(|g| words.contains(&g.crate_name) || g.items.iter().any(needed));
        only
    }

    /// The same beside items of which one may export a macro that is there, too: a crate exports it once.
    pub fn not_exporting<'i>(&self, items: impl Iterator<Item = &'i Item>) -> Definitions {
        let mut beside = self.clone();
        for item in items.filter(|i| i.mentions.contains("macro_rules")) {
            let exported = |m: &Macro| m.text.starts_with(EXPORTED) && item.mentions.contains(&m.name);
            if self.macros.iter().any(exported) {
                let macros = Arc::make_mut(&mut beside.macros).iter_mut();
                macros.filter(|m| exported(m)).for_each(|m| m.text = m.text.replacen(EXPORTED, "", 1));
            }
        }
        beside
    }

    pub fn is_less_than(&self, all: &Definitions) -> bool {
        self.groups.len() < all.groups.len() || self.macros.len() < all.macros.len()
    }

    pub fn crates(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(|g| &*g.crate_name)
    }

    pub fn externs(&self) -> Vec<(String, PathBuf)> {
        self.groups.iter().map(|g| (g.crate_name.clone(), g.object.clone())).collect()
    }

    /// Whether a cell compiled with these is the cell compiled with those.
    pub fn same(&self, other: &Definitions) -> bool {
        let groups = |a: &Arc<Group>, b: &Arc<Group>| a.crate_name == b.crate_name && a.items.len() == b.items.len();
        let deps = match (&self.deps, &other.deps) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        deps && self.groups.len() == other.groups.len()
            && self.groups.iter().zip(&other.groups).all(|(a, b)| Arc::ptr_eq(a, b) || groups(a, b))
            && self.uses == other.uses
            && self.macros == other.macros
    }

    /// Whether this is to stand for a call of one of the runtime's functions, whose name is another's here. Where a glob may bring
    /// such a name, it is, until rustc has said whose it is (`are_ours`).
    pub fn takes(&self, edit: &Splice, parsed: &Parsed, are_ours: bool) -> bool {
        let Tag::Show(name, glob) = edit.tag else { return false };
        let mut all = self.uses.iter().chain(&parsed.uses);
        if !are_ours && (glob || all.any(|u| may_bring_any(&u.binds))) {
            return true;
        }
        let items = parsed.items.iter().flat_map(|i| &i.names);
        let uses = self.uses.iter().chain(&parsed.uses).map(|u| &u.binds);
        self.has(name) || items.chain(uses).chain(parsed.bindings.iter().map(|b| &b.name)).any(|n| n == name)
    }

    /// Whether anything that is in force has this name.
    pub fn has(&self, name: &str) -> bool {
        self.type_named(name).is_some() || self.value_named(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::parse::split::parse;
    use crate::eval::text::source::CellText;

    #[test]
    fn what_does_not_change_is_shared() {
        let group = |cell: u64, text: &str| {
            let parsed = parse(&Arc::new(CellText::new(cell, text)), 0..text.len(), &[]).unwrap();
            Arc::new(Group { crate_name: format!("g_{cell}"), object: "g".into(), items: parsed.items })
        };
        let before = Definitions {
            groups: vec![group(1, "struct A; struct B;"), group(2, "fn f() {}")],
            ..Definitions::default()
        };
        let mut after = before.clone();
        after.retain_items(|i| !i.names.contains(&"A".to_owned()));
        assert!(Arc::ptr_eq(&before.groups[1], &after.groups[1]));
        assert_eq!((before.items().count(), after.items().count()), (3, 2));
    }
}
