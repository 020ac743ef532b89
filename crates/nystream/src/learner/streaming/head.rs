//! The first rows of the stream, kept, so that every choice made from them can be made again without loss.

use faer::Mat;

use super::classes::balanced_dictionary;
use super::kept_features::KeptFeatures;
use super::margin::within_margin;
use super::options::StreamingOptions;
use crate::error::{Error, Result};
use crate::fit::{Effort, TargetCodes, choose_with};
use crate::kernel::Kernel;
use crate::preprocess::Batch;
use crate::rows::{RowBlock, Rows};
use crate::sketch::{Dictionary, DictionaryMethod, DictionaryOptions};
use crate::solver::{Loss, RecursiveRidge, Ridge, SummedRows, Whitening, press_ridge};

/// Rows before the first choice: until then the mean predicts.
pub(super) const FIRST_CHOICE: usize = 8;
/// Most rows for which the ridge is chosen by leaving out one at a time; more: by generalised cross-validation.
const MOST_LEFT_OUT: usize = 2048;
/// Ridges below are rounding.
const LEAST_RIDGE: f64 = 1e-12;
/// Relative accuracy of kernel values: the γ of precise sums.
const KERNEL_ACCURACY: f64 = 1e-12;

/// From so many rows on choices are made at every doubling only, and begin with the last bandwidth.
const SETTLED: usize = 256;

/// Rows on which a choice need not be made again before they have doubled.
const MANY: usize = 512;

/// Up to so many rows a search for the bandwidth takes no time to speak of.
const FEW: usize = 128;

/// The next number of rows after `have` at which choices are made: 8, 12, 16, 24, 32, 48, ..., 256, 512, 1024, ..., and the
/// end of the head, unless one just before it would be for little.
pub(super) fn next_choice(have: usize, end: usize) -> usize {
    if have < FIRST_CHOICE {
        return FIRST_CHOICE;
    }
    let above = (have + 1).next_power_of_two();
    let next = if have < above / 4 * 3 && above <= SETTLED { above / 4 * 3 } else { above };
    if next + next / 2 > end { end } else { next }
}

/// Whether a choice at `count` rows is that of the end of the head, and the one before it was made on at least half of them
/// and not on few: those cost little, and with 192 rows instead of 256 smooth functions were learnt worse.
pub(super) fn settled_before(count: usize, end: usize) -> bool {
    let mut before = 0;
    while next_choice(before, end) < end {
        before = next_choice(before, end);
    }
    count >= end && 2 * before >= count && before >= MANY
}

/// Whether a fit at `count` rows, before the end of the head, searches for the bandwidth: where the start is to be short, at
/// 128, 512, 2048, ... rows only. In between, atoms and ridge are chosen anew, and the bandwidth stays. (With 1,000 atoms,
/// where a search is little of the start, cpuact then had 1.07 instead of 1.04 times the error of two passes.)
fn searches(options: &StreamingOptions, count: usize) -> bool {
    !options.short_start()
        || count <= FEW
        || (count.is_power_of_two() && (count / FEW).trailing_zeros().is_multiple_of(2))
}

/// Rows with their codes and weights.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub rows: RowBlock,
    /// Row-major.
    pub codes: Vec<f64>,
    pub weights: Vec<f64>,
    pub outputs: usize,
}

