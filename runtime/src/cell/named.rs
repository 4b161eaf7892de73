//! The names of what a variable holds: a model's parameters (`net.fc1.weight`), an optimizer's state. Only generated code knows
//! a variable's type, so a hidden cell says once of each type how its values name what is in them.
use super::store;
use crate::nn::module::{AsPart, Part, Parts};
use crate::optim::Optimizer;
use crate::tensor::Tensor;
use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use xlazy_core::host::{Holder, Named as Name};

/// Names what is in a value, which is known by that name.
type Names = fn(&str, &dyn Any) -> Vec<(String, Tensor, Holder)>;

thread_local! {
    /// How the values of a type name what is in them; `None` for one that holds nothing that is asked for.
    static KNOWN: RefCell<HashMap<TypeId, Option<Names>>> = RefCell::default();
}

/// A variable, to choose by autoref what it is: a module, an optimizer, or neither.
pub struct Named<'a, T>(pub &'a T);

pub trait LearnModule {
    fn learn(&self);
}
impl<T: AsPart + 'static> LearnModule for &&Named<'_, T> {
    fn learn(&self) {
        know::<T>(Some(|name, value| {
            value.downcast_ref::<T>().map_or_else(Vec::new, |v| of_module(name, &mut |parts| v.show_part("", parts)))
        }));
    }
}
pub trait LearnOptimizer {
    fn learn(&self);
}
impl<T: Optimizer + 'static> LearnOptimizer for &Named<'_, T> {
    fn learn(&self) {
        know::<T>(Some(|name, value| value.downcast_ref::<T>().map_or_else(Vec::new, |v| of_optimizer(name, v))));
    }
}
pub trait LearnNothing {
    fn learn(&self);
}
impl<T: 'static> LearnNothing for Named<'_, T> {
    fn learn(&self) {
        know::<T>(None);
    }
}

fn know<T: 'static>(names: Option<Names>) {
    KNOWN.with_borrow_mut(|known| known.insert(TypeId::of::<T>(), names));
}

fn of_module(name: &str, show: &mut dyn FnMut(&mut Parts)) -> Vec<(String, Tensor, Holder)> {
    let mut out = Vec::new();
    let mut visit = |path: &str, part: Part| {
        if let Part::Parameter(t) | Part::Buffer(t) = part {
            out.push((joined(name, path), t.clone(), Holder::Module));
        }
    };
    show(&mut Parts::all(&mut visit));
    out
}

/// State is named by the number of its parameter, which has a name of its own where it is a module's.
fn of_optimizer(name: &str, optimizer: &dyn Optimizer) -> Vec<(String, Tensor, Holder)> {
    let parameters = optimizer.parameters();
    let one = |(i, what, t): (usize, &'static str, Tensor)| {
        let of = parameters.get(i).map(Tensor::id);
        (joined(name, what), t, Holder::Optimizer(of))
    };
    optimizer.state_tensors().into_iter().map(one).collect()
}

fn joined(name: &str, path: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{name}.{path}") }
}

/// Types of the standard library's and of numbers, which hold no module of their own kind.
fn is_plain(type_name: &str) -> bool {
    let words = type_name.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let mut paths = words.filter(|w| w.contains("::"));
    paths.all(|p| ["std::", "core::", "alloc::"].iter().any(|s| p.starts_with(s)))
}

/// Variables of types that nothing is known of yet, as JSON; none but on the cell thread. They count as known from now on:
/// where no cell can name such a type, it is not tried again.
pub(super) fn unknown() -> String {
    let mut out = Vec::new();
    KNOWN.with_borrow_mut(|known| {
        let mut new = HashSet::new();
        store::each_type(|name, id, type_name| {
            if !known.contains_key(&id) && !is_plain(type_name) {
                new.insert(id);
                out.push(name.to_owned());
            }
        });
        known.extend(new.into_iter().map(|id| (id, None)));
    });
    crate::json::json!(out).to_string()
}

