//! `nystream demo`: the whole thing on a built-in stream: learn, compare, save, plot.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use nystream::fit::{
    FitOptions, KernelFamily, Observer, SecondPass, Silent, TargetCodes, choose, exact, first_pass, two_pass,
};
use nystream::kernel::Kernel;
use nystream::model::{TrainedModel, Wanted};
use nystream::sketch::{DictionaryOptions, build};
use nystream::source::{MemorySource, OpenOptions, RecordBlock, RecordSource, open};

use crate::args::Common;
use crate::memory::peak_bytes;
use crate::output::{Outcome, print, show, write_text};
use crate::plot::{Chart, FitPoint, fit_band, learning_curve, side_by_side};
use crate::progress::Progress;
use crate::report::Report;
use crate::table::count;

/// See it work: learn a built-in stream, compare, save a model, draw the result
#[derive(Debug, Args)]
#[command(after_help = "Example:
  nystream demo --out demo

Learns Friedman's function (10 features, noise of standard deviation 1, so no model can have an error below 1) from a
stream of rows, writes the model and a picture to the folder, and prints a table that compares.")]
pub struct DemoArgs {
    /// Folder for the model and the picture
    #[arg(long, value_name = "FOLDER", default_value = "demo")]
    out: PathBuf,
    /// Rows of the stream
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1000..))]
    rows: u64,
    /// Atoms of the largest model
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=5000))]
    budget: u64,
    /// Of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Rows for the test of every model, from another seed.
const TEST_ROWS: u64 = 20_000;
/// Nine tenths of a normal distribution lie within this many standard deviations.
const Z90: f64 = 1.644_853_626_951_472_2;
/// Rows of the exact model that shows what all the memory buys.
const EXACT_ROWS: u64 = 2000;

pub fn run(args: &DemoArgs, common: &Common) -> Outcome {
    let start = Instant::now();
    std::fs::create_dir_all(&args.out).map_err(|e| nystream::Error::io(&args.out, "create", e))?;
    let mut progress = Progress::new(!common.quiet && !common.json);
    let mut test = stream(TEST_ROWS, args.seed + 1)?;
    let mut contestants = Vec::new();

    let (curve, streamed) = learn(args, test.as_mut(), &mut progress)?;
    let budget = args.budget as usize;
    for (name, options) in [
        ("linear ridge", FitOptions { kernel: KernelFamily::of(Kernel::Linear), budget: 10, ..base(args) }),
        ("nystream, two passes", FitOptions { budget: budget / 5, ..base(args) }),
        ("nystream, two passes", FitOptions { budget, ..base(args) }),
    ] {
        progress.stage(name);
        let at = Instant::now();
        let model = two_pass(stream(args.rows, args.seed)?.as_mut(), &options, &mut Silent)?;
        contestants.push(Contestant::new(name, model, at.elapsed().as_secs_f64(), test.as_mut())?);
    }
    progress.stage("exact kernel ridge");
    let at = Instant::now();
    let few = EXACT_ROWS.min(args.rows);
    let model = exact(stream(few, args.seed)?.as_mut(), &base(args), &mut Silent)?;
    contestants.push(Contestant::new("exact kernel ridge", model, at.elapsed().as_secs_f64(), test.as_mut())?);

    let model_path = args.out.join("friedman.nys");
    let ours = &contestants[2].model;
    ours.save(&model_path)?;
    // What is printed is what the file does.
    let reloaded = TrainedModel::load(&model_path)?;
    let rmse = error_on(&reloaded, test.as_mut())?;
    let picture = args.out.join("demo.svg");
    let references = [("linear ridge", contestants[0].rmse), ("the noise itself", 1.0)];
    let charts =
        [learning_curve("error on new rows (RMSE)", &[("nystream", curve.clone())], &references), slice(&reloaded)?];
    write_text(&picture, &side_by_side(&charts, 1200, 480))?;
    progress.finish();

    let mut report = Report::new();
    report.put("rows", args.rows);
    report.put("method", "two-pass");
    report.put("budget", args.budget);
    report.put("atoms", reloaded.regression().centres().len());
    report.put("bandwidth", reloaded.regression().kernel().bandwidth());
    report.put("ridge", reloaded.summary().ridge);
    report.put("captured", reloaded.summary().captured);
    report.put("rmse", rmse);
    report.put_list("models", models(&contestants, target_deviation(test.as_mut())?));
    report.put_list("as_the_stream_ran", curve.iter().map(|&(rows, rmse)| snapshot(rows, rmse)).collect());
    report.put("model", model_path.display().to_string());
    report.put("picture", picture.display().to_string());
    report.put_seconds("seconds_stream", streamed);
    report.put_seconds("seconds_learn", Duration::from_secs_f64(contestants[2].seconds));
    report.put_seconds("seconds_total", start.elapsed());
    report.put_bytes("peak_bytes", peak_bytes());
    if common.json || common.quiet {
        return show(&report, common);
    }
    print(&format!(
        "\nFriedman's function of 10 features, noise of standard deviation 1; errors are those on {} new rows.\n\n{}\n\
         Now yours:\n  nystream fit your.csv --target COLUMN --model your.nys\n  nystream predict your.nys new.csv --std\n",
        count(TEST_ROWS),
        report.to_text(),
    ))
}

