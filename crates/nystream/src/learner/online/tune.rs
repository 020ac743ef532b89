//! Step size and regularization by trying all of a grid on a part of the data.
//!
//! X. Zhang and S. Liao, "Incremental Randomized Sketching for Online Kernel Learning", ICML 2019, section 6.1: "the
//! stepsizes η of all the gradient descent based algorithms are tuned in 10^[−5:+1:0], and the regularization parameters
//! λ are tuned in 10^[−4:+1:1]". The paper does not say on which rows: here on the first rows of an order of its own,
//! as large a share of the data as is asked for.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::entry::LearnerEntry;
use super::learner::check;
use super::run::run;
use super::settings::LearnerSettings;
use super::table::find;
use crate::error::{Error, Result};
use crate::random::Generator;
use crate::rows::{RowBlock, Rows};

/// Of the generator, so that the order is none of those that runs take, whatever their seeds.
const TUNING_STREAM: u64 = 1;

/// The options that are tuned, with the powers of ten tried.
const GRIDS: [(&str, std::ops::RangeInclusive<i32>); 2] = [("step-size", -5..=0), ("regularization", -4..=1)];

/// On which rows settings are tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TuningPart {
    /// How much of the rows, above 0 and at most 1.
    pub share: f64,
    /// Of their order; the order they come in if there is none.
    pub seed: Option<u64>,
}

/// One setting that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The tuned options.
    pub options: BTreeMap<String, String>,
    /// The error of the run (see [`Run::error`](super::Run::error)), or why there is none: the learner refused the
    /// setting, or diverged.
    pub error: Result<f64, String>,
}

/// What came of tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// Rows of each run.
    pub rows: usize,
    /// Everything that was tried, the step size outermost, both from the smallest on.
    pub attempts: Vec<Attempt>,
    /// The place of the smallest error among them; of equal ones the first.
    pub best: usize,
}

impl Tuning {
    /// The best setting.
    pub fn chosen(&self) -> &BTreeMap<String, String> {
        &self.attempts[self.best].options
    }
}

/// Whether a learner has an option that [`tune`] would set, given those that are set already.
pub fn tunable(entry: &LearnerEntry, settings: &LearnerSettings) -> bool {
    !tuned(entry, settings).is_empty()
}

fn tuned(entry: &LearnerEntry, settings: &LearnerSettings) -> Vec<(&'static str, std::ops::RangeInclusive<i32>)> {
    let open =
        |name: &str| entry.options.iter().any(|option| option.name == name) && !settings.options.contains_key(name);
    GRIDS.into_iter().filter(|(name, _)| open(name)).collect()
}

/// Runs a learner with every value of the grids for those of `step-size` and `regularization` that it has and that the
/// settings leave open, each over the same rows, and finds the smallest error. Settings are tried in parallel; the result
/// depends on nothing but the arguments. An error if nothing is left to tune, or if no setting works.
pub fn tune(name: &str, settings: &LearnerSettings, rows: Rows, targets: &[f64], part: TuningPart) -> Result<Tuning> {
    let entry = find(name)?;
    check(entry, settings)?;
    if !tunable(entry, settings) {
        let found = format!("{name}, with nothing to tune");
        let expected = "a learner with a step-size or regularization that is not given";
        return Err(Error::InvalidParam { name: "tune", found, expected });
    }
    let (rows, targets) = first_rows(rows, targets, part)?;
    let mut settings = settings.clone();
    settings.expected_rows = Some(rows.len() as u64);
    let mut grid = vec![BTreeMap::new()];
    for (option, powers) in tuned(entry, &settings) {
        let with = |options: &BTreeMap<String, String>, power: i32| {
            let mut options = options.clone();
            options.insert(option.to_owned(), format!("1e{power}"));
            options
        };
        grid = grid.iter().flat_map(|options| powers.clone().map(|power| with(options, power))).collect();
    }
    let attempt = |options: BTreeMap<String, String>| {
        let mut settings = settings.clone();
        settings.options.extend(options.clone());
        let error = run(name, &settings, rows.rows(), &targets, None).map(|run| run.error());
        (options, error.and_then(finite))
    };
    let done: Vec<_> = grid.into_par_iter().map(attempt).collect();
    let mut best: Option<(usize, f64)> = None;
    for (i, (_, error)) in done.iter().enumerate() {
        if let Ok(error) = error
            && best.is_none_or(|(_, least)| *error < least)
        {
            best = Some((i, *error));
        }
    }
    let Some((best, _)) = best else {
        let first = done.into_iter().find_map(|(_, error)| error.err());
        return Err(first.unwrap_or(Error::Internal("an empty grid")));
    };
    let attempt = |(options, error): (_, Result<f64>)| Attempt { options, error: error.map_err(|e| e.to_string()) };
    Ok(Tuning { rows: rows.len(), attempts: done.into_iter().map(attempt).collect(), best })
}

