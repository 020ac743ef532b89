//! Sums over rows, with the memory they need kept from block to block.

use faer::{MatMut, MatRef};

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
    block: Vec<f64>,
    diagonals: Vec<f64>,
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
            block: Vec::new(),
            diagonals: Vec::new(),
        })
    }

    /// Adds rows with their coded targets (rows × outputs).
    pub fn add(&mut self, rows: Rows, codes: MatRef<'_, f64>) {
        let atoms = self.centres.len();
        self.block.resize(rows.len() * atoms, 0.0);
        let mut block = MatMut::from_column_major_slice_mut(&mut self.block, rows.len(), atoms);
        self.kernel.block(rows, &self.centres, &mut self.workspace, block.as_mut());
        self.diagonals.resize(rows.len(), 0.0);
        self.kernel.diagonals(rows, &mut self.diagonals);
        self.sums.add(block, codes, self.diagonals.iter().sum());
    }

    /// The sums so far.
    pub fn sums(&self) -> &NystromSums {
        &self.sums
    }
}
