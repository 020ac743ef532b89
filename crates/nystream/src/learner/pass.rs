//! A streaming learner over a source: records in, a trained model out, one reading.
//!
//! The first records (lots of 4,096, until they fill the learner's head) are read before any is learnt: columns, categories,
//! labels and scaling are settled on them and stay. Targets of those rows are not looked at ahead of their turn. A category
//! or a label that first appears later is an error that names its row; name categories beforehand where that can happen. A
//! feature of sparse rows that first appears later makes the rows wider from there on: atoms have zeros there, and it is not
//! scaled, as one that lies below the width of the first rows and never occurs in them is not.

use std::collections::VecDeque;

use faer::Mat;

use super::ahead::read_ahead;
use super::fingerprint::Fingerprint;
use super::recent::RecentErrors;
use super::streaming::{CODE, StreamingOptions, StreamingRidge, Unfit, What, is_small};
use super::trail::Trail;
use crate::error::{Error, Result, input_error};
use crate::fit::{Observer, TargetCodes, scores_to_calibration};
use crate::model::{Summary, TrainedModel};
use crate::preprocess::{Batch, Binding, CodedBlock, Preprocessor, Scan, TableOptions, Task};
use crate::rows::Rows;
use crate::solver::Ridge;
use crate::source::{RecordBlock, RecordSource};

/// Records read at a time, and lots of which the first records are made.
pub(super) const READ: usize = 4096;
/// One-step-ahead outputs of the last rows, kept to calibrate probabilities.
const CALIBRATE: usize = 4096;

/// Hears of the pass after every block, with the number of its records and how far the source is.
pub type AfterBlock<'a> = &'a mut dyn FnMut(&StreamPass, u64, Option<f64>) -> Result<()>;

/// A learner that follows a source.
#[derive(Debug)]
pub struct StreamPass {
    pub(super) preprocessor: Preprocessor,
    /// What the preprocessor was asked for.
    pub(super) table: TableOptions,
    pub(super) codes: TargetCodes,
    pub(super) learner: StreamingRidge,
    /// Records learnt or left out.
    pub(super) records: u64,
    /// Records read before the first was learnt, which may be more, and their fingerprint.
    pub(super) head: (u64, String),
    /// Fingerprint of all records read; none if it is not known of those before a checkpoint.
    pub(super) trail: Option<Trail>,
    pub(super) recent: Recent,
    /// Of regression: what standard deviations are fitted to.
    pub(super) errors: RecentErrors,
    /// Features that the head had; sparse rows may bring more.
    pub(super) head_features: usize,
    /// Passes that were merged into this one, and itself.
    pub(super) streams: u64,
    /// The source, as messages name it.
    origin: String,
    binding: Option<Binding>,
    pub(super) block: RecordBlock,
    batch: Batch,
    coded: Mat<f64>,
    outputs: Vec<f64>,
}

/// Class numbers of rows whose outputs are still to come, and outputs of the last rows with theirs.
#[derive(Debug, Default)]
pub(super) struct Recent {
    pub awaited: VecDeque<f64>,
    pub outputs: Vec<f64>,
    pub classes: Vec<f64>,
}

impl StreamPass {
    /// Reads the first records and learns them.
    pub fn begin(
        source: &mut dyn RecordSource,
        table: TableOptions,
        options: StreamingOptions,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        Self::begin_with(source, table, options, observer, &mut |_, _, _| Ok(()))
    }

