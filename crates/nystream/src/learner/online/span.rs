//! Projections onto the span of the rows kept: what Projectron and Projectron++ share.
//!
//! F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", JMLR 10, 2009, section on computing the
//! projection: d* = K⁻¹ k_t, ‖δ_t‖² = k(x_t, x_t) − k_tᵀ d*.
//!
//! Departures from the paper: it borders K⁻¹ itself when a row is added, which loses all digits when the rows are nearly
//! dependent (wide bandwidths). Here the inverse of the Cholesky factor is bordered, K⁻¹ = L⁻ᵀL⁻¹, with coefficients that are
//! corrected once by what K says of them (Gram and Schmidt, twice). A projection costs the same.
//!
//! How far a row is from the span takes the first of the two products with L⁻¹ and L⁻ᵀ, and sometimes none: K has no
//! eigenvalue below the smallest K_ii − Σ_j≠i |K_ij| (Gershgorin), so that k_tᵀ K⁻¹ k_t is at most ‖k_t‖² over that; and once
//! there is no place for another row, K⁻¹ itself gives a bound from few of the kernels ([`SpanBound`]).

use super::expansion::Expansion;
use super::settings::LearnerSettings;
use super::span_bound::SpanBound;
use super::square::Square;
use super::state::State;
use crate::error::Result;
use crate::linalg::{TiledTriangle, add_scaled, dot, times};
use crate::persist::Container;
use crate::rows::Row;

/// Squared distances from the span below this share of k(x, x) are rounding: such a row is in the span.
const DEPENDENT: f64 = 1e-8;

/// What Gershgorin's discs leave must be at least this share of k(x, x), so that rounding cannot matter, ...
const LEAST_GAP: f64 = 0.01;
/// ... and bounds must hold by this share of k(x, x).
const SLACK: f64 = 1e-9;

/// A function, and what it takes to project onto the span of its rows.
#[derive(Debug)]
pub(super) struct Span {
    pub function: Expansion,
    budget: usize,
    /// L⁻¹
    factor: TiledTriangle,
    /// K
    matrix: Square,
    /// K_ii − Σ_j≠i |K_ij|, and the smallest of them.
    gaps: Vec<f64>,
    gap: f64,
    /// d*
    projection: Vec<f64>,
    scratch: Vec<f64>,
    /// Made when it is first asked for and all places are taken.
    bound: Option<SpanBound>,
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
            gaps: Vec::new(),
            gap: f64::INFINITY,
            projection: numbers.clone(),
            scratch: numbers,
            bound: None,
            function,
        }
    }

    /// Projects the row that `function.output` was asked for last.
    pub fn project(&mut self, row: Row) -> Projected {
        let squared_norm = self.factor.twice(&self.function.kernels, &mut self.projection);
        self.projected(row, squared_norm)
    }

    /// The same, but for the projection itself: [`finish`](Self::finish) computes that.
    pub fn measure(&mut self, row: Row) -> Projected {
        let squared_norm = self.factor.first(&self.function.kernels);
        self.projected(row, squared_norm)
    }

    /// The projection of the row measured last.
    pub fn finish(&mut self) {
        self.factor.second(&mut self.projection);
    }

    fn projected(&self, row: Row, squared_norm: f64) -> Projected {
        let diagonal = self.function.support.kernel().diagonal(row);
        Projected { diagonal, squared_norm, squared_distance: clear(diagonal - squared_norm, diagonal) }
    }

    /// Whether the row that `function.output` was asked for last is seen without a projection to be at least as far from the
    /// span as the square root of `squared`; if not, it may be as far all the same.
    pub fn is_beyond(&self, row: Row, squared: f64) -> bool {
        let diagonal = self.function.support.kernel().diagonal(row);
        if self.gap < LEAST_GAP * diagonal {
            return false;
        }
        let kernels = &self.function.kernels;
        let left = (1.0 - SLACK) * diagonal - dot(kernels, kernels) / self.gap;
        left > squared && clear(left, diagonal) > 0.0
    }

    /// The same from the large kernels, once there is no place for another row: more work, and more often seen.
    #[inline(never)]
    pub fn is_beyond_by_large(&mut self, row: Row, squared: f64) -> bool {
        self.prepare_bound();
        let Some(bound) = &mut self.bound else { return false };
        let diagonal = self.function.support.kernel().diagonal(row);
        let Some(most) = bound.most(&self.function.kernels, diagonal) else { return false };
        let left = (1.0 - SLACK) * diagonal - most;
        left > squared && clear(left, diagonal) > 0.0
    }

    /// Makes what [`is_beyond_by_large`](Self::is_beyond_by_large) needs, if it is time to and not done: O(B³).
    pub fn prepare_bound(&mut self) {
        if self.bound.is_none() && self.function.len() >= self.budget {
            self.bound = Some(SpanBound::new(&self.factor, self.function.len()));
        }
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
        self.narrow_gaps();
        self.projection.push(-1.0);
        self.scratch.push(0.0);
        let share = -1.0 / squared.sqrt();
        let row: Vec<f64> = self.projection.iter().map(|d| share * d).collect();
        self.factor.push(&row);
    }

    /// Takes the next row of K into account.
    fn narrow_gaps(&mut self) {
        let place = self.gaps.len();
        let (others, own) = (&self.matrix.row(place)[..place], self.matrix.row(place)[place]);
        self.gaps.iter_mut().zip(others).for_each(|(gap, value)| *gap -= value.abs());
        self.gaps.push(own - others.iter().map(|value| value.abs()).sum::<f64>());
        self.gap = self.gaps.iter().copied().fold(f64::INFINITY, f64::min);
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
        let scratch = (self.projection.capacity() + self.scratch.capacity() + self.gaps.capacity()) * 8;
        let bound = self.bound.as_ref().map_or(0, SpanBound::size_bytes);
        self.function.size_bytes() + self.factor.size_bytes() + self.matrix.size_bytes() + scratch + bound
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
        (0..len).for_each(|_| span.narrow_gaps());
        Ok(span)
    }
}

