//! Σφφᵀ: as it was summed, or implied by a factor of Σφφᵀ + μR that took the rows up instead.
//!
//! Rows that go to a factor ([`ReflectedFactor`]) are not summed. Whoever reads the sums, to choose a ridge, to save a model or to
//! merge, has them computed from the factor, LLᵀ − μR, once; whoever changes them ends the factor. Reading changes nothing
//! of what comes after.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use faer::Mat;

use crate::linalg::{GramSum, ReflectedFactor};

/// Σφφᵀ.
#[derive(Debug, Clone)]
pub(super) struct SummedGram {
    /// Empty if rows went to a factor.
    sum: GramSum,
    implied: Option<Asked>,
}

/// A factor that rows went to, and what it is made of beside the sums.
#[derive(Debug, Clone)]
pub(super) struct Implied {
    /// L of Σφφᵀ + μR, with the constant as the last feature.
    pub factor: Arc<ReflectedFactor>,
    /// μ.
    pub ridge: f64,
    /// R; none: the identity.
    pub regulariser: Option<Arc<GramSum>>,
    /// What the first factorisation had added to the diagonal.
    pub jitter: f64,
}

/// [`Implied`], and the sums once they were asked for.
#[derive(Debug, Clone)]
struct Asked {
    implied: Implied,
    sum: OnceLock<GramSum>,
}

impl Asked {
    /// LLᵀ − μR, without the constant.
    fn compute(&self) -> GramSum {
        let Implied { factor, ridge, regulariser, jitter } = &self.implied;
        let width = factor.width();
        let mut lower = Mat::zeros(width, width);
        factor.write_lower(lower.as_mut());
        // Columns of L are rows whose outer products add up to LLᵀ.
        let mut sum = GramSum::of_rows(lower.subrows(0, width - 1).transpose());
        match regulariser {
            Some(regulariser) => sum.add_scaled(regulariser, -ridge),
            None => sum.add_to_diagonal(-ridge),
        }
        sum.add_to_diagonal(-jitter);
        sum
    }

    fn sum(&self) -> &GramSum {
        self.sum.get_or_init(|| self.compute())
    }
}

impl SummedGram {
    /// Rows went to this factor: the sums are what it implies.
    pub fn imply(&mut self, implied: Implied) {
        (self.sum, self.implied) = (GramSum::default(), Some(Asked { implied, sum: OnceLock::new() }));
    }

    /// The factor that rows went to, if they did.
    pub fn implied(&self) -> Option<&Implied> {
        self.implied.as_ref().map(|asked| &asked.implied)
    }

    /// Takes the factor out, for more rows to go to it; [`imply`](Self::imply) must follow.
    pub fn take(&mut self) -> Option<Implied> {
        self.implied.take().map(|asked| asked.implied)
    }

    /// Number of atoms.
    pub fn dim(&self) -> usize {
        self.implied().map_or_else(|| self.sum.dim(), |implied| implied.factor.width() - 1)
    }

    /// Bytes held, those of the sums included whether they were asked for or not.
    pub fn size_bytes(&self) -> usize {
        match self.implied() {
            Some(implied) => implied.factor.size_bytes() + GramSum::bytes_of(self.dim()),
            None => self.sum.size_bytes(),
        }
    }
}

impl From<GramSum> for SummedGram {
    fn from(sum: GramSum) -> Self {
        Self { sum, implied: None }
    }
}

impl Deref for SummedGram {
    type Target = GramSum;

    fn deref(&self) -> &GramSum {
        self.implied.as_ref().map_or(&self.sum, Asked::sum)
    }
}

impl DerefMut for SummedGram {
    fn deref_mut(&mut self) -> &mut GramSum {
        if let Some(mut asked) = self.implied.take() {
            self.sum = asked.sum.take().unwrap_or_else(|| asked.compute());
        }
        &mut self.sum
    }
}
