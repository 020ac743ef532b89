//! One learner on one set: tuned, then run over every order.

use std::collections::BTreeMap;
use std::time::Duration;

use nystream::kernel::Kernel;
use nystream::learner::online::{
    Attempt, LearnerEntry, LearnerSettings, Make, Targets, Tuning, TuningPart, check, find, run, tunable, tune,
};
use nystream::learner::streaming::StreamingOptions;
use nystream::learner::{adversarial_stream, evaluate_rows};
use nystream::rows::{RowBlock, Rows};
use nystream::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::data::Loaded;
use super::file::{Adversarial, Contender, Heading, TuneOn};
use super::limits::Limits;
use super::store::Record;
use crate::statistics::mean;

/// Streams for tuning begin here, away from those that are run.
const TUNING_SEEDS: u64 = 1 << 32;

/// What learners are run on, and how often.
#[derive(Debug)]
pub(super) struct Task<'a> {
    pub data: &'a Loaded,
    /// How its columns were scaled.
    pub scale: &'a str,
    pub kernel: Kernel,
    pub adversarial: Option<Adversarial>,
    pub tune_on: TuneOn,
    pub tune_share: f64,
    pub heading: &'a Heading,
    pub limits: &'a Limits,
    /// Checksum of the data's file.
    pub sha256: &'a str,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Cell {
    /// Rows of a run.
    pub rows: usize,
    pub tuning: Option<Tuning>,
    /// By order, none of them where time was up; or why there cannot be any: the learner diverged, say.
    pub runs: Result<Vec<OneRun>, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OneRun {
    pub order: u64,
    /// Share of mistakes, or mean squared error.
    pub error: f64,
    pub time: Duration,
    pub atoms: usize,
    pub undecided: u64,
}

impl Cell {
    fn figures(&self) -> &[OneRun] {
        self.runs.as_deref().unwrap_or_default()
    }

    /// How many there are.
    pub fn orders(&self) -> u64 {
        self.figures().len() as u64
    }

    /// NaN if there is no run.
    pub fn error(&self) -> f64 {
        mean(self.figures().iter().map(|run| run.error))
    }

    /// Standard deviation of the errors of a sample.
    pub fn spread(&self) -> f64 {
        let (middle, runs) = (self.error(), self.figures());
        let squares: f64 = runs.iter().map(|run| (run.error - middle).powi(2)).sum();
        (squares / (runs.len() as f64 - 1.0).max(1.0)).sqrt()
    }

    /// Of the fastest run: what else the machine is busy with only ever adds to it. NaN if there is no run.
    pub fn seconds(&self) -> f64 {
        self.figures().iter().map(|run| run.time.as_secs_f64()).reduce(f64::min).unwrap_or(f64::NAN)
    }

    pub fn atoms(&self) -> f64 {
        mean(self.figures().iter().map(|run| run.atoms as f64))
    }

    /// Outputs of exactly 0, a run.
    pub fn undecided(&self) -> f64 {
        mean(self.figures().iter().map(|run| run.undecided as f64))
    }

    /// The tuned options in words.
    pub fn tuned_words(&self) -> String {
        let short = |name: &str| match name {
            "step-size" => "η",
            _ => "λ",
        };
        let words = |tuning: &Tuning| {
            let one = |(name, value): (&String, &String)| format!("{} {value}", short(name));
            // η first.
            tuning.chosen().iter().rev().map(one).collect::<Vec<_>>().join(", ")
        };
        self.tuning.as_ref().map(words).unwrap_or_default()
    }

    pub fn numbers(&self) -> Value {
        let tuning = self.tuning.as_ref().map(|tuning| {
            let tried: Vec<Value> = tuning
                .attempts
                .iter()
                .map(|a| json!({ "options": a.options, "error": a.error.as_ref().ok(), "failed": a.error.as_ref().err() }))
                .collect();
            json!({ "rows": tuning.rows, "chosen": tuning.chosen(), "tried": tried })
        });
        let runs = self.figures();
        json!({
            "rows": self.rows,
            "orders": runs.iter().map(|run| run.order).collect::<Vec<_>>(),
            "errors": runs.iter().map(|run| run.error).collect::<Vec<_>>(),
            "seconds": runs.iter().map(|run| run.time.as_secs_f64()).collect::<Vec<_>>(),
            "atoms": runs.iter().map(|run| run.atoms).collect::<Vec<_>>(),
            "undecided": runs.iter().map(|run| run.undecided).collect::<Vec<_>>(),
            "failed": self.runs.as_ref().err(),
            "tuning": tuning,
        })
    }
}

