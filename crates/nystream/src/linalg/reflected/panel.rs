//! Reflections of 24 columns of a triangle together: finding them, and applying them to the rows below.
//!
//! A reflection of column j of L and row j of the block X, I − τ v vᵀ with v = (e_j, y), makes row j of X zero. 24 of them are
//! I − V T Vᵀ with V = (I, Y) and an upper triangle T (R. Schreiber, C. Van Loan, "A storage-efficient WY representation for products
//! of Householder transformations", SIAM J. Sci. Stat. Comput. 10, 1989). Of rows (l, x) below they make (w − l, x − w Yᵀ),
//! w = l T + x (Y T); the first part with its sign changed, for a reflection of a number that is large beside
//! the others turns it round, and diagonals are to stay above zero. (With the other sign, the vector of the reflection would be a difference
//! of nearly equal numbers.)

use super::super::rank_update::STRIP;
use super::super::registers::{Lanes, Registers};
use super::{MOST_ROWS, PIVOTS, STRIPS};

/// Columns of a product of the innermost loop where registers are wide, of three strips at once, and where they are narrow,
/// of one.
const WIDE: usize = 8;
const NARROW: usize = 6;
/// Of both.
pub(super) const WHOLE: usize = 24;

/// A column of a strip of rows.
pub(super) type Column = [f64; STRIP];

/// Where a line of the cache begins.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Lined<T>(pub T);

/// Reflections of `PIVOTS` columns. Matrices are held as many columns after the other, row by row, as the innermost loop takes.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    /// Y T.
    mixed: [f64; MOST_ROWS * PIVOTS],
    /// T.
    among: [f64; PIVOTS * PIVOTS],
    /// −Yᵀ.
    vectors: [f64; PIVOTS * MOST_ROWS],
}

impl Panel {
    pub(super) fn new() -> Self {
        Self { mixed: [0.0; _], among: [0.0; _], vectors: [0.0; _] }
    }
}

/// Columns of a product of the innermost loop.
const fn width<R: Registers>() -> usize {
    if R::WIDE { WIDE } else { NARROW }
}

/// Some columns of a matrix of so many rows, row by row.
#[inline(always)]
fn columns<const W: usize>(matrix: &[f64], rows: usize, group: usize) -> &[[f64; W]] {
    matrix[group * W * rows..(group + 1) * W * rows].as_chunks().0
}

/// Writes a row of such a matrix.
#[inline(always)]
fn put<R: Registers>(matrix: &mut [f64], rows: usize, row: usize, numbers: &[f64]) {
    let width = width::<R>();
    for (group, numbers) in numbers.chunks_exact(width).enumerate() {
        matrix[(group * rows + row) * width..][..width].copy_from_slice(numbers);
    }
}

/// Eight rows of a column in registers.
type Eight<R> = <R as Lanes<STRIP>>::Numbers;

#[inline(always)]
fn splat<R: Registers>(registers: R, value: f64) -> <R as Lanes<STRIP>>::Factor {
    Lanes::<STRIP>::splat(registers, value)
}

/// a + b·factor.
#[inline(always)]
fn plus<R: Registers>(registers: R, a: Eight<R>, b: Eight<R>, factor: <R as Lanes<STRIP>>::Factor) -> Eight<R> {
    Lanes::<STRIP>::mul_add(registers, b, factor, a)
}

/// Adds the products of columns of `T` strips with `W` numbers each.
#[inline(always)]
fn add_products<R: Registers, const W: usize, const T: usize>(
    registers: R,
    strips: [&[Column]; T],
    factors: &[[f64; W]],
    mut sums: [[Eight<R>; T]; W],
) -> [[Eight<R>; T]; W] {
    let strips = strips.map(|strip| &strip[..factors.len()]);
    for (k, factors) in factors.iter().enumerate() {
        // Loops, not closures: those may be compiled apart, without the registers.
        let mut numbers = [Lanes::<STRIP>::zero(registers); T];
        for s in 0..T {
            numbers[s] = registers.read(&strips[s][k]);
        }
        for j in 0..W {
            let factor = splat(registers, factors[j]);
            for s in 0..T {
                sums[j][s] = plus(registers, sums[j][s], numbers[s], factor);
            }
        }
    }
    sums
}

