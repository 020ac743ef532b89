//! The learner as its callers see it.

use super::bank::Bank;
use super::decision::Decision;
use super::early::{Plan, Ready};
use super::head::{FIRST_CHOICE, Kept, choose_at, fit_chosen, next_choice};
use super::options::{LossChoice, StreamingOptions};
use super::reopen::Watch;
use super::rowwise::{Live, follow_mean};
use super::score::RunningScore;
use super::sizes::{Unfit, What, find_unfit};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg::{in_company, on_a_share, on_the_pool};
use crate::model::OutputLimits;
use crate::rows::Rows;
use crate::sketch::{Dictionary, DictionaryMethod};
use crate::solver::{Block, Loss, NystromFit, RecursiveRidge, Ridge, SolverOptions};

/// Blocks after those in hand whose features may be made before their turn.
const AHEAD: usize = 3;

/// How far a ridge may be raised where rounding errors ask for it.
const MOST_RAISED: f64 = 1e6;

/// Streaming kernel ridge regression. See the [module](super).
#[derive(Debug)]
pub struct StreamingRidge {
    pub(super) options: StreamingOptions,
    pub(super) outputs: usize,
    /// Number of features; 0 before the first row.
    pub(super) known_width: usize,
    /// Rows learnt.
    pub(super) learnt: u64,
    /// Rows that wait for a full block.
    pub(super) pending: Kept,
    /// Which of them were answered singly.
    pub(super) answered: Vec<bool>,
    /// Outputs of rows given as blocks whose turn came with a single row: the next block's caller gets them.
    pub(super) owed: Vec<f64>,
    /// What answers for single rows, once one has come since the last block.
    pub(super) live: Option<Live>,
    pub(super) phase: Phase,
    /// Whether rows come from where the atoms do not reach.
    pub(super) watch: Watch,
    /// Where two classes are told apart.
    pub(super) decision: Decision,
    pub(super) score: RunningScore,
    /// What outputs are kept within, by the rows learnt.
    pub(super) limits: OutputLimits,
}

#[derive(Debug)]
pub(super) enum Phase {
    /// Every row so far is kept; the learner, if there is one, was made from the first of them and follows.
    Head { kept: Kept, bank: Option<Bank>, mean: Vec<f64>, weight: f64 },
    /// Several bandwidths, then one.
    Stream { bank: Bank },
}

impl StreamingRidge {
    /// No rows yet, for this many outputs (targets, or codes of classes).
    pub fn new(options: StreamingOptions, outputs: usize) -> Result<Self> {
        options.validated()?;
        if outputs == 0 {
            return Err(Error::Shape { what: "outputs", found: 0, expected: 1 });
        }
        if options.loss == LossChoice::Fixed(Loss::SquaredHinge) && outputs > 1 {
            return Err(Error::InvalidParam {
                name: "loss",
                found: format!("'squared-hinge' for {outputs} outputs"),
                expected: "two classes",
            });
        }
        let limits = if options.kernel.has_bandwidth() { OutputLimits::default() } else { OutputLimits::none() };
        let phase = Phase::Head { kept: Kept::new(outputs), bank: None, mean: vec![0.0; outputs], weight: 0.0 };
        Ok(Self {
            options,
            outputs,
            known_width: 0,
            learnt: 0,
            pending: Kept::new(outputs),
            answered: Vec::new(),
            owed: Vec::new(),
            live: None,
            phase,
            watch: Watch::default(),
            decision: Decision::default(),
            score: RunningScore::default(),
            limits,
        })
    }

