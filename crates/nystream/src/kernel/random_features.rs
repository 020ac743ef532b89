//! Random Fourier features: sines and cosines whose inner products estimate a kernel of a distance.
//!
//! A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS 2007. Frequencies are drawn from the kernel's
//! spectrum: normal for the Gaussian, multivariate t for Laplacian (1 degree of freedom) and Matérn (3 and 5) kernels.
//!
//! Departures from the paper: a sine and a cosine for each frequency, not one cosine with a random phase; frequencies are
//! drawn to single precision.

use pulp::Simd;

use super::sincos::{LARGEST, sin_cos_lanes, sin_cos_registers};
use super::spec::Kernel;
use super::vector::{LANES, Vectorised, multiply_add, vectorised};
use crate::error::{Error, Result};
use crate::random::Generator;
use crate::rows::Row;

/// Columns of a row taken together: each sum that is loaded and stored takes up as many products.
const COLUMNS: usize = 8;
/// Angles are computed for whole halves of groups.
const HALF: usize = LANES / 2;
/// Registers of angles whose sines are taken together.
const ABREAST: usize = 4;
/// Bytes that the frequencies may take.
const MOST_BYTES: u64 = 1 << 30;

/// Frequencies, all of them for a column, then all for the next, filled up with zeros to whole groups of 32.
#[derive(Debug, Clone)]
pub struct RandomFeatures {
    columns: Vec<Group>,
    features: usize,
    frequencies: usize,
    /// 1/√frequencies
    scale: f64,
    /// The largest norm of a frequency.
    largest: f64,
}

/// Frequencies that stand together, in single precision: they are random anyway, and reading them from the second cache takes
/// longer than multiplying by them.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Group([f32; LANES]);

impl RandomFeatures {
    /// Draws frequencies for rows of `features` columns.
    pub fn new(kernel: &Kernel, features: usize, frequencies: usize, rng: &mut Generator) -> Result<Self> {
        let freedom = match kernel {
            Kernel::Gaussian { .. } => None,
            Kernel::Laplacian { .. } => Some(1),
            Kernel::Matern32 { .. } => Some(3),
            Kernel::Matern52 { .. } => Some(5),
            Kernel::Polynomial { .. } | Kernel::Linear => {
                let found = format!("{} for random Fourier features", kernel.name());
                return Err(Error::InvalidParam { name: "kernel", found, expected: "a kernel of a distance" });
            }
        };
        let groups = frequencies.div_ceil(LANES);
        let numbers = groups.saturating_mul(features);
        let needed_bytes = (numbers as u64).saturating_mul(size_of::<Group>() as u64);
        if needed_bytes > MOST_BYTES {
            let advice = "use fewer random features, or a learner that keeps rows";
            return Err(Error::TooLarge { what: "frequencies", needed_bytes, allowed_bytes: MOST_BYTES, advice });
        }
        let mut columns = vec![Group([0.0; LANES]); numbers];
        let mut largest: f64 = 0.0;
        for i in 0..frequencies {
            let mut scale = 1.0 / kernel.bandwidth().unwrap_or(1.0);
            if let Some(freedom) = freedom {
                let squares: f64 = (0..freedom).map(|_| rng.normal().powi(2)).sum();
                scale *= (f64::from(freedom) / squares).sqrt();
            }
            let mut squares: f64 = 0.0;
            for k in 0..features {
                let frequency = (scale * rng.normal()) as f32;
                columns[k * groups + i / LANES].0[i % LANES] = frequency;
                squares += f64::from(frequency).powi(2);
            }
            largest = largest.max(squares.sqrt());
        }
        let scale = 1.0 / (frequencies as f64).sqrt();
        Ok(Self { columns, features, frequencies, scale, largest })
    }

    /// Numbers that stand for a row: the sines, and zeros that fill their last group of 32, then the cosines likewise.
    pub fn len(&self) -> usize {
        self.frequencies.div_ceil(LANES) * 2 * LANES
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frequencies == 0
    }

