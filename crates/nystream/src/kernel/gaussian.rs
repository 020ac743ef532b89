//! The Gaussian kernel in few columns, the case used most: distances and exponentials without leaving the registers.
//!
//! Two registers of rows against four centres at a time: every feature that is loaded serves four sums, and eight
//! sums are enough to hide the latency of their additions. The numbers are those of the general path, bit for bit.

use faer::reborrow::ReborrowMut;
use pulp::Simd;

use super::dense::Columns;
use super::exp::{ABREAST, exp_abreast};
use super::vector::{LANES, Lanes};
use crate::rows::DenseRows;

/// Registers of rows taken together.
const ROWS: usize = 2;
/// Centres taken together.
const POINTS: usize = 4;
/// Centres whose exponentials are taken together.
const SHARE: usize = ABREAST / ROWS;

/// Whether the lanes of a panel are a whole number of groups of registers.
#[inline(always)]
pub(super) fn fits<S: Simd>() -> bool {
    LANES.is_multiple_of(ROWS * S::F64_LANES)
}

/// Kernels of rows, given as panels of 32, with all points.
#[inline(always)]
pub(super) fn columns<S: Simd>(simd: S, rate: f64, panels: &[Lanes], points: DenseRows, mut out: Columns) {
    let cols = points.cols();
    let width = ROWS * S::F64_LANES;
    for j in (0..points.len()).step_by(POINTS) {
        // Past the end the last centre is taken again; its values are written again, the same.
        let numbers: [usize; POINTS] = std::array::from_fn(|c| (j + c).min(points.len() - 1));
        let group = numbers.map(|number| &points.row(number)[..cols]);
        for p in 0..out.nrows().div_ceil(LANES) {
            let panel = &panels[p * cols..(p + 1) * cols];
            for g in 0..LANES / width {
                let start = p * LANES + g * width;
                if start >= out.nrows() {
                    break;
                }
                let end = out.nrows().min(start + width);
                let sums = squared_distances(simd, panel, g, group);
                for share in 0..POINTS / SHARE {
                    let rate = simd.splat_f64s(-rate);
                    let exponents =
                        std::array::from_fn(|i| simd.mul_f64s(sums[share * SHARE + i / ROWS][i % ROWS], rate));
                    let values = exp_abreast(simd, exponents);
                    for (values, number) in values.as_chunks::<ROWS>().0.iter().zip(&numbers[share * SHARE..]) {
                        write::<S>(values, &mut out.rb_mut().col_mut(*number).as_slice_mut()[start..end]);
                    }
                }
            }
        }
    }
}

/// Of one group of registers of the panel to each of the points.
#[inline(always)]
fn squared_distances<S: Simd>(
    simd: S,
    panel: &[Lanes],
    g: usize,
    points: [&[f64]; POINTS],
) -> [[S::f64s; ROWS]; POINTS] {
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

/// Writes the values that are used.
#[inline(always)]
fn write<S: Simd>(values: &[S::f64s; ROWS], out: &mut [f64]) {
    if out.len() == ROWS * S::F64_LANES {
        S::as_mut_simd_f64s(out).0.copy_from_slice(values);
    } else {
        let values: &[f64] = pulp::bytemuck::cast_slice(values);
        out.copy_from_slice(&values[..out.len()]);
    }
}
