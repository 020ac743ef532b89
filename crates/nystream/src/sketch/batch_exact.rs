//! BATCH-EXACT: sampling by exact ridge leverage scores.
//!
//! D. Calandriello, A. Lazaric, M. Valko, "Analysis of Nyström method with sequential ridge leverage
//! score sampling" (INK), UAI 2016, Alg. 1 with DIRECT-SAMPLE (Subroutine 1). O(n³) time and O(n²)
//! memory: the reference the cheaper methods are measured against.
//!
//! Departures from the paper: repeated draws are merged (see [`super::direct_sample`]); a budget of
//! n or more keeps every row once with weight 1, which is exact, instead of drawing.

use super::dictionary::Dictionary;
use super::direct_sample::{all_rows, sample_dictionary};
use super::leverage::Leverage;
use super::matrix::no_energy;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::random::Generator;
use crate::rows::Rows;

/// A dictionary from `budget` draws with probability τ_i / d_eff, and the scores it came from.
pub fn batch_exact(
    kernel: &Kernel,
    rows: Rows,
    budget: usize,
    leverage_ridge: f64,
    rng: &mut Generator,
) -> Result<(Dictionary, Leverage)> {
    let leverage = Leverage::exact(kernel, rows, leverage_ridge)?;
    let dictionary = if budget >= rows.len() {
        all_rows(rows, leverage_ridge)?
    } else {
        sample_dictionary(rows, &leverage.scores, budget, leverage_ridge, rng)?.ok_or_else(no_energy)?
    };
    Ok((dictionary, leverage))
}

/// The budget m ≥ (2 d_eff / ε²) log(n / δ) of INK, Proposition 1, with which Eq. 11 holds with
/// probability 1 − δ (the proposition asks for γ ≥ 1).
pub fn proposition_1_budget(effective_dim: f64, accuracy: f64, failure_prob: f64, n: usize) -> Result<usize> {
    Error::require_positive("effective dimension", effective_dim)?;
    for (name, value) in [("accuracy", accuracy), ("failure-prob", failure_prob)] {
        if !(value > 0.0 && value <= 1.0) {
            return Err(Error::InvalidParam {
                name,
                found: value.to_string(),
                expected: "a number above 0, at most 1",
            });
        }
    }
    if n == 0 {
        return Err(Error::Shape { what: "rows", found: 0, expected: 1 });
    }
    let budget = 2.0 * effective_dim / (accuracy * accuracy) * (n as f64 / failure_prob).ln();
    // One row and δ = 1 give 0; a dictionary has at least one atom.
    Ok((budget.ceil() as usize).max(1))
}

#[cfg(test)]
mod tests {
    use super::super::check::check_guarantee;
    use super::super::oracle;
    use super::*;

    #[test]
    fn squared_weights_are_one_on_average() {
        let block = oracle::clustered_rows(40, 3);
        let kernel = Kernel::gaussian(1.0).unwrap();
        let (budget, repeats) = (10, 500);
        let mut mean = vec![0.0; 40];
        let mut probabilities = Vec::new();
        for seed in 0..repeats {
            let (dictionary, leverage) =
                batch_exact(&kernel, block.rows(), budget, 1.0, &mut Generator::new(seed)).unwrap();
            for (&i, w) in dictionary.indices().iter().zip(dictionary.weights()) {
                mean[i as usize] += w * w / repeats as f64;
            }
            probabilities = leverage.scores.iter().map(|t| t / leverage.effective_dim).collect();
        }
        for (mean, p) in mean.iter().zip(probabilities) {
            // [S Sᵀ]_ii = count/(m p), count binomial(m, p): variance (1 − p)/(m p); five standard errors.
            let tolerance = 5.0 * ((1.0 - p) / (budget as f64 * p * repeats as f64)).sqrt();
            assert!((mean - 1.0).abs() < tolerance, "{mean} ± {tolerance}");
        }
    }

    #[test]
    fn the_guarantee_of_proposition_1_holds() {
        // γ ≥ 1 and a budget from the proposition: each run fails with probability at most δ, so that
        // of 20 runs more than 3 fail with probability below Σ_{k>3} C(20,k) δᵏ < 5e-5 at δ = 0.01.
        let block = oracle::clustered_rows(300, 4);
        let kernel = Kernel::gaussian(1.0).unwrap();
        let (gamma, accuracy, failure_prob) = (1.0, 0.9, 0.01);
        let effective_dim = Leverage::exact(&kernel, block.rows(), gamma).unwrap().effective_dim;
        let budget = proposition_1_budget(effective_dim, accuracy, failure_prob, 300).unwrap();
        assert!(budget < 300, "{budget}");
        let failures = (0..20).filter(|&seed| {
            let mut rng = Generator::new(seed);
            let (dictionary, _) = batch_exact(&kernel, block.rows(), budget, gamma, &mut rng).unwrap();
            !check_guarantee(&kernel, block.rows(), &dictionary, None, accuracy).unwrap().bound_holds
        });
        assert!(failures.count() <= 3);
    }

    #[test]
    fn the_budget_follows_the_formula_and_refuses_bad_input() {
        // 2·10/0.25 · ln(1000/0.1) = 80 · 9.2103…
        assert_eq!(proposition_1_budget(10.0, 0.5, 0.1, 1000).unwrap(), 737);
        assert_eq!(proposition_1_budget(1.0, 1.0, 1.0, 1).unwrap(), 1);
        assert!(proposition_1_budget(10.0, 0.0, 0.1, 10).is_err());
        assert!(proposition_1_budget(10.0, 0.5, 1.1, 10).is_err());
        assert!(proposition_1_budget(10.0, 0.5, 0.1, 0).is_err());
    }

    #[test]
    fn a_kernel_of_zeros_is_refused() {
        let zeros = [0.0; 6];
        let rows = Rows::dense(&zeros, 3, 2).unwrap();
        assert!(batch_exact(&Kernel::Linear, rows, 2, 1.0, &mut Generator::new(1)).is_err());
    }
}
