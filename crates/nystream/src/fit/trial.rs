//! Trials on the sample of the first pass.
//!
//! Bandwidths are judged by leaving out one row at a time, which ridge regression gives without fitting again: every row
//! is learnt from and judged on, so a few outliers decide less than in a held-out fifth. Rows that are atoms are not
//! judged: they shaped the features. Kinds of dictionary choose different atoms, so they are judged on rows held out.

use faer::{Mat, MatRef};

use super::codes::TargetCodes;
use super::summing::Summing;
use crate::error::Result;
use crate::kernel::{Centres, Kernel};
use crate::model::PredictWorkspace;
use crate::preprocess::Batch;
use crate::rows::Rows;
use crate::sketch::{Dictionary, DictionaryMethod, DictionaryOptions, build_dictionary};
use crate::solver::{NystromFit, NystromSums, Ridge, SolverOptions, SummedRows, Whitening, left_out_outputs};

/// Share of the sample that trials are judged on: one row in this many.
const JUDGED_SHARE: usize = 5;
/// Most rows they are judged on.
const MOST_JUDGED: usize = 2500;
/// Most features, of all rows together, that a trial holds at once.
const MOST_FEATURES: usize = 300 * 4000;
/// Rows a kernel block holds.
const BLOCK: usize = 1024;

/// How large a trial is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// Most atoms.
    pub atoms: usize,
    /// Most rows learnt from.
    pub rows: usize,
}

/// What a trial found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Verdict {
    /// Squared error on the judged rows, relative to that of their mean, averaged over outputs.
    pub error: f64,
    /// μ, by generalised cross-validation.
    pub ridge: f64,
    /// Rows it was fitted to.
    pub rows: usize,
}

/// The sample, split.
pub(super) struct Trial<'a> {
    all: Rows<'a>,
    all_codes: Mat<f64>,
    learn: Rows<'a>,
    judge: Rows<'a>,
    learn_codes: Mat<f64>,
    judge_codes: Mat<f64>,
    seed: u64,
    leverage_ridge: Option<f64>,
}

impl<'a> Trial<'a> {
    /// Splits the sample, which must be in random order.
    pub fn new(sample: &'a Batch, codes: &TargetCodes, seed: u64, leverage_ridge: Option<f64>) -> Self {
        let rows = sample.rows.rows();
        let judged = (rows.len() / JUDGED_SHARE).min(MOST_JUDGED);
        let mut coded = Mat::new();
        codes.encode(&sample.targets, &mut coded);
        Self {
            all: rows,
            judge: rows.slice(0, judged),
            judge_codes: coded.subrows(0, judged).to_owned(),
            learn: rows.slice(judged, rows.len()),
            learn_codes: coded.subrows(judged, rows.len() - judged).to_owned(),
            all_codes: coded,
            seed,
            leverage_ridge,
        }
    }

    /// Number of rows that trials are judged on.
    pub fn judged(&self) -> usize {
        self.judge.len()
    }

    /// Fits a Nyström model to the one part and judges it on the other; also gives each judged row's share of the error.
    pub fn held_out(&self, kernel: &Kernel, method: DictionaryMethod, size: Size) -> Result<(Verdict, Vec<f64>)> {
        let learn = self.learn.slice(0, self.learn.len().min(size.rows));
        let (_, fit) = self.fit(kernel, method, size.atoms, learn, self.learn_codes.as_ref())?;
        let mut values = Vec::new();
        fit.model.predict(self.judge, &mut PredictWorkspace::default(), &mut values)?;
        let judged: Vec<usize> = (0..self.judge.len()).collect();
        let errors = relative_errors(&judged, self.judge_codes.as_ref(), &values);
        let error = errors.iter().sum();
        Ok((Verdict { error, ridge: fit.choice.ridge, rows: learn.len() }, errors))
    }

    /// Fits a Nyström model of uniform atoms and judges it on the rows it learnt from, each without itself.
    pub fn left_out(&self, kernel: &Kernel, size: Size) -> Result<Verdict> {
        let learn = self.all.slice(0, self.all.len().min(size.rows));
        let (dictionary, ridge, values) = if self.is_small(size) {
            self.at_once(kernel, size.atoms, learn)?
        } else {
            self.in_blocks(kernel, size.atoms, learn)?
        };
        let mut is_atom = vec![false; learn.len()];
        dictionary.indices().iter().for_each(|&i| is_atom[i as usize] = true);
        let mut judged: Vec<usize> = (0..learn.len()).filter(|&i| !is_atom[i]).collect();
        if judged.len() < self.judge.len() {
            judged = (0..learn.len()).collect();
        }
        let error = relative_errors(&judged, self.all_codes.as_ref(), &values).iter().sum();
        Ok(Verdict { error, ridge, rows: learn.len() })
    }

    /// Whether the features of all rows of such a trial can be held at once.
    pub fn is_small(&self, size: Size) -> bool {
        self.all.len().min(size.rows) * size.atoms <= MOST_FEATURES
    }

    /// Uniform atoms, the ridge, and what is predicted of every row without itself, from sums over blocks of rows: they are
    /// gone through three times.
    fn in_blocks(&self, kernel: &Kernel, atoms: usize, rows: Rows) -> Result<(Dictionary, f64, Vec<f64>)> {
        let (dictionary, fit) = self.fit(kernel, DictionaryMethod::Uniform, atoms, rows, self.all_codes.as_ref())?;
        let codes = self.all_codes.as_ref().subrows(0, rows.len());
        Ok((dictionary, fit.choice.ridge, left_out_outputs(&fit.model, rows, codes)?))
    }

