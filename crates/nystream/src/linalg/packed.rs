//! Loops over packed lower triangles and one vector, four rows at a time: fused multiply-adds in wide registers, no allocation, no threads.
//!
//! Row i of a triangle is the slice i(i+1)/2 .. (i+1)(i+2)/2. The same on any number of threads; results are those of one
//! machine, not of all (fused or not).

use pulp::{Simd, WithSimd};

use super::fused::{plain_add, plain_dot};
use super::vectorised::on_narrow;

/// Rows taken together: each load of the vector serves as many sums.
const ROWS: usize = 4;

/// First number of row `i`.
pub(super) fn start(i: usize) -> usize {
    i * (i + 1) / 2
}

/// x ← L⁻¹x, the reciprocals of L's diagonal standing in its place.
pub(super) fn forward(lower: &[f64], x: &mut [f64]) {
    on_narrow(Forward { lower, x });
}

/// x ← L⁻ᵀx, the reciprocals of L's diagonal standing in its place.
pub(super) fn backward(lower: &[f64], x: &mut [f64]) {
    on_narrow(Backward { lower, x });
}

/// out = Px of the symmetric matrix P with this lower triangle.
pub(super) fn symmetric_times(lower: &[f64], x: &[f64], out: &mut [f64]) {
    on_narrow(Symmetric { lower, x, out });
}

/// P ← P − factor·uuᵀ, the lower triangle of it.
pub(super) fn subtract_outer(lower: &mut [f64], factor: f64, u: &[f64]) {
    on_narrow(Outer { lower, factor, u });
}

/// The first `i` numbers of rows `i..i + ROWS`, as vectors and what is left over.
#[inline(always)]
fn left_of<S: Simd>(lower: &[f64], i: usize) -> [(&[S::f64s], &[f64]); ROWS] {
    std::array::from_fn(|r| S::as_simd_f64s(&lower[start(i + r)..start(i + r) + i]))
}

/// Inner products of the first `i` numbers of rows `i..i + ROWS` with `x`.
#[inline(always)]
fn products<S: Simd>(simd: S, lower: &[f64], i: usize, x: &[f64]) -> [f64; ROWS] {
    let parts = left_of::<S>(lower, i);
    let (vectors, rest) = S::as_simd_f64s(x);
    let heads = parts.map(|(head, _)| &head[..vectors.len()]);
    let mut sums = [simd.splat_f64s(0.0); ROWS];
    for (c, v) in vectors.iter().enumerate() {
        for r in 0..ROWS {
            sums[r] = simd.mul_add_e_f64s(heads[r][c], *v, sums[r]);
        }
    }
    std::array::from_fn(|r| simd.reduce_sum_f64s(sums[r]) + plain_dot(parts[r].1, rest))
}

/// Adds `factors[r]` times the first `i` numbers of rows `i + r` to `out`.
#[inline(always)]
fn add_rows<S: Simd>(simd: S, lower: &[f64], i: usize, factors: [f64; ROWS], out: &mut [f64]) {
    let parts = left_of::<S>(lower, i);
    let (vectors, rest) = S::as_mut_simd_f64s(out);
    let heads = parts.map(|(head, _)| &head[..vectors.len()]);
    let spread = factors.map(|factor| simd.splat_f64s(factor));
    for (c, v) in vectors.iter_mut().enumerate() {
        for r in 0..ROWS {
            *v = simd.mul_add_e_f64s(heads[r][c], spread[r], *v);
        }
    }
    for r in 0..ROWS {
        plain_add(rest, factors[r], parts[r].1);
    }
}

struct Forward<'a> {
    lower: &'a [f64],
    x: &'a mut [f64],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { lower, x } = self;
        let mut i = 0;
        while i < x.len() {
            let group = ROWS.min(x.len() - i);
            let (known, open) = x.split_at_mut(i);
            if group == ROWS {
                let sums = products(simd, lower, i, known);
                (0..ROWS).for_each(|r| open[r] -= sums[r]);
            } else {
                (0..group).for_each(|r| open[r] -= plain_dot(&lower[start(i + r)..][..i], known));
            }
            for r in 0..group {
                let row = &lower[start(i + r) + i..][..=r];
                open[r] = (open[r] - plain_dot(&row[..r], &open[..r])) * row[r];
            }
            i += group;
        }
    }
}

struct Backward<'a> {
    lower: &'a [f64],
    x: &'a mut [f64],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { lower, x } = self;
        let mut end = x.len();
        while end > 0 {
            // The groups of `forward`, from the last one, which may be short.
            let group = if end % ROWS == 0 { ROWS } else { end % ROWS };
            let i = end - group;
            let (open, known) = x[..end].split_at_mut(i);
            for r in (0..group).rev() {
                let row = &lower[start(i + r) + i..][..=r];
                known[r] *= row[r];
                let (earlier, value) = (&row[..r], known[r]);
                plain_add(&mut known[..r], -value, earlier);
            }
            if group == ROWS {
                add_rows(simd, lower, i, std::array::from_fn(|r| -known[r]), open);
            } else {
                (0..group).for_each(|r| plain_add(open, -known[r], &lower[start(i + r)..][..i]));
            }
            end = i;
        }
    }
}

struct Symmetric<'a> {
    lower: &'a [f64],
    x: &'a [f64],
    out: &'a mut [f64],
}

impl WithSimd for Symmetric<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { lower, x, out } = self;
        out.fill(0.0);
        let mut i = 0;
        while i < x.len() {
            // Left of the diagonal block every number serves its row and its column.
            let group = ROWS.min(x.len() - i);
            let (before, after) = out.split_at_mut(i);
            if group == ROWS {
                let sums = products(simd, lower, i, &x[..i]);
                after[..ROWS].copy_from_slice(&sums);
                add_rows(simd, lower, i, std::array::from_fn(|r| x[i + r]), before);
            } else {
                for r in 0..group {
                    let row = &lower[start(i + r)..][..i];
                    after[r] = plain_dot(row, &x[..i]);
                    plain_add(before, x[i + r], row);
                }
            }
            for r in 0..group {
                let row = &lower[start(i + r) + i..][..=r];
                after[r] += plain_dot(row, &x[i..=i + r]);
                plain_add(&mut after[..r], x[i + r], &row[..r]);
            }
            i += group;
        }
    }
}

struct Outer<'a> {
    lower: &'a mut [f64],
    factor: f64,
    u: &'a [f64],
}

impl WithSimd for Outer<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { lower, factor, u } = self;
        let mut rest = lower;
        for i in 0..u.len() {
            let (row, below) = rest.split_at_mut(i + 1);
            rest = below;
            let scaled = -factor * u[i];
            let spread = simd.splat_f64s(scaled);
            let (row, row_rest) = S::as_mut_simd_f64s(row);
            let (vectors, vectors_rest) = S::as_simd_f64s(&u[..=i]);
            for (p, v) in row.iter_mut().zip(vectors) {
                *p = simd.mul_add_e_f64s(spread, *v, *p);
            }
            plain_add(row_rest, scaled, vectors_rest);
        }
    }
}
