//! SQUEAK: a dictionary of weighted points in one pass, with a promise at every step, and merging.
//!
//! D. Calandriello, A. Lazaric, M. Valko, "Pack only the essentials: adaptive dictionary learning for kernel ridge
//! regression" (SQUEAK; arXiv 2604.22386): the estimator (Eq. 7), the steps (Alg. 1), what raising γ does (section 3).
//! The same authors, "Distributed adaptive sampling for kernel matrix approximation" (DISQUEAK), AISTATS 2017: merging,
//! the rule without a floor, and the constants q̄ = 39 α log(2n/δ)/ε² and at most 3 q̄ d_eff atoms, of which the first
//! paper gives the order only. These constants are quoted without that paper's text at hand.
//!
//! Every atom i has a probability p̃_i, which only falls, and Q_i ~ B(p̃_i, q̄_i) copies. With s_i² = Q_i/(q̄_i p̃_i),
//! E[S Sᵀ] = I. A dictionary is accurate at (ε, γ) if −ε(ΦΦᵀ + γI) ≼ ΦΦᵀ − ΦSSᵀΦᵀ ≼ ε(ΦΦᵀ + γI), Φ having the features
//! of all rows as columns; the upper half is Eq. 11 of INK. Then:
//!
//! - Eq. 7 at the next point or block, whose rows add the same to both sides, is within [τ/α, τ], α = (1+ε)/(1−ε).
//!   Lemma 1 assumes only the upper half, which gives τ̃ ≤ τ; τ/α ≤ τ̃ needs the lower half too (`tests/lemma.rs`).
//! - Of two dictionaries the errors add up to ε(ΦΦᵀ + 2γI). With M = ΦSSᵀΦᵀ of both, M + γI ≼ (1+2ε)(ΦΦᵀ + γI), so Eq. 7
//!   is at least τ/α, α = (1+2ε)/(1−ε), which is what accuracy rests on; and M + γI ≽ (M + (1+ε)γI)/(1+ε) ≽
//!   (1−ε)/(1+ε)·(ΦΦᵀ + γI), so it is at most (1+ε)τ, which is what the size rests on.
//! - It is accurate at (ε, γ′) for every γ′ ≥ γ, by its definition. So when the budget is exceeded γ may be raised
//!   without starting again: atoms are scored anew at γ′ and fall. d_eff(γ) falls at most as fast as 1/γ (SQUEAK calls
//!   it "inversely proportional"), so γ is multiplied by atoms/budget, at least 1.1, until the atoms fit.
//!
//! Cost: a row O(m³) per point, O((m + b)³/b) in blocks of b, O(m²) lazily; memory O((m + b)² + (m + b) d).
//!
//! Departures from the papers:
//!
//! - Q_i copies of a point are one atom of weight s_i; K̃ is the same (see `direct_sample.rs`), with matrices of one row
//!   an atom instead of one a copy.
//! - Line 5's floor p̃/2 is kept for single points only. Under it every row would stay nearly whole for several blocks.
//!   It is also why Alg. 1 does not keep p̃ ≤ τ, as its text says: a new point starts at ½ at least.
//! - A merge scores at γ, as a block does, where DISQUEAK has (1+ε)γ, which gives [τ/α, τ] with α = (1+3ε)/(1−ε). Scores are
//!   then up to 1+ε higher. They never fall below τ/α with a smaller α, so q̄ may be smaller; they may exceed τ by 1+ε, so
//!   the theorem allows for 1+ε times as many atoms. At (1+ε)γ every merge took copies that a single run had kept, and p̃
//!   never rises again.
//! - Atoms of a block that joins, and of merged dictionaries, fall in two equal steps of log p̃, scored before each. A step is a
//!   merge with an empty dictionary, a node of DISQUEAK's tree of its own: no p̃ falls below a score, and every draw thins the
//!   copies as line 7 does. The union bound over n nodes covers it while no more dictionaries are scored than there are rows,
//!   so a block of one row falls in one step. In one step merged dictionaries of few copies had more atoms and larger errors
//!   than one run over all rows, and blocked ones other sizes and errors than per point (`docs/guarantees.md`).
//! - Each atom keeps the q̄ of its arrival, so that q̄ can grow with the stream and dictionaries with different q̄ merge.
//! - The lazy schedule is ours: leaving a probability too large costs space, never accuracy. A row's score alone in the
//!   dictionary, τ/(1+τ), is at least its score within its block.
//! - What the factorisation needs to succeed is added to γ there, and reported ([`Squeak::jitter`]).

mod atoms;
mod file;
mod merge;
mod options;
mod scores;
mod step;
#[cfg(test)]
mod tests;

pub use options::{Oversampling, Schedule, SqueakOptions};

use atoms::Atoms;
use scores::Scorer;

use super::dictionary::Dictionary;
use super::matrix::checked_diagonal;
use super::sequential::{SequentialDictionary, SketchReport, TheoremConstants};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::persist::Container;
use crate::random::Generator;
use crate::rows::{RowBlock, Rows};

