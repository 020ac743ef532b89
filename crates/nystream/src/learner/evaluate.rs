//! Test-then-train: every row is predicted before it is learnt, and the errors are counted.

use std::time::{Duration, Instant};

use faer::Mat;

use super::online::{LearnerSettings, POINTS, Run, Targets, Tuning, TuningPart, run, tune};
use super::streaming::{StreamingOptions, StreamingRidge};
use crate::error::{Error, Result};
use crate::fit::{Bandwidth, FirstPass, KernelFamily, TargetCodes};
use crate::kernel::Kernel;
use crate::preprocess::standardise_by_first;
use crate::random::Generator;
use crate::rows::{RowBlock, Rows};
use crate::solver::{BANDWIDTH_SAMPLE, alignment_bandwidth, median_bandwidth};

/// What came of one run of the streaming ridge over the rows.
#[derive(Debug)]
pub struct Evaluation {
    /// The learner at the end.
    pub learner: StreamingRidge,
    /// Rows so far, and the error up to there and over the last rows: mistakes if targets are classes, else squared errors.
    pub curve: Vec<(u64, f64, f64)>,
    /// Time that learning took.
    pub time: Duration,
}

/// Rows in memory with their codes, in any order wanted.
#[derive(Debug)]
pub struct Shuffled {
    /// In random order.
    rows: RowBlock,
    codes: Vec<f64>,
    /// How much each row counts, if they do not all count the same.
    weights: Option<Vec<f64>>,
    outputs: usize,
    classes: bool,
    /// Places of the rows in the order of the source.
    order: Vec<usize>,
    /// Rows that each order is standardised by, and which columns are numbers.
    first_rows: Option<(usize, Option<Vec<bool>>)>,
}

impl Shuffled {
    /// Takes the rows of a first pass that sampled all of them.
    pub fn new(first: FirstPass) -> Self {
        let codes = TargetCodes::of(&first.preprocessor);
        let mut coded = Mat::new();
        codes.encode(&first.sample.targets, &mut coded);
        let outputs = codes.outputs();
        let mut order: Vec<usize> = (0..first.sample.len()).collect();
        order.sort_by_key(|&i| first.sample_rows[i]);
        let codes = (0..coded.nrows() * outputs).map(|i| coded[(i / outputs, i % outputs)]).collect();
        let classes = !first.preprocessor.labels().is_empty();
        let weights = first.preprocessor.weight_name().map(|_| first.sample.weights);
        Self { rows: first.sample.rows, codes, weights, outputs, classes, order, first_rows: None }
    }

    /// The same; every order is standardised by its first `count` rows (see [`standardise_by_first`]). `first` must not
    /// have been scaled.
    pub fn standardised_by_first(first: FirstPass, count: usize) -> Self {
        let numbers = first.preprocessor.number_features();
        Self { first_rows: Some((count, numbers)), ..Self::new(first) }
    }

    /// Rows in an order, as learners see them.
    fn seen(&self, order: &[usize]) -> RowBlock {
        let mut rows = RowBlock::gather(self.rows.rows(), order);
        if let Some((count, numbers)) = &self.first_rows {
            standardise_by_first(&mut rows, *count, numbers.as_deref());
        }
        rows
    }

    fn codes_of(&self, order: &[usize]) -> Vec<f64> {
        let width = self.outputs;
        order.iter().flat_map(|&i| &self.codes[i * width..(i + 1) * width]).copied().collect()
    }

