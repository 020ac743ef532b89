//! A = LLᵀ at the speed of products, with L packed as solves take it ([`PackedTriangle`]).
//!
//! Rows of L are known from the top, 48 more at a time: they are solved with ([`PackedTriangle::solve`] in place) in all rows
//! below, which have 48 more columns then, and the first 48 of those, whose columns end at their diagonal, are finished: what
//! is left of the square on the diagonal is factored, 24 rows at a time. So the rows that are solved with stay in the second
//! cache, what was found is only ever read, and every number is written once; a factorisation that subtracts from the rest of
//! the matrix after every few columns reads and writes it all again. Rows are found independently of each other, 24 to a task,
//! and those that are finished beside the others, so no thread waits for a diagonal. Nothing depends on the number of threads.

use faer::MatMut;

use super::cholesky::JITTERS;
use super::is_divided;
use super::packed_rows::{BLOCK, DEPTH, PANEL, write_panels};
use super::packed_solve::{Block, PANELS, PackedTriangle, start};
use super::packed_vectors::{Backward, Forward};
use super::patches::{Patch, Patches};
use super::rank_update::{OnPanels, STRIP, on_panels};
use super::registers::{Lanes, Registers};
use crate::error::{Error, Result};

/// Blocks of rows that are found together.
const TOGETHER: usize = 2;

/// A square on the diagonal, column by column.
type Square = [[f64; BLOCK]; BLOCK];

/// The Cholesky factor of the matrix given last, packed; its memory is kept for the next one.
#[derive(Debug, Clone, Default)]
pub struct PackedFactoring {
    triangle: PackedTriangle,
    /// Of L, for their places in the triangle have their inverses.
    squares: Vec<Square>,
    jitter: f64,
}

impl PackedFactoring {
    /// Factors a matrix on this thread. Jitter as in [`Cholesky::new`](super::Cholesky::new).
    pub fn factor(&mut self, matrix: &(impl Patches + Sync), what: &'static str) -> Result<()> {
        self.factor_with(matrix, what, false)
    }

    /// The same on all threads. Not beside other work of theirs, for a thread that waits for a part may take up some of that.
    pub fn factor_in_parallel(&mut self, matrix: &(impl Patches + Sync), what: &'static str) -> Result<()> {
        self.factor_with(matrix, what, is_divided(matrix.dim().pow(3) / 6))
    }

    fn factor_with(&mut self, matrix: &(impl Patches + Sync), what: &'static str, parallel: bool) -> Result<()> {
        let dim = matrix.dim();
        let mean = (0..dim).map(|i| matrix.diagonal(i)).sum::<f64>() / dim.max(1) as f64;
        let mut pivot = 0;
        if mean.is_finite() && mean >= 0.0 {
            for relative in JITTERS {
                self.jitter = relative * mean;
                match self.try_factor(matrix, parallel, |part| on_panels(part)) {
                    Ok(()) => return Ok(()),
                    Err(index) => pivot = index,
                }
            }
        }
        Err(Error::NotPositiveDefinite { what, pivot, jitter: JITTERS[JITTERS.len() - 1] * mean })
    }

    fn try_factor<M: Patches + Sync>(
        &mut self,
        matrix: &M,
        parallel: bool,
        find: impl Fn(Part<M>) + Sync,
    ) -> Result<(), usize> {
        let (dim, jitter) = (matrix.dim(), self.jitter);
        self.triangle.reshape(dim);
        let blocks = dim.div_ceil(BLOCK);
        self.squares.resize(blocks, [[0.0; BLOCK]; BLOCK]);
        // The blocks whose columns are found next in all rows below, and those after them.
        let (mut first, mut next) = (0, 0);
        let mut last = TOGETHER.min(blocks);
        while next < blocks {
            let (known, rest) = self.triangle.numbers.split_at_mut(start(next));
            let (own, rest) = rest.split_at_mut(start(last) - start(next));
            let (rest, _) = rest.split_at_mut(start(blocks) - start(last));
            let wave = Wave { matrix, known: &known[start(first)..], first, last: next };
            let mut result = Ok(());
            let finish = Finish { jitter, squares: &mut self.squares[next..last], result: &mut result };
            let then = || find(Part { wave, own, first: next, last, finish: Some(finish) });
            in_turn_or_at_once(parallel, then, || wave.pass(last, blocks, rest, parallel, &find));
            result?;
            (first, next, last) = (next, last, (last + TOGETHER).min(blocks));
        }
        Ok(())
    }

