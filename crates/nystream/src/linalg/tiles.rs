//! Matrices in tiles of 4 × 4, to be multiplied with one vector and then, transposed, with the result: four rows are one
//! stream of memory, which is read once for both products.
//!
//! The matrices are larger than the nearest cache, and reading them takes as long as the arithmetic. So the second product
//! of some rows is made together with the first of the next: the ones are near, the others on their way.
//!
//! Vectors are copied to memory that is filled up with zeros to whole tiles, and begins where a line of the cache does.

use pulp::Simd;

use super::aligned::Aligned;
use super::vectorised::{Vectorised, multiply_add, vectorised};

const SIDE: usize = 4;

/// Rows of four columns, two whole lines of a cache: a row across the border of two lines would be read twice.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Tile([[f64; SIDE]; SIDE]);

/// Numbers of a vector that meet one tile.
type Part = [f64; SIDE];

/// L, a lower triangle that grows by rows, with zeros above its diagonal.
#[derive(Debug, Clone, Default)]
pub(crate) struct TiledTriangle {
    len: usize,
    /// Row after row of tiles, each up to the diagonal.
    tiles: Vec<Tile>,
    /// x, Lx and Lᵀ times that.
    x: Aligned<SIDE>,
    values: Aligned<SIDE>,
    sums: Aligned<SIDE>,
}

/// Where row `g` of a triangle's tiles begins.
fn start(g: usize) -> usize {
    g * (g + 1) / 2
}

fn rows_of_triangle(tiles: &[Tile], groups: usize) -> impl Iterator<Item = &[Tile]> {
    (0..groups).map(|g| &tiles[start(g)..start(g + 1)])
}

impl TiledTriangle {
    /// Adds a row, up to the diagonal.
    ///
    /// # Panics
    /// If it is not of one number more than the matrix has rows.
    pub(crate) fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.len + 1, "a row up to the diagonal");
        let (g, r) = (self.len / SIDE, self.len % SIDE);
        self.tiles.resize(start(g + 1), Tile::default());
        for (tile, numbers) in self.tiles[start(g)..].iter_mut().zip(row.chunks(SIDE)) {
            tile.0[r][..numbers.len()].copy_from_slice(numbers);
        }
        self.len += 1;
        if r == 0 {
            (self.x, self.values, self.sums) = (Aligned::zeros(g + 1), Aligned::zeros(g + 1), Aligned::zeros(g + 1));
        }
    }

    /// Row `i`, zeros included.
    pub(crate) fn row(&self, i: usize) -> impl Iterator<Item = f64> {
        let tiles = &self.tiles[start(i / SIDE)..start(i / SIDE + 1)];
        let numbers = tiles.iter().flat_map(move |tile| tile.0[i % SIDE]);
        numbers.chain(std::iter::repeat(0.0)).take(self.len)
    }

    /// out = LᵀL x; gives xᵀLᵀL x.
    ///
    /// # Panics
    /// If `x` or `out` is not of one number a row.
    pub(crate) fn twice(&mut self, x: &[f64], out: &mut [f64]) -> f64 {
        assert!(x.len() == self.len && out.len() == self.len, "a number per row");
        self.x.as_flattened_mut()[..x.len()].copy_from_slice(x);
        self.sums.fill(Part::default());
        let (rows, mut squares) = (rows_of_triangle(&self.tiles, self.x.len()), 0.0);
        vectorised(Twice { rows, x: &self.x, factor: 1.0, sums: &mut self.sums, squares: &mut squares });
        out.copy_from_slice(&self.sums.as_flattened()[..self.len]);
        squares
    }

    /// The first half of [`twice`](Self::twice): xᵀLᵀL x, the same bits.
    ///
    /// # Panics
    /// If `x` is not of one number a row.
    pub(crate) fn first(&mut self, x: &[f64]) -> f64 {
        self.x.as_flattened_mut()[..self.len].copy_from_slice(x);
        let (rows, mut squares) = (rows_of_triangle(&self.tiles, self.x.len()), 0.0);
        vectorised(First { rows, x: &self.x, values: &mut self.values, squares: &mut squares });
        squares
    }

    /// The second half, after the first: out = LᵀL x, the same bits.
    ///
    /// # Panics
    /// If `out` is not of one number a row.
    pub(crate) fn second(&mut self, out: &mut [f64]) {
        self.sums.fill(Part::default());
        let rows = rows_of_triangle(&self.tiles, self.values.len());
        vectorised(Second { rows, values: &self.values, sums: &mut self.sums });
        out.copy_from_slice(&self.sums.as_flattened()[..self.len]);
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let vectors = self.x.size_bytes() + self.values.size_bytes() + self.sums.size_bytes();
        self.tiles.capacity() * size_of::<Tile>() + vectors
    }
}

