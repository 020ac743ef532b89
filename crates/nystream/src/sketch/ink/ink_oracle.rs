//! INK-ORACLE: a dictionary that follows a stream, given an (α, β)-oracle; with the oracle of Sect. 4, INK-ESTIMATE.
//!
//! D. Calandriello, A. Lazaric, M. Valko, "Analysis of Nyström method with sequential ridge leverage score sampling"
//! (INK), UAI 2016, Alg. 2 and 3. After every row, K̃ = KS(SᵀKS + γI)⁻¹SᵀK with S of the atoms and weights √b is within
//! 0 ≼ K − K̃ ≼ γ/(1−ε) K(K + γI)⁻¹ (Eq. 11) with the theorem's probability. Beside the oracle's own cost, O(td + m³) a
//! row for the kernels with t earlier rows of d columns and the captured share of m atoms; all rows are held, O(td).
//!
//! Departures from the paper:
//! - Rows with k(x, x) = 0 are counted and never enter: their score is 0, which no weight can stand for, and K̃ is the
//!   same without them.
//! - An atom without a usable score keeps its probability ([`Oracle`]).
//! - d̃_eff never falls: the larger of the oracle's and the last. It only would where γ has been raised.
//! - **A hard budget** (not in the paper, which suggests to run again with another γ). If more atoms than the budget
//!   are left after SHRINK-EXPAND, γ ← γ max(atoms/budget, 1.1), the scores of this step are estimated anew at that γ
//!   from the same K̃_t and columns, and SHRINK is run again, until they fit; γ stays raised. This is valid:
//!   (1) K̃_t is as accurate for the new γ′: what Eq. 11 follows from (App. B), K^½(I − SSᵀ)K^½ ≼ ε(K + γI), implies the
//!   same with γ′ > γ. So the estimates at γ′ are as good as those at γ. (2) Scores fall as γ rises, so probabilities
//!   still only fall, and E[b] stays 1, because each coin's chance depends on the past alone. (3) d̃_eff, gathered at
//!   smaller γ, bounds d_eff at γ′, which is smaller. It is not within β of it any more, but the theorem holds with
//!   αd̃_eff in the place of αβd_eff (see [`oversampling_bound`]). It must not be scaled down either: normalised
//!   probabilities sum to 1 at every γ, and q̄ atoms would be left whatever γ. As it is they fall as scores do, about
//!   as 1/γ.

use faer::Mat;

use super::super::dictionary::Dictionary;
use super::super::matrix::checked_diagonal;
use super::super::sequential::{SequentialDictionary, SketchReport, TheoremConstants};
use super::constants::{atoms_bound, oversampling_bound};
use super::history::History;
use super::options::InkOptions;
use super::oracle::{Oracle, Step};
use super::shrink_expand::{Atom, shrink_expand};
use crate::error::{Error, Result, input_error};
use crate::kernel::Kernel;
use crate::persist::Container;
use crate::random::Generator;
use crate::rows::{Row, RowBlock, Rows};

/// Tells this method's random choices from those of others with the same seed.
const STREAM: u64 = 32;
/// Least factor by which γ rises.
const LEAST_RISE: f64 = 1.1;
/// Larger kernel values would overflow in the sums of their squares.
const LARGEST_ENERGY: f64 = 1e75;

/// INK-ORACLE with the oracle `O`. `InkOracle<ExactOracle>` is `ink-oracle`, `InkOracle<EstimateOracle>` `ink-estimate`.
///
/// ```
/// use nystream::kernel::Kernel;
/// use nystream::rows::Rows;
/// use nystream::sketch::{EstimateOracle, InkOptions, InkOracle, SequentialDictionary};
///
/// let options = InkOptions { oversampling: 20, ..InkOptions::new(Kernel::gaussian(1.0)?, 0.5) };
/// let mut ink = InkOracle::<EstimateOracle>::new(options)?;
/// let stream: Vec<f64> = (0..200).map(|i| f64::from(i % 17)).collect();
/// for block in stream.chunks(50) {
///     ink.insert(Rows::dense(block, 50, 1)?)?;
/// }
/// let report = ink.report()?;
/// assert_eq!(report.rows, 200);
/// assert_eq!(ink.dictionary()?.len(), report.atoms);
/// # Ok::<(), nystream::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct InkOracle<O> {
    pub(super) options: InkOptions,
    pub(super) oracle: O,
    pub(super) state: State,
    /// None before the first row.
    pub(super) history: Option<History>,
    pub(super) atoms: Vec<Atom>,
    /// Their kernel matrix.
    pub(super) atom_kernels: Mat<f64>,
    pub(super) rng: Generator,
}

