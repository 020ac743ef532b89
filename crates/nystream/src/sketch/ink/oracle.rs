//! What INK-ORACLE asks of an (α, β)-oracle.
//!
//! INK, Def. 2: at every step scores with τ/α ≤ τ̃ ≤ τ for the kept rows and the new one, and an effective dimension
//! with d_eff ≤ d̃ ≤ β d_eff.
//!
//! Departures from the paper: an oracle may say that it has no usable score for an atom. The atom then keeps its
//! probability, which is always safe: probabilities only ever need to fall, and one left too large costs space alone.

use faer::MatRef;

use super::options::InkOptions;
use super::shrink_expand::Atom;
use crate::error::Result;
use crate::persist::Container;

/// What is known when row t + 1 arrives (counted from 1), before anything has changed.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// k_{t+1}, above 0.
    pub energy: f64,
    /// k̄_{t+1}: the new row with each of the t earlier ones.
    #[doc(alias = "k̄")]
    pub kernels: &'a [f64],
    /// I_t with b_t, in the order of the stream.
    pub atoms: &'a [Atom],
    /// The kernel matrix of the atoms.
    pub atom_kernels: MatRef<'a, f64>,
    /// d̃_eff of the t earlier rows.
    pub effective_dim: f64,
}

impl Step<'_> {
    /// The kernels of the new row with the atoms.
    pub fn kernels_with_atoms(&self) -> impl Iterator<Item = f64> + '_ {
        self.atoms.iter().map(|atom| self.kernels[atom.row])
    }
}

/// An oracle's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// τ̃_{i,t+1} of each atom of the step; none where there is no usable one.
    pub scores: Vec<Option<f64>>,
    /// τ̃_{t+1,t+1}.
    pub new_score: Option<f64>,
    /// d̃_eff(γ)_{t+1}.
    pub effective_dim: f64,
}

impl Estimate {
    /// Whether there is a score for every atom and the new row.
    pub fn is_complete(&self) -> bool {
        self.new_score.is_some() && self.scores.iter().all(Option::is_some)
    }
}

/// An (α, β)-oracle. For each row it is told of the step, then asked for estimates at one or more γ (more than one
/// only where a budget makes γ rise), then told what was kept.
pub trait Oracle: Sized + Send {
    /// The method's name as a user writes it.
    const METHOD: &'static str;

    /// An oracle that has seen nothing.
    fn new(options: &InkOptions) -> Self;

    /// α: scores are at least τ/α.
    fn score_factor(&self) -> f64;

    /// β, given ρ = λ_max(K)/γ or a bound on it.
    fn dimension_factor(&self, spectral_ratio: f64) -> f64;

    /// Refuses a stream of so many rows if that is more than this oracle can do.
    fn require_fits(_rows: usize) -> Result<()> {
        Ok(())
    }

    /// A row arrives. May only prepare for what follows: the step can still be called off.
    fn receive(&mut self, step: &Step<'_>);

    /// Scores and effective dimension at γ = `leverage_ridge`.
    fn estimate(&mut self, step: &Step<'_>, leverage_ridge: f64) -> Result<Estimate>;

    /// The step is over: `kept` says which of its atoms stay, `entered` whether the new row joins them, last.
    fn advance(&mut self, step: &Step<'_>, kept: &[bool], entered: bool);

    /// Bytes held.
    fn size_bytes(&self) -> u64;

    /// Adds the oracle's state to a file.
    fn put(&self, file: &mut Container) -> Result<()>;

    /// Takes the state out again and checks it; `rows` is t, `atoms` those kept.
    fn take(file: &mut Container, options: &InkOptions, rows: usize, atoms: &[Atom]) -> Result<Self>;
}
