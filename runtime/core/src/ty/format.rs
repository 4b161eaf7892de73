//! How the elements of a dtype lie in memory: their size, the numbers that they can be, reading and writing them.
use super::number::Scalar;

/// Sizes are in bits; elements are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A byte, 0 or 1.
    Flag,
    Unsigned(u32),
    /// Two's complement.
    Signed(u32),
    /// A sign, so much exponent and so much fraction, with infinities and NaN, as in IEEE 754.
    Float(u32, u32),
    /// A real and an imaginary part, floats of so much exponent and so much fraction.
    Complex(u32, u32),
}

use Format::*;

impl Format {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Flag => 1,
            Unsigned(bits) | Signed(bits) => bits as usize / 8,
            Float(exponent, fraction) => (1 + exponent + fraction) as usize / 8,
            Complex(..) => 2 * self.part().size(),
        }
    }

    /// Of the real and of the imaginary part, where there are two.
    pub fn part(self) -> Format {
        match self {
            Complex(exponent, fraction) => Float(exponent, fraction),
            other => other,
        }
    }

    /// Whether every number of the other, which is of the same kind, is one of this.
    pub fn holds(self, other: Format) -> bool {
        match (self, other) {
            (Signed(bits), Unsigned(others)) => bits > others,
            (Unsigned(bits), Unsigned(others)) | (Signed(bits), Signed(others)) => bits >= others,
            (Float(e, f), Float(others_e, others_f)) | (Complex(e, f), Complex(others_e, others_f)) => {
                e >= others_e && f >= others_f
            }
            _ => self == other,
        }
    }

    /// The least and the greatest of its numbers, infinities among them.
    pub fn limits(self) -> (Scalar, Scalar) {
        match self {
            Flag => (Scalar::Bool(false), Scalar::Bool(true)),
            Unsigned(bits) => (Scalar::Int(0), Scalar::Int((u64::MAX >> (64 - bits)).min(i64::MAX as u64) as i64)),
            Signed(bits) => (Scalar::Int(i64::MIN >> (64 - bits)), Scalar::Int(i64::MAX >> (64 - bits))),
            Float(..) | Complex(..) => (Scalar::Float(f64::NEG_INFINITY), Scalar::Float(f64::INFINITY)),
        }
    }

    /// The greatest number that is finite.
    pub fn most(self) -> f64 {
        match self {
            Float(exponent, fraction) | Complex(exponent, fraction) => {
                float_of((((1 << exponent) - 1) << fraction) - 1, exponent, fraction)
            }
            _ => self.limits().1.as_f64(),
        }
    }

    /// One element's value from its bytes; of a complex number the real part. An integer beyond 2⁶³ comes as its bits, see
    /// [`Format::integer`].
    pub fn read(self, bytes: &[u8]) -> Scalar {
        let bits = self.bits_in(bytes);
        match self {
            Flag => Scalar::Bool(bits != 0),
            Unsigned(_) => Scalar::Int(bits as i64),
            Signed(n) => Scalar::Int((bits << (64 - n)) as i64 >> (64 - n)),
            Float(exponent, fraction) | Complex(exponent, fraction) => {
                Scalar::Float(float_of(bits, exponent, fraction))
            }
        }
    }

    /// An integer's value from its bytes, whatever its size.
    pub fn integer(self, bytes: &[u8]) -> i128 {
        match self {
            Unsigned(_) => self.bits_in(bytes).into(),
            _ => self.read(bytes).as_i64().into(),
        }
    }

    fn bits_in(self, bytes: &[u8]) -> u64 {
        let size = self.part().size();
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(&bytes[..size]);
        u64::from_le_bytes(wide)
    }

    /// Appends a number as an element: floats to the nearest (ties to even), integers cut to their size.
    pub fn write(self, number: Scalar, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bits(number).to_le_bytes()[..self.part().size()]);
        if let Complex(..) = self {
            self.part().write(Scalar::Float(0.0), out);
        }
    }

    /// A number as an element's bits, those of the real part in a complex one.
    pub fn bits(self, number: Scalar) -> u64 {
        match self {
            Flag => (number.as_f64() != 0.0) as u64,
            Unsigned(_) | Signed(_) => number.as_i64() as u64,
            Float(exponent, fraction) | Complex(exponent, fraction) => bits_of(number.as_f64(), exponent, fraction),
        }
    }
}

