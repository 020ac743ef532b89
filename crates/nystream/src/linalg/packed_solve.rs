//! X = L⁻¹B for many columns, at the speed of products; X comes out packed, as [`GramSum`](super::GramSum) takes it for XᵀX.
//!
//! Rows of L are taken 24 at a time: what is left of the square on their diagonal is multiplied by the rows of X that are
//! known, in the same innermost loop as the symmetric product ([`super::rank_update`]), and the square is inverted
//! beforehand, so that solving is a product too. A group of columns goes through all of L before the next one does: its
//! part of X stays in the second cache. Nothing depends on the number of threads.

use faer::MatRef;
use rayon::prelude::*;

use super::aligned::Aligned;
use super::is_divided;
use super::packed_rows::{BLOCK, PANEL, PackedRows};
use super::rank_update::{DOZEN, Left, OnPanels, STRIP, add_dozen, on_panels};
use super::registers::Registers;

/// Panels of rows in a block.
pub(super) const PANELS: usize = BLOCK / PANEL;
/// Panels of columns of B that are solved together.
const GROUP: usize = 12;

/// A lower triangular matrix, packed for solving with many columns.
#[derive(Debug, Clone, Default)]
pub struct PackedTriangle {
    pub(super) dim: usize,
    /// For every block of rows its panels of four, and in each a column after the other: of L up to the square on the
    /// diagonal, then of the inverse of the square.
    pub(super) numbers: Aligned<PANEL>,
}

/// Where block `g` begins, in columns of panels.
pub(super) fn start(g: usize) -> usize {
    BLOCK * PANELS * (g * (g + 1) / 2)
}

impl PackedTriangle {
    /// Takes the lower triangle of a matrix in place of the one before.
    pub fn load(&mut self, lower: MatRef<'_, f64>) {
        self.reshape(lower.nrows());
        let blocks = self.dim.div_ceil(BLOCK);
        for g in 0..blocks {
            load_block(lower, g * BLOCK, &mut self.numbers[start(g)..start(g + 1)]);
        }
    }

    /// The lower triangle of a matrix.
    pub fn of(lower: MatRef<'_, f64>) -> Self {
        let mut triangle = Self::default();
        triangle.load(lower);
        triangle
    }

    /// X = L⁻¹Bᵀ into `out`, where B has as many columns as L, best column-major.
    pub fn solve(&self, b: MatRef<'_, f64>, out: &mut PackedRows) {
        debug_assert_eq!(b.ncols(), self.dim);
        let (columns, dim) = (b.nrows(), self.dim);
        let parts = out.parts_mut(dim, columns);
        let mut groups: Vec<Vec<&mut [f64]>> = Vec::new();
        groups.resize_with(columns.div_ceil(GROUP * PANEL), Vec::new);
        let mut depth = 0;
        for (height, part) in parts {
            depth = depth.max(height);
            for (group, panels) in groups.iter_mut().zip(part.chunks_mut(height * PANEL * GROUP)) {
                group.push(panels);
            }
        }
        let solve = |(g, parts): (usize, Vec<&mut [f64]>)| {
            let first = g * GROUP * PANEL;
            let b = b.subrows(first, (GROUP * PANEL).min(columns - first));
            on_panels(Solve { triangle: self, b, depth, parts });
        };
        if is_divided(columns * dim * dim / 2) {
            groups.into_par_iter().with_max_len(1).enumerate().for_each(solve);
        } else {
            groups.into_iter().enumerate().for_each(solve);
        }
    }

    /// Makes room for so many rows.
    pub(super) fn reshape(&mut self, dim: usize) {
        self.dim = dim;
        let needed = start(dim.div_ceil(BLOCK));
        if self.numbers.len() < needed {
            self.numbers = Aligned::zeros(needed);
        }
    }

    /// The panels of block `g`.
    pub(super) fn block(&self, g: usize) -> &[[f64; PANEL]] {
        &self.numbers[start(g)..start(g + 1)]
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.numbers.size_bytes()
    }
}

/// Packs the rows from `first` on.
fn load_block(lower: MatRef<'_, f64>, first: usize, out: &mut [[f64; PANEL]]) {
    let (length, rows) = (first + BLOCK, BLOCK.min(lower.nrows() - first));
    // Rows past the last are zero.
    let mut row = [0.0; BLOCK];
    for k in 0..first {
        let column = lower.col(k).subrows(first, rows);
        match column.try_as_col_major() {
            Some(column) => row[..rows].copy_from_slice(column.as_slice()),
            None => row.iter_mut().zip(column.iter()).for_each(|(out, value)| *out = *value),
        }
        for q in 0..PANELS {
            out[q * length + k].copy_from_slice(&row[q * PANEL..(q + 1) * PANEL]);
        }
    }
    let square = lower.submatrix(first, first, rows, rows);
    for c in 0..BLOCK {
        // Column c of the inverse.
        let mut column = [0.0; BLOCK];
        for i in c..rows {
            let known: f64 = (c..i).map(|k| square[(i, k)] * column[k]).sum();
            let unit = if i == c { 1.0 } else { 0.0 };
            column[i] = (unit - known) / square[(i, i)];
        }
        for q in 0..PANELS {
            out[q * length + first + c].copy_from_slice(&column[q * PANEL..(q + 1) * PANEL]);
        }
    }
}

