//! `nystream inspect`: what is inside a model file.

use std::path::PathBuf;

use clap::Args;
use nystream::model::{TrainedModel, Uncertainty};
use nystream::preprocess::{ColumnKind, Task};

use crate::args::{Common, task_words};
use crate::output::Outcome;
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
    report.add("model", args.model.display().to_string());
    if let Ok(file) = std::fs::metadata(&args.model) {
        report.add("file_bytes", file.len());
    }
    report.add("task", task_words(preprocessor));
    report.add("target", preprocessor.target_names().join(", "));
    if let Task::Classification { labels } = preprocessor.task() {
        report.add("labels", shortened(labels));
    }
    report.add("features", preprocessor.feature_count());
    if !preprocessor.is_sparse() {
        report.add("feature_names", shortened(&preprocessor.feature_names()));
        let categories = preprocessor.input_columns().filter(|c| matches!(c.kind, ColumnKind::Category { .. }));
        let categories: Vec<String> = categories.map(|column| column.name.to_owned()).collect();
        if !categories.is_empty() {
            report.add("categorical", shortened(&categories));
        }
    }
    report.add("sparse", preprocessor.is_sparse());
    report.add("scale", preprocessor.scaling().to_string());
    report.add("missing", preprocessor.missing().to_string());
    report.add("rows", summary.rows);
    if preprocessor.dropped_rows() > 0 {
        report.add("rows_dropped", preprocessor.dropped_rows());
    }
    report.add("method", summary.method.clone());
    if let Some(dictionary) = &summary.dictionary {
        report.add("dictionary", dictionary.clone());
    }
    if let Some(budget) = summary.budget {
        report.add("budget", budget);
    }
    report.add("atoms", regression.centres().len());
    report.add("kernel", regression.kernel().name());
    if let Some(bandwidth) = regression.kernel().bandwidth() {
        report.add("bandwidth", bandwidth);
    }
    if let Some(by) = &summary.bandwidth_by {
        report.add("bandwidth_by", by.clone());
    }
    report.add("ridge", summary.ridge);
    report.add("ridge_by", if summary.ridge_by_gcv { "gcv" } else { "fixed" });
    if let Some(leverage_ridge) = summary.leverage_ridge {
        report.add("leverage_ridge", leverage_ridge);
    }
    report.add("jitter", summary.jitter);
    report.add("effective_dim", summary.effective_dim);
    if let Some(captured) = summary.captured {
        report.add("captured", captured);
    }
    report.add("std", match regression.uncertainty() {
        Some(Uncertainty::Nystrom(_) | Uncertainty::Exact(_)) => "yes",
        None => "no (fitted with --no-std)",
    });
    if let (None, [rmse]) = (model.calibration(), &summary.estimated_rmse[..]) {
        report.add("estimated_rmse", *rmse);
    }
    if let Some(calibration) = model.calibration() {
        report.add("calibration_slope", calibration.slope);
    }
    report.add("seed", summary.seed);
    report.print(common)
}

fn shortened(names: &[String]) -> String {
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(", ... ({} in all)", names.len()));
    }
    text
}
