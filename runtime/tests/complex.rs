//! Complex numbers: gradients against differences along real and imaginary parts, and decompositions that give the matrix back.
use xlazy::prelude::*;
use xlazy::{ConvOptions, MatrixNorm};

type Function = fn(&Tensor) -> Tensor;

/// Six complex numbers as a matrix whose columns are independent.
fn high(z: &Tensor) -> Tensor {
    z.reshape([3, 2])
}

/// A square one, far from singular.
fn square(z: &Tensor) -> Tensor {
    let h = high(z);
    h.transpose(0, 1).matmul(&h) + Tensor::eye(2).to(C128) * 3.0
}

/// A Hermitian positive definite one.
fn hermitian(z: &Tensor) -> Tensor {
    let h = high(z);
    h.transpose(0, 1).conj().matmul(&h) + Tensor::eye(2).to(C128)
}

const SAMPLE: &[(&str, Function)] = &[
    ("mul", |z| z * z.roll(1, 0)),
    ("div", |z| z.roll(1, 0) / (z + 3.0)),
    ("exp", |z| z.exp()),
    ("log", |z| (z + 3.0).log()),
    ("sqrt", |z| (z + 3.0).sqrt()),
    ("rsqrt", |z| (z + 3.0).rsqrt()),
    ("sin", |z| z.sin()),
    ("cos", |z| z.cos()),
    ("tan", |z| z.tan()),
    ("tanh", |z| z.tanh()),
    ("sigmoid", |z| z.sigmoid()),
    ("asinh", |z| z.asinh()),
    ("square", |z| z.square()),
    ("reciprocal", |z| (z + 2.0).reciprocal()),
    ("pow", |z| (z + 3.0).pow(2.5)),
    ("abs", |z| z.abs()),
    ("angle", |z| (z + 3.0).angle()),
    ("sgn", |z| z.sgn()),
    ("conj", |z| z.conj() * z),
    ("sum", |z| z.sum().square()),
    ("mean", |z| z.mean() * z),
    ("prod", |z| z.prod()),
    ("cumsum", |z| z.cumsum(0).square()),
    ("cumprod", |z| z.cumprod(0)),
    ("norm", |z| z.norm()),
    ("logsumexp", |z| z.logsumexp(0, false)),
    ("logcumsumexp", |z| z.logcumsumexp(0)),
    ("logaddexp", |z| z.logaddexp(&z.roll(1, 0))),
    ("where", |z| z.where_(&z.real().gt(0.0), z.square())),
    ("gather", |z| z.gather(0, &tensor([0, 0, 5])).pow(3.0)),
    ("cat", |z| cat(&[z, &z.square()], 0)),
    ("matmul", |z| high(z).matmul(&z.reshape([2, 3]))),
    ("vdot", |z| z.vdot(&z.roll(1, 0))),
    ("vecdot", |z| z.vecdot(&z.roll(1, 0), 0)),
    ("einsum", |z| einsum("ij,kj->ik", &[&high(z), &high(z)])),
    ("conv1d", |z| z.reshape([1, 1, 6]).conv1d(&z.i(..2).reshape([1, 1, 2]), None, ConvOptions::default())),
    ("fft", |z| z.fft(None, -1, Default::default()).square()),
    ("written", |z| {
        let y = z * 1.0;
        y.i(..2).mul_(z.i(2..4));
        y.square()
    }),
    ("solve", |z| square(z).solve(&z.reshape([2, 3]))),
    ("inv", |z| square(z).inv()),
    ("det", |z| square(z).det()),
    ("slogdet", |z| {
        let (sign, log) = square(z).slogdet();
        sign * log
    }),
    ("lu", |z| square(z).lu(true).2),
    ("matrix_exp", |z| (square(z) * 0.2).matrix_exp()),
    ("matrix_power", |z| square(z).matrix_power(3)),
    ("solve_triangular", |z| square(z).solve_triangular(&z.reshape([2, 3]), true, true, false)),
    ("cholesky", |z| hermitian(z).cholesky(false)),
    ("cholesky_solve", |z| z.reshape([2, 3]).cholesky_solve(&hermitian(z).cholesky(false), false)),
    ("qr", |z| {
        let (q, r) = high(z).qr(false);
        q.abs().sum() + r.abs().square().sum() + (&q.matmul(&r) * z.reshape([3, 2])).real().sum()
    }),
    ("eigvalsh", |z| hermitian(z).eigvalsh(false)),
    ("eigh", |z| hermitian(z).eigh(false).1.abs()),
    ("svdvals", |z| high(z).svdvals()),
    ("svd", |z| {
        let (u, s, vh) = high(z).svd(false);
        u.abs().sum() + (&vh.abs() * s.unsqueeze(-1)).sum()
    }),
    ("pinv", |z| high(z).pinv(None, None)),
    ("nuclear norm", |z| high(z).matrix_norm(MatrixNorm::Nuclear, [-2, -1], false)),
];

