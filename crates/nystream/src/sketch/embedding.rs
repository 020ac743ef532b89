//! The features φ(x) = L⁻¹ S k_Z(x) of a dictionary, S K_ZZ S + γI = LLᵀ, a block of rows at a time.
//!
//! φ(x)ᵀφ(z) is the entry of K̃ (INK, Eq. 5), so ‖φ(x)‖² is what the dictionary captures of k(x, x).
//!
//! With γ = 0 (plain Nyström) the weights cancel, so atoms are scaled to unit energy instead. And where γ
//! is below the accuracy of kernel values, that accuracy takes its place: a factor of atoms that are
//! nearly dependent may exist by luck and then give features far larger than k(x, x) (seen: by 1e-5 of
//! tr K). What was added is reported as jitter.

use faer::{Mat, MatMut};

use super::dictionary::Dictionary;
use super::matrix::{KERNEL_ACCURACY, checked_diagonal, kernel_matrix, no_energy};
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::Cholesky;
use crate::rows::Rows;

/// Rows evaluated at once: 8 MB at 1,000 atoms.
const BLOCK: usize = 1024;

/// The feature map of a dictionary.
#[derive(Debug)]
pub(super) struct Embedding {
    kernel: Kernel,
    centres: Centres,
    weights: Vec<f64>,
    cholesky: Cholesky,
    jitter: f64,
    workspace: KernelWorkspace,
    buffer: Vec<f64>,
}

impl Embedding {
    /// The features of `dictionary`, with `leverage_ridge` in the place of its own γ.
    pub(super) fn new(kernel: &Kernel, dictionary: &Dictionary, leverage_ridge: f64) -> Result<Self> {
        let atoms = dictionary.atoms().rows();
        if atoms.is_empty() {
            return Err(Error::Shape { what: "atoms of the dictionary", found: 0, expected: 1 });
        }
        let mut inner = kernel_matrix(kernel, atoms);
        let weights: Vec<f64> = if leverage_ridge > 0.0 {
            dictionary.weights().to_vec()
        } else {
            (0..atoms.len()).map(|i| if inner[(i, i)] > 0.0 { inner[(i, i)].sqrt().recip() } else { 1.0 }).collect()
        };
        for j in 0..atoms.len() {
            for i in 0..atoms.len() {
                inner[(i, j)] *= weights[i] * weights[j];
            }
        }
        let mean = (0..atoms.len()).map(|i| inner[(i, i)]).sum::<f64>() / atoms.len() as f64;
        let ridge = leverage_ridge.max(KERNEL_ACCURACY * mean);
        (0..atoms.len()).for_each(|i| inner[(i, i)] += ridge);
        let cholesky = Cholesky::new(inner.as_ref(), "the dictionary's kernels")?;
        let jitter = ridge - leverage_ridge + cholesky.jitter();
        let (centres, workspace) = (Centres::new(atoms), KernelWorkspace::default());
        Ok(Self { kernel: *kernel, centres, weights, cholesky, jitter, workspace, buffer: Vec::new() })
    }

    /// Number of features.
    pub(super) fn dim(&self) -> usize {
        self.weights.len()
    }

    /// What was added to γ: 0 unless γ is below the accuracy of kernel values.
    pub(super) fn jitter(&self) -> f64 {
        self.jitter
    }

