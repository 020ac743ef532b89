//! Predictions of rows that were learnt from, each as if it had not been: leave-one-out without fitting again.
//!
//! A ridge solution predicts row i as ŷ = h y + (what the others say); without the row it is (ŷ − h y)/(1 − h), h being
//! the row's leverage in the fit. See R. D. Cook, S. Weisberg, "Residuals and influence in regression", 1982, section 2.2.

use faer::{Mat, MatRef};

use crate::error::{Error, Result};
use crate::kernel::KernelWorkspace;
use crate::model::{KernelModel, PredictWorkspace, Uncertainty};
use crate::rows::Rows;

/// Rows of a kernel block.
const BLOCK: usize = 1024;
/// Least share of a left-out prediction that the other rows have: below, rounding rules.
const LEAST_REST: f64 = 1e-6;

/// Outputs (row-major) of a Nyström model on rows it learnt from with these codes, each row without itself.
pub fn left_out_outputs(model: &KernelModel, rows: Rows, codes: MatRef<'_, f64>) -> Result<Vec<f64>> {
    let Some(Uncertainty::Nystrom(posterior)) = model.uncertainty() else {
        return Err(Error::Internal("left-out outputs of a model that is not a Nyström fit with its posterior"));
    };
    let mut outputs = Vec::new();
    model.predict(rows, &mut PredictWorkspace::default(), &mut outputs)?;
    let width = model.outputs();
    let mut workspace = KernelWorkspace::default();
    for start in (0..rows.len()).step_by(BLOCK) {
        let part = rows.slice(start, (start + BLOCK).min(rows.len()));
        let mut block = Mat::zeros(part.len(), model.centres().len());
        model.kernel().block(part, model.centres(), &mut workspace, block.as_mut());
        for (i, pull) in posterior.leverages(block.as_ref()).into_iter().enumerate() {
            let rest = (1.0 - pull).max(LEAST_REST);
            for t in 0..width {
                let fitted = &mut outputs[(start + i) * width + t];
                *fitted = (*fitted - (1.0 - rest) * codes[(start + i, t)]) / rest;
            }
        }
    }
    Ok(outputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Centres, Kernel};
    use crate::random::Generator;
    use crate::rows::RowBlock;
    use crate::sketch::Dictionary;
    use crate::solver::{NystromSums, Ridge, SolverOptions};

    #[test]
    fn they_equal_fits_without_the_row() {
        let mut rng = Generator::new(4);
        let data: Vec<f64> = (0..60).map(|_| rng.normal()).collect();
        let targets: Vec<f64> = (0..30).map(|i| data[2 * i].sin() + 0.3 * rng.normal()).collect();
        let rows = Rows::dense(&data, 30, 2).unwrap();
        let atoms = RowBlock::gather(rows, &[0, 3, 7, 11, 20, 29]);
        let dictionary = Dictionary::new(atoms, vec![1.0; 6], vec![0, 3, 7, 11, 20, 29], 0.01).unwrap();
        let kernel = Kernel::gaussian(1.2).unwrap();
        let centres = Centres::new(dictionary.atoms().rows());
        let fit = |chosen: &[usize]| {
            let part = RowBlock::gather(rows, chosen);
            let mut block = Mat::zeros(chosen.len(), 6);
            kernel.block(part.rows(), &centres, &mut KernelWorkspace::default(), block.as_mut());
            let codes = Mat::from_fn(chosen.len(), 1, |i, _| targets[chosen[i]]);
            let mut sums = NystromSums::new(6, 1);
            sums.add(block.as_mut(), codes.as_ref(), chosen.len() as f64);
            let options = SolverOptions { ridge: Ridge::Fixed(0.2), intercept: true };
            sums.solve(&kernel, &dictionary, &options).unwrap().model
        };
        let all: Vec<usize> = (0..30).collect();
        let codes = Mat::from_fn(30, 1, |i, _| targets[i]);
        let left_out = left_out_outputs(&fit(&all), rows, codes.as_ref()).unwrap();
        for i in 0..30 {
            let others: Vec<usize> = all.iter().copied().filter(|&j| j != i).collect();
            let mut value = Vec::new();
            fit(&others).predict(rows.slice(i, i + 1), &mut PredictWorkspace::default(), &mut value).unwrap();
            assert!((left_out[i] - value[0]).abs() < 1e-9, "{i}: {} {}", left_out[i], value[0]);
        }
    }
}
