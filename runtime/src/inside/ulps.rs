//! How far two values of one shape are apart: in units of the last place of the coarser dtype.
use xlazy_core::ty::{Category, DType, Type};

/// Where two values differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Difference {
    /// The greatest distance; [`u64::MAX`] where a number stands against none.
    pub ulps: u64,
    /// How many elements differ at all, and how many there are.
    pub elements: usize,
    pub of: usize,
    /// The element that differs most: its index, and both as text.
    index: Vec<usize>,
    here: String,
    there: String,
    /// The dtype whose last place counts; of integers it is the numbers themselves.
    dtype: Option<DType>,
}

impl Difference {
    /// This, where more differs than that much.
    pub fn above(self, ulps: u64) -> Option<Difference> {
        (self.elements > 0 && self.ulps > ulps).then_some(self)
    }

    pub fn ulps_text(&self) -> String {
        match self.ulps {
            u64::MAX => "–".into(),
            n => n.to_string(),
        }
    }

    /// `3 of 8 elements, at most by 2 ULP, at [1, 3]: 0.12345 here, 0.12346 there`.
    pub fn said(&self) -> String {
        let by = match (self.ulps, self.dtype.map(DType::category)) {
            (u64::MAX, _) => "one of them is no number".to_owned(),
            (n, Some(Category::Float)) => format!("at most by {n} ULP"),
            (n, _) => format!("at most by {n}"),
        };
        let of = if self.of == 1 {
            "its one element".to_owned()
        } else {
            format!("{} of {} elements", self.elements, self.of)
        };
        let at = if self.index.is_empty() { String::new() } else { format!(", at {:?}", self.index) };
        format!("{of}, {by}{at}: {} here, {} there", self.here, self.there)
    }
}

/// How far the elements are apart; both have the same shape.
pub(crate) fn difference((ty, here): (&Type, &[u8]), (other, there): (&Type, &[u8])) -> Difference {
    let floats = |d: DType| d.category() == Category::Float;
    let coarser = match (floats(ty.dtype), floats(other.dtype)) {
        // Of two of one size the one with fewer digits, as bfloat16 has.
        (true, true) if digits(other.dtype) < digits(ty.dtype) => other.dtype,
        (false, true) => other.dtype,
        _ => ty.dtype,
    };
    let mut out = Difference { of: ty.shape.numel(), dtype: Some(coarser), ..Difference::default() };
    let (a, b) = (here.chunks_exact(ty.dtype.size()), there.chunks_exact(other.dtype.size()));
    let mut worst = None;
    for (i, (a, b)) in a.zip(b).enumerate() {
        if ty.dtype == other.dtype && a == b {
            continue;
        }
        let ulps = match floats(coarser) {
            true => apart(coarser, ty.dtype.read(a).as_f64(), other.dtype.read(b).as_f64()),
            false => ty.dtype.integer(a).abs_diff(other.dtype.integer(b)).try_into().unwrap_or(u64::MAX),
        };
        if ulps > 0 {
            out.elements += 1;
            if ulps > out.ulps {
                out.ulps = ulps;
                worst = Some((i, a, b));
            }
        }
    }
    if let Some((i, a, b)) = worst {
        let text = |bytes: &[u8], d: DType| match floats(d) {
            true if d == DType::F32 => format!("{:?}", d.read(bytes).as_f64() as f32),
            true => format!("{:?}", d.read(bytes).as_f64()),
            false => d.integer(bytes).to_string(),
        };
        (out.here, out.there) = (text(a, ty.dtype), text(b, other.dtype));
        out.index = ty.shape.strides().iter().zip(ty.shape.iter()).map(|(stride, size)| i / stride % size).collect();
    }
    out
}

/// How many digits behind the point a dtype has, in bits: how far one and the next number are apart.
fn digits(dtype: DType) -> u32 {
    let one = ordered(dtype, 1.0);
    let mut near = Vec::new();
    // The number behind one: its distance is a power of two.
    let bits = dtype.size() * 8;
    let next = (one + 1) as u64;
    near.extend_from_slice(&next.to_le_bytes()[..bits / 8]);
    (-(dtype.read(&near).as_f64() - 1.0).log2()) as u32
}

