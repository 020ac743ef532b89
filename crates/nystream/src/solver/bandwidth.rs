//! Bandwidths from a small sample: the median heuristic, and centred kernel alignment.
//!
//! Alignment: C. Cortes, M. Mohri, A. Rostamizadeh, "Algorithms for learning kernels based on
//! centered alignment", JMLR 13 (2012): the kernel whose centred matrix has the largest cosine with
//! the centred matrix of the targets, over the grid σ ∈ {2^-5, 2^-4.5, …, 2^7} of SkeGD (ICML 2019),
//! section 6.1.

use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::rows::Rows;
use faer::Mat;

/// The largest sample that either method looks at: both are quadratic in it.
pub const SAMPLE: usize = 1000;

/// The median of the distances between different rows (of the first 1,000); 1 if all rows are the same.
pub fn median_bandwidth(rows: Rows) -> f64 {
    let rows = rows.slice(0, rows.len().min(SAMPLE));
    let n = rows.len();
    let mut distances = Vec::with_capacity(n * n.saturating_sub(1) / 2);
    for i in 0..n {
        for j in 0..i {
            let squared = crate::kernel::squared_distance(rows.row(i), rows.row(j));
            if squared > 0.0 && squared.is_finite() {
                distances.push(squared);
            }
        }
    }
    if distances.is_empty() {
        return 1.0;
    }
    let middle = distances.len() / 2;
    let (_, median, _) = distances.select_nth_unstable_by(middle, f64::total_cmp);
    median.sqrt()
}

/// The grid of SkeGD, section 6.1: 2^-5, 2^-4.5, …, 2^7.
pub fn alignment_grid() -> Vec<f64> {
    (0..=24).map(|i| 2f64.powf(-5.0 + 0.5 * f64::from(i))).collect()
}

/// The bandwidth of the grid with the largest centred alignment, and that alignment.
///
/// `targets` is row-major, rows × outputs (class codes or numbers). At most 1,000 rows are used.
pub fn alignment_bandwidth(kernel: &Kernel, rows: Rows, targets: &[f64], outputs: usize) -> Result<(f64, f64)> {
    if kernel.bandwidth().is_none() {
        let found = kernel.name().to_owned();
        return Err(Error::InvalidParam { name: "bandwidth", found, expected: "a kernel that has a bandwidth" });
    }
    if targets.len() != rows.len() * outputs {
        return Err(Error::Shape { what: "targets", found: targets.len(), expected: rows.len() * outputs });
    }
    let n = rows.len().min(SAMPLE);
    let rows = rows.slice(0, n);
    let mut centred_targets = Mat::from_fn(n, outputs, |i, t| targets[i * outputs + t]);
    for t in 0..outputs {
        let mean = centred_targets.col(t).iter().sum::<f64>() / n as f64;
        (0..n).for_each(|i| centred_targets[(i, t)] -= mean);
    }
    let target_norm = (centred_targets.transpose() * &centred_targets).norm_l2();
    let centres = Centres::new(rows);
    let mut workspace = KernelWorkspace::default();
    let mut matrix = Mat::zeros(n, n);
    let mut best = (median_bandwidth(rows), f64::NEG_INFINITY);
    for bandwidth in alignment_grid() {
        kernel.with_bandwidth(bandwidth)?.block(rows, &centres, &mut workspace, matrix.as_mut());
        let alignment = centred_alignment(&matrix, &centred_targets, target_norm);
        if alignment > best.1 {
            best = (bandwidth, alignment);
        }
    }
    Ok(best)
}

/// ⟨HKH, YYᵀ⟩ / (‖HKH‖ ‖YYᵀ‖) with Y already centred.
fn centred_alignment(matrix: &Mat<f64>, targets: &Mat<f64>, target_norm: f64) -> f64 {
    let n = matrix.nrows() as f64;
    let inner: f64 = {
        let product = matrix * targets;
        (0..targets.ncols())
            .map(|t| product.col(t).iter().zip(targets.col(t).iter()).map(|(a, b)| a * b).sum::<f64>())
            .sum()
    };
    // ‖HKH‖² = ‖K‖² − (2/n)‖K1‖² + (1ᵀK1)²/n².
    let sums: Vec<f64> = matrix.col_iter().map(|column| column.iter().sum()).collect();
    let total: f64 = sums.iter().sum();
    let squared = matrix.squared_norm_l2() - 2.0 / n * sums.iter().map(|s| s * s).sum::<f64>() + (total / n).powi(2);
    // A constant kernel matrix centres to zero, up to rounding.
    if squared <= 1e-14 * matrix.squared_norm_l2() || target_norm == 0.0 {
        return 0.0;
    }
    inner / (squared.sqrt() * target_norm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn median_is_that_of_the_distances_without_duplicates() {
        // Distances 1, 1, 2 (and one 0 between the duplicates, twice counted rows aside).
        let points = [0.0, 1.0, 2.0];
        assert_eq!(median_bandwidth(Rows::dense(&points, 3, 1).unwrap()), 1.0);
        assert_eq!(median_bandwidth(Rows::dense(&[3.0; 8], 4, 2).unwrap()), 1.0);
        assert_eq!(median_bandwidth(Rows::dense(&[5.0], 1, 1).unwrap()), 1.0);
    }

    #[test]
    fn alignment_equals_the_definition() {
        let mut rng = Generator::new(8);
        let points: Vec<f64> = (0..60).map(|_| rng.normal()).collect();
        let rows = Rows::dense(&points, 20, 3).unwrap();
        let y: Vec<f64> = (0..20).map(|i| (points[3 * i] * 2.0).sin() + 5.0).collect();
        let (best, value) = alignment_bandwidth(&Kernel::gaussian(1.0).unwrap(), rows, &y, 1).unwrap();
        let mean = y.iter().sum::<f64>() / 20.0;
        let h = Mat::from_fn(20, 20, |i, j| f64::from(u8::from(i == j)) - 1.0 / 20.0);
        let mut largest = (0.0, f64::NEG_INFINITY);
        for sigma in alignment_grid() {
            let kernel = Kernel::gaussian(sigma).unwrap();
            let k = &h * Mat::from_fn(20, 20, |i, j| kernel.pair(rows.row(i), rows.row(j))) * &h;
            let t = Mat::from_fn(20, 20, |i, j| (y[i] - mean) * (y[j] - mean));
            let inner: f64 = (0..20).map(|i| (0..20).map(|j| k[(i, j)] * t[(i, j)]).sum::<f64>()).sum();
            let cosine = inner / (k.norm_l2() * t.norm_l2());
            if cosine > largest.1 {
                largest = (sigma, cosine);
            }
        }
        assert_eq!(best, largest.0);
        assert!((value - largest.1).abs() < 1e-10);
    }

    #[test]
    fn a_fast_wave_gets_a_smaller_bandwidth_than_a_slow_one() {
        let mut rng = Generator::new(2);
        let points: Vec<f64> = (0..300).map(|_| 4.0 * rng.uniform()).collect();
        let rows = Rows::dense(&points, 300, 1).unwrap();
        let wave = |f: f64| points.iter().map(|x| (f * x).sin()).collect::<Vec<f64>>();
        let kernel = Kernel::gaussian(1.0).unwrap();
        let slow = alignment_bandwidth(&kernel, rows, &wave(1.0), 1).unwrap().0;
        let fast = alignment_bandwidth(&kernel, rows, &wave(12.0), 1).unwrap().0;
        assert!(fast < slow, "{fast} {slow}");
        assert!(alignment_bandwidth(&Kernel::Linear, rows, &wave(1.0), 1).is_err());
    }
}