/// What the variables hold, by name: tensors first, then what models and optimizers hold. None but on the cell thread.
pub fn all() -> Vec<Name> {
    let mut out: Vec<Name> =
        store::tensors().into_iter().map(|(name, node)| Name { name, node, holder: Holder::Variable }).collect();
    let known = KNOWN.with_borrow(|known| known.clone());
    let mut owned = Vec::new();
    for (name, names) in store::names_of_types(|id| known.get(&id).copied().flatten()) {
        // The value is out of the store while the notebook's own `parts` looks at it, which may itself ask the store.
        let found = store::with_value(&name, |value| catch_unwind(AssertUnwindSafe(|| names(&name, value))));
        owned.extend(found.and_then(Result::ok).unwrap_or_default());
    }
    let variables: Vec<(String, Tensor)> =
        out.iter().filter_map(|n| Some((n.name.clone(), store::peek::<Tensor>(&n.name)?))).collect();
    let trained = variables.iter().map(|(name, t)| (name, t)).chain(owned.iter().map(|(name, t, _)| (name, t)));
    let gradients: Vec<(String, Tensor)> =
        trained.filter_map(|(name, t)| Some((format!("{name}.grad"), t.held_grad()?))).collect();
    let parts = owned.iter().map(|(name, t, holder)| Name { name: name.clone(), node: t.id(), holder: *holder });
    out.extend(parts);
    out.extend(gradients.into_iter().map(|(name, t)| Name { name, node: t.id(), holder: Holder::Gradient }));
    let of: HashMap<u32, String> =
        out.iter().filter(|n| n.holder == Holder::Module).map(|n| (n.node, n.name.clone())).collect();
    for n in &mut out {
        if let Holder::Optimizer(Some(parameter)) = n.holder
            && let Some(name) = of.get(&parameter)
        {
            n.name = format!("{}({name})", n.name);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::rt::{Frame, Holds};
    use crate::nn;
    use crate::nn::Module as _;
    use std::any::type_name;

    #[test]
    fn types_of_the_library_are_asked_and_plain_ones_are_not() {
        for plain in
            ["alloc::vec::Vec<f32>", "(i32, &str)", "f64", "std::collections::HashMap<alloc::string::String, u8>"]
        {
            assert!(is_plain(plain), "{plain}");
        }
        for asked in [type_name::<nn::Linear>(), "cell_3::Net", "alloc::vec::Vec<xlazy::nn::linear::Linear>"] {
            assert!(!is_plain(asked), "{asked}");
        }
    }

    // As generated code asks: by autoref.
    #[allow(clippy::needless_borrow)]
    #[test]
    fn what_a_variable_holds_is_named_once_its_type_is_known() {
        let net = nn::Linear::new(2, 3);
        let opt = crate::optim::Adam::new(net.named_parameters().into_iter().map(|(_, t)| t), 0.1);
        (&&&Named(&net)).learn();
        (&&&Named(&opt)).learn();
        (&&&Named(&vec![1u8])).learn();
        store::put("net", Box::new(net), type_name::<nn::Linear>());
        store::put("opt", Box::new(opt), type_name::<crate::optim::Adam>());
        store::put("bytes", Box::new(vec![1u8]), type_name::<Vec<u8>>());
        let names: Vec<String> = all().into_iter().map(|n| n.name).collect();
        assert!(names.contains(&"net.weight".to_owned()), "{names:?}");
        assert!(names.contains(&"opt.exp_avg(net.weight)".to_owned()), "{names:?}");
        assert_eq!(unknown(), "[]");
        store::put("other", Box::new(nn::ReLU), type_name::<nn::ReLU>());
        assert_eq!((unknown().as_str(), unknown().as_str()), ("[\"other\"]", "[]"));
    }

    #[allow(clippy::needless_borrow)]
    #[test]
    fn what_is_lent_is_named_unless_it_may_be_changing() {
        type Weights = Vec<Tensor>;
        let lent = |name: &'static str, lend: for<'f> fn(Holds<'f>, &'f mut Weights)| {
            let mut frame = Frame::new();
            let holds = frame.holds();
            lend(holds, holds.value(0, name, vec![crate::tensor(1.0), crate::tensor(2.0)]));
        };
        lent("for_good", |holds, weights| assert_eq!(holds.lend(0, weights).len(), 2));
        lent("looked_at", |holds, weights| assert_eq!(holds.lend_mut(0, weights, false).len(), 2));
        lent("changing", |holds, weights| holds.lend_mut(0, weights, true).truncate(1));
        assert_eq!(unknown(), r#"["for_good","looked_at"]"#);
        (&&&Named(&Weights::new())).learn();
        let names: Vec<String> = all().into_iter().map(|n| n.name).collect();
        assert_eq!(names, ["for_good.0", "for_good.1", "looked_at.0", "looked_at.1"]);
        store::reclaim::<Weights>("changing", "");
        assert!(all().iter().any(|n| n.name == "changing.0"));
    }
}