impl Kept {
    pub fn new(outputs: usize) -> Self {
        Self { rows: RowBlock::dense(0), codes: Vec::new(), weights: Vec::new(), outputs }
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Appends rows; the first ones decide whether they are dense or sparse.
    pub fn extend(&mut self, rows: Rows, codes: &[f64], weights: &[f64]) {
        if self.weights.is_empty() {
            self.rows = RowBlock::like(rows);
        }
        self.rows.extend(rows);
        self.codes.extend_from_slice(codes);
        self.weights.extend_from_slice(weights);
    }

    /// Removes the first `count` rows.
    pub fn drop_front(&mut self, count: usize) {
        let rest = self.rows.rows().slice(count, self.len());
        let mut rows = RowBlock::like(rest);
        rows.extend(rest);
        self.rows = rows;
        self.codes.drain(..count * self.outputs);
        self.weights.drain(..count);
    }

    /// Codes of rows `start..end`, rows × outputs.
    pub fn code_matrix(&self, start: usize, end: usize) -> Mat<f64> {
        Mat::from_fn(end - start, self.outputs, |i, t| self.codes[(start + i) * self.outputs + t])
    }

    /// Variance of each output; 1 where it has taken one value only.
    fn variances(&self) -> Vec<f64> {
        let (count, rows) = (self.len() as f64, || self.codes.chunks_exact(self.outputs));
        let variance = |t: usize| {
            let mean = rows().map(|codes| codes[t]).sum::<f64>() / count;
            let variance = rows().map(|codes| (codes[t] - mean).powi(2)).sum::<f64>() / count;
            if variance > 0.0 { variance } else { 1.0 }
        };
        (0..self.outputs).map(variance).collect()
    }

    /// Of several numbers one over the variance of each; none of a single one, or of codes of classes, which have the same unit.
    pub fn units(&self) -> Vec<f64> {
        if self.outputs == 1 || self.codes.iter().all(|code| code.abs() == 1.0) {
            return Vec::new();
        }
        self.variances().into_iter().map(|variance| 1.0 / variance).collect()
    }

    /// Whether some output has taken more than one value.
    pub fn varies(&self) -> bool {
        varies(&self.codes, self.outputs)
    }

    /// The first rows alone.
    pub fn first(&self, count: usize) -> Self {
        let mut first = Self::new(self.outputs);
        let codes = &self.codes[..count * self.outputs];
        first.extend(self.rows.rows().slice(0, count), codes, &self.weights[..count]);
        first
    }
}

/// Whether some output has taken more than one value, by the codes of the rows (row-major).
pub(super) fn varies(codes: &[f64], outputs: usize) -> bool {
    codes.chunks_exact(outputs).any(|row| row != &codes[..outputs])
}

/// Atoms for so many rows: as many as rows would let the fit interpolate them, where generalised cross-validation says
/// nothing (seen: ridges of 1e-10 and errors fourfold). Of many rows fewer yet: fits before the end of the head are made again
/// soon, and with 1,000 atoms leaving out each of 2,048 rows took longer than all before it. (With as few from 256 rows on
/// cpusmall, 400 atoms, had 1.29 instead of 1.22 thousandths of squared error.)
fn atoms_for(budget: usize, rows: usize) -> usize {
    budget.min(rows / if rows < MOST_LEFT_OUT { 2 } else { 4 }).max(1)
}

/// What is known of a learner's errors on the rows it was fitted to.
#[derive(Debug, Clone)]
pub(super) enum Judged {
    /// Squared errors on each row left out: summed over outputs, each in units of its variance.
    LeftOut(Vec<f64>),
    /// The mean logarithm of the squared errors that generalised cross-validation expects.
    Expected(f64),
    /// Nothing: the ridge was given.
    Not,
}

impl Judged {
    /// To compare learners of the same rows by; infinite where nothing is known.
    pub fn error(&self) -> f64 {
        match self {
            Self::LeftOut(errors) => errors.iter().sum(),
            Self::Expected(error) => *error,
            Self::Not => f64::INFINITY,
        }
    }
}

/// What the head chose last: the kernel and how atoms are chosen.
pub(super) type Chosen = (Kernel, DictionaryMethod);

/// Bandwidth and kind of atoms by all kept rows; the bandwidth near the one before. If it is `settled`, both stay.
pub(super) fn choose(options: &StreamingOptions, kept: &Kept, before: Option<Chosen>, settled: bool) -> Result<Chosen> {
    if let Some(chosen) = before.filter(|_| settled) {
        return Ok(chosen);
    }
    let before = before.filter(|_| kept.len() >= SETTLED);
    let sample = Batch { rows: kept.rows.clone(), targets: kept.codes.clone(), ..Batch::default() };
    let codes = TargetCodes::Numbers { shift: vec![0.0; kept.outputs] };
    let (near, most_atoms) = (before.and_then(|(kernel, _)| kernel.bandwidth()), options.trial_atoms());
    let options = StreamingOptions { budget: atoms_for(options.budget, kept.len()), ..options.clone() };
    let choice = choose_with(&options.fit(), &sample, &codes, Effort::Small { near, most_atoms })?;
    Ok((choice.kernel, choice.dictionary))
}

/// Bandwidth and kind of atoms for a fit before the end of the head.
pub(super) fn choose_at(options: &StreamingOptions, kept: &Kept, before: Option<Chosen>) -> Result<Chosen> {
    choose(options, kept, before, !searches(options, kept.len()))
}

/// A learner fitted to all kept rows before the end of the head, and how its atoms were chosen.
pub(super) fn fit_chosen(
    options: &StreamingOptions,
    kept: &Kept,
    (kernel, method): Chosen,
) -> Result<(RecursiveRidge, DictionaryMethod)> {
    let options = &StreamingOptions { budget: atoms_for(options.budget, kept.len()), ..options.clone() };
    Ok((with_kernel(options, kept, kernel, method)?.0, method))
}

/// A learner of this kernel fitted to all kept rows, and what its ridge was chosen by.
pub(super) fn with_kernel(
    options: &StreamingOptions,
    kept: &Kept,
    kernel: Kernel,
    method: DictionaryMethod,
) -> Result<(RecursiveRidge, Judged)> {
    let settings = DictionaryOptions { seed: options.seed, ..DictionaryOptions::new(options.budget) };
    let chosen = balanced_dictionary(method, &kernel, kept, &settings)?;
    let atoms = chosen.atoms().rows();
    let mean = (0..atoms.len()).map(|i| kernel.diagonal(atoms.row(i))).sum::<f64>() / atoms.len() as f64;
    let dictionary = Dictionary::new(
        chosen.atoms().clone(),
        chosen.weights().to_vec(),
        chosen.indices().to_vec(),
        KERNEL_ACCURACY * mean.max(f64::MIN_POSITIVE),
    )?;
    let whitening = Whitening::new(&kernel, &dictionary, None)?;
    let mut features = KeptFeatures::new(&kernel, &dictionary, &whitening, kept, options.decay());
    let sums = features.sums(&vec![true; kept.len()]);
    let loss = kept.loss(options);
    let (ridge, judged) = match options.ridge {
        Ridge::Fixed(ridge) => (ridge, Judged::Not),
        Ridge::Auto if kept.len() <= MOST_LEFT_OUT => {
            // With few atoms the best ridge of all takes little time, and where it is larger, fewer digits are lost.
            let (ridge, errors) = if options.tries_all() {
                press_ridge(features.values(), &kept.codes, LEAST_RIDGE)?
            } else {
                let codes = kept.code_matrix(0, kept.len());
                let (features, weights) = (features.values(), Some(features.weights()));
                sums.left_out_raised(SummedRows { features, codes: codes.as_ref(), weights })?
            };
            let variances = kept.variances();
            let cost = |(i, errors): (usize, &[f64])| {
                let codes = &kept.codes[i * kept.outputs..];
                errors.iter().zip(codes).zip(&variances).map(|((e, code), v)| loss.of(*code, code - e) / v).sum()
            };
            (ridge, Judged::LeftOut(errors.chunks_exact(kept.outputs).enumerate().map(cost).collect()))
        }
        Ridge::Auto => {
            let choice = sums.ridge_path(&kernel, &dictionary, true)?.choose()?;
            if !choice.ridge.is_finite() {
                return Err(Error::Internal("a ridge is not finite"));
            }
            (choice.ridge, Judged::Expected(choice.mean_log_score()))
        }
    };
    let mut learner = RecursiveRidge::from_sums(kernel, dictionary, sums, ridge)?;
    if loss == Loss::SquaredHinge {
        learner = within_margin(learner, &mut features, &kept.codes)?;
    }
    Ok((learner, judged))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_start_is_short_few_of_the_choices_search_for_the_bandwidth() {
        let searched = |budget: usize| {
            let options = StreamingOptions { budget, ..StreamingOptions::default() };
            let choices = std::iter::successors(Some(FIRST_CHOICE), |&have| Some(next_choice(have, 20_000)));
            choices
                .skip_while(|&count| count < 128)
                .take(8)
                .filter(|&count| searches(&options, count))
                .collect::<Vec<_>>()
        };
        for budget in [100, 501] {
            assert_eq!(searched(budget), [128, 192, 256, 512, 1024, 2048, 4096, 8192]);
        }
        assert_eq!(searched(101), [128, 512, 2048, 8192]);
    }

    #[test]
    fn the_end_of_the_head_is_a_choice_only_if_rows_have_doubled_since_the_last_one() {
        let choices =
            |end: usize| std::iter::successors(Some(0), move |&have| (have < end).then(|| next_choice(have, end)));
        assert_eq!(choices(1000).collect::<Vec<_>>(), [0, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1000]);
        assert_eq!(choices(5000).last(), Some(5000));
        for (end, settled) in [(256, false), (500, false), (1000, true), (2000, true), (5000, false)] {
            assert_eq!(settled_before(end, end), settled, "{end}");
            assert!(choices(end).filter(|&count| count < end).all(|count| !settled_before(count, end)));
        }
        // A head that turned out to be over.
        assert!(settled_before(1020, 1000) && !settled_before(1030, 1000));
    }
}
