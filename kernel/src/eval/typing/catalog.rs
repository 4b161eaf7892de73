//! What there is: modules with their items, types with what they have, `impl` blocks, whoever wrote them.
use super::ty::{Ty, bounds, last};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Module,
    Struct,
    Enum,
    Union,
    Trait,
    Function,
    Method,
    Macro,
    Constant,
    Static,
    Type,
    Primitive,
    Field,
    Variant,
    Keyword,
}

impl Kind {
    /// As front ends show it.
    pub fn word(self) -> &'static str {
        use Kind::*;
        match self {
            Module => "module",
            Struct => "struct",
            Enum => "enum",
            Union => "union",
            Trait => "trait",
            Function => "function",
            Method => "method",
            Macro => "macro",
            Constant => "constant",
            Static => "static",
            Type => "type",
            Primitive => "primitive",
            Field => "field",
            Variant => "variant",
            Keyword => "keyword",
        }
    }

    pub fn of_word(word: &str) -> Option<Kind> {
        use Kind::*;
        const ALL: [Kind; 15] = [
            Module, Struct, Enum, Union, Trait, Function, Method, Macro, Constant, Static, Type, Primitive, Field,
            Variant, Keyword,
        ];
        ALL.into_iter().find(|k| k.word() == word)
    }
}

/// What a type or a trait has.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub name: String,
    pub kind: Kind,
    /// `fn push(&mut self, value: T)`, `width: usize`, `Circle { radius: f64 }`.
    pub signature: String,
    pub doc: String,
}

