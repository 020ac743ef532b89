//! The symmetric product behind [`GramSum`](super::GramSum): ΦᵀΦ of a block of rows, packed once for all tiles and threads.
//!
//! Both factors are the same block, so one packed copy ([`PackedRows`]) serves as left and as right factor of every tile.
//! The innermost loop keeps 8 × 6 sums in registers (two registers of rows
//! of the result, six columns; with AVX2 that is 12 of 16 registers) and reads two panels on the left, one and a half on
//! the right: from three panels two such products are made. With AVX-512 it keeps 8 × 12, from all three at once. Its sums
//! run over hundreds of rows before they are added to the result, always in the order of the rows.

use pulp::{Arch, Scalar, Simd, WithSimd};

use super::packed_rows::{PANEL, PackedRows};
use super::registers::{Lanes, Plain, Registers};

/// Panels on the left of a product.
const LEFT: usize = 2;
/// Rows of a strip of the result.
pub(super) const STRIP: usize = LEFT * PANEL;
/// Panels on the right that are taken together, as two products.
const RIGHT: usize = 3;
/// Columns of a product.
const WIDTH: usize = RIGHT * PANEL / 2;
/// Columns of two.
pub(super) const DOZEN: usize = 2 * WIDTH;

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
    /// Must be `#[inline(always)]`, as everything it calls.
    fn run<R: Registers>(self, registers: R);
}

struct Dispatched<T>(T);

impl<T: OnPanels> WithSimd for Dispatched<T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F64_LANES {
            4 => self.0.run(Plain::<S, 1>(simd)),
            2 => self.0.run(Plain::<S, 2>(simd)),
            _ => self.0.run(Plain::<Scalar, 4>(Scalar)),
        }
    }
}

/// A task with the registers it runs on.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
struct On<R, T>(R, T);

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl<R: Registers, T: OnPanels> pulp::NullaryFnOnce for On<R, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.1.run(self.0);
    }
}

/// Runs `task` in its best version for this processor.
#[inline]
pub(super) fn on_panels(task: impl OnPanels) {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        use pulp::x86::{V3, V4};
        if let Some(wide) = V4::try_new() {
            return wide.vectorize(On(super::registers::Wide(wide), task));
        }
        if let Some(narrow) = V3::try_new() {
            return narrow.vectorize(On(Plain::<V3, 1>(narrow), task));
        }
    }
    Arch::new().dispatch(Dispatched(task));
}

impl OnPanels for Products<'_> {
    #[inline(always)]
    fn run<R: Registers>(self, registers: R) {
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
                let panel = |a: usize| left[a * size..(a + 1) * size].as_chunks::<PANEL>().0;
                if left.len() == LEFT * size {
                    add_strip(registers, height, [panel(0), panel(1)], right, target);
                } else {
                    add_strip(registers, height, [panel(0)], right, target);
                }
            }
        }
    }
}

/// Products of panels with all those on the right.
#[inline(always)]
fn add_strip<R: Registers, L: Left<R>>(registers: R, height: usize, left: L, right: &[f64], target: &mut [f64]) {
    let size = height * PANEL;
    let mut groups = right.chunks_exact(RIGHT * size);
    let (columns, _) = target.as_chunks_mut::<STRIP>();
    let (targets, rest) = columns.as_chunks_mut::<DOZEN>();
    for (right, target) in groups.by_ref().zip(targets) {
        let right = std::array::from_fn(|p| right[p * size..(p + 1) * size].as_chunks::<PANEL>().0);
        add_dozen::<R, L, false>(registers, [height; 2], left, right, target);
    }
    let (targets, _) = rest.as_chunks_mut::<PANEL>();
    for (right, target) in groups.remainder().chunks_exact(size).zip(targets) {
        add_columns::<R, L, PANEL, 0, false, 1>(registers, height, left, [right.as_chunks::<PANEL>().0], target);
    }
}

/// One or two panels of the left of a product: a row of a strip, or half of one.
pub(super) trait Left<R>: Copy {
    type Numbers: Copy;
    type Factor: Copy;
    /// Whether sums of twelve columns fit.
    const DOZEN: bool;

    /// The first rows.
    fn cut(self, height: usize) -> Self;
    fn row(&self, registers: R, k: usize) -> Self::Numbers;
    fn splat(registers: R, value: f64) -> Self::Factor;
    fn zero(registers: R) -> Self::Numbers;
    fn mul_add(registers: R, a: Self::Numbers, factor: Self::Factor, c: Self::Numbers) -> Self::Numbers;
    /// Adds to, or with `MINUS` subtracts from, a column.
    fn take<const MINUS: bool>(registers: R, numbers: Self::Numbers, column: &mut [f64; STRIP]);
}

