//! Orthogonal decompositions: QR by Householder reflections, eigenvectors and singular vectors by Jacobi rotations, with their
//! gradients.
use super::base::of_one_rank;
use super::cat;
use super::reflect::{GEQRF, JACOBI};
use super::triangular::{matrices, square, turned};
use crate::tensor::{Entry, Tensor, called, refuse, trace};
use xlazy_core::emit::Val;
use xlazy_core::ir::{Kind, Lower, Rule, Sig};
use xlazy_core::ty::DType;

// What was computed of the first operand without a gradient, the last operand, with one.
fn known(s: &Sig) -> Rule {
    Ok(s.inputs[s.inputs.len() - 1].clone())
}

fn passed(l: &mut Lower) -> Val {
    l.x(l.inputs.len() - 1)
}

// 1 / (values_j - values_i), 0 where they are equal.
fn gaps(values: &Tensor) -> Tensor {
    let d = values.unsqueeze(-2) - values.unsqueeze(-1);
    let same = d.eq(0.0);
    d.masked_fill(&same, 1.0).reciprocal().masked_fill(&same, 0.0)
}

static QR_Q: Entry = Entry::new("linalg.qr", known, passed).kind(Kind::Contract).grad(|g| {
    // the rest of the gradient comes by R = Qᴴ A
    let (a, q) = (&g.inputs[0], &g.output);
    let (m, n) = (a.size(-2) as i64, a.size(-1) as i64);
    let k = m.min(n);
    let r = turned(q).matmul(&a.narrow(-1, 0, k)).triu(0);
    let inner = turned(&g.dy).matmul(q).neg();
    let symmetric = inner.tril(0) + turned(&inner.tril(-1));
    // its diagonal is real
    let symmetric = (&symmetric + turned(&symmetric)) * 0.5;
    let d = (&g.dy + q.matmul(&symmetric)).solved_by(&turned(&r), false, false, false);
    vec![Some(if n > k { d.pad([0, n - k], 0.0) } else { d }), None]
});

static EIGENVECTORS: Entry = Entry::new("linalg.eigh", known, passed).kind(Kind::Contract).grad(|g| {
    let (values, v) = (&g.inputs[1], &g.output);
    let inner = turned(v).matmul(&g.dy) * gaps(values);
    let all = v.matmul(&inner).matmul(&turned(v));
    // of a symmetric matrix
    vec![Some((&all + turned(&all)) * 0.5), None, None]
});

// Operands: the matrix, its eigenvectors, its eigenvalues.
static EIGENVALUES: Entry = Entry::new("linalg.eigvalsh", known, passed).kind(Kind::Contract).grad(|g| {
    let v = &g.inputs[1];
    vec![Some((v * g.dy.unsqueeze(-2)).matmul(&turned(v))), None, None]
});

// Operands: the matrix, its singular values, its right singular vectors: the eigenvectors of Aᵀ A.
static RIGHT_VECTORS: Entry = Entry::new("linalg.svd", known, passed).kind(Kind::Contract).grad(|g| {
    let (a, s, v) = (&g.inputs[0], &g.inputs[1], &g.output);
    let inner = turned(v).matmul(&g.dy) * gaps(&s.square());
    vec![Some(a.matmul(v).matmul(&(&inner + turned(&inner))).matmul(&turned(v))), None, None]
});

// Operands: the matrix, its left and right singular vectors, its singular values.
static SINGULAR_VALUES: Entry = Entry::new("linalg.svdvals", known, passed).kind(Kind::Contract).grad(|g| {
    let (u, v) = (&g.inputs[1], &g.inputs[2]);
    vec![Some((u * g.dy.unsqueeze(-2)).matmul(&turned(v))), None, None, None]
});

// Operands: the matrix, its right singular vectors, its singular values, the left vectors U = A V / S.
static LEFT_VECTORS: Entry = Entry::new("linalg.svd.u", known, passed).kind(Kind::Contract).grad(|g| {
    let (a, v, s, u) = (&g.inputs[0], &g.inputs[1], &g.inputs[2], &g.output);
    let none = s.eq(0.0);
    let over = s.masked_fill(&none, 1.0).reciprocal().masked_fill(&none, 0.0);
    let scaled = &g.dy * over.unsqueeze(-2);
    let ds = g.want(2, || (&scaled.conj() * u).real().sum_dim(-2, false).neg());
    vec![g.want(0, || scaled.matmul(&turned(v))), g.want(1, || turned(a).matmul(&scaled)), ds, None]
});

// Operands: the matrix, its pseudoinverse.
static PSEUDOINVERSE: Entry = Entry::new("linalg.pinv", known, passed).kind(Kind::Contract).grad(|g| {
    let (a, p) = (&g.inputs[0], &g.output);
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

pub(super) static OPS: &[&Entry] =
    &[&QR_Q, &EIGENVECTORS, &EIGENVALUES, &RIGHT_VECTORS, &SINGULAR_VALUES, &LEFT_VECTORS, &PSEUDOINVERSE];

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
    let sign = packed.narrow(-1, 0, n).diagonal(0, -2, -1).real().lt(0.0);
    let sign = s.ones_like().where_(&sign.logical_not(), -1.0).unsqueeze(-2);
    let full = reflections(&packed.narrow(-1, 0, n), &packed.select(-1, n).narrow(-1, 0, n), true);
    let u = full.narrow(-1, 0, n) * sign;
    let right = trace(&RIGHT_VECTORS, [a.into(), (&s).into(), (&v).into()], []);
    let values = trace(&SINGULAR_VALUES, [a.into(), (&u).into(), (&right).into(), (&s).into()], []);
    let left = trace(&LEFT_VECTORS, [a.into(), (&right).into(), (&values).into(), (&u).into()], []);
    (left, values, right, full)
}

// A symmetric, or Hermitian, matrix by one of its triangles.
#[track_caller]
fn symmetric(x: &Tensor, upper: bool) -> Tensor {
    let half = if upper { turned(&x.triu(1)) } else { x.tril(-1) };
    // the diagonal is real
    &half + turned(&half) + x.real().diagonal(0, -2, -1).diag_embed(0, -2, -1)
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
    let t = d.transpose(-1, -2) * unit.solved_by(&inner, true, true, true);
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
        of_one_rank("ormqr", "both", &[self, other]);
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
            return (self.real().sum_dim(-1, false), self.clone());
        }
        // moved until none is negative: then the singular vectors are the eigenvectors
        let bound = x.abs().sum_dim(-1, true).amax([-2, -1], true);
        let unit = Tensor::eye(x.size(-1)).to(x.dtype());
        let v = trace(&JACOBI, [(&(&x + &unit * bound)).into()], []);
        let values = (v.conj() * x.matmul(&v)).real().sum_dim(-2, false);
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
        let one = if self.dtype().part() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
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