/// A dictionary that follows a stream by SQUEAK.
///
/// ```
/// use nystream::kernel::Kernel;
/// use nystream::rows::Rows;
/// use nystream::sketch::{SequentialDictionary, Squeak, SqueakOptions};
///
/// let mut squeak = Squeak::new(SqueakOptions::new(Kernel::gaussian(1.0)?, 1.0))?;
/// let numbers: Vec<f64> = (0..2000).map(|i| (f64::from(i) * 0.37).sin()).collect();
/// squeak.insert(Rows::dense(&numbers, 1000, 2)?)?;
/// let report = squeak.report()?;
/// assert!(report.atoms < 200 && report.captured > 0.9);
/// # Ok::<(), nystream::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Squeak {
    options: SqueakOptions,
    /// γ in force.
    leverage_ridge: f64,
    atoms: Atoms,
    /// Rows that wait for a full block.
    pending: RowBlock,
    /// Rows of the stream without those that wait.
    learnt: u64,
    /// Σ k(x, x), and of it what the dictionary of the time left over.
    energy: f64,
    residual: f64,
    /// The least q̄ that any row had.
    least_oversampling: u64,
    /// Atoms after they were last scored, for the lazy schedule.
    rescored_atoms: usize,
    /// Whether this came from a merge, whose scores are within a larger factor.
    merged: bool,
    rng: Generator,
    scorer: Scorer,
    scores: Vec<f64>,
    spare: RowBlock,
}

impl Squeak {
    /// Nothing seen yet.
    pub fn new(options: SqueakOptions) -> Result<Self> {
        let options = options.validated()?;
        let empty = RowBlock::dense(0);
        Ok(Self {
            leverage_ridge: options.leverage_ridge,
            atoms: Atoms::like(empty.rows()),
            pending: empty.clone(),
            learnt: 0,
            energy: 0.0,
            residual: 0.0,
            least_oversampling: u64::MAX,
            rescored_atoms: 0,
            merged: false,
            rng: Generator::new(options.seed),
            scorer: Scorer::default(),
            scores: Vec::new(),
            spare: empty,
            options,
        })
    }

    /// As it was told.
    pub fn options(&self) -> &SqueakOptions {
        &self.options
    }

    /// Rows of the stream so far, those that wait included.
    pub fn rows_seen(&self) -> u64 {
        self.learnt + self.pending.len() as u64
    }

    /// γ in force.
    #[doc(alias = "γ")]
    pub fn leverage_ridge(&self) -> f64 {
        self.leverage_ridge
    }

    /// Number of atoms, without the rows that wait.
    pub fn atoms(&self) -> usize {
        self.atoms.len()
    }

    /// Columns of the rows, and whether they are sparse; none before the first row.
    pub fn row_shape(&self) -> Option<(usize, bool)> {
        (self.rows_seen() > 0).then(|| (self.pending.cols(), self.pending.is_sparse()))
    }