    /// What had to be added to the diagonal.
    pub fn jitter(&self) -> f64 {
        self.jitter
    }

    /// L, for solving with many columns.
    pub fn triangle(&self) -> &PackedTriangle {
        &self.triangle
    }

    /// x ← L⁻¹x.
    pub fn forward_in_place(&self, x: &mut [f64]) {
        on_panels(Forward { triangle: &self.triangle, x });
    }

    /// x ← L⁻ᵀx.
    pub fn backward_in_place(&self, x: &mut [f64]) {
        on_panels(Backward { triangle: &self.triangle, x });
    }

    /// x ← A⁻¹x.
    pub fn solve_in_place(&self, x: &mut [f64]) {
        self.forward_in_place(x);
        self.backward_in_place(x);
    }

    /// An entry of L's diagonal.
    pub fn diagonal(&self, i: usize) -> f64 {
        self.squares[i / BLOCK][i % BLOCK][i % BLOCK]
    }

    /// Writes L, column-major; what is above its diagonal stays.
    pub fn write_lower(&self, mut out: MatMut<'_, f64>) {
        let dim = self.triangle.dim;
        for (g, square) in self.squares.iter().enumerate() {
            let (first, rows) = (g * BLOCK, BLOCK.min(dim - g * BLOCK));
            let (block, length) = (self.triangle.block(g), first + BLOCK);
            for k in 0..first {
                let panels = block.iter().skip(k).step_by(length);
                write_panels(panels, out.as_mut().col_mut(k).subrows_mut(first, rows));
            }
            for (k, column) in square.iter().enumerate().take(rows) {
                (k..rows).for_each(|i| out[(first + i, first + k)] = column[i]);
            }
        }
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.triangle.size_bytes() + self.squares.capacity() * size_of::<Square>()
    }
}

/// Blocks of rows that are known, to find their columns in the rows below.
struct Wave<'a, M> {
    matrix: &'a M,
    /// Their panels.
    known: &'a [[f64; PANEL]],
    first: usize,
    last: usize,
}

impl<M> Clone for Wave<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Wave<'_, M> {}

impl<M: Sync> Wave<'_, M> {
    /// Finds its columns in the rows of the blocks from `first` on, whose panels are `own`, a block at a time.
    fn pass(
        self,
        first: usize,
        last: usize,
        own: &mut [[f64; PANEL]],
        parallel: bool,
        find: &(impl Fn(Part<M>) + Sync),
    ) {
        if last <= first || self.known.is_empty() {
            return;
        }
        if last - first == 1 {
            return find(Part { wave: self, own, first, last, finish: None });
        }
        let middle = first.midpoint(last);
        let (one, other) = own.split_at_mut(start(middle) - start(first));
        in_turn_or_at_once(
            parallel,
            || self.pass(first, middle, one, parallel, find),
            || self.pass(middle, last, other, parallel, find),
        );
    }
}

/// Runs two tasks.
pub(super) fn in_turn_or_at_once(parallel: bool, a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
    if parallel {
        rayon::join(a, b);
    } else {
        a();
        b();
    }
}

/// Rows of some blocks, and what of them is found.
struct Part<'a, M> {
    /// Its columns first.
    wave: Wave<'a, M>,
    /// The panels of the rows.
    own: &'a mut [[f64; PANEL]],
    first: usize,
    last: usize,
    /// Then their own columns, if the wave's were the last before them.
    finish: Option<Finish<'a>>,
}

/// How rows come to their end on the diagonal.
struct Finish<'a> {
    jitter: f64,
    squares: &'a mut [Square],
    /// The pivot that failed.
    result: &'a mut Result<(), usize>,
}

