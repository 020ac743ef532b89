//! Two learners of different rows made into one.
//!
//! - On the same atoms the sums are added: the result is that of one learner that saw all rows, up to rounding. (Of two
//!   classes each part's sums are over the rows within its own margin, so that equality holds in the limit only.)
//!   [`StreamingRidge::like`] gives parts such a common start.
//!   How sums are kept, and γ with it, is chosen anew for both together; one learner that saw all rows does so when its rows have
//!   doubled. In between predictions may differ by γ's part, with a ridge given by hand by a hundredth of a standard deviation.
//! - On different atoms, atoms for both are chosen from the union by randomly pivoted Cholesky, within the budget, and
//!   both sums move to them ([`move_sums`]). What the old atoms did not span is lost, and how much that is is reported as a
//!   change of atoms ([`Change`]).
//! - A learner still in its head has all its rows: the other one learns them.
//!
//! The rows of the second count as those after the first's: where rows fade, the first's fade by as many.
//!
//! Kernels must be equal: sums of one bandwidth say nothing of another. Give parts that are to be merged one bandwidth,
//! or start them with `like`.

use super::bank::Bank;
use super::learner::{Phase, StreamingRidge};
use super::options::StreamingOptions;
use super::reopen::{Change, Watch};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::rows::{RowBlock, Rows};
use crate::sketch::{Dictionary, DictionaryMethod, DictionaryOptions, build};
use crate::solver::{Guard, NystromSums, RecursiveRidge, Ridge, SolverOptions, Whitening, move_sums};

/// What rows count for at least, however many came after them: sums of nothing at all have no mean.
const LEAST_FADED: f64 = 1e-100;

impl StreamingRidge {
    /// A learner without rows that has this one's kernel, atoms and ridge from the start. None while this one is in its
    /// head.
    pub fn like(&self) -> Result<Option<Self>> {
        let Phase::Stream { bank } = &self.phase else { return Ok(None) };
        let leader = bank.leader();
        let learner = RecursiveRidge::new(
            *leader.kernel(),
            leader.dictionary().clone(),
            self.outputs,
            leader.ridge(),
            leader.sums().is_precise(),
        )?
        .with_loss(leader.loss());
        let mut empty = Self::new(self.options.clone(), self.outputs)?;
        let mut bank = Bank::alone(learner, bank.members[bank.leader].method);
        bank.next_ridge = 2.0 * self.options.head_rows() as f64;
        empty.phase = Phase::Stream { bank };
        empty.known_width = self.known_width;
        Ok(Some(empty))
    }

    /// Adds what another learner has learnt. Rows of either that wait for a full block are learnt first.
    pub fn merge(mut self, mut other: Self) -> Result<Self> {
        self.check_mergeable(&other)?;
        // Sparse rows of either may have columns that the other has not seen.
        let width = self.known_width.max(other.known_width);
        self.widen(width);
        other.widen(width);
        let mut unused = Vec::new();
        self.flush(&mut unused)?;
        other.flush(&mut unused)?;
        let mut score = self.score.clone();
        score.add(&other.score);
        let mut limits = self.limits.clone();
        limits.add(&other.limits);
        // What rows before so many others still count.
        let faded = |rows: u64| self.options.decay().powf(rows as f64).max(LEAST_FADED);
        let (first, second) = (self.learnt, other.learnt);
        let swapped = matches!(self.phase, Phase::Head { .. }) && matches!(other.phase, Phase::Stream { .. });
        // The head's rows are learnt last, and weigh as if they had been first; or they were last.
        let head_counts = if swapped { faded(first + second) } else { 1.0 };
        let before_second = faded(second);
        if swapped {
            std::mem::swap(&mut self, &mut other);
        }
        let mut decision = self.decision.clone();
        decision.add(&other.decision);
        match other.phase {
            Phase::Head { mut kept, .. } => {
                kept.weights.iter_mut().for_each(|weight| *weight *= head_counts);
                self.learn(kept.rows.rows(), &kept.codes, Some(&kept.weights), &mut unused)?;
                self.flush(&mut unused)?;
            }
            Phase::Stream { bank: theirs } => {
                let Phase::Stream { bank: mine } = &mut self.phase else {
                    return Err(Error::Internal("a head merged with a stream"));
                };
                let leader = &mut mine.members[mine.leader].learner;
                if before_second < 1.0 {
                    leader.fade(before_second)?;
                }
                self.learnt += other.learnt;
                let joint = Joint { parts: [leader, theirs.leader()], watches: [&self.watch, &other.watch] };
                let (mut joined, change) = joint.joined(&self.options, self.learnt)?;
                joined.choose(self.options.ridge)?;
                *mine = Bank::alone(joined, DictionaryMethod::RpCholesky);
                self.watch = self.watch.joined(other.watch, change);
            }
        }
        self.score = score;
        self.limits = limits;
        self.decision = decision;
        self.live = None;
        Ok(self)
    }

