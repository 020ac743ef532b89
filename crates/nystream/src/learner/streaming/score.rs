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
    /// Of several outputs: squared errors of each, and whether some code was not ±1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    squared_each: Vec<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    numbers: bool,
    /// Of several numbers: those of the last rows, one row after the other.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    recent_each: VecDeque<f64>,
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
        if codes.len() > 1 {
            self.push_each(predicted, codes);
        }
    }

    fn push_each(&mut self, predicted: &[f64], codes: &[f64]) {
        let squares = || predicted.iter().zip(codes).map(|(p, y)| (p - y).powi(2));
        self.squared_each.resize(codes.len(), 0.0);
        self.squared_each.iter_mut().zip(squares()).for_each(|(sum, square)| *sum += square);
        // Of classes there may be hundreds, and nobody asks for the error of each.
        self.numbers |= codes.iter().any(|code| code.abs() != 1.0);
        if self.numbers {
            self.recent_each.extend(squares());
            self.shorten_each();
        }
    }

    fn shorten_each(&mut self) {
        let most = WINDOW * self.squared_each.len();
        self.recent_each.drain(..self.recent_each.len().saturating_sub(most));
    }

    /// Adds the rows that another score has judged, as if they had come after this one's.
    pub fn add(&mut self, other: &Self) {
        self.recent.extend(&other.recent);
        self.recent.drain(..self.recent.len().saturating_sub(WINDOW));
        self.numbers |= other.numbers;
        self.squared_each.resize(self.squared_each.len().max(other.squared_each.len()), 0.0);
        self.squared_each.iter_mut().zip(&other.squared_each).for_each(|(sum, more)| *sum += more);
        self.recent_each.extend(&other.recent_each);
        self.shorten_each();
        self.rows += other.rows;
        self.squared += other.squared;
        self.mistakes += other.mistakes;
        self.undecided += other.undecided;
    }

    /// Whether these can be errors of so many outputs.
    pub(super) fn fits(&self, outputs: usize) -> bool {
        let each = self.squared_each.len();
        (each == 0 || each == outputs) && self.recent_each.len().is_multiple_of(each.max(1))
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> usize {
        self.recent.capacity() * size_of::<(f64, bool)>()
            + 8 * (self.recent_each.capacity() + self.squared_each.capacity())
    }

    /// Rows judged.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Mean squared error, summed over outputs; not a number without rows.
    pub fn mse(&self) -> f64 {
        self.squared / self.rows as f64
    }

    /// Of several numbers the mean squared error of each, over all rows and over the last ones (at most 1,000); else none.
    pub fn of_each_number(&self) -> impl Iterator<Item = (f64, f64)> {
        let outputs = self.squared_each.len();
        let numbers = if self.numbers { outputs } else { 0 };
        (0..numbers).map(move |t| {
            let recent = self.recent_each.iter().skip(t).step_by(outputs);
            let count = (self.recent_each.len() / outputs) as f64;
            (self.squared_each[t] / self.rows as f64, recent.sum::<f64>() / count)
        })
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
        assert_eq!(both.of_each_number().count(), 0);
    }

    #[test]
    fn of_several_numbers_each_has_errors_of_its_own() {
        let pushed = |rows: usize, errors: [f64; 2]| {
            let mut score = RunningScore::default();
            (0..rows).for_each(|i| score.push(&[i as f64 + errors[0], 5.0 + errors[1]], &[i as f64, 5.0]));
            score
        };
        let near = |score: &RunningScore, expected: [(f64, f64); 2]| {
            let found: Vec<(f64, f64)> = score.of_each_number().collect();
            let close = |(a, b): (&(f64, f64), &(f64, f64))| (a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9;
            assert!(found.len() == 2 && found.iter().zip(&expected).all(close), "{found:?}");
        };
        let mut score = pushed(800, [1.0, 10.0]);
        near(&score, [(1.0, 1.0), (100.0, 100.0)]);
        score.add(&pushed(1200, [2.0, 0.0]));
        near(&score, [((800.0 + 4800.0) / 2000.0, 4.0), (40.0, 0.0)]);
        assert!(score.fits(2) && !score.fits(3) && RunningScore::default().fits(3));
        assert!((score.mse() - score.of_each_number().map(|(all, _)| all).sum::<f64>()).abs() < 1e-9);
        // Codes of classes are not told apart.
        let mut classes = RunningScore::default();
        classes.push(&[0.5, -0.2, 0.1], &[1.0, -1.0, -1.0]);
        assert!(classes.of_each_number().count() == 0 && classes.recent_each.is_empty());
    }
}
