//! Eigendecomposition of symmetric matrices.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::{ColMut, Mat, MatRef, Par, Spec};

use crate::error::{Error, Result};

/// A = Q diag(λ) Qᵀ, eigenvalues ascending.
#[derive(Debug, Clone)]
pub struct SymmetricEigen {
    /// λ, ascending.
    pub values: Vec<f64>,
    /// Q, one eigenvector a column; empty if only values were asked for.
    pub vectors: Mat<f64>,
}

impl SymmetricEigen {
    /// Eigenvalues and eigenvectors of a symmetric matrix, of which only the lower triangle is read.
    pub fn new(matrix: MatRef<'_, f64>) -> Result<Self> {
        Self::compute(matrix, true)
    }

    /// Eigenvalues alone.
    pub fn values_of(matrix: MatRef<'_, f64>) -> Result<Vec<f64>> {
        Self::compute(matrix, false).map(|eigen| eigen.values)
    }

    fn compute(matrix: MatRef<'_, f64>, with_vectors: bool) -> Result<Self> {
        let n = matrix.nrows();
        // faer's solver does not take nothing.
        if n == 0 {
            return Ok(Self { values: Vec::new(), vectors: Mat::new() });
        }
        let mut values = vec![0.0; n];
        let mut vectors = if with_vectors { Mat::zeros(n, n) } else { Mat::new() };
        let want = if with_vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
        // Sequential: threads do not help here (measured), and the bits stay the same.
        let par = Par::Seq;
        let mut memory = MemBuffer::new(evd::self_adjoint_evd_scratch::<f64>(n, want, par, Spec::default()));
        let diagonal: DiagMut<'_, f64> = ColMut::from_slice_mut(&mut values).as_diagonal_mut();
        let target = with_vectors.then(|| vectors.as_mut());
        evd::self_adjoint_evd(matrix, diagonal, target, par, MemStack::new(&mut memory), Spec::default())
            .map_err(|_| Error::Internal("the symmetric eigensolver did not converge"))?;
        Ok(Self { values, vectors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_eigenvalues() {
        let eigen = SymmetricEigen::new(Mat::<f64>::new().as_ref()).unwrap();
        assert!(eigen.values.is_empty() && eigen.vectors.ncols() == 0);
    }

    #[test]
    fn decomposition_rebuilds_the_matrix() {
        let mut rng = crate::random::Generator::new(9);
        let a = Mat::from_fn(30, 30, |_, _| rng.normal());
        let a = &a + a.transpose();
        let eigen = SymmetricEigen::new(a.as_ref()).unwrap();
        let scaled = Mat::from_fn(30, 30, |i, j| eigen.vectors[(i, j)] * eigen.values[j]);
        assert!((&scaled * eigen.vectors.transpose() - &a).norm_max() < 1e-12 * 30.0);
        assert!(eigen.values.windows(2).all(|w| w[0] <= w[1]));
        let values = SymmetricEigen::values_of(a.as_ref()).unwrap();
        assert!(values.iter().zip(&eigen.values).all(|(a, b)| (a - b).abs() < 1e-11));
    }
}