/// A block of rows of a triangle.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// Its panels.
    pub numbers: &'a [[f64; PANEL]],
    /// Where the square on the diagonal begins.
    pub first: usize,
}

impl<'a> Block<'a> {
    fn panel(&self, q: usize, from: usize, height: usize) -> &'a [[f64; PANEL]] {
        let length = self.first + BLOCK;
        &self.numbers[q * length + from..q * length + from + height]
    }

    /// Adds (or, with `MINUS`, subtracts) the products of the block's rows, from column `from` on, with what is on the left,
    /// of which so many rows count.
    #[inline(always)]
    pub fn add_known<R: Registers, L: Left<R>, const MINUS: bool>(
        self,
        registers: R,
        (left, height): (L, usize),
        from: usize,
        known: &mut [[f64; STRIP]; BLOCK],
    ) {
        for (half, target) in known.as_chunks_mut::<DOZEN>().0.iter_mut().enumerate() {
            let right = std::array::from_fn(|q| self.panel(3 * half + q, from, height));
            add_dozen::<R, L, MINUS>(registers, [height; 2], left, right, target);
        }
    }

    /// What is left, times the inverse of the square.
    #[inline(always)]
    pub fn solve<R: Registers, L: Left<R>>(self, registers: R, rest: L) -> [[f64; STRIP]; BLOCK] {
        let mut solved = [[0.0; STRIP]; BLOCK];
        for (half, target) in solved.as_chunks_mut::<DOZEN>().0.iter_mut().enumerate() {
            // Rows of the inverse end at its diagonal.
            let heights = [1, 2].map(|sixes| half * DOZEN + sixes * DOZEN / 2);
            let right = std::array::from_fn(|q| self.panel(3 * half + q, self.first, heights[1]));
            add_dozen::<R, L, false>(registers, heights, rest, right, target);
        }
        solved
    }
}

/// Solves for some columns.
struct Solve<'a> {
    triangle: &'a PackedTriangle,
    b: MatRef<'a, f64>,
    /// Rows of all parts but the last.
    depth: usize,
    /// The panels of these columns, a part after the other.
    parts: Vec<&'a mut [f64]>,
}

impl OnPanels for Solve<'_> {
    #[inline(always)]
    fn run<R: Registers>(mut self, registers: R) {
        let panels = self.b.nrows().div_ceil(PANEL);
        for g in 0..self.triangle.dim.div_ceil(BLOCK) {
            let columns = self.columns(g);
            for panel in (0..panels).step_by(2) {
                if panel + 1 < panels {
                    self.strip::<R, 2>(registers, g, panel, &columns);
                } else {
                    self.strip::<R, 1>(registers, g, panel, &columns);
                }
            }
        }
    }
}

impl<'a> Solve<'a> {
    /// The columns of B that block `g` of rows is solved for; empty where they are not contiguous, or past the last.
    fn columns(&self, g: usize) -> [&'a [f64]; BLOCK] {
        let contiguous = |k: usize| {
            let column = (k < self.b.ncols()).then(|| self.b.col(k))?.try_as_col_major()?;
            Some(column.as_slice())
        };
        std::array::from_fn(|k| contiguous(g * BLOCK + k).unwrap_or(&[]))
    }

