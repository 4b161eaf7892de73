//! What all optimizers have in common: parameters in groups, state made before the first step, a step in which everything changes
//! together. How one parameter changes is a `Rule`, one per optimizer.
use super::{Numbers, follow, listed, loaded, number, settle};
use crate::Result;
use crate::changes::Changes;
use crate::insight::mode::{Derived, derives};
use crate::optim::StateDict;
use crate::tensor::{Tensor, on_behalf, refuse, stepped};
use std::any::Any;
use std::borrow::Borrow;
use std::fmt::Debug;
use std::panic::Location;
use xlazy_core::host::note;
use xlazy_core::ty::{Scalar, Shape, Type};
use xlazy_mime::count;

/// What is kept for a parameter, under a name: of its shape or another one, filled with a number.
#[derive(PartialEq)]
pub(super) struct Kept {
    pub name: &'static str,
    pub shape: Option<Shape>,
    pub fill: f64,
}

/// Of the parameter's shape, zero.
pub(super) fn kept(name: &'static str) -> Kept {
    Kept { name, shape: None, fill: 0.0 }
}

/// How an optimizer changes one parameter. It is recorded for each parameter that has a gradient.
/// The options that are set are the rule.
pub(super) trait Rule: Any + Send {
    /// The tensors kept for a parameter.
    fn state(&self, p: &Tensor, lr: f64) -> Vec<Kept>;

    /// Numbers of the host kept for each parameter, by name, and what they begin with.
    fn numbers(&self) -> &'static [(&'static str, f64)] {
        &[]
    }

    fn update(&self, u: &mut Update);

    /// What schedules of one cycle call the momentum: the first beta, where there are two.
    fn momentum(&mut self) -> Option<&mut f64> {
        None
    }
}

/// One parameter in one step.
pub(super) struct Update<'a> {
    pub p: &'a Tensor,
    pub g: Tensor,
    pub lr: f64,
    /// Steps that the parameter has taken, this one included.
    pub t: f64,
    pub host: &'a mut [f64],
    /// Weights decay beside the step by the gradient, as in AdamW.
    pub decoupled: bool,
    state: &'a [Tensor],
    numbers: &'a mut Numbers,
    group: u64,
    /// True where nothing may change.
    skip: Option<&'a Tensor>,
    changes: &'a mut Changes,
}

impl Update<'_> {
    /// A number of the formula, in a place of its own: a parameter of the program.
    pub(super) fn n(&mut self, place: u8, value: f64) -> Tensor {
        self.numbers.get(place, self.p.dtype(), self.group << 40, value)
    }

    /// As `n`, where the number goes by the steps that this parameter has taken: parameters that were left out of some
    /// have another one.
    pub(super) fn at_step(&mut self, place: u8, value: f64) -> Tensor {
        self.numbers.get(place, self.p.dtype(), (self.group << 40) | self.t as u64, value)
    }

    pub(super) fn state(&self, i: usize) -> Tensor {
        self.state[i].clone()
    }

    /// The state will be this.
    #[track_caller]
    pub(super) fn keep(&mut self, i: usize, value: Tensor) {
        let old = &self.state[i];
        let value = self.unless_skipped(old, value);
        self.changes.assign("step", old, value);
    }

    /// The parameter will be this.
    #[track_caller]
    pub(super) fn set(&mut self, value: Tensor) {
        let value = self.unless_skipped(self.p, value);
        self.changes.assign("step", self.p, value);
    }

    #[track_caller]
    fn unless_skipped(&self, old: &Tensor, new: Tensor) -> Tensor {
        match self.skip {
            Some(skip) => old.where_(&skip.clone().placed_like(old), new.to(old.dtype())),
            None => new,
        }
    }

    /// The gradient with the decay of weights added to it, in this place.
    #[track_caller]
    pub(super) fn decayed(&mut self, place: u8, weight_decay: f64) {
        if weight_decay != 0.0 {
            let n = self.n(place, weight_decay);
            self.g = self.g.add(self.p * n);
        }
    }

    /// The parameter with the decay of weights taken from it, in this place.
    #[track_caller]
    pub(super) fn shrunk(&mut self, place: u8, weight_decay: f64) -> Tensor {
        match weight_decay {
            0.0 => self.p.clone(),
            _ => self.p * self.n(place, 1.0 - self.lr * weight_decay),
        }
    }

    /// A running mean: `old` moved by `share` of the way to `new`.
    #[track_caller]
    pub(super) fn towards(&mut self, place: u8, old: &Tensor, new: &Tensor, share: f64) -> Tensor {
        old + (new - old) * self.n(place, share)
    }

    /// The same, where the share goes by the steps.
    #[track_caller]
    pub(super) fn towards_at_step(&mut self, place: u8, old: &Tensor, new: &Tensor, share: f64) -> Tensor {
        old + (new - old) * self.at_step(place, share)
    }
}

