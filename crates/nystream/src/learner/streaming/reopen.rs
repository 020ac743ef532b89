//! New atoms when rows come from where the old ones do not reach.
//!
//! What the atoms do not span of a row is k(x,x) − ‖φ(x)‖². Every few rows one is kept; whenever a window of them is full,
//! the mean of their shares left out is compared with that of the first window after the head, by the usual test for two
//! means. The threshold grows with the windows compared, so that on rows of one distribution the chance of ever passing it
//! stays below [`FALSE_ALARMS`], as far as means are normal. Past it, atoms are chosen anew by randomly pivoted Cholesky
//! from the old ones, half of the window, and as many rows of all the stream ([`Witnesses`]), and judged on others: only if a
//! good part of what was left out of the window is spanned now, and all rows together, each as it counts, are spanned no
//! worse, do the sums move to them ([`move_sums`](crate::solver::move_sums)). Else this is how rows are from now on,
//! and later windows are compared with it. So atoms change rarely: a false alarm ends with the old ones. (Judged on the
//! window alone, a stream that moves on all the time gives its atoms to where it just is: california in file order with 50
//! atoms was learnt worse than with the first ones.)
//!
//! Rows of all the stream also tell what they have in the new atoms that the old ones did not see. Without that
//! nothing held new atoms where old rows had been: sorted streams that changed their atoms again
//! and again were learnt worse than by the mean.
//!
//! What the sums lose by moving is reported. While several bandwidths compete nothing is changed.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::bank::{Bank, Member};
use super::merge::choose_atoms;
use super::options::{Reopen, StreamingOptions};
use super::witnesses::{self, Witnesses};
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel};
use crate::persist::Container;
use crate::rows::{RowBlock, Rows};
use crate::sketch::{Dictionary, DictionaryMethod};
use crate::solver::{Guard, RecursiveRidge, Ridge, Sample, SolverOptions, Whitening, move_sums};

/// Rows of a window.
const WINDOW: usize = 256;
/// Atoms for which one row in one more is kept, and the fewest rows of which one is kept: what the rows of a window cost is
/// to stay small beside learning.
const ATOMS_A_STRIDE: usize = 25;
const LONGEST_STRIDE: usize = 16;
/// Chance that a stream that never changes comes to a choice of new atoms.
const FALSE_ALARMS: f64 = 1e-3;
/// A smaller rise of the mean share, however sure, is no new region.
const LEAST_RISE: f64 = 0.01;
/// New atoms must bring what is left out of rows not among them down to this part. Chosen anew from rows of the same
/// distribution, atoms of the same number leave out about as much as before.
const WORTH: f64 = 0.75;

/// A change of atoms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Rows learnt before it.
    pub rows: u64,
    /// Atoms that were not among the old ones.
    pub new_atoms: usize,
    /// Share of the kernel energy in the sums that they lost by moving.
    pub lost: f64,
    /// Share of the energy of recent rows that the old atoms spanned.
    pub captured_before: f64,
    /// Share that the new ones span, of rows that are not among them.
    pub captured_after: f64,
}

/// Shares of energy left out: their number, mean and variance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Shares {
    count: f64,
    mean: f64,
    variance: f64,
}

/// What is watched.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The first window after the head, until it is judged by the learner that stays.
    reference: Option<RowBlock>,
    /// Rows of the window so far.
    window: Option<RowBlock>,
    /// Rows of the whole stream, without those of the window.
    witnesses: Witnesses,
    header: Header,
    /// The map to features of the atoms in force, where kernels are summed: the next window needs it too.
    map: Option<Map>,
}

/// The map from kernels to features of a dictionary.
#[derive(Debug)]
struct Map {
    kernel: Kernel,
    dictionary: Dictionary,
    whitening: Whitening,
}

impl Map {
    fn new(kernel: &Kernel, dictionary: &Dictionary) -> Result<Self> {
        let whitening = Whitening::new(kernel, dictionary, None)?;
        Ok(Self { kernel: *kernel, dictionary: dictionary.clone(), whitening })
    }

