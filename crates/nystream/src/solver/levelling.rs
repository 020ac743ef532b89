//! Kernels whose leading directions are brought down to the level of the rest.
//!
//! The kernels of a smooth function's atoms are nearly the same in a few directions: with a wide Gaussian in d columns, one
//! constant and d linear ones hold all but a ten-thousandth of K_ZZ. Rounding errors of Σkkᵀ have the size of its largest
//! eigenvalue, about λ₁², and lie in all directions, so that the smallest ones drown. With the r leading eigenvectors Q of
//! K_ZZ and T = I − Q diag(1 − λᵣ₊₁/λᵢ) Qᵀ, sums of c = Tk have errors of λᵣ₊₁² instead, at 2mr multiply-adds a row. T is a change of
//! basis: the problem, Σcc⊤ with the regulariser T(K_ZZ + γS⁻²)T, is the same one. Not in the papers.
//!
//! Seen: Friedman's function in 20 columns, 1,000 atoms: λ₁ = 838, λ₂₂ = 0.14; sums of levelled kernels carry a
//! ten-millionth of the errors of sums of kernels, and need no whitening of m²/2 multiply-adds a row.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::error::Result;
use crate::linalg::{SymmetricEigen, parallelism};
use crate::random::Generator;

/// Numbers of directions that are tried; more of them cost more a row.
const RANKS: [usize; 6] = [8, 16, 24, 32, 48, 64];
/// Atoms to a direction, at least: with fewer, whitening costs hardly more.
const ATOMS_A_DIRECTION: usize = 8;
/// A level this many times the least within reach is as good.
const AS_GOOD: f64 = 3.0;
/// Levels closer than this to the largest eigenvalue are not worth it.
const WORTH: f64 = 1e-1;
/// Of the random vectors that eigenvectors are found from: the same atoms have the same levelling.
const SEED: u64 = 0x1e7e1;

/// T.
#[derive(Debug, Clone, PartialEq)]
pub struct Levelling {
    /// Q, an orthonormal vector a column.
    vectors: Mat<f64>,
    /// What each direction is multiplied by.
    factors: Vec<f64>,
}

impl Levelling {
    /// Of the kernels between atoms: as many directions as bring the level down, if there are such.
    pub fn of(kernels: MatRef<'_, f64>) -> Result<Option<Self>> {
        let within = |rank: &&usize| **rank <= kernels.nrows() / ATOMS_A_DIRECTION;
        let Some(&most) = RANKS.iter().rfind(within) else { return Ok(None) };
        let SymmetricEigen { values, vectors } = SymmetricEigen::leading(kernels, most + 1, &mut Generator::new(SEED))?;
        let good = |rank: &&usize| values[**rank] <= AS_GOOD * values[most];
        let rank = RANKS.iter().find(good).copied().unwrap_or(most);
        let level = values[rank];
        if !(level > 0.0 && level < WORTH * values[0]) {
            return Ok(None);
        }
        let factors = values[..rank].iter().map(|value| level / value).collect();
        Ok(Some(Self { vectors: vectors.subcols(0, rank).to_owned(), factors }))
    }

    /// From its parts, if they are such: orthonormal vectors, factors above 0 and at most 1.
    pub fn from_parts(vectors: Mat<f64>, factors: Vec<f64>) -> Option<Self> {
        let rank = factors.len();
        let orthonormal = || (vectors.transpose() * &vectors - Mat::<f64>::identity(rank, rank)).norm_max() < 1e-8;
        let sound = factors.iter().all(|&factor| factor > 0.0 && factor <= 1.0);
        (sound && vectors.ncols() == rank && orthonormal()).then_some(Self { vectors, factors })
    }

