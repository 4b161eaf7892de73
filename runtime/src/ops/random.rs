//! Random numbers, made on the device from a counter: each op takes one 64-bit key, drawn on the host, as a parameter of
//! the program. Drawing again never compiles again, and a value that is computed twice is the same.
use crate::bucket::like;
use crate::rng::SplitMix;
use crate::tensor::{Arg, Entry, Tensor, called, refuse, rounds, trace};
use std::cell::Cell;
use std::sync::Mutex;
use xlazy_core::emit::Val;
use xlazy_core::ir::Role::{Dtype, Size};
use xlazy_core::ir::{AttrsExt, Kind, Lower, Rule, Sig, attr};
use xlazy_core::ty::{DType, Dims, Scalar, Shape, Type};

fn rule(s: &Sig) -> Rule {
    Ok(Type::new(s.attrs.dtype(1), s.attrs_shape(0)))
}

/// Uniform in [0, 1), in f32 or f64 as the output needs.
fn uniform(l: &mut Lower) -> Val {
    let (key, shape) = (l.x(0), l.out.shape.clone());
    let wide = if l.out.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    l.uniform(&key, wide, &shape)
}

static RAND: Entry = Entry::new("rand", rule, |l| {
    let (u, dtype) = (uniform(l), l.out.dtype);
    l.convert(&u, dtype)
})
.kind(Kind::Random)
.attrs(&[attr("size", Size), attr("dtype", Dtype)]);

// Inverse of the normal distribution's function: sqrt(2) erfinv(2u - 1), with u away from 0.
static RANDN: Entry = Entry::new("randn", rule, |l| {
    let (u, dtype) = (uniform(l), l.out.dtype);
    let least = if u.dtype() == DType::F64 { 2f64.powi(-54) } else { 2f64.powi(-25) };
    let u = l.with_const("add", &u, least);
    let twice = l.with_const("multiply", &u, 2.0);
    let centred = l.with_const("subtract", &twice, 1.0);
    let inverse = l.unary("chlo.erf_inv", &centred);
    let v = l.with_const("multiply", &inverse, std::f64::consts::SQRT_2);
    l.convert(&v, dtype)
})
.kind(Kind::Random)
.attrs(&[attr("size", Size), attr("dtype", Dtype)]);

// low + floor(u · (high - low)); the bounds are operands
static RANDINT: Entry = Entry::new("randint", rule, |l| {
    let (key, shape) = (l.x(0), l.out.shape.clone());
    let u = l.uniform(&key, DType::F64, &shape);
    let [low, high] = [1, 2].map(|i| {
        let v = l.x(i);
        let v = l.convert(&v, DType::F64);
        l.broadcast(&v, &shape)
    });
    let range = l.sub(&high, &low);
    let scaled = l.mul(&u, &range);
    let floor = l.unary("floor", &scaled);
    let v = l.add(&floor, &low);
    let dtype = l.out.dtype;
    l.convert(&v, dtype)
})
.kind(Kind::Random)
.attrs(&[attr("size", Size), attr("dtype", Dtype)]);

pub(super) static OPS: &[&Entry] = &[&RAND, &RANDN, &RANDINT];

/// `(seed, keys drawn)`
static STATE: Mutex<(u64, u64)> = Mutex::new((0, 0));

thread_local! {
    /// That of a rank, which has a generator of its own.
    static OWN: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
}

fn state<R>(f: impl FnOnce(&mut (u64, u64)) -> R) -> R {
    match OWN.get() {
        None => f(&mut STATE.lock().unwrap_or_else(|p| p.into_inner())),
        Some(mut own) => {
            let r = f(&mut own);
            OWN.set(Some(own));
            r
        }
    }
}

/// From now on this thread draws by itself, from this state on.
pub(crate) fn own_generator(state: (u64, u64)) {
    OWN.set(Some(state));
}

/// Starts the random numbers anew (`torch.manual_seed`); the default seed is 0.
///
/// ```
/// use xlazy::prelude::*;
/// manual_seed(7);
/// let a = Tensor::rand([3]).to_vec::<f32>();
/// manual_seed(7);
/// assert_eq!(Tensor::rand([3]).to_vec::<f32>(), a);
/// ```
pub fn manual_seed(seed: u64) {
    state(|s| *s = (seed, 0));
}

/// The generator's state: the seed, and how many keys were drawn since.
pub(crate) fn generator() -> (u64, u64) {
    state(|s| *s)
}

/// Puts a state back that [`generator`] gave.
pub(crate) fn set_generator(to: (u64, u64)) {
    state(|s| *s = to);
}

/// A key that no other op of this seed has: SplitMix64 of seed and counter. Where an interrupt or a refusal comes before what
/// it is for is recorded, it is given back, so that the next draw gives what it would have given.
pub(crate) struct Key {
    number: i64,
    /// The generator's state with it drawn.
    after: (u64, u64),
}

impl Key {
    pub fn draw() -> Key {
        state(|s| {
            let drawn = s.1.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            s.1 += 1;
            let number = SplitMix(s.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(drawn)).next() as i64;
            Key { number, after: *s }
        })
    }

    pub fn number(&self) -> i64 {
        self.number
    }

