//! What the runtime has, by its public names: types with their fields and variants, functions with what they take.
use super::lines::Lines;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use syn::spanned::Spanned;

/// Torch takes some names for one another, and ours are sometimes the other one.
pub(super) fn same(one: &str, other: &str) -> bool {
    const SAME: [&[&str]; 8] = [
        &["dim", "dims", "axis"],
        &["keepdim", "keepdims"],
        &["shape", "size", "normalized_shape"],
        &["p", "ord"],
        &["fill_value", "value"],
        &["num_workers", "workers"],
        &["correction", "unbiased"],
        &["upper", "UPLO"],
    ];
    one.eq_ignore_ascii_case(other) || SAME.iter().any(|all| all.contains(&one) && all.contains(&other))
}

/// The runtime's public names with their signatures, asked for when they are wanted.
pub struct Ours<'a> {
    ask: &'a dyn Fn() -> String,
    lines: OnceCell<Lines>,
    rewritten: RefCell<HashMap<String, String>>,
}

/// A function of ours: what it is called as, and what it takes.
pub(super) struct Function {
    pub of_self: bool,
    pub takes: Vec<(String, String)>,
}

impl<'a> Ours<'a> {
    pub fn new(ask: &'a dyn Fn() -> String) -> Ours<'a> {
        Ours { ask, lines: OnceCell::new(), rewritten: RefCell::default() }
    }

    /// What an expression is here, which is found once.
    pub(super) fn rewritten(&self, text: &str, anew: fn(&str, &Ours) -> String) -> String {
        if let Some(known) = self.rewritten.borrow().get(text) {
            return known.clone();
        }
        let new = anew(text, self);
        self.rewritten.borrow_mut().insert(text.to_owned(), new.clone());
        new
    }

    /// Without a session nobody tells them.
    pub(super) fn are_known(&self) -> bool {
        self.lines().next().is_some()
    }

    fn known(&self) -> &Lines {
        self.lines.get_or_init(|| Lines::of((self.ask)()))
    }

    /// Name, kind, and name with what it belongs to in front: `Tensor::sort(&self, dim: i64, …`.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let known = self.known();
        (0..known.all.len()).map(|i| known.line(i))
    }

