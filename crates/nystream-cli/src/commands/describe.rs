//! What several commands say about a sketch or a learner.

use std::time::Duration;

use nystream::Error;
use nystream::fit::SavedSketch;
use nystream::learner::StreamPass;
use nystream::learner::streaming::Status;
use nystream::preprocess::Preprocessor;
use nystream::sketch::{Schedule, SequentialDictionary, SketchReport};
use nystream::solver::Ridge;
use serde_json::json;

use crate::args::task_words;
use crate::report::Report;

/// An error about the rows of a whole stream, with the name of its data.
pub fn about_rows(error: Error, origin: &str) -> Error {
    match error {
        Error::InvalidParam { name: "rows", found, expected } => {
            let (origin, expected) = (origin.to_owned(), expected.to_owned());
            Error::Input { origin, row: 0, column: None, found, expected }
        }
        other => other,
    }
}

/// Adds the errors of predictions made before their rows were learnt: over all rows, and over the last ones.
pub fn put_errors(report: &mut Report, status: &Status, classes: bool, targets: &[String]) {
    let (name, all, recent) = if classes {
        ("mistake_rate", status.mistake_rate, status.recent_mistake_rate)
    } else {
        ("mse", status.mse, status.recent_mse)
    };
    report.put(name, all);
    report.put(&format!("recent_{name}"), recent);
    put_each(report, &status.errors_each, targets);
}

/// Adds the errors of each of several targets, over all rows and over the last ones: their sum says little where units differ.
pub fn put_each(report: &mut Report, errors: &[(f64, f64)], targets: &[String]) {
    let line = |((all, recent), target): (&(f64, f64), &String)| {
        let mut line = Report::new();
        line.put("target", target.clone()).put("mse", *all).put("recent_mse", *recent);
        line
    };
    if !errors.is_empty() {
        report.put_list("targets", errors.iter().zip(targets).map(line).collect());
    }
}

/// Adds how a streaming learner stands.
pub fn put_stream(report: &mut Report, pass: &StreamPass, status: &Status) {
    let options = pass.learner().options();
    report.put("task", task_words(pass.preprocessor()));
    report.put("target", pass.preprocessor().target_names().join(", "));
    let streams = pass.streams();
    report.put_as("streams", streams, if streams > 1 { format!("{streams}, merged") } else { streams.to_string() });
    report.put("rows", status.rows);
    report.put("rows_waiting", status.waiting);
    report.put("features", pass.preprocessor().feature_count());
    report.put("budget", options.budget);
    report.put("atoms", status.atoms);
    if let Some(method) = pass.learner().dictionary_method() {
        report.put("dictionary", method.to_string());
    }
    if let Some(kernel) = &status.kernel {
        report.put("kernel", kernel.name());
        if let Some(bandwidth) = kernel.bandwidth() {
            report.put("bandwidth", bandwidth);
            report.put("bandwidth_by", options.bandwidth.word());
        }
    }
    report.put("competing", status.competing);
    report.put("ridge", status.ridge);
    report.put("ridge_by", if options.ridge == Ridge::Auto { "gcv" } else { "fixed" });
    report.put("half_life", options.half_life);
    report.put("reopen", options.reopen.to_string());
    if let Some(loss) = status.loss {
        report.put("loss", loss.to_string());
    }
    report.put("leverage_ridge", status.leverage_ridge);
    report.put("effective_dim", status.effective_dim);
    report.put("captured", status.captured);
    put_decision(report, status);
    put_changes(report, status);
    put_errors(report, status, pass.is_classification(), pass.preprocessor().target_names());
    report.put("seed", options.seed);
    report.put_bytes("bytes_held", pass.size_bytes() as u64);
}

/// Adds how two classes are told apart: the loss, the share of rows beyond the margin, and where.
pub fn put_decision(report: &mut Report, status: &Status) {
    if let (Some(threshold), Some(loss)) = (status.threshold, status.loss) {
        report.put("loss", loss.to_string());
        report.put("passed_over", status.passed_over);
        report.put("threshold", threshold);
    }
}

/// Adds how well recent rows are spanned, and changes of atoms if there were any.
pub fn put_changes(report: &mut Report, status: &Status) {
    if let Some(captured) = status.recent_captured {
        report.put("recent_captured", captured);
    }
    report.put("atom_changes", status.changes);
    if let Some(change) = &status.last_change {
        let text = format!(
            "after row {}: {} new atoms, {:.3} of recent energy captured where it was {:.3}, {:.4} of the sums lost",
            change.rows, change.new_atoms, change.captured_after, change.captured_before, change.lost
        );
        let value = json!({
            "rows": change.rows,
            "new_atoms": change.new_atoms,
            "lost": change.lost,
            "captured_before": change.captured_before,
            "captured_after": change.captured_after,
        });
        report.put_as("last_atom_change", value, text);
    }
}

/// Rounded: more digits would say nothing.
pub fn rows_per_second(rows: u64, time: Duration) -> f64 {
    (rows as f64 / time.as_secs_f64().max(1e-9)).round()
}

/// Adds how many features the rows of a dictionary have, and the columns that are none because they are targets, so that who has
/// data without a target sees that its last column was taken for one.
pub fn put_columns(report: &mut Report, preprocessor: &Preprocessor) {
    report.put("features", preprocessor.feature_count());
    report.put("target", preprocessor.target_names().join(", "));
}

/// Adds a sequential dictionary's account of itself, with its settings.
pub fn put_sketch(report: &mut Report, saved: &SavedSketch, account: &SketchReport) {
    let sketch = saved.sketch();
    report.put("method", sketch.method());
    report.put("rows", account.rows);
    if let Some(budget) = sketch.budget() {
        report.put("budget", budget);
    }
    if let Some(bytes) = sketch.squeak_options().and_then(|options| options.budget_bytes) {
        report.put_bytes("budget_bytes", bytes);
    }
    report.put("atoms", account.atoms);
    report.put("copies", account.copies);
    report.put("kernel", sketch.kernel().name());
    if let Some(bandwidth) = sketch.kernel().bandwidth() {
        report.put("bandwidth", bandwidth);
    }
    if let Some(by) = saved.bandwidth_by() {
        report.put("bandwidth_by", by);
    }
    report.put("leverage_ridge", account.leverage_ridge);
    report.put("initial_leverage_ridge", account.initial_leverage_ridge);
    report.put("effective_dim", account.effective_dim);
    report.put("captured", account.captured);
    report.put("oversampling", account.oversampling);
    if let Some(options) = sketch.squeak_options() {
        match options.schedule {
            Schedule::PerPoint => report.put("schedule", "per-point"),
            Schedule::Blocks { rows } => report.put("schedule", "block").put("block", rows),
            Schedule::Lazy { rows, growth } => report.put("schedule", "lazy").put("block", rows).put("growth", growth),
        };
    }
    let theorem = &account.theorem;
    report.put("accuracy_epsilon", theorem.accuracy);
    report.put("failure_prob", theorem.failure_prob);
    report.put("score_factor", theorem.score_factor);
    report.put("dimension_factor", theorem.dimension_factor);
    report.put("theorem_oversampling", theorem.oversampling);
    report.put("theorem_atoms", theorem.atoms);
    report.put("error_bound", theorem.error_bound);
    report.put("promised", theorem.promised);
    if let Some(jitter) = sketch.jitter().filter(|jitter| *jitter > 0.0) {
        report.put("jitter", jitter);
    }
    if let Some(steps) = sketch.unreliable_steps().filter(|steps| *steps > 0) {
        report.put("unreliable_steps", steps);
    }
    report.put_bytes("bytes", account.bytes);
}
