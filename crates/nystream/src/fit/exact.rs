//! Exact kernel ridge regression on all rows of a source, held in memory.

use faer::Mat;

use super::choose::choose_kernel;
use super::codes::TargetCodes;
use super::observe::Observer;
use super::options::FitOptions;
use super::two_pass::{FirstPass, first_pass, scores_to_calibration};
use crate::error::Result;
use crate::model::{OutputLimits, Summary, TrainedModel};
use crate::solver::{Ridge, check_exact_memory, solve_exact};
use crate::source::RecordSource;

/// Rows up to which n × n numbers fit into the memory allowed.
fn most_rows(allowed_bytes: u64) -> usize {
    ((allowed_bytes / 8) as f64).sqrt() as usize
}

/// Fits a model to every row. Reads the source once, so it may be standard input.
pub fn exact(source: &mut dyn RecordSource, options: &FitOptions, observer: &mut dyn Observer) -> Result<TrainedModel> {
    options.validated()?;
    options.refuse_weights()?;
    // The sample holds everything that could be solved; a longer source is refused below.
    let all = FitOptions { sample: Some(most_rows(options.allowed_bytes) + 1), ..options.clone() };
    let FirstPass { preprocessor, sample, .. } = first_pass(source, &all, observer)?;
    check_exact_memory(preprocessor.rows(), options.allowed_bytes)?;
    let codes = TargetCodes::of(&preprocessor);
    observer.stage("bandwidth");
    let (kernel, bandwidth_by) = choose_kernel(options, &sample, &codes)?;
    observer.stage("solving");
    let mut coded = Mat::new();
    codes.encode(&sample.targets, &mut coded);
    let outputs = codes.outputs();
    let targets: Vec<f64> = (0..coded.nrows() * outputs).map(|i| coded[(i / outputs, i % outputs)]).collect();
    let fit = solve_exact(&kernel, sample.rows.rows(), &targets, &options.solver, options.allowed_bytes)?;
    let mut regression = fit.model;
    let calibration = match &codes {
        TargetCodes::Numbers { shift } => {
            let errors: Vec<f64> = fit.left_out.iter().zip(&targets).map(|(output, code)| output - code).collect();
            regression.fit_spread(sample.rows.rows(), &errors)?;
            let mut limits = OutputLimits::of(&kernel);
            limits.take_all(coded.as_ref());
            regression = regression.with_limits(limits)?;
            regression.shift_outputs(shift);
            None
        }
        TargetCodes::Classes { count } => Some(scores_to_calibration(&fit.left_out, &sample.targets, outputs, *count)?),
    };
    let summary = Summary {
        method: "exact".to_owned(),
        dictionary: None,
        rows: preprocessor.rows(),
        budget: None,
        bandwidth_by: bandwidth_by.map(str::to_owned),
        ridge: fit.choice.ridge,
        ridge_by_gcv: options.solver.ridge == Ridge::Auto,
        leverage_ridge: None,
        dictionary_leverage_ridge: None,
        jitter: fit.jitter,
        effective_dim: fit.choice.degrees_of_freedom,
        captured: None,
        estimated_rmse: fit.choice.scores.iter().map(|score| score.sqrt()).collect(),
        seed: options.seed,
    };
    TrainedModel::new(preprocessor, regression, calibration, summary)
}
