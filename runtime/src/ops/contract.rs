//! Sums over products in Einstein's notation, and what else comes down to one matrix product.
use super::base::rounded_once;
use crate::tensor::{Tensor, called, caller_line, refuse};
use xlazy_core::ty::{Category, Dims};

/// A tensor with a label for each dimension.
struct Labelled {
    x: Tensor,
    labels: Vec<char>,
}

// Labels of the dimensions that `...` stands for: private characters, counted from the last.
fn hidden(back: usize) -> char {
    char::from_u32(0xE000 + back as u32).unwrap_or('\u{F8FF}')
}

// Labels of one operand or of the result; `rank` dimensions, of which the ellipsis takes what the letters leave.
fn labels(term: &str, rank: Option<usize>, ellipsis: usize) -> Result<Vec<char>, String> {
    let mut out = Vec::new();
    let letters = term.replace("...", "").chars().filter(|c| !c.is_whitespace()).count();
    let mut rest = term.trim();
    let wide = rank.map_or(ellipsis, |r| r.saturating_sub(letters));
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            out.extend((0..wide).rev().map(hidden));
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            c if c.is_ascii_alphabetic() => out.push(c),
            c if c.is_whitespace() => {}
            c => return Err(format!("`{c}` is no label: use letters and `...`")),
        }
    }
    match rank {
        Some(r) if out.len() != r => Err(format!("`{term}` names {} dimensions of an operand that has {r}", out.len())),
        _ => Ok(out),
    }
}

impl Labelled {
    // The diagonal where a label is named twice.
    #[track_caller]
    fn without_repeats(mut self) -> Labelled {
        let _line = caller_line();
        loop {
            let twice = (0..self.labels.len()).find_map(|i| {
                let j = self.labels[i + 1..].iter().position(|c| *c == self.labels[i])?;
                Some((i, i + 1 + j))
            });
            let Some((i, j)) = twice else { return self };
            let (a, b) = (self.x.size(i as i64), self.x.size(j as i64));
            let label = self.labels[i];
            if a == b {
                self.x = self.x.diagonal(0, i as i64, j as i64);
                self.labels.remove(j);
                self.labels.remove(i);
                self.labels.push(label);
            } else if b == 1 {
                self.x = self.x.squeeze_dim(j as i64);
                self.labels.remove(j);
            } else if a == 1 {
                self.x = self.x.squeeze_dim(i as i64);
                self.labels.remove(i);
            } else {
                refuse("einsum", &[&self.x], format!("`{label}` is {a} and {b} in one operand"));
            }
        }
    }

    // Sums over the labels that nobody needs any more.
    #[track_caller]
    fn keep(mut self, needed: impl Fn(char) -> bool) -> Labelled {
        let _line = caller_line();
        let gone: Vec<usize> = (0..self.labels.len()).filter(|&i| !needed(self.labels[i])).collect();
        if !gone.is_empty() {
            self.x = self.x.sum_dim(gone.as_slice(), false).to(self.x.dtype());
            self.labels.retain(|c| needed(*c));
        }
        self
    }

    // As a batch of matrices with these groups of labels.
    #[track_caller]
    fn arranged(&self, groups: [&[char]; 3]) -> Tensor {
        let _line = caller_line();
        let at = |c: &char| self.labels.iter().position(|l| l == c).expect("the label is one of the operand's");
        let shape = self.x.shape();
        let order: Vec<usize> = groups.iter().flat_map(|g| g.iter().map(at)).collect();
        let sizes: Vec<usize> = groups.iter().map(|g| g.iter().map(|c| shape[at(c)]).product()).collect();
        self.x.permute(order).reshape(sizes)
    }

    fn size(&self, c: char) -> Option<usize> {
        self.labels.iter().position(|l| *l == c).map(|i| self.x.shape()[i])
    }