struct Group {
    lr: f64,
    rule: Box<dyn Rule>,
}

/// An optimizer without its name.
#[doc(hidden)]
pub struct Core {
    parameters: Vec<Tensor>,
    /// Of each parameter: its group, its tensors, its numbers, and the steps it has taken. One without a gradient takes none.
    of_group: Vec<usize>,
    state: Vec<Vec<Tensor>>,
    host: Vec<Vec<f64>>,
    steps: Vec<u64>,
    groups: Vec<Group>,
    /// Upwards along the gradient.
    pub(super) maximize: bool,
    decoupled: bool,
    /// It was said that there was nothing to do.
    idle: bool,
}

impl Core {
    /// Without parameters, which come with their groups. Weights may decay `decoupled` from the gradient.
    pub(super) fn empty(decoupled: bool) -> Core {
        Core {
            parameters: vec![],
            of_group: vec![],
            state: vec![],
            host: vec![],
            steps: vec![],
            groups: vec![],
            maximize: false,
            decoupled,
            idle: false,
        }
    }

    #[track_caller]
    pub(super) fn add(
        &mut self,
        parameters: impl IntoIterator<Item = impl Borrow<Tensor>>,
        lr: f64,
        rule: Box<dyn Rule>,
    ) {
        let new = listed(parameters);
        if let Some(p) = new.iter().find(|p| self.parameters.iter().any(|old| old.is_same(p))) {
            refuse("add_param_group", &[p], "this parameter is in another group of the optimizer already");
        }
        if new.is_empty() && self.groups.is_empty() {
            let why = "it has no parameters to change: a module of one's own names its layers with `parts!(…)`, for `parameters()` to find them";
            refuse("optimizer", &[], why);
        }
        // Asked for in the closure, it would be the closure's own line.
        on_behalf(Location::caller(), false, || {
            for p in &new {
                self.state.push(rule.state(p, lr).iter().map(|k| k.like(p)).collect());
                self.host.push(rule.numbers().iter().map(|n| n.1).collect());
                self.of_group.push(self.groups.len());
                self.steps.push(0);
            }
        });
        self.parameters.extend(new);
        self.groups.push(Group { lr, rule });
        settle();
    }

    /// The groups: how many parameters, their rate, their options.
    pub(super) fn describe<O: Any + Debug>(&self, name: &str, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let one = |(i, group): (usize, &Group)| {
            let parameters = count(self.of_group.iter().filter(|g| **g == i).count(), "parameter");
            let options: &dyn Any = &*group.rule;
            let options = options.downcast_ref::<O>().map(|o| format!("{o:?}")).unwrap_or_default();
            let options = options.split_once("{ ").map_or("", |(_, fields)| fields.trim_end_matches(" }"));
            format!("{parameters}, lr: {}{}{options}", group.lr, if options.is_empty() { "" } else { ", " })
        };
        match &self.groups[..] {
            [group] => write!(f, "{name} ({})", one((0, group))),
            all => {
                let all: Vec<String> = all.iter().enumerate().map(|g| format!("  {}\n", one(g))).collect();
                write!(f, "{name} (\n{})", all.concat())
            }
        }
    }

    /// The first group's options.
    pub(super) fn options<O: Any + Copy>(&self) -> O {
        let of_group: &dyn Any = &*self.groups[0].rule;
        *of_group.downcast_ref().expect("an optimizer's rule is its options")
    }

    /// Sets an option of all groups. State that it asks for is made, and what has no step behind it begins as it says.
    #[track_caller]
    pub(super) fn set<O: Any>(&mut self, option: impl Fn(&mut O)) {
        let before: Vec<Vec<Kept>> = (0..self.parameters.len()).map(|i| self.kept(i)).collect();
        for group in &mut self.groups {
            let of_group: &mut dyn Any = &mut *group.rule;
            option(of_group.downcast_mut().expect("an optimizer's rule is its options"));
        }
        let mut any_new = false;
        on_behalf(Location::caller(), false, || {
            for (i, before) in before.iter().enumerate() {
                let (p, begun) = (&self.parameters[i], self.steps[i] > 0);
                let there = |k: &Kept| before.iter().position(|b| b.name == k.name && (begun || b == k));
                let after = self.kept(i);
                let state = after.iter().map(|k| match there(k) {
                    Some(at) => self.state[i][at].clone(),
                    None => {
                        any_new = true;
                        k.like(p)
                    }
                });
                self.state[i] = state.collect();
            }
        });
        if any_new {
            settle();
        }
    }