/// What tuning came to, as it is kept.
#[derive(Serialize, Deserialize)]
struct Tuned {
    rows: usize,
    attempts: Vec<(BTreeMap<String, String>, Result<f64, String>)>,
    best: usize,
}

impl From<Tuning> for Tuned {
    fn from(tuning: Tuning) -> Self {
        let attempts = tuning.attempts.into_iter().map(|attempt| (attempt.options, attempt.error)).collect();
        Self { rows: tuning.rows, attempts, best: tuning.best }
    }
}

impl From<Tuned> for Tuning {
    fn from(tuned: Tuned) -> Self {
        let attempts = tuned.attempts.into_iter().map(|(options, error)| Attempt { options, error }).collect();
        Self { rows: tuned.rows, attempts, best: tuned.best }
    }
}

impl Task<'_> {
    /// Tunes and runs a learner, but for what was kept. Refused options are an error; what a run runs into is found in
    /// the cell.
    pub fn run(&self, contender: &Contender, budget: usize) -> Result<Cell> {
        let entry = find(&contender.learner)?;
        let rows = self.rows_of_a_run();
        let mut settings = LearnerSettings::new(self.kernel, self.data.rows.rows().cols(), self.data.kind);
        settings.budget = budget;
        settings.seed = self.heading.first_seed;
        settings.expected_rows = Some(rows as u64);
        settings.options.clone_from(&contender.options);
        check(entry, &settings)?;
        let record = self.limits.store.record(self.about(entry, contender, budget));
        let tuning = match self.tuned(entry, &settings, &record)? {
            Some(Ok(tuning)) => Some(tuning),
            Some(Err(why)) => return Ok(Cell { rows, tuning: None, runs: Err(why) }),
            None if tunable(entry, &settings) => return Ok(Cell { rows, tuning: None, runs: Ok(Vec::new()) }),
            None => None,
        };
        if let Some(tuning) = &tuning {
            settings.options.extend(tuning.chosen().clone());
        }
        // Each run depends on its own number only, so threads change nothing but the time.
        let one = |order: u64| -> Result<Option<Result<OneRun, String>>> {
            if let Some(kept) = record.run(order) {
                return Ok(Some(kept));
            }
            if !self.limits.open() {
                return Ok(None);
            }
            let run = self.one(entry, &settings, order).map_err(|e| e.to_string());
            record.keep_run(order, &run)?;
            Ok(Some(run))
        };
        let done: Vec<_> = (0..self.limits.orders).into_par_iter().map(one).collect();
        let done: Vec<Option<Result<OneRun, String>>> = done.into_iter().collect::<Result<_>>()?;
        Ok(Cell { rows, tuning, runs: done.into_iter().flatten().collect() })
    }

    /// Everything that the results depend on.
    fn about(&self, entry: &LearnerEntry, contender: &Contender, budget: usize) -> Value {
        let adversarial = self.adversarial.map(|stream| [stream.blocks, stream.rounds]);
        // Those that take blocks choose it by themselves.
        let bandwidth = self.kernel.bandwidth().filter(|_| !matches!(entry.make, Make::Blocks));
        json!({
            "sha256": self.sha256, "rows": self.limits.rows, "bandwidth": bandwidth, "scale": self.scale,
            "adversarial": adversarial, "tuned_on_set": self.tune_on == TuneOn::Set, "tune_share": self.tune_share,
            "first_seed": self.heading.first_seed, "tuning_seed": self.heading.tuning_seed,
            "learner": contender.learner, "options": contender.options, "budget": budget,
        })
    }

    /// The tuning that was kept, or a new one; nothing if there is nothing to tune or no time for it.
    fn tuned(
        &self,
        entry: &LearnerEntry,
        settings: &LearnerSettings,
        record: &Record,
    ) -> Result<Option<Result<Tuning, String>>> {
        if !tunable(entry, settings) {
            return Ok(None);
        }
        let tuned = match record.tuning::<Result<Tuned, String>>() {
            Some(kept) => kept,
            None if !self.limits.open() => return Ok(None),
            None => {
                let tuned = self.tune(entry.name, settings).map(Tuned::from).map_err(|e| e.to_string());
                record.keep_tuning(&tuned)?;
                tuned
            }
        };
        Ok(Some(tuned.map(Tuning::from)))
    }

    fn one(&self, entry: &LearnerEntry, settings: &LearnerSettings, order: u64) -> Result<OneRun> {
        let mut settings = settings.clone();
        settings.seed = self.heading.first_seed.wrapping_add(order);
        let (rows, targets) = self.stream(settings.seed)?;
        let run = match entry.make {
            Make::Rows { .. } => by_rows(entry.name, &settings, rows.rows(), &targets, order),
            Make::Blocks => by_blocks(&settings, rows.rows(), &targets, order),
        }?;
        // Outputs may all be finite, and the mean of squares not.
        if run.error.is_finite() {
            return Ok(run);
        }
        let found = format!("an error of {} by {}", run.error, entry.name);
        Err(Error::InvalidParam { name: "learner", found, expected: "one that does not diverge" })
    }

    fn rows_of_a_run(&self) -> usize {
        match self.adversarial {
            None => self.data.rows.len().min(self.limits.most_rows()),
            Some(stream) => self.blocks(stream) * stream.rounds,
        }
    }

    fn blocks(&self, stream: Adversarial) -> usize {
        stream.blocks.min((self.limits.most_rows() / stream.rounds.max(1)).max(1))
    }

    /// The rows of an order.
    fn stream(&self, seed: u64) -> Result<(RowBlock, Vec<f64>)> {
        match self.adversarial {
            None => Ok(self.data.permuted(seed, self.limits.most_rows())),
            Some(stream) => {
                let (rows, targets) = (self.data.rows.rows(), &self.data.targets);
                adversarial_stream(rows, targets, self.blocks(stream), stream.rounds, seed)
            }
        }
    }

    fn tune(&self, name: &str, settings: &LearnerSettings) -> Result<Tuning> {
        let seed = self.heading.tuning_seed;
        let part = |seed| TuningPart { share: self.tune_share, seed };
        if self.adversarial.is_some() && self.tune_on == TuneOn::Stream {
            let (rows, targets) = self.stream(seed.wrapping_add(TUNING_SEEDS))?;
            // Its order is what it is about.
            return tune(name, settings, rows.rows(), &targets, part(None));
        }
        let most = self.data.rows.len().min(self.limits.most_rows());
        let rows = self.data.rows.rows().slice(0, most);
        tune(name, settings, rows, &self.data.targets[..most], part(Some(seed)))
    }
}

fn by_rows(name: &str, settings: &LearnerSettings, rows: Rows, targets: &[f64], order: u64) -> Result<OneRun> {
    let run = run(name, settings, rows, targets, None)?;
    let (error, atoms, undecided) = (run.error(), run.learner.atoms(), run.score.undecided());
    Ok(OneRun { order, error, time: run.time, atoms, undecided })
}

fn by_blocks(settings: &LearnerSettings, rows: Rows, targets: &[f64], order: u64) -> Result<OneRun> {
    let options = StreamingOptions { budget: settings.budget, seed: settings.seed, ..StreamingOptions::default() };
    let classes = settings.targets == Targets::Classes;
    let run = evaluate_rows(options.with_named(&settings.options)?, rows, targets, 1, classes)?;
    let score = run.learner.score();
    Ok(OneRun {
        order,
        error: if classes { score.mistake_rate() } else { score.mse() },
        time: run.time,
        atoms: run.learner.dictionary().map_or(0, |d| d.len()),
        undecided: score.undecided(),
    })
}