    fn is_of(&self, learner: &RecursiveRidge) -> bool {
        self.kernel == *learner.kernel() && self.dictionary == *learner.dictionary()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    /// How rows are while nothing is new.
    usual: Option<Shares>,
    /// How they were in the last window.
    recent: Option<Shares>,
    /// Windows compared with `usual`.
    windows: u64,
    pub changes: u64,
    pub last: Option<Change>,
    #[serde(default)]
    witnesses: witnesses::Header,
}

/// One row in so many is looked at.
fn stride(options: &StreamingOptions) -> u64 {
    (options.budget / ATOMS_A_STRIDE).clamp(1, LONGEST_STRIDE) as u64
}

impl Watch {
    /// What follows the stream that two others have followed; the `change` of atoms, if there was one, is theirs.
    pub fn joined(self, other: Self, change: Option<Change>) -> Self {
        let changes = self.header.changes.saturating_add(other.header.changes).saturating_add(change.is_some().into());
        let last = change.or(other.header.last).or(self.header.last);
        // Other atoms, or rows of more than one stream: what is usual must be found again.
        let header = Header { changes, last, ..Header::default() };
        Self { witnesses: self.witnesses.join(other.witnesses), header, ..Self::default() }
    }

    /// What each of the rows kept of the whole stream counts for.
    pub fn witness_weights(&self, options: &StreamingOptions) -> Vec<f64> {
        self.witnesses.weights(options.decay().powf(stride(options) as f64))
    }

    /// These rows with their weights; none before there are any, or where all of them are forgotten.
    pub fn sample<'a>(&'a self, weights: &'a [f64]) -> Option<Sample<'a>> {
        let rows = self.witnesses.rows().filter(|_| weights.iter().sum::<f64>() > 0.0);
        rows.map(|rows| Sample { rows, weights })
    }

    /// Takes note of the first rows of the stream, which nothing is compared with.
    pub fn remember(&mut self, rows: Rows, options: &StreamingOptions) {
        if options.reopen == Reopen::Auto {
            let every: Vec<usize> = (0..rows.len()).step_by(stride(options) as usize).collect();
            self.witnesses.offer(RowBlock::gather(rows, &every).rows());
        }
    }

    /// Looks at rows that are learnt next, the first of them with this number, up to the one that ends a window out of the
    /// ordinary: how many rows that are, and whether there is such a window. Then atoms are to be chosen anew
    /// ([`renew`](Self::renew)) once the rows are learnt. What is learnt of them does not matter to it.
    pub fn look(&mut self, rows: Rows, first: u64, bank: &Bank, options: &StreamingOptions) -> Result<(usize, bool)> {
        if options.reopen == Reopen::Off {
            return Ok((rows.len(), false));
        }
        let stride = stride(options);
        for i in 0..rows.len() {
            if (first + i as u64).is_multiple_of(stride) {
                let window = self.window.get_or_insert_with(|| RowBlock::like(rows));
                window.push(rows.row(i));
                if window.len() == WINDOW {
                    if self.judge(bank)? {
                        return Ok((i + 1, true));
                    }
                    self.clear_window();
                }
            }
        }
        Ok((rows.len(), false))
    }

    /// Chooses atoms anew after a window out of the ordinary, and changes them where that is worth it.
    pub fn renew(&mut self, learnt: u64, bank: &mut Bank, options: &StreamingOptions) -> Result<()> {
        let (Some(window), [member]) = (&self.window, &mut bank.members[..]) else { return Ok(()) };
        let weights = self.witness_weights(options);
        let (sample, spacing) = (self.sample(&weights), self.witnesses.spacing());
        let found = Renewal { window: window.rows(), sample, spacing, learnt, changes: self.header.changes };
        match found.renewed(member, options)? {
            Some((learner, change)) => {
                let (errors, expected) = (std::mem::take(&mut member.errors), member.expected);
                *member = Member::judged(learner, DictionaryMethod::RpCholesky, errors, expected);
                self.header.changes = self.header.changes.saturating_add(1);
                self.header.last = Some(change);
            }
            None => {
                self.header.usual = self.header.recent;
                self.header.windows = 0;
            }
        }
        self.clear_window();
        Ok(())
    }

    /// The rows of the window become some of many.
    fn clear_window(&mut self) {
        if let Some(window) = &mut self.window {
            self.witnesses.offer(window.rows());
            window.clear();
        }
    }

    /// Makes sparse rows wider.
    pub fn widen(&mut self, width: usize) {
        self.witnesses.widen(width);
        [&mut self.reference, &mut self.window].into_iter().flatten().for_each(|rows| rows.widen(width));
    }

    /// Share of the energy of the last full window that the atoms span.
    pub fn recent_captured(&self) -> Option<f64> {
        self.header.recent.map(|shares| 1.0 - shares.mean)
    }

    /// What is known besides rows.
    pub fn header(&self) -> Header {
        Header { witnesses: self.witnesses.header(), ..self.header.clone() }
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let rows: usize = [&self.reference, &self.window].into_iter().flatten().map(RowBlock::size_bytes).sum();
        let map = |map: &Map| map.whitening.size_bytes() + map.dictionary.atoms().size_bytes();
        rows + self.witnesses.size_bytes() + self.map.as_ref().map_or(0, map)
    }

