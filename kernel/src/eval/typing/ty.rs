//! Types as rustc prints them, taken apart as far as finding what they have needs it.
use crate::eval::text::scan::{self, Kind, tokens};
use std::collections::HashMap;
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub enum Ty {
    /// A named type or a parameter, with its arguments.
    Path(String, Vec<Ty>),
    Ref(bool, Box<Ty>),
    Ptr(bool, Box<Ty>),
    Slice(Box<Ty>),
    Array(Box<Ty>, String),
    Tuple(Vec<Ty>),
    /// `dyn A + B`, `impl A + B`: the traits.
    Traits(&'static str, Vec<(String, Vec<Ty>)>),
    /// What a trait calls so of a type: `<T as Iterator>::Item`.
    Of(Box<Ty>, (String, Vec<Ty>), String),
    /// A function or a pointer to one.
    Function(String),
    /// What nothing is known about.
    Other(String),
}

/// What the parameters of an `impl` stand for.
pub type Bindings = HashMap<String, Ty>;

/// What a closure is called here; its type has no name.
const CLOSURE: &str = "closure";

impl Ty {
    /// A type as rustc's messages have it.
    pub fn printed(text: &str) -> Option<Ty> {
        let named = without_braces(text);
        syn::parse_str::<syn::Type>(&named).ok().map(|t| Ty::of(&t))
    }

    pub fn of(ty: &syn::Type) -> Ty {
        match ty {
            syn::Type::Path(p) => match &p.qself {
                None => path(&p.path),
                Some(of) => projection(of, &p.path),
            },
            syn::Type::Reference(r) => Ty::Ref(r.mutability.is_some(), Box::new(Ty::of(&r.elem))),
            syn::Type::Ptr(p) => Ty::Ptr(p.mutability.is_some(), Box::new(Ty::of(&p.elem))),
            syn::Type::Slice(s) => Ty::Slice(Box::new(Ty::of(&s.elem))),
            syn::Type::Array(a) => {
                let len = &a.len;
                Ty::Array(Box::new(Ty::of(&a.elem)), quote::quote!(#len).to_string())
            }
            syn::Type::Tuple(t) => Ty::Tuple(t.elems.iter().map(Ty::of).collect()),
            syn::Type::Paren(p) => Ty::of(&p.elem),
            syn::Type::Group(g) => Ty::of(&g.elem),
            syn::Type::TraitObject(t) => Ty::Traits("dyn", bounds(t.bounds.iter())),
            syn::Type::ImplTrait(t) => Ty::Traits("impl", bounds(t.bounds.iter())),
            syn::Type::BareFn(f) => Ty::Function(spaced(&quote::quote!(#f).to_string())),
            syn::Type::Never(_) => Ty::Other("!".into()),
            other => Ty::Other(spaced(&quote::quote!(#other).to_string())),
        }
    }

    /// What its methods are found by: the last part of a path, or a primitive's name in the documentation.
    pub fn head(&self) -> Option<&str> {
        match self {
            Ty::Path(path, _) => Some(last(path)),
            Ty::Ref(..) => Some("reference"),
            Ty::Ptr(..) => Some("pointer"),
            Ty::Slice(_) => Some("slice"),
            Ty::Array(..) => Some("array"),
            Ty::Tuple(all) if all.is_empty() => Some("unit"),
            Ty::Tuple(_) => Some("tuple"),
            Ty::Function(_) => Some("fn"),
            Ty::Traits(..) | Ty::Of(..) | Ty::Other(_) => None,
        }
    }

    pub fn is_closure(&self) -> bool {
        matches!(self, Ty::Path(name, args) if name == CLOSURE && args.is_empty())
    }

    pub fn args(&self) -> &[Ty] {
        match self {
            Ty::Path(_, args) => args,
            _ => &[],
        }
    }

    /// The same with parameters replaced by what they stand for.
    pub fn with(&self, bound: &Bindings) -> Ty {
        let one = |t: &Ty| Box::new(t.with(bound));
        let all = |list: &[Ty]| list.iter().map(|t| t.with(bound)).collect();
        match self {
            Ty::Path(name, args) if args.is_empty() => bound.get(name).unwrap_or(self).clone(),
            Ty::Path(name, args) => Ty::Path(name.clone(), all(args)),
            Ty::Ref(m, t) => Ty::Ref(*m, one(t)),
            Ty::Ptr(m, t) => Ty::Ptr(*m, one(t)),
            Ty::Slice(t) => Ty::Slice(one(t)),
            Ty::Array(t, n) => Ty::Array(one(t), n.clone()),
            Ty::Tuple(list) => Ty::Tuple(all(list)),
            Ty::Of(t, (of_trait, args), name) => Ty::Of(one(t), (of_trait.clone(), all(args)), name.clone()),
            Ty::Traits(..) | Ty::Function(_) | Ty::Other(_) => self.clone(),
        }
    }

    /// Whether a type fits the pattern of an `impl` with these parameters; what they stand for is added. What is not
    /// known fits anything.
    pub fn fits(&self, pattern: &Ty, parameters: &[String], bound: &mut Bindings) -> bool {
        match (pattern, self) {
            (Ty::Path(name, args), _) if args.is_empty() && parameters.contains(name) => match bound.get(name) {
                Some(before) => before == self || matches!(before, Ty::Other(_)) || matches!(self, Ty::Other(_)),
                None => {
                    bound.insert(name.clone(), self.clone());
                    true
                }
            },
            (Ty::Other(_) | Ty::Of(..), _) | (_, Ty::Other(_) | Ty::Of(..)) => true,
            (Ty::Path(a, left), Ty::Path(b, right)) => {
                // Arguments that have a default are not always written.
                last(a) == last(b) && left.iter().zip(right).all(|(p, t)| t.fits(p, parameters, bound))
            }
            (Ty::Ref(a, p), Ty::Ref(b, t)) | (Ty::Ptr(a, p), Ty::Ptr(b, t)) => a == b && t.fits(p, parameters, bound),
            (Ty::Slice(p), Ty::Slice(t)) | (Ty::Array(p, _), Ty::Array(t, _)) => t.fits(p, parameters, bound),
            (Ty::Tuple(left), Ty::Tuple(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(p, t)| t.fits(p, parameters, bound))
            }
            (Ty::Traits(a, p), Ty::Traits(b, t)) => a == b && p.first().map(|p| &p.0) == t.first().map(|t| &t.0),
            (Ty::Function(_), Ty::Function(_)) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let list = |all: &[Ty]| all.iter().map(Ty::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Ty::Path(path, args) if args.is_empty() => write!(f, "{}", last(path)),
            Ty::Path(path, args) => write!(f, "{}<{}>", last(path), list(args)),
            Ty::Ref(m, t) => write!(f, "&{}{t}", if *m { "mut " } else { "" }),
            Ty::Ptr(m, t) => write!(f, "*{} {t}", if *m { "mut" } else { "const" }),
            Ty::Slice(t) => write!(f, "[{t}]"),
            Ty::Array(t, n) => write!(f, "[{t}; {n}]"),
            Ty::Tuple(all) if all.len() == 1 => write!(f, "({},)", all[0]),
            Ty::Tuple(all) => write!(f, "({})", list(all)),
            Ty::Traits(word, all) => {
                let one = |(name, args): &(String, Vec<Ty>)| match args.is_empty() {
                    true => last(name).to_owned(),
                    false => format!("{}<{}>", last(name), list(args)),
                };
                write!(f, "{word} {}", all.iter().map(one).collect::<Vec<_>>().join(" + "))
            }
            Ty::Of(t, (of_trait, args), name) if args.is_empty() => write!(f, "<{t} as {}>::{name}", last(of_trait)),
            Ty::Of(t, (of_trait, args), name) => write!(f, "<{t} as {}<{}>>::{name}", last(of_trait), list(args)),
            Ty::Function(text) | Ty::Other(text) => f.write_str(text),
        }
    }
}

/// `<T as Trait>::Name`.
fn projection(of: &syn::QSelf, whole: &syn::Path) -> Ty {
    let of_trait: Vec<String> = whole.segments.iter().take(of.position).map(|s| s.ident.to_string()).collect();
    match (whole.segments.last(), of.position.checked_sub(1).and_then(|i| whole.segments.get(i))) {
        (Some(name), Some(segment)) => Ty::Of(
            Box::new(Ty::of(&of.ty)),
            (of_trait.join("::"), arguments(&segment.arguments)),
            name.ident.to_string(),
        ),
        _ => Ty::of(&of.ty),
    }
}

/// The last part of a path.
pub fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

fn path(path: &syn::Path) -> Ty {
    let name: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    Ty::Path(name.join("::"), path.segments.last().map(|s| arguments(&s.arguments)).unwrap_or_default())
}

fn arguments(written: &syn::PathArguments) -> Vec<Ty> {
    let syn::PathArguments::AngleBracketed(a) = written else { return Vec::new() };
    let one = |a: &syn::GenericArgument| match a {
        syn::GenericArgument::Type(t) => Some(Ty::of(t)),
        syn::GenericArgument::Const(c) => Some(Ty::Other(quote::quote!(#c).to_string())),
        syn::GenericArgument::AssocType(t) => Some(Ty::of(&t.ty)),
        _ => None,
    };
    a.args.iter().filter_map(one).collect()
}

/// The traits among some bounds.
pub fn bounds<'a>(all: impl Iterator<Item = &'a syn::TypeParamBound>) -> Vec<(String, Vec<Ty>)> {
    let one = |b: &syn::TypeParamBound| match b {
        syn::TypeParamBound::Trait(t) if matches!(t.modifier, syn::TraitBoundModifier::None) => match path(&t.path) {
            Ty::Path(name, args) => Some((name, args)),
            _ => None,
        },
        _ => None,
    };
    all.filter_map(one).collect()
}

/// `{integer}` is a number, a closure has a name, and `fn(i32) -> i32 {f}` is a function's type.
fn without_braces(text: &str) -> String {
    let mut out = String::new();
    let all = tokens(text);
    let mut i = 0;
    let mut from = 0;
    while i < all.len() {
        if all[i].kind == Kind::Open('{') {
            let end = scan::close(&all, i);
            out.push_str(&text[from..all[i].range.start]);
            let inside = &text[all[i].range.end..all.get(end).map_or(text.len(), |t| t.range.start)];
            let behind_a_type = i > 0 && !matches!(all[i - 1].kind, Kind::Open(_) | Kind::Punct('<' | ',' | '&'));
            out.push_str(match inside {
                "integer" => "i32",
                "float" => "f64",
                _ if inside.starts_with("closure") => CLOSURE,
                _ if behind_a_type => "",
                _ => "_",
            });
            from = all.get(end).map_or(text.len(), |t| t.range.end);
            i = end;
        }
        i += 1;
    }
    out + &text[from..]
}

/// Tokens as `quote` prints them, written as people do.
pub fn spaced(text: &str) -> String {
    let mut out = text.to_owned();
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        (" >", ">"),
        ("< ", "<"),
        (" ,", ","),
        ("& ", "&"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" ;", ";"),
        (" : ", ": "),
        ("' ", "'"),
        (" !", "!"),
        ("[ ", "["),
        (" ]", "]"),
        ("* ", "*"),
    ] {
        out = out.replace(from, to);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rustc_prints_is_taken_apart() {
        let shown = |text: &str| Ty::printed(text).map(|t| t.to_string());
        for (printed, want) in [
            ("std::collections::hash_map::Iter<'_, String, Vec<xlazy::Tensor>>", "Iter<String, Vec<Tensor>>"),
            ("&mut [f32; 3]", "&mut [f32; 3]"),
            ("{float}", "f64"),
            ("Map<std::slice::Iter<'_, i32>, {closure@/x:14:51: 14:54}>", "Map<Iter<i32>, closure>"),
            ("(i32, &str)", "(i32, &str)"),
            ("Box<dyn Fn(i32) -> i32>", "Box<dyn Fn>"),
            ("impl Iterator<Item = u8>", "impl Iterator<u8>"),
        ] {
            assert_eq!(shown(printed).as_deref(), Some(want), "{printed}");
        }
        assert!(matches!(Ty::printed("fn(i32) -> i32 {double}"), Some(Ty::Function(_))));
    }

    #[test]
    fn a_pattern_says_what_its_parameters_stand_for() {
        let fits = |ty: &str, pattern: &str, parameters: &[&str]| {
            let parameters: Vec<String> = parameters.iter().map(|p| p.to_string()).collect();
            let mut bound = Bindings::new();
            let (ty, pattern) = (Ty::printed(ty).unwrap(), Ty::printed(pattern).unwrap());
            ty.fits(&pattern, &parameters, &mut bound).then(|| bound.get("T").map(Ty::to_string))
        };
        assert_eq!(fits("Vec<i32>", "Vec<T, A>", &["T", "A"]), Some(Some("i32".into())));
        assert_eq!(fits("Option<Option<u8>>", "Option<Option<T>>", &["T"]), Some(Some("u8".into())));
        assert_eq!(fits("Option<u8>", "Option<Option<T>>", &["T"]), None);
        assert_eq!(fits("[u8]", "[T]", &["T"]), Some(Some("u8".into())));
        assert_eq!(fits("Vec<i32>", "[T]", &["T"]), None);
    }
}
