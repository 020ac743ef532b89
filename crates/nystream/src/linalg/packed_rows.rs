//! A block of rows, packed once for all tiles and threads of the symmetric product behind [`GramSum`](super::GramSum).
//!
//! Panels of 4 columns, in each the rows one after the other; a few hundred rows are a part, with panels of its own. Parts are
//! filled by one thread each ([`PackedRows::fill`]), straight from where the numbers are computed or strip by strip while they
//! are in the cache ([`PackedPart`]).

use std::ops::Range;

use faer::{ColMut, MatMut, MatRef};
use pulp::Simd;
use rayon::prelude::*;

use super::is_divided;
use super::vectorised::{Vectorised, multiply_add, vectorised};

/// Columns of a panel.
pub(crate) const PANEL: usize = 4;
/// Rows of the block that are summed in registers: the more, the less often the result is passed over; the fewer, the
/// longer what is on the right of a tile stays in the second cache.
pub(super) const DEPTH: usize = 384;
/// Rows that are solved for together: parts begin with one of them.
pub(super) const BLOCK: usize = 24;
/// Numbers in a cache line, where panels are to start: a register across two lines takes two loads.
const LINE: usize = 8;
/// Panels that are worth handing to another thread.
const PANELS: usize = 16;
/// Numbers that are worth filling on several threads.
const PARALLEL_NUMBERS: usize = 1 << 15;
/// Sums that run side by side, so that additions need not wait for each other.
const CHAINS: usize = 4;

/// Writes what panels have beside each other in a column, best contiguous.
pub(super) fn write_panels<'a>(panels: impl Iterator<Item = &'a [f64; PANEL]>, mut column: ColMut<'_, f64>) {
    match column.as_mut().try_as_col_major_mut() {
        Some(column) => {
            // Whole panels are copied as registers.
            let (whole, rest) = column.as_slice_mut().as_chunks_mut();
            let mut panels = panels.copied();
            whole.iter_mut().zip(panels.by_ref()).for_each(|(out, panel)| *out = panel);
            panels.next().iter().for_each(|panel| rest.copy_from_slice(&panel[..rest.len()]));
        }
        None => column.iter_mut().zip(panels.flatten()).for_each(|(out, number)| *out = *number),
    }
}

/// A block of rows, packed; its memory is kept for the next block.
#[derive(Debug, Default)]
pub struct PackedRows {
    memory: Vec<f64>,
    start: usize,
    rows: usize,
    dim: usize,
}

impl Clone for PackedRows {
    /// Without the rows, which are only ever used right after they were packed.
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Rows that follow each other in the block, with panels of their own, while they are filled.
#[derive(Debug)]
pub struct PackedPart<'a> {
    first: usize,
    rows: usize,
    dim: usize,
    numbers: &'a mut [f64],
}

impl PackedPart<'_> {
    /// Which rows of the block these are.
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.rows
    }

    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Packs rows, the first of which is row `from` of the part.
    ///
    /// # Panics
    /// If they have other columns, or are too many.
    pub fn pack(&mut self, from: usize, block: MatRef<'_, f64>) {
        assert_eq!(block.ncols(), self.dim, "columns of what is packed");
        for (p, panel) in self.panels(1).enumerate() {
            pack(block, p * PANEL, &mut panel[from..from + block.nrows()]);
        }
    }

    /// All panels, up to `count` at a time, one after the other and each with its rows. What is past the last column must be
    /// zero.
    pub fn panels(&mut self, count: usize) -> impl Iterator<Item = &mut [[f64; PANEL]]> {
        self.numbers.as_chunks_mut().0.chunks_mut((self.rows * count).max(1))
    }
}

impl PackedRows {
    /// Takes a block of rows in place of the one before.
    pub(super) fn load(&mut self, block: MatRef<'_, f64>, parallel: bool) {
        let (depth, width) = self.reshape(block.nrows(), block.ncols());
        let part = |(number, part): (usize, &mut [f64])| {
            let height = part.len() / width;
            let rows = block.subrows(number * depth, height);
            let panel = |(p, out): (usize, &mut [f64])| pack(rows, p * PANEL, out.as_chunks_mut().0);
            if parallel {
                part.par_chunks_mut(height * PANEL).with_min_len(PANELS).enumerate().for_each(panel);
            } else {
                part.chunks_mut(height * PANEL).enumerate().for_each(panel);
            }
        };
        if parallel {
            self.numbers_mut().par_chunks_mut((depth * width).max(1)).enumerate().for_each(part);
        } else {
            self.numbers_mut().chunks_mut((depth * width).max(1)).enumerate().for_each(part);
        }
    }

