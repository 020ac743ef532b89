//! Random Fourier features: sines and cosines whose inner products estimate a kernel of a distance.
//!
//! A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS 2007. Frequencies are drawn from the kernel's
//! spectrum: normal for the Gaussian, multivariate t for Laplacian (1 degree of freedom) and Matérn (3 and 5) kernels.
//!
//! Departures from the paper: a sine and a cosine for each frequency, not one cosine with a random phase.

use pulp::Simd;

use super::sincos::{LARGEST, sin_cos_lanes, sin_cos_register};
use super::spec::Kernel;
use super::support::sparse_products;
use super::vector::{LANES, Lanes, Vectorised, multiply_add, products, vectorised};
use crate::error::{Error, Result};
use crate::random::Generator;
use crate::rows::Row;

/// Registers of frequencies taken together.
const WIDE: usize = 8;
/// Bytes that the frequencies may take.
const MOST_BYTES: u64 = 1 << 30;

/// Frequencies, feature by feature in panels of 32.
#[derive(Debug, Clone)]
pub struct RandomFeatures {
    panels: Vec<Lanes>,
    features: usize,
    frequencies: usize,
    /// 1/√frequencies
    scale: f64,
    /// The largest norm of a frequency.
    largest: f64,
}

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
        let numbers = frequencies.div_ceil(LANES).saturating_mul(features);
        let needed_bytes = (numbers as u64).saturating_mul(size_of::<Lanes>() as u64);
        if needed_bytes > MOST_BYTES {
            let advice = "use fewer random features, or a learner that keeps rows";
            return Err(Error::TooLarge { what: "frequencies", needed_bytes, allowed_bytes: MOST_BYTES, advice });
        }
        let mut panels = vec![Lanes::ZERO; numbers];
        for i in 0..frequencies {
            let mut scale = 1.0 / kernel.bandwidth().unwrap_or(1.0);
            if let Some(freedom) = freedom {
                let squares: f64 = (0..freedom).map(|_| rng.normal().powi(2)).sum();
                scale *= (f64::from(freedom) / squares).sqrt();
            }
            for lanes in &mut panels[i / LANES * features..][..features] {
                lanes.0[i % LANES] = scale * rng.normal();
            }
        }
        let scale = 1.0 / (frequencies as f64).sqrt();
        let largest = (0..frequencies).fold(0.0, |largest: f64, i| {
            let panel = &panels[i / LANES * features..][..features];
            largest.max(panel.iter().map(|lanes| lanes.0[i % LANES].powi(2)).sum::<f64>().sqrt())
        });
        Ok(Self { panels, features, frequencies, scale, largest })
    }

    /// Numbers that stand for a row: the features, and zeros that fill the last panel.
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
        self.panels.capacity() * size_of::<Lanes>()
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
        // No angle is larger than the product of the norms.
        let small = self.map.largest * self.x.squared_norm().sqrt() < LARGEST;
        if FMA && small && LANES.is_multiple_of(WIDE * S::F64_LANES) {
            self.in_registers(simd);
        } else {
            self.in_lanes::<FMA>();
        }
    }
}

impl FeatureTask<'_> {
    /// Angles, sines and cosines without leaving the registers.
    #[inline(always)]
    fn in_registers<S: Simd>(self, simd: S) {
        let Self { map, x, weights, out, sum } = self;
        let mut total = [simd.splat_f64s(0.0); 2];
        let pairs = out.chunks_exact_mut(2 * LANES).zip(weights.chunks_exact(2 * LANES));
        for (p, (out, weights)) in pairs.enumerate() {
            let panel = &map.panels[p * map.features..(p + 1) * map.features];
            let used = (map.frequencies - p * LANES).min(LANES);
            let mut start = 0;
            while start < used {
                let at = start / S::F64_LANES;
                start += if used - start > WIDE / 2 * S::F64_LANES {
                    group::<WIDE, S>(simd, map.scale, angles(simd, panel, at, x), at, weights, out, &mut total)
                } else {
                    const HALF: usize = WIDE / 2;
                    group::<HALF, S>(simd, map.scale, angles(simd, panel, at, x), at, weights, out, &mut total)
                };
            }
            if used < LANES {
                // The cosine of a frequency that is not there is not 0, and was summed.
                let (mut surplus, (sines, cosines)) = (0.0, out.split_at_mut(LANES));
                for i in used..start.min(LANES) {
                    surplus += cosines[i] * weights[LANES + i];
                }
                sines[used..].fill(0.0);
                cosines[used..].fill(0.0);
                *sum -= surplus;
            }
        }
        *sum += simd.reduce_sum_f64s(simd.add_f64s(total[0], total[1]));
    }

    #[inline(always)]
    fn in_lanes<const FMA: bool>(self) {
        let Self { map, x, weights, out, sum } = self;
        let mut total = [0.0; LANES];
        let (out, _) = out.as_chunks_mut::<LANES>();
        let (weights, _) = weights.as_chunks::<LANES>();
        let pairs = out.chunks_exact_mut(2).zip(weights.chunks_exact(2));
        for (p, (out, weights)) in pairs.enumerate() {
            let panel = &map.panels[p * map.features..(p + 1) * map.features];
            let angles = match x {
                Row::Dense(point) => products::<FMA>(panel, point),
                Row::Sparse { indices, values } => sparse_products::<FMA>(panel, indices, values),
            };
            let (mut sines, mut cosines) = sin_cos_lanes::<FMA>(&angles);
            for i in 0..LANES {
                sines[i] *= map.scale;
                cosines[i] *= map.scale;
            }
            // The cosine of a frequency that is not there is not 0.
            let used = map.frequencies - p * LANES;
            if used < LANES {
                cosines[used..].fill(0.0);
            }
            for i in 0..LANES {
                total[i] = multiply_add::<FMA>(sines[i], weights[0][i], total[i]);
                total[i] = multiply_add::<FMA>(cosines[i], weights[1][i], total[i]);
            }
            out[0] = sines;
            out[1] = cosines;
        }
        *sum = total.iter().sum();
    }
}