/// A squared distance, or 0 if it is rounding.
fn clear(squared: f64, diagonal: f64) -> f64 {
    if squared > DEPENDENT * diagonal { squared } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::learner::online::Targets;
    use crate::random::Generator;

    #[test]
    fn rows_seen_to_be_far_are_far_and_halves_make_the_projection() {
        let mut rng = Generator::new(5);
        let (mut seen, mut seen_by_large) = (0, 0);
        for bandwidth in [0.3, 0.6, 3.0] {
            let mut settings = LearnerSettings::new(Kernel::gaussian(bandwidth).unwrap(), 3, Targets::Classes);
            settings.budget = 30;
            let mut span = Span::new(&settings, Expansion::new(&settings));
            for _ in 0..300 {
                let x: Vec<f64> = (0..3).map(|_| rng.normal()).collect();
                let row = Row::Dense(&x);
                span.function.output(row);
                let measured = span.measure(row);
                span.finish();
                let halves = span.projection.clone();
                let projected = span.project(row);
                assert_eq!((halves, measured.squared_norm), (span.projection.clone(), projected.squared_norm));
                for squared in [0.0, 0.2, 0.5, 0.9] {
                    let beyond = span.is_beyond(row, squared);
                    assert!(!beyond || projected.squared_distance >= squared, "{bandwidth}");
                    seen += usize::from(beyond);
                    let beyond = span.is_beyond_by_large(row, squared);
                    assert!(!beyond || projected.squared_distance >= squared, "{bandwidth}");
                    seen_by_large += usize::from(beyond);
                }
                span.step(row, 1.0, projected, 0.7);
            }
            let gap = |i: usize| {
                let row = span.matrix.row(i);
                2.0 * row[i] - row.iter().map(|value| value.abs()).sum::<f64>()
            };
            let gaps = (0..span.function.len()).map(gap).fold(f64::INFINITY, f64::min);
            assert!((span.gap - gaps).abs() < 1e-13, "{} {gaps}", span.gap);
        }
        assert!(seen > 0 && seen_by_large > 0);
    }
}
