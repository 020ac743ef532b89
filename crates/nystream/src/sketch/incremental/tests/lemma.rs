//! SkeGD, Lemma 1: E‖S_pᵀA‖² = ‖A‖², Var ≤ 2/s_p ‖A‖⁴, with the exact variance for blocks of any sizes.

use faer::Mat;

use super::super::SparseTransform;
use crate::random::Generator;

const DRAWS: usize = 4000;

/// ‖S_pᵀA‖² for many seeds.
fn draws(a: &Mat<f64>, size: usize, blocks: usize) -> Vec<f64> {
    let draw = |seed: usize| {
        let transform = SparseTransform::new(size, blocks, seed as u64).unwrap();
        let mut product = Mat::<f64>::zeros(size, a.ncols());
        for i in 0..a.nrows() {
            let mut row = Vec::new();
            transform.push_row(i as u64, &mut row);
            for entry in row {
                (0..a.ncols()).for_each(|j| product[(entry.column, j)] += entry.value * a[(i, j)]);
            }
        }
        product.squared_norm_l2()
    };
    (0..DRAWS).map(draw).collect()
}

/// 2/d² Σ_k 1/m_k · Σ_{i≠j} (a_iᵀa_j)²: places and signs of different rows are independent, so of the squared products
/// only pairs of rows that fall together in a block are left.
fn exact_variance(a: &Mat<f64>, size: usize, blocks: usize) -> f64 {
    let gram = a * a.transpose();
    let n = a.nrows();
    let pairs = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| i != j);
    let together: f64 = pairs.map(|(i, j)| gram[(i, j)] * gram[(i, j)]).sum();
    let transform = SparseTransform::new(size, blocks, 0).unwrap();
    let shares: f64 = (0..blocks).map(|k| 1.0 / transform.block(k).len() as f64).sum();
    2.0 * shares / (blocks * blocks) as f64 * together
}

#[test]
fn squared_norms_are_unbiased_and_vary_as_much_as_they_should() {
    let mut rng = Generator::new(2);
    let many = Mat::from_fn(50, 3, |_, _| rng.normal());
    let one = Mat::from_fn(30, 1, |i, _| 1.0 / (i + 1) as f64);
    for (a, size, blocks) in [(&many, 75, 4), (&many, 16, 4), (&one, 75, 4), (&one, 12, 1), (&many, 7, 3)] {
        let values = draws(a, size, blocks);
        let expected = a.squared_norm_l2();
        let variance = exact_variance(a, size, blocks);
        let mean = values.iter().sum::<f64>() / DRAWS as f64;
        // Five standard errors of the mean.
        let standard_error = (variance / DRAWS as f64).sqrt();
        assert!((mean - expected).abs() < 5.0 * standard_error, "{size}, {blocks}: {mean}, {expected}");
        // Five standard errors of the variance, from the spread of the squares themselves.
        let squares: Vec<f64> = values.iter().map(|v| (v - expected) * (v - expected)).collect();
        let found = squares.iter().sum::<f64>() / DRAWS as f64;
        let spread = squares.iter().map(|s| (s - found) * (s - found)).sum::<f64>() / DRAWS as f64;
        assert!(
            (found - variance).abs() < 5.0 * (spread / DRAWS as f64).sqrt(),
            "{size}, {blocks}: {found}, {variance}"
        );
        // Lemma 1, where the blocks are even; a little more where they are not.
        let lemma = 2.0 / size as f64 * expected * expected;
        let (largest, smallest) = (size.div_ceil(blocks) as f64, (size / blocks) as f64);
        assert!(variance <= lemma * largest / smallest);
        assert!(size % blocks != 0 || variance <= lemma);
    }
}

#[test]
fn blocks_share_the_columns_and_every_row_has_one_entry_in_each() {
    for (size, blocks) in [(75, 4), (16, 4), (7, 7), (5, 1)] {
        let transform = SparseTransform::new(size, blocks, 3).unwrap();
        let lengths: Vec<usize> = (0..blocks).map(|k| transform.block(k).len()).collect();
        assert_eq!(lengths.iter().sum::<usize>(), size);
        assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1);
        assert!((1..blocks).all(|k| transform.block(k - 1).end == transform.block(k).start));
        let mut hit = vec![false; size];
        for number in 0..2000 {
            let mut row = Vec::new();
            transform.push_row(number, &mut row);
            assert_eq!(row.len(), blocks);
            for (k, entry) in row.iter().enumerate() {
                assert!(transform.block(k).contains(&entry.column));
                assert_eq!(entry.value.abs(), 1.0 / (blocks as f64).sqrt());
                hit[entry.column] = true;
            }
        }
        // A column of at most 19 is missed 2,000 times with probability (18/19)²⁰⁰⁰ < 1e-46.
        assert!(hit.iter().all(|hit| *hit));
    }
}

#[test]
fn rows_follow_from_seed_and_number_alone() {
    let row = |seed, number| {
        let mut row = Vec::new();
        SparseTransform::new(75, 4, seed).unwrap().push_row(number, &mut row);
        row
    };
    assert_eq!(row(1, 5), row(1, 5));
    assert!((0..20).any(|i| row(1, i) != row(2, i)) && (0..20).any(|i| row(1, i) != row(1, i + 1)));
    for (size, blocks) in [(0, 1), (5, 0), (5, 6)] {
        assert!(SparseTransform::new(size, blocks, 0).is_err());
    }
}
