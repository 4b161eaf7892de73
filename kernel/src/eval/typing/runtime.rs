//! What the runtime says of itself, as a catalog.
use super::catalog::{Catalog, Entry, Impl, Kind, Member, TypeDef};
use serde_json::Value;

/// The crate that every cell has, and the module all of whose names it has.
pub const CRATE: &str = "xlazy";
pub const PRELUDE: &str = "xlazy::prelude";

/// Its list of public names: name, kind, owner, signature, documentation.
pub fn catalog(names: &Value) -> Catalog {
    let mut out = Catalog::default();
    out.modules.entry(CRATE.to_owned()).or_default();
    let text = |v: &Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    let all = names.as_array().map(Vec::as_slice).unwrap_or_default();
    for n in all {
        let (name, kind, owner) = (text(n, "name"), text(n, "kind"), text(n, "owner"));
        let (signature, doc) = (text(n, "signature"), text(n, "doc"));
        if kind == "import" {
            import(&mut out, name, &signature);
            continue;
        }
        if owner.starts_with(char::is_uppercase) || kind == "impl" {
            continue;
        }
        let kind = Kind::of_word(&kind).unwrap_or(Kind::Function);
        // A macro is the whole crate's, whatever module writes it.
        let root = owner.is_empty() || kind == Kind::Macro;
        let module = if root { CRATE.to_owned() } else { format!("{CRATE}::{owner}") };
        let said = if signature.is_empty() { String::new() } else { format!("fn {signature}") };
        add_module(&mut out, &module);
        if matches!(kind, Kind::Struct | Kind::Enum | Kind::Trait) {
            let (parameters, members, above, text) = Default::default();
            let doc = doc.clone();
            out.add_type(TypeDef {
                path: format!("{module}::{name}"),
                kind,
                parameters,
                members,
                target: None,
                above,
                doc,
                text,
            });
        }
        out.add_entry(&module, Entry { name, kind, signature: said, doc, elsewhere: None });
    }
    for n in all {
        let (name, kind, owner) = (text(n, "name"), text(n, "kind"), text(n, "owner"));
        let (signature, doc) = (text(n, "signature"), text(n, "doc"));
        let path = out.named.get(&owner).and_then(|p| p.first()).cloned();
        match (&*kind, path) {
            ("impl", _) => out.add_impl(Impl::new(&name, &format!("{CRATE}::"))),
            ("field" | "variant", Some(path)) => {
                let kind = if kind == "field" { Kind::Field } else { Kind::Variant };
                let signature = if signature.is_empty() { name.clone() } else { signature };
                let member = Member { name, kind, signature, doc };
                out.types.get_mut(&path).into_iter().for_each(|t| t.members.push(member.clone()));
            }
            ("import", _) => {}
            (_, path) if owner.starts_with(char::is_uppercase) => {
                let member = Member::read(&format!("fn {signature}"), &doc);
                match path.and_then(|p| out.types.get_mut(&p)).filter(|t| t.kind == Kind::Trait) {
                    Some(of_trait) => of_trait.members.push(member),
                    None => {
                        let mut block = Impl::new(&format!("impl {owner}"), &format!("{CRATE}::"));
                        block.members.push(member);
                        out.add_impl(block);
                    }
                }
            }
            _ => {}
        }
    }
    out
}

/// One of the prelude's names. What it is built on has no name of its own in a cell.
fn import(out: &mut Catalog, name: String, path: &str) {
    let path = path.trim_end_matches("::*");
    let path = match path.strip_prefix("crate::") {
        Some(inside) => format!("{CRATE}::{inside}"),
        None => format!("{CRATE}::{}", path.rsplit("::").next().unwrap_or_default()),
    };
    add_module(out, PRELUDE);
    if name == "*" {
        out.modules.entry(PRELUDE.to_owned()).or_default().globs.push(path);
        return;
    }
    // What a private module defines is told of where it is public.
    let of = |path: &str| path.rsplit_once("::").and_then(|(module, _)| out.modules.get(module));
    let known = of(&path).is_some_and(|m| m.entries.iter().any(|e| e.name == name));
    let path = if known || out.modules.contains_key(&path) { path } else { format!("{CRATE}::{name}") };
    let (signature, doc) = Default::default();
    out.add_entry(PRELUDE, Entry { name, kind: Kind::Type, signature, doc, elsewhere: Some(path) });
}

fn add_module(out: &mut Catalog, path: &str) {
    if out.modules.contains_key(path) {
        return;
    }
    out.modules.entry(path.to_owned()).or_default();
    if let Some((parent, name)) = path.rsplit_once("::") {
        add_module(out, parent);
        let (signature, doc) = Default::default();
        out.add_entry(parent, Entry { name: name.to_owned(), kind: Kind::Module, signature, doc, elsewhere: None });
    }
}
