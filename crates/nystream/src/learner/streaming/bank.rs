//! A few bandwidths that follow the stream side by side until one has proved best.

use faer::MatRef;

use super::head::{Kept, with_kernel};
use super::options::StreamingOptions;
use crate::error::Result;
use crate::fit::Bandwidth;
use crate::rows::Rows;
use crate::sketch::DictionaryMethod;
use crate::solver::{Innovations, RecursiveRidge, Ridge};

/// Bandwidths of the bank, as factors of the one that the head chose. More of them are smaller: what is best shrinks as
/// rows come in.
const FACTORS: [f64; 4] = [1.0, std::f64::consts::FRAC_1_SQRT_2, 0.5, std::f64::consts::SQRT_2];
/// How their atoms are chosen: rows of high leverage, or rows as they come. Neither is better on every stream.
const METHODS: [DictionaryMethod; 2] = [DictionaryMethod::RpCholesky, DictionaryMethod::Uniform];

/// A learner and its own one-step-ahead errors.
#[derive(Debug)]
pub(super) struct Member {
    pub learner: RecursiveRidge,
    /// How its atoms were chosen.
    pub method: DictionaryMethod,
    /// Squared errors since the bank was opened.
    pub squared: f64,
    pub found: Innovations,
}

/// Learners of different bandwidths on the same rows.
#[derive(Debug)]
pub(super) struct Bank {
    pub members: Vec<Member>,
    pub leader: usize,
    /// Σw at which ridges are chosen anew.
    pub next_ridge: f64,
}

impl Bank {
    /// One learner only.
    pub fn alone(learner: RecursiveRidge, method: DictionaryMethod) -> Self {
        let next_ridge = 2.0 * learner.sums().weight();
        Self { members: vec![Member::new(learner, method)], leader: 0, next_ridge }
    }

    /// The leader, alone.
    pub fn into_leader(mut self) -> RecursiveRidge {
        self.members.swap_remove(self.leader).learner
    }

    /// The learner alone, or with others beside it if the bandwidth may still change.
    pub fn open(options: &StreamingOptions, kept: &Kept, chosen: Self) -> Result<Self> {
        let (method, chosen) = (chosen.members[chosen.leader].method, chosen.into_leader());
        let next_ridge = 2.0 * chosen.sums().weight();
        let mut members = vec![Member::new(chosen, method)];
        if let (Bandwidth::Auto, Some(bandwidth)) = (options.bandwidth, members[0].learner.kernel().bandwidth()) {
            for factor in FACTORS {
                for other in METHODS {
                    if factor != 1.0 || other != method {
                        let kernel = options.kernel.with_bandwidth(factor * bandwidth)?;
                        members.push(Member::new(with_kernel(options, kept, kernel, other)?, other));
                    }
                }
            }
        }
        // Ridges stay as the head chose them; how sums are kept may change.
        for member in &mut members {
            let ridge = member.learner.ridge();
            member.learner.choose(Ridge::Fixed(ridge))?;
        }
        Ok(Self { members, leader: 0, next_ridge })
    }

    /// Predicts the rows, learns them, and gives what the leader had predicted.
    pub fn advance(&mut self, rows: Rows, codes: MatRef<'_, f64>, weights: &[f64], decay: f64) -> Result<&Innovations> {
        let count = rows.len();
        // Row i of a block of b ends up with weight w·decay^(b−1−i); until the block ends, all is larger by decay^(−b).
        let faded = decay < 1.0;
        let grown: Vec<f64> = (0..count).map(|i| weights[i] / decay.powf((i + 1) as f64)).collect();
        let plain = !faded && weights.iter().all(|&w| w == 1.0);
        for member in &mut self.members {
            let weights = if plain { None } else { Some(grown.as_slice()) };
            member.learner.advance(rows, codes, weights, &mut member.found)?;
            if faded {
                member.learner.fade(decay.powf(count as f64))?;
            }
            let outputs = codes.ncols();
            for (place, predicted) in member.found.predictions.iter().enumerate() {
                member.squared += (predicted - codes[(place / outputs, place % outputs)]).powi(2);
            }
        }
        Ok(&self.members[self.leader].found)
    }

    /// Who has the least error so far answers from now on.
    pub fn elect(&mut self) {
        for (i, member) in self.members.iter().enumerate() {
            if member.squared < self.members[self.leader].squared {
                self.leader = i;
            }
        }
    }

    /// Drops all but the best.
    pub fn narrow(&mut self, candidates: usize) {
        if self.members.len() > candidates {
            self.members.sort_by(|a, b| a.squared.total_cmp(&b.squared));
            self.members.truncate(candidates);
            self.leader = 0;
        }
    }

    /// Chooses ridges anew when the rows have doubled.
    pub fn choose_ridges(&mut self, options: &StreamingOptions) -> Result<()> {
        let weight = self.leader().sums().weight();
        if weight < self.next_ridge {
            return Ok(());
        }
        self.next_ridge = 2.0 * weight;
        for member in &mut self.members {
            member.learner.choose(options.ridge)?;
        }
        Ok(())
    }

    pub fn leader(&self) -> &RecursiveRidge {
        &self.members[self.leader].learner
    }
}

impl Member {
    /// A learner with errors of its own so far.
    pub fn with_errors(learner: RecursiveRidge, method: DictionaryMethod, squared: f64) -> Self {
        Self { squared, ..Self::new(learner, method) }
    }

    fn new(learner: RecursiveRidge, method: DictionaryMethod) -> Self {
        Self { learner, method, squared: 0.0, found: Innovations::default() }
    }
}
