//! The oracle: S_p, S_m and K formed whole at every round, Eq. 1 to 4 as they stand.

use faer::Mat;

use super::super::{IncrementalOptions, IncrementalSketch, PseudoInverse, SparseTransform};
use super::{normal_rows, options, sparse_rows};
use crate::kernel::Kernel;
use crate::linalg::{Svd, SymmetricEigen};
use crate::rows::{RowBlock, Rows};

/// What the formulas give when everything is formed.
struct Dense {
    phi_pp: Mat<f64>,
    phi_pm: Mat<f64>,
    /// K_sk among the rows.
    approximation: Mat<f64>,
}

/// `first` is the number of the first of the rows; samples are rows of their own, since a window may have lost them.
fn dense(kernel: &Kernel, options: &IncrementalOptions, rows: Rows, first: u64, samples: Rows) -> Dense {
    let n = rows.len();
    let k = Mat::from_fn(n, n, |i, j| kernel.pair(rows.row(i), rows.row(j)));
    let transform = SparseTransform::new(options.projection_size, options.blocks, options.seed).unwrap();
    let mut s_p = Mat::<f64>::zeros(n, options.projection_size);
    for i in 0..n {
        let mut row = Vec::new();
        transform.push_row(first + i as u64, &mut row);
        row.iter().for_each(|entry| s_p[(i, entry.column)] += entry.value);
    }
    // K S_m has the kernels with the sampled rows as its columns.
    let c_m = Mat::from_fn(n, samples.len(), |i, j| kernel.pair(rows.row(i), samples.row(j)));
    let phi_pp = s_p.transpose() * &k * &s_p;
    let phi_pm = s_p.transpose() * &c_m;
    // Eq. 3, by the whole decomposition.
    let eigen = SymmetricEigen::new(phi_pp.as_ref()).unwrap();
    let (p, rank) = (options.projection_size, options.rank);
    let root = Mat::from_fn(p, rank, |i, j| eigen.vectors[(i, p - 1 - j)] * eigen.values[p - 1 - j].max(0.0).sqrt());
    let mut pseudo_inverse = Mat::<f64>::zeros(samples.len(), p);
    let svd = Svd::new(phi_pm.as_ref()).unwrap();
    let inverted = if options.pseudo_inverse == PseudoInverse::Leading { rank } else { samples.len() };
    for l in 0..inverted {
        for (i, j) in (0..samples.len()).flat_map(|i| (0..p).map(move |j| (i, j))) {
            pseudo_inverse[(i, j)] += svd.right[(i, l)] * svd.left[(j, l)] / svd.values[l];
        }
    }
    let q = &pseudo_inverse * &root;
    let features = &c_m * &q;
    Dense { phi_pp, phi_pm, approximation: &features * features.transpose() }
}

fn assert_equal(sketch: &IncrementalSketch, rows: &RowBlock, from: usize, to: usize) {
    let kernel = *sketch.map().kernel();
    let window = rows.rows().slice(from, to);
    let samples = sketch.map().centres().rows();
    let expected = dense(&kernel, sketch.options(), window, from as u64, samples);
    let near = |a: faer::MatRef<f64>, b: &Mat<f64>, tolerance: f64| {
        let off = (a - b).norm_max();
        assert!(off < tolerance * b.norm_max().max(1.0), "rows {from} to {to}: {off}");
    };
    // Sums of at most 60 · 60 kernel values of 1e-12 each.
    near(sketch.projected_kernels(), &expected.phi_pp, 1e-11);
    near(sketch.projected_samples(), &expected.phi_pm, 1e-11);
    // The condition of Φ_pm, below 100 here, multiplies the error twice.
    near(sketch.map().approximation(window).as_ref(), &expected.approximation, 1e-9);
}

/// Starts with 20 rows, lets the others enter one by one, and compares at every round.
fn compare_all_rounds(kernel: Kernel, options: IncrementalOptions, rows: &RowBlock) {
    let most = options.most_rows;
    let mut sketch = IncrementalSketch::start(&kernel, options, rows.rows().slice(0, 20)).unwrap();
    assert_equal(&sketch, rows, 0, 20);
    let mut kernels = vec![0.0; sketch.map().centres().len()];
    for i in 20..rows.len() {
        let x = rows.rows().row(i);
        sketch.map().kernels(x, &mut kernels);
        sketch.enter(x, &kernels).unwrap();
        sketch.refresh().unwrap();
        assert_equal(&sketch, rows, (i + 1).saturating_sub(most), i + 1);
        assert_eq!((sketch.rows_held(), sketch.rows_entered()), (most.min(i + 1), i as u64 + 1));
    }
}

#[test]
fn every_round_equals_the_dense_formulas() {
    let gaussian = Kernel::gaussian(1.5).unwrap();
    compare_all_rounds(gaussian, options(3), &normal_rows(60, 4, 1));
    compare_all_rounds(
        gaussian,
        IncrementalOptions { pseudo_inverse: PseudoInverse::Full, ..options(4) },
        &normal_rows(60, 4, 2),
    );
    compare_all_rounds(Kernel::polynomial(2, 0.2, 1.0).unwrap(), options(5), &normal_rows(40, 6, 3));
    compare_all_rounds(
        Kernel::laplacian(2.0).unwrap(),
        IncrementalOptions { blocks: 1, ..options(6) },
        &sparse_rows(60, 7, 4),
    );
}

#[test]
fn a_window_equals_the_dense_formulas_of_its_rows() {
    let gaussian = Kernel::gaussian(1.5).unwrap();
    for most_rows in [20, 23] {
        compare_all_rounds(gaussian, IncrementalOptions { most_rows, ..options(7) }, &normal_rows(70, 4, 5));
        compare_all_rounds(gaussian, IncrementalOptions { most_rows, ..options(8) }, &sparse_rows(70, 5, 6));
    }
}

#[test]
fn the_random_projection_changes_little() {
    // 40 columns and rank 8: the only sizes here at which the decomposition is a randomised one.
    let options = IncrementalOptions { projection_size: 40, sample_size: 30, rank: 8, ..options(9) };
    let rows = normal_rows(60, 3, 7);
    let kernel = Kernel::gaussian(2.0).unwrap();
    let sketch = IncrementalSketch::start(&kernel, options.clone(), rows.rows()).unwrap();
    let samples = sketch.map().centres().rows();
    let expected = dense(&kernel, &options, rows.rows(), 0, samples).approximation;
    let off = (sketch.map().approximation(rows.rows()) - &expected).norm_l2() / expected.norm_l2();
    // HMT, Theorem 9.1: of the 8 leading vectors a basis of 18 misses (σ₁₉/σ₈)⁵, times what random matrices of this size
    // bring, below 100; inverting Φ_pm multiplies it by at most σ₁/σ₈.
    let of_pp = Svd::new(sketch.projected_kernels()).unwrap().values;
    let of_pm = Svd::new(sketch.projected_samples()).unwrap().values;
    let missed = (of_pp[18] / of_pp[7]).powi(5).max((of_pm[18] / of_pm[7]).powi(5));
    let tolerance = 100.0 * missed * of_pm[0] / of_pm[7];
    assert!(tolerance < 0.05, "{tolerance}");
    assert!(off > 0.0 && off < tolerance, "{off}, {tolerance}");
}
