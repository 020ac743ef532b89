//! Kernels of rows with all centres in the layout that sums of outer products are taken from ([`PackedPart`]).
//!
//! The Gaussian kernel in few dense columns is written there straight from the registers: with the two sides changing
//! places (the centres in the lanes, the rows taken one after the other) what a register holds is what a panel has side by
//! side. It is the same loop as for blocks, with the same bits. All other kernels are evaluated as blocks, strip by strip,
//! and packed while they are in the cache.

use faer::{MatMut, MatRef};
use pulp::Simd;

use super::block::KernelWorkspace;
use super::centres::{Centres, DIRECT_COLUMNS, Layout};
use super::gaussian::{self, ROWS, Target};
use super::spec::Kernel;
use super::transform::{Norms, Transform};
use super::vector::{LANES, Lanes, Vectorised, vectorised};
use crate::linalg::{PANEL, PackedPart};
use crate::rows::{DenseRows, Rows};

impl Kernel {
    /// Fills `part` with the kernels of `xs` with all centres, on the calling thread if the part is a small one.
    ///
    /// # Panics
    /// If `part` is not of as many rows and columns as there are rows and centres, or dense rows or centres differ in width.
    pub fn pack(&self, xs: Rows, centres: &Centres, workspace: &mut KernelWorkspace, mut part: PackedPart) {
        assert_eq!((part.range().len(), part.dim()), (xs.len(), centres.len()), "shape of the packed kernels");
        if let (Transform::Gaussian { rate }, Rows::Dense(xs), Rows::Dense(points), Layout::Panels(lanes)) =
            (Transform::new(self), xs, centres.rows(), &centres.layout)
        {
            assert_eq!(xs.cols(), points.cols(), "columns of the rows and of the centres");
            let mut done = false;
            if (1..=DIRECT_COLUMNS).contains(&xs.cols()) {
                let norms = &mut workspace.norms;
                vectorised(Straight {
                    rate,
                    xs,
                    lanes,
                    others: &centres.norms,
                    norms,
                    part: &mut part,
                    done: &mut done,
                });
            }
            if done {
                return;
            }
        }
        let (strip, width) = (centres.strip_rows(), centres.len());
        let mut numbers = std::mem::take(&mut workspace.strip);
        numbers.resize(strip.min(xs.len()) * width, 0.0);
        for from in (0..xs.len()).step_by(strip) {
            let rows = xs.slice(from, xs.len().min(from + strip));
            let numbers = &mut numbers[..rows.len() * width];
            let block = MatMut::from_column_major_slice_mut(numbers, rows.len(), width);
            self.block(rows, centres, workspace, block);
            part.pack(from, MatRef::from_column_major_slice(numbers, rows.len(), width));
        }
        workspace.strip = numbers;
    }
}

/// Gaussian kernels written to their place from the registers.
struct Straight<'a, 'b> {
    rate: f64,
    xs: DenseRows<'a>,
    /// The centres feature by feature, and their norms.
    lanes: &'a [Lanes],
    others: &'a [Norms],
    norms: &'a mut Vec<Norms>,
    part: &'a mut PackedPart<'b>,
    /// Whether the processor has what it takes.
    done: &'a mut bool,
}

impl Vectorised for Straight<'_, '_> {
    const WIDE: bool = true;

    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, simd: S) {
        let Self { rate, xs, lanes, others, norms, part, done } = self;
        if !(FMA && gaussian::fits::<S>()) {
            return;
        }
        *done = true;
        norms.clear();
        for start in (0..xs.len()).step_by(LANES) {
            let squared = |i: usize| xs.row(i).iter().map(|v| v * v).sum();
            norms.push(Norms::new((start..xs.len().min(start + LANES)).map(squared)));
        }
        let groups = part.panels(LANES / PANEL).zip(lanes.chunks_exact(xs.cols())).zip(others);
        // The rows are in the second cache, 32 centres and what becomes of them in the first.
        for ((panels, features), other) in groups {
            let centres = gaussian::Panels { features, norms: std::slice::from_ref(other) };
            gaussian::columns(simd, rate, centres, xs, norms, PanelRows { panels, height: xs.len() });
        }
        let past = part.dim().next_multiple_of(PANEL) - part.dim();
        if let Some(last) = part.panels(1).last() {
            last.iter_mut().for_each(|row| row[PANEL - past..].fill(0.0));
        }
    }
}

/// Up to 32 columns of packed rows.
struct PanelRows<'a> {
    panels: &'a mut [[f64; PANEL]],
    height: usize,
}

impl Target for PanelRows<'_> {
    #[inline(always)]
    fn rows(&self) -> usize {
        self.panels.len() / self.height * PANEL
    }

    #[inline(always)]
    fn write<S: Simd>(&mut self, start: usize, point: usize, values: &[S::f64s; ROWS]) {
        let values: &[f64] = pulp::bytemuck::cast_slice(values);
        let panels = self.panels[start / PANEL * self.height..].chunks_exact_mut(self.height);
        for (panel, values) in panels.zip(values.as_chunks::<PANEL>().0) {
            panel[point] = *values;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::PackedRows;
    use crate::random::Generator;
    use crate::rows::RowBlock;
    use faer::Mat;

    #[test]
    fn packed_kernels_are_those_of_the_block_bit_for_bit() {
        let mut rng = Generator::new(19);
        let kernels = [Kernel::gaussian(1.3).unwrap(), Kernel::matern32(2.0).unwrap(), Kernel::Linear];
        for (rows, atoms, cols) in
            [(1, 1, 1), (70, 31, 3), (401, 133, 20), (900, 64, 32), (50, 40, 33), (5, 0, 2), (0, 7, 2)]
        {
            let numbers: Vec<f64> = (0..(rows + atoms) * cols).map(|_| rng.normal() * 2.0).collect();
            let (xs, points) = numbers.split_at(rows * cols);
            let xs = Rows::dense(xs, rows, cols).unwrap();
            let mut held = RowBlock::dense(cols);
            held.extend(Rows::dense(points, atoms, cols).unwrap());
            // Equal points, and points far from the origin, are looked at again.
            let far: Vec<f64> = (0..cols).map(|_| 1e9).collect();
            held.extend(Rows::dense(&far, 1, cols).unwrap());
            if rows > 0 {
                held.extend(xs.slice(rows - 1, rows));
            }
            let centres = Centres::new(held.rows());
            for kernel in kernels {
                let mut block = Mat::zeros(rows, centres.len());
                kernel.block(xs, &centres, &mut KernelWorkspace::default(), block.as_mut());
                let (mut expected, mut found) = (PackedRows::default(), PackedRows::default());
                let mut none: Vec<()> = Vec::new();
                expected.fill((rows, centres.len()), &mut none, |(), mut part| {
                    part.pack(0, block.subrows(part.range().start, part.range().len()));
                });
                found.fill((rows, centres.len()), &mut Vec::new(), |workspace, part| {
                    kernel.pack(xs.slice(part.range().start, part.range().end), &centres, workspace, part);
                });
                assert!(expected.parts().eq(found.parts()), "{kernel:?} {rows} {atoms} {cols}");
            }
        }
    }
}
