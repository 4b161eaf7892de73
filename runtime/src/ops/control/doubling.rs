//! `associative_scan`: running results of an associative function, in as many steps as the length has doublings.
use super::tree::{Tensors, check_alike, filled, flat};
use crate::ops::view::cat;
use crate::tensor::{Tensor, refuse};

/// The results of `combine_fn` over all elements up to each along `dim`, the first two, then that and the third, and so on
/// (`torch.associative_scan` of `torch._higher_order_ops`, `jax.lax.associative_scan`). The function must be associative, and
/// work on many elements at once: it is called on slices along `dim`, about twice for each doubling of the length, so that the
/// device works on many elements at a time. Gradients flow.
///
/// ```
/// use xlazy::prelude::*;
/// let x = tensor([1.0, 2.0, 3.0, 4.0]);
/// assert_eq!(associative_scan(|a, b| a * b, &x, 0).to_vec::<f32>(), [1.0, 2.0, 6.0, 24.0]);
/// ```
#[track_caller]
pub fn associative_scan<T: Tensors>(combine_fn: impl Fn(T, T) -> T, xs: &T, dim: i64) -> T {
    let all = flat(xs);
    let operands: Vec<&Tensor> = all.iter().collect();
    let sizes: Vec<usize> = all.iter().map(|x| x.size(dim)).collect();
    if sizes.windows(2).any(|w| w[0] != w[1]) {
        refuse("associative_scan", &operands, format!("the sizes along dimension {dim} differ"));
    }
    let dims: Vec<i64> = all.iter().map(|x| x.dim_index("associative_scan", dim) as i64).collect();
    let combine = |a: &[Tensor], b: &[Tensor]| {
        let combined = combine_fn(filled(xs, a), filled(xs, b));
        check_alike("associative_scan", xs, &combined);
        let given = flat(&combined);
        if given.len() != a.len() || given.iter().zip(a).any(|(y, x)| y.ty() != x.ty()) {
            let operands: Vec<&Tensor> = given.iter().collect();
            let why = "the function must give tensors of the types that it is given";
            refuse("associative_scan", &operands, why);
        }
        given
    };
    if sizes.first().is_some_and(|n| *n < 2) {
        return filled(xs, &all.iter().map(Tensor::copy).collect::<Vec<_>>());
    }
    filled(xs, &running(&combine, &all, &dims))
}

type Combine<'a> = dyn Fn(&[Tensor], &[Tensor]) -> Vec<Tensor> + 'a;

/// Each pair is combined, the running results of the pairs are those of every second element, and those between follow.
#[track_caller]
fn running(combine: &Combine, xs: &[Tensor], dims: &[i64]) -> Vec<Tensor> {
    let n = xs.first().map_or(0, |x| x.size(dims[0])) as i64;
    if n < 2 {
        return xs.to_vec();
    }
    let every = |of: &[Tensor], start: i64, end: i64, step: i64| -> Vec<Tensor> {
        of.iter().zip(dims).map(|(x, &d)| x.slice(d, start, end, step)).collect()
    };
    let pairs = combine(&every(xs, 0, n - 1, 2), &every(xs, 1, n, 2));
    let odd = running(combine, &pairs, dims);
    let between = every(xs, 2, n, 2);
    let even = match n {
        2 => vec![],
        _ => combine(&every(&odd, 0, (n - 1) / 2, 1), &between),
    };
    let merged = |(k, x): (usize, &Tensor)| {
        let (d, first) = (dims[k], x.slice(dims[k], 0, 1, 1));
        let even = even.get(k).map_or_else(|| first.clone(), |even| cat(&[&first, even], d));
        let (whole, both) = (even.size(d) as i64, odd[k].size(d) as i64);
        let mut shape = x.shape();
        shape[d as usize] = 2 * both as usize;
        let pairs = [even.slice(d, 0, both, 1).unsqueeze(d + 1), odd[k].unsqueeze(d + 1)];
        let merged = cat(&[&pairs[0], &pairs[1]], d + 1).reshape(&shape);
        if whole > both { cat(&[&merged, &even.slice(d, both, whole, 1)], d) } else { merged }
    };
    xs.iter().enumerate().map(merged).collect()
}
