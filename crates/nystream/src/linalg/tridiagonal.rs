//! Symmetric matrices in tridiagonal form: what is asked of A + μI for many μ costs O(n) each.
//!
//! A = QTQᵀ by Householder reflections (G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th ed., section 8.3.1): a
//! third of the work of eigenvectors. T + μI = LDLᵀ with L unit bidiagonal then gives solutions, and the diagonal of its
//! inverse by a sum of positive terms.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::tridiag;
use faer::linalg::householder;
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::{Conj, Mat, MatMut, Par, Spec};

/// T of A = QTQᵀ.
#[derive(Debug, Clone)]
pub struct Tridiagonal {
    diagonal: Vec<f64>,
    /// Below the diagonal; one less.
    below: Vec<f64>,
}

/// T + μI = LDLᵀ.
#[derive(Debug, Clone)]
pub struct ShiftedTridiagonal {
    /// D.
    pivots: Vec<f64>,
    /// L below its diagonal of ones.
    ratios: Vec<f64>,
}

impl Tridiagonal {
    /// Reduces a symmetric matrix, of which only the lower triangle is read, and turns the columns beside it: B ← QᵀB.
    pub fn reduce(mut matrix: Mat<f64>, mut beside: MatMut<'_, f64>) -> Self {
        let n = matrix.nrows();
        if n > 1 {
            // Sequential: threads do not help here, and the bits stay the same.
            let par = Par::Seq;
            let block = recommended_block_size::<f64>(n, n);
            let mut reflections = Mat::zeros(block, n - 1);
            let mut memory = MemBuffer::new(tridiag::tridiag_in_place_scratch::<f64>(n, par, Spec::default()));
            let stack = MemStack::new(&mut memory);
            tridiag::tridiag_in_place(matrix.as_mut(), reflections.as_mut(), par, stack, Spec::default());
            let mut memory =
                MemBuffer::new(householder::apply_block_householder_sequence_transpose_on_the_left_in_place_scratch::<
                    f64,
                >(n - 1, block, beside.ncols()));
            householder::apply_block_householder_sequence_transpose_on_the_left_in_place_with_conj(
                matrix.as_ref().submatrix(1, 0, n - 1, n - 1),
                reflections.as_ref(),
                Conj::No,
                beside.as_mut().subrows_mut(1, n - 1),
                par,
                MemStack::new(&mut memory),
            );
        }
        let diagonal = (0..n).map(|i| matrix[(i, i)]).collect();
        let below = (1..n).map(|i| matrix[(i, i - 1)]).collect();
        Self { diagonal, below }
    }

    /// Number of rows.
    pub fn dim(&self) -> usize {
        self.diagonal.len()
    }

    /// A bound on the largest absolute eigenvalue (Gershgorin), at most three times as large.
    pub fn bound(&self) -> f64 {
        let beside = |i: usize| self.below.get(i).map_or(0.0, |v| v.abs());
        let before = |i: usize| if i == 0 { 0.0 } else { beside(i - 1) };
        (0..self.dim()).map(|i| self.diagonal[i].abs() + before(i) + beside(i)).fold(0.0, f64::max)
    }

    /// T + shift I, factored; none if it is not positive definite.
    pub fn shifted(&self, shift: f64) -> Option<ShiftedTridiagonal> {
        let mut pivots = Vec::with_capacity(self.dim());
        let mut ratios = Vec::with_capacity(self.below.len());
        let mut taken = 0.0;
        for (i, value) in self.diagonal.iter().enumerate() {
            let pivot = value + shift - taken;
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            pivots.push(pivot);
            if let Some(&below) = self.below.get(i) {
                let ratio = below / pivot;
                ratios.push(ratio);
                taken = ratio * below;
            }
        }
        Some(ShiftedTridiagonal { pivots, ratios })
    }
}

impl ShiftedTridiagonal {
    /// The trace of the inverse.
    pub fn inverse_trace(&self) -> f64 {
        let (mut last, mut trace) = (0.0, 0.0);
        for (i, pivot) in self.pivots.iter().enumerate().rev() {
            let ratio = self.ratios.get(i).copied().unwrap_or(0.0);
            last = 1.0 / pivot + ratio * ratio * last;
            trace += last;
        }
        trace
    }

    /// What row j of L has before its diagonal, and 1/D_jj: L⁻¹x for many x at once, a row after the other.
    pub fn step(&self, j: usize) -> (f64, f64) {
        (if j == 0 { 0.0 } else { self.ratios[j - 1] }, 1.0 / self.pivots[j])
    }

    /// x ← (T + μI)⁻¹ x.
    pub fn solve_in_place(&self, x: &mut [f64]) {
        for i in 1..x.len() {
            x[i] -= self.ratios[i - 1] * x[i - 1];
        }
        x.iter_mut().zip(&self.pivots).for_each(|(x, pivot)| *x /= pivot);
        for i in (1..x.len()).rev() {
            x[i - 1] -= self.ratios[i - 1] * x[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cholesky, SymmetricEigen};
    use super::*;
    use crate::random::Generator;

    #[test]
    fn solutions_traces_and_eigenvalues_are_those_of_the_matrix() {
        let mut rng = Generator::new(3);
        for n in [1, 2, 3, 40, 150] {
            let a = Mat::from_fn(n + 5, n, |_, _| rng.normal());
            let square = a.transpose() * &a;
            let b = Mat::from_fn(n, 2, |_, _| rng.normal());
            let mut turned = b.clone();
            let form = Tridiagonal::reduce(square.clone(), turned.as_mut());
            let largest = *SymmetricEigen::values_of(square.as_ref()).unwrap().last().unwrap();
            assert!(form.bound() >= largest * (1.0 - 1e-12) && form.bound() <= 3.0 * largest);
            let shift = 0.3;
            let shifted = form.shifted(shift).unwrap();
            let full = &square + Mat::<f64>::identity(n, n) * faer::Scale(shift);
            let factor = Cholesky::new(full.as_ref(), "test").unwrap();
            let trace: f64 = factor.inverse_diagonal().iter().sum();
            assert!((shifted.inverse_trace() / trace - 1.0).abs() < 1e-10);
            for t in 0..2 {
                let mut mine: Vec<f64> = turned.col(t).iter().copied().collect();
                let before = mine.clone();
                shifted.solve_in_place(&mut mine);
                let mut whole = b.subcols(t, 1).to_owned();
                factor.solve_in_place(whole.as_mut());
                // Products do not depend on the basis.
                let along = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>();
                let expected = (b.subcols(t, 1).transpose() * &whole)[(0, 0)];
                assert!((along(&before, &mine) / expected - 1.0).abs() < 1e-9);
                assert!((along(&mine, &mine) / whole.squared_norm_l2() - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn nothing_is_reduced_to_nothing_and_indefinite_is_refused() {
        let form = Tridiagonal::reduce(Mat::new(), Mat::zeros(0, 1).as_mut());
        assert_eq!((form.dim(), form.bound(), form.shifted(1.0).unwrap().inverse_trace()), (0, 0.0, 0.0));
        let form = Tridiagonal::reduce(-Mat::<f64>::identity(3, 3), Mat::zeros(3, 1).as_mut());
        assert!(form.shifted(0.5).is_none() && form.shifted(1.5).is_some());
    }
}
