//! The Projectron.
//!
//! F. Orabona, J. Keshet, B. Caputo, "The Projectron: a bounded kernel-based perceptron", ICML 2008; "Bounded kernel-based
//! online learning", Journal of Machine Learning Research 10, 2009, pages 2643–2666: algorithm Projectron.
//!
//! On a mistake the perceptron's step is projected onto the span of the rows kept, if that loses at most η; else the row is
//! kept too. A round costs its kernels, O(B d); a mistake O(B²) more.
//!
//! Departures from the paper:
//! - Beside η there is a budget: when it is full every step is projected, whatever it loses. By default η is 0 and the
//!   budget alone bounds the rows, as in the toolbox that later papers compare with.
//! - A row whose squared distance from the span is below 1e-8 k(x, x) counts as within it: it would be rounding that is kept.

use super::entry::{LearnerEntry, Make, OnlineLearner, Order};
use super::expansion::Expansion;
use super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use super::settings::{LearnerSettings, Targets};
use super::span::Span;
use crate::error::Result;
use crate::persist::Container;
use crate::rows::Row;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "projectron",
    title: "Projectron",
    citation: "Orabona, Keshet, Caputo, \"Bounded kernel-based online learning\", JMLR 10, 2009, algorithm Projectron",
    targets: &[Targets::Classes],
    order: Order::First,
    cost: "O(B d), and O(B²) at a mistake",
    options: &[PROJECTION_ERROR],
    make: Make::Rows { build, load },
};

/// The option that both Projectrons have.
pub(super) const PROJECTION_ERROR: OptionSpec = OptionSpec {
    name: "projection-error",
    symbol: "η",
    meaning: "steps that lose no more than this are projected while there are places left",
    kind: OptionKind::NonNegative,
    default: Default::Number(0.0),
    trial: Trial::of("0.9"),
};

#[derive(Debug)]
struct Projectron {
    error: f64,
    span: Span,
}

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    let span = Span::new(settings, Expansion::new(settings));
    Ok(Box::new(Projectron { error: chosen.number("projection-error")?, span }))
}

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(Projectron { error: chosen.number("projection-error")?, span: Span::take(file, settings)? }))
}

impl OnlineLearner for Projectron {
    fn predict(&mut self, row: Row) -> f64 {
        self.span.function.output(row)
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let output = self.span.function.output(row);
        if target * output <= 0.0 {
            let projected = self.span.project(row);
            self.span.step(row, target, projected, self.error);
        }
        Ok(output)
    }

    fn atoms(&self) -> usize {
        self.span.function.len()
    }

    fn size_bytes(&self) -> usize {
        self.span.size_bytes()
    }

    fn save(&self, file: &mut Container) -> Result<()> {
        self.span.put(file)
    }
}