    /// Features of a row: a sine and a cosine of every frequency.
    pub fn dimension(&self) -> usize {
        2 * self.frequencies
    }

    /// Writes the features z(x) of a row, of which zᵀz′ estimates k(x, x′), and returns `weights`ᵀz(x).
    ///
    /// # Panics
    /// If `out` or `weights` is not of [`len`](Self::len), or a dense row has another width.
    pub fn weighted(&self, x: Row, weights: &[f64], out: &mut [f64]) -> f64 {
        assert!(out.len() == self.len() && weights.len() == self.len(), "a number per feature");
        if let Row::Dense(values) = x {
            assert_eq!(values.len(), self.features, "columns of the row and of the frequencies");
        }
        let mut sum = 0.0;
        vectorised(FeatureTask { map: self, x, weights, out, sum: &mut sum });
        sum
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.columns.capacity() * size_of::<Group>()
    }
}

struct FeatureTask<'a> {
    map: &'a RandomFeatures,
    x: Row<'a>,
    weights: &'a [f64],
    out: &'a mut [f64],
    sum: &'a mut f64,
}

impl Vectorised for FeatureTask<'_> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, simd: S) {
        let Self { map, x, weights, out, sum } = self;
        let (sines, cosines) = out.split_at_mut(out.len() / 2);
        // No angle is larger than the product of the norms.
        let small = map.largest * x.squared_norm().sqrt() < LARGEST;
        let fast = FMA && small && HALF.is_multiple_of(ABREAST * S::F64_LANES);
        // Angles take the places of the sines; there are none past the last half of a group that has a frequency.
        let used = if fast { map.frequencies.next_multiple_of(HALF) } else { sines.len() };
        map.angles::<FMA>(x, &mut sines[..used]);
        if fast {
            sines[used..].fill(0.0);
            let (for_sines, for_cosines) = weights.split_at(weights.len() / 2);
            let (weights, places) =
                ((&for_sines[..used], &for_cosines[..used]), (&mut sines[..used], &mut cosines[..used]));
            let whole = in_registers(simd, map.scale, weights, places);
            let absent = map.frequencies..used;
            *sum = whole - dot(&cosines[absent.clone()], &for_cosines[absent]);
        } else {
            in_lanes::<FMA>(map.scale, sines, cosines);
        }
        // The cosine of a frequency that is not there is not 0.
        cosines[map.frequencies..].fill(0.0);
        if fast {
            return;
        }
        let (weights, weights_rest) = weights.as_chunks::<LANES>();
        let (out, out_rest) = out.as_chunks::<LANES>();
        debug_assert!(weights_rest.is_empty() && out_rest.is_empty(), "whole groups");
        let mut total = [0.0; LANES];
        for (values, weights) in out.iter().zip(weights) {
            for i in 0..LANES {
                total[i] = multiply_add::<FMA>(values[i], weights[i], total[i]);
            }
        }
        *sum = total.iter().sum();
    }
}

impl RandomFeatures {
    /// Inner products of a row with the first frequencies, a multiple of [`HALF`].
    #[inline(always)]
    fn angles<const FMA: bool>(&self, x: Row, out: &mut [f64]) {
        let groups = self.frequencies.div_ceil(LANES);
        let column = |k: usize| &self.columns[k * groups..(k + 1) * groups];
        match within(x, self.features) {
            Row::Dense([]) | Row::Sparse { indices: [], .. } => out.fill(0.0),
            Row::Dense(point) => {
                for (g, values) in point.chunks(COLUMNS).enumerate() {
                    let columns = first_few(values.len(), |i| column(g * COLUMNS + i));
                    add_columns::<FMA>(columns, values, g > 0, out);
                }
            }
            Row::Sparse { indices, values } => {
                for (g, (indices, values)) in indices.chunks(COLUMNS).zip(values.chunks(COLUMNS)).enumerate() {
                    let columns = first_few(values.len(), |i| column(indices[i] as usize));
                    add_columns::<FMA>(columns, values, g > 0, out);
                }
            }
        }
    }
}

