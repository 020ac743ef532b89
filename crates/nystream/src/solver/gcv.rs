//! Ridge by generalised cross-validation, from sums alone.
//!
//! G. H. Golub, M. Heath, G. Wahba: "Generalized cross-validation as a method for choosing a good
//! ridge parameter", Technometrics 21 (1979). With Σφφᵀ = QΛQᵀ and loadings u = Λ^(-1/2) QᵀΣφy (the
//! coordinates of y along the fitted directions), every ridge μ has
//!
//! - residual sum of squares  Σy² − Σu² + Σ u_i² (μ/(λ_i + μ))²,
//! - free rows                n − dof = n − m − (intercept) + Σ μ/(λ_i + μ),
//!
//! so GCV(μ) = n · RSS/(n − dof)² costs O(m) a value and no pass over the data. In this form
//! neither part cancels as the fit approaches interpolation.
//!
//! Departures from the paper: several targets share one μ, chosen by the sum of the logarithms of
//! their GCV (so that no target counts for more because of its unit); μ stays above a floor
//! that the caller computes from rounding errors in its sums.

use crate::error::{Error, Result};

/// Everything about a ridge problem that GCV needs.
#[derive(Debug, Clone)]
pub struct RidgePath {
    /// Eigenvalues of Σφφᵀ.
    pub eigenvalues: Vec<f64>,
    /// For each target, Λ^(-1/2) Qᵀ Σφy; 0 where the eigenvalue is.
    pub loadings: Vec<Vec<f64>>,
    /// For each target, Σy² (after centring, if there is an intercept).
    pub target_squares: Vec<f64>,
    /// Number of rows (Σw, if they have weights).
    pub rows: f64,
    /// Whether an intercept takes one more degree of freedom.
    pub intercept: bool,
    /// Smallest ridge that rounding errors allow.
    pub floor: f64,
}

/// The ridge chosen, and how it scored.
#[derive(Debug, Clone, PartialEq)]
pub struct GcvChoice {
    /// μ.
    pub ridge: f64,
    /// Degrees of freedom at μ, the intercept included.
    pub degrees_of_freedom: f64,
    /// For each target, GCV at μ: an estimate of the mean squared error on new rows.
    pub scores: Vec<f64>,
}

impl RidgePath {
    /// Puts a path together from Σφφᵀ's eigenvalues and, for each target, QᵀΣφy and Σy².
    ///
    /// Eigenvalues far below the floor are rounding errors and count as zero.
    pub fn from_projections(
        mut eigenvalues: Vec<f64>,
        projections: Vec<Vec<f64>>,
        target_squares: Vec<f64>,
        rows: f64,
        intercept: bool,
        floor: f64,
    ) -> Self {
        let negligible = (1e-3 * floor).max(f64::MIN_POSITIVE);
        eigenvalues.iter_mut().filter(|l| **l < negligible).for_each(|l| *l = 0.0);
        let loading = |c: f64, l: f64| if l > 0.0 { c / l.sqrt() } else { 0.0 };
        let loadings = projections
            .iter()
            .map(|target| target.iter().zip(&eigenvalues).map(|(&c, &l)| loading(c, l)).collect())
            .collect();
        Self { eigenvalues, loadings, target_squares, rows, intercept, floor }
    }

    fn free_rows(&self, ridge: f64) -> f64 {
        let shrunk: f64 = self.eigenvalues.iter().map(|&l| ridge / (l + ridge)).sum();
        self.rows - (self.eigenvalues.len() + usize::from(self.intercept)) as f64 + shrunk
    }

    /// Degrees of freedom of the ridge μ.
    #[doc(alias = "effective dimension")]
    pub fn degrees_of_freedom(&self, ridge: f64) -> f64 {
        let slope: f64 = self.eigenvalues.iter().map(|&l| l / (l + ridge)).sum();
        slope + f64::from(u8::from(self.intercept))
    }

    /// Residual sum of squares of one target at the ridge μ, never below rounding error.
    pub fn residual(&self, target: usize, ridge: f64) -> f64 {
        let loadings = &self.loadings[target];
        let total = self.target_squares[target];
        let outside = total - loadings.iter().map(|u| u * u).sum::<f64>();
        let inside: f64 = self.eigenvalues.iter().zip(loadings).map(|(&l, &u)| (u * ridge / (l + ridge)).powi(2)).sum();
        outside.max(total * f64::EPSILON).max(f64::MIN_POSITIVE) + inside
    }

    /// GCV of one target at the ridge μ; infinite where the model has as many parameters as rows.
    pub fn score(&self, target: usize, ridge: f64) -> f64 {
        let free = self.free_rows(ridge);
        if free <= 0.0 { f64::INFINITY } else { self.rows * self.residual(target, ridge) / (free * free) }
    }

