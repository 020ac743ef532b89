//! A ← L⁻¹ A L⁻ᵀ of a symmetric matrix in half the work of two triangular solves, on its lower triangle alone.
//!
//! The blocked form of LAPACK's `dsygst` (type 1, lower): J. J. Dongarra et al., "LAPACK Users' Guide", SIAM 1999,
//! section 2.4.7. Of the columns of a block, what is left of them is solved for, and what is below and to the right of it
//! is updated by a product of rank 2·[`BLOCK`], of which only the lower triangle is computed: m³ operations, where the
//! solves take 2m³.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Accum, MatMut, MatRef, Par};

use super::parallelism;

/// Columns taken together: the more, the better the products run; the fewer, the less is computed above the diagonal.
const BLOCK: usize = 128;

/// A ← L⁻¹ A L⁻ᵀ. Only the lower triangle of `matrix` is read and written.
pub(super) fn whiten_both_sides(lower: MatRef<'_, f64>, mut matrix: MatMut<'_, f64>) {
    let dim = lower.nrows();
    for start in (0..dim).step_by(BLOCK) {
        let width = BLOCK.min(dim - start);
        let rest = dim - start - width;
        let corner = lower.submatrix(start, start, width, width);
        let beside = lower.submatrix(start + width, start, rest, width);
        let (mut own, mut below, tail) = parts(matrix.as_mut(), start, width);
        mirror_lower(own.as_mut());
        solve_lower_triangular_in_place(corner, own.as_mut(), Par::Seq);
        solve_lower_triangular_in_place(corner, own.as_mut().transpose_mut(), Par::Seq);
        if rest == 0 {
            return;
        }
        let par = parallelism(rest * width * width / 2);
        solve_lower_triangular_in_place(corner, below.as_mut().transpose_mut(), par);
        // Half of what the corner takes away now, half after the update: the two sides of it share it.
        matmul(below.as_mut(), Accum::Add, beside, own.as_ref(), -0.5, par);
        let (all, half) = (BlockStructure::Rectangular, BlockStructure::TriangularLower);
        let par = parallelism(rest * rest * width);
        let mut tail = tail;
        for (a, b) in [(below.as_ref(), beside), (beside, below.as_ref())] {
            triangular::matmul(tail.as_mut(), half, Accum::Add, a, all, b.transpose(), all, -1.0, par);
        }
        let par = parallelism(rest * width * width);
        matmul(below.as_mut(), Accum::Add, beside, own.as_ref(), -0.5, par);
        // A single column is not bitwise equal on several threads.
        let par = if width == 1 { Par::Seq } else { parallelism(rest * rest * width / 2) };
        solve_lower_triangular_in_place(lower.submatrix(start + width, start + width, rest, rest), below, par);
    }
}

/// X ← L⁻¹X of a lower triangular matrix X, whose columns have nothing above the diagonal to solve for: m³/3 operations.
pub(super) fn lower_quotient(lower: MatRef<'_, f64>, mut matrix: MatMut<'_, f64>) {
    let dim = lower.nrows();
    for start in (0..dim).step_by(BLOCK) {
        let (width, rest) = (BLOCK.min(dim - start), dim - start);
        let par = if width == 1 { Par::Seq } else { parallelism(rest * rest * width / 2) };
        let columns = matrix.as_mut().submatrix_mut(start, start, rest, width);
        solve_lower_triangular_in_place(lower.submatrix(start, start, rest, rest), columns, par);
    }
}

/// The square of a block of columns on the diagonal, what is below it, and what is to the right of that.
fn parts(matrix: MatMut<'_, f64>, start: usize, width: usize) -> (MatMut<'_, f64>, MatMut<'_, f64>, MatMut<'_, f64>) {
    let from = matrix.nrows() - start;
    let (own, _, below, tail) = matrix.submatrix_mut(start, start, from, from).split_at_mut(width, width);
    (own, below, tail)
}

/// Writes what is below the diagonal above it.
pub(crate) fn mirror_lower(mut matrix: MatMut<'_, f64>) {
    for j in 0..matrix.ncols() {
        (j + 1..matrix.nrows()).for_each(|i| matrix[(j, i)] = matrix[(i, j)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Cholesky;
    use crate::random::Generator;
    use faer::Mat;

    /// A positive definite matrix of its own.
    fn decaying(dim: usize) -> Mat<f64> {
        Mat::from_fn(dim, dim, |i, j| (-(i as f64 - j as f64).abs() / 9.0).exp())
    }

    #[test]
    fn both_sides_at_once_are_the_two_solves_one_after_the_other() {
        for dim in [1, 2, 57, 128, 129, 300, 513] {
            let mut rng = Generator::new(dim as u64);
            let a = Mat::from_fn(dim, dim, |_, _| rng.normal());
            let spd = &a * a.transpose() + Mat::<f64>::identity(dim, dim) * faer::Scale(dim as f64);
            let factor = Cholesky::new(spd.as_ref(), "test").unwrap();
            let symmetric = &a + a.transpose();
            let mut expected = symmetric.clone();
            factor.forward_in_place(expected.as_mut());
            expected = expected.transpose().to_owned();
            factor.forward_in_place(expected.as_mut());
            let run = |threads: usize| {
                // What is above the diagonal is not read.
                let mut found = Mat::from_fn(dim, dim, |i, j| if i >= j { symmetric[(i, j)] } else { f64::NAN });
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| whiten_both_sides(factor.factor(), found.as_mut()));
                found
            };
            let other = Cholesky::new(decaying(dim).as_ref(), "test").unwrap();
            let mut quotient = factor.clone();
            other.divide(&mut quotient);
            assert!((other.factor() * quotient.factor() - factor.factor()).norm_max() < 1e-10, "{dim}");
            let (found, other) = (run(1), run(3));
            for j in 0..dim {
                for i in j..dim {
                    assert!((found[(i, j)] - expected[(i, j)]).abs() < 1e-12, "{dim}: {i} {j}");
                    assert_eq!(found[(i, j)].to_bits(), other[(i, j)].to_bits(), "{dim}: {i} {j}");
                }
            }
        }
    }
}
