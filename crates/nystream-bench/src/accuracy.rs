//! Our defaults beside scikit-learn's Nystroem(1000) + Ridge tuned by cross-validation, on real data.
//!
//! Reads the sets from `NYSTREAM_DATA`; the peer splits them 90/10 with the seed and leaves both parts as CSV, so
//! that both sides see the same rows.

use std::path::Path;
use std::time::Instant;

use nystream::fit::{FitOptions, Silent, two_pass};
use nystream::model::{TrainedModel, Wanted};
use nystream::source::{OpenOptions, RecordBlock, open};

/// Fits the training part with defaults and returns the model, its error on the test part, and the seconds.
pub fn ours(folder: &Path, set: &str, seed: u64) -> nystream::Result<(TrainedModel, f64, f64)> {
    let path = |part: &str| folder.join(format!("{set}.{part}.csv")).display().to_string();
    let start = Instant::now();
    let mut train = open(&path("train"), &OpenOptions::default())?;
    let model = two_pass(train.as_mut(), &FitOptions { seed, ..FitOptions::default() }, &mut Silent)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut test = open(&path("test"), &OpenOptions::default())?;
    let mut block = RecordBlock::default();
    let mut predictor = model.predictor(test.schema(), test.origin())?;
    let (mut squared, mut rows) = (0.0, 0.0);
    while test.read(&mut block, 4096)? {
        predictor.predict(&block, Wanted { targets: true, deviations: false })?;
        let (values, truth) = (&predictor.predictions().values, &predictor.batch().targets);
        squared += values.iter().zip(truth).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        rows += values.len() as f64;
    }
    drop(predictor);
    Ok((model, (squared / rows).sqrt(), seconds))
}

/// Prints our error on each set whose parts lie in `folder`.
pub fn run(folder: &Path, sets: &[String], seed: u64) -> nystream::Result<()> {
    for set in sets {
        let (model, rmse, seconds) = ours(folder, set, seed)?;
        let summary = model.summary();
        println!(
            "{set}: rmse {rmse:.5} bandwidth {:.3} ridge {:.2e} nugget {:.1e} dof {:.0} captured {:.4} {} {seconds:.1} s",
            model.regression().kernel().bandwidth().unwrap_or(0.0),
            summary.ridge,
            summary.leverage_ridge.unwrap_or(0.0),
            summary.effective_dim,
            summary.captured.unwrap_or(0.0),
            summary.dictionary.clone().unwrap_or_default(),
        );
    }
    Ok(())
}
