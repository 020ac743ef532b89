//! `nystream inspect`: what is inside a model, sketch or checkpoint file.

use std::path::PathBuf;

use clap::Args;
use nystream::fit::SavedSketch;
use nystream::learner::StreamPass;
use nystream::learner::streaming::KIND;
use nystream::model::TrainedModel;
use nystream::persist::Container;
use nystream::preprocess::{ColumnKind, Preprocessor, Task};
use nystream::sketch::SequentialDictionary;

use super::describe::{put_sketch, put_stream};

use crate::args::{Common, task_words};
use crate::output::{Outcome, show};
use crate::report::{DIGITS, Report};
use crate::table::significant;

/// Show what is inside a model, sketch or checkpoint file
#[derive(Debug, Args)]
#[command(after_help = "Example:
  nystream inspect houses.nys")]
pub struct InspectArgs {
    /// Model, sketch or checkpoint of a stream
    model: PathBuf,
}

/// Names shown before a list is cut short.
const SHOWN: usize = 12;

pub fn run(args: &InspectArgs, common: &Common) -> Outcome {
    let file = Container::load(&args.model)?;
    let mut report = Report::new();
    report.put("model", args.model.display().to_string());
    if let Ok(about) = std::fs::metadata(&args.model) {
        report.put_bytes("file_bytes", about.len());
    }
    if file.kind == KIND {
        let pass = StreamPass::from_container(file)?;
        put_stream(&mut report, &pass, &pass.learner().status()?);
        put_columns(&mut report, pass.preprocessor());
        return show(&report, common);
    }
    if file.kind == "sketch" {
        let saved = SavedSketch::from_container(file)?;
        report.put("target", saved.preprocessor().target_names().join(", "));
        put_columns(&mut report, saved.preprocessor());
        put_sketch(&mut report, &saved, &saved.sketch().report()?);
        report.put("seed", saved.sketch().seed());
        return show(&report, common);
    }
    let model = TrainedModel::from_container(file)?;
    let (preprocessor, regression, summary) = (model.preprocessor(), model.regression(), model.summary());
    report.put("task", task_words(preprocessor));
    report.put("target", preprocessor.target_names().join(", "));
    if let Task::Classification { labels } = preprocessor.task() {
        report.put("labels", shortened(labels));
    }
    put_columns(&mut report, preprocessor);
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
    if let Some(leverage_ridge) = summary.dictionary_leverage_ridge {
        report.put("dictionary_leverage_ridge", leverage_ridge);
    }
    report.put("jitter", summary.jitter);
    report.put("effective_dim", summary.effective_dim);
    if let Some(captured) = summary.captured {
        report.put("captured", captured);
    }
    // As `predict --std` has it: of classes there are probabilities instead.
    match (model.calibration(), regression.uncertainty()) {
        (Some(_), _) => report.put_as("std", false, "no (classes have probabilities)"),
        (None, Some(_)) => report.put("std", true),
        (None, None) => report.put_as("std", false, "no (fitted with --no-std)"),
    };
    if let (None, [rmse]) = (model.calibration(), &summary.estimated_rmse[..]) {
        report.put("estimated_rmse", *rmse);
    }
    let ends: Vec<(f64, f64)> = regression.limits().ends().collect();
    if !ends.is_empty() {
        let shown: Vec<String> = ends
            .iter()
            .map(|&(low, high)| format!("{} to {}", significant(low, DIGITS), significant(high, DIGITS)))
            .collect();
        let ends: Vec<Vec<f64>> = ends.into_iter().map(|(low, high)| vec![low, high]).collect();
        report.put_as("outputs_within", ends, shortened(&shown));
    }
    if let Some(calibration) = model.calibration() {
        report.put("calibration_slope", calibration.slope);
    }
    report.put("seed", summary.seed);
    show(&report, common)
}

fn put_columns(report: &mut Report, preprocessor: &Preprocessor) {
    report.put("features", preprocessor.feature_count());
    if !preprocessor.is_sparse() {
        report.put("feature_names", shortened(&preprocessor.feature_names()));
        let categories = preprocessor.input_columns().filter(|c| matches!(c.kind, ColumnKind::Category { .. }));
        let categories: Vec<String> = categories.map(|column| column.name.to_owned()).collect();
        if !categories.is_empty() {
            report.put("categorical", shortened(&categories));
        }
    }
    if let Some(weights) = preprocessor.weight_name() {
        report.put("weights", weights.to_owned());
    }
    report.put("sparse", preprocessor.is_sparse());
    report.put("scale", preprocessor.scaling().to_string());
    report.put("missing", preprocessor.missing().to_string());
}

fn shortened(names: &[String]) -> String {
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(", ... ({} in all)", names.len()));
    }
    text
}
