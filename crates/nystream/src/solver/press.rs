//! Ridge by leaving out one row at a time, for rows that are at hand.
//!
//! D. M. Allen, "The relationship between variable selection and data augmentation and a method for prediction",
//! Technometrics 16 (1974): PRESS(μ) = Σ ((y − ŷ)/(1 − h))², h the row's leverage at μ. Generalised cross-validation
//! replaces every h by their mean, which needs no rows, but rates a ridge too well that lets a few far rows decide. With
//! Σφφᵀ = QTQᵀ, T tridiagonal, and z = Qᵀφ every μ costs O(nm): h = 1/n + zᵀ(T + μI)⁻¹z.

use faer::{Mat, MatRef};
use pulp::Simd;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::linalg::{
    GramSum, ShiftedTridiagonal, Tridiagonal, Vectorised, add_scaled, centre_columns, multiply_add, product, vectorised,
};

/// Ridges to choose from, down from the largest.
const STEPS: usize = 40;
/// One in so many of them is tried first, then those between the best one and its neighbours.
const STRIDE: usize = 4;
/// Fewer features than this of all rows together are not worth handing to other threads.
const PARALLEL_FEATURES: usize = 1 << 14;
/// Least share of a left-out prediction that the other rows have: below, rounding rules.
const LEAST_REST: f64 = 1e-6;

/// The ridge of least PRESS for rows of features with their codes (row-major); targets count by the logarithm
/// of their PRESS, so that units do not matter. Never below `floor`. With it the errors of all rows left out (row-major).
pub fn press_ridge(features: MatRef<'_, f64>, codes: &[f64], floor: f64) -> Result<(f64, Vec<f64>)> {
    let turned = Turned::new(features, codes)?;
    let bound = turned.form.bound();
    if bound <= 0.0 {
        return Ok((floor.max(1.0), turned.targets_row_major()));
    }
    let high = (100.0 * bound).max(floor);
    let low = (1e-13 * bound).max(floor);
    let ridge = |step: usize| high * (low / high).powf(step as f64 / STEPS as f64);
    let score = |memory: &mut LeftOut, step: usize| {
        memory.set(&turned.form.shifted(ridge(step))?, &turned);
        Some(memory.log_press(&turned))
    };
    let few = features.nrows() * features.ncols() < PARALLEL_FEATURES;
    let mut best: Option<(f64, usize)> = None;
    let mut try_all = |steps: Vec<usize>| {
        let least = if few { steps.len() } else { 1 };
        let scores: Vec<_> = steps
            .par_iter()
            .with_min_len(least.max(1))
            .map_init(|| LeftOut::new(&turned), |memory, &step| score(memory, step))
            .collect();
        for (step, score) in steps.into_iter().zip(scores) {
            if let Some(score) = score.filter(|&score| best.is_none_or(|(least, _)| score < least)) {
                best = Some((score, step));
            }
        }
        best.map(|(_, step)| step)
    };
    if let Some(step) = try_all((0..=STEPS).step_by(STRIDE).collect()) {
        let near = (step + 1).saturating_sub(STRIDE)..(step + STRIDE).min(STEPS + 1);
        try_all(near.filter(|&other| other != step).collect());
    }
    match best {
        Some((_, step)) => Ok((ridge(step), turned.left_out(ridge(step)))),
        None => Ok((high, Vec::new())),
    }
}

/// Rows of features without their means, in the basis in which their sums are tridiagonal, and centred targets.
struct Turned {
    form: Tridiagonal,
    features: Mat<f64>,
    targets: Mat<f64>,
    /// Σzy.
    cross: Mat<f64>,
}

impl Turned {
    fn new(features: MatRef<'_, f64>, codes: &[f64]) -> Result<Self> {
        let count = features.nrows();
        let outputs = codes.len() / count.max(1);
        if outputs == 0 || codes.len() != count * outputs {
            return Err(Error::Shape { what: "codes", found: codes.len(), expected: count });
        }
        let mut features = features.to_owned();
        centre_columns(&mut features);
        let mut targets = Mat::from_fn(count, outputs, |i, t| codes[i * outputs + t]);
        centre_columns(&mut targets);
        let mut gram = GramSum::new(features.ncols());
        gram.add(features.as_ref());
        let mut turn = Mat::identity(features.ncols(), features.ncols());
        let form = Tridiagonal::reduce(&gram.to_lower(), turn.as_mut());
        let features = product(features.as_ref(), turn.transpose());
        let cross = product(features.transpose(), targets.as_ref());
        Ok(Self { form, features, targets, cross })
    }