    // A dimension of size 1 against a larger one repeats: it counts as if it were not there.
    #[track_caller]
    fn without_ones(mut self, other: &Labelled) -> Labelled {
        let _line = caller_line();
        for i in (0..self.labels.len()).rev() {
            let c = self.labels[i];
            if self.x.shape()[i] == 1 && other.size(c).is_some_and(|n| n != 1) {
                self.x = self.x.squeeze_dim(i as i64);
                self.labels.remove(i);
            }
        }
        self
    }

    #[track_caller]
    fn times(self, other: Labelled, needed: impl Fn(char) -> bool) -> Labelled {
        let _line = caller_line();
        let (a, b) = (self.without_ones(&other), other);
        let b = b.without_ones(&a);
        let a = {
            let needed_a = |c: char| needed(c) || b.labels.contains(&c);
            a.keep(needed_a)
        };
        let b = {
            let needed_b = |c: char| needed(c) || a.labels.contains(&c);
            b.keep(needed_b)
        };
        let shared = |c: &&char| b.labels.contains(c);
        if let Some(c) = a.labels.iter().filter(shared).find(|c| a.size(**c) != b.size(**c)) {
            let [m, n] = [&a, &b].map(|t| t.size(*c).unwrap_or(1));
            // what other ops call dimensions has no letter that can be written
            let which = if c.is_ascii_alphabetic() { format!("`{c}`") } else { "a dimension to sum over".into() };
            refuse("einsum", &[&a.x, &b.x], format!("{which} has different sizes in two operands: {m} and {n}"));
        }
        let batch: Vec<char> = a.labels.iter().filter(shared).filter(|c| needed(**c)).copied().collect();
        let inner: Vec<char> = a.labels.iter().filter(shared).filter(|c| !needed(**c)).copied().collect();
        let left: Vec<char> = a.labels.iter().filter(|c| !b.labels.contains(c)).copied().collect();
        let right: Vec<char> = b.labels.iter().filter(|c| !a.labels.contains(c)).copied().collect();
        let mut sizes: Vec<usize> = Vec::new();
        sizes.extend(batch.iter().chain(&left).filter_map(|c| a.size(*c)));
        sizes.extend(right.iter().filter_map(|c| b.size(*c)));
        let product = a.arranged([&batch, &left, &inner]).matmul(&b.arranged([&batch, &inner, &right]));
        Labelled { x: product.reshape(sizes), labels: [batch, left, right].concat() }
    }
}

/// Sums over products, the dimensions named by letters (`torch.einsum`): letters that the result does not name are
/// summed, `...` stands for the dimensions not named. Without `->` the result has the letters that occur once, in
/// alphabetical order. StableHLO: dot_general.
///
/// ```
/// use xlazy::prelude::*;
/// let (a, b) = (Tensor::ones([2, 3]), Tensor::ones([3, 4]));
/// assert_eq!(einsum("ij,jk->ik", &[&a, &b]).shape(), [2, 4]);
/// assert_eq!(einsum("ij->", &[&a]).item(), 6.0);
/// ```
#[track_caller]
pub fn einsum(equation: &str, operands: &[&Tensor]) -> Tensor {
    let _call = called("einsum", operands.iter().copied());
    let (inputs, output) = match equation.split_once("->") {
        Some((i, o)) => (i, Some(o)),
        None => (equation, None),
    };
    let terms: Vec<&str> = inputs.split(',').collect();
    if terms.len() != operands.len() || operands.is_empty() {
        refuse(
            "einsum",
            operands,
            format!("`{equation}` names {} operands, {} are given", terms.len(), operands.len()),
        );
    }
    let parsed = terms.iter().zip(operands).map(|(t, x)| labels(t, Some(x.dim()), 0)).collect::<Result<Vec<_>, _>>();
    let parsed = parsed.unwrap_or_else(|message| refuse("einsum", operands, message));
    let widest = parsed.iter().flatten().filter(|c| !c.is_ascii()).map(|c| *c as usize - 0xE000 + 1).max().unwrap_or(0);
    let wanted: Vec<char> = match output {
        Some(o) => labels(o, None, widest).unwrap_or_else(|message| refuse("einsum", operands, message)),
        None => {
            let mut once: Vec<char> = parsed.concat();
            let all = once.clone();
            once.retain(|c| c.is_ascii() && all.iter().filter(|o| *o == c).count() == 1);
            once.sort_unstable();
            (0..widest).rev().map(hidden).chain(once).collect()
        }
    };
    if let Some(c) = wanted.iter().find(|c| !parsed.iter().any(|p| p.contains(c))) {
        refuse("einsum", operands, format!("the result names `{c}`, which no operand has"));
    }
    let mut parts =
        operands.iter().zip(parsed).map(|(x, labels)| Labelled { x: (*x).clone(), labels }.without_repeats());
    let mut all: Vec<Labelled> = parts.by_ref().collect();
    if let [one] = all.as_mut_slice() {
        // a sum, and no product: that of integers is int64
        let sums = one.labels.iter().any(|c| !wanted.contains(c)) && one.x.dtype().category() <= Category::Int;
        one.x = if sums { one.x.long() } else { one.x.clone() };
    }
    let mut result = all.remove(0);
    while !all.is_empty() {
        let next = all.remove(0);
        let needed = |c: char| wanted.contains(&c) || all.iter().any(|p| p.labels.contains(&c));
        result = result.times(next, needed);
    }
    let result = result.keep(|c| wanted.contains(&c));
    result.arranged_as(&wanted)
}

