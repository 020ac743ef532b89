//! A dictionary: atoms, their weights, and how it was made.

use crate::error::{Error, Result};
use crate::rows::RowBlock;

/// Atoms with weights. The regularised Nyström approximation (INK, Eq. 5) it stands for is
/// K̃ = K S (SᵀKS + γI)⁻¹ SᵀK, S having the weights on its diagonal.
#[derive(Debug, Clone, PartialEq)]
pub struct Dictionary {
    atoms: RowBlock,
    weights: Vec<f64>,
    indices: Vec<u64>,
    leverage_ridge: f64,
}

impl Dictionary {
    /// Atoms with weights (all above 0), their row numbers in the data (from 0), and γ.
    pub fn new(atoms: RowBlock, weights: Vec<f64>, indices: Vec<u64>, leverage_ridge: f64) -> Result<Self> {
        if weights.len() != atoms.len() {
            return Err(Error::Shape { what: "dictionary weights", found: weights.len(), expected: atoms.len() });
        }
        if indices.len() != atoms.len() {
            return Err(Error::Shape { what: "dictionary row numbers", found: indices.len(), expected: atoms.len() });
        }
        if let Some(&bad) = weights.iter().find(|w| !(w.is_finite() && **w > 0.0)) {
            let found = bad.to_string();
            return Err(Error::InvalidParam { name: "weight", found, expected: "a finite number above 0" });
        }
        if !(leverage_ridge.is_finite() && leverage_ridge >= 0.0) {
            let found = leverage_ridge.to_string();
            return Err(Error::InvalidParam { name: "leverage-ridge", found, expected: "a finite number, at least 0" });
        }
        Ok(Self { atoms, weights, indices, leverage_ridge })
    }
    /// Makes sparse atoms wider; dense ones stay as they are.
    pub fn widen(&mut self, width: usize) {
        self.atoms.widen(width);
    }
    /// The points.
    pub fn atoms(&self) -> &RowBlock {
        &self.atoms
    }
    /// s_i, the diagonal of S.
    #[doc(alias = "S")]
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }
    /// Row numbers of the atoms in the data they came from, counted from 0.
    pub fn indices(&self) -> &[u64] {
        &self.indices
    }
    /// γ of Eq. 5; 0 for plain Nyström.
    #[doc(alias = "γ")]
    pub fn leverage_ridge(&self) -> f64 {
        self.leverage_ridge
    }
    /// The same atoms with another γ.
    pub fn with_leverage_ridge(&self, leverage_ridge: f64) -> Result<Self> {
        Self::new(self.atoms.clone(), self.weights.clone(), self.indices.clone(), leverage_ridge)
    }
    /// Number of different atoms.
    pub fn len(&self) -> usize {
        self.atoms.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.atoms.is_empty()
    }
}
