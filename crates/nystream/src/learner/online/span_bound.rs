//! How much of a row the span of the rows kept can hold at most, from its few large kernels.
//!
//! ‖P k(x, ·)‖² = kᵀK⁻¹k. With k = b + s, b the large kernels and s the small ones, it is 2kᵀK⁻¹b − bᵀK⁻¹b + sᵀK⁻¹s, of which the
//! first two take few rows of K⁻¹, and the last is at most Σ_j r_j s_j², r_j the sum of the absolute values of row j of K⁻¹,
//! for 2|s_i s_j| ≤ s_i² + s_j². Where kernels are local, rows kept are nearly independent, r is small, and one kernel in
//! twenty tells what all of them would.
//!
//! A bound, with its rounding on the safe side: it may save the work of a measurement and never changes what comes of it. So
//! K⁻¹ may be in single precision, which is half as much to read.

use pulp::Simd;

use crate::linalg::{TiledTriangle, Vectorised, vectorised};

/// Kernels with r k² above this share of k(x, x) are large: fewer of them leave a bound that too seldom helps, more of them
/// cost more (cod-rna, 200 rows: 14 large ones, and 98 of 100 rows decided).
const LARGE: f64 = 0.02;
/// With more large kernels than this the bound costs as much as a measurement.
const MOST_LARGE: usize = 64;
/// Numbers of a row of K⁻¹ taken together: the sums of as many stay in registers.
const PANEL: usize = 64;
/// Registers of a panel where they are those of AVX2.
const REGISTERS: usize = 8;

/// K⁻¹ of rows that do not change any more.
#[derive(Debug)]
pub(super) struct SpanBound {
    /// K⁻¹, row after row, each filled up with zeros to whole panels.
    inverse: Vec<f32>,
    /// r, and its square roots.
    row_sums: Vec<f64>,
    roots: Vec<f64>,
    /// What rounding can add, as a share of ‖k‖².
    rounding: f64,
    /// Which kernels are large, and their places, with room for one more.
    flags: Vec<u64>,
    places: Vec<usize>,
    /// k, and K⁻¹b.
    singles: Vec<f32>,
    z: Vec<f32>,
}

impl SpanBound {
    /// From L⁻¹, K⁻¹ = L⁻ᵀL⁻¹.
    pub fn new(factor: &TiledTriangle, len: usize) -> Self {
        let mut exact = vec![0.0; len * len];
        for i in 0..len {
            let row: Vec<f64> = factor.row(i).take(i + 1).collect();
            for (a, out) in row.iter().zip(exact.chunks_exact_mut(len)) {
                out.iter_mut().zip(&row).for_each(|(out, b)| *out += a * b);
            }
        }
        let stride = len.next_multiple_of(PANEL);
        let mut inverse = vec![0.0; len * stride];
        let rows = exact.chunks_exact(len.max(1));
        for (to, from) in inverse.chunks_exact_mut(stride.max(1)).zip(rows.clone()) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as f32);
        }
        let row_sums: Vec<f64> = rows.map(|row| row.iter().map(|v| v.abs()).sum()).collect();
        let largest = row_sums.iter().copied().fold(0.0, f64::max);
        let trace: f64 = (0..len).map(|i| exact[i * len + i]).sum();
        // Of the numbers of K⁻¹ in double precision, each a sum of `len` products whose absolute values add up to the trace
        // at most; and of sums in single precision, over the large kernels and the columns of a panel, of terms whose absolute
        // values add up to three times the largest r times ‖k‖² at most.
        let single = (MOST_LARGE + PANEL + 8) as f64 * f64::from(f32::EPSILON) * 3.0 * largest;
        let rounding = single + 4.0 * (len + 8) as f64 * f64::EPSILON * trace;
        let roots = row_sums.iter().map(|sum| sum.sqrt()).collect();
        let (flags, places, singles) = (vec![0; len], vec![0; len + 1], vec![0.0; stride]);
        Self { inverse, row_sums, roots, rounding, flags, places, z: singles.clone(), singles }
    }

    /// At least kᵀK⁻¹k, if that can be had for less than computing it; `diagonal` is k(x, x).
    pub fn most(&mut self, kernels: &[f64], diagonal: f64) -> Option<f64> {
        let mut found = Found::default();
        let (parts, limit) = ((&self.row_sums[..], &self.roots[..]), (LARGE * diagonal).sqrt());
        let (flags, places, singles) = (&mut self.flags[..], &mut self.places[..], &mut self.singles[..]);
        vectorised(Split { kernels, parts, limit, flags, places, singles, found: &mut found });
        let Found { count, small: mut total, squares } = found;
        if count > MOST_LARGE {
            return None;
        }
        let (inverse, places, singles) = (&self.inverse[..], &self.places[..count], &self.singles[..]);
        vectorised(FromRows { inverse, places, singles, z: &mut self.z, total: &mut total });
        Some(total + self.rounding * squares)
    }

    pub fn size_bytes(&self) -> usize {
        let halves = self.inverse.capacity() + self.singles.capacity() + self.z.capacity();
        let wholes = self.row_sums.capacity() + self.roots.capacity() + self.flags.capacity() + self.places.capacity();
        halves * 4 + wholes * 8
    }
}

