//! From Rust's source to a catalog: the items of cells, and those of a crate with all its files.
use super::catalog::{Catalog, Entry, Impl, Kind, Member, TypeDef};
use super::ty::{Ty, bounds, last};
use crate::eval::parse::syntax::one_line;
use proc_macro2::{TokenStream, TokenTree};
use std::ops::Range;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;

/// Nobody has more files, nor longer ones.
const MOST_FILES: usize = 600;
const LONGEST: u64 = 2 << 20;

/// Adds a text of items, as cells have them: everything counts, public or not.
pub fn add_cell(out: &mut Catalog, text: &str) {
    if let Ok(file) = syn::parse_file(text) {
        let mut reader = Reader { out, root: String::new(), all: true, own: false, depth: 0, files: MOST_FILES };
        reader.items(&file.items, "", text, None);
    }
}

/// Adds the items among a block's statements.
pub fn add_block(out: &mut Catalog, block: &syn::Block, text: &str) {
    let items = block.stmts.iter().filter_map(|s| if let syn::Stmt::Item(i) = s { Some(i) } else { None });
    let mut reader = Reader { out, root: String::new(), all: true, own: true, depth: 0, files: MOST_FILES };
    items.for_each(|i| reader.item(i, "", text, None));
}

/// What a crate makes public, from its first file on.
pub fn read_crate(name: &str, root: &Path) -> Catalog {
    let mut out = Catalog::default();
    out.modules.entry(name.to_owned()).or_default();
    let mut reader = Reader { out: &mut out, root: name.to_owned(), all: false, own: false, depth: 0, files: 0 };
    reader.file(root, name, root.parent().unwrap_or(Path::new("")));
    settle(&mut out);
    out
}

/// What was written relative to a module leads into the crate where such a name is there, and else to another crate.
pub fn settle(out: &mut Catalog) {
    let known: std::collections::HashSet<String> = out
        .modules
        .iter()
        .flat_map(|(path, m)| m.entries.iter().map(move |e| format!("{path}::{}", e.name)))
        .chain(out.modules.keys().cloned())
        .chain(out.types.keys().cloned())
        .collect();
    let settled = |module: &str, path: &str| {
        let first = path.split("::").next().unwrap_or_default();
        let inside = format!("{module}::{first}");
        // An import of the same name is not what it leads to itself.
        if known.contains(&inside) && (path.contains("::") || inside != format!("{module}::{path}")) {
            format!("{module}::{path}")
        } else {
            path.to_owned()
        }
    };
    for (name, module) in &mut out.modules {
        for entry in &mut module.entries {
            if let Some(path) = entry.elsewhere.as_ref().and_then(|e| e.strip_prefix('~')) {
                entry.elsewhere = Some(settled(name, path));
            }
        }
        for glob in &mut module.globs {
            if let Some(path) = glob.strip_prefix('~') {
                *glob = match known.contains(&format!("{name}::{path}")) {
                    true => format!("{name}::{path}"),
                    false => path.to_owned(),
                };
            }
        }
    }
}

struct Reader<'a> {
    out: &'a mut Catalog,
    /// The crate; empty for cells.
    root: String,
    all: bool,
    /// It is the cell at hand, which may stand in its own modules.
    own: bool,
    /// How many modules of a cell are around.
    depth: usize,
    files: usize,
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// The text of a doc comment.
pub fn doc_of(attrs: &[syn::Attribute]) -> String {
    let line = |a: &syn::Attribute| match &a.meta {
        syn::Meta::NameValue(n) if n.path.is_ident("doc") => match &n.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. }) => Some(s.value()),
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<String> = attrs.iter().filter_map(line).collect();
    // Lines of `/** … */` may begin with a star, and with all that they are indented by.
    let written = |l: &str| l.strip_prefix(' ').unwrap_or(l).to_owned();
    let starred = |l: &str| l.trim_start().strip_prefix('*').map_or_else(|| l.trim_start().to_owned(), written);
    let one = |l: &String| match l.split_once('\n') {
        Some((first, rest)) => {
            format!("{}\n{}", written(first), rest.lines().map(starred).collect::<Vec<_>>().join("\n"))
        }
        None => written(l),
    };
    lines.iter().map(one).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn hidden(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|a| {
        let list = match &a.meta {
            syn::Meta::List(l) if l.path.is_ident("doc") || l.path.is_ident("cfg") => l.tokens.to_string(),
            _ => return false,
        };
        list == "hidden" || list == "test"
    })
}

