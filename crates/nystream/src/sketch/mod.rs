//! Dictionaries: small weighted sets of points that stand for a whole data set.
//!
//! [`build`](fn@build) is the entry point: it takes a method ([`DictionaryMethod`]) and rows held in
//! memory. The methods themselves, and what judges a dictionary, are public too:
//!
//! | item | what it is |
//! |---|---|
//! | [`Leverage`] | exact ridge leverage scores and effective dimension (INK, Def. 1) |
//! | [`batch_exact`](fn@batch_exact) | BATCH-EXACT with DIRECT-SAMPLE (INK, Alg. 1) |
//! | [`uniform`](fn@uniform) | uniform sampling without replacement |
//! | [`two_pass_scores`](fn@two_pass_scores), [`ScoreSums`] | the two-pass scores of Alaoui and Mahoney |
//! | [`rpcholesky`](fn@rpcholesky) | randomly pivoted Cholesky, accelerated by rejection |
//! | [`SequentialDictionary`] | what dictionaries that follow a stream have in common |
//! | [`Squeak`] | SQUEAK, per point, in blocks or lazily, and merging (DISQUEAK) |
//! | [`InkOracle`] | INK-ORACLE (INK, Alg. 2) with an [`ExactOracle`], INK-ESTIMATE (Alg. 3) with an [`EstimateOracle`] |
//! | [`AnySequential`] | one of these, whichever: to be streamed into, saved, resumed and merged |
//! | [`incremental`] | feature maps that follow a stream: incremental randomized sketching, incremental and modified Nyström |
//! | [`check_guarantee`] | Eq. 11 of INK against the exact kernel matrix |

mod any_sequential;
mod batch_exact;
mod build;
mod check;
mod dictionary;
mod direct_sample;
mod embedding;
pub mod incremental;
mod ink;
mod leverage;
mod matrix;
#[cfg(test)]
mod oracle;
mod rpcholesky;
mod sequential;
mod squeak;
mod two_pass_scores;
mod uniform;

pub use any_sequential::AnySequential;
pub use batch_exact::{batch_exact, proposition_1_budget};
pub use build::{
    DictionaryInfo, DictionaryMethod, DictionaryOptions, build, build_dictionary, sequential_with_budget,
    starting_leverage_ridge,
};
pub use check::{Check, check_guarantee};
pub use dictionary::Dictionary;
pub use ink::{
    Atom, DEFAULT_OVERSAMPLING, Estimate, EstimateOracle, ExactOracle, InkOptions, InkOracle, Oracle, Step,
    atoms_bound, oversampling_bound,
};
pub use leverage::{Leverage, leverage_of_rows};
pub use rpcholesky::{PivotSelection, rpcholesky};
pub use sequential::{SequentialDictionary, SketchReport, TheoremConstants};
pub use squeak::{Oversampling, Schedule, Squeak, SqueakOptions};
pub use two_pass_scores::{ScoreEstimator, ScoreSums, two_pass_scores};
pub use uniform::uniform;
