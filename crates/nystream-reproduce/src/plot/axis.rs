//! One axis: its range, where the ticks stand and what is written beside them.

/// A range of values, linear or logarithmic, with its ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    log: bool,
    /// Labelled positions.
    pub ticks: Vec<(f64, String)>,
    /// Positions of fine grid lines between the labelled ones.
    pub fine: Vec<f64>,
}

impl Axis {
    /// An axis over all `values` (each [`drawable`]) with a margin of `margin` of its length at both
    /// ends and about `count` ticks.
    pub fn over(values: impl Iterator<Item = f64>, log: bool, margin: f64, count: usize) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = if log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        let (low, high) = if log { log_range(low, high, margin) } else { linear_range(low, high, margin) };
        let count = count.max(2);
        let positions = if log { log_ticks(low, high, count) } else { linear_ticks(low, high, count) };
        let ticks = label(&positions, log);
        let fine = if log && high / low >= 5.0 && high / low <= 1e6 { fine_lines(low, high) } else { Vec::new() };
        Self { low, high, log, ticks, fine }
    }

    /// Where `value` stands: 0 at the low end, 1 at the high end.
    pub fn place(&self, value: f64) -> f64 {
        let (value, low, high) =
            if self.log { (value.ln(), self.low.ln(), self.high.ln()) } else { (value, self.low, self.high) };
        // Halves, because the difference of two huge numbers overflows.
        ((value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)).clamp(0.0, 1.0)
    }
}

/// Whether `value` has a place on such an axis.
pub fn drawable(value: f64, log: bool) -> bool {
    value.is_finite() && (!log || value > 0.0)
}

fn linear_range(low: f64, high: f64, margin: f64) -> (f64, f64) {
    let half = high / 2.0 - low / 2.0;
    let size = low.abs().max(high.abs());
    let pad = if half <= 1e-11 * size || half == 0.0 {
        // One value: put it in the middle of a range of its own size.
        if size > 1e-300 { 0.1 * size } else { 1.0 }
    } else {
        2.0 * half * margin
    };
    // A quantity that is never negative gets no negative ticks.
    let padded = if low >= 0.0 { (low - pad).max(0.0) } else { low - pad };
    (padded.max(f64::MIN), (high + pad).min(f64::MAX))
}

fn log_range(low: f64, high: f64, margin: f64) -> (f64, f64) {
    let decades = high.log10() - low.log10();
    let pad = if decades < 1e-9 { 0.5 } else { decades * margin };
    let end = |exponent: f64| 10f64.powf(exponent).clamp(f64::MIN_POSITIVE, f64::MAX);
    (end(low.log10() - pad).min(low), end(high.log10() + pad).max(high))
}

fn linear_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let rough = (high / 2.0 - low / 2.0) / count as f64 * 2.0;
    let unit = 10f64.powf(rough.log10().floor());
    let Some(step) = [1.0, 2.0, 2.5, 5.0, 10.0].map(|s| s * unit).into_iter().find(|&step| step >= rough) else {
        return vec![low, high];
    };
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    // Not a number where the range is too small for steps.
    if (last - first).is_nan() || last - first >= 2.0 * count as f64 + 2.0 {
        return vec![low, high];
    }
    (0..=(last - first) as usize).map(|i| (first + i as f64) * step).collect()
}

fn log_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let inside = |&value: &f64| value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9);
    let multiples = |factors: &[f64]| -> Vec<f64> {
        let all = (first..=last).flat_map(|decade| factors.iter().map(move |factor| factor * power(decade)));
        all.filter(inside).collect()
    };
    if high / low < 3.0 {
        return linear_ticks(low, high, count);
    }
    for factors in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0]] {
        let ticks = multiples(factors);
        if ticks.len() <= count {
            return ticks;
        }
    }
    let every = ((last - first) as usize).div_ceil(count).max(1) as i32;
    let decades = (first..=last).filter(|decade| decade % every == 0).map(power);
    decades.filter(inside).collect()
}

fn fine_lines(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let all = (first..=last).flat_map(|decade| (1..10).map(move |factor| f64::from(factor) * power(decade)));
    all.filter(|&value| value > low && value < high).collect()
}

/// 10 to the power `decade`, the float nearest to the decimal number (`powi` is off by a bit).
fn power(decade: i32) -> f64 {
    format!("1e{decade}").parse().unwrap_or(f64::MAX)
}

