//! Reflections of 24 columns of a triangle together: finding them, and applying them to the rows below.
//!
//! A reflection of column j of L and row j of the block X, I − τ v vᵀ with v = (e_j, y), makes row j of X zero. 24 of them are
//! I − V T Vᵀ with V = (I, Y) and an upper triangle T (R. Schreiber, C. Van Loan, "A storage-efficient WY representation for products
//! of Householder transformations", SIAM J. Sci. Stat. Comput. 10, 1989). Of rows (l, x) below they make (w − l, x − w Yᵀ),
//! w = l T + x (Y T); the first part with its sign changed, for a reflection of a number that is large beside
//! the others turns it round, and diagonals are to stay above zero. (With the other sign, the vector of the reflection would be a difference
//! of nearly equal numbers.)

use pulp::Simd;

use super::super::rank_update::STRIP;
use super::{MOST_ROWS, PIVOTS, STRIPS};

/// Columns of a product of the innermost loop.
const WIDTH: usize = 6;
/// Products that the columns of a panel make.
const PRODUCTS: usize = PIVOTS / WIDTH;

/// A column of a strip of rows.
pub(super) type Column = [f64; STRIP];

/// Where a line of the cache begins.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Lined<T>(pub T);

/// Reflections of `PIVOTS` columns.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    /// Y T, six columns after the other, row by row.
    mixed: [[[f64; WIDTH]; MOST_ROWS]; PRODUCTS],
    /// T, likewise.
    among: [[[f64; WIDTH]; PIVOTS]; PRODUCTS],
    /// −Yᵀ, six columns after the other, row by row.
    vectors: [[[f64; WIDTH]; PIVOTS]; MOST_ROWS / WIDTH],
}

impl Panel {
    pub(super) fn new() -> Self {
        let (mixed, among) = ([[[0.0; _]; _]; _], [[[0.0; _]; _]; _]);
        Self { mixed, among, vectors: [[[0.0; _]; _]; _] }
    }
}

#[inline(always)]
fn read<S: Simd, const V: usize>(column: &Column) -> [[S::f64s; V]; 2] {
    let registers = S::as_simd_f64s(column).0.as_chunks::<V>().0;
    [registers[0], registers[1]]
}

#[inline(always)]
fn write<S: Simd, const V: usize>(column: &mut Column, values: [[S::f64s; V]; 2]) {
    let registers = S::as_mut_simd_f64s(column).0.as_chunks_mut::<V>().0;
    registers[0] = values[0];
    registers[1] = values[1];
}

/// Six columns of sums in registers: two fours of rows each.
type Sums<F, const V: usize> = [[[F; V]; 2]; WIDTH];

/// Adds the products of columns with six numbers each.
#[inline(always)]
fn add_products<S: Simd, const V: usize>(
    simd: S,
    columns: &[Column],
    factors: &[[f64; WIDTH]],
    mut sums: Sums<S::f64s, V>,
) -> Sums<S::f64s, V> {
    for (column, factors) in columns.iter().zip(factors) {
        let column = read::<S, V>(column);
        for j in 0..WIDTH {
            let factor = simd.splat_f64s(factors[j]);
            for half in 0..2 {
                for v in 0..V {
                    sums[j][half][v] = simd.mul_add_e_f64s(column[half][v], factor, sums[j][half][v]);
                }
            }
        }
    }
    sums
}

/// Applies the reflections to a strip of rows: its numbers in the columns of the panel, and in the block.
#[inline(always)]
pub(super) fn apply<S: Simd, const V: usize>(simd: S, panel: &Panel, own: &mut [Column; PIVOTS], block: &mut [Column]) {
    let Lined(changes) = &mut Lined([[0.0; STRIP]; PIVOTS]);
    for (g, changes) in changes.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
        let zero = [[[simd.splat_f64s(0.0); V]; 2]; WIDTH];
        let sums = add_products(simd, block, &panel.mixed[g], zero);
        let sums = add_products(simd, &own[..(g + 1) * WIDTH], &panel.among[g], sums);
        (0..WIDTH).for_each(|j| write::<S, V>(&mut changes[j], sums[j]));
    }
    for (own, change) in own.iter_mut().zip(&*changes) {
        for i in 0..STRIP {
            own[i] = change[i] - own[i];
        }
    }
    for (columns, vectors) in block.as_chunks_mut::<WIDTH>().0.iter_mut().zip(&panel.vectors) {
        let sums = std::array::from_fn(|j| read::<S, V>(&columns[j]));
        let sums = add_products(simd, &*changes, vectors, sums);
        (0..WIDTH).for_each(|j| write::<S, V>(&mut columns[j], sums[j]));
    }
}