/// 2 to a power that is not beyond the normal numbers.
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// The value of a float's bits.
fn float_of(bits: u64, exponent: u32, fraction: u32) -> f64 {
    match (exponent, fraction) {
        (11, 52) => return f64::from_bits(bits),
        (8, 23) => return f32::from_bits(bits as u32) as f64,
        _ => {}
    }
    let (top, bias) = ((1 << exponent) - 1, (1 << (exponent - 1)) - 1);
    let sign = (bits >> (exponent + fraction)) << 63;
    let rest = (bits & ((1 << fraction) - 1)) << (52 - fraction);
    let size = match (bits >> fraction) & top {
        0 => (bits & ((1 << fraction) - 1)) as f64 * power_of_two(1 - bias - fraction as i32),
        e if e == top => f64::from_bits(0x7ff << 52 | rest),
        e => f64::from_bits(((e as i32 - bias + 1023) as u64) << 52 | rest),
    };
    f64::from_bits(sign | size.to_bits())
}

/// The bits of the nearest float (ties to even).
fn bits_of(v: f64, exponent: u32, fraction: u32) -> u64 {
    match (exponent, fraction) {
        (11, 52) => return v.to_bits(),
        (8, 23) => return (v as f32).to_bits() as u64,
        _ => {}
    }
    let infinity = ((1 << exponent) - 1) << fraction;
    let sign = (v.to_bits() >> 63) << (exponent + fraction);
    if !v.is_finite() {
        return sign | infinity | (v.is_nan() as u64) << (fraction - 1);
    }
    // Floats are multiples of 2^(e - fraction), and below the normal range of the least such: scale, round to even, put
    // together. What rounds up to the next power of two carries into the exponent by itself.
    let bias = (1 << (exponent - 1)) - 1;
    let e = ((v.abs().to_bits() >> 52) as i32 - 1023).max(1 - bias);
    if e > bias {
        return sign | infinity;
    }
    let multiple = (v.abs() * power_of_two(fraction as i32 - e)).round_ties_even() as u64;
    sign | ((((e + bias - 1) as u64) << fraction) + multiple)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ty::DType;

    /// Every value of two bytes or fewer, and some of the wider, of every dtype.
    #[test]
    fn what_is_written_is_read() {
        for dtype in DType::ALL {
            let (size, real) = (dtype.size(), dtype.part().size());
            let widest = 1u64.checked_shl(8 * real as u32).unwrap_or(0).wrapping_sub(1);
            for i in 0..=u16::MAX as u64 {
                let bits = if real <= 2 { i & widest } else { i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & widest };
                let mut bytes = bits.to_le_bytes()[..real].to_vec();
                bytes.resize(size, 0);
                let v = dtype.read(&bytes);
                if v.as_f64().is_nan() || dtype == DType::Bool && bits > 1 {
                    continue;
                }
                let mut out = Vec::new();
                dtype.write(v, &mut out);
                assert_eq!(out, bytes, "{dtype} {v:?}");
            }
        }
    }

    #[test]
    fn a_number_becomes_the_nearest_float() {
        let near = |dtype: DType, v: f64| {
            let mut out = Vec::new();
            dtype.write(Scalar::Float(v), &mut out);
            dtype.read(&out).as_f64()
        };
        let (half, brain) = (DType::F16, DType::BF16);
        assert_eq!(
            (near(half, 1.0 + 2f64.powi(-11)), near(half, 1.0 + 3.0 * 2f64.powi(-11))),
            (1.0, 1.0 + 2f64.powi(-9))
        );
        assert_eq!(
            (near(half, 65519.9), near(half, 65520.0), near(half, -1e300)),
            (65504.0, f64::INFINITY, -f64::INFINITY)
        );
        assert_eq!((near(half, 2f64.powi(-25)), near(half, 1.1 * 2f64.powi(-25))), (0.0, 2f64.powi(-24)));
        assert_eq!((near(half, 2047.6 * 2f64.powi(-25)), near(brain, 1.01)), (2f64.powi(-14), 1.0078125));
        assert!(near(half, f64::NAN).is_nan() && near(brain, f64::NAN).is_nan());
        assert_eq!((near(half, -0.0).to_bits(), near(brain, f64::INFINITY)), ((-0.0f64).to_bits(), f64::INFINITY));
    }

    #[test]
    fn limits_are_those_of_the_rust_types() {
        let of = |d: DType| d.format().limits();
        assert_eq!(of(DType::I8), (Scalar::Int(i8::MIN as i64), Scalar::Int(i8::MAX as i64)));
        assert_eq!(of(DType::U8), (Scalar::Int(0), Scalar::Int(255)));
        assert_eq!(of(DType::I64), (Scalar::Int(i64::MIN), Scalar::Int(i64::MAX)));
        let most = |d: DType| d.format().most();
        assert_eq!((most(DType::F16), most(DType::BF16)), (65504.0, 3.3895313892515355e38));
        assert_eq!((most(DType::F32), most(DType::F64)), (f32::MAX as f64, f64::MAX));
    }
}