    fn objective(&self, log_ridge: f64) -> f64 {
        (0..self.loadings.len()).map(|t| self.score(t, log_ridge.exp()).ln()).sum()
    }

    /// The ridge of least GCV: a logarithmic grid, then golden section around its best point.
    pub fn choose(&self) -> Result<GcvChoice> {
        let largest = self.eigenvalues.iter().copied().fold(0.0, f64::max);
        // Features that are all zero leave nothing to choose: any ridge gives the constant.
        let high = if largest > 0.0 { 100.0 * largest } else { 1.0 };
        let low = (1e-14 * high).max(self.floor).min(high);
        let steps = 96;
        let at = |i: usize| low.ln() + (high / low).ln() * i as f64 / f64::from(steps);
        let best = (0..=steps as usize)
            .map(|i| (i, self.objective(at(i))))
            .filter(|(_, score)| !score.is_nan())
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .ok_or(Error::Internal("no ridge has a generalised cross-validation score"))?
            .0;
        let (mut a, mut b) = (at(best.saturating_sub(1)), at((best + 1).min(steps as usize)));
        let ratio = (5f64.sqrt() - 1.0) / 2.0;
        for _ in 0..24 {
            let (left, right) = (b - ratio * (b - a), a + ratio * (b - a));
            if self.objective(left) <= self.objective(right) { b = right } else { a = left }
        }
        Ok(self.at(((a + b) / 2.0).exp()))
    }

    /// The scores of a given ridge.
    pub fn at(&self, ridge: f64) -> GcvChoice {
        GcvChoice {
            ridge,
            degrees_of_freedom: self.degrees_of_freedom(ridge),
            scores: (0..self.loadings.len()).map(|t| self.score(t, ridge)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Cholesky, SymmetricEigen};
    use crate::random::Generator;
    use faer::Mat;

    /// A linear problem y = Φθ + noise, and its path.
    fn problem(seed: u64, noise: f64) -> (Mat<f64>, Mat<f64>, RidgePath) {
        let mut rng = Generator::new(seed);
        let (n, m) = (60, 8);
        let phi = Mat::from_fn(n, m, |_, j| rng.normal() / (1.0 + j as f64));
        let y = Mat::from_fn(n, 1, |i, _| phi[(i, 0)] + phi[(i, 3)] + noise * rng.normal());
        let eigen = SymmetricEigen::new((phi.transpose() * &phi).as_ref()).unwrap();
        let projection = eigen.vectors.transpose() * (phi.transpose() * &y);
        let projections = vec![(0..m).map(|i| projection[(i, 0)]).collect()];
        let squares = vec![y.squared_norm_l2()];
        let path = RidgePath::from_projections(eigen.values, projections, squares, n as f64, false, 0.0);
        (phi, y, path)
    }

    #[test]
    fn score_equals_the_definition_by_hat_matrix() {
        let (phi, y, path) = problem(1, 0.5);
        for ridge in [1e-3, 0.1, 2.0, 50.0] {
            let a = phi.transpose() * &phi + Mat::<f64>::identity(8, 8) * faer::Scale(ridge);
            let mut solved = phi.transpose().to_owned();
            Cholesky::new(a.as_ref(), "a").unwrap().solve_in_place(solved.as_mut());
            let hat = &phi * &solved;
            let trace: f64 = (0..60).map(|i| hat[(i, i)]).sum();
            let rss = (&y - &hat * &y).squared_norm_l2();
            let expected = 60.0 * rss / (60.0 - trace).powi(2);
            assert!((path.score(0, ridge) / expected - 1.0).abs() < 1e-10);
            assert!((path.degrees_of_freedom(ridge) - trace).abs() < 1e-10);
        }
    }

    #[test]
    fn choice_is_the_minimum_of_a_fine_scan_and_grows_with_the_noise() {
        let (_, _, quiet) = problem(2, 0.1);
        let (_, _, loud) = problem(2, 5.0);
        for path in [&quiet, &loud] {
            let choice = path.choose().unwrap();
            let scan =
                (0..2000).map(|i| path.score(0, (-16.0 + 0.015 * f64::from(i)).exp())).fold(f64::INFINITY, f64::min);
            assert!(choice.scores[0] <= scan * (1.0 + 1e-6), "{} {}", choice.scores[0], scan);
        }
        assert!(quiet.choose().unwrap().ridge < loud.choose().unwrap().ridge);
    }

    #[test]
    fn floor_is_respected() {
        let (_, _, mut path) = problem(3, 1e-6);
        path.floor = 0.7;
        assert!(path.choose().unwrap().ridge >= 0.7);
    }
}
