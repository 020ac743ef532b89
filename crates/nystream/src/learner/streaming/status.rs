//! What can be said of a learner at any time.

use super::bank::Bank;
use super::head::Kept;
use super::learner::{Phase, StreamingRidge};
use super::reopen::Change;
use super::rowwise::Live;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::solver::{Loss, RecursiveRidge};

/// How a learner stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Rows learnt.
    pub rows: u64,
    /// Rows that wait for a full block.
    pub waiting: usize,
    /// Atoms in force; 0 while the mean predicts.
    pub atoms: usize,
    /// Learners that still compete, each of a bandwidth and a choice of atoms; 0 while the mean predicts.
    pub competing: usize,
    /// The kernel in force.
    pub kernel: Option<Kernel>,
    /// μ in force.
    #[doc(alias = "μ")]
    pub ridge: Option<f64>,
    /// γ in force: features are those of K̃ = K_Z (K_ZZ + γI)⁻¹ K_Zᵀ. The atoms are not drawn by it and carry no guarantee in
    /// its terms: it is as small as the accuracy of the sums allows, and what the atoms miss is in `captured`.
    #[doc(alias = "γ")]
    pub leverage_ridge: Option<f64>,
    /// Share of the kernel energy Σk(x,x) of the rows learnt that the atoms span.
    pub captured: Option<f64>,
    /// Share of the energy of recent rows (a window of 256 kept ones) that the atoms span; none before the first window.
    pub recent_captured: Option<f64>,
    /// How often atoms were changed after the head.
    pub changes: u64,
    /// The last change of atoms.
    pub last_change: Option<Change>,
    /// Degrees of freedom of the regression, the intercept included.
    #[doc(alias = "d_eff")]
    pub effective_dim: Option<f64>,
    /// Mean squared error of the predictions made before their rows were learnt, summed over outputs; not a number
    /// without rows.
    pub mse: f64,
    /// The same over the last rows (at most 1,000).
    pub recent_mse: f64,
    /// Of several numbers both errors of each output; else empty.
    pub errors_each: Vec<(f64, f64)>,
    /// Share of mistakes of those predictions, codes taken as classes.
    pub mistake_rate: f64,
    /// The same over the last rows (at most 1,000).
    pub recent_mistake_rate: f64,
    /// What errors cost; none while the mean predicts.
    pub loss: Option<Loss>,
    /// Share of the rows (by weight) that cost nothing when their turn came, and were not summed.
    pub passed_over: f64,
    /// The output above which a row counts as of the second of two classes; none if targets are something else.
    pub threshold: Option<f64>,
    /// Bytes of everything the learner holds: sums, atoms, rows kept and waiting, scratch memory.
    pub bytes_held: usize,
}

impl StreamingRidge {
    /// How the learner stands after the rows learnt. Costs a solve: O(m³).
    pub fn status(&self) -> Result<Status> {
        // A learner that began like another has atoms before it has rows.
        let summed = self.leader().is_some_and(|leader| leader.sums().rows() > 0);
        let fit = if summed { self.solve()? } else { None };
        let score = self.score();
        Ok(Status {
            rows: self.learnt,
            waiting: self.waiting(),
            atoms: self.dictionary().map_or(0, |dictionary| dictionary.len()),
            competing: self.bank().map_or(0, |bank| bank.members.len()),
            kernel: self.kernel().copied(),
            ridge: self.ridge(),
            leverage_ridge: fit.as_ref().map(|fit| fit.leverage_ridge),
            captured: fit.as_ref().map(|fit| fit.captured),
            recent_captured: self.watch.recent_captured(),
            changes: self.watch.header().changes,
            last_change: self.watch.header().last,
            effective_dim: fit.as_ref().map(|fit| fit.choice.degrees_of_freedom),
            mse: score.mse(),
            recent_mse: score.recent_mse(),
            errors_each: score.of_each_number().collect(),
            mistake_rate: score.mistake_rate(),
            recent_mistake_rate: score.recent_mistake_rate(),
            loss: self.leader().map(RecursiveRidge::loss),
            passed_over: self.leader().map_or(0.0, |leader| leader.sums().passed_share()),
            threshold: self.decision.of_classes().then(|| self.threshold()),
            bytes_held: self.size_bytes(),
        })
    }