    /// What is kept for a parameter.
    fn kept(&self, i: usize) -> Vec<Kept> {
        let group = &self.groups[self.of_group[i]];
        group.rule.state(&self.parameters[i], group.lr)
    }

    #[track_caller]
    pub(super) fn step(&mut self, skip: Option<&Tensor>) {
        on_behalf(Location::caller(), false, || {
            let _follows = derives(Derived::Update);
            let (mut numbers, mut changes) = (Numbers::default(), Changes::new());
            let (mut steps, mut host) = (self.steps.clone(), self.host.clone());
            for (i, p) in self.parameters.iter().enumerate() {
                follow(&self.state[i], p);
                let Some(g) = p.held_grad() else { continue };
                steps[i] += 1;
                let group = &self.groups[self.of_group[i]];
                let mut update = Update {
                    p,
                    g: if self.maximize { g.neg() } else { g },
                    lr: group.lr,
                    t: steps[i] as f64,
                    host: &mut host[i],
                    decoupled: self.decoupled,
                    state: &self.state[i],
                    numbers: &mut numbers,
                    group: self.of_group[i] as u64,
                    skip,
                    changes: &mut changes,
                };
                group.rule.update(&mut update);
            }
            changes.apply();
            self.say_idle(steps == self.steps);
            (self.steps, self.host) = (steps, host);
        });
        stepped();
    }

    /// Says once that a step changed nothing.
    fn say_idle(&mut self, idle: bool) {
        if idle && !std::mem::replace(&mut self.idle, idle) {
            note(
                "note: this step changes nothing: no parameter of the optimizer has a gradient. It changes those that it was made with: \
                 behind a model that was made anew, it is to be made anew, too, and `backward()` comes before it",
            );
        }
    }

    pub(super) fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    pub(super) fn lrs(&self) -> Vec<f64> {
        self.groups.iter().map(|g| g.lr).collect()
    }

    pub(super) fn set_lrs(&mut self, lrs: &[f64]) {
        self.groups.iter_mut().zip(lrs).for_each(|(g, lr)| g.lr = *lr);
    }

    pub(super) fn set_momentum(&mut self, momentum: f64) -> bool {
        self.groups.iter_mut().all(|g| g.rule.momentum().map(|m| *m = momentum).is_some())
    }

    /// The names of a parameter's tensors and numbers.
    fn names(&self, i: usize) -> (Vec<&'static str>, Vec<&'static str>) {
        let group = &self.groups[self.of_group[i]];
        let tensors = self.kept(i).iter().map(|k| k.name).collect();
        (tensors, group.rule.numbers().iter().map(|n| n.0).collect())
    }

    pub(super) fn state_dict(&self) -> Vec<(String, Tensor)> {
        let mut out: Vec<_> = self.groups.iter().enumerate().map(|(k, g)| number(&lr_name(k), g.lr)).collect();
        for i in 0..self.parameters.len() {
            let (tensors, numbers) = self.names(i);
            let name = |n: &str| format!("state.{i}.{n}");
            out.push(number(&name("step"), self.steps[i] as f64));
            out.extend(numbers.iter().zip(&self.host[i]).map(|(n, v)| number(&name(n), *v)));
            out.extend(tensors.iter().zip(&self.state[i]).map(|(n, t)| (name(n), t.clone())));
        }
        out
    }

    pub(super) fn state_tensors(&self) -> Vec<(usize, &'static str, Tensor)> {
        let of = |i: usize| self.names(i).0.into_iter().zip(&self.state[i]).map(move |(n, t)| (i, n, t.clone()));
        (0..self.parameters.len()).flat_map(of).collect()
    }

    pub(super) fn load_state_dict(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        let state = StateDict(state);
        let lrs: Vec<f64> = (0..self.groups.len()).map(|k| state.number(&lr_name(k))).collect::<Result<_>>()?;
        let (mut steps, mut host, mut old, mut new) = (vec![], vec![], vec![], vec![]);
        for i in 0..self.parameters.len() {
            let (tensors, numbers) = self.names(i);
            let name = |n: &str| format!("state.{i}.{n}");
            steps.push(state.number(&name("step"))? as u64);
            host.push(numbers.iter().map(|n| state.number(&name(n))).collect::<Result<Vec<f64>>>()?);
            for (n, t) in tensors.iter().zip(&self.state[i]) {
                new.push(state.tensor(&name(n), t)?);
                old.push(t.clone());
            }
        }
        loaded([(&old, new)]).apply();
        self.set_lrs(&lrs);
        (self.steps, self.host) = (steps, host);
        settle();
        Ok(())
    }
}