    fn check_mergeable(&self, other: &Self) -> Result<()> {
        let differ = |field: &str, found: String, expected: String| {
            Err(Error::Incompatible { field: field.to_owned(), found, expected })
        };
        let (a, b) = (&self.options, &other.options);
        if self.outputs != other.outputs {
            return differ("outputs", other.outputs.to_string(), self.outputs.to_string());
        }
        if a.kernel.name() != b.kernel.name() {
            return differ("kernel", b.kernel.name().to_owned(), a.kernel.name().to_owned());
        }
        if a.budget != b.budget {
            return differ("budget", b.budget.to_string(), a.budget.to_string());
        }
        if a.half_life != b.half_life {
            return differ("half-life", or_none(b.half_life), or_none(a.half_life));
        }
        if a.loss != b.loss {
            return differ("loss", b.loss.to_string(), a.loss.to_string());
        }
        if a.ridge != b.ridge {
            return differ("ridge", b.ridge.to_string(), a.ridge.to_string());
        }
        if let (Some(mine), Some(theirs)) = (self.width(), other.width())
            && mine != theirs
            && !(self.is_sparse() && other.is_sparse())
        {
            return differ("features", theirs.to_string(), mine.to_string());
        }
        if let (Phase::Stream { bank: mine }, Phase::Stream { bank: theirs }) = (&self.phase, &other.phase) {
            let (mine, theirs) = (mine.leader(), theirs.leader());
            if mine.loss() != theirs.loss() {
                return differ("loss", theirs.loss().to_string(), mine.loss().to_string());
            }
            let (mine, theirs) = (mine.kernel(), theirs.kernel());
            if mine != theirs {
                return differ("bandwidth", or_none(theirs.bandwidth()), or_none(mine.bandwidth()));
            }
        }
        Ok(())
    }
}

fn or_none(number: Option<f64>) -> String {
    number.map_or("none".to_owned(), |number| number.to_string())
}

/// Two learners that become one, and what followed their streams.
struct Joint<'a> {
    parts: [&'a RecursiveRidge; 2],
    watches: [&'a Watch; 2],
}

impl Joint<'_> {
    /// One learner, and what happened to the atoms, if they were not the same.
    fn joined(&self, options: &StreamingOptions, learnt: u64) -> Result<(RecursiveRidge, Option<Change>)> {
        let [mine, theirs] = self.parts;
        let kernel = *mine.kernel();
        let precise = mine.sums().is_precise() && theirs.sums().is_precise();
        let (a, b) = (mine.dictionary(), theirs.dictionary());
        if a.atoms() == b.atoms() && a.weights() == b.weights() {
            let dictionary = a.with_leverage_ridge(a.leverage_ridge().max(b.leverage_ridge()))?;
            // Sums of kernels add up as they are, sums of features if γ, and so the features, are the same.
            let kept = |learner: &RecursiveRidge| -> Result<NystromSums> {
                let sums = learner.sums();
                match precise {
                    false => Ok(sums.to_kernels()),
                    true if sums.is_whitened() && *learner.dictionary() == dictionary => Ok(sums.clone()),
                    true => sums.to_features_of(Whitening::new(&kernel, &dictionary, None)?),
                }
            };
            let mut sums = kept(mine)?;
            sums.merge(&kept(theirs)?)?;
            let joined = RecursiveRidge::from_sums(kernel, dictionary, sums, mine.ridge())?.with_loss(mine.loss());
            return Ok((joined, None));
        }
        let mut union: RowBlock = a.atoms().clone();
        union.extend(b.atoms().rows());
        let to = choose_atoms(&kernel, union.rows(), options.budget, options.seed, a.leverage_ridge())?;
        let (mut sums, mut held, mut energy) = (None::<NystromSums>, 0.0_f64, 0.0_f64);
        for (part, watch) in self.parts.into_iter().zip(self.watches) {
            let weights = watch.witness_weights(options);
            // Directions that one part lacks are the other's: its rows hold them.
            let guard = Guard { sample: watch.sample(&weights), prior: 0.0 };
            let moved = move_sums(&kernel, part.sums(), part.dictionary(), &to, guard, precise)?;
            held += captured_energy(part.sums(), &kernel, part.dictionary(), part.ridge())?;
            energy += part.sums().energy();
            match &mut sums {
                Some(sums) => sums.merge(&moved)?,
                None => sums = Some(moved),
            }
        }
        let sums = sums.ok_or(Error::Internal("nothing to be joined"))?;
        let kept = captured_energy(&sums, &kernel, &to, mine.ridge())?;
        let new_atoms = to.indices().iter().filter(|&&place| place as usize >= a.len()).count();
        let change = Change {
            rows: learnt,
            new_atoms,
            lost: (1.0 - kept / held.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0),
            captured_before: (held / energy.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0),
            captured_after: (kept / energy.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0),
        };
        let joined = RecursiveRidge::from_sums(kernel, to, sums, mine.ridge())?.with_loss(mine.loss());
        Ok((joined, Some(change)))
    }
}

/// Σ‖φ(x)‖² of the rows summed.
fn captured_energy(sums: &NystromSums, kernel: &Kernel, dictionary: &Dictionary, ridge: f64) -> Result<f64> {
    let fixed = SolverOptions { ridge: Ridge::Fixed(ridge), intercept: true };
    Ok(sums.energy() * sums.solve(kernel, dictionary, &fixed)?.captured)
}

/// Atoms chosen from rows by randomly pivoted Cholesky, for plain features.
pub(super) fn choose_atoms(
    kernel: &Kernel,
    rows: Rows,
    budget: usize,
    seed: u64,
    leverage_ridge: f64,
) -> Result<Dictionary> {
    let options = DictionaryOptions { seed, ..DictionaryOptions::new(budget) };
    let (chosen, _) = build(DictionaryMethod::RpCholesky, kernel, rows, &options)?;
    let weights = vec![1.0; chosen.len()];
    Dictionary::new(chosen.atoms().clone(), weights, chosen.indices().to_vec(), leverage_ridge)
}
