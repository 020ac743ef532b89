//! Factoring one matrix after the other in the same memory, and what is asked of each: solves, a border.
//!
//! Columns are aligned and their distance depends on the size alone, not on what the memory held before, so that equal
//! matrices give equal bits whatever came before them.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{self, LltError, LltRegularization};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Accum, Mat, MatMut, MatRef, Par, Spec};

use super::cholesky::JITTERS;
use super::parallelism;
use crate::error::{Error, Result};

/// Numbers that share a cache line: columns start at one.
const ALIGNMENT: usize = 8;

/// Memory for a matrix of changing size.
#[derive(Debug, Clone)]
pub struct ReusedMatrix {
    memory: Mat<f64>,
    rows: usize,
    cols: usize,
}

impl Default for ReusedMatrix {
    fn default() -> Self {
        Self { memory: Mat::zeros(0, 1), rows: 0, cols: 0 }
    }
}

impl ReusedMatrix {
    /// Changes the size; what is inside afterwards is left over from before.
    pub fn reshape(&mut self, rows: usize, cols: usize) {
        let needed = rows.next_multiple_of(ALIGNMENT) * cols;
        if needed > self.memory.nrows() {
            // A quarter more than needed, for sizes that creep up.
            self.memory = Mat::zeros(needed + needed / 4, 1);
        }
        (self.rows, self.cols) = (rows, cols);
    }

    /// The matrix, column-major.
    pub fn as_ref(&self) -> MatRef<'_, f64> {
        let stride = self.rows.next_multiple_of(ALIGNMENT);
        match self.rows * self.cols {
            0 => MatRef::from_column_major_slice(&[], self.rows, self.cols),
            _ => MatRef::from_column_major_slice_with_stride(self.memory.col_as_slice(0), self.rows, self.cols, stride),
        }
    }

    /// The matrix, column-major.
    pub fn as_mut(&mut self) -> MatMut<'_, f64> {
        let stride = self.rows.next_multiple_of(ALIGNMENT);
        match self.rows * self.cols {
            0 => MatMut::from_column_major_slice_mut(&mut [], self.rows, self.cols),
            _ => MatMut::from_column_major_slice_with_stride_mut(
                self.memory.col_as_slice_mut(0),
                self.rows,
                self.cols,
                stride,
            ),
        }
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.memory.nrows() * 8
    }
}

/// The Cholesky factor of the matrix given last.
#[derive(Debug, Clone, Default)]
pub struct Factoring {
    factor: ReusedMatrix,
    other: ReusedMatrix,
    jitter: f64,
}

impl Factoring {
    /// Factors the symmetric matrix of `dim` rows whose lower triangle `fill` writes: called with j and the entries
    /// (j, j), (j + 1, j), … of column j. Jitter as in [`Cholesky::new`](super::Cholesky::new).
    pub fn factor(&mut self, dim: usize, mut fill: impl FnMut(usize, &mut [f64]), what: &'static str) -> Result<()> {
        self.factor.reshape(dim, dim);
        let (mut pivot, mut mean) = (0, 0.0);
        for relative in JITTERS {
            let mut matrix = self.factor.as_mut();
            for j in 0..dim {
                if let Some(column) = matrix.as_mut().col_mut(j).subrows_mut(j, dim - j).try_as_col_major_mut() {
                    fill(j, column.as_slice_mut());
                }
            }
            mean = (0..dim).map(|j| matrix[(j, j)]).sum::<f64>() / dim.max(1) as f64;
            if !(mean.is_finite() && mean >= 0.0) {
                break;
            }
            self.jitter = relative * mean;
            (0..dim).for_each(|j| matrix[(j, j)] += self.jitter);
            match cholesky(matrix) {
                Ok(()) => return Ok(()),
                Err(index) => pivot = index,
            }
        }
        Err(Error::NotPositiveDefinite { what, pivot, jitter: JITTERS[JITTERS.len() - 1] * mean })
    }

    /// Takes a lower triangular factor as it is (for factors that were saved).
    pub fn set(&mut self, factor: MatRef<'_, f64>, jitter: f64) {
        self.factor.reshape(factor.nrows(), factor.nrows());
        self.factor.as_mut().copy_from(factor);
        self.jitter = jitter;
    }

    /// What had to be added to the diagonal.
    pub fn jitter(&self) -> f64 {
        self.jitter
    }