    /// Those of one name.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = (&str, &str, &str)> {
        let known = self.known();
        known.by_name.get(name).into_iter().flatten().map(|i| known.line(*i))
    }

    /// `owner::name`, whatever module that is in.
    pub(super) fn function(&self, owner: &str, name: &str) -> Option<Function> {
        let signature = self.named(name).find_map(|(_, kind, full)| {
            let fits = matches!(kind, "method" | "function");
            let at = full.find(['(', '<']).filter(|_| fits)?;
            let start = full[..at].rfind("::").map_or(0, |i| i + 2);
            let of = full[..start].trim_end_matches("::");
            let last = of.rsplit("::").next().unwrap_or_default();
            (last == owner || owner.is_empty() && !last.starts_with(char::is_uppercase)).then(|| &full[start..])
        })?;
        let text = format!("fn {signature}");
        let parsed = syn::parse_str::<syn::Signature>(&text).ok()?;
        let written = |spanned: Range<usize>| text.get(spanned).unwrap_or_default().to_owned();
        let takes = parsed.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => {
                let ty = written(typed.ty.span().byte_range());
                Some((written(typed.pat.span().byte_range()).replace("mut ", ""), ty.replace("'a ", "")))
            }
            syn::FnArg::Receiver(_) => None,
        });
        Some(Function { of_self: parsed.receiver().is_some(), takes: takes.collect() })
    }

    /// The methods that take a value of a type and make one of another of it, with the names of what they take.
    pub(super) fn made_by(&self, owner: &str, made: &str) -> Vec<(&str, String)> {
        let gives = |full: &str| full.ends_with(&format!("-> {made}")) && full.starts_with(&format!("{owner}::"));
        let all = self.lines().filter(|(_, kind, full)| *kind == "method" && gives(full)).map(|(name, ..)| name);
        let takes =
            |f: Function| f.takes.into_iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        all.filter_map(|name| Some((name, takes(self.function(owner, name)?)))).collect()
    }

    /// A method that sets what torch's constructor takes by that name.
    pub(super) fn method(&self, of: &str, name: &str) -> Option<(&str, Function)> {
        let named = self.lines().filter(|(n, kind, _)| *kind == "method" && same(n, name));
        named.filter(|_| !of.is_empty()).find_map(|(n, ..)| Some((n, self.function(of, n)?)))
    }

    /// A method that leaves out what torch's constructor has by default: `without_affine`.
    pub(super) fn without(&self, of: &str, name: &str) -> Option<&str> {
        let leaves_out = |n: &str| n.strip_prefix("without_").is_some_and(|what| name.ends_with(what));
        let all = self
            .lines()
            .filter(|(n, kind, full)| *kind == "method" && leaves_out(n) && full.starts_with(&format!("{of}::")));
        all.map(|(n, ..)| n).find(|_| !of.is_empty())
    }

    /// A type as a cell can name it.
    pub(super) fn path(&self, ty: &str) -> String {
        let found = self.named(ty).find(|(_, kind, _)| matches!(*kind, "struct" | "enum"));
        found.map_or(ty, |(.., full)| full).to_owned()
    }

    /// Where a type, a trait or a function is that is no type's own.
    pub(super) fn path_of(&self, name: &str) -> Option<&str> {
        const KINDS: [&str; 4] = ["struct", "enum", "trait", "function"];
        let full = self.named(name).filter(|(_, kind, _)| KINDS.contains(kind)).map(|(.., full)| full);
        let path = |full: &str| full.find(['(', '<']).unwrap_or(full.len());
        full.map(|full| &full[..path(full)]).find(|path| path.ends_with(name))
    }

    /// As [`Ours::path_of`], of a path with a module whose letters are small or capital otherwise, or apart: `nn::layernorm`.
    pub(super) fn path_like(&self, path: &str) -> Option<&str> {
        let letters = |path: &str| path.replace('_', "").to_lowercase();
        let (wanted, types) = (letters(path), ["struct", "enum", "trait"]);
        let all = self.lines().filter(|(_, kind, _)| types.contains(kind)).map(|(.., full)| full);
        all.map(|full| &full[..full.find('<').unwrap_or(full.len())]).find(|full| letters(full) == wanted)
    }

    /// What is `kind` of a type: its fields or variants.
    pub(super) fn parts(&self, kind: &str, owner: &str) -> Vec<&str> {
        let inside = |full: &str| {
            let (of, _) = full.split_once("::")?;
            (of == owner).then_some(())
        };
        self.lines().filter(|(_, k, full)| *k == kind && inside(full).is_some()).map(|(name, ..)| name).collect()
    }

    pub(super) fn is_made_of(&self, ty: &str, from: &str) -> bool {
        let head = format!("From<{from}> for {ty}");
        self.lines().any(|(name, kind, _)| kind == "impl" && name.contains(&head))
    }

    pub(super) fn is_made_of_a_number(&self, ty: &str) -> bool {
        ["f64", "i64", "i32", "usize", "u64", "T"].iter().any(|number| self.is_made_of(ty, number))
    }

    pub(super) fn is_type(&self, name: &str) -> bool {
        self.named(name).any(|(_, kind, _)| matches!(kind, "struct" | "enum"))
    }

    /// Whether it is known how a type is made.
    pub(super) fn is_made(&self, ty: &str) -> bool {
        ["new", "with"].iter().any(|f| self.function(ty, f).is_some())
    }

    /// Whether the prelude has a function of that name.
    pub(super) fn is_function(&self, name: &str) -> bool {
        let its_own = |full: &str| full.strip_prefix(name).is_some_and(|rest| rest.starts_with(['(', '<']));
        self.named(name).any(|(_, kind, full)| kind == "function" && its_own(full))
    }

    /// Whether something of a name of torch's is there, a function in place or one that gives another value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.lines().any(|(n, ..)| n == name || n == name.trim_end_matches('_'))
    }

    /// The fields of a struct, with their types.
    pub(super) fn fields(&self, ty: &str) -> Vec<(&str, &str)> {
        let of_it = |full: &str| full.strip_prefix(ty).is_some_and(|rest| rest.starts_with("::"));
        let all = self.lines().filter(|(_, kind, full)| *kind == "field" && of_it(full));
        all.map(|(name, _, full)| (name, full.split_once(": ").map_or("", |(_, ty)| ty))).collect()
    }

    /// The struct of options that a type is made with.
    pub(super) fn options_of(&self, ty: &str) -> Option<String> {
        self.function(ty, "with")?.takes.pop().map(|(_, ty)| ty).filter(|ty| ty.ends_with("Options"))
    }
}