/// A real number that all parts of a result take part in.
fn weighed(y: &Tensor) -> Tensor {
    let parts = if y.dtype().is_complex() { y.view_as_real() } else { y.clone() };
    let weights = Tensor::arange(0.0, parts.numel() as f64, 1.0).double() * 0.3 + 0.5;
    (parts.flatten() * weights).sum()
}

#[test]
fn gradients_are_those_of_differences() {
    const STEP: f64 = 1e-5;
    let mut draw = fastrand::Rng::with_seed(7);
    let mut parts = || Tensor::from_vec((0..12).map(|_| draw.f64() * 2.4 - 1.2).collect(), [6, 2]);
    let (point, along) = (parts(), parts());
    let (mut flows, mut differences) = (vec![], vec![]);
    for (_, f) in SAMPLE {
        let z = point.view_as_complex().detach().requires_grad_(true);
        let dz = grad(&weighed(&f(&z)), &[&z]).remove(0).expect("a gradient flows");
        flows.push((dz.view_as_real() * &along).sum().reshape([1]));
        let at = |by: f64| no_grad(|| weighed(&f(&(&point + &along * by).view_as_complex())));
        differences.push(((at(STEP) - at(-STEP)) / (2.0 * STEP)).reshape([1]));
    }
    let all = |of: &[Tensor]| cat(&of.iter().collect::<Vec<_>>(), 0).to_vec::<f64>();
    let (flows, differences) = (all(&flows), all(&differences));
    for (i, (name, _)) in SAMPLE.iter().enumerate() {
        let (a, b) = (flows[i], differences[i]);
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{name}: {a}, and by differences {b}");
    }
}

#[test]
fn decompositions_give_the_matrix_back() {
    let mut draw = fastrand::Rng::with_seed(11);
    let mut off = vec![];
    for shape in [[2, 3, 2], [1, 2, 3]] {
        let numbers = (0..2 * shape.iter().product::<i64>()).map(|_| draw.f64() * 2.0 - 1.0).collect();
        let a = Tensor::from_vec(numbers, [shape[0], shape[1], shape[2], 2]).view_as_complex();
        let turned = |t: &Tensor| t.transpose(-1, -2).conj();
        let unit = |n: usize| Tensor::eye(n).to(C128);
        let mut same =
            |what: &'static str, x: &Tensor, y: &Tensor| off.push((what, shape, (x - y).abs().max().reshape([1])));
        let (q, r) = a.qr(false);
        same("qr", &q.matmul(&r), &a);
        same("qr's columns", &turned(&q).matmul(&q), &unit(q.size(-1)));
        let (u, s, vh) = a.svd(false);
        same("svd", &(&u * s.unsqueeze(-2)).matmul(&vh), &a);
        same("svd's columns", &turned(&u).matmul(&u), &unit(s.size(-1)));
        let (p, l, high) = a.lu(true);
        same("lu", &p.matmul(&l).matmul(&high), &a);
        same("pinv", &a.matmul(&a.pinv(None, None)).matmul(&a), &a);
        let h = turned(&a).matmul(&a) + unit(a.size(-1));
        let (values, v) = h.eigh(false);
        same("eigh", &(&v * values.unsqueeze(-2)).matmul(&turned(&v)), &h);
        let factor = h.cholesky(false);
        same("cholesky", &factor.matmul(&turned(&factor)), &h);
        same("inv", &h.inv().matmul(&h), &unit(a.size(-1)));
        same("det", &h.det(), &values.prod_dim(-1, false).to(C128));
    }
    let all: Vec<&Tensor> = off.iter().map(|(.., most)| most).collect();
    for ((what, shape, _), most) in off.iter().zip(cat(&all, 0).to_vec::<f64>()) {
        assert!(most < 1e-9, "{what} of {shape:?}: off by {most}");
    }
}
