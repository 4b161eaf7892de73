//! The matrix of a function's derivatives, and products of vectors with it.
use super::walk;
use crate::ops::{Tensors, filled, flat, stack};
use crate::tensor::{Tensor, on_behalf, refuse};
use std::panic::Location;

/// Leaves with the values of `args`.
fn leaves(args: &[Tensor]) -> Vec<Tensor> {
    let leaf = |t: &Tensor| match t.dtype().is_differentiable() {
        true => t.detach().requires_grad_(true),
        false => t.clone(),
    };
    args.iter().map(leaf).collect()
}

#[track_caller]
fn check(op: &'static str, what: &str, of: &[Tensor], v: &[Tensor]) {
    let types = |all: &[Tensor]| all.iter().map(|t| t.shape().to_string()).collect::<Vec<_>>().join(", ");
    if of.len() != v.len() || of.iter().zip(v).any(|(a, b)| a.shape() != b.shape()) {
        let why = format!("the vector has a tensor for each {what}, of its shape: {}, and not {}", types(of), types(v));
        refuse(op, &[], why);
    }
}

/// Those that gradients flow from, with what flows.
fn starts(ys: &[Tensor], dys: &[Tensor]) -> Vec<(Tensor, Tensor)> {
    ys.iter().zip(dys).filter(|(y, _)| y.requires_grad()).map(|(y, dy)| (y.clone(), dy.clone())).collect()
}

/// One for each tensor: zeros where nothing depends on it.
#[track_caller]
fn flowing(starts: &[(Tensor, Tensor)], to: &[Tensor]) -> Vec<Tensor> {
    let of: Vec<&Tensor> = to.iter().collect();
    let found = if starts.is_empty() { vec![None; of.len()] } else { walk(starts, &of).wanted };
    found.into_iter().zip(to).map(|(dx, x)| dx.unwrap_or_else(|| x.zeros_like())).collect()
}

/// What `f` gives of `args`, and the product of the vector `v` with its Jacobian, from the left: the gradient of each argument where `v`
/// flows back from the results (`torch.autograd.functional.vjp`, `jax.vjp`).
///
/// ```
/// use xlazy::prelude::*;
/// let (y, dx) = vjp(|x: Tensor| &x * &x, &tensor([1.0, 2.0]), &tensor([1.0, 10.0]));
/// assert_eq!((y.to_vec::<f32>(), dx.to_vec::<f32>()), (vec![1.0, 4.0], vec![2.0, 40.0]));
/// ```
#[track_caller]
pub fn vjp<T: Tensors, R: Tensors>(f: impl FnOnce(T) -> R, args: &T, v: &R) -> (R, T) {
    let at = Location::caller();
    let xs = on_behalf(at, true, || leaves(&flat(args)));
    let out = f(filled(args, &xs));
    let (ys, v) = (flat(&out), flat(v));
    check("vjp", "result", &ys, &v);
    on_behalf(at, false, || {
        let dxs = flowing(&starts(&ys, &v), &xs);
        let ys: Vec<Tensor> = ys.iter().map(Tensor::detach).collect();
        (filled(&out, &ys), filled(args, &dxs))
    })
}

