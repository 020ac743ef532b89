//! INK-ORACLE and INK-ESTIMATE: dictionaries that follow a stream row by row, with a guarantee at every step.
//!
//! D. Calandriello, A. Lazaric, M. Valko, "Analysis of Nyström method with sequential ridge leverage score sampling"
//! (INK), UAI 2016, Sect. 3 and 4.
//!
//! | item | what it is |
//! |---|---|
//! | [`InkOracle`] | Alg. 2, for any [`Oracle`] (Def. 2); with the hard budget |
//! | `shrink_expand` | Subroutine 2 |
//! | [`ExactOracle`] | exact scores: `ink-oracle`, for study |
//! | [`EstimateOracle`] | Eq. 12–14: with it Alg. 2 is Alg. 3, `ink-estimate` |
//! | [`oversampling_bound`], [`atoms_bound`] | the constants of Thm. 1 and 2 |
//!
//! Slips of the paper, none of which changes a result:
//! - Lemma 1 prints p_{i,t} with τ_{i,t+1}; τ_{i,t} is meant. Subroutine 2: see `shrink_expand`.
//! - γ > 1 in Thm. 1 and 2 cannot matter: see [`InkOptions::leverage_ridge`].
//! - App. B ends with a chance of δ/t of failing at step t, which summed over all steps exceeds δ. Its numbers are better
//!   than its last line: the exponent is 7/(3 + ε/3) ≥ 2.1, so the sum is at most Σ t (δ/4t)^2.1 < 0.58 δ.
//! - App. B bounds the quadratic variation by Σ B_i² ψ_iψ_iᵀψ_iψ_iᵀ, which fails path by path where a weight is to rise
//!   by more than one and the first coin fails (its variance had the whole rise in it). With one coin a step of the
//!   martingale, as the subroutine draws them, the sum for a row is at most B(B + 1)/2 ≤ B², and the bound holds.
//! - App. C writes Δ̃ with the factor α of Eq. 13 inside, and K̃^γ + ηγI for K̃ + ηγI.

mod columns;
mod constants;
mod estimate;
mod exact;
mod file;
mod history;
mod ink_oracle;
mod options;
mod oracle;
mod shrink_expand;
#[cfg(test)]
mod tests;

pub use constants::{atoms_bound, oversampling_bound};
pub use estimate::EstimateOracle;
pub use exact::ExactOracle;
pub use ink_oracle::InkOracle;
pub use options::{DEFAULT_OVERSAMPLING, InkOptions};
pub use oracle::{Estimate, Oracle, Step};
pub use shrink_expand::Atom;