impl Labelled {
    #[track_caller]
    fn arranged_as(&self, wanted: &[char]) -> Tensor {
        let _line = caller_line();
        let at = |c: &char| self.labels.iter().position(|l| l == c).expect("every label of the result is left");
        self.x.permute(wanted.iter().map(at).collect::<Vec<_>>())
    }
}

impl Tensor {
    /// The sum over products along the last `dims` dimensions of this tensor and the first of the other
    /// (`torch.tensordot`).
    ///
    /// `tensor([[1, 2], [3, 4]]).tensordot(&tensor([1, 10]), 1)` is `[21, 43]`.
    #[track_caller]
    pub fn tensordot(&self, other: &Tensor, dims: usize) -> Tensor {
        let _call = called("tensordot", [self, other]);
        if dims > self.dim() || dims > other.dim() {
            refuse("tensordot", &[self, other], format!("{dims} dimensions to sum over are more than there are"));
        }
        let first: Vec<usize> = (self.dim() - dims..self.dim()).collect();
        self.tensordot_dims(other, first, (0..dims).collect::<Vec<_>>())
    }

    /// The sum over products along pairs of dimensions (`torch.tensordot(a, b, (dims_a, dims_b))`).
    ///
    /// `Tensor::ones([2, 3]).tensordot_dims(&Tensor::ones([3, 2]), 1, 0)` is `[[3., 3.], [3., 3.]]`.
    #[track_caller]
    pub fn tensordot_dims(&self, other: &Tensor, dims_self: impl Into<Dims>, dims_other: impl Into<Dims>) -> Tensor {
        let _call = called("tensordot_dims", [self, other]);
        let (a, b) = (self.each_dim("tensordot", &dims_self.into()), other.each_dim("tensordot", &dims_other.into()));
        if a.len() != b.len() {
            refuse("tensordot", &[self, other], "needs as many dimensions of one as of the other");
        }
        let letter = |n: usize| hidden(1000 + n);
        let mine: Vec<char> = (0..self.dim()).map(letter).collect();
        let theirs: Vec<char> = (0..other.dim())
            .map(|d| b.iter().position(|&p| p == d).map_or(letter(self.dim() + d), |i| mine[a[i]]))
            .collect();
        let needed = |c: char| mine.contains(&c) != theirs.contains(&c);
        let order: Vec<char> = mine.iter().chain(&theirs).filter(|c| needed(**c)).copied().collect();
        let left = Labelled { x: self.clone(), labels: mine.clone() };
        let right = Labelled { x: other.clone(), labels: theirs.clone() };
        left.times(right, needed).arranged_as(&order)
    }