/// Of fewer columns the last is taken again; there will be no value for it.
#[inline(always)]
fn first_few<'a>(len: usize, column: impl Fn(usize) -> &'a [Group]) -> [&'a [Group]; COLUMNS] {
    std::array::from_fn(|i| column(i.min(len - 1)))
}

/// Values times the frequencies of columns, added to the sums if there are any yet.
#[inline(always)]
fn add_columns<const FMA: bool>(columns: [&[Group]; COLUMNS], values: &[f64], begun: bool, sums: &mut [f64]) {
    let values: [f64; COLUMNS] = std::array::from_fn(|i| values.get(i).copied().unwrap_or(0.0));
    let (whole, half) = sums.as_chunks_mut::<LANES>();
    // Of the same length, as the compiler then knows.
    let firsts = columns.map(|column| &column[..whole.len()]);
    for (g, sums) in whole.iter_mut().enumerate() {
        add_group::<FMA, LANES>(firsts.map(|column| &column[g].0), &values, begun, sums);
    }
    if let Some(sums) = half.first_chunk_mut::<HALF>() {
        let lasts = columns.map(|column| &column[whole.len()].0.as_chunks::<HALF>().0[0]);
        add_group::<FMA, HALF>(lasts, &values, begun, sums);
    }
}

/// The same of a group, or of half a group.
#[inline(always)]
fn add_group<const FMA: bool, const N: usize>(
    columns: [&[f32; N]; COLUMNS],
    values: &[f64; COLUMNS],
    begun: bool,
    sums: &mut [f64; N],
) {
    for i in 0..N {
        let sum = if begun { sums[i] } else { 0.0 };
        sums[i] = (0..COLUMNS).fold(sum, |sum, c| multiply_add::<FMA>(f64::from(columns[c][i]), values[c], sum));
    }
}

/// Sines in place of the angles, and cosines, both times `scale`; gives their sum times the weights of both.
#[inline(always)]
fn in_registers<S: Simd>(simd: S, scale: f64, weights: (&[f64], &[f64]), places: (&mut [f64], &mut [f64])) -> f64 {
    let sines = S::as_mut_simd_f64s(places.0).0.as_chunks_mut::<ABREAST>().0;
    let cosines = S::as_mut_simd_f64s(places.1).0.as_chunks_mut::<ABREAST>().0;
    let for_sines = S::as_simd_f64s(weights.0).0.as_chunks::<ABREAST>().0;
    let for_cosines = S::as_simd_f64s(weights.1).0.as_chunks::<ABREAST>().0;
    let mut totals = [simd.splat_f64s(0.0); 2];
    for ((s, c), (s_weights, c_weights)) in sines.iter_mut().zip(cosines).zip(for_sines.iter().zip(for_cosines)) {
        (*s, *c) = sin_cos_registers(simd, *s, scale);
        for i in 0..ABREAST {
            totals[0] = simd.mul_add_f64s(s[i], s_weights[i], totals[0]);
            totals[1] = simd.mul_add_f64s(c[i], c_weights[i], totals[1]);
        }
    }
    simd.reduce_sum_f64s(simd.add_f64s(totals[0], totals[1]))
}

/// The same without explicit vectors, for angles of any size.
#[inline(always)]
fn in_lanes<const FMA: bool>(scale: f64, angles: &mut [f64], cosines: &mut [f64]) {
    let groups = angles.as_chunks_mut::<LANES>().0.iter_mut().zip(cosines.as_chunks_mut::<LANES>().0);
    for (sines, cosines) in groups {
        (*sines, *cosines) = sin_cos_lanes::<FMA>(sines);
        for i in 0..LANES {
            sines[i] *= scale;
            cosines[i] *= scale;
        }
    }
}

