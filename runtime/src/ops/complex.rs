//! Complex numbers: made of two real tensors, taken apart, and their sizes and angles. Gradients are torch's: conjugated.
use crate::tensor::{Entry, Sample, Step, Tensor, called, refuse, trace};
use xlazy_core::ir::{Rule, Sig, rules};
use xlazy_core::ty::{DType, Type};

fn sample() -> Vec<Sample> {
    vec![Sample::of(&[]).and(DType::C64, &[2, 3])]
}

fn part(s: &Sig) -> Rule {
    Ok(Type::new(s.dtype(0).part(), s.shape(0).clone()))
}

static COMPLEX: Entry = Entry::new(
    "complex",
    |s| {
        let shape = rules::broadcast_shapes(s)?;
        match s.inputs.iter().all(|t| t.dtype == s.dtype(0)) {
            true if s.dtype(0).complex().is_some() => Ok(Type::new(s.dtype(0).complex().expect("just asked"), shape)),
            _ => Err("needs two float32 tensors, or two float64 ones".into()),
        }
    },
    |l| {
        let (out, shape) = (l.out.clone(), l.out.shape.clone());
        let [re, im] = [0, 1].map(|i| {
            let x = l.x(i);
            l.broadcast(&x, &shape)
        });
        l.op("complex", &[&re, &im], "", out)
    },
)
.samples(|| vec![Sample::of(&[]).and(DType::F32, &[2, 3]).and(DType::F32, &[3])])
.grad(|g| vec![g.want(0, || g.dy.real()), g.want(1, || g.dy.imag())]);

static REAL: Entry = Entry::new("real", part, |l| {
    let (x, out) = (l.x(0), l.out.clone());
    if x.dtype() == out.dtype { x } else { l.op("real", &[&x], "", out) }
})
.samples(sample)
.grad(|g| vec![Some(g.dy.complex(&g.dy.zeros_like()))]);

static IMAG: Entry = Entry::new("imag", part, |l| {
    let (x, out) = (l.x(0), l.out.clone());
    if x.dtype() == out.dtype { l.constant(0.0, &out) } else { l.op("imag", &[&x], "", out) }
})
.samples(sample)
.grad(|g| vec![Some(g.dy.zeros_like().complex(&g.dy))]);

pub(super) static OPS: &[&Entry] = &[&COMPLEX, &REAL, &IMAG];

impl Tensor {
    /// This tensor as real part, the other as imaginary part (`torch.complex`). StableHLO complex.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let z = tensor([1.0]).complex(&tensor([2.0]));
    /// assert_eq!((z.real().item(), z.imag().item()), (1.0, 2.0));
    /// ```
    #[track_caller]
    pub fn complex(&self, imag: &Tensor) -> Tensor {
        trace(&COMPLEX, [self.into(), imag.into()], [])
    }

    /// The complex numbers of these sizes and `angle`s, in radians (`torch.polar`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([2.0]).polar(&tensor([0.0])).real().item(), 2.0);
    /// ```
    #[track_caller]
    pub fn polar(&self, angle: &Tensor) -> Tensor {
        let _call = called("polar", [self, angle]);
        (self * angle.cos()).complex(&(self * angle.sin()))
    }

    /// The real part; a real tensor itself (`torch.real`). StableHLO real.
    ///
    /// `tensor([3.0]).complex(&tensor([4.0])).real()` is `[3.]`.
    #[track_caller]
    pub fn real(&self) -> Tensor {
        if !self.dtype().is_complex() {
            return self.clone();
        }
        trace(&REAL, [self.into()], []).viewing(self, Step::Real)
    }

    /// The imaginary part of complex numbers (`torch.imag`). StableHLO imag.
    ///
    /// `tensor([3.0]).complex(&tensor([4.0])).imag()` is `[4.]`.
    #[track_caller]
    pub fn imag(&self) -> Tensor {
        if !self.dtype().is_complex() {
            refuse("imag", &[self], "real numbers have no imaginary part");
        }
        trace(&IMAG, [self.into()], []).viewing(self, Step::Imag)
    }

    /// The complex conjugate; a real tensor itself (`torch.conj`, and `torch.resolve_conj`, as it is computed at once).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1.0]).complex(&tensor([2.0])).conj().imag().item(), -2.0);
    /// ```
    #[track_caller]
    pub fn conj(&self) -> Tensor {
        let _call = called("conj", [self]);
        if self.dtype().is_complex() { self.real().complex(&self.imag().neg()) } else { self.clone() }
    }

    /// Pairs in the last dimension as complex numbers (`torch.view_as_complex`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([[1.0, 2.0]]).view_as_complex().imag().item(), 2.0);
    /// ```
    #[track_caller]
    pub fn view_as_complex(&self) -> Tensor {
        let _call = called("view_as_complex", [self]);
        if self.dim() == 0 || self.size(-1) != 2 {
            refuse("view_as_complex", &[self], "the last dimension must be of size 2: real and imaginary parts");
        }
        self.select(-1, 0).complex(&self.select(-1, 1)).viewing(self, Step::AsComplex)
    }

    /// Real and imaginary parts as pairs in a new last dimension (`torch.view_as_real`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1.0]).complex(&tensor([2.0])).view_as_real().to_vec::<f32>(), [1.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn view_as_real(&self) -> Tensor {
        let _call = called("view_as_real", [self]);
        super::stack(&[&self.real(), &self.imag()], -1).viewing(self, Step::AsReal)
    }

    /// The angle of complex numbers, in radians; of real ones 0, π where negative, and NaN of NaN (`torch.angle`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert_eq!(tensor([1.0, -1.0]).angle().to_vec::<f32>(), [0.0, std::f32::consts::PI]);
    /// ```
    #[track_caller]
    pub fn angle(&self) -> Tensor {
        let _call = called("angle", [self]);
        if self.dtype().is_complex() {
            return self.imag().atan2(self.real());
        }
        let x = self.to(self.dtype().to_float());
        let angle = (&x * 0.0).masked_fill(&x.lt(0.0), std::f64::consts::PI).masked_fill(&x.eq(f64::INFINITY), 0.0);
        angle.masked_fill(&x.isnan(), f64::NAN)
    }

    /// True where the imaginary part is zero (`torch.isreal`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// assert!(tensor([1.0]).isreal().to_vec::<bool>()[0]);
    /// ```
    #[track_caller]
    pub fn isreal(&self) -> Tensor {
        let _call = called("isreal", [self]);
        if self.dtype().is_complex() { self.imag().eq(0.0) } else { self.ones_like().bool() }
    }
}
