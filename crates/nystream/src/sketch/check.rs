//! Whether a dictionary keeps the promise of INK, Eq. 11, against the exact kernel matrix.
//!
//! D. Calandriello, A. Lazaric, M. Valko, "Analysis of Nyström method with sequential ridge leverage
//! score sampling" (INK), UAI 2016, Eq. 11:
//! 0 ≼ K − K̃ ≼ γ/(1−ε) K(K + γI)⁻¹ ≼ γ/(1−ε) I. O(n³); for small data.
//!
//! Departures from the paper: K̃ is what the features of this library make of it, jitter included, and
//! the inequalities are judged up to [`Check::tolerance`] = u (1 + 1/(1−ε)) tr K, where u is n·ε_machine
//! plus the relative accuracy of kernel values: K, the product of the features and the eigenvalues are good to
//! u‖K‖, and γ/(1−ε) K(K + γI)⁻¹, whose condition number is at most 1 + ‖K‖/γ, to u‖K‖/(1−ε). A γ that is
//! not above the tolerance is refused, because nothing could be said.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};

use super::dictionary::Dictionary;
use super::embedding::Embedding;
use super::leverage::Leverage;
use super::matrix::{KERNEL_ACCURACY, checked_diagonal, kernel_matrix, no_energy};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg::SymmetricEigen;
use crate::rows::Rows;

/// The most rows that are checked.
const LIMIT: usize = 3000;

/// How K − K̃ compares with the bounds of Eq. 11.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Whether all of Eq. 11 holds, up to `tolerance`.
    pub bound_holds: bool,
    /// ‖K − K̃‖₂ (1−ε) / γ: at most 1 where the outer bound holds.
    pub bound_ratio: f64,
    /// Smallest eigenvalue of K − K̃: at least 0 in exact arithmetic.
    pub smallest_eigenvalue_of_difference: f64,
    /// Smallest eigenvalue of γ/(1−ε) K(K + γI)⁻¹ − (K − K̃): at least 0 where the inner bound holds.
    pub smallest_eigenvalue_of_margin: f64,
    /// ‖K − K̃‖₂.
    pub spectral_error: f64,
    /// Exact effective dimension of K at γ.
    #[doc(alias = "d_eff")]
    pub effective_dim: f64,
    /// 1 − tr(K − K̃)/tr K.
    pub captured: f64,
    /// The γ of the bounds.
    pub leverage_ridge: f64,
    /// The largest addition to a diagonal before it was factored: rounding's size for plain Nyström, else 0
    /// unless a matrix was singular.
    pub jitter: f64,
    /// Eigenvalues above minus this count as 0 or more.
    pub tolerance: f64,
}

