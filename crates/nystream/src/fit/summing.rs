//! Sums over rows, with the memory they need kept from block to block.
//!
//! Kernels of a block are evaluated while the block before it is summed: a thread that runs out of the one work takes of the
//! other, where each by itself would end with threads waiting for the last tile. They are written as the sum reads them
//! ([`Kernel::pack`]).

use faer::{Mat, MatMut, MatRef};

use crate::error::Result;
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::PackedRows;
use crate::rows::Rows;
use crate::sketch::Dictionary;
use crate::solver::{NystromSums, Whitening};

/// Evaluates kernels of blocks of rows with the atoms and sums them.
#[derive(Debug)]
pub struct Summing {
    kernel: Kernel,
    centres: Centres,
    sums: NystromSums,
    workspaces: Vec<KernelWorkspace>,
    diagonals: Vec<f64>,
    /// Kernels that are yet to be summed, and memory for the next ones.
    waiting: Waiting,
    next: Waiting,
    /// Where features are summed: kernels before they are turned into them.
    block: Vec<f64>,
    workspace: KernelWorkspace,
}

/// Packed kernels of a block with its targets and Σk(x,x).
#[derive(Debug)]
struct Waiting {
    kernels: PackedRows,
    codes: Mat<f64>,
    energy: f64,
}

impl Waiting {
    fn none() -> Self {
        Self { kernels: PackedRows::default(), codes: Mat::new(), energy: 0.0 }
    }

    fn add_to(&mut self, sums: &mut NystromSums) {
        if self.codes.nrows() > 0 {
            sums.add_packed(&self.kernels, self.codes.as_ref(), self.energy);
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
            workspaces: Vec::new(),
            diagonals: Vec::new(),
            waiting: Waiting::none(),
            next: Waiting::none(),
            block: Vec::new(),
            workspace: KernelWorkspace::default(),
        })
    }

    /// Adds rows with their coded targets (rows × outputs).
    pub fn add(&mut self, rows: Rows, codes: MatRef<'_, f64>) {
        self.diagonals.resize(rows.len(), 0.0);
        self.kernel.diagonals(rows, &mut self.diagonals);
        let energy = self.diagonals.iter().sum();
        if self.sums.is_whitened() {
            // Features come from solves whose threads wait for each other: nothing else may hold one.
            self.block.resize(rows.len() * self.centres.len(), 0.0);
            let mut block = MatMut::from_column_major_slice_mut(&mut self.block, rows.len(), self.centres.len());
            self.kernel.block(rows, &self.centres, &mut self.workspace, block.as_mut());
            self.sums.add(block, codes, energy);
            return;
        }
        let Self { kernel, centres, sums, workspaces, waiting, next, .. } = self;
        let evaluate = || {
            next.kernels.fill((rows.len(), centres.len()), workspaces, |workspace, part| {
                kernel.pack(rows.slice(part.range().start, part.range().end), centres, workspace, part);
            });
            (next.energy, next.codes) = (energy, codes.to_owned());
        };
        rayon::join(|| waiting.add_to(sums), evaluate);
        std::mem::swap(waiting, next);
    }

    /// The sums so far.
    pub fn sums(&mut self) -> &NystromSums {
        self.waiting.add_to(&mut self.sums);
        &self.sums
    }
}
