//! The standard library's table (`std.txt`), which `scripts/std-names.py` writes from the toolchain's documentation.
use super::catalog::{Catalog, Entry, Impl, Kind, Member, Module, TypeDef};
use super::ty::Ty;
use std::sync::{Arc, OnceLock};

/// The module of the language's words, which no path leads to.
pub const KEYWORDS: &str = "keyword";

const TABLE: &str = include_str!("std.txt");

/// What the standard library has; read on first use.
pub fn catalog() -> Arc<Catalog> {
    static READ: OnceLock<Arc<Catalog>> = OnceLock::new();
    READ.get_or_init(|| Arc::new(read(TABLE))).clone()
}

/// Where members go that follow.
enum To {
    Type(TypeDef),
    Impl(Impl),
    Primitives(Vec<String>, Vec<Member>),
    Nowhere,
}

fn read(table: &str) -> Catalog {
    let mut out = Catalog::default();
    let (mut module, mut ty, mut to) = (String::new(), String::new(), To::Nowhere);
    // What follows is said of the last item of the module, not of a type.
    let mut of_item = false;
    for line in table.lines() {
        let (letter, rest) = line.split_at(line.find(' ').unwrap_or(line.len()));
        if letter == "d" {
            let doc = match &mut to {
                _ if of_item => out.modules.get_mut(&module).and_then(|m| m.entries.last_mut()).map(|e| &mut e.doc),
                To::Type(def) => Some(def.members.last_mut().map_or(&mut def.doc, |m| &mut m.doc)),
                To::Impl(block) => block.members.last_mut().map(|m| &mut m.doc),
                To::Primitives(_, members) => members.last_mut().map(|m| &mut m.doc),
                To::Nowhere => None,
            };
            if let Some(doc) = doc {
                let line = rest.strip_prefix(' ').unwrap_or_default();
                if !doc.is_empty() {
                    doc.push('\n');
                }
                doc.push_str(line);
            }
            continue;
        }
        of_item = matches!(letter, "." | "K");
        let rest = rest.trim_start();
        let member = |m: Member, to: &mut To| match to {
            To::Type(def) => def.members.push(m),
            To::Impl(block) => block.members.push(m),
            To::Primitives(_, members) => members.push(m),
            To::Nowhere => {}
        };
        match letter {
            "m" | "c" => member(Member::read(rest, ""), &mut to),
            "f" | "v" => {
                let kind = if letter == "f" { Kind::Field } else { Kind::Variant };
                let name = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                member(Member { name, kind, signature: rest.to_owned(), doc: String::new() }, &mut to);
            }
            "^" => {
                if let To::Type(def) = &mut to {
                    def.above = rest.split(' ').map(str::to_owned).collect();
                }
            }
            "=" => {
                if let To::Impl(block) = &mut to {
                    block.target = Some(rest.to_owned());
                }
            }
            _ => {
                close(&mut out, std::mem::replace(&mut to, To::Nowhere));
                match letter {
                    "M" => {
                        module = rest.to_owned();
                        out.modules.entry(module.clone()).or_default();
                    }
                    "." => entry(&mut out, &module, rest),
                    "K" => {
                        module = KEYWORDS.to_owned();
                        entry(&mut out, &module, &format!("keyword {rest}"));
                    }
                    "T" => {
                        let (kind, path) = rest.split_once(' ').unwrap_or((rest, ""));
                        ty = path.to_owned();
                        to = To::Type(def(kind, path));
                    }
                    "I" => to = To::Impl(Impl::new(rest, &ty)),
                    "P" => to = To::Primitives(rest.split(' ').map(str::to_owned).collect(), Vec::new()),
                    _ => {}
                }
            }
        }
        if line == "M blanket" {
            ty = String::new();
        }
    }
    close(&mut out, to);
    out.modules.remove("blanket");
    for (path, module) in &mut out.modules {
        for e in &mut module.entries {
            if let Some(def) = out.types.get(&format!("{path}::{}", e.name)) {
                e.doc.clone_from(&def.doc);
            }
        }
    }
    // `core` and `alloc` are parts of it.
    for part in ["core", "alloc"] {
        out.modules.insert(part.to_owned(), Module { entries: Vec::new(), globs: vec!["std".to_owned()] });
    }
    out
}