/// Σ_k x_k y_k.
#[inline(always)]
fn times<S: Simd, const V: usize>(simd: S, block: &[Column], vector: &[f64]) -> [[S::f64s; V]; 2] {
    // Several sums, so that none waits for the one before.
    let mut sums = [[[simd.splat_f64s(0.0); V]; 2]; 3];
    for (columns, numbers) in block.as_chunks::<3>().0.iter().zip(vector.as_chunks::<3>().0) {
        for q in 0..3 {
            let (column, number) = (read::<S, V>(&columns[q]), simd.splat_f64s(numbers[q]));
            for half in 0..2 {
                for v in 0..V {
                    sums[q][half][v] = simd.mul_add_e_f64s(column[half][v], number, sums[q][half][v]);
                }
            }
        }
    }
    let add = |a, b| simd.add_f64s(a, b);
    std::array::from_fn(|half| std::array::from_fn(|v| add(add(sums[0][half][v], sums[1][half][v]), sums[2][half][v])))
}

/// x_k −= w y_k.
#[inline(always)]
fn subtract<S: Simd, const V: usize>(simd: S, block: &mut [Column], by: [[S::f64s; V]; 2], vector: &[f64]) {
    for (column, number) in block.iter_mut().zip(vector) {
        let (values, factor) = (read::<S, V>(column), simd.splat_f64s(-number));
        let result = |half: usize, v: usize| simd.mul_add_e_f64s(by[half][v], factor, values[half][v]);
        write::<S, V>(column, std::array::from_fn(|half| std::array::from_fn(|v| result(half, v))));
    }
}

/// x ← x − factor (x·v + own) v for all rows of a strip, where `own` is what v's entry outside the block, a 1, meets; gives
/// what that entry's column changes by.
#[inline(always)]
pub(super) fn reflect<S: Simd, const V: usize>(
    simd: S,
    own: &Column,
    block: &mut [Column],
    vector: &[f64],
    factor: f64,
) -> Column {
    let (sums, own) = (times::<S, V>(simd, block, vector), read::<S, V>(own));
    let factor = simd.splat_f64s(factor);
    let change: [[S::f64s; V]; 2] = std::array::from_fn(|half| {
        std::array::from_fn(|v| simd.mul_f64s(factor, simd.add_f64s(sums[half][v], own[half][v])))
    });
    subtract(simd, block, change, vector);
    let mut out = [0.0; STRIP];
    write::<S, V>(&mut out, change);
    out
}

/// A reflection that leaves only −β of (α, x): what x is multiplied by to be y, and τ.
#[inline(always)]
fn reflection(alpha: f64, squares: f64) -> (f64, f64) {
    let beta = (alpha * alpha + squares).sqrt();
    (1.0 / (alpha + beta), (alpha + beta) / beta)
}

/// T of a panel.
type Square = [[f64; PIVOTS]; PIVOTS];

