//! Kernel online gradient descent, truncated.
//!
//! J. Kivinen, A. J. Smola, R. C. Williamson, "Online learning with kernels", IEEE Transactions on Signal Processing
//! 52(8), 2004, pages 2165–2176: algorithm NORMA, truncated.
//!
//! A round costs its kernels, O(B d).
//!
//! Departures from the paper:
//! - No offset b, and the ν-trick is left out: the loss is one of [`Loss`](super::Loss).
//! - The paper drops terms after a fixed number of rounds. Here the oldest term goes when the budget is full: the same
//!   thing where every round adds one, and no fewer terms where some rounds add none (the hinge loss).
//! - The factor (1 − ηλ) of all coefficients is kept apart and multiplied in when it has become small: a round costs no
//!   pass over the coefficients.

use super::entry::{LearnerEntry, Make, OnlineLearner, Order};
use super::expansion::Expansion;
use super::loss::{LOSS, Loss};
use super::oldest::Oldest;
use super::options::Chosen;
use super::settings::{LearnerSettings, Targets};
use super::state::State;
use super::steps::{REGULARIZATION, STEP_SIZE, shrinking};
use crate::error::Result;
use crate::persist::Container;
use crate::rows::Row;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "kogd",
    title: "kernel online gradient descent, truncated (NORMA)",
    citation: "Kivinen, Smola, Williamson, \"Online learning with kernels\", IEEE Trans. Signal Processing 52(8), 2004, \
               algorithm NORMA, truncated",
    targets: &[Targets::Classes, Targets::Numbers],
    order: Order::First,
    cost: "O(B d)",
    options: &[LOSS, STEP_SIZE, REGULARIZATION],
    make: Make::Rows { build, load },
};

/// Also the first stage of SkeGD.
#[derive(Debug)]
pub(super) struct Kogd {
    pub(super) loss: Loss,
    pub(super) step: f64,
    /// 1 − ηλ
    pub(super) shrink: f64,
    budget: usize,
    /// Its coefficients are to be multiplied by `scale`.
    pub(super) function: Expansion,
    scale: f64,
    oldest: Oldest,
}

/// Below this the common factor is multiplied in.
pub(super) const SMALL: f64 = 1e-100;

pub(super) fn new(settings: &LearnerSettings, chosen: &Chosen, function: Expansion) -> Result<Kogd> {
    let (step, shrink) = shrinking(chosen)?;
    let loss = Loss::chosen(chosen, settings.targets)?;
    Ok(Kogd { loss, step, shrink, budget: settings.budget, function, scale: 1.0, oldest: Oldest::default() })
}

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(new(settings, chosen, Expansion::new(settings))?))
}

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(read(settings, chosen, file)?))
}

pub(super) fn read(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Kogd> {
    let mut learner = new(settings, chosen, Expansion::take(file, settings)?)?;
    learner.oldest = Oldest::take(file, settings)?;
    learner.scale = file.take_numbers("scale", 1)?[0];
    if !(SMALL..=1.0).contains(&learner.scale) {
        return Err(file.malformed("a scale that no run leads to"));
    }
    Ok(learner)
}

impl OnlineLearner for Kogd {
    fn predict(&mut self, row: Row) -> f64 {
        self.scale * self.function.output(row)
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let output = self.predict(row);
        // All coefficients are multiplied by 1 − ηλ.
        self.scale *= self.shrink;
        if self.scale < SMALL {
            self.function.scale(self.scale);
            self.scale = 1.0;
        }
        // The new term is −η ℓ′(f(x), y).
        let derivative = self.loss.derivative(output, target);
        if derivative != 0.0 {
            let coefficient = -self.step * derivative / self.scale;
            if self.function.len() < self.budget {
                self.function.push(row, coefficient);
            } else {
                self.function.replace(self.oldest.place(), row, coefficient);
                self.oldest.advance(self.budget);
            }
        }
        Ok(output)
    }

    fn atoms(&self) -> usize {
        self.function.len()
    }

    fn size_bytes(&self) -> usize {
        self.function.size_bytes()
    }

    fn save(&self, file: &mut Container) -> Result<()> {
        self.function.put(file)?;
        self.oldest.put(file)?;
        file.put_numbers("scale", &[self.scale])
    }
}