    /// Takes `rows` rows of `dim` numbers in place of the ones before: `write` must write all numbers of every part it is given.
    pub fn fill<T: Default + Send>(
        &mut self,
        (rows, dim): (usize, usize),
        scratch: &mut Vec<T>,
        write: impl Fn(&mut T, PackedPart) + Sync,
    ) {
        let (depth, width) = self.reshape(rows, dim);
        scratch.resize_with(scratch.len().max(rows.div_ceil(depth)), T::default);
        let part = |((number, numbers), scratch): ((usize, &mut [f64]), &mut T)| {
            write(scratch, PackedPart { first: number * depth, rows: numbers.len() / width, dim, numbers });
        };
        if rows * dim >= PARALLEL_NUMBERS {
            self.numbers_mut().par_chunks_mut((depth * width).max(1)).enumerate().zip(scratch).for_each(part);
        } else {
            self.numbers_mut().chunks_mut((depth * width).max(1)).enumerate().zip(scratch).for_each(part);
        }
    }

    /// Takes `rows` rows of `dim` numbers in place of the ones before: its parts, each with its number of rows, to be written
    /// panel by panel.
    pub(super) fn parts_mut(&mut self, rows: usize, dim: usize) -> impl Iterator<Item = (usize, &mut [f64])> {
        let (depth, width) = self.reshape(rows, dim);
        self.numbers_mut().chunks_mut((depth * width).max(1)).map(move |part| (part.len() / width, part))
    }

    /// Makes room; gives the rows of all parts but the last, and the columns, filled up to panels.
    fn reshape(&mut self, rows: usize, dim: usize) -> (usize, usize) {
        (self.rows, self.dim) = (rows, dim);
        let size = rows * self.width();
        if self.memory.len() < size + LINE {
            self.memory = vec![0.0; size + LINE];
        }
        self.start = self.memory.as_ptr().align_offset(LINE * size_of::<f64>()).min(LINE);
        (self.depth(), self.width())
    }

    /// Writes the transposed rows, best column-major.
    pub fn write_transposed(&self, mut out: MatMut<'_, f64>) {
        debug_assert_eq!((out.nrows(), out.ncols()), (self.dim, self.rows));
        let mut done = 0;
        for (height, part) in self.parts() {
            for k in 0..height {
                let panels = part.as_chunks().0.iter().skip(k).step_by(height);
                write_panels(panels, out.as_mut().col_mut(done + k));
            }
            done += height;
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    fn width(&self) -> usize {
        self.dim.next_multiple_of(PANEL)
    }

    fn depth(&self) -> usize {
        Self::depth_of(self.rows)
    }

    /// Of so many rows, those of all parts but the last: about as many as it has, and whole blocks.
    pub(super) fn depth_of(rows: usize) -> usize {
        rows.div_ceil(rows.div_ceil(DEPTH).max(1)).max(1).next_multiple_of(BLOCK)
    }

    fn numbers_mut(&mut self) -> &mut [f64] {
        let size = self.rows * self.width();
        &mut self.memory[self.start..self.start + size]
    }

    /// The rows part by part, each with its number of rows, then panel by panel.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, &[f64])> {
        let width = self.width();
        let parts = self.memory[self.start..self.start + self.rows * width].chunks((self.depth() * width).max(1));
        parts.map(move |part| (part.len() / width, part))
    }

    /// Adds, for every column c, Σc to `sums` and cᵀv, for every column v of `vectors`, to `products` (a column after the
    /// other, `vectors.ncols()` numbers each). The same on any number of threads.
    pub fn add_column_products(&self, vectors: MatRef<'_, f64>, sums: &mut [f64], products: &mut [f64]) {
        let count = vectors.ncols();
        debug_assert_eq!((sums.len(), products.len()), (self.dim, self.dim * count));
        // Row by row: the numbers of a row are at hand together.
        let factors: Vec<f64> = (0..vectors.nrows()).flat_map(|i| vectors.row(i).iter().copied()).collect();
        let panel = |(p, (sums, products)): (usize, (&mut [f64], &mut [f64]))| {
            vectorised(ColumnProducts { rows: self, panel: p, factors: &factors, count, sums, products });
        };
        let work = self.rows * self.dim * (count + 1);
        let (sums, products) = (sums.par_chunks_mut(PANEL), products.par_chunks_mut((PANEL * count).max(1)));
        let least = if !is_divided(work) { self.dim } else { PANELS };
        if count == 0 {
            sums.with_min_len(least.max(1)).enumerate().for_each(|(p, sums)| panel((p, (sums, &mut []))));
        } else {
            sums.zip(products).with_min_len(least.max(1)).enumerate().for_each(panel);
        }
    }

    /// The squared distance of every column from a vector of as many numbers as there are rows.
    pub fn squared_distances(&self, centre: &[f64], out: &mut [f64]) {
        debug_assert_eq!((centre.len(), out.len()), (self.rows, self.dim));
        vectorised(Distances { rows: self, centre, out });
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.memory.capacity() * 8
    }
}

struct Distances<'a> {
    rows: &'a PackedRows,
    centre: &'a [f64],
    out: &'a mut [f64],
}