/// Outputs may all be finite, and the mean of squares not.
fn finite(error: f64) -> Result<f64> {
    let expected = "a learner that does not diverge";
    if error.is_finite() {
        Ok(error)
    } else {
        Err(Error::InvalidParam { name: "tune", found: error.to_string(), expected })
    }
}

/// The share of the rows, at least one, in the order of tuning.
fn first_rows(rows: Rows, targets: &[f64], part: TuningPart) -> Result<(RowBlock, Vec<f64>)> {
    if targets.len() != rows.len() {
        return Err(Error::Shape { what: "targets", found: targets.len(), expected: rows.len() });
    }
    if !(part.share > 0.0 && part.share <= 1.0) {
        let expected = "a share of the rows, above 0 and at most 1";
        return Err(Error::InvalidParam { name: "tune", found: part.share.to_string(), expected });
    }
    if rows.is_empty() {
        return Err(Error::Shape { what: "rows to tune on", found: 0, expected: 1 });
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    if let Some(seed) = part.seed {
        Generator::with_stream(seed, TUNING_STREAM).shuffle(&mut order);
    }
    order.truncate(((part.share * rows.len() as f64).round() as usize).max(1));
    Ok((RowBlock::gather(rows, &order), order.iter().map(|&i| targets[i]).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::online::Targets;
    use crate::learner::online::tests::stream::{ROWS, settings, stream};

    const HALF: TuningPart = TuningPart { share: 0.5, seed: Some(3) };

    #[test]
    fn the_best_of_the_grid_is_found_on_any_number_of_threads() {
        let (rows, targets) = stream(Targets::Classes, true);
        let settings = settings(Targets::Classes);
        let tuning = tune("kogd", &settings, rows.rows(), &targets, HALF).unwrap();
        assert_eq!((tuning.rows, tuning.attempts.len()), (ROWS / 2, 36));
        // η λ is 1 or more for (1, 1), (1, 10) and (0.1, 10), and for no other pair.
        assert_eq!(tuning.attempts.iter().filter(|attempt| attempt.error.is_err()).count(), 3);
        let errors = tuning.attempts.iter().filter_map(|attempt| attempt.error.as_ref().ok());
        let least = errors.clone().copied().fold(f64::INFINITY, f64::min);
        assert_eq!(tuning.attempts[tuning.best].error, Ok(least));
        assert!(errors.clone().any(|error| *error > least));
        // What is reported is a run that anyone can repeat.
        let (part, codes) = first_rows(rows.rows(), &targets, HALF).unwrap();
        let mut again = settings.clone();
        again.expected_rows = Some(300);
        again.options = tuning.chosen().clone();
        assert_eq!(run("kogd", &again, part.rows(), &codes, None).unwrap().error(), least);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| tune("kogd", &settings, rows.rows(), &targets, HALF)).unwrap(), tuning);
        }
        let other = tune("kogd", &settings, rows.rows(), &targets, TuningPart { seed: Some(4), ..HALF }).unwrap();
        assert_ne!(other.attempts, tuning.attempts);
        let (part, codes) = first_rows(rows.rows(), &targets, TuningPart { seed: None, ..HALF }).unwrap();
        assert_eq!(part, RowBlock::gather(rows.rows(), &(0..300).collect::<Vec<_>>()));
        assert_eq!(codes, targets[..300]);
    }

    #[test]
    fn options_that_are_given_stay_and_what_cannot_be_tuned_is_refused() {
        let (rows, targets) = stream(Targets::Classes, false);
        let given = settings(Targets::Classes).with("step-size", 0.3);
        let tuning = tune("nogd", &given, rows.rows(), &targets, HALF).unwrap();
        assert_eq!(tuning.attempts.len(), 6);
        assert!(tuning.chosen().keys().eq(["regularization"]));
        let both = given.with("regularization", 0.1);
        for (name, settings) in [("nogd", &both), ("rbp", &settings(Targets::Classes))] {
            let message = tune(name, settings, rows.rows(), &targets, HALF).unwrap_err().to_string();
            assert!(message.contains("nothing to tune"), "{message}");
        }
        for share in [0.0, -1.0, 1.1, f64::NAN] {
            let part = TuningPart { share, seed: None };
            assert!(tune("kogd", &settings(Targets::Classes), rows.rows(), &targets, part).is_err());
        }
        assert!(tune("kogd", &settings(Targets::Classes), rows.rows(), &targets[1..], HALF).is_err());
        // Targets that no setting can take: the reason is told.
        let wrong = vec![0.5; ROWS];
        let message = tune("kogd", &settings(Targets::Classes), rows.rows(), &wrong, HALF).unwrap_err().to_string();
        assert!(message.contains("1 or -1"), "{message}");
    }
}
