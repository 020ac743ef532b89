//! The Gaussian kernel in few columns, the case used most: distances and exponentials without leaving the registers.
//!
//! Two registers of rows against four centres at a time: every feature that is loaded serves four sums, and eight
//! sums are enough to hide the latency of their additions. Exponents come from norms and inner products, one
//! operation a feature where differences take two; those that this would spoil (points far from the origin, or close
//! to each other) are taken from differences. Which way a value comes about depends on its own two points
//! alone, so its bits do not depend on its neighbours.

use faer::reborrow::ReborrowMut;
use pulp::Simd;

use super::dense::Columns;
use super::exp::{ABREAST, exp_abreast};
use super::transform::{ACCEPTED, NEAR_ZERO, Norms};
use super::vector::{LANES, Lanes};
use crate::rows::DenseRows;

/// Registers of rows taken together.
pub(super) const ROWS: usize = 2;
/// Centres taken together.
const POINTS: usize = 4;
/// Centres whose exponentials are taken together.
const SHARE: usize = ABREAST / ROWS;

/// Whether the lanes of a panel are a whole number of groups of registers.
#[inline(always)]
pub(super) fn fits<S: Simd>() -> bool {
    LANES.is_multiple_of(ROWS * S::F64_LANES)
}

/// Rows as panels of 32, feature by feature, with their squared norms.
pub(super) struct Panels<'a> {
    pub(super) features: &'a [Lanes],
    pub(super) norms: &'a [Norms],
}

/// Where kernels go.
pub(super) trait Target {
    /// How many rows there are.
    fn rows(&self) -> usize;

    /// Takes the kernels of up to 2 registers of rows, from row `start` on, with a point. Those past the last row mean nothing.
    fn write<S: Simd>(&mut self, start: usize, point: usize, values: &[S::f64s; ROWS]);
}

impl Target for Columns<'_> {
    #[inline(always)]
    fn rows(&self) -> usize {
        self.nrows()
    }

    #[inline(always)]
    fn write<S: Simd>(&mut self, start: usize, point: usize, values: &[S::f64s; ROWS]) {
        let end = self.nrows().min(start + ROWS * S::F64_LANES);
        let out = &mut self.rb_mut().col_mut(point).as_slice_mut()[start..end];
        if out.len() == ROWS * S::F64_LANES {
            S::as_mut_simd_f64s(out).0.copy_from_slice(values);
        } else {
            let values: &[f64] = pulp::bytemuck::cast_slice(values);
            out.copy_from_slice(&values[..out.len()]);
        }
    }
}

/// Kernels of rows with all points, whose squared norms are `norms`, 32 at a time.
#[inline(always)]
pub(super) fn columns<S: Simd>(
    simd: S,
    rate: f64,
    rows: Panels,
    points: DenseRows,
    norms: &[Norms],
    mut out: impl Target,
) {
    let cols = points.cols();
    let width = ROWS * S::F64_LANES;
    let count = out.rows();
    for j in (0..points.len()).step_by(POINTS) {
        // Past the end the last centre is taken again; its values are written again, the same.
        let numbers: [usize; POINTS] = std::array::from_fn(|c| (j + c).min(points.len() - 1));
        let group = Points {
            rows: numbers.map(|number| &points.row(number)[..cols]),
            norms: numbers.map(|number| norms[number / LANES].lanes.0[number % LANES]),
        };
        for p in 0..count.div_ceil(LANES) {
            let panel = &rows.features[p * cols..(p + 1) * cols];
            for g in 0..LANES / width {
                let start = p * LANES + g * width;
                if start >= count {
                    break;
                }
                let exponents = exponents(simd, rate, panel, &rows.norms[p], g, &group);
                for share in 0..POINTS / SHARE {
                    let these = std::array::from_fn(|i| exponents[share * SHARE + i / ROWS][i % ROWS]);
                    let values = exp_abreast(simd, these);
                    for (values, number) in values.as_chunks::<ROWS>().0.iter().zip(&numbers[share * SHARE..]) {
                        out.write::<S>(start, *number, values);
                    }
                }
            }
        }
    }
}

/// Centres taken together, with their squared norms.
struct Points<'a> {
    rows: [&'a [f64]; POINTS],
    norms: [f64; POINTS],
}

type Sums<S> = [[<S as Simd>::f64s; ROWS]; POINTS];

