//! Triangular systems and Cholesky's decomposition, which StableHLO has ops for.
use crate::tensor::{Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::emit::Val;
use xlazy_core::ir::Role::Mode;
use xlazy_core::ir::{AttrsExt, Kind, Lower, Rule, Sig, attr};
use xlazy_core::ty::{DType, Shape, Type};

/// Refuses what is no batch of square matrices of floats.
#[track_caller]
pub(super) fn square(op: &'static str, x: &Tensor) -> usize {
    matrices(op, x);
    let (rows, columns) = (x.size(-2), x.size(-1));
    if rows != columns {
        refuse(op, &[x], format!("needs square matrices, these are {rows} by {columns}"));
    }
    rows
}

/// Refuses what is no batch of matrices that a decomposition is made of.
#[track_caller]
pub(super) fn matrices(op: &'static str, x: &Tensor) {
    if x.dim() < 2 {
        refuse(op, &[x], "needs a matrix, or a batch of them in the last two dimensions");
    }
    if !decomposes(x.dtype()) {
        refuse(op, &[x], "needs float32 or float64, or complex numbers of these: convert with `.float()`");
    }
}

// The lower or upper triangle, zeros elsewhere.
fn triangle(l: &mut Lower, x: &Val, lower: bool) -> Val {
    let places = Type::new(DType::I64, x.shape().clone());
    let (row, column) = (l.iota(&places, x.rank() - 2), l.iota(&places, x.rank() - 1));
    let inside = l.compare(if lower { "LE" } else { "GE" }, &column, &row);
    let zero = l.constant(0.0, &x.ty);
    l.select(&inside, x, &zero)
}

fn decomposes(dtype: DType) -> bool {
    matches!(dtype.part(), DType::F32 | DType::F64)
}

/// The transposed matrices; of complex numbers conjugated, too.
#[track_caller]
pub(super) fn turned(t: &Tensor) -> Tensor {
    t.transpose(-1, -2).conj()
}

/// Matrices are decomposed in float32 and float64, and in complex numbers of these, as in torch.
pub(super) fn wide(s: &Sig) -> std::result::Result<(), String> {
    match s.inputs.iter().find(|t| !decomposes(t.dtype)) {
        Some(t) => Err(format!("needs float32 or float64, not {}: convert with `.float()`", t.dtype)),
        None => Ok(()),
    }
}

fn same(s: &Sig) -> Rule {
    wide(s)?;
    Ok(s.inputs[0].clone())
}

// The operand is A = L Lᵀ. Its samples are of 1 × 1 matrices: any others would not be positive definite.
static CHOLESKY: Entry = Entry::new("cholesky", same, |l| {
    let x = l.x(0);
    if x.shape().numel() == 0 {
        return x;
    }
    let ty = x.ty.clone();
    let y = l.op("cholesky", &[&x], "{lower = true}", ty);
    triangle(l, &y, true)
})
.kind(Kind::Contract)
.samples(|| vec![Sample::of(&[&[2, 1, 1]]).range(0.5, 2.0)])
.grad(|g| {
    // L⁻ᴴ Φ(Lᴴ dL) L⁻¹; Φ takes the lower triangle, made symmetric. As in torch the diagonal keeps its imaginary part.
    let factor = &g.output;
    let m = turned(factor).matmul(&g.dy);
    let symmetric = (m.tril(0) + turned(&m.tril(-1))) * 0.5;
    let left = symmetric.solved_by(&turned(factor), true, true, false);
    vec![Some(left.solved_by(factor, false, false, false))]
});

fn solve_rule(s: &Sig) -> Rule {
    wide(s)?;
    let (a, b) = (s.shape(0), s.shape(1));
    let side = if s.attrs.flag(0) { b.len() - 2 } else { b.len() - 1 };
    if a.len() != b.len() || a[..a.len() - 2] != b[..b.len() - 2] || a[a.len() - 1] != b[side] {
        return Err(format!("a triangular matrix {a} does not fit {b}"));
    }
    Ok(s.inputs[1].clone())
}

static SOLVE_TRIANGULAR: Entry = Entry::new("solve_triangular", solve_rule, |l| {
    let (a, b, out) = (l.x(0), l.cast(1), l.out.clone());
    if out.shape.numel() == 0 {
        return b;
    }
    let attributes = format!(
        "{{left_side = {}, lower = {}, unit_diagonal = {}, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}",
        l.attrs.flag(0),
        !l.attrs.flag(1),
        l.attrs.flag(2)
    );
    l.op("triangular_solve", &[&a, &b], &attributes, out)
})
.kind(Kind::Contract)
.attrs(&[attr("left", Mode), attr("upper", Mode), attr("unitriangular", Mode)])
.samples(|| {
    let of = |left: bool, upper: bool, unit: bool, b: &[usize]| {
        Sample::of(&[&[2, 2], b]).range(0.5, 1.5).attrs(vec![left.into(), upper.into(), unit.into()])
    };
    vec![of(true, true, false, &[2, 3]), of(false, false, false, &[3, 2]), of(true, false, true, &[2, 1])]
})
.grad(|g| {
    let [left, upper, unit] = [0, 1, 2].map(|i| g.attrs.flag(i));
    let (a, x) = (g.x(0), g.y());
    let db = g.dy.solved_by(&a.transpose(-1, -2), left, !upper, unit);
    let da = g.want(0, || {
        let xt = x.transpose(-1, -2);
        let all = if left { db.matmul(&xt) } else { xt.matmul(&db) }.neg();
        let off = i64::from(unit);
        if upper { all.triu(off) } else { all.tril(-off) }
    });
    vec![da, Some(db)]
});

// Operands: the right hand side, the factor, the solution, whose gradient this gives. As in torch all of the factor counts.
static CHOLESKY_SOLVE: Entry = Entry::new("cholesky_solve", |s| Ok(s.inputs[2].clone()), |l| l.x(2))
    .kind(Kind::Contract)
    .attrs(&[attr("upper", Mode)])
    .grad(|g| {
        let (factor, upper) = (&g.inputs[1], g.attrs.flag(0));
        let db = g.dy.cholesky_solve(factor, upper);
        let d = g.want(1, || {
            let common = db.matmul(&turned(&g.output));
            let common = (&common + turned(&common)).neg();
            if upper { factor.matmul(&common) } else { common.matmul(factor) }
        });
        vec![Some(db), d, None]
    });

pub(super) static OPS: &[&Entry] = &[&CHOLESKY, &SOLVE_TRIANGULAR, &CHOLESKY_SOLVE];

/// Both with the batch dimensions that they have together.
#[track_caller]
pub(super) fn batched(op: &'static str, a: &Tensor, b: &Tensor) -> (Tensor, Tensor) {
    let split = |t: &Tensor| {
        let s = t.shape();
        let n = s.len() - 2;
        (Shape::new(&s[..n]), [s[n], s[n + 1]])
    };
    let ((ba, ma), (bb, mb)) = (split(a), split(b));
    let Some(batch) = ba.broadcast(&bb) else {
        refuse(op, &[a, b], format!("the batch sizes {ba} and {bb} do not broadcast"));
    };
    let full = |t: &Tensor, m: [usize; 2]| {
        let mut s = batch.clone();
        m.iter().for_each(|&n| s.push(n));
        t.expand(s)
    };
    (full(a, ma), full(b, mb))
}

impl Tensor {
    /// What [`Tensor::solve_triangular`] does, without its checks, seen from the right hand side.
    #[track_caller]
    pub(super) fn solved_by(&self, a: &Tensor, left: bool, upper: bool, unit: bool) -> Tensor {
        trace(&SOLVE_TRIANGULAR, [a.into(), self.into()], [left.into(), upper.into(), unit.into()])
    }

    /// `X` with `self · X = b`, or `X · self = b` where not `left`: this tensor is a batch of triangular matrices, of which
    /// only that triangle is looked at (`torch.linalg.solve_triangular`). With `unitriangular` the diagonal counts as ones.
    /// Batches broadcast. StableHLO: triangular_solve.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let a = tensor([[2.0, 1.0], [0.0, 4.0]]);
    /// let x = a.solve_triangular(&tensor([[4.0], [8.0]]), true, true, false);
    /// assert_eq!(x.to_vec::<f32>(), [1.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn solve_triangular(&self, b: &Tensor, upper: bool, left: bool, unitriangular: bool) -> Tensor {
        let _call = called("solve_triangular", [self, b]);
        let n = square("solve_triangular", self);
        matrices("solve_triangular", b);
        if b.size(if left { -2 } else { -1 }) != n || b.dtype() != self.dtype() {
            refuse(
                "solve_triangular",
                &[self, b],
                format!("the right hand side must have {n} rows, and the same dtype"),
            );
        }
        let (a, b) = batched("solve_triangular", self, b);
        b.solved_by(&a, left, upper, unitriangular)
    }

    /// `X` with `a · X = self` for triangular matrices `a`, and those (`torch.triangular_solve`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let a = tensor([[2.0, 1.0], [0.0, 4.0]]);
    /// let (x, _) = tensor([[4.0], [8.0]]).triangular_solve(&a, true, false, false);
    /// assert_eq!(x.to_vec::<f32>(), [1.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn triangular_solve(&self, a: &Tensor, upper: bool, transpose: bool, unitriangular: bool) -> (Tensor, Tensor) {
        let _call = called("triangular_solve", [self, a]);
        square("triangular_solve", a);
        matrices("triangular_solve", self);
        let (wide, b) = batched("triangular_solve", a, self);
        let x = match transpose {
            true => wide.transpose(-1, -2).solve_triangular(&b, !upper, true, unitriangular),
            false => wide.solve_triangular(&b, upper, true, unitriangular),
        };
        (x, wide)
    }

    /// The lower triangular `L` with `L · Lᴴ` = this symmetric (Hermitian) positive definite matrix, of which the lower triangle is read;
    /// its transpose where `upper` (`torch.linalg.cholesky`). NaN where a matrix is not positive definite. StableHLO: cholesky.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[4.0, 2.0], [2.0, 5.0]]).cholesky(false);
    /// assert_eq!(x.to_vec::<f32>(), [2.0, 0.0, 1.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn cholesky(&self, upper: bool) -> Tensor {
        let _call = called("cholesky", [self]);
        square("cholesky", self);
        let factor = trace(&CHOLESKY, [self.into()], []);
        if upper { turned(&factor) } else { factor }
    }

    /// `X` with `A · X = self`, where `factor` is A's Cholesky factor, an upper one where `upper` (`torch.cholesky_solve`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[8.0]]).cholesky_solve(&tensor([[2.0]]), false);
    /// assert_eq!(x.to_vec::<f32>(), [2.0]);
    /// ```
    #[track_caller]
    pub fn cholesky_solve(&self, factor: &Tensor, upper: bool) -> Tensor {
        let _call = called("cholesky_solve", [self, factor]);
        square("cholesky_solve", factor);
        matrices("cholesky_solve", self);
        if self.size(-2) != factor.size(-1) || self.dtype() != factor.dtype() {
            refuse("cholesky_solve", &[self, factor], "the factor must have as many rows, and the same dtype");
        }
        let (factor, b) = batched("cholesky_solve", factor, self);
        let other = turned(&factor.detach());
        let (low, high) = if upper { (&other, &factor.detach()) } else { (&factor.detach(), &other) };
        let x = b.detach().solved_by(low, true, false, false).solved_by(high, true, true, false);
        trace(&CHOLESKY_SOLVE, [(&b).into(), (&factor).into(), (&x).into()], [upper.into()])
    }

    /// The inverse of the matrix whose Cholesky factor this is, an upper one where `upper` (`torch.cholesky_inverse`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[2.0]]).cholesky_inverse(false).to_vec::<f32>(), [0.25]);
    /// ```
    #[track_caller]
    pub fn cholesky_inverse(&self, upper: bool) -> Tensor {
        let _call = called("cholesky_inverse", [self]);
        let n = square("cholesky_inverse", self);
        Tensor::eye(n).to(self.dtype()).expand(self.shape()).cholesky_solve(self, upper)
    }
}
