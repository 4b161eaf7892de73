//! All catalogs at once, with what a cell has in scope: what a path leads to, and what a type has.
use super::catalog::{Catalog, Entry, Head, Impl, Kind, Member, TypeDef};
use super::generic::Parameters;
use super::standard;
use super::ty::{Bindings, Ty, bounds, last};
use super::words::{PRELUDE, PRIMITIVES};
use crate::eval::text::scan::{Kind as Token, tokens};
use std::collections::HashSet;
use std::sync::Arc;

/// How often `Deref` and references are followed, and how deep bounds are looked at.
const DEEPEST: usize = 8;

pub struct World {
    /// The nearest first: what the cell says itself, earlier cells, std, the runtime, dependencies.
    pub layers: Vec<Arc<Catalog>>,
    /// Names with the paths that they were imported from; later ones are nearer.
    pub imports: Vec<(String, String)>,
    /// Modules all of whose names are in scope.
    pub globs: Vec<String>,
    pub crates: Vec<String>,
    /// Type parameters where the cursor is.
    pub parameters: Parameters,
}

/// What a path leads to.
#[derive(Clone, Debug)]
pub enum Found {
    Module(String),
    Type(String),
    /// A function, constant, macro, with its entry.
    Item(Entry),
    /// What a type or a trait has.
    Member(String, Member),
}

/// Something that a value has.
#[derive(Clone, Debug)]
pub struct Having {
    pub member: Member,
    /// How often it was dereferenced on the way.
    pub step: usize,
    /// The type or the trait whose it is.
    pub owner: String,
    pub of_trait: bool,
}

impl World {
    pub fn def(&self, path: &str) -> Option<&TypeDef> {
        self.layers.iter().find_map(|l| l.types.get(path))
    }

    /// A type as rustc prints it: by its path, by one that leads to it, or by its name alone where that is unique.
    pub fn type_at(&self, printed: &str) -> Option<&TypeDef> {
        if let Some(def) = self.def(printed) {
            return Some(def);
        }
        let first = printed.split("::").next().unwrap_or_default();
        if first.starts_with("g_") || first.starts_with("cell") || first.starts_with("xlazy_") {
            return self.type_at(printed.split_once("::")?.1);
        }
        if printed.contains("::") {
            let there = self.leads_to(printed, 0).and_then(|path| self.def(&path));
            return there.or_else(|| self.elsewhere_in(first, last(printed)));
        }
        let of = |l: &Arc<Catalog>| l.named.get(printed).and_then(|paths| paths.first().cloned());
        if let Some((_, path)) = self.imports.iter().rev().find(|(name, _)| name == printed) {
            return self.type_at(path);
        }
        let known = self.layers.iter().find_map(of);
        known.or_else(|| self.renamed(printed)).and_then(|path| self.def(&path))
    }

    /// What a module has under another name: rustc prints the one that all can see.
    fn renamed(&self, name: &str) -> Option<String> {
        let entries = self.layers.iter().flat_map(|l| l.modules.values()).flat_map(|m| &m.entries);
        let elsewhere =
            entries.filter(|e| e.name == name && e.kind != Kind::Macro).filter_map(|e| e.elsewhere.as_ref());
        elsewhere.filter_map(|path| self.leads_to(path, 0)).filter(|path| self.def(path).is_some()).min()
    }

    /// The one type of that name in a crate: rustc may print where it is defined, which nobody else can name.
    fn elsewhere_in(&self, of_crate: &str, name: &str) -> Option<&TypeDef> {
        let inside = |p: &&String| p.strip_prefix(of_crate).is_some_and(|rest| rest.starts_with("::"));
        let mut paths = self.layers.iter().filter_map(|l| l.named.get(name)).flatten().filter(inside);
        let path = paths.next()?;
        paths.all(|other| other == path).then(|| self.def(path)).flatten()
    }

    /// The path under which something is defined, through re-exports.
    fn leads_to(&self, path: &str, depth: usize) -> Option<String> {
        if depth > DEEPEST {
            return None;
        }
        if self.layers.iter().any(|l| l.types.contains_key(path) || l.modules.contains_key(path)) {
            return Some(path.to_owned());
        }
        let (parent, name) = path.rsplit_once("::")?;
        let parent = self.leads_to(parent, depth + 1)?;
        match self.entries(&parent).into_iter().find(|e| e.name == name) {
            Some(Entry { elsewhere: Some(path), .. }) => self.leads_to(&path, depth + 1),
            Some(_) => Some(format!("{parent}::{name}")),
            None if self.def(&parent).is_some() => Some(format!("{parent}::{name}")),
            None => None,
        }
    }

