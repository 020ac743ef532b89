//! A few bandwidths that follow the stream side by side until one has proved best.
//!
//! Two things are known of each: its one-step-ahead errors, and, whenever ridges are chosen anew, the error that generalised
//! cross-validation expects from its sums. Whose one-step-ahead errors are clearly behind is dropped at once. Among the
//! others neither was enough by itself: errors so far gave cpuact bandwidths half as large as they should be, expectations
//! gave california errors a tenth to nine tenths larger in four orders of ten. The product of both mends both, so it decides,
//! and when ridges are chosen, the better half by it stays. Why each fails was not tested. What would explain it: a few rows
//! that are hard to predict are most of the errors so far, and sums know nothing of rows far off that have not come yet.

use faer::MatRef;
use rayon::prelude::*;

use super::candidates::candidates;
use super::head::{Chosen, Kept};
use super::options::StreamingOptions;
use crate::error::{Error, Result};
use crate::linalg::on_a_share;
use crate::model::OutputLimits;
use crate::rows::Rows;
use crate::sketch::DictionaryMethod;
use crate::solver::{Block, Innovations, RecursiveRidge, Ridge};

/// Blocks before a candidate can be dropped, and how many standard errors behind it must be: on so few blocks Student's t
/// is beyond 5 for one in 130, and the candidates are eight.
const FEWEST_BLOCKS: f64 = 4.0;
const BEHIND: f64 = 5.0;

/// A learner and its own one-step-ahead errors.
#[derive(Debug)]
pub(super) struct Member {
    pub learner: RecursiveRidge,
    /// How its atoms were chosen.
    pub method: DictionaryMethod,
    /// Squared errors of every block since the bank was opened; none once it is closed.
    pub errors: Vec<f64>,
    pub found: Innovations,
    /// Mean logarithm of the squared errors that generalised cross-validation expected when the ridge was last chosen by it.
    pub expected: Option<f64>,
}

/// Learners of different bandwidths on the same rows.
#[derive(Debug)]
pub(super) struct Bank {
    pub members: Vec<Member>,
    pub leader: usize,
    /// Σw at which ridges are chosen anew.
    pub next_ridge: f64,
    /// Length of the stream at which it is decided.
    pub ends: u64,
    /// What squared errors of each output are multiplied by, so that its unit does not matter; none: by 1.
    pub units: Vec<f64>,
}

impl Bank {
    /// One learner only.
    pub fn alone(learner: RecursiveRidge, method: DictionaryMethod) -> Self {
        let next_ridge = 2.0 * learner.sums().seen();
        Self { members: vec![Member::new(learner, method)], leader: 0, next_ridge, ends: 0, units: Vec::new() }
    }

    /// Members as they were.
    pub fn from_parts(members: Vec<Member>, leader: usize, next_ridge: f64, ends: u64, units: Vec<f64>) -> Self {
        Self { members, leader, next_ridge, ends, units }
    }

    /// What the leader was chosen as.
    pub fn chosen(&self) -> Chosen {
        (*self.leader().kernel(), self.members[self.leader].method)
    }

    /// Learners of what the head chose, and of what is near it if the bandwidth may still change, fitted to its rows.
    pub fn open(options: &StreamingOptions, kept: &Kept, chosen: Chosen) -> Result<Self> {
        let candidates = candidates(options, kept, chosen)?.into_iter();
        let members: Vec<Member> =
            candidates.map(|candidate| Member::new(candidate.learner, candidate.method)).collect();
        let next_ridge = 2.0 * members.first().map_or(0.0, |member| member.learner.sums().seen());
        // A head that was longer than usual leaves the bank as many rows again.
        let ends = options.bank_rows().max(2 * kept.len() as u64);
        let mut bank = Self { members, leader: 0, next_ridge, ends, units: kept.units() };
        // Ridges stay as the head chose them; how sums are kept may change. With many atoms that takes longer than it saves
        // before ridges are chosen anew, when most of the members are gone.
        if options.tries_all() {
            bank.choose_each(|learner| Ridge::Fixed(learner.ridge()))?;
        }
        Ok(bank)
    }

    /// Chooses every learner's ridge, and how its sums are kept: side by side, if there are several.
    fn choose_each(&mut self, ridge: impl Fn(&RecursiveRidge) -> Ridge + Sync) -> Result<()> {
        let choose = |member: &mut Member| -> Result<()> {
            member.expected = member.learner.choose(ridge(&member.learner))?;
            Ok(())
        };
        match &mut self.members[..] {
            [member] => choose(member),
            members => {
                let alone = |member| on_a_share(usize::MAX, || choose(member));
                members.par_iter_mut().with_max_len(1).map(alone).collect()
            }
        }
    }

