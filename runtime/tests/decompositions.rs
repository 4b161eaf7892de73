//! Gradients of matrix decompositions against differences, in float64: their ops pass a value through that was computed
//! without a gradient, so that the table's own test says nothing of them.
use xlazy::prelude::*;

/// Σ of some function of everything that a decomposition gives, the same whichever signs its vectors have.
type Of = fn(&Tensor) -> Tensor;

// Well away from singular, its rows to be exchanged.
fn matrix(rows: usize, columns: usize) -> Tensor {
    let number = |i: usize| ((i * i * 7 + i * 3) % 13) as f64 / 10.0 - 0.6;
    let numbers: Vec<f64> = (0..rows * columns).map(number).collect();
    Tensor::from_slice(&numbers, [rows, columns]) + Tensor::eye_of(rows, columns).double().flip(0) * 1.5
}

fn total(x: &Tensor) -> Tensor {
    let weights: Vec<f64> = (0..x.numel()).map(|i| ((i * 7 + 3) % 11) as f64 / 11.0 - 0.4).collect();
    (x * Tensor::from_slice(&weights, x.shape())).sum()
}

fn positive(x: &Tensor) -> Tensor {
    x.matmul(&x.transpose(-1, -2)) + Tensor::eye(x.size(-2)).double()
}

const DECOMPOSITIONS: &[(&str, Of)] = &[
    ("det", |x| x.det()),
    ("lu", |x| {
        let (_, l, u) = x.lu(true);
        total(&l) + total(&u)
    }),
    ("qr", |x| {
        let (q, r) = x.qr(false);
        total(&q) + total(&r)
    }),
    ("cholesky_solve", |x| total(&matrix(3, 2).cholesky_solve(&positive(x).cholesky(true), true))),
    ("eigh", |x| {
        let (values, v) = positive(x).eigh(false);
        total(&values) + total(&v.square())
    }),
    ("svd", |x| {
        let (u, s, vt) = x.svd(false);
        total(&s) + total(&u.square()) + total(&vt.square()) + total(&u.matmul(&vt))
    }),
    ("pinv", |x| total(&x.pinv(None, None))),
];

#[test]
fn gradients_are_those_of_differences() {
    let mut wrong = Vec::new();
    for &(name, of) in DECOMPOSITIONS {
        let x = matrix(3, 3).requires_grad_(true);
        let analytic = grad(&of(&x), &[&x])[0].as_ref().expect("a gradient flows").to_vec::<f64>();
        let values = x.detach().to_vec::<f64>();
        let h = 1e-6;
        let moved = |k: usize, by: f64| {
            let mut v = values.clone();
            v[k] += by;
            no_grad(|| of(&Tensor::from_slice(&v, [3, 3]))).item()
        };
        for k in [0, 5, 7] {
            let difference = (moved(k, h) - moved(k, -h)) / (2.0 * h);
            if (difference - analytic[k]).abs() > 1e-5 * difference.abs().max(1.0) {
                wrong.push(format!("{name}, element {k}: {} against {difference}", analytic[k]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_decomposition_gives_back_its_matrix() {
    for (rows, columns) in [(1, 1), (2, 2), (5, 3), (2, 5), (5, 5)] {
        let x = matrix(rows, columns);
        let close = |y: &Tensor, what: &str| {
            let far = (y - &x).abs();
            assert!(far.numel() == 0 || far.max().item() < 1e-9, "{what} of {rows} by {columns}");
        };
        let (u, s, vt) = x.svd(false);
        close(&(&u * s.unsqueeze(-2)).matmul(&vt), "svd");
        let (q, r) = x.qr(false);
        close(&q.matmul(&r), "qr");
        let (p, l, upper) = x.lu(true);
        close(&p.matmul(&l).matmul(&upper), "lu");
        if rows == columns {
            let symmetric = &x + x.transpose(-1, -2);
            let (values, v) = symmetric.eigh(false);
            let again = (&v * values.unsqueeze(-2)).matmul(&v.transpose(-1, -2));
            assert!((again - symmetric).abs().max().item() < 1e-9, "eigh of {rows}");
        }
    }
    // of rank 1: the vectors are orthonormal all the same
    let flat = Tensor::ones([4, 3]).double();
    let (u, s, _) = flat.svd(true);
    assert!(u.transpose(-1, -2).matmul(&u).allclose(&Tensor::eye(4).double()));
    assert!(s.allclose(&tensor(vec![12f64.sqrt(), 0.0, 0.0])));
}
