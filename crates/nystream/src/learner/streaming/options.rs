//! What a caller may set of the streaming learner.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fit::{Bandwidth, FitOptions, KernelFamily};
use crate::solver::{Loss, Ridge};

/// Rows kept at the start, in budgets.
const HEAD: usize = 5;
/// Length of the stream at which the bank is decided, in budgets.
const BANK: usize = 20;
/// Fewest rows of the head: bandwidth and ridge need some.
const SHORTEST_HEAD: usize = 256;

/// Rows that the innermost loops of products take without a rest.
const WHOLE: usize = 24;

/// Budgets above which a block is half as long as the budget.
const LARGE_BUDGET: usize = 500;

/// Budgets whose start is kept short: with fewer atoms it takes little time anyway, and with more, whose heads are too long for
/// leaving out rows, less is known of those that would be left out.
const SHORT_START: RangeInclusive<usize> = 101..=LARGE_BUDGET;
/// Of those, fewest atoms of a trial.
const FEWEST_TRIED: usize = 64;

/// Everything about a streaming learner but the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamingOptions {
    /// Which kernel.
    pub kernel: KernelFamily,
    /// Its bandwidth: `auto` is chosen from the head and improved by the bank.
    pub bandwidth: Bandwidth,
    /// μ: `auto` by generalised cross-validation, chosen anew as the stream grows.
    pub ridge: Ridge,
    /// Most atoms.
    #[doc(alias = "B")]
    pub budget: usize,
    /// Rows after which a row counts half; none: every row counts the same for ever.
    pub half_life: Option<f64>,
    /// Whether atoms may change after the head, where rows come that the atoms do not reach.
    #[serde(default)]
    pub reopen: Reopen,
    /// What errors cost.
    #[serde(default)]
    pub loss: LossChoice,
    /// The output above which a row counts as of the second of two classes, in the score; none: as past outputs suggest.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// Of all random choices.
    pub seed: u64,
}

/// How the loss is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossChoice {
    /// The squared hinge for two classes, squared errors for anything else.
    #[default]
    Auto,
    /// This one.
    Fixed(Loss),
}

impl FromStr for LossChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Fixed) }
    }
}

impl fmt::Display for LossChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Fixed(loss) => loss.fmt(f),
        }
    }
}

/// Whether atoms may change after the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reopen {
    /// When rows come from where the atoms do not reach.
    #[default]
    Auto,
    /// Never.
    Off,
}

impl FromStr for Reopen {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            _ => {
                let found = format!("'{text}'");
                Err(Error::InvalidParam { name: "reopen", found, expected: "'auto' or 'off'" })
            }
        }
    }
}

impl fmt::Display for Reopen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Off => "off",
        })
    }
}

impl Default for StreamingOptions {
    fn default() -> Self {
        let fit = FitOptions::default();
        Self {
            kernel: fit.kernel,
            bandwidth: Bandwidth::Auto,
            ridge: Ridge::Auto,
            budget: 1000,
            half_life: None,
            reopen: Reopen::Auto,
            loss: LossChoice::Auto,
            threshold: None,
            seed: 0,
        }
    }
}

impl StreamingOptions {
    /// Checks what can be checked before any data is read.
    pub fn validated(&self) -> Result<()> {
        self.fit().validated()?;
        if let Some(rows) = self.half_life {
            Error::require_positive("half-life", rows)?;
        }
        if let Some(at) = self.threshold.filter(|at| !at.is_finite()) {
            return Err(Error::InvalidParam { name: "threshold", found: at.to_string(), expected: "a finite number" });
        }
        Ok(())
    }

    /// The same as options of a fit to rows in memory.
    pub(super) fn fit(&self) -> FitOptions {
        let mut options = FitOptions {
            kernel: self.kernel,
            bandwidth: self.bandwidth,
            budget: self.budget,
            seed: self.seed,
            ..FitOptions::default()
        };
        options.solver.ridge = self.ridge;
        options
    }

    /// Checks that other options are the same, and says which are not, as a user would write them.
    pub fn require_same(&self, other: &Self) -> Result<()> {
        for ((field, expected), (_, found)) in self.words().into_iter().zip(other.words()) {
            if found != expected {
                return Err(Error::Incompatible { field: field.to_owned(), found, expected });
            }
        }
        Ok(())
    }