    /// Learners of one row at a time count all rows the same.
    fn refuse_weights(&self) -> Result<()> {
        if self.weights.is_none() {
            return Ok(());
        }
        let expected = "none, or the streaming ridge";
        Err(Error::InvalidParam { name: "weights", found: "a column of weights".to_owned(), expected })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether targets are classes.
    pub fn classes(&self) -> bool {
        self.classes
    }

    /// Columns of a row.
    pub fn features(&self) -> usize {
        self.rows.cols()
    }

    /// What targets are, for learners of one output; more than two classes or several targets are refused.
    pub fn targets(&self) -> Result<Targets> {
        match (self.outputs, self.classes) {
            (1, true) => Ok(Targets::Classes),
            (1, false) => Ok(Targets::Numbers),
            (outputs, classes) => {
                let what = if classes { "classes" } else { "targets" };
                let expected = "two classes or one number (streaming-ridge takes more)";
                Err(Error::InvalidParam { name: "target", found: format!("{outputs} {what}"), expected })
            }
        }
    }

    /// Largest minus smallest code.
    pub fn range(&self) -> f64 {
        let ends =
            self.codes.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), c| (low.min(*c), high.max(*c)));
        ends.1 - ends.0
    }

    /// The kernel of a family, with its bandwidth from a random sample of 1,000 rows: for learners whose kernel stays as
    /// it is, so that `auto` means centred alignment, as in SkeGD (ICML 2019), section 6.1.
    pub fn kernel(&self, family: KernelFamily, bandwidth: Bandwidth) -> Result<Kernel> {
        let unit = family.with_bandwidth(1.0)?;
        if !family.has_bandwidth() {
            return Ok(unit);
        }
        let sample: Vec<usize> = (0..self.len().min(BANDWIDTH_SAMPLE)).collect();
        let (rows, codes) = (self.seen(&sample), self.codes_of(&sample));
        let rows = rows.rows();
        family.with_bandwidth(match bandwidth {
            Bandwidth::Fixed(bandwidth) => bandwidth,
            Bandwidth::Median => median_bandwidth(rows),
            Bandwidth::Auto | Bandwidth::Alignment => alignment_bandwidth(&unit, rows, &codes, self.outputs)?.0,
        })
    }

    /// The first `most` rows of an order, shuffled by a seed or that of the source, as their places.
    fn ordered(&self, shuffle: Option<u64>, most: usize) -> Vec<usize> {
        let mut order = self.order.clone();
        if let Some(seed) = shuffle {
            Generator::new(seed).shuffle(&mut order);
        }
        order.truncate(most);
        order
    }

    /// Runs a learner of one row at a time over the first `most` rows: shuffled by a seed, or in the order of the source.
    pub fn run(&self, name: &str, settings: &LearnerSettings, shuffle: Option<u64>, most: usize) -> Result<Run> {
        self.targets()?;
        self.refuse_weights()?;
        let order = self.ordered(shuffle, most);
        if self.first_rows.is_none() {
            return run(name, settings, self.rows.rows(), &self.codes, Some(&order));
        }
        run(name, settings, self.seen(&order).rows(), &self.codes_of(&order), None)
    }

    /// Tunes a learner on a part of the rows (see [`tune`]).
    pub fn tune(&self, name: &str, settings: &LearnerSettings, part: TuningPart) -> Result<Tuning> {
        self.targets()?;
        self.refuse_weights()?;
        if self.first_rows.is_none() {
            return tune(name, settings, self.rows.rows(), &self.codes, part);
        }
        // They stand in random order.
        let all: Vec<usize> = (0..self.len()).collect();
        tune(name, settings, self.seen(&all).rows(), &self.codes, part)
    }

    /// Runs the streaming ridge over the rows: shuffled by a seed, or in the order of the source.
    pub fn evaluate(&self, options: StreamingOptions, shuffle: Option<u64>) -> Result<Evaluation> {
        self.evaluate_first(options, shuffle, usize::MAX)
    }

    /// [`evaluate`](Self::evaluate) over the first rows of that order only.
    pub fn evaluate_first(&self, options: StreamingOptions, shuffle: Option<u64>, most: usize) -> Result<Evaluation> {
        let order = self.ordered(shuffle, most);
        let weights: Option<Vec<f64>> =
            self.weights.as_ref().map(|weights| order.iter().map(|&i| weights[i]).collect());
        let (rows, codes) = (self.seen(&order), self.codes_of(&order));
        evaluate_weighted(options, rows.rows(), &codes, weights.as_deref(), self.outputs, self.classes)
    }
}

/// Runs the streaming ridge over rows with their codes (row-major).
pub fn evaluate_rows(
    options: StreamingOptions,
    rows: Rows,
    codes: &[f64],
    outputs: usize,
    classes: bool,
) -> Result<Evaluation> {
    evaluate_weighted(options, rows, codes, None, outputs, classes)
}

fn evaluate_weighted(
    options: StreamingOptions,
    rows: Rows,
    codes: &[f64],
    weights: Option<&[f64]>,
    outputs: usize,
    classes: bool,
) -> Result<Evaluation> {
    let mut learner = StreamingRidge::new(options, outputs)?;
    let mut curve: Vec<(u64, f64, f64)> = Vec::new();
    let mut unused = Vec::new();
    let step = rows.len().div_ceil(POINTS).max(1);
    let started = Instant::now();
    for start in (0..rows.len()).step_by(step) {
        let end = (start + step).min(rows.len());
        let weights = weights.map(|weights| &weights[start..end]);
        learner.learn(rows.slice(start, end), &codes[start * outputs..end * outputs], weights, &mut unused)?;
        if end == rows.len() {
            learner.flush(&mut unused)?;
        }
        unused.clear();
        if learner.score().rows() > curve.last().map_or(0, |(rows, ..)| *rows) {
            curve.push(learner.score().point(classes));
        }
    }
    Ok(Evaluation { learner, curve, time: started.elapsed() })
}
