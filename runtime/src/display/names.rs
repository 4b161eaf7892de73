//! The public names of the runtime with their documentation, read from its own sources: for completion and `name?`.
//!
//! rustdoc's comments are the one place where an op is described; what the kernel shows is the same text.
use super::template::{Template, ident, signature, template, templates, with_arguments};
use crate::json::{Value, json};
use std::fmt::Write;
use std::sync::OnceLock;
use xlazy_mime::Bundle;

/// The files whose public items a cell can name, with the module they are reached through and their text; `build.rs` lists
/// them.
const SOURCES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// A public item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Name {
    pub name: String,
    /// `method`, `function`, `struct`, `enum`, `trait`, `macro`, `field`, `variant`, `import`; of an `impl` of a trait the name is all
    /// of its head.
    pub kind: &'static str,
    /// The type of a method, the module of anything else; empty for what the prelude brings.
    pub owner: String,
    /// `matmul(&self, other: &Tensor) -> Tensor`; empty for types.
    pub signature: String,
    pub doc: String,
    pub file: &'static str,
}

impl Name {
    /// `Tensor::matmul(&self, other: &Tensor) -> Tensor`
    fn full(&self) -> String {
        let what = if self.signature.is_empty() { &self.name } else { &self.signature };
        if self.owner.is_empty() { what.clone() } else { format!("{}::{what}", self.owner) }
    }
}

/// Every public item, in the order of the sources.
pub(crate) fn all() -> &'static [Name] {
    static NAMES: OnceLock<Vec<Name>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let shared: Vec<Template> = SOURCES.iter().flat_map(|(.., text)| templates(text)).collect();
        let mut names: Vec<Name> =
            SOURCES.iter().flat_map(|(module, file, text)| extract(module, file, text, &shared)).collect();
        names.extend(imports(include_str!("../prelude.rs")));
        for (of, alias) in SOURCES.iter().flat_map(|(.., text)| aliases(text)) {
            let renamed: Vec<Name> = names.iter().filter_map(|n| under(n, of, alias)).collect();
            names.extend(renamed);
        }
        // What makes a layer, and what it does, without words of their own have their type's.
        let types: Vec<(String, String)> =
            names.iter().filter(|n| n.signature.is_empty()).map(|n| (n.name.clone(), n.doc.clone())).collect();
        for n in names.iter_mut().filter(|n| n.doc.is_empty() && matches!(&*n.name, "new" | "forward")) {
            n.doc = types.iter().find(|t| t.0 == n.owner).map_or_else(String::new, |t| t.1.clone());
        }
        names
    })
}

/// All names: as JSON, and as text with one `name kind signature` a line.
pub(crate) fn bundle() -> Bundle {
    let plain: String = all().iter().map(|n| format!("{}\t{}\t{}\n", n.name, n.kind, n.full())).collect();
    let one =
        |n: &Name| json!({ "name": n.name, "kind": n.kind, "owner": n.owner, "signature": n.signature, "doc": n.doc });
    Bundle::text(plain).with("application/json", all().iter().map(one).collect::<Value>().to_string())
}

/// The documentation of a name, such as `matmul`, `Tensor::matmul` or `parts!`; `None` where there is none.
pub(crate) fn doc(name: &str) -> Option<Bundle> {
    let plain = name.trim().trim_end_matches('!');
    let of_macro = plain.len() < name.trim().len();
    let (owner, last) = plain.rsplit_once("::").unwrap_or(("", plain));
    let owner = owner.rsplit("::").next().unwrap_or("");
    let fits = |n: &&Name| {
        !matches!(n.kind, "import" | "impl")
            && n.name == last
            && (!of_macro || n.kind == "macro")
            && (owner.is_empty() || n.owner.rsplit("::").next() == Some(owner))
    };
    let found: Vec<&Name> = all().iter().filter(fits).collect();
    if found.is_empty() {
        return None;
    }
    let mut plain = Vec::new();
    let mut markdown = Vec::new();
    for n in found {
        let head = format!("{} {}", n.kind, n.full());
        plain.push(format!("{head}\n\n{}", n.doc));
        let keyword = if n.signature.is_empty() { n.kind } else { "fn" };
        markdown.push(format!("```rust\n{keyword} {}\n```\n\n{}", n.full(), n.doc));
    }
    Some(Bundle::text(plain.join("\n\n")).with("text/markdown", markdown.join("\n\n---\n\n")))
}

