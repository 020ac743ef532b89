//! Nyström ridge regression with a ridge that is given, from sums of kernels, without forming the sums of features.
//!
//! With B = S K_ZZ S + γI = LLᵀ and A = S Σkkᵀ S + μB = MMᵀ, the matrix to factor is Σφφᵀ + μI = L⁻¹AL⁻ᵀ, and its factor is
//! L⁻¹M, because that is lower triangular. Two factorisations side by side and two solves of a triangle by a triangle
//! replace the congruence L⁻¹(…)L⁻ᵀ and what follows it: 4m³/3 operations instead of 2m³, on two threads at once. Rounding errors
//! are of the same size: those of M and L, like those of the sums themselves, are divided by γ.
//!
//! Where a factorisation needs jitter (ridges below the floor), the sums of features are formed after all: there, what is
//! added to the diagonal means what it says.

use std::sync::Arc;

use faer::Mat;

use super::nystrom::{Factored, NystromSums, subtract_means};
use super::whitening::Whitening;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::linalg::{Cholesky, side_by_side};
use crate::sketch::Dictionary;

impl NystromSums {
    /// Σφφᵀ + μI from sums of kernels; nothing if it has to be found another way.
    pub(super) fn factored_at(
        &self,
        ridge: f64,
        kernel: &Kernel,
        dictionary: &Dictionary,
        intercept: bool,
    ) -> Result<Option<Factored>> {
        self.check_solvable(dictionary)?;
        if self.is_precise() {
            return Ok(None);
        }
        let (atoms, n) = (dictionary.len(), self.weight);
        let mut matrix = self.gram.to_lower();
        let rounding = self.scaled(&mut matrix, dictionary);
        let (overlap, leverage_ridge) = Whitening::overlap(kernel, dictionary, Some(rounding.nugget));
        if intercept {
            let mean = Mat::from_fn(atoms, 1, |i, _| dictionary.weights()[i] * self.feature_sum[i] / n);
            subtract_means(&mut matrix, &mean, n);
        }
        for (j, (column, overlap)) in matrix.as_mut().col_iter_mut().zip(overlap.col_iter()).enumerate() {
            column.iter_mut().zip(overlap.iter()).skip(j).for_each(|(sum, overlap)| *sum += ridge * overlap);
        }
        let (whitening, factor) = side_by_side(
            || Whitening::of_overlap(dictionary.weights().to_vec(), overlap.as_ref(), leverage_ridge),
            || Cholesky::new(matrix.as_ref(), "regularised kernel sums"),
        );
        let whitening = whitening?;
        let Some(mut posterior) = factor.ok().filter(|f| f.jitter() == 0.0 && whitening.factor.jitter() == 0.0) else {
            return Ok(None);
        };
        let (mut inverse, factor) = (whitening.factor.clone(), posterior.clone());
        side_by_side(|| whitening.factor.divide(&mut posterior), || factor.divide(&mut inverse));
        let trace = inverse.factor().squared_norm_l2();
        let sum = posterior.factor().squared_norm_l2() - ridge * atoms as f64;
        let mut beside = self.beside_in_features(Arc::new(whitening), rounding.ridge_floor, 0.0, intercept);
        let means = if intercept { n * beside.mean.squared_norm_l2() } else { 0.0 };
        beside.captured = (sum + means) / self.energy;
        Ok(Some(Factored { beside, posterior, ridge, choice: None, trace }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Centres, KernelWorkspace};
    use crate::random::Generator;
    use crate::rows::{RowBlock, Rows};

    #[test]
    fn the_factor_is_that_of_the_sums_of_features_and_jitter_is_left_to_them() {
        let mut rng = Generator::new(17);
        let (rows, cols, atoms) = (900, 3, 150);
        let xs: Vec<f64> = (0..rows * cols).map(|_| rng.normal()).collect();
        let xs = Rows::dense(&xs, rows, cols).unwrap();
        let targets = Mat::from_fn(rows, 2, |_, _| rng.normal());
        let mut points = RowBlock::dense(cols);
        points.extend(xs.slice(0, atoms));
        let weights = (0..atoms).map(|i| 1.0 + 0.01 * i as f64).collect();
        for leverage_ridge in [0.5, 0.0] {
            let indices = (0..atoms as u64).collect();
            let dictionary = Dictionary::new(points.clone(), Clone::clone(&weights), indices, leverage_ridge).unwrap();
            let kernel = Kernel::gaussian(0.7).unwrap();
            let mut block = Mat::zeros(rows, atoms);
            let centres = Centres::new(points.rows());
            kernel.block(xs, &centres, &mut KernelWorkspace::default(), block.as_mut());
            let mut sums = NystromSums::new(atoms, 2);
            sums.add(block.as_mut(), targets.as_ref(), rows as f64);
            for (ridge, intercept) in [(0.3, true), (20.0, false)] {
                let found = sums.factored_at(ridge, &kernel, &dictionary, intercept).unwrap().unwrap();
                let mut expected = sums.in_features(&kernel, &dictionary, intercept).unwrap();
                (0..atoms).for_each(|i| expected.gram[(i, i)] += ridge);
                let posterior = Cholesky::new(expected.gram.as_ref(), "test").unwrap();
                let apart = (posterior.factor() - found.posterior.factor()).norm_max();
                assert!(apart < 1e-8 * posterior.factor().norm_max(), "{leverage_ridge} {ridge}: {apart:e}");
                let trace: f64 = posterior.inverse_diagonal().iter().sum();
                assert!((found.trace / trace - 1.0).abs() < 1e-8, "{} {trace}", found.trace);
                assert!((found.beside.captured / expected.beside.captured - 1.0).abs() < 1e-8);
                assert_eq!(found.beside.cross, expected.beside.cross);
            }
            // So small a ridge drowns in rounding errors, if anything does.
            let twice = Dictionary::new(
                {
                    let mut twice = points.clone();
                    twice.extend(xs.slice(0, atoms));
                    twice
                },
                vec![1.0; 2 * atoms],
                (0..2 * atoms as u64).collect(),
                1e-300,
            )
            .unwrap();
            let mut doubled = Mat::from_fn(rows, 2 * atoms, |i, j| block[(i, j % atoms)]);
            let mut sums = NystromSums::new(2 * atoms, 2);
            sums.add(doubled.as_mut(), targets.as_ref(), rows as f64);
            assert!(sums.factored_at(1e-300, &kernel, &twice, true).unwrap().is_none());
        }
    }
}
