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
