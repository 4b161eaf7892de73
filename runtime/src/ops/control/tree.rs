//! What bodies take and give: a tensor, or tuples, arrays and vectors of tensors.
use crate::tensor::{Tensor, refuse};

/// Tensors in some order: what loops carry and branches give (a pytree, as JAX and torch call it). Implemented for a tensor,
/// `()`, tuples, arrays, vectors and options of such; for a type of your own call [`Tensors::each`] on its parts in order.
///
/// ```
/// use xlazy::prelude::*;
/// struct State { position: Tensor, speed: Tensor }
/// impl Tensors for State {
///     fn each(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> State {
///         State { position: f(&self.position), speed: f(&self.speed) }
///     }
/// }
/// let start = State { position: tensor(0.0), speed: tensor(1.0) };
/// let end = fori_loop(0, 10, |_, s: State| State { position: s.position + &s.speed, speed: s.speed * 0.5 }, &start);
/// assert_eq!(end.speed.item(), 0.5f64.powi(10));
/// ```
pub trait Tensors: Sized {
    /// The same with another tensor in the place of each.
    fn each(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self;

    /// What is there and how many, where a type alone does not say it: two with equal structures have their tensors in the same
    /// places.
    #[doc(hidden)]
    fn structure(&self, counts: &mut Vec<usize>) {
        let _ = counts;
    }
}

impl Tensors for Tensor {
    fn each(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Tensor {
        f(self)
    }
}

impl<T: Tensors> Tensors for Vec<T> {
    fn each(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Vec<T> {
        self.iter().map(|t| t.each(f)).collect()
    }
    fn structure(&self, counts: &mut Vec<usize>) {
        counts.push(self.len());
        self.iter().for_each(|t| t.structure(counts));
    }
}

impl<T: Tensors, const N: usize> Tensors for [T; N] {
    fn each(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> [T; N] {
        self.each_ref().map(|t| t.each(f))
    }
    fn structure(&self, counts: &mut Vec<usize>) {
        self.iter().for_each(|t| t.structure(counts));
    }
}

impl<T: Tensors> Tensors for Option<T> {
    fn each(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Option<T> {
        self.as_ref().map(|t| t.each(f))
    }
    fn structure(&self, counts: &mut Vec<usize>) {
        counts.push(usize::from(self.is_some()));
        self.iter().for_each(|t| t.structure(counts));
    }
}

macro_rules! tuples {
    ($($($t:ident)*;)*) => {$(
        impl<$($t: Tensors),*> Tensors for ($($t,)*) {
            #[allow(non_snake_case, unused_variables, clippy::unused_unit)]
            fn each(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
                let ($($t,)*) = self;
                ($($t.each(f),)*)
            }
            #[allow(non_snake_case, unused_variables)]
            fn structure(&self, counts: &mut Vec<usize>) {
                let ($($t,)*) = self;
                $($t.structure(counts);)*
            }
        }
    )*};
}
tuples! { ; A; A B; A B C; A B C D; A B C D E; A B C D E F; }

/// Refuses what has its tensors in other places.
#[track_caller]
pub(super) fn check_alike<T: Tensors>(op: &'static str, one: &T, other: &T) {
    let structure = |of: &T| {
        let mut counts = Vec::new();
        of.structure(&mut counts);
        counts
    };
    if structure(one) != structure(other) {
        let why = "a body must give its tensors in the same places each time: a `None` is a tensor in the other, or a vector has \
                   another length";
        refuse(op, &[], why);
    }
}

/// The tensors in order.
pub(crate) fn flat<T: Tensors>(of: &T) -> Vec<Tensor> {
    let mut all = Vec::new();
    of.each(&mut |t| {
        all.push(t.clone());
        t.clone()
    });
    all
}

/// The same with these tensors, as many as it has.
pub(crate) fn filled<T: Tensors>(like: &T, with: &[Tensor]) -> T {
    let mut next = with.iter();
    like.each(&mut |_| next.next().expect("as many as there are").clone())
}
