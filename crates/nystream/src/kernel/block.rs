//! A block of rows against all centres, tiles of rows in parallel; the kernel matrix of a set with itself.
//!
//! Tiles are the same on any number of threads, and so are the bits of the result. Cutting the rows into other
//! blocks does not change them either, as far as faer's matrix product treats all rows of a tile (padded to a
//! multiple of 32) alike; the tests hold it to that.

use faer::reborrow::ReborrowMut;
use faer::{Mat, MatMut};
use rayon::prelude::*;

use super::centres::{Centres, fill};
use super::dense::{self, Columns, TileScratch};
use super::sparse::RowWise;
use super::spec::Kernel;
use super::transform::{Norms, Transform};
use super::vector::vectorised;
use crate::linalg::is_undivided;
use crate::rows::{RowBlock, Rows};

/// Blocks of fewer kernel values are not worth handing to other threads.
const PARALLEL_VALUES: usize = 1 << 15;
/// Tiles per thread, so that a thread that falls behind can be helped.
const SHARES: usize = 4;
/// Rows of a tile: the more, the longer each centre is at hand; the fewer, the more tiles for other threads.
const TILE: usize = 256;
const LONE_TILE: usize = 512;
/// Columns of [`Kernel::matrix`] computed together.
const MATRIX_STRIP: usize = 256;

/// Scratch memory for [`Kernel::block`] and [`Kernel::pack`], grown once and reused.
#[derive(Debug, Default)]
pub struct KernelWorkspace {
    tiles: Vec<TileScratch>,
    /// Kernels before they are packed.
    pub(super) strip: Vec<f64>,
    /// Squared norms of rows, 32 at a time.
    pub(super) norms: Vec<Norms>,
}

impl KernelWorkspace {
    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let tiles: usize = self.tiles.iter().map(TileScratch::size_bytes).sum();
        tiles + self.strip.capacity() * 8 + self.norms.capacity() * size_of::<Norms>()
    }
}

impl Kernel {
    /// `out[i, j]` = k(x_i, z_j); `out` is column-major, samples contiguous, one column a centre.
    ///
    /// Uses the current rayon pool for large blocks. Allocates only to grow `workspace`.
    ///
    /// # Panics
    /// If `out` is not column-major of rows × centres, or dense rows or centres differ in width.
    pub fn block(&self, xs: Rows, centres: &Centres, workspace: &mut KernelWorkspace, out: MatMut<'_, f64>) {
        assert_eq!((out.nrows(), out.ncols()), (xs.len(), centres.len()), "shape of the kernel block");
        let both_sparse = matches!((xs, centres.rows()), (Rows::Sparse(_), Rows::Sparse(_)));
        assert!(both_sparse || xs.cols() == centres.dim(), "columns of the rows and of the centres");
        if xs.is_empty() || centres.is_empty() {
            return;
        }
        let out = out.try_as_col_major_mut().expect("the kernel block is column-major");

        let transform = Transform::new(self);
        let threads = rayon::current_num_threads();
        let serial = threads == 1 || xs.len() * centres.len() < PARALLEL_VALUES || is_undivided();
        let height = if serial { LONE_TILE } else { TILE };
        let tiles = xs.len().div_ceil(height);
        let shares = if serial { 1 } else { tiles.min(SHARES * threads) };
        if workspace.tiles.len() < shares {
            workspace.tiles.resize_with(shares, TileScratch::default);
        }
        let share_rows = tiles.div_ceil(shares) * height;
        let share = |scratch: &mut TileScratch, from: usize, mut out: MatMut<'_, f64, usize, usize, _>| {
            for start in (0..out.nrows()).step_by(height) {
                let rows = height.min(out.nrows() - start);
                let xs = xs.slice(from + start, from + start + rows);
                let out = out.rb_mut().subrows_mut(start, rows);
                match (xs, centres.rows()) {
                    (Rows::Dense(xs), Rows::Dense(points)) => {
                        dense::tile(transform, xs, centres, points, scratch, out);
                    }
                    (Rows::Sparse(_), Rows::Sparse(_)) if centres.filled.is_some() && xs.cols() <= centres.dim() => {
                        filled_tile(transform, xs, centres, scratch, out);
                    }
                    _ => vectorised(RowWise { transform, xs, centres, scratch: &mut scratch.products, out }),
                }
            }
        };
        if shares == 1 {
            share(&mut workspace.tiles[0], 0, out);
        } else {
            let parts = out.par_row_chunks_mut(share_rows).enumerate();
            parts.zip(&mut workspace.tiles).for_each(|((s, out), scratch)| share(scratch, s * share_rows, out));
        }
    }

    /// The kernel matrix of a set of rows with itself, exactly symmetric, its diagonal that of [`Kernel::diagonal`].
    pub fn matrix(&self, xs: Rows) -> Mat<f64> {
        let n = xs.len();
        let mut out = Mat::zeros(n, n);
        let mut workspace = KernelWorkspace::default();
        for start in (0..n).step_by(MATRIX_STRIP) {
            let width = MATRIX_STRIP.min(n - start);
            let centres = Centres::new(xs.slice(start, start + width));
            let strip = out.submatrix_mut(start, start, n - start, width);
            self.block(xs.slice(start, n), &centres, &mut workspace, strip);
        }
        for j in 0..n {
            out[(j, j)] = self.diagonal(xs.row(j));
            for i in j + 1..n {
                out[(j, i)] = out[(i, j)];
            }
        }
        out
    }

    /// `out[i]` = k(x_i, x_i).
    ///
    /// # Panics
    /// If `out` is not one number per row.
    pub fn diagonals(&self, xs: Rows, out: &mut [f64]) {
        assert_eq!(out.len(), xs.len(), "one diagonal value per row");
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.diagonal(xs.row(i));
        }
    }
}

/// Sparse rows that are mostly filled, taken for dense ones.
fn filled_tile(transform: Transform, xs: Rows, centres: &Centres, scratch: &mut TileScratch, out: Columns) {
    let Some(Rows::Dense(points)) = centres.filled.as_ref().map(RowBlock::rows) else { return };
    let mut values = std::mem::take(&mut scratch.filled);
    values.clear();
    (0..xs.len()).for_each(|i| fill(xs.row(i), centres.dim(), &mut values));
    if let Ok(Rows::Dense(xs)) = Rows::dense(&values, xs.len(), centres.dim()) {
        dense::tile(transform, xs, centres, points, scratch, out);
    }
    scratch.filled = values;
}
