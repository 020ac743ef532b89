//! Ridge regression one row at a time, for callers who need an answer after every row.
//!
//! Recursive least squares. The coordinates are those in which the normal equations at the start are the identity:
//! v = L⁻¹φ with A = LLᵀ, φ the row's features (or kernels, whichever are summed) and the constant. There P, the inverse of
//! A after more rows, begins as the identity and stays between 0 and it, however badly the atoms' kernels are conditioned.
//! A row of weight w: g = Pv, P −= s g gᵀ with s = 1/(1/w + vᵀg), and the coefficients of the kernels themselves change by
//! s (y − f(x)) S L_Z⁻ᵀ L⁻ᵀ g (T L⁻ᵀ g where levelled kernels are summed), so that a prediction needs no solve.
//!
//! P changes when the next row needs it, in the same reading. A row costs 3.5 m² multiply-adds in four triangular solves
//! (two if kernels are summed) and one reading of half of P. Rounding errors grow with the rows since the start, so callers
//! make it anew from sums after every block (see [`RecursiveRidge`](super::RecursiveRidge)).

use std::sync::Arc;

use faer::{Mat, MatRef};

use super::levelling::Levelling;
use super::loss::Loss;
use super::whitening::Whitening;
use crate::kernel::{Centres, Kernel};
use crate::linalg::{Triangle, dot};
use crate::rows::Row;

/// P and the coefficients, with memory for one row.
#[derive(Debug, Clone)]
pub struct RowwiseRidge {
    kernel: Kernel,
    centres: Centres,
    /// S and L_Z of the features that are summed; none if kernels are.
    whitening: Option<(Vec<f64>, Triangle)>,
    /// T, if levelled kernels are summed.
    levelling: Option<Arc<Levelling>>,
    /// L.
    start: Triangle,
    /// P, but for the last row's change.
    inverse: Triangle,
    /// The last row's −s and g.
    change: (f64, Vec<f64>),
    /// Coefficients of each output, the constant last.
    coefficients: Vec<Vec<f64>>,
    loss: Loss,
    /// Of a loss with a margin: the coefficients at the start, which say whether a row lies beyond it.
    settled: Vec<Vec<f64>>,
    features: Vec<f64>,
    solved: Vec<f64>,
    gain: Vec<f64>,
    along: Vec<f64>,
}

impl RowwiseRidge {
    /// Starts from L and the coefficients of kernels (atoms + 1 rows, a column an output).
    pub(super) fn new(
        kernel: Kernel,
        centres: Centres,
        (whitening, levelling): (Option<&Whitening>, Option<Arc<Levelling>>),
        start: MatRef<'_, f64>,
        coefficients: &Mat<f64>,
    ) -> Self {
        let width = centres.len() + 1;
        let zeros = vec![0.0; Triangle::padded(width)];
        Self {
            kernel,
            centres,
            whitening: whitening.map(|map| (map.weights.clone(), Triangle::of(map.factor.factor()))),
            levelling,
            start: Triangle::of(start),
            inverse: Triangle::identity(width),
            change: (0.0, zeros.clone()),
            coefficients: coefficients.col_iter().map(|column| column.iter().copied().collect()).collect(),
            loss: Loss::Squared,
            settled: Vec::new(),
            features: vec![1.0; width],
            solved: zeros.clone(),
            gain: zeros,
            along: Vec::new(),
        }
    }

    /// With this loss. As in a block, a row is passed over by its outputs at the start.
    pub(super) fn with_loss(self, loss: Loss) -> Self {
        let settled = if loss == Loss::Squared { Vec::new() } else { self.coefficients.clone() };
        Self { loss, settled, ..self }
    }

    /// Outputs of a row.
    pub fn predict(&mut self, row: Row, out: &mut [f64]) {
        let atoms = self.centres.len();
        self.kernel.row(row, &self.centres, &mut self.features[..atoms]);
        for (value, coefficients) in out.iter_mut().zip(&self.coefficients) {
            *value = dot(&self.features, coefficients);
        }
    }

    /// Learns a row; `predicted` gets its outputs from before.
    pub fn learn(&mut self, row: Row, codes: &[f64], weight: f64, predicted: &mut [f64]) {
        self.predict(row, predicted);
        let settled = || self.settled.iter().map(|coefficients| dot(&self.features, coefficients));
        if self.loss != Loss::Squared && settled().zip(codes).all(|(output, code)| self.loss.passes(*code, output)) {
            return;
        }
        let (atoms, width) = (self.centres.len(), self.features.len());
        self.solved.fill(0.0);
        self.solved[..width].copy_from_slice(&self.features);
        if let Some(levelling) = &self.levelling {
            levelling.level_one(&mut self.solved, &mut self.along);
        }
        if let Some((weights, factor)) = &self.whitening {
            self.solved[..atoms].iter_mut().zip(weights).for_each(|(v, w)| *v *= w);
            // The constant stands beyond this triangle, where it is the identity.
            factor.forward(&mut self.solved);
        }
        self.start.forward(&mut self.solved);
        let (step, last) = &mut self.change;
        self.inverse.update_then_multiply(*step, last, &self.solved, &mut self.gain);
        let scale = 1.0 / (1.0 / weight + dot(&self.solved, &self.gain));
        *step = -scale;
        last.copy_from_slice(&self.gain);
        // How far each coefficient goes for an error of 1.
        self.start.backward(&mut self.gain);
        if let Some((weights, factor)) = &self.whitening {
            factor.backward(&mut self.gain);
            self.gain[..atoms].iter_mut().zip(weights).for_each(|(v, w)| *v *= w);
        }
        if let Some(levelling) = &self.levelling {
            levelling.level_one(&mut self.gain, &mut self.along);
        }
        for ((coefficients, code), predicted) in self.coefficients.iter_mut().zip(codes).zip(predicted.iter()) {
            let step = scale * (code - predicted);
            coefficients.iter_mut().zip(&self.gain).for_each(|(c, g)| *c += step * g);
        }
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let whitening = self.whitening.as_ref().map_or(0, |(weights, factor)| 8 * weights.len() + factor.size_bytes());
        let levelling = self.levelling.as_ref().map_or(0, |levelling| levelling.size_bytes());
        let whitening = whitening + levelling + 8 * self.along.capacity();
        let vectors = 3 * self.gain.len() + self.features.len() * (1 + self.coefficients.len() + self.settled.len());
        self.start.size_bytes() + self.inverse.size_bytes() + whitening + 8 * vectors + self.centres.size_bytes()
    }
}
