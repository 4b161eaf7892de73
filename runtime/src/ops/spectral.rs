//! Orthogonal decompositions: QR by Householder reflections, eigenvectors and singular vectors by Jacobi rotations of many
//! pairs of columns at a time, as loops that XLA compiles on every platform.
use super::cat;
use super::triangular::{matrices, square, wide};
use crate::tensor::{Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::emit::{Emit, Reducer, Val};
use xlazy_core::ir::{Kind, Lower, Rule, Sig};
use xlazy_core::ty::{DType, Shape, Type};

// The reflections of an m × n matrix below R's diagonal, as LAPACK packs them, and their factors in a column behind them.
fn reflected(s: &Sig) -> Rule {
    wide(s)?;
    let mut ty = s.inputs[0].clone();
    let last = ty.shape.len() - 1;
    ty.shape[last] += 1;
    Ok(ty)
}

/// `x` without its last or last but one dimension, as numbers that broadcast to `shape`.
fn along(e: &mut Emit, x: &Val, shape: &Shape, row: bool) -> Val {
    let rank = shape.len();
    let dims: Vec<usize> = match row {
        true => (0..rank - 2).chain([rank - 1]).collect(),
        false => (0..rank - 1).collect(),
    };
    e.broadcast_in_dim(x, shape, &dims)
}

fn householder(l: &mut Lower) -> Val {
    let (x, out) = (l.x(0), l.out.clone());
    let rank = x.rank();
    let (m, n) = (x.shape()[rank - 2], x.shape()[rank - 1]);
    let mut tail = out.clone();
    tail.shape[rank - 1] = 1;
    let none = l.constant(0.0, &tail);
    let start = l.concatenate(&[&x, &none], rank - 1);
    if x.shape().numel() == 0 {
        return start;
    }
    let done = l.e.repeat(m.min(n), &[start], |e, k, carried| {
        let all = &carried[0];
        let shape = out.shape.clone();
        let (place, column) = (e.iota(&out, rank - 2), e.iota(&out, rank - 1));
        let k = e.convert(k, out.dtype);
        let k = e.broadcast(&k, &shape);
        let zero = e.constant(0.0, &out);
        let (mine, here) = (e.compare("EQ", &column, &k), e.compare("EQ", &place, &k));
        let below = e.compare("GT", &place, &k);
        // the column's element on the diagonal, and how long the rest of it is
        let corner = e.binary("and", &mine, &here);
        let corner = e.select(&corner, all, &zero);
        let corner = e.reduce(&corner, &[rank - 2, rank - 1], Reducer::Add);
        let rest = e.binary("and", &below, &mine);
        let rest = e.select(&rest, all, &zero);
        let size = e.unary("abs", &rest);
        let most = e.reduce(&size, &[rank - 2, rank - 1], Reducer::Max);
        let zeros = e.constant(0.0, &most.ty);
        let ones = e.constant(1.0, &most.ty);
        let most = e.binary("maximum", &most, &zeros);
        let flat = e.compare("EQ", &most, &zeros);
        // scaled, so that squares neither overflow nor vanish
        let at = e.unary("abs", &corner);
        let scale = e.binary("maximum", &most, &at);
        let scale = e.select(&flat, &ones, &scale);
        let whole: Vec<usize> = (0..rank - 2).collect();
        let wide = e.broadcast_in_dim(&scale, &shape, &whole);
        let small = e.div(&rest, &wide);
        let squares = e.mul(&small, &small);
        let squares = e.reduce(&squares, &[rank - 2, rank - 1], Reducer::Add);
        let a = e.div(&corner, &scale);
        let square = e.mul(&a, &a);
        let length = e.add(&squares, &square);
        let length = e.unary("sqrt", &length);
        let length = e.mul(&length, &scale);
        let negative = e.compare("LT", &corner, &zeros);
        let minus = e.unary("negate", &length);
        let beta = e.select(&negative, &length, &minus);
        let beta = e.select(&flat, &corner, &beta);
        let difference = e.sub(&beta, &corner);
        let safe = e.select(&flat, &ones, &beta);
        let tau = e.div(&difference, &safe);
        let tau = e.select(&flat, &zeros, &tau);
        let by = e.sub(&corner, &beta);
        let by = e.select(&flat, &ones, &by);
        let by = e.broadcast_in_dim(&by, &shape, &whole);
        let v = e.div(&rest, &by);
        let v = e.reduce(&v, &[rank - 1], Reducer::Add);
        let v = along(e, &v, &shape, false);
        let one = e.constant(1.0, &out);
        let v = e.select(&here, &one, &v);
        let tau = e.broadcast_in_dim(&tau, &shape, &whole);
        // what is right of the column less tau v (vᵀ A)
        let product = e.mul(&v, all);
        let product = e.reduce(&product, &[rank - 2], Reducer::Add);
        let product = along(e, &product, &shape, true);
        let less = e.mul(&v, &product);
        let less = e.mul(&less, &tau);
        let less = e.sub(all, &less);
        let end = e.constant(n as f64, &out);
        let (right, real) = (e.compare("GT", &column, &k), e.compare("LT", &column, &end));
        let right = e.binary("and", &right, &real);
        let next = e.select(&right, &less, all);
        // the column itself: beta, and the reflection below it; its factor in the last column
        let beta = e.broadcast_in_dim(&beta, &shape, &whole);
        let own = e.select(&here, &beta, all);
        let own = e.select(&below, &v, &own);
        let next = e.select(&mine, &own, &next);
        let last = e.compare("EQ", &column, &end);
        let said = e.binary("and", &last, &here);
        vec![e.select(&said, &tau, &next)]
    });
    done[0].clone()
}

static GEQRF: Entry = Entry::new("geqrf", reflected, householder)
    .kind(Kind::Contract)
    .samples(|| vec![Sample::of(&[&[2, 3, 3]]), Sample::of(&[&[4, 2]]), Sample::of(&[&[2, 3]])]);

// How often each two columns meet: enough for the precision of the dtype, as the angles left shrink quadratically.
fn sweeps(dtype: DType, n: usize) -> usize {
    let grow = (usize::BITS - n.leading_zeros()) as usize;
    if dtype == DType::F64 { 8 + grow } else { 6 + grow }
}

// The right singular vectors of square matrices, in no order: one-sided Jacobi rotations, n / 2 pairs of columns at a time, as
// in a tournament where everybody meets everybody else.
fn rotated(l: &mut Lower) -> Val {
    let (x, out) = (l.x(0), l.out.clone());
    let rank = x.rank();
    let n = x.shape()[rank - 1];
    if x.shape().numel() == 0 || n == 1 {
        return l.constant(1.0, &out);
    }
    let places = Type::new(DType::I64, out.shape.clone());
    let (row, column) = (l.iota(&places, rank - 2), l.iota(&places, rank - 1));
    let same = l.compare("EQ", &row, &column);
    let unit = l.convert(&same, out.dtype);
    // an even number of columns
    let odd = n % 2;
    let none = l.scalar(0.0, out.dtype);
    let mut high = vec![0i64; rank];
    high[rank - 1] = odd as i64;
    let zeros = vec![0i64; rank];
    // of size 1 at most, so that squares do not overflow
    let size = l.unary("abs", &x);
    let most = l.reduce_keep(&size, &[rank - 2, rank - 1], Reducer::Max);
    let nothing = l.constant(0.0, &most.ty);
    let flat = l.compare("EQ", &most, &nothing);
    let one = l.constant(1.0, &most.ty);
    let most = l.select(&flat, &one, &most);
    let most = l.broadcast(&most, x.shape());
    let x = l.div(&x, &most);
    // matrix and rotations below one another: both get the same rotations
    let both = l.concatenate(&[&x, &unit], rank - 2);
    let both = l.pad(&both, &none, &zeros, &high, &zeros);
    let (rows, half) = (2 * n, (n + odd) / 2);
    let part = |e: &mut Emit, v: &Val, from: [usize; 2], to: [usize; 2]| {
        let mut start = vec![0i64; rank];
        let mut limit: Vec<i64> = v.shape().iter().map(|&d| d as i64).collect();
        (start[rank - 2], start[rank - 1]) = (from[0] as i64, from[1] as i64);
        (limit[rank - 2], limit[rank - 1]) = (to[0] as i64, to[1] as i64);
        e.slice(v, &start, &limit, &vec![1; rank])
    };
    let rounds = sweeps(out.dtype, n) * (2 * half - 1);
    let done = l.e.repeat(rounds, &[both], |e, _, carried| {
        let all = &carried[0];
        let (a, b) = (part(e, all, [0, 0], [rows, half]), part(e, all, [0, half], [rows, 2 * half]));
        let (am, bm) = (part(e, &a, [0, 0], [n, half]), part(e, &b, [0, 0], [n, half]));
        let mut dot = |x: &Val, y: &Val| {
            let p = e.mul(x, y);
            e.reduce(&p, &[rank - 2], Reducer::Add)
        };
        let (alpha, beta, gamma) = (dot(&am, &am), dot(&bm, &bm), dot(&am, &bm));
        let zero = e.constant(0.0, &gamma.ty);
        let one = e.constant(1.0, &gamma.ty);
        let orthogonal = e.compare("EQ", &gamma, &zero);
        let safe = e.select(&orthogonal, &one, &gamma);
        let zeta = e.sub(&beta, &alpha);
        let zeta = e.div(&zeta, &safe);
        let zeta = e.with_const("multiply", &zeta, 0.5);
        let size = e.unary("abs", &zeta);
        let square = e.mul(&zeta, &zeta);
        let root = e.add(&square, &one);
        let root = e.unary("sqrt", &root);
        let below = e.add(&size, &root);
        let t = e.div(&one, &below);
        let minus = e.unary("negate", &t);
        let negative = e.compare("LT", &zeta, &zero);
        let t = e.select(&negative, &minus, &t);
        let t = e.select(&orthogonal, &zero, &t);
        let square = e.mul(&t, &t);
        let c = e.add(&square, &one);
        let c = e.unary("rsqrt", &c);
        let s = e.mul(&c, &t);
        let (c, s) = (along(e, &c, a.shape(), true), along(e, &s, a.shape(), true));
        let (ca, sb, sa, cb) = (e.mul(&c, &a), e.mul(&s, &b), e.mul(&s, &a), e.mul(&c, &b));
        let (a, b) = (e.sub(&ca, &sb), e.add(&sa, &cb));
        if half == 1 {
            return vec![e.concatenate(&[&a, &b], rank - 1)];
        }
        // the first stays, all others move on by one place
        let (first, second) = (part(e, &a, [0, 0], [rows, 1]), part(e, &b, [0, 0], [rows, 1]));
        let (middle, others) = (part(e, &a, [0, 1], [rows, half - 1]), part(e, &b, [0, 1], [rows, half]));
        let last = part(e, &a, [0, half - 1], [rows, half]);
        vec![e.concatenate(&[&first, &second, &middle, &others, &last], rank - 1)]
    });
    // after whole rounds everybody is in the old place again, and the column that was put in, which stayed zero, is the last
    part(l.e, &done[0], [n, 0], [rows, n])
}

static JACOBI: Entry = Entry::new(
    "linalg.jacobi",
    |s| {
        wide(s)?;
        Ok(s.inputs[0].clone())
    },
    rotated,
)
.kind(Kind::Contract)
.samples(|| vec![Sample::of(&[&[2, 3, 3]]), Sample::of(&[&[2, 2]])]);

// What was computed of the first operand without a gradient, the last operand, with one.
fn known(s: &Sig) -> Rule {
    Ok(s.inputs[s.inputs.len() - 1].clone())
}

fn passed(l: &mut Lower) -> Val {
    l.x(l.inputs.len() - 1)
}

fn turned(t: &Tensor) -> Tensor {
    t.transpose(-1, -2)
}

// 1 / (values_j - values_i), 0 where they are equal.
fn gaps(values: &Tensor) -> Tensor {
    let d = values.unsqueeze(-2) - values.unsqueeze(-1);
    let same = d.eq(0.0);
    d.masked_fill(&same, 1.0).reciprocal().masked_fill(&same, 0.0)
}

static QR_Q: Entry = Entry::new("linalg.qr", known, passed).kind(Kind::Contract).grad(|g| {
    // the rest of the gradient comes by R = Qᵀ A
    let (a, q) = (g.x(0), &g.output);
    let (m, n) = (a.size(-2) as i64, a.size(-1) as i64);
    let k = m.min(n);
    let r = turned(q).matmul(&a.narrow(-1, 0, k)).triu(0);
    let inner = turned(&g.dy).matmul(q).neg();
    let symmetric = inner.tril(0) + turned(&inner.tril(-1));
    let d = (&g.dy + q.matmul(&symmetric)).solved_by(&turned(&r), false, false, false);
    vec![Some(if n > k { d.pad([0, n - k], 0.0) } else { d }), None]
});

static EIGENVECTORS: Entry = Entry::new("linalg.eigh", known, passed).kind(Kind::Contract).grad(|g| {
    let (values, v) = (g.x(1), &g.output);
    let inner = turned(v).matmul(&g.dy) * gaps(values);
    let all = v.matmul(&inner).matmul(&turned(v));
    // of a symmetric matrix
    vec![Some((&all + turned(&all)) * 0.5), None, None]
});

// Operands: the matrix, its eigenvectors, its eigenvalues.
static EIGENVALUES: Entry = Entry::new("linalg.eigvalsh", known, passed).kind(Kind::Contract).grad(|g| {
    let v = g.x(1);
    vec![Some((v * g.dy.unsqueeze(-2)).matmul(&turned(v))), None, None]
});

// Operands: the matrix, its singular values, its right singular vectors: the eigenvectors of Aᵀ A.
static RIGHT_VECTORS: Entry = Entry::new("linalg.svd", known, passed).kind(Kind::Contract).grad(|g| {
    let (a, s, v) = (g.x(0), g.x(1), &g.output);
    let inner = turned(v).matmul(&g.dy) * gaps(&s.square());
    vec![Some(a.matmul(v).matmul(&(&inner + turned(&inner))).matmul(&turned(v))), None, None]
});

// Operands: the matrix, its left and right singular vectors, its singular values.
static SINGULAR_VALUES: Entry = Entry::new("linalg.svdvals", known, passed).kind(Kind::Contract).grad(|g| {
    let (u, v) = (g.x(1), g.x(2));
    vec![Some((u * g.dy.unsqueeze(-2)).matmul(&turned(v))), None, None, None]
});

// Operands: the matrix, its right singular vectors, its singular values, the left vectors U = A V / S.
static LEFT_VECTORS: Entry = Entry::new("linalg.svd.u", known, passed).kind(Kind::Contract).grad(|g| {
    let (a, v, s, u) = (g.x(0), g.x(1), g.x(2), &g.output);
    let none = s.eq(0.0);
    let over = s.masked_fill(&none, 1.0).reciprocal().masked_fill(&none, 0.0);
    let scaled = &g.dy * over.unsqueeze(-2);
    let ds = g.want(2, || (&scaled * u).sum_dim(-2, false).neg());
    vec![g.want(0, || scaled.matmul(&turned(v))), g.want(1, || turned(a).matmul(&scaled)), ds, None]
});

// Operands: the matrix, its pseudoinverse.
static PSEUDOINVERSE: Entry = Entry::new("linalg.pinv", known, passed).kind(Kind::Contract).grad(|g| {
    let (a, p) = (g.x(0), &g.output);
    let (dt, pt) = (turned(&g.dy), turned(p));
    if a.size(-2) <= a.size(-1) {
        let k = dt.matmul(p);
        let kp = k.matmul(&pt);
        let d = kp.clone() - turned(&p.matmul(&k)) - a.matmul(p).matmul(&kp);
        return vec![Some(d + pt.matmul(p).matmul(&(dt - k.matmul(a)))), None];
    }
    let k = p.matmul(&dt);
    let pk = pt.matmul(&k);
    let d = (dt - a.matmul(&k)).matmul(p).matmul(&pt) - turned(&k.matmul(p));
    vec![Some(d + pk.clone() - pk.matmul(p).matmul(a)), None]
});

pub(super) static OPS: &[&Entry] = &[
    &GEQRF,
    &JACOBI,
    &QR_Q,
    &EIGENVECTORS,
    &EIGENVALUES,
    &RIGHT_VECTORS,
    &SINGULAR_VALUES,
    &LEFT_VECTORS,
    &PSEUDOINVERSE,
];

// Right singular vectors of square matrices, and the columns' lengths that go with them, largest first.
#[track_caller]
fn right_vectors(x: &Tensor) -> (Tensor, Tensor) {
    let v = trace(&JACOBI, [x.into()], []);
    let lengths = x.matmul(&v).norm_p(2.0, -2, false);
    let order = lengths.argsort(-1, true);
    (v.gather(-1, &order.unsqueeze(-2).expand(v.shape())), lengths.gather(-1, &order))
}

/// A thin decomposition of matrices that are at least as high as wide: U, S, V, and U as a square matrix.
#[track_caller]
fn svd_of_high(a: &Tensor) -> (Tensor, Tensor, Tensor, Tensor) {
    let x = a.detach();
    let n = x.size(-1) as i64;
    let square =
        if x.size(-2) as i64 > n { x.geqrf_packed().narrow(-2, 0, n).narrow(-1, 0, n).triu(0) } else { x.clone() };
    let (v, s) = right_vectors(&square);
    // orthonormal also where singular values are zero
    let packed = x.matmul(&v).geqrf_packed();
    let sign = packed.narrow(-1, 0, n).diagonal(0, -2, -1).lt(0.0);
    let sign = s.ones_like().where_(&sign.logical_not(), -1.0).unsqueeze(-2);
    let full = reflections(&packed.narrow(-1, 0, n), &packed.select(-1, n).narrow(-1, 0, n), true);
    let u = full.narrow(-1, 0, n) * sign;
    let right = trace(&RIGHT_VECTORS, [a.into(), (&s).into(), (&v).into()], []);
    let values = trace(&SINGULAR_VALUES, [a.into(), (&u).into(), (&right).into(), (&s).into()], []);
    let left = trace(&LEFT_VECTORS, [a.into(), (&right).into(), (&values).into(), (&u).into()], []);
    (left, values, right, full)
}

// A symmetric matrix by one of its triangles.
#[track_caller]
fn symmetric(x: &Tensor, upper: bool) -> Tensor {
    if upper { x.triu(0) + turned(&x.triu(1)) } else { x.tril(0) + turned(&x.tril(-1)) }
}

// The product of Householder reflections I - tau v vᵀ: I - V T Vᵀ with T = D (I + triu(Vᵀ V, 1) D)⁻¹, D the factors.
#[track_caller]
fn reflections(packed: &Tensor, tau: &Tensor, complete: bool) -> Tensor {
    let (m, k) = (packed.size(-2), tau.size(-1));
    let eye = |rows: usize, columns: usize| Tensor::eye_of(rows, columns).to(packed.dtype());
    let v = packed.narrow(-1, 0, k as i64).tril(-1) + eye(m, k);
    let d = tau.unsqueeze(-2);
    let inner = turned(&v).matmul(&v).triu(1) * &d + eye(k, k);
    let unit = eye(k, k).expand(inner.shape());
    let t = turned(&d) * unit.solved_by(&inner, true, true, true);
    let columns = if complete { m } else { packed.size(-1) };
    let top = turned(&v).narrow(-1, 0, columns as i64);
    eye(m, columns) - v.matmul(&t).matmul(&top)
}

impl Tensor {
    #[track_caller]
    fn geqrf_packed(&self) -> Tensor {
        trace(&GEQRF, [self.into()], [])
    }

    /// A QR decomposition as LAPACK packs it: R in and above the diagonal, reflections below it, and their factors
    /// (`torch.geqrf`). No gradient flows.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (a, tau) = tensor([[3.0], [4.0]]).geqrf();
    /// assert_eq!((a.to_vec::<f32>(), tau.to_vec::<f32>()), (vec![-5.0, 0.5], vec![1.6]));
    /// ```
    #[track_caller]
    pub fn geqrf(&self) -> (Tensor, Tensor) {
        let _call = called("geqrf", [self]);
        matrices("geqrf", self);
        let (n, k) = (self.size(-1) as i64, self.size(-2).min(self.size(-1)) as i64);
        let packed = self.geqrf_packed();
        (packed.narrow(-1, 0, n), packed.select(-1, n).narrow(-1, 0, k))
    }

    /// The first columns of the product of the reflections that [`Tensor::geqrf`] packs, whose factors are `tau`
    /// (`torch.linalg.householder_product`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (a, tau) = tensor([[3.0], [4.0]]).geqrf();
    /// assert!(a.householder_product(&tau).allclose(&tensor([[-0.6], [-0.8]])));
    /// ```
    #[track_caller]
    pub fn householder_product(&self, tau: &Tensor) -> Tensor {
        let _call = called("householder_product", [self, tau]);
        matrices("householder_product", self);
        if self.size(-2) < self.size(-1) || self.size(-1) < tau.size(-1) {
            refuse("householder_product", &[self, tau], "needs no more factors than columns, and columns than rows");
        }
        reflections(self, tau, false)
    }

    /// `other` multiplied by the orthogonal matrix of the reflections that [`Tensor::geqrf`] packs: from the left, or the
    /// right, or by its transpose (`torch.ormqr`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (a, tau) = tensor([[3.0], [4.0]]).geqrf();
    /// let y = a.ormqr(&tau, &tensor([[3.0], [4.0]]), true, true);
    /// assert!(y.allclose(&tensor([[-5.0], [0.0]])));
    /// ```
    #[track_caller]
    pub fn ormqr(&self, tau: &Tensor, other: &Tensor, left: bool, transpose: bool) -> Tensor {
        let _call = called("ormqr", [self, tau, other]);
        matrices("ormqr", self);
        let q = reflections(self, tau, true);
        let q = if transpose { turned(&q) } else { q };
        if left { q.matmul(other) } else { other.matmul(&q) }
    }

    /// Q and R with A = Q · R, Q's columns orthonormal and R an upper triangle (`torch.linalg.qr`). `complete` makes Q square,
    /// and then no gradient flows where A has more rows than columns.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[3.0, 1.0], [4.0, 2.0]]);
    /// let (q, r) = x.qr(false);
    /// assert!(q.matmul(&r).allclose(&x));
    /// ```
    #[track_caller]
    pub fn qr(&self, complete: bool) -> (Tensor, Tensor) {
        let _call = called("qr", [self]);
        matrices("qr", self);
        let (m, n) = (self.size(-2) as i64, self.size(-1) as i64);
        let k = m.min(n);
        let packed = self.detach().geqrf_packed();
        let q = reflections(&packed.narrow(-1, 0, n), &packed.select(-1, n).narrow(-1, 0, k), true);
        if complete && m > n {
            return (q, packed.narrow(-1, 0, n).triu(0));
        }
        let q = trace(&QR_Q, [self.into(), (&q.narrow(-1, 0, k)).into()], []);
        let r = turned(&q).matmul(self).triu(0);
        (q, r)
    }

    /// The singular values, largest first, with U and Vᵀ such that A = U · diag(S) · Vᵀ (`torch.linalg.svd`). With
    /// `full_matrices` U and V are square; the columns put in get no gradient.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (_, s, _) = tensor([[3.0, 0.0], [0.0, 4.0]]).svd(false);
    /// assert_eq!(s.to_vec::<f32>(), [4.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn svd(&self, full_matrices: bool) -> (Tensor, Tensor, Tensor) {
        let _call = called("svd", [self]);
        matrices("svd", self);
        let (m, n) = (self.size(-2) as i64, self.size(-1) as i64);
        if m < n {
            let (u, s, vt) = turned(self).svd(full_matrices);
            return (turned(&vt), s, turned(&u));
        }
        let (u, s, v, full) = svd_of_high(self);
        let u = if full_matrices && m > n { cat(&[&u, &full.narrow(-1, n, m - n)], -1) } else { u };
        (u, s, turned(&v))
    }

    /// The singular values of each matrix, largest first (`torch.linalg.svdvals`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[3.0, 0.0], [0.0, 4.0]]).svdvals().to_vec::<f32>(), [4.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn svdvals(&self) -> Tensor {
        let _call = called("svdvals", [self]);
        self.svd(false).1
    }

    /// The eigenvalues of symmetric matrices, smallest first, and their eigenvectors as columns; the lower triangle is read,
    /// the upper one where `upper` (`torch.linalg.eigh`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (values, _) = tensor([[0.0, 2.0], [2.0, 0.0]]).eigh(false);
    /// assert!(values.allclose(&tensor([-2.0, 2.0])));
    /// ```
    #[track_caller]
    pub fn eigh(&self, upper: bool) -> (Tensor, Tensor) {
        let _call = called("eigh", [self]);
        square("eigh", self);
        let x = symmetric(&self.detach(), upper);
        if x.numel() == 0 {
            return (self.sum_dim(-1, false), self.clone());
        }
        // moved until none is negative: then the singular vectors are the eigenvectors
        let bound = x.abs().sum_dim(-1, true).amax([-2, -1], true);
        let unit = Tensor::eye(x.size(-1)).to(x.dtype());
        let v = trace(&JACOBI, [(&(&x + &unit * bound)).into()], []);
        let values = (&v * x.matmul(&v)).sum_dim(-2, false);
        let order = values.argsort(-1, false);
        let (v, values) = (v.gather(-1, &order.unsqueeze(-2).expand(v.shape())), values.gather(-1, &order));
        let v = trace(&EIGENVECTORS, [self.into(), (&values).into(), (&v).into()], []);
        let values = trace(&EIGENVALUES, [self.into(), (&v).into(), (&values).into()], []);
        (values, v)
    }

    /// The eigenvalues of symmetric matrices, smallest first (`torch.linalg.eigvalsh`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!(tensor([[0.0, 2.0], [2.0, 0.0]]).eigvalsh(false).allclose(&tensor([-2.0, 2.0])));
    /// ```
    #[track_caller]
    pub fn eigvalsh(&self, upper: bool) -> Tensor {
        let _call = called("eigvalsh", [self]);
        self.eigh(upper).0
    }

    /// The pseudoinverse of each matrix; singular values up to `rtol` times the largest, or `atol`, count as zero
    /// (`torch.linalg.pinv`). Without `rtol` it is the larger size times the dtype's precision, or 0 where there is an `atol`.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!(tensor([[2.0, 0.0], [0.0, 0.0]]).pinv(None, None).allclose(&tensor([[0.5, 0.0], [0.0, 0.0]])));
    /// ```
    #[track_caller]
    pub fn pinv(&self, atol: Option<f64>, rtol: Option<f64>) -> Tensor {
        let _call = called("pinv", [self]);
        matrices("pinv", self);
        self.pinv_of(&self.detach(), atol, rtol)
    }

    /// As [`Tensor::pinv`] of symmetric matrices, of which the lower triangle is read (`torch.linalg.pinv` with
    /// `hermitian=True`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!(tensor([[2.0, 9.0], [0.0, 4.0]]).pinv_hermitian(None, None).allclose(&tensor([[0.5, 0.0], [0.0, 0.25]])));
    /// ```
    #[track_caller]
    pub fn pinv_hermitian(&self, atol: Option<f64>, rtol: Option<f64>) -> Tensor {
        let _call = called("pinv_hermitian", [self]);
        square("pinv", self);
        self.pinv_of(&symmetric(&self.detach(), false), atol, rtol)
    }

    #[track_caller]
    fn pinv_of(&self, x: &Tensor, atol: Option<f64>, rtol: Option<f64>) -> Tensor {
        if x.numel() == 0 {
            return turned(self);
        }
        let (u, s, vt) = x.svd(false);
        let most = s.narrow(-1, 0, 1);
        let rtol = rtol.unwrap_or_else(|| if atol.is_some() { 0.0 } else { self.precision() });
        let bound = (most * rtol).clamp_min(atol.unwrap_or(0.0));
        let small = s.le(&bound);
        let over = s.masked_fill(&small, 1.0).reciprocal().masked_fill(&small, 0.0);
        let raw = (turned(&vt) * over.unsqueeze(-2)).matmul(&turned(&u));
        trace(&PSEUDOINVERSE, [self.into(), (&raw).into()], [])
    }

    /// The larger size of the matrices times the precision of their dtype: what counts as zero beside the largest.
    fn precision(&self) -> f64 {
        let one = if self.dtype() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
        one * self.size(-2).max(self.size(-1)) as f64
    }

    /// How many singular values of each matrix are not zero: above `rtol` times the largest, by default the larger size times
    /// the dtype's precision (`torch.linalg.matrix_rank`), int64.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[1.0, 1.0], [1.0, 1.0]]).matrix_rank(None).item_i64(), 1);
    /// ```
    #[track_caller]
    pub fn matrix_rank(&self, rtol: Option<f64>) -> Tensor {
        let _call = called("matrix_rank", [self]);
        let s = self.detach().svdvals();
        if s.numel() == 0 {
            return s.sum_dim(-1, false).long();
        }
        s.gt(s.narrow(-1, 0, 1) * rtol.unwrap_or_else(|| self.precision())).sum_dim(-1, false)
    }
}
