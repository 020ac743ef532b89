//! Ridge by leaving out one row at a time, for rows that are at hand.
//!
//! D. M. Allen, "The relationship between variable selection and data augmentation and a method for prediction",
//! Technometrics 16 (1974): PRESS(μ) = Σ ((y − ŷ)/(1 − h))², h the row's leverage at μ. Generalised cross-validation
//! replaces every h by their mean, which needs no rows, but rates a ridge too well that lets a few far rows decide. With
//! Σφφᵀ = QΛQᵀ and z = Qᵀφ every μ costs O(nm): h = 1/n + Σ z_j²/(λ_j + μ).

use faer::Mat;

use super::nystrom::NystromSums;
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::SymmetricEigen;
use crate::rows::Rows;
use crate::sketch::Dictionary;

/// Ridges tried.
const STEPS: usize = 40;
/// Least share of a left-out prediction that the other rows have: below, rounding rules.
const LEAST_REST: f64 = 1e-6;

/// The ridge of least PRESS for features of these rows, each with its codes (row-major); targets count by the logarithm
/// of their PRESS, so that units do not matter. Never below `floor`.
pub fn press_ridge(
    kernel: &Kernel,
    dictionary: &Dictionary,
    sums: &NystromSums,
    rows: Rows,
    codes: &[f64],
    floor: f64,
) -> Result<f64> {
    let (count, outputs) = (rows.len(), sums.targets());
    if codes.len() != count * outputs {
        return Err(Error::Shape { what: "codes", found: codes.len(), expected: count * outputs });
    }
    let mut features = Mat::zeros(count, dictionary.len());
    let centres = Centres::new(dictionary.atoms().rows());
    kernel.block(rows, &centres, &mut KernelWorkspace::default(), features.as_mut());
    sums.to_features(features.as_mut());
    for column in features.as_mut().col_iter_mut() {
        let mean = column.as_ref().iter().sum::<f64>() / count as f64;
        column.iter_mut().for_each(|v| *v -= mean);
    }
    let targets = Mat::from_fn(count, outputs, |i, t| codes[i * outputs + t]);
    let means: Vec<f64> = targets.col_iter().map(|c| c.iter().sum::<f64>() / count as f64).collect();
    let eigen = SymmetricEigen::new((features.transpose() * &features).as_ref())?;
    let along = &features * &eigen.vectors;
    let loadings = along.transpose() * &targets;
    let largest = eigen.values.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return Ok(floor.max(1.0));
    }
    let (high, low) = (100.0 * largest, (1e-13 * largest).max(floor).min(100.0 * largest));
    let mut best = (f64::INFINITY, high);
    for step in 0..=STEPS {
        let ridge = high * (low / high).powf(step as f64 / STEPS as f64);
        let shrink: Vec<f64> = eigen.values.iter().map(|l| 1.0 / (l.max(0.0) + ridge)).collect();
        let coefficients = Mat::from_fn(shrink.len(), outputs, |j, t| shrink[j] * loadings[(j, t)]);
        let fitted = &along * &coefficients;
        let mut leverages = vec![1.0 / count as f64; count];
        for (column, shrink) in along.col_iter().zip(&shrink) {
            leverages.iter_mut().zip(column.iter()).for_each(|(h, z)| *h += z * z * shrink);
        }
        let score: f64 = (0..outputs)
            .map(|t| {
                let left_out =
                    |i: usize| (targets[(i, t)] - means[t] - fitted[(i, t)]) / (1.0 - leverages[i]).max(LEAST_REST);
                (0..count).map(|i| left_out(i).powi(2)).sum::<f64>().max(f64::MIN_POSITIVE).ln()
            })
            .sum();
        if score < best.0 {
            best = (score, ridge);
        }
    }
    Ok(best.1)
}