    /// What each option says, by the name a user knows it by.
    fn words(&self) -> [(&'static str, String); 9] {
        let number = |value: Option<f64>, none: &str| value.map_or(none.to_owned(), |value| value.to_string());
        [
            ("kernel", self.kernel.to_string()),
            ("bandwidth", self.bandwidth.to_string()),
            ("ridge", self.ridge.to_string()),
            ("budget", self.budget.to_string()),
            ("half-life", number(self.half_life, "none")),
            ("reopen", self.reopen.to_string()),
            ("loss", self.loss.to_string()),
            ("threshold", number(self.threshold, "auto")),
            ("seed", self.seed.to_string()),
        ]
    }

    /// Whether time at the start is saved at the risk of a slightly worse bandwidth.
    pub(super) fn short_start(&self) -> bool {
        SHORT_START.contains(&self.budget)
    }

    /// Whether all bandwidths that might be best are fitted to the head, and not only those on the way to the best.
    pub(super) fn tries_all(&self) -> bool {
        self.budget < *SHORT_START.start()
    }

    /// Whether fits to the head are made before their turn, where rows are at hand: several learners are then held at once, and
    /// with many atoms each has work for all threads.
    pub(super) fn fits_side_by_side(&self) -> bool {
        self.budget <= LARGE_BUDGET
    }

    /// Most atoms of trials in the head.
    pub(super) fn trial_atoms(&self) -> usize {
        if self.short_start() { (self.budget / 2).max(FEWEST_TRIED) } else { self.budget }
    }

    /// Rows kept at the start.
    pub fn head_rows(&self) -> usize {
        self.budget.saturating_mul(HEAD).max(SHORTEST_HEAD)
    }

    /// Length of the stream at which the bank is decided.
    pub fn bank_rows(&self) -> u64 {
        (self.budget.saturating_mul(BANK).max(4 * SHORTEST_HEAD)) as u64
    }

    /// Rows of a head whose rarest class is slow to come.
    pub(super) fn longest_head(&self) -> usize {
        self.bank_rows() as usize
    }

    /// Rows of a block.
    pub(super) fn block_rows(&self) -> usize {
        // Least work a row at 0.58 times the atoms; large blocks use large products better, and the innermost loops of
        // products take 12 rows and 8 (a block of 144 beside one of 133, 200 atoms: 10 to 20 % less time a row). With many
        // atoms shorter ones leave both threads as much to do: 504 beside 672, 1,000 atoms, a fifth less processor time.
        let rows = if self.budget > LARGE_BUDGET { self.budget / 2 } else { self.budget * 2 / 3 };
        let usual = rows.clamp(64, 1024).next_multiple_of(WHOLE);
        // Within a block weights grow by a factor 2 each half-life; they must stay far from overflow.
        self.half_life.map_or(usual, |rows| usual.min((16.0 * rows) as usize).max(1))
    }

    /// What rows so far are multiplied by when one more comes.
    pub(super) fn decay(&self) -> f64 {
        self.half_life.map_or(1.0, |rows| (-(2f64.ln()) / rows).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    #[test]
    fn what_differs_is_told_as_a_user_writes_it() {
        let usual = StreamingOptions::default();
        let base = || usual.clone();
        let others = [
            (StreamingOptions { kernel: KernelFamily::of(Kernel::Linear), ..base() }, "kernel", "linear", "gaussian"),
            (StreamingOptions { bandwidth: Bandwidth::Fixed(2.0), ..base() }, "bandwidth", "2", "auto"),
            (StreamingOptions { ridge: Ridge::Fixed(0.5), ..base() }, "ridge", "0.5", "auto"),
            (StreamingOptions { budget: 7, ..base() }, "budget", "7", "1000"),
            (StreamingOptions { half_life: Some(100.0), ..base() }, "half-life", "100", "none"),
            (StreamingOptions { reopen: Reopen::Off, ..base() }, "reopen", "off", "auto"),
            (StreamingOptions { loss: LossChoice::Fixed(Loss::Squared), ..base() }, "loss", "squared", "auto"),
            (StreamingOptions { threshold: Some(0.25), ..base() }, "threshold", "0.25", "auto"),
            (StreamingOptions { seed: 3, ..base() }, "seed", "3", "0"),
        ];
        for (other, field, found, expected) in others {
            let message = usual.require_same(&other).unwrap_err().to_string();
            assert_eq!(message, format!("{field} differs: found {found}, expected {expected}"));
        }
        assert!(usual.require_same(&usual).is_ok());
        for word in ["auto", "squared", "squared-hinge"] {
            assert_eq!(word.parse::<LossChoice>().unwrap().to_string(), word);
        }
    }
}