impl Vectorised for Distances<'_> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, _simd: S) {
        let Self { rows, centre, out } = self;
        out.fill(0.0);
        let mut done = 0;
        for (height, part) in rows.parts() {
            let centre = &centre[done..done + height];
            let panels = part.as_chunks::<PANEL>().0.chunks_exact(height.max(1));
            for (out, panel) in out.chunks_mut(PANEL).zip(panels) {
                let mut sums = [0.0; PANEL];
                for (row, centre) in panel.iter().zip(centre) {
                    for q in 0..PANEL {
                        let apart = row[q] - centre;
                        sums[q] = multiply_add::<FMA>(apart, apart, sums[q]);
                    }
                }
                out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
            }
            done += height;
        }
    }
}

/// Packs the columns from `first` on; past the last there are zeros.
fn pack(rows: MatRef<'_, f64>, first: usize, out: &mut [[f64; PANEL]]) {
    let columns: [Option<&[f64]>; PANEL] = std::array::from_fn(|q| {
        let column = (first + q < rows.ncols()).then(|| rows.col(first + q))?;
        Some(column.try_as_col_major()?.as_slice())
    });
    if let [Some(a), Some(b), Some(c), Some(d)] = columns {
        vectorised(Interleave { columns: [a, b, c, d], out });
    } else {
        for (k, out) in out.iter_mut().enumerate() {
            *out = std::array::from_fn(|q| if first + q < rows.ncols() { rows[(k, first + q)] } else { 0.0 });
        }
    }
}

/// Columns to rows, four rows at a time: what is loaded and stored is whole registers.
struct Interleave<'a> {
    columns: [&'a [f64]; PANEL],
    out: &'a mut [[f64; PANEL]],
}

impl Vectorised for Interleave<'_> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, _simd: S) {
        let Self { columns, out } = self;
        let [a, b, c, d] = columns.map(|column| column.as_chunks::<PANEL>());
        let (groups, rest) = out.as_chunks_mut::<PANEL>();
        for ((((out, a), b), c), d) in groups.iter_mut().zip(a.0).zip(b.0).zip(c.0).zip(d.0) {
            *out = std::array::from_fn(|k| [a[k], b[k], c[k], d[k]]);
        }
        for (k, out) in rest.iter_mut().enumerate() {
            *out = [a.1[k], b.1[k], c.1[k], d.1[k]];
        }
    }
}

/// Σc and cᵀv of the columns of one panel.
struct ColumnProducts<'a> {
    rows: &'a PackedRows,
    panel: usize,
    /// A row after the other.
    factors: &'a [f64],
    count: usize,
    sums: &'a mut [f64],
    products: &'a mut [f64],
}

