//! Elements as text, by torch's rules: four digits, scientific where the range asks for it, whole floats with a dot.
use xlazy_core::ty::{Category, DType};

/// How many digits stand behind the point.
#[derive(Clone, Copy)]
pub(super) enum Digits {
    /// As many as torch shows, in the style that suits all.
    Suitable,
    /// As in `{:.2}`.
    Fixed(usize),
    /// As in `{:.2e}`.
    Scientific(usize),
}

impl Digits {
    fn texts(self, values: &[f64]) -> Vec<String> {
        match self {
            Digits::Suitable => floats(values, 4),
            Digits::Fixed(digits) => values.iter().map(|&v| Style::Fixed.text(v, digits)).collect(),
            Digits::Scientific(digits) => values.iter().map(|&v| Style::Scientific.text(v, digits)).collect(),
        }
    }
}

/// Every element of `bytes` as text; the texts of one call go together and share a style.
pub(super) fn texts(dtype: DType, bytes: &[u8], digits: Digits) -> Vec<String> {
    match dtype.category() {
        Category::Bool => bytes.iter().map(|&b| (b != 0).to_string()).collect(),
        Category::Int => bytes.chunks_exact(dtype.size()).map(|b| dtype.integer(b).to_string()).collect(),
        Category::Float => {
            digits.texts(&bytes.chunks_exact(dtype.size()).map(|b| dtype.read(b).as_f64()).collect::<Vec<f64>>())
        }
        Category::Complex => {
            let (part, size) = (dtype.part(), dtype.part().size());
            let parts = |at: usize| {
                let numbers = bytes.chunks_exact(size).skip(at).step_by(2);
                digits.texts(&numbers.map(|b| part.read(b).as_f64()).collect::<Vec<f64>>())
            };
            let together = |(re, im): (String, String)| match im.starts_with('-') {
                true => format!("{re}{im}j"),
                false => format!("{re}+{im}j"),
            };
            parts(0).into_iter().zip(parts(1)).map(together).collect()
        }
    }
}

/// Floats in the one style that suits them all.
pub(super) fn floats(values: &[f64], digits: usize) -> Vec<String> {
    let style = Style::of(values);
    values.iter().map(|&v| style.text(v, digits)).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// `3.`
    Whole,
    /// `3.1416`
    Fixed,
    /// `3.1416e+00`
    Scientific,
}

impl Style {
    fn of(values: &[f64]) -> Style {
        let (mut least, mut most, mut whole) = (f64::INFINITY, 0.0f64, true);
        for v in values.iter().map(|v| v.abs()).filter(|v| v.is_finite()) {
            whole &= v.fract() == 0.0;
            if v > 0.0 {
                (least, most) = (least.min(v), most.max(v));
            }
        }
        let wide = most > 0.0 && (most / least > 1000.0 || most > 1e8);
        match whole {
            _ if wide => Style::Scientific,
            true => Style::Whole,
            false if least < 1e-4 => Style::Scientific,
            false => Style::Fixed,
        }
    }

    fn text(self, v: f64, digits: usize) -> String {
        if v.is_nan() {
            return "nan".into();
        }
        if v.is_infinite() {
            return if v > 0.0 { "inf".into() } else { "-inf".into() };
        }
        match self {
            Style::Whole => format!("{v:.0}."),
            Style::Fixed => format!("{v:.digits$}"),
            Style::Scientific => scientific(v, digits),
        }
    }
}

/// `1.5000e-03`: C's form, not Rust's.
fn scientific(v: f64, digits: usize) -> String {
    let text = format!("{v:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>2}")
}

/// A number for a caption or an axis: as short as it can be told.
pub(super) fn short(v: f64) -> String {
    if v == 0.0 || (1e-3..1e6).contains(&v.abs()) {
        let text = format!("{v:.4}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    if v.is_finite() { format!("{v:.3e}") } else { Style::Fixed.text(v, 4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_share_the_style_that_torch_picks() {
        let t = |v: &[f64]| floats(v, 4).join(" ");
        assert_eq!(t(&[1.0, 2.0, -3.0]), "1. 2. -3.");
        assert_eq!(t(&[1.5, 2.0]), "1.5000 2.0000");
        assert_eq!(t(&[1e-5, 1.0]), "1.0000e-05 1.0000e+00");
        assert_eq!(t(&[1.0, 1001.0]), "1.0000e+00 1.0010e+03");
        assert_eq!(t(&[123456789.5]), "1.2346e+08");
        assert_eq!(t(&[f64::NAN, 1.0, f64::NEG_INFINITY]), "nan 1. -inf");
        assert_eq!(t(&[0.0, 0.5, f64::INFINITY]), "0.0000 0.5000 inf");
        assert_eq!(t(&[]), "");
    }

    #[test]
    fn short_numbers_are_short() {
        assert_eq!([0.5, 12.0, 1e-9, -2.34567].map(short).join(" "), "0.5 12 1.000e-9 -2.3457");
    }
}
