//! Predictions of rows that were learnt from, each as if it had not been: leave-one-out without fitting again.
//!
//! A ridge solution predicts row i as ŷ = h y + (what the others say); without the row it is (ŷ − h y)/(1 − h), h being
//! the row's leverage in the fit. See R. D. Cook, S. Weisberg, "Residuals and influence in regression", 1982, section 2.2.

use std::sync::Arc;

use faer::{Mat, MatRef};

use super::gcv::GcvChoice;
use super::nystrom::{Beside, NystromSums, feature_floor, subtract_means};
use crate::error::{Error, Result};
use crate::kernel::KernelWorkspace;
use crate::linalg::{PackedFactoring, PackedRows, PlusIdentity, product};
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

/// Rows whose leverages are computed at once: what is in between stays in the cache.
const TURN: usize = 384;

/// By how much a ridge is raised to see whether rows left out ask for more of it.
const RAISE: f64 = 4.0;
/// Share of the squared errors that a raise must save.
const WORTH: f64 = 1e-3;
/// How often a ridge is raised at most.
const MOST_RAISES: usize = 20;

/// Rows whose features were summed, to be left out one at a time.
#[derive(Debug, Clone, Copy)]
pub struct SummedRows<'a> {
    /// A row each.
    pub features: MatRef<'a, f64>,
    /// Rows × targets.
    pub codes: MatRef<'a, f64>,
    /// What each counts; none: 1.
    pub weights: Option<&'a [f64]>,
}

impl NystromSums {
    /// Of sums of features: the ridge of least generalised cross-validation, and at it the errors (row-major) of the rows
    /// that were summed, each without itself.
    pub fn left_out(&self, rows: SummedRows) -> Result<(f64, Vec<f64>)> {
        let (choice, centred) = self.centred(rows)?;
        Ok((choice.ridge, centred.errors(choice.ridge)?))
    }

    /// The same at the ridge to which that one is raised as long as the squared errors of rows left out become less by it
    /// (targets count by their logarithm): generalised cross-validation rates a ridge too well that lets a few far rows
    /// decide. Most often one more ridge is tried, where [`press_ridge`](super::press_ridge) has to turn all rows.
    pub fn left_out_raised(&self, rows: SummedRows) -> Result<(f64, Vec<f64>)> {
        let (choice, centred) = self.centred(rows)?;
        let (mut ridge, mut errors) = (choice.ridge, centred.errors(choice.ridge)?);
        for _ in 0..MOST_RAISES {
            let others = centred.errors(RAISE * ridge)?;
            if rows.log_squares(&others) > rows.log_squares(&errors) - WORTH {
                break;
            }
            (ridge, errors) = (RAISE * ridge, others);
        }
        Ok((ridge, errors))
    }

    fn centred<'a>(&'a self, rows: SummedRows<'a>) -> Result<(GcvChoice, Centred<'a>)> {
        let Some(whitening) = &self.whitening else {
            return Err(Error::Internal("rows left out of sums that are not of features"));
        };
        let mut gram = self.gram.to_lower();
        let beside = self.beside_in_features(Arc::clone(whitening), feature_floor(&gram), 0.0, true);
        subtract_means(&mut gram, &beside.mean, self.weight);
        let choice = self.path(&gram, &beside, true).choose()?;
        Ok((choice, Centred { sums: self, gram, beside, rows }))
    }
}

impl SummedRows<'_> {
    fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[i])
    }

    /// Σ ln Σwe² over the targets.
    fn log_squares(&self, errors: &[f64]) -> f64 {
        let outputs = self.codes.ncols();
        let square = |t: usize| {
            let errors = errors.iter().skip(t).step_by(outputs).enumerate();
            errors.map(|(i, error)| self.weight(i) * error * error).sum::<f64>()
        };
        (0..outputs).map(|t| square(t).max(f64::MIN_POSITIVE).ln()).sum()
    }
}

/// Sums without means, and the rows that were summed.
struct Centred<'a> {
    sums: &'a NystromSums,
    /// The lower triangle of Σw(φ − φ̄)(φ − φ̄)ᵀ.
    gram: Mat<f64>,
    beside: Beside,
    rows: SummedRows<'a>,
}

