//! `nystream evaluate`: test-then-train over a stream.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use nystream::fit::first_pass;
use nystream::learner::streaming::{Reopen, StreamingOptions};
use nystream::learner::{Evaluation, Shuffled};
use nystream::solver::Ridge;
use serde_json::json;

use super::describe::{put_changes, put_errors, rows_per_second};
use crate::args::{Common, KernelArgs, ReadArgs, TableArgs, fit_options, task_words};
use crate::memory::peak_bytes;
use crate::output::{Outcome, check_writable, show, write_text};
use crate::plot::learning_curve;
use crate::progress::Progress;
use crate::report::Report;

/// Predict every row of a stream before learning it, and count the errors
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nystream evaluate a9a.libsvm.gz --budget 200 --shuffle 0 --permutations 10
  nystream evaluate elec2.csv --half-life 1000 --plot error.svg

The data is read once beforehand for --scale standard and minmax, as is usual in papers, and all rows are held in memory so
that they can be shuffled. To learn a stream of any length in bounded memory use `nystream fit --method stream`, which
reports the same error.")]
pub struct EvaluateArgs {
    /// File (CSV, LIBSVM, JSON lines, Parquet, Arrow; gzip or not), `-` for standard input, or `synth:...`
    data: String,
    /// Which learner
    #[arg(long, value_enum, default_value_t = Learner::StreamingRidge)]
    learner: Learner,
    /// Most atoms
    #[arg(long, value_name = "ATOMS", default_value_t = 200, allow_negative_numbers = true)]
    budget: usize,
    /// auto (generalised cross-validation) or a number above 0
    #[arg(long, value_name = "MU", default_value = "auto", allow_negative_numbers = true)]
    ridge: Ridge,
    /// Rows after which a row counts half (default: every row counts the same)
    #[arg(long, value_name = "ROWS", allow_negative_numbers = true)]
    half_life: Option<f64>,
    /// Whether atoms may change when rows come from where they do not reach: auto or off
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    reopen: Reopen,
    /// Shuffle the rows by this seed (default: the order of the file)
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
    /// Runs over as many orders, with seeds from that of --shuffle on; reports means and standard deviations
    #[arg(long, value_name = "N", requires = "shuffle", value_parser = clap::value_parser!(u64).range(1..))]
    permutations: Option<u64>,
    /// Where to draw the error along the stream (of the first order), as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Of all random choices of the learner
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    kernel: KernelArgs,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Learner {
    /// Second-order kernel ridge regression on a budget
    StreamingRidge,
}

pub fn run(args: &EvaluateArgs, common: &Common) -> Outcome {
    let start = Instant::now();
    let mut options = fit_options(&args.table, &args.kernel, args.seed)?;
    options.budget = args.budget;
    options.sample = Some(usize::MAX);
    options.solver.ridge = args.ridge;
    let learner = StreamingOptions {
        kernel: options.kernel,
        bandwidth: options.bandwidth,
        ridge: args.ridge,
        budget: args.budget,
        half_life: args.half_life,
        reopen: args.reopen,
        seed: args.seed,
    };
    learner.validated()?;
    if let Some(path) = &args.plot {
        check_writable(path)?;
    }
    let mut source = args.read.open(&args.data)?;
    let mut progress = Progress::new(!common.quiet && !common.json);
    let first = first_pass(source.as_mut(), &options, &mut progress)?;
    let task = task_words(&first.preprocessor);
    let shuffled = Shuffled::new(first);
    let mut runs: Vec<Evaluation> = Vec::new();
    let (mut errors, mut time) = (Vec::new(), Duration::ZERO);
    for i in 0..args.permutations.unwrap_or(1) {
        nystream::fit::Observer::stage(&mut progress, &format!("order {}: predict, then learn", i + 1));
        let run = shuffled.evaluate(learner.clone(), args.shuffle.map(|seed| seed.wrapping_add(i)))?;
        let score = run.learner.score();
        errors.push(if shuffled.classes() { score.mistake_rate() } else { score.mse() });
        time += run.time;
        // The first is reported in detail; the others count by their errors.
        if runs.is_empty() {
            runs.push(run);
        }
    }
    progress.finish();
    let Some(run) = runs.first() else { return Err(nystream::Error::Internal("no run").into()) };
    let name = if shuffled.classes() { "mistake_rate" } else { "mse" };
    if let Some(path) = &args.plot {
        let line = |pick: fn(&(u64, f64, f64)) -> f64| run.curve.iter().map(|p| (p.0 as f64, pick(p))).collect();
        let curves = [("since the start", line(|p| p.1)), ("last 1,000 rows", line(|p| p.2))];
        let shown = if shuffled.classes() { "share of mistakes" } else { "mean squared error" };
        write_text(path, &learning_curve(shown, &curves, &[]).to_svg(800, 500))?;
    }
    let mut report = Report::new();
    report.put("learner", "streaming-ridge");
    report.put("task", task);
    report.put("rows", shuffled.len());
    report.put("budget", args.budget);
    report.put("atoms", run.learner.dictionary().map_or(0, |d| d.len()));
    if let Some(kernel) = run.learner.kernel() {
        report.put("kernel", kernel.name());
        if let Some(bandwidth) = kernel.bandwidth() {
            report.put("bandwidth", bandwidth);
        }
    }
    let status = run.learner.status()?;
    report.put("ridge", status.ridge);
    report.put("leverage_ridge", status.leverage_ridge);
    report.put("effective_dim", status.effective_dim);
    report.put("captured", status.captured);
    put_changes(&mut report, &status);
    match args.permutations {
        Some(count) => {
            let (mean, sd) = mean_and_sd(&errors);
            report.put("permutations", count);
            report.put_as(name, json!({ "mean": mean, "sd": sd }), format!("{mean:.6} ± {sd:.6}"));
        }
        None => {
            put_errors(&mut report, &status, shuffled.classes());
        }
    }
    report.put_seconds("seconds_learn", time);
    report.put("rows_per_second", rows_per_second(shuffled.len() as u64 * errors.len() as u64, time));
    report.put_seconds("seconds_total", start.elapsed());
    report.put_bytes("bytes_held", status.bytes_held as u64);
    report.put_bytes("peak_bytes", peak_bytes());
    show(&report, common)
}

fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}
