//! The leading part of a matrix by random projection, and singular values.
//!
//! N. Halko, P.-G. Martinsson and J. A. Tropp, "Finding structure with randomness: Probabilistic algorithms for
//! constructing approximate matrix decompositions", SIAM Review 53(2), 2011: the range by randomised subspace iteration
//! (Alg. 4.4), then the small singular value (Alg. 5.1) or eigenvalue (Alg. 5.3) problem. Costs O(mn(k + 10)) for the
//! rank k of an m × n matrix.
//!
//! Departures from the paper: where the rank and its oversampling leave nothing to save, the whole decomposition is
//! computed. Everything is sequential, so the bits do not depend on the number of threads.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::matmul;
use faer::linalg::svd::{self, ComputeSvdVectors};
use faer::{Accum, ColMut, Mat, MatRef, Par, Spec};

use super::{SymmetricEigen, add_transposed_times, dot, parallelism, times};
use crate::error::{Error, Result};
use crate::random::Generator;

/// Columns of the test matrix beyond the rank asked for (HMT, section 1.3: 5 or 10).
const OVERSAMPLING: usize = 10;
/// Subspace iterations, q of Alg. 4.4: with two, the error is within a few percent of the best one even where singular
/// values decay slowly (HMT, section 1.6).
const ITERATIONS: usize = 2;

/// A ≈ U diag(σ) Vᵀ, singular values descending.
#[derive(Debug, Clone)]
pub struct Svd {
    /// U, one left singular vector a column.
    pub left: Mat<f64>,
    /// σ, descending.
    pub values: Vec<f64>,
    /// V, one right singular vector a column.
    pub right: Mat<f64>,
}

impl Svd {
    /// All of a matrix.
    pub fn new(matrix: MatRef<'_, f64>) -> Result<Self> {
        let (m, n) = (matrix.nrows(), matrix.ncols());
        let size = m.min(n);
        let (mut left, mut right) = (Mat::zeros(m, size), Mat::zeros(n, size));
        let mut values = vec![0.0; size];
        let thin = ComputeSvdVectors::Thin;
        let mut memory = MemBuffer::new(svd::svd_scratch::<f64>(m, n, thin, thin, Par::Seq, Spec::default()));
        let diagonal: DiagMut<'_, f64> = ColMut::from_slice_mut(&mut values).as_diagonal_mut();
        let (u, v) = (Some(left.as_mut()), Some(right.as_mut()));
        svd::svd(matrix, diagonal, u, v, Par::Seq, MemStack::new(&mut memory), Spec::default())
            .map_err(|_| Error::Internal("the singular value solver did not converge"))?;
        Ok(Self { left, values, right })
    }

    /// The `rank` leading singular values and vectors, by random projection (all of them if there are fewer).
    pub fn randomised(matrix: MatRef<'_, f64>, rank: usize, rng: &mut Generator) -> Result<Self> {
        let test = TestMatrix::draw(matrix.nrows(), matrix.ncols(), rank, rng);
        Self::leading_by(matrix, rank, &test)
    }

    /// The same with a random matrix that was drawn before.
    ///
    /// # Panics
    /// If it was drawn for another shape or rank.
    pub fn leading_by(matrix: MatRef<'_, f64>, rank: usize, test: &TestMatrix) -> Result<Self> {
        let Some(test) = test.fitting(matrix, rank) else { return Ok(Self::new(matrix)?.truncated(rank)) };
        let basis = range(matrix, test);
        // HMT, Alg. 5.1: B = Q*A, its SVD, U = QŨ.
        let small = Self::new(product(basis.transpose(), matrix).as_ref())?.truncated(rank);
        Ok(Self { left: product(basis.as_ref(), small.left.as_ref()), ..small })
    }

    /// Singular values above rounding, σ_max · max(m, n) · ε: those that a pseudo-inverse may divide by.
    pub fn numerical_rank(&self) -> usize {
        let size = self.left.nrows().max(self.right.nrows()) as f64;
        let least = self.values.first().copied().unwrap_or(0.0) * size * f64::EPSILON;
        self.values.iter().take_while(|&&value| value > least).count()
    }

    /// A†B, with the singular values above rounding.
    pub fn solve(&self, rhs: MatRef<'_, f64>) -> Mat<f64> {
        let rank = self.numerical_rank();
        let mut inner = product(self.left.subcols(0, rank).transpose(), rhs);
        for j in 0..inner.ncols() {
            (0..rank).for_each(|i| inner[(i, j)] /= self.values[i]);
        }
        product(self.right.subcols(0, rank), inner.as_ref())
    }

    fn truncated(mut self, rank: usize) -> Self {
        self.values.truncate(rank);
        let rank = self.values.len();
        self.left.resize_with(self.left.nrows(), rank, |_, _| 0.0);
        self.right.resize_with(self.right.nrows(), rank, |_, _| 0.0);
        self
    }
}

