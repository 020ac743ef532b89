//! Fits the map from regression scores to class probabilities on scores of rows that were left out.
//!
//! Penalised maximum likelihood by damped Newton steps. The scores must not have seen their own
//! labels (leave-one-out or held-out scores), or the probabilities come out too sure.

use faer::Mat;

use crate::error::{Error, Result};
use crate::linalg::Cholesky;
use crate::model::Calibration;

/// With more classes than this, only the slope is fitted: an offset a class needs rows of every class.
const MAX_OFFSETS: usize = 64;
/// Weight of the penalty that keeps the maximum finite when the classes are separable.
const PENALTY: f64 = 1e-3;

/// Fits slope and offsets to `scores` (rows × classes, row-major) of rows with these class indices.
pub fn fit_calibration(scores: &[f64], labels: &[usize], classes: usize) -> Result<Calibration> {
    if scores.len() != labels.len() * classes {
        return Err(Error::Shape { what: "scores", found: scores.len(), expected: labels.len() * classes });
    }
    let start = Calibration { slope: 1.0, offsets: vec![0.0; classes] };
    if labels.is_empty() {
        return Ok(start);
    }
    let fitted = climb(start, scores, labels, true)?;
    if fitted.slope >= 0.0 {
        return Ok(fitted);
    }
    // Left-out scores of pure noise point the wrong way, but a larger score must not make its class less likely. The
    // likelihood is concave, so the best slope that is not negative is 0: frequencies alone.
    climb(Calibration { slope: 0.0, offsets: vec![0.0; classes] }, scores, labels, false)
}

fn climb(mut calibration: Calibration, scores: &[f64], labels: &[usize], with_slope: bool) -> Result<Calibration> {
    let classes = calibration.classes();
    let free = if classes > MAX_OFFSETS { 1 } else { classes };
    let mut loss = loss_of(&calibration, scores, labels);
    for _ in 0..100 {
        let (mut gradient, mut hessian) = derivatives(&calibration, scores, labels, free);
        if !with_slope {
            gradient[(0, 0)] = 0.0;
            (1..free).for_each(|c| hessian[(c, 0)] = 0.0);
        }
        let mut step = gradient.clone();
        Cholesky::new(hessian.as_ref(), "calibration curvature")?.solve_in_place(step.as_mut());
        let decrement: f64 = (0..free).map(|i| step[(i, 0)] * gradient[(i, 0)]).sum();
        if decrement < 1e-12 * (1.0 + loss) {
            break;
        }
        let mut damping = 1.0;
        loop {
            let mut next = calibration.clone();
            next.slope -= damping * step[(0, 0)];
            (1..free).for_each(|c| next.offsets[c] -= damping * step[(c, 0)]);
            let next_loss = loss_of(&next, scores, labels);
            if next_loss <= loss - 0.25 * damping * decrement || damping < 1e-6 {
                (calibration, loss) = (next, next_loss);
                break;
            }
            damping *= 0.5;
        }
    }
    Ok(calibration)
}

fn loss_of(calibration: &Calibration, scores: &[f64], labels: &[usize]) -> f64 {
    let classes = calibration.classes();
    let mut p = vec![0.0; classes];
    let likelihood: f64 = scores
        .chunks_exact(classes)
        .zip(labels)
        .map(|(row, &label)| {
            calibration.probabilities(row, &mut p);
            -p[label].max(f64::MIN_POSITIVE).ln()
        })
        .sum();
    let size: f64 = calibration.offsets.iter().map(|b| b * b).sum::<f64>() + calibration.slope.powi(2);
    likelihood + 0.5 * PENALTY * size
}

/// Gradient and Hessian in (slope, offset_1, …), the offset of class 0 being fixed at 0.
fn derivatives(calibration: &Calibration, scores: &[f64], labels: &[usize], free: usize) -> (Mat<f64>, Mat<f64>) {
    let classes = calibration.classes();
    let mut p = vec![0.0; classes];
    let mut gradient = Mat::zeros(free, 1);
    let mut hessian = Mat::zeros(free, free);
    for (row, &label) in scores.chunks_exact(classes).zip(labels) {
        calibration.probabilities(row, &mut p);
        let mean: f64 = p.iter().zip(row).map(|(p, s)| p * s).sum();
        let spread: f64 = p.iter().zip(row).map(|(p, s)| p * (s - mean).powi(2)).sum();
        gradient[(0, 0)] += mean - row[label];
        hessian[(0, 0)] += spread;
        for c in 1..free {
            gradient[(c, 0)] += p[c] - f64::from(u8::from(c == label));
            hessian[(c, 0)] += p[c] * (row[c] - mean);
            for b in 1..=c {
                hessian[(c, b)] += p[c] * (f64::from(u8::from(b == c)) - p[b]);
            }
        }
    }
    gradient[(0, 0)] += PENALTY * calibration.slope;
    for c in 1..free {
        gradient[(c, 0)] += PENALTY * calibration.offsets[c];
    }
    for c in 0..free {
        hessian[(c, c)] += PENALTY;
    }
    (gradient, hessian)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    /// Labels drawn from known probabilities: the fit must find the parameters they were drawn from.
    #[test]
    fn recovers_the_parameters_of_a_drawn_sample() {
        let truth = Calibration { slope: 2.5, offsets: vec![0.0, 0.7, -0.4] };
        let mut rng = Generator::new(4);
        let n = 40_000;
        let scores: Vec<f64> = (0..3 * n).map(|_| rng.normal()).collect();
        let mut p = [0.0; 3];
        let labels: Vec<usize> = scores
            .chunks_exact(3)
            .map(|row| {
                truth.probabilities(row, &mut p);
                let u = rng.uniform();
                if u < p[0] { 0 } else { 1 + usize::from(u >= p[0] + p[1]) }
            })
            .collect();
        let fit = fit_calibration(&scores, &labels, 3).unwrap();
        // Standard errors here are below 0.03 (inverse Fisher information); five of them.
        assert!((fit.slope - 2.5).abs() < 0.15, "{fit:?}");
        assert!((fit.offsets[1] - 0.7).abs() < 0.15 && (fit.offsets[2] + 0.4).abs() < 0.15, "{fit:?}");
    }

    #[test]
    fn scores_that_point_the_wrong_way_give_frequencies() {
        let scores = [1.0, -1.0, 2.0, -2.0, 1.5, -1.5, -1.0, 1.0];
        let fit = fit_calibration(&scores, &[1, 1, 1, 0], 2).unwrap();
        assert_eq!(fit.slope, 0.0);
        let mut p = [0.0; 2];
        fit.probabilities(&[5.0, -5.0], &mut p);
        // Three of four rows, up to the penalty.
        assert!((p[1] - 0.75).abs() < 1e-3, "{p:?}");
    }

    #[test]
    fn separable_scores_give_finite_parameters() {
        let scores = [-1.0, 1.0, 1.0, -1.0, -0.5, 0.5];
        let fit = fit_calibration(&scores, &[1, 0, 1], 2).unwrap();
        assert!(fit.slope.is_finite() && fit.slope > 1.0);
        assert!(fit_calibration(&scores, &[1, 0], 2).is_err());
    }
}
