//! Functions of the notebook that make a value and do nothing besides, such as most a `new`: what is left open of their value may be
//! made later, as `Vec::new()` may.
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::elsewhere::Seen;
use crate::eval::parse::open::{is_constructor, is_of_its_argument, is_variant};
use crate::eval::parse::parsed::{Parsed, Use};
use crate::eval::parse::syntax::{expressions, ident};
use crate::eval::text::depth;
use syn::{Block, Expr, ImplItem, Item, Pat, Stmt};

/// How many functions may call each other.
const MOST: usize = 8;

/// What functions of other crates and of the standard library are called that make a value of their arguments and do nothing else.
const CONSTRUCTORS: [&str; 8] = ["bounded", "channel", "default", "empty", "from", "new", "unbounded", "with_capacity"];

/// Whether a name is imported from a crate that `:dep` brought.
pub(super) fn of_another_crate(u: &Use, defs: &Definitions) -> bool {
    let path = u.text.strip_prefix("use ").unwrap_or_default().trim_start_matches("::");
    path.split("::").next().is_some_and(|head| is_crate(head, defs))
}

/// Whether a macro seems to be one of a crate that `:dep` brought: by its path, its import, or since such a crate's glob may bring it.
pub(super) fn is_of_another_crate(seen: &Seen, parsed: &Parsed, defs: &Definitions) -> bool {
    let first = seen.path.trim_start_matches("::").split("::").next().unwrap_or_default();
    let brings = |u: &&Use| u.binds == first || u.binds.ends_with('*') && first == seen.name;
    is_crate(first, defs) || parsed.uses.iter().chain(&*defs.uses).filter(brings).any(|u| of_another_crate(u, defs))
}

fn is_crate(name: &str, defs: &Definitions) -> bool {
    defs.deps.as_ref().is_some_and(|deps| deps.crates().any(|(of, _)| of == name))
}

/// `slab::Slab::new`, or what of it is imported, by name or with all there is.
fn makes_elsewhere(path: &str, defs: &Definitions) -> bool {
    let words: Vec<&str> = path.split("::").collect();
    let (first, last) = (words[0], words[words.len() - 1]);
    let binds = |u: &Use| u.binds == first || u.text.ends_with("::*;") && first.starts_with(char::is_uppercase);
    let imported = |u: &Use| binds(u) && of_another_crate(u, defs);
    CONSTRUCTORS.contains(&last)
        && !defs.has(first)
        && (words.len() > 1 && is_crate(first, defs) || defs.uses.iter().any(imported))
}

/// Whether what is called by this path, `Stack::new` or `make` or `Wrapper`, makes a value and does nothing else.
pub(super) fn only_makes(path: &str, defs: &Definitions) -> bool {
    makes_elsewhere(path, defs) || depth::as_people_write(path, || called(path, defs, MOST))
}

fn called(path: &str, defs: &Definitions, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let items = defs.items().map(|(_, item)| item);
    match path.split_once("::") {
        Some((of, name)) => {
            if let Some(alias) = alias(of, defs) {
                return is_constructor(&alias) || called(&format!("{alias}::{name}"), defs, depth);
            }
            // Of a type parameter or of the standard library's types: then it is one of the notebook's `Default`s or of those.
            if name == "default" && !defs.has(of) {
                let defaults = items.filter(|i| i.mentions.contains("Default")).filter_map(|i| parsed(i.text()));
                return defaults.filter(is_default).all(|item| method(&item, "", name, defs, depth));
            }
            if CONSTRUCTORS.contains(&name) && defs.uses.iter().any(|u| u.binds == of && u.is_of_std()) {
                return true;
            }
            let mentions =
                items.filter(|i| i.mentions.contains(of) && (i.mentions.contains(name) || name == "default"));
            mentions.filter_map(|i| parsed(i.text())).any(|item| method(&item, of, name, defs, depth))
        }
        None => match defs.value_named(path).and_then(|(_, item)| parsed(item.text())) {
            Some(Item::Struct(_)) => true,
            Some(Item::Fn(f)) if f.sig.asyncness.is_none() => makes(&f.block, "", defs, depth),
            Some(_) => false,
            // `channel` by itself is as `std::sync::mpsc::channel`.
            None => defs.uses.iter().any(|u| u.binds == path && u.is_of_std()),
        },
    }
}

/// The type that `type Graph<K, V> = BTreeMap<K, Vec<V>>;` stands for.
fn alias(name: &str, defs: &Definitions) -> Option<String> {
    let Item::Type(of) = parsed(defs.type_named(name)?.1.text())? else { return None };
    let syn::Type::Path(path) = *of.ty else { return None };
    Some(path.path.segments.last()?.ident.to_string())
}