/// Checks Eq. 11 for `dictionary` on `rows`, with ε = `accuracy` in [0, 1).
///
/// γ is `leverage_ridge`, or the dictionary's own where none is given; dictionaries of plain Nyström
/// (γ = 0: uniform, rpcholesky) need one. K̃ is always formed with the dictionary's own γ.
/// More than 3,000 rows are refused.
pub fn check_guarantee(
    kernel: &Kernel,
    rows: Rows,
    dictionary: &Dictionary,
    leverage_ridge: Option<f64>,
    accuracy: f64,
) -> Result<Check> {
    let gamma = leverage_ridge.unwrap_or(dictionary.leverage_ridge());
    Error::require_positive("leverage-ridge", gamma)?;
    if !(0.0..1.0).contains(&accuracy) {
        let found = accuracy.to_string();
        return Err(Error::InvalidParam { name: "accuracy", found, expected: "a number from 0, below 1" });
    }
    let n = rows.len();
    if n > LIMIT {
        return Err(Error::TooLarge {
            what: "the check against the exact kernel matrix",
            needed_bytes: matrices_bytes(n),
            allowed_bytes: matrices_bytes(LIMIT),
            advice: "check a sample of at most 3000 rows",
        });
    }
    let trace: f64 = checked_diagonal(kernel, rows)?.iter().sum();
    if trace <= 0.0 {
        return Err(no_energy());
    }

    let mut difference = kernel_matrix(kernel, rows);
    let (leverage, ridged) = Leverage::with_factor(difference.clone(), gamma)?;
    let mut embedding = Embedding::new(kernel, dictionary, dictionary.leverage_ridge())?;
    let phi = embedding.features(rows)?;
    // Sequential, for the same bits on any number of threads.
    matmul(difference.as_mut(), Accum::Add, phi.as_ref(), phi.transpose(), -1.0, Par::Seq);

    // γ/(1−ε) K(K + γI)⁻¹ = γ/(1−ε) (I − γ(K + γI)⁻¹), less K − K̃.
    let bound = gamma / (1.0 - accuracy);
    let mut margin = Mat::<f64>::identity(n, n);
    ridged.solve_in_place(margin.as_mut());
    for j in 0..n {
        for i in 0..n {
            let unit = if i == j { 1.0 } else { 0.0 };
            margin[(i, j)] = bound * (unit - gamma * margin[(i, j)]) - difference[(i, j)];
        }
    }

    let eigenvalues = SymmetricEigen::values_of(difference.as_ref())?;
    let smallest_eigenvalue_of_difference = eigenvalues[0];
    let spectral_error = eigenvalues[n - 1].abs().max(eigenvalues[0].abs());
    let smallest_eigenvalue_of_margin = SymmetricEigen::values_of(margin.as_ref())?[0];
    let rounding = n as f64 * f64::EPSILON + KERNEL_ACCURACY;
    let tolerance = rounding * (1.0 + 1.0 / (1.0 - accuracy)) * trace;
    if tolerance >= gamma {
        return Err(Error::InvalidParam {
            name: "leverage-ridge",
            found: format!("{gamma:e}, with rounding of up to {tolerance:e} in the check"),
            expected: "a leverage ridge above the rounding",
        });
    }
    let bound_ratio = spectral_error / bound;
    let residual: f64 = (0..n).map(|i| difference[(i, i)]).sum();
    Ok(Check {
        bound_holds: smallest_eigenvalue_of_difference >= -tolerance
            && smallest_eigenvalue_of_margin >= -tolerance
            && spectral_error <= bound + tolerance,
        bound_ratio,
        smallest_eigenvalue_of_difference,
        smallest_eigenvalue_of_margin,
        spectral_error,
        effective_dim: leverage.effective_dim,
        captured: 1.0 - residual / trace,
        leverage_ridge: gamma,
        jitter: leverage.jitter.max(embedding.jitter()),
        tolerance,
    })
}