    /// Block `g` of rows of X, in `A` panels of columns.
    #[inline(always)]
    fn strip<R: Registers, const A: usize>(&mut self, registers: R, g: usize, panel: usize, columns: &[&[f64]; BLOCK])
    where
        for<'p> [&'p [[f64; PANEL]]; A]: Left<R>,
    {
        let Self { triangle, b, depth, parts } = self;
        let (first, dim) = (g * BLOCK, triangle.dim);
        let rows = BLOCK.min(dim - first);
        let block = Block { numbers: triangle.block(g), first };
        let mut known = [[0.0; STRIP]; BLOCK];
        for (p, part) in parts.iter().enumerate().take(first / *depth + 1) {
            let (from, all) = (p * *depth, (*depth).min(dim - p * *depth));
            let height = all.min(first - from);
            if height == 0 {
                break;
            }
            let left: [_; A] =
                std::array::from_fn(|a| part[(panel + a) * all * PANEL..][..height * PANEL].as_chunks::<PANEL>().0);
            block.add_known::<R, _, false>(registers, (left, height), from, &mut known);
        }
        // What is left of B, in panels as the left of a product has them.
        let mut rest = [[[0.0; PANEL]; BLOCK]; A];
        for k in 0..rows {
            for (a, rest) in rest.iter_mut().enumerate() {
                let from = (panel + a) * PANEL;
                let known = &known[k][a * PANEL..(a + 1) * PANEL];
                if let Some(whole) = columns[k].get(from..from + PANEL) {
                    (0..PANEL).for_each(|q| rest[k][q] = whole[q] - known[q]);
                } else {
                    let column = b.col(first + k);
                    for q in 0..PANEL.min(b.nrows() - from) {
                        rest[k][q] = column[from + q] - known[q];
                    }
                }
            }
        }
        let solved = block.solve(registers, rest.each_ref().map(|panel| &panel[..]));
        let (p, from) = (first / *depth, first % *depth);
        let all = (*depth).min(dim - p * *depth);
        for a in 0..A {
            let panel = parts[p][(panel + a) * all * PANEL..(panel + a + 1) * all * PANEL].as_chunks_mut::<PANEL>().0;
            for (out, solved) in panel[from..from + rows].iter_mut().zip(&solved) {
                out.copy_from_slice(&solved[a * PANEL..(a + 1) * PANEL]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cholesky;
    use super::super::registers::Plain;
    use super::*;
    use crate::linalg::GramSum;
    use crate::random::Generator;
    use faer::Mat;
    use pulp::Scalar;

    fn factor(dim: usize) -> Cholesky {
        let mut rng = Generator::new(dim as u64);
        let a = Mat::from_fn(dim, dim, |_, _| rng.normal());
        let spd = &a * a.transpose() + Mat::<f64>::identity(dim, dim) * faer::Scale(dim as f64);
        Cholesky::new(spd.as_ref(), "test").unwrap()
    }

    /// X as a matrix, from its panels.
    fn unpacked(packed: &PackedRows) -> Mat<f64> {
        let mut out = Mat::zeros(packed.rows(), packed.dim());
        let mut done = 0;
        for (height, part) in packed.parts() {
            for k in 0..height {
                for j in 0..packed.dim() {
                    out[(done + k, j)] = part[(j / PANEL * height + k) * PANEL + j % PANEL];
                }
            }
            done += height;
        }
        out
    }

    #[test]
    fn solves_of_any_shape_are_those_of_the_factor_on_any_registers_and_threads() {
        let mut rng = Generator::new(2);
        let (mut triangle, mut found) = (PackedTriangle::default(), PackedRows::default());
        for dim in [1, 5, 23, 24, 25, 48, 100, 383, 384, 385, 409, 801] {
            let factor = factor(dim);
            triangle.load(factor.factor());
            for columns in [1, 4, 7, 48, 49, 150] {
                let b = Mat::from_fn(columns, dim, |_, _| rng.normal());
                let mut expected = b.transpose().to_owned();
                factor.forward_in_place(expected.as_mut());
                triangle.solve(b.as_ref(), &mut found);
                assert!((unpacked(&found) - &expected).norm_max() < 1e-13 * dim as f64, "{dim} {columns}");
                let mut written = Mat::zeros(columns, dim);
                found.write_transposed(written.as_mut());
                assert_eq!(written.transpose(), unpacked(&found));
                let mut across = Mat::zeros(dim, columns);
                found.write_transposed(across.as_mut().transpose_mut());
                assert_eq!(across, unpacked(&found));
                let mut products = GramSum::new(columns);
                products.add_packed(&found);
                let naive = expected.transpose() * &expected;
                assert!((products.to_matrix() - naive).norm_max() < 1e-12 * dim as f64, "{dim} {columns}");
                let on = |threads: usize| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    let mut out = PackedRows::default();
                    pool.install(|| triangle.solve(b.as_ref(), &mut out));
                    unpacked(&out)
                };
                assert_eq!(on(1), on(3), "{dim} {columns}");
                // Without vectors.
                let mut out = PackedRows::default();
                let parts: Vec<_> = out.parts_mut(dim, columns).collect();
                let depth = parts.iter().map(|(height, _)| *height).max().unwrap_or(0);
                if columns <= GROUP * PANEL {
                    let parts = parts.into_iter().map(|(_, part)| part).collect();
                    Solve { triangle: &triangle, b: b.as_ref(), depth, parts }.run(Plain::<Scalar, 4>(Scalar));
                    assert!((unpacked(&out) - &expected).norm_max() < 1e-13 * dim as f64, "{dim} {columns}");
                }
            }
        }
    }
}