impl Centred<'_> {
    /// Errors of all rows left out at a ridge, row-major. Leverages follow from one triangular solve,
    /// h = w(1/Σw + ‖L⁻¹(φ − φ̄)‖²) with LLᵀ = Σw(φ − φ̄)(φ − φ̄)ᵀ + μI.
    fn errors(&self, ridge: f64) -> Result<Vec<f64>> {
        let Self { sums, beside, rows, .. } = self;
        let mut factor = PackedFactoring::default();
        factor.factor(&PlusIdentity { matrix: self.gram.as_ref(), factor: ridge }, "regularised sums")?;
        let (count, outputs) = rows.codes.shape();
        let (mut theta, centre) = (beside.cross.clone(), &beside.mean);
        for theta in theta.col_iter_mut() {
            if let Some(theta) = theta.try_as_col_major_mut() {
                factor.solve_in_place(theta.as_slice_mut());
            }
        }
        let shift = |t: usize| sums.target_sum[t] / sums.weight - centre.col(0).transpose() * theta.col(t);
        let shifts: Vec<f64> = (0..outputs).map(shift).collect();
        let mut centre: Vec<f64> = centre.col(0).iter().copied().collect();
        factor.forward_in_place(&mut centre);
        let (mut solved, mut spread) = (PackedRows::default(), vec![0.0; TURN.min(count)]);
        let mut errors = Vec::with_capacity(count * outputs);
        for start in (0..count).step_by(TURN) {
            let part = rows.features.subrows(start, TURN.min(count - start));
            let spread = &mut spread[..part.nrows()];
            factor.triangle().solve(part, &mut solved);
            solved.squared_distances(&centre, spread);
            let fitted = product(part, theta.as_ref());
            for (i, spread) in spread.iter().enumerate() {
                let rest = (1.0 - rows.weight(start + i) * (1.0 / sums.weight + spread)).max(LEAST_REST);
                let error = |t: usize| (rows.codes[(start + i, t)] - shifts[t] - fitted[(i, t)]) / rest;
                errors.extend((0..outputs).map(error));
            }
        }
        Ok(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Centres, Kernel};
    use crate::linalg::Cholesky;
    use crate::random::Generator;
    use crate::rows::RowBlock;
    use crate::sketch::Dictionary;
    use crate::solver::{NystromSums, Ridge, SolverOptions, Whitening};

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

    /// Features 0, 1, … of atoms that are far from each other are those numbers themselves.
    fn sums_of(features: &Mat<f64>, codes: &Mat<f64>, weights: &[f64]) -> NystromSums {
        let width = features.ncols();
        let places: Vec<f64> = (0..width).map(|i| 100.0 * i as f64).collect();
        let atoms = RowBlock::gather(Rows::dense(&places, width, 1).unwrap(), &(0..width).collect::<Vec<_>>());
        let dictionary =
            Dictionary::new(atoms, vec![1.0; width], (0..width as u64).collect(), f64::MIN_POSITIVE).unwrap();
        let whitening = Whitening::new(&Kernel::gaussian(1.0).unwrap(), &dictionary, None).unwrap();
        let mut sums = NystromSums::whitened(whitening, codes.ncols());
        sums.add_rows(features.clone().as_mut(), codes.as_ref(), weights, 1.0);
        sums
    }

    #[test]
    fn errors_from_sums_equal_those_of_fits_without_the_row() {
        let mut rng = Generator::new(7);
        // More than one turn, and not a whole one.
        let (count, width) = (TURN + 21, 5);
        let features = Mat::from_fn(count, width, |_, j| rng.normal() + j as f64);
        let codes = Mat::from_fn(count, 2, |i, t| features[(i, t)].sin() * 3.0 + 7.0 + rng.normal());
        let weights: Vec<f64> = (0..count).map(|i| 0.5 + (i % 3) as f64).collect();
        let sums = sums_of(&features, &codes, &weights);
        let rows = SummedRows { features: features.as_ref(), codes: codes.as_ref(), weights: Some(&weights) };
        let (ridge, errors) = sums.left_out(rows).unwrap();
        let extended = Mat::from_fn(count, width + 1, |i, j| if j < width { features[(i, j)] } else { 1.0 });
        for out in (0..count).step_by(37) {
            let weighted =
                Mat::from_fn(count, width + 1, |i, j| extended[(i, j)] * if i == out { 0.0 } else { weights[i] });
            let penalty = Mat::from_fn(width + 1, width + 1, |i, j| if i == j && i < width { ridge } else { 0.0 });
            let mut theta = weighted.transpose() * &codes;
            let normal = weighted.transpose() * &extended + penalty;
            Cholesky::new(normal.as_ref(), "test").unwrap().solve_in_place(theta.as_mut());
            for t in 0..2 {
                let expected = codes[(out, t)] - (extended.row(out) * theta.col(t));
                assert!((errors[2 * out + t] - expected).abs() < 1e-9, "{out}: {} {expected}", errors[2 * out + t]);
            }
        }
        // Without weights, those of weights of 1.
        let ones = vec![1.0; count];
        let sums = sums_of(&features, &codes, &ones);
        let (plain, errors) = sums.left_out(SummedRows { weights: None, ..rows }).unwrap();
        assert_eq!((plain, errors), sums.left_out(SummedRows { weights: Some(&ones), ..rows }).unwrap());
        assert!(plain != ridge);
    }

    #[test]
    fn a_ridge_is_raised_where_few_far_rows_decide() {
        let mut rng = Generator::new(5);
        // The second feature is 0 but in three rows, whose targets it tells nothing of.
        let features = Mat::from_fn(200, 2, |i, j| if j == 0 { rng.normal() } else { f64::from(u8::from(i < 3)) });
        let codes = Mat::from_fn(200, 1, |i, _| features[(i, 0)] + if i < 3 { [9.0, -2.0, 4.0][i] } else { 0.0 });
        let sums = sums_of(&features, &codes, &[1.0; 200]);
        let rows = SummedRows { features: features.as_ref(), codes: codes.as_ref(), weights: None };
        let ((usual, errors), (raised, less)) = (sums.left_out(rows).unwrap(), sums.left_out_raised(rows).unwrap());
        let square = |errors: &[f64]| errors.iter().map(|e| e * e).sum::<f64>();
        assert!(raised > 2.0 * usual && square(&less) < square(&errors), "{usual} {raised}");
        // One more step would not be better.
        let centred = sums.centred(rows).unwrap().1;
        assert!(square(&centred.errors(RAISE * raised).unwrap()) > 0.998 * square(&less));
        // Where nothing is far, nothing is raised.
        let features = Mat::from_fn(200, 2, |_, _| rng.normal());
        let codes = Mat::from_fn(200, 1, |i, _| features[(i, 0)] - features[(i, 1)] + 0.1 * rng.normal());
        let sums = sums_of(&features, &codes, &[1.0; 200]);
        let rows = SummedRows { features: features.as_ref(), codes: codes.as_ref(), weights: None };
        assert_eq!(sums.left_out(rows).unwrap().0, sums.left_out_raised(rows).unwrap().0);
    }

    /// Columns of zeros, a constant and two that are the same: sums of them have no inverse, and nothing may fail for it.
    #[test]
    fn features_that_depend_on_each_other_leave_finite_errors() {
        let mut rng = Generator::new(7);
        let values: Vec<f64> = (0..50).map(|_| rng.normal()).collect();
        let codes = Mat::from_fn(50, 1, |i, _| 2.0 * values[i] + 0.1 * rng.normal());
        let features = Mat::from_fn(50, 4, |i, j| [0.0, 3.0, values[i], values[i]][j]);
        let errors = |features: &Mat<f64>| {
            let rows = SummedRows { features: features.as_ref(), codes: codes.as_ref(), weights: None };
            sums_of(features, &codes, &[1.0; 50]).left_out(rows).unwrap()
        };
        let (ridge, found) = errors(&features);
        assert!(ridge > 0.0 && found.len() == 50 && found.iter().all(|e| e.abs() < 1.0), "{found:?}");
        // Nothing but zeros: what is left out is predicted by the mean of the others.
        let mean = codes.col(0).sum() / 50.0;
        let (_, found) = errors(&Mat::zeros(50, 3));
        assert!(found.iter().zip(codes.col(0).iter()).all(|(e, y)| (e - (y - mean) * 50.0 / 49.0).abs() < 1e-9));
    }
}