fn derives(attrs: &[syn::Attribute]) -> Vec<String> {
    let mut out = Vec::new();
    for a in attrs.iter().filter(|a| a.path().is_ident("derive")) {
        let _ = a.parse_nested_meta(|m| {
            out.extend(m.path.segments.last().map(|s| s.ident.to_string()));
            Ok(())
        });
    }
    out
}

/// A piece of code on one line, arguments as they are written there.
pub fn slice(text: &str, range: Range<usize>) -> String {
    let line = text.get(range).map(one_line).unwrap_or_default();
    [("( ", "("), (", )", ")"), (" )", ")"), ("[ ", "["), (", ]", "]")]
        .iter()
        .fold(line, |l, (from, to)| l.replace(from, to))
}

/// What stands behind the name of a struct or of a variant.
fn fields(text: &str, all: &syn::Fields) -> String {
    let gap = if matches!(all, syn::Fields::Named(_)) { " " } else { "" };
    format!("{gap}{}", said(text, all))
}

pub fn said(text: &str, what: &impl Spanned) -> String {
    slice(text, what.span().byte_range())
}

/// `macro_rules! tw { ($x:expr) => …; () => … }`: what each arm takes.
pub fn arms(name: &str, text: &str, tokens: &TokenStream) -> String {
    let mut arms = Vec::new();
    let mut all = tokens.clone().into_iter().peekable();
    while let Some(TokenTree::Group(taken)) = all.next() {
        let taken = slice(text, taken.span().byte_range());
        arms.push(format!("{taken} => …"));
        // Up to the semicolon behind what it makes.
        while all.peek().is_some_and(|t| !matches!(t, TokenTree::Punct(p) if p.as_char() == ';')) {
            all.next();
        }
        all.next();
    }
    format!("macro_rules! {name} {{ {} }}", arms.join("; "))
}

