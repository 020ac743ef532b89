//! Products of small matrices with one vector, for loops that run once a row: fused multiply-adds in the widest registers
//! the processor has, no allocation, no threads.
//!
//! The same on any number of threads; results are those of one machine, not of all (fused or not).

use pulp::{Arch, Simd, WithSimd};

/// Rows taken together: each load of the vector serves as many sums.
const ROWS: usize = 4;

/// out = M x, M row-major with `stride` numbers from one row to the next.
pub(crate) fn times(matrix: &[f64], stride: usize, x: &[f64], out: &mut [f64]) {
    Arch::new().dispatch(Times { matrix, stride, x, out });
}

/// out += factor Mᵀ z, M row-major with `stride` numbers from one row to the next.
pub(crate) fn add_transposed_times(matrix: &[f64], stride: usize, z: &[f64], factor: f64, out: &mut [f64]) {
    Arch::new().dispatch(Transposed { matrix, stride, z, factor, out });
}

/// out = M x of a symmetric matrix, of which only the lower triangle is read: half the memory.
pub(crate) fn symmetric_times(lower: &[f64], stride: usize, x: &[f64], out: &mut [f64]) {
    Arch::new().dispatch(Symmetric { lower, stride, x, out });
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
        for (g, out) in groups.iter_mut().enumerate() {
            let rows: [&[f64]; ROWS] = std::array::from_fn(|r| row(g * ROWS + r));
            let parts = rows.map(|row| S::as_simd_f64s(row));
            let heads = parts.map(|(head, _)| &head[..vectors.len()]);
            let mut sums = [simd.splat_f64s(0.0); ROWS];
            for (c, v) in vectors.iter().enumerate() {
                for r in 0..ROWS {
                    sums[r] = simd.mul_add_e_f64s(heads[r][c], *v, sums[r]);
                }
            }
            for r in 0..ROWS {
                out[r] = simd.reduce_sum_f64s(sums[r]) + plain_dot(parts[r].1, rest);
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
        for (g, z) in groups.iter().enumerate() {
            let factors = z.map(|z| factor * z);
            let parts: [(&[S::f64s], &[f64]); ROWS] = std::array::from_fn(|r| S::as_simd_f64s(row(g * ROWS + r)));
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

struct Symmetric<'a> {
    lower: &'a [f64],
    stride: usize,
    x: &'a [f64],
    out: &'a mut [f64],
}

impl WithSimd for Symmetric<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { lower, stride, x, out } = self;
        let n = x.len();
        out[..n].fill(0.0);
        let mut i = 0;
        while i + ROWS <= n {
            // Left of the diagonal block: every number serves its row and its column.
            let rows: [&[f64]; ROWS] = std::array::from_fn(|r| &lower[(i + r) * stride..(i + r) * stride + i]);
            let parts = rows.map(|row| S::as_simd_f64s(row));
            let (vectors, rest) = S::as_simd_f64s(&x[..i]);
            let heads = parts.map(|(head, _)| &head[..vectors.len()]);
            let own: [f64; ROWS] = std::array::from_fn(|r| x[i + r]);
            let spread = own.map(|value| simd.splat_f64s(value));
            let (before, after) = out.split_at_mut(i);
            let (sums_of_columns, last_columns) = S::as_mut_simd_f64s(before);
            let mut sums = [simd.splat_f64s(0.0); ROWS];
            for (c, column) in sums_of_columns.iter_mut().enumerate() {
                for r in 0..ROWS {
                    sums[r] = simd.mul_add_e_f64s(heads[r][c], vectors[c], sums[r]);
                    *column = simd.mul_add_e_f64s(heads[r][c], spread[r], *column);
                }
            }
            for r in 0..ROWS {
                after[r] += simd.reduce_sum_f64s(sums[r]) + plain_dot(parts[r].1, rest);
                plain_add(last_columns, own[r], parts[r].1);
            }
            // The diagonal block.
            triangle(lower, stride, i, i + ROWS, x, out);
            i += ROWS;
        }
        for row in i..n {
            let numbers = &lower[row * stride..row * stride + i];
            out[row] += plain_dot(numbers, &x[..i]);
            plain_add(&mut out[..i], x[row], numbers);
        }
        triangle(lower, stride, i, n, x, out);
    }
}

/// Adds the product with the symmetric block of rows and columns `from..to`.
#[inline(always)]
fn triangle(lower: &[f64], stride: usize, from: usize, to: usize, x: &[f64], out: &mut [f64]) {
    for row in from..to {
        for column in from..row {
            let value = lower[row * stride + column];
            out[row] += value * x[column];
            out[column] += value * x[row];
        }
        out[row] += lower[row * stride + row] * x[row];
    }
}

#[inline(always)]
fn plain_dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[inline(always)]
fn plain_add(out: &mut [f64], factor: f64, x: &[f64]) {
    out.iter_mut().zip(x).for_each(|(out, x)| *out += factor * x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

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
            let mut back = x.clone();
            add_transposed_times(&matrix, stride, &z, 0.5, &mut back);
            for j in 0..width {
                let expected: f64 = (0..rows).map(|i| matrix[i * stride + j] * z[i]).sum();
                assert!((back[j] - x[j] - 0.5 * expected).abs() < 1e-12 * rows as f64);
            }
        }
    }

    #[test]
    fn symmetric_products_read_the_lower_triangle_only() {
        let mut rng = Generator::new(6);
        for n in [1, 2, 3, 4, 5, 8, 11, 12, 37, 64] {
            let stride = n + n % 3;
            let mut matrix = vec![f64::NAN; n * stride];
            for i in 0..n {
                (0..=i).for_each(|j| matrix[i * stride + j] = rng.normal());
            }
            let x: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
            let mut out = vec![7.0; n];
            symmetric_times(&matrix, stride, &x, &mut out);
            for i in 0..n {
                let expected: f64 = (0..n).map(|j| matrix[i.max(j) * stride + i.min(j)] * x[j]).sum();
                assert!((out[i] - expected).abs() < 1e-12 * n as f64, "{n}");
            }
        }
    }
}
