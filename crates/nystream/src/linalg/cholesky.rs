//! Cholesky factorisation with reported jitter, and the solves that go with it.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{self, LltError, LltRegularization};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Mat, MatMut, MatRef, Par, Spec};

use super::congruence::{lower_quotient, whiten_both_sides};
use super::parallelism;
use crate::error::{Error, Result};

/// A = LLᵀ − jitter·I, with L lower triangular.
#[derive(Debug, Clone)]
pub struct Cholesky {
    factor: Mat<f64>,
    jitter: f64,
}

/// Jitters tried, relative to the mean of the diagonal.
pub(super) const JITTERS: [f64; 8] = [0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9];

impl Cholesky {
    /// Factors a symmetric matrix, of which only the lower triangle is read.
    ///
    /// If it is not positive definite in floating point, the smallest of a short ladder of jitters
    /// (up to 1e-9 of the mean diagonal) that makes it so is added and reported.
    pub fn new(matrix: MatRef<'_, f64>, what: &'static str) -> Result<Self> {
        let n = matrix.nrows();
        let mean = (0..n).map(|i| matrix[(i, i)]).sum::<f64>() / n.max(1) as f64;
        let mut pivot = 0;
        if mean.is_finite() && mean >= 0.0 {
            for relative in JITTERS {
                let jitter = relative * mean;
                match Self::with_jitter(matrix, jitter) {
                    Ok(factor) => return Ok(Self { factor, jitter }),
                    Err(index) => pivot = index,
                }
            }
        }
        Err(Error::NotPositiveDefinite { what, pivot, jitter: JITTERS[JITTERS.len() - 1] * mean })
    }

    fn with_jitter(matrix: MatRef<'_, f64>, jitter: f64) -> Result<Mat<f64>, usize> {
        let n = matrix.nrows();
        let mut factor = Mat::zeros(n, n);
        for (j, column) in factor.as_mut().col_iter_mut().enumerate() {
            column.subrows_mut(j, n - j).copy_from(matrix.col(j).subrows(j, n - j));
        }
        for i in 0..n {
            factor[(i, i)] += jitter;
        }
        let par = parallelism(n * n * n / 3);
        let params = Spec::default();
        let mut memory = MemBuffer::new(factor::cholesky_in_place_scratch::<f64>(n, par, params));
        let stack = MemStack::new(&mut memory);
        let found = factor::cholesky_in_place(factor.as_mut(), LltRegularization::default(), par, stack, params);
        // The factorisation leaves its own numbers above the diagonal.
        for (j, column) in factor.as_mut().col_iter_mut().enumerate() {
            column.iter_mut().take(j).for_each(|v| *v = 0.0);
        }
        match found {
            Ok(_) if factor.col_iter().all(|c| c.iter().all(|v| v.is_finite())) => Ok(factor),
            Ok(_) => Err(0),
            Err(LltError::NonPositivePivot { index }) => Err(index),
        }
    }

    /// Takes a lower triangular factor as it is (for factors that were saved).
    pub fn from_factor(factor: Mat<f64>) -> Self {
        Self { factor, jitter: 0.0 }
    }

    /// L, zeros above the diagonal.
    pub fn factor(&self) -> MatRef<'_, f64> {
        self.factor.as_ref()
    }

    /// What had to be added to the diagonal.
    pub fn jitter(&self) -> f64 {
        self.jitter
    }

    /// Number of rows.
    pub fn dim(&self) -> usize {
        self.factor.nrows()
    }

    fn solve_parallelism(&self, columns: usize) -> Par {
        // A single column is not bitwise equal on several threads.
        if columns == 1 { Par::Seq } else { parallelism(self.dim() * self.dim() * columns / 2) }
    }

    /// B ← L⁻¹B.
    pub fn forward_in_place(&self, rhs: MatMut<'_, f64>) {
        let par = self.solve_parallelism(rhs.ncols());
        solve_lower_triangular_in_place(self.factor.as_ref(), rhs, par);
    }

    /// B ← L⁻ᵀB.
    pub fn backward_in_place(&self, rhs: MatMut<'_, f64>) {
        let par = self.solve_parallelism(rhs.ncols());
        solve_upper_triangular_in_place(self.factor.transpose(), rhs, par);
    }

    /// B ← A⁻¹B.
    pub fn solve_in_place(&self, mut rhs: MatMut<'_, f64>) {
        self.forward_in_place(rhs.as_mut());
        self.backward_in_place(rhs);
    }

    /// B ← L⁻¹BL⁻ᵀ of a symmetric matrix, of which only the lower triangle is read and written.
    pub fn both_sides_in_place(&self, matrix: MatMut<'_, f64>) {
        whiten_both_sides(self.factor.as_ref(), matrix);
    }

    /// Turns another factor M into L⁻¹M, which is lower triangular too: the factor of L⁻¹(MMᵀ)L⁻ᵀ.
    pub fn divide(&self, other: &mut Self) {
        lower_quotient(self.factor.as_ref(), other.factor.as_mut());
    }

    /// L⁻¹.
    pub fn inverse_factor(&self) -> Mat<f64> {
        let n = self.dim();
        let mut inverse = Mat::zeros(n, n);
        invert_lower_triangular(inverse.as_mut(), self.factor.as_ref(), parallelism(n * n * n / 3));
        inverse
    }

    /// The diagonal of A⁻¹: squared column norms of L⁻¹.
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        let inverse = self.inverse_factor();
        (0..self.dim()).map(|j| inverse.col(j).iter().skip(j).map(|v| v * v).sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spd(n: usize) -> Mat<f64> {
        let mut rng = crate::random::Generator::new(3);
        let a = Mat::from_fn(n, n, |_, _| rng.normal());
        &a * a.transpose() + Mat::<f64>::identity(n, n)
    }

    #[test]
    fn factor_solves_and_inverse_diagonal_agree_with_the_matrix() {
        let a = spd(40);
        let chol = Cholesky::new(a.as_ref(), "test").unwrap();
        assert_eq!(chol.jitter(), 0.0);
        assert!((chol.factor() * chol.factor().transpose() - &a).norm_max() < 1e-12);
        let mut inverse = Mat::<f64>::identity(40, 40);
        chol.solve_in_place(inverse.as_mut());
        let residual = &a * &inverse - Mat::<f64>::identity(40, 40);
        assert!(residual.norm_max() < 1e-10);
        for (i, d) in chol.inverse_diagonal().into_iter().enumerate() {
            assert!((d - inverse[(i, i)]).abs() < 1e-12 * d);
        }
    }

    #[test]
    fn singular_matrix_gets_reported_jitter_and_indefinite_is_refused() {
        let ones = Mat::from_fn(5, 5, |_, _| 1.0);
        let chol = Cholesky::new(ones.as_ref(), "ones").unwrap();
        assert!(chol.jitter() > 0.0);
        let mut bad = Mat::<f64>::identity(4, 4);
        bad[(2, 2)] = -1.0;
        assert!(matches!(Cholesky::new(bad.as_ref(), "bad"), Err(Error::NotPositiveDefinite { .. })));
        bad[(2, 2)] = f64::NAN;
        assert!(Cholesky::new(bad.as_ref(), "bad").is_err());
    }
}