/// One line a model, from the worst that makes sense to the best that is possible.
fn models(contestants: &[Contestant], spread: f64) -> Vec<Report> {
    let line = |name: &str, rmse: f64| {
        let mut line = Report::new();
        line.put("model", name).put("rmse", rmse).put("r2", 1.0 - (rmse / spread).powi(2));
        line
    };
    let mut lines = vec![line("predict the mean", spread)];
    for c in contestants {
        let rows = c.model.summary().rows;
        let mut line = line(c.name, c.rmse);
        line.put("rows", rows).put("atoms", c.model.regression().centres().len());
        line.put("rows_per_second", (rows as f64 / c.seconds) as u64);
        lines.push(line);
    }
    lines.push(line("the noise itself", 1.0));
    lines
}

fn snapshot(rows: f64, rmse: f64) -> Report {
    let mut line = Report::new();
    line.put("rows", rows as u64).put("rmse", rmse);
    line
}

fn base(args: &DemoArgs) -> FitOptions {
    FitOptions { seed: args.seed, ..FitOptions::default() }
}

fn stream(rows: u64, seed: u64) -> nystream::Result<Box<dyn RecordSource>> {
    open(&format!("synth:friedman?n={rows}&seed={seed}"), &OpenOptions::default())
}

struct Contestant {
    name: &'static str,
    model: TrainedModel,
    rmse: f64,
    seconds: f64,
}

impl Contestant {
    fn new(
        name: &'static str,
        model: TrainedModel,
        seconds: f64,
        test: &mut dyn RecordSource,
    ) -> nystream::Result<Self> {
        let rmse = error_on(&model, test)?;
        Ok(Self { name, model, rmse, seconds })
    }
}

/// Root mean squared error on the test rows.
fn error_on(model: &TrainedModel, test: &mut dyn RecordSource) -> nystream::Result<f64> {
    test.rewind()?;
    let mut block = RecordBlock::default();
    let mut predictor = model.predictor(test.schema(), test.origin())?;
    let (mut squared, mut rows) = (0.0, 0.0);
    while test.read(&mut block, 4096)? {
        predictor.predict(&block, Wanted { targets: true, deviations: false })?;
        let (values, truth) = (&predictor.predictions().values, &predictor.batch().targets);
        squared += values.iter().zip(truth).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        rows += values.len() as f64;
    }
    Ok((squared / rows).sqrt())
}

/// Standard deviation of the target, the last column.
fn target_deviation(test: &mut dyn RecordSource) -> nystream::Result<f64> {
    test.rewind()?;
    let mut block = RecordBlock::default();
    let (mut n, mut mean, mut spread) = (0.0, 0.0, 0.0);
    while test.read(&mut block, 4096)? {
        let rows = block.cells.rows();
        for i in 0..rows.len() {
            if let nystream::rows::Row::Dense(&[.., y]) = rows.row(i) {
                n += 1.0;
                let delta = y - mean;
                mean += delta / n;
                spread += delta * (y - mean);
            }
        }
    }
    Ok((spread / n).sqrt())
}

