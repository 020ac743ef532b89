//! Features of a block of rows: kernels with the atoms, levelled or whitened where the sums are.

use std::sync::Arc;

use faer::{MatMut, Par};
use rayon::prelude::*;

use super::resize;
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::{PackedRows, parallelism};
use crate::rows::{RowBlock, Rows};
use crate::solver::levelling::Levelling;
use crate::solver::nystrom::NystromSums;
use crate::solver::whitening::Whitening;

/// Rows whose features are made together, by one thread.
const STRIP: usize = 48;
/// Numbers from which on features are made in strips that any thread may take.
const SPLIT: usize = 1 << 17;

/// Features of a block of rows.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    /// The rows themselves, if these features are for later.
    pub rows: Option<RowBlock>,
    /// √w (φ, 1), column-major.
    pub features: Vec<f64>,
    /// k(x,x).
    pub diagonals: Vec<f64>,
    /// One a strip of rows.
    workspaces: Vec<StripWorkspace>,
}

/// Memory for a strip of rows.
#[derive(Debug, Default)]
struct StripWorkspace {
    kernels: KernelWorkspace,
    features: PackedRows,
    /// What levelled kernels are made with.
    along: Vec<f64>,
}

impl StripWorkspace {
    /// φ of some rows.
    fn load(&mut self, make: &Features, rows: Rows, mut out: MatMut<'_, f64>) {
        make.kernel.block(rows, make.centres, &mut self.kernels, out.as_mut());
        if let Some(levelling) = &make.levelling {
            levelling.apply(out.as_mut(), &mut self.along);
        }
        if let Some(whitening) = &make.whitening {
            whitening.apply_packed(out, &mut self.features);
        }
    }

    fn size_bytes(&self) -> usize {
        self.kernels.size_bytes() + self.features.size_bytes() + 8 * self.along.capacity()
    }
}

/// What makes features of rows.
#[derive(Clone)]
pub(super) struct Features<'a> {
    kernel: &'a Kernel,
    centres: &'a Centres,
    whitening: Option<Arc<Whitening>>,
    pub levelling: Option<Arc<Levelling>>,
}

impl<'a> Features<'a> {
    pub fn of(kernel: &'a Kernel, centres: &'a Centres, sums: &NystromSums) -> Self {
        Self { kernel, centres, whitening: sums.whitening.clone(), levelling: sums.levelling.clone() }
    }

    /// Number of features, the constant among them.
    pub fn width(&self) -> usize {
        self.centres.len() + 1
    }
}

impl Loaded {
    /// √w (φ, 1) of the rows, and their k(x,x).
    pub fn load(&mut self, make: &Features, rows: Rows, weights: Option<&[f64]>) {
        let (height, atoms) = (rows.len(), make.centres.len());
        resize(&mut self.features, height * (atoms + 1));
        resize(&mut self.diagonals, height);
        self.workspaces.resize_with(height.div_ceil(STRIP), StripWorkspace::default);
        let strip = |((s, mut out), workspace): ((usize, MatMut<'_, f64>), &mut StripWorkspace)| {
            let from = s * STRIP;
            let (mut features, constant) = out.as_mut().split_at_col_mut(atoms);
            let part = rows.slice(from, from + features.nrows());
            workspace.load(make, part, features.as_mut());
            match weights {
                Some(weights) => {
                    let weights = &weights[from..];
                    for column in features.col_iter_mut() {
                        column.iter_mut().zip(weights).for_each(|(v, w)| *v *= w.sqrt());
                    }
                    constant.col_mut(0).iter_mut().zip(weights).for_each(|(v, w)| *v = w.sqrt());
                }
                None => constant.col_mut(0).iter_mut().for_each(|v| *v = 1.0),
            }
        };
        let all = MatMut::from_column_major_slice_mut(&mut self.features, height, atoms + 1);
        // With one thread to itself, a small task that splits would wait for whatever else its own thread took up meanwhile.
        if parallelism(usize::MAX) == Par::Seq && height * atoms < SPLIT {
            let mut rest = all;
            for (s, workspace) in self.workspaces.iter_mut().enumerate() {
                let height = rest.nrows().min(STRIP);
                let (part, others) = rest.split_at_row_mut(height);
                strip(((s, part), workspace));
                rest = others;
            }
        } else {
            all.par_row_chunks_mut(STRIP).enumerate().zip(&mut self.workspaces).for_each(strip);
        }
        make.kernel.diagonals(rows, &mut self.diagonals);
    }

    /// Keeps the rows, to be known by them.
    pub fn remember(&mut self, rows: Rows) {
        let mut copy = RowBlock::like(rows);
        copy.extend(rows);
        self.rows = Some(copy);
    }

    /// Bytes that making features needs beside them.
    pub fn workspace_bytes(&self) -> usize {
        self.workspaces.iter().map(StripWorkspace::size_bytes).sum::<usize>()
            + self.rows.as_ref().map_or(0, RowBlock::size_bytes)
    }
}
