//! What of an item a type may depend on: what it says, and the constants, types and functions that an `impl` or a trait in
//! it gives to others. What a function does is left out unless it can be called while a program is compiled.
use super::syntax::{attributes, bytes, generics, parameters};
use crate::eval::text::scan::{self, Kind};
use std::collections::BTreeSet;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Names in a text; a superset of what is meant.
#[derive(Clone, Debug, Default)]
pub struct Words {
    pub all: BTreeSet<String>,
    /// Those that may stand for values.
    pub values: BTreeSet<String>,
    /// Macros that are called.
    pub calls: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Without comments.
    pub text: String,
    pub words: Words,
    /// A function that only runs with the program.
    pub function: bool,
    /// Another name for a type.
    pub alias: bool,
    pub is_trait: bool,
    /// A macro of another crate that stands in front of it may make more items, under names that only rustc knows.
    pub makes_more: bool,
    pub members: Vec<Member>,
}

/// Whose a member is.
#[derive(Clone, Debug, PartialEq)]
pub enum Owner {
    Trait,
    Type,
    /// Of an `impl` of this trait, and whether the name alone says which trait that is.
    TraitOf(String, bool),
    /// What a macro makes of its arguments where items stand, or (true) statements.
    Macro(bool),
    /// What a macro makes inside an `impl` or a trait.
    MadeInside,
}

#[derive(Clone, Debug)]
pub struct Member {
    pub owner: Owner,
    /// `None` is the `impl` itself: that it is there.
    pub name: Option<String>,
    /// A function that only runs with the program.
    pub function: bool,
    pub constant: bool,
    /// Whether the `impl` is good for some types only, by bounds.
    pub bounded: bool,
    /// Its `impl` or trait, as text.
    pub of: String,
    /// Names by which a type may come to it; every type may where there are none.
    pub by: BTreeSet<String>,
    pub any: bool,
    pub text: String,
    pub words: Words,
}

/// The same for what differs in comments and white space only.
pub fn plain(text: &str) -> String {
    let (mut out, mut end) = (String::new(), 0);
    for t in scan::tokens(text).iter().filter(|t| t.kind != Kind::Comment) {
        if !out.is_empty() && t.range.start > end {
            out.push(' ');
        }
        out.push_str(&text[t.range.clone()]);
        end = t.range.end;
    }
    out
}

/// Macros that are called in a text.
pub fn calls(text: &str) -> BTreeSet<String> {
    let tokens = scan::tokens(text);
    let called = |w: &[scan::Token]| {
        let is_call = w[0].kind == Kind::Ident && w[1].kind == Kind::Punct('!') && matches!(w[2].kind, Kind::Open(_));
        let name = &text[w[0].range.clone()];
        // `if !(…)`
        (is_call && syn::parse_str::<syn::Ident>(name).is_ok()).then(|| name.to_owned())
    };
    tokens.windows(3).filter_map(called).collect()
}

impl Words {
    /// Of text that only a macro or rustc understands.
    pub fn of(text: &str) -> Words {
        let all = scan::mentions(text);
        Words { values: all.clone(), all, calls: calls(text) }
    }

    fn add(&mut self, other: &Words) {
        self.all.extend(other.all.iter().cloned());
        self.values.extend(other.values.iter().cloned());
        self.calls.extend(other.calls.iter().cloned());
    }

    fn without(mut self, parameters: &BTreeSet<String>) -> Words {
        self.all.retain(|w| !parameters.contains(w));
        self.values.retain(|w| !parameters.contains(w));
        self
    }
}

impl Facts {
    /// Of the call of a macro whose argument is items.
    pub fn of_call(text: &str) -> Facts {
        // What it is called by is known, and makes nothing of other names.
        let words = Words { calls: BTreeSet::new(), ..Words::of(text) };
        Facts { text: plain(text), words, ..Facts::default() }
    }

    pub fn of(item: &syn::Item, text: &str, base: usize) -> Facts {
        let mut look = Look { text, base, facts: Facts::default(), skipped: Vec::new(), values: Vec::new(), deep: 0 };
        look.visit_item(item);
        let Look { mut facts, skipped, values, .. } = look;
        let range = bytes(item.span(), base);
        facts.text = plain(&text[range.clone()]);
        facts.function = matches!(item, syn::Item::Fn(f) if f.sig.constness.is_none());
        facts.alias = matches!(item, syn::Item::Type(_));
        facts.makes_more = attributes(item).iter().any(makes_more);
        facts.is_trait = matches!(item, syn::Item::Trait(_) | syn::Item::TraitAlias(_));
        facts.words = match item {
            // Its members have theirs.
            syn::Item::Impl(_) => Words::default(),
            syn::Item::Fn(_) => Words::of(&text[range]),
            _ => words(text, range, &skipped, &values),
        };
        if let Some(generics) = generics(item) {
            facts.words = facts.words.without(&parameters(generics).into_iter().collect());
        }
        facts
    }
}