    /// [`begin`](Self::begin) that calls `then` after every block that was learnt, with the number of its records. Blocks are
    /// as the source was cut (see [`Stops`](crate::source::Stops)); what is learnt does not depend on it.
    pub fn begin_with(
        source: &mut dyn RecordSource,
        table: TableOptions,
        options: StreamingOptions,
        observer: &mut dyn Observer,
        then: AfterBlock,
    ) -> Result<Self> {
        observer.stage("first rows: columns, scaling");
        let mut block = RecordBlock::default();
        let mut more = source.read(&mut block, READ)?;
        // Some sources know their columns only after the first block.
        let mut scan = Scan::new(source.schema(), source.origin(), table.clone())?;
        let mut fingerprint = Fingerprint::new(source.schema());
        let mut trail = Trail::default();
        let (mut head, mut records, mut rows) = (Vec::new(), 0u64, 0);
        while more {
            fingerprint.add(&block);
            trail.add(&block);
            let mut coded = CodedBlock::default();
            scan.encode(&block, &mut coded)?;
            records += block.len() as u64;
            rows += coded.len();
            observer.rows(block.len() as u64, source.progress());
            head.push((coded, trail));
            // What the first rows settle must not depend on how the source is cut.
            let beyond = (records % READ as u64) as usize;
            if beyond == 0 && rows >= options.head_rows() {
                break;
            }
            more = source.read(&mut block, READ - beyond)?;
        }
        let preprocessor = scan.finish()?;
        let codes = TargetCodes::of(&preprocessor);
        let learner = StreamingRidge::new(options, codes.outputs())?;
        let begun = (records, fingerprint.digits());
        let mut pass = Self::from_parts((preprocessor, table), learner, 0, begun, Recent::default());
        pass.origin = source.origin().to_owned();
        head.iter().try_for_each(|(coded, _)| pass.refuse_large_targets(coded))?;
        observer.stage("one pass: predict, then learn");
        for (coded, trail) in &head {
            pass.preprocessor.finish_coded(coded, &mut pass.batch)?;
            pass.learn()?;
            let records = pass.batch.records() as u64;
            pass.records += records;
            pass.trail = Some(*trail);
            then(&pass, records, source.progress())?;
        }
        Ok(pass)
    }

    pub(super) fn from_parts(
        (preprocessor, table): (Preprocessor, TableOptions),
        learner: StreamingRidge,
        records: u64,
        head: (u64, String),
        recent: Recent,
    ) -> Self {
        Self {
            codes: TargetCodes::of(&preprocessor),
            head_features: preprocessor.feature_count(),
            streams: 1,
            preprocessor,
            table,
            learner,
            records,
            head,
            trail: Some(Trail::default()),
            recent,
            errors: RecentErrors::default(),
            origin: String::new(),
            binding: None,
            block: RecordBlock::default(),
            batch: Batch::default(),
            coded: Mat::new(),
            outputs: Vec::new(),
        }
    }

    /// Reads a block and learns it. Returns the number of records read; 0 when there are no more.
    pub fn advance(&mut self, source: &mut dyn RecordSource) -> Result<u64> {
        if !source.read(&mut self.block, READ)? {
            return Ok(0);
        }
        self.bind(source)?;
        self.learn_block()?;
        Ok(self.block.len() as u64)
    }

    /// Matches the columns of the source, which some know only after a block; once.
    pub(super) fn bind(&mut self, source: &dyn RecordSource) -> Result<()> {
        if self.binding.is_none() {
            self.binding = Some(self.preprocessor.bind(source.schema(), source.origin())?);
            self.origin = source.origin().to_owned();
        }
        Ok(())
    }

    /// Learns the block that was read.
    pub(super) fn learn_block(&mut self) -> Result<()> {
        self.widen()?;
        let Some(binding) = &mut self.binding else { return Err(Error::Internal("a block before its columns")) };
        self.preprocessor.transform(binding, &self.block, &mut self.batch, true)?;
        self.preprocessor.weigh(binding, &self.block, &mut self.batch)?;
        self.learn()?;
        self.records += self.block.len() as u64;
        if let Some(trail) = &mut self.trail {
            trail.add(&self.block);
        }
        Ok(())
    }

    /// Learns what waits.
    pub(super) fn flush(&mut self) -> Result<()> {
        let width = self.codes.outputs();
        self.outputs.clear();
        self.learner.flush(&mut self.outputs)?;
        match self.codes {
            TargetCodes::Classes { .. } => self.recent.take(&self.outputs, width),
            TargetCodes::Numbers { .. } => self.errors.take(&self.outputs, width),
        }
        Ok(())
    }