/// M, rows of the same length.
#[derive(Debug, Clone, Default)]
pub(crate) struct TiledRows {
    len: usize,
    width: usize,
    tiles: Vec<Tile>,
    /// x, M x, and Mᵀ times something.
    x: Aligned<SIDE>,
    values: Aligned<SIDE>,
    sums: Aligned<SIDE>,
}

impl TiledRows {
    /// Rows of `width` numbers, one after the other.
    pub(crate) fn new(width: usize, numbers: &[f64]) -> Self {
        let parts = width.div_ceil(SIDE);
        let len = numbers.len() / width.max(1);
        let mut tiles = vec![Tile::default(); len.div_ceil(SIDE) * parts];
        for (i, row) in numbers.chunks_exact(width.max(1)).enumerate() {
            for (tile, numbers) in tiles[i / SIDE * parts..].iter_mut().zip(row.chunks(SIDE)) {
                tile.0[i % SIDE][..numbers.len()].copy_from_slice(numbers);
            }
        }
        let values = Aligned::zeros(len.div_ceil(SIDE));
        Self { len, width, tiles, sums: Aligned::zeros(parts), x: Aligned::zeros(parts), values }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it is not of one number a column.
    pub(crate) fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.width, "a number per column");
        let (parts, r) = (self.x.len(), self.len % SIDE);
        if r == 0 {
            self.tiles.resize(self.tiles.len() + parts, Tile::default());
        }
        let first = self.tiles.len() - parts;
        for (tile, numbers) in self.tiles[first..].iter_mut().zip(row.chunks(SIDE)) {
            tile.0[r][..numbers.len()].copy_from_slice(numbers);
        }
        self.len += 1;
        if self.values.len() * SIDE < self.len {
            // Twice as many as are needed now, so that few rows ask for more.
            self.values = Aligned::zeros(2 * self.len.div_ceil(SIDE));
        }
    }

    /// Row after row.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let row = |i: usize| self.tiles[i / SIDE * self.x.len()..].iter().flat_map(move |tile| tile.0[i % SIDE]);
        (0..self.len).flat_map(|i| row(i).take(self.width)).collect()
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// out = M x.
    ///
    /// # Panics
    /// If `x` is not of one number a column, or `out` of one number a row.
    pub(crate) fn times(&mut self, x: &[f64], out: &mut [f64]) {
        assert_eq!(x.len(), self.width, "a number per column");
        self.x.as_flattened_mut()[..x.len()].copy_from_slice(x);
        let rows = self.tiles.chunks_exact(self.x.len().max(1));
        vectorised(First { rows, x: &self.x, values: &mut self.values, squares: &mut 0.0 });
        out.copy_from_slice(&self.values.as_flattened()[..self.len]);
    }

    /// out += Mᵀ z.
    ///
    /// # Panics
    /// If `z` is not of one number a row, or `out` of one number a column.
    pub(crate) fn add_transposed_times(&mut self, z: &[f64], out: &mut [f64]) {
        assert_eq!(out.len(), self.width, "a number per column");
        let values = self.values.as_flattened_mut();
        values[..self.len].copy_from_slice(z);
        values[self.len..].fill(0.0);
        self.sums.fill(Part::default());
        let rows = self.tiles.chunks_exact(self.x.len().max(1));
        vectorised(Second { rows, values: &self.values, sums: &mut self.sums });
        out.iter_mut().zip(self.sums.as_flattened()).for_each(|(out, sum)| *out += sum);
    }

    /// out += factor MᵀM x, in one reading of M.
    ///
    /// # Panics
    /// If `x` or `out` is not of one number a column.
    pub(crate) fn add_gram_times(&mut self, x: &[f64], factor: f64, out: &mut [f64]) {
        assert!(x.len() == self.width && out.len() == self.width, "a number per column");
        self.x.as_flattened_mut()[..x.len()].copy_from_slice(x);
        self.sums.fill(Part::default());
        let rows = self.tiles.chunks_exact(self.x.len().max(1));
        vectorised(Twice { rows, x: &self.x, factor, sums: &mut self.sums, squares: &mut 0.0 });
        out.iter_mut().zip(self.sums.as_flattened()).for_each(|(out, sum)| *out += sum);
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let vectors = self.x.size_bytes() + self.values.size_bytes() + self.sums.size_bytes();
        self.tiles.capacity() * size_of::<Tile>() + vectors
    }
}

/// sums += factor MᵀM x, of rows of tiles none of which is shorter than the one before, and xᵀMᵀM x.
struct Twice<'a, R> {
    rows: R,
    x: &'a [Part],
    factor: f64,
    sums: &'a mut [Part],
    squares: &'a mut f64,
}

