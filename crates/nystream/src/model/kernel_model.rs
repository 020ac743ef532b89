//! The function a solver found: f(x) = k_Z(x)ᵀβ + intercept, one column of β a target.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef};

use super::limits::OutputLimits;
use super::uncertainty::Uncertainty;
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::parallelism;
use crate::rows::Rows;

/// Rows evaluated at a time: the kernel block of 1,000 centres stays below 8 MB.
const BLOCK: usize = 1024;

/// A kernel expansion on centres, with what is needed for standard deviations if it was kept.
#[derive(Debug, Clone)]
pub struct KernelModel {
    kernel: Kernel,
    centres: Centres,
    coefficients: Mat<f64>,
    intercepts: Vec<f64>,
    uncertainty: Option<Uncertainty>,
    limits: OutputLimits,
}

/// Scratch memory for predictions, grown once and reused.
#[derive(Debug, Default)]
pub struct PredictWorkspace {
    kernel: KernelWorkspace,
    block: Vec<f64>,
    values: Vec<f64>,
}

impl KernelModel {
    /// Puts a model together, checking that its parts fit.
    pub fn new(
        kernel: Kernel,
        centres: Centres,
        coefficients: Mat<f64>,
        intercepts: Vec<f64>,
        uncertainty: Option<Uncertainty>,
    ) -> Result<Self> {
        let shape = |what, found, expected| {
            if found == expected { Ok(()) } else { Err(Error::Shape { what, found, expected }) }
        };
        shape("coefficients", coefficients.nrows(), centres.len())?;
        shape("intercepts", intercepts.len(), coefficients.ncols())?;
        if let Some(uncertainty) = &uncertainty {
            uncertainty.check(centres.len(), intercepts.len())?;
        }
        Ok(Self { kernel, centres, coefficients, intercepts, uncertainty, limits: OutputLimits::none() })
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }
    /// The atoms.
    pub fn centres(&self) -> &Centres {
        &self.centres
    }
    /// β, atoms × targets.
    #[doc(alias = "β")]
    pub fn coefficients(&self) -> MatRef<'_, f64> {
        self.coefficients.as_ref()
    }
    /// The constants added to each target.
    pub fn intercepts(&self) -> &[f64] {
        &self.intercepts
    }
    /// What standard deviations are computed from.
    pub fn uncertainty(&self) -> Option<&Uncertainty> {
        self.uncertainty.as_ref()
    }
    /// Forgets what standard deviations need, for a smaller file.
    pub fn without_uncertainty(mut self) -> Self {
        self.uncertainty = None;
        self
    }
    /// Sets σ² of each target and the shares of what atoms do not span.
    pub(super) fn set_spread(&mut self, shares: Vec<f64>, variances: Vec<f64>) {
        match &mut self.uncertainty {
            Some(Uncertainty::Nystrom(posterior)) => {
                posterior.unspanned_shares = shares;
                posterior.noise_variances = variances;
            }
            Some(Uncertainty::Exact(posterior)) => posterior.noise_variances = variances,
            None => {}
        }
    }
    /// Keeps outputs within these from here on.
    pub fn with_limits(mut self, limits: OutputLimits) -> Result<Self> {
        if !limits.fit(self.outputs()) {
            return Err(Error::Internal("limits that are not those of the outputs"));
        }
        self.limits = limits;
        Ok(self)
    }
    /// What outputs are kept within.
    pub fn limits(&self) -> &OutputLimits {
        &self.limits
    }
    /// Adds a constant to each target.
    pub fn shift_outputs(&mut self, shift: &[f64]) {
        self.limits.shift(shift);
        self.intercepts.iter_mut().zip(shift).for_each(|(intercept, s)| *intercept += s);
    }
    /// Number of targets.
    pub fn outputs(&self) -> usize {
        self.intercepts.len()
    }

    fn check_width(&self, rows: Rows) -> Result<()> {
        let expected = self.centres.rows().cols();
        if rows.cols() != expected {
            return Err(Error::Shape { what: "features", found: rows.cols(), expected });
        }
        Ok(())
    }

    /// Predictions, row-major: rows × targets.
    pub fn predict(&self, rows: Rows, workspace: &mut PredictWorkspace, out: &mut Vec<f64>) -> Result<()> {
        self.evaluate(rows, workspace, out, None)
    }

    /// Predictions and their standard deviations (those of a new observation, noise included), both rows × targets.
    pub fn predict_with_std(
        &self,
        rows: Rows,
        workspace: &mut PredictWorkspace,
        out: &mut Vec<f64>,
        deviations: &mut Vec<f64>,
    ) -> Result<()> {
        self.evaluate(rows, workspace, out, Some(deviations))
    }

    fn evaluate(
        &self,
        rows: Rows,
        workspace: &mut PredictWorkspace,
        out: &mut Vec<f64>,
        mut deviations: Option<&mut Vec<f64>>,
    ) -> Result<()> {
        self.check_width(rows)?;
        let uncertainty = match (&deviations, &self.uncertainty) {
            (Some(_), None) => {
                return Err(Error::InvalidParam {
                    name: "std",
                    found: "a model saved without its posterior".to_owned(),
                    expected: "a model that keeps it",
                });
            }
            (Some(_), uncertainty) => uncertainty.as_ref(),
            (None, _) => None,
        };
        let (outputs, centres) = (self.outputs(), self.centres.len());
        out.clear();
        out.reserve(rows.len() * outputs);
        if let Some(deviations) = deviations.as_deref_mut() {
            deviations.clear();
            deviations.reserve(rows.len() * outputs);
        }
        for start in (0..rows.len()).step_by(BLOCK) {
            let part = rows.slice(start, (start + BLOCK).min(rows.len()));
            let height = part.len();
            workspace.block.resize(height * centres, 0.0);
            workspace.values.resize(height * outputs, 0.0);
            let mut block = MatMut::from_column_major_slice_mut(&mut workspace.block, height, centres);
            self.kernel.block(part, &self.centres, &mut workspace.kernel, block.as_mut());
            let mut values = MatMut::from_column_major_slice_mut(&mut workspace.values, height, outputs);
            let par = parallelism(height * centres * outputs);
            matmul(values.as_mut(), Accum::Replace, block.as_ref(), self.coefficients.as_ref(), 1.0, par);
            for i in 0..height {
                out.extend((0..outputs).map(|t| values[(i, t)] + self.intercepts[t]));
                let row = out.len() - outputs;
                self.limits.keep(&mut out[row..]);
            }
            if let (Some(uncertainty), Some(deviations)) = (uncertainty, deviations.as_deref_mut()) {
                let diagonal: Vec<f64> = (0..height).map(|i| self.kernel.diagonal(part.row(i))).collect();
                uncertainty.deviations(block.as_ref(), &diagonal, deviations);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prediction_is_the_kernel_expansion() {
        let kernel = Kernel::gaussian(1.5).unwrap();
        let atoms = [0.0, 1.0, 2.0, -1.0];
        let centres = Centres::new(Rows::dense(&atoms, 2, 2).unwrap());
        let coefficients = Mat::from_fn(2, 3, |i, j| (i + 1) as f64 * (j as f64 - 1.0));
        let model = KernelModel::new(kernel, centres, coefficients.clone(), vec![1.0, 2.0, 3.0], None).unwrap();
        let points: Vec<f64> = (0..2500 * 2).map(|i| (i as f64 * 0.37).sin()).collect();
        let rows = Rows::dense(&points, 2500, 2).unwrap();
        let (mut out, mut workspace) = (Vec::new(), PredictWorkspace::default());
        model.predict(rows, &mut workspace, &mut out).unwrap();
        for i in [0, 1023, 1024, 2499] {
            for t in 0..3 {
                let expansion: f64 = (0..2)
                    .map(|j| kernel.pair(rows.row(i), model.centres().rows().row(j)) * coefficients[(j, t)])
                    .sum();
                assert!((out[i * 3 + t] - expansion - model.intercepts()[t]).abs() < 1e-13);
            }
        }
        assert!(model.predict(Rows::dense(&points, 1000, 5).unwrap(), &mut workspace, &mut out).is_err());
        assert!(model.predict_with_std(rows, &mut workspace, &mut out, &mut Vec::new()).is_err());
    }
}
