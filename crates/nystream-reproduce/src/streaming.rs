//! `streaming`: the streaming learner with its defaults on the real sets of the literature, test-then-train.
//!
//! Mistakes beside the best of Table 3 of the SkeGD paper (ICML 2019) at the same budgets; online mean squared error (inputs
//! and targets scaled to unit ranges) beside the best published second-order method (NONS-ALD, ICML 2023).

use std::path::Path;

use nystream::Result;
use nystream::fit::{FitOptions, Silent, first_pass};
use nystream::learner::Shuffled;
use nystream::learner::streaming::StreamingOptions;
use nystream::preprocess::Scale;
use nystream::source::{OpenOptions, open};
use serde_json::json;

use crate::findings::{Findings, Verdict};
use crate::statistics::mean;
use crate::study::{Seeds, Settings};
use crate::table::{Align, Table, count, significant};

pub(crate) const MINUTES: u32 = 10;

/// Orders of every set.
const ORDERS: u64 = 10;

/// A set, the atoms allowed, the error to reach, and the best published one.
struct Task {
    file: &'static str,
    budget: usize,
    target: f64,
    published: f64,
}

const fn task(file: &'static str, budget: usize, target: f64, published: f64) -> Task {
    Task { file, budget, target, published }
}

/// Shares of mistakes.
const CLASSES: [Task; 8] = [
    task("german.numer.libsvm.gz", 100, 0.260, 0.279),
    task("svmguide3.libsvm.gz", 100, 0.190, 0.214),
    task("spambase.libsvm.gz", 100, 0.090, 0.313),
    task("a9a.libsvm.gz", 200, 0.157, 0.185),
    task("w7a.libsvm.gz", 200, 0.024, 0.0278),
    task("ijcnn1.libsvm.gz", 200, 0.057, 0.0935),
    task("cod-rna.libsvm.gz", 200, 0.045, 0.116),
    task("covtype.binary.libsvm.gz", 200, 0.235, 0.305),
];

/// Mean squared errors; nothing is published for 400 atoms.
const NUMBERS: [Task; 6] = [
    task("elevators.csv.gz", 30, 0.0017, 0.0028),
    task("cpusmall.csv.gz", 43, 0.0018, 0.0070),
    task("california.csv.gz", 43, 0.0175, 0.0222),
    task("elevators.csv.gz", 400, 0.00125, f64::NAN),
    task("cpusmall.csv.gz", 400, 0.00130, f64::NAN),
    task("california.csv.gz", 400, 0.0150, f64::NAN),
];

pub(crate) fn run(settings: &Settings, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    let orders = settings.seeds_or(ORDERS)?;
    let limit = settings.row_limit()?;
    let folder = settings.data_folder()?;
    let mut findings = Findings::new("streaming", "The streaming learner, defaults only");
    let cut = limit.map_or_else(String::new, |rows| {
        format!(" Cut to the first {rows} rows of each order: targets are not judged.")
    });
    findings.text(format!(
        "Every row is predicted, then learnt. Nothing is tuned. Means (± standard deviations) over {} orders, seeds from {}; {} \
         threads.{cut}",
        orders.count,
        orders.first,
        rayon::current_num_threads(),
    ));
    let mut verdicts = Vec::new();
    let mut data = Vec::new();
    for (name, tasks, scale) in [
        ("Mistakes, inputs standardised", &CLASSES[..], Scale::Standard),
        ("Mean squared error, inputs and targets scaled to unit ranges", &NUMBERS[..], Scale::MinMax),
    ] {
        let columns = ["set", "rows", "atoms", "ours", "target", "best published", "rows a second"];
        let aligned: Vec<(&str, Align)> =
            columns.iter().enumerate().map(|(i, c)| (*c, if i == 0 { Align::Left } else { Align::Right })).collect();
        let mut table = Table::new(&aligned);
        for task in tasks {
            stage(&format!("streaming: {} with {} atoms", task.file, task.budget));
            let outcome = outcome(&folder.join(task.file), task.budget, scale, orders, limit)?;
            let error = mean(outcome.errors.iter().copied());
            let spread = (mean(outcome.errors.iter().map(|e| (e - error).powi(2)))).sqrt();
            table.row([
                task.file.split('.').next().unwrap_or(task.file).to_owned(),
                count(outcome.rows as u64),
                task.budget.to_string(),
                format!("{} ± {}", significant(error, 4), significant(spread, 2)),
                format!("≤ {}", task.target),
                if task.published.is_nan() { String::new() } else { task.published.to_string() },
                count(outcome.rows_per_second as u64),
            ]);
            let words = format!("{} with {} atoms: at most {}", task.file, task.budget, task.target);
            let mut verdict = Verdict::new(words, significant(error, 4), error <= task.target);
            if limit.is_some() || orders.count < ORDERS {
                verdict.met = None;
            }
            verdicts.push(verdict);
            data.push(json!({
                "set": task.file, "budget": task.budget, "rows": outcome.rows, "errors": outcome.errors,
                "target": task.target, "rows_per_second": outcome.rows_per_second,
            }));
        }
        findings.heading(name);
        findings.table(table);
    }
    findings.verdicts(verdicts);
    findings.data = json!({ "orders": orders.count, "first_seed": orders.first, "rows": limit, "runs": data });
    Ok(findings)
}

struct Outcome {
    rows: usize,
    errors: Vec<f64>,
    rows_per_second: f64,
}

fn outcome(path: &Path, budget: usize, scale: Scale, orders: Seeds, limit: Option<usize>) -> Result<Outcome> {
    let mut source = open(&path.to_string_lossy(), &OpenOptions::default())?;
    let mut options = FitOptions { sample: Some(usize::MAX), ..FitOptions::default() };
    options.table.scale = scale;
    let shuffled = Shuffled::new(first_pass(source.as_mut(), &options, &mut Silent)?);
    let unit = if shuffled.classes() { 1.0 } else { shuffled.range().powi(2) };
    let (mut errors, mut seconds, mut rows) = (Vec::new(), 0.0, 0);
    for seed in orders.each() {
        let learner = StreamingOptions { budget, ..StreamingOptions::default() };
        let run = shuffled.evaluate_first(learner, Some(seed), limit.unwrap_or(usize::MAX))?;
        let score = run.learner.score();
        errors.push(if shuffled.classes() { score.mistake_rate() } else { score.mse() / unit });
        seconds += run.time.as_secs_f64();
        rows = score.rows() as usize;
    }
    Ok(Outcome { rows, rows_per_second: rows as f64 * orders.count as f64 / seconds, errors })
}
