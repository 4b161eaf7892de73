//! What there is to say of many numbers: extremes, mean, deviation, how many are none, a histogram.
use xlazy_core::ty::{Category, DType};

/// Bars of a histogram.
const BARS: usize = 16;

/// Of the elements of a value. Least, greatest, mean and deviation are those of the finite ones; a complex number counts by its
/// absolute value, a bool as 0 or 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Summary {
    pub elements: usize,
    pub nans: usize,
    pub infinities: usize,
    pub zeros: usize,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    /// Of a sample (`torch.std`); NaN of less than two.
    pub std: f64,
    /// How many lie in each of so many equal parts between least and greatest.
    pub histogram: Vec<u64>,
}

impl Summary {
    pub fn of(dtype: DType, bytes: &[u8]) -> Summary {
        let values = bytes.chunks_exact(dtype.size());
        match dtype.category() {
            Category::Complex => {
                let (part, size) = (dtype.part(), dtype.part().size());
                let abs = |b: &[u8]| modulus(part.read(&b[..size]).as_f64(), part.read(&b[size..]).as_f64());
                Summary::of_numbers(values.map(abs))
            }
            Category::Bool => Summary::of_numbers(bytes.iter().map(|&b| f64::from(b))),
            Category::Int | Category::Float => Summary::of_numbers(values.map(|b| dtype.number(b))),
        }
    }

    fn of_numbers(values: impl Iterator<Item = f64> + Clone) -> Summary {
        let mut s = Summary { min: f64::INFINITY, max: f64::NEG_INFINITY, ..Summary::default() };
        // Welford: one pass that does not lose small deviations beside a large mean.
        let (mut n, mut squares) = (0.0, 0.0);
        for v in values.clone() {
            s.elements += 1;
            if v.is_nan() {
                s.nans += 1;
            } else if v.is_infinite() {
                s.infinities += 1;
            } else {
                s.zeros += usize::from(v == 0.0);
                (s.min, s.max) = (s.min.min(v), s.max.max(v));
                n += 1.0;
                let off = v - s.mean;
                s.mean += off / n;
                squares += off * (v - s.mean);
            }
        }
        if n == 0.0 {
            (s.min, s.max, s.mean) = (f64::NAN, f64::NAN, f64::NAN);
        }
        s.std = if n < 2.0 { f64::NAN } else { (squares / (n - 1.0)).sqrt() };
        let width = s.max - s.min;
        if width > 0.0 && width.is_finite() {
            s.histogram = vec![0; BARS];
            let bar = |v: f64| (((v - s.min) / width * BARS as f64) as usize).min(BARS - 1);
            values.filter(|v| v.is_finite()).for_each(|v| s.histogram[bar(v)] += 1);
        }
        s
    }

    /// The histogram as a line of blocks; what is rare is seen, too.
    pub fn blocks(&self) -> String {
        const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let most = self.histogram.iter().copied().max().unwrap_or(0).max(1);
        let block = |&n: &u64| match n {
            0 => ' ',
            n => BLOCKS[((n * 8).div_ceil(most) - 1) as usize],
        };
        self.histogram.iter().map(block).collect()
    }
}

/// The modulus of a complex number, of whatever size. libm's `hypot` asks for glibc 2.35, which is more than wheels want of a machine.
fn modulus(re: f64, im: f64) -> f64 {
    let most = re.abs().max(im.abs());
    if most == 0.0 || most.is_infinite() || re.is_nan() || im.is_nan() {
        return if most.is_infinite() { most } else { re.abs() + im.abs() };
    }
    most * ((re / most).powi(2) + (im / most).powi(2)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f32]) -> Summary {
        Summary::of(DType::F32, bytemuck::cast_slice(values))
    }

    #[test]
    fn what_is_no_number_is_counted_and_left_out_of_the_rest() {
        let s = of(&[1.0, f32::NAN, 3.0, f32::INFINITY, 0.0, -4.0]);
        assert_eq!((s.elements, s.nans, s.infinities, s.zeros), (6, 1, 1, 1));
        assert_eq!((s.min, s.max, s.mean), (-4.0, 3.0, 0.0));
        assert!((s.std - (26.0f64 / 3.0).sqrt()).abs() < 1e-12, "{}", s.std);
        assert_eq!(s.histogram.iter().sum::<u64>(), 4);
        let none = of(&[f32::NAN]);
        assert!(none.min.is_nan() && none.mean.is_nan() && none.std.is_nan() && none.histogram.is_empty());
        assert_eq!(of(&[]).elements, 0);
        assert!(of(&[2.0, 2.0]).histogram.is_empty() && of(&[2.0, 2.0]).std == 0.0);
    }

    #[test]
    fn every_bar_that_has_something_is_seen() {
        let mut values = vec![0.0f32; 10_000];
        values.push(1.0);
        assert_eq!(of(&values).blocks(), "█              ▁");
        let whole: Vec<u8> = [1i64, 2, 3].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(Summary::of(DType::I64, &whole).mean, 2.0);
    }
}