/// `impl Default for Stack`.
fn is_default(item: &Item) -> bool {
    let Item::Impl(syn::ItemImpl { trait_: Some((_, path, _)), .. }) = item else { return false };
    path.segments.last().is_some_and(|s| s.ident == "Default")
}

fn parsed(text: &str) -> Option<Item> {
    depth::fits(text).then(|| syn::parse_str(text).ok()).flatten()
}

/// Whether the item has that function of the type, of any where none is said, or derives it.
fn method(item: &Item, of: &str, name: &str, defs: &Definitions, depth: usize) -> bool {
    match item {
        Item::Impl(i) => {
            let own =
                matches!(&*i.self_ty, syn::Type::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == of));
            (own || of.is_empty())
                && i.items.iter().any(|item| match item {
                    ImplItem::Fn(f) if f.sig.ident == name && f.sig.asyncness.is_none() => {
                        makes(&f.block, of, defs, depth)
                    }
                    _ => false,
                })
        }
        Item::Struct(syn::ItemStruct { ident, attrs, .. }) | Item::Enum(syn::ItemEnum { ident, attrs, .. })
            if name == "default" && ident == of =>
        {
            let words =
                |a: &syn::Attribute| a.path().is_ident("derive") && quote::quote!(#a).to_string().contains("Default");
            attrs.iter().any(words)
        }
        _ => false,
    }
}

fn makes(block: &Block, own: &str, defs: &Definitions, depth: usize) -> bool {
    let of = |e: &Expr| value(e, own, defs, depth);
    block.stmts.iter().all(|statement| match statement {
        Stmt::Local(l) => {
            let plain = matches!(l.pat, Pat::Ident(_) | Pat::Type(_));
            plain && l.init.as_ref().is_none_or(|i| i.diverge.is_none() && of(&i.expr))
        }
        Stmt::Expr(e, None) => of(e) || grows(e, own, defs, depth),
        Stmt::Expr(e, Some(_)) => grows(e, own, defs, depth),
        _ => false,
    })
}

/// Whether it does nothing but grow a variable, which is the function's own.
fn grows(e: &Expr, own: &str, defs: &Definitions, depth: usize) -> bool {
    const METHODS: [&str; 6] = ["extend", "insert", "push", "push_back", "push_str", "resize"];
    let of = |e: &Expr| value(e, own, defs, depth);
    match e {
        Expr::MethodCall(m) => {
            METHODS.contains(&&*m.method.to_string())
                && ident(&m.receiver).is_some_and(|name| name.to_string().starts_with(char::is_lowercase))
                && m.args.iter().all(of)
        }
        Expr::ForLoop(f) => {
            let ends = matches!(&*f.expr, Expr::Range(r) if r.end.is_some());
            ends && of(&f.expr) && makes(&f.body, own, defs, depth)
        }
        _ => false,
    }
}

/// Whether an expression in such a function has no effect.
fn value(e: &Expr, own: &str, defs: &Definitions, depth: usize) -> bool {
    let of = |e: &Expr| value(e, own, defs, depth);
    match e {
        // Parameters, constants and what borrows nothing.
        Expr::Lit(_) | Expr::Path(_) | Expr::Closure(_) => true,
        Expr::Paren(p) => of(&p.expr),
        Expr::Reference(r) => r.mutability.is_none() && of(&r.expr),
        Expr::Unary(u) => of(&u.expr),
        Expr::Cast(c) => of(&c.expr),
        Expr::Field(f) => of(&f.base),
        Expr::Binary(b) => of(&b.left) && of(&b.right),
        Expr::Range(r) => r.start.iter().chain(&r.end).all(|e| of(e)),
        Expr::Array(a) => a.elems.iter().all(of),
        Expr::Tuple(t) => t.elems.iter().all(of),
        Expr::Repeat(r) => of(&r.expr) && of(&r.len),
        Expr::Struct(s) => s.fields.iter().all(|f| of(&f.expr)) && s.rest.as_ref().is_none_or(|rest| of(rest)),
        Expr::Block(b) => makes(&b.block, own, defs, depth),
        Expr::Macro(m) if m.mac.path.is_ident("vec") => {
            expressions("vec", &m.mac).is_some_and(|all| all.iter().all(|(e, _)| of(e)))
        }
        Expr::MethodCall(m) => {
            (is_of_its_argument(&m.method.to_string()) || m.method == "clone")
                && of(&m.receiver)
                && m.args.iter().all(of)
        }
        Expr::Call(c) => {
            let Expr::Path(p) = &*c.func else { return false };
            let words: Vec<String> = p.path.segments.iter().map(|s| s.ident.to_string()).collect();
            let path = words.join("::").replace("Self", own);
            let known = match &words[..] {
                [one] => is_variant(one) || called(&path, defs, depth),
                [first, ..] => is_constructor(first) || called(&path, defs, depth),
                [] => false,
            };
            known && c.args.iter().all(of)
        }
        _ => false,
    }
}
