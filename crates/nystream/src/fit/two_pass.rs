//! Nyström ridge regression in two passes over a source of any size.
//!
//! First pass: columns, labels, scaling, a seeded sample. Between them: bandwidth and dictionary,
//! from the sample (`squeak`: from all rows, in a reading of its own). Second pass: the sums of [`NystromSums`].
//! Memory: O(m² + md) and the sample.

use faer::Mat;

use super::choose::{Choice, choose};
use super::codes::TargetCodes;
use super::observe::Observer;
use super::options::FitOptions;
use super::reservoir::Reservoir;
use super::sketching::{Feed, Watch};
use super::summing::Summing;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::model::{Calibration, KernelModel, OutputLimits, Summary, TrainedModel, class_scores};
use crate::preprocess::{Batch, Binding, CodedBlock, Preprocessor, Scale, Scan};
use crate::random::Generator;
use crate::sketch::{
    Dictionary, DictionaryMethod, DictionaryOptions, SequentialDictionary, build_dictionary, sequential_with_budget,
    starting_leverage_ridge,
};
use crate::solver::{NystromSums, Ridge, fit_calibration, left_out_outputs};
use crate::source::{RecordBlock, RecordSource};

/// Records read at a time in the first pass.
const READ: usize = 4096;
/// Rows of the sample whose left-out scores calibrate probabilities.
const CALIBRATE: usize = 4096;
/// Stream of the seed that draws the sample.
const SAMPLE_STREAM: u64 = 101;

/// What the first pass learnt.
#[derive(Debug)]
pub struct FirstPass {
    /// Maps records to rows from now on.
    pub preprocessor: Preprocessor,
    /// A uniform sample of the rows, preprocessed, in random order.
    pub sample: Batch,
    /// Numbers of the sampled rows, from 0.
    pub sample_rows: Vec<u64>,
}

/// Reads the source once.
pub fn first_pass(
    source: &mut dyn RecordSource,
    options: &FitOptions,
    observer: &mut dyn Observer,
) -> Result<FirstPass> {
    if options.table.scale == Scale::Running {
        let (found, expected) = ("running".to_owned(), "none, minmax or standard where rows are read more than once");
        return Err(Error::InvalidParam { name: "scale", found, expected });
    }
    observer.stage("first pass: columns, scaling, sample");
    let mut block = RecordBlock::default();
    let mut coded = CodedBlock::default();
    let mut more = source.read(&mut block, READ)?;
    // Some sources know their columns only after the first block.
    let mut scan = Scan::new(source.schema(), source.origin(), options.table.clone())?;
    let mut reservoir = Reservoir::new(options.sample_rows(), Generator::with_stream(options.seed, SAMPLE_STREAM));
    while more {
        scan.encode(&block, &mut coded)?;
        reservoir.offer(&coded);
        observer.rows(block.len() as u64, source.progress());
        more = source.read(&mut block, READ)?;
    }
    let preprocessor = scan.finish()?;
    let (coded, sample_rows) = reservoir.finish();
    let mut sample = Batch::default();
    preprocessor.finish_coded(&coded, &mut sample)?;
    Ok(FirstPass { preprocessor, sample, sample_rows })
}

/// Rows of a kernel block with this many atoms: about 8 MB.
fn block_rows(atoms: usize) -> usize {
    ((1 << 20) / atoms.max(1)).clamp(64, 4096)
}

/// The second pass, a block at a time: an answer is there at any time.
#[derive(Debug)]
pub struct SecondPass<'a> {
    preprocessor: &'a Preprocessor,
    codes: &'a TargetCodes,
    summing: Summing,
    limits: OutputLimits,
    binding: Option<Binding>,
    step: usize,
    records: RecordBlock,
    batch: Batch,
    coded: Mat<f64>,
}

impl<'a> SecondPass<'a> {
    /// Nothing read yet. With `precise`, features are summed instead of kernels (see [`NystromSums::whitened`]).
    pub fn new(
        preprocessor: &'a Preprocessor,
        codes: &'a TargetCodes,
        kernel: Kernel,
        dictionary: &Dictionary,
        precise: bool,
    ) -> Result<Self> {
        Ok(Self {
            preprocessor,
            codes,
            summing: Summing::new(kernel, dictionary, codes.outputs(), precise)?,
            limits: OutputLimits::of(&kernel),
            binding: None,
            step: block_rows(dictionary.len()),
            records: RecordBlock::default(),
            batch: Batch::default(),
            coded: Mat::new(),
        })
    }