    /// Reads and learns the rest of the source, reading ahead on another thread. After every block `then` is called with
    /// the number of its records and how far the source is.
    pub fn advance_to_end(&mut self, source: &mut dyn RecordSource, then: AfterBlock) -> Result<()> {
        // Some sources know their columns only after the first block.
        let records = self.advance(source)?;
        if records == 0 {
            return Ok(());
        }
        then(self, records, source.progress())?;
        read_ahead(source, READ, &mut |block, progress| {
            std::mem::swap(&mut self.block, block);
            self.learn_block()?;
            then(self, self.block.len() as u64, progress)
        })
    }

    fn learn(&mut self) -> Result<()> {
        self.codes.encode(&self.batch.targets, &mut self.coded);
        let width = self.coded.ncols();
        let codes: Vec<f64> = (0..self.coded.nrows() * width).map(|i| self.coded[(i / width, i % width)]).collect();
        self.outputs.clear();
        let rows: Rows = self.batch.rows.rows();
        let weights = self.preprocessor.weight_name().map(|_| &self.batch.weights[..]);
        if let Err(error) = self.learner.learn(rows, &codes, weights, &mut self.outputs) {
            // The learner looks at all numbers before it learns any, but does not know where they came from.
            return Err(self.learner.find_unfit(rows, &codes, weights)?.map_or(error, |unfit| self.refusal(unfit)));
        }
        match self.codes {
            TargetCodes::Classes { .. } => {
                self.recent.awaited.extend(&self.batch.targets);
                self.recent.take(&self.outputs, width);
            }
            TargetCodes::Numbers { .. } => {
                self.errors.push(rows, &codes);
                self.errors.take(&self.outputs, width);
            }
        }
        Ok(())
    }

    /// Refuses targets of the first rows that would be too large even if they were counted from another mean: all are
    /// counted from the mean of these rows, and one such target makes the others seem as large.
    fn refuse_large_targets(&self, coded: &CodedBlock) -> Result<()> {
        let names = self.preprocessor.target_names();
        let numbers = matches!(self.codes, TargetCodes::Numbers { .. });
        match coded.targets.iter().position(|y| numbers && !is_small(*y)) {
            None => Ok(()),
            Some(i) => {
                let (row, column) = (coded.source_row(i / names.len()), &names[i % names.len()]);
                Err(input_error(&self.origin, row, Some(column), format!("{:e}", coded.targets[i]), CODE))
            }
        }
    }

    /// A number of the batch that is too large to be learnt, by its row and column.
    fn refusal(&self, unfit: Unfit) -> Error {
        let preprocessor = &self.preprocessor;
        let (column, found) = match unfit.what {
            What::Code(output) => {
                let names = preprocessor.target_names();
                let target = self.batch.targets.get(unfit.row * names.len() + output);
                (names.get(output).cloned(), format!("{:e}", target.unwrap_or(&unfit.found)))
            }
            What::Weight => (preprocessor.weight_name().map(str::to_owned), format!("{:e}", unfit.found)),
            What::Feature(feature) => {
                let name = Some(preprocessor.feature_name(feature));
                match preprocessor.scale().get(feature) {
                    None => (name, format!("{:e}", unfit.found)),
                    Some(scale) => {
                        let shift = preprocessor.shift().get(feature).copied().unwrap_or(0.0);
                        let read = unfit.found * scale + shift;
                        (name, format!("about {read:.2e}, or {:.2e} when scaled by the first rows", unfit.found))
                    }
                }
            }
        };
        let row = self.batch.source_row(unfit.row);
        input_error(&self.origin, row, column.as_deref(), found, unfit.expected)
    }

    /// The learner, for its score and choices.
    pub fn learner(&self) -> &StreamingRidge {
        &self.learner
    }

    /// What maps records to rows.
    pub fn preprocessor(&self) -> &Preprocessor {
        &self.preprocessor
    }

    /// Features of sparse rows that first came after the head, where scaling was settled: they are not scaled.
    pub fn late_features(&self) -> usize {
        self.preprocessor.feature_count() - self.head_features
    }

