//! Closures that functions of the notebook make, or that types of the notebook are made of: what the function says of its result, and the
//! type of its parts, is the type that later cells have them by.
use crate::eval::generate::code::Loaded;
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::functions::Closure;
use crate::eval::parse::items::Item;
use crate::eval::parse::parsed::Parsed;
use crate::eval::parse::syntax::has_any_lifetime;
use crate::eval::text::depth;
use crate::eval::text::scan::{self, Kind};
use crate::eval::text::source::CellText;
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use syn::parse::Parse;

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
        v.functions.retain_mut(|f| match &mut f.closure {
            Some(closure) => wanted(closure, defs).map(|wanted| closure.wanted = wanted).is_some(),
            None => {
                f.signature = f.name.as_ref().and_then(|name| of_any_lifetime(name, defs));
                f.name.as_ref().is_none_or(is_function)
            }
        });
        (n, !v.functions.is_empty())
    });
    left.filter(|(_, any)| *any).map(|(n, _)| n).collect()
}

/// The trait that a type of the notebook, or what it implements, wants of a closure with so many arguments: of the type's own parameters
/// anything.
fn wanted(closure: &Closure, defs: &Definitions) -> Option<String> {
    let (_, ty) = defs.type_named(&closure.of)?;
    let of_it = |i: &&Item| i.header.as_ref().is_some_and(|h| own_name(&h.self_type) == closure.of);
    let impls = defs.items().map(|(_, item)| item).filter(of_it);
    [ty].into_iter().chain(impls).find_map(|item| {
        let text = item.text();
        // Bodies say nothing of it.
        let head = format!("{}{{}}", text.split_once('{')?.0);
        if !head.contains("Fn") { None } else { depth::as_people_write(&head, || bound(&head, closure.arity)) }
    })
}

/// The type of a function of the notebook that takes references, which a pointer's inferred type would have for one lifetime alone.
fn of_any_lifetime(name: &str, defs: &Definitions) -> Option<String> {
    let head = head_of(name, defs)?;
    if !head.contains('&') { None } else { depth::as_people_write(&head, || pointer_to(&head)) }
}

/// What is before the body of a function of the notebook, as a trait has it.
fn head_of(name: &str, defs: &Definitions) -> Option<String> {
    let (_, item) = defs.value_named(name)?;
    Some(format!("{};", item.text().split_once('{')?.0))
}

/// What a head says, unless it is nested too deep.
fn read<T: Parse>(head: &str) -> Option<T> {
    depth::fits(head).then(|| syn::parse_str(head).ok())?
}

/// The same of what is before the function's body.
fn pointer_to(head: &str) -> Option<String> {
    let function: syn::TraitItemFn = read(head)?;
    let sig = &function.sig;
    let types = sig.inputs.iter().map(|input| match input {
        syn::FnArg::Typed(of) => Some(&*of.ty),
        syn::FnArg::Receiver(_) => None,
    });
    let types = types.collect::<Option<Vec<_>>>()?;
    let result = sig.output.to_token_stream().to_string();
    let written: Vec<String> = types.iter().map(|ty| ty.to_token_stream().to_string()).collect();
    let plain =
        sig.generics.params.is_empty() && sig.asyncness.is_none() && sig.unsafety.is_none() && sig.abi.is_none();
    let named = !written.iter().chain([&result]).any(|ty| scan::mentions(ty).contains("impl"));
    let any = types.iter().any(|ty| has_any_lifetime(ty));
    (plain && named && any).then(|| format!("fn({}) {result}", written.join(", ")))
}

/// A type's name without what it is of.
fn own_name(ty: &str) -> &str {
    ty.split('<').next().unwrap_or(ty).trim()
}

/// The first closure's trait in the head of a struct, an enum or an `impl`.
fn bound(head: &str, arity: usize) -> Option<String> {
    let item: syn::Item = read(head)?;
    let generics = match &item {
        syn::Item::Struct(s) => &s.generics,
        syn::Item::Enum(e) => &e.generics,
        syn::Item::Impl(i) => &i.generics,
        _ => return None,
    };
    let own: Vec<String> = generics.type_params().map(|p| p.ident.to_string()).collect();
    let written = |ty: &syn::Type| {
        let text = ty.to_token_stream().to_string();
        let words = scan::mentions(&text);
        match ty {
            _ if !own.iter().any(|name| words.contains(name)) => text,
            syn::Type::Reference(r) => format!("&{}_", if r.mutability.is_some() { "mut " } else { "" }),
            _ => "_".to_owned(),
        }
    };
    let parameters = generics.type_params().map(|p| &p.bounds);
    let wheres = generics.where_clause.iter().flat_map(|w| &w.predicates).filter_map(|p| match p {
        syn::WherePredicate::Type(of) => Some(&of.bounds),
        _ => None,
    });
    parameters.chain(wheres).flatten().find_map(|bound| {
        let (name, arguments) = closure_trait(bound)?;
        let arguments: Vec<String> = arguments.inputs.iter().map(written).collect();
        (arguments.len() == arity).then(|| format!("{name}({}) -> _", arguments.join(", ")))
    })
}

/// `Fn(u32) -> u32` and its like.
fn closure_trait(bound: &syn::TypeParamBound) -> Option<(&'static str, &syn::ParenthesizedGenericArguments)> {
    let syn::TypeParamBound::Trait(of) = bound else { return None };
    let last = of.path.segments.last()?;
    let name = CLOSURES.into_iter().find(|name| last.ident == name)?;
    let syn::PathArguments::Parenthesized(arguments) = &last.arguments else { return None };
    Some((name, arguments))
}

const CLOSURES: [&str; 3] = ["Fn", "FnMut", "FnOnce"];

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
    let head = head_of(name, defs)?;
    if !head.contains("impl") { None } else { depth::as_people_write(&head, || closure_in(&head)) }
}

/// The same of what is before the function's body.
fn closure_in(head: &str) -> Option<(usize, Vec<String>)> {
    let function: syn::TraitItemFn = read(head)?;
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
        let (name, arguments) = closure_trait(bound)?;
        let level = CLOSURES.iter().position(|n| *n == name)?;
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
    fn what_a_type_wants_of_its_closure() {
        for (head, wanted) in [
            ("struct Cache<T> where T: Fn(u32) -> u32 {}", Some("Fn(u32) -> _")),
            ("impl<A: Clone, T: FnMut(&A, &str) -> A> Cache<A, T> {}", None),
            ("impl<A: Clone, T: FnMut(&A) -> A> Cache<A, T> {}", Some("FnMut(&_) -> _")),
            ("impl<A: Clone, T: FnMut(Vec<A>)> Cache<A, T> {}", Some("FnMut(_) -> _")),
            ("enum Step<F: FnOnce(&str)> {}", Some("FnOnce(& str) -> _")),
            ("struct Cache<T> {}", None),
        ] {
            assert_eq!(depth::as_people_write(head, || bound(head, 1)).as_deref(), wanted, "{head}");
        }
    }

    #[test]
    fn functions_that_take_references_of_any_lifetime() {
        for (head, pointer) in [
            ("fn len(s: &str) -> usize;", Some("fn(& str) -> usize")),
            ("fn put(all: &mut Vec<i32>, n: i32);", Some("fn(& mut Vec < i32 >, i32) ")),
            ("fn first<'a>(s: &'a str) -> &'a str;", None),
            ("fn show(s: &str, of: impl Fn()) -> usize;", None),
            ("fn twice(n: i32) -> i32;", None),
        ] {
            let found = depth::as_people_write(head, || pointer_to(head));
            assert_eq!(found.as_deref(), pointer, "{head}");
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
