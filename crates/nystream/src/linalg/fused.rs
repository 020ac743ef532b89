//! Products of small matrices with one vector, for loops that run once a row: fused multiply-adds in the widest registers
//! the processor has, no allocation, no threads.
//!
//! The same on any number of threads; results are those of one machine, not of all (fused or not).

use pulp::{Simd, WithSimd};

use super::vectorised::on_narrow;

/// Rows taken together: each load of the vector serves as many sums.
const ROWS: usize = 4;
/// Registers of sums that stay where they are, over all rows.
const NARROW: usize = 8;

/// out = M x, M row-major with `stride` numbers from one row to the next.
pub(crate) fn times(matrix: &[f64], stride: usize, x: &[f64], out: &mut [f64]) {
    on_narrow(Times { matrix, stride, x, out });
}

/// out += factor Mᵀ z, M row-major with `stride` numbers from one row to the next.
pub(crate) fn add_transposed_times(matrix: &[f64], stride: usize, z: &[f64], factor: f64, out: &mut [f64]) {
    on_narrow(Transposed { matrix, stride, z, factor, out });
}

/// out += factor MᵀM x, M row-major with `stride` numbers from one row to the next, in one reading of M.
pub(crate) fn add_gram_times(matrix: &[f64], stride: usize, x: &[f64], factor: f64, out: &mut [f64]) {
    on_narrow(GramTimes { matrix, stride, x, factor, out });
}

/// out += factor M x, M symmetric and row-major with `stride` numbers from one row to the next, those past the last column 0.
pub(crate) fn add_symmetric_times(matrix: &[f64], stride: usize, x: &[f64], factor: f64, out: &mut [f64]) {
    on_narrow(SymmetricTimes { matrix, stride, x, factor, out });
}

/// out += factor x.
pub(crate) fn add_scaled(out: &mut [f64], factor: f64, x: &[f64]) {
    add_transposed_times(x, x.len(), &[1.0], factor, out);
}

struct Times<'a> {
    matrix: &'a [f64],
    stride: usize,
    x: &'a [f64],
    out: &'a mut [f64],
}

impl WithSimd for Times<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { matrix, stride, x, out } = self;
        let width = x.len();
        let (vectors, rest) = S::as_simd_f64s(x);
        let row = |i: usize| &matrix[i * stride..i * stride + width];
        let (groups, last) = out.as_chunks_mut::<ROWS>();
        let (pairs, odd) = vectors.as_chunks::<2>();
        for (g, out) in groups.iter_mut().enumerate() {
            let parts: [(&[S::f64s], &[f64]); ROWS] = std::array::from_fn(|r| S::as_simd_f64s(row(g * ROWS + r)));
            let heads = parts.map(|(head, _)| head.as_chunks::<2>());
            // Two sums a row: one alone would wait for itself. Walked together, the rows share one index.
            let mut sums = [[simd.splat_f64s(0.0); 2]; ROWS];
            let rows = heads[0].0.iter().zip(heads[1].0).zip(heads[2].0).zip(heads[3].0);
            for (v, (((a, b), c), d)) in pairs.iter().zip(rows) {
                for (sums, part) in sums.iter_mut().zip([a, b, c, d]) {
                    sums[0] = simd.mul_add_e_f64s(part[0], v[0], sums[0]);
                    sums[1] = simd.mul_add_e_f64s(part[1], v[1], sums[1]);
                }
            }
            for r in 0..ROWS {
                if let ([a], [v]) = (heads[r].1, odd) {
                    sums[r][0] = simd.mul_add_e_f64s(*a, *v, sums[r][0]);
                }
                let sum = simd.add_f64s(sums[r][0], sums[r][1]);
                out[r] = simd.reduce_sum_f64s(sum) + plain_dot(parts[r].1, rest);
            }
        }
        let done = groups.len() * ROWS;
        for (i, out) in last.iter_mut().enumerate() {
            let (head, tail) = S::as_simd_f64s(row(done + i));
            let mut sum = simd.splat_f64s(0.0);
            for (a, v) in head.iter().zip(vectors) {
                sum = simd.mul_add_e_f64s(*a, *v, sum);
            }
            *out = simd.reduce_sum_f64s(sum) + plain_dot(tail, rest);
        }
    }
}

