//! The LU decomposition with row exchanges, as a loop over the columns, and what follows from it: systems of equations,
//! inverses, determinants.
use super::triangular::{batched, matrices, square, wide};
use crate::tensor::{Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::emit::{Reducer, Val};
use xlazy_core::ir::Role::Mode;
use xlazy_core::ir::{AttrsExt, Kind, Lower, Rule, Sig, attr};
use xlazy_core::ty::{DType, Shape, Type};

// The factors of an m × n matrix, packed as LAPACK does, and two columns behind them: which row came to each place, and which
// row each step exchanged with its own. (One result, so that the loop is in a program once.)
fn packed(s: &Sig) -> Rule {
    wide(s)?;
    let mut ty = s.inputs[0].clone();
    let last = ty.shape.len() - 1;
    ty.shape[last] += 2;
    Ok(ty)
}

// A number for each matrix, as one that broadcasts against them.
fn spread(l: &mut Lower, x: &Val, shape: &Shape) -> Val {
    let dims: Vec<usize> = (0..x.rank()).collect();
    l.broadcast_in_dim(x, shape, &dims)
}

fn factored(l: &mut Lower) -> Val {
    let (x, out, pivot) = (l.x(0), l.out.clone(), l.attrs.flag(0));
    let rank = x.rank();
    let (m, n) = (x.shape()[rank - 2], x.shape()[rank - 1]);
    // positions are real numbers
    let at = Type::new(out.dtype.part(), out.shape.clone());
    let place = l.iota(&at, rank - 2);
    let mut tail = out.shape.clone();
    tail[rank - 1] = 2;
    let counted = Type::new(at.dtype, tail);
    let counted = l.iota(&counted, rank - 2);
    let counted = l.convert(&counted, out.dtype);
    let start = l.concatenate(&[&x, &counted], rank - 1);
    if x.shape().numel() == 0 {
        return start;
    }
    let steps = m.min(n);
    let done = l.e.repeat(steps, &[start], |e, k, carried| {
        let mut l = Lower { e, inputs: &[], attrs: &[], out: &out };
        let l = &mut l;
        let all = &carried[0];
        let k = l.convert(k, at.dtype);
        let k = l.broadcast(&k, &out.shape);
        let column = l.iota(&at, rank - 1);
        let zero = l.constant(0.0, &out);
        let mine = l.compare("EQ", &column, &k);
        // column k, one number for each row
        let chosen = l.select(&mine, all, &zero);
        let of_row = l.reduce(&chosen, &[rank - 1], Reducer::Add);
        let here = l.compare("EQ", &place, &k);
        let mut rows = all.clone();
        let mut first = of_row.clone();
        if pivot {
            let size = size(l, &of_row);
            let number = l.iota(&size.ty, rank - 2);
            let step = l.slice(&k, &vec![0; rank], &shape_with(&out.shape, 1), &vec![1; rank]);
            let step = l.reshape(&step, of_row.shape());
            let above = l.compare("LT", &number, &step);
            let none = l.constant(-1.0, &size.ty);
            let size = l.select(&above, &none, &size);
            let (_, best) = l.arg_extreme(&size, rank - 2, true);
            let best = l.convert(&best, at.dtype);
            let wide = spread(l, &best, &out.shape);
            let there = l.compare("EQ", &place, &wide);
            let row = |l: &mut Lower, mask: &Val| {
                let picked = l.select(mask, all, &zero);
                let picked = l.reduce(&picked, &[rank - 2], Reducer::Add);
                let dims: Vec<usize> = (0..rank - 2).chain([rank - 1]).collect();
                l.broadcast_in_dim(&picked, &out.shape, &dims)
            };
            let (a, b) = (row(l, &here), row(l, &there));
            let moved = l.select(&there, &a, all);
            let moved = l.select(&here, &b, &moved);
            // the last column says with which row, and is not moved
            let last = l.constant((n + 1) as f64, &at);
            let last = l.compare("EQ", &column, &last);
            let wide = l.convert(&wide, out.dtype);
            let said = l.binary("and", &last, &here);
            let moved = l.select(&last, all, &moved);
            rows = l.select(&said, &wide, &moved);
            let chosen = l.select(&mine, &rows, &zero);
            first = l.reduce(&chosen, &[rank - 2 + 1], Reducer::Add);
        }
        // the rows below less their share of row k
        let picked = l.select(&here, &rows, &zero);
        let top = l.reduce(&picked, &[rank - 2], Reducer::Add);
        let dims: Vec<usize> = (0..rank - 2).chain([rank - 1]).collect();
        let top = l.broadcast_in_dim(&top, &out.shape, &dims);
        let diagonal = l.select(&mine, &top, &zero);
        let diagonal = l.reduce(&diagonal, &[rank - 1], Reducer::Add);
        let none = l.constant(0.0, &diagonal.ty);
        let singular = l.compare("EQ", &diagonal, &none);
        let one = l.constant(1.0, &diagonal.ty);
        let safe = l.select(&singular, &one, &diagonal);
        let share = l.div(&first, &safe);
        let dims: Vec<usize> = (0..rank - 1).collect();
        let share = l.broadcast_in_dim(&share, &out.shape, &dims);
        let below = l.compare("GT", &place, &k);
        let behind = l.compare("GT", &column, &k);
        let end = l.constant(n as f64, &at);
        let real = l.compare("LT", &column, &end);
        let behind = l.binary("and", &behind, &real);
        let inner = l.binary("and", &below, &behind);
        let less = l.mul(&share, &top);
        let less = l.sub(&rows, &less);
        let next = l.select(&inner, &less, &rows);
        let under = l.binary("and", &below, &mine);
        vec![l.select(&under, &share, &next)]
    });
    done[0].clone()
}

// How large a pivot is: as LAPACK has it, of a complex number the sum of its parts' sizes.
fn size(l: &mut Lower, x: &Val) -> Val {
    let part = Type::new(x.dtype().part(), x.shape().clone());
    if !x.dtype().is_complex() {
        return l.op("abs", &[x], "", part);
    }
    let [re, im] = ["real", "imag"].map(|which| {
        let v = l.op(which, &[x], "", part.clone());
        l.unary("abs", &v)
    });
    l.add(&re, &im)
}

// The sizes of a shape with the last dimension cut to `size`, as a slice's limit.
fn shape_with(shape: &Shape, size: i64) -> Vec<i64> {
    let mut limit: Vec<i64> = shape.iter().map(|&n| n as i64).collect();
    *limit.last_mut().expect("a matrix") = size;
    limit
}

static LU: Entry = Entry::new("lu_factor", packed, factored)
    .kind(Kind::Contract)
    .attrs(&[attr("pivot", Mode)])
    .samples(|| {
        let of = |shape: &[usize]| Sample::of(&[shape]).attrs(vec![true.into()]);
        vec![of(&[2, 3, 3]), of(&[2, 4]), of(&[4, 2])]
    })
    .grad(|g| {
        let (x, all, dy) = (g.x(0), g.y(), &g.dy);
        let (m, n) = (x.size(-2) as i64, x.size(-1) as i64);
        let k = m.min(n);
        if x.numel() == 0 {
            return vec![Some(x.zeros_like())];
        }
        let ([low, high], inverse) = (parts(all, m, n), all.select(-1, n).real().argsort(-1, false));
        let dlow = dy.narrow(-1, 0, k).tril(-1);
        let dhigh = dy.narrow(-2, 0, k).narrow(-1, 0, n).triu(0);
        let square = |t: &Tensor| t.narrow(-2, 0, k).narrow(-1, 0, k);
        let turned = |t: &Tensor| t.transpose(-1, -2);
        let (l1, u1) = (square(&low), square(&high));
        let (mut dl1, mut du1) = (square(&dlow), square(&dhigh));
        // what is beside the square part: A₂ = L U₂, or A₂ = L₂ U
        let mut beside = None;
        if n > m {
            let d = dhigh.narrow(-1, k, n - k);
            let solved = d.solved_by(&turned(&l1), true, true, true);
            dl1 -= solved.matmul(&turned(&high.narrow(-1, k, n - k))).tril(-1);
            beside = Some((solved, -1));
        } else if m > n {
            let d = dlow.narrow(-2, k, m - k);
            let solved = d.solved_by(&turned(&u1), false, false, false);
            du1 -= turned(&low.narrow(-2, k, m - k)).matmul(&solved).triu(0);
            beside = Some((solved, -2));
        }
        let inner = turned(&l1).matmul(&dl1).tril(-1) + du1.matmul(&turned(&u1)).triu(0);
        let left = inner.solved_by(&turned(&l1), true, true, true);
        let mut d = left.solved_by(&turned(&u1), false, false, false);
        if let Some((rest, dim)) = beside {
            d = super::cat(&[&d, &rest], dim);
        }
        vec![Some(d.gather(-2, &inverse.unsqueeze(-1).expand(x.shape())))]
    });

// L, with ones on its diagonal, and U.
#[track_caller]
fn parts(packed: &Tensor, m: i64, n: i64) -> [Tensor; 2] {
    let k = m.min(n);
    let low = packed.narrow(-1, 0, k).tril(-1);
    let ones = Tensor::eye_of(m as usize, k as usize).to(packed.dtype());
    [low + ones, packed.narrow(-2, 0, k).narrow(-1, 0, n).triu(0)]
}

// A number for each matrix.
fn each(s: &Sig) -> Rule {
    wide(s)?;
    let n = s.shape(0).len() - 2;
    Ok(Type::new(s.dtype(0), Shape::new(&s.shape(0)[..n])))
}

// The product of the diagonal, with the sign of the row exchanges; the gradient goes by the factors, which are the second
// operand, so that it exists where a matrix is singular, too.
static DET: Entry = Entry::new("linalg.det", each, |l| {
    let (packed, rank) = (l.x(1), l.x(1).rank());
    let at = Type::new(packed.dtype().part(), packed.shape().clone());
    let (sign, diagonal) = (exchanged(l, &packed), l.iota(&at, rank - 2));
    let column = l.iota(&at, rank - 1);
    let on = l.compare("EQ", &diagonal, &column);
    let one = l.constant(1.0, &packed.ty);
    let factors = l.select(&on, &packed, &one);
    let product = l.reduce(&factors, &[rank - 2, rank - 1], Reducer::Mul);
    l.mul(&product, &sign)
})
.kind(Kind::Contract)
.grad(|g| {
    // det(A) A⁻ᵀ, where a factor that is zero counts as a very small one: what the others give stays exact
    let (x, n) = (g.x(0), g.x(0).size(-1) as i64);
    let [low, high] = parts(g.x(1), n, n);
    let diagonal = high.diagonal(0, -2, -1);
    let least = if x.dtype().part() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let missing = diagonal.eq(0.0).to(x.dtype()) * least;
    let high = high + missing.diag_embed(0, -2, -1);
    let sign = trace(&DET_SIGN, [(&g.x(1).detach()).into()], []);
    let value = (diagonal + missing).prod_dim(-1, false) * sign * &g.dy;
    let scaled = Tensor::eye(n as usize).to(x.dtype()) * value.unsqueeze(-1).unsqueeze(-1);
    let turned = |t: &Tensor| t.transpose(-1, -2);
    let d = scaled.solved_by(&turned(&high), true, false, false).solved_by(&turned(&low), true, true, true);
    let inverse = g.x(1).detach().select(-1, n).real().argsort(-1, false);
    vec![Some(d.gather(-2, &inverse.unsqueeze(-1).expand(x.shape()))), None]
});

// -1 to the power of how many steps exchanged two rows, for each matrix.
fn exchanged(l: &mut Lower, packed: &Val) -> Val {
    let rank = packed.rank();
    let mut limit: Vec<i64> = packed.shape().iter().map(|&n| n as i64).collect();
    let end = limit[rank - 1];
    let mut start = vec![0; rank];
    (start[rank - 1], limit[rank - 1]) = (end - 1, end);
    let with = l.slice(packed, &start, &limit, &vec![1; rank]);
    let own = l.iota(&Type::new(with.dtype().part(), with.shape().clone()), rank - 2);
    let own = l.convert(&own, with.dtype());
    let differ = l.compare("NE", &with, &own);
    let (minus, plus) = (l.constant(-1.0, &with.ty), l.constant(1.0, &with.ty));
    let signs = l.select(&differ, &minus, &plus);
    l.reduce(&signs, &[rank - 2, rank - 1], Reducer::Mul)
}

static DET_SIGN: Entry = Entry::new("linalg.det.exchanges", each, |l| {
    let packed = l.x(0);
    exchanged(l, &packed)
})
.kind(Kind::Contract)
.samples(|| vec![Sample::of(&[&[2, 2, 4]])]);

pub(super) static OPS: &[&Entry] = &[&LU, &DET, &DET_SIGN];

impl Tensor {
    #[track_caller]
    fn lu_packed(&self, op: &'static str, pivot: bool) -> Tensor {
        matrices(op, self);
        trace(&LU, [self.into()], [pivot.into()])
    }

    /// The factors of A = P · L · U in one matrix, U in and above the diagonal, L below it, and the pivots: which row each
    /// step exchanged with its own, int32, counted from 1 as in LAPACK (`torch.linalg.lu_factor`). Without `pivot` no rows are
    /// exchanged.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (lu, pivots) = tensor([[1.0, 2.0], [2.0, 2.0]]).lu_factor(true);
    /// assert_eq!(lu.to_vec::<f32>(), [2.0, 2.0, 0.5, 1.0]);
    /// assert_eq!(pivots.to_vec::<i32>(), [2, 2]);
    /// ```
    #[track_caller]
    pub fn lu_factor(&self, pivot: bool) -> (Tensor, Tensor) {
        let _call = called("lu_factor", [self]);
        let all = self.lu_packed("lu_factor", pivot);
        let (m, n) = (self.size(-2) as i64, self.size(-1) as i64);
        (all.narrow(-1, 0, n), all.select(-1, n + 1).narrow(-1, 0, m.min(n)).real().int() + 1)
    }

    /// P, L and U with A = P · L · U: a permutation, a lower triangle with ones on its diagonal, an upper one
    /// (`torch.linalg.lu`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([[1.0, 2.0], [2.0, 2.0]]);
    /// let (p, l, u) = x.lu(true);
    /// assert!(p.matmul(&l).matmul(&u).allclose(&x));
    /// ```
    #[track_caller]
    pub fn lu(&self, pivot: bool) -> (Tensor, Tensor, Tensor) {
        let _call = called("lu", [self]);
        let all = self.lu_packed("lu", pivot);
        let (m, n) = (self.size(-2) as i64, self.size(-1) as i64);
        let [low, high] = parts(&all, m, n);
        let rows = all.detach().select(-1, n).real().long();
        let p = rows.unsqueeze(-2).eq(Tensor::arange(0, m, 1).unsqueeze(-1)).to(self.dtype());
        (p, low, high)
    }

    /// `X` with `A · X = self`, where this is the right hand side and A = P · L · U as [`Tensor::lu_factor`] gives it
    /// (`torch.lu_solve`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (lu, pivots) = tensor([[0.0, 2.0], [1.0, 0.0]]).lu_factor(true);
    /// assert_eq!(tensor([[4.0], [3.0]]).lu_solve(&lu, &pivots).to_vec::<f32>(), [3.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn lu_solve(&self, lu: &Tensor, pivots: &Tensor) -> Tensor {
        let _call = called("lu_solve", [self, lu, pivots]);
        let n = square("lu_solve", lu);
        matrices("lu_solve", self);
        let (lu, b) = batched("lu_solve", lu, self);
        let mut shape = lu.shape();
        shape.remove(shape.len() - 1);
        let with = pivots.expand(&shape).long() - 1;
        // the exchanges one after the other make the permutation
        let place = Tensor::arange(0, n as i64, 1);
        let rows = (0..n as i64).fold(place.expand(&shape), |rows, k| {
            let other = with.narrow(-1, k, 1);
            let (here, there) = (rows.narrow(-1, k, 1), rows.gather(-1, &other));
            let rows = here.where_(&place.eq(&other), &rows);
            there.where_(&place.eq(k), &rows)
        });
        let b = b.gather(-2, &rows.unsqueeze(-1).expand(b.shape()));
        b.solved_by(&lu, true, false, true).solved_by(&lu, true, true, false)
    }

    /// `X` with `self · X = b`; vectors work as right hand sides, too, batches broadcast (`torch.linalg.solve`). Infinite or
    /// NaN where a matrix is singular.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let a = tensor([[0.0, 2.0], [1.0, 0.0]]);
    /// assert_eq!(a.solve(&tensor([4.0, 3.0])).to_vec::<f32>(), [3.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn solve(&self, b: &Tensor) -> Tensor {
        let _call = called("solve", [self, b]);
        let n = square("solve", self);
        let s = self.shape();
        let vector = b.dim() == 1 || (b.dim() + 1 == s.len() && b.shape() == s[..s.len() - 1]);
        let b = if vector { b.unsqueeze(-1) } else { b.clone() };
        matrices("solve", &b);
        if b.size(-2) != n || b.dtype() != self.dtype() {
            refuse("solve", &[self, &b], format!("the right hand side must have {n} rows, and the same dtype"));
        }
        let all = self.lu_packed("solve", true);
        let (rows, lu) = (all.detach().select(-1, n as i64).real().long(), all.narrow(-1, 0, n as i64));
        let (lu, b) = batched("solve", &lu, &b);
        let mut shape = b.shape();
        let width = shape.len() - 1;
        shape[width] = 1;
        let rows = rows.unsqueeze(-1).expand(&shape).expand(b.shape());
        let b = b.gather(-2, &rows);
        let x = b.solved_by(&lu, true, false, true).solved_by(&lu, true, true, false);
        if vector { x.squeeze_dim(-1) } else { x }
    }

    /// The inverse of each matrix (`torch.linalg.inv`). Infinite or NaN where one is singular.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[2.0, 0.0], [0.0, 4.0]]).inv().to_vec::<f32>(), [0.5, 0.0, 0.0, 0.25]);
    /// ```
    #[track_caller]
    pub fn inv(&self) -> Tensor {
        let _call = called("inv", [self]);
        let n = square("inv", self);
        self.solve(&Tensor::eye(n).to(self.dtype()).expand(self.shape()))
    }

    /// The determinant of each matrix (`torch.linalg.det`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[2.0, 1.0], [0.0, 4.0]]).det().item(), 8.0);
    /// ```
    #[track_caller]
    pub fn det(&self) -> Tensor {
        let _call = called("det", [self]);
        square("det", self);
        let factors = self.lu_packed("det", true);
        trace(&DET, [self.into(), (&factors).into()], [])
    }

    /// The sign of each determinant and the logarithm of its absolute value (`torch.linalg.slogdet`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let (sign, log) = tensor([[0.0, 1.0], [1.0, 0.0]]).slogdet();
    /// assert_eq!((sign.item(), log.item()), (-1.0, 0.0));
    /// ```
    #[track_caller]
    pub fn slogdet(&self) -> (Tensor, Tensor) {
        let _call = called("slogdet", [self]);
        let n = square("slogdet", self);
        let all = self.lu_packed("slogdet", true);
        let diagonal = all.narrow(-1, 0, n as i64).diagonal(0, -2, -1);
        let sign = trace(&DET_SIGN, [(&all.detach()).into()], []);
        // the sign of complex numbers is an angle, which changes; that of real ones does not
        let own = if self.dtype().is_complex() { diagonal.sgn() } else { diagonal.detach().sign() };
        (sign * own.prod_dim(-1, false), diagonal.abs().log().sum_dim(-1, false))
    }

    /// The logarithm of each determinant, NaN where it is negative (`torch.logdet`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[1.0, 0.0], [0.0, 1.0]]).logdet().item(), 0.0);
    /// ```
    #[track_caller]
    pub fn logdet(&self) -> Tensor {
        let _call = called("logdet", [self]);
        let (sign, log) = self.slogdet();
        sign.log() + log
    }
}
