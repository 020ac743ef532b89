//! Merging two dictionaries (DISQUEAK), scored at γ.

use super::Squeak;
use super::step::STEPS;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::random::Generator;
use crate::rows::RowBlock;
use crate::sketch::SequentialDictionary;

/// Stream of the generator that a merge makes, apart from those of single dictionaries.
pub(super) const MERGE_STREAM: u64 = 1;

impl Squeak {
    /// One dictionary for the rows of both, as if the rows of `other` had come after those of this one: its row
    /// numbers are counted on.
    ///
    /// Rows that wait for a full block are learnt first. The larger γ of the two holds, and the settings of this one
    /// (budget, schedule, oversampling) go on to hold; kernel, γ at the start, accuracy, failure probability, and kind
    /// and width of rows must agree. A dictionary that has seen no rows changes nothing, to the last bit. The draws
    /// come from a generator seeded by the next draws of both.
    pub fn merge(self, other: Self) -> Result<Self> {
        self.require_compatible(&other)?;
        if other.rows_seen() == 0 {
            return Ok(self);
        }
        if self.rows_seen() == 0 {
            return Ok(other);
        }
        let mut union = self.union(other)?;
        // At γ, as a block's, where DISQUEAK has (1+ε)γ: see the departures of this module.
        union.rescore(union.leverage_ridge, STEPS)?;
        union.enforce_budget(STEPS)?;
        union.release();
        Ok(union)
    }

    /// The atoms of both as they stand.
    pub(super) fn union(mut self, mut other: Self) -> Result<Self> {
        self.flush()?;
        other.flush()?;
        let seed = self.rng.bits() ^ other.rng.bits().rotate_left(32);
        self.rng = Generator::with_stream(seed, MERGE_STREAM);
        self.leverage_ridge = self.leverage_ridge.max(other.leverage_ridge);
        let cols = self.atoms.rows().cols().max(other.atoms.rows().cols());
        self.widen(cols);
        other.widen(cols);

        let mut standing = other.atoms.standing().to_vec();
        standing.iter_mut().for_each(|point| point.number += self.learnt);
        self.atoms.append(&self.options.kernel, other.atoms.rows().rows(), &standing, &mut self.scorer.kernels);
        self.scorer.forget();
        self.learnt += other.learnt;
        self.energy += other.energy;
        self.residual += other.residual;
        self.least_oversampling = self.least_oversampling.min(other.least_oversampling);
        self.scorer.set_largest_jitter(other.scorer.largest_jitter());
        self.merged = true;
        Ok(self)
    }

    /// Gives back the memory that both together took.
    fn release(&mut self) {
        self.atoms.release();
        self.scorer.release();
        self.scores = Vec::new();
        self.spare = RowBlock::like(self.atoms.rows().rows());
    }

    fn require_compatible(&self, other: &Self) -> Result<()> {
        let (ours, theirs) = (&self.options, &other.options);
        require_same_kernel(&ours.kernel, &theirs.kernel)?;
        require_same("leverage-ridge", ours.leverage_ridge, theirs.leverage_ridge)?;
        require_same("accuracy", ours.accuracy, theirs.accuracy)?;
        require_same("failure-prob", ours.failure_prob, theirs.failure_prob)?;
        if self.rows_seen() > 0 && other.rows_seen() > 0 {
            let kind = |sparse: bool| if sparse { "sparse" } else { "dense" };
            let (ours, theirs) = (self.atoms.rows(), other.atoms.rows());
            require_same("kind of rows", kind(ours.is_sparse()), kind(theirs.is_sparse()))?;
            if !ours.is_sparse() {
                require_same("number of features", ours.cols(), theirs.cols())?;
            }
        }
        Ok(())
    }
}

fn require_same_kernel(ours: &Kernel, theirs: &Kernel) -> Result<()> {
    require_same("kernel", ours.name(), theirs.name())?;
    if let (Some(ours), Some(theirs)) = (ours.bandwidth(), theirs.bandwidth()) {
        require_same("bandwidth", ours, theirs)?;
    }
    if let (
        Kernel::Polynomial { degree, scale, offset },
        Kernel::Polynomial { degree: other_degree, scale: other_scale, offset: other_offset },
    ) = (ours, theirs)
    {
        require_same("degree", degree, other_degree)?;
        require_same("scale", scale, other_scale)?;
        require_same("offset", offset, other_offset)?;
    }
    Ok(())
}

fn require_same<T: PartialEq + ToString>(field: &str, ours: T, theirs: T) -> Result<()> {
    if ours == theirs {
        return Ok(());
    }
    Err(Error::Incompatible { field: field.to_owned(), found: theirs.to_string(), expected: ours.to_string() })
}
