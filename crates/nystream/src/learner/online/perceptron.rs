//! The kernel perceptron.
//!
//! F. Rosenblatt, "The perceptron: a probabilistic model for information storage and organization in the brain",
//! Psychological Review 65, 1958; with kernels Y. Freund, R. E. Schapire, "Large margin classification using the
//! perceptron algorithm", Machine Learning 37, 1999.
//!
//! A round costs its kernels, O(B d).
//!
//! Departures from the paper:
//! - When the budget is full, no more rows are added: the function stays what it is (the "Stoptron" that F. Orabona,
//!   J. Keshet and B. Caputo compare with, JMLR 10, 2009). A budget of the stream's length gives the perceptron itself.
//! - An output of 0 is a mistake for the update, whichever the class.

use super::entry::{LearnerEntry, Make, OnlineLearner, Order};
use super::expansion::Expansion;
use super::options::Chosen;
use super::settings::{LearnerSettings, Targets};
use crate::error::Result;
use crate::persist::Container;
use crate::rows::Row;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "perceptron",
    title: "kernel perceptron, which stops when the budget is full",
    citation: "Rosenblatt, Psychological Review 65, 1958; Freund, Schapire, \"Large margin classification using the \
               perceptron algorithm\", Machine Learning 37, 1999",
    targets: &[Targets::Classes],
    order: Order::First,
    cost: "O(B d)",
    options: &[],
    make: Make::Rows { build, load },
};

#[derive(Debug)]
struct Perceptron {
    budget: usize,
    function: Expansion,
}

fn build(settings: &LearnerSettings, _: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(Perceptron { budget: settings.budget, function: Expansion::new(settings) }))
}

fn load(settings: &LearnerSettings, _: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(Perceptron { budget: settings.budget, function: Expansion::take(file, settings)? }))
}

impl OnlineLearner for Perceptron {
    fn predict(&mut self, row: Row) -> f64 {
        self.function.output(row)
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let output = self.function.output(row);
        if target * output <= 0.0 && self.function.len() < self.budget {
            self.function.push(row, target);
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
        self.function.put(file)
    }
}
