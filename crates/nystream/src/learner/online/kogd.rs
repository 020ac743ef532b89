//! Kernel online gradient descent, truncated.
//!
//! J. Kivinen, A. J. Smola, R. C. Williamson, "Online learning with kernels", IEEE Transactions on Signal Processing
//! 52(8), 2004, pages 2165–2176: NORMA, Eqs. 8 to 10, with the truncation of section III-C.
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
use super::loss::{LOSS, Loss};
use super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use super::settings::{LearnerSettings, Targets};
use super::state::State;
use crate::error::Result;
use crate::kernel::SupportSet;
use crate::persist::Container;
use crate::rows::Row;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "kogd",
    title: "kernel online gradient descent, truncated (NORMA)",
    citation: "Kivinen, Smola, Williamson, \"Online learning with kernels\", IEEE Trans. Signal Processing 52(8), 2004, \
               Eqs. 8–10 and section III-C",
    targets: &[Targets::Classes, Targets::Numbers],
    order: Order::First,
    cost: "O(B d)",
    options: &[
        LOSS,
        OptionSpec {
            name: "step-size",
            symbol: "η",
            meaning: "length of a gradient step",
            kind: OptionKind::Positive,
            default: Default::Number(0.2),
            trial: Trial::of("0.05"),
        },
        OptionSpec {
            name: "regularization",
            symbol: "λ",
            meaning: "weight of the squared norm; η λ is below 1",
            kind: OptionKind::NonNegative,
            default: Default::Number(0.01),
            trial: Trial::of("0.2"),
        },
    ],
    make: Make::Rows { build, load },
};

#[derive(Debug)]
struct Kogd {
    loss: Loss,
    step: f64,
    /// 1 − ηλ
    shrink: f64,
    budget: usize,
    support: SupportSet,
    /// Coefficients are these times `scale`.
    coefficients: Vec<f64>,
    scale: f64,
    /// Place of the oldest term, once the budget is full.
    oldest: usize,
    kernels: Vec<f64>,
}

/// Below this the common factor is multiplied in.
const SMALL: f64 = 1e-100;

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(new(settings, chosen)?))
}

fn new(settings: &LearnerSettings, chosen: &Chosen) -> Result<Kogd> {
    let step = chosen.number("step-size")?;
    let shrink = 1.0 - step * chosen.number("regularization")?;
    if shrink <= 0.0 {
        return Err(chosen.refused("regularization", format!("η λ = {}", 1.0 - shrink), "η λ below 1"));
    }
    Ok(Kogd {
        loss: Loss::chosen(chosen, settings.targets)?,
        step,
        shrink,
        budget: settings.budget,
        support: SupportSet::new(&settings.kernel, settings.features, settings.budget),
        coefficients: Vec::new(),
        scale: 1.0,
        oldest: 0,
        kernels: Vec::new(),
    })
}

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    let mut learner = new(settings, chosen)?;
    learner.support = file.take_support("support", settings, settings.budget)?;
    learner.coefficients = file.take_numbers("coefficients", learner.support.len())?;
    learner.scale = file.take_numbers("scale", 1)?[0];
    let [oldest] = file.take_counts("oldest")?;
    learner.oldest = oldest as usize;
    if oldest >= settings.budget as u64 || !(SMALL..=1.0).contains(&learner.scale) {
        return Err(file.malformed("a state that no run leads to"));
    }
    learner.kernels.resize(learner.support.len(), 0.0);
    Ok(Box::new(learner))
}

impl OnlineLearner for Kogd {
    fn predict(&mut self, row: Row) -> f64 {
        self.scale * self.support.weighted(row, &self.coefficients, &mut self.kernels)
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let output = self.predict(row);
        // Eq. 9, first case: β_i ← (1 − ηλ) β_i.
        self.scale *= self.shrink;
        if self.scale < SMALL {
            self.coefficients.iter_mut().for_each(|c| *c *= self.scale);
            self.scale = 1.0;
        }
        // Eq. 9, second case: the new term −η ℓ′(f(x), y).
        let derivative = self.loss.derivative(output, target);
        if derivative != 0.0 {
            let coefficient = -self.step * derivative / self.scale;
            if self.support.len() < self.budget {
                self.support.push(row);
                self.coefficients.push(coefficient);
                self.kernels.push(0.0);
            } else {
                self.support.replace(self.oldest, row);
                self.coefficients[self.oldest] = coefficient;
                self.oldest = (self.oldest + 1) % self.budget;
            }
        }
        Ok(output)
    }

    fn atoms(&self) -> usize {
        self.support.len()
    }

    fn size_bytes(&self) -> usize {
        self.support.size_bytes() + (self.coefficients.capacity() + self.kernels.capacity()) * 8
    }

    fn save(&self, file: &mut Container) -> Result<()> {
        file.put_support("support", &self.support)?;
        file.put_numbers("coefficients", &self.coefficients)?;
        file.put_numbers("scale", &[self.scale])?;
        file.put_counts("oldest", &[self.oldest as u64])
    }
}
