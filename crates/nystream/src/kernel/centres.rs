//! Centres packed for evaluation (first, simple version).

use faer::MatMut;

use super::spec::Kernel;
use crate::rows::{Row, RowBlock, Rows};

/// A set of centres, packed for fast evaluation against rows.
#[derive(Debug, Clone)]
pub struct Centres {
    rows: RowBlock,
}

/// Scratch memory for [`Kernel::block`], grown once and reused.
#[derive(Debug, Default)]
pub struct KernelWorkspace {}

impl Centres {
    /// Packs `rows`.
    pub fn new(rows: Rows) -> Self {
        let mut copy = RowBlock::like(rows);
        copy.extend(rows);
        Self { rows: copy }
    }
    /// The centres as they were given.
    pub fn rows(&self) -> Rows<'_> {
        self.rows.rows()
    }
    /// Number of centres.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Kernel {
    /// out[j] = k(x, z_j) for every centre.
    pub fn row(&self, x: Row, centres: &Centres, out: &mut [f64]) {
        for (j, out) in out.iter_mut().enumerate() {
            *out = self.pair(x, centres.rows().row(j));
        }
    }

    /// out[i, j] = k(x_i, z_j); `out` is column-major, samples contiguous, one column a centre.
    pub fn block(&self, xs: Rows, centres: &Centres, _workspace: &mut KernelWorkspace, mut out: MatMut<'_, f64>) {
        for j in 0..centres.len() {
            for i in 0..xs.len() {
                out[(i, j)] = self.pair(xs.row(i), centres.rows().row(j));
            }
        }
    }
}
