//! Numbers that an earlier cell says no type of, so that rustc took them to be `i32` or `f64`: whether that cell's source would do with
//! others, and what has a value with those.
use super::plan::Loaded;
use crate::eval::text::lifetimes::with_lifetime;
use crate::eval::text::scan::{Kind, tokens};
use quote::ToTokens;
use syn::{GenericArgument, PathArguments, Type};

/// What rustc takes a number for that nothing says the type of, with another type that it could be of, and such a number.
const UNTOLD: [(&str, &str, &str); 2] = [("i32", "i64", "0"), ("f64", "f32", "0.0")];

/// Whether a value of that type has such numbers, and can be had with others.
pub fn may_be_others(ty: &str) -> bool {
    let other = |ty: Type| has_numbers(&ty.to_token_stream().to_string()) && converted(&ty, "", 0).is_some();
    syn::parse_str::<Type>(ty).is_ok_and(other)
}

/// A cell's source that compiles if the variable may as well have other numbers; none where it is not seen what the cell makes of it.
pub fn with_others(source: &str, name: &str, ty: &str) -> Option<String> {
    let stored = format!("\"{name}\", {name})");
    let asked = format!("\"{name}\", {{ xlazy_wanted(&{name}); {name} }})");
    let other = with_numbers(&with_lifetime(ty, "'_"), &mut |(_, other, _)| other.to_owned());
    let wanted = format!("fn xlazy_wanted(_: &{other}) {{}}\n");
    source.contains(&stored).then(|| source.replace(&stored, &asked) + &wanted)
}

/// The variable's value with other numbers, of the type that is wanted.
pub fn value_with_others(v: &Loaded, ty: &str) -> Option<String> {
    let name = &v.name;
    let converted = converted(&syn::parse_str(ty).ok()?, "xlazy_value", 0)?;
    let by = format!("|xlazy_value: &{ty}| ::core::result::Result::Ok({converted})");
    Some(match v.lent {
        true => format!("xlazy_rt::other_numbers(xlazy_rt::lent::<{ty}>(\"{name}\"), {by})"),
        false => {
            let load = format!("(&&&xlazy_rt::Of::<{ty}>::TYPE).load(\"{name}\", {})", v.adopt);
            format!("xlazy_rt::loaded_numbers(\"{name}\", {load}, {by})")
        }
    })
}

/// Declares the variable with other numbers, which the cell says the type of.
pub fn load_with_others(v: &Loaded, ty: &str) -> Option<String> {
    let (name, value) = (&v.name, value_with_others(v, ty)?);
    let (mut numbers, mut values) = (Vec::new(), Vec::new());
    let like = with_numbers(&with_lifetime(ty, "'xlazy_l"), &mut |(_, _, value)| {
        values.push(value);
        numbers.push(format!("N{}", numbers.len()));
        numbers.last().cloned().unwrap_or_default()
    });
    let arguments: String = numbers.iter().map(|n| format!(", _: {n}")).collect();
    let mutable = if v.fixed { "" } else { "mut " };
    Some(format!(
        " let {mutable}{name} = {{ fn xlazy_like<'xlazy_l, {}>(_: &'xlazy_l (){arguments}) -> ::core::marker::PhantomData<{like}> \
         {{ ::core::marker::PhantomData }} xlazy_rt::as_like(xlazy_like(&(), {}), {value}) }};",
        numbers.join(", "),
        values.join(", "),
    ))
}

