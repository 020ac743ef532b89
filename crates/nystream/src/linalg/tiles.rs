//! A lower triangular matrix that grows by rows, in tiles of 4 × 4: four rows are one stream of memory, and a vector is
//! multiplied by the matrix and then by its transpose in one reading of it.

use pulp::Simd;

use super::vectorised::{Vectorised, multiply_add, vectorised};

const SIDE: usize = 4;

/// Rows of four columns.
type Tile = [[f64; SIDE]; SIDE];

/// L, with zeros above its diagonal.
#[derive(Debug, Clone, Default)]
pub(crate) struct TiledTriangle {
    len: usize,
    /// Row after row of tiles, each up to the diagonal.
    tiles: Vec<Tile>,
}

/// Where row `g` of tiles begins.
fn start(g: usize) -> usize {
    g * (g + 1) / 2
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
            tile[r][..numbers.len()].copy_from_slice(numbers);
        }
        self.len += 1;
    }

    /// Row `i`, zeros included.
    pub(crate) fn row(&self, i: usize) -> impl Iterator<Item = f64> {
        let tiles = &self.tiles[start(i / SIDE)..start(i / SIDE + 1)];
        let numbers = tiles.iter().flat_map(move |tile| tile[i % SIDE]);
        numbers.chain(std::iter::repeat(0.0)).take(self.len)
    }

    /// out = LᵀL x; gives xᵀLᵀL x.
    ///
    /// # Panics
    /// If `x` or `out` is not of one number a row.
    pub(crate) fn twice(&self, x: &[f64], out: &mut [f64]) -> f64 {
        assert!(x.len() == self.len && out.len() == self.len, "a number per row");
        let mut squares = 0.0;
        vectorised(Twice { tiles: &self.tiles, x, out, squares: &mut squares });
        squares
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.tiles.capacity() * size_of::<Tile>()
    }
}

struct Twice<'a> {
    tiles: &'a [Tile],
    x: &'a [f64],
    out: &'a mut [f64],
    squares: &'a mut f64,
}

impl Vectorised for Twice<'_> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, simd: S) {
        let Self { tiles, x, out, squares } = self;
        out.fill(0.0);
        let (whole, x_rest) = x.as_chunks::<SIDE>();
        let (sums, out_rest) = out.as_chunks_mut::<SIDE>();
        for g in 0..whole.len() {
            let tiles = &tiles[start(g)..start(g + 1)];
            *squares += if S::F64_LANES == SIDE {
                in_registers(simd, tiles, &whole[..=g], &mut sums[..=g])
            } else {
                let values = times::<FMA>(tiles, &whole[..=g]);
                add_transposed::<FMA>(tiles, &values, &mut sums[..=g]);
                squared(&values)
            };
        }
        if !x_rest.is_empty() {
            // Rows that do not fill a tile: those that are not there are zero.
            let g = whole.len();
            let (before, last) = tiles[start(g)..start(g + 1)].split_at(g);
            let (mut x_last, mut sums_last) = ([0.0; SIDE], [0.0; SIDE]);
            x_last[..x_rest.len()].copy_from_slice(x_rest);
            let mut values = times::<FMA>(before, whole);
            let more = times::<FMA>(last, &[x_last]);
            (0..SIDE).for_each(|r| values[r] += more[r]);
            *squares += squared(&values);
            add_transposed::<FMA>(before, &values, sums);
            add_transposed::<FMA>(last, &values, std::slice::from_mut(&mut sums_last));
            out_rest.copy_from_slice(&sums_last[..out_rest.len()]);
        }
    }
}