/// [`apply`] to `T` strips, in products of `W` columns.
#[inline(always)]
fn apply_by<R: Registers, const W: usize, const T: usize>(
    registers: R,
    panel: &Panel,
    own: &mut [[Column; PIVOTS]; T],
    blocks: &mut [[Column; MOST_ROWS]; T],
    height: usize,
) {
    // X Y T, and what T makes of what they were.
    let Lined(changes) = &mut Lined([[[0.0; STRIP]; PIVOTS]; T]);
    for g in 0..PIVOTS / W {
        let zero = [[Lanes::<STRIP>::zero(registers); T]; W];
        let mixed = &columns::<W>(&panel.mixed, MOST_ROWS, g)[..height];
        // Columns of T end at its diagonal.
        let among = &columns::<W>(&panel.among, PIVOTS, g)[..(g + 1) * W];
        let sums = add_products(registers, blocks.each_ref().map(|block| &block[..]), mixed, zero);
        let sums = add_products(registers, own.each_ref().map(|own| &own[..]), among, sums);
        for j in 0..W {
            for s in 0..T {
                registers.write(sums[j][s], &mut changes[s][g * W + j]);
            }
        }
    }
    for (own, change) in own.as_flattened_mut().iter_mut().zip(changes.as_flattened()) {
        for i in 0..STRIP {
            own[i] = change[i] - own[i];
        }
    }
    for g in 0..height / W {
        let place = g * W..(g + 1) * W;
        let mut sums = [[Lanes::<STRIP>::zero(registers); T]; W];
        for j in 0..W {
            for s in 0..T {
                sums[j][s] = registers.read(&blocks[s][place.start + j]);
            }
        }
        let vectors = columns::<W>(&panel.vectors, PIVOTS, g);
        let sums = add_products(registers, changes.each_ref().map(|changes| &changes[..]), vectors, sums);
        for j in 0..W {
            for s in 0..T {
                registers.write(sums[j][s], &mut blocks[s][place.start + j]);
            }
        }
    }
}

/// Applies the reflections to strips of rows: their numbers in the columns of the panel, and in the block, of which so many rows
/// are taken up.
#[inline(always)]
pub(super) fn apply<R: Registers>(
    registers: R,
    panel: &Panel,
    own: &mut [[Column; PIVOTS]; STRIPS],
    blocks: &mut [[Column; MOST_ROWS]; STRIPS],
    height: usize,
) {
    if R::WIDE {
        apply_by::<R, WIDE, STRIPS>(registers, panel, own, blocks, height);
    } else {
        for (own, block) in own.iter_mut().zip(blocks) {
            let (own, block) = (std::array::from_mut(own), std::array::from_mut(block));
            apply_by::<R, NARROW, 1>(registers, panel, own, block, height);
        }
    }
}

/// Sums of products at a time: none waits for the one before.
const CHAINS: usize = 6;

/// Σ_k x_k y_k, of whole sixes.
#[inline(always)]
fn times<R: Registers>(registers: R, block: &[Column], vector: &[f64]) -> Eight<R> {
    let mut sums = [Lanes::<STRIP>::zero(registers); CHAINS];
    for (columns, numbers) in block.as_chunks::<CHAINS>().0.iter().zip(vector.as_chunks::<CHAINS>().0) {
        for q in 0..CHAINS {
            sums[q] = plus(registers, sums[q], registers.read(&columns[q]), splat(registers, numbers[q]));
        }
    }
    let add = |a, b| Lanes::<STRIP>::add(registers, a, b);
    let [a, b, c] = std::array::from_fn(|q| add(sums[2 * q], sums[2 * q + 1]));
    add(add(a, b), c)
}

/// x_k −= w y_k.
#[inline(always)]
fn subtract<R: Registers>(registers: R, block: &mut [Column], by: Eight<R>, vector: &[f64]) {
    for (column, number) in block.iter_mut().zip(vector) {
        let result = plus(registers, registers.read(column), by, splat(registers, -number));
        registers.write(result, column);
    }
}