    /// Q.
    pub fn vectors(&self) -> MatRef<'_, f64> {
        self.vectors.as_ref()
    }

    /// What each direction is multiplied by.
    pub fn factors(&self) -> &[f64] {
        &self.factors
    }

    /// A row of kernels to a row of what is summed, for each row of a block; `along` is memory.
    pub fn apply(&self, block: MatMut<'_, f64>, along: &mut Vec<f64>) {
        // Strips of a block are shared among threads as it is.
        self.on_rows(block, along, Par::Seq, |factor| factor - 1.0);
    }

    /// TB.
    pub fn level(&self, columns: MatMut<'_, f64>) {
        let par = parallelism(self.factors.len() * columns.nrows() * columns.ncols());
        self.on_rows(columns.transpose_mut(), &mut Vec::new(), par, |factor| factor - 1.0);
    }

    /// T⁻¹B.
    pub fn restore(&self, columns: MatMut<'_, f64>) {
        let par = parallelism(self.factors.len() * columns.nrows() * columns.ncols());
        self.on_rows(columns.transpose_mut(), &mut Vec::new(), par, |factor| 1.0 / factor - 1.0);
    }

    /// TAT of a symmetric matrix, all of it.
    pub fn level_both_sides(&self, mut matrix: MatMut<'_, f64>) {
        self.level(matrix.as_mut());
        self.level(matrix.transpose_mut());
    }

    /// B += B Q diag(change) Qᵀ.
    fn on_rows(&self, mut block: MatMut<'_, f64>, along: &mut Vec<f64>, par: Par, change: impl Fn(f64) -> f64) {
        let (rows, rank) = (block.nrows(), self.factors.len());
        along.resize(rows * rank, 0.0);
        let mut along = MatMut::from_column_major_slice_mut(along, rows, rank);
        matmul(along.as_mut(), Accum::Replace, block.as_ref(), self.vectors.as_ref(), 1.0, par);
        for (column, &factor) in along.as_mut().col_iter_mut().zip(&self.factors) {
            let change = change(factor);
            column.iter_mut().for_each(|v| *v *= change);
        }
        matmul(block.as_mut(), Accum::Add, along.as_ref(), self.vectors.transpose(), 1.0, par);
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        8 * self.factors.len() * (self.vectors.nrows() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::rows::Rows;

    fn kernels(atoms: usize, bandwidth: f64) -> Mat<f64> {
        let mut rng = Generator::new(3);
        let data: Vec<f64> = (0..atoms * 5).map(|_| rng.normal()).collect();
        Kernel::gaussian(bandwidth).unwrap().matrix(Rows::dense(&data, atoms, 5).unwrap())
    }

    #[test]
    fn the_largest_eigenvalues_come_down_to_the_level_and_the_rest_stays() {
        let kernels = kernels(160, 9.0);
        let levelling = Levelling::of(kernels.as_ref()).unwrap().unwrap();
        let rank = levelling.factors().len();
        let before = SymmetricEigen::values_of(kernels.as_ref()).unwrap();
        let level = before[160 - rank - 1];
        // One constant and five linear directions.
        assert!(rank == 8 && before[159] > 1e3 * level, "{rank} {} {level}", before[159]);
        // Of TK²T the leading values are level²; of TKT they are level²/λ.
        let mut levelled = kernels.clone();
        levelling.level_both_sides(levelled.as_mut());
        let after = SymmetricEigen::values_of(levelled.as_ref()).unwrap();
        assert!((after[159] / level - 1.0).abs() < 1e-3, "{} {level}", after[159]);
        let (squared, all) = (&kernels * &kernels, (&levelled * &levelled).norm_l2());
        let mut sums = squared.clone();
        levelling.level_both_sides(sums.as_mut());
        assert!(sums.norm_l2() < 1e-5 * squared.norm_l2() && all < sums.norm_l2());
        let mut restored = levelled;
        levelling.restore(restored.as_mut());
        levelling.restore(restored.as_mut().transpose_mut());
        assert!((restored - &kernels).norm_max() < 1e-10);
    }

    #[test]
    fn nothing_is_levelled_where_nothing_stands_out_or_atoms_are_few() {
        assert!(Levelling::of(kernels(160, 0.4).as_ref()).unwrap().is_none());
        assert!(Levelling::of(kernels(60, 9.0).as_ref()).unwrap().is_none());
        let (vectors, factors) = (Mat::from_fn(4, 1, |_, _| 0.5), vec![0.5]);
        assert!(Levelling::from_parts(vectors.clone(), factors.clone()).is_some());
        assert!(Levelling::from_parts(vectors.clone(), vec![0.0]).is_none());
        assert!(Levelling::from_parts(vectors.clone(), vec![0.5, 0.5]).is_none());
        assert!(Levelling::from_parts(vectors * 2.0, factors).is_none());
    }
}