    /// The key as an operand: in the body of a loop one for each of its rounds.
    #[track_caller]
    fn operand(&self) -> Arg<'static> {
        /// Odd, so that no two rounds have one key.
        const FACTOR: i64 = 0x9e37_79b9_7f4a_7c15_u64 as i64;
        let rounds = rounds();
        let mut rounds = rounds.iter();
        let Some(outer) = rounds.next() else { return self.number.into() };
        rounds.fold((outer + self.number) * FACTOR, |key, round| (key + round) * FACTOR).into()
    }

    /// What it is for is recorded.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        state(|s| {
            // Another thread may have drawn since.
            if *s == self.after {
                s.1 -= 1;
            }
        });
    }
}

#[track_caller]
fn draw(op: &'static Entry, shape: &Shape, dtype: DType) -> Tensor {
    let key = Key::draw();
    let t = drawn(op, &key, shape, dtype);
    key.keep();
    t
}

#[track_caller]
fn drawn(op: &'static Entry, key: &Key, shape: &Shape, dtype: DType) -> Tensor {
    trace(op, [key.operand()], [shape.into(), dtype.into()])
}

impl Tensor {
    /// Uniform in [0, 1), float32 (`torch.rand`). StableHLO: rng_bit_generator, Threefry.
    ///
    /// `Tensor::rand([2, 3]).shape()` is `[2,3]`.
    #[track_caller]
    pub fn rand(size: impl Into<Dims>) -> Tensor {
        draw(&RAND, &size.into().shape("rand").unwrap_or_else(|e| e.raise()), DType::F32)
    }

    /// Normal with mean 0 and deviation 1, float32 (`torch.randn`).
    ///
    /// `Tensor::randn([2, 3]).shape()` is `[2,3]`.
    #[track_caller]
    pub fn randn(size: impl Into<Dims>) -> Tensor {
        draw(&RANDN, &size.into().shape("randn").unwrap_or_else(|e| e.raise()), DType::F32)
    }

    /// Uniform in [0, 1), in this tensor's shape and dtype (`torch.rand_like`).
    ///
    /// `tensor([1.0, 2.0]).rand_like().shape()` is `[2]`.
    #[track_caller]
    pub fn rand_like(&self) -> Tensor {
        let key = Key::draw();
        let t = self.draw_like(&RAND, &key);
        key.keep();
        t
    }

    /// Normal with mean 0 and deviation 1, in this tensor's shape and dtype (`torch.randn_like`).
    ///
    /// `tensor([1.0, 2.0]).randn_like().shape()` is `[2]`.
    #[track_caller]
    pub fn randn_like(&self) -> Tensor {
        let key = Key::draw();
        let t = self.draw_like(&RANDN, &key);
        key.keep();
        t
    }

    #[track_caller]
    fn draw_like(&self, op: &'static Entry, key: &Key) -> Tensor {
        if !self.dtype().is_float() {
            refuse(op.name, &[self], "random floats have no meaning in this dtype; use `randint`");
        }
        like(self, |ty| drawn(op, key, &ty.shape, ty.dtype))
    }

    /// Integers from `low` up to and without `high`, int64 (`torch.randint`).
    ///
    /// `Tensor::randint(3, 4, [2])` is `[3, 3]`.
    #[track_caller]
    pub fn randint(low: impl Into<Scalar>, high: impl Into<Scalar>, size: impl Into<Dims>) -> Tensor {
        let [low, high] = [low.into(), high.into()].map(Scalar::as_i64);
        if low >= high {
            refuse("randint", &[], format!("there is no integer from {low} up to {high}"));
        }
        let shape = size.into().shape("randint").unwrap_or_else(|e| e.raise());
        let key = Key::draw();
        let args = [key.operand(), low.into(), high.into()];
        let t = trace(&RANDINT, args, [(&shape).into(), DType::I64.into()]);
        key.keep();
        t
    }

    /// Integers from `low` up to and without `high`, in this tensor's shape and dtype (`torch.randint_like`).
    ///
    /// `tensor([1.0, 2.0]).randint_like(3, 4)` is `[3., 3.]`.
    #[track_caller]
    pub fn randint_like(&self, low: impl Into<Scalar>, high: impl Into<Scalar>) -> Tensor {
        let _call = called("randint_like", [self]);
        Tensor::randint(low, high, self.shape()).to(self.dtype())
    }

    /// True with the probability each element gives, as 0 and 1 in its dtype (`torch.bernoulli`).
    ///
    /// `tensor([0.0, 1.0]).bernoulli()` is `[0., 1.]`.
    #[track_caller]
    pub fn bernoulli(&self) -> Tensor {
        let key = Key::draw();
        let t = self.draw_like(&RAND, &key).lt(super::bounds::chances(self)).to(self.dtype());
        key.keep();
        t
    }

    /// Zeroes each element with probability `p` and scales the others by 1 / (1 - p) (`torch.nn.functional.dropout`).
    /// Does nothing where `training` is false. `p` is a parameter: changing it does not compile again.
    ///
    /// `tensor([1.0, 2.0]).dropout(0.5, false)` is `[1., 2.]`.
    #[track_caller]
    pub fn dropout(&self, p: f64, training: bool) -> Tensor {
        if !(0.0..=1.0).contains(&p) {
            refuse("dropout", &[self], format!("the probability must be between 0 and 1, not {p}"));
        }
        crate::insight::mode::note(training);
        if !training {
            return self.clone();
        }
        let _call = called("dropout", [self]);
        let key = Key::draw();
        let keep = crate::tensor::no_grad(|| self.draw_like(&RAND, &key)).ge(p);
        let scale = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
        let y = self * keep.to(self.dtype()) * scale;
        key.keep();
        y
    }
}