/// Inner products of a row with the frequencies of some registers of a panel, from register `at` on.
#[inline(always)]
fn angles<const N: usize, S: Simd>(simd: S, panel: &[Lanes], at: usize, x: Row) -> [S::f64s; N] {
    let mut sums = [simd.splat_f64s(0.0); N];
    let mut add = |lanes: &Lanes, value: f64| {
        let (value, registers) = (simd.splat_f64s(value), &S::as_simd_f64s(&lanes.0).0[at..at + N]);
        for i in 0..N {
            sums[i] = simd.mul_add_f64s(registers[i], value, sums[i]);
        }
    };
    match x {
        Row::Dense(point) => panel.iter().zip(point).for_each(|(lanes, value)| add(lanes, *value)),
        Row::Sparse { indices, values } => {
            for (&k, &value) in indices.iter().zip(values) {
                if let Some(lanes) = panel.get(k as usize) {
                    add(lanes, value);
                }
            }
        }
    }
    sums
}

/// Sines and cosines of some angles, from register `at` of their panel on, and their products with the weights; gives the
/// number of angles.
#[inline(always)]
fn group<const N: usize, S: Simd>(
    simd: S,
    scale: f64,
    angles: [S::f64s; N],
    at: usize,
    weights: &[f64],
    out: &mut [f64],
    total: &mut [S::f64s; 2],
) -> usize {
    let scale = simd.splat_f64s(scale);
    let registers = LANES / S::F64_LANES;
    let (weights, out) = (S::as_simd_f64s(weights).0, S::as_mut_simd_f64s(out).0);
    let (sine_weights, cosine_weights) = (&weights[at..at + N], &weights[registers + at..registers + at + N]);
    let (sines, cosines) = out.split_at_mut(registers);
    let (sines, cosines) = (&mut sines[at..at + N], &mut cosines[at..at + N]);
    for i in 0..N {
        let (sine, cosine) = sin_cos_register(simd, angles[i]);
        sines[i] = simd.mul_f64s(sine, scale);
        cosines[i] = simd.mul_f64s(cosine, scale);
        total[0] = simd.mul_add_f64s(sines[i], sine_weights[i], total[0]);
        total[1] = simd.mul_add_f64s(cosines[i], cosine_weights[i], total[1]);
    }
    N * S::F64_LANES
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
                let mut sum = 0.0;
                for (p, part) in out.chunks_exact(2 * LANES).enumerate() {
                    for i in 0..LANES {
                        let at = |k: usize| map.panels[p * 2 + k].0[i];
                        let angle = multiply_add::<true>(at(1), x[1], at(0) * x[0]);
                        let there = p * LANES + i < frequencies;
                        let expected = if there { (angle.sin(), angle.cos()) } else { (0.0, 0.0) };
                        let scale = (frequencies as f64).sqrt();
                        let apart =
                            (part[i] * scale - expected.0).abs().max((part[LANES + i] * scale - expected.1).abs());
                        // Angles are rounded before their sines are taken.
                        assert!(apart < 1e-14 + 1e-15 * size, "{frequencies} {size} {apart}");
                        sum += 0.5 * (part[i] + part[LANES + i]);
                    }
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
