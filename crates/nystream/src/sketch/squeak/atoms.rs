//! The points held, what is known of each, and the kernel values between them.

use faer::{Mat, MatMut};

use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::random::Generator;
use crate::rows::{RowBlock, Rows};

/// What is known of one point besides its values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standing {
    /// Row number in the stream, from 0.
    pub number: u64,
    /// p̃: only ever falls.
    pub probability: f64,
    /// Q: at least 1.
    pub copies: u64,
    /// q̄ when the point arrived.
    pub trials: u64,
}

impl Standing {
    /// Of a point that was just seen: every copy, with certainty.
    pub(super) fn new(number: u64, trials: u64) -> Self {
        Self { number, probability: 1.0, copies: trials, trials }
    }

    /// s² = Q/(q̄ p̃): the copies' columns of S taken together.
    pub(super) fn squared_weight(&self) -> f64 {
        self.copies as f64 / (self.trials as f64 * self.probability)
    }
}

/// Points with their standing, in the order of the stream, and the lower triangle of K_ZZ.
#[derive(Debug, Clone)]
pub(super) struct Atoms {
    rows: RowBlock,
    standing: Vec<Standing>,
    /// Square, with room to grow; only the lower triangle of the first `len` rows means anything.
    kernels: Mat<f64>,
}

impl Atoms {
    /// None, of the same kind and width as `rows`.
    pub(super) fn like(rows: Rows) -> Self {
        Self { rows: RowBlock::like(rows), standing: Vec::new(), kernels: Mat::zeros(0, 0) }
    }

    /// As they were saved.
    pub(super) fn from_parts(rows: RowBlock, standing: Vec<Standing>, kernels: Mat<f64>) -> Self {
        Self { rows, standing, kernels }
    }

    pub(super) fn len(&self) -> usize {
        self.standing.len()
    }

    pub(super) fn rows(&self) -> &RowBlock {
        &self.rows
    }

    pub(super) fn set_cols(&mut self, cols: usize) {
        self.rows.set_cols(cols);
    }

    pub(super) fn standing(&self) -> &[Standing] {
        &self.standing
    }

    /// k(z_i, z_j) for i ≥ j.
    pub(super) fn kernels(&self) -> faer::MatRef<'_, f64> {
        self.kernels.as_ref().submatrix(0, 0, self.len(), self.len())
    }

    /// s of every point.
    pub(super) fn weights(&self) -> impl Iterator<Item = f64> + '_ {
        self.standing.iter().map(|point| point.squared_weight().sqrt())
    }

    /// Appends points, and their kernel values with all that are held and with each other.
    pub(super) fn append(
        &mut self,
        kernel: &Kernel,
        more: Rows,
        standing: &[Standing],
        workspace: &mut KernelWorkspace,
    ) {
        let (old, total) = (self.len(), self.len() + more.len());
        self.rows.extend(more);
        self.standing.extend_from_slice(standing);
        if total > self.kernels.nrows() {
            // A tenth more than needed, for dictionaries that creep up.
            let room = total + total / 10;
            let mut kernels = Mat::zeros(room, room);
            kernels.as_mut().submatrix_mut(0, 0, old, old).copy_from(self.kernels.as_ref().submatrix(0, 0, old, old));
            self.kernels = kernels;
        }
        let centres = Centres::new(self.rows.rows());
        let mut out = self.kernels.as_mut().submatrix_mut(old, 0, total - old, total);
        kernel.block(more, &centres, workspace, out.as_mut());
        for i in 0..more.len() {
            out[(i, old + i)] = kernel.diagonal(more.row(i));
        }
    }

    /// Lets every point fall to its new probability: `rule(i, p̃)` is at most p̃. Points without copies go.
    ///
    /// Draws in the order of the points. SQUEAK, Alg. 1, lines 7 to 15.
    pub(super) fn shrink(&mut self, rng: &mut Generator, spare: &mut RowBlock, rule: impl Fn(usize, f64) -> f64) {
        let mut kept = Vec::with_capacity(self.len());
        for (i, point) in self.standing.iter_mut().enumerate() {
            let lower = rule(i, point.probability);
            point.copies = rng.binomial(point.copies, lower / point.probability);
            point.probability = lower;
            if point.copies > 0 {
                kept.push(i);
            }
        }
        if kept.len() == self.len() {
            return;
        }
        spare.clear();
        let rows = self.rows.rows();
        kept.iter().for_each(|&i| spare.push(rows.row(i)));
        std::mem::swap(&mut self.rows, spare);
        self.standing.retain(|point| point.copies > 0);
        let unmoved = kept.iter().enumerate().take_while(|(to, from)| to == *from).count();
        for (to, &from) in kept.iter().enumerate() {
            // Every number moves up or to the left, over places that were already read.
            let first = to.max(unmoved);
            move_within(self.kernels.as_mut(), (from, &kept[first..]), (to, first));
        }
    }

    /// Gives back memory that is not needed for those held.
    pub(super) fn release(&mut self) {
        // A copy takes no more than it needs.
        self.rows = self.rows.clone();
        self.standing.shrink_to_fit();
        self.kernels = self.kernels().to_owned();
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> usize {
        let kernels = self.kernels.nrows() * self.kernels.ncols() * 8;
        self.rows.size_bytes() + self.standing.capacity() * size_of::<Standing>() + kernels
    }
}

/// Moves the entries of some rows, in order, of a column to the rows from one on of a column before it or of itself.
fn move_within(matrix: MatMut<'_, f64>, (from, rows): (usize, &[usize]), (to, first): (usize, usize)) {
    let (mut left, mut right) = matrix.split_at_col_mut(from);
    let mut source = right.as_mut().col_mut(0);
    if to == from {
        (first..).zip(rows).for_each(|(to, &row)| source[to] = source[row]);
        return;
    }
    let target = left.as_mut().col_mut(to).subrows_mut(first, rows.len());
    target.iter_mut().zip(rows).for_each(|(target, &row)| *target = source[row]);
}
