//! `nystream evaluate`: test-then-train over a stream.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use nystream::Error;
use nystream::fit::{FitOptions, Observer, first_pass};
use nystream::kernel::Kernel;
use nystream::learner::online::{
    Attempt, LearnerEntry, LearnerSettings, Make, Targets, Tuning, TuningPart, check, find, tunable,
};
use nystream::learner::streaming::{RunningScore, Status, StreamingOptions};
use nystream::learner::{Shuffled, StreamPass};
use nystream::preprocess::{ColumnRef, Scale};
use nystream::source::RecordSource;
use rayon::prelude::*;
use serde_json::json;

use super::describe::{about_rows, put_changes, put_decision, put_each, rows_per_second};
use crate::args::{Common, KernelArgs, ReadArgs, TableArgs, fit_options, task_words};
use crate::files::Files;
use crate::learner_args::LearnerOptions;
use crate::memory::peak_bytes;
use crate::output::{Outcome, check_writable, show, write_text};
use crate::plot::learning_curve;
use crate::progress::Progress;
use crate::report::Report;

/// Predict every row of a stream before learning it, and count the errors
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nystream evaluate a9a.libsvm.gz --budget 200 --shuffle 0 --permutations 10
  nystream evaluate a9a.libsvm.gz --learner nogd --step-size 0.5 --shuffle 0
  nystream evaluate a9a.libsvm.gz --learner skegd --tune 0.2 --shuffle 0 --permutations 20
  nystream evaluate elec2.csv --half-life 1000 --plot error.svg
  zcat log.csv.gz | nystream evaluate - --scale running

`nystream learners` shows every learner with its options. The data is read once beforehand for --scale standard and minmax,
as is usual in papers, and all rows are held in memory so that they can be shuffled. --scale running goes by the first rows
of each order alone (5 budgets, at least 256). With it the streaming ridge, in the order of the file, takes one pass and
bounded memory, so that `-` and streams of any length work; the first rows are then those of `fit --method stream`: 4,096, or
5 budgets if that is more, in lots of 4,096.

A mistake is an output of the wrong sign, y f(x) < 0; outputs of exactly 0 are no mistakes and are counted as undecided.
Regression learns targets minus their mean.")]
pub struct EvaluateArgs {
    /// File (CSV, LIBSVM, JSON lines, Parquet, Arrow; gzip or not), `-` for standard input, or `synth:...`
    data: String,
    /// Which learner
    #[arg(long, value_name = "NAME", default_value = "streaming-ridge")]
    learner: String,
    /// Most rows kept
    #[arg(long, value_name = "ATOMS", default_value_t = 200, allow_negative_numbers = true)]
    budget: usize,
    /// Shuffle the rows by this seed (default: the order of the file)
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
    /// Runs over as many orders, with seeds from that of --shuffle on; reports means and standard deviations
    #[arg(long, value_name = "N", requires = "shuffle", value_parser = clap::value_parser!(u64).range(1..))]
    permutations: Option<u64>,
    /// Tune --step-size and --regularization, where the learner has them and they are not given, over powers of ten from
    /// 1e-5 to 1 and from 1e-4 to 10, on this share of the rows: the first of an order of its own, by --seed
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    tune: Option<f64>,
    /// Where to draw the error along the stream (of the first order), as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Of all random choices of the learner; learners of one row at a time add the number of the order
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    options: LearnerOptions,
    /// Column that says how much each row counts, a number above 0, by name or number; it is no feature (streaming-ridge
    /// only); errors are counted alike
    #[arg(long, value_name = "COLUMN", allow_negative_numbers = true, help_heading = "Columns")]
    weights: Option<ColumnRef>,
    #[command(flatten)]
    kernel: KernelArgs,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// Points of a curve at which it is thinned out.
const MOST_POINTS: usize = 1000;

/// What one run came to.
struct Ran {
    score: RunningScore,
    curve: Vec<(u64, f64, f64)>,
    time: Duration,
    atoms: usize,
    bytes: usize,
    kernel: Option<Kernel>,
    /// Of the streaming ridge.
    status: Option<Status>,
}

/// How rows become a run, given the number of the order; and how options were chosen.
type Prepared<'a> = (Runner<'a>, Option<Tuning>);
type Runner<'a> = Box<dyn Fn(u64) -> nystream::Result<Ran> + Send + Sync + 'a>;