    /// Takes the next rows with their codes (row-major) and weights (none: 1 each). Appends, for every row whose turn has
    /// come, the outputs predicted before it was learnt. For an answer after every row see [`learn_row`](Self::learn_row).
    pub fn learn(&mut self, rows: Rows, codes: &[f64], weights: Option<&[f64]>, out: &mut Vec<f64>) -> Result<()> {
        self.check(rows, codes, weights)?;
        self.widen(rows.cols());
        match weights {
            Some(weights) => self.pending.extend(rows, codes, weights),
            None => self.pending.extend(rows, codes, &vec![1.0; rows.len()]),
        }
        self.pending.rows.widen(self.known_width);
        self.answered.resize(self.pending.len(), false);
        out.append(&mut self.owed);
        if self.pending.len() < self.next_block() {
            return Ok(());
        }
        // One learner that follows the stream keeps two threads busy by itself.
        let alone = matches!(&self.phase, Phase::Stream { bank } if bank.members.len() == 1);
        on_the_pool(|| if alone { self.learn_blocks(out) } else { in_company(|| self.learn_blocks(out)) })
    }

    /// Learns all full blocks that wait.
    fn learn_blocks(&mut self, out: &mut Vec<f64>) -> Result<()> {
        let (mut done, mut ready) = self.begin_head(out)?;
        while self.pending.len() - done >= self.next_block() {
            done = self.advance(done, done + self.next_run(done), &mut ready, out)?;
        }
        self.drop_pending(done);
        Ok(())
    }

    /// Makes the fits that the rows at hand lead to in the head, and the bank after it while its last rows are learnt. Gives the
    /// number of rows that were.
    fn begin_head(&mut self, out: &mut Vec<f64>) -> Result<(usize, Ready)> {
        let Phase::Head { kept, bank, .. } = &self.phase else { return Ok((0, Ready::default())) };
        let before = bank.as_ref().map(Bank::chosen);
        let Some(mut plan) = Plan::of(&self.options, kept, &self.pending, before) else {
            return Ok((0, Ready::default()));
        };
        let options = self.options.clone();
        let mut ready = plan.fits(&options);
        let Some(last) = plan.end().map(|end| end - kept.len()) else { return Ok((0, ready)) };
        // All blocks but the one after which the head is over.
        let to_the_end = || {
            let mut done = 0;
            while done + self.next_block() < last {
                done = self.advance(done, done + self.next_block(), &mut ready, out)?;
            }
            Ok(done)
        };
        let (bank, done) = rayon::join(|| plan.bank(&options), || on_a_share(usize::MAX, to_the_end));
        ready.has_bank(bank);
        Ok((done?, ready))
    }

    /// Forgets the first rows that wait: they are learnt.
    pub(super) fn drop_pending(&mut self, count: usize) {
        if count > 0 {
            self.pending.drop_front(count);
            self.answered.drain(..count);
        }
    }

    /// Learns the rows that wait for a full block. Called in the middle of a stream, later predictions may change: in their
    /// last digits, or, of two classes, because the next block begins elsewhere, and with it what lies beyond the margin.
    pub fn flush(&mut self, out: &mut Vec<f64>) -> Result<()> {
        out.append(&mut self.owed);
        while self.pending.len() > 0 {
            let end = self.pending.len().min(self.next_block());
            let end = self.advance(0, end, &mut Ready::default(), out)?;
            self.drop_pending(end);
        }
        Ok(())
    }

    pub(super) fn check(&self, rows: Rows, codes: &[f64], weights: Option<&[f64]>) -> Result<()> {
        let shape = |what, found, expected| {
            if found == expected { Ok(()) } else { Err(Error::Shape { what, found, expected }) }
        };
        shape("codes", codes.len(), rows.len() * self.outputs)?;
        shape("weights", weights.map_or(rows.len(), <[f64]>::len), rows.len())?;
        // Sparse rows may have columns that none before had.
        if let Some(width) = self.width().filter(|_| !(self.is_sparse() && matches!(rows, Rows::Sparse(_)))) {
            shape("features", rows.cols(), width)?;
        }
        let bad = |name, found: f64, expected| Error::InvalidParam { name, found: found.to_string(), expected };
        if let Some(code) = codes.iter().find(|c| !c.is_finite()) {
            return Err(bad("target", *code, "a finite number"));
        }
        let of_classes = self.options.loss == LossChoice::Fixed(Loss::SquaredHinge)
            || matches!(&self.phase, Phase::Stream { bank } if bank.leader().loss() == Loss::SquaredHinge);
        if let Some(code) = codes.iter().find(|code| of_classes && code.abs() != 1.0) {
            return Err(bad("target", *code, "-1 or 1: the loss is the squared hinge"));
        }
        if let Some(weight) = weights.unwrap_or(&[]).iter().find(|w| !(w.is_finite() && **w > 0.0)) {
            return Err(bad("weight", *weight, "a finite number above 0"));
        }
        if !rows.all_finite() {
            return Err(bad("row", f64::NAN, "finite numbers"));
        }
        match self.find_unfit(rows, codes, weights)? {
            Some(Unfit { what: What::Code(_), found, expected, .. }) => Err(bad("target", found, expected)),
            Some(Unfit { what: What::Weight, found, expected, .. }) => Err(bad("weight", found, expected)),
            Some(Unfit { what: What::Feature(_), found, expected, .. }) => Err(bad("row", found, expected)),
            None => Ok(()),
        }
    }

