//! Means, and tests of whether two samples have the same law.

/// Mean; NaN of nothing.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// Largest; −∞ of nothing.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

/// Standard deviation of a sample; NaN of fewer than two values.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values.iter().copied());
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

/// The mean of `a` over that of `b`, and its standard error by the first terms of its expansion, for samples that do not
/// depend on each other.
pub(crate) fn quotient(a: &[f64], b: &[f64]) -> (f64, f64) {
    let value = mean(a.iter().copied()) / mean(b.iter().copied());
    let relative = |sample: &[f64]| (deviation(sample) / mean(sample.iter().copied())).powi(2) / sample.len() as f64;
    (value, value * (relative(a) + relative(b)).sqrt())
}

/// exp of the mean of the logarithms.
pub(crate) fn geometric_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    mean(values.into_iter().map(f64::ln)).exp()
}

/// Fisher's exact test, two-sided: how likely are two proportions at least as unlike as `a` of `n` and `b` of `m`, if
/// they are of the same law? The sum of the probabilities of all tables no likelier than the one at hand.
pub(crate) fn proportions_p_value((a, n): (u64, u64), (b, m): (u64, u64)) -> f64 {
    let logs: Vec<f64> = std::iter::once(0.0)
        .chain((1..=n + m).scan(0.0, |sum, i| {
            *sum += (i as f64).ln();
            Some(*sum)
        }))
        .collect();
    let choose = |n: u64, k: u64| logs[n as usize] - logs[k as usize] - logs[(n - k) as usize];
    let hits = a + b;
    let probability = |x: u64| (choose(n, x) + choose(m, hits - x) - choose(n + m, hits)).exp();
    let here = probability(a) * (1.0 + 1e-9);
    let (first, last) = (hits.saturating_sub(m), hits.min(n));
    (first..=last).map(probability).filter(|&p| p <= here).sum::<f64>().min(1.0)
}

/// The difference of two proportions, `a` of `n` less `b` of `m`, and its standard error, each with one hit and one miss more
/// (A. Agresti, B. Caffo, "Simple and effective confidence intervals for proportions and differences of proportions", The
/// American Statistician 54, 2000).
pub(crate) fn proportions_apart((a, n): (u64, u64), (b, m): (u64, u64)) -> (f64, f64) {
    let share = |hits: u64, all: u64| (hits as f64 + 1.0) / (all as f64 + 2.0);
    let variance = |share: f64, all: u64| share * (1.0 - share) / (all as f64 + 2.0);
    let (p, q) = (share(a, n), share(b, m));
    (p - q, (variance(p, n) + variance(q, m)).sqrt())
}

/// How many standard errors a normal variable is off by more than with this probability.
pub(crate) fn standard_errors(probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if complementary_error(middle / std::f64::consts::SQRT_2) > probability { low = middle } else { high = middle }
    }
    high
}