/// The numbers that run along.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    /// γ in force.
    pub leverage_ridge: f64,
    /// d̃_eff.
    pub effective_dim: f64,
    /// Σ k(x, x).
    pub energy: f64,
    pub unreliable_steps: u64,
}

impl<O: Oracle> InkOracle<O> {
    /// An empty dictionary.
    pub fn new(options: InkOptions) -> Result<Self> {
        let options = options.validated()?;
        let state =
            State { leverage_ridge: options.leverage_ridge, effective_dim: 0.0, energy: 0.0, unreliable_steps: 0 };
        let (oracle, rng) = (O::new(&options), Generator::with_stream(options.seed, STREAM));
        Ok(Self { options, oracle, state, history: None, atoms: Vec::new(), atom_kernels: Mat::new(), rng })
    }

    /// What was asked for.
    pub fn options(&self) -> &InkOptions {
        &self.options
    }

    /// The atoms with their probabilities and weights, in the order of the stream.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// Rows of the stream so far.
    pub fn rows(&self) -> usize {
        self.history.as_ref().map_or(0, History::len)
    }

    /// Columns of the rows, and whether they are sparse; none before the first row.
    pub fn row_shape(&self) -> Option<(usize, bool)> {
        self.history.as_ref().map(|history| (history.cols(), history.gather([]).is_sparse()))
    }

    /// Rows at which some score could not be used, so that probabilities stayed: the accuracy condition failed for all
    /// to see, or γ is too small for double precision. None are expected at the theorem's q̄.
    pub fn unreliable_steps(&self) -> u64 {
        self.state.unreliable_steps
    }

    /// Lines 3–9 of Alg. 2 and 3 for one row.
    fn learn(&mut self, row: Row, energy: f64) -> Result<()> {
        let Some(history) = &mut self.history else { return Err(Error::Internal("a row before the history")) };
        let mut kernels = Vec::new();
        history.kernels(&self.options.kernel, row, &mut kernels);
        let new = history.len();
        let step = Step {
            energy,
            kernels: &kernels,
            atoms: &self.atoms,
            atom_kernels: self.atom_kernels.as_ref(),
            effective_dim: self.state.effective_dim,
        };
        self.oracle.receive(&step);

        let mut rng = self.rng.clone();
        let mut gamma = self.state.leverage_ridge;
        let mut effective_dim = self.state.effective_dim;
        let mut unreliable = false;
        let mut next = self.atoms.clone();
        next.push(if energy > 0.0 { Atom::new(new) } else { Atom { inflation: 0, ..Atom::new(new) } });
        loop {
            // Lines 4 and 5.
            let estimate = self.oracle.estimate(&step, gamma)?;
            effective_dim = estimate.effective_dim.max(effective_dim);
            unreliable |= energy > 0.0 && !estimate.is_complete();
            // Line 6.
            for (atom, score) in next.iter_mut().zip(estimate.scores.iter().chain([&estimate.new_score])) {
                let probability = score.map_or(1.0, |score| score / effective_dim);
                if probability > 0.0 {
                    atom.probability = atom.probability.min(probability);
                }
            }
            // Line 7.
            shrink_expand(&mut next, self.options.oversampling, &mut rng);
            let left = next.iter().filter(|atom| atom.inflation > 0).count();
            match self.options.budget {
                Some(budget) if left > budget => gamma *= (left as f64 / budget as f64).max(LEAST_RISE),
                _ => break,
            }
            if !gamma.is_finite() {
                return Err(Error::InvalidParam {
                    name: "budget",
                    found: format!("{left} atoms left at any leverage ridge"),
                    expected: "a larger budget",
                });
            }
        }

        let kept: Vec<bool> = next[..self.atoms.len()].iter().map(|atom| atom.inflation > 0).collect();
        let entered = next[self.atoms.len()].inflation > 0;
        self.oracle.advance(&step, &kept, entered);
        let atom_kernels = (entered || kept.contains(&false)).then(|| among(&step, &kept, entered));
        if let Some(matrix) = atom_kernels {
            self.atom_kernels = matrix;
        }
        next.retain(|atom| atom.inflation > 0);
        (self.atoms, self.rng) = (next, rng);
        history.push(row);
        self.state.leverage_ridge = gamma;
        self.state.effective_dim = effective_dim;
        self.state.energy += energy;
        self.state.unreliable_steps += u64::from(unreliable);
        Ok(())
    }

