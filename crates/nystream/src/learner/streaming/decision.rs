//! Where two classes are told apart: the output above which a row is said to be of the second class.
//!
//! A regression on codes ±1 estimates the mean code, and 0 would be the place if it had no error. With few atoms it has: where
//! one class is rare, outputs of its rows stay nearer to the other's code, and on ijcnn1 (10 % in one class) 0 makes half as
//! many mistakes again as −0.3 does. Outputs predicted before their rows were learnt are counted by class, and the place
//! that would have made fewest mistakes so far is taken, if 0 would have made more by several standard errors; few rows say
//! nothing (measured: without that condition german and svmguide3, of 1,000 rows, got worse).

use serde::{Deserialize, Serialize};

/// Counters for outputs, from −`REACH` to `REACH`; what lies outside is counted at the ends.
const BINS: usize = 256;
const REACH: f64 = 2.0;
/// Rows between choices.
const EVERY: u32 = 64;
/// Standard errors by which 0 must be worse. The best of many places is taken, so two are not enough.
const CLEARLY: f64 = 3.0;
/// Counts are in units of the newest row's; with forgetting that unit grows until here.
const LARGEST_UNIT: f64 = 1e100;

/// Counts of outputs by class, and the place chosen by them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Decision {
    /// Of rows of code −1, then of +1; empty before the first row, and for ever if targets are not ±1.
    counts: [Vec<f64>; 2],
    /// What the newest row counts.
    unit: f64,
    since: u32,
    threshold: f64,
    /// Whether targets have turned out not to be two classes.
    numbers: bool,
}

impl Default for Decision {
    fn default() -> Self {
        Self { counts: [Vec::new(), Vec::new()], unit: 1.0, since: 0, threshold: 0.0, numbers: false }
    }
}

impl Decision {
    /// The output above which a row is said to be of the second class.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Whether rows of two classes have been seen, and nothing else.
    pub fn of_classes(&self) -> bool {
        !self.counts[0].is_empty()
    }

    /// Takes what was predicted of a row, and its codes. Rows before it count `decay` of what they did.
    pub fn take(&mut self, predicted: &[f64], codes: &[f64], decay: f64) {
        let ([output], [code]) = (predicted, codes) else { return };
        if self.numbers || code.abs() != 1.0 {
            *self = Self { numbers: true, ..Self::default() };
            return;
        }
        self.counts.iter_mut().for_each(|counts| counts.resize(BINS, 0.0));
        self.unit /= decay;
        if self.unit > LARGEST_UNIT {
            self.counts.iter_mut().flatten().for_each(|count| *count /= self.unit);
            self.unit = 1.0;
        }
        self.counts[usize::from(*code > 0.0)][bin(*output)] += self.unit;
        self.since += 1;
        if self.since >= EVERY {
            self.choose();
        }
    }

    /// Adds the rows of another.
    pub fn add(&mut self, other: &Self) {
        if self.numbers || other.counts[0].is_empty() {
            return;
        }
        self.counts.iter_mut().for_each(|counts| counts.resize(BINS, 0.0));
        for (mine, theirs) in self.counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
            *mine += theirs * (self.unit / other.unit);
        }
        self.choose();
    }

    fn choose(&mut self) {
        self.since = 0;
        let [first, second] = &self.counts;
        // Mistakes of the place at the lower edge of every bin: rows of the second class below it, of the first above.
        let mut mistakes = Vec::with_capacity(BINS + 1);
        let mut wrong = first.iter().sum::<f64>();
        for (first, second) in first.iter().zip(second) {
            mistakes.push(wrong);
            wrong += second - first;
        }
        mistakes.push(wrong);
        let zero = BINS / 2;
        let nearer =
            |a: &usize, b: &usize| mistakes[*a].total_cmp(&mistakes[*b]).then(a.abs_diff(zero).cmp(&b.abs_diff(zero)));
        let best = (0..=BINS).min_by(nearer).unwrap_or(zero);
        let between = best.min(zero)..best.max(zero);
        let differ = (first[between.clone()].iter().sum::<f64>() + second[between].iter().sum::<f64>()) / self.unit;
        let gain = (mistakes[zero] - mistakes[best]) / self.unit;
        let clear = gain > CLEARLY * differ.sqrt();
        self.threshold = if clear { edge(best) } else { 0.0 };
    }

    /// Whether it can have been made by [`take`](Self::take).
    pub fn is_sound(&self) -> bool {
        let counts = |counts: &Vec<f64>| {
            (counts.is_empty() || counts.len() == BINS) && counts.iter().all(|c| c.is_finite() && *c >= 0.0)
        };
        self.counts.iter().all(counts)
            && self.counts[0].len() == self.counts[1].len()
            && self.unit >= 1.0
            && self.unit <= LARGEST_UNIT
            && self.threshold.abs() <= REACH
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        8 * (self.counts[0].capacity() + self.counts[1].capacity())
    }
}