/// Units of the last place between two numbers; NaN equals NaN, and zeros of both signs are one.
fn apart(dtype: DType, a: f64, b: f64) -> u64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => 0,
        (false, false) => ordered(dtype, a).abs_diff(ordered(dtype, b)),
        _ => u64::MAX,
    }
}

/// A number as its place among all of the dtype.
fn ordered(dtype: DType, v: f64) -> i64 {
    let mut bytes = Vec::new();
    dtype.write(xlazy_core::ty::Scalar::Float(v), &mut bytes);
    let mut wide = [0u8; 8];
    wide[..bytes.len()].copy_from_slice(&bytes);
    let (bits, sign) = (u64::from_le_bytes(wide), 1u64 << (8 * bytes.len() - 1));
    match bits & sign {
        0 => bits as i64,
        _ => -((bits & !sign) as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xlazy_core::ty::Shape;

    fn of(a: &[f32], b: &[f32]) -> Difference {
        let ty = Type::new(DType::F32, Shape::new(&[a.len()]));
        difference((&ty, bytemuck::cast_slice(a)), (&ty, bytemuck::cast_slice(b)))
    }

    #[test]
    fn the_next_number_is_one_unit_away_wherever_it_is() {
        for v in [0.0f32, 1.0, -1.0, 1e-40, 3.4e38, 1.9999999, -7.25] {
            let next = f32::from_bits(v.to_bits() + 1);
            assert_eq!(of(&[v], &[next]).ulps, 1, "{v}");
        }
        assert_eq!(of(&[-1e-45], &[1e-45]).ulps, 2);
        assert_eq!(of(&[0.0], &[-0.0]).elements, 0);
    }

    #[test]
    fn what_is_no_number_is_told_apart() {
        assert_eq!(of(&[f32::NAN, 1.0], &[f32::NAN, 1.0]).elements, 0);
        let d = of(&[1.0, f32::NAN, 3.0], &[1.0, 2.0, 4.0]);
        assert_eq!((d.elements, d.ulps, d.index.as_slice()), (2, u64::MAX, &[1][..]));
        assert!(d.said().contains("no number") && d.said().contains("NaN here, 2.0 there"), "{}", d.said());
    }

    #[test]
    fn the_coarser_of_two_dtypes_counts() {
        let half = |v: f32| v.to_bits().to_le_bytes()[2..].to_vec();
        let (wide, narrow) = (Type::new(DType::F32, Shape::new(&[2])), Type::new(DType::BF16, Shape::new(&[2])));
        let there = [half(1.0), half(2.0)].concat();
        let here = [1.001f32, 2.1];
        let d = difference((&wide, bytemuck::cast_slice(&here)), (&narrow, &there));
        // 1.001 is 1 in bfloat16; 2.1 is six steps of 1/64 from 2.
        assert_eq!((d.elements, d.ulps, d.dtype), (1, 6, Some(DType::BF16)));
        assert_eq!([DType::F32, DType::F16, DType::BF16, DType::F64].map(digits), [23, 10, 7, 52]);
    }

    #[test]
    fn distances_are_symmetric_and_add_up() {
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        let mut drawn = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            f32::from_bits((seed as u32) & 0xbfff_ffff)
        };
        for _ in 0..2000 {
            let mut three = [drawn(), drawn(), drawn()];
            if three.iter().any(|v| v.is_nan()) {
                continue;
            }
            three.sort_by(f32::total_cmp);
            let [a, b, c] = three;
            let d = |a: f32, b: f32| apart(DType::F32, a.into(), b.into());
            assert_eq!(d(a, c), d(c, a));
            assert_eq!(d(a, b) + d(b, c), d(a, c), "{a} {b} {c}");
        }
    }
}
