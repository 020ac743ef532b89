//! A trained model: everything needed to predict from raw records.

use serde::{Deserialize, Deserializer, Serialize};

use super::calibration::{Calibration, class_scores};
use super::kernel_model::{KernelModel, PredictWorkspace};
use crate::error::{Error, Result};
use crate::preprocess::{Batch, Binding, Preprocessor, Task};
use crate::rows::Rows;
use crate::source::{RecordBlock, Schema};

/// How a model came to be, for people and reports.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// `two-pass`, `exact`, ...
    pub method: String,
    /// How the atoms were chosen.
    pub dictionary: Option<String>,
    /// Rows learnt from.
    pub rows: u64,
    /// Most atoms allowed.
    pub budget: Option<usize>,
    /// How the bandwidth was found: `auto`, `median`, `alignment`, `fixed`; none for kernels without one.
    pub bandwidth_by: Option<String>,
    /// μ.
    pub ridge: f64,
    /// Whether μ was chosen by generalised cross-validation.
    pub ridge_by_gcv: bool,
    /// γ in force.
    pub leverage_ridge: Option<f64>,
    /// γ at which the atoms were drawn, where a sequential dictionary drew them.
    #[serde(default)]
    pub dictionary_leverage_ridge: Option<f64>,
    /// Added to diagonals by factorisations.
    pub jitter: f64,
    /// Degrees of freedom of the fit.
    pub effective_dim: f64,
    /// Share of kernel energy that the atoms span.
    pub captured: Option<f64>,
    /// Root of the generalised cross-validation score of each output: an estimate of the error on new rows.
    /// Not a number where there is none, as with a single row.
    #[serde(deserialize_with = "numbers_or_null")]
    pub estimated_rmse: Vec<f64>,
    /// Of all random choices.
    pub seed: u64,
}

/// JSON has no word for what is not finite: it is written as null.
fn numbers_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<f64>, D::Error> {
    let numbers = Vec::<Option<f64>>::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

/// A model with its preprocessing, ready to predict from records.
#[derive(Debug, Clone)]
pub struct TrainedModel {
    pub(super) preprocessor: Preprocessor,
    pub(super) regression: KernelModel,
    pub(super) calibration: Option<Calibration>,
    pub(super) summary: Summary,
}

/// Predictions of a block of rows.
#[derive(Debug, Default, Clone)]
pub struct Predictions {
    /// Number of rows.
    pub rows: usize,
    /// Row-major: the targets; for classification the class index.
    pub values: Vec<f64>,
    /// Row-major, beside `values`: standard deviations; empty if not asked for or a classification.
    pub deviations: Vec<f64>,
    /// Row-major: class probabilities; empty for regression.
    pub probabilities: Vec<f64>,
    outputs: Vec<f64>,
}

impl TrainedModel {
    /// Puts a model together, checking that its parts fit.
    pub fn new(
        preprocessor: Preprocessor,
        regression: KernelModel,
        calibration: Option<Calibration>,
        summary: Summary,
    ) -> Result<Self> {
        let width = regression.centres().rows().cols();
        if preprocessor.feature_count() != width {
            return Err(Error::Shape { what: "atom features", found: width, expected: preprocessor.feature_count() });
        }
        let expected = match preprocessor.task() {
            Task::Regression { targets } => *targets,
            Task::Classification { labels } => {
                let found = calibration.as_ref().map_or(0, Calibration::classes);
                if found != labels.len() {
                    return Err(Error::Shape { what: "calibrated classes", found, expected: labels.len() });
                }
                if labels.len() == 2 { 1 } else { labels.len() }
            }
        };
        if regression.outputs() != expected {
            return Err(Error::Shape { what: "outputs", found: regression.outputs(), expected });
        }
        Ok(Self { preprocessor, regression, calibration, summary })
    }

    /// What maps records to rows.
    pub fn preprocessor(&self) -> &Preprocessor {
        &self.preprocessor
    }
    /// The kernel expansion.
    pub fn regression(&self) -> &KernelModel {
        &self.regression
    }
    /// The map from scores to probabilities, for classification.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }
    /// How the model came to be.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
    /// Names of the classes; empty for regression.
    pub fn labels(&self) -> &[String] {
        self.preprocessor.labels()
    }
    /// The same model without what standard deviations need: a smaller file.
    pub fn without_uncertainty(mut self) -> Self {
        self.regression = self.regression.without_uncertainty();
        self
    }

    /// Checks that a source has the features of the training data, and gets ready to predict its records.
    pub fn predictor(&self, schema: &Schema, origin: &str) -> Result<Predictor<'_>> {
        Ok(Predictor {
            model: self,
            binding: self.preprocessor.bind(schema, origin)?,
            batch: Batch::default(),
            workspace: PredictWorkspace::default(),
            out: Predictions::default(),
        })
    }

    /// Predicts rows that are already preprocessed.
    pub fn predict_rows(
        &self,
        rows: Rows,
        with_std: bool,
        workspace: &mut PredictWorkspace,
        out: &mut Predictions,
    ) -> Result<()> {
        out.rows = rows.len();
        out.deviations.clear();
        out.probabilities.clear();
        out.values.clear();
        let Some(calibration) = &self.calibration else {
            return if with_std {
                self.regression.predict_with_std(rows, workspace, &mut out.values, &mut out.deviations)
            } else {
                self.regression.predict(rows, workspace, &mut out.values)
            };
        };
        self.regression.predict(rows, workspace, &mut out.outputs)?;
        let classes = calibration.classes();
        out.probabilities.resize(rows.len() * classes, 0.0);
        let mut scores = vec![0.0; classes];
        for (outputs, probabilities) in
            out.outputs.chunks_exact(self.regression.outputs()).zip(out.probabilities.chunks_exact_mut(classes))
        {
            class_scores(outputs, classes, &mut scores);
            calibration.probabilities(&scores, probabilities);
            let best = (1..classes).fold(0, |best, c| if probabilities[c] > probabilities[best] { c } else { best });
            out.values.push(best as f64);
        }
        Ok(())
    }
}

/// Predicts the records of one source, block by block, in reused memory.
#[derive(Debug)]
pub struct Predictor<'a> {
    model: &'a TrainedModel,
    binding: Binding,
    batch: Batch,
    workspace: PredictWorkspace,
    out: Predictions,
}

/// What to find out about records besides their predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The true targets, left in [`Predictor::batch`].
    pub targets: bool,
    /// Standard deviations.
    pub deviations: bool,
}

impl Predictor<'_> {
    /// Whether the source has the targets.
    pub fn has_targets(&self) -> bool {
        self.binding.has_targets()
    }

    /// Predicts a block of records.
    pub fn predict(&mut self, block: &RecordBlock, wanted: Wanted) -> Result<&Predictions> {
        self.model.preprocessor.transform(&self.binding, block, &mut self.batch, wanted.targets)?;
        self.model.predict_rows(self.batch.rows.rows(), wanted.deviations, &mut self.workspace, &mut self.out)?;
        Ok(&self.out)
    }

    /// The rows of the last block, and their targets if they were wanted.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The predictions of the last block.
    pub fn predictions(&self) -> &Predictions {
        &self.out
    }
}