    /// p̃ of every atom.
    #[doc(alias = "p̃")]
    pub fn probabilities(&self) -> impl Iterator<Item = f64> + '_ {
        self.atoms.standing().iter().map(|point| point.probability)
    }

    /// Q and q̄ of every atom: copies left, of how many.
    #[doc(alias = "Q")]
    pub fn copies(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.atoms.standing().iter().map(|point| (point.copies, point.trials))
    }

    /// The most that any factorisation had to add to γ: 0 unless γ is below the rounding of kernel values.
    pub fn jitter(&self) -> f64 {
        self.scorer.largest_jitter()
    }

    /// Multiply-adds of all scorings of atoms since this was made or loaded: n³/3 + n²/2 for n atoms. A measure of cost, which is not
    /// saved.
    pub fn scoring_work(&self) -> f64 {
        self.scorer.work()
    }

    /// A copy whose atoms, rows that wait included, have been scored once more at γ in force, and fell to their scores where
    /// they stood above them.
    ///
    /// That is the case of old atoms under [`Schedule::Lazy`], and of the latest rows under [`Schedule::PerPoint`], which
    /// line 5 lets fall by no more than half a step. The promise is the same: scores of an accurate dictionary are
    /// within [τ/α, τ], with new rows or without.
    pub fn rescored(&self) -> Result<Self> {
        let mut copy = self.clone();
        copy.flush()?;
        if copy.atoms.len() > 0 {
            copy.rescore(copy.leverage_ridge, 1)?;
        }
        Ok(copy)
    }

    /// Checks rows before any is learnt.
    fn check(&self, rows: Rows) -> Result<()> {
        checked_diagonal(&self.options.kernel, rows)?;
        if self.rows_seen() > 0 {
            let sparse = matches!(rows, Rows::Sparse(_));
            let kind = |sparse: bool| if sparse { "sparse" } else { "dense" }.to_owned();
            if sparse != self.pending.is_sparse() {
                let (found, expected) = (kind(sparse), kind(!sparse));
                return Err(Error::Incompatible { field: "kind of rows".to_owned(), found, expected });
            }
            if !sparse && rows.cols() != self.pending.cols() {
                let (found, expected) = (rows.cols(), self.pending.cols());
                return Err(Error::Shape { what: "columns of the rows", found, expected });
            }
        }
        if matches!(rows, Rows::Dense(_)) && self.options.allowed_atoms(8.0 * rows.cols() as f64) == 0 {
            return Err(self.no_room());
        }
        if self.rows_seen().saturating_add(rows.len() as u64) > options::MOST_ROWS {
            return Err(Error::Internal("more than 2^53 rows"));
        }
        Ok(())
    }

    /// The error for a budget in bytes that cannot hold one row.
    fn no_room(&self) -> Error {
        let found = format!("{} bytes", self.options.budget_bytes.unwrap_or(0));
        Error::InvalidParam { name: "budget-bytes", found, expected: "room for one row of this width" }
    }

    /// Sparse rows may turn out wider than those before.
    fn widen(&mut self, cols: usize) {
        if self.pending.is_sparse() && cols > self.pending.cols() {
            self.pending.set_cols(cols);
            self.atoms.set_cols(cols);
            self.spare.set_cols(cols);
        }
    }

    /// This, with the rows that wait learnt.
    fn settled(&self) -> Result<std::borrow::Cow<'_, Self>> {
        if self.pending.is_empty() {
            return Ok(std::borrow::Cow::Borrowed(self));
        }
        let mut copy = self.clone();
        copy.flush()?;
        Ok(std::borrow::Cow::Owned(copy))
    }

    fn theorem(&self, effective_dim: f64, oversampling: u64) -> TheoremConstants {
        let options = &self.options;
        // How far below and above their true values scores may be.
        let (score_factor, above) = match self.merged {
            true => (options.merged_factor(), 1.0 + options.accuracy),
            false => (options.sequential_factor(), 1.0),
        };
        let needed = options.theorem_oversampling(self.rows_seen(), score_factor);
        TheoremConstants {
            accuracy: options.accuracy,
            failure_prob: options.failure_prob,
            score_factor,
            dimension_factor: None,
            oversampling: needed,
            atoms: 3.0 * above * oversampling as f64 * effective_dim,
            error_bound: self.leverage_ridge / (1.0 - options.accuracy),
            promised: self.least_oversampling as f64 >= needed,
        }
    }

    /// Bytes held.
    fn size_bytes(&self) -> usize {
        let rows = self.pending.size_bytes() + self.spare.size_bytes();
        self.atoms.size_bytes() + rows + self.scorer.size_bytes() + self.scores.capacity() * 8 + size_of::<Self>()
    }
}

impl SequentialDictionary for Squeak {
    fn method(&self) -> &'static str {
        "squeak"
    }

    fn kernel(&self) -> &Kernel {
        &self.options.kernel
    }

    fn insert(&mut self, rows: Rows) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.check(rows)?;
        if self.rows_seen() == 0 {
            self.atoms = Atoms::like(rows);
            (self.pending, self.spare) = (RowBlock::like(rows), RowBlock::like(rows));
        }
        self.widen(rows.cols());
        let block = self.options.schedule.block();
        for i in 0..rows.len() {
            self.pending.push(rows.row(i));
            if self.pending.len() == block {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let empty = RowBlock::like(self.pending.rows());
        let mut rows = std::mem::replace(&mut self.pending, empty);
        let outcome = self.learn(rows.rows());
        // The memory goes back, to be filled again.
        rows.clear();
        self.pending = rows;
        outcome
    }

    fn dictionary(&self) -> Result<Dictionary> {
        let settled = self.settled()?;
        let atoms = &settled.atoms;
        let numbers = atoms.standing().iter().map(|point| point.number).collect();
        Dictionary::new(atoms.rows().clone(), atoms.weights().collect(), numbers, settled.leverage_ridge)
    }

    fn report(&self) -> Result<SketchReport> {
        let bytes = self.size_bytes() as u64;
        let settled = self.settled()?;
        let effective_dim: f64 = settled.scorer.clone().explained(&settled.atoms, settled.leverage_ridge)?.iter().sum();
        // What was left of the rows when they came, at the γ of their time; or, where γ was raised since and that is more, what
        // is left of all rows now if the dictionary stands for them: tr K − tr K(K+γI)⁻¹K = γ d_eff.
        let left = settled.residual.max(settled.leverage_ridge * effective_dim).min(settled.energy);
        let captured = match settled.energy {
            energy if energy > 0.0 && settled.atoms.len() > 0 => 1.0 - left / energy,
            energy if energy > 0.0 => 0.0,
            _ => 1.0,
        };
        let oversampling = settled.options.oversampling_at(settled.learnt + 1);
        Ok(SketchReport {
            rows: settled.learnt,
            atoms: settled.atoms.len(),
            copies: settled.atoms.standing().iter().map(|point| point.copies).sum(),
            effective_dim,
            captured,
            bytes,
            leverage_ridge: settled.leverage_ridge,
            initial_leverage_ridge: settled.options.leverage_ridge,
            oversampling,
            theorem: settled.theorem(effective_dim, oversampling),
        })
    }

    fn to_container(&self) -> Result<Container> {
        file::write(self)
    }
}
