//! Products of matrices and vectors.
use crate::bucket;
use crate::tensor::{Entry, Sample, Tensor, called, refuse, trace};
use xlazy_core::ir::{Kind, Rule, Sig};
use xlazy_core::ty::{Shape, Type};

// (batch, rows, inner) and (batch, inner, columns) as torch reads them: vectors gain a dimension, batches broadcast.
fn parts(a: &Shape, b: &Shape) -> Result<(Shape, usize, usize, usize), String> {
    if a.is_empty() || b.is_empty() {
        return Err("needs tensors of at least 1 dimension; multiply numbers with `*`".into());
    }
    let (m, k) = if a.len() == 1 { (1, a[0]) } else { (a[a.len() - 2], a[a.len() - 1]) };
    let (kb, n) = if b.len() == 1 { (b[0], 1) } else { (b[b.len() - 2], b[b.len() - 1]) };
    if k != kb {
        return Err(format!("the inner sizes differ: {a} has {k} columns, {b} has {kb} rows; expected them equal"));
    }
    let batch = |s: &Shape| Shape::new(&s[..s.len().saturating_sub(2)]);
    let (ba, bb) = (batch(a), batch(b));
    let both = ba.broadcast(&bb).ok_or_else(|| format!("the batch sizes {ba} and {bb} do not broadcast"))?;
    Ok((both, m, k, n))
}

fn matmul_rule(s: &Sig) -> Rule {
    let (a, b) = (s.shape(0), s.shape(1));
    let (mut shape, m, _, n) = parts(a, b)?;
    if a.len() > 1 {
        shape.push(m);
    }
    if b.len() > 1 {
        shape.push(n);
    }
    if s.dtype(0) != s.dtype(1) {
        let message = format!("the dtypes differ: {} and {}; convert one", s.dtype(0), s.dtype(1));
        // A product of floats and whole numbers is one of floats.
        let to = if s.dtype(1).category() > s.dtype(0).category() { s.dtype(1) } else { s.dtype(0) };
        return Err(message + &format!(", as in `.to({to:?})`"));
    }
    Ok(Type::new(s.dtype(0), shape))
}

static MATMUL: Entry = Entry::new("matmul", matmul_rule, |l| {
    let (a, b) = (l.cast(0), l.cast(1));
    let (batch, m, k, n) = parts(a.shape(), b.shape()).expect("checked by the type rule");
    let out = l.out.shape.clone();
    // The common cases need no broadcast: a matrix on the right, or no batch at all.
    if b.rank() <= 2 {
        let contract_b = if b.rank() == 2 { 0 } else { b.rank() - 1 };
        let v = l.dot_general(&a, &b, [&[], &[]], [&[a.rank() - 1], &[contract_b]]);
        return l.reshape(&v, &out);
    }
    let wide = |rows: usize, columns: usize| {
        let mut s = batch.clone();
        s.push(rows);
        s.push(columns);
        s
    };
    let a = if a.rank() == 1 { l.reshape(&a, &Shape::new(&[1, k])) } else { a };
    let a = l.broadcast(&a, &wide(m, k));
    let b = l.broadcast(&b, &wide(k, n));
    let dims: Vec<usize> = (0..batch.len()).collect();
    let v = l.dot_general(&a, &b, [&dims, &dims], [&[batch.len() + 1], &[batch.len()]]);
    l.reshape(&v, &out)
})
.kind(Kind::Contract)
.samples(|| {
    vec![
        Sample::of(&[&[2, 3], &[3, 4]]),
        Sample::of(&[&[3], &[3]]),
        Sample::of(&[&[2, 3], &[3]]),
        Sample::of(&[&[3], &[3, 2]]),
        Sample::of(&[&[2, 2, 3], &[3, 2]]),
        Sample::of(&[&[2, 1, 2, 3], &[2, 3, 2]]),
        Sample::of(&[&[3], &[2, 3, 2]]),
    ]
})
.grad(|g| {
    let (a, b) = (g.x(0), g.x(1));
    // as matrices: vectors with a dimension of size 1
    let (va, vb) = (a.dim() == 1, b.dim() == 1);
    let mut dy = g.dy.clone();
    if vb {
        dy = dy.unsqueeze(-1);
    }
    if va {
        dy = dy.unsqueeze(-2);
    }
    let ma = if va { a.unsqueeze(0) } else { a.clone() };
    let mb = if vb { b.unsqueeze(1) } else { b.clone() };
    let da = g.want(0, || {
        let d = dy.matmul(&mb.transpose(-1, -2));
        let d = d.sum_to_shape(&ma.shape());
        d.reshape(a.shape())
    });
    let db = g.want(1, || {
        // A shared matrix on the right: one product over all rows instead of a sum over the batch.
        let d = match ma.dim() > 2 && mb.dim() == 2 {
            true => {
                let (k, n) = (mb.size(0), mb.size(1));
                let rows = ma.shape()[..ma.dim() - 1].iter().product::<usize>();
                ma.reshape([rows, k]).transpose(0, 1).matmul(&dy.reshape([rows, n]))
            }
            false => ma.transpose(-1, -2).matmul(&dy),
        };
        d.sum_to_shape(&mb.shape()).reshape(b.shape())
    });
    vec![da, db]
})
.bucket(bucket::matmul);

