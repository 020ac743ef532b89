//! Budgeted passive-aggressive learning, simple variant.
//!
//! Z. Wang, S. Vucetic, "Online passive-aggressive algorithms on a budget", AISTATS 2010: BPA-S, in which removing a row
//! changes the coefficient of the newest row only.
//!
//! With τ = min(C, ℓ/k(x, x)) and, when the budget is full, row r removed: the newest row gets
//! β = α_r k(x_r, x)/k(x, x) + τ y. Its loss afterwards does not depend on r, so the best r is the one whose removal costs
//! least, α_r² (k(x_r, x_r) − k(x_r, x)²/k(x, x)): the paper's search over all r in one pass over B numbers. A round costs its
//! kernels, O(B d).
//!
//! Departures from the paper:
//! - Written for any k(x, x), where the paper has kernels with k(x, x) = 1.
//! - A row with k(x, x) = 0 (the linear kernel at the origin) is passed over: no step changes its output.

use super::entry::{LearnerEntry, Make, OnlineLearner, Order};
use super::expansion::Expansion;
use super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use super::settings::{LearnerSettings, Targets};
use super::state::State;
use crate::error::Result;
use crate::persist::Container;
use crate::rows::Row;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "bpa-s",
    title: "budgeted passive-aggressive learning, simple variant",
    citation: "Wang, Vucetic, \"Online passive-aggressive algorithms on a budget\", AISTATS 2010, BPA-S",
    targets: &[Targets::Classes],
    order: Order::First,
    cost: "O(B d)",
    options: &[OptionSpec {
        name: "aggressiveness",
        symbol: "C",
        meaning: "largest step",
        kind: OptionKind::Positive,
        default: Default::Number(1.0),
        trial: Trial::of("0.1"),
    }],
    make: Make::Rows { build, load },
};

#[derive(Debug)]
struct Bpas {
    aggressiveness: f64,
    budget: usize,
    function: Expansion,
    /// k(x, x) of the rows kept.
    diagonal: Vec<f64>,
    /// What removing each of the rows kept would cost, for the row looked at last.
    costs: Vec<f64>,
}

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    let aggressiveness = chosen.number("aggressiveness")?;
    let function = Expansion::new(settings);
    Ok(Box::new(Bpas { aggressiveness, budget: settings.budget, function, diagonal: Vec::new(), costs: Vec::new() }))
}

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    let aggressiveness = chosen.number("aggressiveness")?;
    let function = Expansion::take(file, settings)?;
    let diagonal = file.take_numbers("diagonal", function.len())?;
    let costs = vec![0.0; diagonal.len()];
    Ok(Box::new(Bpas { aggressiveness, budget: settings.budget, function, diagonal, costs }))
}

impl Bpas {
    /// The row whose removal costs least, for a new one of this k(x, x); the first of several.
    fn cheapest(&mut self, own: f64) -> usize {
        let share = 1.0 / own;
        let rows = self.function.coefficients.iter().zip(&self.function.kernels).zip(&self.diagonal);
        for (cost, ((alpha, kernel), diagonal)) in self.costs.iter_mut().zip(rows) {
            *cost = alpha * alpha * (diagonal - kernel * kernel * share);
        }
        // Least of each of eight columns, then of all, then where it stands: none of it waits for branches.
        let smaller = |a: f64, b: f64| if b < a { b } else { a };
        let (groups, rest) = self.costs.as_chunks::<8>();
        let mut least = [f64::INFINITY; 8];
        for group in groups {
            (0..8).for_each(|i| least[i] = smaller(least[i], group[i]));
        }
        let least = least.iter().chain(rest).fold(f64::INFINITY, |all, cost| smaller(all, *cost));
        self.costs.iter().position(|cost| *cost == least).unwrap_or(0)
    }
}

impl OnlineLearner for Bpas {
    fn predict(&mut self, row: Row) -> f64 {
        self.function.output(row)
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let output = self.function.output(row);
        let loss = 1.0 - target * output;
        let own = self.function.support.kernel().diagonal(row);
        if loss <= 0.0 || own <= 0.0 {
            return Ok(output);
        }
        let step = target * self.aggressiveness.min(loss / own);
        if self.function.len() < self.budget {
            self.function.push(row, step);
            self.diagonal.push(own);
            self.costs.push(0.0);
        } else {
            let r = self.cheapest(own);
            let coefficient = self.function.coefficients[r] * self.function.kernels[r] / own + step;
            self.function.replace(r, row, coefficient);
            self.diagonal[r] = own;
        }
        Ok(output)
    }

    fn atoms(&self) -> usize {
        self.function.len()
    }

    fn size_bytes(&self) -> usize {
        self.function.size_bytes() + (self.diagonal.capacity() + self.costs.capacity()) * 8
    }

    fn save(&self, file: &mut Container) -> Result<()> {
        self.function.put(file)?;
        file.put_numbers("diagonal", &self.diagonal)
    }
}
