//! Rows and blocks of kernels against the definition of one pair, in every mix of dense and sparse.

use faer::Mat;
use nystream::kernel::{Centres, Kernel, KernelWorkspace};
use nystream::random::Generator;
use nystream::rows::{Row, RowBlock, Rows, SparseRows};

/// Relative accuracy promised for kernel values that are not vanishing.
const TOLERANCE: f64 = 1e-12;
/// Values below may be flushed to 0.
const VANISHING: f64 = 1e-302;

fn kernels(bandwidth: f64) -> [Kernel; 6] {
    [
        Kernel::gaussian(bandwidth).unwrap(),
        Kernel::laplacian(bandwidth).unwrap(),
        Kernel::matern32(bandwidth).unwrap(),
        Kernel::matern52(bandwidth).unwrap(),
        Kernel::polynomial(3, 0.5, 1.0).unwrap(),
        Kernel::Linear,
    ]
}

/// Normal values around `offset`, each kept with probability `density`.
fn points(rng: &mut Generator, rows: usize, cols: usize, density: f64, offset: f64) -> RowBlock {
    let mut block = RowBlock::dense(cols);
    for _ in 0..rows {
        let value = |rng: &mut Generator| if rng.bernoulli(density) { offset + rng.normal() } else { 0.0 };
        let row: Vec<f64> = (0..cols).map(|_| value(rng)).collect();
        block.push(Row::Dense(&row));
    }
    block
}

fn sparse(block: &RowBlock) -> RowBlock {
    let mut out = RowBlock::sparse(block.cols());
    out.extend(block.rows());
    out
}

fn block_of(kernel: &Kernel, xs: Rows, centres: &Centres) -> Mat<f64> {
    // A larger matrix around it: columns need not follow each other directly, nothing else may be written.
    let mut around = Mat::full(xs.len() + 3, centres.len(), -7.0);
    let inner = around.as_mut().submatrix_mut(1, 0, xs.len(), centres.len());
    kernel.block(xs, centres, &mut KernelWorkspace::default(), inner);
    for j in 0..centres.len() {
        assert_eq!([around[(0, j)], around[(xs.len() + 1, j)], around[(xs.len() + 2, j)]], [-7.0; 3]);
    }
    around.submatrix(1, 0, xs.len(), centres.len()).to_owned()
}

/// Compares block and row evaluation with pairs. Inner products may cancel: their error is relative to the norms.
fn check(kernel: &Kernel, xs: Rows, zs: Rows, what: &str) {
    let centres = Centres::new(zs);
    let block = block_of(kernel, xs, &centres);
    let mut row = vec![f64::NAN; zs.len()];
    for i in 0..xs.len() {
        kernel.row(xs.row(i), &centres, &mut row);
        for j in 0..zs.len() {
            let (x, z) = (xs.row(i), zs.row(j));
            let expected = kernel.pair(x, z);
            let norms = (x.squared_norm() * z.squared_norm()).sqrt();
            let scale = match kernel {
                Kernel::Linear => norms,
                Kernel::Polynomial { degree, scale, offset } => (scale * norms + offset).powi(*degree as i32),
                _ => expected,
            };
            for (found, shape) in [(block[(i, j)], "block"), (row[j], "row")] {
                assert!(
                    (found - expected).abs() <= TOLERANCE * scale + VANISHING,
                    "{} {shape} {what} at ({i}, {j}): {found:e} against {expected:e}",
                    kernel.name()
                );
                assert!(kernel.bandwidth().is_none() || (0.0..=1.0).contains(&found));
            }
        }
    }
}

/// All four mixes of dense and sparse.
fn check_mixes(kernel: &Kernel, xs: &RowBlock, zs: &RowBlock, what: &str) {
    let (xs_sparse, zs_sparse) = (sparse(xs), sparse(zs));
    check(kernel, xs.rows(), zs.rows(), &format!("{what}, dense × dense"));
    check(kernel, xs_sparse.rows(), zs.rows(), &format!("{what}, sparse × dense"));
    check(kernel, xs.rows(), zs_sparse.rows(), &format!("{what}, dense × sparse"));
    check(kernel, xs_sparse.rows(), zs_sparse.rows(), &format!("{what}, sparse × sparse"));
}

#[test]
fn ordinary_points_of_every_width() {
    let mut rng = Generator::new(1);
    for cols in [1, 2, 8, 9, 20, 32, 33, 54, 300] {
        for (rows, count) in [(1, 1), (5, 33), (70, 40)] {
            let xs = points(&mut rng, rows, cols, 1.0, 0.0);
            let zs = points(&mut rng, count, cols, 1.0, 0.0);
            for kernel in kernels((cols as f64).sqrt()) {
                check_mixes(&kernel, &xs, &zs, &format!("{rows} × {count} in {cols} columns"));
            }
        }
    }
}

