//! Sums of outer products Σ φφᵀ, a block of rows at a time, at matrix-multiply speed.
//!
//! The lower triangle is kept as square tiles, each its own buffer, so that threads share nothing
//! and every tile is summed in the order of the rows: the result does not depend on the number of
//! threads.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::PARALLEL_WORK;
use crate::error::{Error, Result};

/// Side of a tile: a multiple of 12 and 4, the shape of the product's innermost loop; larger ones balance worse.
const TILE: usize = 168;

/// A running Σ φφᵀ.
#[derive(Debug, Clone)]
pub struct GramSum {
    dim: usize,
    tiles: Vec<Tile>,
}

#[derive(Debug, Clone)]
struct Tile {
    row: usize,
    col: usize,
    height: usize,
    width: usize,
    data: Vec<f64>,
}

impl GramSum {
    /// Zero, of `dim × dim`.
    pub fn new(dim: usize) -> Self {
        let starts: Vec<usize> = (0..dim).step_by(TILE).collect();
        let tiles = starts.iter().flat_map(|&col| {
            starts.iter().filter(move |&&row| row >= col).map(move |&row| {
                let (height, width) = (TILE.min(dim - row), TILE.min(dim - col));
                Tile { row, col, height, width, data: vec![0.0; height * width] }
            })
        });
        Self { dim, tiles: tiles.collect() }
    }

    /// Number of rows and columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Adds ΦᵀΦ for a block of rows Φ (rows × dim, column-major).
    pub fn add(&mut self, block: MatRef<'_, f64>) {
        debug_assert_eq!(block.ncols(), self.dim);
        let rows = block.nrows();
        let update = |tile: &mut Tile| {
            let left = block.subcols(tile.row, tile.height).transpose();
            let right = block.subcols(tile.col, tile.width);
            let target = MatMut::from_column_major_slice_mut(&mut tile.data, tile.height, tile.width);
            if tile.row == tile.col {
                // Only the lower triangle is ever read.
                let whole = BlockStructure::Rectangular;
                let lower = BlockStructure::TriangularLower;
                triangular::matmul(target, lower, Accum::Add, left, whole, right, whole, 1.0, Par::Seq);
            } else {
                matmul(target, Accum::Add, left, right, 1.0, Par::Seq);
            }
        };
        if rows * self.dim * self.dim / 2 < PARALLEL_WORK {
            self.tiles.iter_mut().for_each(update);
        } else {
            // Each tile can be taken by whichever thread is free: one held up by the rest of the machine must not hold up all.
            self.tiles.par_iter_mut().with_max_len(1).for_each(update);
        }
    }

    /// Adds another sum of the same size.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.dim != other.dim {
            return Err(Error::Shape { what: "Gram sum", found: other.dim, expected: self.dim });
        }
        for (tile, more) in self.tiles.iter_mut().zip(&other.tiles) {
            tile.data.iter_mut().zip(&more.data).for_each(|(a, b)| *a += b);
        }
        Ok(())
    }

    /// Multiplies the sum by a number.
    pub fn scale(&mut self, factor: f64) {
        self.tiles.iter_mut().flat_map(|tile| &mut tile.data).for_each(|v| *v *= factor);
    }

    /// The sum whose lower triangle this is.
    pub fn from_matrix(matrix: MatRef<'_, f64>) -> Self {
        let mut sum = Self::new(matrix.nrows());
        for tile in &mut sum.tiles {
            for j in 0..tile.width {
                for i in 0..tile.height {
                    let (row, col) = (tile.row + i, tile.col + j);
                    if row >= col {
                        tile.data[j * tile.height + i] = matrix[(row, col)];
                    }
                }
            }
        }
        sum
    }

    /// Writes the entries (j, j), (j + 1, j), … of column j.
    pub fn write_column(&self, j: usize, out: &mut [f64]) {
        let (side, place) = (j / TILE, j % TILE);
        let sides = self.dim.div_ceil(TILE);
        // Columns of tiles before this one have one tile less each.
        let first = side * sides - side * side.saturating_sub(1) / 2;
        let mut done = 0;
        for tile in &self.tiles[first..first + sides - side] {
            let column = &tile.data[place * tile.height..(place + 1) * tile.height];
            // In the tile on the diagonal only the rows from the diagonal on.
            let column = if tile.row == tile.col { &column[place..] } else { column };
            out[done..done + column.len()].copy_from_slice(column);
            done += column.len();
        }
    }

    /// Writes the lower triangle.
    pub fn write_lower(&self, mut out: MatMut<'_, f64>) {
        let mut column = vec![0.0; self.dim];
        for j in 0..self.dim {
            self.write_column(j, &mut column[j..]);
            (j..self.dim).for_each(|i| out[(i, j)] = column[i]);
        }
    }

    /// The whole symmetric matrix.
    pub fn to_matrix(&self) -> Mat<f64> {
        let mut out = Mat::zeros(self.dim, self.dim);
        for tile in &self.tiles {
            let data = MatRef::from_column_major_slice(&tile.data, tile.height, tile.width);
            let mut target = out.as_mut().submatrix_mut(tile.row, tile.col, tile.height, tile.width);
            if tile.row == tile.col {
                for j in 0..tile.width {
                    for i in j..tile.height {
                        target[(i, j)] = data[(i, j)];
                        target[(j, i)] = data[(i, j)];
                    }
                }
            } else {
                target.copy_from(data);
                let mirror = out.as_mut().submatrix_mut(tile.col, tile.row, tile.width, tile.height);
                mirror.transpose_mut().copy_from(data);
            }
        }
        out
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.tiles.iter().map(|t| t.data.capacity() * 8).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_equal_the_naive_product_on_any_number_of_threads() {
        let mut rng = crate::random::Generator::new(11);
        let blocks: Vec<Mat<f64>> = [300, 7, 129].map(|rows| Mat::from_fn(rows, 301, |_, _| rng.normal())).into();
        let sum_on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut sum = GramSum::new(301);
                blocks.iter().for_each(|b| sum.add(b.as_ref()));
                sum.to_matrix()
            })
        };
        let sum = sum_on(1);
        assert_eq!(sum, sum_on(3));
        let mut naive = Mat::zeros(301, 301);
        for block in &blocks {
            naive += block.transpose() * block;
        }
        assert!((&sum - &naive).norm_max() < 1e-11);
    }

    #[test]
    fn columns_and_the_lower_triangle_are_those_of_the_matrix() {
        for dim in [1, 167, 168, 169, 505] {
            let matrix = Mat::from_fn(dim, dim, |i, j| (1000 * i.max(j) + i.min(j)) as f64);
            let sum = GramSum::from_matrix(matrix.as_ref());
            let mut lower = Mat::zeros(dim, dim);
            sum.write_lower(lower.as_mut());
            for j in 0..dim {
                assert!((0..dim).all(|i| lower[(i, j)] == if i >= j { matrix[(i, j)] } else { 0.0 }));
            }
        }
    }
}
