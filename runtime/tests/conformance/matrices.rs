//! Torch's linear algebra → calls through xlazy's public API. Where torch's result is one of several, ours is turned to it
//! first: the signs of singular vectors and eigenvectors, and the basis of what is orthogonal to them.
use crate::case::{Arg, Case, Host, Numbers};
use crate::options::NAMED;
use xlazy::prelude::*;
use xlazy::{MatrixNorm, multi_dot};

fn host(h: &Host) -> Tensor {
    match &h.data {
        Numbers::Floats(v) => Tensor::from_slice(v, h.shape.as_slice()).to(h.dtype),
        Numbers::Ints(v) => Tensor::from_slice(v, h.shape.as_slice()).to(h.dtype),
    }
}

/// 1 or -1 for each column, so that ours point where theirs do.
fn signs(ours: &Tensor, theirs: &Tensor) -> Tensor {
    let same = (ours.detach().conj() * theirs).sum_dim(-2, true);
    if same.dtype().is_complex() {
        return same.sgn();
    }
    same.ge(0.0).to(F32) * 2.0 - 1.0
}

/// What torch gave, in numbers like `of`'s.
fn given(c: &Case, i: usize, of: &Tensor) -> Tensor {
    let all = host(&c.outputs[i]);
    if of.dtype().is_complex() { all.view_as_complex() } else { all }
}

/// The columns from `k` on, which only span a space: theirs as far as they are in ours.
fn spanned(ours: &Tensor, theirs: &Tensor, k: i64) -> Tensor {
    let n = ours.size(-1) as i64;
    if n == k {
        return ours.clone();
    }
    let rest = ours.detach().narrow(-1, k, n - k);
    let found = rest.matmul(&rest.transpose(-1, -2).conj().matmul(&theirs.narrow(-1, k, n - k)));
    cat(&[&ours.narrow(-1, 0, k), &found], -1)
}

fn svd(c: &Case) -> Vec<Tensor> {
    let full = c.flag(1, "full_matrices", true);
    let (u, s, vt) = c.t(0).svd(full);
    let k = s.size(-1) as i64;
    let (tu, tv) = (given(c, 0, &u), given(c, 2, &u).transpose(-1, -2).conj());
    let (u, v) = (spanned(&u, &tu, k), spanned(&vt.transpose(-1, -2).conj(), &tv, k));
    // one sign for each pair of vectors; those that only span a space have none
    let sign = signs(&u.narrow(-1, 0, k), &tu.narrow(-1, 0, k));
    let with = |t: &Tensor| {
        let n = t.size(-1) as i64;
        let both = t.narrow(-1, 0, k) * &sign;
        if n > k { cat(&[&both, &t.narrow(-1, k, n - k)], -1) } else { both }
    };
    vec![with(&u), s, with(&v).transpose(-1, -2).conj()]
}

fn eigh(c: &Case) -> Vec<Tensor> {
    let (values, v) = c.t(0).eigh(c.str(1, "UPLO", "L") == "U");
    let sign = signs(&v, &given(c, 1, &v));
    vec![values, &v * sign]
}

fn norm(a: Option<&Arg>) -> Option<MatrixNorm> {
    match a {
        Some(Arg::Str(s)) if s == "nuc" => Some(MatrixNorm::Nuclear),
        Some(Arg::Str(_)) => Some(MatrixNorm::Frobenius),
        Some(Arg::Float(f)) => Some((*f).into()),
        Some(Arg::Int(i)) => Some((*i as f64).into()),
        _ => None,
    }
}

/// What torch gives besides the solution depends on which of LAPACK's functions finds it.
fn lstsq(c: &Case) -> Vec<Tensor> {
    let found = c.t(0).lstsq(c.t(1), c.get(2, "rcond").map(|_| c.float(2, "rcond", 0.0)));
    let driver = c.str(NAMED, "driver", "gelsy");
    let none = || Tensor::zeros([0]).to(c.t(0).dtype().part());
    let residuals = if driver == "gelsy" { none() } else { found.residuals };
    let rank = if driver == "gels" { none().long() } else { found.rank };
    let values = if matches!(driver.as_str(), "gelss" | "gelsd") { found.singular_values } else { none() };
    vec![found.solution, residuals, rank, values]
}

fn numbers(c: &Case, i: usize, name: &str) -> Option<f64> {
    c.get(i, name).map(|_| c.float(i, name, 0.0))
}

