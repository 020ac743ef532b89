//! One step of SQUEAK under each schedule, and the budget.

use super::Squeak;
use super::atoms::Standing;
use super::options::Schedule;
use crate::error::{Error, Result};
use crate::rows::{RowBlock, Rows};

/// γ is raised by at least this factor when the budget is exceeded (not in the paper).
const LEAST_RAISE: f64 = 1.1;

/// Steps in which atoms fall when a block joins, and after a merge (not in the papers).
///
/// Atoms that go in one draw may take all that a direction had. Step by step, what stands in for those that went is scored
/// higher, and falls no further.
pub(super) const STEPS: u32 = 2;

impl Squeak {
    /// Learns `rows`, the next of the stream after those already learnt.
    pub(super) fn learn(&mut self, rows: Rows) -> Result<()> {
        match self.options.schedule {
            Schedule::PerPoint => {
                self.admit(rows)?;
                // SQUEAK, Alg. 1, line 5, with its floor.
                self.shrink(|lower, old| lower.max(old / 2.0));
            }
            Schedule::Blocks { .. } => {
                self.admit(rows)?;
                // No more dictionaries are scored than rows come: the union bound is over rows.
                let steps = STEPS.min(rows.len() as u32);
                self.fall(steps);
                self.rescore(self.leverage_ridge, steps - 1)?;
            }
            Schedule::Lazy { growth, .. } => {
                self.join_lazily(rows)?;
                if self.atoms.len() as f64 > growth * self.rescored_atoms as f64 {
                    self.rescore(self.leverage_ridge, 1)?;
                }
            }
        }
        self.enforce_budget(1)
    }

    /// Standing of the next `count` rows.
    fn newcomers(&mut self, count: usize) -> Vec<Standing> {
        let first = self.learnt;
        self.learnt += count as u64;
        let standing: Vec<Standing> = (first..self.learnt)
            .map(|number| Standing::new(number, self.options.oversampling_at(number + 1)))
            .collect();
        let least = standing.iter().map(|point| point.trials).min().unwrap_or(u64::MAX);
        self.least_oversampling = self.least_oversampling.min(least);
        standing
    }

    /// SQUEAK, Alg. 1, lines 3 and 4, for a point or for a block, which is an exact dictionary of its own: they join as they
    /// are, and all atoms are scored.
    pub(super) fn admit(&mut self, rows: Rows) -> Result<()> {
        let old = self.atoms.len();
        let standing = self.newcomers(rows.len());
        self.atoms.append(&self.options.kernel, rows, &standing, &mut self.scorer.kernels);
        self.scorer.forget();
        self.scorer.of_atoms(&self.atoms, self.leverage_ridge, &mut self.scores)?;
        for i in 0..rows.len() {
            self.account(self.options.kernel.diagonal(rows.row(i)), self.scores[old + i]);
        }
        Ok(())
    }

    /// The rows scored one by one against the dictionary as it is; those that get copies become atoms.
    fn join_lazily(&mut self, rows: Rows) -> Result<()> {
        let outside = self.scorer.of_rows(&self.options.kernel, &self.atoms, rows, self.leverage_ridge)?;
        let standing = self.newcomers(rows.len());
        let (mut accepted, mut places) = (Vec::new(), Vec::new());
        for (i, mut point) in standing.into_iter().enumerate() {
            // The score that the row would have in the dictionary, alone of its block.
            let score = outside[i] / (1.0 + outside[i]);
            self.account(self.options.kernel.diagonal(rows.row(i)), score);
            point.probability = (1.0 - self.options.accuracy) * score;
            point.copies = self.rng.binomial(point.trials, point.probability);
            if point.copies > 0 {
                accepted.push(point);
                places.push(i);
            }
        }
        if !places.is_empty() {
            let chosen = RowBlock::gather(rows, &places);
            self.atoms.append(&self.options.kernel, chosen.rows(), &accepted, &mut self.scorer.kernels);
            self.scorer.admit(&self.atoms, &places);
        }
        Ok(())
    }

    /// Adds a row of energy k(x, x) and this score (without the factor 1 − ε) to the running sums.
    fn account(&mut self, energy: f64, score: f64) {
        self.energy += energy;
        self.residual += (self.leverage_ridge * score).min(energy);
    }

    /// Scores every atom at g = `ridge` and lets it fall, without the floor of p̃/2: in so many equal steps of log p̃, with the
    /// scores of what is left before each.
    pub(super) fn rescore(&mut self, ridge: f64, steps: u32) -> Result<()> {
        (1..=steps).rev().try_for_each(|left| self.score_and_fall(ridge, left))
    }

    /// Scores every atom, and lets it fall one step of those `left`.
    pub(super) fn score_and_fall(&mut self, ridge: f64, left: u32) -> Result<()> {
        self.scorer.of_atoms(&self.atoms, ridge, &mut self.scores)?;
        self.fall(left);
        Ok(())
    }

    /// Lets every atom, scored as it is, fall one step of those `left`.
    pub(super) fn fall(&mut self, left: u32) {
        self.shrink(|lower, old| match left {
            1 => lower,
            // Rounding must not take it below its score, or above where it was.
            left => (old * (lower / old).powf(1.0 / f64::from(left))).clamp(lower, old),
        });
        self.rescored_atoms = self.atoms.len();
    }

    /// Lets every atom fall to `rule(score, p̃)`, the score, times 1 − ε, being at most p̃.
    fn shrink(&mut self, rule: impl Fn(f64, f64) -> f64) {
        let (scores, share) = (&self.scores, 1.0 - self.options.accuracy);
        let fall = |i: usize, old: f64| rule((share * scores[i]).min(old), old);
        self.atoms.shrink(&mut self.rng, &mut self.spare, fall);
        self.scorer.forget();
    }

    /// The budget in atoms, of the average size of those held.
    pub(super) fn allowed_atoms(&self) -> usize {
        let bytes = match self.atoms.rows().rows() {
            Rows::Dense(rows) => 8.0 * rows.cols() as f64,
            Rows::Sparse(rows) => 12.0 * rows.entries() as f64 / rows.len().max(1) as f64 + 8.0,
        };
        self.options.allowed_atoms(bytes)
    }

    /// Raises γ until the atoms fit the budget; they fall in so many steps each time.
    pub(super) fn enforce_budget(&mut self, steps: u32) -> Result<()> {
        let lazy = matches!(self.options.schedule, Schedule::Lazy { .. });
        if lazy && self.atoms.len() > self.allowed_atoms() {
            // Old atoms may have had no chance to fall yet.
            self.rescore(self.leverage_ridge, 1)?;
        }
        loop {
            let (atoms, allowed) = (self.atoms.len(), self.allowed_atoms());
            if atoms <= allowed {
                return Ok(());
            }
            if allowed == 0 {
                return Err(self.no_room());
            }
            let raised = self.leverage_ridge * (atoms as f64 / allowed as f64).max(LEAST_RAISE);
            if !raised.is_finite() {
                return Err(Error::Internal("no leverage ridge makes the dictionary fit its budget"));
            }
            self.leverage_ridge = raised;
            self.rescore(raised, steps)?;
        }
    }
}