impl Member {
    /// A function with or without `self`, or a constant, from its signature.
    pub fn read(signature: &str, doc: &str) -> Member {
        let kind = match signature.find("fn ") {
            _ if signature.starts_with("const ") && !signature.contains("fn ") => Kind::Constant,
            _ if signature.starts_with("type ") => Kind::Type,
            Some(_) if takes_self(signature) => Kind::Method,
            _ => Kind::Function,
        };
        let start = signature.find("fn ").map_or_else(|| signature.find(' ').map_or(0, |i| i + 1), |i| i + 3);
        let name = signature[start..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        Member { name, kind, signature: signature.to_owned(), doc: doc.to_owned() }
    }

    /// Of a variant its fields, numbers where they have no names.
    pub fn fields(&self) -> Vec<Member> {
        let parsed = syn::parse_str::<syn::Variant>(&self.signature);
        let all = parsed.iter().flat_map(|v| &v.fields).enumerate();
        let one = |(i, f): (usize, &syn::Field)| {
            let name = f.ident.as_ref().map_or_else(|| i.to_string(), |n| n.to_string());
            let signature = format!("{name}: {}", Ty::of(&f.ty));
            Member { name, kind: Kind::Field, signature, doc: String::new() }
        };
        all.map(one).collect()
    }
}

fn takes_self(signature: &str) -> bool {
    let Some(open) = argument_list(signature) else { return false };
    let first = signature[open + 1..].trim_start();
    let first = first.trim_start_matches('&').trim_start();
    let first = match first.strip_prefix('\'') {
        Some(lifetime) => lifetime.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').trim_start(),
        None => first,
    };
    let first = first.strip_prefix("mut ").unwrap_or(first);
    first.strip_prefix("self").is_some_and(|r| !r.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Where the arguments of a function's signature begin, behind its type parameters.
pub fn argument_list(signature: &str) -> Option<usize> {
    let mut depth = 0;
    let mut before = ' ';
    for (i, c) in signature.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            '(' if depth == 0 => return Some(i),
            _ => {}
        }
        before = c;
    }
    None
}

/// An item of a module.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub kind: Kind,
    pub signature: String,
    pub doc: String,
    /// Where it is defined, when not here; it may be of any kind then.
    pub elsewhere: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Module {
    pub entries: Vec<Entry>,
    /// Modules all of whose names it has.
    pub globs: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct TypeDef {
    pub path: String,
    pub kind: Kind,
    pub parameters: Vec<String>,
    /// Fields and variants; what a trait has.
    pub members: Vec<Member>,
    /// Of an alias, the type that it stands for; of a trait, its supertraits.
    pub target: Option<Ty>,
    pub above: Vec<String>,
    pub doc: String,
    pub text: String,
}

/// An `impl` block; its head is read when it is asked for.
#[derive(Debug, Default)]
pub struct Impl {
    text: String,
    /// The path of the type that it is of, or the crate that it stands in.
    pub of: String,
    pub members: Vec<Member>,
    /// What `Deref` leads to.
    pub target: Option<String>,
    head: OnceLock<Option<Head>>,
}

#[derive(Clone, Debug)]
pub struct Head {
    pub parameters: Vec<String>,
    /// The trait's name.
    pub of_trait: Option<String>,
    pub self_ty: Ty,
    /// Types that must have these traits.
    pub wants: Vec<(Ty, String)>,
}

impl Impl {
    pub fn new(head: &str, of: &str) -> Impl {
        Impl { text: head.to_owned(), of: of.to_owned(), ..Impl::default() }
    }

    pub fn head(&self) -> Option<&Head> {
        self.head.get_or_init(|| head(&self.text)).as_ref()
    }
}

fn head(text: &str) -> Option<Head> {
    let parsed: syn::ItemImpl = syn::parse_str(&format!("{text} {{}}")).ok()?;
    let mut parameters = Vec::new();
    let mut wants = Vec::new();
    for p in &parsed.generics.params {
        match p {
            syn::GenericParam::Type(t) => {
                let name = t.ident.to_string();
                let ty = Ty::Path(name.clone(), Vec::new());
                wants.extend(bounds(t.bounds.iter()).into_iter().map(|(b, _)| (ty.clone(), last(&b).to_owned())));
                parameters.push(name);
            }
            syn::GenericParam::Const(c) => parameters.push(c.ident.to_string()),
            syn::GenericParam::Lifetime(_) => {}
        }
    }
    for p in parsed.generics.where_clause.iter().flat_map(|w| &w.predicates) {
        if let syn::WherePredicate::Type(t) = p {
            let ty = Ty::of(&t.bounded_ty);
            wants.extend(bounds(t.bounds.iter()).into_iter().map(|(b, _)| (ty.clone(), last(&b).to_owned())));
        }
    }
    let of_trait = parsed.trait_.as_ref().map(|(_, path, _)| path.segments.last().map(|s| s.ident.to_string()));
    Some(Head { parameters, of_trait: of_trait.flatten(), self_ty: Ty::of(&parsed.self_ty), wants })
}

/// All that one source says: the standard library, a crate, the cells.
#[derive(Debug, Default)]
pub struct Catalog {
    pub modules: HashMap<String, Module>,
    pub types: HashMap<String, TypeDef>,
    /// Paths of types by their last name.
    pub named: HashMap<String, Vec<String>>,
    /// `impl` blocks by the name of what they are of.
    pub impls: HashMap<String, Vec<Impl>>,
    /// Those of any type.
    pub blanket: Vec<Impl>,
    /// The traits that they are of, once somebody has asked.
    given: OnceLock<HashSet<String>>,
}

impl Catalog {
    /// Whether any `impl` is of that trait.
    pub fn gives(&self, of_trait: &str) -> bool {
        let all = || self.impls.values().flatten().chain(&self.blanket);
        self.given.get_or_init(|| all().filter_map(|i| i.head()?.of_trait.clone()).collect()).contains(of_trait)
    }

    pub fn add_type(&mut self, def: TypeDef) {
        self.named.entry(last(&def.path).to_owned()).or_default().push(def.path.clone());
        self.types.insert(def.path.clone(), def);
    }

    pub fn add_entry(&mut self, module: &str, entry: Entry) {
        self.modules.entry(module.to_owned()).or_default().entries.push(entry);
    }

    /// An `impl` under the name of what it is of; one of a parameter is of any type.
    pub fn add_impl(&mut self, block: Impl) {
        let Some(head) = block.head() else { return };
        match &head.self_ty {
            Ty::Path(name, args) if args.is_empty() && head.parameters.contains(name) => self.blanket.push(block),
            ty => {
                let key = ty.head().unwrap_or("dyn").to_owned();
                self.impls.entry(key).or_default().push(block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_say_what_they_are_of() {
        let read = |signature: &str| (Member::read(signature, "").name, Member::read(signature, "").kind);
        assert_eq!(read("fn push(&mut self, value: T)"), ("push".into(), Kind::Method));
        assert_eq!(read("fn get<'a>(&'a self) -> &'a T"), ("get".into(), Kind::Method));
        assert_eq!(read("fn map<F: Fn(i32) -> i32>(self, f: F)"), ("map".into(), Kind::Method));
        assert_eq!(read("unsafe extern \"C\" fn from_raw(selfish: u8)"), ("from_raw".into(), Kind::Function));
        assert_eq!(read("const MAX: Self = 3"), ("MAX".into(), Kind::Constant));
    }

    #[test]
    fn heads_are_read() {
        let block = Impl::new("impl<T, const N: usize> Clone for [T; N] where T: Clone,", "");
        let head = block.head().unwrap();
        assert_eq!((head.of_trait.as_deref(), head.parameters.len()), (Some("Clone"), 2));
        assert_eq!(head.wants, [(Ty::Path("T".into(), Vec::new()), "Clone".into())]);
    }
}