    /// Bytes held by the learner, and by the last rows with their errors.
    pub fn size_bytes(&self) -> usize {
        self.learner.size_bytes() + self.errors.size_bytes()
    }

    /// Records learnt so far, or left out.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Learns what waits, and makes the model.
    pub fn finish(self) -> Result<TrainedModel> {
        Ok(self.finish_with_learner()?.0)
    }

    /// [`finish`](Self::finish), and the learner with all rows learnt, for its status.
    pub fn finish_with_learner(mut self) -> Result<(TrainedModel, StreamingRidge)> {
        let width = self.codes.outputs();
        self.flush()?;
        let Some(fit) = self.learner.solve()? else {
            let rows = self.learner.rows();
            let (found, expected) = match rows {
                0..8 => (format!("{rows} rows"), "at least 8 rows"),
                _ => (
                    format!("{rows} rows of which all but the last ones have one target"),
                    "targets that differ among the first rows, or never",
                ),
            };
            return Err(Error::InvalidParam { name: "rows", found, expected });
        };
        let mut regression = fit.model;
        let calibration = match &self.codes {
            TargetCodes::Numbers { shift } => {
                if let Some((rows, errors)) = self.errors.last(width) {
                    regression.fit_spread(rows, errors)?;
                }
                regression.shift_outputs(shift);
                None
            }
            // Outputs made before their rows were learnt are honest scores.
            TargetCodes::Classes { count } => {
                Some(scores_to_calibration(&self.recent.outputs, &self.recent.classes, width, *count)?)
            }
        };
        let options = self.learner.options();
        let summary = Summary {
            method: "stream".to_owned(),
            dictionary: self.learner.dictionary_method().map(|method| method.to_string()),
            rows: self.learner.rows(),
            budget: Some(options.budget),
            bandwidth_by: regression.kernel().bandwidth().map(|_| options.bandwidth.word().to_owned()),
            ridge: fit.choice.ridge,
            ridge_by_gcv: options.ridge == Ridge::Auto,
            leverage_ridge: Some(fit.leverage_ridge),
            dictionary_leverage_ridge: None,
            jitter: fit.jitter,
            effective_dim: fit.choice.degrees_of_freedom,
            captured: Some(fit.captured),
            estimated_rmse: fit.choice.scores.iter().map(|score| score.sqrt()).collect(),
            seed: options.seed,
        };
        let model = TrainedModel::new(self.preprocessor, regression, calibration, summary)?;
        Ok((model, self.learner))
    }

    /// The error of the predictions made so far: the share of mistakes if targets are classes, else the mean square.
    pub fn error(&self) -> f64 {
        let score = self.learner.score();
        if self.is_classification() { score.mistake_rate() } else { score.mse() }
    }

    /// Whether targets are classes.
    pub fn is_classification(&self) -> bool {
        matches!(self.preprocessor.task(), Task::Classification { .. })
    }
}

impl Recent {
    /// Takes outputs of the rows that have waited longest.
    fn take(&mut self, outputs: &[f64], width: usize) {
        for outputs in outputs.chunks_exact(width) {
            let Some(class) = self.awaited.pop_front() else { return };
            self.classes.push(class);
            self.outputs.extend_from_slice(outputs);
        }
        self.shorten(width);
    }

    /// Keeps the last ones.
    pub(super) fn shorten(&mut self, width: usize) {
        let surplus = self.classes.len().saturating_sub(CALIBRATE);
        self.classes.drain(..surplus);
        self.outputs.drain(..surplus * width);
    }
}

/// Learns a whole source in one reading.
pub fn stream(
    source: &mut dyn RecordSource,
    table: TableOptions,
    options: StreamingOptions,
    observer: &mut dyn Observer,
) -> Result<TrainedModel> {
    let mut pass = StreamPass::begin(source, table, options, observer)?;
    pass.advance_to_end(source, &mut |_, records, progress| {
        observer.rows(records, progress);
        Ok(())
    })?;
    pass.finish()
}