fn squared(values: &[f64; SIDE]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// Both products of a row of tiles where a row of a tile is one register; gives the sum of the squares of the first. With
/// explicit vectors: left to itself, the compiler puts them together from single numbers.
#[inline(always)]
fn in_registers<S: Simd>(simd: S, tiles: &[Tile], x: &[[f64; SIDE]], sums: &mut [[f64; SIDE]]) -> f64 {
    let tiles = S::as_simd_f64s(tiles.as_flattened().as_flattened()).0.as_chunks::<SIDE>().0;
    let (x, out) = (S::as_simd_f64s(x.as_flattened()).0, S::as_mut_simd_f64s(sums.as_flattened_mut()).0);
    // Two sums a row: one alone would wait for itself.
    let (mut even, mut odd) = ([simd.splat_f64s(0.0); SIDE], [simd.splat_f64s(0.0); SIDE]);
    let ((pairs, last), (x_pairs, x_last)) = (tiles.as_chunks::<2>(), x.as_chunks::<2>());
    for (tiles, x) in pairs.iter().zip(x_pairs) {
        for r in 0..SIDE {
            even[r] = simd.mul_add_e_f64s(tiles[0][r], x[0], even[r]);
            odd[r] = simd.mul_add_e_f64s(tiles[1][r], x[1], odd[r]);
        }
    }
    for (tile, x) in last.iter().zip(x_last) {
        for r in 0..SIDE {
            even[r] = simd.mul_add_e_f64s(tile[r], *x, even[r]);
        }
    }
    let values: [f64; SIDE] = std::array::from_fn(|r| simd.reduce_sum_f64s(simd.add_f64s(even[r], odd[r])));
    let spread = values.map(|value| simd.splat_f64s(value));
    // The tiles are near: they have just been read.
    for (tile, out) in tiles.iter().zip(out) {
        let first = simd.mul_add_e_f64s(tile[1], spread[1], simd.mul_add_e_f64s(tile[0], spread[0], *out));
        *out = simd.mul_add_e_f64s(tile[3], spread[3], simd.mul_add_e_f64s(tile[2], spread[2], first));
    }
    squared(&values)
}

/// The products of a row of tiles.
#[inline(always)]
fn times<const FMA: bool>(tiles: &[Tile], x: &[[f64; SIDE]]) -> [f64; SIDE] {
    let mut sums = Tile::default();
    for (tile, x) in tiles.iter().zip(x) {
        for r in 0..SIDE {
            for c in 0..SIDE {
                sums[r][c] = multiply_add::<FMA>(tile[r][c], x[c], sums[r][c]);
            }
        }
    }
    sums.map(|sums| sums.iter().sum())
}

/// Adds the products of the columns of a row of tiles.
#[inline(always)]
fn add_transposed<const FMA: bool>(tiles: &[Tile], values: &[f64; SIDE], sums: &mut [[f64; SIDE]]) {
    for (tile, sums) in tiles.iter().zip(sums) {
        let mut sum = *sums;
        for r in 0..SIDE {
            for c in 0..SIDE {
                sum[c] = multiply_add::<FMA>(tile[r][c], values[r], sum[c]);
            }
        }
        *sums = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn a_triangle_twice_is_the_product_with_its_gram_matrix() {
        let mut rng = Generator::new(6);
        let mut triangle = TiledTriangle::default();
        let mut lower: Vec<Vec<f64>> = Vec::new();
        for n in 0..40 {
            let x: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
            let mut out = vec![7.0; n];
            let squares = triangle.twice(&x, &mut out);
            let v: Vec<f64> = lower.iter().map(|row| row.iter().zip(&x).map(|(l, x)| l * x).sum()).collect();
            let size: f64 = v.iter().map(|v| v * v).sum();
            assert!((squares - size).abs() <= 1e-13 * n as f64 * size, "{n}");
            for j in 0..n {
                let expected: f64 = (j..n).map(|i| lower[i][j] * v[i]).sum();
                assert!((out[j] - expected).abs() < 1e-12 * n as f64 * (1.0 + size.sqrt()), "{n}");
            }
            lower.push((0..=n).map(|_| rng.normal()).collect());
            triangle.push(&lower[n]);
            let padded =
                |row: &[f64]| row.iter().copied().chain(std::iter::repeat(0.0)).take(n + 1).collect::<Vec<_>>();
            assert!((0..=n).all(|i| triangle.row(i).collect::<Vec<_>>() == padded(&lower[i])));
        }
    }
}