    /// The same from the features of all rows.
    fn at_once(&self, kernel: &Kernel, atoms: usize, rows: Rows) -> Result<(Dictionary, f64, Vec<f64>)> {
        let dictionary = self.dictionary(kernel, DictionaryMethod::Uniform, atoms, rows)?;
        let whitening = Whitening::new(kernel, &dictionary, None)?;
        let mut features = Mat::zeros(rows.len(), dictionary.len());
        let centres = Centres::new(dictionary.atoms().rows());
        whitening.features(kernel, rows, &centres, features.as_mut());
        let (codes, outputs) = (self.all_codes.as_ref().subrows(0, rows.len()), self.all_codes.ncols());
        let mut sums = NystromSums::whitened(whitening, outputs);
        sums.add_features(features.as_ref(), codes, rows.len() as f64);
        let (ridge, errors) = sums.left_out(SummedRows { features: features.as_ref(), codes, weights: None })?;
        let value = |(i, error): (usize, f64)| codes[(i / outputs, i % outputs)] - error;
        Ok((dictionary, ridge, errors.into_iter().enumerate().map(value).collect()))
    }

    fn dictionary(&self, kernel: &Kernel, method: DictionaryMethod, atoms: usize, rows: Rows) -> Result<Dictionary> {
        let options =
            DictionaryOptions { leverage_ridge: self.leverage_ridge, seed: self.seed, ..DictionaryOptions::new(atoms) };
        build_dictionary(method, kernel, rows, &options)
    }

    fn fit(
        &self,
        kernel: &Kernel,
        method: DictionaryMethod,
        atoms: usize,
        rows: Rows,
        codes: MatRef<'_, f64>,
    ) -> Result<(Dictionary, NystromFit)> {
        let dictionary = self.dictionary(kernel, method, atoms, rows)?;
        let mut summing = Summing::new(*kernel, &dictionary, codes.ncols(), true)?;
        for start in (0..rows.len()).step_by(BLOCK) {
            let part = rows.slice(start, (start + BLOCK).min(rows.len()));
            summing.add(part, codes.subrows(start, part.len()));
        }
        let settings = SolverOptions { ridge: Ridge::Auto, intercept: true };
        let fit = summing.sums().solve(kernel, &dictionary, &settings)?;
        Ok((dictionary, fit))
    }
}

/// Squared error of `values` (rows × outputs) on each judged row, relative to the sum that their mean would have, averaged
/// over outputs.
fn relative_errors(judged: &[usize], truth: MatRef<'_, f64>, values: &[f64]) -> Vec<f64> {
    let outputs = truth.ncols();
    let mut errors = vec![0.0; judged.len()];
    for t in 0..outputs {
        let mean = judged.iter().map(|&i| truth[(i, t)]).sum::<f64>() / judged.len() as f64;
        let spread: f64 = judged.iter().map(|&i| (truth[(i, t)] - mean).powi(2)).sum();
        if spread > 0.0 {
            for (error, &i) in errors.iter_mut().zip(judged) {
                *error += (truth[(i, t)] - values[i * outputs + t]).powi(2) / spread / outputs as f64;
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;
    use crate::rows::RowBlock;

    #[test]
    fn all_rows_at_once_are_judged_as_in_blocks() {
        let mut rng = Generator::new(8);
        let data: Vec<f64> = (0..3 * 400).map(|_| rng.normal()).collect();
        let mut rows = RowBlock::dense(3);
        rows.extend(Rows::dense(&data, 400, 3).unwrap());
        let both = |x: &[f64]| [(2.0 * x[0]).sin() + 0.3 * x[1], 5.0 + x[2] * x[1]];
        let targets = data.chunks_exact(3).flat_map(both).map(|y| y + 0.2 * rng.normal()).collect();
        let sample = Batch { rows, targets, ..Batch::default() };
        let codes = TargetCodes::Numbers { shift: vec![0.0, 5.0] };
        let trial = Trial::new(&sample, &codes, 4, None);
        for bandwidth in [0.5, 2.0, 4.0, 8.0] {
            let kernel = Kernel::gaussian(bandwidth).unwrap();
            let (atoms, ridge, values) = trial.at_once(&kernel, 60, trial.all).unwrap();
            let (same, expected, others) = trial.in_blocks(&kernel, 60, trial.all).unwrap();
            assert_eq!(atoms.indices(), same.indices());
            // To a thousandth, as ridges are chosen, and to the rounding errors of sums over 400 rows.
            let allowed = 1e-3 * expected + 400.0 * f64::EPSILON;
            assert!((ridge - expected).abs() < allowed, "{bandwidth}: {ridge} {expected}");
            let judged = |values: &[f64]| -> f64 {
                let all: Vec<usize> = (0..400).collect();
                relative_errors(&all, trial.all_codes.as_ref(), values).iter().sum()
            };
            let (found, same) = (judged(&values), judged(&others));
            assert!((found / same - 1.0).abs() < 1e-3, "{bandwidth}: {found} {same}");
            // The last ridge is 3e-11: rounding errors are multiplied by so much that what is predicted of single rows differs
            // by 1e-4 or 2e-3, as the processor's registers are wide.
            if bandwidth == 8.0 {
                assert!(expected < 1e-10);
                continue;
            }
            let apart = values.iter().zip(&others).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(apart < 1e-5, "{bandwidth}: {apart}");
        }
    }
}
