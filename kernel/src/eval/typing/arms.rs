//! What the arms of a `match` can match: the variants of what it is about, or of the part of it that the cursor is at.
use super::catalog::{Kind, TypeDef};
use super::names::Offers;
use super::place::Arm;
use super::ty::{Bindings, Ty, last};
use super::words::PRELUDE;
use super::world::{Found, World};

/// Adds them in their order, as they are written where the cursor is.
pub fn variants(offers: &mut Offers, world: &World, whole: Ty, arm: &Arm) {
    let part = arm.inside.iter().try_fold(whole, |ty, (path, field)| part(world, &ty, path, field));
    let Some(def) = part.and_then(|ty| definition(world, &ty)).filter(|d| d.kind == Kind::Enum) else { return };
    for v in def.members.iter().filter(|m| m.kind == Kind::Variant) {
        offers.add(0, &written(world, def, &v.name), "variant", &v.signature, &v.doc);
    }
}

/// What stands behind references and other names.
fn definition<'w>(world: &'w World, ty: &Ty) -> Option<&'w TypeDef> {
    let def = world.type_of(behind(ty))?;
    def.target.as_ref().and_then(|t| world.type_of(t)).or(Some(def))
}

fn behind(ty: &Ty) -> &Ty {
    match ty {
        Ty::Ref(_, inner) => behind(inner),
        _ => ty,
    }
}

/// The type of a field in the pattern of a variant, a struct, or a tuple.
fn part(world: &World, ty: &Ty, path: &[String], field: &str) -> Option<Ty> {
    let ty = behind(ty);
    if let Ty::Tuple(all) = ty {
        return all.get(field.parse::<usize>().ok()?).cloned();
    }
    let def = definition(world, ty)?;
    let fields = match def.kind {
        Kind::Enum => def.members.iter().find(|m| Some(&m.name) == path.last())?.fields(),
        _ => def.members.clone(),
    };
    let signature = fields.iter().find(|m| m.name == field)?.signature.split_once(": ")?.1.to_owned();
    let bound: Bindings = match def.parameters.is_empty() {
        true => world.parameters_of(ty),
        false => def.parameters.iter().cloned().zip(ty.args().iter().cloned()).collect(),
    };
    Some(Ty::printed(&signature)?.with(&bound))
}

/// A variant by its name alone where that is in scope, and else behind its type.
fn written(world: &World, def: &TypeDef, name: &str) -> String {
    let path = format!("{}::{name}", def.path);
    let alone = PRELUDE.contains(&&*path)
        || world.globs.contains(&def.path)
        || world.imports.iter().any(|(n, p)| n == name && *p == path);
    if alone {
        return name.to_owned();
    }
    let short = last(&def.path);
    let leads = world.find(&[short.to_owned()]);
    let near = matches!(leads, Some(Found::Type(found)) if found == def.path);
    format!("{}::{name}", if near { short } else { &def.path })
}