/// The lower edge of a bin.
fn edge(bin: usize) -> f64 {
    (bin as f64 / BINS as f64 * 2.0 - 1.0) * REACH
}

/// Which counter an output belongs to.
fn bin(output: f64) -> usize {
    (((output / REACH + 1.0) / 2.0 * BINS as f64).max(0.0) as usize).min(BINS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    /// Rows of two normal classes, the second rare and close; the share of the second, and where its outputs lie.
    fn fed(rows: usize, share: f64, seed: u64) -> (Decision, Vec<(f64, f64)>) {
        let mut rng = Generator::new(seed);
        let mut decision = Decision::default();
        let mut seen = Vec::new();
        for _ in 0..rows {
            let code = if rng.uniform() < share { 1.0 } else { -1.0 };
            let output = if code > 0.0 { -0.2 + 0.1 * rng.normal() } else { -1.0 + 0.1 * rng.normal() };
            decision.take(&[output], &[code], 1.0);
            seen.push((output, code));
        }
        (decision, seen)
    }

    #[test]
    fn the_place_of_fewest_mistakes_is_taken_when_rows_show_it() {
        let (decision, seen) = fed(2048, 0.1, 1);
        let mistakes = |at: f64| seen.iter().filter(|(output, code)| (output - at) * code < 0.0).count();
        let best = (0..=256).map(|bin| mistakes(edge(bin))).min().unwrap();
        assert!(decision.threshold() < 0.0 && mistakes(decision.threshold()) == best, "{}", decision.threshold());
        assert!(mistakes(0.0) > 10 * best.max(1));
        // A handful of rows shows nothing.
        assert_eq!(fed(64, 0.05, 2).0.threshold(), 0.0);
        // Classes that 0 separates.
        let mut decision = Decision::default();
        (0..640)
            .for_each(|i| decision.take(&[if i % 2 == 0 { 0.5 } else { -0.5 }], &[1.0 - 2.0 * f64::from(i % 2)], 1.0));
        assert_eq!(decision.threshold(), 0.0);
    }

    #[test]
    fn old_rows_are_forgotten_and_parts_add_up() {
        let mut forgetful = Decision::default();
        for (offset, rows) in [(-0.8, 3000), (0.8, 3000)] {
            for i in 0..rows {
                let code = if i % 3 == 0 { 1.0 } else { -1.0 };
                forgetful.take(&[offset + 0.2 * code], &[code], 0.99);
            }
            assert!((forgetful.threshold() - offset).abs() < 0.25, "{}", forgetful.threshold());
            assert!(forgetful.is_sound());
        }
        let (mut first, _) = fed(1024, 0.1, 3);
        let (second, _) = fed(1024, 0.1, 4);
        let sum: f64 = first.counts.iter().chain(&second.counts).flatten().sum();
        first.add(&second);
        assert_eq!(first.counts.iter().flatten().sum::<f64>(), sum);
        let before = first.clone();
        first.add(&Decision::default());
        assert_eq!(first, before);
    }

    #[test]
    fn numbers_and_several_outputs_leave_it_at_zero() {
        let mut decision = Decision::default();
        decision.take(&[0.3], &[1.0], 1.0);
        decision.take(&[0.3], &[0.7], 1.0);
        (0..500).for_each(|_| decision.take(&[0.5], &[-1.0], 1.0));
        assert!(decision.threshold() == 0.0 && decision.size_bytes() == 0);
        let mut several = Decision::default();
        (0..500).for_each(|_| several.take(&[0.5, 0.1], &[-1.0, 1.0], 1.0));
        assert_eq!(several, Decision::default());
    }
}
