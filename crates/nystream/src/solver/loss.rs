//! What an error costs: its square, or, of two classes, its square on one side of the margin only.
//!
//! Codes of two classes are ±1, and a squared error also counts outputs that are right by more than that. The squared hinge,
//! max(0, 1 − yf)², does not, and has the same best output where a row's class is a matter of chance: f = 2p − 1 (T. Zhang,
//! "Statistical behavior and consistency of classification methods based on convex risk minimization", Annals of Statistics
//! 32, 2004). Its solution is a ridge regression on the rows with yf < 1, the others left out (O. L. Mangasarian, "A finite
//! Newton method for classification", Optimization Methods and Software 17, 2002): so sums do for it as well.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What an error costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// (y − f)².
    #[default]
    Squared,
    /// max(0, 1 − yf)², for codes y = ±1.
    SquaredHinge,
}

impl Loss {
    /// Whether a row of this code costs nothing at this output, and nothing nearby.
    pub fn passes(self, code: f64, output: f64) -> bool {
        self == Self::SquaredHinge && code * output >= 1.0
    }

    /// The loss of an output.
    pub fn of(self, code: f64, output: f64) -> f64 {
        if self.passes(code, output) { 0.0 } else { (code - output).powi(2) }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Squared => "squared",
            Self::SquaredHinge => "squared-hinge",
        })
    }
}

impl FromStr for Loss {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "squared" => Ok(Self::Squared),
            "squared-hinge" => Ok(Self::SquaredHinge),
            _ => {
                let found = format!("'{text}'");
                Err(Error::InvalidParam { name: "loss", found, expected: "'auto', 'squared' or 'squared-hinge'" })
            }
        }
    }
}