impl<M: Patches> OnPanels for Part<'_, M> {
    #[inline(always)]
    fn run<R: Registers>(self, registers: R) {
        let Self { wave, own, first, last, mut finish } = self;
        let (matrix, begin) = (wave.matrix, start(first));
        let (from, to) = (wave.first, if finish.is_some() { last } else { wave.last });
        for g in from..to {
            if let Some(finish) = finish.as_mut().filter(|_| g >= first) {
                let own = &mut own[start(g) - begin..start(g + 1) - begin];
                let square = &mut finish.squares[g - first];
                if let Err(pivot) = factor_square(registers, matrix, finish.jitter, g, own, square) {
                    *finish.result = Err(pivot);
                    return;
                }
            }
            for h in first.max(g + 1)..last {
                let (before, own) = own.split_at_mut(start(h) - begin);
                let block = if g < first {
                    &wave.known[start(g) - start(from)..start(g + 1) - start(from)]
                } else {
                    &before[start(g) - begin..start(g + 1) - begin]
                };
                let block = Block { numbers: block, first: g * BLOCK };
                for strip in 0..BLOCK / STRIP {
                    solve_strip(registers, matrix, block, h, strip, own);
                }
            }
        }
    }
}

/// What is left of a strip of 8 of block `h`'s rows, whose panels are `own`, above a block's square.
#[inline(always)]
fn rest_of<R: Registers>(
    registers: R,
    matrix: &impl Patches,
    block: Block,
    h: usize,
    strip: usize,
    own: &[[f64; PANEL]],
) -> Patch {
    let length = (h + 1) * BLOCK;
    let mut rest = Patch::default();
    matrix.read(h * BLOCK + strip * STRIP, block.first, &mut rest);
    for from in (0..block.first).step_by(DEPTH) {
        let height = DEPTH.min(block.first - from);
        let left: [_; 2] = std::array::from_fn(|a| &own[(2 * strip + a) * length + from..][..height]);
        block.add_known::<R, _, true>(registers, (left, height), from, &mut rest);
    }
    rest
}

/// A patch in panels, as the left of a product has them.
#[inline(always)]
pub(super) fn panels(patch: &Patch) -> [[[f64; PANEL]; BLOCK]; STRIP / PANEL] {
    std::array::from_fn(|a| std::array::from_fn(|k| patch[k].as_chunks().0[a]))
}

/// The columns above a block's square of 8 rows of block `h`, whose panels are `own`.
#[inline(always)]
fn solve_strip<R: Registers>(
    registers: R,
    matrix: &impl Patches,
    block: Block,
    h: usize,
    strip: usize,
    own: &mut [[f64; PANEL]],
) {
    let length = (h + 1) * BLOCK;
    if h * BLOCK + strip * STRIP >= matrix.dim() {
        (0..2).for_each(|a| own[(2 * strip + a) * length + block.first..][..BLOCK].fill([0.0; PANEL]));
        return;
    }
    let rest = rest_of(registers, matrix, block, h, strip, own);
    let solved = block.solve(registers, panels(&rest).each_ref().map(|panel| &panel[..]));
    for (a, panel) in panels(&solved).iter().enumerate() {
        own[(2 * strip + a) * length + block.first..][..BLOCK].copy_from_slice(panel);
    }
}