/// Second names that a file gives to its types: `pub use BatchNorm as BatchNorm2d;`.
fn aliases(text: &str) -> Vec<(&str, &str)> {
    let uses = text.lines().filter_map(|l| l.strip_prefix("pub use ")?.strip_suffix(';')?.split_once(" as "));
    uses.filter(|(of, _)| !of.contains("::")).collect()
}

/// A type, or what it has, by the type's second name.
fn under(n: &Name, of: &str, alias: &str) -> Option<Name> {
    match n.kind {
        "struct" | "enum" if n.name == of => Some(Name { name: alias.to_owned(), ..n.clone() }),
        "impl" if n.owner == of => {
            let name = n.name.replace(&format!(" for {of}"), &format!(" for {alias}"));
            Some(Name { name, owner: alias.to_owned(), ..n.clone() })
        }
        _ if n.owner == of => Some(Name { owner: alias.to_owned(), ..n.clone() }),
        _ => None,
    }
}

/// What every cell has in scope: the leaves of the prelude's `pub use`, each with the path that it comes from.
fn imports(text: &str) -> Vec<Name> {
    let mut out = Vec::new();
    for found in text.split("pub use ").skip(1) {
        let Some((tree, _)) = found.split_once(';') else { continue };
        let (head, list) = tree.split_once('{').map_or(("", tree), |(head, list)| (head, list.trim_end_matches('}')));
        for leaf in list.split(',').map(str::trim).filter(|l| !l.is_empty()) {
            let path = format!("{head}{leaf}");
            let path = path.strip_suffix("::self").unwrap_or(&path).to_owned();
            let name = path.rsplit("::").next().unwrap_or_default().to_owned();
            out.push(item(name, "import", "prelude", path, "", "prelude.rs"));
        }
    }
    out
}

