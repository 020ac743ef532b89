//! Class probabilities from the scores of a regression on ±1 codes.
//!
//! P(class c | x) = softmax(slope · score_c(x) + offset_c): for two classes the sigmoid of
//! J. Platt, "Probabilistic outputs for support vector machines" (1999); for more, its extension
//! with one slope and an offset a class ("bias-corrected temperature scaling").

use serde::{Deserialize, Serialize};

/// Parameters of the map from scores to probabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Common factor of the scores.
    pub slope: f64,
    /// Added to each class; the first is 0.
    pub offsets: Vec<f64>,
}

impl Calibration {
    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.offsets.len()
    }

    /// Probabilities of one row from its class scores.
    pub fn probabilities(&self, scores: &[f64], out: &mut [f64]) {
        for ((out, score), offset) in out.iter_mut().zip(scores).zip(&self.offsets) {
            *out = self.slope * score + offset;
        }
        let top = out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut total = 0.0;
        for out in out.iter_mut() {
            *out = (*out - top).exp();
            total += *out;
        }
        out.iter_mut().for_each(|p| *p /= total);
    }
}

/// Expands the output of a regression to one score a class: two classes have a single ±1 code, more have one each.
pub(crate) fn class_scores(outputs: &[f64], classes: usize, scores: &mut [f64]) {
    if classes == 2 {
        // The half keeps the difference of the two scores equal to the code.
        scores[0] = -0.5 * outputs[0];
        scores[1] = 0.5 * outputs[0];
    } else {
        scores.copy_from_slice(outputs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_classes_give_a_sigmoid_and_extreme_scores_stay_finite() {
        let calibration = Calibration { slope: 3.0, offsets: vec![0.0, 0.4] };
        let mut scores = [0.0; 2];
        let mut p = [0.0; 2];
        class_scores(&[0.7], 2, &mut scores);
        calibration.probabilities(&scores, &mut p);
        let expected = 1.0 / (1.0 + (-(3.0f64 * 0.7 + 0.4)).exp());
        assert!((p[1] - expected).abs() < 1e-15 && (p[0] + p[1] - 1.0).abs() < 1e-15);
        calibration.probabilities(&[1e300, -1e300], &mut p);
        assert_eq!(p, [1.0, 0.0]);
    }
}
