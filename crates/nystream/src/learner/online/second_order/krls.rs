//! Kernel recursive least squares with approximate linear dependence, and a hard budget.
//!
//! Y. Engel, S. Mannor, R. Meir, "The kernel recursive least-squares algorithm", IEEE Transactions on Signal Processing
//! 52(8), 2004, pages 2275–2285, Table 1. A row enters the dictionary when δ = k(x,x) − k_Z(x)ᵀK_ZZ⁻¹k_Z(x) is above ν,
//! and every row is learnt by least squares over the projections onto the atoms. There is no ridge: ν is what keeps the
//! problem well posed. Targets that are classes are learnt as the numbers ±1.
//!
//! A round costs its kernels and O(B²): O(B d + B²).
//!
//! Departures from the paper:
//! - The dictionary has a hard limit. Once the budget is full, rows that the test would admit are learnt as the others
//!   are, by their projection onto the atoms (the second case of Table 1, the "reduced" update).
//! - Instead of K_ZZ⁻¹ and α̃ a Cholesky factor and weights in its basis are held ([`recursion`](super::recursion)): the
//!   same outputs, and the factor loses half as many digits.
//! - Rows whose δ is below 1e-10 k(x,x), the rounding, do not enter under any ν.
//! - The first row is treated as every other: it enters if k(x,x) > ν.
//!
//! Not confirmed: the paper's text was not at hand; Table 1 is written from what is known of it, and agrees with a public
//! toolbox.

use super::embedding::Embedding;
use super::recursion::Recursion;
use crate::error::Result;
use crate::learner::online::entry::{LearnerEntry, Make, OnlineLearner, Order};
use crate::learner::online::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use crate::learner::online::settings::{LearnerSettings, Targets};
use crate::persist::Container;
use crate::rows::Row;

pub(in crate::learner::online) static ENTRY: LearnerEntry = LearnerEntry {
    name: "krls",
    title: "kernel recursive least squares with approximate linear dependence (KRLS)",
    citation: "Engel, Mannor, Meir, \"The kernel recursive least-squares algorithm\", IEEE Trans. Signal Processing 52(8), \
               2004, Table 1",
    targets: &[Targets::Classes, Targets::Numbers],
    order: Order::Second,
    cost: "O(B d + B²)",
    options: &[OptionSpec {
        name: "dependence",
        symbol: "ν",
        meaning: "a row enters if the atoms leave more than this of k(x,x) unexplained",
        kind: OptionKind::NonNegative,
        default: Default::Number(0.01),
        trial: Trial::of("0.9"),
    }],
    make: Make::Rows { build, load },
};

#[derive(Debug)]
struct Krls {
    threshold: f64,
    budget: usize,
    embedding: Embedding,
    recursion: Recursion,
}

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    let (embedding, recursion) = (Embedding::new(settings), Recursion::default());
    Ok(Box::new(Krls { threshold: chosen.number("dependence")?, budget: settings.budget, embedding, recursion }))
}

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    let embedding = Embedding::take(file, settings)?;
    let recursion = Recursion::take(file, embedding.atoms())?;
    Ok(Box::new(Krls { threshold: chosen.number("dependence")?, budget: settings.budget, embedding, recursion }))
}

impl OnlineLearner for Krls {
    fn predict(&mut self, row: Row) -> f64 {
        self.embedding.map(row);
        self.recursion.output(self.embedding.features())
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        // Table 1, "ALD test": φ and δ.
        let output = self.predict(row);
        let error = target - output;
        if self.embedding.residual() > self.threshold && self.embedding.atoms() < self.budget {
            // "Dictionary extended".
            let coordinate = self.embedding.admit(row);
            self.recursion.extend(coordinate, error);
        } else {
            // "Dictionary unchanged".
            self.recursion.learn(&self.embedding, error);
        }
        Ok(output)
    }

    fn atoms(&self) -> usize {
        self.embedding.atoms()
    }

    fn size_bytes(&self) -> usize {
        self.embedding.size_bytes() + self.recursion.size_bytes()
    }

    fn save(&self, file: &mut Container) -> Result<()> {
        self.embedding.put(file)?;
        self.recursion.put(file)
    }
}