impl SymmetricEigen {
    /// The `rank` largest eigenvalues, descending, and their vectors, of a positive semi-definite matrix by random
    /// projection (all of them if there are fewer).
    pub fn leading(matrix: MatRef<'_, f64>, rank: usize, rng: &mut Generator) -> Result<Self> {
        let test = TestMatrix::draw(matrix.nrows(), matrix.ncols(), rank, rng);
        Self::leading_by(matrix, rank, &test)
    }

    /// The same with a random matrix that was drawn before.
    ///
    /// # Panics
    /// If it was drawn for another shape or rank.
    pub fn leading_by(matrix: MatRef<'_, f64>, rank: usize, test: &TestMatrix) -> Result<Self> {
        let Some(test) = test.fitting(matrix, rank) else { return Ok(Self::new(matrix)?.descending(rank)) };
        let basis = range(matrix, test);
        // HMT, Alg. 5.3: B = Q*AQ, its eigenvalues, U = QV.
        let half = product(matrix, basis.as_ref());
        let small = Self::new(product(basis.transpose(), half.as_ref()).as_ref())?.descending(rank);
        Ok(Self { vectors: product(basis.as_ref(), small.vectors.as_ref()), ..small })
    }

    fn descending(self, rank: usize) -> Self {
        let n = self.values.len();
        let values: Vec<f64> = self.values.iter().rev().take(rank).copied().collect();
        let vectors = Mat::from_fn(n, values.len(), |i, j| self.vectors[(i, n - 1 - j)]);
        Self { values, vectors }
    }
}

/// Random vectors for matrices of one shape, which may be decomposed many times: none where the rank and its oversampling
/// leave nothing to save.
#[derive(Debug, Clone)]
pub struct TestMatrix(Option<Mat<f64>>);

impl TestMatrix {
    /// For the `rank` leading parts of matrices of so many rows and columns.
    pub fn draw(rows: usize, columns: usize, rank: usize, rng: &mut Generator) -> Self {
        let vectors = rank + OVERSAMPLING;
        Self((vectors < rows.min(columns)).then(|| Mat::from_fn(columns, vectors, |_, _| rng.normal())))
    }

    fn fitting(&self, matrix: MatRef<'_, f64>, rank: usize) -> Option<MatRef<'_, f64>> {
        let saves = rank + OVERSAMPLING < matrix.nrows().min(matrix.ncols());
        assert_eq!(self.0.is_some(), saves, "a test matrix for this shape and rank");
        self.0.as_ref().map(|test| {
            assert_eq!(
                (test.nrows(), test.ncols()),
                (matrix.ncols(), rank + OVERSAMPLING),
                "a test matrix for this shape"
            );
            test.as_ref()
        })
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |test| test.nrows() * test.ncols() * 8)
    }
}

/// HMT, Alg. 4.4: an orthonormal basis of about the range of A, from random vectors.
fn range(matrix: MatRef<'_, f64>, test: MatRef<'_, f64>) -> Mat<f64> {
    let mut basis = product(matrix, test);
    orthonormalise(&mut basis);
    for _ in 0..ITERATIONS {
        let mut rows = product(matrix.transpose(), basis.as_ref());
        orthonormalise(&mut rows);
        basis = product(matrix, rows.as_ref());
        orthonormalise(&mut basis);
    }
    basis
}

/// Gram–Schmidt, every vector twice; one that the earlier ones span becomes zero.
fn orthonormalise(basis: &mut Mat<f64>) {
    let (rows, columns) = (basis.nrows(), basis.ncols());
    // One vector after the other, without the gaps between columns.
    let mut numbers = Vec::with_capacity(rows * columns);
    basis
        .col_iter()
        .filter_map(|column| column.try_as_col_major())
        .for_each(|column| numbers.extend_from_slice(column.as_slice()));
    let mut along = vec![0.0; columns];
    for j in 0..columns {
        let (done, rest) = numbers.split_at_mut(j * rows);
        let (column, along) = (&mut rest[..rows], &mut along[..j]);
        let before = dot(column, column).sqrt();
        for _ in 0..2 {
            times(done, rows, column, along);
            add_transposed_times(done, rows, along, -1.0, column);
        }
        let after = dot(column, column).sqrt();
        // Below this only rounding is left of it.
        let scale = if after > before * f64::EPSILON * 16.0 { 1.0 / after } else { 0.0 };
        column.iter_mut().for_each(|v| *v *= scale);
    }
    for (column, numbers) in basis.col_iter_mut().zip(numbers.chunks_exact(rows.max(1))) {
        if let Some(column) = column.try_as_col_major_mut() {
            column.as_slice_mut().copy_from_slice(numbers);
        }
    }
}