struct Transposed<'a> {
    matrix: &'a [f64],
    stride: usize,
    z: &'a [f64],
    factor: f64,
    out: &'a mut [f64],
}

impl WithSimd for Transposed<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { matrix, stride, z, factor, out } = self;
        let width = out.len();
        let row = |i: usize| &matrix[i * stride..i * stride + width];
        let (groups, last) = z.as_chunks::<ROWS>();
        let (vectors, rest) = S::as_mut_simd_f64s(out);
        if let (Some(out), []) =
            (vectors.first_chunk_mut::<NARROW>().filter(|_| width == NARROW * S::F64_LANES), &*rest)
        {
            // So few sums stay in registers.
            let mut sums = *out;
            for (i, z) in z.iter().enumerate() {
                let spread = simd.splat_f64s(factor * z);
                for (v, a) in sums.iter_mut().zip(S::as_simd_f64s(row(i)).0) {
                    *v = simd.mul_add_e_f64s(*a, spread, *v);
                }
            }
            *out = sums;
            return;
        }
        for (g, z) in groups.iter().enumerate() {
            let factors = z.map(|z| factor * z);
            let parts: [(&[S::f64s], &[f64]); ROWS] = std::array::from_fn(|r| S::as_simd_f64s(row(g * ROWS + r)));
            let spread = factors.map(|factor| simd.splat_f64s(factor));
            let rows = parts[0].0.iter().zip(parts[1].0).zip(parts[2].0).zip(parts[3].0);
            for (v, (((a, b), c), d)) in vectors.iter_mut().zip(rows) {
                let first = simd.mul_add_e_f64s(*b, spread[1], simd.mul_add_e_f64s(*a, spread[0], *v));
                *v = simd.mul_add_e_f64s(*d, spread[3], simd.mul_add_e_f64s(*c, spread[2], first));
            }
            for r in 0..ROWS {
                plain_add(rest, factors[r], parts[r].1);
            }
        }
        let done = groups.len() * ROWS;
        for (i, z) in last.iter().enumerate() {
            let (head, tail) = S::as_simd_f64s(row(done + i));
            let spread = simd.splat_f64s(factor * z);
            for (v, a) in vectors.iter_mut().zip(head) {
                *v = simd.mul_add_e_f64s(*a, spread, *v);
            }
            plain_add(rest, factor * z, tail);
        }
    }
}

struct GramTimes<'a> {
    matrix: &'a [f64],
    stride: usize,
    x: &'a [f64],
    factor: f64,
    out: &'a mut [f64],
}

impl WithSimd for GramTimes<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { matrix, stride, x, factor, out } = self;
        // The rows are read for the products and, while they are near, once more for the sum.
        for rows in matrix.chunks(ROWS * stride.max(1)) {
            let mut values = [0.0; ROWS];
            let values = &mut values[..rows.len().div_ceil(stride.max(1))];
            Times { matrix: rows, stride, x, out: &mut *values }.with_simd(simd);
            Transposed { matrix: rows, stride, z: values, factor, out: &mut *out }.with_simd(simd);
        }
    }
}

struct SymmetricTimes<'a> {
    matrix: &'a [f64],
    stride: usize,
    x: &'a [f64],
    factor: f64,
    out: &'a mut [f64],
}

