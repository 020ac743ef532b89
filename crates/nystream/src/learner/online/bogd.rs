//! Bounded online gradient descent.
//!
//! P. Zhao, J. Wang, P. Wu, R. Jin, S. C. H. Hoi, "Fast bounded online gradient descent algorithms for scalable
//! kernel-based online learning", ICML 2012: BOGD (uniform sampling) and BOGD++ (weighted).
//!
//! Gradient descent; when the budget is full a row is drawn and removed, and the others are divided by the probability that
//! they stay, so that the function is kept in expectation. A round costs its kernels, O(B d).
//!
//! Departures from the paper:
//! - `weighted`: row i goes with probability (1 − q_i)/(B − 1), q_i = |α_i| √k(x_i, x_i) / Σ_j |α_j| √k(x_j, x_j): the heavier, the
//!   more likely to stay, and always a distribution. It is of the kind that BOGD++ uses, not transcribed from it.
//! - |α_i| ≤ η γ is kept by multiplying all coefficients, as in the authors' toolbox.
//! - The factor (1 − ηλ) of rounds without an update is kept apart and multiplied in at the next update.

use super::entry::{LearnerEntry, Make, OnlineLearner, Order};
use super::expansion::Expansion;
use super::loss::{LOSS, Loss};
use super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use super::settings::{LearnerSettings, Targets};
use super::state::State;
use super::steps::{REGULARIZATION, STEP_SIZE, shrinking};
use crate::error::Result;
use crate::persist::Container;
use crate::random::Generator;
use crate::rows::Row;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "bogd",
    title: "bounded online gradient descent, uniform or weighted sampling",
    citation: "Zhao, Wang, Wu, Jin, Hoi, \"Fast bounded online gradient descent algorithms for scalable kernel-based online \
               learning\", ICML 2012, BOGD and BOGD++",
    targets: &[Targets::Classes, Targets::Numbers],
    order: Order::First,
    cost: "O(B d)",
    options: &[
        LOSS,
        STEP_SIZE,
        REGULARIZATION,
        OptionSpec {
            name: "sampling",
            symbol: "",
            meaning: "how the row that goes is drawn",
            kind: OptionKind::Word(&["uniform", "weighted"]),
            default: Default::Word("uniform"),
            trial: Trial::of("weighted"),
        },
        OptionSpec {
            name: "coefficient-bound",
            symbol: "γ",
            meaning: "largest coefficient, in steps",
            kind: OptionKind::Positive,
            default: Default::Number(10.0),
            trial: Trial::of("0.5"),
        },
    ],
    make: Make::Rows { build, load },
};

#[derive(Debug)]
struct Bogd {
    loss: Loss,
    step: f64,
    /// 1 − ηλ
    shrink: f64,
    weighted: bool,
    /// ηγ
    bound: f64,
    budget: usize,
    function: Expansion,
    /// √k(x, x) of the rows kept.
    norms: Vec<f64>,
    /// What the coefficients are still to be multiplied by.
    owed: f64,
    rng: Generator,
}

fn new(settings: &LearnerSettings, chosen: &Chosen, function: Expansion) -> Result<Bogd> {
    let (step, shrink) = shrinking(chosen)?;
    Ok(Bogd {
        loss: Loss::chosen(chosen, settings.targets)?,
        step,
        shrink,
        weighted: chosen.word("sampling")? == Some("weighted"),
        bound: step * chosen.number("coefficient-bound")?,
        budget: settings.budget,
        function,
        norms: Vec::new(),
        owed: 1.0,
        rng: Generator::new(settings.seed),
    })
}

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(new(settings, chosen, Expansion::new(settings))?))
}

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    let mut learner = new(settings, chosen, Expansion::take(file, settings)?)?;
    learner.norms = file.take_numbers("norms", learner.function.len())?;
    learner.owed = file.take_numbers("owed", 1)?[0];
    learner.rng = file.take_generator("places")?;
    Ok(Box::new(learner))
}

/// The largest absolute value, several at once. NaN is passed over.
fn largest_size(numbers: &[f64]) -> f64 {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let (groups, rest) = numbers.as_chunks::<8>();
    let mut largest = [0.0; 8];
    for group in groups {
        (0..8).for_each(|i| largest[i] = larger(largest[i], group[i].abs()));
    }
    largest.iter().chain(rest).fold(0.0, |all, number| larger(all, number.abs()))
}

impl Bogd {
    /// Draws the row that goes, and divides the others by the probability that they stay.
    fn draw(&mut self) -> usize {
        let count = self.budget as f64;
        if !self.weighted || self.budget == 1 {
            let place = self.rng.below(self.budget as u64) as usize;
            // Alone it goes for certain, and nothing is left to divide.
            self.function.scale(self.owed * if self.budget == 1 { 1.0 } else { count / (count - 1.0) });
            return place;
        }
        let weights = || self.function.coefficients.iter().zip(&self.norms).map(|(c, norm)| c.abs() * norm);
        let total: f64 = weights().sum();
        // Coefficients that are all 0 have no weights to tell them apart.
        let share = |weight: f64| if total > 0.0 { weight / total } else { 1.0 / count };
        let mut level = self.rng.uniform() * (count - 1.0);
        let mut place = self.budget - 1;
        for (i, weight) in weights().enumerate() {
            level -= 1.0 - share(weight);
            if level < 0.0 {
                place = i;
                break;
            }
        }
        for (c, norm) in self.function.coefficients.iter_mut().zip(&self.norms) {
            let goes = (1.0 - share(c.abs() * norm)) / (count - 1.0);
            // Of two rows one may go for certain (the other has all the weight): it is the one drawn.
            *c *= self.owed / (1.0 - goes).max(f64::MIN_POSITIVE);
        }
        place
    }
}

impl OnlineLearner for Bogd {
    fn predict(&mut self, row: Row) -> f64 {
        self.owed * self.function.output(row)
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let output = self.predict(row);
        self.owed *= self.shrink;
        let derivative = self.loss.derivative(output, target);
        if derivative == 0.0 {
            return Ok(output);
        }
        let coefficient = -self.step * derivative;
        let norm = self.function.support.kernel().diagonal(row).max(0.0).sqrt();
        if self.function.len() < self.budget {
            self.function.scale(self.owed);
            self.function.push(row, coefficient);
            self.norms.push(norm);
        } else {
            let place = self.draw();
            self.function.replace(place, row, coefficient);
            self.norms[place] = norm;
        }
        self.owed = 1.0;
        let largest = largest_size(&self.function.coefficients);
        if largest > self.bound {
            self.function.scale(self.bound / largest);
        }
        Ok(output)
    }

    fn atoms(&self) -> usize {
        self.function.len()
    }

    fn size_bytes(&self) -> usize {
        self.function.size_bytes() + self.norms.capacity() * 8
    }

    fn save(&self, file: &mut Container) -> Result<()> {
        self.function.put(file)?;
        file.put_numbers("norms", &self.norms)?;
        file.put_numbers("owed", &[self.owed])?;
        file.put_generator("places", &self.rng)
    }
}
