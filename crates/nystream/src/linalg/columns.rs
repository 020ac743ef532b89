//! Columns of a tall block: inner products with a few vectors, in one reading of the block; their means taken away.

use faer::{Mat, MatRef};
use rayon::prelude::*;

use super::is_divided;

/// Sums that run side by side, so that additions need not wait for each other.
const CHAINS: usize = 16;

/// Adds, for every column c of `block`, Σc to `sums` and cᵀv, for every column v of `vectors`, to `products` (a column
/// of `block` after the other, `vectors.ncols()` numbers each). The same on any number of threads.
pub fn add_column_products(block: MatRef<'_, f64>, vectors: MatRef<'_, f64>, sums: &mut [f64], products: &mut [f64]) {
    let width = vectors.ncols();
    debug_assert_eq!((sums.len(), products.len()), (block.ncols(), block.ncols() * width));
    let one = |(j, (sum, products)): (usize, (&mut f64, &mut [f64]))| {
        let column = block.col(j);
        let Some(column) = column.try_as_col_major().map(|c| c.as_slice()) else { return };
        *sum += total(column);
        for (product, vector) in products.iter_mut().zip(vectors.col_iter()) {
            if let Some(vector) = vector.try_as_col_major() {
                *product += dot(column, vector.as_slice());
            }
        }
    };
    if width == 0 {
        block.col_iter().zip(sums).for_each(|(c, sum)| *sum += c.iter().sum::<f64>());
    } else if !is_divided(block.nrows() * block.ncols() * (width + 1)) {
        sums.iter_mut().zip(products.chunks_exact_mut(width)).enumerate().for_each(one);
    } else {
        sums.par_iter_mut().zip(products.par_chunks_exact_mut(width)).with_min_len(32).enumerate().for_each(one);
    }
}

/// Takes its mean away from every column.
pub(crate) fn centre_columns(matrix: &mut Mat<f64>) {
    for j in 0..matrix.ncols() {
        let column = matrix.col_as_slice_mut(j);
        let mean = total(column) / column.len() as f64;
        column.iter_mut().for_each(|v| *v -= mean);
    }
}

fn total(a: &[f64]) -> f64 {
    let (groups, rest) = a.as_chunks::<CHAINS>();
    let mut sums = [0.0; CHAINS];
    for group in groups {
        (0..CHAINS).for_each(|i| sums[i] += group[i]);
    }
    sums.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

/// aᵀb of vectors of the same length, several sums at once.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let ((left, left_rest), (right, right_rest)) = (a.as_chunks::<CHAINS>(), b.as_chunks::<CHAINS>());
    let mut sums = [0.0; CHAINS];
    for (x, y) in left.iter().zip(right) {
        (0..CHAINS).for_each(|i| sums[i] += x[i] * y[i]);
    }
    sums.iter().sum::<f64>() + left_rest.iter().zip(right_rest).map(|(x, y)| x * y).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_equal_the_matrix_products() {
        let mut rng = crate::random::Generator::new(5);
        for (rows, columns, width) in [(37, 5, 1), (2000, 301, 3), (16, 2, 2), (1, 1, 1)] {
            let block = Mat::from_fn(rows, columns, |_, _| rng.normal());
            let vectors = Mat::from_fn(rows, width, |_, _| rng.normal());
            let (mut sums, mut products) = (vec![1.0; columns], vec![2.0; columns * width]);
            add_column_products(block.as_ref(), vectors.as_ref(), &mut sums, &mut products);
            let expected = block.transpose() * &vectors;
            for j in 0..columns {
                assert!((sums[j] - 1.0 - block.col(j).iter().sum::<f64>()).abs() < 1e-11);
                for t in 0..width {
                    assert!((products[j * width + t] - 2.0 - expected[(j, t)]).abs() < 1e-11);
                }
            }
        }
    }
}