    /// Reads a block and adds it to the sums. Returns the number of records read; 0 when there are no more.
    pub fn advance(&mut self, source: &mut dyn RecordSource) -> Result<u64> {
        if !source.read(&mut self.records, self.step)? {
            return Ok(0);
        }
        let binding = match &mut self.binding {
            Some(binding) => binding,
            None => self.binding.insert(self.preprocessor.bind(source.schema(), source.origin())?),
        };
        self.preprocessor.transform(binding, &self.records, &mut self.batch, true)?;
        self.codes.encode(&self.batch.targets, &mut self.coded);
        self.summing.add(self.batch.rows.rows(), self.coded.as_ref());
        self.limits.take_all(self.coded.as_ref());
        Ok(self.records.len() as u64)
    }

    /// The sums so far.
    pub fn sums(&mut self) -> &NystromSums {
        self.summing.sums()
    }

    /// What outputs of the model are to be kept within, by the rows so far.
    pub fn limits(&self) -> &OutputLimits {
        &self.limits
    }
}

/// Fits a model in two passes.
pub fn two_pass(
    source: &mut dyn RecordSource,
    options: &FitOptions,
    observer: &mut dyn Observer,
) -> Result<TrainedModel> {
    options.validated()?;
    options.refuse_weights()?;
    if !source.rereadable() {
        return Err(Error::InvalidParam {
            name: "method",
            found: format!("two-pass on {}", source.origin()),
            expected: "a source that can be read twice, such as a file",
        });
    }
    if options.dictionary == Some(DictionaryMethod::RpCholesky) && options.leverage_ridge.is_some() {
        return Err(Error::InvalidParam {
            name: "leverage-ridge",
            found: "one for the dictionary rpcholesky".to_owned(),
            expected: "none, or another dictionary, such as uniform, two-pass-scores or squeak",
        });
    }
    let first = first_pass(source, options, observer)?;
    let codes = TargetCodes::of(&first.preprocessor);
    observer.stage("bandwidth and dictionary");
    let choice = choose(options, &first.sample, &codes)?;
    let Atoms { dictionary, leverage_ridge: dictionary_leverage_ridge } =
        choose_atoms(source, options, &choice, &first, observer)?;
    observer.stage("second pass: sums");
    source.rewind()?;
    let precise = needs_precision(options.solver.ridge, &choice, first.preprocessor.rows(), dictionary.len());
    let mut pass = SecondPass::new(&first.preprocessor, &codes, choice.kernel, &dictionary, precise)?;
    loop {
        let records = pass.advance(source)?;
        if records == 0 {
            break;
        }
        observer.rows(records, source.progress());
    }
    let limits = pass.limits().clone();
    let sums = pass.sums();
    if sums.rows() != first.preprocessor.rows() {
        return Err(Error::Incompatible {
            field: format!("number of rows of {} on the second reading", source.origin()),
            found: sums.rows().to_string(),
            expected: first.preprocessor.rows().to_string(),
        });
    }
    observer.stage("solving");
    let fit = sums.solve(&choice.kernel, &dictionary, &options.solver)?;
    let mut regression = fit.model;
    let calibration = match &codes {
        TargetCodes::Numbers { shift } => {
            fit_spread(&mut regression, &first.sample, &codes)?;
            regression = regression.with_limits(limits)?;
            regression.shift_outputs(shift);
            None
        }
        TargetCodes::Classes { count } => Some(calibrate(&regression, &first.sample, &codes, *count)?),
    };
    let rows = sums.rows();
    let summary = Summary {
        method: "two-pass".to_owned(),
        dictionary: Some(choice.dictionary.to_string()),
        rows,
        budget: Some(options.budget),
        bandwidth_by: choice.bandwidth_by.map(str::to_owned),
        ridge: fit.choice.ridge,
        ridge_by_gcv: options.solver.ridge == Ridge::Auto,
        leverage_ridge: Some(fit.leverage_ridge),
        dictionary_leverage_ridge,
        jitter: fit.jitter,
        effective_dim: fit.choice.degrees_of_freedom,
        captured: Some(fit.captured),
        estimated_rmse: fit.choice.scores.iter().map(|score| score.sqrt()).collect(),
        seed: options.seed,
    };
    TrainedModel::new(first.preprocessor, regression, calibration, summary)
}

/// The atoms of a fit.
struct Atoms {
    dictionary: Dictionary,
    /// γ at which they were drawn, for sequential methods.
    leverage_ridge: Option<f64>,
}

