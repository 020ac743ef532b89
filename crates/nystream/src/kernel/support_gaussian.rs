//! The Gaussian kernel of one row with a set of centres, the case used most: sums, exponents and exponentials without
//! leaving the registers.
//!
//! Eight registers of a panel at a time, or four if no more of them hold centres.

use pulp::Simd;

use super::exp::{ABREAST, exp_abreast};
use super::support::Slot;
use super::transform::{Norms, Transform};
use super::vector::{LANES, Lanes};
use crate::rows::Row;

/// Registers taken together.
const WIDE: usize = 2 * ABREAST;

/// Whether the lanes of a panel are a whole number of groups of registers.
#[inline(always)]
pub(super) fn fits<S: Simd>() -> bool {
    LANES.is_multiple_of(WIDE * S::F64_LANES)
}

/// One row against all panels.
pub(super) struct AgainstPanels<'a> {
    pub(super) rate: f64,
    pub(super) x: Row<'a>,
    pub(super) panels: &'a [Lanes],
    pub(super) features: usize,
    pub(super) norms: &'a [Norms],
    pub(super) slots: &'a [Slot],
    /// One a centre, or none.
    pub(super) weights: &'a [f64],
    pub(super) out: &'a mut [f64],
}

impl AgainstPanels<'_> {
    /// Kernels into `out`; gives their sum times the weights.
    #[inline(always)]
    pub(super) fn run<S: Simd>(self, simd: S) -> f64 {
        let Self { rate, x, panels, features, norms, slots, weights, out } = self;
        let shared = match x {
            Row::Dense(point) => point.len(),
            Row::Sparse { indices, .. } if indices.last().is_none_or(|&k| (k as usize) < features) => indices.len(),
            Row::Sparse { indices, .. } => indices.partition_point(|&k| (k as usize) < features),
        };
        let row = Point { x, shared, norm: x.squared_norm(), rate };
        let width = WIDE * S::F64_LANES;
        for (g, out) in out.chunks_mut(width).enumerate() {
            let start = g * width;
            let p = start / LANES;
            let at = (start % LANES) / S::F64_LANES;
            let lanes = &panels[p * features..(p + 1) * features];
            let panel = Panel { lanes, norms: &norms[p], slots: &slots[start..], at };
            if out.len() > width / 2 {
                write::<WIDE, S>(&row.exponents::<WIDE, S>(simd, &panel, out.len()), out);
            } else {
                write::<ABREAST, S>(&row.exponents::<ABREAST, S>(simd, &panel, out.len()), out);
            }
        }
        exponentials(simd, out);
        if weights.is_empty() { 0.0 } else { dot(simd, weights, out) }
    }
}

/// A panel from register `at` on.
struct Panel<'a> {
    lanes: &'a [Lanes],
    norms: &'a Norms,
    /// From that register on.
    slots: &'a [Slot],
    at: usize,
}

impl Panel<'_> {
    #[inline(always)]
    fn registers<const N: usize, S: Simd>(&self, lanes: &Lanes) -> [S::f64s; N] {
        let registers = &S::as_simd_f64s(&lanes.0).0[self.at..self.at + N];
        std::array::from_fn(|i| registers[i])
    }
}

/// Registers that may have to stand in memory. Aligned, so that the whole frame is: else it is chance, changed by any caller,
/// whether what does not fit into registers lies across the borders of cache lines.
#[repr(align(64))]
struct Kept<T>(T);

struct Point<'a> {
    x: Row<'a>,
    /// Values in columns that the centres have; the others add nothing to the products.
    shared: usize,
    norm: f64,
    rate: f64,
}