/// What one look at the kernels finds.
#[derive(Debug, Default)]
struct Found {
    /// Large kernels.
    count: usize,
    /// Σ r_j s_j²
    small: f64,
    /// ‖k‖²
    squares: f64,
}

/// Tells large kernels from small ones: places of the large ones, and sums. Writes all in single precision.
struct Split<'a> {
    kernels: &'a [f64],
    /// r, and its roots.
    parts: (&'a [f64], &'a [f64]),
    /// What large kernels times the roots are above.
    limit: f64,
    /// 1 for large kernels.
    flags: &'a mut [u64],
    places: &'a mut [usize],
    singles: &'a mut [f32],
    found: &'a mut Found,
}

/// Kernels looked at together.
const LANES: usize = 8;

impl Vectorised for Split<'_> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, _simd: S) {
        let Self { kernels, parts: (row_sums, roots), limit, flags, places, singles, found } = self;
        let mut sums = [[0.0; LANES]; 2];
        let ((k, k_last), (weights, weights_last)) = (kernels.as_chunks(), row_sums.as_chunks());
        let singles = singles.as_chunks_mut().0;
        for ((k, weights), singles) in k.iter().zip(weights).zip(&mut *singles) {
            look(k, weights, singles, &mut sums);
        }
        if let Some(singles) = singles.get_mut(k.len()).filter(|_| !k_last.is_empty()) {
            let mut rest = [[0.0; LANES]; 2];
            for (rest, last) in rest.iter_mut().zip([k_last, weights_last]) {
                rest[..last.len()].copy_from_slice(last);
            }
            look(&rest[0], &rest[1], singles, &mut sums);
        }
        for (flag, (k, root)) in flags.iter_mut().zip(kernels.iter().zip(roots)) {
            *flag = u64::from(k.abs() * root > limit);
        }
        // Without branches: which kernels are large cannot be foreseen.
        let mut count = 0;
        for (j, flag) in flags.iter().enumerate() {
            places[count] = j;
            count += *flag as usize;
        }
        // Of all less those of the large ones: told apart in the sum itself, they would cost a branch each.
        let large: f64 = places[..count].iter().map(|&place| kernels[place] * kernels[place] * row_sums[place]).sum();
        let small = (sums[0].iter().sum::<f64>() - large).max(0.0);
        *found = Found { count, small, squares: sums[1].iter().sum() };
    }
}

/// Adds up squares, weighted and not, and writes the kernels in single precision.
#[inline(always)]
fn look(k: &[f64; LANES], weights: &[f64; LANES], singles: &mut [f32; LANES], sums: &mut [[f64; LANES]; 2]) {
    for i in 0..LANES {
        let square = k[i] * k[i];
        sums[0][i] += square * weights[i];
        sums[1][i] += square;
    }
    *singles = k.map(|k| k as f32);
}