fn label(positions: &[f64], log: bool) -> Vec<(f64, String)> {
    let largest = positions.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let suffixes = log || largest >= 10_000.0;
    let step = positions.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(f64::INFINITY, f64::min);
    let text = |value: f64| {
        if value.abs() < step * 1e-6 {
            return "0".to_string();
        }
        // A short range far from zero is better off with plain numbers than with 1.000025M.
        let (unit, suffix) = if suffixes { unit(value) } else { (1.0, "") };
        let (unit, suffix) = if !log && step < unit / 1000.0 { (1.0, "") } else { (unit, suffix) };
        let small = value.abs() < 0.9e-3 && (log || largest < 1e-3);
        if small || value.abs() >= 1e15 {
            return format!("{:e}", rounded(value));
        }
        let scaled = value / unit;
        let digits = decimals(if step.is_finite() && !log { step / unit } else { scaled });
        let text = format!("{scaled:.digits$}");
        let text = if log && text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        format!("{text}{suffix}")
    };
    positions.iter().map(|&value| (value, text(value).replace('-', "−"))).collect()
}

fn unit(value: f64) -> (f64, &'static str) {
    match value.abs() {
        size if size < 999.5 => (1.0, ""),
        size if size < 999.5e3 => (1e3, "k"),
        size if size < 999.5e6 => (1e6, "M"),
        size if size < 999.5e9 => (1e9, "G"),
        _ => (1e12, "T"),
    }
}

/// Four significant digits, to rid a multiple of the step of its rounding error.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// How many decimals write `step` to three significant digits, without trailing zeros.
fn decimals(step: f64) -> usize {
    let exponent = step.abs().log10().floor() as i32;
    let most = (2 - exponent).clamp(0, 12) as usize;
    let text = format!("{step:.most$}");
    text.split_once('.').map_or(0, |(_, fraction)| fraction.trim_end_matches('0').len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], log: bool) -> Vec<String> {
        let axis = Axis::over(values.iter().copied(), log, 0.0, 6);
        axis.ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(
            labels(&[0.0, 1.0], false),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"].map(|s| s.replace("0.0", "0"))
        );
        assert_eq!(labels(&[-3.0, 3.0], false), ["−3", "−2", "−1", "0", "1", "2", "3"]);
        assert_eq!(labels(&[0.0, 50_000.0], false), ["0", "10k", "20k", "30k", "40k", "50k"]);
        assert_eq!(labels(&[1e6, 1e6 + 10.0], false)[..2], ["1000000", "1000002"]);
        assert_eq!(labels(&[0.0, 1.25e-5], false), ["0", "2.5e−6", "5e−6", "7.5e−6", "1e−5", "1.25e−5"]);
    }

    #[test]
    fn log_ticks_use_suffixes() {
        assert_eq!(labels(&[100.0, 1e7], true), ["100", "1k", "10k", "100k", "1M", "10M"]);
        assert_eq!(labels(&[0.1, 10.0], true), ["0.1", "0.3", "1", "3", "10"]);
        assert_eq!(labels(&[1e-5, 1.0], true), ["1e−5", "1e−4", "0.001", "0.01", "0.1", "1"]);
        assert_eq!(labels(&[0.5, 1.2], true), ["0.6", "0.8", "1", "1.2"]);
        assert!(labels(&[1e-300, 1e300], true).len() >= 4);
    }

    #[test]
    fn extremes_have_finite_places_and_few_ticks() {
        for values in [
            &[][..],
            &[0.0],
            &[5e-324],
            &[1e300],
            &[f64::MAX],
            &[f64::MIN, f64::MAX],
            &[1e16, 1e16 + 2.0],
            &[5e-324, 1e-323],
            &[1.0, 1.0 + 1e-12],
            &[1e6, 1e6 + 1e-3],
        ] {
            for log in [false, true] {
                let values: Vec<f64> = values.iter().copied().filter(|&value| drawable(value, log)).collect();
                let axis = Axis::over(values.iter().copied(), log, 0.05, 6);
                assert!(axis.low < axis.high, "{values:?} {log}");
                assert!(axis.ticks.len() <= 14, "{values:?} {log} {:?}", axis.ticks);
                assert!(axis.ticks.iter().all(|(_, text)| text.len() <= 20), "{values:?} {log} {:?}", axis.ticks);
                assert!(values.iter().all(|&value| axis.place(value).is_finite()), "{values:?} {log}");
            }
        }
    }

    #[test]
    fn places_run_from_zero_to_one() {
        let axis = Axis::over([1.0, 100.0].into_iter(), true, 0.0, 5);
        assert!((axis.place(10.0) - 0.5).abs() < 1e-12);
        assert_eq!((axis.place(1.0), axis.place(100.0)), (0.0, 1.0));
        let axis = Axis::over([f64::MIN, f64::MAX].into_iter(), false, 0.0, 5);
        assert_eq!(axis.place(0.0), 0.5);
    }

    #[test]
    fn what_is_never_negative_has_no_negative_range() {
        let axis = Axis::over([0.01, 1.0].into_iter(), false, 0.05, 5);
        assert_eq!(axis.low, 0.0);
        assert!(Axis::over([-0.01, 1.0].into_iter(), false, 0.05, 5).low < -0.01);
    }
}