/// Factors what is left of the square of block `g`, and puts its inverse in its place. The pivot that failed otherwise.
#[inline(always)]
fn factor_square<R: Registers>(
    registers: R,
    matrix: &impl Patches,
    jitter: f64,
    g: usize,
    own: &mut [[f64; PANEL]],
    square: &mut Square,
) -> Result<(), usize> {
    let (first, length) = (g * BLOCK, (g + 1) * BLOCK);
    let rows = BLOCK.min(matrix.dim() - first);
    for strip in 0..BLOCK / STRIP {
        let rest = rest_of(registers, matrix, Block { numbers: own, first }, g, strip, own);
        for (square, rest) in square.iter_mut().zip(&rest) {
            square[strip * STRIP..(strip + 1) * STRIP].copy_from_slice(rest);
        }
    }
    // Rows past the last are those of the identity: nothing comes of them.
    for k in rows..BLOCK {
        square[k] = [0.0; BLOCK];
        square[k][k] = 1.0;
        (0..rows).for_each(|j| square[j][k] = 0.0);
    }
    for k in 0..BLOCK {
        let (known, rest) = square.split_at_mut(k);
        let mut column = minus(registers, &rest[0], known, |j| known[j][k]);
        let pivot = column[k] + if k < rows { jitter } else { 0.0 };
        if !(pivot > 0.0 && pivot < f64::INFINITY) {
            return Err(first + k);
        }
        column[..k].fill(0.0);
        column[k] = pivot;
        let scale = 1.0 / pivot.sqrt();
        rest[0] = column.map(|v| v * scale);
    }
    // Rows of the inverse, from the top.
    let mut inverse = [[0.0; BLOCK]; BLOCK];
    for i in 0..rows {
        let (known, rest) = inverse.split_at_mut(i);
        rest[0][i] = 1.0;
        let scale = 1.0 / square[i][i];
        rest[0] = minus(registers, &rest[0], known, |k| square[k][i]).map(|v| v * scale);
    }
    for q in 0..PANELS {
        for (c, out) in own[q * length + first..][..BLOCK].iter_mut().enumerate() {
            *out = std::array::from_fn(|i| inverse[q * PANEL + i][c]);
        }
    }
    Ok(())
}

/// A vector minus multiples of others.
#[inline(always)]
fn minus<R: Registers>(
    registers: R,
    from: &[f64; BLOCK],
    others: &[[f64; BLOCK]],
    factor: impl Fn(usize) -> f64,
) -> [f64; BLOCK] {
    let mut sums = [Lanes::<STRIP>::zero(registers); BLOCK / STRIP];
    for (sum, strip) in sums.iter_mut().zip(from.as_chunks::<STRIP>().0) {
        *sum = registers.read(strip);
    }
    for (k, other) in others.iter().enumerate() {
        let factor = Lanes::<STRIP>::splat(registers, -factor(k));
        for (sum, strip) in sums.iter_mut().zip(other.as_chunks::<STRIP>().0) {
            *sum = Lanes::<STRIP>::mul_add(registers, registers.read(strip), factor, *sum);
        }
    }
    let mut out = [0.0; BLOCK];
    out.as_chunks_mut::<STRIP>().0.iter_mut().zip(sums).for_each(|(out, sums)| registers.write(sums, out));
    out
}

#[cfg(test)]
mod tests {
    use super::super::patches::PlusIdentity;
    use super::super::registers::{Plain, narrow};
    use super::super::{Cholesky, GramSum};
    use super::*;
    use crate::random::Generator;
    use faer::Mat;
    use pulp::Scalar;

    fn spd(dim: usize) -> Mat<f64> {
        let mut rng = Generator::new(dim as u64);
        let a = Mat::from_fn(dim, dim, |_, _| rng.normal());
        &a * a.transpose() + Mat::<f64>::identity(dim, dim) * faer::Scale(dim as f64)
    }

    fn lower(packed: &PackedFactoring) -> Mat<f64> {
        let dim = packed.triangle.dim;
        let mut lower = Mat::zeros(dim, dim);
        packed.write_lower(lower.as_mut());
        lower
    }

