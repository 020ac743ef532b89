//! Features of the kept rows: a fit to them needs them several times.
//!
//! They are held while it is made only, and are then the largest thing: as many numbers as five or, of rare classes, twenty
//! Gram matrices; each of the learners that follow the stream afterwards holds about ten.

use faer::{Mat, MatMut, MatRef};

use super::head::Kept;
use crate::kernel::{Centres, Kernel};
use crate::linalg::product;
use crate::sketch::Dictionary;
use crate::solver::{NystromSums, RecursiveRidge, Whitening};

/// Rows, and what sums over them need.
pub(super) struct KeptFeatures<'a> {
    kept: &'a Kept,
    whitening: &'a Whitening,
    /// A row each, and a last column of ones: √w where all rows count the same.
    values: Mat<f64>,
    /// k(x,x).
    diagonals: Vec<f64>,
    /// The newest row counts with its weight, older ones less.
    weights: Vec<f64>,
    /// Memory for the rows of a sum.
    scaled: Vec<f64>,
}

impl<'a> KeptFeatures<'a> {
    pub fn new(kernel: &Kernel, dictionary: &Dictionary, whitening: &'a Whitening, kept: &'a Kept, decay: f64) -> Self {
        let centres = Centres::new(dictionary.atoms().rows());
        let (rows, count) = (kept.rows.rows(), kept.len());
        let atoms = dictionary.len();
        let mut values = Mat::zeros(count, atoms + 1);
        values.as_mut().col_mut(atoms).fill(1.0);
        whitening.features(kernel, rows, &centres, values.as_mut().subcols_mut(0, atoms));
        let mut diagonals = vec![0.0; count];
        kernel.diagonals(rows, &mut diagonals);
        let weights = (0..count).map(|i| kept.weights[i] * decay.powf((count - 1 - i) as f64)).collect();
        Self { kept, whitening, values, diagonals, weights, scaled: Vec::new() }
    }

    /// The features, a row each.
    pub fn values(&self) -> MatRef<'_, f64> {
        self.values.as_ref().subcols(0, self.values.ncols() - 1)
    }

    /// Sums over the rows that are taught; the others count as passed over.
    pub fn sums(&mut self, taught: &[bool]) -> NystromSums {
        let (atoms, outputs) = (self.values.ncols() - 1, self.kept.outputs);
        let chosen: Vec<usize> = (0..taught.len()).filter(|&i| taught[i]).collect();
        let roots: Vec<f64> = chosen.iter().map(|&i| self.weights[i].sqrt()).collect();
        let scaled = if chosen.len() == taught.len() && roots.iter().all(|&root| root == 1.0) {
            self.values.as_ref()
        } else {
            self.scaled.resize(chosen.len() * (atoms + 1), 0.0);
            let mut scaled = MatMut::from_column_major_slice_mut(&mut self.scaled, chosen.len(), atoms + 1);
            for (out, column) in scaled.as_mut().col_iter_mut().zip(self.values.col_iter()) {
                out.iter_mut().zip(chosen.iter().zip(&roots)).for_each(|(out, (&i, root))| *out = root * column[i]);
            }
            MatRef::from_column_major_slice(&self.scaled, chosen.len(), atoms + 1)
        };
        let codes = Mat::from_fn(chosen.len(), outputs, |i, t| roots[i] * self.kept.codes[chosen[i] * outputs + t]);
        let energy = chosen.iter().map(|&i| self.weights[i] * self.diagonals[i]).sum();
        let mut sums = NystromSums::whitened(self.whitening.clone(), outputs);
        sums.add_weighted(scaled, codes.as_ref(), energy);
        // What follows the stream brings its rows packed.
        sums.forget_rows();
        let passed = (0..taught.len()).filter(|&i| !taught[i]);
        sums.pass_over(passed.clone().map(|i| self.weights[i]).sum(), passed.count() as u64);
        sums
    }

    /// What every row counts.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// What a learner of these features predicts of the rows, row-major.
    pub fn outputs(&self, learner: &RecursiveRidge) -> Vec<f64> {
        let theta = learner.coefficients();
        let values = product(self.values.as_ref(), theta);
        let width = values.ncols();
        (0..values.nrows() * width).map(|i| values[(i / width, i % width)]).collect()
    }
}
