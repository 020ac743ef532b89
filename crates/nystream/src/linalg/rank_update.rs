//! The symmetric product behind [`GramSum`](super::GramSum): ΦᵀΦ of a block of rows, packed once for all tiles and threads.
//!
//! Both factors are the same block, so one packed copy ([`PackedRows`]) serves as left and as right factor of every tile.
//! The innermost loop keeps 8 × 6 sums in registers (two registers of rows
//! of the result, six columns; with AVX2 that is 12 of 16 registers) and reads two panels on the left, one and a half on
//! the right: from three panels two such products are made. Its sums run over hundreds of rows before they are added to
//! the result, always in the order of the rows.

use pulp::{Arch, Scalar, Simd, WithSimd};

use super::packed_rows::{PANEL, PackedRows};

/// Panels on the left of a product.
const LEFT: usize = 2;
/// Rows of a strip of the result.
pub(super) const STRIP: usize = LEFT * PANEL;
/// Panels on the right that are taken together, as two products.
const RIGHT: usize = 3;
/// Columns of a product.
const WIDTH: usize = RIGHT * PANEL / 2;
/// Part of the result: its first row and column, numbers of rows and columns, all but the last two multiples of 24.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) row: usize,
    pub(super) col: usize,
    pub(super) height: usize,
    pub(super) width: usize,
}

impl Area {
    /// Numbers from one strip to the next.
    fn stride(&self) -> usize {
        self.width.next_multiple_of(PANEL) * STRIP
    }

    /// How many numbers hold it.
    pub(super) fn size(&self) -> usize {
        self.height.div_ceil(STRIP) * self.stride()
    }

    /// Where the entry of a row and a column, counted within the area, is held: strips of 8 rows, column by column.
    pub(super) fn place(&self, row: usize, col: usize) -> usize {
        row / STRIP * self.stride() + col * STRIP + row % STRIP
    }
}

/// Adds the products of the packed rows that belong to an area. Above the diagonal, some are left out.
pub(super) fn add_products(rows: &PackedRows, area: Area, target: &mut [f64]) {
    on_panels(Products { rows, area, target });
}

struct Products<'a> {
    rows: &'a PackedRows,
    area: Area,
    target: &'a mut [f64],
}

/// A computation on panels, compiled once for every instruction set.
pub(super) trait OnPanels {
    /// `V` registers hold a row of a panel. Must be `#[inline(always)]`, as everything it calls.
    fn run<S: Simd, const V: usize>(self, simd: S);
}

struct Dispatched<T>(T);

impl<T: OnPanels> WithSimd for Dispatched<T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F64_LANES {
            4 => self.0.run::<S, 1>(simd),
            2 => self.0.run::<S, 2>(simd),
            _ => self.0.run::<Scalar, 4>(Scalar),
        }
    }
}

/// Runs `task` in its best version for this processor.
#[inline]
pub(super) fn on_panels(task: impl OnPanels) {
    Arch::new().dispatch(Dispatched(task));
}

impl OnPanels for Products<'_> {
    #[inline(always)]
    fn run<S: Simd, const V: usize>(self, simd: S) {
        let Self { rows, area, target } = self;
        let (first, left_panels) = (area.row / PANEL, area.height.div_ceil(PANEL));
        let (from, right_panels) = (area.col / PANEL, area.width.div_ceil(PANEL));
        for (height, part) in rows.parts() {
            let size = height * PANEL;
            let left = part[first * size..(first + left_panels) * size].chunks(LEFT * size);
            for (g, (left, target)) in left.zip(target.chunks_exact_mut(area.stride())).enumerate() {
                // Panels of columns past the last row of the strip are above the diagonal.
                let needed = right_panels.min((first + (g + 1) * LEFT).saturating_sub(from));
                let right = &part[from * size..(from + needed) * size];
                let target = &mut target[..needed * PANEL * STRIP];
                if left.len() == LEFT * size {
                    add_strip::<S, V, LEFT>(simd, height, left, right, target);
                } else {
                    add_strip::<S, V, 1>(simd, height, left, right, target);
                }
            }
        }
    }
}

/// Products of `A` panels with all those on the right.
#[inline(always)]
fn add_strip<S: Simd, const V: usize, const A: usize>(
    simd: S,
    height: usize,
    left: &[f64],
    right: &[f64],
    target: &mut [f64],
) {
    let size = height * PANEL;
    let left = std::array::from_fn(|a| S::as_simd_f64s(&left[a * size..(a + 1) * size]).0.as_chunks::<V>().0);
    let mut groups = right.chunks_exact(RIGHT * size);
    let (targets, rest) = target.as_chunks_mut::<{ 2 * WIDTH * STRIP }>();
    for (right, target) in groups.by_ref().zip(targets) {
        let [a, b, c] = std::array::from_fn(|p| right[p * size..(p + 1) * size].as_chunks::<PANEL>().0);
        let (one, other) = target.split_at_mut(WIDTH * STRIP);
        add_columns::<S, V, A, WIDTH, 0, false>(simd, height, left, [a, b], one);
        add_columns::<S, V, A, WIDTH, { PANEL / 2 }, false>(simd, height, left, [b, c], other);
    }
    let (targets, _) = rest.as_chunks_mut::<{ PANEL * STRIP }>();
    for (right, target) in groups.remainder().chunks_exact(size).zip(targets) {
        let right = right.as_chunks::<PANEL>().0;
        add_columns::<S, V, A, PANEL, 0, false>(simd, height, left, [right, right], target);
    }
}