    #[test]
    fn factors_of_any_size_and_their_solves_are_the_plain_ones_on_any_registers() {
        let (mut packed, mut plainly) = (PackedFactoring::default(), PackedFactoring::default());
        // The last is smaller than what the memory held before.
        for dim in [1, 5, 23, 24, 25, 48, 49, 100, 383, 409, 801, 30] {
            let a = spd(dim);
            let plain = Cholesky::new(a.as_ref(), "test").unwrap();
            packed.factor(&a.as_ref(), "test").unwrap();
            plainly.try_factor(&a.as_ref(), false, |part| part.run(Plain::<Scalar, 4>(Scalar))).unwrap();
            if let Some(narrow) = narrow() {
                let mut same = PackedFactoring::default();
                same.try_factor(&a.as_ref(), false, |part| part.run(narrow)).unwrap();
                assert_eq!(lower(&same), lower(&packed), "{dim}");
            }
            let scale = a.norm_max().sqrt();
            for found in [&packed, &plainly] {
                let lower = lower(found);
                for j in 0..dim {
                    assert!((j..dim).all(|i| (lower[(i, j)] - plain.factor()[(i, j)]).abs() < 1e-13 * scale), "{dim}");
                    assert!((0..j).all(|i| lower[(i, j)] == 0.0) && lower[(j, j)] == found.diagonal(j));
                }
                let mut across = Mat::zeros(dim, dim);
                found.write_lower(across.as_mut().transpose_mut());
                assert_eq!(across.transpose(), lower);
            }
            let b = Mat::from_fn(dim, 1, |i, _| (i as f64).sin());
            let mut x: Vec<f64> = (0..dim).map(|i| b[(i, 0)]).collect();
            packed.forward_in_place(&mut x);
            let mut expected = b.clone();
            plain.forward_in_place(expected.as_mut());
            assert!((0..dim).all(|i| (x[i] - expected[(i, 0)]).abs() < 1e-13));
            packed.backward_in_place(&mut x);
            plain.backward_in_place(expected.as_mut());
            assert!((0..dim).all(|i| (x[i] - expected[(i, 0)]).abs() < 1e-13));
        }
    }

    #[test]
    fn equal_matrices_give_equal_bits_whatever_holds_them_and_came_before() {
        let mut used = PackedFactoring::default();
        used.factor(&spd(600).as_ref(), "test").unwrap();
        for dim in [7, 24, 167, 168, 169, 505] {
            let a = spd(dim);
            let plus = PlusIdentity { matrix: a.as_ref(), factor: 2.5 };
            let sums = GramSum::from_matrix(a.as_ref());
            used.factor(&PlusIdentity { matrix: &sums, factor: 2.5 }, "test").unwrap();
            let mut fresh = PackedFactoring::default();
            fresh.factor(&plus, "test").unwrap();
            assert_eq!(lower(&used), lower(&fresh), "{dim}");
            let added = &a + Mat::<f64>::identity(dim, dim) * faer::Scale(2.5);
            fresh.factor(&added.as_ref(), "test").unwrap();
            assert_eq!(lower(&used), lower(&fresh), "{dim}");
            assert!((0..dim).all(|i| Patches::diagonal(&&sums, i) == a[(i, i)] && plus.diagonal(i) == added[(i, i)]));
        }
    }

    #[test]
    fn equal_bits_on_any_number_of_threads() {
        for dim in [200, 409, 600] {
            let a = spd(dim);
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut packed = PackedFactoring::default();
                pool.install(|| packed.factor_in_parallel(&a.as_ref(), "test")).unwrap();
                lower(&packed)
            };
            let mut alone = PackedFactoring::default();
            alone.factor(&a.as_ref(), "test").unwrap();
            assert!((1..5).all(|threads| on(threads) == lower(&alone)), "{dim}");
        }
    }

    #[test]
    fn singular_gets_jitter_and_indefinite_is_refused() {
        let mut packed = PackedFactoring::default();
        packed.factor(&Mat::<f64>::from_fn(30, 30, |_, _| 1.0).as_ref(), "ones").unwrap();
        assert!(packed.jitter() > 0.0);
        for bad in [-1e3, f64::NAN, f64::INFINITY] {
            let mut a = spd(30);
            a[(26, 26)] = bad;
            let found = packed.factor(&a.as_ref(), "bad");
            let Err(Error::NotPositiveDefinite { pivot, .. }) = found else { panic!("{bad}: {found:?}") };
            assert!(pivot == 26 || !bad.is_finite());
        }
        // Nothing is left of it.
        let a = spd(29);
        packed.factor(&a.as_ref(), "good").unwrap();
        assert_eq!(packed.jitter(), 0.0);
        let found = lower(&packed);
        assert!((&found * found.transpose() - &a).norm_max() < 1e-12 * a.norm_max());
        packed.factor(&Mat::<f64>::new().as_ref(), "nothing").unwrap();
        packed.solve_in_place(&mut []);
    }
}