/// What `f` gives of `args`, and the product of its Jacobian with the vector `v`: how the results change where the arguments change along
/// `v` (`torch.autograd.functional.jvp`, `jax.jvp`). It is made of two gradients, as torch's is: what flows back is linear in what
/// flows in, and that is differentiated.
///
/// ```
/// use xlazy::prelude::*;
/// let (y, dy) = jvp(|x: Tensor| x.pow(3.0), &tensor([1.0, 2.0]), &tensor([1.0, 0.5]));
/// assert_eq!((y.to_vec::<f32>(), dy.to_vec::<f32>()), (vec![1.0, 8.0], vec![3.0, 6.0]));
/// ```
#[track_caller]
pub fn jvp<T: Tensors, R: Tensors>(f: impl FnOnce(T) -> R, args: &T, v: &T) -> (R, R) {
    let at = Location::caller();
    let xs = on_behalf(at, true, || leaves(&flat(args)));
    let v = flat(v);
    check("jvp", "argument", &xs, &v);
    let out = f(filled(args, &xs));
    let ys = flat(&out);
    let (us, dxs) = on_behalf(at, true, || {
        let us = leaves(&ys.iter().map(Tensor::zeros_like).collect::<Vec<_>>());
        let dxs = flowing(&starts(&ys, &us), &xs);
        (us, dxs)
    });
    on_behalf(at, false, || {
        let dys = flowing(&starts(&dxs, &v), &us);
        let ys: Vec<Tensor> = ys.iter().map(Tensor::detach).collect();
        (filled(&out, &ys), filled(&out, &dys))
    })
}

/// The derivatives of `f` at `x`: of each element of what it gives by each of `x`, of shape `f(x).shape()` and `x.shape()` behind one
/// another (`torch.autograd.functional.jacobian`). They are as many gradients, in one program, as `f(x)` has elements.
///
/// ```
/// use xlazy::prelude::*;
/// let j = jacobian(|x: Tensor| x.pow(2.0), &tensor([1.0, 2.0]));
/// assert_eq!(j.to_vec::<f32>(), [2.0, 0.0, 0.0, 4.0]);
/// ```
#[track_caller]
pub fn jacobian(f: impl FnOnce(Tensor) -> Tensor, x: &Tensor) -> Tensor {
    let at = Location::caller();
    let xs = leaf_of("jacobian", x);
    let y = f(xs[0].clone());
    on_behalf(at, false, || row_by_row(&y, &xs))
}

/// The second derivatives of `f` at `x`, where `f` gives one number: of shape `x.shape()` twice (`torch.autograd.functional.hessian`). They are
/// as many gradients, in one program, as `x` has elements.
///
/// ```
/// use xlazy::prelude::*;
/// let h = hessian(|x: Tensor| x.pow(3.0).sum(), &tensor([1.0, 2.0]));
/// assert_eq!(h.to_vec::<f32>(), [6.0, 0.0, 0.0, 12.0]);
/// ```
#[track_caller]
pub fn hessian(f: impl FnOnce(Tensor) -> Tensor, x: &Tensor) -> Tensor {
    let at = Location::caller();
    let xs = leaf_of("hessian", x);
    let y = f(xs[0].clone());
    if y.numel() != 1 {
        refuse("hessian", &[&y], "the function is to give one number: `.sum()`, say, or `jacobian` of it");
    }
    let dx = on_behalf(at, true, || flowing(&starts(std::slice::from_ref(&y), &[y.ones_like()]), &xs).remove(0));
    on_behalf(at, false, || row_by_row(&dx, &xs))
}

#[track_caller]
fn leaf_of(op: &'static str, x: &Tensor) -> Vec<Tensor> {
    if !x.dtype().is_differentiable() {
        refuse(op, &[x], format!("derivatives are of floats, and this is {}: `.to(F32)`", x.dtype()));
    }
    let at = Location::caller();
    on_behalf(at, true, || leaves(std::slice::from_ref(x)))
}

/// The gradients of each element of `y`, stacked.
#[track_caller]
fn row_by_row(y: &Tensor, x: &[Tensor]) -> Tensor {
    let shape: Vec<usize> = y.shape().iter().chain(x[0].shape().iter()).copied().collect();
    if y.numel() == 0 {
        return Tensor::zeros(shape.as_slice()).to(x[0].dtype());
    }
    let one = |row: Tensor| flowing(&starts(std::slice::from_ref(y), &[row.reshape(y.shape())]), x).remove(0);
    let rows: Vec<Tensor> = Tensor::eye(y.numel()).to(y.dtype()).iter().map(one).collect();
    stack(&rows, 0).reshape(shape.as_slice())
}
