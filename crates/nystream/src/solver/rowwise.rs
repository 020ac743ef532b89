//! Ridge regression one row at a time, for callers who need an answer after every row.
//!
//! Recursive least squares. The coordinates are those in which the normal equations at the start are the identity:
//! v = L⁻¹φ with A = LLᵀ, φ the row's features (or kernels, whichever are summed) and the constant. There P, the inverse of
//! A after more rows, begins as the identity and stays between 0 and it, however badly the atoms' kernels are conditioned.
//! A row of weight w: g = Pv, P −= s g gᵀ with s = 1/(1/w + vᵀg), and the coefficients of the kernels themselves change by
//! s (y − f(x)) S L_Z⁻ᵀ L⁻ᵀ g (T L⁻ᵀ g where levelled kernels are summed), so that a prediction needs no solve.
//!
//! Kernels become v by one lower triangle, W = L⁻¹ L_Z⁻¹ S or L⁻¹, which is made at the start: a product need not wait for one
//! number after the other, as a solve must. P is never made: with √s g of the rows so far as the rows of H it is I − HᵀH. So a row
//! that j others came before costs m² + 2jm multiply-adds, two readings of W and one of H, and m numbers more. Rounding errors
//! grow with the rows since the start, and so does H: callers make it anew from sums after every block (see
//! [`RecursiveRidge`](super::RecursiveRidge)).

use faer::{Mat, MatRef};

use super::levelling::Levelling;
use super::loss::Loss;
use super::whitening::Whitening;
use crate::kernel::{Centres, Kernel};
use crate::linalg::{TiledRows, TiledTriangle, dot, lower_quotient, times};
use crate::rows::Row;

/// P and the coefficients, with memory for one row.
#[derive(Debug, Clone)]
pub struct RowwiseRidge {
    kernel: Kernel,
    centres: Centres,
    /// T, if levelled kernels are summed.
    levelling: Option<LevelOne>,
    /// W.
    whitener: TiledTriangle,
    /// H.
    changes: TiledRows,
    /// Coefficients of each output, the constant last.
    coefficients: Vec<Vec<f64>>,
    loss: Loss,
    /// Of a loss with a margin: the coefficients at the start, which say whether a row lies beyond it.
    settled: Vec<Vec<f64>>,
    features: Vec<f64>,
    levelled: Vec<f64>,
    whitened: Vec<f64>,
    gain: Vec<f64>,
}

/// T for one vector at a time: v += Q diag(factor − 1) Qᵀv.
#[derive(Debug, Clone)]
struct LevelOne {
    /// Qᵀ.
    directions: TiledRows,
    changes: Vec<f64>,
    along: Vec<f64>,
}

impl LevelOne {
    fn of(levelling: &Levelling) -> Self {
        let vectors = levelling.vectors();
        let numbers: Vec<f64> = vectors.col_iter().flat_map(|column| column.iter()).copied().collect();
        let changes: Vec<f64> = levelling.factors().iter().map(|factor| factor - 1.0).collect();
        Self { directions: TiledRows::new(vectors.nrows(), &numbers), along: vec![0.0; changes.len()], changes }
    }

    fn level(&mut self, vector: &mut [f64]) {
        self.directions.times(vector, &mut self.along);
        self.along.iter_mut().zip(&self.changes).for_each(|(v, change)| *v *= change);
        self.directions.add_transposed_times(&self.along, vector);
    }

    fn size_bytes(&self) -> usize {
        self.directions.size_bytes() + 8 * (self.changes.capacity() + self.along.capacity())
    }
}

/// L⁻¹ L_Z⁻¹ S with the constant as the last feature, or L⁻¹.
fn whitener(lower: MatRef<'_, f64>, whitening: Option<&Whitening>) -> TiledTriangle {
    let width = lower.nrows();
    let mut matrix = Mat::<f64>::identity(width, width);
    if let Some(Whitening { weights, factor, .. }) = whitening {
        matrix.as_mut().submatrix_mut(0, 0, width - 1, width - 1).copy_from(factor.inverse_factor());
        for (column, weight) in matrix.as_mut().col_iter_mut().zip(weights) {
            column.iter_mut().for_each(|v| *v *= weight);
        }
    }
    lower_quotient(lower, matrix.as_mut());
    TiledTriangle::of(matrix.as_ref())
}

impl RowwiseRidge {
    /// Starts from L and the coefficients of kernels (atoms + 1 rows, a column an output).
    pub(super) fn new(
        kernel: Kernel,
        centres: Centres,
        (whitening, levelling): (Option<&Whitening>, Option<&Levelling>),
        start: MatRef<'_, f64>,
        coefficients: &Mat<f64>,
    ) -> Self {
        let width = centres.len() + 1;
        Self {
            kernel,
            centres,
            levelling: levelling.map(LevelOne::of),
            whitener: whitener(start, whitening),
            changes: TiledRows::new(width, &[]),
            coefficients: coefficients.col_iter().map(|column| column.iter().copied().collect()).collect(),
            loss: Loss::Squared,
            settled: Vec::new(),
            features: vec![1.0; width],
            levelled: vec![0.0; width],
            whitened: vec![0.0; width],
            gain: vec![0.0; width],
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
            times(coefficients, coefficients.len(), &self.features, std::slice::from_mut(value));
        }
    }

