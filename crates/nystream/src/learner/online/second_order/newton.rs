//! Online Newton steps (ONS) in an embedded space whose dimension grows, with the projection onto |⟨w, φ⟩| ≤ C.
//!
//! Calandriello, Lazaric and Valko 2017, Alg. 1, lines 13–18, and Li and Liao 2023: the weights move by A⁻¹g with
//! A = αI + (σ/2)Σggᵀ, and before each row they are projected, in the norm of A, onto those that give it an output
//! within ±C. Both papers write the embedding φ̃ = Σ⁻¹Uᵀk_Z(x) by an eigendecomposition of K_ZZ. Here φ̃ = L⁻¹k_Z(x)
//! with the Cholesky factor of the same matrix, which is the same embedding in a rotated basis, and none of the steps
//! depends on the basis. In this one the spaces of a growing dictionary are nested: a new atom adds a coordinate and
//! leaves the others alone, so carrying weights and A over to the larger dictionary is appending a zero and an α.
//!
//! A⁻¹ is kept, updated in rank one. One product u = A⁻¹φ̃ serves the projection, the step and the update.

use crate::error::Result;
use crate::learner::online::state::State;
use crate::linalg::{GrowingSymmetric, dot};
use crate::persist::Container;

/// What a Newton step depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NewtonSettings {
    /// α: the ridge A begins with.
    pub ridge: f64,
    /// What multiplies ggᵀ in A (σ/2, or η).
    pub curvature: f64,
    /// C: outputs stay within ±C.
    pub bound: f64,
}

/// Weights, A⁻¹, and the memory of one round.
#[derive(Debug, Clone)]
pub(super) struct NewtonStep {
    settings: NewtonSettings,
    /// ṽ: the weights after the last step, not yet projected.
    weights: Vec<f64>,
    inverse: GrowingSymmetric,
    /// u = A⁻¹φ̃ of the round under way.
    direction: Vec<f64>,
    /// φ̃ᵀu of the round under way.
    energy: f64,
}

impl NewtonStep {
    /// Of dimension 0.
    pub(super) fn new(settings: NewtonSettings) -> Self {
        Self { settings, weights: Vec::new(), inverse: GrowingSymmetric::new(), direction: Vec::new(), energy: 0.0 }
    }

    /// The dimension.
    pub(super) fn dim(&self) -> usize {
        self.weights.len()
    }

    /// The output for a row: that of the projected weights.
    pub(super) fn output(&self, features: &[f64]) -> f64 {
        dot(&self.weights, features).clamp(-self.settings.bound, self.settings.bound)
    }

    /// Begins a round: projects the weights for this row (w̃ = ṽ − h(φ̃ᵀṽ)/(φ̃ᵀA⁻¹φ̃)·A⁻¹φ̃) and gives the output.
    pub(super) fn project(&mut self, features: &[f64]) -> f64 {
        self.direction.resize(self.dim(), 0.0);
        self.inverse.times(features, &mut self.direction);
        // At least 0 but for rounding, which a small ridge makes large.
        self.energy = dot(features, &self.direction).max(0.0);
        let free = dot(&self.weights, features);
        let output = free.clamp(-self.settings.bound, self.settings.bound);
        let excess = free - output;
        // An output beyond the bound comes from features that are not zero, but their energy may underflow.
        if excess != 0.0 && self.energy > 0.0 {
            self.move_by(excess / self.energy);
        }
        output
    }

    /// A further dimension, in which the row of the round has this coordinate; weights and A are carried over.
    pub(super) fn extend(&mut self, feature: f64) {
        let along = feature / self.settings.ridge;
        self.weights.push(0.0);
        self.inverse.append_diagonal(1.0 / self.settings.ridge);
        self.direction.push(along);
        self.energy += feature * along;
    }

    /// Ends a round: A += curvature·ggᵀ and ṽ = w̃ − A⁻¹g with g = slope·φ̃.
    pub(super) fn descend(&mut self, slope: f64) {
        if slope == 0.0 {
            return;
        }
        let squared = self.settings.curvature * slope * slope;
        // (A + cφ̃φ̃ᵀ)⁻¹ = A⁻¹ − c·uuᵀ/(1 + cφ̃ᵀu), and that matrix times φ̃ is u/(1 + cφ̃ᵀu).
        let share = 1.0 / (1.0 + squared * self.energy);
        self.inverse.subtract_outer(squared * share, &self.direction);
        self.move_by(slope * share);
    }