fn lr_name(group: usize) -> String {
    if group == 0 { "lr".to_owned() } else { format!("param_groups.{group}.lr") }
}

impl Kept {
    /// It, as data where the parameter is.
    fn like(&self, p: &Tensor) -> Tensor {
        let of = p.ty();
        let ty = self.shape.as_ref().map_or(of.clone(), |s| Type::new(of.dtype, s.clone()));
        let mut one = Vec::new();
        ty.dtype.write(Scalar::Float(self.fill), &mut one);
        let filled = Tensor::of_bytes_on(p.placement(), &one.repeat(ty.shape.numel()), ty);
        filled.lie_like(p);
        filled
    }
}

macro_rules! optimizers {
    ($(
        $(#[$doc:meta])*
        $name:ident, $options:ident { $($field:ident: $t:ty),* $(,)? } $(with { $($other:ident: $value:expr),* })? $(, $decoupled:ident)?;
    )*) => {$(
        $(#[$doc])*
        pub struct $name($crate::optim::core::Core);

        impl $name {
            /// With torch's defaults; the methods set options by their names. What is pending runs before the first step, so that
            /// this is the same program as all others.
            #[track_caller]
            pub fn new(parameters: impl IntoIterator<Item = impl std::borrow::Borrow<$crate::Tensor>>, lr: f64) -> $name {
                $name::with(parameters, lr, $options { $($($other: $value,)*)? ..Default::default() })
            }

            /// With options. What is pending runs before the first step, so that this is the same program as all others.
            #[track_caller]
            pub fn with(
                parameters: impl IntoIterator<Item = impl std::borrow::Borrow<$crate::Tensor>>,
                lr: f64,
                options: $options,
            ) -> $name {
                let decoupled: &[&str] = &[$(stringify!($decoupled))?];
                let mut made = $name($crate::optim::core::Core::empty(!decoupled.is_empty()));
                made.add_param_group(parameters, lr, options);
                made
            }

            /// More parameters, with a rate and options of their own (`torch.optim.Optimizer.add_param_group`).
            ///
            /// ```
            /// use xlazy::prelude::*;
            /// let (a, b) = (nn::parameter(tensor([1.0])), nn::parameter(tensor([1.0])));
            /// let mut opt = optim::SGD::new([&a], 0.1);
            /// opt.add_param_group([&b], 0.5, Default::default());
            /// assert_eq!(opt.lrs(), [0.1, 0.5]);
            /// ```
            #[track_caller]
            pub fn add_param_group(
                &mut self,
                parameters: impl IntoIterator<Item = impl std::borrow::Borrow<$crate::Tensor>>,
                lr: f64,
                options: $options,
            ) {
                self.0.add(parameters, lr, Box::new(options));
            }

            /// The options; of several groups the first one's.
            pub fn options(&self) -> $options {
                self.0.options()
            }

            $(
                /// This option, of all groups that there are; a step takes it as it is then.
                #[track_caller]
                pub fn $field(mut self, $field: $t) -> $name {
                    self.0.set(|options: &mut $options| options.$field = $field);
                    self
                }
            )*

            /// Upwards along the gradient (`maximize=True`).
            pub fn maximize(mut self, on: bool) -> $name {
                self.0.maximize = on;
                self
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                self.0.describe::<$options>(stringify!($name), f)
            }
        }

        impl $crate::optim::Optimizer for $name {
            #[inline]
            #[track_caller]
            fn step(&mut self) {
                self.0.step(None)
            }

            #[inline]
            #[track_caller]
            fn step_unless(&mut self, skip: &$crate::Tensor) {
                self.0.step(Some(skip))
            }

            fn parameters(&self) -> &[$crate::Tensor] {
                self.0.parameters()
            }

            fn lr(&self) -> f64 {
                self.0.lrs()[0]
            }

            fn set_lr(&mut self, lr: f64) {
                let all = vec![lr; self.0.lrs().len()];
                self.0.set_lrs(&all);
            }

            fn lrs(&self) -> Vec<f64> {
                self.0.lrs()
            }

            fn set_lrs(&mut self, lrs: &[f64]) {
                self.0.set_lrs(lrs);
            }

            fn set_momentum(&mut self, momentum: f64) -> bool {
                self.0.set_momentum(momentum)
            }

            fn state_dict(&self) -> Vec<(String, $crate::Tensor)> {
                self.0.state_dict()
            }

            fn state_tensors(&self) -> Vec<(usize, &'static str, $crate::Tensor)> {
                self.0.state_tensors()
            }

            fn load_state_dict(&mut self, state: &[(String, $crate::Tensor)]) -> $crate::Result<()> {
                self.0.load_state_dict(state)
            }
        }
    )*};
}
pub(super) use optimizers;