    /// The first number that is too large to be learnt, for those who know where it came from.
    pub(in crate::learner) fn find_unfit(
        &self,
        rows: Rows,
        codes: &[f64],
        weights: Option<&[f64]>,
    ) -> Result<Option<Unfit>> {
        let kernel = self.options.kernel.with_bandwidth(1.0)?;
        Ok(find_unfit(&kernel, rows, codes, self.outputs, weights))
    }

    /// Number of features, once there are rows.
    pub fn width(&self) -> Option<usize> {
        (self.known_width > 0).then_some(self.known_width)
    }

    pub(super) fn is_sparse(&self) -> bool {
        match &self.phase {
            _ if self.pending.len() > 0 => self.pending.rows.is_sparse(),
            Phase::Head { kept, .. } => kept.len() == 0 || kept.rows.is_sparse(),
            Phase::Stream { bank } => bank.leader().dictionary().atoms().is_sparse(),
        }
    }

    /// Takes in columns that no row had before; the atoms have zeros there. Dense rows never bring any.
    pub(in crate::learner) fn widen(&mut self, width: usize) {
        if width <= self.known_width {
            return;
        }
        self.known_width = width;
        self.live = None;
        self.pending.rows.widen(width);
        self.watch.widen(width);
        let bank = match &mut self.phase {
            Phase::Head { kept, bank, .. } => {
                kept.rows.widen(width);
                bank.as_mut()
            }
            Phase::Stream { bank } => Some(bank),
        };
        bank.into_iter().flat_map(|bank| &mut bank.members).for_each(|member| member.learner.widen(width));
    }

    /// Adds numbers to all codes so far, one an output: the same targets, counted from elsewhere.
    pub(in crate::learner) fn shift_codes(&mut self, by: &[f64]) -> Result<()> {
        let shift = |codes: &mut [f64]| {
            codes.chunks_exact_mut(by.len()).for_each(|row| row.iter_mut().zip(by).for_each(|(c, by)| *c += by));
        };
        self.live = None;
        self.limits.shift(by);
        shift(&mut self.pending.codes);
        shift(&mut self.owed);
        let bank = match &mut self.phase {
            Phase::Head { kept, bank, mean, .. } => {
                shift(&mut kept.codes);
                shift(mean);
                bank.as_mut()
            }
            Phase::Stream { bank } => Some(bank),
        };
        for member in bank.into_iter().flat_map(|bank| &mut bank.members) {
            member.learner.shift_targets(by)?;
        }
        Ok(())
    }

    /// Rows that the next block takes: it ends where choices are made.
    pub(super) fn next_block(&self) -> usize {
        let usual = self.options.block_rows();
        match &self.phase {
            Phase::Head { kept, .. } => {
                let (have, end) = (kept.len(), kept.head_end(&self.options));
                usual.min(next_choice(have, end) - have)
            }
            Phase::Stream { .. } => usual,
        }
    }

