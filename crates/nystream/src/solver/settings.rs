//! What a caller may set of a solve.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// μ, the ridge of the regression.
#[doc(alias = "μ")]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ridge {
    /// By generalised cross-validation.
    Auto,
    /// This value, above 0.
    Fixed(f64),
}

impl Ridge {
    /// Checks that a fixed ridge is finite and above 0.
    pub fn validated(self) -> Result<Self> {
        if let Self::Fixed(value) = self {
            Error::require_positive("ridge", value)?;
        }
        Ok(self)
    }
}

impl fmt::Display for Ridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Fixed(value) => value.fmt(f),
        }
    }
}

impl FromStr for Ridge {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let wrong = || Error::InvalidParam {
            name: "ridge",
            found: format!("'{text}'"),
            expected: "'auto' or a finite number above 0",
        };
        Self::Fixed(text.parse().map_err(|_| wrong())?).validated().map_err(|_| wrong())
    }
}

/// Settings common to the solvers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SolverOptions {
    /// μ.
    pub ridge: Ridge,
    /// Whether an unpenalised constant is fitted beside the kernel expansion.
    pub intercept: bool,
}

impl Default for SolverOptions {
    fn default() -> Self {
        Self { ridge: Ridge::Auto, intercept: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ridge_is_a_word_or_a_positive_number() {
        assert_eq!("auto".parse::<Ridge>().unwrap(), Ridge::Auto);
        assert_eq!("0.5".parse::<Ridge>().unwrap(), Ridge::Fixed(0.5));
        assert_eq!(["auto", "0.5"].map(|word| word.parse::<Ridge>().unwrap().to_string()), ["auto", "0.5"]);
        for bad in ["0", "-1", "nan", "inf", "small"] {
            assert!(matches!(bad.parse::<Ridge>(), Err(Error::InvalidParam { name: "ridge", .. })), "{bad}");
        }
    }
}
