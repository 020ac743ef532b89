//! Sums over rows, with the memory they need kept from block to block.
//!
//! Kernels of a block are evaluated while the block before it is summed: a thread that runs out of the one work takes of the
//! other, where each by itself would end with threads waiting for the last tile.

use faer::{Mat, MatMut, MatRef};

use crate::error::Result;
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::rows::Rows;
use crate::sketch::Dictionary;
use crate::solver::{NystromSums, Whitening};

/// Evaluates kernels of blocks of rows with the atoms and sums them.
#[derive(Debug)]
pub struct Summing {
    kernel: Kernel,
    centres: Centres,
    sums: NystromSums,
    workspace: KernelWorkspace,
    diagonals: Vec<f64>,
    /// Kernels that are yet to be summed, and memory for the next ones.
    waiting: Waiting,
    next: Waiting,
}

/// Kernels of a block with its targets and Σk(x,x).
#[derive(Debug)]
struct Waiting {
    kernels: Vec<f64>,
    codes: Mat<f64>,
    energy: f64,
}

impl Waiting {
    fn none() -> Self {
        Self { kernels: Vec::new(), codes: Mat::new(), energy: 0.0 }
    }

    fn add_to(&mut self, sums: &mut NystromSums, atoms: usize) {
        let rows = self.codes.nrows();
        if rows > 0 {
            let block = MatMut::from_column_major_slice_mut(&mut self.kernels, rows, atoms);
            sums.add(block, self.codes.as_ref(), self.energy);
            self.codes = Mat::new();
        }
    }
}

impl Summing {
    /// No rows yet. With `precise`, features are summed instead of kernels (see [`NystromSums::whitened`]).
    pub fn new(kernel: Kernel, dictionary: &Dictionary, outputs: usize, precise: bool) -> Result<Self> {
        let sums = if precise {
            NystromSums::whitened(Whitening::new(&kernel, dictionary, None)?, outputs)
        } else {
            NystromSums::new(dictionary.len(), outputs)
        };
        Ok(Self {
            kernel,
            centres: Centres::new(dictionary.atoms().rows()),
            sums,
            workspace: KernelWorkspace::default(),
            diagonals: Vec::new(),
            waiting: Waiting::none(),
            next: Waiting::none(),
        })
    }

    /// Adds rows with their coded targets (rows × outputs).
    pub fn add(&mut self, rows: Rows, codes: MatRef<'_, f64>) {
        let Self { kernel, centres, sums, workspace, diagonals, waiting, next } = self;
        let mut evaluate = || {
            next.kernels.resize(rows.len() * centres.len(), 0.0);
            let block = MatMut::from_column_major_slice_mut(&mut next.kernels, rows.len(), centres.len());
            kernel.block(rows, centres, workspace, block);
            diagonals.resize(rows.len(), 0.0);
            kernel.diagonals(rows, diagonals);
            next.energy = diagonals.iter().sum();
            next.codes = codes.to_owned();
        };
        if sums.is_whitened() {
            // Features come from solves whose threads wait for each other: nothing else may hold one.
            evaluate();
            waiting.add_to(sums, centres.len());
        } else {
            rayon::join(|| waiting.add_to(sums, centres.len()), evaluate);
        }
        std::mem::swap(waiting, next);
    }

    /// The sums so far.
    pub fn sums(&mut self) -> &NystromSums {
        self.waiting.add_to(&mut self.sums, self.centres.len());
        &self.sums
    }
}