pub fn run(args: &EvaluateArgs, common: &Common) -> Outcome {
    let start = Instant::now();
    let entry = find(&args.learner)?;
    let mut options = fit_options(&args.table, &args.kernel, args.seed)?;
    options.table.weights = args.weights.clone();
    options.budget = args.budget;
    options.sample = Some(usize::MAX);
    check_options(args, entry, &options)?;
    Files::new().data(&args.data).writes("plot", args.plot.as_ref()).require_apart()?;
    if let Some(path) = &args.plot {
        check_writable(path)?;
    }
    let mut source = args.read.open(&args.data)?;
    let mut progress = Progress::new(!common.quiet && !common.json);
    let running = options.table.scale == Scale::Running;
    if running && matches!(entry.make, Make::Blocks) && args.shuffle.is_none() {
        let (ran, told) = one_pass(args, &options, source.as_mut(), &mut progress)?;
        progress.finish();
        return report_runs(args, common, entry, &told, &[ran], None, start);
    }
    if running {
        options.table.scale = Scale::None;
    }
    let first = first_pass(source.as_mut(), &options, &mut progress)?;
    let (task, targets) = (task_words(&first.preprocessor), first.preprocessor.target_names().to_vec());
    let shuffled = if running {
        let head = StreamingOptions { budget: args.budget, ..StreamingOptions::default() }.head_rows();
        Shuffled::standardised_by_first(first, head)
    } else {
        Shuffled::new(first)
    };
    let (runner, tuning) = match entry.make {
        Make::Blocks => (by_blocks(args, &options, &shuffled)?, None),
        Make::Rows { .. } => by_rows(args, entry, &options, &shuffled, &mut progress)?,
    };
    let orders = args.permutations.unwrap_or(1);
    progress.stage(&format!("{orders} {}: predict, then learn", if orders == 1 { "order" } else { "orders" }));
    // Each run depends on its own number only, so threads change nothing but the time.
    let runs: Vec<_> = (0..orders).into_par_iter().map(runner).collect();
    let runs = runs.into_iter().collect::<nystream::Result<Vec<Ran>>>()?;
    progress.finish();
    let told = Told { task, targets, rows: shuffled.len() as u64, classes: shuffled.classes() };
    report_runs(args, common, entry, &told, &runs, tuning.as_ref(), start)
}

/// What is known of the data.
struct Told {
    task: String,
    targets: Vec<String>,
    rows: u64,
    classes: bool,
}

/// The streaming ridge over the source as it is read.
fn one_pass(
    args: &EvaluateArgs,
    options: &FitOptions,
    source: &mut dyn RecordSource,
    progress: &mut Progress,
) -> nystream::Result<(Ran, Told)> {
    let started = Instant::now();
    let mut pass = StreamPass::begin(source, options.table.clone(), streaming(args, options)?, progress)?;
    let classes = pass.is_classification();
    let (mut curve, mut step) = (vec![pass.learner().score().point(classes)], 1);
    let mut blocks = 0;
    pass.advance_to_end(source, &mut |pass, records, share| {
        progress.rows(records, share);
        progress.running(if classes { "mistakes" } else { "mse" }, pass.error());
        blocks += 1;
        if blocks % step == 0 {
            curve.push(pass.learner().score().point(classes));
        }
        if curve.len() >= MOST_POINTS {
            // Every other one, so that they stay few however long the stream is.
            curve = curve.iter().skip(1).step_by(2).copied().collect();
            step *= 2;
        }
        Ok(())
    })?;
    let (task, bytes) = (task_words(pass.preprocessor()), pass.size_bytes());
    let targets = pass.preprocessor().target_names().to_vec();
    let (_, learner) = pass.finish_with_learner().map_err(|e| about_rows(e, source.origin()))?;
    curve.push(learner.score().point(classes));
    let told = Told { task, targets, rows: learner.rows(), classes };
    let ran = Ran {
        score: learner.score().clone(),
        time: started.elapsed(),
        atoms: learner.dictionary().map_or(0, |d| d.len()),
        bytes,
        kernel: learner.kernel().copied(),
        status: Some(learner.status()?),
        curve,
    };
    Ok((ran, told))
}

