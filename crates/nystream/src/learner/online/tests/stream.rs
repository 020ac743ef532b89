//! Streams to test learners on.

use super::super::{LearnerEntry, LearnerSettings, Make, Targets};
use crate::kernel::Kernel;
use crate::learner::online::{LEARNERS, Learner};
use crate::random::Generator;
use crate::rows::RowBlock;

pub const ROWS: usize = 600;
pub const FEATURES: usize = 6;
pub const BUDGET: usize = 20;

/// Rows of which a third of the values are 0, with noisy targets that no learner gets right all the time.
pub fn stream(targets: Targets, sparse: bool) -> (RowBlock, Vec<f64>) {
    let mut rng = Generator::new(17);
    let mut rows = if sparse { RowBlock::sparse(FEATURES) } else { RowBlock::dense(FEATURES) };
    let mut all = Vec::new();
    for _ in 0..ROWS {
        let values: Vec<f64> =
            (0..FEATURES).map(|_| if rng.bernoulli(1.0 / 3.0) { 0.0 } else { rng.normal() }).collect();
        rows.push(crate::rows::Row::Dense(&values));
        let signal = (2.0 * values[0]).sin() + 0.5 * values[1] * values[2] + 0.3 * rng.normal();
        all.push(match targets {
            Targets::Classes => f64::from(i8::from(signal > 0.0)) * 2.0 - 1.0,
            Targets::Numbers => 0.5 * signal,
        });
    }
    (rows, all)
}

/// The settings of the laws.
pub fn settings(targets: Targets) -> LearnerSettings {
    let mut settings = LearnerSettings::new(Kernel::gaussian(1.5).unwrap(), FEATURES, targets);
    settings.budget = BUDGET;
    settings.seed = 5;
    settings.expected_rows = Some(ROWS as u64);
    settings
}

/// Every learner of one row at a time, with every kind of targets that it takes.
pub fn cases() -> impl Iterator<Item = (&'static LearnerEntry, Targets)> {
    let by_rows = LEARNERS.iter().filter(|entry| matches!(entry.make, Make::Rows { .. }));
    by_rows.flat_map(|entry| entry.targets.iter().map(move |targets| (*entry, *targets)))
}

/// The outputs of a whole run, each predicted before its row was learnt.
pub fn outputs(name: &str, settings: LearnerSettings, sparse: bool) -> Vec<f64> {
    let (rows, targets) = stream(settings.targets, sparse);
    let mut learner = Learner::new(name, settings).unwrap();
    let mut out = Vec::new();
    learner.learn_all(rows.rows(), &targets, &mut out).unwrap();
    out
}