/// Finds the reflections of the first `pivots` rows, and applies them to all rows of the strips: their numbers in the columns of the
/// panel, strip after strip, and in the block.
#[inline(always)]
pub(super) fn find<S: Simd, const V: usize>(
    simd: S,
    panel: &mut Panel,
    own: &mut [[Column; PIVOTS]; STRIPS],
    blocks: &mut [[Column; MOST_ROWS]; STRIPS],
    pivots: usize,
    rows: usize,
) {
    let Lined(vectors) = &mut Lined([[0.0; PIVOTS]; MOST_ROWS]);
    let mut factors = [0.0; PIVOTS];
    let mut y = [0.0; MOST_ROWS];
    for j in 0..pivots {
        let (strip, lane) = (j / STRIP, j % STRIP);
        let mut squares = [0.0; 4];
        for (k, column) in blocks[strip][..rows].iter().enumerate() {
            y[k] = column[lane];
            squares[k % 4] += y[k] * y[k];
        }
        let squares = (squares[0] + squares[1]) + (squares[2] + squares[3]);
        let (scale, factor) = reflection(own[strip][j][lane], squares);
        for k in 0..rows {
            y[k] *= scale;
            vectors[k][j] = y[k];
        }
        factors[j] = factor;
        for s in strip..STRIPS {
            let column = &mut own[s][j];
            let change = reflect::<S, V>(simd, column, &mut blocks[s][..rows], &y[..rows], factor);
            let above = if s == strip { lane } else { 0 };
            for i in above..STRIP {
                column[i] = change[i] - column[i];
            }
        }
    }
    let Lined(among) = &mut Lined([[0.0; PIVOTS]; PIVOTS]);
    mix::<S, V>(simd, &vectors[..rows], &factors, among);
    for g in 0..PRODUCTS {
        for i in 0..PIVOTS {
            panel.among[g][i].copy_from_slice(&among[i][g * WIDTH..(g + 1) * WIDTH]);
        }
    }
    let Lined(mixed) = &mut Lined([[0.0; PIVOTS]; 2]);
    for (pair, two) in vectors[..rows].as_chunks::<2>().0.iter().enumerate() {
        combine::<S, V>(simd, &among[..], |i| [two[0][i], two[1][i]], mixed);
        for q in 0..2 {
            for g in 0..PRODUCTS {
                panel.mixed[g][2 * pair + q].copy_from_slice(&mixed[q][g * WIDTH..(g + 1) * WIDTH]);
            }
        }
    }
    for (h, rows) in vectors[..rows].as_chunks::<WIDTH>().0.iter().enumerate() {
        for k in 0..WIDTH {
            for i in 0..PIVOTS {
                panel.vectors[h][i][k] = -rows[k][i];
            }
        }
    }
}

/// T, row by row: above the diagonal its column j is −τ T Yᵀy.
#[inline(always)]
fn mix<S: Simd, const V: usize>(simd: S, vectors: &[[f64; PIVOTS]], factors: &[f64; PIVOTS], out: &mut Square) {
    let Lined(columns) = &mut Lined([[0.0; PIVOTS]; PIVOTS]);
    let Lined(products) = &mut Lined([[0.0; PIVOTS]; 2]);
    let Lined(sums) = &mut Lined([[0.0; PIVOTS]; 2]);
    for pair in 0..PIVOTS / 2 {
        combine::<S, V>(simd, vectors, |k| [vectors[k][2 * pair], vectors[k][2 * pair + 1]], products);
        for q in 0..2 {
            let j = 2 * pair + q;
            combine::<S, V>(simd, &columns[..j], |k| [-factors[j] * products[q][k], 0.0], sums);
            columns[j] = sums[0];
            columns[j][j] = factors[j];
        }
    }
    for i in 0..PIVOTS {
        for j in 0..PIVOTS {
            out[i][j] = columns[j][i];
        }
    }
}

/// Two sums of rows, each times a factor.
#[inline(always)]
fn combine<S: Simd, const V: usize>(
    simd: S,
    rows: &[[f64; PIVOTS]],
    factors: impl Fn(usize) -> [f64; 2],
    out: &mut [[f64; PIVOTS]; 2],
) {
    let mut sums = [[[simd.splat_f64s(0.0); V]; PIVOTS / 4]; 2];
    for (k, row) in rows.iter().enumerate() {
        let (row, factors) = (S::as_simd_f64s(row).0.as_chunks::<V>().0, factors(k));
        for q in 0..2 {
            let factor = simd.splat_f64s(factors[q]);
            for i in 0..PIVOTS / 4 {
                for v in 0..V {
                    sums[q][i][v] = simd.mul_add_e_f64s(row[i][v], factor, sums[q][i][v]);
                }
            }
        }
    }
    for q in 0..2 {
        let out = S::as_mut_simd_f64s(&mut out[q]).0.as_chunks_mut::<V>().0;
        out[..PIVOTS / 4].copy_from_slice(&sums[q]);
    }
}
