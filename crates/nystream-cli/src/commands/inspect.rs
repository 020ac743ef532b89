//! `nystream inspect`: what is inside a model file.

use std::path::PathBuf;

use clap::Args;
use nystream::model::{TrainedModel, Uncertainty};
use nystream::preprocess::{ColumnKind, Task};

use crate::args::{Common, task_words};
use crate::output::{Outcome, show};
use crate::report::Report;

/// Show what is inside a model file
#[derive(Debug, Args)]
#[command(after_help = "Example:
  nystream inspect houses.nys")]
pub struct InspectArgs {
    /// Model file
    model: PathBuf,
}

/// Names shown before a list is cut short.
const SHOWN: usize = 12;

pub fn run(args: &InspectArgs, common: &Common) -> Outcome {
    let model = TrainedModel::load(&args.model)?;
    let (preprocessor, regression, summary) = (model.preprocessor(), model.regression(), model.summary());
    let mut report = Report::new();
    report.put("model", args.model.display().to_string());
    if let Ok(file) = std::fs::metadata(&args.model) {
        report.put_bytes("file_bytes", file.len());
    }
    report.put("task", task_words(preprocessor));
    report.put("target", preprocessor.target_names().join(", "));
    if let Task::Classification { labels } = preprocessor.task() {
        report.put("labels", shortened(labels));
    }
    report.put("features", preprocessor.feature_count());
    if !preprocessor.is_sparse() {
        report.put("feature_names", shortened(&preprocessor.feature_names()));
        let categories = preprocessor.input_columns().filter(|c| matches!(c.kind, ColumnKind::Category { .. }));
        let categories: Vec<String> = categories.map(|column| column.name.to_owned()).collect();
        if !categories.is_empty() {
            report.put("categorical", shortened(&categories));
        }
    }
    report.put("sparse", preprocessor.is_sparse());
    report.put("scale", preprocessor.scaling().to_string());
    report.put("missing", preprocessor.missing().to_string());
    report.put("rows", summary.rows);
    if preprocessor.dropped_rows() > 0 {
        report.put("rows_dropped", preprocessor.dropped_rows());
    }
    report.put("method", summary.method.clone());
    if let Some(dictionary) = &summary.dictionary {
        report.put("dictionary", dictionary.clone());
    }
    if let Some(budget) = summary.budget {
        report.put("budget", budget);
    }
    report.put("atoms", regression.centres().len());
    report.put("kernel", regression.kernel().name());
    if let Some(bandwidth) = regression.kernel().bandwidth() {
        report.put("bandwidth", bandwidth);
    }
    if let Some(by) = &summary.bandwidth_by {
        report.put("bandwidth_by", by.clone());
    }
    report.put("ridge", summary.ridge);
    report.put("ridge_by", if summary.ridge_by_gcv { "gcv" } else { "fixed" });
    if let Some(leverage_ridge) = summary.leverage_ridge {
        report.put("leverage_ridge", leverage_ridge);
    }
    report.put("jitter", summary.jitter);
    report.put("effective_dim", summary.effective_dim);
    if let Some(captured) = summary.captured {
        report.put("captured", captured);
    }
    report.put(
        "std",
        match regression.uncertainty() {
            Some(Uncertainty::Nystrom(_) | Uncertainty::Exact(_)) => "yes",
            None => "no (fitted with --no-std)",
        },
    );
    if let (None, [rmse]) = (model.calibration(), &summary.estimated_rmse[..]) {
        report.put("estimated_rmse", *rmse);
    }
    if let Some(calibration) = model.calibration() {
        report.put("calibration_slope", calibration.slope);
    }
    report.put("seed", summary.seed);
    show(&report, common)
}

fn shortened(names: &[String]) -> String {
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(", ... ({} in all)", names.len()));
    }
    text
}
