//! The settings of an incremental randomized sketch.

use serde::{Deserialize, Serialize};

use super::SparseTransform;
use crate::error::{Error, Result};

/// Settings of an [`IncrementalSketch`](super::IncrementalSketch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IncrementalOptions {
    /// s_p, columns of the sparse transform.
    #[doc(alias = "s_p")]
    pub projection_size: usize,
    /// s_m, points sampled from the starting rows; at most all of them.
    #[doc(alias = "s_m")]
    pub sample_size: usize,
    /// k, features of the map; at most `projection_size`.
    #[doc(alias = "k")]
    pub rank: usize,
    /// d, blocks of the sparse transform.
    #[doc(alias = "d")]
    pub blocks: usize,
    /// Which singular values of Φ_pm are inverted.
    pub pseudo_inverse: PseudoInverse,
    /// Rows held at most; beyond them the oldest one is taken out of the sketch again.
    pub most_rows: usize,
    /// Of the transform, the sample and the random projections.
    pub seed: u64,
}

/// How Φ_pm is inverted in Q = Φ_pm† V Σ^½.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PseudoInverse {
    /// By its k leading singular values, from a randomised decomposition of rank k.
    Leading,
    /// By all singular values above rounding.
    Full,
}

impl IncrementalOptions {
    /// The transform, if every setting is in its range.
    pub(super) fn transform(&self, starting_rows: usize) -> Result<SparseTransform> {
        let transform = SparseTransform::new(self.projection_size, self.blocks, self.seed)?;
        let within = |name, found: usize, least: usize, most: usize, expected| {
            let fine = (least..=most).contains(&found);
            if fine { Ok(()) } else { Err(Error::InvalidParam { name, found: found.to_string(), expected }) }
        };
        within("sampled", self.sample_size, 1, starting_rows, "a whole number from 1 to the starting rows")?;
        within("rank", self.rank, 1, self.projection_size, "a whole number from 1 to the sketch size")?;
        within("history", self.most_rows, starting_rows, usize::MAX, "at least the number of starting rows")?;
        Ok(transform)
    }
}