    /// Calls `visit(first row, Φ)` for each block of rows; Φ is rows × dim, column-major.
    pub(super) fn for_each_block(&mut self, rows: Rows, mut visit: impl FnMut(usize, MatMut<'_, f64>)) -> Result<()> {
        let atoms = self.centres.rows();
        let both_sparse = matches!((rows, atoms), (Rows::Sparse(_), Rows::Sparse(_)));
        if rows.cols() != atoms.cols() && !both_sparse {
            return Err(Error::Shape { what: "columns of the rows", found: rows.cols(), expected: atoms.cols() });
        }
        let dim = self.dim();
        for start in (0..rows.len()).step_by(BLOCK) {
            let part = rows.slice(start, rows.len().min(start + BLOCK));
            self.buffer.resize(part.len() * dim, 0.0);
            let mut phi = MatMut::from_column_major_slice_mut(&mut self.buffer, part.len(), dim);
            self.kernel.block(part, &self.centres, &mut self.workspace, phi.as_mut());
            for (column, weight) in phi.as_mut().col_iter_mut().zip(&self.weights) {
                column.iter_mut().for_each(|v| *v *= weight);
            }
            self.cholesky.forward_in_place(phi.as_mut().transpose_mut());
            visit(start, phi);
        }
        Ok(())
    }

    /// ‖φ(x)‖² of every row.
    pub(super) fn squared_norms(&mut self, rows: Rows) -> Result<Vec<f64>> {
        let mut norms = vec![0.0; rows.len()];
        self.for_each_block(rows, |start, phi| add_squared_norms(&phi, &mut norms[start..]))?;
        Ok(norms)
    }

    /// Φ of all rows: n × dim.
    pub(super) fn features(&mut self, rows: Rows) -> Result<Mat<f64>> {
        let mut all = Mat::zeros(rows.len(), self.dim());
        self.for_each_block(rows, |start, phi| all.as_mut().subrows_mut(start, phi.nrows()).copy_from(&phi))?;
        Ok(all)
    }
}

/// norms[i] += ‖Φ_i‖², in the order of the columns.
pub(super) fn add_squared_norms(phi: &MatMut<'_, f64>, norms: &mut [f64]) {
    for column in phi.as_ref().col_iter() {
        norms.iter_mut().zip(column.iter()).for_each(|(sum, v)| *sum += v * v);
    }
}

impl Dictionary {
    /// The share of kernel energy captured: Σ‖φ(x)‖² / Σ k(x, x) = 1 − tr(K − K̃) / tr K over `rows`.
    ///
    /// Costs O(n m²) and holds O(m²) beside the rows.
    pub fn captured(&self, kernel: &Kernel, rows: Rows) -> Result<f64> {
        Ok(captured_and_jitter(kernel, self, rows)?.0)
    }
}

/// [`Dictionary::captured`], and the jitter that computing it took.
pub(super) fn captured_and_jitter(kernel: &Kernel, dictionary: &Dictionary, rows: Rows) -> Result<(f64, f64)> {
    let energy: f64 = checked_diagonal(kernel, rows)?.iter().sum();
    if energy <= 0.0 {
        return Err(no_energy());
    }
    let mut embedding = Embedding::new(kernel, dictionary, dictionary.leverage_ridge())?;
    let kept: f64 = embedding.squared_norms(rows)?.iter().sum();
    // Rounding may take a complete dictionary just past 1.
    Ok(((kept / energy).clamp(0.0, 1.0), embedding.jitter()))
}

#[cfg(test)]
mod tests {
    use super::super::direct_sample::{all_rows, gather};
    use super::super::oracle;
    use super::*;

    #[test]
    fn features_rebuild_the_approximation_of_equation_5() {
        let block = oracle::normal_rows(40, 3, 5);
        let rows = block.rows();
        for kernel in oracle::kernels() {
            let weights = vec![1.5, 0.7, 2.0, 1.0, 0.2];
            let dictionary = gather(rows, &[3, 9, 20, 21, 39], weights, 0.4).unwrap();
            let phi = Embedding::new(&kernel, &dictionary, 0.4).unwrap().features(rows).unwrap();
            let expected = oracle::approximation(&kernel, rows, &dictionary);
            assert!((&phi * phi.transpose() - &expected).norm_max() < 1e-12 * expected.norm_max());
            let energy: f64 = (0..40).map(|i| kernel.diagonal(rows.row(i))).sum();
            let share = (0..40).map(|i| expected[(i, i)]).sum::<f64>() / energy;
            assert!((dictionary.captured(&kernel, rows).unwrap() - share).abs() < 1e-12);
        }
    }

    #[test]
    fn blocks_do_not_change_the_norms() {
        let block = oracle::normal_rows(BLOCK + 37, 2, 6);
        let rows = block.rows();
        let kernel = Kernel::gaussian(1.0).unwrap();
        let dictionary = gather(rows, &[0, 500, BLOCK + 1], vec![1.0; 3], 0.1).unwrap();
        let mut embedding = Embedding::new(&kernel, &dictionary, 0.1).unwrap();
        let whole = embedding.squared_norms(rows).unwrap();
        let last = embedding.squared_norms(rows.slice(BLOCK + 36, BLOCK + 37)).unwrap();
        assert!((whole[BLOCK + 36] - last[0]).abs() < 1e-14);
    }

    #[test]
    fn all_rows_capture_everything_even_with_duplicates() {
        let mut block = oracle::normal_rows(15, 2, 7);
        let copy = block.clone();
        block.extend(copy.rows());
        let dictionary = all_rows(block.rows(), 0.0).unwrap();
        let kernel = Kernel::gaussian(0.5).unwrap();
        let (share, jitter) = captured_and_jitter(&kernel, &dictionary, block.rows()).unwrap();
        // Jitter j in the place of γ loses at most j of each row's energy of 1.
        assert!(jitter > 0.0 && share > 1.0 - 2.0 * jitter - 1e-12, "{share} {jitter}");
    }

    #[test]
    fn rows_of_another_width_are_refused() {
        let (two, three) = (oracle::normal_rows(4, 2, 8), oracle::normal_rows(4, 3, 8));
        let dictionary = all_rows(two.rows(), 0.1).unwrap();
        assert!(matches!(dictionary.captured(&Kernel::Linear, three.rows()), Err(Error::Shape { .. })));
    }
}
