//! Projections onto the span of the rows kept: what Projectron and Projectron++ share.
//!
//! F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", JMLR 10, 2009, section on computing the
//! projection: d* = K⁻¹ k_t, ‖δ_t‖² = k(x_t, x_t) − k_tᵀ d*.
//!
//! Departures from the paper: it borders K⁻¹ itself when a row is added, which loses all digits when the rows are nearly
//! dependent (wide bandwidths). Here the inverse of the Cholesky factor is bordered, K⁻¹ = L⁻ᵀL⁻¹, with coefficients that are
//! corrected once by what K says of them (Gram and Schmidt, twice). A projection costs the same.

use super::expansion::Expansion;
use super::settings::LearnerSettings;
use super::square::Square;
use super::state::State;
use crate::error::Result;
use crate::linalg::{TiledTriangle, add_scaled, dot, times};
use crate::persist::Container;
use crate::rows::Row;

/// Squared distances from the span below this share of k(x, x) are rounding: such a row is in the span.
const DEPENDENT: f64 = 1e-8;

/// A function, and what it takes to project onto the span of its rows.
#[derive(Debug)]
pub(super) struct Span {
    pub function: Expansion,
    budget: usize,
    /// L⁻¹
    factor: TiledTriangle,
    /// K
    matrix: Square,
    /// d*
    projection: Vec<f64>,
    scratch: Vec<f64>,
}

/// Where a row lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Projected {
    /// k(x, x)
    diagonal: f64,
    /// ‖δ‖², its squared distance from the span; at least 0.
    pub squared_distance: f64,
    /// ‖P k(x, ·)‖²
    pub squared_norm: f64,
}

impl Span {
    pub fn new(settings: &LearnerSettings, function: Expansion) -> Self {
        let numbers = vec![0.0; function.len()];
        Self {
            budget: settings.budget,
            factor: TiledTriangle::default(),
            matrix: Square::default(),
            projection: numbers.clone(),
            scratch: numbers,
            function,
        }
    }

    /// Projects the row that `function.output` was asked for last.
    pub fn project(&mut self, row: Row) -> Projected {
        let diagonal = self.function.support.kernel().diagonal(row);
        let squared_norm = self.factor.twice(&self.function.kernels, &mut self.projection);
        Projected { diagonal, squared_norm, squared_distance: clear(diagonal - squared_norm, diagonal) }
    }

    /// f += coefficient · P k(x, ·), of the row projected last.
    pub fn add_projection(&mut self, coefficient: f64) {
        add_scaled(&mut self.function.coefficients, coefficient, &self.projection);
    }

    /// The perceptron's step f += target · k(x, ·), of the row projected last: projected if that loses no more than `error` or
    /// there is no place for another row; else the row is kept.
    pub fn step(&mut self, row: Row, target: f64, projected: Projected, error: f64) {
        let near = |squared: f64| squared <= error * error;
        if near(projected.squared_distance) || self.function.len() >= self.budget {
            return self.add_projection(target);
        }
        let squared = self.correct(projected);
        if near(squared) {
            return self.add_projection(target);
        }
        // L⁻¹ gets the row (−d*, 1)/‖δ‖, K the row of kernels.
        let place = self.function.len();
        self.function.push(row, target);
        self.function.kernels[place] = projected.diagonal;
        self.matrix.grow();
        self.matrix.row_mut(place).copy_from_slice(&self.function.kernels);
        self.matrix.set_column(place, &self.function.kernels);
        self.projection.push(-1.0);
        self.scratch.push(0.0);
        let share = -1.0 / squared.sqrt();
        let row: Vec<f64> = self.projection.iter().map(|d| share * d).collect();
        self.factor.push(&row);
    }

    /// Adds to d* what is missing, K⁻¹(k − K d*), and returns ‖δ‖² = k(x, x) − 2 d*ᵀk + d*ᵀK d*.
    fn correct(&mut self, projected: Projected) -> f64 {
        let (matrix, stride) = self.matrix.parts();
        let mut missing = vec![0.0; self.projection.len()];
        times(matrix, stride, &self.projection, &mut missing);
        missing.iter_mut().zip(&self.function.kernels).for_each(|(m, k)| *m = k - *m);
        self.factor.twice(&missing, &mut self.scratch);
        add_scaled(&mut self.projection, 1.0, &self.scratch);
        times(matrix, stride, &self.projection, &mut self.scratch);
        let cross = dot(&self.projection, &self.function.kernels);
        clear(projected.diagonal - 2.0 * cross + dot(&self.projection, &self.scratch), projected.diagonal)
    }

    pub fn size_bytes(&self) -> usize {
        let scratch = (self.projection.capacity() + self.scratch.capacity()) * 8;
        self.function.size_bytes() + self.factor.size_bytes() + self.matrix.size_bytes() + scratch
    }

    pub fn put(&self, file: &mut Container) -> Result<()> {
        self.function.put(file)?;
        let factor: Vec<f64> = (0..self.function.len()).flat_map(|i| self.factor.row(i)).collect();
        file.put_numbers("factor", &factor)?;
        self.matrix.put(file, "matrix")
    }

    pub fn take(file: &mut Container, settings: &LearnerSettings) -> Result<Self> {
        let mut span = Self::new(settings, Expansion::take(file, settings)?);
        let len = span.function.len();
        let factor = file.take_numbers("factor", len.saturating_mul(len))?;
        (0..len).for_each(|i| span.factor.push(&factor[i * len..i * len + i + 1]));
        span.matrix = Square::take(file, "matrix", len)?;
        Ok(span)
    }
}

/// A squared distance, or 0 if it is rounding.
fn clear(squared: f64, diagonal: f64) -> f64 {
    if squared > DEPENDENT * diagonal { squared } else { 0.0 }
}
