//! `nystream score`: how well a model predicts a file whose targets are known.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use nystream::Error;
use nystream::model::{Predictions, TrainedModel, Wanted};
use nystream::preprocess::Task;
use nystream::source::RecordBlock;

use crate::args::{Common, ReadArgs};
use crate::output::{Outcome, show};
use crate::progress::Progress;
use crate::report::Report;

/// Compare a model's predictions with known targets
#[derive(Debug, Args)]
#[command(after_help = "Example:
  nystream score houses.nys new-houses.csv --json")]
pub struct ScoreArgs {
    /// Model file
    model: PathBuf,
    /// File with the features and targets of the training data, `-` for standard input, or `synth:...`
    data: String,
    #[command(flatten)]
    read: ReadArgs,
}

const BLOCK: usize = 4096;
/// z such that 90 % of a normal distribution lies within ±z standard deviations.
const Z90: f64 = 1.644_853_626_951_472_2;

pub fn run(args: &ScoreArgs, common: &Common) -> Outcome {
    let start = Instant::now();
    let model = TrainedModel::load(&args.model)?;
    let mut source = args.read.open(&args.data)?;
    let mut progress = Progress::new(!common.quiet && !common.json);
    use nystream::fit::Observer;
    progress.stage("scoring");
    let targets = model.preprocessor().target_count();
    let mut tally = match model.preprocessor().task() {
        Task::Regression { .. } => Tally::Numbers(vec![Errors::default(); targets]),
        Task::Classification { .. } => Tally::Classes { right: 0, log_loss: 0.0 },
    };
    let with_std = model.regression().uncertainty().is_some() && model.calibration().is_none();
    let mut block = RecordBlock::default();
    let mut predictor = None;
    let mut rows = 0u64;
    while source.read(&mut block, BLOCK)? {
        let predictor = match &mut predictor {
            Some(predictor) => predictor,
            None => predictor.insert(model.predictor(source.schema(), source.origin())?),
        };
        if !predictor.has_targets() {
            return Err(Error::Input {
                origin: source.origin().to_owned(),
                row: 0,
                column: Some(model.preprocessor().target_names().join("', '")),
                found: "no such column".to_owned(),
                expected: "the target, to compare predictions with".to_owned(),
            }
            .into());
        }
        predictor.predict(&block, Wanted { targets: true, deviations: with_std })?;
        tally.add(predictor.predictions(), &predictor.batch().targets);
        rows += predictor.predictions().rows as u64;
        progress.rows(block.len() as u64, source.progress());
    }
    progress.finish();
    if rows == 0 {
        return Err(Error::Input {
            origin: source.origin().to_owned(),
            row: 0,
            column: None,
            found: "no rows".to_owned(),
            expected: "at least one row".to_owned(),
        }
        .into());
    }
    let mut report = Report::new();
    report.put("rows", rows);
    tally.report(rows as f64, with_std, model.preprocessor().target_names(), &mut report);
    report.put_seconds("seconds_total", start.elapsed());
    show(&report, common)
}

enum Tally {
    Numbers(Vec<Errors>),
    Classes { right: u64, log_loss: f64 },
}

/// Running sums of one target; the mean and variance of the truth by Welford's recursion.
#[derive(Debug, Default, Clone)]
struct Errors {
    count: f64,
    mean: f64,
    spread: f64,
    squared: f64,
    absolute: f64,
    covered: f64,
}

impl Tally {
    fn add(&mut self, out: &Predictions, truth: &[f64]) {
        match self {
            Self::Numbers(errors) => {
                let targets = errors.len();
                for (i, (value, truth)) in out.values.iter().zip(truth).enumerate() {
                    errors[i % targets].add(*value, *truth, out.deviations.get(i).copied());
                }
            }
            Self::Classes { right, log_loss } => {
                let classes = out.probabilities.len() / out.rows.max(1);
                for (i, truth) in truth.iter().enumerate() {
                    *right += u64::from(out.values[i] == *truth);
                    *log_loss -= out.probabilities[i * classes + *truth as usize].max(f64::MIN_POSITIVE).ln();
                }
            }
        }
    }

    fn report(&self, rows: f64, with_std: bool, names: &[String], report: &mut Report) {
        match self {
            Self::Numbers(errors) => match &errors[..] {
                [one] => one.report(rows, with_std, report),
                many => {
                    let lines = many.iter().zip(names).map(|(errors, name)| {
                        let mut line = Report::new();
                        line.put("target", name.clone());
                        errors.report(rows, with_std, &mut line);
                        line
                    });
                    report.put_list("targets", lines.collect());
                }
            },
            Self::Classes { right, log_loss } => {
                report.put("accuracy", *right as f64 / rows);
                report.put("mistake_rate", 1.0 - *right as f64 / rows);
                report.put("log_loss", log_loss / rows);
            }
        }
    }
}

impl Errors {
    fn report(&self, rows: f64, with_std: bool, report: &mut Report) {
        report.put("rmse", (self.squared / rows).sqrt());
        report.put("r2", 1.0 - self.squared / self.spread);
        report.put("mae", self.absolute / rows);
        if with_std {
            report.put("coverage90", self.covered / rows);
        }
    }

    fn add(&mut self, value: f64, truth: f64, deviation: Option<f64>) {
        self.count += 1.0;
        let delta = truth - self.mean;
        self.mean += delta / self.count;
        self.spread += delta * (truth - self.mean);
        let missed = value - truth;
        self.squared += missed * missed;
        self.absolute += missed.abs();
        if deviation.is_some_and(|deviation| missed.abs() <= Z90 * deviation) {
            self.covered += 1.0;
        }
    }
}