    fn targets_row_major(&self) -> Vec<f64> {
        let (count, outputs) = self.targets.shape();
        (0..count * outputs).map(|i| self.targets[(i / outputs, i % outputs)]).collect()
    }

    /// Errors of all rows left out at a ridge, row-major.
    fn left_out(&self, ridge: f64) -> Vec<f64> {
        let mut memory = LeftOut::new(self);
        if let Some(shifted) = self.form.shifted(ridge) {
            memory.set(&shifted, self);
        }
        let (count, outputs) = self.targets.shape();
        (0..count * outputs).map(|i| memory.error(self, i / outputs, i % outputs)).collect()
    }
}

/// Fitted values and leverages of all rows at one ridge.
struct LeftOut {
    leverages: Vec<f64>,
    /// A target after the other.
    fitted: Vec<f64>,
    /// L⁻¹z of every row, as far as the features have been gone through.
    solved: Vec<f64>,
}

impl LeftOut {
    fn new(turned: &Turned) -> Self {
        let (count, outputs) = turned.targets.shape();
        Self { leverages: vec![0.0; count], fitted: vec![0.0; count * outputs], solved: vec![0.0; count] }
    }

    /// The error of a row that is left out.
    fn error(&self, turned: &Turned, i: usize, t: usize) -> f64 {
        let fitted = self.fitted[t * self.leverages.len() + i];
        (turned.targets[(i, t)] - fitted) / (1.0 - self.leverages[i]).max(LEAST_REST)
    }

    /// Σ ln PRESS over the targets.
    fn log_press(&self, turned: &Turned) -> f64 {
        let (count, outputs) = turned.targets.shape();
        let press = |t: usize| (0..count).map(|i| self.error(turned, i, t).powi(2)).sum::<f64>();
        (0..outputs).map(|t| press(t).max(f64::MIN_POSITIVE).ln()).sum()
    }

    /// From T + μI = LDLᵀ, the rows z of `features` and Σzy: h = 1/n + ‖D^(-1/2)L⁻¹z‖², ŷ = (L⁻¹z)ᵀD⁻¹L⁻¹Σzy.
    fn set(&mut self, shifted: &ShiftedTridiagonal, turned: &Turned) {
        let Turned { features, cross, .. } = turned;
        let count = self.leverages.len();
        self.leverages.fill(1.0 / count as f64);
        self.fitted.fill(0.0);
        self.solved.fill(0.0);
        let mut sides = vec![0.0; cross.ncols()];
        for j in 0..features.ncols() {
            let (ratio, inverse) = shifted.step(j);
            let (column, solved) = (features.col_as_slice(j), &mut self.solved[..]);
            vectorised(Solve { column, ratio, inverse, solved, leverages: &mut self.leverages });
            for (t, (side, fitted)) in sides.iter_mut().zip(self.fitted.chunks_exact_mut(count)).enumerate() {
                *side = cross[(j, t)] - ratio * *side;
                add_scaled(fitted, *side * inverse, &self.solved);
            }
        }
    }
}

/// One more feature of every row: L⁻¹z goes on by one, and with it the leverage.
struct Solve<'a> {
    column: &'a [f64],
    ratio: f64,
    inverse: f64,
    solved: &'a mut [f64],
    leverages: &'a mut [f64],
}

impl Vectorised for Solve<'_> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, _simd: S) {
        let Self { column, ratio, inverse, solved, leverages } = self;
        for (z, (solved, leverage)) in column.iter().zip(solved.iter_mut().zip(leverages)) {
            *solved = multiply_add::<FMA>(-ratio, *solved, *z);
            *leverage = multiply_add::<FMA>(*solved * *solved, inverse, *leverage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Centres, Kernel, KernelWorkspace};
    use crate::random::Generator;
    use crate::rows::{RowBlock, Rows};
    use crate::sketch::Dictionary;
    use crate::solver::{NystromSums, Ridge, SolverOptions, left_out_outputs};

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
        let (found, errors) = press_ridge(block.as_ref(), &codes, 1e-9).unwrap();
        assert!((errors.iter().map(|e| e * e).sum::<f64>() / error(found) - 1.0).abs() < 1e-6);
        for factor in [1e-4, 1e-2, 0.1, 10.0, 100.0, 1e4] {
            assert!(error(found) < error(factor * found), "{found} {factor}");
        }
        assert!(press_ridge(block.as_ref(), &codes, 1e9).unwrap().0 >= 1e9);
    }
}
