//! Element types: one row each, from which all else that is known of them follows; PyTorch's promotion rules.
use super::format::Format;
use super::number::{Category, Scalar};
use xlazy_pjrt::BufferType;

macro_rules! dtypes {
    ($($(#[$doc:meta])* $dtype:ident $name:literal, $torch:literal, $mlir:literal, $pjrt:ident, $safetensors:literal,
        $format:ident $(($($bits:literal),*))?;)*) => {
        /// The element type of a tensor, named as in StableHLO; the torch names are aliases in the docs of each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DType {
            $($(#[$doc])* $dtype,)*
        }

        const ROWS: &[Row] = &[$(Row {
            name: $name,
            torch: $torch,
            mlir: $mlir,
            pjrt: BufferType::$pjrt,
            safetensors: $safetensors,
            format: Format::$format $(($($bits),*))?,
        },)*];

        impl DType {
            pub const ALL: [DType; ROWS.len()] = [$(DType::$dtype),*];
        }
    };
}

// What there is to say of a dtype; a new one is a row here, wider than those before it of its category. The columns: name in
// graphs and messages, name in torch, element type in StableHLO text, in the C API, in safetensors files, how elements lie.
dtypes! {
    /// `torch.bool`
    Bool "bool", "bool", "i1", Pred, "BOOL", Flag;
    /// `torch.uint8`
    U8 "u8", "uint8", "ui8", U8, "U8", Unsigned(8);
    /// `torch.int8`
    I8 "i8", "int8", "i8", S8, "I8", Signed(8);
    /// `torch.uint16`
    U16 "u16", "uint16", "ui16", U16, "U16", Unsigned(16);
    /// `torch.int16`
    I16 "i16", "int16", "i16", S16, "I16", Signed(16);
    /// `torch.uint32`
    U32 "u32", "uint32", "ui32", U32, "U32", Unsigned(32);
    /// `torch.int32`
    I32 "i32", "int32", "i32", S32, "I32", Signed(32);
    /// `torch.uint64`
    U64 "u64", "uint64", "ui64", U64, "U64", Unsigned(64);
    /// `torch.int64`
    I64 "i64", "int64", "i64", S64, "I64", Signed(64);
    /// `torch.float16`
    F16 "f16", "float16", "f16", F16, "F16", Float(5, 10);
    /// `torch.bfloat16`
    BF16 "bf16", "bfloat16", "bf16", BF16, "BF16", Float(8, 7);
    /// `torch.float32`, the default
    F32 "f32", "float32", "f32", F32, "F32", Float(8, 23);
    /// `torch.float64`
    F64 "f64", "float64", "f64", F64, "F64", Float(11, 52);
    /// `torch.complex64`
    C64 "c64", "complex64", "complex<f32>", C64, "C64", Complex(8, 23);
    /// `torch.complex128`
    C128 "c128", "complex128", "complex<f64>", C128, "", Complex(11, 52);
}

pub use DType::*;

struct Row {
    name: &'static str,
    torch: &'static str,
    mlir: &'static str,
    pjrt: BufferType,
    safetensors: &'static str,
    format: Format,
}

impl DType {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The torch name, such as `float32`.
    pub fn torch_name(self) -> &'static str {
        self.row().torch
    }

    /// The short name shown in graphs and messages, such as `f32`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The element type in StableHLO text.
    pub fn mlir(self) -> &'static str {
        self.row().mlir
    }

    /// The element type in a safetensors file; `None` where those hold no such.
    pub fn safetensors(self) -> Option<&'static str> {
        Some(self.row().safetensors).filter(|name| !name.is_empty())
    }

    pub fn pjrt(self) -> BufferType {
        self.row().pjrt
    }

    /// How the elements lie in memory and what numbers they can be.
    pub fn format(self) -> Format {
        self.row().format
    }

    /// Bytes per element on the host.
    pub fn size(self) -> usize {
        self.format().size()
    }

    pub fn category(self) -> Category {
        match self.format() {
            Format::Flag => Category::Bool,
            Format::Unsigned(_) | Format::Signed(_) => Category::Int,
            Format::Float(..) => Category::Float,
            Format::Complex(..) => Category::Complex,
        }
    }

    /// The largest finite number; of bools 1, of complex numbers that of a part.
    pub fn most(self) -> f64 {
        match self.format() {
            Format::Flag => 1.0,
            Format::Unsigned(bits) => 2f64.powi(bits as i32) - 1.0,
            Format::Signed(bits) => 2f64.powi(bits as i32 - 1) - 1.0,
            Format::Float(exponent, mantissa) | Format::Complex(exponent, mantissa) => {
                (2.0 - 2f64.powi(-(mantissa as i32))) * 2f64.powi((1 << (exponent - 1)) - 1)
            }
        }
    }

    /// The largest integer, or the smallest; as int64 has its bits. Of bools true or false.
    pub fn end(self, largest: bool) -> i64 {
        match (self.format(), largest) {
            (Format::Signed(bits), true) => i64::MAX >> (64 - bits),
            (Format::Signed(bits), false) => i64::MIN >> (64 - bits),
            (Format::Unsigned(bits), true) => (u64::MAX >> (64 - bits)) as i64,
            (_, largest) => largest as i64,
        }
    }

    pub fn is_float(self) -> bool {
        self.category() == Category::Float
    }

    /// Whether a gradient can flow through values of this dtype.
    pub fn is_differentiable(self) -> bool {
        self.category() >= Category::Float
    }

    pub fn is_unsigned(self) -> bool {
        matches!(self.format(), Format::Unsigned(_))
    }

    /// Why torch does not promote these: its wider unsigned integers meet their own dtype and floats only.
    pub fn refuses_promotion(self, other: DType) -> Option<String> {
        let bare = |d: DType| d.is_unsigned() && d.size() > 1;
        let apart = self != other && !self.is_float() && !other.is_float();
        (apart && (bare(self) || bare(other))).then(|| {
            format!(
                "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {} and {}: convert one \
                 with `.to({self:?})` or `.to({other:?})`",
                self.torch_name(),
                other.torch_name()
            )
        })
    }

    /// Whether it is a float narrower than float32, which sums and counts are computed in.
    pub fn is_half(self) -> bool {
        self.is_float() && self.size() < F32.size()
    }

    /// The dtype of the real and of the imaginary part of a complex number; its own of any other.
    pub fn part(self) -> DType {
        DType::ALL.into_iter().find(|d| d.format() == self.format().part()).unwrap_or(self)
    }

    pub fn is_complex(self) -> bool {
        self.category() == Category::Complex
    }

    /// The complex dtype whose parts are of this one, if there is one.
    pub fn complex(self) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.is_complex() && d.part() == self)
    }

    /// The dtype that numbers of user code travel in to a program that takes them as this one.
    pub fn carrier(self) -> DType {
        match (self.is_differentiable(), self.part().size() > 4) {
            (true, true) => F64,
            (true, false) => F32,
            (false, true) => I64,
            (false, false) => I32,
        }
    }

    /// The dtype that an operation between two tensors of these dtypes computes in (`torch.promote_types`).
    pub fn promote(self, other: DType) -> DType {
        if self == other {
            return self;
        }
        let (low, high) = if self < other { (self, other) } else { (other, self) };
        if low.category() != high.category() {
            // A complex number's parts hold the other's.
            let both = (high.is_complex() && low.is_float()).then(|| high.part().promote(low));
            return both.and_then(DType::complex).unwrap_or(high);
        }
        // The first that holds both: int16 for uint8 and int8.
        let holds = |d: &DType| d.format().holds(low.format()) && d.format().holds(high.format());
        DType::ALL.into_iter().find(holds).unwrap_or(high)
    }

    /// The float dtype that true division or a transcendental function of this dtype gives.
    pub fn to_float(self) -> DType {
        if self.is_differentiable() { self } else { F32 }
    }

    /// One element's value from its bytes; of a complex number the real part. An integer beyond 2⁶³ comes as its bits, see
    /// [`DType::integer`].
    pub fn read(self, bytes: &[u8]) -> Scalar {
        self.format().read(bytes)
    }

    /// An integer's value from its bytes, whatever its size.
    pub fn integer(self, bytes: &[u8]) -> i128 {
        self.format().integer(bytes)
    }

    /// An element's value as the nearest float, whatever its size; of a complex number the real part.
    pub fn number(self, bytes: &[u8]) -> f64 {
        match self.format() {
            Format::Unsigned(_) => self.integer(bytes) as f64,
            _ => self.read(bytes).as_f64(),
        }
    }

    /// Appends a number as an element: floats to the nearest (ties to even), integers cut to their size.
    pub fn write(self, number: Scalar, out: &mut Vec<u8>) {
        self.format().write(number, out)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Scalar {
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
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose values can be read from and written to tensors of one dtype.
pub trait Element: Copy + Send + Sync + bytemuck::NoUninit + sealed::Sealed + 'static {
    const DTYPE: DType;
    /// One element from its little-endian bytes.
    fn read(bytes: &[u8]) -> Self;
    fn write(self, out: &mut Vec<u8>);
    /// Elements one behind the other, by code that is compiled here and not in a cell.
    fn read_all(bytes: &[u8]) -> Vec<Self>;
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
            fn read_all(bytes: &[u8]) -> Vec<$t> {
                bytes.chunks_exact(size_of::<$t>()).map(<$t>::read).collect()
            }
        }
    )*};
}
element!(f32 => F32, f64 => F64, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8,
    u16 => U16, u32 => U32, u64 => U64);

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;
    fn read(bytes: &[u8]) -> bool {
        bytes[0] != 0
    }
    fn write(self, out: &mut Vec<u8>) {
        out.push(self as u8);
    }
    fn read_all(bytes: &[u8]) -> Vec<bool> {
        bytes.iter().map(|&x| x != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_torchs() {
        assert_eq!(I64.promote(F16), F16);
        assert_eq!(F16.promote(BF16), F32);
        assert_eq!(Bool.promote(U8), U8);
        assert_eq!((F64.promote(C64), F32.promote(C64), F16.promote(C64), I64.promote(C128)), (C128, C64, C64, C128));
        assert_eq!(U8.promote(I8), I16);
        assert_eq!((U8.promote(I16), I16.promote(I32), I16.promote(F16)), (I16, I32, F16));
        assert_eq!((U8.promote(I32), I8.promote(I64), F16.promote(F32), BF16.promote(F64)), (I32, I64, F32, F64));
        assert_eq!(Scalar::Float(0.5).promote_with(I64), F32);
        assert_eq!(Scalar::Float(0.5).promote_with(BF16), BF16);
        assert_eq!(Scalar::Int(2).promote_with(Bool), I64);
    }
}
