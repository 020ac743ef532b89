//! What the three maps have in common and how they compare.

use faer::Mat;

use super::super::{
    FeatureMap, IncrementalOptions, IncrementalSketch, PseudoInverse, incremental_nystrom, modified_nystrom,
};
use super::{normal_rows, options, sparse_rows};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::linalg::Svd;

fn gaussian() -> Kernel {
    Kernel::gaussian(1.5).unwrap()
}

/// Features of single rows reproduce the approximate kernel matrix, C F Cᵀ with F = QQᵀ.
fn assert_reproduces(map: &FeatureMap, rows: crate::rows::Rows) {
    let whole = map.approximation(rows);
    let (mut kernels, mut features) = (vec![0.0; map.centres().len()], vec![0.0; map.dim()]);
    let one: Vec<Vec<f64>> = (0..rows.len())
        .map(|i| {
            map.kernels(rows.row(i), &mut kernels);
            map.map(&kernels, &mut features);
            features.clone()
        })
        .collect();
    let c = Mat::from_fn(rows.len(), map.centres().len(), |i, j| {
        map.kernel().pair(rows.row(i), map.centres().rows().row(j))
    });
    let f = map.weights() * map.weights().transpose();
    let literal = &c * &f * c.transpose();
    let (mut missed, mut total) = (0.0, 0.0);
    for (i, j) in (0..rows.len()).flat_map(|i| (0..rows.len()).map(move |j| (i, j))) {
        let product: f64 = one[i].iter().zip(&one[j]).map(|(a, b)| a * b).sum();
        assert!((product - whole[(i, j)]).abs() < 1e-11 && (literal[(i, j)] - whole[(i, j)]).abs() < 1e-9);
        let exact = map.kernel().pair(rows.row(i), rows.row(j));
        missed += (whole[(i, j)] - exact).powi(2);
        total += exact * exact;
    }
    assert!((map.relative_error(rows) - missed / total).abs() < 1e-11);
}

#[test]
fn features_reproduce_the_approximate_kernel_matrix() {
    for rows in [normal_rows(40, 3, 1), sparse_rows(40, 6, 2)] {
        let rows = rows.rows();
        let start = rows.slice(0, 20);
        assert_reproduces(IncrementalSketch::start(&gaussian(), options(1), start).unwrap().map(), rows);
        assert_reproduces(&incremental_nystrom(gaussian(), start, 8).unwrap(), rows);
        assert_reproduces(&modified_nystrom(gaussian(), rows, &[0, 3, 4, 9, 30], 4).unwrap(), rows);
    }
}

#[test]
fn nystrom_of_all_points_is_exact_and_of_some_is_the_formula() {
    let rows = normal_rows(30, 4, 3);
    let rows = rows.rows();
    assert!(incremental_nystrom(gaussian(), rows, 30).unwrap().relative_error(rows) < 1e-18);
    let all: Vec<usize> = (0..30).collect();
    assert!(modified_nystrom(gaussian(), rows, &all, 30).unwrap().relative_error(rows) < 1e-18);
    // K C† literally.
    let chosen = [2, 5, 7, 20];
    let k = gaussian().matrix(rows);
    let c = Mat::from_fn(30, 4, |i, j| k[(i, chosen[j])]);
    let inverse = Svd::new(c.as_ref()).unwrap().solve(Mat::<f64>::identity(30, 30).as_ref());
    let expected = &c * &inverse * &k * inverse.transpose() * c.transpose();
    let found = modified_nystrom(gaussian(), rows, &chosen, 4).unwrap().approximation(rows);
    assert!((found - &expected).norm_max() < 1e-11);
    // W† literally, of the first four.
    let w = Svd::new(k.submatrix(0, 0, 4, 4)).unwrap();
    let expected = k.subcols(0, 4) * w.solve(k.subrows(0, 4));
    let found = incremental_nystrom(gaussian(), rows.slice(0, 4), 4).unwrap().approximation(rows);
    assert!((found - &expected).norm_max() < 1e-11);
}

