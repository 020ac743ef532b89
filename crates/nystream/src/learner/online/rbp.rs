//! The randomized budget perceptron.
//!
//! G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple budget perceptron", Machine
//! Learning 69, 2007, pages 143–167: the randomized budget perceptron.
//!
//! On a mistake the row is added with its class as coefficient; when the budget is full, it takes the place of a row drawn
//! at random. A round costs its kernels, O(B d).
//!
//! Departures from the paper: none.

use super::entry::{LearnerEntry, Make, OnlineLearner, Order};
use super::expansion::Expansion;
use super::options::Chosen;
use super::settings::{LearnerSettings, Targets};
use super::state::State;
use crate::error::Result;
use crate::persist::Container;
use crate::random::Generator;
use crate::rows::Row;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "rbp",
    title: "randomized budget perceptron",
    citation: "Cavallanti, Cesa-Bianchi, Gentile, \"Tracking the best hyperplane with a simple budget perceptron\", \
               Machine Learning 69, 2007, the randomized budget perceptron",
    targets: &[Targets::Classes],
    order: Order::First,
    cost: "O(B d)",
    options: &[],
    make: Make::Rows { build, load },
};

#[derive(Debug)]
struct Rbp {
    budget: usize,
    function: Expansion,
    rng: Generator,
}

fn build(settings: &LearnerSettings, _: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    let rng = Generator::new(settings.seed);
    Ok(Box::new(Rbp { budget: settings.budget, function: Expansion::new(settings), rng }))
}

fn load(settings: &LearnerSettings, _: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    let function = Expansion::take(file, settings)?;
    Ok(Box::new(Rbp { budget: settings.budget, function, rng: file.take_generator("places")? }))
}

impl OnlineLearner for Rbp {
    fn predict(&mut self, row: Row) -> f64 {
        self.function.output(row)
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let output = self.function.output(row);
        if target * output <= 0.0 {
            if self.function.len() < self.budget {
                self.function.push(row, target);
            } else {
                let place = self.rng.below(self.budget as u64) as usize;
                self.function.replace(place, row, target);
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
        file.put_generator("places", &self.rng)
    }
}
