//! Ridge by generalised cross-validation, from sums alone.
//!
//! G. H. Golub, M. Heath, G. Wahba: "Generalized cross-validation as a method for choosing a good
//! ridge parameter", Technometrics 21 (1979): GCV(μ) = n · RSS/(n − dof)². With Σφφᵀ = QTQᵀ, T tridiagonal, c = QᵀΣφy
//! and x = (T + μI)⁻¹c, every ridge μ has
//!
//! - residual sum of squares  Σy² − cᵀx − μxᵀx,
//! - free rows                n − dof = n − m − (intercept) + μ tr (T + μI)⁻¹,
//!
//! at O(m) a value and no pass over the data (L. Eldén, "A note on the computation of the generalized cross-validation
//! function for ill-conditioned least squares problems", BIT 24, 1984, does the same with a bidiagonal form). Where the
//! kernel matrix of all rows takes the place of Σφφᵀ, c = Qᵀy and RSS = μ²xᵀx.
//!
//! Departures from the paper: several targets share one μ, chosen by the sum of the logarithms of
//! their GCV (so that no target counts for more because of its unit); μ stays above a floor
//! that the caller computes from rounding errors in its sums.

use faer::Mat;
use pulp::Simd;

use crate::error::{Error, Result};
use crate::linalg::{Tridiagonal, Vectorised, vectorised};

/// Points of the grid of ridges, on both sides of its middle.
const STEPS: usize = 96;
/// One in so many of them is tried first, then those between the best one and its neighbours.
const STRIDE: usize = 3;
/// Ridges that are tried at once.
const LANES: usize = 4;
/// Sections of the interval around the best: to a thousandth of the ridge. Closer by, rounding errors would decide.
const SECTIONS: usize = 8;

/// Everything about a ridge problem that GCV needs.
#[derive(Debug, Clone)]
pub struct RidgePath {
    form: Tridiagonal,
    /// c of each target.
    turned: Vec<Vec<f64>>,
    given: Given,
    /// Σy² of each target (after centring, if there is an intercept).
    target_squares: Vec<f64>,
    /// Number of rows (Σw, if they have weights).
    rows: f64,
    intercept: bool,
    /// Smallest ridge that rounding errors allow.
    floor: f64,
}

/// What the tridiagonal form is of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Given {
    /// Sums over rows of features.
    Sums,
    /// The kernel matrix of the rows; with an intercept, the eigenvalue that the constant has in it.
    Kernels { constant: Option<f64> },
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

impl GcvChoice {
    /// The mean logarithm of the scores, so that units do not matter.
    pub fn mean_log_score(&self) -> f64 {
        self.scores.iter().map(|score| score.ln()).sum::<f64>() / self.scores.len() as f64
    }
}

impl RidgePath {
    /// From Σφφᵀ (its lower triangle), Σφy and Σy² of each target over so many rows, without means if there is an
    /// intercept. Ridges are not below `floor`.
    pub fn from_sums(
        gram: &Mat<f64>,
        mut cross: Mat<f64>,
        target_squares: Vec<f64>,
        rows: f64,
        intercept: bool,
        floor: f64,
    ) -> Self {
        let form = Tridiagonal::reduce(gram, cross.as_mut());
        Self::from_form(form, &cross, target_squares, rows, intercept, floor)
    }

    /// The same from T and c.
    pub(super) fn from_form(
        form: Tridiagonal,
        turned: &Mat<f64>,
        target_squares: Vec<f64>,
        rows: f64,
        intercept: bool,
        floor: f64,
    ) -> Self {
        Self { form, turned: columns(turned), given: Given::Sums, target_squares, rows, intercept, floor }
    }

    /// From the kernel matrix of all rows (its lower triangle) and their targets. With an intercept both are without
    /// means, but for `constant` times the projection on constants in the matrix: with an eigenvalue of 0 there, the free
    /// rows of small ridges, whose number is then the difference of 1 and almost 1, would be lost to rounding.
    pub fn from_kernels(matrix: &Mat<f64>, mut targets: Mat<f64>, constant: Option<f64>, floor: f64) -> Self {
        let (intercept, given) = (constant.is_some(), Given::Kernels { constant });
        let target_squares = targets.col_iter().map(|column| column.squared_norm_l2()).collect();
        let rows = targets.nrows() as f64;
        let form = Tridiagonal::reduce(matrix, targets.as_mut());
        let turned = columns(&targets);
        Self { form, turned, given, target_squares, rows, intercept, floor }
    }

