//! An explicit feature map φ(x) = Qᵀ[κ(x, z₁), …, κ(x, z_m)]ᵀ, so that ⟨φ(x), φ(x')⟩ ≈ κ(x, x').

use faer::{Mat, MatRef};

use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::{dot, product};
use crate::rows::{Row, Rows};

/// Rows whose approximate kernel values are computed together.
const STRIP: usize = 512;

/// Points z, a matrix Q, and the kernel between (SkeGD, Eq. 4).
#[doc(alias = "phi")]
#[derive(Debug, Clone)]
pub struct FeatureMap {
    kernel: Kernel,
    centres: Centres,
    pub(super) weights: Mat<f64>,
}

impl FeatureMap {
    /// The map of these points and Q, with one row a point.
    pub fn new(kernel: Kernel, centres: Centres, weights: Mat<f64>) -> Result<Self> {
        if weights.nrows() != centres.len() {
            let (found, expected) = (weights.nrows(), centres.len());
            return Err(Error::Shape { what: "rows of a feature map's matrix", found, expected });
        }
        Ok(Self { kernel, centres, weights })
    }

    /// The kernel that is approximated.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The points z.
    pub fn centres(&self) -> &Centres {
        &self.centres
    }

    /// Q.
    #[doc(alias = "Q")]
    pub fn weights(&self) -> MatRef<'_, f64> {
        self.weights.as_ref()
    }

    /// Number of features.
    pub fn dim(&self) -> usize {
        self.weights.ncols()
    }

    /// κ(x, z) for every point: one row of C_m.
    ///
    /// # Panics
    /// If `out` is not one number a point, or a dense row has another width than the points.
    pub fn kernels(&self, x: Row, out: &mut [f64]) {
        self.kernel.row(x, &self.centres, out);
    }

    /// φ(x) from the kernels of x with the points.
    pub fn map(&self, kernels: &[f64], out: &mut [f64]) {
        for (column, out) in self.weights.col_iter().zip(out) {
            if let Some(column) = column.try_as_col_major() {
                *out = dot(column.as_slice(), kernels);
            }
        }
    }

    /// The features of many rows, one row each.
    pub fn features(&self, rows: Rows) -> Mat<f64> {
        let mut kernels = Mat::zeros(rows.len(), self.centres.len());
        self.kernel.block(rows, &self.centres, &mut KernelWorkspace::default(), kernels.as_mut());
        product(kernels.as_ref(), self.weights())
    }

    /// The approximate kernel matrix of rows with themselves: C F Cᵀ with F = Q Qᵀ (SkeGD, Eq. 1).
    #[doc(alias = "K_sk")]
    pub fn approximation(&self, rows: Rows) -> Mat<f64> {
        let features = self.features(rows);
        product(features.as_ref(), features.transpose())
    }

    /// ‖K̃ − K‖²_F / ‖K‖²_F over the kernel matrix of `rows` (SkeGD, section 6.2), a strip of it at a time.
    pub fn relative_error(&self, rows: Rows) -> f64 {
        let features = self.features(rows);
        let (mut missed, mut whole) = (0.0, 0.0);
        let mut workspace = KernelWorkspace::default();
        for start in (0..rows.len()).step_by(STRIP) {
            let width = STRIP.min(rows.len() - start);
            let mut exact = Mat::zeros(rows.len(), width);
            let centres = Centres::new(rows.slice(start, start + width));
            self.kernel.block(rows, &centres, &mut workspace, exact.as_mut());
            let found = product(features.as_ref(), features.subrows(start, width).transpose());
            missed += (found - &exact).squared_norm_l2();
            whole += exact.squared_norm_l2();
        }
        missed / whole
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.centres.size_bytes() + self.weights.nrows() * self.weights.ncols() * 8
    }
}
