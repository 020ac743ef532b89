//! Sums of outer products Σ φφᵀ, a block of rows at a time, at matrix-multiply speed.
//!
//! The lower triangle is kept as square tiles, each its own buffer, so that threads share nothing
//! and every tile is summed in the order of the rows: the result does not depend on the number of
//! threads.

use faer::{Mat, MatMut, MatRef};
use rayon::prelude::*;

use super::is_divided;
use super::packed_rows::{BLOCK, PackedRows};
use super::rank_update::{Area, STRIP, add_products};
use crate::error::{Error, Result};

/// Side of a tile: a multiple of 24, which the innermost loop takes in whole products; larger ones balance worse.
const TILE: usize = 168;

/// More rows than this are not packed at once.
const MOST_ROWS: usize = 768;

/// A running Σ φφᵀ.
#[derive(Debug, Clone, Default)]
pub struct GramSum {
    dim: usize,
    tiles: Vec<Tile>,
    packed: PackedRows,
}

#[derive(Debug, Clone)]
struct Tile {
    area: Area,
    data: Vec<f64>,
}

/// The tiles of a sum, each in so many numbers of memory.
fn tiles(dim: usize, mut memory: impl FnMut(usize) -> Vec<f64>) -> Vec<Tile> {
    let starts: Vec<usize> = (0..dim).step_by(TILE).collect();
    let places =
        starts.iter().flat_map(|&col| starts.iter().filter(move |&&row| row >= col).map(move |&row| (row, col)));
    let tile = |(row, col)| {
        let area = Area { row, col, height: TILE.min(dim - row), width: TILE.min(dim - col) };
        Tile { area, data: memory(area.size()) }
    };
    places.map(tile).collect()
}

impl GramSum {
    /// Zero, of `dim × dim`.
    pub fn new(dim: usize) -> Self {
        Self { dim, tiles: tiles(dim, |size| vec![0.0; size]), packed: PackedRows::default() }
    }

    /// Number of rows and columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Adds ΦᵀΦ for a block of rows Φ (rows × dim, best column-major).
    pub fn add(&mut self, block: MatRef<'_, f64>) {
        debug_assert_eq!(block.ncols(), self.dim);
        if block.nrows() == 0 || self.dim == 0 {
            return;
        }
        let mut packed = std::mem::take(&mut self.packed);
        // Many rows in turns, each as they would be packed together: the same sums, in memory that stays in the cache.
        let turn = if block.nrows() > MOST_ROWS { PackedRows::depth_of(block.nrows()) } else { block.nrows() };
        for start in (0..block.nrows()).step_by(turn) {
            let part = block.subrows(start, turn.min(block.nrows() - start));
            packed.load(part, self.parallel(part.nrows()));
            self.add_packed(&packed);
        }
        self.packed = packed;
    }

    /// Whether rows are worth handing to other threads.
    fn parallel(&self, rows: usize) -> bool {
        is_divided(rows * self.dim * self.dim / 2)
    }

