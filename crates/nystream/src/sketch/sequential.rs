//! What every sequential dictionary can do: learn the next rows, answer at any time, be saved and resumed.
//!
//! A sequential dictionary reads a stream once. How the stream is cut into calls of
//! [`insert`](SequentialDictionary::insert) never matters: methods that work in blocks keep rows until a block is full.

use super::dictionary::Dictionary;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::persist::Container;
use crate::rows::Rows;

/// A dictionary that follows a stream.
pub trait SequentialDictionary: Send {
    /// The name a user writes, such as `squeak`.
    fn method(&self) -> &'static str;

    /// The kernel.
    fn kernel(&self) -> &Kernel;

    /// Learns the next rows of the stream. Rows that are refused (not finite, another width) leave it unchanged.
    fn insert(&mut self, rows: Rows) -> Result<()>;

    /// Works off rows that wait for a full block. At the end of a stream, or before merging.
    fn flush(&mut self) -> Result<()>;

    /// The dictionary of all rows so far, those that wait included. Changes nothing: the stream can go on.
    fn dictionary(&self) -> Result<Dictionary>;

    /// What it knows about itself.
    fn report(&self) -> Result<SketchReport>;

    /// Everything needed to go on, to the same bits, in a file of kind `sketch`.
    fn to_container(&self) -> Result<Container>;
}

/// A sequential dictionary's account of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct SketchReport {
    /// Rows of the stream so far.
    pub rows: u64,
    /// Different atoms.
    pub atoms: usize,
    /// Copies of atoms: Q of SQUEAK, the sum of the weights b of INK.
    #[doc(alias = "Q")]
    pub copies: u64,
    /// Estimate of d_eff(γ) of all rows so far.
    #[doc(alias = "d_eff")]
    pub effective_dim: f64,
    /// Share of kernel energy captured, each row judged by the dictionary of its time: 1 − Σ(k(x, x) − ‖φ(x)‖²)/Σk(x, x).
    pub captured: f64,
    /// Bytes held.
    pub bytes: u64,
    /// γ in force: what was asked for, or more where the budget asked for more.
    #[doc(alias = "γ")]
    pub leverage_ridge: f64,
    /// γ at the start.
    pub initial_leverage_ridge: f64,
    /// q̄ in force for new rows.
    #[doc(alias = "q̄")]
    pub oversampling: u64,
    /// The theorem's constants for the chosen accuracy and failure probability.
    pub theorem: TheoremConstants,
}

/// What the method's theorem asks for and gives.
#[derive(Debug, Clone, PartialEq)]
pub struct TheoremConstants {
    /// ε.
    #[doc(alias = "ε")]
    pub accuracy: f64,
    /// δ.
    #[doc(alias = "δ")]
    pub failure_prob: f64,
    /// α: scores are within this factor below the true ones.
    #[doc(alias = "α")]
    pub score_factor: f64,
    /// β: the effective dimension is within this factor above the true one; none where the method estimates none.
    #[doc(alias = "β")]
    pub dimension_factor: Option<f64>,
    /// The q̄ that the theorem asks for at this number of rows.
    pub oversampling: f64,
    /// The most atoms that the theorem allows for, at the q̄ in force.
    pub atoms: f64,
    /// γ/(1 − ε), the bound on ‖K − K̃‖₂.
    pub error_bound: f64,
    /// Whether q̄ in force is what the theorem asks for: if not, the bound is likely but not promised.
    pub promised: bool,
}
