//! The losses of online learning, and their derivatives.

use std::str::FromStr;

use super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use super::settings::Targets;
use crate::error::{Error, Result};

/// What an output costs, given the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// max(0, 1 − y f)
    Hinge,
    /// ln(1 + exp(−y f))
    Logistic,
    /// (f − y)² / 2
    Squared,
}

/// The option `loss` of learners that take any.
pub(super) const LOSS: OptionSpec = OptionSpec {
    name: "loss",
    symbol: "ℓ",
    meaning: "what is minimised",
    kind: OptionKind::Word(&["hinge", "logistic", "squared"]),
    default: Default::Derived("hinge for classes, squared for numbers"),
    trial: Trial::of("logistic"),
};

impl Loss {
    /// The one chosen by the option `loss`, or the usual one for the targets.
    pub fn chosen(chosen: &Chosen, targets: Targets) -> Result<Self> {
        match (chosen.word("loss")?, targets) {
            (Some(word), _) => {
                let loss: Self = word.parse()?;
                if targets == Targets::Numbers && loss != Self::Squared {
                    let found = format!("'{word}' for targets that are numbers");
                    return Err(chosen.refused("loss", found, "squared"));
                }
                Ok(loss)
            }
            (None, Targets::Classes) => Ok(Self::Hinge),
            (None, Targets::Numbers) => Ok(Self::Squared),
        }
    }

    /// The loss.
    pub fn value(self, output: f64, target: f64) -> f64 {
        match self {
            Self::Hinge => (1.0 - target * output).max(0.0),
            Self::Logistic => {
                // Both ways round, so that the exponential never overflows.
                let margin = target * output;
                (-margin.abs()).exp().ln_1p() + (-margin).max(0.0)
            }
            Self::Squared => 0.5 * (output - target) * (output - target),
        }
    }

    /// Its derivative in the output (at the hinge's corner, 0).
    pub fn derivative(self, output: f64, target: f64) -> f64 {
        match self {
            Self::Hinge => {
                if target * output < 1.0 {
                    -target
                } else {
                    0.0
                }
            }
            Self::Logistic => -target / (1.0 + (target * output).exp()),
            Self::Squared => output - target,
        }
    }
}

impl FromStr for Loss {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "hinge" => Ok(Self::Hinge),
            "logistic" => Ok(Self::Logistic),
            "squared" => Ok(Self::Squared),
            _ => Err(Error::InvalidParam {
                name: "loss",
                found: format!("'{word}'"),
                expected: "hinge, logistic or squared",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_slopes() {
        for loss in [Loss::Hinge, Loss::Logistic, Loss::Squared] {
            for target in [-1.0, 1.0] {
                for output in [-40.0, -1.7, -0.3, 0.0, 0.4, 2.5, 40.0] {
                    let step = 1e-6;
                    let slope = (loss.value(output + step, target) - loss.value(output - step, target)) / (2.0 * step);
                    // Rounding of values up to 900 over a step of 1e-6.
                    assert!((slope - loss.derivative(output, target)).abs() < 1e-5, "{loss:?} {output} {target}");
                }
            }
        }
        assert!(Loss::Logistic.value(-1e4, 1.0) == 1e4 && Loss::Logistic.derivative(-1e4, 1.0) == -1.0);
        assert_eq!(Loss::Logistic.derivative(1e4, 1.0), 0.0);
    }
}