    /// [`add`](Self::add) of rows that are packed already.
    pub fn add_packed(&mut self, rows: &PackedRows) {
        debug_assert_eq!(rows.dim(), self.dim);
        let parallel = self.parallel(rows.rows());
        let update = |tile: &mut Tile| add_products(rows, tile.area, &mut tile.data);
        if parallel {
            // Each tile can be taken by whichever thread is free: one held up by the rest of the machine must not hold up all.
            self.tiles.par_iter_mut().with_max_len(1).for_each(update);
        } else {
            self.tiles.iter_mut().for_each(update);
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

    /// ΦᵀΦ of a block of rows, without memory for more.
    pub fn of_rows(block: MatRef<'_, f64>) -> Self {
        let mut sum = Self::new(block.ncols());
        sum.add(block);
        sum.forget_rows();
        sum
    }

    /// Gives back the memory that rows were packed in.
    pub fn forget_rows(&mut self) {
        self.packed = PackedRows::default();
    }

    /// Adds a multiple of another sum of the same size.
    pub fn add_scaled(&mut self, other: &Self, factor: f64) {
        for (tile, more) in self.tiles.iter_mut().zip(&other.tiles) {
            tile.data.iter_mut().zip(&more.data).for_each(|(a, b)| *a += factor * b);
        }
    }

    /// Adds a number to every entry of the diagonal.
    pub fn add_to_diagonal(&mut self, value: f64) {
        for Tile { area, data } in self.tiles.iter_mut().filter(|tile| tile.area.row == tile.area.col) {
            (0..area.width).for_each(|i| data[area.place(i, i)] += value);
        }
    }

    /// Zero again, of `dim × dim`, in the same memory.
    pub fn reset(&mut self, dim: usize) {
        let mut memory = std::mem::take(&mut self.tiles).into_iter().map(|tile| tile.data);
        self.dim = dim;
        self.tiles = tiles(dim, |size| {
            let mut data = memory.next().unwrap_or_default();
            data.clear();
            data.resize(size, 0.0);
            data
        });
    }

    /// Multiplies the sum by a number.
    pub fn scale(&mut self, factor: f64) {
        self.tiles.iter_mut().flat_map(|tile| &mut tile.data).for_each(|v| *v *= factor);
    }

    /// The sum whose lower triangle this is.
    pub fn from_matrix(matrix: MatRef<'_, f64>) -> Self {
        let mut sum = Self::new(matrix.nrows());
        for Tile { area, data } in &mut sum.tiles {
            for j in 0..area.width {
                for i in 0..area.height {
                    let (row, col) = (area.row + i, area.col + j);
                    if row >= col {
                        data[area.place(i, j)] = matrix[(row, col)];
                    }
                }
            }
        }
        sum
    }

    /// Writes the entries (j, j), (j + 1, j), … of column j.
    pub fn write_column(&self, j: usize, out: &mut [f64]) {
        let (side, place) = (j / TILE, j % TILE);
        let mut done = 0;
        for Tile { area, data } in &self.tiles[self.first_tile(side)..self.first_tile(side + 1)] {
            // In the tile on the diagonal only the rows from the diagonal on.
            let mut row = if area.row == area.col { place } else { 0 };
            while row < area.height {
                let next = area.height.min((row / STRIP + 1) * STRIP);
                let from = area.place(row, place);
                let (out, strip) = (&mut out[done..done + next - row], &data[from..from + next - row]);
                // Whole strips are one load and one store each; of a length that is not known, a call.
                match (out.as_chunks_mut().0, strip.as_chunks::<STRIP>().0) {
                    ([out], [strip]) => *out = *strip,
                    _ => out.iter_mut().zip(strip).for_each(|(out, value)| *out = *value),
                }
                done += next - row;
                row = next;
            }
        }
    }

    /// An entry of the diagonal.
    pub fn diagonal(&self, i: usize) -> f64 {
        let Tile { area, data } = &self.tiles[self.first_tile(i / TILE)];
        data[area.place(i % TILE, i % TILE)]
    }

    /// Where the tiles of a column of tiles begin: each column before it has one less than the one before.
    fn first_tile(&self, side: usize) -> usize {
        side * self.dim.div_ceil(TILE) - side * side.saturating_sub(1) / 2
    }

    /// The entries from a row and a column on, 8 rows of a column after the other, as [`Patches`](super::Patches) reads them;
    /// fewer columns than a patch has at the right margin, none outside.
    #[inline]
    pub fn patch(&self, row: usize, col: usize) -> &[[f64; STRIP]] {
        if row >= self.dim || col >= self.dim {
            return &[];
        }
        let (across, down) = (col / TILE, row / TILE);
        let Tile { area, data } = &self.tiles[self.first_tile(across) + down - across];
        let from = area.place(row % TILE, col % TILE);
        &data[from..].as_chunks().0[..(area.width - col % TILE).min(BLOCK)]
    }

    /// The lower triangle, zeros above it.
    pub fn to_lower(&self) -> Mat<f64> {
        let mut out = Mat::zeros(self.dim, self.dim);
        self.write_lower(out.as_mut());
        out
    }

    /// Writes the lower triangle.
    pub fn write_lower(&self, mut out: MatMut<'_, f64>) {
        let mut column = vec![0.0; self.dim];
        for j in 0..self.dim {
            self.write_column(j, &mut column[j..]);
            out.as_mut().col_mut(j).iter_mut().zip(&column).skip(j).for_each(|(out, value)| *out = *value);
        }
    }

    /// The whole symmetric matrix.
    pub fn to_matrix(&self) -> Mat<f64> {
        let mut out = Mat::zeros(self.dim, self.dim);
        for Tile { area, data } in &self.tiles {
            for j in 0..area.width {
                let first = if area.row == area.col { j } else { 0 };
                for i in first..area.height {
                    let (row, col, value) = (area.row + i, area.col + j, data[area.place(i, j)]);
                    out[(row, col)] = value;
                    out[(col, row)] = value;
                }
            }
        }
        out
    }

    /// Bytes of a sum of this size.
    pub fn bytes_of(dim: usize) -> usize {
        tiles(dim, |_| Vec::new()).iter().map(|tile| 8 * tile.area.size()).sum()
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.packed.size_bytes() + self.tiles.iter().map(|t| t.data.capacity() * 8).sum::<usize>()
    }
}

/// The Frobenius norm of the symmetric matrix of which this is the lower triangle, zeros above it.
pub fn lower_norm(lower: MatRef<'_, f64>) -> f64 {
    let diagonal: f64 = (0..lower.nrows()).map(|i| lower[(i, i)] * lower[(i, i)]).sum();
    (2.0 * lower.squared_norm_l2() - diagonal).max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_turns_give_the_bits_of_all_at_once() {
        let mut rng = crate::random::Generator::new(12);
        for rows in [MOST_ROWS + 1, 1000, 1152, 1153, 2500] {
            let block = Mat::from_fn(rows, 30, |_, _| rng.normal());
            let (mut turns, mut once, mut packed) = (GramSum::new(30), GramSum::new(30), PackedRows::default());
            turns.add(block.as_ref());
            packed.load(block.as_ref(), false);
            once.add_packed(&packed);
            assert_eq!(turns.to_matrix(), once.to_matrix(), "{rows}");
        }
    }

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
    fn sums_of_odd_shapes_equal_the_naive_product() {
        let mut rng = crate::random::Generator::new(12);
        for dim in [1, 11, 12, 13, 167, 301, 505] {
            let mut sum = GramSum::new(dim);
            let mut naive = Mat::zeros(dim, dim);
            for rows in [1, 7, 0, 300] {
                let block = Mat::from_fn(rows, dim, |_, _| rng.normal());
                sum.add(block.as_ref());
                naive += block.transpose() * &block;
            }
            assert!((&sum.to_matrix() - &naive).norm_max() < 1e-11);
        }
    }

    #[test]
    fn columns_and_the_lower_triangle_are_those_of_the_matrix() {
        for dim in [1, 167, 168, 169, 505] {
            let matrix = Mat::from_fn(dim, dim, |i, j| (1000 * i.max(j) + i.min(j)) as f64);
            let sum = GramSum::from_matrix(matrix.as_ref());
            let mut lower = Mat::zeros(dim, dim);
            sum.write_lower(lower.as_mut());
            assert_eq!(lower, sum.to_lower());
            assert!((lower_norm(lower.as_ref()) - matrix.norm_l2()).abs() <= 1e-14 * matrix.norm_l2());
            for j in 0..dim {
                assert!((0..dim).all(|i| lower[(i, j)] == if i >= j { matrix[(i, j)] } else { 0.0 }));
            }
        }
    }
}