    /// Learns a row; `predicted` gets its outputs from before.
    pub fn learn(&mut self, row: Row, codes: &[f64], weight: f64, predicted: &mut [f64]) {
        self.predict(row, predicted);
        let settled = || self.settled.iter().map(|coefficients| dot(&self.features, coefficients));
        if self.loss != Loss::Squared && settled().zip(codes).all(|(output, code)| self.loss.passes(*code, output)) {
            return;
        }
        let atoms = self.centres.len();
        match &mut self.levelling {
            Some(levelling) => {
                self.levelled.copy_from_slice(&self.features);
                levelling.level(&mut self.levelled[..atoms]);
                self.whitener.times(&self.levelled, &mut self.whitened);
            }
            None => self.whitener.times(&self.features, &mut self.whitened),
        }
        self.gain.copy_from_slice(&self.whitened);
        self.changes.add_gram_times(&self.whitened, -1.0, &mut self.gain);
        let scale = 1.0 / (1.0 / weight + dot(&self.whitened, &self.gain));
        let root = scale.sqrt();
        self.whitened.iter_mut().zip(&self.gain).for_each(|(v, g)| *v = root * g);
        self.changes.push(&self.whitened);
        // How far each coefficient goes for an error of 1.
        let direction = &mut self.whitened;
        self.whitener.transposed_times(&self.gain, direction);
        if let Some(levelling) = &mut self.levelling {
            levelling.level(&mut direction[..atoms]);
        }
        for ((coefficients, code), predicted) in self.coefficients.iter_mut().zip(codes).zip(predicted.iter()) {
            let step = scale * (code - predicted);
            coefficients.iter_mut().zip(&*direction).for_each(|(c, d)| *c += step * d);
        }
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let maps = self.whitener.size_bytes() + self.levelling.as_ref().map_or(0, LevelOne::size_bytes);
        let vectors = self.features.len() * (4 + self.coefficients.len() + self.settled.len());
        maps + self.changes.size_bytes() + 8 * vectors + self.centres.size_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn one_vector_is_levelled_as_a_row_of_a_block() {
        let mut rng = Generator::new(5);
        let data: Vec<f64> = (0..160 * 5).map(|_| rng.normal()).collect();
        let kernels = Kernel::gaussian(9.0).unwrap().matrix(crate::rows::Rows::dense(&data, 160, 5).unwrap());
        let levelling = Levelling::of(kernels.as_ref()).unwrap().unwrap();
        let mut block = kernels.clone();
        levelling.apply(block.as_mut(), &mut Vec::new());
        let mut one = LevelOne::of(&levelling);
        for i in [3, 77] {
            let mut vector: Vec<f64> = (0..160).map(|j| kernels[(i, j)]).collect();
            one.level(&mut vector);
            assert!((0..160).all(|j| (vector[j] - block[(i, j)]).abs() < 1e-13));
        }
        assert!((0..160).any(|j| (kernels[(3, j)] - block[(3, j)]).abs() > 0.1));
    }

    #[test]
    fn the_whitener_undoes_both_factors() {
        let mut rng = Generator::new(6);
        let mut atoms = crate::rows::RowBlock::dense(1);
        let data: Vec<f64> = (0..9).map(|_| rng.normal()).collect();
        atoms.extend(crate::rows::Rows::dense(&data, 9, 1).unwrap());
        let weights = (0..9).map(|i| 1.0 + 0.1 * f64::from(i)).collect();
        let dictionary = crate::sketch::Dictionary::new(atoms, weights, (0..9).collect(), 1e-3).unwrap();
        let whitening = Whitening::new(&Kernel::gaussian(1.0).unwrap(), &dictionary, None).unwrap();
        let lower = Mat::from_fn(10, 10, |i, j| if i > j { rng.normal() } else { f64::from(u8::from(i == j)) * 2.0 });
        let x: Vec<f64> = (0..10).map(|_| rng.normal()).collect();
        let mut out = vec![0.0; 10];
        whitener(lower.as_ref(), Some(&whitening)).times(&x, &mut out);
        // W⁻¹ of it: S⁻¹L_Z of all but the constant, after L.
        let features: Vec<f64> = (0..10).map(|i| (0..=i).map(|j| lower[(i, j)] * out[j]).sum()).collect();
        let to_kernels = whitening.to_kernels();
        for i in 0..9 {
            let back: f64 = (0..=i).map(|j| to_kernels[(i, j)] * features[j]).sum();
            assert!((back - x[i]).abs() < 1e-10, "{i}: {back} {}", x[i]);
        }
        assert!((features[9] - x[9]).abs() < 1e-12);
    }
}