impl<'t, R: Iterator<Item = &'t [Tile]>> Vectorised for Twice<'_, R> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, simd: S) {
        let Self { rows, x, factor, sums, squares } = self;
        if !in_registers::<FMA, S>() {
            for row in rows {
                let values = times::<FMA>(row, x);
                *squares += squared(&values);
                add_transposed::<FMA>(row, &values.map(|value| factor * value), sums);
            }
            return;
        }
        let (x, sums) = (S::as_simd_f64s(x.as_flattened()).0, S::as_mut_simd_f64s(sums.as_flattened_mut()).0);
        let zero = simd.splat_f64s(0.0);
        let (mut before, mut spread): (&[Tile], _) = (&[], [zero; SIDE]);
        for row in rows {
            let mut products = [zero; SIDE];
            for (((tile, x), old), sum) in row.iter().zip(x).zip(before).zip(&mut *sums) {
                add_products(simd, tile, *x, &mut products);
                *sum = with_columns(simd, old, &spread, *sum);
            }
            for (tile, x) in row[before.len()..].iter().zip(&x[before.len()..]) {
                add_products(simd, tile, *x, &mut products);
            }
            let values: Part = products.map(|product| simd.reduce_sum_f64s(product));
            *squares += squared(&values);
            spread = values.map(|value| simd.splat_f64s(factor * value));
            before = row;
        }
        for (old, sum) in before.iter().zip(sums) {
            *sum = with_columns(simd, old, &spread, *sum);
        }
    }
}

/// values = M x, and xᵀMᵀM x.
struct First<'a, R> {
    rows: R,
    x: &'a [Part],
    values: &'a mut [Part],
    squares: &'a mut f64,
}

impl<'t, R: Iterator<Item = &'t [Tile]>> Vectorised for First<'_, R> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, simd: S) {
        let Self { rows, x, values, squares } = self;
        let registers = S::as_simd_f64s(x.as_flattened()).0;
        for (row, values) in rows.zip(values) {
            *values = if in_registers::<FMA, S>() {
                let mut products = [simd.splat_f64s(0.0); SIDE];
                for (tile, x) in row.iter().zip(registers) {
                    add_products(simd, tile, *x, &mut products);
                }
                products.map(|product| simd.reduce_sum_f64s(product))
            } else {
                times::<FMA>(row, x)
            };
            *squares += squared(values);
        }
    }
}

/// sums += Mᵀ values.
struct Second<'a, R> {
    rows: R,
    values: &'a [Part],
    sums: &'a mut [Part],
}

impl<'t, R: Iterator<Item = &'t [Tile]>> Vectorised for Second<'_, R> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, simd: S) {
        let Self { rows, values, sums } = self;
        for (row, values) in rows.zip(values) {
            if in_registers::<FMA, S>() {
                let spread = values.map(|value| simd.splat_f64s(value));
                for (tile, sum) in row.iter().zip(S::as_mut_simd_f64s(sums.as_flattened_mut()).0) {
                    *sum = with_columns(simd, tile, &spread, *sum);
                }
            } else {
                add_transposed::<FMA>(row, values, sums);
            }
        }
    }
}

/// Whether a row of a tile is a register. Then vectors are explicit: left to itself, the compiler puts them together from
/// single numbers.
#[inline(always)]
fn in_registers<const FMA: bool, S: Simd>() -> bool {
    FMA && S::F64_LANES == SIDE
}

/// Adds the products of the rows of a tile, lane by lane.
#[inline(always)]
fn add_products<S: Simd>(simd: S, tile: &Tile, x: S::f64s, products: &mut [S::f64s; SIDE]) {
    let rows = S::as_simd_f64s(tile.0.as_flattened()).0;
    for r in 0..SIDE {
        products[r] = simd.mul_add_f64s(rows[r], x, products[r]);
    }
}

/// Adds the products of the columns of a tile.
#[inline(always)]
fn with_columns<S: Simd>(simd: S, tile: &Tile, values: &[S::f64s; SIDE], sum: S::f64s) -> S::f64s {
    let rows = S::as_simd_f64s(tile.0.as_flattened()).0;
    let mut sum = sum;
    for r in 0..SIDE {
        sum = simd.mul_add_f64s(rows[r], values[r], sum);
    }
    sum
}

#[inline(always)]
fn squared(values: &Part) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// The products of a row of tiles.
#[inline(always)]
fn times<const FMA: bool>(tiles: &[Tile], x: &[Part]) -> Part {
    let mut sums = [[0.0; SIDE]; SIDE];
    for (tile, x) in tiles.iter().zip(x) {
        for r in 0..SIDE {
            for c in 0..SIDE {
                sums[r][c] = multiply_add::<FMA>(tile.0[r][c], x[c], sums[r][c]);
            }
        }
    }
    sums.map(|sums| sums.iter().sum())
}

/// Adds the products of the columns of a row of tiles.
#[inline(always)]
fn add_transposed<const FMA: bool>(tiles: &[Tile], values: &Part, sums: &mut [Part]) {
    for (tile, sums) in tiles.iter().zip(sums) {
        let mut sum = *sums;
        for r in 0..SIDE {
            for c in 0..SIDE {
                sum[c] = multiply_add::<FMA>(tile.0[r][c], values[r], sum[c]);
            }
        }
        *sums = sum;
    }
}

#[cfg(test)]
mod tests;
