//! Ridge regression one row at a time, for callers who need an answer after every row.
//!
//! Recursive least squares. The coordinates are those in which the normal equations at the start are the identity:
//! v = L⁻¹φ with A = LLᵀ, φ the row's features (or kernels, whichever are summed) and the constant. There P, the inverse of
//! A after more rows, begins as the identity and stays between 0 and it, however badly the atoms' kernels are conditioned.
//! A row of weight w: g = Pv, P −= s g gᵀ with s = 1/(1/w + vᵀg), and the coefficients of the kernels themselves change by
//! s (y − f(x)) S L_Z⁻ᵀ L⁻ᵀ g (T L⁻ᵀ g where levelled kernels are summed), so that a prediction needs no solve.
//!
//! P is never made: with √s g of the rows so far as the rows of H it is I − HᵀH. So a row that j others came before costs 2jm
//! multiply-adds beside four triangular solves (two if kernels are summed), one reading of H, and m numbers more. (Products with
//! the inverse of L_Z L in place of solves took a third less time, but where ridges are near rounding, 1e-10, answers were ten
//! times as far from those of blocks.) Rounding errors grow with the rows since the start, and so does H: callers make it anew
//! from sums after every block (see [`RecursiveRidge`](super::RecursiveRidge)).

use faer::{Mat, MatRef};

use super::levelling::Levelling;
use super::loss::Loss;
use super::whitening::Whitening;
use crate::kernel::{Centres, Kernel};
use crate::linalg::{TiledRows, Triangle, dot, times};
use crate::rows::Row;

/// P and the coefficients, with memory for one row.
#[derive(Debug, Clone)]
pub struct RowwiseRidge {
    kernel: Kernel,
    centres: Centres,
    /// T, if levelled kernels are summed.
    levelling: Option<LevelOne>,
    /// S and L_Z of the features that are summed; none if kernels are.
    whitening: Option<(Vec<f64>, Triangle)>,
    /// L.
    start: Triangle,
    /// H.
    changes: TiledRows,
    /// Coefficients of each output, the constant last.
    coefficients: Vec<Vec<f64>>,
    loss: Loss,
    /// Of a loss with a margin: the coefficients at the start, which say whether a row lies beyond it.
    settled: Vec<Vec<f64>>,
    features: Vec<f64>,
    /// As long as solves want them.
    solved: Vec<f64>,
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
            whitening: whitening.map(|map| (map.weights.clone(), Triangle::of(map.factor.factor()))),
            start: Triangle::of(start),
            changes: TiledRows::new(width, &[]),
            coefficients: coefficients.col_iter().map(|column| column.iter().copied().collect()).collect(),
            loss: Loss::Squared,
            settled: Vec::new(),
            features: vec![1.0; width],
            solved: vec![0.0; Triangle::padded(width)],
            gain: vec![0.0; Triangle::padded(width)],
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
        let (atoms, width) = (self.centres.len(), self.features.len());
        self.solved.fill(0.0);
        self.solved[..width].copy_from_slice(&self.features);
        if let Some(levelling) = &mut self.levelling {
            levelling.level(&mut self.solved[..atoms]);
        }
        if let Some((weights, factor)) = &self.whitening {
            self.solved[..atoms].iter_mut().zip(weights).for_each(|(v, w)| *v *= w);
            // The constant stands beyond this triangle, where it is the identity.
            factor.forward(&mut self.solved);
        }
        self.start.forward(&mut self.solved);
        let (solved, gain) = (&mut self.solved[..width], &mut self.gain);
        gain.fill(0.0);
        gain[..width].copy_from_slice(solved);
        self.changes.add_gram_times(solved, -1.0, &mut gain[..width]);
        let scale = 1.0 / (1.0 / weight + dot(solved, &gain[..width]));
        let root = scale.sqrt();
        solved.iter_mut().zip(&*gain).for_each(|(v, g)| *v = root * g);
        self.changes.push(solved);
        // How far each coefficient goes for an error of 1.
        self.start.backward(gain);
        if let Some((weights, factor)) = &self.whitening {
            factor.backward(gain);
            gain[..atoms].iter_mut().zip(weights).for_each(|(v, w)| *v *= w);
        }
        if let Some(levelling) = &mut self.levelling {
            levelling.level(&mut gain[..atoms]);
        }
        for ((coefficients, code), predicted) in self.coefficients.iter_mut().zip(codes).zip(predicted.iter()) {
            let step = scale * (code - predicted);
            coefficients.iter_mut().zip(&*gain).for_each(|(c, g)| *c += step * g);
        }
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let whitening = self.whitening.as_ref().map_or(0, |(weights, factor)| 8 * weights.len() + factor.size_bytes());
        let maps = self.start.size_bytes() + whitening + self.levelling.as_ref().map_or(0, LevelOne::size_bytes);
        let vectors = 2 * self.gain.len() + self.features.len() * (1 + self.coefficients.len() + self.settled.len());
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
}
