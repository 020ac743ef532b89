//! Kernel approximations by an explicit feature map that follows a stream.
//!
//! X. Zhang and S. Liao, "Incremental Randomized Sketching for Online Kernel Learning", ICML 2019 (cited as SkeGD).
//! All of them are φ(x) = Qᵀ[κ(x, z₁), …, κ(x, z_m)]ᵀ with a few points z and a matrix Q, a [`FeatureMap`]:
//!
//! | item | points z | Q Qᵀ |
//! |---|---|---|
//! | [`IncrementalSketch`] | a sample of the starting rows | F_sk of Eq. 2, kept up to date by rank-one modifications |
//! | [`incremental_nystrom`] (INys) | the starting rows | the pseudo-inverse of their kernel matrix, of rank k |
//! | [`modified_nystrom`] | a sample of all rows | F_mod = C†K(C†)ᵀ, which needs all of them at once |
//!
//! [`SparseTransform`] is the random matrix S_p that the sketch is made with.

mod file;
mod map;
mod nystrom;
mod options;
mod sketch;
#[cfg(test)]
mod tests;
mod transform;

pub use file::SketchHeader;
pub use map::FeatureMap;
pub use nystrom::{incremental_nystrom, modified_nystrom};
pub use options::{IncrementalOptions, PseudoInverse};
pub use sketch::IncrementalSketch;
pub use transform::{Entry, SparseTransform};