/// z = K⁻¹b, and 2kᵀz − bᵀz.
struct FromRows<'a> {
    inverse: &'a [f32],
    places: &'a [usize],
    /// k
    singles: &'a [f32],
    z: &'a mut [f32],
    total: &'a mut f64,
}

impl Vectorised for FromRows<'_> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, simd: S) {
        let Self { inverse, places, singles, z, total } = self;
        let stride = z.len();
        let mut twice = 0.0;
        for (p, z) in z.as_chunks_mut::<PANEL>().0.iter_mut().enumerate() {
            let part = |place: usize| &inverse[place * stride + p * PANEL..][..PANEL];
            let own = &singles[p * PANEL..(p + 1) * PANEL];
            if FMA && REGISTERS * S::F32_LANES == PANEL {
                let mut sums = [simd.splat_f32s(0.0); REGISTERS];
                for &place in places {
                    let Some(row) = S::as_simd_f32s(part(place)).0.first_chunk::<REGISTERS>() else { return };
                    let spread = simd.splat_f32s(singles[place]);
                    for i in 0..REGISTERS {
                        sums[i] = simd.mul_add_f32s(row[i], spread, sums[i]);
                    }
                }
                let mut sum = simd.splat_f32s(0.0);
                for (i, own) in S::as_simd_f32s(own).0.iter().enumerate().take(REGISTERS) {
                    sum = simd.mul_add_f32s(sums[i], *own, sum);
                }
                S::as_mut_simd_f32s(z).0.copy_from_slice(&sums);
                twice += f64::from(simd.reduce_sum_f32s(sum));
            } else {
                z.fill(0.0);
                for &place in places {
                    z.iter_mut().zip(part(place)).for_each(|(z, number)| *z += singles[place] * number);
                }
                twice += f64::from(z.iter().zip(own).map(|(z, k)| z * k).sum::<f32>());
            }
        }
        let once: f64 = places.iter().map(|&place| f64::from(singles[place]) * f64::from(z[place])).sum();
        *total += 2.0 * twice - once;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;
    use pulp::Scalar;

    #[test]
    fn it_is_a_bound_and_exact_for_kernels_that_are_large_or_zero() {
        let mut rng = Generator::new(7);
        for len in [1, 7, 63, 64, 65, 130] {
            let mut factor = TiledTriangle::default();
            for i in 0..len {
                let row: Vec<f64> = (0..=i).map(|j| if i == j { 1.5 } else { 0.1 * rng.normal() }).collect();
                factor.push(&row);
            }
            let mut bound = SpanBound::new(&factor, len);
            for turn in 0..20 {
                // Many small ones, or none between large ones and zero.
                let power = if turn % 2 == 0 { 8 } else { 1 };
                let kernels: Vec<f64> = (0..len)
                    .map(|_| {
                        if power == 1 && rng.uniform() < 0.7 { 0.0 } else { (0.2 + rng.uniform()).min(1.0).powi(power) }
                    })
                    .collect();
                let exact = factor.first(&kernels);
                let Some(most) = bound.most(&kernels, 1.0) else { continue };
                assert!(most >= exact, "{len} {turn}: {most} {exact}");
                assert!(power == 8 || most - exact <= 1e-3 * (1.0 + exact), "{len} {turn}: {most} {exact}");
                // The same on any registers.
                let places: Vec<usize> = (0..len).filter(|&j| bound.flags[j] == 1).collect();
                let (mut z, mut plain, mut wide) = (vec![0.0; bound.z.len()], 0.0, 0.0);
                let (inverse, singles) = (&bound.inverse[..], &bound.singles[..]);
                FromRows { inverse, places: &places, singles, z: &mut z, total: &mut plain }
                    .run::<false, Scalar>(Scalar);
                vectorised(FromRows { inverse, places: &places, singles, z: &mut z, total: &mut wide });
                assert!((plain - wide).abs() <= 1e-4 * (1.0 + wide.abs()), "{len} {turn}: {plain} {wide}");
            }
        }
    }
}
