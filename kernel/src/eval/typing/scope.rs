//! What cells can name, as it is after a cell: read while the next one is typed, or runs.
use super::catalog::Catalog;
use super::probe::Context;
use super::runtime;
use super::source;
use super::standard;
use super::world::World;
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::expand::Macro;
use crate::eval::text::scan::{Kind, tokens};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use xlazy_mime::Var;

/// A copy of what cells can name, to be read while one runs.
#[derive(Clone, Default)]
pub struct InScope {
    pub vars: Vec<Var>,
    /// Those of them whose type a later cell says, with their `let`s.
    pub open: Vec<(String, String)>,
    /// The items of earlier cells, once somebody has asked.
    items: Arc<OnceLock<Vec<Named>>>,
    /// What a compiler must know to be asked; none before the first cell.
    pub context: Option<Arc<Context>>,
    /// The items as a catalog, once somebody has asked.
    catalog: Arc<OnceLock<Arc<Catalog>>>,
}

#[derive(Clone, Debug)]
pub struct Named {
    pub name: String,
    pub kind: &'static str,
    /// The first line of its definition.
    pub signature: String,
    pub source: String,
    pub origin: String,
}

impl InScope {
    pub fn of(vars: &[Var], open: Vec<(String, String)>, context: impl Into<Context>) -> InScope {
        InScope { vars: vars.to_vec(), open, context: Some(Arc::new(context.into())), ..InScope::default() }
    }

    pub fn items(&self) -> &[Named] {
        self.items.get_or_init(|| self.context.as_ref().map(|c| items(&c.defs)).unwrap_or_default())
    }

    pub fn vars(&self) -> &[Var] {
        &self.vars
    }

    pub fn knows(&self, name: &str) -> bool {
        self.vars.iter().any(|v| v.name == name) || self.items().iter().any(|i| i.name.trim_end_matches('!') == name)
    }

    /// The items of earlier cells.
    fn catalog(&self) -> Arc<Catalog> {
        let read = || {
            let mut out = Catalog::default();
            out.modules.entry(String::new()).or_default();
            for (_, item) in self.context.iter().flat_map(|c| c.defs.items()) {
                source::add_cell(&mut out, item.text());
            }
            for m in self.context.iter().flat_map(|c| c.defs.macros.iter()) {
                source::add_cell(&mut out, written(m));
            }
            source::settle(&mut out);
            Arc::new(out)
        };
        self.catalog.get_or_init(read).clone()
    }

    /// Everything that a cell which parses to this block can name.
    pub fn world(&self, cell: Option<(&str, &syn::Block)>, own: Option<Arc<Catalog>>) -> World {
        let mut local = Catalog::default();
        let (mut imports, mut globs): (Vec<(String, String)>, Vec<String>) = Default::default();
        // What the prelude of every cell brings.
        globs.push(runtime::PRELUDE.to_owned());
        for u in self.context.iter().flat_map(|c| c.defs.uses.iter()) {
            import(&u.text, &mut imports, &mut globs);
        }
        if let Some((text, block)) = cell {
            // Places in the block are those of the text in braces.
            source::add_block(&mut local, block, &format!("{{{text}\n}}"));
            source::settle(&mut local);
            for statement in &block.stmts {
                if let syn::Stmt::Item(syn::Item::Use(u)) = statement {
                    brings(&u.tree, &mut imports, &mut globs);
                }
            }
        }
        let mut layers = vec![Arc::new(local), self.catalog(), standard::catalog()];
        layers.extend(own);
        let mut crates: Vec<String> = ["std", "core", "alloc", runtime::CRATE].map(str::to_owned).to_vec();
        for (name, file) in self.context.iter().filter_map(|c| c.defs.deps.as_ref()).flat_map(|d| d.crates()) {
            crates.push(name.to_owned());
            layers.extend(dependency(name, Path::new(file)));
        }
        World { layers, imports, globs, crates, parameters: Default::default() }
    }
}

fn items(defs: &Definitions) -> Vec<Named> {
    let mut items = Vec::new();
    for (_, item) in defs.items() {
        for name in &item.names {
            let source = item.text().to_owned();
            let signature = source.split(['{', ';', '\n']).next().unwrap_or("").trim().to_owned();
            let kind = kind_of(&source);
            items.push(Named { name: name.clone(), kind, signature, source, origin: item.source.label() });
        }
    }
    for m in defs.macros.iter() {
        let (source, signature) = (written(m).to_owned(), format!("macro_rules! {}", m.name));
        items.push(Named { name: format!("{}!", m.name), kind: "macro", signature, source, origin: m.source.label() });
    }
    for u in defs.uses.iter().filter(|u| !u.binds.contains(':')) {
        let (source, signature) = (u.text.clone(), u.text.clone());
        items.push(Named { name: u.binds.clone(), kind: "import", signature, source, origin: String::new() });
    }
    items
}

/// A macro as its cell has it, with what is said of it.
fn written(m: &Macro) -> &str {
    m.source.text.get(m.range.clone()).unwrap_or(&m.text)
}

fn kind_of(source: &str) -> &'static str {
    let words = ["fn", "struct", "enum", "trait", "const", "static", "mod", "type", "union"];
    let kinds = ["function", "struct", "enum", "trait", "constant", "static", "module", "type", "union"];
    let found = tokens(source).into_iter().filter(|t| t.kind == Kind::Ident).find_map(|t| {
        let word = &source[t.range];
        words.iter().position(|w| *w == word)
    });
    found.map_or("item", |i| kinds[i])
}

fn import(text: &str, imports: &mut Vec<(String, String)>, globs: &mut Vec<String>) {
    if let Ok(u) = syn::parse_str::<syn::ItemUse>(text) {
        brings(&u.tree, imports, globs);
    }
}

fn brings(tree: &syn::UseTree, imports: &mut Vec<(String, String)>, globs: &mut Vec<String>) {
    source::leaves(tree, "", &mut |leaf| match leaf {
        source::Leaf::Name(name, path) => imports.push((name, path)),
        source::Leaf::All(path) => globs.push(path),
    });
}

type Crates = HashMap<PathBuf, Option<Arc<Catalog>>>;

/// A dependency's catalog, read from its source, which cargo's note beside the object leads to.
fn dependency(name: &str, object: &Path) -> Option<Arc<Catalog>> {
    static READ: OnceLock<Mutex<Crates>> = OnceLock::new();
    let mut read = READ.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let of = || first_file(object).map(|file| Arc::new(source::read_crate(name, &file)));
    read.entry(object.to_owned()).or_insert_with(of).clone()
}

/// The first source file of a crate: `libname-hash.rlib` has a `name-hash.d`.
fn first_file(object: &Path) -> Option<PathBuf> {
    let stem = object.file_stem()?.to_str()?.strip_prefix("lib")?;
    let note = std::fs::read_to_string(object.with_file_name(format!("{stem}.d"))).ok()?;
    let files = note.lines().filter(|l| !l.starts_with('#')).find_map(|l| l.split_once(": "))?.1;
    let file = files.replace("\\ ", "\u{0}").split_whitespace().next()?.replace('\u{0}', " ");
    Some(PathBuf::from(file)).filter(|f| f.extension().is_some_and(|e| e == "rs"))
}