/// Adds (or, with `MINUS`, subtracts) the products of `A` panels with `W` columns of the two panels on the right, from column
/// `FROM` on.
#[inline(always)]
pub(super) fn add_columns<
    S: Simd,
    const V: usize,
    const A: usize,
    const W: usize,
    const FROM: usize,
    const MINUS: bool,
>(
    simd: S,
    height: usize,
    left: [&[[S::f64s; V]]; A],
    right: [&[[f64; PANEL]]; 2],
    target: &mut [f64],
) {
    // Of the same length, as the compiler then knows.
    let (left, right) = (left.map(|panel| &panel[..height]), right.map(|panel| &panel[..height]));
    let mut sums = [[[simd.splat_f64s(0.0); V]; A]; W];
    for k in 0..height {
        for j in 0..W {
            let factor = simd.splat_f64s(right[(FROM + j) / PANEL][k][(FROM + j) % PANEL]);
            for a in 0..A {
                for v in 0..V {
                    sums[j][a][v] = simd.mul_add_e_f64s(left[a][k][v], factor, sums[j][a][v]);
                }
            }
        }
    }
    for (column, sums) in target.as_chunks_mut::<STRIP>().0.iter_mut().zip(&sums) {
        let column = S::as_mut_simd_f64s(column).0.as_chunks_mut::<V>().0;
        for (out, sums) in column.iter_mut().zip(sums) {
            (0..V).for_each(|v| {
                out[v] = if MINUS { simd.sub_f64s(out[v], sums[v]) } else { simd.add_f64s(out[v], sums[v]) };
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packed_rows::DEPTH;
    use super::*;
    use crate::random::Generator;
    use faer::{Mat, MatRef};

    /// The sums in the area where it is on or below the diagonal are those of the naive product.
    fn check<S: Simd, const V: usize>(simd: S, block: MatRef<'_, f64>, area: Area) {
        let mut rows = PackedRows::default();
        rows.load(block, false);
        let mut target = vec![1.0; area.size()];
        Products { rows: &rows, area, target: &mut target }.run::<S, V>(simd);
        for j in 0..area.width {
            for i in 0..area.height {
                let (row, col) = (area.row + i, area.col + j);
                if row >= col {
                    let expected = 1.0 + (0..block.nrows()).map(|k| block[(k, row)] * block[(k, col)]).sum::<f64>();
                    let found = target[area.place(i, j)];
                    assert!((found - expected).abs() < 1e-11, "{row} {col}: {found}, not {expected}");
                }
            }
        }
    }

    #[test]
    fn products_of_any_shape_equal_the_naive_ones_on_any_registers() {
        let mut rng = Generator::new(3);
        for dim in [1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 24, 61] {
            for rows in [1, 7, DEPTH - 1, DEPTH + 1, 2 * DEPTH + 3] {
                let block = Mat::from_fn(rows, dim, |_, _| rng.normal());
                let whole = Area { row: 0, col: 0, height: dim, width: dim };
                check::<Scalar, 4>(Scalar, block.as_ref(), whole);
                let mut sums = vec![0.0; whole.size()];
                let mut packed = PackedRows::default();
                packed.load(block.as_ref(), true);
                add_products(&packed, whole, &mut sums);
                let expected = block.transpose() * &block;
                for j in 0..dim {
                    assert!((j..dim).all(|i| (sums[whole.place(i, j)] - expected[(i, j)]).abs() < 1e-11));
                }
                if dim > 24 {
                    check::<Scalar, 4>(Scalar, block.as_ref(), Area { row: 24, col: 0, height: dim - 24, width: 24 });
                }
            }
        }
    }

    #[test]
    fn rows_across_and_memory_used_before_make_no_difference() {
        let mut rng = Generator::new(8);
        let across = Mat::from_fn(13, 20, |_, _| rng.normal());
        let along = across.transpose().to_owned();
        let area = Area { row: 0, col: 0, height: 13, width: 13 };
        let mut packed = PackedRows::default();
        let mut sums = [(); 2].map(|()| vec![0.0; area.size()]);
        packed.load(along.as_ref(), false);
        add_products(&packed, area, &mut sums[0]);
        packed.load(Mat::from_fn(50, 31, |_, _| 7.0).as_ref(), false);
        packed.load(across.transpose(), false);
        add_products(&packed, area, &mut sums[1]);
        assert_eq!(sums[0], sums[1]);
    }
}