    /// What a module has, with what its globs bring.
    pub fn entries(&self, module: &str) -> Vec<Entry> {
        let (mut out, mut seen): (Vec<Entry>, HashSet<(String, bool)>) = Default::default();
        let mut modules = vec![module.to_owned()];
        let mut at = 0;
        while at < modules.len() && at < 60 {
            let path = modules[at].clone();
            for found in self.layers.iter().filter_map(|l| l.modules.get(&path)) {
                for e in &found.entries {
                    if seen.insert((e.name.clone(), e.kind == Kind::Macro)) {
                        // Names that are found through a glob are defined where it leads.
                        let elsewhere = e.elsewhere.clone().or_else(|| (at > 0).then(|| format!("{path}::{}", e.name)));
                        out.push(Entry { elsewhere, ..e.clone() });
                    }
                }
                modules.extend(found.globs.iter().filter(|g| !modules.contains(g)).cloned().collect::<Vec<_>>());
            }
            // A glob over an enum brings its variants.
            if let Some(def) = self.def(&path).filter(|d| d.kind == Kind::Enum) {
                out.extend(def.members.iter().map(|m| as_entry(&path, m)));
            }
            at += 1;
        }
        out
    }

    /// The same with kind and signature of what is defined elsewhere.
    pub fn shown(&self, entry: Entry) -> Entry {
        let Some(path) = entry.elsewhere.clone() else { return entry };
        match self.follow(&path, 0) {
            Some(Found::Module(_)) => Entry { kind: Kind::Module, ..entry },
            Some(Found::Type(path)) => {
                let def = self.def(&path);
                let (kind, signature) = def.map_or((Kind::Struct, String::new()), |d| (d.kind, d.text.clone()));
                Entry { kind, signature, ..entry }
            }
            Some(Found::Item(e)) => Entry { kind: e.kind, signature: e.signature, doc: e.doc, ..entry },
            Some(Found::Member(_, m)) => Entry { kind: m.kind, signature: m.signature, doc: m.doc, ..entry },
            // Nothing is known of it, not even what it is.
            None => Entry { kind: Kind::Type, ..entry },
        }
    }

    fn follow(&self, path: &str, depth: usize) -> Option<Found> {
        if depth > DEEPEST {
            return None;
        }
        if self.def(path).is_some() {
            return Some(Found::Type(path.to_owned()));
        }
        if self.layers.iter().any(|l| l.modules.contains_key(path)) {
            return Some(Found::Module(path.to_owned()));
        }
        let (parent, name) = path.rsplit_once("::").unwrap_or(("", path));
        let inside = match self.follow_parent(parent, depth)? {
            Found::Module(module) => {
                // A module and a macro may have the same name.
                let all: Vec<Entry> = self.entries(&module).into_iter().filter(|e| e.name == name).collect();
                let entry = all.iter().find(|e| e.kind != Kind::Macro).or(all.first())?.clone();
                return match &entry.elsewhere {
                    Some(path) if *path != format!("{module}::{name}") => {
                        let own = || Some(Found::Item(entry.clone())).filter(|_| entry.kind != Kind::Module);
                        self.follow(path, depth + 1).or_else(own)
                    }
                    _ => {
                        let whole = if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") };
                        let other = if whole == path { None } else { self.follow(&whole, depth + 1) };
                        other.or(Some(Found::Item(entry)))
                    }
                };
            }
            Found::Type(ty) => ty,
            Found::Item(_) | Found::Member(..) => return None,
        };
        let member = self.associated(&inside).into_iter().find(|h| h.member.name == name)?.member;
        Some(Found::Member(inside, member))
    }

    pub(super) fn follow_parent(&self, parent: &str, depth: usize) -> Option<Found> {
        if parent.is_empty() { Some(Found::Module(String::new())) } else { self.follow(parent, depth + 1) }
    }

    /// What a path leads to that is written in a cell.
    pub fn find(&self, path: &[String]) -> Option<Found> {
        let (first, rest) = path.split_first()?;
        let rest = rest.iter().map(|s| format!("::{s}")).collect::<String>();
        self.roots(first).into_iter().find_map(|root| self.follow(&format!("{root}{rest}"), 0))
    }