impl WithSimd for SymmetricTimes<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { matrix, stride, x, factor, out } = self;
        let panel = NARROW * S::F64_LANES;
        let mut done = 0;
        // Its rows are its columns: as many sums as registers hold, over all rows.
        while done + panel <= stride && done < out.len() {
            let mut sums = [simd.splat_f64s(0.0); NARROW];
            for (row, x) in matrix.chunks_exact(stride).zip(x) {
                let Some(row) = S::as_simd_f64s(&row[done..done + panel]).0.first_chunk::<NARROW>() else { return };
                let spread = simd.splat_f64s(*x);
                for i in 0..NARROW {
                    sums[i] = simd.mul_add_e_f64s(row[i], spread, sums[i]);
                }
            }
            let width = panel.min(out.len() - done);
            let (vectors, rest) = S::as_mut_simd_f64s(&mut out[done..done + width]);
            let (spread, sums, whole) = (simd.splat_f64s(factor), sums, vectors.len());
            for (v, sum) in vectors.iter_mut().zip(&sums) {
                *v = simd.mul_add_e_f64s(*sum, spread, *v);
            }
            if let Some(last) = sums.get(whole) {
                plain_add(rest, factor, pulp::bytemuck::cast_slice(std::slice::from_ref(last)));
            }
            done += width;
        }
        if done < out.len() {
            Transposed { matrix: &matrix[done..], stride, z: x, factor, out: &mut out[done..] }.with_simd(simd);
        }
    }
}

#[inline(always)]
pub(super) fn plain_dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[inline(always)]
pub(super) fn plain_add(out: &mut [f64], factor: f64, x: &[f64]) {
    out.iter_mut().zip(x).for_each(|(out, x)| *out += factor * x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn a_symmetric_matrix_is_multiplied_whatever_its_size() {
        let mut rng = Generator::new(8);
        for (n, stride) in
            [(1, 8), (7, 8), (8, 8), (30, 32), (32, 32), (33, 40), (64, 64), (67, 72), (100, 101), (130, 136)]
        {
            let mut matrix = vec![0.0; n * stride];
            for i in 0..n {
                for j in 0..=i {
                    let value = rng.normal();
                    (matrix[i * stride + j], matrix[j * stride + i]) = (value, value);
                }
            }
            let x: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
            let mut out = x.clone();
            add_symmetric_times(&matrix, stride, &x, 0.5, &mut out);
            for i in 0..n {
                let expected: f64 = (0..n).map(|j| matrix[i * stride + j] * x[j]).sum();
                assert!((out[i] - x[i] - 0.5 * expected).abs() < 1e-13 * n as f64, "{n} {i}");
            }
        }
    }

    #[test]
    fn products_equal_the_sums() {
        let mut rng = Generator::new(4);
        for (rows, width) in [(1, 1), (3, 5), (4, 8), (7, 13), (20, 200), (33, 31)] {
            let stride = width + rows % 3;
            let matrix: Vec<f64> = (0..rows * stride).map(|_| rng.normal()).collect();
            let x: Vec<f64> = (0..width).map(|_| rng.normal()).collect();
            let z: Vec<f64> = (0..rows).map(|_| rng.normal()).collect();
            let mut out = vec![7.0; rows];
            times(&matrix, stride, &x, &mut out);
            for i in 0..rows {
                let expected: f64 = (0..width).map(|j| matrix[i * stride + j] * x[j]).sum();
                assert!((out[i] - expected).abs() < 1e-12 * width as f64);
            }
            let mut twice = x.clone();
            add_gram_times(&matrix, stride, &x, 0.5, &mut twice);
            for j in 0..width {
                let expected: f64 = (0..rows).map(|i| matrix[i * stride + j] * out[i]).sum();
                assert!((twice[j] - x[j] - 0.5 * expected).abs() < 1e-12 * (rows * width) as f64);
            }
            let mut back = x.clone();
            add_transposed_times(&matrix, stride, &z, 0.5, &mut back);
            for j in 0..width {
                let expected: f64 = (0..rows).map(|i| matrix[i * stride + j] * z[i]).sum();
                assert!((back[j] - x[j] - 0.5 * expected).abs() < 1e-12 * rows as f64);
            }
        }
    }
}