impl Reader<'_> {
    fn visible(&self, vis: &syn::Visibility) -> bool {
        // What a module of an earlier cell keeps to itself nobody can name.
        let here = self.own || self.depth == 0 || !matches!(vis, syn::Visibility::Inherited);
        self.all && here || matches!(vis, syn::Visibility::Public(_))
    }

    /// A module's file; `folder` is where files of its modules are.
    fn file(&mut self, path: &Path, module: &str, folder: &Path) {
        self.files += 1;
        let short = path.metadata().is_ok_and(|m| m.is_file() && m.len() < LONGEST);
        if self.files > MOST_FILES || !short {
            return;
        }
        let Ok(text) = std::fs::read_to_string(path) else { return };
        if let Ok(file) = syn::parse_file(&text) {
            self.items(&file.items, module, &text, Some(folder));
        }
    }

    fn items(&mut self, items: &[syn::Item], module: &str, text: &str, folder: Option<&Path>) {
        for item in items {
            self.item(item, module, text, folder);
        }
    }

    fn entry(&mut self, module: &str, name: &syn::Ident, kind: Kind, signature: String, attrs: &[syn::Attribute]) {
        let (name, doc) = (name.to_string(), doc_of(attrs));
        self.out.add_entry(module, Entry { name, kind, signature, doc, elsewhere: None });
    }

    fn item(&mut self, item: &syn::Item, module: &str, text: &str, folder: Option<&Path>) {
        use syn::Item;
        match item {
            Item::Struct(i) if !hidden(&i.attrs) => {
                let members = self.fields(i.fields.iter(), text);
                let source = format!("struct {}{}{}", i.ident, said(text, &i.generics), fields(text, &i.fields));
                self.define(&i.vis, &i.ident, Kind::Struct, &i.generics, &i.attrs, module, members, source);
            }
            Item::Union(i) if !hidden(&i.attrs) => {
                let members = self.fields(i.fields.named.iter(), text);
                self.define(&i.vis, &i.ident, Kind::Union, &i.generics, &i.attrs, module, members, String::new());
            }
            Item::Enum(i) if !hidden(&i.attrs) => {
                let one = |v: &syn::Variant| Member {
                    name: v.ident.to_string(),
                    kind: Kind::Variant,
                    signature: format!("{}{}", v.ident, fields(text, &v.fields)),
                    doc: doc_of(&v.attrs),
                };
                let members = i.variants.iter().map(one).collect();
                let source = format!("enum {}{}", i.ident, said(text, &i.generics));
                self.define(&i.vis, &i.ident, Kind::Enum, &i.generics, &i.attrs, module, members, source);
            }
            Item::Trait(i) if !hidden(&i.attrs) => {
                let members = i.items.iter().filter_map(|m| trait_member(m, text)).collect();
                let source = format!("trait {}{}", i.ident, said(text, &i.generics));
                self.define(&i.vis, &i.ident, Kind::Trait, &i.generics, &i.attrs, module, members, source);
                if let Some(def) = self.out.types.get_mut(&join(module, &i.ident.to_string())) {
                    def.above =
                        bounds(i.supertraits.iter()).into_iter().map(|(name, _)| last(&name).to_owned()).collect();
                }
            }
            Item::Impl(i) => self.block(i, text),
            Item::Fn(i) if self.visible(&i.vis) && !hidden(&i.attrs) => {
                self.entry(module, &i.sig.ident, Kind::Function, said(text, &i.sig), &i.attrs);
            }
            Item::Const(i) if self.visible(&i.vis) && !hidden(&i.attrs) && i.ident != "_" => {
                let signature = format!("const {}: {}", i.ident, said(text, &i.ty));
                self.entry(module, &i.ident, Kind::Constant, signature, &i.attrs);
            }
            Item::Static(i) if self.visible(&i.vis) && !hidden(&i.attrs) => {
                let signature = format!("static {}: {}", i.ident, said(text, &i.ty));
                self.entry(module, &i.ident, Kind::Static, signature, &i.attrs);
            }
            Item::Type(i) if !hidden(&i.attrs) => {
                let source = format!("type {}{} = {}", i.ident, said(text, &i.generics), said(text, &i.ty));
                self.define(&i.vis, &i.ident, Kind::Type, &i.generics, &i.attrs, module, Vec::new(), source);
                if let Some(def) = self.out.types.get_mut(&join(module, &i.ident.to_string())) {
                    def.target = Some(Ty::of(&i.ty));
                }
            }
            Item::Mod(i) if !hidden(&i.attrs) => self.module(i, module, text, folder),
            Item::Use(i) if self.visible(&i.vis) => self.import(&i.tree, module, String::new()),
            Item::Macro(i) if !hidden(&i.attrs) => {
                let exported = self.all || i.attrs.iter().any(|a| a.path().is_ident("macro_export"));
                if let Some(name) = i.ident.as_ref().filter(|_| exported) {
                    let root = self.root.clone();
                    let signature = arms(&name.to_string(), text, &i.mac.tokens);
                    self.entry(&root, name, Kind::Macro, signature, &i.attrs);
                }
            }
            _ => {}
        }
    }

    fn module(&mut self, i: &syn::ItemMod, module: &str, text: &str, folder: Option<&Path>) {
        let path = join(module, &i.ident.to_string());
        self.out.modules.entry(path.clone()).or_default();
        if self.visible(&i.vis) {
            self.entry(module, &i.ident, Kind::Module, String::new(), &i.attrs);
        }
        self.depth += 1;
        let inner = folder.map(|f| f.join(i.ident.to_string().trim_start_matches("r#")));
        match (&i.content, inner) {
            (Some((_, items)), inner) => self.items(items, &path, text, inner.as_deref()),
            (None, Some(inner)) => {
                let named = i.attrs.iter().find(|a| a.path().is_ident("path")).and_then(|a| match &a.meta {
                    syn::Meta::NameValue(n) => Some(quote::ToTokens::to_token_stream(&n.value).to_string()),
                    _ => None,
                });
                let named = named.and_then(|n| Some(folder?.join(n.trim_matches('"'))));
                let files: [PathBuf; 2] = [inner.with_extension("rs"), inner.join("mod.rs")];
                if let Some(file) = named.into_iter().chain(files).find(|f| f.is_file()) {
                    self.file(&file, &path, &inner);
                }
            }
            (None, None) => {}
        }
        self.depth -= 1;
    }

    fn import(&mut self, tree: &syn::UseTree, module: &str, before: String) {
        let add = |reader: &mut Self, name: String, path: String| {
            let elsewhere = Some(reader.absolute(module, &path));
            let (signature, doc) = Default::default();
            reader.out.add_entry(module, Entry { name, kind: Kind::Module, signature, doc, elsewhere });
        };
        leaves(tree, &before, &mut |leaf| match leaf {
            Leaf::Name(name, _) if name == "_" => {}
            Leaf::Name(name, path) => add(self, name, path),
            Leaf::All(path) => {
                let path = self.absolute(module, &path);
                self.out.modules.entry(module.to_owned()).or_default().globs.push(path);
            }
        });
    }

    /// A path from the crate on; `~` before one that is relative to the module, or begins with another crate.
    fn absolute(&self, module: &str, path: &str) -> String {
        let mut module = module.to_owned();
        let mut rest = path;
        loop {
            let (first, tail) = rest.split_once("::").unwrap_or((rest, ""));
            match first {
                "crate" | "$crate" => return join(&self.root, tail),
                "self" => rest = tail,
                "super" => {
                    module = module.rsplit_once("::").map_or(String::new(), |(m, _)| m.to_owned());
                    rest = tail;
                }
                _ if rest.len() == path.len() && !(self.all && module.is_empty()) => return format!("~{path}"),
                _ if rest.len() == path.len() => return path.trim_start_matches("::").to_owned(),
                _ => return join(&module, rest),
            }
        }
    }

    fn fields<'f>(&self, fields: impl Iterator<Item = &'f syn::Field>, text: &str) -> Vec<Member> {
        let one = |(i, f): (usize, &syn::Field)| {
            let name = f.ident.as_ref().map_or_else(|| i.to_string(), |n| n.to_string());
            let signature = format!("{name}: {}", said(text, &f.ty));
            self.visible(&f.vis).then(|| Member { name, kind: Kind::Field, signature, doc: doc_of(&f.attrs) })
        };
        fields.enumerate().filter_map(one).collect()
    }

    #[allow(clippy::too_many_arguments, reason = "one call for every kind of type")]
    fn define(
        &mut self,
        vis: &syn::Visibility,
        name: &syn::Ident,
        kind: Kind,
        generics: &syn::Generics,
        attrs: &[syn::Attribute],
        module: &str,
        members: Vec<Member>,
        text: String,
    ) {
        // What is private is known all the same: a public alias or a re-export may lead to it.
        if self.visible(vis) {
            self.entry(module, name, kind, text.clone(), attrs);
        }
        let parameters: Vec<String> = generics.type_params().map(|t| t.ident.to_string()).collect();
        let path = join(module, &name.to_string());
        for derived in derives(attrs) {
            let bounded = parameters.iter().map(|p| format!("{p}: {derived}")).collect::<Vec<_>>().join(", ");
            let lifetimes = generics.lifetimes().map(|_| "'_".to_owned());
            let arguments = lifetimes.chain(parameters.iter().cloned()).collect::<Vec<_>>().join(", ");
            self.out.add_impl(Impl::new(&format!("impl<{bounded}> {derived} for {name}<{arguments}>"), &path));
        }
        let (target, above, doc) = (None, Vec::new(), doc_of(attrs));
        self.out.add_type(TypeDef { path, kind, parameters, members, target, above, doc, text });
    }

    fn block(&mut self, i: &syn::ItemImpl, text: &str) {
        if matches!(&i.trait_, Some((Some(_), ..))) {
            return;
        }
        let start = i.impl_token.span.byte_range().start;
        let head = slice(text, start..i.brace_token.span.open().byte_range().start);
        let of = if self.root.is_empty() { String::new() } else { format!("{}::", self.root) };
        let mut block = Impl::new(&head, &of);
        for member in &i.items {
            match member {
                syn::ImplItem::Fn(f) if (self.visible(&f.vis) || i.trait_.is_some()) && !hidden(&f.attrs) => {
                    block.members.push(Member::read(&said(text, &f.sig), &doc_of(&f.attrs)));
                }
                syn::ImplItem::Const(c) if self.visible(&c.vis) || i.trait_.is_some() => {
                    let signature = format!("const {}: {}", c.ident, said(text, &c.ty));
                    block.members.push(Member::read(&signature, &doc_of(&c.attrs)));
                }
                syn::ImplItem::Type(t) if t.ident == "Target" => block.target = Some(said(text, &t.ty)),
                _ => {}
            }
        }
        self.out.add_impl(block);
    }
}