    /// What the first word of a path may be, the nearest first.
    pub(super) fn roots(&self, name: &str) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        if self.entries("").iter().any(|e| e.name == name) {
            out.push(name.to_owned());
        }
        out.extend(self.imports.iter().rev().filter(|(n, _)| n == name).map(|(_, path)| path.clone()));
        let of_glob = |g: &&String| self.entries(g).iter().any(|e| e.name == name);
        out.extend(self.globs.iter().filter(of_glob).map(|g| format!("{g}::{name}")));
        out.extend(PRELUDE.iter().filter(|p| last(p) == name).map(|p| (*p).to_owned()));
        if self.crates.iter().any(|c| c == name) {
            out.push(name.to_owned());
        }
        if self.entries("std").iter().any(|e| e.name == name && e.kind == Kind::Macro) {
            out.push(format!("std::{name}"));
        }
        // Slices and pointers have pages as well, but no names.
        out.extend(PRIMITIVES.contains(&name).then(|| format!("primitive::{name}")));
        out
    }

    /// The fields of the struct or of the variant that a path leads to, numbers where they have no names.
    pub fn fields_of(&self, path: &[String]) -> Vec<Member> {
        let of = |def: &TypeDef| def.members.iter().filter(|m| m.kind == Kind::Field).cloned().collect();
        match self.find(path) {
            Some(Found::Type(path)) => {
                let def = self.def(&path);
                def.and_then(|d| d.target.as_ref()).and_then(|t| self.type_of(t)).or(def).map(of).unwrap_or_default()
            }
            Some(Found::Member(_, variant)) => variant.fields(),
            _ => Vec::new(),
        }
    }

    /// What a type's path can be followed by: variants, functions, constants, methods.
    pub fn associated(&self, path: &str) -> Vec<Having> {
        let Some(def) = self.def(path) else { return Vec::new() };
        if let Some(target) = &def.target {
            let target = target.head().and_then(|_| self.type_of(target)).map(|d| d.path.clone());
            return target.filter(|t| t != path).map(|t| self.associated(&t)).unwrap_or_default();
        }
        let having = |m: &Member, owner: &str, of_trait| Having {
            member: m.clone(),
            step: 0,
            owner: owner.to_owned(),
            of_trait,
        };
        let own = def
            .members
            .iter()
            .filter(|m| m.kind != Kind::Field)
            .map(|m| having(m, last(path), def.kind == Kind::Trait));
        let mut out: Vec<Having> = own.collect();
        if def.kind == Kind::Trait {
            return out;
        }
        let key = last(path);
        let blocks = self.layers.iter().filter_map(|l| l.impls.get(key)).flatten().filter(|i| is_of(i, def));
        let mut of_traits = Vec::new();
        for block in blocks {
            match block.head().and_then(|h| h.of_trait.as_deref()) {
                None => out.extend(block.members.iter().map(|m| having(m, key, false))),
                Some(of_trait) if self.in_scope(of_trait) => {
                    let members = self.trait_def(of_trait).map(|t| t.members.clone()).unwrap_or_default();
                    of_traits.extend(members.iter().map(|m| having(m, of_trait, true)));
                }
                Some(_) => {}
            }
        }
        out.extend(of_traits);
        unique(out)
    }

    /// The definition behind a type.
    pub fn type_of(&self, ty: &Ty) -> Option<&TypeDef> {
        match ty {
            Ty::Path(path, _) if path.contains("::") => self.type_at(path),
            Ty::Path(path, _) => self.type_at(path).or_else(|| self.def(&format!("primitive::{path}"))),
            _ => self.def(&format!("primitive::{}", ty.head()?)),
        }
    }

    /// What a value of that type has: fields, methods, methods of traits, its own before those of what it derefs to.
    pub fn having(&self, ty: &Ty) -> Vec<Having> {
        let mut out = Vec::new();
        let mut at = ty.clone();
        for step in 0..DEEPEST {
            at = self.defined(at);
            self.add_step(&at, step, &mut out);
            match self.deref(&at) {
                Some(next) => at = next,
                None => break,
            }
        }
        unique(out)
    }

    /// The type by the name that it is defined under, which its `impl` blocks have.
    fn defined(&self, ty: Ty) -> Ty {
        let def = self.type_of(&ty).filter(|d| d.kind != Kind::Primitive && d.target.is_none());
        match (&ty, def) {
            (Ty::Path(path, args), Some(def)) if last(path) != last(&def.path) => {
                Ty::Path(def.path.clone(), args.clone())
            }
            _ => ty,
        }
    }

    fn deref(&self, ty: &Ty) -> Option<Ty> {
        match ty {
            Ty::Ref(_, t) => return Some((**t).clone()),
            Ty::Array(t, _) => return Some(Ty::Slice(t.clone())),
            _ => {}
        }
        self.blocks_of(ty).into_iter().find_map(|(block, _, bound)| {
            match Ty::printed(block.target.as_ref()?)?.with(&bound) {
                // `Pin<P>` leads where `P` does.
                Ty::Of(of, (of_trait, _), _) if last(&of_trait) == "Deref" => self.deref(&of),
                target => Some(target),
            }
        })
    }

    fn add_step(&self, ty: &Ty, step: usize, out: &mut Vec<Having>) {
        if let Ty::Tuple(all) = ty {
            out.extend(all.iter().enumerate().map(|(i, t)| {
                let (name, signature) = (i.to_string(), format!("{i}: {t}"));
                let member = Member { name, kind: Kind::Field, signature, doc: String::new() };
                Having { member, step, owner: ty.to_string(), of_trait: false }
            }));
            // Those that the language gives to every tuple of what has them.
            for of_trait in ["Clone", "Ord", "PartialOrd"] {
                if all.iter().all(|t| self.implements(t, of_trait, 0)) {
                    self.add_trait(of_trait, &[], step, out, 0);
                }
            }
        }
        if let Some(all) = self.bounded(ty) {
            for (name, args) in &all {
                self.add_trait(last(name), args, step, out, 0);
            }
            return;
        }
        let Some(def) = self.type_of(ty) else { return };
        let owner = last(&def.path).to_owned();
        let bound: Bindings = def.parameters.iter().cloned().zip(ty.args().iter().cloned()).collect();
        let fields = def.members.iter().filter(|m| m.kind == Kind::Field && def.kind != Kind::Trait);
        out.extend(fields.map(|m| Having { member: put(m, &bound), step, owner: owner.clone(), of_trait: false }));
        let mut traits = Vec::new();
        for (block, head, bound) in self.blocks_of(ty) {
            match &head.of_trait {
                None => {
                    let own = block.members.iter().filter(|m| m.kind == Kind::Method);
                    out.extend(own.map(|m| Having {
                        member: put(m, &bound),
                        step,
                        owner: owner.clone(),
                        of_trait: false,
                    }));
                }
                Some(of_trait) => traits.push(of_trait.clone()),
            }
        }
        for block in self.layers.iter().flat_map(|l| &l.blanket) {
            let Some(head) = block.head() else { continue };
            let mut bound = Bindings::new();
            if let Some(of_trait) = head.of_trait.as_ref()
                && ty.fits(&head.self_ty, &head.parameters, &mut bound)
                && self.hold(head, &bound, 0)
            {
                traits.push(of_trait.clone());
            }
        }
        for of_trait in traits.iter().filter(|t| self.in_scope(t)) {
            self.add_trait(of_trait, &[], step, out, 0);
        }
    }

    /// The traits of what nothing else is known of: `dyn` and `impl`, type parameters, and what a trait calls by a name of its own.
    fn bounded(&self, ty: &Ty) -> Option<Vec<(String, Vec<Ty>)>> {
        match ty {
            Ty::Traits(_, all) => Some(all.clone()),
            Ty::Path(name, args) if args.is_empty() => self.parameters.get(name).cloned(),
            Ty::Of(of, (of_trait, args), name) => {
                let said = self.parameters.get(&format!("{of}::{name}")).cloned().unwrap_or_default();
                let def = self.trait_def(last(of_trait));
                let member = def.and_then(|d| d.members.iter().find(|m| m.kind == Kind::Type && m.name == *name));
                let bound: Bindings =
                    def.iter().flat_map(|d| d.parameters.iter().cloned().zip(args.iter().cloned())).collect();
                let written =
                    member.and_then(|m| syn::parse_str::<syn::TraitItemType>(&format!("{};", m.signature)).ok());
                let own = written.iter().flat_map(|t| bounds(t.bounds.iter()));
                let own = own.map(|(of_trait, args)| (of_trait, args.iter().map(|a| a.with(&bound)).collect()));
                Some(said.into_iter().chain(own).collect())
            }
            _ => None,
        }
    }

    /// What can stand behind `T::`.
    pub fn of_parameter(&self, name: &str) -> Vec<Having> {
        let mut traits: Vec<String> =
            self.parameters.get(name).into_iter().flatten().map(|(t, _)| last(t).to_owned()).collect();
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(def) = traits.get(at).filter(|_| at < 60).cloned().and_then(|t| self.trait_def(&t)) {
            let of =
                |m: &Member| Having { member: m.clone(), step: 0, owner: last(&def.path).to_owned(), of_trait: true };
            out.extend(def.members.iter().map(of));
            let above = def.above.iter().filter(|a| !traits.contains(a)).cloned().collect::<Vec<_>>();
            traits.extend(above);
            at += 1;
        }
        unique(out)
    }

    fn add_trait(&self, name: &str, args: &[Ty], step: usize, out: &mut Vec<Having>, depth: usize) {
        let Some(def) = self.trait_def(name).filter(|_| depth < DEEPEST) else { return };
        let bound: Bindings = def.parameters.iter().cloned().zip(args.iter().cloned()).collect();
        let callable = def.members.iter().filter(|m| m.kind == Kind::Method);
        out.extend(callable.map(|m| Having { member: put(m, &bound), step, owner: name.to_owned(), of_trait: true }));
        for above in &def.above {
            self.add_trait(above, &[], step, out, depth + 1);
        }
    }

    pub fn trait_def(&self, name: &str) -> Option<&TypeDef> {
        let of = |l: &Arc<Catalog>| {
            l.named.get(name).into_iter().flatten().find(|p| l.types[*p].kind == Kind::Trait).cloned()
        };
        self.layers.iter().find_map(of).and_then(|path| self.def(&path))
    }

    /// Whether a trait's methods can be called: it is the notebook's own, in a prelude, or imported.
    fn in_scope(&self, name: &str) -> bool {
        let Some(def) = self.trait_def(name) else { return false };
        let imported = |path: &str| path == def.path || self.leads_to(path, 0).is_some_and(|p| p == def.path);
        !def.path.contains("::")
            || PRELUDE.contains(&def.path.as_str())
            || self.imports.iter().any(|(_, path)| last(path) == name && imported(path))
            || self.globs.iter().any(|g| self.entries(g).iter().any(|e| e.name == name))
    }

    /// `impl` blocks that are of a type, with what their parameters stand for.
    fn blocks_of(&self, ty: &Ty) -> Vec<(&Impl, &Head, Bindings)> {
        let Some(key) = ty.head() else { return Vec::new() };
        let def = self.type_of(ty);
        let mut out = Vec::new();
        for block in self.layers.iter().filter_map(|l| l.impls.get(key)).flatten() {
            let Some(head) = block.head() else { continue };
            let mut bound = Bindings::new();
            if def.is_none_or(|d| is_of(block, d))
                && ty.fits(&head.self_ty, &head.parameters, &mut bound)
                && self.hold(head, &bound, 0)
            {
                out.push((block, head, bound));
            }
        }
        out
    }

    /// What the parameters of a type stand for whose definition does not name them, as its own `impl`s do.
    pub fn parameters_of(&self, ty: &Ty) -> Bindings {
        let plain = |head: &Head| {
            let is =
                |a: &Ty| matches!(a, Ty::Path(name, inside) if inside.is_empty() && head.parameters.contains(name));
            head.of_trait.is_none() && head.self_ty.args().iter().all(is)
        };
        let all = self.blocks_of(ty);
        all.into_iter().find(|(_, head, _)| plain(head)).map(|(.., bound)| bound).unwrap_or_default()
    }

    /// Whether the bounds of an `impl` hold, as far as that is known.
    fn hold(&self, head: &Head, bound: &Bindings, depth: usize) -> bool {
        head.wants.iter().all(|(ty, of_trait)| self.implements(&ty.with(bound), of_trait, depth + 1))
    }

    fn implements(&self, ty: &Ty, of_trait: &str, depth: usize) -> bool {
        if depth > DEEPEST || !self.is_told(of_trait) {
            return true;
        }
        // What a type that is known calls so stands in no table.
        if matches!(ty, Ty::Of(of, ..) if self.bounded(of).is_none()) {
            return true;
        }
        if let Some(all) = self.bounded(ty) {
            let bound = all.iter().any(|(name, _)| last(name) == of_trait || self.above(last(name), of_trait, 0));
            return bound || self.covered(ty, of_trait, depth);
        }
        let iterates = of_trait.ends_with("Iterator");
        match ty {
            Ty::Other(_) | Ty::Function(_) => true,
            Ty::Ref(_, _) if of_trait == "Clone" || of_trait == "Deref" => true,
            // What std says of all references and tuples.
            Ty::Ref(mutable, t) if self.is_stds(of_trait) => {
                (!iterates || *mutable) && self.implements(t, of_trait, depth + 1)
            }
            Ty::Tuple(all) if self.is_stds(of_trait) => {
                !iterates && of_trait != "Display" && all.iter().all(|t| self.implements(t, of_trait, depth + 1))
            }
            _ => {
                let Some(key) = ty.head() else { return true };
                let Some(def) = self.type_of(ty) else { return true };
                let mut blocks = self.layers.iter().filter_map(|l| l.impls.get(key)).flatten();
                blocks.any(|b| is_of(b, def) && self.gives(b, ty, of_trait, depth)) || self.covered(ty, of_trait, depth)
            }
        }
    }

    /// Whether an `impl` gives a type that trait.
    fn gives(&self, block: &Impl, ty: &Ty, of_trait: &str, depth: usize) -> bool {
        let head = block.head().filter(|h| h.of_trait.as_deref() == Some(of_trait));
        let mut bound = Bindings::new();
        head.is_some_and(|h| ty.fits(&h.self_ty, &h.parameters, &mut bound) && self.hold(h, &bound, depth))
    }

    /// Whether an `impl` of any type gives it that trait.
    fn covered(&self, ty: &Ty, of_trait: &str, depth: usize) -> bool {
        self.layers.iter().flat_map(|l| &l.blanket).any(|block| self.gives(block, ty, of_trait, depth))
    }

    /// Whether the catalogs say who has a trait: std's does not of markers and of what nobody calls.
    fn is_told(&self, of_trait: &str) -> bool {
        const GIVEN: &[&str] = &["Allocator", "Any", "Sized"];
        let said = match self.is_stds(of_trait) {
            true => standard::catalog().gives(of_trait),
            false => self.layers.iter().any(|l| l.gives(of_trait)),
        };
        said && !GIVEN.contains(&of_trait)
    }

    fn is_stds(&self, of_trait: &str) -> bool {
        self.trait_def(of_trait).is_none_or(|def| def.path.starts_with("std::"))
    }

    fn above(&self, name: &str, wanted: &str, depth: usize) -> bool {
        let above = self.trait_def(name).map(|d| d.above.clone()).unwrap_or_default();
        depth < DEEPEST && above.iter().any(|a| a == wanted || self.above(a, wanted, depth + 1))
    }
}

