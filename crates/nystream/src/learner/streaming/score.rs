//! Errors of predictions made before their rows were learnt: over the whole stream, and over the last rows.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Rows of the recent window.
const WINDOW: usize = 1000;

/// Prequential error. For classes (codes of ±1): mistakes; for numbers: squared errors.
///
/// Of two classes a mistake is y f(x) < 0 (SkeGD, ICML 2019, section 6.3): an output of exactly 0 is none, and is counted
/// as undecided. Of more classes it is another class with the largest output.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunningScore {
    rows: u64,
    squared: f64,
    mistakes: u64,
    #[serde(default)]
    undecided: u64,
    recent: VecDeque<(f64, bool)>,
}

impl RunningScore {
    /// Takes one row: the outputs predicted, and its codes.
    pub fn push(&mut self, predicted: &[f64], codes: &[f64]) {
        self.push_above(0.0, predicted, codes);
    }

    /// The same where a single output says the second of two classes above `threshold`.
    pub(super) fn push_above(&mut self, threshold: f64, predicted: &[f64], codes: &[f64]) {
        let squared: f64 = predicted.iter().zip(codes).map(|(p, y)| (p - y).powi(2)).sum();
        let wrong = match (predicted, codes) {
            ([score], [code]) => (score - threshold) * code < 0.0,
            _ => largest(predicted) != largest(codes),
        };
        self.rows += 1;
        self.squared += squared;
        self.mistakes += u64::from(wrong);
        self.undecided += u64::from(matches!(predicted, [score] if *score == threshold));
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back((squared, wrong));
    }

    /// Adds the rows that another score has judged, as if they had come after this one's.
    pub fn add(&mut self, other: &Self) {
        self.recent.extend(&other.recent);
        self.recent.drain(..self.recent.len().saturating_sub(WINDOW));
        self.rows += other.rows;
        self.squared += other.squared;
        self.mistakes += other.mistakes;
        self.undecided += other.undecided;
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> usize {
        self.recent.capacity() * size_of::<(f64, bool)>()
    }

    /// Rows judged.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Mean squared error, summed over outputs; not a number without rows.
    pub fn mse(&self) -> f64 {
        self.squared / self.rows as f64
    }

    /// Share of mistakes, codes taken as classes; not a number without rows.
    pub fn mistake_rate(&self) -> f64 {
        self.mistakes as f64 / self.rows as f64
    }

    /// Rows with a single output of exactly 0, which says nothing of two classes.
    pub fn undecided(&self) -> u64 {
        self.undecided
    }

    /// Rows judged, the error of all of them and that of the last ones: mistakes if targets are classes, else squares.
    pub fn point(&self, classes: bool) -> (u64, f64, f64) {
        if classes {
            (self.rows, self.mistake_rate(), self.recent_mistake_rate())
        } else {
            (self.rows, self.mse(), self.recent_mse())
        }
    }

    /// Mean squared error of the last rows (at most 1,000).
    pub fn recent_mse(&self) -> f64 {
        self.recent.iter().map(|(squared, _)| squared).sum::<f64>() / self.recent.len() as f64
    }

    /// Share of mistakes of the last rows (at most 1,000).
    pub fn recent_mistake_rate(&self) -> f64 {
        self.recent.iter().filter(|(_, wrong)| *wrong).count() as f64 / self.recent.len() as f64
    }
}

fn largest(values: &[f64]) -> usize {
    let mut best = 0;
    for (i, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = i;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_scores_the_last_rows_are_those_of_the_second_and_as_many_of_the_first_as_there_is_room_for() {
        let score = |rows: usize, error: f64| {
            let mut score = RunningScore::default();
            (0..rows).for_each(|_| score.push(&[1.0 + error], &[1.0]));
            score
        };
        let mut both = score(800, 2.0);
        both.add(&score(600, 3.0));
        assert_eq!((both.rows(), both.recent.len()), (1400, WINDOW));
        assert!((both.recent_mse() - (0.4 * 4.0 + 0.6 * 9.0)).abs() < 1e-12);
        assert!((both.mse() - (800.0 * 4.0 + 600.0 * 9.0) / 1400.0).abs() < 1e-12);
    }
}