/// Attributes and derives that make no item.
const PLAIN: [&str; 39] = [
    "Args",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Deserialize",
    "Eq",
    "Error",
    "Hash",
    "Module",
    "Ord",
    "Parser",
    "PartialEq",
    "PartialOrd",
    "Rich",
    "Serialize",
    "Subcommand",
    "ValueEnum",
    "allow",
    "automatically_derived",
    "cfg",
    "cfg_attr",
    "cold",
    "default",
    "deny",
    "deprecated",
    "doc",
    "expect",
    "inline",
    "macro_export",
    "macro_use",
    "must_use",
    "no_mangle",
    "non_exhaustive",
    "path",
    "repr",
    "target_feature",
    "track_caller",
    "warn",
];

fn makes_more(attribute: &syn::Attribute) -> bool {
    let plain = |path: &syn::Path| path.segments.last().is_some_and(|s| PLAIN.contains(&&*s.ident.to_string()));
    if !attribute.path().is_ident("derive") {
        return !plain(attribute.path());
    }
    let mut all = true;
    // What cannot be read is rustc's to tell.
    let _ = attribute.parse_nested_meta(|derive| {
        all &= plain(&derive.path);
        Ok(())
    });
    !all
}

/// Of text that syn has taken apart: some of it says nothing of types, and values stand in some of it only.
fn words(text: &str, range: Range<usize>, skipped: &[Range<usize>], values: &[Range<usize>]) -> Words {
    let mut kept = text[range.clone()].as_bytes().to_vec();
    for s in skipped.iter().filter(|s| range.start <= s.start && s.end <= range.end) {
        kept[s.start - range.start..s.end - range.start].fill(b' ');
    }
    let kept = String::from_utf8_lossy(&kept).into_owned();
    let mut out = Words { all: scan::mentions(&kept), calls: calls(&kept), ..Words::default() };
    for v in values.iter().filter(|v| range.start <= v.start && v.end <= range.end) {
        out.values.extend(scan::mentions(&kept[v.start - range.start..v.end - range.start]));
    }
    out
}

struct Look<'t> {
    text: &'t str,
    base: usize,
    facts: Facts,
    /// Names of fields and variants, `#[derive(…)]`, documentation, bodies of functions.
    skipped: Vec<Range<usize>>,
    values: Vec<Range<usize>>,
    deep: usize,
}

impl Look<'_> {
    fn skip(&mut self, of: &impl Spanned) {
        self.skipped.push(bytes(of.span(), self.base));
    }

    fn body(&mut self, constness: bool, block: &syn::Block) {
        if !constness {
            self.skip(block);
        }
    }

    fn member(&mut self, of: &Member, name: &syn::Ident, constant: bool, function: bool, at: Range<usize>) {
        let text = plain(&self.text[at.clone()]);
        let mut member = Member { name: Some(name.to_string()), constant, function, text, ..of.clone() };
        let own = if function { Words::of(&self.text[at]) } else { words(self.text, at, &[], &self.values) };
        member.words.add(&own);
        self.facts.members.push(member);
    }

    fn macro_at(&mut self, call: &syn::Macro, owner: Owner) {
        let Some(name) = call.path.segments.last() else { return };
        let at = bytes(call.span(), self.base);
        let words = Words::of(&self.text[at.clone()]);
        self.facts.members.push(Member {
            any: owner == Owner::MadeInside,
            owner,
            name: Some(name.ident.to_string()),
            function: false,
            constant: false,
            bounded: false,
            of: "call".to_owned(),
            by: words.all.clone(),
            text: plain(&self.text[at]),
            words,
        });
    }
}