/// Of `N` numbers a row.
macro_rules! left {
    ($panels: literal, $n: literal, $dozen: expr, $row: expr, $part: expr) => {
        impl<R: Registers> Left<R> for [&[[f64; PANEL]]; $panels] {
            type Numbers = <R as Lanes<$n>>::Numbers;
            type Factor = <R as Lanes<$n>>::Factor;
            const DOZEN: bool = $dozen;

            #[inline(always)]
            fn cut(self, height: usize) -> Self {
                self.map(|panel| &panel[..height])
            }

            #[inline(always)]
            fn row(&self, registers: R, k: usize) -> Self::Numbers {
                $row(self, registers, k)
            }

            #[inline(always)]
            fn splat(registers: R, value: f64) -> Self::Factor {
                Lanes::<$n>::splat(registers, value)
            }

            #[inline(always)]
            fn zero(registers: R) -> Self::Numbers {
                Lanes::<$n>::zero(registers)
            }

            #[inline(always)]
            fn mul_add(registers: R, a: Self::Numbers, factor: Self::Factor, c: Self::Numbers) -> Self::Numbers {
                Lanes::<$n>::mul_add(registers, a, factor, c)
            }

            #[inline(always)]
            fn take<const MINUS: bool>(registers: R, numbers: Self::Numbers, column: &mut [f64; STRIP]) {
                let column: &mut [f64; $n] = $part(column);
                let before = registers.read(column);
                let after = if MINUS {
                    Lanes::<$n>::sub(registers, before, numbers)
                } else {
                    Lanes::<$n>::add(registers, before, numbers)
                };
                registers.write(after, column);
            }
        }
    };
}

left!(1, 4, false, |left: &Self, registers: R, k: usize| registers.read(&left[0][k]), first_half);
left!(2, 8, R::WIDE, |left: &Self, registers: R, k: usize| registers.join(&left[0][k], &left[1][k]), whole);

#[inline(always)]
fn first_half(column: &mut [f64; STRIP]) -> &mut [f64; PANEL] {
    &mut column.as_chunks_mut().0[0]
}

#[inline(always)]
fn whole(column: &mut [f64; STRIP]) -> &mut [f64; STRIP] {
    column
}

/// Adds (or, with `MINUS`, subtracts) the products of the left with the twelve columns of three panels: with the first six
/// over so many rows, with the others over as many as the second number says, at least as many. Where the first end before, they
/// are zero, or registers are narrow.
#[inline(always)]
pub(super) fn add_dozen<R: Registers, L: Left<R>, const MINUS: bool>(
    registers: R,
    heights: [usize; 2],
    left: L,
    right: [&[[f64; PANEL]]; RIGHT],
    target: &mut [[f64; STRIP]; DOZEN],
) {
    if L::DOZEN {
        add_columns::<R, L, DOZEN, 0, MINUS, RIGHT>(registers, heights[1], left, right, target);
    } else {
        let (one, other) = target.split_at_mut(WIDTH);
        add_columns::<R, L, WIDTH, 0, MINUS, RIGHT>(registers, heights[0], left, right, one);
        add_columns::<R, L, WIDTH, WIDTH, MINUS, RIGHT>(registers, heights[1], left, right, other);
    }
}

/// Adds (or, with `MINUS`, subtracts) the products of the left with `W` columns of the panels on the right, from column `FROM` on.
#[inline(always)]
fn add_columns<R: Registers, L: Left<R>, const W: usize, const FROM: usize, const MINUS: bool, const P: usize>(
    registers: R,
    height: usize,
    left: L,
    right: [&[[f64; PANEL]]; P],
    target: &mut [[f64; STRIP]],
) {
    // Of the same length, as the compiler then knows.
    let (left, right) = (left.cut(height), right.map(|panel| &panel[..height]));
    let mut sums = [L::zero(registers); W];
    for k in 0..height {
        let row = left.row(registers, k);
        for j in 0..W {
            let factor = L::splat(registers, right[(FROM + j) / PANEL][k][(FROM + j) % PANEL]);
            sums[j] = L::mul_add(registers, row, factor, sums[j]);
        }
    }
    for (column, sums) in target.iter_mut().zip(sums) {
        L::take::<MINUS>(registers, sums, column);
    }
}

#[cfg(test)]
mod tests {
    use super::super::packed_rows::DEPTH;
    use super::super::registers::narrow;
    use super::*;
    use crate::random::Generator;
    use faer::{Mat, MatRef};

    /// The sums in the area where it is on or below the diagonal are those of the naive product.
    fn check<R: Registers>(registers: R, block: MatRef<'_, f64>, area: Area) {
        let mut rows = PackedRows::default();
        rows.load(block, false);
        let mut target = vec![1.0; area.size()];
        Products { rows: &rows, area, target: &mut target }.run(registers);
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
                check(Plain::<Scalar, 4>(Scalar), block.as_ref(), whole);
                let mut sums = vec![0.0; whole.size()];
                let mut packed = PackedRows::default();
                packed.load(block.as_ref(), true);
                add_products(&packed, whole, &mut sums);
                if let Some(narrow) = narrow() {
                    let mut same = vec![0.0; whole.size()];
                    Products { rows: &packed, area: whole, target: &mut same }.run(narrow);
                    assert_eq!(same, sums);
                }
                let expected = block.transpose() * &block;
                for j in 0..dim {
                    assert!((j..dim).all(|i| (sums[whole.place(i, j)] - expected[(i, j)]).abs() < 1e-11));
                }
                if dim > 24 {
                    check(
                        Plain::<Scalar, 4>(Scalar),
                        block.as_ref(),
                        Area { row: 24, col: 0, height: dim - 24, width: 24 },
                    );
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