impl Point<'_> {
    /// −rate r² of as many registers of a panel, of which `used` lanes hold centres.
    #[inline(always)]
    fn exponents<const N: usize, S: Simd>(&self, simd: S, panel: &Panel, used: usize) -> [S::f64s; N] {
        let mut kept = Kept([simd.splat_f64s(0.0); N]);
        let sums = &mut kept.0;
        let minus = simd.splat_f64s(-self.rate);
        let (indices, values) = match self.x {
            Row::Dense(point) => {
                for (lanes, value) in panel.lanes.iter().zip(point) {
                    let (value, features) = (simd.splat_f64s(*value), panel.registers::<N, S>(lanes));
                    for i in 0..N {
                        let difference = simd.sub_f64s(value, features[i]);
                        sums[i] = simd.mul_add_f64s(difference, difference, sums[i]);
                    }
                }
                return sums.map(|squared| simd.mul_f64s(squared, minus));
            }
            Row::Sparse { indices, values } => (indices, values),
        };
        for (&k, &value) in indices[..self.shared].iter().zip(values) {
            let (value, features) = (simd.splat_f64s(value), panel.registers::<N, S>(&panel.lanes[k as usize]));
            for i in 0..N {
                sums[i] = simd.mul_add_f64s(features[i], value, sums[i]);
            }
        }
        let own = panel.registers::<N, S>(&panel.norms.lanes);
        let (other, zero, minus_two) = (simd.splat_f64s(self.norm), simd.splat_f64s(0.0), simd.splat_f64s(-2.0));
        let transform = Transform::Gaussian { rate: self.rate };
        let limit = transform.trusted_from(panel.norms.largest + self.norm);
        let mut least = simd.splat_f64s(f64::INFINITY);
        for i in 0..N {
            let squared = simd.mul_add_f64s(sums[i], minus_two, simd.add_f64s(own[i], other));
            sums[i] = simd.max_f64s(squared, zero);
            least = simd.min_f64s(least, sums[i]);
        }
        let doubtful = simd.less_than_f64s(least, simd.splat_f64s(limit));
        // Where squares have overflowed the limit is infinite, and what is compared may be NaN.
        if simd.first_true_m64s(doubtful) < S::F64_LANES || limit == f64::INFINITY {
            let squared: &mut [f64] = pulp::bytemuck::cast_slice_mut(sums);
            look_again(&transform, panel, panel.at * S::F64_LANES, self, &mut squared[..used.min(N * S::F64_LANES)]);
        }
        sums.map(|squared| simd.mul_f64s(squared, minus))
    }
}

/// Takes the squared distances that norms spoil from differences.
#[cold]
#[inline(never)]
fn look_again(transform: &Transform, panel: &Panel, first: usize, point: &Point, squared: &mut [f64]) {
    let Row::Sparse { indices, values } = point.x else { return };
    for (i, squared) in squared.iter_mut().enumerate() {
        let limit = transform.trusted_from(panel.norms.lanes.0[first + i] + point.norm);
        if *squared < limit || limit == f64::INFINITY {
            *squared = panel.slots[i].squared_distance(panel.lanes, first + i, indices, values);
        }
    }
}

/// Writes the values that are used, register by register: a copy of numbers would read from memory, in wider pieces, what
/// was only just written there in narrower ones, and wait for it.
#[inline(always)]
fn write<const N: usize, S: Simd>(values: &[S::f64s; N], out: &mut [f64]) {
    let (whole, rest) = S::as_mut_simd_f64s(out);
    for i in 0..N {
        if let Some(out) = whole.get_mut(i) {
            *out = values[i];
        } else if i == whole.len() {
            let numbers: &[f64] = pulp::bytemuck::cast_slice(std::slice::from_ref(&values[i]));
            rest.iter_mut().zip(numbers).for_each(|(out, number)| *out = *number);
        }
    }
}

/// In place, in a pass of its own: beside the sums of a panel there are no registers left for it.
#[inline(always)]
fn exponentials<S: Simd>(simd: S, values: &mut [f64]) {
    let whole = values.len() - values.len() % (ABREAST * S::F64_LANES);
    let (whole, rest) = values.split_at_mut(whole);
    for group in S::as_mut_simd_f64s(whole).0.as_chunks_mut::<ABREAST>().0 {
        *group = exp_abreast(simd, *group);
    }
    if !rest.is_empty() {
        let mut last = [simd.splat_f64s(0.0); ABREAST];
        let (whole, few) = S::as_simd_f64s(&*rest);
        for i in 0..ABREAST {
            if let Some(values) = whole.get(i) {
                last[i] = *values;
            } else if i == whole.len() {
                last[i] = simd.partial_load_f64s(few);
            }
        }
        write::<ABREAST, S>(&exp_abreast(simd, last), rest);
    }
}

/// aᵀb of vectors of the same length, in a pass of its own: beside the exponentials there are no registers left for sums.
#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (S::as_simd_f64s(a), S::as_simd_f64s(b));
    let mut sums = [simd.splat_f64s(0.0); ABREAST];
    let ((a, a_last), (b, b_last)) = (a.as_chunks::<ABREAST>(), b.as_chunks::<ABREAST>());
    for (a, b) in a.iter().zip(b) {
        for i in 0..ABREAST {
            sums[i] = simd.mul_add_f64s(a[i], b[i], sums[i]);
        }
    }
    for (a, b) in a_last.iter().zip(b_last) {
        sums[0] = simd.mul_add_f64s(*a, *b, sums[0]);
    }
    let pairs = [simd.add_f64s(sums[0], sums[1]), simd.add_f64s(sums[2], sums[3])];
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    simd.reduce_sum_f64s(simd.add_f64s(pairs[0], pairs[1])) + rest
}
