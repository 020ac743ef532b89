//! `nystream sketch`: a dictionary alone, its quality, and the guarantee checked on small data.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use nystream::fit::{Observer, TargetCodes, choose_kernel, first_pass};
use nystream::sketch::{DictionaryMethod, DictionaryOptions, build, check_guarantee};

use crate::args::{Common, KernelArgs, ReadArgs, TableArgs, fit_options};
use crate::memory::peak_bytes;
use crate::output::{Outcome, check_writable, show, write_text};
use crate::plot::leverage_profile;
use crate::progress::Progress;
use crate::report::Report;

/// Build a dictionary alone: atoms, effective dimension, captured share
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nystream sketch houses.csv --method rpcholesky --budget 200
  nystream sketch synth:waves?n=2000 --method batch-exact --budget 400 --leverage-ridge 1 --check --plot scores.svg

The dictionary is chosen among all rows, or among a uniform sample of them if there are more than --sample. --check
compares with the exact kernel matrix (at most 3,000 rows) and says whether 0 ≼ K − K̃ ≼ γ/(1−ε) K(K+γI)⁻¹ holds.")]
pub struct SketchArgs {
    /// File (CSV, LIBSVM, JSON lines, Parquet, Arrow; gzip or not), `-` for standard input, or `synth:...`
    data: String,
    /// uniform, batch-exact, two-pass-scores or rpcholesky
    #[arg(long, value_name = "METHOD", default_value = "rpcholesky")]
    method: DictionaryMethod,
    /// Most atoms (draws, for methods that draw with replacement)
    #[arg(long, value_name = "ATOMS", default_value_t = 200, allow_negative_numbers = true)]
    budget: usize,
    /// Leverage ridge γ (default: 1 for methods that draw by leverage scores, --check and --plot)
    #[arg(long, value_name = "GAMMA", allow_negative_numbers = true)]
    leverage_ridge: Option<f64>,
    /// Columns drawn in the first pass of two-pass-scores (default: the budget)
    #[arg(long, value_name = "COLUMNS", allow_negative_numbers = true)]
    first_pass: Option<usize>,
    /// Rows kept in memory to choose from
    #[arg(long, value_name = "ROWS", default_value_t = 10_000, allow_negative_numbers = true)]
    sample: usize,
    /// Verify the guarantee against the exact kernel matrix
    #[arg(long)]
    check: bool,
    /// ε of the guarantee, from 0 to below 1 (default: 0.5)
    #[arg(long, value_name = "EPSILON", requires = "check", allow_negative_numbers = true)]
    accuracy: Option<f64>,
    /// Where to write the atoms as CSV: row number (from 1) and weight
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where to draw the leverage scores, largest first, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Of all random choices
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    kernel: KernelArgs,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// γ of the scores that are drawn or checked where none is given and the method itself needs none.
const SHOWN_LEVERAGE_RIDGE: f64 = 1.0;

pub fn run(args: &SketchArgs, common: &Common) -> Outcome {
    let start = Instant::now();
    let mut options = fit_options(&args.table, &args.kernel, args.seed)?;
    options.budget = args.budget;
    options.sample = Some(args.sample);
    options.leverage_ridge = args.leverage_ridge;
    options.validated()?;
    if args.first_pass.is_some() && args.method != DictionaryMethod::TwoPassScores {
        return Err(nystream::Error::InvalidParam {
            name: "first-pass",
            found: format!("an option of two-pass-scores with --method {}", args.method),
            expected: "--method two-pass-scores",
        }
        .into());
    }
    let shown = (args.check || args.plot.is_some()).then_some(SHOWN_LEVERAGE_RIDGE);
    let leverage_ridge = args.leverage_ridge.or(args.method.default_leverage_ridge()).or(shown);

    for path in args.out.iter().chain(&args.plot) {
        check_writable(path)?;
    }
    let mut source = args.read.open(&args.data)?;
    let mut progress = Progress::new(!common.quiet && !common.json);
    let first = first_pass(source.as_mut(), &options, &mut progress)?;
    progress.stage("bandwidth");
    let (kernel, bandwidth_by) = choose_kernel(&options, &first.sample, &TargetCodes::of(&first.preprocessor))?;
    progress.stage("dictionary");
    let rows = first.sample.rows.rows();
    let dictionary_options =
        DictionaryOptions { budget: args.budget, leverage_ridge, seed: args.seed, first_pass: args.first_pass };
    let built_at = Instant::now();
    let (dictionary, info) = build(args.method, &kernel, rows, &dictionary_options)?;
    let learnt = built_at.elapsed();
    let check = if args.check {
        progress.stage("check against the exact kernel matrix");
        let accuracy = args.accuracy.unwrap_or(0.5);
        Some((accuracy, check_guarantee(&kernel, rows, &dictionary, leverage_ridge, accuracy)?))
    } else {
        None
    };
    progress.finish();

    if let Some(path) = &args.out {
        let mut text = String::from("row,weight\n");
        for (&index, weight) in dictionary.indices().iter().zip(dictionary.weights()) {
            let _ = writeln!(text, "{},{weight}", first.sample_rows[index as usize] + 1);
        }
        write_text(path, &text)?;
    }
    if let (Some(path), Some(profile)) = (&args.plot, &info.leverage_profile) {
        write_text(path, &leverage_profile(profile).to_svg(800, 500))?;
    }
    let mut report = Report::new();
    report.put("method", args.method.to_string());
    report.put("rows", first.preprocessor.rows());
    report.put("rows_used", rows.len());
    report.put("budget", args.budget);
    report.put("atoms", dictionary.len());
    report.put("kernel", kernel.name());
    if let (Some(bandwidth), Some(by)) = (kernel.bandwidth(), bandwidth_by) {
        report.put("bandwidth", bandwidth);
        report.put("bandwidth_by", by);
    }
    if let Some(leverage_ridge) = leverage_ridge {
        report.put("leverage_ridge", leverage_ridge);
    }
    if let Some(effective_dim) = check.as_ref().map(|(_, c)| c.effective_dim).or(info.effective_dim) {
        report.put("effective_dim", effective_dim);
    }
    report.put("captured", info.captured);
    if let Some((accuracy, check)) = &check {
        report.put("accuracy_epsilon", *accuracy);
        report.put("bound_holds", check.bound_holds);
        report.put("bound_ratio", check.bound_ratio);
        report.put("spectral_error", check.spectral_error);
    }
    report.put_seconds("seconds_learn", learnt);
    report.put_seconds("seconds_total", start.elapsed());
    report.put_bytes("peak_bytes", peak_bytes());
    show(&report, common)
}
