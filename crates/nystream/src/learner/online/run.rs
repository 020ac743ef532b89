//! The prequential protocol: every row is predicted, then learnt, and the errors are counted.
//!
//! J. Gama, R. Sebastião, P. P. Rodrigues, "On evaluating stream learning algorithms", Machine Learning 90, 2013. The mistake
//! rate is that of SkeGD (ICML 2019, section 6.3), Σ I(y f(x) < 0)/T: an output of exactly 0 is no mistake, but is counted
//! apart ([`RunningScore::undecided`]).

use std::time::{Duration, Instant};

use super::learner::Learner;
use super::settings::{LearnerSettings, Targets};
use crate::error::{Error, Result};
use crate::learner::streaming::RunningScore;
use crate::rows::{RowBlock, Rows};

/// Points of an error curve.
pub(in crate::learner) const POINTS: usize = 200;

/// What came of a run.
#[derive(Debug)]
pub struct Run {
    /// The learner at the end.
    pub learner: Learner,
    /// Errors of the outputs predicted before their rows were learnt.
    pub score: RunningScore,
    /// Rows so far, and the error up to there and over the last rows: mistakes if targets are classes, else squared errors.
    pub curve: Vec<(u64, f64, f64)>,
    /// Time that predicting and learning took.
    pub time: Duration,
}

impl Run {
    /// The share of mistakes if targets are classes, else the mean squared error.
    pub fn error(&self) -> f64 {
        match self.learner.settings().targets {
            Targets::Classes => self.score.mistake_rate(),
            Targets::Numbers => self.score.mse(),
        }
    }
}

/// Runs the learner of this name over rows and targets (±1 or numbers), in their order or in the one given. The result
/// depends on nothing else (but for the time it took).
pub fn run(
    name: &str,
    settings: &LearnerSettings,
    rows: Rows,
    targets: &[f64],
    order: Option<&[usize]>,
) -> Result<Run> {
    if targets.len() != rows.len() {
        return Err(Error::Shape { what: "targets", found: targets.len(), expected: rows.len() });
    }
    if let Some(order) = order {
        if let Some(&beyond) = order.iter().find(|&&i| i >= rows.len()) {
            return Err(Error::Shape { what: "row in the order", found: beyond, expected: rows.len() });
        }
        // Rows side by side in memory, as a stream would bring them.
        let ordered = RowBlock::gather(rows, order);
        let targets: Vec<f64> = order.iter().map(|&i| targets[i]).collect();
        return run(name, settings, ordered.rows(), &targets, None);
    }
    let mut learner = Learner::new(name, settings.clone())?;
    let (mut score, mut curve, mut time) = (RunningScore::default(), Vec::new(), Duration::ZERO);
    let step = rows.len().div_ceil(POINTS).max(1);
    let mut outputs = Vec::with_capacity(step);
    for start in (0..rows.len()).step_by(step) {
        let end = (start + step).min(rows.len());
        outputs.clear();
        let started = Instant::now();
        learner.learn_all(rows.slice(start, end), &targets[start..end], &mut outputs)?;
        time += started.elapsed();
        for (output, target) in outputs.iter().zip(&targets[start..end]) {
            score.push(&[*output], &[*target]);
        }
        curve.push(score.point(settings.targets == Targets::Classes));
    }
    Ok(Run { learner, score, curve, time })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::online::tests::stream::{ROWS, outputs, settings, stream};
    use crate::random::Generator;

    #[test]
    fn errors_are_counted_by_the_definition_in_any_order() {
        let (rows, targets) = stream(Targets::Classes, true);
        let mut order: Vec<usize> = (0..ROWS).collect();
        Generator::new(1).shuffle(&mut order);
        let run = run("kogd", &settings(Targets::Classes), rows.rows(), &targets, Some(&order)).unwrap();
        let mut learner = Learner::new("kogd", settings(Targets::Classes)).unwrap();
        let (mut mistakes, mut undecided) = (0, 0);
        for &i in &order {
            let output = learner.learn(rows.rows().row(i), targets[i]).unwrap();
            mistakes += u32::from(targets[i] * output < 0.0);
            undecided += u64::from(output == 0.0);
        }
        assert_eq!(run.error(), f64::from(mistakes) / ROWS as f64);
        assert_eq!(run.score.undecided(), undecided);
        assert!(undecided >= 1 && mistakes > 0);
        assert_eq!((run.curve.len(), run.curve[199].0, run.curve[199].1), (200, ROWS as u64, run.error()));
    }

    #[test]
    fn numbers_are_judged_by_squares_and_misfits_are_refused() {
        let (rows, targets) = stream(Targets::Numbers, false);
        let settings = settings(Targets::Numbers);
        let done = run("nogd", &settings, rows.rows(), &targets, None).unwrap();
        let squares =
            outputs("nogd", settings.clone(), false).iter().zip(&targets).map(|(f, y)| (f - y).powi(2)).sum::<f64>();
        assert!((done.error() - squares / ROWS as f64).abs() < 1e-12 && squares > 0.0);
        assert!(run("nogd", &settings, rows.rows(), &targets[1..], None).is_err());
        assert!(run("nogd", &settings, rows.rows(), &targets, Some(&[ROWS])).is_err());
        // Steps far too long for the squared loss.
        let wild = settings.with("step-size", 1e6).with("regularization", 0);
        let message = run("kogd", &wild, rows.rows(), &targets, None).unwrap_err().to_string();
        assert!(message.contains("diverge"), "{message}");
    }
}