/// −rate r² of one group of registers of the panel with each of the points.
#[inline(always)]
fn exponents<S: Simd>(simd: S, rate: f64, panel: &[Lanes], norms: &Norms, g: usize, points: &Points) -> Sums<S> {
    let mut out = products(simd, panel, g, points.rows);
    let own = &S::as_simd_f64s(&norms.lanes.0).0.as_chunks::<ROWS>().0[g];
    let (minus, twice) = (simd.splat_f64s(-rate), simd.splat_f64s(2.0 * rate));
    let zero = simd.splat_f64s(0.0);
    let mut largest = [simd.splat_f64s(f64::NEG_INFINITY); ROWS];
    for c in 0..POINTS {
        let other = simd.splat_f64s(points.norms[c]);
        for i in 0..ROWS {
            let sum = simd.mul_f64s(simd.add_f64s(own[i], other), minus);
            out[c][i] = simd.min_f64s(simd.mul_add_f64s(out[c][i], twice, sum), zero);
            largest[i] = simd.max_f64s(largest[i], out[c][i]);
        }
    }
    let near = simd.greater_than_f64s(simd.max_f64s(largest[0], largest[1]), simd.splat_f64s(-NEAR_ZERO));
    let farthest = points.norms.iter().fold(norms.largest, |sum, norm| sum.max(norms.largest + norm));
    if simd.first_true_m64s(near) < S::F64_LANES || farthest * rate * f64::EPSILON > ACCEPTED {
        look_again(simd, rate, panel, norms, g, points, &mut out);
    }
    out
}

/// Takes the exponents that norms spoil from differences.
#[cold]
#[inline(always)]
fn look_again<S: Simd>(
    simd: S,
    rate: f64,
    panel: &[Lanes],
    norms: &Norms,
    g: usize,
    points: &Points,
    out: &mut Sums<S>,
) {
    let squared = squared_distances(simd, panel, g, points.rows);
    let own = &S::as_simd_f64s(&norms.lanes.0).0.as_chunks::<ROWS>().0[g];
    let trusted = simd.splat_f64s(ACCEPTED / f64::EPSILON / rate);
    for c in 0..POINTS {
        let other = simd.splat_f64s(points.norms[c]);
        for i in 0..ROWS {
            let exact = simd.mul_f64s(squared[c][i], simd.splat_f64s(-rate));
            // Kept only if both comparisons say so: NaN says no.
            let close = simd.less_than_or_equal_f64s(simd.add_f64s(own[i], other), trusted);
            let apart = simd.less_than_or_equal_f64s(out[c][i], simd.splat_f64s(-NEAR_ZERO));
            out[c][i] = simd.select_f64s(close, simd.select_f64s(apart, out[c][i], exact), exact);
        }
    }
}

/// Inner products of one group of registers of the panel with each of the points.
#[inline(always)]
fn products<S: Simd>(simd: S, panel: &[Lanes], g: usize, points: [&[f64]; POINTS]) -> Sums<S> {
    let mut sums = [[simd.splat_f64s(0.0); ROWS]; POINTS];
    // Of the same length, as the compiler then knows.
    let points = points.map(|point| &point[..panel.len()]);
    for (k, lanes) in panel.iter().enumerate() {
        let features = &S::as_simd_f64s(&lanes.0).0.as_chunks::<ROWS>().0[g];
        for c in 0..POINTS {
            let value = simd.splat_f64s(points[c][k]);
            for i in 0..ROWS {
                sums[c][i] = simd.mul_add_f64s(features[i], value, sums[c][i]);
            }
        }
    }
    sums
}

/// Squared distances of one group of registers of the panel to each of the points.
#[inline(always)]
fn squared_distances<S: Simd>(simd: S, panel: &[Lanes], g: usize, points: [&[f64]; POINTS]) -> Sums<S> {
    let mut sums = [[simd.splat_f64s(0.0); ROWS]; POINTS];
    // Of the same length, as the compiler then knows.
    let points = points.map(|point| &point[..panel.len()]);
    for (k, lanes) in panel.iter().enumerate() {
        let features = &S::as_simd_f64s(&lanes.0).0.as_chunks::<ROWS>().0[g];
        for c in 0..POINTS {
            let value = simd.splat_f64s(points[c][k]);
            for i in 0..ROWS {
                let difference = simd.sub_f64s(value, features[i]);
                sums[c][i] = simd.mul_add_f64s(difference, difference, sums[c][i]);
            }
        }
    }
    sums
}
