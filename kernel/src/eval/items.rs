//! Items that persist: what they are called, what they mention, and what is changed in them so that later cells see them.
use super::scan;
use super::source::{CellText, Edit};
use super::split::{Checks, FnValue, bytes};
use proc_macro2::Span;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// An item that persists.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is imported by; empty for an `impl`.
    pub names: Vec<String>,
    /// For an `impl`: its header without blanks, and what it defines.
    pub header: Option<Header>,
    pub is_type: bool,
    /// The attributes that decide whether it is there at all.
    pub cfg: String,
    pub source: Arc<CellText>,
    pub range: Range<usize>,
    pub edits: Vec<Edit>,
    pub values: Vec<FnValue>,
    /// What its functions decide by.
    pub conditions: Vec<Range<usize>>,
    pub mentions: BTreeSet<String>,
}

#[derive(Clone, Debug)]
pub struct Header {
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
}

/// `#[cfg(…)]` of an item, and of a test what that stands for.
fn conditional(item: &syn::Item, text: &str, base: usize) -> String {
    let attributes: &[syn::Attribute] = match item {
        syn::Item::Const(i) => &i.attrs,
        syn::Item::Static(i) => &i.attrs,
        syn::Item::Fn(i) => &i.attrs,
        syn::Item::Mod(i) => &i.attrs,
        syn::Item::Trait(i) => &i.attrs,
        syn::Item::Type(i) => &i.attrs,
        syn::Item::Enum(i) => &i.attrs,
        syn::Item::Struct(i) => &i.attrs,
        syn::Item::Union(i) => &i.attrs,
        _ => &[],
    };
    let one = |a: &syn::Attribute| match a.path().get_ident()?.to_string().as_str() {
        "cfg" => Some(text[bytes(a.span(), base)].to_owned()),
        "test" => Some("#[cfg(test)]".to_owned()),
        _ => None,
    };
    attributes.iter().filter_map(one).collect()
}

pub(super) fn persistent_item(cell: &Arc<CellText>, base: usize, item: &syn::Item) -> Option<Item> {
    let range = bytes(item.span(), base);
    let mut publish = Publish { base, edits: Vec::new() };
    let mut header = None;
    let mut is_type = false;
    let names = match item {
        syn::Item::Const(i) => publish.named(&i.vis, i.const_token.span, &i.ident),
        syn::Item::Static(i) => publish.named(&i.vis, i.static_token.span, &i.ident),
        syn::Item::Fn(i) => publish.named(&i.vis, i.sig.span(), &i.sig.ident),
        syn::Item::Mod(i) => {
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
                _ => None,
            });
            names.flatten().collect()
        }
        syn::Item::Impl(i) => {
            header = Some(impl_header(cell, base, i));
            if i.trait_.is_none() {
                i.items.iter().for_each(|i| publish.member(i));
            }
            Vec::new()
        }
        _ => Vec::new(),
    };
    let mut checks = Checks::new(base);
    checks.visit_item(item);
    let mut edits = publish.edits;
    edits.append(&mut checks.edits);
    edits.sort_by_key(|e| e.range.start);
    let mentions = scan::mentions(&cell.text[range.clone()]);
    let (values, conditions) = (checks.values, checks.conditions);
    let cfg = conditional(item, &cell.text, base);
    Some(Item { names, header, is_type, cfg, source: cell.clone(), range, edits, values, conditions, mentions })
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
    Header {
        text: text.split_whitespace().collect::<Vec<_>>().join(""),
        of_trait: i.trait_.as_ref().and_then(|t| t.1.segments.last()).map(|s| s.ident.to_string()),
        self_type,
        mentions: scan::mentions(text),
        members: members.collect(),
    }
}

/// Makes what a group defines visible to the cells after it.
struct Publish {
    base: usize,
    edits: Vec<Edit>,
}

impl Publish {
    fn named(&mut self, vis: &syn::Visibility, start: Span, ident: &syn::Ident) -> Vec<String> {
        self.make_public(vis, start);
        vec![ident.to_string()]
    }

    fn make_public(&mut self, vis: &syn::Visibility, start: Span) {
        match vis {
            syn::Visibility::Public(_) => {}
            syn::Visibility::Restricted(r) => {
                let range = bytes(r.span(), self.base);
                self.edits.push(Edit::replace(range, "pub"));
            }
            syn::Visibility::Inherited => {
                self.edits.push(Edit::insert(bytes(start, self.base).start, "pub "));
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
