//! The features of a dictionary: φ(x) = L⁻¹ S k_Z(x), LLᵀ = S K_ZZ S + γI, whose inner products are K̃ (INK, Eq. 5).

use std::sync::OnceLock;

use faer::{Mat, MatMut, MatRef};

use crate::error::Result;
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::{Cholesky, PackedRows, PackedTriangle};
use crate::rows::Rows;
use crate::sketch::Dictionary;

/// Relative accuracy of kernel values.
pub(super) const KERNEL_ACCURACY: f64 = 1e-12;
/// Rows whose features are made at once.
const TURN: usize = 384;

/// Maps kernels with the atoms to features.
#[derive(Debug, Clone)]
pub struct Whitening {
    /// S.
    pub(super) weights: Vec<f64>,
    /// L.
    pub(super) factor: Cholesky,
    /// L for many rows, once they have come.
    packed: OnceLock<PackedTriangle>,
    /// γ in force.
    pub(super) leverage_ridge: f64,
}

impl Whitening {
    /// The map of a dictionary. If it has no leverage ridge of its own, the nugget stands in its place (none: the
    /// accuracy of the kernels, times the mean of the diagonal of S K_ZZ S).
    pub fn new(kernel: &Kernel, dictionary: &Dictionary, nugget: Option<f64>) -> Result<Self> {
        let (overlap, leverage_ridge) = Self::overlap(kernel, dictionary, nugget);
        Self::of_overlap(dictionary.weights().to_vec(), overlap.as_ref(), leverage_ridge)
    }

    /// S K_ZZ S + γI, and γ.
    pub(super) fn overlap(kernel: &Kernel, dictionary: &Dictionary, nugget: Option<f64>) -> (Mat<f64>, f64) {
        let atoms = dictionary.len();
        let mut overlap = Mat::zeros(atoms, atoms);
        let rows = dictionary.atoms().rows();
        kernel.block(rows, &Centres::new(rows), &mut KernelWorkspace::default(), overlap.as_mut());
        scale_both_sides(&mut overlap, dictionary.weights());
        let mean = (0..atoms).map(|i| overlap[(i, i)]).sum::<f64>() / atoms.max(1) as f64;
        let own = dictionary.leverage_ridge();
        let leverage_ridge = if own > 0.0 { own } else { nugget.unwrap_or(KERNEL_ACCURACY * mean) };
        for i in 0..atoms {
            overlap[(i, i)] += leverage_ridge;
        }
        (overlap, leverage_ridge)
    }

    /// The map of these weights from what [`overlap`](Self::overlap) gave.
    pub(super) fn of_overlap(weights: Vec<f64>, overlap: MatRef<'_, f64>, leverage_ridge: f64) -> Result<Self> {
        let factor = Cholesky::new(overlap, "kernels between atoms")?;
        Ok(Self { weights, factor, packed: OnceLock::new(), leverage_ridge })
    }

    /// S⁻¹L: features to kernels.
    pub(super) fn to_kernels(&self) -> Mat<f64> {
        let mut factor = self.factor.factor().to_owned();
        for column in factor.as_mut().col_iter_mut() {
            column.iter_mut().zip(&self.weights).for_each(|(v, w)| *v /= w);
        }
        factor
    }

    /// Number of features.
    pub fn dim(&self) -> usize {
        self.weights.len()
    }

    /// γ in force.
    pub fn leverage_ridge(&self) -> f64 {
        self.leverage_ridge
    }

    /// B ← SB.
    pub(super) fn weigh_columns(&self, block: MatMut<'_, f64>) {
        for column in block.col_iter_mut() {
            column.iter_mut().zip(&self.weights).for_each(|(v, w)| *v *= w);
        }
    }

    /// B ← L⁻¹SB, for many columns.
    pub(super) fn whiten_columns(&self, mut block: MatMut<'_, f64>) {
        self.weigh_columns(block.as_mut());
        self.factor.forward_in_place(block);
    }

    /// B ← S L⁻ᵀ B: coefficients of features to coefficients of kernels.
    pub(super) fn transposed_in_place(&self, mut block: MatMut<'_, f64>) {
        self.factor.backward_in_place(block.as_mut());
        self.weigh_columns(block);
    }

    /// Turns a block of kernels (rows × m) into features, in place.
    pub fn apply(&self, mut block: MatMut<'_, f64>) {
        self.weigh(block.as_mut());
        self.factor.forward_in_place(block.transpose_mut());
    }

    /// [`apply`](Self::apply) to many rows, block after block: by packed products, in memory that is used again.
    pub fn apply_packed(&self, mut block: MatMut<'_, f64>, scratch: &mut PackedRows) {
        self.weigh(block.as_mut());
        let packed = self.packed.get_or_init(|| PackedTriangle::of(self.factor.factor()));
        packed.solve(block.as_ref(), scratch);
        scratch.write_transposed(block);
    }

    /// Features of rows, a row each, into `out` (best column-major); `centres` are the atoms. In turns: what is in between stays
    /// in the cache.
    pub fn features(&self, kernel: &Kernel, rows: Rows, centres: &Centres, mut out: MatMut<'_, f64>) {
        let (mut workspace, mut packed) = (KernelWorkspace::default(), PackedRows::default());
        for start in (0..rows.len()).step_by(TURN) {
            let part = rows.slice(start, (start + TURN).min(rows.len()));
            let mut block = out.as_mut().subrows_mut(start, part.len());
            kernel.block(part, centres, &mut workspace, block.as_mut());
            self.apply_packed(block, &mut packed);
        }
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let packed = self.packed.get().map_or(0, PackedTriangle::size_bytes);
        8 * self.dim() * (self.dim() + 1) + packed
    }

    fn weigh(&self, mut block: MatMut<'_, f64>) {
        if self.weights.iter().any(|&w| w != 1.0) {
            for (column, weight) in block.as_mut().col_iter_mut().zip(&self.weights) {
                column.iter_mut().for_each(|v| *v *= weight);
            }
        }
    }
}

pub(super) fn scale_both_sides(matrix: &mut Mat<f64>, weights: &[f64]) {
    if weights.iter().all(|&w| w == 1.0) {
        return;
    }
    for (j, column) in matrix.as_mut().col_iter_mut().enumerate() {
        column.iter_mut().zip(weights).for_each(|(v, w)| *v *= w * weights[j]);
    }
}