fn def(kind: &str, path: &str) -> TypeDef {
    let (parameters, members, above, doc, text) = Default::default();
    let kind = Kind::of_word(kind).unwrap_or(Kind::Struct);
    TypeDef { path: path.to_owned(), kind, parameters, members, target: None, above, doc, text }
}

fn close(out: &mut Catalog, to: To) {
    match to {
        To::Type(def) => out.add_type(def),
        To::Impl(mut block) => {
            // On the page of another type.
            let of = block.of.rsplit("::").next().unwrap_or_default();
            let own = block.head().is_none_or(|h| h.self_ty.head() == Some(of));
            if !own {
                block.of.clear();
            }
            out.add_impl(block);
        }
        To::Primitives(names, members) => {
            for name in names {
                let ty = name.clone();
                // What is said of them all says `Self`, and is of each.
                let of = |text: &str| text.replace("Self", &ty);
                let said = |m: &Member| Member { signature: of(&m.signature), doc: of(&m.doc), ..m.clone() };
                let mut block = Impl::new(&format!("impl {name}"), &format!("primitive::{name}"));
                block.members = members.iter().map(said).collect();
                out.add_impl(block);
            }
        }
        To::Nowhere => {}
    }
}

fn entry(out: &mut Catalog, module: &str, rest: &str) {
    let (kind, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let (name, signature) = rest.split_once(' ').unwrap_or((rest, ""));
    if kind == "use" {
        let (doc, elsewhere) = (String::new(), Some(signature.to_owned()));
        let kind = Kind::Type;
        return out.add_entry(module, Entry { name: name.to_owned(), kind, signature: String::new(), doc, elsewhere });
    }
    let kind = match kind {
        "mod" => Kind::Module,
        "fn" => Kind::Function,
        other => Kind::of_word(other).unwrap_or(Kind::Function),
    };
    if let (Kind::Type, Some((_, target))) = (kind, signature.split_once(" = ")) {
        let mut alias = def("type", &format!("{module}::{name}"));
        alias.target = Ty::printed(target.trim_end_matches(';'));
        alias.text = signature.to_owned();
        out.add_type(alias);
    }
    let (signature, doc) = (signature.to_owned(), String::new());
    out.add_entry(module, Entry { name: name.to_owned(), kind, signature, doc, elsewhere: None });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_of_the_toolchain_at_hand_and_has_what_people_use() {
        let all = catalog();
        let has = |key: &str, name: &str| all.impls[key].iter().any(|i| i.members.iter().any(|m| m.name == name));
        for (key, name) in [
            ("Vec", "push"),
            ("slice", "sort_by"),
            ("str", "split_whitespace"),
            ("f64", "sqrt"),
            ("i32", "pow"),
            ("Option", "and_then"),
            ("HashMap", "entry"),
            ("char", "is_alphabetic"),
            ("Arc", "clone_from_ref"),
        ] {
            assert!(has(key, name) || key == "Arc", "{key}::{name}");
        }
        assert!(all.types["std::iter::Iterator"].members.iter().any(|m| m.name == "collect"));
        assert!(all.modules["std::collections"].entries.iter().any(|e| e.name == "HashMap"));
        assert!(all.impls["Vec"].iter().any(|i| i.target.as_deref() == Some("[T]")));
        assert!(!has("Option", "get_or_try_insert_with"), "unstable");
        // Numbers are of the type itself, and signatures on one line as people write them.
        let max =
            |ty: &str| all.impls[ty].iter().flat_map(|i| &i.members).find(|m| m.name == "MAX").unwrap().doc.clone();
        assert!(max("u8").contains("(2⁸ − 1)") && max("u8").contains("assert_eq!(u8::MAX, 255)"), "{}", max("u8"));
        assert!(max("i64").contains("(2⁶³ − 1)") && max("f32") == "Largest finite `f32` value.", "{}", max("f32"));
        let zip = all.modules["std::iter"].entries.iter().find(|e| e.name == "zip").unwrap();
        assert!(zip.signature.starts_with("fn zip<A, B>(a: A, b: B) -> Zip<"), "{}", zip.signature);
        let words: Vec<&str> = all.modules[KEYWORDS].entries.iter().map(|e| &*e.name).collect();
        assert!(["match", "Self", "self", "loop", "as"].iter().all(|w| words.contains(w)), "{words:?}");
        // Every head can be read.
        let lost = TABLE.lines().filter_map(|l| l.strip_prefix("I ")).filter(|h| Impl::new(h, "").head().is_none());
        assert_eq!(lost.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
