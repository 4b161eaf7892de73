//! Fields of a model that its `parts!` leaves out although they hold what is trained, saved and moved.
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::items::Item;
use crate::eval::text::depth;
use std::collections::BTreeSet;
use syn::visit::Visit;

/// What to say of models of which the cell defines anew what they hold, or which of it is part of them.
pub(super) fn left_out(new: &[Item], moved: &[Item], rest: &Definitions) -> Vec<String> {
    let here = || new.iter().chain(moved);
    let all = || here().chain(rest.items().map(|(_, item)| item));
    let of_module = |item: &&Item| item.header.as_ref().is_some_and(|h| h.of_trait.as_deref().is_some_and(is_module));
    let of = |item: &Item| item.header.as_ref().map(|h| bare(&h.self_type).to_owned()).unwrap_or_default();
    let modules: BTreeSet<String> = all().filter(of_module).map(of).collect();
    let is_new = |item: &Item| new.iter().any(|n| std::ptr::eq(n, item));
    let said = here().filter(of_module).filter_map(|model| {
        let name = of(model);
        let made = all().find(|item| item.is_type && item.names.contains(&name))?;
        (is_new(model) || is_new(made)).then(|| told(&name, made.text(), model.text(), &modules))?
    });
    said.collect()
}

fn is_module(name: &str) -> bool {
    name.rsplit("::").next() == Some("Module")
}

fn bare(ty: &str) -> &str {
    ty.split('<').next().unwrap_or(ty).trim()
}

fn told(name: &str, made: &str, model: &str, modules: &BTreeSet<String>) -> Option<String> {
    let parts = depth::as_people_write(model, || parts(model))?;
    let holding = depth::as_people_write(made, || holding(made, modules));
    let out: Vec<(String, bool)> = holding.into_iter().filter(|(f, _)| !parts.contains(f)).collect();
    let (all, list) = (parts.join(", "), out.iter().map(|(f, _)| format!("`{f}`")).collect::<Vec<_>>().join(", "));
    let dots = if all.is_empty() { "..".to_owned() } else { format!("{all}, ..") };
    let eval = if out.iter().any(|(_, module)| *module) { ", and `eval()` does not reach it" } else { "" };
    (!out.is_empty()).then(|| {
        format!(
            "`parts!({all})` of `{name}` leaves out {list}: what is in there is not trained, saved or moved with it{eval}; name it \
             there, or write `parts!({dots})` where that is meant"
        )
    })
}

/// Modules that have neither parameters nor anything that training changes: nothing is lost with them.
const BARE: [&str; 36] = [
    "ReLU",
    "ReLU6",
    "LeakyReLU",
    "ELU",
    "SELU",
    "CELU",
    "GELU",
    "GLU",
    "SiLU",
    "Mish",
    "Sigmoid",
    "LogSigmoid",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "Hardshrink",
    "Softshrink",
    "Tanhshrink",
    "Softplus",
    "Softsign",
    "Softmax",
    "Softmin",
    "LogSoftmax",
    "Tanh",
    "Threshold",
    "Identity",
    "Flatten",
    "Unflatten",
    "MaxPool1d",
    "MaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "AdaptiveAvgPool2d",
    "CrossEntropyLoss",
    "MSELoss",
    "Upsample",
];

/// The names in an `impl`'s `parts!(…)`; nothing where it has none, or leaves the rest out by `..`.
fn parts(model: &str) -> Option<Vec<String>> {
    let item: syn::ItemImpl = syn::parse_str(model).ok()?;
    let call = item.items.iter().find_map(|i| match i {
        syn::ImplItem::Macro(m) if m.mac.path.segments.last().is_some_and(|s| s.ident == "parts") => Some(&m.mac),
        _ => None,
    })?;
    let tokens = call.tokens.to_string();
    let names = tokens.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    (!tokens.contains("..")).then_some(names)
}

/// The fields of a struct that hold tensors or modules, and whether it is a module.
fn holding(made: &str, modules: &BTreeSet<String>) -> Vec<(String, bool)> {
    struct Holds<'m> {
        modules: &'m BTreeSet<String>,
        any: bool,
        module: bool,
    }
    impl<'ast> Visit<'ast> for Holds<'_> {
        fn visit_path(&mut self, path: &'ast syn::Path) {
            let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
            let last = |is: &dyn Fn(&String) -> bool| names.last().is_some_and(is);
            let ours = names.len() > 1 && names.iter().any(|n| n == "nn" || n == "models");
            let module = last(&|name| self.modules.contains(name)) || ours && !last(&|name| BARE.contains(&&**name));
            self.any |= module || last(&|name| name == "Tensor");
            self.module |= module;
            // What a function takes is no part of it.
            let function =
                names.last().is_some_and(|name| matches!(&**name, "Fn" | "FnMut" | "FnOnce" | "PhantomData"));
            if !function {
                syn::visit::visit_path(self, path);
            }
        }
        fn visit_type_bare_fn(&mut self, _: &'ast syn::TypeBareFn) {}
        fn visit_type_trait_object(&mut self, object: &'ast syn::TypeTraitObject) {
            let module = |b: &syn::TypeParamBound| matches!(b, syn::TypeParamBound::Trait(t) if t.path.segments.last().is_some_and(|s| s.ident == "Module"));
            let module = object.bounds.iter().any(module);
            self.any |= module;
            self.module |= module;
        }
    }
    let Ok(item) = syn::parse_str::<syn::ItemStruct>(made) else { return vec![] };
    let holds = |field: &syn::Field| {
        let mut holds = Holds { modules, any: false, module: false };
        holds.visit_type(&field.ty);
        holds.any.then_some(holds.module)
    };
    item.fields.iter().filter_map(|f| Some((f.ident.as_ref()?.to_string(), holds(f)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_hold_what_is_trained() {
        let modules = BTreeSet::from(["Block".to_owned()]);
        let made = "struct N<T> { a: nn::Linear, b: Vec<Block>, c: Option<Tensor>, d: usize, e: fn(&Tensor) -> Tensor, \
            f: Box<dyn Module>, g: Box<dyn Fn(&Tensor) -> Tensor>, h: T, i: xlazy::models::Gpt, j: std::marker::PhantomData<Tensor> }";
        let fields = |made: &str| holding(made, &modules).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(fields(made), ["a", "b", "c", "f", "i"]);
        assert_eq!(fields("struct N(Tensor);"), Vec::<String>::new());
        let others = "struct N { a: nn::GELU, d: nn::Dropout, t: Tensor }";
        assert_eq!(fields(others), ["d", "t"]);
        let left = |parts: &str| told("N", others, &format!("impl Module for N {{ parts!({parts}); }}"), &modules);
        assert!(
            left("t")
                .unwrap()
                .contains("leaves out `d`: what is in there is not trained, saved or moved with it, and `eval()`")
        );
        assert!(left("d").unwrap().contains("moved with it; name it"));
        let said = |parts: &str| told("N", made, &format!("impl Module for N {{ parts!({parts}); }}"), &modules);
        assert_eq!(said("a, b, c, f, i"), None);
        assert_eq!(said("a, .."), None);
        assert!(said("a, b, f, i").unwrap().contains("leaves out `c`: "));
        assert!(said("").unwrap().contains("or write `parts!(..)` where"));
        assert_eq!(told("N", made, "impl Module for N { fn parts(&self, p: &mut nn::Parts) {} }", &modules), None);
    }
}
