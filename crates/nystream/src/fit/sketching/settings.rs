//! What a sequential dictionary over a source is asked for, before its kernel is known.

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::rows::Rows;
use crate::sketch::{
    AnySequential, DictionaryMethod, EstimateOracle, ExactOracle, InkOptions, Leverage, Oracle, Oversampling, Schedule,
    SqueakOptions, oversampling_bound,
};

/// Rows up to which the effective dimension is computed exactly, for INK's theorem.
const EXACT_ROWS: u64 = 3000;
/// The first guess of the number of rows, where it is not known.
const FIRST_GUESS: u64 = 1024;

/// q̄ as a user asks for it.
#[doc(alias = "q̄")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Copies {
    /// 5 for `squeak`; for INK ten times the budget, or 3000 without one.
    #[default]
    Usual,
    /// This many.
    Fixed(u64),
    /// What the theorem asks for. `squeak`: at this many rows (none: as many as a first reading found, else 1,024), and
    /// more whenever their number has doubled. INK: at the exact effective dimension of at most 3,000 rows.
    Theorem {
        /// n.
        expected_rows: Option<u64>,
    },
}

/// Settings of a sequential dictionary but for its kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct SketchSettings {
    /// `squeak`, `ink-estimate` or `ink-oracle`.
    pub method: DictionaryMethod,
    /// γ at the start.
    #[doc(alias = "γ")]
    pub leverage_ridge: f64,
    /// ε.
    #[doc(alias = "ε")]
    pub accuracy: f64,
    /// δ.
    #[doc(alias = "δ")]
    pub failure_prob: f64,
    /// q̄.
    pub copies: Copies,
    /// The most atoms.
    pub budget: Option<usize>,
    /// The most bytes (`squeak`).
    pub budget_bytes: Option<u64>,
    /// When rows are learnt (`squeak`).
    pub schedule: Schedule,
    /// Of all random choices.
    pub seed: u64,
}

impl SketchSettings {
    /// γ = 1, ε = 0.5, δ = 0.1, 200 atoms, blocks of 256 rows, seed 0.
    pub fn new(method: DictionaryMethod) -> Self {
        Self {
            method,
            leverage_ridge: 1.0,
            accuracy: 0.5,
            failure_prob: 0.1,
            copies: Copies::Usual,
            budget: Some(200),
            budget_bytes: None,
            schedule: Schedule::Blocks { rows: 256 },
            seed: 0,
        }
    }

    /// Checks what can be checked before any data is read.
    pub fn validated(&self) -> Result<()> {
        let kernel = Kernel::Linear;
        match (self.method, self.copies) {
            (DictionaryMethod::Squeak, _) => self.squeak(&kernel, None).validated().map(drop),
            (DictionaryMethod::InkEstimate | DictionaryMethod::InkOracle, copies) => {
                if self.budget_bytes.is_some() {
                    let found = format!("one for {}", self.method);
                    let expected = "none, or squeak: the memory of INK grows with the rows";
                    return Err(Error::InvalidParam { name: "budget-bytes", found, expected });
                }
                if let Copies::Theorem { expected_rows: Some(rows) } = copies {
                    let found = format!("{rows} expected rows for {}", self.method);
                    let expected =
                        "'theorem' alone: INK's theorem asks for the effective dimension of the rows themselves";
                    return Err(Error::InvalidParam { name: "oversampling", found, expected });
                }
                self.ink(&kernel, copies_or(copies, 1)).validated().map(drop)
            }
            (method, _) => Err(Error::InvalidParam {
                name: "method",
                found: method.to_string(),
                expected: "squeak, ink-estimate or ink-oracle",
            }),
        }
    }

    /// Whether q̄ can be told only from the rows.
    pub(super) fn needs_rows(&self) -> bool {
        self.method != DictionaryMethod::Squeak && matches!(self.copies, Copies::Theorem { .. })
    }

    /// An empty dictionary. `known` is the number of rows to come and a sample of them, where they have been read.
    pub(super) fn start(&self, kernel: &Kernel, known: Option<(u64, Rows)>) -> Result<AnySequential> {
        if self.method == DictionaryMethod::Squeak {
            return AnySequential::squeak(self.squeak(kernel, known.map(|(rows, _)| rows)));
        }
        let copies = match (self.copies, known) {
            (Copies::Theorem { .. }, Some((rows, sample))) => Some(self.theorem_copies(kernel, rows, sample)?),
            (copies, _) => copies_or(copies, 1),
        };
        let options = self.ink(kernel, copies);
        match self.method {
            DictionaryMethod::InkEstimate => AnySequential::ink_estimate(options),
            _ => AnySequential::ink_oracle(options),
        }
    }

    fn squeak(&self, kernel: &Kernel, rows: Option<u64>) -> SqueakOptions {
        let usual = SqueakOptions::new(*kernel, self.leverage_ridge);
        let oversampling = match self.copies {
            Copies::Usual => usual.oversampling,
            Copies::Fixed(copies) => Oversampling::Fixed(copies),
            Copies::Theorem { expected_rows } => {
                Oversampling::Theorem { expected_rows: expected_rows.or(rows).unwrap_or(FIRST_GUESS) }
            }
        };
        SqueakOptions {
            accuracy: self.accuracy,
            failure_prob: self.failure_prob,
            oversampling,
            budget: self.budget,
            budget_bytes: self.budget_bytes,
            schedule: self.schedule,
            seed: self.seed,
            ..usual
        }
    }

    fn ink(&self, kernel: &Kernel, copies: Option<u64>) -> InkOptions {
        let mut options = match self.budget {
            Some(budget) => InkOptions::with_budget(*kernel, self.leverage_ridge, budget),
            None => InkOptions::new(*kernel, self.leverage_ridge),
        };
        options.oversampling = copies.unwrap_or(options.oversampling);
        InkOptions { accuracy: self.accuracy, failure_prob: self.failure_prob, seed: self.seed, ..options }
    }

    /// INK's q̄ at βd_eff, what d̃_eff may come to.
    fn theorem_copies(&self, kernel: &Kernel, rows: u64, sample: Rows) -> Result<u64> {
        if rows > EXACT_ROWS || sample.len() as u64 != rows {
            return Err(Error::InvalidParam {
                name: "oversampling",
                found: format!("theorem for {rows} rows"),
                expected: "a number, or at most 3000 rows, whose effective dimension can be computed",
            });
        }
        let leverage = Leverage::exact(kernel, sample, self.leverage_ridge)?;
        let mut energies = vec![0.0; sample.len()];
        kernel.diagonals(sample, &mut energies);
        let ratio = energies.iter().sum::<f64>() / self.leverage_ridge;
        let options = self.ink(kernel, None);
        let (alpha, beta) = match self.method {
            DictionaryMethod::InkEstimate => factors(&EstimateOracle::new(&options), ratio),
            _ => factors(&ExactOracle::new(&options), ratio),
        };
        let copies =
            oversampling_bound(self.accuracy, self.failure_prob, alpha, beta * leverage.effective_dim, rows).ceil();
        // Beyond the range it is refused by name.
        Ok(copies as u64)
    }
}

fn factors(oracle: &impl Oracle, ratio: f64) -> (f64, f64) {
    (oracle.score_factor(), oracle.dimension_factor(ratio))
}

/// The number asked for; none for the usual one; `theorem` where only the rows can tell.
fn copies_or(copies: Copies, theorem: u64) -> Option<u64> {
    match copies {
        Copies::Usual => None,
        Copies::Fixed(copies) => Some(copies),
        Copies::Theorem { .. } => Some(theorem),
    }
}
