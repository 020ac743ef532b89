//! DIRECT-SAMPLE (INK, Subroutine 1) and the dictionary that its draws make.
//!
//! Departures from the paper: a row drawn c times becomes one atom whose squared weight is c times
//! as large, instead of c atoms. S Sᵀ is the same, and K̃ (Eq. 5) depends on S only through it, by
//! KS(SᵀKS + γI)⁻¹SᵀK = K^½ · A(A + γI)⁻¹ · K^½ with A = K^½ S Sᵀ K^½.

use crate::error::Result;
use crate::random::Generator;
use crate::rows::{RowBlock, Rows};

use super::dictionary::Dictionary;

/// Draws indices with probability proportional to given numbers.
pub(super) struct Sampler {
    cumulative: Vec<f64>,
}

impl Sampler {
    /// The sampler of these numbers (finite, at least 0), or nothing if their sum is 0.
    pub(super) fn new(scores: &[f64]) -> Option<Self> {
        let mut total = 0.0;
        let cumulative = scores.iter().map(|score| {
            total += score;
            total
        });
        let cumulative: Vec<f64> = cumulative.collect();
        (total > 0.0).then_some(Self { cumulative })
    }

    /// The sum of the numbers.
    pub(super) fn total(&self) -> f64 {
        self.cumulative.last().copied().unwrap_or(0.0)
    }

    /// One index; never one whose number is 0.
    pub(super) fn draw(&self, rng: &mut Generator) -> usize {
        let level = rng.uniform() * self.total();
        self.cumulative.partition_point(|&c| c <= level).min(self.cumulative.len() - 1)
    }
}

/// The rows drawn in `budget` trials with probability ∝ `scores`, repeats merged, in the order of
/// the data, with the weights of INK, Alg. 1, line 2. Nothing if every score is 0.
pub(super) fn sample_dictionary(
    rows: Rows,
    scores: &[f64],
    budget: usize,
    leverage_ridge: f64,
    rng: &mut Generator,
) -> Result<Option<Dictionary>> {
    let Some(sampler) = Sampler::new(scores) else { return Ok(None) };
    let mut draws: Vec<usize> = (0..budget).map(|_| sampler.draw(rng)).collect();
    draws.sort_unstable();
    let mut chosen = Vec::new();
    let mut weights = Vec::new();
    for same in draws.chunk_by(|a, b| a == b) {
        let probability = scores[same[0]] / sampler.total();
        chosen.push(same[0]);
        weights.push((same.len() as f64 / (budget as f64 * probability)).sqrt());
    }
    gather(rows, &chosen, weights, leverage_ridge).map(Some)
}

/// Every row once, with weight 1: the exact dictionary.
pub(super) fn all_rows(rows: Rows, leverage_ridge: f64) -> Result<Dictionary> {
    let chosen: Vec<usize> = (0..rows.len()).collect();
    gather(rows, &chosen, vec![1.0; rows.len()], leverage_ridge)
}

/// The dictionary of the chosen rows.
pub(super) fn gather(rows: Rows, chosen: &[usize], weights: Vec<f64>, leverage_ridge: f64) -> Result<Dictionary> {
    let indices = chosen.iter().map(|&i| i as u64).collect();
    Dictionary::new(RowBlock::gather(rows, chosen), weights, indices, leverage_ridge)
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    #[test]
    fn draws_follow_the_scores_and_zero_is_never_drawn() {
        let scores = [0.0, 3.0, 1.0, 0.0, 6.0, 0.0];
        let sampler = Sampler::new(&scores).unwrap();
        let mut rng = Generator::new(4);
        let trials = 20_000;
        let mut hits = [0u32; 6];
        (0..trials).for_each(|_| hits[sampler.draw(&mut rng)] += 1);
        for (hit, score) in hits.iter().zip(scores) {
            let p: f64 = score / 10.0;
            // Five standard deviations of a binomial; exactly 0 where p is 0.
            let tolerance = 5.0 * (p * (1.0 - p) * f64::from(trials)).sqrt();
            assert!((f64::from(*hit) - p * f64::from(trials)).abs() <= tolerance, "{hits:?}");
        }
        assert!(Sampler::new(&[0.0; 3]).is_none());
    }

    #[test]
    fn merging_repeats_leaves_the_approximation_unchanged() {
        let block = oracle::normal_rows(12, 2, 1);
        let rows = block.rows();
        let (scores, budget, gamma): (Vec<f64>, usize, f64) = ((1..=12).map(f64::from).collect(), 40, 0.3);
        let merged = sample_dictionary(rows, &scores, budget, gamma, &mut Generator::new(2)).unwrap().unwrap();
        assert!(merged.len() <= 12);
        // The same draws, unmerged: one atom a draw, weight 1/√(m p).
        let sampler = Sampler::new(&scores).unwrap();
        let mut rng = Generator::new(2);
        let draws: Vec<usize> = (0..budget).map(|_| sampler.draw(&mut rng)).collect();
        let weights = draws.iter().map(|&i| (sampler.total() / (budget as f64 * scores[i])).sqrt()).collect();
        let unmerged = gather(rows, &draws, weights, gamma).unwrap();
        for kernel in oracle::kernels() {
            let a = oracle::approximation(&kernel, rows, &merged);
            let b = oracle::approximation(&kernel, rows, &unmerged);
            assert!((&a - &b).norm_max() < 1e-11 * a.norm_max());
        }
    }
}
