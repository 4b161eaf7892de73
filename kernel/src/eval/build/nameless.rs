//! Closures that functions of the notebook make: what a function says of its result is the type that later cells have them by.
use crate::eval::generate::code::Loaded;
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::parsed::Parsed;
use crate::eval::parse::syntax::has_any_lifetime;
use crate::eval::text::depth;
use crate::eval::text::scan::{self, Kind};
use crate::eval::text::source::CellText;
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};

/// Makes closures of variables that are declared as a call of such a function; with how far their traits are weaker
/// than `Fn`, by their numbers in `Places`.
pub(super) fn closures_of_functions(
    parsed: &mut Parsed,
    cell: &CellText,
    defs: &Definitions,
) -> BTreeMap<usize, usize> {
    let mut weaker = BTreeMap::new();
    for n in 0..parsed.places.variables.len() {
        let v = &mut parsed.places.variables[n];
        if v.closure.is_some() || !v.has_value {
            continue;
        }
        let text = v.begins.zip(v.declared).and_then(|(begins, ends)| cell.text.get(begins..ends));
        let Some((level, arguments)) = text.and_then(called).and_then(|name| returns(&name, defs)) else { continue };
        v.closure = Some(arguments.clone());
        if level > 0 {
            weaker.insert(n, level);
        }
        // What later cells have by a name is the last variable of that name.
        let name = &parsed.places.variables[n].name;
        if parsed.places.declared(name) == Some(n) {
            parsed.bindings.iter_mut().filter(|b| b.name == *name).for_each(|b| b.closure = Some(arguments.clone()));
        }
    }
    weaker
}

/// Leaves of what `let`s hand over by names without a module the functions, and says which variables have any.
pub(super) fn functions_handed_over(parsed: &mut Parsed, loaded: &[Loaded], defs: &Definitions) -> BTreeSet<usize> {
    let own: BTreeSet<String> =
        parsed.places.variables.iter().filter(|v| v.declared.is_some()).map(|v| v.name.clone()).collect();
    let is_function = |name: &String| {
        let variable = own.contains(name) || loaded.iter().any(|v| v.name == *name);
        let defined = || defs.value_named(name).is_some_and(|(_, item)| scan::follows(item.text(), &["fn"], name));
        !variable && (defined() || defs.uses.iter().any(|u| u.binds == *name))
    };
    let variables = parsed.places.variables.iter_mut().enumerate();
    let left = variables.map(|(n, v)| {
        v.functions.retain(|f| f.name.as_ref().is_none_or(is_function));
        (n, !v.functions.is_empty())
    });
    left.filter(|(_, any)| *any).map(|(n, _)| n).collect()
}

/// The function that a `let` of one variable calls: `let mut f = make(…);`
fn called(text: &str) -> Option<String> {
    let tokens: Vec<scan::Token> = scan::tokens(text).into_iter().filter(|t| t.kind != Kind::Comment).collect();
    let word = |at: usize| tokens.get(at).map_or("", |t| &text[t.range.clone()]);
    let name = 3 + usize::from(word(1) == "mut");
    let call = word(0) == "let" && word(name - 1) == "=" && word(name + 1) == "(";
    let whole = || word(scan::close(&tokens, name + 1) + 1) == ";";
    (call && whole()).then(|| word(name).to_owned())
}

/// What a function says that it returns, if that is a closure: by the number of its trait, and its arguments as they are written for
/// a closure.
fn returns(name: &str, defs: &Definitions) -> Option<(usize, Vec<String>)> {
    let (_, item) = defs.value_named(name)?;
    let head = format!("{};", item.text().split_once('{')?.0);
    if !head.contains("impl") { None } else { depth::as_people_write(&head, || closure_in(&head)) }
}

/// The same of what is before the function's body.
fn closure_in(head: &str) -> Option<(usize, Vec<String>)> {
    let function: syn::TraitItemFn = depth::fits(head).then(|| syn::parse_str(head).ok())??;
    let syn::ReturnType::Type(_, ty) = &function.sig.output else { return None };
    let syn::Type::ImplTrait(ty) = &**ty else { return None };
    let generics: Vec<String> = function.sig.generics.type_params().map(|p| p.ident.to_string()).collect();
    let written = |ty: &syn::Type| match ty {
        syn::Type::Reference(r) if r.lifetime.is_none() && !has_any_lifetime(&r.elem) => {
            Some(format!("&{}_", if r.mutability.is_some() { "mut " } else { "" }))
        }
        ty if has_any_lifetime(ty) => {
            let text = ty.to_token_stream().to_string();
            let words = scan::mentions(&text);
            Some(text).filter(|_| !generics.iter().any(|name| words.contains(name)))
        }
        _ => Some("_".to_owned()),
    };
    ty.bounds.iter().find_map(|bound| {
        let syn::TypeParamBound::Trait(of) = bound else { return None };
        let last = of.path.segments.last()?;
        let level = ["Fn", "FnMut", "FnOnce"].iter().position(|name| last.ident == name)?;
        let syn::PathArguments::Parenthesized(arguments) = &last.arguments else { return None };
        Some((level, arguments.inputs.iter().map(written).collect::<Option<_>>()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_function_returns() {
        for (head, closure) in [
            ("fn f(n: i32) -> impl Fn(i32, &str) -> i32;", Some((0, vec!["_", "&_"]))),
            ("fn f<T>(all: Vec<Box<dyn Fn(f64) -> f64>>) -> impl FnMut(&mut T) + use<T>;", Some((1, vec!["&mut _"]))),
            ("fn f() -> impl FnOnce(Option<&str>) -> bool;", Some((2, vec!["Option < & str >"]))),
            ("fn f<T>() -> impl Fn(Option<&T>);", None),
            ("fn f() -> impl Iterator<Item = i32>;", None),
            ("fn f() -> Box<dyn Fn(i32)>;", None),
        ] {
            let wanted = closure.map(|(level, all)| (level, all.into_iter().map(str::to_owned).collect()));
            assert_eq!(depth::as_people_write(head, || closure_in(head)), wanted, "{head}");
        }
    }

    #[test]
    fn what_a_let_calls() {
        for (text, name) in [
            ("let f = make(1);", Some("make")),
            ("let mut f = make(vec![(1, 2)], /* two */ |x| (x)) ;", Some("make")),
            ("let f = make(1)(2);", None),
            ("let f = make(1).await;", None),
            ("let f: T = make(1);", None),
            ("let (f, g) = make(1);", None),
            ("let f = a::make(1);", None),
            ("let f = 3;", None),
        ] {
            assert_eq!(called(text).as_deref(), name, "{text}");
        }
    }
}
