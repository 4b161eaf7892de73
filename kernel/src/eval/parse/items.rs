//! Items that persist: what they are called, what they mention, and what is changed in them so that later cells see them.
use super::checks::{Checks, FnValue, included};
use super::code_facts;
use super::elsewhere::{Makes, Seen};
use super::expand::{Macro, expand};
use super::extents;
use super::facts::Facts;
use super::own_names::only_parameters;
use super::publish;
use super::syntax::{arguments, attributes, bytes, generics, one_line, parameters};
use crate::eval::text::depth;
use crate::eval::text::scan::{self, Kind};
use crate::eval::text::source::{CellText, Fact, Source, Splice, line_column};
use proc_macro2::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// An item that persists.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is imported by; empty for an `impl`.
    pub names: Vec<String>,
    /// Where its names are names.
    pub space: Space,
    /// For an `impl`: what it is an `impl` of, and what it defines.
    pub header: Option<Header>,
    /// The call of the notebook's macro that made it.
    pub call: Option<Arc<Call>>,
    /// For the call of a macro of another crate.
    pub made: Option<Made>,
    pub is_type: bool,
    /// It is what a pattern of its name means, so that no variable can have that name beside it.
    pub in_patterns: bool,
    /// The attributes that decide whether it is there at all.
    pub cfg: String,
    pub source: Arc<CellText>,
    pub range: Range<usize>,
    pub edits: Vec<Splice>,
    pub values: Vec<FnValue>,
    /// What the session is to know of its code.
    pub syntax: Vec<Fact>,
    pub mentions: BTreeSet<String>,
    /// What types may depend on.
    pub facts: Facts,
}

/// What a macro of another crate makes.
#[derive(Clone, Debug)]
pub struct Made {
    /// Which call it is, whatever else is in it: see `Seen::told`.
    pub by: String,
    /// The methods that its words name.
    pub methods: BTreeSet<String>,
    /// What it stands beside, among other words.
    pub beside: BTreeSet<String>,
}

/// The call of a macro of the notebook that makes items.
#[derive(Debug)]
pub struct Call {
    /// The macro, and those that it calls to make items.
    pub macros: BTreeSet<String>,
    pub cell: Arc<CellText>,
    pub range: Range<usize>,
}

impl Call {
    /// Such as "`point!` of cell 3, line 2,".
    pub fn in_words(&self) -> String {
        let (line, _) = line_column(&self.cell.text, self.range.start);
        let name = self.cell.text[self.range.clone()].split('!').next().unwrap_or_default();
        format!("`{name}!` of {}, line {line},", self.cell.label())
    }
}

/// Rust's namespaces: a type and a function of one name are two items.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Space {
    pub types: bool,
    pub values: bool,
}

impl Space {
    pub const TYPES: Space = Space { types: true, values: false };
    pub const VALUES: Space = Space { types: false, values: true };
    pub const BOTH: Space = Space { types: true, values: true };

    pub fn meets(self, other: Space) -> bool {
        self.types && other.types || self.values && other.values
    }

