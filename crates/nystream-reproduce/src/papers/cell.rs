//! One learner on one set: tuned, then run over every order.

use std::time::Duration;

use nystream::Result;
use nystream::kernel::Kernel;
use nystream::learner::online::{LearnerSettings, Make, Targets, Tuning, TuningPart, check, find, run, tunable, tune};
use nystream::learner::streaming::StreamingOptions;
use nystream::learner::{adversarial_stream, evaluate_rows};
use nystream::rows::{RowBlock, Rows};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::data::Loaded;
use super::file::{Adversarial, Contender, Heading, TuneOn};
use crate::statistics::mean;

/// Streams for tuning begin here, away from those that are run.
const TUNING_SEEDS: u64 = 1 << 32;

/// What learners are run on, and how often.
#[derive(Debug)]
pub(super) struct Task<'a> {
    pub data: &'a Loaded,
    pub kernel: Kernel,
    pub adversarial: Option<Adversarial>,
    pub tune_on: TuneOn,
    pub tune_share: f64,
    pub heading: &'a Heading,
    /// Orders run.
    pub orders: u64,
    /// Rows of a run at most.
    pub limit: usize,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Cell {
    /// Rows of a run.
    pub rows: usize,
    pub tuning: Option<Tuning>,
    /// By order; or why there are none: the learner diverged, say.
    pub runs: Result<Vec<OneRun>, String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct OneRun {
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

    /// Of a run.
    pub fn seconds(&self) -> f64 {
        mean(self.figures().iter().map(|run| run.time.as_secs_f64()))
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
            "errors": runs.iter().map(|run| run.error).collect::<Vec<_>>(),
            "seconds": runs.iter().map(|run| run.time.as_secs_f64()).collect::<Vec<_>>(),
            "atoms": runs.iter().map(|run| run.atoms).collect::<Vec<_>>(),
            "undecided": runs.iter().map(|run| run.undecided).collect::<Vec<_>>(),
            "failed": self.runs.as_ref().err(),
            "tuning": tuning,
        })
    }
}

impl Task<'_> {
    /// Tunes and runs a learner. Refused options are an error; what a run runs into is found in the cell.
    pub fn run(&self, contender: &Contender, budget: usize) -> Result<Cell> {
        let entry = find(&contender.learner)?;
        let (rows, _) = self.stream(self.heading.first_seed)?;
        let mut settings = LearnerSettings::new(self.kernel, rows.cols(), self.data.kind);
        settings.budget = budget;
        settings.seed = self.heading.first_seed;
        settings.expected_rows = Some(rows.len() as u64);
        settings.options.clone_from(&contender.options);
        check(entry, &settings)?;
        let tuning = if tunable(entry, &settings) { Some(self.tune(entry.name, &settings)) } else { None };
        let tuning = match tuning.transpose() {
            Ok(tuning) => tuning,
            Err(e) => return Ok(Cell { rows: rows.len(), tuning: None, runs: Err(e.to_string()) }),
        };
        if let Some(tuning) = &tuning {
            settings.options.extend(tuning.chosen().clone());
        }
        // Each run depends on its own number only, so threads change nothing but the time.
        let runs: Vec<Result<OneRun>> = (0..self.orders)
            .into_par_iter()
            .map(|order| {
                let mut settings = settings.clone();
                settings.seed = self.heading.first_seed.wrapping_add(order);
                let (rows, targets) = self.stream(settings.seed)?;
                match entry.make {
                    Make::Rows { .. } => by_rows(entry.name, &settings, rows.rows(), &targets),
                    Make::Blocks => by_blocks(&settings, rows.rows(), &targets),
                }
            })
            .collect();
        let mut runs = runs.into_iter().collect::<Result<Vec<_>>>().map_err(|e| e.to_string());
        // Outputs may all be finite, and the mean of squares not.
        if runs.as_ref().is_ok_and(|runs| runs.iter().any(|run| !run.error.is_finite())) {
            runs = Err(format!("learner {} did diverge: an infinite error", entry.name));
        }
        Ok(Cell { rows: rows.len(), tuning, runs })
    }

    /// The rows of an order.
    fn stream(&self, seed: u64) -> Result<(RowBlock, Vec<f64>)> {
        match self.adversarial {
            None => Ok(self.data.permuted(seed, self.limit)),
            Some(Adversarial { blocks, rounds }) => {
                let blocks = blocks.min((self.limit / rounds.max(1)).max(1));
                adversarial_stream(self.data.rows.rows(), &self.data.targets, blocks, rounds, seed)
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
        let most = self.data.rows.len().min(self.limit);
        let rows = self.data.rows.rows().slice(0, most);
        tune(name, settings, rows, &self.data.targets[..most], part(Some(seed)))
    }
}

fn by_rows(name: &str, settings: &LearnerSettings, rows: Rows, targets: &[f64]) -> Result<OneRun> {
    let run = run(name, settings, rows, targets, None)?;
    let (error, atoms, undecided) = (run.error(), run.learner.atoms(), run.score.undecided());
    Ok(OneRun { error, time: run.time, atoms, undecided })
}

fn by_blocks(settings: &LearnerSettings, rows: Rows, targets: &[f64]) -> Result<OneRun> {
    let options = StreamingOptions { budget: settings.budget, seed: settings.seed, ..StreamingOptions::default() };
    let classes = settings.targets == Targets::Classes;
    let run = evaluate_rows(options.with_named(&settings.options)?, rows, targets, 1, classes)?;
    let score = run.learner.score();
    Ok(OneRun {
        error: if classes { score.mistake_rate() } else { score.mse() },
        time: run.time,
        atoms: run.learner.dictionary().map_or(0, |d| d.len()),
        undecided: score.undecided(),
    })
}
