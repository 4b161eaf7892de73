//! Bits of integers and bools.
use super::binary::{both, not_all_bool, samples};
use crate::bucket;
use crate::tensor::{Arg, Entry, Tensor, trace};
use xlazy_core::ir::{Rule, Sig, rules};

fn bits(s: &Sig) -> Rule {
    let ty = rules::binary(s)?;
    if ty.dtype.is_differentiable() { Err("needs integers or bools".into()) } else { Ok(ty) }
}

fn shifted(s: &Sig) -> Rule {
    not_all_bool(s)?;
    bits(s)
}

static BITWISE_AND: Entry = Entry::new("bitwise_and", bits, |l| both(l, "and")).samples(samples).bucket(bucket::each);
static BITWISE_OR: Entry = Entry::new("bitwise_or", bits, |l| both(l, "or")).samples(samples).bucket(bucket::each);
static BITWISE_XOR: Entry = Entry::new("bitwise_xor", bits, |l| both(l, "xor")).samples(samples).bucket(bucket::each);
static SHIFT_LEFT: Entry =
    Entry::new("bitwise_left_shift", shifted, |l| both(l, "shift_left")).samples(samples).bucket(bucket::each);
static SHIFT_RIGHT: Entry = Entry::new("bitwise_right_shift", shifted, |l| {
    let op = if l.out.dtype.is_unsigned() { "shift_right_logical" } else { "shift_right_arithmetic" };
    both(l, op)
})
.samples(samples)
.bucket(bucket::each);

pub(super) static OPS: &[&Entry] = &[&BITWISE_AND, &BITWISE_OR, &BITWISE_XOR, &SHIFT_LEFT, &SHIFT_RIGHT];

impl Tensor {
    /// Bits set in both (`torch.bitwise_and`).
    /// `tensor([6, 5]).bitwise_and(3)` is `[2, 1]`.
    #[track_caller]
    pub fn bitwise_and<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&BITWISE_AND, [self.into(), other.into()], [])
    }

    /// Bits set in either (`torch.bitwise_or`).
    /// `tensor([6, 5]).bitwise_or(3)` is `[7, 7]`.
    #[track_caller]
    pub fn bitwise_or<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&BITWISE_OR, [self.into(), other.into()], [])
    }

    /// Bits set in exactly one (`torch.bitwise_xor`).
    /// `tensor([6, 5]).bitwise_xor(3)` is `[5, 6]`.
    #[track_caller]
    pub fn bitwise_xor<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&BITWISE_XOR, [self.into(), other.into()], [])
    }

    /// Bits moved up (`torch.bitwise_left_shift`).
    /// `tensor([1, 2]).bitwise_left_shift(3)` is `[8, 16]`.
    #[track_caller]
    pub fn bitwise_left_shift<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&SHIFT_LEFT, [self.into(), other.into()], [])
    }

    /// Bits moved down, the sign staying (`torch.bitwise_right_shift`).
    /// `tensor([8, 9]).bitwise_right_shift(1)` is `[4, 4]`.
    #[track_caller]
    pub fn bitwise_right_shift<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&SHIFT_RIGHT, [self.into(), other.into()], [])
    }
}
