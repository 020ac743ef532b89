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
    let high = (100.0 * largest).max(floor);
    let low = (1e-13 * largest).max(floor);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;
    use crate::rows::RowBlock;
    use crate::solver::{Ridge, SolverOptions, left_out_outputs};

    /// The oracle fits at each ridge and leaves rows out by the model's own leverages.
    #[test]
    fn no_ridge_near_it_or_far_has_less_left_out_error() {
        let mut rng = Generator::new(6);
        let data: Vec<f64> = (0..240).map(|_| rng.normal()).collect();
        let rows = Rows::dense(&data, 120, 2).unwrap();
        let codes: Vec<f64> = (0..120).map(|i| (2.0 * data[2 * i]).sin() + 0.5 * rng.normal()).collect();
        let chosen: Vec<usize> = (0..40).map(|i| 3 * i).collect();
        let indices = chosen.iter().map(|&i| i as u64).collect();
        let dictionary = Dictionary::new(RowBlock::gather(rows, &chosen), vec![1.0; 40], indices, 1e-6).unwrap();
        let kernel = Kernel::gaussian(1.0).unwrap();
        let mut sums = NystromSums::whitened(super::super::Whitening::new(&kernel, &dictionary, None).unwrap(), 1);
        let mut block = Mat::zeros(120, 40);
        let centres = Centres::new(dictionary.atoms().rows());
        kernel.block(rows, &centres, &mut KernelWorkspace::default(), block.as_mut());
        let targets = Mat::from_fn(120, 1, |i, _| codes[i]);
        sums.add(block.as_mut(), targets.as_ref(), 120.0);
        let error = |ridge: f64| {
            let options = SolverOptions { ridge: Ridge::Fixed(ridge), intercept: true };
            let model = sums.solve(&kernel, &dictionary, &options).unwrap().model;
            let values = left_out_outputs(&model, rows, targets.as_ref()).unwrap();
            values.iter().zip(&codes).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
        };
        let found = press_ridge(&kernel, &dictionary, &sums, rows, &codes, 1e-9).unwrap();
        for factor in [1e-4, 1e-2, 0.1, 10.0, 100.0, 1e4] {
            assert!(error(found) < error(factor * found), "{found} {factor}");
        }
        assert!(press_ridge(&kernel, &dictionary, &sums, rows, &codes, 1e9).unwrap() >= 1e9);
    }
}
