//! Approximate ridge leverage scores in two passes, and sampling by them.
//!
//! A. El Alaoui, M. W. Mahoney, "Fast randomized kernel methods with statistical guarantees",
//! NeurIPS 2015, section 3.5. From p columns drawn with probability ∝ K_ii, C = K[:, idx] and
//! W = K[idx, idx] give B with BBᵀ = C W⁺ Cᵀ ≼ K, and the scores l̃_i = B_iᵀ(BᵀB + γI)⁻¹B_i (their
//! nλ is our γ). They never exceed the exact scores, and fall short of them by what the p columns
//! miss. O(p²) a row in each pass; [`ScoreSums`] holds O(p²) and sees the rows a block at a time.
//!
//! Departures from the paper: repeated columns are dropped (BBᵀ is the same); W⁺ is applied through
//! a Cholesky factor with reported jitter, which only lowers BBᵀ; repeated draws of the final sample
//! are merged (see [`super::direct_sample`]); a budget of n or more keeps every row.

use faer::MatRef;

use super::dictionary::Dictionary;
use super::direct_sample::{Sampler, all_rows, gather, sample_dictionary};
use super::embedding::{Embedding, add_squared_norms};
use super::leverage::Leverage;
use super::matrix::{checked_diagonal, no_energy};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg::{Cholesky, GramSum};
use crate::random::Generator;
use crate::rows::Rows;

/// The first pass: BᵀB summed over rows, given the columns.
#[derive(Debug)]
pub struct ScoreSums {
    embedding: Embedding,
    sum: GramSum,
    leverage_ridge: f64,
}

/// The second pass: scores of any rows.
#[derive(Debug)]
pub struct ScoreEstimator {
    embedding: Embedding,
    factor: Cholesky,
    effective_dim: f64,
}

impl ScoreSums {
    /// Sums over no rows yet. The columns are the atoms of `columns` (its weights cancel, its own γ is
    /// left out); `leverage_ridge` is the γ of the scores.
    pub fn new(kernel: &Kernel, columns: &Dictionary, leverage_ridge: f64) -> Result<Self> {
        Error::require_positive("leverage-ridge", leverage_ridge)?;
        let embedding = Embedding::new(kernel, columns, 0.0)?;
        let sum = GramSum::new(embedding.dim());
        Ok(Self { embedding, sum, leverage_ridge })
    }

    /// Adds a block of rows.
    pub fn add(&mut self, rows: Rows) -> Result<()> {
        let sum = &mut self.sum;
        self.embedding.for_each_block(rows, |_, b| sum.add(b.as_ref()))
    }

    /// Ends the first pass.
    pub fn finish(self) -> Result<ScoreEstimator> {
        let mut ridged = self.sum.to_matrix();
        for i in 0..ridged.nrows() {
            ridged[(i, i)] += self.leverage_ridge;
        }
        let factor = Cholesky::new(ridged.as_ref(), "first-pass sums plus leverage ridge")?;
        // tr(BᵀB(BᵀB + γI)⁻¹) = p − γ tr((BᵀB + γI)⁻¹).
        let gamma = self.leverage_ridge + factor.jitter();
        let missing: f64 = factor.inverse_diagonal().iter().map(|d| gamma * d).sum();
        let effective_dim = (factor.dim() as f64 - missing).max(0.0);
        Ok(ScoreEstimator { embedding: self.embedding, factor, effective_dim })
    }
}

impl ScoreEstimator {
    /// l̃_i of each row, in [0, 1].
    pub fn scores(&mut self, rows: Rows) -> Result<Vec<f64>> {
        let mut scores = vec![0.0; rows.len()];
        let factor = &self.factor;
        self.embedding.for_each_block(rows, |start, mut b| {
            factor.forward_in_place(b.as_mut().transpose_mut());
            add_squared_norms(&b, &mut scores[start..]);
        })?;
        scores.iter_mut().for_each(|score| *score = score.clamp(0.0, 1.0));
        Ok(scores)
    }

    /// The sum of l̃ over the rows of the first pass: a lower bound of the effective dimension.
    #[doc(alias = "d_eff")]
    pub fn effective_dim(&self) -> f64 {
        self.effective_dim
    }

    /// What had to be added to factor W and BᵀB + γI.
    pub fn jitter(&self) -> f64 {
        self.embedding.jitter().max(self.factor.jitter())
    }

    /// The factor of BᵀB + γI.
    pub fn factor(&self) -> MatRef<'_, f64> {
        self.factor.factor()
    }
}

/// Both passes over rows in memory, with the atoms of `columns`.
pub(super) fn scores_from(kernel: &Kernel, columns: &Dictionary, rows: Rows, leverage_ridge: f64) -> Result<Leverage> {
    let mut sums = ScoreSums::new(kernel, columns, leverage_ridge)?;
    sums.add(rows)?;
    let mut estimator = sums.finish()?;
    let scores = estimator.scores(rows)?;
    Ok(Leverage { scores, effective_dim: estimator.effective_dim(), jitter: estimator.jitter() })
}