/// The dictionary by the method chosen.
///
/// Rows drawn by a sequential method become the atoms of plain Nyström (γ = 0, where weights do not matter), as those of
/// `uniform` and `rpcholesky` do. Weights and the γ that the budget came to made no difference for `squeak` (Friedman's
/// function and waves, 20,000 rows, 100 and 300 atoms: estimated errors within 0.1 %) and were worse for `ink-estimate`
/// (0.163 against 0.160, 0.193 against 0.116 on waves), whose γ can come out large.
fn choose_atoms(
    source: &mut dyn RecordSource,
    options: &FitOptions,
    choice: &Choice,
    first: &FirstPass,
    observer: &mut dyn Observer,
) -> Result<Atoms> {
    let (method, kernel, sample) = (choice.dictionary, &choice.kernel, first.sample.rows.rows());
    let drawn = if method == DictionaryMethod::Squeak {
        let mut energies = vec![0.0; sample.len()];
        kernel.diagonals(sample, &mut energies);
        let energy = energies.iter().sum::<f64>() / sample.len().max(1) as f64 * first.preprocessor.rows() as f64;
        let ridge = options.leverage_ridge.unwrap_or_else(|| starting_leverage_ridge(energy, options.budget));
        let Some(mut squeak) = sequential_with_budget(method, kernel, ridge, options.budget, options.seed)? else {
            return Err(Error::Internal("squeak is no sequential method"));
        };
        observer.stage("reading between the passes: squeak over all rows");
        source.rewind()?;
        Feed::new(&first.preprocessor).run(source, &mut squeak, &mut Watch::default(), observer)?;
        squeak.dictionary()?
    } else {
        let dictionary_options = DictionaryOptions {
            leverage_ridge: options.leverage_ridge.or(method.default_leverage_ridge()),
            seed: options.seed,
            ..DictionaryOptions::new(options.budget)
        };
        build_dictionary(method, kernel, sample, &dictionary_options)?
    };
    if !method.is_sequential() {
        return Ok(Atoms { dictionary: drawn, leverage_ridge: None });
    }
    if drawn.is_empty() {
        let found = format!("no atoms at a leverage ridge of {:e}", drawn.leverage_ridge());
        return Err(Error::InvalidParam { name: "leverage-ridge", found, expected: "a smaller one" });
    }
    let leverage_ridge = Some(drawn.leverage_ridge());
    let (ones, indices) = (vec![1.0; drawn.len()], drawn.indices().to_vec());
    Ok(Atoms { dictionary: Dictionary::new(drawn.atoms().clone(), ones, indices, 0.0)?, leverage_ridge })
}

/// Whether the ridge to come may be below what sums of kernels resolve.
///
/// Their floor is about 20 √(2ε ḡ n √m) for a mean entry ḡ ≤ 1 of kkᵀ a row (see `solver/nystrom.rs`); the bound ḡ = 1
/// errs on the side of precision by a factor of a few.
fn needs_precision(ridge: Ridge, choice: &Choice, rows: u64, atoms: usize) -> bool {
    let n = rows as f64;
    let expected = match (ridge, choice.ridge_per_row) {
        (Ridge::Fixed(value), _) => value,
        (Ridge::Auto, Some(per_row)) => per_row * n,
        (Ridge::Auto, None) => return true,
    };
    // noise = 2ε·(n ḡ m)/√m, γ = √(noise·m/n), floor = 10·noise/γ.
    let noise = 2.0 * f64::EPSILON * n * (atoms as f64).sqrt();
    expected < 10.0 * (noise * n / atoms as f64).sqrt()
}

/// Fits standard deviations to the leave-one-out errors of the sample.
fn fit_spread(model: &mut KernelModel, sample: &Batch, codes: &TargetCodes) -> Result<()> {
    let count = sample.len().min(CALIBRATE);
    let mut coded = Mat::new();
    codes.encode(&sample.targets[..count * codes.outputs()], &mut coded);
    let rows = sample.rows.rows().slice(0, count);
    let mut errors = left_out_outputs(model, rows, coded.as_ref())?;
    let outputs = codes.outputs();
    errors.iter_mut().enumerate().for_each(|(i, value)| *value -= coded[(i / outputs, i % outputs)]);
    model.fit_spread(rows, &errors)
}

/// Fits probabilities on the leave-one-out scores of the sample.
fn calibrate(model: &KernelModel, sample: &Batch, codes: &TargetCodes, classes: usize) -> Result<Calibration> {
    let count = sample.len().min(CALIBRATE);
    let mut coded = Mat::new();
    codes.encode(&sample.targets[..count], &mut coded);
    let outputs = left_out_outputs(model, sample.rows.rows().slice(0, count), coded.as_ref())?;
    scores_to_calibration(&outputs, &sample.targets[..count], codes.outputs(), classes)
}

/// Calibrates on left-out outputs (rows × width) of rows with these class indices.
pub(crate) fn scores_to_calibration(
    outputs: &[f64],
    targets: &[f64],
    width: usize,
    classes: usize,
) -> Result<Calibration> {
    let mut scores = vec![0.0; targets.len() * classes];
    for (row, scores) in outputs.chunks_exact(width).zip(scores.chunks_exact_mut(classes)) {
        class_scores(row, classes, scores);
    }
    let labels: Vec<usize> = targets.iter().map(|&class| class as usize).collect();
    fit_calibration(&scores, &labels, classes)
}
