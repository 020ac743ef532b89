//! Ridge leverage scores and the effective dimension.
//!
//! D. Calandriello, A. Lazaric, M. Valko, "Analysis of Nyström method with sequential ridge leverage
//! score sampling" (INK), UAI 2016, Def. 1. Cost O(n³) for the exact scores of n rows, O(m²) a row
//! given a dictionary of m atoms.
//!
//! Departures from the paper: K(K + γI)⁻¹ = I − γ(K + γI)⁻¹ gives every score from one Cholesky
//! factorisation, where Eq. 7 solves a system for each column.

use faer::Mat;

use super::dictionary::Dictionary;
use super::embedding::Embedding;
use super::matrix::{checked_diagonal, kernel_matrix, require_exact_fits};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg::Cholesky;
use crate::rows::Rows;

/// Exact ridge leverage scores of a set of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Leverage {
    /// τ_i in [0, 1], one a row (Eq. 7).
    #[doc(alias = "τ")]
    pub scores: Vec<f64>,
    /// Their sum (Eq. 8).
    #[doc(alias = "d_eff")]
    pub effective_dim: f64,
    /// What had to be added to γ to factor K + γI: 0 unless γ is below the rounding of K.
    pub jitter: f64,
}

impl Leverage {
    /// The scores of `rows` at γ = `leverage_ridge`. Forms the kernel matrix; refused above 4 GiB.
    pub fn exact(kernel: &Kernel, rows: Rows, leverage_ridge: f64) -> Result<Self> {
        checked_diagonal(kernel, rows)?;
        require_exact_fits("exact leverage scores", rows.len(), 3)?;
        Self::of_matrix(kernel_matrix(kernel, rows), leverage_ridge)
    }

    /// The scores of a kernel matrix.
    pub fn of_matrix(kernel_matrix: Mat<f64>, leverage_ridge: f64) -> Result<Self> {
        Ok(Self::with_factor(kernel_matrix, leverage_ridge)?.0)
    }

    /// The scores of a kernel matrix K, and the factor of K + γI.
    pub(super) fn with_factor(mut kernel_matrix: Mat<f64>, leverage_ridge: f64) -> Result<(Self, Cholesky)> {
        Error::require_positive("leverage-ridge", leverage_ridge)?;
        for i in 0..kernel_matrix.nrows() {
            kernel_matrix[(i, i)] += leverage_ridge;
        }
        let cholesky = Cholesky::new(kernel_matrix.as_ref(), "kernels plus leverage ridge")?;
        let gamma = leverage_ridge + cholesky.jitter();
        let scores: Vec<f64> =
            cholesky.inverse_diagonal().into_iter().map(|d| (1.0 - gamma * d).clamp(0.0, 1.0)).collect();
        let effective_dim = scores.iter().sum();
        Ok((Self { scores, effective_dim, jitter: cholesky.jitter() }, cholesky))
    }
}