/// AB, on the threads that are this task's.
pub(crate) fn product(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(left.nrows(), right.ncols());
    let par = parallelism(left.nrows() * left.ncols() * right.ncols());
    matmul(out.as_mut(), Accum::Replace, left, right, 1.0, par);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Singular values 0.7^i.
    fn decaying(m: usize, n: usize) -> Mat<f64> {
        let mut rng = Generator::new(12);
        let mut u = Mat::from_fn(m, n, |_, _| rng.normal());
        let mut v = Mat::from_fn(n, n, |_, _| rng.normal());
        orthonormalise(&mut u);
        orthonormalise(&mut v);
        let scaled = Mat::from_fn(m, n, |i, j| u[(i, j)] * 0.7_f64.powi(j as i32));
        product(scaled.as_ref(), v.transpose())
    }

    fn rebuilt(svd: &Svd) -> Mat<f64> {
        let scaled = Mat::from_fn(svd.left.nrows(), svd.values.len(), |i, j| svd.left[(i, j)] * svd.values[j]);
        product(scaled.as_ref(), svd.right.transpose())
    }

    #[test]
    fn the_whole_decomposition_rebuilds_the_matrix() {
        for a in [decaying(30, 12), decaying(30, 12).transpose().to_owned()] {
            let svd = Svd::new(a.as_ref()).unwrap();
            assert!((rebuilt(&svd) - &a).norm_max() < 1e-14);
            assert!(svd.values.iter().enumerate().all(|(i, v)| (v - 0.7_f64.powi(i as i32)).abs() < 1e-14));
        }
    }

    #[test]
    fn a_random_projection_finds_the_leading_part() {
        // HMT, Theorem 9.1: what the basis of 16 vectors misses of the 6 leading ones is (σ₁₇ / σ₆)⁵ = 0.7⁵⁵ = 3e-9 of
        // them, times what random matrices of this size bring, below 1,000; eigenvalues are missed by its square.
        let a = decaying(80, 40);
        let svd = Svd::randomised(a.as_ref(), 6, &mut Generator::new(1)).unwrap();
        assert_eq!((svd.values.len(), svd.left.ncols(), svd.right.ncols()), (6, 6, 6));
        let exact = Svd::new(a.as_ref()).unwrap().truncated(6);
        assert!((rebuilt(&svd) - rebuilt(&exact)).norm_l2() < 3e-6 * svd.values[5]);
        assert!(svd.values.iter().zip(&exact.values).all(|(a, b)| (a - b).abs() < 1e-10 * b));
        // The same, symmetric.
        let square = product(a.transpose(), a.as_ref());
        let eigen = SymmetricEigen::leading(square.as_ref(), 6, &mut Generator::new(1)).unwrap();
        assert!(eigen.values.iter().zip(&exact.values).all(|(a, b)| (a - b * b).abs() < 1e-10 * b * b));
        let residual = product(square.as_ref(), eigen.vectors.as_ref())
            - Mat::from_fn(40, 6, |i, j| eigen.vectors[(i, j)] * eigen.values[j]);
        assert!(residual.norm_max() < 3e-6 * eigen.values[5]);
    }

    #[test]
    fn a_rank_beyond_the_matrix_gives_all_of_it() {
        let a = decaying(9, 5);
        let svd = Svd::randomised(a.as_ref(), 50, &mut Generator::new(1)).unwrap();
        assert!((rebuilt(&svd) - &a).norm_max() < 1e-14);
        let eigen = SymmetricEigen::leading(product(a.transpose(), a.as_ref()).as_ref(), 7, &mut Generator::new(1));
        assert_eq!(eigen.unwrap().values.len(), 5);
    }

    #[test]
    fn solving_is_the_pseudo_inverse_even_without_full_rank() {
        // Penrose's four conditions for X = A†, of a matrix of rank 3.
        let mut rng = Generator::new(6);
        let (b, c) = (Mat::from_fn(9, 3, |_, _| rng.normal()), Mat::from_fn(3, 5, |_, _| rng.normal()));
        let a = product(b.as_ref(), c.as_ref());
        let svd = Svd::new(a.as_ref()).unwrap();
        assert_eq!(svd.numerical_rank(), 3);
        let x = svd.solve(Mat::<f64>::identity(9, 9).as_ref());
        let (ax, xa) = (product(a.as_ref(), x.as_ref()), product(x.as_ref(), a.as_ref()));
        assert!((product(ax.as_ref(), a.as_ref()) - &a).norm_max() < 1e-12);
        assert!((product(xa.as_ref(), x.as_ref()) - &x).norm_max() < 1e-12);
        assert!((&ax - ax.transpose()).norm_max() < 1e-12 && (&xa - xa.transpose()).norm_max() < 1e-12);
        assert!(Svd::new(Mat::zeros(3, 2).as_ref()).unwrap().solve(Mat::zeros(3, 1).as_ref()).norm_max() == 0.0);
    }

    #[test]
    fn spanned_vectors_become_zero() {
        let mut basis = Mat::from_fn(6, 4, |i, j| if j == 3 { 1.0 } else { ((i + 1) as f64).powi(j as i32) });
        orthonormalise(&mut basis);
        assert!(basis.col(3).norm_l2() == 0.0);
        let gram = product(basis.transpose(), basis.as_ref());
        for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
            assert!((gram[(i, j)] - f64::from(u8::from(i == j))).abs() < 1e-14);
        }
    }
}