    /// Predicts the rows of blocks, learns them, and gives what the leader had predicted. `upcoming` are the rows of blocks
    /// after them, as far as they are known and have no weights. Several blocks are for a member alone, without forgetting.
    /// Outputs are kept within `limits`, which rows widen as they are learnt.
    pub fn advance(
        &mut self,
        blocks: &[Block],
        upcoming: &[Rows],
        decay: f64,
        limits: &OutputLimits,
    ) -> Result<&Innovations> {
        let faded = decay < 1.0;
        debug_assert!(blocks.len() == 1 || (self.members.len() == 1 && !faded));
        let [Block { rows, targets: codes, weights }, ..] = blocks else { return Err(Error::Internal("no block")) };
        // Row i of a block of b ends up with weight w·decay^(b−1−i); until the block ends, all is larger by decay^(−b).
        let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
        let fading = if faded { rows.len() } else { 0 };
        let grown: Vec<f64> = (0..fading).map(|i| weight(i) / decay.powf((i + 1) as f64)).collect();
        let fading = [Block { weights: Some(&grown), ..blocks[0] }];
        let (blocks, upcoming) = if faded { (&fading[..], &[][..]) } else { (blocks, upcoming) };
        let advance = |member: &mut Member| -> Result<()> {
            member.learner.advance_all(blocks, upcoming, &mut member.found)?;
            keep_within(limits.clone(), blocks, &mut member.found.predictions);
            if faded {
                member.learner.fade(decay.powf(rows.len() as f64))?;
            }
            Ok(())
        };
        match &mut self.members[..] {
            [member] => advance(member)?,
            // Halves of their work go to whichever thread is free; products inside them stay on one.
            members => {
                let alone = |member| on_a_share(usize::MAX, || advance(member));
                members.par_iter_mut().with_max_len(1).map(alone).collect::<Result<()>>()?;
            }
        }
        if self.members.len() > 1 {
            let units = &self.units;
            self.members.iter_mut().for_each(|member| member.errors.push(member.losses(*codes, units)));
        }
        Ok(&self.members[self.leader].found)
    }

    /// The best answers from now on.
    fn elect(&mut self) {
        let known = self.members.iter().all(|member| member.expected.is_some());
        for i in 0..self.members.len() {
            if self.members[i].judgement(known) < self.members[self.leader].judgement(known) {
                self.leader = i;
            }
        }
    }

    /// Drops those whose errors so far are clearly behind the least: most of the work would go to them.
    pub fn narrow(&mut self) {
        let Some(best) = self.members.iter().min_by(|a, b| a.error_so_far().total_cmp(&b.error_so_far())) else {
            return;
        };
        let best = best.errors.clone();
        self.retain(|member| !clearly_behind(&member.errors, &best));
    }

    /// Keeps some members, the best of them first, and elects it.
    fn retain(&mut self, keep: impl Fn(&Member) -> bool) {
        let before = self.members.len();
        self.members.retain(keep);
        if self.members.len() < before {
            self.leader = 0;
        }
        self.elect();
        self.members.swap(0, self.leader);
        self.leader = 0;
        if self.members.len() == 1 {
            self.members[0].errors.clear();
        }
    }

    /// Drops all but the leader.
    pub fn close(&mut self) {
        self.members.swap(0, self.leader);
        self.members.truncate(1);
        self.members[0].errors.clear();
        self.leader = 0;
    }

    /// Chooses ridges anew when the rows have doubled, and drops the half of which the sums expect less.
    pub fn choose_ridges(&mut self, options: &StreamingOptions) -> Result<()> {
        let weight = self.leader().sums().seen();
        if weight < self.next_ridge {
            return Ok(());
        }
        self.next_ridge = 2.0 * weight;
        self.choose_each(|_| options.ridge)?;
        let known = self.members.iter().all(|member| member.expected.is_some());
        if known {
            let mut judgements: Vec<f64> = self.members.iter().map(|member| member.judgement(true)).collect();
            judgements.sort_by(f64::total_cmp);
            let median = judgements[(judgements.len() - 1) / 2];
            self.retain(|member| member.judgement(true) <= median);
        }
        Ok(())
    }

    pub fn leader(&self) -> &RecursiveRidge {
        &self.members[self.leader].learner
    }
}

/// Keeps the outputs predicted of blocks (row-major) within what the rows before each had for targets.
fn keep_within(mut limits: OutputLimits, blocks: &[Block], predictions: &mut [f64]) {
    let mut rows = blocks.iter().flat_map(|block| block.targets.row_iter());
    let Some(outputs) = blocks.first().map(|block| block.targets.ncols()) else { return };
    let mut codes = vec![0.0; outputs];
    for (predicted, targets) in predictions.chunks_exact_mut(outputs).zip(&mut rows) {
        limits.keep(predicted);
        codes.iter_mut().zip(targets.iter()).for_each(|(code, target)| *code = *target);
        limits.take(&codes);
    }
}

