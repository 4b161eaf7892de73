//! The incomplete gamma functions: a series left of the parameter, a continued fraction right of it, both in float64.
use crate::bucket;
use crate::tensor::{Arg, Entry, Grad, Sample, Tensor, refuse, trace};
use xlazy_core::emit::{Emit, Reducer, Val};
use xlazy_core::ir::{Lower, Rule, Sig, rules};
use xlazy_core::ty::{DType, Type};

/// Terms at most; what needs more has parameters beyond a million.
const TERMS: f64 = 4000.0;
const LAST: f64 = 1e-16;

fn floats(s: &Sig) -> Rule {
    match s.inputs.iter().find(|t| t.dtype.is_complex()) {
        Some(t) => Err(format!("needs floats, not {}", t.dtype)),
        None => rules::binary_float(s),
    }
}

// Steps until no element's last one counts; the first two of what is carried are a number of the step and whether it goes on.
fn until_small(e: &mut Emit, start: &[Val], step: impl FnOnce(&mut Emit, &[Val]) -> (Vec<Val>, Val)) -> Vec<Val> {
    let shape = start[0].ty.clone();
    let flag = Type::new(DType::Bool, Default::default());
    let (count, open) = (e.constant(0.0, &Type::new(DType::F64, Default::default())), e.constant(1.0, &flag));
    let carried: Vec<Val> = [count, open].into_iter().chain(start.iter().cloned()).collect();
    let results = e.while_loop(
        &carried,
        |e, seen| {
            let most = e.constant(TERMS, &seen[0].ty);
            let more = e.compare("LT", &seen[0], &most);
            e.binary("and", &more, &seen[1])
        },
        |e, seen| {
            let n = e.with_const("add", &seen[0], 1.0);
            let mut given = vec![e.broadcast(&n, &shape.shape)];
            given.extend_from_slice(&seen[2..]);
            let (mut next, change) = step(e, &given);
            let last = e.constant(LAST, &change.ty);
            let open = e.compare("GT", &change, &last);
            let dims: Vec<usize> = (0..open.rank()).collect();
            let open = e.reduce(&open, &dims, Reducer::Or);
            let mut all = vec![n, open];
            all.append(&mut next);
            all
        },
    );
    results[2..].to_vec()
}

// The sum of x^n / (a (a + 1) … (a + n)), from the next term and the sum so far.
fn series(e: &mut Emit, a: &Val, x: &Val) -> Val {
    let one = e.constant(1.0, &a.ty);
    let first = e.div(&one, a);
    let found = until_small(e, &[a.clone(), x.clone(), first.clone(), first], |e, seen| {
        let [n, a, x, term, sum] = [0, 1, 2, 3, 4].map(|i| seen[i].clone());
        let below = e.add(&a, &n);
        let factor = e.div(&x, &below);
        let term = e.mul(&term, &factor);
        let sum = e.add(&sum, &term);
        let change = e.div(&term, &sum);
        (vec![a, x, term, sum], change)
    });
    found[3].clone()
}

// Lentz's way through 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - …)).
fn fraction(e: &mut Emit, a: &Val, x: &Val) -> Val {
    let off = e.sub(x, a);
    let b = e.with_const("add", &off, 1.0);
    let c = e.constant(1e300, &a.ty);
    let one = e.constant(1.0, &a.ty);
    let d = e.div(&one, &b);
    let found = until_small(e, &[a.clone(), b, c, d.clone(), d], |e, seen| {
        let [n, a, b, c, d, h] = [0, 1, 2, 3, 4, 5].map(|i| seen[i].clone());
        let rest = e.sub(&a, &n);
        let an = e.mul(&n, &rest);
        let b = e.with_const("add", &b, 2.0);
        let d = e.mul(&an, &d);
        let d = e.add(&d, &b);
        let c = e.div(&an, &c);
        let c = e.add(&b, &c);
        let one = e.constant(1.0, &d.ty);
        let d = e.div(&one, &d);
        let factor = e.mul(&c, &d);
        let h = e.mul(&h, &factor);
        let change = e.sub(&factor, &one);
        let change = e.unary("abs", &change);
        (vec![a, b, c, d, h], change)
    });
    found[4].clone()
}

