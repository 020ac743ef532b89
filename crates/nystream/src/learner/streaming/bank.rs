//! A few bandwidths that follow the stream side by side until one has proved best.

use faer::MatRef;
use rayon::prelude::*;

use super::head::{Kept, with_kernel};
use super::options::StreamingOptions;
use crate::error::Result;
use crate::fit::Bandwidth;
use crate::linalg::on_a_share;
use crate::rows::Rows;
use crate::sketch::DictionaryMethod;
use crate::solver::{Innovations, RecursiveRidge, Ridge};

/// Bandwidths of the bank, as factors of the one that the head chose. More of them are smaller: what is best shrinks as
/// rows come in.
const FACTORS: [f64; 4] = [1.0, std::f64::consts::FRAC_1_SQRT_2, 0.5, std::f64::consts::SQRT_2];
/// How their atoms are chosen: rows of high leverage, or rows as they come. Neither is better on every stream.
const METHODS: [DictionaryMethod; 2] = [DictionaryMethod::RpCholesky, DictionaryMethod::Uniform];
/// With more atoms than this only the kind that the head chose: each candidate holds several matrices of their size.
const BOTH_METHODS: usize = 1000;

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
}

/// Learners of different bandwidths on the same rows.
#[derive(Debug)]
pub(super) struct Bank {
    pub members: Vec<Member>,
    pub leader: usize,
    /// Σw at which ridges are chosen anew.
    pub next_ridge: f64,
    /// The leader's squared errors on the rows of the head, each left out, right after the head chose it.
    left_out: Option<Vec<f64>>,
}

impl Bank {
    /// One learner only, and its errors on rows left out, where [`with_kernel`] knows them.
    pub fn alone(learner: RecursiveRidge, method: DictionaryMethod, left_out: Option<Vec<f64>>) -> Self {
        let next_ridge = 2.0 * learner.sums().weight();
        Self { members: vec![Member::new(learner, method)], leader: 0, next_ridge, left_out }
    }

    /// Members as they were.
    pub fn from_parts(members: Vec<Member>, leader: usize, next_ridge: f64) -> Self {
        Self { members, leader, next_ridge, left_out: None }
    }

    /// The leader, alone.
    pub fn into_leader(mut self) -> RecursiveRidge {
        self.members.swap_remove(self.leader).learner
    }

    /// The learner alone, or with others beside it if the bandwidth may still change.
    pub fn open(options: &StreamingOptions, kept: &Kept, mut chosen: Self) -> Result<Self> {
        let left_out = chosen.left_out.take();
        let (method, chosen) = (chosen.members[chosen.leader].method, chosen.into_leader());
        let next_ridge = 2.0 * chosen.sums().weight();
        let mut members = vec![(Member::new(chosen, method), left_out)];
        if let (Bandwidth::Auto, Some(bandwidth)) = (options.bandwidth, members[0].0.learner.kernel().bandwidth()) {
            let pairs = FACTORS.into_iter().flat_map(|factor| METHODS.map(|other| (factor, other)));
            let others: Vec<_> = pairs
                .filter(|&pair| pair != (1.0, method) && (pair.1 == method || options.budget <= BOTH_METHODS))
                .collect();
            // One thread each: they are small, and there are several.
            let opened = others.into_par_iter().map(|(factor, other)| {
                on_a_share(usize::MAX, || {
                    let kernel = options.kernel.with_bandwidth(factor * bandwidth)?;
                    let (learner, left_out) = with_kernel(options, kept, kernel, other)?;
                    Ok((Member::new(learner, other), left_out))
                })
            });
            members.extend(opened.collect::<Result<Vec<_>>>()?);
        }
        // Those that rows left out show clearly behind need not follow the stream to lose.
        let total = |errors: &Vec<f64>| errors.iter().sum::<f64>();
        let known = members.iter().filter_map(|(_, left_out)| left_out.as_ref());
        if let Some(best) = known.min_by(|a, b| total(a).total_cmp(&total(b))).cloned() {
            members.retain(|(_, left_out)| left_out.as_ref().is_none_or(|errors| !clearly_behind(errors, &best)));
        }
        let members = members.into_iter().map(|(member, _)| member).collect();
        let mut bank = Self { members, leader: 0, next_ridge, left_out: None };
        // Ridges stay as the head chose them; how sums are kept may change.
        bank.each_alone(|learner| {
            let ridge = learner.ridge();
            learner.choose(Ridge::Fixed(ridge))
        })?;
        Ok(bank)
    }