#[test]
fn thin_points_go_through_the_inverted_index() {
    let mut rng = Generator::new(2);
    for (cols, density) in [(300, 0.02), (5000, 0.001), (40, 0.0)] {
        let xs = points(&mut rng, 20, cols, density, 0.5);
        let zs = points(&mut rng, 70, cols, density, 0.5);
        for kernel in kernels(2.0) {
            check_mixes(&kernel, &xs, &zs, &format!("density {density} in {cols} columns"));
        }
    }
}

#[test]
fn an_offset_costs_no_accuracy() {
    let mut rng = Generator::new(3);
    for cols in [8, 40, 300] {
        for offset in [100.0, 1e5] {
            let xs = points(&mut rng, 40, cols, 1.0, offset);
            let zs = points(&mut rng, 40, cols, 1.0, offset);
            for kernel in &kernels((cols as f64).sqrt())[..4] {
                check_mixes(kernel, &xs, &zs, &format!("offset {offset} in {cols} columns"));
            }
        }
    }
}

#[test]
fn every_bandwidth_of_a_wide_search_is_accurate() {
    let mut rng = Generator::new(4);
    for cols in [3, 54, 300] {
        let xs = points(&mut rng, 33, cols, 1.0, 0.0);
        let mut zs = points(&mut rng, 33, cols, 1.0, 0.0);
        // Near neighbours, whose kernels stay visible at small bandwidths.
        for i in 0..20 {
            let mut near = vec![0.0; cols];
            xs.rows().row(i).copy_to(&mut near);
            near.iter_mut().for_each(|v| *v += rng.normal() * 10f64.powi(-(i as i32) / 2));
            zs.push(Row::Dense(&near));
        }
        for power in -10..=14 {
            for kernel in &kernels(f64::from(power).exp2())[..4] {
                check_mixes(kernel, &xs, &zs, &format!("bandwidth 2^{power} in {cols} columns"));
            }
        }
    }
}