    /// Forgets everything learnt: w̃ = 0 and A = αI of this dimension.
    pub(super) fn restart(&mut self, dim: usize) {
        self.weights.clear();
        self.weights.resize(dim, 0.0);
        self.inverse.reset(dim, 1.0 / self.settings.ridge);
    }

    fn move_by(&mut self, length: f64) {
        self.weights.iter_mut().zip(&self.direction).for_each(|(w, u)| *w -= length * u);
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> usize {
        (self.weights.capacity() + self.direction.capacity()) * 8 + self.inverse.size_bytes()
    }

    /// Adds weights and A⁻¹ to a file.
    pub(super) fn put(&self, file: &mut Container) -> Result<()> {
        file.put_numbers("newton_weights", &self.weights)?;
        file.put_numbers("newton_inverse", self.inverse.packed())
    }

    /// Takes them out again, of dimension `dim`.
    pub(super) fn take(file: &mut Container, settings: NewtonSettings, dim: usize) -> Result<Self> {
        let weights = file.take_numbers("newton_weights", dim)?;
        let inverse = file.take_some_numbers("newton_inverse")?;
        let Some(inverse) = GrowingSymmetric::from_packed(dim, inverse) else {
            return Err(file.malformed(format!("newton_inverse: expected the lower triangle of {dim} rows")));
        };
        Ok(Self { weights, inverse, ..Self::new(settings) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Cholesky;
    use crate::random::Generator;
    use faer::Mat;

    /// The recursion against A itself, inverted anew in every round, with the dimension growing on the way.
    #[test]
    fn the_recursion_equals_steps_with_the_inverse_of_the_whole_sum() {
        let settings = NewtonSettings { ridge: 0.7, curvature: 0.125, bound: 0.5 };
        let mut step = NewtonStep::new(settings);
        let mut rng = Generator::new(3);
        let (mut a, mut v) = (Mat::<f64>::zeros(0, 0), Mat::<f64>::zeros(0, 1));
        let mut projected = 0;
        for t in 0..200 {
            if t % 25 == 0 {
                let n = a.nrows();
                a = Mat::from_fn(n + 1, n + 1, |i, j| {
                    if i < n && j < n {
                        a[(i, j)]
                    } else if i == j {
                        settings.ridge
                    } else {
                        0.0
                    }
                });
                v = Mat::from_fn(n + 1, 1, |i, _| if i < n { v[(i, 0)] } else { 0.0 });
                step.extend(0.0);
            }
            let n = a.nrows();
            let features: Vec<f64> = (0..n).map(|_| rng.normal() * 0.6).collect();
            let phi = Mat::from_fn(n, 1, |i, _| features[i]);
            let target = (3.0 * features[0]).sin();

            let mut u = phi.clone();
            Cholesky::new(a.as_ref(), "A").unwrap().solve_in_place(u.as_mut());
            let z = (phi.transpose() * &v)[(0, 0)];
            let h = z.signum() * (z.abs() - settings.bound).max(0.0);
            projected += usize::from(h != 0.0);
            let w = &v - faer::Scale(h / (phi.transpose() * &u)[(0, 0)]) * &u;
            let output = (phi.transpose() * &w)[(0, 0)];
            let slope = 2.0 * (output - target);
            let g = faer::Scale(slope) * &phi;
            a += faer::Scale(settings.curvature) * (&g * g.transpose());
            let mut newton = g.clone();
            Cholesky::new(a.as_ref(), "A").unwrap().solve_in_place(newton.as_mut());
            v = w - newton;

            assert_eq!(step.output(&features), step.clone().project(&features));
            assert!((step.project(&features) - output).abs() < 1e-11);
            step.descend(slope);
            (0..n).for_each(|i| assert!((step.weights[i] - v[(i, 0)]).abs() < 1e-10, "round {t}"));
        }
        assert!(projected > 5, "the projection was hardly tested: {projected}");
        step.restart(3);
        assert_eq!((step.dim(), step.output(&[1.0, 2.0, 3.0])), (3, 0.0));
    }
}
