//! INK against literal transcriptions, its lemmas, and the laws of every sequential dictionary.

use super::super::oracle as naive;
use super::*;
use crate::kernel::Kernel;
use crate::rows::{RowBlock, Rows};

mod files;
mod laws;
mod lemmas;
mod literal;

pub(super) type InkEstimate = InkOracle<EstimateOracle>;
pub(super) type InkExact = InkOracle<ExactOracle>;

/// γ = 0.7, ε = 0.4, and this q̄ and seed.
fn options(kernel: Kernel, oversampling: u64, seed: u64) -> InkOptions {
    InkOptions { accuracy: 0.4, oversampling, seed, ..InkOptions::new(kernel, 0.7) }
}

/// One of the rows after the other.
fn singly(rows: Rows<'_>) -> impl Iterator<Item = Rows<'_>> {
    (0..rows.len()).map(move |i| rows.slice(i, i + 1))
}

/// What the oracle says of the next row, γ as it is.
fn next_estimate<O: Oracle + Clone>(ink: &InkOracle<O>, row: Rows) -> Estimate {
    let kernel = ink.options.kernel;
    let mut kernels = Vec::new();
    if let Some(history) = &ink.history {
        history.kernels(&kernel, row.row(0), &mut kernels);
    }
    let step = Step {
        energy: kernel.diagonal(row.row(0)),
        kernels: &kernels,
        atoms: &ink.atoms,
        atom_kernels: ink.atom_kernels.as_ref(),
        effective_dim: ink.state.effective_dim,
    };
    let mut oracle = ink.oracle.clone();
    oracle.receive(&step);
    oracle.estimate(&step, ink.state.leverage_ridge).unwrap()
}

/// Rows with many exact repeats.
fn repeated_rows(n: usize) -> RowBlock {
    let few = naive::normal_rows(7, 2, 3);
    RowBlock::gather(few.rows(), &(0..n).map(|i| i * i % 7).collect::<Vec<_>>())
}
