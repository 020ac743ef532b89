//! The one source of randomness: a seeded ChaCha8 generator that serialises with its position.
//!
//! The samplers are our own few lines, so that a saved state continues with the same draws
//! whatever version of a distribution library is around.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// A random generator whose whole state is plain data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generator(ChaCha8Rng);

impl Generator {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// An independent generator of the same seed; `purpose` tells the streams apart.
    pub fn with_stream(seed: u64, purpose: u64) -> Self {
        let mut inner = ChaCha8Rng::seed_from_u64(seed);
        inner.set_stream(purpose);
        Self(inner)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..n, without bias. `n` must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        // Lemire's multiply-shift with rejection.
        let threshold = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.bits()) * u128::from(n);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// True with probability `p`.
    pub fn bernoulli(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Successes in `trials` trials of probability `p`, by inversion of the distribution function: one uniform
    /// number for every 64 trials or part of them, none where `p` leaves no choice.
    pub fn binomial(&mut self, trials: u64, p: f64) -> u64 {
        if p > 0.5 {
            return trials - self.binomial(trials, 1.0 - p);
        }
        if p.is_nan() || p <= 0.0 || trials == 0 {
            return 0;
        }
        let odds = p / (1.0 - p);
        let mut successes = 0;
        let mut left = trials;
        while left > 0 {
            // Few enough that the smallest term, (1 − p)⁶⁴, is far from underflow.
            let n = left.min(64);
            left -= n;
            let mut level = self.uniform();
            let mut term = (1.0 - p).powi(n as i32);
            let mut k = 0;
            while level >= term && k < n {
                level -= term;
                k += 1;
                term *= odds * (n - k + 1) as f64 / k as f64;
            }
            successes += k;
        }
        successes
    }

    /// Standard normal (Marsaglia's polar method; the second value is not kept, so the state stays plain).
    pub fn normal(&mut self) -> f64 {
        loop {
            let u = 2.0 * self.uniform() - 1.0;
            let v = 2.0 * self.uniform() - 1.0;
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                return u * (-2.0 * s.ln() / s).sqrt();
            }
        }
    }

    /// Shuffles in place (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// `count` different numbers of 0..n in increasing order; all of them if `count >= n`.
    pub fn choose(&mut self, n: usize, count: usize) -> Vec<usize> {
        // Selection sampling (Knuth, TAOCP 3.4.2, algorithm S): one pass, already sorted.
        let mut chosen = Vec::with_capacity(count.min(n));
        let mut needed = count.min(n);
        for i in 0..n {
            if needed == 0 {
                break;
            }
            if self.below((n - i) as u64) < needed as u64 {
                chosen.push(i);
                needed -= 1;
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_generator_continues_with_the_same_draws() {
        let mut rng = Generator::with_stream(7, 3);
        (0..13).for_each(|_| assert!(rng.normal().is_finite()));
        let mut copy: Generator = serde_json::from_str(&serde_json::to_string(&rng).unwrap()).unwrap();
        assert!((0..100).all(|_| rng.bits() == copy.bits()));
    }

    #[test]
    fn streams_of_one_seed_differ() {
        assert_ne!(Generator::with_stream(7, 0).bits(), Generator::with_stream(7, 1).bits());
    }

    #[test]
    fn normal_draws_have_unit_variance() {
        let mut rng = Generator::new(1);
        let n = 100_000;
        let (sum, squares) = (0..n).map(|_| rng.normal()).fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        // Five standard errors of the mean and of the variance.
        assert!((sum / n as f64).abs() < 5.0 / (n as f64).sqrt());
        assert!((squares / n as f64 - 1.0).abs() < 5.0 * (2.0 / n as f64).sqrt());
    }

    #[test]
    fn binomial_draws_have_the_binomial_distribution() {
        let mut rng = Generator::new(8);
        let draws = 40_000;
        for (trials, p) in [(1, 0.3), (5, 0.07), (5, 0.93), (20, 0.5), (100, 0.4), (1000, 0.99)] {
            let (n, mut hits) = (trials as usize, vec![0.0; trials as usize + 1]);
            (0..draws).for_each(|_| hits[rng.binomial(trials, p) as usize] += 1.0);
            let mut log_term = n as f64 * f64::ln_1p(-p);
            for (k, hit) in hits.iter().enumerate() {
                // Six standard deviations of a count, over fewer than 2,000 counts in all; 30 for the rarest.
                let expected = log_term.exp() * draws as f64;
                assert!((hit - expected).abs() < 6.0 * expected.sqrt() + 30.0, "{trials} {p} {k}: {hit} {expected}");
                log_term += (p / (1.0 - p) * (n - k) as f64 / (k + 1) as f64).ln();
            }
            let mean = hits.iter().enumerate().map(|(k, hit)| k as f64 * hit).sum::<f64>() / draws as f64;
            let deviation = (n as f64 * p * (1.0 - p) / draws as f64).sqrt();
            assert!((mean - n as f64 * p).abs() < 5.0 * deviation, "{trials} {p}: {mean}");
        }
        let before = rng.clone();
        assert_eq!((rng.binomial(7, 0.0), rng.binomial(7, 1.0), rng.binomial(0, 0.5)), (0, 7, 0));
        assert_eq!(rng.binomial(9, f64::NAN), 0);
        assert_eq!(rng, before);
    }

    #[test]
    fn chosen_numbers_are_different_and_uniform() {
        let mut rng = Generator::new(5);
        let mut hits = [0u32; 10];
        for _ in 0..10_000 {
            let chosen = rng.choose(10, 3);
            assert!(chosen.len() == 3 && chosen.windows(2).all(|w| w[0] < w[1]));
            chosen.iter().for_each(|&i| hits[i] += 1);
        }
        // Each is chosen with probability 0.3: mean 3000, standard deviation 46.
        assert!(hits.iter().all(|&h| (2770..3230).contains(&h)), "{hits:?}");
        assert_eq!(rng.choose(4, 9), [0, 1, 2, 3]);
    }
}