    /// L; what stands above its diagonal means nothing.
    pub fn lower(&self) -> MatRef<'_, f64> {
        self.factor.as_ref()
    }

    /// B ← L⁻¹B.
    pub fn forward_in_place(&self, rhs: MatMut<'_, f64>) {
        let n = self.factor.rows;
        // A single column is not bitwise equal on several threads.
        let par = if rhs.ncols() == 1 { Par::Seq } else { parallelism(n * n * rhs.ncols() / 2) };
        solve_lower_triangular_in_place(self.factor.as_ref(), rhs, par);
    }

    /// Adds rows and columns: `border` is L⁻¹ of the new columns above the old corner, and `corner` fills the lower
    /// triangle of the new corner as in [`factor`](Self::factor). Whether that worked: if not, there is no factor.
    #[must_use]
    pub fn extend(&mut self, border: MatRef<'_, f64>, mut corner: impl FnMut(usize, &mut [f64])) -> bool {
        let (old, new) = (self.factor.rows, border.ncols());
        let dim = old + new;
        self.other.reshape(dim, dim);
        let mut next = self.other.as_mut();
        let lower = self.factor.as_ref();
        for j in 0..old {
            next.as_mut().col_mut(j).subrows_mut(j, old - j).copy_from(lower.col(j).subrows(j, old - j));
        }
        next.as_mut().submatrix_mut(old, 0, new, old).copy_from(border.transpose());
        let mut tail = next.submatrix_mut(old, old, new, new);
        for j in 0..new {
            if let Some(column) = tail.as_mut().col_mut(j).subrows_mut(j, new - j).try_as_col_major_mut() {
                corner(j, column.as_slice_mut());
            }
            tail[(j, j)] += self.jitter;
        }
        let whole = BlockStructure::Rectangular;
        let target = BlockStructure::TriangularLower;
        triangular::matmul(tail.as_mut(), target, Accum::Add, border.transpose(), whole, border, whole, -1.0, Par::Seq);
        let done = cholesky(tail).is_ok();
        std::mem::swap(&mut self.factor, &mut self.other);
        done
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.factor.size_bytes() + self.other.size_bytes()
    }
}

/// Factors in place; the pivot that failed otherwise.
fn cholesky(mut matrix: MatMut<'_, f64>) -> Result<(), usize> {
    let n = matrix.nrows();
    let par = parallelism(n * n * n / 6);
    let params = Spec::default();
    let mut memory = MemBuffer::new(factor::cholesky_in_place_scratch::<f64>(n, par, params));
    let stack = MemStack::new(&mut memory);
    match factor::cholesky_in_place(matrix.as_mut(), LltRegularization::default(), par, stack, params) {
        Ok(_) => match (0..n).find(|&j| !matrix.as_ref().col(j).subrows(j, n - j).iter().all(|v| v.is_finite())) {
            None => Ok(()),
            Some(j) => Err(j),
        },
        Err(LltError::NonPositivePivot { index }) => Err(index),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cholesky;
    use super::*;

    fn spd(n: usize) -> Mat<f64> {
        let mut rng = crate::random::Generator::new(4);
        let a = Mat::from_fn(n, n, |_, _| rng.normal());
        &a * a.transpose() + Mat::<f64>::identity(n, n)
    }

    fn fill(a: &Mat<f64>, from: usize) -> impl FnMut(usize, &mut [f64]) {
        move |j, out| out.iter_mut().enumerate().for_each(|(i, v)| *v = a[(from + j + i, from + j)])
    }

    #[test]
    fn a_used_workspace_gives_the_same_bits_as_a_fresh_one_and_the_plain_factor() {
        let (large, small) = (spd(150), spd(70));
        let mut used = Factoring::default();
        used.factor(150, fill(&large, 0), "test").unwrap();
        used.factor(70, fill(&small, 0), "test").unwrap();
        let mut fresh = Factoring::default();
        fresh.factor(70, fill(&small, 0), "test").unwrap();
        let plain = Cholesky::new(small.as_ref(), "test").unwrap();
        for j in 0..70 {
            for i in j..70 {
                let found = used.lower()[(i, j)];
                assert!(found == fresh.lower()[(i, j)] && (found - plain.factor()[(i, j)]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_border_gives_the_factor_of_the_whole() {
        let a = spd(90);
        let mut part = Factoring::default();
        part.factor(60, |j, out| out.iter_mut().enumerate().for_each(|(i, v)| *v = a[(j + i, j)]), "test").unwrap();
        let mut border = a.submatrix(0, 60, 60, 30).to_owned();
        part.forward_in_place(border.as_mut());
        assert!(part.extend(border.as_ref(), fill(&a, 60)));
        let whole = Cholesky::new(a.as_ref(), "test").unwrap();
        for j in 0..90 {
            assert!((j..90).all(|i| (part.lower()[(i, j)] - whole.factor()[(i, j)]).abs() < 1e-10));
        }
        // A corner that the border exceeds.
        let border = Mat::from_fn(90, 1, |_, _| 1.0);
        assert!(!part.extend(border.as_ref(), |_, out| out[0] = 1.0));
    }

    #[test]
    fn singular_gets_jitter_and_indefinite_is_refused() {
        let mut work = Factoring::default();
        work.factor(5, |_, out| out.fill(1.0), "ones").unwrap();
        assert!(work.jitter() > 0.0);
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            let found = work.factor(3, |j, out| out.fill(if j == 1 { bad } else { 1.0 }), "bad");
            assert!(matches!(found, Err(Error::NotPositiveDefinite { .. })));
        }
        work.factor(0, |_, _| (), "nothing").unwrap();
        assert_eq!(work.lower().nrows(), 0);
    }
}
