//! Fitted models: predictions, their standard deviations, class probabilities.

mod calibration;
mod kernel_model;
mod uncertainty;

pub use calibration::Calibration;
pub use kernel_model::{KernelModel, PredictWorkspace};
pub use uncertainty::{ExactPosterior, NystromPosterior, Uncertainty};
