//! Projectron++.
//!
//! F. Orabona, J. Keshet, B. Caputo, "The Projectron: a bounded kernel-based perceptron", ICML 2008; "Bounded kernel-based
//! online learning", Journal of Machine Learning Research 10, 2009, pages 2643–2666: algorithm Projectron++.
//!
//! The Projectron, and beside it a projected step when the class is right but the margin is below 1. A round costs its
//! kernels, O(B d); a mistake or a margin error O(B²) more, but for margin errors at rows so far from the span that no step
//! can come of them, where the kernels show it, all of them or the large ones alone. For the latter K⁻¹ is made, O(B³), when
//! the budget is full and a margin error led to no step.
//!
//! Departures from the paper, beside those of the Projectron:
//! - The paper's 1/η, which stands for the norm U of the competitor in the analysis, is an option of its own: with η = 0 it
//!   would forbid margin steps. Its default ¼ √((B + 1)/ln(B + 1)) is the norm that the Forgetron's bound allows for a budget
//!   of B, as in the toolbox that later papers compare with.

use super::entry::{LearnerEntry, Make, OnlineLearner, Order};
use super::expansion::Expansion;
use super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use super::projectron::PROJECTION_ERROR;
use super::settings::{LearnerSettings, Targets};
use super::span::Span;
use crate::error::Result;
use crate::persist::Container;
use crate::rows::Row;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "projectron++",
    title: "Projectron++",
    citation: "Orabona, Keshet, Caputo, \"Bounded kernel-based online learning\", JMLR 10, 2009, algorithm Projectron++",
    targets: &[Targets::Classes],
    order: Order::First,
    cost: "O(B d), and O(B²) at a mistake or a small margin",
    options: &[
        PROJECTION_ERROR,
        OptionSpec {
            name: "competitor-norm",
            symbol: "U",
            meaning: "norm of the function to compete with: larger ones allow fewer margin steps",
            kind: OptionKind::NonNegative,
            default: Default::Derived("√((B + 1)/ln(B + 1))/4"),
            trial: Trial::of("0.1"),
        },
    ],
    make: Make::Rows { build, load },
};

#[derive(Debug)]
struct ProjectronPlus {
    error: f64,
    competitor: f64,
    span: Span,
    /// Whether the last margin error led to a step: a guess at what the next will do, which changes the work, not the result.
    stepped: bool,
}

fn new(settings: &LearnerSettings, chosen: &Chosen, span: Span) -> Result<Box<dyn OnlineLearner>> {
    let more = settings.budget as f64 + 1.0;
    let competitor = chosen.given_number("competitor-norm")?.unwrap_or(0.25 * (more / more.ln()).sqrt());
    Ok(Box::new(ProjectronPlus { error: chosen.number("projection-error")?, competitor, span, stepped: true }))
}

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    new(settings, chosen, Span::new(settings, Expansion::new(settings)))
}

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    let mut span = Span::take(file, settings)?;
    span.prepare_bound();
    new(settings, chosen, span)
}

impl OnlineLearner for ProjectronPlus {
    fn predict(&mut self, row: Row) -> f64 {
        self.span.function.output(row)
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let output = self.span.function.output(row);
        let loss = 1.0 - target * output;
        if loss <= 0.0 {
            return Ok(output);
        }
        if target * output <= 0.0 {
            // A mistake: the Projectron's step.
            let projected = self.span.project(row);
            self.span.step(row, target, projected, self.error);
            return Ok(output);
        }
        // A margin error: τ = min(ℓ/‖Pk‖², 2(ℓ − U‖δ‖)/‖Pk‖², 1), if that is above 0, which the projection itself need not be
        // known for.
        let squared = (loss / self.competitor).powi(2);
        if self.span.is_beyond(row, squared) || !self.stepped && self.span.is_beyond_by_large(row, squared) {
            return Ok(output);
        }
        let projected = if self.stepped { self.span.project(row) } else { self.span.measure(row) };
        let kept = loss - self.competitor * projected.squared_distance.sqrt();
        let step = kept > 0.0 && projected.squared_norm > 0.0;
        if step {
            if !self.stepped {
                self.span.finish();
            }
            let length = (loss.min(2.0 * kept) / projected.squared_norm).min(1.0);
            self.span.add_projection(target * length);
        }
        self.stepped = step;
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
