//! Fitted models: predictions, their standard deviations, class probabilities, files.

mod calibration;
mod file;
mod kernel_model;
mod limits;
mod spread;
mod trained;
mod uncertainty;

pub use calibration::Calibration;
pub(crate) use calibration::class_scores;
pub use kernel_model::{KernelModel, PredictWorkspace};
pub use limits::OutputLimits;
pub use trained::{Predictions, Predictor, Summary, TrainedModel, Wanted};
pub use uncertainty::{ExactPosterior, NystromPosterior, Uncertainty};
