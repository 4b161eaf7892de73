//! What a cell's items change: what of earlier cells they replace, and what has to be compiled again with them.
use super::definitions::{Definitions, Group, extend, retain};
use super::reach::Index;
use crate::eval::deps::stages::Deps;
use crate::eval::parse::expand::Macro;
use crate::eval::parse::items::{Call, Header, Item, Made};
use crate::eval::parse::parsed::{Parsed, Use};
use crate::eval::parse::split;
use crate::eval::text::scan;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

/// What a cell's items call for.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// The cell's own items need a new group.
    pub needed: bool,
    /// Items of earlier cells that go into the same group.
    pub moved: Vec<Item>,
    /// What is in force besides the new group.
    pub rest: Definitions,
    /// Items that do not compile with the new definitions may be left behind.
    pub may_leave: bool,
    /// Methods that an `impl` had and its new text has not, in words.
    pub without: Vec<String>,
}

impl Definitions {
    /// What the cell's items replace and pull along.
    pub fn change(&self, parsed: &Parsed) -> Change {
        self.changed_by(parsed, true)
    }

    /// The same where imports mean something to this cell and those after it alone: items of earlier cells stay as they are.
    pub fn change_but_for_imports(&self, parsed: &Parsed) -> Change {
        self.changed_by(parsed, false)
    }

    fn changed_by(&self, parsed: &Parsed, imports: bool) -> Change {
        let mut rest = self.clone();
        let binds: BTreeSet<&str> = parsed.items.iter().flat_map(|i| &i.names).map(String::as_str).collect();
        let used: BTreeSet<&str> = parsed.uses.iter().map(|u| u.binds.as_str()).collect();
        retain(&mut rest.uses, |u| !used.contains(u.binds.as_str()) && !parsed.items.iter().any(|i| u.meets(i)));
        let macros: BTreeSet<&str> = parsed.macros.iter().map(|m| m.name.as_str()).collect();
        retain(&mut rest.macros, |m| !macros.contains(m.name.as_str()));
        if !imports {
            rest.retain_items(|i| !parsed.uses.iter().any(|u| u.meets(i)));
        }
        let changed = self.meaning_changed_by(parsed, imports);
        if changed.is_empty() && (parsed.items.is_empty() || self.all_known(parsed)) {
            return Change { rest, ..Change::default() };
        }
        let without = self.items().flat_map(|(_, old)| parsed.items.iter().filter_map(|new| methods_lost(new, old)));
        let mut without: Vec<String> = without.collect();
        let replaced =
            |old: &Item| parsed.items.iter().any(|new| replaces(new, old)) || parsed.uses.iter().any(|u| u.meets(old));
        let mut touched: BTreeSet<String> = self.targets(parsed, &binds);
        touched.extend(changed);
        let redefined = |old: &Item| imports || parsed.items.iter().any(|new| replaces(new, old));
        for (_, old) in self.items().filter(|(_, i)| replaced(i) && redefined(i)) {
            touched.extend(old.names.iter().cloned());
            // Without its old `impl`, the type itself is compiled again.
            touched.extend(old.header.iter().map(|h| h.self_type.clone()).filter(|n| self.type_named(n).is_some()));
        }
        let before = self.items().map(|(_, i)| i).filter(|i| replaced(i) && redefined(i)).flat_map(constants);
        let now = parsed.items.iter().flat_map(constants);
        let (before, now): (BTreeSet<_>, BTreeSet<_>) = (before.collect(), now.collect());
        // Where nothing was replaced, what is new had no other meaning before.
        let others = before.symmetric_difference(&now).filter(|_| !before.is_empty());
        touched.extend(others.map(|(name, ..)| (*name).to_owned()));
        let (mut moved, unfit) = self.made_again(parsed, &mut rest);
        without.extend(unfit);
        for item in &moved {
            touched.extend(item.names.iter().cloned());
            touched.extend(item.header.as_ref().and_then(|h| self.beside(h)));
        }
        // A group of which all is imported would go on to give what a macro made there of an item that is replaced.
        let gives_more = |g: &&Arc<Group>| g.items.iter().any(|i| i.facts.makes_more && replaced(i) && redefined(i));
        for item in self.groups.iter().filter(gives_more).flat_map(|g| &g.items).filter(|i| !replaced(i)) {
            touched.extend(item.names.iter().cloned());
            rest.retain_items(|i| !same(i, item));
            moved.push(item.clone());
        }
        // An item that names something of the new group is compiled with it, and so on until nothing more is touched.
        loop {
            // What a macro or an import mentions is mentioned by whoever mentions the macro or the import.
            let macros = self.macros.iter().filter(|m| !m.mentions.is_disjoint(&touched)).map(|m| &m.name);
            let through = |u: &&Use| scan::mentions(&u.text).iter().any(|m| touched.contains(m));
            let uses = self.uses.iter().filter(through).map(|u| &u.binds);
            let more: Vec<String> = macros.chain(uses).filter(|n| !touched.contains(*n)).cloned().collect();
            touched.extend(more);
            let next = rest.items().map(|(_, i)| i).find(|i| {
                !replaced(i)
                    && (i.names.iter().any(|n| touched.contains(n)) || i.mentions.iter().any(|m| touched.contains(m)))
            });
            let Some(next) = next.cloned() else { break };
            touched.extend(next.names.iter().cloned());
            rest.retain_items(|i| !same(i, &next));
            // An `impl` stands beside its type or its trait.
            touched.extend(next.header.as_ref().and_then(|h| self.beside(h)));
            let other = constants(&next).filter(|(.., text)| !scan::mentions(text).is_disjoint(&touched));
            let other: Vec<String> = other.map(|(name, ..)| name.to_owned()).collect();
            touched.extend(other);
            moved.push(next);
        }
        moved.retain(|i| !replaced(i));
        moved.sort_by_key(|i| (i.source.cell, i.range.start));
        rest.retain_items(|i| !replaced(i));
        rest.groups.retain(|g| !g.items.is_empty());
        Change { needed: !parsed.items.is_empty() || !moved.is_empty(), moved, rest, may_leave: true, without }
    }