/// The documented items of one source file. Reads what rustfmt writes: items begin at column 0, methods at column 4.
fn extract(module: &str, file: &'static str, text: &str, shared: &[Template]) -> Vec<Name> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<Name> = Vec::new();
    let mut templates: Vec<Template> = shared.to_vec();
    // Where we are: the block that began at column 0.
    let mut block = Block::Outside;
    let mut doc = String::new();
    let mut derived = String::new();
    let mut hidden = false;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        let trimmed = line.trim_start();
        let depth = line.len() - trimmed.len();
        // Tests end a file, and those in a file of their own have one line.
        if line == "#[cfg(test)]" {
            match lines.get(at).is_some_and(|next| next.ends_with(';')) {
                true => at += 1,
                false => break,
            }
        }
        if let Some(text) = trimmed.strip_prefix("///") {
            let _ = writeln!(doc, "{}", text.strip_prefix(' ').unwrap_or(text));
            continue;
        }
        // A comment between them parts nothing from its documentation.
        if trimmed.starts_with("#[") || trimmed.starts_with("//") || trimmed.is_empty() {
            hidden |= trimmed.starts_with("#[doc(hidden)]");
            if let Some(list) = trimmed.strip_prefix("#[derive(").filter(|_| depth == 0) {
                derived = list.trim_end_matches(")]").to_owned();
            }
            continue;
        }
        let (text, was_hidden) = (std::mem::take(&mut doc), std::mem::take(&mut hidden));
        let derived = std::mem::take(&mut derived);
        if depth == 0 {
            for (head, owner) in implemented(trimmed, &derived) {
                out.push(item(head, "impl", &owner, String::new(), "", file));
            }
            if was_hidden && trimmed.ends_with('{') {
                block = Block::Other;
                continue;
            }
            if let Some(name) = trimmed.strip_prefix("macro_rules! ") {
                let end = at + lines[at..].iter().position(|l| *l == "}").unwrap_or(0);
                let name: String = ident(name);
                let made = template(&name, &lines[at..end]);
                if let Some(ty) = made.as_ref().filter(|t| t.kind == "variant").map(|t| &t.rest) {
                    let said = lines[at..end].iter().map(|l| l.trim()).take_while(|l| !l.starts_with("pub enum "));
                    let doc: Vec<&str> = said.filter_map(|l| l.strip_prefix("/// ")).collect();
                    out.push(item(ty.clone(), "enum", module, String::new(), &doc.join("\n"), file));
                    let derived = lines[at..end].iter().find_map(|l| l.trim().strip_prefix("#[derive("));
                    let heads = implemented(&format!("pub enum {ty} "), derived.unwrap_or("").trim_end_matches(")]"));
                    out.extend(heads.into_iter().map(|(head, ty)| item(head, "impl", &ty, String::new(), "", file)));
                }
                templates.extend(made);
                if !text.is_empty() && !was_hidden {
                    out.push(item(name, "macro", module, String::new(), &text, file));
                }
                at = end;
                continue;
            }
            block = Block::of(trimmed, &templates).unwrap_or(match trimmed {
                "}" => Block::Outside,
                _ => block,
            });
        }
        if was_hidden {
            continue;
        }
        if let (Block::Macro(i), 4) = (&block, depth) {
            let t = &templates[*i];
            let entry = trimmed.strip_prefix("pub ").unwrap_or(trimmed);
            let entry = entry.strip_prefix("fn ").unwrap_or(entry);
            let name = ident(entry);
            if !name.is_empty() && (!text.is_empty() || trimmed.starts_with("pub fn ")) {
                let free = t.kind == "method" && !t.rest.contains("self");
                let owner = match t.kind {
                    "method" if !free => "Tensor",
                    "variant" => &t.rest,
                    _ => module,
                };
                let kind = if free { "function" } else { t.kind };
                let signature = with_arguments(&name, if t.kind == "variant" { "" } else { &t.rest }, entry);
                if let Some(body) = t.written(&lines[at - 1..]) {
                    // In a signature as one reads it.
                    let body = body.replace("$crate::Tensor", "Tensor").replace("$crate::", "crate::");
                    let written = extract(module, file, &body, &[]);
                    out.extend(written.into_iter().filter(|n| n.name != name || n.kind != "struct"));
                }
                out.push(item(name, kind, owner, signature, &text, file));
            }
            continue;
        }
        if let Some(found) = plain_item(trimmed, depth, &block, &lines[at - 1..], module) {
            let (name, kind, owner, signature) = found;
            out.push(item(name, kind, &owner, signature, &text, file));
        }
    }
    out
}

fn item(name: String, kind: &'static str, owner: &str, signature: String, doc: &str, file: &'static str) -> Name {
    Name { name, kind, owner: owner.to_owned(), signature, doc: doc.trim_end().to_owned(), file }
}

#[derive(Clone, PartialEq)]
enum Block {
    Outside,
    /// `impl Type {`
    Impl(String),
    Trait(String),
    Struct(String),
    Enum(String),
    /// The body of a macro call; its template.
    Macro(usize),
    /// Something whose lines are nobody's business.
    Other,
}

