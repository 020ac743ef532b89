//! K − K̃ from the kernel matrix itself, and its norm.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::{Accum, Mat, MatRef, Par};
use nystream::Result;
use nystream::kernel::{Centres, Kernel, KernelWorkspace};
use nystream::linalg::{Cholesky, SymmetricEigen};
use nystream::random::Generator;
use nystream::rows::Rows;
use nystream::sketch::Dictionary;

/// Steps of Lanczos: the largest eigenvalue of a matrix of fast decay is then exact to many digits.
const LANCZOS_STEPS: usize = 60;

/// The lower triangle of K_t − K̃_t, K̃_t = K_t S (SᵀK_tS + γI)⁻¹ SᵀK_t, for the first `t` rows. The dictionary's row
/// numbers say which columns of `kernels` its atoms are; γ is its own, and rounding's size in its place if that is 0.
pub(crate) fn difference(kernels: MatRef<'_, f64>, t: usize, dictionary: &Dictionary) -> Result<Mat<f64>> {
    let atoms: Vec<usize> = dictionary.indices().iter().map(|&i| i as usize).collect();
    let inner = Mat::from_fn(atoms.len(), atoms.len(), |i, j| kernels[(atoms[i], atoms[j])]);
    // Kernels with the atoms as columns of rows: m × t.
    let outer = Mat::from_fn(atoms.len(), t, |i, j| kernels[(atoms[i], j)]);
    let mut out = kernels.submatrix(0, 0, t, t).to_owned();
    subtract(&mut out, inner, outer, dictionary)?;
    Ok(out)
}

/// The same for rows that need not hold the atoms.
pub(crate) fn difference_on(kernel: &Kernel, rows: Rows, dictionary: &Dictionary) -> Result<Mat<f64>> {
    let atoms = dictionary.atoms().rows();
    let mut outer = Mat::zeros(atoms.len(), rows.len());
    kernel.block(atoms, &Centres::new(rows), &mut KernelWorkspace::default(), outer.as_mut());
    let mut out = kernel.matrix(rows);
    subtract(&mut out, kernel.matrix(atoms), outer, dictionary)?;
    Ok(out)
}

fn subtract(out: &mut Mat<f64>, mut inner: Mat<f64>, mut outer: Mat<f64>, dictionary: &Dictionary) -> Result<()> {
    let m = dictionary.len();
    if m == 0 {
        return Ok(());
    }
    let gamma = dictionary.leverage_ridge();
    // With γ = 0 the weights cancel; atoms that nearly depend on each other need what kernel values are good to.
    let plain = gamma == 0.0;
    let weight = |i: usize| if plain { 1.0 } else { dictionary.weights()[i] };
    let floor = (0..m).map(|i| inner[(i, i)]).fold(0.0, f64::max) * 1e-12;
    for j in 0..m {
        for i in 0..m {
            inner[(i, j)] *= weight(i) * weight(j);
        }
        inner[(j, j)] += if plain { floor } else { gamma };
    }
    for column in outer.as_mut().col_iter_mut() {
        column.iter_mut().enumerate().for_each(|(i, value)| *value *= weight(i));
    }
    let factor = Cholesky::new(inner.as_ref(), "the atoms' kernels")?;
    factor.forward_in_place(outer.as_mut());
    let (lower, rectangular) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    // Sequential, for the same bits on any number of threads.
    triangular_matmul(
        out.as_mut(),
        lower,
        Accum::Add,
        outer.transpose(),
        rectangular,
        outer.as_ref(),
        rectangular,
        -1.0,
        Par::Seq,
    );
    Ok(())
}

/// The trace.
pub(crate) fn trace(matrix: MatRef<'_, f64>) -> f64 {
    (0..matrix.nrows()).map(|i| matrix[(i, i)]).sum()
}

/// Copies the lower triangle to the upper.
pub(crate) fn mirror(matrix: &mut Mat<f64>) {
    for j in 0..matrix.ncols() {
        for i in 0..j {
            matrix[(i, j)] = matrix[(j, i)];
        }
    }
}