    /// What earlier calls of macros make now that the macros are others, which takes the place of what is in `rest`; and in
    /// words, which of them fit no more.
    fn made_again(&self, parsed: &Parsed, rest: &mut Definitions) -> (Vec<Item>, Vec<String>) {
        let changed = |m: &&Macro| self.macros.iter().any(|old| old.name == m.name && old.text != m.text);
        let changed: BTreeSet<String> = parsed.macros.iter().filter(changed).map(|m| m.name.clone()).collect();
        let mut calls: Vec<Arc<Call>> = Vec::new();
        for call in self.items().filter_map(|(_, i)| i.call.as_ref()) {
            if !call.macros.is_disjoint(&changed) && !calls.iter().any(|c| Arc::ptr_eq(c, call)) {
                calls.push(call.clone());
            }
        }
        let macros: Vec<Macro> = rest.macros.iter().chain(&parsed.macros).cloned().collect();
        let (mut out, mut unfit): (Vec<Item>, Vec<String>) = Default::default();
        for call in calls {
            let Some(again) = split::made_by(&call, &macros, &self.assumed) else {
                unfit.push(format!("{} fits no rule any more: what it made stays as it was", call.in_words()));
                continue;
            };
            let of_call = |i: &Item| i.call.as_ref().is_some_and(|c| Arc::ptr_eq(c, &call));
            rest.retain_items(|i| !of_call(i));
            let taken = |new: &Item| rest.items().any(|(_, old)| replaces(new, old));
            out.extend(again.items.into_iter().filter(|i| !taken(i)));
            retain(&mut rest.uses, |u| !again.uses.iter().any(|new| new.binds == u.binds));
            extend(&mut rest.uses, again.uses);
            retain(&mut rest.macros, |m| !again.macros.iter().any(|new| new.name == m.name));
            extend(&mut rest.macros, again.macros);
        }
        (out, unfit)
    }

