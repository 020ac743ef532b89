//! What an INK dictionary is asked for.

use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// q̄ where none is given, a practical value for INK-ESTIMATE.
///
/// q̄ bounds the expected number of atoms, but INK-ESTIMATE keeps far fewer, for its d̃_eff is well above d_eff: after
/// 800 rows of normal, clustered or repeated points (Gaussian kernel, γ = 1, ε = 0.5) 7 to 22 times, so that this q̄ kept 90
/// to 150 atoms and Eq. 11 held, while with q̄ = 300 it did not. INK-ORACLE, whose d_eff is exact, did as well with 300.
/// The theorem asks for far more ([`oversampling_bound`](super::oversampling_bound): 3·10⁵ to 8·10⁵ in these examples).
pub const DEFAULT_OVERSAMPLING: u64 = 3000;

/// Options of INK-ORACLE and INK-ESTIMATE.
///
/// There is no budget in bytes: both hold O(t) numbers an atom for t rows by their nature, since they keep the true
/// columns of the kernel matrix, or all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct InkOptions {
    /// The kernel.
    pub kernel: Kernel,
    /// γ, above 0. The theorems ask for γ > 1, which cannot matter: multiplying the kernel and γ by the same number
    /// changes no score, no dimension, and neither side of Eq. 11 against the other.
    #[doc(alias = "γ")]
    pub leverage_ridge: f64,
    /// ε, above 0 and below 1.
    #[doc(alias = "ε")]
    pub accuracy: f64,
    /// δ, above 0 and at most 1. Only the theorem's constants depend on it.
    #[doc(alias = "δ")]
    pub failure_prob: f64,
    /// q̄, at least 1: the expected number of atoms is at most this while the accuracy condition holds.
    #[doc(alias = "q̄")]
    pub oversampling: u64,
    /// The most atoms ever held, at least 1; γ is raised where the stream needs more (see [`with_budget`] for the q̄
    /// that goes with it). None: as many as q̄ brings.
    ///
    /// [`with_budget`]: Self::with_budget
    pub budget: Option<usize>,
    /// Of all random choices.
    pub seed: u64,
}

impl InkOptions {
    /// ε = 0.5, δ = 0.1, q̄ = [`DEFAULT_OVERSAMPLING`], no budget, seed 0.
    pub fn new(kernel: Kernel, leverage_ridge: f64) -> Self {
        Self {
            kernel,
            leverage_ridge,
            accuracy: 0.5,
            failure_prob: 0.1,
            oversampling: DEFAULT_OVERSAMPLING,
            budget: None,
            seed: 0,
        }
    }

    /// The same with this budget, and q̄ ten times as large.
    ///
    /// With a budget q̄ decides what gives way: much larger, and γ must rise far before an atom may be dropped at all;
    /// much smaller, and the weights are too coarse for the accuracy condition. Of 1, 2, 4 and 10 times the budget, and
    /// 3000, ten times left the smallest ‖K − K̃‖₂ in three of four examples (500 rows, budgets of 30 and 60).
    pub fn with_budget(kernel: Kernel, leverage_ridge: f64, budget: usize) -> Self {
        let oversampling = (budget as u64).saturating_mul(10).min(MAX_COUNT);
        Self { oversampling, budget: Some(budget), ..Self::new(kernel, leverage_ridge) }
    }

    /// The same options if they are valid, else what is wrong with them.
    pub fn validated(self) -> Result<Self> {
        self.kernel.validated()?;
        Error::require_positive("leverage-ridge", self.leverage_ridge)?;
        if !(self.accuracy > 0.0 && self.accuracy < 1.0) {
            return Err(invalid("accuracy", self.accuracy, "a number above 0 and below 1"));
        }
        if !(self.failure_prob > 0.0 && self.failure_prob <= 1.0) {
            return Err(invalid("failure-prob", self.failure_prob, "a number above 0, at most 1"));
        }
        if self.oversampling == 0 || self.oversampling > MAX_COUNT {
            return Err(invalid("oversampling", self.oversampling, "1 to 2^53"));
        }
        if self.budget == Some(0) {
            return Err(invalid("budget", 0, "at least 1"));
        }
        Ok(self)
    }
}

/// Counts that doubles hold exactly.
pub(super) const MAX_COUNT: u64 = 1 << 53;

fn invalid(name: &'static str, found: impl ToString, expected: &'static str) -> Error {
    Error::InvalidParam { name, found: found.to_string(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_options_are_named_by_the_word_a_user_writes() {
        let good = InkOptions::new(Kernel::Linear, 1.0);
        assert!(good.clone().validated().is_ok());
        let named = |bad: InkOptions| match bad.validated() {
            Err(Error::InvalidParam { name, .. }) => name,
            other => panic!("{other:?}"),
        };
        for ridge in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(named(InkOptions { leverage_ridge: ridge, ..good.clone() }), "leverage-ridge");
        }
        for accuracy in [0.0, 1.0, f64::NAN] {
            assert_eq!(named(InkOptions { accuracy, ..good.clone() }), "accuracy");
        }
        for failure_prob in [0.0, 1.5, f64::NAN] {
            assert_eq!(named(InkOptions { failure_prob, ..good.clone() }), "failure-prob");
        }
        for oversampling in [0, u64::MAX] {
            assert_eq!(named(InkOptions { oversampling, ..good.clone() }), "oversampling");
        }
        assert_eq!(named(InkOptions { budget: Some(0), ..good.clone() }), "budget");
        let kernel = Kernel::Gaussian { bandwidth: -1.0 };
        assert_eq!(named(InkOptions { kernel, ..good }), "bandwidth");
    }
}