/// ‖A‖₂ of a positive semidefinite matrix (both triangles filled) by Lanczos with every vector kept orthogonal, from a
/// fixed random start. From below; exact where the matrix has fewer distinct eigenvalues than steps.
pub(crate) fn spectral_norm(matrix: MatRef<'_, f64>) -> Result<f64> {
    let n = matrix.nrows();
    let steps = LANCZOS_STEPS.min(n);
    let mut rng = Generator::new(17);
    let mut basis = Mat::<f64>::zeros(n, steps);
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    let mut vector = Mat::from_fn(n, 1, |_, _| rng.normal());
    for step in 0..steps {
        let norm = vector.norm_l2();
        if norm <= 1e-14 * diagonal.iter().fold(0.0, |a: f64, b: &f64| a.max(b.abs())) || norm == 0.0 {
            break;
        }
        if step > 0 {
            beside.push(norm);
        }
        basis.as_mut().col_mut(step).copy_from(&(&vector * (1.0 / norm)).col(0));
        let current = basis.as_ref().subcols(step, 1);
        matmul(vector.as_mut(), Accum::Replace, matrix, current, 1.0, Par::Seq);
        let known = basis.as_ref().subcols(0, step + 1);
        diagonal.push((current.transpose() * &vector)[(0, 0)]);
        // Twice is enough.
        for _ in 0..2 {
            let shares = known.transpose() * &vector;
            matmul(vector.as_mut(), Accum::Add, known, shares.as_ref(), -1.0, Par::Seq);
        }
    }
    let size = diagonal.len();
    let tridiagonal = Mat::from_fn(size, size, |i, j| match i.abs_diff(j) {
        0 => diagonal[i],
        1 => beside[i.min(j)],
        _ => 0.0,
    });
    Ok(SymmetricEigen::values_of(tridiagonal.as_ref())?.last().copied().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nystream::sketch::check_guarantee;

    fn rows(count: usize) -> Vec<f64> {
        let mut rng = Generator::new(3);
        (0..2 * count).map(|_| rng.normal()).collect()
    }

    #[test]
    fn the_difference_and_its_norm_are_those_of_the_librarys_check() {
        let numbers = rows(60);
        let rows = Rows::dense(&numbers, 60, 2).unwrap();
        let kernel = Kernel::gaussian(1.0).unwrap();
        let kernels = kernel.matrix(rows);
        for gamma in [0.0, 0.7] {
            let chosen = [3, 10, 11, 40];
            let atoms = nystream::rows::RowBlock::gather(rows, &chosen);
            let numbers = chosen.iter().map(|&i| i as u64).collect();
            let dictionary = Dictionary::new(atoms, vec![1.5, 0.5, 2.0, 1.0], numbers, gamma).unwrap();
            let expected = check_guarantee(&kernel, rows, &dictionary, Some(1.0), 0.5).unwrap();
            let mut found = difference(kernels.as_ref(), 60, &dictionary).unwrap();
            mirror(&mut found);
            let norm = spectral_norm(found.as_ref()).unwrap();
            assert!((norm - expected.spectral_error).abs() < 1e-9, "{norm} {expected:?}");
            assert!((1.0 - trace(found.as_ref()) / 60.0 - expected.captured).abs() < 1e-9);
            let mut elsewhere = difference_on(&kernel, rows, &dictionary).unwrap();
            mirror(&mut elsewhere);
            assert!((elsewhere - found).norm_max() < 1e-10);
        }
    }

    #[test]
    fn lanczos_ends_where_nothing_is_left() {
        let matrix = Mat::<f64>::identity(30, 30) * 2.5;
        assert!((spectral_norm(matrix.as_ref()).unwrap() - 2.5).abs() < 1e-12);
        assert_eq!(spectral_norm(Mat::<f64>::zeros(5, 5).as_ref()).unwrap(), 0.0);
    }
}