    /// Scores of a ridge: infinite where the model has as many parameters as rows, or rounding errors have it fail.
    pub fn at(&self, ridge: f64) -> GcvChoice {
        let [choice] = self.at_each([ridge]);
        choice
    }

    /// [`at`](Self::at) for several ridges in little more time than for one.
    #[inline(always)]
    fn at_each<const N: usize>(&self, ridges: [f64; N]) -> [GcvChoice; N] {
        let (dim, constant) = (self.form.dim() as f64, f64::from(u8::from(self.intercept)));
        let (shifted, definite) = self.form.shifted_each(ridges);
        let traces = shifted.inverse_traces();
        let free = std::array::from_fn::<f64, N, _>(|n| {
            let shrunk = ridges[n] * traces[n];
            match self.given {
                Given::Sums => self.rows - (dim + constant) + shrunk,
                Given::Kernels { constant } => {
                    shrunk - constant.map_or(0.0, |eigenvalue| ridges[n] / (eigenvalue + ridges[n]))
                }
            }
        });
        let mut scores = [const { Vec::new() }; N];
        let mut solved = Vec::new();
        for (turned, &total) in self.turned.iter().zip(&self.target_squares) {
            solved.clear();
            solved.extend(turned.iter().map(|&value| [value; N]));
            shifted.solve_in_place(&mut solved);
            let (mut square, mut fitted) = ([0.0; N], [0.0; N]);
            for (x, c) in solved.iter().zip(turned) {
                for n in 0..N {
                    square[n] += x[n] * x[n];
                    fitted[n] += x[n] * c;
                }
            }
            let least = (total * f64::EPSILON).max(f64::MIN_POSITIVE);
            for n in 0..N {
                let residual = match self.given {
                    Given::Sums => (total - fitted[n] - ridges[n] * square[n]).max(least),
                    Given::Kernels { .. } => least + ridges[n] * ridges[n] * square[n],
                };
                let known = definite[n] && free[n] > 0.0;
                scores[n].push(if known { self.rows * residual / (free[n] * free[n]) } else { f64::INFINITY });
            }
        }
        let mut scores = scores.into_iter();
        std::array::from_fn(|n| {
            let degrees_of_freedom = if definite[n] { self.rows - free[n] } else { self.rows };
            GcvChoice { ridge: ridges[n], degrees_of_freedom, scores: scores.next().unwrap_or_default() }
        })
    }

    /// Degrees of freedom of the ridge μ.
    #[doc(alias = "effective dimension")]
    pub fn degrees_of_freedom(&self, ridge: f64) -> f64 {
        self.at(ridge).degrees_of_freedom
    }

    /// The ridge of least GCV.
    pub fn choose(&self) -> Result<GcvChoice> {
        self.choose_above(0.0)
    }

    /// The ridge of least GCV of those not below `least`: a logarithmic grid, then sections around its best point.
    pub fn choose_above(&self, least: f64) -> Result<GcvChoice> {
        let bound = self.form.bound();
        // Features that are all zero leave nothing to choose: any ridge gives the constant.
        let high = if bound > 0.0 { 100.0 * bound } else { 1.0 };
        let low = (1e-14 * high).max(self.floor).max(least).min(high);
        let at = |i: usize| low.ln() + (high / low).ln() * i as f64 / STEPS as f64;
        let mut best: Option<(f64, usize)> = None;
        let mut try_all = |steps: &[usize]| {
            for steps in steps.chunks(LANES) {
                let scores = self.objectives(std::array::from_fn::<f64, LANES, _>(|n| at(*steps.get(n).unwrap_or(&0))));
                for (&step, score) in steps.iter().zip(scores).filter(|(_, score)| !score.is_nan()) {
                    if best.is_none_or(|(least, _)| score < least) {
                        best = Some((score, step));
                    }
                }
            }
            best.map(|(_, step)| step)
        };
        // Coarse, then fine.
        let coarse: Vec<usize> = (0..=STEPS).step_by(STRIDE).collect();
        if let Some(step) = try_all(&coarse) {
            let near = (step + 1).saturating_sub(STRIDE)..(step + STRIDE).min(STEPS + 1);
            try_all(&near.filter(|&other| other != step).collect::<Vec<_>>());
        }
        let best = best.ok_or(Error::Internal("no ridge has a generalised cross-validation score"))?.1;
        // The interval around the best of LANES points in it has two of LANES + 1 parts.
        let (mut a, mut b) = (at(best.saturating_sub(1)), at((best + 1).min(STEPS)));
        for _ in 0..SECTIONS {
            let part = (b - a) / (LANES + 1) as f64;
            let points = std::array::from_fn::<f64, LANES, _>(|n| a + (n + 1) as f64 * part);
            let scores = self.objectives(points);
            let least = (0..LANES).min_by(|&m, &n| scores[m].total_cmp(&scores[n])).map_or(a, |n| points[n]);
            (a, b) = (least - part, least + part);
        }
        Ok(self.at(((a + b) / 2.0).exp()))
    }