    /// Names of macros and imports that stand for something else from this cell on: what mentions them follows.
    fn meaning_changed_by(&self, parsed: &Parsed, imports: bool) -> Vec<String> {
        let other_macro = |m: &&Macro| self.macros.iter().any(|old| old.name == m.name && old.text != m.text);
        let other_use = |u: &&Use| {
            self.uses.iter().any(|old| old.binds == u.binds && old.text != u.text)
                || self.items().any(|(_, old)| u.meets(old))
        };
        let macros = parsed.macros.iter().filter(other_macro).map(|m| m.name.clone());
        let uses = parsed.uses.iter().filter(|u| imports && other_use(u)).map(|u| u.binds.clone());
        // An item in the place of an import.
        let replaced = self.uses.iter().filter(|u| parsed.items.iter().any(|i| u.meets(i))).map(|u| u.binds.clone());
        macros.chain(uses).chain(replaced).collect()
    }

    /// Whether a cell defines again what is in force.
    pub fn redefined_by(&self, parsed: &Parsed) -> bool {
        self.items().any(|(_, old)| parsed.items.iter().any(|new| replaces(new, old)))
    }

    /// All items in one new group, as other dependencies make it necessary: what was linked to those of before cannot
    /// be linked beside the new ones.
    pub fn regroup(&self, deps: Arc<Deps>) -> Change {
        let mut moved: Vec<Item> = self.items().map(|(_, i)| i.clone()).collect();
        moved.sort_by_key(|i| (i.source.cell, i.range.start));
        let linked = self.deps.is_some();
        let mut rest = Definitions { deps: Some(deps), ..self.clone() };
        if linked {
            rest.groups.clear();
        } else {
            moved.clear();
        }
        Change { needed: !moved.is_empty(), moved, rest, ..Change::default() }
    }

    /// The very same items are in force already.
    fn all_known(&self, parsed: &Parsed) -> bool {
        parsed.items.iter().all(|new| self.items().any(|(_, old)| old.names == new.names && old.text() == new.text()))
            && parsed.macros.iter().all(|m| self.macros.contains(m))
            && parsed.uses.iter().all(|u| self.uses.contains(u))
    }