#[test]
fn equal_points_give_exactly_one() {
    let mut rng = Generator::new(5);
    for cols in [0, 1, 8, 20, 54, 300] {
        for offset in [0.0, 1e3, 1e9, 1e155, 1e300] {
            for bandwidth in [1e-200, 1e-3, 1.0, 1e4, 1e200] {
                let xs = points(&mut rng, 35, cols, 0.7, offset);
                let thin = sparse(&xs);
                for kernel in &kernels(bandwidth)[..4] {
                    for (left, right) in [(&xs, &xs), (&xs, &thin), (&thin, &xs), (&thin, &thin)] {
                        let block = block_of(kernel, left.rows(), &Centres::new(right.rows()));
                        let ones = (0..35).all(|i| block[(i, i)] == 1.0);
                        assert!(ones, "{} bandwidth {bandwidth} offset {offset} in {cols} columns", kernel.name());
                        for j in 0..35 {
                            assert!((0..35).all(|i| (0.0..=1.0).contains(&block[(i, j)])));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn far_and_huge_points_are_zero_or_right_but_never_nan() {
    let mut rng = Generator::new(6);
    for cols in [1, 9, 20, 54, 300] {
        let mut xs = points(&mut rng, 40, cols, 1.0, 0.0);
        for (size, value) in [1e3, 1e8, 1e150, -1e150, 1e160, f64::MAX, -f64::MAX].iter().enumerate() {
            let mut far = vec![0.0; cols];
            far[size % cols] = *value;
            xs.push(Row::Dense(&far));
            far.fill(*value);
            xs.push(Row::Dense(&far));
        }
        let near = points(&mut rng, 40, cols, 1.0, 0.0);
        for kernel in &kernels(1.0)[..4] {
            check_mixes(kernel, &xs, &near, &format!("huge rows in {cols} columns"));
            check_mixes(kernel, &near, &xs, &format!("huge centres in {cols} columns"));
            check_mixes(kernel, &xs, &xs, &format!("huge both in {cols} columns"));
        }
    }
}

#[test]
fn any_number_of_threads_and_any_cut_give_the_same_bits() {
    let mut rng = Generator::new(7);
    for (cols, density) in [(5, 1.0), (20, 1.0), (54, 1.0), (300, 1.0), (300, 0.02)] {
        let xs = points(&mut rng, 700, cols, density, 1.0);
        let zs = points(&mut rng, 140, cols, density, 1.0);
        let (xs, zs) = if density < 1.0 { (sparse(&xs), sparse(&zs)) } else { (xs, zs) };
        let centres = Centres::new(zs.rows());
        for kernel in kernels(3.0) {
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| block_of(&kernel, xs.rows(), &centres))
            };
            let whole = on(1);
            assert_eq!(whole, on(3));
            let mut start = 0;
            for rows in [1, 2, 31, 33, 64, 100, 469] {
                let part = block_of(&kernel, xs.rows().slice(start, start + rows), &centres);
                assert!(part == whole.subrows(start, rows), "{rows} rows from {start} in {cols} columns");
                start += rows;
            }
        }
    }
}

#[test]
fn a_workspace_serves_blocks_of_any_shape() {
    let mut rng = Generator::new(8);
    let mut workspace = KernelWorkspace::default();
    for (rows, count, cols) in [(300, 200, 54), (3, 5, 54), (100, 300, 4), (600, 90, 80), (1, 1, 20)] {
        let xs = points(&mut rng, rows, cols, 1.0, 0.0);
        let centres = Centres::new(points(&mut rng, count, cols, 1.0, 0.0).rows());
        for kernel in kernels(4.0) {
            let mut out = Mat::full(rows, count, f64::NAN);
            kernel.block(xs.rows(), &centres, &mut workspace, out.as_mut());
            assert_eq!(out, block_of(&kernel, xs.rows(), &centres));
        }
    }
    let held = workspace.size_bytes();
    let xs = points(&mut rng, 600, 80, 1.0, 0.0);
    let centres = Centres::new(points(&mut rng, 90, 80, 1.0, 0.0).rows());
    let mut out = Mat::zeros(600, 90);
    Kernel::Linear.block(xs.rows(), &centres, &mut workspace, out.as_mut());
    assert!(held > 0 && workspace.size_bytes() == held);
}

#[test]
fn empty_sets_and_empty_rows_are_fine() {
    let none = RowBlock::dense(4);
    let one = Rows::dense(&[1.0, 2.0, 3.0, 4.0], 1, 4).unwrap();
    let centres = Centres::new(none.rows());
    assert!(centres.is_empty() && centres.dim() == 4);
    assert_eq!(block_of(&Kernel::Linear, one, &centres).ncols(), 0);
    assert_eq!(block_of(&Kernel::Linear, none.rows(), &Centres::new(one)).nrows(), 0);
    Kernel::Linear.row(one.row(0), &centres, &mut []);

    let blank = SparseRows::new(&[0, 0, 0], &[], &[], 1_000_000).unwrap();
    for kernel in kernels(1.0) {
        check(&kernel, Rows::Sparse(blank), Rows::Sparse(blank), "empty sparse rows");
        check(&kernel, Rows::dense(&[], 3, 0).unwrap(), Rows::dense(&[], 2, 0).unwrap(), "no columns");
    }
}

#[test]
fn a_million_columns_take_little_memory() {
    let indices = [5, 999_999, 0, 5, 70_000];
    let rows = SparseRows::new(&[0, 2, 5], &indices, &[1.0, 2.0, 3.0, -1.0, 0.5], 1_000_000).unwrap();
    assert!(Centres::new(Rows::Sparse(rows)).size_bytes() < 2000);
    for kernel in kernels(1.0) {
        check(&kernel, Rows::Sparse(rows), Rows::Sparse(rows), "a million columns");
    }
}

#[test]
fn matrices_are_symmetric_with_exact_diagonals() {
    let mut rng = Generator::new(9);
    for (n, cols) in [(1, 3), (300, 3), (520, 40)] {
        let xs = points(&mut rng, n, cols, 0.8, 0.0);
        for (kernel, xs) in kernels(2.0).iter().flat_map(|k| [(*k, xs.clone()), (*k, sparse(&xs))]) {
            let matrix = kernel.matrix(xs.rows());
            let mut diagonal = vec![0.0; n];
            kernel.diagonals(xs.rows(), &mut diagonal);
            assert_eq!(matrix, matrix.transpose());
            for i in 0..n {
                assert_eq!(matrix[(i, i)], diagonal[i]);
                assert_eq!(diagonal[i], kernel.diagonal(xs.rows().row(i)));
                let j = (i * 7) % n;
                let expected = kernel.pair(xs.rows().row(i), xs.rows().row(j));
                assert!((matrix[(i, j)] - expected).abs() <= 1e-12 * diagonal[i].max(diagonal[j]).max(1.0));
            }
        }
    }
    assert_eq!(Kernel::Linear.matrix(RowBlock::dense(2).rows()).nrows(), 0);
}