    /// Whether the window is out of the ordinary.
    fn judge(&mut self, bank: &Bank) -> Result<bool> {
        let Some(window) = &self.window else { return Ok(false) };
        let [member] = &bank.members[..] else {
            // Which bandwidth stays is not known: the rows are kept to be judged by it.
            if self.reference.is_none() {
                self.reference.clone_from(&self.window);
            }
            return Ok(false);
        };
        let learner = &member.learner;
        if learner.sums().is_whitened() {
            self.map = None;
        } else if !self.map.as_ref().is_some_and(|map| map.is_of(learner)) {
            self.map = Some(Map::new(learner.kernel(), learner.dictionary())?);
        }
        let whitening = self.map.as_ref().map(|map| &map.whitening).or(learner.sums().whitening());
        let shares = |rows: Rows| -> Result<Shares> {
            Ok(Shares::of(&left_out(learner.kernel(), learner.dictionary(), whitening, rows)?))
        };
        let now = shares(window.rows())?;
        self.header.recent = Some(now);
        let usual = match (self.header.usual, self.reference.take()) {
            (Some(usual), _) => usual,
            (None, Some(rows)) => {
                let usual = shares(rows.rows())?;
                *self.header.usual.insert(usual)
            }
            (None, None) => {
                self.header.usual = Some(now);
                return Ok(false);
            }
        };
        self.header.windows = self.header.windows.saturating_add(1);
        Ok(now.above(&usual, self.header.windows))
    }

    /// Adds rows to a file; the header belongs in the document.
    pub fn put(&self, file: &mut Container) -> Result<()> {
        let [reference, window] = [&self.reference, &self.window].map(|rows| rows.as_ref().map(RowBlock::rows));
        for (name, rows) in [("reference", reference), ("window", window), ("witness", self.witnesses.rows())] {
            if let Some(rows) = rows.filter(|rows| !rows.is_empty()) {
                file.put_rows(&format!("{name}_row"), rows)?;
            }
        }
        Ok(())
    }

    /// Takes out what [`put`](Self::put) added.
    pub fn from_file(file: &mut Container, header: Header, features: usize) -> Result<Self> {
        let spreads = [header.usual, header.recent];
        let finite = |s: Shares| s.count > 1.0 && s.mean.is_finite() && s.variance.is_finite();
        if !spreads.into_iter().flatten().all(finite) {
            return Err(file.malformed("shares of energy that no rows can have"));
        }
        let mut rows = |name: &str| -> Result<Option<RowBlock>> {
            if !file.has(&format!("{name}_rows")) && !file.has(&format!("{name}_row_offsets")) {
                return Ok(None);
            }
            file.take_rows(&format!("{name}_row"), features).map(Some)
        };
        let (reference, window, witnesses) = (rows("reference")?, rows("window")?, rows("witness")?);
        for (name, rows, most) in [("reference", &reference, WINDOW), ("window", &window, WINDOW - 1)] {
            if let Some(rows) = rows.as_ref().filter(|rows| rows.len() > most) {
                return Err(file.malformed(format!("{name}: {} rows, expected at most {most}", rows.len())));
            }
        }
        let witnesses = Witnesses::from_parts(witnesses, header.witnesses)
            .ok_or_else(|| file.malformed("witnesses that no stream can have left"))?;
        Ok(Self { reference, window, witnesses, header, map: None })
    }
}

impl Shares {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Self { count, mean, variance }
    }

    /// Whether the mean is above another's, beyond what chance does in any of so many comparisons. Comparison k may fail
    /// with a chance of α/(k(k+1)), which add up to α; a normal variable passes √(2 ln 1/p) with less than p.
    fn above(&self, other: &Self, comparisons: u64) -> bool {
        let k = comparisons as f64;
        let deviations = (2.0 * (k * (k + 1.0) / FALSE_ALARMS).ln()).sqrt();
        let spread = (self.variance / self.count + other.variance / other.count).sqrt();
        self.mean - other.mean > (deviations * spread).max(LEAST_RISE)
    }
}

/// Shares of the energy of rows that atoms leave out. Without a map to features one is made.
fn left_out(kernel: &Kernel, dictionary: &Dictionary, map: Option<&Whitening>, rows: Rows) -> Result<Vec<f64>> {
    let made = if map.is_none() { Some(Whitening::new(kernel, dictionary, None)?) } else { None };
    let whitening = map.or(made.as_ref()).ok_or(Error::Internal("features without a map to them"))?;
    let mut features = Mat::zeros(rows.len(), dictionary.len());
    whitening.features(kernel, rows, &Centres::new(dictionary.atoms().rows()), features.as_mut());
    let mut captured = vec![0.0; rows.len()];
    for column in features.col_iter() {
        captured.iter_mut().zip(column.iter()).for_each(|(sum, v)| *sum += v * v);
    }
    Ok((0..rows.len()).map(|i| left_out_share(kernel, rows, i, captured[i])).collect())
}