#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The row in columns below this.
fn within(x: Row, columns: usize) -> Row {
    match x {
        Row::Sparse { indices, values } if indices.last().is_some_and(|&k| k as usize >= columns) => {
            let there = indices.partition_point(|&k| (k as usize) < columns);
            Row::Sparse { indices: &indices[..there], values: &values[..there] }
        }
        x => x,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_products_estimate_the_kernel() {
        let frequencies = 20_001;
        for kernel in [
            Kernel::gaussian(1.3).unwrap(),
            Kernel::laplacian(2.0).unwrap(),
            Kernel::matern32(1.5).unwrap(),
            Kernel::matern52(0.8).unwrap(),
        ] {
            let mut rng = Generator::new(9);
            let map = RandomFeatures::new(&kernel, 3, frequencies, &mut rng).unwrap();
            assert_eq!(map.dimension(), 2 * frequencies);
            let zeros = vec![0.0; map.len()];
            let (x, z) = ([0.3, -1.0, 0.0], [1.0, 0.2, -0.4]);
            let (mut of_x, mut of_z) = (zeros.clone(), zeros.clone());
            map.weighted(Row::Sparse { indices: &[0, 1], values: &[0.3, -1.0] }, &zeros, &mut of_x);
            let estimate = map.weighted(Row::Dense(&z), &of_x, &mut of_z);
            let expected = kernel.pair(Row::Dense(&x), Row::Dense(&z));
            // Five standard errors of a mean of cosines, whose variance is at most 1.
            assert!(
                (estimate - expected).abs() < 5.0 / (frequencies as f64).sqrt(),
                "{kernel:?} {estimate} {expected}"
            );
            let own: f64 = of_x.iter().map(|v| v * v).sum();
            assert!((own - 1.0).abs() < 1e-12, "{own}");
            let mut dense = zeros.clone();
            map.weighted(Row::Dense(&x), &zeros, &mut dense);
            assert!(dense.iter().zip(&of_x).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }

    #[test]
    fn every_number_of_frequencies_and_every_size_of_angles() {
        let kernel = Kernel::gaussian(1.0).unwrap();
        for frequencies in [1, 4, 15, 16, 17, 31, 32, 33, 47, 49, 64, 100] {
            let map = RandomFeatures::new(&kernel, 2, frequencies, &mut Generator::new(3)).unwrap();
            // From angles around 1 to those that the library has to reduce.
            for size in [1.0, 1e3, 1e7] {
                let x = [0.7 * size, -0.4 * size];
                // What stands in places without a feature must not matter.
                let (weights, mut out) = (vec![0.5; map.len()], vec![7.0; map.len()]);
                let found = map.weighted(Row::Dense(&x), &weights, &mut out);
                let (mut sum, groups) = (0.0, frequencies.div_ceil(LANES));
                let (sines, cosines) = out.split_at(out.len() / 2);
                for i in 0..sines.len() {
                    let at = |k: usize| f64::from(map.columns[k * groups + i / LANES].0[i % LANES]);
                    let angle = at(1).mul_add(x[1], at(0) * x[0]);
                    let expected = if i < frequencies { angle.sin_cos() } else { (0.0, 0.0) };
                    let scale = (frequencies as f64).sqrt();
                    let apart = (sines[i] * scale - expected.0).abs().max((cosines[i] * scale - expected.1).abs());
                    // Angles are rounded before their sines are taken.
                    assert!(apart < 1e-14 + 1e-15 * size, "{frequencies} {size} {apart}");
                    sum += 0.5 * (sines[i] + cosines[i]);
                }
                assert!((found - sum).abs() < 1e-13 * (frequencies as f64), "{found} {sum}");
            }
        }
    }

    #[test]
    fn what_has_no_spectrum_or_no_room_is_refused() {
        let mut rng = Generator::new(0);
        assert!(RandomFeatures::new(&Kernel::Linear, 3, 8, &mut rng).is_err());
        let wide = RandomFeatures::new(&Kernel::gaussian(1.0).unwrap(), 1 << 20, 1 << 12, &mut rng);
        assert!(matches!(wide, Err(Error::TooLarge { .. })));
    }
}
