//! Batch methods: a dictionary of rows held in memory.

use std::fmt::Write as _;
use std::time::Instant;

use nystream::fit::{Observer, TargetCodes, choose_kernel, first_pass};
use nystream::sketch::{DictionaryMethod, DictionaryOptions, build, check_guarantee};

use super::{SAMPLE, SketchArgs};
use crate::args::{Common, fit_options};
use crate::commands::describe::put_columns;
use crate::memory::peak_bytes;
use crate::output::{Outcome, check_writable, show, write_text};
use crate::plot::leverage_profile;
use crate::progress::Progress;
use crate::report::Report;

/// γ of the scores that are drawn or checked where none is given and the method itself needs none.
const SHOWN_LEVERAGE_RIDGE: f64 = 1.0;

pub fn run(args: &SketchArgs, method: DictionaryMethod, common: &Common) -> Outcome {
    let start = Instant::now();
    let seed = args.seed.unwrap_or(0);
    let mut options = fit_options(&args.table, &args.kernel, seed)?;
    let budget = args.most_atoms()?.ok_or_else(|| nystream::Error::InvalidParam {
        name: "budget",
        found: format!("none with --method {method}"),
        expected: "a number of atoms, or a sequential method",
    })?;
    options.budget = budget;
    options.sample = Some(args.sample.unwrap_or(SAMPLE));
    options.leverage_ridge = args.leverage_ridge;
    options.validated()?;
    let shown = (args.check || args.plot.is_some()).then_some(SHOWN_LEVERAGE_RIDGE);
    let leverage_ridge = args.leverage_ridge.or(method.default_leverage_ridge()).or(shown);

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
    let dictionary_options = DictionaryOptions { budget, leverage_ridge, seed, first_pass: args.first_pass };
    let built_at = Instant::now();
    let (dictionary, info) = build(method, &kernel, rows, &dictionary_options)?;
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
    report.put("method", method.to_string());
    report.put("rows", first.preprocessor.rows());
    report.put("rows_used", rows.len());
    put_columns(&mut report, &first.preprocessor);
    report.put("budget", budget);
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
