//! The recursion of kernel recursive least squares over a dictionary that grows.
//!
//! Engel, Mannor and Meir 2004, Table 1. With a the coefficients of a row's projection onto the atoms
//! (a = K_ZZ⁻¹k_Z(x)), P = (AᵀA)⁻¹ over the rows a of all rows learnt, and e the error before learning, a row within
//! the span moves the coefficients by K_ZZ⁻¹Pa·e/(1 + aᵀPa), and an atom leaves P alone but for a 1 on its diagonal.
//! Instead of the coefficients α̃ and K_ZZ⁻¹ the weights Lᵀα̃ are held, LLᵀ = K_ZZ: a = L⁻ᵀφ, the output is the inner
//! product of weights and φ = L⁻¹k_Z(x), a row moves the weights by L⁻¹Pa·e/(1 + aᵀPa), and an atom appends e/√δ.
//! P stays in the coordinates of Table 1, where it is at most the identity however close the atoms are to each other.

use super::embedding::Embedding;
use crate::error::Result;
use crate::learner::online::state::State;
use crate::linalg::{GrowingSymmetric, dot};
use crate::persist::Container;

/// Weights, P, and the memory of one round.
#[derive(Debug, Clone, Default)]
pub(super) struct Recursion {
    /// Lᵀα̃.
    weights: Vec<f64>,
    inverse: GrowingSymmetric,
    /// a of the round.
    projection: Vec<f64>,
    /// Pa of the round.
    gain: Vec<f64>,
}

impl Recursion {
    /// The output for a row.
    pub(super) fn output(&self, features: &[f64]) -> f64 {
        dot(&self.weights, features)
    }

    /// The row of the round became an atom, with `coordinate` = √δ: the output now meets its target.
    pub(super) fn extend(&mut self, coordinate: f64, error: f64) {
        self.weights.push(error / coordinate);
        self.inverse.append_diagonal(1.0);
    }

    /// Learns the row of the round, mapped by `embedding`, by its projection onto the atoms.
    pub(super) fn learn(&mut self, embedding: &Embedding, error: f64) {
        self.projection.clear();
        self.projection.extend_from_slice(embedding.features());
        embedding.factor().backward(&mut self.projection);
        self.gain.resize(self.projection.len(), 0.0);
        self.inverse.times(&self.projection, &mut self.gain);
        let share = 1.0 / (1.0 + dot(&self.projection, &self.gain));
        self.inverse.subtract_outer(share, &self.gain);
        embedding.factor().forward(&mut self.gain);
        self.weights.iter_mut().zip(&self.gain).for_each(|(w, gain)| *w += share * error * gain);
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> usize {
        (self.weights.capacity() + self.projection.capacity() + self.gain.capacity()) * 8 + self.inverse.size_bytes()
    }

    /// Adds weights and P to a file.
    pub(super) fn put(&self, file: &mut Container) -> Result<()> {
        file.put_numbers("recursion_weights", &self.weights)?;
        file.put_numbers("recursion_inverse", self.inverse.packed())
    }

    /// Takes them out again.
    pub(super) fn take(file: &mut Container, atoms: usize) -> Result<Self> {
        let weights = file.take_numbers("recursion_weights", atoms)?;
        let inverse = file.take_some_numbers("recursion_inverse")?;
        let Some(inverse) = GrowingSymmetric::from_packed(atoms, inverse) else {
            return Err(file.malformed(format!("recursion_inverse: expected the lower triangle of {atoms} rows")));
        };
        Ok(Self { weights, inverse, ..Self::default() })
    }
}
