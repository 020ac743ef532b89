//! What a caller may set of a fit.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::preprocess::{Scale, TableOptions};
use crate::sketch::DictionaryMethod;
use crate::solver::{Ridge, SolverOptions};

/// A kernel whose bandwidth is still to be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KernelFamily(Kernel);

impl KernelFamily {
    /// The kind of this kernel; its bandwidth, if it has one, does not count.
    pub fn of(kernel: Kernel) -> Self {
        Self(kernel)
    }
    /// Whether there is a bandwidth to choose.
    pub fn has_bandwidth(&self) -> bool {
        self.0.bandwidth().is_some()
    }
    /// The kernel of this bandwidth; a kernel without one is given as it is.
    pub fn with_bandwidth(&self, bandwidth: f64) -> Result<Kernel> {
        self.0.with_bandwidth(bandwidth)
    }
    /// The name a user writes.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }
}

/// The name, with what else a user may set of it.
impl fmt::Display for KernelFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.0 {
            Kernel::Polynomial { degree, scale, offset } => {
                write!(f, " (degree {degree}, kernel-scale {scale}, offset {offset})")
            }
            _ => Ok(()),
        }
    }
}

/// How the bandwidth is found.
#[doc(alias = "σ")]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bandwidth {
    /// The median heuristic, then multiples of it judged on held-out rows of the sample.
    Auto,
    /// The median heuristic alone.
    Median,
    /// Centred kernel alignment over the grid of SkeGD.
    Alignment,
    /// This value, above 0.
    Fixed(f64),
}

impl Bandwidth {
    /// The word for how it is found.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Median => "median",
            Self::Alignment => "alignment",
            Self::Fixed(_) => "fixed",
        }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(value) => value.fmt(f),
            chosen => f.write_str(chosen.word()),
        }
    }
}

impl FromStr for Bandwidth {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::InvalidParam {
            name: "bandwidth",
            found: format!("'{text}'"),
            expected: "'auto', 'median', 'alignment' or a finite number above 0",
        };
        match text {
            "auto" => Ok(Self::Auto),
            "median" => Ok(Self::Median),
            "alignment" => Ok(Self::Alignment),
            _ => {
                let value = text.parse().map_err(|_| wrong())?;
                Ok(Self::Fixed(Error::require_positive("bandwidth", value).map_err(|_| wrong())?))
            }
        }
    }
}

/// Everything about a fit but the data.
#[derive(Debug, Clone, PartialEq)]
pub struct FitOptions {
    /// Columns, labels, scaling.
    pub table: TableOptions,
    /// Which kernel.
    pub kernel: KernelFamily,
    /// Its bandwidth.
    pub bandwidth: Bandwidth,
    /// Ridge and intercept.
    pub solver: SolverOptions,
    /// Most atoms.
    #[doc(alias = "B")]
    pub budget: usize,
    /// How atoms are chosen from the sample of the first pass (`squeak`: from all rows); none: by uniform sampling or randomly pivoted
    /// Cholesky, whichever does better on held-out rows of the sample.
    pub dictionary: Option<DictionaryMethod>,
    /// γ of the approximation and of batch methods that sample by leverage scores; none means 1 for those and plain
    /// Nyström for the others. `rpcholesky` takes none. Sequential methods draw atoms from this γ on, raising it to keep
    /// the budget (none: from [`starting_leverage_ridge`](crate::sketch::starting_leverage_ridge) on), and the fit on
    /// their atoms is plain Nyström.
    #[doc(alias = "γ")]
    pub leverage_ridge: Option<f64>,
    /// Of all random choices.
    pub seed: u64,
    /// Rows of the sample that bandwidth and atoms are chosen from; none means ten times the budget, at least
    /// 12,500 and at most 50,000 (4,000 for `batch-exact`, 2,000 for INK).
    pub sample: Option<usize>,
    /// Most memory that an exact fit may take.
    pub allowed_bytes: u64,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            table: TableOptions { scale: Scale::Standard, ..TableOptions::default() },
            kernel: KernelFamily(Kernel::Gaussian { bandwidth: 1.0 }),
            bandwidth: Bandwidth::Auto,
            solver: SolverOptions::default(),
            budget: 1000,
            dictionary: None,
            leverage_ridge: None,
            seed: 0,
            sample: None,
            allowed_bytes: 4 << 30,
        }
    }
}