pub fn call(c: &Case) -> Option<Vec<Tensor>> {
    let x = || c.t(0);
    let upper = || c.flag(NAMED, "upper", false);
    let one = match c.name.as_str() {
        "cholesky" | "linalg.cholesky" => x().cholesky(c.flag(1, "upper", false)),
        "cholesky_inverse" => x().cholesky_inverse(c.flag(1, "upper", false)),
        "cholesky_solve" => x().cholesky_solve(c.t(1), c.flag(2, "upper", false)),
        "linalg.solve_triangular" => {
            x().solve_triangular(c.t(1), upper(), c.flag(NAMED, "left", true), c.flag(NAMED, "unitriangular", false))
        }
        "triangular_solve" => {
            let flag = |i, name, default| c.flag(i, name, default);
            let (x, a) = x().triangular_solve(
                c.t(1),
                flag(2, "upper", true),
                flag(3, "transpose", false),
                flag(4, "unitriangular", false),
            );
            return Some(vec![x, a]);
        }
        "linalg.lu_factor" => {
            let (lu, pivots) = x().lu_factor(c.flag(NAMED, "pivot", true));
            return Some(vec![lu, pivots]);
        }
        "linalg.lu" => {
            let (p, l, u) = x().lu(c.flag(NAMED, "pivot", true));
            return Some(vec![p, l, u]);
        }
        "lu_solve" => x().lu_solve(c.t(1), c.t(2)),
        "linalg.solve" => x().solve(c.t(1)),
        "linalg.inv" => x().inv(),
        "linalg.det" => x().det(),
        "linalg.slogdet" => {
            let (sign, log) = x().slogdet();
            return Some(vec![sign, log]);
        }
        "logdet" => x().logdet(),
        "linalg.qr" => {
            let mode = c.str(1, "mode", "reduced");
            let (q, r) = x().qr(mode == "complete");
            return Some(if mode == "r" { vec![Tensor::zeros([0]), r] } else { vec![q, r] });
        }
        "ormqr" => x().ormqr(c.t(1), c.t(2), c.flag(3, "left", true), c.flag(4, "transpose", false)),
        "linalg.svd" => return Some(svd(c)),
        "linalg.svdvals" => x().svdvals(),
        "linalg.eigh" => return Some(eigh(c)),
        "linalg.eigvalsh" => x().eigvalsh(c.str(1, "UPLO", "L") == "U"),
        "linalg.pinv.hermitian" => x().pinv_hermitian(numbers(c, NAMED, "atol"), numbers(c, NAMED, "rtol")),
        "linalg.pinv" => x().pinv(numbers(c, NAMED, "atol"), numbers(c, NAMED, "rtol")),
        // torch's function takes the matrix as a product
        "linalg.pinv.singular" => x().matmul(&c.t(1).transpose(-1, -2)).pinv(None, None),
        "linalg.lstsq" => return Some(lstsq(c)),
        "linalg.lstsq.grad_oriented" => {
            let all = lstsq(c);
            return Some(all[..c.outputs.len()].to_vec());
        }
        "linalg.matrix_norm" => {
            let dims = c.dims(2, "dim");
            let dims = match dims[..] {
                [] => [-2, -1],
                [rows, columns] => [rows, columns],
                _ => panic!("{}: the compiler takes two dimensions, not {dims:?}", c.name),
            };
            let ord = norm(c.get(1, "ord")).unwrap_or(MatrixNorm::Frobenius);
            x().matrix_norm(ord, dims, c.flag(3, "keepdim", false))
        }
        "linalg.norm" | "linalg.norm.subgradients_at_zero" => {
            x().linalg_norm(norm(c.get(1, "ord")), c.dims(2, "dim"), c.flag(3, "keepdim", false))
        }
        "norm.nuc" | "norm.fro" => {
            let dims = c.dims(2, "dim");
            let dims = if dims.len() == 2 { dims } else { vec![-2, -1] };
            x().matrix_norm(norm(c.get(1, "p")).unwrap(), [dims[0], dims[1]], c.flag(3, "keepdim", false))
        }
        "linalg.matrix_power" => x().matrix_power(c.int(1, "n", 1)),
        "matrix_exp" => x().matrix_exp(),
        "linalg.multi_dot" => multi_dot(&c.tensors(0)),
        "linalg.vander" => x().vander(c.get(1, "N").map(|_| c.count(1, "N", 0))),
        "renorm" => x().renorm(c.float(1, "p", 2.0), c.int(2, "dim", 0), c.float(3, "maxnorm", 1.0)),
        _ => return None,
    };
    Some(vec![one])
}
