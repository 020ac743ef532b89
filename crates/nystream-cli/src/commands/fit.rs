//! `nystream fit`: train a model on a file of any size.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use nystream::fit::{FitOptions, Observer, exact, two_pass};
use nystream::learner::StreamPass;
use nystream::learner::streaming::{LossChoice, Reopen, Status, StreamingOptions};
use nystream::model::TrainedModel;
use nystream::preprocess::{ColumnRef, Task};
use nystream::sketch::DictionaryMethod;
use nystream::solver::{Ridge, SolverOptions};
use nystream::source::{RecordSource, Stops};

use super::describe::{about_rows, put_changes, put_decision, put_errors, rows_per_second};
use crate::args::{Common, KernelArgs, ReadArgs, TableArgs, bytes, fit_options, task_words};
use crate::files::Files;
use crate::memory::peak_bytes;
use crate::output::{Outcome, check_writable, show};
use crate::progress::Progress;
use crate::report::Report;

/// Train a model on a file of any size
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nystream fit houses.csv --target price --model houses.nys
  nystream fit a9a.libsvm.gz --model a9a.nys --budget 500 --seed 7
  nystream fit synth:friedman?n=100000 --model friedman.nys --ridge 0.1 --bandwidth 2
  nystream fit synth:waves?n=100000 --model waves.nys --budget 300 --dictionary squeak
  zcat log.csv.gz | nystream fit - --method stream --model log.nys --checkpoint log.part --every 1000000

stream reads the data once and predicts every row before it learns it. The first rows settle columns, categories, labels and
scaling before any is learnt: 4,096, or five times the budget if that is more, in lots of 4,096. A category or label that
first appears later is an error; a LIBSVM feature number that does makes rows wider, unscaled. Parts of the data can be learnt apart and merged:
  nystream fit monday.csv --method stream --model monday.nys --checkpoint monday.part
  nystream fit tuesday.csv --method stream --model tuesday.nys --checkpoint tuesday.part --like monday.part
  nystream merge monday.part tuesday.part --out both.part --model both.nys")]
pub struct FitArgs {
    /// File (CSV, LIBSVM, JSON lines, Parquet, Arrow; gzip or not), `-` for standard input, or `synth:...`
    data: String,
    /// Where to write the model
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// two-pass reads the data twice in bounded memory; stream reads it once; exact holds all rows
    #[arg(long, value_enum, default_value_t = Method::TwoPass)]
    method: Method,
    /// Most atoms of two-pass and stream (default: 1000)
    #[arg(long, value_name = "ATOMS", allow_negative_numbers = true)]
    budget: Option<usize>,
    /// How atoms are chosen: rpcholesky, uniform, two-pass-scores, batch-exact, ink-estimate or ink-oracle, from the
    /// sample of the first pass; squeak, from all rows in a third reading between the two (default: uniform or
    /// rpcholesky, whichever does better on held-out rows of the sample)
    #[arg(long, value_name = "METHOD")]
    dictionary: Option<DictionaryMethod>,
    /// Leverage ridge γ of the approximation and its scores (default: 1 for two-pass-scores and batch-exact);
    /// rpcholesky has none. For squeak and INK the γ at which atoms begin to be drawn, raised to keep the budget
    /// (default: 1e-10 of the kernel energy, divided by the budget); the fit on their atoms is plain Nyström
    #[arg(long, value_name = "GAMMA", allow_negative_numbers = true)]
    leverage_ridge: Option<f64>,
    /// Rows sampled in the first pass, from which bandwidth and atoms are chosen (default: ten times the
    /// budget, at least 12,500; 4,000 for batch-exact, 2,000 for INK)
    #[arg(long, value_name = "ROWS", allow_negative_numbers = true)]
    sample: Option<usize>,
    /// auto (generalised cross-validation) or a number above 0
    #[arg(long, value_name = "MU", default_value = "auto", allow_negative_numbers = true)]
    ridge: Ridge,
    /// Fit no constant beside the kernel expansion
    #[arg(long)]
    no_intercept: bool,
    /// Leave out of the file what standard deviations need: smaller by the square of the budget
    #[arg(long)]
    no_std: bool,
    /// Most memory of the exact method, such as 4GiB (default: 4GiB)
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    max_memory: Option<u64>,
    /// Rows after which a row of a stream counts half (default: every row counts the same)
    #[arg(long, value_name = "ROWS", allow_negative_numbers = true)]
    half_life: Option<f64>,
    /// Whether a stream may change its atoms when rows come from where they do not reach: auto or off (default: auto)
    #[arg(long, value_name = "WHEN")]
    reopen: Option<Reopen>,
    /// What errors cost a stream: auto (squared-hinge for two classes, else squared), squared or squared-hinge
    /// (default: auto)
    #[arg(long, value_name = "LOSS")]
    loss: Option<LossChoice>,
    /// Where a stream is saved as it runs and at its end, to go on from after an interruption, or to merge
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Rows between checkpoints, which come at multiples of it and at the end (default: only at the end)
    #[arg(long, value_name = "ROWS", requires = "checkpoint", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// A checkpoint to go on from, with the same data and options: the model is that of an uninterrupted run
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// A checkpoint of another part of the data, whose columns, scaling, kernel and atoms a stream begins with, so that both
    /// can be merged; other options must be the same
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    like: Option<PathBuf>,
    /// Of all random choices
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Column that says how much each row counts, a number above 0, by name or number; it is no feature (stream only)
    #[arg(long, value_name = "COLUMN", allow_negative_numbers = true, help_heading = "Columns")]
    weights: Option<ColumnRef>,
    #[command(flatten)]
    kernel: KernelArgs,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    TwoPass,
    Stream,
    Exact,
}