fn trait_member(member: &syn::TraitItem, text: &str) -> Option<Member> {
    match member {
        syn::TraitItem::Fn(f) if !hidden(&f.attrs) => Some(Member::read(&said(text, &f.sig), &doc_of(&f.attrs))),
        syn::TraitItem::Const(c) => {
            Some(Member::read(&format!("const {}: {}", c.ident, said(text, &c.ty)), &doc_of(&c.attrs)))
        }
        syn::TraitItem::Type(t) => Some(Member::read(said(text, t).trim_end_matches(';'), &doc_of(&t.attrs))),
        _ => None,
    }
}

/// What one leaf of a `use` brings: a name and its path, or all of a module.
pub enum Leaf {
    Name(String, String),
    All(String),
}

/// The leaves of a `use` behind a path. A trait that is named `_` is in scope all the same.
pub fn leaves(tree: &syn::UseTree, before: &str, take: &mut dyn FnMut(Leaf)) {
    let module = before.trim_end_matches("::");
    let path = |name: &syn::Ident| if name == "self" { module.to_owned() } else { format!("{before}{name}") };
    match tree {
        syn::UseTree::Path(p) => leaves(&p.tree, &format!("{before}{}::", p.ident), take),
        syn::UseTree::Name(n) if n.ident == "self" => take(Leaf::Name(last(module).to_owned(), module.to_owned())),
        syn::UseTree::Name(n) => take(Leaf::Name(n.ident.to_string(), path(&n.ident))),
        syn::UseTree::Rename(r) => take(Leaf::Name(r.rename.to_string(), path(&r.ident))),
        syn::UseTree::Glob(_) => take(Leaf::All(module.to_owned())),
        syn::UseTree::Group(g) => g.items.iter().for_each(|t| leaves(t, before, take)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cells_items_are_read() {
        let mut out = Catalog::default();
        let text = "/// A point.\n#[derive(Clone)] struct P<T> { x: T, y: Vec<f32> }\nenum E { A, B(i32), C { r: f64 } }\n\
            impl<T> P<T> { /// Longer.\n fn scale(&self, by: T) -> Self { todo!() } }\nmod geo { pub fn area() {} }\n\
            impl std::ops::Deref for E { type Target = str; fn deref(&self) -> &str { \"\" } }";
        add_cell(&mut out, text);
        let names = |path: &str| out.types[path].members.iter().map(|m| m.signature.clone()).collect::<Vec<_>>();
        assert_eq!(names("P"), ["x: T", "y: Vec<f32>"]);
        assert_eq!(names("E"), ["A", "B(i32)", "C { r: f64 }"]);
        assert_eq!(out.types["P"].doc, "A point.");
        let methods: Vec<&Member> = out.impls["P"].iter().flat_map(|i| &i.members).collect();
        assert_eq!((&*methods[0].signature, &*methods[0].doc), ("fn scale(&self, by: T) -> Self", "Longer."));
        assert_eq!(out.modules["geo"].entries[0].name, "area");
        assert_eq!(out.impls["E"][0].target.as_deref(), Some("str"));
    }
}