/// A dictionary of `budget` draws by the scores that `first_pass` columns give, and those scores.
pub fn two_pass_scores(
    kernel: &Kernel,
    rows: Rows,
    budget: usize,
    first_pass: usize,
    leverage_ridge: f64,
    rng: &mut Generator,
) -> Result<(Dictionary, Leverage)> {
    let diagonal = checked_diagonal(kernel, rows)?;
    let sampler = Sampler::new(&diagonal).ok_or_else(no_energy)?;
    let mut columns: Vec<usize> = (0..first_pass).map(|_| sampler.draw(rng)).collect();
    columns.sort_unstable();
    columns.dedup();
    let weights = vec![1.0; columns.len()];
    let leverage = scores_from(kernel, &gather(rows, &columns, weights, 0.0)?, rows, leverage_ridge)?;
    let dictionary = if budget >= rows.len() {
        all_rows(rows, leverage_ridge)?
    } else {
        sample_dictionary(rows, &leverage.scores, budget, leverage_ridge, rng)?.ok_or_else(no_energy)?
    };
    Ok((dictionary, leverage))
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    #[test]
    fn all_columns_give_the_exact_scores() {
        let block = oracle::normal_rows(40, 3, 1);
        for kernel in [Kernel::gaussian(1.0).unwrap(), Kernel::laplacian(2.0).unwrap()] {
            let found = scores_from(&kernel, &all_rows(block.rows(), 0.0).unwrap(), block.rows(), 0.5).unwrap();
            let exact = Leverage::exact(&kernel, block.rows(), 0.5).unwrap();
            assert!(found.scores.iter().zip(&exact.scores).all(|(a, b)| (a - b).abs() < 1e-10));
            assert!((found.effective_dim - exact.effective_dim).abs() < 1e-9);
        }
    }

    #[test]
    fn some_columns_give_the_scores_of_their_approximation_and_never_more_than_exact() {
        let block = oracle::clustered_rows(80, 2);
        let rows = block.rows();
        let kernel = Kernel::gaussian(1.0).unwrap();
        let columns = gather(rows, &[0, 1, 20, 40], vec![1.0; 4], 0.0).unwrap();
        let found = scores_from(&kernel, &columns, rows, 0.3).unwrap();
        let expected = oracle::leverage(&oracle::approximation(&kernel, rows, &columns), 0.3);
        let exact = Leverage::exact(&kernel, rows, 0.3).unwrap();
        for i in 0..80 {
            assert!((found.scores[i] - expected[i]).abs() < 1e-10);
            assert!(found.scores[i] <= exact.scores[i] + 1e-10);
        }
        assert!((found.effective_dim - found.scores.iter().sum::<f64>()).abs() < 1e-10);
        assert!(found.effective_dim < exact.effective_dim - 0.5, "four columns cannot see 16 clusters");
    }

    #[test]
    fn blocks_of_the_first_pass_add_up() {
        let block = oracle::normal_rows(70, 2, 3);
        let (rows, kernel) = (block.rows(), Kernel::gaussian(1.0).unwrap());
        let columns = gather(rows, &[5, 30, 31], vec![1.0; 3], 0.0).unwrap();
        let mut whole = ScoreSums::new(&kernel, &columns, 0.1).unwrap();
        whole.add(rows).unwrap();
        let mut parts = ScoreSums::new(&kernel, &columns, 0.1).unwrap();
        for (start, end) in [(0, 1), (1, 50), (50, 70)] {
            parts.add(rows.slice(start, end)).unwrap();
        }
        let (whole, parts) = (whole.finish().unwrap(), parts.finish().unwrap());
        assert!((whole.factor() - parts.factor()).norm_max() < 1e-12 * whole.factor().norm_max());
    }

    #[test]
    fn rare_clusters_are_found_more_often_than_by_uniform_sampling() {
        // 5 % of the rows lie in 15 small clusters; uniform draws of 30 hit 30·0.05 = 1.5 of them.
        let block = oracle::clustered_rows(600, 4);
        let kernel = Kernel::gaussian(1.0).unwrap();
        let rare: usize = (0..20)
            .map(|seed| {
                let mut rng = Generator::new(seed);
                let (dictionary, _) = two_pass_scores(&kernel, block.rows(), 30, 100, 0.1, &mut rng).unwrap();
                dictionary.indices().iter().filter(|&&i| i % 20 == 0).count()
            })
            .sum();
        // Uniform: mean 30, variance at most 600·0.05 = 30; six standard deviations above.
        assert!(rare as f64 > 30.0 + 6.0 * 30f64.sqrt(), "{rare}");
    }
}
