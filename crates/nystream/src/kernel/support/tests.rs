use super::*;
use crate::random::Generator;

fn kernels() -> Vec<Kernel> {
    vec![
        Kernel::gaussian(1.3).unwrap(),
        Kernel::laplacian(2.0).unwrap(),
        Kernel::matern52(1.5).unwrap(),
        Kernel::polynomial(3, 0.5, 1.0).unwrap(),
        Kernel::Linear,
    ]
}

/// Rows of `cols` columns, about a third of them non-zero, some repeated.
fn random_rows(count: usize, cols: usize, rng: &mut Generator) -> RowBlock {
    let mut rows = RowBlock::sparse(cols);
    for i in 0..count {
        if i > 3 && rng.bernoulli(0.1) {
            let same = RowBlock::gather(rows.rows(), &[i / 2]);
            rows.extend(same.rows());
            continue;
        }
        let indices = rng.choose(cols, 1 + cols.min(20) / 3);
        let values: Vec<f64> = indices.iter().map(|_| rng.normal()).collect();
        rows.push(Row::Sparse { indices: &indices.iter().map(|&k| k as u32).collect::<Vec<_>>(), values: &values });
    }
    rows
}

fn densely(rows: &RowBlock) -> RowBlock {
    let mut dense = RowBlock::dense(rows.cols());
    dense.extend(rows.rows());
    dense
}

/// Runs pushes, replacements and removals on a set and on a plain list, and compares values all along.
fn agrees(kernel: Kernel, cols: usize, capacity: usize, store_dense: bool, ask_dense: bool) {
    let mut rng = Generator::new(3);
    let sparse = random_rows(150, cols, &mut rng);
    let dense = densely(&sparse);
    let stored = if store_dense { dense.rows() } else { sparse.rows() };
    let asked = if ask_dense { dense.rows() } else { sparse.rows() };
    let mut set = SupportSet::new(&kernel, cols, capacity);
    let mut places: Vec<usize> = Vec::new();
    let mut out = vec![0.0; 150];
    for step in 0..300 {
        let row = rng.below(150) as usize;
        match rng.below(5) {
            0 if !places.is_empty() => {
                let i = rng.below(places.len() as u64) as usize;
                set.swap_remove(i);
                places.swap_remove(i);
            }
            1 if !places.is_empty() => {
                let i = rng.below(places.len() as u64) as usize;
                set.replace(i, stored.row(row));
                places[i] = row;
            }
            _ if places.len() < 75 => {
                set.push(stored.row(row));
                places.push(row);
            }
            _ => {
                set.clear();
                places.clear();
            }
        }
        assert_eq!(set.len(), places.len());
        let x = asked.row(step % 150);
        let out = &mut out[..places.len()];
        let weights: Vec<f64> = places.iter().map(|&row| row as f64 - 70.0).collect();
        let sum = set.weighted(x, &weights, out);
        let expected = places.iter().map(|&row| kernel.pair(x, stored.row(row)));
        let mut total = 0.0;
        let mut size = 0.0;
        for ((value, expected), weight) in out.iter().zip(expected).zip(&weights) {
            assert!((value - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{kernel:?}: {value} {expected}");
            total += expected * weight;
            size += (expected * weight).abs();
        }
        assert!((sum - total).abs() <= 1e-11 * size.max(1.0), "{sum} {total}");
        let again = out.to_vec();
        let mut copy = SupportSet::new(&kernel, cols, capacity);
        let rows = set.rows();
        (0..rows.len()).for_each(|i| copy.push(rows.rows().row(i)));
        copy.kernels(x, out);
        assert_eq!(again, out, "a copy gives the same bits");
    }
}

#[test]
fn panels_agree_with_pairs_whatever_happens() {
    for kernel in kernels() {
        for (store_dense, ask_dense) in [(false, false), (false, true), (true, false), (true, true)] {
            agrees(kernel, 17, 75, store_dense, ask_dense);
        }
    }
}

#[test]
fn lists_agree_with_pairs_whatever_happens() {
    for kernel in kernels() {
        for (store_dense, ask_dense) in [(false, false), (true, true)] {
            // So many that panels would take more than their share.
            agrees(kernel, 30, 1 << 20, store_dense, ask_dense);
        }
    }
    let wide = SupportSet::new(&Kernel::Linear, 50_000, 200);
    assert!(matches!(wide.store, Store::Lists(_)));
}

#[test]
fn equal_points_far_from_the_origin_give_one() {
    let mut set = SupportSet::new(&Kernel::gaussian(0.1).unwrap(), 3, 2);
    let row = Row::Sparse { indices: &[0, 2], values: &[1e8, -3e8] };
    set.push(row);
    set.push(Row::Sparse { indices: &[0, 2], values: &[1e8, -3e8 + 0.0625] });
    let mut out = [0.0; 2];
    set.kernels(row, &mut out);
    assert_eq!(out[0], 1.0);
    assert!((out[1] - f64::exp(-0.0625f64.powi(2) / 0.02)).abs() < 1e-12);
}

#[test]
fn a_full_place_taken_by_a_sparse_row_forgets_its_values() {
    let mut set = SupportSet::new(&Kernel::Linear, 3, 2);
    set.push(Row::Dense(&[1.0, 2.0, 3.0]));
    set.replace(0, Row::Sparse { indices: &[1], values: &[5.0] });
    let mut out = [0.0];
    set.kernels(Row::Dense(&[1.0, 1.0, 1.0]), &mut out);
    assert_eq!(out, [5.0]);
    assert!(set.rows().is_sparse() && set.size_bytes() > 0);
}