/// The type with others in place of such numbers.
fn with_numbers(ty: &str, other: &mut dyn FnMut((&str, &str, &'static str)) -> String) -> String {
    let mut out = ty.to_owned();
    let words = tokens(ty).into_iter().filter(|t| t.kind == Kind::Ident);
    let numbers = words.filter_map(|t| Some((UNTOLD.into_iter().find(|(n, ..)| *n == &ty[t.range.clone()])?, t.range)));
    let new: Vec<_> = numbers.map(|(number, at)| (other(number), at)).collect();
    new.into_iter().rev().for_each(|(number, at)| out.replace_range(at, &number));
    out
}

fn has_numbers(ty: &str) -> bool {
    let mut any = false;
    with_numbers(ty, &mut |_| {
        any = true;
        String::new()
    });
    any
}

/// What makes the same of a reference with other numbers in it; none for a type that is not known to be made of its parts.
fn converted(ty: &Type, of: &str, depth: usize) -> Option<String> {
    let text = ty.to_token_stream().to_string();
    if !has_numbers(&text) {
        return Some(format!("::core::clone::Clone::clone({of})"));
    }
    const OK: &str = "::core::result::Result::Ok::<_, ::std::string::String>";
    let item = format!("xlazy_{depth}");
    let part = |ty: &Type, of: &str| converted(ty, of, depth + 1);
    match ty {
        Type::Paren(t) => converted(&t.elem, of, depth),
        Type::Group(t) => converted(&t.elem, of, depth),
        Type::Tuple(t) => {
            let parts = t.elems.iter().enumerate().map(|(i, ty)| part(ty, &format!("&{item}.{i}")));
            let parts: Vec<String> = parts.collect::<Option<_>>()?;
            Some(format!("{{ let {item} = {of}; ({},) }}", parts.join(", ")))
        }
        Type::Array(t) => {
            let one = part(&t.elem, &item)?;
            Some(format!(
                "{{ let mut xlazy_all = ::std::vec::Vec::new(); for {item} in {of} {{ xlazy_all.push({one}); }} \
                 <[_; _] as ::core::convert::TryFrom<_>>::try_from(xlazy_all).map_err(|_| ::std::string::String::new())? }}"
            ))
        }
        Type::Path(p) => {
            let last = p.path.segments.last()?;
            let ours = p.path.segments.len() == 1
                || p.path.segments.first().is_some_and(|s| ["std", "core", "alloc"].iter().any(|std| s.ident == std));
            let types: Vec<&Type> = match &last.arguments {
                PathArguments::AngleBracketed(a) => a
                    .args
                    .iter()
                    .filter_map(|a| if let GenericArgument::Type(ty) = a { Some(ty) } else { None })
                    .collect(),
                _ => Vec::new(),
            };
            let collection = &*text.split('<').next().unwrap_or(&text).replace(' ', "");
            let collected = |item: &str, of_each: String, parts: &str| {
                format!(
                    "{of}.iter().map(|{item}| {OK}({of_each})).collect::<::core::result::Result<{collection}<{parts}>, _>>()?"
                )
            };
            match (&*last.ident.to_string(), &types[..]) {
                _ if !ours => None,
                (_, []) => Some(format!("xlazy_rt::Number::number({of})?")),
                ("Vec" | "VecDeque" | "LinkedList" | "BinaryHeap" | "BTreeSet" | "HashSet", [t]) => {
                    Some(collected(&item, part(t, &item)?, "_"))
                }
                ("HashMap" | "BTreeMap", [k, v]) => {
                    let (key, value) = (format!("{item}_key"), format!("{item}_value"));
                    let both = format!("({}, {})", part(k, &key)?, part(v, &value)?);
                    Some(collected(&format!("({key}, {value})"), both, "_, _"))
                }
                ("Option", [t]) => Some(format!(
                    "match {of} {{ ::core::option::Option::Some({item}) => ::core::option::Option::Some({}), \
                     ::core::option::Option::None => ::core::option::Option::None }}",
                    part(t, &item)?
                )),
                ("Box", [t]) => {
                    Some(format!("{{ let {item} = {of}; {collection}::new({}) }}", part(t, &format!("&**{item}"))?))
                }
                ("Reverse", [t]) => {
                    Some(format!("{{ let {item} = {of}; {collection}({}) }}", part(t, &format!("&{item}.0"))?))
                }
                ("Range", [t]) => {
                    let end = |of: &str| part(t, &format!("&{item}.{of}"));
                    Some(format!("{{ let {item} = {of}; {}..{} }}", end("start")?, end("end")?))
                }
                ("RangeInclusive", [t]) => {
                    let end = |of: &str| part(t, &format!("{item}.{of}()"));
                    Some(format!("{{ let {item} = {of}; {}..={} }}", end("start")?, end("end")?))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_had_with_other_numbers() {
        for ty in [
            "i32",
            "::std::vec::Vec<(u32, i32)>",
            "::std::collections::HashMap<&str, i32>",
            "::core::option::Option<[f64; 3]>",
            "::std::collections::BinaryHeap<::core::cmp::Reverse<(i32, ::notebook::State)>>",
            "(::core::ops::Range<i32>, ::std::boxed::Box<f64>)",
        ] {
            assert!(may_be_others(ty), "{ty}");
        }
        for ty in [
            "u32",
            "::std::string::String",
            "::notebook::Stack<i32>",
            "&i32",
            "::std::rc::Rc<i32>",
            "::std::boxed::Box<dyn Fn(i32) -> i32>",
            "fn(i32)",
        ] {
            assert!(!may_be_others(ty), "{ty}");
        }
        let other = with_others("x.hold(f, 0, \"n\", n); y.keep(\"m\", m);", "n", "(i32, f64, &str)").unwrap();
        assert!(other.contains("\"n\", { xlazy_wanted(&n); n });") && other.contains("\"m\", m)"), "{other}");
        assert!(other.ends_with("fn xlazy_wanted(_: &(i64, f32, &'_ str)) {}\n"), "{other}");
        assert_eq!(with_others("let n = 3;", "n", "i32"), None);
    }
}
