//! `+ - * / %`, `& | ^` and unary `-` and `!` between tensors and numbers, by value and by reference.
use super::binary::{add, div, mul, remainder, sub};
use crate::tensor::{Arg, Tensor};
use std::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, Sub, SubAssign};

// One impl for all right-hand sides: the result's type is known before a literal's is, so `(&x * 2.0).sum()` needs no
// suffix. On the left a number is an f64 or an i64, for the same reason; of `& | ^` it has these operators itself.
macro_rules! operator {
    ($($trait:ident, $method:ident, $f:ident;)*) => {$(
        operator!(@of Tensor, $trait, $method, $f);
        operator!(@of &Tensor, $trait, $method, $f);
    )*};
    (@of $of:ty, $trait:ident, $method:ident, $f:ident) => {
        impl<'a, T: Into<Arg<'a>>> $trait<T> for $of {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: T) -> Tensor {
                Tensor::$f(&self, other)
            }
        }
    };
}

operator! {
    Add, add, add;
    Sub, sub, sub;
    Mul, mul, mul;
    Div, div, div;
    Rem, rem, remainder;
    BitAnd, bitand, bitwise_and;
    BitOr, bitor, bitwise_or;
    BitXor, bitxor, bitwise_xor;
}

macro_rules! of_numbers {
    ($($trait:ident, $method:ident, $f:ident;)*) => {$(
        of_numbers!(@of f64, $trait, $method, $f);
        of_numbers!(@of i64, $trait, $method, $f);
    )*};
    (@of $n:ty, $trait:ident, $method:ident, $f:ident) => {
        impl $trait<Tensor> for $n {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                $f(Arg::from(self), Arg::Owned(other))
            }
        }
        impl $trait<&Tensor> for $n {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                $f(Arg::from(self), Arg::Tensor(other))
            }
        }
    };
}

of_numbers! {
    Add, add, add;
    Sub, sub, sub;
    Mul, mul, mul;
    Div, div, div;
    Rem, rem, remainder;
}

macro_rules! unary {
    ($($trait:ident, $method:ident, $f:ident;)*) => {$(
        unary!(@of Tensor, $trait, $method, $f);
        unary!(@of &Tensor, $trait, $method, $f);
    )*};
    (@of $of:ty, $trait:ident, $method:ident, $f:ident) => {
        impl $trait for $of {
            type Output = Tensor;
            #[track_caller]
            fn $method(self) -> Tensor {
                Tensor::$f(&self)
            }
        }
    };
}

unary! {
    Neg, neg, neg;
    Not, not, bitwise_not;
}

macro_rules! assign {
    ($($trait:ident, $method:ident, $f:ident, $op:literal;)*) => {$(
        // The name is bound to a new tensor: other handles keep the old value, unlike `add_` and its like. Its dtype stays, as
        // with those. One that gradients accumulate in is changed itself, or the name would be left with one in which they do not.
        impl<'a, T: Into<Arg<'a>>> $trait<T> for Tensor {
            #[track_caller]
            fn $method(&mut self, other: T) {
                let value = $f(Arg::Tensor(self), other.into());
                match self.accumulates() {
                    true => self.assign($op, value),
                    false => *self = self.in_dtype($op, value),
                }
            }
        }
    )*};
}

assign! {
    AddAssign, add_assign, add, "+=";
    SubAssign, sub_assign, sub, "-=";
    MulAssign, mul_assign, mul, "*=";
    DivAssign, div_assign, div, "/=";
}