pub(super) static OPS: &[&Entry] = &[&MATMUL];

impl Tensor {
    /// The matrix product; batches broadcast, vectors work on either side (`torch.matmul`). StableHLO: dot_general.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let y = tensor([[1.0, 2.0]]).matmul(&tensor([[3.0], [4.0]]));
    /// assert_eq!(y.to_vec::<f32>(), [11.0]);
    /// ```
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        trace(&MATMUL, [self.into(), other.into()], [])
    }

    /// The product of two matrices (`torch.mm`).
    ///
    /// `tensor([[1, 2]]).mm(&tensor([[3], [4]]))` is `[[11]]`.
    #[track_caller]
    pub fn mm(&self, other: &Tensor) -> Tensor {
        let _call = called("mm", [self, other]);
        if (self.dim(), other.dim()) != (2, 2) {
            refuse("mm", &[self, other], "needs two matrices; use `matmul` for batches and vectors");
        }
        self.matmul(other)
    }

    /// The products of two batches of matrices (`torch.bmm`).
    ///
    /// `Tensor::ones([2, 1, 3]).bmm(&Tensor::ones([2, 3, 1])).flatten()` is `[3., 3.]`.
    #[track_caller]
    pub fn bmm(&self, other: &Tensor) -> Tensor {
        let _call = called("bmm", [self, other]);
        if (self.dim(), other.dim()) != (3, 3) || self.size(0) != other.size(0) {
            refuse("bmm", &[self, other], "needs two batches of matrices, equally many");
        }
        self.matmul(other)
    }

    /// The inner product of two vectors (`torch.dot`).
    ///
    /// `tensor([1, 2]).dot(&tensor([3, 4]))` is `11`.
    #[track_caller]
    pub fn dot(&self, other: &Tensor) -> Tensor {
        let _call = called("dot", [self, other]);
        if (self.dim(), other.dim()) != (1, 1) {
            refuse("dot", &[self, other], "needs two vectors");
        }
        self.matmul(other)
    }

    /// The product of every pair of elements of two vectors (`torch.outer`).
    ///
    /// `tensor([1, 2]).outer(&tensor([3, 4]))` is `[[3, 4], [6, 8]]`.
    #[track_caller]
    pub fn outer(&self, other: &Tensor) -> Tensor {
        let _call = called("outer", [self, other]);
        if (self.dim(), other.dim()) != (1, 1) {
            refuse("outer", &[self, other], "needs two vectors");
        }
        self.unsqueeze(1) * other.unsqueeze(0)
    }

    /// `self + mat1 · mat2` (`torch.addmm`).
    ///
    /// `tensor([[1.0]]).addmm(&tensor([[1.0, 2.0]]), &tensor([[3.0], [4.0]]))` is `[[12.]]`.
    #[track_caller]
    pub fn addmm(&self, mat1: &Tensor, mat2: &Tensor) -> Tensor {
        let _call = called("addmm", [self, mat1, mat2]);
        self.plus_product("addmm", &mat1.mm(mat2))
    }
}