    /// Does something to every learner: side by side, if there are several.
    fn each_alone(&mut self, task: impl Fn(&mut RecursiveRidge) -> Result<()> + Sync) -> Result<()> {
        match &mut self.members[..] {
            [member] => task(&mut member.learner),
            members => {
                let alone = |member: &mut Member| on_a_share(usize::MAX, || task(&mut member.learner));
                members.par_iter_mut().with_max_len(1).map(alone).collect()
            }
        }
    }

    /// Predicts the rows, learns them, and gives what the leader had predicted. `upcoming` are the rows after them, if known.
    pub fn advance(
        &mut self,
        (rows, upcoming): (Rows, Option<Rows>),
        codes: MatRef<'_, f64>,
        weights: &[f64],
        decay: f64,
    ) -> Result<&Innovations> {
        let count = rows.len();
        // Row i of a block of b ends up with weight w·decay^(b−1−i); until the block ends, all is larger by decay^(−b).
        let faded = decay < 1.0;
        let grown: Vec<f64> = (0..count).map(|i| weights[i] / decay.powf((i + 1) as f64)).collect();
        let plain = !faded && weights.iter().all(|&w| w == 1.0);
        let upcoming = upcoming.filter(|_| plain);
        let weights = if plain { None } else { Some(grown.as_slice()) };
        let advance = |member: &mut Member| -> Result<()> {
            member.learner.advance_towards(upcoming, rows, codes, weights, &mut member.found)?;
            if faded {
                member.learner.fade(decay.powf(count as f64))?;
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
            self.members.iter_mut().for_each(|member| member.errors.push(member.squared_error(codes)));
        }
        Ok(&self.members[self.leader].found)
    }

    /// Who has the least error so far answers from now on.
    pub fn elect(&mut self) {
        let total = |member: &Member| member.errors.iter().sum::<f64>();
        for i in 0..self.members.len() {
            if total(&self.members[i]) < total(&self.members[self.leader]) {
                self.leader = i;
            }
        }
    }

    /// Drops those that are clearly behind: most of the work would go to them.
    pub fn narrow(&mut self) {
        self.members.swap(0, self.leader);
        self.leader = 0;
        let best = self.members[0].errors.clone();
        let mut place = 0;
        self.members.retain(|member| {
            place += 1;
            place == 1 || !clearly_behind(&member.errors, &best)
        });
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

    /// Chooses ridges anew when the rows have doubled.
    pub fn choose_ridges(&mut self, options: &StreamingOptions) -> Result<()> {
        let weight = self.leader().sums().weight();
        if weight < self.next_ridge {
            return Ok(());
        }
        self.next_ridge = 2.0 * weight;
        self.each_alone(|learner| learner.choose(options.ridge))
    }

    pub fn leader(&self) -> &RecursiveRidge {
        &self.members[self.leader].learner
    }
}

/// Whether errors, block by block or row by row, are larger than the best by many times what their differences vary.
fn clearly_behind(errors: &[f64], best: &[f64]) -> bool {
    let count = errors.len() as f64;
    let gaps = || errors.iter().zip(best).map(|(a, b)| a - b);
    let mean = gaps().sum::<f64>() / count;
    let variance = gaps().map(|gap| (gap - mean).powi(2)).sum::<f64>() / (count - 1.0);
    count >= FEWEST_BLOCKS && mean > BEHIND * (variance / count).sqrt()
}

impl Member {
    /// A learner with errors of its own so far.
    pub fn with_errors(learner: RecursiveRidge, method: DictionaryMethod, errors: Vec<f64>) -> Self {
        Self { errors, ..Self::new(learner, method) }
    }

    fn squared_error(&self, codes: MatRef<'_, f64>) -> f64 {
        let outputs = codes.ncols();
        let error = |(place, p): (usize, &f64)| (p - codes[(place / outputs, place % outputs)]).powi(2);
        self.found.predictions.iter().enumerate().map(error).sum()
    }

    fn new(learner: RecursiveRidge, method: DictionaryMethod) -> Self {
        Self { learner, method, errors: Vec::new(), found: Innovations::default() }
    }
}