fn report_runs(
    args: &EvaluateArgs,
    common: &Common,
    entry: &LearnerEntry,
    told: &Told,
    runs: &[Ran],
    tuning: Option<&Tuning>,
    start: Instant,
) -> Outcome {
    let Some(one) = runs.first() else { return Err(Error::Internal("no run").into()) };
    if let Some(path) = &args.plot {
        let line = |pick: fn(&(u64, f64, f64)) -> f64| one.curve.iter().map(|p| (p.0 as f64, pick(p))).collect();
        let curves = [("since the start", line(|p| p.1)), ("last 1,000 rows", line(|p| p.2))];
        let shown = if told.classes { "share of mistakes" } else { "mean squared error" };
        write_text(path, &learning_curve(shown, &curves, &[]).to_svg(800, 500))?;
    }
    let mut report = Report::new();
    report.put("learner", entry.name);
    report.put("task", told.task.as_str());
    report.put("rows", told.rows);
    report.put("budget", args.budget);
    report.put("atoms", one.atoms);
    if let Some(kernel) = one.kernel {
        report.put("kernel", kernel.name());
        if let Some(bandwidth) = kernel.bandwidth() {
            report.put("bandwidth", bandwidth);
        }
    }
    if let Some(status) = &one.status {
        report.put("ridge", status.ridge);
        report.put("leverage_ridge", status.leverage_ridge);
        report.put("effective_dim", status.effective_dim);
        report.put("captured", status.captured);
        put_decision(&mut report, status);
        put_changes(&mut report, status);
    }
    if !args.options.given.is_empty() {
        report.put("options", json!(args.options.given));
    }
    if let Some(tuning) = tuning {
        put_tuning(&mut report, tuning);
    }
    put_errors(&mut report, runs, told, args.permutations);
    let time = runs.iter().map(|run| run.time).sum::<Duration>();
    report.put_seconds("seconds_learn", time);
    report.put("rows_per_second", rows_per_second(told.rows * runs.len() as u64, time));
    report.put_seconds("seconds_total", start.elapsed());
    report.put_bytes("bytes_held", one.bytes as u64);
    report.put_bytes("peak_bytes", peak_bytes());
    show(&report, common)
}

/// Refuses bad options before the data is read.
fn check_options(args: &EvaluateArgs, entry: &'static LearnerEntry, options: &FitOptions) -> nystream::Result<()> {
    // Targets and columns are not known yet.
    let settings = settings(args, options.kernel.with_bandwidth(1.0)?, 1, entry.targets[0]);
    match entry.make {
        Make::Blocks => streaming(args, options).map(drop)?,
        Make::Rows { .. } => check(entry, &settings).map(drop)?,
    }
    if args.weights.is_some() && matches!(entry.make, Make::Rows { .. }) {
        let found = format!("this option with --learner {}", entry.name);
        return Err(Error::InvalidParam { name: "weights", found, expected: "--learner streaming-ridge" });
    }
    let wrong = |found, expected| Err(Error::InvalidParam { name: "tune", found, expected });
    match args.tune {
        Some(share) if !(share > 0.0 && share <= 1.0) => {
            wrong(share.to_string(), "a share of the rows, above 0 and at most 1")
        }
        Some(_) if !tunable(entry, &settings) => {
            let found = format!("{}, with nothing to tune", entry.name);
            wrong(found, "a learner with a --step-size or --regularization that is not given")
        }
        _ => Ok(()),
    }
}

fn streaming(args: &EvaluateArgs, options: &FitOptions) -> nystream::Result<StreamingOptions> {
    StreamingOptions {
        kernel: options.kernel,
        bandwidth: options.bandwidth,
        budget: args.budget,
        seed: args.seed,
        ..StreamingOptions::default()
    }
    .with_named(&args.options.given)
}

fn settings(args: &EvaluateArgs, kernel: Kernel, features: usize, targets: Targets) -> LearnerSettings {
    let mut settings = LearnerSettings::new(kernel, features, targets);
    settings.budget = args.budget;
    settings.options = args.options.given.clone();
    settings
}

fn by_blocks<'a>(args: &'a EvaluateArgs, options: &FitOptions, rows: &'a Shuffled) -> nystream::Result<Runner<'a>> {
    let streaming = streaming(args, options)?;
    Ok(Box::new(move |order| {
        let run = rows.evaluate(streaming.clone(), args.shuffle.map(|seed| seed.wrapping_add(order)))?;
        let learner = &run.learner;
        Ok(Ran {
            score: learner.score().clone(),
            time: run.time,
            atoms: learner.dictionary().map_or(0, |d| d.len()),
            bytes: learner.size_bytes(),
            kernel: learner.kernel().copied(),
            status: Some(learner.status()?),
            curve: run.curve,
        })
    }))
}