    /// Σ ln GCV over the targets at the exponentials of these.
    fn objectives<const N: usize>(&self, log_ridges: [f64; N]) -> [f64; N] {
        let mut out = [f64::INFINITY; N];
        vectorised(Objectives { path: self, ridges: log_ridges.map(f64::exp), out: &mut out });
        out
    }
}

struct Objectives<'a, const N: usize> {
    path: &'a RidgePath,
    ridges: [f64; N],
    out: &'a mut [f64; N],
}

impl<const N: usize> Vectorised for Objectives<'_, N> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, _simd: S) {
        *self.out = self.path.at_each(self.ridges).map(|choice| choice.scores.iter().map(|score| score.ln()).sum());
    }
}

fn columns(matrix: &Mat<f64>) -> Vec<Vec<f64>> {
    matrix.col_iter().map(|column| column.iter().copied().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Cholesky;
    use crate::random::Generator;

    /// A linear problem y = Φθ + noise, and its path.
    fn problem(seed: u64, noise: f64, floor: f64) -> (Mat<f64>, Mat<f64>, RidgePath) {
        let mut rng = Generator::new(seed);
        let (n, m) = (60, 8);
        let phi = Mat::from_fn(n, m, |_, j| rng.normal() / (1.0 + j as f64));
        let y = Mat::from_fn(n, 1, |i, _| phi[(i, 0)] + phi[(i, 3)] + noise * rng.normal());
        let (gram, cross) = (phi.transpose() * &phi, phi.transpose() * &y);
        let path = RidgePath::from_sums(&gram, cross, vec![y.squared_norm_l2()], n as f64, false, floor);
        (phi, y, path)
    }

    #[test]
    fn score_equals_the_definition_by_hat_matrix() {
        let (phi, y, path) = problem(1, 0.5, 0.0);
        let kernels = RidgePath::from_kernels(&(&phi * phi.transpose()), y.clone(), None, 0.0);
        for ridge in [1e-3, 0.1, 2.0, 50.0] {
            let a = phi.transpose() * &phi + Mat::<f64>::identity(8, 8) * faer::Scale(ridge);
            let mut solved = phi.transpose().to_owned();
            Cholesky::new(a.as_ref(), "a").unwrap().solve_in_place(solved.as_mut());
            let hat = &phi * &solved;
            let trace: f64 = (0..60).map(|i| hat[(i, i)]).sum();
            let rss = (&y - &hat * &y).squared_norm_l2();
            let expected = 60.0 * rss / (60.0 - trace).powi(2);
            // Rows or features: the same predictions.
            for path in [&path, &kernels] {
                let found = path.at(ridge);
                assert!((found.scores[0] / expected - 1.0).abs() < 1e-10);
                assert!((found.degrees_of_freedom - trace).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn choice_is_the_minimum_of_a_fine_scan_and_grows_with_the_noise() {
        let (_, _, quiet) = problem(2, 0.1, 0.0);
        let (_, _, loud) = problem(2, 5.0, 0.0);
        for path in [&quiet, &loud] {
            let choice = path.choose().unwrap();
            let score = |i: i32| path.at((-16.0 + 0.015 * f64::from(i)).exp()).scores[0];
            let scan = (0..2000).map(score).fold(f64::INFINITY, f64::min);
            assert!(choice.scores[0] <= scan * (1.0 + 1e-6), "{} {}", choice.scores[0], scan);
        }
        assert!(quiet.choose().unwrap().ridge < loud.choose().unwrap().ridge);
    }

    #[test]
    fn floors_are_respected() {
        let (_, _, path) = problem(3, 1e-6, 0.7);
        assert!(path.choose().unwrap().ridge >= 0.7);
        assert!(path.choose_above(2.0).unwrap().ridge >= 2.0);
    }
}