fn incomplete(l: &mut Lower, upper: bool) -> Val {
    let out = l.out.clone();
    if out.shape.numel() == 0 {
        return l.constant(0.0, &out);
    }
    let [a, x] = [0, 1].map(|i| {
        let v = l.fit(i);
        l.convert(&v, DType::F64)
    });
    let (zero, one) = (l.constant(0.0, &a.ty), l.constant(1.0, &a.ty));
    let infinite = l.constant(f64::INFINITY, &a.ty);
    // each way is given numbers that it ends for where the other one is taken
    let left = l.compare("LE", &x, &a);
    let positive = l.compare("GT", &a, &zero);
    let reached = [&a, &x].map(|v| l.compare("LT", v, &infinite));
    let within = l.binary("and", &reached[0], &reached[1]);
    let within = l.binary("and", &within, &positive);
    let right = l.compare("GT", &x, &a);
    let (by_series, by_fraction) = (l.binary("and", &within, &left), l.binary("and", &within, &right));
    let take = |l: &mut Lower, which: &Val, v: &Val, other: &Val| l.select(which, v, other);
    let two = l.constant(2.0, &a.ty);
    let (sa, sx) = (take(l, &by_series, &a, &one), take(l, &by_series, &x, &one));
    let (fa, fx) = (take(l, &by_fraction, &a, &one), take(l, &by_fraction, &x, &two));
    let (sum, rest) = (series(l, &sa, &sx), fraction(l, &fa, &fx));
    // x^a e^-x / Γ(a)
    let log = l.unary("log", &x);
    let grown = l.mul(&a, &log);
    let grown = l.sub(&grown, &x);
    let gamma = l.unary("chlo.lgamma", &a);
    let scale = l.sub(&grown, &gamma);
    let scale = l.unary("exponential", &scale);
    let (low, high) = (l.mul(&scale, &sum), l.mul(&scale, &rest));
    let lower = match upper {
        false => {
            let high = l.sub(&one, &high);
            l.select(&by_fraction, &high, &low)
        }
        true => {
            let low = l.sub(&one, &low);
            l.select(&by_fraction, &high, &low)
        }
    };
    // the ends: nothing of it at 0, all of it beyond every number or with a parameter of 0
    let (none, all) = if upper { (&one, &zero) } else { (&zero, &one) };
    let at = |l: &mut Lower, v: &Val, to: &Val, than: Val, otherwise: &Val| {
        let there = l.compare("EQ", v, to);
        l.select(&there, otherwise, &than)
    };
    let y = at(l, &a, &infinite, lower, none);
    let y = at(l, &x, &zero, y, none);
    let y = at(l, &x, &infinite, y, all);
    let y = at(l, &a, &zero, y, all);
    let nan = l.constant(f64::NAN, &a.ty);
    let nothing = |l: &mut Lower, v: &Val| [l.compare("EQ", &a, v), l.compare("EQ", &x, v)];
    let ([a0, x0], [ai, xi]) = (nothing(l, &zero), nothing(l, &infinite));
    let (both, ends) = (l.binary("and", &a0, &x0), l.binary("and", &ai, &xi));
    let (na, nx) = (l.compare("GE", &a, &zero), l.compare("GE", &x, &zero));
    let outside = l.binary("and", &na, &nx);
    let outside = l.unary("not", &outside);
    let wrong = l.binary("or", &both, &ends);
    let wrong = l.binary("or", &wrong, &outside);
    let y = l.select(&wrong, &nan, &y);
    l.convert(&y, out.dtype)
}

// x^(a-1) e^-x / Γ(a); of the parameter there is none, as in torch.
fn slope(g: &Grad, sign: f64) -> Vec<Option<Tensor>> {
    if g.inputs[0].requires_grad() {
        refuse("igamma", &[&g.inputs[0]], "the gradient of the first operand, the parameter, is not known: detach it");
    }
    let (a, x) = (g.x(0), g.x(1));
    vec![None, g.want(1, || &g.dy * ((a - 1.0) * x.log() - x - a.lgamma()).exp() * sign)]
}

fn samples() -> Vec<Sample> {
    // of the parameter no gradient is asked where it is of its own dtype
    vec![Sample::of(&[]).and(DType::F32, &[2, 3]).then(&[&[2, 3]]).range(0.3, 4.0)]
}

static IGAMMA: Entry = Entry::new("igamma", floats, |l| incomplete(l, false))
    .samples(samples)
    .grad(|g| slope(g, 1.0))
    .bucket(bucket::each);

static IGAMMAC: Entry = Entry::new("igammac", floats, |l| incomplete(l, true))
    .samples(samples)
    .grad(|g| slope(g, -1.0))
    .bucket(bucket::each);

pub(super) static OPS: &[&Entry] = &[&IGAMMA, &IGAMMAC];

impl Tensor {
    /// The regularised lower incomplete gamma function, this tensor its parameter (`torch.igamma`,
    /// `torch.special.gammainc`). Gradients flow to `other` only, as in torch.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!((tensor(1.0).igamma(1.0).item() - 0.632121).abs() < 1e-6);
    /// ```
    #[track_caller]
    pub fn igamma<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&IGAMMA, [self.into(), other.into()], [])
    }

    /// The regularised upper incomplete gamma function: 1 less [`Tensor::igamma`], exact where that is small (`torch.igammac`,
    /// `torch.special.gammaincc`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!((tensor(1.0).igammac(1.0).item() - 0.367879).abs() < 1e-6);
    /// ```
    #[track_caller]
    pub fn igammac<'a>(&self, other: impl Into<Arg<'a>>) -> Tensor {
        trace(&IGAMMAC, [self.into(), other.into()], [])
    }
}
