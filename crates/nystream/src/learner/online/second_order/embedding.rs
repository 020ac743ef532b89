//! The Nyström embedding of a dictionary that grows: φ(x) = L⁻¹k_Z(x) with LLᵀ = K_ZZ, a coordinate for every atom.
//!
//! ⟨φ(x), φ(y)⟩ = k_Z(x)ᵀK_ZZ⁻¹k_Z(y), so that φ is Σ⁻¹Uᵀk_Z(x) of the papers in another basis. The part of a row that
//! the atoms do not span, δ = k(x,x) − |φ(x)|², is what the test of approximate linear dependence compares with its
//! threshold. An atom that the others span up to rounding gets a coordinate that is always 0, which is the
//! pseudo-inverse of K_ZZ where the papers have its inverse.

use crate::error::Result;
use crate::kernel::SupportSet;
use crate::learner::online::settings::LearnerSettings;
use crate::learner::online::state::State;
use crate::linalg::{GrowingFactor, dot};
use crate::persist::Container;
use crate::rows::Row;

/// A row whose part outside the span of the atoms is below this share of k(x,x) counts as spanned: below it, rounding
/// in |φ|² leaves few digits of what is left.
const ROUNDING: f64 = 1e-10;

/// Atoms, the factor of their kernel matrix, and the row of the round.
#[derive(Debug, Clone)]
pub(super) struct Embedding {
    support: SupportSet,
    factor: GrowingFactor,
    kernels: Vec<f64>,
    features: Vec<f64>,
    own: f64,
    residual: f64,
}

impl Embedding {
    /// No atoms yet.
    pub(super) fn new(settings: &LearnerSettings) -> Self {
        Self {
            support: SupportSet::new(&settings.kernel, settings.features, settings.budget),
            factor: GrowingFactor::new(),
            kernels: Vec::new(),
            features: Vec::new(),
            own: 0.0,
            residual: 0.0,
        }
    }

    /// Number of atoms, and of coordinates.
    pub(super) fn atoms(&self) -> usize {
        self.support.len()
    }

    /// Maps a row; what the methods below say is about this row.
    pub(super) fn map(&mut self, row: Row) {
        self.kernels.resize(self.support.len(), 0.0);
        self.support.kernels(row, &mut self.kernels);
        self.features.clear();
        self.features.extend_from_slice(&self.kernels);
        self.factor.forward(&mut self.features);
        self.own = self.support.kernel().diagonal(row);
        // At least 0 but for rounding.
        self.residual = (self.own - dot(&self.features, &self.features)).max(0.0);
        if self.residual <= ROUNDING * self.own {
            self.residual = 0.0;
        }
    }

    /// The kernels of the row with the atoms.
    pub(super) fn kernels(&self) -> &[f64] {
        &self.kernels
    }

    /// φ(x).
    pub(super) fn features(&self) -> &[f64] {
        &self.features
    }

    /// k(x, x).
    pub(super) fn own(&self) -> f64 {
        self.own
    }

    /// δ, or 0 where the atoms span the row up to rounding.
    pub(super) fn residual(&self) -> f64 {
        self.residual
    }

    /// L, for its solves.
    pub(super) fn factor(&self) -> &GrowingFactor {
        &self.factor
    }

    /// Makes the row just mapped an atom. Its new coordinate, √δ, is appended to its features and given back.
    pub(super) fn admit(&mut self, row: Row) -> f64 {
        self.support.push(row);
        self.factor.append(&self.features, self.residual);
        let coordinate = self.residual.sqrt();
        self.features.push(coordinate);
        coordinate
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> usize {
        self.support.size_bytes() + self.factor.size_bytes() + (self.kernels.capacity() + self.features.capacity()) * 8
    }

    /// Adds atoms and factor to a file.
    pub(super) fn put(&self, file: &mut Container) -> Result<()> {
        file.put_support("atom", &self.support)?;
        file.put_numbers("atom_factor", self.factor.packed())
    }

    /// Takes them out again.
    pub(super) fn take(file: &mut Container, settings: &LearnerSettings) -> Result<Self> {
        let support = file.take_support("atom", settings, settings.budget)?;
        let factor = file.take_some_numbers("atom_factor")?;
        let atoms = support.len();
        let Some(factor) = GrowingFactor::from_packed(atoms, factor) else {
            return Err(file.malformed(format!("atom_factor: expected the lower triangle of {atoms} rows")));
        };
        Ok(Self { support, factor, ..Self::new(settings) })
    }
}
