//! What SQUEAK is told, and the constants of its theorem.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// Settings of a [`Squeak`](super::Squeak). [`SqueakOptions::new`] gives the defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SqueakOptions {
    /// The kernel.
    pub kernel: Kernel,
    /// γ at the start.
    #[doc(alias = "γ")]
    pub leverage_ridge: f64,
    /// ε in (0, 1); 0.5.
    #[doc(alias = "ε")]
    pub accuracy: f64,
    /// δ in (0, 1); 0.1.
    #[doc(alias = "δ")]
    pub failure_prob: f64,
    /// q̄; 5 copies.
    #[doc(alias = "q̄")]
    pub oversampling: Oversampling,
    /// The most atoms ever held between steps.
    pub budget: Option<usize>,
    /// The most bytes, see [`bytes_for`](Self::bytes_for); beside or instead of `budget`.
    pub budget_bytes: Option<u64>,
    /// When rows are learnt; blocks of 256.
    pub schedule: Schedule,
    /// Of all random choices. Dictionaries that are to be merged should have different ones.
    pub seed: u64,
}

/// q̄: the copies that a new row starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Oversampling {
    /// As many as given. A handful works well in practice; the theorem asks for thousands.
    Fixed(u64),
    /// What the theorem asks for at n rows. n starts as `expected_rows` and doubles whenever there are more; rows from
    /// before a doubling keep their copies, so the promise of the theorem is kept up to `expected_rows` rows. After
    /// merging it asks for (1+2ε)/(1+ε) times as many, which [`Fixed`](Self::Fixed) can provide.
    Theorem {
        /// The first guess of n.
        expected_rows: u64,
    },
}

/// When rows are learnt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// One row at a time, exactly as Alg. 1 is printed. O(m³) a row.
    PerPoint,
    /// A block at a time: the block joins as an exact dictionary. O((m + b)³) a block, cheapest a row at b = m/2.
    Blocks {
        /// b.
        rows: usize,
    },
    /// New rows are scored against the dictionary as it stands, a block at a time; old atoms only when the dictionary
    /// has grown by a factor. O(m²) a row, and larger dictionaries than the other schedules.
    Lazy {
        /// Rows of a block.
        rows: usize,
        /// Old atoms are scored again when there are this many times as many as after the last time
        /// ([`GROWTH`](Schedule::GROWTH) by habit).
        growth: f64,
    },
}

impl Schedule {
    /// A growth for [`Schedule::Lazy`]: with 1.5, dictionaries of long streams were at least a fifth larger and took about as
    /// long.
    pub const GROWTH: f64 = 1.1;

    /// Rows that are learnt together.
    pub fn block(&self) -> usize {
        match *self {
            Self::PerPoint => 1,
            Self::Blocks { rows } | Self::Lazy { rows, .. } => rows,
        }
    }
}

/// Copies and rows beyond these are refused: their products stay exact in a double.
const MOST_COPIES: u64 = 1 << 32;
pub(super) const MOST_ROWS: u64 = 1 << 53;
const MOST_BLOCK: usize = 1 << 20;

impl SqueakOptions {
    /// ε = 0.5, δ = 0.1, q̄ = 5, no budget, blocks of 256 rows, seed 0.
    pub fn new(kernel: Kernel, leverage_ridge: f64) -> Self {
        Self {
            kernel,
            leverage_ridge,
            accuracy: 0.5,
            failure_prob: 0.1,
            oversampling: Oversampling::Fixed(5),
            budget: None,
            budget_bytes: None,
            schedule: Schedule::Blocks { rows: 256 },
            seed: 0,
        }
    }

    /// The same, or what is wrong, by the name that the command line gives it.
    pub fn validated(self) -> Result<Self> {
        self.kernel.validated()?;
        Error::require_positive("leverage-ridge", self.leverage_ridge)?;
        require("accuracy", self.accuracy, self.accuracy > 0.0 && self.accuracy < 1.0, "a number between 0 and 1")?;
        let inside = self.failure_prob > 0.0 && self.failure_prob < 1.0;
        require("failure-prob", self.failure_prob, inside, "a number between 0 and 1")?;
        match self.oversampling {
            Oversampling::Fixed(q) => require("oversampling", q, (1..=MOST_COPIES).contains(&q), "1 to 2^32 copies")?,
            Oversampling::Theorem { expected_rows: n } => {
                require("oversampling", n, (1..=MOST_ROWS).contains(&n), "1 to 2^53 expected rows")?;
                let q = self.theorem_oversampling(MOST_ROWS, self.sequential_factor());
                let expected = "an accuracy for which the theorem asks for less than 2^32 copies";
                require("accuracy", self.accuracy, q <= MOST_COPIES as f64, expected)?;
            }
        }
        if let Some(atoms) = self.budget {
            require("budget", atoms, atoms > 0, "at least one atom")?;
        }
        let block = self.schedule.block();
        require("block", block, (1..=MOST_BLOCK).contains(&block), "1 to 2^20 rows")?;
        if let Schedule::Lazy { growth, .. } = self.schedule {
            require("growth", growth, growth.is_finite() && growth >= 1.0, "a finite number, at least 1")?;
        }
        if let Some(bytes) = self.budget_bytes {
            let expected = "more bytes: one atom and a block need 30 (block + 1)^2, and more for wide rows";
            require("budget-bytes", bytes, self.atoms_in(bytes, 0.0) > 0, expected)?;
        }
        Ok(self)
    }