/// An `impl` says the path of its type, or the crate that it stands in: there it is of that crate's type, or of a trait.
fn is_of(block: &Impl, def: &TypeDef) -> bool {
    let own = || def.path.starts_with(&block.of) || block.head().is_some_and(|h| h.of_trait.is_some());
    block.of.is_empty() || block.of == def.path || block.of.ends_with("::") && own()
}

fn as_entry(path: &str, m: &Member) -> Entry {
    let elsewhere = Some(format!("{path}::{}", m.name));
    Entry { name: m.name.clone(), kind: m.kind, signature: m.signature.clone(), doc: m.doc.clone(), elsewhere }
}

/// The first of each name, which a field may share with what is called.
fn unique(all: Vec<Having>) -> Vec<Having> {
    let mut seen = HashSet::new();
    all.into_iter().filter(|h| seen.insert((h.member.name.clone(), h.member.kind == Kind::Field))).collect()
}

/// A member with parameters replaced by what they stand for.
fn put(m: &Member, bound: &Bindings) -> Member {
    if bound.is_empty() {
        return m.clone();
    }
    let text = &m.signature;
    let mut signature = String::new();
    let mut from = 0;
    let all = tokens(text);
    for (i, t) in all.iter().enumerate().filter(|(_, t)| t.kind == Token::Ident) {
        let path = all.get(i + 1).is_some_and(|n| n.kind == Token::Punct(':') && text[n.range.end..].starts_with(':'));
        if let Some(ty) = bound.get(&text[t.range.clone()]).filter(|_| !path) {
            signature.push_str(&text[from..t.range.start]);
            signature.push_str(&ty.to_string());
            from = t.range.end;
        }
    }
    signature.push_str(&text[from..]);
    Member { signature, ..m.clone() }
}