impl FitArgs {
    fn require_files_apart(&self) -> nystream::Result<()> {
        Files::new()
            .data(&self.data)
            .reads("--resume", self.resume.as_ref())
            .reads("--like", self.like.as_ref())
            .writes("model", Some(&self.model))
            .writes("checkpoint", self.checkpoint.as_ref())
            // The same checkpoint, going on.
            .may_replace("checkpoint", "--resume")
            .require_apart()
    }

    fn options(&self) -> nystream::Result<FitOptions> {
        let refuse = |name, method: &str, expected| nystream::Error::InvalidParam {
            name,
            found: format!("this option with --method {method}"),
            expected,
        };
        let mut options = fit_options(&self.table, &self.kernel, self.seed)?;
        options.table.weights = self.weights.clone();
        if self.method != Method::Stream {
            let word = if self.method == Method::Exact { "exact" } else { "two-pass" };
            for (name, given) in [
                ("half-life", self.half_life.is_some()),
                ("reopen", self.reopen.is_some()),
                ("loss", self.loss.is_some()),
                ("checkpoint", self.checkpoint.is_some()),
                ("resume", self.resume.is_some()),
                ("like", self.like.is_some()),
                ("weights", self.weights.is_some()),
            ] {
                if given {
                    return Err(refuse(name, word, "--method stream"));
                }
            }
        }
        match self.method {
            Method::Stream => {
                for (name, given) in [
                    ("dictionary", self.dictionary.is_some()),
                    ("leverage-ridge", self.leverage_ridge.is_some()),
                    ("sample", self.sample.is_some()),
                    ("max-memory", self.max_memory.is_some()),
                    ("no-intercept", self.no_intercept),
                ] {
                    if given {
                        return Err(refuse(name, "stream", "--method two-pass or exact"));
                    }
                }
                options.budget = self.budget.unwrap_or(options.budget);
                let weights = self.weights.as_ref().map(|_| "weights");
                if let Some(name) = self.table.given().or(weights).filter(|_| self.like.is_some()) {
                    let found = "this option with --like".to_owned();
                    let expected = "columns and scaling as they are in the file";
                    return Err(nystream::Error::InvalidParam { name, found, expected });
                }
            }
            Method::Exact => {
                for (name, given) in [
                    ("budget", self.budget.is_some()),
                    ("dictionary", self.dictionary.is_some()),
                    ("leverage-ridge", self.leverage_ridge.is_some()),
                    ("sample", self.sample.is_some()),
                ] {
                    if given {
                        return Err(refuse(name, "exact", "--method two-pass"));
                    }
                }
                options.allowed_bytes = self.max_memory.unwrap_or(options.allowed_bytes);
            }
            Method::TwoPass => {
                if self.max_memory.is_some() {
                    return Err(refuse("max-memory", "two-pass", "--method exact"));
                }
                options.budget = self.budget.unwrap_or(options.budget);
                options.dictionary = self.dictionary;
                options.leverage_ridge = self.leverage_ridge;
                options.sample = self.sample;
            }
        }
        options.solver = SolverOptions { ridge: self.ridge, intercept: !self.no_intercept };
        options.validated()?;
        Ok(options)
    }
}

