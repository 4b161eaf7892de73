//! Random numbers of the host: keys of the device's generator, starting values of parameters, orders of samples.

/// SplitMix64 (Steele, Lea, Flood 2014): a counter, hashed.
pub(crate) struct SplitMix(pub u64);

impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1), of 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix;

    #[test]
    fn numbers_have_the_moments_of_their_distributions() {
        let mut rng = SplitMix(7);
        let n = 100_000;
        let moments = |mut draw: Box<dyn FnMut() -> f64>| {
            let all: Vec<f64> = (0..n).map(|_| draw()).collect();
            let mean = all.iter().sum::<f64>() / n as f64;
            (mean, all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64)
        };
        let (mean, variance) = moments(Box::new(move || rng.uniform()));
        assert!((mean - 0.5).abs() < 0.01 && (variance - 1.0 / 12.0).abs() < 0.002, "{mean} {variance}");
        let mut rng = SplitMix(8);
        let (mean, variance) = moments(Box::new(move || rng.normal()));
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