#[test]
fn the_modified_map_is_the_best_and_a_large_sketch_comes_close() {
    // F_mod minimises ‖C F Cᵀ − K‖, so no other map with the same points is better; Eq. 7 shrinks with τ = s_m / s_p.
    let rows = normal_rows(120, 3, 4);
    let rows = rows.rows();
    let error = |projection_size: usize, seed: u64| {
        let options = IncrementalOptions {
            projection_size,
            sample_size: 10,
            rank: projection_size,
            pseudo_inverse: PseudoInverse::Full,
            ..options(seed)
        };
        let sketch = IncrementalSketch::start(&gaussian(), options, rows).unwrap();
        let samples = sketch.map().centres().rows();
        let place = |j: usize| (0..120).find(|&i| gaussian().pair(rows.row(i), samples.row(j)) == 1.0).unwrap();
        let sampled: Vec<usize> = (0..10).map(place).collect();
        let best = modified_nystrom(gaussian(), rows, &sampled, 10).unwrap().relative_error(rows);
        sketch.map().relative_error(rows) / best
    };
    let mean = |size: usize| (0..10).map(|seed| error(size, seed)).sum::<f64>() / 10.0;
    let ratios = [mean(12), mean(40), mean(110)];
    assert!((0..10).all(|seed| error(40, seed) >= 1.0 - 1e-9));
    assert!(ratios[0] > ratios[1] && ratios[1] > ratios[2] && ratios[2] < 1.5, "{ratios:?}");
}

#[test]
fn points_that_repeat_do_no_harm() {
    // A kernel matrix of rank one.
    let mut rows = crate::rows::RowBlock::dense(2);
    (0..20).for_each(|_| rows.push(crate::rows::Row::Dense(&[1.0, 2.0])));
    let rows = rows.rows();
    for inverse in [PseudoInverse::Leading, PseudoInverse::Full] {
        let options = IncrementalOptions { pseudo_inverse: inverse, ..options(1) };
        let mut sketch = IncrementalSketch::start(&gaussian(), options, rows).unwrap();
        assert!(sketch.map().relative_error(rows) < 1e-20);
        sketch.enter(rows.row(0), &[1.0; 9]).unwrap();
        sketch.refresh().unwrap();
        assert!(sketch.map().relative_error(rows) < 1e-20);
    }
    assert!(incremental_nystrom(gaussian(), rows, 5).unwrap().relative_error(rows) < 1e-20);
    assert!(modified_nystrom(gaussian(), rows, &[0, 1, 2], 3).unwrap().relative_error(rows) < 1e-20);
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let rows = normal_rows(20, 2, 1);
    let refused = |change: &dyn Fn(&mut IncrementalOptions), name: &str| {
        let mut changed = options(1);
        change(&mut changed);
        match IncrementalSketch::start(&gaussian(), changed, rows.rows()) {
            Err(Error::InvalidParam { name: found, .. }) => assert_eq!(found, name),
            other => panic!("{name}: {other:?}"),
        }
    };
    refused(&|o| o.projection_size = 0, "sketch-size");
    refused(&|o| o.blocks = 16, "blocks");
    refused(&|o| o.sample_size = 21, "sampled");
    refused(&|o| o.sample_size = 0, "sampled");
    refused(&|o| o.rank = 16, "rank");
    refused(&|o| o.rank = 0, "rank");
    refused(&|o| o.most_rows = 19, "history");
    assert!(incremental_nystrom(gaussian(), rows.rows(), 21).is_err());
    assert!(modified_nystrom(gaussian(), rows.rows(), &[20], 1).is_err());
    assert!(modified_nystrom(gaussian(), rows.rows(), &[], 1).is_err());
    let bad = [1.0, f64::NAN];
    assert!(IncrementalSketch::start(&gaussian(), options(1), crate::rows::Rows::dense(&bad, 1, 2).unwrap()).is_err());
}

#[test]
fn a_row_without_a_finite_kernel_value_is_refused_and_changes_nothing() {
    let rows = normal_rows(20, 2, 1);
    let kernel = Kernel::polynomial(3, 1.0, 1.0).unwrap();
    let mut sketch = IncrementalSketch::start(&kernel, options(1), rows.rows()).unwrap();
    let before = sketch.projected_kernels().to_owned();
    let message = sketch.enter(crate::rows::Row::Dense(&[1e200, 0.0]), &[1.0; 9]).unwrap_err().to_string();
    assert!(message.contains("row 21") && message.contains("scale the data"), "{message}");
    assert_eq!((sketch.projected_kernels(), sketch.rows_entered()), (before.as_ref(), 20));
}
