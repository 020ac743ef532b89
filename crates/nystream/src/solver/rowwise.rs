//! Ridge regression one row at a time, for callers who need an answer after every row.
//!
//! Recursive least squares in the kernels themselves: P = A⁻¹ of the normal equations in kernel coordinates, c the
//! coefficients. A row k (with its constant 1) of weight w: g = Pk, e = y − kᵀc, then c += g e/(1/w + kᵀg) and
//! P −= g gᵀ/(1/w + kᵀg). Two readings of P a row, so bound by memory: O(m²) a row. Rounding errors grow with the rows
//! since P was made, so callers make it anew from sums after every block (see [`RecursiveRidge`](super::RecursiveRidge)).

use faer::{Mat, MatRef};

use crate::kernel::{Centres, Kernel};
use crate::linalg::dot;
use crate::rows::Row;

/// P and the coefficients, with memory for one row.
#[derive(Debug, Clone)]
pub struct RowwiseRidge {
    kernel: Kernel,
    centres: Centres,
    /// P, a row after the other; symmetric.
    inverse: Vec<f64>,
    /// Coefficients of each output, the constant last.
    coefficients: Vec<Vec<f64>>,
    features: Vec<f64>,
    gain: Vec<f64>,
}

impl RowwiseRidge {
    /// Starts from P and the coefficients (atoms + 1 rows, a column an output).
    pub(super) fn new(kernel: Kernel, centres: Centres, inverse: MatRef<'_, f64>, coefficients: &Mat<f64>) -> Self {
        let width = centres.len() + 1;
        let inverse = (0..width * width).map(|i| inverse[(i / width, i % width)]).collect();
        let coefficients = coefficients.col_iter().map(|column| column.iter().copied().collect()).collect();
        Self { kernel, centres, inverse, coefficients, features: vec![1.0; width], gain: vec![0.0; width] }
    }

    /// Outputs of a row.
    pub fn predict(&mut self, row: Row, out: &mut [f64]) {
        let atoms = self.centres.len();
        self.kernel.row(row, &self.centres, &mut self.features[..atoms]);
        self.features[atoms] = 1.0;
        for (value, coefficients) in out.iter_mut().zip(&self.coefficients) {
            *value = dot(&self.features, coefficients);
        }
    }

    /// Learns a row; `predicted` gets its outputs from before.
    pub fn learn(&mut self, row: Row, codes: &[f64], weight: f64, predicted: &mut [f64]) {
        self.predict(row, predicted);
        let width = self.features.len();
        for (gain, row) in self.gain.iter_mut().zip(self.inverse.chunks_exact(width)) {
            *gain = dot(row, &self.features);
        }
        let scale = 1.0 / (1.0 / weight + dot(&self.features, &self.gain));
        for ((coefficients, code), predicted) in self.coefficients.iter_mut().zip(codes).zip(predicted.iter()) {
            let step = scale * (code - predicted);
            coefficients.iter_mut().zip(&self.gain).for_each(|(c, g)| *c += step * g);
        }
        for (gain, row) in self.gain.iter().zip(self.inverse.chunks_exact_mut(width)) {
            let step = scale * gain;
            row.iter_mut().zip(&self.gain).for_each(|(p, g)| *p -= step * g);
        }
    }

    /// Multiplies the weight of all rows so far by a factor.
    pub fn fade(&mut self, factor: f64) {
        self.inverse.iter_mut().for_each(|p| *p /= factor);
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        8 * (self.inverse.len() + self.features.len() * (2 + self.coefficients.len())) + self.centres.size_bytes()
    }
}
