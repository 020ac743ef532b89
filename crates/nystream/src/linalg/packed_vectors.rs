//! x ← L⁻¹x and x ← L⁻ᵀx of one vector, L packed ([`PackedTriangle`]): every number of L is read once, in the order in which it
//! lies in memory.

use super::packed_rows::{BLOCK, PANEL};
use super::packed_solve::PackedTriangle;
use super::rank_update::OnPanels;
use super::registers::Registers;

/// x ← L⁻¹x.
pub(super) struct Forward<'a> {
    pub triangle: &'a PackedTriangle,
    pub x: &'a mut [f64],
}

impl OnPanels for Forward<'_> {
    #[inline(always)]
    fn run<R: Registers>(self, _: R) {
        let Self { triangle, x } = self;
        for g in 0..triangle.dim.div_ceil(BLOCK) {
            let (first, length) = (g * BLOCK, (g + 1) * BLOCK);
            let (known, x) = x.split_at_mut(first);
            let rows = BLOCK.min(x.len());
            let mut rest = [0.0; BLOCK];
            rest[..rows].copy_from_slice(&x[..rows]);
            let panels = || triangle.block(g).chunks_exact(length);
            for (rest, panel) in rest.as_chunks_mut::<PANEL>().0.iter_mut().zip(panels()) {
                // Several sums side by side: one alone would wait for itself.
                let mut sums = [[0.0; PANEL]; 4];
                let (numbers, more) = panel[..first].as_chunks::<4>();
                for (numbers, known) in numbers.iter().zip(known.as_chunks::<4>().0) {
                    for (sums, (numbers, known)) in sums.iter_mut().zip(numbers.iter().zip(known)) {
                        (0..PANEL).for_each(|q| sums[q] += numbers[q] * known);
                    }
                }
                debug_assert!(more.is_empty());
                (0..PANEL).for_each(|q| rest[q] -= (sums[0][q] + sums[1][q]) + (sums[2][q] + sums[3][q]));
            }
            let mut solved = [0.0; BLOCK];
            for (out, panel) in solved.as_chunks_mut::<PANEL>().0.iter_mut().zip(panels()) {
                for (numbers, rest) in panel[first..].iter().zip(&rest) {
                    (0..PANEL).for_each(|q| out[q] += numbers[q] * rest);
                }
            }
            x[..rows].copy_from_slice(&solved[..rows]);
        }
    }
}

/// x ← L⁻ᵀx.
pub(super) struct Backward<'a> {
    pub triangle: &'a PackedTriangle,
    pub x: &'a mut [f64],
}

impl OnPanels for Backward<'_> {
    #[inline(always)]
    fn run<R: Registers>(self, _: R) {
        let Self { triangle, x } = self;
        for g in (0..triangle.dim.div_ceil(BLOCK)).rev() {
            let (first, length) = (g * BLOCK, (g + 1) * BLOCK);
            let (before, x) = x.split_at_mut(first);
            let rows = BLOCK.min(x.len());
            let mut rest = [0.0; BLOCK];
            rest[..rows].copy_from_slice(&x[..rows]);
            let panels = || triangle.block(g).chunks_exact(length).zip(rest.as_chunks::<PANEL>().0);
            let mut solved = [0.0; BLOCK];
            for (panel, rest) in panels() {
                for (out, numbers) in solved.iter_mut().zip(&panel[first..]) {
                    *out += numbers.iter().zip(rest).map(|(a, b)| a * b).sum::<f64>();
                }
            }
            x[..rows].copy_from_slice(&solved[..rows]);
            let solved = solved.as_chunks::<PANEL>().0;
            for (panel, solved) in triangle.block(g).chunks_exact(length).zip(solved) {
                for (out, numbers) in before.iter_mut().zip(panel) {
                    *out -= numbers.iter().zip(solved).map(|(a, b)| a * b).sum::<f64>();
                }
            }
        }
    }
}