    /// Bytes of everything the learner holds.
    pub fn size_bytes(&self) -> usize {
        let head = match &self.phase {
            Phase::Head { kept, mean, .. } => kept.size_bytes() + 8 * mean.capacity(),
            Phase::Stream { .. } => 0,
        };
        let waiting = self.pending.size_bytes() + self.answered.capacity() + 8 * self.owed.capacity();
        size_of::<Self>()
            + head
            + waiting
            + self.bank().map_or(0, Bank::size_bytes)
            + self.live.as_ref().map_or(0, Live::size_bytes)
            + self.watch.size_bytes()
            + self.score.size_bytes()
            + self.decision.size_bytes()
    }

    fn bank(&self) -> Option<&Bank> {
        match &self.phase {
            Phase::Head { bank, .. } => bank.as_ref(),
            Phase::Stream { bank } => Some(bank),
        }
    }
}

impl Bank {
    fn size_bytes(&self) -> usize {
        let found = |i: usize| {
            let found = &self.members[i].found;
            8 * (found.predictions.capacity() + found.variance_factors.capacity())
        };
        (0..self.members.len()).map(|i| self.members[i].learner.size_bytes() + found(i)).sum()
    }
}

impl Kept {
    fn size_bytes(&self) -> usize {
        self.rows.size_bytes() + 8 * (self.codes.capacity() + self.weights.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::super::StreamingRidge;
    use super::super::tests::{COLS, feed, options, stream};
    use crate::rows::Row;

    #[test]
    fn a_status_can_be_had_at_any_time() {
        let (data, codes) = stream(2500, 3);
        let mut learner = StreamingRidge::new(options(30), 2).unwrap();
        let none = learner.status().unwrap();
        assert!((none.rows, none.atoms, none.competing) == (0, 0, 0) && none.captured.is_none() && none.mse.is_nan());
        let mut held = Vec::new();
        for start in (0..2500).step_by(250) {
            feed(&mut learner, &data, &codes, (start, start + 250), &[50]);
            let status = learner.status().unwrap();
            assert_eq!(status.rows + status.waiting as u64, start as u64 + 250);
            assert!(status.atoms <= 30 && status.atoms > 0);
            let captured = status.captured.unwrap();
            assert!(captured > 0.3 && captured <= 1.0, "{captured}");
            // The intercept counts too.
            let freedom = status.effective_dim.unwrap();
            assert!(freedom > 1.0 && freedom <= status.atoms as f64 + 1.0, "{freedom}");
            assert!(status.leverage_ridge.unwrap() > 0.0 && status.ridge.unwrap() > 0.0);
            assert!(status.recent_mse.is_finite() && status.mistake_rate <= 1.0);
            held.push((start + 250, status.competing, status.bytes_held));
        }
        assert_eq!(learner.status().unwrap().mse, learner.score().mse());
        // Once one bandwidth is left, what is held no longer grows: only vectors of rows waiting change their capacity.
        let alone: Vec<usize> = held.iter().filter(|(rows, ..)| *rows > 1500).map(|(.., bytes)| *bytes).collect();
        assert!(held.iter().all(|(rows, competing, _)| (*competing == 1) == (*rows < 256 || *rows > 1024)));
        let (least, most) = (alone.iter().min().unwrap(), alone.iter().max().unwrap());
        assert!(most - least < 8 * 64 * (COLS + 2 + 1) * 4, "{alone:?}");
        // At the least the sums, their factor, the map to features and the factor at the start of a block.
        assert!(*least > 8 * 30 * 30 * 3);
        // Single rows need memory of their own.
        let before = learner.size_bytes();
        learner.predict_row(Row::Dense(&data[..COLS]), &mut [0.0; 2]).unwrap();
        assert!(learner.size_bytes() > before + 8 * 30 * 30);
    }
}
