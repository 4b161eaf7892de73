//! Element types and PyTorch's promotion rules.
use xlazy_pjrt::BufferType;

/// The element type of a tensor, named as in StableHLO; the torch names are aliases in the docs of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// `torch.bool`
    Bool,
    /// `torch.uint8`
    U8,
    /// `torch.int8`
    I8,
    /// `torch.int32`
    I32,
    /// `torch.int64`
    I64,
    /// `torch.float16`
    F16,
    /// `torch.bfloat16`
    BF16,
    /// `torch.float32`, the default
    F32,
    /// `torch.float64`
    F64,
    /// `torch.complex64`
    C64,
}

pub use DType::*;

/// What kind of number a dtype holds; promotion never leaves the higher category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    Bool,
    Int,
    Float,
    Complex,
}

impl DType {
    pub const ALL: [DType; 10] = [Bool, U8, I8, I32, I64, F16, BF16, F32, F64, C64];

    /// The torch name, such as `float32`.
    pub fn torch_name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "uint8",
            I8 => "int8",
            I32 => "int32",
            I64 => "int64",
            F16 => "float16",
            BF16 => "bfloat16",
            F32 => "float32",
            F64 => "float64",
            C64 => "complex64",
        }
    }

    /// The short name shown in graphs and messages, such as `f32`.
    pub fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "u8",
            I8 => "i8",
            I32 => "i32",
            I64 => "i64",
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
            C64 => "c64",
        }
    }

    /// The element type in StableHLO text.
    pub fn mlir(self) -> &'static str {
        match self {
            Bool => "i1",
            U8 => "ui8",
            I8 => "i8",
            I32 => "i32",
            I64 => "i64",
            C64 => "complex<f32>",
            other => other.name(),
        }
    }

    /// Bytes per element on the host.
    pub fn size(self) -> usize {
        match self {
            Bool | U8 | I8 => 1,
            F16 | BF16 => 2,
            I32 | F32 => 4,
            I64 | F64 | C64 => 8,
        }
    }

    pub fn category(self) -> Category {
        match self {
            Bool => Category::Bool,
            U8 | I8 | I32 | I64 => Category::Int,
            F16 | BF16 | F32 | F64 => Category::Float,
            C64 => Category::Complex,
        }
    }

    pub fn is_float(self) -> bool {
        self.category() == Category::Float
    }

    /// Whether a gradient can flow through values of this dtype.
    pub fn is_differentiable(self) -> bool {
        self.category() >= Category::Float
    }

    /// The dtype that an operation between two tensors of these dtypes computes in (`torch.promote_types`).
    pub fn promote(self, other: DType) -> DType {
        if self == other {
            return self;
        }
        let (low, high) = if self < other { (self, other) } else { (other, self) };
        match (low, high) {
            // torch answers int16 here; xlazy has none and takes the next wider dtype
            (U8, I8) => I32,
            (F16, BF16) => F32,
            (F64, C64) => C64,
            (_, high) => high,
        }
    }

    /// The float dtype that true division or a transcendental function of this dtype gives.
    pub fn to_float(self) -> DType {
        if self.is_differentiable() { self } else { F32 }
    }

    pub fn pjrt(self) -> BufferType {
        match self {
            Bool => BufferType::Pred,
            U8 => BufferType::U8,
            I8 => BufferType::S8,
            I32 => BufferType::S32,
            I64 => BufferType::S64,
            F16 => BufferType::F16,
            BF16 => BufferType::BF16,
            F32 => BufferType::F32,
            F64 => BufferType::F64,
            C64 => BufferType::C64,
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A number of user code on the host: an operand such as `0.5` in `x * 0.5`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl Scalar {
    pub fn category(self) -> Category {
        match self {
            Scalar::Bool(_) => Category::Bool,
            Scalar::Int(_) => Category::Int,
            Scalar::Float(_) => Category::Float,
        }
    }

    /// The dtype of an operation between a tensor of `dtype` and this number: the tensor's, unless the number is of a
    /// higher category (`int64` tensor × 0.5 is float32).
    pub fn promote_with(self, dtype: DType) -> DType {
        if self.category() <= dtype.category() { dtype } else { self.default_dtype() }
    }

    /// What torch makes of a lone number of this kind.
    pub fn default_dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => Bool,
            Scalar::Int(_) => I64,
            Scalar::Float(_) => F32,
        }
    }

    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::Float(f) => f,
        }
    }

    pub fn as_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::Float(f) => f as i64,
        }
    }
}