/// K, its factor, the difference, the margin and the features, at n atoms.
fn matrices_bytes(n: usize) -> u64 {
    5 * 8 * (n as u64).saturating_mul(n as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::direct_sample::{all_rows, gather};
    use super::super::oracle;
    use super::*;

    #[test]
    fn all_rows_keep_the_bound_with_the_ratio_known_in_closed_form() {
        let block = oracle::normal_rows(50, 2, 1);
        for kernel in oracle::kernels() {
            let (gamma, accuracy) = (0.7, 0.5);
            let dictionary = all_rows(block.rows(), gamma).unwrap();
            let check = check_guarantee(&kernel, block.rows(), &dictionary, None, accuracy).unwrap();
            assert!(check.bound_holds, "{check:?}");
            // K − K̃ = γK(K + γI)⁻¹, whose norm is γ λ/(λ + γ) at the largest eigenvalue.
            let k = oracle::gram(&kernel, block.rows(), block.rows());
            let largest = SymmetricEigen::values_of(k.as_ref()).unwrap()[49];
            let expected = (1.0 - accuracy) * largest / (largest + gamma);
            assert!((check.bound_ratio - expected).abs() < 1e-9, "{check:?} {expected}");
            let exact: f64 = oracle::leverage(&k, gamma).iter().sum();
            assert!((check.effective_dim - exact).abs() < 1e-8);
            let share = dictionary.captured(&kernel, block.rows()).unwrap();
            assert!((check.captured - share).abs() < 1e-10);
        }
    }

    #[test]
    fn a_dictionary_that_misses_a_cluster_fails() {
        let block = oracle::clustered_rows(100, 2);
        let kernel = Kernel::gaussian(1.0).unwrap();
        // Rows 1 to 19 lie in the large cluster; none of the small ones is seen.
        let dictionary = gather(block.rows(), &[1, 2, 3], vec![1.0; 3], 0.0).unwrap();
        let check = check_guarantee(&kernel, block.rows(), &dictionary, Some(0.1), 0.5).unwrap();
        assert!(!check.bound_holds && check.bound_ratio > 1.0, "{check:?}");
        assert!(check.smallest_eigenvalue_of_difference >= -check.tolerance);
        assert!(check.tolerance < 1e-9 && check.smallest_eigenvalue_of_margin < -0.5);
        // The same dictionary is good enough for a ridge above all that it misses.
        let check = check_guarantee(&kernel, block.rows(), &dictionary, Some(100.0), 0.99).unwrap();
        assert!(check.bound_ratio < 1.0, "{check:?}");
    }

    #[test]
    fn the_inner_bound_can_fail_where_the_outer_holds() {
        // Two far clusters; one unseen row: K − K̃ has norm 1 < γ/(1−ε), but γ/(1−ε)·λ/(λ+γ) < 1 there.
        let data = [0.0, 100.0];
        let rows = Rows::dense(&data, 2, 1).unwrap();
        let dictionary = gather(rows, &[0], vec![1.0], 0.0).unwrap();
        let check = check_guarantee(&Kernel::gaussian(1.0).unwrap(), rows, &dictionary, Some(1.5), 0.0).unwrap();
        // ‖K − K̃‖ = 1, outer bound 1.5, inner 1.5·1/2.5 = 0.6.
        assert!((check.bound_ratio - 1.0 / 1.5).abs() < 1e-12 && !check.bound_holds);
        assert!((check.smallest_eigenvalue_of_margin - (0.6 - 1.0)).abs() < 1e-12);
    }

    #[test]
    fn bad_parameters_and_too_many_rows_are_refused() {
        let block = oracle::normal_rows(5, 1, 3);
        let dictionary = all_rows(block.rows(), 0.0).unwrap();
        let kernel = Kernel::gaussian(1.0).unwrap();
        let name = |ridge, accuracy| match check_guarantee(&kernel, block.rows(), &dictionary, ridge, accuracy) {
            Err(Error::InvalidParam { name, .. }) => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(name(None, 0.5), "leverage-ridge");
        assert_eq!(name(Some(1e-14), 0.5), "leverage-ridge");
        assert_eq!(name(Some(1.0), 1.0), "accuracy");
        assert_eq!(name(Some(1.0), -0.1), "accuracy");
        let many = oracle::normal_rows(LIMIT + 1, 1, 3);
        let found = check_guarantee(&kernel, many.rows(), &dictionary, Some(1.0), 0.5);
        assert!(matches!(found, Err(Error::TooLarge { .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn no_approximation_exceeds_the_kernel_matrix_by_more_than_the_tolerance(
            data in proptest::collection::vec(-1.0..1.0f64, 30), spread in -4.0..1.0f64, bandwidth in 0.3..10.0f64,
            weights in proptest::collection::vec(0.01..100.0f64, 20), gamma in prop_oneof![Just(0.0), 1e-9..1.0f64],
        ) {
            // Small spreads and wide kernels make the atoms nearly the same point: singular to rounding.
            let data: Vec<f64> = data.iter().map(|v| v * 10f64.powf(spread)).collect();
            let rows = Rows::dense(&data, 30, 1).unwrap();
            let chosen: Vec<usize> = (5..25).collect();
            let dictionary = gather(rows, &chosen, weights, gamma).unwrap();
            let kernel = Kernel::gaussian(bandwidth).unwrap();
            let check = check_guarantee(&kernel, rows, &dictionary, Some(1.0), 0.5).unwrap();
            prop_assert!(check.smallest_eigenvalue_of_difference >= -check.tolerance, "{:?}", check);
        }
    }
}