    fn theorem(&self) -> TheoremConstants {
        let InkOptions { accuracy, failure_prob, oversampling, .. } = self.options;
        let alpha = self.oracle.score_factor();
        let State { leverage_ridge, effective_dim, energy, unreliable_steps, .. } = self.state;
        let asked = oversampling_bound(accuracy, failure_prob, alpha, effective_dim, self.rows() as u64);
        TheoremConstants {
            accuracy,
            failure_prob,
            score_factor: alpha,
            dimension_factor: Some(self.oracle.dimension_factor(energy / leverage_ridge)),
            oversampling: asked,
            atoms: atoms_bound(oversampling),
            error_bound: leverage_ridge / (1.0 - accuracy),
            promised: oversampling as f64 >= asked && unreliable_steps == 0,
        }
    }
}

impl<O: Oracle> SequentialDictionary for InkOracle<O> {
    fn method(&self) -> &'static str {
        O::METHOD
    }

    fn kernel(&self) -> &Kernel {
        &self.options.kernel
    }

    fn insert(&mut self, rows: Rows) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if let Some(history) = &self.history
            && history.cols() != rows.cols()
        {
            return Err(Error::Shape { what: "columns of the rows", found: rows.cols(), expected: history.cols() });
        }
        let energies = checked_diagonal(&self.options.kernel, rows)?;
        if let Some(i) = energies.iter().position(|energy| *energy > LARGEST_ENERGY) {
            let found = format!("{} kernel value {:e}", self.options.kernel.name(), energies[i]);
            return Err(input_error("rows in memory", i as u64 + 1, None, found, "at most 1e75 (scale the data)"));
        }
        O::require_fits(self.rows().saturating_add(rows.len()))?;
        let history = self.history.get_or_insert_with(|| History::new(rows));
        // Dense rows may follow sparse ones, and the reverse: they are learnt as they are stored.
        let mut stored = RowBlock::like(history.gather([]).rows());
        stored.extend(rows);
        for (i, energy) in energies.into_iter().enumerate() {
            self.learn(stored.rows().row(i), energy)?;
        }
        Ok(())
    }

    /// Nothing ever waits.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn dictionary(&self) -> Result<Dictionary> {
        let atoms = match &self.history {
            Some(history) => history.gather(self.atoms.iter().map(|atom| atom.row)),
            None => RowBlock::dense(0),
        };
        let weights = self.atoms.iter().map(Atom::weight).collect();
        let indices = self.atoms.iter().map(|atom| atom.row as u64).collect();
        Dictionary::new(atoms, weights, indices, self.state.leverage_ridge)
    }

    fn report(&self) -> Result<SketchReport> {
        // d̃_eff never falls: where γ was raised, it bounds the effective dimension from further above.
        let State { leverage_ridge, effective_dim, energy, .. } = self.state;
        let captured = match &self.history {
            Some(_) if self.atoms.is_empty() && energy > 0.0 => 0.0,
            Some(history) if energy > 0.0 => {
                self.dictionary()?.captured(&self.options.kernel, history.gather(0..history.len()).rows())?
            }
            _ => 1.0,
        };
        let m = self.atoms.len();
        let own = (m * size_of::<Atom>() + 8 * m * m + size_of::<Self>()) as u64;
        Ok(SketchReport {
            rows: self.rows() as u64,
            atoms: m,
            copies: self.atoms.iter().map(|atom| atom.inflation).sum(),
            effective_dim,
            captured,
            bytes: own + self.oracle.size_bytes() + self.history.as_ref().map_or(0, History::size_bytes),
            leverage_ridge,
            initial_leverage_ridge: self.options.leverage_ridge,
            oversampling: self.options.oversampling,
            theorem: self.theorem(),
        })
    }

    fn to_container(&self) -> Result<Container> {
        super::file::write(self)
    }
}

/// The kernel matrix of the atoms that stay and the new row.
fn among(step: &Step<'_>, kept: &[bool], entered: bool) -> Mat<f64> {
    let old: Vec<usize> = (0..kept.len()).filter(|&i| kept[i]).collect();
    let kappa = |i: usize| step.kernels[step.atoms[old[i]].row];
    let m = old.len();
    Mat::from_fn(m + usize::from(entered), m + usize::from(entered), |i, j| match (i < m, j < m) {
        (true, true) => step.atom_kernels[(old[i], old[j])],
        (true, false) => kappa(i),
        (false, true) => kappa(j),
        (false, false) => step.energy,
    })
}