/// Scores of any rows from a dictionary: τ(x) = (k(x, x) − ‖L⁻¹ S k_Z(x)‖²) / γ, S K_ZZ S + γI = LLᵀ.
///
/// This is the share of x that the dictionary leaves unexplained, over γ. Given every row of the data
/// with weight 1 it is the exact score; of a point that the dictionary has not seen it can exceed 1
/// (added with weight 1, its score would be τ/(1 + τ)). γ is `leverage_ridge`, whatever the dictionary
/// was made with. O(m²) a row, O(m²) memory.
pub fn leverage_of_rows(kernel: &Kernel, dictionary: &Dictionary, rows: Rows, leverage_ridge: f64) -> Result<Vec<f64>> {
    Error::require_positive("leverage-ridge", leverage_ridge)?;
    let diagonal = checked_diagonal(kernel, rows)?;
    let kept = Embedding::new(kernel, dictionary, leverage_ridge)?.squared_norms(rows)?;
    Ok(diagonal.iter().zip(kept).map(|(energy, kept)| (energy - kept).max(0.0) / leverage_ridge).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::direct_sample::{all_rows, gather};
    use super::super::oracle;
    use super::*;

    #[test]
    fn scores_equal_the_eigenvalue_form() {
        let block = oracle::normal_rows(60, 3, 1);
        for kernel in oracle::kernels() {
            for gamma in [0.01, 1.0, 50.0] {
                let leverage = Leverage::exact(&kernel, block.rows(), gamma).unwrap();
                let k = oracle::gram(&kernel, block.rows(), block.rows());
                // Rounding of a solve: n ε times the condition number of K + γI, at most trace/γ + 1.
                let trace: f64 = (0..60).map(|i| k[(i, i)]).sum();
                let tolerance = 60.0 * f64::EPSILON * (trace / gamma + 1.0);
                let expected = oracle::leverage(&k, gamma);
                for (score, expected) in leverage.scores.iter().zip(&expected) {
                    assert!((score - expected).abs() < tolerance, "{score} {expected}");
                }
                assert!((leverage.effective_dim - expected.iter().sum::<f64>()).abs() < 60.0 * tolerance);
                assert_eq!(leverage.jitter, 0.0);
            }
        }
    }

    #[test]
    fn duplicates_share_their_score() {
        let mut block = oracle::normal_rows(20, 2, 2);
        let copy = block.clone();
        block.extend(copy.rows());
        for kernel in oracle::kernels() {
            let scores = Leverage::exact(&kernel, block.rows(), 0.1).unwrap().scores;
            assert!((0..20).all(|i| (scores[i] - scores[i + 20]).abs() < 1e-10));
            // Two copies act as one row of twice the energy, so the pair's score is that of γ/2 once.
            let single = Leverage::exact(&kernel, copy.rows(), 0.05).unwrap().scores;
            assert!((0..20).all(|i| (2.0 * scores[i] - single[i]).abs() < 1e-10));
        }
    }

    #[test]
    fn given_all_other_rows_a_score_obeys_the_schur_complement() {
        let block = oracle::normal_rows(30, 3, 3);
        let rows = block.rows();
        for kernel in oracle::kernels() {
            let others = gather(rows, &(1..30).collect::<Vec<_>>(), vec![1.0; 29], 0.5).unwrap();
            let outside = leverage_of_rows(&kernel, &others, rows.slice(0, 1), 0.5).unwrap()[0];
            // [(K + γI)⁻¹]₁₁ = 1/(γ + k − k̄ᵀ(K̄ + γI)⁻¹k̄), so the exact τ₁ is τ(x)/(1 + τ(x)).
            let exact = Leverage::exact(&kernel, rows, 0.5).unwrap().scores[0];
            assert!((outside / (1.0 + outside) - exact).abs() < 1e-11);
        }
    }

    #[test]
    fn given_the_rows_themselves_the_scores_are_exact() {
        let block = oracle::normal_rows(30, 3, 4);
        let rows = block.rows();
        for kernel in oracle::kernels() {
            let dictionary = all_rows(rows, 0.5).unwrap();
            let scores = leverage_of_rows(&kernel, &dictionary, rows, 0.5).unwrap();
            let exact = Leverage::exact(&kernel, rows, 0.5).unwrap().scores;
            assert!(scores.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-11));
        }
    }

    #[test]
    fn a_ridge_of_zero_is_refused() {
        let block = oracle::normal_rows(3, 1, 5);
        for bad in [0.0, -1.0, f64::NAN] {
            let found = Leverage::exact(&Kernel::Linear, block.rows(), bad);
            assert!(matches!(found, Err(Error::InvalidParam { name: "leverage-ridge", .. })));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn scores_lie_in_the_unit_interval_and_fall_with_the_ridge(
            data in proptest::collection::vec(-5.0..5.0f64, 24), exponent in -6.0..4.0f64, which in 0..3usize,
        ) {
            let rows = Rows::dense(&data, 12, 2).unwrap();
            let kernel = oracle::kernels()[which];
            let low = Leverage::exact(&kernel, rows, 10f64.powf(exponent)).unwrap();
            let high = Leverage::exact(&kernel, rows, 10f64.powf(exponent + 1.0)).unwrap();
            prop_assert!(low.scores.iter().all(|t| (0.0..=1.0).contains(t)));
            prop_assert!(low.effective_dim <= 12.0);
            // Up to the rounding of the inverse at the smaller γ (trace at most 12·26² here).
            let slack = 12.0 * f64::EPSILON * (12.0 * 676.0 / 10f64.powf(exponent) + 1.0);
            prop_assert!(low.scores.iter().zip(&high.scores).all(|(a, b)| *a + slack >= *b));
        }
    }
}