    /// Rows of full blocks among those that wait from `start` on, up to where ridges are chosen.
    fn next_run(&self, start: usize) -> usize {
        let block = self.next_block();
        let bank = match &self.phase {
            Phase::Stream { bank } if bank.members.len() == 1 && self.options.half_life.is_none() => bank,
            _ => return block,
        };
        let plain = self.pending.weights[start..].iter().take_while(|&&w| w == 1.0).count();
        let to_ridge = (bank.next_ridge - bank.leader().sums().seen()).ceil().max(1.0) as usize;
        (plain / block).min(to_ridge.div_ceil(block)).max(1) * block
    }

    /// Predicts and learns rows `start..end` of those pending, in blocks, or fewer blocks, if atoms change after them; gives
    /// the end. Appends the outputs of those not answered already. What is `ready` need not be made.
    pub(super) fn advance(
        &mut self,
        start: usize,
        mut end: usize,
        ready: &mut Ready,
        out: &mut Vec<f64>,
    ) -> Result<usize> {
        self.live = None;
        let waiting = self.pending.rows.rows();
        let rows = waiting.slice(start, end);
        let codes = self.pending.code_matrix(start, end);
        let weights = &self.pending.weights[start..end];
        let size = self.next_block();
        let block = |from: usize| {
            let to = (from + size).min(end - start);
            let plain = weights[from..to].iter().all(|&w| w == 1.0);
            let targets = codes.as_ref().subrows(from, to - from);
            Block { rows: rows.slice(from, to), targets, weights: (!plain).then(|| &weights[from..to]) }
        };
        let mut blocks: Vec<Block> = (0..end - start).step_by(size).map(block).collect();
        let decay = self.options.decay();
        let mut predictions = Vec::with_capacity((end - start) * self.outputs);
        match &mut self.phase {
            Phase::Head { kept, bank, mean, weight } => {
                match bank {
                    Some(bank) => {
                        let found = bank.advance(&blocks, &[], decay, &self.limits)?;
                        predictions.extend_from_slice(&found.predictions);
                    }
                    None => {
                        for i in 0..end - start {
                            predictions.extend_from_slice(mean);
                            let row = (start + i) * self.outputs;
                            let codes = &self.pending.codes[row..row + self.outputs];
                            follow_mean(mean, weight, codes, weights[i], decay);
                        }
                    }
                }
                let row_major = &self.pending.codes[start * self.outputs..end * self.outputs];
                kept.extend(rows, row_major, weights);
                let count = kept.len();
                let end = kept.head_end(&self.options);
                if count == next_choice(count - 1, end) && count < end && kept.varies() {
                    let (learner, method) = ready.fit(&self.options, kept, bank.as_ref().map(Bank::chosen))?;
                    *bank = Some(Bank::alone(learner, method));
                }
            }
            Phase::Stream { bank } => {
                let (mut looked, mut renews) = self.watch.look(rows, self.learnt, bank, &self.options)?;
                if renews {
                    blocks.truncate(looked.div_ceil(size));
                    end = end.min(start + blocks.len() * size);
                }
                let plain = |from: &usize| self.pending.weights[*from..from + size].iter().all(|&w| w == 1.0);
                let later = (end..(waiting.len() + 1).saturating_sub(size)).step_by(size);
                let upcoming: Vec<Rows> =
                    later.take(AHEAD).take_while(plain).map(|from| waiting.slice(from, from + size)).collect();
                let found = bank.advance(&blocks, &upcoming, decay, &self.limits)?;
                predictions.extend_from_slice(&found.predictions);
                while renews {
                    let first = self.learnt + looked as u64;
                    self.watch.renew(first, bank, &self.options)?;
                    let (more, again) = self.watch.look(rows.slice(looked, end - start), first, bank, &self.options)?;
                    (looked, renews) = (looked + more, again);
                }
                bank.narrow();
                bank.choose_ridges(&self.options)?;
            }
        }
        self.learnt += (end - start) as u64;
        self.next_phase(ready)?;
        let row_major = &self.pending.codes[start * self.outputs..end * self.outputs];
        let rows = predictions.chunks_exact(self.outputs).zip(row_major.chunks_exact(self.outputs));
        for ((predicted, codes), answered) in rows.zip(&self.answered[start..end]) {
            let threshold = self.threshold();
            self.score.push_above(threshold, predicted, codes);
            self.decision.take(predicted, codes, decay);
            self.limits.take(codes);
            if !answered {
                out.extend_from_slice(predicted);
            }
        }
        Ok(end)
    }

