//! The diagonal of (LLᵀ)⁻¹ from L, packed: the squared lengths of the columns of L⁻¹.
//!
//! Columns of L⁻¹ are solved for as in [`super::packed_solve`], 48 together, from the row on where they begin: a third of what
//! solving with the whole identity takes. Nothing depends on the number of threads.

use super::aligned::Aligned;
use super::is_divided;
use super::packed_cholesky::{PackedFactoring, in_turn_or_at_once, panels};
use super::packed_rows::{BLOCK, DEPTH, PANEL};
use super::packed_solve::{Block, PANELS, PackedTriangle};
use super::rank_update::{OnPanels, STRIP, on_panels};
use super::registers::Registers;

/// Blocks of columns that are solved for together.
const TOGETHER: usize = 2;
/// Their panels.
const GROUP: usize = TOGETHER * PANELS;

/// Memory for the columns of L⁻¹, kept for the next one.
#[derive(Debug, Clone, Default)]
pub struct InverseDiagonal {
    columns: Aligned<PANEL>,
}

impl InverseDiagonal {
    /// Writes the diagonal of the inverse of the matrix that was factored.
    pub fn write(&mut self, factor: &PackedFactoring, out: &mut Vec<f64>) {
        let triangle = factor.triangle();
        let (dim, blocks) = (triangle.dim, triangle.dim.div_ceil(BLOCK));
        let groups = blocks.div_ceil(TOGETHER);
        let needed = place(groups, blocks);
        if self.columns.len() < needed {
            self.columns = Aligned::zeros(needed);
        }
        out.clear();
        out.resize(dim, 0.0);
        let parallel = is_divided(dim.pow(3) / 6);
        let (columns, _) = self.columns.split_at_mut(needed);
        Groups { triangle, first: 0, last: groups, columns, out }.pass(parallel, &|group| on_panels(group));
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.columns.size_bytes()
    }
}

/// Where the columns of group `c` begin, of a triangle of so many blocks. Each has the rows from where the group begins on.
fn place(c: usize, blocks: usize) -> usize {
    // Rows before: Σ (blocks − 2i) over i < c.
    GROUP * BLOCK * (c * blocks - c * c.saturating_sub(1))
}

/// Some groups of columns.
struct Groups<'a> {
    triangle: &'a PackedTriangle,
    first: usize,
    last: usize,
    columns: &'a mut [[f64; PANEL]],
    /// The squared lengths of these columns.
    out: &'a mut [f64],
}

impl Groups<'_> {
    fn pass(self, parallel: bool, solve: &(impl Fn(Groups) + Sync)) {
        let Self { triangle, first, last, columns, out } = self;
        if last - first <= 1 {
            return solve(Groups { triangle, first, last, columns, out });
        }
        let (middle, blocks) = (first.midpoint(last), triangle.dim.div_ceil(BLOCK));
        let (one, other) = columns.split_at_mut(place(middle, blocks) - place(first, blocks));
        let (lengths, others) = out.split_at_mut((middle - first) * TOGETHER * BLOCK);
        in_turn_or_at_once(
            parallel,
            || Groups { triangle, first, last: middle, columns: one, out: lengths }.pass(parallel, solve),
            || Groups { triangle, first: middle, last, columns: other, out: others }.pass(parallel, solve),
        );
    }
}

/// Of one group.
impl OnPanels for Groups<'_> {
    #[inline(always)]
    fn run<R: Registers>(self, registers: R) {
        let Self { triangle, first, columns, out, .. } = self;
        let (begin, blocks) = (first * TOGETHER, triangle.dim.div_ceil(BLOCK));
        let rows = (blocks - begin) * BLOCK;
        for g in begin..blocks {
            let block = Block { numbers: triangle.block(g), first: g * BLOCK };
            for panel in (0..out.len().div_ceil(PANEL)).step_by(STRIP / PANEL) {
                let own = &mut columns[panel * rows..(panel + STRIP / PANEL) * rows];
                let offset = panel / PANELS * BLOCK;
                if begin * BLOCK + offset > g * BLOCK {
                    continue;
                }
                let solved = solve_strip(registers, block, begin * BLOCK, panel, own);
                let lengths = &mut out[panel * PANEL..];
                for solved in &solved {
                    lengths.iter_mut().zip(solved).for_each(|(length, number)| *length += number * number);
                }
            }
        }
    }
}

/// The rows of a block, in two panels of columns of a group whose rows begin at `begin`.
#[inline(always)]
fn solve_strip<R: Registers>(
    registers: R,
    block: Block,
    begin: usize,
    panel: usize,
    own: &mut [[f64; PANEL]],
) -> [[f64; STRIP]; BLOCK] {
    let rows = own.len() / 2;
    // Above, these columns are zero.
    let top = begin + panel / PANELS * BLOCK;
    let mut known = [[0.0; STRIP]; BLOCK];
    for from in (top..block.first).step_by(DEPTH) {
        let height = DEPTH.min(block.first - from);
        let left: [_; 2] = std::array::from_fn(|a| &own[a * rows + from - begin..][..height]);
        block.add_known::<R, _, true>(registers, (left, height), from, &mut known);
    }
    if block.first == top {
        let diagonal = panel % PANELS * PANEL;
        (0..STRIP).for_each(|i| known[diagonal + i][i] += 1.0);
    }
    let solved = block.solve(registers, panels(&known).each_ref().map(|panel| &panel[..]));
    for (a, panel) in panels(&solved).iter().enumerate() {
        own[a * rows + block.first - begin..][..BLOCK].copy_from_slice(panel);
    }
    solved
}

#[cfg(test)]
mod tests {
    use super::super::Cholesky;
    use super::super::registers::Plain;
    use super::*;
    use crate::random::Generator;
    use faer::Mat;
    use pulp::Scalar;

    fn spd(dim: usize) -> Mat<f64> {
        let mut rng = Generator::new(dim as u64);
        let a = Mat::from_fn(dim, dim, |_, _| rng.normal());
        &a * a.transpose() + Mat::<f64>::identity(dim, dim)
    }

    #[test]
    fn diagonals_of_any_size_are_the_plain_ones_on_any_registers_and_threads() {
        let (mut inverse, mut factor) = (InverseDiagonal::default(), PackedFactoring::default());
        let mut found = vec![1.0];
        // The last are smaller than what the memory held before.
        for dim in [1, 5, 23, 24, 25, 47, 48, 49, 72, 100, 383, 409, 500, 30, 0] {
            let a = spd(dim);
            factor.factor(&a.as_ref(), "test").unwrap();
            inverse.write(&factor, &mut found);
            assert_eq!(found.len(), dim);
            let plain = Cholesky::new(a.as_ref(), "test").unwrap().inverse_diagonal();
            let near = |found: &[f64]| found.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-11 * b);
            assert!(near(&found), "{dim}");
            for threads in 1..4 {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut again = Vec::new();
                pool.install(|| InverseDiagonal::default().write(&factor, &mut again));
                assert_eq!(again, found, "{dim} {threads}");
            }
            // Without vectors.
            let (triangle, blocks) = (factor.triangle(), dim.div_ceil(BLOCK));
            let last = blocks.div_ceil(TOGETHER);
            let mut columns = vec![[f64::NAN; PANEL]; place(last, blocks)];
            let mut out = vec![0.0; dim];
            let groups = Groups { triangle, first: 0, last, columns: &mut columns, out: &mut out };
            groups.pass(false, &|group| OnPanels::run(group, Plain::<Scalar, 4>(Scalar)));
            assert!(near(&out), "{dim}");
        }
    }
}