/// Runs over the stream once, solving at 1, 2, 5, 10, ... thousand rows: the error on the test rows after each.
fn learn(
    args: &DemoArgs,
    test: &mut dyn RecordSource,
    progress: &mut Progress,
) -> nystream::Result<(Vec<(f64, f64)>, Duration)> {
    let options = FitOptions { budget: args.budget as usize, ..base(args) };
    let mut source = stream(args.rows, args.seed)?;
    let first = first_pass(source.as_mut(), &options, progress)?;
    let codes = TargetCodes::of(&first.preprocessor);
    progress.stage("bandwidth");
    let choice = choose(&options, &first.sample, &codes)?;
    let kernel = choice.kernel;
    let dictionary_options = DictionaryOptions { seed: args.seed, ..DictionaryOptions::new(options.budget) };
    let (dictionary, _) = build(choice.dictionary, &kernel, first.sample.rows.rows(), &dictionary_options)?;
    progress.stage("learning the stream");
    let at = Instant::now();
    source.rewind()?;
    let mut pass = SecondPass::new(&first.preprocessor, &codes, kernel, &dictionary, true)?;
    let mut curve = Vec::new();
    let mut milestones =
        (3..).flat_map(|power| [1.0, 2.0, 5.0].map(|lead| (lead * 10f64.powi(power)) as u64)).peekable();
    loop {
        let read = pass.advance(source.as_mut())?;
        progress.rows(read, source.progress());
        let seen = pass.sums().rows();
        if read == 0 || milestones.peek().is_some_and(|&next| seen >= next) {
            while milestones.next_if(|&next| seen >= next).is_some() {}
            if curve.last().is_none_or(|&(rows, _)| (rows as u64) < seen) {
                let fit = pass.sums().solve(&kernel, &dictionary, &options.solver)?;
                let mut regression = fit.model;
                regression.shift_outputs(&codes.shift());
                let model = TrainedModel::new(first.preprocessor.clone(), regression, None, Default::default())?;
                curve.push((seen as f64, error_on(&model, test)?));
            }
        }
        if read == 0 {
            return Ok((curve, at.elapsed()));
        }
    }
}

/// The model along its first feature, the others at 1/2, beside the function it was to find.
fn slice(model: &TrainedModel) -> nystream::Result<Chart> {
    const POINTS: usize = 101;
    let features = model.preprocessor().feature_count();
    let at = |i: usize| i as f64 / (POINTS - 1) as f64;
    let data = (0..POINTS).flat_map(|i| (0..features).map(move |j| if j == 0 { at(i) } else { 0.5 })).collect();
    let mut line = MemorySource::table(model.preprocessor().feature_names(), data)?;
    let mut block = RecordBlock::default();
    line.read(&mut block, POINTS)?;
    let mut predictor = model.predictor(line.schema(), line.origin())?;
    let out = predictor.predict(&block, Wanted { targets: false, deviations: true })?;
    // Friedman's function with x₂ = … = x₅ = 1/2: 10 sin(πx₁/2) + 0 + 5 + 2.5.
    let truth = |x: f64| 10.0 * (std::f64::consts::FRAC_PI_2 * x).sin() + 7.5;
    let fitted: Vec<FitPoint> = (0..POINTS)
        .map(|i| {
            let half = Z90 * out.deviations[i];
            FitPoint { x: at(i), mean: out.values[i], lower: out.values[i] - half, upper: out.values[i] + half }
        })
        .collect();
    let truth: Vec<(f64, f64)> = (0..POINTS).map(|i| (at(i), truth(at(i)))).collect();
    let title = "What it learnt: along x1, the other features at 0.5".to_owned();
    Ok(Chart { title, ..fit_band("x1", "y", &[], &fitted, 0.9, Some(&truth)) })
}
