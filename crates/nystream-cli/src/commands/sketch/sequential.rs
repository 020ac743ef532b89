//! Sequential methods: a dictionary that follows the stream, from nothing or from a file.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use nystream::Error;
use nystream::fit::{Bandwidth, SavedSketch, SketchSettings, Watch, sketch};
use nystream::sketch::{DictionaryMethod, SequentialDictionary, check_guarantee};

use super::matching::require_matching;
use super::{SAMPLE, SketchArgs};
use crate::args::{Common, fit_options};
use crate::commands::describe::{put_columns, put_sketch};
use crate::memory::peak_bytes;
use crate::output::{Outcome, check_writable, show, write_text};
use crate::plot::{dictionary_growth, side_by_side};
use crate::progress::Progress;
use crate::report::Report;

pub fn run(args: &SketchArgs, method: DictionaryMethod, common: &Common) -> Outcome {
    let start = Instant::now();
    let mut watch = Watch::new(args.plot.is_some(), args.check);
    let begin = prepare(args, method)?;
    for path in args.out.iter().chain(&args.plot).chain(&args.stream.save) {
        check_writable(path)?;
    }
    let mut source = args.read.open(&args.data)?;
    let mut progress = Progress::new(!common.quiet && !common.json);
    let learning = Instant::now();
    let (saved, before) = match begin {
        Begin::New(options, settings) => (sketch(source.as_mut(), &options, &settings, &mut watch, &mut progress)?, 0),
        Begin::From(mut saved) => {
            let before = saved.sketch().rows();
            saved.follow(source.as_mut(), &mut watch, &mut progress)?;
            (*saved, before)
        }
    };
    let learnt = learning.elapsed();
    let dictionary = saved.sketch().dictionary()?;
    let account = saved.sketch().report()?;
    let check = match watch.kept() {
        Some(rows) => {
            nystream::fit::Observer::stage(&mut progress, "check against the exact kernel matrix");
            let accuracy = account.theorem.accuracy;
            Some(check_guarantee(saved.sketch().kernel(), rows.rows(), &dictionary, None, accuracy)?)
        }
        None => None,
    };
    progress.finish();

    if let Some(path) = &args.out {
        let mut text = String::from("row,weight\n");
        for (index, weight) in dictionary.indices().iter().zip(dictionary.weights()) {
            let _ = writeln!(text, "{},{weight}", index + 1);
        }
        write_text(path, &text)?;
    }
    if let (Some(path), Some(trace)) = (&args.plot, watch.trace()) {
        let charts = dictionary_growth(trace.points());
        write_text(path, &side_by_side(&charts, 700 * charts.len() as u32, 450))?;
    }
    if let Some(path) = &args.stream.save {
        saved.save(path)?;
    }

    let mut report = Report::new();
    if let Some(path) = &args.stream.save {
        report.put("saved", path.display().to_string());
    }
    let read = account.rows - before;
    if before > 0 {
        report.put("rows_read", read);
    }
    put_columns(&mut report, saved.preprocessor());
    put_sketch(&mut report, &saved, &account);
    if let Some(check) = &check {
        report.put("bound_holds", check.bound_holds);
        report.put("bound_ratio", check.bound_ratio);
        report.put("spectral_error", check.spectral_error);
        report.put("exact_effective_dim", check.effective_dim);
        report.put("exact_captured", check.captured);
    }
    report.put_seconds("seconds_learn", learnt);
    report.put_seconds("seconds_total", start.elapsed());
    report.put("rows_per_second", read as f64 / learnt.as_secs_f64().max(1e-9));
    report.put_bytes("peak_bytes", peak_bytes());
    show(&report, common)
}

enum Begin {
    New(Box<nystream::fit::FitOptions>, SketchSettings),
    From(Box<SavedSketch>),
}

/// Checks the options before any data is read.
fn prepare(args: &SketchArgs, method: DictionaryMethod) -> nystream::Result<Begin> {
    let stream = &args.stream;
    if let Some(path) = stream.resume.as_ref().or(stream.like.as_ref()) {
        let saved = SavedSketch::load(path)?;
        return Ok(Begin::From(Box::new(from_file(args, path, saved)?)));
    }
    let seed = args.seed.unwrap_or(0);
    let mut options = fit_options(&args.table, &args.kernel, seed)?;
    if args.sample.is_some() && (matches!(options.bandwidth, Bandwidth::Fixed(_)) || !options.kernel.has_bandwidth()) {
        return Err(Error::InvalidParam {
            name: "sample",
            found: format!("this option with --method {method} and no bandwidth to choose"),
            expected: "--bandwidth auto, median or alignment",
        });
    }
    let usual = SketchSettings::new(method);
    let settings = SketchSettings {
        leverage_ridge: args.leverage_ridge.unwrap_or(usual.leverage_ridge),
        accuracy: args.accuracy.unwrap_or(usual.accuracy),
        failure_prob: stream.failure_prob.unwrap_or(usual.failure_prob),
        copies: stream.oversampling.unwrap_or_default(),
        budget: args.most_atoms()?,
        budget_bytes: stream.budget_bytes,
        schedule: args.schedule()?,
        seed,
        ..usual
    };
    // Trials that choose the bandwidth have as many atoms, at most.
    options.budget = settings.budget.unwrap_or(options.budget);
    options.sample = Some(args.sample.unwrap_or(SAMPLE));
    options.validated()?;
    settings.validated()?;
    Ok(Begin::New(Box::new(options), settings))
}

fn from_file(args: &SketchArgs, path: &Path, saved: SavedSketch) -> nystream::Result<SavedSketch> {
    require_matching(args, path, &saved)?;
    if args.stream.like.is_some() {
        return saved.empty_like(args.seed.unwrap_or(saved.sketch().seed()));
    }
    if args.check {
        return Err(Error::InvalidParam {
            name: "check",
            found: "this option with --resume".to_owned(),
            expected: "none: the rows before are not at hand to be compared with",
        });
    }
    Ok(saved)
}
