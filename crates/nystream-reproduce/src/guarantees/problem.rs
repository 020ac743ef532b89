//! A stream small enough for exact arithmetic, with everything that depends on it alone.

use faer::{Mat, Par, Side};
use nystream::Result;
use nystream::kernel::Kernel;
use nystream::linalg::SymmetricEigen;
use nystream::rows::RowBlock;
use nystream::sketch::Dictionary;

use super::{ACCURACY, CHECKS, LEVERAGE_RIDGE};
use crate::approximation::difference;
use crate::data;

/// Rows, kernel, and for every checked step what Eq. 11 compares with.
pub(super) struct Problem {
    pub name: &'static str,
    pub about: &'static str,
    pub kernel: Kernel,
    pub rows: RowBlock,
    kernels: Mat<f64>,
    pub steps: Vec<Step>,
}

/// A checked step.
pub(super) struct Step {
    /// Rows so far.
    pub t: usize,
    /// d_eff(γ) of them, exactly.
    pub effective_dim: f64,
    /// γ/(1−ε) K(K + γI)⁻¹, lower triangle.
    bound: Mat<f64>,
    tolerance: f64,
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    /// Whether all of Eq. 11 holds.
    pub holds: bool,
    /// ‖K − K̃‖₂ (1−ε)/γ.
    pub ratio: f64,
}

/// The four kinds of data.
pub(super) fn problems(n: usize) -> Result<Vec<Problem>> {
    let gaussian = Kernel::gaussian(1.0)?;
    [
        (
            "clustered",
            "one cluster with 90 % of the rows and 8 small ones in the plane, Gaussian kernel, σ = 1",
            gaussian,
            data::unbalanced_clusters(n, 2, 8, 8.0, 1),
        ),
        ("low coherence", "standard normal rows in the plane, Gaussian kernel, σ = 1", gaussian, data::normal(n, 2, 2)),
        (
            "heavy-tailed",
            "Student's t with 2 degrees of freedom in the plane, Gaussian kernel, σ = 1",
            gaussian,
            data::student(n, 2, 3),
        ),
        (
            "polynomial decay",
            "uniform rows on [0, 1], Matérn 3/2 kernel, σ = 0.1",
            Kernel::matern32(0.1)?,
            data::uniform(n, 1, 4),
        ),
    ]
    .into_iter()
    .map(|(name, about, kernel, rows)| Problem::new(name, about, kernel, rows))
    .collect()
}

impl Problem {
    fn new(name: &'static str, about: &'static str, kernel: Kernel, rows: RowBlock) -> Result<Self> {
        let kernels = kernel.matrix(rows.rows());
        let n = rows.len();
        let steps = (1..=CHECKS).map(|i| Step::new(&kernels, i * n / CHECKS)).collect::<Result<_>>()?;
        Ok(Self { name, about, kernel, rows, kernels, steps })
    }

    /// Judges the dictionary of the first `step.t` rows.
    pub(super) fn judge(&self, step: &Step, dictionary: &Dictionary) -> Result<Judged> {
        let difference = difference(self.kernels.as_ref(), step.t, dictionary)?;
        let eigenvalues = SymmetricEigen::values_of(difference.as_ref())?;
        let (smallest, largest) = (eigenvalues[0], eigenvalues[step.t - 1]);
        let bound = LEVERAGE_RIDGE / (1.0 - ACCURACY);
        // bound − (K − K̃) ≽ −tolerance, by whether it has a Cholesky factor.
        let mut margin = step.bound.as_ref() - &difference;
        (0..step.t).for_each(|i| margin[(i, i)] += step.tolerance);
        let inner = margin.llt(Side::Lower).is_ok();
        Ok(Judged { holds: smallest >= -step.tolerance && inner, ratio: largest.max(-smallest) / bound })
    }
}

impl Step {
    fn new(kernels: &Mat<f64>, t: usize) -> Result<Self> {
        let eigen = SymmetricEigen::new(kernels.as_ref().submatrix(0, 0, t, t))?;
        let scale = LEVERAGE_RIDGE / (1.0 - ACCURACY);
        let share = |value: f64| value.max(0.0) / (value.max(0.0) + LEVERAGE_RIDGE);
        let scaled = Mat::from_fn(t, t, |i, j| eigen.vectors[(i, j)] * (scale * share(eigen.values[j])));
        let mut bound = Mat::zeros(t, t);
        let (vectors, replace) = (eigen.vectors.transpose(), faer::Accum::Replace);
        faer::linalg::matmul::matmul(bound.as_mut(), replace, scaled.as_ref(), vectors, 1.0, Par::Seq);
        let trace: f64 = (0..t).map(|i| kernels[(i, i)]).sum();
        // As `check_guarantee`: kernel values are good to 1e-12.
        let rounding = t as f64 * f64::EPSILON + 1e-12;
        Ok(Self {
            t,
            effective_dim: eigen.values.iter().map(|&value| share(value)).sum(),
            bound,
            tolerance: rounding * (1.0 + 1.0 / (1.0 - ACCURACY)) * trace,
        })
    }
}

#[cfg(test)]
mod tests {
    use nystream::random::Generator;
    use nystream::sketch::{check_guarantee, uniform};

    use super::*;

    #[test]
    fn judgements_are_those_of_the_librarys_check() {
        let (mut held, mut failed) = (0, 0);
        for problem in problems(64).unwrap() {
            for (step, seed) in problem.steps.iter().zip(1..) {
                let rows = problem.rows.rows().slice(0, step.t);
                for budget in [1, step.t / 2, step.t] {
                    let dictionary = uniform(rows, budget, LEVERAGE_RIDGE, &mut Generator::new(seed)).unwrap();
                    let expected = check_guarantee(&problem.kernel, rows, &dictionary, None, ACCURACY).unwrap();
                    let found = problem.judge(step, &dictionary).unwrap();
                    assert_eq!(found.holds, expected.bound_holds, "{} {}: {expected:?}", problem.name, step.t);
                    assert!((found.ratio - expected.bound_ratio).abs() < 1e-10);
                    assert!((step.effective_dim - expected.effective_dim).abs() < 1e-9);
                    if found.holds { held += 1 } else { failed += 1 }
                }
            }
        }
        assert!(held > 30 && failed > 20, "{held} {failed}");
    }
}