/// How a stream ended.
struct Streamed {
    status: Status,
    /// Whether targets are classes.
    classes: bool,
    late_features: usize,
    bytes_held: usize,
}

/// Checkpoints on the way.
struct Checkpoints<'a> {
    args: &'a FitArgs,
    /// Records of the last one.
    saved: u64,
}

impl Checkpoints<'_> {
    fn save_if_due(&mut self, pass: &StreamPass) -> nystream::Result<()> {
        if let (Some(path), Some(every)) = (&self.args.checkpoint, self.args.every)
            && pass.records() / every > self.saved / every
        {
            pass.save(path)?;
            self.saved = pass.records();
        }
        Ok(())
    }
}

/// One pass, with checkpoints if they are wanted.
fn stream(
    args: &FitArgs,
    options: FitOptions,
    source: &mut dyn RecordSource,
    progress: &mut Progress,
) -> nystream::Result<(TrainedModel, Streamed)> {
    let learner = StreamingOptions {
        kernel: options.kernel,
        bandwidth: options.bandwidth,
        ridge: args.ridge,
        budget: options.budget,
        half_life: args.half_life,
        reopen: args.reopen.unwrap_or_default(),
        loss: args.loss.unwrap_or_default(),
        // The model's labels go by its probabilities; this is for the running score.
        threshold: None,
        seed: args.seed,
    };
    learner.validated()?;
    let mut stops = Stops::new(source, args.every.unwrap_or(u64::MAX));
    let source: &mut dyn RecordSource = &mut stops;
    let mut checkpoints = Checkpoints { args, saved: 0 };
    let mut pass = match (&args.resume, &args.like) {
        (Some(path), _) => {
            let pass = StreamPass::resume(path, source, &options.table, &learner, progress)?;
            checkpoints.saved = pass.records();
            pass
        }
        (None, Some(path)) => {
            StreamPass::load(path)?.begin_like(source, &learner, progress).map_err(|e| e.as_in(path))?
        }
        (None, None) => {
            let save = &mut |pass: &StreamPass, _, _| checkpoints.save_if_due(pass);
            StreamPass::begin_with(source, options.table, learner, progress, save)?
        }
    };
    checkpoints.save_if_due(&pass)?;
    pass.advance_to_end(source, &mut |pass, records, share| {
        progress.rows(records, share);
        progress.running(if pass.is_classification() { "mistakes" } else { "mse" }, pass.error());
        checkpoints.save_if_due(pass)
    })?;
    if let Some(path) = &args.checkpoint {
        pass.save(path)?;
    }
    let (classes, late, bytes_held) = (pass.is_classification(), pass.late_features(), pass.size_bytes());
    let (model, learner) = pass.finish_with_learner().map_err(|e| about_rows(e, source.origin()))?;
    Ok((model, Streamed { status: learner.status()?, classes, late_features: late, bytes_held }))
}