macro_rules! scalar_from {
    ($($t:ty => $variant:ident as $as:ty),*) => {$(
        impl From<$t> for Scalar {
            fn from(v: $t) -> Scalar {
                Scalar::$variant(v as $as)
            }
        }
    )*};
}
scalar_from!(f32 => Float as f64, f64 => Float as f64, i8 => Int as i64, i32 => Int as i64, i64 => Int as i64,
    u8 => Int as i64, u32 => Int as i64, usize => Int as i64, bool => Bool as bool);

mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose values can be read from and written to tensors of one dtype.
pub trait Element: Copy + Send + Sync + sealed::Sealed + 'static {
    const DTYPE: DType;
    /// One element from its little-endian bytes.
    fn read(bytes: &[u8]) -> Self;
    fn write(self, out: &mut Vec<u8>);
}

macro_rules! element {
    ($($t:ty => $d:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            fn read(bytes: &[u8]) -> Self {
                <$t>::from_le_bytes(bytes.try_into().expect("one element's bytes"))
            }
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
element!(f32 => F32, f64 => F64, i8 => I8, i32 => I32, i64 => I64, u8 => U8);

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;
    fn read(bytes: &[u8]) -> bool {
        bytes[0] != 0
    }
    fn write(self, out: &mut Vec<u8>) {
        out.push(self as u8);
    }
}

/// A bfloat16's bits as f32.
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// The nearest bfloat16 (ties to even).
pub fn f32_to_bf16(v: f32) -> u16 {
    if v.is_nan() {
        return 0x7fc0;
    }
    let bits = v.to_bits();
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

/// A float16's bits as f32.
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = ((bits >> 15) as u32) << 31;
    let (exp, frac) = ((bits >> 10) & 0x1f, (bits & 0x3ff) as u32);
    match (exp, frac) {
        (0, f) => f32::from_bits(sign | (f as f32 * 2f32.powi(-24)).to_bits()),
        (31, 0) => f32::from_bits(sign | 0x7f80_0000),
        (31, f) => f32::from_bits(sign | 0x7fc0_0000 | (f << 13)),
        (e, f) => f32::from_bits(sign | ((e as u32 + 112) << 23) | (f << 13)),
    }
}

/// The nearest float16 (ties to even).
pub fn f32_to_f16(v: f32) -> u16 {
    let sign = if v.is_sign_negative() { 0x8000u16 } else { 0 };
    if v.is_nan() {
        return sign | 0x7e00;
    }
    let a = v.abs();
    if a >= 65520.0 {
        return sign | 0x7c00;
    }
    // Halves are multiples of 2^(e-10), and of 2^-24 below the normal range: scale, round to even, put together.
    let e = ((a.to_bits() >> 23) as i32 - 127).max(-14);
    let mut m = (a as f64 * 2f64.powi(10 - e)).round_ties_even() as u32;
    let mut e = e;
    if m == 2048 {
        m = 1024;
        e += 1;
    }
    let biased = if m < 1024 { 0 } else { (e + 15) as u32 };
    sign | ((biased << 10) | (m & 0x3ff)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_trip() {
        for bits in 0..=u16::MAX {
            let v = f16_to_f32(bits);
            if !v.is_nan() {
                assert_eq!(f32_to_f16(v), bits, "{v}");
            }
            let b = bf16_to_f32(bits);
            if !b.is_nan() {
                assert_eq!(f32_to_bf16(b), bits, "{b}");
            }
        }
    }

    #[test]
    fn promotion_is_torchs() {
        assert_eq!(I64.promote(F16), F16);
        assert_eq!(F16.promote(BF16), F32);
        assert_eq!(Bool.promote(U8), U8);
        assert_eq!(F64.promote(C64), C64);
        assert_eq!(Scalar::Float(0.5).promote_with(I64), F32);
        assert_eq!(Scalar::Float(0.5).promote_with(BF16), BF16);
        assert_eq!(Scalar::Int(2).promote_with(Bool), I64);
    }
}