impl Block {
    /// The block that a line at column 0 begins.
    fn of(line: &str, templates: &[Template]) -> Option<Block> {
        if !line.ends_with('{') && !line.contains("! {") {
            return None;
        }
        if let Some(rest) = line.strip_prefix("impl") {
            let rest = match rest.strip_prefix('<') {
                Some(generics) => generics.split_once("> ").map_or("", |r| r.1),
                None => rest.trim_start(),
            };
            return Some(if rest.contains(" for ") { Block::Other } else { Block::Impl(ident(rest)) });
        }
        if let Some(rest) = line.strip_prefix("pub trait ") {
            return Some(Block::Trait(ident(rest)));
        }
        if let Some(rest) = line.strip_prefix("pub struct ") {
            return Some(Block::Struct(ident(rest)));
        }
        if let Some(rest) = line.strip_prefix("pub enum ") {
            return Some(Block::Enum(ident(rest)));
        }
        // A file's own macros come behind those of all files.
        let called =
            templates.iter().rposition(|t| line.split_once("! {").is_some_and(|(name, _)| name == t.macro_name));
        called.map(Block::Macro).or(Some(Block::Other))
    }
}

/// The heads of `impl`s of traits that a line at column 0 makes, with the types that they are of.
fn implemented(line: &str, derived: &str) -> Vec<(String, String)> {
    if line.starts_with("impl") && line.ends_with('{') && line.contains(" for ") {
        let head = line.trim_end_matches('{').trim_end();
        let ty = ident(head.split(" for ").last().unwrap_or_default().trim_start_matches(['&', '[']));
        return vec![(head.to_owned(), ty)];
    }
    let made = ["pub struct ", "pub enum "].iter().find_map(|start| line.strip_prefix(start)).map(ident);
    let traits = derived.split(',').map(str::trim).filter(|t| !t.is_empty());
    made.map(|ty| traits.map(|t| (format!("impl {t} for {ty}"), ty.clone())).collect()).unwrap_or_default()
}

/// An item written out: name, kind, owner, signature.
fn plain_item(
    line: &str,
    depth: usize,
    block: &Block,
    from: &[&str],
    module: &str,
) -> Option<(String, &'static str, String, String)> {
    let public = line.strip_prefix("pub ");
    if depth == 0 {
        for kind in ["struct", "enum", "trait"] {
            if let Some(rest) = public.and_then(|l| l.strip_prefix(kind)) {
                return Some((ident(rest.trim_start()), kind, module.to_owned(), String::new()));
            }
        }
    }
    let (owner, method) = match (block, depth) {
        (Block::Struct(ty), 4) => {
            let field = public?.trim_end_matches(',');
            return Some((ident(field), "field", ty.clone(), field.to_owned()));
        }
        (Block::Enum(ty), 4) if line.starts_with(char::is_uppercase) => {
            let variant = line.split(" //").next().unwrap_or(line).trim_end_matches([',', '{']).trim_end();
            return Some((ident(variant), "variant", ty.clone(), variant.to_owned()));
        }
        (Block::Impl(ty), 4) => (ty.clone(), public?),
        (Block::Trait(name), 4) => (name.clone(), line),
        (_, 0) => (module.to_owned(), public?),
        _ => return None,
    };
    let rest = method.strip_prefix("const ").unwrap_or(method).strip_prefix("fn ")?;
    let signature = signature(rest, &from[1..]);
    let kind = if signature.contains("self") && depth == 4 { "method" } else { "function" };
    Some((ident(rest), kind, owner, signature))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    /// Types that a macro writes, with all they have.
    const MADE: &str = r#"
macro_rules! pools {
    ($($(#[$doc:meta])* $name:ident, $dims:literal { $($option:ident: $kind:ty = $default:expr),* };)*) => {$(
        $(#[$doc])*
        pub struct $name {
            /// The window.
            pub size: usize,
            $(pub $option: $kind,)*
        }

        impl $name {
            pub fn new(size: usize) -> $name {
                $name { size, $($option: $default),* }
            }

            $(
                /// An option.
                pub fn $option(mut self, $option: $kind) -> $name {
                    self
                }
            )*

            /// By its name.
            pub fn stride(mut self, stride: usize) -> $name {
                self
            }
        }

        impl Module for $name {
            fn forward(&self, x: &Tensor) -> Tensor {
                x.clone()
            }
        }
    )*};
}

pools! {
    /// Of sequences.
    Pool1d, 1 {
        same: bool = false,
        steps: (usize, Vec<f64>) = (1, vec![]),
    };
}

#[cfg(test)]
"#;

    #[test]
    fn every_way_to_write_an_item_is_read() {
        let source = r#"//! A file.
macro_rules! unary {
    ($($(#[$doc:meta])* $vis:vis fn $method:ident => $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            $vis fn $method(&self) -> Tensor {
                trace(&$op, [self.into()], [])
            })*
        }
    };
}

unary! {
    /// e to the power.
    ///
    /// Two paragraphs.
    pub fn exp => EXP "exp", |l| {
        un(l)
    };
    pub fn bare => BARE;
}

/// A type.
#[derive(Clone)]
pub struct Layer<'a> {
    /// A field.
    pub width: usize,
}

impl<'a> Layer<'a> {
    /// Makes one.
    #[track_caller]
    pub fn new<T: Into<usize>>(
        width: T,
        bias: bool,
    ) -> Layer<'a> {
        Layer { width: width.into() }
    }
    /// Not for you.
    pub(crate) fn inner(&self) {}
    /// Hidden.
    #[doc(hidden)]
    pub fn secret(&self) {}
}

impl Rich for Layer<'_> {
    /// Not listed.
    fn rich(&self) -> Bundle {}
}

