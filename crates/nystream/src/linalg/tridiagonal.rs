//! Symmetric matrices in tridiagonal form: what is asked of A + μI for many μ costs O(n) each.
//!
//! A = QTQᵀ by Householder reflections (G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th ed., section 8.3.1): a
//! third of the work of eigenvectors. T + μI = LDLᵀ with L unit bidiagonal then gives solutions, and the diagonal of its
//! inverse by a sum of positive terms.

use faer::{Mat, MatMut};

use super::sweeps::tridiagonal;

/// T of A = QTQᵀ.
#[derive(Debug, Clone)]
pub struct Tridiagonal {
    diagonal: Vec<f64>,
    /// Below the diagonal; one less.
    below: Vec<f64>,
}

/// T + μI = LDLᵀ for N of μ at once: each is a chain of divisions, every one of which waits for the one before it; side by side
/// they take the time of one.
#[derive(Debug, Clone)]
pub struct ShiftedTridiagonal<const N: usize = 1> {
    /// D.
    pivots: Vec<[f64; N]>,
    /// L below its diagonal of ones.
    ratios: Vec<[f64; N]>,
}

impl Tridiagonal {
    /// Reduces a symmetric matrix, of which only the lower triangle is read, and turns the columns beside it: B ← QᵀB.
    pub fn reduce(matrix: &Mat<f64>, beside: MatMut<'_, f64>) -> Self {
        let (diagonal, below) = tridiagonal(matrix, beside);
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
        let (shifted, [definite]) = self.shifted_each([shift]);
        definite.then_some(shifted)
    }

    /// T + shift I of several shifts, factored, and which of them are positive definite: what the others give means nothing.
    #[inline(always)]
    pub fn shifted_each<const N: usize>(&self, shifts: [f64; N]) -> (ShiftedTridiagonal<N>, [bool; N]) {
        let mut pivots = Vec::with_capacity(self.dim());
        let mut ratios = Vec::with_capacity(self.below.len());
        let (mut taken, mut definite) = ([0.0; N], [true; N]);
        for (i, value) in self.diagonal.iter().enumerate() {
            let mut pivot = [0.0; N];
            for n in 0..N {
                pivot[n] = value + shifts[n] - taken[n];
                definite[n] &= pivot[n] > 0.0 && pivot[n] < f64::INFINITY;
            }
            pivots.push(pivot);
            if let Some(&below) = self.below.get(i) {
                let ratio = pivot.map(|pivot| below / pivot);
                ratios.push(ratio);
                taken = ratio.map(|ratio| ratio * below);
            }
        }
        (ShiftedTridiagonal { pivots, ratios }, definite)
    }
}

impl ShiftedTridiagonal {
    /// What row j of L has before its diagonal, and 1/D_jj: L⁻¹x for many x at once, a row after the other.
    pub fn step(&self, j: usize) -> (f64, f64) {
        (if j == 0 { 0.0 } else { self.ratios[j - 1][0] }, 1.0 / self.pivots[j][0])
    }
}

impl<const N: usize> ShiftedTridiagonal<N> {
    /// The trace of each inverse.
    #[inline(always)]
    pub fn inverse_traces(&self) -> [f64; N] {
        let (mut last, mut trace) = ([0.0; N], [0.0; N]);
        for (i, pivot) in self.pivots.iter().enumerate().rev() {
            let ratio = self.ratios.get(i).copied().unwrap_or([0.0; N]);
            for n in 0..N {
                last[n] = 1.0 / pivot[n] + ratio[n] * ratio[n] * last[n];
                trace[n] += last[n];
            }
        }
        trace
    }

    /// x ← (T + μI)⁻¹ x, of each μ its own x.
    #[inline(always)]
    pub fn solve_in_place(&self, x: &mut [[f64; N]]) {
        for i in 1..x.len() {
            let before = x[i - 1];
            (0..N).for_each(|n| x[i][n] -= self.ratios[i - 1][n] * before[n]);
        }
        for (x, pivot) in x.iter_mut().zip(&self.pivots) {
            (0..N).for_each(|n| x[n] /= pivot[n]);
        }
        for i in (1..x.len()).rev() {
            let after = x[i];
            (0..N).for_each(|n| x[i - 1][n] -= self.ratios[i - 1][n] * after[n]);
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
            let form = Tridiagonal::reduce(&square, turned.as_mut());
            let largest = *SymmetricEigen::values_of(square.as_ref()).unwrap().last().unwrap();
            assert!(form.bound() >= largest * (1.0 - 1e-12) && form.bound() <= 3.0 * largest);
            let shift = 0.3;
            let shifted = form.shifted(shift).unwrap();
            let full = &square + Mat::<f64>::identity(n, n) * faer::Scale(shift);
            let factor = Cholesky::new(full.as_ref(), "test").unwrap();
            let trace: f64 = factor.inverse_diagonal().iter().sum();
            assert!((shifted.inverse_traces()[0] / trace - 1.0).abs() < 1e-10);
            for t in 0..2 {
                let before: Vec<f64> = turned.col(t).iter().copied().collect();
                let mut mine: Vec<[f64; 1]> = before.iter().map(|&v| [v]).collect();
                shifted.solve_in_place(&mut mine);
                let mine = mine.concat();
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
        let form = Tridiagonal::reduce(&Mat::new(), Mat::zeros(0, 1).as_mut());
        assert_eq!((form.dim(), form.bound(), form.shifted(1.0).unwrap().inverse_traces()), (0, 0.0, [0.0]));
        let form = Tridiagonal::reduce(&-Mat::<f64>::identity(3, 3), Mat::zeros(3, 1).as_mut());
        assert!(form.shifted(0.5).is_none() && form.shifted(1.5).is_some());
        assert_eq!(form.shifted_each([0.5, 1.5, f64::INFINITY, f64::NAN]).1, [false, true, false, false]);
    }

    #[test]
    fn shifts_side_by_side_give_the_bits_of_each_alone() {
        let mut rng = Generator::new(4);
        let a = Mat::from_fn(30, 25, |_, _| rng.normal());
        let mut beside = Mat::from_fn(25, 1, |_, _| rng.normal());
        let form = Tridiagonal::reduce(&(a.transpose() * &a), beside.as_mut());
        let shifts = [1e-3, 0.1, 2.0, 50.0];
        let (all, definite) = form.shifted_each(shifts);
        assert_eq!(definite, [true; 4]);
        let mut solved: Vec<[f64; 4]> = beside.col(0).iter().map(|&v| [v; 4]).collect();
        all.solve_in_place(&mut solved);
        for (n, shift) in shifts.into_iter().enumerate() {
            let alone = form.shifted(shift).unwrap();
            let mut x: Vec<[f64; 1]> = beside.col(0).iter().map(|&v| [v]).collect();
            alone.solve_in_place(&mut x);
            assert!(x.iter().zip(&solved).all(|(x, all)| x[0] == all[n]));
            assert_eq!(alone.inverse_traces()[0], all.inverse_traces()[n]);
        }
    }
}
