//! The code that saves and loads variables. What a checkpoint says goes in as names, types and literals that were parsed
//! first, so that its syntax tree is the same whatever the file holds.
use crate::eval::text::types::{self, Named};
use crate::eval::text::untrusted::{self, quoted};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use serde_json::Value;

/// How variables with a notebook's own types come in: none of its crates, `serde` alone, or `serde` with `serde_json`.
#[derive(Clone, Copy, PartialEq)]
pub enum Serde {
    None,
    Alone,
    Json,
}

/// Between serde_json's values and the runtime's. Exact: what JSON text would round or lose does not go through text.
const TO_TREE: &str = "
fn xlazy_tree(v: &::serde_json::Value) -> ::xlazy::cell::checkpoint::tree::Tree {
    use ::serde_json::Value; use ::xlazy::cell::checkpoint::tree::Tree;
    match v {
        Value::Null => Tree::Null,
        Value::Bool(b) => Tree::Bool(*b),
        Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(n), _) => Tree::Int(n as i128),
            (_, Some(n)) => Tree::Int(n as i128),
            _ => Tree::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(s) => Tree::Text(s.clone()),
        Value::Array(items) => Tree::List(items.iter().map(xlazy_tree).collect()),
        Value::Object(o) => Tree::Map(o.iter().map(|(k, v)| (Tree::Text(k.clone()), xlazy_tree(v))).collect()),
    }
}
trait XlazySave { fn save(&self, name: &str); }
impl<T: ::serde::Serialize + ::serde::de::DeserializeOwned> XlazySave for &::xlazy::cell::checkpoint::Kept<'_, T> {
    fn save(&self, name: &str) {
        ::xlazy::cell::checkpoint::put(name, ::std::any::type_name::<T>(), &mut |_| {
            let made = ::serde_json::to_value(self.0).map_err(|e| format!(\"serde cannot write it: {e}\"))?;
            let read = ::serde_json::from_value::<T>(made.clone())
                .map_err(|e| format!(\"serde cannot read back what it writes of it (NaN, an infinity?): {e}\"))?;
            match ::serde_json::to_value(&read) {
                Ok(again) if again == made => Ok(xlazy_tree(&made)),
                _ => Err(\"serde reads back something else than it writes of it\".to_owned()),
            }
        });
    }
}
";

const OF_TREE: &str = "
fn xlazy_value(t: &::xlazy::cell::checkpoint::tree::Tree) -> ::core::result::Result<::serde_json::Value, String> {
    use ::serde_json::Value; use ::xlazy::cell::checkpoint::tree::Tree;
    Ok(match t {
        Tree::Null => Value::Null,
        Tree::Bool(b) => Value::Bool(*b),
        Tree::Int(n) => match (i64::try_from(*n), u64::try_from(*n)) {
            (Ok(n), _) => n.into(),
            (_, Ok(n)) => n.into(),
            _ => return Err(format!(\"{n} is too large\")),
        },
        Tree::Float(v) => (*v).into(),
        Tree::Text(s) => s.clone().into(),
        Tree::List(items) => Value::Array(items.iter().map(xlazy_value).collect::<::core::result::Result<_, _>>()?),
        Tree::Map(items) => {
            let mut out = ::serde_json::Map::new();
            for (k, v) in items {
                let Tree::Text(k) = k else { return Err(\"a key is no text\".to_owned()) };
                out.insert(k.clone(), xlazy_value(v)?);
            }
            Value::Object(out)
        }
        _ => return Err(\"it was a tensor, a module or an array when it was saved\".to_owned()),
    })
}
trait XlazyLoad<T> { fn load(&self, name: &str) -> Option<T>; }
impl<T: ::serde::de::DeserializeOwned> XlazyLoad<T> for &::xlazy::cell::checkpoint::Wanted<T> {
    fn load(&self, name: &str) -> Option<T> {
        let mut value = None;
        ::xlazy::cell::checkpoint::get(name, &mut |tree, _| {
            let json = xlazy_value(tree)?;
            value = Some(::serde_json::from_value::<T>(json).map_err(|e| {
                format!(\"it does not fit its type as it is defined here: {e}; define the type as it was, or give new fields \
                         `#[serde(default)]`\")
            })?);
            Ok(())
        });
        value
    }
}
";

/// Says what is missing where the type itself would do.
const SERDE_ALONE: &str = "
trait XlazySave { fn save(&self, name: &str); }
impl<T: ::serde::Serialize> XlazySave for &::xlazy::cell::checkpoint::Kept<'_, T> {
    fn save(&self, name: &str) {
        ::xlazy::cell::checkpoint::put(name, ::std::any::type_name::<T>(), &mut |_| {
            Err(\"its type is Serialize, and writing it needs `:dep serde_json = \\\"1\\\"`, too\".to_owned())
        });
    }
}
";

/// A file's variable, as the runtime lists it.
pub struct Listed {
    pub name: String,
    ident: Ident,
    type_name: String,
    pub kind: String,
}

/// As `type_name` gives it.
const TENSOR: &str = "xlazy::tensor::Tensor";

impl Listed {
    /// A name that is none says that somebody else wrote the file: then nothing of it is taken.
    pub fn of(v: &Value) -> Result<Listed, String> {
        let text = |key: &str| v[key].as_str().map(str::to_owned);
        let listed = || Some((text("name")?, text("type")?, text("kind")?));
        let (name, type_name, kind) = listed().ok_or("it lists its variables in a form that is not known")?;
        let ident = untrusted::identifier(&name).ok_or_else(|| {
            format!("it names a variable {}, which is no name in Rust: xlazy has not written it so", quoted(&name))
        })?;
        Ok(Listed { name, ident, type_name, kind })
    }
}

pub fn save_statement(name: &Ident) -> String {
    let text = name.to_string();
    quote! { (&&&&&::xlazy::cell::checkpoint::Kept(&#name)).save(#text); }.to_string()
}

pub fn save_text<'a>(statements: impl Iterator<Item = &'a str>, serde: Serde) -> String {
    let helpers = match serde {
        Serde::None => "",
        Serde::Alone => SERDE_ALONE,
        Serde::Json => TO_TREE,
    };
    let statements: String = statements.collect();
    format!(
        "{{ use ::xlazy::cell::checkpoint::{{SaveValue as _, SaveModule as _, SaveOptimizer as _, SaveNothing as _}};\
         {helpers}\n::xlazy::cell::checkpoint::begin();\n{statements}}}"
    )
}

pub fn load_text<'a>(path: &str, hash: &str, statements: impl Iterator<Item = &'a str>, serde: Serde) -> String {
    let helpers = if serde == Serde::Json { OF_TREE } else { "" };
    let reopen = quote! { ::xlazy::cell::checkpoint::reopen(#path, #hash); };
    let statements: String = statements.collect();
    format!(
        "{{ use ::xlazy::cell::checkpoint::{{LoadValue as _, LoadNothing as _}};\
         use ::xlazy::cell::rt::{{KeepHandle as _, KeepFuture as _, KeepIterator as _, KeepMove as _}};{helpers}\n{reopen}\n{statements}}}"
    )
}

/// The statement that restores a variable, or why there can be none. `there` is the type of the one that is there;
/// `defined` says in which crate an item of the notebook is.
pub fn load_statement(
    v: &Listed,
    there: Option<&str>,
    defined: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let Listed { name: text, ident: name, type_name, kind } = v;
    let statement: TokenStream = match kind.as_str() {
        kind @ ("module" | "optimizer") => {
            let article = if kind == "module" { "a" } else { "an" };
            // Only compared and shown.
            let short = types::short(type_name);
            let shown = quoted(&short);
            match there.map(types::short) {
                Some(now) if now == short && kind == "module" => {
                    quote! { ::xlazy::cell::checkpoint::load_module(#text, &#name); }
                }
                Some(now) if now == short => {
                    quote! { ::xlazy::cell::checkpoint::load_optimizer(#text, &mut #name); }
                }
                Some(now) => {
                    return Err(format!(
                        "it is {article} {kind} of type {shown}, and `{text}` is of type `{now}` here"
                    ));
                }
                None => {
                    return Err(format!(
                        "it is {article} {kind} of type {shown}, and its state goes into a variable that is there: run \
                         the cell that makes `{text}`, then load again"
                    ));
                }
            }
        }
        _ if type_name == TENSOR => quote! { ::xlazy::cell::checkpoint::load_tensor(#text); },
        _ => {
            let mut missing = None;
            let written = types::nameable(type_name, &mut |_, path| {
                let item = path.split("::").next().unwrap_or(path);
                let found = defined(item).map(|crate_name| format!("::{crate_name}::{path}"));
                if found.is_none() {
                    missing = Some(item.to_owned());
                }
                found
            });
            let written = match (written, missing) {
                (_, Some(item)) => {
                    let item = quoted(&item);
                    return Err(format!(
                        "its type {item} is not defined here: run the cell that defines it, then load again"
                    ));
                }
                (Named::Refused(why), None) => return Err(why),
                (Named::Type(written), None) => written,
            };
            let not_one = || format!("its type, {}, is none that a cell could write", quoted(type_name));
            let wanted = untrusted::data_type(&written).ok_or_else(not_one)?;
            quote! {
                if let ::core::option::Option::Some(xlazy_v) =
                    (&&&::xlazy::cell::checkpoint::Wanted::<#wanted>::TYPE).load(#text)
                {
                    (&&&::xlazy::cell::rt::Of::value(&xlazy_v)).keep(#text, xlazy_v);
                }
            }
        }
    };
    Ok(format!("{statement}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use syn::visit::{self, Visit};
    use syn::{Block, Expr, Lit, Stmt};

    fn one_of<'a>(dice: &mut Rng, all: &[&'a str]) -> &'a str {
        all[dice.usize(..all.len())]
    }

    const NAMES: &[&str] = &["x", "net", "r#type", "_a", "Élan", "xlazy_v", "xlazy", "core", "String"];
    const TYPES: &[&str] = &[
        "i32",
        "xlazy::tensor::Tensor",
        "alloc::vec::Vec<alloc::string::String>",
        "std::collections::hash::map::HashMap<&str, [u8; 4]>",
        "g_1::Known",
        "alloc::vec::Vec<g_2::Known<3>>",
        "g_1::Unknown",
        "xlazy::nn::linear::Linear",
        "(f32, core::option::Option<bool>)",
    ];
    /// Types for a parser, and code all the same.
    const RUNNING: &[&str] = &[
        "evil!()",
        "alloc::vec::Vec<evil!{x}>",
        "[u8; { std::process::abort() }]",
        "[u8; evil()]",
        "g_1::Known<{ evil!() }>",
        "g_1::Known<N = { loop {} }>",
        "alloc::boxed::Box<dyn core::ops::function::Fn([u8; evil!()]) -> u8>",
        "fn(#[evil] u8)",
        "[u8; 1 as usize]",
    ];
    /// What ends a literal, an argument, a statement or a block, begins something else, or hides what follows.
    const HOSTILE: &[&str] = &[
        "\"); std::fs::write(\"pwned\", \"x\").unwrap(); let _z = (\"",
        ">::TYPE).load(\"x\") { evil!() } //",
        "{ std::process::abort() }",
        "; 3]; fn f() { loop {} }",
        "/*",
        "*/",
        "//",
        "\n",
        "\\",
        "\"",
        "'",
        "r#\"",
        "\"#",
        "#[evil]",
        "!()",
        "}",
        "{",
        ")",
        "(",
        "<",
        ">",
        ",",
        ";",
        "=",
        "&",
        " ",
        "\u{202e}",
        "\0",
        "$crate",
        "::",
        "dyn ",
        "impl ",
        "fn() -> ",
        "|x| x",
        "unsafe ",
        "as u8",
        "+ 1",
        "<u8 as Evil>::T",
    ];

    /// One of these, with none to three pieces of something else in it.
    fn drawn(dice: &mut Rng, good: &[&str]) -> String {
        let mut text = one_of(dice, good).to_owned();
        for _ in 0..[0, 0, 0, 0, 1, 1, 2, 3][dice.usize(..8)] {
            let places: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
            text.insert_str(places[dice.usize(..places.len())], one_of(dice, HOSTILE));
        }
        text
    }

    /// What is in a syntax tree that a variable's statement must not bring.
    #[derive(Default)]
    struct Found {
        others: Vec<&'static str>,
        blocks: usize,
        texts: Vec<String>,
    }

    impl<'a> Visit<'a> for Found {
        fn visit_expr(&mut self, e: &'a Expr) {
            match e {
                Expr::Call(_) | Expr::MethodCall(_) | Expr::Path(_) | Expr::Lit(_) | Expr::Reference(_) => {}
                Expr::Paren(_) | Expr::If(_) | Expr::Let(_) => {}
                _ => self.others.push("an expression"),
            }
            visit::visit_expr(self, e);
        }
        fn visit_lit(&mut self, l: &'a Lit) {
            if let Lit::Str(s) = l {
                self.texts.push(s.value());
            }
        }
        fn visit_block(&mut self, b: &'a Block) {
            self.blocks += 1;
            visit::visit_block(self, b);
        }
        fn visit_macro(&mut self, _: &'a syn::Macro) {
            self.others.push("a macro");
        }
        fn visit_attribute(&mut self, _: &'a syn::Attribute) {
            self.others.push("an attribute");
        }
        fn visit_local(&mut self, _: &'a syn::Local) {
            self.others.push("a variable");
        }
        fn visit_item(&mut self, _: &'a syn::Item) {
            self.others.push("an item");
        }
    }

    fn called(e: &Expr) -> String {
        let Expr::Call(call) = e else { panic!("no call") };
        let Expr::Path(path) = &*call.func else { panic!("no function's name") };
        path.path.segments.last().expect("a name").ident.to_string()
    }

    /// A variable's statement: one of four calls, with its name as a text and, for two, as a variable.
    fn check_statement(statement: &Stmt, name: &str) {
        let Stmt::Expr(e, _) = statement else { panic!("no expression") };
        let mut found = Found::default();
        found.visit_stmt(statement);
        assert!(found.others.is_empty(), "{:?}", found.others);
        assert!(found.texts.iter().all(|t| t == name), "{:?}", found.texts);
        match e {
            Expr::Call(call) => {
                assert_eq!((found.blocks, found.texts.len()), (0, 1));
                match called(e).as_str() {
                    "load_tensor" => assert_eq!(call.args.len(), 1),
                    "load_module" | "load_optimizer" => {
                        let Some(Expr::Reference(r)) = call.args.get(1) else { panic!("no reference") };
                        let Expr::Path(p) = &*r.expr else { panic!("no variable") };
                        assert!(call.args.len() == 2 && p.path.get_ident().is_some_and(|i| i == name));
                    }
                    other => panic!("{other} is called"),
                }
            }
            Expr::If(e) => {
                assert!(e.else_branch.is_none() && e.then_branch.stmts.len() == 1);
                assert_eq!((found.blocks, found.texts.len()), (1, 2));
                let Expr::Let(l) = &*e.cond else { panic!("no let") };
                let Expr::MethodCall(load) = &*l.expr else { panic!("no method") };
                let Stmt::Expr(Expr::MethodCall(keep), Some(_)) = &e.then_branch.stmts[0] else { panic!("no method") };
                assert!(load.method == "load" && load.args.len() == 1 && keep.method == "keep" && keep.args.len() == 2);
            }
            _ => panic!("another expression"),
        }
    }

    /// `XLAZY_FUZZ=1000000` draws that many files; a few thousand are enough to find what a change breaks.
    #[test]
    fn whatever_a_checkpoint_says_its_code_has_the_expected_syntax_tree() {
        let rounds = std::env::var("XLAZY_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
        let mut dice = Rng::with_seed(0x2545_f491_4f6c_dd1d);
        let defined = |item: &str| (item == "Known").then(|| "g_now".to_owned());
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..rounds {
            let mut parts = Vec::new();
            for _ in 0..dice.usize(..5) {
                let types = [TYPES, TYPES, TYPES, RUNNING][dice.usize(..4)];
                let (name, type_name) = (drawn(&mut dice, NAMES), drawn(&mut dice, types));
                let kind = one_of(&mut dice, &["value", "tensor", "module", "optimizer", "\"); evil(); (\""]);
                let there = [None, Some(type_name.as_str()), Some("i32")][dice.usize(..3)];
                let listed = serde_json::json!({"name": name, "type": type_name, "kind": kind});
                let statement = Listed::of(&listed).and_then(|v| load_statement(&v, there, &defined));
                match statement {
                    Ok(statement) => parts.push((name, statement)),
                    Err(why) => {
                        assert!(!why.contains(['\n', '\0', '\u{202e}']), "{why:?}");
                        refused += 1;
                    }
                }
            }
            taken += parts.len();
            let (path, hash) = (drawn(&mut dice, &["/a/b.safetensors"]), drawn(&mut dice, &["00ff"]));
            let text = load_text(&path, &hash, parts.iter().map(|p| p.1.as_str()), Serde::None);
            let block: Block = syn::parse_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
            let [Stmt::Item(_), Stmt::Item(_), Stmt::Expr(reopen, Some(_)), rest @ ..] = &block.stmts[..] else {
                panic!("{text}")
            };
            let mut found = Found::default();
            found.visit_expr(reopen);
            assert_eq!(
                (called(reopen), found.texts, found.others),
                ("reopen".into(), vec![path, hash], vec![]),
                "{text}"
            );
            assert_eq!(rest.len(), parts.len(), "{text}");
            rest.iter().zip(&parts).for_each(|(statement, (name, _))| check_statement(statement, name));
        }
        assert!(taken > rounds / 5 && refused > rounds / 5, "{taken} taken, {refused} refused");
    }

    #[test]
    fn helpers_of_serde_are_rust() {
        for serde in [Serde::None, Serde::Alone, Serde::Json] {
            let name = untrusted::identifier("x").expect("a name");
            let saved = save_text([save_statement(&name).as_str()].into_iter(), serde);
            let loaded = load_text("p", "h", std::iter::empty(), serde);
            for text in [saved, loaded] {
                assert!(syn::parse_str::<Block>(&text).is_ok(), "{text}");
            }
        }
    }
}
