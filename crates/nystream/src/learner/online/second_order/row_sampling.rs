//! KORS: kernelised online row sampling, the dictionary of PROS-N-KONS.
//!
//! Calandriello, Lazaric and Valko, "Efficient second-order online kernel learning with adaptive embedding" (NIPS
//! 2017), Alg. 2: a row enters with probability p = min(β τ̃, 1) and weight 1/√p, never to leave. Its score
//! τ̃ = (1+ε)/γ · (k(x,x) − kᵀS̄(S̄ᵀKS̄ + γI)⁻¹S̄ᵀk) (Eq. 3 there) is taken over the dictionary with the row itself added
//! at weight 1. Adding the row changes only the last pivot of the factor: with r = k(x,x) − |T⁻¹Sk|² over the dictionary
//! without it and TTᵀ = SKS + γI, the score is (1+ε)·r/(r+γ).
//!
//! Departures from the paper: none here; that sampling ends at the budget is the caller's doing.

use crate::error::Result;
use crate::learner::online::state::State;
use crate::linalg::{GrowingFactor, dot};
use crate::persist::Container;
use crate::random::Generator;

/// What row sampling depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SamplingSettings {
    /// γ: the ridge of the scores.
    pub leverage_ridge: f64,
    /// ε: scores are inflated by 1 + ε.
    pub accuracy: f64,
    /// β: multiplies the scores.
    pub oversampling: f64,
}

/// The dictionary's weights, and the factor its scores come from.
#[derive(Debug, Clone)]
pub(super) struct RowSampler {
    settings: SamplingSettings,
    /// s: 1/√p of every atom.
    weights: Vec<f64>,
    /// T of SKS + γI.
    factor: GrowingFactor,
    rng: Generator,
    /// T⁻¹Sk of the last row.
    solved: Vec<f64>,
}

impl RowSampler {
    /// An empty dictionary.
    pub(super) fn new(settings: SamplingSettings, rng: Generator) -> Self {
        Self { settings, weights: Vec::new(), factor: GrowingFactor::new(), rng, solved: Vec::new() }
    }

    /// Decides about a row that has these kernels with the atoms and `own` with itself; takes it in if so.
    pub(super) fn admits(&mut self, kernels: &[f64], own: f64) -> bool {
        self.solved.clear();
        self.solved.extend(kernels.iter().zip(&self.weights).map(|(k, s)| k * s));
        self.factor.forward(&mut self.solved);
        // At least 0 but for rounding.
        let residual = (own - dot(&self.solved, &self.solved)).max(0.0);
        let SamplingSettings { leverage_ridge: gamma, accuracy, oversampling } = self.settings;
        let probability = (oversampling * (1.0 + accuracy) * residual / (residual + gamma)).min(1.0);
        if !self.rng.bernoulli(probability) {
            return false;
        }
        let weight = 1.0 / probability.sqrt();
        self.solved.iter_mut().for_each(|t| *t *= weight);
        self.factor.append(&self.solved, gamma + weight * weight * residual);
        self.weights.push(weight);
        true
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> usize {
        (self.weights.capacity() + self.solved.capacity()) * 8 + self.factor.size_bytes() + size_of::<Generator>()
    }

    /// Adds weights, factor and generator to a file.
    pub(super) fn put(&self, file: &mut Container) -> Result<()> {
        file.put_generator("sampling", &self.rng)?;
        file.put_numbers("sampling_weights", &self.weights)?;
        file.put_numbers("sampling_factor", self.factor.packed())
    }

    /// Takes a dictionary of `atoms` out again.
    pub(super) fn take(file: &mut Container, settings: SamplingSettings, atoms: usize) -> Result<Self> {
        let rng = file.take_generator("sampling")?;
        let weights = file.take_numbers("sampling_weights", atoms)?;
        let factor = file.take_some_numbers("sampling_factor")?;
        if weights.iter().any(|&s| s < 1.0) {
            return Err(file.malformed("sampling_weights: expected numbers of 1 or more"));
        }
        let Some(factor) = GrowingFactor::from_packed(atoms, factor) else {
            return Err(file.malformed(format!("sampling_factor: expected the lower triangle of {atoms} rows")));
        };
        Ok(Self { weights, factor, ..Self::new(settings, rng) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::linalg::Cholesky;
    use crate::rows::Row;
    use faer::Mat;

    /// Alg. 2 with the matrices of Eq. 3 built and inverted in every round.
    #[test]
    fn probabilities_and_draws_equal_the_literal_algorithm() {
        let settings = SamplingSettings { leverage_ridge: 0.3, accuracy: 0.5, oversampling: 1.2 };
        let kernel = Kernel::gaussian(0.8).unwrap();
        let mut data = Generator::new(2);
        let mut sampler = RowSampler::new(settings, Generator::new(9));
        let mut draws = Generator::new(9);
        let mut dictionary: Vec<([f64; 2], f64)> = Vec::new();
        for _ in 0..120 {
            let x = [data.normal(), data.normal()];
            let k = |a: &[f64; 2], b: &[f64; 2]| kernel.pair(Row::Dense(a), Row::Dense(b));
            let mut temporary = dictionary.clone();
            temporary.push((x, 1.0));
            let n = temporary.len();
            let entry = |i: usize, j: usize| temporary[i].1 * temporary[j].1 * k(&temporary[i].0, &temporary[j].0);
            let ridge = |i: usize, j: usize| if i == j { settings.leverage_ridge } else { 0.0 };
            let matrix = Mat::from_fn(n, n, |i, j| entry(i, j) + ridge(i, j));
            let column = Mat::from_fn(n, 1, |i, _| temporary[i].1 * k(&temporary[i].0, &x));
            let mut solved = column.clone();
            Cholesky::new(matrix.as_ref(), "SKS + γI").unwrap().solve_in_place(solved.as_mut());
            let left = k(&x, &x) - (column.transpose() * &solved)[(0, 0)];
            let score = (1.0 + settings.accuracy) / settings.leverage_ridge * left;
            let probability = (settings.oversampling * score).min(1.0);

            let kernels: Vec<f64> = dictionary.iter().map(|(z, _)| k(&x, z)).collect();
            let admitted = sampler.admits(&kernels, k(&x, &x));
            assert_eq!(admitted, draws.uniform() < probability);
            if admitted {
                dictionary.push((x, 1.0 / probability.sqrt()));
                let ours = sampler.weights[n - 1];
                assert!((ours - dictionary[n - 1].1).abs() < 1e-10 * ours);
            }
        }
        assert!((10..110).contains(&dictionary.len()), "{}", dictionary.len());
    }
}
