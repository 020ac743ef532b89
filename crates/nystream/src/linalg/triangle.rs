//! Lower triangles packed for solves with one vector at a time.
//!
//! Four columns stand together, so that a vector is read once for four of them; each group of columns is as long as its
//! longest, filled up with zeros to whole groups of lanes, so that no loop has a remainder. Vectors have
//! [`Triangle::padded`] numbers, zeros at the end.

use faer::MatRef;
use pulp::Simd;

use super::aligned::Aligned;
use super::vectorised::{Vectorised, vectorised};

/// Columns that stand together.
const COLUMNS: usize = 4;
/// Rows are filled up to a multiple of this, which the vectors of every instruction set divide.
const LANES: usize = 8;

/// A lower triangle.
#[derive(Debug, Clone)]
pub(crate) struct Triangle {
    dim: usize,
    /// For each group of columns: the square on the diagonal, then what is below it, both column by column. All are whole lines
    /// of the cache.
    data: Aligned<LANES>,
    /// 1 over the diagonal as it was made: solves wait for one number after the other, and longer for quotients.
    inverses: Vec<f64>,
}

/// Rows below the square of a group, filled up.
fn below(dim: usize, group: usize) -> usize {
    dim.saturating_sub((group + 1) * COLUMNS).next_multiple_of(LANES)
}

impl Triangle {
    /// The lower triangle of a matrix; ones fill up the diagonal.
    pub fn of(matrix: MatRef<'_, f64>) -> Self {
        Self::new(matrix.nrows(), |i, j| matrix[(i, j)])
    }

    fn new(dim: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let mut data = Vec::new();
        for group in 0..dim.div_ceil(COLUMNS) {
            let (first, rest) = (group * COLUMNS, (group + 1) * COLUMNS);
            for (rows, end) in [(first, rest), (rest, rest + below(dim, group))] {
                for j in first..rest {
                    data.extend((rows..end).map(|i| match i {
                        i if i < dim && j <= i => entry(i, j),
                        i if i == j => 1.0,
                        _ => 0.0,
                    }));
                }
            }
        }
        let diagonal = (0..dim.next_multiple_of(COLUMNS)).map(|i| if i < dim { entry(i, i) } else { 1.0 });
        let mut aligned = Aligned::zeros(data.len() / LANES);
        aligned.as_flattened_mut().copy_from_slice(&data);
        Self { dim, data: aligned, inverses: diagonal.map(f64::recip).collect() }
    }

    /// Length of vectors that go with a triangle of this size.
    pub fn padded(dim: usize) -> usize {
        dim.next_multiple_of(COLUMNS) + LANES
    }

    /// x ← L⁻¹x, of a triangle that has not changed.
    pub fn forward(&self, x: &mut [f64]) {
        vectorised(Forward { triangle: self, x });
    }

    /// x ← L⁻ᵀx, likewise.
    pub fn backward(&self, x: &mut [f64]) {
        vectorised(Backward { triangle: self, x });
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.data.size_bytes() + self.inverses.capacity() * 8
    }
}

struct Forward<'a> {
    triangle: &'a Triangle,
    x: &'a mut [f64],
}

impl Vectorised for Forward<'_> {
    const WIDE: bool = true;

    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, simd: S) {
        let dim = self.triangle.dim;
        let mut data = self.triangle.data.as_flattened();
        for group in 0..dim.div_ceil(COLUMNS) {
            let length = below(dim, group);
            let (square, rest) = data.split_at(COLUMNS * COLUMNS);
            let (columns, after) = rest.split_at(COLUMNS * length);
            data = after;
            let (head, tail) = self.x[group * COLUMNS..].split_at_mut(COLUMNS);
            let mut minus = [0.0; COLUMNS];
            for j in 0..COLUMNS {
                let value = head[j] * self.triangle.inverses[group * COLUMNS + j];
                for i in j + 1..COLUMNS {
                    head[i] -= square[j * COLUMNS + i] * value;
                }
                head[j] = value;
                minus[j] = -value;
            }
            let [a, b, c, d] = columns_of::<S>(columns, length);
            let minus = minus.map(|value| simd.splat_f64s(value));
            let lanes = S::as_mut_simd_f64s(&mut tail[..length]).0;
            for ((((x, a), b), c), d) in lanes.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let first = simd.mul_add_e_f64s(*b, minus[1], simd.mul_add_e_f64s(*a, minus[0], *x));
                *x = simd.mul_add_e_f64s(*d, minus[3], simd.mul_add_e_f64s(*c, minus[2], first));
            }
        }
    }
}