    /// Items of earlier cells that must share a crate with an `impl` of this cell: rustc allows an `impl` only beside
    /// its type or its trait.
    fn targets(&self, parsed: &Parsed, own: &BTreeSet<&str>) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        for header in parsed.items.iter().filter_map(|i| i.header.as_ref()) {
            let local_trait = header.of_trait.as_ref().is_some_and(|t| own.contains(t.as_str()));
            if local_trait || own.contains(header.self_type.as_str()) {
                continue;
            }
            out.extend(self.beside(header));
        }
        let beside = parsed.items.iter().filter_map(|i| i.made.as_ref()).flat_map(|m| &m.beside);
        let mentioned = beside.filter(|n| !own.contains(n.as_str()));
        out.extend(mentioned.filter(|n| self.type_named(n).is_some()).cloned());
        out
    }

    /// What of earlier cells an `impl` must share a crate with.
    fn beside(&self, header: &Header) -> Option<String> {
        let candidates = [Some(&header.self_type), header.of_trait.as_ref()].into_iter().flatten();
        candidates.chain(&header.mentions).find(|n| self.type_named(n).is_some()).cloned()
    }

    /// Puts the new group in force, with the cell's `use`s and macros.
    pub fn commit(mut self, group: Option<Group>, parsed: &Parsed) -> Definitions {
        let changes = group.is_some() || !parsed.uses.is_empty() || !parsed.macros.is_empty();
        self.groups.extend(group.map(Arc::new));
        extend(&mut self.uses, parsed.uses.clone());
        extend(&mut self.macros, parsed.macros.clone());
        // Most cells define nothing: all that there is need not be looked through for them.
        if !changes && self.groups.iter().all(|g| self.past.contains_key(&g.crate_name)) {
            return self;
        }
        let index = Index::new(&self);
        // As it was when it was compiled: later changes take items away from it.
        let new = self.groups.iter().filter(|g| !self.past.contains_key(&g.crate_name));
        let reaches = |g: &Arc<Group>| {
            let names = g.items.iter().filter(|i| i.is_type || i.space.types).flat_map(|i| &i.names);
            let reach = names.filter_map(|n| Some((n.clone(), index.reach(n, None)?)));
            (g.crate_name.clone(), Arc::new(reach.collect()))
        };
        let new: Vec<_> = new.map(reaches).collect();
        if !new.is_empty() {
            Arc::make_mut(&mut self.past).extend(new);
        }
        self.found = Arc::default();
        self
    }

    /// How a type of a definition group is written now, and whether it was compiled anew since; `None` when its
    /// definition is another one today.
    pub fn current_path(&self, crate_name: &str, path: &str) -> Option<(String, bool)> {
        let name = path.split("::").next().unwrap_or(path);
        let Some((group, _)) = self.type_named(name) else {
            // What a macro of another crate has made of an item there.
            let makes = |g: &&Arc<Group>| g.crate_name == crate_name && g.items.iter().any(|i| i.facts.makes_more);
            return self.groups.iter().find(makes).map(|_| (format!("::{crate_name}::{path}"), false));
        };
        if group.crate_name == crate_name {
            return Some((format!("::{crate_name}::{path}"), false));
        }
        let was = self.past.get(crate_name)?.get(name)?;
        let same = || Index::new(self).still(name, was);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let same = *found.entry(format!("{crate_name}::{name}")).or_insert_with(same);
        drop(found);
        same.then(|| (format!("::{}::{path}", group.crate_name), true))
    }
}

/// Constants of `impl`s and traits: what mentions one need not mention either, as in `u8::SIZE`. Each with whose it is and
/// with its text.
fn constants(item: &Item) -> impl Iterator<Item = (&str, &str, &str)> {
    let members = item.facts.members.iter().filter(|m| m.constant);
    members.filter_map(|m| Some((m.name.as_deref()?, &*m.of, &*m.text)))
}

fn same(a: &Item, b: &Item) -> bool {
    std::sync::Arc::ptr_eq(&a.source, &b.source) && a.range == b.range
}

/// What of an inherent `impl` of another cell is gone when a new one takes its place, in words.
fn methods_lost(new: &Item, old: &Item) -> Option<String> {
    let (header, before) = (new.header.as_ref()?, old.header.as_ref()?);
    if header.of_trait.is_some() || !replaces(new, old) {
        return None;
    }
    let gone: Vec<String> = before.members.difference(&header.members).map(|m| format!("`{m}`")).collect();
    let (ty, cell) = (&before.self_type, old.source.label());
    (!gone.is_empty()).then(|| {
        let (gone, them) = (gone.join(", "), if gone.len() == 1 { "it" } else { "them" });
        format!("this `impl {ty}` takes the place of that of {cell}, which had {gone}, too: to keep {them}, write {them} here")
    })
}

/// Whether a new item takes the place of an old one.
fn replaces(new: &Item, old: &Item) -> bool {
    match (&new.header, &old.header) {
        (Some(new), Some(old)) => {
            new.text == old.text && (new.of_trait.is_some() || !new.members.is_disjoint(&old.members))
        }
        (None, None) => {
            let same = |(new, old): (&Made, &Made)| {
                let others = !new.methods.is_empty() && new.methods.is_disjoint(&old.methods);
                new.by == old.by && !others
            };
            let nameless = new.names.is_empty() && old.names.is_empty();
            let same_call = || nameless && new.made.as_ref().zip(old.made.as_ref()).is_some_and(same);
            new.space.meets(old.space) && (new.names.iter().any(|n| old.names.contains(n)) || same_call())
        }
        _ => false,
    }
}