    fn next_phase(&mut self, ready: &mut Ready) -> Result<()> {
        match &mut self.phase {
            Phase::Head { kept, bank, .. } if kept.len() >= kept.head_end(&self.options) => {
                if kept.varies() {
                    let bank = ready.bank(&self.options, kept, bank.as_ref().map(Bank::chosen))?;
                    self.watch.remember(kept.rows.rows(), &self.options);
                    self.phase = Phase::Stream { bank };
                } else {
                    // Targets that have never changed leave nothing to choose from: wait another head.
                    let half = kept.len() / 2;
                    kept.drop_front(half);
                }
            }
            Phase::Stream { bank } if self.learnt >= bank.ends => bank.close(),
            _ => {}
        }
        Ok(())
    }

    /// Rows learnt; those that wait for a full block are not among them.
    pub fn rows(&self) -> u64 {
        self.learnt
    }

    /// Rows that wait for a full block.
    pub fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Errors of the predictions made before their rows were learnt.
    pub fn score(&self) -> &RunningScore {
        &self.score
    }

    pub(super) fn leader(&self) -> Option<&RecursiveRidge> {
        match &self.phase {
            Phase::Head { bank, .. } => bank.as_ref().map(Bank::leader),
            Phase::Stream { bank } => Some(bank.leader()),
        }
    }

    /// The output above which a row is said to be of the second of two classes: the one given, or the one that would have
    /// made fewest mistakes so far.
    pub fn threshold(&self) -> f64 {
        self.options.threshold.unwrap_or(self.decision.threshold())
    }

    /// Numbers predicted of a row.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// What was asked for.
    pub fn options(&self) -> &StreamingOptions {
        &self.options
    }

    /// How the atoms in force were chosen, once there are any.
    pub fn dictionary_method(&self) -> Option<DictionaryMethod> {
        let bank = match &self.phase {
            Phase::Head { bank, .. } => bank.as_ref()?,
            Phase::Stream { bank } => bank,
        };
        Some(bank.members[bank.leader].method)
    }

    /// The kernel in force, once there is one.
    pub fn kernel(&self) -> Option<&Kernel> {
        self.leader().map(RecursiveRidge::kernel)
    }

    /// The atoms in force, once there are any.
    pub fn dictionary(&self) -> Option<&Dictionary> {
        self.leader().map(RecursiveRidge::dictionary)
    }

    /// μ in force, once there is one.
    pub fn ridge(&self) -> Option<f64> {
        self.leader().map(RecursiveRidge::ridge)
    }

    /// The regression model of all rows learnt, with its posterior; none before there are 8 rows, and none where targets have
    /// differed only since the last choice, for all rows before may be forgotten. If they have never differed it is a constant.
    pub fn solve(&self) -> Result<Option<NystromFit>> {
        let made_now;
        let leader = match (self.leader(), &self.phase) {
            (Some(leader), _) => leader,
            (None, Phase::Head { kept, .. }) if kept.len() >= FIRST_CHOICE && !kept.varies() => {
                let chosen = choose_at(&self.options, kept, None)?;
                made_now = fit_chosen(&self.options, kept, chosen)?.0;
                &made_now
            }
            _ => return Ok(None),
        };
        let mut ridge = leader.ridge();
        loop {
            let settings = SolverOptions { ridge: Ridge::Fixed(ridge), intercept: true };
            match leader.sums().solve(leader.kernel(), leader.dictionary(), &settings) {
                // Rounding errors since the ridge was chosen; the model says which ridge it has.
                Err(Error::NotPositiveDefinite { .. }) if ridge < MOST_RAISED * leader.ridge() => ridge *= 10.0,
                fit => {
                    let fit = fit?;
                    let model = fit.model.with_limits(self.limits.clone())?;
                    return Ok(Some(NystromFit { model, ..fit }));
                }
            }
        }
    }
}