struct Backward<'a> {
    triangle: &'a Triangle,
    x: &'a mut [f64],
}

impl Vectorised for Backward<'_> {
    const WIDE: bool = true;

    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, simd: S) {
        let dim = self.triangle.dim;
        let mut data = self.triangle.data.as_flattened();
        for group in (0..dim.div_ceil(COLUMNS)).rev() {
            let length = below(dim, group);
            let (before, own) = data.split_at(data.len() - COLUMNS * (COLUMNS + length));
            data = before;
            let (square, columns) = own.split_at(COLUMNS * COLUMNS);
            let (head, tail) = self.x[group * COLUMNS..].split_at_mut(COLUMNS);
            let [a, b, c, d] = columns_of::<S>(columns, length);
            let zero = simd.splat_f64s(0.0);
            let [mut p, mut q, mut r, mut s] = [zero; COLUMNS];
            let lanes = S::as_simd_f64s(&tail[..length]).0;
            for ((((x, a), b), c), d) in lanes.iter().zip(a).zip(b).zip(c).zip(d) {
                p = simd.mul_add_e_f64s(*a, *x, p);
                q = simd.mul_add_e_f64s(*b, *x, q);
                r = simd.mul_add_e_f64s(*c, *x, r);
                s = simd.mul_add_e_f64s(*d, *x, s);
            }
            let sums = [p, q, r, s].map(|sum| simd.reduce_sum_f64s(sum));
            for j in (0..COLUMNS).rev() {
                let mut value = head[j] - sums[j];
                for i in j + 1..COLUMNS {
                    value -= square[j * COLUMNS + i] * head[i];
                }
                head[j] = value * self.triangle.inverses[group * COLUMNS + j];
            }
        }
    }
}

/// Four columns of this length, as vectors.
#[inline(always)]
fn columns_of<S: Simd>(columns: &[f64], length: usize) -> [&[S::f64s]; COLUMNS] {
    let (a, rest) = columns.split_at(length);
    let (b, rest) = rest.split_at(length);
    let (c, d) = rest.split_at(length);
    [a, b, c, d].map(|part| S::as_simd_f64s(part).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Cholesky;
    use crate::random::Generator;
    use faer::Mat;

    #[test]
    fn solves_equal_those_of_the_matrix() {
        for dim in [1, 3, 4, 5, 8, 12, 13, 40, 57] {
            let mut rng = Generator::new(dim as u64);
            let a = Mat::from_fn(dim, dim, |_, _| rng.normal());
            let spd = &a * a.transpose() + Mat::<f64>::identity(dim, dim);
            let factor = Cholesky::new(spd.as_ref(), "test").unwrap();
            let triangle = Triangle::of(factor.factor());
            let mut x = vec![0.0; Triangle::padded(dim)];
            x[..dim].iter_mut().for_each(|v| *v = rng.normal());
            let column = |x: &[f64]| Mat::from_fn(dim, 1, |i, _| x[i]);
            let close = |x: &[f64], y: &Mat<f64>| {
                assert!((0..dim).all(|i| (x[i] - y[(i, 0)]).abs() < 1e-9 * (1.0 + y[(i, 0)].abs())), "{dim}");
                assert!(x[dim..].iter().all(|v| *v == 0.0), "{dim}");
            };
            let (mut fast, mut slow) = (x.clone(), column(&x));
            triangle.forward(&mut fast);
            factor.forward_in_place(slow.as_mut());
            close(&fast, &slow);
            triangle.backward(&mut fast);
            factor.backward_in_place(slow.as_mut());
            close(&fast, &slow);
        }
    }
}