    /// α = (1+ε)/(1−ε) of Lemma 1.
    pub(super) fn sequential_factor(&self) -> f64 {
        (1.0 + self.accuracy) / (1.0 - self.accuracy)
    }

    /// α = (1+2ε)/(1−ε) after a merge.
    pub(super) fn merged_factor(&self) -> f64 {
        (1.0 + 2.0 * self.accuracy) / (1.0 - self.accuracy)
    }

    /// The theorem's q̄ = 39 α log(2n/δ)/ε² at n rows.
    pub(super) fn theorem_oversampling(&self, rows: u64, factor: f64) -> f64 {
        39.0 * factor * (2.0 * rows.max(1) as f64 / self.failure_prob).ln() / self.accuracy.powi(2)
    }

    /// q̄ for the `n`-th row, counted from 1.
    pub(super) fn oversampling_at(&self, n: u64) -> u64 {
        match self.oversampling {
            Oversampling::Fixed(q) => q,
            Oversampling::Theorem { expected_rows } => {
                let mut guess = expected_rows;
                while guess < n {
                    guess = guess.saturating_mul(2);
                }
                // Within the range that `validated` checked.
                self.theorem_oversampling(guess, self.sequential_factor()).ceil() as u64
            }
        }
    }

    /// The most atoms at this many bytes for the values of an atom, on average.
    pub(super) fn allowed_atoms(&self, row_bytes: f64) -> usize {
        let by_bytes = self.budget_bytes.map_or(usize::MAX, |bytes| self.atoms_in(bytes, row_bytes));
        self.budget.unwrap_or(usize::MAX).min(by_bytes)
    }

    /// The most bytes that are held with `atoms` atoms, at `row_bytes` for the values of one row. With n = atoms + block, and
    /// p = n + 24 rounded up to a multiple of 24, 10n² for kernels, which have a tenth more room than needed, and 8p² for a
    /// factor and its inverse; where rows are scored before they are atoms, 20(n + 8)² for another factor, with room to grow,
    /// and 10 for each such row with each atom; n (8·row_bytes + 260) for four copies of the rows (held, waiting, and packed
    /// twice for kernel values) and the numbers kept with each, in vectors that may be half empty. The second dictionary
    /// while two are merged is not counted.
    pub fn bytes_for(&self, atoms: usize, row_bytes: f64) -> f64 {
        let (m, b) = (atoms as f64, self.schedule.block() as f64);
        let (n, padded) = (m + b, (atoms + self.schedule.block()).next_multiple_of(24) as f64 + 24.0);
        let lazy = matches!(self.schedule, Schedule::Lazy { .. });
        let scored = if lazy { 20.0 * (n + 8.0).powi(2) + 10.0 * m * b } else { 0.0 };
        10.0 * n * n + 8.0 * padded * padded + scored + n * (8.0 * row_bytes + 260.0) + FIXED_BYTES
    }

    fn atoms_in(&self, bytes: u64, row_bytes: f64) -> usize {
        let fits = |atoms: usize| self.bytes_for(atoms, row_bytes) <= bytes as f64;
        // Quadratic growth: the answer is below √bytes.
        let (mut low, mut high) = (0, (bytes as f64).sqrt() as usize + 1);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if fits(middle) { low = middle } else { high = middle - 1 }
        }
        low
    }
}

/// What a dictionary holds without atoms.
const FIXED_BYTES: f64 = 2048.0;

fn require(name: &'static str, found: impl ToString, fine: bool, expected: &'static str) -> Result<()> {
    if fine { Ok(()) } else { Err(Error::InvalidParam { name, found: found.to_string(), expected }) }
}
