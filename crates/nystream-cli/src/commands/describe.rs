//! What several commands say about a sketch.

use nystream::fit::SavedSketch;
use nystream::sketch::{Schedule, SequentialDictionary, SketchReport};

use crate::report::Report;

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