impl<'ast> Visit<'ast> for Look<'_> {
    fn visit_item(&mut self, i: &'ast syn::Item) {
        self.deep += 1;
        visit::visit_item(self, i);
        self.deep -= 1;
    }
    fn visit_attribute(&mut self, a: &'ast syn::Attribute) {
        if a.path().is_ident("derive") || a.path().is_ident("doc") {
            self.skip(a);
        }
    }
    fn visit_field(&mut self, f: &'ast syn::Field) {
        f.ident.iter().for_each(|i| self.skip(i));
        visit::visit_field(self, f);
    }
    fn visit_variant(&mut self, v: &'ast syn::Variant) {
        self.skip(&v.ident);
        visit::visit_variant(self, v);
    }
    fn visit_expr(&mut self, e: &'ast syn::Expr) {
        self.values.push(bytes(e.span(), self.base));
        visit::visit_expr(self, e);
    }
    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        self.values.push(bytes(m.span(), self.base));
        self.macro_at(m, Owner::Macro(true));
    }
    fn visit_item_macro(&mut self, m: &'ast syn::ItemMacro) {
        // A definition is looked at where it is called, by a superset: all that it says.
        self.values.push(bytes(m.span(), self.base));
        if m.ident.is_none() {
            self.macro_at(&m.mac, Owner::Macro(false));
        }
    }
    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        self.body(f.sig.constness.is_some(), &f.block);
        visit::visit_item_fn(self, f);
    }
    fn visit_item_trait(&mut self, t: &'ast syn::ItemTrait) {
        visit::visit_item_trait(self, t);
        let of = Member {
            owner: Owner::Trait,
            name: None,
            function: false,
            constant: false,
            bounded: false,
            of: format!("trait {}", t.ident),
            by: BTreeSet::new(),
            any: true,
            text: String::new(),
            words: Words { all: BTreeSet::from([t.ident.to_string()]), ..Words::default() },
        };
        for i in &t.items {
            let at = bytes(i.span(), self.base);
            match i {
                // Without a value, an `impl` has it.
                syn::TraitItem::Const(c) if c.default.is_some() => self.member(&of, &c.ident, true, false, at),
                syn::TraitItem::Fn(f) => {
                    f.default.iter().for_each(|b| self.body(f.sig.constness.is_some(), b));
                    self.member(&of, &f.sig.ident, false, true, at);
                }
                syn::TraitItem::Type(t) if t.default.is_some() => self.member(&of, &t.ident, false, false, at),
                _ => {}
            }
        }
    }
    fn visit_impl_item_macro(&mut self, m: &'ast syn::ImplItemMacro) {
        self.values.push(bytes(m.span(), self.base));
        self.macro_at(&m.mac, Owner::MadeInside);
    }
    fn visit_trait_item_macro(&mut self, m: &'ast syn::TraitItemMacro) {
        self.values.push(bytes(m.span(), self.base));
        self.macro_at(&m.mac, Owner::MadeInside);
    }
    fn visit_item_impl(&mut self, i: &'ast syn::ItemImpl) {
        let before = self.facts.members.len();
        visit::visit_item_impl(self, i);
        let whole = bytes(i.span(), self.base);
        let start = bytes(i.impl_token.span(), self.base).start;
        let header = start..bytes(i.brace_token.span.open(), self.base).start;
        let parameters: BTreeSet<String> = parameters(&i.generics).into_iter().collect();
        let what = bytes(i.self_ty.span(), self.base);
        let (owner, from) = match &i.trait_ {
            Some((_, path, _)) => {
                let name = path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
                let plain = path.leading_colon.is_none() && path.segments.len() == 1 && self.deep == 1;
                let words = scan::mentions(&self.text[bytes(path.span(), self.base)]);
                (Owner::TraitOf(name.clone(), plain), words.into_iter().filter(|w| *w != name).collect())
            }
            None => (Owner::Type, BTreeSet::new()),
        };
        let self_text = &self.text[what];
        let by: BTreeSet<String> =
            scan::mentions(self_text).into_iter().chain(from).filter(|w| !parameters.contains(w)).collect();
        let bound = |p: &syn::GenericParam| matches!(p, syn::GenericParam::Type(t) if !t.bounds.is_empty());
        let of = Member {
            name: None,
            function: false,
            constant: false,
            bounded: i.generics.params.iter().any(bound) || i.generics.where_clause.is_some(),
            of: plain(&self.text[header.clone()]),
            // `<X as Trait>::Type`, and what a macro makes
            any: by.is_empty() || self_text.contains('<') && by.contains("as") || self_text.contains('!'),
            by,
            text: String::new(),
            words: words(self.text, header, &[], &self.values).without(&parameters),
            owner,
        };
        for made in self.facts.members[before..].iter_mut().filter(|m| m.owner == Owner::MadeInside) {
            made.by.clone_from(&of.by);
            made.any = of.any;
            made.words.add(&of.words);
        }
        if i.trait_.is_some() {
            self.facts.members.push(of.clone());
        }
        for m in &i.items {
            let at = bytes(m.span(), self.base);
            match m {
                syn::ImplItem::Const(c) => self.member(&of, &c.ident, true, false, at),
                syn::ImplItem::Type(t) => self.member(&of, &t.ident, false, false, at),
                syn::ImplItem::Fn(f) => self.member(&of, &f.sig.ident, false, f.sig.constness.is_none(), at),
                // What it makes is among the macros that are called.
                _ => {}
            }
        }
        // The members say it.
        if self.deep > 1 {
            self.skipped.push(whole);
        }
    }
}