/// x ← x − factor (x·v + own) v for all rows of a strip, where `own` is what v's entry outside the block, a 1, meets; gives
/// what that entry's column changes by. Of whole sixes.
#[inline(always)]
pub(super) fn reflect<R: Registers>(
    registers: R,
    own: &Column,
    block: &mut [Column],
    vector: &[f64],
    factor: f64,
) -> Column {
    let sums = Lanes::<STRIP>::add(registers, times(registers, block, vector), registers.read(own));
    let change = Lanes::<STRIP>::mul(registers, sums, splat(registers, factor));
    subtract(registers, block, change, vector);
    let mut out = [0.0; STRIP];
    registers.write(change, &mut out);
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
pub(super) fn find<R: Registers>(
    registers: R,
    panel: &mut Panel,
    own: &mut [[Column; PIVOTS]; STRIPS],
    blocks: &mut [[Column; MOST_ROWS]; STRIPS],
    pivots: usize,
    rows: usize,
) {
    // Y row by row, and column by column.
    let Lined(vectors) = &mut Lined([[0.0; PIVOTS]; MOST_ROWS]);
    let Lined(across) = &mut Lined([[0.0; MOST_ROWS]; PIVOTS]);
    let mut factors = [0.0; PIVOTS];
    for (j, y) in across.iter_mut().enumerate().take(pivots) {
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
            let change = reflect(registers, column, &mut blocks[s][..rows], &y[..rows], factor);
            let above = if s == strip { lane } else { 0 };
            for i in above..STRIP {
                column[i] = change[i] - column[i];
            }
        }
    }
    let Lined(among) = &mut Lined([[0.0; PIVOTS]; PIVOTS]);
    mix(registers, (&vectors[..rows], across), &factors, among);
    for (i, row) in among.iter().enumerate() {
        put::<R>(&mut panel.among, PIVOTS, i, row);
    }
    let Lined(mixed) = &mut Lined([[0.0; PIVOTS]; 2]);
    for (pair, [one, other]) in vectors[..rows].as_chunks::<2>().0.iter().enumerate() {
        combine(registers, &among[..], [one, other], mixed);
        for q in 0..2 {
            put::<R>(&mut panel.mixed, MOST_ROWS, 2 * pair + q, &mixed[q]);
        }
    }
    for (i, y) in across.iter_mut().enumerate() {
        y.iter_mut().for_each(|v| *v = -*v);
        put::<R>(&mut panel.vectors, PIVOTS, i, y);
    }
}

/// T, row by row: above the diagonal its column j is −τ T Yᵀy. Y is given row by row and column by column.
#[inline(always)]
fn mix<R: Registers>(
    registers: R,
    (vectors, across): (&[[f64; PIVOTS]], &[[f64; MOST_ROWS]; PIVOTS]),
    factors: &[f64; PIVOTS],
    out: &mut Square,
) {
    let Lined(columns) = &mut Lined([[0.0; PIVOTS]; PIVOTS]);
    let Lined(products) = &mut Lined([[0.0; PIVOTS]; 2]);
    for (pair, [one, other]) in across.as_chunks::<2>().0.iter().enumerate() {
        combine(registers, vectors, [one, other], products);
        for (q, products) in products.iter_mut().enumerate() {
            let j = 2 * pair + q;
            products.iter_mut().for_each(|product| *product *= -factors[j]);
            let (known, rest) = columns.split_at_mut(j);
            combine(registers, known, [products], std::array::from_mut(&mut rest[0]));
            rest[0][j] = factors[j];
        }
    }
    for i in 0..PIVOTS {
        for j in 0..PIVOTS {
            out[i][j] = columns[j][i];
        }
    }
}

/// Sums of rows, each times a factor.
#[inline(always)]
fn combine<R: Registers, const Q: usize, const N: usize>(
    registers: R,
    rows: &[[f64; PIVOTS]],
    factors: [&[f64; N]; Q],
    out: &mut [[f64; PIVOTS]; Q],
) {
    let mut sums = [[Lanes::<STRIP>::zero(registers); STRIPS]; Q];
    for (k, row) in rows.iter().enumerate().take(N) {
        let (row, _) = row.as_chunks::<STRIP>();
        for q in 0..Q {
            let factor = splat(registers, factors[q][k]);
            for i in 0..STRIPS {
                sums[q][i] = plus(registers, sums[q][i], registers.read(&row[i]), factor);
            }
        }
    }
    for q in 0..Q {
        let (out, _) = out[q].as_chunks_mut::<STRIP>();
        for i in 0..STRIPS {
            registers.write(sums[q][i], &mut out[i]);
        }
    }
}
