//! Losses with curvature, as online Newton steps need: ℓ(u) ≥ ℓ(w) + ℓ'(w)(u − w) + (σ/2)(ℓ'(w)(u − w))² for outputs
//! within ±C (Calandriello et al. 2017, Assumption 2). The hinge loss has none (σ = 0), and is not among them.

use crate::error::Result;
use crate::learner::online::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use crate::learner::online::settings::Targets;

/// What an output costs, given the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CurvedLoss {
    /// (f − y)², as in the papers: twice [`Loss::Squared`](crate::learner::online::Loss::Squared).
    Squared,
    /// max(0, 1 − y f)²; the same as `Squared` while outputs stay within ±1.
    SquaredHinge,
    /// ln(1 + exp(−y f))
    Logistic,
}

/// The option `loss`.
pub(super) const CURVED_LOSS: OptionSpec = OptionSpec {
    name: "loss",
    symbol: "ℓ",
    meaning: "what is minimised",
    kind: OptionKind::Word(&["squared", "squared-hinge", "logistic"]),
    default: Default::Derived("squared-hinge for classes, squared for numbers"),
    trial: Trial::of("logistic"),
};

impl CurvedLoss {
    /// The one chosen by the option `loss`, or the usual one for the targets.
    pub(super) fn chosen(chosen: &Chosen, targets: Targets) -> Result<Self> {
        let loss = match chosen.word("loss")? {
            Some("squared") => Self::Squared,
            Some("squared-hinge") => Self::SquaredHinge,
            Some("logistic") => Self::Logistic,
            _ if targets == Targets::Classes => Self::SquaredHinge,
            _ => Self::Squared,
        };
        if targets == Targets::Numbers && loss != Self::Squared {
            return Err(chosen.refused("loss", "a loss of classes for targets that are numbers", "squared"));
        }
        Ok(loss)
    }

    /// Its derivative in the output.
    pub(super) fn derivative(self, output: f64, target: f64) -> f64 {
        match self {
            Self::Squared => 2.0 * (output - target),
            Self::SquaredHinge => -2.0 * target * (1.0 - target * output).max(0.0),
            Self::Logistic => -target / (1.0 + (target * output).exp()),
        }
    }

    /// σ for outputs within ±`bound` and targets within ±max(`bound`, 1).
    pub(super) fn curvature(self, bound: f64) -> f64 {
        match self {
            Self::Squared | Self::SquaredHinge => 0.125 / bound.max(1.0).powi(2),
            Self::Logistic => (-bound).exp(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(loss: CurvedLoss, output: f64, target: f64) -> f64 {
        match loss {
            CurvedLoss::Squared => (output - target).powi(2),
            CurvedLoss::SquaredHinge => (1.0 - target * output).max(0.0).powi(2),
            CurvedLoss::Logistic => (-target * output).exp().ln_1p(),
        }
    }

    #[test]
    fn the_stated_curvature_holds_between_all_pairs_of_outputs() {
        for loss in [CurvedLoss::Squared, CurvedLoss::SquaredHinge, CurvedLoss::Logistic] {
            for bound in [0.5, 1.0, 2.0, 5.0] {
                let grid = || (0..=200).map(|i| bound * (f64::from(i) / 100.0 - 1.0));
                for target in [-1.0, 1.0] {
                    for (w, u) in grid().flat_map(|w| grid().map(move |u| (w, u))) {
                        let along = loss.derivative(w, target) * (u - w);
                        let below = value(loss, w, target) + along + 0.5 * loss.curvature(bound) * along * along;
                        assert!(value(loss, u, target) > below - 1e-12, "{loss:?} {bound} {w} {u}");
                    }
                }
            }
        }
    }

    #[test]
    fn derivatives_are_slopes_of_the_values() {
        for loss in [CurvedLoss::Squared, CurvedLoss::SquaredHinge, CurvedLoss::Logistic] {
            for (output, target) in [(0.3, 1.0), (0.3, -1.0), (-1.4, 1.0), (1.4, 1.0)] {
                let step = 1e-6;
                let slope = (value(loss, output + step, target) - value(loss, output - step, target)) / (2.0 * step);
                assert!((slope - loss.derivative(output, target)).abs() < 1e-8, "{loss:?} {output}");
            }
        }
    }
}