fn left_out_share(kernel: &Kernel, rows: Rows, i: usize, captured: f64) -> f64 {
    let energy = kernel.diagonal(rows.row(i));
    if energy > 0.0 { (1.0 - captured / energy).clamp(0.0, 1.0) } else { 0.0 }
}

/// Rows from one on, `step` apart.
fn every(rows: Rows, first: usize, step: usize) -> RowBlock {
    RowBlock::gather(rows, &(first..rows.len()).step_by(step).collect::<Vec<_>>())
}

/// What new atoms are chosen and judged by.
struct Renewal<'a> {
    window: Rows<'a>,
    /// Rows of the whole stream before the window.
    sample: Option<Sample<'a>>,
    /// How many times a row of the window each of these stands for.
    spacing: f64,
    /// Rows learnt.
    learnt: u64,
    /// Changes so far.
    changes: u64,
}

impl Renewal<'_> {
    /// The learner on new atoms, if they are worth it.
    fn renewed(&self, member: &Member, options: &StreamingOptions) -> Result<Option<(RecursiveRidge, Change)>> {
        let Self { window, sample, learnt, changes, .. } = *self;
        let (learner, kernel) = (&member.learner, *member.learner.kernel());
        let old = learner.dictionary();
        let (candidates, judges) = (every(window, 0, 2), every(window, 1, 2));
        let mut union = old.atoms().clone();
        union.extend(candidates.rows());
        if let Some(sample) = sample {
            // The odd ones judge.
            let step = (sample.rows.len() / candidates.len()).max(1).next_multiple_of(2);
            union.extend(every(sample.rows, 0, step).rows());
        }
        // Other random numbers at every change.
        let seed = options.seed.wrapping_add(changes).wrapping_add(1);
        let chosen = choose_atoms(&kernel, union.rows(), options.budget, seed, old.leverage_ridge())?;
        let shares = |dictionary: &Dictionary, rows: &RowBlock| {
            let own = learner.sums().whitening().filter(|_| dictionary == old);
            left_out(&kernel, dictionary, own, rows.rows())
        };
        let mean = |dictionary: &Dictionary| shares(dictionary, &judges).map(|shares| Shares::of(&shares).mean);
        let (before, after) = (mean(old)?, mean(&chosen)?);
        if after > WORTH * before {
            return Ok(None);
        }
        if let Some(sample) = sample {
            let (odd, weights) = (every(sample.rows, 1, 2), || sample.weights.iter().skip(1).step_by(2));
            let total = |dictionary: &Dictionary, of_window: f64| -> Result<f64> {
                let of_sample: f64 = shares(dictionary, &odd)?.iter().zip(weights()).map(|(share, w)| share * w).sum();
                Ok(2.0 * self.spacing * of_sample + window.len() as f64 * of_window)
            };
            if total(&chosen, after)? > total(old, before)? {
                return Ok(None);
            }
        }
        // Numbers of rows: of old atoms as they were, of new ones about where the window ended.
        let number = |&place: &u64| old.indices().get(place as usize).copied().unwrap_or(learnt);
        let numbers = chosen.indices().iter().map(number).collect();
        let new_atoms = chosen.indices().iter().filter(|&&place| place as usize >= old.len()).count();
        let to = Dictionary::new(chosen.atoms().clone(), chosen.weights().to_vec(), numbers, old.leverage_ridge())?;
        let fixed = SolverOptions { ridge: Ridge::Fixed(learner.ridge()), intercept: true };
        let held = learner.sums().solve(&kernel, old, &fixed)?;
        // Where nothing is known, the function varies as much as the targets do; a ridge is the noise's variance over that.
        let guard = Guard { sample, prior: learner.sums().unexplained(&held.residuals) };
        let held = held.captured;
        let sums = move_sums(&kernel, learner.sums(), old, &to, guard, learner.sums().is_precise())?;
        let kept = sums.solve(&kernel, &to, &fixed)?.captured;
        let change = Change {
            rows: learnt,
            new_atoms,
            lost: (1.0 - kept / held.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0),
            captured_before: 1.0 - before,
            captured_after: 1.0 - after,
        };
        let renewed = RecursiveRidge::from_sums(kernel, to, sums, learner.ridge())?.with_loss(learner.loss());
        Ok(Some((renewed, change)))
    }
}