/// The test of Mann and Whitney, two-sided, by the normal approximation with ties corrected: how likely are two samples
/// at least as far apart in rank, if they are of the same law?
pub(crate) fn ranks_p_value(a: &[f64], b: &[f64]) -> f64 {
    let mut all: Vec<(f64, bool)> = a.iter().map(|&v| (v, true)).chain(b.iter().map(|&v| (v, false))).collect();
    all.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (n, m) = (a.len() as f64, b.len() as f64);
    let (mut rank_sum, mut ties, mut start) = (0.0, 0.0, 0);
    while start < all.len() {
        let same = all[start..].iter().take_while(|pair| pair.0 == all[start].0).count();
        let rank = start as f64 + (same as f64 + 1.0) / 2.0;
        rank_sum += rank * all[start..start + same].iter().filter(|pair| pair.1).count() as f64;
        ties += (same as f64).powi(3) - same as f64;
        start += same;
    }
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    // All values are the same (ties leave nothing but rounding).
    if variance.is_nan() || variance <= 1e-9 * n * m * total {
        return 1.0;
    }
    let u = rank_sum - n * (n + 1.0) / 2.0;
    let z = ((u - n * m / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    complementary_error(z / std::f64::consts::SQRT_2)
}

/// erfc(x) for x ≥ 0 to a relative 1.2e-7 (W. H. Press et al., "Numerical Recipes", Chebyshev fitting).
fn complementary_error(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + 0.5 * x);
    let polynomial = COEFFICIENTS.iter().rev().fold(0.0, |sum, c| sum * t + c);
    t * (-x * x + polynomial).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nystream::random::Generator;

    #[test]
    fn fishers_test_matches_known_values() {
        // R: fisher.test(matrix(c(3, 1, 1, 3), 2)) gives 0.4857; c(10, 0, 2, 8) gives 0.0007145.
        assert!((proportions_p_value((3, 4), (1, 4)) - 0.485_714_285_7).abs() < 1e-9);
        assert!((proportions_p_value((10, 10), (2, 10)) - 0.000_714_5).abs() < 1e-7);
        assert_eq!(proportions_p_value((200, 200), (200, 200)), 1.0);
    }

    #[test]
    fn proportions_are_as_far_off_as_their_standard_errors_say() {
        let (p, q, n) = (0.97, 0.93, 200);
        let mut rng = Generator::new(8);
        let mut hits = |share: f64| ((0..n).filter(|_| rng.uniform() < share).count() as u64, n);
        let (times, z) = (2000, standard_errors(0.05));
        let outside = (0..times).filter(|_| {
            let (apart, error) = proportions_apart(hits(p), hits(q));
            (apart - (p - q)).abs() > z * error
        });
        let outside = outside.count() as f64 / f64::from(times);
        assert!((0.03..0.065).contains(&outside), "{outside}");
        assert_eq!(proportions_apart((5, 9), (5, 9)).0, 0.0);
    }

    #[test]
    fn tail_probabilities_are_those_of_the_normal() {
        for (z, expected) in [(0.0, 1.0), (1.959_963_985, 0.05), (3.290_526_731, 0.001)] {
            assert!((complementary_error(z / std::f64::consts::SQRT_2) - expected).abs() < 1e-6);
            assert!((standard_errors(expected) - z).abs() < 1e-3);
        }
    }

    #[test]
    fn quotients_are_as_far_off_as_their_standard_errors_say() {
        let mut rng = Generator::new(2);
        let mut draw = |centre: f64| -> Vec<f64> { (0..50).map(|_| centre + rng.normal()).collect() };
        let found: Vec<(f64, f64)> = (0..400).map(|_| quotient(&draw(8.0), &draw(5.0))).collect();
        let values: Vec<f64> = found.iter().map(|pair| pair.0).collect();
        let stated = mean(found.iter().map(|pair| pair.1));
        // The deviation of 400 values is itself good to 3.5 %; four times that.
        assert!((deviation(&values) / stated - 1.0).abs() < 0.14, "{} {stated}", deviation(&values));
        assert!((mean(values) - 1.6).abs() < 0.02);
        assert!(quotient(&[2.0], &[1.0]).1.is_nan());
    }

    #[test]
    fn equal_laws_are_rarely_told_apart_and_shifted_ones_are() {
        let mut rng = Generator::new(1);
        let mut draw = |shift: f64| -> Vec<f64> { (0..100).map(|_| (rng.normal() + shift).round()).collect() };
        // Of 200 tests at 5 % some 10 reject; more than 25 with probability below 1e-5.
        let rejected = (0..200).filter(|_| ranks_p_value(&draw(0.0), &draw(0.0)) < 0.05).count();
        assert!(rejected < 25, "{rejected}");
        assert!(ranks_p_value(&draw(0.0), &draw(1.0)) < 1e-4);
        assert_eq!(ranks_p_value(&[1.0; 50], &[1.0; 50]), 1.0);
    }
}