impl FitOptions {
    /// Refuses a column of weights where rows are not weighed.
    pub(crate) fn refuse_weights(&self) -> Result<()> {
        match &self.table.weights {
            None => Ok(()),
            Some(column) => {
                let found = format!("a column of weights, '{column}'");
                Err(Error::InvalidParam { name: "weights", found, expected: "none: only streams weigh rows" })
            }
        }
    }

    /// Checks what can be checked before any data is read.
    pub fn validated(&self) -> Result<()> {
        if self.budget == 0 {
            let found = "0".to_owned();
            return Err(Error::InvalidParam { name: "budget", found, expected: "at least 1 atom" });
        }
        if self.sample == Some(0) {
            let found = "0".to_owned();
            return Err(Error::InvalidParam { name: "sample", found, expected: "at least 1 row" });
        }
        if let Ridge::Fixed(value) = self.solver.ridge {
            Error::require_positive("ridge", value)?;
        }
        if let Bandwidth::Fixed(value) = self.bandwidth {
            Error::require_positive("bandwidth", value)?;
        }
        if let Some(value) = self.leverage_ridge {
            Error::require_positive("leverage-ridge", value)?;
        }
        if !self.kernel.has_bandwidth() && self.bandwidth != Bandwidth::Auto {
            return Err(Error::InvalidParam {
                name: "bandwidth",
                found: format!("a bandwidth for the {} kernel", self.kernel.name()),
                expected: "none, because that kernel has no bandwidth",
            });
        }
        Ok(())
    }

    /// γ of the approximation itself, which trials share.
    pub(super) fn trial_leverage_ridge(&self) -> Option<f64> {
        let sequential = self.dictionary.is_some_and(|method| method.is_sequential());
        self.leverage_ridge.filter(|_| !sequential)
    }

    /// Rows of the sample.
    pub fn sample_rows(&self) -> usize {
        // Exact leverage scores are cubic in the sample; INK takes a cube of the atoms, or more, for each of its rows.
        let usual = match self.dictionary {
            Some(DictionaryMethod::BatchExact) => 4000,
            Some(DictionaryMethod::InkEstimate | DictionaryMethod::InkOracle) => 2000,
            _ => (10 * self.budget).clamp(12_500, 50_000),
        };
        self.sample.unwrap_or(usual).max(self.budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_is_a_word_or_a_positive_number() {
        assert_eq!("alignment".parse::<Bandwidth>().unwrap(), Bandwidth::Alignment);
        assert_eq!("2.5".parse::<Bandwidth>().unwrap(), Bandwidth::Fixed(2.5));
        for word in ["auto", "median", "alignment", "2.5"] {
            assert_eq!(word.parse::<Bandwidth>().unwrap().to_string(), word);
        }
        for bad in ["0", "-2", "wide", "NaN"] {
            assert!(matches!(bad.parse::<Bandwidth>(), Err(Error::InvalidParam { name: "bandwidth", .. })), "{bad}");
        }
    }

    #[test]
    fn kernels_are_named_with_what_can_be_set_but_the_bandwidth() {
        assert_eq!(KernelFamily::of(Kernel::Gaussian { bandwidth: 3.0 }).to_string(), "gaussian");
        let polynomial = KernelFamily::of(Kernel::polynomial(2, 0.5, 1.0).unwrap());
        assert_eq!(polynomial.to_string(), "polynomial (degree 2, kernel-scale 0.5, offset 1)");
    }

    #[test]
    fn wrong_options_are_refused_before_reading() {
        assert!(FitOptions { budget: 0, ..FitOptions::default() }.validated().is_err());
        assert!(FitOptions { leverage_ridge: Some(-1.0), ..FitOptions::default() }.validated().is_err());
        let linear = KernelFamily::of(Kernel::Linear);
        assert!(FitOptions { kernel: linear, ..FitOptions::default() }.validated().is_ok());
        let with = FitOptions { kernel: linear, bandwidth: Bandwidth::Fixed(1.0), ..FitOptions::default() };
        assert!(with.validated().is_err());
    }
}