    fn of(item: &syn::Item) -> Space {
        match item {
            syn::Item::Const(_) | syn::Item::Static(_) | syn::Item::Fn(_) => Space::VALUES,
            syn::Item::Struct(i) if !matches!(i.fields, syn::Fields::Named(_)) => Space::BOTH,
            syn::Item::ForeignMod(_) => Space::BOTH,
            _ => Space::TYPES,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Header {
    /// Trait and type without blanks, generic parameters by number: with other names or bounds it is the same `impl`.
    pub text: String,
    pub of_trait: Option<String>,
    pub self_type: String,
    pub mentions: BTreeSet<String>,
    pub members: BTreeSet<String>,
}

impl Item {
    pub fn text(&self) -> &str {
        &self.source.text[self.range.clone()]
    }

    /// Puts it under a `#[cfg(…)]`.
    pub fn only_where(&mut self, cfg: &str) {
        self.cfg.push_str(cfg);
        self.edits.insert(0, Splice::insert(self.range.start, format!("{cfg} ")));
    }

    /// Whether it is a type that values may be of.
    pub fn has_values(&self) -> bool {
        self.is_type && ["struct", "enum", "union"].iter().any(|word| self.mentions.contains(*word))
    }

    /// Whether it is a static, or has one inside.
    pub fn has_static(&self) -> bool {
        let text = self.text();
        let tokens = scan::tokens(text);
        let ident = |i: usize, word: &str| tokens.get(i).is_some_and(|t| &text[t.range.clone()] == word);
        let named = |i: usize| tokens.get(i + 1).is_some_and(|t| t.kind == Kind::Ident) && !ident(i + 1, "fn");
        (0..tokens.len()).any(|i| ident(i, "static") && named(i))
    }

    /// What people call it.
    pub fn in_words(&self) -> String {
        match (&self.header, self.names.as_slice()) {
            (Some(Header { of_trait: Some(of_trait), self_type, .. }), _) => {
                format!("`impl {of_trait} for {self_type}`")
            }
            (Some(header), _) => format!("`impl {}`", header.self_type),
            (_, [name, ..]) => format!("`{name}`"),
            _ => "an item".to_owned(),
        }
    }

    /// Whether this part of a text is part of it, or was copied into it.
    pub fn holds(&self, text: &Arc<CellText>, range: &Range<usize>) -> bool {
        let inside = |(at, of, start): (Range<usize>, &Arc<CellText>, usize)| {
            Arc::ptr_eq(of, text) && start <= range.start && range.start < start + at.len()
        };
        self.source.written(self.range.clone()).into_iter().any(inside)
    }

    /// Where it stands in a cell: itself, or the call that made it.
    pub fn in_cell(&self) -> (&Arc<CellText>, Range<usize>) {
        match &self.call {
            Some(call) => (&call.cell, call.range.clone()),
            None => (&self.source, self.range.clone()),
        }
    }
}

/// `#[cfg(…)]` of an item, and of a test what that stands for.
fn conditional(item: &syn::Item, text: &str, base: usize) -> String {
    let one = |a: &syn::Attribute| match a.path().get_ident()?.to_string().as_str() {
        "cfg" => Some(text[bytes(a.span(), base)].to_owned()),
        "test" => Some("#[cfg(test)]".to_owned()),
        _ => None,
    };
    attributes(item).iter().filter_map(one).collect()
}

pub(super) fn persistent_item<'m>(
    cell: &Arc<CellText>,
    base: usize,
    item: &syn::Item,
    known: &dyn Fn(&str) -> Option<&'m Macro>,
) -> Option<Item> {
    let range = bytes(item.span(), base);
    let mut publish = Publish { imported: imported_for_others(item), ..Publish::of(&cell.text, base) };
    let mut header = None;
    let mut is_type = false;
    let names = match item {
        syn::Item::Const(i) => publish.named(&i.vis, i.const_token.span, &i.ident),
        syn::Item::Static(i) => publish.named(&i.vis, i.static_token.span, &i.ident),
        syn::Item::Fn(i) => publish.named(&i.vis, i.sig.span(), &i.sig.ident),
        syn::Item::Mod(i) => {
            i.content.iter().flat_map(|(_, items)| items).for_each(|item| publish.visit_item(item));
            let start = i.unsafety.as_ref().map_or(i.mod_token.span, |u| u.span);
            publish.named(&i.vis, start, &i.ident)
        }
        syn::Item::Trait(i) => {
            is_type = true;
            let start = i.unsafety.as_ref().map_or(i.trait_token.span, |u| u.span);
            publish.named(&i.vis, start, &i.ident)
        }
        syn::Item::Type(i) => {
            is_type = true;
            publish.named(&i.vis, i.type_token.span, &i.ident)
        }
        syn::Item::Enum(i) => {
            is_type = true;
            publish.named(&i.vis, i.enum_token.span, &i.ident)
        }
        syn::Item::Struct(i) => {
            is_type = true;
            i.fields.iter().for_each(|f| publish.field(f));
            publish.named(&i.vis, i.struct_token.span, &i.ident)
        }
        syn::Item::Union(i) => {
            is_type = true;
            i.fields.named.iter().for_each(|f| publish.field(f));
            publish.named(&i.vis, i.union_token.span, &i.ident)
        }
        syn::Item::ForeignMod(i) => {
            let names = i.items.iter().filter_map(|i| match i {
                syn::ForeignItem::Fn(f) => Some(publish.named(&f.vis, f.sig.span(), &f.sig.ident)),
                syn::ForeignItem::Static(s) => Some(publish.named(&s.vis, s.static_token.span, &s.ident)),
                // `safe fn …`
                syn::ForeignItem::Verbatim(tokens) => Some(publish.declared(bytes(tokens.span(), base))),
                _ => None,
            });
            names.flatten().collect()
        }
        syn::Item::ExternCrate(i) => {
            let name = i.rename.as_ref().map_or(&i.ident, |(_, name)| name);
            publish.named(&i.vis, i.extern_token.span, name)
        }
        syn::Item::Impl(i) => {
            let header = header.insert(impl_header(cell, base, i));
            // rustc cannot link a vtable to such a method of another library, but where it may make one of its own.
            let methods = i.items.iter().filter_map(|m| if let syn::ImplItem::Fn(f) = m { Some(f) } else { None });
            for f in methods.filter(|f| i.trait_.is_some() && has(f, "track_caller") && !has(f, "inline")) {
                publish.edits.push(Splice::insert(bytes(f.span(), base).start, "#[inline] "));
            }
            if i.trait_.is_none() {
                i.items.iter().for_each(|i| publish.member(i));
                for call in i.items.iter().filter_map(|i| match i {
                    syn::ImplItem::Macro(call) => Some(call),
                    _ => None,
                }) {
                    match members_of_a_macro(cell, base, call, known) {
                        Some((members, edit)) => {
                            header.members.extend(members);
                            publish.edits.push(edit);
                        }
                        None => header.members.extend(publish::members(&cell.text[bytes(call.span(), base)])),
                    }
                }
            }
            Vec::new()
        }
        _ => Vec::new(),
    };
    let mut checks = Checks::new(base);
    checks.visit_item(item);
    let mut edits = publish.edits;
    edits.extend(included(&cell.text, range.clone()));
    edits.append(&mut checks.edits());
    edits.sort_by_key(|e| e.range.start);
    let mut mentions = scan::mentions(&cell.text[range.clone()]);
    for parameter in generics(item).into_iter().flat_map(parameters) {
        mentions.remove(&parameter);
    }
    for parameter in only_parameters(item, &cell.text[range.clone()]) {
        mentions.remove(&parameter);
    }
    let values = checks.values;
    let mut syntax = code_facts::of_item(item, &cell.text, base);
    syntax.extend(extents::of_item(item, &cell.text, base));
    syntax.extend(code_facts::of_conditions(&checks.conditions, &cell.text));
    let cfg = conditional(item, &cell.text, base);
    let (source, space, call, made) = (cell.clone(), Space::of(item), None, None);
    let in_patterns = space.values && !matches!(item, syn::Item::Fn(_) | syn::Item::ForeignMod(_));
    let facts = Facts::of(item, &cell.text, base);
    Some(Item {
        names,
        space,
        header,
        call,
        made,
        is_type,
        in_patterns,
        cfg,
        source,
        range,
        edits,
        values,
        syntax,
        mentions,
        facts,
    })
}

fn has(f: &syn::ImplItemFn, attribute: &str) -> bool {
    f.attrs.iter().any(|a| a.path().is_ident(attribute))
}

/// The call of a macro of another crate that makes items. What they are called it alone knows, unless its argument is items, as that of
/// `thread_local!`.
pub(super) fn items_of_a_macro(
    cell: &Arc<CellText>,
    base: usize,
    call: &syn::StmtMacro,
    seen: &Seen,
    makes: Makes,
) -> Option<Item> {
    if makes == Makes::Statement {
        return None;
    }
    let range = bytes(call.span(), base);
    let inside = bytes(call.mac.tokens.span(), base);
    let mut publish = Publish::of(&cell.text, base);
    let names = match (seen.items, makes) {
        (true, _) => publish.declared(inside.clone()),
        (false, Makes::Public) => {
            publish.edits.extend(publish::edits(publish::somewhere(&cell.text[inside.clone()]), inside.start));
            Vec::new()
        }
        _ => Vec::new(),
    };
    let mentions = scan::mentions(&cell.text[range.clone()]);
    let mut facts = Facts::of_call(&cell.text[range.clone()]);
    facts.makes_more = !seen.items;
    let beside = if makes == Makes::Beside { seen.mentions.clone() } else { BTreeSet::new() };
    let methods = publish::members(&cell.text[inside]);
    let made = Some(Made { by: seen.told.clone(), methods, beside });
    Some(Item {
        names,
        space: Space::BOTH,
        header: None,
        call: None,
        made,
        is_type: true,
        in_patterns: false,
        cfg: String::new(),
        source: cell.clone(),
        range,
        edits: publish.edits,
        values: Vec::new(),
        syntax: Vec::new(),
        mentions,
        facts,
    })
}

/// What a macro of the notebook makes inside an `impl`: names, and the text that takes the call's place.
fn members_of_a_macro<'m>(
    cell: &Arc<CellText>,
    base: usize,
    call: &syn::ImplItemMacro,
    known: &dyn Fn(&str) -> Option<&'m Macro>,
) -> Option<(BTreeSet<String>, Splice)> {
    const BEFORE: &str = "impl X {";
    let rules = known(&call.mac.path.segments.last()?.ident.to_string())?;
    let made = expand(&rules.source, rules.range.clone(), cell, arguments(&call.mac, base))?;
    let text = Arc::new(CellText::new(cell.cell, format!("{BEFORE}{}}}", made.text)));
    let made: syn::ItemImpl = depth::fits(&text.text).then(|| syn::parse_str(&text.text).ok())??;
    let mut publish = Publish::of(&text.text, 0);
    made.items.iter().for_each(|i| publish.member(i));
    let mut public = Source::default();
    public.user(&text, BEFORE.len()..text.text.len() - 1, &publish.edits);
    let edit = Splice::replace(bytes(call.span(), base), public.text.replace('\n', " "));
    Some((impl_header(&text, 0, &made).members, edit))
}

fn impl_header(cell: &Arc<CellText>, base: usize, i: &syn::ItemImpl) -> Header {
    let start = bytes(i.impl_token.span, base).start;
    let end = bytes(i.brace_token.span.open(), base).start;
    let text = &cell.text[start..end];
    let mut ty = &*i.self_ty;
    while let syn::Type::Reference(r) = ty {
        ty = &r.elem;
    }
    let self_type = match ty {
        syn::Type::Path(p) => p.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default(),
        _ => String::new(),
    };
    let members = i.items.iter().filter_map(|i| match i {
        syn::ImplItem::Fn(f) => Some(f.sig.ident.to_string()),
        syn::ImplItem::Const(c) => Some(c.ident.to_string()),
        syn::ImplItem::Type(t) => Some(t.ident.to_string()),
        _ => None,
    });
    let trait_start = i.trait_.as_ref().map(|t| bytes(t.1.span(), base).start);
    let what =
        &cell.text[trait_start.unwrap_or(bytes(i.self_ty.span(), base).start)..bytes(i.self_ty.span(), base).end];
    let parameters = parameters(&i.generics);
    let mut mentions = scan::mentions(text);
    mentions.retain(|m| !parameters.contains(m));
    let by_number = |t: scan::Token| match parameters.iter().position(|p| *p == what[t.range.clone()]) {
        Some(number) => format!(" {number} "),
        None if t.kind == Kind::Ident => format!(" {} ", &what[t.range]),
        None => what[t.range].to_owned(),
    };
    Header {
        text: scan::tokens(what).into_iter().filter(|t| t.kind != Kind::Comment).map(by_number).collect(),
        of_trait: i.trait_.as_ref().and_then(|t| t.1.segments.last()).map(|s| s.ident.to_string()),
        self_type,
        mentions,
        members: members.collect(),
    }
}

/// What the imports of a module name that others may use, too: each leaf, such as of `use m;` and `use m as n;`.
fn imported_for_others(item: &syn::Item) -> BTreeSet<String> {
    #[derive(Default)]
    struct Imports(BTreeSet<String>);
    impl<'ast> Visit<'ast> for Imports {
        fn visit_item_use(&mut self, u: &'ast syn::ItemUse) {
            if !matches!(u.vis, syn::Visibility::Inherited) {
                syn::visit::visit_item_use(self, u);
            }
        }
        fn visit_use_name(&mut self, u: &'ast syn::UseName) {
            self.0.insert(u.ident.to_string());
        }
        fn visit_use_rename(&mut self, u: &'ast syn::UseRename) {
            self.0.insert(u.ident.to_string());
        }
        fn visit_block(&mut self, _: &'ast syn::Block) {}
    }
    let mut found = Imports::default();
    if let syn::Item::Mod(_) = item {
        found.visit_item(item);
    }
    found.0
}

/// Makes what a group defines visible to the cells after it.
struct Publish<'a> {
    base: usize,
    text: &'a str,
    edits: Vec<Splice>,
    /// What the imports of a module name that others may use.
    imported: BTreeSet<String>,
    /// Macros among that, each with its exported copy.
    copies: BTreeMap<String, String>,
}

impl<'a> Publish<'a> {
    fn of(text: &'a str, base: usize) -> Publish<'a> {
        Publish { base, text, edits: Vec::new(), imported: BTreeSet::new(), copies: BTreeMap::new() }
    }

    /// Items that only a macro or rustc understands: what they are called, found by the words before it.
    fn declared(&mut self, range: Range<usize>) -> Vec<String> {
        let text = &self.text[range.clone()];
        let found = publish::items(text);
        let (names, places): (Vec<_>, Vec<_>) = found.into_iter().map(|d| (d.name, d.publish)).unzip();
        self.edits.extend(publish::edits(places.into_iter().flatten(), range.start));
        names
    }

    fn named(&mut self, vis: &syn::Visibility, start: Span, ident: &syn::Ident) -> Vec<String> {
        self.make_public(vis, start);
        vec![ident.to_string()]
    }

    fn make_public(&mut self, vis: &syn::Visibility, start: Span) {
        match vis {
            syn::Visibility::Public(_) => {}
            syn::Visibility::Restricted(r) => self.edits.push(Splice::replace(bytes(r.span(), self.base), "pub")),
            syn::Visibility::Inherited => {
                self.edits.push(Splice::insert(bytes(start, self.base).start, "pub "));
            }
        }
    }

    fn field(&mut self, f: &syn::Field) {
        let start = f.ident.as_ref().map_or_else(|| f.ty.span(), |i| i.span());
        self.make_public(&f.vis, start);
    }

    fn member(&mut self, i: &syn::ImplItem) {
        match i {
            syn::ImplItem::Fn(f) => self.make_public(&f.vis, f.sig.span()),
            syn::ImplItem::Const(c) => self.make_public(&c.vis, c.const_token.span),
            _ => {}
        }
    }
}

/// Inside a module: what it shows to the whole crate, or to the module around it, is for all cells.
impl<'ast> Visit<'ast> for Publish<'_> {
    fn visit_vis_restricted(&mut self, vis: &'ast syn::VisRestricted) {
        if !vis.path.is_ident("self") {
            self.edits.push(Splice::replace(bytes(vis.span(), self.base), "pub"));
        }
    }
    /// What an import gives to others is public itself.
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let range = bytes(item.span(), self.base);
        let text = &self.text[range.clone()];
        if let Some(declared) = publish::items(text).into_iter().next()
            && self.imported.contains(&declared.name)
            && declared.publish.as_ref().is_some_and(Range::is_empty)
        {
            self.edits.extend(publish::edits(declared.publish, range.start));
        }
        syn::visit::visit_item(self, item);
    }
    /// A macro is as public as an import of it only if it is exported, which is under a name of the whole crate: a copy is.
    fn visit_item_macro(&mut self, m: &'ast syn::ItemMacro) {
        let Some(name) = m.ident.as_ref().filter(|name| self.imported.contains(&name.to_string())) else { return };
        if !m.attrs.iter().any(|a| a.path().is_ident("macro_export")) {
            let (range, ident) = (bytes(m.span(), self.base), bytes(name.span(), self.base));
            let copy = format!("xlazy_{name}_{}", self.copies.len());
            let (before, after) = (&self.text[range.start..ident.start], &self.text[ident.end..range.end]);
            let text = format!(" #[doc(hidden)] #[macro_export] {} {copy} {}", one_line(before), one_line(after));
            self.edits.push(Splice::insert(range.end, text));
            self.copies.insert(name.to_string(), copy);
        }
    }
    fn visit_use_name(&mut self, u: &'ast syn::UseName) {
        if let Some(copy) = self.copies.get(&u.ident.to_string()) {
            self.edits.push(Splice::insert(bytes(u.ident.span(), self.base).start, format!("{copy} as ")));
        }
    }
    fn visit_use_rename(&mut self, u: &'ast syn::UseRename) {
        if let Some(copy) = self.copies.get(&u.ident.to_string()) {
            self.edits.push(Splice::replace(bytes(u.ident.span(), self.base), copy.as_str()));
        }
    }
    // What is in another module has the name there that its import gives it.
    fn visit_use_path(&mut self, u: &'ast syn::UsePath) {
        if u.ident == "self" {
            syn::visit::visit_use_path(self, u);
        }
    }
    fn visit_block(&mut self, _: &'ast syn::Block) {}
}
