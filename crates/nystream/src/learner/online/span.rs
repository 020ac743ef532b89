//! Projections onto the span of the rows kept: what Projectron and Projectron++ share.
//!
//! F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", JMLR 10, 2009, section on computing the
//! projection: d* = K⁻¹ k_t, ‖δ_t‖² = k(x_t, x_t) − k_tᵀ d*, and K⁻¹ bordered when a row is added.

use super::expansion::Expansion;
use super::settings::LearnerSettings;
use super::square::Square;
use crate::error::Result;
use crate::linalg::{add_scaled, dot, symmetric_times};
use crate::persist::Container;
use crate::rows::Row;

/// Squared distances from the span below this share of k(x, x) are rounding: such a row is in the span.
const DEPENDENT: f64 = 1e-8;

/// A function and the inverse of its rows' kernel matrix.
#[derive(Debug)]
pub(super) struct Span {
    pub function: Expansion,
    budget: usize,
    /// K⁻¹, its lower triangle.
    inverse: Square,
    /// d*
    projection: Vec<f64>,
}

/// Where a row lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Projected {
    /// ‖δ‖², its squared distance from the span; at least 0.
    pub squared_distance: f64,
    /// ‖P k(x, ·)‖²
    pub squared_norm: f64,
}

impl Span {
    pub fn new(settings: &LearnerSettings, function: Expansion) -> Self {
        let projection = vec![0.0; function.len()];
        Self { function, budget: settings.budget, inverse: Square::default(), projection }
    }

    /// Projects the row that `function.output` was asked for last.
    pub fn project(&mut self, row: Row) -> Projected {
        let diagonal = self.function.support.kernel().diagonal(row);
        let (inverse, stride) = self.inverse.parts();
        symmetric_times(inverse, stride, &self.function.kernels, &mut self.projection);
        let squared_norm = dot(&self.function.kernels, &self.projection).clamp(0.0, diagonal.max(0.0));
        let distance = diagonal - squared_norm;
        let squared_distance = if distance > DEPENDENT * diagonal { distance } else { 0.0 };
        Projected { squared_distance, squared_norm }
    }

    /// Whether the row has to be projected: it is within `error` of the span, or there is no place for another.
    pub fn absorbs(&self, projected: Projected, error: f64) -> bool {
        projected.squared_distance <= error * error || self.function.len() >= self.budget
    }

    /// f += coefficient · P k(x, ·), of the row projected last.
    pub fn add_projection(&mut self, coefficient: f64) {
        add_scaled(&mut self.function.coefficients, coefficient, &self.projection);
    }

    /// f += coefficient · k(x, ·), of the row projected last, which is kept.
    pub fn add_row(&mut self, row: Row, coefficient: f64, projected: Projected) {
        let n = self.function.len();
        self.function.push(row, coefficient);
        self.inverse.grow();
        self.projection.push(-1.0);
        // K⁻¹ ← [K⁻¹ 0; 0 0] + (d*, −1)(d*, −1)ᵀ / ‖δ‖².
        let share = 1.0 / projected.squared_distance;
        for i in 0..=n {
            let factor = share * self.projection[i];
            add_scaled(&mut self.inverse.row_mut(i)[..=i], factor, &self.projection[..=i]);
        }
    }

    pub fn size_bytes(&self) -> usize {
        self.function.size_bytes() + self.inverse.size_bytes() + self.projection.capacity() * 8
    }

    pub fn put(&self, file: &mut Container) -> Result<()> {
        self.function.put(file)?;
        self.inverse.put(file, "inverse")
    }

    pub fn take(file: &mut Container, settings: &LearnerSettings) -> Result<Self> {
        let mut span = Self::new(settings, Expansion::take(file, settings)?);
        span.inverse = Square::take(file, "inverse", span.function.len())?;
        Ok(span)
    }
}