fn by_rows<'a>(
    args: &'a EvaluateArgs,
    entry: &'static LearnerEntry,
    options: &FitOptions,
    rows: &'a Shuffled,
    progress: &mut Progress,
) -> nystream::Result<Prepared<'a>> {
    let targets = rows.targets()?;
    progress.stage("bandwidth");
    let kernel = rows.kernel(options.kernel, options.bandwidth)?;
    let mut settings = settings(args, kernel, rows.features(), targets);
    settings.expected_rows = Some(rows.len() as u64);
    check(entry, &settings)?;
    let mut tuning = None;
    if let Some(share) = args.tune {
        progress.stage("tuning");
        settings.seed = args.seed;
        let done = rows.tune(entry.name, &settings, TuningPart { share, seed: Some(args.seed) })?;
        settings.options.extend(done.chosen().clone());
        tuning = Some(done);
    }
    let runner: Runner<'a> = Box::new(move |order| {
        let mut settings = settings.clone();
        settings.seed = args.seed.wrapping_add(order);
        let shuffle = args.shuffle.map(|seed| seed.wrapping_add(order));
        let run = rows.run(entry.name, &settings, shuffle, usize::MAX)?;
        Ok(Ran {
            time: run.time,
            atoms: run.learner.atoms(),
            bytes: run.learner.size_bytes(),
            kernel: Some(kernel),
            status: None,
            score: run.score,
            curve: run.curve,
        })
    });
    Ok((runner, tuning))
}

fn put_tuning(report: &mut Report, tuning: &Tuning) {
    let one = |attempt: &Attempt| json!({ "options": attempt.options, "error": attempt.error.as_ref().ok(), "failed": attempt.error.as_ref().err() });
    let tried: Vec<_> = tuning.attempts.iter().map(one).collect();
    let chosen: Vec<String> = tuning.chosen().iter().map(|(name, value)| format!("{name} {value}")).collect();
    let text = format!("{} (best of {} on {} rows)", chosen.join(", "), tried.len(), tuning.rows);
    report.put_as("tuned", json!({ "rows": tuning.rows, "chosen": tuning.chosen(), "tried": tried }), text);
}

fn put_errors(report: &mut Report, runs: &[Ran], told: &Told, permutations: Option<u64>) {
    let classes = told.classes;
    let name = if classes { "mistake_rate" } else { "mse" };
    let error = |run: &Ran| if classes { run.score.mistake_rate() } else { run.score.mse() };
    let errors: Vec<f64> = runs.iter().map(error).collect();
    match permutations {
        Some(count) => {
            let (mean, sd) = mean_and_sd(&errors);
            report.put("permutations", count);
            report.put_as(name, json!({ "mean": mean, "sd": sd }), format!("{mean:.6} ± {sd:.6}"));
            put_each_mean(report, runs, &told.targets);
        }
        None => {
            let score = &runs[0].score;
            report.put(name, errors[0]);
            let recent = if classes { score.recent_mistake_rate() } else { score.recent_mse() };
            report.put(&format!("recent_{name}"), recent);
            put_each(report, &score.of_each_number().collect::<Vec<_>>(), &told.targets);
        }
    }
    let undecided: u64 = runs.iter().map(|run| run.score.undecided()).sum();
    if classes && undecided > 0 {
        report.put("undecided", undecided);
    }
}

/// Of several targets the error of each, over all orders.
fn put_each_mean(report: &mut Report, runs: &[Ran], targets: &[String]) {
    let errors: Vec<Vec<f64>> =
        runs.iter().map(|run| run.score.of_each_number().map(|(all, _)| all).collect()).collect();
    let known = errors.first().map_or(0, Vec::len);
    let line = |(t, target): (usize, &String)| {
        let (mean, sd) = mean_and_sd(&errors.iter().map(|each| each[t]).collect::<Vec<_>>());
        let mut line = Report::new();
        line.put("target", target.clone());
        line.put_as("mse", json!({ "mean": mean, "sd": sd }), format!("{mean:.6} ± {sd:.6}"));
        line
    };
    if known > 0 {
        report.put_list("targets", targets.iter().enumerate().take(known).map(line).collect());
    }
}

fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}