impl Vectorised for ColumnProducts<'_> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, _simd: S) {
        let Self { rows, panel, factors, count, sums, products } = self;
        let mut done = 0;
        for (height, part) in rows.parts() {
            let part = part[panel * height * PANEL..(panel + 1) * height * PANEL].as_chunks::<PANEL>().0;
            let factors = &factors[done * count..(done + height) * count];
            for t in 0..count.max(1) {
                let (totals, weighted) = if count == 1 {
                    totals::<FMA>(part, factors.iter())
                } else if count == 0 {
                    totals::<FMA>(part, std::iter::repeat(&0.0))
                } else {
                    totals::<FMA>(part, factors[t..].iter().step_by(count))
                };
                if t == 0 {
                    sums.iter_mut().zip(totals).for_each(|(out, total)| *out += total);
                }
                if count > 0 {
                    products.chunks_exact_mut(count).zip(weighted).for_each(|(out, total)| out[t] += total);
                }
            }
            done += height;
        }
    }
}

/// Σ of rows, and Σ of rows times factors.
#[inline(always)]
fn totals<'a, const FMA: bool>(
    rows: &[[f64; PANEL]],
    mut factors: impl Iterator<Item = &'a f64>,
) -> ([f64; PANEL], [f64; PANEL]) {
    // Rows are taken in turn by several sums, which need not wait for each other.
    let (mut totals, mut weighted) = ([[0.0; PANEL]; CHAINS], [[0.0; PANEL]; CHAINS]);
    let mut add = |total: &mut [f64; PANEL], weighted: &mut [f64; PANEL], row: &[f64; PANEL]| {
        let factor = factors.next().copied().unwrap_or(0.0);
        for q in 0..PANEL {
            total[q] += row[q];
            weighted[q] = multiply_add::<FMA>(row[q], factor, weighted[q]);
        }
    };
    let (groups, rest) = rows.as_chunks::<CHAINS>();
    for group in groups {
        for c in 0..CHAINS {
            add(&mut totals[c], &mut weighted[c], &group[c]);
        }
    }
    for (c, row) in rest.iter().enumerate() {
        add(&mut totals[c], &mut weighted[c], row);
    }
    let sum = |parts: [[f64; PANEL]; CHAINS]| std::array::from_fn(|q| parts.iter().map(|part| part[q]).sum());
    (sum(totals), sum(weighted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;
    use faer::Mat;

    #[test]
    fn filled_in_strips_or_loaded_whole_is_the_same_and_so_are_sums_of_columns() {
        let mut rng = Generator::new(4);
        for (rows, dim, targets) in [(1, 1, 1), (383, 7, 0), (385, 8, 2), (1000, 301, 3), (0, 5, 1), (5, 0, 1)] {
            let block = Mat::from_fn(rows, dim, |_, _| rng.normal());
            let vectors = Mat::from_fn(rows, targets, |_, _| rng.normal());
            let mut loaded = PackedRows::default();
            loaded.load(block.as_ref(), true);
            let mut scratch: Vec<()> = Vec::new();
            // Memory that held something else before.
            let mut filled = PackedRows::default();
            filled.load(Mat::from_fn(90, 40, |_, _| 7.0).as_ref(), false);
            for strip in [1, 32, 500] {
                filled.fill((rows, dim), &mut scratch, |(), mut part| {
                    let rows = block.subrows(part.range().start, part.range().len());
                    for from in (0..rows.nrows()).step_by(strip) {
                        part.pack(from, rows.subrows(from, strip.min(rows.nrows() - from)));
                    }
                });
                assert!(filled.parts().eq(loaded.parts()), "{rows} {dim} {strip}");
            }
            let centre: Vec<f64> = (0..rows).map(|i| 0.1 * i as f64).collect();
            // What stood there before must not matter.
            let mut distances = vec![f64::INFINITY; dim];
            filled.squared_distances(&centre, &mut distances);
            for (column, found) in block.col_iter().zip(&distances) {
                let expected: f64 = column.iter().zip(&centre).map(|(a, b)| (a - b).powi(2)).sum();
                assert!((found - expected).abs() <= 1e-12 * expected, "{rows} {dim}: {found} {expected}");
            }
            let (mut sums, mut products) = (vec![1.0; dim], vec![2.0; dim * targets]);
            filled.add_column_products(vectors.as_ref(), &mut sums, &mut products);
            let expected = block.transpose() * &vectors;
            for j in 0..dim {
                assert!((sums[j] - 1.0 - block.col(j).iter().sum::<f64>()).abs() < 1e-11);
                assert!((0..targets).all(|t| (products[j * targets + t] - 2.0 - expected[(j, t)]).abs() < 1e-11));
            }
        }
    }
}