/// Whether errors, block by block or row by row, are larger than the best by many times what their differences vary.
pub(super) fn clearly_behind(errors: &[f64], best: &[f64]) -> bool {
    let count = errors.len() as f64;
    let gaps = || errors.iter().zip(best).map(|(a, b)| a - b);
    let mean = gaps().sum::<f64>() / count;
    let variance = gaps().map(|gap| (gap - mean).powi(2)).sum::<f64>() / (count - 1.0);
    count >= FEWEST_BLOCKS && mean > BEHIND * (variance / count).sqrt()
}

impl Member {
    /// A learner with what is known of another, or of itself before it was saved.
    pub fn judged(learner: RecursiveRidge, method: DictionaryMethod, errors: Vec<f64>, expected: Option<f64>) -> Self {
        Self { errors, expected, ..Self::new(learner, method) }
    }

    /// The less, the better: the logarithm of the errors so far, and, if it is `known` of all, of what the sums expect.
    fn judgement(&self, known: bool) -> f64 {
        self.error_so_far().ln() + self.expected.filter(|_| known).unwrap_or(0.0)
    }

    fn error_so_far(&self) -> f64 {
        self.errors.iter().sum()
    }

    /// What the errors of the last block cost, in these units.
    fn losses(&self, codes: MatRef<'_, f64>, units: &[f64]) -> f64 {
        let (outputs, loss) = (codes.ncols(), self.learner.loss());
        let unit = |t: usize| units.get(t).copied().unwrap_or(1.0);
        let error =
            |(place, p): (usize, &f64)| unit(place % outputs) * loss.of(codes[(place / outputs, place % outputs)], *p);
        self.found.predictions.iter().enumerate().map(error).sum()
    }

    fn new(learner: RecursiveRidge, method: DictionaryMethod) -> Self {
        Self { learner, method, errors: Vec::new(), found: Innovations::default(), expected: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::rows::RowBlock;
    use crate::sketch::Dictionary;

    fn member(errors: [f64; 4], expected: Option<f64>) -> Member {
        let mut atoms = RowBlock::dense(1);
        atoms.extend(Rows::dense(&[0.0], 1, 1).unwrap());
        let dictionary = Dictionary::new(atoms, vec![1.0], vec![0], 1e-3).unwrap();
        let learner = RecursiveRidge::new(Kernel::gaussian(1.0).unwrap(), dictionary, 1, 1.0, false).unwrap();
        Member::judged(learner, DictionaryMethod::Uniform, errors.to_vec(), expected.map(f64::ln))
    }

    /// The errors of the members that are left after narrowing, the leader's first.
    fn narrowed(members: Vec<Member>) -> Vec<f64> {
        let mut bank = Bank::from_parts(members, 0, 1e9, 0, Vec::new());
        bank.narrow();
        assert_eq!(bank.leader, 0);
        bank.members.iter().map(|member| member.errors.first().copied().unwrap_or(f64::NAN)).collect()
    }

    #[test]
    fn the_product_of_errors_and_expectations_elects_or_errors_alone() {
        // The product decides ...
        let (first, second) = ([1.0, 9.0, 1.0, 9.0], [2.0, 10.0, 4.0, 9.0]);
        let both = |a: Option<f64>, b: Option<f64>| narrowed(vec![member(first, a), member(second, b)]);
        assert_eq!(both(Some(1.0), Some(0.7)), [2.0, 1.0]);
        assert_eq!(both(Some(1.0), Some(0.9)), [1.0, 2.0]);
        // ... if both are known of all.
        assert_eq!(both(None, Some(0.1)), [1.0, 2.0]);
        assert_eq!(both(None, None), [1.0, 2.0]);
    }

    #[test]
    fn whose_errors_are_clearly_behind_is_dropped_whatever_is_expected_of_it() {
        let members = || vec![member([5.0, 6.0, 5.0, 6.0], Some(0.01)), member([1.0, 2.0, 1.1, 2.0], Some(1.0))];
        let mut bank = Bank::from_parts(members(), 0, 1e9, 0, Vec::new());
        bank.narrow();
        assert!(bank.members.len() == 1 && bank.members[0].expected == Some(0.0));
        // Too few blocks say nothing.
        let mut few = members();
        few.iter_mut().for_each(|member| member.errors.truncate(3));
        assert_eq!(narrowed(few), [5.0, 1.0]);
    }
}
