//! Reflections and rotations of columns, as loops that XLA compiles on every platform: QR as LAPACK packs it, and Jacobi's
//! rotations of many pairs of columns at a time, of real and of complex matrices.
use super::triangular::wide;
use crate::tensor::{Entry, Sample};
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

/// The real part, or the imaginary one, which real numbers have none of.
fn part(e: &mut Emit, x: &Val, imaginary: bool) -> Val {
    let out = Type::new(x.dtype().part(), x.shape().clone());
    match (x.dtype().is_complex(), imaginary) {
        (true, _) => e.op(if imaginary { "imag" } else { "real" }, &[x], "", out),
        (false, true) => e.constant(0.0, &out),
        (false, false) => x.clone(),
    }
}

fn absolute(e: &mut Emit, x: &Val) -> Val {
    e.op("abs", &[x], "", Type::new(x.dtype().part(), x.shape().clone()))
}

fn conjugate(e: &mut Emit, x: &Val) -> Val {
    if !x.dtype().is_complex() {
        return x.clone();
    }
    let (re, im) = (part(e, x, false), part(e, x, true));
    let im = e.unary("negate", &im);
    e.op("complex", &[&re, &im], "", x.ty.clone())
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
        let at = Type::new(out.dtype.part(), shape.clone());
        let (place, column) = (e.iota(&at, rank - 2), e.iota(&at, rank - 1));
        let k = e.convert(k, at.dtype);
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
        let size = absolute(e, &rest);
        let most = e.reduce(&size, &[rank - 2, rank - 1], Reducer::Max);
        let zeros = e.constant(0.0, &most.ty);
        let ones = e.constant(1.0, &most.ty);
        let most = e.binary("maximum", &most, &zeros);
        // nothing to reflect: zeros below, and on the diagonal a real number
        let turn = part(e, &corner, true);
        let (flat, straight) = (e.compare("EQ", &most, &zeros), e.compare("EQ", &turn, &zeros));
        let flat = e.binary("and", &flat, &straight);
        // scaled, so that squares neither overflow nor vanish
        let own = absolute(e, &corner);
        let scale = e.binary("maximum", &most, &own);
        let scale = e.select(&flat, &ones, &scale);
        let whole: Vec<usize> = (0..rank - 2).collect();
        let wide = e.broadcast_in_dim(&scale, &shape, &whole);
        let small = e.div(&size, &wide);
        let squares = e.mul(&small, &small);
        let squares = e.reduce(&squares, &[rank - 2, rank - 1], Reducer::Add);
        let a = e.div(&own, &scale);
        let square = e.mul(&a, &a);
        let length = e.add(&squares, &square);
        let length = e.unary("sqrt", &length);
        let length = e.mul(&length, &scale);
        let straight = part(e, &corner, false);
        let negative = e.compare("LT", &straight, &zeros);
        let minus = e.unary("negate", &length);
        let beta = e.select(&negative, &length, &minus);
        let beta = e.convert(&beta, out.dtype);
        let (ones, zeros) = (e.constant(1.0, &beta.ty), e.constant(0.0, &beta.ty));
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
        // what is right of the column less tau v (vᵀ A), both conjugated
        let (against, by) = (conjugate(e, &v), conjugate(e, &tau));
        let product = e.mul(&against, all);
        let product = e.reduce(&product, &[rank - 2], Reducer::Add);
        let product = along(e, &product, &shape, true);
        let less = e.mul(&v, &product);
        let less = e.mul(&less, &by);
        let less = e.sub(all, &less);
        let end = e.constant(n as f64, &at);
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

pub(super) static GEQRF: Entry = Entry::new("geqrf", reflected, householder)
    .kind(Kind::Contract)
    .samples(|| vec![Sample::of(&[&[2, 3, 3]]), Sample::of(&[&[4, 2]]), Sample::of(&[&[2, 3]])]);

// How often each two columns meet: enough for the precision of the dtype, as the angles left shrink quadratically.
fn sweeps(dtype: DType, n: usize) -> usize {
    let grow = (usize::BITS - n.leading_zeros()) as usize;
    if dtype.part() == DType::F64 { 8 + grow } else { 6 + grow }
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
    let size = absolute(l.e, &x);
    let most = l.reduce_keep(&size, &[rank - 2, rank - 1], Reducer::Max);
    let nothing = l.constant(0.0, &most.ty);
    let flat = l.compare("EQ", &most, &nothing);
    let one = l.constant(1.0, &most.ty);
    let most = l.select(&flat, &one, &most);
    let most = l.broadcast(&most, x.shape());
    let most = l.convert(&most, out.dtype);
    let x = l.div(&x, &most);
    // matrix and rotations below one another: both get the same rotations
    let both = l.concatenate(&[&x, &unit], rank - 2);
    let both = l.pad(&both, &none, &zeros, &high, &zeros);
    let (rows, half) = (2 * n, (n + odd) / 2);
    let cut = |e: &mut Emit, v: &Val, from: [usize; 2], to: [usize; 2]| {
        let mut start = vec![0i64; rank];
        let mut limit: Vec<i64> = v.shape().iter().map(|&d| d as i64).collect();
        (start[rank - 2], start[rank - 1]) = (from[0] as i64, from[1] as i64);
        (limit[rank - 2], limit[rank - 1]) = (to[0] as i64, to[1] as i64);
        e.slice(v, &start, &limit, &vec![1; rank])
    };
    let rounds = sweeps(out.dtype, n) * (2 * half - 1);
    let done = l.e.repeat(rounds, &[both], |e, _, carried| {
        let all = &carried[0];
        let (a, b) = (cut(e, all, [0, 0], [rows, half]), cut(e, all, [0, half], [rows, 2 * half]));
        let (am, bm) = (cut(e, &a, [0, 0], [n, half]), cut(e, &b, [0, 0], [n, half]));
        let mut dot = |x: &Val, y: &Val| {
            let x = conjugate(e, x);
            let p = e.mul(&x, y);
            e.reduce(&p, &[rank - 2], Reducer::Add)
        };
        let (alpha, beta, gamma) = (dot(&am, &am), dot(&bm, &bm), dot(&am, &bm));
        let (alpha, beta) = (part(e, &alpha, false), part(e, &beta, false));
        // of complex columns the second is turned by an angle first, so that the product of both is real
        let (gamma, b) = match out.dtype.is_complex() {
            false => (gamma, b),
            true => {
                let length = absolute(e, &gamma);
                let (none, whole) = (e.constant(0.0, &length.ty), e.constant(1.0, &gamma.ty));
                let none = e.compare("EQ", &length, &none);
                let long = e.convert(&length, out.dtype);
                let angle = e.div(&gamma, &long);
                let angle = e.select(&none, &whole, &angle);
                let angle = conjugate(e, &angle);
                let angle = along(e, &angle, b.shape(), true);
                (length, e.mul(&b, &angle))
            }
        };
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
        let (c, s) = (e.convert(&c, out.dtype), e.convert(&s, out.dtype));
        let (c, s) = (along(e, &c, a.shape(), true), along(e, &s, a.shape(), true));
        let (ca, sb, sa, cb) = (e.mul(&c, &a), e.mul(&s, &b), e.mul(&s, &a), e.mul(&c, &b));
        let (a, b) = (e.sub(&ca, &sb), e.add(&sa, &cb));
        if half == 1 {
            return vec![e.concatenate(&[&a, &b], rank - 1)];
        }
        // the first stays, all others move on by one place
        let (first, second) = (cut(e, &a, [0, 0], [rows, 1]), cut(e, &b, [0, 0], [rows, 1]));
        let (middle, others) = (cut(e, &a, [0, 1], [rows, half - 1]), cut(e, &b, [0, 1], [rows, half]));
        let last = cut(e, &a, [0, half - 1], [rows, half]);
        vec![e.concatenate(&[&first, &second, &middle, &others, &last], rank - 1)]
    });
    // after whole rounds everybody is in the old place again, and the column that was put in, which stayed zero, is the last
    cut(l.e, &done[0], [n, 0], [rows, n])
}

pub(super) static JACOBI: Entry = Entry::new(
    "linalg.jacobi",
    |s| {
        wide(s)?;
        Ok(s.inputs[0].clone())
    },
    rotated,
)
.kind(Kind::Contract)
.samples(|| vec![Sample::of(&[&[2, 3, 3]]), Sample::of(&[&[2, 2]])]);

pub(super) static OPS: &[&Entry] = &[&GEQRF, &JACOBI];