    /// The sum of products along the last dimensions (`torch.inner`).
    ///
    /// `tensor([1, 2]).inner(&tensor([3, 4]))` is `11`.
    #[track_caller]
    pub fn inner(&self, other: &Tensor) -> Tensor {
        let _call = called("inner", [self, other]);
        if self.dim() == 0 || other.dim() == 0 {
            return self * other;
        }
        if self.size(-1) != other.size(-1) {
            refuse("inner", &[self, other], "the last dimensions must be of one size");
        }
        self.tensordot_dims(other, -1, -1)
    }

    /// A matrix times a vector (`torch.mv`).
    ///
    /// `tensor([[1, 2], [3, 4]]).mv(&tensor([1, 10]))` is `[21, 43]`.
    #[track_caller]
    pub fn mv(&self, vec: &Tensor) -> Tensor {
        let _call = called("mv", [self, vec]);
        if (self.dim(), vec.dim()) != (2, 1) {
            refuse("mv", &[self, vec], "needs a matrix and a vector");
        }
        self.matmul(vec)
    }

    /// `self + mat · vec` (`torch.addmv`).
    ///
    /// `tensor([1, 1]).addmv(&tensor([[1, 2], [3, 4]]), &tensor([1, 10]))` is `[22, 44]`.
    #[track_caller]
    pub fn addmv(&self, mat: &Tensor, vec: &Tensor) -> Tensor {
        let _call = called("addmv", [self, mat, vec]);
        self.plus_product("addmv", &mat.mv(vec))
    }

    /// `self + Σ batch1 · batch2`, summed over the batch (`torch.addbmm`).
    ///
    /// `tensor([[1.0]]).addbmm(&Tensor::ones([2, 1, 3]), &Tensor::ones([2, 3, 1]))` is `[[7.]]`.
    #[track_caller]
    pub fn addbmm(&self, batch1: &Tensor, batch2: &Tensor) -> Tensor {
        let _call = called("addbmm", [self, batch1, batch2]);
        self.plus_product("addbmm", &batch1.bmm_sum(batch2))
    }

    /// Σ batch1 · batch2 as one product, of which halves are rounded once.
    #[track_caller]
    pub(super) fn bmm_sum(&self, batch2: &Tensor) -> Tensor {
        let _line = caller_line();
        let fits =
            self.dim() == 3 && batch2.dim() == 3 && self.size(0) == batch2.size(0) && self.size(2) == batch2.size(1);
        if !fits {
            return self.bmm(batch2);
        }
        let (b, n, k, p) = (self.size(0), self.size(1), self.size(2), batch2.size(2));
        self.transpose(0, 1).reshape([n, b * k]).mm(&batch2.reshape([b * k, p]))
    }

    /// `self + batch1 · batch2` (`torch.baddbmm`).
    ///
    /// `Tensor::zeros([2, 1, 1]).baddbmm(&Tensor::ones([2, 1, 3]), &Tensor::ones([2, 3, 1])).flatten()` is `[3., 3.]`.
    #[track_caller]
    pub fn baddbmm(&self, batch1: &Tensor, batch2: &Tensor) -> Tensor {
        let _call = called("baddbmm", [self, batch1, batch2]);
        self.plus_product("baddbmm", &batch1.bmm(batch2))
    }

    /// `self + vec1 ⊗ vec2` (`torch.addr`).
    ///
    /// `tensor([[0, 0]]).addr(&tensor([2]), &tensor([3, 4]))` is `[[6, 8]]`.
    #[track_caller]
    pub fn addr(&self, vec1: &Tensor, vec2: &Tensor) -> Tensor {
        let _call = called("addr", [self, vec1, vec2]);
        rounded_once([self, vec1, vec2], |[x, a, b]| x.plus_product("addr", &a.outer(b)))
    }
}
