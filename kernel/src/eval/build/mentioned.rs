//! The variables of earlier cells that a cell mentions.
use super::compiler::Scope;
use super::lending::views;
use crate::engine::{Failure, sentence};
use crate::eval::generate::definitions::Definitions;
use crate::eval::generate::plan::Loaded;
use crate::eval::parse::parsed::Parsed;
use crate::eval::text::types::{Named, nameable};
use std::collections::BTreeSet;
use xlazy_mime::Var;

/// What a cell defines that has a value, and does not declare as a variable, too: in Rust that would hide it.
pub(super) fn values_of(parsed: &Parsed) -> BTreeSet<String> {
    let names = parsed.items.iter().filter(|i| i.space.values && i.cfg.is_empty()).flat_map(|i| &i.names);
    names.filter(|n| !parsed.bindings.iter().any(|b| b.name == **n)).cloned().collect()
}

/// The variables that the cell mentions, with their types as this cell can write them.
pub(super) fn load_list(parsed: &Parsed, scope: &Scope, defs: &Definitions) -> Result<Vec<Loaded>, Failure> {
    let mut out = Vec::new();
    // A pattern of a constant's or a unit struct's name would compare with it.
    let own = values_of(parsed);
    let item = |v: &Var| {
        let may_be_a_constant = || v.name.starts_with(char::is_uppercase) && defs.value_named(&v.name).is_some();
        own.contains(&v.name) || !parsed.shadows.contains(&v.name) && may_be_a_constant()
    };
    let wanted = |v: &&Var| parsed.mentions.contains(&v.name) && !parsed.rebound.contains(&v.name) && !item(v);
    for var in scope.vars.iter().filter(wanted) {
        let mut adopt = false;
        let named = nameable(&var.type_name, &mut |crate_name, path| {
            let (written, again) = defs.current_path(crate_name, path)?;
            adopt |= again;
            Some(written)
        });
        match named {
            Named::Type(written_type) => {
                let handle = var.handle && !adopt;
                let declaration = scope.declared.get(&var.name);
                let fixed = declaration.is_some_and(|d| d.fixed);
                let (open, made_in) = declaration.map(|d| (d.open.clone(), d.made_in.clone())).unwrap_or_default();
                let (name, lent) = (var.name.clone(), var.lent);
                let views = var.away.then(|| views(&name, scope));
                let of = declaration.map(|d| d.views.clone()).unwrap_or_default();
                // A method or a field may have that name, which has nothing back and is no loan.
                if (!of.is_empty() || views.is_some()) && parsed.places.earlier(&name).is_none() {
                    continue;
                }
                out.push(Loaded {
                    name,
                    written_type,
                    adopt,
                    handle,
                    fixed,
                    lent,
                    views,
                    of,
                    whole: false,
                    open,
                    made_in,
                });
            }
            // Declared again here, or meant as something else: rustc will tell if it is missed.
            Named::Refused(_) => {}
        }
    }
    // An argument of a closure, a field or a method may have that name.
    let mentioned = |name: &String| {
        parsed.mentions.contains(name) && !parsed.rebound.contains(name) && parsed.places.earlier(name).is_some()
    };
    for (name, declaration) in scope.declared {
        let pending = declaration.open.as_ref().filter(|o| o.pending && o.names.iter().any(mentioned));
        if let Some(open) = pending.filter(|_| !declaration.is_unset()) {
            let (written_type, adopt, handle, lent, views, of, made_in) = Default::default();
            let (name, fixed, open) = (name.clone(), declaration.fixed, Some(open.clone()));
            out.push(Loaded { name, written_type, adopt, handle, fixed, lent, views, of, whole: false, open, made_in });
        }
    }
    if let Some(l) = out.iter().find(|l| l.gives_away()) {
        let (name, of) = (&l.name, l.of.keys().next().map_or("", String::as_str));
        let what = format!(
            "`{name}` would give away what it borrows of `{of}`, which later cells may change: make it in the cell that uses it, or \
             have it give a value of its own (`.clone()`, `.to_owned()`)"
        );
        return Err(sentence("CompileError", what));
    }
    Loaded::are_whole(&mut out, scope.filled);
    Ok(out)
}