pub fn run(args: &FitArgs, common: &Common) -> Outcome {
    let start = Instant::now();
    let options = args.options()?;
    args.require_files_apart()?;
    check_writable(&args.model)?;
    if let Some(path) = &args.checkpoint {
        check_writable(path)?;
    }
    let mut source = args.read.open(&args.data)?;
    let mut progress = Progress::new(!common.quiet && !common.json);
    let fitted = match args.method {
        Method::TwoPass => two_pass(source.as_mut(), &options, &mut progress).map(|model| (model, None)),
        Method::Stream => {
            stream(args, options, source.as_mut(), &mut progress).map(|(model, status)| (model, Some(status)))
        }
        Method::Exact => exact(source.as_mut(), &options, &mut progress).map(|model| (model, None)),
    };
    progress.finish();
    let (mut model, streamed) = fitted?;
    let learnt = start.elapsed();
    if args.no_std {
        model = model.without_uncertainty();
    }
    model.save(&args.model)?;

    let summary = model.summary();
    let preprocessor = model.preprocessor();
    let mut report = Report::new();
    report.put("model", args.model.display().to_string());
    report.put("task", task_words(preprocessor));
    report.put("method", summary.method.clone());
    report.put("rows", summary.rows);
    report.put("features", preprocessor.feature_count());
    if let Some(budget) = summary.budget {
        report.put("budget", budget);
    }
    report.put("atoms", model.regression().centres().len());
    if let Some(dictionary) = &summary.dictionary {
        report.put("dictionary", dictionary.clone());
    }
    report.put("kernel", model.regression().kernel().name());
    if let (Some(bandwidth), Some(by)) = (model.regression().kernel().bandwidth(), &summary.bandwidth_by) {
        report.put("bandwidth", bandwidth);
        report.put("bandwidth_by", by.clone());
    }
    report.put("ridge", summary.ridge);
    report.put("ridge_by", if summary.ridge_by_gcv { "gcv" } else { "fixed" });
    if let Some(leverage_ridge) = summary.leverage_ridge {
        report.put("leverage_ridge", leverage_ridge);
    }
    if let Some(leverage_ridge) = summary.dictionary_leverage_ridge {
        report.put("dictionary_leverage_ridge", leverage_ridge);
    }
    report.put("effective_dim", summary.effective_dim);
    if let Some(captured) = summary.captured {
        report.put("captured", captured);
    }
    if summary.jitter > 0.0 {
        report.put("jitter", summary.jitter);
    }
    if let (Task::Regression { .. }, [rmse]) = (preprocessor.task(), &summary.estimated_rmse[..]) {
        report.put("estimated_rmse", *rmse);
    }
    if let Some(Streamed { status, classes, late_features, bytes_held }) = &streamed {
        if *late_features > 0 {
            report.put("late_features", *late_features);
        }
        put_errors(&mut report, status, *classes, preprocessor.target_names());
        put_decision(&mut report, status);
        put_changes(&mut report, status);
        report.put_bytes("bytes_held", *bytes_held as u64);
    }
    if preprocessor.dropped_rows() > 0 {
        report.put("rows_dropped", preprocessor.dropped_rows());
    }
    let constant = preprocessor.constant_features();
    if !constant.is_empty() {
        report.put("constant_features", constant.len());
    }
    let (atoms, drawn) = (model.regression().centres().len(), summary.dictionary_leverage_ridge.is_some());
    if drawn && summary.budget.is_some_and(|budget| 2 * atoms < budget) {
        let reason = match args.leverage_ridge {
            Some(_) => "this leverage ridge asks for no more: a smaller one fills the budget",
            None if summary.dictionary.as_deref() == Some("squeak") => "the rows have little more to add",
            // INK drops atoms for good while its ridge rises, which can go far beyond what the budget asks for.
            None => {
                "the ridge of INK rose past what the budget needs; another --leverage-ridge or --seed may do better"
            }
        };
        report.put("note", format!("far fewer atoms than the budget: {reason}"));
    }
    report.put_seconds("seconds_learn", learnt);
    if streamed.is_some() {
        report.put("rows_per_second", rows_per_second(summary.rows, learnt));
    }
    report.put_seconds("seconds_total", start.elapsed());
    report.put_bytes("peak_bytes", peak_bytes());
    show(&report, common)
}