/// Does things.
pub trait Module {
    /// Runs it.
    fn forward(&self, x: &Tensor) -> Tensor;
}

/// Free.
pub fn free(x: f64) -> f64 { x }

#[cfg(test)]
mod tests {
    /// No.
    pub fn no() {}
}
"#;
        let source = &source.replace("#[cfg(test)]\n", MADE);
        let mut out = String::new();
        for n in extract("nn", "f.rs", source, &[]) {
            let _ = writeln!(out, "{} {} | {}", n.kind, n.full(), n.doc.replace('\n', "/"));
        }
        expect![[r#"
            method Tensor::exp(&self) -> Tensor | e to the power.//Two paragraphs.
            method Tensor::bare(&self) -> Tensor | 
            impl Layer::impl Clone for Layer | 
            struct nn::Layer | A type.
            field Layer::width: usize | A field.
            function Layer::new<T: Into<usize>>(width: T, bias: bool) -> Layer<'a> | Makes one.
            impl Layer::impl Rich for Layer<'_> | 
            trait nn::Module | Does things.
            method Module::forward(&self, x: &Tensor) -> Tensor | Runs it.
            function nn::free(x: f64) -> f64 | Free.
            field Pool1d::size: usize | The window.
            field Pool1d::same: bool | 
            field Pool1d::steps: (usize, Vec<f64>) | 
            function Pool1d::new(size: usize) -> Pool1d | 
            method Pool1d::same(mut self, same: bool) -> Pool1d | An option.
            method Pool1d::steps(mut self, steps: (usize, Vec<f64>)) -> Pool1d | An option.
            method Pool1d::stride(mut self, stride: usize) -> Pool1d | By its name.
            impl Pool1d::impl Module for Pool1d | 
            struct nn::Pool1d | Of sequences.
        "#]]
        .assert_eq(&out);
    }

    #[test]
    fn nothing_is_said_in_a_macros_words() {
        let said = |n: &&Name| [&n.name, &n.owner, &n.signature].into_iter().any(|text| text.contains('$'));
        assert_eq!(all().iter().filter(said).map(Name::full).collect::<Vec<_>>(), Vec::<String>::new());
        let full = |owner: &str, name: &str| all().iter().find(|n| n.owner == owner && n.name == name).map(Name::full);
        for (owner, name, want) in [
            ("LSTM", "forward", "(&self, x: &Tensor, state: Option<(Tensor, Tensor)>) -> (Tensor, (Tensor, Tensor))"),
            ("GRU", "forward", "(&self, x: &Tensor, state: Option<Tensor>) -> (Tensor, Tensor)"),
            (
                "TripletMarginLoss",
                "forward",
                "(&self, anchor: &Tensor, positive: &Tensor, negative: &Tensor) -> Tensor",
            ),
            (
                "FractionalMaxPool3d",
                "with_ratio",
                "(kernel_size: impl Into<Dims>, output_ratio: [f64; 3]) -> FractionalMaxPool3d",
            ),
        ] {
            assert_eq!(full(owner, name), Some(format!("{owner}::{name}{want}")));
        }
    }

    #[test]
    fn the_runtimes_names_are_found_with_their_docs() {
        for name in ["matmul", "exp", "add_", "backward", "softmax", "Tensor::relu", "cat", "eq", "image", "to_vec"] {
            let doc = doc(name).unwrap_or_else(|| panic!("{name} is not found"));
            assert!(doc.plain().contains("\n\n"), "{name}: {}", doc.plain());
        }
        assert_eq!(doc("no_such_name"), None);
        // A name with `!` is the macro and nothing else.
        let parts = doc("parts!").unwrap();
        assert!(parts.plain().starts_with("macro nn::parts\n") && !parts.plain().contains("Sharding"), "{parts:?}");
        for name in ["Module::forward", "Optimizer::step", "L1Loss::forward"] {
            let doc = doc(name).unwrap();
            assert!(doc.plain().lines().count() > 2, "{name}: {doc:?}");
        }
        assert_eq!(
            doc("add_").unwrap().plain(),
            "method Tensor::add_<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor\n\nAdds to this tensor's value \
             (`torch.Tensor.add_`).\n\n`tensor([1.0, 2.0]).add_(3.0)` is `[4., 5.]`."
        );
    }

    #[test]
    fn no_method_of_tensor_and_no_function_lacks_docs() {
        // Small accessors of other types say it all by their names.
        let told_by_name = |n: &Name| n.owner.starts_with(char::is_uppercase) && n.owner != "Tensor";
        let bare: Vec<String> = all()
            .iter()
            .filter(|n| n.doc.is_empty() && !matches!(n.kind, "import" | "impl") && !told_by_name(n))
            .map(|n| format!("{}: {}", n.file, n.full()))
            .collect();
        assert!(bare.is_empty(), "public functions without a doc comment:\n{}", bare.join("\n"));
    }

    #[test]
    fn the_prelude_is_listed_with_its_paths() {
        let found = imports(
            "pub use crate::nn::Module;\npub use xlazy_core::ty::DType::{self, *};\npub use crate::{\n    a, b,\n};",
        );
        let all: Vec<String> = found.iter().map(|n| format!("{} {}", n.name, n.signature)).collect();
        let dtype = "xlazy_core::ty::DType";
        assert_eq!(
            all,
            [
                "Module crate::nn::Module",
                &format!("DType {dtype}"),
                &format!("* {dtype}::*"),
                "a crate::a",
                "b crate::b"
            ]
        );
    }

    #[test]
    fn every_function_and_type_of_the_prelude_is_told_of() {
        let names = all();
        let (imports, told): (Vec<&Name>, Vec<&Name>) = names.iter().partition(|n| n.kind == "import");
        let is_told = |name: &str| told.iter().any(|n| n.name == name || n.owner.split("::").any(|o| o == name));
        let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let is_module = |name: &str| src.join(name).is_dir() || src.join(format!("{name}.rs")).is_file();
        let named = imports.iter().map(|n| &*n.name).filter(|n| *n != "*" && !is_module(n));
        let untold: Vec<&str> = named.filter(|n| !is_told(n)).collect();
        assert!(untold.is_empty(), "{untold:?}: `build.rs` lists no source with them");
    }

    #[test]
    fn files_are_found_by_themselves() {
        let has = |module: &str, file: &str| SOURCES.iter().any(|s| (s.0, s.1) == (module, file));
        assert!(has("", "ops/unary.rs") && has("nn", "nn/linear.rs") && has("optim", "optim/sgd.rs"));
        assert!(has("", "ops/control/scan.rs"));
        assert!(!has("", "ops/mod.rs"));
    }
}
